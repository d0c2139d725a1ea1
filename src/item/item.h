/* Item: how one is stored. All layouts are format 1; numbers are big-endian.
 *
 * The key of an item, wherever it occurs (without a family byte):
 *
 *     routing key | pk, one value per path | id, one value
 *
 * pk and id are typed and ordered (document/order.h): pk in SQL order, id in that of the
 * container's names, so that two ids are the same where its language says so. No routing key of a
 * container begins another (partition/strategy.h), so none of the three needs an end mark.
 *
 * What a physical partition holds, by family (partition/layout.h):
 *
 *     d | item key                             -> header, BSON without system properties
 *     r | number, 8                            -> item key
 *     i | entry | routing key | number, 8      -> pk and id of the item key
 *     f | lsn, 8 | origin, 4 | ordinal, 4      -> feed record (feed.h);
 *                                                 lsn 0: marks
 *     t | class, 1 | time, 8 | routing key | number, 8 -> item key
 *                     class 0: time is when an item without own ttl was written, seconds
 *                     class 1: time is when an item with own ttl expires, seconds
 *     u | unique key, 1 | routing key | pk | values -> number, 8
 *     c | 'l' | routing key | pk               -> counter: bytes, items of a logical partition
 *     c | 't'                                  -> counter: bytes, items of the physical partition
 *
 * The header, 42 bytes:
 *
 *     1  format, 1
 *     1  flags
 *     8  number
 *     8  lsn of the last change
 *     4  origin: the physical partition that gave the lsn
 *     4  ordinal of the change in its transaction
 *     8  wall clock of the last change, ms
 *     4  own ttl in seconds; -1 never, 0 none
 *     4  version of the index policy its entries were made with */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "document/names.h"
#include "document/value.h"
#include "partition/key.h"

enum { ITEM_HEADER_LEN = 42, ITEM_ETAG_LEN = 36 };

enum item_flags {
    ITEM_NOT_INDEXED = 1,       /* written with the directive to leave it out of the index */
    ITEM_EXPIRY_BY_DEFAULT = 2, /* has an entry of class 0 in the expiry family */
};

struct item_header {
    uint8_t flags;
    uint64_t number;
    uint64_t lsn;
    uint32_t origin, ordinal;
    int64_t wall_ms;
    int32_t ttl;
    uint32_t policy_version;
};

/* An item as read: slices live in the arena it was read into. */
struct item {
    struct item_header header;
    struct slice key;      /* item key */
    struct slice document; /* BSON without system properties */
};

void item_header_encode(const struct item_header *header, uint8_t ret_bytes[ITEM_HEADER_LEN]);

/* Takes a stored value apart. ERROR_STORE_CORRUPT. */
NODISCARD bool item_decode(struct slice key, struct slice stored, struct item *ret_item,
                           struct error *err);

/* The etag of a version: 36 characters, without quotes. Every write of an item gives another. */
void item_etag(const struct item_header *header, char ret_text[ITEM_ETAG_LEN]);

/* When the item expires, in seconds; INT64_MAX: never. */
int64_t item_expiry_s(const struct item_header *header, int32_t default_ttl);

/* Has its time passed? Then it is gone, stored or not. */
static inline bool item_is_over(const struct item_header *header, int32_t default_ttl,
                                int64_t now_ms)
{
    return item_expiry_s(header, default_ttl) <= now_ms / 1000;
}

/* --- Keys ------------------------------------------------------------------------------------ */

/* An item key taken apart; the slices point into it. */
struct item_key_parts {
    struct slice routing;
    struct slice logical; /* routing key and pk: the logical partition */
    struct slice pk_id;   /* pk and id: what index entries keep */
    struct slice id;
};

/* ERROR_STORE_CORRUPT. */
NODISCARD bool item_key_split(const struct partition_definition *definition, struct slice key,
                              struct item_key_parts *ret_parts, struct error *err);

/* Routing key and pk of a whole partition key: the logical partition, in the arena. */
struct slice item_logical(const struct partition_definition *definition,
                          const struct partition_key *key, struct arena *arena);

/* Appends an id as keys of items end in it. */
void item_id_append(const struct document_names *names, const struct document_value *id,
                    struct buf *buf);

/* The key of the item with this id in a logical partition, in the arena. */
struct slice item_key(const struct document_names *names, struct slice logical,
                      const struct document_value *id, struct arena *arena);

/* A family byte and the bytes behind it, in the arena. */
struct slice item_family_key(struct arena *arena, uint8_t family, struct slice rest);
