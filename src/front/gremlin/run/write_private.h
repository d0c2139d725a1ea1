/* What the steps that write share: settings, properties that are computed for each traverser. */
#pragma once

#include "front/gremlin/run/compile_private.h"

enum setting_kind { SETS_PROPERTY, SETS_ID, SETS_LABEL };

/* A key and its value, which may be computed for each traverser. */
struct setting {
    enum setting_kind kind;
    enum gremlin_enum_word cardinality; /* 0: not said */
    struct slice key;
    struct gremlin_value value;
    struct part *part; /* of the value; NULL: the value above */
    const struct gremlin_value *meta; /* key, value, key, value ... */
    struct part **meta_parts;         /* of the values; each NULL: constant */
    size_t meta_count;                /* pairs */
};

struct settings {
    struct setting *items;
    size_t count, capacity;
};

/* Settings as the graph takes them, for one traverser. Values are held until released. */
struct resolved {
    struct gremlin_value id; /* null: not set */
    struct gremlin_value label;
    struct gremlin_assignment *items;
    size_t count, room;
};

struct setting *settings_add(struct compiler *compiler, struct settings *settings);
/* What a property() says. */
bool settings_of(struct compiler *compiler, struct step *step, const struct raw *raw,
                 struct settings *settings, bool is_new, struct error *err);
bool settings_resolve(struct run *run, const struct settings *settings,
                      const struct traverser *traverser, struct resolved *ret_resolved,
                      struct error *err);
void resolved_release(struct run *run, struct resolved *resolved);
bool assignment_add(struct run *run, struct resolved *resolved, enum gremlin_enum_word cardinality,
                    struct slice key, struct gremlin_value value); /* borrowed */
/* Writes are about to happen: refused where the run may only read. */
bool write_allowed(struct run *run, const char *what, struct error *err);
/* The vertex that an argument of from(), to() or a map of mergeE() stands for. */
bool vertex_resolve(struct run *run, struct gremlin_value value, struct gremlin_value *ret_vertex,
                    bool *ret_found, struct error *err);
/* What PartitionStrategy adds to what is made. */
void strategy_write(struct run *run, struct resolved *resolved);
