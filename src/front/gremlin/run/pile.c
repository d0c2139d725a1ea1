/* Runs are sorted when they are written, so that reading merges them: a heap of the first of each.
 * More runs than can be read at once are merged before, the shortest first by construction: the
 * latest FAN_IN of one level become one of the next. Keys of traversers on disk are unpacked when
 * they come to the front, traversers only when they are given.
 *
 * On disk a traverser is its length (4 bytes), its place (8), its keys, then value, sack, trail,
 * bulk, loops and whether the value ends the trail, which is then not written twice.
 *
 * A pile without keys, or whose runs follow one another, needs no merging of runs, but the heap
 * costs it nothing: the places decide with the first look. */
#include "front/gremlin/run/pile_private.h"

enum {
    FAN_IN = 16,
    ROWS_MIN = 64, /* of a run: however little memory there is, so many are worth a run */
    READ_BYTES = 32 * 1024,
    ROW_BYTES_MAX = 1 << 30,
};

struct gremlin_pile_file {
    struct query_spill_run run;
    unsigned level;
};

/* One run that is read: its first traverser. */
struct source {
    struct query_spill_reader reader;
    struct slice row; /* behind the keys, good until the reader goes on */
    size_t row_len;   /* of the whole in the run */
    uint64_t place;
    struct gremlin_value *keys;
    bool in_memory; /* it is not a run, but what is in memory */
};

struct gremlin_pile_merge {
    struct source sources[FAN_IN + 1];
    size_t source_count;
    struct source *heap[FAN_IN + 1]; /* those that have one left, the first of all in front */
    size_t count;
};

bool gremlin_run_should_spill(const struct gremlin_run *run, size_t used_before)
{
    size_t used = gremlin_heap_used(run->heap);

    return run->spill && used > used_before && used - used_before > run->options->spill_at &&
           query_spill_budget_works(run->spill);
}

/* --- Order ------------------------------------------------------------------------------------ */

static int keys_compare(const struct gremlin_pile *pile, const struct gremlin_value *left,
                        const struct gremlin_value *right)
{
    for (size_t i = 0; i < pile->width; i++) {
        int order = gremlin_order(left[i], right[i]);

        if (order)
            return pile->by && pile->by[i].order == ORDER_DESC ? -order : order;
    }
    return 0;
}

static int sorted_compare(const void *a, const void *b, void *self)
{
    const struct gremlin_pile *pile = self;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    int order =
        keys_compare(pile, pile->keys + left * pile->width, pile->keys + right * pile->width);

    return order ? order : (left > right) - (left < right);
}

static void pile_sort(struct gremlin_run *run, struct gremlin_pile *pile)
{
    size_t count = pile->walkers.count;

    if (!pile->width || pile->sorted || !count)
        return;
    pile->sorted = gremlin_heap_alloc(run->heap, count * sizeof *pile->sorted);
    for (size_t i = 0; i < count; i++)
        pile->sorted[i] = (uint32_t)i;
    qsort_r(pile->sorted, count, sizeof *pile->sorted, sorted_compare, pile);
}

static void sorted_drop(struct gremlin_run *run, struct gremlin_pile *pile)
{
    if (pile->sorted)
        gremlin_heap_release(run->heap, pile->sorted, pile->walkers.count * sizeof *pile->sorted);
    pile->sorted = NULL;
}

/* --- Memory ----------------------------------------------------------------------------------- */

static void memory_clear(struct gremlin_run *run, struct gremlin_pile *pile)
{
    sorted_drop(run, pile);
    for (size_t i = 0; i < pile->walkers.count * pile->width; i++)
        gremlin_value_unref(pile->keys[i]);
    if (pile->keys)
        gremlin_heap_release(run->heap, pile->keys, pile->room * pile->width * sizeof *pile->keys);
    if (pile->places)
        gremlin_heap_release(run->heap, pile->places, pile->room * sizeof *pile->places);
    gremlin_walkers_done(run, &pile->walkers);
    pile->keys = NULL;
    pile->places = NULL;
    pile->room = pile->at = 0;
}

