/* Children of the catalogue: made, replaced, dropped, opened; one way for all kinds.
 *
 * A child has no partitions, so dropping one deletes its record in the same commit; only a user
 * that has permissions gets a tombstone, for there may be thousands. */
#include "catalogue/catalogue_private.h"
#include "document/bson.h"

#include <inttypes.h>

/* Where a child is, found in one state of the catalogue. Everything is borrowed from that. */
struct nest {
    enum child_kind kind;
    struct catalogue_found found; /* container only of scripts */
    struct catalogue_child *user; /* of permissions */
    const struct catalogue_children *children;
};

static bool nest_find(struct catalogue_state *root, const struct child_place *place,
                      struct nest *ret_nest, struct error *err)
{
    struct nest nest = {.kind = place->kind};

    if (place->kind >= CHILD_PROCEDURE) {
        if (!catalogue_find_container(root, place->account, place->database, place->parent, true,
                                      &nest.found, err))
            return false;
        nest.children = container_children(nest.found.container, place->kind);
        *ret_nest = nest;
        return true;
    }
    if (!catalogue_find_database(root, place->account, place->database, true, &nest.found, err))
        return false;
    if (place->kind == CHILD_PERMISSION) {
        nest.user = catalogue_children_find(nest.found.database->users, place->parent);
        if (!nest.user)
            return catalogue_not_found(err, true, child_kind_name(CHILD_USER), place->parent);
        nest.children = nest.user->permissions;
    } else {
        nest.children = database_children(nest.found.database, place->kind);
    }
    *ret_nest = nest;
    return true;
}

static bool child_find(const struct nest *nest, struct slice id, struct catalogue_child **ret_child,
                       struct error *err)
{
    *ret_child = catalogue_children_find(nest->children, id);
    return *ret_child || catalogue_not_found(err, false, child_kind_name(nest->kind), id);
}

static uint32_t owner_number(const struct nest *nest)
{
    return nest->found.container ? nest->found.container->state.info.number
           : nest->user          ? nest->user->info.number
                                 : 0;
}

static struct catalogue_record_address address_of(const struct nest *nest, uint32_t number)
{
    return (struct catalogue_record_address){
        .kind = RECORD_CHILD,
        .account = nest->found.account->state.info.number,
        .database = nest->found.database->state.info.number,
        .container = nest->found.container ? nest->found.container->state.info.number : 0,
        .user = nest->user ? nest->user->info.number : 0,
        .child_kind = nest->kind,
        .child = number};
}

/* --- Publishing ------------------------------------------------------------------------------ */

/* Puts another list in place of the one that a state, not yet published, has. */
static void list_set(struct catalogue_children **list, struct catalogue_children *children)
{
    catalogue_children_unref(*list);
    *list = children;
}

static void users_set(struct database *database, struct catalogue_children *users,
                      const struct catalogue_child *before, const struct catalogue_child *after)
{
    list_set(&database->users, users);
    if (before) {
        database->permission_count -= catalogue_children_count(before->permissions);
        database->permission_bytes -= children_bytes(before->permissions);
    }
    if (after) {
        database->permission_count += catalogue_children_count(after->permissions);
        database->permission_bytes += children_bytes(after->permissions);
    }
}

/* The published state with another list in the nest; takes the list over. before and after are
 * what became of one child, NULL where there is none. */
static void nest_publish(struct catalogue_change *change, const struct nest *nest,
                         struct catalogue_children *children, const struct catalogue_child *before,
                         const struct catalogue_child *after)
{
    struct catalogue_record_address address = address_of(nest, 0);
    struct database *database;

    if (nest->found.container) {
        struct catalogue_state *state = catalogue_state_copy(&nest->found.container->state);

        list_set(&catalogue_state_container(state)->scripts[nest->kind - CHILD_PROCEDURE],
                 children);
        address.kind = RECORD_CONTAINER;
        catalogue_change_publish(change, address, state);
        return;
    }
    database = catalogue_state_database(catalogue_state_copy(&nest->found.database->state));
    if (nest->user) {
        CLEANUP(catalogue_child_unref)
        struct catalogue_child *user = child_with_permissions(nest->user, children);

        users_set(database, children_with(database->users, user), nest->user, user);
    } else if (nest->kind == CHILD_USER) {
        users_set(database, children, before, after);
    } else {
        list_set(&database->keys, children);
    }
    address.kind = RECORD_DATABASE;
    catalogue_change_publish(change, address, &database->state);
}

