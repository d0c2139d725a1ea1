/* Gates: where those who write the same key take turns, so that a hot item costs each of them one
 * commit and not many attempts.
 *
 * Whoever writes a key holds its gate until the commit, on whichever thread that ends. There is a
 * fixed number of them; keys share them by their hash. */
#pragma once

#include "base/attrs.h"
#include "base/slice.h"

/* Owned by whoever owns the nodes. */
struct item_gates; /* opaque */
struct item_gates *item_gates_new(void);
void item_gates_free(struct item_gates *gates); /* NULL is fine */
CLEANUP_FN(struct item_gates *, item_gates_free)

/* The gate of an item on a node. gates NULL: NULL, a gate that is always open. */
struct item_gate; /* opaque; lives as long as its gates */
struct item_gate *item_gate_of(struct item_gates *gates, uint32_t node, struct slice item_key);
void item_gate_enter(struct item_gate *gate);         /* waits */
NODISCARD bool item_gate_try(struct item_gate *gate); /* never waits, and passes nobody who does */
void item_gate_leave(struct item_gate *gate);         /* from any thread */

/* For transactions, which have no key of one item: waits at the gate of a key, such as a logical
 * partition's. Whoever is at one takes no other. gates NULL: nothing happens. */
void item_gates_enter(struct item_gates *gates, struct slice key);
void item_gates_leave(struct item_gates *gates, struct slice key);

/* Claims are gates before those: who is at one may go on to a gate, but nobody at a gate comes to a
 * claim, and nobody waits for a second one. claim.h is who takes them. */
void item_gates_claim(struct item_gates *gates, struct slice key);
NODISCARD bool item_gates_claim_try(struct item_gates *gates, struct slice key);
void item_gates_unclaim(struct item_gates *gates, struct slice key);
