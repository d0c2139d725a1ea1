/* What the steps that write share: settings, properties that are computed for each traverser. */
#pragma once

#include "front/gremlin/run/compile_private.h"

enum gremlin_setting_kind { SETS_PROPERTY, SETS_ID, SETS_LABEL };

/* A key and its value, which may be computed for each traverser. */
struct gremlin_setting {
    enum gremlin_setting_kind kind;
    enum gremlin_enum_word cardinality; /* 0: not said */
    struct slice key;
    struct gremlin_value value;
    struct gremlin_part *part;        /* of the value; NULL: the value above */
    const struct gremlin_value *meta; /* key, value, key, value ... */
    struct gremlin_part **meta_parts; /* of the values; each NULL: constant */
    size_t meta_count;                /* pairs */
};

struct gremlin_settings {
    struct gremlin_setting *items;
    size_t count, capacity;
};

/* Settings as the graph takes them, for one traverser. Values are held until released. */
struct gremlin_resolved {
    struct gremlin_value id; /* null: not set */
    struct gremlin_value label;
    struct gremlin_assignment *items;
    size_t count, room;
};

struct gremlin_setting *gremlin_settings_add(struct gremlin_compiler *compiler,
                                             struct gremlin_settings *settings);
/* What a property() says. */
bool gremlin_settings_of(struct gremlin_compiler *compiler, struct gremlin_step *step,
                         const struct gremlin_raw *raw, struct gremlin_settings *settings,
                         bool is_new, struct error *err);
bool gremlin_settings_resolve(struct gremlin_run *run, const struct gremlin_settings *settings,
                              const struct gremlin_walker *traverser,
                              struct gremlin_resolved *ret_resolved, struct error *err);
void gremlin_resolved_release(struct gremlin_run *run, struct gremlin_resolved *resolved);
bool gremlin_assignment_add(struct gremlin_run *run, struct gremlin_resolved *resolved,
                            enum gremlin_enum_word cardinality, struct slice key,
                            struct gremlin_value value); /* borrowed */
/* Writes are about to happen: refused where the run may only read. */
bool gremlin_write_allowed(struct gremlin_run *run, const char *what, struct error *err);
/* The vertex that an argument of from(), to() or a map of mergeE() stands for. */
bool gremlin_vertex_resolve(struct gremlin_run *run, struct gremlin_value value,
                            struct gremlin_value *ret_vertex, bool *ret_found, struct error *err);
/* What PartitionStrategy adds to what is made. */
void gremlin_strategy_write(struct gremlin_run *run, struct gremlin_resolved *resolved);
