/* Bounds are a condition of the filter, by the values that an item has in the index: so they hold
 * whatever a plan walks. That the walk itself keeps within them is a matter of cost alone
 * (query_hint.bounds), and their bytes may be wider where long values are cut. */
#include "front/mongo/command/index_keys.h"

#include "front/mongo/command/indexes.h"
#include "front/mongo/index/spec.h"
#include "query/expression/item.h"

/* --- Hints ----------------------------------------------------------------------------------- */

static bool hint_refuse(struct error *err)
{
    return mongo_error_set(err, MONGO_BAD_VALUE,
                           "error processing query: planner returned error :: caused by :: hint "
                           "provided does not correspond to an existing index");
}

bool mongo_hint_find(struct mongo_call *call, const struct mongo_collection *collection,
                     const struct document_value *hint, const struct index_definition **ret_index,
                     struct error *err)
{
    size_t count;
    struct slice *shown = mongo_indexes_shown(call, collection, &count);

    for (size_t i = 0; i < count; i++) {
        struct document_value name = document_undefined(), key = document_undefined();
        const struct index_definition *index;

        (void)document_find(shown[i], SLICE("name"), &name);
        (void)document_find(shown[i], SLICE("key"), &key);
        if (hint->type == DOCUMENT_STRING ? !slice_equal(name.text, hint->text)
                                          : document_compare(DOCUMENT_ORDER_MONGO, &key, hint) != 0)
            continue;
        *ret_index = NULL;
        if (i == 0)
            return true;
        index = definition_index(definition_fields(container_definition(collection->container)),
                                 name.text);
        if (!index || index->state != INDEX_READY || index->hidden)
            continue;
        *ret_index = index;
        return true;
    }
    return hint_refuse(err);
}

/* --- Bounds ---------------------------------------------------------------------------------- */

static bool is_given(struct slice document)
{
    return document.data && document_count(document);
}

static bool names_same(struct slice a, struct slice b)
{
    struct document_iter left, right;

    if (document_count(a) != document_count(b))
        return false;
    document_iter_init(&left, a);
    document_iter_init(&right, b);
    while (document_iter_next(&left) && document_iter_next(&right))
        if (!slice_equal(left.key, right.key))
            return false;
    return true;
}

/* A definition of its own in the arena, that of _id where none is named. */
static bool index_copy(const struct mongo_collection *collection,
                       const struct index_definition *named, struct arena *arena,
                       const struct index_definition **ret_index, struct error *err)
{
    const struct definition_fields *fields =
        definition_fields(container_definition(collection->container));
    struct slice name = named ? named->name : MONGO_INDEX_ID,
                 document = definition_index_document(fields, name);
    struct document_value value =
        document_object(document.data ? document : mongo_index_id_definition(NULL, arena));
    CLEANUP(buf_done) struct buf unused;

    buf_init(&unused, BUF_DEFAULT_MAX);
    return index_definition_read(&value, named ? named->number : 1, arena, SLICE("0"), &unused,
                                 ret_index, err);
}

/* The values of min or max, if their names are the paths of the index. */
static bool values_read(const struct index_definition *index, struct slice document,
                        struct arena *arena, const struct document_value **ret_values)
{
    struct document_value *values = ARENA_ARRAY(arena, struct document_value, index->part_count);
    struct document_iter iter;
    size_t count = 0;

    *ret_values = NULL;
    if (!is_given(document))
        return true;
    document_iter_init(&iter, arena_copy(arena, document));
    for (; document_iter_next(&iter); count++) {
        CLEANUP(buf_done) struct buf path;
        struct slice named;

        buf_init(&path, BUF_DEFAULT_MAX);
        if (count == index->part_count)
            return false;
        document_path_append(&index->parts[count].path, &path);
        named = mongo_index_path(iter.key, arena);
        if (!slice_equal(buf_slice(&path), named))
            return false;
        values[count] = index->collator && document_collate_matters(&iter.value)
                            ? document_collate(index->collator, &iter.value, arena)
                            : iter.value;
    }
    *ret_values = values;
    return count == index->part_count;
}

/* Ranges in an index need values in the order of the query. */
static bool index_serves(const struct index_definition *index,
                         const struct document_collator *collator)
{
    if (index->kind != &index_kind_ordered || index->collator != collator)
        return false;
    for (size_t i = 0; i < index->part_count; i++)
        if (index->parts[i].hashed)
            return false;
    return true;
}

static struct slice bound_bytes(const struct mongo_key_bounds *bounds,
                                const struct document_value *values, bool is_max,
                                struct arena *arena)
{
    CLEANUP(buf_done) struct buf key;
    bool cut;

