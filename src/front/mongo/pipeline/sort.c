/* A document sorts by the least value that its path leads to, and where the order descends by the
 * greatest: a path leads through every element of an array. What is missing is null; an array
 * without elements comes before that. */
#include "front/mongo/pipeline/sort.h"
#include "front/mongo/match/text.h"

#include "document/bson.h"
#include "document/order.h"
#include "front/mongo/error.h"
#include "query/expression/item.h"

enum { KEYS_MAX = 32, COMPONENTS_MAX = 200 };

struct key_node {
    struct query_expression head;
    const struct slice *components;
    size_t count;
    uint32_t slot;
    bool descending;
    const struct document_collator *collator; /* NULL: none */
};

/* The walk of one document. */
struct walk {
    const struct key_node *node;
    struct query_context *context;
    struct document_value best;
    bool any;
};

/* What is best is kept in comparison form. */
static bool consider(struct walk *walk, const struct document_value *value, struct error *err)
{
    struct document_value form = *value;
    int order;

    if (walk->node->collator &&
        !mongo_collate(walk->node->collator, value, walk->context, &form, err))
        return false;
    if (walk->any) {
        order = document_compare(DOCUMENT_ORDER_MONGO, &form, &walk->best);
        if (walk->node->descending ? order <= 0 : order >= 0)
            return true;
    }
    walk->best = form;
    walk->any = true;
    return true;
}

static bool leaf(struct walk *walk, const struct document_value *value, struct error *err)
{
    const struct document_value empty = document_undefined();
    struct document_iter iter;
    bool some = false;

    if (value->type != DOCUMENT_ARRAY)
        return consider(walk, value, err);
    document_iter_init(&iter, value->document);
    for (; document_iter_next(&iter); some = true) {
        if (!query_work(walk->context, 1, err) || !consider(walk, &iter.value, err))
            return false;
    }
    return some || consider(walk, &empty, err);
}

static bool component_index(struct slice name, uint64_t *ret_index)
{
    return name.len < 10 && slice_to_uint64(name, ret_index);
}

/* The value stands at the first `at` components. */
static bool descend(struct walk *walk, const struct document_value *value, size_t at,
                    struct error *err)
{
    const struct document_value none = document_null();
    struct document_value inner;
    struct document_iter iter;
    uint64_t index;

    if (at == walk->node->count)
        return leaf(walk, value, err);
    if (!query_work(walk->context, 1, err))
        return false;
    if (value->type == DOCUMENT_OBJECT) {
        if (document_find(value->document, walk->node->components[at], &inner))
            return descend(walk, &inner, at + 1, err);
    } else if (value->type == DOCUMENT_ARRAY) {
        if (component_index(walk->node->components[at], &index) &&
            document_find_index(value->document, index, &inner) &&
            !descend(walk, &inner, at + 1, err))
            return false;
        document_iter_init(&iter, value->document);
        while (document_iter_next(&iter)) {
            if (iter.value.type != DOCUMENT_OBJECT /* null, as an index has it */
                    ? !consider(walk, &none, err)
                    : !descend(walk, &iter.value, at, err))
                return false;
        }
        return true;
    }
    return consider(walk, &none, err);
}

static bool key_evaluate(const struct query_expression *expression, struct query_context *context,
                         struct document_value *ret_value, struct error *err)
{
    struct walk walk = {.node = (const struct key_node *)expression, .context = context};

    if (!descend(&walk, &context->slots[walk.node->slot].value, 0, err))
        return false;
    *ret_value = walk.any ? walk.best : document_null();
    return true;
}

/* A component that is a number may be a place in an array, which indexes know otherwise. */
static bool key_is_end_of(const struct query_expression *expression, struct arena *arena,
                          struct query_end *ret_end)
{
    const struct key_node *node = (const struct key_node *)expression;
    struct document_segment *segments = ARENA_ARRAY(arena, struct document_segment, node->count);
    uint64_t index;

    if (node->count > DOCUMENT_PATH_SEGMENTS_MAX)
        return false;
    for (size_t i = 0; i < node->count; i++) {
        if (component_index(node->components[i], &index))
            return false;
        segments[i] = (struct document_segment){.name = node->components[i]};
    }
    *ret_end = (struct query_end){
        .path = {.segments = segments, .count = node->count, .end = DOCUMENT_PATH_END_SCALAR},
        .greatest = node->descending,
        .collator = node->collator};
    return true;
}

