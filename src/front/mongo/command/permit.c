/* Each command needs an action on a resource. A command that is not in the table is for whoever may
 * do anything: so one that somebody adds without a row here is refused, not let through. */
#include "front/mongo/command/permit.h"

#include "front/mongo/command/arguments.h"

enum { DEPTH_MAX = 20, SHOWN_MAX = 64 };

enum on {
    NOTHING,    /* whoever is known */
    COLLECTION, /* that the command names, of its database */
    DATABASE,
    CLUSTER,
    NAMESPACE,  /* "database.collection" behind the command's name */
    EVERYWHERE, /* all databases */
};

#define A(name) MONGO_ACTION_##name

static const struct rule {
    const char *command;
    enum on on;
    enum mongo_action action;
} rules[] = {
    {"startSession", NOTHING, 0},
    {"refreshSessions", NOTHING, 0},
    {"endSessions", NOTHING, 0},
    {"killSessions", NOTHING, 0}, /* its own */
    {"killAllSessions", CLUSTER, A(KILL_ANY_SESSION)},
    {"killAllSessionsByPattern", CLUSTER, A(KILL_ANY_SESSION)},
    {"commitTransaction", NOTHING, 0},
    {"abortTransaction", NOTHING, 0},
    {"getLastRequestStatistics", NOTHING, 0},
    {"isdbgrid", NOTHING, 0},
    {"usersInfo", NOTHING, 0}, /* users.c looks by itself */
    {"rolesInfo", NOTHING, 0},
    {"updateUser", NOTHING, 0},
    {"listDatabases", NOTHING, 0}, /* shows what may be read */
    {"getMore", COLLECTION, A(FIND)},
    {"killCursors", COLLECTION, A(KILL_CURSORS)},
    {"find", COLLECTION, A(FIND)},
    {"count", COLLECTION, A(FIND)},
    {"distinct", COLLECTION, A(FIND)},
    {"aggregate", COLLECTION, A(FIND)},
    {"mapReduce", COLLECTION, A(FIND)}, /* and what it writes to: map_reduce.c */
    {"explain", COLLECTION, A(FIND)},
    {"insert", COLLECTION, A(INSERT)},
    {"update", COLLECTION, A(UPDATE)},
    {"delete", COLLECTION, A(REMOVE)},
    {"findAndModify", COLLECTION, A(UPDATE)},
    {"create", COLLECTION, A(CREATE_COLLECTION)},
    {"drop", COLLECTION, A(DROP_COLLECTION)},
    {"dropDatabase", DATABASE, A(DROP_DATABASE)},
    {"listCollections", NOTHING, 0}, /* collections.c looks by itself */
    {"listIndexes", COLLECTION, A(LIST_INDEXES)},
    {"createIndexes", COLLECTION, A(CREATE_INDEX)},
    {"dropIndexes", COLLECTION, A(DROP_INDEX)},
    {"deleteIndexes", COLLECTION, A(DROP_INDEX)},
    {"collMod", COLLECTION, A(COLL_MOD)},
    {"renameCollection", NAMESPACE, A(RENAME_COLLECTION)},
    {"collStats", COLLECTION, A(COLL_STATS)},
    {"dbStats", DATABASE, A(DB_STATS)},
    {"dataSize", NAMESPACE, A(FIND)},
    {"validate", COLLECTION, A(VALIDATE)},
    {"convertToCapped", COLLECTION, A(CONVERT_TO_CAPPED)},
    {"profile", DATABASE, A(ENABLE_PROFILER)},
    {"createUser", DATABASE, A(CREATE_USER)},
    {"dropUser", DATABASE, A(DROP_USER)},
    {"dropAllUsersFromDatabase", DATABASE, A(DROP_USER)},
    {"grantRolesToUser", NOTHING, 0}, /* by the roles that are granted */
    {"revokeRolesFromUser", NOTHING, 0},
    {"createRole", DATABASE, A(CREATE_ROLE)},
    {"updateRole", DATABASE, A(REVOKE_ROLE)},
    {"grantPrivilegesToRole", DATABASE, A(GRANT_ROLE)},
    {"revokePrivilegesFromRole", DATABASE, A(REVOKE_ROLE)},
    {"grantRolesToRole", NOTHING, 0}, /* by the roles that are granted */
    {"revokeRolesFromRole", NOTHING, 0},
    {"dropRole", DATABASE, A(DROP_ROLE)},
    {"dropAllRolesFromDatabase", DATABASE, A(DROP_ROLE)},
    {"enableSharding", EVERYWHERE, A(ENABLE_SHARDING)},
    {"shardCollection", NAMESPACE, A(ENABLE_SHARDING)},
    {"reshardCollection", NAMESPACE, A(RESHARD)},
    {"abortReshardCollection", NAMESPACE, A(RESHARD)},
    {"refineCollectionShardKey", NAMESPACE, A(REFINE_SHARD_KEY)},
    {"analyzeShardKey", NAMESPACE, A(ANALYZE_SHARD_KEY)},
    {"configureQueryAnalyzer", NAMESPACE, A(CONFIGURE_ANALYZER)},
    {"split", NAMESPACE, A(SPLIT_CHUNK)},
    {"mergeChunks", NAMESPACE, A(SPLIT_CHUNK)},
    {"moveChunk", NAMESPACE, A(MOVE_CHUNK)},
    {"moveRange", NAMESPACE, A(MOVE_CHUNK)},
    {"getShardVersion", NAMESPACE, A(GET_SHARD_VERSION)},
    {"listShards", CLUSTER, A(LIST_SHARDS)},
    {"getShardMap", CLUSTER, A(GET_SHARD_MAP)},
    {"flushRouterConfig", CLUSTER, A(FLUSH_ROUTER)},
    {"balancerStart", EVERYWHERE, A(ENABLE_SHARDING)},
    {"balancerStop", EVERYWHERE, A(ENABLE_SHARDING)},
    {"addShardToZone", EVERYWHERE, A(ENABLE_SHARDING)},
    {"removeShardFromZone", EVERYWHERE, A(ENABLE_SHARDING)},
    {"updateZoneKeyRange", NAMESPACE, A(ENABLE_SHARDING)},
    {"customAction", EVERYWHERE, A(ENABLE_SHARDING)},
    {"checkMetadataConsistency", CLUSTER, A(CHECK_METADATA)},
    {"balancerStatus", CLUSTER, A(LIST_SHARDS)},
    {"balancerCollectionStatus", NAMESPACE, A(GET_SHARD_VERSION)},
    {"hostInfo", CLUSTER, A(HOST_INFO)},
    {"serverStatus", CLUSTER, A(SERVER_STATUS)},
    {"getParameter", CLUSTER, A(GET_PARAMETER)},
    {"setParameter", CLUSTER, A(SET_PARAMETER)},
    {"getCmdLineOpts", CLUSTER, A(GET_CMD_LINE_OPTS)},
    {"getLog", CLUSTER, A(GET_LOG)},
    {"fsync", CLUSTER, A(FSYNC)},
    {"currentOp", NOTHING, 0}, /* operations.c looks by itself: one's own */
    {"killOp", NOTHING, 0},
    {"top", CLUSTER, A(TOP)},
    {"connPoolStats", CLUSTER, A(CONN_POOL_STATS)},
    {"replSetGetStatus", CLUSTER, A(REPL_SET_GET_STATUS)},
    {"getDefaultRWConcern", CLUSTER, A(GET_DEFAULT_CONCERN)},
    {"setDefaultRWConcern", CLUSTER, A(SET_DEFAULT_CONCERN)},
    {"setFeatureCompatibilityVersion", CLUSTER, A(SET_COMPATIBILITY)},
};

