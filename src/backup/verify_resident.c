/* Residence (cluster/placement.h), proved twice: maps against the rules, which say where new items
 * will go, and each item by its own key against the node it was found on, whatever maps say. */
#include "backup/verify_private.h"

#include "partition/strategy.h"

/* NULL: the moment has no catalogue. */
static bool table_read(const struct backup_moment *moment, struct node_table **ret_table,
                       struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = MEMORY_NEW(struct node_table);

    *ret_table = NULL;
    if (!moment->has_catalogue)
        return true;
    if (!catalogue_nodes_peek_at(moment->nodes[0].engine, moment->nodes[0].snapshot, table, err))
        return false;
    *ret_table = TAKE(table);
    return true;
}

static const char *name_of(const struct backup_moment *moment, uint32_t number)
{
    for (size_t i = 0; i < moment->node_count; i++)
        if (moment->nodes[i].number == number)
            return moment->nodes[i].name;
    return "";
}

static const struct placement *placement_of(const struct container *container)
{
    return &definition_fields(container_definition(container))->placement;
}

/* --- Maps ------------------------------------------------------------------------------------ */

struct looking {
    const struct backup_moment *moment;
    const struct node_table *table;
    const struct verify_sink *sink;
    size_t count;
};

static void spans_look(struct looking *looking, const struct catalogue_kept_container *of,
                       const struct partition_span *spans, size_t count)
{
    const struct placement *placement = placement_of(of->container);

    for (size_t i = 0; i < count; i++) {
        const struct placement_rule *rule = placement_breach(placement, looking->table, &spans[i]);
        struct verify_finding finding = {.kind = VERIFY_RESIDENCE,
                                         .node = name_of(looking->moment, spans[i].node),
                                         .partition = spans[i].id,
                                         .container = of};
        char text[ERROR_MESSAGE_SIZE];

        if (!rule)
            continue;
        (void)snprintf(text, sizeof text,
                       "keys that rule %zu of orrery.placement makes resident belong into the "
                       "partition, and the rule does not allow its node",
                       (size_t)(rule - placement->rules) + 1);
        finding.message = slice_of_text(text);
        looking->count++;
        looking->sink->tell(looking->sink->context, &finding);
    }
}

bool verify_resident_maps(const struct backup_moment *moment, const struct verify_sink *sink,
                          size_t *ret_count, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = NULL;
    struct looking looking = {.moment = moment, .sink = sink};

    if (!table_read(moment, &table, err))
        return false;
    looking.table = table;
    for (size_t i = 0; table && i < moment->kept.container_count; i++) {
        const struct catalogue_kept_container *of = &moment->kept.containers[i];
        const struct migration *migration = container_migration(of->container);
        const struct partition_span *spans;
        size_t count;

        if (!placement_of(of->container)->resident)
            continue;
        spans = partition_map_spans(container_map(of->container), &count);
        spans_look(&looking, of, spans, count);
        if (migration && migration_state(migration) == MIGRATION_MOVING &&
            !migration_definition(migration)) {
            spans = migration_targets(migration, &count);
            spans_look(&looking, of, spans, count);
        }
    }
    *ret_count = looking.count;
    return true;
}

/* --- Items ----------------------------------------------------------------------------------- */

bool verify_resident_begin(struct verify *verify, struct error *err)
{
    if (verify->resident_known)
        return true;
    if (placement_of(verify->partition->container->container)->resident &&
        !table_read(verify->moment, &verify->table, err))
        return false;
    verify->resident_known = true;
    return true;
}

/* The key as it is stored, made into a place anew. */
void verify_resident_item(struct verify *verify, struct slice stored_key)
{
    const struct definition_fields *fields = verify->scope.definition;
    CLEANUP(buf_done) struct buf routing;
    struct slice rest = slice_skip(stored_key, 1);
    const struct placement_rule *rule;
    struct partition_key key;
    struct error damage;
    uint32_t node = verify->partition->node->number;

    buf_init(&routing, BUF_DEFAULT_MAX);
    if (!verify->table)
        return;
    if (!partition_route_skip(&fields->key, &rest, &damage) ||
        !partition_key_read(&fields->key, &rest, verify->arena, &key, &damage)) {
        verify_tell(verify, VERIFY_ITEM, stored_key, "the item is damaged: %s", damage.message);
        return;
    }
    rule = placement_match(&fields->placement, &key);
    if (!rule || !rule->resident)
        return;
    verify->figures.resident++;
    partition_route(&fields->key, &key, &routing);
    if (!slice_starts_with(slice_skip(stored_key, 1), buf_slice(&routing)))
        verify_tell(verify, VERIFY_RESIDENCE, stored_key,
                    "the item is not where its resident key leads");
    else if (!(placement_nodes(rule, verify->table) >> node & 1))
        verify_tell(verify, VERIFY_RESIDENCE, stored_key,
                    "the item lies on a node that rule %zu of orrery.placement, which makes its "
                    "key resident, does not allow",
                    (size_t)(rule - fields->placement.rules) + 1);
}
