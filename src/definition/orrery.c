/* `orrery`: what a container is beyond what the service knows. Client libraries that know nothing
 * of it leave it out when they replace a container; then it stays as it is.
 *
 *     {"identity": "_id"}     which property names an item (definition/names.h); "id" where it says
 *                             nothing. definition.c reads it, for everything else depends on it
 *     {"strategy": "hash"}    how keys are placed; hash is what a container has that says nothing
 *                             (definition_strategy.c has all of them)
 *     {"synthetic": {...}}    how a part of the partition key is made (partition/synthetic.h)
 *     {"placement": [...]}    which nodes they may be on (placement.h); may change
 *     {"throughput": {...}}   how what was bought is divided (definition_throughput.h); may change
 *     {"accessPolicies": [{"id": "x", "start": "...", "expiry": "...", "permission": "raud"}]}
 *                             of a table, for shared access signatures (front/table/access.h)
 *     {"indexes": [...]}      indexes besides the policy (index/definition_read.c); may change
 *     {"mongo": {...}}        of a collection: what MongoDB's clients made it with
 *                             (front/mongo/command/terms.h); may change
 *     {"spatial": 1}          the format of the entries of the policy's spatial indexes; a
 * container without it was made before they had any, and has none until it is replaced. The server
 * says it
 *     {"fullText": 1}         the same of its full-text indexes
 *     {"vectors": 1}          the same of its vector indexes
 *     {"formerly": {...}}     the partition key before a re-key (definition_rekey.c)
 *     {"view": {...}}         the containers and the query it is kept from (definition/view.h)
 *     {"followed": true}      views are kept from it: which items were touched is written down. The
 *                             server says it
 *     {"reference": true}     queries of others may join its items (query/reference/copies.h); may
 *                             change. It is small: reference.bytes_max
 */
#include "definition/definition_private.h"
#include "definition/rekey.h"
#include "definition/strategy.h"
#include "definition/view.h"

#include "document/bson.h"
#include "partition/synthetic.h"

struct reading {
    struct definition_fields *fields;
    const struct definition_fields *before; /* NULL: it is created */
    const bool *taken;                      /* numbers of indexes */
    struct arena *arena;
    struct buf *out;
};

/* It has been read. A container of before there was a choice says nothing of it, so what is usual
 * is not written. */
static bool identity_write(struct reading *reading, const struct document_value *value UNUSED,
                           struct error *err UNUSED)
{
    if (reading->fields->identity != DEFINITION_IDENTITY_ID)
        document_append_string(reading->out, SLICE("identity"),
                               definition_names_of(reading->fields)->identity);
    return true;
}

static bool identity_keep(struct reading *reading, struct error *err)
{
    return identity_write(reading, NULL, err);
}

static bool strategy_read(struct reading *reading, const struct document_value *value,
                          struct error *err)
{
    return definition_strategy_read(reading->fields, value, reading->before, reading->arena,
                                    reading->out, err);
}

static bool strategy_keep(struct reading *reading, struct error *err)
{
    return definition_strategy_keep(reading->fields, reading->before, reading->arena, reading->out,
                                    err);
}

/* Every item stored has the key it was given, so nothing of this may change under it. */
static bool synthetic_fits_before(const struct partition_synthetic *synthetic,
                                  const struct definition_fields *before, struct error *err)
{
    const struct partition_synthetic *was = before->key.synthetic;

    if (was && partition_synthetic_equal(synthetic, was))
        return true;
    if (was && synthetic->suffixes && was->suffixes && synthetic->suffixes != was->suffixes)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.synthetic: %u suffixes cannot become %u by a replace: that gives "
                         "items other keys and is a re-key",
                         was->suffixes, synthetic->suffixes);
    return error_set(err, ERROR_BAD_REQUEST,
                     "orrery.synthetic cannot be changed by a replace: that gives items other keys "
                     "and is a re-key");
}

static bool synthetic_read(struct reading *reading, const struct document_value *value,
                           struct error *err)
{
    struct partition_definition *key = &reading->fields->key;
    bool escapes = false;

