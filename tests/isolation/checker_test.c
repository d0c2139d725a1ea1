/* Histories written by hand, one for each thing that must be objected to, and some that must not.
 *
 * Time runs from 1; a transaction is T(began, asked, ended, ops). X, Y and Z are items; versions of
 * one history are all different. */
#include "isolation/checker.h"
#include "support/check.h"

enum { X, Y, Z, ITEMS };

#define OPS(...)                                                                                   \
    .ops = (struct history_op[]){__VA_ARGS__},                                                     \
    .op_count = sizeof((struct history_op[]){__VA_ARGS__}) / sizeof(struct history_op)
#define T(began, asked, ended, ...)                                                                \
    {                                                                                              \
        .began_ns = (began), .asked_ns = (asked), .ended_ns = (ended), OPS(__VA_ARGS__)            \
    }
#define PLAIN(began, ended, ...)                                                                   \
    {                                                                                              \
        .plain = true, .began_ns = (began), .asked_ns = (began), .ended_ns = (ended),              \
        OPS(__VA_ARGS__)                                                                           \
    }
#define REFUSED(began, asked, ended, ...)                                                          \
    {                                                                                              \
        .outcome = CHECKED_ABORTED, .began_ns = (began), .asked_ns = (asked), .ended_ns = (ended), \
        OPS(__VA_ARGS__)                                                                           \
    }
#define UNKNOWN(began, asked, settled, ...)                                                        \
    {                                                                                              \
        .outcome = CHECKED_UNKNOWN, .began_ns = (began), .asked_ns = (asked),                      \
        .ended_ns = (settled), OPS(__VA_ARGS__)                                                    \
    }
#define PLAIN_UNKNOWN(began, settled, ...)                                                         \
    {                                                                                              \
        .outcome = CHECKED_UNKNOWN, .plain = true, .began_ns = (began), .asked_ns = (began),       \
        .ended_ns = (settled), OPS(__VA_ARGS__)                                                    \
    }
#define READ(item_, version_)                                                                      \
    {                                                                                              \
        .kind = CHECKED_READ, .item = (item_), .version = (version_)                               \
    }
#define READ_LSN(item_, version_, lsn_)                                                            \
    {                                                                                              \
        .kind = CHECKED_READ, .item = (item_), .version = (version_), .lsn = (lsn_)                \
    }
#define WRITE(item_, version_, lsn_)                                                               \
    {                                                                                              \
        .kind = CHECKED_WRITE, .item = (item_), .version = (version_), .lsn = (lsn_)               \
    }
#define DELETE(item_, lsn_)                                                                        \
    {                                                                                              \
        .kind = CHECKED_DELETE, .item = (item_), .lsn = (lsn_)                                     \
    }
#define PRESENT(item_)                                                                             \
    {                                                                                              \
        .kind = CHECKED_PRESENT, .item = (item_)                                                   \
    }
#define OTHER(item_, version_)                                                                     \
    {                                                                                              \
        .kind = CHECKED_OTHER, .item = (item_), .version = (version_)                              \
    }

#define CHECK(report, transactions)                                                                \
    check((transactions), sizeof(transactions) / sizeof *(transactions), &(report))

static void check(struct history_transaction *transactions, size_t count,
                  struct checker_report *ret_report)
{
    struct history history = {.transactions = transactions, .count = count, .items = ITEMS};

    *ret_report = (struct checker_report){0};
    checker_isolation(&history, ret_report);
    checker_items(&history, ret_report);
}

static void expect_only(const struct checker_report *report, enum checker_anomaly anomaly)
{
    if (report->violations == 0)
        fail_msg("no objection; wanted: %s", checker_anomaly_name(anomaly));
    if (report->counts[anomaly] != report->violations)
        fail_msg("wanted nothing but %s, got: %s", checker_anomaly_name(anomaly), report->first);
}

static void expect_fine(const struct checker_report *report)
{
    if (report->violations)
        fail_msg("%s", report->first);
}

