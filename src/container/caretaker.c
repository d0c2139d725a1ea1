#include "container/caretaker.h"

#include "base/thread.h"
#include "container/container_space.h"
#include "container/expiry.h"
#include "container/feed_read.h"

enum { PAUSE_DEFAULT_MS = 1000, SLICE_DEFAULT = 500, SLICES_PER_VISIT = 20 };

struct caretaker {
    struct catalogue *catalogue;
    const struct clock *clock;
    struct log *log;
    int64_t pause_ms;
    size_t slice;
    bool by_hand;

    struct mutex lock;
    struct condition wake;
    bool stopping; /* under lock */
    struct thread thread;
};

static bool must_stop(struct caretaker *caretaker)
{
    bool stopping = false;

    WITH_LOCK (&caretaker->lock)
        stopping = caretaker->stopping;
    return stopping;
}

/* --- One physical partition ------------------------------------------------------------------ */

static bool expired_remove(struct caretaker *caretaker, const struct item_scope *scope,
                           size_t *done, struct error *err)
{
    for (int i = 0; i < SLICES_PER_VISIT && !must_stop(caretaker); i++) {
        size_t removed;

        if (!expiry_sweep(scope, caretaker->slice, &removed, err))
            return false;
        *done += removed;
        if (removed < caretaker->slice)
            break;
    }
    return true;
}

static bool feed_shorten(struct caretaker *caretaker, const struct item_scope *scope, size_t *done,
                         struct error *err)
{
    for (int i = 0; i < SLICES_PER_VISIT && !must_stop(caretaker); i++) {
        size_t removed;

        if (!feed_trim(scope, caretaker->slice, &removed, err))
            return false;
        *done += removed;
        if (removed < caretaker->slice)
            break;
    }
    return true;
}

static bool partition_visit(struct caretaker *caretaker, const struct item_scope *scope,
                            size_t *done, struct error *err)
{
    const struct definition_fields *definition = scope->definition;

    if (definition->default_ttl != DEFINITION_TTL_OFF &&
        !expired_remove(caretaker, scope, done, err))
        return false;
    return definition->feed_retention_ms == 0 || feed_shorten(caretaker, scope, done, err);
}

/* --- All of them ----------------------------------------------------------------------------- */

static bool container_visit(struct caretaker *caretaker, struct container *container, size_t *done,
                            struct error *err)
{
    struct item_space space = container_space(container, caretaker->clock, NULL);
    size_t count;
    const struct partition_span *spans = partition_map_spans(space.map, &count);

    for (size_t i = 0; i < count && !must_stop(caretaker); i++) {
        struct item_scope scope = item_space_span_scope(&space, &spans[i]);

        if (!partition_visit(caretaker, &scope, done, err))
            return error_prefix(err, "container \"%.*s\"", SLICE_ARG(space.definition->id));
    }
    return true;
}

/* A container that cannot be cared for now does not keep the others waiting. */
static bool account_visit(struct caretaker *caretaker, const struct account *account, size_t *done,
                          struct error *err)
{
    bool fine = true;

    for (size_t d = 0; d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t c = 0; c < database_container_count(database); c++)
            fine = container_visit(caretaker, database_container(database, c), done, err) && fine;
    }
    return fine;
}

bool caretaker_round(struct caretaker *caretaker, size_t *ret_done, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count, done = 0;
    struct account **accounts = catalogue_accounts(caretaker->catalogue, arena, &count);
    bool fine = true;

    for (size_t i = 0; i < count; i++) {
        if (!must_stop(caretaker))
            fine = account_visit(caretaker, accounts[i], &done, err) && fine;
        account_unref(accounts[i]);
    }
    *ret_done = done;
    return fine;
}

static bool caretaker_pause(struct caretaker *caretaker)
{
    int64_t until = clock_monotonic_ms() + caretaker->pause_ms;
    bool stopping = false;

    WITH_LOCK (&caretaker->lock) {
        while (!caretaker->stopping &&
               condition_wait_until(&caretaker->wake, &caretaker->lock, until))
            ;
        stopping = caretaker->stopping;
    }
    return !stopping;
}

static void caretaker_main(void *context)
{
    struct caretaker *caretaker = context;

    while (caretaker_pause(caretaker)) {
        struct error err;
        size_t done;

        if (!caretaker_round(caretaker, &done, &err))
            log_error(caretaker->log, "background work on a container failed", &err);
    }
}

struct caretaker *caretaker_new(const struct caretaker_options *options)
{
    struct caretaker *caretaker = MEMORY_NEW(struct caretaker);

    caretaker->catalogue = options->catalogue;
    caretaker->clock = options->clock ? options->clock : &clock_system;
    caretaker->log = options->log;
    caretaker->pause_ms = options->pause_ms ? options->pause_ms : PAUSE_DEFAULT_MS;
    caretaker->slice = options->slice ? options->slice : SLICE_DEFAULT;
    caretaker->by_hand = options->by_hand;
    mutex_init(&caretaker->lock);
    condition_init(&caretaker->wake);
    if (!caretaker->by_hand)
        thread_start(&caretaker->thread, "caretaker", caretaker_main, caretaker);
    return caretaker;
}

void caretaker_free(struct caretaker *caretaker)
{
    if (!caretaker)
        return;
    WITH_LOCK (&caretaker->lock) {
        caretaker->stopping = true;
        condition_signal(&caretaker->wake);
    }
    if (!caretaker->by_hand)
        thread_join(&caretaker->thread);
    condition_done(&caretaker->wake);
    mutex_done(&caretaker->lock);
    memory_free(caretaker);
}
