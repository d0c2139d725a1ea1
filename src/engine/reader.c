/* Point reads ask for proof and value with one statement: one round trip, as from the primary.
 * Everything else takes a snapshot of the standby, and proves a partition when it is first looked
 * at in it.
 *
 * A snapshot of the reader is up to two of engines, each taken when it is needed. That the moment
 * is the one of the first look, and not of engine_snapshot_new, makes it younger, never older. */
#include "engine/reader.h"

#include "base/memory.h"
#include "base/thread.h"
#include "engine/driver.h"
#include "engine/keep.h"

struct reader {
    struct engine base; /* must be first */
    struct engine_reader_options options;
    struct engine_standbys *standbys; /* borrowed; NULL: alone */
    atomic_bool lost;                 /* a standby failed half-way: the primary from now on */
};

/* Where one partition is read in one snapshot. */
struct source {
    uint32_t partition;
    bool from_standby;
    bool used; /* something was read */
};

struct reader_snapshot {
    struct engine_snapshot base; /* must be first */
    bool passing;                /* of one call alone: the primary is asked as of now */
    bool tried;                  /* a standby was looked for */
    struct engine *standby;      /* borrowed; NULL: none is used */
    size_t index;                /* of the standby */
    struct engine_snapshot *of_standby, *of_primary; /* owned; NULL: not taken */
    int64_t keep_ms;                                 /* 0: as long as the engine wants */
    struct source *sources;                          /* owned */
    size_t count, capacity;
};

struct reader_iterator {
    struct engine_iterator base; /* must be first */
    struct engine_iterator *inner;
    struct reader_snapshot *own; /* of an iterator that was given none */
    bool from_standby;
};

extern const struct engine_driver reader_driver;

static struct reader *reader_of(const struct engine *engine)
{
    assert(engine->driver == &reader_driver);
    return (struct reader *)engine;
}

struct engine *engine_reader_new(const struct engine_reader_options *options)
{
    struct reader *reader = MEMORY_NEW(struct reader);

    reader->options = *options;
    reader->standbys = options->alone ? NULL : engine_standbys_of(options->primary);
    assert((options->alone || reader->standbys) && options->judge && options->meta.len);
    reader->base.driver = &reader_driver;
    reader->base.name = options->primary->name;
    memcpy(reader->base.node_id, options->primary->node_id, sizeof reader->base.node_id);
    return &reader->base;
}

struct engine *engine_reader_behind(struct engine *engine)
{
    return engine->driver == &reader_driver ? reader_of(engine)->options.primary : engine;
}

static void reader_close(struct engine *engine)
{
    memory_free(reader_of(engine));
}

/* --- Whom to ask ----------------------------------------------------------------------------- */

static void fall_back(struct reader *reader, enum engine_fallback why)
{
    if (reader->standbys)
        engine_standbys_fell_back(reader->standbys, why);
}

static struct engine *standby_pick(struct reader *reader, size_t *ret_index)
{
    struct engine *standby = NULL;
    struct error err;
    bool down;

    if (reader->options.alone) {
        *ret_index = 0;
        return atomic_load_explicit(&reader->lost, memory_order_relaxed) ? NULL
                                                                         : reader->options.primary;
    }
    down = !engine_serves(reader->options.primary, &err);

    /* A node that has lost acknowledged writes shows nothing before that is accepted, from
     * anywhere; nor does one that is paused. */
    if (!atomic_load_explicit(&reader->lost, memory_order_relaxed) &&
        (!down || err.code == ERROR_NODE_DOWN))
        standby = engine_standbys_pick(reader->standbys, down, ret_index);
    if (!standby)
        fall_back(reader, ENGINE_FALLBACK_AWAY);
    return standby;
}

static void tell_primary(struct reader *reader, uint32_t partition)
{
    if (reader->options.tell && !reader->options.alone)
        reader->options.tell(reader->options.context, partition, 0, NULL);
}

/* The primary, which another server writes to, in place of a standby. */
static bool is_proved_alone(struct reader *reader, const struct engine_seen *seen,
                            const struct engine_proof *proof)
{
    enum engine_fallback why;

    if (!reader->options.trusted &&
        (proof->standby || !reader->options.judge(reader->options.context, seen, &why)))
        return false;
    if (reader->options.tell)
        reader->options.tell(reader->options.context, seen->partition, ENGINE_READER_ALONE, seen);
    return true;
}

