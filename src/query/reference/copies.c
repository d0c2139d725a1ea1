/* Places by the number of their container, in chains under one lock, which is held for a few steps:
 * filling is done outside of it. LSNs are noted before the container is read, so that a copy is
 * never older than they say; one that is younger is filled once more than needed. */
#include "query/reference/copies.h"

#include "base/memory.h"
#include "base/thread.h"
#include "item/shown.h"
#include "query/expression/item.h"

enum { CHAINS = 256, WAIT_MS = 100 };

struct mark {
    uint32_t partition;
    uint64_t lsn;
};

/* What a copy was made at. */
struct marks {
    uint64_t map_version;
    size_t count;
    struct mark *list; /* owned */
};

struct place {
    struct place *next;
    uint32_t container;
    bool filling;
    size_t waiting;
    uint64_t used;           /* the larger, the later */
    struct query_copy *copy; /* a reference; NULL: none yet */
    struct marks marks;      /* of it */
    int64_t exact_ms;        /* monotonic: when it was last known to be exact */
};

struct query_copies {
    struct mutex lock;
    struct condition filled;
    size_t bytes_max, bytes, count;
    uint64_t uses, fills, founds;
    struct place *chains[CHAINS];
};

struct query_copies *query_copies_new(size_t bytes_max)
{
    struct query_copies *copies = MEMORY_NEW(struct query_copies);

    mutex_init(&copies->lock);
    condition_init(&copies->filled);
    copies->bytes_max = bytes_max;
    return copies;
}

static void place_free(struct place *place)
{
    query_copy_unref(place->copy);
    memory_free(place->marks.list);
    memory_free(place);
}

void query_copies_free(struct query_copies *copies)
{
    if (!copies)
        return;
    for (size_t i = 0; i < CHAINS; i++)
        for (struct place *place = copies->chains[i], *next; place; place = next) {
            next = place->next;
            place_free(place);
        }
    condition_done(&copies->filled);
    mutex_done(&copies->lock);
    memory_free(copies);
}

/* --- How old it is ---------------------------------------------------------------------------- */

static void marks_done(struct marks *marks)
{
    memory_free(marks->list);
    *marks = (struct marks){0};
}
CLEANUP_VALUE_FN(struct marks, marks_done)

/* Where the container stands now. False: a partition of it is not open. */
static bool marks_read(const struct item_space *space, struct marks *marks)
{
    const struct partition_span *spans = partition_map_spans(space->map, &marks->count);
    struct error ignored;

    marks->map_version = partition_map_version(space->map);
    marks->list = memory_alloc_zero(memory_array_size(marks->count, sizeof *marks->list));
    for (size_t i = 0; i < marks->count; i++) {
        struct commit *commit = space->commit(space->nodes, spans[i].node);

        marks->list[i].partition = spans[i].id;
        if (!commit || !commit_partition_lsn(commit, spans[i].id, &marks->list[i].lsn, &ignored))
            return false;
    }
    return true;
}

static bool marks_equal(const struct marks *a, const struct marks *b)
{
    if (a->map_version != b->map_version || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->list[i].partition != b->list[i].partition || a->list[i].lsn != b->list[i].lsn)
            return false;
    return true;
}

/* What the operator has paused is not read from a copy either. */
static bool space_admits(const struct item_space *space, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(space->map, &count);

    for (size_t i = 0; i < count; i++)
        if (!item_space_admits_range(space, &spans[i],
                                     (struct partition_range){spans[i].min, spans[i].max}, err))
            return false;
    return true;
}

/* --- Filling --------------------------------------------------------------------------------- */

/* The document as it is stored. */
static bool stored_evaluate(const struct query_expression *expression UNUSED,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err UNUSED)
{
    const struct query_item *bound = context->slots[0].hidden_self;

    *ret_value = bound ? document_object(bound->item->document) : context->slots[0].value;
    return true;
}

static const struct query_kind stored_kind = {"stored", stored_evaluate, QUERY_STABLE};

/* Items with what the server adds to them; those of MongoDB as they are: what is shown of them over
 * REST has other types. */
