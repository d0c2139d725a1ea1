/* Values are interned by the hash of their ordered key, so that 1 and 1.0 are one. Two values with
 * one 64-bit hash would be taken for one: at a million values that happens once in 30,000 runs, and
 * costs a hundredth of a percent of one figure.
 *
 * Samples are reservoirs: each of what was seen is kept with the same probability, by a seeded
 * sequence, so that the same input gives the same advice. */
#include "advise/workload.h"

#include "base/random.h"
#include "document/bson.h"
#include "document/json.h"
#include "document/order.h"

#include <stdlib.h>
#include <xxhash.h>

enum { DEPTH_MAX = 4, INTERN_FIRST = 4096 };

struct intern {
    uint64_t *hashes;       /* 0: free */
    advise_value *numbers;  /* beside it */
    size_t capacity, count; /* a power of two */
};

struct advise_workload {
    struct arena *arena;
    struct random random;
    struct advise_path paths[ADVISE_PATHS_MAX];
    size_t path_count;
    struct intern intern;
    struct document_value *values; /* by number */
    size_t values_capacity;
    struct intern transactions;
    struct advise_item *items;
    size_t item_count;
    struct advise_operation *operations;
    size_t operation_count;
    uint64_t items_seen, bytes_seen, operations_seen, operations_given;
    struct buf scratch;
};

/* --- Numbers for values ---------------------------------------------------------------------- */

static void intern_init(struct intern *intern)
{
    intern->capacity = INTERN_FIRST;
    intern->count = 0;
    intern->hashes = memory_alloc_zero(INTERN_FIRST * sizeof *intern->hashes);
    intern->numbers = memory_alloc_zero(INTERN_FIRST * sizeof *intern->numbers);
}

static void intern_done(struct intern *intern)
{
    memory_free(intern->hashes);
    memory_free(intern->numbers);
}

static size_t intern_place(const struct intern *intern, uint64_t hash)
{
    size_t at = hash & (intern->capacity - 1);

    while (intern->hashes[at] && intern->hashes[at] != hash)
        at = (at + 1) & (intern->capacity - 1);
    return at;
}

static void intern_grow(struct intern *intern)
{
    struct intern larger = {.capacity = intern->capacity * 2, .count = intern->count};

    larger.hashes = memory_alloc_zero(memory_array_size(larger.capacity, sizeof *larger.hashes));
    larger.numbers = memory_alloc_zero(memory_array_size(larger.capacity, sizeof *larger.numbers));
    for (size_t i = 0; i < intern->capacity; i++)
        if (intern->hashes[i]) {
            size_t at = intern_place(&larger, intern->hashes[i]);

            larger.hashes[at] = intern->hashes[i];
            larger.numbers[at] = intern->numbers[i];
        }
    intern_done(intern);
    *intern = larger;
}

/* The number of a hash; *ret_new: it was not there before. */
static advise_value intern_number(struct intern *intern, uint64_t hash, bool *ret_new)
{
    size_t at;

    hash += !hash;
    at = intern_place(intern, hash);
    *ret_new = !intern->hashes[at];
    if (!*ret_new)
        return intern->numbers[at];
    intern->hashes[at] = hash;
    intern->numbers[at] = (advise_value)++intern->count;
    if (intern->count * 2 > intern->capacity) {
        intern_grow(intern);
        at = intern_place(intern, hash);
    }
    return intern->numbers[at];
}

static struct document_value value_kept(struct advise_workload *workload,
                                        const struct document_value *value)
{
    struct document_value kept = *value;

    if (value->type == DOCUMENT_STRING)
        kept.text =
            arena_copy(workload->arena,
                       slice_first(value->text, MIN(value->text.len, (size_t)ADVISE_TEXT_MAX)));
    else if (!document_is_number(value) && value->type != DOCUMENT_BOOL &&
             value->type != DOCUMENT_NULL && value->type != DOCUMENT_DATE)
        kept = document_undefined();
    return kept;
}

