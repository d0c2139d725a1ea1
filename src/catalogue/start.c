/* Loading reads the partition once, in key order: parents come before what is in them. What a
 * tombstone covers is passed over, but its partitions still have an owner: the purger. Partitions
 * without any are left by a crash between making them and committing their container. */
#include "catalogue/catalogue_private.h"
#include "catalogue/node.h"
#include "catalogue/notes.h"
#include "engine/guard.h"

struct loader {
    struct catalogue *catalogue;
    struct arena *arena;
    struct catalogue_state *root;      /* being built; a reference */
    struct catalogue_state *account;   /* the last one read; borrowed from root */
    struct catalogue_state *database;  /* likewise */
    struct catalogue_state *container; /* likewise */
    struct catalogue_child *user;      /* the last one read; borrowed from its database */
    struct slice *tombstones;          /* scopes, sorted */
    size_t tombstone_count, next_tombstone;
    struct slice cover; /* the last tombstone that may cover what is being read */
    uint32_t *owned;    /* partitions; heap */
    size_t owned_count, owned_capacity;
};

static bool damaged(struct error *err, const char *what)
{
    return error_set(err, ERROR_STORE_CORRUPT, "the catalogue holds a %s that nothing owns", what);
}

/* --- Tombstones ------------------------------------------------------------------------------ */

static bool tombstones_load(struct loader *loader, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    size_t capacity = 0;

    if (!engine_iterator_new(loader->catalogue->engine, loader->catalogue->moment,
                             CATALOGUE_PARTITION, catalogue_record_tombstone_range(), false,
                             ENGINE_READ_ANY, &iterator, err))
        return false;
    for (;;) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (entry.key.len > RECORD_KEY_MAX)
            return damaged(err, "tombstone");
        if (loader->tombstone_count == capacity) {
            struct slice *more;

            capacity = capacity ? capacity * 2 : 16;
            more = ARENA_ARRAY(loader->arena, struct slice, capacity);
            if (loader->tombstone_count)
                memcpy(more, loader->tombstones, loader->tombstone_count * sizeof *more);
            loader->tombstones = more;
        }
        loader->tombstones[loader->tombstone_count++] =
            arena_copy(loader->arena, catalogue_record_tombstone_scope(entry.key));
    }
}

/* Both come in order, so one look at each tombstone does. One inside another adds nothing. */
static bool is_covered(struct loader *loader, struct slice key)
{
    while (loader->next_tombstone < loader->tombstone_count) {
        struct slice scope = loader->tombstones[loader->next_tombstone];

        if (slice_compare(scope, key) > 0)
            break;
        if (!loader->cover.len || !slice_starts_with(scope, loader->cover))
            loader->cover = scope;
        loader->next_tombstone++;
    }
    return loader->cover.len && slice_starts_with(key, loader->cover);
}

/* --- Partitions ------------------------------------------------------------------------------ */

static bool owned_add(struct loader *loader, const struct catalogue_record *record,
                      struct error *err)
{
    struct catalogue_record_partition *partitions;
    size_t count;

    if (!catalogue_record_container_partitions(record, loader->arena, &partitions, &count, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (loader->owned_count == loader->owned_capacity) {
            loader->owned_capacity = loader->owned_capacity ? loader->owned_capacity * 2 : 64;
            loader->owned = memory_realloc(
                loader->owned, memory_array_size(loader->owned_capacity, sizeof *loader->owned));
        }
        loader->owned[loader->owned_count++] = partitions[i].id;
    }
    return true;
}

static bool nodes_present(const struct catalogue *catalogue, const struct container *container,
                          struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container->map, &count);

    for (size_t i = 0; i < count; i++)
        if (!cluster_find(catalogue->cluster, spans[i].node))
            return error_set(err, ERROR_CONFIGURATION,
                             "container \"%.*s\" has partitions on node %s, which is not among the "
                             "nodes of this server",
                             SLICE_ARG(container->state.info.id),
                             spans[i].node < catalogue->head.node_count
                                 ? catalogue->head.nodes[spans[i].node]
                                 : "of an unknown id");
    return true;
}

/* What a node that is away keeps is looked at when it comes: catalogue_node_rejoin loads again. */
static bool is_away(struct catalogue *catalogue, const struct cluster_node *node,
                    const struct error *err)
{
    static_assert((int)CLUSTER_NODES_MAX <= 64, "a bit each");
    if (err->code != ERROR_NODE_DOWN && err->code != ERROR_NODE_PAUSED)
        return false;
    catalogue->away |= 1ULL << node->number;
    if (err->code == ERROR_NODE_DOWN && node != cluster_at(catalogue->cluster, 0))
        engine_guard_take_down(node->engine, err); /* it may just have gone */
    return true;
}

