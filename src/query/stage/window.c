/* Windows. Rows are sorted by keys and order, and go through a list of those that some frame still
 * needs: what a frame reaches ahead is read into it, what no frame reaches back to leaves it. A
 * frame that begins with the first row is a state that rows are added to as they come into it; one
 * with two bounds is computed from the list. Frames that end with the last row are the same seen
 * from there, so a pass backwards, from one spool to the other, computes them first; what is over
 * all rows of a window stands in the first of them then, and is handed on to the others.
 *
 * A row in a spool is [tuple, length of the keys' bytes, number, sort key, arguments, results of
 * the pass before]; its place is keys and order, and then the number it came with, in a pass
 * backwards all turned. */
#include "query/stage/flow_private.h"
#include "query/stage/tuple.h"
#include "query/value/compare.h"
#include "query/value/value.h"

#include <math.h>

enum { TUPLE, KEYS_LEN, NUMBER, SORT_KEY, ARGUMENTS, RESULTS, PARTS };

enum { OUTPUT_BYTES_SHIFT = 6 }; /* bytes written for a unit of work */

/* A row in the list. */
struct entry {
    uint8_t *bytes; /* owned: of all below */
    size_t size;
    struct slice key;  /* as it is sorted */
    struct slice keys; /* the beginning of it: of the window */
    uint64_t number;
    bool finite; /* the sort key is a number, this one */
    double sort;
    struct document_value parts[PARTS];
};

/* An output in a pass. */
struct running {
    const struct query_window_output *output;
    bool takes_part; /* in this pass */
    bool total;      /* taken from the first row of the window */
    enum query_window_kind kind;
    struct query_bound from, to; /* as the pass sees them */
    struct query_aggregate state;
    bool has_state;
    uint64_t added;              /* rows of the window in the state */
    struct arena *arena;         /* owned: of value */
    struct document_value value; /* first, last, of what begins with the first row; or the total */
};

struct pass {
    bool backwards;
    struct query_spool *spool; /* owned; NULL: there is no such pass */
    struct entry *list;        /* owned: a ring would be no shorter */
    size_t begin, end, capacity;
    size_t bytes;
    uint64_t first, at, loaded; /* rows of the window: of list[begin]; the present; read so far */
    bool whole;                 /* all rows of the window are read */
    bool started, ended;
    struct entry ahead;      /* the first row of the next window, if bytes is set */
    struct running *outputs; /* owned */
    uint64_t rank, dense;
};

struct query_windowing {
    struct query_stages *run;
    const struct query_stage *stage;
    const struct query_window *window;
    uint32_t *kept; /* owned: slots that are looked at later, but for the outputs */
    size_t kept_count;
    uint64_t number;
    struct pass back, forth;
    struct buf key, value;
};

/* --- Making ---------------------------------------------------------------------------------- */

static bool has_frame(const struct query_window_output *output)
{
    return output->kind == QUERY_WINDOW_AGGREGATE || output->kind == QUERY_WINDOW_FIRST ||
           output->kind == QUERY_WINDOW_LAST;
}

/* Does it end with the last row of the window, so that it needs the pass backwards? The first of
 * rows from the beginning on is known without. */
static bool is_open(const struct query_window_output *output)
{
    return has_frame(output) && output->to.kind == QUERY_BOUND_UNBOUNDED &&
           !(output->kind == QUERY_WINDOW_FIRST && output->from.kind == QUERY_BOUND_UNBOUNDED);
}

static struct query_bound turned(struct query_bound bound)
{
    bound.offset = -bound.offset;
    return bound;
}

static void running_open(struct query_windowing *w, struct pass *pass, size_t i)
{
    const struct query_window_output *output = &w->window->outputs[i];
    struct running *r = &pass->outputs[i];
    bool open = is_open(output);

    *r = (struct running){.output = output,
                          .kind = output->kind,
                          .from = output->from,
                          .to = output->to,
                          .value = document_undefined()};
    r->takes_part = open == pass->backwards;
    r->total = open && !pass->backwards && output->from.kind == QUERY_BOUND_UNBOUNDED;
    r->arena = arena_new();
    if (output->kind == QUERY_WINDOW_SHIFT) {
        r->kind = QUERY_WINDOW_FIRST;
        r->from = r->to = (struct query_bound){QUERY_BOUND_OFFSET, (double)output->shift};
    } else if (pass->backwards) {
        r->from = (struct query_bound){QUERY_BOUND_UNBOUNDED, 0};
        /* of all rows: up to the present one, which in the end is the last */
        r->to = output->from.kind == QUERY_BOUND_UNBOUNDED
                    ? (struct query_bound){QUERY_BOUND_OFFSET, 0}
                    : turned(output->from);
        if (output->kind != QUERY_WINDOW_AGGREGATE)
            r->kind = output->kind == QUERY_WINDOW_FIRST ? QUERY_WINDOW_LAST : QUERY_WINDOW_FIRST;
    } else if (has_frame(output) && output->to.kind == QUERY_BOUND_UNBOUNDED) {
        r->to = (struct query_bound){QUERY_BOUND_OFFSET, 0}; /* the first of all */
    }
}

