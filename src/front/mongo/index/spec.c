#include "front/mongo/index/spec.h"

#include "document/bson.h"
#include "front/mongo/collation/collation.h"
#include "front/mongo/text.h"
#include "search/analyser.h"

#include <math.h>

enum { SHOWN_MAX = 120 };

/* One that is being read. */
struct reading {
    struct arena *arena;
    struct error *err;
    struct slice index; /* as it came */
    struct mongo_index_spec *spec;
    struct document_value key, name, version, unique, sparse, hidden, expires, filter, projection;
    struct document_value collation, clustered, prepared;
    const struct document_collator *collator; /* what it compares texts by; NULL: their bytes */
    struct document_value sphere_version, bits, min, max;
    struct document_value weights, language, override, text_version;
    size_t parts, hashed, wildcards, spheres, planes, texts;
    double low, high; /* of the box of a plane */
};

static struct slice text_of(const struct reading *r, struct slice document)
{
    const struct document_value value = document_object(document);
    struct slice text = mongo_text_value(&value, r->arena);

    return slice_first(text, MIN(text.len, (size_t)SHOWN_MAX));
}

static bool cannot(const struct reading *r, const char *why)
{
    return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX, "%s", why);
}

static bool is_given(const struct document_value *value)
{
    return value->type != DOCUMENT_UNDEFINED && value->type != DOCUMENT_NULL;
}

static bool flag_of(const struct document_value *value)
{
    double number = 0;

    return value->type == DOCUMENT_BOOL ? value->boolean
                                        : document_to_double(value, &number) && number != 0;
}

/* --- Fields ---------------------------------------------------------------------------------- */

/* What is taken and makes no difference, what is refused, what is looked at. */
static bool field_read(struct reading *r, struct slice name, const struct document_value *value)
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
            if (fields[i].to && is_given(value))
                *fields[i].to = *value;
            return true;
        }
    return mongo_error_set(r->err, MONGO_INVALID_INDEX_OPTION,
                           "The field '%.*s' is not valid for an index specification. "
                           "Specification: %.*s",
                           (int)MIN(name.len, (size_t)60), (const char *)name.data,
                           SLICE_ARG(text_of(r, r->index)));
}

static bool flags_check(const struct reading *r)
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
        if (!is_given(flags[i].value) || flags[i].value->type == DOCUMENT_BOOL ||
            document_to_double(flags[i].value, &number))
            continue;
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field '%s' has value %s, which is not convertible to bool",
                               flags[i].name, mongo_type_name(flags[i].value->type));
    }
    if (flag_of(&r->clustered) || flag_of(&r->prepared))
        return mongo_error_set(r->err, MONGO_NOT_IMPLEMENTED, "createIndexes: %s is not offered",
                               flag_of(&r->clustered) ? "clustered" : "prepareUnique");
    return true;
}

static bool version_check(const struct reading *r)
{
    int64_t version;

    if (!is_given(&r->version))
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

static bool is_wildcard(struct slice field)
{
    return slice_equal(field, SLICE("$**")) ||
           (field.len > 4 && slice_equal(slice_skip(field, field.len - 4), SLICE(".$**")));
}

static bool field_check(const struct reading *r, struct slice field)
{
    struct slice rest = field, head, tail;
    bool more = true;

    if (!field.len)
        return cannot(r, "Index keys cannot be an empty field.");
    if (is_wildcard(field))
        return true;
    while (more) {
        more = slice_split(rest, '.', &head, &tail);
        if (!more)
            head = rest;
        if (!head.len)
            return cannot(r, "Index keys cannot contain an empty field.");
        if (head.data[0] == '$' && !slice_equal(head, SLICE("$ref")) &&
            !slice_equal(head, SLICE("$id")) && !slice_equal(head, SLICE("$db")))
            return cannot(r, "Index key contains an illegal field name: field name starts with "
                             "'$'.");
        rest = tail;
    }
    return true;
}

static bool plugin_check(struct reading *r, struct slice plugin)
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

static bool part_check(struct reading *r, struct slice field, const struct document_value *value)
{
    double number;

    if (!field_check(r, field))
        return false;
    if (value->type == DOCUMENT_STRING)
        return plugin_check(r, value->text);
    if (!document_to_double(value, &number))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Values in v:2 index key pattern cannot be of type %s. Only numbers "
                               "> 0, numbers < 0, and strings are allowed.",
                               mongo_type_name(value->type));
    if (isnan(number))
        return cannot(r, "Values in the index key pattern cannot be NaN.");
    return number != 0 || cannot(r, "Values in the index key pattern cannot be 0.");
}