static advise_value value_number(struct advise_workload *workload,
                                 const struct document_value *value)
{
    advise_value number;
    bool fresh;

    buf_clear(&workload->scratch);
    document_key_append(DOCUMENT_ORDER_SQL, value, &workload->scratch);
    number = intern_number(&workload->intern,
                           XXH3_64bits(workload->scratch.data, workload->scratch.len), &fresh);
    if (!fresh)
        return number;
    if (number >= workload->values_capacity) {
        workload->values_capacity = MAX((size_t)number * 2, (size_t)INTERN_FIRST);
        workload->values =
            memory_realloc(workload->values,
                           memory_array_size(workload->values_capacity, sizeof *workload->values));
    }
    workload->values[number] = value_kept(workload, value);
    return number;
}

/* --- Life ------------------------------------------------------------------------------------ */

struct advise_workload *advise_workload_new(void)
{
    struct advise_workload *workload = MEMORY_NEW(struct advise_workload);

    workload->arena = arena_new();
    random_seed(&workload->random, 1);
    intern_init(&workload->intern);
    intern_init(&workload->transactions);
    workload->items = memory_alloc(ADVISE_ITEMS_MAX * sizeof *workload->items);
    workload->operations = memory_alloc(ADVISE_OPERATIONS_MAX * sizeof *workload->operations);
    workload->values_capacity = INTERN_FIRST;
    workload->values = memory_alloc(INTERN_FIRST * sizeof *workload->values);
    workload->values[0] = document_undefined();
    buf_init(&workload->scratch, ADVISE_LINE_MAX * 4);
    return workload;
}

void advise_workload_free(struct advise_workload *workload)
{
    if (!workload)
        return;
    intern_done(&workload->intern);
    intern_done(&workload->transactions);
    memory_free(workload->items);
    memory_free(workload->operations);
    memory_free(workload->values);
    buf_done(&workload->scratch);
    arena_free(workload->arena);
    memory_free(workload);
}

const char *advise_operation_kind_name(enum advise_operation_kind kind)
{
    static const char *const names[ADVISE_OPERATION_KINDS] = {
        "create", "read", "replace", "upsert", "patch", "delete", "query"};

    return names[kind];
}

/* --- Paths ----------------------------------------------------------------------------------- */

int advise_workload_path(const struct advise_workload *workload, struct slice text)
{
    for (size_t i = 0; i < workload->path_count; i++)
        if (slice_equal(workload->paths[i].text, text))
            return (int)i;
    return -1;
}

/* -1: there are too many, and it came late. */
static int path_add(struct advise_workload *workload, struct slice text)
{
    int at = advise_workload_path(workload, text);

    if (at >= 0 || workload->path_count == ADVISE_PATHS_MAX)
        return at;
    workload->paths[workload->path_count].text = arena_copy(workload->arena, text);
    return (int)workload->path_count++;
}

/* Names that need quotes get them, so that paths are what a definition takes. */
static struct slice path_below(struct arena *arena, struct slice above, struct slice name)
{
    bool plain = name.len > 0;

    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.data[i];

        plain &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c >= 0x80;
    }
    return plain ? arena_join(arena, (struct slice[]){above, SLICE("/"), name}, 3)
                 : arena_join(arena, (struct slice[]){above, SLICE("/\""), name, SLICE("\"")}, 4);
}

static bool is_system(struct slice name)
{
    static const struct slice names[] = {SLICE("_rid"),         SLICE("_self"), SLICE("_etag"),
                                         SLICE("_attachments"), SLICE("_ts"),   SLICE("_lsn")};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_equal(name, names[i]))
            return true;
    return false;
}

