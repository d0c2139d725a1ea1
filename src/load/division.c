/* All others are scaled by one factor, for a map keeps its shares in proportion: so the one with
 * the least to spare decides how much there is to give. Taking more from those who have more would
 * give more, but a span that is scaled down often, for no fault of its own, would end with nothing.
 */
#include "load/division.h"

#define ROOM 1.25        /* everybody keeps this much of what he spends or, of the others, wants */
#define KEPT_LEAST 0.1   /* others keep this much of their share */
#define GROWTH 1.1       /* pieces may want this much more than they do */
#define PIECE_LEAST 0.01 /* of the span's share: nobody is left with nothing */

/* Nobody is left with less: what is cut again and again, while others are hot, would end with so
 * little that a single write waits for minutes. */
static double share_least(const struct load_division *division)
{
    double even = 1 / (double)(division->piece_count + division->other_count);

    return MIN(even * KEPT_LEAST, division->ru > 0 ? division->ru_max / division->ru : 0);
}

/* The factor the others can be scaled by. */
static double others_factor(const struct load_division *division)
{
    double factor = KEPT_LEAST, least = share_least(division);

    for (size_t i = 0; i < division->other_count; i++) {
        const struct load_other *other = &division->others[i];
        double needed = division->ru > 0 ? other->use.wanted * ROOM / division->ru : 1;

        if (other->share > 0)
            factor = MAX(factor, MIN(MAX(needed, least) / other->share, 1.0));
    }
    return MIN(factor, 1.0);
}

/* What each needs for what it spends, by that alone where the span has no more to give, and an even
 * part of what is left over: load that comes to a quiet piece later finds it as wide as any. */
static void shares_by_use(const struct load_division *division, double *shares)
{
    size_t count = division->piece_count;
    double least = division->share * PIECE_LEAST, needed = 0, sum = 0;

    for (size_t i = 0; i < count; i++) {
        shares[i] = division->ru > 0 ? division->pieces[i].used * ROOM / division->ru : 0;
        needed += shares[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (needed > division->share)
            shares[i] *= division->share / needed;
        else
            shares[i] += (division->share - needed) / (double)count;
        shares[i] = MAX(shares[i], least);
        sum += shares[i];
    }
    for (size_t i = 0; i < count && sum > 0; i++)
        shares[i] *= division->share / sum;
}

static double share_missing(const struct load_division *division, size_t piece, double share)
{
    double wanted = MIN(division->pieces[piece].wanted * GROWTH, division->ru_max);

    return division->ru > 0 ? MAX(MAX(wanted / division->ru, share_least(division)) - share, 0.0)
                            : 0;
}

/* The piece that misses least of those not served yet. */
static size_t least_missing(const double *missing, size_t count)
{
    size_t least = count;

    for (size_t i = 0; i < count; i++)
        if (missing[i] >= 0 && (least == count || missing[i] < missing[least]))
            least = i;
    return least;
}

/* Where the others could not spare it, pieces that have more than the least give to those that have
 * not. Where all of them together are too small the others give, a tenth of what they have at most,
 * whether they can spare it or not.
 */
static double shares_raise(double *shares, size_t count, double sum, double least)
{
    double lacking = 0, above = 0;

    for (size_t i = 0; i < count; i++) {
        lacking += MAX(least - shares[i], 0.0);
        above += MAX(shares[i] - least, 0.0);
    }
    for (size_t i = 0; i < count; i++)
        if (shares[i] <= least || above <= lacking)
            shares[i] = least;
        else
            shares[i] -= (shares[i] - least) * lacking / above;
    return above <= lacking ? (double)count * least : sum;
}

/* Who misses little is served whole before who misses much is served in part: the neighbours of a
 * hot key want little. */
double load_divide(const struct load_division *division, double *ret_shares)
{
    double spare = (1 - division->share) * (1 - others_factor(division)), sum = 0;
    double missing[LOAD_PIECES_MAX];
    size_t count = division->piece_count;

    assert(count <= LOAD_PIECES_MAX);
    shares_by_use(division, ret_shares);
    for (size_t i = 0; i < count; i++)
        missing[i] = share_missing(division, i, ret_shares[i]);
    for (size_t left = count; left > 0; left--) {
        size_t piece = least_missing(missing, count);
        double given = MIN(missing[piece], spare / (double)left);

        ret_shares[piece] += given;
        spare -= given;
        missing[piece] = -1; /* served */
        sum += ret_shares[piece];
    }
    return shares_raise(ret_shares, count, sum, share_least(division));
}

/* --- Following ------------------------------------------------------------------------------- */

#define GIVEN_MOST 0.5    /* of what a span has, at once */
#define GOT_MOST_EVEN 0.5 /* of an even share, at once, if a span has less than that */
#define WORTH_LEAST 0.05  /* of what those who get it have */

static double spare_of(const struct load_follower *span, double ru, double even)
{
    double kept = MAX(span->share * (1 - GIVEN_MOST), even * KEPT_LEAST);

    kept = MAX(kept, span->use.wanted * ROOM / ru);
    return span->starved ? 0 : MAX(span->share - kept, 0.0);
}

static double missing_of(const struct load_follower *span, double ru, double ru_max, double even)
{
    double wanted = MIN(span->use.wanted * GROWTH, ru_max) / ru;

    return span->starved
               ? MIN(MAX(wanted - span->share, 0.0), MAX(span->share, even * GOT_MOST_EVEN))
               : 0;
}

bool load_follow(const struct load_follower *spans, size_t count, double ru, double ru_max,
                 double *ret_shares)
{
    double spare = 0, missing = 0, starved = 0, even = 1 / (double)MAX(count, (size_t)1), given;

    if (ru <= 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        spare += spare_of(&spans[i], ru, even);
        missing += missing_of(&spans[i], ru, ru_max, even);
        starved += spans[i].starved ? spans[i].share : 0;
    }
    given = MIN(spare, missing);
    if (given <= 0 || given < starved * WORTH_LEAST)
        return false;
    for (size_t i = 0; i < count; i++)
        ret_shares[i] = spans[i].share - spare_of(&spans[i], ru, even) * given / spare +
                        missing_of(&spans[i], ru, ru_max, even) * given / missing;
    return true;
}
