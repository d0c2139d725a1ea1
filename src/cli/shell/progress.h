/* Progress: a bar on the terminal while items go in or out, and what became of them at the end. */
#pragma once

#include "base/attrs.h"

#include <stdio.h>

struct shell_progress {
    const char *doing, *done; /* "importing", "imported" */
    bool quiet;
    FILE *json;    /* where the sums go as JSON, instead of being told; NULL: they are told */
    bool terminal; /* there is one to draw on */
    int64_t begun_ms, drawn_ms;
    uint64_t items, failed, throttled;
    double charge;
    double share; /* of the work, 0 to 1; below 0: nobody knows */
};

void shell_progress_begin(struct shell_progress *progress, const char *doing, const char *done,
                          bool quiet, int64_t now_ms);

/* Draws, unless it did so a moment ago. */
void shell_progress_show(struct shell_progress *progress, int64_t now_ms);

/* Takes the bar away. */
void shell_progress_clear(const struct shell_progress *progress);

/* The same, and says on standard error what was done. */
void shell_progress_end(struct shell_progress *progress, int64_t now_ms);

/* "1,234,567" */
enum { SHELL_COUNT_SIZE = 32 };
const char *shell_count(uint64_t number, char text[SHELL_COUNT_SIZE]);
