/* What is made by a name: predicates, strategies, dates, uuids, vertices, constants. */
#include "base/random.h"
#include "front/gremlin/language/literal.h"
#include "front/gremlin/language/resolve_private.h"
#include "front/gremlin/value/element.h"

#include <float.h>

static bool builder_read(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                         size_t at, struct gremlin_value map, struct error *err);
static bool settings_read(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                          struct gremlin_value map, struct error *err);

/* --- Predicates ------------------------------------------------------------------------------- */

static bool predicate_find(struct slice name, enum gremlin_predicate_name *ret_name)
{
    for (int i = 0; i < GREMLIN_P_COUNT; i++)
        if (slice_equal(gremlin_predicate_text((enum gremlin_predicate_name)i), name)) {
            *ret_name = (enum gremlin_predicate_name)i;
            return true;
        }
    return false;
}

/* and(), or() and not() begin traversals when they stand alone. */
bool gremlin_name_is_predicate(struct slice name)
{
    enum gremlin_predicate_name found;

    return predicate_find(name, &found) && found != GREMLIN_P_AND && found != GREMLIN_P_OR &&
           found != GREMLIN_P_NOT;
}

bool gremlin_node_is_predicate(struct gremlin_resolver *resolver, const struct gremlin_node *node)
{
    while (node->kind == GREMLIN_NODE_CHAIN && !node->truth) {
        const struct gremlin_link *head = &node->links[0];

        if (!head->called) {
            const struct gremlin_value *value =
                node->link_count == 1 ? gremlin_variable_find(resolver, head->name) : NULL;

            return slice_equal(head->name, SLICE("P")) || slice_equal(head->name, SLICE("TextP")) ||
                   (value && value->type == GREMLIN_PREDICATE);
        }
        if (gremlin_name_is_predicate(head->name))
            return true;
        if (!slice_equal(head->name, SLICE("not")) || head->count != 1)
            return false;
        node = head->arguments[0]; /* not(P) is one if P is */
    }
    return false;
}

static bool predicate_make(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                           struct slice name, const struct gremlin_value *values, size_t count,
                           struct gremlin_value *ret_value, struct error *err)
{
    struct error fault;

    if (gremlin_predicate_new(resolver->request.heap, name, values, count, ret_value, &fault))
        return true;
    return gremlin_compile_error(err, link->line, link->column, "%s", fault.message);
}

/* .and(P), .or(P), .negate() */
static bool predicate_go_on(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                            struct gremlin_value *predicate, struct error *err)
{
    bool negate = slice_equal(link->name, SLICE("negate"));
    struct gremlin_value two[2] = {*predicate, GREMLIN_NOTHING}, joined;
    CLEANUP(gremlin_value_unref) struct gremlin_value arguments = GREMLIN_NOTHING;

    if (!link->called || (!negate && !slice_equal(link->name, SLICE("and")) &&
                          !slice_equal(link->name, SLICE("or"))))
        return gremlin_method_missing(link, err);
    if (!gremlin_resolve_arguments(resolver, link, GREMLIN_PLACE_ANY, &arguments, err))
        return false;
    if (gremlin_list(arguments)->count != (negate ? 0 : 1))
        return gremlin_compile_error(err, link->line, link->column,
                                     negate ? "negate() takes no argument"
                                            : "a predicate is joined with one other");
    if (!negate)
        two[1] = gremlin_list(arguments)->items[0];
    if (!predicate_make(resolver, link, negate ? SLICE("not") : link->name, two, negate ? 1 : 2,
                        &joined, err))
        return false;
    gremlin_value_replace_take(predicate, joined);
    return true;
}

