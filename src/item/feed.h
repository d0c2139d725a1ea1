/* Feed: every change of a physical partition, in the order of its commits.
 *
 * A record stands under f | lsn | origin | ordinal; its value (format 1, numbers big-endian):
 *
 *     1   format, 1
 *     1   kind (enum feed_kind)
 *     8   wall clock, ms
 *     8   number of the item
 *     16  lsn, origin, ordinal of the change before it; zeros: none
 *     4   length of the item key, then the item key
 *     ..  the image: the item's BSON after this change; only where all versions are kept
 *
 * An overwrite removes the item's previous record in the same commit. Where the container keeps all
 * versions the previous record stays, every record has its image, and a delete leaves a record of
 * its own; what is no longer the last word on its item goes when what came behind it is older than
 * the retention. A record is the last word if the item's header names its place.
 *
 * Before all records, where lsn and origin are 0, stand the marks, each format, 1 byte, and an lsn,
 * 8. Ordinal 0: the highest lsn of which a record was removed by trimming, if there was any; who
 * has seen less than that may have missed a change. Where partitions were merged it is kept range
 * by range (feed_trimmed.h). Ordinal 1: up to here the partition was merged from several, whose
 * records have LSNs of their own: above it time grows with the LSN, below it may not.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "item/item.h"

enum feed_kind { FEED_CREATE = 1, FEED_REPLACE = 2, FEED_DELETE = 3, FEED_EXPIRE = 4 };

enum { FEED_KEY_LEN = 17 };

/* Which change: the place of a record. */
struct feed_place {
    uint64_t lsn;
    uint32_t origin, ordinal;
};

struct feed_record {
    struct feed_place place, previous;
    enum feed_kind kind;
    int64_t wall_ms;
    uint64_t number;
    struct slice key;   /* item key */
    struct slice image; /* BSON; empty: not kept, or a delete */
};

enum { FEED_MARK_LEN = 9 };
enum feed_mark { FEED_MARK_TRIMMED = 0, FEED_MARK_MERGED = 1 };

void feed_mark_encode(uint64_t lsn, uint8_t ret_value[FEED_MARK_LEN]);

/* ERROR_STORE_CORRUPT. */
NODISCARD bool feed_mark_decode(struct slice value, uint64_t *ret_lsn, struct error *err);

void feed_key_encode(struct feed_place place, uint8_t ret_key[FEED_KEY_LEN]);
struct slice feed_record_encode(const struct feed_record *record, struct arena *arena);

/* Offsets that the commit's stamp is written to. */
enum { FEED_VALUE_WALL_AT = 2, FEED_VALUE_NUMBER_AT = 10, FEED_VALUE_PREVIOUS_AT = 18 };

/* ERROR_STORE_CORRUPT. The slices point into value. */
NODISCARD bool feed_record_decode(struct slice key, struct slice value,
                                  struct feed_record *ret_record, struct error *err);
