#include "base/nearest.h"

#include "support/check.h"

static void distances_count_single_edits(void **state UNUSED)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {
        {"", "", 0},           {"", "abc", 3},           {"abc", "", 3},
        {"level", "level", 0}, {"level", "levl", 1},     {"level", "levle", 1},
        {"level", "lever", 1}, {"kitten", "sitting", 3},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(nearest_distance(slice_of_text(cases[i].a), slice_of_text(cases[i].b)),
                         cases[i].distance);
}

static const char *nearest_of(const char *wanted)
{
    struct nearest nearest = nearest_to(slice_of_text(wanted));

    nearest_offer(&nearest, "log.level");
    nearest_offer(&nearest, "log.format");
    nearest_offer(&nearest, "net.loops");
    return nearest.name;
}

static void the_closest_name_is_kept(void **state UNUSED)
{
    assert_string_equal(nearest_of("log.levle"), "log.level");
    assert_string_equal(nearest_of("log.fromat"), "log.format");
    assert_string_equal(nearest_of("net.lops"), "net.loops");
}

static void a_name_far_from_all_has_no_nearest(void **state UNUSED)
{
    assert_null(nearest_of("colour"));
    assert_null(nearest_of(""));
}

static void a_name_longer_than_any_is_near_to_nothing(void **state UNUSED)
{
    char name[NEAREST_NAME_MAX + 2];

    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_null(nearest_of(name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_count_single_edits),
        cmocka_unit_test(the_closest_name_is_kept),
        cmocka_unit_test(a_name_far_from_all_has_no_nearest),
        cmocka_unit_test(a_name_longer_than_any_is_near_to_nothing),
    };
    return cmocka_run_group_tests_name("base/nearest", tests, NULL, NULL);
}
