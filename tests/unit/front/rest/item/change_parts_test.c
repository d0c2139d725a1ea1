#include "front/rest/item/change_parts.h"

#include "support/check.h"

static const struct partition_range key = {{(const uint8_t *)"k", 1},
                                           {(const uint8_t *)"k\xFF", 2}};

/* Partitions of these ids, each up to a bound of its own; those with bounds
 * within "k" are parts of it. What an earlier map had and this has not is gone.
 */
struct one {
    uint32_t id;
    struct slice max;
};

static struct partition_map *map_of(const struct one *list, size_t count,
                                    const struct partition_map *before)
{
    struct partition_span spans[8];
    struct partition_gone gone[16];
    struct partition_map *map;
    size_t gone_count = 0, had;
    struct error err;

    for (size_t i = 0; i < count; i++) {
        struct slice min = i ? list[i - 1].max : PARTITION_ROUTING_MIN;
        bool within = min.len > 1 && min.data[0] == 'k' && min.data[1] != 0xFF;

        spans[i] =
            (struct partition_span){.id = list[i].id,
                                    .epoch = 1,
                                    .share = 1.0 / (double)count,
                                    .cut = within ? PARTITION_CUT_SPREAD : PARTITION_CUT_ISOLATED,
                                    .min = min,
                                    .max = list[i].max};
    }
    assert_ok(partition_map_new(spans, count, 1, &map, &err), &err);
    if (before) {
        const struct partition_span *old = partition_map_spans(before, &had);
        const struct partition_gone *older;

        for (size_t i = 0; i < had; i++)
            gone[gone_count++] = (struct partition_gone){old[i].id, {old[i].min, old[i].max}};
        older = partition_map_gone(before, &had);
        for (size_t i = 0; i < had; i++)
            gone[gone_count++] = older[i];
        partition_map_set_gone(map, gone, gone_count);
    }
    return map;
}

#define MAP(before, ...)                                                                           \
    map_of((const struct one[]){__VA_ARGS__},                                                      \
           sizeof((const struct one[]){__VA_ARGS__}) / sizeof(struct one), before)
#define END                                                                                        \
    {                                                                                              \
        1,                                                                                         \
        {                                                                                          \
            (const uint8_t *)"\xFF", 1                                                             \
        }                                                                                          \
    }

/* The position that a reader of one map gives to one of another, as the latter
 * shows it. */
static struct slice passed(const struct partition_map *map, const char *position,
                           struct arena *arena)
{
    struct rest_change_parts *parts = ARENA_NEW(arena, struct rest_change_parts);
    struct error err;

    assert_ok(rest_change_parts_read(slice_of_text(position), map, key, parts, &err), &err);
    return rest_change_parts_text(parts, arena);
}

static void a_reader_of_parts_goes_on_when_they_are_gathered(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(partition_map_unref)
    struct partition_map *cut = MAP(NULL, {2, SLICE("k")}, {3, SLICE("kf")}, {4, SLICE("kq")},
                                    {5, SLICE("k\xFF")}, END),
                         *whole = MAP(cut, {2, SLICE("k")}, {6, SLICE("k\xFF")}, END);
    struct rest_change_parts *parts = ARENA_NEW(arena, struct rest_change_parts);
    struct error err;

    assert_ok(rest_change_parts_begin(cut, key, parts, &err), &err);
    assert_slice_equal(rest_change_parts_text(parts, arena), SLICE("3-0~4-0~5-0"));
    parts->list[0].lsn = 7;
    rest_change_parts_rotate(parts, 1);
    assert_slice_equal(rest_change_parts_text(parts, arena), SLICE("4-0~5-0~3-7"));
    assert_slice_equal(passed(cut, "4-0~5-0~3-7", arena), SLICE("4-0~5-0~3-7"));

    /* In one partition each range still stands where it stood, until all stand
     * alike. */
    assert_slice_equal(passed(whole, "4-0~5-2~3-7", arena), SLICE("4-0~5-2~3-7"));
    assert_slice_equal(passed(whole, "4-9~5-9~3-9", arena), SLICE("9"));
}

static void a_reader_goes_on_when_the_key_is_cut_elsewhere(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(partition_map_unref)
    struct partition_map *cut =
                             MAP(NULL, {2, SLICE("k")}, {3, SLICE("km")}, {4, SLICE("k\xFF")}, END),
                         *whole = MAP(cut, {2, SLICE("k")}, {5, SLICE("k\xFF")}, END),
                         *again = MAP(whole, {2, SLICE("k")}, {6, SLICE("kf")}, {7, SLICE("kq")},
                                      {8, SLICE("k\xFF")}, END);

    assert_slice_equal(passed(again, "3-5~4-6", arena), SLICE("6-5~3.7-5~4.7-6~8-6"));
    assert_slice_equal(passed(again, "6-5~3.7-5~4.7-6~8-6", arena), SLICE("6-5~3.7-5~4.7-6~8-6"));
}

static void what_is_no_position_of_the_key_is_refused(void **state UNUSED)
{
    static const char *const wrong[] = {"-",         "3-",       "3-x",      "x-3",
                                        "3-1",       "3-1~3-2",  "3-1~4-1.", "3-1~4-1~4-1",
                                        "3.4-1",     "2-1~4-1",  "3-1~~4-1", "3.3.3.3.3-1~4-1",
                                        "3-1~4-1-1", "3-1 ~4-1", "~3-1~4-1"};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(partition_map_unref)
    struct partition_map *map =
        MAP(NULL, {2, SLICE("k")}, {3, SLICE("km")}, {4, SLICE("k\xFF")}, END);
    struct rest_change_parts *parts = ARENA_NEW(arena, struct rest_change_parts);
    struct error err;

    assert_false(rest_change_parts_is(SLICE("120")));
    assert_false(rest_change_parts_is(SLICE("*")));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_true(rest_change_parts_is(slice_of_text(wrong[i])));
        if (rest_change_parts_read(slice_of_text(wrong[i]), map, key, parts, &err))
            fail_msg("\"%s\" was taken", wrong[i]);
        assert_int_equal(err.code, ERROR_BAD_REQUEST);
    }
    assert_fails(rest_change_parts_read(SLICE("3-1~99-1"), map, key, parts, &err), &err,
                 ERROR_RANGE_GONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_of_parts_goes_on_when_they_are_gathered),
        cmocka_unit_test(a_reader_goes_on_when_the_key_is_cut_elsewhere),
        cmocka_unit_test(what_is_no_position_of_the_key_is_refused),
    };

    return cmocka_run_group_tests_name("positions of spread keys", tests, NULL, NULL);
}
