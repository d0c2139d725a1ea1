/* Runs are merged by a heap of their first rows. When a level has as many as can be merged at once
 * they become one of the next level, so that each row is written as often as there are levels,
 * which with 64 MB of memory is once up to 4 GB. Only neighbours are merged, which keeps them in
 * order.
 *
 * A row in a run, in the machine's own byte order, for no other will read it:
 *
 *     struct record
 *     order key, routing key, identity
 *     value         BSON, an array of one
 *     states        each a BSON document of one */
#include "query/spool/runs.h"

#include "base/bytes.h"
#include "document/bson.h"

enum { FAN_IN_MIN = 4, FAN_IN_MAX = 64, BLOCK_MIN = 4 * 1024, BLOCK_MAX = 64 * 1024 };

struct record {
    uint64_t len; /* with this */
    uint64_t number;
    uint32_t key_len, routing_len, identity_len, value_len;
    uint32_t rows;
    bool cut, done;
};

int query_runs_order(const struct query_runs_rules *rules, const struct query_place *a,
                     struct slice a_identity, const struct query_place *b, struct slice b_identity)
{
    int order;

    if (rules->by_identity)
        return slice_compare(a_identity, b_identity);
    order = query_place_compare(a, b);
    return order ? order : (a->rows > b->rows) - (a->rows < b->rows);
}

void query_runs_value_write(const struct document_value *value, struct buf *buf)
{
    size_t begin = document_begin(buf);

    document_append(buf, SLICE("0"), value);
    document_end(buf, begin);
}

struct document_value query_runs_value_read(struct slice bytes)
{
    struct document_value value = document_undefined();

    (void)document_find_index(bytes, 0, &value);
    return value;
}

/* --- Records --------------------------------------------------------------------------------- */

static void record_write(const struct query_runs_rules *rules, const struct query_spool_row *row,
                         struct buf *buf)
{
    struct record record = {
        .number = row->place.number,
        .key_len = (uint32_t)row->place.key.len,
        .routing_len = (uint32_t)row->place.routing.len,
        .identity_len = (uint32_t)row->identity.len,
        .rows = row->place.rows,
        .cut = row->place.cut,
        .done = row->done,
    };
    size_t value;

    buf_clear(buf);
    buf_append(buf, &record, sizeof record);
    buf_append_slice(buf, row->place.key);
    buf_append_slice(buf, row->place.routing);
    buf_append_slice(buf, row->identity);
    value = buf->len;
    query_runs_value_write(&row->value, buf);
    record.value_len = (uint32_t)(buf->len - value);
    for (size_t i = 0; i < rules->kind_count; i++) {
        size_t begin = document_begin(buf);

        query_aggregate_save(&row->states[i], SLICE("0"), buf);
        document_end(buf, begin);
    }
    record.len = buf->len;
    memcpy(buf->data, &record, sizeof record);
}

static struct slice piece_take(struct slice *bytes, size_t len)
{
    struct slice piece = slice_first(*bytes, len);

    *bytes = slice_skip(*bytes, len);
    return piece;
}

/* --- Sources --------------------------------------------------------------------------------- */

/* Rows in order: of a run, or in memory. */
struct source {
    struct query_spill_reader reader;
    struct query_spool_row *const *rows, *const *rows_end; /* where there is no reader.run */
    bool ended;

    /* The first row. */
    struct query_place place;
    struct slice identity;
    struct document_value value;
    bool done;
    struct slice states;                     /* of a run, */
    const struct query_spool_row *in_memory; /* or these */
    size_t len;
};

static bool source_read(struct source *source, struct error *err)
{
    struct record record;
    struct slice bytes;

    if (!query_spill_reader_look(&source->reader, sizeof record, &bytes, err))
        return false;
    memcpy(&record, bytes.data, sizeof record);
    if (!query_spill_reader_look(&source->reader, (size_t)record.len, &bytes, err))
        return false;
    source->len = (size_t)record.len;
    bytes = slice_skip(bytes, sizeof record);
    source->place = (struct query_place){.key = piece_take(&bytes, record.key_len),
                                         .cut = record.cut,
                                         .routing = piece_take(&bytes, record.routing_len),
                                         .number = record.number,
                                         .rows = record.rows};
    source->identity = piece_take(&bytes, record.identity_len);
    source->value = query_runs_value_read(piece_take(&bytes, record.value_len));
    source->done = record.done;
    source->states = bytes;
    return true;
}

