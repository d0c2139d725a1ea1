#include "throughput/budget.h"

#include "base/memory.h"
#include "base/thread.h"
#include "simulation.h"
#include "throughput/cost.h"

#include <stdatomic.h>

enum { RU = 100, SECONDS = 10 };

static struct budget *budget_of(int64_t ru)
{
    return budget_new(&(struct budget_options){.rate_cru = ru * RU});
}

/* Admits and settles one request; 0, or the wait announced. */
static int64_t spend(struct budget *budget, int64_t cru, int64_t now_ms)
{
    struct budget_request request = {.price_cru = cru};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms = 0;

    if (!budget_admit(budget, &request, now_ms, &grant, &wait_ms, &err)) {
        assert_int_equal(err.code, ERROR_TOO_MANY_REQUESTS);
        assert_true(wait_ms > 0);
        return wait_ms;
    }
    budget_settle(budget, &grant, cru, now_ms);
    return 0;
}

/* Spends as much as is admitted at this moment, one RU each. Looks before it asks: a refusal would
 * set something aside. */
static int64_t drain(struct budget *budget, int64_t now_ms)
{
    int64_t drained = 0;
    struct budget_state now;

    for (;;) {
        budget_get_state(budget, now_ms, &now);
        if (now.owed_ms > 0)
            return drained;
        assert_int_equal(spend(budget, RU, now_ms), 0);
        drained++;
    }
}

static void assert_percent(int64_t got, int64_t of, int64_t low, int64_t high)
{
    if (got * 100 < of * low || got * 100 > of * high)
        fail_msg("%lld is %.2f %% of %lld, not %lld to %lld", (long long)got,
                 100.0 * (double)got / (double)of, (long long)of, (long long)low, (long long)high);
}

/* ---- by the second ---- */

static void a_seconds_budget_may_be_spent_at_once(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);

    assert_int_equal(drain(budget, 5000), 400);
    assert_int_equal(drain(budget, 5999), 0);
    assert_int_equal(drain(budget, 6000), 400);
}

static void a_refusal_names_the_exact_wait(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    int64_t wait_ms;

    assert_int_equal(drain(budget, 0), 400);
    wait_ms = spend(budget, 10 * RU, 300);
    assert_int_equal(wait_ms, 700);
    assert_int_equal(spend(budget, 10 * RU, 300 + wait_ms), 0);
}

static void one_request_may_overshoot_and_its_debt_carries_over(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);

    assert_int_equal(spend(budget, 399 * RU, 0), 0);
    assert_int_equal(spend(budget, 801 * RU, 0), 0); /* one RU is left, and is enough */
    assert_int_equal(spend(budget, 1 * RU, 0), 3000);
}

static void coming_early_does_not_lengthen_the_wait(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct budget_request request = {.price_cru = 10 * RU, .ticket = 7};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_int_equal(spend(budget, 400 * RU, 0), 0);
    for (int64_t now_ms = 0; now_ms < 1000; now_ms += 90) {
        assert_fails(budget_admit(budget, &request, now_ms, &grant, &wait_ms, &err), &err,
                     ERROR_TOO_MANY_REQUESTS);
        assert_int_equal(wait_ms, 1000 - now_ms);
    }
    assert_ok(budget_admit(budget, &request, 1000, &grant, &wait_ms, &err), &err);
}

static void refused_ones_are_told_places_one_after_the_other(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_int_equal(spend(budget, 400 * RU, 0), 0);
    for (uint64_t ticket = 1; ticket <= 10; ticket++) {
        struct budget_request request = {.price_cru = 20 * RU, .ticket = ticket};

        assert_false(budget_admit(budget, &request, 0, &grant, &wait_ms, &err));
        assert_int_equal(wait_ms, 1000 + 50 * ((int64_t)ticket - 1));
    }
}

static void a_newcomer_does_not_get_what_is_set_aside(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(100);
    struct budget_request waiting = {.price_cru = 100 * RU, .ticket = 1};
    struct budget_request newcomer = {.price_cru = 1 * RU, .ticket = 2};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_int_equal(spend(budget, 100 * RU, 0), 0);
    assert_false(budget_admit(budget, &waiting, 10, &grant, &wait_ms, &err));
    assert_false(budget_admit(budget, &newcomer, 1000, &grant, &wait_ms, &err));
    assert_ok(budget_admit(budget, &waiting, 1000, &grant, &wait_ms, &err), &err);
}

