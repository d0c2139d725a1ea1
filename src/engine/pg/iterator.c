/* Iterators fetch pages, each from where the one before ended, growing while the caller keeps
 * going: most iterators are read for a few entries, some for all. Bytes bound a page as well as
 * rows. A server-side cursor would save the seek of each page (some 20 us) and cost a round trip
 * to open and one to close.
 *
 * All pages come from one snapshot: the caller's, or one of the iterator's own taken along with the
 * first page when it is made. If that page is all there is, the snapshot is let go at once and
 * seeks are answered from the page: a short range costs two round trips and holds no connection.
 *
 * Long keys (key.c) make a tree. path says in which of its nodes we are; meeting a mark, the rest
 * of the page is dropped and the node below is walked, then the node above from beside the mark. */
#include "engine/pg/pg_private.h"

enum {
    PAGE_ROWS_FIRST = 64,
    PAGE_ROWS_MAX = 4096,
    PAGE_BYTES_MAX = 4 * 1024 * 1024, /* of values; the last may pass it */
};

struct pg_iterator {
    struct engine_iterator base; /* must be first */
    struct pg_lease *lease;      /* NULL: the page is whole, or the iterator is cold */
    struct pg_lease *own;        /* the same if the iterator made it */
    uint32_t partition;
    bool backwards, cold;

    struct engine_range range;  /* as given; owned */
    struct engine_range bounds; /* what a seek left of it; its slices are in range or in sought */
    struct buf sought;

    struct buf path;      /* the node we are in; empty: the root */
    struct buf low, high; /* what is left of it after the page */
    bool node_done;       /* nothing is left */

    struct pg_answer answer;
    const PGresult *page; /* of answer; NULL: fetch */
    int row, rows;
    bool whole; /* the page is all of range */
    uint64_t page_rows;
    struct buf key; /* a long key, put together */
};

static struct slice key_of(const struct pg_iterator *iterator, int row)
{
    return pg_field(iterator->page, row, 0);
}

/* --- Pages ----------------------------------------------------------------------------------- */

static void page_drop(struct pg_iterator *iterator)
{
    iterator->page = NULL;
    pg_answer_done(&iterator->answer);
}

/* What is left behind the page's last row. */
static void page_settle(struct pg_iterator *iterator)
{
    struct buf *bound = iterator->backwards ? &iterator->high : &iterator->low;
    uint64_t bytes = 0;

    iterator->page = pg_answer_last(&iterator->answer);
    iterator->row = 0;
    iterator->rows = PQntuples(iterator->page);
    for (int row = 0; row < iterator->rows; row++)
        bytes += (uint64_t)PQgetlength(iterator->page, row, 1);
    iterator->node_done = (uint64_t)iterator->rows < iterator->page_rows && bytes < PAGE_BYTES_MAX;
    if (!iterator->node_done) {
        buf_clear(bound);
        buf_append_slice(bound, key_of(iterator, iterator->rows - 1));
        if (!iterator->backwards)
            buf_append_byte(bound, 0x00); /* just after it */
    }
    iterator->page_rows = MIN(iterator->page_rows * 2, (uint64_t)PAGE_ROWS_MAX);
}

/* Fetches what begins at the bounds, opening the iterator's own snapshot on the way. */
static bool page_fetch(struct pg_iterator *iterator, struct error *err)
{
    struct pg_engine *engine = pg_engine(iterator->base.engine);
    struct pg_number rows, bytes;
    struct pg_param params[] = {
        pg_bytes(buf_slice(&iterator->low)),
        pg_bytes(buf_slice(&iterator->high)),
        pg_number(&rows, iterator->page_rows),
        pg_number(&bytes, PAGE_BYTES_MAX),
    };
    struct pg_ask ask = {iterator->backwards ? PG_PAGE_DOWN : PG_PAGE_UP, iterator->partition,
                         params, ARRAY_LEN(params)};

    page_drop(iterator);
    if (iterator->lease) {
        if (!pg_lease_ask(iterator->lease, &ask, &iterator->answer, err))
            return false;
    } else {
        if (!pg_lease_open(&engine->pool, &ask, &iterator->own, &iterator->answer, err))
            return false;
        iterator->lease = iterator->own;
    }
    page_settle(iterator);
    return true;
}

