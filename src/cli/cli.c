/* What the sub-commands share: messages, options, where a server keeps its files. */
#include "cli/cli.h"

#include "base/nearest.h"
#include "cli/local.h"
#include "server/nodes.h"

#include <stdarg.h>
#include <unistd.h>

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
    struct cli_local local;

    if (given) {
        *ret_directory = given;
        return true;
    }
    if (!cli_local_find(NULL, NULL, settings, &local, err))
        return false;
    /* none is known: so that the reason is told */
    if (!local.directory[0])
        return nodes_find_directory(settings, settings->arena, ret_directory, err);
    *ret_directory = local.directory;
    return true;
}
