/* `orrery help TOPIC`. The pages docs/settings.md, docs/errors.md and docs/compatibility.md are its
 * output with
 * --markdown, so the manual cannot say anything the program does not. */
#include "cli/cli.h"

#include "cli/page.h"
#include "front/gremlin/command/ledger.h"
#include "front/mongo/command/ledger.h"
#include "front/rest/ledger.h"
#include "front/table/ledger.h"
#include "server/settings.h"

void cli_overview(void)
{
    printf("Orrery: a partitioned, multi-model database server\n"
           "\n"
           "Usage: orrery COMMAND [OPTIONS]\n"
           "\n"
           "Commands:\n");
    for (const struct cli_command *command = cli_commands; command->name; command++)
        printf("  %-11s %s\n", command->name, command->summary);
    printf("\n"
           "`orrery COMMAND --help` explains one of them. The shortest start:\n"
           "\n"
           "  orrery serve --dev\n");
}

void cli_help_help(void)
{
    printf("Usage: orrery help [TOPIC] [--markdown]\n"
           "       orrery help man [COMMAND]\n"
           "       orrery help completion SHELL\n"
           "\n"
           "Topics:\n"
           "  COMMAND    as COMMAND --help\n"
           "  settings   every setting with its default and meaning\n"
           "  errors     every error with its face in each API\n"
           "  api        every operation and header of the NoSQL API\n"
           "  tables     every operation and error code of the Table API\n"
           "  mongo      every command and error code of the MongoDB API\n"
           "  gremlin    every request, format, step and status of the Gremlin API\n"
           "  man        a manual page, of orrery or of the COMMAND behind it\n"
           "  completion for the shell behind it: bash, zsh or fish\n"
           "\n"
           "Options:\n"
           "  --markdown  settings, errors, api, tables, mongo or gremlin as a page of\n"
           "              the manual\n"
           "  -h, --help  this text\n");
}

static void settings_text(struct buf *out)
{
    BUF_APPEND(out, "Settings, as `name = default  (what it takes)`. Each is given as\n"
                    "\n"
                    "  name = value under [section] in a file read with --config FILE,\n"
                    "  ORRERY_SECTION_NAME=value in the environment, or\n"
                    "  --set section.name=value on the command line;\n"
                    "\n"
                    "a later one of these wins over an earlier one.\n"
                    "\n");
    settings_describe(out);
}

static void settings_page(struct buf *out)
{
    BUF_APPEND(
        out,
        "# Settings\n"
        "\n"
        "Made by `orrery help settings --markdown` from `src/server/settings.def`; a test keeps it "
        "true.\n"
        "\n"
        "A setting `section.name` is given in a configuration file (`orrery serve --config "
        "FILE`),\n"
        "\n"
        "<!-- not run: a configuration file -->\n"
        "```ini\n"
        "[section]\n"
        "name = value\n"
        "```\n"
        "\n"
        "as the environment variable `ORRERY_SECTION_NAME`, or as `--set section.name=value` on "
        "the\n"
        "command line. The command line wins over the environment, the environment over the file, "
        "the\n"
        "file over the default. A name that does not exist and a value out of range are errors.\n"
        "Sizes take the suffixes K, M and G (powers of 1024), durations need one of ms, s, m and "
        "h.\n"
        "\n"
        "Storage nodes are given as `node.NAME = URL` (`[node]` in a file, `ORRERY_NODE_NAME`,\n"
        "`--node NAME=URL`) with the URL `rocksdb:DIRECTORY`, `memory:` or "
        "`postgresql://HOST/DATABASE`, once for\n"
        "each name of small letters, digits and hyphens. Without any, the node `local` is kept in\n"
        "`server.directory`.\n");
    settings_describe_markdown(out);
}

static void errors_text(struct buf *out)
{
    for (int code = ERROR_NONE + 1; code < ERROR_CODE_COUNT; code++) {
        const struct error_face *face = error_face((enum error_code)code);

        buf_printf(out, "  %s  REST %u", face->name, face->rest_status);
        if (face->rest_substatus)
            buf_printf(out, "/%u", face->rest_substatus);
        buf_printf(out, ", Mongo %d %s, Gremlin %u, Table %s\n      %s\n", face->mongo_code,
                   face->mongo_name, face->gremlin_status, face->table_code, face->meaning);
    }
}

