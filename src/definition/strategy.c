/* `orrery.strategy`: how the keys of a container are placed (partition/strategy.h).
 *
 *     "hash"                                         as the service does it; what is not said
 *     "range", {"kind": "range", "bounds": [...]}    bounds: values of the first component, or
 *                                                    arrays of the first few, ascending: where the
 *                                                    container is cut from the beginning
 *     {"kind": "lookup", "shards": 16, "default": "hash" or a shard,
 *      "zones": [{"keyLike": "eu-*", "first": 8, "last": 15}, ...],
 *      "directory": [{"key": ["a"], "shard": 3}, ...]}
 *
 * It is kept completed and in one order: an object for all but "hash", lines of a directory by
 * key. So a replace that says the same has the same bytes; any other is refused, for items would
 * have to move. A replace may leave the directory out. */
#include "definition/strategy.h"

#include "definition/definition_private.h"
#include "document/bson.h"
#include "document/order.h"
#include "partition/lookup.h"
#include "partition/strategy.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BOUNDS_MAX = 1023 };

struct strategy_reading {
    struct partition_definition *key;
    struct slice object;
    struct arena *arena;
    struct buf *out;
};

/* --- Parts ----------------------------------------------------------------------------------- */

static bool members_check(struct slice object, const struct slice *names, size_t count,
                          struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        bool known = false;

        for (size_t i = 0; i < count; i++)
            known |= slice_equal(iter.key, names[i]);
        if (!known)
            return error_set(err, ERROR_BAD_REQUEST, "orrery.strategy has no member \"%.*s\"",
                             (int)MIN(iter.key.len, (size_t)100), (const char *)iter.key.data);
    }
    return true;
}

/* An array of the first components of a key, or the first alone. */
static bool components_read(const struct document_value *value, size_t max, size_t *ret_count,
                            struct document_value *ret_values, struct error *err)
{
    struct document_iter iter;
    size_t count = 0;

    if (value->type != DOCUMENT_ARRAY) {
        ret_values[count++] = *value;
    } else {
        document_iter_init(&iter, value->document);
        while (count <= max && document_iter_next(&iter)) {
            if (count < max)
                ret_values[count] = iter.value;
            count++;
        }
    }
    if (count == 0 || count > max)
        return error_set(err, ERROR_BAD_REQUEST, "a key of orrery.strategy has 1 to %zu components",
                         max);
    for (size_t i = 0; i < count; i++) {
        if (ret_values[i].type == DOCUMENT_OBJECT && document_count(ret_values[i].document) == 0)
            ret_values[i] = document_undefined();
        if (ret_values[i].type == DOCUMENT_OBJECT || ret_values[i].type == DOCUMENT_ARRAY ||
            ret_values[i].type == DOCUMENT_CODE_WITH_SCOPE)
            return error_set(err, ERROR_BAD_REQUEST,
                             "a key of orrery.strategy has an object or array in it");
    }
    *ret_count = count;
    return true;
}

/* As it was read: undefined, which arrays do not hold, is written {}. */
void definition_component_write(struct buf *out, struct slice key,
                                const struct document_value *value)
{
    if (value->type == DOCUMENT_UNDEFINED)
        document_end(out, document_append_object_begin(out, key));
    else
        document_append(out, key, value);
}

static bool array_read(struct slice object, struct slice name, struct slice *ret_array,
                       struct error *err)
{
    struct document_value value;

    *ret_array = SLICE_NONE;
    if (!document_find(object, name, &value) || value.type == DOCUMENT_NULL)
        return true;
    if (value.type != DOCUMENT_ARRAY)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.strategy.%.*s is not an array",
                         SLICE_ARG(name));
    *ret_array = value.document;
    return true;
}

/* --- Range ----------------------------------------------------------------------------------- */

static bool bound_read(struct strategy_reading *r, const struct document_value *value,
                       struct slice *bounds, size_t nth, struct error *err)
{
    struct document_value values[PARTITION_PATHS_MAX];
    struct partition_key key;
    char index[DOCUMENT_INDEX_SIZE];
    size_t count, array;

    if (!components_read(value, r->key->path_count, &count, values, err))
        return false;
    key = partition_key_of(r->key, values, count);
    bounds[nth] = partition_route_range(r->key, &key, r->arena).min;
    if (nth && slice_compare(bounds[nth - 1], bounds[nth]) >= 0)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.strategy.bounds are not ascending");
    array = document_append_array_begin(r->out, document_index_key((uint32_t)nth, index));
    for (size_t i = 0; i < count; i++)
        definition_component_write(r->out, document_index_key((uint32_t)i, index), &values[i]);
    document_end(r->out, array);
    return true;
}

