#include "front/mongo/index/spec_private.h"

#include "front/mongo/collation/collation.h"
#include "front/mongo/text.h"

#include <math.h>

enum { SHOWN_MAX = 120 };

static struct slice text_of(const struct mongo_index_reading *r, struct slice document)
{
    const struct document_value value = document_object(document);
    struct slice text = mongo_text_value(&value, r->arena);

    return slice_first(text, MIN(text.len, (size_t)SHOWN_MAX));
}

bool mongo_index_cannot(const struct mongo_index_reading *r, const char *why)
{
    return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX, "%s", why);
}

/* --- Fields ---------------------------------------------------------------------------------- */

/* What is taken and makes no difference, what is refused, what is looked at. */
static bool field_read(struct mongo_index_reading *r, struct slice name,
                       const struct document_value *value)
{
    const struct {
        struct slice name;
        struct document_value *to; /* NULL: it makes no difference */
    } fields[] = {
        {SLICE("key"), &r->key},
        {SLICE("name"), &r->name},
        {SLICE("v"), &r->version},
        {SLICE("unique"), &r->unique},
        {SLICE("sparse"), &r->sparse},
        {SLICE("hidden"), &r->hidden},
        {SLICE("expireAfterSeconds"), &r->expires},
        {SLICE("partialFilterExpression"), &r->filter},
        {SLICE("wildcardProjection"), &r->projection},
        {SLICE("collation"), &r->collation},
        {SLICE("clustered"), &r->clustered},
        {SLICE("prepareUnique"), &r->prepared},
        {SLICE("background"), NULL},
        {SLICE("ns"), NULL},
        {SLICE("dropDups"), NULL},
        {SLICE("storageEngine"), NULL},
        /* of kinds that are refused by their key */
        {SLICE("weights"), &r->weights},
        {SLICE("default_language"), &r->language},
        {SLICE("language_override"), &r->override},
        {SLICE("textIndexVersion"), &r->text_version},
        {SLICE("2dsphereIndexVersion"), &r->sphere_version},
        {SLICE("bits"), &r->bits},
        {SLICE("min"), &r->min},
        {SLICE("max"), &r->max},
        {SLICE("bucketSize"), NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (slice_equal(name, fields[i].name)) {
            if (fields[i].to && mongo_index_is_given(value))
                *fields[i].to = *value;
            return true;
        }
    return mongo_error_set(r->err, MONGO_INVALID_INDEX_OPTION,
                           "The field '%.*s' is not valid for an index specification. "
                           "Specification: %.*s",
                           (int)MIN(name.len, (size_t)60), (const char *)name.data,
                           SLICE_ARG(text_of(r, r->index)));
}

static bool flags_check(const struct mongo_index_reading *r)
{
    const struct {
        const char *name;
        const struct document_value *value;
    } flags[] = {{"unique", &r->unique},
                 {"sparse", &r->sparse},
                 {"hidden", &r->hidden},
                 {"clustered", &r->clustered},
                 {"prepareUnique", &r->prepared}};
    double number;

    for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
        if (!mongo_index_is_given(flags[i].value) || flags[i].value->type == DOCUMENT_BOOL ||
            document_to_double(flags[i].value, &number))
            continue;
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field '%s' has value %s, which is not convertible to bool",
                               flags[i].name, mongo_type_name(flags[i].value->type));
    }
    if (mongo_index_flag(&r->clustered) || mongo_index_flag(&r->prepared))
        return mongo_error_set(r->err, MONGO_NOT_IMPLEMENTED, "createIndexes: %s is not offered",
                               mongo_index_flag(&r->clustered) ? "clustered" : "prepareUnique");
    return true;
}

static bool version_check(const struct mongo_index_reading *r)
{
    int64_t version;

    if (!mongo_index_is_given(&r->version))
        return true;
    if (!document_is_number(&r->version))
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field 'v' must be a number, but got %s",
                               mongo_type_name(r->version.type));
    if (!document_to_int64(&r->version, &version) || version < 1 || version > 2)
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Invalid index specification %.*s; cannot create an index with "
                               "this version",
                               SLICE_ARG(text_of(r, r->index)));
    return true;
}

/* --- The key --------------------------------------------------------------------------------- */

