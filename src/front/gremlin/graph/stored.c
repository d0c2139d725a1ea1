#include "front/gremlin/graph/stored.h"

#include "document/decimal_math.h"
#include "front/gremlin/value/big.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/text.h"

#include <math.h>

enum { DEPTH_MAX = 60 }; /* of lists in lists: below what a document may have */

/* --- Values to BSON --------------------------------------------------------------------------- */

struct encoding {
    struct arena *arena;
    unsigned depth;
};

static bool encode(struct encoding *e, const struct gremlin_value *value,
                   struct document_value *ret_value, struct document_value *ret_tag,
                   struct error *err);

static struct document_value tag_of(struct encoding *e, const char *word, struct slice rest)
{
    return document_string(rest.len ? arena_printf(e->arena, "%s %.*s", word, SLICE_ARG(rest))
                                    : slice_of_text(word));
}

static bool refuse(const struct gremlin_value *value, struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST, "Property value is of type %s, which is not supported",
                     gremlin_type_name(value->type));
}

static struct slice text_of(struct encoding *e, struct gremlin_value value)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    gremlin_value_write_text(value, &text);
    return arena_copy(e->arena, buf_slice(&text));
}

/* Exactly as a decimal, or as the nearest double: then the digits go into the tag. */
static void encode_big(struct encoding *e, const struct gremlin_value *value,
                       struct document_value *ret_value, struct document_value *ret_tag)
{
    struct slice digits = gremlin_bytes(*value);
    bool whole = value->type == GREMLIN_BIG_INTEGER;
    struct document_decimal decimal;
    char text[DECIMAL_TEXT_MAX];
    bool exact;
    int64_t number;

    if (whole && gremlin_number_long(*value, &number)) {
        *ret_value = document_int64(number);
        *ret_tag = tag_of(e, "bigint", SLICE_NONE);
        return;
    }
    if (decimal_from_text(digits, &decimal, &exact) && exact &&
        (whole || slice_equal(slice_of(text, decimal_to_text(decimal, text)), digits))) {
        struct document_value stored = {.type = DOCUMENT_DECIMAL128, .decimal = decimal};

        *ret_value = stored;
        if (whole)
            *ret_tag = tag_of(e, "bigint", digits);
        return;
    }
    *ret_value = document_double(gremlin_number_double(*value));
    *ret_tag = tag_of(e, whole ? "bigint" : "bigdecimal", digits);
}

static void encode_date_time(struct encoding *e, const struct gremlin_value *value,
                             struct document_value *ret_value, struct document_value *ret_tag)
{
    const struct gremlin_date_time *at = (const struct gremlin_date_time *)value->object;
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    gremlin_date_time_write(at->seconds, at->nanoseconds, at->offset, &text);
    *ret_value = document_date(at->seconds * 1000 + at->nanoseconds / 1000000);
    *ret_tag = tag_of(e, "datetime", buf_slice(&text));
}

static void encode_temporal(struct encoding *e, const struct gremlin_value *value,
                            struct document_value *ret_value, struct document_value *ret_tag)
{
    const struct gremlin_temporal *t = (const struct gremlin_temporal *)value->object;

    *ret_value = document_string(slice_of(t->data + t->name_len, t->len));
    *ret_tag = tag_of(e, "temporal", slice_of(t->data, t->name_len));
}

/* {word: tags} where an item needs one; else the word alone, or nothing. */
static struct document_value tags_close(struct encoding *e, const char *word, bool plain,
                                        struct document_value inner, bool any)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!any)
        return plain ? document_undefined() : tag_of(e, word, SLICE_NONE);
    begin = document_begin(&out);
    document_append(&out, slice_of_text(word), &inner);
    document_end(&out, begin);
    return document_object(arena_copy(e->arena, buf_slice(&out)));
}

/* Appends an item and its tag, null where it has none. */
static bool item_append(struct encoding *e, const struct gremlin_value *item, struct slice key,
                        struct buf *out, struct buf *tags, bool *any, struct error *err)
{
    struct document_value value, tag = document_undefined();

