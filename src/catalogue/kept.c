/* Records come in key order, parents before what is in them (record.c), but tombstones behind all
 * of them: the covered ones are taken out at the end. */
#include "catalogue/kept.h"

#include "catalogue/catalogue_private.h"
#include "document/bson.h"

static_assert((int)CATALOGUE_KEPT_PARTITION == (int)CATALOGUE_PARTITION, "it is the same");

/* --- Holding --------------------------------------------------------------------------------- */

struct catalogue_hold {
    struct catalogue *catalogue;
    struct catalogue_state *root; /* a reference: with it all maps of now */
};

bool catalogue_hold_new(struct catalogue *catalogue, bool (*take)(void *context, struct error *err),
                        void *context, struct catalogue_hold **ret_hold, struct error *err)
{
    struct catalogue_change change;
    CLEANUP(catalogue_hold_free) struct catalogue_hold *hold = MEMORY_NEW(struct catalogue_hold);
    bool taken;

    catalogue_purge_hold(catalogue);
    hold->catalogue = catalogue;
    taken = catalogue_change_begin(catalogue, &change, err);
    if (taken) {
        hold->root = catalogue_root(catalogue);
        taken = take(context, err);
    }
    catalogue_change_end(&change);
    if (!taken)
        return false;
    *ret_hold = TAKE(hold);
    return true;
}

void catalogue_hold_free(struct catalogue_hold *hold)
{
    if (!hold)
        return;
    catalogue_state_unref(hold->root);
    catalogue_purge_release(hold->catalogue);
    memory_free(hold);
}

/* --- Reading --------------------------------------------------------------------------------- */

/* The address of what an entry of a list came from, to see whether a tombstone covers it. */
struct reading {
    struct arena *arena;
    struct catalogue_kept *kept;
    struct slice *account_keys, *database_keys, *container_keys, *child_keys, *damage_keys;
    size_t account_capacity, database_capacity, container_capacity, child_capacity, damage_capacity,
        tombstone_capacity, tombstone_count;
    struct slice *tombstones;
    size_t owned_capacity;
    uint32_t account, database, container, user; /* numbers of those read last; 0: none */
    struct slice account_name, database_name, container_name, user_name;
};

static void *grown(struct arena *arena, void *old, size_t count, size_t capacity, size_t size)
{
    void *bigger = arena_alloc(arena, memory_array_size(capacity, size));

    if (count)
        memcpy(bigger, old, count * size);
    return bigger;
}

/* Makes room for one more in a list and in the list of keys beside it. */
#define ROOM(reading, list, keys, count, capacity)                                                 \
    do {                                                                                           \
        if ((count) == (capacity)) {                                                               \
            (capacity) = (capacity) ? (capacity)*2 : 16;                                           \
            (list) = grown((reading)->arena, (list), (count), (capacity), sizeof *(list));         \
            (keys) = grown((reading)->arena, (keys), (count), (capacity), sizeof *(keys));         \
        }                                                                                          \
    } while (0)

static void damage_note(struct reading *r, struct slice key, const char *message)
{
    struct catalogue_kept *kept = r->kept;

    ROOM(r, kept->damages, r->damage_keys, kept->damage_count, r->damage_capacity);
    r->damage_keys[kept->damage_count] = arena_copy(r->arena, key);
    kept->damages[kept->damage_count] = (struct catalogue_kept_damage){
        r->damage_keys[kept->damage_count], arena_copy(r->arena, slice_of_text(message))};
    kept->damage_count++;
}

static void tombstone_take(struct reading *r, struct slice key)
{
    if (r->tombstone_count == r->tombstone_capacity) {
        r->tombstone_capacity = r->tombstone_capacity ? r->tombstone_capacity * 2 : 16;
        r->tombstones = grown(r->arena, r->tombstones, r->tombstone_count, r->tombstone_capacity,
                              sizeof *r->tombstones);
    }
    r->tombstones[r->tombstone_count++] =
        arena_copy(r->arena, catalogue_record_tombstone_scope(key));
}

