#include "partition/difference.h"

#include "base/random.h"
#include "support/check.h"

#define ENTRY(key, value) ((struct partition_entry){SLICE(key), SLICE(value)})

static void only_what_changed_is_touched(void **state UNUSED)
{
    struct partition_entry before[] = {ENTRY("a", ""), ENTRY("b", ""), ENTRY("d", "old")};
    struct partition_entry after[] = {ENTRY("a", ""), ENTRY("c", ""), ENTRY("d", "new")};
    struct engine_op ops[6];

    assert_int_equal(partition_difference(before, 3, after, 3, ops), 3);
    assert_int_equal(ops[0].kind, ENGINE_DELETE);
    assert_slice_equal(ops[0].key, SLICE("b"));
    assert_int_equal(ops[1].kind, ENGINE_PUT);
    assert_slice_equal(ops[1].key, SLICE("c"));
    assert_slice_equal(ops[2].key, SLICE("d"));
    assert_slice_equal(ops[2].value, SLICE("new"));
}

static void equal_sets_need_nothing(void **state UNUSED)
{
    struct partition_entry same[] = {ENTRY("a", "1"), ENTRY("b", "2")};
    struct engine_op ops[4];

    assert_int_equal(partition_difference(same, 2, same, 2, ops), 0);
    assert_int_equal(partition_difference(NULL, 0, NULL, 0, ops), 0);
}

/* Applying the difference to before gives after, whatever the sets. */
static void applying_it_gives_after(void **state UNUSED)
{
    enum { KEYS = 24 };
    static const char letters[KEYS + 1] = "abcdefghijklmnopqrstuvwx";
    struct random random;

    random_seed(&random, 5);
    for (int round = 0; round < 2000; round++) {
        struct partition_entry before[KEYS], after[KEYS];
        char expected[KEYS] = {0}, got[KEYS] = {0};
        struct engine_op ops[2 * KEYS];
        size_t before_count = 0, after_count = 0, count;

        for (size_t k = 0; k < KEYS; k++) {
            if (random_below(&random, 2)) {
                got[k] = letters[random_below(&random, 2)];
                before[before_count++] = (struct partition_entry){
                    slice_of(&letters[k], 1), slice_of(got[k] == 'a' ? "a" : "b", 1)};
            }
            if (random_below(&random, 2)) {
                expected[k] = letters[random_below(&random, 2)];
                after[after_count++] = (struct partition_entry){
                    slice_of(&letters[k], 1), slice_of(expected[k] == 'a' ? "a" : "b", 1)};
            }
        }
        count = partition_difference(before, before_count, after, after_count, ops);
        for (size_t i = 0; i < count; i++) {
            assert_true(i == 0 || slice_compare(ops[i - 1].key, ops[i].key) < 0);
            got[ops[i].key.data[0] - 'a'] =
                ops[i].kind == ENGINE_PUT ? (char)ops[i].value.data[0] : 0;
        }
        assert_memory_equal(got, expected, KEYS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_changed_is_touched),
        cmocka_unit_test(equal_sets_need_nothing),
        cmocka_unit_test(applying_it_gives_after),
    };
    return cmocka_run_group_tests_name("partition/difference", tests, NULL, NULL);
}