static const struct query_expression *select_of(const struct item_space *space,
                                                struct query_build *build)
{
    const struct query_expression *item = query_variable(build, 0);

    if (item_shows_plainly(definition_names_of(space->definition)))
        return item;
    return query_node(build, &stored_kind, sizeof(struct query_expression), &item, 1);
}

static bool row_add(void *self, const struct document_value *value, struct error *err)
{
    assert(value->type == DOCUMENT_OBJECT);
    return query_copy_builder_add(self, value->document, err);
}

/* All items, in one page: each partition as of one moment. */
static bool copy_fill(const struct query_copy_home *home, struct query_copy **ret_copy,
                      int64_t *ret_cru, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(query_copy_builder_done) struct query_copy_builder builder;
    const struct partition_definition *key = &home->space->definition->key;
    struct query_build build = {.arena = arena, .order = DOCUMENT_ORDER_SQL};
    struct query_plan plan = {
        .query = {.select = select_of(home->space, &build), .limit = UINT64_MAX},
        .slot_count = 1,
        .order = DOCUMENT_ORDER_SQL,
        .fingerprint = 1,
    };
    struct metered_call call = {0};
    struct query_request request = {
        .space = home->space,
        .container = home->rid,
        .call = &call,
        .limits = home->limits,
        .arena = arena,
        .row = row_add,
        .self = &builder,
    };
    struct query_page page;

    query_copy_builder_init(&builder);
    builder.paths = key->paths;
    builder.path_count = key->system_key ? 0 : key->path_count;
    builder.identity = definition_names_of(home->space->definition)->identity;
    builder.bytes_max = home->bytes_max;
    builder.by_value = home->space->definition->identity == DEFINITION_IDENTITY_MONGO;
    request.limits.rows_max = request.limits.bytes_max = UINT32_MAX;
    request.limits.pause_ms = 0;
    if (!query_run(&plan, &request, &page, err))
        return false;
    if (page.continuation.len)
        return error_set(err, ERROR_REFERENCE_FULL,
                         "the reference container holds more than %zu bytes (reference.bytes_max)",
                         home->bytes_max);
    *ret_copy = query_copy_new(&builder);
    *ret_cru = page.charge_cru;
    return true;
}

/* --- Places ---------------------------------------------------------------------------------- */

static struct place *place_find(struct query_copies *copies, uint32_t container)
{
    struct place **chain = &copies->chains[container % CHAINS], *place = *chain;

    while (place && place->container != container)
        place = place->next;
    if (!place) {
        place = MEMORY_NEW(struct place);
        *place = (struct place){.next = *chain, .container = container};
        *chain = place;
        copies->count++;
    }
    place->used = ++copies->uses;
    return place;
}

static void place_drop(struct query_copies *copies, struct place *place)
{
    struct place **at = &copies->chains[place->container % CHAINS];

    while (*at != place)
        at = &(*at)->next;
    *at = place->next;
    if (place->copy)
        copies->bytes -= query_copy_bytes(place->copy);
    copies->count--;
    place_free(place);
}

/* The place whose copy was not used for longest, but the one given. */
static struct place *place_oldest(const struct query_copies *copies, const struct place *but)
{
    struct place *oldest = NULL;

    for (size_t i = 0; i < CHAINS; i++)
        for (struct place *place = copies->chains[i]; place; place = place->next)
            if (place != but && !place->filling && !place->waiting &&
                (!oldest || place->used < oldest->used))
                oldest = place;
    return oldest;
}

static void room_make(struct query_copies *copies, const struct place *but)
{
    while (copies->bytes > copies->bytes_max) {
        struct place *oldest = place_oldest(copies, but);

        if (!oldest)
            return; /* the newest is kept, whatever it takes */
        place_drop(copies, oldest);
    }
}