static void pass_open(struct query_windowing *w, struct pass *pass, bool backwards)
{
    pass->backwards = backwards;
    pass->spool = query_stages_spool(w->run, &(struct query_spool_options){0});
    pass->outputs =
        memory_alloc_zero(memory_array_size(w->window->output_count + 1, sizeof *pass->outputs));
    for (size_t i = 0; i < w->window->output_count; i++)
        running_open(w, pass, i);
}

struct query_windowing *query_windowing_new(struct query_stages *run,
                                            const struct query_stage *stage)
{
    struct query_windowing *w = MEMORY_NEW(struct query_windowing);
    bool open = false;

    *w = (struct query_windowing){.run = run, .stage = stage, .window = &stage->window};
    w->kept = memory_alloc(memory_array_size(stage->kept_count + 1, sizeof *w->kept));
    for (size_t i = 0; i < stage->kept_count; i++) {
        bool own = false;

        for (size_t j = 0; j < w->window->output_count; j++)
            own |= w->window->outputs[j].slot == stage->kept[i];
        if (!own)
            w->kept[w->kept_count++] = stage->kept[i];
    }
    buf_init(&w->key, SIZE_MAX / 2);
    buf_init(&w->value, SIZE_MAX / 2);
    for (size_t i = 0; i < w->window->output_count; i++)
        open |= is_open(&w->window->outputs[i]);
    if (open)
        pass_open(w, &w->back, true);
    pass_open(w, &w->forth, false);
    return w;
}

static void entry_drop(struct pass *pass, struct entry *entry)
{
    pass->bytes -= entry->size;
    memory_free(entry->bytes);
    entry->bytes = NULL;
}

static void running_reset(struct running *r)
{
    if (r->has_state)
        query_aggregate_done(&r->state);
    r->has_state = false;
    r->added = 0;
    arena_reset(r->arena);
    r->value = document_undefined();
}

static void pass_done(struct query_windowing *w, struct pass *pass)
{
    if (!pass->outputs)
        return;
    for (size_t i = pass->begin; i < pass->end; i++)
        entry_drop(pass, &pass->list[i]);
    memory_free(pass->ahead.bytes);
    for (size_t i = 0; i < w->window->output_count; i++) {
        running_reset(&pass->outputs[i]);
        arena_free(pass->outputs[i].arena);
    }
    query_stages_spool_free(w->run, pass->spool);
    memory_free(pass->list);
    memory_free(pass->outputs);
    *pass = (struct pass){0};
}

void query_windowing_free(struct query_windowing *w)
{
    if (!w)
        return;
    pass_done(w, &w->back);
    pass_done(w, &w->forth);
    buf_done(&w->key);
    buf_done(&w->value);
    memory_free(w->kept);
    memory_free(w);
}

/* --- Into the spool -------------------------------------------------------------------------- */

/* The row in w->key and w->value. */
static bool row_spool(struct query_windowing *w, struct pass *pass, uint64_t number,
                      struct error *err)
{
    struct query_place place = {.number = pass->backwards ? UINT64_MAX - number : number};
    struct document_value value = document_array(buf_slice(&w->value));
    struct query_spool_row *row;

    for (size_t i = 0; pass->backwards && i < w->key.len; i++)
        w->key.data[i] = (uint8_t)~w->key.data[i];
    place.key = buf_slice(&w->key);
    return query_spool_add(pass->spool, &place, SLICE_NONE, &value, false, &row, err);
}

static struct slice part_name(uint32_t part, char *text)
{
    return document_index_key(part, text);
}

