/* Regular expressions of Perl, by PCRE2, bounded: a pattern that explodes ends at a limit of steps,
 * not after hours. Compiled ones are kept for the life of a context, some dozens of them. */
#pragma once

#include "query/value/context.h"

struct query_regex_cache; /* owned by a context */

void query_regex_cache_free(struct query_regex_cache *cache); /* NULL is fine */

/* Where a match is: bytes from and to of the whole and of each group; SIZE_MAX: the group took no
 * part. Good until the next match in this context. */
struct query_regex_match {
    size_t group_count; /* the whole match is group 0 */
    const size_t *places;
};

struct query_regex; /* borrowed from the context's cache until the next query_regex_get */

/* The compiled pattern. modifiers of m, s, i, x. NULL: it is no regular expression, or a modifier
 * is none of these; that is no error. */
struct query_regex *query_regex_get(struct query_context *context, struct slice pattern,
                                    struct slice modifiers);

/* Looks for a match at or behind byte `from`. ERROR_QUERY_LIMIT: the pattern takes too many steps
 * on this text. */
NODISCARD bool query_regex_find(struct query_context *context, struct query_regex *regex,
                                struct slice text, size_t from, bool *ret_found,
                                struct query_regex_match *ret_match, struct error *err);
