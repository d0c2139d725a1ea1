/* The write buffer that the store has in place of RocksDB's own (tree.h), as one of RocksDB's
 * options. It takes one writer at a time: allow_concurrent_memtable_write must be off. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define ROCKS_MEMTABLE "orrery.tree"

/* Makes RocksDB know the name, for all stores of the process; again is fine. */
void rocks_memtable_register(void);

#ifdef __cplusplus
}
#endif
