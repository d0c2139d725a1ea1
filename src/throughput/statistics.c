/* Totals are a ring of 60 minutes. The logical partitions are followed by the space-saving sketch
 * (Metwally, Agrawal, El Abbadi): a fixed number of keys with a weight each; an unknown key takes
 * the position of the lightest and inherits its weight, which bounds what it may have spent
 * unseen. Against a count-min sketch it needs no second structure to know the keys themselves and
 * is exact for those that stay. Weights lose an eighth every minute, so that "hot" means of late;
 * a throttled request weighs one RU, or a key refused altogether would stay unseen.
 *
 * A heap finds the lightest, an open-addressed table the key; both hold positions in one array.
 * Keys are compared by a 64-bit hash. The history of a key is allocated when it outlives its first
 * minute: with evenly used keys the positions change hands all the time and none does. At most
 * 256 x (2.4 KB of history + the key), in practice some tens of KB per partition. */
#include "throughput/statistics_all.h"

#include "base/memory.h"
#include "base/thread.h"

#include <xxhash.h>

enum {
    MINUTE_MS = 60000,
    THROTTLED_WEIGHT_CRU = 100,
    DECAY_KEEPS = 7,         /* eighths */
    DECAY_MINUTES_MAX = 400, /* of decay: the largest weight is nothing by then */
};

#define WEIGHT_MAX_CRU (INT64_MAX / 4)

/* The last 60 minutes of something; minute is the current one. */
struct ring {
    int64_t minute;
    struct statistics_numbers minutes[STATISTICS_MINUTES]; /* minute modulo 60 */
};

struct followed {
    uint64_t hash;
    uint8_t *key; /* owned */
    uint32_t key_len, key_size;
    uint32_t heap_at;
    int64_t weight_cru;
    int64_t missed_cru;
    int64_t minute; /* that now counts */
    struct statistics_numbers now;
    struct ring *past; /* owned; NULL: lived in one minute only */
};

struct statistics {
    struct mutex lock; /* guards everything below */
    struct ring totals;
    struct ring before; /* of partitions whose keys it has got */
    int64_t since_ms;   /* -1: not yet */
    struct statistics_numbers all;
    int64_t refused_cru;
    struct statistics_times times[STATISTICS_TIMES_MINUTES]; /* minute modulo their number */
    uint32_t keys_max, count;
    struct followed *followed;
    uint16_t *heap;   /* positions, the lightest first */
    uint16_t *places; /* position + 1 by hash, 0 is free; at least twice keys_max */
    uint32_t mask;
};

static void follow(struct statistics *statistics, const struct statistics_event *event,
                   const struct statistics_numbers *numbers, int64_t minute);

struct statistics *statistics_new(uint32_t keys_max)
{
    struct statistics *statistics = MEMORY_NEW(struct statistics);
    uint32_t places = 16;

    keys_max = keys_max ? keys_max : STATISTICS_KEYS_MAX;
    assert(keys_max < UINT16_MAX / 2);
    while (places < 2 * keys_max)
        places *= 2;
    mutex_init(&statistics->lock);
    statistics->since_ms = -1;
    statistics->keys_max = keys_max;
    statistics->mask = places - 1;
    statistics->followed = memory_alloc_zero(keys_max * sizeof *statistics->followed);
    statistics->heap = memory_alloc_zero(keys_max * sizeof *statistics->heap);
    statistics->places = memory_alloc_zero(places * sizeof *statistics->places);
    return statistics;
}

void statistics_free(struct statistics *statistics)
{
    if (!statistics)
        return;
    for (uint32_t i = 0; i < statistics->count; i++) {
        memory_free(statistics->followed[i].key);
        memory_free(statistics->followed[i].past);
    }
    memory_free(statistics->followed);
    memory_free(statistics->heap);
    memory_free(statistics->places);
    mutex_done(&statistics->lock);
    memory_free(statistics);
}