static void one_after_another_is_fine(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1), WRITE(Y, 2, 1)),
        T(4, 5, 6, READ(X, 1), READ(Y, 2), WRITE(X, 3, 2)),
        T(7, 8, 9, READ(X, 3), READ(Y, 2), WRITE(X, 4, 3), READ(X, 4)),
        T(10, 11, 12, READ(X, 4), DELETE(X, 4), READ(X, 0)),
        T(13, 14, 15, READ(X, 0), WRITE(X, 5, 5)),
        PLAIN(16, 17, READ(X, 5)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_fine(&report);
    assert_int_equal(report.write_skews, 0);
}

static void a_refused_update_is_no_lost_one(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        T(4, 8, 9, READ(X, 1), WRITE(X, 2, 2)),
        REFUSED(4, 8, 9, READ(X, 1), WRITE(X, 3, 0)),
        PLAIN(10, 11, READ(X, 2)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_fine(&report);
}

static void write_skew_is_counted_and_allowed(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1), WRITE(Y, 2, 1)),
        T(4, 8, 9, READ(X, 1), READ(Y, 2), WRITE(X, 3, 2)),
        T(5, 8, 9, READ(X, 1), READ(Y, 2), WRITE(Y, 4, 3)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_fine(&report);
    assert_int_equal(report.write_skews, 1);
}

static void a_concurrent_write_may_be_seen_or_not(void **state UNUSED)
{
    struct history_transaction all[] = {
        PLAIN(1, 2, WRITE(X, 1, 1)),
        PLAIN(3, 9, PRESENT(X), WRITE(X, 2, 2)),
        PLAIN(4, 5, READ(X, 1)),
        PLAIN(6, 7, READ(X, 2)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_fine(&report);
}

static void a_version_nobody_wrote_is_objected_to(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        T(4, 5, 6, READ(X, 99)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_UNKNOWN_VERSION);
}

static void an_aborted_read_is_named(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        REFUSED(4, 5, 6, WRITE(X, 2, 0)),
        T(5, 7, 8, READ(X, 2)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_ABORTED_READ);
}

static void a_read_before_the_commit_was_asked_for_is_dirty(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        T(4, 8, 9, WRITE(X, 2, 2)),
        T(5, 10, 11, {.kind = CHECKED_READ, .item = X, .version = 2, .at_ns = 6}),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_DIRTY_READ);
}

static void a_read_of_what_its_writer_wrote_over_is_dirty(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 5, 6, WRITE(X, 1, 1), WRITE(X, 2, 1)),
        T(2, 7, 8, READ(X, 1)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_DIRTY_READ);
}

static void two_versions_in_one_transaction_are_named(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        T(4, 9, 10, READ(X, 1), READ(X, 2)),
        T(5, 6, 7, WRITE(X, 2, 2)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_NON_REPEATABLE);
}

static void not_seeing_the_own_write_is_named(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        T(4, 9, 10, READ(X, 1), WRITE(X, 2, 2), READ(X, 1)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_NON_REPEATABLE);
}

static void a_lost_update_is_named(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        T(4, 8, 9, READ(X, 1), WRITE(X, 2, 2)),
        T(4, 8, 9, READ(X, 1), WRITE(X, 3, 3)),
    };
    struct checker_report report;

    CHECK(report, all);
    assert_true(report.counts[CHECKER_LOST_UPDATE] > 0);
    assert_true(report.counts[CHECKER_NOT_LINEAR] > 0);
    assert_contains(report.first, "lost update");
}

static void two_creations_of_one_item_are_a_lost_update(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 5, 6, READ(X, 0), WRITE(X, 1, 1)),
        T(1, 5, 6, READ(X, 0), WRITE(X, 2, 2)),
    };
    struct checker_report report;

    CHECK(report, all);
    assert_true(report.counts[CHECKER_LOST_UPDATE] > 0);
}