bool mongo_index_is_wildcard(struct slice field)
{
    return slice_equal(field, SLICE("$**")) ||
           (field.len > 4 && slice_equal(slice_skip(field, field.len - 4), SLICE(".$**")));
}

bool mongo_index_field_check(const struct mongo_index_reading *r, struct slice field)
{
    struct slice rest = field, head, tail;
    bool more = true;

    if (!field.len)
        return mongo_index_cannot(r, "Index keys cannot be an empty field.");
    if (mongo_index_is_wildcard(field))
        return true;
    while (more) {
        more = slice_split(rest, '.', &head, &tail);
        if (!more)
            head = rest;
        if (!head.len)
            return mongo_index_cannot(r, "Index keys cannot contain an empty field.");
        if (head.data[0] == '$' && !slice_equal(head, SLICE("$ref")) &&
            !slice_equal(head, SLICE("$id")) && !slice_equal(head, SLICE("$db")))
            return mongo_index_cannot(
                r, "Index key contains an illegal field name: field name starts with "
                   "'$'.");
        rest = tail;
    }
    return true;
}

static bool plugin_check(struct mongo_index_reading *r, struct slice plugin)
{
    static const char *const known[] = {"geoHaystack"};

    if (slice_equal(plugin, SLICE("hashed"))) {
        r->hashed++;
        return true;
    }
    if (slice_equal(plugin, SLICE("text"))) {
        r->texts++;
        return true;
    }
    if (slice_equal(plugin, SLICE("2dsphere")) || slice_equal(plugin, SLICE("2d"))) {
        *(plugin.len == 2 ? &r->planes : &r->spheres) += 1;
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (slice_equal(plugin, slice_of_text(known[i])))
            return mongo_error_set(r->err, MONGO_NOT_IMPLEMENTED,
                                   "createIndexes: %s indexes are not offered yet", known[i]);
    return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX, "Unknown index plugin '%.*s'",
                           (int)MIN(plugin.len, (size_t)60), (const char *)plugin.data);
}

static bool part_check(struct mongo_index_reading *r, struct slice field,
                       const struct document_value *value)
{
    double number;

    if (!mongo_index_field_check(r, field))
        return false;
    if (value->type == DOCUMENT_STRING)
        return plugin_check(r, value->text);
    if (!document_to_double(value, &number))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Values in v:2 index key pattern cannot be of type %s. Only numbers "
                               "> 0, numbers < 0, and strings are allowed.",
                               mongo_type_name(value->type));
    if (isnan(number))
        return mongo_index_cannot(r, "Values in the index key pattern cannot be NaN.");
    return number != 0 || mongo_index_cannot(r, "Values in the index key pattern cannot be 0.");
}

static bool key_check(struct mongo_index_reading *r)
{
    struct document_iter iter;

    if (!mongo_index_is_given(&r->key))
        return mongo_error_set(r->err, MONGO_FAILED_TO_PARSE,
                               "The 'key' field is a required property of an index specification");
    if (r->key.type != DOCUMENT_OBJECT)
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field 'key' must be an object, but got %s",
                               mongo_type_name(r->key.type));
    r->parts = document_count(r->key.document);
    if (!r->parts)
        return mongo_index_cannot(r, "Index keys cannot be empty.");
    if (r->parts > INDEX_PARTS_MAX)
        return mongo_error_set(r->err, 13103, "too many compound keys");
    document_iter_init(&iter, r->key.document);
    while (document_iter_next(&iter)) {
        if (!part_check(r, iter.key, &iter.value))
            return false;
        r->wildcards += mongo_index_is_wildcard(iter.key);
    }
    if (r->texts)
        return mongo_index_text_check(r);
    if (r->wildcards && r->parts > 1)
        return mongo_index_cannot(r, "wildcard indexes do not allow compounding");
    if (r->hashed > 1)
        return mongo_error_set(r->err, 31303,
                               "A maximum of one index field is allowed to be hashed but found %zu "
                               "for 'key' %.*s",
                               r->hashed, SLICE_ARG(text_of(r, r->key.document)));
    r->spec->key = arena_copy(r->arena, r->key.document);
    return true;
}

/* a_1_b_-1 */
static struct slice name_default(const struct mongo_index_reading *r)
{
    CLEANUP(buf_done) struct buf name;
    struct document_iter iter;