/* Before anybody can write: what is written from now on must be in the journal. */
static bool journal_begin(struct catalogue *catalogue, const struct container *container,
                          struct error *err)
{
    const struct migration_source *sources;
    size_t count;

    if (catalogue->follows || !container->migration ||
        migration_state(container->migration) != MIGRATION_MOVING)
        return true;
    sources = migration_sources(container->migration, &count);
    for (size_t i = 0; i < count; i++) {
        const struct cluster_node *node = cluster_find(catalogue->cluster, sources[i].node);

        struct error away;

        /* of one that was never here, nothing is open */
        if (!commit_partition_tap(node->commit, sources[i].id, true, err) &&
            (engine_serves(node->engine, &away) || !is_away(catalogue, node, &away)))
            return false;
    }
    return true;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static bool is_owned(const struct loader *loader, uint32_t id)
{
    return loader->owned_count &&
           bsearch(&id, loader->owned, loader->owned_count, sizeof id, by_number);
}

static bool orphans_drop(struct loader *loader, struct error *err)
{
    struct cluster *cluster = loader->catalogue->cluster;

    if (loader->catalogue->follows) /* it may be just being made */
        return true;
    if (loader->owned_count)
        qsort(loader->owned, loader->owned_count, sizeof *loader->owned, by_number);
    for (size_t i = 0; i < cluster_count(cluster); i++) {
        const struct cluster_node *node = cluster_at(cluster, i);
        struct engine_partition *partitions;
        size_t count;

        if (!cluster_node_is_member(node))
            continue;
        if (!engine_partition_list(node->engine, loader->arena, &partitions, &count, err)) {
            if (is_away(loader->catalogue, node, err))
                continue;
            return error_prefix(err, "node \"%s\"", node->name);
        }
        for (size_t j = 0; j < count; j++) {
            if (partitions[j].id == CATALOGUE_PARTITION || partitions[j].id == PARTITION_HISTORY ||
                is_owned(loader, partitions[j].id))
                continue;
            if (!catalogue_partition_remove(node, partitions[j].id, err)) {
                if (is_away(loader->catalogue, node, err))
                    break;
                return error_prefix(err, "node \"%s\"", node->name);
            }
            log_event(loader->catalogue->log, LOG_INFO, "orphan partition dropped",
                      LOG_TEXT("node", node->name), LOG_INT("partition", partitions[j].id));
        }
    }
    return true;
}

/* --- Records --------------------------------------------------------------------------------- */

static bool covered_take(struct loader *loader, const struct catalogue_record *record,
                         struct error *err)
{
    return record->address.kind != RECORD_CONTAINER || owned_add(loader, record, err);
}

/* A map that readers may hold stays the same object when everything is read again: whether anybody
 * holds it is counted by its references. */
static void map_keep(const struct loader *loader, struct container *container)
{
    const struct container *before =
        catalogue_find_container_number(loader->catalogue->root, container->account,
                                        container->database, container->state.info.number);

    if (!before || partition_map_version(before->map) != partition_map_version(container->map))
        return;
    partition_map_unref(container->map);
    container->map = partition_map_ref(before->map);
}

static bool in_last_database(const struct loader *loader, const struct catalogue_record *record)
{
    return loader->account && loader->account->info.number == record->address.account &&
           loader->database && loader->database->info.number == record->address.database;
}

static bool container_take(struct loader *loader, const struct catalogue_record *record,
                           struct error *err)
{
    struct catalogue_state *state;

    if (!in_last_database(loader, record))
        return damaged(err, "container");
    if (!catalogue_record_container_read(record, loader->catalogue, &state, err))
        return false;
    catalogue_state_container(state)->database_name =
        arena_copy(state->arena, loader->database->info.id);
    catalogue_state_child_append(loader->database, state);
    loader->container = state;
    map_keep(loader, catalogue_state_container(state));
    return owned_add(loader, record, err) &&
           nodes_present(loader->catalogue, catalogue_state_container(state), err) &&
           journal_begin(loader->catalogue, catalogue_state_container(state), err);
}

static bool offer_take(struct loader *loader, const struct catalogue_record *record,
                       struct error *err)
{
    struct offer offer;