/* A copy of an older map is of no use to others. */
static void place_put(struct query_copies *copies, struct place *place, struct query_copy *copy,
                      struct marks *marks, int64_t now_ms)
{
    if (place->copy && place->marks.map_version > marks->map_version)
        return;
    if (place->copy)
        copies->bytes -= query_copy_bytes(place->copy);
    query_copy_unref(place->copy);
    memory_free(place->marks.list);
    place->copy = query_copy_ref(copy);
    place->marks = *marks;
    marks->list = NULL;
    place->exact_ms = now_ms;
    copies->bytes += query_copy_bytes(copy);
    copies->fills++;
    room_make(copies, place);
}

/* --- Taking ---------------------------------------------------------------------------------- */

static bool is_away(const struct error *err)
{
    return err->code == ERROR_NODE_DOWN || err->code == ERROR_NODE_PAUSED;
}

/* The copy as it is, of which nobody knows whether it is exact. Under the lock. */
static bool take_as_is(const struct place *place, const struct item_space *space, int64_t now_ms,
                       struct query_copy_taken *ret_taken)
{
    if (!place->copy || place->marks.map_version != partition_map_version(space->map))
        return false;
    *ret_taken = (struct query_copy_taken){.copy = query_copy_ref(place->copy),
                                           .lag_ms = MAX(now_ms - place->exact_ms, INT64_C(1))};
    return true;
}

/* Fills the copy outside of the lock, which is held before and after. */
static bool place_fill(struct query_copies *copies, struct place *place,
                       const struct query_copy_home *home, struct marks *marks, bool known,
                       struct query_copy_taken *ret_taken, struct error *err)
{
    const struct clock *clock = home->space->clock;
    struct query_copy_taken taken = {0};
    int64_t now_ms = clock_read_monotonic_ms(clock);
    bool done;

    place->filling = true;
    mutex_unlock(&copies->lock);
    done = copy_fill(home, &taken.copy, &taken.filled_cru, err);
    mutex_lock(&copies->lock);
    place->filling = false;
    condition_broadcast(&copies->filled);
    if (!done && is_away(err) &&
        take_as_is(place, home->space, clock_read_monotonic_ms(clock), ret_taken))
        return true;
    if (!done) {
        if (!place->copy && !place->waiting)
            place_drop(copies, place);
        return false;
    }
    if (known)
        place_put(copies, place, taken.copy, marks, now_ms);
    *ret_taken = taken;
    return true;
}

static bool take_locked(struct query_copies *copies, const struct query_copy_home *home,
                        struct query_copy_taken *ret_taken, struct error *err)
{
    struct place *place = place_find(copies, home->number);

    for (;;) {
        CLEANUP(marks_done) struct marks marks = {0};
        int64_t now_ms = clock_read_monotonic_ms(home->space->clock);
        bool known = marks_read(home->space, &marks);

        if (known && place->copy && marks_equal(&marks, &place->marks)) {
            place->exact_ms = now_ms;
            copies->founds++;
            *ret_taken = (struct query_copy_taken){.copy = query_copy_ref(place->copy)};
            return true;
        }
        if (!place->filling)
            return place_fill(copies, place, home, &marks, known, ret_taken, err);
        if (home->limits.deadline_ms && now_ms > home->limits.deadline_ms)
            return error_set(err, ERROR_TIMED_OUT, "a reference container was not read in time");
        place->waiting++;
        (void)condition_wait_until(&copies->filled, &copies->lock, clock_monotonic_ms() + WAIT_MS);
        place->waiting--;
    }
}

bool query_copies_take(struct query_copies *copies, const struct query_copy_home *home,
                       struct query_copy_taken *ret_taken, struct error *err)
{
    bool taken;

    if (!space_admits(home->space, err))
        return false;
    mutex_lock(&copies->lock);
    taken = take_locked(copies, home, ret_taken, err);
    mutex_unlock(&copies->lock);
    return taken;
}

void query_copies_metrics(struct query_copies *copies, struct query_copies_metrics *ret_metrics)
{
    WITH_LOCK (&copies->lock)
        *ret_metrics = (struct query_copies_metrics){.bytes = copies->bytes,
                                                     .count = copies->count,
                                                     .filled = copies->fills,
                                                     .found = copies->founds};
}
