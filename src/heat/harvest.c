/* Counters are read, never taken: a minute that is read twice is met by the record of the first
 * time (HEAT_AGAIN). So a partition can be written down whenever it is about to go, and a failed
 * commit is simply done again. */
#include "catalogue/migration.h"
#include "heat/heat_private.h"

enum { KNOWN_MAX = 65536 };

/* --- Gathering ------------------------------------------------------------------------------- */

void heat_gather(struct heat *heat, uint32_t partition, int64_t minute, int64_t now_ms,
                 struct heat_record *record)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct meter *meter = meters_find(heat->options.meters, partition);
    struct heat_span span = {.partition = partition};
    struct statistics_key_minutes *keys;
    size_t count;

    if (!meter ||
        !statistics_minute(meter_statistics(meter), minute, now_ms, &span.numbers, &span.times) ||
        span.numbers.requests == 0)
        return;
    heat_record_put_span(record, &span, HEAT_AGAIN);
    arena = arena_new();
    count = statistics_hottest_between(meter_statistics(meter), minute, minute, HEAT_KEYS_MAX,
                                       now_ms, arena, &keys);
    for (size_t i = 0; i < count; i++)
        heat_record_put_key(record,
                            &(struct heat_key){.partition = partition,
                                               .key = keys[i].key,
                                               .cut = keys[i].key.len >= STATISTICS_KEY_LEN_MAX,
                                               .numbers = keys[i].numbers},
                            HEAT_AGAIN);
    heat_record_trim(record);
}

static void container_gather(struct heat *heat, const struct container *container, int64_t minute,
                             int64_t now_ms, struct heat_record *record)
{
    size_t count;
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);

    for (size_t i = 0; i < count; i++)
        if (!promotion_list_is_window(container_promotions(container), spans[i].id))
            heat_gather(heat, spans[i].id, minute, now_ms, record);
}

/* Those that a published migration leaves behind. Only the migrator, who drops them, may look at
 * their meters: nobody else holds a map they are in. */
static void sources_gather(struct heat *heat, const struct container *container, int64_t minute,
                           int64_t now_ms, struct heat_record *record)
{
    size_t count;
    const struct migration_source *sources =
        migration_sources(container_migration(container), &count);

    for (size_t i = 0; i < count; i++)
        heat_gather(heat, sources[i].id, minute, now_ms, record);
}

/* --- Places ---------------------------------------------------------------------------------- */