static void what_nobody_claims_goes_to_newcomers(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(100);
    struct budget_request waiting = {.price_cru = 100 * RU, .ticket = 1};
    struct budget_request newcomer = {.price_cru = 1 * RU, .ticket = 2};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_int_equal(spend(budget, 100 * RU, 0), 0);
    assert_false(budget_admit(budget, &waiting, 10, &grant, &wait_ms, &err));
    assert_ok(budget_admit(budget, &newcomer, 1101, &grant, &wait_ms, &err), &err);
}

/* ---- settling ---- */

static void settling_more_than_the_price_becomes_debt(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct budget_request request = {.price_cru = 230};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
    budget_settle(budget, &grant, 600 * RU, 10);
    assert_int_equal(spend(budget, RU, 10), 1490);
}

static void settling_nothing_gives_everything_back(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct budget_request request = {.price_cru = 400 * RU};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
    budget_settle(budget, &grant, 0, 0);
    budget_settle(budget, &grant, 0, 0); /* empty by now */
    assert_int_equal(drain(budget, 0), 400);
}

static void a_dropped_grant_was_never_there(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct budget_request request = {.price_cru = 100 * RU};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
    budget_settle(budget, &grant, 180 * RU, 0); /* such requests cost more than they say */
    assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
    assert_int_equal(grant.extra_cru, 10 * RU);
    budget_drop(budget, &grant, 0);
    budget_drop(budget, &grant, 0); /* empty by now */
    assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
    assert_int_equal(grant.extra_cru, 10 * RU);
    budget_drop(budget, &grant, 0);
    assert_int_equal(drain(budget, 0), 220);
}

/* ---- several at once ---- */

/* The only key value with throughput of its own. */
static void set_tenant(struct budget *budget, const char *key, int64_t reserved_cru,
                       int64_t cap_cru, int64_t now_ms)
{
    budget_set_tenants(budget, &(struct budget_tenant){slice_of_text(key), reserved_cru, cap_cru},
                       1, now_ms);
}

static void all_of_several_are_admitted_or_none(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct budget_request requests[] = {{.price_cru = 300 * RU, .key = SLICE("a")},
                                        {.price_cru = 300 * RU, .key = SLICE("capped")}};
    struct budget_grant grants[2];
    struct error err;
    int64_t wait_ms;

    set_tenant(budget, "capped", 0, 100 * RU, 0);
    assert_ok(budget_admit_all(budget, requests, 2, 0, grants, &wait_ms, &err), &err);
    for (int i = 0; i < 2; i++)
        budget_settle(budget, &grants[i], 300 * RU, 0);
    /* At 1600 ms the partition owes nothing, and the key has two thirds of its debt to go. */
    assert_fails(budget_admit_all(budget, requests, 2, 1600, grants, &wait_ms, &err), &err,
                 ERROR_KEY_THROTTLED);
    assert_int_equal(wait_ms, 1400);
    assert_int_equal(drain(budget, 1600), 400);
}

static void what_many_operations_cost_above_their_price_is_counted_for_each(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct budget_request many = {.price_cru = 100 * RU, .operations = 100};
    struct budget_request one = {.price_cru = RU};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_ok(budget_admit(budget, &many, 0, &grant, &wait_ms, &err), &err);
    budget_settle(budget, &grant, 180 * RU, 0);
    assert_ok(budget_admit(budget, &one, 0, &grant, &wait_ms, &err), &err);
    assert_int_equal(grant.extra_cru, RU / 10);
    budget_drop(budget, &grant, 0);
    assert_ok(budget_admit(budget, &many, 0, &grant, &wait_ms, &err), &err);
    assert_int_equal(grant.extra_cru, 10 * RU);
    budget_drop(budget, &grant, 0);
}

/* ---- what must be shown: overload, with clients that obey and clients that do not ---- */

static void show(const char *what, const struct crowd *crowd, int64_t rate_cru)
{
    print_message("# %s: delivered %.2f %%, %u of %u refused again\n", what,
                  100.0 * (double)crowd->delivered_cru / (double)(rate_cru * SECONDS),
                  crowd->refused_again, crowd->refused);
}

