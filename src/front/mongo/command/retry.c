#include "front/mongo/command/retry.h"

#include <stdlib.h>

struct mongo_retry {
    int64_t number;
    bool look;
    int64_t first; /* of the statements */
    int64_t *ids;  /* of each statement; NULL: they count from the first */
    size_t id_count;
    struct write_records records; /* by statement */
    int32_t *retried_ids;
    size_t retried_count, retried_capacity;
};

static void ids_read(struct mongo_retry *retry, struct slice list, struct arena *arena)
{
    struct document_iter iter;

    retry->ids = ARENA_ARRAY(arena, int64_t, document_count(list) + 1);
    document_iter_init(&iter, list);
    while (document_iter_next(&iter) &&
           document_to_int64(&iter.value, &retry->ids[retry->id_count]))
        retry->id_count++;
}

void mongo_retry_begin(struct mongo_call *call, int64_t number, bool look)
{
    struct mongo_retry *retry = ARENA_NEW(call->arena, struct mongo_retry);
    struct document_value value;

    call->retry = retry;
    retry->number = number;
    retry->look = look;
    if (document_find(call->message.body, SLICE("stmtIds"), &value) && value.type == DOCUMENT_ARRAY)
        ids_read(retry, value.document, call->arena);
    if (document_find(call->message.body, SLICE("stmtId"), &value))
        (void)document_to_int64(&value, &retry->first);
}

static int statement_compare(const void *left, const void *right)
{
    const struct write_record *a = left, *b = right;

    return (a->statement > b->statement) - (a->statement < b->statement);
}

bool mongo_retry_load(struct mongo_call *call, const struct mongo_collection *collection,
                      struct error *err)
{
    struct mongo_retry *retry = call->retry;

    if (!retry || !retry->look || !collection->container)
        return true;
    if (!write_records_find(&collection->space, call->logical->name, retry->number, call->arena,
                            &retry->records, err))
        return false;
    if (retry->records.number_max > retry->number)
        return mongo_error_set(err, MONGO_TRANSACTION_TOO_OLD,
                               "Retryable write with txnNumber %lld is prohibited on session "
                               "because a newer retryable write with txnNumber %lld has already "
                               "started on this session.",
                               (long long)retry->number, (long long)retry->records.number_max);
    if (retry->records.count)
        qsort(retry->records.list, retry->records.count, sizeof *retry->records.list,
              statement_compare);
    return true;
}

/* stmtIds[nth], or stmtId + nth, or nth. */
static uint32_t statement_of(const struct mongo_call *call, size_t nth)
{
    const struct mongo_retry *retry = call->retry;

    if (nth < retry->id_count)
        return (uint32_t)retry->ids[nth];
    return (uint32_t)retry->first + (uint32_t)nth;
}

static void retried_note(struct mongo_call *call, uint32_t statement)
{
    struct mongo_retry *retry = call->retry;

    if (retry->retried_count == retry->retried_capacity) {
        int32_t *ids;

        retry->retried_capacity = retry->retried_capacity ? retry->retried_capacity * 2 : 16;
        ids = ARENA_ARRAY(call->arena, int32_t, retry->retried_capacity);
        if (retry->retried_count)
            memcpy(ids, retry->retried_ids, retry->retried_count * sizeof *ids);
        retry->retried_ids = ids;
    }
    retry->retried_ids[retry->retried_count++] = (int32_t)statement;
}

static int32_t number_of(struct slice document, const char *name)
{
    struct document_value value;
    int64_t number = 0;

    if (document_find(document, slice_of_text(name), &value))
        (void)document_to_int64(&value, &number);
    return (int32_t)number;
}

bool mongo_retry_find(struct mongo_call *call, size_t nth, struct mongo_outcome *ret_outcome)
{
    struct mongo_retry *retry = call->retry;
    const struct write_record *record;
    struct write_record wanted;
    struct document_value image;

    if (!retry || !retry->records.count)
        return false;
    wanted.statement = statement_of(call, nth);
    record = bsearch(&wanted, retry->records.list, retry->records.count, sizeof wanted,
                     statement_compare);
    if (!record || !record->outcome.len)
        return false;
    *ret_outcome = (struct mongo_outcome){.matched = number_of(record->outcome, "n"),
                                          .modified = number_of(record->outcome, "m"),
                                          .upserted = document_undefined()};
    (void)document_find(record->outcome, SLICE("u"), &ret_outcome->upserted);
    if (document_find(record->outcome, SLICE("i"), &image))
        ret_outcome->image = image.document;
    retried_note(call, wanted.statement);
    return true;
}

static struct slice outcome_bytes(const struct mongo_outcome *outcome, struct arena *arena)
{
    CLEANUP(buf_done) struct buf bytes;
    size_t whole;

    buf_init(&bytes, MONGO_BSON_BYTES_MAX + 4096);
    whole = document_begin(&bytes);
    document_append_int32(&bytes, SLICE("n"), outcome->matched);
    if (outcome->modified)
        document_append_int32(&bytes, SLICE("m"), outcome->modified);
    if (outcome->upserted.type != DOCUMENT_UNDEFINED)
        document_append(&bytes, SLICE("u"), &outcome->upserted);
    if (outcome->image.data) {
        const struct document_value image = document_object(outcome->image);

        document_append(&bytes, SLICE("i"), &image);
    }
    document_end(&bytes, whole);
    return arena_copy(arena, buf_slice(&bytes));
}

const struct write_record *mongo_retry_record(struct mongo_call *call, size_t nth,
                                              const struct mongo_outcome *outcome)
{
    struct write_record *record;

    if (!call->retry)
        return NULL;
    record = ARENA_NEW(call->arena, struct write_record);
    *record = (struct write_record){.session = call->logical->name,
                                    .statement = statement_of(call, nth),
                                    .number = call->retry->number,
                                    .wall_ms = clock_read_wall_ms(call->services->clock),
                                    .outcome = outcome_bytes(outcome, call->arena)};
    return record;
}

void mongo_retry_append(struct mongo_call *call)
{
    const struct mongo_retry *retry = call->retry;
    char text[DOCUMENT_INDEX_SIZE];
    size_t list;

    if (!retry || !retry->retried_count)
        return;
    list = document_append_array_begin(&call->reply, SLICE("retriedStmtIds"));
    for (size_t i = 0; i < retry->retried_count; i++)
        document_append_int32(&call->reply, document_index_key((uint32_t)i, text),
                              retry->retried_ids[i]);
    document_end(&call->reply, list);
}
