#include "server/lease.h"

#include "support/check.h"

enum { SELF = 7, OWNER = 3, BEAT_MS = 500, LEASE_MS = 3000 };

static const struct lease_rules rules = {BEAT_MS, LEASE_MS};

/* A world of two servers, the other of which owns. */
static struct engine_membership two_servers(uint64_t beat)
{
    struct engine_membership seen = {.count = 2, .owner = OWNER, .term = 1, .held = true};

    seen.list[0] =
        (struct engine_member){.name = "a", .incarnation = OWNER, .beat = beat, .present = true};
    seen.list[1] = (struct engine_member){.name = "b", .incarnation = SELF, .present = true};
    return seen;
}

static enum lease_verdict judge(const struct lease *lease, const struct engine_membership *seen,
                                int64_t now_ms)
{
    return lease_judge(lease, &rules, seen, SELF, now_ms);
}

static void an_owner_that_beats_keeps_its_lease(void **state UNUSED)
{
    struct lease lease = {0};

    for (uint64_t i = 0; i < 100; i++) {
        struct engine_membership seen = two_servers(i + 1);
        int64_t now_ms = (int64_t)i * BEAT_MS;

        lease_look(&lease, &seen, now_ms);
        assert_int_equal(judge(&lease, &seen, now_ms), LEASE_HELD);
    }
}

static void an_owner_that_stands_still_loses_it_behind_the_lease_and_not_before(void **state UNUSED)
{
    struct engine_membership seen = two_servers(5);
    struct lease lease = {0};

    for (int64_t now_ms = 0; now_ms < LEASE_MS; now_ms += BEAT_MS) {
        lease_look(&lease, &seen, now_ms);
        assert_int_equal(judge(&lease, &seen, now_ms), LEASE_HELD);
    }
    lease_look(&lease, &seen, LEASE_MS);
    assert_int_equal(judge(&lease, &seen, LEASE_MS), LEASE_ENDED);
}

static void nobody_is_judged_by_who_could_not_beat_itself(void **state UNUSED)
{
    struct engine_membership seen = two_servers(5);
    struct lease lease = {0};

    lease_look(&lease, &seen, 0);
    /* The node, or this server, stood still for a minute. */
    lease_look(&lease, &seen, 60 * 1000);
    assert_int_equal(judge(&lease, &seen, 60 * 1000), LEASE_HELD);
}

static void a_beat_in_the_last_moment_begins_the_lease_anew(void **state UNUSED)
{
    struct engine_membership seen = two_servers(5);
    struct lease lease = {0};

    for (int64_t now_ms = 0; now_ms < LEASE_MS; now_ms += BEAT_MS)
        lease_look(&lease, &seen, now_ms);
    seen = two_servers(6);
    lease_look(&lease, &seen, LEASE_MS);
    assert_int_equal(judge(&lease, &seen, LEASE_MS), LEASE_HELD);
    assert_int_equal(lease.changed_ms, LEASE_MS);
}

static void a_killed_process_is_known_by_its_sessions_and_its_address(void **state UNUSED)
{
    struct engine_membership seen = two_servers(5);
    struct lease lease = {0};

    lease_look(&lease, &seen, 0);
    assert_false(lease.probing);
    seen.held = seen.list[0].present = false;
    lease_look(&lease, &seen, 100);
    assert_true(lease.probing);
    lease_asked(&lease, true, 100);
    lease_asked(&lease, true, 200);
    lease_asked(&lease, true, 300);
    assert_int_equal(judge(&lease, &seen, 300), LEASE_HELD); /* not for long enough */
    lease_asked(&lease, true, 400);
    assert_int_equal(judge(&lease, &seen, 400), LEASE_ENDED);
}

static void one_that_answers_at_its_address_is_not_held_dead_before_its_lease(void **state UNUSED)
{
    struct engine_membership seen = two_servers(5);
    struct lease lease = {0};

    seen.held = seen.list[0].present = false; /* its sessions were cut, say by a failover */
    lease_look(&lease, &seen, 0);
    for (int64_t now_ms = 0; now_ms < 1000; now_ms += 100) {
        lease_asked(&lease, now_ms != 800, now_ms);
        assert_true(now_ms < 800 || judge(&lease, &seen, now_ms) == LEASE_HELD);
    }
}

