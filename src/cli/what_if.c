/* `orrery what-if`: recorded operations run again under another key, partition count or throughput.
 */
#include "advise/what_if_plot.h"
#include "cli/advise.h"
#include "cli/cli.h"
#include "document/bson.h"

#include <stdlib.h>

enum {
    OPTION_KEY = 'k',
    OPTION_RANDOM = 'r',
    OPTION_COMPUTED = 'm',
    OPTION_PARTITIONS = 'p',
    OPTION_THROUGHPUT = 't',
    OPTION_STRATEGY = 's',
    OPTION_RETRIES = 'y',
    OPTION_SPEED = 'x',
    OPTION_BURST = 'b',
    OPTION_CURRENT = 'c',
    OPTION_CURRENT_PARTITIONS = 'n',
    OPTION_CURRENT_THROUGHPUT = 'u',
    OPTION_OUT = 'o',
};

void cli_what_if_help(void)
{
    printf(
        "Usage: orrery what-if DATABASE CONTAINER --key PATH [--throughput RU]\n"
        "       orrery what-if --documents FILE --operations FILE --key PATH [--throughput RU]\n"
        "\n"
        "Runs recorded operations again, in simulated time, as if the container had another\n"
        "partition key, number of physical partitions or throughput, and says how many would be\n"
        "refused (429), what it would cost and how long clients would wait.\n"
        "\n"
        "Options:\n"
        "  --documents FILE             instead of a container: documents as they are stored\n"
        "  --operations FILE            what is asked of them (docs/advise.md)\n"
        "  --key PATH                   the key to try; up to three, with commas between\n"
        "  --random-suffix N            with a random number 1..N behind it\n"
        "  --computed-suffix PATH:N     with a number 1..N of the hash of another property\n"
        "  --partitions N               physical partitions (as the container has; of files 4)\n"
        "  --throughput RU              per second, of the container (as it has; of files 400 for\n"
        "                               each partition)\n"
        "  --strategy hash|range        how keys are placed (hash)\n"
        "  --retries N                  times a refused client comes again (as the operations\n"
        "                               show it; 9 where they do not)\n"
        "  --speed X                    the same operations in an Xth of the time: X times the\n"
        "                               load (1)\n"
        "  --burst SECONDS              with files: of throughput that can be saved (0)\n"
        "  --current PATH               with files: the key it has now, to be shown beside\n"
        "  --current-partitions N       and its partitions (as --partitions)\n"
        "  --current-throughput RU      and its throughput (as --throughput)\n"
        "  --out FILE                   a plot, as SVG\n");
    cli_client_help();
}

struct what_if_command {
    struct cli_workload_options files;
    struct cli_client_options client;
    const char *key, *computed, *current, *out;
    uint32_t random;
    double partitions, throughput, current_partitions, current_throughput, retries, speed, burst;
    bool range, retries_given;
};

static bool strategy_take(struct what_if_command *command, const char *value)
{
    command->range = strcmp(value, "range") == 0;
    if (command->range || strcmp(value, "hash") == 0)
        return true;
    cli_fail(CLI_USAGE, "--strategy is hash or range, not \"%s\"", value);
    return false;
}

static bool option_take(void *context, int option, const char *value)
{
    struct what_if_command *command = context;
    double number;

    switch (option) {
    case OPTION_KEY:
        command->key = value;
        return true;
    case OPTION_RANDOM:
        if (!cli_number_take("random-suffix", value, 2, 100000, &number))
            return false;
        command->random = (uint32_t)number;
        return true;
    case OPTION_COMPUTED:
        command->computed = value;
        return true;
    case OPTION_PARTITIONS:
        return cli_number_take("partitions", value, 1, 1024, &command->partitions);
    case OPTION_THROUGHPUT:
        return cli_number_take("throughput", value, 1, 1e9, &command->throughput);
    case OPTION_STRATEGY:
        return strategy_take(command, value);
    case OPTION_RETRIES:
        command->retries_given = true;
        return cli_number_take("retries", value, 0, 100, &command->retries);
    case OPTION_SPEED:
        return cli_number_take("speed", value, 1e-6, 1e9, &command->speed);
    case OPTION_BURST:
        return cli_number_take("burst", value, 0, 86400, &command->burst);
    case OPTION_CURRENT:
        command->current = value;
        return true;
    case OPTION_CURRENT_PARTITIONS:
        return cli_number_take("current-partitions", value, 1, 1024, &command->current_partitions);
    case OPTION_CURRENT_THROUGHPUT:
        return cli_number_take("current-throughput", value, 1, 1e9, &command->current_throughput);
    case OPTION_OUT:
        command->out = value;
        return true;
    default:
        return cli_workload_take(&command->files, option, value) ||
               cli_client_take(&command->client, option, value);
    }
}

