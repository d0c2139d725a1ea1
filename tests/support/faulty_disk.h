/* Faulty disk: where queries spill to in tests: memory, which writes in small pieces, and fails
 * when it is told to. */
#pragma once

#include "query/spool/spill.h"

struct faulty_disk {
    struct query_spill_io io;
    bool cannot_open;
    size_t write_max;   /* bytes of one write; 0: any */
    uint64_t full_at;   /* bytes written until it is full; 0: never */
    size_t reads_until; /* reads until one fails; 0: never */

    uint64_t written; /* out */
    size_t reads, files;
};

/* Ready for use; errors are set up afterwards. For one thread. */
void faulty_disk_init(struct faulty_disk *disk);

/* A store on it with room for bytes_max of a query and of all. */
struct query_spill *faulty_disk_spill(struct faulty_disk *disk, uint64_t bytes_max);
