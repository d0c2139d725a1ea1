/* Tables of chains, each with a lock of its own, so that loops and workers seldom meet. An
 * account's plans of one table are a list by use. Whose are given up is found by looking at all
 * accounts of the table: that happens only where it is full, and a plan has some kilobytes. */
#include "front/kit/plans.h"

#include "base/thread.h"

#include <xxhash.h>

enum { TABLES = 8, BUCKETS = 256, PLAN_BYTES_LEAST = 4096 /* an arena's first block */ };

/* An account with plans in a table. */
struct front_plan_holder {
    uint64_t account;
    struct front_plan_holder *next;
    struct front_plan *newest, *oldest;
    size_t bytes;
};

struct table {
    struct mutex lock; /* for all below */
    struct front_plan *buckets[BUCKETS];
    struct front_plan_holder *holders;
    size_t bytes, count;
    uint64_t found, missed;
};

struct front_plans {
    size_t table_bytes_max;
    struct table tables[TABLES];
};

struct front_plans *front_plans_new(size_t bytes_max)
{
    struct front_plans *plans = MEMORY_NEW(struct front_plans);

    plans->table_bytes_max = bytes_max / TABLES;
    for (size_t i = 0; i < TABLES; i++)
        mutex_init(&plans->tables[i].lock);
    return plans;
}

static uint64_t hash_of(uint64_t account, struct slice key)
{
    return XXH3_64bits_withSeed(key.data, key.len, account);
}

static struct table *table_of(struct front_plans *plans, uint64_t hash)
{
    return &plans->tables[hash >> 32 & (TABLES - 1)];
}

/* --- Within a table, under its lock ---------------------------------------------------------- */

static void holder_drop(struct table *table, struct front_plan_holder *holder)
{
    struct front_plan_holder **place = &table->holders;

    while (*place != holder)
        place = &(*place)->next;
    *place = holder->next;
    memory_free(holder);
}

static struct front_plan_holder *holder_of(struct table *table, uint64_t account)
{
    struct front_plan_holder *holder = table->holders;

    while (holder && holder->account != account)
        holder = holder->next;
    if (holder)
        return holder;
    holder = MEMORY_NEW(struct front_plan_holder);
    *holder = (struct front_plan_holder){.account = account, .next = table->holders};
    table->holders = holder;
    return holder;
}

static void plan_link(struct table *table, struct front_plan_holder *holder,
                      struct front_plan *plan)
{
    struct front_plan **bucket = &table->buckets[plan->hash % BUCKETS];

    plan->same = *bucket;
    *bucket = plan;
    plan->holder = holder;
    plan->newer = NULL;
    plan->older = holder->newest;
    *(holder->newest ? &holder->newest->newer : &holder->oldest) = plan;
    holder->newest = plan;
    holder->bytes += plan->bytes;
    table->bytes += plan->bytes;
    table->count++;
}

static void plan_unlink(struct table *table, struct front_plan *plan)
{
    struct front_plan_holder *holder = plan->holder;
    struct front_plan **place = &table->buckets[plan->hash % BUCKETS];

    while (*place != plan)
        place = &(*place)->same;
    *place = plan->same;
    *(plan->newer ? &plan->newer->older : &holder->newest) = plan->older;
    *(plan->older ? &plan->older->newer : &holder->oldest) = plan->newer;
    holder->bytes -= plan->bytes;
    table->bytes -= plan->bytes;
    table->count--;
    if (!holder->newest)
        holder_drop(table, holder);
}

/* The plan that makes room: of the account that has most, what it has not used for longest. */
static struct front_plan *plan_oldest(const struct table *table)
{
    const struct front_plan_holder *most = table->holders;

    for (const struct front_plan_holder *h = most; h; h = h->next)
        if (h->bytes > most->bytes)
            most = h;
    return most->oldest;
}

static struct front_plan *plan_find(const struct table *table, uint64_t hash, uint64_t account,
                                    struct slice key)
{
    struct front_plan *plan = table->buckets[hash % BUCKETS];

    while (plan &&
           (plan->hash != hash || plan->holder->account != account || !slice_equal(plan->key, key)))
        plan = plan->same;
    return plan;
}

/* --- From outside ---------------------------------------------------------------------------- */

static void plan_free(struct front_plan *plan)
{
    arena_free(plan->arena); /* which the plan itself is in */
}

void front_plans_free(struct front_plans *plans)
{
    if (!plans)
        return;
    for (size_t i = 0; i < TABLES; i++) {
        struct table *table = &plans->tables[i];

        while (table->holders) {
            struct front_plan *plan = table->holders->oldest;

            plan_unlink(table, plan);
            plan_free(plan);
        }
        mutex_done(&table->lock);
    }
    memory_free(plans);
}

struct front_plan *front_plans_take(struct front_plans *plans, uint64_t account, struct slice key)
{
    uint64_t hash = hash_of(account, key);
    struct table *table = table_of(plans, hash);
    struct front_plan *plan = NULL;

    WITH_LOCK (&table->lock) {
        plan = plan_find(table, hash, account, key);
        if (plan)
            plan_unlink(table, plan);
        table->found += plan != NULL;
        table->missed += plan == NULL;
    }
    return plan;
}

void front_plans_give(struct front_plans *plans, uint64_t account, struct slice key,
                      struct front_plan *plan)
{
    struct front_plan *dropped = NULL;
    struct table *table;

    if (!plan->key.data) {
        plan->key = arena_copy(plan->arena, key);
        plan->hash = hash_of(account, key);
        plan->bytes = MAX(arena_used(plan->arena), (size_t)PLAN_BYTES_LEAST);
    }
    assert(slice_equal(plan->key, key));
    table = table_of(plans, plan->hash);
    WITH_LOCK (&table->lock) {
        plan_link(table, holder_of(table, account), plan);
        while (table->bytes > plans->table_bytes_max) {
            struct front_plan *oldest = plan_oldest(table);

            plan_unlink(table, oldest);
            oldest->older = dropped;
            dropped = oldest;
        }
    }
    while (dropped) {
        struct front_plan *next = dropped->older;

        plan_free(dropped);
        dropped = next;
    }
}

void front_plans_metrics(struct front_plans *plans, struct front_plans_metrics *ret_metrics)
{
    struct front_plans_metrics metrics = {0};

    for (size_t i = 0; i < TABLES; i++) {
        struct table *table = &plans->tables[i];

        WITH_LOCK (&table->lock) {
            metrics.bytes += table->bytes;
            metrics.count += table->count;
            metrics.found += table->found;
            metrics.missed += table->missed;
        }
    }
    *ret_metrics = metrics;
}