    if (!encode(e, item, &value, &tag, err))
        return false;
    document_append(out, key, &value);
    if (tag.type == DOCUMENT_UNDEFINED)
        tag = document_null();
    else
        *any = true;
    document_append(tags, key, &tag);
    return true;
}

static bool encode_items(struct encoding *e, const struct gremlin_value *value,
                         struct document_value *ret_value, struct document_value *ret_tag,
                         struct error *err)
{
    CLEANUP(buf_done) struct buf out, tags;
    struct gremlin_cursor cursor = {0};
    struct gremlin_value item;
    bool list = value->type == GREMLIN_LIST, any = false;
    size_t begin, tags_begin;
    uint32_t at = 0;
    int64_t bulk;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&tags, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    tags_begin = document_begin(&tags);
    while (gremlin_collection_next(*value, &cursor, &item, &bulk)) {
        char text[DOCUMENT_INDEX_SIZE];
        bool fine = item_append(e, &item, document_index_key(at++, text), &out, &tags, &any, err);

        gremlin_value_unref(item);
        if (!fine) {
            gremlin_collection_done(&cursor);
            return false;
        }
    }
    document_end(&out, begin);
    document_end(&tags, tags_begin);
    *ret_value = document_array(arena_copy(e->arena, buf_slice(&out)));
    *ret_tag = tags_close(e, list ? "list" : "set", list,
                          document_array(arena_copy(e->arena, buf_slice(&tags))), any);
    return true;
}

static bool encode_map(struct encoding *e, const struct gremlin_value *value,
                       struct document_value *ret_value, struct document_value *ret_tag,
                       struct error *err)
{
    CLEANUP(buf_done) struct buf out, tags;
    const struct gremlin_table *map = gremlin_table(*value);
    size_t begin, tags_begin;
    bool any = false;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&tags, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    tags_begin = document_begin(&tags);
    for (uint32_t i = 0; i < map->count; i++) {
        const struct gremlin_row *row = &map->rows[i];

        if (!gremlin_is_string(row->key) ||
            memchr(gremlin_bytes(row->key).data, 0, gremlin_bytes(row->key).len))
            return error_set(err, ERROR_BAD_REQUEST,
                             "a map can be stored only if all its keys are texts");
        if (!item_append(e, &row->value, gremlin_bytes(row->key), &out, &tags, &any, err))
            return false;
    }
    document_end(&out, begin);
    document_end(&tags, tags_begin);
    *ret_value = document_object(arena_copy(e->arena, buf_slice(&out)));
    *ret_tag =
        tags_close(e, "map", true, document_object(arena_copy(e->arena, buf_slice(&tags))), any);
    return true;
}

static bool encode_nested(struct encoding *e, const struct gremlin_value *value,
                          struct document_value *ret_value, struct document_value *ret_tag,
                          struct error *err)
{
    bool fine;

    if (e->depth == DEPTH_MAX)
        return error_set(err, ERROR_TOO_DEEP, "a property value is nested deeper than %d levels",
                         DEPTH_MAX);
    e->depth++;
    fine = value->type == GREMLIN_MAP ? encode_map(e, value, ret_value, ret_tag, err)
                                      : encode_items(e, value, ret_value, ret_tag, err);
    e->depth--;
    return fine;
}