/* Is what a standby showed good enough? */
static bool is_proved(struct reader *reader, size_t index, uint32_t partition,
                      const struct engine_proof *proof)
{
    struct engine_seen seen = {
        .partition = partition, .epoch = proof->epoch, .meta = proof->meta, .sent_ms = 0};
    enum engine_fallback why = ENGINE_FALLBACK_BEAT;
    bool dated;

    if (reader->options.alone)
        return is_proved_alone(reader, &seen, proof);
    dated = proof->standby &&
            engine_beats_sent(engine_standbys_beats(reader->standbys), proof->beat, &seen.sent_ms);

    if (!engine_standbys_are_trusted(reader->standbys) &&
        (!dated || !reader->options.judge(reader->options.context, &seen, &why))) {
        fall_back(reader, why);
        return false;
    }
    engine_standbys_served(reader->standbys, index);
    if (reader->options.tell)
        reader->options.tell(reader->options.context, partition, (uint32_t)index + 1, &seen);
    return true;
}

/* --- Snapshots ------------------------------------------------------------------------------- */

static bool reader_snapshot_new(struct engine *engine, struct engine_snapshot **ret_snapshot,
                                struct error *err UNUSED)
{
    struct reader_snapshot *snapshot = MEMORY_NEW(struct reader_snapshot);

    snapshot->base.engine = engine;
    *ret_snapshot = &snapshot->base;
    return true;
}

/* The caller's, or one for this call. */
static struct reader_snapshot *snapshot_for(struct engine *engine, struct engine_snapshot *base,
                                            struct engine_snapshot **ret_own)
{
    struct error ignored;

    if (base)
        return (struct reader_snapshot *)base;
    (void)reader_snapshot_new(engine, ret_own, &ignored);
    ((struct reader_snapshot *)*ret_own)->passing = true;
    return (struct reader_snapshot *)*ret_own;
}

static void reader_snapshot_free(struct engine_snapshot *base)
{
    struct reader_snapshot *snapshot = (struct reader_snapshot *)base;

    engine_snapshot_free(snapshot->of_standby);
    engine_snapshot_free(snapshot->of_primary);
    memory_free(snapshot->sources);
    memory_free(snapshot);
}

static bool reader_snapshot_keep(struct engine_snapshot *base, int64_t ms, struct error *err)
{
    struct reader_snapshot *snapshot = (struct reader_snapshot *)base;

    snapshot->keep_ms = ms;
    return (!snapshot->of_standby || engine_snapshot_keep(snapshot->of_standby, ms, err)) &&
           (!snapshot->of_primary || engine_snapshot_keep(snapshot->of_primary, ms, err));
}

static bool moment_take(struct engine *engine, const struct reader_snapshot *snapshot,
                        struct engine_snapshot **taken, struct error *err)
{
    return *taken || (engine_snapshot_new(engine, taken, err) &&
                      (!snapshot->keep_ms || engine_snapshot_keep(*taken, snapshot->keep_ms, err)));
}

static bool unproved(struct error *err)
{
    return error_set(err, ERROR_UNPROVED, "what was read beside the owner cannot be proved");
}

static bool primary_enter(struct reader *reader, struct reader_snapshot *snapshot,
                          struct error *err)
{
    if (reader->options.alone)
        return unproved(err);
    return snapshot->passing ||
           moment_take(reader->options.primary, snapshot, &snapshot->of_primary, err);
}

/* Takes the standby's moment, the first time; false: there is none to be had. */
static bool standby_enter(struct reader *reader, struct reader_snapshot *snapshot)
{
    struct error ignored;

    if (!snapshot->tried) {
        snapshot->tried = true;
        snapshot->standby = standby_pick(reader, &snapshot->index);
        if (snapshot->standby &&
            !moment_take(snapshot->standby, snapshot, &snapshot->of_standby, &ignored)) {
            fall_back(reader, ENGINE_FALLBACK_FAILED);
            engine_snapshot_free(TAKE(snapshot->of_standby));
            snapshot->standby = NULL;
        }
    }
    return snapshot->standby;
}

static bool partition_prove(struct reader *reader, struct reader_snapshot *snapshot,
                            uint32_t partition)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_proof proof;
    struct engine_value none;
    struct error err;

    if (engine_prove(snapshot->standby, snapshot->of_standby, partition, reader->options.meta,
                     SLICE_NONE, arena, &proof, &none, &err))
        return is_proved(reader, snapshot->index, partition, &proof);
    fall_back(reader,
              err.code == ERROR_PARTITION_UNKNOWN ? ENGINE_FALLBACK_EPOCH : ENGINE_FALLBACK_FAILED);
    return false;
}

static struct source *source_add(struct reader_snapshot *snapshot, uint32_t partition)
{
    if (snapshot->count == snapshot->capacity) {
        snapshot->capacity = MAX(snapshot->capacity * 2, (size_t)4);
        snapshot->sources = memory_realloc(
            snapshot->sources, memory_array_size(snapshot->capacity, sizeof *snapshot->sources));
    }
    snapshot->sources[snapshot->count] = (struct source){.partition = partition};
    return &snapshot->sources[snapshot->count++];
}