static void merge_free(struct gremlin_run *run, struct gremlin_pile *pile)
{
    struct gremlin_pile_merge *merge = pile->merge;

    if (!merge)
        return;
    for (size_t i = 0; i < merge->source_count; i++) {
        struct source *source = &merge->sources[i];

        if (source->in_memory)
            continue;
        for (size_t k = 0; k < pile->width; k++)
            gremlin_value_unref(source->keys[k]);
        gremlin_heap_release(run->heap, source->keys, (pile->width + 1) * sizeof *source->keys);
        query_spill_reader_done(&source->reader);
    }
    memory_free(merge);
    pile->merge = NULL;
}

void gremlin_pile_done(struct gremlin_run *run, struct gremlin_pile *pile)
{
    merge_free(run, pile);
    memory_clear(run, pile);
    for (size_t i = 0; i < pile->file_count; i++)
        query_spill_run_drop(&pile->files[i].run);
    memory_free(pile->files);
    query_spill_file_unref(pile->file);
    gremlin_pile_init(pile, pile->width, pile->by);
}

static void room_make(struct gremlin_run *run, struct gremlin_pile *pile)
{
    size_t room = pile->room ? pile->room * 2 : 16;

    if (pile->width)
        pile->keys =
            gremlin_heap_grow(run->heap, pile->keys, pile->room * pile->width * sizeof *pile->keys,
                              room * pile->width * sizeof *pile->keys);
    pile->places = gremlin_heap_grow(run->heap, pile->places, pile->room * sizeof *pile->places,
                                     room * sizeof *pile->places);
    pile->room = room;
}

/* --- To disk ---------------------------------------------------------------------------------- */

static void row_pack(struct gremlin_run *run, const struct gremlin_pile *pile, size_t number,
                     struct buf *out)
{
    const struct gremlin_walker *walker = &pile->walkers.items[number];
    struct gremlin_value trail = GREMLIN_NOTHING;
    size_t begin = out->len;
    uint32_t len;

    buf_append_le32(out, 0);
    buf_append_le64(out, pile->places[number]);
    for (size_t i = 0; i < pile->width; i++)
        gremlin_pack(&run->packing, pile->keys[number * pile->width + i], out);
    if (walker->trail)
        trail = (struct gremlin_value){.type = GREMLIN_PATH, .object = &walker->trail->object};
    buf_append_byte(out, walker->on_trail);
    if (!walker->on_trail)
        gremlin_pack(&run->packing, walker->value, out);
    gremlin_pack(&run->packing, walker->sack, out);
    gremlin_pack(&run->packing, trail, out);
    buf_append_le64(out, walker->bulk);
    buf_append(out, walker->loops, sizeof walker->loops);
    if (buf_overflowed(out))
        return;
    len = (uint32_t)(out->len - begin - sizeof len);
    memcpy(out->data + begin, &(uint32_t){htole32(len)}, sizeof len);
}

static void files_add(struct gremlin_pile *pile, struct query_spill_run spilled, unsigned level)
{
    if (pile->file_count == pile->file_room) {
        pile->file_room = pile->file_room ? 2 * pile->file_room : 8;
        pile->files =
            memory_realloc(pile->files, memory_array_size(pile->file_room, sizeof *pile->files));
    }
    pile->files[pile->file_count++] = (struct gremlin_pile_file){spilled, level};
}

/* Writes what is in memory as a run. What cannot be written stays where it is. */
static bool memory_spill(struct gremlin_run *run, struct gremlin_pile *pile, struct error *err)
{
    size_t count = pile->walkers.count;
    struct query_spill_writer writer;
    struct query_spill_run spilled;
    struct buf row;
    bool whole = true;

    if (!query_work(&run->context, count, err))
        return false;
    pile_sort(run, pile);
    buf_init(&row, ROW_BYTES_MAX);
    query_spill_writer_init(&writer, &pile->file, run->spill);
    for (size_t i = 0; i < count && whole; i++) {
        buf_clear(&row);
        row_pack(run, pile, pile->sorted ? pile->sorted[i] : i, &row);
        whole = !buf_overflowed(&row);
        query_spill_writer_append(&writer, buf_slice(&row));
    }
    buf_done(&row);
    if (!whole)
        writer.failed = true;
    if (query_spill_writer_end(&writer, &spilled)) {
        files_add(pile, spilled, 0);
        memory_clear(run, pile);
    }
    return true;
}

