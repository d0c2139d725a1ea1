/* Keys with containers of their own, there and back, with writers in between, and cut off at every
 * write. Container "c" is the origin (migrator_fixture.h: ten items of each key k0, k1, ...), "own"
 * the container of k1. */
#include "migrator_fixture.h"

#include "catalogue/caretaker.h"
#include "catalogue/promotion.h"
#include "item/feed_read.h"
#include "load/offer_meters.h"

#define OWN                                                                                        \
    "{\"id\":\"own\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"                        \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/email\"]}]},\"defaultTtl\":-1}"

static struct container *named(struct fixture *fixture, const char *id)
{
    struct container *container;
    struct error err;

    assert_ok(catalogue_container_open(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                       slice_of_text(id), &container, &err),
              &err);
    return container;
}

static bool promote_try(struct fixture *fixture, const char *json, struct error *err)
{
    CLEANUP(container_unref) struct container *origin = opened(fixture);
    CLEANUP(container_unref) struct container *own = named(fixture, "own");
    struct partition_key key = key_named(fixture, json);

    return migrator_promote(fixture->migrator, origin, own, &key, err);
}

static const struct promotion *tie(const struct container *container)
{
    return container_promotions(container)->count ? container_promotions(container)->list[0] : NULL;
}

static bool is_preparing(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);

    return tie(container) && tie(container)->state == PROMOTION_PREPARING;
}

/* Until nothing is prepared or moved any more, and what was left behind is swept. */
static void promotion_settle(struct fixture *fixture)
{
    struct error err;
    bool busy;

    for (int i = 0; i < 10000 && (is_moving(fixture) || is_preparing(fixture)); i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_false(is_preparing(fixture));
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
}

static void promote(struct fixture *fixture)
{
    struct error err;

    assert_ok(promote_try(fixture, "[\"k1\"]", &err), &err);
    promotion_settle(fixture);
}

typedef bool tie_change(struct migrator *migrator, const struct container *tied,
                        const struct promotion *promotion, struct error *err);

static bool change_try(struct fixture *fixture, tie_change *change, struct error *err)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);

    assert_non_null(tie(container));
    return change(fixture->migrator, container, tie(container), err);
}

static void change(struct fixture *fixture, tie_change *what)
{
    struct error err;
    bool busy;

    assert_ok(change_try(fixture, what, &err), &err);
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
}

static bool put_in(struct fixture *fixture, const char *id, int i, const char *word,
                   struct error *err)
{
    CLEANUP(container_unref) struct container *container = named(fixture, id);
    struct transaction_result result;

    return item_put(fixture, container, i, word, &result, err);
}

static bool read_in(struct fixture *fixture, const char *id, int i, struct slice *ret_word,
                    struct error *err)
{
    CLEANUP(container_unref) struct container *container = named(fixture, id);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    struct item_operation read = {
        .space = &space,
        .arena = fixture->arena,
        .verb = ITEM_READ,
        .key = key_named(
            fixture, arena_text(fixture->arena, arena_printf(fixture->arena, "[\"k%d\"]", i / 10))),
        .id = document_string(arena_printf(fixture->arena, "%d", i)),
    };
    struct document_value value;

    if (!item_operation_run(&read, err))
        return false;
    assert_true(document_find(read.result.item.document, SLICE("w"), &value));
    *ret_word = value.text;
    return true;
}

static void expect_in(struct fixture *fixture, const char *id, int i, const char *word)
{
    struct slice got;
    struct error err;

    assert_ok(read_in(fixture, id, i, &got, &err), &err);
    assert_true(slice_equal(got, slice_of_text(word)));
}

static void refused_in(struct fixture *fixture, const char *id, int i)
{
    struct slice got;
    struct error err;

    assert_fails(read_in(fixture, id, i, &got, &err), &err, ERROR_KEY_ELSEWHERE);
    assert_fails(put_in(fixture, id, i, "x", &err), &err, ERROR_KEY_ELSEWHERE);
}

/* All that is stored agrees with itself, under either name, and nothing else is. */
static void verify_both(struct fixture *fixture, size_t in_origin, size_t in_own)
{
    CLEANUP(container_unref) struct container *origin = opened(fixture);
    CLEANUP(container_unref) struct container *own = named(fixture, "own");
    struct container *both[] = {origin, own};

    assert_int_equal(verify_container(origin), in_origin);
    assert_int_equal(verify_container(own), in_own);
    verify_no_others(fixture->cluster, both, 2);
}