    if (value->type != DOCUMENT_OBJECT)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.synthetic must be an object");
    /* who creates one has said it (definition_fresh); who replaces it need not */
    if (reading->before && reading->before->key.synthetic)
        escapes = reading->before->key.synthetic->escapes;
    if (!partition_synthetic_read(value->document, key, escapes, reading->arena, &key->synthetic,
                                  err) ||
        !definition_synthetic_check(definition_names_of(reading->fields), key, err) ||
        (reading->before && !synthetic_fits_before(key->synthetic, reading->before, err)))
        return false;
    partition_synthetic_append(key->synthetic, key, SLICE("synthetic"), reading->out);
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
                         &reading->fields->placement, err) ||
        !placement_settle(&reading->fields->placement, &reading->fields->key, reading->arena, err))
        return false;
    document_append(reading->out, SLICE("placement"), value);
    return true;
}

static bool throughput_read(struct reading *reading, const struct document_value *value,
                            struct error *err)
{
    if (!definition_throughput_read(&reading->fields->key, value, reading->arena,
                                    &reading->fields->throughput, err))
        return false;
    document_append(reading->out, SLICE("throughput"), value);
    return true;
}

#define DOCUMENT_EMPTY SLICE("\5\0\0\0\0")

enum { ACCESS_POLICIES_MAX = 5, ACCESS_TEXT_MAX = 256 };

/* Texts all of them; what they mean is the Table API's to check. */
static bool access_policy_check(const struct document_value *policy)
{
    static const char *const names[] = {"id", "start", "expiry", "permission"};
    struct document_iter iter;
    bool named = false;

    if (policy->type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&iter, policy->document);
    while (document_iter_next(&iter)) {
        size_t known = 0;

        while (known < ARRAY_LEN(names) && !slice_equal(iter.key, slice_of_text(names[known])))
            known++;
        if (known == ARRAY_LEN(names) || iter.value.type != DOCUMENT_STRING ||
            iter.value.text.len > ACCESS_TEXT_MAX)
            return false;
        named = named || (known == 0 && iter.value.text.len > 0);
    }
    return named;
}

static bool access_policies_read(struct reading *reading, const struct document_value *value,
                                 struct error *err)
{
    struct document_iter iter;
    bool good =
        value->type == DOCUMENT_ARRAY && document_count(value->document) <= ACCESS_POLICIES_MAX;

    if (good) {
        document_iter_init(&iter, value->document);
        while (good && document_iter_next(&iter))
            good = access_policy_check(&iter.value);
    }
    if (!good)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.accessPolicies must be up to %d objects of an id and perhaps "
                         "start, expiry and permission, all of them texts",
                         ACCESS_POLICIES_MAX);
    document_append(reading->out, SLICE("accessPolicies"), value);
    return true;
}

static bool indexes_read(struct reading *reading, const struct document_value *value,
                         struct error *err)
{
    return definition_indexes_read(reading->fields, value, reading->before, reading->taken,
                                   reading->arena, reading->out, err);
}

/* They go when "indexes" is empty, not when somebody who does not know of them leaves them out. */
static bool indexes_keep(struct reading *reading, struct error *err)
{
    return indexes_read(reading, NULL, err);
}

enum { MONGO_BYTES_MAX = 256 * 1024 };

/* mongo.options.changeStreamPreAndPostImages.enabled: what writers have to know of it. */
static bool images_are_kept(const struct document_value *mongo)
{
    struct document_value options, images, enabled;

    return document_find(mongo->document, SLICE("options"), &options) &&
           options.type == DOCUMENT_OBJECT &&
           document_find(options.document, SLICE("changeStreamPreAndPostImages"), &images) &&
           images.type == DOCUMENT_OBJECT &&
           document_find(images.document, SLICE("enabled"), &enabled) &&
           enabled.type == DOCUMENT_BOOL && enabled.boolean;
}

static int64_t option_number(struct slice options, const char *name)
{
    struct document_value value;
    int64_t number = 0;

    return document_find(options, slice_of_text(name), &value) &&
                   document_to_int64(&value, &number) && number > 0
               ? number
               : 0;
}

/* mongo.options.capped, size and max. Only of a container in one logical partition: the oldest
 * items of several are none's business. */
static struct definition_bound bound_read(const struct definition_fields *fields,
                                          const struct document_value *mongo)
{
    struct document_value options, capped;
    double number = 0;

    if (!fields->key.system_key || !document_find(mongo->document, SLICE("options"), &options) ||
        options.type != DOCUMENT_OBJECT ||
        !document_find(options.document, SLICE("capped"), &capped) ||
        !(capped.type == DOCUMENT_BOOL ? capped.boolean
                                       : document_to_double(&capped, &number) && number != 0))
        return (struct definition_bound){0};
    return (struct definition_bound){.bytes = option_number(options.document, "size"),
                                     .items = option_number(options.document, "max")};
}

