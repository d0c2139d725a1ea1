#include "cli/profile.h"

#include "base/nearest.h"

#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

struct reading {
    const char *wanted;
    struct cli_client_options *options;
    struct arena *arena;
    struct nearest nearest;
    struct error *err;
    bool found, failed;
};

/* "": there is no home to look in. */
static void path_find(char path[PATH_MAX])
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    path[0] = '\0';
    if (config && config[0])
        snprintf(path, PATH_MAX, "%s/orrery/profiles", config);
    else if (home && home[0])
        snprintf(path, PATH_MAX, "%s/.config/orrery/profiles", home);
}

static bool name_unknown(struct reading *reading, const char *name)
{
    struct nearest nearest = nearest_to(slice_of_text(name));
    static const char *const known[] = {"endpoint", "key-file",  "account",
                                        "ca",       "directory", "dev"};

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        nearest_offer(&nearest, known[i]);
    reading->failed = true;
    return error_set(reading->err, ERROR_CONFIGURATION,
                     "profile \"%s\" has \"%s\", which is none of its names: did you mean "
                     "\"%s\"?",
                     reading->wanted, name, nearest.name ? nearest.name : "endpoint");
}

static bool flag_read(struct reading *reading, const char *value)
{
    if (strcmp(value, "true") == 0)
        reading->options->dev = true;
    else if (strcmp(value, "false") != 0) {
        reading->failed = true;
        return error_set(reading->err, ERROR_CONFIGURATION,
                         "profile \"%s\": dev takes true or false, not \"%s\"", reading->wanted,
                         value);
    }
    return true;
}

/* Zero ends the reading, as inih has it. */
static int entry_take(void *context, const char *section, const char *name, const char *value)
{
    struct reading *reading = context;
    struct cli_client_options *options = reading->options;
    const struct {
        const char *name;
        const char **place;
    } texts[] = {{"endpoint", &options->endpoint},
                 {"key-file", &options->key_file},
                 {"account", &options->account},
                 {"ca", &options->ca},
                 {"directory", &options->directory}};

    nearest_offer(&reading->nearest, arena_text(reading->arena, slice_of_text(section)));
    if (strcmp(section, reading->wanted) != 0)
        return 1;
    reading->found = true;
    if (strcmp(name, "dev") == 0)
        return flag_read(reading, value);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(name, texts[i].name) == 0) {
            if (!*texts[i].place)
                *texts[i].place = arena_text(reading->arena, slice_of_text(value));
            return 1;
        }
    return name_unknown(reading, name);
}

static bool missing(const struct reading *reading, const char *path, struct error *err)
{
    if (reading->nearest.name)
        return error_set(err, ERROR_CONFIGURATION,
                         "there is no profile \"%s\" in %s: did you mean \"%s\"?", reading->wanted,
                         path, reading->nearest.name);
    return error_set(err, ERROR_CONFIGURATION, "there is no profile \"%s\" in %s", reading->wanted,
                     path);
}

bool cli_profile_apply(const char *name, struct cli_client_options *options, struct arena *arena,
                       struct error *err)
{
    const char *wanted = name && name[0] ? name : "default";
    struct reading reading = {.wanted = wanted,
                              .options = options,
                              .arena = arena,
                              .nearest = nearest_to(slice_of_text(wanted)),
                              .err = err};
    char path[PATH_MAX];
    int line;

    path_find(path);
    line = path[0] ? ini_parse(path, entry_take, &reading) : -1;
    if (reading.failed)
        return false;
    if (line > 0)
        return error_set(err, ERROR_CONFIGURATION, "%s:%d is no line of a file of profiles", path,
                         line);
    if (!reading.found && name && name[0])
        return line < 0 ? error_set(err, ERROR_CONFIGURATION,
                                    "there is no profile \"%s\": there is no file %s", name, path)
                        : missing(&reading, path, err);
    return true;
}
