#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/traversal.h"

#include "front/gremlin/value/compare.h"
#include "support/check.h"
#include "support/gremlin_values.h"

static struct gremlin_value text(struct gremlin_heap *heap, const char *s)
{
    return gremlin_string(heap, slice_of_text(s));
}

static void everything_is_given_back_with_its_last_reference(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct random random;

    random_seed(&random, 1);
    for (int i = 0; i < 2000; i++)
        gremlin_value_unref(gremlin_random_value(heap, &random, GREMLIN_RANDOM_ALL, 3));
    assert_int_equal(gremlin_heap_used(heap), 0);
}

static void a_heap_is_freed_whatever_is_still_held(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct random random;

    random_seed(&random, 2);
    for (int i = 0; i < 100; i++)
        (void)gremlin_random_value(heap, &random, GREMLIN_RANDOM_ALL, 3);
    assert_true(gremlin_heap_used(heap) > 0);
}

static void a_heap_fails_at_its_limit_and_goes_on(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free)
    struct gremlin_heap *heap = gremlin_heap_new(&(struct gremlin_heap_options){.limit = 100000});
    struct gremlin_value list = gremlin_list_new(heap, 0);
    struct error err = {};

    assert_false(gremlin_heap_failed(heap));
    for (int i = 0; i < 100000; i++)
        gremlin_list_add(list, gremlin_int(i));
    assert_true(gremlin_heap_failed(heap));
    assert_false(gremlin_heap_error(heap, &err));
    assert_int_equal(err.code, ERROR_TOO_LARGE);
    assert_int_equal(gremlin_list(list)->count, 100000);
}

static void what_a_heap_holds_is_on_its_meter(void **state UNUSED)
{
    struct memory_meter meter;
    struct gremlin_heap *heap;
    struct error err = {};

    memory_meter_init(&meter, NULL, 50000);
    heap = gremlin_heap_new(&(struct gremlin_heap_options){.meter = &meter});
    for (int i = 0; i < 1000; i++)
        (void)text(heap, "a text of some length so that the meter fills up before long");
    assert_int_equal(memory_meter_used(&meter), gremlin_heap_held(heap));
    assert_true(gremlin_heap_failed(heap));
    assert_false(gremlin_heap_error(heap, &err));
    assert_int_equal(err.code, ERROR_MEMORY_FULL);
    gremlin_heap_free(heap);
    assert_int_equal(memory_meter_used(&meter), 0);
}

static void values_of_a_shared_heap_are_not_counted(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free)
    struct gremlin_heap *heap = gremlin_heap_new(&(struct gremlin_heap_options){.shared = true});
    struct gremlin_value value = text(heap, "kept");

    gremlin_value_unref(value);
    gremlin_value_unref(value);
    assert_slice_equal(gremlin_bytes(value), SLICE("kept"));
}

static void deep_values_end_without_recursion(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value nested = gremlin_list_new(heap, 0);
    struct gremlin_path *path = NULL;

    for (int i = 0; i < 300000; i++) {
        struct gremlin_value outer = gremlin_list_new(heap, 1);
        struct gremlin_path *longer =
            gremlin_path_extend(heap, path, gremlin_int(i), GREMLIN_NOTHING);

        gremlin_list_add_take(outer, nested);
        nested = outer;
        gremlin_object_unref(path);
        path = longer;
    }
    assert_int_equal(path->length, 300000);
    gremlin_value_unref(nested);
    gremlin_object_unref(path);
    assert_int_equal(gremlin_heap_used(heap), 0);
}

static void maps_keep_order_and_find_by_equivalence(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    CLEANUP(gremlin_value_unref) struct gremlin_value map = gremlin_map_new(heap);

    for (int i = 0; i < 1000; i++) {
        CLEANUP(gremlin_value_unref) struct gremlin_value key = gremlin_int(i * 7 % 1000);

        gremlin_map_put(map, key, gremlin_int(i));
    }
    assert_int_equal(gremlin_table(map)->count, 1000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(gremlin_table(map)->rows[i].key.integer, i * 7 % 1000);
        assert_int_equal(gremlin_map_get(map, gremlin_int(i * 7 % 1000))->integer, i);
        assert_null(gremlin_map_get(map, gremlin_long(i)));
    }
    gremlin_map_put(map, gremlin_int(7), gremlin_int(-1));
    assert_int_equal(gremlin_table(map)->count, 1000);
    assert_int_equal(gremlin_table(map)->rows[1].value.integer, -1);
}

static void sets_hold_each_once_and_bulk_sets_count(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value set = gremlin_set_new(heap);
    struct gremlin_value bulk = gremlin_table_new(heap, GREMLIN_BULK_SET, 0);
    struct gremlin_value a = text(heap, "a"), again = text(heap, "a");

    assert_true(gremlin_set_add(set, a));
    assert_false(gremlin_set_add(set, again));
    assert_true(gremlin_set_add(set, gremlin_int(1)));
    assert_true(gremlin_set_add(set, gremlin_double(1)));
    gremlin_bulk_set_add(bulk, a, 2);
    gremlin_bulk_set_add(bulk, again, 3);
    assert_int_equal(gremlin_table(bulk)->count, 1);
    assert_int_equal(gremlin_bulk_set_size(bulk), 5);
}

