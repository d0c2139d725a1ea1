/* Rows are pieces of heap memory of their own, so that those which fall out give theirs back. When
 * the spool is full the rows are sorted and become a run on disk. Where that is not possible the
 * upper half goes; from then on nothing above the last that stayed is taken, and of the runs
 * nothing above it is given. So n rows cost n log n in all, however large n is.
 *
 * Rows with identities that moved apart into several runs are one again when those are merged:
 * where equal identities have equal places, by place. DISTINCT by something else than the row needs
 * the least place of each identity (whole, and no states): its runs are sorted by identity, and
 * what they are merged into is sorted once more. */
#include "query/spool/spool.h"

#include "query/spool/runs.h"
#include "query/value/value.h"

#include <stdlib.h>
#include <xxhash.h>

enum { BYTES_DEFAULT = 64 * 1024 * 1024, ROW_OVERHEAD = 64, TABLE_FIRST = 256 };

struct query_spool {
    struct query_spool_options options;
    struct query_spool_row **rows;
    size_t count, capacity;
    size_t bytes;
    size_t counted;                 /* of them, as memory of the query */
    struct query_spool_row **table; /* by hash of the identity */
    size_t table_size;
    bool cut;        /* rows above the bound are not taken */
    bool overflowed; /* and some of those may have been wanted */
    struct query_place bound;
    struct buf bound_bytes;
    size_t at;                        /* next to be given */
    struct query_spool_row *returned; /* to be given before that; of rows or merge */

    enum query_aggregate_kind *kinds; /* of the aggregates, which may be gone; owned */
    struct query_runs_rules rules;
    struct query_runs runs;
    struct query_merge *merge; /* of a finished spool with runs; owned */
};

struct query_spool *query_spool_new(const struct query_spool_options *options)
{
    struct query_spool *spool = MEMORY_NEW(struct query_spool);

    spool->options = *options;
    if (!spool->options.bytes_max)
        spool->options.bytes_max = BYTES_DEFAULT;
    buf_init(&spool->bound_bytes, BUF_DEFAULT_MAX);
    spool->kinds =
        memory_alloc(memory_array_size(options->aggregate_count + 1, sizeof *spool->kinds));
    for (size_t i = 0; i < options->aggregate_count; i++)
        spool->kinds[i] = options->aggregates[i].kind;
    spool->options.aggregates = NULL;
    spool->rules = (struct query_runs_rules){
        .order = options->order,
        .by_identity = options->whole && options->identities && !options->aggregate_count,
        .unite = options->identities,
        .kinds = spool->kinds,
        .kind_count = options->aggregate_count,
        .bytes_max = spool->options.bytes_max,
    };
    query_runs_init(&spool->runs, options->spill);
    return spool;
}

static void row_free(struct query_spool *spool, struct query_spool_row *row)
{
    for (size_t i = 0; i < spool->options.aggregate_count; i++)
        query_aggregate_done(&row->states[i]);
    spool->bytes -= row->bytes;
    memory_free(row);
}

static void rows_free(struct query_spool *spool)
{
    for (size_t i = 0; i < spool->count; i++)
        row_free(spool, spool->rows[i]);
    spool->count = 0;
}

void query_spool_free(struct query_spool *spool)
{
    if (!spool)
        return;
    query_merge_free(spool->merge);
    query_runs_done(&spool->runs);
    rows_free(spool);
    memory_free(spool->rows);
    memory_free(spool->kinds);
    memory_free(spool->table);
    buf_done(&spool->bound_bytes);
    memory_free(spool);
}

/* --- Order ----------------------------------------------------------------------------------- */

static int places_order(const struct query_place *a, const struct query_place *b)
{
    int order = query_place_compare(a, b);

    return order ? order : (a->rows > b->rows) - (a->rows < b->rows);
}

static int rows_order(const void *a, const void *b, void *rules)
{
    const struct query_spool_row *x = *(struct query_spool_row *const *)a;
    const struct query_spool_row *y = *(struct query_spool_row *const *)b;

    return query_runs_order(rules, &x->place, x->identity, &y->place, y->identity);
}

/* As the runs are sorted. */
static void rows_sort(struct query_spool *spool)
{
    if (spool->count)
        qsort_r(spool->rows, spool->count, sizeof *spool->rows, rows_order, &spool->rules);
    for (size_t i = 0; i < spool->count; i++)
        spool->rows[i]->index = i;
}