/* --- Who ------------------------------------------------------------------------------------- */

bool mongo_permit_refresh(struct mongo_call *call, struct error *err)
{
    CLEANUP(mongo_directory_unref) struct mongo_directory *directory = NULL;
    struct mongo_session *session = call->session;
    uint64_t generation = mongo_directories_generation(call->mongo->directories);
    const struct mongo_principal *user = NULL;

    if (session->grants.arena && session->grants_generation == generation)
        return true;
    if (call->account.account &&
        !mongo_directory_open(call->mongo->directories, account_info(call->account.account)->number,
                              false, &directory, err))
        return false;
    if (directory)
        user = mongo_directory_user(directory, slice_of_text(session->user_database),
                                    slice_of_text(session->user));
    if (!user || memcmp(user->mark, session->user_mark, MONGO_MARK_LEN) != 0) {
        session->known = session->by_user = false;
        return mongo_error_set(err, MONGO_REAUTHENTICATION_REQUIRED,
                               "the user of the connection was dropped or has another password");
    }
    arena_free(session->grants.arena);
    session->grants = (struct mongo_privileges){.arena = arena_new()};
    mongo_directory_resolve(directory, user->roles, &session->grants, NULL);
    session->grants_generation = generation;
    return true;
}

bool mongo_permit_allows(const struct mongo_call *call, enum mongo_action action,
                         struct slice database, struct slice collection)
{
    const struct mongo_resource resource = {MONGO_RESOURCE_NAMESPACE, database, collection};

