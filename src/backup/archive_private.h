/* What reading and writing backups share: files, and indexes as bytes. */
#pragma once

#include "backup/archive.h"

#include <limits.h>

enum { BACKUP_PATH_SIZE = PATH_MAX };

/* "DIR/ID/0-5.data" */
NODISCARD bool backup_path(char ret_path[BACKUP_PATH_SIZE], struct error *err, const char *format,
                           ...) PRINTF_LIKE(3, 4);

/* The name that what belongs to a partition is sealed under: "0-5.index", "0-5.data". */
void backup_part_name(char ret_name[48], uint32_t node, uint32_t partition, const char *ending);

/* A whole file, private and durable on return. */
NODISCARD bool backup_file_write(const char *path, struct slice bytes, struct error *err);
NODISCARD bool backup_file_read(const char *path, struct buf *out, struct error *err);
NODISCARD bool backup_directory_sync(const char *path, struct error *err);

void backup_place_append(const struct backup_chunk_place *place, struct buf *out);

/* manifest.check of these bytes. */
void backup_check_append(const struct backup_seal *seal, struct slice manifest, struct buf *out);