/* What else it means is the MongoDB API's to check: other APIs pass it on as it is. */
static bool mongo_read(struct reading *reading, const struct document_value *value,
                       struct error *err)
{
    if (reading->fields->identity != DEFINITION_IDENTITY_MONGO || value->type != DOCUMENT_OBJECT ||
        value->document.len > MONGO_BYTES_MAX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.mongo must be an object of up to %d bytes, of a container whose "
                         "items are known by \"_id\"",
                         MONGO_BYTES_MAX);
    reading->fields->mongo = arena_copy(reading->arena, value->document);
    reading->fields->change_images = images_are_kept(value);
    reading->fields->bound = bound_read(reading->fields, value);
    document_append(reading->out, SLICE("mongo"), value);
    return true;
}

static bool mongo_keep(struct reading *reading, struct error *err)
{
    const struct document_value value = document_object(reading->before->mongo);

    return !reading->before->mongo.data || mongo_read(reading, &value, err);
}

static bool synthetic_keep(struct reading *reading, struct error *err)
{
    if (!reading->before->key.synthetic)
        return true;
    return error_set(err, ERROR_BAD_REQUEST,
                     "orrery.synthetic cannot be left out by a replace that names orrery: items "
                     "have the keys it made");
}

/* definition.c has looked for these, for the policy depends on them. */
static bool format_check(const struct document_value *value, const char *name, int64_t known,
                         struct error *err)
{
    int64_t format;

    return (document_to_int64(value, &format) && format == known) ||
           error_set(err, ERROR_BAD_REQUEST, "orrery.%s is not %d", name, (int)known);
}

static bool spatial_keep(struct reading *reading, struct error *err UNUSED)
{
    if (reading->fields->cells)
        document_append_int32(reading->out, SLICE("spatial"), DEFINITION_CELLS_FORMAT);
    return true;
}

static bool spatial_read(struct reading *reading, const struct document_value *value,
                         struct error *err)
{
    return format_check(value, "spatial", DEFINITION_CELLS_FORMAT, err) &&
           spatial_keep(reading, err);
}

static bool full_text_keep(struct reading *reading, struct error *err UNUSED)
{
    if (reading->fields->terms)
        document_append_int32(reading->out, SLICE("fullText"), DEFINITION_TERMS_FORMAT);
    return true;
}

static bool full_text_read(struct reading *reading, const struct document_value *value,
                           struct error *err)
{
    return format_check(value, "fullText", DEFINITION_TERMS_FORMAT, err) &&
           full_text_keep(reading, err);
}

static bool vectors_keep(struct reading *reading, struct error *err UNUSED)
{
    if (reading->fields->vectors)
        document_append_int32(reading->out, SLICE("vectors"), DEFINITION_VECTORS_FORMAT);
    return true;
}

static bool vectors_read(struct reading *reading, const struct document_value *value,
                         struct error *err)
{
    return format_check(value, "vectors", DEFINITION_VECTORS_FORMAT, err) &&
           vectors_keep(reading, err);
}

static bool formerly_read(struct reading *reading, const struct document_value *value,
                          struct error *err)
{
    return definition_formerly_read(reading->fields, value, reading->before, reading->arena,
                                    reading->out, err);
}

static bool formerly_keep(struct reading *reading, struct error *err)
{
    return definition_formerly_keep(reading->fields, reading->before, reading->arena, reading->out,
                                    err);
}

static bool rekeyed_read(struct reading *reading, const struct document_value *value,
                         struct error *err)
{
    return definition_rekeyed_read(reading->fields, value, reading->before, reading->out, err);
}

static bool rekeyed_keep(struct reading *reading, struct error *err UNUSED)
{
    definition_rekeyed_keep(reading->fields, reading->before, reading->out);
    return true;
}

static bool placed_read(struct reading *reading, const struct document_value *value,
                        struct error *err)
{
    return definition_placed_read(value, reading->before, reading->out, err);
}

static bool placed_keep(struct reading *reading, struct error *err UNUSED)
{
    definition_placed_keep(reading->before, reading->out);
    return true;
}

static bool view_read(struct reading *reading, const struct document_value *value,
                      struct error *err)
{
    return definition_view_own_read(reading->fields, value, reading->before, reading->arena,
                                    reading->out, err);
}

static bool view_keep(struct reading *reading, struct error *err)
{
    return view_read(reading, NULL, err);
}

