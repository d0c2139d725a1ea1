/* Shares that follow the load, and what merges of the calm leave alone. */
#include "catalogue/shares.h"
#include "unit/heat/heat_fixture.h"

enum { RU = 8000, SPANS = 4 };

/* Four spans of 2,000 RU/s each. */
static void four_spans(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    container_make(fixture, RU);
    keys_put(fixture, 40);
    container = opened(fixture);
    assert_ok(migrator_split(fixture->migrator, container,
                             partition_map_spans(container_map(container), &(size_t){0})->id, SPANS,
                             (double[]){1, 1, 1, 1}, &err),
              &err);
    container_unref(TAKE(container));
    settle(fixture);
    assert_int_equal(span_count(fixture), SPANS);
    fixture->now_ms += MINUTE - fixture->now_ms % MINUTE;
    look(fixture);
}

/* RU/s that a span gives: by the catalogue, which its budget agrees with. */
static double given(struct fixture *fixture, size_t span)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    const struct partition_span *spans =
        partition_map_spans(container_map(container), &(size_t){0});
    double ru = container_share(container, &spans[span]) * RU;
    struct budget_state state;

    assert_true(meters_state(fixture->meters, spans[span].id, &state));
    assert_true((double)state.rate_cru / 100 - ru < 0.01 &&
                ru - (double)state.rate_cru / 100 < 0.01);
    return ru;
}

static double given_by_all(struct fixture *fixture)
{
    double sum = 0;

    for (size_t i = 0; i < span_count(fixture); i++)
        sum += given(fixture, i);
    return sum;
}

/* Requests on a key of that span. */
static void span_ask(struct fixture *fixture, size_t span, double ru, int throttled)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    const struct partition_span *spans =
        partition_map_spans(container_map(container), &(size_t){0});

    for (int i = 0; i < 40; i++) {
        char pk[16];

        snprintf(pk, sizeof pk, "k%d", i);
        if (span_of(fixture, container, pk) == &spans[span]) {
            ask(fixture, pk, ru * 60, 100, throttled);
            return;
        }
    }
    fail_msg("no key in span %zu", span);
}

/* A minute in which the first span spends all it has and refuses a third, and the others so much.
 */
static void crowded_minute(struct fixture *fixture, double others)
{
    span_ask(fixture, 0, given(fixture, 0), 50);
    for (size_t i = 1; i < SPANS; i++)
        span_ask(fixture, i, others, 0);
    fixture->now_ms += MINUTE;
    look(fixture);
}

static void assert_near(double got, double wanted)
{
    if (!(got > wanted - 1 && got < wanted + 1))
        fail_msg("%g is not %g", got, wanted);
}

static void a_crowded_span_gets_what_the_others_do_not_need(void **state)
{
    struct fixture *fixture = *state;

    four_spans(fixture);
    crowded_minute(fixture, 100);
    crowded_minute(fixture, 100);
    assert_near(given(fixture, 0), 2000);
    crowded_minute(fixture, 100);
    assert_near(given(fixture, 0), 3300); /* it wanted 3,000 */
    for (size_t i = 1; i < SPANS; i++)
        assert_near(given(fixture, i), 2000 - 1300.0 / 3);
    assert_near(given_by_all(fixture), RU);
    assert_int_equal(span_count(fixture), SPANS);
    assert_false(is_moving(fixture));
}

static void shares_change_slowly(void **state)
{
    struct fixture *fixture = *state;
    double before;

    four_spans(fixture);
    for (int i = 0; i < 3; i++)
        crowded_minute(fixture, 100);
    before = given(fixture, 0);
    for (int i = 0; i < 3; i++) {
        crowded_minute(fixture, 100);
        assert_near(given(fixture, 0), before);
    }
    crowded_minute(fixture, 100);
    assert_true(given(fixture, 0) > before + 1000);
}

/* It spent 1,900 of 2,000: nobody may be slower for another's sake. */
static void who_needs_his_share_keeps_it(void **state)
{
    struct fixture *fixture = *state;

    four_spans(fixture);
    for (int i = 0; i < 12; i++)
        crowded_minute(fixture, 1900);
    for (size_t i = 0; i < SPANS; i++)
        assert_near(given(fixture, i), 2000);
    for (int i = 0; i < 30; i++) {
        crowded_minute(fixture, 1200);
        for (size_t j = 1; j < SPANS; j++)
            assert_true(given(fixture, j) >= 1200 * 1.25 - 0.01);
        assert_near(given_by_all(fixture), RU);
    }
    assert_near(given(fixture, 0), RU - 3 * 1500);
}

static void load_that_moves_is_followed(void **state)
{
    struct fixture *fixture = *state;
    double before;

    four_spans(fixture);
    for (int i = 0; i < 12; i++)
        crowded_minute(fixture, 100);
    before = given(fixture, 3);
    assert_true(given(fixture, 0) > 4000);
    assert_true(before < 1200);
    for (int i = 0; i < 12; i++) {
        span_ask(fixture, 3, given(fixture, 3), 50);
        fixture->now_ms += MINUTE;
        look(fixture);
    }
    assert_true(given(fixture, 3) > 3 * before);
    assert_near(given_by_all(fixture), RU);
}