static int64_t saturated_add(int64_t a, int64_t b)
{
    int64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void statistics_numbers_add(struct statistics_numbers *to, const struct statistics_numbers *from)
{
    to->cru = saturated_add(to->cru, from->cru);
    to->requests += from->requests;
    to->throttled += from->throttled;
    to->bytes_in += from->bytes_in;
    to->bytes_out += from->bytes_out;
    to->time_us += from->time_us;
    to->time_us_max = MAX(to->time_us_max, from->time_us_max);
}

/* --- Times ----------------------------------------------------------------------------------- */

/* Two classes for each power of two, from 8 us. */
enum { TIMES_FIRST_LOG2 = 3 };

static unsigned times_class(uint64_t us)
{
    unsigned log2, at;

    if (us < 1 << TIMES_FIRST_LOG2)
        return 0;
    log2 = 63 - (unsigned)__builtin_clzll(us);
    at = (log2 - TIMES_FIRST_LOG2) * 2 + (unsigned)(us >> (log2 - 1) & 1);
    return MIN(at, (unsigned)STATISTICS_TIMES - 1);
}

/* The middle of a class. */
static uint64_t times_middle(unsigned at)
{
    uint64_t power = UINT64_C(1) << (TIMES_FIRST_LOG2 + at / 2);

    return power + (at % 2 ? power * 3 / 4 : power / 4);
}

uint64_t statistics_times_quantile(const struct statistics_times *times, double fraction)
{
    uint64_t all = 0, passed = 0, wanted;

    for (unsigned i = 0; i < STATISTICS_TIMES; i++)
        all += times->counts[i];
    wanted = (uint64_t)((double)all * fraction);
    wanted += (double)wanted < (double)all * fraction;
    for (unsigned i = 0; i < STATISTICS_TIMES; i++) {
        passed += times->counts[i];
        if (passed >= wanted && passed > 0)
            return times_middle(i);
    }
    return 0;
}

static void times_count(struct statistics *statistics, int64_t minute, uint64_t us)
{
    uint32_t *count = &statistics->times[minute % STATISTICS_TIMES_MINUTES].counts[times_class(us)];

    *count += *count < UINT32_MAX;
}

static void times_advance(struct statistics *statistics, int64_t before, int64_t minute)
{
    for (int64_t m = MAX(before + 1, minute - STATISTICS_TIMES_MINUTES + 1); m <= minute; m++)
        statistics->times[m % STATISTICS_TIMES_MINUTES] = (struct statistics_times){0};
}

/* --- Recording ------------------------------------------------------------------------------- */

/* Clears the minutes between the current one and this. */
static void ring_advance(struct ring *ring, int64_t minute)
{
    if (minute <= ring->minute)
        return;
    if (minute - ring->minute >= STATISTICS_MINUTES)
        memset(ring->minutes, 0, sizeof ring->minutes);
    else
        for (int64_t m = ring->minute + 1; m <= minute; m++)
            ring->minutes[m % STATISTICS_MINUTES] = (struct statistics_numbers){0};
    ring->minute = minute;
}

/* The lightest weigh the same fraction less as the heaviest, so the heap stays one. */
static void weights_decay(struct statistics *statistics, int64_t minutes)
{
    for (uint32_t i = 0; i < statistics->count; i++) {
        struct followed *followed = &statistics->followed[i];

        for (int64_t m = MIN(minutes, DECAY_MINUTES_MAX); m > 0 && followed->weight_cru > 0; m--)
            followed->weight_cru =
                followed->weight_cru / 8 * DECAY_KEEPS + followed->weight_cru % 8 * DECAY_KEEPS / 8;
    }
}

static int64_t minute_advance(struct statistics *statistics, int64_t now_ms)
{
    int64_t minute = MAX(now_ms, 0) / MINUTE_MS;
    int64_t before = statistics->totals.minute;

    if (minute > before) {
        weights_decay(statistics, minute - before);
        times_advance(statistics, before, minute);
        ring_advance(&statistics->totals, minute);
    }
    if (statistics->since_ms < 0)
        statistics->since_ms = MAX(now_ms, 0);
    return statistics->totals.minute;
}

void statistics_record(struct statistics *statistics, const struct statistics_event *event,
                       int64_t now_ms)
{
    struct statistics_numbers numbers = {.cru = event->cru,
                                         .requests = 1,
                                         .throttled = event->throttled,
                                         .bytes_in = event->bytes_in,
                                         .bytes_out = event->bytes_out,
                                         .time_us = event->time_us,
                                         .time_us_max = event->time_us};

    assert(event->cru >= 0);
    WITH_LOCK (&statistics->lock) {
        int64_t minute = minute_advance(statistics, now_ms);

        statistics_numbers_add(&statistics->totals.minutes[minute % STATISTICS_MINUTES], &numbers);
        statistics_numbers_add(&statistics->all, &numbers);
        if (!event->throttled)
            times_count(statistics, minute, event->time_us);
        if (event->key.data)
            follow(statistics, event, &numbers, minute);
    }
}

/* The place of this hash, or the free one where it would be. */
static uint32_t place_find(const struct statistics *statistics, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & statistics->mask;

    while (statistics->places[at] && statistics->followed[statistics->places[at] - 1].hash != hash)
        at = (at + 1) & statistics->mask;
    return at;
}

/* Empties a place and moves later ones of the same run up, so that no search stops short. */
static void place_free(struct statistics *statistics, uint32_t hole)
{
    uint32_t mask = statistics->mask;

    for (uint32_t at = (hole + 1) & mask; statistics->places[at]; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)statistics->followed[statistics->places[at] - 1].hash & mask;

        if (((at - home) & mask) >= ((at - hole) & mask)) {
            statistics->places[hole] = statistics->places[at];
            hole = at;
        }
    }
    statistics->places[hole] = 0;
}

