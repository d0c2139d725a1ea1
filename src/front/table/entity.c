#include "front/table/entity.h"

#include "document/json.h"
#include "front/text.h"

enum {
    PROPERTIES_MAX = 252, /* besides keys and Timestamp */
    NAME_UNITS_MAX = 255,
    ENTITY_BYTES_MAX = 1024 * 1024,
    ELEMENTS_MAX = 4 * PROPERTIES_MAX, /* of the JSON, with annotations and metadata */
    SYSTEM_BYTES = 512,                /* about what metadata of an entity takes as JSON */
};

static const struct slice ticks_name = {(const uint8_t *)"$ticks", 6};

/* --- Names ----------------------------------------------------------------------------------- */

/* What the store gives a meaning of its own, or other APIs take for their own. */
static bool is_reserved(struct slice name)
{
    return document_names_reserve(table_names(), name);
}

struct slice table_property_stored(struct slice name, struct arena *arena)
{
    if (!is_reserved(name))
        return name;
    return arena_join(arena, (struct slice[]){SLICE("$"), name}, 2);
}

struct slice table_property_shown(struct slice stored)
{
    if (stored.len > 1 && stored.data[0] == '$' && is_reserved(slice_skip(stored, 1)))
        return slice_skip(stored, 1);
    return stored;
}

bool table_property_is_own(struct slice stored)
{
    return slice_equal(stored, table_names()->identity) ||
           slice_equal(stored, SLICE("PartitionKey")) || slice_equal(stored, SLICE("RowKey")) ||
           slice_equal(stored, SLICE("Timestamp")) || slice_equal(stored, ticks_name);
}

bool table_property_check(struct slice name, struct error *err)
{
    bool good = name.len > 0;

    if (name.len > NAME_UNITS_MAX && table_text_units(name) > NAME_UNITS_MAX)
        return error_set(err, ERROR_TABLE_PROPERTY_NAME_LONG,
                         "a property has a name of more than %d characters", NAME_UNITS_MAX);
    for (size_t i = 0; good && i < name.len; i++) {
        uint8_t c = name.data[i], small = c | 0x20;

        good = (small >= 'a' && small <= 'z') || c == '_' || c >= 0x80 ||
               (i > 0 && c >= '0' && c <= '9');
    }
    return good || error_set(err, ERROR_TABLE_PROPERTY_NAME,
                             "\"%.*s\" is no name of a property: letters, digits and underscores, "
                             "not beginning with a digit",
                             (int)MIN(name.len, (size_t)80), (const char *)name.data);
}

/* --- Reading --------------------------------------------------------------------------------- */

struct reading {
    struct arena *arena;
    struct slice body; /* BSON of the JSON */
    struct table_keys keys;
    struct buf out, ticks; /* the document, and the elements of $ticks */
    size_t properties;
};

static bool is_metadata(struct slice key)
{
    static const struct slice type = SLICE("@odata.type");

    return slice_starts_with(key, SLICE("odata.")) ||
           (key.len > type.len && slice_equal(slice_skip(key, key.len - type.len), type));
}

/* The type that the body says a property has. */
static bool annotation_find(struct reading *r, struct slice name, enum edm_type *ret_type,
                            struct error *err)
{
    struct slice key = arena_join(r->arena, (struct slice[]){name, SLICE("@odata.type")}, 2);
    struct document_value value;

    *ret_type = EDM_UNKNOWN;
    if (!document_find(r->body, key, &value))
        return true;
    if (value.type == DOCUMENT_STRING)
        *ret_type = edm_type_named(value.text);
    return *ret_type != EDM_UNKNOWN ||
           error_set(err, ERROR_TABLE_VALUE, "\"%.*s\" is said to have a type that does not exist",
                     (int)MIN(name.len, (size_t)80), (const char *)name.data);
}

static bool property_take(struct reading *r, struct slice name, const struct document_value *json,
                          struct error *err)
{
    struct slice stored;
    struct edm_value read;
    enum edm_type type;

    if (!table_property_check(name, err) || !annotation_find(r, name, &type, err) ||
        !edm_value_read(json, type, r->arena, &read, err))
        return false;
    if (read.value.type == DOCUMENT_UNDEFINED)
        return true;
    if (++r->properties > PROPERTIES_MAX)
        return error_set(err, ERROR_TABLE_PROPERTIES, "there are more than %d", PROPERTIES_MAX);
    stored = table_property_stored(name, r->arena);
    document_append(&r->out, stored, &read.value);
    if (read.below_ms)
        document_append_int32(&r->ticks, stored, read.below_ms);
    return true;
}

