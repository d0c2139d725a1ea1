/* Extended JSON inside documents: types that survive a client that only knows JSON.
 *
 * json.h writes what JSON has no type for as MongoDB's canonical extended JSON. Of the numbers JSON
 * tells an int32, a larger integer and a fraction apart, and nothing else: an int64 that is small,
 * one that JavaScript would round, and a double that is whole come back as another type or value.
 * A document with these replaced by objects such as {"$numberLong":"5"} keeps all its types through
 * its JSON text, and reading turns every such object into the value again.
 *
 * An object that a client means as an object and that looks like extended JSON is taken for it, as
 * everywhere in MongoDB's tools.
 *
 * BSON may have a name twice in one object, which no reader of JSON keeps. Such a name is shown
 * with its number, which is this server's own: {a: 1, b: 2, a: 3} is {"a":1,"b":2,"$again2:a":3}. A
 * name that begins like that itself has a 1 before it. So what is shown means one document. */
#pragma once

#include "base/arena.h"
#include "document/bson.h"

/* Like document_append, with what JSON would not bring back replaced, at any depth. */
void document_extended_append(struct buf *buf, struct slice key,
                              const struct document_value *value);

/* The names of an object's elements, in their order, as they are shown, and as they are meant: in
 * the arena; NULL: as they stand. ERROR_BAD_REQUEST: the number of one is not its own. */
const struct slice *document_extended_names(struct slice object, struct arena *arena);
NODISCARD bool document_extended_names_read(struct slice object, struct arena *arena,
                                            const struct slice **ret_names, struct error *err);

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
