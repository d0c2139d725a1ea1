/* The document of a promotion:
 *
 *     {origin, own, partition, state: 0 preparing, 1 out, 2 back, grace, since,
 *      originId, ownId, key: JSON text, min, max: bytes of routing keys,
 *      originShown, ownShown: 0 where they are missing} */
#include "definition/promotion.h"

#include "document/bson.h"

#include <stdatomic.h>

/* What promotion_new makes. */
struct counted {
    struct promotion promotion; /* first, so that one pointer is the other */
    atomic_uint refs;
    struct arena *arena; /* owns this */
};

struct promotion *promotion_new(const struct promotion *promotion)
{
    struct arena *arena = arena_new();
    struct counted *counted = ARENA_NEW(arena, struct counted);
    struct promotion *copy = &counted->promotion;

    static_assert(offsetof(struct counted, promotion) == 0, "one pointer is the other");
    atomic_init(&counted->refs, 1);
    counted->arena = arena;
    *copy = *promotion;
    copy->origin_id = arena_copy(arena, copy->origin_id);
    copy->own_id = arena_copy(arena, copy->own_id);
    copy->key = arena_copy(arena, copy->key);
    copy->range.min = arena_copy(arena, copy->range.min);
    copy->range.max = arena_copy(arena, copy->range.max);
    return copy;
}

struct promotion *promotion_ref(struct promotion *promotion)
{
    atomic_fetch_add_explicit(&((struct counted *)promotion)->refs, 1, memory_order_relaxed);
    return promotion;
}

void promotion_unref(struct promotion *promotion)
{
    struct counted *counted = (struct counted *)promotion;

    if (counted && atomic_fetch_sub(&counted->refs, 1) == 1)
        arena_free(counted->arena);
}

/* --- What it says ---------------------------------------------------------------------------- */

bool promotion_shares(const struct promotion *promotion)
{
    return promotion->state != PROMOTION_PREPARING && promotion->grace;
}

bool promotion_shows(const struct promotion *promotion, uint32_t container)
{
    if (promotion_shares(promotion))
        return true;
    return container == (promotion->state == PROMOTION_OUT ? promotion->own : promotion->origin);
}

uint32_t promotion_other(const struct promotion *promotion, uint32_t container,
                         struct slice *ret_id)
{
    bool is_origin = container == promotion->origin;

    *ret_id = is_origin ? promotion->own_id : promotion->origin_id;
    return is_origin ? promotion->own : promotion->origin;
}

uint32_t promotion_home(const struct promotion *promotion)
{
    return promotion->state == PROMOTION_OUT ? promotion->own : promotion->origin;
}

bool promotion_same(const struct promotion *a, const struct promotion *b)
{
    return a->origin == b->origin && a->own == b->own && slice_equal(a->range.min, b->range.min);
}

const char *promotion_state_name(enum promotion_state state)
{
    static const char *const names[] = {[PROMOTION_PREPARING] = "preparing",
                                        [PROMOTION_OUT] = "promoted",
                                        [PROMOTION_BACK] = "demoted"};

    return names[state];
}

static bool is_within(const struct promotion *promotion, struct slice logical)
{
    return slice_compare(logical, promotion->range.min) >= 0 &&
           slice_compare(logical, promotion->range.max) < 0;
}

static bool elsewhere(const struct promotion *promotion, struct slice there, struct error *err)
{
    return error_set(err, ERROR_KEY_ELSEWHERE,
                     "the items of partition key %.*s are in container \"%.*s\"",
                     (int)MIN(promotion->key.len, (size_t)PROMOTION_KEY_SHOWN_MAX),
                     (const char *)promotion->key.data, (int)MIN(there.len, (size_t)64),
                     (const char *)there.data);
}

static bool alone(const struct promotion *promotion, struct error *err)
{
    return error_set(err, ERROR_KEY_ELSEWHERE,
                     "the container is for partition key %.*s of container \"%.*s\" alone%s",
                     (int)MIN(promotion->key.len, (size_t)PROMOTION_KEY_SHOWN_MAX),
                     (const char *)promotion->key.data,
                     (int)MIN(promotion->origin_id.len, (size_t)64),
                     (const char *)promotion->origin_id.data,
                     promotion->state == PROMOTION_PREPARING ? ", which is not here yet" : "");
}

static bool origin_admits(const struct promotion *promotion, struct slice logical,
                          struct error *err)
{
    return promotion->state != PROMOTION_OUT || promotion->grace ||
           !is_within(promotion, logical) || elsewhere(promotion, promotion->own_id, err);
}

static bool own_admits(const struct promotion *promotion, struct slice logical, struct error *err)
{
    if (promotion->state == PROMOTION_PREPARING)
        return alone(promotion, err);
    if (promotion->state == PROMOTION_BACK && !promotion->grace)
        return !is_within(promotion, logical) || elsewhere(promotion, promotion->origin_id, err);
    return is_within(promotion, logical) || alone(promotion, err);
}

bool promotion_list_admits(const struct promotion_list *list, struct slice logical,
                           struct error *err)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct promotion *promotion = list->list[i];

        if (promotion->origin == list->container ? !origin_admits(promotion, logical, err)
                                                 : !own_admits(promotion, logical, err))
            return false;
    }
    return true;
}