    return !call->session->by_user ||
           mongo_privileges_allow(&call->session->grants, action, &resource);
}

bool mongo_permit_touches(const struct mongo_call *call, struct slice database,
                          struct slice collection)
{
    static const enum mongo_action actions[] = {MONGO_ACTION_FIND, MONGO_ACTION_INSERT,
                                                MONGO_ACTION_UPDATE, MONGO_ACTION_REMOVE};

    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (mongo_permit_allows(call, actions[i], database, collection))
            return true;
    return false;
}

bool mongo_permit_refuse(const struct mongo_call *call, struct error *err)
{
    CLEANUP(buf_done) struct buf text;

    /* what stands behind the name, and nothing else: the rest may hold secrets */
    buf_init(&text, BUF_DEFAULT_MAX);
    mongo_text_append(&text, &call->target, SHOWN_MAX);
    return mongo_error_set(
        err, MONGO_UNAUTHORIZED,
        "not authorized on %.*s to execute command { %.*s: %.*s, $db: \"%.*s\" }",
        (int)MIN(call->message.database.len, (size_t)SHOWN_MAX),
        (const char *)call->message.database.data, SLICE_ARG(call->name),
        SLICE_ARG(buf_slice(&text)), (int)MIN(call->message.database.len, (size_t)SHOWN_MAX),
        (const char *)call->message.database.data);
}

/* --- Pipelines ------------------------------------------------------------------------------- */

/* A stage's target: a name of the same database, or {db, coll}. */
static struct mongo_namespace target_of(const struct mongo_call *call,
                                        const struct document_value *value)
{
    struct mongo_namespace name = {call->message.database, SLICE("")};
    struct document_value part;

    if (value->type == DOCUMENT_STRING)
        name.collection = value->text;
    if (value->type != DOCUMENT_OBJECT)
        return name;
    if (document_find(value->document, SLICE("db"), &part) && part.type == DOCUMENT_STRING)
        name.database = part.text;
    if (document_find(value->document, SLICE("coll"), &part) && part.type == DOCUMENT_STRING)
        name.collection = part.text;
    return name;
}

static bool allows(const struct mongo_call *call, const struct mongo_namespace *name,
                   enum mongo_action action)
{
    return mongo_permit_allows(call, action, name->database, name->collection);
}

static bool pipeline_allowed(const struct mongo_call *call, struct slice pipeline, int depth);

bool mongo_permit_cluster(const struct mongo_call *call, enum mongo_action action)
{
    const struct mongo_resource cluster = {.kind = MONGO_RESOURCE_CLUSTER};

    return !call->session->by_user ||
           mongo_privileges_allow(&call->session->grants, action, &cluster);
}

/* What a stage reads or writes besides its input. */
static bool stage_allowed(const struct mongo_call *call, struct slice name,
                          const struct document_value *value, int depth)
{
    struct document_value part;
    struct mongo_namespace target;
    struct document_iter iter;

    if (slice_equal(name, SLICE("$out"))) {
        target = target_of(call, value);
        return allows(call, &target, MONGO_ACTION_INSERT) &&
               allows(call, &target, MONGO_ACTION_REMOVE);
    }
    if (slice_equal(name, SLICE("$merge"))) {
        if (value->type == DOCUMENT_OBJECT && document_find(value->document, SLICE("into"), &part))
            target = target_of(call, &part);
        else
            target = target_of(call, value);
        return allows(call, &target, MONGO_ACTION_INSERT) &&
               allows(call, &target, MONGO_ACTION_UPDATE) &&
               allows(call, &target, MONGO_ACTION_FIND);
    }
    if (slice_equal(name, SLICE("$currentOp")))
        return true; /* operations.c looks by itself */
    if (slice_equal(name, SLICE("$shardedDataDistribution")))
        return mongo_permit_cluster(call, MONGO_ACTION_LIST_SHARDS);
    if (slice_equal(name, SLICE("$listSessions")))
        return mongo_permit_cluster(call, MONGO_ACTION_LIST_SESSIONS);
    if (slice_equal(name, SLICE("$listSampledQueries")))
        return mongo_permit_cluster(call, MONGO_ACTION_LIST_SAMPLED);
    if (slice_equal(name, SLICE("$queryStats")))
        return mongo_permit_cluster(call, MONGO_ACTION_QUERY_STATS);
    if (slice_equal(name, SLICE("$unionWith")) && value->type == DOCUMENT_STRING) {
        target = target_of(call, value);
        return allows(call, &target, MONGO_ACTION_FIND);
    }
    if (value->type != DOCUMENT_OBJECT)
        return true;
    if (slice_equal(name, SLICE("$lookup")) || slice_equal(name, SLICE("$graphLookup")) ||
        slice_equal(name, SLICE("$unionWith"))) {
        if (document_find(value->document,
                          slice_equal(name, SLICE("$unionWith")) ? SLICE("coll") : SLICE("from"),
                          &part)) {
            target = target_of(call, &part);
            if (!allows(call, &target, MONGO_ACTION_FIND))
                return false;
        }
        return !document_find(value->document, SLICE("pipeline"), &part) ||
               part.type != DOCUMENT_ARRAY || pipeline_allowed(call, part.document, depth + 1);
    }
    if (!slice_equal(name, SLICE("$facet")))
        return true;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_ARRAY &&
            !pipeline_allowed(call, iter.value.document, depth + 1))
            return false;
    return true;
}

