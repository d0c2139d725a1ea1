#include "front/mongo/session/cluster_time.h"

#include "document/bson.h"
#include "document/value.h"

enum { SIGNATURE_LEN = 20 };

static uint64_t wall(const struct mongo_cluster_time *time)
{
    return (uint64_t)(clock_read_wall_ms(time->clock) / 1000) << 32 | 1;
}

void mongo_cluster_time_init(struct mongo_cluster_time *time, const struct clock *clock)
{
    time->clock = clock;
    atomic_init(&time->now, 0);
    atomic_store(&time->now, wall(time));
}

static uint64_t move_on(struct mongo_cluster_time *time, uint64_t step)
{
    uint64_t least = wall(time);
    uint_fast64_t now = atomic_load_explicit(&time->now, memory_order_relaxed);
    uint64_t next;

    do {
        next = now + step > least ? now + step : least;
        if (next == now)
            break;
    } while (!atomic_compare_exchange_weak(&time->now, &now, next));
    return next;
}

uint64_t mongo_cluster_time_read(struct mongo_cluster_time *time)
{
    return move_on(time, 0);
}

uint64_t mongo_cluster_time_tick(struct mongo_cluster_time *time)
{
    return move_on(time, 1);
}

void mongo_cluster_time_append(uint64_t time, struct buf *out)
{
    static const uint8_t unsigned_hash[SIGNATURE_LEN];
    const struct document_value stamp = {.type = DOCUMENT_TIMESTAMP, .timestamp = time};
    const struct document_value hash = {
        .type = DOCUMENT_BINARY,
        .binary = {.bytes = slice_of(unsigned_hash, sizeof unsigned_hash), .subtype = 0}};
    size_t whole, signature;

    document_append(out, SLICE("operationTime"), &stamp);
    whole = document_append_object_begin(out, SLICE("$clusterTime"));
    document_append(out, SLICE("clusterTime"), &stamp);
    signature = document_append_object_begin(out, SLICE("signature"));
    document_append(out, SLICE("hash"), &hash);
    document_append_int64(out, SLICE("keyId"), 0);
    document_end(out, signature);
    document_end(out, whole);
}