static void errors_page(struct buf *out)
{
    BUF_APPEND(
        out, "# Errors\n"
             "\n"
             "Made by `orrery help errors --markdown` from `src/base/errors.def`; a test keeps it "
             "true. A status\n"
             "with a slash carries a substatus.\n"
             "\n"
             "| error | REST | MongoDB | Gremlin | Table | meaning |\n"
             "|---|---|---|---|---|---|\n");
    for (int code = ERROR_NONE + 1; code < ERROR_CODE_COUNT; code++) {
        const struct error_face *face = error_face((enum error_code)code);

        buf_printf(out, "| `%s` | %u", face->name, face->rest_status);
        if (face->rest_substatus)
            buf_printf(out, "/%u", face->rest_substatus);
        buf_printf(out, " | %d %s | %u | %s | %s |\n", face->mongo_code, face->mongo_name,
                   face->gremlin_status, face->table_code, face->meaning);
    }
}

struct page {
    const char *topic;
    void (*text)(struct buf *out);
    void (*markdown)(struct buf *out);
};

static const struct page pages[] = {
    {"settings", settings_text, settings_page},
    {"errors", errors_text, errors_page},
    {"api", rest_ledger_print, rest_ledger_print},
    {"tables", table_ledger_print, table_ledger_print},
    {"mongo", mongo_ledger_print, mongo_ledger_print},
    {"gremlin", gremlin_ledger_print, gremlin_ledger_print},
};

static int topic_print(const char *topic, bool markdown)
{
    const struct cli_command *command = cli_command_find(topic);

    for (size_t i = 0; i < ARRAY_LEN(pages); i++)
        if (strcmp(topic, pages[i].topic) == 0) {
            CLEANUP(buf_done) struct buf out;

            buf_init(&out, BUF_DEFAULT_MAX);
            (markdown ? pages[i].markdown : pages[i].text)(&out);
            fwrite(out.data, 1, out.len, stdout);
            return CLI_OK;
        }
    if (!command)
        return cli_fail(CLI_USAGE,
                        "there is no help on \"%s\": `orrery help --help` lists the topics", topic);
    if (markdown)
        return cli_fail(CLI_USAGE,
                        "--markdown is for the topics settings, errors, api, tables, mongo and "
                        "gremlin");
    command->help();
    return CLI_OK;
}

/* Topics that a word follows. */
static int page_print(const char *topic, const char *word)
{
    CLEANUP(buf_done) struct buf out;
    const struct cli_command *command = word ? cli_command_find(word) : NULL;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (strcmp(topic, "man") == 0 && (command || !word))
        cli_man_print(command, &out);
    else if (strcmp(topic, "man") == 0)
        return cli_fail(CLI_USAGE, "there is no command \"%s\": `orrery help` lists them", word);
    else if (!word || !cli_completion_print(word, &out))
        return cli_fail(CLI_USAGE, "completion is for bash, zsh or fish");
    fwrite(out.data, 1, out.len, stdout);
    return CLI_OK;
}

static bool is_followed(const char *topic)
{
    return strcmp(topic, "man") == 0 || strcmp(topic, "completion") == 0;
}

int cli_help(int argc, char **argv)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'}, {"markdown", no_argument, NULL, 'm'}, {NULL}};
    const char *topic = NULL, *word = NULL;
    bool markdown = false;

    /* options may stand before and after the topic */
    for (;;) {
        int option = cli_option_next(argc, argv, options);

        if (option == '?')
            return CLI_USAGE;
        if (option == 'h') {
            cli_help_help();
            return CLI_OK;
        }
        if (option == 'm')
            markdown = true;
        else if (optind == argc)
            break;
        else if (topic && !word && is_followed(topic))
            word = argv[optind++];
        else if (topic)
            return cli_fail(CLI_USAGE, "help takes one topic");
        else
            topic = argv[optind++];
    }
    if (topic && is_followed(topic))
        return page_print(topic, word);
    if (topic)
        return topic_print(topic, markdown);
    cli_overview();
    return CLI_OK;
}
