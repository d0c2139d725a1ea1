#include "load/offer_meters.h"

#include "catalogue/migration.h"
#include "item/metering.h"
#include "load/profile.h"
#include "support/catalogue_bench.h"
#include "support/check.h"
#include "support/documents.h"

/* A clock whose hands the test turns. */
static int64_t hands(void *context)
{
    return *(int64_t *)context;
}

static struct clock clock_of(int64_t *now_ms)
{
    return (struct clock){.wall_ms = hands, .monotonic_ms = hands, .context = now_ms};
}

static void database_make(struct bench *bench, const struct offer_request *request)
{
    CLEANUP(database_unref) struct database *database = NULL;
    struct error err;

    bench_account(bench, "a");
    assert_ok(catalogue_database_create(bench->catalogue, SLICE("a"), SLICE("d"), request,
                                        &database, &err),
              &err);
}

static struct container *container_make(struct bench *bench, const char *json,
                                        const struct offer_request *request)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_create(bench->catalogue, SLICE("a"), SLICE("d"),
                                         document_of(bench->arena, json), request, &container,
                                         &err),
              &err);
    return container;
}

/* Spends this much in every partition of the container within a second. */
static void spend(struct meters *meters, const struct container *container, int64_t cru,
                  int64_t now_ms)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    for (size_t i = 0; i < count; i++) {
        struct budget *budget = meter_budget(meters_find(meters, spans[i].id));
        const struct budget_request request = {.price_cru = cru};
        struct budget_grant grant;
        struct error err;
        int64_t wait_ms;

        assert_ok(budget_admit(budget, &request, now_ms, &grant, &wait_ms, &err), &err);
        budget_settle(budget, &grant, cru, now_ms);
    }
}

static void manual_throughput_is_what_was_bought(void **state)
{
    struct bench *bench = *state;
    CLEANUP(meters_free) struct meters *meters = meters_new(&clock_system);
    CLEANUP(container_unref) struct container *container = NULL;

    database_make(bench, NULL);
    container = container_make(bench, BENCH_BODY("c"), NULL);
    assert_int_equal(load_meters_now(meters, container_offer(container), container), 400);
}

static void autoscale_follows_use_from_a_tenth(void **state)
{
    struct bench *bench = *state;
    const struct offer_request request = {.autoscale_given = true, .autoscale_max = 20000};
    CLEANUP(container_unref) struct container *container = NULL;
    int64_t now_ms = 1000000;
    struct clock clock = clock_of(&now_ms);
    CLEANUP(meters_free) struct meters *meters = meters_new(&clock);
    const struct offer *offer;
    struct error err;

    database_make(bench, NULL);
    container = container_make(bench, BENCH_BODY("c"), &request);
    offer = container_offer(container);
    assert_int_equal(load_meters_now(meters, offer, container), 2000); /* before any use */
    assert_ok(load_meters_apply(meters, container, 0, &err), &err);
    assert_int_equal(load_meters_now(meters, offer, container), 2000);
    spend(meters, container, 500000, now_ms);
    assert_in_range(load_meters_now(meters, offer, container), 2001, 20000);
}

static void a_shared_autoscale_offer_follows_the_use_of_all(void **state)
{
    struct bench *bench = *state;
    const struct offer_request request = {.autoscale_given = true, .autoscale_max = 4000};
    CLEANUP(container_unref) struct container *first = NULL, *second = NULL;
    int64_t now_ms = 1000000;
    struct clock clock = clock_of(&now_ms);
    CLEANUP(meters_free) struct meters *meters = meters_new(&clock);
    struct offer offer;
    struct error err;

    database_make(bench, &request);
    first = container_make(bench, BENCH_BODY("c1"), NULL);
    second = container_make(bench, BENCH_BODY("c2"), NULL);
    offer = *container_offer(first);
    assert_true(offer.shared);
    assert_int_equal(load_meters_now(meters, &offer, NULL), 400);
    assert_ok(load_meters_apply(meters, first, 0, &err), &err);
    assert_ok(load_meters_apply(meters, second, 0, &err), &err);
    spend(meters, first, 80000, now_ms);
    spend(meters, second, 80000, now_ms);
    assert_in_range(load_meters_now(meters, &offer, NULL), 401, 4000);
}

/* --- Migrations ------------------------------------------------------------------------------ */

static struct container *split_begin(struct bench *bench, const struct container *container,
                                     const double *weights)
{
    size_t count;
    const struct partition_span *span = partition_map_spans(container_map(container), &count);
    struct slice bound;
    struct container *now;
    struct error err;

    partition_route_split_points(&definition_fields(container_definition(container))->key, 2,
                                 bench->arena, &bound);
    assert_ok(catalogue_migration_begin(bench->catalogue, container,
                                        &(struct migration_request){.kind = MIGRATION_SPLIT,
                                                                    .sources = &span->id,
                                                                    .source_count = 1,
                                                                    .target_count = 2,
                                                                    .bounds = &bound,
                                                                    .weights = weights},
                                        &now, &err),
              &err);
    return now;
}

/* A partition of 400 RU/s that has saved for a minute, and then spends; and what a split into two
 * hands on. */