static void heap_put(struct statistics *statistics, uint32_t at, uint16_t position)
{
    statistics->heap[at] = position;
    statistics->followed[position].heap_at = at;
}

static int64_t heap_weight(const struct statistics *statistics, uint32_t at)
{
    return statistics->followed[statistics->heap[at]].weight_cru;
}

/* The key at this place of the heap has become heavier. */
static void heap_sink(struct statistics *statistics, uint32_t at)
{
    uint16_t position = statistics->heap[at];
    int64_t weight = statistics->followed[position].weight_cru;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < statistics->count &&
            heap_weight(statistics, child + 1) < heap_weight(statistics, child))
            child++;
        if (child >= statistics->count || heap_weight(statistics, child) >= weight)
            break;
        heap_put(statistics, at, statistics->heap[child]);
        at = child;
    }
    heap_put(statistics, at, position);
}

/* The last of the heap may be too light for its place. */
static void heap_rise(struct statistics *statistics, uint32_t at)
{
    uint16_t position = statistics->heap[at];
    int64_t weight = statistics->followed[position].weight_cru;

    while (at > 0 && heap_weight(statistics, (at - 1) / 2) > weight) {
        heap_put(statistics, at, statistics->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(statistics, at, position);
}

static void followed_name(struct followed *followed, uint64_t hash, struct slice key)
{
    uint32_t len = (uint32_t)MIN(key.len, (size_t)STATISTICS_KEY_LEN_MAX);

    if (len > followed->key_size) {
        followed->key = memory_realloc(followed->key, len);
        followed->key_size = len;
    }
    if (len)
        memcpy(followed->key, key.data, len);
    followed->key_len = len;
    followed->hash = hash;
}

/* A position for a key not seen of late: a new one, or that of the lightest. */
static struct followed *followed_claim(struct statistics *statistics, uint64_t hash,
                                       struct slice key, int64_t minute)
{
    struct followed *followed;
    uint16_t position;

    if (statistics->count < statistics->keys_max) {
        position = (uint16_t)statistics->count++;
        followed = &statistics->followed[position];
        heap_put(statistics, position, position);
        heap_rise(statistics, position);
    } else {
        position = statistics->heap[0];
        followed = &statistics->followed[position];
        place_free(statistics, place_find(statistics, followed->hash));
        memory_free(followed->past);
        followed->past = NULL;
        followed->missed_cru = followed->weight_cru;
    }
    followed->now = (struct statistics_numbers){0};
    followed->minute = minute;
    followed_name(followed, hash, key);
    statistics->places[place_find(statistics, hash)] = (uint16_t)(position + 1);
    return followed;
}

/* Moves what was counted into the past once the minute is over. */
static void followed_advance(struct followed *followed, int64_t minute)
{
    if (followed->minute == minute)
        return;
    if (followed->now.requests > 0) {
        if (!followed->past) {
            followed->past = MEMORY_NEW(struct ring);
            followed->past->minute = followed->minute;
        }
        ring_advance(followed->past, followed->minute);
        followed->past->minutes[followed->minute % STATISTICS_MINUTES] = followed->now;
        followed->now = (struct statistics_numbers){0};
    }
    followed->minute = minute;
}

static void follow(struct statistics *statistics, const struct statistics_event *event,
                   const struct statistics_numbers *numbers, int64_t minute)
{
    uint64_t hash = XXH3_64bits(event->key.data, event->key.len);
    uint16_t place = statistics->places[place_find(statistics, hash)];
    struct followed *followed = place ? &statistics->followed[place - 1]
                                      : followed_claim(statistics, hash, event->key, minute);
    int64_t weight = saturated_add(event->cru, event->throttled ? THROTTLED_WEIGHT_CRU : 0);

    followed_advance(followed, minute);
    statistics_numbers_add(&followed->now, numbers);
    followed->weight_cru = MIN(saturated_add(followed->weight_cru, weight), WEIGHT_MAX_CRU);
    heap_sink(statistics, followed->heap_at);
}

/* The newest first, and their sum. The ring may stand at an earlier minute than the one asked. */
static void ring_unroll(const struct ring *ring, int64_t minute, struct statistics_numbers *minutes,
                        struct statistics_numbers *sum)
{
    for (int64_t ago = 0; ago < STATISTICS_MINUTES && ago <= minute; ago++) {
        int64_t m = minute - ago;

        if (m > ring->minute || m <= ring->minute - STATISTICS_MINUTES)
            continue;
        statistics_numbers_add(&minutes[ago], &ring->minutes[m % STATISTICS_MINUTES]);
        statistics_numbers_add(sum, &ring->minutes[m % STATISTICS_MINUTES]);
    }
}

void statistics_get_totals(struct statistics *statistics, int64_t now_ms,
                           struct statistics_totals *ret_totals)
{
    *ret_totals = (struct statistics_totals){0};
    WITH_LOCK (&statistics->lock) {
        ret_totals->minute = minute_advance(statistics, now_ms);
        ring_unroll(&statistics->totals, ret_totals->minute, ret_totals->minutes,
                    &ret_totals->hour);
    }
}

static int64_t recent_sum(const struct statistics_numbers *minutes, uint32_t count)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < count; i++)
        sum = saturated_add(sum, minutes[i].cru);
    return sum;
}

