/* Records: the items of a file, one by one, from JSON or CSV.
 *
 * JSON is one object after the other, with any white space between them (so also one in each line),
 * or an array of objects. CSV is as csv.h says, the header naming the properties. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

enum shell_file_kind { SHELL_FILE_BY_NAME, SHELL_FILE_JSON, SHELL_FILE_CSV };

/* SHELL_FILE_BY_NAME becomes CSV for names that end in .csv, else JSON. */
enum shell_file_kind shell_file_kind_of(enum shell_file_kind given, const char *path);

struct shell_records; /* opaque, owned */

/* path "-": standard input. columns_text: names of CSV columns that are text whatever they look
 * like, separated by commas; NULL: none besides id. ERROR_SYSTEM, ERROR_BAD_REQUEST. */
NODISCARD bool shell_records_open(const char *path, enum shell_file_kind kind,
                                  const char *columns_text, struct shell_records **ret_records,
                                  struct error *err);
void shell_records_close(struct shell_records *records); /* NULL is fine */
CLEANUP_FN(struct shell_records *, shell_records_close)

/* Makes *item the next object as BSON. Errors say at which line. */
NODISCARD bool shell_records_next(struct shell_records *records, struct buf *item, bool *ret_end,
                                  struct error *err);

/* Goes back to the first. False: it cannot be read twice, as a pipe. */
bool shell_records_rewind(struct shell_records *records);

uint64_t shell_records_line(const struct shell_records *records);  /* where the last one began */
uint64_t shell_records_place(const struct shell_records *records); /* bytes read */
uint64_t shell_records_size(const struct shell_records *records);  /* of the file; 0: unknown */
