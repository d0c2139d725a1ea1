/* Values of nodes, and what words and chains of them mean. */
#include "front/gremlin/language/literal.h"
#include "front/gremlin/language/resolve_private.h"

enum { RANGE_MAX = 65536 }; /* numbers that a script of a few bytes may make */

static bool chain_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                          struct gremlin_place place, struct gremlin_value *ret_value,
                          struct error *err);
static bool word_resolve(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                         struct gremlin_place place, struct gremlin_value *ret_value,
                         struct error *err);
static bool typed_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                          size_t at, struct gremlin_value *ret_value, struct error *err);
static bool called_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                           size_t at, struct gremlin_value *ret_value, struct error *err);
static bool items_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                          struct gremlin_value *ret_value, struct error *err);
static bool map_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                        struct gremlin_place place, struct gremlin_value *ret_value,
                        struct error *err);
static bool range_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                          struct gremlin_value *ret_value, struct error *err);

bool gremlin_resolve_value(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                           struct gremlin_place place, struct gremlin_value *ret_value,
                           struct error *err)
{
    struct gremlin_heap *heap = resolver->request.heap;
    const char *fault;

    switch (node->kind) {
    case GREMLIN_NODE_NULL:
        *ret_value = GREMLIN_NOTHING;
        return true;
    case GREMLIN_NODE_BOOLEAN:
        *ret_value = gremlin_boolean(node->truth);
        return true;
    case GREMLIN_NODE_STRING:
        *ret_value = gremlin_string(heap, node->text);
        return true;
    case GREMLIN_NODE_NUMBER:
        if (gremlin_literal_number(heap, node->text, node->truth, ret_value, &fault))
            return true;
        return gremlin_syntax_error(err, node->line, node->column, "'%.*s' %s",
                                    (int)MIN(node->text.len, (size_t)80),
                                    (const char *)node->text.data, fault);
    case GREMLIN_NODE_LIST:
    case GREMLIN_NODE_SET:
        return items_resolve(resolver, node, ret_value, err);
    case GREMLIN_NODE_MAP:
        return map_resolve(resolver, node, place, ret_value, err);
    case GREMLIN_NODE_RANGE:
        return range_resolve(resolver, node, ret_value, err);
    case GREMLIN_NODE_NAMED:
        return gremlin_compile_error(err, node->line, node->column,
                                     "'%.*s:': only strategies take arguments by name",
                                     SLICE_ARG(node->text));
    case GREMLIN_NODE_CHAIN:
        return chain_resolve(resolver, node, place, ret_value, err);
    }
    assert(false);
    return false;
}

bool gremlin_resolve_arguments(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                               struct gremlin_place place, struct gremlin_value *ret_list,
                               struct error *err)
{
    CLEANUP(gremlin_value_unref)
    struct gremlin_value list = gremlin_list_new(resolver->request.heap, link->count);

    for (size_t i = 0; i < link->count; i++) {
        struct gremlin_value argument;

        if (!gremlin_resolve_value(resolver, link->arguments[i], place, &argument, err))
            return false;
        gremlin_list_add_take(list, argument);
    }
    *ret_list = gremlin_value_take(&list);
    return true;
}

static bool items_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                          struct gremlin_value *ret_value, struct error *err)
{
    bool set = node->kind == GREMLIN_NODE_SET;
    CLEANUP(gremlin_value_unref)
    struct gremlin_value items = set ? gremlin_set_new(resolver->request.heap)
                                     : gremlin_list_new(resolver->request.heap, node->count);

    for (size_t i = 0; i < node->count; i++) {
        struct gremlin_value item;

        if (!gremlin_resolve_value(resolver, node->items[i], GREMLIN_PLACE_ANY, &item, err))
            return false;
        if (set) {
            gremlin_set_add(items, item);
            gremlin_value_unref(item);
        } else {
            gremlin_list_add_take(items, item);
        }
    }
    *ret_value = gremlin_value_take(&items);
    return true;
}

