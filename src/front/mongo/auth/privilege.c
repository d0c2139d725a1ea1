#include "front/mongo/auth/privilege.h"

#include "front/mongo/error.h"

static const char *const names[MONGO_ACTIONS] = {
#define MONGO_ACTION(name, text) [MONGO_ACTION_##name] = text,
#include "front/mongo/auth/actions.def"
#undef MONGO_ACTION
};

static_assert(MONGO_ACTIONS <= 128, "a set of actions has 128 places");

/* --- Actions --------------------------------------------------------------------------------- */

const char *mongo_action_name(enum mongo_action action)
{
    return names[action];
}

bool mongo_action_find(struct slice name, enum mongo_action *ret_action)
{
    for (size_t i = 0; i < MONGO_ACTIONS; i++)
        if (slice_equal(name, slice_of_text(names[i]))) {
            *ret_action = (enum mongo_action)i;
            return true;
        }
    return false;
}

void mongo_actions_add(struct mongo_actions *actions, enum mongo_action action)
{
    actions->bits[action / 64] |= (uint64_t)1 << action % 64;
}

static bool has(const struct mongo_actions *actions, enum mongo_action action)
{
    return actions->bits[action / 64] >> action % 64 & 1;
}

bool mongo_actions_have(const struct mongo_actions *actions, enum mongo_action action)
{
    return has(actions, action) || has(actions, MONGO_ACTION_ANY);
}

bool mongo_actions_cover(const struct mongo_actions *all, const struct mongo_actions *some)
{
    if (has(all, MONGO_ACTION_ANY))
        return true;
    return !(some->bits[0] & ~all->bits[0]) && !(some->bits[1] & ~all->bits[1]);
}

/* --- Privileges ------------------------------------------------------------------------------ */

static bool is_same(const struct mongo_resource *a, const struct mongo_resource *b)
{
    return a->kind == b->kind && slice_equal(a->database, b->database) &&
           slice_equal(a->collection, b->collection);
}

void mongo_privileges_add(struct mongo_privileges *privileges,
                          const struct mongo_privilege *privilege)
{
    for (size_t i = 0; i < privileges->count; i++) {
        struct mongo_privilege *one = &privileges->list[i];

        if (is_same(&one->resource, &privilege->resource)) {
            one->actions.bits[0] |= privilege->actions.bits[0];
            one->actions.bits[1] |= privilege->actions.bits[1];
            return;
        }
    }
    if (privileges->count == privileges->capacity) {
        size_t capacity = privileges->capacity ? 2 * privileges->capacity : 16;
        struct mongo_privilege *list =
            ARENA_ARRAY(privileges->arena, struct mongo_privilege, capacity);

        if (privileges->count)
            memcpy(list, privileges->list, privileges->count * sizeof *list);
        privileges->list = list;
        privileges->capacity = capacity;
    }
    privileges->list[privileges->count++] = *privilege;
}

void mongo_privileges_remove(struct mongo_privileges *privileges,
                             const struct mongo_privilege *privilege)
{
    for (size_t i = 0; i < privileges->count; i++) {
        struct mongo_privilege *one = &privileges->list[i];

        if (!is_same(&one->resource, &privilege->resource))
            continue;
        one->actions.bits[0] &= ~privilege->actions.bits[0];
        one->actions.bits[1] &= ~privilege->actions.bits[1];
        if (!one->actions.bits[0] && !one->actions.bits[1])
            *one = privileges->list[--privileges->count];
        return;
    }
}

static bool covers(const struct mongo_resource *wide, const struct mongo_resource *narrow)
{
    if (wide->kind == MONGO_RESOURCE_ANY)
        return true;
    if (wide->kind != narrow->kind)
        return false;
    if (wide->kind == MONGO_RESOURCE_CLUSTER)
        return true;
    return (!wide->database.len || slice_equal(wide->database, narrow->database)) &&
           (!wide->collection.len || slice_equal(wide->collection, narrow->collection));
}

