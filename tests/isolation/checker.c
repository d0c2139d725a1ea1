/* Isolation. What one read can tell alone is looked at first: those anomalies get their own names.
 * The rest is a question of order: every committed transaction has two instants, its snapshot and
 * its commit, and everything known about them is an edge "before":
 *
 *     own   snapshot of T   -> commit of T
 *     wr    commit of W     -> snapshot of R     R saw what W wrote
 *     ww    commit of A     -> snapshot of B     B wrote the next version (first committer wins)
 *     rw    snapshot of R   -> commit of B       B wrote the version after the one R saw
 *     time  commit of A     -> snapshot of B     A was answered before B began
 *     lsn   commit of A     -> commit of B       A has the lower LSN, on the same item
 *
 * The history is one of snapshot isolation just if this graph has no cycle, for any order of the
 * instants that keeps to the edges is then an execution. The edges of time are first left out, so
 * that an anomaly which needs no clock to be seen is called by its own name. A chain of instants,
 * one for each answer, stands for the edges of time, which would be many.
 *
 * A read of nothing does not say which delete it saw. It makes edges only when the clocks leave a
 * single candidate.
 *
 * A transaction of unknown outcome is in the graph once another has read one of its versions. The
 * place of what it wrote among the versions of an item is told by the LSN a reader found on it, or
 * by what it had read there itself: as the first committer it comes right behind that. Before
 * anybody has seen it, it is nobody's cause, except that its deletes may be why an item is missing.
 */
#include "isolation/checker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[CHECKER_ANOMALY_COUNT] = {
    [CHECKER_UNKNOWN_VERSION] = "unknown version",
    [CHECKER_ABORTED_READ] = "aborted read",
    [CHECKER_DIRTY_READ] = "dirty read",
    [CHECKER_NON_REPEATABLE] = "non-repeatable read",
    [CHECKER_LOST_UPDATE] = "lost update",
    [CHECKER_READ_SKEW] = "read skew",
    [CHECKER_LONG_FORK] = "long fork",
    [CHECKER_CIRCULAR_FLOW] = "circular flow",
    [CHECKER_STALE_READ] = "stale read",
    [CHECKER_FUTURE_READ] = "future read",
    [CHECKER_NOT_LINEAR] = "not linearizable",
    [CHECKER_UNDECIDED] = "undecided",
    [CHECKER_CHANGE_LOST] = "change lost",
    [CHECKER_CHANGE_DOUBLED] = "change doubled",
    [CHECKER_CHANGE_UNDONE] = "change undone",
    [CHECKER_CHANGE_TORN] = "change torn",
    [CHECKER_CHANGE_SHARED] = "change shared",
    [CHECKER_CHANGE_ORDER] = "change out of order",
};

const char *checker_anomaly_name(enum checker_anomaly anomaly)
{
    return names[anomaly];
}

void checker_object(struct checker_report *report, enum checker_anomaly anomaly, const char *format,
                    ...)
{
    report->counts[anomaly]++;
    if (report->violations++ == 0) {
        int len = snprintf(report->first, sizeof report->first, "%s: ", names[anomaly]);
        va_list args;

        va_start(args, format);
        vsnprintf(report->first + len, sizeof report->first - (size_t)len, format, args);
        va_end(args);
    }
}

/* --- Versions -------------------------------------------------------------------------------- */

/* One write, found by its version or by its place among the versions of its item. */
struct write {
    uint32_t item;
    uint64_t version; /* 0: a delete */
    uint64_t lsn;
    unsigned behind; /* so many places behind the write of that LSN, whose own is not known */
    size_t transaction;
    size_t op;           /* among all operations of the history */
    uint64_t covered_ns; /* of a delete whose place is not known: from then on the item was surely
                            written again */
    bool is_last;        /* of its item in its transaction */
};

/* Is a transaction part of what happened? */
enum standing { STANDING_IN, STANDING_OUT, STANDING_OPEN };

enum edge_kind { EDGE_OWN, EDGE_WR, EDGE_WW, EDGE_RW, EDGE_TIME, EDGE_LSN };