/* A key of the body; it must be the path's where that names it. */
static bool key_take(struct reading *r, const char *name, struct slice *key, struct error *err)
{
    struct document_value value;

    if (!document_find(r->body, slice_of_text(name), &value) || value.type == DOCUMENT_NULL)
        return key->data || error_set(err, ERROR_TABLE_KEYS_MISSING, "%s is missing", name);
    if (value.type != DOCUMENT_STRING)
        return error_set(err, ERROR_TABLE_VALUE, "%s must be a text", name);
    if (key->data && !slice_equal(*key, value.text))
        return error_set(err, ERROR_BAD_REQUEST, "%s in the body is not that of the path", name);
    *key = arena_copy(r->arena, value.text);
    return true;
}

static bool body_parse(struct slice json, struct arena *arena, struct slice *ret_body,
                       struct error *err)
{
    const struct document_limits limits = {.depth_max = 4, .refuse_duplicates = true};
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (json.len == 0)
        return error_set(err, ERROR_BAD_REQUEST, "the request has no body");
    if (!document_json_read(json, &limits, &body, err)) {
        if (err->code == ERROR_DUPLICATE_PROPERTY)
            err->code = ERROR_TABLE_PROPERTY_TWICE;
        return false;
    }
    if (document_count(buf_slice(&body)) > ELEMENTS_MAX)
        return error_set(err, ERROR_TABLE_PROPERTIES, "there are more than %d", PROPERTIES_MAX);
    *ret_body = arena_copy(arena, buf_slice(&body));
    return true;
}

static void keys_append(struct buf *out, const struct table_keys *keys)
{
    document_append_string(out, table_names()->identity, keys->row);
    document_append_string(out, SLICE("PartitionKey"), keys->partition);
    document_append_string(out, SLICE("RowKey"), keys->row);
}

static void ticks_append(struct buf *out, struct slice elements)
{
    size_t begin;

    if (elements.len == 0)
        return;
    begin = document_append_object_begin(out, ticks_name);
    buf_append_slice(out, elements);
    document_end(out, begin);
}

static bool size_check(struct slice document, struct error *err)
{
    return document.len <= ENTITY_BYTES_MAX ||
           error_set(err, ERROR_TABLE_ENTITY_TOO_LARGE, "it has %zu bytes", document.len);
}

static bool properties_take(struct reading *r, struct error *err)
{
    struct document_iter iter;
    size_t begin = document_begin(&r->out);

    keys_append(&r->out, &r->keys);
    document_iter_init(&iter, r->body);
    while (document_iter_next(&iter))
        if (!is_metadata(iter.key) && !slice_equal(iter.key, SLICE("PartitionKey")) &&
            !slice_equal(iter.key, SLICE("RowKey")) && !slice_equal(iter.key, SLICE("Timestamp")) &&
            !property_take(r, iter.key, &iter.value, err))
            return false;
    ticks_append(&r->out, buf_slice(&r->ticks));
    document_end(&r->out, begin);
    return true;
}

bool table_entity_read(struct slice json, struct table_keys *keys, struct arena *arena,
                       struct slice *ret_document, struct error *err)
{
    struct reading r = {.arena = arena, .keys = *keys};
    bool fine;

    if (!body_parse(json, arena, &r.body, err) ||
        !key_take(&r, "PartitionKey", &r.keys.partition, err) ||
        !key_take(&r, "RowKey", &r.keys.row, err) || !table_keys_check(&r.keys, err))
        return false;
    buf_init(&r.out, BUF_DEFAULT_MAX);
    buf_init(&r.ticks, BUF_DEFAULT_MAX);
    fine = properties_take(&r, err) && size_check(buf_slice(&r.out), err);
    if (fine) {
        *ret_document = arena_copy(arena, buf_slice(&r.out));
        *keys = r.keys;
    }
    buf_done(&r.out);
    buf_done(&r.ticks);
    return fine;
}

/* --- Merging --------------------------------------------------------------------------------- */

static struct slice ticks_of(struct slice document)
{
    struct document_value value;

    if (document_find(document, ticks_name, &value) && value.type == DOCUMENT_OBJECT)
        return value.document;
    return SLICE_NONE;
}

