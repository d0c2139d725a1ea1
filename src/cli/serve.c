/* `orrery serve`. Options are short forms of settings; they are gathered first and applied last,
 * since the command line wins over the file and the environment wherever it names the file. */
#include "cli/cli.h"

#include "base/log_kept.h"

#include "base/log.h"
#include "server/server.h"

#include <unistd.h>

enum { ASSIGNMENTS_MAX = 512 };

/* A setting given by an option. */
struct assignment {
    const char *option; /* "--rest" */
    const char *name;   /* "rest.listen"; NULL: value is "name=value" */
    const char *value;
};

struct wishes {
    const char *config;
    size_t count;
    struct assignment assignments[ASSIGNMENTS_MAX];
};

/* Options that need more than a setting; the others follow from the table below. */
enum { OPTION_CONFIG = 'c', OPTION_SET = 's', OPTION_NODE = 'n', OPTION_SHORT = 1000 };

static const struct {
    const char *option, *name, *value; /* without a value the option takes one */
} shorts[] = {
    {"--dev", "server.dev", "true"},
    {"--no-dev", "server.dev", "false"},
    {"--rest", "rest.listen", NULL},
    {"--mongo", "mongo.listen", NULL},
    {"--table", "table.listen", NULL},
    {"--gremlin", "gremlin.listen", NULL},
    {"--mongo-replica-set", "mongo.replica_set_listen", NULL},
};

void cli_serve_help(void)
{
    CLEANUP(buf_done) struct buf settings;

    printf("Usage: orrery serve [OPTIONS]\n"
           "\n"
           "Starts the server and runs until SIGTERM or Ctrl-C. SIGHUP reads certificates again.\n"
           "\n"
           "Options:\n"
           "  --node NAME=URL      a storage node; may be repeated. URL is one of\n"
           "                         rocksdb:DIRECTORY    embedded, durable\n"
           "                         memory:              embedded, gone at the end\n"
           "                         postgresql://HOST/DATABASE\n"
           "                       without any: local=rocksdb: in $XDG_DATA_HOME/orrery,\n"
           "                       or in ~/.local/share/orrery\n"
           "  --rest ADDR:PORT     where the REST front listens (127.0.0.1:8081), or off\n"
           "  --table ADDR:PORT    where the Table front listens (127.0.0.1:10002), or off\n"
           "  --mongo ADDR:PORT    where the MongoDB front listens as a mongos\n"
           "                       (127.0.0.1:27017), or off\n"
           "  --mongo-replica-set ADDR:PORT\n"
           "                       and as the replica set globaldb, with TLS (off, and with\n"
           "                       --dev 127.0.0.1:10255 where that is free)\n"
           "  --gremlin ADDR:PORT  where the Gremlin front listens (127.0.0.1:8182), or off\n"
           "  --dev, --no-dev      accept the public emulator key, on loopback only unless\n"
           "                       server.dev_anywhere says so too\n"
           "  --config FILE        read settings from a file\n"
           "  --set NAME=VALUE     a setting; may be repeated\n"
           "  -h, --help           this text\n"
           "\n"
           "Settings, as `name = default  (what it takes)`; in a file as `name = value` under\n"
           "[section], in the environment as ORRERY_SECTION_NAME:\n"
           "\n");
    buf_init(&settings, BUF_DEFAULT_MAX);
    settings_describe(&settings);
    fwrite(settings.data, 1, settings.len, stdout);
}

static bool wish_add(struct wishes *wishes, const char *option, const char *name, const char *value)
{
    if (wishes->count == ASSIGNMENTS_MAX) {
        cli_fail(CLI_USAGE, "more than %d options are given", ASSIGNMENTS_MAX);
        return false;
    }
    wishes->assignments[wishes->count++] = (struct assignment){option, name, value};
    return true;
}

static bool wishes_take(struct wishes *wishes, int option)
{
    switch (option) {
    case OPTION_CONFIG:
        wishes->config = optarg;
        return true;
    case OPTION_SET:
        return wish_add(wishes, "--set", NULL, optarg);
    case OPTION_NODE:
        return wish_add(wishes, "--node", NULL, optarg);
    default: {
        size_t i = (size_t)(option - OPTION_SHORT);

        assert(i < ARRAY_LEN(shorts));
        return wish_add(wishes, shorts[i].option, shorts[i].name,
                        shorts[i].value ? shorts[i].value : optarg);
    }
    }
}

