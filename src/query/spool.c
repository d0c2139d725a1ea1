/* Rows are pieces of heap memory of their own, so that those which fall out give theirs back. When
 * the spool is full the rows are sorted and the upper half goes; from then on nothing above the
 * last that stayed is taken. So n rows cost n log n in all, however large n is. */
#include "query/spool.h"

#include "document/bson.h"
#include "query/value.h"

#include <stdlib.h>
#include <xxhash.h>

enum { BYTES_DEFAULT = 64 * 1024 * 1024, ROW_OVERHEAD = 64, TABLE_FIRST = 256 };

struct query_spool {
    struct query_spool_options options;
    struct query_spool_row **rows;
    size_t count, capacity;
    size_t bytes;
    struct query_spool_row **table; /* by hash of the identity */
    size_t table_size;
    bool cut;        /* rows above the bound are not taken */
    bool overflowed; /* and some of those may have been wanted */
    struct query_place bound;
    struct buf bound_bytes;
    size_t at; /* next to be given */
};

struct query_spool *query_spool_new(const struct query_spool_options *options)
{
    struct query_spool *spool = MEMORY_NEW(struct query_spool);

    spool->options = *options;
    if (!spool->options.bytes_max)
        spool->options.bytes_max = BYTES_DEFAULT;
    buf_init(&spool->bound_bytes, BUF_DEFAULT_MAX);
    return spool;
}

static void row_free(struct query_spool *spool, struct query_spool_row *row)
{
    for (size_t i = 0; i < spool->options.aggregate_count; i++)
        query_aggregate_done(&row->states[i]);
    spool->bytes -= row->bytes;
    memory_free(row);
}

void query_spool_free(struct query_spool *spool)
{
    if (!spool)
        return;
    for (size_t i = 0; i < spool->count; i++)
        row_free(spool, spool->rows[i]);
    memory_free(spool->rows);
    memory_free(spool->table);
    buf_done(&spool->bound_bytes);
    memory_free(spool);
}

/* --- Order ----------------------------------------------------------------------------------- */

static int places_order(const struct query_place *a, const struct query_place *b,
                        bool ties_backwards)
{
    int order = query_place_compare(a, b, ties_backwards);

    return order ? order : (a->rows > b->rows) - (a->rows < b->rows);
}

static int rows_order(const void *a, const void *b, void *spool)
{
    return places_order(&(*(struct query_spool_row *const *)a)->place,
                        &(*(struct query_spool_row *const *)b)->place,
                        ((struct query_spool *)spool)->options.ties_backwards);
}

bool query_spool_wants(const struct query_spool *spool, const struct query_place *place)
{
    return !spool->cut || places_order(place, &spool->bound, spool->options.ties_backwards) <= 0;
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
    qsort_r(spool->rows, spool->count, sizeof *spool->rows, rows_order, spool);
    for (size_t i = kept; i < spool->count; i++)
        row_free(spool, spool->rows[i]);
    spool->count = kept;
    for (size_t i = 0; i < kept; i++)
        spool->rows[i]->index = i;
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

/* Makes room after something was added. */
static bool room_make(struct query_spool *spool, struct error *err)
{
    uint64_t rows_max = spool->options.rows_max;

    if (rows_max && rows_max < SIZE_MAX / 4 && !spool->options.whole &&
        spool->count >= 2 * rows_max + TABLE_FIRST)
        rows_cut(spool, (size_t)rows_max);
    if (spool->bytes <= spool->options.bytes_max)
        return true;
    if (spool->options.whole || spool->count < 2)
        return no_room(spool, err);
    while (spool->bytes > spool->options.bytes_max && spool->count > 1) {
        rows_cut(spool, spool->count / 2);
        spool->overflowed = true;
    }
    return spool->bytes <= spool->options.bytes_max || no_room(spool, err);
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

/* Values are kept as the BSON of an array of one. */
static void value_write(const struct document_value *value, struct buf *buf)
{
    size_t begin = document_begin(buf);

    document_append(buf, SLICE("0"), value);
    document_end(buf, begin);
}

static struct document_value value_read(struct slice bytes)
{
    struct document_value value = document_undefined();

    (void)document_find_index(bytes, 0, &value);
    return value;
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
        value_write(value, &written);
    size = sizeof *row + states + place->key.len + place->routing.len + identity.len + written.len;
    row = memory_alloc_zero(size);
    at = (uint8_t *)row->states + states;
    row->place = *place;
    row->place.key = piece_copy(&at, place->key);
    row->place.routing = piece_copy(&at, place->routing);
    row->identity = piece_copy(&at, identity);
    row->value = value ? value_read(piece_copy(&at, buf_slice(&written))) : document_undefined();
    row->hash = identity_hash(identity);
    row->bytes = size + ROW_OVERHEAD;
    for (size_t i = 0; i < spool->options.aggregate_count; i++)
        query_aggregate_init(&row->states[i], spool->options.aggregates[i].kind,
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

bool query_spool_add(struct query_spool *spool, const struct query_place *place,
                     struct slice identity, const struct document_value *value, bool done,
                     struct query_spool_row **ret_row, struct error *err)
{
    struct query_spool_row *row = row_new(spool, place, identity, value);

    row->done = done;
    rows_put(spool, row);
    if (!room_make(spool, err))
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
    rows_put(spool, moved);
    return room_make(spool, err);
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
        bool before = places_order(&row->place, &known->place, spool->options.ties_backwards) < 0;

        known->done |= row->done;
        if (before)
            merged = query_spool_move(spool, known, &row->place, &row->value, row->done, err);
    } else if (query_spool_wants(spool, &row->place)) {
        other->bytes -= row->bytes;
        rows_put(spool, row);
        return room_make(spool, err);
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

bool query_spool_merge(struct query_spool *spool, struct query_spool *other, struct error *err)
{
    bool merged = true;
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

void query_spool_finish(struct query_spool *spool)
{
    if (spool->count)
        qsort_r(spool->rows, spool->count, sizeof *spool->rows, rows_order, spool);
    spool->at = 0;
}

struct query_spool_row *query_spool_next(struct query_spool *spool)
{
    while (spool->at < spool->count && spool->rows[spool->at]->done)
        spool->at++;
    return spool->at < spool->count ? spool->rows[spool->at++] : NULL;
}

bool query_spool_has_more(const struct query_spool *spool)
{
    return spool->at < spool->count;
}

bool query_spool_overflowed(const struct query_spool *spool)
{
    return spool->overflowed;
}

size_t query_spool_bytes(const struct query_spool *spool)
{
    return spool->bytes;
}

size_t query_spool_count(const struct query_spool *spool)
{
    return spool->count;
}
