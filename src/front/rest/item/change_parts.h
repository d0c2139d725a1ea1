/* Positions in the change feed of a key that is spread over several partitions: one LSN for each
 * range of its ids, shown as
 *
 *     range - LSN ~ range - LSN ~ ...          7-120~8-95
 *
 * A range is named by the id of a partition that has or had it, or by several with dots between, of
 * which it is what they have in common: partitions come and go while a reader is on its way. The
 * first range is read first; one that was read goes behind the others. */
#pragma once

#include "partition/map.h"

enum { REST_CHANGE_PARTS_MAX = 256, REST_CHANGE_PART_IDS_MAX = 4 };

struct rest_change_part {
    uint32_t ids[REST_CHANGE_PART_IDS_MAX];
    size_t id_count;
    struct partition_range range;      /* of the key, within the span */
    const struct partition_span *span; /* that has it now */
    uint64_t lsn;
};

struct rest_change_parts {
    struct rest_change_part list[REST_CHANGE_PARTS_MAX];
    size_t count;
};

/* Is it a position of this kind? */
bool rest_change_parts_is(struct slice text);

/* One part for each span the key is in, all at LSN 0. ERROR_RANGE_GONE: too many. */
NODISCARD bool rest_change_parts_begin(const struct partition_map *map, struct partition_range key,
                                       struct rest_change_parts *ret_parts, struct error *err);

/* The parts a position is of, in the spans of now. ERROR_BAD_REQUEST: it is no position of this
 * key. ERROR_RANGE_GONE: it is of partitions that are too long gone. */
NODISCARD bool rest_change_parts_read(struct slice text, const struct partition_map *map,
                                      struct partition_range key,
                                      struct rest_change_parts *ret_parts, struct error *err);

/* The text of it, in the arena; a number alone where the key is in one span and all stand alike. */
struct slice rest_change_parts_text(const struct rest_change_parts *parts, struct arena *arena);

/* The first n go behind the others. */
void rest_change_parts_rotate(struct rest_change_parts *parts, size_t n);
