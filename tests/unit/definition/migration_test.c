#include "definition/migration.h"

#include "base/random.h"
#include "document/bson.h"
#include "support/check.h"

/* Four spans, 10 to 13, on nodes 0 and 1 in turn; 11 has a past. */
static struct partition_map *map_of_four(void)
{
    static const uint32_t past[] = {3, 4};
    struct partition_span spans[] = {
        {.id = 10, .node = 0, .epoch = 1, .share = 0.1, .min = SLICE(""), .max = SLICE("b")},
        {.id = 11,
         .node = 1,
         .epoch = 7,
         .share = 0.2,
         .min = SLICE("b"),
         .max = SLICE("m"),
         .parents = past,
         .parent_count = 2},
        {.id = 12, .node = 0, .epoch = 1, .share = 0.3, .min = SLICE("m"), .max = SLICE("t")},
        {.id = 13, .node = 1, .epoch = 1, .share = 0.4, .min = SLICE("t"), .max = SLICE("\xFF")},
    };
    struct partition_map *map;
    struct error err;

    assert_ok(partition_map_new(spans, 4, 5, &map, &err), &err);
    return map;
}

static struct migration *planned(const struct migration_request *request)
{
    CLEANUP(partition_map_unref) struct partition_map *map = map_of_four();
    struct migration *migration;
    struct error err;

    assert_ok(migration_new(map, request, 100, &migration, &err), &err);
    return migration;
}

static void a_split_divides_span_and_share(void **state UNUSED)
{
    static const uint32_t sources[] = {11};
    const struct slice bounds[] = {SLICE("e"), SLICE("h")};
    static const double weights[] = {1, 2, 1};
    CLEANUP(migration_unref)
    struct migration *migration = planned(&(struct migration_request){.kind = MIGRATION_SPLIT,
                                                                      .sources = sources,
                                                                      .source_count = 1,
                                                                      .target_count = 3,
                                                                      .bounds = bounds,
                                                                      .weights = weights});
    size_t count, source_count;
    const struct partition_span *targets = migration_targets(migration, &count);
    const struct migration_source *source = migration_sources(migration, &source_count);

    assert_int_equal(partition_map_version(migration_map(migration)), 6);
    assert_int_equal(count, 3);
    assert_int_equal(source_count, 1);
    assert_int_equal(source->id, 11);
    assert_int_equal(source->epoch, 7);
    assert_slice_equal(targets[0].min, SLICE("b"));
    assert_slice_equal(targets[1].min, SLICE("e"));
    assert_slice_equal(targets[2].max, SLICE("m"));
    assert_true(targets[1].share > 0.0999 && targets[1].share < 0.1001);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(targets[i].id, 100 + i);
        assert_int_equal(targets[i].node, 1);
        assert_int_equal(targets[i].parent_count, 3);
        assert_int_equal(targets[i].parents[2], 11);
    }
}

static void shares_that_were_made_for_all_are_taken_as_they_are(void **state UNUSED)
{
    static const uint32_t sources[] = {11};
    const struct slice bounds[] = {SLICE("e")};
    const double shares[] = {0.05, 0, 0.15, 0.2, 0.3, 0.3};
    CLEANUP(migration_unref)
    struct migration *migration = planned(&(struct migration_request){.kind = MIGRATION_SPLIT,
                                                                      .sources = sources,
                                                                      .source_count = 1,
                                                                      .target_count = 2,
                                                                      .bounds = bounds,
                                                                      .shares = shares});
    size_t count;
    const struct partition_span *spans = partition_map_spans(migration_map(migration), &count);

    assert_int_equal(count, 5);
    assert_true(spans[0].share > 0.0499 && spans[0].share < 0.0501);
    assert_true(spans[1].share > 0.2999 && spans[1].share < 0.3001);
    assert_true(spans[4].share > 0.1999 && spans[4].share < 0.2001);
}