/* 97 to 103 percent within ten seconds, from any beginning; refused again at most one in twenty. */
static void assert_delivers(const char *what, int64_t ru, struct crowd crowd, bool obeys)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        CLEANUP(budget_free) struct budget *budget = budget_of(ru);
        struct crowd run = crowd;

        run.from_ms = (int64_t)seed * 333;
        simulate(budget, &run, 1, 0, run.from_ms + SECONDS * 1000, seed);
        if (seed == 1)
            show(what, &run, ru * RU);
        assert_percent(run.delivered_cru, ru * RU * SECONDS, 97, 103);
        assert_true(run.refused > 0);
        if (obeys)
            assert_true(run.refused_again * 20 <= run.refused);
    }
}

static void a_sequential_client_is_not_refused_twice_in_a_row(void **state UNUSED)
{
    assert_delivers(
        "one client", 400,
        (struct crowd){.clients = 1, .price_cru = 990, .charge_cru = 990, .latency_ms = 2}, true);
    assert_delivers(
        "one client, late", 400,
        (struct crowd){
            .clients = 1, .price_cru = 990, .charge_cru = 990, .latency_ms = 2, .jitter_ms = 10},
        true);
}

static void obedient_clients_share_exactly_the_budget(void **state UNUSED)
{
    struct crowd crowd = {.clients = 64, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 2};

    assert_delivers("64 clients", 400, crowd, true);
    crowd.jitter_ms = 20;
    assert_delivers("64 clients, late", 400, crowd, true);
    crowd.clients = 300;
    assert_delivers("300 clients, late, 10,000 RU/s", 10000, crowd, true);
    crowd.clients = 900;
    assert_delivers("900 clients, late, 10,000 RU/s", 10000, crowd, true);
}

static void clients_offering_three_times_the_budget_are_delivered_it(void **state UNUSED)
{
    /* 120 requests of 10 RU per second, whatever they are told, never the same one twice. */
    assert_delivers("3 x, heedless", 400,
                    (struct crowd){.clients = 12,
                                   .price_cru = 1000,
                                   .charge_cru = 1000,
                                   .pause_ms = 100,
                                   .disobedient = true,
                                   .retry_ms = 100,
                                   .gives_up = true,
                                   .jitter_ms = 5},
                    false);
}

static void hammering_gets_no_more_than_the_budget(void **state UNUSED)
{
    struct crowd crowd = {.clients = 50,
                          .price_cru = 100,
                          .charge_cru = 100,
                          .latency_ms = 1,
                          .disobedient = true,
                          .retry_ms = 1,
                          .gives_up = true};

    assert_delivers("hammering", 400, crowd, false);
    crowd.clients = 200;
    assert_delivers("hammering, 10,000 RU/s", 10000, crowd, false);
    crowd.nameless = true;
    assert_delivers("hammering without tickets", 10000, crowd, false);
}

static void clients_without_tickets_are_delivered_the_budget_too(void **state UNUSED)
{
    struct crowd crowd = {
        .clients = 64, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 2, .nameless = true};

    assert_delivers("64 without tickets", 400, crowd, true);
}

static void load_just_before_the_measure_changes_nothing(void **state UNUSED)
{
    for (int64_t before_ms = 5; before_ms < 1200; before_ms += 235) {
        CLEANUP(budget_free) struct budget *budget = budget_of(400);
        struct crowd crowd = {.clients = 40,
                              .price_cru = 1000,
                              .charge_cru = 1000,
                              .latency_ms = 2,
                              .from_ms = 2000,
                              .jitter_ms = 3};

        assert_int_equal(spend(budget, 20 * RU, 2000 - before_ms), 0);
        simulate(budget, &crowd, 1, 0, 12000, 1);
        assert_percent(crowd.delivered_cru, 400 * RU * SECONDS, 97, 103);
    }
}

static void prices_too_low_are_learned(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(4000);
    struct crowd crowd = {.clients = 64,
                          .price_cru = 230,
                          .charge_cru = 500,
                          .charge_spread_cru = 5000,
                          .latency_ms = 5,
                          .jitter_ms = 5};

    simulate(budget, &crowd, 1, 1000, 11000, 1);
    show("64 queries, priced at 2.3 and charged 5 to 55", &crowd, 4000 * RU);
    assert_percent(crowd.delivered_cru, 4000 * RU * SECONDS, 95, 105);
    assert_true(crowd.refused_again * 20 <= crowd.refused);
}

/* ---- burst credit ---- */

static struct budget *budget_with_burst(int64_t ru, uint32_t seconds)
{
    return budget_new(&(struct budget_options){.rate_cru = ru * RU, .burst_seconds = seconds});
}