bool query_spool_wants(const struct query_spool *spool, const struct query_place *place)
{
    return !spool->cut || places_order(place, &spool->bound) <= 0;
}

/* --- Identities ------------------------------------------------------------------------------ */

static uint64_t identity_hash(struct slice identity)
{
    return XXH3_64bits(identity.data, identity.len);
}

static void table_put(struct query_spool *spool, struct query_spool_row *row)
{
    struct query_spool_row **place = &spool->table[row->hash & (spool->table_size - 1)];

    row->next = *place;
    *place = row;
}

static void table_make(struct query_spool *spool, size_t size)
{
    memory_free(spool->table);
    spool->table_size = size;
    spool->table = memory_alloc_zero(memory_array_size(size, sizeof *spool->table));
    for (size_t i = 0; i < spool->count; i++)
        table_put(spool, spool->rows[i]);
}

struct query_spool_row *query_spool_find(const struct query_spool *spool, struct slice identity)
{
    uint64_t hash = identity_hash(identity);
    struct query_spool_row *row;

    if (!spool->table_size)
        return NULL;
    row = spool->table[hash & (spool->table_size - 1)];
    while (row && (row->hash != hash || !slice_equal(row->identity, identity)))
        row = row->next;
    return row;
}

/* --- Room ------------------------------------------------------------------------------------ */

static void bound_set(struct query_spool *spool, const struct query_place *place)
{
    struct buf *bytes = &spool->bound_bytes;

    buf_clear(bytes);
    buf_append_slice(bytes, place->key);
    buf_append_slice(bytes, place->routing);
    spool->bound = *place;
    spool->bound.key = slice_of(bytes->data, place->key.len);
    if (place->routing.len)
        spool->bound.routing = slice_of(bytes->data + place->key.len, place->routing.len);
    spool->cut = true;
}

/* Keeps the first rows. */
static void rows_cut(struct query_spool *spool, size_t kept)
{
    rows_sort(spool);
    for (size_t i = kept; i < spool->count; i++)
        row_free(spool, spool->rows[i]);
    spool->count = kept;
    bound_set(spool, &spool->rows[kept - 1]->place);
    if (spool->options.identities)
        table_make(spool, spool->table_size);
}

static bool no_room(const struct query_spool *spool, struct error *err)
{
    return error_set(err, ERROR_QUERY_LIMIT,
                     "the query has to keep more than the %zu bytes that a request may sort, group "
                     "or compare",
                     spool->options.bytes_max);
}

/* The rows in memory become a run, if that is possible. */
static bool rows_spill(struct query_spool *spool, bool *ret_spilled, struct error *err)
{
    *ret_spilled = false;
    if (!spool->count || !query_spill_budget_works(spool->runs.budget))
        return true;
    rows_sort(spool);
    if (!query_runs_add(&spool->runs, &spool->rules, spool->rows, spool->count,
                        spool->options.context, ret_spilled, err))
        return false;
    if (!*ret_spilled)
        return true;
    rows_free(spool);
    if (spool->table_size)
        table_make(spool, spool->table_size);
    return true;
}

/* Before something is added: what is there makes room for it. */
static bool room_prepare(struct query_spool *spool, size_t bytes, struct error *err)
{
    bool spilled;

    return spool->bytes + bytes <= spool->options.bytes_max || rows_spill(spool, &spilled, err);
}

static void rows_cut_to_fit(struct query_spool *spool)
{
    while (spool->bytes > spool->options.bytes_max && spool->count > 1) {
        rows_cut(spool, spool->count / 2);
        spool->overflowed = true;
    }
}

/* Makes room after something was added. */
static bool room_make(struct query_spool *spool, struct error *err)
{
    uint64_t rows_max = spool->options.rows_max;

    if (rows_max && rows_max < SIZE_MAX / 4 && !spool->options.whole &&
        spool->count >= 2 * rows_max + TABLE_FIRST)
        rows_cut(spool, (size_t)rows_max);
    if (spool->bytes <= spool->options.bytes_max)
        return true;
    /* One row that is larger than the memory goes to disk when the next one comes. */
    if (spool->count == 1 && query_spill_budget_works(spool->runs.budget))
        return true;
    if (spool->options.whole || spool->count < 2)
        return no_room(spool, err);
    rows_cut_to_fit(spool);
    return spool->bytes <= spool->options.bytes_max || no_room(spool, err);
}