uint32_t promotion_list_elsewhere(const struct promotion_list *list, struct slice logical)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct promotion *promotion = list->list[i];

        if (promotion->state != PROMOTION_PREPARING && is_within(promotion, logical) &&
            !promotion_shows(promotion, list->container))
            return promotion_home(promotion);
    }
    return 0;
}

const struct promotion *promotion_list_sharing(const struct promotion_list *list,
                                               uint32_t partition)
{
    for (size_t i = 0; i < list->count; i++)
        if (promotion_shares(list->list[i]) && list->list[i]->partition == partition)
            return list->list[i];
    return NULL;
}

bool promotion_list_is_window(const struct promotion_list *list, uint32_t partition)
{
    const struct promotion *sharing = promotion_list_sharing(list, partition);

    return sharing && promotion_home(sharing) != list->container;
}

bool promotion_list_keeps_place(const struct promotion_list *list,
                                const struct partition_span *span)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct promotion *promotion = list->list[i];

        if (promotion->origin == list->container && promotion->state == PROMOTION_OUT &&
            !promotion->grace && slice_equal(promotion->range.min, span->min))
            return true;
    }
    return false;
}

/* --- On disk --------------------------------------------------------------------------------- */

void promotion_append(const struct promotion *promotion, struct buf *buf)
{
    const struct document_value min = {.type = DOCUMENT_BINARY,
                                       .binary = {.bytes = promotion->range.min}};
    const struct document_value max = {.type = DOCUMENT_BINARY,
                                       .binary = {.bytes = promotion->range.max}};
    size_t begin = document_begin(buf);

    document_append_int64(buf, SLICE("origin"), promotion->origin);
    document_append_int64(buf, SLICE("own"), promotion->own);
    document_append_int64(buf, SLICE("partition"), promotion->partition);
    document_append_int32(buf, SLICE("state"), promotion->state);
    document_append_bool(buf, SLICE("grace"), promotion->grace);
    document_append_int64(buf, SLICE("since"), promotion->since_ms);
    document_append_string(buf, SLICE("originId"), promotion->origin_id);
    document_append_string(buf, SLICE("ownId"), promotion->own_id);
    document_append_string(buf, SLICE("key"), promotion->key);
    document_append(buf, SLICE("min"), &min);
    document_append(buf, SLICE("max"), &max);
    document_append_int64(buf, SLICE("originShown"), (int64_t)promotion->origin_shown);
    document_append_int64(buf, SLICE("ownShown"), (int64_t)promotion->own_shown);
    document_end(buf, begin);
}

static bool number_read(struct slice document, const char *name, int64_t max, int64_t *ret_number)
{
    struct document_value value;

    return document_find(document, slice_of_text(name), &value) &&
           document_to_int64(&value, ret_number) && *ret_number >= 0 && *ret_number <= max;
}

static bool text_take(struct slice document, const char *name, struct slice *ret_text)
{
    struct document_value value;

    if (!document_find(document, slice_of_text(name), &value) || value.type != DOCUMENT_STRING)
        return false;
    *ret_text = value.text;
    return true;
}

static bool bytes_take(struct slice document, const char *name, struct slice *ret_bytes)
{
    struct document_value value;

    if (!document_find(document, slice_of_text(name), &value) || value.type != DOCUMENT_BINARY)
        return false;
    *ret_bytes = value.binary.bytes;
    return true;
}

bool promotion_parse(struct slice document, struct promotion **ret_promotion, struct error *err)
{
    struct promotion promotion = {0};
    int64_t origin, own, partition, state, shown;
    struct document_value grace;

    if (!number_read(document, "origin", UINT32_MAX, &origin) ||
        !number_read(document, "own", UINT32_MAX, &own) ||
        !number_read(document, "partition", UINT32_MAX, &partition) ||
        !number_read(document, "state", PROMOTION_BACK, &state) ||
        !number_read(document, "since", INT64_MAX, &promotion.since_ms) ||
        !document_find(document, SLICE("grace"), &grace) || grace.type != DOCUMENT_BOOL ||
        !text_take(document, "originId", &promotion.origin_id) ||
        !text_take(document, "ownId", &promotion.own_id) ||
        !text_take(document, "key", &promotion.key) ||
        !bytes_take(document, "min", &promotion.range.min) ||
        !bytes_take(document, "max", &promotion.range.max))
        return error_set(err, ERROR_STORE_CORRUPT, "the catalogue holds a damaged promotion");
    promotion.origin = (uint32_t)origin;
    promotion.own = (uint32_t)own;
    promotion.partition = (uint32_t)partition;
    promotion.state = (enum promotion_state)state;
    promotion.grace = grace.boolean;
    if (number_read(document, "originShown", INT64_MAX, &shown))
        promotion.origin_shown = (uint64_t)shown;
    if (number_read(document, "ownShown", INT64_MAX, &shown))
        promotion.own_shown = (uint64_t)shown;
    *ret_promotion = promotion_new(&promotion);
    return true;
}
