/* The thread of the audit: appends what waits, and takes away what is too much or too old.
 *
 * A batch is one commit: records, the ends after them, and the deletion of the oldest. If the store
 * does not take it, the records stay where they are and are tried again; whoever waits for them is
 * let go meanwhile, since what they record has been done. */
#include "observe/audit_private.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "catalogue/notes.h"
#include "document/json.h"

#include <stdlib.h>

enum {
    BATCH_RECORDS = 128,
    TRIM_RECORDS = 512, /* at once */
    RETRY_MS = 1000,
    TRIM_MS = 60000, /* between looks at what is too old while nothing is recorded */
};

struct batch {
    struct arena *arena;
    struct engine_op ops[BATCH_RECORDS + TRIM_RECORDS + 1];
    size_t count;
    struct audit_ends ends;
    struct audit_waiting *last; /* the last one that is in it; NULL: none */
    size_t records;
};

static void op_add(struct batch *batch, enum engine_op_kind kind, uint64_t number,
                   struct slice value)
{
    uint8_t *key = arena_alloc(batch->arena, AUDIT_KEY_BYTES);

    audit_key(key, 'r', number);
    batch->ops[batch->count++] =
        (struct engine_op){.kind = kind, .key = slice_of(key, AUDIT_KEY_BYTES), .value = value};
}

static void record_add(struct batch *batch, const struct audit_waiting *waiting)
{
    char previous[AUDIT_HASH_TEXT_SIZE], lost[40] = "";
    struct slice record;

    audit_hash_text(batch->ends.hash, previous);
    if (waiting->lost)
        snprintf(lost, sizeof lost, ",\"lost\":%llu", (unsigned long long)waiting->lost);
    record = arena_printf(batch->arena, "{\"n\":%llu%.*s%s,\"previous\":\"%s\"}",
                          (unsigned long long)batch->ends.last + 1, (int)waiting->len,
                          (const char *)waiting->members, lost, previous);
    op_add(batch, ENGINE_PUT, ++batch->ends.last, record);
    audit_hash(record, batch->ends.hash);
    batch->ends.bytes += record.len;
}

/* --- What makes way -------------------------------------------------------------------------- */

struct trim {
    struct audit *audit;
    struct batch *batch;
    int64_t oldest_ms;
    size_t count;
};

static int64_t record_ms(struct slice record)
{
    static const char name[] = "\"ms_utc\":";
    const uint8_t *at = memmem(record.data, record.len, name, sizeof name - 1);

    return at ? strtoll((const char *)at + sizeof name - 1, NULL, 10) : 0;
}

static bool trim_visit(void *context, uint64_t number, struct slice record)
{
    struct trim *trim = context;
    struct audit_ends *ends = &trim->batch->ends;

    if (trim->count == TRIM_RECORDS || number != ends->first ||
        (ends->bytes <= trim->audit->bytes_max && record_ms(record) >= trim->oldest_ms))
        return false;
    op_add(trim->batch, ENGINE_DELETE, number, SLICE_NONE);
    audit_hash(record, ends->before);
    ends->bytes -= MIN(ends->bytes, (uint64_t)record.len);
    ends->first++;
    trim->count++;
    return true;
}

/* Of those that were written before this batch. */
static bool trim(struct audit *audit, struct batch *batch, struct error *err)
{
    struct trim trim = {
        .audit = audit,
        .batch = batch,
        .oldest_ms = clock_read_wall_ms(audit->clock) - audit->age_ms_max,
    };

    return audit_walk(audit, audit->ends.first, audit->ends.last, trim_visit, &trim, err);
}

/* --- A batch --------------------------------------------------------------------------------- */

static void ends_add(struct batch *batch)
{
    enum { BYTES = 1 + 3 * 8 + 2 * AUDIT_HASH_BYTES };
    uint8_t *key = arena_alloc(batch->arena, AUDIT_KEY_BYTES);
    uint8_t *value = arena_alloc(batch->arena, BYTES);

    audit_key(key, 'e', 0);
    value[0] = 1;
    bytes_put_be64(value + 1, batch->ends.first);
    bytes_put_be64(value + 9, batch->ends.last);
    bytes_put_be64(value + 17, batch->ends.bytes);
    memcpy(value + 25, batch->ends.before, AUDIT_HASH_BYTES);
    memcpy(value + 25 + AUDIT_HASH_BYTES, batch->ends.hash, AUDIT_HASH_BYTES);
    batch->ops[batch->count++] = (struct engine_op){
        .kind = ENGINE_PUT, .key = slice_of(key, AUDIT_KEY_BYTES), .value = slice_of(value, BYTES)};
}

static bool batch_write(struct audit *audit, struct audit_waiting *first, struct batch *batch,
                        struct error *err)
{
    batch->ends = audit->ends;
    for (struct audit_waiting *at = first; at && batch->records < BATCH_RECORDS; at = at->next) {
        record_add(batch, at);
        batch->last = at;
        batch->records++;
    }
    if (!trim(audit, batch, err))
        return false;
    if (batch->count == 0)
        return true;
    ends_add(batch);
    return catalogue_notes_write(audit->catalogue, batch->ops, batch->count, err);
}

/* Under the lock. */
static void batch_done(struct audit *audit, const struct batch *batch)
{
    audit->ends = batch->ends;
    audit->failing = false;
    for (size_t i = 0; i < batch->records; i++) {
        struct audit_waiting *waiting = audit->head;

        audit->done = waiting->ticket;
        audit->head = waiting->next;
        if (!audit->head)
            audit->tail = &audit->head;
        memory_free(waiting);
    }
    audit->waiting -= batch->records;
    condition_broadcast(&audit->written);
}

/* Under the lock, which is let go while it waits. */
static void wait_for_work(struct audit *audit)
{
    int64_t until = clock_monotonic_ms() + (audit->failing ? RETRY_MS : TRIM_MS);

    while (!audit->stopping && (!audit->head || audit->failing))
        if (!condition_wait_until(&audit->filled, &audit->lock, until))
            return;
}

/* Writes what waits, a batch at a time; while the store does not take it, once. */
static void all_write(struct audit *audit)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct batch *batch;
    bool more = true;

    while (more) {
        struct audit_waiting *first = NULL;
        struct error err;
        bool fine, failed_before = false;

        arena_reset(arena);
        batch = arena_alloc_zero(arena, sizeof *batch);
        batch->arena = arena;
        WITH_LOCK (&audit->lock)
            first = audit->head;
        fine = batch_write(audit, first, batch, &err);
        WITH_LOCK (&audit->lock) {
            failed_before = audit->failing;
            if (fine)
                batch_done(audit, batch);
            else
                audit->failing = true;
            condition_broadcast(&audit->written);
            more = fine && audit->head;
        }
        if (!fine && !failed_before)
            log_error(audit->log, "records of the audit wait to be written", &err);
        else if (fine && failed_before)
            log_event(audit->log, LOG_INFO, "records of the audit are written again");
    }
}

void audit_write(void *context)
{
    struct audit *audit = context;
    bool stopping = false;

    do {
        WITH_LOCK (&audit->lock) {
            wait_for_work(audit);
            stopping = audit->stopping;
        }
        all_write(audit);
    } while (!stopping);
}
