#include "property/world.h"

#include "definition/names.h"
#include "document/order.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/fault_engine.h"

enum { ITEM_BYTES_MAX = 5000, START_MS = 1700000000 };

static const char *const single_keys[WORLD_KEYS] = {
    "[\"a\"]", "[\"b\"]", "[\"ab\"]", "[1]", "[-2.5]", "[true]", "[null]", "[{}]",
};

static const char *const double_keys[WORLD_KEYS] = {
    "[\"t1\",\"u1\"]", "[\"t1\",\"u2\"]", "[\"t1\",{}]", "[\"t2\",\"u1\"]",
    "[\"t2\",7]",      "[{},\"u1\"]",     "[0,null]",    "[\"t3\",false]",
};

const struct world_config world_plain = {
    .name = "plain",
    .key = "{\"paths\":[\"/pk\"],\"version\":2}",
    .key_texts = single_keys,
    .policies = {NULL, "{\"includedPaths\":[{\"path\":\"/n/?\"},{\"path\":\"/tags/[]/?\"}],"
                       "\"excludedPaths\":[{\"path\":\"/*\"}]}"},
    .partitions = 4,
    .default_ttl = DEFINITION_TTL_OFF,
    .logical_bytes_max = 5000,
    .clock_may_step_back = true,
};

