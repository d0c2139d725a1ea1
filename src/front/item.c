#include "front/item.h"

#include "document/bson.h"
#include "item/shown.h"

enum { ID_BYTES_SHOWN = 64 };

static bool is_system(const struct document_names *names, struct slice key)
{
    return document_names_system(names, key) != DOCUMENT_SYSTEM_COUNT;
}

static bool id_check(struct slice id, struct error *err)
{
    if (id.len == 0)
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: the id is empty");
    for (size_t i = 0; i < id.len; i++)
        if (id.data[i] == '/' || id.data[i] == '\\' || id.data[i] == '#')
            return error_set(
                err, ERROR_BAD_REQUEST, "id \"%.*s\" has a character no id may have: %c",
                (int)MIN(id.len, (size_t)ID_BYTES_SHOWN), (const char *)id.data, id.data[i]);
    return true;
}

/* MongoDB takes any value for an identity but these. */
static bool identity_check(const struct document_names *names, const struct document_value *id,
                           struct error *err)
{
    if (names->identity_is_text && id->type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: id is missing or not a text");
    if (id->type == DOCUMENT_UNDEFINED || id->type == DOCUMENT_ARRAY || id->type == DOCUMENT_REGEX)
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: %.*s is missing, an array or a "
                         "regular expression",
                         SLICE_ARG(names->identity));
    return !names->identity_is_text || id_check(id->text, err);
}

/* The item without what is ours to write. */
static struct slice stripped(const struct document_names *names, struct slice document,
                             struct arena *arena)
{
    CLEANUP(buf_done) struct buf kept;
    struct document_iter iter;
    size_t begin;

    buf_init(&kept, BUF_DEFAULT_MAX);
    begin = document_begin(&kept);
    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!is_system(names, iter.key))
            buf_append(&kept, iter.element, (size_t)(iter.at - iter.element));
    document_end(&kept, begin);
    return arena_copy(arena, buf_slice(&kept));
}

bool front_item_clean(const struct document_names *names, struct slice document,
                      struct arena *arena, struct slice *ret_item, struct document_value *ret_id,
                      struct error *err)
{
    struct document_value id = document_undefined();
    struct document_iter iter;
    bool system = false;

    if (!item_taken(names, document, arena, &document, err))
        return false;
    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        system = system || is_system(names, iter.key);
        if (slice_equal(iter.key, names->identity))
            id = iter.value;
    }
    if (!identity_check(names, &id, err))
        return false;
    *ret_item = system ? stripped(names, document, arena) : document;
    *ret_id = id;
    return true;
}
