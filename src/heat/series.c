#include "heat/heat_private.h"

/* A reading under way: records are put into the points they belong to. */
struct reading {
    struct arena *arena;
    int64_t first; /* minute of the first point */
    uint32_t step;
    struct heat_point **points; /* by position; NULL: nothing yet */
    size_t count;
};

static void record_take(struct reading *reading, int64_t minute, const struct heat_record *record,
                        enum heat_meeting meeting)
{
    size_t at = (size_t)(MAX(minute - reading->first, (int64_t)0) / reading->step);

    if (at >= reading->count)
        return;
    if (!reading->points[at]) {
        reading->points[at] = ARENA_NEW(reading->arena, struct heat_point);
        reading->points[at]->minute = reading->first + (int64_t)at * reading->step;
        heat_record_init(&reading->points[at]->record, reading->arena);
    }
    heat_record_put_all(&reading->points[at]->record, record, meeting);
}

static bool record_visit(void *context, int64_t minute, uint32_t minutes UNUSED,
                         const struct heat_record *record, struct error *err UNUSED)
{
    record_take(context, minute, record, HEAT_SUM);
    return true;
}

/* The minutes that are not written down yet, from the counters. What is written of the present one
 * already, for a migration, is in the counters too unless its partition is gone: so they meet in a
 * record of the minute first. */
static bool present_take(struct heat *heat, const struct container *container,
                         struct reading *reading, int64_t first, int64_t last, int64_t now_ms,
                         struct error *err)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    for (int64_t minute = first; minute <= last; minute++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct reading one = {.arena = arena,
                              .first = minute,
                              .step = 1,
                              .points = (struct heat_point *[1]){NULL},
                              .count = 1};
        struct heat_record counted;

        heat_record_init(&counted, arena);
        for (size_t i = 0; i < count; i++)
            heat_gather(heat, spans[i].id, minute, now_ms, &counted);
        if (!heat_store_read(heat->options.catalogue, container_info(container)->number, minute,
                             minute, record_visit, &one, err))
            return false;
        record_take(&one, minute, &counted, HEAT_AGAIN);
        if (one.points[0]->record.span_count)
            record_take(reading, minute, &one.points[0]->record, HEAT_SUM);
    }
    return true;
}

static bool points_read(struct heat *heat, const struct container *container,
                        const struct heat_query *query, struct reading *reading, struct error *err)
{
    int64_t now_ms = clock_read_wall_ms(heat->clock), now = now_ms / HEAT_MINUTE_MS, written;
    bool fine = true;

    WITH_LOCK (&heat->record_lock) {
        written = heat->harvested;
        fine = heat_store_read(heat->options.catalogue, container_info(container)->number,
                               query->from_minute, MIN(query->to_minute, written), record_visit,
                               reading, err) &&
               present_take(heat, container, reading, MAX(written + 1, query->from_minute),
                            MIN(query->to_minute, now), now_ms, err);
    }
    return fine;
}

static void points_close(struct reading *reading, struct heat_series *series)
{
    series->points = ARENA_ARRAY(reading->arena, struct heat_point, reading->count);
    series->point_count = 0;
    for (size_t i = 0; i < reading->count; i++)
        if (reading->points[i]) {
            heat_record_trim(&reading->points[i]->record);
            series->points[series->point_count++] = *reading->points[i];
        }
}

/* Those the store has not seen used are there all the same. */
static bool places_read(struct heat *heat, const struct container *container, struct arena *arena,
                        struct heat_series *series, struct error *err)
{
    size_t spans, stored;
    const struct partition_span *span = partition_map_spans(container_map(container), &spans);
    struct heat_place *places, *all;

    if (!heat_store_places(heat->options.catalogue, container_info(container)->number, arena,
                           &places, &stored, err))
        return false;
    all = ARENA_ARRAY(arena, struct heat_place, stored + spans);
    for (size_t i = 0; i < stored; i++)
        all[i] = places[i];
    series->place_count = stored;
    for (size_t i = 0; i < spans; i++) {
        bool known = false;

        for (size_t j = 0; j < stored && !known; j++)
            known = all[j].partition == span[i].id;
        if (!known)
            all[series->place_count++] = (struct heat_place){.partition = span[i].id,
                                                             .node = span[i].node,
                                                             .min = arena_copy(arena, span[i].min),
                                                             .max = arena_copy(arena, span[i].max)};
    }
    series->places = all;
    return true;
}

static bool events_read(struct heat *heat, const struct container *container,
                        const struct heat_query *query, struct arena *arena,
                        struct heat_series *series, struct error *err)
{
    struct heat_event *events;
    size_t count;

    if (!heat_store_events(heat->options.catalogue, container_info(container)->number, arena,
                           &events, &count, err))
        return false;
    series->events = events;
    series->event_count = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t minute = events[i].at_ms / HEAT_MINUTE_MS;

        if (minute >= query->from_minute && minute <= query->to_minute)
            series->events[series->event_count++] = events[i];
    }
    return true;
}

/* A step is at least as long as what is stored of so long ago. */
static uint32_t step_of(const struct heat *heat, const struct heat_query *query)
{
    int64_t minutes = query->to_minute - query->from_minute + 1;
    int64_t step = (minutes + (int64_t)query->points_max - 1) / (int64_t)query->points_max;
    int64_t now = clock_read_wall_ms(heat->clock) / HEAT_MINUTE_MS;

    if (step > 1 || query->from_minute < now - HEAT_DAY_MINUTES)
        step = (step + HEAT_FOLD_MINUTES - 1) / HEAT_FOLD_MINUTES * HEAT_FOLD_MINUTES;
    return (uint32_t)MAX(step, (int64_t)1);
}

bool heat_read(struct heat *heat, const struct container *container, const struct heat_query *query,
               struct arena *arena, struct heat_series *ret_series, struct error *err)
{
    struct heat_series series = {.step = step_of(heat, query)};
    struct reading reading = {.arena = arena,
                              .first = query->from_minute - query->from_minute % series.step,
                              .step = series.step};

    assert(query->points_max >= 1 && query->from_minute <= query->to_minute);
    reading.count = (size_t)((query->to_minute - reading.first) / series.step) + 1;
    reading.points =
        arena_alloc_zero(arena, memory_array_size(reading.count, sizeof(struct heat_point *)));
    if (!points_read(heat, container, query, &reading, err) ||
        !places_read(heat, container, arena, &series, err) ||
        !events_read(heat, container, query, arena, &series, err))
        return false;
    points_close(&reading, &series);
    *ret_series = series;
    return true;
}