/* PATH:N */
static bool computed_parse(const struct advise_workload *workload, const char *text,
                           struct advise_key *key, struct error *err)
{
    const char *colon = strrchr(text, ':');
    uint64_t count;
    int path;

    if (!colon || !slice_to_uint64(slice_of_text(colon + 1), &count) || count < 2 || count > 100000)
        return error_set(err, ERROR_BAD_REQUEST,
                         "--computed-suffix is PATH:N with N from 2 to 100000, not \"%s\"", text);
    path = advise_workload_path(workload, slice_of(text, (size_t)(colon - text)));
    if (path < 0)
        return error_set(err, ERROR_BAD_REQUEST, "no document or operation has \"%.*s\"",
                         (int)MIN(colon - text, (ptrdiff_t)100), text);
    key->kind = ADVISE_COMPUTED_SUFFIX;
    key->hashed = (uint8_t)path;
    key->suffixes = (uint32_t)count;
    return true;
}

static bool key_make(const struct what_if_command *command, const struct advise_workload *workload,
                     struct advise_key *ret_key, struct error *err)
{
    if (!advise_key_parse(workload, slice_of_text(command->key), ret_key, err))
        return false;
    if ((command->random || command->computed) && ret_key->path_count > 1)
        return error_set(err, ERROR_BAD_REQUEST, "a suffix goes behind one property");
    if (command->computed)
        return computed_parse(workload, command->computed, ret_key, err);
    if (command->random) {
        ret_key->kind = ADVISE_RANDOM_SUFFIX;
        ret_key->suffixes = command->random;
    }
    return true;
}

/* --- What is printed ------------------------------------------------------------------------- */

/* What is printed of one run. */
struct shown {
    const char *what;
    struct slice name;
    double partitions, throughput, share, attempts, given_up, ru, busiest;
    double latency, latency_p99, wait, wait_p99;
};

static void shown_print(const struct shown *shown)
{
    printf("%s  %.*s, ", shown->what, SLICE_ARG(shown->name));
    if (shown->throughput > 0)
        printf("%.0f RU/s", shown->throughput);
    else
        printf("no limit");
    printf(" over %.0f partition%s\n"
           "    429s     %.2f %% of %.0f attempt%s, %.0f request%s given up\n"
           "    RU       %.0f, of which the busiest partition has %.1f %%\n",
           shown->partitions, PLURAL(shown->partitions), shown->share * 100, shown->attempts,
           PLURAL(shown->attempts), shown->given_up, PLURAL(shown->given_up), shown->ru,
           shown->busiest * 100);
    if (shown->latency > shown->wait) /* what operations took is known */
        printf("    latency  %.1f ms on average, %.1f ms at the 99th percentile; of that\n",
               shown->latency, shown->latency_p99);
    printf("    waiting  %.1f ms on average, %.0f ms at the 99th percentile\n", shown->wait,
           shown->wait_p99);
}

static void result_print(const char *what, struct slice name, const struct what_if_result *result)
{
    shown_print(&(struct shown){.what = what,
                                .name = name,
                                .partitions = result->partitions,
                                .throughput = (double)result->ru_per_second,
                                .share = what_if_throttled_share(result),
                                .attempts = (double)result->attempts,
                                .given_up = (double)result->given_up,
                                .ru = result->ru,
                                .busiest = result->busiest,
                                .latency = result->latency_ms_mean,
                                .latency_p99 = result->latency_ms_p99,
                                .wait = result->wait_ms_mean,
                                .wait_p99 = result->wait_ms_p99});
}

