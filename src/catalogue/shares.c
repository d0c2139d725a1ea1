#include "catalogue/shares.h"

#include "catalogue/catalogue_private.h"
#include "definition/shares.h"

#include <stdatomic.h>

struct container_shares {
    atomic_uint refs;
    uint64_t map_version; /* of the map they stand beside */
    size_t count;
    double of[]; /* spans, in key order */
};

struct container_shares *container_shares_ref(struct container_shares *shares)
{
    if (shares)
        atomic_fetch_add_explicit(&shares->refs, 1, memory_order_relaxed);
    return shares;
}

void container_shares_unref(struct container_shares *shares)
{
    if (shares && atomic_fetch_sub(&shares->refs, 1) == 1)
        memory_free(shares);
}

static struct container_shares *shares_new(const double *given, size_t count, uint64_t map_version)
{
    struct container_shares *shares =
        memory_alloc_zero(sizeof *shares + memory_array_size(count, sizeof(double)));
    double sum = 0;

    atomic_init(&shares->refs, 1);
    shares->map_version = map_version;
    shares->count = count;
    for (size_t i = 0; i < count; i++)
        sum += given[i];
    for (size_t i = 0; i < count; i++)
        shares->of[i] = given[i] / sum;
    return shares;
}

/* Beside another map they mean nothing: it was made with shares of its own. */
static bool shares_hold(const struct container *container)
{
    return container->shares &&
           container->shares->map_version == partition_map_version(container->map);
}

double container_share(const struct container *container, const struct partition_span *span)
{
    size_t count, i;
    const struct partition_span *spans = partition_map_spans(container->map, &count);

    if (!shares_hold(container))
        return span->share;
    i = (size_t)(span - spans);
    assert(i < count && count == container->shares->count);
    return container->shares->of[i];
}

bool container_span_is_elsewhere(const struct container *container,
                                 const struct partition_span *span)
{
    return promotion_list_is_window(&container->promotions, span->id) ||
           promotion_list_keeps_place(&container->promotions, span);
}

static bool spans_check(const struct definition_limits *limits,
                        const struct definition_throughput *said, const struct partition_map *map,
                        struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(map, &count);

    for (size_t i = 0; i < count; i++) {
        const struct definition_tenant *alone;
        uint64_t reserved = definition_throughput_within(said, spans[i].min, spans[i].max, &alone);

        if (reserved > limits->partition_ru_max)
            return error_set(err, ERROR_BAD_REQUEST,
                             "%llu RU/s would be reserved in partition %u, which may give %llu: "
                             "reserve less, or split it",
                             (unsigned long long)reserved, spans[i].id,
                             (unsigned long long)limits->partition_ru_max);
    }
    return true;
}

bool container_throughput_check(const struct definition_limits *limits,
                                const struct definition *definition,
                                const struct partition_map *map, const struct offer *offer,
                                struct error *err)
{
    const struct definition_throughput *said = &definition_fields(definition)->throughput;
    uint64_t reserved = 0;

    if (!definition_throughput_is_said(said))
        return true;
    if (offer->shared || (offer->unstated && limits->enforce != THROUGHPUT_ALWAYS))
        return error_set(err, ERROR_BAD_REQUEST,
                         "orrery.throughput divides throughput that was bought for the container "
                         "alone: %s",
                         offer->shared ? "this one shares its database's"
                                       : "state some for it first");
    for (size_t i = 0; i < said->tenant_count; i++)
        reserved += said->tenants[i].reserved;
    if (reserved > offer->ru)
        return error_set(err, ERROR_BAD_REQUEST,
                         "%llu RU/s would be reserved for key values, of %llu that were bought",
                         (unsigned long long)reserved, (unsigned long long)offer->ru);
    return !map || spans_check(limits, said, map, err);
}

void container_demand_reserved(const struct container *container, const struct partition_span *span,
                               struct shares_demand *claim)
{
    const struct definition_tenant *alone;
    double reserved = (double)definition_throughput_within(
        &definition_fields(container->definition)->throughput, span->min, span->max, &alone);