/* --- Limits ---------------------------------------------------------------------------------- */

/* All children in an account, from what its databases and containers count: some hundred sums. */
static size_t account_children(const struct account *account)
{
    size_t count = 0;

    for (size_t i = 0; i < account->state.child_count; i++) {
        const struct database *database = catalogue_state_database(account->state.children[i]);

        count += catalogue_children_count(database->users) +
                 catalogue_children_count(database->keys) + database->permission_count;
        for (size_t j = 0; j < database->state.child_count; j++)
            for (size_t k = 0; k < CHILD_SCRIPT_KINDS; k++)
                count += catalogue_children_count(
                    catalogue_state_container(database->state.children[j])->scripts[k]);
    }
    return count;
}

static bool room_check(const struct definition_limits *limits, const struct nest *nest,
                       struct error *err)
{
    const uint32_t max[CHILD_KINDS] = {
        [CHILD_USER] = limits->users_max,
        [CHILD_ENCRYPTION_KEY] = limits->encryption_keys_max,
        [CHILD_PERMISSION] = limits->permissions_max,
        [CHILD_PROCEDURE] = limits->procedures_max,
        [CHILD_TRIGGER] = limits->triggers_max,
        [CHILD_FUNCTION] = limits->functions_max,
    };

    if (catalogue_children_count(nest->children) >= max[nest->kind])
        return error_set(err, ERROR_LIMIT_REACHED,
                         "there are %u resources of kind %s in one parent, as many as may be",
                         max[nest->kind], child_kind_name(nest->kind));
    if (account_children(nest->found.account) >= limits->account_children_max)
        return error_set(err, ERROR_LIMIT_REACHED,
                         "account \"%.*s\" has %u users, permissions, client encryption keys and "
                         "scripts, as many as may be",
                         SLICE_ARG(nest->found.account->state.info.id),
                         limits->account_children_max);
    return true;
}

static uint64_t account_script_bytes(const struct account *account)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < account->state.child_count; i++) {
        const struct catalogue_state *database = account->state.children[i];

        for (size_t j = 0; j < database->child_count; j++)
            for (size_t k = 0; k < CHILD_SCRIPT_KINDS; k++)
                bytes +=
                    children_bytes(catalogue_state_container(database->children[j])->scripts[k]);
    }
    return bytes;
}

/* Where a limit was lowered below what is there, scripts may still shrink. */
static bool bytes_check(const struct definition_limits *limits, const struct nest *nest,
                        const struct catalogue_child *before, struct slice body, struct error *err)
{
    size_t less = before ? child_body_len(before) : 0;

    if (nest->kind < CHILD_PROCEDURE)
        return account_bytes_room(limits, nest->found.account, less, body.len, err);
    if (body.len <= less || account_script_bytes(nest->found.account) - less + body.len <=
                                limits->account_script_bytes_max)
        return true;
    return error_set(err, ERROR_LIMIT_REACHED,
                     "the scripts of account \"%.*s\" would have more than %" PRIu64
                     " bytes together, as many as may be (account.script_bytes_max)",
                     SLICE_ARG(nest->found.account->state.info.id),
                     limits->account_script_bytes_max);
}

/* Users and encryption keys have the fewer bits in a rid, and numbers of their own. */
static bool child_number_take(struct catalogue_head *head, enum child_kind kind,
                              uint32_t *ret_number, struct error *err)
{
    if (kind == CHILD_USER || kind == CHILD_ENCRYPTION_KEY)
        return catalogue_number_take(&head->next_user, (1u << RID_OWNER_BITS) - 1,
                                     "users and client encryption keys", ret_number, err);
    return catalogue_number_take(&head->next_child, UINT32_MAX - 1, "permissions and scripts",
                                 ret_number, err);
}

/* --- Changes --------------------------------------------------------------------------------- */

/* Commits and publishes a child in place of the one before it, if any. */
static bool child_put(struct catalogue_change *change, const struct nest *nest, struct slice body,
                      const struct catalogue_child *before, uint32_t number,
                      struct catalogue_child **ret_child, struct error *err)
{
    const struct commit_stamp *stamp = &change->part.stamp;
    CLEANUP(catalogue_child_unref) struct catalogue_child *kept = NULL;
    CLEANUP(catalogue_child_unref)
    struct catalogue_child *child =
        child_new(nest->kind, nest->found.account->state.info.number,
                  nest->found.database->state.info.number, owner_number(nest), body);