struct edge {
    size_t to;
    enum edge_kind kind;
    size_t next; /* of the same instant; NONE: the last */
};

enum { NONE = SIZE_MAX };

struct check {
    const struct history *history;
    struct checker_report *report;
    struct arena *arena;

    enum standing *standings; /* by transaction */
    struct write *by_version; /* all with a version, aborted ones too, sorted */
    size_t version_count;
    struct write *by_order; /* those that happened, last of their transaction, by item and LSN */
    size_t order_count;
    size_t *item_begin;     /* items + 1 places in by_order */
    size_t *places;         /* by operation: its place in by_order, or NONE */
    size_t *op_begin;       /* by transaction: its first operation */
    struct write *unplaced; /* of unknown outcome, and their place is not known */
    size_t unplaced_count;

    size_t *edge_heads; /* by instant */
    size_t instant_count;
    struct edge *edges;
    size_t edge_count, edge_capacity;
};

static int version_compare(const void *left, const void *right)
{
    const struct write *a = left, *b = right;

    return a->version < b->version ? -1 : a->version > b->version;
}

static int order_compare(const void *left, const void *right)
{
    const struct write *a = left, *b = right;

    if (a->item != b->item)
        return a->item < b->item ? -1 : 1;
    if (a->lsn != b->lsn)
        return a->lsn < b->lsn ? -1 : 1;
    return a->behind < b->behind ? -1 : a->behind > b->behind;
}

static bool is_write(const struct history_op *op)
{
    return op->kind == CHECKED_WRITE || op->kind == CHECKED_DELETE;
}

static bool is_last_write(const struct history_transaction *transaction, size_t at)
{
    for (size_t i = at + 1; i < transaction->op_count; i++)
        if (is_write(&transaction->ops[i]) && transaction->ops[i].item == transaction->ops[at].item)
            return false;
    return true;
}

static struct write *version_find(const struct check *check, uint64_t version)
{
    struct write wanted = {.version = version};

    return bsearch(&wanted, check->by_version, check->version_count, sizeof wanted,
                   version_compare);
}

/* Whoever read a version has shown that its transaction happened, and with which LSN. */
static void unknown_prove(struct check *check)
{
    for (size_t t = 0; t < check->history->count; t++) {
        const struct history_transaction *reader = &check->history->transactions[t];

        for (size_t i = 0; i < reader->op_count; i++) {
            const struct history_op *op = &reader->ops[i];
            struct write *write;

            if (op->kind != CHECKED_READ || !op->version)
                continue;
            write = version_find(check, op->version);
            if (!write || write->transaction == t ||
                check->history->transactions[write->transaction].outcome != CHECKED_UNKNOWN)
                continue;
            check->standings[write->transaction] = STANDING_IN;
            if (!write->lsn)
                write->lsn = op->lsn;
        }
    }
}

/* When somebody was answered who wrote the item and asked behind the delete. */
static uint64_t delete_covered(const struct check *check, const struct write *delete)
{
    const struct history_transaction *all = check->history->transactions;
    uint64_t covered_ns = UINT64_MAX;

    for (size_t i = check->item_begin[delete->item]; i < check->item_begin[delete->item + 1]; i++) {
        const struct history_transaction *writer = &all[check->by_order[i].transaction];

        if (check->by_order[i].version && writer->asked_ns > all[delete->transaction].ended_ns)
            covered_ns = MIN(covered_ns, writer->ended_ns);
    }
    return covered_ns;
}

static void order_sort(struct check *check)
{
    qsort(check->by_order, check->order_count, sizeof(struct write), order_compare);
    for (size_t item = 0, at = 0; item <= check->history->items; item++) {
        while (at < check->order_count && check->by_order[at].item < item)
            at++;
        check->item_begin[item] = at;
    }
    for (size_t i = 0; i < check->order_count; i++)
        check->places[check->by_order[i].op] = i;
    for (size_t i = 0; i < check->unplaced_count; i++)
        if (!check->unplaced[i].version)
            check->unplaced[i].covered_ns = delete_covered(check, &check->unplaced[i]);
}