    claim->least = MAX(claim->least, reserved);
    if (alone && alone->cap) {
        claim->most = MIN(claim->most, (double)alone->cap);
        claim->least = MIN(claim->least, (double)alone->cap);
    }
}

void container_rates(const struct container *container, const struct partition_map *map,
                     double *ret_ru)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    double most = (double)container->catalogue->limits.partition_ru_max;
    size_t count;
    const struct partition_span *spans = partition_map_spans(map, &count);
    struct shares_demand *claims = ARENA_ARRAY(arena, struct shares_demand, count);

    for (size_t i = 0; i < count; i++) {
        claims[i] = (struct shares_demand){
            .wish = map == container->map ? container_share(container, &spans[i]) : spans[i].share,
            .most = most};
        if (container_span_is_elsewhere(container, &spans[i]))
            claims[i] = (struct shares_demand){0};
        else
            container_demand_reserved(container, &spans[i], &claims[i]);
    }
    shares_level(claims, count, (double)container->offer.ru, ret_ru);
}

double container_rate(const struct container *container, const struct partition_span *span)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    const struct partition_span *spans = partition_map_spans(container->map, &count);
    double *rates = ARENA_ARRAY(arena, double, count);

    container_rates(container, container->map, rates);
    return rates[span - spans];
}

/* Of the same version: it routes as the other does. */
struct partition_map *container_map_now(const struct container *container)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    size_t count;
    const struct partition_span *spans = partition_map_spans(container->map, &count);
    struct partition_map *map;
    struct partition_span *copies;
    struct error err;

    if (!shares_hold(container))
        return partition_map_ref(container->map);
    arena = arena_new();
    copies = ARENA_ARRAY(arena, struct partition_span, count);
    for (size_t i = 0; i < count; i++) {
        copies[i] = spans[i];
        copies[i].share = container->shares->of[i];
    }
    if (!partition_map_next(container->map, copies, count, partition_map_version(container->map),
                            &map, &err))
        assert(!"the map has the spans it had, and the shares are parts of one whole");
    return map;
}

static bool shares_check(const struct container *now, const struct container *container,
                         const double *shares, size_t count, struct error *err)
{
    size_t span_count;
    const struct partition_span *spans = partition_map_spans(now->map, &span_count);
    double sum = 0;

    if (now->migration || span_count != count ||
        partition_map_version(now->map) != partition_map_version(container->map))
        return error_set(err, ERROR_BUSY, "the partitions of container \"%.*s\" are changing",
                         SLICE_ARG(now->state.info.id));
    for (size_t i = 0; i < count; i++) {
        bool none = shares[i] == 0 && container_span_is_elsewhere(now, &spans[i]);

        if (!none && !(shares[i] > 0 && shares[i] <= 1e12)) /* so written, it refuses NaN too */
            return error_set(err, ERROR_BAD_REQUEST, "a share is not above zero, or too large");
        sum += shares[i];
    }
    return sum > 0 || error_set(err, ERROR_BAD_REQUEST, "there are no shares");
}

bool catalogue_shares_set(struct catalogue *catalogue, const struct container *container,
                          const double *shares, size_t count, struct container **ret_container,
                          struct error *err)
{
    CLEANUP(catalogue_change_end) struct catalogue_change change;
    CLEANUP(container_unref) struct container *after = NULL;
    const struct container *before;
    struct catalogue_record_address address;

    if (!catalogue_change_begin(catalogue, &change, err))
        return false;
    before = catalogue_find_container_number(change.root, container->account, container->database,
                                             container->state.info.number);
    if (!before)
        return catalogue_not_found(err, false, "container", container->state.info.id);
    if (!shares_check(before, container, shares, count, err))
        return false;
    after = catalogue_state_container(catalogue_state_copy(&before->state));
    container_shares_unref(after->shares);
    after->shares = shares_new(shares, count, partition_map_version(after->map));
    address = container_address(after);
    catalogue_change_put_record(&change, address,
                                catalogue_record_container_write(after, true, change.arena));
    if (!catalogue_change_commit(&change, err))
        return false;
    catalogue_change_publish(&change, address, &container_ref(after)->state);
    *ret_container = TAKE(after);
    return true;
}
