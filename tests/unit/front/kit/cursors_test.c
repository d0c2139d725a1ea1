#include "front/kit/cursors.h"

#include "base/memory.h"
#include "base/thread.h"
#include "support/check.h"

enum { ANNA = 1, BERT = 2, BYTES_MAX = 1000, ACCOUNT_MAX = 3, ALL_MAX = 4 };

struct fixture {
    struct memory_meter server;
    struct net_owners *owners;
    struct front_cursors *cursors;
    size_t closed;
};

struct kept {
    struct front_cursor cursor;
    struct fixture *fixture;
};

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);

    memory_meter_init(&f->server, NULL, 10 * BYTES_MAX);
    f->owners = net_owners_new(&f->server, BYTES_MAX);
    f->cursors = front_cursors_new(
        &(struct front_cursors_options){.count_max = ALL_MAX, .account_count_max = ACCOUNT_MAX});
    *state = f;
    return 0;
}

/* However a story ends, no memory is held for anybody afterwards. */
static int teardown(void **state)
{
    struct fixture *f = *state;

    front_cursors_free(f->cursors);
    assert_int_equal(memory_meter_used(&f->server), 0);
    net_owners_free(f->owners);
    memory_free(f);
    return 0;
}

static void kept_close(struct front_cursor *cursor)
{
    struct kept *kept = CONTAINER_OF(cursor, struct kept, cursor);

    kept->fixture->closed++;
    memory_free(kept);
}

static size_t held(struct fixture *f, uint32_t account)
{
    return memory_meter_used(net_owner_memory(net_owners_find(f->owners, account)));
}

/* Opens one of an account at the time 0; 0: it was refused. */
static uint64_t opened(struct fixture *f, uint32_t account, int64_t deadline_ms, size_t bytes,
                       struct error *err)
{
    struct kept *kept = MEMORY_NEW(struct kept);
    const struct front_cursor_terms terms = {.account = account,
                                             .owner = net_owners_find(f->owners, account),
                                             .deadline_ms = deadline_ms,
                                             .bytes = bytes};
    uint64_t id;

    kept->cursor.close = kept_close;
    kept->fixture = f;
    if (front_cursors_open(f->cursors, &kept->cursor, &terms, 0, &id, err))
        return id;
    memory_free(kept);
    return 0;
}

static uint64_t open_one(struct fixture *f, uint32_t account, int64_t deadline_ms)
{
    struct error err;
    uint64_t id = opened(f, account, deadline_ms, 100, &err);

    assert_true(id > 0 && id <= INT64_MAX);
    return id;
}

static void a_cursor_is_found_by_its_account_alone(void **state)
{
    struct fixture *f = *state;
    uint64_t id = open_one(f, ANNA, 1000);
    struct front_cursor *cursor;
    struct error err;

    assert_true(id >= FRONT_CURSOR_ID_MIN && id <= INT64_MAX);
    assert_fails(front_cursors_take(f->cursors, BERT, id, 0, &cursor, &err), &err,
                 ERROR_CURSOR_MISSING);
    assert_fails(front_cursors_take(f->cursors, ANNA, id + 1, 0, &cursor, &err), &err,
                 ERROR_CURSOR_MISSING);
    assert_false(front_cursors_kill(f->cursors, BERT, id));
    assert_ok(front_cursors_take(f->cursors, ANNA, id, 0, &cursor, &err), &err);
    assert_true(cursor->id == id);
    front_cursors_end(f->cursors, cursor);
    assert_int_equal(f->closed, 1);
}

static void one_request_uses_a_cursor_at_a_time(void **state)
{
    struct fixture *f = *state;
    uint64_t id = open_one(f, ANNA, 1000);
    struct front_cursor *cursor, *other;
    struct error err;

    assert_ok(front_cursors_take(f->cursors, ANNA, id, 0, &cursor, &err), &err);
    assert_fails(front_cursors_take(f->cursors, ANNA, id, 0, &other, &err), &err,
                 ERROR_CURSOR_IN_USE);
    front_cursors_put_back(f->cursors, cursor, 1000, 100);
    assert_ok(front_cursors_take(f->cursors, ANNA, id, 0, &cursor, &err), &err);
    front_cursors_put_back(f->cursors, cursor, 1000, 100);
}

