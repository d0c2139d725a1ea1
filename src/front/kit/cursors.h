/* Cursors: results that a client comes back for by a number, for protocols whose clients expect the
 * server to keep them (MongoDB's getMore, Gremlin's sessions).
 *
 * A cursor belongs to one account, is used by one call at a time, and has a deadline: one that is
 * not come back for until then is closed, and so are all of an account that has ended. Their number
 * is bounded, of all and of each account, and what they keep counts as memory of the account. (REST
 * and Table need none: their continuations are values, and what queries.h keeps between two pages
 * may be forgotten.)
 *
 * A front embeds struct front_cursor in what it keeps. Any thread. */
#pragma once

#include "front/owner.h"

#include <stdatomic.h>

struct front_cursors; /* opaque, owned by the server */

enum { FRONT_CURSOR_TAG_LEN = 16 };

/* Ids are above what a double holds exactly. Clients in JavaScript make numbers of those that it
 * holds, and send them back as doubles, which getMore does not take. */
#define FRONT_CURSOR_ID_MIN (UINT64_C(1) << 62)

struct front_cursor {
    /* Ends it and frees what is around it. Called once, without locks. */
    void (*close)(struct front_cursor *cursor);
    /* Set where it was killed, or its account ended, while in use: whoever uses it stops early. */
    atomic_bool cancelled;
    /* What it belongs to besides its account, such as a session; zeros: nothing. Set before it is
     * opened. */
    uint8_t tag[FRONT_CURSOR_TAG_LEN];

    /* Of the table. */
    uint64_t id; /* FRONT_CURSOR_ID_MIN to 2^63 - 1, random: nobody guesses another's */
    uint32_t account;
    struct net_owner *owner; /* that the bytes count for; may be NULL */
    size_t bytes;
    int64_t deadline_ms; /* of clock_monotonic_ms; while it is in use nothing counts */
    bool in_use;
    struct front_cursor *next;          /* of those that share a bucket */
    struct front_cursor *newer, *older; /* of the account's */
    struct front_cursors_of_account *of_account;
};

struct front_cursors_options {
    size_t count_max;         /* open at a time */
    size_t account_count_max; /* of one account */
};

struct front_cursors *front_cursors_new(const struct front_cursors_options *options);

/* Closes all; none is in use. NULL is fine. */
void front_cursors_free(struct front_cursors *cursors);
CLEANUP_FN(struct front_cursors *, front_cursors_free)

/* On whose account, how long and how large. */
struct front_cursor_terms {
    uint32_t account;
    struct net_owner *owner; /* NULL: nobody counts */
    int64_t deadline_ms;
    size_t bytes;
};

/* Takes the cursor over, which may be gone at once, and says its id. ERROR_BUSY: there are as many
 * as there may be, even without those whose time is over; ERROR_MEMORY_FULL: the account, or the
 * server, holds as much as it may. Then the cursor is still the caller's. */
NODISCARD bool front_cursors_open(struct front_cursors *cursors, struct front_cursor *cursor,
                                  const struct front_cursor_terms *terms, int64_t now_ms,
                                  uint64_t *ret_id, struct error *err);

/* The cursor of that id, for the caller alone until it is put back or ended. ERROR_CURSOR_MISSING:
 * there is none, or it is another account's, or its time is over. ERROR_CURSOR_IN_USE. */
NODISCARD bool front_cursors_take(struct front_cursors *cursors, uint32_t account, uint64_t id,
                                  int64_t now_ms, struct front_cursor **ret_cursor,
                                  struct error *err);

/* Gives one back that was taken: it may be gone after that. */
void front_cursors_put_back(struct front_cursors *cursors, struct front_cursor *cursor,
                            int64_t deadline_ms, size_t bytes);

/* Closes one that was taken. */
void front_cursors_end(struct front_cursors *cursors, struct front_cursor *cursor);

/* Closes it, or has it closed when it is put back. False: the account has no such cursor. */
bool front_cursors_kill(struct front_cursors *cursors, uint32_t account, uint64_t id);

/* The same of all cursors of an account that have this tag; NULL: any tag. Says how many. */
size_t front_cursors_kill_tagged(struct front_cursors *cursors, uint32_t account,
                                 const uint8_t *tag);

/* The same of all cursors of an account, which has ended; and of those whose time is over. Says how
 * many. */
size_t front_cursors_account_end(struct front_cursors *cursors, uint32_t account);
size_t front_cursors_expire(struct front_cursors *cursors, int64_t now_ms);

/* Is there a cursor of that id, in use or not? One that was killed while in use is still there. */
bool front_cursors_is_open(struct front_cursors *cursors, uint64_t id);

/* Open now. */
size_t front_cursors_count(struct front_cursors *cursors);