/* --- Text ------------------------------------------------------------------------------------ */

/* A wildcard of everything stands for all fields, which may have weights of their own. */
static bool text_is_all(const struct reading *r)
{
    struct document_value all;

    return document_find(r->key.document, SLICE("$**"), &all) ||
           (r->weights.type == DOCUMENT_OBJECT &&
            document_find(r->weights.document, SLICE("$**"), &all));
}

static bool weights_check(const struct reading *r)
{
    struct document_iter iter;
    double weight;

    if (!is_given(&r->weights))
        return true;
    if (r->weights.type != DOCUMENT_OBJECT)
        return cannot(r, "text index option 'weights' must be an object");
    document_iter_init(&iter, r->weights.document);
    while (document_iter_next(&iter)) {
        if (!field_check(r, iter.key))
            return false;
        if (!document_to_double(&iter.value, &weight) || !(weight >= 1 && weight < 1000000000))
            return cannot(r, "text index weight must be in the exclusive interval (0,1000000000)");
    }
    return document_count(r->weights.document) <= INDEX_PARTS_MAX ||
           cannot(r, "a text index has at most 32 fields");
}

/* {_fts: "text", _ftsx: 1}: what the key of such an index is in the end. */
static struct slice text_key(const struct reading *r)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("_fts"), SLICE("text"));
    document_append_int32(&out, SLICE("_ftsx"), 1);
    document_end(&out, begin);
    return arena_copy(r->arena, buf_slice(&out));
}

static bool text_check(struct reading *r)
{
    struct document_iter iter;
    int64_t version;

    if (r->texts != r->parts)
        return mongo_error_set(r->err, MONGO_NOT_IMPLEMENTED,
                               "createIndexes: text indexes with other keys before or behind are "
                               "not offered yet");
    document_iter_init(&iter, r->key.document);
    while (document_iter_next(&iter))
        if (is_wildcard(iter.key) && !slice_equal(iter.key, SLICE("$**")))
            return cannot(r, "a text index is of fields, or of all with \"$**\"");
    if (!weights_check(r))
        return false;
    if (is_given(&r->text_version) &&
        (!document_to_int64(&r->text_version, &version) || version != 3))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "bad index type: a text index has textIndexVersion 3");
    if (is_given(&r->language) &&
        (r->language.type != DOCUMENT_STRING || !search_language_code(r->language.text).data))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "default_language is not valid: it is one of %s",
                               "english, french, german, italian, portuguese, spanish, none");
    if (is_given(&r->override) && (r->override.type != DOCUMENT_STRING || !r->override.text.len ||
                                   r->override.text.data[0] == '$'))
        return cannot(r, "language_override is not valid");
    if (is_given(&r->unique) && flag_of(&r->unique))
        return cannot(r, "Index type 'text' does not support the unique option");
    if (is_given(&r->expires))
        return cannot(r, "Index type 'text' cannot be a TTL index");
    r->wildcards = 0;
    r->spec->key = text_key(r);
    return true;
}

/* Each field of the key and of the weights, once, with its weight. */
static bool text_field(const struct reading *r, size_t number, struct slice *ret_field,
                       double *ret_weight)
{
    const struct document_value *lists[] = {&r->key, &r->weights};
    size_t at = 0;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct document_value other;
        struct document_iter iter;

        if (lists[i]->type != DOCUMENT_OBJECT)
            continue;
        document_iter_init(&iter, lists[i]->document);
        while (document_iter_next(&iter)) {
            if ((i && document_find(r->key.document, iter.key, &other)) || at++ != number)
                continue;
            *ret_field = iter.key;
            *ret_weight = 1;
            if (r->weights.type == DOCUMENT_OBJECT &&
                document_find(r->weights.document, iter.key, &other))
                (void)document_to_double(&other, ret_weight);
            return true;
        }
    }
    return false;
}