static void key_fill(const struct followed *followed, int64_t minute, uint32_t minutes,
                     struct arena *arena, struct statistics_key *ret_key)
{
    int64_t ago = minute - followed->minute;

    *ret_key = (struct statistics_key){.missed_cru = followed->missed_cru};
    if (followed->past)
        ring_unroll(followed->past, minute, ret_key->minutes, &ret_key->hour);
    if (ago < STATISTICS_MINUTES) {
        statistics_numbers_add(&ret_key->minutes[ago], &followed->now);
        statistics_numbers_add(&ret_key->hour, &followed->now);
    }
    ret_key->recent_cru = recent_sum(ret_key->minutes, minutes);
    ret_key->key = arena_copy(arena, slice_of(followed->key, followed->key_len));
}

/* Highest charge first, then most refused, then by key, so that equal ones have an order. */
static int hotter_first(const void *left, const void *right)
{
    const struct statistics_key *a = left, *b = right;

    if (a->recent_cru != b->recent_cru)
        return a->recent_cru > b->recent_cru ? -1 : 1;
    if (a->hour.throttled != b->hour.throttled)
        return a->hour.throttled > b->hour.throttled ? -1 : 1;
    return slice_compare(a->key, b->key);
}

size_t statistics_hottest(struct statistics *statistics, uint32_t minutes, size_t max,
                          int64_t now_ms, struct arena *arena, struct statistics_key **ret_keys)
{
    struct statistics_totals totals = {0};
    struct statistics_key *keys = NULL;
    size_t count = 0;
    int64_t all_cru;

    minutes = MIN(MAX(minutes, 1u), (uint32_t)STATISTICS_MINUTES);
    WITH_LOCK (&statistics->lock) {
        totals.minute = minute_advance(statistics, now_ms);
        ring_unroll(&statistics->totals, totals.minute, totals.minutes, &totals.hour);
        keys = ARENA_ARRAY(arena, struct statistics_key, MAX(statistics->count, 1u));
        for (; count < statistics->count; count++)
            key_fill(&statistics->followed[count], totals.minute, minutes, arena, &keys[count]);
    }
    qsort(keys, count, sizeof *keys, hotter_first);
    all_cru = recent_sum(totals.minutes, minutes);
    for (size_t i = 0; i < count; i++)
        keys[i].share_bp =
            all_cru > 0 ? (uint32_t)((__int128)keys[i].recent_cru * 10000 / all_cru) : 0;
    *ret_keys = keys;
    return MIN(count, max);
}

/* --- Single minutes -------------------------------------------------------------------------- */

bool statistics_minute(struct statistics *statistics, int64_t minute, int64_t now_ms,
                       struct statistics_numbers *ret_numbers, struct statistics_times *ret_times)
{
    bool known = false;

    WITH_LOCK (&statistics->lock) {
        int64_t now = minute_advance(statistics, now_ms);

        known = minute >= 0 && minute <= now && minute > now - STATISTICS_MINUTES;
        if (known) {
            *ret_numbers = statistics->totals.minutes[minute % STATISTICS_MINUTES];
            *ret_times = minute > now - STATISTICS_TIMES_MINUTES
                             ? statistics->times[minute % STATISTICS_TIMES_MINUTES]
                             : (struct statistics_times){0};
        }
    }
    return known;
}

