/* Values come back from their stored form as they were, with their types. */
#include "front/gremlin/graph/stored.h"

#include "front/gremlin/value/big.h"
#include "front/gremlin/value/compare.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/text.h"
#include "support/check.h"
#include "support/gremlin_values.h"

static struct gremlin_value through(struct gremlin_heap *heap, struct arena *arena,
                                    struct gremlin_value value)
{
    struct document_value stored, tag;
    struct error err = {0};

    assert_ok(gremlin_stored_encode(&value, arena, &stored, &tag, &err), &err);
    return gremlin_stored_decode(heap, &stored, tag.type == DOCUMENT_UNDEFINED ? NULL : &tag);
}

static void check_same(struct gremlin_heap *heap, struct arena *arena, struct gremlin_value value)
{
    struct gremlin_value back = through(heap, arena, value);

    if (back.type != value.type || !gremlin_equivalent(back, value))
        fail_msg("%s became %s", gremlin_type_name(value.type), gremlin_type_name(back.type));
    gremlin_value_unref(back);
}

static void every_type_survives(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    CLEANUP(arena_free) struct arena *arena = arena_new();
    static const uint8_t bytes[16] = {1, 2, 3, 255};
    struct gremlin_value list[64];
    size_t count = 0;

    list[count++] = gremlin_boolean(true);
    list[count++] = gremlin_integer(GREMLIN_BYTE, -7);
    list[count++] = gremlin_integer(GREMLIN_SHORT, 300);
    list[count++] = gremlin_int(1 << 30);
    list[count++] = gremlin_long(3);
    list[count++] = gremlin_float(0.1f);
    list[count++] = gremlin_double(2.0);
    list[count++] = gremlin_integer(GREMLIN_CHAR, 0x1F600);
    list[count++] = gremlin_integer(GREMLIN_CHAR, 'x');
    list[count++] = gremlin_date(1234567890123);
    list[count++] = gremlin_integer(GREMLIN_TIMESTAMP, 5);
    list[count++] = gremlin_string(heap, SLICE("text"));
    list[count++] = gremlin_bytes_new(heap, GREMLIN_UUID, slice_of(bytes, 16));
    list[count++] = gremlin_bytes_new(heap, GREMLIN_BINARY, slice_of(bytes, 5));
    list[count++] = gremlin_bytes_new(heap, GREMLIN_CLASS, SLICE("java.lang.String"));
    list[count++] = gremlin_date_time_new(heap, 1700000000, 123456789, 7200);
    list[count++] = gremlin_duration_new(heap, 90, 500000000);
    list[count++] = gremlin_temporal_new(heap, SLICE("LocalDate"), SLICE("2024-01-02"));
    assert_true(gremlin_big_integer(heap, SLICE("12"), &list[count++]));
    assert_true(gremlin_big_integer(heap, SLICE("123456789012345678901234567890"), &list[count++]));
    assert_true(gremlin_big_integer(
        heap, SLICE("-1234567890123456789012345678901234567890123456789"), &list[count++]));
    assert_true(gremlin_big_decimal(heap, SLICE("1.50"), &list[count++]));
    assert_true(gremlin_big_decimal(
        heap, SLICE("3.14159265358979323846264338327950288419716939937510"), &list[count++]));
    for (size_t i = 0; i < count; i++)
        check_same(heap, arena, list[i]);
    { /* and all of them in a list, a set and a map */
        struct gremlin_value all = gremlin_list_new(heap, 0), set = gremlin_set_new(heap),
                             map = gremlin_map_new(heap);

        for (size_t i = 0; i < count; i++) {
            struct gremlin_value key = gremlin_string(heap, arena_printf(arena, "key %zu", i));

            gremlin_list_add(all, list[i]);
            gremlin_set_add(set, list[i]);
            gremlin_map_put(map, key, list[i]);
            gremlin_value_unref(key);
        }
        check_same(heap, arena, all);
        check_same(heap, arena, set);
        check_same(heap, arena, map);
        gremlin_list_add_take(all, set);
        gremlin_list_add_take(all, map);
        check_same(heap, arena, all);
        gremlin_value_unref(all);
    }
    for (size_t i = 0; i < count; i++)
        gremlin_value_unref(list[i]);
}

static void what_cannot_be_stored_is_refused(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct gremlin_value vertex = gremlin_test_vertex(heap, "1", "x"), deep, map;
    struct document_value stored, tag;
    struct error err = {0};

    assert_fails(gremlin_stored_encode(&vertex, arena, &stored, &tag, &err), &err,
                 ERROR_BAD_REQUEST);
    gremlin_value_unref(vertex);
    map = gremlin_map_new(heap);
    gremlin_map_put(map, gremlin_int(1), gremlin_int(2));
    assert_fails(gremlin_stored_encode(&map, arena, &stored, &tag, &err), &err, ERROR_BAD_REQUEST);
    gremlin_value_unref(map);
    deep = gremlin_list_new(heap, 0);
    for (int i = 0; i < 100; i++) {
        struct gremlin_value outer = gremlin_list_new(heap, 0);

        gremlin_list_add_take(outer, deep);
        deep = outer;
    }
    assert_fails(gremlin_stored_encode(&deep, arena, &stored, &tag, &err), &err, ERROR_TOO_DEEP);
    gremlin_value_unref(deep);
}

static void ids_are_texts(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct gremlin_value number = gremlin_long(17), nothing = GREMLIN_NOTHING;
    struct slice text;

    assert_true(gremlin_stored_id(&number, arena, &text));
    assert_slice_equal(text, SLICE("17"));
    assert_false(gremlin_stored_id(&nothing, arena, &text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_survives),
        cmocka_unit_test(what_cannot_be_stored_is_refused),
        cmocka_unit_test(ids_are_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
