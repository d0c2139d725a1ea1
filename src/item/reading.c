#include "item/reading.h"

#include "base/memory.h"
#include "cluster/cluster.h"
#include "partition/commit.h"

#include <time.h>

enum { ACKNOWLEDGED_MS = 20, ACKNOWLEDGED_LOOK_NS = 200 * 1000 };

struct served {
    uint32_t partition;
    bool beside; /* the owner */
    struct item_served served;
};

struct item_reading {
    struct item_space space; /* as it was: for the map and the committers */
    struct item_reading_options options;

    struct mutex lock; /* under it: the rest; queries read with several threads */
    struct engine *readers[CLUSTER_NODES_MAX]; /* owned; of nodes with standbys */
    struct engine *primaries[CLUSTER_NODES_MAX];
    size_t reader_count;
    struct served *served; /* owned */
    size_t served_count, served_capacity;
};

const char *item_level_name(enum item_level level)
{
    static const char *const names[] = {"Strong", "BoundedStaleness", "Session", "ConsistentPrefix",
                                        "Eventual"};

    assert(level <= ITEM_EVENTUAL);
    return names[level];
}

/* --- Proving --------------------------------------------------------------------------------- */

static bool covers(const struct partition_span *span, uint64_t partition)
{
    for (size_t i = 0; i < span->parent_count; i++)
        if (span->parents[i] == partition)
            return true;
    return span->id == partition;
}

/* What the tokens ask of a span: those of its parents too, for it goes on with their numbering. */
static uint64_t lsn_wanted(const struct item_reading *reading, const struct partition_span *span)
{
    uint64_t wanted = 0;

    for (size_t i = 0; i < reading->options.token_count; i++)
        if (covers(span, reading->options.tokens[i].partition))
            wanted = MAX(wanted, reading->options.tokens[i].lsn);
    return wanted;
}

/* A standby has a commit that others wait for a little before the primary is told so, and we by the
 * primary. What it shows is good as soon as we are. *ret_acknowledged: what is by then. */
static bool acknowledged_await(const struct item_space *space, const struct partition_span *span,
                               uint64_t lsn, uint64_t *ret_acknowledged)
{
    struct commit *commit = space->commit(space->nodes, span->node);
    int64_t until_ms = clock_monotonic_ms() + ACKNOWLEDGED_MS;
    struct error ignored;

    for (;;) {
        if (!commit_partition_lsn(commit, span->id, ret_acknowledged, &ignored))
            return false;
        if (lsn <= *ret_acknowledged)
            return true;
        if (clock_monotonic_ms() >= until_ms)
            return false;
        nanosleep(&(struct timespec){0, ACKNOWLEDGED_LOOK_NS}, NULL);
    }
}

static bool no(enum engine_fallback *ret_why, enum engine_fallback why)
{
    *ret_why = why;
    return false;
}

/* What was acknowledged is asked for behind the read: whatever the standby shows up to there cannot
 * be lost any more, and what it shows beyond might be. */
static bool judge(void *context, const struct engine_seen *seen, enum engine_fallback *ret_why)
{
    const struct item_reading *reading = context;
    const struct item_reading_options *options = &reading->options;
    const struct item_space *space = &reading->space;
    const struct partition_span *span = partition_map_find_id(space->map, seen->partition);
    uint64_t lsn = 0, acknowledged;

    if (!span || seen->epoch != span->epoch ||
        (seen->meta.data && !commit_meta_lsn(seen->meta, &lsn)))
        return no(ret_why, ENGINE_FALLBACK_EPOCH);
    if (seen->sent_ms < space->since_ms ||
        (options->level == ITEM_BOUNDED &&
         clock_monotonic_ms() - seen->sent_ms > options->staleness_ms))
        return no(ret_why, ENGINE_FALLBACK_OLD);
    /* The token of a transaction is of one part of a spread key, and it may have written others. */
    if (options->level == ITEM_SESSION && partition_map_is_part(space->map, span))
        return no(ret_why, ENGINE_FALLBACK_BEHIND);
    if (!acknowledged_await(space, span, lsn, &acknowledged))
        return no(ret_why, ENGINE_FALLBACK_AHEAD);
    if (lsn < lsn_wanted(reading, span) ||
        (options->level == ITEM_BOUNDED && acknowledged - lsn > options->staleness_lsns))
        return no(ret_why, ENGINE_FALLBACK_BEHIND);
    return true;
}

/* The primary shows nothing but what is acknowledged, so the numbering in the snapshot is as good
 * as the committer's. What was read by a map that was replaced meanwhile is of another epoch. */
