/* A ring of texts. They are made outside the lock; under it only a pointer changes hands. */
#include "observe/slow.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

struct kept {
    uint8_t *text; /* owned; NULL: none yet */
    size_t len, account_len;
    uint8_t account[64]; /* the beginning of its name: longer ones cannot be */
};

struct slow {
    struct mutex lock;
    size_t max;
    uint64_t count; /* since the start; the next place is count modulo max */
    struct kept *ring;
};

struct slow *slow_new(size_t kept_max)
{
    struct slow *slow = MEMORY_NEW(struct slow);

    assert(kept_max > 0);
    mutex_init(&slow->lock);
    slow->max = kept_max;
    slow->ring = memory_alloc_zero(memory_array_size(kept_max, sizeof *slow->ring));
    return slow;
}

void slow_free(struct slow *slow)
{
    if (!slow)
        return;
    for (size_t i = 0; i < slow->max; i++)
        memory_free(slow->ring[i].text);
    memory_free(slow->ring);
    mutex_done(&slow->lock);
    memory_free(slow);
}

void slow_add(struct slow *slow, const struct observed_request *request)
{
    struct kept kept = {.account_len = MIN(request->account.len, sizeof kept.account)};
    char when[CLOCK_ISO_SIZE];
    struct buf text;
    uint8_t *old = NULL;

    buf_init(&text, SLOW_BYTES_MAX);
    clock_iso(request->ended_ms, when);
    buf_printf(&text, "{\"time\":\"%s\"", when);
    observed_request_json(request, &text);
    BUF_APPEND(&text, "}");
    if (buf_overflowed(&text)) {
        buf_done(&text);
        return;
    }
    if (kept.account_len)
        memcpy(kept.account, request->account.data, kept.account_len);
    kept.text = buf_take(&text, &kept.len);
    WITH_LOCK (&slow->lock) {
        struct kept *place = &slow->ring[slow->count++ % slow->max];

        old = place->text;
        *place = kept;
    }
    memory_free(old);
}

uint64_t slow_count(struct slow *slow)
{
    uint64_t count = 0;

    WITH_LOCK (&slow->lock)
        count = slow->count;
    return count;
}

void slow_print(struct slow *slow, struct slice account, size_t max, struct buf *out)
{
    size_t shown = 0;

    WITH_LOCK (&slow->lock) {
        for (uint64_t i = slow->count; i > 0 && i + slow->max > slow->count && shown < max; i--) {
            const struct kept *kept = &slow->ring[(i - 1) % slow->max];

            if (account.len && !slice_equal(account, slice_of(kept->account, kept->account_len)))
                continue;
            if (shown++)
                BUF_APPEND(out, ",");
            buf_append(out, kept->text, kept->len);
        }
    }
}
