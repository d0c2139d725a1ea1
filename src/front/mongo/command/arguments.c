#include "front/mongo/command/arguments.h"

#include "base/bytes.h"
#include "front/mongo/command/preference.h"
#include "front/mongo/command/session.h"
#include "front/mongo/text.h"

enum { FIELDS_MAX = 64, NAME_SHOWN_MAX = 64, SESSION_ID_LEN = 16 };

/* Accepted with every command. What they ask for holds anyway, or makes no difference here; those
 * with a meaning are looked at by mongo_generic_check. */
static const char *const generic[] = {
    "$db",
    "lsid",
    "$clusterTime",
    "$readPreference",
    "readConcern",
    "writeConcern",
    "maxTimeMS",
    "comment",
    "apiVersion",
    "apiStrict",
    "apiDeprecationErrors",
    "$configServerState",
    "$audit",
    "$client",
    "$replData",
    "rawData",
    "txnNumber",
    "autocommit",
    "recoveryToken",
    "startTransaction",
    "stmtId",
    "stmtIds",
    "mayBypassWriteBlocking",
    "$queryOptions",
    "maxTimeMSOpOnly",
};

bool mongo_field_is_generic(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(generic); i++)
        if (slice_equal(name, slice_of_text(generic[i])))
            return true;
    return false;
}

static bool is_absent(const struct document_value *value)
{
    return value->type == DOCUMENT_NULL || value->type == DOCUMENT_UNDEFINED;
}

static bool wrong_type(const char *prefix, const struct mongo_field *field,
                       const struct document_value *value, const char *expected, struct error *err)
{
    return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                           "BSON field '%s.%s' is the wrong type '%s', expected type '%s'", prefix,
                           field->name, mongo_type_name(value->type), expected);
}

static bool number_read(const char *prefix, const struct mongo_field *field,
                        const struct document_value *value, int64_t *ret_number, struct error *err)
{
    double real;

    if (!document_is_number(value))
        return wrong_type(prefix, field, value, "long", err);
    if (!document_to_int64(value, ret_number)) {
        if (!document_to_double(value, &real) || !(real > -9.2e18 && real < 9.2e18))
            return mongo_error_set(err, MONGO_BAD_VALUE, "BSON field '%s.%s' is out of range",
                                   prefix, field->name);
        *ret_number = (int64_t)real;
    }
    if (field->type == MONGO_FIELD_SIZE && *ret_number < 0)
        return mongo_error_set(err, 51024,
                               "BSON field '%s' value must be >= 0, actual value '%lld'",
                               field->name, (long long)*ret_number);
    return true;
}

static bool field_read(const char *prefix, const struct mongo_field *field,
                       const struct document_value *value, void *to, struct error *err)
{
    switch (field->type) {
    case MONGO_FIELD_BOOL: {
        double number = 0;

        if (value->type != DOCUMENT_BOOL && !document_to_double(value, &number))
            return wrong_type(prefix, field, value, "bool", err);
        *(bool *)to = value->type == DOCUMENT_BOOL ? value->boolean : number != 0;
        return true;
    }
    case MONGO_FIELD_NUMBER:
    case MONGO_FIELD_SIZE:
        return number_read(prefix, field, value, to, err);
    case MONGO_FIELD_STRING:
        if (value->type != DOCUMENT_STRING)
            return wrong_type(prefix, field, value, "string", err);
        *(struct slice *)to = value->text;
        return true;
    case MONGO_FIELD_OBJECT:
        if (value->type != DOCUMENT_OBJECT)
            return wrong_type(prefix, field, value, "object", err);
        *(struct slice *)to = value->document;
        return true;
    case MONGO_FIELD_ARRAY:
        if (value->type != DOCUMENT_ARRAY)
            return wrong_type(prefix, field, value, "array", err);
        *(struct slice *)to = value->document;
        return true;
    case MONGO_FIELD_VALUE:
        *(struct document_value *)to = *value;
        return true;
    case MONGO_FIELD_ANY:
        return true;
    }
    return true;
}

