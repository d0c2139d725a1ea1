/* Entries of vectors kept in memory: found from their LSN on, bounded, counted; and their graphs.
 */
#include "query/run/blocks.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "partition/layout.h"
#include "support/check.h"

#include <sched.h>

static struct query_block_key key_at(uint32_t partition, uint64_t lsn)
{
    return (struct query_block_key){
        .node = 1,
        .partition = partition,
        .epoch = 5,
        .lsn = lsn,
        .index = {.vectors = {SEARCH_FLOAT32, SEARCH_EUCLIDEAN, 2}, .bits = 8},
        .prefix = SLICE("prefix")};
}

/* False: there was no room for all of them. */
static bool block_make_for(struct query_blocks *blocks, const void *account, uint32_t partition,
                           uint64_t lsn, size_t count)
{
    struct query_block_key key = key_at(partition, lsn);
    struct query_block *block;
    bool there = true;

    key.account = account;
    block = query_block_begin(blocks, &key);

    for (uint64_t i = 0; there && i < count; i++) {
        uint8_t value[16] = {0}, name[8];

        bytes_put_be64(value, i * partition);
        bytes_put_be64(name, i);
        there = query_block_add(block, &(struct cursor_hit){.value = slice_of(value, sizeof value),
                                                            .number = i + 1,
                                                            .key = slice_of(name, 1 + i % 8)});
    }
    if (there)
        query_blocks_put(blocks, block);
    query_block_unref(block);
    return there;
}

static bool block_make(struct query_blocks *blocks, uint32_t partition, uint64_t lsn, size_t count)
{
    return block_make_for(blocks, NULL, partition, lsn, count);
}

static struct query_block *find(struct query_blocks *blocks, const struct query_block_key *key)
{
    struct query_block *block;
    bool renew;

    block = query_blocks_find(blocks, key, &renew);
    assert_false(renew);
    return block;
}

static bool is_there(struct query_blocks *blocks, uint32_t partition, uint64_t lsn, size_t count)
{
    struct query_block_key key = key_at(partition, lsn);
    struct query_block *block = find(blocks, &key);
    struct cursor_hit hit;

    if (!block)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        assert_true(query_block_at(block, i, &hit));
        assert_int_equal(hit.number, i + 1);
        assert_int_equal(hit.value.len, 16);
        assert_int_equal(bytes_get_be64(hit.value.data), i * partition);
        assert_int_equal(hit.key.len, 1 + i % 8);
    }
    assert_false(query_block_at(block, count, &hit));
    query_block_unref(block);
    return true;
}

static void a_block_is_found_from_its_lsn_on(void **state UNUSED)
{
    CLEANUP(query_blocks_free) struct query_blocks *blocks = query_blocks_new(1 << 20);
    struct query_block_key key = key_at(2, 10);

    assert_true(block_make(blocks, 2, 10, 1000));
    assert_true(block_make(blocks, 3, 10, 0));
    assert_true(is_there(blocks, 2, 10, 1000));
    assert_true(is_there(blocks, 3, 10, 0));
    assert_true(is_there(blocks, 2, 11, 1000));
    assert_false(is_there(blocks, 2, 9, 0));
    assert_false(is_there(blocks, 2, partition_lsn_in(1, 10), 0)); /* of another history */
    assert_false(is_there(blocks, 4, 10, 0));
    key.epoch++;
    assert_null(find(blocks, &key));
    key = key_at(2, 10);
    key.prefix = SLICE("other");
    assert_null(find(blocks, &key));
    key = key_at(2, 10);
    key.default_ttl = 5;
    assert_null(find(blocks, &key));
    key = key_at(2, 10);
    key.index.bits = 4;
    assert_null(find(blocks, &key));
    key = key_at(2, 10);
    key.index.graph_list = 100;
    assert_null(find(blocks, &key));
    /* that of the next moment takes the place of the one before */
    assert_true(block_make(blocks, 2, 11, 5));
    assert_false(is_there(blocks, 2, 10, 1000));
    assert_true(is_there(blocks, 2, 11, 5));
}