static bool range_read(struct strategy_reading *r, struct error *err)
{
    static const struct slice names[] = {SLICE("kind"), SLICE("bounds")};
    struct document_iter iter;
    struct slice array, *bounds;
    size_t begin, object;

    r->key->strategy = PARTITION_STRATEGY_RANGE;
    object = document_append_object_begin(r->out, SLICE("strategy"));
    document_append_string(r->out, SLICE("kind"), SLICE("range"));
    if (r->object.data && (!members_check(r->object, names, ARRAY_LEN(names), err) ||
                           !array_read(r->object, SLICE("bounds"), &array, err)))
        return false;
    if (r->object.data && array.data) {
        if (document_count(array) > BOUNDS_MAX)
            return error_set(err, ERROR_BAD_REQUEST, "orrery.strategy.bounds are more than %d",
                             BOUNDS_MAX);
        bounds = ARENA_ARRAY(r->arena, struct slice, document_count(array) + 1);
        r->key->bounds = bounds;
        begin = document_append_array_begin(r->out, SLICE("bounds"));
        document_iter_init(&iter, array);
        for (; document_iter_next(&iter); r->key->bound_count++)
            if (!bound_read(r, &iter.value, bounds, r->key->bound_count, err))
                return false;
        document_end(r->out, begin);
    }
    document_end(r->out, object);
    return true;
}

/* --- Lookup ---------------------------------------------------------------------------------- */

static bool shards_read(struct strategy_reading *r, struct partition_lookup *lookup,
                        struct error *err)
{
    struct document_value value;
    int64_t number;

    if (!document_find(r->object, SLICE("shards"), &value) || !document_to_int64(&value, &number) ||
        number < 1 || number > PARTITION_SHARDS_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.strategy.shards must be a number between 1 and %d",
                         PARTITION_SHARDS_MAX);
    lookup->shards = (uint32_t)number;
    document_append_int32(r->out, SLICE("shards"), (int32_t)number);
    lookup->hashes = !document_find(r->object, SLICE("default"), &value) ||
                     (value.type == DOCUMENT_STRING && slice_equal(value.text, SLICE("hash")));
    if (lookup->hashes) {
        document_append_string(r->out, SLICE("default"), SLICE("hash"));
        return true;
    }
    if (!document_to_int64(&value, &number) || number < 0 || number >= lookup->shards)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.strategy.default must be \"hash\" or a shard below %u",
                         lookup->shards);
    lookup->preset = (uint32_t)number;
    document_append_int32(r->out, SLICE("default"), (int32_t)number);
    return true;
}

static bool shard_read(struct slice object, struct slice name, uint32_t *ret_shard)
{
    struct document_value value;
    int64_t number;

    if (!document_find(object, name, &value) || !document_to_int64(&value, &number) || number < 0 ||
        number >= PARTITION_SHARDS_MAX)
        return false;
    *ret_shard = (uint32_t)number;
    return true;
}

/* A text and a star; what else a pattern may have would not be found by a beginning. */
static bool zone_read(const struct document_value *value, struct partition_zone *ret_zone,
                      struct error *err)
{
    struct document_value like;
    struct slice text;

    if (value->type != DOCUMENT_OBJECT || document_count(value->document) != 3 ||
        !document_find(value->document, SLICE("keyLike"), &like) || like.type != DOCUMENT_STRING ||
        !shard_read(value->document, SLICE("first"), &ret_zone->first) ||
        !shard_read(value->document, SLICE("last"), &ret_zone->last))
        return error_set(err, ERROR_BAD_REQUEST,
                         "a zone of orrery.strategy is not {\"keyLike\", \"first\", \"last\"}");
    text = like.text;
    if (text.len < 2 || text.len > PARTITION_ZONE_BEGINNING_MAX + 1 ||
        text.data[text.len - 1] != '*' || memchr(text.data, '*', text.len - 1) ||
        memchr(text.data, '?', text.len))
        return error_set(err, ERROR_BAD_REQUEST,
                         "keyLike of a zone is a text of up to %d bytes and a star",
                         PARTITION_ZONE_BEGINNING_MAX);
    ret_zone->beginning = slice_first(text, text.len - 1);
    return true;
}

static void zones_write(const struct partition_zone *zones, size_t count, struct buf *out)
{
    size_t array = document_append_array_begin(out, SLICE("zones"));
    char index[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < count; i++) {
        size_t object = document_append_object_begin(out, document_index_key((uint32_t)i, index));
        struct slice text = zones[i].beginning;

        text.len++; /* the star behind it */
        document_append_string(out, SLICE("keyLike"), text);
        document_append_int32(out, SLICE("first"), (int32_t)zones[i].first);
        document_append_int32(out, SLICE("last"), (int32_t)zones[i].last);
        document_end(out, object);
    }
    document_end(out, array);
}

