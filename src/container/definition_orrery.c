/* `orrery`: what a container is beyond what the service knows. Client libraries that know nothing
 * of it leave it out when they replace a container; then it stays as it is.
 *
 *     {"strategy": "hash"}    how keys are placed; hash is what a container has that says nothing
 *     {"placement": [...]}    which nodes they may be on (placement.h); may change
 */
#include "container/definition_private.h"

#include "document/bson.h"

struct reading {
    struct definition_fields *fields;
    const struct definition_fields *before; /* NULL: it is created */
    struct arena *arena;
    struct buf *out;
};

static bool strategy_read(struct reading *reading, const struct document_value *value,
                          struct error *err)
{
    if (value->type != DOCUMENT_STRING || !slice_equal(value->text, SLICE("hash")))
        return error_set(err, ERROR_BAD_REQUEST, "orrery.strategy must be \"hash\"");
    reading->fields->key.strategy = PARTITION_STRATEGY_HASH;
    document_append_string(reading->out, SLICE("strategy"), value->text);
    return true;
}

static bool placement_read(struct reading *reading, const struct document_value *value,
                           struct error *err)
{
    struct slice kept;

    if (value->type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.placement must be an array of rules");
    if (reading->fields->key.system_key)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.placement needs a container with a partition key");
    kept = arena_copy(reading->arena, value->document);
    if (!placement_parse(kept, reading->fields->key.path_count, reading->arena,
                         &reading->fields->placement, err))
        return false;
    document_append(reading->out, SLICE("placement"), value);
    return true;
}

static const struct member {
    struct slice name;
    bool (*read)(struct reading *reading, const struct document_value *value, struct error *err);
} members[] = {
    {SLICE("strategy"), strategy_read},
    {SLICE("placement"), placement_read},
};

static const struct member *member_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (slice_equal(members[i].name, name))
            return &members[i];
    return NULL;
}

static bool names_check(struct slice object, struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter))
        if (!member_find(iter.key))
            return error_set(err, ERROR_BAD_REQUEST, "orrery has no member \"%.*s\"",
                             (int)MIN(iter.key.len, (size_t)100), (const char *)iter.key.data);
    return true;
}

/* In the order of the table, so that the same said otherwise is the same bytes. */
bool definition_orrery_read(struct definition_fields *fields, struct slice object,
                            const struct definition_fields *before, struct arena *arena,
                            struct buf *out, struct error *err)
{
    struct reading reading = {fields, before, arena, out};
    struct document_value value;

    if (!object.data)
        return true;
    if (!names_check(object, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (document_find(object, members[i].name, &value) &&
            !members[i].read(&reading, &value, err))
            return false;
    return true;
}