static void read_skew_is_named(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1), WRITE(Y, 2, 1)),
        T(4, 10, 11, READ(X, 1), READ(Y, 4)),
        T(5, 6, 7, WRITE(X, 3, 2), WRITE(Y, 4, 2)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_READ_SKEW);
}

/* Saw a later one of two transactions that follow each other, not the earlier. */
static void read_skew_around_a_corner_is_named(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1), WRITE(Y, 2, 1)),
        T(4, 20, 21, READ(X, 1), READ(Y, 4)),
        T(5, 6, 7, READ(X, 1), WRITE(X, 3, 2), WRITE(Z, 5, 2)),
        T(8, 9, 10, READ(Z, 5), WRITE(Y, 4, 3)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_READ_SKEW);
}

static void a_long_fork_is_named(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1), WRITE(Y, 2, 1)),
        T(4, 10, 20, WRITE(X, 3, 2)),
        T(4, 10, 20, WRITE(Y, 4, 3)),
        T(5, 15, 16, READ(X, 3), READ(Y, 2)),
        T(5, 15, 16, READ(X, 1), READ(Y, 4)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_LONG_FORK);
}

static void seeing_each_other_is_named(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 5, 9, READ(Y, 2), WRITE(X, 1, 1)),
        T(1, 5, 9, READ(X, 1), WRITE(Y, 2, 2)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_CIRCULAR_FLOW);
}

static void missing_an_acknowledged_write_is_stale(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        T(4, 5, 6, READ(X, 1), WRITE(X, 2, 2)),
        T(7, 8, 9, READ(X, 1)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_STALE_READ);
}

static void missing_an_item_that_was_always_there_is_stale(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        T(4, 5, 6, READ(X, 0)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_only(&report, CHECKER_STALE_READ);
}

static void lsns_against_time_are_named(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 2)),
        T(4, 5, 6, WRITE(X, 2, 1)),
    };
    struct checker_report report;

    CHECK(report, all);
    assert_int_equal(report.counts[CHECKER_FUTURE_READ], 1);
}

static void a_plain_read_that_goes_back_is_not_linear(void **state UNUSED)
{
    struct history_transaction all[] = {
        PLAIN(1, 2, WRITE(X, 1, 1)),
        PLAIN(3, 20, PRESENT(X), WRITE(X, 2, 2)),
        PLAIN(4, 5, READ(X, 2)),
        PLAIN(6, 7, READ(X, 1)),
    };
    struct checker_report report;

    CHECK(report, all);
    assert_int_equal(report.counts[CHECKER_NOT_LINEAR], 1);
}

static void refusals_must_have_a_moment_too(void **state UNUSED)
{
    struct history_transaction good[] = {
        PLAIN(1, 2, READ(X, 0), WRITE(X, 1, 1)),
        PLAIN(3, 10, PRESENT(X), DELETE(X, 2)),
        PLAIN(4, 5, PRESENT(X)),  /* create: exists */
        PLAIN(6, 7, OTHER(X, 1)), /* replace if-match 1: precondition */
        PLAIN(8, 9, READ(X, 0)),  /* replace: missing */
    };
    struct history_transaction bad[] = {
        PLAIN(1, 2, READ(X, 0), WRITE(X, 1, 1)), PLAIN(4, 5, OTHER(X, 1)), /* nobody changed it */
    };
    struct checker_report report;

    CHECK(report, good);
    expect_fine(&report);
    CHECK(report, bad);
    expect_only(&report, CHECKER_NOT_LINEAR);
}

/* --- Outcomes that are not known ---------------------------------------------------------------
 */