static struct statistics_numbers followed_between(const struct followed *followed, int64_t first,
                                                  int64_t last)
{
    struct statistics_numbers sum = {0};
    const struct ring *past = followed->past;

    if (followed->minute >= first && followed->minute <= last)
        sum = followed->now;
    if (!past)
        return sum;
    first = MAX(MAX(first, past->minute - STATISTICS_MINUTES + 1), (int64_t)0);
    for (int64_t m = first; m <= MIN(last, past->minute); m++)
        statistics_numbers_add(&sum, &past->minutes[m % STATISTICS_MINUTES]);
    return sum;
}

static int hotter_minutes_first(const void *left, const void *right)
{
    const struct statistics_key_minutes *a = left, *b = right;

    if (a->numbers.cru != b->numbers.cru)
        return a->numbers.cru > b->numbers.cru ? -1 : 1;
    if (a->numbers.throttled != b->numbers.throttled)
        return a->numbers.throttled > b->numbers.throttled ? -1 : 1;
    return slice_compare(a->key, b->key);
}

size_t statistics_hottest_between(struct statistics *statistics, int64_t first, int64_t last,
                                  size_t max, int64_t now_ms, struct arena *arena,
                                  struct statistics_key_minutes **ret_keys)
{
    struct statistics_key_minutes *keys = NULL;
    size_t count = 0;

    WITH_LOCK (&statistics->lock) {
        (void)minute_advance(statistics, now_ms);
        keys = ARENA_ARRAY(arena, struct statistics_key_minutes, MAX(statistics->count, 1u));
        for (uint32_t i = 0; i < statistics->count; i++) {
            const struct followed *followed = &statistics->followed[i];
            struct statistics_numbers sum = followed_between(followed, first, last);

            if (sum.requests)
                keys[count++] = (struct statistics_key_minutes){
                    .key = arena_copy(arena, slice_of(followed->key, followed->key_len)),
                    .numbers = sum};
        }
    }
    qsort(keys, count, sizeof *keys, hotter_minutes_first);
    *ret_keys = keys;
    return MIN(count, max);
}

void statistics_take_over(struct statistics *statistics, struct statistics *from, double part,
                          int64_t now_ms)
{
    int64_t minute = MAX(now_ms, 0) / MINUTE_MS;
    struct ring past = {0}, earlier = {0};

    WITH_LOCK (&from->lock) {
        ring_advance(&from->totals, minute);
        ring_advance(&from->before, minute);
        past = from->totals;
        earlier = from->before;
    }
    WITH_LOCK (&statistics->lock) {
        ring_advance(&statistics->before, minute);
        for (size_t i = 0; i < STATISTICS_MINUTES; i++) {
            struct statistics_numbers *to = &statistics->before.minutes[i];

            statistics_numbers_add(&past.minutes[i], &earlier.minutes[i]);
            to->cru = saturated_add(to->cru, (int64_t)((double)past.minutes[i].cru * part));
            to->requests += (uint64_t)((double)past.minutes[i].requests * part);
            to->throttled += (uint64_t)((double)past.minutes[i].throttled * part);
        }
    }
}

struct statistics_numbers statistics_before(struct statistics *statistics, int64_t minute,
                                            int64_t now_ms)
{
    struct statistics_numbers numbers = {0};
    int64_t now = MAX(now_ms, 0) / MINUTE_MS;

    WITH_LOCK (&statistics->lock) {
        ring_advance(&statistics->before, now);
        if (minute >= 0 && minute <= now && minute > now - STATISTICS_MINUTES)
            numbers = statistics->before.minutes[minute % STATISTICS_MINUTES];
    }
    return numbers;
}

int64_t statistics_since_ms(struct statistics *statistics, int64_t now_ms)
{
    int64_t since_ms = 0;

    WITH_LOCK (&statistics->lock) {
        (void)minute_advance(statistics, now_ms);
        since_ms = statistics->since_ms;
    }
    return since_ms;
}

void statistics_all(struct statistics *statistics, struct statistics_numbers *ret_numbers,
                    int64_t *ret_refused_cru)
{
    WITH_LOCK (&statistics->lock) {
        *ret_numbers = statistics->all;
        *ret_refused_cru = statistics->refused_cru;
    }
}

void statistics_refused(struct statistics *statistics, struct slice key, int64_t price_cru,
                        int64_t now_ms)
{
    statistics_record(statistics, &(struct statistics_event){.key = key, .throttled = true},
                      now_ms);
    WITH_LOCK (&statistics->lock)
        statistics->refused_cru = saturated_add(statistics->refused_cru, price_cru);
}