    if (before)
        child->permissions = catalogue_children_ref(before->permissions);
    catalogue_change_put_record(change, address_of(nest, number),
                                catalogue_record_child_write(child, change->arena));
    if (!catalogue_change_commit(change, err))
        return false;
    child_stamp(child, number, stamp->lsn, stamp->wall_ms);
    kept = child_resident(catalogue_child_ref(child));
    nest_publish(change, nest, children_with(nest->children, kept), before, kept);
    *ret_child = TAKE(child);
    return true;
}

static bool child_create(struct catalogue_change *change, const struct nest *nest,
                         struct slice body, struct catalogue_child **ret_child, struct error *err)
{
    struct catalogue *catalogue = change->catalogue;
    uint32_t number;

    return room_check(&catalogue->limits, nest, err) &&
           bytes_check(&catalogue->limits, nest, NULL, body, err) &&
           child_number_take(&catalogue->head, nest->kind, &number, err) &&
           child_put(change, nest, body, NULL, number, ret_child, err);
}

static bool child_replace(struct catalogue_change *change, const struct nest *nest,
                          const struct catalogue_child *before, struct slice body,
                          struct slice if_match, struct catalogue_child **ret_child,
                          struct error *err)
{
    return catalogue_etag_check(before->info.etag, if_match, err) &&
           bytes_check(&change->catalogue->limits, nest, before, body, err) &&
           child_put(change, nest, body, before, before->info.number, ret_child, err);
}

/* What every change begins with, outside in. */
static bool change_begin_child(struct catalogue *catalogue, const struct child_place *place,
                               struct catalogue_change *change, struct nest *ret_nest,
                               struct error *err)
{
    return catalogue_change_begin(catalogue, change, err) &&
           nest_find(change->root, place, ret_nest, err);
}

bool catalogue_child_create(struct catalogue *catalogue, const struct child_place *place,
                            struct slice body, struct catalogue_child **ret_child,
                            struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct child_body checked;
    struct nest nest = {0};

    if (!child_body_check(&catalogue->limits, place->kind, body, arena, &checked, err))
        return false;

    CLEANUP(catalogue_change_end) struct catalogue_change change;

    if (!change_begin_child(catalogue, place, &change, &nest, err))
        return false;
    if (children_find_id(nest.children, checked.id))
        return catalogue_name_taken(err, child_kind_name(place->kind), checked.id);
    return child_create(&change, &nest, checked.bytes, ret_child, err);
}

bool catalogue_child_upsert(struct catalogue *catalogue, const struct child_place *place,
                            struct slice body, struct slice if_match,
                            struct catalogue_child **ret_child, bool *ret_created,
                            struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct catalogue_child *before;
    struct child_body checked;
    struct nest nest = {0};

    if (!child_body_check(&catalogue->limits, place->kind, body, arena, &checked, err))
        return false;

    CLEANUP(catalogue_change_end) struct catalogue_change change;

    if (!change_begin_child(catalogue, place, &change, &nest, err))
        return false;
    before = children_find_id(nest.children, checked.id);
    if (before ? !child_replace(&change, &nest, before, checked.bytes, if_match, ret_child, err)
               : !child_create(&change, &nest, checked.bytes, ret_child, err))
        return false;
    *ret_created = !before;
    return true;
}

/* Users and permissions can be renamed, to a name that is free. */
static bool rename_check(const struct nest *nest, const struct catalogue_child *before,
                         struct slice id, struct error *err)
{
    if (slice_equal(id, before->info.id))
        return true;
    if (nest->kind != CHILD_USER && nest->kind != CHILD_PERMISSION)
        return error_set(err, ERROR_BAD_REQUEST, "the id of a %s cannot be changed",
                         child_kind_name(nest->kind));
    return !children_find_id(nest->children, id) ||
           catalogue_name_taken(err, child_kind_name(nest->kind), id);
}

