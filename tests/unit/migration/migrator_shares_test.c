/* What becomes of a container's throughput when its partitions change: it stays what was bought. */
#include "base/random.h"
#include "catalogue/shares.h"
#include "load/split_points.h"
#include "unit/heat/heat_fixture.h"

enum { KEYS = 60 };

static const char *key_name(struct fixture *fixture, int i)
{
    return arena_text(fixture->arena, arena_printf(fixture->arena, "k%d", i));
}

static void begin(struct fixture *fixture, uint64_t ru_max, int64_t ru)
{
    stop(fixture);
    fixture->catalogue_limits.partition_ru_max = ru_max;
    fixture->splits = true;
    start(fixture);
    container_make(fixture, ru);
    for (int i = 0; i < KEYS; i++)
        item_put(fixture, key_name(fixture, i), i, 50);
}

static void buy(struct fixture *fixture, int64_t ru)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct catalogue_offer_change change = {.request = {.given = true, .ru = ru}};
    struct offer offer;
    struct error err;

    assert_ok(catalogue_offer_replace(fixture->catalogue, SLICE("acme"),
                                      slice_of_text(container_offer(container)->rid), &change,
                                      &offer, &err),
              &err);
    meters_fill(fixture);
}

/* Whatever limits ask for is begun and carried out. */
static void limits_settle(struct fixture *fixture)
{
    struct error err;
    bool busy;

    for (int i = 0; i < 40; i++) {
        fixture->now_ms += 5000;
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
        settle(fixture);
    }
}

static int64_t bought(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);

    return (int64_t)container_offer(container)->ru;
}

/* Of the budgets that requests meet, in RU/s. */
static double budgets_sum(struct fixture *fixture, double *ret_least)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    double sum = 0;

    *ret_least = 1e9;
    for (size_t i = 0; i < count; i++) {
        struct budget_state state;

        assert_true(meters_state(fixture->meters, spans[i].id, &state));
        sum += (double)state.rate_cru / 100;
        *ret_least = MIN(*ret_least, (double)state.rate_cru / 100);
    }
    return sum;
}

static void assert_all_is_given(struct fixture *fixture)
{
    double least, sum = budgets_sum(fixture, &least);
    double most = (double)(span_count(fixture) * fixture->catalogue_limits.partition_ru_max);
    double wanted = MIN((double)bought(fixture), most);

    if (!(sum > wanted - 0.5 && sum < wanted + 0.5))
        fail_msg("%zu partitions give %g RU/s of %lld", span_count(fixture), sum,
                 (long long)bought(fixture));
    assert_true(least > 0);
}

/* More requests than can be served, on all keys alike and for so long: RU/s that were served. */
static double delivered(struct fixture *fixture, int seconds)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    int64_t served_cru = 0;

    for (int tick = 0; tick < seconds * 100; tick++) {
        fixture->now_ms += 10;
        for (int i = 0; i < KEYS; i++) {
            struct metering_request request = {
                .partition = span_of(fixture, container, key_name(fixture, i))->id,
                .price_cru = 100};
            struct metered_call call = {0};
            struct metering metering;
            struct error err;

            if (!metering_begin(&metering, fixture->meters, &request, &call, &err))
                continue;
            metering_end(&metering, 100);
            served_cru += 100;
        }
        arena_reset(fixture->arena);
    }
    return (double)served_cru / 100 / seconds;
}

static void assert_delivers(struct fixture *fixture, double ru)
{
    double got = delivered(fixture, 20);

    if (!(got > ru * 0.985 && got < ru * 1.015))
        fail_msg("%g RU/s of %g are delivered", got, ru);
}

/* Three partitions where there were two: not a multiple. */
static void raised_throughput_is_delivered_after_its_split(void **state)
{
    struct fixture *fixture = *state;

    begin(fixture, 200, 400);
    assert_int_equal(span_count(fixture), 2);
    assert_delivers(fixture, 400);
    buy(fixture, 600);
    limits_settle(fixture);
    assert_int_equal(span_count(fixture), 3);
    assert_delivers(fixture, 600);
    buy(fixture, 1000);
    limits_settle(fixture);
    assert_int_equal(span_count(fixture), 5);
    assert_delivers(fixture, 1000);
}

/* Shares are alike after every split, but keys are not alike many: the widest is cut next. */
static void spans_that_get_most_keys_are_cut_for_throughput(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        int64_t ru;
        size_t count;
    } raises[] = {{600, 3}, {1000, 5}, {1700, 9}, {6600, 33}, {7400, 37}};

    begin(fixture, 200, 400);
    for (size_t i = 0; i < ARRAY_LEN(raises); i++) {
        CLEANUP(container_unref) struct container *container = NULL;
        double reach[64], widest = 0, sum = 0;

        buy(fixture, raises[i].ru);
        limits_settle(fixture);
        assert_int_equal(span_count(fixture), raises[i].count);
        assert_all_is_given(fixture);
        container = opened(fixture);
        split_points_reach(container, fixture->arena, reach);
        for (size_t j = 0; j < raises[i].count; j++) {
            widest = MAX(widest, reach[j]);
            sum += reach[j];
        }
        assert_true(sum > 0.999 && sum < 1.001);
        if (widest > 2.0 / (double)raises[i].count)
            fail_msg("one of %zu partitions gets %g of all keys", raises[i].count, widest);
        arena_reset(fixture->arena);
    }
}

