/* Finds the sub-command and hands over. */
#include "cli/cli.h"

#include "base/nearest.h"
#include "server/nodes.h"

#include <stdarg.h>
#include <unistd.h>

const struct cli_command cli_commands[] = {
    {"serve", "start the server", cli_serve, cli_serve_help},
    {"account", "list, create and drop accounts, show and rotate keys", cli_account,
     cli_account_help},
    {"stats", "what databases and containers hold and who uses them", cli_stats, cli_stats_help},
    {"certificate", "show or export the certificate authority clients have to trust",
     cli_certificate, cli_certificate_help},
    {"version", "print the version", cli_version, cli_version_help},
    {"help", "explain a command, the settings or the errors", cli_help, cli_help_help},
    {NULL},
};

const struct cli_command *cli_command_find(const char *name)
{
    for (const struct cli_command *command = cli_commands; command->name; command++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

int cli_fail(int code, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "orrery: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    return code;
}

static int option_unknown(const char *given, const struct option *options)
{
    const char *name = given + strspn(given, "-");
    struct nearest nearest = nearest_to(slice_of(name, strcspn(name, "=")));

    for (; options->name; options++)
        nearest_offer(&nearest, options->name);
    if (nearest.name)
        cli_fail(CLI_USAGE, "there is no option \"%s\": did you mean \"--%s\"?", given,
                 nearest.name);
    else
        cli_fail(CLI_USAGE, "there is no option \"%s\": --help lists them", given);
    return '?';
}

int cli_option_next(int argc, char **argv, const struct option *options)
{
    int at = optind ? optind : 1; /* the word getopt looks at next */
    int option;

    opterr = 0;
    option = getopt_long(argc, argv, "+:h", options, NULL);
    if (option == ':') {
        cli_fail(CLI_USAGE, "option \"%s\" needs a value", argv[at]);
        return '?';
    }
    if (option == '?')
        return option_unknown(argv[at], options);
    return option;
}

int cli_words_read(int argc, char **argv, const struct option *options,
                   const struct cli_words *words, bool *ret_help)
{
    int count = 0;

    *ret_help = false;
    for (;;) {
        int option = cli_option_next(argc, argv, options);

        if (option == 'h') {
            *ret_help = true;
            return count;
        }
        if (option == '?' || (option != -1 && !words->take(words->context, option, optarg)))
            return -1;
        if (option != -1)
            continue;
        if (optind == argc)
            return count;
        if (count == words->max) {
            cli_fail(CLI_USAGE, "\"%s\" is one word too many: --help shows what is taken",
                     argv[optind]);
            return -1;
        }
        words->words[count++] = argv[optind++];
    }
}

bool cli_directory_find(const char *given, struct settings *settings, const char **ret_directory,
                        struct error *err)
{
    if (given) {
        *ret_directory = given;
        return true;
    }
    return settings_read_environment(settings, environ, err) &&
           nodes_find_directory(settings, settings->arena, ret_directory, err);
}

static int command_unknown(const char *name)
{
    struct nearest nearest = nearest_to(slice_of_text(name));

    for (const struct cli_command *command = cli_commands; command->name; command++)
        nearest_offer(&nearest, command->name);
    if (nearest.name)
        return cli_fail(CLI_USAGE, "there is no command \"%s\": did you mean \"%s\"?", name,
                        nearest.name);
    return cli_fail(CLI_USAGE, "there is no command \"%s\": `orrery help` lists them", name);
}

int main(int argc, char **argv)
{
    const struct cli_command *command;

    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_overview();
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0)
        return cli_version(1, argv);
    command = cli_command_find(argv[1]);
    if (!command)
        return command_unknown(argv[1]);
    return command->run(argc - 1, argv + 1);
}
