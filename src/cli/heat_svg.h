/* Heat as a picture: time from left to right, keys from top to bottom, colour for how much; with
 * marks where partitions were split, merged, moved or isolated. A function of what it is given, and
 * nothing else: no script, no font file, no address in it. */
#pragma once

#include "base/buf.h"
#include "base/slice.h"

/* Something coloured: rows are counted from 0 at the top. */
struct cli_heat_cell {
    int64_t from_ms, to_ms;
    double top, bottom; /* rows */
    double value;
    struct slice text; /* what a pointer resting on it is told */
};

struct cli_heat_mark {
    int64_t at_ms;
    double top, bottom;
    char letter; /* S, M, V, I, R or K: split, merge, move, isolate, reroute, re-key */
    struct slice text;
};

struct cli_heat_picture {
    struct slice title, subtitle;
    struct slice unit; /* of values: "RU/s" */
    int64_t from_ms, to_ms;
    struct slice *rows; /* a label each */
    size_t row_count;
    bool between; /* labels stand at the upper edge of their rows: they are bounds */
    const struct cli_heat_cell *cells;
    size_t cell_count;
    const struct cli_heat_mark *marks;
    size_t mark_count;
};

void cli_heat_svg(const struct cli_heat_picture *picture, struct buf *out);

/* Of a value from 0 to 1: pale to dark. */
struct cli_heat_colour {
    uint8_t red, green, blue;
};
struct cli_heat_colour cli_heat_svg_colour(double part);