static bool arguments_write(struct query_windowing *w, struct error *err)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin = document_append_array_begin(&w->value, part_name(ARGUMENTS, text));

    for (uint32_t i = 0; i < w->window->output_count; i++) {
        const struct query_window_output *output = &w->window->outputs[i];
        struct document_value value = document_undefined(), otherwise = value;

        if ((output->argument &&
             !query_evaluate(output->argument, &w->run->context, &value, err)) ||
            (output->otherwise &&
             !query_evaluate(output->otherwise, &w->run->context, &otherwise, err)))
            return false;
        document_append(&w->value, document_index_key(2 * i, text), &value);
        document_append(&w->value, document_index_key(2 * i + 1, text), &otherwise);
    }
    document_end(&w->value, begin);
    return true;
}

bool query_windowing_take(struct query_windowing *w, struct error *err)
{
    struct query_context *context = &w->run->context;
    const struct query_window *window = w->window;
    struct document_value value, sort_key = document_undefined();
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin, keys_len;

    buf_clear(&w->key);
    buf_clear(&w->value);
    for (size_t i = 0; i < window->key_count; i++) {
        if (!query_evaluate(window->keys[i], context, &value, err))
            return false;
        query_stages_key(w->run, &value, false, &w->key);
    }
    keys_len = w->key.len;
    for (size_t i = 0; i < window->order_count; i++) {
        if (!query_evaluate(window->order[i].expression, context, &value, err))
            return false;
        query_stages_key(w->run, &value, window->order[i].descending, &w->key);
        if (i == 0 && document_is_number(&value))
            sort_key = value;
    }
    begin = document_begin(&w->value);
    buf_append_byte(&w->value, DOCUMENT_ARRAY);
    buf_append(&w->value, "0", 2);
    query_tuple_write(context, w->kept, w->kept_count, &w->value);
    document_append_int64(&w->value, part_name(KEYS_LEN, text), (int64_t)keys_len);
    document_append_int64(&w->value, part_name(NUMBER, text), (int64_t)++w->number);
    document_append(&w->value, part_name(SORT_KEY, text), &sort_key);
    if (!arguments_write(w, err))
        return false;
    document_end(&w->value, begin);
    return row_spool(w, w->back.spool ? &w->back : &w->forth, w->number, err);
}

/* --- The list -------------------------------------------------------------------------------- */

static void entry_make(const struct query_windowing *w, const struct query_spool_row *row,
                       struct entry *entry)
{
    struct slice document = row->value.document;
    struct document_iter iter;

    *entry = (struct entry){.size = row->place.key.len + document.len + sizeof *entry};
    entry->bytes = memory_alloc(row->place.key.len + document.len + 1);
    if (row->place.key.len)
        memcpy(entry->bytes, row->place.key.data, row->place.key.len);
    memcpy(entry->bytes + row->place.key.len, document.data, document.len);
    entry->key = slice_of(entry->bytes, row->place.key.len);
    document_iter_init(&iter, slice_of(entry->bytes + row->place.key.len, document.len));
    for (size_t i = 0; i < PARTS; i++)
        entry->parts[i] = document_iter_next(&iter) ? iter.value : document_undefined();
    entry->keys = slice_first(entry->key, (size_t)entry->parts[KEYS_LEN].int64);
    entry->number = (uint64_t)entry->parts[NUMBER].int64;
    entry->finite =
        document_to_double(&entry->parts[SORT_KEY], &entry->sort) && isfinite(entry->sort);
    if (w->window->order_count && w->window->order[0].descending)
        entry->sort = -entry->sort;
}

/* The next row of the spool, of whichever window; *ret_read false: there is none. */
static bool entry_read(struct query_windowing *w, struct pass *pass, struct entry *entry,
                       bool *ret_read, struct error *err)
{
    struct query_spool_row *row;

    *ret_read = pass->ahead.bytes;
    if (*ret_read) {
        *entry = pass->ahead;
        pass->ahead.bytes = NULL;
        return true;
    }
    if (pass->ended)
        return true;
    if (!query_work(&w->run->context, 4, err) || !query_spool_next(pass->spool, &row, err))
        return false;
    pass->ended = !row;
    *ret_read = row;
    if (row)
        entry_make(w, row, entry);
    return true;
}

static void list_add(struct pass *pass, const struct entry *entry)
{
    if (pass->end == pass->capacity && pass->begin) {
        memmove(pass->list, pass->list + pass->begin,
                (pass->end - pass->begin) * sizeof *pass->list);
        pass->end -= pass->begin;
        pass->begin = 0;
    }
    if (pass->end == pass->capacity) {
        pass->capacity = pass->capacity ? 2 * pass->capacity : 16;
        pass->list =
            memory_realloc(pass->list, memory_array_size(pass->capacity, sizeof *pass->list));
    }
    pass->list[pass->end++] = *entry;
    pass->bytes += entry->size;
    pass->loaded++;
}

