#include "item/cursor.h"

#include "base/random.h"
#include "document/order.h"
#include "engine/upkeep.h"
#include "index/policy.h"
#include "item/operation.h"
#include "partition/strategy.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"

struct fixture {
    struct test_space test;
    struct arena *arena;
    struct view view;
};

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);
    struct engine *engine;
    struct error err;

    f->arena = arena_new();
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&f->test, engine, &(struct test_space_options){0});
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    view_done(&f->view);
    test_space_done(&f->test);
    arena_free(f->arena);
    memory_free(f);
    return 0;
}

static void put(struct fixture *f, const char *json)
{
    struct slice document = document_of(f->arena, json);
    struct partition_key key = partition_key_extract(&f->test.definition.key, document);
    struct transaction_options options = {0};
    struct document_value id;
    struct error err;

    assert_true(document_find(document, SLICE("id"), &id));
    assert_ok(item_operation_run(&(struct item_operation){.space = &f->test.space,
                                                          .arena = f->arena,
                                                          .verb = ITEM_UPSERT,
                                                          .key = key,
                                                          .id = id,
                                                          .document = document,
                                                          .options = options},
                                 &err),
              &err);
}

/* Items 0 to 29: pk p0 to p2, a from 0 to 4. */
static void put_thirty(struct fixture *f)
{
    for (int i = 0; i < 30; i++) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"%02d\",\"pk\":\"p%d\",\"a\":%d}", i, i % 3, i % 5);
        put(f, json);
    }
}

static void look(struct fixture *f)
{
    struct item_scope scope =
        item_space_span_scope(&f->test.space, partition_map_find_id(f->test.space.map, 1));
    struct error err;

    assert_ok(view_open(&scope, &f->view, &err), &err);
}

static struct slice path_of(struct fixture *f, const char *text)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_path path;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(document_path_parse(slice_of_text(text), DOCUMENT_PATH_INDEX, f->arena, &path, &err),
              &err);
    index_path_append(&path, &buf);
    return arena_copy(f->arena, buf_slice(&buf));
}

static struct slice key_of(struct fixture *f, int32_t number)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value = document_int32(number);

    buf_init(&buf, BUF_DEFAULT_MAX);
    document_key_append(DOCUMENT_ORDER_SQL, &value, &buf);
    return arena_copy(f->arena, buf_slice(&buf));
}

static struct cursor_range point(struct fixture *f, int32_t number)
{
    struct slice key = key_of(f, number);

    return (struct cursor_range){key, cursor_prefix_end(f->arena, key)};
}

struct walked {
    size_t count;
    uint64_t numbers[64];
    uint8_t values[64]; /* a byte that tells them apart */
};

static struct walked walk(struct fixture *f, struct cursor *cursor)
{
    struct walked walked = {0};
    struct cursor_hit hit;
    struct error err;
    bool more;

    (void)f;
    for (;;) {
        assert_ok(cursor_next(cursor, &hit, &more, &err), &err);
        if (!more)
            return walked;
        walked.numbers[walked.count] = hit.number;
        walked.values[walked.count++] = hit.value.len ? hit.value.data[hit.value.len - 1] : 0;
    }
}

static struct cursor_request index_request(struct fixture *f, const struct cursor_range *ranges,
                                           size_t count)
{
    return (struct cursor_request){.kind = CURSOR_INDEX,
                                   .path = path_of(f, "/a/?"),
                                   .value_count = 1,
                                   .ranges = ranges,
                                   .range_count = count};
}

static void several_ranges_are_walked_by_one_cursor_both_ways(void **state)
{
    struct fixture *f = *state;
    struct cursor_range ranges[] = {point(f, 0), point(f, 2), point(f, 4)};
    struct walked there, back;

    put_thirty(f);
    look(f);
    for (int backwards = 0; backwards < 2; backwards++) {
        CLEANUP(cursor_free) struct cursor *cursor = NULL;
        struct cursor_request request = index_request(f, ranges, 3);
        struct error err;

        request.backwards = backwards;
        assert_ok(cursor_open(&f->view, &request, &cursor, &err), &err);
        *(backwards ? &back : &there) = walk(f, cursor);
    }
    assert_int_equal(there.count, 18);
    assert_int_equal(back.count, 18);
    for (size_t i = 0; i < 18; i++) {
        assert_true(there.numbers[i] == back.numbers[17 - i]);
        assert_true(i == 0 || there.values[i] >= there.values[i - 1]);
    }
}