/* A bare word is a string. Of merges, T.label may be written `label:` and Direction.OUT `from:`, as
 * the grammar had it up to 3.7; elements have no properties of those names here, so that nothing
 * else can be meant. */
static bool key_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                        struct gremlin_place place, struct gremlin_value *ret_value,
                        struct error *err)
{
    struct slice name;

    if (!gremlin_node_is_word(node) || node->enclosed)
        return gremlin_resolve_value(resolver, node,
                                     (struct gremlin_place){1u << GREMLIN_ENUM_T |
                                                                1u << GREMLIN_ENUM_DIRECTION |
                                                                1u << GREMLIN_ENUM_MERGE,
                                                            false},
                                     ret_value, err);
    name = node->links[0].name;
    if (place.merge && (gremlin_word_find(GREMLIN_ENUM_T, name, ret_value) ||
                        gremlin_word_find(GREMLIN_ENUM_DIRECTION, name, ret_value)))
        return true;
    *ret_value = gremlin_string(resolver->request.heap, name);
    return true;
}

static bool map_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                        struct gremlin_place place, struct gremlin_value *ret_value,
                        struct error *err)
{
    struct gremlin_place value_place = {place.merge ? 1u << GREMLIN_ENUM_MERGE : 0, false};
    CLEANUP(gremlin_value_unref) struct gremlin_value map = gremlin_map_new(resolver->request.heap);

    for (size_t i = 0; i < node->count; i += 2) {
        CLEANUP(gremlin_value_unref) struct gremlin_value key = GREMLIN_NOTHING;
        struct gremlin_value value;

        if (!key_resolve(resolver, node->items[i], place, &key, err) ||
            !gremlin_resolve_value(resolver, node->items[i + 1], value_place, &value, err))
            return false;
        gremlin_map_put_take(map, key, value);
    }
    *ret_value = gremlin_value_take(&map);
    return true;
}

/* A text of one ASCII character becomes its number: 'a'..'c'. */
static bool letter_take(struct gremlin_value *value)
{
    struct slice text;

    if (!gremlin_is_string(*value))
        return false;
    text = gremlin_bytes(*value);
    if (text.len != 1 || text.data[0] >= 0x80)
        return false;
    gremlin_value_replace_take(value, gremlin_int(text.data[0]));
    return true;
}

static bool range_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                          struct gremlin_value *ret_value, struct error *err)
{
    CLEANUP(gremlin_value_unref) struct gremlin_value first = GREMLIN_NOTHING;
    CLEANUP(gremlin_value_unref) struct gremlin_value last = GREMLIN_NOTHING;
    struct gremlin_value list;
    bool letters;
    int64_t step;
    uint64_t count;

    if (!gremlin_resolve_value(resolver, node->items[0], GREMLIN_PLACE_ANY, &first, err) ||
        !gremlin_resolve_value(resolver, node->items[1], GREMLIN_PLACE_ANY, &last, err))
        return false;
    letters = letter_take(&first) && letter_take(&last);
    if (!letters && (!gremlin_is_whole(first) || !gremlin_is_whole(last)))
        return gremlin_compile_error(err, node->line, node->column,
                                     "a range goes from one whole number or letter to another");
    step = first.integer <= last.integer ? 1 : -1;
    count = step > 0 ? (uint64_t)last.integer - (uint64_t)first.integer
                     : (uint64_t)first.integer - (uint64_t)last.integer;
    if (count >= RANGE_MAX)
        return error_set(err, ERROR_GREMLIN_SCRIPT_LIMIT,
                         "Gremlin Query Compilation Error: a range has at most %d numbers @ line "
                         "%u, column %u.",
                         RANGE_MAX, node->line, node->column);
    list = gremlin_list_new(resolver->request.heap, count + 1);
    for (uint64_t i = 0; i <= count; i++) {
        int64_t number = first.integer + step * (int64_t)i;
        uint8_t letter = (uint8_t)number;

        gremlin_list_add_take(list,
                              letters ? gremlin_string(resolver->request.heap, slice_of(&letter, 1))
                                      : gremlin_integer(MAX(first.type, last.type), number));
    }
    *ret_value = list;
    return true;
}

