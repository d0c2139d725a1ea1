#include "property/stages/naive.h"

#include "document/bson.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Values ---------------------------------------------------------------------------------- */

static struct naive children_of(enum naive_type type, struct slice document, struct arena *arena)
{
    size_t count = document_count(document), i = 0;
    struct naive made = {.type = type, .count = count};
    struct document_iter iter;

    made.items = ARENA_ARRAY(arena, struct naive, count + 1);
    made.names = ARENA_ARRAY(arena, const char *, count + 1);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        made.names[i] = arena_text(arena, iter.key);
        made.items[i++] = naive_of(&iter.value, arena);
    }
    return made;
}

struct naive naive_of(const struct document_value *value, struct arena *arena)
{
    struct naive made = {.type = NAIVE_NUMBER};

    switch (value->type) {
    case DOCUMENT_NULL:
        made.type = NAIVE_NULL;
        return made;
    case DOCUMENT_BOOL:
        made.type = NAIVE_BOOL;
        made.number = value->boolean;
        return made;
    case DOCUMENT_INT32:
        made.number = value->int32;
        return made;
    case DOCUMENT_INT64:
        made.number = (double)value->int64;
        return made;
    case DOCUMENT_DOUBLE:
        made.number = value->number;
        return made;
    case DOCUMENT_STRING:
        made.type = NAIVE_TEXT;
        made.text = arena_text(arena, value->text);
        return made;
    case DOCUMENT_ARRAY:
        return children_of(NAIVE_ARRAY, value->document, arena);
    case DOCUMENT_OBJECT:
        return children_of(NAIVE_OBJECT, value->document, arena);
    default:
        made.type = NAIVE_UNDEFINED;
        return made;
    }
}

const char *naive_print(const struct naive *value, struct arena *arena)
{
    static const char *const words[] = {"undefined", "null"};
    const char *text = value->type == NAIVE_ARRAY ? "[" : "{";

    switch (value->type) {
    case NAIVE_UNDEFINED:
    case NAIVE_NULL:
        return words[value->type];
    case NAIVE_BOOL:
        return value->number ? "true" : "false";
    case NAIVE_NUMBER:
        return (const char *)arena_printf(arena, "%.17g%c", value->number, 0).data;
    case NAIVE_TEXT:
        return (const char *)arena_printf(arena, "\"%s\"%c", value->text, 0).data;
    default:
        break;
    }
    for (size_t i = 0; i < value->count; i++)
        text = (const char *)arena_printf(arena, "%s%s%s%s%s%c", text, i ? "," : "",
                                          value->type == NAIVE_OBJECT ? value->names[i] : "",
                                          value->type == NAIVE_OBJECT ? ":" : "",
                                          naive_print(&value->items[i], arena), 0)
                   .data;
    return (const char *)arena_printf(arena, "%s%c%c", text, value->type == NAIVE_ARRAY ? ']' : '}',
                                      0)
        .data;
}

/* Types in the order of MongoDB: objects before arrays, booleans last. */
static int rank(bool mongo, enum naive_type type)
{
    static const int ranks[] = {0, 1, 7, 3, 4, 6, 5};

    return mongo ? ranks[type] : (int)type;
}

static int sign(double difference)
{
    return (difference > 0) - (difference < 0);
}

/* The number of the property that comes nth by name. */
static size_t nth_name(const struct naive *object, size_t nth)
{
    for (size_t i = 0; i < object->count; i++) {
        size_t before = 0;

        for (size_t j = 0; j < object->count; j++)
            before += strcmp(object->names[j], object->names[i]) < 0;
        if (before == nth)
            return i;
    }
    abort();
}

