/* CSV as RFC 4180 has it, with a header row, and what its fields mean.
 *
 * Reading is strict: a quote only around a whole field, the same number of fields in each row.
 * Lines may end in CRLF or LF, a byte order mark and empty lines are stepped over. Fields have no
 * types, so these rules give them one (docs/shell.md tells people):
 *
 *     bare, empty                       the property is not there
 *     bare true, false, null            that
 *     bare, a JSON number               that number; a whole one too large for 64 bits is text
 *     quoted, JSON of an object, array  that value
 *       or text
 *     anything else                     text, so also 007, +1, NaN, and every quoted number
 *
 * Writing is the reverse, so that what was written reads as what it was. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "document/bson.h"

#include <stdio.h>

enum { SHELL_CSV_COLUMNS_MAX = 1000, SHELL_CSV_ROW_BYTES_MAX = 4 * 1024 * 1024 };

struct shell_csv_field {
    size_t begin, len; /* in bytes of the row */
    bool quoted;
};

struct shell_csv_row {
    struct buf bytes;
    struct shell_csv_field *fields; /* owned */
    size_t count;
};

void shell_csv_row_init(struct shell_csv_row *row);
void shell_csv_row_done(struct shell_csv_row *row);

struct slice shell_csv_text(const struct shell_csv_row *row, size_t index);

/* Reads a row; *ret_end: there is none. *line is moved on. ERROR_BAD_REQUEST, ERROR_TOO_LARGE,
 * ERROR_SYSTEM. */
NODISCARD bool shell_csv_read(FILE *file, struct shell_csv_row *row, uint64_t *line, bool *ret_end,
                              struct error *err);

/* Appends the property a field stands for, or nothing. text: it is one, whatever it looks like. */
void shell_csv_property(struct buf *document, struct slice key, struct slice field, bool quoted,
                        bool text);

/* Appends a field without what separates it. Undefined is an empty one. */
void shell_csv_write(const struct document_value *value, struct buf *out);
void shell_csv_write_text(struct slice text, struct buf *out); /* of a header */
