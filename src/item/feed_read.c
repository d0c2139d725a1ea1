/* Records are read in order under one snapshot; items and earlier images are fetched for a page at
 * a time. A record is the last word on its item if the item's header names its place: an overwrite
 * where all versions are kept leaves the older records standing. */
#include "item/feed_read.h"

#include "base/bytes.h"
#include "item/feed_trimmed.h"
#include "partition/layout.h"

enum {
    CHANGES_DEFAULT = 1000,
    BYTES_DEFAULT = 4 * 1024 * 1024,
};

static bool key_is_wanted(const struct feed_request *request, struct slice key)
{
    if (request->logical.len && !slice_starts_with(key, request->logical))
        return false;
    return (!request->routing_min.data || slice_compare(key, request->routing_min) >= 0) &&
           (!request->routing_max.data || slice_compare(key, request->routing_max) < 0);
}

static struct engine_range records_after(uint64_t lsn, struct arena *arena)
{
    uint8_t *min = arena_alloc(arena, FEED_KEY_LEN);

    feed_key_encode((struct feed_place){.lsn = lsn + 1}, min);
    return (struct engine_range){.min = slice_of(min, FEED_KEY_LEN), .max = slice_of("g", 1)};
}

/* Fills in the item of a record, or says that the record is not the last word. */
static bool item_of(const struct item_scope *scope, struct engine_snapshot *snapshot,
                    const struct feed_record *record, struct arena *arena, struct item *ret_item,
                    bool *ret_last_word, struct error *err)
{
    struct engine_value value;

    *ret_last_word = false;
    if (!engine_get(scope->engine, snapshot, scope->partition,
                    item_family_key(arena, PARTITION_FAMILY_ITEM, record->key), ENGINE_READ_ANY,
                    arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!item_decode(record->key, value.bytes, ret_item, err))
        return false;
    *ret_last_word = ret_item->header.lsn == record->place.lsn &&
                     ret_item->header.origin == record->place.origin &&
                     ret_item->header.ordinal == record->place.ordinal;
    return true;
}

/* What a record knows of the version it is about: enough for its etag and time. */
static struct item_header header_of(const struct feed_record *record)
{
    return (struct item_header){.number = record->number,
                                .lsn = record->place.lsn,
                                .origin = record->place.origin,
                                .ordinal = record->place.ordinal,
                                .wall_ms = record->wall_ms};
}

static bool previous_of(const struct item_scope *scope, struct engine_snapshot *snapshot,
                        const struct feed_record *record, struct arena *arena,
                        struct feed_change *change, struct error *err)
{
    struct feed_record previous;
    struct engine_value value;
    uint8_t key[FEED_KEY_LEN];

    if (record->previous.lsn == 0)
        return true;
    feed_key_encode(record->previous, key);
    if (!engine_get(scope->engine, snapshot, scope->partition, slice_of(key, sizeof key),
                    ENGINE_READ_ANY, arena, &value, err))
        return false;
    if (value.found != ENGINE_FOUND)
        return true;
    if (!feed_record_decode(slice_of(key, sizeof key), value.bytes, &previous, err))
        return false;
    if (previous.image.len)
        change->previous = previous.image;
    change->previous_header = header_of(&previous);
    return true;
}

/* What a page is read into. */
struct reading {
    const struct item_scope *scope;
    const struct feed_request *request;
    struct engine_snapshot *snapshot;
    struct arena *arena;
    struct feed_page page;
    size_t capacity, bytes;
};

static struct feed_change *change_add(struct reading *r)
{
    if (r->page.count == r->capacity) {
        struct feed_change *bigger =
            ARENA_ARRAY(r->arena, struct feed_change, r->capacity ? r->capacity * 2 : 64);

        if (r->page.count)
            memcpy(bigger, r->page.changes, r->page.count * sizeof *bigger);
        r->page.changes = bigger;
        r->capacity = r->capacity ? r->capacity * 2 : 64;
    }
    return &r->page.changes[r->page.count++];
}

static bool is_over(const struct item_scope *scope, const struct item *item)
{
    return item_is_over(&item->header, scope->definition->default_ttl,
                        clock_read_wall_ms(scope->clock));
}

static bool record_take(struct reading *r, const struct feed_record *record, struct error *err)
{
    struct feed_change change = {
        .kind = record->kind,
        .lsn = record->place.lsn,
        .wall_ms = record->wall_ms,
        .number = record->number,
        .key = record->key,
        .previous_lsn = record->previous.lsn,
    };
    bool last_word;

    if (!item_of(r->scope, r->snapshot, record, r->arena, &change.current, &last_word, err))
        return false;
    if (r->request->mode == FEED_LATEST) {
        if (!last_word || is_over(r->scope, &change.current))
            return true;
    } else {
        bool is_delete = record->kind == FEED_DELETE || record->kind == FEED_EXPIRE;

        if (!last_word || is_delete)
            change.current = (struct item){.header = header_of(record), .key = record->key};
        if (record->image.len && !is_delete)
            change.current.document = record->image;
        if (!previous_of(r->scope, r->snapshot, record, r->arena, &change, err))
            return false;
    }
    r->bytes += change.current.document.len + change.previous.len;
    *change_add(r) = change;
    return true;
}

static bool page_is_full(const struct reading *r)
{
    size_t changes_max = r->request->changes_max ? r->request->changes_max : CHANGES_DEFAULT;
    size_t bytes_max = r->request->bytes_max ? r->request->bytes_max : BYTES_DEFAULT;

    assert(r->page.count <= r->capacity);
    return r->page.count >= changes_max || (r->page.count && r->bytes >= bytes_max) ||
           (r->request->records_max && r->page.records_read >= r->request->records_max);
}

static bool records_read(struct reading *r, struct engine_iterator *iterator, struct error *err)
{
    for (;;) {
        struct engine_entry entry;
        struct feed_record record;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!feed_record_decode(entry.key, entry.value, &record, err))
            return false;
        if (record.place.lsn != r->page.lsn && page_is_full(r)) {
            r->page.more = true;
            return true;
        }
        r->page.lsn = record.place.lsn;
        r->page.records_read++;
        if (!key_is_wanted(r->request, record.key))
            continue;
        record.key = arena_copy(r->arena, record.key);
        record.image = arena_copy(r->arena, record.image);
        if (!record_take(r, &record, err))
            return false;
    }
}