/* One more row of the window; pass->whole says that there is none. */
static bool list_load(struct query_windowing *w, struct pass *pass, struct error *err)
{
    struct entry entry;
    bool read;

    if (!entry_read(w, pass, &entry, &read, err))
        return false;
    if (!read) {
        pass->whole = true;
    } else if (pass->loaded && !slice_equal(entry.keys, pass->list[pass->end - 1].keys)) {
        pass->ahead = entry;
        pass->whole = true;
    } else {
        list_add(pass, &entry);
    }
    return query_memory_check(&w->run->context, pass->bytes, err);
}

static struct entry *row_at(const struct pass *pass, uint64_t nth)
{
    assert(nth >= pass->first && nth < pass->loaded);
    return &pass->list[pass->begin + (nth - pass->first)];
}

static bool peers(const struct entry *a, const struct entry *b)
{
    return slice_equal(a->key, b->key);
}

/* --- Frames ---------------------------------------------------------------------------------- */

static bool reaches(const struct pass *pass, const struct running *r, uint64_t nth, bool upper)
{
    const struct entry *row = row_at(pass, nth), *present = row_at(pass, pass->at);
    struct query_bound bound = upper ? r->to : r->from;
    double away = (double)nth - (double)pass->at;

    if (bound.kind == QUERY_BOUND_UNBOUNDED)
        return true;
    if (r->output->by == QUERY_FRAME_RANGE && r->output->kind != QUERY_WINDOW_SHIFT) {
        if (!row->finite || !present->finite)
            return peers(row, present) || (upper ? away <= 0 : away >= 0);
        away = row->sort - present->sort;
        if (pass->backwards)
            away = -away;
    }
    return upper ? away <= bound.offset : away >= bound.offset;
}

static bool is_framed(const struct running *r)
{
    return r->takes_part && (has_frame(r->output) || r->output->kind == QUERY_WINDOW_SHIFT);
}

/* All rows that the frames of the present one reach. */
static bool frames_load(struct query_windowing *w, struct pass *pass, struct error *err)
{
    for (size_t i = 0; i < w->window->output_count; i++)
        while (is_framed(&pass->outputs[i]) && !pass->whole &&
               reaches(pass, &pass->outputs[i], pass->loaded - 1, true)) {
            if (!list_load(w, pass, err))
                return false;
        }
    return true;
}

static struct document_value argument_of(const struct entry *row, size_t output, bool otherwise)
{
    struct document_iter iter;
    size_t at = 2 * output + otherwise;

    document_iter_init(&iter, row->parts[ARGUMENTS].document);
    for (size_t i = 0; document_iter_next(&iter); i++)
        if (i == at)
            return iter.value;
    return document_undefined();
}

static void state_open(struct query_windowing *w, struct running *r)
{
    query_aggregate_init(&r->state, r->output->aggregate, w->run->plan->order,
                         w->run->context.limits.bytes_max);
    r->has_state = true;
}

/* Lists are in the order of the rows, whichever way they come. */
static bool state_add(struct query_windowing *w, struct running *r, size_t output,
                      const struct entry *row, struct error *err)
{
    struct document_value value = argument_of(row, output, false);

    r->state.at = row->number;
    return query_work(&w->run->context, 1, err) && query_aggregate_add(&r->state, &value, err);
}

static bool is_running(const struct running *r)
{
    return r->from.kind == QUERY_BOUND_UNBOUNDED;
}

/* Takes in the rows that have come into a frame that begins with the first one. */
static bool running_add(struct query_windowing *w, struct pass *pass, size_t i, struct error *err)
{
    struct running *r = &pass->outputs[i];

    if (r->kind == QUERY_WINDOW_AGGREGATE && !r->has_state)
        state_open(w, r);
    for (; r->added < pass->loaded && reaches(pass, r, r->added, true); r->added++) {
        const struct entry *row = row_at(pass, r->added);

        if (r->kind == QUERY_WINDOW_AGGREGATE) {
            if (!state_add(w, r, i, row, err))
                return false;
        } else if (r->kind == QUERY_WINDOW_LAST || r->added == 0) {
            struct document_value value = argument_of(row, i, false);

            arena_reset(r->arena);
            r->value = query_value_copy(&value, r->arena);
        }
    }
    return true;
}

