/* Pauses: containers whose writes, or all of whose requests, are refused for a time, with a message
 * for clients.
 *
 * A pause has a name, and is of one container, of all of a database, of an account, or of all. It
 * begins at once or at a planned time, and ends at another or when it is taken away. It is durable:
 * a restart does not end it. Requests that began before it are finished; whoever begins one
 * afterwards is refused with 503, the message and the time to wait. Administration is never
 * paused. */
#pragma once

#include "base/clock.h"
#include "catalogue/catalogue.h"

enum {
    PAUSE_NAME_SIZE = 65, /* small letters, digits and hyphens */
    PAUSE_MESSAGE_SIZE = 257,
    PAUSE_SCOPE_SIZE = 768,
    PAUSES_MAX = 100,
};

struct pause {
    char name[PAUSE_NAME_SIZE];
    bool writes;                           /* only what changes something is refused */
    uint32_t account, database, container; /* numbers; 0: all */
    char scope[PAUSE_SCOPE_SIZE];     /* the same in words, as it was set: "default/shop/orders" */
    char message[PAUSE_MESSAGE_SIZE]; /* UTF-8 */
    int64_t from_ms, until_ms;        /* wall clock; 0: at once; until it is taken away */
};

struct pauses; /* opaque, owned; from any thread */

NODISCARD bool pauses_new(struct catalogue *catalogue, const struct clock *clock,
                          struct pauses **ret_pauses, struct error *err);
void pauses_free(struct pauses *pauses); /* NULL is fine */
CLEANUP_FN(struct pauses *, pauses_free)

/* Durable, and in force when it returns; one of the same name is replaced. Blocks.
 * ERROR_BAD_REQUEST, ERROR_LIMIT_REACHED. */
NODISCARD bool pauses_set(struct pauses *pauses, const struct pause *pause, struct error *err);
/* ERROR_NOT_FOUND. Blocks. */
NODISCARD bool pauses_end(struct pauses *pauses, struct slice name, struct error *err);

/* In the order of names, in the arena; those whose end has passed too, until they are taken away.
 */
struct pause *pauses_list(struct pauses *pauses, struct arena *arena, size_t *ret_count);
bool pause_is_in_force(const struct pause *pause, int64_t now_ms);

/* May a request to the container go on? ERROR_BUSY with the message; *ret_wait_ms: when to come
 * again. NULL pauses nothing. */
NODISCARD bool pauses_check(struct pauses *pauses, const struct container *container, bool changes,
                            int64_t *ret_wait_ms, struct error *err);
