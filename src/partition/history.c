/* Trimming drops a range of keys at once and writes the mark before it does: who reads meanwhile
 * either finds all that is behind the mark, or is told that it has gone. */
#include "partition/history.h"

#include "base/bytes.h"
#include "partition/layout.h"

#include <xxhash.h>

enum {
    FORMAT = 1,
    FIXED_LEN = 22,
    MARK_LEN = 8,
    SLACK_PARTS = 64, /* of the retention: how much more is kept before it is removed */
    SLACK_MS_MIN = 1000,
    BYTES_SPARE_PARTS = 8, /* over the limit, one in so many of its bytes makes way besides */
    TRIM_BYTES = 64 * 1024 * 1024, /* at most in one call */
};

int history_place_compare(struct history_place a, struct history_place b)
{
    if (a.time != b.time)
        return a.time < b.time ? -1 : 1;
    if (a.origin != b.origin)
        return a.origin < b.origin ? -1 : 1;
    return (a.ordinal > b.ordinal) - (a.ordinal < b.ordinal);
}

static void key_write(struct history_place place, uint8_t ret_key[HISTORY_KEY_LEN])
{
    ret_key[0] = PARTITION_FAMILY_HISTORY;
    bytes_put_be64(ret_key + HISTORY_KEY_TIME_AT, place.time);
    bytes_put_be32(ret_key + 9, place.origin);
    bytes_put_be32(ret_key + 13, place.ordinal);
}

struct slice history_key_encode(struct history_place place, struct arena *arena)
{
    uint8_t *key = arena_alloc(arena, HISTORY_KEY_LEN);

    key_write(place, key);
    return slice_of(key, HISTORY_KEY_LEN);
}

static uint8_t *name_write(uint8_t *at, struct slice name)
{
    assert(name.len <= HISTORY_NAME_MAX);
    bytes_put_be16(at, (uint16_t)name.len);
    at += 2;
    if (name.len)
        memcpy(at, name.data, name.len);
    return at + name.len;
}

struct slice history_record_encode(const struct history_record *record, struct arena *arena)
{
    const struct history_origin *origin = &record->origin;
    size_t len = FIXED_LEN + 4 + origin->database_name.len + origin->container_name.len +
                 record->payload.len;
    uint8_t *bytes = arena_alloc(arena, len), *at = bytes + FIXED_LEN;

    bytes[0] = FORMAT;
    bytes[1] = (uint8_t)record->kind;
    bytes_put_be64(bytes + HISTORY_VALUE_WALL_AT, (uint64_t)record->wall_ms);
    bytes_put_be32(bytes + 10, origin->account);
    bytes_put_be32(bytes + 14, origin->database);
    bytes_put_be32(bytes + 18, origin->container);
    at = name_write(name_write(at, origin->database_name), origin->container_name);
    if (record->payload.len)
        memcpy(at, record->payload.data, record->payload.len);
    assert(at + record->payload.len == bytes + len);
    return slice_of(bytes, len);
}

static bool name_read(struct slice *rest, struct slice *ret_name)
{
    size_t len = rest->len < 2 ? SIZE_MAX : bytes_get_be16(rest->data);

    if (len == SIZE_MAX || rest->len - 2 < len)
        return false;
    *ret_name = slice_of(rest->data + 2, len);
    *rest = slice_skip(*rest, 2 + len);
    return true;
}

bool history_record_decode(struct slice key, struct slice value, struct history_record *ret_record,
                           struct error *err)
{
    struct history_record record = {0};
    struct slice rest;

    if (key.len != HISTORY_KEY_LEN || value.len < FIXED_LEN || value.data[0] != FORMAT)
        return error_set(err, ERROR_STORE_CORRUPT, "a record of the history has no known format");
    rest = slice_skip(value, FIXED_LEN);
    record.place = (struct history_place){.time = bytes_get_be64(key.data + HISTORY_KEY_TIME_AT),
                                          .origin = bytes_get_be32(key.data + 9),
                                          .ordinal = bytes_get_be32(key.data + 13)};
    record.kind = value.data[1];
    record.wall_ms = (int64_t)bytes_get_be64(value.data + HISTORY_VALUE_WALL_AT);
    record.origin.account = bytes_get_be32(value.data + 10);
    record.origin.database = bytes_get_be32(value.data + 14);
    record.origin.container = bytes_get_be32(value.data + 18);
    if (!name_read(&rest, &record.origin.database_name) ||
        !name_read(&rest, &record.origin.container_name))
        return error_set(err, ERROR_STORE_CORRUPT, "a record of the history is cut short");
    record.payload = rest;
    *ret_record = record;
    return true;
}

static struct slice counter_key(void)
{
    static const uint8_t key[] = {PARTITION_FAMILY_COUNTER, PARTITION_FAMILY_HISTORY};

    return slice_of(key, sizeof key);
}

struct commit_part history_part(struct engine_op *ops, size_t count, struct arena *arena)
{
    struct commit_delta *delta = ARENA_NEW(arena, struct commit_delta);

