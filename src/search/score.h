/* Score: BM25, how well a text fits phrases. What is known of all texts comes from whoever asks; so
 * a score is the same wherever the text lies, and whether the text was read or its index entries.
 */
#pragma once

#include "base/attrs.h"

/* How much a phrase counts that is in `hits` of all texts. */
double search_score_weight(double texts, double hits);

/* What a phrase of that weight adds to the score of a text of so many terms that has it so often;
 * mean: terms of a text on average, above 0. */
double search_score_part(double weight, double often, double terms, double mean);