static void an_unknown_outcome_may_be_either(void **state UNUSED)
{
    struct history_transaction happened[] = {
        T(1, 2, 3, WRITE(X, 1, 1), WRITE(Y, 2, 1)),
        UNKNOWN(4, 5, 10, READ(X, 1), WRITE(X, 3, 0), READ(Y, 2), WRITE(Y, 4, 0)),
        T(6, 7, 8, READ(X, 1), READ(Y, 2)), /* not yet */
        T(11, 12, 13, READ_LSN(X, 3, 2), READ_LSN(Y, 4, 2)),
        PLAIN(14, 15, READ_LSN(X, 3, 2)),
    };
    struct history_transaction did_not[] = {
        T(1, 2, 3, WRITE(X, 1, 1), WRITE(Y, 2, 1)),
        UNKNOWN(4, 5, 10, READ(X, 1), WRITE(X, 3, 0), READ(Y, 2), WRITE(Y, 4, 0)),
        T(11, 12, 13, READ(X, 1), READ(Y, 2), WRITE(Y, 5, 2)),
        PLAIN(14, 15, READ(X, 1)),
        PLAIN(14, 15, READ(Y, 5)),
    };
    struct checker_report report;

    CHECK(report, happened);
    expect_fine(&report);
    CHECK(report, did_not);
    expect_fine(&report);
}

static void a_plain_write_of_unknown_outcome_may_be_either(void **state UNUSED)
{
    struct history_transaction all[] = {
        PLAIN(1, 2, READ(X, 0), WRITE(X, 1, 1)),
        PLAIN_UNKNOWN(3, 8, WRITE(X, 2, 0)),
        PLAIN_UNKNOWN(3, 9, PRESENT(X), DELETE(X, 0)),
        PLAIN_UNKNOWN(4, 9, READ(X, 1), WRITE(X, 3, 0)), /* if-match 1 */
        PLAIN(5, 6, READ(X, 1)),
        PLAIN(10, 11, READ(X, 0)),
        PLAIN(12, 13, READ(X, 0)),
    };
    struct checker_report report;

    CHECK(report, all);
    expect_fine(&report);
}

/* Its etag had to be 1, and that was over before it could have happened. */
static void a_condition_holds_for_unknown_outcomes_too(void **state UNUSED)
{
    struct history_transaction all[] = {
        PLAIN(1, 2, READ(X, 0), WRITE(X, 1, 1)),
        PLAIN(3, 4, PRESENT(X), WRITE(X, 2, 2)),
        PLAIN_UNKNOWN(5, 8, READ(X, 1), WRITE(X, 3, 0)),
        PLAIN(9, 10, READ_LSN(X, 3, 3)),
    };
    struct checker_report report;

    CHECK(report, all);
    assert_true(report.counts[CHECKER_NOT_LINEAR] > 0);
}

static void a_write_that_was_acknowledged_is_not_lost_to_an_unknown_one(void **state UNUSED)
{
    struct history_transaction plain[] = {
        PLAIN(1, 2, READ(X, 0), WRITE(X, 1, 1)),
        PLAIN(3, 4, PRESENT(X), WRITE(X, 2, 2)),
        PLAIN_UNKNOWN(5, 8, PRESENT(X), WRITE(X, 3, 0)),
        PLAIN(9, 10, READ(X, 1)),
    };
    struct history_transaction transactions[] = {
        T(1, 2, 3, READ(X, 0), WRITE(X, 1, 1)),
        T(4, 5, 6, READ(X, 1), WRITE(X, 2, 2)),
        UNKNOWN(7, 8, 12, READ(X, 2), WRITE(X, 3, 0)),
        T(13, 14, 15, READ(X, 1)),
    };
    struct checker_report report;

    CHECK(report, plain);
    assert_true(report.counts[CHECKER_NOT_LINEAR] > 0);
    CHECK(report, transactions);
    expect_only(&report, CHECKER_STALE_READ);
}

static void what_was_seen_of_an_unknown_outcome_stays(void **state UNUSED)
{
    struct history_transaction plain[] = {
        PLAIN(1, 2, READ(X, 0), WRITE(X, 1, 1)),
        PLAIN_UNKNOWN(3, 20, PRESENT(X), WRITE(X, 2, 0)),
        PLAIN(4, 5, READ_LSN(X, 2, 2)),
        PLAIN(6, 7, READ(X, 1)),
    };
    struct history_transaction transactions[] = {
        T(1, 2, 3, READ(X, 0), WRITE(X, 1, 1)),
        UNKNOWN(4, 5, 20, READ(X, 1), WRITE(X, 2, 0)),
        T(6, 7, 8, READ(X, 2), WRITE(Y, 3, 2)),
        T(9, 10, 11, READ(X, 1), READ(Y, 3)),
    };
    struct checker_report report;

    CHECK(report, plain);
    assert_true(report.counts[CHECKER_NOT_LINEAR] > 0);
    CHECK(report, transactions);
    expect_only(&report, CHECKER_READ_SKEW);
}

