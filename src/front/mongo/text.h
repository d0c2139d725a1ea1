/* Values as MongoDB's messages show them: { a: 1, b: "x" }, ObjectId('...'), new Date(0). */
#pragma once

#include "base/arena.h"
#include "document/bson.h"

/* Appends at most about max bytes; what is cut ends in three dots. */
void mongo_text_append(struct buf *buf, const struct document_value *value, size_t max);

/* `{name: value}`, as update errors name an element; in the arena, cut to what a message holds. */
struct slice mongo_text_element(struct slice name, const struct document_value *value,
                                struct arena *arena);
struct slice mongo_text_value(const struct document_value *value, struct arena *arena);

/* The alias of a type, as $type has it: "int", "objectId", ... */
const char *mongo_type_name(enum document_type type);