/* Where the partition is read in this snapshot, with the moment taken. */
static bool source_get(struct reader *reader, struct reader_snapshot *snapshot, uint32_t partition,
                       struct source **ret_source, struct error *err)
{
    struct source *source = NULL;

    for (size_t i = 0; i < snapshot->count && !source; i++)
        if (snapshot->sources[i].partition == partition)
            source = &snapshot->sources[i];
    if (!source) {
        source = source_add(snapshot, partition);
        source->from_standby =
            standby_enter(reader, snapshot) && partition_prove(reader, snapshot, partition);
        if (!source->from_standby)
            tell_primary(reader, partition);
    }
    *ret_source = source;
    return source->from_standby || primary_enter(reader, snapshot, err);
}

/* In the middle. False. */
static bool standby_lost(struct reader *reader, struct error *err)
{
    struct error cause = *err;

    fall_back(reader, ENGINE_FALLBACK_FAILED);
    atomic_store(&reader->lost, true);
    return error_set(err, ERROR_STANDBY_LOST, "a standby was lost while it was read: %.160s",
                     cause.message);
}

/* A standby has failed. Is there still a way to the primary? */
static bool source_turn(struct reader *reader, struct reader_snapshot *snapshot,
                        struct source *source, struct error *err)
{
    assert(source->from_standby);
    if (source->used)
        return standby_lost(reader, err);
    fall_back(reader, ENGINE_FALLBACK_FAILED);
    atomic_store(&reader->lost, true);
    source->from_standby = false;
    tell_primary(reader, source->partition);
    return primary_enter(reader, snapshot, err);
}

/* --- Reading --------------------------------------------------------------------------------- */

/* As of now, of one key. */
static bool get_now(struct reader *reader, uint32_t partition, struct slice key,
                    enum engine_reach reach, struct arena *arena, struct engine_value *ret_value,
                    struct error *err)
{
    struct engine_proof proof;
    struct engine_value value;
    struct engine *standby;
    struct error failure;
    size_t index;

    standby = standby_pick(reader, &index);
    if (standby) {
        if (!engine_prove(standby, NULL, partition, reader->options.meta, key, arena, &proof,
                          &value, &failure)) {
            fall_back(reader, failure.code == ERROR_PARTITION_UNKNOWN ? ENGINE_FALLBACK_EPOCH
                                                                      : ENGINE_FALLBACK_FAILED);
        } else if (is_proved(reader, index, partition, &proof)) {
            *ret_value = value;
            return true;
        }
    }
    if (reader->options.alone)
        return unproved(err);
    tell_primary(reader, partition);
    return engine_get(reader->options.primary, NULL, partition, key, reach, arena, ret_value, err);
}

static bool reader_get(struct engine *engine, struct engine_snapshot *base, uint32_t partition,
                       struct slice key, enum engine_reach reach, struct arena *arena,
                       struct engine_value *ret_value, struct error *err)
{
    struct reader *reader = reader_of(engine);
    struct reader_snapshot *snapshot = (struct reader_snapshot *)base;
    struct source *source;

    if (reach == ENGINE_READ_CACHED) {
        *ret_value = (struct engine_value){.found = ENGINE_COLD};
        return true;
    }
    if (!snapshot)
        return get_now(reader, partition, key, reach, arena, ret_value, err);
    if (!source_get(reader, snapshot, partition, &source, err))
        return false;
    if (source->from_standby) {
        if (engine_get(snapshot->standby, snapshot->of_standby, partition, key, reach, arena,
                       ret_value, err)) {
            source->used = true;
            return true;
        }
        if (!source_turn(reader, snapshot, source, err))
            return false;
    }
    return engine_get(reader->options.primary, snapshot->of_primary, partition, key, reach, arena,
                      ret_value, err);
}

static bool multi_get_in(struct reader *reader, struct reader_snapshot *snapshot,
                         uint32_t partition, const struct slice *keys, size_t count,
                         enum engine_reach reach, struct arena *arena,
                         struct engine_value *ret_values, struct error *err)
{
    struct source *source;

    if (!source_get(reader, snapshot, partition, &source, err))
        return false;
    if (source->from_standby) {
        if (engine_multi_get(snapshot->standby, snapshot->of_standby, partition, keys, count, reach,
                             arena, ret_values, err)) {
            source->used = true;
            return true;
        }
        if (!source_turn(reader, snapshot, source, err))
            return false;
    }
    return engine_multi_get(reader->options.primary, snapshot->of_primary, partition, keys, count,
                            reach, arena, ret_values, err);
}

