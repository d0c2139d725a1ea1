/* Single items. Events are taken in the order of time; what is kept is every possible world: a
 * version of the item, and which of the operations now running have already happened in it. When
 * an operation is answered, each world lets running operations happen, in any order, until that one
 * has; worlds where it cannot have happened with its answer are dropped. If none is left, the item
 * has no history.
 *
 * Transactions count with what they write: at one instant of their commit, provided the item still
 * is what they read. Their reads are of a snapshot and are the other checker's to judge.
 *
 * An operation of unknown outcome runs until its store was found again; then the worlds in which it
 * has happened and those in which it never will go on side by side. */
#include "isolation/checker.h"

#include <stdlib.h>

enum {
    RUNNING_MAX = 64,   /* operations at once, a bit each */
    WORLDS_MAX = 200000 /* then the checker gives up, aloud */
};

/* One operation on the item: what it needs to see and what it leaves. */
struct step {
    uint64_t from_ns, to_ns;
    size_t transaction;
    bool sees_version, sees_present, sees_other;
    uint64_t version; /* seen, or not to be seen */
    bool writes;
    uint64_t after; /* 0: deleted */
    bool unknown;   /* may never happen */
    unsigned slot;  /* while running */
};

struct world {
    uint64_t version;
    uint64_t happened; /* by slot */
};

struct worlds {
    struct world *all;
    size_t count, capacity;
};

struct event {
    uint64_t at_ns;
    struct step *step;
    bool is_end;
};

struct linear {
    uint32_t item;
    struct step *running[RUNNING_MAX];
    struct worlds now, next;
};

static bool step_fits(const struct step *step, uint64_t version)
{
    if (step->sees_version)
        return version == step->version;
    if (step->sees_other)
        return version != step->version;
    return !step->sees_present || version != 0;
}

static bool worlds_add(struct worlds *worlds, struct world world)
{
    for (size_t i = 0; i < worlds->count; i++)
        if (worlds->all[i].version == world.version && worlds->all[i].happened == world.happened)
            return true;
    if (worlds->count == WORLDS_MAX)
        return false;
    if (worlds->count == worlds->capacity) {
        worlds->capacity = worlds->capacity ? 2 * worlds->capacity : 64;
        worlds->all =
            memory_realloc(worlds->all, memory_array_size(worlds->capacity, sizeof *worlds->all));
    }
    worlds->all[worlds->count++] = world;
    return true;
}

/* Lets everything happen that can before step has; the worlds in which it has are the next. */
static bool step_finish(struct linear *linear, const struct step *step)
{
    uint64_t bit = UINT64_C(1) << step->slot;

    linear->next.count = 0;
    for (size_t i = 0; i < linear->now.count; i++) {
        struct world world = linear->now.all[i];

        if (world.happened & bit) {
            world.happened &= ~bit;
            if (!worlds_add(&linear->next, world))
                return false;
            continue;
        }
        if (step->unknown && !worlds_add(&linear->next, world))
            return false;
        for (unsigned slot = 0; slot < RUNNING_MAX; slot++) {
            const struct step *other = linear->running[slot];

            if (other && !(world.happened >> slot & 1) && step_fits(other, world.version) &&
                !worlds_add(&linear->now,
                            (struct world){other->writes ? other->after : world.version,
                                           world.happened | UINT64_C(1) << slot}))
                return false;
        }
    }
    linear->running[step->slot] = NULL;
    struct worlds swap = linear->now;
    linear->now = linear->next;
    linear->next = swap;
    return true;
}

static bool step_begin(struct linear *linear, struct step *step)
{
    for (unsigned slot = 0; slot < RUNNING_MAX; slot++)
        if (!linear->running[slot]) {
            linear->running[slot] = step;
            step->slot = slot;
            return true;
        }
    return false;
}

static int event_compare(const void *left, const void *right)
{
    const struct event *a = left, *b = right;

    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return a->is_end - b->is_end;
}

static void events_run(struct linear *linear, struct event *events, size_t count,
                       struct checker_report *report)
{
    for (size_t i = 0; i < count; i++) {
        const struct step *step = events[i].step;

        if (!events[i].is_end) {
            if (step_begin(linear, events[i].step))
                continue;
            checker_object(report, CHECKER_UNDECIDED, "item %u: over %d operations at once",
                           linear->item, RUNNING_MAX);
            return;
        }
        if (!step_finish(linear, step)) {
            checker_object(report, CHECKER_UNDECIDED, "item %u: over %d possible worlds",
                           linear->item, WORLDS_MAX);
            return;
        }
        if (linear->now.count == 0) {
            checker_object(report, CHECKER_NOT_LINEAR,
                           "item %u: transaction %zu cannot have happened between its call and its "
                           "answer (%s version %llu%s)",
                           linear->item, step->transaction,
                           step->sees_version ? "saw" : "did not care for",
                           (unsigned long long)step->version, step->writes ? ", wrote" : "");
            return;
        }
    }
}

/* What a transaction did to one item. False: nothing that counts here. */
static bool step_make(const struct history_transaction *transaction, size_t index, uint32_t item,
                      struct step *ret_step)
{
    struct step step = {.from_ns =
                            transaction->plain ? transaction->began_ns : transaction->asked_ns,
                        .to_ns = transaction->ended_ns,
                        .unknown = transaction->outcome == CHECKED_UNKNOWN,
                        .transaction = index};
    bool any = false;

    if (transaction->outcome == CHECKED_ABORTED)
        return false;
    for (size_t i = 0; i < transaction->op_count; i++) {
        const struct history_op *op = &transaction->ops[i];

        if (op->item != item)
            continue;
        if (op->kind == CHECKED_WRITE || op->kind == CHECKED_DELETE) {
            step.writes = true;
            step.after = op->kind == CHECKED_WRITE ? op->version : 0;
        } else if (!any) {
            step.sees_version = op->kind == CHECKED_READ;
            step.sees_present = op->kind == CHECKED_PRESENT;
            step.sees_other = op->kind == CHECKED_OTHER;
            step.version = op->version;
        }
        any = true;
    }
    *ret_step = step;
    return any && (transaction->plain || step.writes);
}

static void item_check(const struct history *history, uint32_t item, struct checker_report *report)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct step *steps = ARENA_ARRAY(arena, struct step, history->count);
    struct event *events = ARENA_ARRAY(arena, struct event, 2 * history->count);
    struct linear linear = {.item = item};
    size_t count = 0;

    for (size_t t = 0; t < history->count; t++)
        count += step_make(&history->transactions[t], t, item, &steps[count]);
    for (size_t i = 0; i < count; i++) {
        events[2 * i] = (struct event){steps[i].from_ns, &steps[i], false};
        events[2 * i + 1] = (struct event){steps[i].to_ns, &steps[i], true};
    }
    qsort(events, 2 * count, sizeof *events, event_compare);
    worlds_add(&linear.now, (struct world){0});
    events_run(&linear, events, 2 * count, report);
    memory_free(linear.now.all);
    memory_free(linear.next.all);
}

void checker_items(const struct history *history, struct checker_report *report)
{
    for (uint32_t item = 0; item < history->items; item++)
        item_check(history, item, report);
}