static void a_cut_is_remembered_with_its_reason_until_it_is_undone(void **state UNUSED)
{
    static const uint32_t sources[] = {11};
    const struct slice bounds[] = {SLICE("e")};
    CLEANUP(migration_unref)
    struct migration *split = planned(&(struct migration_request){.kind = MIGRATION_SPLIT,
                                                                  .sources = sources,
                                                                  .source_count = 1,
                                                                  .target_count = 2,
                                                                  .bounds = bounds,
                                                                  .cut = PARTITION_CUT_BY_HAND});
    /* From "e" to "m": one end is new, the other was there. */
    CLEANUP(migration_unref)
    struct migration *carved =
        planned(&(struct migration_request){.kind = MIGRATION_ISOLATE,
                                            .sources = sources,
                                            .source_count = 1,
                                            .target_count = 2,
                                            .bounds = bounds,
                                            .cut = PARTITION_CUT_PLACED,
                                            .ended = {SLICE("e"), SLICE("m")}});
    CLEANUP(migration_unref) struct migration *merged = NULL;
    CLEANUP(migration_unref) struct migration *moved = NULL;
    static const uint32_t cut[] = {101}, both[] = {100, 101}, node = 0;
    const struct partition_span *spans;
    struct error err;
    size_t count;

    spans = partition_map_spans(migration_map(split), &count);
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(spans[i].cut, i == 2 ? PARTITION_CUT_BY_HAND : PARTITION_CUT_NEEDED);
    spans = partition_map_spans(migration_map(carved), &count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(spans[i].cut,
                         i == 2 || i == 3 ? PARTITION_CUT_PLACED : PARTITION_CUT_NEEDED);

    assert_ok(migration_new(migration_map(split),
                            &(struct migration_request){.kind = MIGRATION_MOVE,
                                                        .sources = cut,
                                                        .source_count = 1,
                                                        .target_count = 1,
                                                        .nodes = &node},
                            200, &moved, &err),
              &err);
    assert_int_equal(partition_map_find_id(migration_map(moved), 200)->cut, PARTITION_CUT_BY_HAND);
    assert_ok(migration_new(migration_map(split),
                            &(struct migration_request){.kind = MIGRATION_MERGE,
                                                        .sources = both,
                                                        .source_count = 2,
                                                        .target_count = 1},
                            200, &merged, &err),
              &err);
    assert_int_equal(partition_map_find_id(migration_map(merged), 200)->cut, PARTITION_CUT_NEEDED);
}

static void a_merge_takes_neighbours_in_any_order(void **state UNUSED)
{
    static const uint32_t sources[] = {13, 11, 12};
    CLEANUP(migration_unref)
    struct migration *migration = planned(&(struct migration_request){
        .kind = MIGRATION_MERGE, .sources = sources, .source_count = 3, .target_count = 1});
    size_t count;
    const struct partition_span *target = migration_targets(migration, &count);

    assert_int_equal(count, 1);
    assert_int_equal(target->node, 1);
    assert_int_equal(target->parent_count, 5);
    assert_true(target->share > 0.8999 && target->share < 0.9001);
    (void)partition_map_spans(migration_map(migration), &count);
    assert_int_equal(count, 2);
}

static void refuse(const uint32_t *sources, size_t source_count, const struct slice *bounds,
                   size_t target_count, const uint32_t *nodes, const double *weights,
                   enum error_code code)
{
    CLEANUP(partition_map_unref) struct partition_map *map = map_of_four();
    struct migration_request request = {.sources = sources,
                                        .source_count = source_count,
                                        .bounds = bounds,
                                        .target_count = target_count,
                                        .nodes = nodes,
                                        .weights = weights};
    struct migration *migration;
    struct error err;

    assert_fails(migration_new(map, &request, 100, &migration, &err), &err, code);
}

static void what_makes_no_sense_is_refused(void **state UNUSED)
{
    static const uint32_t one[] = {11}, apart[] = {10, 12}, twice[] = {11, 11}, unknown[] = {99};
    static const uint32_t there[] = {1};
    const struct slice outside[] = {SLICE("n")}, edge[] = {SLICE("b")};
    const struct slice back[] = {SLICE("h"), SLICE("e")}, fine[] = {SLICE("e")};
    static const double zero[] = {0, 0}, negative[] = {1, -1};

    refuse(unknown, 1, fine, 2, NULL, NULL, ERROR_PARTITION_UNKNOWN);
    refuse(apart, 2, NULL, 1, NULL, NULL, ERROR_BAD_REQUEST);
    refuse(twice, 2, NULL, 1, NULL, NULL, ERROR_BAD_REQUEST);
    refuse(NULL, 0, NULL, 1, NULL, NULL, ERROR_BAD_REQUEST);
    refuse(one, 1, NULL, 0, NULL, NULL, ERROR_BAD_REQUEST);
    refuse(one, 1, outside, 2, NULL, NULL, ERROR_BAD_REQUEST);
    refuse(one, 1, edge, 2, NULL, NULL, ERROR_BAD_REQUEST);
    refuse(one, 1, back, 3, NULL, NULL, ERROR_BAD_REQUEST);
    refuse(one, 1, NULL, 1, there, NULL, ERROR_BAD_REQUEST); /* it is on node 1 */
    refuse(one, 1, fine, 2, NULL, zero, ERROR_BAD_REQUEST);
    refuse(one, 1, fine, 2, NULL, negative, ERROR_BAD_REQUEST);
}

static void a_plan_is_kept_and_read_again(void **state UNUSED)
{
    static const uint32_t sources[] = {11, 12}, nodes[] = {0, 1};
    const struct slice bounds[] = {SLICE("k")};
    CLEANUP(migration_unref)
    struct migration *moving = planned(&(struct migration_request){.kind = MIGRATION_MOVE,
                                                                   .sources = sources,
                                                                   .source_count = 2,
                                                                   .target_count = 2,
                                                                   .bounds = bounds,
                                                                   .nodes = nodes});
    CLEANUP(migration_unref)
    struct migration *migration = migration_with_state(moving, MIGRATION_DROPPING);
    CLEANUP(migration_unref) struct migration *read = NULL;
    CLEANUP(buf_done) struct buf first;
    CLEANUP(buf_done) struct buf second;
    struct error err;

    buf_init(&first, BUF_DEFAULT_MAX);
    buf_init(&second, BUF_DEFAULT_MAX);
    migration_append(migration, &first);
    assert_ok(migration_parse(buf_slice(&first), &read, &err), &err);
    assert_int_equal(migration_kind(read), MIGRATION_MOVE);
    assert_int_equal(migration_state(read), MIGRATION_DROPPING);
    migration_append(read, &second);
    assert_slice_equal(buf_slice(&second), buf_slice(&first));
}

/* A disk is outside: whatever bit is wrong, it is read as a plan or refused. */
static void a_damaged_plan_is_refused_or_harmless(void **state UNUSED)
{
    static const uint32_t sources[] = {11};
    const struct slice bounds[] = {SLICE("e")};
    CLEANUP(migration_unref)
    struct migration *migration = planned(&(struct migration_request){
        .sources = sources, .source_count = 1, .target_count = 2, .bounds = bounds});
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    migration_append(migration, &bytes);
    for (size_t i = 0; i < bytes.len * 8; i++) {
        CLEANUP(migration_unref) struct migration *read = NULL;
        struct error err;
        size_t count;

        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
        if (document_validate(buf_slice(&bytes), NULL, &err)) {
            if (migration_parse(buf_slice(&bytes), &read, &err))
                assert_non_null(migration_targets(read, &count));
            else
                assert_true(err.code == ERROR_STORE_CORRUPT || err.code == ERROR_STORE_VERSION ||
                            err.code == ERROR_RANGES_BROKEN);
        }
        bytes.data[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_divides_span_and_share),
        cmocka_unit_test(shares_that_were_made_for_all_are_taken_as_they_are),
        cmocka_unit_test(a_cut_is_remembered_with_its_reason_until_it_is_undone),
        cmocka_unit_test(a_merge_takes_neighbours_in_any_order),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(a_plan_is_kept_and_read_again),
        cmocka_unit_test(a_damaged_plan_is_refused_or_harmless),
    };

    return cmocka_run_group_tests_name("definition/migration", tests, NULL, NULL);
}