    buf_init(&key, BUF_DEFAULT_MAX);
    if (!values)
        return is_max ? SLICE("\xFF") : SLICE("\x00");
    cut = index_definition_key(bounds->index, values, true, &key);
    return is_max && cut ? cursor_prefix_end(arena, buf_slice(&key))
                         : arena_copy(arena, buf_slice(&key));
}

static bool not_compatible(struct error *err)
{
    return mongo_error_set(err, 51174, "The index chosen is not compatible with min/max");
}

bool mongo_key_bounds_read(struct mongo_call *call, const struct mongo_collection *collection,
                           const struct mongo_key_limits *limits, struct arena *arena,
                           const struct mongo_key_bounds **ret_bounds, struct error *err)
{
    struct mongo_key_bounds *bounds = ARENA_NEW(arena, struct mongo_key_bounds);
    const struct index_definition *named;
    struct document_value natural;

    *ret_bounds = NULL;
    *bounds = (struct mongo_key_bounds){0};
    if (!is_given(limits->min) && !is_given(limits->max))
        return true;
    if (is_given(limits->min) && is_given(limits->max) && !names_same(limits->min, limits->max))
        return mongo_error_set(err, 51176, "min and max must have the same field names");
    if ((limits->hint.type != DOCUMENT_STRING && limits->hint.type != DOCUMENT_OBJECT) ||
        (limits->hint.type == DOCUMENT_OBJECT &&
         document_find(limits->hint.document, SLICE("$natural"), &natural)))
        return mongo_error_set(
            err, 51173, "When using min()/max() a hint of which index to use must be provided");
    if (!collection->container) /* what the server makes has no indexes */
        return not_compatible(err);
    if (!mongo_hint_find(call, collection, &limits->hint, &named, err) ||
        !index_copy(collection, named, arena, &bounds->index, err))
        return false;
    if (!index_serves(bounds->index, limits->collator) ||
        !values_read(bounds->index, limits->min, arena, &bounds->min) ||
        !values_read(bounds->index, limits->max, arena, &bounds->max))
        return not_compatible(err);
    if (bounds->min && bounds->max &&
        index_definition_compare(bounds->index, bounds->min, bounds->max) >= 0)
        return mongo_error_set(err, 51175,
                               "The value provided for min() does not come before the value "
                               "provided for max() in the hinted index");
    if (named)
        bounds->range = (struct cursor_range){bound_bytes(bounds, bounds->min, false, arena),
                                              bound_bytes(bounds, bounds->max, true, arena)};
    *ret_bounds = bounds;
    return true;
}

struct bounds_node {
    struct query_expression head;
    const struct mongo_key_bounds *bounds;
};

struct bounds_looking {
    const struct mongo_key_bounds *bounds;
    bool found;
};

static void entry_look(void *self, const struct document_value *values UNUSED,
                       const struct document_value *forms)
{
    struct bounds_looking *looking = self;
    const struct mongo_key_bounds *bounds = looking->bounds;

    looking->found |=
        (!bounds->min || index_definition_compare(bounds->index, forms, bounds->min) >= 0) &&
        (!bounds->max || index_definition_compare(bounds->index, forms, bounds->max) < 0);
}

/* The stored document of the row; NULL: there is none. */
static const struct query_item *item_of(const struct query_context *context)
{
    return context->slots[0].hidden_self;
}

static bool bounds_evaluate(const struct query_expression *expression,
                            struct query_context *context, struct document_value *ret_value,
                            struct error *err)
{
    const struct bounds_node *node = (const struct bounds_node *)expression;
    const struct query_item *bound = item_of(context);
    struct bounds_looking looking = {.bounds = node->bounds};
    const struct index_visitor visitor = {entry_look, &looking};

    if (bound && (!query_work(context, 16 + (bound->item->document.len >> 6), err) ||
                  !index_definition_visit(node->bounds->index, bound->item->document,
                                          context->arena, &visitor, err)))
        return false;
    *ret_value = document_bool(looking.found);
    return true;
}

static const struct query_kind bounds_kind = {"bounds of an index", bounds_evaluate, QUERY_STABLE};

const struct query_expression *mongo_key_bounds_expression(const struct mongo_key_bounds *bounds,
                                                           struct query_build *build)
{
    const struct query_expression *item = query_variable(build, 0);
    struct bounds_node *node = query_node(build, &bounds_kind, sizeof *node, &item, 1);

    node->bounds = bounds;
    return &node->head;
}

/* --- Keys ------------------------------------------------------------------------------------ */

struct key_node {
    struct query_expression head;
    bool by_id;
};

struct key_looking {
    const struct query_found *found;
    struct buf entry;   /* bytes that the entry begins with */
    struct buf compare; /* those of the entry that is looked at */
    struct buf *out;
    bool taken;
};

