/* The table is read with every look at placement and changed a few times a year: it is copied whole
 * for each change, committed, and then put in place of the old one. */
#include "catalogue/node.h"

#include "base/memory.h"
#include "catalogue/catalogue_private.h"
#include "catalogue/resident.h"
#include "engine/guard.h"

#include <openssl/crypto.h>

const char node_id_free[37] = "------------------------------------";

/* --- The table ------------------------------------------------------------------------------- */

void catalogue_nodes_free(struct node_table *table)
{
    if (table)
        OPENSSL_cleanse(table, sizeof *table);
    memory_free(table);
}

struct node_table *catalogue_nodes(struct catalogue *catalogue)
{
    struct node_table *copy = MEMORY_NEW(struct node_table);

    WITH_LOCK (&catalogue->nodes_lock)
        *copy = *catalogue->nodes;
    return copy;
}

bool catalogue_nodes_peek(struct engine *root, struct node_table *ret_table, struct error *err)
{
    return catalogue_nodes_peek_at(root, NULL, ret_table, err);
}

bool catalogue_nodes_peek_at(struct engine *root, struct engine_snapshot *snapshot,
                             struct node_table *ret_table, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_partition *partitions;
    struct engine_value value;
    struct catalogue_record record;
    size_t count;

    memset(ret_table, 0, sizeof *ret_table);
    if (!engine_partition_list(root, arena, &partitions, &count, err))
        return false;
    if (count == 0 || partitions[0].id != CATALOGUE_PARTITION)
        return true;
    if (!engine_get(root, snapshot, CATALOGUE_PARTITION, catalogue_record_nodes_key(),
                    ENGINE_READ_ANY, arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    return catalogue_record_value_read(value.bytes, &record, err) &&
           node_table_parse(record.document, ret_table, err);
}

bool catalogue_nodes_load(struct catalogue *catalogue, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = MEMORY_NEW(struct node_table);

    if (!catalogue_nodes_peek_at(catalogue->engine, catalogue->moment, table, err))
        return false;
    WITH_LOCK (&catalogue->nodes_lock)
        *catalogue->nodes = *table;
    return true;
}

/* Commits the head and this table, and puts it in force. */
static bool table_commit(struct catalogue_change *change, const struct node_table *table,
                         struct error *err)
{
    struct catalogue *catalogue = change->catalogue;
    CLEANUP(buf_done) struct buf document;

    buf_init(&document, BUF_DEFAULT_MAX);
    node_table_append(table, &document);
    catalogue_change_put(change, catalogue_record_nodes_key(), buf_slice(&document));
    if (!catalogue_change_commit(change, err))
        return false;
    WITH_LOCK (&catalogue->nodes_lock)
        *catalogue->nodes = *table;
    return true;
}

void catalogue_nodes_apply(struct catalogue *catalogue)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = catalogue_nodes(catalogue);

    for (size_t i = 0; i < cluster_count(catalogue->cluster); i++) {
        const struct cluster_node *node = cluster_at(catalogue->cluster, i);
        const struct node_info *info = node_table_find_number(table, node->number);
        struct engine_guard_status status;

        if (info && cluster_node_is_member(node) && engine_guard_status(node->engine, &status))
            engine_guard_pause(node->engine, node_is_paused(table, info));
    }
}

/* --- At the start ---------------------------------------------------------------------------- */

static uint32_t number_of(const struct catalogue_head *head, const char *id)
{
    uint32_t number = 0;

    while (number < head->node_count && strcmp(head->nodes[number], id) != 0)
        number++;
    return number;
}

/* The number of a node in the head, or the next that is free and nobody in this process has. */
static bool number_settle(struct catalogue *catalogue, const char *name, const char *id,
                          uint32_t *ret_number, bool *changed, struct error *err)
{
    struct catalogue_head *head = &catalogue->head;
    uint32_t number = number_of(head, id);

    if (number == head->node_count) {
        *changed = true;
        for (number = 0; number < head->node_count; number++)
            if (strcmp(head->nodes[number], node_id_free) == 0 &&
                !cluster_find(catalogue->cluster, number))
                break;
        if (number == CLUSTER_NODES_MAX)
            return error_set(err, ERROR_CONFIGURATION,
                             "node \"%s\" is one too many: the catalogue knows %d", name,
                             CLUSTER_NODES_MAX);
        memcpy(head->nodes[number], id, sizeof head->nodes[0]);
        head->node_count = MAX(head->node_count, number + 1);
    }
    *ret_number = number;
    return true;
}

static bool numbers_settle(struct catalogue *catalogue, bool *changed, struct error *err)
{
    for (size_t i = 0; i < cluster_count(catalogue->cluster); i++)
        cluster_number(catalogue->cluster, i, CLUSTER_NODES_MAX + (uint32_t)i);
    for (size_t i = 0; i < cluster_count(catalogue->cluster); i++) {
        const struct cluster_node *node = cluster_at(catalogue->cluster, i);
        uint32_t number;

        if (!number_settle(catalogue, node->name, engine_node_id(node->engine), &number, changed,
                           err))
            return false;
        cluster_number(catalogue->cluster, i, number);
    }
    return true;
}

bool catalogue_nodes_follow(struct catalogue *catalogue, struct error *err)
{
    for (size_t i = 0; i < cluster_count(catalogue->cluster); i++) {
        const struct cluster_node *node = cluster_at(catalogue->cluster, i);
        uint32_t number = number_of(&catalogue->head, engine_node_id(node->engine));

        if (number == catalogue->head.node_count)
            return error_set(err, ERROR_CONFIGURATION, "node \"%s\" is not known to the catalogue",
                             node->name);
        if (node->number != number)
            cluster_number(catalogue->cluster, i, number);
    }
    return true;
}

static const struct node_info *said_of(const struct node_info *said, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(said[i].name, name) == 0)
            return &said[i];
    return NULL;
}

