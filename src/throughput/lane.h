/* Lane: one rate being spent, second by second, and the places of those who wait for it.
 *
 * A second begins with the first request that comes when nothing is owed. Its budget may be spent
 * at any speed within it and the last request may overshoot. Whoever comes later is refused, told
 * exactly when what is owed will be paid off, and given a place: budget set aside for that moment,
 * one place after the other at the pace of the rate. Newcomers do not get what is set aside.
 *
 * Not thread-safe: its owner's lock guards it. Times are nanoseconds of the monotonic clock. */
#pragma once

#include "base/attrs.h"

enum { LANE_PLACES_MAX = 1024 };

struct lane_places; /* opaque, owned by the lane; made at a refusal, freed when
                     * the last place is gone */

struct lane {
    int64_t rate_cru;      /* per second, at least 1 */
    int64_t paid_ns;       /* up to here the rate is spent; ahead of now: owed */
    int64_t second_end_ns; /* requests are taken while paid_ns is before this */

    int64_t burst_rate_cru; /* per second while there is credit; at or below rate_cru: none */
    int64_t credit_milli, credit_max_milli; /* thousandths of a cru */

    struct lane_places *places;
    int64_t crowded_until_ns; /* somebody had to go without a place */
};

/* Who asks. The ticket is the same for every attempt of one request, 0 where that is not known. */
struct lane_request {
    uint64_t ticket;
    int64_t expected_cru; /* what to set aside if it has to wait */
    bool low;             /* comes after all others */
    int64_t ahead_cru;    /* of a low one: budget it must leave to others in this second */
    bool keeps_place;     /* false: refused ones are told a time but nothing is set aside */
};

struct lane_answer {
    bool admitted;
    int32_t place;   /* the place it had, which lane_take gives up; -1: none */
    int64_t slot_ns; /* refused: when to come again, always after now */
};

/* What a request took, so that it can be given back. */
struct lane_spent {
    int64_t time_ns;
    int64_t credit_milli;
};

void lane_init(struct lane *lane, int64_t rate_cru);
void lane_done(struct lane *lane);

/* Brings the lane up to now: drops places nobody claimed, turns unused time into credit. First of
 * every use; time that runs backwards counts as standing still. */
void lane_advance(struct lane *lane, int64_t now_ns);

/* May it spend? A refusal may give it a place; nothing else changes, so that several lanes can be
 * asked before any is taken from. */
struct lane_answer lane_ask(struct lane *lane, const struct lane_request *request, int64_t now_ns);

/* Spends, whether or not it was admitted. */
struct lane_spent lane_take(struct lane *lane, int32_t place, int64_t cru, int64_t now_ns);
void lane_give_back(struct lane *lane, struct lane_spent spent);

/* Another rate from now on. What is owed stays the same number of RU. */
void lane_set_rate(struct lane *lane, int64_t rate_cru, int64_t now_ns);

/* Saves at most max_cru of unused budget and spends it at burst_rate_cru; 0 switches it off. */
void lane_set_burst(struct lane *lane, int64_t burst_rate_cru, int64_t max_cru);

/* Takes over a part, from 0 to 1, of what another lane owes and has saved; places stay behind. Both
 * are at now. */
void lane_take_over(struct lane *lane, const struct lane *from, double part, int64_t now_ns);

/* Places set aside and not claimed yet. */
uint32_t lane_waiting(const struct lane *lane);
