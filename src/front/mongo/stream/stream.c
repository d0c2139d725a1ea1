#include "front/mongo/stream/stream.h"

#include "document/bson.h"
#include "front/mongo/error.h"
#include "front/mongo/stream/event.h"
#include "front/mongo/text.h"
#include "partition/layout.h"

enum { NAME_SHOWN_MAX = 64 };

/* --- What is asked --------------------------------------------------------------------------- */

struct asked {
    struct document_value resume_after, start_after, start_at;
};

static bool choice_read(const struct document_value *value, const char *field,
                        const char *const *names, size_t count, size_t *ret_choice,
                        struct error *err)
{
    if (value->type != DOCUMENT_STRING)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                               "BSON field '$changeStream.%s' is the wrong type '%s', expected "
                               "type 'string'",
                               field, mongo_type_name(value->type));
    for (size_t i = 0; i < count; i++)
        if (slice_equal(value->text, slice_of_text(names[i]))) {
            *ret_choice = i;
            return true;
        }
    return mongo_error_set(err, MONGO_BAD_VALUE,
                           "Enumeration value '%.*s' for field '$changeStream.%s' is not a valid "
                           "value.",
                           (int)MIN(value->text.len, (size_t)NAME_SHOWN_MAX),
                           (const char *)value->text.data, field);
}

static bool wrong_type(struct slice field, const struct document_value *value, const char *expected,
                       struct error *err)
{
    return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                           "BSON field '$changeStream.%.*s' is the wrong type '%s', expected type "
                           "'%s'",
                           SLICE_ARG(field), mongo_type_name(value->type), expected);
}

static bool option_take(struct mongo_stream *stream, struct asked *asked, struct slice name,
                        const struct document_value *value, struct error *err)
{
    static const char *const full[] = {"default", "updateLookup", "whenAvailable", "required"};
    static const char *const before[] = {"off", "whenAvailable", "required"};
    size_t choice = 0;

    if (slice_equal(name, SLICE("fullDocument"))) {
        if (!choice_read(value, "fullDocument", full, ARRAY_LEN(full), &choice, err))
            return false;
        stream->options.full = (enum mongo_full_document)choice;
        return true;
    }
    if (slice_equal(name, SLICE("fullDocumentBeforeChange"))) {
        if (!choice_read(value, "fullDocumentBeforeChange", before, ARRAY_LEN(before), &choice,
                         err))
            return false;
        stream->options.before = (enum mongo_before_document)choice;
        return true;
    }
    if (slice_equal(name, SLICE("resumeAfter")) || slice_equal(name, SLICE("startAfter"))) {
        *(name.data[0] == 'r' ? &asked->resume_after : &asked->start_after) = *value;
        return value->type == DOCUMENT_OBJECT || wrong_type(name, value, "object", err);
    }
    if (slice_equal(name, SLICE("startAtOperationTime"))) {
        asked->start_at = *value;
        return value->type == DOCUMENT_TIMESTAMP || wrong_type(name, value, "timestamp", err);
    }
    if (slice_equal(name, SLICE("showExpandedEvents"))) {
        stream->options.expanded = value->type == DOCUMENT_BOOL && value->boolean;
        return value->type == DOCUMENT_BOOL || wrong_type(name, value, "bool", err);
    }
    if (slice_equal(name, SLICE("allChangesForCluster"))) {
        if (value->type != DOCUMENT_BOOL)
            return wrong_type(name, value, "bool", err);
        if (!value->boolean)
            return true;
        if (!slice_equal(stream->target.database, SLICE("admin")) || stream->target.collection.len)
            return mongo_error_set(err, MONGO_INVALID_OPTIONS,
                                   "A $changeStream with 'allChangesForCluster:true' may only be "
                                   "opened on the 'admin' database, and with no collection name");
        stream->target.database = SLICE("");
        return true;
    }
    return mongo_error_set(err, MONGO_IDL_UNKNOWN_FIELD,
                           "BSON field '$changeStream.%.*s' is an unknown field.",
                           (int)MIN(name.len, (size_t)NAME_SHOWN_MAX), (const char *)name.data);
}

