#include "isolation/recording.h"

#include "base/clock.h"
#include "partition/layout.h"

void recorder_init(struct recorder *recorder, uint32_t client)
{
    *recorder = (struct recorder){.client = client, .kept = arena_new()};
}

void recorder_done(struct recorder *recorder)
{
    arena_free(recorder->kept);
    memory_free(recorder->transactions);
}

void note_begin(struct note *note, bool plain)
{
    *note = (struct note){0};
    note->transaction.plain = plain;
    note->transaction.began_ns = note->transaction.asked_ns = clock_monotonic_ns();
}

void note_ask(struct note *note)
{
    note->transaction.asked_ns = clock_monotonic_ns();
}

void note_op(struct note *note, enum history_op_kind kind, uint32_t item, uint64_t version)
{
    struct history_op *op = &note->ops[note->transaction.op_count];

    assert(note->transaction.op_count < NOTE_OPS_MAX);
    *op = (struct history_op){.kind = kind, .item = item, .version = version};
    if (kind == CHECKED_READ)
        op->at_ns = clock_monotonic_ns();
    if (kind == CHECKED_WRITE || kind == CHECKED_DELETE)
        note->writes[note->write_count++] = note->transaction.op_count;
    note->transaction.op_count++;
}

void note_read(struct note *note, uint32_t item, uint64_t version, uint64_t lsn)
{
    note_op(note, CHECKED_READ, item, version);
    note->ops[note->transaction.op_count - 1].lsn = partition_lsn_low(lsn);
}

void note_lsn(struct note *note, size_t nth_write, uint64_t lsn)
{
    note->ops[note->writes[nth_write]].lsn = partition_lsn_low(lsn);
}

void note_end(struct note *note, struct recorder *recorder, enum history_outcome outcome)
{
    struct history_transaction *transaction;

    if (recorder->count == recorder->capacity) {
        recorder->capacity = recorder->capacity ? 2 * recorder->capacity : 256;
        recorder->transactions =
            memory_realloc(recorder->transactions,
                           memory_array_size(recorder->capacity, sizeof *recorder->transactions));
    }
    note->transaction.client = recorder->client;
    note->transaction.ended_ns = clock_monotonic_ns();
    note->transaction.outcome = outcome;
    transaction = &recorder->transactions[recorder->count++];
    *transaction = note->transaction;
    transaction->ops = ARENA_ARRAY(recorder->kept, struct history_op, transaction->op_count);
    memcpy(transaction->ops, note->ops, transaction->op_count * sizeof(struct history_op));
}

static uint64_t moment_after(const uint64_t *moments, size_t count, uint64_t at_ns)
{
    for (size_t i = 0; i < count; i++)
        if (moments[i] >= at_ns)
            return moments[i];
    return UINT64_MAX;
}

struct history recorders_history(const struct recorder *recorders, size_t count, uint32_t items,
                                 const uint64_t *settled, size_t settled_count, struct arena *arena)
{
    struct history history = {.items = items};
    size_t at = 0;

    for (size_t i = 0; i < count; i++)
        history.count += recorders[i].count;
    history.transactions = ARENA_ARRAY(arena, struct history_transaction, history.count);
    for (size_t i = 0; i < count; at += recorders[i++].count)
        memcpy(history.transactions + at, recorders[i].transactions,
               recorders[i].count * sizeof(struct history_transaction));
    for (size_t t = 0; t < history.count; t++) {
        struct history_transaction *transaction = &history.transactions[t];

        if (transaction->outcome == CHECKED_UNKNOWN)
            transaction->ended_ns = moment_after(settled, settled_count, transaction->ended_ns);
    }
    return history;
}