struct handing_on {
    int64_t now_ms;
    struct clock clock;
    struct meters *meters;
    struct budget_state before, first, second;
};

static struct handing_on hand_on(struct bench *bench, int64_t spends_cru, const double *weights)
{
    struct handing_on h = {.now_ms = 1000000};
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(container_unref) struct container *moving = NULL;
    const struct partition_span *targets;
    struct error err;
    size_t count;

    h.clock = clock_of(&h.now_ms);
    h.meters = meters_new(&h.clock);
    database_make(bench, NULL);
    container = container_make(bench, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/k\"]}}",
                               &(struct offer_request){.given = true, .ru = 400});
    assert_ok(load_meters_apply(h.meters, container, 300, &err), &err);
    spend(h.meters, container, 100, h.now_ms);
    h.now_ms += 60000;
    if (spends_cru)
        spend(h.meters, container, spends_cru, h.now_ms);
    assert_true(meters_state(h.meters, partition_map_spans(container_map(container), &count)->id,
                             &h.before));
    moving = split_begin(bench, container, weights);
    assert_ok(load_meters_prepare(h.meters, moving, 300, &err), &err);
    assert_ok(load_meters_prepare(h.meters, moving, 300, &err), &err); /* not once more */
    targets = migration_targets(container_migration(moving), &count);
    assert_int_equal(count, 2);
    assert_true(meters_state(h.meters, targets[0].id, &h.first));
    assert_true(meters_state(h.meters, targets[1].id, &h.second));
    meters_free(TAKE(h.meters));
    return h;
}

/* The same debt in time, since rates are divided as it is. */
static void a_split_divides_what_is_owed(void **state)
{
    struct handing_on h = hand_on(*state, 400 * 100 * 70, (const double[]){3, 1});

    assert_true(h.before.owed_ms > 0);
    assert_int_equal(h.first.rate_cru, 300 * 100);
    assert_int_equal(h.second.rate_cru, 100 * 100);
    assert_in_range(h.first.owed_ms, h.before.owed_ms - 5, h.before.owed_ms + 5);
    assert_in_range(h.second.owed_ms, h.before.owed_ms - 5, h.before.owed_ms + 5);
}

static void a_split_divides_what_was_saved(void **state)
{
    struct handing_on h = hand_on(*state, 0, NULL);

    assert_true(h.before.credit_cru > 400 * 100 * 50);
    assert_in_range(h.first.credit_cru + h.second.credit_cru, h.before.credit_cru - 2,
                    h.before.credit_cru);
    assert_int_equal(h.first.credit_cru, h.second.credit_cru);
}

/* Two keys on either side of the bound; one of them spends nine tenths. */
static void a_split_hands_on_what_keys_have_been_spending(void **state)
{
    struct bench *bench = *state;
    int64_t now_ms = 60000000;
    struct clock clock = clock_of(&now_ms);
    CLEANUP(meters_free) struct meters *meters = meters_new(&clock);
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(container_unref) struct container *moving = NULL;
    const struct partition_span *targets;
    struct partition_key keys[2];
    double used[2];
    struct error err;
    size_t count;

    database_make(bench, NULL);
    container = container_make(bench, "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/k\"]}}",
                               &(struct offer_request){.given = true, .ru = 400});
    assert_ok(load_meters_apply(meters, container, 0, &err), &err);
    moving = split_begin(bench, container, NULL);
    targets = migration_targets(container_migration(moving), &count);
    for (size_t side = 0, i = 0; side < 2; i++) {
        const struct partition_definition *key =
            &definition_fields(container_definition(container))->key;
        struct partition_range range;

        assert_ok(partition_key_parse(key, arena_printf(bench->arena, "[\"k%zu\"]", i),
                                      PARTITION_KEY_WHOLE, bench->arena, &keys[side], &err),
                  &err);
        range = partition_route_range(key, &keys[side], bench->arena);
        side += (slice_compare(range.min, targets[1].min) >= 0) == (side == 1);
    }
    for (size_t i = 0; i < 2; i++) {
        struct statistics_event event = {.key = metering_pk(&keys[i], bench->arena),
                                         .cru = (i ? 36 : 324) * 60 * 100};
        uint32_t source = partition_map_spans(container_map(container), &count)->id;

        statistics_record(meter_statistics(meters_find(meters, source)), &event, now_ms);
    }
    now_ms += 60000;
    assert_ok(load_meters_prepare(meters, moving, 0, &err), &err);
    for (size_t i = 0; i < 2; i++)
        used[i] = load_use_of(meter_statistics(meters_find(meters, targets[i].id)), now_ms).used;
    assert_true(used[0] > 320 && used[0] < 328);
    assert_true(used[1] > 35 && used[1] < 37);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(memory, manual_throughput_is_what_was_bought),
        ON(memory, autoscale_follows_use_from_a_tenth),
        ON(memory, a_shared_autoscale_offer_follows_the_use_of_all),
        ON(memory, a_split_divides_what_is_owed),
        ON(memory, a_split_divides_what_was_saved),
        ON(memory, a_split_hands_on_what_keys_have_been_spending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
