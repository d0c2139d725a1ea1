/* A list: transactions that make collections are rare, and nobody looks while there are none. */
#include "front/mongo/session/pending.h"

#include "base/memory.h"
#include "base/thread.h"

#include <stdatomic.h>

struct made {
    uint32_t container;
    const void *owner;
    struct made *next;
};

struct mongo_pending {
    atomic_size_t count;
    struct mutex lock;
    struct made *first; /* under lock */
};

struct mongo_pending *mongo_pending_new(void)
{
    struct mongo_pending *pending = MEMORY_NEW(struct mongo_pending);

    mutex_init(&pending->lock);
    return pending;
}

void mongo_pending_free(struct mongo_pending *pending)
{
    if (!pending)
        return;
    while (pending->first)
        mongo_pending_remove(pending, pending->first->container);
    mutex_done(&pending->lock);
    memory_free(pending);
}

void mongo_pending_add(struct mongo_pending *pending, uint32_t container, const void *owner)
{
    struct made *made = MEMORY_NEW(struct made);

    *made = (struct made){.container = container, .owner = owner};
    WITH_LOCK (&pending->lock) {
        made->next = pending->first;
        pending->first = made;
    }
    atomic_fetch_add(&pending->count, 1);
}

void mongo_pending_remove(struct mongo_pending *pending, uint32_t container)
{
    struct made *made = NULL;

    WITH_LOCK (&pending->lock) {
        struct made **link = &pending->first;

        while (*link && (*link)->container != container)
            link = &(*link)->next;
        made = *link;
        if (made)
            *link = made->next;
    }
    if (made)
        atomic_fetch_sub(&pending->count, 1);
    memory_free(made);
}

const void *mongo_pending_owner(struct mongo_pending *pending, uint32_t container)
{
    const void *owner = NULL;

    if (atomic_load(&pending->count) == 0)
        return NULL;
    WITH_LOCK (&pending->lock)
        for (const struct made *made = pending->first; made && !owner; made = made->next)
            if (made->container == container)
                owner = made->owner;
    return owner;
}