static int objects_compare(bool mongo, const struct naive *a, const struct naive *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        size_t x = mongo ? i : nth_name(a, i), y = mongo ? i : nth_name(b, i);
        int order = mongo ? rank(true, a->items[x].type) - rank(true, b->items[y].type) : 0;

        if (!order)
            order = strcmp(a->names[x], b->names[y]);
        if (!order)
            order = naive_compare(mongo, &a->items[x], &b->items[y]);
        if (order)
            return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

int naive_compare(bool mongo, const struct naive *a, const struct naive *b)
{
    if (a->type != b->type)
        return rank(mongo, a->type) - rank(mongo, b->type);
    switch (a->type) {
    case NAIVE_BOOL:
    case NAIVE_NUMBER:
        return sign(a->number - b->number);
    case NAIVE_TEXT:
        return strcmp(a->text, b->text);
    case NAIVE_OBJECT:
        return objects_compare(mongo, a, b);
    case NAIVE_ARRAY:
        for (size_t i = 0; i < a->count && i < b->count; i++) {
            int order = naive_compare(mongo, &a->items[i], &b->items[i]);

            if (order)
                return order;
        }
        return (a->count > b->count) - (a->count < b->count);
    default:
        return 0;
    }
}

/* --- Rows ------------------------------------------------------------------------------------ */

struct run {
    bool mongo;
    struct arena *arena;
    const struct naive_rows *documents;
};

void naive_add(struct naive_rows *rows, struct naive_row *row, struct arena *arena)
{
    if (rows->count == rows->capacity) {
        size_t capacity = rows->capacity ? 2 * rows->capacity : 16;
        struct naive_row **list = ARENA_ARRAY(arena, struct naive_row *, capacity);

        if (rows->count)
            memcpy(list, rows->list, rows->count * sizeof *list);
        rows->list = list;
        rows->capacity = capacity;
    }
    rows->list[rows->count++] = row;
}

static struct naive_row *row_copy(const struct run *run, const struct naive_row *row)
{
    struct naive_row *copy = ARENA_NEW(run->arena, struct naive_row);

    if (row)
        *copy = *row;
    return copy;
}

static struct naive evaluate(const struct naive_row *row, struct naive_expr expr)
{
    const struct naive *value = &row->slots[expr.slot];

    if (!expr.field)
        return *value;
    for (size_t i = 0; value->type == NAIVE_OBJECT && i < value->count; i++)
        if (strcmp(value->names[i], expr.field) == 0)
            return value->items[i];
    return (struct naive){0};
}

static struct naive number(double value)
{
    return (struct naive){.type = NAIVE_NUMBER, .number = value};
}

static bool holds(bool mongo, enum naive_test test, const struct naive *a, const struct naive *b)
{
    if (a->type == NAIVE_UNDEFINED || a->type != b->type)
        return false;
    if (test == NAIVE_EQUAL)
        return naive_compare(mongo, a, b) == 0;
    /* in SQL there is neither above nor below for them */
    if (!mongo && (a->type == NAIVE_ARRAY || a->type == NAIVE_OBJECT))
        return false;
    return test == NAIVE_LESS ? naive_compare(mongo, a, b) < 0 : naive_compare(mongo, a, b) >= 0;
}

/* Wide enough that what is added here is exact, as it is in the server: averages of averages differ
 * in their last bit otherwise. */
#ifdef __x86_64__
typedef __float128 wide;
#else
typedef long double wide;
#endif

static struct naive aggregate(const struct run *run, enum naive_aggregate kind,
                              const struct naive *values, size_t count)
{
    struct naive result = {0};
    bool spoiled = false;
    wide sum = 0;
    size_t some = 0;

    for (size_t i = 0; i < count; i++) {
        const struct naive *value = &values[i];

        if (value->type == NAIVE_UNDEFINED)
            continue;
        some++;
        if (kind == NAIVE_SUM || kind == NAIVE_AVG) {
            spoiled |= value->type != NAIVE_NUMBER;
            sum += value->number;
        } else if (kind == NAIVE_MIN || kind == NAIVE_MAX) {
            int order = naive_compare(run->mongo, value, &result);

            spoiled |= !run->mongo && value->type >= NAIVE_ARRAY;
            if (some == 1 || (kind == NAIVE_MIN ? order < 0 : order > 0))
                result = *value;
        }
    }
    if (kind == NAIVE_COUNT)
        return number((double)some);
    if (spoiled || !some)
        return (struct naive){0};
    if (kind == NAIVE_SUM || kind == NAIVE_AVG)
        return number(kind == NAIVE_SUM ? (double)sum : (double)sum / (double)some);
    return result;
}

/* --- Stages ---------------------------------------------------------------------------------- */

static void unwind(const struct run *run, const struct naive_stage *stage,
                   const struct naive_row *row, struct naive_rows *out)
{
    struct naive array = evaluate(row, stage->exprs[0]);
    size_t count = array.type == NAIVE_ARRAY ? array.count : 0;

    for (size_t i = 0; i < count || (i == 0 && stage->keep_empty); i++) {
        struct naive_row *copy = row_copy(run, row);

        copy->slots[stage->slots[0]] = count ? array.items[i] : (struct naive){0};
        if (stage->indexed)
            copy->slots[stage->slots[1]] = number(count ? (double)i : -1);
        naive_add(out, copy, run->arena);
    }
}

static void project(const struct run *run, const struct naive_stage *stage,
                    const struct naive_row *row, struct naive_rows *out)
{
    struct naive_row *made = row_copy(run, NULL);
    struct naive *value = &made->slots[stage->slots[0]];

    if (stage->kind == NAIVE_PROJECT) {
        *value = evaluate(row, stage->exprs[0]);
        if (value->type != NAIVE_UNDEFINED)
            naive_add(out, made, run->arena);
        return;
    }
    *value = (struct naive){.type = NAIVE_OBJECT,
                            .items = ARENA_ARRAY(run->arena, struct naive, NAIVE_LIST),
                            .names = ARENA_ARRAY(run->arena, const char *, NAIVE_LIST)};
    for (size_t i = 0; i < stage->count; i++) {
        struct naive property = evaluate(row, stage->exprs[i]);

        if (property.type == NAIVE_UNDEFINED)
            continue;
        value->names[value->count] = stage->names[i];
        value->items[value->count++] = property;
    }
    naive_add(out, made, run->arena);
}

static bool same_keys(const struct run *run, const struct naive_expr *keys, size_t count,
                      const struct naive_row *a, const struct naive_row *b)
{
    for (size_t i = 0; i < count; i++) {
        struct naive x = evaluate(a, keys[i]), y = evaluate(b, keys[i]);

        if (naive_compare(run->mongo, &x, &y) != 0)
            return false;
    }
    return true;
}

static void group(const struct run *run, const struct naive_stage *stage,
                  const struct naive_rows *in, struct naive_rows *out)
{
    bool *seen = arena_alloc_zero(run->arena, in->count + 1);
    struct naive *values = ARENA_ARRAY(run->arena, struct naive, in->count + 1);

    for (size_t i = 0; i < in->count || (i == 0 && !stage->count); i++) {
        struct naive_row *made;

        if (i < in->count && seen[i])
            continue;
        made = row_copy(run, NULL);
        for (size_t k = 0; k < stage->count; k++)
            made->slots[stage->slots[k]] = evaluate(in->list[i], stage->exprs[k]);
        for (size_t a = 0; a < stage->argument_count; a++) {
            size_t count = 0;

            for (size_t j = i; j < in->count; j++)
                if (same_keys(run, stage->exprs, stage->count, in->list[i], in->list[j])) {
                    values[count++] = evaluate(in->list[j], stage->arguments[a]);
                    seen[j] = true;
                }
            made->slots[stage->argument_slots[a]] =
                aggregate(run, stage->aggregates[a], values, count);
        }
        naive_add(out, made, run->arena);
    }
}

static int rows_order(const struct run *run, const struct naive_expr *by, const bool *descending,
                      size_t count, const struct naive_row *a, const struct naive_row *b)
{
    for (size_t i = 0; i < count; i++) {
        struct naive x = evaluate(a, by[i]), y = evaluate(b, by[i]);
        int order = naive_compare(run->mongo, &x, &y);

        if (order)
            return descending && descending[i] ? -order : order;
    }
    return 0;
}

/* By insertion, so that equal rows stay as they are. */
static void sort(const struct run *run, const struct naive_expr *by, const bool *descending,
                 size_t count, const struct naive_rows *in, struct naive_rows *out)
{
    for (size_t i = 0; i < in->count; i++) {
        naive_add(out, in->list[i], run->arena);
        for (size_t j = i;
             j && rows_order(run, by, descending, count, out->list[j - 1], out->list[j]) > 0; j--) {
            struct naive_row *row = out->list[j];

            out->list[j] = out->list[j - 1];
            out->list[j - 1] = row;
        }
    }
}

static void distinct(const struct run *run, const struct naive_stage *stage,
                     const struct naive_rows *in, struct naive_rows *out)
{
    for (size_t i = 0; i < in->count; i++) {
        bool known = false;

        for (size_t j = 0; j < out->count; j++)
            known |= same_keys(run, stage->exprs, stage->count, in->list[i], out->list[j]);
        if (!known)
            naive_add(out, in->list[i], run->arena);
    }
}

static struct naive array_of(struct naive *items, size_t count)
{
    return (struct naive){.type = NAIVE_ARRAY, .items = items, .count = count};
}

static struct naive *chain_over(const struct run *run, const struct naive_chain *chain,
                                const struct naive_rows *input, size_t *ret_count)
{
    return naive_run(chain, run->mongo, input, run->documents, run->arena, ret_count);
}

static void lookup(const struct run *run, const struct naive_stage *stage,
                   const struct naive_row *row, struct naive_rows *out)
{
    struct naive_row *made = row_copy(run, row);
    struct naive local = evaluate(row, stage->local), let = evaluate(row, stage->let);
    struct naive_rows input = {0};
    struct naive *items;
    size_t count;

    for (size_t i = 0; i < run->documents->count; i++) {
        struct naive_row *other = row_copy(run, run->documents->list[i]);
        struct naive foreign = evaluate(other, (struct naive_expr){0, stage->foreign});

        if (stage->has_local && (local.type == NAIVE_UNDEFINED || foreign.type != local.type ||
                                 naive_compare(run->mongo, &local, &foreign) != 0))
            continue;
        if (stage->has_let)
            other->slots[stage->let_slot] = let;
        naive_add(&input, other, run->arena);
    }
    items = chain_over(run, stage->chains[0], &input, &count);
    made->slots[stage->slots[0]] = array_of(items, count);
    naive_add(out, made, run->arena);
}

static void unite(const struct run *run, const struct naive_stage *stage,
                  const struct naive_rows *in, struct naive_rows *out)
{
    struct naive *items;
    size_t count;

    for (size_t i = 0; i < in->count; i++)
        naive_add(out, in->list[i], run->arena);
    items = chain_over(run, stage->chains[0], run->documents, &count);
    for (size_t i = 0; i < count; i++) {
        struct naive_row *row = row_copy(run, NULL);

        row->slots[stage->slots[0]] = items[i];
        naive_add(out, row, run->arena);
    }
}

static void facet(const struct run *run, const struct naive_stage *stage,
                  const struct naive_rows *in, struct naive_rows *out)
{
    struct naive_row *row = row_copy(run, NULL);

    for (size_t i = 0; i < stage->count; i++) {
        size_t count;
        struct naive *items = chain_over(run, stage->chains[i], in, &count);

        row->slots[stage->slots[i]] = array_of(items, count);
    }
    naive_add(out, row, run->arena);
}

/* --- Windows --------------------------------------------------------------------------------- */

/* Is row j in the frame of row i? Both are of one window, sorted. */
static bool in_frame(const struct run *run, const struct naive_stage *stage,
                     const struct naive_output *output, const struct naive_rows *window, size_t i,
                     size_t j)
{
    double away = (double)j - (double)i;
    bool behind = output->from_open || away >= output->from;
    bool before = output->to_open || away <= output->to;

    if (output->range) {
        struct naive a = evaluate(window->list[i], stage->exprs[0]);
        struct naive b = evaluate(window->list[j], stage->exprs[0]);
        bool equal = rows_order(run, stage->exprs, NULL, stage->count, window->list[i],
                                window->list[j]) == 0;

        if (a.type == NAIVE_NUMBER && b.type == NAIVE_NUMBER) {
            away = stage->descending[0] ? a.number - b.number : b.number - a.number;
            behind = output->from_open || away >= output->from;
            before = output->to_open || away <= output->to;
        } else {
            behind = output->from_open || equal || away >= 0;
            before = output->to_open || equal || away <= 0;
        }
    }
    return behind && before;
}

static struct naive window_value(const struct run *run, const struct naive_stage *stage,
                                 const struct naive_output *output, const struct naive_rows *window,
                                 size_t i)
{
    struct naive *values = ARENA_ARRAY(run->arena, struct naive, window->count + 1);
    size_t count = 0, rank = 1, dense = 1;

    for (size_t j = 0; j < window->count; j++)
        if (in_frame(run, stage, output, window, i, j))
            values[count++] = evaluate(window->list[j], output->argument);
    for (size_t j = 1; j <= i; j++)
        if (rows_order(run, stage->exprs, stage->descending, stage->count, window->list[j - 1],
                       window->list[j])) {
            rank = j + 1;
            dense++;
        }
    switch (output->kind) {
    case NAIVE_AGGREGATE:
        return aggregate(run, output->aggregate, values, count);
    case NAIVE_FIRST:
        return count ? values[0] : (struct naive){0};
    case NAIVE_LAST:
        return count ? values[count - 1] : (struct naive){0};
    case NAIVE_RANK:
        return number((double)rank);
    case NAIVE_DENSE_RANK:
        return number((double)dense);
    case NAIVE_ROW_NUMBER:
        return number((double)i + 1);
    case NAIVE_FOLD:
        for (size_t j = i + 1; j-- > 0;) {
            struct naive value = evaluate(window->list[j], output->argument);

            if (value.type != (struct naive){0}.type)
                return value;
        }
        return (struct naive){0};
    case NAIVE_SHIFT:
        break;
    }
    if ((long)i + output->shift < 0 || (long)i + output->shift >= (long)window->count)
        return (struct naive){.type = NAIVE_TEXT, .text = "none"};
    return evaluate(window->list[(long)i + output->shift], output->argument);
}

static void window(const struct run *run, const struct naive_stage *stage,
                   const struct naive_rows *in, struct naive_rows *out)
{
    struct naive_rows by_order = {0}, sorted = {0};

    sort(run, stage->exprs, stage->descending, stage->count, in, &by_order);
    sort(run, stage->partition, NULL, stage->partition_count, &by_order, &sorted);
    for (size_t i = 0; i < sorted.count;) {
        struct naive_rows one = {sorted.list + i, 0, 0};

        while (i < sorted.count && same_keys(run, stage->partition, stage->partition_count,
                                             one.list[0], sorted.list[i])) {
            one.count++;
            i++;
        }
        for (size_t j = 0; j < one.count; j++) {
            struct naive_row *row = row_copy(run, one.list[j]);

            for (size_t o = 0; o < stage->output_count; o++)
                row->slots[stage->outputs[o].slot] =
                    window_value(run, stage, &stage->outputs[o], &one, j);
            naive_add(out, row, run->arena);
        }
    }
}

/* --- Chains ---------------------------------------------------------------------------------- */

static void row_stage(const struct run *run, const struct naive_stage *stage, struct naive_row *row,
                      struct naive_rows *out)
{
    struct naive a = evaluate(row, stage->exprs[0]);
    struct naive b = stage->kind == NAIVE_MATCH ? stage->constant : evaluate(row, stage->exprs[1]);

    switch (stage->kind) {
    case NAIVE_UNWIND:
        unwind(run, stage, row, out);
        break;
    case NAIVE_LOOKUP:
        lookup(run, stage, row, out);
        break;
    case NAIVE_PROJECT:
    case NAIVE_PROJECT_OBJECT:
        project(run, stage, row, out);
        break;
    default:
        if (holds(run->mongo, stage->test, &a, &b))
            naive_add(out, row, run->arena);
        break;
    }
}

static struct naive_rows stage_run(const struct run *run, const struct naive_stage *stage,
                                   const struct naive_rows *in)
{
    struct naive_rows out = {0};

    switch (stage->kind) {
    case NAIVE_GROUP:
        group(run, stage, in, &out);
        return out;
    case NAIVE_SORT:
        sort(run, stage->exprs, stage->descending, stage->count, in, &out);
        return out;
    case NAIVE_DISTINCT:
        distinct(run, stage, in, &out);
        return out;
    case NAIVE_FACET:
        facet(run, stage, in, &out);
        return out;
    case NAIVE_UNION:
        unite(run, stage, in, &out);
        return out;
    case NAIVE_WINDOW:
        window(run, stage, in, &out);
        return out;
    default:
        break;
    }
    for (size_t i = 0; i < in->count; i++) {
        bool taken = stage->kind == NAIVE_SKIP ? i >= stage->amount : i < stage->amount;

        if (stage->kind != NAIVE_SKIP && stage->kind != NAIVE_LIMIT)
            row_stage(run, stage, in->list[i], &out);
        else if (taken)
            naive_add(&out, in->list[i], run->arena);
    }
    return out;
}

struct naive *naive_run(const struct naive_chain *chain, bool mongo, const struct naive_rows *input,
                        const struct naive_rows *documents, struct arena *arena, size_t *ret_count)
{
    struct run run = {mongo, arena, documents};
    struct naive_rows rows = *input;
    struct naive *made;

    for (size_t i = 0; i < chain->count; i++)
        rows = stage_run(&run, &chain->stages[i], &rows);
    made = ARENA_ARRAY(arena, struct naive, rows.count + 1);
    for (size_t i = 0; i < rows.count; i++) {
        struct naive *row = &made[i];

        *row = (struct naive){.type = NAIVE_OBJECT,
                              .items = ARENA_ARRAY(arena, struct naive, NAIVE_LIST * 4),
                              .names = ARENA_ARRAY(arena, const char *, NAIVE_LIST * 4)};
        for (size_t b = 0; b < chain->bound_count; b++) {
            struct naive value = rows.list[i]->slots[chain->bound[b]];

            if (value.type == NAIVE_UNDEFINED)
                continue;
            row->names[row->count] =
                (const char *)arena_printf(arena, "s%u%c", chain->bound[b], 0).data;
            row->items[row->count++] = value;
        }
    }
    *ret_count = rows.count;
    return made;
}
