/* A ring of rows as $listSampledQueries shows them, each with the account that it is of. Rows are
 * small and few are taken in a second: a lock around a copy is all. */
#include "front/mongo/command/samples.h"

#include "base/random.h"
#include "base/thread.h"
#include "document/bson.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/command/source.h"
#include "front/mongo/uuid.h"

struct sample {
    uint32_t account;
    int64_t expires_ms; /* of the wall clock */
    size_t len;
    uint8_t *bytes; /* owned; NULL: none */
};

struct mongo_samples {
    struct mutex lock; /* a leaf */
    size_t next;
    struct sample list[MONGO_SAMPLES_MAX];
};

struct mongo_samples *mongo_samples_new(void)
{
    struct mongo_samples *samples = MEMORY_NEW(struct mongo_samples);

    mutex_init(&samples->lock);
    return samples;
}

void mongo_samples_free(struct mongo_samples *samples)
{
    if (!samples)
        return;
    for (size_t i = 0; i < MONGO_SAMPLES_MAX; i++)
        memory_free(samples->list[i].bytes);
    mutex_done(&samples->lock);
    memory_free(samples);
}

static void uuid_append(struct buf *row)
{
    uint8_t bytes[16];
    const struct document_value uuid = {
        .type = DOCUMENT_BINARY, .binary = {.bytes = slice_of(bytes, sizeof bytes), .subtype = 4}};

    random_secret(bytes, sizeof bytes);
    bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x40);
    bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80);
    document_append(row, SLICE("_id"), &uuid);
}

/* {filter, collation, let} */
static void command_append(const struct mongo_call *call, struct slice filter, struct buf *row)
{
    static const struct slice names[] = {SLICE("collation"), SLICE("let")};
    const struct document_value given = document_object(filter);
    size_t command = document_append_object_begin(row, SLICE("cmd"));

    if (filter.data)
        document_append(row, SLICE("filter"), &given);
    else
        document_end(row, document_append_object_begin(row, SLICE("filter")));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct document_value value;

        if (document_find(call->message.body, names[i], &value) && value.type == DOCUMENT_OBJECT)
            document_append(row, names[i], &value);
    }
    document_end(row, command);
}

void mongo_samples_add(const struct mongo_call *call, const struct mongo_collection *collection,
                       struct slice filter)
{
    struct mongo_samples *samples = call->mongo->samples;
    struct sample made = {.account = container_account_number(collection->container),
                          .expires_ms =
                              clock_read_wall_ms(call->services->clock) + MONGO_SAMPLE_MS};
    CLEANUP(buf_done) struct buf row;
    struct sample old = {0};
    size_t begin;

    buf_init(&row, BUF_DEFAULT_MAX);
    if (filter.len > MONGO_SAMPLE_BYTES_MAX || call->message.body.len > MONGO_SAMPLE_BYTES_MAX)
        return;
    begin = document_begin(&row);
    uuid_append(&row);
    document_append_string(&row, SLICE("ns"),
                           arena_printf(call->arena, "%.*s.%.*s", SLICE_ARG(call->message.database),
                                        SLICE_ARG(container_info(collection->container)->id)));
    mongo_uuid_append(collection->container, SLICE("collectionUuid"), &row);
    document_append_string(&row, SLICE("cmdName"), slice_of_text(call->command->name));
    command_append(call, filter, &row);
    document_append_date(&row, SLICE("expireAt"), made.expires_ms);
    document_end(&row, begin);
    if (buf_overflowed(&row))
        return;
    made.len = row.len;
    made.bytes = memory_alloc(row.len);
    memcpy(made.bytes, row.data, row.len);
    WITH_LOCK (&samples->lock) {
        old = samples->list[samples->next];
        samples->list[samples->next] = made;
        samples->next = (samples->next + 1) % MONGO_SAMPLES_MAX;
    }
    memory_free(old.bytes);
}

/* --- $listSampledQueries -----------------------------------------------------------------------
 */

struct listing {
    struct slice name; /* of a collection; data NULL: all */
};

static bool row_add(struct mongo_rows *rows, struct slice sample, struct error *err)
{
    CLEANUP(buf_done) struct buf row;
    struct document_iter iter;
    size_t begin;

    buf_init(&row, BUF_DEFAULT_MAX);
    begin = mongo_row_begin(&row);
    document_iter_init(&iter, sample);
    while (document_iter_next(&iter))
        document_append(&row, iter.key, &iter.value);
    return mongo_row_end(rows, begin, &row, err);
}

/* Those of the account, the oldest first, copied under the lock. */
static size_t samples_copy(const struct mongo_call *call, struct slice **ret_list)
{
    struct mongo_samples *samples = call->mongo->samples;
    int64_t now_ms = clock_read_wall_ms(call->services->clock);
    uint32_t account =
        call->account.account ? account_info(call->account.account)->number : UINT32_MAX;
    struct slice *list = ARENA_ARRAY(call->arena, struct slice, MONGO_SAMPLES_MAX);
    size_t count = 0;

    WITH_LOCK (&samples->lock) {
        for (size_t i = 0; i < MONGO_SAMPLES_MAX; i++) {
            const struct sample *sample = &samples->list[(samples->next + i) % MONGO_SAMPLES_MAX];

            if (sample->bytes && sample->account == account && sample->expires_ms > now_ms)
                list[count++] = arena_copy(call->arena, slice_of(sample->bytes, sample->len));
        }
    }
    *ret_list = list;
    return count;
}

bool mongo_source_sampled_queries(const struct mongo_source *source, struct mongo_rows *rows,
                                  struct error *err)
{
    static const struct mongo_field fields[] = {
        {"namespace", MONGO_FIELD_STRING, offsetof(struct listing, name)}};
    struct listing listing = {0};
    struct slice *list;
    size_t count;

    if (!slice_equal(source->name->database, SLICE("admin")))
        return mongo_error_set(err, MONGO_INVALID_NAMESPACE,
                               "$listSampledQueries must be run against the 'admin' database with "
                               "{aggregate: 1}");
    if (source->specification->type != DOCUMENT_OBJECT)
        return mongo_error_set(err, 6876000,
                               "$listSampledQueries must take a nested object but found: %s",
                               mongo_type_name(source->specification->type));
    if (!mongo_fields_read(source->specification->document, "$listSampledQueries", fields,
                           ARRAY_LEN(fields), &listing, err))
        return false;
    count = samples_copy(rows->call, &list);
    for (size_t i = 0; i < count; i++) {
        struct document_value ns;

        if (listing.name.data && document_find(list[i], SLICE("ns"), &ns) &&
            !slice_equal(ns.text, listing.name))
            continue;
        if (!row_add(rows, list[i], err))
            return false;
    }
    return true;
}
