/* Opening and closing, accounts and databases. Containers and offers have files of their own.
 *
 * All of it is in memory as a tree of states (root, accounts, databases, containers) that never
 * change once they are published, and in partition CATALOGUE_PARTITION of the first node as one
 * record each. Whoever looks takes a reference and keeps what he has seen; a change copies the
 * states from the one that changes up to the root and exchanges the root.
 *
 * A change is always the same five steps: begin (change_lock, the root as it is now), check, write
 * the records in one durable commit, stamp the new state with the LSN and time of that commit,
 * publish. If the commit fails nothing was published; if its outcome is not known, what was read
 * into memory may be behind the store, and the node refuses further changes until it knows.
 *
 * A change costs one durable commit and holds change_lock while it runs. That makes changes of the
 * catalogue as slow as a disk's sync, one after the other; they are rare, and requests on items
 * never wait for them. Checking under a lock and retrying on conflicts, as items do, was weighed:
 * names, limits of an account and numbers of offers are checked across many records, and would all
 * have to be relied on.
 *
 * Dropping writes one tombstone, whatever is below, and publishes; partitions and records below are
 * removed later (purge.c), by a list that a restart makes anew from the tombstones. */
#include "catalogue/catalogue_private.h"
#include "catalogue/withheld.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <sched.h>

enum { EPOCH = 1 };

/* --- Opening --------------------------------------------------------------------------------- */

/* A root without a catalogue is new. If anything else is there, the operator has named another node
 * first, and going on would drop what the real catalogue owns. */
static bool new_check(const struct catalogue *catalogue, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < cluster_count(catalogue->cluster); i++) {
        const struct cluster_node *node = cluster_at(catalogue->cluster, i);
        struct engine_partition *partitions;
        size_t count, own = i == 0;
        struct error away;

        if (i > 0 && !engine_serves(node->engine, &away)) /* no catalogue, no node it knows */
            return error_set(err, ERROR_CONFIGURATION,
                             "node \"%s\" cannot be opened, and the catalogue is new: %s",
                             node->name, away.message);
        if (!engine_partition_list(node->engine, arena, &partitions, &count, err))
            return error_prefix(err, "node \"%s\"", node->name);
        count = history_others(partitions, count);
        if (count > own || (count == 1 && partitions[0].id != CATALOGUE_PARTITION))
            return error_set(err, ERROR_CONFIGURATION,
                             "node \"%s\" holds partitions, and node \"%s\" no catalogue: the "
                             "node with the catalogue must be named first",
                             node->name, cluster_at(catalogue->cluster, 0)->name);
    }
    return true;
}

