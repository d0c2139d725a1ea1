/* Bounds are applied first and the difference is settled afterwards, in one direction only: either
 * something is left over or something is missing, never both. So it ends after at most as many
 * rounds as there are claims. */
#include "definition/shares.h"

/* Amounts smaller than this part of the whole are rounding. */
#define NOTHING 1e-12

static double least_of(const struct shares_demand *claim)
{
    return MIN(claim->least, claim->most);
}

/* The wishes scaled to add up to the whole, each within its bounds. */
static double wishes_bound(const struct shares_demand *claims, size_t count, double ru,
                           double *parts)
{
    double wishes = 0, sum = 0;
    size_t able = 0;

    for (size_t i = 0; i < count; i++) {
        wishes += claims[i].most > 0 ? claims[i].wish : 0;
        able += claims[i].most > 0;
    }
    for (size_t i = 0; i < count; i++) {
        double wish = wishes > 0 ? ru * claims[i].wish / wishes : ru / (double)MAX(able, (size_t)1);

        parts[i] = MIN(MAX(wish, least_of(&claims[i])), claims[i].most);
        sum += parts[i];
    }
    return sum;
}

static void excess_take(const struct shares_demand *claims, size_t count, double excess,
                        double *parts)
{
    double above = 0, leasts = 0, part;

    for (size_t i = 0; i < count; i++) {
        above += parts[i] - least_of(&claims[i]);
        leasts += least_of(&claims[i]);
    }
    if (above > excess) {
        for (size_t i = 0; i < count; i++)
            parts[i] -= (parts[i] - least_of(&claims[i])) * excess / above;
        return;
    }
    part = leasts > 0 ? (leasts + above - excess) / leasts : 0;
    for (size_t i = 0; i < count; i++)
        parts[i] = least_of(&claims[i]) * part;
}

/* Gives those with room an even part of what is left over; false: nobody has any. */
static bool rest_give(const struct shares_demand *claims, size_t count, double *rest, double *parts)
{
    size_t open = 0;
    double even;

    for (size_t i = 0; i < count; i++)
        open += parts[i] < claims[i].most;
    if (open == 0)
        return false;
    even = *rest / (double)open;
    for (size_t i = 0; i < count; i++) {
        double given = MIN(even, claims[i].most - parts[i]);

        if (parts[i] >= claims[i].most)
            continue;
        parts[i] = given < even ? claims[i].most : parts[i] + given;
        *rest -= given;
    }
    return true;
}

void shares_level(const struct shares_demand *claims, size_t count, double ru, double *ret_ru)
{
    double sum = wishes_bound(claims, count, ru, ret_ru), rest = ru - sum;

    if (rest < 0)
        excess_take(claims, count, -rest, ret_ru);
    while (rest > ru * NOTHING && rest_give(claims, count, &rest, ret_ru))
        ;
}
