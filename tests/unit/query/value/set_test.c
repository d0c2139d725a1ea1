#include "query/value/set.h"

#include "query/value/compare.h"
#include "support/check.h"
#include "support/documents.h"

static void a_value_is_in_a_set_once(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value one = document_int32(1), same = document_double(1),
                          text = document_string(SLICE("1"));
    struct query_set set;
    bool is_new;

    query_set_init(&set, DOCUMENT_ORDER_SQL, arena, 0);
    assert_true(query_set_find(&set, &one) == SIZE_MAX);
    assert_int_equal(query_set_add(&set, &one, &is_new), 0);
    assert_true(is_new);
    assert_int_equal(query_set_add(&set, &same, &is_new), 0);
    assert_false(is_new);
    assert_int_equal(query_set_add(&set, &text, &is_new), 1);
    assert_true(is_new);
    assert_int_equal(query_set_find(&set, &text), 1);
    assert_int_equal(set.count, 2);
}

/* Against a search through a plain list. */
static void a_set_agrees_with_a_list(void **state UNUSED)
{
    enum { COUNT = 2000 };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value *list = ARENA_ARRAY(arena, struct document_value, COUNT);
    struct random random;
    struct query_set set;
    size_t count = 0;

    random_seed(&random, 3);
    query_set_init(&set, DOCUMENT_ORDER_SQL, arena, 0);
    for (int i = 0; i < COUNT; i++) {
        struct document_value value = value_random(&random, arena, 2);
        size_t at = 0;
        bool is_new;

        while (at < count && !query_values_same(DOCUMENT_ORDER_SQL, &list[at], &value))
            at++;
        assert_int_equal(query_set_add(&set, &value, &is_new), at);
        assert_int_equal(is_new, at == count);
        if (at == count)
            list[count++] = value;
    }
    assert_int_equal(set.count, count);
    assert_true(count > 100 && count < COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_in_a_set_once),
        cmocka_unit_test(a_set_agrees_with_a_list),
    };
    return cmocka_run_group_tests_name("query/value/set", tests, NULL, NULL);
}