const struct gremlin_value *gremlin_variable_find(const struct gremlin_resolver *resolver,
                                                  struct slice name)
{
    const struct gremlin_value *maps[] = {resolver->request.bindings, resolver->variables};

    for (size_t i = 0; i < ARRAY_LEN(maps); i++)
        if (maps[i] && maps[i]->type == GREMLIN_MAP) {
            const struct gremlin_value *value = gremlin_map_get_text(*maps[i], name);

            if (value)
                return value;
        }
    return NULL;
}

static bool assigned_before(const struct gremlin_resolver *resolver, struct slice name)
{
    for (size_t i = 0; i < resolver->before_count; i++)
        if (resolver->before[i].name.data && slice_equal(resolver->before[i].name, name))
            return true;
    return false;
}

static bool enum_find(uint32_t families, struct slice name, struct gremlin_value *ret_value)
{
    for (int family = 0; family < GREMLIN_ENUM_COUNT; family++)
        if ((families & 1u << family) &&
            gremlin_word_find((enum gremlin_enum_family)family, name, ret_value))
            return true;
    return false;
}

static bool word_resolve(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                         struct gremlin_place place, struct gremlin_value *ret_value,
                         struct error *err)
{
    const struct gremlin_value *variable;

    if (enum_find(place.families, link->name, ret_value))
        return true;
    /* What a statement before assigns hides a variable that the session has had. */
    if (assigned_before(resolver, link->name)) {
        resolver->late = true;
        *ret_value = GREMLIN_NOTHING;
        return true;
    }
    variable = gremlin_variable_find(resolver, link->name);
    if (variable) {
        *ret_value = gremlin_value_ref(*variable);
        return true;
    }
    if (enum_find(UINT32_MAX, link->name, ret_value))
        return true;
    return gremlin_compile_error(err, link->line, link->column,
                                 "Unable to resolve symbol '%.*s' in the current context",
                                 SLICE_ARG(link->name));
}

/* Where the names of packages end: org.apache.tinkerpop...Order.desc begins at Order. */
static size_t packages_skip(const struct gremlin_node *node)
{
    size_t at = 0;

    if (!slice_equal(node->links[0].name, SLICE("org")) &&
        !slice_equal(node->links[0].name, SLICE("java")))
        return 0;
    while (at + 1 < node->link_count && !node->links[at].called &&
           (node->links[at].name.data[0] < 'A' || node->links[at].name.data[0] > 'Z'))
        at++;
    return at;
}

static bool chain_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                          struct gremlin_place place, struct gremlin_value *ret_value,
                          struct error *err)
{
    size_t at = packages_skip(node);
    const struct gremlin_link *head = &node->links[at];
    struct slice source = resolver->request.source;
    bool made = false;

    if (node->truth) {
        if (gremlin_name_is_strategy(head->name))
            return gremlin_make_strategy(resolver, node, at, ret_value, err);
        if (!gremlin_make_value(resolver, node, at, &made, ret_value, err))
            return false;
        return made || gremlin_compile_error(err, head->line, head->column,
                                             "objects of the class '%.*s' cannot be made",
                                             SLICE_ARG(head->name));
    }
    if (head->called)
        return called_resolve(resolver, node, at, ret_value, err);
    if (slice_equal(head->name, SLICE("__")) ||
        slice_equal(head->name, source.data ? source : SLICE("g")))
        return gremlin_resolve_nested(resolver, node, at + 1, ret_value, err);
    if (gremlin_name_is_strategy(head->name) && !gremlin_variable_find(resolver, head->name))
        return gremlin_make_strategy(resolver, node, at, ret_value, err);
    if (at + 1 == node->link_count)
        return word_resolve(resolver, head, place, ret_value, err);
    return typed_resolve(resolver, node, at, ret_value, err);
}