static void both_make(struct fixture *fixture)
{
    container_make(fixture, BODY, 20000);
    container_make(fixture, OWN, 400);
    items_put(fixture, 0, 30, "a");
}

static void a_promoted_key_is_one_set_of_items_under_two_names(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    both_make(fixture);
    promote(fixture);
    verify_both(fixture, 30, 10);
    assert_ok(put_in(fixture, "c", 11, "by origin", &err), &err);
    assert_ok(put_in(fixture, "own", 12, "by own", &err), &err);
    expect_in(fixture, "own", 11, "by origin");
    expect_in(fixture, "c", 12, "by own");
    expect_in(fixture, "c", 5, "a");
    refused_in(fixture, "own", 5); /* it is the key's alone */
    verify_both(fixture, 30, 10);
}

static void behind_the_end_the_origin_refuses_the_key_until_it_is_demoted(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    both_make(fixture);
    promote(fixture);
    change(fixture, migrator_promotion_end);
    verify_both(fixture, 20, 10);
    refused_in(fixture, "c", 11);
    assert_ok(put_in(fixture, "own", 11, "b", &err), &err);
    restart(fixture);
    refused_in(fixture, "c", 11);
    expect_in(fixture, "own", 11, "b");

    change(fixture, migrator_demote);
    verify_both(fixture, 30, 10);
    expect_in(fixture, "c", 11, "b");
    assert_ok(put_in(fixture, "own", 12, "c", &err), &err); /* the grace of the way back */
    expect_in(fixture, "c", 12, "c");

    change(fixture, migrator_promotion_end);
    verify_both(fixture, 30, 0);
    refused_in(fixture, "own", 11);
    assert_ok(put_in(fixture, "own", 5, "another", &err), &err);
    expect_in(fixture, "c", 5, "a");
}

static void a_key_goes_to_and_fro(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    both_make(fixture);
    for (int i = 0; i < 3; i++) {
        promote(fixture);
        if (i)
            change(fixture, migrator_promotion_end);
        assert_ok(put_in(fixture, "own", 13, "there", &err), &err);
        change(fixture, migrator_demote);
        expect_in(fixture, "c", 13, "there");
        if (i == 1)
            change(fixture, migrator_promotion_end);
        assert_ok(put_in(fixture, "c", 13, "here", &err), &err);
        verify_both(fixture, 30, i == 1 ? 0 : 10);
        restart(fixture);
    }
    change(fixture, migrator_promotion_end);
    change(fixture, migrator_promotion_forget);
    verify_both(fixture, 30, 0);
    assert_ok(put_in(fixture, "own", 13, "its own", &err), &err);
    expect_in(fixture, "c", 13, "here");
}

