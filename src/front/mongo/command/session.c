#include "front/mongo/command/session.h"

#include "front/mongo/command/arguments.h"
#include "front/mongo/command/transact.h"

enum { MINUTE_MS = 60000 };

void mongo_call_session_name(const struct mongo_call *call, struct slice id,
                             uint8_t ret_name[MONGO_SESSION_NAME_LEN])
{
    const struct mongo_session_owner owner = {slice_of_text(call->session->account),
                                              slice_of_text(call->session->user),
                                              slice_of_text(call->session->user_database)};

    mongo_session_name(&owner, id, ret_name);
}

void mongo_call_cursor_tag(const struct mongo_call *call, uint8_t ret_tag[FRONT_CURSOR_TAG_LEN])
{
    static_assert((int)FRONT_CURSOR_TAG_LEN == (int)MONGO_SESSION_NAME_LEN, "a name is a tag");
    if (call->transact)
        memcpy(ret_tag, mongo_transact_tag(call->transact), FRONT_CURSOR_TAG_LEN);
    else
        mongo_call_session_name(call, mongo_session_id(call), ret_tag);
}

static uint32_t account_number(const struct mongo_call *call)
{
    return call->account.account ? account_info(call->account.account)->number : 0;
}

/* Whoever is not known hears nothing of it. */
void mongo_session_reply_append(struct mongo_call *call)
{
    struct mongo_cluster_time *time = &call->mongo->time;

    if (!call->session->known)
        return;
    mongo_cluster_time_append(mongo_cluster_time_read(time), &call->reply);
}

/* --- Fields ---------------------------------------------------------------------------------- */

static bool is_given(struct slice document, const char *name, struct document_value *ret_value)
{
    return document_find(document, slice_of_text(name), ret_value) &&
           ret_value->type != DOCUMENT_NULL && ret_value->type != DOCUMENT_UNDEFINED;
}

/* What version 1 of MongoDB's API has. */
static bool is_stable(const char *name)
{
    static const char *const names[] = {"abortTransaction",
                                        "aggregate",
                                        "authenticate",
                                        "bulkWrite",
                                        "collMod",
                                        "commitTransaction",
                                        "count",
                                        "create",
                                        "createIndexes",
                                        "delete",
                                        "drop",
                                        "dropDatabase",
                                        "dropIndexes",
                                        "endSessions",
                                        "explain",
                                        "find",
                                        "findAndModify",
                                        "getMore",
                                        "hello",
                                        "insert",
                                        "killCursors",
                                        "listCollections",
                                        "listDatabases",
                                        "listIndexes",
                                        "ping",
                                        "refreshSessions",
                                        "saslContinue",
                                        "saslStart",
                                        "update",
                                        "getnonce",
                                        "logout",
                                        "isMaster"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool api_check(const struct mongo_call *call, struct error *err)
{
    struct slice body = call->message.body;
    struct document_value version, strict, deprecation;
    bool versioned = is_given(body, "apiVersion", &version);
    bool is_strict = is_given(body, "apiStrict", &strict);
    bool is_deprecation = is_given(body, "apiDeprecationErrors", &deprecation);

    if (!versioned) {
        if (!is_strict && !is_deprecation)
            return true;
        return mongo_error_set(err, 322,
                               "Provided apiStrict and/or apiDeprecationErrors without passing "
                               "apiVersion");
    }
    if (version.type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field '%s.apiVersion' is the wrong type '%s', expected type "
                               "'string'",
                               call->command->name, mongo_type_name(version.type));
    if (!slice_equal(version.text, SLICE("1")))
        return mongo_error_set(err, 322, "API version must be \"1\"");
    if (is_strict && strict.type == DOCUMENT_BOOL && strict.boolean &&
        !is_stable(call->command->name))
        return mongo_error_set(err, 323,
                               "Provided apiStrict:true, but the command %s is not in API Version "
                               "1. Information on supported commands and migrations in API Version "
                               "1 can be found at the manual of MongoDB",
                               call->command->name);
    return true; /* nothing of version 1 is deprecated */
}

static bool level_is_known(struct slice level)
{
    static const char *const levels[] = {"local", "available", "majority", "linearizable",
                                         "snapshot"};

    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (slice_equal(level, slice_of_text(levels[i])))
            return true;
    return false;
}

/* All reads see every write that was answered before: local, available, majority and linearizable
 * are the same here. */
static bool read_concern_check(const struct mongo_call *call, struct slice concern,
                               struct error *err)
{
    struct document_value value;
    bool snapshot = false;

    if (is_given(concern, "level", &value)) {
        if (value.type != DOCUMENT_STRING || !level_is_known(value.text))
            return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                                   "the readConcern level must be one of local, available, "
                                   "majority, linearizable and snapshot");
        snapshot = slice_equal(value.text, SLICE("snapshot"));
    }
    if (is_given(concern, "atClusterTime", &value) && !snapshot)
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "readConcern.atClusterTime is only valid with the level snapshot");
    if (is_given(concern, "afterClusterTime", &value)) {
        if (value.type != DOCUMENT_TIMESTAMP)
            return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                                   "BSON field 'readConcern.afterClusterTime' is the wrong type "
                                   "'%s', expected type 'timestamp'",
                                   mongo_type_name(value.type));
        if (value.timestamp > mongo_cluster_time_read(&call->mongo->time))
            return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                                   "readConcern afterClusterTime value must not be greater than "
                                   "the current clusterTime");
    }
    return true; /* at which moments it may be read: snapshot.c */
}