static bool encode(struct encoding *e, const struct gremlin_value *value,
                   struct document_value *ret_value, struct document_value *ret_tag,
                   struct error *err)
{
    *ret_tag = document_undefined();
    switch (value->type) {
    case GREMLIN_NULL:
        *ret_value = document_null();
        return true;
    case GREMLIN_BOOLEAN:
        *ret_value = document_bool(value->boolean);
        return true;
    case GREMLIN_BYTE:
    case GREMLIN_SHORT:
        *ret_tag = tag_of(e, value->type == GREMLIN_BYTE ? "byte" : "short", SLICE_NONE);
        *ret_value = document_int32((int32_t)value->integer);
        return true;
    case GREMLIN_INT:
        *ret_value = document_int32((int32_t)value->integer);
        return true;
    case GREMLIN_LONG:
        *ret_value = document_int64(value->integer);
        return true;
    case GREMLIN_FLOAT:
        *ret_tag = tag_of(e, "float", SLICE_NONE);
        *ret_value = document_double(value->real);
        return true;
    case GREMLIN_DOUBLE:
        *ret_value = document_double(value->real);
        return true;
    case GREMLIN_CHAR:
        *ret_tag = tag_of(e, "char", SLICE_NONE);
        *ret_value = document_string(text_of(e, *value));
        return true;
    case GREMLIN_TIMESTAMP:
        *ret_tag = tag_of(e, "timestamp", SLICE_NONE);
        *ret_value = document_date(value->integer);
        return true;
    case GREMLIN_DATE:
        *ret_value = document_date(value->integer);
        return true;
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_BIG_DECIMAL:
        encode_big(e, value, ret_value, ret_tag);
        return true;
    case GREMLIN_STRING:
        *ret_value = document_string(arena_copy(e->arena, gremlin_bytes(*value)));
        return true;
    case GREMLIN_UUID:
    case GREMLIN_BINARY:
        *ret_value = (struct document_value){.type = DOCUMENT_BINARY,
                                             .binary = {arena_copy(e->arena, gremlin_bytes(*value)),
                                                        value->type == GREMLIN_UUID ? 4 : 0}};
        return true;
    case GREMLIN_CLASS:
        *ret_tag = tag_of(e, "class", SLICE_NONE);
        *ret_value = document_string(arena_copy(e->arena, gremlin_bytes(*value)));
        return true;
    case GREMLIN_DURATION:
        *ret_tag = tag_of(e, "duration", SLICE_NONE);
        *ret_value = document_string(text_of(e, *value));
        return true;
    case GREMLIN_DATE_TIME:
        encode_date_time(e, value, ret_value, ret_tag);
        return true;
    case GREMLIN_TEMPORAL:
        encode_temporal(e, value, ret_value, ret_tag);
        return true;
    case GREMLIN_LIST:
    case GREMLIN_SET:
    case GREMLIN_MAP:
        return encode_nested(e, value, ret_value, ret_tag, err);
    default:
        return refuse(value, err);
    }
}

bool gremlin_stored_encode(const struct gremlin_value *value, struct arena *arena,
                           struct document_value *ret_value, struct document_value *ret_tag,
                           struct error *err)
{
    struct encoding e = {.arena = arena};

    return encode(&e, value, ret_value, ret_tag, err);
}

/* --- BSON to values --------------------------------------------------------------------------- */

static struct gremlin_value decode(struct gremlin_heap *heap, const struct document_value *value,
                                   const struct document_value *tag, unsigned depth);

/* The word of a tag and what follows it; of {word: tags} the tags of the items. */
struct tag {
    struct slice word, rest;
    struct document_value inner; /* undefined: none */
};

static struct tag tag_read(const struct document_value *tag)
{
    struct tag read = {.inner = document_undefined()};
    struct document_iter iter;

    if (!tag)
        return read;
    if (tag->type == DOCUMENT_STRING) {
        if (!slice_split(tag->text, ' ', &read.word, &read.rest))
            read.word = tag->text;
    } else if (tag->type == DOCUMENT_OBJECT) {
        document_iter_init(&iter, tag->document);
        if (document_iter_next(&iter)) {
            read.word = iter.key;
            read.inner = iter.value;
        }
    }
    return read;
}

static bool tag_is(const struct tag *tag, const char *word)
{
    return slice_equal(tag->word, slice_of_text(word));
}