/* By 10 the store was found again, and nothing was there. */
static void a_write_that_did_not_happen_is_not_resurrected(void **state UNUSED)
{
    struct history_transaction plain[] = {
        PLAIN(1, 2, READ(X, 0), WRITE(X, 1, 1)),
        PLAIN_UNKNOWN(3, 10, PRESENT(X), WRITE(X, 2, 0)),
        PLAIN(11, 12, READ(X, 1)),
        PLAIN(13, 14, READ_LSN(X, 2, 2)),
    };
    struct history_transaction transactions[] = {
        T(1, 2, 3, READ(X, 0), WRITE(X, 1, 1)),
        UNKNOWN(4, 5, 10, READ(X, 1), WRITE(X, 2, 0)),
        T(11, 12, 13, READ(X, 1)),
        T(14, 15, 16, READ(X, 2)),
    };
    struct checker_report report;

    CHECK(report, plain);
    assert_true(report.counts[CHECKER_NOT_LINEAR] > 0);
    CHECK(report, transactions);
    expect_only(&report, CHECKER_STALE_READ);
}

static void an_unknown_outcome_is_not_torn(void **state UNUSED)
{
    struct history_transaction written[] = {
        T(1, 2, 3, WRITE(X, 1, 1), WRITE(Y, 2, 1)),
        UNKNOWN(4, 5, 10, READ(X, 1), WRITE(X, 3, 0), READ(Y, 2), WRITE(Y, 4, 0)),
        T(11, 12, 13, READ_LSN(X, 3, 2), READ_LSN(Y, 2, 1)),
    };
    struct history_transaction created[] = {
        UNKNOWN(4, 5, 10, READ(X, 0), WRITE(X, 3, 0), READ(Y, 0), WRITE(Y, 4, 0)),
        T(11, 12, 13, READ_LSN(X, 3, 2), READ(Y, 0)),
    };
    struct history_transaction deleted[] = {
        T(1, 2, 3, WRITE(X, 1, 1), WRITE(Y, 2, 1)),
        UNKNOWN(4, 5, 10, READ(X, 1), WRITE(X, 3, 0), READ(Y, 2), DELETE(Y, 0)),
        T(11, 12, 13, READ_LSN(X, 3, 2), READ_LSN(Y, 2, 1)),
    };
    struct checker_report report;

    CHECK(report, written);
    expect_only(&report, CHECKER_READ_SKEW);
    CHECK(report, created);
    expect_only(&report, CHECKER_STALE_READ);
    CHECK(report, deleted);
    expect_only(&report, CHECKER_READ_SKEW);
}

static void an_update_over_one_of_unknown_outcome_is_lost(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        UNKNOWN(4, 8, 20, READ(X, 1), WRITE(X, 2, 0)),
        T(4, 8, 12, READ(X, 1), WRITE(X, 3, 3)),
        T(9, 10, 11, READ_LSN(X, 2, 2)),
    };
    struct checker_report report;

    CHECK(report, all);
    assert_true(report.counts[CHECKER_LOST_UPDATE] > 0);
}

static void
an_unknown_delete_explains_a_missing_item_only_until_it_is_written_again(void **state UNUSED)
{
    struct history_transaction missing[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        UNKNOWN(4, 5, 10, READ(X, 1), DELETE(X, 0)),
        T(11, 12, 13, READ(X, 0)),
    };
    struct history_transaction written_again[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        UNKNOWN(4, 5, 10, READ(X, 1), DELETE(X, 0)),
        T(11, 12, 13, WRITE(X, 2, 3)),
        T(14, 15, 16, READ(X, 0)),
    };
    struct checker_report report;

    CHECK(report, missing);
    expect_fine(&report);
    CHECK(report, written_again);
    expect_only(&report, CHECKER_STALE_READ);
}

