/* Definitions made from what a language says. All that can be wrong with one is found here or by
 * its kind, so that nothing that has a definition need doubt it. */
#include "index/definition.h"

#include "index/policy_private.h"

/* Entries that lie elsewhere than their item are read for what they say: nothing leads from them to
 * the item, and so each item has one, of whole values. */
static bool placed_check(const struct index_parts *parts, struct error *err)
{
    bool plain = parts->part_count && !parts->spatial && !parts->text && !parts->collator &&
                 !parts->multikey && !parts->sparse && !parts->expires &&
                 parts->unique == INDEX_UNIQUE_NOT && parts->order == DOCUMENT_ORDER_SQL;

    for (size_t i = 0; i < parts->part_count; i++)
        plain = plain && !parts->parts[i].hashed;
    return plain || error_set(err, ERROR_NOT_SUPPORTED,
                              "index \"%.*s\": entries are placed by \"placed\" only of a key of "
                              "plain paths in SQL's order that is neither multikey, sparse, unique "
                              "nor expiring",
                              SLICE_ARG(parts->name));
}

static bool parts_check(const struct index_parts *parts, struct error *err)
{
    if (!parts->name.len || parts->name.len > INDEX_NAME_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "an index needs a name of at most %d bytes",
                         INDEX_NAME_MAX);
    if (parts->part_count > INDEX_PARTS_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "index \"%.*s\" has more than %d paths",
                         SLICE_ARG(parts->name), INDEX_PARTS_MAX);
    if (parts->filter_count > INDEX_CONDITIONS_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the filter of index \"%.*s\" has more than %d conditions",
                         SLICE_ARG(parts->name), INDEX_CONDITIONS_MAX);
    if (parts->include_count + parts->exclude_count > INDEX_PROJECTION_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "wildcard index \"%.*s\" has more than %d paths",
                         SLICE_ARG(parts->name), INDEX_PROJECTION_MAX);
    if (parts->part_count && parts->include_count + parts->exclude_count)
        return error_set(err, ERROR_BAD_REQUEST,
                         "index \"%.*s\" has paths of its own and those of a wildcard",
                         SLICE_ARG(parts->name));
    if (parts->collator && (parts->order != DOCUMENT_ORDER_MONGO || !parts->multikey))
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "index \"%.*s\": a collation takes \"multikey\" and the order \"mongo\"",
                         SLICE_ARG(parts->name));
    if (parts->sparse && parts->filter_count)
        return error_set(err, ERROR_BAD_REQUEST, "index \"%.*s\" cannot be both sparse and partial",
                         SLICE_ARG(parts->name));
    if (parts->counted && (!parts->multikey || !parts->part_count))
        return error_set(err, ERROR_BAD_REQUEST,
                         "index \"%.*s\": arrays are counted where they are gone through, which "
                         "takes multikey and a key",
                         SLICE_ARG(parts->name));
    if (parts->expires && parts->expire_after_s < 0)
        return error_set(err, ERROR_BAD_REQUEST,
                         "index \"%.*s\": items cannot expire before their time",
                         SLICE_ARG(parts->name));
    if (parts->placed && !placed_check(parts, err))
        return false;
    for (size_t i = 0; i < parts->part_count; i++)
        for (size_t s = 0; s < parts->parts[i].path.count; s++)
            if (parts->parts[i].path.segments[s].kind != DOCUMENT_SEGMENT_PROPERTY)
                return error_set(err, ERROR_BAD_REQUEST,
                                 "index \"%.*s\": a path is made of properties",
                                 SLICE_ARG(parts->name));
    return true;
}