/* --- Nodes ----------------------------------------------------------------------------------- */

static void node_enter(struct pg_iterator *iterator)
{
    struct slice path = buf_slice(&iterator->path);

    page_drop(iterator);
    buf_clear(&iterator->low);
    buf_clear(&iterator->high);
    pg_key_low(path, iterator->bounds.min, &iterator->low);
    pg_key_high(path, iterator->bounds.max, &iterator->high);
    iterator->node_done = false;
}

static void node_descend(struct pg_iterator *iterator, struct slice mark)
{
    struct slice head = pg_key_piece(buf_slice(&iterator->path), mark);

    buf_append_slice(&iterator->path, head); /* before the page with the mark goes */
    node_enter(iterator);
}

static void node_ascend(struct pg_iterator *iterator)
{
    struct slice whole = buf_slice(&iterator->path);
    struct slice above = slice_first(whole, whole.len - PG_HEAD);
    struct slice head = slice_skip(whole, above.len);
    struct buf *bound = iterator->backwards ? &iterator->high : &iterator->low;

    iterator->path.len = above.len;
    node_enter(iterator);
    buf_clear(bound);
    pg_key_beside_mark(above, head, iterator->backwards, bound);
}

static void walk_restart(struct pg_iterator *iterator)
{
    buf_clear(&iterator->path);
    node_enter(iterator);
    iterator->page_rows = PAGE_ROWS_FIRST;
}

/* --- Making and freeing ---------------------------------------------------------------------- */

static struct slice bound_copy(struct slice bound)
{
    uint8_t *copy;

    if (!bound.data)
        return SLICE_NONE;
    copy = memory_alloc(MAX(bound.len, (size_t)1));
    memcpy(copy, bound.data, bound.len);
    return slice_of(copy, bound.len);
}

static struct pg_iterator *iterator_alloc(struct engine *engine, struct engine_snapshot *snapshot,
                                          uint32_t partition, struct engine_range range,
                                          bool backwards, enum engine_reach reach)
{
    struct pg_iterator *iterator = MEMORY_NEW(struct pg_iterator);

    iterator->base.engine = engine;
    iterator->lease = pg_snapshot_lease(snapshot);
    iterator->partition = partition;
    iterator->backwards = backwards;
    iterator->cold = reach == ENGINE_READ_CACHED;
    iterator->range.min = bound_copy(range.min);
    iterator->range.max = bound_copy(range.max);
    iterator->bounds = iterator->range;
    buf_init(&iterator->sought, BUF_DEFAULT_MAX);
    buf_init(&iterator->path, BUF_DEFAULT_MAX);
    buf_init(&iterator->low, BUF_DEFAULT_MAX);
    buf_init(&iterator->high, BUF_DEFAULT_MAX);
    buf_init(&iterator->key, BUF_DEFAULT_MAX);
    walk_restart(iterator);
    return iterator;
}

void pg_iterator_free(struct engine_iterator *base)
{
    struct pg_iterator *iterator = (struct pg_iterator *)base;

    page_drop(iterator);
    pg_lease_close(iterator->own);
    memory_free((void *)iterator->range.min.data);
    memory_free((void *)iterator->range.max.data);
    buf_done(&iterator->sought);
    buf_done(&iterator->path);
    buf_done(&iterator->low);
    buf_done(&iterator->high);
    buf_done(&iterator->key);
    memory_free(iterator);
}

static bool page_has_mark(const struct pg_iterator *iterator)
{
    for (int row = 0; row < iterator->rows; row++)
        if (pg_key_is_mark(SLICE_NONE, key_of(iterator, row)))
            return true;
    return false;
}

