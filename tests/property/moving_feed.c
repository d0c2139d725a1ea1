/* The reader of the feed of the container that moves. */
#include "property/moving.h"

#include "catalogue/container_space.h"
#include "document/bson.h"
#include "item/feed_read.h"
#include "support/check.h"

static void position_add(struct moving *moving, struct slice min, struct slice max, uint64_t lsn)
{
    struct moving_position *position = &moving->positions[moving->position_count++];

    assert_true(moving->position_count < MOVING_RANGES_MAX);
    position->min = slice_of(slice_to_text(min), min.len);
    position->max = slice_of(slice_to_text(max), max.len);
    position->lsn = lsn;
}

static void positions_clear(struct moving_position *positions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memory_free((void *)positions[i].min.data);
        memory_free((void *)positions[i].max.data);
    }
}

void moving_feed_begin(struct moving *moving)
{
    position_add(moving, PARTITION_ROUTING_MIN, PARTITION_ROUTING_MAX, 0);
}

void moving_feed_end(struct moving *moving)
{
    positions_clear(moving->positions, moving->position_count);
}

static void change_see(struct moving *moving, const struct feed_change *change)
{
    unsigned key, id;
    struct document_value text;
    struct moving_item *item;
    uint32_t version;

    if (change->kind == FEED_DELETE || !change->current.document.data)
        return;
    assert_true(document_find(change->current.document, SLICE("pk"), &text));
    assert_int_equal(sscanf(arena_text(moving->arena, text.text), "k%u", &key), 1);
    assert_true(document_find(change->current.document, SLICE("id"), &text));
    assert_int_equal(sscanf(arena_text(moving->arena, text.text), "i%u", &id), 1);
    item = &moving->items[key][id];
    version = moving_version(&change->current);
    if (version <= item->seen && item->again) {
        item->again--;
        moving->repeats++;
    } else if (version <= item->seen) {
        fail_msg("seed %llu step %u: the feed showed version %u of k%u i%u after version %u",
                 (unsigned long long)moving->seed, moving->step, version, key, id, item->seen);
    }
    item->seen = version;
    moving->changes_seen++;
}

static struct slice later(struct slice a, struct slice b)
{
    return slice_compare(a, b) >= 0 ? a : b;
}

static struct slice earlier(struct slice a, struct slice b)
{
    return slice_compare(a, b) <= 0 ? a : b;
}

/* Reads a range of one partition to its end. */
static uint64_t range_read(struct moving *moving, const struct item_scope *scope, struct slice min,
                           struct slice max, uint64_t lsn, bool all_versions)
{
    struct feed_request request = {.mode = all_versions ? FEED_ALL_VERSIONS : FEED_LATEST,
                                   .after_lsn = lsn,
                                   .routing_min = min,
                                   .routing_max = max,
                                   .changes_max = 7};
    struct feed_page page;
    struct error err;

    do {
        assert_ok(feed_read(scope, &request, moving->arena, &page, &err), &err);
        for (size_t i = 0; i < page.count; i++)
            change_see(moving, &page.changes[i]);
        request.after_lsn = page.lsn;
    } while (page.more);
    return page.lsn;
}

/* As clients do: whoever stood in a partition that is no more goes on in what came of it, with the
 * part of the keys it had. */
void moving_feed_follow(struct moving *moving)
{
    CLEANUP(container_unref) struct container *container = moving_container(moving, "c");
    struct item_space space = container_space(container, &clock_system, moving->gates);
    struct moving_position before[MOVING_RANGES_MAX];
    size_t count = moving->position_count;

    memcpy(before, moving->positions, sizeof before);
    moving->position_count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t spans;
        const struct partition_span *span = partition_map_overlap(
            space.map, (struct partition_range){before[i].min, before[i].max}, &spans);

        for (size_t s = 0; s < spans; s++) {
            struct item_scope scope = item_space_span_scope(&space, &span[s]);
            struct slice min = later(before[i].min, span[s].min);
            struct slice max = earlier(before[i].max, span[s].max);
            uint64_t lsn = range_read(moving, &scope, min, max, before[i].lsn,
                                      space.definition->feed_retention_ms > 0);

            position_add(moving, min, max, lsn);
        }
    }
    positions_clear(before, count);
}