static void a_refused_transaction_is_no_unknown_one(void **state UNUSED)
{
    struct history_transaction all[] = {
        T(1, 2, 3, WRITE(X, 1, 1)),
        REFUSED(4, 5, 6, READ(X, 1), WRITE(X, 2, 0)),
        PLAIN(7, 8, READ_LSN(X, 2, 2)),
    };
    struct checker_report report;

    CHECK(report, all);
    assert_true(report.counts[CHECKER_ABORTED_READ] > 0);
}

/* --- Changes that are told --------------------------------------------------------------------
 */

/* X and Y in one transaction, X again, X deleted; one that was refused; one that nobody was told
 * of. */
static struct history_transaction written[] = {
    T(1, 2, 3, WRITE(X, 11, 1), WRITE(Y, 12, 1)),
    T(4, 5, 6, WRITE(X, 13, 2)),
    PLAIN(7, 8, DELETE(X, 3)),
    REFUSED(9, 10, 11, WRITE(Y, 14, 0)),
    UNKNOWN(12, 13, 20, WRITE(Y, 15, 0), WRITE(Z, 16, 0)),
};

static void told(const struct history_change *changes, size_t count,
                 struct checker_report *ret_report)
{
    struct history history = {.transactions = written, .count = ARRAY_LEN(written), .items = ITEMS};

    *ret_report = (struct checker_report){0};
    checker_changes(&history, changes, count, ret_report);
}

#define TOLD(report, ...)                                                                          \
    told((struct history_change[]){__VA_ARGS__},                                                   \
         sizeof((struct history_change[]){__VA_ARGS__}) / sizeof(struct history_change),           \
         &(report))

static void changes_in_order_are_fine(void **state UNUSED)
{
    struct checker_report report;

    TOLD(report, {5, X, 11}, {5, Y, 12}, {6, X, 13}, {9, X, 0});
    assert_string_equal(report.first, "");
    TOLD(report, {5, X, 11}, {5, Y, 12}, {6, X, 13}, {9, X, 0}, {10, Y, 15}, {10, Z, 16});
    assert_string_equal(report.first, "");
}

static void a_change_that_is_not_told_is_lost(void **state UNUSED)
{
    struct checker_report report;

    TOLD(report, {5, X, 11}, {6, X, 13}, {9, X, 0});
    assert_true(report.counts[CHECKER_CHANGE_LOST] > 0);
    TOLD(report, {5, X, 11}, {5, Y, 12}, {6, X, 13});
    assert_true(report.counts[CHECKER_CHANGE_LOST] > 0);
}

static void a_change_that_is_told_twice_is_named(void **state UNUSED)
{
    struct checker_report report;

    TOLD(report, {5, X, 11}, {5, Y, 12}, {6, X, 13}, {7, Y, 12}, {9, X, 0});
    assert_true(report.counts[CHECKER_CHANGE_DOUBLED] > 0);
    TOLD(report, {5, X, 11}, {5, Y, 12}, {6, X, 13}, {9, X, 0}, {10, X, 0});
    assert_true(report.counts[CHECKER_CHANGE_ORDER] > 0);
}

static void a_change_that_was_refused_is_not_told(void **state UNUSED)
{
    struct checker_report report;

    TOLD(report, {5, X, 11}, {5, Y, 12}, {6, X, 13}, {9, X, 0}, {10, Y, 14});
    assert_true(report.counts[CHECKER_CHANGE_UNDONE] > 0);
}

