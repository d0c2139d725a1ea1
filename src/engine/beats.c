/* A ring, since numbers follow one another: beat n is at n modulo its size, and an entry that has
 * been overwritten says so by its number. */
#include "engine/beats.h"

#include "base/memory.h"
#include "base/thread.h"

struct beat {
    uint64_t number; /* 0: none yet */
    int64_t sent_ms; /* monotonic */
};

struct engine_beats {
    int64_t every_ms;
    struct mutex lock; /* under it: the rest */
    uint64_t last;     /* the last number given; 0: none */
    uint64_t floor;    /* the least that counts */
    int64_t floor_ms;  /* since when */
    struct beat kept[ENGINE_BEATS_KEPT];
};

struct engine_beats *engine_beats_new(int64_t every_ms)
{
    struct engine_beats *beats = MEMORY_NEW(struct engine_beats);

    assert(every_ms > 0);
    beats->every_ms = every_ms;
    mutex_init(&beats->lock);
    return beats;
}

void engine_beats_free(struct engine_beats *beats)
{
    if (!beats)
        return;
    mutex_done(&beats->lock);
    memory_free(beats);
}

int64_t engine_beats_every_ms(const struct engine_beats *beats)
{
    return beats->every_ms;
}

static void floor_set(struct engine_beats *beats, int64_t now_ms)
{
    assert(mutex_is_held(&beats->lock));
    beats->floor = beats->last + 1;
    beats->floor_ms = now_ms;
}

void engine_beats_begin(struct engine_beats *beats, uint64_t found, int64_t now_ms)
{
    WITH_LOCK (&beats->lock) {
        if (found >= beats->last) /* of another process, or the first time */
            beats->last = found + ENGINE_BEATS_JUMP;
        floor_set(beats, now_ms);
    }
}

void engine_beats_move(struct engine_beats *beats, int64_t now_ms)
{
    WITH_LOCK (&beats->lock)
        floor_set(beats, now_ms);
}

uint64_t engine_beats_next(struct engine_beats *beats, int64_t now_ms,
                           bool (*may_send)(void *context), void *context)
{
    uint64_t number = 0;

    WITH_LOCK (&beats->lock) {
        if (may_send(context)) {
            number = ++beats->last;
            beats->kept[number % ENGINE_BEATS_KEPT] = (struct beat){number, now_ms};
        }
    }
    return number;
}

bool engine_beats_sent(struct engine_beats *beats, uint64_t number, int64_t *ret_ms)
{
    bool known = false;

    WITH_LOCK (&beats->lock) {
        const struct beat *beat = &beats->kept[number % ENGINE_BEATS_KEPT];

        known = beats->floor && number >= beats->floor && number <= beats->last;
        if (known)
            *ret_ms = beat->number == number ? beat->sent_ms : beats->floor_ms;
    }
    return known;
}