/* Databases of the server itself are not watched, nor their collections. */
static bool target_check(const struct mongo_stream_target *target, struct error *err)
{
    static const struct slice own[] = {SLICE("admin"), SLICE("local"), SLICE("config")};

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (slice_equal(target->database, own[i]))
            return mongo_error_set(err, MONGO_INVALID_NAMESPACE,
                                   "$changeStream may not be opened on the internal %.*s database",
                                   SLICE_ARG(own[i]));
    if (slice_starts_with(target->collection, SLICE("system.")))
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE,
                               "$changeStream may not be opened on the internal %.*s collection",
                               (int)MIN(target->collection.len, (size_t)NAME_SHOWN_MAX),
                               (const char *)target->collection.data);
    return true;
}

static bool is_asked(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED;
}

static bool start_find(struct mongo_stream *stream, const struct asked *asked, uint64_t now,
                       struct error *err)
{
    const struct document_value *token =
        is_asked(&asked->resume_after) ? &asked->resume_after : &asked->start_after;

    if (is_asked(&asked->resume_after) + is_asked(&asked->start_after) +
            is_asked(&asked->start_at) >
        1)
        return mongo_error_set(err, 40674,
                               "Only one type of resume option is allowed, but multiple were "
                               "found.");
    stream->at = mongo_token_behind(now);
    if (is_asked(&asked->start_at))
        stream->at =
            mongo_token_behind(asked->start_at.timestamp ? asked->start_at.timestamp - 1 : 0);
    if (!is_asked(token))
        return true;
    if (!mongo_token_read(token->document, &stream->at, err))
        return false;
    stream->fragments_left = stream->at.fragment;
    if (stream->at.invalidated && is_asked(&asked->resume_after))
        return mongo_error_set(err, MONGO_INVALID_RESUME_TOKEN,
                               "Attempting to resume a change stream using 'resumeAfter' is not "
                               "allowed from an invalidate notification.");
    return true;
}

bool mongo_stream_init(struct mongo_stream *stream, const struct mongo_stream_target *target,
                       struct slice specification, uint64_t now, struct error *err)
{
    struct asked asked = {.resume_after = document_undefined(),
                          .start_after = document_undefined(),
                          .start_at = document_undefined()};
    struct document_iter iter;

    *stream = (struct mongo_stream){.target = *target};
    document_iter_init(&iter, specification);
    while (document_iter_next(&iter))
        if (iter.value.type != DOCUMENT_NULL && iter.value.type != DOCUMENT_UNDEFINED &&
            !option_take(stream, &asked, iter.key, &iter.value, err))
            return false;
    return target_check(&stream->target, err) && start_find(stream, &asked, now, err);
}

uint64_t mongo_stream_hash(const struct mongo_stream *stream)
{
    return history_hash(stream->target.account, stream->target.database, stream->target.collection);
}

/* --- What it is about ------------------------------------------------------------------------ */

static bool is_item(enum history_kind kind)
{
    return kind < HISTORY_CREATE;
}

/* Told without being asked for expanded events? */
static bool is_plain(enum history_kind kind)
{
    return is_item(kind) || kind == HISTORY_DROP || kind == HISTORY_RENAME ||
           kind == HISTORY_DROP_DATABASE;
}

static bool is_renamed_to(const struct history_record *record, struct slice name)
{
    struct document_value to;

    return record->kind == HISTORY_RENAME && document_find(record->payload, SLICE("t"), &to) &&
           to.type == DOCUMENT_STRING && slice_equal(to.text, name);
}

static bool is_about(const struct mongo_stream *stream, const struct history_record *record)
{
    const struct mongo_stream_target *target = &stream->target;
    const struct history_origin *origin = &record->origin;

    if (origin->account != target->account || record->kind == HISTORY_TOUCHED ||
        (!is_plain(record->kind) && !stream->options.expanded))
        return false;
    if (target->database.len && !slice_equal(target->database, origin->database_name))
        return false;
    if (!target->collection.len)
        return !slice_starts_with(origin->container_name, SLICE("system."));
    return slice_equal(target->collection, origin->container_name) ||
           is_renamed_to(record, target->collection);
}

