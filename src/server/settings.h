/* Settings: what an operator can choose, read once at start and constant from then on.
 *
 * Four layers, each over the one before: defaults, a configuration file, the environment
 * (ORRERY_SECTION_NAME), the command line. A name nobody knows is an error that suggests the
 * nearest one; a value out of range is an error that names the range. settings.def lists them all;
 * besides, `node.NAME = URL` names a storage node and may occur for many names, and
 * `node.NAME.ATTRIBUTE = VALUE` says what it is like (cluster/node.h). */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum {
    SETTINGS_NODES_MAX = 64,
    SETTINGS_ATTRIBUTES_MAX = 320,   /* of all nodes */
    SETTINGS_VALUE_MAX = 4096,       /* bytes */
    SETTINGS_FILE_MAX = 1024 * 1024, /* bytes */
    SETTINGS_NODE_NAME_MAX = 32,     /* bytes */
};

enum settings_layer {
    SETTINGS_DEFAULT,
    SETTINGS_FILE,
    SETTINGS_ENVIRONMENT,
    SETTINGS_COMMAND_LINE,
};

struct settings_node {
    const char *name; /* small letters, digits and hyphens */
    const char *url;
    enum settings_layer layer;
};

/* What is said of a node, whether it is named here or was added to a running server. */
struct settings_attribute {
    const char *node, *name, *value;
    enum settings_layer layer;
};

/* Members as in settings.def; texts live as long as the settings. */
struct settings {
#define SETTING_BOOL(section, name, ...) bool section##_##name;
#define SETTING_INT(section, name, ...) int64_t section##_##name;
#define SETTING_SIZE(section, name, ...) int64_t section##_##name;
#define SETTING_DURATION(section, name, ...) int64_t section##_##name;
#define SETTING_CHOICE(section, name, ...) int64_t section##_##name;
#define SETTING_TEXT(section, name, ...) const char *section##_##name;
#include "server/settings_rows.h"
    struct settings_node nodes[SETTINGS_NODES_MAX]; /* in the order they were named */
    size_t node_count;
    struct settings_attribute attributes[SETTINGS_ATTRIBUTES_MAX];
    size_t attribute_count;
    struct arena *arena; /* owns the texts */
};

/* Where a value came from, for messages and precedence. */
struct settings_source {
    enum settings_layer layer;
    const char *place; /* the file, the variable or the option */
    unsigned line;     /* of a file, from 1; else 0 */
};

/* All defaults. */
struct settings *settings_new(void);
void settings_free(struct settings *settings); /* NULL is fine */
CLEANUP_FN(struct settings *, settings_free)

/* Sets one by its name, "log.level" or "node.local". ERROR_CONFIGURATION: the name is not known,
 * the value is not of its kind or out of range, or a node is named twice in one layer. */
NODISCARD bool settings_set(struct settings *settings, struct slice name, struct slice value,
                            const struct settings_source *source, struct error *err);

/* "name=value", as --set takes it. */
NODISCARD bool settings_assign(struct settings *settings, struct slice assignment,
                               struct error *err);

/* Reads `[section]` and `name = value` lines. Nothing is promised about settings after an error. */
NODISCARD bool settings_read_file(struct settings *settings, const char *path, struct error *err);
NODISCARD bool settings_read_text(struct settings *settings, const char *path, struct slice text,
                                  struct error *err);

/* Reads every variable that begins with ORRERY_ out of "NAME=value" strings up to a NULL, but for
 * ORRERY_KEY and ORRERY_ENDPOINT, which are for clients. */
NODISCARD bool settings_read_environment(struct settings *settings, char *const *environment,
                                         struct error *err);

/* Appends the values that are in force as members of a JSON object, "rest.listen":"...": sizes in
 * bytes, durations in milliseconds, choices as their words. No setting is a secret; nodes, whose
 * URLs may hold one, are left out. */
void settings_print_json(const struct settings *settings, struct buf *out);

/* What `orrery help settings` shows, and docs/settings.md. */
void settings_describe(struct buf *out);
void settings_describe_markdown(struct buf *out);