/* What is of a frame with two bounds. */
static bool bounded_value(struct query_windowing *w, struct pass *pass, size_t i,
                          struct document_value *ret_value, struct error *err)
{
    struct running *r = &pass->outputs[i];
    bool any = false;

    *ret_value = document_undefined();
    if (r->kind == QUERY_WINDOW_AGGREGATE) {
        running_reset(r);
        state_open(w, r);
    }
    for (uint64_t nth = pass->first; nth < pass->loaded && reaches(pass, r, nth, true); nth++) {
        const struct entry *row = row_at(pass, nth);

        if (!query_work(&w->run->context, 1, err))
            return false;
        if (!reaches(pass, r, nth, false))
            continue;
        if (r->kind == QUERY_WINDOW_AGGREGATE) {
            if (!state_add(w, r, i, row, err))
                return false;
        } else if (r->kind == QUERY_WINDOW_LAST || !any) {
            *ret_value = argument_of(row, i, false);
        }
        any = true;
    }
    if (r->kind == QUERY_WINDOW_AGGREGATE)
        *ret_value = query_aggregate_finish(&r->state);
    else if (!any && r->output->kind == QUERY_WINDOW_SHIFT)
        *ret_value = argument_of(row_at(pass, pass->at), i, true);
    return true;
}

static struct document_value result_before(const struct entry *row, size_t output)
{
    struct document_iter iter;

    if (row->parts[RESULTS].type != DOCUMENT_ARRAY)
        return document_undefined();
    document_iter_init(&iter, row->parts[RESULTS].document);
    for (size_t i = 0; document_iter_next(&iter); i++)
        if (i == output)
            return iter.value;
    return document_undefined();
}

/* A value that the pass backwards has computed. */
static struct document_value open_value(struct pass *pass, size_t i)
{
    struct running *r = &pass->outputs[i];
    struct document_value value = result_before(row_at(pass, pass->at), i);

    if (!r->total)
        return value;
    if (pass->at == 0)
        r->value = query_value_copy(&value, r->arena);
    return r->value;
}

/* The next value of a fold, which is asked for once for each row. */
static bool fold_value(struct query_windowing *w, struct pass *pass, size_t i,
                       struct document_value *ret_value, struct error *err)
{
    struct running *r = &pass->outputs[i];
    struct query_context *context = &w->run->context;
    struct query_slot *state = &context->slots[r->output->fold_slot],
                      *argument = &context->slots[r->output->fold_argument];
    const struct query_slot around[2] = {*state, *argument};
    struct document_value value;
    bool made;

    *state = (struct query_slot){.value = r->value};
    *argument = (struct query_slot){.value = argument_of(row_at(pass, pass->at), i, false)};
    made = query_evaluate(r->output->fold, context, &value, err);
    *argument = around[1];
    *state = around[0];
    if (!made)
        return false;
    value = query_value_copy(&value, context->arena); /* it may be part of what is forgotten now */
    arena_reset(r->arena);
    r->value = query_value_copy(&value, r->arena);
    *ret_value = r->value;
    return query_memory_check(context, arena_used(r->arena), err);
}

/* The output for the present row; good until the next. */
static bool output_value(struct query_windowing *w, struct pass *pass, size_t i,
                         struct document_value *ret_value, struct error *err)
{
    struct running *r = &pass->outputs[i];

    *ret_value = document_undefined();
    switch (r->output->kind) {
    case QUERY_WINDOW_RANK:
        *ret_value = query_integer((int64_t)pass->rank);
        return true;
    case QUERY_WINDOW_DENSE_RANK:
        *ret_value = query_integer((int64_t)pass->dense);
        return true;
    case QUERY_WINDOW_ROW_NUMBER:
        *ret_value = query_integer((int64_t)pass->at + 1);
        return true;
    case QUERY_WINDOW_FOLD:
        return pass->backwards || fold_value(w, pass, i, ret_value, err);
    default:
        break;
    }
    if (!r->takes_part) {
        if (!pass->backwards)
            *ret_value = open_value(pass, i);
        return true;
    }
    if (!is_running(r))
        return bounded_value(w, pass, i, ret_value, err);
    if (!running_add(w, pass, i, err))
        return false;
    *ret_value = r->kind == QUERY_WINDOW_AGGREGATE ? query_aggregate_finish(&r->state) : r->value;
    return true;
}

