/* A heap keeps the greatest on top, so that the least of a long walk can be kept. */
#include "base/heap.h"

#include "base/random.h"
#include "support/check.h"

#include <stdlib.h>

enum { WALKED = 1000, KEPT = 37 };

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void assert_heap(const uint64_t *list, size_t count)
{
    for (size_t i = 1; i < count; i++)
        assert_true(list[(i - 1) / 2] >= list[i]);
}

static void the_least_of_a_walk_are_kept(void **state UNUSED)
{
    uint64_t all[WALKED], kept[KEPT];
    struct random random;
    size_t count = 0;

    random_seed(&random, 3);
    for (size_t i = 0; i < WALKED; i++) {
        all[i] = random_below(&random, 500);
        if (count < KEPT) {
            kept[count] = all[i];
            heap_rise(kept, sizeof *kept, count++, by_number);
        } else if (all[i] < kept[0]) {
            kept[0] = all[i];
            heap_sift(kept, KEPT, sizeof *kept, 0, by_number);
        }
        assert_heap(kept, count);
    }
    qsort(all, WALKED, sizeof *all, by_number);
    qsort(kept, KEPT, sizeof *kept, by_number);
    assert_memory_equal(kept, all, sizeof kept);
}

static void any_list_becomes_a_heap(void **state UNUSED)
{
    uint64_t list[WALKED];
    struct random random;

    random_seed(&random, 4);
    for (size_t count = 0; count < 70; count++) {
        for (size_t i = 0; i < count; i++)
            list[i] = random_below(&random, 20);
        heap_make(list, count, sizeof *list, by_number);
        assert_heap(list, count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_of_a_walk_are_kept),
        cmocka_unit_test(any_list_becomes_a_heap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
