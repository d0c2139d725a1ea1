#include "load/profile.h"

#include "load/split_points.h"
#include "partition/strategy.h"

enum { MINUTE_MS = 60000, COUNTED_LEAST_MS = 9000, REFUSED_TIMES_MAX = 8 };

/* One side of a cut has at least this much. */
#define SIDE_LEAST 0.1

/* --- Use ------------------------------------------------------------------------------------- */

struct load_use load_use_in(const struct statistics_numbers *numbers, double seconds)
{
    double used = (double)numbers->cru / 100 / seconds, times = 1;

    if (numbers->throttled) /* clients that come again and again must not look larger than life */
        times = MIN((double)numbers->requests /
                        (double)MAX(numbers->requests - numbers->throttled, UINT64_C(1)),
                    (double)REFUSED_TIMES_MAX);
    return (struct load_use){.used = used, .wanted = used * times};
}

double load_seconds_in(struct statistics *statistics, int64_t minute, int64_t now_ms)
{
    int64_t from_ms = MAX(minute * MINUTE_MS, statistics_since_ms(statistics, now_ms));
    int64_t counted_ms = MIN(now_ms, (minute + 1) * MINUTE_MS) - from_ms;

    return counted_ms >= COUNTED_LEAST_MS ? (double)counted_ms / 1000 : 0;
}

/* A minute in which, or before which, the partition was made: with what its keys did before. */
static struct load_use use_with_before(struct statistics *statistics, int64_t minute,
                                       int64_t now_ms)
{
    struct statistics_numbers numbers = statistics_before(statistics, minute, now_ms), own;
    int64_t counted_ms = MIN(now_ms, (minute + 1) * MINUTE_MS) - minute * MINUTE_MS;
    struct statistics_times times;

    if (numbers.cru <= 0 || counted_ms < COUNTED_LEAST_MS)
        return (struct load_use){0};
    if (statistics_minute(statistics, minute, now_ms, &own, &times))
        statistics_numbers_add(&numbers, &own);
    return load_use_in(&numbers, (double)counted_ms / 1000);
}

struct load_use load_use_of(struct statistics *statistics, int64_t now_ms)
{
    int64_t minute = MAX(now_ms, (int64_t)0) / MINUTE_MS;
    struct load_use most = {0};

    for (int64_t m = minute; m > minute - LOAD_PROFILE_MINUTES; m--) {
        struct statistics_numbers numbers;
        struct statistics_times times;
        double seconds = load_seconds_in(statistics, m, now_ms);
        struct load_use use = use_with_before(statistics, m, now_ms);

        most.used = MAX(most.used, use.used);
        most.wanted = MAX(most.wanted, use.wanted);
        if (seconds <= 0 || !statistics_minute(statistics, m, now_ms, &numbers, &times))
            continue;
        use = load_use_in(&numbers, seconds);
        most.used = MAX(most.used, use.used);
        most.wanted = MAX(most.wanted, use.wanted);
    }
    return most;
}

/* --- Reading --------------------------------------------------------------------------------- */

static int by_min(const void *left, const void *right)
{
    const struct load_profile_key *a = left, *b = right;

    return slice_compare(a->min, b->min);
}

/* A key that is shown cut has no routing key any more: it counts into the rest. */
static void keys_take(const struct container *container, const struct partition_span *span,
                      const struct statistics_key_minutes *followed, size_t count,
                      struct arena *arena, struct load_profile *profile)
{
    const struct partition_definition *definition =
        &definition_fields(container_definition(container))->key;

    for (size_t i = 0; i < count; i++) {
        struct slice rest = followed[i].key;
        struct partition_range range;
        struct partition_key key;
        struct error ignored;

        if (followed[i].key.len >= STATISTICS_KEY_LEN_MAX ||
            !partition_key_read(definition, &rest, arena, &key, &ignored))
            continue;
        range = partition_route_range(definition, &key, arena);
        if (slice_compare(range.min, span->min) < 0 || slice_compare(range.min, span->max) >= 0)
            continue;
        profile->keys[profile->key_count++] = (struct load_profile_key){
            .min = range.min, .max = range.max, .heat = (double)followed[i].numbers.cru / 100};
        profile->rest -= (double)followed[i].numbers.cru / 100;
    }
    if (profile->key_count)
        qsort(profile->keys, profile->key_count, sizeof *profile->keys, by_min);
    profile->rest = MAX(profile->rest, 0.0);
}

