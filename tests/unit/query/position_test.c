#include "query/position.h"

#include "base/random.h"
#include "support/check.h"

static struct query_position some_position(void)
{
    return (struct query_position){
        .begun = true,
        .window = {SLICE("\x10\x20"), SLICE("\xFF")},
        .place = {.key = SLICE("key"),
                  .routing = SLICE("routing"),
                  .number = UINT64_MAX,
                  .rows = 3},
        .access = 77,
        .sorted = true,
        .offset = 5,
        .limit = UINT64_MAX,
        .now_ticks = INT64_C(17000000000000000),
        .cached = 12345678901,
        .states = SLICE("states"),
    };
}

static void a_position_comes_back_as_it_was(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_position before = some_position(), after;
    struct slice saved = query_position_save(&before, 9, arena);
    struct error err;

    assert_ok(query_position_load(saved, 9, &after, &err), &err);
    assert_true(after.begun && after.sorted);
    assert_slice_equal(after.window.min, before.window.min);
    assert_slice_equal(after.window.max, before.window.max);
    assert_slice_equal(after.place.key, before.place.key);
    assert_slice_equal(after.place.routing, before.place.routing);
    assert_true(after.place.number == UINT64_MAX && after.place.rows == 3);
    assert_true(after.access == 77 && after.offset == 5 && after.limit == UINT64_MAX);
    assert_true(after.now_ticks == before.now_ticks && after.cached == before.cached);
    assert_slice_equal(after.states, before.states);
}

static void a_position_of_another_plan_or_cut_short_is_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_position position = some_position(), after;
    struct slice saved = query_position_save(&position, 9, arena);
    struct error err;

    assert_fails(query_position_load(saved, 10, &after, &err), &err, ERROR_BAD_REQUEST);
    for (size_t len = 0; len < saved.len; len++)
        assert_fails(query_position_load(slice_first(saved, len), 9, &after, &err), &err,
                     ERROR_BAD_REQUEST);
}

static bool lies_in(struct slice part, struct slice whole)
{
    return part.len == 0 ||
           (part.data >= whole.data && part.data + part.len <= whole.data + whole.len);
}

/* What is taken at all is a position of this plan with nothing in it that was not given, and is
 * written as it was read. */
static void bytes_that_were_changed_never_lead_astray(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_position position = some_position(), after;
    struct slice saved = query_position_save(&position, 9, arena);
    struct random random;
    size_t taken = 0, refused = 0;
    struct error err;

    random_seed(&random, 1);
    for (int i = 0; i < 20000; i++) {
        uint8_t *bytes = (uint8_t *)arena_copy(arena, saved).data;
        struct slice changed = slice_of(bytes, saved.len);

        bytes[random_below(&random, saved.len)] ^= (uint8_t)(1 + random_below(&random, 255));
        if (!query_position_load(changed, 9, &after, &err)) {
            assert_int_equal(err.code, ERROR_BAD_REQUEST);
            refused++;
        } else {
            struct query_position again;

            assert_true(lies_in(after.window.min, changed) && lies_in(after.window.max, changed));
            assert_true(lies_in(after.place.key, changed) && lies_in(after.place.routing, changed));
            assert_true(lies_in(after.states, changed));
            assert_ok(query_position_load(query_position_save(&after, 9, arena), 9, &again, &err),
                      &err);
            assert_true(again.offset == after.offset && again.limit == after.limit);
            assert_true(again.place.number == after.place.number && again.access == after.access);
            assert_slice_equal(again.place.routing, after.place.routing);
            taken++;
        }
        if (i % 100 == 0) {
            arena_reset(arena);
            saved = query_position_save(&position, 9, arena);
        }
    }
    assert_true(taken > 0 && refused > 0);
}

static void a_long_key_is_cut_and_known_to_be(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_position position = some_position(), after;
    char key[600];
    struct error err;

    memset(key, 'x', sizeof key);
    position.place.key = slice_of(key, sizeof key);
    assert_ok(query_position_load(query_position_save(&position, 9, arena), 9, &after, &err), &err);
    assert_int_equal(after.place.key.len, QUERY_PLACE_KEY_MAX);
    assert_true(after.place.cut);
}

static void what_does_not_fit_is_not_saved(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct query_position position = some_position();
    char states[QUERY_CONTINUATION_MAX] = {0};

    position.states = slice_of(states, sizeof states);
    assert_null(query_position_save(&position, 9, arena).data);
}

static void places_are_ordered_by_key_then_routing_then_number(void **state UNUSED)
{
    struct query_place a = {.key = SLICE("a"), .routing = SLICE("r"), .number = 5};
    struct query_place b = {.key = SLICE("a"), .routing = SLICE("r"), .number = 6};
    struct query_place c = {.key = SLICE("a"), .routing = SLICE("s"), .number = 1};
    struct query_place d = {.key = SLICE("b"), .routing = SLICE("a"), .number = 1};

    assert_true(query_place_compare(&a, &b) < 0 && query_place_compare(&b, &c) < 0 &&
                query_place_compare(&c, &d) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_position_comes_back_as_it_was),
        cmocka_unit_test(a_position_of_another_plan_or_cut_short_is_refused),
        cmocka_unit_test(bytes_that_were_changed_never_lead_astray),
        cmocka_unit_test(a_long_key_is_cut_and_known_to_be),
        cmocka_unit_test(what_does_not_fit_is_not_saved),
        cmocka_unit_test(places_are_ordered_by_key_then_routing_then_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