/* The first page, as of now. If it is all, nothing more will be asked. */
static bool page_fetch_first(struct pg_iterator *iterator, struct error *err)
{
    struct pg_engine *engine = pg_engine(iterator->base.engine);

    if (pg_partition_is_doomed(engine, iterator->partition))
        return error_set(err, ERROR_PARTITION_UNKNOWN, "no partition %u", iterator->partition);
    if (!page_fetch(iterator, err))
        return false;
    iterator->whole = iterator->node_done && !page_has_mark(iterator);
    if (iterator->whole) {
        pg_lease_close(TAKE(iterator->own));
        iterator->lease = NULL;
    }
    return true;
}

bool pg_iterator_new(struct engine *engine, struct engine_snapshot *snapshot, uint32_t partition,
                     struct engine_range range, bool backwards, enum engine_reach reach,
                     struct engine_iterator **ret_iterator, struct error *err)
{
    struct pg_iterator *iterator =
        iterator_alloc(engine, snapshot, partition, range, backwards, reach);

    pg_engine(engine)->reads++;
    if (!iterator->cold && !snapshot && !page_fetch_first(iterator, err)) {
        pg_iterator_free(&iterator->base);
        return false;
    }
    *ret_iterator = &iterator->base;
    return true;
}

/* --- Walking --------------------------------------------------------------------------------- */

static struct slice key_whole(struct pg_iterator *iterator, struct slice stored)
{
    struct slice path = buf_slice(&iterator->path), piece = pg_key_piece(path, stored);

    if (path.len == 0)
        return piece;
    buf_clear(&iterator->key);
    buf_append_slice(&iterator->key, path);
    buf_append_slice(&iterator->key, piece);
    return buf_slice(&iterator->key);
}

bool pg_iterator_next(struct engine_iterator *base, struct engine_entry *ret_entry,
                      struct error *err)
{
    struct pg_iterator *iterator = (struct pg_iterator *)base;

    if (iterator->cold) {
        *ret_entry = (struct engine_entry){.found = ENGINE_COLD};
        return true;
    }
    for (;;) {
        if (iterator->page && iterator->row < iterator->rows) {
            struct slice stored = key_of(iterator, iterator->row);

            if (pg_key_is_mark(buf_slice(&iterator->path), stored)) {
                node_descend(iterator, stored);
                continue;
            }
            *ret_entry = (struct engine_entry){ENGINE_FOUND, key_whole(iterator, stored),
                                               pg_field(iterator->page, iterator->row, 1)};
            iterator->row++;
            return true;
        }
        if (!iterator->node_done) {
            if (!page_fetch(iterator, err))
                return false;
        } else if (iterator->path.len) {
            node_ascend(iterator);
        } else {
            *ret_entry = (struct engine_entry){.found = ENGINE_ABSENT};
            return true;
        }
    }
}

/* The place in a page that holds everything: the first row at or behind the key. */
static void page_seek(struct pg_iterator *iterator, struct slice key)
{
    int low = 0, high = iterator->rows;

    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = slice_compare(key_whole(iterator, key_of(iterator, middle)), key);

        if (iterator->backwards ? order > 0 : order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    iterator->row = low;
}

/* Narrows the bounds to what lies at or behind the key, never beyond the range. */
static void bounds_seek(struct pg_iterator *iterator, struct slice key)
{
    struct engine_range *bounds = &iterator->bounds;

    *bounds = iterator->range;
    buf_clear(&iterator->sought);
    buf_append_slice(&iterator->sought, key);
    if (iterator->backwards) {
        buf_append_byte(&iterator->sought, 0x00); /* just after the key: high bounds exclude */
        if (!bounds->max.data || slice_compare(buf_slice(&iterator->sought), bounds->max) < 0)
            bounds->max = buf_slice(&iterator->sought);
    } else if (key.len && slice_compare(key, bounds->min) > 0) {
        bounds->min = buf_slice(&iterator->sought);
    }
}

bool pg_iterator_seek(struct engine_iterator *base, struct slice key, struct error *err UNUSED)
{
    struct pg_iterator *iterator = (struct pg_iterator *)base;

    if (iterator->cold)
        return true;
    if (iterator->whole) {
        page_seek(iterator, key);
        return true;
    }
    bounds_seek(iterator, key);
    walk_restart(iterator);
    return true;
}