static bool zones_read(struct strategy_reading *r, struct partition_lookup *lookup,
                       struct error *err)
{
    struct partition_zone *zones;
    struct document_iter iter;
    struct slice array;
    size_t count, at = 0;

    if (!array_read(r->object, SLICE("zones"), &array, err))
        return false;
    count = array.data ? document_count(array) : 0;
    if (count == 0)
        return true;
    if (count > PARTITION_ZONES_MAX)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.strategy.zones are more than %d",
                         PARTITION_ZONES_MAX);
    zones = ARENA_ARRAY(r->arena, struct partition_zone, count);
    array = arena_copy(r->arena, array); /* texts of zones outlive what was read */
    document_iter_init(&iter, array);
    while (document_iter_next(&iter))
        if (!zone_read(&iter.value, &zones[at++], err))
            return false;
    if (!partition_lookup_zones_settle(lookup, zones, count, r->arena, err))
        return false;
    zones_write(zones, count, r->out);
    return true;
}

/* A line with the value it was made of, to be written in order. */
struct line_read {
    struct partition_line line;
    struct document_value value;
};

static bool line_read(struct strategy_reading *r, const struct document_value *value,
                      struct line_read *ret_line, struct error *err)
{
    struct document_value key, shard;
    int64_t number;
    size_t count;

    if (value->type != DOCUMENT_OBJECT || document_count(value->document) != 2 ||
        !document_find(value->document, SLICE("key"), &key) ||
        !document_find(value->document, SLICE("shard"), &shard))
        return error_set(err, ERROR_BAD_REQUEST,
                         "a line of orrery.strategy.directory is not {\"key\", \"shard\"}");
    if (!document_to_int64(&shard, &number) || number < 0 || number > UINT32_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "a shard of orrery.strategy.directory is not a number of one");
    if (!components_read(&key, 1, &count, &ret_line->value, err))
        return false;
    ret_line->line = (struct partition_line){
        .component = partition_component(&ret_line->value, r->arena), .shard = (uint32_t)number};
    return true;
}

static int line_compare(const void *a, const void *b)
{
    return slice_compare(((const struct line_read *)a)->line.component,
                         ((const struct line_read *)b)->line.component);
}

static void lines_write(const struct line_read *lines, size_t count, struct buf *out)
{
    size_t array = document_append_array_begin(out, SLICE("directory"));
    char index[DOCUMENT_INDEX_SIZE];

    for (size_t i = 0; i < count; i++) {
        size_t object = document_append_object_begin(out, document_index_key((uint32_t)i, index));
        size_t key = document_append_array_begin(out, SLICE("key"));

        definition_component_write(out, SLICE("0"), &lines[i].value);
        document_end(out, key);
        document_append_int32(out, SLICE("shard"), (int32_t)lines[i].line.shard);
        document_end(out, object);
    }
    document_end(out, array);
}

static bool directory_read(struct strategy_reading *r, struct slice array,
                           struct partition_lookup *lookup, struct error *err)
{
    size_t count = array.data ? document_count(array) : 0;
    struct line_read *read = ARENA_ARRAY(r->arena, struct line_read, count + 1);
    struct partition_line *lines = ARENA_ARRAY(r->arena, struct partition_line, count + 1);
    struct document_iter iter;

    if (count)
        document_iter_init(&iter, array);
    while (lookup->line_count < count && document_iter_next(&iter))
        if (!line_read(r, &iter.value, &read[lookup->line_count++], err))
            return false;
    if (lookup->line_count)
        qsort(read, lookup->line_count, sizeof *read, line_compare);
    for (size_t i = 0; i < lookup->line_count; i++)
        lines[i] = read[i].line;
    if (!partition_lookup_settle(lookup, lines, err))
        return false;
    lines_write(read, lookup->line_count, r->out);
    return true;
}

static bool lookup_read(struct strategy_reading *r, struct slice kept, struct error *err)
{
    static const struct slice names[] = {SLICE("kind"), SLICE("shards"), SLICE("default"),
                                         SLICE("zones"), SLICE("directory")};
    struct partition_lookup *lookup = ARENA_NEW(r->arena, struct partition_lookup);
    size_t object = document_append_object_begin(r->out, SLICE("strategy"));
    struct slice array;

    r->key->strategy = PARTITION_STRATEGY_LOOKUP;
    document_append_string(r->out, SLICE("kind"), SLICE("lookup"));
    if (!members_check(r->object, names, ARRAY_LEN(names), err) || !shards_read(r, lookup, err) ||
        !zones_read(r, lookup, err) || !array_read(r->object, SLICE("directory"), &array, err) ||
        !directory_read(r, array.data ? array : kept, lookup, err))
        return false;
    document_end(r->out, object);
    r->key->lookup = lookup;
    return true;
}