bool mongo_privileges_allow(const struct mongo_privileges *privileges, enum mongo_action action,
                            const struct mongo_resource *resource)
{
    for (size_t i = 0; i < privileges->count; i++)
        if (mongo_actions_have(&privileges->list[i].actions, action) &&
            covers(&privileges->list[i].resource, resource))
            return true;
    return false;
}

bool mongo_privileges_touch(const struct mongo_privileges *privileges, struct slice database)
{
    for (size_t i = 0; i < privileges->count; i++) {
        const struct mongo_resource *resource = &privileges->list[i].resource;

        if (resource->kind == MONGO_RESOURCE_ANY ||
            (resource->kind == MONGO_RESOURCE_NAMESPACE &&
             mongo_actions_have(&privileges->list[i].actions, MONGO_ACTION_FIND) &&
             (!resource->database.len || slice_equal(resource->database, database))))
            return true;
    }
    return false;
}

static void privilege_append(const struct mongo_privilege *privilege, struct slice name,
                             struct buf *out)
{
    size_t whole = document_append_object_begin(out, name), part;
    char text[DOCUMENT_INDEX_SIZE];
    uint32_t count = 0;

    part = document_append_object_begin(out, SLICE("resource"));
    if (privilege->resource.kind == MONGO_RESOURCE_NAMESPACE) {
        document_append_string(out, SLICE("db"), privilege->resource.database);
        document_append_string(out, SLICE("collection"), privilege->resource.collection);
    } else {
        document_append_bool(out,
                             privilege->resource.kind == MONGO_RESOURCE_CLUSTER
                                 ? SLICE("cluster")
                                 : SLICE("anyResource"),
                             true);
    }
    document_end(out, part);
    part = document_append_array_begin(out, SLICE("actions"));
    for (size_t i = 0; i < MONGO_ACTIONS; i++)
        if (has(&privilege->actions, (enum mongo_action)i))
            document_append_string(out, document_index_key(count++, text), slice_of_text(names[i]));
    document_end(out, part);
    document_end(out, whole);
}

void mongo_privileges_append(const struct mongo_privileges *privileges, struct slice name,
                             struct buf *out)
{
    size_t list = document_append_array_begin(out, name);
    char text[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < privileges->count; i++)
        privilege_append(&privileges->list[i], document_index_key((uint32_t)i, text), out);
    document_end(out, list);
}

/* --- Reading them ---------------------------------------------------------------------------- */

static bool is_true(const struct document_value *value)
{
    return value->type == DOCUMENT_BOOL && value->boolean;
}

static bool resource_read(const struct document_value *value, struct arena *arena,
                          struct mongo_resource *ret_resource, struct error *err)
{
    struct document_value database, collection, flag;

    if (value->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "resource must be an object");
    if (document_find(value->document, SLICE("cluster"), &flag) && is_true(&flag)) {
        *ret_resource = (struct mongo_resource){.kind = MONGO_RESOURCE_CLUSTER};
        return true;
    }
    if (document_find(value->document, SLICE("anyResource"), &flag) && is_true(&flag)) {
        *ret_resource = (struct mongo_resource){.kind = MONGO_RESOURCE_ANY};
        return true;
    }
    if (!document_find(value->document, SLICE("db"), &database) ||
        database.type != DOCUMENT_STRING ||
        !document_find(value->document, SLICE("collection"), &collection) ||
        collection.type != DOCUMENT_STRING || document_count(value->document) != 2)
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "resource must have the fields db and collection, or cluster");
    *ret_resource = (struct mongo_resource){.kind = MONGO_RESOURCE_NAMESPACE,
                                            .database = arena_copy(arena, database.text),
                                            .collection = arena_copy(arena, collection.text)};
    return true;
}

static bool actions_read(const struct document_value *value, struct mongo_actions *ret_actions,
                         struct error *err)
{
    struct document_iter iter;

