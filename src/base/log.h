/* Log: one line per event, with fields. For people on a terminal, JSON otherwise.
 *
 *     log_event(log, LOG_INFO, "listening", LOG_TEXT("address", address), LOG_INT("port", port));
 *
 * The event is a constant phrase to search for; what varies goes into fields. Secrets never do.
 * Lines are written whole with one write call. A line the reader's end refuses (a full disk, a
 * closed pipe) is counted as lost. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/slice.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

enum log_format {
    LOG_FORMAT_AUTO, /* human on a terminal, JSON otherwise */
    LOG_FORMAT_HUMAN,
    LOG_FORMAT_JSON,
};

struct log; /* opaque; may be used by all threads at once */

struct log_field {
    const char *name;
    enum { LOG_FIELD_TEXT, LOG_FIELD_INT, LOG_FIELD_BOOL } kind;
    struct slice text;
    int64_t number;
};

#define LOG_TEXT(name, value) ((struct log_field){(name), LOG_FIELD_TEXT, slice_of_text(value), 0})
#define LOG_SLICE(name, value) ((struct log_field){(name), LOG_FIELD_TEXT, (value), 0})
#define LOG_INT(name, value) ((struct log_field){(name), LOG_FIELD_INT, SLICE_NONE, (value)})
#define LOG_BOOL(name, value) ((struct log_field){(name), LOG_FIELD_BOOL, SLICE_NONE, (value)})

/* Writes to fd, which stays the caller's. */
struct log *log_new(int fd, enum log_level level, enum log_format format);
void log_free(struct log *log); /* NULL is fine */
CLEANUP_FN(struct log *, log_free)

/* A NULL log is silent, so that code under test needs none. */
#define log_event(log, level, event, ...)                                                          \
    log_fields((log), (level), (event), (const struct log_field[]){__VA_ARGS__},                   \
               sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field))
void log_fields(struct log *log, enum log_level level, const char *event,
                const struct log_field *fields, size_t count);

/* The one place where an error becomes a line: its code, message and the event it spoiled. */
void log_error(struct log *log, const char *event, const struct error *err);

/* Lines lost so far. */
uint64_t log_lost(const struct log *log);
