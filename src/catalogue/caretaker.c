#include "catalogue/caretaker.h"

#include "base/bell.h"
#include "catalogue/container_space.h"
#include "catalogue/indexes.h"
#include "item/expiry.h"
#include "item/feed_read.h"
#include "item/transform.h"
#include "item/unique.h"
#include "item/write_record.h"

enum {
    PAUSE_DEFAULT_MS = 1000,
    IDLE_MS = 15000, /* between rounds while nothing happens: for what grows too old by itself */
    SLICE_DEFAULT = 500,
    SLICES_PER_VISIT = 20,
    ACCOUNT_MS = 500,   /* of a round; whoever builds indexes of large items holds up nobody else */
    RECORDS_LOOKS = 16, /* at records, in the time they are kept */
};

/* Where the remaking of one physical partition stands. Kept in memory only: after a restart it
 * begins again and passes quickly over what is done. */
struct remaking {
    uint32_t partition;
    uint32_t policy_version;
    char *position; /* owned; of position_len bytes */
    size_t position_len;
    size_t remade; /* in this pass */
    bool finished; /* a whole pass found nothing left to remake */
    struct remaking *next;
};

struct caretaker {
    struct catalogue *catalogue;
    const struct clock *clock;
    struct log *log;
    int64_t pause_ms;
    int64_t records_ms, records_next_ms; /* wall clock: when records are looked at again */
    bool records_due;                    /* in this round */
    size_t slice;
    struct history_limits history;
    int64_t followed_ms;
    bool followed; /* some container is, as this round has seen */
    bool by_hand;

    struct sleeper sleeper;
    struct mutex lock;
    bool stopping;             /* under lock */
    struct remaking *remaking; /* under lock; changed by the caretaker alone */
    uint64_t rounds;
    int64_t until_ms; /* the time of the account that is being visited */
    int64_t next_ms;  /* wall clock: when there is something to do again, as this round knows;
                         0: a pause from now */
    bool behind;      /* this round did not come to the end of an account's work */
    int64_t worked_ms;
    struct thread thread;
};

/* Whose container it is. */
struct visit {
    struct slice account, database;
};

static bool must_stop(struct caretaker *caretaker)
{
    bool stopping = false;

    WITH_LOCK (&caretaker->lock)
        stopping = caretaker->stopping;
    return stopping;
}

/* Is it time for the next slice of the same account? By hand, all is done that can be. */
static bool may_go_on(struct caretaker *caretaker)
{
    bool in_time = caretaker->by_hand || clock_monotonic_ms() < caretaker->until_ms;

    if (!in_time) {
        caretaker->next_ms = 0;
        caretaker->behind = true;
    }
    return in_time && !must_stop(caretaker);
}

/* --- One physical partition ------------------------------------------------------------------ */

