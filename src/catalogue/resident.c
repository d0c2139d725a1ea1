#include "catalogue/resident.h"

#include "catalogue/catalogue_private.h"
#include "catalogue/node.h"
#include "definition/rekey.h"
#include "document/bson.h"
#include "document/order.h"

static const struct placement *placement_of(const struct definition *definition)
{
    return &definition_fields(definition)->placement;
}

static const char *name_of(const struct node_table *table, uint32_t number)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->list[i].number == number)
            return table->list[i].name;
    return "?";
}

static bool spans_check(const struct node_table *table, const struct definition *definition,
                        const struct partition_span *spans, size_t count, struct error *err)
{
    const struct placement *placement = placement_of(definition);

    for (size_t i = 0; i < count; i++) {
        const struct placement_rule *rule = placement_breach(placement, table, &spans[i]);

        if (rule)
            return error_set(err, ERROR_RESIDENCE,
                             "keys of container \"%.*s\" that rule %zu of orrery.placement makes "
                             "resident are, or would be, on node \"%s\", which it does not allow",
                             SLICE_ARG(definition_fields(definition)->id),
                             (size_t)(rule - placement->rules) + 1, name_of(table, spans[i].node));
    }
    return true;
}

bool catalogue_resident_check(struct catalogue *catalogue, const struct definition *definition,
                              const struct partition_span *spans, size_t count, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = NULL;

    if (!placement_of(definition)->resident)
        return true;
    table = catalogue_nodes(catalogue);
    return spans_check(table, definition, spans, count, err);
}

/* --- Definitions ----------------------------------------------------------------------------- */

bool catalogue_resident_lets_create(const struct definition *definition, struct error *err)
{
    const struct placement *placement = placement_of(definition);

    return !placement->resident || !placement->range_count ||
           !index_policy_places(definition_fields(definition)->policy) ||
           error_set(err, ERROR_RESIDENCE,
                     "an index with \"placed\" has entries where other keys are: only a resident "
                     "rule for all keys goes with it");
}

static struct document_value rules_of(const struct definition_fields *fields)
{
    struct document_value orrery, rules = document_undefined();

    if (document_find(fields->document, SLICE("orrery"), &orrery) && orrery.type == DOCUMENT_OBJECT)
        (void)document_find(orrery.document, SLICE("placement"), &rules);
    return rules;
}

static bool rules_equal(const struct definition_fields *a, const struct definition_fields *b)
{
    struct document_value x = rules_of(a), y = rules_of(b);

    return document_compare(DOCUMENT_ORDER_SQL, &x, &y) == 0;
}

static bool bound(const struct container *container, enum error_code code, const char *why,
                  struct error *err)
{
    return error_set(err, code, "resident rules of container \"%.*s\" cannot be changed: %s",
                     SLICE_ARG(container->state.info.id), why);
}

/* Views and promoted keys have the items of a container elsewhere; what they were made under
 * stays. */
static bool ties_check(const struct container *container, const struct definition_fields *before,
                       struct error *err)
{
    if (before->followed)
        return bound(container, ERROR_VIEW_BOUND, "views are kept from it: drop them first", err);
    if (before->view.form != DEFINITION_VIEW_NONE)
        return bound(container, ERROR_VIEW_BOUND, "it is a view", err);
    return !container->promotions.count ||
           bound(container, ERROR_PROMOTION_BOUND,
                 "a promotion ties it to another container: end it first", err);
}

bool catalogue_resident_lets_replace(struct catalogue *catalogue, const struct container *container,
                                     const struct definition *definition, struct error *err)
{
    const struct definition_fields *before = definition_fields(container->definition);
    const struct partition_span *spans;
    size_t count;

    if (!catalogue_resident_lets_create(definition, err))
        return false;
    if ((!before->placement.resident && !placement_of(definition)->resident) ||
        rules_equal(before, definition_fields(definition)))
        return true;
    if (!ties_check(container, before, err))
        return false;
    if (!placement_of(definition)->resident)
        return true;
    if (container->migration)
        return error_set(err, ERROR_BUSY,
                         "a migration of container \"%.*s\" is under way: make a rule resident "
                         "behind it",
                         SLICE_ARG(container->state.info.id));
    spans = partition_map_spans(container->map, &count);
    return catalogue_resident_check(catalogue, definition, spans, count, err) ||
           error_prefix(err, "let the rule be carried out without \"resident\" first");
}

