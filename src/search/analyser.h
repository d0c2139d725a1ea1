/* Analyser: a text as the terms that full-text search compares.
 *
 * Words are runs of letters, marks and digits. They are lower case, those that say nothing in their
 * language (the, and, ...) are left out, and the rest is brought to its stem by Snowball's rules.
 * What is left out leaves no gap: the terms on both sides of it are next to each other.
 *
 * An analyser belongs to one thread. */
#pragma once

#include "base/slice.h"

enum { SEARCH_TERM_MAX = 128 }; /* bytes of a word that count */

struct search_analyser; /* owned */

/* Of a language as policies name it (en-US; of a region that has no rules of its own those of the
 * language). NULL: there is none. */
struct search_analyser *search_analyser_new(struct slice language);
void search_analyser_free(struct search_analyser *analyser); /* NULL is fine */
CLEANUP_FN(struct search_analyser *, search_analyser_free)

/* The same with other rules. SEARCH_KEEP_CASE: words stay as they are written; SEARCH_DROP_MARKS:
 * without accents, before their stem is looked for. "none" is a language here: words are what they
 * are, none is left out. */
enum { SEARCH_KEEP_CASE = 1, SEARCH_DROP_MARKS = 2 };
struct search_analyser *search_analyser_open(struct slice language, unsigned flags);

/* How a language is called here, by its name in English ("german", "none") or its code, in
 * whichever case; data NULL: it is not known. */
struct slice search_language_code(struct slice name);

/* Is there one? */
bool search_language_is_known(struct slice language);
/* Names of the languages, separated by commas. */
struct slice search_languages(void);

/* A text being read. */
struct search_text {
    struct search_analyser *analyser;
    struct slice rest;
};

/* The next term, good until the next is read. False: there is no other. */
bool search_text_next(struct search_text *text, struct slice *ret_term);
