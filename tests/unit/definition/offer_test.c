#include "definition/offer.h"

#include "support/check.h"

static const struct definition_limits *const limits = &CATALOGUE_LIMITS_DEFAULT;
static const struct offer_subject container = {.partitions = 1};
static const struct offer_subject unborn = {0};
static const struct offer_subject fixed = {.fixed = true};
static const struct offer_subject shared = {.shared = true};

static struct offer_request manual(int64_t ru)
{
    return (struct offer_request){.given = true, .ru = ru};
}

static struct offer_request autoscale(int64_t max)
{
    return (struct offer_request){.autoscale_given = true, .autoscale_max = max};
}

static struct offer make(const struct offer_subject *subject, struct offer_request request)
{
    struct offer offer;
    struct error err;
    bool any;

    assert_ok(offer_new(limits, subject, &request, &offer, &any, &err), &err);
    assert_true(any);
    return offer;
}

static void assert_refused(const struct offer_subject *subject, struct offer_request request,
                           const char *words)
{
    struct offer offer;
    struct error err;
    bool any;

    assert_fails(offer_new(limits, subject, &request, &offer, &any, &err), &err, ERROR_BAD_REQUEST);
    assert_contains(err.message, words);
}

static void manual_throughput_goes_in_hundreds_from_four_hundred(void **state UNUSED)
{
    assert_int_equal(make(&unborn, manual(400)).ru, 400);
    assert_int_equal(make(&unborn, manual(1000000)).ru, 1000000);
    assert_refused(&unborn, manual(450), "increments of 100");
    assert_refused(&unborn, manual(300), "less than required minimum throughput 400");
    assert_refused(&unborn, manual(-200), "Requested throughput -200 is less");
    assert_refused(&unborn, manual(1000100), "between 400 and 1000000");
}

static void autoscale_goes_in_thousands(void **state UNUSED)
{
    assert_int_equal(make(&unborn, autoscale(4000)).ru, 4000);
    assert_int_equal(make(&unborn, autoscale(4000)).kind, OFFER_AUTOSCALE);
    assert_refused(&unborn, autoscale(1500), "increments of 1000");
    assert_refused(&unborn, autoscale(0), "minimum throughput 1000");
}

static void kinds_do_not_mix(void **state UNUSED)
{
    struct offer_request both = {
        .given = true, .ru = 400, .autoscale_given = true, .autoscale_max = 1000};
    struct offer_request minute = autoscale(1000);

    minute.ru_per_minute = true;
    assert_refused(&unborn, both, "Both");
    assert_refused(&unborn, minute, "RU per minute");
}

static void a_container_has_throughput_even_if_nobody_asks(void **state UNUSED)
{
    struct offer offer;
    struct error err;
    bool any;

    assert_ok(offer_new(limits, &unborn, NULL, &offer, &any, &err), &err);
    assert_true(any);
    assert_int_equal(offer.ru, 400);
    assert_ok(offer_new(limits, &shared, NULL, &offer, &any, &err), &err);
    assert_false(any);
}

static void a_fixed_container_ends_at_one_partition(void **state UNUSED)
{
    struct definition_limits small = *limits;
    struct offer_request request = manual(2000);
    struct offer offer;
    struct error err;
    bool any;

    assert_int_equal(make(&fixed, manual(10000)).ru, 10000);
    assert_refused(&fixed, manual(10100), "between 400 and 10000");
    small.partition_ru_max = 1000;
    assert_fails(offer_new(&small, &fixed, &request, &offer, &any, &err), &err, ERROR_BAD_REQUEST);
}