bool gremlin_make_predicate(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                            size_t at, struct gremlin_value *ret_value, struct error *err)
{
    const struct gremlin_link *link = &node->links[at];
    struct gremlin_place place = {1u << GREMLIN_ENUM_GTYPE, false};
    CLEANUP(gremlin_value_unref) struct gremlin_value arguments = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value predicate = GREMLIN_NOTHING;
    enum gremlin_predicate_name name;

    if (!link->called || !predicate_find(link->name, &name))
        return gremlin_method_missing(link, err);
    if (!gremlin_resolve_arguments(resolver, link,
                                   name == GREMLIN_P_TYPE_OF ? place : GREMLIN_PLACE_ANY,
                                   &arguments, err) ||
        !predicate_make(resolver, link, link->name, gremlin_list(arguments)->items,
                        gremlin_list(arguments)->count, &predicate, err))
        return false;
    for (size_t i = at + 1; i < node->link_count; i++)
        if (!predicate_go_on(resolver, &node->links[i], &predicate, err))
            return false;
    *ret_value = gremlin_value_take(&predicate);
    return true;
}

/* --- Strategies ------------------------------------------------------------------------------- */

bool gremlin_name_is_strategy(struct slice name)
{
    struct slice end = SLICE("Strategy");

    return name.len > end.len && name.data[0] >= 'A' && name.data[0] <= 'Z' &&
           slice_equal(slice_skip(name, name.len - end.len), end);
}

bool gremlin_make_strategy(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                           size_t at, struct gremlin_value *ret_value, struct error *err)
{
    const struct gremlin_link *head = &node->links[at];
    CLEANUP(gremlin_value_unref) struct gremlin_value map = gremlin_map_new(resolver->request.heap);

    if (head->called) {
        if (!settings_read(resolver, head, map, err))
            return false;
        if (at + 1 < node->link_count)
            return gremlin_method_missing(&node->links[at + 1], err);
    } else if (at + 1 < node->link_count && !builder_read(resolver, node, at + 1, map, err)) {
        return false;
    }
    *ret_value = gremlin_strategy_new(resolver->request.heap, head->name, map);
    return true;
}

/* SubgraphStrategy(vertices: hasLabel('x')) */
static bool settings_read(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                          struct gremlin_value map, struct error *err)
{
    for (size_t i = 0; i < link->count; i++) {
        const struct gremlin_node *node = link->arguments[i];
        CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;
        struct gremlin_value value;

        if (node->kind != GREMLIN_NODE_NAMED)
            return gremlin_compile_error(err, node->line, node->column,
                                         "the settings of '%.*s' are written with their names, "
                                         "name: value",
                                         SLICE_ARG(link->name));
        if (!gremlin_resolve_value(resolver, node->items[0], GREMLIN_PLACE_ANY, &value, err))
            return false;
        key = gremlin_string(resolver->request.heap, node->text);
        gremlin_map_put_take(map, key, value);
    }
    return true;
}

/* One setting: name(value), name(a, b) for a list, with('name', value). */
static bool setting_read(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                         struct gremlin_value map, struct error *err)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value arguments = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;
    const struct gremlin_list *list;

    if (!gremlin_resolve_arguments(resolver, link, GREMLIN_PLACE_ANY, &arguments, err))
        return false;
    list = gremlin_list(arguments);
    if (slice_equal(link->name, SLICE("with")) && list->count == 2) {
        gremlin_map_put(map, list->items[0], list->items[1]);
        return true;
    }
    key = gremlin_string(resolver->request.heap, link->name);
    if (!list->count)
        gremlin_map_put(map, key, gremlin_boolean(true));
    else
        gremlin_map_put(map, key, list->count == 1 ? list->items[0] : arguments);
    return true;
}

/* build().name(value).create(), or instance(). */
static bool builder_read(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                         size_t at, struct gremlin_value map, struct error *err)
{
    const struct gremlin_link *first = &node->links[at], *last = &node->links[node->link_count - 1];

    if (first == last && first->called && slice_equal(first->name, SLICE("instance")))
        return true;
    if (first == last && !first->called && slice_equal(first->name, SLICE("class")))
        return true;
    if (!first->called || first->count || !slice_equal(first->name, SLICE("build")))
        return gremlin_method_missing(first, err);
    if (first == last || !last->called || !slice_equal(last->name, SLICE("create")))
        return gremlin_compile_error(err, last->line, last->column,
                                     "a strategy that build() begins ends with create()");
    for (const struct gremlin_link *link = first + 1; link < last; link++) {
        if (!link->called)
            return gremlin_method_missing(link, err);
        if (!setting_read(resolver, link, map, err))
            return false;
    }
    return true;
}

