/* The state of a lane is one instant, paid_ns: the time up to which its rate has been spent.
 * Spending moves it on by charge / rate. What is owed is how far it is ahead of now; what was not
 * used is how far it has fallen behind, and becomes credit. Compared with counters per second of
 * the clock this needs no roll-over, carries debt by itself, makes the wait a subtraction, and a
 * load that begins in the middle of a second does not get two budgets within it.
 *
 * Places. If those refused were all told the end of the second they would come back together, and
 * most would be refused again. Each is told the instant at which the budget reaches it instead, and
 * a newcomer is taken only if all places fit into the current second as well. So under overload
 * spending is paced evenly, in the order of refusal, and an obedient client is refused once.
 *
 * Holders come late, or never. While there are places paid_ns may lag behind now by LAG without
 * being forfeited, so lateness costs no throughput; once it lags by LATE the holders are evidently
 * not coming, and newcomers are taken at the pace of the rate. A place is set aside until LATE
 * after its slot; its holder is still let in (the budget then owes a little) for KEPT.
 *
 * When even the places are used up, by a very large crowd or one that ignores what it is told, who
 * comes is paced as well: for a while a "second" is only a twentieth of one. Otherwise such a crowd
 * would spend each second within milliseconds, and what is delivered within ten seconds would
 * depend on where in a second they end.
 *
 * Credit is spent by moving paid_ns at the burst rate and paying for the part above the lane's own
 * rate. With that, unused time is always worth rate x time, whether or not a burst is running:
 * at a steady use u the credit changes by exactly rate - u per second.
 *
 * Places lie in a ring in the order of refusal, which is very nearly that of their slots; those
 * with a ticket are found through chains by its low bits. */
#include "throughput/lane.h"

#include "base/memory.h"

#define SECOND_NS INT64_C(1000000000)
#define MS_NS INT64_C(1000000)

#define LATE_NS (100 * MS_NS)
#define LAG_NS (200 * MS_NS)
#define KEPT_NS SECOND_NS
#define AHEAD_MAX_NS (10 * SECOND_NS) /* nothing is set aside further in the future */
#define EARLY_NS (5 * MS_NS) /* clocks and timers of clients differ from ours by that much */

/* Durations are rounded down; a second within so little of its end is used up all the same. */
#define ROUNDING_NS (20 * MS_NS / 1000)

/* Nobody is told to wait longer than a day, which also keeps times far from overflow. */
#define OWED_MAX_NS (86400 * SECOND_NS)

enum { MILLI = 1000 };

enum place_kind {
    PLACE_FREE,     /* given up; waits for the ring to turn */
    PLACE_RESERVED, /* its amount is set aside */
    PLACE_LATE,     /* no longer, but its holder is still let in */
};

struct place {
    uint64_t ticket; /* 0: anybody without one */
    int64_t slot_ns;
    int64_t cru;
    uint16_t next_in_chain;
    uint8_t kind;
    bool low;
};

struct lane_places {
    struct place all[LANE_PLACES_MAX];
    uint16_t chains[LANE_PLACES_MAX]; /* by ticket modulo their number: position + 1, 0 ends it */
    uint64_t first, late, next; /* ring: first .. late-1 are not reserved, late .. next-1 may be */
    int64_t reserved_cru[2];    /* sums, of normal and low ones */
    uint32_t reserved_count;
};

static void places_expire(struct lane_places *places, int64_t now_ns);
static int32_t places_find(const struct lane_places *places, uint64_t ticket, int64_t now_ns);
static void place_add(struct lane *lane, const struct lane_request *request, int64_t slot_ns,
                      int64_t now_ns);

/* Nanoseconds that cru take at this rate per second. */
static int64_t duration(int64_t cru, int64_t rate_cru)
{
    unsigned __int128 wide;

    if (LIKELY(cru <= INT64_MAX / SECOND_NS))
        return cru * SECOND_NS / rate_cru;
    wide = (unsigned __int128)cru * SECOND_NS / (uint64_t)rate_cru;
    return wide < OWED_MAX_NS ? (int64_t)wide : OWED_MAX_NS;
}

static int64_t multiply_divide(int64_t a, int64_t b, int64_t divisor)
{
    __int128 wide = (__int128)a * b / divisor;

    return (int64_t)MIN(MAX(wide, -(__int128)INT64_MAX), (__int128)INT64_MAX);
}

/* How far spending cru moves paid_ns, and the credit it uses. */
static struct lane_spent price_of(const struct lane *lane, int64_t cru)
{
    struct lane_spent spent = {0};
    int64_t above = lane->burst_rate_cru - lane->rate_cru;

    if (lane->credit_milli > 0 && above > 0) {
        int64_t fast = multiply_divide(lane->credit_milli, lane->burst_rate_cru, above) / MILLI;

        if (cru <= fast) {
            spent.credit_milli = multiply_divide(cru * MILLI, above, lane->burst_rate_cru);
            spent.time_ns = duration(cru, lane->burst_rate_cru);
            return spent;
        }
        spent.credit_milli = lane->credit_milli;
        spent.time_ns = duration(fast, lane->burst_rate_cru);
        cru -= fast;
    }
    spent.time_ns += duration(cru, lane->rate_cru);
    return spent;
}