static bool account_take(struct reading *r, const struct catalogue_record *record, struct slice key,
                         struct error *err)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *state = NULL;
    struct catalogue_kept *kept = r->kept;

    r->database = r->container = r->user = 0;
    if (!catalogue_record_account_read(record, &state, err))
        return false;
    ROOM(r, kept->accounts, r->account_keys, kept->account_count, r->account_capacity);
    r->account = record->address.account;
    r->account_name = arena_copy(r->arena, state->info.id);
    r->account_keys[kept->account_count] = arena_copy(r->arena, key);
    kept->accounts[kept->account_count++] = r->account_name;
    return true;
}

static bool database_take(struct reading *r, const struct catalogue_record *record,
                          struct slice key, struct error *err)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *state = NULL;
    struct catalogue_kept *kept = r->kept;

    r->container = r->user = 0;
    if (r->account != record->address.account)
        return error_set(err, ERROR_STORE_CORRUPT, "a database that no account owns");
    if (!catalogue_record_database_read(record, &state, err))
        return false;
    ROOM(r, kept->databases, r->database_keys, kept->database_count, r->database_capacity);
    r->database = record->address.database;
    r->database_name = arena_copy(r->arena, state->info.id);
    r->database_keys[kept->database_count] = arena_copy(r->arena, key);
    kept->databases[kept->database_count++] =
        (struct catalogue_kept_database){.account = r->account_name, .id = r->database_name};
    return true;
}

static bool in_last_database(const struct reading *r, const struct catalogue_record *record,
                             const char *what, struct error *err)
{
    return (r->account == record->address.account && r->database == record->address.database) ||
           error_set(err, ERROR_STORE_CORRUPT, "a %s that no database owns", what);
}

static bool owned_take(struct reading *r, const struct catalogue_record *record, struct error *err)
{
    struct catalogue_kept *kept = r->kept;
    struct catalogue_record_partition *partitions;
    size_t count;

    if (!catalogue_record_container_partitions(record, r->arena, &partitions, &count, err))
        return false;
    if (kept->owned_count + count > r->owned_capacity) {
        r->owned_capacity = 2 * (kept->owned_count + count);
        kept->owned =
            grown(r->arena, kept->owned, kept->owned_count, r->owned_capacity, sizeof *kept->owned);
    }
    for (size_t i = 0; i < count; i++)
        kept->owned[kept->owned_count++] = partitions[i].id;
    return true;
}

static bool container_take(struct reading *r, const struct catalogue_record *record,
                           struct slice key, struct error *err)
{
    struct catalogue_kept *kept = r->kept;
    struct catalogue_state *state;

    r->container = 0;
    if (!in_last_database(r, record, "container", err) || !owned_take(r, record, err) ||
        !catalogue_record_container_read(record, NULL, &state, err))
        return false;
    ROOM(r, kept->containers, r->container_keys, kept->container_count, r->container_capacity);
    r->container = record->address.container;
    r->container_name = arena_copy(r->arena, state->info.id);
    r->container_keys[kept->container_count] = arena_copy(r->arena, key);
    kept->containers[kept->container_count++] = (struct catalogue_kept_container){
        .account = r->account_name,
        .database = r->database_name,
        .container = catalogue_state_container(state),
    };
    return true;
}

static bool offer_take(struct reading *r, const struct catalogue_record *record, struct error *err)
{
    struct catalogue_kept *kept = r->kept;
    struct offer offer;

    if (!in_last_database(r, record, "offer", err) ||
        !catalogue_record_offer_read(record, &offer, err))
        return false;
    if (!record->address.container) {
        kept->databases[kept->database_count - 1].has_offer = true;
        kept->databases[kept->database_count - 1].offer = offer;
        return true;
    }
    if (r->container != record->address.container)
        return error_set(err, ERROR_STORE_CORRUPT, "an offer that no container owns");
    kept->containers[kept->container_count - 1].has_offer = true;
    kept->containers[kept->container_count - 1].offer = offer;
    return true;
}

static bool child_take(struct reading *r, const struct catalogue_record *record, struct slice key,
                       struct error *err)
{
    struct catalogue_kept *kept = r->kept;
    struct catalogue_child *child;