    *ret_actions = (struct mongo_actions){0};
    if (value->type != DOCUMENT_ARRAY || !document_count(value->document))
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "actions must be an array that is not empty");
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        enum mongo_action action;

        if (iter.value.type != DOCUMENT_STRING || !mongo_action_find(iter.value.text, &action))
            return mongo_error_set(
                err, MONGO_FAILED_TO_PARSE, "Unrecognized action privilege %.*s",
                iter.value.type == DOCUMENT_STRING ? (int)MIN(iter.value.text.len, (size_t)64) : 0,
                iter.value.type == DOCUMENT_STRING ? (const char *)iter.value.text.data : "");
        mongo_actions_add(ret_actions, action);
    }
    return true;
}

bool mongo_privileges_read(struct slice array, struct mongo_privileges *privileges,
                           struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        struct document_value resource = document_undefined(), actions = document_undefined();
        struct mongo_privilege privilege;

        if (iter.value.type != DOCUMENT_OBJECT)
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE, "privileges must be objects");
        (void)document_find(iter.value.document, SLICE("resource"), &resource);
        (void)document_find(iter.value.document, SLICE("actions"), &actions);
        if (!resource_read(&resource, privileges->arena, &privilege.resource, err) ||
            !actions_read(&actions, &privilege.actions, err))
            return false;
        mongo_privileges_add(privileges, &privilege);
    }
    return true;
}

/* --- Built-in roles -------------------------------------------------------------------------- */

#define A(name) MONGO_ACTION_##name

static const uint8_t reads[] = {A(FIND),         A(CHANGE_STREAM),    A(COLL_STATS),
                                A(DB_STATS),     A(DB_HASH),          A(KILL_CURSORS),
                                A(LIST_INDEXES), A(LIST_COLLECTIONS), A(PLAN_CACHE_READ)};
static const uint8_t writes[] = {
    A(INSERT),           A(REMOVE),       A(UPDATE),     A(CREATE_COLLECTION),
    A(DROP_COLLECTION),  A(CREATE_INDEX), A(DROP_INDEX), A(CONVERT_TO_CAPPED),
    A(RENAME_COLLECTION)};
static const uint8_t administers[] = {
    A(BYPASS_VALIDATION), A(COLL_MOD),          A(COLL_STATS),      A(COMPACT),
    A(CONVERT_TO_CAPPED), A(CREATE_COLLECTION), A(CREATE_INDEX),    A(DB_STATS),
    A(DB_HASH),           A(DROP_COLLECTION),   A(DROP_DATABASE),   A(DROP_INDEX),
    A(ENABLE_PROFILER),   A(INDEX_STATS),       A(KILL_CURSORS),    A(LIST_COLLECTIONS),
    A(LIST_INDEXES),      A(PLAN_CACHE_FILTER), A(PLAN_CACHE_READ), A(PLAN_CACHE_WRITE),
    A(RE_INDEX),          A(RENAME_COLLECTION), A(STORAGE_DETAILS), A(VALIDATE)};
static const uint8_t peoples[] = {A(CREATE_USER),     A(CREATE_ROLE), A(DROP_USER),
                                  A(DROP_ROLE),       A(GRANT_ROLE),  A(REVOKE_ROLE),
                                  A(CHANGE_PASSWORD), A(VIEW_USER),   A(CHANGE_CUSTOM_DATA),
                                  A(SET_RESTRICTION), A(VIEW_ROLE)};
static const uint8_t lists_databases[] = {A(LIST_DATABASES)};
static const uint8_t people_cluster[] = {A(LIST_DATABASES), A(INVALIDATE_USER_CACHE),
                                         A(AUTH_SCHEMA_UPGRADE)};
static const uint8_t monitor_cluster[] = {A(CONN_POOL_STATS),
                                          A(GET_CMD_LINE_OPTS),
                                          A(GET_DEFAULT_CONCERN),
                                          A(GET_LOG),
                                          A(GET_PARAMETER),
                                          A(GET_SHARD_MAP),
                                          A(HOST_INFO),
                                          A(INPROG),
                                          A(LIST_DATABASES),
                                          A(LIST_SAMPLED),
                                          A(LIST_SESSIONS),
                                          A(LIST_SHARDS),
                                          A(NETSTAT),
                                          A(QUERY_STATS),
                                          A(REPL_SET_GET_CONFIG),
                                          A(REPL_SET_GET_STATUS),
                                          A(SERVER_STATUS),
                                          A(SHARDING_STATE),
                                          A(TOP)};
