/* What a node tells of its changes, held against what clients noted. Writes are found by their
 * version; deletes have none, and are found by their place among the writes of their item, which
 * LSNs give. */
#include "isolation/checker.h"

#include "base/arena.h"

#include <stdlib.h>

struct telling {
    const struct history_transaction *transaction;
    const struct history_op *op;
    uint64_t time; /* when it was told; 0: not yet */
};

struct tellings {
    struct telling *list; /* writes of all transactions but aborted ones */
    size_t count;
    const struct history *history;
    struct checker_report *report;
};

static bool is_write(const struct history_op *op)
{
    return op->kind == CHECKED_WRITE || op->kind == CHECKED_DELETE;
}

static void tellings_collect(struct tellings *tellings, struct arena *arena)
{
    const struct history *history = tellings->history;
    size_t count = 0;

    for (size_t t = 0; t < history->count; t++)
        count += history->transactions[t].op_count;
    tellings->list = ARENA_ARRAY(arena, struct telling, count + 1);
    for (size_t t = 0; t < history->count; t++) {
        const struct history_transaction *transaction = &history->transactions[t];

        for (size_t i = 0; transaction->outcome != CHECKED_ABORTED && i < transaction->op_count;
             i++)
            if (is_write(&transaction->ops[i]))
                tellings->list[tellings->count++] =
                    (struct telling){transaction, &transaction->ops[i], 0};
    }
}

static struct telling *telling_of(struct tellings *tellings, const struct history_change *change)
{
    for (size_t i = 0; i < tellings->count; i++)
        if (tellings->list[i].op->kind == CHECKED_WRITE &&
            tellings->list[i].op->version == change->version)
            return &tellings->list[i];
    return NULL;
}

static void versions_check(struct tellings *tellings, const struct history_change *changes,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct history_change *change = &changes[i];
        struct telling *telling = change->version ? telling_of(tellings, change) : NULL;

        if (!change->version)
            continue;
        if (!telling)
            checker_object(tellings->report, CHECKER_CHANGE_UNDONE,
                           "version %llu of item %u is told and was never written",
                           (unsigned long long)change->version, change->item);
        else if (telling->time)
            checker_object(tellings->report, CHECKER_CHANGE_DOUBLED,
                           "version %llu of item %u is told twice",
                           (unsigned long long)change->version, change->item);
        else if (telling->op->item != change->item)
            checker_object(tellings->report, CHECKER_CHANGE_LOST,
                           "version %llu of item %u is told of item %u",
                           (unsigned long long)change->version, telling->op->item, change->item);
        else
            telling->time = change->time;
    }
    for (size_t i = 0; i < tellings->count; i++) {
        const struct telling *telling = &tellings->list[i];

        if (telling->transaction->outcome == CHECKED_COMMITTED &&
            telling->op->kind == CHECKED_WRITE && !telling->time)
            checker_object(tellings->report, CHECKER_CHANGE_LOST,
                           "version %llu of item %u is not told",
                           (unsigned long long)telling->op->version, telling->op->item);
    }
}

/* --- Items ----------------------------------------------------------------------------------- */

static int by_lsn(const void *left, const void *right)
{
    const struct telling *const *a = left, *const *b = right;

    return ((*a)->op->lsn > (*b)->op->lsn) - ((*a)->op->lsn < (*b)->op->lsn);
}

/* Is it of a transaction whose outcome is not known? */
static bool is_open(struct tellings *tellings, const struct history_change *change)
{
    const struct telling *telling = change->version ? telling_of(tellings, change) : NULL;

    return telling && telling->transaction->outcome == CHECKED_UNKNOWN;
}