static bool tree_make(const struct index_parts *parts, struct arena *arena,
                      const struct index_tree **ret_tree, struct error *err)
{
    static const struct document_path all = {.end = DOCUMENT_PATH_END_ALL};
    struct index_tree *tree = ARENA_NEW(arena, struct index_tree);

    tree->elements_hidden = parts->multikey;
    if (!parts->include_count && !index_tree_add(tree, &all, INDEX_RULE_INCLUDE, arena, err))
        return false;
    for (size_t i = 0; i < parts->include_count; i++)
        if (!index_tree_add(tree, &parts->include[i], INDEX_RULE_INCLUDE, arena, err))
            return false;
    for (size_t i = 0; i < parts->exclude_count; i++)
        if (!index_tree_add(tree, &parts->exclude[i], INDEX_RULE_EXCLUDE, arena, err))
            return false;
    index_tree_finish(tree, arena);
    *ret_tree = tree;
    return true;
}

/* Layout of format 2: policy.c. */
static struct slice prefix_make(const struct index_definition *definition, struct arena *arena)
{
    size_t count = definition->tree || definition->text ? 1 : definition->part_count;
    size_t len = 4 + (count + 7) / 8;
    uint8_t *prefix = arena_alloc_zero(arena, len);

    prefix[0] = INDEX_MARK_ESCAPE;
    prefix[1] = INDEX_ESCAPE_NUMBER;
    prefix[2] = definition->number;
    prefix[3] = (uint8_t)(count | (definition->tree ? INDEX_SHAPE_PATH : 0) |
                          (definition->order == DOCUMENT_ORDER_MONGO ? INDEX_SHAPE_MONGO : 0));
    for (size_t i = 0; i < definition->part_count; i++)
        if (definition->parts[i].descending)
            prefix[4 + i / 8] |= (uint8_t)(1u << i % 8);
    return slice_of(prefix, len);
}

/* The filter with the texts of its conditions in comparison form. */
static const struct index_condition *filter_collate(const struct index_parts *parts,
                                                    struct arena *arena)
{
    struct index_condition *filter;

    if (!parts->collator || !parts->filter_count)
        return parts->filter;
    filter = ARENA_ARRAY(arena, struct index_condition, parts->filter_count);
    for (size_t i = 0; i < parts->filter_count; i++) {
        filter[i] = parts->filter[i];
        if (filter[i].comparison != INDEX_EXISTS && filter[i].comparison != INDEX_TYPE)
            filter[i].value = document_collate(parts->collator, &parts->filter[i].value, arena);
    }
    return filter;
}

/* Sort keys of another version of the rules are of no use. */
static void collator_take(const struct index_parts *parts, struct index_definition *definition)
{
    struct slice version = document_collator_version(parts->collator);

    definition->collator = parts->collator;
    definition->collator_version = parts->collator_version.len ? parts->collator_version : version;
    definition->stale = !slice_equal(definition->collator_version, version);
}

bool index_definition_build(const struct index_parts *parts, struct arena *arena,
                            const struct index_definition **ret_definition, struct error *err)
{
    struct index_definition *definition = ARENA_NEW(arena, struct index_definition);

    if (!parts_check(parts, err))
        return false;
    *definition = (struct index_definition){
        .name = parts->name,
        .format = INDEX_FORMAT_VERSION,
        .number = parts->number,
        .kind = parts->kind         ? parts->kind
                : parts->spatial    ? &index_kind_spatial
                : parts->part_count ? &index_kind_ordered
                                    : &index_kind_wildcard,
        .parts = parts->parts,
        .part_count = parts->part_count,
        .spatial = parts->spatial,
        .order = parts->order,
        .multikey = parts->multikey,
        .counted = parts->counted,
        .hidden = parts->hidden || parts->placed, /* its entries do not lead to items */
        .sparse = parts->sparse,
        .unique = parts->unique,
        .state = parts->state,
        .expire_after_s = parts->expires ? parts->expire_after_s : INDEX_EXPIRES_NEVER,
        .filter = filter_collate(parts, arena),
        .filter_count = parts->filter_count,
        .text = parts->text,
        .placed = parts->placed,
    };
    if (parts->collator)
        collator_take(parts, definition);
    if (!parts->part_count && !parts->text && !tree_make(parts, arena, &definition->tree, err))
        return error_prefix(err, "index \"%.*s\"", SLICE_ARG(parts->name));
    if (!definition->kind->check(definition, err))
        return error_prefix(err, "index \"%.*s\"", SLICE_ARG(parts->name));
    definition->prefix = prefix_make(definition, arena);
    *ret_definition = definition;
    return true;
}