static const uint8_t monitor_any[] = {A(COLL_STATS), A(DB_STATS), A(GET_SHARD_VERSION),
                                      A(INDEX_STATS), A(USE_UUID)};
static const uint8_t manager_cluster[] = {
    A(ADD_SHARD),           A(APPEND_OPLOG_NOTE),   A(APPLICATION_MESSAGE),   A(CLEANUP_ORPHANED),
    A(FLUSH_ROUTER),        A(GET_DEFAULT_CONCERN), A(LIST_SESSIONS),         A(LIST_SHARDS),
    A(REMOVE_SHARD),        A(REPL_SET_CONFIGURE),  A(REPL_SET_GET_CONFIG),   A(SET_COMPATIBILITY),
    A(REPL_SET_GET_STATUS), A(SET_DEFAULT_CONCERN), A(REPL_SET_STATE_CHANGE), A(SHARDING_STATE),
    A(CHECK_METADATA)};
static const uint8_t manager_any[] = {A(ANALYZE_SHARD_KEY), A(CLEAR_JUMBO), A(CONFIGURE_ANALYZER),
                                      A(ENABLE_SHARDING),   A(MOVE_CHUNK),  A(RESHARD),
                                      A(REFINE_SHARD_KEY),  A(SPLIT_CHUNK), A(SPLIT_VECTOR)};
static const uint8_t host_cluster[] = {A(APPLICATION_MESSAGE),
                                       A(CONN_POOL_SYNC),
                                       A(FLUSH_ROUTER),
                                       A(FSYNC),
                                       A(INVALIDATE_USER_CACHE),
                                       A(KILL_ANY_CURSOR),
                                       A(KILL_ANY_SESSION),
                                       A(KILL_OP),
                                       A(LOG_ROTATE),
                                       A(SET_PARAMETER),
                                       A(SHUTDOWN),
                                       A(TOUCH),
                                       A(UNLOCK)};
static const uint8_t host_any[] = {A(KILL_CURSORS)};
static const uint8_t drops_databases[] = {A(DROP_DATABASE)};
static const uint8_t backup_any[] = {A(FIND), A(CHANGE_STREAM), A(COLL_STATS), A(LIST_COLLECTIONS),
                                     A(LIST_INDEXES)};
static const uint8_t backup_cluster[] = {A(APPEND_OPLOG_NOTE), A(GET_PARAMETER), A(LIST_DATABASES),
                                         A(SERVER_STATUS)};
static const uint8_t restore_any[] = {A(BYPASS_VALIDATION),
                                      A(COLL_MOD),
                                      A(CONVERT_TO_CAPPED),
                                      A(CREATE_COLLECTION),
                                      A(CREATE_INDEX),
                                      A(DROP_COLLECTION),
                                      A(INSERT),
                                      A(LIST_COLLECTIONS),
                                      A(CREATE_ROLE),
                                      A(CREATE_USER),
                                      A(DROP_ROLE),
                                      A(DROP_USER),
                                      A(GRANT_ROLE),
                                      A(REVOKE_ROLE),
                                      A(VIEW_ROLE),
                                      A(VIEW_USER),
                                      A(CHANGE_PASSWORD),
                                      A(CHANGE_CUSTOM_DATA)};
static const uint8_t restore_cluster[] = {A(GET_PARAMETER)};
static const uint8_t everything[] = {A(ANY)};

/* Where a part of a role holds. */
enum where { OWN, CLUSTER, ALL, CONFIG, ANYTHING };

struct part {
    enum where where;
    const uint8_t *actions;
    size_t count;
};

#define PART(where, actions)                                                                       \
    {                                                                                              \
        where, actions, ARRAY_LEN(actions)                                                         \
    }

#define MONITOR PART(CLUSTER, monitor_cluster), PART(ALL, monitor_any), PART(CONFIG, reads)
#define MANAGER PART(CLUSTER, manager_cluster), PART(ALL, manager_any), PART(CONFIG, reads)
#define HOST PART(CLUSTER, host_cluster), PART(ALL, host_any)
#define CLUSTER_ADMIN MONITOR, MANAGER, HOST, PART(ALL, drops_databases)