static void attributes_copy(struct node_info *to, const struct node_info *from)
{
    memcpy(to->region, from->region, sizeof to->region);
    memcpy(to->zone, from->zone, sizeof to->zone);
    memcpy(to->tags, from->tags, sizeof to->tags);
    to->tag_count = from->tag_count;
    to->capacity_bytes = from->capacity_bytes;
    to->reserve_percent = from->reserve_percent;
}

/* Settings are said anew at every start, so they have the last word; what they do not mention stays
 * as it was set while the server ran. */
static void said_apply(struct node_info *info, const struct node_info *said)
{
    if (said->region[0])
        memcpy(info->region, said->region, sizeof info->region);
    if (said->zone[0])
        memcpy(info->zone, said->zone, sizeof info->zone);
    if (said->tag_count) {
        memcpy(info->tags, said->tags, sizeof info->tags);
        info->tag_count = said->tag_count;
    }
    if (said->capacity_bytes)
        info->capacity_bytes = said->capacity_bytes;
    if (said->reserve_percent != UINT32_MAX)
        info->reserve_percent = said->reserve_percent;
}

static bool tables_differ(const struct node_table *a, const struct node_table *b)
{
    return memcmp(a, b, sizeof *a) != 0;
}

/* The row of a store that had this name and is not here any more: what is memory: is another one
 * after each start. */
static struct node_info *row_orphan(const struct catalogue *catalogue, struct node_table *table,
                                    const char *name)
{
    struct node_info *row = node_table_find(table, slice_of_text(name));

    for (size_t i = 0; row && i < cluster_count(catalogue->cluster); i++)
        if (strcmp(engine_node_id(cluster_at(catalogue->cluster, i)->engine), row->id) == 0)
            return NULL;
    return row;
}

/* One row per node that is here. A remembered one that is gone from here was not opened: it keeps
 * its row. */
