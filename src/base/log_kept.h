/* The last lines of a log, kept in memory as JSON, for whoever administers the server from afar. */
#pragma once

#include "base/log.h"

/* Keeps the last so many lines from now on. Before other threads use the log. */
void log_keep(struct log *log, size_t count);

/* Hands over the kept lines, the latest first, until visit says false. Under a lock: visit must not
 * log. */
void log_kept(struct log *log, bool (*visit)(void *context, struct slice line), void *context);
