/* The paths of a policy as a tree: a node for each segment, with what the policy says of the value
 * there. Rules are looked up on the way down a document, the deepest seen so far being carried
 * along, so the most precise rule is found without comparing paths. Children are found by
 * bisection; the default policy has two. */
#include "index/policy_private.h"

static struct index_node *node_new(struct index_tree *tree, struct slice name, struct arena *arena)
{
    struct index_node *node = ARENA_NEW(arena, struct index_node);

    node->name = name;
    node->number = (uint32_t)tree->node_count++;
    return node;
}

static struct index_node *child_make(struct index_tree *tree, struct index_node *parent,
                                     struct slice name, struct arena *arena)
{
    struct index_node *child = parent->first;

    while (child && !slice_equal(child->name, name))
        child = child->next;
    if (!child) {
        child = node_new(tree, name, arena);
        child->next = parent->first;
        parent->first = child;
        parent->child_count++;
    }
    return child;
}

static struct index_node *elements_make(struct index_tree *tree, struct index_node *parent,
                                        struct arena *arena)
{
    if (!parent->elements)
        parent->elements = node_new(tree, SLICE_NONE, arena);
    return parent->elements;
}

static void tuple_add(struct index_node *node, const struct document_path *path,
                      struct arena *arena)
{
    struct slice prefix = index_tuple_prefix(path, arena);
    struct index_tuple *tuple;

    for (tuple = node->tuples; tuple; tuple = tuple->next) {
        if (slice_equal(tuple->prefix, prefix))
            return;
    }
    tuple = ARENA_NEW(arena, struct index_tuple);
    *tuple = (struct index_tuple){&path->segments[path->count - 1], prefix, node->tuples};
    node->tuples = tuple;
}

static struct index_node *root_make(struct index_tree *tree, struct arena *arena)
{
    if (!tree->root)
        tree->root = node_new(tree, SLICE_NONE, arena);
    return tree->root;
}

static bool is_system_property(const struct index_tree *tree, const struct document_path *path)
{
    return tree->names && path->count && path->segments[0].kind == DOCUMENT_SEGMENT_PROPERTY &&
           document_names_system(tree->names, path->segments[0].name) < DOCUMENT_SYSTEM_SHOWN;
}

/* System properties are not in the items that are walked, so a rule for one would only make the
 * tree look as if it excluded something. */
bool index_tree_add(struct index_tree *tree, const struct document_path *path, enum index_rule rule,
                    struct arena *arena, struct error *err)
{
    struct index_node *node = root_make(tree, arena);
    enum index_rule *place;

    if (is_system_property(tree, path))
        return true;
    for (size_t i = 0; i < path->count; i++) {
        const struct document_segment *segment = &path->segments[i];

        if (segment->kind == DOCUMENT_SEGMENT_TUPLE) {
            tuple_add(node, path, arena);
            return true;
        }
        node = segment->kind == DOCUMENT_SEGMENT_ELEMENTS
                   ? elements_make(tree, node, arena)
                   : child_make(tree, node, segment->name, arena);
    }
    place = path->end == DOCUMENT_PATH_END_SCALAR ? &node->scalar : &node->all;
    if (*place != INDEX_RULE_NONE && *place != rule)
        return error_set(err, ERROR_BAD_REQUEST, "it is both included and excluded");
    *place = rule;
    if (place == &node->scalar && rule == INDEX_RULE_INCLUDE)
        node->named = true;
    return true;
}

static int by_name(const void *a, const void *b)
{
    return slice_compare((*(struct index_node *const *)a)->name,
                         (*(struct index_node *const *)b)->name);
}

static void include_below(struct index_node *node, const struct index_node *child)
{
    node->may_include |= child->may_include;
    node->may_exclude |= child->may_exclude;
}

/* Recursive, as deep as a path has segments at most. */
static void node_finish(struct index_node *node, struct arena *arena)
{
    size_t count = 0;

    node->may_include = node->scalar == INDEX_RULE_INCLUDE || node->all == INDEX_RULE_INCLUDE ||
                        node->tuples != NULL;
    node->may_exclude = node->scalar == INDEX_RULE_EXCLUDE || node->all == INDEX_RULE_EXCLUDE;
    node->may_miss = node->named || node->tuples != NULL;
    node->children = ARENA_ARRAY(arena, struct index_node *, node->child_count);
    for (struct index_node *child = node->first; child; child = child->next) {
        node->children[count++] = child;
        node_finish(child, arena);
        include_below(node, child);
        node->may_miss |= child->may_miss;
    }
    if (count > 1)
        qsort(node->children, count, sizeof *node->children, by_name);
    if (node->elements) {
        node_finish(node->elements, arena);
        include_below(node, node->elements);
    }
}