static void unused_budget_is_saved_and_spent_at_3000(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_with_burst(400, 300);
    struct budget_state now;

    assert_int_equal(spend(budget, RU, 0), 0);
    budget_get_state(budget, 20000, &now);
    assert_percent(now.credit_cru, 400 * RU * 20, 99, 100);
    assert_percent(drain(budget, 20000), 3000, 99, 101);
    assert_percent(drain(budget, 21000), 3000, 99, 101);
    assert_percent(drain(budget, 22000), 3000, 99, 101);
    /* 8,000 were saved and 2,600 a second of them spent: 200 are left. */
    assert_percent(drain(budget, 23000), 600, 98, 102);
    assert_percent(drain(budget, 24010), 400, 99, 101);
}

static void credit_is_bounded_by_its_seconds(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_with_burst(400, 300);
    struct budget_state now;

    assert_int_equal(spend(budget, RU, 0), 0);
    budget_get_state(budget, INT64_C(100) * 3600 * 1000, &now);
    assert_int_equal(now.credit_cru, 300 * 400 * RU);
}

static void no_credit_without_burst_seconds_or_above_3000(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *off = budget_with_burst(400, 0);
    CLEANUP(budget_free) struct budget *fast = budget_with_burst(3000, 300);

    assert_int_equal(spend(off, RU, 0), 0);
    assert_int_equal(spend(fast, RU, 0), 0);
    assert_int_equal(drain(off, 100000), 400);
    assert_int_equal(drain(fast, 100000), 3000);
}

static void
use_below_the_rate_saves_the_rest_and_above_it_spends_the_difference(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_with_burst(400, 300);
    struct budget_state now;

    for (int64_t ms = 0; ms < 10000; ms += 10) /* 100 RU/s */
        assert_int_equal(spend(budget, RU, ms), 0);
    budget_get_state(budget, 10000, &now);
    assert_percent(now.credit_cru, 3000 * RU, 98, 102);
    for (int64_t ms = 10000; ms < 14000; ms++) /* 1,000 RU/s */
        assert_int_equal(spend(budget, RU, ms), 0);
    budget_get_state(budget, 14000, &now);
    assert_percent(now.credit_cru, 600 * RU, 90, 110);
}

static void overload_from_credit_is_delivered_both(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_with_burst(400, 300);
    struct crowd crowd = {
        .clients = 100, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 2, .from_ms = 20000};

    assert_int_equal(spend(budget, RU, 0), 0);
    simulate(budget, &crowd, 1, 0, 30000, 1);
    assert_percent(crowd.delivered_cru, (10 + 20) * 400 * RU, 97, 103);
    assert_true(crowd.refused_again * 20 <= crowd.refused);
}

/* ---- autoscale, RU per minute, changes ---- */

static void autoscale_shows_what_is_used_and_remembers_the_peak(void **state UNUSED)
{
    CLEANUP(budget_free)
    struct budget *budget =
        budget_new(&(struct budget_options){.rate_cru = 4000 * RU, .autoscale = true});
    struct budget_state now;

    budget_get_state(budget, 0, &now);
    assert_int_equal(now.current_cru, 400 * RU);
    assert_int_equal(spend(budget, 2500 * RU, 1000), 0); /* up to the maximum at once */
    budget_get_state(budget, 1500, &now);
    assert_int_equal(now.current_cru, 2500 * RU);
    budget_get_state(budget, 9000, &now);
    assert_int_equal(now.current_cru, 400 * RU); /* and down again */
    assert_int_equal(now.hour_peak_cru, 2500 * RU);
    budget_get_state(budget, 3600 * 1000, &now);
    assert_int_equal(now.hour_peak_cru, 400 * RU);
    assert_int_equal(now.hour_before_cru, 2500 * RU);
}

static void autoscale_refuses_above_its_maximum(void **state UNUSED)
{
    CLEANUP(budget_free)
    struct budget *budget =
        budget_new(&(struct budget_options){.rate_cru = 1000 * RU, .autoscale = true});
    struct budget_state now;

    assert_int_equal(drain(budget, 0), 1000);
    budget_get_state(budget, 500, &now);
    assert_int_equal(now.current_cru, 1000 * RU);
}