    if (!in_last_database(loader, record) || !catalogue_record_offer_read(record, &offer, err))
        return damaged(err, "offer");
    if (!record->address.container) {
        catalogue_state_database(loader->database)->offer = offer;
        catalogue_state_database(loader->database)->has_offer = true;
        return true;
    }
    if (!loader->container || loader->container->info.number != record->address.container)
        return damaged(err, "offer");
    catalogue_state_container(loader->container)->offer = offer;
    catalogue_state_container(loader->container)->has_offer = true;
    return true;
}

/* The list that a child belongs to; NULL when what it belongs to was not read before it. */
static struct catalogue_children **child_list(const struct loader *loader,
                                              const struct catalogue_record *record)
{
    const struct catalogue_record_address *address = &record->address;

    if (!in_last_database(loader, record))
        return NULL;
    switch (address->child_kind) {
    case CHILD_USER:
        return &catalogue_state_database(loader->database)->users;
    case CHILD_ENCRYPTION_KEY:
        return &catalogue_state_database(loader->database)->keys;
    case CHILD_PERMISSION:
        return loader->user && loader->user->info.number == address->user
                   ? &loader->user->permissions
                   : NULL;
    default:
        return loader->container && loader->container->info.number == address->container
                   ? &catalogue_state_container(loader->container)
                          ->scripts[address->child_kind - CHILD_PROCEDURE]
                   : NULL;
    }
}

static bool child_take(struct loader *loader, const struct catalogue_record *record,
                       struct error *err)
{
    struct catalogue_children **list = child_list(loader, record);
    struct catalogue_child *child;

    if (!list)
        return damaged(err, child_kind_name(record->address.child_kind));
    if (!catalogue_record_child_read(record, &child, err))
        return false;
    if (children_find_id(*list, child->info.id)) {
        catalogue_child_unref(child);
        return damaged(err, "name twice, or a child");
    }
    child = child_resident(child);
    children_load(list, child);
    if (child->kind == CHILD_USER)
        loader->user = child;
    if (child->kind == CHILD_PERMISSION) {
        catalogue_state_database(loader->database)->permission_count++;
        catalogue_state_database(loader->database)->permission_bytes += child_body_len(child);
    }
    return true;
}

static bool record_take(struct loader *loader, const struct catalogue_record *record,
                        struct error *err)
{
    struct catalogue_state *state;

    switch (record->address.kind) {
    case RECORD_ACCOUNT:
        if (!catalogue_record_account_read(record, &state, err))
            return false;
        catalogue_state_child_append(loader->root, state);
        loader->account = state;
        loader->database = loader->container = NULL;
        loader->user = NULL;
        return true;
    case RECORD_DATABASE:
        if (!loader->account || loader->account->info.number != record->address.account)
            return damaged(err, "database");
        if (!catalogue_record_database_read(record, &state, err))
            return false;
        catalogue_state_child_append(loader->account, state);
        loader->database = state;
        loader->container = NULL;
        loader->user = NULL;
        return true;
    case RECORD_CONTAINER:
        return container_take(loader, record, err);
    case RECORD_CHILD:
        return child_take(loader, record, err);
    default:
        return offer_take(loader, record, err);
    }
}

static bool records_load(struct loader *loader, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct catalogue_record record;

    if (!engine_iterator_new(loader->catalogue->engine, loader->catalogue->moment,
                             CATALOGUE_PARTITION, catalogue_record_range(), false, ENGINE_READ_ONCE,
                             &iterator, err))
        return false;
    for (;;) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!catalogue_record_read(entry.key, entry.value, &record, err))
            return false;
        if (is_covered(loader, entry.key) ? !covered_take(loader, &record, err)
                                          : !record_take(loader, &record, err))
            return false;
    }
}

/* Containers without an offer of their own have their database's. */
static bool offers_share(struct catalogue_state *database, struct error *err)
{
    for (size_t i = 0; i < database->child_count; i++) {
        struct container *container = catalogue_state_container(database->children[i]);

        if (container->has_offer)
            continue;
        if (!catalogue_state_database(database)->has_offer)
            return error_set(err, ERROR_STORE_CORRUPT, "container \"%.*s\" has no offer",
                             SLICE_ARG(container->state.info.id));
        container->offer = catalogue_state_database(database)->offer;
    }
    return true;
}

static bool tree_finish(struct catalogue_state *root, struct error *err)
{
    catalogue_state_sort(root);
    for (size_t i = 0; i < root->child_count; i++) {
        struct catalogue_state *account = root->children[i];

        catalogue_state_sort(account);
        for (size_t j = 0; j < account->child_count; j++) {
            catalogue_state_sort(account->children[j]);
            if (!offers_share(account->children[j], err))
                return false;
        }
    }
    return true;
}

/* --- The whole ------------------------------------------------------------------------------- */

/* Numbers handed out in this process and never committed are not handed out again either. */
static void head_merge(struct catalogue_head *head, const struct catalogue_head *stored)
{
    struct catalogue_head before = *head;

    *head = *stored;
    head->next_partition = MAX(head->next_partition, before.next_partition);
    for (uint32_t i = head->node_count; i < before.node_count; i++)
        memcpy(head->nodes[head->node_count++], before.nodes[i], sizeof before.nodes[i]);
}

