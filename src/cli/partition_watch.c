/* Asks again and again, and shows what has changed. Ctrl-C is a descriptor (signalfd), which the
 * pause between two questions and a question itself both look at. */
#include "cli/cli.h"
#include "cli/partition.h"
#include "cli/table.h"
#include "document/bson.h"
#include "document/json.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { POLL_MS = 200, BAR_WIDTH = 24 };

struct watch {
    struct cli_asking *command;
    struct slice id;
    struct arena *arena; /* of one question */
    int interrupt;       /* can be read after Ctrl-C */
    bool terminal;
    char phase[32]; /* that was shown last */
};

/* --- Showing --------------------------------------------------------------------------------- */

/* Copying counts index entries too, so it may come to more than the items have. */
static double part_done(struct slice migration, struct slice phase)
{
    double total = cli_answer_number(migration, "bytesTotal");
    double part = total > 0 ? cli_answer_number(migration, "bytes") / total : 0;

    if (slice_equal(phase, SLICE("planned")))
        return 0;
    return slice_equal(phase, SLICE("copying")) ? MIN(part, 0.99) : 1;
}

static void bar_show(struct watch *watch, struct slice migration, struct slice phase)
{
    char bar[BAR_WIDTH + 1];
    size_t full = (size_t)(part_done(migration, phase) * BAR_WIDTH);
    struct document_value paused;

    for (size_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < full ? '#' : '.';
    bar[BAR_WIDTH] = 0;
    fprintf(stderr, "\r\033[K%.*s [%s] %.*s, %.*s copied, %.0f s%s",
            SLICE_ARG(cli_answer_text(migration, "kind")), bar, SLICE_ARG(phase),
            SLICE_ARG(cli_table_bytes_text(cli_answer_number(migration, "bytes"), watch->arena)),
            cli_answer_number(migration, "elapsedMs") / 1000,
            document_find(migration, SLICE("paused"), &paused) ? ", paused" : "");
    if (cli_answer_number(migration, "conflicts") > 0)
        fprintf(stderr, ", waits for %.*s",
                SLICE_ARG(cli_table_count(cli_answer_number(migration, "conflicts"), "conflict",
                                          watch->arena)));
    fflush(stderr);
}

static void line_show(struct watch *watch, struct slice migration, struct slice phase)
{
    if (cli_answer_number(migration, "conflicts") > 0 && slice_equal(phase, SLICE("catching up")))
        phase = SLICE("waits for conflicts");
    if (slice_equal(phase, slice_of_text(watch->phase)))
        return;
    (void)snprintf(watch->phase, sizeof watch->phase, "%.*s", SLICE_ARG(phase));
    printf("%.*s: %.*s\n", SLICE_ARG(cli_answer_text(migration, "kind")), SLICE_ARG(phase));
    fflush(stdout);
}

static void bar_clear(const struct watch *watch)
{
    if (watch->terminal && !watch->command->options.json)
        fprintf(stderr, "\r\033[K");
}

/* --- How it ended ---------------------------------------------------------------------------- */

static int outcome_print(struct watch *watch, struct slice outcome)
{
    bool cancelled = slice_equal(cli_answer_text(outcome, "outcome"), SLICE("cancelled"));

    if (watch->command->options.json) {
        CLEANUP(buf_done) struct buf text;

        buf_init(&text, BUF_DEFAULT_MAX);
        document_json_write(outcome, &text);
        printf("%.*s\n", SLICE_ARG(buf_slice(&text)));
        return cancelled ? CLI_FAILED : CLI_OK;
    }
    printf("%.*s %s after %.1f s: %.*s copied, writers waited %.0f ms\n",
           SLICE_ARG(cli_answer_text(outcome, "kind")), cancelled ? "cancelled" : "done",
           cli_answer_number(outcome, "elapsedMs") / 1000,
           SLICE_ARG(cli_table_bytes_text(cli_answer_number(outcome, "bytes"), watch->arena)),
           cli_answer_number(outcome, "pauseMs"));
    return cancelled ? CLI_FAILED : CLI_OK;
}

static int interrupted(struct watch *watch)
{
    const char *const *words = watch->command->words;

    bar_clear(watch);
    fprintf(stderr,
            "orrery: it goes on without this command: `orrery partition watch %s %s` shows how, "
            "`orrery partition cancel %s %s` takes it back\n",
            words[1], words[2], words[1], words[2]);
    return CLI_FAILED;
}

/* --- Waiting --------------------------------------------------------------------------------- */

/* False: Ctrl-C. */
static bool rest(const struct watch *watch)
{
    struct pollfd descriptor = {.fd = watch->interrupt, .events = POLLIN};

    return poll(&descriptor, 1, POLL_MS) == 0;
}

/* The object of our id in an array; data NULL: it is not there. */
static struct slice ours(const struct watch *watch, struct slice array)
{
    struct document_iter iter;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT &&
            slice_equal(cli_answer_text(iter.value.document, "id"), watch->id))
            return iter.value.document;
    return SLICE_NONE;
}

static void show(struct watch *watch, struct slice migration)
{
    struct slice phase = cli_answer_text(migration, "phase");

    if (watch->command->options.json)
        return; /* what it came to is printed, and nothing else */
    if (watch->terminal)
        bar_show(watch, migration, phase);
    else
        line_show(watch, migration, phase);
}

static int ended(struct watch *watch, struct slice outcome)
{
    bar_clear(watch);
    if (outcome.data)
        return outcome_print(watch, outcome);
    return cli_fail(CLI_FAILED, "the migration is over, and the server does not remember how: "
                                "`orrery partition list` shows what there is");
}

static int follow(struct watch *watch)
{
    for (;;) {
        struct cli_answer answer;
        struct slice migration;
        struct error err;

        if (!cli_client_ask(watch->command->client, "GET", SLICE("migrations"), SLICE_NONE,
                            SLICE_NONE, watch->arena, &answer, &err)) {
            if (err.code == ERROR_CANCELLED)
                return interrupted(watch);
            bar_clear(watch);
            return cli_fail(CLI_FAILED, "%s", err.message);
        }
        migration = ours(watch, cli_answer_inside(answer.document, "migrations"));
        if (!migration.data)
            return ended(watch, ours(watch, cli_answer_inside(answer.document, "recent")));
        show(watch, migration);
        if (!rest(watch))
            return interrupted(watch);
        arena_reset(watch->arena);
    }
}

int cli_partition_watch(struct cli_asking *command, struct slice id)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct watch watch = {.command = command,
                          .id = id,
                          .arena = arena,
                          .terminal = isatty(STDERR_FILENO) && isatty(STDOUT_FILENO)};
    sigset_t set;
    int code;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    watch.interrupt = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    cli_client_cancel_by(command->client, watch.interrupt);
    code = follow(&watch);
    cli_client_cancel_by(command->client, -1);
    if (watch.interrupt >= 0)
        close(watch.interrupt);
    return code;
}
