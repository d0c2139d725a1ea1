/* Words: a bounded set of names, each with a value or none, in the order they came. */
#pragma once

#include "base/slice.h"

enum { SHELL_WORDS_MAX = 512, SHELL_WORD_BYTES_MAX = 1024 * 1024 };

struct shell_words {
    char **names;  /* owned, as is each */
    char **values; /* owned; NULL where there is none */
    size_t count;
};

void shell_words_done(struct shell_words *words);

/* Adds or replaces. value data NULL: none. False: the set is full, or the word too long. */
bool shell_words_put(struct shell_words *words, struct slice name, struct slice value);
bool shell_words_remove(struct shell_words *words, struct slice name); /* false: there is none */
