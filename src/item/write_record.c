#include "item/write_record.h"

#include "base/bytes.h"
#include "partition/layout.h"

enum { VALUE_HEAD = 16, SWEEP_LOOKS_PER_REMOVAL = 64 };

struct slice write_record_key(const struct write_record *record, struct slice logical,
                              struct arena *arena)
{
    uint8_t *key = arena_alloc(arena, WRITE_RECORD_PREFIX_LEN + logical.len);

    key[0] = PARTITION_FAMILY_RECORD;
    memcpy(key + 1, record->session, WRITE_RECORD_SESSION_LEN);
    bytes_put_be32(key + 1 + WRITE_RECORD_SESSION_LEN, record->statement);
    memcpy(key + WRITE_RECORD_PREFIX_LEN, logical.data, logical.len);
    return slice_of(key, WRITE_RECORD_PREFIX_LEN + logical.len);
}

struct slice write_record_value(const struct write_record *record, struct arena *arena)
{
    uint8_t *value = arena_alloc(arena, VALUE_HEAD + record->outcome.len);

    bytes_put_be64(value, (uint64_t)record->number);
    bytes_put_be64(value + 8, (uint64_t)record->wall_ms);
    if (record->outcome.len)
        memcpy(value + VALUE_HEAD, record->outcome.data, record->outcome.len);
    return slice_of(value, VALUE_HEAD + record->outcome.len);
}

static bool decode(struct slice key, struct slice value, struct write_record *ret_record,
                   struct error *err)
{
    if (key.len <= WRITE_RECORD_PREFIX_LEN || value.len < VALUE_HEAD)
        return error_set(err, ERROR_STORE_CORRUPT, "the record of a write is cut short");
    *ret_record =
        (struct write_record){.session = key.data + 1,
                              .statement = bytes_get_be32(key.data + 1 + WRITE_RECORD_SESSION_LEN),
                              .number = (int64_t)bytes_get_be64(value.data),
                              .wall_ms = (int64_t)bytes_get_be64(value.data + 8),
                              .outcome = slice_skip(value, VALUE_HEAD)};
    return true;
}

/* --- Finding --------------------------------------------------------------------------------- */

static void keep(struct write_records *records, size_t *capacity, const struct write_record *record,
                 struct arena *arena)
{
    if (records->count == *capacity) {
        struct write_record *list;

        *capacity = *capacity ? *capacity * 2 : 16;
        list = ARENA_ARRAY(arena, struct write_record, *capacity);
        if (records->count)
            memcpy(list, records->list, records->count * sizeof *list);
        records->list = list;
    }
    records->list[records->count] = *record;
    records->list[records->count].session = NULL; /* the caller's, who knows it */
    records->list[records->count++].outcome = arena_copy(arena, record->outcome);
}

static bool partition_find(const struct item_scope *scope, const uint8_t *session, int64_t number,
                           struct arena *arena, struct write_records *records, size_t *capacity,
                           struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    uint8_t min[1 + WRITE_RECORD_SESSION_LEN] = {PARTITION_FAMILY_RECORD};
    uint8_t max[2 + WRITE_RECORD_SESSION_LEN];
    struct engine_entry entry;

    memcpy(min + 1, session, WRITE_RECORD_SESSION_LEN);
    memcpy(max, min, sizeof min);
    max[sizeof min] = 0xFF; /* statements are below it */
    if (!engine_iterator_new(
            scope->engine, NULL, scope->partition,
            (struct engine_range){slice_of(min, sizeof min), slice_of(max, sizeof max)}, false,
            ENGINE_READ_ANY, &iterator, err))
        return false;
    for (;;) {
        struct write_record record;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!decode(entry.key, entry.value, &record, err))
            return false;
        records->number_max = MAX(records->number_max, record.number);
        if (record.number != number)
            continue;
        if (records->count == WRITE_RECORDS_MAX)
            return error_set(err, ERROR_TOO_LARGE, "a request has more than %d records",
                             WRITE_RECORDS_MAX);
        keep(records, capacity, &record, arena);
    }
}

bool write_records_find(const struct item_space *space, const uint8_t *session, int64_t number,
                        struct arena *arena, struct write_records *ret_records, struct error *err)
{
    struct write_records records = {.number_max = -1};
    size_t count, capacity = 0;
    const struct partition_span *spans = partition_map_spans(space->map, &count);

    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(space, &spans[i]);

        if (!partition_find(&scope, session, number, arena, &records, &capacity, err))
            return false;
    }
    *ret_records = records;
    return true;
}

/* An empty batch comes behind all others; what is decided elsewhere has a window. */
static bool partition_settle(const struct item_scope *scope, struct error *err)
{
    struct commit_agreed asks = {.step = COMMIT_CONFIRM};
    struct commit_part part = {.partition = scope->partition, .epoch = scope->epoch};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON, .agreed = &asks};

    return pledges_await(commit_pledges(scope->commit), pledge_bit(scope->partition),
                         PLEDGE_BEFORE_READING, err) &&
           commit_run(scope->commit, &batch, err);
}

bool write_records_settle(const struct item_space *space, struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(space->map, &count);

    for (size_t i = 0; i < count; i++) {
        struct item_scope scope = item_space_span_scope(space, &spans[i]);

        if (!partition_settle(&scope, err))
            return false;
    }
    return true;
}

/* --- Sweeping -------------------------------------------------------------------------------- */

static bool commit_removals(const struct item_scope *scope, struct engine_op *ops, size_t count,
                            struct error *err)
{
    struct commit_part part = {
        .partition = scope->partition, .epoch = scope->epoch, .ops = ops, .op_count = count};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

    return !count || commit_run(scope->commit, &batch, err);
}

bool write_records_sweep(const struct item_scope *scope, int64_t before_ms, size_t max,
                         struct buf *position, bool *ret_more, size_t *ret_removed,
                         struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    static const uint8_t first[] = {PARTITION_FAMILY_RECORD},
                         last[] = {PARTITION_FAMILY_RECORD + 1};
    struct engine_range range = {slice_of(first, 1), slice_of(last, 1)};
    struct engine_op *ops = ARENA_ARRAY(arena, struct engine_op, max);
    size_t count = 0, looks = 0;
    struct engine_entry entry = {.found = ENGINE_FOUND};

    if (position->len)
        range.min = buf_slice(position);
    if (!engine_iterator_new(scope->engine, NULL, scope->partition, range, false, ENGINE_READ_ONCE,
                             &iterator, err))
        return false;
    while (count < max && looks++ < max * SWEEP_LOOKS_PER_REMOVAL) {
        struct write_record record = {0};

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        if (!decode(entry.key, entry.value, &record, err))
            return false;
        buf_clear(position);
        buf_append_slice(position, entry.key);
        buf_append_byte(position, 0);
        if (record.wall_ms < before_ms)
            ops[count++] =
                (struct engine_op){ENGINE_DELETE, arena_copy(arena, entry.key), SLICE_NONE};
    }
    *ret_more = entry.found == ENGINE_FOUND;
    *ret_removed = count;
    return commit_removals(scope, ops, count, err);
}
