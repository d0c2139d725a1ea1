/* A note for each collection that was named: m | 'a' | number of the container, 4 -> rate, 8 (a
 * double, big-endian). Numbers of containers are not used again, so notes of dropped collections
 * say nothing.
 *
 * A window is as long as one operation takes at the rate, but a second at least; within it so many
 * are taken as the rate allows, the others not. */
#include "front/mongo/command/sampling.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/thread.h"
#include "catalogue/notes.h"

#include <stdatomic.h>

enum { KEY_LEN = 6, RATE_LEN = 8, SECOND_MS = 1000, WINDOW_MS_MAX = 24 * 3600 * SECOND_MS };

struct named {
    uint32_t container;
    double rate;
    int64_t window_ms; /* when it began */
    uint64_t taken;    /* in it */
};

struct mongo_sampling {
    struct catalogue *catalogue;
    atomic_size_t count; /* of the list: nobody looks further while there is none */
    struct mutex change; /* held over a commit; taken before lock */
    struct mutex lock;   /* of the list; a leaf */
    struct named list[MONGO_SAMPLING_MAX];
};

static struct slice note_key(uint32_t container, uint8_t ret_key[KEY_LEN])
{
    ret_key[0] = CATALOGUE_NOTES_MONGO;
    ret_key[1] = 'a';
    bytes_put_be32(ret_key + 2, container);
    return slice_of(ret_key, KEY_LEN);
}

static struct named *named_find(struct mongo_sampling *sampling, uint32_t container)
{
    size_t count = atomic_load(&sampling->count);

    for (size_t i = 0; i < count; i++)
        if (sampling->list[i].container == container)
            return &sampling->list[i];
    return NULL;
}

static bool note_read(void *context, struct slice key, struct slice value)
{
    struct mongo_sampling *sampling = context;
    size_t count = atomic_load(&sampling->count);
    uint64_t bits;
    double rate;

    if (key.len != KEY_LEN || value.len != RATE_LEN)
        return true;
    bits = bytes_get_be64(value.data);
    memcpy(&rate, &bits, sizeof rate);
    sampling->list[count] = (struct named){.container = bytes_get_be32(key.data + 2), .rate = rate};
    atomic_store(&sampling->count, count + 1);
    return count + 1 < MONGO_SAMPLING_MAX;
}

struct mongo_sampling *mongo_sampling_new(struct catalogue *catalogue)
{
    struct mongo_sampling *sampling = MEMORY_NEW(struct mongo_sampling);
    const uint8_t min[] = {CATALOGUE_NOTES_MONGO, 'a'}, max[] = {CATALOGUE_NOTES_MONGO, 'a' + 1};
    struct error ignored;
    bool read;

    sampling->catalogue = catalogue;
    mutex_init(&sampling->change);
    mutex_init(&sampling->lock);
    read = catalogue_notes_walk(
        catalogue, (struct engine_range){slice_of(min, sizeof min), slice_of(max, sizeof max)},
        note_read, sampling, &ignored);
    (void)read;
    return sampling;
}

void mongo_sampling_free(struct mongo_sampling *sampling)
{
    if (!sampling)
        return;
    mutex_done(&sampling->change);
    mutex_done(&sampling->lock);
    memory_free(sampling);
}

bool mongo_sampling_find(struct mongo_sampling *sampling, uint32_t container, double *ret_rate)
{
    const struct named *named;
    bool found = false;

    WITH_LOCK (&sampling->lock) {
        named = named_find(sampling, container);
        found = named != NULL;
        if (named)
            *ret_rate = named->rate;
    }
    return found;
}

/* The change lock is held: the list grows by nobody else. */
static bool rate_keep(struct mongo_sampling *sampling, uint32_t container, double rate,
                      struct error *err)
{
    uint8_t key[KEY_LEN], value[RATE_LEN];
    struct engine_op op = {ENGINE_PUT, note_key(container, key), slice_of(value, sizeof value)};
    struct named *named;
    uint64_t bits;

    memcpy(&bits, &rate, sizeof bits);
    bytes_put_be64(value, bits);
    if (!catalogue_notes_write(sampling->catalogue, &op, 1, err))
        return false;
    WITH_LOCK (&sampling->lock) {
        named = named_find(sampling, container);
        if (!named) {
            named = &sampling->list[atomic_load(&sampling->count)];
            atomic_fetch_add(&sampling->count, 1);
        }
        *named = (struct named){.container = container, .rate = rate};
    }
    return true;
}

bool mongo_sampling_set(struct mongo_sampling *sampling, uint32_t container, double rate,
                        struct error *err)
{
    bool fine = false;
    double before;

    WITH_LOCK (&sampling->change) {
        if (atomic_load(&sampling->count) == MONGO_SAMPLING_MAX &&
            !mongo_sampling_find(sampling, container, &before))
            error_set(err, ERROR_BUSY, "operations of %d collections are sampled already",
                      MONGO_SAMPLING_MAX);
        else
            fine = rate_keep(sampling, container, rate, err);
    }
    return fine;
}

static bool window_takes(struct named *named, int64_t now_ms)
{
    double length_ms = named->rate >= 1 ? SECOND_MS : SECOND_MS / named->rate;
    uint64_t allowed = named->rate >= 1 ? (uint64_t)MIN(named->rate, 1e9) : 1;

    if (named->rate <= 0)
        return false;
    if (!named->taken || (double)(now_ms - named->window_ms) >= MIN(length_ms, WINDOW_MS_MAX)) {
        named->window_ms = now_ms;
        named->taken = 0;
    }
    if (named->taken == allowed)
        return false;
    named->taken++;
    return true;
}

bool mongo_sampling_takes(struct mongo_sampling *sampling, uint32_t container, int64_t now_ms,
                          bool *ret_named)
{
    struct named *named;
    bool takes = true;

    *ret_named = false;
    if (!atomic_load_explicit(&sampling->count, memory_order_relaxed))
        return true;
    WITH_LOCK (&sampling->lock) {
        named = named_find(sampling, container);
        takes = !named || window_takes(named, now_ms);
        *ret_named = named && takes;
    }
    return takes;
}