bool mongo_session_check(const struct mongo_call *call, struct error *err)
{
    struct document_value concern;

    return api_check(call, err) && (!is_given(call->message.body, "readConcern", &concern) ||
                                    read_concern_check(call, concern.document, err));
}

/* --- Commands -------------------------------------------------------------------------------- */

bool mongo_configure_fail_point(struct mongo_call *call, struct error *err)
{
    int64_t count;

    if (!call->mongo->fail_points)
        return mongo_error_set(err, MONGO_COMMAND_NOT_FOUND,
                               "no such command: 'configureFailPoint': it is there with "
                               "mongo.test_commands alone");
    if (!mongo_fail_points_configure(call->mongo->fail_points, call->message.body, &count, err))
        return false;
    document_append_int64(&call->reply, SLICE("count"), count);
    return true;
}

bool mongo_start_session(struct mongo_call *call, struct error *err UNUSED)
{
    uint8_t bytes[MONGO_SESSION_ID_LEN];
    const struct document_value id = {
        .type = DOCUMENT_BINARY, .binary = {.bytes = slice_of(bytes, sizeof bytes), .subtype = 4}};
    size_t inner;

    random_secret(bytes, sizeof bytes);
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
    inner = document_append_object_begin(&call->reply, SLICE("id"));
    document_append(&call->reply, SLICE("id"), &id);
    document_end(&call->reply, inner);
    document_append_int32(&call->reply, SLICE("timeoutMinutes"),
                          (int32_t)(call->options->session_ms / MINUTE_MS));
    return true;
}

static bool lsid_read(const struct document_value *value, struct slice *ret_id, struct error *err)
{
    struct document_value id;

    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, SLICE("id"), &id) ||
        id.type != DOCUMENT_BINARY || id.binary.bytes.len != MONGO_SESSION_ID_LEN)
        return mongo_error_set(err, MONGO_INVALID_UUID, "a session must be {id: UUID}");
    *ret_id = id.binary.bytes;
    return true;
}

/* Those of a session; NULL: of all. A getMore that waits ends with its cursor. */
static void cursors_kill(struct mongo_call *call, const uint8_t *name)
{
    if (front_cursors_kill_tagged(call->mongo->cursors, account_number(call), name))
        mongo_waits_look_cursors(call->mongo->waits, call->mongo->cursors);
}

static void session_end(struct mongo_call *call, struct slice id)
{
    uint8_t name[MONGO_SESSION_NAME_LEN];

    mongo_call_session_name(call, id, name);
    mongo_sessions_end(call->mongo->sessions, name);
    cursors_kill(call, name);
}

static void session_refresh(struct mongo_call *call, struct slice id)
{
    uint8_t name[MONGO_SESSION_NAME_LEN];

    mongo_call_session_name(call, id, name);
    mongo_sessions_refresh(call->mongo->sessions, name);
}

static bool each(struct mongo_call *call, void (*act)(struct mongo_call *call, struct slice id),
                 struct error *err)
{
    struct document_iter iter;
    struct slice id;

    if (call->target.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field '%s.%s' is the wrong type '%s', expected type 'array'",
                               call->command->name, call->command->name,
                               mongo_type_name(call->target.type));
    document_iter_init(&iter, call->target.document);
    while (document_iter_next(&iter)) {
        if (!lsid_read(&iter.value, &id, err))
            return false;
        if (call->session->known)
            act(call, id);
    }
    return true;
}

bool mongo_end_sessions(struct mongo_call *call, struct error *err)
{
    return each(call, session_end, err);
}

bool mongo_refresh_sessions(struct mongo_call *call, struct error *err)
{
    return each(call, session_refresh, err);
}

static void all_end(struct mongo_call *call)
{
    mongo_sessions_end_account(call->mongo->sessions, account_number(call));
    cursors_kill(call, NULL);
}

bool mongo_kill_sessions(struct mongo_call *call, struct error *err)
{
    if (call->target.type == DOCUMENT_ARRAY && document_count(call->target.document) == 0) {
        all_end(call);
        return true;
    }
    return each(call, session_end, err);
}

/* Of the account alone: {user, db} of somebody else are nobody's here. */
bool mongo_kill_all_sessions(struct mongo_call *call, struct error *err)
{
    struct document_iter iter;
    struct document_value user;
    bool own;

    if (call->target.type != DOCUMENT_ARRAY)
        return each(call, session_end, err);
    own = document_count(call->target.document) == 0;
    document_iter_init(&iter, call->target.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT ||
            !document_find(iter.value.document, SLICE("user"), &user) ||
            user.type != DOCUMENT_STRING)
            return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                                   "BSON field 'killAllSessions.user' is missing but a required "
                                   "field");
        own = own || slice_equal(user.text, slice_of_text(call->session->user));
    }
    if (own)
        all_end(call);
    return true;
}

bool mongo_kill_all_sessions_by_pattern(struct mongo_call *call, struct error *err)
{
    struct document_iter iter;
    struct document_value lsid;
    struct slice id;

    if (call->target.type != DOCUMENT_ARRAY)
        return each(call, session_end, err);
    if (document_count(call->target.document) == 0)
        all_end(call);
    document_iter_init(&iter, call->target.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT ||
            !document_find(iter.value.document, SLICE("lsid"), &lsid))
            return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                   "killAllSessionsByPattern: patterns other than lsid are not "
                                   "offered");
        if (!lsid_read(&lsid, &id, err))
            return false;
        session_end(call, id);
    }
    return true;
}