/* Does the stream end with it? One on everything never does. */
static bool invalidates(const struct mongo_stream *stream, enum history_kind kind)
{
    if (stream->target.collection.len)
        return kind == HISTORY_DROP || kind == HISTORY_RENAME;
    return stream->target.database.len && kind == HISTORY_DROP_DATABASE;
}

/* Was everything there that a walk from behind this time had to find? */
static bool walk_check(const struct cluster *cluster, uint64_t time, struct error *err)
{
    bool lost;

    if (!cluster_walk_lost(cluster, time, &lost, err))
        return false;
    return !lost || mongo_error_set(err, MONGO_CHANGE_STREAM_HISTORY_LOST,
                                    "Resume of change stream was not possible, as the resume point "
                                    "may no longer be in the oplog.");
}

/* --- Resuming -------------------------------------------------------------------------------- */

/* The record at a place, on whichever node. */
static bool record_find(const struct cluster *cluster, struct history_place place,
                        struct arena *arena, struct history_record *ret_record, bool *ret_found,
                        struct error *err)
{
    struct slice key = history_key_encode(place, arena);

    *ret_found = false;
    for (size_t i = 0; i < cluster_count(cluster) && !*ret_found; i++) {
        const struct cluster_node *node = cluster_at(cluster, i);
        struct engine_value value;

        if (!cluster_node_is_member(node))
            continue;
        if (!engine_get(node->engine, NULL, PARTITION_HISTORY, key, ENGINE_READ_ANY, arena, &value,
                        err))
            return false;
        *ret_found = value.found == ENGINE_FOUND;
        if (*ret_found && !history_record_decode(key, value.bytes, ret_record, err))
            return false;
    }
    return true;
}

/* Who resumes behind a drop has not seen the invalidation that follows it. */
bool mongo_stream_resume(struct mongo_stream *stream, const struct cluster *cluster,
                         struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct history_record record;
    bool found;

    if (!walk_check(cluster, stream->at.place.time, err))
        return false;
    if (!mongo_token_is_event(&stream->at))
        return true;
    if (!record_find(cluster, stream->at.place, arena, &record, &found, err))
        return false;
    /* it may have gone with its node, and others of its time with it */
    if (!found && !walk_check(cluster, stream->at.place.time - 1, err))
        return false;
    if (!found)
        return mongo_error_set(err, MONGO_CHANGE_STREAM_FATAL_ERROR,
                               "cannot resume stream; the resume token was not found.");
    stream->invalidating =
        !stream->at.invalidated && is_about(stream, &record) && invalidates(stream, record.kind);
    return true;
}

/* --- Reading --------------------------------------------------------------------------------- */

/* One batch on its way. The stream is changed when all of it is there. */
struct reading {
    struct mongo_stream stream;
    struct mongo_stream_batch *batch;
    struct buf event;
};

static bool event_give(struct reading *reading, struct error *err)
{
    struct mongo_stream_batch *batch = reading->batch;

    batch->events++;
    batch->bytes += reading->event.len;
    return batch->event(batch->self, buf_slice(&reading->event), err);
}

/* The end of the stream, as an event of its own. */
static bool invalidation_tell(struct reading *reading, int64_t wall_ms, struct error *err)
{
    struct mongo_stream *stream = &reading->stream;

    stream->at.invalidated = true;
    stream->invalidating = false;
    stream->over = true;
    buf_clear(&reading->event);
    mongo_event_invalidate(&stream->at, wall_ms, &reading->event);
    return event_give(reading, err);
}