/* The epoch of the catalogue's partition, which is made if the root has none. */
static bool partition_settle(struct catalogue *catalogue, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_partition *partitions;
    size_t count;

    if (!engine_partition_list(catalogue->engine, arena, &partitions, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (partitions[i].id == CATALOGUE_PARTITION) {
            catalogue->epoch = partitions[i].epoch;
            return true;
        }
    if (catalogue->follows)
        return error_set(err, ERROR_NOT_FOUND, "there is no catalogue yet");
    catalogue->epoch = EPOCH;
    return new_check(catalogue, err) &&
           engine_partition_create(catalogue->engine, CATALOGUE_PARTITION, EPOCH, err) &&
           commit_partition_open(catalogue->commit, CATALOGUE_PARTITION, EPOCH, err);
}

static bool head_settle(struct catalogue *catalogue, const struct catalogue_options *options,
                        struct error *err)
{
    bool found;

    catalogue->head = (struct catalogue_head){.next_account = 1,
                                              .next_database = 1,
                                              .next_container = 1,
                                              .next_offer = 1,
                                              .next_user = 1,
                                              .next_child = 1,
                                              .next_partition = CATALOGUE_PARTITION + 1};
    return catalogue_head_load(catalogue, &found, err) && (found || new_check(catalogue, err)) &&
           catalogue_nodes_load(catalogue, err) &&
           catalogue_nodes_settle(catalogue, options->nodes, options->node_count, err);
}

static struct catalogue *catalogue_new(const struct catalogue_options *options)
{
    struct catalogue *catalogue = MEMORY_NEW(struct catalogue);
    const struct cluster_node *root = cluster_at(options->cluster, 0);

    catalogue->cluster = options->cluster;
    catalogue->commit = root->commit;
    catalogue->engine = root->engine;
    catalogue->limits = options->limits ? *options->limits : CATALOGUE_LIMITS_DEFAULT;
    catalogue->scripts = child_cache_new(catalogue->limits.script_cache_bytes);
    catalogue->log = options->log;
    catalogue->partition_gone = options->partition_gone;
    catalogue->history = options->history;
    catalogue->follows = options->follows;
    catalogue->recall = options->recall;
    catalogue->recalled = options->recalled;
    catalogue->recall_context = options->recall_context;
    catalogue->gone_context = options->gone_context;
    catalogue->root = catalogue_state_new(STATE_ROOT, SLICE(""), 0);
    catalogue->agreements = catalogue_agreements_new(catalogue, options->cluster);
    for (size_t i = 0; i < STATE_LOCKS; i++)
        mutex_init(&catalogue->state_locks[i].mutex);
    mutex_init(&catalogue->published_lock);
    condition_init(&catalogue->published);
    mutex_init(&catalogue->change_lock);
    mutex_init(&catalogue->withheld_lock);
    mutex_init(&catalogue->nodes_lock);
    catalogue->nodes = MEMORY_NEW(struct node_table);
    mutex_init(&catalogue->purging_lock);
    mutex_init(&catalogue->queue_lock);
    condition_init(&catalogue->wake);
    return catalogue;
}

bool catalogue_open(const struct catalogue_options *options, struct catalogue **ret_catalogue,
                    struct error *err)
{
    CLEANUP(catalogue_close) struct catalogue *catalogue = catalogue_new(options);
    bool loaded = false;

    if (options->follows) {
        if (!partition_settle(catalogue, err) || !catalogue_follow(catalogue, err))
            return error_prefix(err, "catalogue");
        *ret_catalogue = TAKE(catalogue);
        return true;
    }
    if (!partition_settle(catalogue, err) || !head_settle(catalogue, options, err))
        return error_prefix(err, "catalogue");
    WITH_LOCK (&catalogue->change_lock)
        loaded = catalogue_load(catalogue, err);
    if (!loaded)
        return error_prefix(err, "catalogue");
    catalogue_purge_start(catalogue, options->purge_by_hand);
    if (!agreements_recover(catalogue->agreements, err))
        return error_prefix(err, "transactions over several nodes");
    /* Behind them: what a container of a transaction gets with its commit may only be promised. */
    if (!agreements_waiting(catalogue->agreements))
        catalogue_withheld_recover(catalogue);
    *ret_catalogue = TAKE(catalogue);
    return true;
}

void catalogue_close(struct catalogue *catalogue)
{
    if (!catalogue)
        return;
    agreements_free(catalogue->agreements);
    catalogue_purge_stop(catalogue);
    catalogue_promotions_stale_free(catalogue);
    catalogue_state_unref(catalogue->root);
    child_cache_free(catalogue->scripts);
    condition_done(&catalogue->wake);
    mutex_done(&catalogue->queue_lock);
    mutex_done(&catalogue->purging_lock);
    OPENSSL_cleanse(catalogue->nodes, sizeof *catalogue->nodes); /* URLs have passwords */
    memory_free(catalogue->nodes);
    mutex_done(&catalogue->nodes_lock);
    catalogue_withheld_done(catalogue);
    mutex_done(&catalogue->withheld_lock);
    mutex_done(&catalogue->change_lock);
    condition_done(&catalogue->published);
    mutex_done(&catalogue->published_lock);
    for (size_t i = 0; i < STATE_LOCKS; i++)
        mutex_done(&catalogue->state_locks[i].mutex);
    memory_free(catalogue);
}

const struct definition_limits *catalogue_limits(const struct catalogue *catalogue)
{
    return &catalogue->limits;
}

struct cluster *catalogue_cluster(const struct catalogue *catalogue)
{
    return catalogue->cluster;
}

/* Every request looks, so looking must not make processors wait for each other: each takes the lock
 * of its own processor, which is free but for a thread that was moved or interrupted while it held
 * it. Publishing takes them all; it is rare and waits for a disk anyhow. */
struct catalogue_look catalogue_look_begin(struct catalogue *catalogue)
{
    int processor = sched_getcpu();
    struct mutex *lock = &catalogue->state_locks[MAX(processor, 0) % STATE_LOCKS].mutex;

    mutex_lock(lock);
    return (struct catalogue_look){.lock = lock, .root = catalogue->root};
}

void catalogue_look_end(struct catalogue_look *look)
{
    mutex_unlock(look->lock);
}

struct catalogue_state *catalogue_root(struct catalogue *catalogue)
{
    CLEANUP(catalogue_look_end) struct catalogue_look look = catalogue_look_begin(catalogue);

    return catalogue_state_ref(look.root);
}

bool catalogue_knows_partition(const struct catalogue *catalogue, uint64_t id)
{
    return id < atomic_load(&catalogue->partitions_next);
}

void catalogue_publish(struct catalogue *catalogue, struct catalogue_state *root)
{
    struct catalogue_state *old;

    for (size_t i = 0; i < STATE_LOCKS; i++)
        mutex_lock(&catalogue->state_locks[i].mutex);
    old = catalogue->root;
    catalogue->root = root;
    for (size_t i = 0; i < STATE_LOCKS; i++)
        mutex_unlock(&catalogue->state_locks[i].mutex);
    catalogue_state_unref(old);
    atomic_store(&catalogue->partitions_next, catalogue->head.next_partition);
    WITH_LOCK (&catalogue->published_lock)
        condition_broadcast(&catalogue->published);
}

/* --- Dropping -------------------------------------------------------------------------------- */

/* One tombstone, whatever is below. */
bool catalogue_change_bury(struct catalogue_change *change, struct catalogue_record_address address,
                           struct slice *ret_scope, struct error *err)
{
    struct slice scope = catalogue_record_key(address, change->arena);
    static const uint8_t nothing[] = {5, 0, 0, 0, 0}; /* the empty document */

    catalogue_change_put(change, catalogue_record_tombstone_key(scope, change->arena),
                         slice_of(nothing, sizeof nothing));
    if (!catalogue_change_commit(change, err))
        return false;
    *ret_scope = scope;
    return true;
}

/* The account, database or container at an address; it is there. */
static struct catalogue_state *state_at(const struct catalogue_state *root,
                                        struct catalogue_record_address address)
{
    struct catalogue_state *state = catalogue_state_find_number(root, address.account);

    if (address.kind != RECORD_ACCOUNT)
        state = catalogue_state_find_number(state, address.database);
    return address.kind == RECORD_CONTAINER ? catalogue_state_find_number(state, address.container)
                                            : state;
}

bool catalogue_change_drop(struct catalogue_change *change, struct catalogue_record_address address,
                           struct error *err)
{
    struct slice scope;

    if (!catalogue_change_bury(change, address, &scope, err))
        return false;
    catalogue_state_mark_dropped(state_at(change->root, address));
    catalogue_change_publish(change, address, NULL);
    catalogue_purge_queue(change->catalogue, scope);
    return true;
}

bool catalogue_number_take(uint32_t *next, uint32_t max, const char *kind, uint32_t *ret_number,
                           struct error *err)
{
    if (*next > max)
        return error_set(err, ERROR_LIMIT_REACHED, "the numbers of %s are used up", kind);
    *ret_number = (*next)++;
    return true;
}

/* --- Accounts -------------------------------------------------------------------------------- */

/* Bytes of the change's own arena that held keys. */
static void secret_forget(struct slice bytes)
{
    OPENSSL_cleanse((void *)bytes.data, bytes.len);
}

static bool account_put(struct catalogue_change *change, struct catalogue_state *state,
                        struct account **ret_account, struct error *err)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *owned = state;
    struct catalogue_record_address address = {.kind = RECORD_ACCOUNT,
                                               .account = state->info.number};
    struct slice document =
        catalogue_record_account_write(catalogue_state_account(state), change->arena);
    bool committed;

    catalogue_change_put_record(change, address, document);
    committed = catalogue_change_commit(change, err);
    secret_forget(document);
    secret_forget(change->ops[0].value);
    if (!committed)
        return false;
    catalogue_state_stamp(state, (struct rid){0}, change->part.stamp.lsn,
                          change->part.stamp.wall_ms);
    *ret_account = catalogue_state_account(catalogue_state_ref(state));
    catalogue_change_publish(change, address, TAKE(owned));
    return true;
}

static void account_give_keys(struct catalogue_state *state, const struct account_keys *keys)
{
    catalogue_state_account(state)->has_keys = true;
    catalogue_state_account(state)->keys = *keys;
}

bool catalogue_account_create_keyed(struct catalogue *catalogue, struct slice id,
                                    struct slice properties, const struct account_keys *keys,
                                    struct account **ret_account, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_state *state;
    uint32_t number;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_id_check(&catalogue->limits, id, err) ||
        !catalogue_name_free(change.root, "account", id, err))
        return false;
    if (change.root->child_count >= catalogue->limits.accounts_max)
        return error_set(err, ERROR_LIMIT_REACHED, "there are %u accounts, as many as may be",
                         catalogue->limits.accounts_max);
    if (!catalogue_number_take(&catalogue->head.next_account, UINT32_MAX - 1, "accounts", &number,
                               err))
        return false;
    state = catalogue_state_new(STATE_ACCOUNT, id, number);
    catalogue_state_account(state)->properties = arena_copy(state->arena, properties);
    if (keys)
        account_give_keys(state, keys);
    return account_put(&change, state, ret_account, err);
}