static bool expired_remove(struct caretaker *caretaker, const struct item_scope *scope,
                           size_t *done, struct error *err)
{
    for (int i = 0; i < SLICES_PER_VISIT && may_go_on(caretaker); i++) {
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
    for (int i = 0; i < SLICES_PER_VISIT && may_go_on(caretaker); i++) {
        size_t removed;

        if (!feed_trim(scope, caretaker->slice, &removed, err))
            return false;
        *done += removed;
        if (removed < caretaker->slice)
            break;
    }
    return true;
}

/* All of it in one visit: records are small, and whoever writes many leaves many. */
static bool records_remove(struct caretaker *caretaker, const struct item_scope *scope,
                           size_t *done, struct error *err)
{
    CLEANUP(buf_done) struct buf position;
    int64_t before_ms = clock_read_wall_ms(scope->clock) - caretaker->records_ms;
    bool more = true;

    buf_init(&position, BUF_DEFAULT_MAX);
    while (more && !must_stop(caretaker)) {
        size_t removed;

        if (!write_records_sweep(scope, before_ms, caretaker->slice, &position, &more, &removed,
                                 err))
            return false;
        *done += removed;
    }
    return true;
}

static bool partition_visit(struct caretaker *caretaker, const struct item_scope *scope,
                            size_t *done, struct error *err)
{
    const struct definition_fields *definition = scope->definition;
    int64_t expiry_ms;

    if (expiry_is_on(definition)) {
        if (!expired_remove(caretaker, scope, done, err) || !expiry_next(scope, &expiry_ms, err))
            return false;
        caretaker->next_ms = MIN(caretaker->next_ms, expiry_ms);
    }
    if (caretaker->records_due && definition->identity == DEFINITION_IDENTITY_MONGO &&
        !records_remove(caretaker, scope, done, err))
        return false;
    return definition->feed_retention_ms == 0 || feed_shorten(caretaker, scope, done, err);
}

/* --- Remaking -------------------------------------------------------------------------------- */

static struct remaking *remaking_find(const struct caretaker *caretaker, uint32_t partition)
{
    struct remaking *remaking = caretaker->remaking;

    while (remaking && remaking->partition != partition)
        remaking = remaking->next;
    return remaking;
}

/* Starts over when the policy has changed again. */
static struct remaking *remaking_get(struct caretaker *caretaker, const struct item_scope *scope)
{
    struct remaking *remaking;

    WITH_LOCK (&caretaker->lock) {
        remaking = remaking_find(caretaker, scope->partition);
        if (!remaking) {
            remaking = MEMORY_NEW(struct remaking);
            remaking->partition = scope->partition;
            remaking->next = caretaker->remaking;
            caretaker->remaking = remaking;
        }
        if (remaking->policy_version != scope->policy_version) {
            memory_free(TAKE(remaking->position));
            remaking->position_len = remaking->remade = 0;
            remaking->policy_version = scope->policy_version;
            remaking->finished = false;
        }
    }
    return remaking;
}

static void remaking_note(struct caretaker *caretaker, struct remaking *remaking,
                          const struct transform_step *step)
{
    WITH_LOCK (&caretaker->lock) {
        memory_free(TAKE(remaking->position));
        remaking->remade += step->remade;
        remaking->position_len = 0;
        if (!step->finished) {
            remaking->position = slice_to_text(step->position);
            remaking->position_len = step->position.len;
        } else {
            /* Who still held the old policy may have written behind our back: only a pass that
             * finds nothing is the last. */
            remaking->finished = remaking->remade == 0;
            remaking->remade = 0;
        }
    }
}

/* An item cannot be in an index that is being built. */
static bool refusal_note(struct caretaker *caretaker, const struct item_scope *scope,
                         const struct visit *visit, const struct transform_step *step,
                         struct error *err)
{
    return catalogue_index_fail(caretaker->catalogue, visit->account, visit->database,
                                scope->definition->id, step->refused->name, step->refusal.message,
                                err);
}

static bool partition_remake(struct caretaker *caretaker, const struct item_scope *scope,
                             const struct visit *visit, size_t *done, bool *ret_finished,
                             struct error *err)
{
    struct remaking *remaking = remaking_get(caretaker, scope);

    *ret_finished = remaking->finished;
    if (remaking->finished)
        return true;
    while (!remaking->finished && may_go_on(caretaker)) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct transform_step step;

        if (!transform_run(scope, slice_of(remaking->position, remaking->position_len),
                           caretaker->slice, arena, &step, err))
            return false;
        *done += step.remade;
        if (step.refused)
            return refusal_note(caretaker, scope, visit, &step, err);
        remaking_note(caretaker, remaking, &step);
    }
    *ret_finished = remaking->finished;
    return true;
}

/* Are there items in the way of a unique index that is being built? */
static bool conflicts_look(const struct item_scope *scope, bool *conflicts, struct error *err)
{
    return *conflicts || !definition_is_unique(scope->definition) ||
           unique_conflicts_any(scope, NULL, conflicts, err);
}

/* Every item has its entries; what is left of indexes that are gone goes too. */
static bool container_settle(struct caretaker *caretaker, const struct item_space *space,
                             const struct visit *visit, bool *ret_conflicts, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(space->map, &count);

    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(space, &spans[i]);

        if (!unique_sweep(&scope, err))
            return false;
    }
    return catalogue_indexes_settle(caretaker->catalogue, visit->account, visit->database,
                                    space->definition->id, space->policy_version, ret_conflicts,
                                    err);
}

static bool container_remake(struct caretaker *caretaker, const struct item_space *space,
                             const struct visit *visit, size_t *done, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(space->map, &count);
    bool all = true, conflicts = false;

    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(space, &spans[i]);
        bool finished = false;

        if (!partition_remake(caretaker, &scope, visit, done, &finished, err) ||
            !conflicts_look(&scope, &conflicts, err))
            return false;
        all = all && finished;
    }
    if (all && !conflicts && !container_settle(caretaker, space, visit, &conflicts, err))
        return false;
    return !conflicts || catalogue_indexes_give_up(caretaker->catalogue, visit->account,
                                                   visit->database, space->definition->id, err);
}

static struct slice position_of(struct caretaker *caretaker, uint32_t partition, uint32_t version,
                                struct arena *arena, bool *ret_finished)
{
    struct slice position = SLICE_NONE;