/* The elements of an object that the other document has no property of the same name for. */
static void elements_keep(struct slice object, struct slice other, struct buf *out)
{
    struct document_value ignored;
    struct document_iter iter;

    if (!object.data)
        return;
    document_iter_init(&iter, object);
    while (document_iter_next(&iter))
        if (!slice_equal(iter.key, ticks_name) && !document_find(other, iter.key, &ignored))
            buf_append(out, iter.element, (size_t)(iter.at - iter.element));
}

static void elements_add(struct slice object, struct buf *out)
{
    if (object.len > 5) /* without length and final NUL */
        buf_append(out, object.data + 4, object.len - 5);
}

bool table_entity_merge(struct slice stored, struct slice with, struct arena *arena,
                        struct slice *ret_document, struct error *err)
{
    CLEANUP(buf_done) struct buf out, ticks;
    struct document_iter iter;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&ticks, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, with);
    while (document_iter_next(&iter)) /* keys come first */
        if (!slice_equal(iter.key, ticks_name))
            buf_append(&out, iter.element, (size_t)(iter.at - iter.element));
    elements_keep(stored, with, &out);
    elements_keep(ticks_of(stored), with, &ticks);
    elements_add(ticks_of(with), &ticks);
    ticks_append(&out, buf_slice(&ticks));
    document_end(&out, begin);
    if (document_count(buf_slice(&out)) > PROPERTIES_MAX + 4) /* id, two keys, $ticks */
        return error_set(err, ERROR_TABLE_PROPERTIES, "there would be more than %d",
                         PROPERTIES_MAX);
    if (!size_check(buf_slice(&out), err))
        return false;
    *ret_document = arena_copy(arena, buf_slice(&out));
    return true;
}

/* --- Timestamps ------------------------------------------------------------------------------ */

int64_t table_entity_ticks(const struct item_header *header)
{
    return edm_ticks_of_ms(header->wall_ms) + (int64_t)(header->lsn % EDM_TICKS_PER_MS);
}

void table_etag_write(int64_t ticks, char ret_text[TABLE_ETAG_LEN])
{
    char date[EDM_DATE_LEN], *to = ret_text;

    static_assert(TABLE_ETAG_LEN == 12 + EDM_DATE_LEN + 2 * 2 + 2,
                  "two colons take two bytes more each");

    edm_date_write_full(ticks, date);
    memcpy(to, "W/\"datetime'", 12);
    to += 12;
    for (size_t i = 0; i < EDM_DATE_LEN; i++) {
        if (date[i] != ':') {
            *to++ = date[i];
            continue;
        }
        memcpy(to, "%3A", 3);
        to += 3;
    }
    *to++ = '\'';
    *to++ = '"';
    assert(to == ret_text + TABLE_ETAG_LEN);
}

/* --- Showing --------------------------------------------------------------------------------- */

bool table_selection_has(const struct table_selection *selection, struct slice name)
{
    if (selection->count == 0)
        return true;
    for (size_t i = 0; i < selection->count; i++)
        if (slice_equal(selection->names[i], name))
            return true;
    return false;
}

static void key_append(struct slice key, struct buf *out)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < key.len; i++) {
        uint8_t c = key.data[i], small = c | 0x20;

        if ((small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') ||
            (c && strchr("-_.~!*()", c))) {
            buf_append_byte(out, c);
        } else if (c == '\'') {
            BUF_APPEND(out, "''");
        } else {
            buf_append_byte(out, '%');
            buf_append_byte(out, (uint8_t)hex[c >> 4]);
            buf_append_byte(out, (uint8_t)hex[c & 15]);
        }
    }
}

void table_entity_link_append(struct slice table, const struct table_keys *keys, struct buf *out)
{
    buf_append_slice(out, table);
    BUF_APPEND(out, "(PartitionKey='");
    key_append(keys->partition, out);
    BUF_APPEND(out, "',RowKey='");
    key_append(keys->row, out);
    BUF_APPEND(out, "')");
}

static void comma(struct buf *out)
{
    if (out->data[out->len - 1] != '{')
        buf_append_byte(out, ',');
}

static void text_append(struct buf *out, const char *name, struct slice text)
{
    comma(out);
    buf_append_byte(out, '"');
    buf_append_text(out, name);
    BUF_APPEND(out, "\":");
    document_json_write_string(text, out);
}

