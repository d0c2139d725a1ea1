/* Operations: each does one thing to the world at random, foretells by the model how it must end,
 * and compares. write.c, transactions.c, read.c and care.c have one kind each. */
#pragma once

#include "property/run.h"

void write_create(struct run *run);
void write_replace(struct run *run);
void write_upsert(struct run *run);
void write_delete(struct run *run);
void write_patch(struct run *run);
void write_with_etag(struct run *run);
void write_unique_clash(struct run *run);
void write_fill(struct run *run);
void write_move(struct run *run);
void write_rename(struct run *run);
void transaction_batch(struct run *run);
void transaction_span(struct run *run);
void transaction_interleaved(struct run *run);
void read_item(struct run *run);
void read_number(struct run *run);
void read_many(struct run *run);
void read_scan_by_key(struct run *run);
void read_scan_by_number(struct run *run);
void read_scan_index(struct run *run);
void read_feed_latest(struct run *run);
void read_feed_all_versions(struct run *run);
void read_feed_from_time(struct run *run);
void care_feed_trim(struct run *run);
void care_time_passes(struct run *run);
void care_sweep(struct run *run);
void care_transform(struct run *run);
void care_power_cut(struct run *run);
