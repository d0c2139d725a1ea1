/* What is only an argument or only a result: traversers, predicates, strategies, lambdas,
 * cardinalities with a value, metrics. */
#pragma once

#include "front/gremlin/value/value.h"

/* --- Results ---------------------------------------------------------------------------------- */

struct gremlin_traverser {
    struct gremlin_object object;
    struct gremlin_value value;
    int64_t bulk;
};

struct gremlin_value gremlin_traverser_new(struct gremlin_heap *heap, struct gremlin_value value,
                                           int64_t bulk);

static inline const struct gremlin_traverser *gremlin_traverser(struct gremlin_value value)
{
    return (const struct gremlin_traverser *)value.object;
}

/* GREMLIN_METRICS (profile) and GREMLIN_EXPLANATION: the map that formats show. */
struct gremlin_report {
    struct gremlin_object object;
    struct gremlin_value map;
};

struct gremlin_value gremlin_report_new(struct gremlin_heap *heap, enum gremlin_type type,
                                        struct gremlin_value map);

static inline const struct gremlin_report *gremlin_report(struct gremlin_value value)
{
    return (const struct gremlin_report *)value.object;
}

/* --- Predicates ------------------------------------------------------------------------------- */

enum gremlin_predicate_name {
#define GREMLIN_PREDICATE_ROW(name, text, of_text) GREMLIN_P_##name,
#include "front/gremlin/value/predicates.def"
#undef GREMLIN_PREDICATE_ROW
    GREMLIN_P_COUNT
};

/* The values: one of most; two of inside, outside, between; any number of within and without (a
 * single collection given to these is its items already); predicates of and, or; one of not.
 * `listed` says that within and without were given a list or several values, not a single one: in
 * where() a single string is a label. */
struct gremlin_predicate {
    struct gremlin_object object;
    enum gremlin_predicate_name name;
    bool listed;
    uint32_t count;
    struct gremlin_value values[];
};

/* False: no predicate of that name, or one that does not take such values. The values are
 * referenced. */
NODISCARD bool gremlin_predicate_new(struct gremlin_heap *heap, struct slice name,
                                     const struct gremlin_value *values, size_t count,
                                     struct gremlin_value *ret_value, struct error *err);
struct slice gremlin_predicate_text(enum gremlin_predicate_name name);
bool gremlin_predicate_of_text(enum gremlin_predicate_name name);

static inline const struct gremlin_predicate *gremlin_predicate(struct gremlin_value value)
{
    return (const struct gremlin_predicate *)value.object;
}

/* --- Arguments -------------------------------------------------------------------------------- */

struct gremlin_strategy {
    struct gremlin_object object;
    struct gremlin_value name;          /* "SubgraphStrategy": a string, without package */
    struct gremlin_value configuration; /* a map */
};

/* Is it the name of a class of strategies: letters, digits, dots, and "Strategy" at the end of its
 * last part? Formats take no others. */
bool gremlin_strategy_is_name(struct slice name);
/* A fully qualified class name is cut to its last part. */
struct gremlin_value gremlin_strategy_new(struct gremlin_heap *heap, struct slice name,
                                          struct gremlin_value configuration);

static inline const struct gremlin_strategy *gremlin_strategy(struct gremlin_value value)
{
    return (const struct gremlin_strategy *)value.object;
}

struct gremlin_lambda {
    struct gremlin_object object;
    struct gremlin_value script, language; /* strings */
    int32_t arguments;
};

struct gremlin_value gremlin_lambda_new(struct gremlin_heap *heap, struct slice script,
                                        struct slice language, int32_t arguments);

static inline const struct gremlin_lambda *gremlin_lambda(struct gremlin_value value)
{
    return (const struct gremlin_lambda *)value.object;
}

struct gremlin_cardinal {
    struct gremlin_object object;
    enum gremlin_enum_word cardinality;
    struct gremlin_value value;
};

struct gremlin_value gremlin_cardinal_new(struct gremlin_heap *heap,
                                          enum gremlin_enum_word cardinality,
                                          struct gremlin_value value);

static inline const struct gremlin_cardinal *gremlin_cardinal(struct gremlin_value value)
{
    return (const struct gremlin_cardinal *)value.object;
}