static void key_append(struct buf *out, const struct index_definition *index,
                       const struct document_value *values)
{
    for (size_t i = 0; i < index->part_count; i++) {
        const struct document_path *path = &index->parts[i].path;
        CLEANUP(buf_done) struct buf name;

        buf_init(&name, BUF_DEFAULT_MAX);
        for (size_t n = 0; n < path->count; n++) {
            buf_append_text(&name, n ? "." : "");
            buf_append_slice(&name, path->segments[n].name);
        }
        document_append(out, buf_slice(&name), &values[i]);
    }
}

static void key_look(void *self, const struct document_value *values,
                     const struct document_value *forms)
{
    struct key_looking *looking = self;
    const struct index_definition *index = looking->found->index;

    if (looking->taken)
        return;
    buf_clear(&looking->compare);
    buf_append_slice(&looking->compare, index->prefix);
    (void)index_definition_key(index, forms, false, &looking->compare);
    if (!slice_starts_with(buf_slice(&looking->compare), buf_slice(&looking->entry)))
        return;
    looking->taken = true;
    key_append(looking->out, index, values);
}

/* Looks for the values of the entry among those of the document: the entry itself does not have the
 * types of numbers, nor all of long texts. */
static bool found_append(const struct query_item *bound, struct query_context *context,
                         struct buf *out, struct error *err)
{
    const struct query_found *found = &bound->found;
    struct key_looking looking = {.found = found, .out = out};
    const struct index_visitor visitor = {key_look, &looking};
    bool fine;

    buf_init(&looking.entry, BUF_DEFAULT_MAX);
    buf_init(&looking.compare, BUF_DEFAULT_MAX);
    buf_append_slice(&looking.entry, found->prefix);
    buf_append_slice(&looking.entry, found->value);
    for (size_t i = found->prefix.len; found->backwards && i < looking.entry.len; i++)
        looking.entry.data[i] = (uint8_t)~looking.entry.data[i];
    fine =
        query_work(context, 16 + (bound->item->document.len >> 6), err) &&
        index_definition_visit(found->index, bound->item->document, context->arena, &visitor, err);
    buf_done(&looking.entry);
    buf_done(&looking.compare);
    return fine;
}

static bool key_evaluate(const struct query_expression *expression, struct query_context *context,
                         struct document_value *ret_value, struct error *err)
{
    const struct key_node *node = (const struct key_node *)expression;
    const struct query_item *bound = item_of(context);
    struct buf *out = &context->scratch;
    size_t mark = query_build_begin(context), begin = document_begin(out);
    struct document_value id;

    if (bound && bound->found.index && bound->found.index->kind == &index_kind_ordered) {
        if (!found_append(bound, context, out, err)) {
            query_build_drop(context, mark);
            return false;
        }
    } else if (bound && node->by_id && document_find(bound->item->document, SLICE("_id"), &id)) {
        document_append(out, SLICE("_id"), &id);
    }
    return query_build_close(context, mark, begin, DOCUMENT_OBJECT, ret_value, err);
}

static const struct query_kind key_kind = {"key of an index", key_evaluate, QUERY_STABLE};

const struct query_expression *mongo_key_expression(bool by_id, struct query_build *build)
{
    const struct query_expression *item = query_variable(build, 0);
    struct key_node *node = query_node(build, &key_kind, sizeof *node, &item, 1);

    node->by_id = by_id;
    return &node->head;
}

/* --- Record ids ------------------------------------------------------------------------------ */

static bool record_id_evaluate(const struct query_expression *expression,
                               struct query_context *context, struct document_value *ret_value,
                               struct error *err)
{
    const struct query_item *bound = item_of(context);
    struct document_value row;
    struct document_iter iter;
    struct buf *out;
    size_t mark, begin;

    if (!query_evaluate(expression->children[0], context, &row, err))
        return false;
    *ret_value = row;
    if (!bound || row.type != DOCUMENT_OBJECT)
        return true;
    if (!query_work(context, row.document.len >> 4, err))
        return false;
    out = &context->scratch;
    mark = query_build_begin(context);
    begin = document_begin(out);
    document_iter_init(&iter, row.document);
    while (document_iter_next(&iter))
        document_append(out, iter.key, &iter.value);
    document_append_int64(out, SLICE("$recordId"), (int64_t)bound->item->header.number);
    return query_build_close(context, mark, begin, DOCUMENT_OBJECT, ret_value, err);
}

static const struct query_kind record_id_kind = {"with $recordId", record_id_evaluate,
                                                 QUERY_STABLE};

const struct query_expression *mongo_record_id_expression(const struct query_expression *row,
                                                          struct query_build *build)
{
    const struct query_expression *children[] = {row, query_variable(build, 0)};

    return query_node(build, &record_id_kind, sizeof(struct query_expression), children,
                      ARRAY_LEN(children));
}
