/* `orrery certificate`: looks into the directory of a server, which may be running or not. */
#include "cli/cli.h"

#include "cli/client.h"
#include "document/json.h"
#include "server/certificate.h"
#include "server/x509.h"

void cli_certificate_help(void)
{
    printf("Usage: orrery certificate [--directory DIR] [--format table|json] export|show\n"
           "\n"
           "The server signs its certificate with an authority it has made at its first start.\n"
           "Clients that trust the authority accept the certificate, also after it is made anew.\n"
           "\n"
           "  export   prints the certificate of the authority (PEM); a running server also hands\n"
           "           it out at /_orrery/ca.pem\n"
           "  show     prints names, validity and fingerprints of the authority and of the\n"
           "           server's certificate\n"
           "\n"
           "Options:\n"
           "  --directory DIR   of the node the server keeps them with: its first rocksdb: node.\n"
           "                    Without it, what the environment says as for `orrery serve`,\n"
           "                    that of the server that runs here, $XDG_DATA_HOME/orrery, or\n"
           "                    ~/.local/share/orrery\n"
           "  --format FORMAT   table, or json; short: --json\n"
           "  -h, --help        this text\n");
}

static bool show(struct slice authority, struct slice server, struct buf *out, struct error *err)
{
    BUF_APPEND(out, "authority\n");
    if (!x509_describe(authority, out, err))
        return error_prefix(err, "ca.pem");
    BUF_APPEND(out, "server\n");
    if (server.len == 0)
        BUF_APPEND(out, "  none yet: it is made when the server starts\n");
    else if (!x509_describe(server, out, err))
        return error_prefix(err, "server.pem");
    return true;
}

/* The lines of a description as members: two blanks, a name as wide as the others, a value. */
static void facts_json(struct slice text, struct buf *out)
{
    enum { NAME_AT = 2, VALUE_AT = 15 };
    struct slice line;
    bool first = true;

    BUF_APPEND(out, "{");
    while (slice_split(text, '\n', &line, &text)) {
        struct slice name;

        if (line.len < VALUE_AT)
            continue;
        name = slice_trim(slice_skip(slice_first(line, VALUE_AT), NAME_AT));
        if (!first)
            BUF_APPEND(out, ",");
        first = false;
        document_json_write_string(name, out);
        BUF_APPEND(out, ":");
        document_json_write_string(slice_skip(line, VALUE_AT), out);
    }
    BUF_APPEND(out, "}");
}

/* {"certificate":PEM} of an export, {"authority":{...},"server":{...}} of what is shown. */
static void json_make(struct slice authority, bool whole, struct buf *text)
{
    static const char border[] = "server\n";
    CLEANUP(buf_done) struct buf out;
    const uint8_t *at;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (whole) {
        BUF_APPEND(&out, "{\"certificate\":");
        document_json_write_string(authority, &out);
    } else {
        at = memmem(text->data, text->len, border, sizeof border - 1);
        assert(at);
        BUF_APPEND(&out, "{\"authority\":");
        facts_json(slice_of(text->data, (size_t)(at - text->data)), &out);
        BUF_APPEND(&out, ",\"server\":");
        facts_json(slice_of(at, text->len - (size_t)(at - text->data)), &out);
    }
    BUF_APPEND(&out, "}\n");
    buf_clear(text);
    buf_append_slice(text, buf_slice(&out));
}

struct certificate_command {
    const char *directory, *what;
    bool json;
};

static int certificate_print(const struct certificate_command *command, bool whole)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    CLEANUP(buf_done) struct buf authority;
    CLEANUP(buf_done) struct buf server;
    CLEANUP(buf_done) struct buf out;
    const char *directory;
    struct error err;

    buf_init(&authority, X509_PEM_BYTES_MAX);
    buf_init(&server, X509_PEM_BYTES_MAX);
    buf_init(&out, BUF_DEFAULT_MAX);
    if (!cli_directory_find(command->directory, settings, &directory, &err) ||
        !certificate_inspect(directory, &authority, &server, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    /* what cannot be shown is no certificate, and not handed out as one either */
    if (!show(buf_slice(&authority), buf_slice(&server), &out, &err))
        return cli_fail(CLI_FAILED, "\"%s/tls\": %s", directory, err.message);
    if (command->json) {
        json_make(buf_slice(&authority), whole, &out);
    } else if (whole) {
        buf_clear(&out);
        buf_append_slice(&out, buf_slice(&authority));
    }
    fwrite(out.data, 1, out.len, stdout);
    return CLI_OK;
}

static bool option_take(void *context, int option, const char *value)
{
    struct certificate_command *command = context;

    if (option == 'f')
        return cli_format_take(value, &command->json);
    if (option == 'j')
        command->json = true;
    else
        command->directory = value;
    return true;
}

int cli_certificate(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"directory", required_argument, NULL, 'd'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"format", required_argument, NULL, 'f'},
                                            {NULL}};
    struct certificate_command command = {0};
    bool help;
    int count = cli_words_read(argc, argv, options,
                               &(struct cli_words){&command.what, 1, option_take, &command}, &help);

    if (help) {
        cli_certificate_help();
        return CLI_OK;
    }
    if (count < 0)
        return CLI_USAGE;
    if (count && strcmp(command.what, "export") == 0)
        return certificate_print(&command, true);
    if (count && strcmp(command.what, "show") == 0)
        return certificate_print(&command, false);
    return cli_fail(CLI_USAGE, "certificate takes export or show%s%s%s", count ? ", not \"" : "",
                    count ? command.what : "", count ? "\"" : "");
}