/* Passes over the first row, if there was one, to the next. */
static bool source_advance(struct source *source, struct error *err)
{
    if (source->reader.run) {
        query_spill_reader_take(&source->reader, source->len);
        source->ended = !query_spill_reader_has_more(&source->reader);
        return source->ended || source_read(source, err);
    }
    source->ended = source->rows == source->rows_end;
    if (source->ended)
        return true;
    source->in_memory = *source->rows++;
    source->place = source->in_memory->place;
    source->identity = source->in_memory->identity;
    source->value = source->in_memory->value;
    source->done = source->in_memory->done;
    return true;
}

/* --- Merging --------------------------------------------------------------------------------- */

struct query_merge {
    struct query_runs_rules rules;
    struct source *sources; /* owned; those in memory last */
    size_t source_count;
    size_t *heap; /* of sources that have rows, the least at 0 */
    size_t heap_count;
    struct source *held;         /* not in the heap: it has the row that was given */
    struct query_spool_row *row; /* the row that was given; owned */
    bool has_states;
};

static bool is_before(const struct query_merge *merge, size_t a, size_t b)
{
    const struct source *x = &merge->sources[a], *y = &merge->sources[b];
    int order = query_runs_order(&merge->rules, &x->place, x->identity, &y->place, y->identity);

    return order ? order < 0 : a < b;
}

static void heap_sink(struct query_merge *merge, size_t at)
{
    size_t moving = merge->heap[at], child;

    while ((child = 2 * at + 1) < merge->heap_count) {
        if (child + 1 < merge->heap_count &&
            is_before(merge, merge->heap[child + 1], merge->heap[child]))
            child++;
        if (!is_before(merge, merge->heap[child], moving))
            break;
        merge->heap[at] = merge->heap[child];
        at = child;
    }
    merge->heap[at] = moving;
}