/* seen: bit of each field that was there. */
static bool fields_walk(struct document_iter *iter, bool command, const char *prefix,
                        const struct mongo_field *fields, size_t count, void *values,
                        uint64_t *seen, struct error *err)
{
    while (document_iter_next(iter)) {
        size_t at = 0;

        while (at < count && !slice_equal(iter->key, slice_of_text(fields[at].name)))
            at++;
        if (at == count) {
            if (command && mongo_field_is_generic(iter->key))
                continue;
            return mongo_error_set(
                err, MONGO_IDL_UNKNOWN_FIELD, "BSON field '%s.%.*s' is an unknown field.", prefix,
                (int)MIN(iter->key.len, (size_t)NAME_SHOWN_MAX), (const char *)iter->key.data);
        }
        if (*seen >> at & 1)
            return mongo_error_set(err, MONGO_IDL_DUPLICATE_FIELD,
                                   "BSON field '%s.%s' is a duplicate field", prefix,
                                   fields[at].name);
        if (is_absent(&iter->value) && fields[at].type != MONGO_FIELD_VALUE)
            continue;
        *seen |= (uint64_t)1 << at;
        /* Where no field is kept there are no values. */
        if (!field_read(prefix, &fields[at], &iter->value,
                        values ? (uint8_t *)values + fields[at].offset : NULL, err))
            return false;
    }
    return true;
}

static bool needed_check(const char *prefix, const struct mongo_field *fields, size_t count,
                         uint64_t seen, struct error *err)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].needed && !(seen >> i & 1))
            return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                                   "BSON field '%s.%s' is missing but a required field", prefix,
                                   fields[i].name);
    return true;
}

/* A value that is not there is undefined, not a double as zeros would be. */
static void values_clear(const struct mongo_field *fields, size_t count, void *values)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].type == MONGO_FIELD_VALUE)
            *(struct document_value *)((uint8_t *)values + fields[i].offset) = document_undefined();
}

bool mongo_fields_read(struct slice document, const char *prefix, const struct mongo_field *fields,
                       size_t count, void *values, struct error *err)
{
    struct document_iter iter;
    uint64_t seen = 0;

    assert(count <= FIELDS_MAX);
    values_clear(fields, count, values);
    document_iter_init(&iter, document);
    return fields_walk(&iter, false, prefix, fields, count, values, &seen, err) &&
           needed_check(prefix, fields, count, seen, err);
}

bool mongo_arguments_read(const struct mongo_call *call, const struct mongo_field *fields,
                          size_t count, void *values, struct error *err)
{
    const char *prefix = call->command->name;
    struct document_iter iter;
    uint64_t seen = 0;

    assert(count <= FIELDS_MAX);
    values_clear(fields, count, values);
    for (size_t s = 0; s < call->message.sequence_count; s++) {
        struct slice name = call->message.sequences[s].name;
        size_t at = 0;

        while (at < count && (fields[at].type != MONGO_FIELD_ARRAY ||
                              !slice_equal(name, slice_of_text(fields[at].name))))
            at++;
        if (at == count)
            return mongo_error_set(
                err, MONGO_IDL_UNKNOWN_FIELD, "BSON field '%s.%.*s' is an unknown field.", prefix,
                (int)MIN(name.len, (size_t)NAME_SHOWN_MAX), (const char *)name.data);
        seen |= (uint64_t)1 << at;
    }
    document_iter_init(&iter, call->message.body);
    (void)document_iter_next(&iter); /* the command's name */
    return fields_walk(&iter, true, prefix, fields, count, values, &seen, err) &&
           needed_check(prefix, fields, count, seen, err);
}

/* --- Those of every command ------------------------------------------------------------------ */

static bool object_check(const struct mongo_call *call, const char *name,
                         struct document_value *ret_value, bool *ret_there, struct error *err)
{
    *ret_there =
        document_find(call->message.body, slice_of_text(name), ret_value) && !is_absent(ret_value);
    if (!*ret_there || ret_value->type == DOCUMENT_OBJECT)
        return true;
    return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                           "BSON field '%s.%s' is the wrong type '%s', expected type 'object'",
                           call->command->name, name, mongo_type_name(ret_value->type));
}