/* Whoever holds a state from before goes on with the items, wherever they are called at home. */
static void requests_that_began_before_reach_the_items(void **state)
{
    struct fixture *fixture = *state;
    struct container *before;
    struct transaction_result result;
    struct error err;
    uint32_t partition;
    bool busy;

    both_make(fixture);
    promote(fixture);
    before = opened(fixture);
    partition = tie(before)->partition;
    change(fixture, migrator_promotion_end);
    assert_ok(item_put(fixture, before, 11, "late", &result, &err), &err);
    expect_in(fixture, "own", 11, "late");
    {
        /* the partition stays while they hold it */
        CLEANUP(container_unref) struct container *own = named(fixture, "own");

        assert_fails(migrator_move(fixture->migrator, own, partition, 1, &err), &err, ERROR_BUSY);
        assert_fails(change_try(fixture, migrator_promotion_forget, &err), &err, ERROR_BUSY);
        container_unref(before);
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
        assert_ok(migrator_split(fixture->migrator, own, partition, 2, NULL, &err), &err);
    }
    for (int i = 0; i < 1000; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    verify_both(fixture, 20, 10);
    assert_fails(change_try(fixture, migrator_demote, &err), &err, ERROR_PROMOTION_UNFIT);
    change(fixture, migrator_promotion_forget);
    items_put(fixture, 10, 20, "second");
    expect_in(fixture, "own", 11, "late");
    verify_both(fixture, 30, 10);
}

/* A container is not taken for unused while somebody may be writing to it. doubtful: what became of
 * the commit that tied it was not known for a while. */
static void writer_is_seen(struct fixture *fixture, bool doubtful)
{
    struct container *before;
    struct transaction_result result;
    struct error err;
    bool busy;

    both_make(fixture);
    before = named(fixture, "own");
    if (doubtful) {
        fault_engine_fail_nth(fixture->engines[0], FAULT_WRITES, 1, ERROR_STORE_IO, FAULT_WRITTEN);
        assert_fails(promote_try(fixture, "[\"k1\"]", &err), &err, ERROR_STORE_IO);
        fault_engine_heal(fixture->engines[0]);
        assert_fails(promote_try(fixture, "[\"k1\"]", &err), &err, ERROR_PROMOTION_BOUND);
    } else {
        assert_ok(promote_try(fixture, "[\"k1\"]", &err), &err);
    }
    for (int i = 0; i < 500; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_true(is_preparing(fixture));
    refused_in(fixture, "own", 11); /* not yet */
    assert_ok(item_put(fixture, before, 50, "late", &result, &err), &err);
    container_unref(before);
    for (int i = 0; i < 500; i++)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_true(is_preparing(fixture));
    {
        CLEANUP(container_unref) struct container *origin = opened(fixture);

        assert_true(
            migrator_promotion_obstacle(fixture->migrator, tie(origin), fixture->arena).len);
    }
    change(fixture, migrator_promotion_forget);
    expect_in(fixture, "own", 50, "late");
    verify_both(fixture, 30, 1);
}

static void a_writer_of_the_own_container_is_not_overlooked(void **state)
{
    writer_is_seen(*state, false);
}

static void nor_where_the_commit_was_in_doubt(void **state)
{
    writer_is_seen(*state, true);
}

static bool replace_try(struct fixture *fixture, const char *id, const char *body,
                        struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;

    return catalogue_container_replace(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                       slice_of_text(id), document_of(fixture->arena, body),
                                       SLICE_NONE, &container, err);
}

#define WITH_POLICY(id)                                                                            \
    "{\"id\":\"" id "\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},"                     \
    "\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/email\"]}]},\"defaultTtl\":-1,"           \
    "\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/x/?\"}],"                                 \
    "\"excludedPaths\":[{\"path\":\"/*\"}]}}"

static void what_would_part_the_two_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    both_make(fixture);
    promote(fixture);
    assert_fails(replace_try(fixture, "c", WITH_POLICY("c"), &err), &err, ERROR_PROMOTION_BOUND);
    assert_fails(replace_try(fixture, "own", WITH_POLICY("own"), &err), &err,
                 ERROR_PROMOTION_BOUND);
    assert_fails(catalogue_container_drop(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                          SLICE("own"), SLICE_NONE, &err),
                 &err, ERROR_PROMOTION_BOUND);
    {
        CLEANUP(container_unref) struct container *origin = opened(fixture);
        CLEANUP(container_unref) struct container *own = named(fixture, "own");
        struct definition_rekey rekey = {
            .partition_key = document_of(fixture->arena, "{\"paths\":[\"/w\"],\"version\":2}")};

        assert_fails(migrator_split(fixture->migrator, own, tie(own)->partition, 2, NULL, &err),
                     &err, ERROR_PROMOTION_BOUND);
        assert_fails(migrator_move(fixture->migrator, origin, tie(origin)->partition, 1, &err),
                     &err, ERROR_PROMOTION_BOUND);
        assert_fails(migrator_rekey(fixture->migrator, origin, &rekey, false, &err), &err,
                     ERROR_PROMOTION_BOUND);
    }
    assert_fails(change_try(fixture, migrator_promotion_forget, &err), &err, ERROR_PROMOTION_BOUND);
    assert_fails(promote_try(fixture, "[\"k2\"]", &err), &err, ERROR_PROMOTION_BOUND);
    assert_fails(promote_try(fixture, "[\"k1\"]", &err), &err, ERROR_PROMOTION_BOUND);
    verify_both(fixture, 30, 10);
}

static void unfit_containers_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    container_make(fixture, BODY, 20000);
    items_put(fixture, 0, 30, "a");
    container_make(fixture, WITH_POLICY("own"), 400);
    assert_fails(promote_try(fixture, "[\"k1\"]", &err), &err, ERROR_PROMOTION_UNFIT);
    assert_ok(replace_try(fixture, "own", OWN, &err), &err);
    assert_fails(promote_try(fixture, "[\"k1\"]", &err), &err, ERROR_PROMOTION_UNFIT);
}

static void a_used_container_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    both_make(fixture);
    assert_ok(put_in(fixture, "own", 1, "x", &err), &err);
    assert_fails(promote_try(fixture, "[\"k1\"]", &err), &err, ERROR_PROMOTION_UNFIT);
}