static void order_collect(struct check *check, size_t t)
{
    const struct history_transaction *transaction = &check->history->transactions[t];

    for (size_t i = 0; i < transaction->op_count; i++) {
        const struct history_op *op = &transaction->ops[i];
        bool unknown = transaction->outcome == CHECKED_UNKNOWN;
        struct write write = {.item = op->item,
                              .version = op->kind == CHECKED_WRITE ? op->version : 0,
                              .lsn = op->lsn,
                              .transaction = t,
                              .op = check->op_begin[t] + i,
                              .is_last = true};

        if (!is_write(op) || !is_last_write(transaction, i))
            continue;
        if (unknown && write.version)
            write.lsn = version_find(check, write.version)->lsn;
        if (unknown && (!write.lsn || check->standings[t] == STANDING_OPEN))
            check->unplaced[check->unplaced_count++] = write;
        else
            check->by_order[check->order_count++] = write;
    }
}

static void versions_collect(struct check *check)
{
    const struct history *history = check->history;
    size_t total = 0;

    check->op_begin = ARENA_ARRAY(check->arena, size_t, history->count);
    check->standings = ARENA_ARRAY(check->arena, enum standing, history->count);
    for (size_t t = 0; t < history->count; t++) {
        check->op_begin[t] = total;
        total += history->transactions[t].op_count;
    }
    check->by_version = ARENA_ARRAY(check->arena, struct write, total);
    check->by_order = ARENA_ARRAY(check->arena, struct write, total);
    check->unplaced = ARENA_ARRAY(check->arena, struct write, total);
    check->item_begin = ARENA_ARRAY(check->arena, size_t, history->items + 1);
    check->places = ARENA_ARRAY(check->arena, size_t, total);
    for (size_t i = 0; i < total; i++)
        check->places[i] = NONE;
    for (size_t t = 0; t < history->count; t++) {
        const struct history_transaction *transaction = &history->transactions[t];

        check->standings[t] = transaction->outcome == CHECKED_COMMITTED ? STANDING_IN
                              : transaction->outcome == CHECKED_ABORTED ? STANDING_OUT
                                                                        : STANDING_OPEN;
        for (size_t i = 0; i < transaction->op_count; i++)
            if (transaction->ops[i].kind == CHECKED_WRITE)
                check->by_version[check->version_count++] =
                    (struct write){.item = transaction->ops[i].item,
                                   .version = transaction->ops[i].version,
                                   .lsn = transaction->ops[i].lsn,
                                   .transaction = t,
                                   .is_last = is_last_write(transaction, i)};
    }
    qsort(check->by_version, check->version_count, sizeof(struct write), version_compare);
    unknown_prove(check);
    for (size_t t = 0; t < history->count; t++)
        if (check->standings[t] != STANDING_OUT)
            order_collect(check, t);
    order_sort(check);
}

/* Where what a transaction wrote stands among the versions of the item. */
static size_t order_of(const struct check *check, uint32_t item, size_t transaction)
{
    const struct history_transaction *writer = &check->history->transactions[transaction];

    for (size_t i = 0; i < writer->op_count; i++) {
        size_t place = check->places[check->op_begin[transaction] + i];

        if (place != NONE && writer->ops[i].item == item)
            return place;
    }
    return NONE;
}

/* --- What one read tells ---------------------------------------------------------------------- */

static void version_check(struct check *check, size_t reader, const struct history_op *op)
{
    const struct write *write = version_find(check, op->version);
    const struct history_transaction *writer;

    if (!write || write->item != op->item) {
        checker_object(check->report, CHECKER_UNKNOWN_VERSION,
                       "transaction %zu read version %llu of item %u, which nobody wrote", reader,
                       (unsigned long long)op->version, op->item);
        return;
    }
    writer = &check->history->transactions[write->transaction];
    if (writer->outcome == CHECKED_ABORTED)
        checker_object(check->report, CHECKER_ABORTED_READ,
                       "transaction %zu read version %llu of item %u, whose transaction %zu was "
                       "refused",
                       reader, (unsigned long long)op->version, op->item, write->transaction);
    else if (!write->is_last || (op->at_ns && op->at_ns < writer->asked_ns))
        checker_object(check->report, CHECKER_DIRTY_READ,
                       "transaction %zu read version %llu of item %u before transaction %zu asked "
                       "for its commit, or which it wrote over itself",
                       reader, (unsigned long long)op->version, op->item, write->transaction);
}

