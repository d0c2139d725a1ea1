/* Virtual collections: rows that the server makes when they are asked for, and filters, sorts,
 * projections and pipelines take as they take stored documents. */
#pragma once

#include "front/mongo/command/call.h"

enum { MONGO_ROWS_BYTES_MAX = 64 * 1024 * 1024 };

/* The documents of one, in the arena of the call. */
struct mongo_rows {
    struct mongo_call *call;
    struct slice *list;
    size_t count, capacity, bytes;
};

/* A row that is being written: fields are appended to the buffer in between. */
size_t mongo_row_begin(struct buf *row);
/* Takes the row and clears the buffer. MONGO_EXCEEDED_MEMORY_LIMIT. */
NODISCARD bool mongo_row_end(struct mongo_rows *rows, size_t begin, struct buf *row,
                             struct error *err);

struct mongo_virtual {
    const char *database, *collection;
    bool (*rows)(struct mongo_rows *rows, struct error *err); /* may block */
};

/* The one of that name; NULL: it is none. */
const struct mongo_virtual *mongo_virtual_find(struct slice database, struct slice collection);
/* All of them, for lists. */
const struct mongo_virtual *mongo_virtuals(size_t *ret_count);

/* Its rows of now. */
NODISCARD bool mongo_virtual_rows(struct mongo_call *call, const struct mongo_virtual *of,
                                  struct mongo_rows *ret_rows, struct error *err);

#define MONGO_VIRTUAL(database, collection, function)                                              \
    bool function(struct mongo_rows *rows, struct error *err);
#include "front/mongo/command/virtual.def"
#undef MONGO_VIRTUAL
