/* Heat profile: how the heat of a span lies along its routing keys, as far as it is known: the
 * logical partitions that are followed, each with what it spent, and the rest, which is taken to
 * lie as the bytes do. Where to cut a span follows from it. */
#pragma once

#include "catalogue/catalogue.h"
#include "item/meters.h"
#include "load/division.h"

enum { LOAD_PROFILE_MINUTES = 5, LOAD_PROFILE_BOUNDS = 31 };

struct load_profile_key {
    struct slice min, max; /* its range of routing keys */
    double heat;           /* RU in the time looked at */
};

struct load_profile {
    struct slice min, max;         /* of the span */
    struct load_profile_key *keys; /* ascending */
    size_t key_count;
    double rest;                /* of all others together */
    const struct slice *bounds; /* that cut the span into pieces of about as many bytes */
    size_t bound_count;
};

/* What was spent in so many seconds, and what was wanted: as much more as requests were refused, to
 * a limit. */
struct load_use load_use_in(const struct statistics_numbers *numbers, double seconds);

/* How many seconds of a minute were counted by now, of a partition that may be younger; 0: too few
 * to judge by. */
double load_seconds_in(struct statistics *statistics, int64_t minute, int64_t now_ms);

/* What a partition spends: the highest rate of its last minutes, the present one counted as soon as
 * ten seconds of it are over; with what it took over from those whose keys it has got. */
struct load_use load_use_of(struct statistics *statistics, int64_t now_ms);

/* Of a span, by the last LOAD_PROFILE_MINUTES. In the arena. Reads the sizes of all its logical
 * partitions: may block. */
NODISCARD bool load_profile_read(const struct container *container,
                                 const struct partition_span *span, struct statistics *statistics,
                                 int64_t now_ms, struct arena *arena,
                                 struct load_profile *ret_profile, struct error *err);

/* The same by followed keys alone, without reading anything: the rest is taken to lie evenly
 * between the bounds that the profile has already. */
void load_profile_followed(const struct container *container, const struct partition_span *span,
                           struct statistics *statistics, int64_t now_ms, struct arena *arena,
                           struct load_profile *profile);

/* The heat of what is below a bound. */
double load_profile_below(const struct load_profile *profile, struct slice bound);
double load_profile_all(const struct load_profile *profile);

/* The bound that comes nearest to half the heat on either side. False: there is none within the
 * span, or one side would have next to nothing. */
NODISCARD bool load_profile_cut(const struct load_profile *profile, struct slice *ret_bound);

/* What each of the count + 1 pieces between bounds spends of what the whole span does. */
void load_profile_pieces(const struct load_profile *profile, struct load_use whole,
                         const struct slice *bounds, size_t count, struct load_use *ret_pieces);