/* The op before this one on the same item, or NULL. */
static const struct history_op *op_before(const struct history_transaction *transaction, size_t at)
{
    uint32_t item = transaction->ops[at].item;

    while (at-- > 0)
        if (transaction->ops[at].item == item)
            return &transaction->ops[at];
    return NULL;
}

static void reads_check(struct check *check, size_t reader)
{
    const struct history_transaction *transaction = &check->history->transactions[reader];

    for (size_t i = 0; i < transaction->op_count; i++) {
        const struct history_op *op = &transaction->ops[i];
        const struct history_op *before = op_before(transaction, i);
        uint64_t expected;

        if (op->kind != CHECKED_READ)
            continue;
        if (!before || before->kind == CHECKED_PRESENT || before->kind == CHECKED_OTHER) {
            if (op->version)
                version_check(check, reader, op);
            continue;
        }
        expected = before->kind == CHECKED_DELETE ? 0 : before->version;
        if (op->version != expected)
            checker_object(check->report, CHECKER_NON_REPEATABLE,
                           "transaction %zu read version %llu of item %u after it had %s %llu",
                           reader, (unsigned long long)op->version, op->item,
                           is_write(before) ? "written" : "read", (unsigned long long)expected);
    }
}

/* --- Edges ----------------------------------------------------------------------------------- */

static size_t snapshot_of(size_t transaction)
{
    return 2 * transaction;
}

static size_t commit_of(size_t transaction)
{
    return 2 * transaction + 1;
}

static void edge_add(struct check *check, size_t from, size_t to, enum edge_kind kind)
{
    if (check->edge_count == check->edge_capacity) {
        check->edge_capacity = check->edge_capacity ? 2 * check->edge_capacity : 1024;
        check->edges = memory_realloc(
            check->edges, memory_array_size(check->edge_capacity, sizeof *check->edges));
    }
    check->edges[check->edge_count] =
        (struct edge){.to = to, .kind = kind, .next = check->edge_heads[from]};
    check->edge_heads[from] = check->edge_count++;
}

static void versions_connect(struct check *check)
{
    for (size_t i = 1; i < check->order_count; i++) {
        const struct write *a = &check->by_order[i - 1], *b = &check->by_order[i];

        if (a->item != b->item)
            continue;
        edge_add(check, commit_of(a->transaction), snapshot_of(b->transaction), EDGE_WW);
        edge_add(check, commit_of(a->transaction), commit_of(b->transaction), EDGE_LSN);
    }
}

/* Could the reader have seen the item as the write at this place left it (NONE: before the first),
 * by the clocks? */
static bool place_fits(const struct check *check, const struct history_transaction *reader,
                       uint32_t item, size_t place, size_t next)
{
    const struct history_transaction *all = check->history->transactions;

    if (place != NONE && all[check->by_order[place].transaction].asked_ns > reader->ended_ns)
        return false;
    return next == check->item_begin[item + 1] ||
           all[check->by_order[next].transaction].ended_ns > reader->began_ns;
}

/* Could a delete that may have happened, at a place that is not known, be why the reader saw
 * nothing? Not if somebody wrote the item behind it and was answered before. */
static bool is_deleted_unseen(const struct check *check, size_t reader, uint32_t item)
{
    const struct history_transaction *all = check->history->transactions;

    for (size_t i = 0; i < check->unplaced_count; i++) {
        const struct write *write = &check->unplaced[i];

        if (write->item == item && !write->version && write->transaction != reader &&
            all[write->transaction].asked_ns <= all[reader].ended_ns &&
            write->covered_ns >= all[reader].began_ns)
            return true;
    }
    return false;
}

/* The place in by_order of what a read saw. Returns how many there could be: it is known only
 * with 1. */