/* What the spool keeps counts as the memory of its query, while that runs. */
static bool memory_count(struct query_spool *spool, struct error *err)
{
    struct query_context *context = spool->options.context;

    if (!context || !context->memory)
        return true;
    context->kept_bytes += spool->bytes - spool->counted;
    spool->counted = spool->bytes;
    return query_memory_hold(context, err);
}

bool query_spool_settle(struct query_spool *spool, bool *ret_moved, struct error *err)
{
    *ret_moved = false;
    if (!memory_count(spool, err))
        return false;
    if (spool->bytes <= spool->options.bytes_max)
        return true;
    if (!rows_spill(spool, ret_moved, err))
        return false;
    if (*ret_moved || spool->count < 2)
        return true; /* a single row has limits of its own */
    if (spool->options.whole)
        return no_room(spool, err);
    rows_cut_to_fit(spool);
    *ret_moved = true;
    return true;
}

/* --- Rows ------------------------------------------------------------------------------------ */

static struct slice piece_copy(uint8_t **at, struct slice bytes)
{
    struct slice copy = slice_of(*at, bytes.len);

    if (bytes.len)
        memcpy(*at, bytes.data, bytes.len);
    *at += bytes.len;
    return copy;
}

static struct query_spool_row *row_new(struct query_spool *spool, const struct query_place *place,
                                       struct slice identity, const struct document_value *value)
{
    CLEANUP(buf_done) struct buf written;
    size_t states = spool->options.aggregate_count * sizeof(struct query_aggregate);
    struct query_spool_row *row;
    size_t size;
    uint8_t *at;

    buf_init(&written, SIZE_MAX / 2);
    if (value)
        query_runs_value_write(value, &written);
    size = sizeof *row + states + place->key.len + place->routing.len + identity.len + written.len;
    row = memory_alloc_zero(size);
    at = (uint8_t *)row->states + states;
    row->place = *place;
    row->place.key = piece_copy(&at, place->key);
    row->place.routing = piece_copy(&at, place->routing);
    row->identity = piece_copy(&at, identity);
    row->value =
        value ? query_runs_value_read(piece_copy(&at, buf_slice(&written))) : document_undefined();
    row->hash = identity_hash(identity);
    row->bytes = size + ROW_OVERHEAD;
    for (size_t i = 0; i < spool->options.aggregate_count; i++)
        query_aggregate_init(&row->states[i], spool->kinds[i], spool->options.order,
                             spool->options.bytes_max);
    return row;
}

static void rows_put(struct query_spool *spool, struct query_spool_row *row)
{
    if (spool->count == spool->capacity) {
        spool->capacity = spool->capacity ? spool->capacity * 2 : 64;
        spool->rows =
            memory_realloc(spool->rows, memory_array_size(spool->capacity, sizeof *spool->rows));
    }
    row->index = spool->count;
    spool->rows[spool->count++] = row;
    spool->bytes += row->bytes;
    if (!spool->options.identities)
        return;
    if (spool->count > spool->table_size)
        table_make(spool, spool->table_size ? spool->table_size * 2 : TABLE_FIRST);
    else
        table_put(spool, row);
}

/* The row is the spool's from here on, or gone. */
static bool rows_take_in(struct query_spool *spool, struct query_spool_row *row, struct error *err)
{
    bool prepared = room_prepare(spool, row->bytes, err);

    rows_put(spool, row);
    return prepared && room_make(spool, err) && memory_count(spool, err);
}

bool query_spool_add(struct query_spool *spool, const struct query_place *place,
                     struct slice identity, const struct document_value *value, bool done,
                     struct query_spool_row **ret_row, struct error *err)
{
    struct query_spool_row *row = row_new(spool, place, identity, value);

    row->done = done;
    if (!rows_take_in(spool, row, err))
        return false;
    *ret_row = NULL;
    if (spool->options.identities)
        *ret_row = query_spool_find(spool, identity);
    return true;
}

static void rows_take_out(struct query_spool *spool, struct query_spool_row *row)
{
    struct query_spool_row **link = &spool->table[row->hash & (spool->table_size - 1)];

    while (*link != row)
        link = &(*link)->next;
    *link = row->next;
    spool->rows[row->index] = spool->rows[--spool->count];
    spool->rows[row->index]->index = row->index;
}

bool query_spool_move(struct query_spool *spool, struct query_spool_row *row,
                      const struct query_place *place, const struct document_value *value,
                      bool done, struct error *err)
{
    struct query_spool_row *moved = row_new(spool, place, row->identity, value);

    assert(spool->options.identities && spool->options.aggregate_count == 0);
    moved->done = done || row->done;
    rows_take_out(spool, row);
    row_free(spool, row);
    return rows_take_in(spool, moved, err);
}