void lane_init(struct lane *lane, int64_t rate_cru)
{
    *lane = (struct lane){.rate_cru = MAX(rate_cru, 1), .paid_ns = INT64_MIN};
}

void lane_done(struct lane *lane)
{
    memory_free(lane->places);
    lane->places = NULL;
}

void lane_advance(struct lane *lane, int64_t now_ns)
{
    int64_t lag_ns = 0;
    int64_t unused_ns;

    if (lane->paid_ns == INT64_MIN) /* the first use: there is no past to save from */
        lane->paid_ns = now_ns;
    if (lane->places) {
        places_expire(lane->places, now_ns);
        lag_ns = lane->places->reserved_count > 0 ? LAG_NS : 0;
        if (lane->places->first == lane->places->next)
            lane_done(lane); /* a thousand tenants refused once must not hold 80 MB */
    }
    unused_ns = now_ns - lag_ns - lane->paid_ns;
    if (unused_ns > 0) {
        if (lane->credit_max_milli > 0)
            lane->credit_milli =
                MIN(lane->credit_milli +
                        MIN(multiply_divide(unused_ns, lane->rate_cru * MILLI, SECOND_NS),
                            lane->credit_max_milli),
                    lane->credit_max_milli);
        lane->paid_ns += unused_ns;
    }
    if (lane->paid_ns <= now_ns)
        lane->second_end_ns =
            lane->paid_ns + (now_ns < lane->crowded_until_ns ? LATE_NS / 2 : SECOND_NS);
}

struct lane_answer lane_ask(struct lane *lane, const struct lane_request *request, int64_t now_ns)
{
    const struct lane_places *places = lane->places;
    int32_t place = places ? places_find(places, request->ticket, now_ns) : -1;
    int64_t before_cru = request->ahead_cru;
    int64_t reached_ns;

    if (place >= 0 && request->ahead_cru == 0) {
        int64_t slot_ns = places->all[place].slot_ns;

        if (slot_ns <= now_ns + EARLY_NS)
            return (struct lane_answer){.admitted = true, .place = place};
        return (struct lane_answer){.place = place, .slot_ns = slot_ns};
    }
    if (places)
        before_cru += places->reserved_cru[0] + (request->low ? places->reserved_cru[1] : 0);
    reached_ns = lane->paid_ns + MIN(price_of(lane, before_cru).time_ns, OWED_MAX_NS);
    if (reached_ns < lane->second_end_ns - ROUNDING_NS)
        return (struct lane_answer){.admitted = true, .place = place};
    if (lane->paid_ns <= now_ns - LATE_NS && request->ahead_cru == 0)
        return (struct lane_answer){.admitted = true, .place = place};

    reached_ns = MAX(reached_ns, now_ns + 1);
    if (request->keeps_place && place < 0 && reached_ns <= now_ns + AHEAD_MAX_NS)
        place_add(lane, request, reached_ns, now_ns);
    return (struct lane_answer){.place = -1, .slot_ns = reached_ns};
}

static void chain_remove(struct lane_places *places, const struct place *place)
{
    uint16_t *link = &places->chains[place->ticket % LANE_PLACES_MAX];

    while (*link && &places->all[*link - 1] != place)
        link = &places->all[*link - 1].next_in_chain;
    *link = place->next_in_chain;
}

/* Gives up what is set aside, and with PLACE_FREE the place; the ring takes it back when it has
 * turned that far. */
static void place_release(struct lane_places *places, struct place *place, enum place_kind kind)
{
    if (place->kind == PLACE_RESERVED) {
        places->reserved_cru[place->low] -= place->cru;
        places->reserved_count--;
    }
    if (kind == PLACE_FREE && place->kind != PLACE_FREE && place->ticket)
        chain_remove(places, place);
    place->kind = (uint8_t)kind;
}

struct lane_spent lane_take(struct lane *lane, int32_t place, int64_t cru, int64_t now_ns)
{
    struct lane_spent spent = price_of(lane, cru);

    assert(cru >= 0);
    if (lane->paid_ns == INT64_MIN) /* charged before anything was asked of it */
        lane->paid_ns = now_ns;
    if (place >= 0)
        place_release(lane->places, &lane->places->all[place], PLACE_FREE);
    spent.time_ns = MIN(spent.time_ns, MAX(now_ns + OWED_MAX_NS - lane->paid_ns, 0));
    lane->paid_ns += spent.time_ns;
    lane->credit_milli -= spent.credit_milli;
    return spent;
}

void lane_give_back(struct lane *lane, struct lane_spent spent)
{
    lane->paid_ns -= spent.time_ns;
    lane->credit_milli = MIN(lane->credit_milli + spent.credit_milli, lane->credit_max_milli);
}