static void what_is_not_come_back_for_in_time_is_closed(void **state)
{
    struct fixture *f = *state;
    uint64_t early = open_one(f, ANNA, 1000), late = open_one(f, ANNA, 2000);
    struct front_cursor *cursor;
    struct error err;

    assert_int_equal(front_cursors_expire(f->cursors, 999), 0);
    assert_fails(front_cursors_take(f->cursors, ANNA, early, 1000, &cursor, &err), &err,
                 ERROR_CURSOR_MISSING);
    assert_int_equal(f->closed, 1);
    assert_int_equal(front_cursors_expire(f->cursors, 2000), 1);
    assert_int_equal(f->closed, 2);
    assert_fails(front_cursors_take(f->cursors, ANNA, late, 0, &cursor, &err), &err,
                 ERROR_CURSOR_MISSING);
    assert_int_equal(front_cursors_count(f->cursors), 0);
}

static void a_cursor_in_use_outlives_its_deadline_and_gets_another(void **state)
{
    struct fixture *f = *state;
    uint64_t id = open_one(f, ANNA, 1000);
    struct front_cursor *cursor;
    struct error err;

    assert_ok(front_cursors_take(f->cursors, ANNA, id, 999, &cursor, &err), &err);
    assert_int_equal(front_cursors_expire(f->cursors, 5000), 0);
    assert_false(atomic_load(&cursor->cancelled));
    front_cursors_put_back(f->cursors, cursor, 6000, 100);
    assert_int_equal(front_cursors_expire(f->cursors, 5999), 0);
    assert_int_equal(front_cursors_expire(f->cursors, 6000), 1);
}

static void a_killed_cursor_is_closed_at_once_or_when_it_is_put_back(void **state)
{
    struct fixture *f = *state;
    uint64_t idle = open_one(f, ANNA, 1000), used = open_one(f, ANNA, 1000);
    struct front_cursor *cursor;
    struct error err;

    assert_ok(front_cursors_take(f->cursors, ANNA, used, 0, &cursor, &err), &err);
    assert_true(front_cursors_kill(f->cursors, ANNA, idle));
    assert_int_equal(f->closed, 1);
    assert_false(front_cursors_is_open(f->cursors, idle));
    assert_true(front_cursors_kill(f->cursors, ANNA, used));
    assert_int_equal(f->closed, 1);
    assert_true(front_cursors_is_open(f->cursors, used));
    assert_true(atomic_load(&cursor->cancelled));
    front_cursors_put_back(f->cursors, cursor, 1000, 100);
    assert_int_equal(f->closed, 2);
    assert_false(front_cursors_is_open(f->cursors, used));
    assert_false(front_cursors_kill(f->cursors, ANNA, used));
}

static void with_an_account_its_cursors_end_and_no_others(void **state)
{
    struct fixture *f = *state;
    struct front_cursor *cursor;
    struct error err;
    uint64_t used = open_one(f, ANNA, 1000);

    (void)open_one(f, ANNA, 1000);
    (void)open_one(f, BERT, 1000);
    assert_ok(front_cursors_take(f->cursors, ANNA, used, 0, &cursor, &err), &err);
    assert_int_equal(front_cursors_account_end(f->cursors, ANNA), 2);
    assert_int_equal(f->closed, 1);
    front_cursors_put_back(f->cursors, cursor, 1000, 100);
    assert_int_equal(f->closed, 2);
    assert_int_equal(front_cursors_count(f->cursors), 1);
    assert_int_equal(front_cursors_account_end(f->cursors, ANNA), 0);
    assert_int_equal(held(f, ANNA), 0);
    assert_int_equal(held(f, BERT), 100);
}

static void what_a_cursor_keeps_is_memory_of_its_account(void **state)
{
    struct fixture *f = *state;
    struct front_cursor *cursor;
    struct error err;
    uint64_t id = opened(f, ANNA, 1000, BYTES_MAX - 100, &err);

    assert_int_equal(held(f, ANNA), BYTES_MAX - 100);
    assert_int_equal(opened(f, ANNA, 1000, 200, &err), 0);
    assert_int_equal(err.code, ERROR_MEMORY_FULL);
    assert_true(opened(f, BERT, 1000, 200, &err));
    assert_ok(front_cursors_take(f->cursors, ANNA, id, 0, &cursor, &err), &err);
    front_cursors_put_back(f->cursors, cursor, 1000, 50);
    assert_int_equal(held(f, ANNA), 50);
    assert_true(opened(f, ANNA, 1000, 200, &err));
}