bool feed_written(const struct item_scope *scope, struct engine_snapshot *snapshot,
                  uint64_t after_lsn, size_t max, struct arena *arena,
                  struct feed_record **ret_records, size_t *ret_count, bool *ret_more,
                  struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct feed_record *records = NULL;
    size_t count = 0, capacity = 0;

    if (!engine_iterator_new(scope->engine, snapshot, scope->partition,
                             records_after(after_lsn, arena), false, ENGINE_READ_ANY, &iterator,
                             err))
        return false;
    for (*ret_more = false;; count++) {
        struct engine_entry entry;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        *ret_more = entry.found == ENGINE_FOUND && count == max;
        if (entry.found != ENGINE_FOUND || *ret_more)
            break;
        if (count == capacity) {
            struct feed_record *bigger =
                ARENA_ARRAY(arena, struct feed_record, capacity ? capacity * 2 : 16);

            if (count)
                memcpy(bigger, records, count * sizeof *bigger);
            records = bigger;
            capacity = capacity ? capacity * 2 : 16;
        }
        if (!feed_record_decode(entry.key, entry.value, &records[count], err))
            return false;
        records[count].key = arena_copy(arena, records[count].key);
        records[count].image = SLICE_NONE;
    }
    *ret_records = records;
    *ret_count = count;
    return true;
}

/* 0: there is none. */
static bool mark_read(const struct item_scope *scope, struct engine_snapshot *snapshot,
                      enum feed_mark which, struct arena *arena, uint64_t *ret_lsn,
                      struct error *err)
{
    struct engine_value value;
    uint8_t key[FEED_KEY_LEN];

    *ret_lsn = 0;
    feed_key_encode((struct feed_place){.ordinal = which}, key);
    if (!engine_get(scope->engine, snapshot, scope->partition, slice_of(key, sizeof key),
                    ENGINE_READ_ANY, arena, &value, err))
        return false;
    return value.found != ENGINE_FOUND || feed_mark_decode(value.bytes, ret_lsn, err);
}

static bool trimmed_read(const struct item_scope *scope, struct engine_snapshot *snapshot,
                         struct arena *arena, struct feed_trimmed *ret_trimmed, struct error *err)
{
    struct engine_value value;
    uint8_t key[FEED_KEY_LEN];

    ret_trimmed->count = 0;
    feed_key_encode((struct feed_place){.ordinal = FEED_MARK_TRIMMED}, key);
    if (!engine_get(scope->engine, snapshot, scope->partition, slice_of(key, sizeof key),
                    ENGINE_READ_ANY, arena, &value, err))
        return false;
    return value.found != ENGINE_FOUND || feed_trimmed_decode(value.bytes, ret_trimmed, err);
}

/* In the range that is asked for: of a logical partition that is or was spread, a part of it. */
static uint64_t trimmed_for(const struct feed_trimmed *trimmed, const struct feed_request *request,
                            struct arena *arena)
{
    struct slice min = request->routing_min, max = request->routing_max, behind;

    if (!request->logical.len)
        return feed_trimmed_within(trimmed, min, max);
    behind = arena_join(arena, (const struct slice[]){request->logical, SLICE("\xFF")}, 2);
    if (!min.data || slice_compare(min, request->logical) < 0)
        min = request->logical;
    if (!max.data || slice_compare(max, behind) > 0)
        max = behind;
    return feed_trimmed_within(trimmed, min, max);
}

