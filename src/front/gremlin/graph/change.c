#include "front/gremlin/graph/change.h"

#include "document/order.h"
#include "front/gremlin/graph/stored.h"

enum { NAME_SHOWN_MAX = 64 };

/* --- Names
 * ---------------------------------------------------------------------------------------- */

static bool name_refuse(struct slice name, const char *why, struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST, "\"%.*s\" cannot be the name of a property: %s",
                     (int)MIN(name.len, (size_t)NAME_SHOWN_MAX), (const char *)name.data, why);
}

bool gremlin_change_name(struct slice name, struct error *err)
{
    if (!name.len)
        return error_set(err, ERROR_BAD_REQUEST, "Property key can not be the empty string");
    if (memchr(name.data, 0, name.len))
        return error_set(err, ERROR_BAD_REQUEST, "a property key cannot hold the character NUL");
    if (gremlin_name_is_own(name))
        return name_refuse(name, "it is one that vertices and edges are stored with", err);
    return true;
}

static bool is_key(const struct gremlin_change *change, struct slice name)
{
    for (size_t i = 0; i < change->names.key_count; i++)
        if (slice_equal(change->names.keys[i], name))
            return true;
    return false;
}

static bool key_refuse(struct slice name, const char *what, struct error *err)
{
    return error_set(err, ERROR_BAD_REQUEST,
                     "Gremlin Query Execution Error: Cannot %s the partition key property '%.*s': "
                     "it never changes.",
                     what, (int)MIN(name.len, (size_t)NAME_SHOWN_MAX), (const char *)name.data);
}

struct slice gremlin_change_id(struct random *ids, char text[RANDOM_UUID_SIZE])
{
    uint64_t bytes[2] = {random_next(ids), random_next(ids)};

    random_uuid_of((const uint8_t *)bytes, text);
    return slice_of(text, RANDOM_UUID_SIZE - 1);
}

/* --- Documents
 * ------------------------------------------------------------------------------------- */

/* A copy of a document with one element replaced, added behind the others, or left out. */
struct rewrite {
    struct buf out;
    size_t begin;
};

static void raw_append(struct buf *out, const struct document_iter *iter)
{
    buf_append(out, iter->element, (size_t)(iter->at - iter->element));
}

static struct slice finish(const struct gremlin_change *change, struct buf *out, size_t begin)
{
    document_end(out, begin);
    return arena_copy(change->arena, buf_slice(out));
}

/* value undefined: without it. */
static struct slice with_property(const struct gremlin_change *change, struct slice document,
                                  struct slice key, const struct document_value *value)
{
    CLEANUP(buf_done) struct buf out;
    struct document_iter iter;
    bool placed = value->type == DOCUMENT_UNDEFINED;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        if (!slice_equal(iter.key, key)) {
            raw_append(&out, &iter);
        } else if (!placed) {
            document_append(&out, key, value);
            placed = true;
        }
    }
    if (!placed)
        document_append(&out, key, value);
    return finish(change, &out, begin);
}

/* The object under a name with one of its properties set or removed; without the object when it has
 * none left. */
static struct slice with_member(const struct gremlin_change *change, struct slice document,
                                struct slice name, struct slice key,
                                const struct document_value *value)
{
    static const struct slice empty = SLICE("\5\0\0\0\0");
    struct document_value object, member = document_undefined();

    if (!document_find(document, name, &object) || object.type != DOCUMENT_OBJECT) {
        if (value->type == DOCUMENT_UNDEFINED)
            return document;
        object = document_object(empty);
    }
    object.document = with_property(change, object.document, key, value);
    if (document_count(object.document))
        member = object;
    return with_property(change, document, name, &member);
}

/* --- Entries
 * ---------------------------------------------------------------------------------------- */

static bool entry_build(const struct gremlin_change *change, struct slice id,
                        const struct gremlin_assignment *assignment,
                        const struct document_value *value, const struct document_value *tag,
                        struct slice *ret_entry, struct error *err)
{
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    document_append_string(&out, SLICE("id"), id);
    document_append(&out, SLICE("_value"), value);
    if (tag->type != DOCUMENT_UNDEFINED)
        document_append(&out, SLICE("_type"), tag);
    *ret_entry = finish(change, &out, begin);
    for (size_t i = 0; i < assignment->meta_count; i++) {
        const struct gremlin_pair *meta = &assignment->meta[i];
        struct document_value meta_value, meta_tag;

        if (!gremlin_change_name(meta->key, err) ||
            !gremlin_stored_encode(&meta->value, change->arena, &meta_value, &meta_tag, err))
            return false;
        *ret_entry = with_member(change, *ret_entry, SLICE("_meta"), meta->key, &meta_value);
        *ret_entry = with_member(change, *ret_entry, SLICE("_metaTypes"), meta->key, &meta_tag);
    }
    return true;
}