static void nothing_follows_when_it_is_switched_off(void **state)
{
    struct fixture *fixture = *state;

    fixture->limits.share_minutes = 0;
    stop(fixture);
    start(fixture);
    four_spans(fixture);
    for (int i = 0; i < 12; i++)
        crowded_minute(fixture, 100);
    assert_near(given(fixture, 0), 2000);
}

/* Readers keep their map: it routes as before. */
static void shares_stand_beside_the_map_and_survive(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *before = NULL;
    CLEANUP(container_unref) struct container *after = NULL;
    struct error err;
    uint32_t first;

    four_spans(fixture);
    before = opened(fixture);
    for (int i = 0; i < 3; i++)
        crowded_minute(fixture, 100);
    after = opened(fixture);
    assert_ptr_equal(container_map(before), container_map(after));
    assert_true(container_is_current(before));
    first = partition_map_spans(container_map(after), &(size_t){0})->id;
    container_unref(TAKE(before));
    container_unref(TAKE(after));

    restart(fixture);
    assert_near(given(fixture, 0), 3300);

    /* A cut divides the shares of now, and the others keep theirs. */
    after = opened(fixture);
    assert_ok(migrator_split(fixture->migrator, after, first, 2, (double[]){1, 1}, &err), &err);
    assert_fails(migrator_share(fixture->migrator, after, (double[]){1, 1, 1, 1}, SPANS, &err),
                 &err, ERROR_BUSY);
    container_unref(TAKE(after));
    settle(fixture);
    assert_near(given(fixture, 0), 1650);
    assert_near(given(fixture, 1), 1650);
    assert_near(given(fixture, 2), 2000 - 1300.0 / 3);
    assert_near(given_by_all(fixture), RU);
}

static void a_cancelled_cut_leaves_the_shares_of_now(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    four_spans(fixture);
    for (int i = 0; i < 3; i++)
        crowded_minute(fixture, 100);
    container = opened(fixture);
    assert_ok(migrator_split(fixture->migrator, container,
                             partition_map_spans(container_map(container), &(size_t){0})->id, 2,
                             NULL, &err),
              &err);
    assert_ok(migrator_cancel(fixture->migrator, container, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    assert_near(given(fixture, 0), 3300);
    restart(fixture);
    assert_near(given(fixture, 0), 3300);
}

static void shares_that_cannot_be_are_refused(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;

    four_spans(fixture);
    container = opened(fixture);
    assert_fails(migrator_share(fixture->migrator, container, (double[]){1, 1}, 2, &err), &err,
                 ERROR_BUSY);
    assert_fails(migrator_share(fixture->migrator, container, (double[]){1, 1, 0, 1}, SPANS, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_near(given(fixture, 0), 2000);
}

/* --- Cuts that stay -------------------------------------------------------------------------- */

static void days_pass(struct fixture *fixture, int days)
{
    for (int64_t i = 0; i < days * (int64_t)HEAT_DAY_MINUTES; i += 10) {
        look(fixture);
        assert_false(is_moving(fixture));
        fixture->now_ms += 10 * MINUTE;
    }
}

static void a_split_by_hand_is_not_merged_when_it_is_calm(void **state)
{
    struct fixture *fixture = *state;

    four_spans(fixture);
    days_pass(fixture, 2);
    restart(fixture);
    days_pass(fixture, 2);
    assert_int_equal(span_count(fixture), SPANS);
}

/* Both ends of what was cut out stay, also one that was there before. */
static void neighbours_of_an_isolated_key_and_of_a_rule_s_range_stay(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    const struct partition_span *span;
    struct partition_key key;
    struct partition_range range;
    struct error err;

    container_make(fixture, 1000);
    keys_put(fixture, 40);
    key = key_of(fixture, "k7");
    container = opened(fixture);
    assert_ok(migrator_isolate(fixture->migrator, container, &key, 0, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    assert_int_equal(span_count(fixture), 3);
    key = key_of(fixture, "k8");
    container = opened(fixture);
    span = span_of(fixture, container, "k8");
    range = partition_route_range(&definition_fields(container_definition(container))->key, &key,
                                  fixture->arena);
    assert_ok(migrator_carve(fixture->migrator, container, span->id,
                             &(struct partition_range){span->min, range.max}, &err),
              &err);
    container_unref(TAKE(container));
    settle(fixture);
    assert_int_equal(span_count(fixture), 4);
    container = opened(fixture);
    span = span_of(fixture, container, "k8");
    assert_int_equal(span[0].cut, PARTITION_CUT_PLACED);
    assert_int_equal(span[1].cut, PARTITION_CUT_PLACED);
    container_unref(TAKE(container));
    days_pass(fixture, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_crowded_span_gets_what_the_others_do_not_need),
        TEST(shares_change_slowly),
        TEST(who_needs_his_share_keeps_it),
        TEST(load_that_moves_is_followed),
        TEST(nothing_follows_when_it_is_switched_off),
        TEST(shares_stand_beside_the_map_and_survive),
        TEST(a_cancelled_cut_leaves_the_shares_of_now),
        TEST(shares_that_cannot_be_are_refused),
        TEST(a_split_by_hand_is_not_merged_when_it_is_calm),
        TEST(neighbours_of_an_isolated_key_and_of_a_rule_s_range_stay),
    };

    return cmocka_run_group_tests_name("heat/follow", tests, NULL, NULL);
}
