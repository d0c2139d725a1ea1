/* Promotion: a partition key value that has a container of its own, and the way back.
 *
 * It ties two containers of a database together: the origin, which the key is of, and the key's
 * own. The items of the key are in one physical partition, and what a promotion changes is which
 * maps that partition is in:
 *
 *     preparing   the own container is empty and takes nothing; the origin is as it was
 *     out         the own container is home. While grace is given the partition is in both maps:
 *                 whoever still speaks to the origin reads and writes the same items. Without grace
 *                 the origin has an empty partition in its place, and refuses the key
 *     back        the same with the roles exchanged: the origin is home
 *
 * As long as the tie holds, the own container is the key's alone, so that the partition can come
 * back whole. A promotion never changes once made; both records hold it. docs/design/promote.md has
 * the why. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "partition/map.h"

enum {
    PROMOTIONS_MAX = 64,          /* of one container */
    PROMOTION_KEY_SHOWN_MAX = 64, /* bytes of a key in messages */
};

enum promotion_state { PROMOTION_PREPARING, PROMOTION_OUT, PROMOTION_BACK };

struct promotion {
    uint32_t origin, own; /* numbers of the containers */
    uint32_t partition;   /* that both have or had; 0: there was none yet */
    enum promotion_state state;
    bool grace;
    int64_t since_ms;               /* wall clock: when it came to this state */
    uint64_t origin_shown,          /* container_shown of either, when it last began or ceased */
        own_shown;                  /* to show the items by this tie; 0: it never did */
    struct slice origin_id, own_id; /* names of the containers */
    struct slice key;               /* JSON, as clients write it in the header */
    struct partition_range range;   /* of its routing keys */
};

/* A copy that is shared by reference. The caller owns one. */
struct promotion *promotion_new(const struct promotion *promotion);
struct promotion *promotion_ref(struct promotion *promotion);
void promotion_unref(struct promotion *promotion); /* NULL is fine */
CLEANUP_FN(struct promotion *, promotion_unref)

/* Is its partition in both maps? */
bool promotion_shares(const struct promotion *promotion);

/* Does one of its two containers, by its number, show the items? */
bool promotion_shows(const struct promotion *promotion, uint32_t container);

/* The other of its two containers, by its number, and its name. */
uint32_t promotion_other(const struct promotion *promotion, uint32_t container,
                         struct slice *ret_id);

/* The container that the items belong to, by its number. */
uint32_t promotion_home(const struct promotion *promotion);

/* Are these the same tie, be it in different states? */
bool promotion_same(const struct promotion *a, const struct promotion *b);

const char *promotion_state_name(enum promotion_state state);

/* The promotions a container has a part in. */
struct promotion_list {
    uint32_t container; /* its number */
    size_t count;
    struct promotion *list[PROMOTIONS_MAX]; /* references of whoever owns the list */
};

/* ERROR_KEY_ELSEWHERE: the container does not take the logical partition, whose bytes begin with
 * its routing key. */
NODISCARD bool promotion_list_admits(const struct promotion_list *list, struct slice logical,
                                     struct error *err);

/* The container that has the logical partition where this one has given it up, by its number; 0:
 * this one has it, or may have. */
uint32_t promotion_list_elsewhere(const struct promotion_list *list, struct slice logical);

/* The promotion that shares a partition of this container; NULL: none does. */
const struct promotion *promotion_list_sharing(const struct promotion_list *list,
                                               uint32_t partition);

/* Is a partition in the container's map without being its own: items, throughput and care of it are
 * the other's? */
bool promotion_list_is_window(const struct promotion_list *list, uint32_t partition);

/* Does a span only keep the place of a key that is elsewhere? */
bool promotion_list_keeps_place(const struct promotion_list *list,
                                const struct partition_span *span);

/* As the catalogue keeps it: a BSON document (format at the top of promotion.c), and back.
 * ERROR_STORE_CORRUPT. */
void promotion_append(const struct promotion *promotion, struct buf *buf);
NODISCARD bool promotion_parse(struct slice document, struct promotion **ret_promotion,
                               struct error *err);