static const struct query_kind key_kind = {"sort key", key_evaluate, QUERY_STABLE,
                                           .is_end_of = key_is_end_of};

/* The number of an item: items are numbered as they are made. */
static bool natural_evaluate(const struct query_expression *expression UNUSED,
                             struct query_context *context, struct document_value *ret_value,
                             struct error *err UNUSED)
{
    const struct query_item *bound = context->slots[0].hidden_self;

    *ret_value = bound ? document_int64((int64_t)bound->item->header.number) : document_null();
    return true;
}

static const struct query_kind natural_kind = {"creation", natural_evaluate, QUERY_STABLE};

static const struct slice *components_split(struct slice path, struct arena *arena,
                                            size_t *ret_count)
{
    struct slice *components = ARENA_ARRAY(arena, struct slice, COMPONENTS_MAX);
    struct slice rest = arena_copy(arena, path), head, tail;
    size_t count = 0;

    while (count < COMPONENTS_MAX - 1 && slice_split(rest, '.', &head, &tail)) {
        components[count++] = head;
        rest = tail;
    }
    components[count++] = rest;
    *ret_count = count;
    return components;
}

/* {$meta: "textScore"} */
static bool is_text_score(const struct document_value *value)
{
    struct document_value meta;

    return value->type == DOCUMENT_OBJECT && document_count(value->document) == 1 &&
           document_find(value->document, SLICE("$meta"), &meta) && meta.type == DOCUMENT_STRING &&
           slice_equal(meta.text, SLICE("textScore"));
}

static bool direction_read(const struct document_value *value, bool *ret_descending,
                           struct error *err)
{
    double number;

    if (value->type == DOCUMENT_OBJECT)
        return is_text_score(value)
                   ? mongo_error_set(err, 40218,
                                     "query requires text score metadata, but it is not available")
                   : mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                     "sort: $meta of this kind is not offered yet");
    if (!document_to_double(value, &number) || (number != 1 && number != -1))
        return mongo_error_set(err, 15975,
                               "$sort key ordering must be 1 (for ascending) or -1 "
                               "(for descending)");
    *ret_descending = number < 0;
    return true;
}

const struct query_order *mongo_sort_by_creation(struct query_build *build)
{
    const struct query_expression *item = query_variable(build, 0);
    struct query_order *order = ARENA_NEW(build->arena, struct query_order);

    *order = (struct query_order){
        query_node(build, &natural_kind, sizeof(struct query_expression), &item, 1), false};
    return order;
}

bool mongo_sort_compile(struct slice sort, const struct document_collator *collator, uint32_t slot,
                        struct query_build *build, const struct query_order **ret_order,
                        size_t *ret_count, struct error *err)
{
    struct query_order *order;
    struct document_iter iter;
    size_t count = 0;

    *ret_order = NULL;
    *ret_count = 0;
    if (!sort.data)
        return true;
    order = ARENA_ARRAY(build->arena, struct query_order, KEYS_MAX);
    document_iter_init(&iter, sort);
    while (document_iter_next(&iter)) {
        const struct query_expression *item = query_variable(build, slot);
        struct key_node *node;
        bool descending = false;

        if (count == KEYS_MAX)
            return mongo_error_set(err, MONGO_BAD_VALUE, "too many compound keys: at most %d",
                                   KEYS_MAX);
        if (is_text_score(&iter.value) && build->searched) {
            order[count++] = (struct query_order){
                mongo_text_score_expression(build->searched, slot, build), true};
            continue;
        }
        if (!direction_read(&iter.value, &descending, err))
            return false;
        if (slice_equal(iter.key, SLICE("$natural"))) {
            if (!descending)
                continue;
            order[count++] = (struct query_order){
                query_node(build, &natural_kind, sizeof(struct query_expression), &item, 1), true};
            continue;
        }
        if (!iter.key.len || iter.key.data[0] == '$')
            return mongo_error_set(err, MONGO_BAD_VALUE, "FieldPath field names may not %s.",
                                   iter.key.len ? "start with '$'" : "be empty");
        node = query_node(build, &key_kind, sizeof *node, &item, 1);
        if (!build->failed) {
            node->components = components_split(iter.key, build->arena, &node->count);
            node->descending = descending;
            node->slot = slot;
            node->collator = collator;
        }
        order[count++] = (struct query_order){&node->head, descending};
    }
    *ret_order = order;
    *ret_count = count;
    return true;
}
