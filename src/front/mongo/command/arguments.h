/* Arguments of commands: the fields of a command's document, by name and type.
 *
 *     struct find { struct slice filter; int64_t limit; };
 *     static const struct mongo_field fields[] = {
 *         {"filter", MONGO_FIELD_OBJECT, offsetof(struct find, filter)},
 *         {"limit", MONGO_FIELD_SIZE, offsetof(struct find, limit)}};
 *
 * Fields that any command may carry are known besides. Null and undefined count as absent. */
#pragma once

#include "front/mongo/command/call.h"

enum mongo_field_type {
    MONGO_FIELD_BOOL,   /* bool; a number is true unless it is 0 */
    MONGO_FIELD_NUMBER, /* int64_t */
    MONGO_FIELD_SIZE,   /* int64_t, not below 0 */
    MONGO_FIELD_STRING, /* struct slice */
    MONGO_FIELD_OBJECT, /* struct slice: BSON */
    MONGO_FIELD_ARRAY,  /* struct slice: BSON; data NULL also where it came as a sequence */
    MONGO_FIELD_VALUE,  /* struct document_value; undefined: absent */
    MONGO_FIELD_ANY,    /* looked at by nobody: without it the answer is the same */
};

struct mongo_field {
    const char *name;
    enum mongo_field_type type;
    size_t offset;
    bool needed;
};

/* Reads the fields of the command behind its first. values is zero before. 40415: one is unknown;
 * 14: of the wrong type; 40414: one is missing; 40413: there twice; 51024: below 0. */
NODISCARD bool mongo_arguments_read(const struct mongo_call *call, const struct mongo_field *fields,
                                    size_t count, void *values, struct error *err);

/* The same of a document within the command; prefix: "update.updates". */
NODISCARD bool mongo_fields_read(struct slice document, const char *prefix,
                                 const struct mongo_field *fields, size_t count, void *values,
                                 struct error *err);

/* Those that any command may carry, as far as they are looked at: read and write concern,
 * transactions. Before a command runs. */
/* Is it a field that any command may carry? */
bool mongo_field_is_generic(struct slice name);

NODISCARD bool mongo_generic_check(const struct mongo_call *call, struct error *err);

/* The session the command belongs to: its 16 bytes, or absent. */
struct slice mongo_session_id(const struct mongo_call *call);

/* Documents of an array field, which may have come as a sequence. */
struct mongo_documents {
    struct slice rest;         /* of a sequence */
    struct document_iter iter; /* of an array */
    bool sequence;
    size_t count;
};

/* 14: the array is of something else; 40414: there is neither. */
NODISCARD bool mongo_documents_open(const struct mongo_call *call, const char *name,
                                    struct mongo_documents *ret_documents, struct error *err);
bool mongo_documents_next(struct mongo_documents *documents, struct slice *ret_document);