bool catalogue_child_replace(struct catalogue *catalogue, const struct child_place *place,
                             struct slice id, struct slice body, struct slice if_match,
                             struct catalogue_child **ret_child, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct catalogue_child *before;
    struct child_body checked;
    struct nest nest = {0};

    if (!child_body_check(&catalogue->limits, place->kind, body, arena, &checked, err))
        return false;

    CLEANUP(catalogue_change_end) struct catalogue_change change;

    return change_begin_child(catalogue, place, &change, &nest, err) &&
           child_find(&nest, id, &before, err) && rename_check(&nest, before, checked.id, err) &&
           child_replace(&change, &nest, before, checked.bytes, if_match, ret_child, err);
}

bool catalogue_child_drop(struct catalogue *catalogue, const struct child_place *place,
                          struct slice id, struct slice if_match, struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    struct catalogue_record_address address;
    struct catalogue_child *before;
    struct slice scope = SLICE_NONE;
    struct nest nest = {0};

    if (!change_begin_child(catalogue, place, &change, &nest, err) ||
        !child_find(&nest, id, &before, err) ||
        !catalogue_etag_check(before->info.etag, if_match, err))
        return false;
    address = address_of(&nest, before->info.number);
    if (catalogue_children_count(before->permissions)) {
        if (!catalogue_change_bury(&change, address, &scope, err))
            return false;
    } else {
        catalogue_change_delete_record(&change, address);
        if (!catalogue_change_commit(&change, err))
            return false;
    }
    nest_publish(&change, &nest, children_without(nest.children, before), before, NULL);
    if (scope.data)
        catalogue_purge_queue(catalogue, scope);
    return true;
}

/* --- Texts of scripts ------------------------------------------------------------------------ */

static bool child_read(struct catalogue *catalogue, const struct catalogue_child *child,
                       struct catalogue_child **ret_whole, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice key =
        catalogue_record_key((struct catalogue_record_address){.kind = RECORD_CHILD,
                                                               .account = child->account,
                                                               .database = child->database,
                                                               .container = child->owner,
                                                               .child_kind = child->kind,
                                                               .child = child->info.number},
                             arena);
    struct engine_value value;
    struct catalogue_record record;

    if (!engine_get(catalogue->engine, NULL, CATALOGUE_PARTITION, key, ENGINE_READ_ANY, arena,
                    &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return catalogue_not_found(err, false, child_kind_name(child->kind), child->info.id);
    return catalogue_record_read(key, value.bytes, &record, err) &&
           catalogue_record_child_read(&record, ret_whole, err);
}

bool catalogue_child_whole(struct catalogue *catalogue, struct catalogue_child *child,
                           struct catalogue_child **ret_whole, struct error *err)
{
    struct catalogue_child *whole;

    if (!child->whole_len) {
        *ret_whole = catalogue_child_ref(child);
        return true;
    }
    whole = child_cache_find(catalogue->scripts, child->info.number, child->info.lsn);
    if (!whole) {
        if (!child_read(catalogue, child, &whole, err))
            return false;
        child_cache_put(catalogue->scripts, whole);
    }
    *ret_whole = whole;
    return true;
}

struct slice catalogue_child_trait(const struct catalogue_child *child, struct slice name)
{
    struct document_value value;

    if (!document_find(child->body, name, &value) || value.type != DOCUMENT_STRING)
        return SLICE_NONE;
    return value.text;
}

/* --- Opening --------------------------------------------------------------------------------- */

bool catalogue_child_open(struct catalogue *catalogue, const struct child_place *place,
                          struct slice id, struct catalogue_child **ret_child, struct error *err)
{
    CLEANUP(catalogue_look_end) struct catalogue_look look = catalogue_look_begin(catalogue);
    struct catalogue_child *child;
    struct nest nest = {0};

    if (!nest_find(look.root, place, &nest, err) || !child_find(&nest, id, &child, err))
        return false;
    *ret_child = catalogue_child_ref(child);
    return true;
}

bool catalogue_children_open(struct catalogue *catalogue, const struct child_place *place,
                             struct catalogue_children **ret_children, struct error *err)
{
    CLEANUP(catalogue_look_end) struct catalogue_look look = catalogue_look_begin(catalogue);
    struct nest nest = {0};

    if (!nest_find(look.root, place, &nest, err))
        return false;
    *ret_children = catalogue_children_ref((struct catalogue_children *)nest.children);
    return true;
}
