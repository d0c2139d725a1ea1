#include "front/mongo/session/cluster_time.h"

#include "document/bson.h"
#include "document/value.h"

enum { SIGNATURE_LEN = 20 };

void mongo_cluster_time_init(struct mongo_cluster_time *time, struct commit_clock *times)
{
    time->times = times;
}

uint64_t mongo_cluster_time_read(struct mongo_cluster_time *time)
{
    return commit_clock_now(time->times);
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