static void unlimited_containers_may_have_a_minimum_of_their_own(void **state UNUSED)
{
    struct definition_limits legacy = *limits;
    struct offer_request request = manual(900);
    struct offer offer;
    struct error err;
    bool any;

    legacy.unlimited_ru_min = 1000;
    assert_fails(offer_new(&legacy, &unborn, &request, &offer, &any, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_ok(offer_new(&legacy, &fixed, &request, &offer, &any, &err), &err);
    assert_ok(offer_new(&legacy, &unborn, NULL, &offer, &any, &err), &err);
    assert_int_equal(offer.ru, 1000);
}

static void the_old_tiers_are_known(void **state UNUSED)
{
    struct offer_request request = {.given = true, .tier = 1};

    assert_int_equal(make(&fixed, request).ru, 250);
    assert_int_equal(make(&fixed, request).tier, 1);
    request.tier = 3;
    assert_int_equal(make(&fixed, request).ru, 2500);
    request.tier = 4;
    assert_refused(&fixed, request, "S4");
}

static void the_minimum_remembers_what_once_was(void **state UNUSED)
{
    struct offer_subject many = {.partitions = 20};
    struct offer offer = make(&unborn, manual(100000));
    struct offer_request down = manual(900);
    struct error err;

    assert_int_equal(offer_minimum(limits, &many, &offer, OFFER_MANUAL), 1000);
    assert_fails(offer_replace(limits, &many, &down, &offer, &err), &err, ERROR_BAD_REQUEST);
    down = manual(1000);
    assert_ok(offer_replace(limits, &many, &down, &offer, &err), &err);
    assert_int_equal(offer.ru, 1000);
    assert_int_equal(offer.ru_max_ever, 100000);

    /* A gigabyte stored is an RU/s, ten of autoscale. */
    many.bytes = 1234 * DEFINITION_LIMITS_GB;
    assert_int_equal(offer_minimum(limits, &many, &offer, OFFER_MANUAL), 1300);
    assert_int_equal(offer_minimum(limits, &many, &offer, OFFER_AUTOSCALE), 13000);
}

static void crowded_databases_have_a_higher_minimum(void **state UNUSED)
{
    struct offer_subject crowd = {.shared = true, .containers = 27};
    struct offer offer = make(&shared, manual(400));

    assert_int_equal(offer_minimum(limits, &crowd, &offer, OFFER_MANUAL), 600);
    assert_int_equal(offer_minimum(limits, &crowd, &offer, OFFER_AUTOSCALE), 3000);
}

static void a_replace_does_not_change_the_kind_and_a_migration_does(void **state UNUSED)
{
    struct offer offer = make(&unborn, manual(2300));
    struct offer_request request = autoscale(4000);
    struct error err;

    assert_fails(offer_replace(limits, &container, &request, &offer, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_ok(offer_migrate(limits, &container, OFFER_AUTOSCALE, &offer, &err), &err);
    assert_int_equal(offer.kind, OFFER_AUTOSCALE);
    assert_int_equal(offer.ru, 3000);
    assert_fails(offer_migrate(limits, &container, OFFER_AUTOSCALE, &offer, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_ok(offer_replace(limits, &container, &request, &offer, &err), &err);
    assert_int_equal(offer.ru, 4000);
    assert_ok(offer_migrate(limits, &container, OFFER_MANUAL, &offer, &err), &err);
    assert_int_equal(offer.kind, OFFER_MANUAL);
    assert_int_equal(offer.ru, 4000);
}

static void ru_per_minute_is_bought_and_given_back(void **state UNUSED)
{
    struct offer_request request = manual(1000);
    struct offer offer;
    struct error err;

    request.ru_per_minute = true;
    offer = make(&unborn, request);
    assert_true(offer.ru_per_minute);
    request.ru_per_minute = false;
    assert_ok(offer_replace(limits, &container, &request, &offer, &err), &err);
    assert_false(offer.ru_per_minute);
}

static void partitions_are_throughput_divided_and_rounded_up(void **state UNUSED)
{
    struct definition_limits small = *limits;

    assert_int_equal(offer_partitions(limits, 400), 1);
    assert_int_equal(offer_partitions(limits, 10000), 1);
    assert_int_equal(offer_partitions(limits, 10001), 2);
    small.partition_ru_max = 100;
    assert_int_equal(offer_partitions(&small, 400), 4);
}

static void a_tier_is_replaced_by_a_tier_or_by_a_number(void **state UNUSED)
{
    struct offer offer = make(&fixed, (struct offer_request){.given = true, .tier = 1});
    struct offer_request request = {.given = true, .tier = 3};
    struct error err;

    assert_ok(offer_replace(limits, &container, &request, &offer, &err), &err);
    assert_int_equal(offer.tier, 3);
    assert_int_equal(offer.ru, 2500);
    request = manual(600);
    assert_ok(offer_replace(limits, &container, &request, &offer, &err), &err);
    assert_int_equal(offer.tier, 0);
    assert_int_equal(offer.ru, 600);
    request.tier = 4;
    assert_fails(offer_replace(limits, &container, &request, &offer, &err), &err,
                 ERROR_BAD_REQUEST);
    assert_int_equal(offer.ru, 600);
}

static void what_nobody_asks_for_is_unstated_until_somebody_does(void **state UNUSED)
{
    struct definition_limits other = CATALOGUE_LIMITS_DEFAULT;
    struct offer offer = make(&unborn, (struct offer_request){0});
    struct offer_request same = manual(400);
    struct error err;

    assert_true(offer.unstated);
    assert_false(offer_is_enforced(limits, &offer));
    other.enforce = THROUGHPUT_ALWAYS;
    assert_true(offer_is_enforced(&other, &offer));
    assert_false(make(&unborn, manual(400)).unstated);
    assert_false(make(&unborn, autoscale(1000)).unstated);
    assert_false(make(&unborn, (struct offer_request){.ru_per_minute = true}).unstated);
    assert_ok(offer_replace(limits, &container, &same, &offer, &err), &err);
    assert_true(offer_is_enforced(limits, &offer));
    other.enforce = THROUGHPUT_NEVER;
    assert_false(offer_is_enforced(&other, &offer));

    offer = make(&unborn, (struct offer_request){0});
    assert_ok(offer_migrate(limits, &container, OFFER_AUTOSCALE, &offer, &err), &err);
    assert_false(offer.unstated);
}

static void a_container_is_made_with_partitions_of_ru_initial(void **state UNUSED)
{
    static const int64_t bought[] = {400, 6000, 10000, 12000, 21000, 30000};
    static const uint32_t smaller[] = {1, 1, 1, 2, 4, 5}, plain[] = {1, 1, 1, 2, 3, 3};
    struct definition_limits other = CATALOGUE_LIMITS_DEFAULT;

    other.partition_ru_initial = 6000;
    for (size_t i = 0; i < ARRAY_LEN(bought); i++) {
        struct offer offer = make(&unborn, manual(bought[i]));

        assert_int_equal(offer_partitions_initial(&other, &offer), smaller[i]);
        assert_int_equal(offer_partitions_needed(&other, &offer), plain[i]);
        assert_int_equal(offer_partitions_initial(limits, &offer), plain[i]);
    }
    assert_int_equal(
        offer_partitions_initial(&other, &(struct offer){.kind = OFFER_AUTOSCALE, .ru = 21000}), 3);
    other.partition_ru_initial = 50000; /* more than one may give */
    assert_int_equal(offer_partitions_initial(&other, &(struct offer){.ru = 30000}), 3);
    other.partition_ru_max = 100;
    assert_int_equal(offer_partitions_initial(&other, &(struct offer){.ru = 400, .unstated = true}),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manual_throughput_goes_in_hundreds_from_four_hundred),
        cmocka_unit_test(autoscale_goes_in_thousands),
        cmocka_unit_test(kinds_do_not_mix),
        cmocka_unit_test(a_container_has_throughput_even_if_nobody_asks),
        cmocka_unit_test(a_fixed_container_ends_at_one_partition),
        cmocka_unit_test(unlimited_containers_may_have_a_minimum_of_their_own),
        cmocka_unit_test(the_old_tiers_are_known),
        cmocka_unit_test(the_minimum_remembers_what_once_was),
        cmocka_unit_test(crowded_databases_have_a_higher_minimum),
        cmocka_unit_test(a_replace_does_not_change_the_kind_and_a_migration_does),
        cmocka_unit_test(ru_per_minute_is_bought_and_given_back),
        cmocka_unit_test(what_nobody_asks_for_is_unstated_until_somebody_does),
        cmocka_unit_test(a_container_is_made_with_partitions_of_ru_initial),
        cmocka_unit_test(partitions_are_throughput_divided_and_rounded_up),
        cmocka_unit_test(a_tier_is_replaced_by_a_tier_or_by_a_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