    buf_init(&name, BUF_DEFAULT_MAX);
    document_iter_init(&iter, r->key.document);
    while (document_iter_next(&iter)) {
        int64_t whole;
        double number = 0;

        if (name.len)
            BUF_APPEND(&name, "_");
        buf_append_slice(&name, iter.key);
        BUF_APPEND(&name, "_");
        if (iter.value.type == DOCUMENT_STRING)
            buf_append_slice(&name, iter.value.text);
        else if (document_to_int64(&iter.value, &whole))
            buf_printf(&name, "%lld", (long long)whole);
        else if (document_to_double(&iter.value, &number))
            buf_printf(&name, "%g", number);
    }
    return arena_copy(r->arena, buf_slice(&name));
}

static bool name_check(struct mongo_index_reading *r)
{
    if (!mongo_index_is_given(&r->name)) {
        r->spec->name = name_default(r);
    } else if (r->name.type != DOCUMENT_STRING) {
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field 'name' must be a string, but got %s",
                               mongo_type_name(r->name.type));
    } else {
        r->spec->name = arena_copy(r->arena, r->name.text);
    }
    if (slice_equal(r->spec->name, SLICE("*")))
        return mongo_error_set(r->err, MONGO_BAD_VALUE, "The index name '*' is not valid.");
    if (!r->spec->name.len)
        return mongo_index_cannot(r, "index names cannot be empty");
    if (memchr(r->spec->name.data, 0, r->spec->name.len))
        return mongo_index_cannot(r, "index names cannot contain NUL characters");
    return r->spec->name.len <= INDEX_NAME_MAX ||
           mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                           "index name is too long: %zu bytes, at most %d", r->spec->name.len,
                           INDEX_NAME_MAX);
}

/* {_id: 1}, whatever number above 0 it is. */
static bool key_is(const struct mongo_index_reading *r, struct slice field)
{
    struct document_iter iter;
    double number;

    document_iter_init(&iter, r->key.document);
    return r->parts == 1 && document_iter_next(&iter) && slice_equal(iter.key, field) &&
           document_to_double(&iter.value, &number) && number > 0;
}

/* --- Options --------------------------------------------------------------------------------- */

bool mongo_index_expiry_read(const struct document_value *value, int32_t *ret_seconds,
                             struct error *err)
{
    double number;

    if (!document_to_double(value, &number))
        return mongo_error_set(err, MONGO_CANNOT_CREATE_INDEX,
                               "TTL index 'expireAfterSeconds' option must be numeric, but "
                               "received a type of '%s'",
                               mongo_type_name(value->type));
    if (isnan(number))
        number = 0;
    if (number < 0)
        return mongo_error_set(err, MONGO_CANNOT_CREATE_INDEX,
                               "TTL index 'expireAfterSeconds' option cannot be less than 0");
    if (number > INT32_MAX)
        return mongo_error_set(err, MONGO_CANNOT_CREATE_INDEX,
                               "TTL index 'expireAfterSeconds' option must be within an acceptable "
                               "range, try a lower number than %.0f",
                               number);
    *ret_seconds = (int32_t)number;
    return true;
}

static bool expiry_check(struct mongo_index_reading *r)
{
    r->spec->expire_after_s = INDEX_EXPIRES_NEVER;
    if (!mongo_index_is_given(&r->expires))
        return true;
    if (!mongo_index_expiry_read(&r->expires, &r->spec->expire_after_s, r->err))
        return false;
    if (r->parts > 1)
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "TTL indexes are single-field indexes, compound indexes do not "
                               "support TTL. Index spec: %.*s",
                               SLICE_ARG(text_of(r, r->index)));
    if (r->wildcards || r->hashed)
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Index type '%s' cannot be a TTL index",
                               r->wildcards ? "wildcard" : "hashed");
    r->spec->on_modified = key_is(r, SLICE("_ts"));
    return !r->spec->on_modified || r->spec->expire_after_s > 0 ||
           mongo_index_cannot(r, "an index on _ts expires documents after 1 second at least");
}

static bool filter_check(const struct mongo_index_reading *r)
{
    if (!mongo_index_is_given(&r->filter))
        return true;
    if (r->filter.type != DOCUMENT_OBJECT)
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field 'partialFilterExpression' must be an object, but got %s",
                               mongo_type_name(r->filter.type));
    return !mongo_index_is_given(&r->sparse) || !mongo_index_flag(&r->sparse) ||
           mongo_index_cannot(r, "cannot mix \"partialFilterExpression\" and \"sparse\" options");
}