bool catalogue_head_load(struct catalogue *catalogue, bool *ret_found, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;
    struct catalogue_record record;
    struct catalogue_head head;

    if (!engine_get(catalogue->engine, catalogue->moment, CATALOGUE_PARTITION,
                    catalogue_record_head_key(), ENGINE_READ_ANY, arena, &value, err))
        return false;
    *ret_found = value.found == ENGINE_FOUND;
    if (!*ret_found)
        return true;
    if (!catalogue_record_value_read(value.bytes, &record, err) ||
        !catalogue_record_head_read(record.document, &head, err))
        return false;
    head_merge(&catalogue->head, &head);
    return true;
}

static bool loader_run(struct loader *loader, struct error *err)
{
    struct catalogue *catalogue = loader->catalogue;
    bool found;

    catalogue->away = 0;
    if (!catalogue_head_load(catalogue, &found, err) || !tombstones_load(loader, err) ||
        !records_load(loader, err) || !tree_finish(loader->root, err) || !orphans_drop(loader, err))
        return false;
    catalogue_purge_queue_clear(catalogue);
    for (size_t i = 0; !catalogue->follows && i < loader->tombstone_count; i++)
        catalogue_purge_queue(catalogue, loader->tombstones[i]);
    catalogue_state_adopt_lives(loader->root, catalogue->root);
    catalogue_publish(catalogue, TAKE(loader->root));
    return true;
}

bool catalogue_load(struct catalogue *catalogue, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct loader loader = {.catalogue = catalogue,
                            .arena = arena,
                            .root = catalogue_state_new(STATE_ROOT, SLICE(""), 0)};
    bool loaded = false;

    WITH_LOCK (&catalogue->purging_lock)
        loaded = loader_run(&loader, err);
    catalogue_state_unref(loader.root);
    memory_free(loader.owned);
    return loaded;
}

/* --- Beside the owner ------------------------------------------------------------------------- */

/* Is there a note of these? */
static bool notes_look(struct catalogue *catalogue, const uint8_t *from, const uint8_t *to,
                       size_t len, bool *ret_any, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_entry entry;
    struct engine_range range;
    uint32_t partition;

    range.min = catalogue_notes_place(slice_of(from, len), arena, &partition);
    range.max = catalogue_notes_place(slice_of(to, len), arena, &partition);
    if (!engine_iterator_new(catalogue->engine, catalogue->moment, partition, range, false,
                             ENGINE_READ_ANY, &iterator, err) ||
        !engine_iterator_next(iterator, &entry, err))
        return false;
    *ret_any = *ret_any || entry.found == ENGINE_FOUND;
    return true;
}

static bool reserved_look(struct catalogue *catalogue, struct error *err)
{
    static const uint8_t pauses[] = {CATALOGUE_NOTES_SERVER, CATALOGUE_NOTES_SERVER_PAUSE},
                         pauses_end[] = {CATALOGUE_NOTES_SERVER, CATALOGUE_NOTES_SERVER_PAUSE + 1},
                         withheld[] = {CATALOGUE_NOTES_WITHHELD},
                         withheld_end[] = {CATALOGUE_NOTES_WITHHELD + 1};
    bool any = false;

    if (!notes_look(catalogue, pauses, pauses_end, sizeof pauses, &any, err) ||
        !notes_look(catalogue, withheld, withheld_end, sizeof withheld, &any, err))
        return false;
    atomic_store(&catalogue->reserved, any);
    return true;
}

static bool follow(struct catalogue *catalogue, struct error *err)
{
    bool found;

    if (!catalogue_head_load(catalogue, &found, err))
        return false;
    if (!found)
        return error_set(err, ERROR_NOT_FOUND, "there is no catalogue yet");
    return catalogue_nodes_load(catalogue, err) && catalogue_nodes_follow(catalogue, err) &&
           reserved_look(catalogue, err) && catalogue_load(catalogue, err);
}

/* Of one moment: the owner writes meanwhile. */
bool catalogue_follow(struct catalogue *catalogue, struct error *err)
{
    bool followed = false;

    assert(catalogue->follows);
    WITH_LOCK (&catalogue->change_lock) {
        followed = engine_snapshot_new(catalogue->engine, &catalogue->moment, err) &&
                   follow(catalogue, err);
        engine_snapshot_free(TAKE(catalogue->moment));
    }
    if (followed)
        catalogue_nodes_apply(catalogue);
    return followed;
}

bool catalogue_is_reserved(const struct catalogue *catalogue)
{
    return atomic_load(&catalogue->reserved);
}