static void a_cursor_goes_on_behind_any_hit(void **state)
{
    struct fixture *f = *state;
    struct cursor_range all = {SLICE("\x01"), SLICE("\xFF")};

    put_thirty(f);
    look(f);
    for (int backwards = 0; backwards < 2; backwards++) {
        for (size_t stop = 1; stop <= 30; stop++) {
            CLEANUP(cursor_free) struct cursor *first = NULL;
            CLEANUP(cursor_free) struct cursor *second = NULL;
            struct cursor_request request = index_request(f, &all, 1);
            struct cursor_hit hit;
            struct error err;
            bool more;

            request.backwards = backwards;
            assert_ok(cursor_open(&f->view, &request, &first, &err), &err);
            assert_ok(cursor_open(&f->view, &request, &second, &err), &err);
            for (size_t i = 0; i < stop; i++)
                assert_ok(cursor_next(first, &hit, &more, &err), &err);
            assert_ok(cursor_seek_behind(second, hit.value, hit.routing, hit.number, &err), &err);
            assert_int_equal(walk(f, second).count, 30 - stop);
        }
    }
}

static void a_logical_partition_is_found_among_the_entries_of_others(void **state)
{
    struct fixture *f = *state;
    struct cursor_range all = {SLICE("\x01"), SLICE("\xFF")};
    struct partition_key key;

    for (int i = 0; i < 300; i++) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"%d\",\"pk\":\"q%d\",\"a\":%d}", i, i, i % 2);
        put(f, json);
    }
    look(f);
    for (int i = 0; i < 300; i += 7) {
        for (int backwards = 0; backwards < 2; backwards++) {
            CLEANUP(cursor_free) struct cursor *cursor = NULL;
            struct cursor_request request = index_request(f, &all, 1);
            char json[16];
            struct error err;

            snprintf(json, sizeof json, "[\"q%d\"]", i);
            key = test_space_key(&f->test, json);
            request.logical = item_logical(&f->test.definition.key, &key, f->arena);
            request.backwards = backwards;
            assert_ok(cursor_open(&f->view, &request, &cursor, &err), &err);
            assert_int_equal(walk(f, cursor).count, 1);
            assert_true(backwards || cursor_entries(cursor) < 60);
        }
    }
}

/* Placed by range, routing keys are as long as their texts: seeking from the entries of a long one
 * to those of a short one must not go past them. */
static void a_short_routing_key_is_found_behind_long_ones(void **state)
{
    struct fixture *f = *state;
    struct cursor_range all[] = {{key_of(f, 0), key_of(f, 100)}};
    struct cursor_request request;
    struct partition_key key;
    struct engine *engine;
    struct error err;

    test_space_done(&f->test);
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&f->test, engine,
                    &(struct test_space_options){.partitions = 2, .bounds = {"z"}});
    for (int i = 0; i < 60; i++) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"%02d\",\"pk\":\"%s\",\"a\":%d}", i,
                 i % 20 ? "a text that is long" : "b", i / 20);
        put(f, json);
    }
    look(f);
    key = test_space_key(&f->test, "[\"b\"]");
    for (int backwards = 0; backwards < 2; backwards++) {
        CLEANUP(cursor_free) struct cursor *cursor = NULL;

        request = index_request(f, all, 1);
        request.logical = item_logical(&f->test.definition.key, &key, f->arena);
        request.backwards = backwards;
        assert_ok(cursor_open(&f->view, &request, &cursor, &err), &err);
        assert_int_equal(walk(f, cursor).count, 3);
    }
}

