#include "base/arena.h"

#include "support/check.h"

static void allocations_are_aligned_and_apart(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t size = 0; size < 3000; size += 7) {
        uint8_t *piece = arena_alloc(arena, size);

        assert_int_equal((uintptr_t)piece % 16, 0);
        memset(piece, 0xAB, size);
    }
}

static void a_piece_larger_than_any_block_gets_its_own(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint8_t *large = arena_alloc(arena, 3 * 1024 * 1024);

    memset(large, 1, 3 * 1024 * 1024);
    assert_true(arena_used(arena) >= 3 * 1024 * 1024);
}

static void reset_starts_over(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t empty = arena_used(arena);
    void *first = arena_alloc(arena, 10);

    arena_alloc(arena, 100000);
    arena_reset(arena);
    assert_int_equal(arena_used(arena), empty);
    assert_ptr_equal(arena_alloc(arena, 10), first);
}

static void printf_and_copies_live_in_the_arena(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_slice_equal(arena_printf(arena, "%d-%s", 7, "x"), SLICE("7-x"));
    assert_slice_equal(arena_copy(arena, SLICE("bytes")), SLICE("bytes"));
    assert_string_equal(arena_text(arena, SLICE("text")), "text");
    assert_int_equal(arena_copy(arena, SLICE_NONE).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_and_apart),
        cmocka_unit_test(a_piece_larger_than_any_block_gets_its_own),
        cmocka_unit_test(reset_starts_over),
        cmocka_unit_test(printf_and_copies_live_in_the_arena),
    };
    return cmocka_run_group_tests_name("base/arena", tests, NULL, NULL);
}
