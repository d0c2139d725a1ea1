/* The configuration file: libinih splits the lines, we count them and decide what they mean. The
 * library's own limits would cut a long line in two and read the second half as a setting of its
 * own, so the reader function handed to it refuses such a line first. */
#include "server/settings.h"

#include "server/file.h"

#include <ini.h>

enum { FILE_SETTINGS_MAX = 512 };

struct reading {
    struct settings *settings;
    const char *path;
    struct slice rest;
    unsigned line;
    struct error *err;
    bool failed;
    struct slice seen[FILE_SETTINGS_MAX]; /* full names, in the settings' arena */
    unsigned seen_line[FILE_SETTINGS_MAX];
    size_t seen_count;
};

static bool line_fail(struct reading *reading)
{
    reading->failed = true;
    return error_prefix(reading->err, "%s:%u", reading->path, reading->line);
}

/* As fgets: the next line, up to size bytes with its NUL; NULL at the end. */
static char *line_next(char *line, int size, void *stream)
{
    struct reading *reading = stream;
    struct slice text, rest;

    if (reading->failed || reading->rest.len == 0)
        return NULL;
    reading->line++;
    if (!slice_split(reading->rest, '\n', &text, &rest)) {
        text = reading->rest;
        rest = SLICE_NONE;
    }
    reading->rest = rest;
    if (text.len + 2 > (size_t)size) {
        error_set(reading->err, ERROR_CONFIGURATION, "the line has more than %d bytes", size - 2);
        line_fail(reading);
        return NULL;
    }
    if (memchr(text.data, '\0', text.len)) {
        error_set(reading->err, ERROR_CONFIGURATION, "the line holds a NUL byte");
        line_fail(reading);
        return NULL;
    }
    memcpy(line, text.data, text.len);
    line[text.len] = '\n';
    line[text.len + 1] = '\0';
    return line;
}

/* A setting given twice in one file is most often a mistake of the one who edits it. */
static bool first_time(struct reading *reading, struct slice name)
{
    for (size_t i = 0; i < reading->seen_count; i++)
        if (slice_equal(reading->seen[i], name))
            return error_set(reading->err, ERROR_CONFIGURATION,
                             "setting \"%.*s\" was already given in line %u", SLICE_ARG(name),
                             reading->seen_line[i]);
    if (reading->seen_count == FILE_SETTINGS_MAX)
        return error_set(reading->err, ERROR_CONFIGURATION, "the file gives more than %d settings",
                         FILE_SETTINGS_MAX);
    reading->seen[reading->seen_count] = name;
    reading->seen_line[reading->seen_count++] = reading->line;
    return true;
}

static int line_take(void *user, const char *section, const char *name, const char *value)
{
    struct reading *reading = user;
    const struct settings_source source = {SETTINGS_FILE, reading->path, reading->line};
    struct slice full = section[0] ? arena_printf(reading->settings->arena, "%s.%s", section, name)
                                   : arena_copy(reading->settings->arena, slice_of_text(name));

    if (reading->failed)
        return 0;
    if (!first_time(reading, full))
        return line_fail(reading);
    if (!settings_set(reading->settings, full, slice_of_text(value), &source, reading->err)) {
        reading->failed = true;
        return 0;
    }
    return 1;
}

bool settings_read_text(struct settings *settings, const char *path, struct slice text,
                        struct error *err)
{
    CLEANUP(memory_free) struct reading *reading = MEMORY_NEW(struct reading);
    int wrong;

    reading->settings = settings;
    reading->path = path;
    reading->rest = text;
    reading->err = err;
    wrong = ini_parse_stream(line_next, reading, line_take, reading);
    if (reading->failed)
        return false;
    if (wrong > 0)
        return error_set(err, ERROR_CONFIGURATION,
                         "%s:%d: a line is neither a [section], a name = value nor a # comment",
                         path, wrong);
    if (wrong < 0)
        return error_set(err, ERROR_CONFIGURATION, "%s: the file cannot be read", path);
    return true;
}

bool settings_read_file(struct settings *settings, const char *path, struct error *err)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, SETTINGS_FILE_MAX);
    if (!server_file_read(path, &text, err)) {
        err->code = ERROR_CONFIGURATION;
        return error_prefix(err, "--config");
    }
    return settings_read_text(settings, path, buf_slice(&text), err);
}