bool catalogue_account_create(struct catalogue *catalogue, struct slice id, struct slice properties,
                              struct account **ret_account, struct error *err)
{
    return catalogue_account_create_keyed(catalogue, id, properties, NULL, ret_account, err);
}

bool catalogue_account_set_keys(struct catalogue *catalogue, struct slice id,
                                const struct account_keys *keys, struct account **ret_account,
                                struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;
    struct catalogue_state *state;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_account(change.root, id, false, &found, err))
        return false;
    state = catalogue_state_copy(&found.account->state);
    account_give_keys(state, keys);
    return account_put(&change, state, ret_account, err);
}

bool catalogue_account_rotate(struct catalogue *catalogue, struct slice id, enum account_key which,
                              struct account **ret_account, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;
    struct catalogue_state *state;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_account(change.root, id, false, &found, err))
        return false;
    if (!found.account->has_keys)
        return error_set(err, ERROR_BAD_REQUEST,
                         "account \"%.*s\" has no keys of its own: the default account's open it",
                         SLICE_ARG(found.account->state.info.id));
    state = catalogue_state_copy(&found.account->state);
    account_keys_rotate(&catalogue_state_account(state)->keys, which);
    return account_put(&change, state, ret_account, err);
}

bool catalogue_account_replace(struct catalogue *catalogue, struct slice id,
                               struct slice properties, struct account **ret_account,
                               struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;
    struct catalogue_state *state;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_account(change.root, id, false, &found, err))
        return false;
    state = catalogue_state_copy(&found.account->state);
    catalogue_state_account(state)->properties = arena_copy(state->arena, properties);
    return account_put(&change, state, ret_account, err);
}

