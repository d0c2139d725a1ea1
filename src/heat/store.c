/* Notes of the catalogue (catalogue_notes.h). Numbers are big-endian; a container is known by its
 * number, which is never used again.
 *
 *     h | container: 4 | 'm' | minute: 4              -> record (heat_record.c) of that minute
 *     h | container: 4 | 't' | minute: 4              -> record of ten minutes from there
 *     h | container: 4 | 'p' | partition: 4           -> place
 *     h | container: 4 | 'e' | first target: 4        -> event
 *
 *     place  1 byte 1, since: 8, until: 8, node: 4, length: 2 and bytes of min, the same of max
 *     event  1 byte 1, kind: 1, at_ms: 8, sources: 2, their ids: 4 each, the same of targets
 *
 * An event has the id of its first target as its key, which no other migration ever has: so it may
 * be written again after a crash. Folding writes the ten and deletes the minutes in one commit, so
 * nothing is counted twice. */
#include "heat/store.h"

#include "base/bytes.h"
#include "catalogue/notes.h"

enum level {
    LEVEL_EVENT = 'e',
    LEVEL_MINUTE = 'm',
    LEVEL_PLACE = 'p',
    LEVEL_TEN = 't',
};

enum { KEY_LEN = 10, FORMAT = 1, BATCH_OPS = 256, BATCH_BYTES = 1024 * 1024 };

static bool damaged(struct error *err, const char *what)
{
    return error_set(err, ERROR_STORE_CORRUPT, "a stored %s of heat is damaged", what);
}

static void key_write(uint8_t key[KEY_LEN], uint32_t container, enum level level, uint32_t number)
{
    key[0] = CATALOGUE_NOTES_HEAT;
    bytes_put_be32(key + 1, container);
    key[5] = (uint8_t)level;
    bytes_put_be32(key + 6, number);
}

static uint32_t key_number(struct slice key)
{
    return bytes_get_be32(key.data + 6);
}

/* --- Batches --------------------------------------------------------------------------------- */

void heat_batch_init(struct heat_batch *batch, struct catalogue *catalogue)
{
    *batch = (struct heat_batch){.catalogue = catalogue, .arena = arena_new()};
    batch->ops = ARENA_ARRAY(batch->arena, struct engine_op, BATCH_OPS);
}

void heat_batch_done(struct heat_batch *batch)
{
    arena_free(batch->arena);
    batch->arena = NULL;
}

bool heat_batch_write(struct heat_batch *batch, struct error *err)
{
    bool written = catalogue_notes_write(batch->catalogue, batch->ops, batch->count, err);

    arena_reset(batch->arena);
    batch->ops = ARENA_ARRAY(batch->arena, struct engine_op, BATCH_OPS);
    batch->count = batch->bytes = 0;
    return written;
}

static bool op_add(struct heat_batch *batch, enum engine_op_kind kind, struct slice key,
                   struct slice value, struct error *err)
{
    if ((batch->count == BATCH_OPS || batch->bytes + value.len > BATCH_BYTES) &&
        !heat_batch_write(batch, err))
        return false;
    batch->ops[batch->count++] =
        (struct engine_op){kind, arena_copy(batch->arena, key), arena_copy(batch->arena, value)};
    batch->bytes += key.len + value.len;
    return true;
}

static bool put(struct heat_batch *batch, uint32_t container, enum level level, uint32_t number,
                struct slice value, struct error *err)
{
    uint8_t key[KEY_LEN];

    key_write(key, container, level, number);
    return op_add(batch, ENGINE_PUT, slice_of(key, sizeof key), value, err);
}

static bool get(struct catalogue *catalogue, uint32_t container, enum level level, uint32_t number,
                struct arena *arena, struct engine_value *ret_value, struct error *err)
{
    uint8_t key[KEY_LEN];

    key_write(key, container, level, number);
    return catalogue_notes_get(catalogue, slice_of(key, sizeof key), arena, ret_value, err);
}

/* --- Walking --------------------------------------------------------------------------------- */

/* What a walk over the notes of a container fills, or why it ended. */
struct walk {
    struct arena *arena;
    uint32_t container;
    enum level level;
    struct error *err;
    bool failed;
    heat_store_visit *visit;
    void *context;
    int64_t first;