static size_t place_find(const struct check *check, size_t reader, const struct history_op *op,
                         size_t *ret_place)
{
    const struct history_transaction *transaction = &check->history->transactions[reader];
    size_t begin = check->item_begin[op->item], end = check->item_begin[op->item + 1];
    size_t own = order_of(check, op->item, reader), found = 0;

    if (op->version) {
        const struct write *write = version_find(check, op->version);
        size_t place =
            write && write->item == op->item ? order_of(check, op->item, write->transaction) : NONE;

        *ret_place = place;
        return place != NONE && check->by_order[place].version == op->version ? 1 : 2;
    }
    for (size_t next = begin; next <= end; next++) {
        size_t place = next == begin ? NONE : next - 1;

        if ((place == NONE || check->by_order[place].version == 0) &&
            (own == NONE || next <= own) && place_fits(check, transaction, op->item, place, next)) {
            found++;
            *ret_place = place;
        }
    }
    return is_deleted_unseen(check, reader, op->item) ? 2 : found;
}

/* What the transaction of a write had read of the item before, or NULL. */
static const struct history_op *read_before(const struct check *check, const struct write *write)
{
    const struct history_transaction *transaction =
        &check->history->transactions[write->transaction];

    for (size_t i = 0; i < transaction->op_count; i++)
        if (transaction->ops[i].item == write->item)
            return transaction->ops[i].kind == CHECKED_READ ? &transaction->ops[i] : NULL;
    return NULL;
}

/* Writes of unknown outcome that happened come right behind what they had read. One may stand
 * behind another, so it is tried until no more find their place. */
static void unplaced_place(struct check *check)
{
    size_t left, before;

    do {
        before = check->unplaced_count;
        left = 0;
        for (size_t i = 0; i < before; i++) {
            struct write write = check->unplaced[i];
            const struct history_op *read = read_before(check, &write);
            size_t place;

            if (check->standings[write.transaction] != STANDING_IN || !read ||
                place_find(check, write.transaction, read, &place) != 1) {
                check->unplaced[left++] = write;
                continue;
            }
            write.lsn = place == NONE ? 0 : check->by_order[place].lsn;
            write.behind = place == NONE ? 1 : check->by_order[place].behind + 1;
            check->by_order[check->order_count + (i - left)] = write;
        }
        check->unplaced_count = left;
        check->order_count += before - left;
        if (left != before)
            order_sort(check);
    } while (left != before);
}

/* Read one version, wrote another that is not the next one. */
static void update_check(struct check *check, size_t index, const struct history_op *op,
                         size_t next)
{
    size_t own = order_of(check, op->item, index);

    if (own != NONE && own != next)
        checker_object(check->report, CHECKER_LOST_UPDATE,
                       "transaction %zu read version %llu of item %u and wrote over a later one",
                       index, (unsigned long long)op->version, op->item);
}

static void reads_connect(struct check *check, size_t reader)
{
    const struct history_transaction *transaction = &check->history->transactions[reader];

    for (size_t i = 0; i < transaction->op_count; i++) {
        const struct history_op *op = &transaction->ops[i];
        size_t place, next, found;

        if (op->kind != CHECKED_READ || op_before(transaction, i))
            continue;
        found = place_find(check, reader, op, &place);
        if (found == 0)
            checker_object(check->report, CHECKER_STALE_READ,
                           "transaction %zu did not see item %u, which was there all the time",
                           reader, op->item);
        if (found != 1)
            continue;
        next = place == NONE ? check->item_begin[op->item] : place + 1;
        update_check(check, reader, op, next);
        if (place != NONE)
            edge_add(check, commit_of(check->by_order[place].transaction), snapshot_of(reader),
                     EDGE_WR);
        if (next < check->item_begin[op->item + 1] && check->by_order[next].transaction != reader)
            edge_add(check, snapshot_of(reader), commit_of(check->by_order[next].transaction),
                     EDGE_RW);
    }
}

struct moment {
    uint64_t at_ns;
    size_t transaction;
    bool is_end;
};

/* At the same nanosecond beginnings come first: only what is strictly before is before. */
static int moment_compare(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;

    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return a->is_end - b->is_end;
}