const struct world_config world_hierarchical = {
    .name = "hierarchical",
    .key = "{\"paths\":[\"/tenant\",\"/user\"],\"kind\":\"MultiHash\",\"version\":2}",
    .key_texts = double_keys,
    .policies = {"{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":["
                 "{\"path\":\"/sub/b/?\"}],\"compositeIndexes\":[["
                 "{\"path\":\"/n\",\"order\":\"ascending\"},"
                 "{\"path\":\"/s\",\"order\":\"descending\"}]]}",
                 NULL},
    .unique_keys = {"/email", "/n,/sub/a"},
    .partitions = 3,
    .default_ttl = 40,
    .feed_retention_ms = 60000,
    .logical_bytes_max = 6000,
};

const struct world_config world_own_ttl = {
    .name = "own ttl",
    .key = "{\"paths\":[\"/pk\"],\"version\":1}",
    .key_texts = single_keys,
    .policies = {"{\"includedPaths\":[{\"path\":\"/n/?\"},{\"path\":\"/sub/*\"}],"
                 "\"excludedPaths\":[{\"path\":\"/*\"}]}",
                 "{\"includedPaths\":[{\"path\":\"/n/?\"},{\"path\":\"/sub/a/?\"},"
                 "{\"path\":\"/s/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}]}"},
    .unique_keys = {"/email"},
    .partitions = 2,
    .default_ttl = DEFINITION_TTL_OWN,
    .feed_retention_ms = 20000,
    .logical_bytes_max = 5000,
};

static void policy_use(struct world *world);

/* --- Making ---------------------------------------------------------------------------------- */

static int64_t now_of(void *context)
{
    return ((struct world *)context)->now_ms;
}

static struct engine *engine_of(void *nodes, uint32_t node)
{
    assert_int_equal(node, 0);
    return ((struct world *)nodes)->engine;
}

static struct commit *commit_of(void *nodes, uint32_t node)
{
    assert_int_equal(node, 0);
    return ((struct world *)nodes)->commit;
}

static void unique_keys_init(struct world *world)
{
    struct definition_unique_key *keys = ARENA_ARRAY(world->arena, struct definition_unique_key, 3);
    size_t count = 0;

    while (world->config->unique_keys[count]) {
        struct document_path *paths = ARENA_ARRAY(world->arena, struct document_path, 3);
        struct slice rest = slice_of_text(world->config->unique_keys[count]), text;
        struct error err;

        keys[count] = (struct definition_unique_key){.paths = paths};
        while (rest.len) {
            if (!slice_split(rest, ',', &text, &rest)) {
                text = rest;
                rest = SLICE_NONE;
            }
            assert_ok(document_path_parse(text, DOCUMENT_PATH_KEY, world->arena,
                                          &paths[keys[count].path_count++], &err),
                      &err);
        }
        count++;
    }
    world->definition.unique_keys = keys;
    world->definition.unique_key_count = count;
}

static const struct index_policy *policy_of(struct world *world, const char *text)
{
    CLEANUP(buf_done) struct buf completed;
    struct slice body = text ? document_of(world->arena, text) : SLICE_NONE;
    const struct index_policy *policy;
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    assert_ok(index_policy_parse(body, definition_names(DEFINITION_IDENTITY_ID), world->arena,
                                 &completed, &policy, &err),
              &err);
    return policy;
}

static void definition_init(struct world *world)
{
    const struct world_config *config = world->config;
    struct error err;

    world->definition = (struct definition_fields){
        .id = slice_of_text(config->name),
        .default_ttl = config->default_ttl,
        .feed_retention_ms = config->feed_retention_ms,
    };
    for (size_t i = 0; i < 2; i++)
        world->policies[i] = policy_of(world, config->policies[i]);
    assert_ok(partition_definition_read(document_of(world->arena, config->key), world->arena,
                                        &world->definition.key, &err),
              &err);
    unique_keys_init(world);
}

static struct partition_map *map_of(const struct world *world)
{
    const uint32_t node = 0;
    struct partition_map_plan plan = {
        .definition = &world->definition.key,
        .count = world->config->partitions,
        .first_id = WORLD_FIRST_PARTITION,
        .epoch = world->epoch,
        .nodes = &node,
        .node_count = 1,
    };
    struct partition_map *map;
    struct error err;

    assert_ok(partition_map_new_even(&plan, &map, &err), &err);
    return map;
}

static void keys_init(struct world *world)
{
    CLEANUP(partition_map_unref) struct partition_map *map = map_of(world);

    for (unsigned k = 0; k < WORLD_KEYS; k++) {
        struct world_key *key = &world->keys[k];
        CLEANUP(buf_done) struct buf routing;
        struct error err;

        buf_init(&routing, BUF_DEFAULT_MAX);
        assert_ok(partition_key_parse(&world->definition.key,
                                      slice_of_text(world->config->key_texts[k]),
                                      PARTITION_KEY_WHOLE, world->arena, &key->key, &err),
                  &err);
        partition_route(&world->definition.key, &key->key, &routing);
        key->routing = arena_copy(world->arena, buf_slice(&routing));
        partition_key_append(&key->key, &routing);
        key->logical = arena_copy(world->arena, buf_slice(&routing));
        key->partition = partition_map_find(map, key->routing)->id - WORLD_FIRST_PARTITION;
    }
}

static void ids_init(struct world *world)
{
    static const char *const texts[WORLD_IDS] = {
        "\"1\"", "\"a\"", "\"A b\"", "\"a/b\"", "\"\\u00e9t\\u00e9\"", "7", "\"zz\"", "\"\"",
    };

    for (unsigned i = 0; i < WORLD_IDS; i++)
        world->ids[i] = value_of(world->arena, texts[i]);
    for (unsigned k = 0; k < WORLD_KEYS; k++)
        for (unsigned i = 0; i < WORLD_IDS; i++) {
            CLEANUP(buf_done) struct buf key;

            buf_init(&key, BUF_DEFAULT_MAX);
            buf_append_slice(&key, world->keys[k].logical);
            document_key_append(DOCUMENT_ORDER_SQL, &world->ids[i], &key);
            world->item_keys[k][i] = arena_copy(world->arena, buf_slice(&key));
        }
}

void world_init(struct world *world, const struct world_config *config, struct engine *inner)
{
    struct error err;

    *world = (struct world){
        .config = config,
        .arena = arena_new(),
        .engine = fault_engine_new(inner),
        .epoch = 1,
        .policy_version = 2,
        .now_ms = (int64_t)START_MS * 1000,
    };
    world->clock = (struct clock){.wall_ms = now_of, .monotonic_ms = now_of, .context = world};
    definition_init(world);
    keys_init(world);
    ids_init(world);
    for (uint32_t i = 0; i < config->partitions; i++)
        assert_ok(engine_partition_create(world->engine, WORLD_FIRST_PARTITION + i, 1, &err), &err);
    world_start(world, false);
}

void world_done(struct world *world)
{
    world_stop(world);
    engine_close(world->engine);
    arena_free(world->arena);
}

void world_stop(struct world *world)
{
    commit_free(TAKE(world->commit));
    item_gates_free(TAKE(world->gates));
    partition_map_unref(TAKE(world->map));
}

void world_start(struct world *world, bool raised)
{
    struct commit_options options = {.engine = world->engine, .clock = &world->clock};
    struct error err;

    world->epoch += raised;
    world->commit = commit_new(&options);
    world->gates = item_gates_new();
    world->map = map_of(world);
    for (uint32_t i = 0; i < world->config->partitions; i++) {
        uint32_t id = WORLD_FIRST_PARTITION + i;

        if (raised)
            assert_ok(engine_partition_fence(world->engine, id, world->epoch, &err), &err);
        assert_ok(commit_partition_open(world->commit, id, world->epoch, &err), &err);
    }
    world->space = (struct item_space){
        .map = world->map,
        .definition = &world->definition,
        .logical_bytes_max = world->config->logical_bytes_max,
        .item_bytes_max = ITEM_BYTES_MAX,
        .clock = &world->clock,
        .gates = world->gates,
        .nodes = world,
        .engine = engine_of,
        .commit = commit_of,
    };
    policy_use(world);
}

/* --- The index policy ------------------------------------------------------------------------ */

const struct index_policy *world_policy(const struct world *world, uint32_t version)
{
    return world->policies[version % 2];
}

static void policy_use(struct world *world)
{
    world->definition.policy = world_policy(world, world->policy_version);
    world->space.policy_version = world->policy_version;
    world->space.policies_before_count = world->policies_behind;
    for (size_t i = 0; i < world->policies_behind; i++)
        world->space.policies_before[world->policies_behind - 1 - i] =
            world_policy(world, world->policy_version - 1 - (uint32_t)i);
}

void world_policy_change(struct world *world)
{
    world->policy_version++;
    world->policies_behind++;
    world->transform_partition = 0;
    world->transform_position = SLICE_NONE;
    policy_use(world);
}

void world_policy_progress(struct world *world, struct slice position, bool finished)
{
    world->transform_position = finished ? SLICE_NONE : arena_copy(world->arena, position);
    if (finished && ++world->transform_partition == world->config->partitions) {
        world->policies_behind = 0;
        policy_use(world);
    }
}

struct item_scope world_scope(const struct world *world, uint32_t partition)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(world->map, &count);

    assert_true(partition < count);
    assert_int_equal(spans[partition].id, WORLD_FIRST_PARTITION + partition);
    return item_space_scope(&world->space, spans[partition].min);
}