static bool plot_write(const char *path, struct slice svg, struct error *err)
{
    FILE *file = fopen(path, "we");
    bool fine;

    if (!file)
        return error_set_errno(err, ERROR_SYSTEM, "\"%s\" cannot be written", path);
    fine = fwrite(svg.data, 1, svg.len, file) == svg.len;
    if (fclose(file) != 0 || !fine)
        return error_set(err, ERROR_SYSTEM, "\"%s\" cannot be written", path);
    printf("\nThe plot is in %s.\n", path);
    return true;
}

static struct slice name_of(const struct advise_workload *workload, const struct advise_key *key,
                            struct arena *arena)
{
    CLEANUP(buf_done) struct buf name;

    buf_init(&name, BUF_DEFAULT_MAX);
    advise_key_describe(workload, key, &name);
    return arena_copy(arena, buf_slice(&name));
}

static void json_print(const struct what_if_panel *panels, size_t count)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (count > 1) {
        BUF_APPEND(&out, "{\"today\":");
        what_if_json(panels[0].result, &out);
        BUF_APPEND(&out, ",\"whatIf\":");
    } else {
        BUF_APPEND(&out, "{\"whatIf\":");
    }
    what_if_json(panels[count - 1].result, &out);
    BUF_APPEND(&out, "}\n");
    (void)fwrite(out.data, 1, out.len, stdout);
}

static bool results_show(const struct what_if_command *command, const struct what_if_panel *panels,
                         size_t count, struct error *err)
{
    CLEANUP(buf_done) struct buf svg;

    buf_init(&svg, BUF_DEFAULT_MAX);
    if (command->client.json)
        json_print(panels, count);
    for (size_t i = 0; i < count && !command->client.json; i++)
        result_print(i + 1 < count ? "today  " : "what if", panels[i].title, panels[i].result);
    if (!command->out)
        return true;
    what_if_plot(panels, count, &svg);
    return plot_write(command->out, buf_slice(&svg), err);
}

static bool run_files(struct what_if_command *command, struct error *err)
{
    CLEANUP(advise_workload_free) struct advise_workload *workload = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct advise_key key, current;
    struct what_if_result results[2];
    struct what_if_panel panels[2];
    struct what_if_plan plan = {.partitions = (uint32_t)command->partitions,
                                .ru_per_second = (uint64_t)command->throughput,
                                .retries_max = (uint32_t)command->retries,
                                .retries_recorded = !command->retries_given,
                                .burst_seconds = (uint32_t)command->burst,
                                .range = command->range,
                                .speed = command->speed};
    size_t count = 0;

    if (!cli_workload_read(&command->files, &workload, err) ||
        !key_make(command, workload, &key, err))
        return false;
    if (command->current) {
        struct what_if_plan today = plan;

        if (!advise_key_parse(workload, slice_of_text(command->current), &current, err))
            return false;
        today.key = plan.current = today.current = &current;
        today.range = false;
        if (command->current_partitions > 0)
            today.partitions = (uint32_t)command->current_partitions;
        if (command->current_throughput > 0)
            today.ru_per_second = (uint64_t)command->current_throughput;
        plan.current_partitions = today.current_partitions = today.partitions;
        if (!what_if_run(workload, &today, arena, &results[0], err))
            return false;
        panels[count++] =
            (struct what_if_panel){true, name_of(workload, &current, arena), &results[0]};
    }
    plan.key = &key;
    if (!what_if_run(workload, &plan, arena, &results[1], err))
        return false;
    panels[count++] = (struct what_if_panel){false, name_of(workload, &key, arena), &results[1]};
    return results_show(command, panels, count, err);
}

/* --- Of a container -------------------------------------------------------------------------- */

static void answer_print(const char *what, struct slice name, struct slice result)
{
    shown_print(&(struct shown){.what = what,
                                .name = name,
                                .partitions = cli_answer_number(result, "partitions"),
                                .throughput = cli_answer_number(result, "ruPerSecond"),
                                .share = cli_answer_number(result, "throttledShare"),
                                .attempts = cli_answer_number(result, "attempts"),
                                .given_up = cli_answer_number(result, "givenUp"),
                                .ru = cli_answer_number(result, "ru"),
                                .busiest = cli_answer_number(result, "busiestShare"),
                                .latency = cli_answer_number(result, "latencyMsMean"),
                                .latency_p99 = cli_answer_number(result, "latencyMsP99"),
                                .wait = cli_answer_number(result, "waitMsMean"),
                                .wait_p99 = cli_answer_number(result, "waitMsP99")});
}

