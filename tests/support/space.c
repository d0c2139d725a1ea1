#include "support/space.h"

#include "definition/names.h"
#include "document/json.h"
#include "partition/layout.h"
#include "partition/synthetic.h"
#include "support/check.h"
#include "support/documents.h"

static int64_t wall_ms(void *context)
{
    return ((struct test_space *)context)->wall_ms;
}

static struct engine *engine_of(void *nodes, uint32_t node UNUSED)
{
    return ((struct test_space *)nodes)->engine;
}

static struct commit *commit_of(void *nodes, uint32_t node UNUSED)
{
    return ((struct test_space *)nodes)->commit;
}

static void bounds_init(struct test_space *test, const struct test_space_options *options)
{
    struct partition_definition *key = &test->definition.key;
    struct slice *bounds = ARENA_ARRAY(test->arena, struct slice, ARRAY_LEN(options->bounds));

    key->strategy = PARTITION_STRATEGY_RANGE;
    key->bounds = bounds;
    for (; key->bound_count < ARRAY_LEN(options->bounds) && options->bounds[key->bound_count];) {
        struct document_value value =
            document_string(slice_of_text(options->bounds[key->bound_count]));
        struct partition_key bound = partition_key_of(key, &value, 1);

        bounds[key->bound_count++] = partition_route_range(key, &bound, test->arena).min;
    }
}

static void key_init(struct test_space *test, const struct test_space_options *options)
{
    struct slice paths[3] = {SLICE("/pk")};
    struct partition_definition_parts parts = {.paths = paths, .path_count = 1, .version = 2};
    struct error err;

    for (size_t i = 0; i < 3 && options->paths[i]; i++) {
        paths[i] = slice_of_text(options->paths[i]);
        parts.path_count = i + 1;
    }
    if (parts.path_count > 1)
        parts.kind = SLICE("MultiHash");
    assert_ok(partition_definition_build(&parts, test->arena, &test->definition.key, &err), &err);
    if (options->bounds[0])
        bounds_init(test, options);
    if (options->synthetic)
        assert_ok(partition_synthetic_read(document_of(test->arena, options->synthetic),
                                           &test->definition.key, true, test->arena,
                                           &test->definition.key.synthetic, &err),
                  &err);
}

static void uniques_init(struct test_space *test, const struct test_space_options *options)
{
    struct definition_unique_key *keys = ARENA_ARRAY(test->arena, struct definition_unique_key, 4);
    struct document_path *paths = ARENA_ARRAY(test->arena, struct document_path, 4);
    struct error err;
    size_t count = 0;

    for (; count < 4 && options->unique_paths[count]; count++) {
        assert_ok(document_path_parse(slice_of_text(options->unique_paths[count]),
                                      DOCUMENT_PATH_KEY, test->arena, &paths[count], &err),
                  &err);
        keys[count] = (struct definition_unique_key){.paths = &paths[count], .path_count = 1};
    }
    test->definition.unique_keys = keys;
    test->definition.unique_key_count = count;
}

static void vectors_init(struct test_space *test, const struct test_space_options *options)
{
    struct document_value rows;

    if (!options->vectors || !document_find(document_of(test->arena, options->vectors),
                                            SLICE("vectorEmbeddings"), &rows))
        return;
    test->definition.policy =
        index_policy_with_vectors(test->definition.policy, rows.document, test->arena);
}

static void policy_init(struct test_space *test, const struct test_space_options *options)
{
    CLEANUP(buf_done) struct buf completed;
    CLEANUP(buf_done) struct buf policy;
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    buf_init(&policy, BUF_DEFAULT_MAX);
    if (options->policy)
        assert_ok(document_json_read(slice_of_text(options->policy), NULL, &policy, &err), &err);
    assert_ok(index_policy_parse(options->policy ? arena_copy(test->arena, buf_slice(&policy))
                                                 : SLICE_NONE,
                                 definition_names(options->identity), test->arena, &completed,
                                 &test->definition.policy, &err),
              &err);
    test->definition.policy = index_policy_with_cells(test->definition.policy, test->arena);
    test->definition.policy =
        index_policy_with_terms(test->definition.policy, SLICE_NONE, test->arena);
    vectors_init(test, options);
}