/* --- Values ----------------------------------------------------------------------------------- */

struct making {
    struct gremlin_resolver *resolver;
    const struct gremlin_link *link;
    const struct gremlin_value *arguments;
    size_t count;
};

static bool date_make(const struct making *making, struct gremlin_value *ret_value)
{
    const struct gremlin_script_request *request = &making->resolver->request;

    if (making->count > 1)
        return false;
    if (!making->count && request->offset_dates) {
        int64_t ms = request->now_ms;

        *ret_value =
            gremlin_date_time_new(request->heap, ms / 1000, (int32_t)(ms % 1000) * 1000000, 0);
        return true;
    }
    if (!making->count) {
        *ret_value = gremlin_date(request->now_ms);
        return true;
    }
    return gremlin_is_string(making->arguments[0]) &&
           gremlin_literal_date(request->heap, gremlin_bytes(making->arguments[0]),
                                request->offset_dates, ret_value);
}

/* new Date(), new Date(milliseconds) */
static bool java_date_make(const struct making *making, struct gremlin_value *ret_value)
{
    if (making->count > 1)
        return false;
    if (!making->count) {
        *ret_value = gremlin_date(making->resolver->request.now_ms);
        return true;
    }
    if (!gremlin_is_whole(making->arguments[0]))
        return false;
    *ret_value = gremlin_date(making->arguments[0].integer);
    return true;
}

static bool uuid_make(const struct making *making, struct gremlin_value *ret_value)
{
    struct gremlin_heap *heap = making->resolver->request.heap;
    char text[RANDOM_UUID_SIZE];
    uint8_t bytes[16];

    if (making->count > 1 || (making->count && !gremlin_is_string(making->arguments[0])))
        return false;
    random_uuid(text);
    if (!gremlin_uuid_parse(making->count ? gremlin_bytes(making->arguments[0])
                                          : slice_of(text, GREMLIN_UUID_TEXT),
                            bytes))
        return false;
    *ret_value = gremlin_bytes_new(heap, GREMLIN_UUID, slice_of(bytes, sizeof bytes));
    return true;
}

/* new Vertex(id, label): a reference to one. */
static bool vertex_make(const struct making *making, struct gremlin_value *ret_value)
{
    struct gremlin_heap *heap = making->resolver->request.heap;
    CLEANUP(gremlin_value_unref) struct gremlin_value label = GREMLIN_NOTHING;

    if (making->count < 1 || making->count > 2 || gremlin_is_null(making->arguments[0]) ||
        (making->count == 2 && !gremlin_is_string(making->arguments[1])))
        return false;
    label = making->count == 2 ? gremlin_value_ref(making->arguments[1])
                               : gremlin_string(heap, SLICE("vertex"));
    *ret_value = gremlin_vertex_new(heap, making->arguments[0], label, GREMLIN_NOTHING);
    return true;
}

struct maker {
    struct slice name;
    struct slice method; /* absent: the name itself is called */
    bool (*make)(const struct making *making, struct gremlin_value *ret_value);
    const char *takes;
};

