#include "base/random.h"
#include "engine/pg/pg_private.h"
#include "support/check.h"

static struct slice key_of_len(struct arena *arena, size_t len)
{
    uint8_t *bytes = arena_alloc(arena, len);

    memset(bytes, 'k', len);
    return slice_of(bytes, len);
}

static void no_stored_key_passes_what_an_index_entry_holds(void **state UNUSED)
{
    static const size_t lens[] = {1,           PG_HEAD - 1,     PG_HEAD,       PG_HEAD + 1,
                                  2 * PG_HEAD, 2 * PG_HEAD + 1, ENGINE_KEY_MAX};
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        CLEANUP(buf_done) struct buf stored;
        struct slice key = key_of_len(arena, lens[i]);

        buf_init(&stored, BUF_DEFAULT_MAX);
        pg_key_store(key, &stored);
        assert_true(stored.len <= 2600);
        assert_int_equal(pg_key_marks(key), (lens[i] - 1) / PG_HEAD);
        for (size_t level = 0; level < pg_key_marks(key); level++) {
            buf_clear(&stored);
            pg_key_mark(key, level, &stored);
            assert_true(stored.len <= 2600);
            assert_true(pg_key_is_mark(slice_first(key, level * PG_HEAD), buf_slice(&stored)));
        }
    }
}

static void a_mark_sorts_between_its_head_and_whatever_comes_after(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf head, mark, next;
    struct slice longer = key_of_len(arena, PG_HEAD + 1);
    uint8_t *after = arena_alloc(arena, PG_HEAD);

    buf_init(&head, BUF_DEFAULT_MAX);
    buf_init(&mark, BUF_DEFAULT_MAX);
    buf_init(&next, BUF_DEFAULT_MAX);
    memset(after, 'k', PG_HEAD);
    after[PG_HEAD - 1]++;
    pg_key_store(slice_first(longer, PG_HEAD), &head);
    pg_key_mark(longer, 0, &mark);
    pg_key_store(slice_of(after, PG_HEAD), &next);
    assert_true(slice_compare(buf_slice(&head), buf_slice(&mark)) < 0);
    assert_true(slice_compare(buf_slice(&mark), buf_slice(&next)) < 0);
    assert_false(pg_key_is_mark(SLICE_NONE, buf_slice(&head)));
    assert_false(pg_key_is_mark(SLICE_NONE, buf_slice(&next)));
}

static void short_keys_keep_their_order(void **state UNUSED)
{
    static const struct slice keys[] = {
        {(const uint8_t *)"\0", 1},   {(const uint8_t *)"\0\0", 2},
        {(const uint8_t *)"\0\1", 2}, {(const uint8_t *)"a", 1},
        {(const uint8_t *)"a\0", 2},  {(const uint8_t *)"b", 1},
        {(const uint8_t *)"\xff", 1}, {(const uint8_t *)"\xff\xff", 2},
    };
    CLEANUP(buf_done) struct buf low, high;

    buf_init(&low, BUF_DEFAULT_MAX);
    buf_init(&high, BUF_DEFAULT_MAX);
    for (size_t i = 1; i < ARRAY_LEN(keys); i++) {
        buf_clear(&low);
        buf_clear(&high);
        pg_key_store(keys[i - 1], &low);
        pg_key_store(keys[i], &high);
        assert_true(slice_compare(buf_slice(&low), buf_slice(&high)) < 0);
    }
    /* The last of them is still inside an unbounded range. */
    buf_clear(&low);
    pg_key_high(SLICE_NONE, SLICE_NONE, &low);
    assert_true(slice_compare(buf_slice(&high), buf_slice(&low)) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_stored_key_passes_what_an_index_entry_holds),
        cmocka_unit_test(a_mark_sorts_between_its_head_and_whatever_comes_after),
        cmocka_unit_test(short_keys_keep_their_order),
    };
    return cmocka_run_group_tests_name("engine/pg/key", tests, NULL, NULL);
}