    struct heat_place *places;
    struct heat_event *events;
    size_t count, capacity;
};

static bool walk_run(struct catalogue *catalogue, struct walk *walk, uint32_t from, uint32_t to,
                     bool (*visit)(void *context, struct slice key, struct slice value),
                     struct error *err)
{
    uint8_t min[KEY_LEN], max[KEY_LEN + 1];

    key_write(min, walk->container, walk->level, from);
    key_write(max, walk->container, walk->level, to);
    max[KEY_LEN] = 0; /* behind the last of them */
    walk->err = err;
    return catalogue_notes_walk(
               catalogue,
               (struct engine_range){slice_of(min, sizeof min), slice_of(max, sizeof max)}, visit,
               walk, err) &&
           !walk->failed;
}

static void *walk_place(struct walk *walk, void *array, size_t size)
{
    void *more = array;

    if (walk->count == walk->capacity) {
        walk->capacity = walk->capacity ? walk->capacity * 2 : 16;
        more = arena_alloc(walk->arena, memory_array_size(walk->capacity, size));
        if (walk->count)
            memcpy(more, array, walk->count * size);
    }
    return more;
}

/* --- Records --------------------------------------------------------------------------------- */

static bool record_put(struct heat_batch *batch, uint32_t container, enum level level,
                       int64_t minute, struct heat_record *record, struct error *err)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    heat_record_trim(record);
    heat_record_append(record, &bytes);
    return put(batch, container, level, (uint32_t)minute, buf_slice(&bytes), err);
}

static bool record_get(struct heat_batch *batch, uint32_t container, enum level level,
                       int64_t minute, struct arena *arena, struct heat_record *ret_record,
                       struct error *err)
{
    struct engine_value value;

    heat_record_init(ret_record, arena);
    if (!get(batch->catalogue, container, level, (uint32_t)minute, arena, &value, err))
        return false;
    return value.found != ENGINE_FOUND || heat_record_parse(value.bytes, ret_record, err);
}

bool heat_store_save(struct heat_batch *batch, uint32_t container, int64_t minute,
                     const struct heat_record *record, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_record stored;

    if (!record_get(batch, container, LEVEL_MINUTE, minute, arena, &stored, err))
        return false;
    heat_record_put_all(&stored, record, HEAT_AGAIN);
    return record_put(batch, container, LEVEL_MINUTE, minute, &stored, err);
}

static bool record_visit(void *context, struct slice key, struct slice value)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct walk *walk = context;
    struct heat_record record;

    heat_record_init(&record, arena);
    walk->failed =
        !heat_record_parse(value, &record, walk->err) ||
        !walk->visit(walk->context, key_number(key),
                     walk->level == LEVEL_TEN ? HEAT_FOLD_MINUTES : 1, &record, walk->err);
    return !walk->failed;
}

static bool level_read(struct catalogue *catalogue, uint32_t container, enum level level,
                       int64_t first, int64_t last, heat_store_visit *visit, void *context,
                       struct error *err)
{
    struct walk walk = {.container = container, .level = level, .visit = visit, .context = context};

    if (first > last)
        return true;
    return walk_run(catalogue, &walk, (uint32_t)MAX(first, (int64_t)0),
                    (uint32_t)MIN(MAX(last, (int64_t)0), (int64_t)UINT32_MAX), record_visit, err);
}

/* A ten that begins before the first minute may reach into it. */
bool heat_store_read(struct catalogue *catalogue, uint32_t container, int64_t first, int64_t last,
                     heat_store_visit *visit, void *context, struct error *err)
{
    return level_read(catalogue, container, LEVEL_TEN, first - HEAT_FOLD_MINUTES + 1, last, visit,
                      context, err) &&
           level_read(catalogue, container, LEVEL_MINUTE, first, last, visit, context, err);
}

/* --- Folding --------------------------------------------------------------------------------- */

/* Minutes are gathered until one of the next ten comes. */
struct folding {
    struct heat_batch *batch;
    uint32_t container;
    int64_t ten; /* being gathered; -1: none */
    struct arena *arena;
    struct heat_record record;
    uint32_t minutes[HEAT_FOLD_MINUTES];
    size_t count;
};

