/* The texts are the service's where it is known what they are, for clients show them and tests of
 * clients compare them. */
#include "definition/offer.h"

static const uint64_t tier_ru[] = {0, 250, 1000, 2500};

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static uint64_t gigabytes(uint64_t bytes)
{
    return round_up(bytes, DEFINITION_LIMITS_GB) / DEFINITION_LIMITS_GB;
}

uint32_t offer_partitions(const struct definition_limits *limits, uint64_t ru)
{
    return (uint32_t)MAX((ru + limits->partition_ru_max - 1) / limits->partition_ru_max,
                         (uint64_t)1);
}

bool offer_is_enforced(const struct definition_limits *limits, const struct offer *offer)
{
    switch (limits->enforce) {
    case THROUGHPUT_ALWAYS:
        return true;
    case THROUGHPUT_NEVER:
        return false;
    default:
        return !offer->unstated;
    }
}

uint32_t offer_partitions_needed(const struct definition_limits *limits, const struct offer *offer)
{
    if (offer->unstated && limits->enforce != THROUGHPUT_ALWAYS)
        return 1;
    return offer_partitions(limits, offer->ru);
}

uint32_t offer_partitions_initial(const struct definition_limits *limits, const struct offer *offer)
{
    uint32_t needed = offer_partitions_needed(limits, offer);
    uint64_t initial = limits->partition_ru_initial;

    if (needed == 1 || offer->kind == OFFER_AUTOSCALE || initial == 0)
        return needed;
    return MAX((uint32_t)((offer->ru + initial - 1) / initial), needed);
}

/* What a new offer must be at least. */
static uint64_t floor_of(const struct definition_limits *limits,
                         const struct offer_subject *subject, enum offer_kind kind)
{
    uint64_t crowd = subject->containers > limits->shared_containers_max
                         ? subject->containers - limits->shared_containers_max
                         : 0;

    if (kind == OFFER_AUTOSCALE)
        return limits->autoscale_min + crowd * limits->autoscale_step;
    if (!subject->shared && !subject->fixed)
        return MAX(limits->ru_min, limits->unlimited_ru_min);
    return limits->ru_min + crowd * limits->ru_step;
}

uint64_t offer_minimum(const struct definition_limits *limits, const struct offer_subject *subject,
                       const struct offer *offer, enum offer_kind kind)
{
    bool autoscale = kind == OFFER_AUTOSCALE;
    uint64_t bytes = MAX(subject->bytes, offer->bytes_max_ever);
    uint64_t minimum = floor_of(limits, subject, kind);

    minimum = MAX(minimum, gigabytes(bytes) * (autoscale ? 10 : 1));
    minimum = MAX(minimum, offer->ru_max_ever / (autoscale ? 10 : 100));
    return round_up(minimum, autoscale ? limits->autoscale_step : limits->ru_step);
}

/* Steps and the maximum; the minimum is the caller's, for it has two reasons. */
static bool amount_check(const struct definition_limits *limits,
                         const struct offer_subject *subject, enum offer_kind kind, int64_t amount,
                         uint64_t minimum, struct error *err)
{
    uint64_t step = kind == OFFER_AUTOSCALE ? limits->autoscale_step : limits->ru_step;
    uint64_t maximum =
        subject->fixed ? MIN(limits->fixed_ru_max, limits->partition_ru_max) : limits->ru_max;

    if (amount < 0 || (uint64_t)amount < minimum)
        return error_set(err, ERROR_BAD_REQUEST,
                         "Requested throughput %lld is less than required minimum throughput %llu",
                         (long long)amount, (unsigned long long)minimum);
    if ((uint64_t)amount > maximum || (uint64_t)amount % step)
        return error_set(err, ERROR_BAD_REQUEST,
                         "The offer should have valid throughput values between %llu and %llu "
                         "inclusive in increments of %llu.",
                         (unsigned long long)minimum, (unsigned long long)maximum,
                         (unsigned long long)step);
    return true;
}

static bool request_one_kind(const struct offer_request *request, struct error *err)
{
    if (request->given && request->autoscale_given)
        return error_set(err, ERROR_BAD_REQUEST,
                         "Both the offer throughput and autopilot settings cannot be specified.");
    if (request->tier >= ARRAY_LEN(tier_ru))
        return error_set(err, ERROR_BAD_REQUEST, "The offer type S%u is not known.", request->tier);
    if (request->autoscale_given && request->ru_per_minute)
        return error_set(err, ERROR_BAD_REQUEST,
                         "RU per minute is an addition to manual throughput only.");
    return true;
}

static void offer_grow(struct offer *offer, uint64_t ru)
{
    offer->ru = ru;
    offer->ru_max_ever = MAX(offer->ru_max_ever, ru);
}

