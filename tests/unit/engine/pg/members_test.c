/* Servers that share a node: who may write, whatever the others believe. */
#include "engine/members.h"
#include "support/check.h"
#include "support/postgres.h"

static struct postgres *server;

/* A server of several, as far as the node knows it. */
struct one {
    struct engine_members *members;
    struct engine_claim claim;
    struct engine *engine;
};

static char url[256];

static void one_join(struct one *one, const char *name)
{
    struct engine_member self = {.address = "127.0.0.1:1"};
    struct error err;

    snprintf(self.name, sizeof self.name, "%s", name);
    assert_ok(
        engine_members_open(slice_of_text(url),
                            &(struct engine_members_options){.connect_ms_max = 5000, .self = &self},
                            &one->members, &err),
        &err);
}

static struct engine_membership one_beat(struct one *one)
{
    struct engine_membership seen;
    struct error err;

    assert_ok(engine_members_beat(one->members, &seen, &err), &err);
    return seen;
}

static bool one_open(struct one *one, struct error *err)
{
    return engine_open(slice_of_text(url),
                       &(struct engine_options){.connect_ms_max = 5000, .claim = one->claim},
                       &one->engine, err);
}

static void one_claim(struct one *one)
{
    struct engine_membership seen = one_beat(one);
    struct error err;

    assert_ok(engine_members_claim(one->members, &seen, &one->claim, &err), &err);
}

static void one_leave(struct one *one)
{
    engine_close(one->engine);
    engine_members_close(one->members);
}

static bool put(struct one *one, const char *key, struct error *err)
{
    struct engine_op op = {ENGINE_PUT, slice_of_text(key), SLICE("v")};
    struct engine_section section = {1, 1, &op, 1, false};

    return engine_write(one->engine, &section, 1, err);
}

static bool has(struct one *one, const char *key)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;
    struct error err;

    assert_ok(
        engine_get(one->engine, NULL, 1, slice_of_text(key), ENGINE_READ_ANY, arena, &value, &err),
        &err);
    return value.found == ENGINE_FOUND;
}

static int setup(void **state UNUSED)
{
    snprintf(url, sizeof url, "%s", postgres_fresh_url(server));
    return 0;
}

static void the_first_claims_and_the_second_is_told_who_owns(void **state UNUSED)
{
    struct one a = {0}, b = {0};
    struct engine_membership seen;
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    assert_ok(one_open(&a, &err), &err);
    one_join(&b, "b");
    seen = one_beat(&b);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.owner, engine_members_incarnation(a.members));
    assert_true(seen.held);
    assert_true(engine_membership_named(&seen, SLICE("a"))->present);
    assert_int_equal(seen.term, 1);
    one_leave(&b);
    one_leave(&a);
}

static void an_owner_that_was_taken_from_writes_nothing_more(void **state UNUSED)
{
    struct one a = {0}, b = {0};
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    assert_ok(one_open(&a, &err), &err);
    assert_ok(engine_partition_create(a.engine, 1, 1, &err), &err);
    assert_ok(put(&a, "before", &err), &err);
    one_join(&b, "b");
    one_claim(&b); /* a does not beat, so it is as b has seen it */
    assert_fails(put(&a, "between", &err), &err, ERROR_STORE_IN_USE);
    assert_ok(one_open(&b, &err), &err);
    assert_ok(put(&b, "after", &err), &err);
    assert_fails(put(&a, "late", &err), &err, ERROR_STORE_IN_USE);
    assert_true(has(&b, "before") && has(&b, "after"));
    assert_false(has(&b, "between") || has(&b, "late"));
    one_leave(&a);
    one_leave(&b);
}

static void one_follow(struct one *one)
{
    struct error err;

    assert_ok(engine_open(slice_of_text(url),
                          &(struct engine_options){.connect_ms_max = 5000, .follower = true},
                          &one->engine, &err),
              &err);
}

/* The epoch that is read with a key, and whether the key is there. */
static uint64_t proved(struct one *one, const char *key, bool *ret_found)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_proof proof;
    struct engine_value value;
    struct error err;

    assert_ok(engine_prove(one->engine, NULL, 1, SLICE("m"), slice_of_text(key), arena, &proof,
                           &value, &err),
              &err);
    assert_false(proof.standby);
    *ret_found = value.found == ENGINE_FOUND;
    return proof.epoch;
}

