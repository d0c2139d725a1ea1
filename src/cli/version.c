#include "cli/cli.h"

#include "cli/client.h"

void cli_version_help(void)
{
    printf("Usage: orrery version [--format table|json]\n"
           "\n"
           "Prints the version of this program.\n");
}

int cli_version(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"format", required_argument, NULL, 'f'},
                                            {NULL}};
    bool json = false;
    int option;

    while ((option = cli_option_next(argc, argv, options)) != -1) {
        if (option == 'h') {
            cli_version_help();
            return CLI_OK;
        }
        if (option == '?' || (option == 'f' && !cli_format_take(optarg, &json)))
            return CLI_USAGE;
        json |= option == 'j';
    }
    if (optind < argc)
        return cli_fail(CLI_USAGE, "version takes no arguments");
    printf(json ? "{\"version\":\"%s\"}\n" : "orrery %s\n", ORRERY_VERSION);
    return CLI_OK;
}