static const struct maker *maker_find(const struct gremlin_node *node, size_t at)
{
    static const struct maker makers[] = {
        {SLICE("datetime"), {0}, date_make, "nothing, or a date and time as ISO 8601 has it"},
        {SLICE("DateTime"), {0}, date_make, "nothing, or a date and time as ISO 8601 has it"},
        {SLICE("Date"), {0}, java_date_make, "nothing, or milliseconds since 1970"},
        {SLICE("UUID"), {0}, uuid_make, "nothing, or a uuid as text"},
        {SLICE("UUID"), SLICE("fromString"), uuid_make, "a uuid as text"},
        {SLICE("UUID"), SLICE("randomUUID"), uuid_make, "nothing"},
        {SLICE("Vertex"), {0}, vertex_make, "an id, and a label"},
        {SLICE("ReferenceVertex"), {0}, vertex_make, "an id, and a label"},
    };
    const struct gremlin_link *head = &node->links[at];

    for (size_t i = 0; i < ARRAY_LEN(makers); i++) {
        if (!slice_equal(head->name, makers[i].name) || head->called != !makers[i].method.data)
            continue;
        if (head->called ? at + 1 == node->link_count
                         : at + 2 == node->link_count && node->links[at + 1].called &&
                               slice_equal(node->links[at + 1].name, makers[i].method))
            return &makers[i];
    }
    return NULL;
}

bool gremlin_make_value(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                        size_t at, bool *ret_made, struct gremlin_value *ret_value,
                        struct error *err)
{
    const struct maker *maker = maker_find(node, at);
    CLEANUP(gremlin_value_unref) struct gremlin_value arguments = GREMLIN_NOTHING;
    struct making making = {.resolver = resolver};

    *ret_made = false;
    if (!maker)
        return true;
    making.link = &node->links[node->link_count - 1];
    if (!gremlin_resolve_arguments(resolver, making.link, GREMLIN_PLACE_ANY, &arguments, err))
        return false;
    making.arguments = gremlin_list(arguments)->items;
    making.count = gremlin_list(arguments)->count;
    if (!maker->make(&making, ret_value))
        return gremlin_compile_error(err, making.link->line, making.link->column, "'%.*s' takes %s",
                                     SLICE_ARG(making.link->name), maker->takes);
    *ret_made = true;
    return true;
}

/* --- Constants -------------------------------------------------------------------------------- */

bool gremlin_constant_find(struct gremlin_heap *heap, struct slice type, struct slice name,
                           struct gremlin_value *ret_value)
{
    static const struct {
        struct slice type, name;
        const char *text; /* NULL: a number */
        int64_t number;
    } rows[] = {
        {SLICE("WithOptions"), SLICE("tokens"), "~tinkerpop.valueMap.tokens", 0},
        {SLICE("WithOptions"), SLICE("none"), NULL, 0},
        {SLICE("WithOptions"), SLICE("ids"), NULL, 1},
        {SLICE("WithOptions"), SLICE("labels"), NULL, 2},
        {SLICE("WithOptions"), SLICE("keys"), NULL, 4},
        {SLICE("WithOptions"), SLICE("values"), NULL, 8},
        {SLICE("WithOptions"), SLICE("all"), NULL, 15},
        {SLICE("WithOptions"), SLICE("indexer"), "~tinkerpop.index.indexer", 0},
        {SLICE("WithOptions"), SLICE("list"), NULL, 0},
        {SLICE("WithOptions"), SLICE("map"), NULL, 1},
        {SLICE("IO"), SLICE("reader"), "~tinkerpop.io.reader", 0},
        {SLICE("IO"), SLICE("writer"), "~tinkerpop.io.writer", 0},
        {SLICE("IO"), SLICE("registry"), "~tinkerpop.io.registry", 0},
        {SLICE("IO"), SLICE("graphson"), "graphson", 0},
        {SLICE("IO"), SLICE("graphml"), "graphml", 0},
        {SLICE("IO"), SLICE("gryo"), "gryo", 0},
        {SLICE("Integer"), SLICE("MAX_VALUE"), NULL, INT32_MAX},
        {SLICE("Integer"), SLICE("MIN_VALUE"), NULL, INT32_MIN},
        {SLICE("Long"), SLICE("MAX_VALUE"), NULL, INT64_MAX},
        {SLICE("Long"), SLICE("MIN_VALUE"), NULL, INT64_MIN},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (slice_equal(rows[i].type, type) && slice_equal(rows[i].name, name)) {
            *ret_value = rows[i].text ? gremlin_string(heap, slice_of_text(rows[i].text))
                                      : gremlin_whole(rows[i].number);
            return true;
        }
    return false;
}
