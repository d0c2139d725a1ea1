#include "front/mongo/command/snapshot.h"

#include "base/bytes.h"
#include "front/mongo/command/transact.h"

enum { WAIT_MS_MAX = 60 * 1000 };

static bool is_given(struct slice document, const char *name, struct document_value *ret_value)
{
    return document_find(document, slice_of_text(name), ret_value) &&
           ret_value->type != DOCUMENT_NULL && ret_value->type != DOCUMENT_UNDEFINED;
}

/* Drivers send it with whatever belongs to such a session; a cursor reads its own moment. */
bool mongo_snapshot_is_asked(const struct mongo_call *call)
{
    struct slice body = call->message.body;
    struct document_value concern, level, autocommit;

    return strcmp(call->command->name, "getMore") != 0 &&
           strcmp(call->command->name, "killCursors") != 0 &&
           is_given(body, "readConcern", &concern) && concern.type == DOCUMENT_OBJECT &&
           is_given(concern.document, "level", &level) && level.type == DOCUMENT_STRING &&
           slice_equal(level.text, SLICE("snapshot")) && !is_given(body, "autocommit", &autocommit);
}

/* --- What may be read so --------------------------------------------------------------------- */

/* Stages that write, or look at what is no snapshot's. */
static bool stages_check(const struct mongo_call *call, struct error *err)
{
    static const char *const refused[] = {"$out",
                                          "$merge",
                                          "$changeStream",
                                          "$collStats",
                                          "$indexStats",
                                          "$currentOp",
                                          "$listSessions",
                                          "$listLocalSessions",
                                          "$shardedDataDistribution"};
    struct document_value pipeline;
    struct document_iter iter, stage;

    if (!is_given(call->message.body, "pipeline", &pipeline) || pipeline.type != DOCUMENT_ARRAY)
        return true;
    document_iter_init(&iter, pipeline.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        document_iter_init(&stage, iter.value.document);
        if (!document_iter_next(&stage))
            continue;
        for (size_t i = 0; i < ARRAY_LEN(refused); i++)
            if (slice_equal(stage.key, slice_of_text(refused[i])))
                return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                                       "Aggregation stage %s cannot run with the readConcern level "
                                       "snapshot",
                                       refused[i]);
    }
    return true;
}

static bool command_check(const struct mongo_call *call, struct error *err)
{
    static const char *const commands[] = {"find", "aggregate", "distinct"};

    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(call->command->name, commands[i]) == 0)
            return stages_check(call, err);
    return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                           "Command %s does not support the readConcern level snapshot outside of "
                           "a transaction",
                           call->command->name);
}

/* *ret_time 0: none is named. */
static bool time_read(const struct mongo_call *call, uint64_t *ret_time, struct error *err)
{
    struct document_value concern, value;

    *ret_time = 0;
    if (!is_given(call->message.body, "readConcern", &concern) ||
        !is_given(concern.document, "atClusterTime", &value))
        return true;
    if (value.type != DOCUMENT_TIMESTAMP)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field 'readConcern.atClusterTime' is the wrong type '%s', "
                               "expected type 'timestamp'",
                               mongo_type_name(value.type));
    if (value.timestamp == 0 || value.timestamp > mongo_cluster_time_read(&call->mongo->time))
        return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                               "readConcern atClusterTime must be above zero and not greater than "
                               "the current clusterTime");
    *ret_time = value.timestamp;
    return true;
}

/* --- Held moments ---------------------------------------------------------------------------- */

/* A time has fewer bytes than the id of a session: the two never have the same name. */
static void name_of(const struct mongo_call *call, uint64_t time,
                    uint8_t ret_name[MONGO_SESSION_NAME_LEN])
{
    const struct mongo_session_owner owner = {slice_of_text(call->session->account), SLICE(""),
                                              SLICE("")};
    uint8_t id[8];

    static_assert(sizeof id != MONGO_SESSION_ID_LEN, "else they might");
    bytes_put_be64(id, time);
    mongo_session_name(&owner, slice_of(id, sizeof id), ret_name);
}

/* Gives the entry back; unless it holds a moment, it is forgotten. */
static void give_back(struct mongo_call *call, uint64_t time)
{
    uint8_t name[MONGO_SESSION_NAME_LEN];

    name_of(call, time, name);
    if (call->logical->use != MONGO_NUMBER_OPEN)
        mongo_sessions_end(call->mongo->sessions, name);
    mongo_sessions_give_back(call->mongo->sessions, call->logical);
    call->logical = NULL;
}

static bool too_old(struct error *err)
{
    return mongo_error_set(err, MONGO_SNAPSHOT_TOO_OLD,
                           "the server holds no snapshot of that atClusterTime, or no more: one is "
                           "held for mongo.transaction_ms_max after the first read of it");
}

static bool moment_take(struct mongo_call *call, uint64_t time, bool new_one, struct error *err)
{
    uint8_t name[MONGO_SESSION_NAME_LEN];

    name_of(call, time, name);
    if (!mongo_sessions_take(call->mongo->sessions, name,
                             call->account.account ? account_info(call->account.account)->number
                                                   : 0,
                             clock_monotonic_ms() + WAIT_MS_MAX, &call->logical, err))
        return false;
    if (new_one) {
        struct mongo_transact *transact = mongo_transact_new(call, 0);

        call->logical->reads_alone = true;
        if (!mongo_sessions_open(call->mongo->sessions, call->logical, transact, err)) {
            mongo_transact_free(transact);
            give_back(call, time);
            return false;
        }
    } else if (call->logical->use != MONGO_NUMBER_OPEN) {
        give_back(call, time);
        return too_old(err);
    }
    call->snapshot = time;
    call->snapshot_new = new_one;
    mongo_transact_enter(call, call->logical->transaction);
    return true;
}

bool mongo_snapshot_enter(struct mongo_call *call, struct error *err)
{
    uint64_t time;

    if (!command_check(call, err) || !time_read(call, &time, err) || !mongo_call_blocks(call))
        return false;
    /* a time of its own: no two moments have the same */
    return moment_take(call, time ? time : commit_clock_tick(call->mongo->time.times), !time, err);
}

bool mongo_snapshot_resume(struct mongo_call *call, uint64_t time, struct error *err)
{
    assert(call->may_block && !call->logical);
    return moment_take(call, time, false, err);
}

/* A first read that failed, or met no collection, holds nothing. What fails at a moment that is
 * held leaves it as it is. */
bool mongo_snapshot_leave(struct mongo_call *call, bool fine, struct error *err)
{
    bool drop = call->snapshot_new && (!fine || !mongo_transact_agreement(call));

    if (!fine && (err->code == ERROR_CONFLICT || err->code == ERROR_NOT_SUPPORTED)) {
        const struct error cause = *err;

        mongo_error_set(err, MONGO_SNAPSHOT_UNAVAILABLE, "%s", cause.message);
    }
    call->transact = NULL;
    call->front.moment = NULL;
    if (drop)
        mongo_transact_free(
            mongo_sessions_close(call->mongo->sessions, call->logical, MONGO_NUMBER_ABORTED));
    give_back(call, call->snapshot);
    call->snapshot = 0;
    return fine;
}

void mongo_snapshot_append(struct mongo_call *call)
{
    const struct document_value time = {.type = DOCUMENT_TIMESTAMP, .timestamp = call->snapshot};

    if (call->snapshot)
        document_append(&call->reply, SLICE("atClusterTime"), &time);
}