static void routing_bounds_cut_every_kind_of_cursor_alike(void **state)
{
    static const enum cursor_kind kinds[] = {CURSOR_KEYS, CURSOR_NUMBERS, CURSOR_INDEX};
    struct fixture *f = *state;
    struct cursor_range all = {SLICE("\x01"), SLICE("\xFF")};
    size_t counts[3][2];

    for (int i = 0; i < 50; i++) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"%d\",\"pk\":\"q%d\",\"a\":%d}", i, i, i % 2);
        put(f, json);
    }
    look(f);
    for (size_t i = 0; i < 6; i++) {
        CLEANUP(cursor_free) struct cursor *cursor = NULL;
        struct cursor_request request = index_request(f, &all, 1);
        struct error err;

        request.kind = kinds[i / 2];
        *(i % 2 ? &request.routing_min : &request.routing_max) = SLICE("\x18");
        assert_ok(cursor_open(&f->view, &request, &cursor, &err), &err);
        counts[i / 2][i % 2] = walk(f, cursor).count;
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(counts[i][0] + counts[i][1], 50);
        assert_int_equal(counts[i][0], counts[0][0]);
    }
    assert_true(counts[0][0] > 0 && counts[0][0] < 50);
}

/* Of a, there are six entries of each value. */
static void entries_that_are_alike_are_passed_over_together(void **state)
{
    struct fixture *f = *state;
    struct cursor_range all = {point(f, 0).min, point(f, 4).max};
    struct cursor_request request = index_request(f, &all, 1);
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    struct cursor_hit hit, last;
    uint64_t count, number;
    struct error err;
    bool more;

    put_thirty(f);
    look(f);
    assert_ok(cursor_open(&f->view, &request, &cursor, &err), &err);
    assert_ok(cursor_next(cursor, &hit, &more, &err), &err);
    assert_true(more);
    assert_ok(cursor_pass(cursor, key_of(f, 0), 3, &last, &count, &err), &err);
    assert_int_equal(count, 3);
    assert_ok(cursor_pass(cursor, key_of(f, 0), 100, &last, &count, &err), &err);
    assert_int_equal(count, 2);
    assert_slice_equal(last.value, key_of(f, 0));
    number = last.number;
    assert_ok(cursor_next(cursor, &hit, &more, &err), &err);
    assert_slice_equal(hit.value, key_of(f, 1)); /* none was lost in between */
    assert_int_equal(cursor_entries(cursor), 7);
    assert_ok(cursor_pass(cursor, SLICE_NONE, 100, &last, &count, &err), &err);
    assert_int_equal(count, 23);
    assert_slice_equal(last.value, key_of(f, 4));
    assert_int_not_equal(last.number, number);
    assert_ok(cursor_next(cursor, &hit, &more, &err), &err);
    assert_false(more);
}

static void entries_of_a_part_are_looked_at_one_by_one(void **state)
{
    struct fixture *f = *state;
    struct cursor_range ranges[] = {point(f, 0), point(f, 3)};
    struct cursor_request requests[] = {index_request(f, ranges, 2), index_request(f, ranges, 1)};
    struct error err;

    put_thirty(f);
    look(f);
    requests[1].routing_min = SLICE("\x01");
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        CLEANUP(cursor_free) struct cursor *cursor = NULL;
        struct cursor_hit hit, last;
        uint64_t count;
        bool more;

        assert_ok(cursor_open(&f->view, &requests[i], &cursor, &err), &err);
        assert_ok(cursor_next(cursor, &hit, &more, &err), &err);
        assert_ok(cursor_pass(cursor, SLICE_NONE, 100, &last, &count, &err), &err);
        assert_int_equal(count, 0);
    }
}

static void a_view_sees_one_moment(void **state)
{
    struct fixture *f = *state;
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    struct cursor_request request = {.kind = CURSOR_NUMBERS};
    uint64_t items, bytes;
    struct error err;

    put_thirty(f);
    look(f);
    put(f, "{\"id\":\"later\",\"pk\":\"p0\"}");
    assert_ok(cursor_open(&f->view, &request, &cursor, &err), &err);
    assert_int_equal(walk(f, cursor).count, 30);
    assert_ok(view_count(&f->view, SLICE_NONE, &items, &bytes, &err), &err);
    assert_int_equal(items, 30);
    assert_true(bytes > 30 * 40);
}

