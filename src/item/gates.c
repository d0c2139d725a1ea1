/* A gate is held by a request, not by a thread: a plain mutex would have to be let go where it was
 * taken. Those of items are made when a node is first used; nobody has many nodes. */
#include "item/gates.h"

#include "base/memory.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <xxhash.h>

enum { GATES = 1024, GATE_NODES = 16 };

struct item_gate {
    struct mutex lock;
    struct condition opened;
    bool held;
    uint32_t waiting;
};

struct item_gates {
    _Atomic(struct item_gate *) items[GATE_NODES]; /* GATES each; made when a node is first used */
    struct item_gate gates[GATES];                 /* of logical partitions */
    struct item_gate claims[GATES];
};

static void gates_init(struct item_gate *gates)
{
    for (size_t i = 0; i < GATES; i++) {
        mutex_init(&gates[i].lock);
        condition_init(&gates[i].opened);
    }
}

static void gates_done(struct item_gate *gates)
{
    for (size_t i = 0; i < GATES; i++) {
        condition_done(&gates[i].opened);
        mutex_done(&gates[i].lock);
    }
}

static void gates_free(struct item_gate *gates)
{
    if (gates)
        gates_done(gates);
    memory_free(gates);
}

struct item_gates *item_gates_new(void)
{
    struct item_gates *gates = MEMORY_NEW(struct item_gates);

    gates_init(gates->gates);
    gates_init(gates->claims);
    return gates;
}

void item_gates_free(struct item_gates *gates)
{
    if (!gates)
        return;
    for (size_t i = 0; i < GATE_NODES; i++)
        gates_free(gates->items[i]);
    gates_done(gates->claims);
    gates_done(gates->gates);
    memory_free(gates);
}

static struct item_gate *gate_find(struct item_gates *gates, struct slice key)
{
    return gates ? &gates->gates[XXH3_64bits(key.data, key.len) % GATES] : NULL;
}

/* Two may make them at once; one of them is let go again. */
static struct item_gate *gates_of_node(struct item_gates *gates, uint32_t node)
{
    _Atomic(struct item_gate *) *place = &gates->items[node % GATE_NODES];
    struct item_gate *found = atomic_load(place), *made;

    if (found)
        return found;
    made = memory_alloc_zero(memory_array_size(GATES, sizeof *made));
    gates_init(made);
    if (atomic_compare_exchange_strong(place, &found, made))
        return made;
    gates_free(made);
    return found;
}

/* Keys of different nodes share no gate: whoever waits for a node that hangs would keep others from
 * theirs. */
struct item_gate *item_gate_of(struct item_gates *gates, uint32_t node, struct slice item_key)
{
    if (!gates)
        return NULL;
    return &gates_of_node(gates, node)[XXH3_64bits(item_key.data, item_key.len) % GATES];
}

void item_gate_enter(struct item_gate *gate)
{
    if (!gate)
        return;
    mutex_lock(&gate->lock);
    gate->waiting++;
    while (gate->held)
        condition_wait(&gate->opened, &gate->lock);
    gate->waiting--;
    gate->held = true;
    mutex_unlock(&gate->lock);
}

/* Nobody who waits is passed by. */
bool item_gate_try(struct item_gate *gate)
{
    bool entered;

    if (!gate)
        return true;
    mutex_lock(&gate->lock);
    entered = !gate->held && gate->waiting == 0;
    gate->held = gate->held || entered;
    mutex_unlock(&gate->lock);
    return entered;
}

void item_gate_leave(struct item_gate *gate)
{
    bool waiting;

    if (!gate)
        return;
    mutex_lock(&gate->lock);
    gate->held = false;
    waiting = gate->waiting > 0;
    mutex_unlock(&gate->lock);
    if (waiting)
        condition_signal(&gate->opened);
}

void item_gates_enter(struct item_gates *gates, struct slice key)
{
    item_gate_enter(gate_find(gates, key));
}

void item_gates_leave(struct item_gates *gates, struct slice key)
{
    item_gate_leave(gate_find(gates, key));
}

static struct item_gate *claim_find(struct item_gates *gates, struct slice key)
{
    return gates ? &gates->claims[XXH3_64bits(key.data, key.len) % GATES] : NULL;
}

void item_gates_claim(struct item_gates *gates, struct slice key)
{
    item_gate_enter(claim_find(gates, key));
}

bool item_gates_claim_try(struct item_gates *gates, struct slice key)
{
    return item_gate_try(claim_find(gates, key));
}

void item_gates_unclaim(struct item_gates *gates, struct slice key)
{
    item_gate_leave(claim_find(gates, key));
}