static void table_settle(const struct catalogue *catalogue, struct node_table *table,
                         const struct node_info *said, size_t said_count)
{
    table->format = NODE_TABLE_FORMAT; /* from now on older versions are kept out */
    for (size_t i = 0; i < cluster_count(catalogue->cluster); i++) {
        const struct cluster_node *node = cluster_at(catalogue->cluster, i);
        const struct node_info *words = said_of(said, said_count, node->name);
        struct node_info *info = node_table_find_id(table, engine_node_id(node->engine));

        if (!info)
            info = row_orphan(catalogue, table, node->name);
        if (!info && table->count < CLUSTER_NODES_MAX)
            info = &table->list[table->count++];
        if (info && strcmp(info->id, engine_node_id(node->engine)) != 0) {
            *info = (struct node_info){.reserve_percent = NODE_RESERVE_DEFAULT};
            memcpy(info->id, engine_node_id(node->engine), sizeof info->id);
        }
        if (!info)
            continue;
        info->number = node->number;
        memset(info->name, 0, sizeof info->name);
        memcpy(info->name, node->name, MIN(strlen(node->name), sizeof info->name - 1));
        if (words)
            said_apply(info, words);
    }
}

bool catalogue_nodes_settle(struct catalogue *catalogue, const struct node_info *said,
                            size_t said_count, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = catalogue_nodes(catalogue);
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    bool changed = false;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !numbers_settle(catalogue, &changed, err))
        return false;
    table_settle(catalogue, table, said, said_count);
    if (!changed && !tables_differ(table, catalogue->nodes))
        return true;
    return table_commit(&change, table, err);
}

/* --- Coming ---------------------------------------------------------------------------------- */

/* What a store holds that no map leads to would be dropped as left behind; so it must be empty. */
static bool empty_check(struct engine *engine, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_partition *partitions;
    size_t count;

    if (!engine_partition_list(engine, arena, &partitions, &count, err))
        return false;
    count = history_others(partitions, count);
    return count == 0 ||
           error_set(err, ERROR_BAD_REQUEST,
                     "the store holds %zu partition%s of which this catalogue knows nothing", count,
                     PLURAL(count));
}

static bool name_check(struct node_table *table, const struct node_info *info,
                       const struct engine *engine, struct error *err)
{
    const struct node_info *other = node_table_find_id(table, engine_node_id(engine));

    if (node_table_find(table, slice_of_text(info->name)))
        return error_set(err, ERROR_NAME_TAKEN, "there is a node \"%s\" already", info->name);
    if (other)
        return error_set(err, ERROR_BAD_REQUEST, "the store is the node \"%s\" already",
                         other->name);
    return table->count < CLUSTER_NODES_MAX ||
           error_set(err, ERROR_LIMIT_REACHED, "there are %d nodes, as many as may be",
                     CLUSTER_NODES_MAX);
}

/* The row is committed before the node can be given a partition. */
bool catalogue_node_add(struct catalogue *catalogue, const struct node_info *info,
                        struct engine *engine, const struct cluster_node **ret_node,
                        struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = NULL;
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    bool changed = false;
    uint32_t number;
    struct node_info *row;

    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    table = catalogue_nodes(catalogue);
    if (!node_name_check(slice_of_text(info->name), err) || !name_check(table, info, engine, err) ||
        !empty_check(engine, err) ||
        !engine_cluster_join(engine, cluster_id(catalogue->cluster), err) ||
        !number_settle(catalogue, info->name, engine_node_id(engine), &number, &changed, err))
        return false;
    row = &table->list[table->count++];
    *row = *info;
    row->number = number;
    memcpy(row->id, engine_node_id(engine), sizeof row->id);
    if (!table_commit(&change, table, err) ||
        !cluster_add_as(catalogue->cluster, info->name, engine, number, err))
        return false;
    *ret_node = cluster_find(catalogue->cluster, number);
    return true;
}

/* Everything is read again only if the last load could not look at this node: then as after a
 * commit in doubt, for that is the way that leaves readers alone. */
bool catalogue_node_rejoin(struct catalogue *catalogue, uint32_t number, struct error *err)
{
    bool passed_over = false;

    if (!cluster_rejoin(catalogue->cluster, number, err) ||
        !agreements_join(catalogue->agreements, cluster_find(catalogue->cluster, number), err))
        return false;
    WITH_LOCK (&catalogue->change_lock) {
        passed_over = catalogue->away >> number & 1;
        catalogue->in_doubt |= passed_over;
    }
    if (!passed_over)
        return true;

    CLEANUP(catalogue_change_end) struct catalogue_change change;

    return catalogue_change_begin(catalogue, &change, err);
}