static void logical_partitions_have_counts_of_their_own(void **state)
{
    struct fixture *f = *state;
    struct partition_key key = test_space_key(&f->test, "[\"p1\"]");
    uint64_t items, bytes;
    struct error err;

    put_thirty(f);
    look(f);
    assert_ok(view_count(&f->view, item_logical(&f->test.definition.key, &key, f->arena), &items,
                         &bytes, &err),
              &err);
    assert_int_equal(items, 10);
    key = test_space_key(&f->test, "[\"none\"]");
    assert_ok(view_count(&f->view, item_logical(&f->test.definition.key, &key, f->arena), &items,
                         &bytes, &err),
              &err);
    assert_int_equal(items, 0);
}

/* --- Groups ---------------------------------------------------------------------------------- */

enum { TEXTS = 6, ROUNDS = 60, LARGE = 400 };

static void text_append(struct buf *buf, const char *text)
{
    struct document_value value = document_string(slice_of_text(text));

    document_key_append_cut(DOCUMENT_ORDER_SQL, &value, INDEX_VALUE_MAX, buf);
}

/* Entries that begin with v and, unless it is NULL, w. */
static struct cursor_range range_of(struct fixture *f, const char *v, const char *w)
{
    CLEANUP(buf_done) struct buf buf;
    struct slice min;

    buf_init(&buf, BUF_DEFAULT_MAX);
    text_append(&buf, v);
    if (w)
        text_append(&buf, w);
    min = arena_copy(f->arena, buf_slice(&buf));
    return (struct cursor_range){min, cursor_prefix_end(f->arena, min)};
}

static int range_order(const void *a, const void *b)
{
    return slice_compare(((const struct cursor_range *)a)->min,
                         ((const struct cursor_range *)b)->min);
}

/* All that a cursor gives, as text; in between it goes on behind a hit. */
static struct slice walk_all(struct fixture *f, const struct view *view,
                             struct cursor_request *request, bool grouped, size_t again_at)
{
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    CLEANUP(buf_done) struct buf buf;
    struct cursor_hit hit;
    struct error err;
    bool more = true;

    buf_init(&buf, BUF_DEFAULT_MAX);
    request->grouped = grouped;
    assert_ok(cursor_open(view, request, &cursor, &err), &err);
    for (size_t i = 0; more; i++) {
        if (i && i == again_at) {
            struct slice value = arena_copy(f->arena, hit.value);
            struct slice routing = arena_copy(f->arena, hit.routing);

            assert_ok(cursor_seek_behind(cursor, value, routing, hit.number, &err), &err);
        }
        assert_ok(cursor_next(cursor, &hit, &more, &err), &err);
        if (!more)
            break;
        buf_append_slice(&buf, hit.value);
        buf_append_slice(&buf, hit.routing);
        buf_append_slice(&buf, hit.key);
        buf_append_be64(&buf, hit.number);
    }
    return arena_copy(f->arena, buf_slice(&buf));
}

static const char *const texts[TEXTS] = {"v0", "v1", "v10", "v1\xC3\xBC", "", "w\xED\x9F\xBF"};

static void write_some(struct fixture *f, struct random *random, const char *long_text)
{
    for (uint64_t count = random_below(random, 4); count > 0; count--) {
        uint64_t v = random_below(random, TEXTS + 2);
        char json[1024];

        if (v == TEXTS + 1)
            snprintf(json, sizeof json, "{\"id\":\"%02d\",\"pk\":\"p\",\"v\":%d}",
                     (int)random_below(random, 40), (int)random_below(random, 3));
        else
            snprintf(json, sizeof json,
                     "{\"id\":\"%02d\",\"pk\":\"p%d\",\"v\":\"%s\",\"w\":\"w%d\"}",
                     (int)random_below(random, 40), (int)random_below(random, 3),
                     v == TEXTS ? long_text : texts[v], (int)random_below(random, 3));
        put(f, json);
    }
}