    if (!in_last_database(r, record, "user or script", err))
        return false;
    if ((record->address.container && record->address.container != r->container) ||
        (record->address.user && record->address.user != r->user))
        return error_set(err, ERROR_STORE_CORRUPT, "a permission or script that nothing owns");
    if (!catalogue_record_child_read(record, &child, err))
        return false;
    ROOM(r, kept->children, r->child_keys, kept->child_count, r->child_capacity);
    if (child->kind == CHILD_USER) {
        r->user = record->address.child;
        r->user_name = arena_copy(r->arena, child->info.id);
    }
    r->child_keys[kept->child_count] = arena_copy(r->arena, key);
    kept->children[kept->child_count++] = (struct catalogue_kept_child){
        .account = r->account_name,
        .database = r->database_name,
        .container = record->address.container ? r->container_name : SLICE_NONE,
        .user = child->kind == CHILD_PERMISSION ? r->user_name : SLICE_NONE,
        .kind = child->kind,
        .body = arena_copy(r->arena, child->body),
    };
    catalogue_child_unref(child);
    return true;
}

static bool record_take(struct reading *r, struct slice key, struct slice value, struct error *err)
{
    struct catalogue_record record;

    if (!catalogue_record_read(key, value, &record, err))
        return false;
    switch (record.address.kind) {
    case RECORD_ACCOUNT:
        return account_take(r, &record, key, err);
    case RECORD_DATABASE:
        return database_take(r, &record, key, err);
    case RECORD_CONTAINER:
        return container_take(r, &record, key, err);
    case RECORD_OFFER:
        return offer_take(r, &record, err);
    default:
        return child_take(r, &record, key, err);
    }
}

/* A newer format is no damage: whoever reads it must be newer, too. */
static bool entry_take(struct reading *r, struct slice key, struct slice value, struct error *err)
{
    struct engine_range records = catalogue_record_range(),
                        tombstones = catalogue_record_tombstone_range();

    if (slice_starts_with(key, tombstones.min))
        tombstone_take(r, key);
    if (!slice_starts_with(key, records.min) || record_take(r, key, value, err))
        return true;
    if (err->code == ERROR_STORE_VERSION)
        return false;
    damage_note(r, key, err->message);
    return true;
}

static bool is_covered(const struct reading *r, struct slice key)
{
    for (size_t i = 0; i < r->tombstone_count; i++)
        if (slice_starts_with(key, r->tombstones[i]))
            return true;
    return false;
}

#define UNCOVER(reading, list, keys, count)                                                        \
    do {                                                                                           \
        size_t kept_ = 0;                                                                          \
        for (size_t i_ = 0; i_ < (count); i_++)                                                    \
            if (!is_covered((reading), (keys)[i_]))                                                \
                (list)[kept_++] = (list)[i_];                                                      \
        (count) = kept_;                                                                           \
    } while (0)

static void covered_remove(struct reading *r)
{
    struct catalogue_kept *kept = r->kept;

    if (!r->tombstone_count)
        return;
    for (size_t i = 0; i < kept->container_count; i++)
        if (is_covered(r, r->container_keys[i]))
            container_unref(kept->containers[i].container);
    UNCOVER(r, kept->accounts, r->account_keys, kept->account_count);
    UNCOVER(r, kept->databases, r->database_keys, kept->database_count);
    UNCOVER(r, kept->containers, r->container_keys, kept->container_count);
    UNCOVER(r, kept->children, r->child_keys, kept->child_count);
    UNCOVER(r, kept->damages, r->damage_keys, kept->damage_count);
}

bool catalogue_kept_read(const struct catalogue_kept_source *source, struct arena *arena,
                         struct catalogue_kept *ret_kept, struct error *err)
{
    CLEANUP(catalogue_kept_done) struct catalogue_kept kept = {0};
    struct reading reading = {.arena = arena, .kept = &kept};
    struct slice key, value;
    bool found = true;

    for (;;) {
        if (!source->next(source->context, &key, &value, &found, err))
            return false;
        if (!found)
            break;
        if (!entry_take(&reading, key, value, err))
            return false;
    }
    covered_remove(&reading);
    *ret_kept = kept;
    kept = (struct catalogue_kept){0};
    return true;
}