/* Apart, either may count its policies by itself; together again they are of one count. */
static void policies_changed_apart_are_joined_on_the_way_back(void **state)
{
    struct fixture *fixture = *state;
    struct caretaker *caretaker;
    struct error err;
    size_t done;

    both_make(fixture);
    promote(fixture);
    change(fixture, migrator_promotion_end);
    assert_ok(replace_try(fixture, "own", WITH_POLICY("own"), &err), &err);
    assert_fails(change_try(fixture, migrator_demote, &err), &err, ERROR_PROMOTION_UNFIT);
    assert_ok(replace_try(fixture, "own", OWN, &err), &err);
    assert_fails(change_try(fixture, migrator_demote, &err), &err, ERROR_PROMOTION_UNFIT);
    caretaker = caretaker_new(
        &(struct caretaker_options){.catalogue = fixture->catalogue, .by_hand = true});
    for (int i = 0; i < 5; i++)
        assert_ok(caretaker_round(caretaker, &done, &err), &err);
    change(fixture, migrator_demote);
    expect_in(fixture, "c", 11, "a");
    for (int i = 0; i < 5; i++)
        assert_ok(caretaker_round(caretaker, &done, &err), &err);
    caretaker_free(caretaker);
    verify_both(fixture, 30, 10);
    {
        CLEANUP(container_unref) struct container *origin = opened(fixture);
        struct definition *const *before;

        assert_int_equal(container_policy_version(origin), 3);
        assert_int_equal(container_policies_before(origin, &before), 0);
    }
}

/* Behind the end the own container may go, and the items with it. */
static void a_dropped_own_container_is_forgotten(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    both_make(fixture);
    promote(fixture);
    change(fixture, migrator_promotion_end);
    assert_ok(catalogue_container_drop(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                       SLICE("own"), SLICE_NONE, &err),
              &err);
    assert_ok(catalogue_purge(fixture->catalogue, &err), &err);
    refused_in(fixture, "c", 11);
    assert_fails(change_try(fixture, migrator_demote, &err), &err, ERROR_NOT_FOUND);
    change(fixture, migrator_promotion_forget);
    items_put(fixture, 10, 20, "new");
    expect_in(fixture, "c", 11, "new");
    verify(fixture, 30);
}

static void the_database_of_both_may_be_dropped(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    both_make(fixture);
    promote(fixture);
    assert_ok(
        catalogue_database_drop(fixture->catalogue, SLICE("acme"), SLICE("shop"), SLICE_NONE, &err),
        &err);
    assert_ok(catalogue_purge(fixture->catalogue, &err), &err);
    verify_no_others(fixture->cluster, NULL, 0);
}

static struct feed_page changes(struct fixture *fixture, const char *id, size_t index,
                                uint64_t after)
{
    CLEANUP(container_unref) struct container *container = named(fixture, id);
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    size_t count;
    const struct partition_span *spans = partition_map_spans(space.map, &count);
    struct item_scope scope = item_space_span_scope(&space, &spans[index]);
    struct feed_page page;
    struct error err;

    assert_ok(
        feed_read(&scope, &(struct feed_request){.after_lsn = after}, fixture->arena, &page, &err),
        &err);
    return page;
}

/* The partition that closes the grace period goes on with the numbers of the one it replaces, so
 * that no position and no session token is ahead of it. */
static void positions_of_feeds_stay_good(void **state)
{
    struct fixture *fixture = *state;
    struct feed_page page;
    struct error err;
    uint64_t position;

    both_make(fixture);
    promote(fixture);
    page = changes(fixture, "own", 0, 0);
    assert_int_equal(page.count, 10);
    position = page.lsn;
    assert_ok(put_in(fixture, "c", 11, "b", &err), &err);
    assert_int_equal(changes(fixture, "own", 0, position).count, 1);
    position = changes(fixture, "own", 0, position).lsn;

    change(fixture, migrator_demote);
    change(fixture, migrator_promotion_end);
    restart(fixture);
    assert_int_equal(changes(fixture, "own", 0, position).count, 0);
    assert_true(changes(fixture, "own", 0, position).lsn >= position);
    assert_ok(put_in(fixture, "own", 5, "new", &err), &err);
    assert_int_equal(changes(fixture, "own", 0, position).count, 1);
}

/* --- Cut off --------------------------------------------------------------------------------- */

