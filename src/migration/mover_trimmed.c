/* What was trimmed from the feeds of the sources holds for their ranges of keys in the targets. */
#include "item/feed.h"
#include "item/feed_trimmed.h"
#include "migration/mover_private.h"

static struct slice mark_key(struct mover *mover)
{
    uint8_t *key = arena_alloc(mover->arena, FEED_KEY_LEN);

    feed_key_encode((struct feed_place){.ordinal = FEED_MARK_TRIMMED}, key);
    return slice_of(key, FEED_KEY_LEN);
}

static bool trimmed_read(struct mover *mover, const struct mover_source *source,
                         struct feed_trimmed *ret_trimmed, struct error *err)
{
    struct engine_value value;

    ret_trimmed->count = 0;
    if (!engine_get(source->node->engine, NULL, source->plan.id, mark_key(mover), ENGINE_READ_ANY,
                    mover->arena, &value, err))
        return false;
    return value.found != ENGINE_FOUND || feed_trimmed_decode(value.bytes, ret_trimmed, err);
}

bool mover_trimmed_add(struct mover *mover, struct mover_target *target, uint64_t lsn,
                       struct error *err)
{
    const struct partition_span *span = target->span;
    struct feed_trimmed trimmed = {.count = 0}, of_source;
    struct slice value;

    if (mover->rekeys) /* of versions before it nothing was carried */
        trimmed = (struct feed_trimmed){.ranges[0] = {.min = SLICE(""), .lsn = lsn}, .count = 1};
    for (size_t i = 0; i < mover->source_count && !mover->rekeys; i++) {
        const struct mover_source *source = &mover->sources[i];
        struct slice min = slice_compare(source->min, span->min) > 0 ? source->min : span->min;
        struct slice max = slice_compare(source->max, span->max) < 0 ? source->max : span->max;

        if (slice_compare(min, max) >= 0)
            continue;
        if (!trimmed_read(mover, source, &of_source, err))
            return false;
        feed_trimmed_join(&trimmed, &of_source, min, max);
    }
    value = feed_trimmed_encode(&trimmed, mover->arena);
    if (value.len)
        mover_op_add(mover, target, (struct engine_op){ENGINE_PUT, mark_key(mover), value});
    return true;
}
