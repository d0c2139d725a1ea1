/* A line is built on the stack of the calling thread and handed to the kernel in one write, so
 * lines of several threads do not mix and no lock is held. Fields too long for the line are cut. */
#include "base/log_kept.h"

#include "base/memory.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096 };

struct log {
    int fd;
    enum log_level level;
    bool json;
    bool colour;
    atomic_uint_fast64_t lost; /* lines the reader did not take */

    struct mutex lock; /* of what follows */
    size_t kept_max;   /* 0: none are kept; constant */
    uint64_t kept_count;
    struct kept *kept; /* a ring: the next is kept_count modulo kept_max */
};

struct kept {
    char *text; /* owned; NULL: none yet */
    size_t len;
};

struct line {
    char text[LINE_MAX_BYTES];
    size_t len;
};

static const char *const level_names[] = {"debug", "info", "warning", "error"};

struct log *log_new(int fd, enum log_level level, enum log_format format)
{
    struct log *log = MEMORY_NEW(struct log);
    bool terminal = isatty(fd) == 1;

    log->fd = fd;
    log->level = level;
    log->json = format == LOG_FORMAT_JSON || (format == LOG_FORMAT_AUTO && !terminal);
    log->colour = terminal && !log->json;
    mutex_init(&log->lock);
    return log;
}

void log_keep(struct log *log, size_t count)
{
    assert(!log->kept);
    log->kept_max = count;
    if (count)
        log->kept = memory_alloc_zero(memory_array_size(count, sizeof *log->kept));
}

void log_free(struct log *log)
{
    if (!log)
        return;
    for (size_t i = 0; i < log->kept_max; i++)
        memory_free(log->kept[i].text);
    memory_free(log->kept);
    mutex_done(&log->lock);
    memory_free(log);
}

/* Room for the closing brace and newline is always kept. */
static void line_add(struct line *line, const void *data, size_t len)
{
    size_t room = sizeof line->text - 8 - line->len;

    len = MIN(len, room);
    memcpy(line->text + line->len, data, len);
    line->len += len;
}

static void line_add_text(struct line *line, const char *text)
{
    line_add(line, text, strlen(text));
}

static bool needs_escape(uint8_t c)
{
    return c < 0x20 || c == '"' || c == '\\' || c == 0x7F;
}

/* Quotes as JSON does; in a human line the same form keeps control bytes off the terminal. Room is
 * checked per character, so that a cut never leaves half an escape. */
static void line_add_quoted(struct line *line, struct slice s)
{
    line_add(line, "\"", 1);
    for (size_t i = 0; i < s.len && line->len + 16 < sizeof line->text; i++) {
        uint8_t c = s.data[i];
        char escape[8];

        if (!needs_escape(c)) {
            line_add(line, &c, 1);
        } else if (c == '"' || c == '\\') {
            escape[0] = '\\';
            escape[1] = (char)c;
            line_add(line, escape, 2);
        } else {
            snprintf(escape, sizeof escape, "\\u%04x", c);
            line_add(line, escape, 6);
        }
    }
    line_add(line, "\"", 1);
}

static void line_add_value(struct line *line, const struct log_field *field, bool json)
{
    char number[24];

    switch (field->kind) {
    case LOG_FIELD_INT:
        snprintf(number, sizeof number, "%lld", (long long)field->number);
        line_add_text(line, number);
        break;
    case LOG_FIELD_BOOL:
        line_add_text(line, field->number ? "true" : "false");
        break;
    case LOG_FIELD_TEXT: {
        bool bare = !json && field->text.len > 0;

        for (size_t i = 0; bare && i < field->text.len; i++)
            bare = !needs_escape(field->text.data[i]) && field->text.data[i] != ' ';
        if (bare)
            line_add(line, field->text.data, field->text.len);
        else
            line_add_quoted(line, field->text);
        break;
    }
    }
}

static void line_json(struct line *line, enum log_level level, const char *event, const char *time,
                      const struct log_field *fields, size_t count)
{
    line_add_text(line, "{\"time\":\"");
    line_add_text(line, time);
    line_add_text(line, "\",\"level\":\"");
    line_add_text(line, level_names[level]);
    line_add_text(line, "\",\"event\":");
    line_add_quoted(line, slice_of_text(event));
    for (size_t i = 0; i < count && line->len + 64 < sizeof line->text; i++) {
        line_add_text(line, ",");
        line_add_quoted(line, slice_of_text(fields[i].name));
        line_add_text(line, ":");
        line_add_value(line, &fields[i], true);
    }
    line->text[line->len++] = '}';
}

static void line_human(struct line *line, enum log_level level, const char *event, const char *time,
                       const struct log_field *fields, size_t count, bool colour)
{
    static const char *const colours[] = {"\033[2m", "", "\033[33m", "\033[31m"};

    line_add(line, time + 11, 12); /* the time of day is enough on a terminal */
    line_add_text(line, " ");
    if (colour)
        line_add_text(line, colours[level]);
    if (level >= LOG_WARNING) {
        line_add_text(line, level_names[level]);
        line_add_text(line, ": ");
    }
    line_add_text(line, event);
    if (colour)
        line_add_text(line, "\033[0m");
    for (size_t i = 0; i < count; i++) {
        line_add_text(line, " ");
        line_add_text(line, fields[i].name);
        line_add_text(line, "=");
        line_add_value(line, &fields[i], false);
    }
}

static void line_keep(struct log *log, const struct line *line)
{
    struct kept kept = {.text = memory_alloc(line->len), .len = line->len};
    char *old = NULL;

    memcpy(kept.text, line->text, line->len);
    WITH_LOCK (&log->lock) {
        struct kept *place = &log->kept[log->kept_count++ % log->kept_max];

        old = place->text;
        *place = kept;
    }
    memory_free(old);
}

void log_kept(struct log *log, bool (*visit)(void *context, struct slice line), void *context)
{
    WITH_LOCK (&log->lock) {
        for (uint64_t i = log->kept_count; i > 0 && i + log->kept_max > log->kept_count; i--) {
            const struct kept *kept = &log->kept[(i - 1) % log->kept_max];

            if (!visit(context, slice_of(kept->text, kept->len)))
                return;
        }
    }
}

void log_fields(struct log *log, enum log_level level, const char *event,
                const struct log_field *fields, size_t count)
{
    struct line line; /* 4 KB: only what is used is written */
    char time[CLOCK_ISO_SIZE];

    if (!log || level < log->level)
        return;
    line.len = 0;
    clock_iso(clock_wall_ms(), time);
    if (log->kept_max) {
        line_json(&line, level, event, time, fields, count);
        line_keep(log, &line);
        line.len = 0;
    }
    if (log->json)
        line_json(&line, level, event, time, fields, count);
    else
        line_human(&line, level, event, time, fields, count, log->colour);
    line.text[line.len++] = '\n';
    if (write(log->fd, line.text, line.len) != (ssize_t)line.len)
        atomic_fetch_add_explicit(&log->lost, 1, memory_order_relaxed);
}

void log_error(struct log *log, const char *event, const struct error *err)
{
    log_event(log, LOG_ERROR, event, LOG_TEXT("code", error_face(err->code)->name),
              LOG_TEXT("message", err->message));
}

uint64_t log_lost(const struct log *log)
{
    return atomic_load_explicit(&log->lost, memory_order_relaxed);
}
