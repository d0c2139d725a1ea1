/* `orrery certificate`: looks into the directory of a server, which may be running or not. */
#include "cli/cli.h"

#include "server/certificate.h"
#include "server/x509.h"

void cli_certificate_help(void)
{
    printf("Usage: orrery certificate [--directory DIR] export|show\n"
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
           "                    Without it, what the environment says as for `orrery serve`, or\n"
           "                    $XDG_DATA_HOME/orrery, or ~/.local/share/orrery\n"
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

static int certificate_print(const char *given, bool whole)
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
    if (!cli_directory_find(given, settings, &directory, &err) ||
        !certificate_inspect(directory, &authority, &server, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    /* what cannot be shown is no certificate, and not handed out as one either */
    if (!show(buf_slice(&authority), buf_slice(&server), &out, &err))
        return cli_fail(CLI_FAILED, "\"%s/tls\": %s", directory, err.message);
    if (whole) {
        buf_clear(&out);
        buf_append_slice(&out, buf_slice(&authority));
    }
    fwrite(out.data, 1, out.len, stdout);
    return CLI_OK;
}

int cli_certificate(int argc, char **argv)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'}, {"directory", required_argument, NULL, 'd'}, {NULL}};
    const char *directory = NULL, *what = NULL;

    /* options may stand before and after the word */
    for (;;) {
        int option = cli_option_next(argc, argv, options);

        if (option == '?')
            return CLI_USAGE;
        if (option == 'h') {
            cli_certificate_help();
            return CLI_OK;
        }
        if (option == 'd')
            directory = optarg;
        else if (optind == argc)
            break;
        else if (what)
            return cli_fail(CLI_USAGE, "certificate takes one word, export or show");
        else
            what = argv[optind++];
    }
    if (what && strcmp(what, "export") == 0)
        return certificate_print(directory, true);
    if (what && strcmp(what, "show") == 0)
        return certificate_print(directory, false);
    return cli_fail(CLI_USAGE, "certificate takes export or show%s%s%s", what ? ", not \"" : "",
                    what ? what : "", what ? "\"" : "");
}