static void followed_set(struct reading *reading, bool followed)
{
    reading->fields->followed = followed;
    if (followed)
        document_append_bool(reading->out, SLICE("followed"), true);
}

static bool followed_read(struct reading *reading, const struct document_value *value,
                          struct error *err)
{
    if (value->type != DOCUMENT_BOOL || !value->boolean ||
        (reading->before && !reading->before->followed))
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.followed is set by the server while there are views of the "
                         "container");
    followed_set(reading, true);
    return true;
}

static bool followed_keep(struct reading *reading, struct error *err UNUSED)
{
    followed_set(reading, reading->before->followed);
    return true;
}

static bool reference_set(struct reading *reading, bool reference)
{
    reading->fields->reference = reference;
    if (reference)
        document_append_bool(reading->out, SLICE("reference"), true);
    return true;
}

static bool reference_read(struct reading *reading, const struct document_value *value,
                           struct error *err)
{
    if (value->type != DOCUMENT_BOOL)
        return error_set(err, ERROR_BAD_REQUEST, "orrery.reference must be true or false");
    return reference_set(reading, value->boolean);
}

/* It goes when it is false, not when somebody who does not know of it leaves it out. */
static bool reference_keep(struct reading *reading, struct error *err UNUSED)
{
    return reference_set(reading, reading->before->reference);
}

bool definition_reference_check(const struct definition_fields *fields, struct error *err)
{
    const char *wrong = NULL;

    if (!fields->reference)
        return true;
    if (fields->view.form)
        wrong = "is no view: its items are changed where they are";
    else if (fields->default_ttl != DEFINITION_TTL_OFF)
        wrong = "has no defaultTtl: its copies are as old as its last change";
    else if (fields->key.synthetic)
        wrong = "has no synthetic partition key: a join names the key";
    return !wrong ||
           error_set(err, ERROR_BAD_REQUEST, "container \"%.*s\": a reference container %s",
                     (int)MIN(fields->id.len, (size_t)64), (const char *)fields->id.data, wrong);
}

/* keep: a replace has the property without this member; NULL: then it is gone. */
static const struct member {
    struct slice name;
    bool (*read)(struct reading *reading, const struct document_value *value, struct error *err);
    bool (*keep)(struct reading *reading, struct error *err);
} members[] = {
    {SLICE("identity"), identity_write, identity_keep},
    {SLICE("strategy"), strategy_read, strategy_keep},
    {SLICE("synthetic"), synthetic_read, synthetic_keep},
    {SLICE("placement"), placement_read, NULL},
    {SLICE("throughput"), throughput_read, NULL},
    {SLICE("accessPolicies"), access_policies_read, NULL},
    {SLICE("indexes"), indexes_read, indexes_keep},
    {SLICE("mongo"), mongo_read, mongo_keep},
    {SLICE("spatial"), spatial_read, spatial_keep},
    {SLICE("fullText"), full_text_read, full_text_keep},
    {SLICE("vectors"), vectors_read, vectors_keep},
    {SLICE("formerly"), formerly_read, formerly_keep},
    {SLICE("rekeyed"), rekeyed_read, rekeyed_keep},
    {SLICE("placed"), placed_read, placed_keep},
    {SLICE("view"), view_read, view_keep},
    {SLICE("followed"), followed_read, followed_keep},
    {SLICE("reference"), reference_read, reference_keep},
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
                            const struct definition_fields *before, const bool *taken,
                            struct arena *arena, struct buf *out, struct error *err)
{
    struct reading reading = {fields, before, taken, arena, out};
    struct document_value value;

    if (!object.data)
        return true;
    if (!definition_graph_settle(fields, before, arena, &object, err) || !names_check(object, err))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        const struct member *member = &members[i];
        bool given = document_find(object, member->name, &value);

        if (given && !member->read(&reading, &value, err))
            return false;
        if (!given && before && member->keep && !member->keep(&reading, err))
            return false;
    }
    return true;
}

/* A copy with another value for one member. */
static struct slice with_member(struct slice document, struct slice name,
                                struct document_value value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf copy;
    struct document_iter iter;
    size_t begin;

    buf_init(&copy, BUF_DEFAULT_MAX);
    begin = document_begin(&copy);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (slice_equal(iter.key, name))
            document_append(&copy, iter.key, &value);
        else
            buf_append(&copy, iter.element, (size_t)(iter.at - iter.element));
    document_end(&copy, begin);
    return arena_copy(arena, buf_slice(&copy));
}