bool query_spool_feed(struct query_spool *spool, struct query_spool_row *row, size_t state,
                      const struct document_value *value, uint64_t times, struct error *err)
{
    struct query_aggregate *aggregate = &row->states[state];
    size_t before = query_aggregate_bytes(aggregate), after;

    if (!query_aggregate_add_times(aggregate, value, times, err))
        return false;
    after = query_aggregate_bytes(aggregate);
    row->bytes = row->bytes - before + after;
    spool->bytes = spool->bytes - before + after;
    return true;
}

/* --- Merging --------------------------------------------------------------------------------- */

static bool states_merge(struct query_spool *spool, struct query_spool_row *row,
                         const struct query_spool_row *other, struct error *err)
{
    for (size_t i = 0; i < spool->options.aggregate_count; i++) {
        size_t before = query_aggregate_bytes(&row->states[i]), after;

        if (!query_aggregate_merge(&row->states[i], &other->states[i], err))
            return false;
        after = query_aggregate_bytes(&row->states[i]);
        row->bytes = row->bytes - before + after;
        spool->bytes = spool->bytes - before + after;
    }
    return true;
}

/* A row of the other spool; it is freed or has become one of this. */
static bool row_merge(struct query_spool *spool, struct query_spool *other,
                      struct query_spool_row *row, struct error *err)
{
    struct query_spool_row *known =
        spool->options.identities ? query_spool_find(spool, row->identity) : NULL;
    bool merged = true;

    if (known && spool->options.aggregate_count) {
        merged = states_merge(spool, known, row, err);
    } else if (known) {
        bool before = places_order(&row->place, &known->place) < 0;

        known->done |= row->done;
        if (before)
            merged = query_spool_move(spool, known, &row->place, &row->value, row->done, err);
    } else if (query_spool_wants(spool, &row->place)) {
        other->bytes -= row->bytes;
        return rows_take_in(spool, row, err);
    }
    row_free(other, row);
    return merged;
}

/* Rows above the bound go. */
static void rows_bound(struct query_spool *spool)
{
    size_t kept = 0;

    for (size_t i = 0; i < spool->count; i++) {
        struct query_spool_row *row = spool->rows[i];

        if (query_spool_wants(spool, &row->place)) {
            row->index = kept;
            spool->rows[kept++] = row;
        } else {
            row_free(spool, row);
        }
    }
    spool->count = kept;
    if (spool->options.identities && spool->table_size)
        table_make(spool, spool->table_size);
}

/* Runs stay in the order they were made: what is in memory here comes before those of the other. If
 * it cannot be spilled it is merged behind them, and only the order within lists shows it. */
static bool runs_merge(struct query_spool *spool, struct query_spool *other, struct error *err)
{
    bool spilled;

    if (!other->runs.count)
        return true;
    if (!rows_spill(spool, &spilled, err))
        return false;
    query_runs_adopt(&spool->runs, &other->runs);
    return true;
}

bool query_spool_merge(struct query_spool *spool, struct query_spool *other, struct error *err)
{
    bool merged = runs_merge(spool, other, err);
    size_t i = 0;

    for (; i < other->count && merged; i++)
        merged = row_merge(spool, other, other->rows[i], err);
    for (; i < other->count; i++)
        row_free(other, other->rows[i]);
    other->count = 0;
    if (merged && other->overflowed) {
        if (query_spool_wants(spool, &other->bound))
            bound_set(spool, &other->bound);
        spool->overflowed = true;
        rows_bound(spool);
    }
    return merged;
}

/* --- Giving ---------------------------------------------------------------------------------- */

/* Sorts by place what the runs by identity are merged into. */
static bool identities_sort(struct query_spool *spool, struct error *err)
{
    struct query_spool_options options = spool->options;
    CLEANUP(query_spool_free) struct query_spool *sorted = NULL;
    CLEANUP(query_merge_free) struct query_merge *merge = NULL;
    struct query_spool_row *row, *ignored;
    struct query_spool swapped;

    options.identities = options.whole = false;
    options.spill = spool->runs.budget;
    sorted = query_spool_new(&options);
    if (!query_merge_new(&spool->rules, spool->runs.list, spool->runs.count, spool->rows,
                         spool->count, &merge, err))
        return false;
    for (;;) {
        if ((options.context && !query_work(options.context, 4, err)) ||
            !query_merge_next(merge, &row, err))
            return false;
        if (!row)
            break;
        if (!row->done && query_spool_wants(sorted, &row->place) &&
            !query_spool_add(sorted, &row->place, SLICE_NONE, &row->value, false, &ignored, err))
            return false;
    }
    swapped = *spool;
    *spool = *sorted;
    *sorted = swapped;
    if (options.context)
        query_spool_uncount(sorted, options.context);
    return true;
}

