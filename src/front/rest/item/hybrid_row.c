/* Only the two schemas of batches are known, so fields are read straight into their places. What a
 * row may hold beyond them (names that are not of the schema, nested rows) is refused: no client
 * sends it, and skipping it would need the whole type system. */
#include "front/rest/item/hybrid_row.h"

#include "base/bytes.h"

enum {
    SCHEMA_SEGMENT = 2147473648,
    SCHEMA_RECORD = 2147473649,
    SCHEMA_OPERATION = 2145473648,
    SCHEMA_RESULT = 2145473649,

    HEADER_LEN = 5, /* version and schema */
    SEGMENT_LEN = HEADER_LEN + 1 + 4,
    RECORD_LEN = HEADER_LEN + 4 + 4,
};

enum type_code {
    TYPE_NULL = 1,
    TYPE_FALSE = 2,
    TYPE_TRUE = 3,
    TYPE_INT32 = 7,
    TYPE_UINT32 = 11,
    TYPE_FLOAT64 = 16,
    TYPE_UTF8 = 20,
};

/* Places of names in the schemas; the empty name is 0. */
enum operation_path {
    PATH_INDEXING_DIRECTIVE = 8, /* behind two fixed and five variable fields */
    PATH_IF_MATCH,
    PATH_IF_NONE_MATCH,
    PATH_TTL,
    PATH_MINIMAL,
    OPERATION_PATHS,
};

enum result_path { PATH_RETRY_AFTER = 5, PATH_CHARGE = 6 };

uint32_t hybrid_row_crc32(struct slice bytes)
{
    uint32_t crc = 0xFFFFFFFF;

    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= bytes.data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (0xEDB88320 & (0 - (crc & 1)));
    }
    return ~crc;
}

/* --- Reading ---------------------------------------------------------------------------------- */

static bool broken(struct error *err, const char *what)
{
    return error_set(err, ERROR_BAD_REQUEST, "the binary batch is malformed: %s", what);
}

static bool take(struct slice *rest, size_t len, struct slice *ret_bytes)
{
    if (rest->len < len)
        return false;
    *ret_bytes = slice_first(*rest, len);
    *rest = slice_skip(*rest, len);
    return true;
}

static bool take_int32(struct slice *rest, int32_t *ret_number)
{
    struct slice bytes;

    if (!take(rest, 4, &bytes))
        return false;
    *ret_number = (int32_t)bytes_get_le32(bytes.data);
    return true;
}

static bool take_varuint(struct slice *rest, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (unsigned shift = 0; shift < 35; shift += 7) {
        struct slice byte;

        if (!take(rest, 1, &byte))
            return false;
        number |= (uint64_t)(byte.data[0] & 0x7F) << shift;
        if (!(byte.data[0] & 0x80)) {
            *ret_number = number;
            return true;
        }
    }
    return false;
}

static bool take_bytes(struct slice *rest, struct slice *ret_bytes)
{
    uint64_t len;

    return take_varuint(rest, &len) && len <= rest->len && take(rest, (size_t)len, ret_bytes);
}

static bool take_header(struct slice *rest, int32_t schema)
{
    struct slice version;
    int32_t found;

    return take(rest, 1, &version) && version.data[0] == HYBRID_ROW_VERSION &&
           take_int32(rest, &found) && found == schema;
}

bool hybrid_reader_init(struct hybrid_reader *reader, struct slice body, struct error *err)
{
    struct slice rest = body, presence;
    int32_t length;

    if (!take_header(&rest, SCHEMA_SEGMENT) || !take(&rest, 1, &presence) ||
        !take_int32(&rest, &length))
        return broken(err, "it does not begin with a segment");
    if (!(presence.data[0] & 1) || length < SEGMENT_LEN || (size_t)length > body.len)
        return broken(err, "the length of its segment is wrong");
    reader->rest = slice_skip(body, (size_t)length); /* over a comment or schema text */
    return true;
}

static bool sparse_text(struct slice *rest, uint8_t type, struct slice *ret_text)
{
    return type == TYPE_UTF8 && take_bytes(rest, ret_text);
}

static bool sparse_read(struct slice *rest, struct hybrid_operation *operation)
{
    struct slice type;
    uint64_t path;

    if (!take(rest, 1, &type) || !take_varuint(rest, &path))
        return false;
    switch (path) {
    case PATH_INDEXING_DIRECTIVE:
        return sparse_text(rest, type.data[0], &operation->indexing_directive);
    case PATH_IF_MATCH:
        return sparse_text(rest, type.data[0], &operation->if_match);
    case PATH_IF_NONE_MATCH:
        return sparse_text(rest, type.data[0], &operation->if_none_match);
    case PATH_TTL:
        return type.data[0] == TYPE_INT32 && take_int32(rest, &operation->ttl_seconds);
    case PATH_MINIMAL:
        operation->minimal = type.data[0] == TYPE_TRUE;
        return type.data[0] == TYPE_TRUE || type.data[0] == TYPE_FALSE;
    default:
        return false;
    }
}