/* Numbers all scalars of a document into values; those of an item of the sample are counted. */
static void document_take(struct advise_workload *workload, struct slice document,
                          struct slice above, unsigned depth, bool count, struct arena *arena,
                          advise_value *values)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        struct slice text;
        bool nested = iter.value.type == DOCUMENT_OBJECT || iter.value.type == DOCUMENT_ARRAY;
        int at;

        if (depth == 0 && is_system(iter.key))
            continue;
        if (memchr(iter.key.data, '"', iter.key.len))
            continue;
        text = path_below(arena, above, iter.key);
        at = path_add(workload, text);
        if (at >= 0 && count) {
            workload->paths[at].present++;
            workload->paths[at].nested += nested;
        }
        if (!nested && at >= 0)
            values[at] = value_number(workload, &iter.value);
        if (iter.value.type == DOCUMENT_OBJECT && depth + 1 < DEPTH_MAX)
            document_take(workload, iter.value.document, text, depth + 1, count, arena, values);
    }
}

static advise_value *values_new(struct advise_workload *workload)
{
    return arena_alloc_zero(workload->arena, ADVISE_PATHS_MAX * sizeof(advise_value));
}

/* Where in a reservoir of max the seen-th goes; max: nowhere. */
static size_t reservoir_place(struct advise_workload *workload, uint64_t seen, size_t *count,
                              size_t max)
{
    uint64_t at;

    if (*count < max)
        return (*count)++;
    at = random_below(&workload->random, seen);
    return at < max ? (size_t)at : max;
}

/* --- Filling --------------------------------------------------------------------------------- */

void advise_workload_item(struct advise_workload *workload, struct slice document, uint32_t bytes,
                          int64_t time_ms)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    advise_value *values;
    struct document_value ts;
    int64_t seconds;
    size_t at;

    workload->items_seen++;
    workload->bytes_seen += bytes;
    at = reservoir_place(workload, workload->items_seen, &workload->item_count, ADVISE_ITEMS_MAX);
    if (at == ADVISE_ITEMS_MAX)
        return;
    if (!time_ms && document_find(document, SLICE("_ts"), &ts) && document_to_int64(&ts, &seconds))
        time_ms = seconds * 1000;
    values = values_new(workload);
    document_take(workload, document, SLICE(""), 0, true, arena, values);
    workload->items[at] = (struct advise_item){values, bytes, time_ms};
}

static void changes_note(struct advise_workload *workload, const advise_value *before,
                         const advise_value *after)
{
    for (size_t i = 0; i < workload->path_count; i++)
        workload->paths[i].changed += before[i] != after[i];
}

static uint64_t where_take(struct advise_workload *workload, struct slice where,
                           advise_value *values)
{
    struct document_iter iter;
    uint64_t given = 0;

    document_iter_init(&iter, where);
    while (document_iter_next(&iter)) {
        int at = path_add(workload, iter.key);

        if (at < 0 || iter.value.type == DOCUMENT_OBJECT || iter.value.type == DOCUMENT_ARRAY)
            continue;
        values[at] = value_number(workload, &iter.value);
        given |= UINT64_C(1) << at;
    }
    return given;
}

static uint64_t names_take(struct advise_workload *workload, struct slice array)
{
    struct document_iter iter;
    uint64_t bits = 0;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        int at = iter.value.type == DOCUMENT_STRING ? path_add(workload, iter.value.text) : -1;

        if (at >= 0)
            bits |= UINT64_C(1) << at;
    }
    return bits;
}

static bool kind_writes_item(enum advise_operation_kind kind)
{
    return kind == ADVISE_CREATE || kind == ADVISE_REPLACE || kind == ADVISE_UPSERT;
}