static struct gremlin_value decode_array(struct gremlin_heap *heap, struct slice array,
                                         const struct tag *tag, unsigned depth)
{
    bool set = tag_is(tag, "set"), tagged = tag->inner.type == DOCUMENT_ARRAY;
    struct gremlin_value list = set ? gremlin_set_new(heap) : gremlin_list_new(heap, 0);
    struct document_iter iter, tags;

    document_iter_init(&iter, array);
    if (tagged)
        document_iter_init(&tags, tag->inner.document);
    while (document_iter_next(&iter)) {
        const struct document_value *own = tagged && document_iter_next(&tags) ? &tags.value : NULL;
        struct gremlin_value item = decode(heap, &iter.value, own, depth + 1);

        if (set)
            gremlin_set_add(list, item);
        else
            gremlin_list_add(list, item);
        gremlin_value_unref(item);
    }
    return list;
}

static struct gremlin_value decode_object(struct gremlin_heap *heap, struct slice object,
                                          const struct tag *tag, unsigned depth)
{
    struct gremlin_value map = gremlin_map_new(heap);
    struct document_iter iter;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        struct gremlin_value key = gremlin_string(heap, iter.key);
        struct document_value own;
        bool tagged = tag->inner.type == DOCUMENT_OBJECT &&
                      document_find(tag->inner.document, iter.key, &own);

        gremlin_map_put_take(map, key, decode(heap, &iter.value, tagged ? &own : NULL, depth + 1));
        gremlin_value_unref(key);
    }
    return map;
}

/* Numbers that came as JSON, which has one type for all of them, and no dates. */
static bool json_number(const struct document_value *value, const struct tag *tag,
                        struct gremlin_value *ret_value)
{
    bool date = tag_is(tag, "date"), stamp = tag_is(tag, "timestamp");
    int64_t whole;
    double real;

    if ((tag_is(tag, "double") || tag_is(tag, "float")) && document_to_double(value, &real)) {
        *ret_value = tag_is(tag, "float") ? gremlin_float((float)real) : gremlin_double(real);
        return true;
    }
    if ((date || stamp || tag_is(tag, "long")) && document_to_int64(value, &whole)) {
        *ret_value = gremlin_integer(date    ? GREMLIN_DATE
                                     : stamp ? GREMLIN_TIMESTAMP
                                             : GREMLIN_LONG,
                                     whole);
        return true;
    }
    return false;
}

static struct gremlin_value decode_number(struct gremlin_heap *heap,
                                          const struct document_value *value, const struct tag *tag)
{
    char text[DECIMAL_TEXT_MAX];
    struct gremlin_value big;
    struct slice digits = tag->rest;

    if (tag_is(tag, "bigint") && !digits.len && value->type == DOCUMENT_INT64)
        digits =
            slice_of(text, (size_t)snprintf(text, sizeof text, "%lld", (long long)value->int64));
    if (tag_is(tag, "bigint") && gremlin_big_integer(heap, digits, &big))
        return big;
    if (tag_is(tag, "bigdecimal") && gremlin_big_decimal(heap, digits, &big))
        return big;
    if (json_number(value, tag, &big))
        return big;
    switch (value->type) {
    case DOCUMENT_INT32:
        return gremlin_integer(tag_is(tag, "byte")    ? GREMLIN_BYTE
                               : tag_is(tag, "short") ? GREMLIN_SHORT
                                                      : GREMLIN_INT,
                               value->int32);
    case DOCUMENT_INT64:
        return gremlin_long(value->int64);
    case DOCUMENT_DOUBLE:
        return tag_is(tag, "float") ? gremlin_float((float)value->number)
                                    : gremlin_double(value->number);
    default:
        if (gremlin_big_decimal(heap, slice_of(text, decimal_to_text(value->decimal, text)), &big))
            return big;
        return gremlin_double(NAN);
    }
}

