/* Heat shares: how the throughput of a container is divided when one of its spans is cut, so that
 * nobody is slower afterwards than before. Pure. */
#pragma once

#include "base/attrs.h"

enum { HEAT_PIECES_MAX = 64 };

/* What was spent, in RU/s, and what would have been without refusals. */
struct heat_use {
    double used, wanted;
};

/* A span that stays as it is. */
struct heat_other {
    double share;
    struct heat_use use;
};

struct heat_division {
    double ru;     /* of the container, per second */
    double ru_max; /* that one physical partition may give */
    double share;  /* of the span that is cut */
    const struct heat_use *pieces;
    size_t piece_count;
    const struct heat_other *others;
    size_t other_count;
};

/* Every piece gets of the span's share what it spends, with some room, and what is left over is
 * divided evenly; where nothing is, they get what they spent of the span's RU. What others do not
 * need (a quarter above what they want, a tenth of their share at least) goes to pieces that want
 * more, up to what one partition may give. ret_shares: of the pieces; returns their sum, which the
 * shares of the others are scaled down to leave room for. */
double heat_shares_divide(const struct heat_division *division, double *ret_shares);