    *ret_finished = false;
    WITH_LOCK (&caretaker->lock) {
        const struct remaking *remaking = remaking_find(caretaker, partition);

        if (remaking && remaking->policy_version == version) {
            position = arena_copy(arena, slice_of(remaking->position, remaking->position_len));
            *ret_finished = remaking->finished;
        }
    }
    return position;
}

unsigned caretaker_progress(struct caretaker *caretaker, struct container *container)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct definition *const *before;
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    unsigned sum = 0;

    if (container_policies_before(container, &before) == 0)
        return 100;
    for (size_t i = 0; i < count; i++) {
        bool finished;
        struct slice position = position_of(caretaker, spans[i].id,
                                            container_policy_version(container), arena, &finished);

        sum += finished ? 100 : transform_percent(position, spans[i].min, spans[i].max);
    }
    return MIN(sum / (unsigned)count, 99u);
}

/* --- All of them ----------------------------------------------------------------------------- */

static bool container_visit(struct caretaker *caretaker, struct container *container,
                            const struct visit *visit, size_t *done, struct error *err)
{
    struct item_space space = container_space(container, caretaker->clock, NULL);
    size_t count;
    const struct partition_span *spans = partition_map_spans(space.map, &count);

    for (size_t i = 0; i < count && may_go_on(caretaker); i++) {
        struct item_scope scope = item_space_span_scope(&space, &spans[i]);
        struct error away;

        if (!engine_serves(scope.engine, &away)) {
            caretaker->next_ms = 0;
            continue;
        }
        if (!partition_visit(caretaker, &scope, done, err))
            return error_prefix(err, "container \"%.*s\"", SLICE_ARG(space.definition->id));
    }
    if (space.policies_before_count == 0)
        return true;
    caretaker->next_ms = 0;
    return container_remake(caretaker, &space, visit, done, err);
}

/* A partition that has just split, merged or moved is cared for in the next round, and one whose
 * node is away when it is here again. */
static bool container_care(struct caretaker *caretaker, struct container *container,
                           const struct visit *visit, size_t *done, struct error *err)
{
    return container_visit(caretaker, container, visit, done, err) ||
           item_space_is_overtaken(err) || err->code == ERROR_NODE_DOWN ||
           err->code == ERROR_NODE_PAUSED;
}

static size_t containers_count(const struct account *account)
{
    size_t count = 0;

    for (size_t d = 0; d < account_database_count(account); d++)
        count += database_container_count(account_database(account, d));
    return count;
}

/* The nth of all containers of an account. */
static struct container *container_nth(const struct account *account, size_t nth,
                                       const struct database **ret_database)
{
    size_t d = 0;

    for (;; d++) {
        size_t count = database_container_count(account_database(account, d));

        if (nth < count)
            break;
        nth -= count;
    }
    *ret_database = account_database(account, d);
    return database_container(*ret_database, nth);
}

/* A container that cannot be cared for now does not keep the others waiting. Each round begins with
 * the next one: where the account's time is used up it is not always the same that go without. */
static bool account_visit(struct caretaker *caretaker, const struct account *account, size_t *done,
                          struct error *err)
{
    size_t count = containers_count(account);
    bool fine = true;

    caretaker->until_ms = clock_monotonic_ms() + ACCOUNT_MS;
    for (size_t i = 0; i < count && may_go_on(caretaker); i++) {
        const struct database *database;
        struct container *container =
            container_nth(account, (size_t)((caretaker->rounds + i) % count), &database);
        struct visit visit = {account_info(account)->id, database_info(database)->id};

        fine = container_care(caretaker, container, &visit, done, err) && fine;
    }
    return fine;
}

/* Has it views, which read the history too? */
static bool account_is_followed(const struct account *account)
{
    for (size_t d = 0; d < account_database_count(account); d++) {
        const struct database *database = account_database(account, d);

        for (size_t i = 0; i < database_container_count(database); i++)
            if (definition_fields(container_definition(database_container(database, i)))->followed)
                return true;
    }
    return false;
}

