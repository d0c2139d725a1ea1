/* Extended JSON inside documents: types that survive a client that only knows JSON.
 *
 * json.h writes what JSON has no type for as MongoDB's canonical extended JSON. Of the numbers JSON
 * tells an int32, a larger integer and a fraction apart, and nothing else: an int64 that is small,
 * one that JavaScript would round, and a double that is whole come back as another type or value.
 * A document with these replaced by objects such as {"$numberLong":"5"} keeps all its types through
 * its JSON text, and reading turns every such object into the value again.
 *
 * An object that a client means as an object and that looks like extended JSON is taken for it, as
 * everywhere in MongoDB's tools. */
#pragma once

#include "base/arena.h"
#include "document/bson.h"

/* Like document_append, with what JSON would not bring back replaced, at any depth. */
void document_extended_append(struct buf *buf, struct slice key,
                              const struct document_value *value);

/* The value that is meant, in the arena, where it differs from what is given. ERROR_BAD_REQUEST: an
 * object of extended JSON whose content is none. */
NODISCARD bool document_extended_read(const struct document_value *value, struct arena *arena,
                                      struct document_value *ret_value, struct error *err);

/* The text of a value, in the arena, and the value of a text: an object id is its 24 digits, a
 * number its JSON text, a string itself, and anything else extended JSON. A string that would read
 * as another value is a JSON string with its quotes; so a text means one value. Equal numbers of
 * different types may have different texts, which mean equal values. Arrays are no texts: what
 * looks like one is a string. */
struct slice document_extended_text(const struct document_value *value, struct arena *arena);
struct document_value document_extended_of_text(struct slice text, struct arena *arena);
