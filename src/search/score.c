#include "search/score.h"

#include <math.h>

/* As everybody has them: how soon a word that is there often counts no more, and how much a long
 * text counts less. */
static const double SATURATION = 1.2, LENGTH_SHARE = 0.75;

double search_score_weight(double texts, double hits)
{
    hits = fmin(fmax(hits, 0), texts);
    return log1p((texts - hits + 0.5) / (hits + 0.5));
}

double search_score_part(double weight, double often, double terms, double mean)
{
    return weight * often * (SATURATION + 1) /
           (often + SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * terms / mean));
}
