#include "query/value/value.h"

#include "document/bson.h"

enum { LEVEL_BYTES_MIN = 7 }; /* type, end of an empty key, length, final NUL */

struct document_value query_value_copy(const struct document_value *value, struct arena *arena)
{
    struct document_value copy = *value;

    switch (value->type) {
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
    case DOCUMENT_CODE:
        copy.text = arena_copy(arena, value->text);
        break;
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        copy.document = arena_copy(arena, value->document);
        break;
    case DOCUMENT_BINARY:
        copy.binary.bytes = arena_copy(arena, value->binary.bytes);
        break;
    case DOCUMENT_OBJECT_ID:
        copy.id = arena_copy(arena, slice_of(value->id, DOCUMENT_OBJECT_ID_SIZE)).data;
        break;
    case DOCUMENT_REGEX:
        copy.regex.pattern = arena_copy(arena, value->regex.pattern);
        copy.regex.options = arena_copy(arena, value->regex.options);
        break;
    case DOCUMENT_DB_POINTER:
        copy.pointer.collection = arena_copy(arena, value->pointer.collection);
        copy.pointer.id =
            arena_copy(arena, slice_of(value->pointer.id, DOCUMENT_OBJECT_ID_SIZE)).data;
        break;
    case DOCUMENT_CODE_WITH_SCOPE:
        copy.scoped.code = arena_copy(arena, value->scoped.code);
        copy.scoped.scope = arena_copy(arena, value->scoped.scope);
        break;
    default: /* all of it is in the struct */
        break;
    }
    return copy;
}

/* Each level takes some bytes, so what is small need not be walked. */
bool query_value_nests_within(const struct document_value *value, unsigned levels)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY)
        return true;
    if (value->document.len < LEVEL_BYTES_MIN * (size_t)levels)
        return true;
    if (levels == 0)
        return false;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        if (!query_value_nests_within(&iter.value, levels - 1))
            return false;
    }
    return true;
}

size_t query_value_bytes(const struct document_value *value)
{
    switch (value->type) {
    case DOCUMENT_STRING:
    case DOCUMENT_SYMBOL:
    case DOCUMENT_CODE:
        return value->text.len;
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        return value->document.len;
    case DOCUMENT_BINARY:
        return value->binary.bytes.len;
    case DOCUMENT_OBJECT_ID:
        return DOCUMENT_OBJECT_ID_SIZE;
    case DOCUMENT_REGEX:
        return value->regex.pattern.len + value->regex.options.len;
    case DOCUMENT_DB_POINTER:
        return value->pointer.collection.len + DOCUMENT_OBJECT_ID_SIZE;
    case DOCUMENT_CODE_WITH_SCOPE:
        return value->scoped.code.len + value->scoped.scope.len;
    default:
        return 0;
    }
}
