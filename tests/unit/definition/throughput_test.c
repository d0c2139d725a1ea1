#include "definition/throughput.h"

#include "catalogue/shares.h"
#include "item/metering.h"
#include "load/offer_meters.h"
#include "support/catalogue_bench.h"
#include "support/check.h"
#include "support/documents.h"

#define WITH(throughput)                                                                           \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/k\"]},\"orrery\":{\"throughput\":" throughput   \
    "}}"

static bool create(struct bench *bench, const char *json, const struct offer_request *request,
                   struct container **ret_container, struct error *err)
{
    return catalogue_container_create(bench->catalogue, SLICE("a"), SLICE("d"),
                                      document_of(bench->arena, json), request, ret_container, err);
}

static void begin(struct bench *bench)
{
    bench_account(bench, "a");
    bench_database(bench, "a", "d", 0);
}

static void what_cannot_be_is_refused_by_name(void **state)
{
    static const char *const refused[][2] = {
        {WITH("[]"), "must be an object"},
        {WITH("{\"bucket\":[]}"), "no member \"bucket\""},
        {WITH("{\"buckets\":[{\"id\":6,\"maxThroughputPercentage\":10}]}"), "from 1 to 5"},
        {WITH("{\"buckets\":[{\"id\":1,\"maxThroughputPercentage\":0}]}"), "from 1 to 100"},
        {WITH("{\"buckets\":[{\"id\":1,\"maxThroughputPercentage\":5},{\"id\":1,"
              "\"maxThroughputPercentage\":6}]}"),
         "twice"},
        {WITH("{\"keys\":[{\"reserved\":10}]}"), "without \"key\""},
        {WITH("{\"keys\":[{\"key\":[\"x\"]}]}"), "neither reserved nor cap"},
        {WITH("{\"keys\":[{\"key\":[\"x\"],\"reserved\":20,\"cap\":10}]}"), "than its cap"},
        {WITH("{\"keys\":[{\"key\":[\"x\"],\"cap\":-1}]}"), "no whole number"},
        {WITH("{\"keys\":[{\"key\":[\"x\"],\"cap\":9},{\"key\":\"x\",\"cap\":9}]}"), "twice"},
        {WITH("{\"keys\":[{\"key\":[\"x\"],\"reserved\":1100}]}"), "1100 RU/s would be reserved"},
    };
    struct bench *bench = *state;
    const struct offer_request request = {.given = true, .ru = 1000};
    struct container *container;
    struct error err;

    begin(bench);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_fails(create(bench, refused[i][0], &request, &container, &err), &err,
                     ERROR_BAD_REQUEST);
        assert_contains(err.message, refused[i][1]);
    }
    assert_fails(
        create(bench, WITH("{\"keys\":[{\"key\":[\"x\"],\"cap\":9}]}"), NULL, &container, &err),
        &err, ERROR_BAD_REQUEST);
    assert_contains(err.message, "state some for it first");
}

static bool admitted(struct meters *meters, const struct container *container, const char *key,
                     uint8_t bucket, enum error_code *ret_why)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;
    struct partition_key parsed;
    struct metered_call call = {.bucket = bucket};
    struct metering_request request = {.price_cru = 60 * 100};
    struct metering metering;
    struct error err;

    assert_ok(partition_key_parse(definition, arena_printf(arena, "[\"%s\"]", key),
                                  PARTITION_KEY_WHOLE, arena, &parsed, &err),
              &err);
    request.partition = partition_map_find(container_map(container),
                                           partition_route_range(definition, &parsed, arena).min)
                            ->id;
    request.pk = metering_pk(&parsed, arena);
    *ret_why = ERROR_NONE;
    if (metering_begin(&metering, meters, &request, &call, &err)) {
        metering_end(&metering, 60 * 100);
        return true;
    }
    *ret_why = err.code;
    return false;
}

static void it_holds_for_the_partitions_that_have_the_keys_also_after_a_restart(void **state)
{
    struct bench *bench = *state;
    const struct offer_request request = {.given = true, .ru = 20000};

    begin(bench);
    for (int round = 0; round < 2; round++) {
        CLEANUP(meters_free) struct meters *meters = meters_new(&clock_system);
        CLEANUP(container_unref) struct container *container = NULL;
        enum error_code why;
        double rates[2];
        struct error err;

        if (round == 0)
            assert_ok(create(bench,
                             WITH("{\"buckets\":[{\"id\":3,\"maxThroughputPercentage\":1}],"
                                  "\"keys\":[{\"key\":[\"gold\"],\"reserved\":9000},"
                                  "{\"key\":[\"greedy\"],\"cap\":50}]}"),
                             &request, &container, &err),
                      &err);
        else
            assert_ok(catalogue_container_open(bench->catalogue, SLICE("a"), SLICE("d"), SLICE("c"),
                                               &container, &err),
                      &err);
        container_rates(container, container_map(container), rates);
        assert_true(rates[0] == 10000 && rates[1] == 10000);
        assert_ok(load_meters_apply(meters, container, 0, &err), &err);
        assert_true(admitted(meters, container, "greedy", 0, &why));
        assert_false(admitted(meters, container, "greedy", 0, &why));
        assert_int_equal(why, ERROR_KEY_THROTTLED);
        assert_true(admitted(meters, container, "other", 3, &why));
        assert_true(admitted(meters, container, "other", 3, &why));
        assert_false(admitted(meters, container, "other", 3, &why));
        assert_int_equal(why, ERROR_BUCKET_THROTTLED);
        assert_true(admitted(meters, container, "other", 2, &why));
        container_unref(TAKE(container));
        bench_reopen(bench);
    }
}

/* An offer that key values have reserved of cannot be lowered below that. */
static void the_offer_is_kept_at_what_is_reserved(void **state)
{
    struct bench *bench = *state;
    const struct offer_request request = {.given = true, .ru = 2000};
    struct catalogue_offer_change less = {.request = {.given = true, .ru = 1000}};
    CLEANUP(container_unref) struct container *container = NULL;
    struct offer offer;
    struct error err;

    begin(bench);
    assert_ok(create(bench, WITH("{\"keys\":[{\"key\":[\"gold\"],\"reserved\":1500}]}"), &request,
                     &container, &err),
              &err);
    assert_fails(catalogue_offer_replace(bench->catalogue, SLICE("a"),
                                         slice_of_text(container_offer(container)->rid), &less,
                                         &offer, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_contains(err.message, "1500 RU/s would be reserved");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON(memory, what_cannot_be_is_refused_by_name),
        ON(memory, it_holds_for_the_partitions_that_have_the_keys_also_after_a_restart),
        ON(memory, the_offer_is_kept_at_what_is_reserved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