static void times_connect(struct check *check)
{
    size_t count = check->history->count, moments = 0, last = NONE, instant = 2 * count;
    struct moment *all = ARENA_ARRAY(check->arena, struct moment, 2 * count);

    for (size_t t = 0; t < count; t++) {
        const struct history_transaction *transaction = &check->history->transactions[t];

        if (check->standings[t] != STANDING_IN)
            continue;
        all[moments++] = (struct moment){transaction->began_ns, t, false};
        all[moments++] = (struct moment){transaction->ended_ns, t, true};
    }
    qsort(all, moments, sizeof *all, moment_compare);
    for (size_t i = 0; i < moments; i++) {
        if (all[i].is_end) {
            edge_add(check, commit_of(all[i].transaction), instant, EDGE_TIME);
            if (last != NONE)
                edge_add(check, last, instant, EDGE_TIME);
            last = instant++;
        } else if (last != NONE) {
            edge_add(check, last, snapshot_of(all[i].transaction), EDGE_TIME);
        }
    }
}

/* --- Cycles ---------------------------------------------------------------------------------- */

enum colour { WHITE, OPEN, DONE };

/* Walks depth first without recursion. The instant an edge leads back to, or NONE. */
static size_t cycle_find(const struct check *check)
{
    uint8_t *colours = arena_alloc_zero(check->arena, check->instant_count);
    size_t *stack = ARENA_ARRAY(check->arena, size_t, check->instant_count);
    size_t *edges = ARENA_ARRAY(check->arena, size_t, check->instant_count);

    for (size_t root = 0; root < check->instant_count; root++) {
        size_t depth = 0;

        if (colours[root] != WHITE)
            continue;
        stack[depth++] = root;
        colours[root] = OPEN;
        edges[root] = check->edge_heads[root];
        while (depth) {
            size_t at = stack[depth - 1], edge = edges[at];

            if (edge == NONE) {
                colours[at] = DONE;
                depth--;
                continue;
            }
            edges[at] = check->edges[edge].next;
            at = check->edges[edge].to;
            if (colours[at] == OPEN)
                return at;
            if (colours[at] == WHITE) {
                colours[at] = OPEN;
                edges[at] = check->edge_heads[at];
                stack[depth++] = at;
            }
        }
    }
    return NONE;
}

/* What a shortest cycle through an instant is made of. */
struct cycle {
    size_t kinds[EDGE_LSN + 1];
    char words[300];
};

static size_t transaction_of(const struct check *check, size_t instant)
{
    return instant < 2 * check->history->count ? instant / 2 : NONE;
}

/* For whoever looks for the reason: HISTORY_TELL=1. */
static void transaction_tell(const struct check *check, size_t number)
{
    static const char *const kinds[] = {"read", "present", "other", "wrote", "deleted"};
    static const char *const outcomes[] = {"committed", "aborted", "unknown"};
    const struct history_transaction *one = &check->history->transactions[number];

    if (!getenv("HISTORY_TELL"))
        return;
    printf("# transaction %zu of client %u, %s%s: began %llu, asked %llu, ended %llu us\n", number,
           one->client, one->plain ? "plain, " : "", outcomes[one->outcome],
           (unsigned long long)one->began_ns / 1000, (unsigned long long)one->asked_ns / 1000,
           (unsigned long long)one->ended_ns / 1000);
    for (size_t i = 0; i < one->op_count; i++)
        printf("#     %s item %u, version %llx, lsn %llu, at %llu us\n", kinds[one->ops[i].kind],
               one->ops[i].item, (unsigned long long)one->ops[i].version,
               (unsigned long long)one->ops[i].lsn, (unsigned long long)one->ops[i].at_ns / 1000);
}

