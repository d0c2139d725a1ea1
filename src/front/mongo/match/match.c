/* The contract: a tree as an expression kind, and asked directly. */
#include "front/mongo/match/match_private.h"
#include "query/expression/imply.h"
#include "query/value/value.h"

#include <stdlib.h>

struct match_expression {
    struct query_expression head; /* children: the variable, then what $expr holds */
    const struct mongo_match *match;
};

static const struct mongo_match_options no_options;

/* --- Parsing ---------------------------------------------------------------------------------- */

static bool build_check(const struct query_build *build, struct error *err)
{
    if (build->failed)
        *err = build->error;
    return !build->failed;
}

static const struct mongo_match *match_new(const struct match_parse *parse,
                                           const struct match_node *root)
{
    struct mongo_match *match = ARENA_NEW(parse->build->arena, struct mongo_match);

    match->root = root;
    match->slot = parse->options->slot;
    match->sampled = parse->sampled;
    match->expressions = parse->expressions;
    match->expression_count = parse->expression_count;
    match->near = parse->near;
    return match;
}

bool mongo_match_parse(struct slice filter, const struct mongo_match_options *options,
                       struct query_build *build, const struct mongo_match **ret_match,
                       struct error *err)
{
    struct match_parse parse = {
        .build = build, .options = options ? options : &no_options, .err = err};
    const struct match_node *root;

    parse.collator = parse.options->collator;
    if (!build_check(build, err))
        return false;
    root = match_parse_filter(&parse, filter);
    if (!root || !build_check(build, err))
        return false;
    *ret_match = match_new(&parse, root);
    return true;
}

/* A node for what elements are compared with, below which paths begin at the element. */
static const struct match_node *pull_node(struct match_parse *parse,
                                          const struct document_value *condition)
{
    const struct match_node **child;
    struct match_node *node;

    if (condition->type == DOCUMENT_REGEX)
        return match_parse_regex(parse, NULL, condition->regex.pattern, condition->regex.options);
    if (match_is_of_value(condition))
        return match_parse_operators(parse, NULL, condition->document);
    if (condition->type != DOCUMENT_OBJECT) {
        node = match_node_new(parse, MATCH_EQUAL, NULL);
        return match_operand_set(parse, node, condition) ? node : NULL;
    }
    child = ARENA_ARRAY(parse->build->arena, const struct match_node *, 1);
    child[0] = match_parse_filter(parse, condition->document);
    node = match_node_new(parse, MATCH_OBJECT, NULL);
    node->children = child;
    node->count = 1;
    return child[0] ? node : NULL;
}

bool mongo_match_parse_pull(const struct document_value *condition,
                            const struct document_collator *collator, struct query_build *build,
                            const struct mongo_match **ret_match, struct error *err)
{
    struct match_parse parse = {
        .build = build, .options = &no_options, .collator = collator, .err = err, .inner = true};
    const struct match_node *root;

    if (!build_check(build, err))
        return false;
    root = pull_node(&parse, condition);
    if (!root || !build_check(build, err))
        return false;
    *ret_match = match_new(&parse, root);
    return true;
}

/* --- As an expression ------------------------------------------------------------------------- */

static bool expression_evaluate(const struct query_expression *expression,
                                struct query_context *context, struct document_value *ret_value,
                                struct error *err)
{
    const struct mongo_match *match = ((const struct match_expression *)expression)->match;
    bool holds;

    assert(match->slot < context->slot_count);
    if (!mongo_match_holds(match, &context->slots[match->slot].value, context, &holds, err))
        return false;
    *ret_value = document_bool(holds);
    return true;
}

static const struct query_implied *expression_imply(const struct query_expression *expression,
                                                    const struct query_implying *implying,
                                                    bool truth)
{
    const struct mongo_match *match = ((const struct match_expression *)expression)->match;

    return truth ? match_node_imply(match->root, implying) : NULL;
}

static const struct query_kind kind_match = {"match", expression_evaluate, QUERY_STABLE,
                                             expression_imply};
static const struct query_kind kind_sampled = {"sampled match", expression_evaluate, QUERY_UNSTABLE,
                                               expression_imply};

static const struct query_expression *node_expression(const struct mongo_match *match,
                                                      struct query_build *build)
{
    const struct query_expression **children =
        ARENA_ARRAY(build->arena, const struct query_expression *, match->expression_count + 1);
    struct match_expression *node;

    if (match->root->kind == MATCH_ALL && !match->root->count)
        return query_constant(build, document_bool(true));
    children[0] = query_variable(build, match->slot);
    if (match->expression_count)
        memcpy(children + 1, match->expressions, match->expression_count * sizeof *children);
    node = query_node(build, match->sampled ? &kind_sampled : &kind_match, sizeof *node, children,
                      match->expression_count + 1);
    node->match = match;
    return &node->head;
}

static bool has_expression(const struct match_node *node)
{
    if (node->kind == MATCH_EXPRESSION)
        return true;
    if (node->kind == MATCH_ALL || node->kind == MATCH_ANY || node->kind == MATCH_NOT)
        for (size_t i = 0; i < node->count; i++)
            if (has_expression(node->children[i]))
                return true;
    return false;
}

/* Those children of the root with expressions in them, or those without, as a filter of its own. */
static const struct mongo_match *half_of(const struct mongo_match *match, bool with,
                                         struct arena *arena)
{
    struct mongo_match *half = ARENA_NEW(arena, struct mongo_match);
    struct match_node *root = ARENA_NEW(arena, struct match_node);
    const struct match_node **children =
        ARENA_ARRAY(arena, const struct match_node *, match->root->count + 1);

