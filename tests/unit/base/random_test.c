#include "base/random.h"

#include "support/check.h"

static void the_same_seed_gives_the_same_sequence(void **state UNUSED)
{
    struct random a, b;

    random_seed(&a, 42);
    random_seed(&b, 42);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(random_next(&a), random_next(&b));
    random_seed(&b, 43);
    assert_int_not_equal(random_next(&a), random_next(&b));
}

static void below_stays_below_and_reaches_every_value(void **state UNUSED)
{
    struct random random;
    unsigned seen[10] = {0};

    random_seed(&random, 1);
    for (int i = 0; i < 10000; i++) {
        uint64_t value = random_below(&random, ARRAY_LEN(seen));

        assert_true(value < ARRAY_LEN(seen));
        seen[value]++;
    }
    for (size_t i = 0; i < ARRAY_LEN(seen); i++)
        assert_in_range(seen[i], 800, 1200);
}

static void uuids_have_their_version_and_variant(void **state UNUSED)
{
    char a[RANDOM_UUID_SIZE], b[RANDOM_UUID_SIZE];

    random_uuid(a);
    random_uuid(b);
    assert_int_equal(strlen(a), 36);
    assert_int_equal(a[14], '4');
    assert_true(strchr("89ab", a[19]) != NULL);
    assert_string_not_equal(a, b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_same_sequence),
        cmocka_unit_test(below_stays_below_and_reaches_every_value),
        cmocka_unit_test(uuids_have_their_version_and_variant),
    };
    return cmocka_run_group_tests_name("base/random", tests, NULL, NULL);
}