/* Cardinality.list('x') */
static bool cardinal_resolve(struct gremlin_resolver *resolver, const struct gremlin_link *link,
                             struct gremlin_value word, struct gremlin_value *ret_value,
                             struct error *err)
{
    struct gremlin_value value;

    if (link->count != 1)
        return gremlin_compile_error(err, link->line, link->column,
                                     "the cardinality '%.*s' takes one value",
                                     SLICE_ARG(link->name));
    if (!gremlin_resolve_value(resolver, link->arguments[0], GREMLIN_PLACE_ANY, &value, err))
        return false;
    *ret_value =
        gremlin_cardinal_new(resolver->request.heap, (enum gremlin_enum_word)word.word.word, value);
    gremlin_value_unref(value);
    return true;
}

/* Type.word, with whatever may follow it. */
static bool typed_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                          size_t at, struct gremlin_value *ret_value, struct error *err)
{
    const struct gremlin_link *head = &node->links[at];
    enum gremlin_enum_family family;
    bool made = false;

    /* VertexProperty.Cardinality, SackFunctions.Barrier, TraversalOptionParent.Pick */
    while (at + 2 < node->link_count && !node->links[at + 1].called &&
           gremlin_family_find(node->links[at + 1].name, &family))
        head = &node->links[++at];
    if (slice_equal(head->name, SLICE("P")) || slice_equal(head->name, SLICE("TextP")))
        return gremlin_make_predicate(resolver, node, at + 1, ret_value, err);
    if (slice_equal(head->name, SLICE("Lambda")))
        return gremlin_compile_error(err, head->line, head->column,
                                     "lambdas are not supported, a traversal is needed instead");
    if (!gremlin_make_value(resolver, node, at, &made, ret_value, err))
        return false;
    if (made)
        return true;
    if (at + 2 == node->link_count) {
        const struct gremlin_link *word = &node->links[at + 1];

        if (!word->called &&
            gremlin_constant_find(resolver->request.heap, head->name, word->name, ret_value))
            return true;
        if (gremlin_family_find(head->name, &family)) {
            if (!gremlin_word_find(family, word->name, ret_value))
                return gremlin_compile_error(err, word->line, word->column, "'%.*s' has no '%.*s'",
                                             SLICE_ARG(head->name), SLICE_ARG(word->name));
            if (!word->called)
                return true;
            if (family == GREMLIN_ENUM_CARDINALITY)
                return cardinal_resolve(resolver, word, *ret_value, ret_value, err);
            return gremlin_method_missing(word, err);
        }
    }
    if (gremlin_variable_find(resolver, head->name))
        return gremlin_compile_error(err, node->links[at + 1].line, node->links[at + 1].column,
                                     "methods of values are not supported");
    return gremlin_compile_error(err, head->line, head->column,
                                 "Unable to resolve symbol '%.*s' in the current context",
                                 SLICE_ARG(head->name));
}

static bool called_resolve(struct gremlin_resolver *resolver, const struct gremlin_node *node,
                           size_t at, struct gremlin_value *ret_value, struct error *err)
{
    const struct gremlin_link *head = &node->links[at];
    struct gremlin_value word;
    bool made = false;

    if (gremlin_node_is_predicate(resolver, node))
        return gremlin_make_predicate(resolver, node, at, ret_value, err);
    if (gremlin_step_find(head->name) || slice_equal(head->name, SLICE("start")))
        return gremlin_resolve_nested(resolver, node, at, ret_value, err);
    if (gremlin_name_is_strategy(head->name))
        return gremlin_make_strategy(resolver, node, at, ret_value, err);
    if (gremlin_word_find(GREMLIN_ENUM_CARDINALITY, head->name, &word) &&
        at + 1 == node->link_count)
        return cardinal_resolve(resolver, head, word, ret_value, err);
    if (!gremlin_make_value(resolver, node, at, &made, ret_value, err))
        return false;
    return made || gremlin_method_missing(head, err);
}