static bool judge_beside(void *context, const struct engine_seen *seen,
                         enum engine_fallback *ret_why)
{
    const struct item_reading *reading = context;
    const struct item_space *space = &reading->space;
    const struct partition_span *span = partition_map_find_id(space->map, seen->partition);
    uint64_t lsn = 0;

    if (!span || seen->epoch != span->epoch ||
        (seen->meta.data && !commit_meta_lsn(seen->meta, &lsn)))
        return no(ret_why, ENGINE_FALLBACK_EPOCH);
    if (lsn < lsn_wanted(reading, span) ||
        (reading->options.level == ITEM_SESSION && partition_map_is_part(space->map, span)))
        return no(ret_why, ENGINE_FALLBACK_BEHIND);
    return true;
}

/* --- Telling --------------------------------------------------------------------------------- */

static struct served *served_find(const struct item_reading *reading, uint32_t partition)
{
    for (size_t i = 0; i < reading->served_count; i++)
        if (reading->served[i].partition == partition)
            return &reading->served[i];
    return NULL;
}

static void tell(void *context, uint32_t partition, uint32_t standby,
                 const struct engine_seen *seen)
{
    struct item_reading *reading = context;

    WITH_LOCK (&reading->lock) {
        struct served *served = served_find(reading, partition);

        if (!served && reading->served_count == reading->served_capacity) {
            reading->served_capacity = MAX(reading->served_capacity * 2, (size_t)4);
            reading->served =
                memory_realloc(reading->served, memory_array_size(reading->served_capacity,
                                                                  sizeof *reading->served));
        }
        if (!served)
            served = &reading->served[reading->served_count++];
        *served = (struct served){.partition = partition,
                                  .served = {.standby = standby, .level = reading->options.level}};
        if (standby == ENGINE_READER_ALONE) {
            served->served.standby = 0;
            served->beside = true;
        }
        if (standby) {
            served->served.age_ms =
                served->beside ? 0 : MAX(clock_monotonic_ms() - seen->sent_ms, (int64_t)0);
            if (seen->meta.data && !commit_meta_lsn(seen->meta, &served->served.lsn))
                served->served.lsn = 0;
        }
    }
}

bool item_reading_served(struct item_reading *reading, uint32_t partition,
                         struct item_served *ret_served)
{
    bool by_standby = false;

    if (!reading)
        return false;
    WITH_LOCK (&reading->lock) {
        const struct served *served = served_find(reading, partition);

        by_standby = served && (served->served.standby || served->beside);
        if (by_standby)
            *ret_served = served->served;
    }
    return by_standby;
}

/* --- Beginning and end ----------------------------------------------------------------------- */

struct item_reading *item_reading_begin(struct item_space *space,
                                        const struct item_reading_options *options)
{
    struct item_reading *reading;

    assert(!space->reading);
    /* A client that sends no token may have written all the same: it is not known what it has to
     * see. */
    assert(!options->follows || options->level >= ITEM_SESSION);
    if (!options->follows && (options->level == ITEM_STRONG || space->since_ms == INT64_MAX ||
                              (options->level == ITEM_SESSION && !options->token_count)))
        return NULL;
    reading = MEMORY_NEW(struct item_reading);
    reading->space = *space;
    reading->space.renewed = false;
    reading->options = *options;
    mutex_init(&reading->lock);
    space->reading = reading;
    return reading;
}

void item_reading_end(struct item_reading *reading)
{
    if (!reading)
        return;
    for (size_t i = 0; i < reading->reader_count; i++)
        engine_close(reading->readers[i]);
    mutex_done(&reading->lock);
    memory_free(reading->served);
    memory_free(reading);
}

struct engine *item_reading_engine(struct item_reading *reading, struct engine *engine)
{
    struct engine *reader = NULL;

    if (!reading->options.follows && !engine_standbys_of(engine))
        return engine;
    WITH_LOCK (&reading->lock) {
        for (size_t i = 0; i < reading->reader_count && !reader; i++)
            if (reading->primaries[i] == engine)
                reader = reading->readers[i];
        if (!reader && reading->reader_count < CLUSTER_NODES_MAX) {
            reader = engine_reader_new(&(struct engine_reader_options){
                .primary = engine,
                .meta = commit_meta_key(),
                .alone = reading->options.follows,
                .trusted = reading->options.trusted,
                .judge = reading->options.follows ? judge_beside : judge,
                .tell = tell,
                .context = reading,
            });
            reading->primaries[reading->reader_count] = engine;
            reading->readers[reading->reader_count++] = reader;
        }
    }
    return reader ? reader : engine;
}