void index_tree_finish(struct index_tree *tree, struct arena *arena)
{
    struct index_node *root = root_make(tree, arena), *identity;

    if (tree->names) {
        identity = child_make(tree, root, tree->names->identity, arena);
        identity->scalar = INDEX_RULE_INCLUDE;
        if (!tree->names->identity_is_text) /* an object is found by what is in it */
            identity->all = INDEX_RULE_INCLUDE;
    }
    node_finish(tree->root, arena);
}

const struct index_node *index_node_child(const struct index_node *node, struct slice name)
{
    size_t low = 0, high = node->child_count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = slice_compare(name, node->children[middle]->name);

        if (order == 0)
            return node->children[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* --- Questions ------------------------------------------------------------------------------- */

/* What the tree says of a path: the node there, NULL if none, and the rule of the deepest node with
 * an asterisk. */
struct found {
    const struct index_node *node;
    bool included;
};

static struct found tree_find(const struct index_tree *tree,
                              const struct document_segment *segments, size_t count)
{
    struct found found = {tree->root, tree->root->all == INDEX_RULE_INCLUDE};

    for (size_t i = 0; i < count && found.node; i++) {
        found.node = segments[i].kind == DOCUMENT_SEGMENT_ELEMENTS
                         ? found.node->elements
                         : index_node_child(found.node, segments[i].name);
        if (found.node && found.node->all != INDEX_RULE_NONE)
            found.included = found.node->all == INDEX_RULE_INCLUDE;
    }
    return found;
}

static bool is_tuple(const struct document_path *path)
{
    return path->count && path->segments[path->count - 1].kind == DOCUMENT_SEGMENT_TUPLE;
}

static bool covers_tuple(const struct index_tree *tree, const struct document_path *path)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct found found = tree_find(tree, path->segments, path->count - 1);
    struct slice prefix = index_tuple_prefix(path, arena);
    const struct index_tuple *tuple = found.node ? found.node->tuples : NULL;

    while (tuple && !slice_equal(tuple->prefix, prefix))
        tuple = tuple->next;
    return tuple != NULL;
}

bool index_policy_covers(const struct index_policy *policy, const struct document_path *path)
{
    struct found found;

    if (is_system_property(policy->tree, path))
        return false;
    if (is_tuple(path))
        return covers_tuple(policy->tree, path);
    found = tree_find(policy->tree, path->segments, path->count);
    if (path->end == DOCUMENT_PATH_END_ALL)
        return found.included && !(found.node && found.node->may_exclude);
    if (found.node && found.node->scalar != INDEX_RULE_NONE)
        return found.node->scalar == INDEX_RULE_INCLUDE;
    return found.included;
}

bool index_policy_excludes(const struct index_policy *policy, const struct document_path *path)
{
    enum document_system system;

    if (!is_system_property(policy->tree, path))
        return !index_policy_covers(policy, path);
    system = document_names_system(policy->tree->names, path->segments[0].name);
    if (system == DOCUMENT_SYSTEM_TS)
        return false;
    return system == DOCUMENT_SYSTEM_ETAG || policy->tree->root->all != INDEX_RULE_INCLUDE;
}

bool index_policy_covers_undefined(const struct index_policy *policy,
                                   const struct document_path *path)
{
    struct found found;

    if (is_system_property(policy->tree, path))
        return false;
    if (is_tuple(path))
        return covers_tuple(policy->tree, path);
    found = tree_find(policy->tree, path->segments, path->count);
    return path->end != DOCUMENT_PATH_END_ALL && found.node && found.node->named;
}

bool index_definition_covers(const struct index_definition *definition,
                             const struct document_path *path)
{
    struct found found;

    if (!definition->tree)
        return false;
    found = tree_find(definition->tree, path->segments, path->count);
    if (found.node && found.node->scalar != INDEX_RULE_NONE)
        return found.node->scalar == INDEX_RULE_INCLUDE;
    return found.included;
}

struct slice index_definition_path_prefix(const struct index_definition *definition,
                                          const struct document_path *path, struct arena *arena)
{
    CLEANUP(buf_done) struct buf prefix;

    buf_init(&prefix, BUF_DEFAULT_MAX);
    buf_append_slice(&prefix, definition->prefix);
    index_path_append(path, &prefix);
    return arena_copy(arena, buf_slice(&prefix));
}