/* All that belongs together goes into one commit. */
static bool folding_end(struct folding *folding, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_record stored;

    if (folding->count == 0)
        return true;
    if (folding->batch->count + folding->count >= BATCH_OPS &&
        !heat_batch_write(folding->batch, err))
        return false;
    if (!record_get(folding->batch, folding->container, LEVEL_TEN, folding->ten, arena, &stored,
                    err))
        return false;
    heat_record_put_all(&stored, &folding->record, HEAT_SUM);
    if (!record_put(folding->batch, folding->container, LEVEL_TEN, folding->ten, &stored, err))
        return false;
    for (size_t i = 0; i < folding->count; i++) {
        uint8_t key[KEY_LEN];

        key_write(key, folding->container, LEVEL_MINUTE, folding->minutes[i]);
        folding->batch->ops[folding->batch->count++] =
            (struct engine_op){.kind = ENGINE_DELETE,
                               .key = arena_copy(folding->batch->arena, slice_of(key, sizeof key))};
    }
    folding->count = 0;
    return true;
}

static bool folding_take(void *context, int64_t minute, uint32_t minutes UNUSED,
                         const struct heat_record *record, struct error *err)
{
    struct folding *folding = context;
    int64_t ten = minute - minute % HEAT_FOLD_MINUTES;

    if (ten != folding->ten) {
        if (!folding_end(folding, err))
            return false;
        arena_reset(folding->arena);
        heat_record_init(&folding->record, folding->arena);
        folding->ten = ten;
    }
    heat_record_put_all(&folding->record, record, HEAT_SUM);
    folding->minutes[folding->count++] = (uint32_t)minute;
    return true;
}

static bool note_delete(void *context, struct slice key, struct slice value UNUSED)
{
    struct walk *walk = context;

    walk->failed = !op_add(walk->context, ENGINE_DELETE, key, SLICE_NONE, walk->err);
    return !walk->failed;
}

static bool level_delete(struct heat_batch *batch, uint32_t container, enum level level,
                         uint32_t from, uint32_t to, struct error *err)
{
    struct walk walk = {.container = container, .level = level, .context = batch};

    return walk_run(batch->catalogue, &walk, from, to, note_delete, err);
}

