/* Zones: a zone of a shard is a tag of its node, a zone of a range of shard keys a placement rule
 * of the collection. Rules speak of whole values of the first fields of a key, so that a zone is
 * either of those or of all keys: {region: "eu", day: MinKey} to {region: "eu", day: MaxKey}. */
#include "balance/balancer.h"
#include "document/order.h"
#include "front/mongo/command/arguments.h"
#include "front/mongo/sharding/changing.h"
#include "front/mongo/sharding/key.h"
#include "front/mongo/sharding/shard.h"
#include "throughput/cost.h"

/* --- Of shards ------------------------------------------------------------------------------- */

struct shard_zone {
    struct slice zone;
};

/* The tags as node_set takes them, with one more or one less. */
static void tags_write(const struct node_info *info, struct slice zone, bool add, struct buf *text)
{
    for (size_t i = 0; i < info->tag_count; i++)
        if (!slice_equal(slice_of_text(info->tags[i]), zone))
            buf_printf(text, "%s%s", text->len ? "," : "", info->tags[i]);
    if (add)
        buf_printf(text, "%s%.*s", text->len ? "," : "", SLICE_ARG(zone));
}

static bool shard_zone_set(struct mongo_call *call, bool add, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"zone", MONGO_FIELD_STRING, offsetof(struct shard_zone, zone), true}};
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(call->services->catalogue);
    struct shard_zone asked = {0};
    CLEANUP(buf_done) struct buf text;
    struct node_info *info;
    uint32_t node;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!mongo_shards_owned(call, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &asked, err))
        return false;
    if (call->target.type != DOCUMENT_STRING || !asked.zone.len)
        return mongo_error_set(err, MONGO_BAD_VALUE, "a shard and a zone are named by texts");
    if (memchr(asked.zone.data, ',', asked.zone.len))
        return mongo_error_set(err, MONGO_BAD_VALUE, "a zone cannot have a comma in its name");
    if (!mongo_shard_find(call, call->target.text, &node, err))
        return false;
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    info = node_table_find(table, call->target.text);
    tags_write(info, asked.zone, add, &text);
    if (!node_set(info, SLICE("tags"), buf_slice(&text), err) ||
        !catalogue_node_change(call->services->catalogue, call->target.text,
                               &(struct catalogue_node_settings){.attributes = info}, err))
        return false;
    if (call->services->balancer)
        balancer_wake(call->services->balancer);
    return true;
}

bool mongo_add_shard_to_zone(struct mongo_call *call, struct error *err)
{
    return shard_zone_set(call, true, err);
}

bool mongo_remove_shard_from_zone(struct mongo_call *call, struct error *err)
{
    return shard_zone_set(call, false, err);
}

/* --- Of ranges ------------------------------------------------------------------------------- */

struct range_zone {
    struct slice min, max;
    struct document_value zone;

    struct document_value key[PARTITION_PATHS_MAX];
    size_t key_count;
};

/* How many fields have one value; the others go from the lowest to the highest. */
static bool range_read(const struct partition_definition *definition, struct arena *arena,
                       struct range_zone *range, struct error *err)
{
    for (size_t i = 0; i < definition->path_count; i++) {
        struct slice name = mongo_shard_key_name(&definition->paths[i], arena);
        struct document_value min, max;
        bool ends;

        if (!document_find(range->min, name, &min) || !document_find(range->max, name, &max))
            return mongo_error_set(err, MONGO_SHARD_KEY_NOT_FOUND,
                                   "min and max have all fields of the shard key");
        ends = min.type == DOCUMENT_MIN_KEY && max.type == DOCUMENT_MAX_KEY;
        if (!ends && range->key_count == i && definition->strategy == PARTITION_STRATEGY_RANGE &&
            document_compare(DOCUMENT_ORDER_MONGO, &min, &max) == 0)
            range->key[range->key_count++] = min;
        else if (!ends)
            return mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                                   "a zone is of whole values of the first fields of a ranged "
                                   "shard key, from MinKey to MaxKey of the others");
    }
    return range->key_count < definition->path_count || definition->path_count == 1 ||
           range->key_count == 0 ||
           mongo_error_set(err, MONGO_BAD_VALUE, "the range from min to max is empty");
}

static bool rule_is(const struct placement_rule *rule, const struct range_zone *range)
{
    if (rule->like || rule->key_count != range->key_count)
        return false;
    for (size_t i = 0; i < rule->key_count; i++)
        if (document_compare(DOCUMENT_ORDER_SQL, &rule->key[i], &range->key[i]) != 0)
            return false;
    return true;
}