static void indexes_init(struct test_space *test, const struct test_space_options *options)
{
    const struct index_definition *definitions[ARRAY_LEN(options->indexes)];
    struct error err;
    size_t count = 0;

    for (; count < ARRAY_LEN(options->indexes) && options->indexes[count]; count++) {
        CLEANUP(buf_done) struct buf kept;
        struct document_value value = value_of(test->arena, options->indexes[count]);

        buf_init(&kept, BUF_DEFAULT_MAX);
        assert_ok(index_definition_read(&value, (uint8_t)(count + 1), test->arena, SLICE("0"),
                                        &kept, &definitions[count], &err),
                  &err);
    }
    if (count)
        test->definition.policy =
            index_policy_with(test->definition.policy, definitions, count, test->arena);
}

/* A committer that knows all partitions, as a process has one after its start. */
static void commit_open(struct test_space *test)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(test->space.map, &count);
    struct commit_options options = test->commit_options;
    struct error err;

    if (test->space.history.kept) {
        test->times = commit_clock_new(&test->clock);
        assert_ok(history_join(test->engine, test->times, &err), &err);
    }
    options.engine = test->engine;
    options.clock = &test->clock;
    options.times = test->times;
    test->commit = commit_new(&options);
    for (size_t i = 0; i < count; i++)
        assert_ok(commit_partition_open(test->commit, spans[i].id, spans[i].epoch, &err), &err);
    if (test->times)
        assert_ok(commit_partition_open(test->commit, PARTITION_HISTORY, HISTORY_EPOCH, &err),
                  &err);
}

static void commit_close(struct test_space *test)
{
    commit_free(test->commit);
    commit_clock_free(test->times);
    test->commit = NULL;
    test->times = NULL;
}

void test_space_init(struct test_space *test, struct engine *engine,
                     const struct test_space_options *options)
{
    static const uint32_t nodes[] = {0};
    struct partition_map_plan plan = {.definition = &test->definition.key,
                                      .count = options->partitions ? options->partitions : 1,
                                      .first_id = 1,
                                      .epoch = 1,
                                      .nodes = nodes,
                                      .node_count = 1};
    struct error err;

    *test = (struct test_space){.engine = engine, .wall_ms = 1000000};
    test->arena = arena_new();
    test->clock = (struct clock){
        .wall_ms = wall_ms, .monotonic_ms = clock_system.monotonic_ms, .context = test};
    test->definition.id = SLICE("test");
    test->definition.default_ttl = options->default_ttl;
    test->definition.identity = options->identity;
    test->definition.feed_retention_ms = options->feed_retention_ms;
    key_init(test, options);
    uniques_init(test, options);
    policy_init(test, options);
    indexes_init(test, options);
    test->space = (struct item_space){.definition = &test->definition,
                                      .policy_version = 1,
                                      .logical_bytes_max = options->logical_bytes_max,
                                      .item_bytes_max = 2 * 1024 * 1024,
                                      .clock = &test->clock,
                                      .gates = item_gates_new(),
                                      .nodes = test,
                                      .engine = engine_of,
                                      .commit = commit_of};
    assert_ok(partition_map_new_even(&plan, &test->space.map, &err), &err);
    for (uint32_t i = 0; i < plan.count; i++)
        if (!engine_partition_create(engine, 1 + i, 1, &err))
            assert_int_equal(err.code, ERROR_PARTITION_EXISTS);
    if (options->commit)
        test->commit_options = *options->commit;
    if (options->tells)
        test->space.history = (struct history_origin){.kept = true,
                                                      .account = 1,
                                                      .database = 1,
                                                      .container = 1,
                                                      .database_name = SLICE("shop"),
                                                      .container_name = SLICE("test")};
    commit_open(test);
}

void test_space_restart(struct test_space *test)
{
    commit_close(test);
    commit_open(test);
}

void test_space_done(struct test_space *test)
{
    commit_close(test);
    engine_close(test->engine);
    partition_map_unref(test->space.map);
    item_gates_free(test->space.gates);
    arena_free(test->arena);
}

struct partition_key test_space_key(struct test_space *test, const char *json)
{
    struct partition_key key;
    struct error err;

    assert_ok(partition_key_parse(&test->definition.key, slice_of_text(json), PARTITION_KEY_WHOLE,
                                  test->arena, &key, &err),
              &err);
    return key;
}
