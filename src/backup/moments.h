/* Moments: those a server holds for commands that back it up or verify it, request by request.
 *
 * Each ends when its command says so, or when nobody has asked for it for BACKUP_MOMENT_IDLE_MS: a
 * command that was killed holds nothing for long. */
#pragma once

#include "backup/moment.h"
#include "backup/verify.h"
#include "base/random.h"

enum { BACKUP_MOMENTS_MAX = 4, BACKUP_MOMENT_IDLE_MS = 2 * 60 * 1000 };

struct backup_moments; /* opaque, owned */

/* The catalogue is borrowed and outlives them. idle_ms 0: BACKUP_MOMENT_IDLE_MS. */
struct backup_moments *backup_moments_new(struct catalogue *catalogue, int64_t idle_ms);
void backup_moments_free(struct backup_moments *moments); /* NULL is fine; nobody uses any */
CLEANUP_FN(struct backup_moments *, backup_moments_free)

/* One that a request uses, alone. */
struct backup_held {
    char id[RANDOM_UUID_SIZE];
    struct backup_moment *moment;
    struct verify *verify; /* of the partition being verified; NULL: none is. Owned */

    /* of the table */
    struct backup_moments *moments;
    struct backup_held *next;
    bool busy;
    int64_t idle_since_ms;
};

/* Takes a moment, or finds the one of that id. ERROR_LIMIT_REACHED: there are too many;
 * ERROR_NOT_FOUND: it has ended; ERROR_BUSY: another request uses it. */
NODISCARD bool backup_moments_begin(struct backup_moments *moments, struct backup_held **ret_held,
                                    struct error *err);
NODISCARD bool backup_moments_use(struct backup_moments *moments, struct slice id,
                                  struct backup_held **ret_held, struct error *err);
void backup_held_leave(struct backup_held *held); /* NULL is fine */
CLEANUP_FN(struct backup_held *, backup_held_leave)

/* ERROR_NOT_FOUND, ERROR_BUSY. */
NODISCARD bool backup_moments_end(struct backup_moments *moments, struct slice id,
                                  struct error *err);

size_t backup_moments_count(struct backup_moments *moments);
