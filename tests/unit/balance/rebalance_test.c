/* Plans for worlds at random, and what must hold of every one of them. */
#include "balance/rebalance.h"

#include "base/random.h"
#include "support/check.h"

enum { WORLDS = 400, NODES = 6, SPANS = 40 };

struct world {
    struct rebalance_node nodes[NODES];
    size_t node_count;
    struct rebalance_span spans[SPANS];
    size_t span_count;
};

static uint64_t below(struct random *random, uint64_t limit)
{
    return random_below(random, limit);
}

static void world_make(struct world *world, struct random *random)
{
    world->node_count = 2 + below(random, NODES - 1);
    world->span_count = 1 + below(random, SPANS);
    for (size_t i = 0; i < world->node_count; i++)
        world->nodes[i] = (struct rebalance_node){
            .number = (uint32_t)(i * 3 + 1), /* numbers have gaps */
            .capacity_bytes = below(random, 3) ? 0 : (1 + below(random, 8)) << 30,
            .weighed = below(random, 2),
            .reserve_percent = (uint32_t)below(random, 30),
            .takes = below(random, 8) != 0,
            .empties = below(random, 8) == 0,
        };
    for (size_t i = 0; i < world->span_count; i++) {
        struct rebalance_span *span = &world->spans[i];
        size_t node = below(random, world->node_count);

        *span = (struct rebalance_span){
            .node = world->nodes[node].number,
            .allowed = below(random, 4) ? UINT64_MAX : below(random, 1ULL << 20),
            .bytes = below(random, 2) ? below(random, 1ULL << 28) : below(random, 1000),
            .heat = (double)below(random, 2000),
            .fixed = below(random, 12) == 0,
        };
        world->nodes[node].used_bytes += span->bytes;
    }
}

static struct rebalance_node *node_of(struct world *world, uint32_t number)
{
    for (size_t i = 0; i < world->node_count; i++)
        if (world->nodes[i].number == number)
            return &world->nodes[i];
    fail();
    return NULL;
}

/* Carries the plan out, looking at each move. */
static void moves_check(struct world *world, const struct rebalance_plan *plan)
{
    bool moved[SPANS] = {0};

    for (size_t i = 0; i < plan->count; i++) {
        const struct rebalance_move *move = &plan->moves[i];
        struct rebalance_span *span = &world->spans[move->span];

        assert_false(moved[move->span]); /* once is enough */
        moved[move->span] = true;
        assert_int_equal(span->node, move->from);
        assert_int_not_equal(move->from, move->to);
        assert_false(span->fixed);
        assert_true(span->allowed >> move->to & 1);
        assert_true(node_of(world, move->to)->takes);
        assert_false(node_of(world, move->to)->empties);
        node_of(world, move->from)->used_bytes -= span->bytes;
        node_of(world, move->to)->used_bytes += span->bytes;
        span->node = move->to;
    }
    for (size_t i = 0; i < plan->count; i++) {
        const struct rebalance_node *to = node_of(world, plan->moves[i].to);

        if (to->capacity_bytes)
            assert_true(to->used_bytes <=
                        to->capacity_bytes / 100 * (100 - to->reserve_percent) + 100);
    }
}

static bool is_stuck(const struct rebalance_plan *plan, size_t span)
{
    for (size_t i = 0; i < plan->stuck_count; i++)
        if (plan->stuck[i].span == span)
            return true;
    return false;
}

static void musts_check(struct world *world, const struct rebalance_plan *plan)
{
    for (size_t i = 0; i < world->span_count; i++) {
        const struct rebalance_span *span = &world->spans[i];

        if (span->fixed || is_stuck(plan, i))
            continue;
        assert_true(span->allowed >> span->node & 1);
        assert_false(node_of(world, span->node)->empties);
    }
}

static void a_plan_breaks_no_rule_and_leaves_nothing_to_be_planned(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct random random;
    size_t moves = 0;

    random_seed(&random, 17);
    for (int i = 0; i < WORLDS; i++) {
        struct rebalance_plan plan, again;
        struct world world = {0};
        bool must_only = i % 4 == 0;

        world_make(&world, &random);
        rebalance_plan(world.nodes, world.node_count, world.spans, world.span_count, must_only,
                       arena, &plan);
        moves_check(&world, &plan);
        musts_check(&world, &plan);
        moves += plan.count;
        rebalance_plan(world.nodes, world.node_count, world.spans, world.span_count, must_only,
                       arena, &again);
        assert_int_equal(again.count, 0);
        assert_int_equal(again.stuck_count, plan.stuck_count);
        arena_reset(arena);
    }
    assert_true(moves > WORLDS);
}

