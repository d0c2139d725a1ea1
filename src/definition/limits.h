/* Limits: the numbers a catalogue holds its users to. The defaults are the published ones; a test
 * or a demonstration makes them small. The comments name the settings they are set by. */
#pragma once

#include "base/attrs.h"

/* Which offers hold requests back: throughput.enforce. */
enum offer_enforce {
    THROUGHPUT_STATED, /* those that somebody asked for */
    THROUGHPUT_ALWAYS, /* the default of a container that nobody bought anything for, too */
    THROUGHPUT_NEVER,
};

struct definition_limits {
    uint64_t partition_bytes_max;  /* partition.bytes_max: of a physical partition */
    uint64_t partition_ru_max;     /* partition.ru_max: RU/s of a physical partition */
    uint64_t partition_ru_initial; /* partition.ru_initial: RU/s of those a container is made with;
                                    * 0: partition_ru_max */
    uint64_t logical_partition_bytes_max; /* logical_partition.bytes_max */

    uint64_t reference_bytes_max; /* reference.bytes_max: of a reference container */

    uint64_t item_bytes_max;    /* item.bytes_max */
    uint32_t key_bytes_max;     /* partition_key.bytes_max: of a partition key value */
    uint32_t id_chars_max;      /* id.chars_max: of all names but items' */
    uint32_t item_id_bytes_max; /* item_id.bytes_max */

    uint32_t accounts_max;             /* account.count_max: in the server */
    uint32_t account_resources_max;    /* account.resources_max: databases and containers in one */
    uint32_t shared_containers_max;    /* database.shared_containers_max: sharing its throughput */
    uint32_t container_partitions_max; /* container.partitions_max: physical */
    uint32_t definition_bytes_max;     /* container.definition_bytes_max: of its BSON */
    uint32_t directory_lines_max;      /* container.directory_lines_max: of the lookup strategy */

    uint32_t account_children_max; /* account.children_max: all of what is limited below */
    uint32_t users_max;            /* database.users_max */
    uint32_t encryption_keys_max;  /* database.encryption_keys_max */
    uint32_t permissions_max;      /* user.permissions_max */
    uint32_t procedures_max, triggers_max, functions_max; /* container.procedures_max, ... */
    uint32_t script_bytes_max;                            /* script.bytes_max: of its BSON */
    uint64_t account_script_bytes_max;   /* account.script_bytes_max: of all in one */
    uint64_t account_metadata_bytes_max; /* account.metadata_bytes_max: of what else is in one */
    uint64_t script_cache_bytes;         /* script.cache_bytes: of those kept in memory */
    uint32_t resource_bytes_max; /* resource.bytes_max: of a user, permission or encryption key */

    uint64_t ru_min, ru_step, ru_max; /* throughput.ru_min, _step, _max: manual, of an offer */
    uint64_t ru_default;              /* throughput.ru_default: when nobody says */
    enum offer_enforce enforce;       /* throughput.enforce */
    uint64_t autoscale_min, autoscale_step; /* throughput.autoscale_min, _step */
    uint64_t unlimited_ru_min; /* container.unlimited_ru_min: of containers with a partition key */
    uint64_t fixed_ru_max;     /* container.fixed_ru_max: of containers without one */
    uint64_t fixed_bytes_max;  /* container.fixed_bytes_max */
};

#define DEFINITION_LIMITS_GB ((uint64_t)1024 * 1024 * 1024)

static const struct definition_limits CATALOGUE_LIMITS_DEFAULT = {
    .partition_bytes_max = 50 * DEFINITION_LIMITS_GB,
    .partition_ru_max = 10000,
    .logical_partition_bytes_max = 20 * DEFINITION_LIMITS_GB,
    .reference_bytes_max = 4 * 1024 * 1024,
    .item_bytes_max = 2 * 1024 * 1024,
    .key_bytes_max = 2048,
    .id_chars_max = 255,
    .item_id_bytes_max = 1023,
    .accounts_max = 10000,
    .account_resources_max = 500,
    .shared_containers_max = 25,
    .container_partitions_max = 1024,
    .definition_bytes_max = 1024 * 1024,
    .directory_lines_max = 10000,
    .account_children_max = 100000,
    .users_max = 10000,
    .encryption_keys_max = 20,
    .permissions_max = 10000,
    .procedures_max = 100,
    .triggers_max = 25,
    .functions_max = 50,
    .script_bytes_max = 512 * 1024,
    .account_script_bytes_max = 64 * 1024 * 1024,
    .account_metadata_bytes_max = 64 * 1024 * 1024,
    .script_cache_bytes = 8 * 1024 * 1024,
    .resource_bytes_max = 16 * 1024,
    .ru_min = 400,
    .ru_step = 100,
    .ru_max = 1000000,
    .ru_default = 400,
    .autoscale_min = 1000,
    .autoscale_step = 1000,
    .unlimited_ru_min = 400,
    .fixed_ru_max = 10000,
    .fixed_bytes_max = 10 * DEFINITION_LIMITS_GB,
};
