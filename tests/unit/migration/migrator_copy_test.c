/* A container copied as a migration: what the copy is, who notices, and cut off at every write. */
#include "migrator_fixture.h"

static struct container *copy_opened(struct fixture *fixture)
{
    struct container *copy;
    struct error err;

    assert_ok(catalogue_container_open(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                       SLICE("copy"), &copy, &err),
              &err);
    return copy;
}

static void copy_drop(struct fixture *fixture)
{
    struct error err;

    assert_ok(catalogue_container_drop(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                       SLICE("copy"), SLICE_NONE, &err),
              &err);
    assert_ok(catalogue_purge(fixture->catalogue, &err), &err);
}

static void copy_begin(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    CLEANUP(container_unref) struct container *before = NULL;
    struct error err;

    if (catalogue_container_open(fixture->catalogue, SLICE("acme"), SLICE("shop"), SLICE("copy"),
                                 &before, &err)) {
        container_unref(TAKE(before));
        copy_drop(fixture);
    }
    assert_ok(migrator_copy(fixture->migrator, container, SLICE("copy"), &err), &err);
}

static void same(struct fixture *fixture, int from, int to)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    CLEANUP(container_unref) struct container *copy = copy_opened(fixture);

    for (int i = from; i < to; i++) {
        struct item a = item_in(fixture, container, i), b = item_in(fixture, copy, i);
        char before[ITEM_ETAG_LEN], after[ITEM_ETAG_LEN];

        item_etag(&a.header, before);
        item_etag(&b.header, after);
        assert_memory_equal(before, after, ITEM_ETAG_LEN);
        assert_int_equal(a.header.wall_ms, b.header.wall_ms);
        assert_true(slice_equal(a.document, b.document));
    }
}

static void a_copy_is_what_the_container_was_when_it_was_published(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *copy = NULL;
    struct error err;
    size_t spans;
    bool busy;

    container_make(fixture, BODY, 20000);
    items_put(fixture, 0, 60, "a");
    copy_begin(fixture);
    for (int i = 0; is_moving(fixture) && fixture->published == 0; i++) {
        items_put(fixture, i % 20, i % 20 + 1, "b");
        if (i < 5)
            item_delete(fixture, 55 + i);
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    }
    settle(fixture);
    assert_int_equal(fixture->published, 1);
    assert_int_equal(fixture->dropped, 0); /* its partitions are the ones it had */
    assert_int_equal(span_count(fixture), 2);
    same(fixture, 0, 55);
    verify(fixture, 55);
    copy = copy_opened(fixture);
    (void)partition_map_spans(container_map(copy), &spans);
    assert_int_equal(spans, 2);
    assert_int_equal(container_offer(copy)->ru, 20000);
    assert_int_not_equal(container_offer(copy)->number, 0);
}

static void what_is_written_afterwards_is_written_to_one_of_them(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *copy = NULL;
    struct transaction_result result;
    struct document_value word;
    struct error err;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 30, "a");
    copy_begin(fixture);
    settle(fixture);
    items_put(fixture, 0, 10, "b");
    copy = copy_opened(fixture);
    assert_ok(item_put(fixture, copy, 20, "c", &result, &err), &err);
    assert_ok(item_put(fixture, copy, 30, "c", &result, &err), &err);
    item_expect(fixture, 5, "b");
    item_expect(fixture, 20, "a");
    item_expect(fixture, 30, NULL);
    assert_true(document_find(item_in(fixture, copy, 5).document, SLICE("w"), &word));
    assert_slice_equal(word.text, SLICE("a"));
    assert_int_equal(verify_container(copy), 31);
    container_unref(TAKE(copy));

    /* each lives for itself: the first is split, the second dropped */
    split(fixture, 0, 2);
    settle(fixture);
    copy_drop(fixture);
    verify(fixture, 30);
    restart(fixture);
    verify(fixture, 30);
}