static void rule_append(const struct range_zone *range, struct slice index, struct buf *out)
{
    size_t rule = document_append_object_begin(out, index), list;
    char text[DOCUMENT_INDEX_SIZE];

    if (range->key_count) {
        list = document_append_array_begin(out, SLICE("key"));
        for (size_t i = 0; i < range->key_count; i++)
            document_append(out, document_index_key((uint32_t)i, text), &range->key[i]);
        document_end(out, list);
    }
    list = document_append_array_begin(out, SLICE("tags"));
    document_append_string(out, SLICE("0"), range->zone.text);
    document_end(out, list);
    document_end(out, rule);
}

/* The rules there are, without the one for this range; the new one first, or last if it is of all
 * keys. */
static void rules_append(const struct definition_fields *fields, struct slice rules,
                         const struct range_zone *range, struct buf *out)
{
    size_t list = document_append_array_begin(out, SLICE("placement")), at = 0;
    bool adds = range->zone.type == DOCUMENT_STRING;
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;

    if (adds && range->key_count)
        rule_append(range, document_index_key(count++, text), out);
    if (rules.data) {
        document_iter_init(&iter, rules);
        for (; document_iter_next(&iter); at++)
            if (at >= fields->placement.count || !rule_is(&fields->placement.rules[at], range))
                document_append(out, document_index_key(count++, text), &iter.value);
    }
    if (adds && !range->key_count)
        rule_append(range, document_index_key(count, text), out);
    document_end(out, list);
}

/* The definition with other rules. */
static void definition_write(const struct definition_fields *fields, const struct range_zone *range,
                             struct buf *out)
{
    struct document_value orrery = document_undefined(), rules = {0};
    size_t whole = document_begin(out), object;
    struct document_iter iter;

    document_iter_init(&iter, fields->document);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("orrery")))
            orrery = iter.value;
        else
            document_append(out, iter.key, &iter.value);
    }
    object = document_append_object_begin(out, SLICE("orrery"));
    if (orrery.type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, orrery.document);
        while (document_iter_next(&iter)) {
            if (slice_equal(iter.key, SLICE("placement")))
                rules = iter.value;
            else
                document_append(out, iter.key, &iter.value);
        }
    }
    rules_append(fields, rules.type == DOCUMENT_ARRAY ? rules.document : SLICE_NONE, range, out);
    document_end(out, object);
    document_end(out, whole);
}

static bool range_set(struct mongo_call *call, const struct mongo_namespace *name,
                      struct range_zone *range, struct error *err)
{
    CLEANUP(mongo_collection_close) struct mongo_collection collection = {0};
    CLEANUP(container_unref) struct container *after = NULL;
    const struct definition_fields *fields;
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (!mongo_sharded_open(call, name, &collection, err))
        return false;
    fields = collection.space.definition;
    if (!range_read(&fields->key, call->arena, range, err))
        return false;
    definition_write(fields, range, &body);
    if (!catalogue_container_replace(call->services->catalogue, call->account.id, name->database,
                                     name->collection, buf_slice(&body),
                                     container_info(collection.container)->etag, &after, err))
        return false;
    if (call->services->balancer)
        balancer_wake(call->services->balancer);
    return true;
}

bool mongo_update_zone_range(struct mongo_call *call, struct error *err)
{
    static const struct mongo_field fields[] = {
        {"min", MONGO_FIELD_OBJECT, offsetof(struct range_zone, min), true},
        {"max", MONGO_FIELD_OBJECT, offsetof(struct range_zone, max), true},
        {"zone", MONGO_FIELD_VALUE, offsetof(struct range_zone, zone)},
    };
    struct range_zone range = {.zone = document_undefined()};
    struct mongo_namespace name;

    if (!mongo_shards_owned(call, err) ||
        !mongo_change_namespace(call, &call->target, &name, err) ||
        !mongo_arguments_read(call, fields, ARRAY_LEN(fields), &range, err))
        return false;
    if (range.zone.type != DOCUMENT_STRING && range.zone.type != DOCUMENT_NULL &&
        range.zone.type != DOCUMENT_UNDEFINED)
        return mongo_error_set(err, MONGO_TYPE_MISMATCH, "zone is a text, or null for none");
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    return range_set(call, &name, &range, err);
}
