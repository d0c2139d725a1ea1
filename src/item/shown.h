/* Shown: an item as clients of JSON APIs see it, whatever property is its identity.
 *
 * Where the identity is a text that is called as they call it, an item is shown as it is. Elsewhere
 * (`_id`, of any type) they see its text under the name they know, before the properties of the
 * item, and types that JSON lacks as extended JSON (document/extended.h). What they write is taken
 * back the same way: the identity itself if it is there, else the value that the text means. A
 * property of the item with the name of the text is not seen. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "document/names.h"

/* Is an item shown as it is stored? */
static inline bool item_shows_plainly(const struct document_names *names)
{
    return names->identity_is_text;
}

/* The item as it is shown; in the arena, or the item itself. */
struct slice item_shown(const struct document_names *names, struct slice document,
                        struct arena *arena);

/* The item that is meant by what a client wrote; in the arena, or that itself. ERROR_BAD_REQUEST:
 * it is not extended JSON where it should be. */
NODISCARD bool item_taken(const struct document_names *names, struct slice document,
                          struct arena *arena, struct slice *ret_document, struct error *err);

/* An identity as text, and the identity that a text names; in the arena, or borrowed. */
struct slice item_id_text(const struct document_names *names, const struct document_value *id,
                          struct arena *arena);
struct document_value item_id_of_text(const struct document_names *names, struct slice text,
                                      struct arena *arena);

/* Do both name the same item of a logical partition? */
bool item_id_same(const struct document_names *names, const struct document_value *a,
                  const struct document_value *b);