static void assert_alike(struct fixture *f, struct random *random, const struct view *view,
                         const struct index_definition *index, const char *long_text)
{
    static const char *const seconds[] = {NULL, "w0", "w1", "w2"};
    struct cursor_range ranges[2 * (TEXTS + 1)];
    struct partition_key key = test_space_key(&f->test, "[\"p1\"]");
    struct cursor_request request = {.kind = CURSOR_INDEX,
                                     .path = index->prefix,
                                     .value_count = index->part_count,
                                     .order = index->order,
                                     .values_alone = true,
                                     .ranges = ranges};
    size_t again_at = random_below(random, 6);

    for (size_t i = 0; i <= TEXTS; i++) {
        uint64_t second = random_below(random, 4);

        if (random_below(random, 3) == 0)
            continue;
        ranges[request.range_count++] =
            range_of(f, i == TEXTS ? long_text : texts[i], seconds[second]);
        if (second == 1)
            ranges[request.range_count++] = range_of(f, i == TEXTS ? long_text : texts[i], "w2");
    }
    if (!request.range_count)
        return;
    qsort(ranges, request.range_count, sizeof *ranges, range_order);
    if (random_below(random, 2))
        request.logical = item_logical(&f->test.definition.key, &key, f->arena);
    assert_slice_equal(walk_all(f, view, &request, true, again_at),
                       walk_all(f, view, &request, false, 0));
}

/* By groups a cursor gives what it gives by walking: of views before and behind writes, read in any
 * order. */
static void groups_give_what_a_walk_gives(void **state)
{
    struct fixture *f = *state;
    char long_text[INDEX_VALUE_MAX + 20];
    struct view old = {0};
    struct random random;
    struct engine *engine;
    struct engine_upkeep upkeep;
    const struct index_definition *index;
    struct error err;
    size_t count;

    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    test_space_done(&f->test);
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){.group = cursor_group},
                          &engine, &err),
              &err);
    test_space_init(
        &f->test, engine,
        &(struct test_space_options){
            .indexes = {"{\"name\":\"v\",\"key\":[{\"path\":\"/v\"},{\"path\":\"/w\"}]}"}});
    index = index_policy_besides(f->test.definition.policy, &count)[0];
    assert_int_equal(count, 1);
    random_seed(&random, 1);
    for (int i = 0; i < ROUNDS; i++) {
        write_some(f, &random, long_text);
        if (random_below(&random, 3) == 0) {
            view_done(&old);
            old = f->view;
            f->view = (struct view){0};
        }
        view_done(&f->view);
        look(f);
        for (int looks = 0; looks < 3; looks++) {
            assert_alike(f, &random, &f->view, index, long_text);
            if (old.snapshot)
                assert_alike(f, &random, &old, index, long_text);
        }
    }
    assert_true(engine_upkeep(engine, &upkeep));
    assert_true(upkeep.recall_hits > ROUNDS);

    /* one that is too large to be kept */
    for (int i = 0; i < LARGE; i++) {
        char json[128];

        snprintf(json, sizeof json, "{\"id\":\"l%d\",\"pk\":\"p1\",\"v\":\"v1\",\"w\":\"w%d\"}", i,
                 i % 3);
        put(f, json);
    }
    view_done(&f->view);
    look(f);
    for (int looks = 0; looks < 10; looks++)
        assert_alike(f, &random, &f->view, index, long_text);
    view_done(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_ranges_are_walked_by_one_cursor_both_ways, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_cursor_goes_on_behind_any_hit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_logical_partition_is_found_among_the_entries_of_others,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_short_routing_key_is_found_behind_long_ones, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(routing_bounds_cut_every_kind_of_cursor_alike, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(entries_that_are_alike_are_passed_over_together, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(entries_of_a_part_are_looked_at_one_by_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_view_sees_one_moment, setup, teardown),
        cmocka_unit_test_setup_teardown(logical_partitions_have_counts_of_their_own, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(groups_give_what_a_walk_gives, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