static struct gremlin_value decode_text(struct gremlin_heap *heap,
                                        const struct document_value *value, const struct tag *tag)
{
    uint8_t uuid[16];
    int64_t seconds;
    int32_t nanoseconds;

    if (tag_is(tag, "char") && value->text.len) {
        const uint8_t *p = value->text.data;
        uint32_t code = p[0];

        if (p[0] >= 0xF0 && value->text.len >= 4)
            code = (uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 63) << 12 |
                   (uint32_t)(p[2] & 63) << 6 | (p[3] & 63);
        else if (p[0] >= 0xE0 && value->text.len >= 3)
            code = (uint32_t)(p[0] & 15) << 12 | (uint32_t)(p[1] & 63) << 6 | (p[2] & 63);
        else if (p[0] >= 0xC0 && value->text.len >= 2)
            code = (uint32_t)(p[0] & 31) << 6 | (p[1] & 63);
        return gremlin_integer(GREMLIN_CHAR, code);
    }
    if (tag_is(tag, "uuid") && gremlin_uuid_parse(value->text, uuid))
        return gremlin_bytes_new(heap, GREMLIN_UUID, slice_of(uuid, sizeof uuid));
    if (tag_is(tag, "class"))
        return gremlin_bytes_new(heap, GREMLIN_CLASS, value->text);
    if (tag_is(tag, "duration") && gremlin_duration_parse(value->text, &seconds, &nanoseconds))
        return gremlin_duration_new(heap, seconds, nanoseconds);
    if (tag_is(tag, "temporal"))
        return gremlin_temporal_new(heap, tag->rest, value->text);
    return gremlin_string(heap, value->text);
}

static struct gremlin_value decode_date(struct gremlin_heap *heap, int64_t ms,
                                        const struct tag *tag)
{
    int64_t seconds;
    int32_t nanoseconds, offset;

    if (tag_is(tag, "timestamp"))
        return gremlin_integer(GREMLIN_TIMESTAMP, ms);
    if (tag_is(tag, "datetime") &&
        gremlin_date_time_parse(tag->rest, &seconds, &nanoseconds, &offset))
        return gremlin_date_time_new(heap, seconds, nanoseconds, offset);
    return gremlin_date(ms);
}

static struct gremlin_value decode_id(struct gremlin_heap *heap, const uint8_t *id)
{
    char text[2 * DOCUMENT_OBJECT_ID_SIZE + 1];