bool offer_new(const struct definition_limits *limits, const struct offer_subject *subject,
               const struct offer_request *request, struct offer *ret_offer, bool *ret_any,
               struct error *err)
{
    static const struct offer_request nothing = {0};
    struct offer offer = {.shared = subject->shared};

    request = request ? request : &nothing;
    if (!request_one_kind(request, err))
        return false;
    offer.kind = request->autoscale_given ? OFFER_AUTOSCALE : OFFER_MANUAL;
    offer.ru_per_minute = request->ru_per_minute;
    offer.tier = request->given ? request->tier : 0;
    offer.increment_given = request->increment_given;
    offer.increment_percent = request->increment_percent;
    if (offer.tier) {
        offer_grow(&offer, tier_ru[offer.tier]);
    } else if (request->given || request->autoscale_given) {
        int64_t amount = request->given ? request->ru : request->autoscale_max;

        if (!amount_check(limits, subject, offer.kind, amount,
                          floor_of(limits, subject, offer.kind), err))
            return false;
        offer_grow(&offer, (uint64_t)amount);
    } else {
        offer_grow(&offer, MAX(limits->ru_default, floor_of(limits, subject, OFFER_MANUAL)));
        offer.unstated = !request->ru_per_minute;
    }
    *ret_any = request->given || request->autoscale_given || !subject->shared;
    *ret_offer = offer;
    return true;
}

/* More than the partitions there are may give makes the migrator split them, up to a limit. */
static bool physical_check(const struct definition_limits *limits,
                           const struct offer_subject *subject, uint64_t ru, struct error *err)
{
    uint32_t count = offer_partitions(limits, ru);

    if (!subject->fixed && count > limits->container_partitions_max)
        return error_set(err, ERROR_BAD_REQUEST,
                         "throughput of %llu RU/s needs %u physical partitions; the limit is %u",
                         (unsigned long long)ru, count, limits->container_partitions_max);
    return true;
}

bool offer_replace(const struct definition_limits *limits, const struct offer_subject *subject,
                   const struct offer_request *request, struct offer *offer, struct error *err)
{
    enum offer_kind kind = request->autoscale_given ? OFFER_AUTOSCALE : OFFER_MANUAL;
    int64_t amount = request->autoscale_given ? request->autoscale_max : request->ru;

    if (request->tier >= ARRAY_LEN(tier_ru))
        return error_set(err, ERROR_BAD_REQUEST, "The offer type S%u is not known.", request->tier);
    if (request->tier)
        amount = (int64_t)tier_ru[request->tier];
    /* An autoscale offer sent back whole carries the present RU/s beside its maximum. */
    if (!request->given && !request->autoscale_given)
        return error_set(err, ERROR_BAD_REQUEST, "the offer names no throughput");
    if (kind != offer->kind)
        return error_set(err, ERROR_BAD_REQUEST,
                         "Switching between manual and autoscale throughput needs a migration.");
    if (kind == OFFER_AUTOSCALE && request->ru_per_minute)
        return error_set(err, ERROR_BAD_REQUEST,
                         "RU per minute is an addition to manual throughput only.");
    if (!request->tier && !amount_check(limits, subject, kind, amount,
                                        offer_minimum(limits, subject, offer, kind), err))
        return false;
    if (!physical_check(limits, subject, (uint64_t)amount, err))
        return false;
    offer->unstated = false;
    offer->tier = request->tier;
    offer->ru_per_minute = request->ru_per_minute;
    offer->increment_given = request->increment_given;
    offer->increment_percent = request->increment_percent;
    offer->bytes_max_ever = MAX(offer->bytes_max_ever, subject->bytes);
    offer_grow(offer, (uint64_t)amount);
    return true;
}

bool offer_migrate(const struct definition_limits *limits, const struct offer_subject *subject,
                   enum offer_kind kind, struct offer *offer, struct error *err)
{
    uint64_t step = kind == OFFER_AUTOSCALE ? limits->autoscale_step : limits->ru_step;
    uint64_t ru;

    if (offer->kind == kind)
        return error_set(err, ERROR_BAD_REQUEST, "The offer has %s throughput already.",
                         kind == OFFER_AUTOSCALE ? "autoscale" : "manual");
    offer->bytes_max_ever = MAX(offer->bytes_max_ever, subject->bytes);
    ru = MAX(round_up(offer->ru, step), offer_minimum(limits, subject, offer, kind));
    if (!physical_check(limits, subject, ru, err))
        return false;
    offer->kind = kind;
    offer->unstated = false;
    offer->tier = 0;
    offer->ru_per_minute = false;
    offer_grow(offer, ru);
    return true;
}