void load_profile_followed(const struct container *container, const struct partition_span *span,
                           struct statistics *statistics, int64_t now_ms, struct arena *arena,
                           struct load_profile *profile)
{
    int64_t minute = MAX(now_ms, (int64_t)0) / MINUTE_MS;
    struct statistics_key_minutes *followed;
    size_t found;

    profile->min = span->min;
    profile->max = span->max;
    profile->rest = 0;
    profile->key_count = 0;
    for (int64_t m = minute - LOAD_PROFILE_MINUTES; m <= minute; m++) {
        struct statistics_numbers numbers;
        struct statistics_times times;

        if (statistics_minute(statistics, m, now_ms, &numbers, &times))
            profile->rest += (double)numbers.cru / 100;
        profile->rest += (double)statistics_before(statistics, m, now_ms).cru / 100;
    }
    found = statistics_hottest_between(statistics, minute - LOAD_PROFILE_MINUTES, minute,
                                       STATISTICS_KEYS_MAX, now_ms, arena, &followed);
    profile->keys = ARENA_ARRAY(arena, struct load_profile_key, MAX(found, (size_t)1));
    keys_take(container, span, followed, found, arena, profile);
}

bool load_profile_read(const struct container *container, const struct partition_span *span,
                       struct statistics *statistics, int64_t now_ms, struct arena *arena,
                       struct load_profile *ret_profile, struct error *err)
{
    struct slice *bounds = ARENA_ARRAY(arena, struct slice, LOAD_PROFILE_BOUNDS);
    struct load_profile profile = {.bounds = bounds};

    if (!split_points_by_bytes(container, span, LOAD_PROFILE_BOUNDS + 1, arena, bounds,
                               &profile.bound_count, err))
        return false;
    load_profile_followed(container, span, statistics, now_ms, arena, &profile);
    *ret_profile = profile;
    return true;
}

/* --- Looking --------------------------------------------------------------------------------- */

double load_profile_below(const struct load_profile *profile, struct slice bound)
{
    double heat = 0;
    size_t passed = 0;

    for (size_t i = 0; i < profile->key_count; i++)
        if (slice_compare(profile->keys[i].min, bound) < 0)
            heat += profile->keys[i].heat;
    if (slice_compare(bound, profile->max) >= 0)
        return heat + profile->rest;
    if (slice_compare(bound, profile->min) <= 0)
        return 0;
    while (passed < profile->bound_count && slice_compare(profile->bounds[passed], bound) <= 0)
        passed++;
    return heat + profile->rest * (double)passed / (double)(profile->bound_count + 1);
}

double load_profile_all(const struct load_profile *profile)
{
    return load_profile_below(profile, profile->max);
}

/* --- Cutting --------------------------------------------------------------------------------- */

struct cutting {
    const struct load_profile *profile;
    double all, best; /* how far from a half, of all */
    struct slice bound;
};

static void cut_offer(struct cutting *cutting, struct slice bound)
{
    double below, distance;

    if (slice_compare(bound, cutting->profile->min) <= 0 ||
        slice_compare(bound, cutting->profile->max) >= 0)
        return;
    below = load_profile_below(cutting->profile, bound) / cutting->all;
    distance = below > 0.5 ? below - 0.5 : 0.5 - below;
    if (distance < cutting->best) {
        cutting->best = distance;
        cutting->bound = bound;
    }
}

bool load_profile_cut(const struct load_profile *profile, struct slice *ret_bound)
{
    struct cutting cutting = {
        .profile = profile, .all = load_profile_all(profile), .best = 0.5 - SIDE_LEAST};

    if (cutting.all <= 0)
        return false;
    for (size_t i = 0; i < profile->bound_count; i++)
        cut_offer(&cutting, profile->bounds[i]);
    for (size_t i = 0; i < profile->key_count; i++) {
        cut_offer(&cutting, profile->keys[i].min);
        cut_offer(&cutting, profile->keys[i].max);
    }
    if (!cutting.bound.data)
        return false;
    *ret_bound = cutting.bound;
    return true;
}

/* --- Dividing -------------------------------------------------------------------------------- */

void load_profile_pieces(const struct load_profile *profile, struct load_use whole,
                         const struct slice *bounds, size_t count, struct load_use *ret_pieces)
{
    double heat = load_profile_all(profile), below = 0;

    for (size_t i = 0; i <= count; i++) {
        double up_to = i < count ? load_profile_below(profile, bounds[i]) : heat;
        double part = heat > 0 ? (up_to - below) / heat : 0;

        ret_pieces[i] = (struct load_use){.used = whole.used * part, .wanted = whole.wanted * part};
        below = up_to;
    }
}
