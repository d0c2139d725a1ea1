/* A list under a lock, and a thread that is started when something is first left open. Entries are
 * freed by that thread alone, or by their owner; `settling` is held while an entry that nobody owns
 * is worked on, so that nodes that join find them at rest. */
#include "item/agreements_private.h"

#include "base/memory.h"
#include "item/agreement_record.h"
#include "partition/history.h"
#include "partition/layout.h"

enum { RETRY_MS = 200, PAUSE_MS_MAX = 10000 };

struct agreements *agreements_new(const struct agreements_options *options)
{
    struct agreements *agreements = MEMORY_NEW(struct agreements);

    agreements->options = *options;
    mutex_init(&agreements->lock);
    mutex_init(&agreements->settling);
    condition_init(&agreements->changed);
    return agreements;
}

void agreements_free(struct agreements *agreements)
{
    if (!agreements)
        return;
    WITH_LOCK (&agreements->lock) {
        agreements->stopping = true;
        condition_broadcast(&agreements->changed);
    }
    if (agreements->started)
        thread_join(&agreements->thread);
    while (agreements->list) {
        struct agreement_entry *entry = agreements->list;

        assert(!entry->owned);
        agreements->list = entry->next;
        memory_free(entry);
    }
    condition_done(&agreements->changed);
    mutex_done(&agreements->settling);
    mutex_done(&agreements->lock);
    memory_free(agreements);
}

const char *agreement_state_name(enum agreement_state state)
{
    static const char *const names[] = {"promising", "in doubt", "undoing", "applying", "done"};

    assert(state <= AGREEMENT_DONE);
    return names[state];
}

/* --- The list -------------------------------------------------------------------------------- */

static struct agreement_entry *entry_find(const struct agreements *agreements, struct pledge_id id)
{
    struct agreement_entry *entry = agreements->list;

    assert(mutex_is_held(&agreements->lock));
    while (entry && !pledge_id_equal(entry->id, id))
        entry = entry->next;
    return entry;
}

static struct agreement_entry *entry_add(struct agreements *agreements,
                                         const struct agreement_entry *as)
{
    struct agreement_entry *entry = MEMORY_NEW(struct agreement_entry);

    assert(mutex_is_held(&agreements->lock));
    *entry = *as;
    entry->next = agreements->list;
    agreements->list = entry;
    return entry;
}

static void entry_drop(struct agreements *agreements, struct agreement_entry *entry)
{
    struct agreement_entry **place = &agreements->list;

    assert(mutex_is_held(&agreements->lock));
    while (*place != entry)
        place = &(*place)->next;
    *place = entry->next;
    memory_free(entry);
    condition_broadcast(&agreements->changed);
}

static void why_note(struct agreement_entry *entry, const struct error *err)
{
    entry->attempted = err != NULL;
    entry->why[0] = '\0';
    if (err)
        (void)snprintf(entry->why, sizeof entry->why, "%.*s", (int)sizeof entry->why - 1,
                       err->message);
}

struct agreement_entry *agreements_begin(struct agreements *agreements, struct pledge_id id,
                                         uint32_t home)
{
    struct agreement_entry *entry = NULL;

    WITH_LOCK (&agreements->lock) {
        while (agreements->paused)
            condition_wait(&agreements->changed, &agreements->lock);
        entry = entry_add(agreements,
                          &(struct agreement_entry){
                              .id = id, .home = home, .since_ms = clock_wall_ms(), .owned = true});
    }
    return entry;
}

void agreements_note(struct agreements *agreements, struct agreement_entry *entry,
                     enum agreement_state state, uint64_t nodes)
{
    WITH_LOCK (&agreements->lock) {
        entry->state = state;
        entry->nodes = nodes;
    }
}

/* --- Settling -------------------------------------------------------------------------------- */

/* The next that nobody owns, by when it was last tried. */
static struct agreement_entry *entry_next(const struct agreements *agreements, int64_t now_ms)
{
    for (struct agreement_entry *entry = agreements->list; entry; entry = entry->next)
        if (!entry->owned && entry->not_before_ms <= now_ms)
            return entry;
    return NULL;
}

/* Under the lock, which it lets go of. */
static void entry_settle(struct agreements *agreements, struct agreement_entry *entry)
{
    struct error err;
    bool settled = false;

    mutex_unlock(&agreements->lock);
    WITH_LOCK (&agreements->settling)
        settled = agreement_settle(agreements, entry, &err);
    mutex_lock(&agreements->lock);
    if (settled) {
        entry_drop(agreements, entry);
        return;
    }
    if (!entry->attempted)
        log_error(agreements->options.log, "a transaction over several nodes is open", &err);
    why_note(entry, &err);
    entry->not_before_ms = clock_monotonic_ms() + RETRY_MS;
}

static void settling_main(void *context)
{
    struct agreements *agreements = context;

    mutex_lock(&agreements->lock);
    while (!agreements->stopping) {
        struct agreement_entry *entry = entry_next(agreements, clock_monotonic_ms());

        if (entry)
            entry_settle(agreements, entry);
        else if (entry_next(agreements, INT64_MAX))
            (void)condition_wait_until(&agreements->changed, &agreements->lock,
                                       clock_monotonic_ms() + RETRY_MS / 4);
        else
            condition_wait(&agreements->changed, &agreements->lock);
    }
    mutex_unlock(&agreements->lock);
}