static void an_account_with_many_pushes_out_nobody_but_itself(void **state UNUSED)
{
    CLEANUP(query_blocks_free) struct query_blocks *blocks = query_blocks_new(100000);
    const int accounts[3] = {0};

    assert_true(block_make_for(blocks, &accounts[0], 1, 1, 500));
    assert_true(block_make_for(blocks, &accounts[1], 2, 1, 300));
    for (uint32_t i = 10; i < 60; i++) {
        assert_true(block_make_for(blocks, &accounts[2], i, 1, 500));
        assert_in_range(query_blocks_bytes(blocks), 1, 100000);
    }
    assert_true(is_there(blocks, 1, 1, 500));
    assert_true(is_there(blocks, 2, 1, 300));
    assert_true(is_there(blocks, 59, 1, 500));
    assert_false(is_there(blocks, 10, 1, 500));
    /* nor with one that is larger than all there is room for */
    assert_false(block_make_for(blocks, &accounts[2], 70, 1, 10000));
    assert_true(is_there(blocks, 1, 1, 500));
    assert_true(is_there(blocks, 2, 1, 300));
    /* who has less than others gets room from who has most */
    for (uint32_t i = 80; i < 83; i++)
        assert_true(block_make_for(blocks, &accounts[2], i, 1, 500));
    assert_true(block_make_for(blocks, &accounts[1], 3, 1, 500));
    assert_true(is_there(blocks, 1, 1, 500));
    assert_true(is_there(blocks, 2, 1, 300));
    assert_true(is_there(blocks, 3, 1, 500));
    assert_in_range(query_blocks_bytes(blocks), 1, 100000);
}

static void the_oldest_make_way_and_no_more_is_kept_than_there_is_room_for(void **state UNUSED)
{
    CLEANUP(query_blocks_free) struct query_blocks *blocks = query_blocks_new(100000);
    struct query_block_key key = key_at(1, 1);
    struct query_block *held;

    for (uint32_t i = 1; i < 20; i++) {
        assert_true(block_make(blocks, i, 1, 500));
        assert_in_range(query_blocks_bytes(blocks), 1, 100000);
    }
    assert_true(is_there(blocks, 19, 1, 500));
    assert_false(is_there(blocks, 1, 1, 500));
    assert_false(block_make(blocks, 30, 1, 10000));
    assert_in_range(query_blocks_bytes(blocks), 0, 100000);
    /* one that is in use stays whole, whatever becomes of the list */
    assert_true(block_make(blocks, 1, 1, 500));
    held = find(blocks, &key);
    assert_non_null(held);
    assert_false(block_make(blocks, 30, 1, 10000));
    assert_false(is_there(blocks, 1, 1, 500));
    for (size_t i = 0; i < 500; i++) {
        struct cursor_hit hit;

        assert_true(query_block_at(held, i, &hit));
        assert_int_equal(hit.number, i + 1);
    }
    query_block_unref(held);
    assert_int_equal(query_blocks_bytes(blocks), 0);
}

static void without_room_nothing_is_kept(void **state UNUSED)
{
    CLEANUP(query_blocks_free) struct query_blocks *blocks = query_blocks_new(0);
    struct query_block_key key = key_at(1, 1);

    assert_null(query_block_begin(blocks, &key));
    assert_null(find(blocks, &key));
}

static void what_nobody_uses_goes(void **state UNUSED)
{
    CLEANUP(query_blocks_free) struct query_blocks *blocks = query_blocks_new(1 << 20);
    int64_t now_ms = clock_monotonic_ms();

    assert_true(block_make(blocks, 1, 1, 100));
    query_blocks_tidy(blocks, now_ms + 60 * 1000);
    assert_true(is_there(blocks, 1, 1, 100));
    query_blocks_tidy(blocks, now_ms + 24 * 60 * 60 * 1000);
    assert_false(is_there(blocks, 1, 1, 100));
    assert_int_equal(query_blocks_bytes(blocks), 0);
}

/* --- Graphs ---------------------------------------------------------------------------------- */

enum { POINTS = 1500 };

static struct query_block_key graph_key(uint32_t partition, uint64_t lsn)
{
    struct query_block_key key = key_at(partition, lsn);

    key.index.graph_list = 40;
    return key;
}

/* Points of a line. */
static bool graph_block_make(struct query_blocks *blocks, uint32_t partition, uint64_t lsn,
                             size_t count)
{
    struct query_block_key key = graph_key(partition, lsn);
    struct query_block *block = query_block_begin(blocks, &key);
    size_t size = search_code_size(2, 8);
    bool there = true;

    for (uint64_t i = 0; there && i < count; i++) {
        uint8_t value[2 + SEARCH_CODE_HEAD + 2], name[8];

        bytes_put_be16(value, (uint16_t)size);
        search_code_make((float[]){(float)i, 1}, 2, 8, value + 2);
        bytes_put_be64(name, i);
        there = query_block_add(block, &(struct cursor_hit){.value = slice_of(value, sizeof value),
                                                            .number = i + 1,
                                                            .key = slice_of(name, sizeof name)});
    }
    if (there)
        query_blocks_put(blocks, block);
    query_block_unref(block);
    return there;
}

