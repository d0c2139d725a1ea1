/* The life of a call without any protocol: a transport of its own that only counts. */
#include "front/kit/call.h"

#include "base/memory.h"
#include "base/thread.h"
#include "support/check.h"

struct story {
    struct front_call front;
    struct front_services services;
    atomic_uint under_way;
    struct mutex lock;
    struct condition changed;

    /* What the operation does. */
    bool goes_cold, stays_pending, fails;
    int rekeyed; /* times it meets a container with another key */

    /* What has happened. */
    int runs, runs_blocking, keeps, founds, restarts, settles, answers, refusals;
    enum error_code code;
    atomic_bool gone;
};

static struct story *story_of(const struct front_call *call)
{
    return CONTAINER_OF(call, struct story, front);
}

static void keep(struct front_call *call)
{
    story_of(call)->keeps++;
}

static void restart(struct front_call *call)
{
    story_of(call)->restarts++;
}

static const atomic_bool *cancel_flag(const struct front_call *call)
{
    return &story_of(call)->gone;
}

static const struct front_transport transport = {keep, restart, cancel_flag};

static bool run(struct front_call *call, struct error *err)
{
    struct story *story = story_of(call);

    story->runs++;
    story->runs_blocking += call->may_block;
    if (!call->may_block && story->goes_cold) {
        call->cold = true;
        return false;
    }
    if (!call->may_block && story->stays_pending) {
        front_call_keep(call);
        *call->pending = true;
        return true;
    }
    if (story->rekeyed > 0) {
        story->rekeyed--;
        return error_set(err, ERROR_REKEYED, "again");
    }
    return !story->fails || error_set(err, ERROR_BAD_REQUEST, "no");
}

static void kept(struct front_call *call)
{
    assert_int_equal(story_of(call)->keeps, 1); /* the bytes have moved before */
    story_of(call)->founds++;
}

static uint64_t part(const struct front_call *call UNUSED)
{
    return 7;
}

static void settle(struct front_call *call)
{
    story_of(call)->settles++;
}

static void ended(struct story *story, int *count)
{
    WITH_LOCK (&story->lock) {
        ++*count;
        condition_signal(&story->changed);
    }
}

static void answer(struct front_call *call)
{
    ended(story_of(call), &story_of(call)->answers);
}

static void refuse(struct front_call *call, const struct error *err)
{
    story_of(call)->code = err->code;
    ended(story_of(call), &story_of(call)->refusals);
}

static const struct front_call_kind kind = {run, kept, part, settle, answer, refuse};

static int setup(void **state)
{
    struct net_workers_settings settings = net_workers_settings_default();
    struct story *story = MEMORY_NEW(struct story);

    mutex_init(&story->lock);
    condition_init(&story->changed);
    story->services.workers = net_workers_new(&settings);
    story->front.transport = &transport;
    story->front.kind = &kind;
    story->front.services = &story->services;
    story->front.under_way = &story->under_way;
    *state = story;
    return 0;
}

/* However it went, the call was settled and ended once. */
static int teardown(void **state)
{
    struct story *story = *state;

    net_workers_free(story->services.workers);
    assert_int_equal(story->answers + story->refusals, 1);
    assert_int_equal(story->settles, 1);
    condition_done(&story->changed);
    mutex_done(&story->lock);
    memory_free(story);
    return 0;
}

static void end_await(struct story *story)
{
    WITH_LOCK (&story->lock) {
        while (!story->answers && !story->refusals)
            condition_wait(&story->changed, &story->lock);
    }
}

static void what_never_blocks_is_answered_on_the_loop(void **state)
{
    struct story *story = *state;

    front_call_run(&story->front, false);
    assert_int_equal(story->answers, 1);
    assert_int_equal(story->keeps, 0);
    assert_int_equal(story->runs_blocking, 0);
}

static void a_cold_one_is_kept_and_begins_anew_on_a_worker(void **state)
{
    struct story *story = *state;

    story->goes_cold = true;
    front_call_run(&story->front, false);
    end_await(story);
    assert_int_equal(story->answers, 1);
    assert_int_equal(story->runs, 2);
    assert_int_equal(story->runs_blocking, 1);
    assert_int_equal(story->keeps, 1);
    assert_int_equal(story->founds, 1);
    assert_int_equal(story->restarts, 1); /* what was gathered on the loop is thrown away */
    assert_false(story->front.cold);
    assert_int_equal(story->front.work.part, 7);
}

static void what_blocks_is_not_tried_on_the_loop(void **state)
{
    struct story *story = *state;

    story->fails = true;
    front_call_run(&story->front, true);
    end_await(story);
    assert_int_equal(story->code, ERROR_BAD_REQUEST);
    assert_int_equal(story->runs, 1);
    assert_int_equal(story->runs_blocking, 1);
}

static void a_pending_one_is_ended_by_somebody_else(void **state)
{
    struct story *story = *state;

    story->stays_pending = true;
    front_call_run(&story->front, false);
    assert_int_equal(story->answers + story->refusals, 0);
    front_call_finish(&story->front, true, NULL);
    assert_int_equal(story->answers, 1);
}

static void a_pending_one_may_still_move(void **state)
{
    struct story *story = *state;

    story->stays_pending = true;
    front_call_run(&story->front, false);
    front_call_move(&story->front);
    end_await(story);
    assert_int_equal(story->runs_blocking, 1);
    assert_int_equal(story->keeps, 1);
}

static void nothing_is_worked_on_for_a_client_that_has_gone(void **state)
{
    struct story *story = *state;

    atomic_store(&story->gone, true);
    front_call_run(&story->front, true);
    end_await(story);
    assert_int_equal(story->code, ERROR_TIMED_OUT);
    assert_int_equal(story->runs, 0);
}

static void one_that_meets_another_key_is_read_again(void **state)
{
    struct story *story = *state;

    story->rekeyed = 2;
    front_call_run(&story->front, true);
    end_await(story);
    assert_int_equal(story->answers, 1);
    assert_int_equal(story->runs, 3);
}

static void one_that_meets_other_keys_for_ever_is_refused(void **state)
{
    struct story *story = *state;

    story->rekeyed = 1000;
    front_call_run(&story->front, true);
    end_await(story);
    assert_int_equal(story->code, ERROR_REKEYED);
}

static void an_account_that_holds_too_much_gets_no_worker(void **state)
{
    struct story *story = *state;
    struct net_owners *owners = net_owners_new(NULL, 100);

    story->front.owner = net_owners_find(owners, 1);
    story->front.work_bytes = 101;
    front_call_run(&story->front, true);
    end_await(story);
    assert_int_equal(story->code, ERROR_MEMORY_FULL);
    assert_int_equal(story->runs, 0);
    assert_int_equal(memory_meter_used(net_owner_memory(story->front.owner)), 0);
    net_workers_free(TAKE(story->services.workers));
    net_owners_free(owners);
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(what_never_blocks_is_answered_on_the_loop),
        STORY(a_cold_one_is_kept_and_begins_anew_on_a_worker),
        STORY(what_blocks_is_not_tried_on_the_loop),
        STORY(a_pending_one_is_ended_by_somebody_else),
        STORY(a_pending_one_may_still_move),
        STORY(nothing_is_worked_on_for_a_client_that_has_gone),
        STORY(one_that_meets_another_key_is_read_again),
        STORY(one_that_meets_other_keys_for_ever_is_refused),
        STORY(an_account_that_holds_too_much_gets_no_worker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
