/* Entries of vectors kept in memory: found at their moment, bounded, counted. */
#include "query/run/blocks.h"

#include "base/bytes.h"
#include "support/check.h"

static struct query_block_key key_at(uint32_t partition, uint64_t lsn)
{
    return (struct query_block_key){1, partition, 5, lsn, SLICE("prefix")};
}

/* False: there was no room for all of them. */
static bool block_make(struct query_blocks *blocks, uint32_t partition, uint64_t lsn, size_t count)
{
    struct query_block_key key = key_at(partition, lsn);
    struct query_block *block = query_block_begin(blocks, &key);
    bool there = true;

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

static bool is_there(struct query_blocks *blocks, uint32_t partition, uint64_t lsn, size_t count)
{
    struct query_block_key key = key_at(partition, lsn);
    struct query_block *block = query_blocks_find(blocks, &key);
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

static void a_block_is_found_at_its_lsn_alone(void **state UNUSED)
{
    CLEANUP(query_blocks_free) struct query_blocks *blocks = query_blocks_new(1 << 20);
    struct query_block_key key = key_at(2, 10);

    assert_true(block_make(blocks, 2, 10, 1000));
    assert_true(block_make(blocks, 3, 10, 0));
    assert_true(is_there(blocks, 2, 10, 1000));
    assert_true(is_there(blocks, 3, 10, 0));
    assert_false(is_there(blocks, 2, 11, 0));
    assert_false(is_there(blocks, 4, 10, 0));
    key.epoch++;
    assert_null(query_blocks_find(blocks, &key));
    key = key_at(2, 10);
    key.prefix = SLICE("other");
    assert_null(query_blocks_find(blocks, &key));
    /* that of the next moment takes the place of the one before */
    assert_true(block_make(blocks, 2, 11, 5));
    assert_false(is_there(blocks, 2, 10, 1000));
    assert_true(is_there(blocks, 2, 11, 5));
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
    held = query_blocks_find(blocks, &key);
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
    assert_null(query_blocks_find(blocks, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_found_at_its_lsn_alone),
        cmocka_unit_test(the_oldest_make_way_and_no_more_is_kept_than_there_is_room_for),
        cmocka_unit_test(without_room_nothing_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
