/* A table of buckets of eight, by ticket: what has no room in its bucket takes the place of what is
 * due first there. */
#include "advise/refusals.h"

enum { BUCKET = 8, EARLY_MS = 1 };

struct refusals {
    struct refusal all[REFUSALS_MAX];
};

struct refusals *refusals_new(void)
{
    return memory_alloc_zero(sizeof(struct refusals));
}

void refusals_free(struct refusals *refusals)
{
    memory_free(refusals);
}

/* Tickets are hashes. */
static size_t bucket_of(uint64_t ticket)
{
    return (size_t)(ticket >> 20) % (REFUSALS_MAX / BUCKET) * BUCKET;
}

static bool is_free(const struct refusal *refusal, int64_t now_ms)
{
    return !refusal->ticket || now_ms > refusal->due_ms + REFUSALS_LATE_MS;
}

size_t refusals_add(struct refusals *refusals, const struct refusal *refusal, int64_t now_ms)
{
    size_t first = bucket_of(refusal->ticket), chosen = first;

    for (size_t i = first; i < first + BUCKET; i++) {
        if (is_free(&refusals->all[i], now_ms)) {
            chosen = i;
            break;
        }
        if (refusals->all[i].due_ms < refusals->all[chosen].due_ms)
            chosen = i;
    }
    refusals->all[chosen] = *refusal;
    return chosen;
}

void refusals_set_sequence(struct refusals *refusals, size_t place, uint64_t ticket,
                           uint64_t sequence)
{
    if (refusals->all[place].ticket == ticket)
        refusals->all[place].sequence = sequence;
}

bool refusals_take(struct refusals *refusals, uint64_t ticket, int64_t now_ms,
                   struct refusal *ret_refusal)
{
    size_t first = bucket_of(ticket);
    struct refusal *found = NULL;

    for (size_t i = first; i < first + BUCKET; i++) {
        struct refusal *refusal = &refusals->all[i];

        if (refusal->ticket == ticket && !is_free(refusal, now_ms) &&
            now_ms >= refusal->due_ms - EARLY_MS && (!found || refusal->due_ms < found->due_ms))
            found = refusal;
    }
    if (!found)
        return false;
    *ret_refusal = *found;
    *found = (struct refusal){0};
    return true;
}