static struct slice language_of(const struct reading *r)
{
    return is_given(&r->language) ? r->language.text : SLICE("english");
}

static struct slice override_of(const struct reading *r)
{
    return is_given(&r->override) ? r->override.text : SLICE("language");
}

static void text_show(const struct reading *r, struct buf *out)
{
    size_t weights = document_append_object_begin(out, SLICE("weights"));
    struct slice field;
    double weight;

    for (size_t i = 0; text_field(r, i, &field, &weight); i++)
        document_append_int32(out, field, (int32_t)weight);
    document_end(out, weights);
    document_append_string(out, SLICE("default_language"), language_of(r));
    document_append_string(out, SLICE("language_override"), override_of(r));
    document_append_int32(out, SLICE("textIndexVersion"), 3);
}

/* The members key and text of the definition. */
static void text_append(const struct reading *r, struct buf *out)
{
    char index[DOCUMENT_INDEX_SIZE];
    struct slice field;
    double weight, all = 1;
    uint32_t count = 0;
    size_t list = 0, text;

    for (size_t i = 0; text_field(r, i, &field, &weight); i++) {
        size_t part;

        if (slice_equal(field, SLICE("$**"))) {
            all = weight;
            continue;
        }
        if (!count)
            list = document_append_array_begin(out, SLICE("key"));
        part = document_append_object_begin(out, document_index_key(count++, index));
        document_append_string(out, SLICE("path"), mongo_index_path(field, r->arena));
        document_end(out, part);
    }
    if (count)
        document_end(out, list);
    text = document_append_object_begin(out, SLICE("text"));
    document_append_string(out, SLICE("language"), search_language_code(language_of(r)));
    document_append_string(out, SLICE("override"), override_of(r));
    if (count) {
        list = document_append_array_begin(out, SLICE("weights"));
        count = 0;
        for (size_t i = 0; text_field(r, i, &field, &weight); i++)
            if (!slice_equal(field, SLICE("$**")))
                document_append_double(out, document_index_key(count++, index), weight);
        document_end(out, list);
    }
    if (text_is_all(r))
        document_append_double(out, SLICE("all"), all);
    document_end(out, text);
}

static bool key_check(struct reading *r)
{
    struct document_iter iter;

    if (!is_given(&r->key))
        return mongo_error_set(r->err, MONGO_FAILED_TO_PARSE,
                               "The 'key' field is a required property of an index specification");
    if (r->key.type != DOCUMENT_OBJECT)
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field 'key' must be an object, but got %s",
                               mongo_type_name(r->key.type));
    r->parts = document_count(r->key.document);
    if (!r->parts)
        return cannot(r, "Index keys cannot be empty.");
    if (r->parts > INDEX_PARTS_MAX)
        return mongo_error_set(r->err, 13103, "too many compound keys");
    document_iter_init(&iter, r->key.document);
    while (document_iter_next(&iter)) {
        if (!part_check(r, iter.key, &iter.value))
            return false;
        r->wildcards += is_wildcard(iter.key);
    }
    if (r->texts)
        return text_check(r);
    if (r->wildcards && r->parts > 1)
        return cannot(r, "wildcard indexes do not allow compounding");
    if (r->hashed > 1)
        return mongo_error_set(r->err, 31303,
                               "A maximum of one index field is allowed to be hashed but found %zu "
                               "for 'key' %.*s",
                               r->hashed, SLICE_ARG(text_of(r, r->key.document)));
    r->spec->key = arena_copy(r->arena, r->key.document);
    return true;
}

/* a_1_b_-1 */
static struct slice name_default(const struct reading *r)
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