/* What is younger than the retention is all there; a reader who stands before that may have missed
 * something, and one who stands before what was trimmed has. */
static bool versions_are_kept(const struct item_scope *scope, struct engine_snapshot *snapshot,
                              const struct feed_request *request, struct arena *arena,
                              struct error *err)
{
    int64_t retention_ms = scope->definition->feed_retention_ms;
    struct feed_trimmed trimmed;
    uint64_t kept_after;

    if (!retention_ms)
        return error_set(err, ERROR_FEED_RETENTION,
                         "container \"%.*s\" does not keep all versions: set "
                         "changeFeedPolicy.retentionDuration",
                         SLICE_ARG(scope->definition->id));
    if (!feed_lsn_at(scope, clock_read_wall_ms(scope->clock) - retention_ms - 1, &kept_after,
                     err) ||
        !trimmed_read(scope, snapshot, arena, &trimmed, err))
        return false;
    kept_after = MAX(kept_after, trimmed_for(&trimmed, request, arena));
    if (request->after_lsn < kept_after)
        return error_set(err, ERROR_FEED_RETENTION,
                         "You must read the change feed from within the retention period. It is "
                         "kept from lsn %llu on",
                         (unsigned long long)kept_after);
    return true;
}

bool feed_read(const struct item_scope *scope, const struct feed_request *request,
               struct arena *arena, struct feed_page *ret_page, struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    struct reading reading = {.scope = scope, .request = request, .arena = arena};

    if (!item_scope_snapshot(scope, &snapshot, err))
        return false;
    if (request->mode == FEED_ALL_VERSIONS &&
        !versions_are_kept(scope, snapshot, request, arena, err))
        return false;
    if (!engine_iterator_new(scope->engine, snapshot, scope->partition,
                             records_after(request->after_lsn, arena), false, ENGINE_READ_ANY,
                             &iterator, err))
        return false;
    reading.snapshot = snapshot;
    reading.page.lsn = request->after_lsn;
    if (!records_read(&reading, iterator, err))
        return false;
    *ret_page = reading.page;
    return true;
}

/* Up to the mark of merging, record by record: the first that is later ends what may be passed
 * over. *ret_lsn is that of the last one before it. */
static bool merged_walk(struct engine_iterator *iterator, uint64_t merged, int64_t wall_ms,
                        uint64_t *ret_lsn, bool *ret_later, struct error *err)
{
    *ret_lsn = 0;
    *ret_later = false;
    for (;;) {
        struct engine_entry entry;
        struct feed_record record;

        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!feed_record_decode(entry.key, entry.value, &record, err))
            return false;
        if (record.place.lsn > merged)
            return true;
        if (record.wall_ms > wall_ms) {
            /* Another with the same LSN may have been passed: it must not be passed over. */
            *ret_lsn = MIN(*ret_lsn, record.place.lsn - 1);
            *ret_later = true;
            return true;
        }
        *ret_lsn = record.place.lsn;
    }
}

/* Time never runs backwards in a partition, so it can be searched by halving, above what it was
 * merged from. The LSNs of records have holes: the record found for a guess may be a later one. */
bool feed_lsn_at(const struct item_scope *scope, int64_t wall_ms, uint64_t *ret_lsn,
                 struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint64_t low, high, merged, passed = 0;
    bool later = false;

    if (!commit_partition_lsn(scope->commit, scope->partition, &high, err) ||
        !mark_read(scope, NULL, FEED_MARK_MERGED, arena, &merged, err) ||
        !engine_iterator_new(scope->engine, NULL, scope->partition, records_after(0, arena), false,
                             ENGINE_READ_ANY, &iterator, err) ||
        (merged && !merged_walk(iterator, merged, wall_ms, &passed, &later, err)))
        return false;
    low = merged;
    while (!later && low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct engine_entry entry;
        struct feed_record record;
        uint8_t key[FEED_KEY_LEN];

        feed_key_encode((struct feed_place){.lsn = middle + 1}, key);
        if (!engine_iterator_seek(iterator, slice_of(key, sizeof key), err) ||
            !engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND) {
            high = middle;
            continue;
        }
        if (!feed_record_decode(entry.key, entry.value, &record, err))
            return false;
        if (record.wall_ms <= wall_ms)
            low = MAX(record.place.lsn, middle + 1);
        else
            high = middle;
    }
    *ret_lsn = low > merged ? low : passed;
    return true;
}

/* --- Trimming -------------------------------------------------------------------------------- */

/* What a call of feed_trim removes, and the mark it leaves. */
struct trim {
    const struct item_scope *scope;
    struct engine_snapshot *snapshot;
    struct engine_op *ops;
    size_t count, max;
    struct feed_trimmed trimmed;
    int64_t horizon_ms; /* of the retention */
    struct arena *arena;
};