/* Waits until no graph is being built. */
static struct query_graphs_state built(struct query_blocks *blocks)
{
    for (;;) {
        struct query_graphs_state state = {0};

        query_blocks_graphs(blocks, 0, 0, SLICE_NONE, &state);
        assert_true(state.points_in <= state.points_all);
        if (!state.building)
            return state;
        (void)sched_yield();
    }
}

static const struct search_graph *graph_of(struct query_blocks *blocks, uint32_t partition,
                                           uint64_t lsn)
{
    struct query_block_key key = graph_key(partition, lsn);
    struct query_block *block = find(blocks, &key);
    const struct search_graph *graph = block ? query_block_graph(block) : NULL;

    query_block_unref(block);
    return graph;
}

static void a_graph_is_built_of_a_block(void **state UNUSED)
{
    CLEANUP(query_blocks_free) struct query_blocks *blocks = query_blocks_new(1 << 22);
    struct query_graphs_state graphs = {0};
    uint32_t points[5];
    uint64_t looked;

    assert_true(graph_block_make(blocks, 1, 10, 500)); /* that few are gone through */
    assert_true(graph_block_make(blocks, 2, 10, POINTS));
    assert_int_equal(built(blocks).ready, 1);
    assert_null(graph_of(blocks, 1, 10));
    assert_non_null(graph_of(blocks, 2, 10));
    assert_true(query_blocks_bytes(blocks) > (size_t)POINTS * (16 + 16 + 132)); /* with links */
    assert_int_equal(
        search_graph_search(graph_of(blocks, 2, 10), (float[]){700, 1}, 40, points, 5, &looked), 5);
    query_blocks_graphs(blocks, 1, 2, SLICE("prefix"), &graphs);
    assert_int_equal(graphs.ready, 1);
    assert_int_equal(graphs.points_in, POINTS);
    assert_int_equal(graphs.points_all, POINTS);
    query_blocks_graphs(blocks, 1, 3, SLICE("prefix"), &graphs);
    assert_int_equal(graphs.ready, 1);

    /* one of before serves until that of the next is there */
    assert_true(graph_block_make(blocks, 2, 11, POINTS));
    assert_non_null(graph_of(blocks, 2, 11));
    graphs = built(blocks);
    assert_int_equal(graphs.ready, 1);
    assert_int_equal(graphs.built_total, 2);
    assert_null(graph_of(blocks, 2, 10));
    assert_non_null(graph_of(blocks, 2, 11));
}

static void without_room_there_is_no_graph(void **state UNUSED)
{
    struct query_blocks *blocks = query_blocks_new(200 * 1024);

    assert_true(graph_block_make(blocks, 1, 10, POINTS));
    assert_int_equal(built(blocks).ready, 0);
    assert_null(graph_of(blocks, 1, 10));
    assert_in_range(query_blocks_bytes(blocks), 1, 200 * 1024);
    query_blocks_free(blocks);
}

/* In the middle of it: the block goes, and all is freed. */
static void a_graph_that_nobody_wants_is_given_up(void **state UNUSED)
{
    struct query_blocks *blocks = query_blocks_new(1 << 24);

    for (uint32_t i = 1; i < 6; i++)
        assert_true(graph_block_make(blocks, i, 10, 2 * POINTS));
    query_blocks_tidy(blocks, clock_monotonic_ms() + 24 * 60 * 60 * 1000);
    assert_int_equal(built(blocks).ready, 0);
    assert_true(graph_block_make(blocks, 9, 10, 2 * POINTS));
    query_blocks_free(blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_found_from_its_lsn_on),
        cmocka_unit_test(an_account_with_many_pushes_out_nobody_but_itself),
        cmocka_unit_test(the_oldest_make_way_and_no_more_is_kept_than_there_is_room_for),
        cmocka_unit_test(without_room_nothing_is_kept),
        cmocka_unit_test(what_nobody_uses_goes),
        cmocka_unit_test(a_graph_is_built_of_a_block),
        cmocka_unit_test(without_room_there_is_no_graph),
        cmocka_unit_test(a_graph_that_nobody_wants_is_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
