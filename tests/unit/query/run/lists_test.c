/* Entries of terms in memory: found at their LSN, made from the second search on, bounded. */
#include "query/run/lists.h"

#include "base/bytes.h"
#include "index/policy.h"
#include "support/check.h"

static struct query_list_key key_of(uint64_t lsn, const char *term)
{
    return (struct query_list_key){.node = 1,
                                   .partition = 7,
                                   .epoch = 3,
                                   .lsn = lsn,
                                   .prefix = SLICE("path"),
                                   .value = slice_of_text(term)};
}

static bool entry_add(struct query_list *list, uint64_t number, size_t key_len)
{
    static const uint8_t zeros[4096];
    uint8_t said[INDEX_TERM_SAID] = {0, 0, 2, 0, 0, (uint8_t)number};

    return query_list_add(list, &(struct cursor_hit){.routing = slice_of(zeros, 4),
                                                     .number = number,
                                                     .key = slice_of(zeros, key_len),
                                                     .said = slice_of(said, sizeof said)});
}

static void list_put(struct query_lists *lists, uint64_t lsn, const char *term, uint64_t entries)
{
    struct query_list_key key = key_of(lsn, term);
    CLEANUP(query_list_unref) struct query_list *list = query_list_begin(&key);

    for (uint64_t i = 1; i <= entries; i++)
        assert_true(entry_add(list, i, 10));
    query_lists_put(lists, list);
}

static bool is_found(struct query_lists *lists, uint64_t lsn, const char *term)
{
    struct query_list_key key = key_of(lsn, term);
    CLEANUP(query_list_unref) struct query_list *list = query_lists_find(lists, &key);

    return list != NULL;
}

static void a_list_is_found_at_its_lsn(void **state UNUSED)
{
    CLEANUP(query_lists_free) struct query_lists *lists = query_lists_new(1 << 20);
    CLEANUP(query_list_unref) struct query_list *list = NULL;
    struct query_list_key key = key_of(5, "boat");
    struct cursor_hit hit;
    uint32_t often, terms;

    list_put(lists, 5, "boat", 100);
    assert_false(is_found(lists, 6, "boat"));
    assert_false(is_found(lists, 5, "boats"));
    list = query_lists_find(lists, &key);
    assert_non_null(list);
    assert_int_equal(query_list_count(list), 100);
    query_list_at(list, 41, &hit);
    assert_int_equal(hit.number, 42);
    assert_int_equal(hit.routing.len, 4);
    assert_int_equal(hit.key.len, 10);
    index_term_said(hit.said, &often, &terms);
    assert_int_equal(often, 2);
    assert_int_equal(terms, 42);
    /* one of a later LSN takes its place; whoever has it keeps it */
    list_put(lists, 6, "boat", 1);
    assert_false(is_found(lists, 5, "boat"));
    assert_true(is_found(lists, 6, "boat"));
    assert_int_equal(query_list_count(list), 100);
}

static void the_second_search_at_an_lsn_makes_lists(void **state UNUSED)
{
    CLEANUP(query_lists_free) struct query_lists *lists = query_lists_new(1 << 20);
    CLEANUP(query_lists_free) struct query_lists *none = query_lists_new(0);
    struct query_list_key first = key_of(5, ""), second = key_of(6, "");

    assert_false(query_lists_again(lists, &first));
    assert_true(query_lists_again(lists, &first));
    assert_false(query_lists_again(lists, &second));
    assert_false(query_lists_again(lists, &first));
    assert_false(query_lists_again(none, &first));
    assert_false(query_lists_again(none, &first));
}

static void the_one_that_was_used_longest_ago_makes_way(void **state UNUSED)
{
    enum { BYTES_MAX = 256 * 1024 };
    CLEANUP(query_lists_free) struct query_lists *lists = query_lists_new(BYTES_MAX);
    char term[16];

    list_put(lists, 5, "used", 500);
    for (int i = 0; i < 100; i++) {
        snprintf(term, sizeof term, "t%d", i);
        list_put(lists, 5, term, 500);
        assert_true(is_found(lists, 5, "used"));
        assert_true(query_lists_bytes(lists) <= BYTES_MAX);
    }
    assert_false(is_found(lists, 5, "t0"));
    assert_true(is_found(lists, 5, "t99"));
}

static void too_many_entries_are_walked(void **state UNUSED)
{
    CLEANUP(query_lists_free) struct query_lists *lists = query_lists_new(64 << 20);
    CLEANUP(query_list_unref) struct query_list *list = NULL, *wide = NULL, *found = NULL;
    struct query_list_key key = key_of(5, "many"), other = key_of(5, "wide");
    uint64_t number = 1;

    list = query_list_begin(&key);
    while (entry_add(list, number, 10))
        number++;
    assert_true(number > 60000);
    assert_true(query_list_is_long(list));
    assert_int_equal(query_list_count(list), 0);
    query_lists_put(lists, list);
    found = query_lists_find(lists, &key);
    assert_true(found && query_list_is_long(found));
    assert_true(query_list_tried(found) > number);
    wide = query_list_begin(&other);
    for (number = 1; entry_add(wide, number, 4096); number++)
        assert_true(number < 4000); /* by their bytes */
    assert_true(query_list_is_long(wide));
}

/* Who has read as far as he wanted says how far that was: others may want more. */
static void a_list_may_be_given_up(void **state UNUSED)
{
    struct query_list_key key = key_of(5, "boat");
    CLEANUP(query_list_unref) struct query_list *list = query_list_begin(&key);

    for (uint64_t i = 1; i <= 100; i++)
        assert_true(entry_add(list, i, 10));
    assert_false(query_list_is_long(list));
    query_list_give_up(list);
    assert_true(query_list_is_long(list));
    assert_int_equal(query_list_tried(list), 100);
    assert_int_equal(query_list_count(list), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_found_at_its_lsn),
        cmocka_unit_test(the_second_search_at_an_lsn_makes_lists),
        cmocka_unit_test(the_one_that_was_used_longest_ago_makes_way),
        cmocka_unit_test(too_many_entries_are_walked),
        cmocka_unit_test(a_list_may_be_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
