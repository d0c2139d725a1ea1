/* Records: operations as the traffic of a container has them, in memory and written down: BSON
 * documents one after the other, each with the members of a line of operations (docs/advise.md). */
#pragma once

#include "advise/workload.h"

/* Bytes of the record at this place. */
uint32_t record_size(const uint8_t *record);

/* Takes the first off. */
struct slice records_next(struct slice *rest);

/* Are these bytes whole records? */
bool records_are_whole(struct slice records);

/* Appends those that are older. */
void records_before(struct slice records, int64_t time_ms, struct buf *out);

/* Appends one of 2^shift of them, which then counts for as many more. Of a transaction all are
 * taken or none. */
void records_thin(struct slice records, uint32_t shift, struct buf *out);

/* Adds them to a workload; returns how many operations. */
size_t records_read(struct slice records, struct advise_workload *workload);

/* As lines of JSON: at most max of the last. */
void records_lines(struct slice records, size_t max, struct buf *out);