static struct slice synthetic_fresh(struct slice orrery, struct arena *arena)
{
    struct document_value synthetic;
    struct slice fresh;

    if (!document_find(orrery, SLICE("synthetic"), &synthetic) || synthetic.type != DOCUMENT_OBJECT)
        return orrery;
    fresh = partition_synthetic_fresh(synthetic.document, arena);
    if (fresh.data == synthetic.document.data)
        return orrery;
    return with_member(orrery, SLICE("synthetic"), document_object(fresh), arena);
}

static struct slice indexes_fresh(struct slice orrery, struct arena *arena)
{
    struct document_value indexes;

    if (!document_find(orrery, SLICE("indexes"), &indexes) || indexes.type != DOCUMENT_ARRAY)
        return orrery;
    return with_member(orrery, SLICE("indexes"),
                       document_array(definition_indexes_fresh(indexes.document, arena)), arena);
}

static bool body_lists(struct slice body, struct slice indexes)
{
    struct document_value policy, list;

    return document_find(body, SLICE("indexingPolicy"), &policy) &&
           policy.type == DOCUMENT_OBJECT && document_find(policy.document, indexes, &list) &&
           list.type == DOCUMENT_ARRAY && document_count(list.document);
}

/* What says that the indexes of a policy have entries. */
static struct slice marks_fresh(struct slice orrery, struct slice body, struct arena *arena)
{
    const struct document_value cells = document_int32(DEFINITION_CELLS_FORMAT);
    const struct document_value terms = document_int32(DEFINITION_TERMS_FORMAT);
    const struct document_value vectors = document_int32(DEFINITION_VECTORS_FORMAT);

    if (body_lists(body, SLICE("spatialIndexes")))
        orrery = definition_member_set(orrery, SLICE("spatial"), &cells, arena);
    if (body_lists(body, SLICE("fullTextIndexes")))
        orrery = definition_member_set(orrery, SLICE("fullText"), &terms, arena);
    if (body_lists(body, SLICE("vectorIndexes")))
        orrery = definition_member_set(orrery, SLICE("vectors"), &vectors, arena);
    return orrery;
}

struct slice definition_fresh(struct slice given, struct arena *arena)
{
    struct slice body = definition_view_fresh(given, arena);
    struct slice none = DOCUMENT_EMPTY, fresh;
    struct document_value orrery;

    if (!document_find(body, SLICE("orrery"), &orrery)) {
        fresh = marks_fresh(none, body, arena);
        orrery = document_object(fresh);
        return fresh.data == none.data
                   ? body
                   : definition_member_set(body, SLICE("orrery"), &orrery, arena);
    }
    if (orrery.type != DOCUMENT_OBJECT)
        return body;
    fresh = marks_fresh(indexes_fresh(synthetic_fresh(orrery.document, arena), arena), body, arena);
    if (fresh.data == orrery.document.data)
        return body;
    return with_member(body, SLICE("orrery"), document_object(fresh), arena);
}

struct slice definition_member_set(struct slice object, struct slice name,
                                   const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf copy;
    struct document_iter iter;
    size_t begin;

    buf_init(&copy, BUF_DEFAULT_MAX);
    begin = document_begin(&copy);
    document_iter_init(&iter, object);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, name))
            buf_append(&copy, iter.element, (size_t)(iter.at - iter.element));
    if (value->type != DOCUMENT_UNDEFINED)
        document_append(&copy, name, value);
    document_end(&copy, begin);
    return arena_copy(arena, buf_slice(&copy));
}

/* It reads as it does from the disk, where nothing is before it. */
bool definition_renamed(const struct definition *definition, struct slice id,
                        struct definition **ret_definition, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value name = document_string(id);

    return definition_new(
        definition_member_set(definition_fields(definition)->document, SLICE("id"), &name, arena),
        NULL, ret_definition, err);
}

/* An empty object stands for none: what is left out is kept. */
struct slice definition_with_mongo(const struct definition_fields *fields, struct slice mongo,
                                   struct arena *arena)
{
    static const struct slice nothing = SLICE("\5\0\0\0\0");
    const struct document_value value = document_object(mongo.data ? mongo : nothing);
    struct document_value orrery = document_undefined();

    if (!document_find(fields->document, SLICE("orrery"), &orrery))
        orrery = document_object(nothing);
    orrery = document_object(definition_member_set(orrery.document, SLICE("mongo"), &value, arena));
    return definition_member_set(fields->document, SLICE("orrery"), &orrery, arena);
}