/* --- From disk -------------------------------------------------------------------------------- */

static bool changed(struct error *err)
{
    return error_set(err, ERROR_SPILL, "what a traversal had put aside on disk has changed");
}

static uint64_t number_of(const uint8_t *bytes, size_t len)
{
    uint64_t number = 0;

    for (size_t i = len; i-- > 0;)
        number = number << 8 | bytes[i];
    return number;
}

/* The next traverser of a run comes to its front. *ret_left false: there are no more. */
static bool source_step(struct gremlin_run *run, const struct gremlin_pile *pile,
                        struct source *source, bool *ret_left, struct error *err)
{
    struct slice bytes;
    size_t len;

    if (source->row_len)
        query_spill_reader_take(&source->reader, source->row_len);
    source->row_len = 0;
    *ret_left = query_spill_reader_has_more(&source->reader);
    if (!*ret_left)
        return true;
    if (!query_spill_reader_look(&source->reader, sizeof(uint32_t), &bytes, err))
        return false;
    len = (size_t)number_of(bytes.data, sizeof(uint32_t)) + sizeof(uint32_t);
    if (len > ROW_BYTES_MAX || len < sizeof(uint32_t) + sizeof(uint64_t))
        return changed(err);
    if (!query_spill_reader_look(&source->reader, len, &bytes, err))
        return false;
    source->row_len = len;
    source->place = number_of(bytes.data + sizeof(uint32_t), sizeof(uint64_t));
    bytes = slice_of(bytes.data + sizeof(uint32_t) + sizeof(uint64_t),
                     len - sizeof(uint32_t) - sizeof(uint64_t));
    for (size_t i = 0; i < pile->width; i++) {
        struct gremlin_value key;

        if (!gremlin_unpack(&run->packing, &bytes, &key, err))
            return false;
        gremlin_value_replace_take(&source->keys[i], key);
    }
    source->row = bytes;
    return true;
}

static bool walker_unpack(struct gremlin_run *run, struct slice bytes,
                          struct gremlin_walker *ret_walker, struct error *err)
{
    struct gremlin_walker walker = {0};
    struct gremlin_value trail = GREMLIN_NOTHING;
    bool good, on_trail;

    if (!bytes.len)
        return changed(err);
    on_trail = bytes.data[0];
    bytes = slice_of(bytes.data + 1, bytes.len - 1);
    good = (on_trail || gremlin_unpack(&run->packing, &bytes, &walker.value, err)) &&
           gremlin_unpack(&run->packing, &bytes, &walker.sack, err) &&
           gremlin_unpack(&run->packing, &bytes, &trail, err);
    if (good && ((!gremlin_is_null(trail) && trail.type != GREMLIN_PATH) ||
                 (on_trail && gremlin_is_null(trail)) ||
                 bytes.len != sizeof(uint64_t) + sizeof walker.loops))
        good = changed(err);
    if (!good) {
        gremlin_value_unref(trail);
        gremlin_walker_done(&walker);
        return false;
    }
    walker.trail = gremlin_is_null(trail) ? NULL : gremlin_path(trail);
    walker.on_trail = on_trail;
    if (on_trail)
        walker.value = gremlin_value_ref(walker.trail->value);
    walker.bulk = number_of(bytes.data, sizeof(uint64_t));
    memcpy(walker.loops, bytes.data + sizeof(uint64_t), sizeof walker.loops);
    *ret_walker = walker;
    return true;
}

/* --- Merging ---------------------------------------------------------------------------------- */

static bool comes_before(const struct gremlin_pile *pile, const struct source *a,
                         const struct source *b)
{
    int order = keys_compare(pile, a->keys, b->keys);

    return order ? order < 0 : a->place < b->place;
}