static int64_t rescale(int64_t at_ns, int64_t now_ns, int64_t old_rate_cru, int64_t new_rate_cru)
{
    if (at_ns <= now_ns)
        return at_ns;
    return now_ns + MIN(multiply_divide(at_ns - now_ns, old_rate_cru, new_rate_cru), OWED_MAX_NS);
}

void lane_set_rate(struct lane *lane, int64_t rate_cru, int64_t now_ns)
{
    struct lane_places *places;
    int64_t old = lane->rate_cru;

    rate_cru = MAX(rate_cru, 1);
    if (rate_cru == old)
        return;
    lane_advance(lane, now_ns);
    places = lane->places;
    lane->paid_ns = rescale(lane->paid_ns, now_ns, old, rate_cru);
    for (uint64_t i = places ? places->first : 0; places && i < places->next; i++) {
        struct place *place = &places->all[i % LANE_PLACES_MAX];

        place->slot_ns = rescale(place->slot_ns, now_ns, old, rate_cru);
    }
    lane->rate_cru = rate_cru;
}

void lane_set_burst(struct lane *lane, int64_t burst_rate_cru, int64_t max_cru)
{
    lane->burst_rate_cru = burst_rate_cru;
    lane->credit_max_milli = MIN(MAX(max_cru, 0), INT64_MAX / 2 / MILLI) * MILLI;
    lane->credit_milli = MIN(lane->credit_milli, lane->credit_max_milli);
}

/* The second goes on where it was: otherwise a burst would be refused that was still welcome. */
void lane_take_over(struct lane *lane, const struct lane *from, double part, int64_t now_ns)
{
    int64_t owed_ns = MAX(from->paid_ns - now_ns, INT64_C(0));
    int64_t owed_cru = multiply_divide(owed_ns, from->rate_cru, SECOND_NS);
    int64_t credit_milli = (int64_t)((double)from->credit_milli * part);

    lane->paid_ns += MIN(duration((int64_t)((double)owed_cru * part), lane->rate_cru),
                         MAX(now_ns + OWED_MAX_NS - lane->paid_ns, INT64_C(0)));
    lane->second_end_ns = MAX(lane->second_end_ns, from->second_end_ns);
    lane->credit_milli = MIN(lane->credit_milli + credit_milli, lane->credit_max_milli);
}

uint32_t lane_waiting(const struct lane *lane)
{
    return lane->places ? lane->places->reserved_count : 0;
}

static void places_expire(struct lane_places *places, int64_t now_ns)
{
    for (; places->late < places->next; places->late++) {
        struct place *place = &places->all[places->late % LANE_PLACES_MAX];

        if (place->kind == PLACE_RESERVED && place->slot_ns > now_ns - LATE_NS)
            break;
        if (place->kind == PLACE_RESERVED)
            place_release(places, place, PLACE_LATE);
    }
    for (; places->first < places->late; places->first++) {
        struct place *place = &places->all[places->first % LANE_PLACES_MAX];

        if (place->kind == PLACE_LATE && place->slot_ns > now_ns - KEPT_NS)
            break;
        place_release(places, place, PLACE_FREE);
    }
}

/* The place of this ticket. Requests without one share theirs: whoever comes when one is due takes
 * the oldest. */
static int32_t places_find(const struct lane_places *places, uint64_t ticket, int64_t now_ns)
{
    if (ticket) {
        uint16_t link = places->chains[ticket % LANE_PLACES_MAX];

        while (link && places->all[link - 1].ticket != ticket)
            link = places->all[link - 1].next_in_chain;
        return (int32_t)link - 1;
    }
    for (uint64_t i = places->late; i < places->next; i++) {
        size_t at = i % LANE_PLACES_MAX;
        const struct place *place = &places->all[at];

        if (place->slot_ns > now_ns + EARLY_NS)
            return -1;
        if (!place->ticket && place->kind == PLACE_RESERVED)
            return (int32_t)at;
    }
    return -1;
}

/* When the ring is full the oldest place that nothing is set aside for goes; where there is none
 * the request goes without. */
static void place_add(struct lane *lane, const struct lane_request *request, int64_t slot_ns,
                      int64_t now_ns)
{
    struct lane_places *places = lane->places;
    size_t at;

    if (!places)
        places = lane->places = MEMORY_NEW(struct lane_places);
    if (places->next - places->first == LANE_PLACES_MAX) {
        if (places->first == places->late) {
            lane->crowded_until_ns = now_ns + SECOND_NS;
            return;
        }
        place_release(places, &places->all[places->first++ % LANE_PLACES_MAX], PLACE_FREE);
    }
    at = places->next++ % LANE_PLACES_MAX;
    places->all[at] = (struct place){.ticket = request->ticket,
                                     .slot_ns = slot_ns,
                                     .cru = request->expected_cru,
                                     .kind = PLACE_RESERVED,
                                     .low = request->low};
    if (request->ticket) {
        uint16_t *chain = &places->chains[request->ticket % LANE_PLACES_MAX];

        places->all[at].next_in_chain = *chain;
        *chain = (uint16_t)(at + 1);
    }
    places->reserved_cru[request->low] += request->expected_cru;
    places->reserved_count++;
}