static bool operation_read(struct slice row, struct hybrid_operation *ret_operation,
                           struct error *err)
{
    struct hybrid_operation operation = {0};
    struct slice *const variable[] = {&operation.partition_key, &operation.effective_partition_key,
                                      &operation.id, &operation.binary_id,
                                      &operation.resource_body};
    struct slice presence;

    if (!take_header(&row, SCHEMA_OPERATION))
        return broken(err, "a record is no operation");
    if (!take(&row, 1, &presence) || !take_int32(&row, &operation.operation_type) ||
        !take_int32(&row, &operation.resource_type))
        return broken(err, "an operation is cut short");
    if ((presence.data[0] & 3) != 3)
        return broken(err, "an operation has no type");
    for (size_t i = 0; i < ARRAY_LEN(variable); i++)
        if ((presence.data[0] >> (2 + i) & 1) && !take_bytes(&row, variable[i]))
            return broken(err, "a field of an operation is cut short");
    while (row.len)
        if (!sparse_read(&row, &operation))
            return broken(err, "an operation has a field it cannot have");
    *ret_operation = operation;
    return true;
}

bool hybrid_reader_next(struct hybrid_reader *reader, struct hybrid_operation *ret_operation,
                        bool *ret_end, struct error *err)
{
    struct slice rest = reader->rest, row;
    int32_t length, crc;

    *ret_end = rest.len == 0;
    if (*ret_end)
        return true;
    if (!take_header(&rest, SCHEMA_RECORD) || !take_int32(&rest, &length) ||
        !take_int32(&rest, &crc))
        return broken(err, "a record does not begin as one");
    if (length < 0 || !take(&rest, (size_t)length, &row))
        return broken(err, "a record is cut short");
    if (hybrid_row_crc32(row) != (uint32_t)crc)
        return broken(err, "the checksum of a record is wrong");
    if (!operation_read(row, ret_operation, err))
        return false;
    reader->rest = rest;
    return true;
}

/* --- Writing ---------------------------------------------------------------------------------- */

static void append_header(struct buf *buf, uint32_t schema)
{
    buf_append_byte(buf, HYBRID_ROW_VERSION);
    buf_append_le32(buf, schema);
}

static void append_varuint(struct buf *buf, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        buf_append_byte(buf, (uint8_t)(number | 0x80));
    buf_append_byte(buf, (uint8_t)number);
}

static void append_bytes(struct buf *buf, struct slice bytes)
{
    if (!bytes.data)
        return;
    append_varuint(buf, bytes.len);
    buf_append_slice(buf, bytes);
}

void hybrid_row_append_segment(struct buf *buf)
{
    append_header(buf, SCHEMA_SEGMENT);
    buf_append_byte(buf, 1);
    buf_append_le32(buf, SEGMENT_LEN);
}

static void append_row(struct buf *buf, const struct hybrid_result *result)
{
    uint64_t charge;

    memcpy(&charge, &result->charge, sizeof charge);
    append_header(buf, SCHEMA_RESULT);
    buf_append_byte(
        buf, (uint8_t)(3 | (result->etag.data ? 4 : 0) | (result->resource_body.data ? 8 : 0)));
    buf_append_le32(buf, (uint32_t)result->status);
    buf_append_le32(buf, (uint32_t)result->substatus);
    append_bytes(buf, result->etag);
    append_bytes(buf, result->resource_body);
    if (result->retry_after_ms) {
        buf_append_byte(buf, TYPE_UINT32);
        append_varuint(buf, PATH_RETRY_AFTER);
        buf_append_le32(buf, result->retry_after_ms);
    }
    buf_append_byte(buf, TYPE_FLOAT64);
    append_varuint(buf, PATH_CHARGE);
    buf_append_le64(buf, charge);
}

void hybrid_row_append_result(struct buf *buf, const struct hybrid_result *result)
{
    size_t record = buf->len, row = record + RECORD_LEN;

    append_header(buf, SCHEMA_RECORD);
    buf_append_le64(buf, 0); /* length and checksum: known behind the row */
    append_row(buf, result);
    if (buf_overflowed(buf))
        return;
    bytes_put_le32(buf->data + record + HEADER_LEN, (uint32_t)(buf->len - row));
    bytes_put_le32(buf->data + record + HEADER_LEN + 4,
                   hybrid_row_crc32(slice_of(buf->data + row, buf->len - row)));
}
