/* Throughput within a container, as its owner divides it: throughput buckets, which requests name
 * and which get at most a part of it, and key values with RU/s reserved for them or a cap of their
 * own. `orrery.throughput` of a container:
 *
 *     {"buckets": [{"id": 2, "maxThroughputPercentage": 30}],
 *      "keys": [{"key": ["tenant-7"], "reserved": 200, "cap": 400}]} */
#pragma once

#include "base/buf.h"
#include "document/bson.h"
#include "partition/key.h"
#include "partition/strategy.h"
#include "throughput/budget.h"

enum { DEFINITION_TENANTS_MAX = 1024 };

struct definition_tenant {
    struct partition_key key;
    struct slice pk;              /* its bytes, as requests name it (metering_pk) */
    struct partition_range range; /* of routing keys */
    uint64_t reserved, cap;       /* RU/s; 0: none */
};

/* All zero: the container says nothing. In the arena of its definition. */
struct definition_throughput {
    uint8_t percent_max[BUDGET_BUCKETS]; /* of buckets 1 to 5; 0: not said, all of it */
    const struct definition_tenant *tenants;
    size_t tenant_count;
};

/* Reads the member. The partition key has been read. ERROR_BAD_REQUEST. */
NODISCARD bool definition_throughput_read(const struct partition_definition *key,
                                          const struct document_value *value, struct arena *arena,
                                          struct definition_throughput *ret_throughput,
                                          struct error *err);

/* A key value: its key, pk and range; in the arena. ERROR_BAD_REQUEST: it is not whole. */
NODISCARD bool definition_tenant_key_read(const struct partition_definition *definition,
                                          const struct document_value *value, struct arena *arena,
                                          struct definition_tenant *ret_tenant, struct error *err);

bool definition_throughput_is_said(const struct definition_throughput *throughput);

/* RU/s reserved for key values within a range of routing keys; *ret_alone: the key value whose
 * range is that one, or NULL. */
uint64_t definition_throughput_within(const struct definition_throughput *throughput,
                                      struct slice min, struct slice max,
                                      const struct definition_tenant **ret_alone);
