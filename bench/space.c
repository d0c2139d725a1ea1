#include "space.h"

#include "definition/names.h"
#include "document/json.h"

#include <stdio.h>
#include <stdlib.h>

void bench_must(bool done, const struct error *err)
{
    if (done)
        return;
    fprintf(stderr, "bench: %s\n", err->message);
    exit(1);
}

static struct engine *engine_of(void *nodes, uint32_t node UNUSED)
{
    return ((struct bench_space *)nodes)->engine;
}

static struct commit *commit_of(void *nodes, uint32_t node UNUSED)
{
    return ((struct bench_space *)nodes)->commit;
}

static void definition_make(struct bench_space *space, const char *policy)
{
    CLEANUP(buf_done) struct buf completed, bson;
    struct slice path = SLICE("/tenant");
    struct partition_definition_parts parts = {.paths = &path, .path_count = 1, .version = 2};
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    if (policy)
        bench_must(document_json_read(slice_of_text(policy), NULL, &bson, &err), &err);
    space->definition.id = SLICE("bench");
    bench_must(partition_definition_build(&parts, space->arena, &space->definition.key, &err),
               &err);
    bench_must(index_policy_parse(arena_copy(space->arena, buf_slice(&bson)),
                                  definition_names(DEFINITION_IDENTITY_ID), space->arena,
                                  &completed, &space->definition.policy, &err),
               &err);
}

void bench_space_open(struct bench_space *space, const char *url, uint32_t partitions)
{
    bench_space_open_with(space, url, partitions, &(struct bench_space_options){0});
}

void bench_space_open_with(struct bench_space *space, const char *url, uint32_t partitions,
                           const struct bench_space_options *options)
{
    const struct engine_options engine_options = {.cache_bytes = options->cache_bytes,
                                                  .recalled = "d"};
    static const uint32_t nodes[] = {0};
    struct partition_map_plan plan = {.definition = &space->definition.key,
                                      .count = partitions,
                                      .first_id = 1,
                                      .epoch = 1,
                                      .nodes = nodes,
                                      .node_count = 1};
    struct error err;

    *space = (struct bench_space){.arena = arena_new()};
    bench_must(engine_open(slice_of_text(url), &engine_options, &space->engine, &err), &err);
    definition_make(space, options->policy);
    space->commit = commit_new(&(struct commit_options){.engine = space->engine});
    space->space = (struct item_space){.definition = &space->definition,
                                       .policy_version = 1,
                                       .logical_bytes_max = INT64_C(20) << 30,
                                       .item_bytes_max = 2 << 20,
                                       .clock = &clock_system,
                                       .gates = item_gates_new(),
                                       .nodes = space,
                                       .engine = engine_of,
                                       .commit = commit_of};
    bench_must(partition_map_new_even(&plan, &space->space.map, &err), &err);
    for (uint32_t id = 1; id <= partitions; id++) {
        bench_must(engine_partition_create(space->engine, id, 1, &err) ||
                       err.code == ERROR_PARTITION_EXISTS,
                   &err);
        bench_must(commit_partition_open(space->commit, id, 1, &err), &err);
    }
}

void bench_space_close(struct bench_space *space)
{
    commit_free(space->commit);
    engine_close(space->engine);
    partition_map_unref(space->space.map);
    item_gates_free(space->space.gates);
    arena_free(space->arena);
}

/* --- Items ----------------------------------------------------------------------------------- */

/* Mixes well enough that values of neighbours have little in common. */
static uint64_t mixed(uint64_t n, uint64_t salt)
{
    n = (n + salt * UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xBF58476D1CE4E5B9);
    n = (n ^ n >> 29) * UINT64_C(0x94D049BB133111EB);
    return n ^ n >> 32;
}

static void text_append(struct buf *buf, struct slice key, uint64_t n, uint64_t salt, size_t len)
{
    char text[512];

    assert(len <= sizeof text);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + mixed(n, salt + i / 8) % 251 % (19 + i % 7));
    document_append_string(buf, key, slice_of(text, len));
}

static void properties_append(struct buf *buf, uint64_t n, uint64_t revision)
{
    static const char *const texts[] = {"name", "street", "city", "mail", "phone", "company"};
    char index[DOCUMENT_INDEX_SIZE];
    size_t inner;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        text_append(buf, slice_of_text(texts[i]), n, 100 * i, 24 + 2 * i);
    document_append_string(buf, SLICE("kind"), SLICE("order"));
    document_append_bool(buf, SLICE("open"), n % 3 == 0);
    document_append_int64(buf, SLICE("created"), (int64_t)(BENCH_CREATED_FIRST + n));
    document_append_int32(buf, SLICE("count"), (int32_t)(n % BENCH_COUNTS));
    document_append_int64(buf, SLICE("updated"),
                          (int64_t)(BENCH_CREATED_FIRST + mixed(n, revision) % 1000000000));
    document_append_double(buf, SLICE("amount"), (double)(mixed(n, 7 + revision) % 1000000) / 100);
    document_append_int64(buf, SLICE("revision"), (int64_t)revision);
    inner = document_append_object_begin(buf, SLICE("place"));
    document_append_double(buf, SLICE("latitude"), (double)(mixed(n, 8) % 180000) / 1000 - 90);
    document_append_double(buf, SLICE("longitude"), (double)(mixed(n, 9) % 360000) / 1000 - 180);
    document_end(buf, inner);
    inner = document_append_array_begin(buf, SLICE("tags"));
    for (uint32_t i = 0; i < 3; i++)
        text_append(buf, document_index_key(i, index), n, 1000 + i, 8);
    document_end(buf, inner);
    text_append(buf, SLICE("notes"), n, 2000, 400);
}

struct document_value bench_item_id(uint64_t n, struct arena *arena)
{
    return document_string(arena_printf(arena, "item-%09llu", (unsigned long long)n));
}

struct document_value bench_item_tenant(uint64_t n, struct arena *arena)
{
    return document_string(arena_printf(arena, "tenant-%06llu", (unsigned long long)(n / 10)));
}

struct slice bench_item_document(uint64_t n, uint64_t revision, struct arena *arena)
{
    const struct document_value id = bench_item_id(n, arena), tenant = bench_item_tenant(n, arena);
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_append(&buf, SLICE("id"), &id);
    document_append(&buf, SLICE("tenant"), &tenant);
    properties_append(&buf, n, revision);
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}

struct bench_item bench_item_make(const struct bench_space *space, uint64_t n, uint64_t revision,
                                  struct arena *arena)
{
    const struct document_value tenant = bench_item_tenant(n, arena);

    return (struct bench_item){
        .id = bench_item_id(n, arena),
        .key = partition_key_of(&space->definition.key, &tenant, 1),
        .document = bench_item_document(n, revision, arena),
    };
}
