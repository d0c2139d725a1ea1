#include "item/shown.h"

#include "document/bson.h"
#include "document/extended.h"

struct slice item_id_text(const struct document_names *names, const struct document_value *id,
                          struct arena *arena)
{
    if (item_shows_plainly(names)) {
        assert(id->type == DOCUMENT_STRING);
        return id->text;
    }
    return document_extended_text(id, arena);
}

struct document_value item_id_of_text(const struct document_names *names, struct slice text,
                                      struct arena *arena)
{
    return item_shows_plainly(names) ? document_string(text)
                                     : document_extended_of_text(text, arena);
}

bool item_id_same(const struct document_names *names, const struct document_value *a,
                  const struct document_value *b)
{
    return document_compare(names->identity_order, a, b) == 0;
}

struct slice item_shown(const struct document_names *names, struct slice document,
                        struct arena *arena)
{
    CLEANUP(buf_done) struct buf shown;
    const struct slice *again;
    struct document_value id;
    struct document_iter iter;
    size_t begin;

    buf_init(&shown, SIZE_MAX);
    if (item_shows_plainly(names))
        return document;
    again = document_extended_names(document, arena);
    begin = document_begin(&shown);
    if (document_find(document, names->identity, &id))
        document_append_string(&shown, names->shown, item_id_text(names, &id, arena));
    document_iter_init(&iter, document);
    for (size_t i = 0; document_iter_next(&iter); i++)
        if (!slice_equal(iter.key, names->shown))
            document_extended_append(&shown, again ? again[i] : iter.key, &iter.value);
    document_end(&shown, begin);
    return arena_copy(arena, buf_slice(&shown));
}

/* The identity comes first, as MongoDB stores it. */
static bool identity_append(const struct document_names *names, struct slice document,
                            struct arena *arena, struct buf *out, struct error *err)
{
    struct document_value id;

    if (document_find(document, names->identity, &id)) {
        if (!document_extended_read(&id, arena, &id, err))
            return false;
    } else if (document_find(document, names->shown, &id)) {
        if (id.type == DOCUMENT_STRING && id.text.len)
            id = item_id_of_text(names, id.text, arena);
    } else {
        return true;
    }
    document_append(out, names->identity, &id);
    return true;
}

bool item_taken(const struct document_names *names, struct slice document, struct arena *arena,
                struct slice *ret_document, struct error *err)
{
    CLEANUP(buf_done) struct buf taken;
    const struct slice *again = NULL;
    struct document_iter iter;
    size_t begin;

    buf_init(&taken, SIZE_MAX);
    if (item_shows_plainly(names)) {
        *ret_document = document;
        return true;
    }
    begin = document_begin(&taken);
    if (!document_extended_names_read(document, arena, &again, err) ||
        !identity_append(names, document, arena, &taken, err))
        return false;
    document_iter_init(&iter, document);
    for (size_t i = 0; document_iter_next(&iter); i++) {
        struct slice name = again ? again[i] : iter.key;
        struct document_value value;

        if (slice_equal(iter.key, names->identity) || slice_equal(iter.key, names->shown))
            continue;
        if (slice_equal(name, names->identity) || slice_equal(name, names->shown))
            return error_set(err, ERROR_BAD_REQUEST, "an item has one \"%.*s\"", SLICE_ARG(name));
        if (!document_extended_read(&iter.value, arena, &value, err))
            return false;
        document_append(&taken, name, &value);
    }
    document_end(&taken, begin);
    *ret_document = arena_copy(arena, buf_slice(&taken));
    return true;
}