static bool row_find(struct node_table *table, struct slice name, struct node_info **ret_row,
                     struct error *err)
{
    *ret_row = node_table_find(table, name);
    return *ret_row ||
           error_set(err, ERROR_NOT_FOUND, "there is no node \"%.*s\"",
                     (int)MIN(name.len, (size_t)NODE_NAME_SIZE), (const char *)name.data);
}

/* The keeper of the node puts it in order, and the catalogue is read again: of the root it may know
 * what is gone. */
bool catalogue_node_accept_loss(struct catalogue *catalogue, struct slice name, struct error *err)
{
    enum { WAIT_MS = 30000, LOOK_NS = 10 * 1000 * 1000 };
    CLEANUP(catalogue_nodes_free) struct node_table *table = catalogue_nodes(catalogue);
    int64_t deadline_ms = clock_monotonic_ms() + WAIT_MS;
    const struct cluster_node *node;
    struct node_info *row;

    if (!row_find(table, name, &row, err))
        return false;
    node = cluster_find(catalogue->cluster, row->number);
    if (!engine_guard_accept_loss(node->engine, err))
        return false;
    while (!engine_serves(node->engine, err)) {
        if (clock_monotonic_ms() >= deadline_ms)
            return false;
        nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
    }
    WITH_LOCK (&catalogue->change_lock)
        catalogue->in_doubt = true;

    CLEANUP(catalogue_change_end) struct catalogue_change change;

    return catalogue_change_begin(catalogue, &change, err);
}

/* --- Changing -------------------------------------------------------------------------------- */

static bool others_take(const struct node_table *table, const struct node_info *but)
{
    for (size_t i = 0; i < table->count; i++)
        if (&table->list[i] != but && !table->list[i].draining)
            return true;
    return false;
}

bool catalogue_node_change(struct catalogue *catalogue, struct slice name,
                           const struct catalogue_node_settings *wanted, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = NULL;
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct node_info *row;

    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    table = catalogue_nodes(catalogue);
    if (!row_find(table, name, &row, err))
        return false;
    if (wanted->draining && *wanted->draining && !others_take(table, row))
        return error_set(err, ERROR_BAD_REQUEST,
                         "node \"%s\" is the last one that takes partitions: add another first",
                         row->name);
    if (wanted->attributes) {
        attributes_copy(row, wanted->attributes);
        if (!catalogue_resident_lets_change(&change, table, err))
            return false;
    }
    if (wanted->draining)
        row->draining = *wanted->draining;
    if (wanted->paused)
        row->paused = *wanted->paused;
    if (!table_commit(&change, table, err))
        return false;
    catalogue_nodes_apply(catalogue);
    return true;
}

bool catalogue_nodes_rebalancing(struct catalogue *catalogue, bool on, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = NULL;
    CLEANUP(catalogue_change_end) struct catalogue_change change;

    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    table = catalogue_nodes(catalogue);
    if (table->rebalancing == on)
        return true;
    table->rebalancing = on;
    return table_commit(&change, table, err);
}

static size_t region_find(const struct node_table *table, struct slice region)
{
    size_t i = 0;

    while (i < table->region_count && !slice_equal(slice_of_text(table->regions[i]), region))
        i++;
    return i;
}

static bool region_check(const struct node_table *table, struct slice region, struct error *err)
{
    for (size_t i = 0; region.len && i < table->count; i++)
        if (slice_equal(slice_of_text(table->list[i].region), region))
            return true;
    return error_set(err, ERROR_NOT_FOUND, "no node is in the region \"%.*s\"",
                     (int)MIN(region.len, (size_t)NODE_WORD_SIZE), (const char *)region.data);
}

bool catalogue_region_pause(struct catalogue *catalogue, struct slice region, bool on,
                            struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = NULL;
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    size_t place;

    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    table = catalogue_nodes(catalogue);
    place = region_find(table, region);
    if (on && place == table->region_count) {
        if (!region_check(table, region, err))
            return false;
        if (table->region_count == NODE_REGIONS_MAX)
            return error_set(err, ERROR_LIMIT_REACHED, "%d regions are paused, as many as may be",
                             NODE_REGIONS_MAX);
        memset(table->regions[place], 0, NODE_WORD_SIZE);
        memcpy(table->regions[place], region.data, region.len);
        table->region_count++;
    } else if (!on && place < table->region_count) {
        table->region_count--;
        memmove(table->regions[place], table->regions[place + 1],
                (table->region_count - place) * NODE_WORD_SIZE);
        memset(table->regions[table->region_count], 0, NODE_WORD_SIZE);
    } else {
        return on || region_check(table, region, err);
    }
    if (!table_commit(&change, table, err))
        return false;
    catalogue_nodes_apply(catalogue);
    return true;
}

