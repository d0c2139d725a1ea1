/* What a migration makes of a container's throughput: every span of the map to be is a claim, and
 * the offer is divided among the claims (shares.h). What a span spends it keeps, cut or not; so
 * nobody is slower for what happens to a neighbour, and nothing of the offer is given to nobody.
 *
 * Splits that a raised throughput asks for are divided evenly: they make room for a load that is
 * still to come. Pieces of all others get by their heat what their source had; where that is not
 * known, a key that is cut out gets by its size. Weights that were handed in are obeyed, but for
 * what others spend. */
#include "catalogue/shares.h"
#include "definition/shares.h"
#include "load/profile.h"
#include "load/split_points.h"
#include "migration/migrator_private.h"

/* Nothing is known of less than this many RU. */
#define KNOWN_LEAST 1.0
/* By size, every piece counts for this much of its source at least. */
#define SIZE_LEAST 0.01

/* A division under way. */
struct dividing {
    const struct migrator *migrator;
    const struct container *container;
    const struct migration_request *request;
    const struct partition_span *spans; /* as they are */
    double *rates;                      /* of them, RU/s */
    struct load_use *uses;
    size_t count;
    struct shares_demand *claims; /* of the spans, then of the targets */
    struct arena *arena;
};

static bool is_source(const struct migration_request *request, uint32_t id)
{
    for (size_t i = 0; i < request->source_count; i++)
        if (request->sources[i] == id)
            return true;
    return false;
}

bool migrator_profile(const struct migrator *migrator, const struct container *container,
                      const struct partition_span *span, struct arena *arena,
                      struct load_profile *ret_profile, bool *ret_known, struct error *err)
{
    struct meter *meter =
        migrator->options.meters ? meters_find(migrator->options.meters, span->id) : NULL;

    *ret_known = false;
    if (!meter)
        return true;
    if (!load_profile_read(container, span, meter_statistics(meter),
                           clock_read_wall_ms(migrator->clock), arena, ret_profile, err))
        return false;
    *ret_known = load_profile_all(ret_profile) >= KNOWN_LEAST;
    return true;
}

/* What nobody bought is not measured against what was bought. */
static struct load_use use_of(const struct migrator *migrator, const struct container *container,
                              uint32_t partition)
{
    struct meter *meter = migrator->options.meters && container_is_enforced(container)
                              ? meters_find(migrator->options.meters, partition)
                              : NULL;

    return meter ? load_use_of(meter_statistics(meter), clock_read_wall_ms(migrator->clock))
                 : (struct load_use){0};
}

static void spans_claim(struct dividing *d)
{
    double most = (double)container_limits(d->container)->partition_ru_max;

    for (size_t i = 0; i < d->count; i++) {
        d->uses[i] = use_of(d->migrator, d->container, d->spans[i].id);
        if (!is_source(d->request, d->spans[i].id) &&
            !container_span_is_elsewhere(d->container, &d->spans[i]))
            d->claims[i] =
                (struct shares_demand){.wish = d->rates[i], .least = d->uses[i].used, .most = most};
    }
    for (size_t i = 0; i < d->request->target_count; i++)
        d->claims[d->count + i].most = most;
}

/* What the sources give and spend together. */
static double sources_sum(const struct dividing *d, struct load_use *ret_use)
{
    double rate = 0;

    *ret_use = (struct load_use){0};
    for (size_t i = 0; i < d->count; i++)
        if (is_source(d->request, d->spans[i].id)) {
            rate += d->rates[i];
            ret_use->used += d->uses[i].used;
            ret_use->wanted += d->uses[i].wanted;
        }
    return rate;
}

static void weights_claim(struct dividing *d, const double *weights, double rate)
{
    double sum = 0;

    for (size_t i = 0; i < d->request->target_count; i++)
        sum += weights ? weights[i] : 1;
    for (size_t i = 0; i < d->request->target_count && sum > 0; i++)
        d->claims[d->count + i].wish = rate * (weights ? weights[i] : 1) / sum;
}

/* Pieces get of what others can spare what they want, which leaves the others less. */
static void heat_claim(struct dividing *d, const struct load_use *pieces, double rate)
{
    double ru = (double)container_offer(d->container)->ru, sum, given = 0;
    struct load_other *others = ARENA_ARRAY(d->arena, struct load_other, d->count);
    struct load_division division = {
        .ru = ru,
        .ru_max = (double)container_limits(d->container)->partition_ru_max,
        .share = rate / ru,
        .pieces = pieces,
        .piece_count = d->request->target_count,
        .others = others,
    };
    double shares[LOAD_PIECES_MAX];

    for (size_t i = 0; i < d->count; i++)
        if (d->claims[i].most > 0) {
            others[division.other_count++] =
                (struct load_other){.share = d->rates[i] / ru, .use = d->uses[i]};
            given += d->rates[i];
        }
    sum = load_divide(&division, shares) * ru;
    for (size_t i = 0; i < d->count && given > 0; i++)
        d->claims[i].wish *= MAX(given + rate - sum, 0.0) / given;
    for (size_t i = 0; i < d->request->target_count; i++)
        d->claims[d->count + i].wish = shares[i] * ru;
}

