/* GraphBinary 1.0: codes of types. A value that stands by itself is fully qualified: code, a flag
 * (0: a value follows, 1: null), the value; where the type is known it is bare, the value alone.
 * Numbers are big-endian. Null of no type is FE 01. */
#pragma once

#include "front/gremlin/format/format_private.h"

enum {
    GREMLIN_BINARY_VERSION = 0x81,
    GREMLIN_BINARY_NULL = 0xfe,
    GREMLIN_BINARY_INT = 0x01,
    GREMLIN_BINARY_LONG = 0x02,
    GREMLIN_BINARY_STRING = 0x03,
    GREMLIN_BINARY_DATE = 0x04,
    GREMLIN_BINARY_TIMESTAMP = 0x05,
    GREMLIN_BINARY_CLASS = 0x06,
    GREMLIN_BINARY_DOUBLE = 0x07,
    GREMLIN_BINARY_FLOAT = 0x08,
    GREMLIN_BINARY_LIST = 0x09,
    GREMLIN_BINARY_MAP = 0x0a,
    GREMLIN_BINARY_SET = 0x0b,
    GREMLIN_BINARY_UUID = 0x0c,
    GREMLIN_BINARY_EDGE = 0x0d,
    GREMLIN_BINARY_PATH = 0x0e,
    GREMLIN_BINARY_PROPERTY = 0x0f,
    GREMLIN_BINARY_GRAPH = 0x10,
    GREMLIN_BINARY_VERTEX = 0x11,
    GREMLIN_BINARY_VERTEX_PROPERTY = 0x12,
    GREMLIN_BINARY_BINDING = 0x14,
    GREMLIN_BINARY_BYTECODE = 0x15,
    GREMLIN_BINARY_LAMBDA = 0x1d,
    GREMLIN_BINARY_P = 0x1e,
    GREMLIN_BINARY_TRAVERSER = 0x21,
    GREMLIN_BINARY_BIG_DECIMAL = 0x22,
    GREMLIN_BINARY_BIG_INTEGER = 0x23,
    GREMLIN_BINARY_BYTE = 0x24,
    GREMLIN_BINARY_BYTE_BUFFER = 0x25,
    GREMLIN_BINARY_SHORT = 0x26,
    GREMLIN_BINARY_BOOLEAN = 0x27,
    GREMLIN_BINARY_TEXT_P = 0x28,
    GREMLIN_BINARY_STRATEGY = 0x29,
    GREMLIN_BINARY_BULK_SET = 0x2a,
    GREMLIN_BINARY_TREE = 0x2b,
    GREMLIN_BINARY_CHAR = 0x80,
    GREMLIN_BINARY_DURATION = 0x81,
    GREMLIN_BINARY_INET_ADDRESS = 0x82,
    GREMLIN_BINARY_INSTANT = 0x83,
    GREMLIN_BINARY_LOCAL_DATE = 0x84,
    GREMLIN_BINARY_LOCAL_DATE_TIME = 0x85,
    GREMLIN_BINARY_LOCAL_TIME = 0x86,
    GREMLIN_BINARY_MONTH_DAY = 0x87,
    GREMLIN_BINARY_OFFSET_DATE_TIME = 0x88,
    GREMLIN_BINARY_OFFSET_TIME = 0x89,
    GREMLIN_BINARY_PERIOD = 0x8a,
    GREMLIN_BINARY_YEAR = 0x8b,
    GREMLIN_BINARY_YEAR_MONTH = 0x8c,
    GREMLIN_BINARY_ZONED_DATE_TIME = 0x8d,
    GREMLIN_BINARY_ZONE_OFFSET = 0x8e,
};

struct gremlin_binary {
    const uint8_t *at, *end;
    struct gremlin_heap *heap;
    int depth;
    struct error *err;
};

/* count bytes; false: there are not so many. */
NODISCARD bool gremlin_binary_take(struct gremlin_binary *reader, size_t count,
                                   const uint8_t **ret_bytes);
bool gremlin_binary_refuse(struct gremlin_binary *reader, const char *what);

/* Dates of java.time other than OffsetDateTime: both ways between their bytes and ISO text. */
bool gremlin_binary_is_temporal(uint8_t code);
NODISCARD bool gremlin_binary_read_temporal(struct gremlin_binary *reader, uint8_t code,
                                            struct gremlin_value *ret_value);
/* Code, flag and bytes. */
NODISCARD bool gremlin_binary_write_temporal(struct gremlin_writer *writer,
                                             struct gremlin_value value);