/* --- Documents ------------------------------------------------------------------------------- */

static void append_random(struct buf *buf, struct slice name, struct random *random,
                          struct arena *arena)
{
    struct document_value value;

    switch (random_below(random, 8)) {
    case 0:
        return;
    case 1:
        value = document_null();
        break;
    case 2:
        value = document_double((double)random_below(random, 9) / 2);
        break;
    case 3:
        value = document_string(arena_printf(arena, "w%u", (unsigned)random_below(random, 5)));
        break;
    case 4:
        value = value_random_json(random, arena, 2);
        break;
    default:
        value = document_int32((int32_t)random_below(random, 12));
    }
    document_append(buf, name, &value);
}

static void append_text(struct buf *buf, struct random *random, struct arena *arena)
{
    size_t len = random_below(random, random_below(random, 8) == 0 ? 600 : 12);
    uint8_t *text = arena_alloc(arena, len + 1);

    memset(text, 'p', len);
    if (len)
        text[len - 1] = (uint8_t)('a' + random_below(random, 3));
    document_append_string(buf, SLICE("s"), slice_of(text, len));
}

static void append_tags(struct buf *buf, struct random *random)
{
    static const char *const tags[] = {"red", "green", "blue"};
    char index[DOCUMENT_INDEX_SIZE];
    size_t array = document_append_array_begin(buf, SLICE("tags"));
    uint32_t count = (uint32_t)random_below(random, 4);

    for (uint32_t i = 0; i < count; i++)
        document_append_string(buf, document_index_key(i, index),
                               slice_of_text(tags[random_below(random, 3)]));
    document_end(buf, array);
}

static void append_sub(struct buf *buf, struct random *random, struct arena *arena)
{
    size_t sub = document_append_object_begin(buf, SLICE("sub"));

    append_random(buf, SLICE("a"), random, arena);
    append_random(buf, SLICE("b"), random, arena);
    document_end(buf, sub);
}

/* Mostly none; sometimes one that is refused. */
static void append_ttl(struct buf *buf, struct random *random)
{
    uint64_t dice = random_below(random, 20);

    if (dice < 5)
        document_append_int32(buf, SLICE("ttl"), (int32_t)random_below(random, 30) + 1);
    else if (dice < 7)
        document_append_int32(buf, SLICE("ttl"), -1);
    else if (dice == 7 && random_below(random, 3) == 0)
        document_append_int32(buf, SLICE("ttl"), 0);
}

static void append_key(struct buf *buf, const struct world *world, unsigned key)
{
    for (unsigned i = 0; i < world->definition.key.path_count; i++) {
        const struct document_value *value = &world->keys[key].key.components[i];

        if (value->type != DOCUMENT_UNDEFINED)
            document_append(buf, world->definition.key.paths[i].segments[0].name, value);
    }
}

struct slice world_document(struct world *world, struct random *random, unsigned key, unsigned id,
                            size_t filler)
{
    CLEANUP(buf_done) struct buf buf;
    size_t document;

    buf_init(&buf, BUF_DEFAULT_MAX);
    document = document_begin(&buf);
    document_append(&buf, SLICE("id"), &world->ids[id]);
    append_key(&buf, world, key);
    append_random(&buf, SLICE("n"), random, world->arena);
    append_text(&buf, random, world->arena);
    if (random_below(random, 3))
        append_tags(&buf, random);
    append_sub(&buf, random, world->arena);
    document_append_string(&buf, SLICE("email"),
                           arena_printf(world->arena, "m%u", (unsigned)random_below(random, 30)));
    append_ttl(&buf, random);
    if (filler)
        document_append_string(&buf, SLICE("filler"),
                               slice_of(arena_alloc_zero(world->arena, filler), filler));
    document_end(&buf, document);
    return arena_copy(world->arena, buf_slice(&buf));
}