static bool name_check(struct reading *r)
{
    if (!is_given(&r->name)) {
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
        return cannot(r, "index names cannot be empty");
    if (memchr(r->spec->name.data, 0, r->spec->name.len))
        return cannot(r, "index names cannot contain NUL characters");
    return r->spec->name.len <= INDEX_NAME_MAX ||
           mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                           "index name is too long: %zu bytes, at most %d", r->spec->name.len,
                           INDEX_NAME_MAX);
}

/* {_id: 1}, whatever number above 0 it is. */
static bool key_is(const struct reading *r, struct slice field)
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

static bool expiry_check(struct reading *r)
{
    r->spec->expire_after_s = INDEX_EXPIRES_NEVER;
    if (!is_given(&r->expires))
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
           cannot(r, "an index on _ts expires documents after 1 second at least");
}

static bool filter_check(const struct reading *r)
{
    if (!is_given(&r->filter))
        return true;
    if (r->filter.type != DOCUMENT_OBJECT)
        return mongo_error_set(r->err, MONGO_TYPE_MISMATCH,
                               "The field 'partialFilterExpression' must be an object, but got %s",
                               mongo_type_name(r->filter.type));
    return !is_given(&r->sparse) || !flag_of(&r->sparse) ||
           cannot(r, "cannot mix \"partialFilterExpression\" and \"sparse\" options");
}

static bool projection_check(const struct reading *r)
{
    struct document_iter iter;

    if (!is_given(&r->projection))
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

static bool collation_check(struct reading *r)
{
    if (!is_given(&r->collation))
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

static bool kind_check(const struct reading *r)
{
    bool unique = flag_of(&r->unique);

    if (unique && r->hashed)
        return mongo_error_set(r->err, 16764,
                               "Currently hashed indexes cannot guarantee uniqueness. Use a "
                               "regular index.");
    if (unique && r->wildcards)
        return cannot(r, "Index type 'wildcard' does not support the unique option");
    if (flag_of(&r->sparse) && r->wildcards)
        return cannot(r, "Index type 'wildcard' does not support the sparse option");
    return true;
}

/* The box of a plane is half open in MongoDB, and whole here. */
static bool plane_check(struct reading *r)
{
    double bits;

    r->low = -180;
    r->high = 180;
    if (is_given(&r->min) && !document_to_double(&r->min, &r->low))
        return cannot(r, "min of a 2d index must be a number");
    if (is_given(&r->max) && !document_to_double(&r->max, &r->high))
        return cannot(r, "max of a 2d index must be a number");
    if (!isfinite(r->low) || !isfinite(r->high) || !(r->low < r->high))
        return mongo_error_set(r->err, MONGO_INVALID_OPTIONS,
                               "2d index: min must be less than max, both of them finite");
    return !is_given(&r->bits) ||
           (document_to_double(&r->bits, &bits) && bits >= 1 && bits <= 32) ||
           mongo_error_set(r->err, MONGO_INVALID_OPTIONS, "bits for hash must be > 0 and <= 32");
}

static bool spatial_check(struct reading *r)
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
    if (flag_of(&r->unique))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Index type '%s' does not support the unique option", kind);
    if (is_given(&r->expires))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Index type '%s' cannot be a TTL index", kind);
    if (r->planes && r->collator)
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "Index type '2d' does not support collation");
    if (is_given(&r->sphere_version) &&
        (!document_to_int64(&r->sphere_version, &version) || version != 3))
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "unsupported geo index version { 2dsphereIndexVersion: ... }, only "
                               "support versions: [3]");
    return !r->planes || plane_check(r);
}