/* Every write is as durable as it will be before it is answered: w of any number of this one
 * server's, or the majority of it. */
static bool write_concern_check(const struct document_value *concern, struct error *err)
{
    struct document_value w;
    int64_t number;

    if (!document_find(concern->document, SLICE("w"), &w) || is_absent(&w))
        return true;
    if (document_to_int64(&w, &number)) {
        if (number >= 0 && number <= 50)
            return true;
        return mongo_error_set(err, MONGO_FAILED_TO_PARSE,
                               "w has to be a non-negative number and not greater than 50");
    }
    if (w.type == DOCUMENT_STRING && slice_equal(w.text, SLICE("majority")))
        return true;
    return mongo_error_set(err, MONGO_UNKNOWN_REPL_WRITE_CONCERN,
                           "No write concern mode named '%.*s' found in replica set configuration",
                           w.type == DOCUMENT_STRING ? (int)MIN(w.text.len, (size_t)64) : 0,
                           w.type == DOCUMENT_STRING ? (const char *)w.text.data : "");
}

bool mongo_generic_check(const struct mongo_call *call, struct error *err)
{
    struct document_value value, id;
    bool there;

    if (!object_check(call, "lsid", &value, &there, err))
        return false;
    if (there && (!document_find(value.document, SLICE("id"), &id) || id.type != DOCUMENT_BINARY ||
                  id.binary.bytes.len != SESSION_ID_LEN))
        return mongo_error_set(err, MONGO_INVALID_UUID, "lsid.id must be a UUID");
    if (!object_check(call, "readConcern", &value, &there, err) ||
        !object_check(call, "writeConcern", &value, &there, err) ||
        (there && !write_concern_check(&value, err)) || !mongo_session_check(call, err) ||
        !mongo_preference_check(call, err))
        return false;
    return true;
}

struct slice mongo_session_id(const struct mongo_call *call)
{
    struct document_value lsid, id;

    if (document_find(call->message.body, SLICE("lsid"), &lsid) && lsid.type == DOCUMENT_OBJECT &&
        document_find(lsid.document, SLICE("id"), &id) && id.type == DOCUMENT_BINARY)
        return id.binary.bytes;
    return SLICE_NONE;
}

/* --- Documents of arrays --------------------------------------------------------------------- */

static size_t sequence_count(struct slice rest)
{
    size_t count = 0;

    for (; rest.len; rest = slice_skip(rest, bytes_get_le32(rest.data)))
        count++;
    return count;
}

bool mongo_documents_open(const struct mongo_call *call, const char *name,
                          struct mongo_documents *ret_documents, struct error *err)
{
    struct document_value value;
    struct document_iter iter;

    *ret_documents = (struct mongo_documents){0};
    for (size_t i = 0; i < call->message.sequence_count; i++) {
        if (!slice_equal(call->message.sequences[i].name, slice_of_text(name)))
            continue;
        ret_documents->sequence = true;
        ret_documents->rest = call->message.sequences[i].documents;
        ret_documents->count = sequence_count(ret_documents->rest);
        return true;
    }
    if (!document_find(call->message.body, slice_of_text(name), &value) ||
        value.type != DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field '%s.%s' is missing but a required field",
                               call->command->name, name);
    document_iter_init(&iter, value.document);
    ret_documents->iter = iter;
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            return mongo_error_set(
                err, MONGO_TYPE_MISMATCH,
                "BSON field '%s.%s.%zu' is the wrong type '%s', expected type 'object'",
                call->command->name, name, ret_documents->count, mongo_type_name(iter.value.type));
        ret_documents->count++;
    }
    return true;
}

bool mongo_documents_next(struct mongo_documents *documents, struct slice *ret_document)
{
    if (!documents->sequence) {
        if (!document_iter_next(&documents->iter))
            return false;
        *ret_document = documents->iter.value.document;
        return true;
    }
    if (!documents->rest.len)
        return false;
    *ret_document = slice_first(documents->rest, bytes_get_le32(documents->rest.data));
    documents->rest = slice_skip(documents->rest, ret_document->len);
    return true;
}