/* The meta-properties of the one put into the other. */
static struct slice entry_merge(const struct gremlin_change *change, struct slice entry,
                                struct slice added)
{
    static const struct slice names[] = {SLICE("_meta"), SLICE("_metaTypes")};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct document_value object;
        struct document_iter iter;

        if (!document_find(added, names[i], &object) || object.type != DOCUMENT_OBJECT)
            continue;
        document_iter_init(&iter, object.document);
        while (document_iter_next(&iter))
            entry = with_member(change, entry, names[i], iter.key, &iter.value);
    }
    return entry;
}

/* Appends the entries that are there; of a set, the one with the same value takes the
 * meta-properties. *ret_there: there was one. */
static uint32_t entries_append(const struct gremlin_change *change,
                               const struct document_value *property, struct slice key,
                               const struct document_value *same, struct slice added,
                               struct buf *out, bool *ret_there)
{
    struct gremlin_stored_values values;
    struct document_value value;
    struct slice entry;
    uint32_t at = 0;

    gremlin_stored_values_init(&values, property);
    while (gremlin_stored_values_next(&values, &value, &entry)) {
        struct document_value object;
        char text[DOCUMENT_INDEX_SIZE];

        if (!entry.data) { /* it stood bare, as another API wrote it */
            const struct gremlin_assignment plain = {.key = key};
            const struct document_value none = document_undefined();
            struct error ignored = {0};
            char id[RANDOM_UUID_SIZE];

            (void)entry_build(change, gremlin_change_id(change->ids, id), &plain, &value, &none,
                              &entry, &ignored);
        }
        if (same && !*ret_there && value.type == same->type &&
            document_compare(DOCUMENT_ORDER_SQL, &value, same) == 0) {
            entry = entry_merge(change, entry, added);
            *ret_there = true;
        }
        object = document_object(entry);
        document_append(out, document_index_key(at++, text), &object);
    }
    return at;
}

static bool vertex_assign(const struct gremlin_change *change, struct slice document,
                          const struct gremlin_assignment *assignment,
                          const struct document_value *value, const struct document_value *tag,
                          struct slice *ret_document, struct error *err)
{
    CLEANUP(buf_done) struct buf out;
    bool set = assignment->cardinality == GREMLIN_CARDINALITY_SET, there = false;
    bool keeps = set || assignment->cardinality == GREMLIN_CARDINALITY_LIST;
    struct document_value before, array, object;
    char id[RANDOM_UUID_SIZE], text[DOCUMENT_INDEX_SIZE];
    struct slice entry;
    uint32_t at = 0;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!entry_build(change, gremlin_change_id(change->ids, id), assignment, value, tag, &entry,
                     err))
        return false;
    begin = document_begin(&out);
    if (keeps && document_find(document, assignment->key, &before))
        at = entries_append(change, &before, assignment->key, set ? value : NULL, entry, &out,
                            &there);
    object = document_object(entry);
    if (!there)
        document_append(&out, document_index_key(at, text), &object);
    array = document_array(finish(change, &out, begin));
    *ret_document = with_property(change, document, assignment->key, &array);
    return true;
}

static bool key_assign(struct slice document, const struct gremlin_assignment *assignment,
                       const struct document_value *value, struct error *err)
{
    struct document_value before;

    if (assignment->meta_count)
        return error_set(err, ERROR_BAD_REQUEST,
                         "the partition key property '%.*s' cannot have meta-properties",
                         (int)MIN(assignment->key.len, (size_t)NAME_SHOWN_MAX),
                         (const char *)assignment->key.data);
    if (document_find(document, assignment->key, &before) &&
        document_compare(DOCUMENT_ORDER_SQL, &before, value) == 0)
        return true;
    return key_refuse(assignment->key, "update", err);
}

static bool edge_assign(const struct gremlin_change *change, struct slice document,
                        const struct gremlin_assignment *assignment,
                        const struct document_value *value, const struct document_value *tag,
                        struct slice *ret_document, struct error *err)
{
    if (assignment->meta_count)
        return error_set(err, ERROR_BAD_REQUEST,
                         "Property \"%.*s\" of an edge cannot have meta-properties",
                         (int)MIN(assignment->key.len, (size_t)NAME_SHOWN_MAX),
                         (const char *)assignment->key.data);
    document = with_property(change, document, assignment->key, value);
    *ret_document = with_member(change, document, SLICE("_types"), assignment->key, tag);
    return true;
}

bool gremlin_change_assign(const struct gremlin_change *change, struct slice document, bool edge,
                           const struct gremlin_assignment *assignment, struct slice *ret_document,
                           struct error *err)
{
    const struct document_value none = document_undefined();
    struct document_value value, tag;