/* --- The whole ------------------------------------------------------------------------------- */

/* What a definition says, completed; false: hash, as it says nothing. */
bool definition_strategy_find(const struct definition_fields *fields,
                              struct document_value *ret_value)
{
    struct document_value orrery;

    return document_find(fields->document, SLICE("orrery"), &orrery) &&
           orrery.type == DOCUMENT_OBJECT &&
           document_find(orrery.document, SLICE("strategy"), ret_value);
}

struct slice definition_directory(const struct definition_fields *fields)
{
    struct document_value strategy, directory;

    if (!definition_strategy_find(fields, &strategy) || strategy.type != DOCUMENT_OBJECT ||
        !document_find(strategy.document, SLICE("directory"), &directory))
        return SLICE_NONE;
    return directory.document;
}

static bool kind_read(struct strategy_reading *r, const struct document_value *value,
                      struct slice kept, struct error *err)
{
    struct slice kind = SLICE_NONE;
    struct document_value given;

    if (value->type == DOCUMENT_STRING) {
        kind = value->text;
    } else if (value->type == DOCUMENT_OBJECT) {
        r->object = value->document;
        if (document_find(r->object, SLICE("kind"), &given) && given.type == DOCUMENT_STRING)
            kind = given.text;
    }
    if (slice_equal(kind, SLICE("hash")) && (!r->object.data || document_count(r->object) == 1)) {
        document_append_string(r->out, SLICE("strategy"), kind);
        return true;
    }
    if (r->key->system_key)
        return error_set(err, ERROR_BAD_REQUEST,
                         "a container without a partition key has no orrery.strategy but \"hash\"");
    if (slice_equal(kind, SLICE("range")))
        return range_read(r, err);
    if (slice_equal(kind, SLICE("lookup")) && r->object.data)
        return lookup_read(r, kept, err);
    return error_set(err, ERROR_BAD_REQUEST,
                     "orrery.strategy must be \"hash\", \"range\", or an object of kind \"range\" "
                     "or \"lookup\"");
}

/* Compared by what was written. */
static bool is_same(struct slice written, const struct definition_fields *before)
{
    struct document_value now = document_string(SLICE("hash")), was = now;

    (void)document_find(written, SLICE("strategy"), &now);
    (void)definition_strategy_find(before, &was);
    return document_compare(DOCUMENT_ORDER_SQL, &now, &was) == 0;
}

bool definition_strategy_read(struct definition_fields *fields, const struct document_value *value,
                              const struct definition_fields *before, struct arena *arena,
                              struct buf *out, struct error *err)
{
    CLEANUP(buf_done) struct buf written;
    struct strategy_reading reading = {.key = &fields->key, .arena = arena, .out = &written};
    struct document_value strategy;
    size_t begin;

    buf_init(&written, BUF_DEFAULT_MAX);
    begin = document_begin(&written);
    if (!kind_read(&reading, value, before ? definition_directory(before) : SLICE_NONE, err))
        return false;
    document_end(&written, begin);
    if (before && !is_same(buf_slice(&written), before))
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.strategy cannot be changed by replacing a container; lines of a "
                         "directory are edited under /_orrery/");
    if (document_find(buf_slice(&written), SLICE("strategy"), &strategy))
        document_append(out, SLICE("strategy"), &strategy);
    return true;
}

bool definition_strategy_keep(struct definition_fields *fields,
                              const struct definition_fields *before, struct arena *arena,
                              struct buf *out, struct error *err)
{
    struct document_value strategy;

    return !definition_strategy_find(before, &strategy) ||
           definition_strategy_read(fields, &strategy, before, arena, out, err);
}

/* --- Showing --------------------------------------------------------------------------------- */

static void strategy_show(struct slice strategy, struct buf *out)
{
    size_t object = document_append_object_begin(out, SLICE("strategy"));
    struct document_iter iter;

    document_iter_init(&iter, strategy);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, SLICE("directory")))
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
    document_end(out, object);
}

void definition_orrery_show(struct slice orrery, struct buf *out)
{
    size_t object = document_append_object_begin(out, SLICE("orrery"));
    struct document_iter iter;

    document_iter_init(&iter, orrery);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("strategy")) && iter.value.type == DOCUMENT_OBJECT)
            strategy_show(iter.value.document, out);
        else
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
    }
    document_end(out, object);
}