void advise_workload_operation(struct advise_workload *workload,
                               const struct advise_operation_parts *parts)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct advise_operation operation = {.kind = parts->kind,
                                         .time_ms = parts->time_ms,
                                         .cru = parts->cru,
                                         .ms = parts->ms,
                                         .bytes = parts->bytes,
                                         .weight = parts->weight ? parts->weight : 1,
                                         .refused = parts->refused,
                                         .failed = parts->failed,
                                         .due_ms = parts->due_ms};
    advise_value *values;
    bool fresh;
    size_t at;

    workload->operations_seen += parts->weight ? parts->weight : 1;
    workload->operations_given++;
    at = reservoir_place(workload, workload->operations_given, &workload->operation_count,
                         ADVISE_OPERATIONS_MAX);
    if (at == ADVISE_OPERATIONS_MAX)
        return;
    values = values_new(workload);
    if (parts->item.data)
        document_take(workload, parts->item, SLICE(""), 0, false, arena, values);
    if (parts->before.data && parts->item.data && !parts->failed) {
        advise_value *before = ARENA_ARRAY(arena, advise_value, ADVISE_PATHS_MAX);

        memset(before, 0, ADVISE_PATHS_MAX * sizeof *before);
        document_take(workload, parts->before, SLICE(""), 0, false, arena, before);
        changes_note(workload, before, values);
    }
    if (parts->where.data)
        operation.given = where_take(workload, parts->where, values);
    if (kind_writes_item(parts->kind)) /* whoever writes an item has all of it */
        for (size_t i = 0; i < workload->path_count; i++)
            operation.given |= (uint64_t)(values[i] != 0) << i;
    if (parts->ranges.data)
        operation.ranges = names_take(workload, parts->ranges);
    if (parts->changed.data && !parts->failed) {
        uint64_t changed = names_take(workload, parts->changed);

        for (size_t i = 0; i < workload->path_count; i++)
            workload->paths[i].changed += changed >> i & 1;
    }
    if (parts->transaction.len)
        operation.transaction =
            intern_number(&workload->transactions,
                          XXH3_64bits(parts->transaction.data, parts->transaction.len), &fresh);
    operation.identity = parts->identity;
    operation.whole = parts->item.data && !parts->failed;
    operation.values = values;
    workload->operations[at] = operation;
}

static int item_compare(const void *a, const void *b)
{
    const struct advise_item *x = a, *y = b;

    return (x->time_ms > y->time_ms) - (x->time_ms < y->time_ms);
}

static int operation_compare(const void *a, const void *b)
{
    const struct advise_operation *x = a, *y = b;

    return (x->time_ms > y->time_ms) - (x->time_ms < y->time_ms);
}

static int by_identity(const void *a, const void *b)
{
    const struct advise_operation *x = *(const struct advise_operation *const *)a;
    const struct advise_operation *y = *(const struct advise_operation *const *)b;

    if (x->identity != y->identity)
        return x->identity < y->identity ? -1 : 1;
    return operation_compare(x, y);
}

/* The same item seen twice: what differs has changed in between. A create begins another life. */
static void changes_find(struct advise_workload *workload)
{
    CLEANUP(memory_free)
    const struct advise_operation **seen =
        memory_alloc(memory_array_size(workload->operation_count + 1, sizeof *seen));
    size_t count = 0;

    for (size_t i = 0; i < workload->operation_count; i++)
        if (workload->operations[i].identity && workload->operations[i].whole)
            seen[count++] = &workload->operations[i];
    qsort(seen, count, sizeof *seen, by_identity);
    for (size_t i = 1; i < count; i++)
        if (seen[i]->identity == seen[i - 1]->identity && seen[i]->kind != ADVISE_CREATE)
            changes_note(workload, seen[i - 1]->values, seen[i]->values);
}

/* --- What refused operations would have cost -------------------------------------------------- */

/* Operations of one kind, that name the same, and are about as large as far as their price depends
 * on it: what is written is known, what would have been found is not. */
static uint64_t sort_of(const struct advise_operation *operation, bool exact)
{
    uint64_t parts[] = {operation->kind, 0, 0, 0};

    if (exact) {
        parts[1] = operation->given;
        parts[2] = operation->ranges;
        if (kind_writes_item(operation->kind) && operation->bytes)
            parts[3] = 64 - (uint64_t)__builtin_clzll(operation->bytes);
    }
    return XXH3_64bits(parts, sizeof parts);
}

struct charges {
    struct intern sorts;
    struct charge {
        double cru, ms, bytes, weight;
    } * all;
    size_t capacity;
};

