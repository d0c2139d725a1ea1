/* Pauses: containers, keys, nodes and regions whose writes, or all of whose requests, are refused
 * for a time, with a message for clients.
 *
 * A pause has a name, and is of everything, or of what all that it names has in common: an account,
 * a database or a container; some partition keys of that container; what one node, or the nodes of
 * one region, hold. It begins at once or at a planned time, and ends at another or when it is taken
 * away. It is durable: a restart does not end it. Requests that began before it are finished, and
 * can be waited for; whoever begins one afterwards is refused with 503, the message and the time to
 * wait. Whoever asks for several keys one of which is paused is refused too. Administration, expiry
 * and migrations are never paused. */
#pragma once

#include "base/clock.h"
#include "catalogue/catalogue.h"
#include "cluster/node.h"
#include "item/hold.h"

enum {
    PAUSE_NAME_SIZE = 65, /* small letters, digits and hyphens */
    PAUSE_MESSAGE_SIZE = 257,
    PAUSE_SCOPE_SIZE = 768,
    PAUSE_KEYS_SIZE = 4096,
    PAUSE_KEYS_MAX = 64,
    PAUSES_MAX = 100,
    PAUSE_WAIT_MS = 1000, /* to come again, where no end is planned */
};

struct pause {
    char name[PAUSE_NAME_SIZE];
    bool writes;                           /* only what changes something is refused */
    uint32_t account, database, container; /* numbers; 0: all */
    char node[NODE_NAME_SIZE];             /* what it holds; empty: any */
    char region[NODE_WORD_SIZE];           /* what its nodes hold; empty: any */
    char keys[PAUSE_KEYS_SIZE];   /* of the container: JSON, an array of keys as the header of a
                                   * request has them, [["acme"],["tenant-7"]]; empty: all */
    char scope[PAUSE_SCOPE_SIZE]; /* all of that in words, as it was set: "default/shop/orders" */
    char message[PAUSE_MESSAGE_SIZE]; /* UTF-8 */
    int64_t from_ms, until_ms;        /* wall clock; 0: at once; until it is taken away */
};

struct pauses; /* opaque, owned; from any thread */

NODISCARD bool pauses_new(struct catalogue *catalogue, const struct clock *clock,
                          struct pauses **ret_pauses, struct error *err);
void pauses_free(struct pauses *pauses); /* NULL is fine */
CLEANUP_FN(struct pauses *, pauses_free)

/* Durable, and in force when it returns; one of the same name is replaced. Blocks.
 * ERROR_BAD_REQUEST: its name, its times, its keys, or no node is of that name or region;
 * ERROR_LIMIT_REACHED. */
NODISCARD bool pauses_set(struct pauses *pauses, const struct pause *pause, struct error *err);
/* ERROR_NOT_FOUND. Blocks. */
NODISCARD bool pauses_end(struct pauses *pauses, struct slice name, struct error *err);

/* In the order of names, in the arena; those whose end has passed too, until they are taken away.
 */
struct pause *pauses_list(struct pauses *pauses, struct arena *arena, size_t *ret_count);
bool pause_is_in_force(const struct pause *pause, int64_t now_ms);

/* Is this an error of a pause? */
static inline bool pause_is_told(const struct error *err)
{
    return err->code == ERROR_PAUSED || err->code == ERROR_WRITES_PAUSED;
}

/* May a request to the container go on, as far as no key is known? ERROR_PAUSED,
 * ERROR_WRITES_PAUSED with the message; *ret_wait_ms: when to come again. NULL pauses nothing. */
NODISCARD bool pauses_check(struct pauses *pauses, struct container *container, bool changes,
                            int64_t *ret_wait_ms, struct error *err);

/* For the space of a request: what is asked for each key it reads or writes. NULL of NULL. */
struct item_holds *pauses_holds(struct pauses *pauses);

/* --- What is under way ------------------------------------------------------------------------ */

/* A request begins, before it asks pauses_check; what is returned is given back at its end. */
uint8_t pauses_enter(struct pauses *pauses);
void pauses_leave(struct pauses *pauses, uint8_t entered); /* 0: never entered */

/* Waits until every request that had begun when this was called has ended, whatever it is about; no
 * longer than until_ms (monotonic), or until *cancelled. How many have not is told. Whoever waits
 * has left. */
NODISCARD bool pauses_drain(struct pauses *pauses, int64_t until_ms, const atomic_bool *cancelled,
                            uint64_t *ret_under_way);