/* --- Going ----------------------------------------------------------------------------------- */

static size_t container_uses(const struct container *container, uint32_t node)
{
    size_t uses = 0, count;
    const struct partition_span *spans = partition_map_spans(container->map, &count);

    for (size_t i = 0; i < count; i++)
        uses += spans[i].node == node;
    if (!container->migration)
        return uses;
    spans = migration_targets(container->migration, &count);
    for (size_t i = 0; i < count; i++)
        uses += spans[i].node == node;

    const struct migration_source *sources = migration_sources(container->migration, &count);

    for (size_t i = 0; i < count; i++)
        uses += sources[i].node == node;
    return uses;
}

static size_t tree_uses(const struct catalogue_state *root, uint32_t node)
{
    size_t uses = 0;

    for (size_t a = 0; a < root->child_count; a++)
        for (size_t d = 0; d < root->children[a]->child_count; d++) {
            const struct catalogue_state *database = root->children[a]->children[d];

            for (size_t c = 0; c < database->child_count; c++)
                uses += container_uses(catalogue_state_container(database->children[c]), node);
        }
    return uses;
}

/* What was dropped has partitions too until the purger has been there. */
static bool unused_check(struct catalogue_change *change, const struct node_info *row,
                         const struct cluster_node *node, struct error *err)
{
    size_t uses = tree_uses(change->root, row->number), count = 0;
    struct engine_partition *partitions;
    struct error away;

    if (!uses && node && engine_serves(node->engine, &away)) {
        if (!engine_partition_list(node->engine, change->arena, &partitions, &count, err))
            return false;
        uses = history_others(partitions, count);
    } else if (!uses) {
        uses = catalogue_purges_left(change->catalogue);
    }
    return !uses ||
           error_set(err, ERROR_BUSY,
                     "node \"%s\" holds %zu partition%s: drain it first (orrery node drain %s)",
                     row->name, uses, PLURAL(uses), row->name);
}

/* A node takes its history of changes along. Who reads changes, and has not come that far, is told
 * so (MongoDB's 286) rather than given what is left. Of a node that cannot be asked nothing after
 * now is missing: it has no partition any more. */
static bool history_lost(struct catalogue *catalogue, const struct cluster_node *node,
                         struct error *err)
{
    uint64_t time = commit_clock_now(cluster_times(catalogue->cluster));
    struct error away;

    if (node && engine_serves(node->engine, &away) && !history_last(node->engine, &time, err))
        return false;
    return !time || history_gap(catalogue->engine, catalogue->commit, time, err);
}

bool catalogue_node_remove(struct catalogue *catalogue, struct slice name,
                           const struct cluster_node **ret_node, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = NULL;
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    const struct cluster_node *node;
    struct node_info *row;
    uint32_t number;

    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    table = catalogue_nodes(catalogue);
    if (!row_find(table, name, &row, err))
        return false;
    number = row->number;
    node = cluster_find(catalogue->cluster, number);
    if (node && node->engine == catalogue->engine)
        return error_set(err, ERROR_FORBIDDEN,
                         "node \"%s\" is the root: it keeps the catalogue and cannot be removed",
                         row->name);
    if (!unused_check(&change, row, node, err) ||
        !agreements_spare(catalogue->agreements, number, err) ||
        !history_lost(catalogue, node, err))
        return false;
    *row = table->list[--table->count];
    memset(&table->list[table->count], 0, sizeof table->list[0]);
    memcpy(catalogue->head.nodes[number], node_id_free, sizeof node_id_free);
    if (!table_commit(&change, table, err))
        return false;
    cluster_remove(catalogue->cluster, number);
    *ret_node = node;
    return true;
}