static bool size_claim(struct dividing *d, const struct partition_span *source, double rate,
                       struct error *err)
{
    size_t count = d->request->target_count;
    uint64_t *bytes = ARENA_ARRAY(d->arena, uint64_t, count);
    double *weights = ARENA_ARRAY(d->arena, double, count), all = 0;

    if (!split_points_bytes(d->container, source, d->request->bounds, count - 1, bytes, err))
        return false;
    for (size_t i = 0; i < count; i++)
        all += (double)bytes[i];
    for (size_t i = 0; i < count; i++)
        weights[i] = all > 0 ? MAX((double)bytes[i] / all, SIZE_LEAST) : 1;
    weights_claim(d, weights, rate);
    return true;
}

/* The pieces of one span. */
static bool pieces_claim(struct dividing *d, double rate, struct load_use use, struct error *err)
{
    const struct migration_request *request = d->request;
    const struct partition_span *source =
        partition_map_find_id(container_map(d->container), request->sources[0]);
    struct load_use *pieces =
        arena_alloc_zero(d->arena, memory_array_size(request->target_count, sizeof *pieces));
    struct load_profile profile;
    bool known = false;

    if (use.used > 0 &&
        !migrator_profile(d->migrator, d->container, source, d->arena, &profile, &known, err))
        return false;
    if (known)
        load_profile_pieces(&profile, use, request->bounds, request->target_count - 1, pieces);
    for (size_t i = 0; i < request->target_count; i++)
        d->claims[d->count + i].least = pieces[i].used;
    if (request->weights || (!known && request->kind != MIGRATION_ISOLATE) ||
        request->target_count > LOAD_PIECES_MAX)
        weights_claim(d, request->weights, rate);
    else if (known)
        heat_claim(d, pieces, rate);
    else
        return size_claim(d, source, rate, err);
    return true;
}

static bool targets_claim(struct dividing *d, struct error *err)
{
    struct load_use use;
    double rate = sources_sum(d, &use);

    if (d->request->source_count == 1 && d->request->target_count > 1)
        return pieces_claim(d, rate, use, err);
    weights_claim(d, d->request->weights, rate);
    if (d->request->target_count == 1)
        d->claims[d->count].least = use.used;
    return true;
}

static void all_alike(struct dividing *d)
{
    for (size_t i = 0; i < d->count + d->request->target_count; i++)
        d->claims[i].wish = d->claims[i].most > 0 ? 1 : 0;
}

/* The sources from the first to the last. */
static struct partition_range sources_range(const struct dividing *d)
{
    struct partition_range range = {0};

    for (size_t i = 0; i < d->count; i++) {
        if (!is_source(d->request, d->spans[i].id))
            continue;
        if (!range.max.data)
            range.min = d->spans[i].min;
        range.max = d->spans[i].max;
    }
    return range;
}

/* What was reserved for key values comes with them. */
static void reserved_claim(struct dividing *d)
{
    struct partition_range all = sources_range(d);
    struct partition_span span = {.max = all.min};

    for (size_t i = 0; i < d->count; i++)
        if (d->claims[i].most > 0)
            container_demand_reserved(d->container, &d->spans[i], &d->claims[i]);
    for (size_t i = 0; i < d->request->target_count; i++) {
        span.min = span.max;
        span.max = i + 1 < d->request->target_count ? d->request->bounds[i] : all.max;
        container_demand_reserved(d->container, &span, &d->claims[d->count + i]);
    }
}

/* Are there sources to divide the throughput of? Otherwise whoever plans the migration refuses it,
 * or divides it by itself: a re-key makes all partitions anew, and a reroute or copy leaves them as
 * they are. Containers that share the throughput of their database have no shares of it. */
static bool is_due(const struct container *container, const struct migration_request *request)
{
    if (container_offer(container)->shared || request->definition ||
        request->kind == MIGRATION_COPY || request->target_count == 0)
        return false;
    for (size_t i = 0; i < request->source_count; i++)
        if (!partition_map_find_id(container_map(container), request->sources[i]))
            return false;
    return true;
}

bool migrator_divide(const struct migrator *migrator, const struct container *container,
                     struct migration_request *request, bool alike, struct arena *arena,
                     struct error *err)
{
    struct dividing d = {
        .migrator = migrator, .container = container, .request = request, .arena = arena};
    double *shares, sum = 0;
    size_t all;

    if (!is_due(container, request))
        return true;
    d.spans = partition_map_spans(container_map(container), &d.count);
    all = d.count + request->target_count;
    d.rates = ARENA_ARRAY(arena, double, d.count);
    d.uses = ARENA_ARRAY(arena, struct load_use, d.count);
    d.claims = arena_alloc_zero(arena, memory_array_size(all, sizeof *d.claims));
    shares = ARENA_ARRAY(arena, double, all);
    container_rates(container, container_map(container), d.rates);
    spans_claim(&d);
    if (!targets_claim(&d, err))
        return false;
    if (alike)
        all_alike(&d);
    reserved_claim(&d);
    shares_level(d.claims, all, (double)container_offer(container)->ru, shares);
    for (size_t i = 0; i < all; i++)
        sum += shares[i];
    for (size_t i = 0; i < all && sum > 0; i++)
        shares[i] /= sum;
    if (sum > 0)
        request->shares = shares;
    request->map_version = partition_map_version(container_map(container));
    return true;
}
