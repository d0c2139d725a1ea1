/* Function: a built-in of Cosmos SQL, one row of a table.
 *
 * Arguments come evaluated. Unless a function takes undefined itself, an undefined argument makes
 * the result undefined and the function is not called; an argument of a type it does not take makes
 * it undefined too. So functions fail only at the limits of the context. */
#pragma once

#include "query/value/context.h"

struct query_implied;
struct query_implying;
struct query_operand;

enum { QUERY_ARGUMENTS_ANY = 255 };

/* For how long the same input gives the same value. */
enum query_stability {
    QUERY_STABLE,           /* for ever: computed once when the plan is built */
    QUERY_STABLE_FOR_QUERY, /* through one query: the time */
    QUERY_UNSTABLE,         /* chance, functions of the user */
};

/* Of a function that compares vectors; compilers put constants around what was written. */
enum query_vector_argument {
    QUERY_VECTOR_KIND, /* search_vectors_pack */
    QUERY_VECTOR_FIRST,
    QUERY_VECTOR_SECOND,
    QUERY_VECTOR_BRUTE, /* true: by no index */
    QUERY_VECTOR_LIST,  /* times as many candidates as rows that a graph looks for; 0: not said */
    QUERY_VECTOR_COMPARED, /* times as many that are compared by their items; 0: not said */
    QUERY_VECTOR_PRIORITY, /* of a filter, in thousandths */
    QUERY_VECTOR_ARGUMENTS
};

/* Of a function that gives BM25's score of a text. */
enum query_score_argument {
    QUERY_SCORE_LANGUAGE,
    QUERY_SCORE_TEXT,
    QUERY_SCORE_PHRASES, /* an array */
    QUERY_SCORE_TEXTS,   /* how many there are */
    QUERY_SCORE_WORDS,   /* of all texts */
    QUERY_SCORE_HITS,    /* an array: in how many texts each phrase is */
    QUERY_SCORE_ARGUMENTS
};

/* What full-text indexes know besides which items there are. */
enum query_text_function {
    QUERY_TEXT_OTHER,
    QUERY_TEXT_SCORE, /* its arguments are those of enum query_score_argument */
    QUERY_TEXT_WORDS, /* how many words a text has; language and text */
};

struct query_function {
    const char *name; /* as the manual of Cosmos DB writes it */
    uint8_t arguments_min, arguments_max;
    bool takes_undefined;
    enum query_stability stability;
    bool (*evaluate)(const struct document_value *arguments, size_t count,
                     struct query_context *context, struct document_value *ret_value,
                     struct error *err);
    /* What must be so where it is true (query/value/condition.h). NULL: nothing is known. */
    const struct query_implied *(*imply)(const struct query_operand *operands, size_t count,
                                         const struct query_implying *implying);
    /* Of one argument: what must be so of it where the result is value. NULL: nothing is known. */
    const struct query_implied *(*imply_result)(const struct query_operand *operand,
                                                const struct document_value *value,
                                                const struct query_implying *implying);
    /* What must be so where the result is a number of at most `most`. NULL: nothing is known. */
    const struct query_implied *(*imply_most)(const struct query_operand *operands, size_t count,
                                              double most, const struct query_implying *implying);
    /* On which side of a number the result is, where that takes far less than the result itself;
     * comparisons ask first. < 0: it is less, > 0: it is greater, for sure; 0: it does not tell,
     * and has counted no work. NULL: it never does. */
    bool (*side)(const struct document_value *arguments, double number,
                 struct query_context *context, int *ret_side, struct error *err);
    bool costly;         /* costs more than its arguments have bytes: not for event loops */
    bool takes_vectors;  /* its arguments are those of enum query_vector_argument */
    bool takes_language; /* its first argument is the language of the path that follows, which
                            compilers put there */
    enum query_text_function text;
    const struct query_function *in_plane; /* the same where coordinates are in a plane; NULL: it
                                              makes no difference */
};

/* The function of that name, without case; NULL: there is none. Aggregates are none of these
 * (query/value/aggregate.h). */
const struct query_function *query_function_find(struct slice name);

/* The text of an identity (identity.c). No query can name it. */
extern const struct query_function query_function_identity;