    delta->key = counter_key();
    delta->amounts[1] = (int64_t)count;
    for (size_t i = 0; i < count; i++)
        delta->amounts[0] += (int64_t)(ops[i].key.len + ops[i].value.len);
    return (struct commit_part){.partition = PARTITION_HISTORY,
                                .epoch = HISTORY_EPOCH,
                                .ops = ops,
                                .op_count = count,
                                .deltas = delta,
                                .delta_count = 1};
}

bool history_touched_number(const struct history_record *record, uint64_t *ret_number,
                            struct error *err)
{
    if (record->kind != HISTORY_TOUCHED || record->payload.len != 8)
        return error_set(err, ERROR_STORE_CORRUPT, "a record of the history has no number");
    *ret_number = bytes_get_be64(record->payload.data);
    return true;
}

/* --- What is noted --------------------------------------------------------------------------- */

uint64_t history_hash(uint32_t account, struct slice database, struct slice container)
{
    uint64_t hash = XXH3_64bits_withSeed(database.data, database.len, account);

    return XXH3_64bits_withSeed(container.data, container.len, hash);
}

void history_note(struct commit_clock *clock, const struct history_origin *origin, uint64_t time)
{
    struct slice database = origin->database_name, container = origin->container_name;

    commit_clock_note(clock, history_hash(origin->account, SLICE(""), SLICE("")), time);
    commit_clock_note(clock, history_hash(origin->account, database, SLICE("")), time);
    commit_clock_note(clock, history_hash(origin->account, database, container), time);
}

/* --- The partition --------------------------------------------------------------------------- */

/* All records, without the mark. */
static struct engine_range records(uint8_t min[HISTORY_KEY_LEN])
{
    static const uint8_t behind[] = {PARTITION_FAMILY_HISTORY + 1};

    key_write((struct history_place){.time = 1}, min);
    return (struct engine_range){.min = slice_of(min, HISTORY_KEY_LEN), .max = slice_of(behind, 1)};
}

/* The time of the first record, or the last; 0: there is none. */
static bool time_at_end(struct engine *engine, bool last, uint64_t *ret_time, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    uint8_t min[HISTORY_KEY_LEN];
    struct engine_entry entry;

    if (!engine_iterator_new(engine, NULL, PARTITION_HISTORY, records(min), last, ENGINE_READ_ANY,
                             &iterator, err) ||
        !engine_iterator_next(iterator, &entry, err))
        return false;
    *ret_time = 0;
    if (entry.found == ENGINE_FOUND && entry.key.len == HISTORY_KEY_LEN)
        *ret_time = bytes_get_be64(entry.key.data + HISTORY_KEY_TIME_AT);
    return true;
}

bool history_last(struct engine *engine, uint64_t *ret_time, struct error *err)
{
    return time_at_end(engine, true, ret_time, err);
}

/* What is noted of removed records; 0: nothing. */
static bool note_read(struct engine *engine, struct history_place place, uint64_t *ret_time,
                      struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint8_t key[HISTORY_KEY_LEN];
    struct engine_value value;

    key_write(place, key);
    if (!engine_get(engine, NULL, PARTITION_HISTORY, slice_of(key, sizeof key), ENGINE_READ_ANY,
                    arena, &value, err))
        return false;
    *ret_time = 0;
    if (value.found != ENGINE_FOUND)
        return true;
    if (value.bytes.len != MARK_LEN)
        return error_set(err, ERROR_STORE_CORRUPT, "the mark of the history is damaged");
    *ret_time = bytes_get_be64(value.bytes.data);
    return true;
}

static const struct history_place mark_place = {0}, gap_place = {.ordinal = 1};

bool history_mark(struct engine *engine, uint64_t *ret_time, struct error *err)
{
    uint64_t mark, gap;

    if (!note_read(engine, mark_place, &mark, err) || !note_read(engine, gap_place, &gap, err))
        return false;
    *ret_time = MAX(mark, gap);
    return true;
}

static bool note_write(struct commit *commit, struct history_place place, uint64_t time,
                       struct commit_delta *delta, struct error *err)
{
    uint8_t key[HISTORY_KEY_LEN], value[MARK_LEN];
    struct engine_op op = {ENGINE_PUT, slice_of(key, sizeof key), slice_of(value, sizeof value)};
    struct commit_part part = {.partition = PARTITION_HISTORY,
                               .epoch = HISTORY_EPOCH,
                               .ops = &op,
                               .op_count = 1,
                               .deltas = delta,
                               .delta_count = delta != NULL};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};

    key_write(place, key);
    bytes_put_be64(value, time);
    return commit_run(commit, &batch, err);
}

bool history_gap(struct engine *engine, struct commit *commit, uint64_t time, struct error *err)
{
    uint64_t before;

    return note_read(engine, gap_place, &before, err) &&
           (before >= time || note_write(commit, gap_place, time, NULL, err));
}