static bool reader_multi_get(struct engine *engine, struct engine_snapshot *base,
                             uint32_t partition, const struct slice *keys, size_t count,
                             enum engine_reach reach, struct arena *arena,
                             struct engine_value *ret_values, struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *own = NULL;

    if (reach == ENGINE_READ_CACHED) {
        for (size_t i = 0; i < count; i++)
            ret_values[i] = (struct engine_value){.found = ENGINE_COLD};
        return true;
    }
    return multi_get_in(reader_of(engine), snapshot_for(engine, base, &own), partition, keys, count,
                        reach, arena, ret_values, err);
}

/* --- Iterators ------------------------------------------------------------------------------- */

static bool reader_iterator_new(struct engine *engine, struct engine_snapshot *base,
                                uint32_t partition, struct engine_range range, bool backwards,
                                enum engine_reach reach, struct engine_iterator **ret_iterator,
                                struct error *err)
{
    CLEANUP(engine_snapshot_free) struct engine_snapshot *own = NULL;
    struct reader *reader = reader_of(engine);
    struct reader_snapshot *snapshot;
    struct reader_iterator *iterator;
    struct engine_iterator *inner = NULL;
    struct source *source;

    snapshot = snapshot_for(engine, base, &own);
    if (!source_get(reader, snapshot, partition, &source, err))
        return false;
    if (source->from_standby &&
        !engine_iterator_new(snapshot->standby, snapshot->of_standby, partition, range, backwards,
                             reach, &inner, err) &&
        !source_turn(reader, snapshot, source, err))
        return false;
    if (!inner && !engine_iterator_new(reader->options.primary, snapshot->of_primary, partition,
                                       range, backwards, reach, &inner, err))
        return false;
    /* Its first page may have been read already. */
    source->used = true;
    iterator = MEMORY_NEW(struct reader_iterator);
    iterator->base.engine = engine;
    iterator->inner = inner;
    iterator->own = (struct reader_snapshot *)TAKE(own);
    iterator->from_standby = source->from_standby;
    *ret_iterator = &iterator->base;
    return true;
}

static void reader_iterator_free(struct engine_iterator *base)
{
    struct reader_iterator *iterator = (struct reader_iterator *)base;

    engine_iterator_free(iterator->inner);
    if (iterator->own)
        reader_snapshot_free(&iterator->own->base);
    memory_free(iterator);
}

/* Its place in the range is of the standby's moment: there is no going on elsewhere. */
static bool iterator_failed(struct reader_iterator *iterator, struct error *err)
{
    struct reader *reader = reader_of(iterator->base.engine);

    return iterator->from_standby && standby_lost(reader, err);
}

static bool reader_iterator_next(struct engine_iterator *base, struct engine_entry *ret_entry,
                                 struct error *err)
{
    struct reader_iterator *iterator = (struct reader_iterator *)base;

    return engine_iterator_next(iterator->inner, ret_entry, err) || iterator_failed(iterator, err);
}

static bool reader_iterator_seek(struct engine_iterator *base, struct slice key, struct error *err)
{
    struct reader_iterator *iterator = (struct reader_iterator *)base;

    return engine_iterator_seek(iterator->inner, key, err) || iterator_failed(iterator, err);
}

/* --- The rest -------------------------------------------------------------------------------- */

static bool reader_is_here(const struct engine *engine UNUSED)
{
    return false;
}

/* One of them does. */
static bool reader_serves(const struct engine *engine, struct error *err)
{
    const struct reader *reader = reader_of(engine);
    size_t index;

    return engine_serves(reader->options.primary, err) ||
           (err->code == ERROR_NODE_DOWN && engine_standbys_pick(reader->standbys, true, &index));
}

static bool reader_range_size(struct engine *engine, uint32_t partition, struct engine_range range,
                              uint64_t *ret_bytes, struct error *err)
{
    return engine_range_size(reader_of(engine)->options.primary, partition, range, ret_bytes, err);
}

static bool reader_statistics(struct engine *engine, struct engine_statistics *ret_statistics,
                              struct error *err)
{
    return engine_statistics(reader_of(engine)->options.primary, ret_statistics, err);
}

const struct engine_driver reader_driver = {
    .scheme = "reader",
    .close = reader_close,
    .snapshot_new = reader_snapshot_new,
    .snapshot_free = reader_snapshot_free,
    .snapshot_keep = reader_snapshot_keep,
    .get = reader_get,
    .multi_get = reader_multi_get,
    .iterator_new = reader_iterator_new,
    .iterator_free = reader_iterator_free,
    .iterator_next = reader_iterator_next,
    .iterator_seek = reader_iterator_seek,
    .is_here = reader_is_here,
    .serves = reader_serves,
    .range_size = reader_range_size,
    .statistics = reader_statistics,
};