static struct charge *charge_of(struct charges *charges, const struct advise_operation *operation,
                                bool exact)
{
    bool fresh;
    size_t at = intern_number(&charges->sorts, sort_of(operation, exact), &fresh);

    if (at >= charges->capacity) {
        size_t capacity = MAX(at * 2, (size_t)64);

        charges->all =
            memory_realloc(charges->all, memory_array_size(capacity, sizeof *charges->all));
        memset(charges->all + charges->capacity, 0,
               (capacity - charges->capacity) * sizeof *charges->all);
        charges->capacity = capacity;
    }
    return &charges->all[at];
}

static void charge_add(struct charges *charges, const struct advise_operation *operation,
                       bool exact)
{
    struct charge *charge = charge_of(charges, operation, exact);

    charge->cru += (double)operation->cru * operation->weight;
    charge->ms += operation->ms * operation->weight;
    charge->bytes += (double)operation->bytes * operation->weight;
    charge->weight += operation->weight;
}

/* The mean of its sort, or else of its kind; where nothing like it came through, what was known of
 * its price stays. */
static void charge_guess(struct charges *charges, struct advise_operation *operation)
{
    struct charge charge = *charge_of(charges, operation, true);

    if (!(charge.weight > 0))
        charge = *charge_of(charges, operation, false);
    if (!(charge.weight > 0))
        return;
    operation->cru = MAX(operation->cru, (int64_t)(charge.cru / charge.weight));
    operation->ms = charge.ms / charge.weight;
    if (!operation->bytes)
        operation->bytes = (uint32_t)(charge.bytes / charge.weight);
}

static void charges_guess(struct advise_workload *workload)
{
    struct charges charges = {0};

    intern_init(&charges.sorts);
    for (size_t i = 0; i < workload->operation_count; i++)
        if (!workload->operations[i].failed) {
            charge_add(&charges, &workload->operations[i], true);
            charge_add(&charges, &workload->operations[i], false);
        }
    for (size_t i = 0; i < workload->operation_count; i++)
        if (workload->operations[i].failed)
            charge_guess(&charges, &workload->operations[i]);
    intern_done(&charges.sorts);
    memory_free(charges.all);
}

void advise_workload_finish(struct advise_workload *workload)
{
    qsort(workload->items, workload->item_count, sizeof *workload->items, item_compare);
    qsort(workload->operations, workload->operation_count, sizeof *workload->operations,
          operation_compare);
    changes_find(workload);
    charges_guess(workload);
}

void advise_workload_close_gaps(struct advise_workload *workload, int64_t gap_ms_max)
{
    int64_t moved_ms = 0, next_ms = 0;

    for (size_t i = workload->operation_count; i-- > 0;) {
        struct advise_operation *operation = &workload->operations[i];

        if (i + 1 < workload->operation_count)
            moved_ms += MAX(next_ms - operation->time_ms - gap_ms_max, (int64_t)0);
        next_ms = operation->time_ms;
        operation->time_ms += moved_ms;
        if (operation->due_ms)
            operation->due_ms += moved_ms;
    }
}

/* --- Looking --------------------------------------------------------------------------------- */

const struct advise_path *advise_workload_paths(const struct advise_workload *workload,
                                                size_t *ret_count)
{
    *ret_count = workload->path_count;
    return workload->paths;
}

const struct advise_item *advise_workload_items(const struct advise_workload *workload,
                                                size_t *ret_count)
{
    *ret_count = workload->item_count;
    return workload->items;
}

const struct advise_operation *advise_workload_operations(const struct advise_workload *workload,
                                                          size_t *ret_count)
{
    *ret_count = workload->operation_count;
    return workload->operations;
}

uint64_t advise_workload_items_seen(const struct advise_workload *workload)
{
    return workload->items_seen;
}

uint64_t advise_workload_bytes_seen(const struct advise_workload *workload)
{
    return workload->bytes_seen;
}

uint64_t advise_workload_operations_seen(const struct advise_workload *workload)
{
    return workload->operations_seen;
}

const struct document_value *advise_workload_value(const struct advise_workload *workload,
                                                   advise_value value)
{
    assert(value <= workload->intern.count);
    return &workload->values[value];
}

size_t advise_workload_value_count(const struct advise_workload *workload)
{
    return workload->intern.count;
}
