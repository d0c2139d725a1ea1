/* The sizes of BSON values and the step from one element to the next, for this folder. The step is
 * inline because printing and comparing spend much of their time in it. */
#pragma once

#include "base/bytes.h"
#include "document/bson.h"
#include "document/scan.h"

/* Says how many bytes the value at `at` takes, given that `room` bytes follow. False if the type is
 * unknown, a length leads outside, or a terminator is missing. Looks at the outermost level only.
 */
bool bson_value_size(uint8_t type, const uint8_t *at, size_t room, size_t *ret_size);

/* Decodes a value whose size was just given by bson_value_size. */
void bson_value_decode(uint8_t type, const uint8_t *at, size_t size,
                       struct document_value *ret_value);

/* Marks the document broken and ends the walk. */
static inline bool bson_broken(struct document_iter *iter)
{
    iter->broken = true;
    iter->at = iter->end;
    return false;
}

/* The NUL that ends a key; NULL if there is none before end. Most keys are short, so eight bytes at
 * a time beat the call of memchr. */
static inline const uint8_t *bson_key_end(const uint8_t *at, const uint8_t *end)
{
    for (; end - at >= 8; at += 8) {
        uint64_t zeros = scan_zeros(scan_load(at));

        if (zeros)
            return at + __builtin_ctzll(zeros) / 8;
    }
    for (; at < end; at++) {
        if (*at == 0)
            return at;
    }
    return NULL;
}

/* document_iter_next; the types of JSON are decoded on the spot. */
static inline bool bson_iter_step(struct document_iter *iter)
{
    const uint8_t *key, *at;
    struct document_value *value = &iter->value;
    size_t room, size;

    if (iter->at >= iter->end)
        return false;
    key = iter->at + 1;
    at = bson_key_end(key, iter->end);
    if (UNLIKELY(!at))
        return bson_broken(iter);
    iter->element = iter->at;
    iter->key = slice_of(key, (size_t)(at - key));
    at++;
    room = (size_t)(iter->end - at);
    switch (iter->element[0]) {
    case DOCUMENT_STRING:
        if (UNLIKELY(room < 5))
            return bson_broken(iter);
        size = bytes_get_le32(at);
        if (UNLIKELY(size < 1 || size > room - 4 || at[4 + size - 1] != 0))
            return bson_broken(iter);
        value->text = slice_of(at + 4, size - 1);
        size += 4;
        break;
    case DOCUMENT_INT32:
        if (UNLIKELY(room < 4))
            return bson_broken(iter);
        value->int32 = (int32_t)bytes_get_le32(at);
        size = 4;
        break;
    case DOCUMENT_DOUBLE:
    case DOCUMENT_INT64:
        if (UNLIKELY(room < 8))
            return bson_broken(iter);
        value->timestamp = bytes_get_le64(at);
        size = 8;
        break;
    case DOCUMENT_NULL:
        size = 0;
        break;
    default:
        if (UNLIKELY(!bson_value_size(iter->element[0], at, room, &size)))
            return bson_broken(iter);
        bson_value_decode(iter->element[0], at, size, value);
    }
    value->type = iter->element[0];
    iter->at = at + size;
    return true;
}
