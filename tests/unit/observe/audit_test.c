#include "observe/audit.h"

#include "audit_fixture.h"
#include "base/bytes.h"
#include "catalogue/notes.h"

static struct audit *opened(struct fixture *fixture, uint64_t bytes_max, int64_t age_ms_max)
{
    struct audit *audit;
    struct error err;

    assert_ok(audit_new(&(struct audit_options){.catalogue = fixture->catalogue,
                                                .clock = &fixture->clock,
                                                .containers = "shop/orders, logs/*",
                                                .bytes_max = bytes_max,
                                                .age_ms_max = age_ms_max,
                                                .waiting_max = 1000},
                        &audit, &err),
              &err);
    return audit;
}

static void tell(struct fixture *fixture, struct audit *audit, enum observed_operation operation,
                 const char *container, uint16_t status)
{
    struct observed_request request = {.observed = {.operation = operation},
                                       .front = "rest",
                                       .name = operation == OBSERVED_ADMIN ? container : NULL,
                                       .database = SLICE("shop"),
                                       .container = slice_of_text(container),
                                       .who = SLICE("read-write key"),
                                       .what = SLICE("/dbs/shop"),
                                       .status = status,
                                       .ended_ms = fixture->now_ms,
                                       .may_block = true};

    audit_tell(audit, &request);
}

static size_t records_count(struct audit *audit, const struct audit_filter *filter)
{
    CLEANUP(buf_done) struct buf out;
    struct error err;
    uint64_t next;
    size_t count = 0;

    buf_init(&out, BUF_DEFAULT_MAX);
    assert_ok(audit_read(audit, filter, &out, &next, &err), &err);
    for (size_t i = 0; i + 5 < out.len; i++)
        count += memcmp(out.data + i, "{\"n\":", 5) == 0;
    return count;
}

static struct audit_verdict verdict_of(struct audit *audit)
{
    struct audit_verdict verdict;
    struct error err;

    assert_ok(audit_verify(audit, 0, SLICE_NONE, &verdict, &err), &err);
    return verdict;
}

static void administration_is_recorded_and_items_where_the_operator_says(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(audit_free) struct audit *audit = opened(fixture, 1 << 20, 1 << 30);

    tell(fixture, audit, OBSERVED_CHANGE, "orders", 201);
    tell(fixture, audit, OBSERVED_ORDER, "", 200);
    tell(fixture, audit, OBSERVED_METADATA, "orders", 200); /* changes nothing */
    tell(fixture, audit, OBSERVED_CREATE, "orders", 201);   /* named by the setting */
    tell(fixture, audit, OBSERVED_READ, "orders", 200);     /* a read: not */
    tell(fixture, audit, OBSERVED_CREATE, "others", 201);   /* not named */
    tell(fixture, audit, OBSERVED_READ, "others", 401);     /* somebody nobody let in */
    assert_int_equal(records_count(audit, &(struct audit_filter){.max = 100}), 4);
    tell(fixture, audit, OBSERVED_ADMIN, "containers/*/*/keys", 200); /* hot ones */
    assert_int_equal(records_count(audit, &(struct audit_filter){.max = 100}), 4);
    tell(fixture, audit, OBSERVED_ADMIN, "accounts/*/keys", 200); /* whoever sees them has them */
    assert_int_equal(records_count(audit, &(struct audit_filter){.max = 100}), 5);
    assert_int_equal(
        records_count(audit, &(struct audit_filter){.max = 100, .operation = SLICE("create")}), 1);
    assert_int_equal(records_count(audit, &(struct audit_filter){.max = 100, .failed = true}), 1);
    assert_int_equal(records_count(audit, &(struct audit_filter){.max = 2}), 2);
    assert_true(verdict_of(audit).whole);
    assert_int_equal(verdict_of(audit).count, 5);
}

static void a_restart_goes_on_with_the_chain(void **state)
{
    struct fixture *fixture = *state;
    struct audit_verdict before, after;
    struct audit *audit = opened(fixture, 1 << 20, 1 << 30);
    struct error err;

    tell(fixture, audit, OBSERVED_ORDER, "", 200);
    before = verdict_of(audit);
    audit_free(audit);
    audit = opened(fixture, 1 << 20, 1 << 30);
    tell(fixture, audit, OBSERVED_ORDER, "", 200);
    assert_ok(audit_verify(audit, before.last, slice_of_text(before.hash), &after, &err), &err);
    assert_true(after.whole);
    assert_int_equal(after.last, 2);
    assert_ok(audit_verify(audit, before.last, slice_of_text(after.hash), &after, &err), &err);
    assert_false(after.whole); /* that record has another hash */
    audit_free(audit);
}