static void number_append(struct buf *query, const char *name, double number)
{
    if (number > 0)
        buf_printf(query, "&%s=%.0f", name, number);
}

static bool run_container(struct what_if_command *command, const char *const *names,
                          struct error *err)
{
    CLEANUP(cli_client_free) struct cli_client *client = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf query;
    struct cli_answer answer;
    struct slice today;

    buf_init(&query, BUF_DEFAULT_MAX);
    buf_printf(&query, "key=%s&speed=%.9g", command->key, command->speed);
    if (command->retries_given)
        buf_printf(&query, "&retries=%.0f", command->retries);
    number_append(&query, "partitions", command->partitions);
    number_append(&query, "throughput", command->throughput);
    number_append(&query, "random", command->random);
    if (command->computed)
        buf_printf(&query, "&computed=%s", command->computed);
    if (command->range)
        BUF_APPEND(&query, "&strategy=range");
    if (command->out)
        BUF_APPEND(&query, "&plot=true");
    if (!cli_client_new(&command->client, &client, err) ||
        !cli_client_ask(client, "GET",
                        arena_printf(arena, "containers/%s/%s/what-if", names[0], names[1]),
                        buf_slice(&query), SLICE_NONE, arena, &answer, err))
        return false;
    today = cli_answer_inside(answer.document, "today");
    if (command->client.json) {
        printf("%.*s\n", SLICE_ARG(answer.text));
    } else {
        if (document_count(today))
            answer_print("today  ", cli_answer_text(answer.document, "currentKey"), today);
        answer_print("what if", cli_answer_text(answer.document, "key"),
                     cli_answer_inside(answer.document, "whatIf"));
    }
    return !command->out || plot_write(command->out, cli_answer_text(answer.document, "svg"), err);
}

int cli_what_if(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        CLI_WORKLOAD_OPTION_ROWS,
        {"key", required_argument, NULL, OPTION_KEY},
        {"random-suffix", required_argument, NULL, OPTION_RANDOM},
        {"computed-suffix", required_argument, NULL, OPTION_COMPUTED},
        {"partitions", required_argument, NULL, OPTION_PARTITIONS},
        {"throughput", required_argument, NULL, OPTION_THROUGHPUT},
        {"strategy", required_argument, NULL, OPTION_STRATEGY},
        {"retries", required_argument, NULL, OPTION_RETRIES},
        {"speed", required_argument, NULL, OPTION_SPEED},
        {"burst", required_argument, NULL, OPTION_BURST},
        {"current", required_argument, NULL, OPTION_CURRENT},
        {"current-partitions", required_argument, NULL, OPTION_CURRENT_PARTITIONS},
        {"current-throughput", required_argument, NULL, OPTION_CURRENT_THROUGHPUT},
        {"out", required_argument, NULL, OPTION_OUT},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct what_if_command command = {.speed = 1};
    const char *words[2];
    struct cli_words reader = {words, 2, option_take, &command};
    struct error err;
    bool help;
    int count = cli_words_read(argc, argv, options, &reader, &help);

    if (count < 0)
        return CLI_USAGE;
    if (help) {
        cli_what_if_help();
        return CLI_OK;
    }
    if (!command.key ||
        (count != 2 && !(count == 0 && command.files.documents && command.files.operations)))
        return cli_fail(CLI_USAGE, "what-if needs --key, and a database and a container or "
                                   "--documents and --operations: see \"orrery what-if --help\"");
    if (count == 0 && !(command.partitions > 0))
        command.partitions = 4;
    if (count == 0 && !(command.throughput > 0))
        command.throughput = 400 * command.partitions;
    if (!(count ? run_container(&command, words, &err) : run_files(&command, &err)))
        return cli_fail(CLI_FAILED, "%s", err.message);
    return CLI_OK;
}
