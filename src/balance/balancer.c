/* A look costs a read for each partition, and nothing is looked at while nobody asks for anything:
 * no node drains, no container has rules, no rebalance is on. */
#include "balance/balancer_private.h"

enum { PAUSE_MS = 1000, IDLE_MS = 15000, MOVES_MAX = 4, QUIET_LOOKS = 10 };

/* --- Problems -------------------------------------------------------------------------------- */

static void problem_add(struct balancer_status *status, const struct balancer_span *span,
                        const char *text)
{
    struct slice name = container_info(span->container)->id;
    struct balancer_problem *problem = &status->problems[status->problem_count];

    if (status->problem_count == BALANCER_PROBLEMS_MAX)
        return;
    status->problem_count++;
    problem->partition = span->span->id;
    (void)snprintf(problem->container, sizeof problem->container, "%.*s",
                   (int)MIN(name.len, sizeof problem->container - 1), (const char *)name.data);
    (void)snprintf(problem->text, sizeof problem->text, "%.199s", text);
}

static void stuck_note(struct balancer_status *status, const struct balancer_world *world,
                       const struct rebalance_plan *plan)
{
    for (size_t i = 0; i < plan->stuck_count; i++) {
        const struct rebalance_stuck *stuck = &plan->stuck[i];
        char text[160];

        (void)snprintf(text, sizeof text, "%s: %s", rebalance_reason_name(stuck->reason),
                       stuck->forbidden ? "no node is as its placement rule wants it"
                                        : "no allowed node that takes partitions has room for it");
        problem_add(status, &world->spans[stuck->span], text);
    }
}

static bool must_move(const struct balancer_world *world, const struct rebalance_span *span)
{
    for (size_t i = 0; i < world->node_count; i++)
        if (world->nodes[i].number == span->node && world->nodes[i].empties)
            return true;
    return !(span->allowed >> span->node & 1);
}

/* What drains and rules wait for until somebody gathers the key. */
static void parts_note(struct balancer_status *status, const struct balancer_world *world)
{
    for (size_t i = 0; i < world->span_count; i++) {
        const struct balancer_span *span = &world->spans[i];

        if (partition_map_is_part(container_map(span->container), span->span) &&
            must_move(world, &span->figures))
            problem_add(
                status, span,
                "it is a part of a key that is spread, and stays until the key is gathered");
    }
}

/* --- Doing ----------------------------------------------------------------------------------- */

/* One migration of a container at a time: what is begun here is fixed for the rest of the look. */
static void container_fix(struct balancer_world *world, const struct container *container)
{
    for (size_t i = 0; i < world->span_count; i++)
        if (world->spans[i].container == container)
            world->spans[i].figures.fixed = world->figures[i].fixed = true;
}

static size_t isolations_begin(struct balancer *balancer, struct balancer_world *world,
                               struct balancer_status *status, size_t room)
{
    size_t begun = 0;

    for (size_t i = 0; i < world->span_count; i++) {
        struct balancer_span *span = &world->spans[i];
        struct error err;

        if (!span->isolate || span->figures.fixed)
            continue;
        if (begun == room)
            break;
        if (migrator_carve(balancer->options.migrator, span->container, span->span->id,
                           &span->isolate->range, &err)) {
            container_fix(world, span->container);
            begun++;
        } else {
            problem_add(status, span, err.message);
        }
    }
    return begun;
}

static size_t moves_begin(struct balancer *balancer, struct balancer_world *world,
                          const struct rebalance_plan *plan, struct balancer_status *status,
                          size_t room)
{
    size_t begun = 0;

    for (size_t i = 0; i < plan->count && begun < room; i++) {
        const struct balancer_span *span = &world->spans[plan->moves[i].span];
        struct error err;

        if (span->figures.fixed)
            continue;
        if (migrator_move(balancer->options.migrator, span->container, span->span->id,
                          plan->moves[i].to, &err)) {
            container_fix(world, span->container);
            begun++;
        } else {
            problem_add(status, span, err.message);
        }
    }
    return begun;
}

/* --- Rebalancing ----------------------------------------------------------------------------- */

/* Ends when nothing is left to be gained; or when figures change so fast that it never would. */
static bool rebalance_follow(struct balancer *balancer, const struct balancer_world *world,
                             const struct rebalance_plan *plan, size_t begun, struct error *err)
{
    bool over = false;

    WITH_LOCK (&balancer->lock) {
        struct balancer_status *status = &balancer->status;

        status->moves_done += begun;
        status->moves_planned =
            MAX(status->moves_planned, status->moves_done + plan->count - begun);
        over = (plan->count == 0 && world->migrating == 0) ||
               status->moves_done > 4 * world->span_count + 16;
    }
    return !over || catalogue_nodes_rebalancing(balancer->options.catalogue, false, err);
}

bool balancer_rebalance(struct balancer *balancer, bool on, struct error *err)
{
    if (!catalogue_nodes_rebalancing(balancer->options.catalogue, on, err))
        return false;
    WITH_LOCK (&balancer->lock)
        if (on)
            balancer->status.moves_done = balancer->status.moves_planned = 0;
    balancer_wake(balancer);
    return true;
}