/* Once, however it is come upon. */
static void trim_add(struct trim *trim, struct slice record_key, struct feed_place place)
{
    uint8_t *key = arena_alloc(trim->arena, FEED_KEY_LEN);

    feed_key_encode(place, key);
    for (size_t i = 0; i < trim->count; i++)
        if (slice_equal(trim->ops[i].key, slice_of(key, FEED_KEY_LEN)))
            return;
    trim->ops[trim->count++] =
        (struct engine_op){ENGINE_DELETE, slice_of(key, FEED_KEY_LEN), SLICE_NONE};
    feed_trimmed_note(&trim->trimmed, record_key, place.lsn);
}

/* Who still stands unlinked, as by a migration that numbers records anew, goes after twice the
 * retention. */
static bool unlinked_look(struct trim *trim, const struct feed_record *record,
                          struct arena *scratch, struct error *err)
{
    struct item item;
    bool last_word;

    if (record->wall_ms >= trim->horizon_ms - trim->scope->definition->feed_retention_ms)
        return true;
    if (!item_of(trim->scope, trim->snapshot, record, scratch, &item, &last_word, err))
        return false;
    if (!last_word)
        trim_add(trim, record->key, record->place);
    return true;
}

/* A version goes when the one behind it is older than the retention, so that what an item was can
 * be told of every moment within it. Behind a delete there is none. */
static bool old_record_look(struct trim *trim, const struct feed_record *record,
                            struct arena *scratch, struct error *err)
{
    struct engine_value value = {.found = ENGINE_ABSENT};
    uint8_t key[FEED_KEY_LEN];

    if (record->previous.lsn) {
        feed_key_encode(record->previous, key);
        if (!engine_get(trim->scope->engine, trim->snapshot, trim->scope->partition,
                        slice_of(key, sizeof key), ENGINE_READ_ANY, scratch, &value, err))
            return false;
    }
    if (value.found == ENGINE_FOUND)
        trim_add(trim, record->key, record->previous);
    if (record->kind == FEED_DELETE || record->kind == FEED_EXPIRE) {
        trim_add(trim, record->key, record->place);
        return true;
    }
    return unlinked_look(trim, record, scratch, err);
}

/* The records are looked at in an arena of their own, forgotten one by one: there may be far more
 * of them than are removed. */
static bool stale_collect(struct trim *trim, struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *snapshot = NULL;
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    CLEANUP(arena_free) struct arena *scratch = arena_new();
    const struct item_scope *scope = trim->scope;

    assert(trim->count == 0);
    trim->horizon_ms = clock_read_wall_ms(scope->clock) - scope->definition->feed_retention_ms;
    if (!engine_snapshot_new(scope->engine, &snapshot, err) ||
        !trimmed_read(scope, snapshot, trim->arena, &trim->trimmed, err) ||
        !engine_iterator_new(scope->engine, snapshot, scope->partition,
                             records_after(0, trim->arena), false, ENGINE_READ_ANY, &iterator, err))
        return false;
    trim->snapshot = snapshot;
    while (trim->count < trim->max) {
        struct engine_entry entry;
        struct feed_record record;

        arena_reset(scratch);
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            return true;
        if (!feed_record_decode(entry.key, entry.value, &record, err))
            return false;
        if (record.wall_ms >= trim->horizon_ms)
            return true; /* what follows is younger still */
        record.key = arena_copy(scratch, record.key);
        if (!old_record_look(trim, &record, scratch, err))
            return false;
    }
    return true;
}

/* A record that is stale stays so, whatever is committed meanwhile: nothing to rely on. */
bool feed_trim(const struct item_scope *scope, size_t max, size_t *ret_removed, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct trim trim = {.scope = scope,
                        .ops = ARENA_ARRAY(arena, struct engine_op, max + 2), /* see below */
                        .max = max,
                        .arena = arena};
    struct commit_part part = {
        .partition = scope->partition, .epoch = scope->epoch, .ops = trim.ops};
    struct commit_batch batch = {
        .parts = &part, .part_count = 1, .moment = COMMIT_NOTHING_RELIED_ON};
    uint8_t key[FEED_KEY_LEN];

    assert(max > 0);
    if (!stale_collect(&trim, err)) /* one too many at most, and the mark */
        return false;
    *ret_removed = trim.count;
    if (trim.count == 0)
        return true;
    feed_key_encode((struct feed_place){0}, key);
    trim.ops[trim.count] = (struct engine_op){ENGINE_PUT, slice_of(key, sizeof key),
                                              feed_trimmed_encode(&trim.trimmed, arena)};
    part.op_count = trim.count + 1;
    return commit_run(scope->commit, &batch, err);
}