static void thread_wake(struct agreements *agreements)
{
    assert(mutex_is_held(&agreements->lock));
    if (!agreements->started)
        thread_start(&agreements->thread, "settle", settling_main, agreements);
    agreements->started = true;
    condition_broadcast(&agreements->changed);
}

void agreements_leave(struct agreements *agreements, struct agreement_entry *entry,
                      const struct error *err)
{
    WITH_LOCK (&agreements->lock) {
        assert(entry->owned);
        entry->owned = false;
        why_note(entry, err);
        if (!entry->nodes &&
            (entry->state == AGREEMENT_PROMISING || entry->state == AGREEMENT_UNDOING))
            entry_drop(agreements, entry);
        else
            thread_wake(agreements);
    }
}

/* --- Nodes that come ------------------------------------------------------------------------- */

static bool decisions_read(struct agreements *agreements, const struct cluster_node *node,
                           struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct agreement_decision decision;
    struct engine_entry record;
    struct pledge_id id;

    if (!engine_iterator_new(node->engine, NULL, PARTITION_HISTORY,
                             pledge_records(PLEDGE_DECISION, arena), false, ENGINE_READ_ANY,
                             &iterator, err))
        return false;
    for (;;) {
        if (!engine_iterator_next(iterator, &record, err))
            return false;
        if (record.found != ENGINE_FOUND)
            return true;
        if (!pledge_key_decode(record.key, &id, err) ||
            !agreement_decision_decode(record.value, &decision, err))
            return false;
        WITH_LOCK (&agreements->lock) {
            struct agreement_entry *entry = entry_find(agreements, id);

            if (!entry)
                entry = entry_add(agreements, &(struct agreement_entry){
                                                  .id = id,
                                                  .home = node->number,
                                                  .state = AGREEMENT_DOUBT,
                                                  .nodes = decision.nodes,
                                                  .since_ms = decision.wall_ms,
                                              });
            /* One whose window is open is found out by the thread, behind what is on its way. */
            if (entry->state == AGREEMENT_DOUBT && !entry->owned && !entry->window)
                entry->state = AGREEMENT_APPLYING;
        }
    }
}

struct promised {
    struct pledge_id id;
    uint32_t home;
    int64_t wall_ms;
};

struct promises {
    struct promised *list; /* owned */
    size_t count, capacity;
};

static void promise_collect(const struct pledge *pledge, void *context)
{
    struct promises *promises = context;

    if (!pledge->writes.len)
        return; /* of one that is under way: it has no record */
    if (promises->count == promises->capacity) {
        promises->capacity = promises->capacity ? promises->capacity * 2 : 16;
        promises->list = memory_realloc(
            promises->list, memory_array_size(promises->capacity, sizeof *promises->list));
    }
    promises->list[promises->count++] =
        (struct promised){pledge->id, pledge->home, pledge->wall_ms};
}

/* Has the home told what it has decided? */
static bool home_is_known(const struct agreements *agreements, uint32_t home, uint32_t joining)
{
    const struct cluster_node *node = cluster_find(agreements->options.cluster, home);

    return home == joining || (node && cluster_node_serves(node));
}

static void promise_join(struct agreements *agreements, const struct cluster_node *node,
                         const struct promised *promised)
{
    struct agreement_entry *entry = entry_find(agreements, promised->id);

    assert(mutex_is_held(&agreements->lock));
    if (!entry)
        entry = entry_add(agreements,
                          &(struct agreement_entry){
                              .id = promised->id,
                              .home = promised->home,
                              .state = home_is_known(agreements, promised->home, node->number)
                                           ? AGREEMENT_UNDOING
                                           : AGREEMENT_DOUBT,
                              .since_ms = promised->wall_ms,
                          });
    if (!entry->owned)
        entry->nodes |= UINT64_C(1) << node->number;
}

/* What it has promised, and what others believe it has. */
static void promises_read(struct agreements *agreements, const struct cluster_node *node)
{
    struct pledges *pledges = commit_pledges(node->commit);
    struct promises promises = {0};

    pledges_each(pledges, promise_collect, &promises);
    WITH_LOCK (&agreements->lock) {
        for (size_t i = 0; i < promises.count; i++)
            promise_join(agreements, node, &promises.list[i]);
        for (struct agreement_entry *entry = agreements->list; entry; entry = entry->next) {
            uint64_t bit = UINT64_C(1) << node->number;

            if (entry->owned)
                continue;
            if (entry->home == node->number && entry->state == AGREEMENT_DOUBT && !entry->window)
                entry->state = AGREEMENT_UNDOING; /* for it has decided nothing */
            if (entry->state != AGREEMENT_APPLYING || !(entry->nodes & bit))
                continue;
            if (pledges_have(pledges, entry->id))
                pledges_decide(pledges, entry->id);
            else
                entry->nodes &= ~bit; /* it has applied it */
        }
        if (agreements->list)
            thread_wake(agreements);
    }
    memory_free(promises.list);
}

