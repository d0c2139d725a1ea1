#include "cli/cli.h"

void cli_version_help(void)
{
    printf("Usage: orrery version\n"
           "\n"
           "Prints the version of this program.\n");
}

int cli_version(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL}};
    int option = cli_option_next(argc, argv, options);

    if (option == 'h') {
        cli_version_help();
        return CLI_OK;
    }
    if (option != -1)
        return CLI_USAGE;
    if (optind < argc)
        return cli_fail(CLI_USAGE, "version takes no arguments");
    printf("orrery %s\n", ORRERY_VERSION);
    return CLI_OK;
}
