#include "front/mongo/stream/event.h"

#include "document/bson.h"
#include "front/mongo/error.h"
#include "front/mongo/uuid.h"

static const char *kind_name(enum history_kind kind)
{
    switch (kind) {
    case HISTORY_INSERT:
        return "insert";
    case HISTORY_UPDATE:
        return "update";
    case HISTORY_REPLACE:
        return "replace";
    case HISTORY_DELETE:
        return "delete";
    case HISTORY_CREATE:
        return "create";
    case HISTORY_DROP:
        return "drop";
    case HISTORY_RENAME:
        return "rename";
    case HISTORY_DROP_DATABASE:
        return "dropDatabase";
    case HISTORY_CREATE_INDEXES:
        return "createIndexes";
    case HISTORY_DROP_INDEXES:
        return "dropIndexes";
    case HISTORY_MODIFY:
        return "modify";
    case HISTORY_SHARD:
        return "shardCollection";
    case HISTORY_RESHARD:
        return "reshardCollection";
    case HISTORY_REFINE:
        return "refineCollectionShardKey";
    case HISTORY_TOUCHED: /* no stream is about it */
        break;
    }
    return NULL;
}

static void head_append(const struct mongo_token *token, const char *kind, int64_t wall_ms,
                        struct buf *out)
{
    const struct document_value time = {.type = DOCUMENT_TIMESTAMP, .timestamp = token->place.time};

    mongo_token_append(out, SLICE("_id"), token);
    document_append_string(out, SLICE("operationType"), slice_of_text(kind));
    document_append(out, SLICE("clusterTime"), &time);
    document_append_date(out, SLICE("wallTime"), wall_ms);
}

void mongo_event_invalidate(const struct mongo_token *token, int64_t wall_ms, struct buf *out)
{
    size_t begin = document_begin(out);

    head_append(token, "invalidate", wall_ms, out);
    document_end(out, begin);
}

static void namespace_append(const struct history_origin *origin, struct slice name,
                             struct slice collection, struct buf *out)
{
    size_t begin = document_append_object_begin(out, name);

    document_append_string(out, SLICE("db"), origin->database_name);
    if (collection.len)
        document_append_string(out, SLICE("coll"), collection);
    document_end(out, begin);
}

static bool part_of(const struct history_record *record, const char *name,
                    struct document_value *ret_value)
{
    return record->payload.len && document_find(record->payload, slice_of_text(name), ret_value) &&
           ret_value->type == DOCUMENT_OBJECT;
}

/* --- Items ----------------------------------------------------------------------------------- */

static bool image_missing(const char *which, struct error *err)
{
    return mongo_error_set(err, MONGO_NO_MATCHING_DOCUMENT,
                           "Change stream was configured to require a %s for all update, delete "
                           "and replace events, but the %s was not found: set "
                           "changeStreamPreAndPostImages of the collection",
                           which, which);
}

static bool looked_up(const struct history_record *record, const struct mongo_event_terms *terms,
                      struct buf *out, struct error *err)
{
    struct document_value key;
    CLEANUP(buf_done) struct buf found;
    bool there = false;

    buf_init(&found, MONGO_EVENT_BYTES_MAX);
    if (part_of(record, "k", &key) &&
        !terms->lookup(terms->self, &record->origin, key.document, &found, &there, err))
        return false;
    if (there) {
        const struct document_value value = document_object(buf_slice(&found));

        document_append(out, SLICE("fullDocument"), &value);
    } else {
        document_append_null(out, SLICE("fullDocument"));
    }
    return true;
}

static bool full_append(const struct history_record *record, const struct mongo_event_terms *terms,
                        struct buf *out, struct error *err)
{
    enum mongo_full_document full = terms->options->full;
    struct document_value value;

    if (record->kind == HISTORY_DELETE)
        return true;
    if (record->kind != HISTORY_UPDATE) {
        if (part_of(record, "d", &value))
            document_append(out, SLICE("fullDocument"), &value);
        return true;
    }
    if (full == MONGO_FULL_DEFAULT)
        return true;
    if (full == MONGO_FULL_LOOKUP)
        return looked_up(record, terms, out, err);
    if (part_of(record, "a", &value))
        document_append(out, SLICE("fullDocument"), &value);
    else if (full == MONGO_FULL_REQUIRED)
        return image_missing("post-image", err);
    else
        document_append_null(out, SLICE("fullDocument"));
    return true;
}