static void the_minute_pool_adds_ten_seconds_worth_per_minute(void **state UNUSED)
{
    CLEANUP(budget_free)
    struct budget *budget =
        budget_new(&(struct budget_options){.rate_cru = 100 * RU, .minute_pool = true});
    struct budget_request request = {.price_cru = RU};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;
    int from_second = 0, from_minute = 0;

    while (budget_admit(budget, &request, 0, &grant, &wait_ms, &err)) {
        *(grant.minute_used ? &from_minute : &from_second) += 1;
        budget_settle(budget, &grant, RU, 0);
    }
    assert_int_equal(from_second, 100);
    assert_int_equal(from_minute, 1000);
    request.ticket = 1;
    assert_true(budget_admit(budget, &request, 60000, &grant, &wait_ms, &err));
    assert_false(grant.minute_used);
}

static void a_request_may_leave_the_minute_pool_alone(void **state UNUSED)
{
    CLEANUP(budget_free)
    struct budget *budget =
        budget_new(&(struct budget_options){.rate_cru = 100 * RU, .minute_pool = true});
    struct budget_request request = {.price_cru = 100 * RU, .minute_pool_off = true};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
    assert_false(budget_admit(budget, &request, 0, &grant, &wait_ms, &err));
    request.minute_pool_off = false;
    assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
    assert_true(grant.minute_used);
}

static void a_raise_helps_those_who_wait_at_once(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);

    assert_int_equal(spend(budget, 2000 * RU, 0), 0);
    assert_int_equal(spend(budget, RU, 0), 5000);
    budget_set_throughput(budget, 4000 * RU, false, false, 0);
    assert_int_equal(spend(budget, RU, 500), 0); /* 2,000 RU are half a second now */
    budget_set_throughput(budget, 100 * RU, false, false, 10000);
    assert_int_equal(drain(budget, 10000), 100);
}

static void no_rate_is_above_what_a_partition_may_give(void **state UNUSED)
{
    CLEANUP(budget_free)
    struct budget *budget =
        budget_new(&(struct budget_options){.rate_cru = 50000 * RU, .rate_max_cru = 10000 * RU});

    assert_int_equal(drain(budget, 0), 10000);
    budget_set_throughput(budget, 90000 * RU, false, false, 1000);
    assert_int_equal(drain(budget, 1000), 10000);
}

/* ---- priorities, buckets, tenants ---- */

static void low_priority_is_throttled_first(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct crowd crowds[2] = {
        /* 240 RU/s of normal priority, and low priority taking whatever it can get */
        {.clients = 6, .price_cru = 1000, .charge_cru = 1000, .pause_ms = 250, .jitter_ms = 3},
        {.clients = 40,
         .price_cru = 1000,
         .charge_cru = 1000,
         .latency_ms = 1,
         .low_priority = true},
    };

    simulate(budget, crowds, 2, 2000, 12000, 1);
    show("normal priority, 60 %", &crowds[0], 400 * RU);
    show("low priority, all it can get", &crowds[1], 400 * RU);
    assert_percent(crowds[0].delivered_cru, 240 * RU * SECONDS, 97, 103);
    assert_true(crowds[0].refused * 50 <= crowds[0].admitted);
    assert_true(crowds[1].refused > 100);
    assert_percent(crowds[1].delivered_cru, 160 * RU * SECONDS, 85, 105);
}

static void low_priority_alone_gets_everything(void **state UNUSED)
{
    assert_delivers("low priority alone", 400,
                    (struct crowd){.clients = 30,
                                   .price_cru = 1000,
                                   .charge_cru = 1000,
                                   .latency_ms = 2,
                                   .low_priority = true},
                    true);
}

static void a_bucket_gets_at_most_its_percentage(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(1000);
    struct budget_request request = {.price_cru = 400 * RU, .bucket = 2};
    struct crowd crowd = {
        .clients = 30, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 2, .bucket = 2};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    budget_set_bucket(budget, 2, 30, 0);
    simulate(budget, &crowd, 1, 0, SECONDS * 1000, 1);
    assert_percent(crowd.delivered_cru, 300 * RU * SECONDS, 97, 103);
    assert_true(crowd.refused_again * 20 <= crowd.refused);

    assert_ok(budget_admit(budget, &request, 20000, &grant, &wait_ms, &err), &err);
    assert_fails(budget_admit(budget, &request, 20000, &grant, &wait_ms, &err), &err,
                 ERROR_BUCKET_THROTTLED);
    request.bucket = 1; /* others are not bound by it */
    assert_ok(budget_admit(budget, &request, 20000, &grant, &wait_ms, &err), &err);
}

