#include "base/slice.h"

#include "base/memory.h"
#include "support/check.h"

static void compare_puts_a_prefix_first(void **state UNUSED)
{
    assert_true(slice_compare(SLICE("ab"), SLICE("abc")) < 0);
    assert_true(slice_compare(SLICE("b"), SLICE("abc")) > 0);
    assert_true(slice_compare(SLICE(""), SLICE_NONE) == 0);
    assert_true(slice_compare(SLICE("\xff"), SLICE("a")) > 0);
}

static void equal_nocase_folds_ascii_letters_only(void **state UNUSED)
{
    assert_true(slice_equal_nocase(SLICE("X-Ms-Date"), SLICE("x-mS-dATE")));
    assert_false(slice_equal_nocase(SLICE("["), SLICE("{")));
    assert_false(slice_equal_nocase(SLICE("a"), SLICE("ab")));
}

static void split_cuts_at_the_first_occurrence(void **state UNUSED)
{
    struct slice head, tail;

    assert_true(slice_split(SLICE("key=a=b"), '=', &head, &tail));
    assert_slice_equal(head, SLICE("key"));
    assert_slice_equal(tail, SLICE("a=b"));
    assert_false(slice_split(SLICE("key"), '=', &head, &tail));
    assert_false(slice_split(SLICE_NONE, '=', &head, &tail));
}

static void to_uint64_takes_digits_only(void **state UNUSED)
{
    uint64_t value = 7;

    assert_true(slice_to_uint64(SLICE("18446744073709551615"), &value));
    assert_int_equal(value, UINT64_MAX);
    assert_false(slice_to_uint64(SLICE("18446744073709551616"), &value));
    assert_false(slice_to_uint64(SLICE("+5"), &value));
    assert_false(slice_to_uint64(SLICE(" 5"), &value));
    assert_false(slice_to_uint64(SLICE(""), &value));
    assert_int_equal(value, UINT64_MAX);
}

static void trim_removes_blanks_at_both_ends(void **state UNUSED)
{
    assert_slice_equal(slice_trim(SLICE(" \t a b \t")), SLICE("a b"));
    assert_slice_equal(slice_trim(SLICE("  ")), SLICE(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compare_puts_a_prefix_first),
        cmocka_unit_test(equal_nocase_folds_ascii_letters_only),
        cmocka_unit_test(split_cuts_at_the_first_occurrence),
        cmocka_unit_test(to_uint64_takes_digits_only),
        cmocka_unit_test(trim_removes_blanks_at_both_ends),
    };
    return cmocka_run_group_tests_name("base/slice", tests, NULL, NULL);
}
