/* `orrery advise`: which partition key fits, judged from files. */
#include "cli/advise.h"

#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>

enum { OPTION_PARTITIONS = 'p', OPTION_LOAD = 'l', OPTION_CURRENT = 'c', OPTION_LIMIT = 'b' };
enum { FILE_BYTES_MAX = 1024 * 1024 * 1024 };

void cli_advise_help(void)
{
    printf(
        "Usage: orrery advise DATABASE CONTAINER\n"
        "       orrery advise --documents FILE [--operations FILE]\n"
        "\n"
        "Proposes partition keys, the best first, with the reasons: single properties,\n"
        "hierarchical keys and synthetic ones. Of a container, by a sample of its items and what\n"
        "was asked of it lately; or by files.\n"
        "\n"
        "FILE holds a line of JSON each; - is standard input. An operation is like\n"
        "  "
        "{\"t\":\"2026-01-31T10:00:00Z\",\"op\":\"query\",\"ru\":2.8,\"where\":{\"/"
        "tenant\":\"a\"}}\n"
        "docs/advise.md says all of it.\n"
        "\n"
        "Options:\n"
        "  --documents FILE     documents as they are stored\n"
        "  --operations FILE    what is asked of them\n"
        "  --current PATH       the key they have now; up to three, with commas between\n"
        "  --partitions N       physical partitions to judge at (16)\n"
        "  --load X             X times the recorded load (1)\n"
        "  --logical-gb N       with files: what one key value may hold, in GB (20)\n");
    cli_client_help();
}

/* --- Files ----------------------------------------------------------------------------------- */

bool cli_workload_take(struct cli_workload_options *options, int option, const char *value)
{
    switch (option) {
    case CLI_WORKLOAD_OPTION:
        options->documents = value;
        return true;
    case CLI_WORKLOAD_OPTION + 1:
        options->operations = value;
        return true;
    default:
        return false;
    }
}

static bool file_read(const char *path, struct buf *out, struct error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char block[65536];
    size_t got;
    bool failed;

    if (!file)
        return error_set_errno(err, ERROR_SYSTEM, "\"%s\" cannot be opened", path);
    while ((got = fread(block, 1, sizeof block, file)) > 0 && !buf_overflowed(out))
        buf_append(out, block, got);
    failed = ferror(file);
    if (file != stdin)
        (void)fclose(file);
    if (failed)
        return error_set(err, ERROR_SYSTEM, "\"%s\" cannot be read", path);
    if (buf_overflowed(out))
        return error_set(err, ERROR_TOO_LARGE, "\"%s\" is larger than %d MB: give a sample of it",
                         path, FILE_BYTES_MAX / 1024 / 1024);
    return true;
}

bool cli_workload_read(const struct cli_workload_options *options,
                       struct advise_workload **ret_workload, struct error *err)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = advise_workload_new();
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, FILE_BYTES_MAX);
    if (!options->documents)
        return error_set(err, ERROR_BAD_REQUEST, "--documents FILE is needed");
    if (!file_read(options->documents, &text, err) ||
        !advise_workload_read_items(workload, buf_slice(&text), err))
        return false;
    buf_clear(&text);
    if (options->operations && (!file_read(options->operations, &text, err) ||
                                !advise_workload_read_operations(workload, buf_slice(&text), err)))
        return false;
    advise_workload_finish(workload);
    *ret_workload = TAKE(workload);
    return true;
}

bool cli_number_take(const char *option, const char *value, double min, double max,
                     double *ret_number)
{
    char *end;

    errno = 0;
    *ret_number = strtod(value, &end);
    if (*value && !*end && !errno && *ret_number >= min && *ret_number <= max)
        return true;
    cli_fail(CLI_USAGE, "--%s takes a number from %g to %g, not \"%s\"", option, min, max, value);
    return false;
}

/* --- The command ----------------------------------------------------------------------------- */

struct advise_command {
    struct cli_workload_options files;
    struct cli_client_options client;
    struct advise_options options;
    const char *current;
};

static bool option_take(void *context, int option, const char *value)
{
    struct advise_command *command = context;
    double number;

    switch (option) {
    case OPTION_PARTITIONS:
        if (!cli_number_take("partitions", value, 1, 1024, &number))
            return false;
        command->options.partitions = (uint32_t)number;
        return true;
    case OPTION_LOAD:
        return cli_number_take("load", value, 0.001, 1e9, &command->options.load);
    case OPTION_LIMIT:
        if (!cli_number_take("logical-gb", value, 1e-6, 1e6, &number))
            return false;
        command->options.logical_bytes_max = (uint64_t)(number * 1e9);
        return true;
    case OPTION_CURRENT:
        command->current = value;
        return true;
    default:
        return cli_workload_take(&command->files, option, value) ||
               cli_client_take(&command->client, option, value);
    }
}

static bool run_files(struct advise_command *command, struct error *err)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf out;
    struct advise_report report;
    struct advise_key current;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!cli_workload_read(&command->files, &workload, err))
        return false;
    if (command->current) {
        if (!advise_key_parse(workload, slice_of_text(command->current), &current, err))
            return false;
        command->options.current = &current;
        command->options.current_partitions = command->options.partitions;
    }
    report = advise_report_make(workload, &command->options, arena);
    if (command->client.json) {
        advise_report_json(workload, &report, &out);
        buf_append_byte(&out, '\n');
    } else {
        advise_report_text(workload, &report, &out);
    }
    (void)fwrite(out.data, 1, out.len, stdout);
    return true;
}

/* The server has the items and the record; it is asked for the report. */
static bool run_container(struct advise_command *command, const char *const *names,
                          struct error *err)
{
    CLEANUP(cli_client_free) struct cli_client *client = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_answer answer;
    struct slice path = arena_printf(arena, "containers/%s/%s/advice", names[0], names[1]);
    struct slice query = arena_printf(
        arena, "format=%s&partitions=%u&load=%.9g", command->client.json ? "json" : "text",
        command->options.partitions ? command->options.partitions : 16,
        command->options.load > 0 ? command->options.load : 1);

    if (!cli_client_new(&command->client, &client, err) ||
        !cli_client_ask(client, "GET", path, query, SLICE_NONE, arena, &answer, err))
        return false;
    if (command->client.json)
        printf("%.*s\n", SLICE_ARG(answer.text));
    else
        printf("%.*s", SLICE_ARG(cli_answer_text(answer.document, "text")));
    return true;
}

int cli_advise(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        CLI_WORKLOAD_OPTION_ROWS,
        {"current", required_argument, NULL, OPTION_CURRENT},
        {"partitions", required_argument, NULL, OPTION_PARTITIONS},
        {"load", required_argument, NULL, OPTION_LOAD},
        {"logical-gb", required_argument, NULL, OPTION_LIMIT},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct advise_command command = {0};
    const char *words[2];
    struct cli_words reader = {words, 2, option_take, &command};
    struct error err;
    bool help;
    int count = cli_words_read(argc, argv, options, &reader, &help);

    if (count < 0)
        return CLI_USAGE;
    if (help) {
        cli_advise_help();
        return CLI_OK;
    }
    if (count != 2 && !(count == 0 && command.files.documents))
        return cli_fail(CLI_USAGE, "advise needs a database and a container, or --documents FILE: "
                                   "see \"orrery advise --help\"");
    if (!(count ? run_container(&command, words, &err) : run_files(&command, &err)))
        return cli_fail(CLI_FAILED, "%s", err.message);
    return CLI_OK;
}
