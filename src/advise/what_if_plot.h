/* Plot: what-if results beside each other as SVG, for a browser or a document; nothing is loaded
 * from anywhere. */
#pragma once

#include "advise/what_if.h"

struct what_if_panel {
    bool today;         /* the key it has; else another */
    struct slice title; /* the key */
    const struct what_if_result *result;
};

enum { WHAT_IF_PANELS_MAX = 4 };

/* Time from left to right, partitions from top to bottom; the darker, the more RU, on one scale for
 * all panels; what was refused is marked in red, the more the taller. Below each: its figures. */
void what_if_plot(const struct what_if_panel *panels, size_t count, struct buf *out);