/* The exit code to leave with, or -1 to go on. */
static int options_read(int argc, char **argv, struct wishes *wishes)
{
    struct option options[ARRAY_LEN(shorts) + 5] = {
        {"help", no_argument, NULL, 'h'},
        {"config", required_argument, NULL, OPTION_CONFIG},
        {"set", required_argument, NULL, OPTION_SET},
        {"node", required_argument, NULL, OPTION_NODE},
    };
    int option;

    for (size_t i = 0; i < ARRAY_LEN(shorts); i++)
        options[4 + i] =
            (struct option){shorts[i].option + 2, shorts[i].value ? no_argument : required_argument,
                            NULL, OPTION_SHORT + (int)i};
    while ((option = cli_option_next(argc, argv, options)) != -1) {
        if (option == '?')
            return CLI_USAGE;
        if (option == 'h') {
            cli_serve_help();
            return CLI_OK;
        }
        if (!wishes_take(wishes, option))
            return CLI_USAGE;
    }
    if (optind < argc)
        return cli_fail(CLI_USAGE, "serve takes options only, not \"%s\"", argv[optind]);
    return -1;
}

static bool node_assign(struct settings *settings, struct slice assignment, struct error *err)
{
    const struct settings_source source = {SETTINGS_COMMAND_LINE, "--node", 0};
    CLEANUP(buf_done) struct buf full;
    struct slice name, url;

    buf_init(&full, BUF_DEFAULT_MAX);
    if (!slice_split(assignment, '=', &name, &url))
        return error_set(err, ERROR_CONFIGURATION,
                         "--node takes NAME=URL, as local=rocksdb:DIRECTORY, not \"%.*s\"",
                         (int)MIN(assignment.len, (size_t)80), (const char *)assignment.data);
    BUF_APPEND(&full, "node.");
    buf_append_slice(&full, name);
    return settings_set(settings, buf_slice(&full), url, &source, err);
}

static bool assignment_apply(struct settings *settings, const struct assignment *assignment,
                             struct error *err)
{
    const struct settings_source source = {SETTINGS_COMMAND_LINE, assignment->option, 0};
    struct slice value = slice_of_text(assignment->value);

    if (assignment->name)
        return settings_set(settings, slice_of_text(assignment->name), value, &source, err);
    if (strcmp(assignment->option, "--node") == 0)
        return node_assign(settings, value, err);
    return settings_assign(settings, value, err);
}

static bool settings_gather(const struct wishes *wishes, struct settings *settings,
                            struct error *err)
{
    if (wishes->config && !settings_read_file(settings, wishes->config, err))
        return false;
    if (!settings_read_environment(settings, environ, err))
        return false;
    for (size_t i = 0; i < wishes->count; i++)
        if (!assignment_apply(settings, &wishes->assignments[i], err))
            return false;
    return true;
}

/* One life of the server. A reset to a snapshot needs another after it. */
static int serve_once(const struct settings *settings, struct log *log, bool *ret_again)
{
    CLEANUP(server_free) struct server *server = NULL;
    CLEANUP(buf_done) struct buf text;
    struct error err;
    bool drained;

    *ret_again = false;
    buf_init(&text, BUF_DEFAULT_MAX);
    server_signals_block();
    if (!server_new(settings, log, &server, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    server_describe(server, isatty(STDOUT_FILENO), &text);
    fwrite(text.data, 1, text.len, stdout);
    fflush(stdout);
    drained = server_run(server);
    *ret_again = server_restarts(server);
    server_free(TAKE(server));
    log_event(log, LOG_INFO, "stopped", LOG_BOOL("drained", drained));
    return drained ? CLI_OK : CLI_FAILED;
}

static int serve(const struct settings *settings)
{
    CLEANUP(log_free)
    struct log *log = log_new(STDERR_FILENO, (enum log_level)settings->log_level,
                              (enum log_format)settings->log_format);
    bool again = true;
    int code = CLI_OK;

    log_keep(log, (size_t)settings->log_kept);
    while (again)
        code = serve_once(settings, log, &again);
    return code;
}

int cli_serve(int argc, char **argv)
{
    CLEANUP(settings_free) struct settings *settings = settings_new();
    CLEANUP(memory_free) struct wishes *wishes = MEMORY_NEW(struct wishes);
    int code = options_read(argc, argv, wishes);
    struct error err;

    if (code >= 0)
        return code;
    if (!settings_gather(wishes, settings, &err))
        return cli_fail(CLI_USAGE, "%s", err.message);
    return serve(settings);
}