/* *ret_fits false: it is for the next batch. */
static bool record_tell(struct reading *reading, const struct history_record *record,
                        bool *ret_fits, struct error *err)
{
    const struct mongo_stream_batch *batch = reading->batch;
    struct mongo_stream *stream = &reading->stream;
    const struct mongo_event_terms terms = {.options = &stream->options,
                                            .lookup = reading->batch->lookup,
                                            .self = reading->batch->self};

    buf_clear(&reading->event);
    if (!mongo_event_append(record, &terms, &reading->event, err))
        return false;
    *ret_fits = !batch->events || batch->bytes + reading->event.len <= batch->bytes_max;
    if (!*ret_fits)
        return true;
    if (!event_give(reading, err))
        return false;
    stream->invalidating = invalidates(stream, record->kind);
    return true;
}

static bool is_full(const struct mongo_stream_batch *batch, size_t records)
{
    return batch->events >= batch->events_max ||
           (batch->events && batch->bytes >= batch->bytes_max) || records >= batch->records_max;
}

/* Up to what is settled. *ret_all: all of that was looked at. */
static bool records_read(struct reading *reading, struct cluster_walk *walk, bool *ret_all,
                         struct error *err)
{
    struct mongo_stream *stream = &reading->stream;
    struct history_record record;
    size_t records = 0;

    *ret_all = false;
    while (!stream->over) {
        struct mongo_token before = stream->at;
        bool found, fits;

        if (is_full(reading->batch, records))
            return true;
        if (!cluster_walk_next(walk, &record, &found, err))
            return false;
        if (!found) {
            *ret_all = true;
            return true;
        }
        records++;
        stream->at = (struct mongo_token){.place = record.place};
        if (!is_about(stream, &record))
            continue;
        if (!record_tell(reading, &record, &fits, err))
            return false;
        if (!fits) {
            stream->at = before;
            return true;
        }
        if (stream->invalidating && !is_full(reading->batch, records) &&
            !invalidation_tell(reading, record.wall_ms, err))
            return false;
        if (stream->invalidating)
            return true;
    }
    return true;
}

static struct history_place place_before(struct history_place place)
{
    if (place.ordinal-- == 0 && place.origin-- == 0)
        place.time--;
    return place;
}

static bool batch_read(struct reading *reading, struct cluster *cluster, uint64_t settled,
                       struct error *err)
{
    CLEANUP(cluster_walk_free) struct cluster_walk *walk = NULL;
    struct history_place after = reading->stream.at.place;
    uint64_t from = after.time;
    bool all;

    if (reading->stream.fragments_left)
        after = place_before(after);
    if (reading->stream.invalidating)
        return is_full(reading->batch, 0) ||
               invalidation_tell(reading, (int64_t)(from >> 32) * 1000, err);
    if (!cluster_walk_new(cluster, after, settled, &walk, err) ||
        !records_read(reading, walk, &all, err) || !walk_check(cluster, from, err))
        return false;
    if (all)
        reading->stream.at = mongo_token_behind(MAX(settled, from));
    return true;
}

bool mongo_stream_read(struct mongo_stream *stream, struct cluster *cluster,
                       struct mongo_stream_batch *batch, struct error *err)
{
    struct commit_clock *times = cluster_times(cluster);
    uint64_t settled = commit_clock_settled(times), from = stream->at.place.time;
    struct reading reading = {.stream = *stream, .batch = batch};
    bool fine = true;

    if (stream->over)
        return true;
    /* Nothing of it was written since: there is no need to look at what others wrote. Behind an
     * event there may be others of its commit, which have the same time. */
    if (!stream->invalidating && !stream->fragments_left && from >= commit_clock_started(times) &&
        commit_clock_noted(times, mongo_stream_hash(stream)) <=
            from - mongo_token_is_event(&stream->at)) {
        if (settled > from)
            stream->at = mongo_token_behind(settled);
        return true;
    }
    buf_init(&reading.event, MONGO_EVENT_BYTES_MAX);
    fine = batch_read(&reading, cluster, settled, err);
    reading.stream.fragments_left = false; /* whoever splits says so again */
    buf_done(&reading.event);
    if (fine)
        *stream = reading.stream;
    return fine;
}