/* Between the publishing of a copy and the end of the migration its partitions are its own. */
static void a_copy_outlives_the_container_that_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *left = NULL;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 30, "a");
    copy_begin(fixture);
    while (fixture->published == 0)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_true(is_moving(fixture)); /* it is published, and not yet over */
    assert_ok(catalogue_container_drop(fixture->catalogue, SLICE("acme"), SLICE("shop"), SLICE("c"),
                                       SLICE_NONE, &err),
              &err);
    assert_ok(catalogue_purge(fixture->catalogue, &err), &err);
    restart(fixture);
    left = copy_opened(fixture);
    /* how far copying was still stands there: nobody was left to remove it, and it harms nobody */
    for (int i = 0; i < 30; i++)
        (void)item_in(fixture, left, i);
    verify_no_others(fixture->cluster, &left, 1);
}

static void a_container_outlives_the_copy_that_is_dropped(void **state)
{
    struct fixture *fixture = *state;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 30, "a");
    copy_begin(fixture);
    while (fixture->published == 0)
        assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    assert_true(is_moving(fixture));
    copy_drop(fixture);
    restart(fixture);
    settle(fixture);
    verify(fixture, 30);
}

static void a_copy_that_cannot_be_is_refused_and_nothing_begins(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    CLEANUP(migration_unref) struct migration *plan = NULL;
    struct error err;
    size_t count;

    container_make(fixture, BODY, 20000);
    items_put(fixture, 0, 10, "a");
    container = opened(fixture);
    assert_fails(migrator_copy(fixture->migrator, container, SLICE("c"), &err), &err,
                 ERROR_NAME_TAKEN);
    assert_fails(migrator_copy(fixture->migrator, container, SLICE("a/b"), &err), &err,
                 ERROR_BAD_REQUEST);
    assert_fails(migrator_copy(fixture->migrator, container, SLICE(""), &err), &err,
                 ERROR_BAD_REQUEST);
    assert_ok(migrator_copy_plan(fixture->migrator, container, SLICE("copy"), &plan, &err), &err);
    (void)migration_targets(plan, &count);
    assert_int_equal(count, 2);
    assert_true(slice_equal(migration_copy(plan), SLICE("copy")));
    assert_false(is_moving(fixture));
    fixture->limits.account_resources_max = 2;
    container_unref(TAKE(container));
    restart(fixture);
    container = opened(fixture);
    assert_fails(migrator_copy(fixture->migrator, container, SLICE("copy"), &err), &err,
                 ERROR_LIMIT_REACHED);
    verify(fixture, 10);
}

static void a_copy_taken_back_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP(container_unref) struct container *container = NULL;
    struct error err;
    bool busy;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 30, "a");
    copy_begin(fixture);
    assert_ok(migrator_round(fixture->migrator, &busy, &err), &err);
    container = opened(fixture);
    assert_ok(migrator_cancel(fixture->migrator, container, &err), &err);
    container_unref(TAKE(container));
    settle(fixture);
    items_put(fixture, 0, 30, "b");
    verify(fixture, 30);
    assert_fails(catalogue_container_open(fixture->catalogue, SLICE("acme"), SLICE("shop"),
                                          SLICE("copy"), &container, &err),
                 &err, ERROR_NOT_FOUND);
}

static void a_copy_cut_off_at_any_write_is_taken_up_again(void **state)
{
    container_make(*state, BODY, 400);
    cut_off_everywhere(*state, copy_begin);
}

static void a_copy_of_several_partitions_cut_off_at_any_write_is_taken_up_again(void **state)
{
    container_make(*state, BODY, 20000);
    cut_off_everywhere(*state, copy_begin);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_copy_is_what_the_container_was_when_it_was_published),
        STORY(what_is_written_afterwards_is_written_to_one_of_them),
        STORY(a_copy_outlives_the_container_that_is_dropped),
        STORY(a_container_outlives_the_copy_that_is_dropped),
        STORY(a_copy_that_cannot_be_is_refused_and_nothing_begins),
        STORY(a_copy_taken_back_leaves_nothing),
        STORY(a_copy_cut_off_at_any_write_is_taken_up_again),
        STORY(a_copy_of_several_partitions_cut_off_at_any_write_is_taken_up_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
