#include "engine/budget.h"

#include "base/memory.h"
#include "base/thread.h"

struct engine_budget {
    size_t bytes;
    struct mutex lock; /* for the list */
    struct engine_budget_share *shares;
    size_t count;
};

struct engine_budget *engine_budget_new(size_t bytes)
{
    struct engine_budget *budget = MEMORY_NEW(struct engine_budget);

    assert(bytes > 0);
    budget->bytes = bytes;
    mutex_init(&budget->lock);
    return budget;
}

void engine_budget_free(struct engine_budget *budget)
{
    if (!budget)
        return;
    assert(!budget->shares);
    mutex_done(&budget->lock);
    memory_free(budget);
}

static void shares_resize(struct engine_budget *budget)
{
    for (struct engine_budget_share *share = budget->shares; share; share = share->next) {
        share->bytes = budget->bytes / budget->count;
        if (share->is_ready)
            share->resize(share, share->bytes);
    }
}

/* The others shrink before the new one grows. */
size_t engine_budget_join(struct engine_budget *budget, struct engine_budget_share *share)
{
    size_t bytes = 0;

    WITH_LOCK (&budget->lock) {
        budget->count++;
        shares_resize(budget);
        share->next = budget->shares;
        budget->shares = share;
        bytes = share->bytes = budget->bytes / budget->count;
        share->is_ready = false;
    }
    return bytes;
}

void engine_budget_ready(struct engine_budget *budget, struct engine_budget_share *share,
                         size_t joined_bytes)
{
    WITH_LOCK (&budget->lock) {
        share->is_ready = true;
        if (share->bytes != joined_bytes)
            share->resize(share, share->bytes);
    }
}

void engine_budget_leave(struct engine_budget *budget, struct engine_budget_share *share)
{
    WITH_LOCK (&budget->lock) {
        struct engine_budget_share **link = &budget->shares;

        while (*link != share)
            link = &(*link)->next;
        *link = share->next;
        budget->count--;
        shares_resize(budget);
    }
}