static bool places_expire(struct heat_batch *batch, uint32_t container, int64_t before,
                          struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_place *places;
    size_t count;

    if (!heat_store_places(batch->catalogue, container, arena, &places, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if (places[i].until && places[i].until < before &&
            !level_delete(batch, container, LEVEL_PLACE, places[i].partition, places[i].partition,
                          err))
            return false;
    return true;
}

static bool events_expire(struct heat_batch *batch, uint32_t container, int64_t before,
                          struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct heat_event *events;
    size_t count;

    if (!heat_store_events(batch->catalogue, container, arena, &events, &count, err))
        return false;
    for (size_t i = 0; i < count; i++)
        if ((events[i].at_ms / 60000 < before || count - i > HEAT_EVENTS_MAX) &&
            !level_delete(batch, container, LEVEL_EVENT, events[i].targets[0], events[i].targets[0],
                          err))
            return false;
    return true;
}

bool heat_store_fold(struct heat_batch *batch, uint32_t container, int64_t now_minute,
                     struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct folding folding = {.batch = batch, .container = container, .ten = -1, .arena = arena};
    int64_t day = now_minute - HEAT_DAY_MINUTES, week = now_minute - HEAT_WEEK_MINUTES;

    day -= MAX(day, (int64_t)0) % HEAT_FOLD_MINUTES; /* whole tens alone */
    if (day > 0 && (!level_read(batch->catalogue, container, LEVEL_MINUTE, 0, day - 1, folding_take,
                                &folding, err) ||
                    !folding_end(&folding, err)))
        return false;
    if (week <= 0)
        return true;
    /* what was folded just now may be older than a week already: it is found when it is written */
    return heat_batch_write(batch, err) &&
           level_delete(batch, container, LEVEL_TEN, 0,
                        (uint32_t)MAX(week - HEAT_FOLD_MINUTES, (int64_t)0), err) &&
           places_expire(batch, container, week, err) && events_expire(batch, container, week, err);
}

bool heat_store_forget(struct heat_batch *batch, uint32_t container, struct error *err)
{
    static const enum level levels[] = {LEVEL_EVENT, LEVEL_MINUTE, LEVEL_PLACE, LEVEL_TEN};

    for (size_t i = 0; i < ARRAY_LEN(levels); i++)
        if (!level_delete(batch, container, levels[i], 0, UINT32_MAX, err))
            return false;
    return true;
}

/* --- Places ---------------------------------------------------------------------------------- */

static void text_append(struct buf *out, struct slice text)
{
    uint8_t length[2];

    bytes_put_be16(length, (uint16_t)text.len);
    buf_append(out, length, sizeof length);
    buf_append_slice(out, text);
}

static bool text_take(struct slice *bytes, struct slice *ret_text)
{
    size_t length = bytes->len >= 2 ? bytes_get_be16(bytes->data) : SIZE_MAX;

    if (bytes->len < 2 || bytes->len - 2 < length)
        return false;
    *ret_text = slice_of(bytes->data + 2, length);
    *bytes = slice_skip(*bytes, 2 + length);
    return true;
}

bool heat_store_put_place(struct heat_batch *batch, uint32_t container,
                          const struct heat_place *place, struct error *err)
{
    CLEANUP(buf_done) struct buf bytes;

    assert(place->min.len <= UINT16_MAX && place->max.len <= UINT16_MAX);
    buf_init(&bytes, BUF_DEFAULT_MAX);
    buf_append_byte(&bytes, FORMAT);
    buf_append_be64(&bytes, (uint64_t)place->since);
    buf_append_be64(&bytes, (uint64_t)place->until);
    buf_append_be32(&bytes, place->node);
    text_append(&bytes, place->min);
    text_append(&bytes, place->max);
    return put(batch, container, LEVEL_PLACE, place->partition, buf_slice(&bytes), err);
}

static bool place_read(uint32_t partition, struct slice value, struct arena *arena,
                       struct heat_place *ret_place, struct error *err)
{
    enum { HEAD = 21 };
    struct slice rest;

    if (value.len < HEAD || value.data[0] != FORMAT)
        return damaged(err, "place");
    *ret_place = (struct heat_place){.partition = partition,
                                     .since = (int64_t)bytes_get_be64(value.data + 1),
                                     .until = (int64_t)bytes_get_be64(value.data + 9),
                                     .node = bytes_get_be32(value.data + 17)};
    rest = slice_skip(value, HEAD);
    if (!text_take(&rest, &ret_place->min) || !text_take(&rest, &ret_place->max) || rest.len)
        return damaged(err, "place");
    ret_place->min = arena_copy(arena, ret_place->min);
    ret_place->max = arena_copy(arena, ret_place->max);
    return true;
}

bool heat_store_place(struct catalogue *catalogue, uint32_t container, uint32_t partition,
                      struct arena *arena, struct heat_place *ret_place, bool *ret_found,
                      struct error *err)
{
    struct engine_value value;

    if (!get(catalogue, container, LEVEL_PLACE, partition, arena, &value, err))
        return false;
    *ret_found = value.found == ENGINE_FOUND;
    return !*ret_found || place_read(partition, value.bytes, arena, ret_place, err);
}

static bool place_visit(void *context, struct slice key, struct slice value)
{
    struct walk *walk = context;

    walk->places = walk_place(walk, walk->places, sizeof *walk->places);
    walk->failed =
        !place_read(key_number(key), value, walk->arena, &walk->places[walk->count], walk->err);
    walk->count += !walk->failed;
    return !walk->failed;
}

bool heat_store_places(struct catalogue *catalogue, uint32_t container, struct arena *arena,
                       struct heat_place **ret_places, size_t *ret_count, struct error *err)
{
    struct walk walk = {.arena = arena, .container = container, .level = LEVEL_PLACE};

    if (!walk_run(catalogue, &walk, 0, UINT32_MAX, place_visit, err))
        return false;
    *ret_places = walk.places;
    *ret_count = walk.count;
    return true;
}

/* --- Events ---------------------------------------------------------------------------------- */

static void ids_append(struct buf *out, const uint32_t *ids, size_t count)
{
    uint8_t length[2];

    bytes_put_be16(length, (uint16_t)count);
    buf_append(out, length, sizeof length);
    for (size_t i = 0; i < count; i++)
        buf_append_be32(out, ids[i]);
}

static bool ids_take(struct slice *bytes, struct arena *arena, uint32_t **ret_ids,
                     size_t *ret_count)
{
    size_t count = bytes->len >= 2 ? bytes_get_be16(bytes->data) : 0;

    if (count == 0 || (bytes->len - 2) / 4 < count)
        return false;
    *ret_ids = ARENA_ARRAY(arena, uint32_t, count);
    *ret_count = count;
    for (size_t i = 0; i < count; i++)
        (*ret_ids)[i] = bytes_get_be32(bytes->data + 2 + 4 * i);
    *bytes = slice_skip(*bytes, 2 + 4 * count);
    return true;
}

bool heat_store_put_event(struct heat_batch *batch, uint32_t container,
                          const struct heat_event *event, struct error *err)
{
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    buf_append_byte(&bytes, FORMAT);
    buf_append_byte(&bytes, (uint8_t)event->kind);
    buf_append_be64(&bytes, (uint64_t)event->at_ms);
    ids_append(&bytes, event->sources, event->source_count);
    ids_append(&bytes, event->targets, event->target_count);
    return put(batch, container, LEVEL_EVENT, event->targets[0], buf_slice(&bytes), err);
}

static bool event_visit(void *context, struct slice key UNUSED, struct slice value)
{
    enum { HEAD = 10 };
    struct walk *walk = context;
    struct heat_event event;
    struct slice rest;

    walk->events = walk_place(walk, walk->events, sizeof *walk->events);
    walk->failed = true;
    if (value.len >= HEAD && value.data[0] == FORMAT && value.data[1] < MIGRATION_KINDS) {
        event.kind = (enum migration_kind)value.data[1];
        event.at_ms = (int64_t)bytes_get_be64(value.data + 2);
        rest = slice_skip(value, HEAD);
        walk->failed = !ids_take(&rest, walk->arena, &event.sources, &event.source_count) ||
                       !ids_take(&rest, walk->arena, &event.targets, &event.target_count);
    }
    if (walk->failed)
        return damaged(walk->err, "event");
    walk->events[walk->count++] = event;
    return true;
}

bool heat_store_events(struct catalogue *catalogue, uint32_t container, struct arena *arena,
                       struct heat_event **ret_events, size_t *ret_count, struct error *err)
{
    struct walk walk = {.arena = arena, .container = container, .level = LEVEL_EVENT};

    if (!walk_run(catalogue, &walk, 0, UINT32_MAX, event_visit, err))
        return false;
    *ret_events = walk.events;
    *ret_count = walk.count;
    return true;
}

bool heat_store_has_event(struct catalogue *catalogue, uint32_t container, uint32_t first_target,
                          bool *ret_has, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;

    if (!get(catalogue, container, LEVEL_EVENT, first_target, arena, &value, err))
        return false;
    *ret_has = value.found == ENGINE_FOUND;
    return true;
}

/* --- Containers ------------------------------------------------------------------------------ */

static bool first_visit(void *context, struct slice key, struct slice value UNUSED)
{
    *(uint32_t *)context = bytes_get_be32(key.data + 1);
    return false;
}

/* One look for each: behind all notes of a container is the next one. */
bool heat_store_containers(struct catalogue *catalogue, struct arena *arena, uint32_t **ret_numbers,
                           size_t *ret_count, struct error *err)
{
    uint32_t *numbers = NULL;
    size_t count = 0, capacity = 0;
    uint8_t from[KEY_LEN], to[KEY_LEN];

    key_write(from, 0, 0, 0);
    key_write(to, UINT32_MAX, (enum level)UINT8_MAX, UINT32_MAX);
    for (;;) {
        uint32_t number = 0;

        if (!catalogue_notes_walk(
                catalogue,
                (struct engine_range){slice_of(from, sizeof from), slice_of(to, sizeof to)},
                first_visit, &number, err))
            return false;
        if (number == 0)
            break;
        if (count == capacity) {
            uint32_t *more = ARENA_ARRAY(arena, uint32_t, capacity * 2 + 64);

            if (count)
                memcpy(more, numbers, count * sizeof *more);
            numbers = more;
            capacity = capacity * 2 + 64;
        }
        numbers[count++] = number;
        key_write(from, number, (enum level)UINT8_MAX, UINT32_MAX);
    }
    *ret_numbers = numbers;
    *ret_count = count;
    return true;
}