static bool pipeline_allowed(const struct mongo_call *call, struct slice pipeline, int depth)
{
    struct document_iter iter, stage;

    if (depth > DEPTH_MAX)
        return false;
    document_iter_init(&iter, pipeline);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        document_iter_init(&stage, iter.value.document);
        while (document_iter_next(&stage))
            if (!stage_allowed(call, stage.key, &stage.value, depth))
                return false;
    }
    return true;
}

static bool begins_with(struct slice pipeline, struct slice name)
{
    struct document_iter iter, stage;

    document_iter_init(&iter, pipeline);
    if (!document_iter_next(&iter) || iter.value.type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&stage, iter.value.document);
    return document_iter_next(&stage) && slice_equal(stage.key, name);
}

/* A pipeline without a collection reads the whole database, or what its stages name. */
static bool aggregate_allowed(const struct mongo_call *call, struct slice body,
                              const struct document_value *target)
{
    struct slice collection = target->type == DOCUMENT_STRING ? target->text : SLICE("");
    struct slice database = call->message.database;
    struct document_value pipeline;
    bool first = false;

    if (!document_find(body, SLICE("pipeline"), &pipeline) || pipeline.type != DOCUMENT_ARRAY)
        return mongo_permit_allows(call, MONGO_ACTION_FIND, database, collection);
    if (begins_with(pipeline.document, SLICE("$changeStream"))) {
        if (!collection.len && slice_equal(database, SLICE("admin")))
            database = SLICE(""); /* of all databases */
        if (!mongo_permit_allows(call, MONGO_ACTION_CHANGE_STREAM, database, collection))
            return false;
    } else if (begins_with(pipeline.document, SLICE("$collStats"))) {
        first = mongo_permit_allows(call, MONGO_ACTION_COLL_STATS, database, collection);
    } else if (begins_with(pipeline.document, SLICE("$indexStats"))) {
        first = mongo_permit_allows(call, MONGO_ACTION_INDEX_STATS, database, collection);
    } else if (!collection.len) {
        first = true; /* of $currentOp, $documents and their kin */
    }
    return (first || mongo_permit_allows(call, MONGO_ACTION_FIND, database, collection)) &&
           pipeline_allowed(call, pipeline.document, 0);
}

/* --- Commands -------------------------------------------------------------------------------- */

static const struct rule *rule_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (slice_equal(name, slice_of_text(rules[i].command)))
            return &rules[i];
    return NULL;
}

static bool flag(struct slice body, struct slice name)
{
    struct document_value value;

    return document_find(body, name, &value) && value.type == DOCUMENT_BOOL && value.boolean;
}

/* An update that inserts what it does not find needs that too. */
static bool upserts_allowed(const struct mongo_call *call, struct slice command, struct slice body,
                            struct slice collection)
{
    struct mongo_documents updates;
    struct slice update;
    struct error unused;
    bool upserts = flag(body, SLICE("upsert"));

    if (slice_equal(command, SLICE("update")) &&
        mongo_documents_open(call, "updates", &updates, &unused))
        while (mongo_documents_next(&updates, &update))
            upserts = upserts || flag(update, SLICE("upsert"));
    return !upserts ||
           mongo_permit_allows(call, MONGO_ACTION_INSERT, call->message.database, collection);
}