bool catalogue_account_drop(struct catalogue *catalogue, struct slice id, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_account(change.root, id, false, &found, err))
        return false;
    return catalogue_change_drop(
        &change,
        (struct catalogue_record_address){.kind = RECORD_ACCOUNT,
                                          .account = found.account->state.info.number},
        err);
}

bool catalogue_account_open(struct catalogue *catalogue, struct slice id,
                            struct account **ret_account, struct error *err)
{
    CLEANUP(catalogue_look_end) struct catalogue_look look = catalogue_look_begin(catalogue);
    struct catalogue_found found;

    if (!catalogue_find_account(look.root, id, false, &found, err))
        return false;
    *ret_account = account_ref(found.account);
    return true;
}

struct account **catalogue_accounts(struct catalogue *catalogue, struct arena *arena,
                                    size_t *ret_count)
{
    CLEANUP(catalogue_state_unref) struct catalogue_state *root = catalogue_root(catalogue);
    struct account **accounts = ARENA_ARRAY(arena, struct account *, root->child_count);

    for (size_t i = 0; i < root->child_count; i++)
        accounts[i] = account_ref(catalogue_state_account(root->children[i]));
    *ret_count = root->child_count;
    return accounts;
}

/* --- Databases ------------------------------------------------------------------------------- */

bool account_room(const struct definition_limits *limits, const struct account *account,
                  struct error *err)
{
    size_t count = account->state.child_count;

    for (size_t i = 0; i < account->state.child_count; i++)
        count += account->state.children[i]->child_count;
    if (count >= limits->account_resources_max)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "account \"%.*s\" has %zu databases and containers, as many as may be",
                         SLICE_ARG(account->state.info.id), count);
    return true;
}

static uint64_t container_bytes(const struct container *container)
{
    uint64_t bytes = definition_fields(container->definition)->document.len;

    for (uint32_t i = 0; i < container->before_count; i++)
        bytes += definition_fields(container->before[i])->document.len;
    return bytes;
}

