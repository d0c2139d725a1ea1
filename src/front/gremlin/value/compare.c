/* One walk over two values serves all four ways of comparing: what differs between them is asked of
 * `struct way`. Sets and maps are brought into the order of their keys before they are ordered;
 * for being equal, they are looked up in each other.
 *
 * Depth is bounded by GREMLIN_COMPARE_DEPTH, since the walk recurses. */
#include "front/gremlin/value/compare_private.h"

#include "base/memory.h"
#include "document/order.h"
#include "document/utf8.h"
#include "front/gremlin/value/big.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"

#include <math.h>
#include <stdlib.h>

enum sameness {
    EQUALITY,
    EQUIVALENCE,
};

static bool same(struct gremlin_value a, struct gremlin_value b, enum sameness how, int depth);
static int ordered(struct gremlin_value a, struct gremlin_value b, int depth);

enum gremlin_family gremlin_family_of(enum gremlin_type type)
{
    static const uint8_t families[] = {
        [GREMLIN_NULL] = GREMLIN_OF_NULL,
        [GREMLIN_BOOLEAN] = GREMLIN_OF_BOOLEAN,
        [GREMLIN_BYTE] = GREMLIN_OF_NUMBER,
        [GREMLIN_SHORT] = GREMLIN_OF_NUMBER,
        [GREMLIN_INT] = GREMLIN_OF_NUMBER,
        [GREMLIN_LONG] = GREMLIN_OF_NUMBER,
        [GREMLIN_FLOAT] = GREMLIN_OF_NUMBER,
        [GREMLIN_DOUBLE] = GREMLIN_OF_NUMBER,
        [GREMLIN_CHAR] = GREMLIN_OF_STRING,
        [GREMLIN_DATE] = GREMLIN_OF_DATE,
        [GREMLIN_TIMESTAMP] = GREMLIN_OF_DATE,
        [GREMLIN_ENUM] = GREMLIN_OF_OTHER,
        [GREMLIN_BIG_INTEGER] = GREMLIN_OF_NUMBER,
        [GREMLIN_BIG_DECIMAL] = GREMLIN_OF_NUMBER,
        [GREMLIN_STRING] = GREMLIN_OF_STRING,
        [GREMLIN_UUID] = GREMLIN_OF_UUID,
        [GREMLIN_BINARY] = GREMLIN_OF_OTHER,
        [GREMLIN_CLASS] = GREMLIN_OF_OTHER,
        [GREMLIN_DATE_TIME] = GREMLIN_OF_DATE,
        [GREMLIN_DURATION] = GREMLIN_OF_OTHER,
        [GREMLIN_TEMPORAL] = GREMLIN_OF_OTHER,
        [GREMLIN_LIST] = GREMLIN_OF_LIST,
        [GREMLIN_SET] = GREMLIN_OF_SET,
        [GREMLIN_BULK_SET] = GREMLIN_OF_SET,
        [GREMLIN_MAP] = GREMLIN_OF_MAP,
        [GREMLIN_ENTRY] = GREMLIN_OF_OTHER,
        [GREMLIN_VERTEX] = GREMLIN_OF_VERTEX,
        [GREMLIN_EDGE] = GREMLIN_OF_EDGE,
        [GREMLIN_VERTEX_PROPERTY] = GREMLIN_OF_VERTEX_PROPERTY,
        [GREMLIN_PROPERTY] = GREMLIN_OF_PROPERTY,
        [GREMLIN_PATH] = GREMLIN_OF_PATH,
        [GREMLIN_TREE] = GREMLIN_OF_MAP,
    };

    return type < ARRAY_LEN(families) ? families[type] : GREMLIN_OF_OTHER;
}

/* --- Numbers ---------------------------------------------------------------------------------- */

static bool is_real(struct gremlin_value value)
{
    return value.type == GREMLIN_FLOAT || value.type == GREMLIN_DOUBLE;
}

