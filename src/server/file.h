/* Small files the server keeps for itself: keys and certificates. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/* Reads a whole file into out, which carries the limit. ERROR_SYSTEM; errno is set, and is ENOENT
 * when there is none. */
NODISCARD bool server_file_read(const char *path, struct buf *out, struct error *err);

/* Writes a file whole or not at all, readable by its owner only, and durable on return.
 * ERROR_SYSTEM. */
NODISCARD bool server_file_write_private(const char *path, struct slice bytes, struct error *err);

/* Makes one directory for its owner only; fine when it is there. ERROR_SYSTEM. */
NODISCARD bool server_file_make_directory(const char *path, struct error *err);