static size_t known_place(const struct heat *heat, uint32_t partition)
{
    size_t low = 0, high = heat->known_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (heat->known[middle] < partition)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_known(const struct heat *heat, uint32_t partition)
{
    size_t place = known_place(heat, partition);

    return place < heat->known_count && heat->known[place] == partition;
}

static void known_add(struct heat *heat, uint32_t partition)
{
    size_t place = known_place(heat, partition);

    if (heat->known_count == heat->known_capacity) {
        heat->known_capacity = heat->known_capacity * 2 + 64;
        heat->known = memory_realloc(heat->known,
                                     memory_array_size(heat->known_capacity, sizeof *heat->known));
    }
    memmove(&heat->known[place + 1], &heat->known[place],
            (heat->known_count - place) * sizeof *heat->known);
    heat->known[place] = partition;
    heat->known_count++;
}

/* Written once for each partition that is used at all. */
static bool place_write(struct heat *heat, struct heat_batch *batch, uint32_t container,
                        const struct partition_span *span, int64_t minute, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    struct heat_place place = {.partition = span->id,
                               .node = span->node,
                               .since = minute,
                               .min = span->min,
                               .max = span->max};
    struct heat_place stored;
    bool found;

    if (is_known(heat, span->id))
        return true;
    arena = arena_new();
    if (!heat_store_place(batch->catalogue, container, span->id, arena, &stored, &found, err) ||
        (!found && !heat_store_put_place(batch, container, &place, err)))
        return false;
    known_add(heat, span->id);
    return true;
}

static bool places_write(struct heat *heat, struct heat_batch *batch,
                         const struct container *container, const struct heat_record *record,
                         int64_t minute, struct error *err)
{
    for (size_t i = 0; i < record->span_count; i++) {
        const struct partition_span *span =
            partition_map_find_id(container_map(container), record->spans[i].partition);

        if (span && !place_write(heat, batch, container_info(container)->number, span, minute, err))
            return false;
    }
    return true;
}

/* --- Writing down ---------------------------------------------------------------------------- */

static bool minute_write(struct heat *heat, struct heat_batch *batch,
                         const struct heat_subject *subject, int64_t minute, int64_t now_ms,
                         struct error *err)
{
    const struct container *container = subject->container;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_record record;

    heat_record_init(&record, arena);
    container_gather(heat, container, minute, now_ms, &record);
    if (subject->with_sources)
        sources_gather(heat, container, minute, now_ms, &record);
    if (definition_fields(container_definition(container))->placement.resident)
        record.key_count = 0; /* notes are on the root, where keys may not be */
    return record.span_count == 0 ||
           (places_write(heat, batch, container, &record, minute, err) &&
            heat_store_save(batch, container_info(container)->number, minute, &record, err));
}

static bool minutes_write(struct heat *heat, const struct heat_subject *subjects, size_t count,
                          int64_t first, int64_t last, int64_t now_ms, struct error *err)
{
    CLEANUP(heat_batch_done) struct heat_batch batch;

    heat_batch_init(&batch, heat->options.catalogue);
    for (int64_t minute = first; minute <= last; minute++)
        for (size_t i = 0; i < count; i++)
            if (!minute_write(heat, &batch, &subjects[i], minute, now_ms, err))
                return false;
    return heat_batch_write(&batch, err);
}

bool heat_harvest(struct heat *heat, const struct heat_subject *subjects, size_t count,
                  int64_t now_ms, bool with_present, struct error *err)
{
    int64_t now = now_ms / HEAT_MINUTE_MS, last = with_present ? now : now - 1;
    bool written = true;

    WITH_LOCK (&heat->record_lock) {
        int64_t first = MAX(heat->harvested + 1, now - STATISTICS_MINUTES + 1);

        if (first <= last)
            written = minutes_write(heat, subjects, count, first, last, now_ms, err);
        if (written)
            heat->harvested = MAX(heat->harvested, now - 1);
    }
    return written;
}

/* --- Events ---------------------------------------------------------------------------------- */

/* A source that was never written down, for it came and went between two looks: alone it covered
 * what the targets cover. */
static struct heat_place source_place(const struct migration *migration, uint32_t partition,
                                      int64_t minute)
{
    size_t count;
    const struct partition_span *targets = migration_targets(migration, &count);

    return (struct heat_place){.partition = partition,
                               .node = targets[0].node,
                               .since = minute,
                               .min = targets[0].min,
                               .max = targets[count - 1].max};
}

static bool sources_close(struct heat_batch *batch, uint32_t container,
                          const struct migration *migration, const struct heat_event *event,
                          struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < event->source_count; i++) {
        struct heat_place place;
        bool found;

        if (!heat_store_place(batch->catalogue, container, event->sources[i], arena, &place, &found,
                              err))
            return false;
        if (!found && event->source_count > 1)
            continue;
        if (!found)
            place = source_place(migration, event->sources[i], event->at_ms / HEAT_MINUTE_MS);
        place.until = event->at_ms / HEAT_MINUTE_MS;
        if (!heat_store_put_place(batch, container, &place, err))
            return false;
    }
    return true;
}

static bool targets_open(struct heat *heat, struct heat_batch *batch, uint32_t container,
                         const struct migration *migration, int64_t minute, struct error *err)
{
    size_t count;
    const struct partition_span *targets = migration_targets(migration, &count);

    for (size_t i = 0; i < count; i++)
        if (!place_write(heat, batch, container, &targets[i], minute, err))
            return false;
    return true;
}

/* The state is of a migration whose map is published. One without targets, an edit of a directory
 * that needs none, leaves all partitions what they are: nothing to note. */
static bool event_write(struct heat *heat, const struct container *container, int64_t now_ms,
                        struct error *err)
{
    CLEANUP(heat_batch_done) struct heat_batch batch;
    const struct migration *migration = container_migration(container);
    uint32_t number = container_info(container)->number;
    uint32_t source_ids[MIGRATION_SOURCES_MAX], target_ids[MIGRATION_TARGETS_MAX];
    struct heat_event event = {.at_ms = now_ms,
                               .kind = migration_kind(migration),
                               .sources = source_ids,
                               .targets = target_ids};
    const struct migration_source *sources = migration_sources(migration, &event.source_count);
    const struct partition_span *targets = migration_targets(migration, &event.target_count);