bool agreements_join(struct agreements *agreements, const struct cluster_node *node,
                     struct error *err)
{
    bool read = false;

    WITH_LOCK (&agreements->settling) {
        read = decisions_read(agreements, node, err);
        if (read)
            promises_read(agreements, node);
        /* Others may have promised what this one has decided. */
        WITH_LOCK (&agreements->lock)
            for (const struct agreement_entry *entry = agreements->list; read && entry;
                 entry = entry->next)
                if (entry->home == node->number && entry->state == AGREEMENT_APPLYING &&
                    !entry->owned)
                    agreement_tell(agreements, entry->id, entry->nodes);
    }
    return read;
}

static bool nodes_each(struct agreements *agreements,
                       bool (*join)(struct agreements *agreements, const struct cluster_node *node,
                                    struct error *err),
                       struct error *err)
{
    for (size_t i = 0; i < cluster_count(agreements->options.cluster); i++) {
        const struct cluster_node *node = cluster_at(agreements->options.cluster, i);

        if (cluster_node_serves(node) && !join(agreements, node, err) &&
            err->code != ERROR_NODE_DOWN)
            return error_prefix(err, "node \"%s\"", node->name);
    }
    return true;
}

static bool promises_join(struct agreements *agreements, const struct cluster_node *node,
                          struct error *err UNUSED)
{
    promises_read(agreements, node);
    return true;
}

/* Decisions first: without them a promise would be undone. */
bool agreements_recover(struct agreements *agreements, struct error *err)
{
    bool read = false;

    WITH_LOCK (&agreements->settling)
        read = nodes_each(agreements, decisions_read, err) &&
               nodes_each(agreements, promises_join, err);
    if (!read)
        return false;
    /* The thread has them all; those that can be are settled before anybody is served. */
    WITH_LOCK (&agreements->lock) {
        bool tried = false;

        while (!tried) {
            tried = true;
            for (const struct agreement_entry *entry = agreements->list; entry; entry = entry->next)
                tried = tried && entry->attempted;
            if (!tried)
                (void)condition_wait_until(&agreements->changed, &agreements->lock,
                                           clock_monotonic_ms() + RETRY_MS / 4);
        }
    }
    return true;
}

/* --- For others ------------------------------------------------------------------------------ */

bool agreements_spare(struct agreements *agreements, uint32_t node, struct error *err)
{
    bool spare = true;

    WITH_LOCK (&agreements->lock)
        for (const struct agreement_entry *entry = agreements->list; entry; entry = entry->next)
            spare = spare && entry->home != node && !(entry->nodes >> node & 1);
    return spare || error_set(err, ERROR_PLEDGED,
                              "the node is part of a transaction over several nodes that is not "
                              "settled (GET /_orrery/transactions)");
}

bool agreements_pause(struct agreements *agreements, struct error *err)
{
    bool quiet = false;

    WITH_LOCK (&agreements->lock) {
        int64_t until_ms = clock_monotonic_ms() + PAUSE_MS_MAX;

        agreements->paused++;
        while (!(quiet = !agreements->list) && clock_monotonic_ms() < until_ms)
            (void)condition_wait_until(&agreements->changed, &agreements->lock, until_ms);
    }
    if (quiet)
        return true;
    agreements_resume(agreements);
    return error_set(err, ERROR_PLEDGED,
                     "a transaction over several nodes is not settled (GET /_orrery/transactions)");
}

void agreements_resume(struct agreements *agreements)
{
    WITH_LOCK (&agreements->lock) {
        assert(agreements->paused);
        agreements->paused--;
        condition_broadcast(&agreements->changed);
    }
}

size_t agreements_list(struct agreements *agreements, struct arena *arena,
                       struct agreement_info **ret_list)
{
    size_t count = 0;

    WITH_LOCK (&agreements->lock) {
        for (const struct agreement_entry *entry = agreements->list; entry; entry = entry->next)
            count++;
        *ret_list = ARENA_ARRAY(arena, struct agreement_info, count);
        count = 0;
        for (const struct agreement_entry *entry = agreements->list; entry; entry = entry->next)
            (*ret_list)[count++] = (struct agreement_info){
                .id = entry->id,
                .state = entry->state,
                .home = entry->home,
                .nodes = entry->nodes,
                .since_ms = entry->since_ms,
                .waits = entry->attempted,
                .why = arena_text(arena, slice_of_text(entry->why)),
            };
    }
    return count;
}

bool agreements_in_doubt(struct agreements *agreements)
{
    bool doubt = false;

    WITH_LOCK (&agreements->lock)
        for (const struct agreement_entry *entry = agreements->list; entry; entry = entry->next)
            doubt |= entry->state == AGREEMENT_DOUBT;
    return doubt;
}

size_t agreements_waiting(struct agreements *agreements)
{
    size_t count = 0;

    WITH_LOCK (&agreements->lock)
        for (const struct agreement_entry *entry = agreements->list; entry; entry = entry->next)
            count += entry->attempted;
    return count;
}
