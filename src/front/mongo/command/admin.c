/* What tools ask of a server about itself, besides server.c. */
#include "base/clock.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/call.h"

/* --- The replica set ------------------------------------------------------------------------- */

static void optime_append(struct mongo_call *call, struct slice name, int64_t now_ms)
{
    struct document_value stamp = {.type = DOCUMENT_TIMESTAMP,
                                   .timestamp = (uint64_t)(now_ms / 1000) << 32 | 1};
    size_t part = document_append_object_begin(&call->reply, name);

    document_append(&call->reply, SLICE("ts"), &stamp);
    document_append_int64(&call->reply, SLICE("t"), 1);
    document_end(&call->reply, part);
}

/* One member, which is this server: what is behind it is no affair of the set's. */
bool mongo_repl_set_status(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {{"initialSync", MONGO_FIELD_ANY}};
    int64_t now_ms = clock_read_wall_ms(call->services->clock);
    int64_t up_ms = clock_read_monotonic_ms(call->services->clock) - call->mongo->started_ms;
    struct buf *out = &call->reply;
    size_t list, member;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), NULL, err))
        return false;
    if (call->session->face == MONGO_FACE_MONGOS)
        return mongo_error_set(err, MONGO_NO_REPLICATION_ENABLED,
                               "replSetGetStatus is not supported through mongos");
    document_append_string(out, SLICE("set"), SLICE("globaldb"));
    document_append_date(out, SLICE("date"), now_ms);
    document_append_int32(out, SLICE("myState"), 1);
    document_append_int64(out, SLICE("term"), 1);
    document_append_int64(out, SLICE("heartbeatIntervalMillis"), 2000);
    document_append_int32(out, SLICE("majorityVoteCount"), 1);
    document_append_int32(out, SLICE("votingMembersCount"), 1);
    list = document_append_array_begin(out, SLICE("members"));
    member = document_append_object_begin(out, SLICE("0"));
    document_append_int32(out, SLICE("_id"), 0);
    document_append_string(out, SLICE("name"), slice_of_text(call->mongo->advertised));
    document_append_double(out, SLICE("health"), 1);
    document_append_int32(out, SLICE("state"), 1);
    document_append_string(out, SLICE("stateStr"), SLICE("PRIMARY"));
    document_append_int32(out, SLICE("uptime"), (int32_t)MIN(up_ms / 1000, (int64_t)INT32_MAX));
    optime_append(call, SLICE("optime"), now_ms);
    document_append_bool(out, SLICE("self"), true);
    document_end(out, member);
    document_end(out, list);
    return true;
}

/* --- Settings -------------------------------------------------------------------------------- */

bool mongo_default_concern(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {{"inMemory", MONGO_FIELD_ANY}};
    struct buf *out = &call->reply;
    size_t part;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), NULL, err))
        return false;
    part = document_append_object_begin(out, SLICE("defaultReadConcern"));
    document_append_string(out, SLICE("level"), SLICE("local"));
    document_end(out, part);
    part = document_append_object_begin(out, SLICE("defaultWriteConcern"));
    document_append_string(out, SLICE("w"), SLICE("majority"));
    document_append_int32(out, SLICE("wtimeout"), 0);
    document_end(out, part);
    document_append_string(out, SLICE("defaultReadConcernSource"), SLICE("implicit"));
    document_append_string(out, SLICE("defaultWriteConcernSource"), SLICE("implicit"));
    document_append_date(out, SLICE("localUpdateWallClockTime"),
                         clock_read_wall_ms(call->services->clock));
    return true;
}

bool mongo_set_compatibility(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {{"confirm", MONGO_FIELD_ANY}};

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), NULL, err))
        return false;
    return (call->target.type == DOCUMENT_STRING && slice_equal(call->target.text, SLICE("7.0"))) ||
           mongo_error_set(err, MONGO_BAD_VALUE,
                           "Invalid feature compatibility version value: it is '7.0' and stays so");
}

struct profiling {
    struct document_value slow_ms, sample_rate, filter;
};

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

/* It is off, and can be told so. */
bool mongo_profile(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"slowms", MONGO_FIELD_VALUE, offsetof(struct profiling, slow_ms)},
        {"sampleRate", MONGO_FIELD_VALUE, offsetof(struct profiling, sample_rate)},
        {"filter", MONGO_FIELD_VALUE, offsetof(struct profiling, filter)},
    };
    struct profiling asked = {0};
    int64_t level;

    if (!mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err))
        return false;
    if (!document_to_int64(&call->target, &level) || level < -1 || level > 2)
        return mongo_error_set(err, MONGO_BAD_VALUE, "profile takes -1, 0, 1 or 2");
    if (level > 0 || is_given(&asked.slow_ms) || is_given(&asked.sample_rate) ||
        is_given(&asked.filter))
        return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                               "profile: nothing is profiled; `orrery partition heat` and /metrics "
                               "tell what was asked");
    document_append_int32(&call->reply, SLICE("was"), 0);
    document_append_int32(&call->reply, SLICE("slowms"), 100);
    document_append_double(&call->reply, SLICE("sampleRate"), 1);
    return true;
}