static void cycle_trace(const struct check *check, size_t through, const size_t *by_edge,
                        const size_t *from, struct cycle *ret_cycle)
{
    static const char *const words[] = {"own", "wr", "ww", "rw", "time", "lsn"};
    size_t at = through, len = 0;

    *ret_cycle = (struct cycle){0};
    do {
        const struct edge *edge = &check->edges[by_edge[at]];

        ret_cycle->kinds[edge->kind]++;
        if (len < sizeof ret_cycle->words - 60 && transaction_of(check, at) != NONE &&
            edge->kind != EDGE_OWN)
            len += (size_t)snprintf(ret_cycle->words + len, sizeof ret_cycle->words - len,
                                    "%stransaction %zu (by %s)", len ? " after " : "",
                                    transaction_of(check, at), words[edge->kind]);
        if (transaction_of(check, at) != NONE && edge->kind != EDGE_OWN)
            transaction_tell(check, transaction_of(check, at));
        at = from[at];
    } while (at != through);
}

static void cycle_measure(const struct check *check, size_t through, struct cycle *ret_cycle)
{
    size_t *queue = ARENA_ARRAY(check->arena, size_t, check->instant_count + 1); /* through twice */
    size_t *from = ARENA_ARRAY(check->arena, size_t, check->instant_count);
    size_t *by_edge = ARENA_ARRAY(check->arena, size_t, check->instant_count);
    size_t head = 0, tail = 0;

    for (size_t i = 0; i < check->instant_count; i++)
        by_edge[i] = NONE;
    queue[tail++] = through;
    while (head < tail && by_edge[through] == NONE) {
        size_t at = queue[head++];

        for (size_t edge = check->edge_heads[at]; edge != NONE; edge = check->edges[edge].next) {
            size_t to = check->edges[edge].to;

            if (by_edge[to] != NONE)
                continue;
            by_edge[to] = edge;
            from[to] = at;
            queue[tail++] = to;
        }
    }
    cycle_trace(check, through, by_edge, from, ret_cycle);
}

static enum checker_anomaly cycle_name(const struct cycle *cycle)
{
    if (cycle->kinds[EDGE_TIME])
        return cycle->kinds[EDGE_RW] ? CHECKER_STALE_READ : CHECKER_FUTURE_READ;
    if (cycle->kinds[EDGE_RW] == 0)
        return CHECKER_CIRCULAR_FLOW;
    if (cycle->kinds[EDGE_RW] > 1)
        return CHECKER_LONG_FORK;
    return cycle->kinds[EDGE_WR] ? CHECKER_READ_SKEW : CHECKER_LOST_UPDATE;
}

static bool cycles_check(struct check *check)
{
    size_t through = cycle_find(check);
    struct cycle cycle;

    if (through == NONE)
        return true;
    cycle_measure(check, through, &cycle);
    checker_object(check->report, cycle_name(&cycle), "there is a circle: %s", cycle.words);
    return false;
}

/* --- All of it ------------------------------------------------------------------------------- */

/* Pairs that each missed what the other wrote, on different items. */
static void skews_count(struct check *check)
{
    for (size_t t = 0; t < check->history->count; t++)
        for (size_t e = check->edge_heads[snapshot_of(t)]; e != NONE; e = check->edges[e].next) {
            size_t other = transaction_of(check, check->edges[e].to);

            if (check->edges[e].kind != EDGE_RW || other <= t)
                continue;
            for (size_t back = check->edge_heads[snapshot_of(other)]; back != NONE;
                 back = check->edges[back].next)
                if (check->edges[back].kind == EDGE_RW && check->edges[back].to == commit_of(t)) {
                    check->report->write_skews++;
                    break;
                }
        }
}

void checker_isolation(const struct history *history, struct checker_report *report)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct check check = {.history = history, .report = report, .arena = arena};

    versions_collect(&check);
    unplaced_place(&check);
    check.instant_count = 3 * history->count;
    check.edge_heads = ARENA_ARRAY(arena, size_t, check.instant_count);
    for (size_t i = 0; i < check.instant_count; i++)
        check.edge_heads[i] = NONE;
    for (size_t t = 0; t < history->count; t++) {
        if (check.standings[t] == STANDING_IN) {
            edge_add(&check, snapshot_of(t), commit_of(t), EDGE_OWN);
            reads_connect(&check, t);
        }
        reads_check(&check, t);
    }
    versions_connect(&check);
    if (cycles_check(&check)) {
        times_connect(&check);
        cycles_check(&check);
        skews_count(&check);
    }
    memory_free(check.edges);
}