static bool partition_is_there(struct engine *engine, bool *ret_there, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_partition *partitions;
    size_t count;

    *ret_there = false;
    if (!engine_partition_list(engine, arena, &partitions, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        *ret_there |= partitions[i].id == PARTITION_HISTORY;
    return true;
}

size_t history_others(const struct engine_partition *partitions, size_t count)
{
    size_t others = 0;

    for (size_t i = 0; i < count; i++)
        others += partitions[i].id != PARTITION_HISTORY;
    return others;
}

bool history_join(struct engine *engine, struct commit_clock *clock, struct error *err)
{
    uint64_t last, mark;
    bool there;

    if (!partition_is_there(engine, &there, err))
        return false;
    if (!there)
        return engine_partition_create(engine, PARTITION_HISTORY, HISTORY_EPOCH, err);
    if (!time_at_end(engine, true, &last, err) || !history_mark(engine, &mark, err))
        return false;
    commit_clock_advance(clock, MAX(last, mark));
    return true;
}

bool history_size(struct engine *engine, struct history_size *ret_size, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    int64_t numbers[COUNTER_NUMBERS] = {0};
    struct engine_value value;

    if (!engine_get(engine, NULL, PARTITION_HISTORY, counter_key(), ENGINE_READ_ANY, arena, &value,
                    err) ||
        (value.found == ENGINE_FOUND && !counter_decode(value.bytes, numbers, err)))
        return false;
    *ret_size = (struct history_size){.bytes = (uint64_t)MAX(numbers[0], (int64_t)0),
                                      .records = (uint64_t)MAX(numbers[1], (int64_t)0)};
    return true;
}

/* --- Trimming -------------------------------------------------------------------------------- */

/* What is to go: all up to a time. */
struct trim {
    uint64_t horizon; /* what is before it goes */
    uint64_t bytes;   /* and so many, however young */
    uint64_t mark;    /* records up to here are gone for readers, and not counted any more */
    uint64_t time;    /* out: the last that goes; 0: none */
    int64_t removed_bytes, removed_records;
};

/* Transactions go whole: a time is passed or not. */
static bool trim_walk(struct engine *engine, struct trim *trim, struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    uint8_t min[HISTORY_KEY_LEN];
    uint64_t walked = 0;

    if (!engine_iterator_new(engine, NULL, PARTITION_HISTORY, records(min), false, ENGINE_READ_ONCE,
                             &iterator, err))
        return false;
    for (;;) {
        struct engine_entry entry;
        uint64_t time;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND || entry.key.len != HISTORY_KEY_LEN)
            return true;
        time = bytes_get_be64(entry.key.data + HISTORY_KEY_TIME_AT);
        if (time != trim->time &&
            ((time >= trim->horizon && walked >= trim->bytes) || walked >= TRIM_BYTES))
            return true;
        trim->time = time;
        walked += entry.key.len + entry.value.len;
        if (time <= trim->mark)
            continue;
        trim->removed_bytes += (int64_t)(entry.key.len + entry.value.len);
        trim->removed_records++;
    }
}

static bool mark_write(struct commit *commit, const struct trim *trim, struct error *err)
{
    struct commit_delta delta = {.key = counter_key(),
                                 .amounts = {-trim->removed_bytes, -trim->removed_records}};

    return note_write(commit, mark_place, trim->time, &delta, err);
}

/* Is there anything that is worth it, and what? */
static bool trim_decide(struct engine *engine, const struct history_limits *limits, int64_t now_ms,
                        struct trim *ret_trim, struct error *err)
{
    int64_t slack_ms = MAX(limits->retention_ms / SLACK_PARTS, (int64_t)SLACK_MS_MIN);
    int64_t horizon_s = (now_ms - limits->retention_ms) / 1000;
    struct history_size size;
    uint64_t first;

    *ret_trim = (struct trim){0};
    if (!time_at_end(engine, false, &first, err) || !history_size(engine, &size, err) ||
        !note_read(engine, mark_place, &ret_trim->mark, err))
        return false;
    if (first && (int64_t)(first >> 32) < horizon_s - slack_ms / 1000)
        ret_trim->horizon = (uint64_t)horizon_s << 32;
    if (first && first <= ret_trim->mark) /* it was cut off between mark and drop */
        ret_trim->horizon = MAX(ret_trim->horizon, ret_trim->mark + 1);
    if (first && limits->bytes_max && size.bytes > limits->bytes_max)
        ret_trim->bytes = size.bytes - limits->bytes_max + limits->bytes_max / BYTES_SPARE_PARTS;
    return true;
}

bool history_trim(struct engine *engine, struct commit *commit, const struct history_limits *limits,
                  int64_t now_ms, bool *ret_removed, struct error *err)
{
    uint8_t min[HISTORY_KEY_LEN], max[HISTORY_KEY_LEN];
    struct engine_range range = records(min);
    struct trim trim;

    *ret_removed = false;
    if (!trim_decide(engine, limits, now_ms, &trim, err))
        return false;
    if (!trim.horizon && !trim.bytes)
        return true;
    if (!trim_walk(engine, &trim, err) ||
        (trim.time > trim.mark && !mark_write(commit, &trim, err)))
        return false;
    if (!trim.time)
        return true;
    key_write((struct history_place){.time = trim.time + 1}, max);
    range.max = slice_of(max, sizeof max);
    *ret_removed = engine_range_drop(engine, PARTITION_HISTORY, HISTORY_EPOCH, range, err);
    return *ret_removed;
}