static void changes_of_a_transaction_are_told_together(void **state UNUSED)
{
    struct checker_report report;

    TOLD(report, {4, Y, 12}, {5, X, 11}, {6, X, 13}, {9, X, 0});
    expect_only(&report, CHECKER_CHANGE_TORN);
    TOLD(report, {5, X, 11}, {5, Y, 12}, {6, X, 13}, {9, X, 0}, {10, Y, 15});
    expect_only(&report, CHECKER_CHANGE_TORN);
    TOLD(report, {5, X, 11}, {5, Y, 12}, {5, X, 13}, {9, X, 0});
    expect_only(&report, CHECKER_CHANGE_SHARED);
}

static void changes_are_told_in_the_order_of_their_commits(void **state UNUSED)
{
    struct checker_report report;

    TOLD(report, {4, X, 13}, {5, X, 11}, {5, Y, 12}, {9, X, 0});
    assert_true(report.counts[CHECKER_CHANGE_ORDER] > 0);
    TOLD(report, {4, Y, 15}, {4, Z, 16}, {5, X, 11}, {5, Y, 12}, {6, X, 13}, {9, X, 0});
    expect_only(&report, CHECKER_CHANGE_ORDER);
    TOLD(report, {5, X, 11}, {5, Y, 12}, {6, X, 13}, {3, X, 0});
    assert_true(report.counts[CHECKER_CHANGE_ORDER] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_another_is_fine),
        cmocka_unit_test(a_refused_update_is_no_lost_one),
        cmocka_unit_test(write_skew_is_counted_and_allowed),
        cmocka_unit_test(a_concurrent_write_may_be_seen_or_not),
        cmocka_unit_test(a_version_nobody_wrote_is_objected_to),
        cmocka_unit_test(an_aborted_read_is_named),
        cmocka_unit_test(a_read_before_the_commit_was_asked_for_is_dirty),
        cmocka_unit_test(a_read_of_what_its_writer_wrote_over_is_dirty),
        cmocka_unit_test(two_versions_in_one_transaction_are_named),
        cmocka_unit_test(not_seeing_the_own_write_is_named),
        cmocka_unit_test(a_lost_update_is_named),
        cmocka_unit_test(two_creations_of_one_item_are_a_lost_update),
        cmocka_unit_test(read_skew_is_named),
        cmocka_unit_test(read_skew_around_a_corner_is_named),
        cmocka_unit_test(a_long_fork_is_named),
        cmocka_unit_test(seeing_each_other_is_named),
        cmocka_unit_test(missing_an_acknowledged_write_is_stale),
        cmocka_unit_test(missing_an_item_that_was_always_there_is_stale),
        cmocka_unit_test(lsns_against_time_are_named),
        cmocka_unit_test(a_plain_read_that_goes_back_is_not_linear),
        cmocka_unit_test(refusals_must_have_a_moment_too),
        cmocka_unit_test(an_unknown_outcome_may_be_either),
        cmocka_unit_test(a_plain_write_of_unknown_outcome_may_be_either),
        cmocka_unit_test(a_condition_holds_for_unknown_outcomes_too),
        cmocka_unit_test(a_write_that_was_acknowledged_is_not_lost_to_an_unknown_one),
        cmocka_unit_test(what_was_seen_of_an_unknown_outcome_stays),
        cmocka_unit_test(a_write_that_did_not_happen_is_not_resurrected),
        cmocka_unit_test(an_unknown_outcome_is_not_torn),
        cmocka_unit_test(an_update_over_one_of_unknown_outcome_is_lost),
        cmocka_unit_test(an_unknown_delete_explains_a_missing_item_only_until_it_is_written_again),
        cmocka_unit_test(a_refused_transaction_is_no_unknown_one),
        cmocka_unit_test(changes_in_order_are_fine),
        cmocka_unit_test(a_change_that_is_not_told_is_lost),
        cmocka_unit_test(a_change_that_is_told_twice_is_named),
        cmocka_unit_test(a_change_that_was_refused_is_not_told),
        cmocka_unit_test(changes_of_a_transaction_are_told_together),
        cmocka_unit_test(changes_are_told_in_the_order_of_their_commits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