static void a_reserving_tenant_is_served_whatever_others_do(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct crowd crowds[2] = {
        {.clients = 60, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 1, .key = "crowd"},
        {.clients = 10, /* offers 100 RU/s */
         .price_cru = 1000,
         .charge_cru = 1000,
         .pause_ms = 1000,
         .jitter_ms = 5,
         .key = "gold",
         .from_ms = 1000},
    };

    set_tenant(budget, "gold", 100 * RU, 0, 0);
    simulate(budget, crowds, 2, 2000, 12000, 1);
    show("everybody else", &crowds[0], 400 * RU);
    show("the tenant, reserving 25 %", &crowds[1], 400 * RU);
    assert_percent(crowds[1].delivered_cru, 100 * RU * SECONDS, 95, 105);
    assert_true(crowds[1].refused * 20 <= crowds[1].admitted);
    assert_percent(crowds[0].delivered_cru + crowds[1].delivered_cru, 400 * RU * SECONDS, 97, 103);
}

static void a_capped_tenant_is_refused_though_there_is_room(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(1000);
    struct crowd crowd = {
        .clients = 20, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 2, .key = "greedy"};
    struct budget_request request = {.price_cru = 100 * RU, .key = SLICE("greedy")};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    set_tenant(budget, "greedy", 0, 50 * RU, 0);
    simulate(budget, &crowd, 1, 0, SECONDS * 1000, 1);
    assert_percent(crowd.delivered_cru, 50 * RU * SECONDS, 97, 103);

    assert_ok(budget_admit(budget, &request, 20000, &grant, &wait_ms, &err), &err);
    assert_fails(budget_admit(budget, &request, 20000, &grant, &wait_ms, &err), &err,
                 ERROR_KEY_THROTTLED);
    assert_int_equal(err.substatus, 3214);
    assert_int_equal(wait_ms, 2000);
    assert_true(budget_tenant_use(budget, SLICE("greedy")).refused > 0);
    assert_percent(budget_tenant_use(budget, SLICE("greedy")).spent_cru,
                   50 * RU * SECONDS + 100 * RU, 97, 103);
    budget_set_tenants(budget, NULL, 0, 20000);
    assert_int_equal(budget_tenant_use(budget, SLICE("greedy")).spent_cru, 0);
    assert_ok(budget_admit(budget, &request, 20000, &grant, &wait_ms, &err), &err);
}

/* As when a partition is given less than was reserved in it. */
static void reservations_beyond_the_partition_are_cut_in_proportion(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    const struct budget_tenant tenants[] = {{SLICE("a"), 600 * RU, 0}, {SLICE("b"), 200 * RU, 0}};
    struct crowd crowds[2] = {
        {.clients = 60, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 1, .key = "a"},
        {.clients = 60, .price_cru = 1000, .charge_cru = 1000, .latency_ms = 1, .key = "b"}};

    budget_set_tenants(budget, tenants, 2, 0);
    simulate(budget, crowds, 2, 0, SECONDS * 1000, 1);
    show("three quarters reserved", &crowds[0], 400 * RU);
    show("one quarter reserved", &crowds[1], 400 * RU);
    assert_percent(crowds[0].delivered_cru, 300 * RU * SECONDS, 97, 106);
    assert_true(crowds[1].delivered_cru >= 97 * RU * SECONDS); /* and what places it had before */
}

static void the_table_of_tenants_is_bounded_and_replaced_whole(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct budget_tenant tenants[BUDGET_TENANTS_MAX];
    uint32_t keys[2 * BUDGET_TENANTS_MAX];

    for (uint32_t i = 0; i < 2 * BUDGET_TENANTS_MAX; i++)
        keys[i] = i;
    for (uint32_t from = 0; from < BUDGET_TENANTS_MAX; from += 300) {
        struct budget_request request = {.price_cru = 2 * RU, .key = slice_of(&keys[from], 4)};
        struct budget_grant grant;
        struct error err;
        int64_t wait_ms;

        for (uint32_t i = 0; i < BUDGET_TENANTS_MAX; i++)
            tenants[i] = (struct budget_tenant){slice_of(&keys[from + i], 4), 0, RU};
        budget_set_tenants(budget, tenants, BUDGET_TENANTS_MAX, 0);
        assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
        assert_fails(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err,
                     ERROR_KEY_THROTTLED);
    }
}