    if (!gremlin_change_name(assignment->key, err) ||
        !gremlin_stored_encode(&assignment->value, change->arena, &value, &tag, err))
        return false;
    if (is_key(change, assignment->key)) {
        *ret_document = document;
        return key_assign(document, assignment, &value, err);
    }
    if (gremlin_is_null(assignment->value)) { /* null is no value: there is none then */
        *ret_document = document;
        if (edge || (assignment->cardinality != GREMLIN_CARDINALITY_LIST &&
                     assignment->cardinality != GREMLIN_CARDINALITY_SET))
            *ret_document = with_property(change, document, assignment->key, &none);
        return true;
    }
    if (slice_equal(assignment->key, SLICE("ttl"))) {
        *ret_document = with_property(change, document, assignment->key, &value);
        return true;
    }
    return edge ? edge_assign(change, document, assignment, &value, &tag, ret_document, err)
                : vertex_assign(change, document, assignment, &value, &tag, ret_document, err);
}

/* --- Less
 * -------------------------------------------------------------------------------------------- */

static bool entry_is(struct slice entry, struct slice id)
{
    struct document_value value;

    return entry.data && document_find(entry, SLICE("id"), &value) &&
           value.type == DOCUMENT_STRING && slice_equal(value.text, id);
}

/* The array of a property with one entry replaced; data NULL: left out. False: it has no such. */
static bool entries_with(const struct gremlin_change *change, const struct document_value *property,
                         struct slice id, struct slice entry_now, struct document_value *ret_array)
{
    CLEANUP(buf_done) struct buf out;
    struct gremlin_stored_values values;
    struct document_value value;
    struct slice entry;
    bool there = false;
    uint32_t at = 0;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    begin = document_begin(&out);
    gremlin_stored_values_init(&values, property);
    while (gremlin_stored_values_next(&values, &value, &entry)) {
        bool is_it = entry_is(entry, id);
        struct document_value object;
        char text[DOCUMENT_INDEX_SIZE];

        there |= is_it;
        object = document_object(is_it ? entry_now : entry);
        if (object.document.data)
            document_append(&out, document_index_key(at++, text), &object);
    }
    *ret_array = document_array(finish(change, &out, begin));
    if (!at)
        *ret_array = document_undefined();
    return there;
}

bool gremlin_change_remove(const struct gremlin_change *change, struct slice document,
                           struct slice key, struct slice id, struct slice *ret_document,
                           struct error *err)
{
    const struct document_value none = document_undefined();
    struct document_value property, array;

    if (is_key(change, key))
        return key_refuse(key, "drop", err);
    *ret_document = document;
    if (gremlin_name_is_own(key) || !document_find(document, key, &property))
        return true;
    if (property.type == DOCUMENT_ARRAY && id.len &&
        entries_with(change, &property, id, SLICE_NONE, &array)) {
        *ret_document = with_property(change, document, key, &array);
        return true;
    }
    if (property.type == DOCUMENT_ARRAY && id.len) {
        struct gremlin_stored_values values;

        gremlin_stored_values_init(&values, &property);
        if (values.listed)
            return true; /* another one dropped it */
    }
    document = with_property(change, document, key, &none);
    *ret_document = with_member(change, document, SLICE("_types"), key, &none);
    return true;
}

bool gremlin_change_meta(const struct gremlin_change *change, struct slice document,
                         struct slice key, struct slice id, struct slice meta_key,
                         const struct gremlin_value *value, struct slice *ret_document,
                         struct error *err)
{
    struct document_value stored = document_undefined(), tag = document_undefined(), property,
                          found, array;
    struct gremlin_stored_values values;
    struct slice entry;

    if (!gremlin_change_name(meta_key, err) ||
        (value && !gremlin_is_null(*value) &&
         !gremlin_stored_encode(value, change->arena, &stored, &tag, err)))
        return false;
    *ret_document = document;
    if (!document_find(document, key, &property))
        return error_set(err, ERROR_ITEM_MISSING, "the property was dropped meanwhile");
    gremlin_stored_values_init(&values, &property);
    while (gremlin_stored_values_next(&values, &found, &entry)) {
        if (!entry_is(entry, id))
            continue;
        entry = with_member(change, entry, SLICE("_meta"), meta_key, &stored);
        entry = with_member(change, entry, SLICE("_metaTypes"), meta_key, &tag);
        (void)entries_with(change, &property, id, entry, &array);
        *ret_document = with_property(change, document, key, &array);
        return true;
    }
    return error_set(err, ERROR_BAD_REQUEST,
                     "the property '%.*s' is stored without room for meta-properties",
                     (int)MIN(key.len, (size_t)NAME_SHOWN_MAX), (const char *)key.data);
}