static bool is_nan(struct gremlin_value value)
{
    return is_real(value) && isnan(value.real);
}

/* A whole number against a double that is no NaN. Every whole double of this range is exact in
 * int64, and what is left of the other is between 0 and 1. */
static int whole_with_real(int64_t whole, double real)
{
    int64_t cut;

    if (real >= 0x1p63)
        return -1;
    if (real < -0x1p63)
        return 1;
    cut = (int64_t)real;
    if (whole != cut)
        return whole < cut ? -1 : 1;
    return ((double)cut > real) - ((double)cut < real);
}

/* Neither is NaN. */
static int numbers_ordered(struct gremlin_value a, struct gremlin_value b)
{
    if (gremlin_is_whole(a) && gremlin_is_whole(b))
        return (a.integer > b.integer) - (a.integer < b.integer);
    if (is_real(a) && is_real(b))
        return (a.real > b.real) - (a.real < b.real);
    if (gremlin_is_whole(a) && is_real(b))
        return whole_with_real(a.integer, b.real);
    if (is_real(a) && gremlin_is_whole(b))
        return -whole_with_real(b.integer, a.real);
    if (is_real(a) && isinf(a.real))
        return a.real > 0 ? 1 : -1;
    if (is_real(b) && isinf(b.real))
        return b.real > 0 ? -1 : 1;
    return gremlin_big_compare(a, b);
}

static bool numbers_same(struct gremlin_value a, struct gremlin_value b, enum sameness how)
{
    if (how == EQUIVALENCE) {
        if (a.type != b.type)
            return false;
        if (is_real(a)) /* -0.0 and 0.0 are two */
            return (isnan(a.real) && isnan(b.real)) ||
                   (a.real == b.real && signbit(a.real) == signbit(b.real));
    }
    return !is_nan(a) && !is_nan(b) && numbers_ordered(a, b) == 0;
}

/* --- Other scalars ---------------------------------------------------------------------------- */

struct gremlin_instant gremlin_instant_of(struct gremlin_value value)
{
    int64_t seconds, ms;

    if (value.type == GREMLIN_DATE_TIME)
        return (struct gremlin_instant){gremlin_date_time(value)->seconds,
                                        gremlin_date_time(value)->nanoseconds};
    seconds = value.integer / 1000;
    ms = value.integer % 1000;
    if (ms < 0) {
        seconds--;
        ms += 1000;
    }
    return (struct gremlin_instant){seconds, (int32_t)ms * 1000000};
}

static int dates_ordered(struct gremlin_value a, struct gremlin_value b)
{
    struct gremlin_instant x = gremlin_instant_of(a), y = gremlin_instant_of(b);

    if (x.seconds != y.seconds)
        return x.seconds < y.seconds ? -1 : 1;
    return (x.nanoseconds > y.nanoseconds) - (x.nanoseconds < y.nanoseconds);
}

/* A string or a character, whose bytes go to room. */
static struct slice text_of(struct gremlin_value value, uint8_t room[4])
{
    if (value.type == GREMLIN_STRING)
        return gremlin_bytes(value);
    return slice_of(room, utf8_encode((uint32_t)value.integer, room));
}

static int texts_ordered(struct gremlin_value a, struct gremlin_value b)
{
    uint8_t x[4], y[4];

    return document_compare_text(DOCUMENT_ORDER_SQL, text_of(a, x), text_of(b, y));
}

static bool texts_same(struct gremlin_value a, struct gremlin_value b, enum sameness how)
{
    uint8_t x[4], y[4];

    if (how == EQUIVALENCE && a.type != b.type)
        return false;
    return slice_equal(text_of(a, x), text_of(b, y));
}

static int durations_ordered(const struct gremlin_duration *a, const struct gremlin_duration *b)
{
    if (a->seconds != b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return (a->nanoseconds > b->nanoseconds) - (a->nanoseconds < b->nanoseconds);
}

/* --- Containers ------------------------------------------------------------------------------- */

static bool lists_same(const struct gremlin_list *a, const struct gremlin_list *b,
                       enum sameness how, int depth)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!same(a->items[i], b->items[i], how, depth))
            return false;
    return true;
}

