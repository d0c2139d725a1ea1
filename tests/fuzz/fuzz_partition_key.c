/* A key that is taken prints as a text that is taken as the same key, is stored and read back as
 * the same key, and has a place in the key space. */
#include "document/bson.h"
#include "fuzz/fuzz.h"
#include "partition/strategy.h"

static struct partition_definition definition_of(enum partition_kind kind, struct arena *arena)
{
    static const struct slice paths[] = {SLICE("/a"), SLICE("/b"), SLICE("/c")};
    bool multi = kind == PARTITION_MULTI_HASH;
    const struct partition_definition_parts parts = {
        .kind = multi ? SLICE("MultiHash") : SLICE("Hash"),
        .version = kind == PARTITION_HASH_V1 ? 1 : 2,
        .paths = paths,
        .path_count = multi ? 3 : 1,
    };
    struct partition_definition definition;
    struct error err;

    FUZZ_CHECK(partition_definition_build(&parts, arena, &definition, &err));
    return definition;
}

static void check_stored(const struct partition_definition *definition,
                         const struct partition_key *key, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct partition_key again;
    struct slice rest;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    partition_route(definition, key, &buf);
    FUZZ_CHECK(slice_compare(buf_slice(&buf), PARTITION_ROUTING_MAX) < 0);
    partition_key_append(key, &buf);
    rest = buf_slice(&buf);
    FUZZ_CHECK(partition_route_skip(definition, &rest, &err));
    FUZZ_CHECK(partition_key_read(definition, &rest, arena, &again, &err));
    FUZZ_CHECK(rest.len == 0 && partition_key_equal(key, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (enum partition_kind kind = PARTITION_HASH_V1; kind <= PARTITION_MULTI_HASH; kind++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(buf_done) struct buf json;
        struct partition_definition definition = definition_of(kind, arena);
        struct partition_key key, again;
        struct partition_range range;
        struct error err;

        buf_init(&json, BUF_DEFAULT_MAX);
        if (!partition_key_parse(&definition, slice_of(data, size), PARTITION_KEY_ANY, arena, &key,
                                 &err))
            continue;
        partition_key_json(&definition, &key, &json);
        FUZZ_CHECK(partition_key_parse(&definition, buf_slice(&json), PARTITION_KEY_ANY, arena,
                                       &again, &err));
        FUZZ_CHECK(partition_key_equal(&key, &again));
        range = partition_route_range(&definition, &key, arena);
        FUZZ_CHECK(slice_compare(range.min, range.max) < 0);
        if (!key.partial)
            check_stored(&definition, &key, arena);
        definition.strategy = PARTITION_STRATEGY_RANGE;
        range = partition_route_range(&definition, &key, arena);
        FUZZ_CHECK(slice_compare(range.min, range.max) < 0);
        FUZZ_CHECK(partition_route_is_bound(&definition, range.min));
        FUZZ_CHECK(partition_route_is_bound(&definition, range.max));
        if (!key.partial)
            check_stored(&definition, &key, arena);
    }
    return 0;
}
