/* A filter as a tree, from within the folder.
 *
 * Predicates with a path look for it in a document; those without are asked of one value itself, as
 * below $elemMatch of operators. */
#pragma once

#include "front/mongo/match/match.h"
#include "front/mongo/match/near.h"
#include "front/mongo/match/text.h"
#include "search/geometry.h"

enum { MATCH_DEPTH_MAX = 100, MATCH_COMPONENTS_MAX = 200 };

enum match_kind {
    MATCH_ALL,    /* of the children; of none: true */
    MATCH_ANY,    /* of the children; of none: false */
    MATCH_NOT,    /* the one child does not hold */
    MATCH_SAMPLE, /* by chance */
    MATCH_EXPRESSION,
    MATCH_SCHEMA,
    MATCH_NEAR, /* of the whole document, as those before */
    MATCH_TEXT,
    /* Predicates. */
    MATCH_EQUAL,
    MATCH_LESS,
    MATCH_LESS_EQUAL,
    MATCH_GREATER,
    MATCH_GREATER_EQUAL,
    MATCH_IN,
    MATCH_REGEX,
    MATCH_MOD,
    MATCH_EXISTS,
    MATCH_TYPE,
    MATCH_BITS,
    MATCH_GEO,
    /* Predicates on arrays as a whole: their elements are not asked one by one. */
    MATCH_SIZE,
    MATCH_ELEMENT, /* the child holds for one element */
    MATCH_ELEMENT_OBJECT,
    MATCH_OBJECT, /* the value is an object and the child holds for it */
};

struct match_component {
    struct slice name;
    int64_t index; /* -1: the name is no array index */
};

struct match_path {
    struct slice text;
    size_t count;
    const struct match_component *components;
    const struct query_expression *first; /* the first component as a path of the row; NULL: none */
};

enum match_bits {
    MATCH_BITS_ALL_SET,
    MATCH_BITS_ALL_CLEAR,
    MATCH_BITS_ANY_SET,
    MATCH_BITS_ANY_CLEAR
};

/* What is asked of a figure, of the one that is given. */
enum match_geo {
    MATCH_GEO_WITHIN,
    MATCH_GEO_MEETS,
    MATCH_GEO_NEAR /* at most so far from it */
};

struct match_schema;

struct match_node {
    enum match_kind kind;
    const struct match_path *path; /* NULL: the value itself */
    const struct match_node *const *children;
    size_t count;
    struct document_value value; /* of comparisons; of $in with one value, that */
    /* Of comparisons and $in whose operands hold texts: what those, and the values they are
     * compared with, are brought into comparison form by. NULL: they are compared as they are. */
    const struct document_collator *collator;
    struct document_value compared; /* the operand of a comparison in that form */
    union {
        struct {
            const struct document_value
                *values; /* in comparison form and MongoDB's order, each once */
            size_t count;
            bool null;
        } in; /* regular expressions are children */
        struct {
            struct slice pattern, options; /* as they came */
            struct slice modifiers;        /* as query_regex_get takes them */
        } regex;
        struct {
            int64_t divisor, remainder;
        } mod;
        struct {
            uint32_t types; /* bits of match_type_bit */
        } type;
        struct {
            enum match_bits how;
            const uint32_t *positions;
            size_t count;
        } bits;
        struct {
            enum match_geo how;
            const struct search_rules *rules;
            double distance;
        } geo; /* the value is the figure */
        int64_t size;
        double rate;
        const struct query_expression *expression;
        const struct match_schema *schema;
        const struct mongo_text *text;
        const struct mongo_near *near;
    };
};

struct mongo_match {
    const struct match_node *root;
    uint32_t slot;
    bool sampled;                                      /* the same document may match or not */
    const struct query_expression *const *expressions; /* of $expr, that slots are known by */
    size_t expression_count;
    const struct mongo_near *near; /* NULL: none is asked */
};

/* What is compiled, and how deep it is in it. */
struct match_parse {
    struct query_build *build;
    const struct mongo_match_options *options;
    const struct document_collator *collator; /* NULL: none */
    struct error *err;
    unsigned depth;
    bool inner;    /* below $elemMatch, where paths begin at an element */
    bool optional; /* below $or, $nor or $not: what is said may not hold */
    const struct mongo_near *near;
    bool sampled;
    const struct query_expression **expressions;
    size_t expression_count;
};

/* A filter document; what $jsonSchema, $elemMatch and conditions of $pull hold. NULL: refused. */
const struct match_node *match_parse_filter(struct match_parse *parse, struct slice filter);
const struct match_node *match_parse_operators(struct match_parse *parse,
                                               const struct match_path *path,
                                               struct slice operators);
struct match_node *match_node_new(struct match_parse *parse, enum match_kind kind,
                                  const struct match_path *path);
/* What a comparison is with; copied. */
bool match_operand_set(struct match_parse *parse, struct match_node *node,
                       const struct document_value *value);
/* Is it an object of operators, {$gt: 1}? And one whose operators are asked of a value, not of a
 * document as $or is? */
bool match_is_operators(const struct document_value *value);
bool match_is_of_value(const struct document_value *value);

/* The rest of the operators; each fills a node or refuses. */
struct match_node *match_parse_type(struct match_parse *parse, const struct match_path *path,
                                    const struct document_value *value);
struct match_node *match_parse_bits(struct match_parse *parse, const struct match_path *path,
                                    struct slice name, enum match_bits how,
                                    const struct document_value *value);
struct match_node *match_parse_mod(struct match_parse *parse, const struct match_path *path,
                                   const struct document_value *value);
const struct match_node *match_parse_geo(struct match_parse *parse, const struct match_path *path,
                                         struct slice name, const struct document_value *value);
/* $near and $nearSphere, with $minDistance and $maxDistance beside them among the operators. */
const struct match_node *match_parse_near(struct match_parse *parse, const struct match_path *path,
                                          struct slice operators, struct slice name,
                                          const struct document_value *value);
struct match_node *match_parse_size(struct match_parse *parse, const struct match_path *path,
                                    const struct document_value *value);
struct match_node *match_parse_regex(struct match_parse *parse, const struct match_path *path,
                                     struct slice pattern, struct slice options);

/* A set of types; "number" is several. */
uint32_t match_type_bit(enum document_type type);
bool match_type_named(struct slice alias, uint32_t *ret_types);

/* --- Evaluating ------------------------------------------------------------------------------ */

struct match_evaluation {
    struct query_context *context;
    int64_t position; /* of the first array on the way to the last match; -1: none */
    bool failed;
    struct error *err;
};

/* Does it hold for the value? False as well where the evaluation failed. */
bool match_node_holds(struct match_evaluation *evaluation, const struct match_node *node,
                      const struct document_value *value);

/* One predicate of one value, as it stands; NULL: nothing is there. */
bool match_value_holds(struct match_evaluation *evaluation, const struct match_node *node,
                       const struct document_value *value);

/* $geoWithin and $geoIntersects of one value. */
bool match_geo_holds(struct match_evaluation *evaluation, const struct match_node *node,
                     const struct document_value *value);

/* Type bracketing: comparisons are between values of one bracket. */
uint8_t match_bracket(enum document_type type);

/* --- $jsonSchema ----------------------------------------------------------------------------- */

const struct match_schema *match_schema_parse(struct match_parse *parse, struct slice schema);
bool match_schema_holds(struct match_evaluation *evaluation, const struct match_schema *schema,
                        const struct document_value *value);

/* --- Ranges ---------------------------------------------------------------------------------- */

const struct query_implied *match_node_imply(const struct match_node *node,
                                             const struct query_implying *implying);