    *half = *match;
    *root = *match->root;
    root->count = 0;
    for (size_t i = 0; i < match->root->count; i++)
        if (has_expression(match->root->children[i]) == with)
            children[root->count++] = match->root->children[i];
    root->children = children;
    half->root = root;
    if (!with)
        half->expression_count = 0;
    return half;
}

/* A filter that calls scripts is two, so that those are called only for documents that the rest of
 * it lets through (query/run/ahead.c). */
const struct query_expression *mongo_match_expression(const struct mongo_match *match,
                                                      struct query_build *build)
{
    const struct mongo_match *plain, *costly;

    if (!build->script || !match->expression_count || match->root->kind != MATCH_ALL)
        return node_expression(match, build);
    plain = half_of(match, false, build->arena);
    costly = half_of(match, true, build->arena);
    if (!plain->root->count || !costly->root->count)
        return node_expression(match, build);
    return query_and(build, node_expression(plain, build), node_expression(costly, build));
}

bool mongo_match_compile(struct slice filter, const struct mongo_match_options *options,
                         struct query_build *build, const struct query_expression **ret_expression,
                         struct error *err)
{
    const struct mongo_match *match;
    const struct query_expression *expression;

    if (!mongo_match_parse(filter, options, build, &match, err))
        return false;
    expression = mongo_match_expression(match, build);
    if (!build_check(build, err))
        return false;
    *ret_expression = expression;
    return true;
}

/* --- Asked directly --------------------------------------------------------------------------- */

bool mongo_match_position(const struct mongo_match *match, const struct document_value *document,
                          struct query_context *context, bool *ret_holds, int64_t *ret_position,
                          struct error *err)
{
    struct match_evaluation evaluation = {.context = context, .position = -1, .err = err};
    bool holds = match_node_holds(&evaluation, match->root, document);

    if (evaluation.failed)
        return false;
    *ret_holds = holds;
    *ret_position = holds ? evaluation.position : -1;
    return true;
}

bool mongo_match_holds(const struct mongo_match *match, const struct document_value *document,
                       struct query_context *context, bool *ret_holds, struct error *err)
{
    int64_t position;

    return mongo_match_position(match, document, context, ret_holds, &position, err);
}

const struct mongo_near *mongo_match_near(const struct mongo_match *match)
{
    return match->near;
}

/* --- What else a filter says ------------------------------------------------------------------ */

static bool name_note(const struct match_node *node, struct slice *name, struct slice *other)
{
    if (node->path) {
        struct slice found = node->path->components[0].name;

        if (name->data && !slice_equal(*name, found)) {
            *other = found;
            return false;
        }
        *name = found.data ? found : SLICE("");
        return true;
    }
    if (node->kind == MATCH_ALL || node->kind == MATCH_ANY || node->kind == MATCH_NOT) {
        for (size_t i = 0; i < node->count; i++)
            if (!name_note(node->children[i], name, other))
                return false;
    }
    return true;
}

bool mongo_match_top_name(const struct mongo_match *match, struct slice *ret_name,
                          struct slice *ret_other)
{
    *ret_name = *ret_other = SLICE_NONE;
    return name_note(match->root, ret_name, ret_other) && ret_name->data;
}

struct equalities {
    struct arena *arena;
    struct mongo_equality *list;
    size_t count, capacity;
};

static void equality_add(struct equalities *found, struct slice path, struct document_value value)
{
    if (found->count == found->capacity) {
        struct mongo_equality *longer =
            ARENA_ARRAY(found->arena, struct mongo_equality, 2 * found->capacity + 4);

        if (found->count)
            memcpy(longer, found->list, found->count * sizeof *longer);
        found->list = longer;
        found->capacity = 2 * found->capacity + 4;
    }
    found->list[found->count++] = (struct mongo_equality){path, value};
}

static void equalities_find(struct equalities *found, const struct match_node *node)
{
    switch (node->kind) {
    case MATCH_EQUAL:
        if (node->path)
            equality_add(found, node->path->text, node->value);
        return;
    case MATCH_IN:
        if (node->path && !node->count && node->in.count == 1)
            equality_add(found, node->path->text, node->value);
        return;
    case MATCH_ANY:
        if (node->count == 1)
            equalities_find(found, node->children[0]);
        return;
    case MATCH_ALL:
        for (size_t i = 0; i < node->count; i++)
            equalities_find(found, node->children[i]);
        return;
    default:
        return;
    }
}

static int by_path(const void *a, const void *b)
{
    return slice_compare(((const struct mongo_equality *)a)->path,
                         ((const struct mongo_equality *)b)->path);
}

static bool equalities_check(const struct equalities *found, struct error *err)
{
    struct mongo_equality *sorted =
        ARENA_ARRAY(found->arena, struct mongo_equality, found->count + 1);

    if (found->count < 2)
        return true;
    memcpy(sorted, found->list, found->count * sizeof *sorted);
    qsort(sorted, found->count, sizeof *sorted, by_path);
    for (size_t i = 1; i < found->count; i++)
        if (slice_equal(sorted[i - 1].path, sorted[i].path))
            return mongo_error_set(err, MONGO_NOT_SINGLE_VALUE_FIELD,
                                   "cannot infer query fields to set, path '%.*s' is matched twice",
                                   SLICE_ARG(sorted[i].path));
    return true;
}

bool mongo_match_equalities(const struct mongo_match *match, struct arena *arena,
                            struct mongo_equality **ret_equalities, size_t *ret_count,
                            struct error *err)
{
    struct equalities found = {.arena = arena};

    equalities_find(&found, match->root);
    if (!equalities_check(&found, err))
        return false;
    *ret_equalities = found.list;
    *ret_count = found.count;
    return true;
}