static bool projection_check(const struct mongo_index_reading *r)
{
    struct document_iter iter;

    if (!mongo_index_is_given(&r->projection))
        return true;
    if (r->projection.type != DOCUMENT_OBJECT)
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field 'wildcardProjection' must be a non-empty object, but got "
                               "%s",
                               mongo_type_name(r->projection.type));
    if (!document_count(r->projection.document))
        return mongo_error_set(r->err, MONGO_FAILED_TO_PARSE,
                               "The 'wildcardProjection' field can't be an empty object");
    document_iter_init(&iter, r->key.document);
    (void)document_iter_next(&iter);
    return slice_equal(iter.key, SLICE("$**")) ||
           mongo_error_set(r->err, r->wildcards ? MONGO_FAILED_TO_PARSE : MONGO_BAD_VALUE,
                           "The field 'wildcardProjection' is only allowed when 'key' is "
                           "{\"$**\": ±1}");
}

static bool collation_check(struct mongo_index_reading *r)
{
    if (!mongo_index_is_given(&r->collation))
        return true;
    if (r->collation.type != DOCUMENT_OBJECT)
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field 'collation' must be an object, but got %s",
                               mongo_type_name(r->collation.type));
    if (!document_count(r->collation.document))
        return mongo_error_set(r->err, MONGO_BAD_VALUE,
                               "The field 'collation' cannot be an empty object.");
    return mongo_collator_find(r->collation.document, &r->collator, r->err);
}

static bool kind_check(const struct mongo_index_reading *r)
{
    bool unique = mongo_index_flag(&r->unique);

    if (unique && r->hashed)
        return mongo_error_set(r->err, 16764,
                               "Currently hashed indexes cannot guarantee uniqueness. Use a "
                               "regular index.");
    if (unique && r->wildcards)
        return mongo_index_cannot(r, "Index type 'wildcard' does not support the unique option");
    if (mongo_index_flag(&r->sparse) && r->wildcards)
        return mongo_index_cannot(r, "Index type 'wildcard' does not support the sparse option");
    return true;
}

/* The box of a plane is half open in MongoDB, and whole here. */
static bool plane_check(struct mongo_index_reading *r)
{
    double bits;

    r->low = -180;
    r->high = 180;
    if (mongo_index_is_given(&r->min) && !document_to_double(&r->min, &r->low))
        return mongo_index_cannot(r, "min of a 2d index must be a number");
    if (mongo_index_is_given(&r->max) && !document_to_double(&r->max, &r->high))
        return mongo_index_cannot(r, "max of a 2d index must be a number");
    if (!isfinite(r->low) || !isfinite(r->high) || !(r->low < r->high))
        return mongo_error_set(r->err, MONGO_INVALID_OPTIONS,
                               "2d index: min must be less than max, both of them finite");
    return !mongo_index_is_given(&r->bits) ||
           (document_to_double(&r->bits, &bits) && bits >= 1 && bits <= 32) ||
           mongo_error_set(r->err, MONGO_INVALID_OPTIONS, "bits for hash must be > 0 and <= 32");
}

static bool spatial_check(struct mongo_index_reading *r)
{
    const char *kind = r->planes ? "2d" : "2dsphere";
    struct document_iter iter;
    int64_t version;

    if (!r->planes && !r->spheres)
        return true;
    if (r->planes + r->spheres > 1)
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "an index has at most one 2dsphere or 2d field here");
    if (r->hashed || r->wildcards)
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Cannot use %s index with hashed or wildcard fields", kind);
    document_iter_init(&iter, r->key.document);
    (void)document_iter_next(&iter);
    if (r->planes && iter.value.type != DOCUMENT_STRING)
        return mongo_error_set(r->err, 16801, "2d has to be first in index");
    if (mongo_index_flag(&r->unique))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Index type '%s' does not support the unique option", kind);
    if (mongo_index_is_given(&r->expires))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Index type '%s' cannot be a TTL index", kind);
    if (r->planes && r->collator)
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Index type '2d' does not support collation");
    if (mongo_index_is_given(&r->sphere_version) &&
        (!document_to_int64(&r->sphere_version, &version) || version != 3))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "unsupported geo index version { 2dsphereIndexVersion: ... }, only "
                               "support versions: [3]");
    return !r->planes || plane_check(r);
}