/* --- Maps ------------------------------------------------------------------------------------ */

/* Are all sources on one node? */
static bool is_from(const struct migration *migration, uint32_t node)
{
    size_t count;
    const struct migration_source *sources = migration_sources(migration, &count);

    for (size_t i = 0; i < count; i++)
        if (sources[i].node != node)
            return false;
    return true;
}

/* What stays on its node is no worse than it was: where a setting has broken a rule, keys have to
 * be taken out of a span before they can leave the node. */
static bool targets_check(struct catalogue *catalogue, const struct container *container,
                          const struct migration *migration, struct error *err)
{
    size_t count;
    const struct partition_span *targets = migration_targets(migration, &count);

    for (size_t i = 0; i < count; i++)
        if (!is_from(migration, targets[i].node) &&
            !catalogue_resident_check(catalogue, container->definition, &targets[i], 1, err))
            return false;
    return true;
}

bool catalogue_resident_lets_migrate(struct catalogue *catalogue, const struct container *container,
                                     const struct migration *migration, struct error *err)
{
    const struct definition *placing = migration_definition(migration);
    CLEANUP(definition_unref) struct definition *next = NULL;
    const struct partition_span *spans;
    size_t count;

    if (!placement_of(container->definition)->resident)
        return true;
    if (!placing)
        return targets_check(catalogue, container, migration, err);
    spans = partition_map_spans(migration_map(migration), &count);
    return definition_placed_as(container->definition, placing, &next, err) &&
           catalogue_resident_check(catalogue, next, spans, count, err);
}

/* --- Nodes ----------------------------------------------------------------------------------- */

static bool container_check(const struct container *container, const struct node_table *table,
                            struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container->map, &count);

    if (!placement_of(container->definition)->resident)
        return true;
    if (!spans_check(table, container->definition, spans, count, err))
        return false;
    if (!container->migration)
        return true;
    spans = migration_targets(container->migration, &count);
    return spans_check(table, container->definition, spans, count, err);
}

bool catalogue_resident_lets_change(struct catalogue_change *change, const struct node_table *table,
                                    struct error *err)
{
    const struct catalogue_state *root = change->root;

    for (size_t a = 0; a < root->child_count; a++)
        for (size_t d = 0; d < root->children[a]->child_count; d++) {
            const struct catalogue_state *database = root->children[a]->children[d];

            for (size_t c = 0; c < database->child_count; c++)
                if (!container_check(catalogue_state_container(database->children[c]), table, err))
                    return false;
        }
    return true;
}

/* --- What holds items besides ---------------------------------------------------------------- */

/* Rows have other keys than their items, so a rule for all keys is the only one that can be the
 * same for both. */
static bool is_alike(const struct definition_fields *source, const struct definition_fields *view)
{
    return source->placement.count == 1 && !source->placement.rules[0].key_count &&
           rules_equal(source, view);
}

bool catalogue_resident_lets_view(const struct container *source,
                                  const struct definition_fields *view, struct error *err)
{
    const struct definition_fields *fields = definition_fields(source->definition);

    return !fields->placement.resident || is_alike(fields, view) ||
           error_set(err, ERROR_VIEW_UNFIT,
                     "container \"%.*s\" cannot be the source of a view: its items are resident, "
                     "and the view has not the same rule, one for all keys",
                     SLICE_ARG(source->state.info.id));
}

bool catalogue_resident_lets_promote(const struct container *container, struct error *err)
{
    return !placement_of(container->definition)->resident ||
           error_set(err, ERROR_PROMOTION_UNFIT,
                     "no key of container \"%.*s\" is promoted: a rule of it is resident",
                     SLICE_ARG(container->state.info.id));
}
