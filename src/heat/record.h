/* Heat record: what was asked of the physical partitions of one container, and of their hottest
 * keys, in one minute or in ten.
 *
 * A record is built, merged with others of the same time or of a part of it, and becomes bytes. Its
 * size is bounded: an entry for each partition that was asked at all, and HEAT_KEYS_MAX keys. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "throughput/statistics.h"

enum {
    HEAT_KEYS_MAX = 16,       /* in a record: the hottest of the container */
    HEAT_KEY_BYTES_MAX = 128, /* longer keys are kept cut */
    HEAT_RECORD_SPANS_MAX = 65536,
};

/* A physical partition in that time. */
struct heat_span {
    uint32_t partition;
    struct statistics_numbers numbers;
    struct statistics_times times;
};

/* A logical partition in that time. */
struct heat_key {
    uint32_t partition;
    struct slice key; /* encoded partition key value */
    bool cut;         /* it is longer than what is kept */
    struct statistics_numbers numbers;
};

struct heat_record {
    struct arena *arena;     /* borrowed: everything is in it */
    struct heat_span *spans; /* by partition */
    size_t span_count, span_capacity;
    struct heat_key *keys; /* by partition, then by key */
    size_t key_count, key_capacity;
};

/* How an entry meets one that is there already. */
enum heat_meeting {
    HEAT_SUM,   /* another time: added */
    HEAT_AGAIN, /* the same counters, read once more: whichever is larger */
};

void heat_record_init(struct heat_record *record, struct arena *arena);
void heat_record_put_span(struct heat_record *record, const struct heat_span *span,
                          enum heat_meeting meeting);
/* The key is copied, and cut if need be. */
void heat_record_put_key(struct heat_record *record, const struct heat_key *key,
                         enum heat_meeting meeting);
void heat_record_put_all(struct heat_record *record, const struct heat_record *from,
                         enum heat_meeting meeting);

/* Leaves the hottest HEAT_KEYS_MAX. */
void heat_record_trim(struct heat_record *record);

/* As it is kept; the format is at the top of heat_record.c. Parsing adds to an empty record.
 * ERROR_STORE_CORRUPT, ERROR_STORE_VERSION. */
void heat_record_append(const struct heat_record *record, struct buf *out);
NODISCARD bool heat_record_parse(struct slice bytes, struct heat_record *record, struct error *err);