/* Of {_id: 1} only what changes nothing of it may be said. */
static bool id_check(const struct mongo_index_reading *r, const struct document_collator *inherited)
{
    const struct {
        const char *name;
        bool wrong;
    } options[] = {{"sparse", mongo_index_flag(&r->sparse)},
                   {"hidden", mongo_index_flag(&r->hidden)},
                   {"expireAfterSeconds", mongo_index_is_given(&r->expires)},
                   {"partialFilterExpression", mongo_index_is_given(&r->filter)}};

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (options[i].wrong)
            return mongo_error_set(r->err, i == 1 ? MONGO_BAD_VALUE : MONGO_INVALID_INDEX_OPTION,
                                   i == 1 ? "can't hide _id index"
                                          : "The field '%s' is not valid for an _id index "
                                            "specification",
                                   options[i].name);
    return r->collator == inherited ||
           mongo_error_set(r->err, MONGO_BAD_VALUE,
                           "The _id index must have the same collation as the collection.");
}

/* --- Reading --------------------------------------------------------------------------------- */

bool mongo_index_spec_read(struct slice index, const struct document_collator *inherited,
                           struct arena *arena, struct mongo_index_spec *ret_spec,
                           struct error *err)
{
    const struct document_value none = document_undefined();
    struct mongo_index_spec spec = {0};
    struct mongo_index_reading r = {.arena = arena,
                                    .err = err,
                                    .index = index,
                                    .spec = &spec,
                                    .collator = inherited,
                                    .key = none,
                                    .name = none,
                                    .version = none,
                                    .unique = none,
                                    .sparse = none,
                                    .hidden = none,
                                    .expires = none,
                                    .filter = none,
                                    .projection = none,
                                    .collation = none,
                                    .clustered = none,
                                    .prepared = none,
                                    .weights = none,
                                    .language = none,
                                    .override = none,
                                    .text_version = none,
                                    .sphere_version = none,
                                    .bits = none,
                                    .min = none,
                                    .max = none};
    struct document_iter iter;

    document_iter_init(&iter, index);
    while (document_iter_next(&iter))
        if (!field_read(&r, iter.key, &iter.value))
            return false;
    if (!key_check(&r) || !name_check(&r) || !flags_check(&r) || !version_check(&r) ||
        !expiry_check(&r) || !filter_check(&r) || !projection_check(&r) || !collation_check(&r) ||
        !kind_check(&r) || !spatial_check(&r))
        return false;
    spec.unique = mongo_index_flag(&r.unique);
    spec.is_id = key_is(&r, SLICE("_id"));
    if (spec.is_id) {
        if (!id_check(&r, inherited))
            return false;
        spec.name = MONGO_INDEX_ID;
        spec.shown = mongo_index_id(inherited, arena);
        *ret_spec = spec;
        return true;
    }
    mongo_index_shown_make(&r);
    if (!mongo_index_definition_make(&r))
        return false;
    *ret_spec = spec;
    return true;
}

/* --- Comparing ------------------------------------------------------------------------------- */

static bool fields_same(struct slice a, struct slice b, struct slice name)
{
    struct document_value x = document_undefined(), y = document_undefined();

    (void)document_find(a, name, &x);
    (void)document_find(b, name, &y);
    return document_compare(DOCUMENT_ORDER_MONGO, &x, &y) == 0;
}

/* Indexes of the same key may stand side by side if they are of other documents or another
 * collation. */
bool mongo_index_keys_same(struct slice shown, struct slice other)
{
    return fields_same(shown, other, SLICE("key")) &&
           fields_same(shown, other, SLICE("partialFilterExpression")) &&
           fields_same(shown, other, SLICE("collation"));
}

bool mongo_index_options_same(struct slice shown, struct slice other)
{
    static const struct slice names[] = {SLICE("unique"),
                                         SLICE("sparse"),
                                         SLICE("expireAfterSeconds"),
                                         SLICE("wildcardProjection"),
                                         SLICE("weights"),
                                         SLICE("default_language"),
                                         SLICE("language_override"),
                                         SLICE("bits"),
                                         SLICE("min"),
                                         SLICE("max")};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (!fields_same(shown, other, names[i]))
            return false;
    return true;
}