/* A spool that waits for its next page is better on disk than in memory, if it is there in part. */
static bool runs_finish(struct query_spool *spool, struct error *err)
{
    bool spilled;

    return rows_spill(spool, &spilled, err) &&
           query_runs_finish(&spool->runs, &spool->rules, spool->options.context, err);
}

bool query_spool_finish(struct query_spool *spool, struct error *err)
{
    rows_sort(spool);
    if (spool->runs.count && !runs_finish(spool, err))
        return false;
    if (spool->runs.count && spool->rules.by_identity &&
        (!identities_sort(spool, err) || !query_spool_finish(spool, err)))
        return false;
    if (spool->rules.by_identity) {
        spool->rules.by_identity = false; /* all are in memory */
        rows_sort(spool);
    }
    spool->options.context = NULL;
    spool->at = 0;
    return spool->merge || !spool->runs.count ||
           query_merge_new(&spool->rules, spool->runs.list, spool->runs.count, spool->rows,
                           spool->count, &spool->merge, err);
}

/* Above the bound rows are not whole, or nobody will ask for them. */
static bool merged_has_more(struct query_spool *spool, bool *ret_more, struct error *err)
{
    const struct query_place *place;

    if (!query_merge_look(spool->merge, &place, err))
        return false;
    *ret_more = place && query_spool_wants(spool, place);
    return true;
}

static bool merged_next(struct query_spool *spool, struct query_spool_row **ret_row,
                        struct error *err)
{
    bool more;

    do {
        if (!merged_has_more(spool, &more, err) ||
            (more && !query_merge_next(spool->merge, ret_row, err)))
            return false;
    } while (more && (*ret_row)->done);
    if (!more)
        *ret_row = NULL;
    return true;
}

static void done_pass(struct query_spool *spool)
{
    while (spool->at < spool->count && spool->rows[spool->at]->done)
        spool->at++;
}

bool query_spool_next(struct query_spool *spool, struct query_spool_row **ret_row,
                      struct error *err)
{
    *ret_row = TAKE(spool->returned);
    if (*ret_row)
        return true;
    if (spool->merge)
        return merged_next(spool, ret_row, err);
    done_pass(spool);
    if (spool->at < spool->count)
        *ret_row = spool->rows[spool->at++];
    return true;
}

void query_spool_return(struct query_spool *spool, struct query_spool_row *row)
{
    assert(!spool->returned);
    if (spool->merge)
        spool->returned = row;
    else
        spool->at--;
}

bool query_spool_has_more(struct query_spool *spool, bool *ret_more, struct error *err)
{
    *ret_more = spool->returned;
    if (*ret_more)
        return true;
    if (spool->merge)
        return merged_has_more(spool, ret_more, err);
    done_pass(spool);
    *ret_more = spool->at < spool->count;
    return true;
}

bool query_spool_shrink(struct query_spool *spool)
{
    struct error ignored;
    bool spilled;

    if (spool->merge || spool->at >= spool->count)
        return false;
    if (!query_runs_add(&spool->runs, &spool->rules, spool->rows + spool->at,
                        spool->count - spool->at, NULL, &spilled, &ignored) ||
        !spilled)
        return false;
    rows_free(spool);
    return query_merge_new(&spool->rules, spool->runs.list, spool->runs.count, NULL, 0,
                           &spool->merge, &ignored);
}

bool query_spool_overflowed(const struct query_spool *spool)
{
    return spool->overflowed;
}

size_t query_spool_bytes(const struct query_spool *spool)
{
    return spool->bytes + (spool->merge ? query_merge_bytes(spool->merge) : 0);
}

uint64_t query_spool_spilled(const struct query_spool *spool)
{
    return spool->runs.count ? query_spill_budget_bytes(spool->runs.budget) : 0;
}

void query_spool_uncount(struct query_spool *spool, struct query_context *context)
{
    assert(context->kept_bytes >= spool->counted);
    context->kept_bytes -= spool->counted;
    spool->counted = 0;
}

size_t query_spool_count(const struct query_spool *spool)
{
    return spool->count;
}