static void collections_are_walked_alike(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_path *path =
        gremlin_path_extend(heap, gremlin_path_extend(heap, NULL, gremlin_int(1), GREMLIN_NOTHING),
                            gremlin_int(2), GREMLIN_NOTHING);
    CLEANUP(gremlin_collection_done) struct gremlin_cursor cursor = {};
    CLEANUP(gremlin_collection_done) struct gremlin_cursor early = {};
    struct gremlin_value item, map = gremlin_map_new(heap);
    int64_t bulk;

    for (int i = 1; i <= 2; i++) {
        assert_true(gremlin_collection_next(gremlin_value_of_take(path), &cursor, &item, &bulk));
        assert_int_equal(item.integer, i);
    }
    assert_false(gremlin_collection_next(gremlin_value_of_take(path), &cursor, &item, &bulk));
    assert_true(gremlin_collection_next(gremlin_value_of_take(path), &early, &item, &bulk));

    gremlin_map_put(map, gremlin_int(5), gremlin_int(6));
    cursor = (struct gremlin_cursor){};
    assert_true(gremlin_collection_next(map, &cursor, &item, &bulk));
    assert_int_equal(item.type, GREMLIN_ENTRY);
    assert_int_equal(gremlin_entry(item)->value.integer, 6);
    assert_false(gremlin_collection_next(gremlin_int(1), &cursor, &item, &bulk));
}

static void paths_share_what_they_have_in_common(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value labels = gremlin_set_new(heap), more = gremlin_set_new(heap);
    struct gremlin_path *first = gremlin_path_extend(heap, NULL, gremlin_int(1), GREMLIN_NOTHING);
    struct gremlin_path *left = gremlin_path_extend(heap, first, gremlin_int(2), labels);
    struct gremlin_path *right = gremlin_path_extend(heap, first, gremlin_int(3), labels);
    struct gremlin_path *labelled;
    const struct gremlin_path *nodes[2];

    gremlin_set_add(labels, text(heap, "a"));
    gremlin_set_add(more, text(heap, "b"));
    assert_ptr_equal(left->before, right->before);
    gremlin_path_nodes(right, nodes);
    assert_int_equal(nodes[0]->value.integer, 1);
    assert_int_equal(nodes[1]->value.integer, 3);
    labelled = gremlin_path_label(heap, right, more);
    assert_int_equal(labelled->length, 2);
    assert_int_equal(gremlin_table(labelled->labels)->count, 2);
    assert_int_equal(gremlin_table(right->labels)->count, 1);
}

/* A source that counts how often it is asked. */
static int asked;

static bool source_select(const struct gremlin_element *element, const struct slice *keys,
                          size_t count, struct gremlin_properties *into, struct error *err UNUSED)
{
    struct gremlin_heap *heap = element->object.heap;

    asked++;
    for (size_t i = 0; i < count; i++)
        gremlin_properties_add_take(into,
                                    (struct gremlin_slot){.key = gremlin_string(heap, keys[i]),
                                                          .value = gremlin_int((int)i)});
    return true;
}

static void properties_are_asked_of_their_source(void **state UNUSED)
{
    static const struct gremlin_source source = {source_select};
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value vertex = gremlin_test_vertex(heap, "1", "person");
    struct gremlin_properties *found = gremlin_properties_new(heap, 0);
    struct slice keys[] = {SLICE("name"), SLICE("age")};
    struct error err = {};

    assert_ok(gremlin_element_select(vertex, keys, 2, found, &err), &err);
    assert_int_equal(found->count, 0); /* a reference has none */
    gremlin_element_set_source_take(vertex, &source, NULL, NULL);
    assert_ok(gremlin_element_select(vertex, keys, 2, found, &err), &err);
    assert_int_equal(asked, 1);
    assert_int_equal(found->count, 2);
    gremlin_element_set_take(vertex, found);
    found = gremlin_properties_new(heap, 0);
    assert_ok(gremlin_element_select(vertex, keys + 1, 1, found, &err), &err);
    assert_int_equal(asked, 1);
    assert_int_equal(found->count, 1);
    assert_slice_equal(gremlin_bytes(found->slots[0].key), SLICE("age"));
}