static struct rebalance_plan plan_of(const struct world *world, struct arena *arena)
{
    struct rebalance_plan plan;

    rebalance_plan(world->nodes, world->node_count, world->spans, world->span_count, false, arena,
                   &plan);
    return plan;
}

static struct world even_world(size_t nodes, size_t spans)
{
    struct world world = {.node_count = nodes, .span_count = spans};

    for (size_t i = 0; i < nodes; i++)
        world.nodes[i] = (struct rebalance_node){.number = (uint32_t)i, .takes = true};
    for (size_t i = 0; i < spans; i++)
        world.spans[i] =
            (struct rebalance_span){.node = 0, .allowed = UINT64_MAX, .bytes = 1 << 26};
    return world;
}

static void everything_on_one_node_is_spread_evenly_in_as_few_moves_as_can_be(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct world world = even_world(3, 12);
    struct rebalance_plan plan = plan_of(&world, arena);
    size_t count[3] = {0};

    assert_int_equal(plan.count, 8);
    assert_true(plan.spread_after < plan.spread_before / 100);
    moves_check(&world, &plan);
    for (size_t i = 0; i < world.span_count; i++)
        count[world.spans[i].node]++;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(count[i], 4);
}

static void what_is_nearly_even_is_left_alone(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct world world = even_world(2, 21);

    for (size_t i = 0; i < 10; i++)
        world.spans[i].node = 1;
    assert_int_equal(plan_of(&world, arena).count, 0);
}

static void capacities_decide_about_the_parts(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct world world = even_world(2, 12);
    struct rebalance_plan plan;
    size_t small = 0;

    for (size_t i = 0; i < 2; i++) {
        world.nodes[i].weighed = true;
        world.nodes[i].capacity_bytes = i ? 1ULL << 40 : 3ULL << 40;
    }
    plan = plan_of(&world, arena);
    moves_check(&world, &plan);
    for (size_t i = 0; i < world.span_count; i++)
        small += world.spans[i].node == 1;
    assert_int_equal(small, 3);
}

static void a_hot_partition_is_moved_away_from_another(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct world world = even_world(2, 4);
    struct rebalance_plan plan;

    for (size_t i = 0; i < 4; i++) {
        world.spans[i].node = i / 2;
        world.spans[i].heat = i < 2 ? 1000 : 1;
    }
    plan = plan_of(&world, arena);
    assert_true(plan.count > 0);
    moves_check(&world, &plan);
    assert_int_not_equal(world.spans[0].node, world.spans[1].node);
}

static void a_full_node_is_relieved_even_if_nothing_else_would_be_moved(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct world world = even_world(2, 2);
    struct rebalance_plan plan;

    world.nodes[0].capacity_bytes = 3 << 25; /* room for one and a half, less the reserve */
    world.nodes[0].reserve_percent = 10;
    world.nodes[0].used_bytes = 2 << 26;
    rebalance_plan(world.nodes, 2, world.spans, 2, true, arena, &plan);
    assert_int_equal(plan.count, 1);
    assert_int_equal(plan.moves[0].reason, REBALANCE_ROOM);
    assert_string_equal(rebalance_reason_name(plan.moves[0].reason), "room");
}

static void what_cannot_be_moved_is_told_with_the_reason(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct world world = even_world(2, 2);
    struct rebalance_plan plan;

    world.nodes[0].empties = true;
    world.spans[0].allowed = 1; /* only where it is to leave */
    world.spans[1].allowed = 0;
    plan = plan_of(&world, arena);
    assert_int_equal(plan.count, 0);
    assert_int_equal(plan.stuck_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(plan.stuck[i].reason, REBALANCE_DRAIN);
        assert_int_equal(plan.stuck[i].forbidden, plan.stuck[i].span == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_breaks_no_rule_and_leaves_nothing_to_be_planned),
        cmocka_unit_test(everything_on_one_node_is_spread_evenly_in_as_few_moves_as_can_be),
        cmocka_unit_test(what_is_nearly_even_is_left_alone),
        cmocka_unit_test(capacities_decide_about_the_parts),
        cmocka_unit_test(a_hot_partition_is_moved_away_from_another),
        cmocka_unit_test(a_full_node_is_relieved_even_if_nothing_else_would_be_moved),
        cmocka_unit_test(what_cannot_be_moved_is_told_with_the_reason),
    };

    return cmocka_run_group_tests_name("balance/rebalance", tests, NULL, NULL);
}