/* Of {_id: 1} only what changes nothing of it may be said. */
static bool id_check(const struct reading *r, const struct document_collator *inherited)
{
    const struct {
        const char *name;
        bool wrong;
    } options[] = {{"sparse", flag_of(&r->sparse)},
                   {"hidden", flag_of(&r->hidden)},
                   {"expireAfterSeconds", is_given(&r->expires)},
                   {"partialFilterExpression", is_given(&r->filter)}};

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

/* --- Showing --------------------------------------------------------------------------------- */

static void collation_append(const struct document_collator *collator, struct buf *out)
{
    if (collator) {
        const struct document_value shown = document_object(document_collator_document(collator));

        document_append(out, SLICE("collation"), &shown);
    }
}

struct slice mongo_index_id(const struct document_collator *collator, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin, key;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_int32(&out, SLICE("v"), 2);
    key = document_append_object_begin(&out, SLICE("key"));
    document_append_int32(&out, SLICE("_id"), 1);
    document_end(&out, key);
    document_append_string(&out, SLICE("name"), MONGO_INDEX_ID);
    collation_append(collator, &out);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

struct slice mongo_index_id_definition(const struct document_collator *collator,
                                       struct arena *arena)
{
    const struct document_value source = document_object(mongo_index_id(collator, arena));
    CLEANUP(buf_done) struct buf out;
    size_t begin, key, part;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("name"), MONGO_INDEX_ID);
    key = document_append_array_begin(&out, SLICE("key"));
    part = document_append_object_begin(&out, SLICE("0"));
    document_append_string(&out, SLICE("path"), SLICE("/_id"));
    document_end(&out, part);
    document_end(&out, key);
    document_append_string(&out, SLICE("order"), SLICE("mongo"));
    collation_append(collator, &out);
    document_append_bool(&out, SLICE("multikey"), true);
    document_append_string(&out, SLICE("arrays"), SLICE("counted"));
    document_append_string(&out, SLICE("unique"), SLICE("logicalPartition"));
    document_append(&out, SLICE("source"), &source);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

static void shown_make(struct reading *r)
{
    CLEANUP(buf_done) struct buf out;
    struct mongo_index_spec *spec = r->spec;
    const struct document_value key = document_object(spec->key);
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_int32(&out, SLICE("v"), 2);
    document_append(&out, SLICE("key"), &key);
    document_append_string(&out, SLICE("name"), spec->name);
    if (flag_of(&r->unique))
        document_append_bool(&out, SLICE("unique"), true);
    if (flag_of(&r->sparse))
        document_append_bool(&out, SLICE("sparse"), true);
    if (spec->expire_after_s != INDEX_EXPIRES_NEVER)
        document_append_int32(&out, SLICE("expireAfterSeconds"), spec->expire_after_s);
    if (is_given(&r->filter))
        document_append(&out, SLICE("partialFilterExpression"), &r->filter);
    if (is_given(&r->projection))
        document_append(&out, SLICE("wildcardProjection"), &r->projection);
    if (flag_of(&r->hidden))
        document_append_bool(&out, SLICE("hidden"), true);
    if (r->texts)
        text_show(r, &out);
    else
        collation_append(r->collator, &out);
    if (r->spheres)
        document_append_int32(&out, SLICE("2dsphereIndexVersion"), 3);
    if (is_given(&r->bits) && r->planes)
        document_append(&out, SLICE("bits"), &r->bits);
    if (is_given(&r->min) && r->planes)
        document_append(&out, SLICE("min"), &r->min);
    if (is_given(&r->max) && r->planes)
        document_append(&out, SLICE("max"), &r->max);
    document_end(&out, begin);
    spec->shown = arena_copy(r->arena, buf_slice(&out));
}

static void dotted_append(const struct document_path *path, struct buf *out)
{
    for (size_t i = 0; i < path->count; i++) {
        if (i)
            BUF_APPEND(out, ".");
        buf_append_slice(out, path->segments[i].name);
    }
}

struct slice mongo_index_show(const struct index_definition *definition, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out, path;
    size_t begin, key;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&path, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_int32(&out, SLICE("v"), 2);
    key = document_append_object_begin(&out, SLICE("key"));
    for (size_t i = 0; i < definition->part_count; i++) {
        buf_clear(&path);
        dotted_append(&definition->parts[i].path, &path);
        if (definition->parts[i].hashed)
            document_append_string(&out, buf_slice(&path), SLICE("hashed"));
        else if (definition->parts[i].cells)
            document_append_string(&out, buf_slice(&path),
                                   definition->spatial->rules.surface == SEARCH_PLANE
                                       ? SLICE("2d")
                                       : SLICE("2dsphere"));
        else
            document_append_int32(&out, buf_slice(&path), definition->parts[i].descending ? -1 : 1);
    }
    if (!definition->part_count)
        document_append_int32(&out, SLICE("$**"), 1);
    document_end(&out, key);
    document_append_string(&out, SLICE("name"), definition->name);
    if (definition->unique != INDEX_UNIQUE_NOT)
        document_append_bool(&out, SLICE("unique"), true);
    if (definition->sparse)
        document_append_bool(&out, SLICE("sparse"), true);
    if (definition->expire_after_s != INDEX_EXPIRES_NEVER)
        document_append_int32(&out, SLICE("expireAfterSeconds"), definition->expire_after_s);
    if (definition->hidden)
        document_append_bool(&out, SLICE("hidden"), true);
    collation_append(definition->collator, &out);
    document_end(&out, begin);
    return arena_copy(arena, buf_slice(&out));
}

/* --- The definition -------------------------------------------------------------------------- */

struct slice mongo_index_path(struct slice dotted, struct arena *arena)
{
    struct document_segment segments[DOCUMENT_PATH_SEGMENTS_MAX];
    struct document_path path = {.segments = segments};
    struct slice rest = dotted, head, tail;
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    while (path.count < DOCUMENT_PATH_SEGMENTS_MAX - 1 && slice_split(rest, '.', &head, &tail)) {
        segments[path.count++] = (struct document_segment){.name = head};
        rest = tail;
    }
    segments[path.count++] = (struct document_segment){.name = rest};
    document_path_append(&path, &out);
    return arena_copy(arena, buf_slice(&out));
}

static void cells_append(const struct reading *r, struct buf *out)
{
    size_t box;

    if (r->spheres) {
        document_append_string(out, SLICE("cells"), SLICE("earth"));
        return;
    }
    box = document_append_object_begin(out, SLICE("cells"));
    document_append_double(out, SLICE("min"), r->low);
    document_append_double(out, SLICE("max"), r->high);
    document_end(out, box);
}

static void parts_append(const struct reading *r, struct buf *out)
{
    size_t list = document_append_array_begin(out, SLICE("key"));
    char text[DOCUMENT_INDEX_SIZE];
    struct document_iter iter;
    uint32_t count = 0;

    document_iter_init(&iter, r->spec->key);
    while (document_iter_next(&iter)) {
        size_t part = document_append_object_begin(out, document_index_key(count++, text));
        double number = 0;

        document_append_string(out, SLICE("path"), mongo_index_path(iter.key, r->arena));
        if (iter.value.type == DOCUMENT_STRING && slice_equal(iter.value.text, SLICE("hashed")))
            document_append_bool(out, SLICE("hashed"), true);
        else if (iter.value.type == DOCUMENT_STRING)
            cells_append(r, out);
        else if (document_to_double(&iter.value, &number) && number < 0)
            document_append_string(out, SLICE("order"), SLICE("descending"));
        document_end(out, part);
    }
    document_end(out, list);
}

/* {a: 1, "b.c": 1} includes, {a: 0} excludes; _id is as it is said. */
static bool projection_append(const struct reading *r, struct buf *out)
{
    CLEANUP(buf_done) struct buf exclude, included;
    struct buf *lists[] = {&exclude, &included};
    char text[DOCUMENT_INDEX_SIZE];
    uint32_t counts[2] = {0};
    struct document_iter iter;
    size_t begins[2];
    bool fine = true;

    for (size_t i = 0; i < 2; i++) {
        buf_init(lists[i], BUF_DEFAULT_MAX);
        begins[i] = document_begin(lists[i]);
    }
    document_iter_init(&iter, r->projection.document);
    while (fine && document_iter_next(&iter)) {
        bool include = flag_of(&iter.value);
        struct slice path = mongo_index_path(iter.key, r->arena);

        fine = iter.value.type == DOCUMENT_BOOL || document_is_number(&iter.value);
        document_append_string(lists[include], document_index_key(counts[include]++, text),
                               arena_join(r->arena, (struct slice[]){path, SLICE("/*")}, 2));
    }
    for (size_t i = 0; i < 2; i++) {
        struct document_value value;

        document_end(lists[i], begins[i]);
        value = document_array(buf_slice(lists[i]));
        if (counts[i])
            document_append(out, i ? SLICE("include") : SLICE("exclude"), &value);
    }
    if (!fine)
        return mongo_error_set(r->err, MONGO_FAILED_TO_PARSE,
                               "wildcardProjection takes fields that are 0 or 1");
    if (counts[0] + counts[1] > INDEX_PROJECTION_MAX)
        return mongo_error_set(r->err, MONGO_CANNOT_CREATE_INDEX,
                               "wildcardProjection has more than %d fields", INDEX_PROJECTION_MAX);
    return true;
}

static bool wildcard_append(const struct reading *r, struct buf *out)
{
    size_t object = document_append_object_begin(out, SLICE("wildcard")), list;
    struct document_iter iter;

    document_iter_init(&iter, r->spec->key);
    (void)document_iter_next(&iter);
    if (is_given(&r->projection)) {
        if (!projection_append(r, out))
            return false;
    } else if (!slice_equal(iter.key, SLICE("$**"))) {
        struct slice path = mongo_index_path(slice_first(iter.key, iter.key.len - 4), r->arena);

        list = document_append_array_begin(out, SLICE("include"));
        document_append_string(out, SLICE("0"),
                               arena_join(r->arena, (struct slice[]){path, SLICE("/*")}, 2));
        document_end(out, list);
    } else { /* _id has its own */
        list = document_append_array_begin(out, SLICE("exclude"));
        document_append_string(out, SLICE("0"), SLICE("/_id/*"));
        document_end(out, list);
    }
    document_end(out, object);
    return true;
}

static bool definition_make(struct reading *r)
{
    CLEANUP(buf_done) struct buf out;
    struct mongo_index_spec *spec = r->spec;
    const struct document_value source = document_object(spec->shown);
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("name"), spec->name);
    if (r->texts)
        text_append(r, &out);
    else if (!r->wildcards)
        parts_append(r, &out);
    else if (!wildcard_append(r, &out))
        return false;
    document_append_string(&out, SLICE("order"), SLICE("mongo"));
    if (!r->texts)
        collation_append(r->collator, &out);
    document_append_bool(&out, SLICE("multikey"), true);
    if (!r->wildcards && !r->texts && !r->spheres && !r->planes)
        document_append_string(&out, SLICE("arrays"), SLICE("counted"));
    if (flag_of(&r->hidden))
        document_append_bool(&out, SLICE("hidden"), true);
    if (flag_of(&r->sparse) && !r->spheres && !r->planes) /* such an index always is */
        document_append_bool(&out, SLICE("sparse"), true);
    if (spec->unique)
        document_append_string(&out, SLICE("unique"), SLICE("logicalPartition"));
    if (spec->expire_after_s != INDEX_EXPIRES_NEVER)
        document_append_int32(&out, SLICE("expireAfterSeconds"), spec->expire_after_s);
    if (is_given(&r->filter) &&
        !mongo_index_filter_append(r->filter.document, &out, r->arena, r->err))
        return false;
    document_append(&out, SLICE("source"), &source);
    document_end(&out, begin);
    spec->definition = arena_copy(r->arena, buf_slice(&out));
    return true;
}

bool mongo_index_spec_read(struct slice index, const struct document_collator *inherited,
                           struct arena *arena, struct mongo_index_spec *ret_spec,
                           struct error *err)
{
    const struct document_value none = document_undefined();
    struct mongo_index_spec spec = {0};
    struct reading r = {.arena = arena,
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
    spec.unique = flag_of(&r.unique);
    spec.is_id = key_is(&r, SLICE("_id"));
    if (spec.is_id) {
        if (!id_check(&r, inherited))
            return false;
        spec.name = MONGO_INDEX_ID;
        spec.shown = mongo_index_id(inherited, arena);
        *ret_spec = spec;
        return true;
    }
    shown_make(&r);
    if (!definition_make(&r))
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