    for (size_t i = 0; i < event.source_count; i++)
        source_ids[i] = sources[i].id;
    for (size_t i = 0; i < event.target_count; i++)
        target_ids[i] = targets[i].id;
    heat_batch_init(&batch, heat->options.catalogue);
    if (event.target_count == 0)
        return true;
    return heat_store_put_event(&batch, number, &event, err) &&
           sources_close(&batch, number, migration, &event, err) &&
           targets_open(heat, &batch, number, migration, now_ms / HEAT_MINUTE_MS, err) &&
           heat_batch_write(&batch, err);
}

static void sources_write(struct heat *heat, const struct container *container, bool with_event)
{
    int64_t now_ms = clock_read_wall_ms(heat->clock);
    struct heat_subject subject = {.container = (struct container *)container,
                                   .with_sources = true};
    struct error err;
    bool written = true;

    if (!container_migration(container))
        return;
    WITH_LOCK (&heat->record_lock) {
        int64_t now = now_ms / HEAT_MINUTE_MS;

        written =
            minutes_write(heat, &subject, 1, MAX(heat->harvested + 1, now - STATISTICS_MINUTES + 1),
                          now, now_ms, &err) &&
            (!with_event || event_write(heat, container, now_ms, &err));
    }
    if (!written)
        log_error(heat->options.log, "heat of a migration not written down", &err);
}

void heat_published(struct heat *heat, const struct container *container)
{
    if (migration_kind(container_migration(container)) == MIGRATION_COPY)
        return; /* its own partitions are what they were */
    sources_write(heat, container, true);
}

void heat_leaving(struct heat *heat, const struct container *container)
{
    sources_write(heat, container, false);
}

/* --- Tidying --------------------------------------------------------------------------------- */

/* A process that was killed between publishing a map and writing the event down. */
static bool events_catch_up(struct heat *heat, const struct heat_subject *subjects, size_t count,
                            int64_t now_ms, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct container *container = subjects[i].container;
        const struct migration *migration = container_migration(container);
        const struct partition_span *target;
        size_t targets;
        bool has = true;

        if (!migration || migration_state(migration) != MIGRATION_DROPPING ||
            migration_kind(migration) == MIGRATION_COPY)
            continue;
        target = migration_targets(migration, &targets);
        if (targets == 0)
            continue;
        if (!heat_store_has_event(heat->options.catalogue, container_info(container)->number,
                                  target->id, &has, err) ||
            (!has && !event_write(heat, container, now_ms, err)))
            return false;
    }
    return true;
}

static bool is_subject(const struct heat_subject *subjects, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++)
        if (container_info(subjects[i].container)->number == number)
            return true;
    return false;
}

static bool containers_tidy(struct heat *heat, const struct heat_subject *subjects, size_t count,
                            int64_t now_ms, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(heat_batch_done) struct heat_batch batch;
    uint32_t *numbers;
    size_t stored;

    heat_batch_init(&batch, heat->options.catalogue);
    if (!heat_store_containers(heat->options.catalogue, arena, &numbers, &stored, err))
        return false;
    for (size_t i = 0; i < stored; i++)
        if (!(is_subject(subjects, count, numbers[i])
                  ? heat_store_fold(&batch, numbers[i], now_ms / HEAT_MINUTE_MS, err)
                  : heat_store_forget(&batch, numbers[i], err)))
            return false;
    return heat_batch_write(&batch, err);
}

/* The containers are gathered under the lock: of one that is made meanwhile nothing is written
 * before this is done, and nothing of it forgotten. */
bool heat_tidy(struct heat *heat, int64_t now_ms, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    bool fine = true;

    WITH_LOCK (&heat->record_lock) {
        size_t count;
        struct heat_subject *subjects = heat_subjects(heat, arena, &count);

        if (heat->known_count > KNOWN_MAX)
            heat->known_count = 0; /* most are gone; the store knows the others */
        fine = events_catch_up(heat, subjects, count, now_ms, err) &&
               containers_tidy(heat, subjects, count, now_ms, err);
        heat_subjects_done(subjects, count);
    }
    return fine;
}
