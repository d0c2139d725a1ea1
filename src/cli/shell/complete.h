/* Complete: what a word at the prompt may become. */
#pragma once

#include "cli/shell/shell.h"

enum { SHELL_CANDIDATES_MAX = 512 };

struct shell_candidates {
    size_t typed;                            /* bytes of the word, at the end of the line */
    struct slice list[SHELL_CANDIDATES_MAX]; /* in the arena, sorted, each once */
    size_t count;
    bool open; /* the word may go on behind a candidate */
};

/* Candidates for the word at the end of line. Databases and containers are asked of the server,
 * whose errors make them none. */
void shell_complete(struct shell *shell, struct slice line, struct arena *arena,
                    struct shell_candidates *ret_candidates);

/* What all candidates begin with, however letters are written; at least what was typed. */
struct slice shell_candidates_common(const struct shell_candidates *candidates);