static void metadata_append(const struct table_shape *shape, const struct table_keys *keys,
                            int64_t ticks, bool alone, struct buf *out)
{
    char etag[TABLE_ETAG_LEN];
    CLEANUP(buf_done) struct buf link;

    buf_init(&link, 64 * 1024);
    if (alone) {
        buf_append_slice(&link, shape->root);
        BUF_APPEND(&link, "/$metadata#");
        buf_append_slice(&link, shape->table);
        BUF_APPEND(&link, "/@Element");
        text_append(out, "odata.metadata", buf_slice(&link));
        buf_clear(&link);
    }
    table_etag_write(ticks, etag);
    text_append(out, "odata.etag", slice_of(etag, sizeof etag));
    if (!shape->full)
        return;
    buf_append_slice(&link, shape->account);
    buf_append_byte(&link, '.');
    buf_append_slice(&link, shape->table);
    text_append(out, "odata.type", buf_slice(&link));
    buf_clear(&link);
    buf_append_slice(&link, shape->root);
    buf_append_byte(&link, '/');
    table_entity_link_append(shape->table, keys, &link);
    text_append(out, "odata.id", buf_slice(&link));
    text_append(out, "odata.editLink", slice_skip(buf_slice(&link), shape->root.len + 1));
}

static void property_append(const struct table_shape *shape, struct slice name,
                            const struct document_value *value, int32_t below_ms, struct buf *out)
{
    enum edm_type type;

    comma(out);
    document_json_write_string(name, out);
    buf_append_byte(out, ':');
    type = edm_value_append(value, below_ms, shape->full, out);
    if (type == EDM_UNKNOWN || !shape->minimal)
        return;
    buf_append_byte(out, ',');
    document_json_write_string(name, out);
    out->len--; /* the quote at its end */
    BUF_APPEND(out, "@odata.type\":\"");
    buf_append_text(out, edm_type_name(type));
    buf_append_byte(out, '"');
}

static void timestamp_append(const struct table_shape *shape, int64_t ticks, struct buf *out)
{
    char date[EDM_DATE_LEN];

    if (!table_selection_has(&shape->selection, SLICE("Timestamp")))
        return;
    edm_date_write_full(ticks, date);
    if (shape->full)
        text_append(out, "Timestamp@odata.type", SLICE("Edm.DateTime"));
    text_append(out, "Timestamp", slice_of(date, sizeof date));
}

static int32_t below_ms_of(struct slice ticks, struct slice name)
{
    struct document_value value;

    if (ticks.data && document_find(ticks, name, &value) && value.type == DOCUMENT_INT32 &&
        value.int32 >= 0 && value.int32 < EDM_TICKS_PER_MS)
        return value.int32;
    return 0;
}

/* Properties from other APIs can have a name twice: once as it is and once with its dollar. */
static bool is_shadowed(struct slice document, struct slice stored)
{
    uint8_t name[16] = "$";
    struct document_value ignored;

    if (!is_reserved(stored))
        return false;
    memcpy(name + 1, stored.data, stored.len);
    return document_find(document, slice_of(name, stored.len + 1), &ignored);
}

void table_entity_append(const struct table_shape *shape, struct slice document, int64_t ticks,
                         bool alone, struct buf *out)
{
    struct document_value partition = document_undefined(), row = document_undefined();
    struct slice below = ticks_of(document);
    struct table_keys keys;
    struct document_iter iter;

    (void)document_find(document, SLICE("PartitionKey"), &partition);
    (void)document_find(document, table_names()->identity, &row);
    keys = (struct table_keys){partition.type == DOCUMENT_STRING ? partition.text : SLICE(""),
                               row.type == DOCUMENT_STRING ? row.text : SLICE("")};
    (void)buf_reserve(out, document.len + document.len / 4 + SYSTEM_BYTES);
    buf_append_byte(out, '{');
    if (shape->minimal)
        metadata_append(shape, &keys, ticks, alone, out);
    if (table_selection_has(&shape->selection, SLICE("PartitionKey")))
        text_append(out, "PartitionKey", keys.partition);
    if (table_selection_has(&shape->selection, SLICE("RowKey")))
        text_append(out, "RowKey", keys.row);
    timestamp_append(shape, ticks, out);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        struct slice name = table_property_shown(iter.key);

        if (!table_property_is_own(iter.key) && iter.value.type != DOCUMENT_NULL &&
            table_selection_has(&shape->selection, name) && !is_shadowed(document, iter.key))
            property_append(shape, name, &iter.value, below_ms_of(below, iter.key), out);
    }
    buf_append_byte(out, '}');
}