/* A view shows what it is made of: whoever makes one may read that. */
static bool view_allowed(const struct mongo_call *call, struct slice body)
{
    struct document_value value;

    return (!document_find(body, SLICE("viewOn"), &value) || value.type != DOCUMENT_STRING ||
            mongo_permit_allows(call, MONGO_ACTION_FIND, call->message.database, value.text)) &&
           (!document_find(body, SLICE("pipeline"), &value) || value.type != DOCUMENT_ARRAY ||
            pipeline_allowed(call, value.document, 0));
}

static bool rename_allowed(const struct mongo_call *call)
{
    struct mongo_namespace from, to = {0};
    struct document_value text = document_undefined();
    struct error unused;

    (void)document_find(call->message.body, SLICE("to"), &text);
    if (!mongo_namespace_read(&call->target, &from, &unused) ||
        !mongo_namespace_read(&text, &to, &unused))
        return false;
    return allows(call, &from, MONGO_ACTION_RENAME_COLLECTION) &&
           allows(call, &to, MONGO_ACTION_RENAME_COLLECTION) &&
           (!flag(call->message.body, SLICE("dropTarget")) ||
            allows(call, &to, MONGO_ACTION_DROP_COLLECTION));
}

static bool body_allowed(const struct mongo_call *call, struct slice command, struct slice body,
                         const struct document_value *target, int depth)
{
    const struct rule *rule = rule_find(command);
    struct slice collection = target->type == DOCUMENT_STRING ? target->text : SLICE("");
    struct mongo_namespace name;
    struct document_value more;
    struct document_iter inner;
    struct error unused;

    if (!rule) /* for whoever may do anything */
        return mongo_privileges_allow(&call->session->grants, MONGO_ACTION_ANY,
                                      &(struct mongo_resource){.kind = MONGO_RESOURCE_ANY});
    if (slice_equal(command, SLICE("explain"))) {
        if (depth || target->type != DOCUMENT_OBJECT)
            return false;
        document_iter_init(&inner, target->document);
        return document_iter_next(&inner) &&
               body_allowed(call, inner.key, target->document, &inner.value, depth + 1);
    }
    if (slice_equal(command, SLICE("aggregate")))
        return aggregate_allowed(call, body, target);
    if (slice_equal(command, SLICE("renameCollection")))
        return rename_allowed(call);
    if (slice_equal(command, SLICE("getMore")))
        collection = document_find(body, SLICE("collection"), &more) && more.type == DOCUMENT_STRING
                         ? more.text
                         : SLICE("");
    if (flag(body, SLICE("bypassDocumentValidation")) &&
        !mongo_permit_allows(call, MONGO_ACTION_BYPASS_VALIDATION, call->message.database,
                             collection))
        return false;
    if ((slice_equal(command, SLICE("update")) || slice_equal(command, SLICE("findAndModify"))) &&
        !upserts_allowed(call, command, body, collection))
        return false;
    if ((slice_equal(command, SLICE("create")) || slice_equal(command, SLICE("collMod"))) &&
        !view_allowed(call, body))
        return false;
    if (slice_equal(command, SLICE("findAndModify")) &&
        !mongo_permit_allows(call, MONGO_ACTION_FIND, call->message.database, collection))
        return false;
    if (slice_equal(command, SLICE("findAndModify")) && flag(body, SLICE("remove")))
        return mongo_permit_allows(call, MONGO_ACTION_REMOVE, call->message.database, collection);
    switch (rule->on) {
    case NOTHING:
        return true;
    case COLLECTION:
        if (slice_starts_with(collection, SLICE("$cmd.")))
            return true; /* cursors of lists, each of whoever opened it */
        return mongo_permit_allows(call, rule->action, call->message.database, collection);
    case DATABASE:
        return mongo_permit_allows(call, rule->action, call->message.database, SLICE(""));
    case CLUSTER:
        return mongo_permit_cluster(call, rule->action);
    case EVERYWHERE:
        return mongo_permit_allows(call, rule->action, SLICE(""), SLICE(""));
    case NAMESPACE:
        return mongo_namespace_read(target, &name, &unused) && allows(call, &name, rule->action);
    }
    return false;
}

bool mongo_permit_check(const struct mongo_call *call, struct error *err)
{
    return body_allowed(call, slice_of_text(call->command->name), call->message.body, &call->target,
                        0) ||
           mongo_permit_refuse(call, err);
}
