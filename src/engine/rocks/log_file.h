/* RocksDB's log, written to bytes that the disk has already, as one of RocksDB's options (an Env).
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define ROCKS_LOG_FILES "orrery.log"

/* Makes RocksDB know the name, for all stores of the process; again is fine. */
void rocks_log_files_register(void);

#ifdef __cplusplus
}
#endif