enum { PARTS_MAX = 24 };

static const struct role {
    const char *name;
    bool admin; /* of the database admin alone */
    struct part parts[PARTS_MAX];
} roles[] = {
    {"read", false, {PART(OWN, reads)}},
    {"readWrite", false, {PART(OWN, reads), PART(OWN, writes)}},
    {"dbAdmin", false, {PART(OWN, administers)}},
    {"userAdmin", false, {PART(OWN, peoples)}},
    {"dbOwner",
     false,
     {PART(OWN, reads), PART(OWN, writes), PART(OWN, administers), PART(OWN, peoples)}},
    {"enableSharding", true, {PART(ALL, manager_any)}},
    {"clusterMonitor", true, {MONITOR}},
    {"clusterManager", true, {MANAGER}},
    {"hostManager", true, {HOST}},
    {"clusterAdmin", true, {CLUSTER_ADMIN}},
    {"backup", true, {PART(ALL, backup_any), PART(CLUSTER, backup_cluster)}},
    {"restore", true, {PART(ALL, restore_any), PART(CLUSTER, restore_cluster)}},
    {"readAnyDatabase", true, {PART(ALL, reads), PART(CLUSTER, lists_databases)}},
    {"readWriteAnyDatabase",
     true,
     {PART(ALL, reads), PART(ALL, writes), PART(CLUSTER, lists_databases)}},
    {"userAdminAnyDatabase", true, {PART(ALL, peoples), PART(CLUSTER, people_cluster)}},
    {"dbAdminAnyDatabase", true, {PART(ALL, administers), PART(CLUSTER, lists_databases)}},
    {"root",
     true,
     {PART(ALL, reads), PART(ALL, writes), PART(ALL, administers), PART(ALL, peoples),
      PART(CLUSTER, people_cluster), CLUSTER_ADMIN, PART(ALL, backup_any),
      PART(CLUSTER, backup_cluster), PART(ALL, restore_any), PART(CLUSTER, restore_cluster)}},
    {"__system", true, {PART(ANYTHING, everything)}},
};

static bool is_admin(struct slice database)
{
    return slice_equal(database, SLICE("admin"));
}

static struct mongo_resource resource_of(enum where where, struct slice database)
{
    switch (where) {
    case OWN:
        return (struct mongo_resource){MONGO_RESOURCE_NAMESPACE, database, SLICE("")};
    case CLUSTER:
        return (struct mongo_resource){.kind = MONGO_RESOURCE_CLUSTER};
    case ALL:
        return (struct mongo_resource){MONGO_RESOURCE_NAMESPACE, SLICE(""), SLICE("")};
    case CONFIG:
        return (struct mongo_resource){MONGO_RESOURCE_NAMESPACE, SLICE("config"), SLICE("")};
    case ANYTHING:
        break;
    }
    return (struct mongo_resource){.kind = MONGO_RESOURCE_ANY};
}

bool mongo_role_builtin(struct slice name, struct slice database,
                        struct mongo_privileges *privileges)
{
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (!slice_equal(name, slice_of_text(roles[i].name)))
            continue;
        if (roles[i].admin && !is_admin(database))
            return false;
        for (const struct part *part = roles[i].parts; privileges && part->count; part++) {
            struct mongo_privilege privilege = {
                .resource = resource_of(part->where, arena_copy(privileges->arena, database))};

            for (size_t n = 0; n < part->count; n++)
                mongo_actions_add(&privilege.actions, (enum mongo_action)part->actions[n]);
            mongo_privileges_add(privileges, &privilege);
        }
        return true;
    }
    return false;
}

const char *mongo_role_builtin_name(size_t index, struct slice database)
{
    for (size_t i = 0; i < ARRAY_LEN(roles); i++)
        if ((!roles[i].admin || is_admin(database)) && !index--)
            return roles[i].name;
    return NULL;
}