static bool store_next(void *context, struct slice *ret_key, struct slice *ret_value,
                       bool *ret_found, struct error *err)
{
    struct engine_entry entry;

    if (!engine_iterator_next(context, &entry, err))
        return false;
    *ret_found = entry.found == ENGINE_FOUND;
    *ret_key = entry.key;
    *ret_value = entry.value;
    return true;
}

bool catalogue_kept_read_store(struct engine *root, struct engine_snapshot *snapshot,
                               struct arena *arena, struct catalogue_kept *ret_kept,
                               struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct engine_range range = {catalogue_record_range().min,
                                 catalogue_record_tombstone_range().max};

    if (!engine_iterator_new(root, snapshot, CATALOGUE_PARTITION, range, false, ENGINE_READ_ONCE,
                             &iterator, err))
        return false;
    return catalogue_kept_read(&(struct catalogue_kept_source){store_next, iterator}, arena,
                               ret_kept, err);
}

void catalogue_kept_done(struct catalogue_kept *kept)
{
    for (size_t i = 0; i < kept->container_count; i++)
        container_unref(kept->containers[i].container);
    kept->container_count = 0;
}

/* --- Other stores ---------------------------------------------------------------------------- */

/* The value with another document; lsn and time stay. */
static struct slice value_with(struct slice value, struct slice document, struct arena *arena)
{
    return arena_join(arena, (struct slice[]){slice_first(value, RECORD_HEADER_LEN), document}, 2);
}

static bool head_move(struct slice document, const struct catalogue_kept_node *nodes, size_t count,
                      struct arena *arena, struct slice *ret_document, struct error *err)
{
    struct catalogue_head head;

    if (!catalogue_record_head_read(document, &head, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (nodes[i].number < head.node_count)
            memcpy(head.nodes[nodes[i].number], nodes[i].id, sizeof head.nodes[0]);
    *ret_document = catalogue_record_head_write(&head, arena);
    return true;
}

static bool table_move(struct slice document, const struct catalogue_kept_node *nodes, size_t count,
                       struct arena *arena, struct slice *ret_document, struct error *err)
{
    CLEANUP(catalogue_nodes_free) struct node_table *table = MEMORY_NEW(struct node_table);
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (!node_table_parse(document, table, err))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct node_info *info = node_table_find_number(table, nodes[i].number);

        if (!info)
            continue;
        memcpy(info->id, nodes[i].id, sizeof info->id);
        if (info->remembered && strlen(nodes[i].url) >= sizeof info->url)
            return error_set(err, ERROR_STORE_URL, "the URL of node \"%s\" is too long",
                             info->name);
        if (info->remembered)
            memcpy(info->url, nodes[i].url, strlen(nodes[i].url) + 1);
    }
    table->rebalancing = false;
    node_table_append(table, &buf);
    *ret_document = arena_copy(arena, buf_slice(&buf));
    return true;
}

static struct slice migration_drop(struct slice document, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_iter iter;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("migration")))
            document_append(&buf, iter.key, &iter.value);
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}

bool catalogue_kept_moved(struct slice key, struct slice value,
                          const struct catalogue_kept_node *nodes, size_t count,
                          struct arena *arena, struct slice *ret_value, struct error *err)
{
    struct catalogue_record record;
    struct slice document;

    *ret_value = value;
    if (slice_equal(key, catalogue_record_head_key())) {
        if (!catalogue_record_value_read(value, &record, err) ||
            !head_move(record.document, nodes, count, arena, &document, err))
            return false;
    } else if (slice_equal(key, catalogue_record_nodes_key())) {
        if (!catalogue_record_value_read(value, &record, err) ||
            !table_move(record.document, nodes, count, arena, &document, err))
            return false;
    } else if (slice_starts_with(key, catalogue_record_range().min)) {
        if (!catalogue_record_read(key, value, &record, err))
            return false;
        if (record.address.kind != RECORD_CONTAINER)
            return true;
        document = migration_drop(record.document, arena);
    } else {
        return true;
    }
    *ret_value = value_with(value, document, arena);
    return true;
}