/* The same, with its bytes counted: whoever calls writes them once more. */
static bool output_take(struct query_windowing *w, struct pass *pass, size_t i,
                        struct document_value *ret_value, struct error *err)
{
    return output_value(w, pass, i, ret_value, err) &&
           query_work(&w->run->context, query_value_bytes(ret_value) >> OUTPUT_BYTES_SHIFT, err);
}

/* --- From row to row ------------------------------------------------------------------------- */

/* Is the row still needed for what comes after the present one? */
static bool is_needed(const struct query_windowing *w, const struct pass *pass, uint64_t nth)
{
    for (size_t i = 0; i < w->window->output_count; i++) {
        const struct running *r = &pass->outputs[i];

        if (!is_framed(r))
            continue;
        if (is_running(r) ? nth >= r->added : reaches(pass, r, nth, false))
            return true;
    }
    return nth >= pass->at;
}

static void window_begin(struct query_windowing *w, struct pass *pass)
{
    while (pass->begin < pass->end)
        entry_drop(pass, &pass->list[pass->begin++]);
    pass->begin = pass->end = 0;
    pass->first = pass->at = pass->loaded = 0;
    pass->rank = pass->dense = 1;
    pass->whole = false;
    for (size_t i = 0; i < w->window->output_count; i++)
        running_reset(&pass->outputs[i]);
}

/* The next row becomes the present one. */
static bool pass_next(struct query_windowing *w, struct pass *pass, bool *ret_more,
                      struct error *err)
{
    bool same;

    if (pass->started && pass->at + 1 == pass->loaded && !pass->whole && !list_load(w, pass, err))
        return false;
    if (!pass->started || pass->at + 1 == pass->loaded) {
        window_begin(w, pass);
        pass->started = true;
        if (!list_load(w, pass, err))
            return false;
        *ret_more = pass->loaded;
        return !pass->loaded || frames_load(w, pass, err);
    }
    same = peers(row_at(pass, pass->at), row_at(pass, pass->at + 1));
    pass->at++;
    if (!same) {
        pass->rank = pass->at + 1;
        pass->dense++;
    }
    for (; pass->first < pass->at && !is_needed(w, pass, pass->first); pass->first++)
        entry_drop(pass, &pass->list[pass->begin++]);
    *ret_more = true;
    return frames_load(w, pass, err);
}

/* The pass backwards puts each row, with what it has computed, into the other spool. */
static bool back_row(struct query_windowing *w, struct error *err)
{
    const struct entry *row = row_at(&w->back, w->back.at);
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin, results;

    buf_clear(&w->key);
    buf_clear(&w->value);
    for (size_t i = 0; i < row->key.len; i++)
        buf_append_byte(&w->key, (uint8_t)~row->key.data[i]);
    begin = document_begin(&w->value);
    for (uint32_t i = 0; i < RESULTS; i++)
        document_append(&w->value, part_name(i, text), &row->parts[i]);
    results = document_append_array_begin(&w->value, part_name(RESULTS, text));
    for (uint32_t i = 0; i < w->window->output_count; i++) {
        struct document_value value;

        if (!output_take(w, &w->back, i, &value, err))
            return false;
        document_append(&w->value, document_index_key(i, text), &value);
    }
    document_end(&w->value, results);
    document_end(&w->value, begin);
    return row_spool(w, &w->forth, row->number, err);
}

bool query_windowing_finish(struct query_windowing *w, struct error *err)
{
    bool more = w->back.spool;

    if (more && !query_stages_spool_finish(w->run, w->back.spool, err))
        return false;
    while (more) {
        if (!pass_next(w, &w->back, &more, err) || (more && !back_row(w, err)))
            return false;
    }
    pass_done(w, &w->back);
    return query_stages_spool_finish(w->run, w->forth.spool, err);
}

bool query_windowing_next(struct query_windowing *w, bool *ret_more, struct error *err)
{
    struct query_context *context = &w->run->context;
    struct pass *pass = &w->forth;
    const struct entry *row;

    if (!pass_next(w, pass, ret_more, err))
        return false;
    if (!*ret_more)
        return true;
    row = row_at(pass, pass->at);
    query_tuple_bind(context, w->kept, w->kept_count, row->parts[TUPLE].document);
    for (size_t i = 0; i < w->window->output_count; i++) {
        struct document_value value;

        if (!output_take(w, pass, i, &value, err))
            return false;
        context->slots[w->window->outputs[i].slot] = (struct query_slot){.value = value};
    }
    return true;
}