static void a_follower_reads_with_proof_beside_the_owner_and_writes_nothing(void **state UNUSED)
{
    struct one a = {0}, b = {0};
    struct engine_partition *partitions;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct error err;
    size_t count;
    bool found;

    one_join(&a, "a");
    one_claim(&a);
    assert_ok(one_open(&a, &err), &err);
    assert_ok(engine_partition_create(a.engine, 1, 1, &err), &err);
    one_follow(&b);
    assert_string_equal(engine_node_id(b.engine), engine_node_id(a.engine));
    assert_int_equal(proved(&b, "k", &found), 1);
    assert_false(found);
    assert_ok(put(&a, "k", &err), &err);
    assert_int_equal(proved(&b, "k", &found), 1);
    assert_true(found);
    assert_ok(engine_partition_fence(a.engine, 1, 2, &err), &err);
    assert_int_equal(proved(&b, "k", &found), 2);

    assert_fails(put(&b, "late", &err), &err, ERROR_STORE_IN_USE);
    assert_fails(engine_partition_create(b.engine, 2, 1, &err), &err, ERROR_STORE_IN_USE);
    assert_fails(engine_partition_fence(b.engine, 1, 3, &err), &err, ERROR_STORE_IN_USE);
    assert_fails(engine_partition_drop(b.engine, 1, &err), &err, ERROR_STORE_IN_USE);
    assert_fails(engine_cluster_join(b.engine, SLICE("c"), &err), &err, ERROR_STORE_IN_USE);
    assert_ok(engine_partition_list(b.engine, arena, &partitions, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_ok(engine_ping(b.engine, 5000, &err), &err);
    engine_close(b.engine);
    one_leave(&a);
}

/* What is dropped may still have its table: the proof says that it is none. */
static void a_follower_does_not_prove_what_was_dropped(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct one a = {0}, b = {0};
    struct engine_snapshot *snapshot;
    struct engine_proof proof;
    struct engine_value value;
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    assert_ok(one_open(&a, &err), &err);
    assert_ok(engine_partition_create(a.engine, 1, 1, &err), &err);
    one_follow(&b);
    assert_ok(engine_snapshot_new(b.engine, &snapshot, &err),
              &err); /* holds the table, if it is used */
    assert_ok(
        engine_prove(b.engine, snapshot, 1, SLICE("m"), SLICE("k"), arena, &proof, &value, &err),
        &err);
    assert_ok(engine_partition_drop(a.engine, 1, &err), &err);
    if (engine_prove(b.engine, NULL, 1, SLICE("m"), SLICE("k"), arena, &proof, &value, &err))
        assert_int_equal(proof.epoch, 0);
    else
        assert_int_equal(err.code, ERROR_PARTITION_UNKNOWN);
    engine_snapshot_free(snapshot);
    engine_close(b.engine);
    one_leave(&a);
}

/* What the test above sees is the fence, and would see that it is missing. */
static void without_the_epoch_the_old_owner_would_write(void **state UNUSED)
{
    struct one a = {0}, b = {0};
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    assert_ok(one_open(&a, &err), &err);
    assert_ok(engine_partition_create(a.engine, 1, 1, &err), &err);
    one_join(&b, "b");
    one_claim(&b);
    postgres_query(server, "UPDATE orrery.owner SET epoch = epoch - 1");
    assert_ok(put(&a, "late", &err), &err);
    assert_true(has(&a, "late"));
    one_leave(&a);
    one_leave(&b);
}

static void one_of_an_earlier_term_cannot_take_a_node_back(void **state UNUSED)
{
    struct one a = {0}, b = {0};
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    assert_ok(one_open(&a, &err), &err);
    one_join(&b, "b");
    one_claim(&b);
    assert_ok(one_open(&b, &err), &err);
    engine_close(a.engine);
    a.engine = NULL;
    assert_fails(one_open(&a, &err), &err, ERROR_STORE_IN_USE);
    assert_ok(engine_partition_create(b.engine, 1, 1, &err), &err);
    assert_ok(put(&b, "k", &err), &err);
    /* of the same term it is the same server, whose guard opens anew what it has let go of */
    engine_close(b.engine);
    assert_ok(one_open(&b, &err), &err);
    assert_ok(put(&b, "again", &err), &err);
    one_leave(&a);
    one_leave(&b);
}

static void of_two_that_claim_what_they_both_saw_one_wins(void **state UNUSED)
{
    struct one a = {0}, b = {0}, c = {0};
    struct engine_membership by_b, by_c;
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    one_join(&b, "b");
    one_join(&c, "c");
    by_b = one_beat(&b);
    by_c = one_beat(&c);
    assert_ok(engine_members_claim(b.members, &by_b, &b.claim, &err), &err);
    assert_fails(engine_members_claim(c.members, &by_c, &c.claim, &err), &err, ERROR_CONFLICT);
    assert_int_equal(one_beat(&c).owner, engine_members_incarnation(b.members));
    one_leave(&a);
    one_leave(&b);
    one_leave(&c);
}

static void one_that_beats_is_not_taken_from(void **state UNUSED)
{
    struct one a = {0}, b = {0};
    struct engine_membership seen;
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    one_join(&b, "b");
    seen = one_beat(&b);
    (void)one_beat(&a);
    assert_fails(engine_members_claim(b.members, &seen, &b.claim, &err), &err, ERROR_CONFLICT);
    one_leave(&a);
    one_leave(&b);
}

static void what_was_released_is_free_at_once(void **state UNUSED)
{
    struct one a = {0}, b = {0};
    struct engine_membership seen;
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    one_join(&b, "b");
    assert_ok(engine_members_release(a.members, &err), &err);
    seen = one_beat(&b);
    assert_int_equal(seen.owner, 0);
    assert_false(seen.held);
    one_leave(&a);
    assert_int_equal(one_beat(&b).count, 1);
    one_leave(&b);
}

static void a_second_of_the_same_name_is_refused_while_the_first_runs(void **state UNUSED)
{
    struct engine_member self = {.name = "a", .address = "127.0.0.1:2"};
    struct engine_members_options options = {.connect_ms_max = 5000, .self = &self};
    struct engine_members *other = NULL;
    struct one a = {0};
    struct error err;

    one_join(&a, "a");
    assert_fails(engine_members_open(slice_of_text(url), &options, &other, &err), &err,
                 ERROR_STORE_IN_USE);
    one_leave(&a);
    assert_ok(engine_members_open(slice_of_text(url), &options, &other, &err), &err);
    engine_members_close(other);
}

static void one_alone_and_several_keep_out_of_each_others_way(void **state UNUSED)
{
    struct engine *alone = NULL;
    struct one a = {0};
    struct error err;

    assert_ok(engine_open(slice_of_text(url), &(struct engine_options){.connect_ms_max = 5000},
                          &alone, &err),
              &err);
    {
        struct engine_member self = {.name = "a", .address = "127.0.0.1:1"};

        assert_fails(engine_members_open(
                         slice_of_text(url),
                         &(struct engine_members_options){.connect_ms_max = 5000, .self = &self},
                         &a.members, &err),
                     &err, ERROR_STORE_IN_USE);
    }
    engine_close(alone);
    one_join(&a, "a");
    alone = NULL;
    assert_fails(engine_open(slice_of_text(url), &(struct engine_options){.connect_ms_max = 5000},
                             &alone, &err),
                 &err, ERROR_STORE_IN_USE);
    one_leave(&a);
    /* a node that was shared is opened by one alone when nobody else is there */
    assert_ok(engine_open(slice_of_text(url), &(struct engine_options){.connect_ms_max = 5000},
                          &alone, &err),
              &err);
    one_join(&a, "a");
    assert_int_equal(one_beat(&a).owner, 0);
    assert_true(one_beat(&a).held);
    engine_close(alone);
    one_leave(&a);
}

static void draining_is_said_of_the_name_and_outlives_a_start(void **state UNUSED)
{
    struct one a = {0}, b = {0};
    struct engine_membership seen;
    struct error err;

    one_join(&a, "a");
    one_join(&b, "b");
    assert_ok(engine_members_drain(b.members, SLICE("a"), true, &err), &err);
    assert_fails(engine_members_drain(b.members, SLICE("x"), true, &err), &err, ERROR_NOT_FOUND);
    assert_fails(engine_members_forget(b.members, SLICE("a"), &err), &err, ERROR_BAD_REQUEST);
    one_leave(&a);
    one_join(&a, "a");
    seen = one_beat(&b);
    assert_true(engine_membership_named(&seen, SLICE("a"))->draining);
    assert_ok(engine_members_drain(a.members, SLICE("a"), false, &err), &err);
    one_leave(&a);
    one_leave(&b);
}

/* The owner dies in a failover to a standby that lagged: who takes over has seen more than is
 * there. */
static void
a_loss_that_the_owner_did_not_live_to_see_is_found_by_who_takes_over(void **state UNUSED)
{
    struct one a = {0}, b = {0}, c = {0};
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    assert_ok(one_open(&a, &err), &err);
    assert_ok(engine_partition_create(a.engine, 1, 1, &err), &err);
    one_join(&b, "b");
    one_join(&c, "c");
    assert_ok(put(&a, "1", &err), &err);
    assert_ok(put(&a, "2", &err), &err);
    assert_ok(put(&a, "3", &err), &err);
    (void)one_beat(&b);
    (void)one_beat(&c);
    postgres_query(server, "UPDATE orrery.owner SET sequence = sequence - 2");
    one_claim(&b);
    assert_fails(one_open(&b, &err), &err, ERROR_STORE_LOST);
    assert_true(strstr(err.message, "1 transactions that were acknowledged"));
    postgres_query(server, "UPDATE orrery.loss SET accepted = now()");
    assert_ok(one_open(&b, &err), &err);
    assert_ok(put(&b, "4", &err), &err);
    /* what was accepted is not found again by one that remembers the time before */
    (void)one_beat(&c);
    one_claim(&c);
    assert_ok(one_open(&c, &err), &err);
    one_leave(&a);
    one_leave(&b);
    one_leave(&c);
}

static void the_last_transaction_that_was_seen_may_never_have_been_acknowledged(void **state UNUSED)
{
    struct one a = {0}, b = {0};
    struct error err;

    one_join(&a, "a");
    one_claim(&a);
    assert_ok(one_open(&a, &err), &err);
    assert_ok(engine_partition_create(a.engine, 1, 1, &err), &err);
    one_join(&b, "b");
    (void)one_beat(&b);
    postgres_query(server, "UPDATE orrery.owner SET sequence = sequence - 1");
    one_claim(&b);
    assert_ok(one_open(&b, &err), &err);
    one_leave(&a);
    one_leave(&b);
}

static void a_store_of_one_process_has_no_members(void **state UNUSED)
{
    struct engine_member self = {.name = "a"};
    struct engine_members *members = NULL;
    struct error err;

    assert_fails(engine_members_open(SLICE("memory:"),
                                     &(struct engine_members_options){.self = &self}, &members,
                                     &err),
                 &err, ERROR_NOT_SUPPORTED);
    assert_false(engine_is_shareable(SLICE("rocksdb:/somewhere")));
    assert_true(engine_is_shareable(SLICE("postgres://h/d")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_claims_and_the_second_is_told_who_owns, setup),
        cmocka_unit_test_setup(an_owner_that_was_taken_from_writes_nothing_more, setup),
        cmocka_unit_test_setup(without_the_epoch_the_old_owner_would_write, setup),
        cmocka_unit_test_setup(a_follower_reads_with_proof_beside_the_owner_and_writes_nothing,
                               setup),
        cmocka_unit_test_setup(a_follower_does_not_prove_what_was_dropped, setup),
        cmocka_unit_test_setup(one_of_an_earlier_term_cannot_take_a_node_back, setup),
        cmocka_unit_test_setup(of_two_that_claim_what_they_both_saw_one_wins, setup),
        cmocka_unit_test_setup(one_that_beats_is_not_taken_from, setup),
        cmocka_unit_test_setup(what_was_released_is_free_at_once, setup),
        cmocka_unit_test_setup(a_second_of_the_same_name_is_refused_while_the_first_runs, setup),
        cmocka_unit_test_setup(one_alone_and_several_keep_out_of_each_others_way, setup),
        cmocka_unit_test_setup(draining_is_said_of_the_name_and_outlives_a_start, setup),
        cmocka_unit_test_setup(a_loss_that_the_owner_did_not_live_to_see_is_found_by_who_takes_over,
                               setup),
        cmocka_unit_test_setup(the_last_transaction_that_was_seen_may_never_have_been_acknowledged,
                               setup),
        cmocka_unit_test(a_store_of_one_process_has_no_members),
    };
    int failed;

    server = postgres_start(false);
    failed = cmocka_run_group_tests_name("engine/pg/members", tests, NULL, NULL);
    postgres_free(server);
    return failed;
}