static void a_tenant_may_go_while_its_request_runs(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(400);
    struct budget_request request = {.price_cru = RU, .key = SLICE("a")};
    struct budget_grant grant;
    struct error err;
    int64_t wait_ms;

    set_tenant(budget, "a", 10 * RU, 50 * RU, 0);
    assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
    set_tenant(budget, "b", 10 * RU, 50 * RU, 0);
    budget_settle(budget, &grant, 400 * RU, 0);
    request.key = SLICE("b"); /* has the position of "a" now, but not its charge */
    assert_ok(budget_admit(budget, &request, 0, &grant, &wait_ms, &err), &err);
}

/* ---- extremes, repeatability, threads ---- */

static void extreme_values_neither_overflow_nor_block_for_ever(void **state UNUSED)
{
    CLEANUP(budget_free)
    struct budget *budget =
        budget_new(&(struct budget_options){.rate_cru = INT64_MAX, .burst_seconds = UINT32_MAX});
    CLEANUP(budget_free)
    struct budget *tiny =
        budget_new(&(struct budget_options){.rate_cru = INT64_MIN, .burst_seconds = UINT32_MAX});
    int64_t wait_ms;

    assert_int_equal(spend(budget, COST_MAX_CRU, INT64_MIN), 0);
    assert_int_equal(spend(budget, COST_MAX_CRU, INT64_MAX), 0);
    assert_true(spend(budget, COST_MAX_CRU, INT64_MAX) > 0);
    assert_true(spend(budget, 0, INT64_MIN) > 0); /* backwards */

    assert_int_equal(spend(tiny, COST_MAX_CRU, 0), 0);
    wait_ms = spend(tiny, COST_MAX_CRU, 0);
    assert_true(wait_ms > 0 && wait_ms <= 86400 * 1000);
    budget_set_throughput(tiny, INT64_MAX, true, true, 1);
    budget_set_throughput(tiny, 1, false, false, 2);
    budget_set_throughput(tiny, INT64_MAX, false, false, 3);
    assert_int_equal(spend(tiny, 0, 86400 * 1000), 0);
}

static void the_same_story_ends_the_same(void **state UNUSED)
{
    struct crowd runs[2];

    memset(runs, 0, sizeof runs); /* padding is compared too */
    for (int i = 0; i < 2; i++) {
        CLEANUP(budget_free) struct budget *budget = budget_with_burst(700, 20);

        runs[i].clients = 50;
        runs[i].price_cru = 230;
        runs[i].charge_cru = 300;
        runs[i].charge_spread_cru = 900;
        runs[i].latency_ms = 3;
        runs[i].jitter_ms = 9;
        simulate(budget, &runs[i], 1, 0, 5000, 77);
    }
    assert_true(runs[0].refused > 0);
    assert_int_equal(runs[0].delivered_cru, runs[1].delivered_cru);
    assert_int_equal(runs[0].admitted, runs[1].admitted);
    assert_int_equal(runs[0].refused, runs[1].refused);
    assert_int_equal(runs[0].wait_ms_max, runs[1].wait_ms_max);
}

struct pressing {
    struct budget *budget;
    _Atomic int64_t *now_ms;
    _Atomic int64_t *delivered_cru;
    uint64_t number;
};

enum { THREADS = 4, ATTEMPTS = 20000, TURN = 20 };

/* Each attempt may move time on, so that all threads together live through some seconds. */
static void press(void *context)
{
    struct pressing *pressing = context;
    struct budget_request request = {.key = SLICE("k"), .bucket = 1};

    for (uint64_t i = 0; i < ATTEMPTS; i++) {
        int64_t now_ms =
            i % TURN ? atomic_load(pressing->now_ms) : atomic_fetch_add(pressing->now_ms, 1) + 1;
        struct budget_grant grant;
        struct budget_state state;
        struct error err;
        int64_t wait_ms;

        request.price_cru = (int64_t)(i % 7) * RU;
        request.ticket = pressing->number * 1000 + i % 100 + 1;
        request.low_priority = i % 5 == 0;
        if (budget_admit(pressing->budget, &request, now_ms, &grant, &wait_ms, &err)) {
            atomic_fetch_add(pressing->delivered_cru, (int64_t)(i % 9) * RU);
            budget_settle(pressing->budget, &grant, (int64_t)(i % 9) * RU, now_ms);
        }
        if (i % 512 == 0) {
            budget_get_state(pressing->budget, now_ms, &state);
            budget_set_throughput(pressing->budget, 1000 * RU, false, false, now_ms);
            set_tenant(pressing->budget, "k", 100 * RU, i % 1024 ? 0 : 900 * RU, now_ms);
        }
    }
}

