/* Notes of the catalogue (catalogue_notes.h). Numbers are big-endian; a container is known by its
 * number, which is never used again.
 *
 *     t | container: 4 | chunk: 4   -> 1 byte 1, hashed: 1, written (ms): 8, records (records.h)
 *     t | 0: 4 | 0: 4               -> seed: 8
 *
 * Chunks of a container have numbers in a row. The last one is written again with what is new until
 * it is full; then the next begins, and where there are too many the first is deleted in the same
 * commit. Which there are is found by one walk, at the first look, and known from then on.
 *
 * What is read back is not put into memory: chunks are read when somebody asks for advice. What
 * memory still has is not taken from them. */
#include "advise/keeper.h"

#include "advise/records.h"
#include "base/bytes.h"
#include "base/random.h"
#include "base/thread.h"
#include "catalogue/notes.h"
#include "document/bson.h"

#include <stdlib.h>

enum { KEY_LEN = 9, FORMAT = 1, HEADER = 10, CHUNK_BYTES = 64 * 1024 };

/* What is written down of one container. */
struct kept {
    uint32_t container;
    uint32_t first, last; /* chunks */
    int64_t written_ms;   /* the last time */
    uint64_t sequence;    /* of the last record that is written, in this process; 0: none yet */
};

struct keeper {
    struct keeper_options options;
    const struct clock *clock;

    struct mutex round; /* of what follows, and while a round goes on */
    bool known;         /* what there was has been looked up */
    struct kept *kept;
    size_t count, capacity;

    struct mutex lock; /* of stopping */
    struct condition wake;
    bool stopping;
    struct thread thread;
};

static void key_write(uint8_t key[KEY_LEN], uint32_t container, uint32_t chunk)
{
    key[0] = CATALOGUE_NOTES_TRAFFIC;
    bytes_put_be32(key + 1, container);
    bytes_put_be32(key + 5, chunk);
}

/* In the form that is written now? */
static bool is_chunk(const struct keeper *keeper, struct slice value)
{
    return value.len >= HEADER && value.data[0] == FORMAT &&
           value.data[1] == (uint8_t)keeper->options.hashed;
}

/* --- Which chunks there are ------------------------------------------------------------------ */

static struct kept *kept_find(const struct keeper *keeper, uint32_t container)
{
    for (size_t i = 0; i < keeper->count; i++)
        if (keeper->kept[i].container == container)
            return &keeper->kept[i];
    return NULL;
}

static struct kept *kept_add(struct keeper *keeper, uint32_t container)
{
    struct kept *kept;

    if (keeper->count == keeper->capacity) {
        keeper->capacity = MAX(keeper->capacity * 2, (size_t)16);
        keeper->kept =
            memory_realloc(keeper->kept, memory_array_size(keeper->capacity, sizeof *keeper->kept));
    }
    kept = &keeper->kept[keeper->count++];
    *kept = (struct kept){.container = container, .first = 1};
    return kept;
}

static bool chunk_note(void *context, struct slice key, struct slice value)
{
    struct keeper *keeper = context;
    uint32_t container = bytes_get_be32(key.data + 1), chunk = bytes_get_be32(key.data + 5);
    struct kept *kept = keeper->count ? &keeper->kept[keeper->count - 1] : NULL;

    if (!container)
        return true; /* the seed */
    if (!kept || kept->container != container) {
        kept = kept_add(keeper, container);
        kept->first = chunk;
    }
    kept->last = chunk;
    if (is_chunk(keeper, value))
        kept->written_ms = (int64_t)bytes_get_be64(value.data + 2);
    return true;
}

static struct engine_range all_of(uint8_t min[KEY_LEN], uint8_t max[KEY_LEN + 1],
                                  uint32_t container_min, uint32_t container_max)
{
    key_write(min, container_min, 0);
    key_write(max, container_max, UINT32_MAX);
    max[KEY_LEN] = 0; /* behind the last of them */
    return (struct engine_range){slice_of(min, KEY_LEN), slice_of(max, KEY_LEN + 1)};
}