/* One step of the way there and back, tried until it is done, however often its writes fail. */
static const struct step {
    tie_change *change; /* NULL: promote */
    size_t in_origin, in_own;
} steps[] = {
    {NULL, 30, 10},
    {migrator_promotion_end, 20, 10},
    {migrator_demote, 30, 10},
    {migrator_promotion_end, 30, 0},
    {NULL, 30, 10},
    {migrator_demote, 30, 10},
};

static bool is_done(struct fixture *fixture, size_t step)
{
    static const struct {
        enum promotion_state state;
        bool grace;
    } after[] = {{PROMOTION_OUT, true},   {PROMOTION_OUT, false}, {PROMOTION_BACK, true},
                 {PROMOTION_BACK, false}, {PROMOTION_OUT, true},  {PROMOTION_BACK, true}};
    CLEANUP(container_unref) struct container *origin = opened(fixture);

    return tie(origin) && tie(origin)->state == after[step].state &&
           tie(origin)->grace == after[step].grace;
}

static void step_try(struct fixture *fixture, size_t step)
{
    struct error err;
    bool busy;

    if (is_done(fixture, step))
        return;
    if (steps[step].change)
        (void)!change_try(fixture, steps[step].change, &err);
    else if (!is_preparing(fixture))
        (void)!promote_try(fixture, "[\"k1\"]", &err);
    for (int i = 0; i < 300 && (is_moving(fixture) || is_preparing(fixture)); i++)
        if (!migrator_round(fixture->migrator, &busy, &err))
            return;
}

static bool steps_cut_off(struct fixture *fixture, struct engine *engine, unsigned nth,
                          enum fault_outcome outcome)
{
    bool failed = false;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        unsigned before = fault_engine_count(engine, FAULT_WRITES);
        bool busy;

        fault_engine_fail_nth(engine, FAULT_WRITES, nth, ERROR_STORE_IO, outcome);
        step_try(fixture, i);
        failed = failed || fault_engine_count(engine, FAULT_WRITES) - before >= nth;
        fault_engine_fail_nth(engine, FAULT_WRITES, 0, ERROR_NONE, outcome);
        restart(fixture);
        for (int again = 0; again < 5 && !is_done(fixture, i); again++)
            step_try(fixture, i);
        assert_true(is_done(fixture, i));
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
        verify_both(fixture, steps[i].in_origin, steps[i].in_own);
        assert_ok(put_in(fixture, i == 0 || i == 1 || i == 4 ? "own" : "c", 11, "b", &err), &err);
        expect_in(fixture, i == 0 || i == 1 || i == 4 ? "own" : "c", 15, "a");
    }
    /* as it was at first, for the next */
    assert_ok(change_try(fixture, migrator_promotion_end, &err), &err);
    assert_ok(change_try(fixture, migrator_promotion_forget, &err), &err);
    return failed;
}

static void cut_off_at_any_write_nothing_is_lost_or_doubled(void **state)
{
    struct fixture *fixture = *state;
    struct error err;

    both_make(fixture);
    for (int i = 0; i < 4; i++)
        for (unsigned nth = 1; nth < 60; nth++) {
            bool failed = steps_cut_off(fixture, fixture->engines[i / 2], nth,
                                        i % 2 ? FAULT_WRITTEN : FAULT_NOT_WRITTEN);

            assert_ok(catalogue_container_drop(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                               SLICE("own"), SLICE_NONE, &err),
                      &err);
            assert_ok(catalogue_purge(fixture->catalogue, &err), &err);
            container_make(fixture, OWN, 400);
            arena_reset(fixture->arena);
            if (!failed)
                break;
        }
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_promoted_key_is_one_set_of_items_under_two_names),
        STORY(behind_the_end_the_origin_refuses_the_key_until_it_is_demoted),
        STORY(a_key_goes_to_and_fro),
        STORY(requests_that_began_before_reach_the_items),
        STORY(a_writer_of_the_own_container_is_not_overlooked),
        STORY(nor_where_the_commit_was_in_doubt),
        STORY(what_would_part_the_two_is_refused),
        STORY(unfit_containers_are_refused),
        STORY(a_used_container_is_refused),
        STORY(policies_changed_apart_are_joined_on_the_way_back),
        STORY(a_dropped_own_container_is_forgotten),
        STORY(the_database_of_both_may_be_dropped),
        STORY(positions_of_feeds_stay_good),
        STORY(cut_off_at_any_write_nothing_is_lost_or_doubled),
    };

    return cmocka_run_group_tests_name("migration/migrator_promotion", tests, NULL, NULL);
}