static void a_split_for_throughput_divides_evenly_but_for_what_is_spent(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    double rates[3], hot;
    size_t count;

    begin(fixture, 1000, 2000);
    ask(fixture, "k1", 900 * 60, 100, 0);
    fixture->now_ms += MINUTE;
    buy(fixture, 2100);
    limits_settle(fixture);
    container = opened(fixture);
    (void)partition_map_spans(container_map(container), &count);
    assert_int_equal(count, 3);
    container_rates(container, container_map(container), rates);
    hot = container_rate(container, span_of(fixture, container, "k1"));
    assert_true(hot >= 899 && hot <= 1000);
    for (size_t i = 0; i < 3; i++)
        assert_true(rates[i] == hot || (rates[i] > 590 && rates[i] < 610));
    assert_all_is_given(fixture);
}

/* One of two keys has nine tenths of the bytes. */
static void isolation_in_an_idle_container_gives_by_size(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct partition_key key;
    struct error err;
    double rate;

    begin(fixture, 10000, 1000);
    for (int i = 0; i < 90; i++)
        item_put(fixture, "large", 1000 + i, 1000);
    for (int i = 0; i < 10; i++)
        item_put(fixture, "small", 2000 + i, 1000);
    fixture->now_ms += 60 * MINUTE;
    key = key_of(fixture, "large");
    container = opened(fixture);
    assert_ok(migrator_isolate(fixture->migrator, container, &key, 0, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    container = opened(fixture);
    rate = container_rate(container, span_of(fixture, container, "large"));
    assert_true(rate > 780 && rate < 900);
    assert_all_is_given(fixture);
}

/* --- Whatever happens ------------------------------------------------------------------------ */

/* *ret_bought: something else was done than to move keys. */
static bool act(struct fixture *fixture, struct random *random, bool *ret_bought, struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    size_t at = random_below(random, count);
    struct partition_key key = key_of(fixture, key_name(fixture, (int)random_below(random, KEYS)));
    unsigned what = (unsigned)random_below(random, 6);

    *ret_bought = what == 5;
    switch (what) {
    case 0:
        return migrator_split(fixture->migrator, container, spans[at].id,
                              2 + random_below(random, 2), NULL, err);
    case 1: {
        uint32_t pair[] = {spans[at].id, spans[(at + 1) % count].id};

        return migrator_merge(fixture->migrator, container, pair, 2, err);
    }
    case 2:
        return migrator_isolate(fixture->migrator, container, &key, 0, err);
    case 3:
        return migrator_split_heat(fixture->migrator, container, spans[at].id, err);
    case 4: {
        struct partition_range range = partition_route_range(
            &definition_fields(container_definition(container))->key, &key, fixture->arena);

        return migrator_carve(fixture->migrator, container, spans[at].id, &range, err);
    }
    default:
        buy(fixture, 400 + 100 * (int64_t)random_below(random, 40));
        return true;
    }
}

/* Some keys spend for a minute what they can get, up to nine tenths of what their partitions have.
 */
static void keys_spend(struct fixture *fixture, struct random *random, double *ret_spent)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    double *left = ARENA_ARRAY(fixture->arena, double, count);

    container_rates(container, container_map(container), left);
    for (size_t i = 0; i < count; i++)
        left[i] *= 0.9;
    for (int i = 0; i < KEYS; i++) {
        const char *name = key_name(fixture, i);
        size_t span = (size_t)(span_of(fixture, container, name) - spans);

        ret_spent[i] = random_below(random, 3) ? 0 : left[span] / 2;
        left[span] -= ret_spent[i];
        if (ret_spent[i] > 0)
            ask(fixture, name, ret_spent[i] * 60, 1, 0);
    }
    fixture->now_ms += MINUTE;
}

static void assert_nobody_has_less(struct fixture *fixture, const double *spent)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    double *rates = ARENA_ARRAY(fixture->arena, double, count);

    container_rates(container, container_map(container), rates);
    for (int i = 0; i < KEYS; i++)
        rates[span_of(fixture, container, key_name(fixture, i)) - spans] -= spent[i];
    for (size_t i = 0; i < count; i++)
        if (rates[i] < -0.02)
            fail_msg("partition %u has %g RU/s less than its keys spent", spans[i].id, -rates[i]);
}

static void what_was_bought_is_given_whatever_happens(void **state)
{
    struct fixture *fixture = *state;
    struct random random;
    unsigned done = 0;

    random_seed(&random, 2026);
    begin(fixture, 500, 1000);
    for (int step = 0; step < 150; step++) {
        double spent[KEYS];
        struct error err;
        bool bought;

        keys_spend(fixture, &random, spent);
        done += act(fixture, &random, &bought, &err);
        settle(fixture);
        assert_all_is_given(fixture);
        if (!bought)
            assert_nobody_has_less(fixture, spent);
        limits_settle(fixture);
        assert_all_is_given(fixture);
        if (step % 50 == 49)
            restart(fixture);
        assert_all_is_given(fixture);
        fixture->now_ms += 10 * MINUTE;
        arena_reset(fixture->arena);
    }
    assert_true(done > 60);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(raised_throughput_is_delivered_after_its_split),
        TEST(spans_that_get_most_keys_are_cut_for_throughput),
        TEST(a_split_for_throughput_divides_evenly_but_for_what_is_spent),
        TEST(isolation_in_an_idle_container_gives_by_size),
        TEST(what_was_bought_is_given_whatever_happens),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