/* A node that is away has its turn when it is here again. */
static bool histories_trim(struct caretaker *caretaker, size_t *done, struct error *err)
{
    struct cluster *cluster = catalogue_cluster(caretaker->catalogue);
    struct history_limits limits = caretaker->history;
    bool fine = true;

    if (caretaker->followed)
        limits.retention_ms = MAX(limits.retention_ms, caretaker->followed_ms);
    for (size_t i = 0; limits.retention_ms && i < cluster_count(cluster); i++) {
        const struct cluster_node *node = cluster_at(cluster, i);
        bool removed = false;

        if (!cluster_node_serves(node))
            continue;
        if (!history_trim(node->engine, node->commit, &limits, clock_read_wall_ms(caretaker->clock),
                          &removed, err))
            fine = (err->code == ERROR_NODE_DOWN || err->code == ERROR_NODE_PAUSED ||
                    error_prefix(err, "history of node \"%s\"", node->name)) &&
                   fine;
        *done += removed;
    }
    return fine;
}

bool caretaker_round(struct caretaker *caretaker, size_t *ret_done, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count, done = 0;
    struct account **accounts = catalogue_accounts(caretaker->catalogue, arena, &count);
    int64_t now_ms = clock_read_wall_ms(caretaker->clock);
    bool fine = true;

    caretaker->records_due = caretaker->records_ms && now_ms >= caretaker->records_next_ms;
    if (caretaker->records_due)
        caretaker->records_next_ms = now_ms + caretaker->records_ms / RECORDS_LOOKS;
    caretaker->rounds++;
    caretaker->behind = false;
    caretaker->next_ms = now_ms + IDLE_MS;
    caretaker->followed = false;
    for (size_t i = 0; i < count; i++) {
        caretaker->followed |= account_is_followed(accounts[i]);
        if (!must_stop(caretaker))
            fine = account_visit(caretaker, accounts[i], &done, err) && fine;
        account_unref(accounts[i]);
    }
    if (!must_stop(caretaker))
        fine = histories_trim(caretaker, &done, err) && fine;
    if (!fine || done)
        caretaker->next_ms = 0;
    *ret_done = done;
    return fine;
}

/* Who waits for an index waits for us: a caretaker that is behind rests as long as it has worked,
 * and no longer, so that others have half of the time. False: stop. */
static bool caretaker_pause(struct caretaker *caretaker)
{
    int64_t left_ms = caretaker->next_ms - clock_read_wall_ms(caretaker->clock);
    int64_t pause_ms =
        caretaker->behind ? MIN(caretaker->pause_ms, caretaker->worked_ms) : caretaker->pause_ms;

    return sleeper_sleep(&caretaker->sleeper, pause_ms,
                         clock_monotonic_ms() + MIN(left_ms, (int64_t)IDLE_MS));
}

static void caretaker_main(void *context)
{
    struct caretaker *caretaker = context;

    while (caretaker_pause(caretaker)) {
        int64_t begun_ms = clock_monotonic_ms();
        struct error err;
        size_t done;

        sleeper_listen(&caretaker->sleeper);
        if (!caretaker_round(caretaker, &done, &err)) {
            log_error(caretaker->log, "background work on a container failed", &err);
            caretaker->behind = false;
        }
        caretaker->worked_ms = clock_monotonic_ms() - begun_ms;
    }
}

void caretaker_wake(struct caretaker *caretaker)
{
    sleeper_wake(&caretaker->sleeper);
}

struct caretaker *caretaker_new(const struct caretaker_options *options)
{
    struct caretaker *caretaker = MEMORY_NEW(struct caretaker);

    caretaker->catalogue = options->catalogue;
    caretaker->clock = options->clock ? options->clock : &clock_system;
    caretaker->log = options->log;
    caretaker->records_ms = options->records_ms;
    caretaker->pause_ms = options->pause_ms ? options->pause_ms : PAUSE_DEFAULT_MS;
    caretaker->slice = options->slice ? options->slice : SLICE_DEFAULT;
    caretaker->by_hand = options->by_hand;
    caretaker->history = options->history;
    caretaker->followed_ms = options->followed_ms;
    mutex_init(&caretaker->lock);
    sleeper_init(&caretaker->sleeper, options->bell);
    if (!caretaker->by_hand)
        thread_start(&caretaker->thread, "caretaker", caretaker_main, caretaker);
    return caretaker;
}

void caretaker_free(struct caretaker *caretaker)
{
    if (!caretaker)
        return;
    WITH_LOCK (&caretaker->lock)
        caretaker->stopping = true;
    sleeper_stop(&caretaker->sleeper);
    if (!caretaker->by_hand)
        thread_join(&caretaker->thread);
    while (caretaker->remaking) {
        struct remaking *remaking = caretaker->remaking;

        caretaker->remaking = remaking->next;
        memory_free(remaking->position);
        memory_free(remaking);
    }
    sleeper_done(&caretaker->sleeper);
    mutex_done(&caretaker->lock);
    memory_free(caretaker);
}