static void heap_sink(const struct gremlin_pile *pile, struct gremlin_pile_merge *merge, size_t at)
{
    for (;;) {
        size_t child = 2 * at + 1;
        struct source *moved = merge->heap[at];

        if (child >= merge->count)
            return;
        if (child + 1 < merge->count &&
            comes_before(pile, merge->heap[child + 1], merge->heap[child]))
            child++;
        if (!comes_before(pile, merge->heap[child], moved))
            return;
        merge->heap[at] = merge->heap[child];
        merge->heap[child] = moved;
        at = child;
    }
}

/* What is in memory, as a source: its next. */
static bool memory_step(struct gremlin_pile *pile, struct source *source)
{
    size_t number;

    if (pile->at == pile->walkers.count)
        return false;
    number = pile->sorted ? pile->sorted[pile->at] : pile->at;
    source->keys = pile->width ? pile->keys + number * pile->width : NULL;
    source->place = pile->places[number];
    pile->at++;
    return true;
}

/* Begins to read runs, and with them what is in memory. */
static bool merge_begin(struct gremlin_run *run, struct gremlin_pile *pile,
                        const struct gremlin_pile_file *files, size_t count, bool memory,
                        struct error *err)
{
    struct gremlin_pile_merge *merge = memory_alloc_zero(sizeof *merge);
    bool left;

    assert(count <= FAN_IN);
    pile->merge = merge;
    for (size_t i = 0; i < count; i++) {
        struct source *source = &merge->sources[merge->source_count++];

        source->keys = gremlin_heap_alloc(run->heap, (pile->width + 1) * sizeof *source->keys);
        memset(source->keys, 0, (pile->width + 1) * sizeof *source->keys);
        query_spill_reader_init(&source->reader, &files[i].run, READ_BYTES);
        if (!source_step(run, pile, source, &left, err))
            return false;
        if (left)
            merge->heap[merge->count++] = source;
    }
    if (memory) {
        struct source *source = &merge->sources[merge->source_count++];

        source->in_memory = true;
        if (memory_step(pile, source))
            merge->heap[merge->count++] = source;
    }
    for (size_t i = merge->count / 2; i-- > 0;)
        heap_sink(pile, merge, i);
    return true;
}

/* The one in front goes on. */
static bool merge_step(struct gremlin_run *run, struct gremlin_pile *pile, struct error *err)
{
    struct gremlin_pile_merge *merge = pile->merge;
    struct source *first = merge->heap[0];
    bool left;

    if (!query_work(&run->context, 1, err))
        return false;
    if (first->in_memory)
        left = memory_step(pile, first);
    else if (!source_step(run, pile, first, &left, err))
        return false;
    if (!left)
        merge->heap[0] = merge->heap[--merge->count];
    heap_sink(pile, merge, 0);
    return true;
}

/* The last `count` runs become one. Where that cannot be written the runs stay, and too many are
 * left to be read at once. */
static bool runs_unite(struct gremlin_run *run, struct gremlin_pile *pile, size_t count,
                       struct error *err)
{
    struct gremlin_pile_file *files = &pile->files[pile->file_count - count];
    struct query_spill_writer writer;
    struct query_spill_run united;
    unsigned level = files[0].level + 1;
    bool good = merge_begin(run, pile, files, count, false, err);

    query_spill_writer_init(&writer, &pile->file, run->spill);
    while (good && pile->merge->count) {
        const struct source *first = pile->merge->heap[0];
        struct slice whole;

        good = query_spill_reader_look(&pile->merge->heap[0]->reader, first->row_len, &whole, err);
        if (good) {
            query_spill_writer_append(&writer, whole);
            good = merge_step(run, pile, err);
        }
    }
    merge_free(run, pile);
    if (!query_spill_writer_end(&writer, &united))
        return good ? error_set(err, ERROR_SPILL,
                                "there is no room on disk for what a traversal has to put aside")
                    : false;
    if (!good) {
        query_spill_run_drop(&united);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        query_spill_run_drop(&files[i].run);
    pile->file_count -= count;
    files_add(pile, united, level);
    return true;
}

/* So that there are never more than FAN_IN of a level, and, in the end, in all. */
static bool runs_limit(struct gremlin_run *run, struct gremlin_pile *pile, bool last,
                       struct error *err)
{
    for (;;) {
        size_t alike = 0, count = pile->file_count;

        while (alike < count &&
               pile->files[count - 1 - alike].level == pile->files[count - 1].level)
            alike++;
        if (last && count > FAN_IN)
            alike = MIN(count, (size_t)FAN_IN);
        else if (alike < FAN_IN)
            return true;
        if (!runs_unite(run, pile, alike, err))
            return false;
    }
}

/* --- Using it --------------------------------------------------------------------------------- */

bool gremlin_pile_add_take(struct gremlin_run *run, struct gremlin_pile *pile,
                           struct gremlin_walker traverser, const struct gremlin_value *keys,
                           struct error *err)
{
    size_t number = pile->walkers.count;

