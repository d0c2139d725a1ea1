/* BSON: writing it, walking it, and checking bytes that came from outside.
 *
 * The writer appends raw bytes to a struct buf. A document is opened and closed around its
 * elements, and so is a nested one:
 *
 *     size_t item = document_begin(buf);
 *     document_append_string(buf, SLICE("id"), SLICE("a"));
 *     size_t tags = document_append_array_begin(buf, SLICE("tags"));
 *     document_append_string(buf, document_index_key(0, text), SLICE("new"));
 *     document_end(buf, tags);
 *     document_end(buf, item);
 *
 * No append can fail; a buffer that met its maximum is seen once, at the end, with
 * buf_overflowed. Keys hold no NUL: that is the caller's to see to.
 *
 * The iterator allocates nothing and never leaves the slice, whatever the bytes are: where they
 * make no sense it ends early, with `broken` set. Bytes from outside are validated first, once. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "document/value.h"

/* --- Writing --------------------------------------------------------------------------------- */

/* Opens a document at the end of buf; the result goes to document_end. */
size_t document_begin(struct buf *buf);
void document_end(struct buf *buf, size_t begin);

size_t document_append_object_begin(struct buf *buf, struct slice key);
size_t document_append_array_begin(struct buf *buf, struct slice key);

void document_append(struct buf *buf, struct slice key, const struct document_value *value);
void document_append_string(struct buf *buf, struct slice key, struct slice text);
void document_append_int32(struct buf *buf, struct slice key, int32_t number);
void document_append_int64(struct buf *buf, struct slice key, int64_t number);
void document_append_double(struct buf *buf, struct slice key, double number);
void document_append_bool(struct buf *buf, struct slice key, bool boolean);
void document_append_null(struct buf *buf, struct slice key);
void document_append_date(struct buf *buf, struct slice key, int64_t ms);

/* The key of an array element: "0", "1", ... in text. */
enum { DOCUMENT_INDEX_SIZE = 11 };
struct slice document_index_key(uint32_t index, char text[DOCUMENT_INDEX_SIZE]);

/* --- Walking --------------------------------------------------------------------------------- */

struct document_iter {
    const uint8_t *at, *end;
    const uint8_t *element; /* where the present element begins: its type byte */
    struct slice key;       /* of the present element */
    struct document_value value;
    bool broken; /* the bytes stopped making sense */
};

/* Stands before the first element of a whole document. */
void document_iter_init(struct document_iter *iter, struct slice document);

/* Moves to the next element. False at the end. */
bool document_iter_next(struct document_iter *iter);

/* Reads the elements that come next as long as they are doubles, max at most, and stands behind
 * them; what is no double, or broken, is left to document_iter_next. Returns how many. The present
 * element is none of them. */
size_t document_iter_doubles(struct document_iter *iter, double *to, size_t max);

/* The property of that name, the first if there are several. False when there is none. The other
 * elements are stepped over, not decoded. */
bool document_find(struct slice document, struct slice key, struct document_value *ret_value);

/* The array element at index. */
bool document_find_index(struct slice array, uint64_t index, struct document_value *ret_value);

/* How many elements; 0 for a broken document. */
size_t document_count(struct slice document);

/* --- Checking -------------------------------------------------------------------------------- */

enum {
    DOCUMENT_DEPTH_DEFAULT = 128, /* of JSON documents, as Cosmos DB has it */
    DOCUMENT_DEPTH_MONGO = 180,   /* what MongoDB takes */
    DOCUMENT_DEPTH_MAX = 256,     /* no limit may be set above this: readers recurse */
    DOCUMENT_BYTES_DEFAULT = 16 * 1024 * 1024,
};

struct document_limits {
    uint32_t depth_max;     /* levels of objects and arrays, the outermost counts; 0: 128 */
    size_t bytes_max;       /* of BSON; 0: 16 MiB */
    bool refuse_duplicates; /* validator only: two properties of one name are refused */
};

/* Checks bytes from outside: exactly one document, every length, type and terminator right, keys
 * and strings in UTF-8, depth and size within limits (NULL: the defaults). Afterwards everything in
 * this folder may be called on them.
 *
 * Lenient where MongoDB is: the keys of array elements may be anything (only their position
 * counts), a property may occur twice, strings may hold NULs, binary subtypes are not looked into.
 * A surrogate in its three-byte form is taken, for JSON can name one alone; a pair in that form is
 * not. ERROR_BAD_BSON names the byte, ERROR_TOO_DEEP, ERROR_TOO_LARGE, ERROR_DUPLICATE_PROPERTY. */
NODISCARD bool document_validate(struct slice bytes, const struct document_limits *limits,
                                 struct error *err);