static void threads_together_get_no_more_than_the_budget(void **state UNUSED)
{
    CLEANUP(budget_free) struct budget *budget = budget_of(1000);
    struct pressing pressing[THREADS];
    struct thread threads[THREADS];
    _Atomic int64_t now_ms = 0, delivered_cru = 0;
    int64_t possible_cru;

    for (size_t i = 0; i < THREADS; i++) {
        pressing[i] = (struct pressing){budget, &now_ms, &delivered_cru, i + 1};
        thread_start(&threads[i], "press", press, &pressing[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        thread_join(&threads[i]);
    /* Time passed, the second begun, and a little for those in flight. */
    possible_cru = (now_ms + 1000) * RU + THREADS * 10 * RU;
    assert_true(delivered_cru <= possible_cru);
    assert_true(delivered_cru > now_ms * RU / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seconds_budget_may_be_spent_at_once),
        cmocka_unit_test(a_refusal_names_the_exact_wait),
        cmocka_unit_test(one_request_may_overshoot_and_its_debt_carries_over),
        cmocka_unit_test(coming_early_does_not_lengthen_the_wait),
        cmocka_unit_test(refused_ones_are_told_places_one_after_the_other),
        cmocka_unit_test(a_newcomer_does_not_get_what_is_set_aside),
        cmocka_unit_test(what_nobody_claims_goes_to_newcomers),
        cmocka_unit_test(settling_more_than_the_price_becomes_debt),
        cmocka_unit_test(settling_nothing_gives_everything_back),
        cmocka_unit_test(a_dropped_grant_was_never_there),
        cmocka_unit_test(all_of_several_are_admitted_or_none),
        cmocka_unit_test(what_many_operations_cost_above_their_price_is_counted_for_each),
        cmocka_unit_test(a_sequential_client_is_not_refused_twice_in_a_row),
        cmocka_unit_test(obedient_clients_share_exactly_the_budget),
        cmocka_unit_test(clients_offering_three_times_the_budget_are_delivered_it),
        cmocka_unit_test(hammering_gets_no_more_than_the_budget),
        cmocka_unit_test(clients_without_tickets_are_delivered_the_budget_too),
        cmocka_unit_test(load_just_before_the_measure_changes_nothing),
        cmocka_unit_test(prices_too_low_are_learned),
        cmocka_unit_test(unused_budget_is_saved_and_spent_at_3000),
        cmocka_unit_test(credit_is_bounded_by_its_seconds),
        cmocka_unit_test(no_credit_without_burst_seconds_or_above_3000),
        cmocka_unit_test(use_below_the_rate_saves_the_rest_and_above_it_spends_the_difference),
        cmocka_unit_test(overload_from_credit_is_delivered_both),
        cmocka_unit_test(autoscale_shows_what_is_used_and_remembers_the_peak),
        cmocka_unit_test(autoscale_refuses_above_its_maximum),
        cmocka_unit_test(the_minute_pool_adds_ten_seconds_worth_per_minute),
        cmocka_unit_test(a_request_may_leave_the_minute_pool_alone),
        cmocka_unit_test(a_raise_helps_those_who_wait_at_once),
        cmocka_unit_test(no_rate_is_above_what_a_partition_may_give),
        cmocka_unit_test(low_priority_is_throttled_first),
        cmocka_unit_test(low_priority_alone_gets_everything),
        cmocka_unit_test(a_bucket_gets_at_most_its_percentage),
        cmocka_unit_test(a_reserving_tenant_is_served_whatever_others_do),
        cmocka_unit_test(a_capped_tenant_is_refused_though_there_is_room),
        cmocka_unit_test(reservations_beyond_the_partition_are_cut_in_proportion),
        cmocka_unit_test(the_table_of_tenants_is_bounded_and_replaced_whole),
        cmocka_unit_test(a_tenant_may_go_while_its_request_runs),
        cmocka_unit_test(extreme_values_neither_overflow_nor_block_for_ever),
        cmocka_unit_test(the_same_story_ends_the_same),
        cmocka_unit_test(threads_together_get_no_more_than_the_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