static void there_are_never_more_than_may_be(void **state)
{
    struct fixture *f = *state;
    struct error err;

    for (int i = 0; i < ACCOUNT_MAX; i++)
        (void)open_one(f, ANNA, 1000);
    assert_int_equal(opened(f, ANNA, 1000, 0, &err), 0);
    assert_int_equal(err.code, ERROR_BUSY);
    (void)open_one(f, BERT, 1000);
    assert_int_equal(opened(f, BERT, 1000, 0, &err), 0);
    assert_int_equal(front_cursors_count(f->cursors), ALL_MAX);
    assert_int_equal(held(f, ANNA), 100 * ACCOUNT_MAX); /* nothing of the refused ones */
}

static void one_whose_time_is_over_makes_room(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < ACCOUNT_MAX; i++)
        (void)open_one(f, ANNA, i == 1 ? 0 : 1000);
    (void)open_one(f, ANNA, 1000);
    assert_int_equal(f->closed, 1);
    assert_int_equal(front_cursors_count(f->cursors), ACCOUNT_MAX);
}

/* --- Many at a time -------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 2000 };

struct racer {
    struct thread thread;
    struct front_cursors *cursors;
    atomic_size_t *opened, *closed;
    uint32_t account;
};

struct raced {
    struct front_cursor cursor;
    atomic_size_t *closed;
};

static void raced_close(struct front_cursor *cursor)
{
    struct raced *raced = CONTAINER_OF(cursor, struct raced, cursor);

    atomic_fetch_add(raced->closed, 1);
    memory_free(raced);
}

static void race(void *context)
{
    struct racer *racer = context;
    struct error err;

    for (int i = 0; i < ROUNDS; i++) {
        struct raced *raced = MEMORY_NEW(struct raced);
        const struct front_cursor_terms terms = {.account = racer->account, .deadline_ms = i + 10};
        struct front_cursor *cursor;
        uint64_t id;

        raced->cursor.close = raced_close;
        raced->closed = racer->closed;
        if (!front_cursors_open(racer->cursors, &raced->cursor, &terms, i, &id, &err)) {
            memory_free(raced);
            continue;
        }
        atomic_fetch_add(racer->opened, 1);
        if (i % 7 == 0)
            (void)front_cursors_account_end(racer->cursors, racer->account ^ 1);
        if (front_cursors_take(racer->cursors, racer->account, id, i, &cursor, &err)) {
            if (i % 3 == 0)
                front_cursors_end(racer->cursors, cursor);
            else
                front_cursors_put_back(racer->cursors, cursor, i + 10, 0);
        }
    }
}

static void every_cursor_is_closed_once_however_many_use_them(void **state UNUSED)
{
    struct front_cursors *cursors = front_cursors_new(
        &(struct front_cursors_options){.count_max = 100000, .account_count_max = 100000});
    atomic_size_t opened_count = 0, closed_count = 0;
    struct racer racers[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        racers[i] = (struct racer){.cursors = cursors,
                                   .opened = &opened_count,
                                   .closed = &closed_count,
                                   .account = (uint32_t)i};
        thread_start(&racers[i].thread, "race", race, &racers[i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        thread_join(&racers[i].thread);
    front_cursors_free(cursors);
    assert_int_equal(opened_count, THREADS * ROUNDS);
    assert_int_equal(closed_count, opened_count);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_cursor_is_found_by_its_account_alone),
        STORY(one_request_uses_a_cursor_at_a_time),
        STORY(what_is_not_come_back_for_in_time_is_closed),
        STORY(a_cursor_in_use_outlives_its_deadline_and_gets_another),
        STORY(a_killed_cursor_is_closed_at_once_or_when_it_is_put_back),
        STORY(with_an_account_its_cursors_end_and_no_others),
        STORY(what_a_cursor_keeps_is_memory_of_its_account),
        STORY(there_are_never_more_than_may_be),
        STORY(one_whose_time_is_over_makes_room),
        cmocka_unit_test(every_cursor_is_closed_once_however_many_use_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
