/* Intents: which items open transactions have written, so that the second one hears of it at once
 * and not at its commit. Bounded by what transactions may hold. Any thread. */
#pragma once

#include "base/attrs.h"
#include "base/slice.h"

struct mongo_intents; /* opaque, owned */

/* The intents of one transaction; zeros to begin with. */
struct mongo_intent;
struct mongo_intent_list {
    struct mongo_intent *first; /* owned by the table */
    size_t count;
};

struct mongo_intents *mongo_intents_new(void);
void mongo_intents_free(struct mongo_intents *intents); /* NULL is fine; all were let go */

/* Notes that the owner of the list writes the item. False: another one does. */
NODISCARD bool mongo_intents_add(struct mongo_intents *intents, struct mongo_intent_list *list,
                                 uint32_t partition, struct slice key);
void mongo_intents_let_go(struct mongo_intents *intents, struct mongo_intent_list *list);