static void copies_on_another_heap_are_equal(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *other = gremlin_test_heap();
    struct gremlin_value copies[500];
    uint64_t hashes[ARRAY_LEN(copies)];
    struct random random;
    struct error err = {};

    random_seed(&random, 3);
    for (size_t i = 0; i < ARRAY_LEN(copies); i++) {
        CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
        struct gremlin_value value = gremlin_random_value(heap, &random, GREMLIN_RANDOM_DATA, 3);

        assert_ok(gremlin_value_copy(other, value, &copies[i], &err), &err);
        assert_true(gremlin_equivalent(value, copies[i]));
        hashes[i] = gremlin_hash(value, 7);
    }
    for (size_t i = 0; i < ARRAY_LEN(copies); i++) { /* the heaps they came from are gone */
        assert_true(gremlin_hash(copies[i], 7) == hashes[i]);
        gremlin_value_unref(copies[i]);
    }
    assert_int_equal(gremlin_heap_used(other), 0);
}

static void words_are_found_and_named(void **state UNUSED)
{
    struct gremlin_value word;
    enum gremlin_enum_family family;

    assert_true(gremlin_family_find(SLICE("Order"), &family));
    assert_true(gremlin_word_find(family, SLICE("decr"), &word));
    assert_true(gremlin_is_word(word, GREMLIN_ORDER_DECR));
    assert_int_equal(gremlin_word_canonical(GREMLIN_ORDER_DECR), GREMLIN_ORDER_DESC);
    assert_slice_equal(gremlin_word_text(gremlin_word(GREMLIN_T_ID).word), SLICE("id"));
    assert_false(gremlin_word_find(GREMLIN_ENUM_T, SLICE("asc"), &word));
    assert_false(gremlin_family_find(SLICE("Nothing"), &family));
    assert_int_equal(gremlin_family_code(GREMLIN_ENUM_DIRECTION), 0x18);
}

static void uuids_are_read_and_written(void **state UNUSED)
{
    char text_of[GREMLIN_UUID_TEXT];
    uint8_t bytes[16];

    assert_true(gremlin_uuid_parse(SLICE("41D2e28a-20a4-4ab0-b379-d810dede3786"), bytes));
    gremlin_uuid_format(bytes, text_of);
    assert_slice_equal(slice_of(text_of, sizeof text_of),
                       SLICE("41d2e28a-20a4-4ab0-b379-d810dede3786"));
    assert_false(gremlin_uuid_parse(SLICE("41d2e28a-20a4-4ab0-b379-d810dede378"), bytes));
    assert_false(gremlin_uuid_parse(SLICE("41d2e28a+20a4-4ab0-b379-d810dede3786"), bytes));
    assert_false(gremlin_uuid_parse(SLICE("41d2e28g-20a4-4ab0-b379-d810dede3786"), bytes));
}

static void predicates_are_made_of_what_they_take(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value list = gremlin_list_new(heap, 2), predicate, one = gremlin_int(1);
    struct error err = {};

    gremlin_list_add(list, gremlin_int(1));
    gremlin_list_add(list, gremlin_int(2));
    assert_ok(gremlin_predicate_new(heap, SLICE("within"), &list, 1, &predicate, &err), &err);
    assert_int_equal(gremlin_predicate(predicate)->count, 2);
    assert_true(gremlin_predicate(predicate)->listed);
    assert_ok(gremlin_predicate_new(heap, SLICE("between"), &list, 1, &predicate, &err), &err);
    assert_int_equal(gremlin_predicate(predicate)->count, 2);
    assert_ok(gremlin_predicate_new(heap, SLICE("eq"), &list, 1, &predicate, &err), &err);
    assert_int_equal(gremlin_predicate(predicate)->count, 1);
    assert_fails(gremlin_predicate_new(heap, SLICE("between"), &one, 1, &predicate, &err), &err,
                 ERROR_GREMLIN_COMPILE);
    assert_fails(gremlin_predicate_new(heap, SLICE("and"), &one, 1, &predicate, &err), &err,
                 ERROR_GREMLIN_COMPILE);
    assert_fails(gremlin_predicate_new(heap, SLICE("nearly"), &one, 1, &predicate, &err), &err,
                 ERROR_GREMLIN_COMPILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_given_back_with_its_last_reference),
        cmocka_unit_test(a_heap_is_freed_whatever_is_still_held),
        cmocka_unit_test(a_heap_fails_at_its_limit_and_goes_on),
        cmocka_unit_test(what_a_heap_holds_is_on_its_meter),
        cmocka_unit_test(values_of_a_shared_heap_are_not_counted),
        cmocka_unit_test(deep_values_end_without_recursion),
        cmocka_unit_test(maps_keep_order_and_find_by_equivalence),
        cmocka_unit_test(sets_hold_each_once_and_bulk_sets_count),
        cmocka_unit_test(collections_are_walked_alike),
        cmocka_unit_test(paths_share_what_they_have_in_common),
        cmocka_unit_test(properties_are_asked_of_their_source),
        cmocka_unit_test(copies_on_another_heap_are_equal),
        cmocka_unit_test(words_are_found_and_named),
        cmocka_unit_test(uuids_are_read_and_written),
        cmocka_unit_test(predicates_are_made_of_what_they_take),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
