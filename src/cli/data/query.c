/* `orrery query DATABASE CONTAINER TEXT`: one query, as the shell runs it. */
#include "cli/cli.h"

#include "base/memory.h"
#include "cli/client.h"

enum { WORDS = 3 };

void cli_query_help(void)
{
    printf(
        "Usage: orrery query DATABASE CONTAINER TEXT [OPTIONS]\n"
        "\n"
        "Runs one query and shows its rows, what it cost and how long it took: the same as\n"
        "`orrery shell --database DATABASE --container CONTAINER --command TEXT`, whose options\n"
        "it takes behind the text.\n"
        "\n"
        "Options:\n"
        "  --format FORMAT      table, json or lines (one JSON value a line); without it table\n"
        "                       on a terminal, else lines\n"
        "  --explain            show how the server ran the query, and advice\n"
        "  --quiet              say nothing about rows\n");
    cli_client_help();
}

int cli_query(int argc, char **argv)
{
    static char shell[] = "shell", database[] = "--database", container[] = "--container",
                command[] = "--command";
    CLEANUP(memory_free) char **words = NULL;
    int count = 0;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            cli_query_help();
            return CLI_OK;
        }
    for (int i = 1; i <= WORDS; i++)
        if (i >= argc || argv[i][0] == '-' || !argv[i][0])
            return cli_fail(CLI_USAGE, "it is used as `orrery query DATABASE CONTAINER TEXT`, with "
                                       "options behind the text");
    words = memory_alloc(memory_array_size((size_t)argc + WORDS + 1, sizeof *words));
    words[count++] = shell;
    words[count++] = database;
    words[count++] = argv[1];
    words[count++] = container;
    words[count++] = argv[2];
    words[count++] = command;
    words[count++] = argv[3];
    for (int i = WORDS + 1; i < argc; i++)
        words[count++] = argv[i];
    words[count] = NULL;
    return cli_shell(count, words);
}
