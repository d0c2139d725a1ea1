/* Where a span is cut, of profiles made by hand; heat_test.c has real ones. */
#include "load/profile.h"

#include "support/check.h"

#define KEY(text, ru)                                                                              \
    {                                                                                              \
        SLICE(text), SLICE(text "\xFF"), ru                                                        \
    }

static void the_cut_halves_heat_not_bytes(void **state UNUSED)
{
    struct load_profile_key keys[] = {KEY("1", 100), KEY("2", 100), KEY("3", 100), KEY("8", 10)};
    struct slice bounds[] = {SLICE("4"), SLICE("5"), SLICE("6"), SLICE("7")};
    struct load_profile profile = {.min = SLICE(""),
                                   .max = SLICE("\xFF"),
                                   .keys = keys,
                                   .key_count = 4,
                                   .bounds = bounds,
                                   .bound_count = 4};
    struct slice bound;

    assert_true(load_profile_cut(&profile, &bound));
    assert_true(slice_compare(bound, SLICE("2")) > 0);
    assert_true(slice_compare(bound, SLICE("3")) <= 0);
    assert_true(load_profile_below(&profile, bound) == 200);
}

static void what_is_not_followed_lies_as_the_bytes_do(void **state UNUSED)
{
    struct slice bounds[] = {SLICE("2"), SLICE("4"), SLICE("6")};
    struct load_profile profile = {
        .min = SLICE(""), .max = SLICE("\xFF"), .rest = 80, .bounds = bounds, .bound_count = 3};
    struct slice bound;

    assert_true(load_profile_below(&profile, SLICE("2")) == 20);
    assert_true(load_profile_below(&profile, SLICE("5")) == 40);
    assert_true(load_profile_all(&profile) == 80);
    assert_true(load_profile_cut(&profile, &bound));
    assert_slice_equal(bound, SLICE("4"));
}

static void a_single_hot_key_cannot_be_cut(void **state UNUSED)
{
    struct load_profile_key keys[] = {KEY("5", 95)};
    struct slice bounds[] = {SLICE("4"), SLICE("6")};
    struct load_profile profile = {.min = SLICE(""),
                                   .max = SLICE("\xFF"),
                                   .keys = keys,
                                   .key_count = 1,
                                   .rest = 5,
                                   .bounds = bounds,
                                   .bound_count = 2};
    struct slice bound;

    assert_false(load_profile_cut(&profile, &bound));
}

static void a_span_without_heat_is_not_cut(void **state UNUSED)
{
    struct slice bounds[] = {SLICE("4")};
    struct load_profile profile = {
        .min = SLICE(""), .max = SLICE("\xFF"), .bounds = bounds, .bound_count = 1};
    struct slice bound;

    assert_false(load_profile_cut(&profile, &bound));
}

static void what_was_refused_was_wanted_too_within_reason(void **state UNUSED)
{
    struct statistics_numbers numbers = {.cru = 600000, .requests = 300, .throttled = 200};
    struct load_use use = load_use_in(&numbers, 60);

    assert_true(use.used == 100);
    assert_true(use.wanted == 300);
    numbers.throttled = 299;
    assert_true(load_use_in(&numbers, 60).wanted == 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cut_halves_heat_not_bytes),
        cmocka_unit_test(what_is_not_followed_lies_as_the_bytes_do),
        cmocka_unit_test(a_single_hot_key_cannot_be_cut),
        cmocka_unit_test(a_span_without_heat_is_not_cut),
        cmocka_unit_test(what_was_refused_was_wanted_too_within_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