static void heap_push(struct query_merge *merge, size_t source)
{
    size_t at = merge->heap_count++;

    while (at && is_before(merge, source, merge->heap[(at - 1) / 2])) {
        merge->heap[at] = merge->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merge->heap[at] = source;
}

static struct source *heap_pop(struct query_merge *merge)
{
    struct source *first = &merge->sources[merge->heap[0]];

    merge->heap[0] = merge->heap[--merge->heap_count];
    if (merge->heap_count)
        heap_sink(merge, 0);
    return first;
}

static bool push_next(struct query_merge *merge, struct source *source, struct error *err)
{
    if (!source_advance(source, err))
        return false;
    if (!source->ended)
        heap_push(merge, (size_t)(source - merge->sources));
    return true;
}

static size_t block_len(const struct query_runs_rules *rules)
{
    return MIN(MAX(rules->bytes_max / FAN_IN_MAX / 2, (size_t)BLOCK_MIN), (size_t)BLOCK_MAX);
}

bool query_merge_new(const struct query_runs_rules *rules, const struct query_run *runs,
                     size_t run_count, struct query_spool_row *const *rows, size_t row_count,
                     struct query_merge **ret_merge, struct error *err)
{
    CLEANUP(query_merge_free) struct query_merge *merge = MEMORY_NEW(struct query_merge);

    merge->rules = *rules;
    merge->sources = memory_alloc_zero(memory_array_size(run_count + 1, sizeof *merge->sources));
    merge->heap = memory_alloc(memory_array_size(run_count + 1, sizeof *merge->heap));
    merge->row =
        memory_alloc_zero(sizeof *merge->row + rules->kind_count * sizeof(struct query_aggregate));
    for (; merge->source_count < run_count; merge->source_count++)
        query_spill_reader_init(&merge->sources[merge->source_count].reader,
                                &runs[merge->source_count].spilled, block_len(rules));
    if (row_count) {
        merge->sources[merge->source_count].rows = rows;
        merge->sources[merge->source_count++].rows_end = rows + row_count;
    }
    for (size_t i = 0; i < merge->source_count; i++) {
        if (!push_next(merge, &merge->sources[i], err))
            return false;
    }
    *ret_merge = TAKE(merge);
    return true;
}

static void states_done(struct query_merge *merge)
{
    for (size_t i = 0; merge->has_states && i < merge->rules.kind_count; i++)
        query_aggregate_done(&merge->row->states[i]);
    merge->has_states = false;
}

void query_merge_free(struct query_merge *merge)
{
    if (!merge)
        return;
    states_done(merge);
    for (size_t i = 0; i < merge->source_count; i++) {
        if (merge->sources[i].reader.run)
            query_spill_reader_done(&merge->sources[i].reader);
    }
    memory_free(merge->sources);
    memory_free(merge->heap);
    memory_free(merge->row);
    memory_free(merge);
}

static bool state_add(struct query_aggregate *state, struct slice *saved, size_t bytes_max,
                      struct error *err)
{
    CLEANUP(query_aggregate_done) struct query_aggregate loaded;
    struct slice document = slice_first(*saved, bytes_get_le32(saved->data));
    struct document_value value = document_undefined();

    *saved = slice_skip(*saved, document.len);
    (void)document_find(document, SLICE("0"), &value);
    return query_aggregate_load(&loaded, state->kind, &value, bytes_max, err) &&
           query_aggregate_merge(state, &loaded, err);
}

/* Adds the states of a source's first row to those of the row. */
static bool states_add(struct query_merge *merge, const struct source *source, struct error *err)
{
    struct slice saved = source->states;

    for (size_t i = 0; i < merge->rules.kind_count; i++) {
        struct query_aggregate *state = &merge->row->states[i];

        if (source->reader.run ? !state_add(state, &saved, merge->rules.bytes_max, err)
                               : !query_aggregate_merge(state, &source->in_memory->states[i], err))
            return false;
    }
    return true;
}

static void row_fill(struct query_merge *merge, const struct source *source)
{
    merge->row->place = source->place;
    merge->row->identity = source->identity;
    merge->row->value = source->value;
    merge->row->done = source->done;
}

/* Takes the other sources' rows that are one with the row held. */
static bool equals_take(struct query_merge *merge, struct error *err)
{
    const struct query_runs_rules *rules = &merge->rules;

    while (merge->heap_count) {
        struct source *held = merge->held, *other = &merge->sources[merge->heap[0]];

        if (query_runs_order(rules, &held->place, held->identity, &other->place, other->identity))
            return true;
        if (!states_add(merge, other, err))
            return false;
        (void)heap_pop(merge);
        if (rules->by_identity && query_place_compare(&other->place, &held->place) < 0) {
            merge->held = other;
            other = held;
        }
        if (!push_next(merge, other, err))
            return false;
    }
    return true;
}

static bool held_pass(struct query_merge *merge, struct error *err)
{
    struct source *held = TAKE(merge->held);

    states_done(merge);
    return !held || push_next(merge, held, err);
}

bool query_merge_next(struct query_merge *merge, struct query_spool_row **ret_row,
                      struct error *err)
{
    *ret_row = NULL;
    if (!held_pass(merge, err))
        return false;
    if (!merge->heap_count)
        return true;
    merge->held = heap_pop(merge);
    for (size_t i = 0; i < merge->rules.kind_count; i++) {
        query_aggregate_init(&merge->row->states[i], merge->rules.kinds[i], merge->rules.bytes_max);
        merge->row->states[i].order = merge->rules.order;
    }
    merge->has_states = true;
    if (!states_add(merge, merge->held, err) || (merge->rules.unite && !equals_take(merge, err)))
        return false;
    row_fill(merge, merge->held);
    *ret_row = merge->row;
    return true;
}

bool query_merge_look(struct query_merge *merge, const struct query_place **ret_place,
                      struct error *err)
{
    if (!held_pass(merge, err))
        return false;
    *ret_place = merge->heap_count ? &merge->sources[merge->heap[0]].place : NULL;
    return true;
}

size_t query_merge_bytes(const struct query_merge *merge)
{
    size_t bytes = sizeof *merge + merge->source_count * sizeof *merge->sources;

    for (size_t i = 0; i < merge->source_count; i++)
        bytes += merge->sources[i].reader.block.capacity;
    return bytes;
}

/* --- Runs ------------------------------------------------------------------------------------ */

void query_runs_init(struct query_runs *runs, struct query_spill_budget *budget)
{
    *runs = (struct query_runs){.budget = query_spill_budget_ref(budget)};
}

void query_runs_done(struct query_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        query_spill_run_drop(&runs->list[i].spilled);
    memory_free(runs->list);
    query_spill_file_unref(runs->file);
    query_spill_budget_unref(runs->budget);
}

static void runs_put(struct query_runs *runs, struct query_run run)
{
    if (runs->count == runs->capacity) {
        runs->capacity = runs->capacity ? runs->capacity * 2 : 8;
        runs->list =
            memory_realloc(runs->list, memory_array_size(runs->capacity, sizeof *runs->list));
    }
    runs->list[runs->count++] = run;
}

/* How many runs may be read at once: each needs a block, and room for its longest row. */
static size_t fan_in(const struct query_runs *runs, const struct query_runs_rules *rules)
{
    uint64_t fit = rules->bytes_max / (block_len(rules) + runs->longest);

    return (size_t)MIN(MAX(fit, (uint64_t)FAN_IN_MIN), (uint64_t)FAN_IN_MAX);
}

static void row_append(struct query_runs *runs, const struct query_runs_rules *rules,
                       const struct query_spool_row *row, struct query_spill_writer *writer,
                       struct buf *scratch)
{
    record_write(rules, row, scratch);
    runs->longest = MAX(runs->longest, (uint64_t)scratch->len);
    query_spill_writer_append(writer, buf_slice(scratch));
}

static bool merged_write(struct query_runs *runs, const struct query_runs_rules *rules,
                         struct query_merge *merge, struct query_spill_writer *writer,
                         struct query_context *context, struct error *err)
{
    CLEANUP(buf_done) struct buf scratch;
    struct query_spool_row *row;

    buf_init(&scratch, SIZE_MAX / 2);
    while (!writer->failed) {
        if (context && !query_work(context, 4, err))
            return false;
        if (!query_merge_next(merge, &row, err))
            return false;
        if (!row)
            return true;
        row_append(runs, rules, row, writer, &scratch);
    }
    return true;
}

/* Makes one of the latest runs. If there is no room for it they stay as they are. */
static bool runs_merge(struct query_runs *runs, const struct query_runs_rules *rules, size_t count,
                       struct query_context *context, struct error *err)
{
    struct query_run *first = &runs->list[runs->count - count];
    CLEANUP(query_merge_free) struct query_merge *merge = NULL;
    struct query_spill_writer writer;
    struct query_run merged = {.level = first->level + 1};
    bool written;

    if (!query_merge_new(rules, first, count, NULL, 0, &merge, err))
        return false;
    query_spill_writer_init(&writer, &runs->file, runs->budget);
    written = merged_write(runs, rules, merge, &writer, context, err);
    writer.failed |= !written;
    if (!query_spill_writer_end(&writer, &merged.spilled))
        return written;
    for (size_t i = 0; i < count; i++)
        query_spill_run_drop(&first[i].spilled);
    runs->count -= count;
    runs_put(runs, merged);
    return true;
}

/* The latest runs that are of one level. */
static size_t level_count(const struct query_runs *runs)
{
    size_t count = 1;

    while (count < runs->count &&
           runs->list[runs->count - count - 1].level == runs->list[runs->count - 1].level)
        count++;
    return count;
}

bool query_runs_add(struct query_runs *runs, const struct query_runs_rules *rules,
                    struct query_spool_row *const *rows, size_t count,
                    struct query_context *context, bool *ret_spilled, struct error *err)
{
    CLEANUP(buf_done) struct buf scratch;
    struct query_spill_writer writer;
    struct query_run run = {0};
    size_t latest;

    buf_init(&scratch, SIZE_MAX / 2);
    *ret_spilled = false;
    if (!query_spill_budget_works(runs->budget))
        return true;
    query_spill_writer_init(&writer, &runs->file, runs->budget);
    for (size_t i = 0; i < count && !writer.failed; i++)
        row_append(runs, rules, rows[i], &writer, &scratch);
    *ret_spilled = query_spill_writer_end(&writer, &run.spilled);
    if (!*ret_spilled)
        return true;
    runs_put(runs, run);
    while ((latest = level_count(runs)) >= fan_in(runs, rules)) {
        size_t before = runs->count;

        if (!runs_merge(runs, rules, latest, context, err))
            return false;
        if (runs->count == before)
            break;
    }
    return true;
}

void query_runs_adopt(struct query_runs *runs, struct query_runs *other)
{
    for (size_t i = 0; i < other->count; i++)
        runs_put(runs, other->list[i]);
    other->count = 0;
    runs->longest = MAX(runs->longest, other->longest);
}

bool query_runs_finish(struct query_runs *runs, const struct query_runs_rules *rules,
                       struct query_context *context, struct error *err)
{
    size_t max = fan_in(runs, rules);

    while (runs->count > max && query_spill_budget_works(runs->budget)) {
        if (!runs_merge(runs, rules, MIN(runs->count - max + 1, max), context, err))
            return false;
    }
    return true;
}