static uint64_t account_bytes(const struct account *account)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < account->state.child_count; i++) {
        const struct database *database = catalogue_state_database(account->state.children[i]);

        bytes += children_bytes(database->users) + children_bytes(database->keys) +
                 database->permission_bytes;
        for (size_t j = 0; j < database->state.child_count; j++)
            bytes += container_bytes(catalogue_state_container(database->state.children[j]));
    }
    return bytes;
}

bool account_bytes_room(const struct definition_limits *limits, const struct account *account,
                        size_t before, size_t after, struct error *err)
{
    if (after <= before ||
        account_bytes(account) - before + after <= limits->account_metadata_bytes_max)
        return true;
    return error_set(err, ERROR_LIMIT_REACHED,
                     "the containers, users, permissions and client encryption keys of account "
                     "\"%.*s\" would have more than %" PRIu64
                     " bytes together, as many as may be (account.metadata_bytes_max)",
                     SLICE_ARG(account->state.info.id), limits->account_metadata_bytes_max);
}

static bool database_prepare(struct catalogue_change *change, struct slice account, struct slice id,
                             const struct offer_request *request,
                             struct catalogue_state **ret_state, struct error *err)
{
    struct catalogue *catalogue = change->catalogue;
    struct offer_subject subject = {.shared = true};
    struct database *database;
    struct catalogue_found found;
    struct offer offer;
    struct catalogue_state *state;
    uint32_t number;
    bool any;

    if (!catalogue_id_check(&catalogue->limits, id, err) ||
        !catalogue_find_account(change->root, account, true, &found, err) ||
        !catalogue_name_free(&found.account->state, "database", id, err) ||
        !account_room(&catalogue->limits, found.account, err) ||
        !offer_new(&catalogue->limits, &subject, request, &offer, &any, err) ||
        !catalogue_number_take(&catalogue->head.next_database, UINT32_MAX - 1, "databases", &number,
                               err))
        return false;
    state = catalogue_state_new(STATE_DATABASE, id, number);
    database = catalogue_state_database(state);
    database->account = found.account->state.info.number;
    database->has_offer = any;
    if (any) {
        database->offer = offer;
        database->offer.database = number;
        database->offer.number = catalogue_offer_number_take(&catalogue->head, found.account);
    }
    *ret_state = state;
    return true;
}

bool catalogue_database_create(struct catalogue *catalogue, struct slice account, struct slice id,
                               const struct offer_request *request, struct database **ret_database,
                               struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    CLEANUP(catalogue_state_unref) struct catalogue_state *state = NULL;
    struct catalogue_record_address address = {.kind = RECORD_DATABASE};
    struct database *database;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !database_prepare(&change, account, id, request, &state, err))
        return false;
    database = catalogue_state_database(state);
    address.account = database->account;
    address.database = state->info.number;
    catalogue_change_put_record(&change, address,
                                catalogue_record_database_write(database, change.arena));
    if (database->has_offer)
        catalogue_change_put_offer(&change, address, &database->offer);
    if (!catalogue_change_commit(&change, err))
        return false;
    catalogue_state_stamp(state, rid_of_database(state->info.number), change.part.stamp.lsn,
                          change.part.stamp.wall_ms);
    catalogue_offer_stamp(&database->offer, change.part.stamp.lsn, change.part.stamp.wall_ms);
    *ret_database = database_ref(database);
    catalogue_change_publish(&change, address, TAKE(state));
    return true;
}

bool catalogue_database_drop(struct catalogue *catalogue, struct slice account, struct slice id,
                             struct slice if_match, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_found found;

    if (!catalogue_change_begin(catalogue, &change, err) ||
        !catalogue_find_database(change.root, account, id, false, &found, err) ||
        !catalogue_etag_check(found.database->state.info.etag, if_match, err))
        return false;
    catalogue_change_tell_database_dropped(&change, found.database);
    return catalogue_change_drop(
        &change,
        (struct catalogue_record_address){.kind = RECORD_DATABASE,
                                          .account = found.account->state.info.number,
                                          .database = found.database->state.info.number},
        err);
}

bool catalogue_database_open(struct catalogue *catalogue, struct slice account, struct slice id,
                             struct database **ret_database, struct error *err)
{
    CLEANUP(catalogue_look_end) struct catalogue_look look = catalogue_look_begin(catalogue);
    struct catalogue_found found;

    if (!catalogue_find_database(look.root, account, id, false, &found, err))
        return false;
    *ret_database = database_ref(found.database);
    return true;
}
