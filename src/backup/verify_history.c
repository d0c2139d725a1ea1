/* The history of a node's changes (partition/history.h) is derived from nothing that is still
 * there, so it is compared with itself: every record can be read, its document is whole, the sums
 * are those of the records behind the mark, and there is nothing else. */
#include "backup/verify_private.h"

#include "base/bytes.h"
#include "document/bson.h"
#include "item/agreement_record.h"
#include "partition/history.h"
#include "partition/layout.h"

enum { NOTE_LEN = 8, DEPTH_MAX = 256, NOTE_GAP = 1 };

static bool kind_is_known(enum history_kind kind)
{
    return (kind >= HISTORY_INSERT && kind <= HISTORY_DELETE) ||
           (kind >= HISTORY_CREATE && kind <= HISTORY_REFINE);
}

static bool record_is_whole(const struct engine_entry *entry, struct error *err)
{
    const struct document_limits limits = {.depth_max = DEPTH_MAX, .bytes_max = entry->value.len};
    struct history_record record;
    uint64_t number;

    if (!history_record_decode(entry->key, entry->value, &record, err))
        return false;
    if (record.kind == HISTORY_TOUCHED) /* of an item that views are kept from: no document */
        return history_touched_number(&record, &number, err);
    if (!kind_is_known(record.kind))
        return error_set(err, ERROR_STORE_CORRUPT, "a record of the history is of no known kind");
    return !record.payload.len || document_validate(record.payload, &limits, err);
}

static void record_check(struct verify *verify, const struct engine_entry *entry)
{
    uint64_t time = entry->key.len == HISTORY_KEY_LEN
                        ? bytes_get_be64(entry->key.data + HISTORY_KEY_TIME_AT)
                        : 0;
    struct error err;

    if (entry->key.len != HISTORY_KEY_LEN) {
        verify_tell(verify, VERIFY_SURPLUS, entry->key, "no record has a key of this length");
    } else if (time == 0 && entry->value.len != NOTE_LEN) {
        verify_tell(verify, VERIFY_WRONG, entry->key, "a mark of the history is damaged");
    } else if (time == 0) {
        if (bytes_get_be32(entry->key.data + HISTORY_KEY_LEN - 4) != NOTE_GAP)
            verify->history_mark = bytes_get_be64(entry->value.data);
    } else {
        if (!record_is_whole(entry, &err))
            verify_tell(verify, VERIFY_WRONG, entry->key, "%s", err.message);
        if (time > verify->history_mark) { /* others are about to go, and are not counted */
            verify->total[0] += (int64_t)(entry->key.len + entry->value.len);
            verify->total[1]++;
        }
    }
}

/* A transaction over several nodes that is under way, or waits for a node. */
static void promise_check(struct verify *verify, const struct engine_entry *entry)
{
    CLEANUP(pledge_free) struct pledge *pledge = NULL;
    struct agreement_decision decision;
    struct pledge_id id;
    struct error err;
    bool whole = entry->key.len > 1 && entry->key.data[1] == PLEDGE_DECISION
                     ? pledge_key_decode(entry->key, &id, &err) &&
                           agreement_decision_decode(entry->value, &decision, &err)
                     : pledge_decode(entry->key, entry->value, &pledge, &err);

    if (!whole)
        verify_tell(verify, VERIFY_WRONG, entry->key, "%s", err.message);
}

static void counter_read(struct verify *verify, const struct engine_entry *entry)
{
    struct error err;

    if (entry->key.len != 2 || entry->key.data[1] != PARTITION_FAMILY_HISTORY)
        verify_tell(verify, VERIFY_SURPLUS, entry->key, "the history has no sum of this name");
    else if (!counter_decode(entry->value, verify->history_counted, &err))
        verify_tell(verify, VERIFY_WRONG, entry->key, "%s", err.message);
}

static void sums_compare(struct verify *verify)
{
    static const uint8_t key[] = {PARTITION_FAMILY_COUNTER, PARTITION_FAMILY_HISTORY};

    if (verify->history_counted[0] != verify->total[0] ||
        verify->history_counted[1] != verify->total[1])
        verify_tell(verify, VERIFY_SUM, slice_of(key, sizeof key),
                    "the history is said to hold %lld bytes in %lld records, and holds %lld in "
                    "%lld",
                    (long long)verify->history_counted[0], (long long)verify->history_counted[1],
                    (long long)verify->total[0], (long long)verify->total[1]);
}

bool verify_history_step(struct verify *verify, size_t entries_max, size_t *looked,
                         struct error *err)
{
    CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
    const struct backup_partition *partition = verify->partition;
    struct engine_range range = {0};
    struct engine_entry entry = {0};

    if (verify->position.len)
        range.min = arena_join(verify->arena,
                               (struct slice[]){buf_slice(&verify->position), slice_of("", 1)}, 2);
    if (!engine_iterator_new(partition->node->engine, partition->node->snapshot, partition->id,
                             range, false, ENGINE_READ_ONCE, &iterator, err))
        return false;
    for (*looked = 0; *looked < entries_max; (*looked)++) {
        if (!engine_iterator_next(iterator, &entry, err))
            return false;
        if (entry.found != ENGINE_FOUND)
            break;
        buf_clear(&verify->position);
        buf_append_slice(&verify->position, entry.key);
        verify->figures.entries++;
        verify->figures.bytes += entry.key.len + entry.value.len;
        if (entry.key.data[0] == PARTITION_FAMILY_COUNTER)
            counter_read(verify, &entry); /* before the records */
        else if (entry.key.data[0] == PARTITION_FAMILY_HISTORY)
            record_check(verify, &entry);
        else if (entry.key.data[0] == PARTITION_FAMILY_PLEDGE)
            promise_check(verify, &entry);
        else if (entry.key.data[0] != PARTITION_FAMILY_META)
            verify_tell(verify, VERIFY_SURPLUS, entry.key, "no entry has a key of this kind");
    }
    if (entry.found != ENGINE_FOUND) {
        sums_compare(verify);
        verify->phase = VERIFY_PHASE_DONE;
    }
    return true;
}