    for (size_t i = 0; i < DOCUMENT_OBJECT_ID_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    return gremlin_string(heap, slice_of(text, 2 * (size_t)DOCUMENT_OBJECT_ID_SIZE));
}

static struct gremlin_value decode(struct gremlin_heap *heap, const struct document_value *value,
                                   const struct document_value *given, unsigned depth)
{
    struct tag tag = tag_read(given);

    switch (value->type) {
    case DOCUMENT_INT32:
    case DOCUMENT_INT64:
    case DOCUMENT_DOUBLE:
    case DOCUMENT_DECIMAL128:
        return decode_number(heap, value, &tag);
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
    case DOCUMENT_CODE:
        return decode_text(heap, value, &tag);
    case DOCUMENT_BOOL:
        return gremlin_boolean(value->boolean);
    case DOCUMENT_DATE:
        return decode_date(heap, value->int64, &tag);
    case DOCUMENT_BINARY:
        return gremlin_bytes_new(heap,
                                 value->binary.subtype == 4 && value->binary.bytes.len == 16
                                     ? GREMLIN_UUID
                                     : GREMLIN_BINARY,
                                 value->binary.bytes);
    case DOCUMENT_ARRAY:
        return depth < DOCUMENT_DEPTH_MAX ? decode_array(heap, value->document, &tag, depth)
                                          : GREMLIN_NOTHING;
    case DOCUMENT_OBJECT:
        return depth < DOCUMENT_DEPTH_MAX ? decode_object(heap, value->document, &tag, depth)
                                          : GREMLIN_NOTHING;
    case DOCUMENT_OBJECT_ID:
        return decode_id(heap, value->id);
    case DOCUMENT_TIMESTAMP:
        return gremlin_integer(GREMLIN_TIMESTAMP, (int64_t)(value->timestamp >> 32) * 1000);
    default:
        return GREMLIN_NOTHING;
    }
}

struct gremlin_value gremlin_stored_decode(struct gremlin_heap *heap,
                                           const struct document_value *value,
                                           const struct document_value *tag)
{
    return decode(heap, value, tag, 0);
}

/* --- Ids ---------------------------------------------------------------------------------------
 */

bool gremlin_stored_id(const struct gremlin_value *id, struct arena *arena, struct slice *ret_text)
{
    struct encoding e = {.arena = arena};

    switch (id->type) {
    case GREMLIN_STRING:
        *ret_text = gremlin_bytes(*id);
        return true;
    case GREMLIN_BYTE:
    case GREMLIN_SHORT:
    case GREMLIN_INT:
    case GREMLIN_LONG:
        *ret_text = arena_printf(arena, "%lld", (long long)id->integer);
        return true;
    case GREMLIN_FLOAT:
    case GREMLIN_DOUBLE:
    case GREMLIN_BOOLEAN:
    case GREMLIN_CHAR:
    case GREMLIN_UUID:
    case GREMLIN_BIG_INTEGER:
    case GREMLIN_BIG_DECIMAL:
        *ret_text = text_of(&e, *id);
        return true;
    default:
        return false;
    }
}

/* --- Items --------------------------------------------------------------------------------------
 */

static bool text_take(const struct document_iter *iter, const char *name, struct slice *text)
{
    if (!slice_equal(iter->key, slice_of_text(name)))
        return false;
    if (iter->value.type == DOCUMENT_STRING)
        *text = iter->value.text;
    return true;
}

bool gremlin_head_read(struct slice document, struct gremlin_head *ret_head)
{
    struct gremlin_head head = {.in_partition = document_undefined()};
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        if (!iter.key.len ||
            (iter.key.data[0] != '_' && iter.key.data[0] != 'i' && iter.key.data[0] != 'l'))
            continue;
        if (text_take(&iter, "id", &head.id) || text_take(&iter, "label", &head.label) ||
            text_take(&iter, "_vertexId", &head.out_id) || text_take(&iter, "_sink", &head.in_id) ||
            text_take(&iter, "_vertexLabel", &head.out_label) ||
            text_take(&iter, "_sinkLabel", &head.in_label))
            continue;
        if (slice_equal(iter.key, SLICE("_isEdge")))
            head.edge = iter.value.type == DOCUMENT_BOOL && iter.value.boolean;
        else if (slice_equal(iter.key, SLICE("_sinkPartition")))
            head.in_partition = iter.value;
    }
    *ret_head = head;
    return head.id.data && (!head.edge || (head.out_id.data && head.in_id.data));
}

bool gremlin_name_is_own(struct slice name)
{
    static const char *const names[] = {
        "id",         "label",          "_isEdge", "_vertexId", "_vertexLabel", "_sink",
        "_sinkLabel", "_sinkPartition", "_types",  "_rid",      "_self",        "_etag",
        "_ts",        "_attachments"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_equal(name, slice_of_text(names[i])))
            return true;
    return false;
}

/* An array is a list of values if every element is an object with one. */
static bool is_listed(struct slice array)
{
    struct document_iter iter;
    struct document_value value;
    bool any = false;

    document_iter_init(&iter, array);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT ||
            !document_find(iter.value.document, SLICE("_value"), &value))
            return false;
        any = true;
    }
    return any;
}

void gremlin_stored_values_init(struct gremlin_stored_values *values,
                                const struct document_value *property)
{
    *values = (struct gremlin_stored_values){.bare = *property};
    values->listed = property->type == DOCUMENT_ARRAY && is_listed(property->document);
    if (values->listed)
        document_iter_init(&values->iter, property->document);
}

bool gremlin_stored_values_next(struct gremlin_stored_values *values,
                                struct document_value *ret_value, struct slice *ret_entry)
{
    if (!values->listed) {
        *ret_value = values->bare;
        *ret_entry = SLICE_NONE;
        return !values->given && (values->given = true);
    }
    if (!document_iter_next(&values->iter))
        return false;
    *ret_entry = values->iter.value.document;
    return document_find(*ret_entry, SLICE("_value"), ret_value);
}