static int lists_ordered(const struct gremlin_list *a, const struct gremlin_list *b, int depth)
{
    size_t shorter = MIN(a->count, b->count);

    for (size_t i = 0; i < shorter; i++) {
        int order = ordered(a->items[i], b->items[i], depth);

        if (order)
            return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

/* The counts of a bulk set, 1 of a set. */
static int64_t bulk_of(const struct gremlin_table *table, const struct gremlin_row *row)
{
    return table->object.type == GREMLIN_BULK_SET ? row->value.integer : 1;
}

static bool is_map(const struct gremlin_table *table)
{
    return table->object.type == GREMLIN_MAP || table->object.type == GREMLIN_TREE;
}

struct sorting {
    int depth;
};

static int rows_by_key(const void *a, const void *b, void *sorting)
{
    const struct gremlin_row *const *x = a, *const *y = b;

    return ordered((*x)->key, (*y)->key, ((const struct sorting *)sorting)->depth);
}

static const struct gremlin_row **rows_sorted(const struct gremlin_table *table, int depth)
{
    const struct gremlin_row **rows =
        memory_alloc(memory_array_size(table->count + 1, sizeof *rows));
    struct sorting sorting = {depth};

    for (size_t i = 0; i < table->count; i++)
        rows[i] = &table->rows[i];
    qsort_r(rows, table->count, sizeof *rows, rows_by_key, &sorting);
    return rows;
}

static bool rows_same(const struct gremlin_table *a, const struct gremlin_row *row,
                      const struct gremlin_table *b, const struct gremlin_row *other,
                      enum sameness how, int depth)
{
    if (is_map(a))
        return same(row->value, other->value, how, depth);
    return bulk_of(a, row) == bulk_of(b, other);
}

/* By equality 1 and 1.0 are one, which no hash tells, but they are neighbours in order. */
static bool tables_same_sorted(const struct gremlin_table *a, const struct gremlin_table *b,
                               int depth)
{
    CLEANUP(memory_free) const struct gremlin_row **x = rows_sorted(a, depth);
    CLEANUP(memory_free) const struct gremlin_row **y = rows_sorted(b, depth);

    for (size_t i = 0; i < a->count; i++)
        if (!same(x[i]->key, y[i]->key, EQUALITY, depth) ||
            !rows_same(a, x[i], b, y[i], EQUALITY, depth))
            return false;
    return true;
}

static bool tables_same(struct gremlin_value a, struct gremlin_value b, enum sameness how,
                        int depth)
{
    const struct gremlin_table *x = gremlin_table(a), *y = gremlin_table(b);

    if (x->count != y->count || (how == EQUIVALENCE && a.type != b.type))
        return false;
    for (size_t i = 0; i < x->count; i++) {
        const struct gremlin_row *row = &x->rows[i], *other = gremlin_table_find(b, row->key);

        if (!other && how == EQUALITY)
            return tables_same_sorted(x, y, depth);
        if (!other || !rows_same(x, row, y, other, how, depth))
            return false;
    }
    return true;
}

static int tables_ordered(const struct gremlin_table *a, const struct gremlin_table *b, int depth)
{
    CLEANUP(memory_free) const struct gremlin_row **x = rows_sorted(a, depth);
    CLEANUP(memory_free) const struct gremlin_row **y = rows_sorted(b, depth);
    size_t shorter = MIN(a->count, b->count);

    for (size_t i = 0; i < shorter; i++) {
        int order = ordered(x[i]->key, y[i]->key, depth);
        int64_t x_bulk, y_bulk;

        if (!order && is_map(a))
            order = ordered(x[i]->value, y[i]->value, depth);
        if (order)
            return order;
        if (is_map(a))
            continue;
        x_bulk = bulk_of(a, x[i]);
        y_bulk = bulk_of(b, y[i]);
        if (x_bulk != y_bulk)
            return x_bulk < y_bulk ? -1 : 1;
    }
    return (a->count > b->count) - (a->count < b->count);
}

/* --- Elements --------------------------------------------------------------------------------- */

/* Ids are unique for each value of the partition key, where it is known of both. */
static bool elements_same(struct gremlin_value a, struct gremlin_value b, enum sameness how,
                          int depth)
{
    const struct gremlin_element *x = gremlin_element(a), *y = gremlin_element(b);

    if (a.object == b.object)
        return true;
    if (a.type == GREMLIN_VERTEX_PROPERTY && gremlin_is_null(x->id) && gremlin_is_null(y->id))
        return same(x->label, y->label, how, depth) &&
               same(gremlin_vertex_property(a)->value, gremlin_vertex_property(b)->value, how,
                    depth);
    if (!same(x->id, y->id, how, depth))
        return false;
    return gremlin_is_null(x->partition) || gremlin_is_null(y->partition) ||
           same(x->partition, y->partition, how, depth);
}

static int elements_ordered(struct gremlin_value a, struct gremlin_value b, int depth)
{
    const struct gremlin_element *x = gremlin_element(a), *y = gremlin_element(b);
    int order = ordered(x->id, y->id, depth);

    if (!order)
        order = ordered(x->partition, y->partition, depth);
    if (order || a.type != GREMLIN_VERTEX_PROPERTY || !gremlin_is_null(x->id))
        return order;
    order = ordered(x->label, y->label, depth);
    return order ? order
                 : ordered(gremlin_vertex_property(a)->value, gremlin_vertex_property(b)->value,
                           depth);
}

/* By key and value alone: those of two edges may be the same. */
static bool properties_same(const struct gremlin_property *a, const struct gremlin_property *b,
                            enum sameness how, int depth)
{
    return same(a->key, b->key, how, depth) && same(a->value, b->value, how, depth);
}

static int properties_ordered(const struct gremlin_property *a, const struct gremlin_property *b,
                              int depth)
{
    int order = ordered(a->key, b->key, depth);

    return order ? order : ordered(a->value, b->value, depth);
}

static bool paths_same(const struct gremlin_path *a, const struct gremlin_path *b,
                       enum sameness how, int depth)
{
    if (a->length != b->length)
        return false;
    for (size_t left = a->length; left && a != b; left--, a = a->before, b = b->before)
        if (!same(a->value, b->value, how, depth) || !same(a->labels, b->labels, how, depth))
            return false;
    return true;
}

static int paths_ordered(const struct gremlin_path *a, const struct gremlin_path *b, int depth)
{
    CLEANUP(memory_free)
    const struct gremlin_path **x = memory_alloc(memory_array_size(a->length + 1, sizeof *x));
    CLEANUP(memory_free)
    const struct gremlin_path **y = memory_alloc(memory_array_size(b->length + 1, sizeof *y));
    size_t shorter = MIN(a->length, b->length);

    gremlin_path_nodes(a, x);
    gremlin_path_nodes(b, y);
    for (size_t i = 0; i < shorter; i++) {
        int order = ordered(x[i]->value, y[i]->value, depth);

        if (order)
            return order;
    }
    return (a->length > b->length) - (a->length < b->length);
}

/* --- What is of no family --------------------------------------------------------------------- */

static struct slice temporal_whole(struct gremlin_value value)
{
    struct slice name = gremlin_temporal_name(value);

    return slice_of(name.data, name.len + gremlin_temporal_text(value).len);
}

static int pointers_ordered(const void *a, const void *b)
{
    return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

/* Both of one type. Arguments and results that are no data (predicates, traversals) are only what
 * they are. */
static int others_ordered(struct gremlin_value a, struct gremlin_value b, int depth)
{
    int order;

    switch (a.type) {
    case GREMLIN_ENUM:
        return (a.word.word > b.word.word) - (a.word.word < b.word.word);
    case GREMLIN_BINARY:
    case GREMLIN_CLASS:
        return slice_compare(gremlin_bytes(a), gremlin_bytes(b));
    case GREMLIN_DURATION:
        return durations_ordered(gremlin_duration(a), gremlin_duration(b));
    case GREMLIN_TEMPORAL:
        return slice_compare(temporal_whole(a), temporal_whole(b));
    case GREMLIN_ENTRY:
        order = ordered(gremlin_entry(a)->key, gremlin_entry(b)->key, depth);
        return order ? order : ordered(gremlin_entry(a)->value, gremlin_entry(b)->value, depth);
    case GREMLIN_TRAVERSER:
        return ordered(gremlin_traverser(a)->value, gremlin_traverser(b)->value, depth);
    default:
        return pointers_ordered(a.object, b.object);
    }
}

static bool others_same(struct gremlin_value a, struct gremlin_value b, enum sameness how,
                        int depth)
{
    switch (a.type) {
    case GREMLIN_ENTRY:
        return same(gremlin_entry(a)->key, gremlin_entry(b)->key, how, depth) &&
               same(gremlin_entry(a)->value, gremlin_entry(b)->value, how, depth);
    case GREMLIN_TRAVERSER:
        return same(gremlin_traverser(a)->value, gremlin_traverser(b)->value, how, depth);
    case GREMLIN_GRAPH:
        return same(gremlin_subgraph(a)->vertices, gremlin_subgraph(b)->vertices, how, depth) &&
               same(gremlin_subgraph(a)->edges, gremlin_subgraph(b)->edges, how, depth);
    default:
        return others_ordered(a, b, depth) == 0;
    }
}

/* --- The four ways ---------------------------------------------------------------------------- */

static bool same(struct gremlin_value a, struct gremlin_value b, enum sameness how, int depth)
{
    enum gremlin_family family = gremlin_family_of(a.type);

    if (family != gremlin_family_of(b.type))
        return false;
    if (depth++ == GREMLIN_COMPARE_DEPTH)
        return true;
    switch (family) {
    case GREMLIN_OF_NULL:
        return true;
    case GREMLIN_OF_BOOLEAN:
        return a.boolean == b.boolean;
    case GREMLIN_OF_NUMBER:
        return numbers_same(a, b, how);
    case GREMLIN_OF_DATE:
        if (how == EQUIVALENCE && a.type != b.type)
            return false;
        return dates_ordered(a, b) == 0;
    case GREMLIN_OF_STRING:
        return texts_same(a, b, how);
    case GREMLIN_OF_UUID:
        return slice_equal(gremlin_bytes(a), gremlin_bytes(b));
    case GREMLIN_OF_VERTEX:
    case GREMLIN_OF_EDGE:
    case GREMLIN_OF_VERTEX_PROPERTY:
        return elements_same(a, b, how, depth);
    case GREMLIN_OF_PROPERTY:
        return properties_same(gremlin_property(a), gremlin_property(b), how, depth);
    case GREMLIN_OF_PATH:
        return paths_same(gremlin_path(a), gremlin_path(b), how, depth);
    case GREMLIN_OF_SET:
    case GREMLIN_OF_MAP:
        return tables_same(a, b, how, depth);
    case GREMLIN_OF_LIST:
        return lists_same(gremlin_list(a), gremlin_list(b), how, depth);
    default:
        return a.type == b.type && others_same(a, b, how, depth);
    }
}

static int ordered(struct gremlin_value a, struct gremlin_value b, int depth)
{
    enum gremlin_family family = gremlin_family_of(a.type), other = gremlin_family_of(b.type);

    if (family != other)
        return family < other ? -1 : 1;
    if (depth++ == GREMLIN_COMPARE_DEPTH)
        return 0;
    switch (family) {
    case GREMLIN_OF_NULL:
        return 0;
    case GREMLIN_OF_BOOLEAN:
        return (int)a.boolean - (int)b.boolean;
    case GREMLIN_OF_NUMBER:
        if (is_nan(a) || is_nan(b))
            return (int)is_nan(a) - (int)is_nan(b);
        return numbers_ordered(a, b);
    case GREMLIN_OF_DATE:
        return dates_ordered(a, b);
    case GREMLIN_OF_STRING:
        return texts_ordered(a, b);
    case GREMLIN_OF_UUID:
        return slice_compare(gremlin_bytes(a), gremlin_bytes(b));
    case GREMLIN_OF_VERTEX:
    case GREMLIN_OF_EDGE:
    case GREMLIN_OF_VERTEX_PROPERTY:
        return elements_ordered(a, b, depth);
    case GREMLIN_OF_PROPERTY:
        return properties_ordered(gremlin_property(a), gremlin_property(b), depth);
    case GREMLIN_OF_PATH:
        return paths_ordered(gremlin_path(a), gremlin_path(b), depth);
    case GREMLIN_OF_SET:
    case GREMLIN_OF_MAP:
        return tables_ordered(gremlin_table(a), gremlin_table(b), depth);
    case GREMLIN_OF_LIST:
        return lists_ordered(gremlin_list(a), gremlin_list(b), depth);
    default:
        if (a.type != b.type)
            return a.type < b.type ? -1 : 1;
        return others_ordered(a, b, depth);
    }
}

bool gremlin_equal(struct gremlin_value a, struct gremlin_value b)
{
    return same(a, b, EQUALITY, 0);
}

bool gremlin_equivalent(struct gremlin_value a, struct gremlin_value b)
{
    return same(a, b, EQUIVALENCE, 0);
}

int gremlin_order(struct gremlin_value a, struct gremlin_value b)
{
    return ordered(a, b, 0);
}

/* Collections compare if what they hold does, as far as it decides. */
static bool comparable(struct gremlin_value a, struct gremlin_value b, int *ret_order, int depth)
{
    enum gremlin_family family = gremlin_family_of(a.type);

    if (family != gremlin_family_of(b.type) || is_nan(a) || is_nan(b))
        return false;
    if (depth++ == GREMLIN_COMPARE_DEPTH)
        return false;
    if (family == GREMLIN_OF_OTHER && a.type != b.type)
        return false;
    if (family == GREMLIN_OF_LIST) {
        const struct gremlin_list *x = gremlin_list(a), *y = gremlin_list(b);

        for (size_t i = 0; i < MIN(x->count, y->count); i++) {
            if (!comparable(x->items[i], y->items[i], ret_order, depth))
                return false;
            if (*ret_order)
                return true;
        }
        *ret_order = (x->count > y->count) - (x->count < y->count);
        return true;
    }
    *ret_order = ordered(a, b, depth);
    return true;
}

bool gremlin_comparable(struct gremlin_value a, struct gremlin_value b, int *ret_order)
{
    return comparable(a, b, ret_order, 0);
}

enum gremlin_truth gremlin_truth_and(enum gremlin_truth a, enum gremlin_truth b)
{
    if (a == GREMLIN_FALSE || b == GREMLIN_FALSE)
        return GREMLIN_FALSE;
    return a == GREMLIN_TRUE && b == GREMLIN_TRUE ? GREMLIN_TRUE : GREMLIN_UNKNOWN;
}

enum gremlin_truth gremlin_truth_or(enum gremlin_truth a, enum gremlin_truth b)
{
    if (a == GREMLIN_TRUE || b == GREMLIN_TRUE)
        return GREMLIN_TRUE;
    return a == GREMLIN_FALSE && b == GREMLIN_FALSE ? GREMLIN_FALSE : GREMLIN_UNKNOWN;
}

enum gremlin_truth gremlin_truth_not(enum gremlin_truth a)
{
    if (a == GREMLIN_UNKNOWN)
        return a;
    return a == GREMLIN_TRUE ? GREMLIN_FALSE : GREMLIN_TRUE;
}