struct balancer_status *balancer_status(struct balancer *balancer)
{
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(balancer->options.catalogue);
    struct balancer_status *copy = MEMORY_NEW(struct balancer_status);

    WITH_LOCK (&balancer->lock)
        *copy = balancer->status;
    copy->rebalancing = table->rebalancing;
    return copy;
}

/* --- Looking --------------------------------------------------------------------------------- */

static bool any_rules(struct balancer *balancer)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count;
    struct account **accounts = catalogue_accounts(balancer->options.catalogue, arena, &count);
    bool any = false;

    for (size_t a = 0; a < count; a++) {
        for (size_t d = 0; d < account_database_count(accounts[a]); d++) {
            const struct database *database = account_database(accounts[a], d);

            for (size_t c = 0; !any && c < database_container_count(database); c++)
                any = definition_fields(container_definition(database_container(database, c)))
                          ->placement.count > 0;
        }
        account_unref(accounts[a]);
    }
    return any;
}

static bool nodes_are_to_change(const struct node_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->list[i].draining)
            return true;
    return table->rebalancing;
}

static bool look(struct balancer *balancer, bool rebalancing, size_t *ret_begun, struct error *err)
{
    CLEANUP(balancer_world_done) struct balancer_world world = {0};
    CLEANUP(memory_free) struct balancer_status *found = MEMORY_NEW(struct balancer_status);
    size_t room, begun = 0;
    struct rebalance_plan plan;

    if (!balancer_world_read(balancer, &world, err))
        return false;
    room = balancer->options.moves_max - MIN(balancer->options.moves_max, world.migrating);
    begun = isolations_begin(balancer, &world, found, room);
    balancer_world_plan(&world, !rebalancing, &plan);
    stuck_note(found, &world, &plan);
    parts_note(found, &world);
    begun += moves_begin(balancer, &world, &plan, found, room - begun);
    if (begun == 0 && world.migrating == 0 && world.patterns)
        balancer->quiet_until_ms =
            clock_read_monotonic_ms(balancer->clock) + QUIET_LOOKS * balancer->options.pause_ms;
    WITH_LOCK (&balancer->lock) {
        balancer->status.begun += begun;
        balancer->status.problem_count = found->problem_count;
        memcpy(balancer->status.problems, found->problems, sizeof found->problems);
    }
    *ret_begun = begun;
    return !rebalancing || rebalance_follow(balancer, &world, &plan, begun, err);
}

bool balancer_round(struct balancer *balancer, size_t *ret_begun, struct error *err)
{
    CLEANUP(catalogue_nodes_free)
    struct node_table *table = catalogue_nodes(balancer->options.catalogue);
    bool fine = true;

    *ret_begun = 0;
    WITH_LOCK (&balancer->round_lock) {
        balancer->waiting = nodes_are_to_change(table);
        if (!balancer->waiting && !any_rules(balancer))
            WITH_LOCK (&balancer->lock)
                balancer->status.problem_count = 0;
        else if (clock_read_monotonic_ms(balancer->clock) >= balancer->quiet_until_ms)
            fine = look(balancer, table->rebalancing, ret_begun, err);
    }
    return fine;
}

/* --- The thread ------------------------------------------------------------------------------ */

/* False: stop. */
static bool balancer_wait(struct balancer *balancer, bool fine)
{
    bool waiting = false;

    WITH_LOCK (&balancer->round_lock)
        waiting = balancer->waiting;
    return sleeper_sleep(&balancer->sleeper, balancer->options.pause_ms,
                         waiting || !fine ? 0 : clock_monotonic_ms() + IDLE_MS);
}

static void balancer_main(void *context)
{
    struct balancer *balancer = context;
    bool fine = false;

    while (balancer_wait(balancer, fine)) {
        struct error err;
        size_t begun;

        sleeper_listen(&balancer->sleeper);
        fine = balancer_round(balancer, &begun, &err);
        if (!fine)
            log_error(balancer->options.log, "a look at the balance failed", &err);
    }
}

void balancer_wake(struct balancer *balancer)
{
    WITH_LOCK (&balancer->round_lock)
        balancer->quiet_until_ms = 0;
    sleeper_wake(&balancer->sleeper);
}

struct balancer *balancer_new(const struct balancer_options *options)
{
    struct balancer *balancer = MEMORY_NEW(struct balancer);

    balancer->options = *options;
    balancer->clock = options->clock ? options->clock : &clock_system;
    if (!balancer->options.pause_ms)
        balancer->options.pause_ms = PAUSE_MS;
    if (!balancer->options.moves_max)
        balancer->options.moves_max = MOVES_MAX;
    mutex_init(&balancer->round_lock);
    mutex_init(&balancer->lock);
    sleeper_init(&balancer->sleeper, options->bell);
    if (!options->by_hand)
        thread_start(&balancer->thread, "balancer", balancer_main, balancer);
    return balancer;
}

void balancer_free(struct balancer *balancer)
{
    if (!balancer)
        return;
    sleeper_stop(&balancer->sleeper);
    if (!balancer->options.by_hand)
        thread_join(&balancer->thread);
    sleeper_done(&balancer->sleeper);
    mutex_done(&balancer->lock);
    mutex_done(&balancer->round_lock);
    memory_free(balancer);
}
