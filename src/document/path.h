/* Path: where in a document, as partition keys, unique keys and indexing policies write it.
 *
 *     /tenant/"display name"/0     a property, one with other characters in quotes, an element;
 *                                  /'display name' is the same
 *     /tags/[]/?                   every element of an array; the scalar there
 *     /address/ and an asterisk    everything below
 *     /events/[]/{name, at/day}/?  several values of each element together
 *
 * A parsed path never changes and lives in the arena it was parsed into. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/value.h"

enum document_segment_kind {
    DOCUMENT_SEGMENT_PROPERTY,
    DOCUMENT_SEGMENT_ELEMENTS, /* [] */
    DOCUMENT_SEGMENT_TUPLE,    /* {a, b}: the last segment */
};

enum document_path_end {
    DOCUMENT_PATH_END_NONE,   /* the value itself */
    DOCUMENT_PATH_END_SCALAR, /* ?: the value if it is no object or array */
    DOCUMENT_PATH_END_ALL,    /* *: whatever is below */
};

struct document_path;

struct document_segment {
    enum document_segment_kind kind;
    struct slice name;                   /* of a property, without quotes and escapes */
    const struct document_path *members; /* of a tuple */
    size_t member_count;
};

struct document_path {
    const struct document_segment *segments;
    size_t count; /* 0: the whole document */
    enum document_path_end end;
};

enum { DOCUMENT_PATH_BYTES_MAX = 4096, DOCUMENT_PATH_SEGMENTS_MAX = 128 };

/* What a path may hold depends on what it is for. */
enum document_path_use {
    DOCUMENT_PATH_KEY,   /* partition, unique and composite keys: at least one property, no more */
    DOCUMENT_PATH_INDEX, /* indexing policies: all of the above */
};

/* Parses text into the arena. An unquoted name is made of letters, digits, _ and non-ASCII
 * characters, of a key also of dashes; in quotes, of either kind, a backslash stands before the
 * quote and itself. ERROR_BAD_REQUEST names the path and the
 * position. */
NODISCARD bool document_path_parse(struct slice text, enum document_path_use use,
                                   struct arena *arena, struct document_path *ret_path,
                                   struct error *err);

/* The value at a path of properties, however it ends. A name of digits also steps into an array.
 * The rest of the document is stepped over, not decoded. False when nothing is there. */
bool document_path_find(const struct document_path *path, struct slice document,
                        struct document_value *ret_value);

/* Appends the path in its canonical form: quotes only where a name needs them. */
void document_path_append(const struct document_path *path, struct buf *buf);