const char *index_state_name(enum index_state state)
{
    static const char *const names[] = {"ready", "building", "failed"};

    return names[state];
}

/* --- Comparing ------------------------------------------------------------------------------- */

bool index_path_begins(const struct document_path *path, const struct document_path *with)
{
    for (size_t i = 0; i < with->count; i++)
        if (i == path->count || path->segments[i].kind != with->segments[i].kind ||
            !slice_equal(path->segments[i].name, with->segments[i].name))
            return false;
    return true;
}

bool index_paths_same(const struct document_path *a, const struct document_path *b)
{
    return a->count == b->count && a->end == b->end && index_path_begins(a, b);
}

static bool nodes_same(const struct index_node *a, const struct index_node *b)
{
    if (!a || !b)
        return a == b;
    if (a->scalar != b->scalar || a->all != b->all || a->named != b->named ||
        a->child_count != b->child_count || a->tuples || b->tuples ||
        !nodes_same(a->elements, b->elements))
        return false;
    for (size_t i = 0; i < a->child_count; i++)
        if (!slice_equal(a->children[i]->name, b->children[i]->name) ||
            !nodes_same(a->children[i], b->children[i]))
            return false;
    return true;
}

static bool filters_same(const struct index_definition *a, const struct index_definition *b)
{
    if (a->filter_count != b->filter_count)
        return false;
    for (size_t i = 0; i < a->filter_count; i++) {
        const struct index_condition *p = &a->filter[i], *q = &b->filter[i];

        if (!index_paths_same(&p->path, &q->path) || p->comparison != q->comparison ||
            p->any != q->any || document_compare(DOCUMENT_ORDER_MONGO, &p->value, &q->value) != 0)
            return false;
    }
    return true;
}

bool index_spatial_same(const struct index_spatial *a, const struct index_spatial *b)
{
    return a->rules.surface == b->rules.surface && a->rules.every_type == b->rules.every_type &&
           a->rules.smaller == b->rules.smaller && a->grid.surface == b->grid.surface &&
           a->grid.x_min == b->grid.x_min && a->grid.y_min == b->grid.y_min &&
           a->grid.x_max == b->grid.x_max && a->grid.y_max == b->grid.y_max;
}

static bool index_text_same(const struct index_definition *a, const struct index_definition *b)
{
    if (!a->text || !b->text)
        return a->text == b->text;
    if (a->part_count != b->part_count || a->text->all != b->text->all ||
        !slice_equal(a->text->language, b->text->language) ||
        !slice_equal(a->text->override, b->text->override))
        return false;
    return true; /* weights are not in the entries */
}

bool index_definition_same(const struct index_definition *a, const struct index_definition *b)
{
    if (a->kind != b->kind || a->collator != b->collator || a->multikey != b->multikey ||
        a->counted != b->counted || a->sparse != b->sparse || a->unique != b->unique ||
        !slice_equal(a->prefix, b->prefix) || !filters_same(a, b) || !a->placed != !b->placed ||
        (a->placed && !index_paths_same(a->placed, b->placed)))
        return false;
    for (size_t i = 0; i < a->part_count; i++)
        if (!index_paths_same(&a->parts[i].path, &b->parts[i].path) ||
            a->parts[i].hashed != b->parts[i].hashed || a->parts[i].cells != b->parts[i].cells)
            return false;
    if (a->spatial && !index_spatial_same(a->spatial, b->spatial))
        return false;
    if (!slice_equal(a->language, b->language) || !index_text_same(a, b) ||
        (a->vector && !index_vector_same(a->vector, b->vector)))
        return false;
    return !a->tree || (a->tree->elements_hidden == b->tree->elements_hidden &&
                        nodes_same(a->tree->root, b->tree->root));
}