static void sessions_that_come_back_forget_the_refusals(void **state UNUSED)
{
    struct engine_membership seen = two_servers(5);
    struct lease lease = {0};

    seen.held = seen.list[0].present = false;
    lease_look(&lease, &seen, 0);
    for (int64_t now_ms = 0; now_ms < 300; now_ms += 100)
        lease_asked(&lease, true, now_ms);
    seen.list[0].present = true;
    lease_look(&lease, &seen, 400);
    assert_int_equal(judge(&lease, &seen, 400), LEASE_HELD);
    assert_false(lease.probing);
}

static void what_nobody_owns_is_free_and_what_a_lone_server_has_is_not(void **state UNUSED)
{
    struct engine_membership seen = two_servers(5);
    struct lease lease = {0};

    seen.owner = 0;
    seen.held = false;
    lease_look(&lease, &seen, 0);
    assert_int_equal(judge(&lease, &seen, 0), LEASE_FREE);
    seen.held = true;
    assert_int_equal(judge(&lease, &seen, 0), LEASE_OUTSIDE);
    seen.owner = 99; /* it left, or was forgotten */
    assert_int_equal(judge(&lease, &seen, 0), LEASE_FREE);
    seen.owner = SELF;
    assert_int_equal(judge(&lease, &seen, 0), LEASE_OURS);
}

static void one_that_drains_or_whose_clock_is_off_claims_nothing(void **state UNUSED)
{
    struct engine_membership seen = two_servers(5);
    const char *why;

    assert_true(lease_may_claim(&seen, SELF, 1000, &why));
    seen.offset_ms = -1500;
    seen.trip_ms = 600; /* it may be off by 900 ms alone */
    assert_true(lease_may_claim(&seen, SELF, 1000, &why));
    seen.trip_ms = 10;
    assert_false(lease_may_claim(&seen, SELF, 1000, &why));
    assert_string_equal(why, "its clock is off");
    seen.offset_ms = 0;
    seen.list[1].draining = true;
    assert_false(lease_may_claim(&seen, SELF, 1000, &why));
    assert_string_equal(why, "it drains");
    assert_false(lease_may_claim(&seen, 1000, 1000, &why));
}

/* Random worlds: of all that judge by their own clocks, nobody ends the lease of an owner whose
 * beat they have seen change within it. */
static void no_judge_ends_a_lease_that_was_renewed_within_it(void **state UNUSED)
{
    uint64_t random = 88172645463325252ULL;

    for (int world = 0; world < 2000; world++) {
        struct lease lease = {0};
        uint64_t beat = 1;
        int64_t now_ms = 0, renewed_ms = 0;

        for (int step = 0; step < 40; step++) {
            struct engine_membership seen;

            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            now_ms += (int64_t)(random % 1500);
            if (random >> 32 & 1) {
                beat++;
                renewed_ms = now_ms;
            }
            seen = two_servers(beat);
            lease_look(&lease, &seen, now_ms);
            if (judge(&lease, &seen, now_ms) == LEASE_ENDED)
                assert_true(now_ms - renewed_ms >= LEASE_MS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_that_beats_keeps_its_lease),
        cmocka_unit_test(an_owner_that_stands_still_loses_it_behind_the_lease_and_not_before),
        cmocka_unit_test(nobody_is_judged_by_who_could_not_beat_itself),
        cmocka_unit_test(a_beat_in_the_last_moment_begins_the_lease_anew),
        cmocka_unit_test(a_killed_process_is_known_by_its_sessions_and_its_address),
        cmocka_unit_test(one_that_answers_at_its_address_is_not_held_dead_before_its_lease),
        cmocka_unit_test(sessions_that_come_back_forget_the_refusals),
        cmocka_unit_test(what_nobody_owns_is_free_and_what_a_lone_server_has_is_not),
        cmocka_unit_test(one_that_drains_or_whose_clock_is_off_claims_nothing),
        cmocka_unit_test(no_judge_ends_a_lease_that_was_renewed_within_it),
    };

    return cmocka_run_group_tests_name("server/lease", tests, NULL, NULL);
}
