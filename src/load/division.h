/* Heat shares: how the throughput of a container is divided when one of its spans is cut, so that
 * nobody is slower afterwards than before. Pure. */
#pragma once

#include "base/attrs.h"

enum { LOAD_PIECES_MAX = 64 };

/* What was spent, in RU/s, and what would have been without refusals. */
struct load_use {
    double used, wanted;
};

/* A span that stays as it is. */
struct load_other {
    double share;
    struct load_use use;
};

struct load_division {
    double ru;     /* of the container, per second */
    double ru_max; /* that one physical partition may give */
    double share;  /* of the span that is cut */
    const struct load_use *pieces;
    size_t piece_count;
    const struct load_other *others;
    size_t other_count;
};

/* Every piece gets of the span's share what it spends, with some room, and what is left over is
 * divided evenly; where nothing is, they get what they spent of the span's RU. What others do not
 * need (a quarter above what they want, a tenth of their share at least) goes to pieces that want
 * more, up to what one partition may give, or have less than a tenth of an even share. What the
 * others cannot spare of that tenth the other pieces give. ret_shares: of the pieces; returns their
 * sum, which the shares of the others are scaled down to leave room for. */
double load_divide(const struct load_division *division, double *ret_shares);

/* A span whose share may follow its load. */
struct load_follower {
    double share;
    struct load_use use; /* the most of the last minutes */
    bool starved;        /* it has had to refuse requests for some minutes in a row */
};

/* Gives spans that are starved what the others can spare, without any cut. Nobody gives more than
 * half of what he has, or keeps less than a quarter above what he wanted or a tenth of an even
 * share; nobody gets more than one partition may give, or more at once than he has or half of an
 * even share. False: there is nothing to give, or too little to be worth it; else ret_shares add
 * up to what they did. */
bool load_follow(const struct load_follower *spans, size_t count, double ru, double ru_max,
                 double *ret_shares);