static bool kept_look(struct keeper *keeper, struct error *err)
{
    uint8_t min[KEY_LEN], max[KEY_LEN + 1];

    if (keeper->known)
        return true;
    keeper->count = 0;
    keeper->known = catalogue_notes_walk(keeper->options.catalogue, all_of(min, max, 0, UINT32_MAX),
                                         chunk_note, keeper, err);
    return keeper->known;
}

/* --- Forgetting ------------------------------------------------------------------------------ */

static bool kept_delete(struct keeper *keeper, const struct kept *kept, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count = kept->last >= kept->first ? (size_t)(kept->last - kept->first) + 1 : 0;
    struct engine_op *ops = ARENA_ARRAY(arena, struct engine_op, MAX(count, (size_t)1));

    for (size_t i = 0; i < count; i++) {
        uint8_t key[KEY_LEN];

        key_write(key, kept->container, kept->first + (uint32_t)i);
        ops[i] = (struct engine_op){.kind = ENGINE_DELETE,
                                    .key = arena_copy(arena, slice_of(key, sizeof key))};
    }
    return catalogue_notes_write(keeper->options.catalogue, ops, count, err);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* What is written down is on the root, where items of resident keys may not be, nor what they are
 * asked by. */
static bool is_kept(const struct container *container)
{
    return !definition_fields(container_definition(container))->placement.resident;
}

/* The numbers of all containers whose traffic is kept, ascending. */
static uint32_t *containers_gather(struct catalogue *catalogue, struct arena *arena,
                                   size_t *ret_count)
{
    size_t accounts, room = 0, count = 0;
    struct account **all = catalogue_accounts(catalogue, arena, &accounts);
    uint32_t *numbers;

    for (size_t i = 0; i < accounts; i++)
        for (size_t d = 0; d < account_database_count(all[i]); d++)
            room += database_container_count(account_database(all[i], d));
    numbers = ARENA_ARRAY(arena, uint32_t, MAX(room, (size_t)1));
    for (size_t i = 0; i < accounts; i++) {
        for (size_t d = 0; d < account_database_count(all[i]); d++) {
            const struct database *database = account_database(all[i], d);

            for (size_t c = 0; c < database_container_count(database); c++)
                if (is_kept(database_container(database, c)))
                    numbers[count++] = container_rid(database_container(database, c)).owner;
        }
        account_unref(all[i]);
    }
    qsort(numbers, count, sizeof *numbers, by_number);
    *ret_count = count;
    return numbers;
}

static int by_written(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;

    return (x->written_ms < y->written_ms) - (x->written_ms > y->written_ms);
}

/* Those of containers that are gone or resident, those written in the other form, and, where there
 * are too many, those not written for longest. */
static bool kept_tidy(struct keeper *keeper, const uint32_t *numbers, size_t number_count,
                      struct error *err)
{
    size_t max = traffic_containers_max(keeper->options.traffic), stay = 0;
    bool fine = true;

    if (keeper->count)
        qsort(keeper->kept, keeper->count, sizeof *keeper->kept, by_written);
    for (size_t i = 0; i < keeper->count; i++) {
        struct kept kept = keeper->kept[i];
        bool is_there =
            bsearch(&kept.container, numbers, number_count, sizeof *numbers, by_number) != NULL;

        if ((!is_there || !kept.written_ms || stay >= max) && kept_delete(keeper, &kept, err))
            continue;
        fine &= is_there && kept.written_ms && stay < max; /* else it is tried again */
        keeper->kept[stay++] = kept;
    }
    keeper->count = stay;
    return fine;
}

/* --- Writing --------------------------------------------------------------------------------- */

/* What is new, thinned to what fits. */
static void news_take(struct keeper *keeper, uint32_t container, uint64_t *sequence,
                      struct buf *ret_news)
{
    CLEANUP(buf_done) struct buf all;
    uint32_t shift = 0;

    buf_init(&all, SIZE_MAX / 2);
    *sequence = traffic_copy(keeper->options.traffic, container, *sequence, &all);
    do {
        buf_clear(ret_news);
        while (all.len >> shift > CHUNK_BYTES - HEADER)
            shift++;
        records_thin(buf_slice(&all), shift++, ret_news);
    } while (ret_news->len > CHUNK_BYTES - HEADER && shift < 32);
}

/* The chunk that the news go to: the last one, if they fit behind what it holds, or the next. */
static bool chunk_begin(struct keeper *keeper, struct kept *kept, size_t bytes, struct buf *out,
                        struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value last = {0};
    uint8_t key[KEY_LEN], header[HEADER] = {FORMAT, keeper->options.hashed};

    bytes_put_be64(header + 2, (uint64_t)kept->written_ms);
    key_write(key, kept->container, kept->last);
    if (kept->last && !catalogue_notes_get(keeper->options.catalogue, slice_of(key, sizeof key),
                                           arena, &last, err))
        return false;
    buf_append(out, header, sizeof header);
    if (kept->last && last.found == ENGINE_FOUND && is_chunk(keeper, last.bytes) &&
        last.bytes.len + bytes <= CHUNK_BYTES)
        buf_append_slice(out, slice_skip(last.bytes, HEADER));
    else
        kept->last++;
    return true;
}

static bool container_keep(struct keeper *keeper, uint32_t container, struct error *err)
{
    CLEANUP(buf_done) struct buf news;
    CLEANUP(buf_done) struct buf chunk;
    struct kept *known = kept_find(keeper, container);
    struct kept kept = known ? *known : (struct kept){.container = container, .first = 1};
    size_t chunks_max = MAX(keeper->options.bytes_max / CHUNK_BYTES, (size_t)1), count = 1;
    uint8_t keys[2][KEY_LEN];
    struct engine_op ops[2];

    buf_init(&news, SIZE_MAX / 2);
    buf_init(&chunk, 2 * CHUNK_BYTES);
    news_take(keeper, container, &kept.sequence, &news);
    if (!news.len)
        return true;
    kept.written_ms = MAX(clock_read_wall_ms(keeper->clock), (int64_t)1);
    if (!chunk_begin(keeper, &kept, news.len, &chunk, err))
        return false;
    buf_append_slice(&chunk, buf_slice(&news));
    key_write(keys[1], container, kept.last);
    ops[1] = (struct engine_op){ENGINE_PUT, slice_of(keys[1], KEY_LEN), buf_slice(&chunk)};
    if (kept.last - kept.first >= chunks_max) {
        key_write(keys[0], container, kept.first++);
        ops[0] = (struct engine_op){.kind = ENGINE_DELETE, .key = slice_of(keys[0], KEY_LEN)};
        count = 2;
    }
    if (!catalogue_notes_write(keeper->options.catalogue, ops + 2 - count, count, err))
        return false;
    *(known ? known : kept_add(keeper, container)) = kept;
    return true;
}

/* The containers are gathered first: of one that is made meanwhile nothing is written before the
 * next round, and so nothing forgotten. */
static bool round_run(struct keeper *keeper, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t number_count, max = traffic_containers_max(keeper->options.traffic), count;
    uint32_t *numbers = containers_gather(keeper->options.catalogue, arena, &number_count);
    uint64_t *recorded = ARENA_ARRAY(arena, uint64_t, max);
    bool fine;

    if (!kept_look(keeper, err))
        return false;
    fine = kept_tidy(keeper, numbers, number_count, err);
    count = traffic_containers(keeper->options.traffic, recorded, max);
    for (size_t i = 0; i < count; i++) {
        uint32_t container = (uint32_t)recorded[i];

        if (bsearch(&container, numbers, number_count, sizeof *numbers, by_number))
            fine = container_keep(keeper, container, err) && fine;
    }
    return fine;
}

bool keeper_round(struct keeper *keeper, struct error *err)
{
    bool fine = false;

    WITH_LOCK (&keeper->round)
        fine = round_run(keeper, err);
    return fine;
}

/* --- Reading --------------------------------------------------------------------------------- */

struct reading {
    const struct keeper *keeper;
    struct buf *out;
    int64_t before_ms;
};

static bool chunk_read(void *context, struct slice key UNUSED, struct slice value)
{
    struct reading *reading = context;

    if (is_chunk(reading->keeper, value) && records_are_whole(slice_skip(value, HEADER)))
        records_before(slice_skip(value, HEADER), reading->before_ms, reading->out);
    return true;
}

static int64_t oldest_ms(struct slice records)
{
    struct document_value value;
    int64_t at, oldest = INT64_MAX;

    while (records.len)
        if (document_find(records_next(&records), SLICE("t"), &value) &&
            document_to_int64(&value, &at))
            oldest = MIN(oldest, at);
    return oldest;
}

bool keeper_copy(struct keeper *keeper, uint64_t container, struct buf *out, struct error *err)
{
    CLEANUP(buf_done) struct buf memory;
    uint8_t min[KEY_LEN], max[KEY_LEN + 1];
    struct reading reading = {.keeper = keeper, .out = out};

    buf_init(&memory, SIZE_MAX / 2);
    (void)traffic_copy(keeper->options.traffic, container, 0, &memory);
    reading.before_ms = oldest_ms(buf_slice(&memory));
    if (!catalogue_notes_walk(keeper->options.catalogue,
                              all_of(min, max, (uint32_t)container, (uint32_t)container),
                              chunk_read, &reading, err))
        return false;
    buf_append_slice(out, buf_slice(&memory));
    return true;
}

bool keeper_seed(struct catalogue *catalogue, uint64_t *ret_seed, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_value value;
    uint8_t key[KEY_LEN], bytes[8];
    uint64_t seed;

    key_write(key, 0, 0);
    if (!catalogue_notes_get(catalogue, slice_of(key, sizeof key), arena, &value, err))
        return false;
    if (value.found == ENGINE_FOUND && value.bytes.len == sizeof bytes) {
        *ret_seed = bytes_get_be64(value.bytes.data);
        return true;
    }
    random_secret(&seed, sizeof seed);
    seed |= 1;
    bytes_put_be64(bytes, seed);
    if (!catalogue_notes_write(catalogue,
                               &(struct engine_op){ENGINE_PUT, slice_of(key, sizeof key),
                                                   slice_of(bytes, sizeof bytes)},
                               1, err))
        return false;
    *ret_seed = seed;
    return true;
}

/* --- Life ------------------------------------------------------------------------------------ */

/* False: stop. */
static bool keeper_pause(struct keeper *keeper)
{
    int64_t until = clock_monotonic_ms() + keeper->options.pause_ms;
    bool go_on = false;

    WITH_LOCK (&keeper->lock) {
        while (!keeper->stopping && condition_wait_until(&keeper->wake, &keeper->lock, until))
            ;
        go_on = !keeper->stopping;
    }
    return go_on;
}

static void round_try(struct keeper *keeper)
{
    struct error err;

    if (!keeper_round(keeper, &err))
        log_error(keeper->options.log, "the record of traffic is not written down", &err);
}

static void keeper_main(void *context)
{
    struct keeper *keeper = context;

    while (keeper_pause(keeper))
        round_try(keeper);
}

struct keeper *keeper_new(const struct keeper_options *options)
{
    struct keeper *keeper = MEMORY_NEW(struct keeper);

    keeper->options = *options;
    keeper->clock = options->clock ? options->clock : &clock_system;
    mutex_init(&keeper->round);
    mutex_init(&keeper->lock);
    condition_init(&keeper->wake);
    if (!options->by_hand)
        thread_start(&keeper->thread, "traffic", keeper_main, keeper);
    return keeper;
}

void keeper_free(struct keeper *keeper)
{
    if (!keeper)
        return;
    WITH_LOCK (&keeper->lock) {
        keeper->stopping = true;
        condition_signal(&keeper->wake);
    }
    if (!keeper->options.by_hand)
        thread_join(&keeper->thread);
    round_try(keeper);
    condition_done(&keeper->wake);
    mutex_done(&keeper->lock);
    mutex_done(&keeper->round);
    memory_free(keeper->kept);
    memory_free(keeper);
}
