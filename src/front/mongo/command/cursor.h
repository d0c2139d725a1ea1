/* Cursor: a reading between two batches; what find and aggregate have in common.
 *
 * A cursor keeps the plan and the place it has come to; the collection is opened anew for each
 * batch, so that a split in between makes no difference. */
#pragma once

#include "front/mongo/command/reading.h"

struct mongo_watch;

struct mongo_cursor {
    struct front_cursor head;
    struct arena *arena; /* owns it, and all that the reading needs */
    struct slice ns, database, collection;
    struct slice base;            /* the collection that is read: that one, or what a view is on */
    struct mongo_reading reading; /* to be filled in, and prepared, by whoever makes the cursor */
    uint8_t continuation[QUERY_CONTINUATION_MAX];
    size_t continuation_len;
    uint32_t container; /* number: one made anew under the name is another; 0: there was none */
    uint8_t session[MONGO_SESSION_ID_LEN];
    bool in_session;
    uint64_t user;     /* whose it is, of the account: a hash; 0: of who has its key */
    uint64_t snapshot; /* the moment it reads (snapshot.h); 0: that of each batch */
    bool tailable;     /* it stays open behind the last document of a capped collection */
    bool awaits;       /* and a getMore that finds nothing there waits */
    struct mongo_watch
        *watch; /* of a change stream (watch.h), which reads no collection; or NULL */
};

/* One of the call's session over that collection, or what stands for one. */
struct mongo_cursor *mongo_cursor_new(const struct mongo_call *call,
                                      const struct mongo_namespace *name);
void mongo_cursor_free(struct mongo_cursor *cursor); /* that is not open; NULL is fine */
CLEANUP_FN(struct mongo_cursor *, mongo_cursor_free)

/* How many documents a batch may have. */
struct mongo_batch_terms {
    bool given;
    int64_t size;
    bool single; /* no cursor stays open */
};

/* Appends the first batch to the reply, and opens the cursor if there is more. Takes it over. */
NODISCARD bool mongo_cursor_first(struct mongo_call *call, struct mongo_cursor *cursor,
                                  const struct mongo_collection *collection,
                                  const struct mongo_batch_terms *terms, struct error *err);

/* Opens one for a client to come back for, by this id. Then it is the table's, and may be gone. */
NODISCARD bool mongo_cursor_keep(struct mongo_call *call, struct mongo_cursor *cursor,
                                 uint64_t *ret_id, struct error *err);

/* Appends a first batch of this document, or of none if value is NULL, with no cursor. */
void mongo_cursor_single(struct mongo_call *call, struct slice ns,
                         const struct document_value *value);

struct slice mongo_namespace_text(struct arena *arena, const struct mongo_namespace *name);
