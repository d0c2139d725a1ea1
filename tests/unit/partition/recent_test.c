#include "partition/recent.h"

#include "base/random.h"
#include "support/check.h"

enum { BYTES_MIN = 2 * ENGINE_KEY_MAX };

static struct engine_range range_of(const char *min, const char *max)
{
    return (struct engine_range){.min = slice_of_text(min), .max = slice_of_text(max)};
}

static void a_key_conflicts_only_after_the_moment(void **state UNUSED)
{
    CLEANUP(recent_free) struct recent *recent = recent_new(100, BYTES_MIN);

    recent_add(recent, 5, 1, SLICE("a"));
    assert_true(recent_has_key(recent, 4, 1, SLICE("a")));
    assert_false(recent_has_key(recent, 5, 1, SLICE("a")));
    assert_false(recent_has_key(recent, 4, 2, SLICE("a")));
    assert_false(recent_has_key(recent, 4, 1, SLICE("b")));
}

static void the_last_write_of_a_key_counts(void **state UNUSED)
{
    CLEANUP(recent_free) struct recent *recent = recent_new(100, BYTES_MIN);

    recent_add(recent, 5, 1, SLICE("a"));
    recent_add(recent, 9, 1, SLICE("a"));
    assert_true(recent_has_key(recent, 7, 1, SLICE("a")));
}

static void a_range_conflicts_by_its_bounds(void **state UNUSED)
{
    CLEANUP(recent_free) struct recent *recent = recent_new(100, BYTES_MIN);

    recent_add(recent, 5, 1, SLICE("c"));
    assert_true(recent_has_range(recent, 4, 1, range_of("c", "d")));
    assert_false(recent_has_range(recent, 4, 1, range_of("a", "c")));
    assert_false(recent_has_range(recent, 5, 1, range_of("a", "z")));
    assert_true(recent_has_range(recent, 4, 1, (struct engine_range){0}));
    assert_false(recent_has_range(recent, 4, 2, (struct engine_range){0}));
}

static void what_is_forgotten_raises_the_floor(void **state UNUSED)
{
    CLEANUP(recent_free) struct recent *recent = recent_new(3, BYTES_MIN);

    for (uint64_t sequence = 1; sequence <= 3; sequence++)
        recent_add(recent, sequence, 1, slice_of(&sequence, 8));
    assert_int_equal(recent_floor(recent), 0);
    recent_add(recent, 4, 1, SLICE("x"));
    assert_int_equal(recent_floor(recent), 1);
}

/* Against the obvious list, with few keys, small rings and long keys, so that both rings turn. */
static void it_agrees_with_a_list(void **state UNUSED)
{
    enum { STEPS = 20000, KEYS = 40 };
    CLEANUP(recent_free) struct recent *recent = recent_new(37, BYTES_MIN);
    static uint64_t last[KEYS]; /* the sequence that wrote the key last */
    struct random random;
    uint8_t key[2000] = {0};

    random_seed(&random, 99);
    for (uint64_t sequence = 1; sequence <= STEPS; sequence++) {
        unsigned k = (unsigned)random_below(&random, KEYS);
        uint64_t floor, moment;

        key[0] = (uint8_t)k;
        recent_add(recent, sequence, 1, slice_of(key, 1 + k * 49));
        last[k] = sequence;
        floor = recent_floor(recent);
        moment = floor + random_below(&random, sequence - floor + 1);
        k = (unsigned)random_below(&random, KEYS);
        key[0] = (uint8_t)k;
        assert_int_equal(recent_has_key(recent, moment, 1, slice_of(key, 1 + k * 49)),
                         last[k] > moment);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_conflicts_only_after_the_moment),
        cmocka_unit_test(the_last_write_of_a_key_counts),
        cmocka_unit_test(a_range_conflicts_by_its_bounds),
        cmocka_unit_test(what_is_forgotten_raises_the_floor),
        cmocka_unit_test(it_agrees_with_a_list),
    };
    return cmocka_run_group_tests_name("partition/recent", tests, NULL, NULL);
}