static void item_check(struct tellings *tellings, uint32_t item,
                       const struct history_change *changes, size_t count, struct arena *arena)
{
    struct telling **writes = ARENA_ARRAY(arena, struct telling *, tellings->count + 1);
    size_t write_count = 0, at = 0;

    for (size_t i = 0; i < tellings->count; i++) {
        struct telling *telling = &tellings->list[i];

        if (telling->op->item != item)
            continue;
        if (telling->transaction->outcome == CHECKED_COMMITTED)
            writes[write_count++] = telling;
        else if (telling->op->kind == CHECKED_DELETE)
            return; /* it may be told or not, and looks like any other */
    }
    qsort(writes, write_count, sizeof *writes, by_lsn);
    for (size_t i = 0; i < count; i++) {
        if (changes[i].item != item || is_open(tellings, &changes[i]))
            continue;
        if (at == write_count ||
            (writes[at]->op->kind == CHECKED_DELETE ? 0 : writes[at]->op->version) !=
                changes[i].version) {
            checker_object(tellings->report, CHECKER_CHANGE_ORDER,
                           "version %llu of item %u is told as change %zu of it, and is not",
                           (unsigned long long)changes[i].version, item, at);
            return;
        }
        writes[at++]->time = changes[i].time;
    }
    if (at < write_count)
        checker_object(tellings->report, CHECKER_CHANGE_LOST, "%zu changes of item %u, %zu told",
                       write_count, item, at);
}

/* --- Transactions ---------------------------------------------------------------------------- */

/* A transaction and when it was told; 0: it was not. */
struct told {
    const struct history_transaction *transaction;
    uint64_t time;
};

static int by_time(const void *left, const void *right)
{
    const struct told *a = left, *b = right;

    return (a->time > b->time) - (a->time < b->time);
}

static int by_end(const void *left, const void *right)
{
    const struct told *a = left, *b = right;

    return (a->transaction->ended_ns > b->transaction->ended_ns) -
           (a->transaction->ended_ns < b->transaction->ended_ns);
}

/* tellings of one transaction stand together. */
static size_t transactions_check(struct tellings *tellings, struct told *ret_told)
{
    size_t count = 0;

    for (size_t i = 0; i < tellings->count;) {
        const struct history_transaction *transaction = tellings->list[i].transaction;
        uint64_t time = tellings->list[i].time;

        for (; i < tellings->count && tellings->list[i].transaction == transaction; i++)
            if (tellings->list[i].time != time)
                checker_object(tellings->report, CHECKER_CHANGE_TORN,
                               "a transaction of client %u is told at %llu and %llu",
                               transaction->client, (unsigned long long)time,
                               (unsigned long long)tellings->list[i].time);
        if (time)
            ret_told[count++] = (struct told){transaction, time};
    }
    return count;
}

static void order_check(struct tellings *tellings, struct told *told, size_t count)
{
    qsort(told, count, sizeof *told, by_time);
    for (size_t i = 1; i < count; i++)
        if (told[i].time == told[i - 1].time)
            checker_object(tellings->report, CHECKER_CHANGE_SHARED,
                           "transactions of clients %u and %u are told at %llu",
                           told[i - 1].transaction->client, told[i].transaction->client,
                           (unsigned long long)told[i].time);
    /* Nothing is told before what was answered before it was asked for. */
    qsort(told, count, sizeof *told, by_end);
    for (size_t i = 0; i < count; i++) {
        const struct history_transaction *transaction = told[i].transaction;
        uint64_t asked_ns = transaction->plain ? transaction->began_ns : transaction->asked_ns;
        uint64_t latest = 0;

        for (size_t j = 0; j < i; j++)
            if (told[j].transaction->outcome == CHECKED_COMMITTED &&
                told[j].transaction->ended_ns < asked_ns)
                latest = told[j].time > latest ? told[j].time : latest;
        if (latest > told[i].time)
            checker_object(tellings->report, CHECKER_CHANGE_ORDER,
                           "a transaction of client %u is told at %llu, one that was answered "
                           "before it asked at %llu",
                           transaction->client, (unsigned long long)told[i].time,
                           (unsigned long long)latest);
    }
}

void checker_changes(const struct history *history, const struct history_change *changes,
                     size_t count, struct checker_report *report)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct tellings tellings = {.history = history, .report = report};
    struct told *told;

    tellings_collect(&tellings, arena);
    for (size_t i = 1; i < count; i++)
        if (changes[i].time < changes[i - 1].time)
            checker_object(report, CHECKER_CHANGE_ORDER, "times go back at change %zu", i);
    versions_check(&tellings, changes, count);
    for (uint32_t item = 0; item < history->items; item++)
        item_check(&tellings, item, changes, count, arena);
    told = ARENA_ARRAY(arena, struct told, tellings.count + 1);
    order_check(&tellings, told, transactions_check(&tellings, told));
}