    merge_free(run, pile);
    sorted_drop(run, pile);
    if (!number)
        pile->used_before = gremlin_heap_used(run->heap);
    if (number == pile->room)
        room_make(run, pile);
    for (size_t i = 0; i < pile->width; i++)
        pile->keys[number * pile->width + i] = keys[i];
    pile->places[number] = pile->arrived++;
    gremlin_walkers_push(run, &pile->walkers, traverser);
    if (pile->walkers.count < ROWS_MIN || !gremlin_run_should_spill(run, pile->used_before))
        return pile->walkers.count < UINT32_MAX / 2 ||
               FAIL(err, "too many traversers stand at one step");
    return memory_spill(run, pile, err) && runs_limit(run, pile, false, err);
}

bool gremlin_pile_finish(struct gremlin_run *run, struct gremlin_pile *pile, struct error *err)
{
    merge_free(run, pile);
    pile->at = 0;
    if (!query_work(&run->context, pile->walkers.count * 4, err))
        return false;
    pile_sort(run, pile);
    return !pile->file_count || (runs_limit(run, pile, true, err) &&
                                 merge_begin(run, pile, pile->files, pile->file_count, true, err));
}

static void memory_give(struct gremlin_pile *pile, size_t number,
                        struct gremlin_walker *ret_traverser, struct gremlin_value *ret_keys)
{
    *ret_traverser = gremlin_walker_copy(&pile->walkers.items[number]);
    for (size_t i = 0; ret_keys && i < pile->width; i++)
        ret_keys[i] = gremlin_value_ref(pile->keys[number * pile->width + i]);
}

bool gremlin_pile_next(struct gremlin_run *run, struct gremlin_pile *pile,
                       struct gremlin_walker *ret_traverser, struct gremlin_value *ret_keys,
                       bool *ret_found, struct error *err)
{
    struct gremlin_pile_merge *merge = pile->merge;
    struct source *first;

    if (!merge) {
        *ret_found = pile->at < pile->walkers.count;
        if (*ret_found) {
            memory_give(pile, pile->sorted ? pile->sorted[pile->at] : pile->at, ret_traverser,
                        ret_keys);
            pile->at++;
        }
        return true;
    }
    *ret_found = merge->count > 0;
    if (!*ret_found)
        return true;
    first = merge->heap[0];
    if (first->in_memory)
        memory_give(pile, pile->sorted ? pile->sorted[pile->at - 1] : pile->at - 1, ret_traverser,
                    ret_keys);
    else if (!walker_unpack(run, first->row, ret_traverser, err))
        return false;
    else
        for (size_t i = 0; ret_keys && i < pile->width; i++)
            ret_keys[i] = gremlin_value_ref(first->keys[i]);
    if (merge_step(run, pile, err))
        return true;
    gremlin_walker_done(ret_traverser);
    for (size_t i = 0; ret_keys && i < pile->width; i++)
        gremlin_value_unref(ret_keys[i]);
    return false;
}

bool gremlin_pile_pull(struct gremlin_run *run, struct gremlin_pile *pile, size_t want,
                       struct gremlin_walkers *out, struct error *err)
{
    for (size_t given = 0; given < want; given++) {
        struct gremlin_walker walker;
        bool found;

        if (!gremlin_pile_next(run, pile, &walker, NULL, &found, err))
            return false;
        if (!found)
            return true;
        gremlin_walkers_push(run, out, walker);
    }
    return true;
}
