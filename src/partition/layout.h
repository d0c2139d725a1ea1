/* How the keys of one physical partition are laid out: the first byte names the family.
 *
 *     'c'  counters   c | kind | name                 -> up to 4 numbers, 8 bytes big-endian each
 *     'd'  items      d | routing key | pk | id       -> header and BSON
 *     'e'  places     e | source | number | group     -> where a contribution is (contribution.h)
 *     'f'  feed       f | lsn | origin | ordinal      -> change feed
 *     'g'  groups     g | routing key | pk | group    -> of aggregating views: what items add
 *     'h'  history    h | time | origin | ordinal     -> changes, in PARTITION_HISTORY (history.h)
 *     'i'  index      i | path | value | routing key | number
 *     'j'  journal    j | lsn | nth                 -> keys touched, while a migration needs them
 *     'm'  meta       m                               -> what group commit must remember (commit.c)
 *     'p'  progress   p | partition               -> how far copying from that one is (mover.c)
 *     'r'  numbers    r | number                      -> the item's key
 *     's'  records    s | session | statement | routing key | pk -> what became of a write
 *     't'  expiry     t | expiry | routing key | number
 *     'u'  unique     u | which | routing key | pk | ...
 *     'x'  promises   x | kind | id     -> transactions over nodes, in PARTITION_HISTORY (pledge.h)
 *
 * Group commit owns 'c', 'j' and 'm'; item/, index/ and catalogue/ own the others and write down
 * their layouts. */
#pragma once

#include "base/attrs.h"

enum partition_family {
    PARTITION_FAMILY_COUNTER = 'c',
    PARTITION_FAMILY_ITEM = 'd',
    PARTITION_FAMILY_PLACE = 'e',
    PARTITION_FAMILY_FEED = 'f',
    PARTITION_FAMILY_GROUP = 'g',
    PARTITION_FAMILY_HISTORY = 'h',
    PARTITION_FAMILY_INDEX = 'i',
    PARTITION_FAMILY_JOURNAL = 'j',
    PARTITION_FAMILY_META = 'm',
    PARTITION_FAMILY_PROGRESS = 'p',
    PARTITION_FAMILY_NUMBER = 'r',
    PARTITION_FAMILY_RECORD = 's',
    PARTITION_FAMILY_EXPIRY = 't',
    PARTITION_FAMILY_UNIQUE = 'u',
    PARTITION_FAMILY_PLEDGE = 'x',
};

/* An item's number: the physical partition that created it, 28 bits, and a counter, 32 bits. It
 * fits the 60 bits that _rid leaves beside the kind, and grows with creation order. */
enum { PARTITION_NUMBER_COUNTER_BITS = 32, PARTITION_NUMBER_SOURCE_BITS = 28 };

/* The partition of every node that keeps its history (history.h). Below the source of provisional
 * numbers, above all that the catalogue gives. */
enum { PARTITION_HISTORY = (1 << PARTITION_NUMBER_SOURCE_BITS) - 2 };

static inline uint64_t partition_number(uint32_t source, uint64_t counter)
{
    assert(source >> PARTITION_NUMBER_SOURCE_BITS == 0);
    assert(counter >> PARTITION_NUMBER_COUNTER_BITS == 0);
    return (uint64_t)source << PARTITION_NUMBER_COUNTER_BITS | counter;
}

/* LSNs count in the low bits. Above them is an era, 0 at first: when a migration places a key
 * elsewhere (mover_reroute.c), what was written of it is put behind everything its new partition
 * has, by another era, so that no reader of the feed there has passed it. The low bits stay, and
 * still tell the versions of an item apart. */
enum { PARTITION_LSN_BITS = 40 };

static inline uint64_t partition_lsn_era(uint64_t lsn)
{
    return lsn >> PARTITION_LSN_BITS;
}

static inline uint64_t partition_lsn_low(uint64_t lsn)
{
    return lsn & (((uint64_t)1 << PARTITION_LSN_BITS) - 1);
}

static inline uint64_t partition_lsn_in(uint64_t era, uint64_t lsn)
{
    return era << PARTITION_LSN_BITS | partition_lsn_low(lsn);
}