static void change_note(struct fixture *fixture, uint64_t number, struct slice value)
{
    uint8_t key[10] = {CATALOGUE_NOTES_AUDIT, 'r'};
    struct engine_op op = {.kind = value.data ? ENGINE_PUT : ENGINE_DELETE,
                           .key = slice_of(key, sizeof key),
                           .value = value};
    struct error err;

    bytes_put_be64(key + 2, number);
    assert_ok(catalogue_notes_write(fixture->catalogue, &op, 1, &err), &err);
}

static void whatever_is_changed_removed_or_cut_off_is_found(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(audit_free) struct audit *audit = opened(fixture, 1 << 20, 1 << 30);
    struct audit_verdict verdict;
    struct engine_value value;
    uint8_t key[10] = {CATALOGUE_NOTES_AUDIT, 'r'};
    struct error err;

    for (int i = 0; i < 10; i++)
        tell(fixture, audit, OBSERVED_ORDER, "", 200);
    for (uint64_t number = 1; number <= 10; number++) {
        struct slice kept, changed;

        bytes_put_be64(key + 2, number);
        assert_ok(catalogue_notes_get(fixture->catalogue, slice_of(key, sizeof key), fixture->arena,
                                      &value, &err),
                  &err);
        kept = arena_copy(fixture->arena, value.bytes);
        changed = arena_copy(fixture->arena, kept);
        ((uint8_t *)(uintptr_t)changed.data)[changed.len / 2] ^= 1;
        change_note(fixture, number, changed);
        verdict = verdict_of(audit);
        assert_false(verdict.whole);
        assert_true(verdict.broken_at == number || verdict.broken_at == number + 1);
        change_note(fixture, number, SLICE_NONE);
        assert_int_equal(verdict_of(audit).broken_at, number);
        change_note(fixture, number, kept);
        assert_true(verdict_of(audit).whole);
    }
}

static void what_is_too_much_or_too_old_makes_way_from_the_oldest_on(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(audit_free) struct audit *audit = opened(fixture, 2000, 60000);
    struct audit_figures figures;
    struct audit_verdict verdict;

    for (int i = 0; i < 200; i++)
        tell(fixture, audit, OBSERVED_ORDER, "", 200);
    tell(fixture, audit, OBSERVED_ORDER, "", 200);
    audit_figures(audit, &figures);
    assert_true(figures.bytes < 4000 && figures.records < 20);
    verdict = verdict_of(audit);
    assert_true(verdict.whole);
    assert_int_equal(verdict.last, 201);
    fixture->now_ms += 120000;
    tell(fixture, audit, OBSERVED_ORDER, "", 200);
    verdict = verdict_of(audit);
    assert_true(verdict.whole);
    assert_int_equal(verdict.count, 1);
}

static void a_store_that_takes_nothing_for_a_while_loses_no_record(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(audit_free) struct audit *audit = opened(fixture, 1 << 20, 1 << 30);

    fault_engine_fill(fixture->engine, true);
    tell(fixture, audit, OBSERVED_ORDER, "", 200); /* let go, though it is not written */
    fault_engine_fill(fixture->engine, false);
    tell(fixture, audit, OBSERVED_ORDER, "", 200);
    while (records_count(audit, &(struct audit_filter){.max = 10}) < 2)
        tell(fixture, audit, OBSERVED_METADATA, "", 200); /* is not recorded */
    assert_true(verdict_of(audit).whole);
}

static void the_list_of_containers_is_judged(void **state UNUSED)
{
    struct error err;

    assert_ok(audit_containers_check("", &err), &err);
    assert_ok(audit_containers_check("a/b, c/*", &err), &err);
    assert_fails(audit_containers_check("a", &err), &err, ERROR_CONFIGURATION);
    assert_fails(audit_containers_check("a/b/c", &err), &err, ERROR_CONFIGURATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            administration_is_recorded_and_items_where_the_operator_says, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restart_goes_on_with_the_chain, setup, teardown),
        cmocka_unit_test_setup_teardown(whatever_is_changed_removed_or_cut_off_is_found, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_too_much_or_too_old_makes_way_from_the_oldest_on,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_that_takes_nothing_for_a_while_loses_no_record,
                                        setup, teardown),
        cmocka_unit_test(the_list_of_containers_is_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
