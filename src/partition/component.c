/* A component of an ordered routing key, format 1: the value as document/order.h writes it in the
 * SQL order. Of a value that takes more than COMPONENT_BYTES_MAX bytes, which only text and binary
 * do, the first of them and then a hash of all: 16 bytes, the top bit clear. So index entries, each
 * of which has the routing key of its item with it, stay short whatever the keys are; the order is
 * that of the values as far as the cut reaches, and keys that agree so far lie together, in the
 * order of their hashes.
 *
 * No component begins another: whole ones do not (document/order.h), a cut one has not ended where
 * a whole one would, and of two cut ones each ends after as many bytes. The bytes that follow a
 * component, another or a stored pk, begin with neither 00 nor FF; the hash not with FF. */
#include "base/bytes.h"
#include "document/order.h"
#include "partition/murmur.h"
#include "partition/strategy_private.h"

void component_append(const struct document_value *value, struct buf *buf)
{
    uint8_t bytes[COMPONENT_HASH_SIZE];
    struct murmur_128 hash;
    size_t begin = buf->len;

    document_key_append(DOCUMENT_ORDER_SQL, value, buf);
    if (buf->len - begin <= COMPONENT_BYTES_MAX)
        return;
    hash = murmur_128(slice_skip(buf_slice(buf), begin), 0);
    bytes_put_be64(bytes, hash.low & INT64_MAX);
    bytes_put_be64(bytes + 8, hash.high);
    buf->len = begin + COMPONENT_BYTES_MAX;
    buf_append(buf, bytes, sizeof bytes);
}

bool component_skip(struct slice *bytes, struct error *err)
{
    struct slice rest = *bytes;
    bool cut;

    if (!document_key_skip_cut(DOCUMENT_ORDER_SQL, COMPONENT_BYTES_MAX, &rest, &cut, err))
        return false;
    if (cut) {
        if (rest.len < COMPONENT_HASH_SIZE)
            return error_set(err, ERROR_STORE_CORRUPT, "routing key ends before its time");
        rest = slice_skip(rest, COMPONENT_HASH_SIZE);
    }
    *bytes = rest;
    return true;
}