static bool before_append(const struct history_record *record,
                          const struct mongo_event_terms *terms, struct buf *out, struct error *err)
{
    struct document_value value;

    if (terms->options->before == MONGO_BEFORE_OFF || record->kind == HISTORY_INSERT)
        return true;
    if (part_of(record, "b", &value))
        document_append(out, SLICE("fullDocumentBeforeChange"), &value);
    else if (terms->options->before == MONGO_BEFORE_REQUIRED)
        return image_missing("pre-image", err);
    else
        document_append_null(out, SLICE("fullDocumentBeforeChange"));
    return true;
}

/* How paths are to be read that could be read in two ways is told to those who ask for more. */
static void description_append(const struct history_record *record, bool expanded, struct buf *out)
{
    struct document_value description, paths;
    struct document_iter iter;
    size_t begin;

    if (!part_of(record, "u", &description))
        return;
    begin = document_append_object_begin(out, SLICE("updateDescription"));
    document_iter_init(&iter, description.document);
    while (document_iter_next(&iter))
        if (expanded || !slice_equal(iter.key, SLICE("disambiguatedPaths")))
            document_append(out, iter.key, &iter.value);
    if (expanded && !document_find(description.document, SLICE("disambiguatedPaths"), &paths))
        document_end(out, document_append_object_begin(out, SLICE("disambiguatedPaths")));
    document_end(out, begin);
}

static bool item_append(const struct history_record *record, const struct mongo_event_terms *terms,
                        struct buf *out, struct error *err)
{
    struct document_value key;

    if (!full_append(record, terms, out, err))
        return false;
    namespace_append(&record->origin, SLICE("ns"), record->origin.container_name, out);
    if (part_of(record, "k", &key))
        document_append(out, SLICE("documentKey"), &key);
    if (record->kind == HISTORY_UPDATE)
        description_append(record, terms->options->expanded, out);
    return before_append(record, terms, out, err);
}

/* --- Collections and databases --------------------------------------------------------------- */

static void id_index_append(struct buf *out)
{
    size_t index = document_append_object_begin(out, SLICE("idIndex")), key;

    document_append_int32(out, SLICE("v"), 2);
    key = document_append_object_begin(out, SLICE("key"));
    document_append_int32(out, SLICE("_id"), 1);
    document_end(out, key);
    document_append_string(out, SLICE("name"), SLICE("_id_"));
    document_end(out, index);
}

static void operation_append(const struct history_record *record, struct buf *out)
{
    struct document_value description, to, dropped;
    int64_t number;
    size_t begin;

    if (part_of(record, "o", &description)) {
        document_append(out, SLICE("operationDescription"), &description);
        return;
    }
    begin = document_append_object_begin(out, SLICE("operationDescription"));
    if (record->kind == HISTORY_CREATE)
        id_index_append(out);
    if (record->kind == HISTORY_RENAME && document_find(record->payload, SLICE("t"), &to)) {
        namespace_append(&record->origin, SLICE("to"), to.text, out);
        if (document_find(record->payload, SLICE("x"), &dropped) &&
            document_to_int64(&dropped, &number))
            mongo_uuid_append_numbers(record->origin.account, record->origin.database,
                                      (uint32_t)number, SLICE("dropTarget"), out);
    }
    document_end(out, begin);
}

static void catalogue_append(const struct history_record *record, bool expanded, struct buf *out)
{
    struct document_value to;

    namespace_append(&record->origin, SLICE("ns"), record->origin.container_name, out);
    if (record->kind == HISTORY_RENAME && document_find(record->payload, SLICE("t"), &to))
        namespace_append(&record->origin, SLICE("to"), to.text, out);
    if (expanded && record->kind != HISTORY_DROP && record->kind != HISTORY_DROP_DATABASE)
        operation_append(record, out);
}

bool mongo_event_append(const struct history_record *record, const struct mongo_event_terms *terms,
                        struct buf *out, struct error *err)
{
    const struct mongo_token token = {.place = record->place};
    const char *kind = kind_name(record->kind);
    size_t begin = document_begin(out);

    if (!kind)
        return error_set(err, ERROR_STORE_VERSION, "a record of the history is a later server's");
    head_append(&token, kind, record->wall_ms, out);
    if (terms->options->expanded && record->origin.container)
        mongo_uuid_append_numbers(record->origin.account, record->origin.database,
                                  record->origin.container, SLICE("collectionUUID"), out);
    if (record->kind >= HISTORY_CREATE)
        catalogue_append(record, terms->options->expanded, out);
    else if (!item_append(record, terms, out, err))
        return false;
    document_end(out, begin);
    return true;
}
