/* What must move goes to the node that is the better for it; then single moves are tried, the best
 * first, until none helps enough. How well things are spread is the sum of squares of what each
 * node has too much or too little of, as a part of the whole: of bytes, of heat and, a little, of
 * partitions. Trying pairs of moves would find some more, at the square of the cost; with
 * partitions much smaller than nodes there is little to be found.
 *
 * A span that is moved twice on the way is moved once, to where it ends. */
#include "balance/rebalance.h"

#include "base/attrs.h"

enum { NODES_MAX = 64 };

#define GAIN_MIN 0.004    /* of the spread: between two nodes, about 55 to 45 is left alone */
#define COUNT_WEIGHT 0.25 /* of partitions against bytes and heat */
#define BYTES_WORTH (64.0 * 1024 * 1024) /* fewer in all weigh less */
#define HEAT_WORTH 100.0                 /* RU/s, the same */

static const char *const reason_names[] = {
    [REBALANCE_DRAIN] = "drain",
    [REBALANCE_PLACEMENT] = "placement",
    [REBALANCE_ROOM] = "room",
    [REBALANCE_BALANCE] = "balance",
};

const char *rebalance_reason_name(enum rebalance_reason reason)
{
    return reason_names[reason];
}

struct planner {
    const struct rebalance_node *nodes;
    size_t node_count;
    const struct rebalance_span *spans;
    size_t span_count;
    size_t place[NODES_MAX]; /* of a node by number; node_count: it is not among them */
    double part[NODES_MAX];  /* of the whole that a node should have, by index */
    double bytes[NODES_MAX], heat[NODES_MAX], count[NODES_MAX]; /* by index, now */
    double bytes_all, heat_all, count_all;
    double bytes_weight, heat_weight;
    double used[NODES_MAX];
    size_t *at;                     /* of each span: index of its node now */
    enum rebalance_reason *reasons; /* of each span that moved */
    bool *moved;
    size_t *order; /* spans in the order they first moved */
    size_t order_count;
    size_t steps; /* moves, those of one span more than once */
    struct rebalance_plan *plan;
};

/* --- Figures --------------------------------------------------------------------------------- */

/* By capacity where all that take have one, else evenly. A node that empties should have nothing.
 */
static void parts_settle(struct planner *p)
{
    double all = 0;
    size_t takers = 0;
    bool known = true;

    for (size_t i = 0; i < p->node_count; i++) {
        if (p->nodes[i].empties || !p->nodes[i].takes)
            continue;
        takers++;
        known = known && p->nodes[i].weighed;
        all += (double)p->nodes[i].capacity_bytes;
    }
    for (size_t i = 0; i < p->node_count; i++) {
        if (p->nodes[i].empties || !p->nodes[i].takes)
            p->part[i] = 0;
        else
            p->part[i] = known ? (double)p->nodes[i].capacity_bytes / all : 1.0 / (double)takers;
    }
}

static bool counts(const struct planner *p, size_t span)
{
    return p->at[span] < p->node_count;
}

static double worth(double all, double enough)
{
    return all >= enough ? 1 : all / enough;
}

static void figures_settle(struct planner *p)
{
    for (size_t i = 0; i < p->node_count; i++)
        p->used[i] = (double)p->nodes[i].used_bytes;
    for (size_t s = 0; s < p->span_count; s++) {
        size_t node = p->at[s];

        if (!counts(p, s))
            continue;
        p->bytes[node] += (double)p->spans[s].bytes;
        p->heat[node] += p->spans[s].heat;
        p->count[node]++;
        p->bytes_all += (double)p->spans[s].bytes;
        p->heat_all += p->spans[s].heat;
        p->count_all++;
    }
    p->bytes_weight = worth(p->bytes_all, BYTES_WORTH);
    p->heat_weight = worth(p->heat_all, HEAT_WORTH);
}

static double square(double x)
{
    return x * x;
}

/* What a node adds to the spread when it has so much. */
static double node_spread(const struct planner *p, size_t node, double bytes, double heat,
                          double count)
{
    double spread = 0;

    if (p->bytes_all > 0)
        spread += p->bytes_weight * square(bytes / p->bytes_all - p->part[node]);
    if (p->heat_all > 0)
        spread += p->heat_weight * square(heat / p->heat_all - p->part[node]);
    if (p->count_all > 0)
        spread += COUNT_WEIGHT * square(count / p->count_all - p->part[node]);
    return spread;
}

static double spread(const struct planner *p)
{
    double sum = 0;

    for (size_t i = 0; i < p->node_count; i++)
        sum += node_spread(p, i, p->bytes[i], p->heat[i], p->count[i]);
    return sum;
}

/* --- Moving ---------------------------------------------------------------------------------- */

/* Bytes a node may hold; 0: no limit is known. */
static double room_of(const struct rebalance_node *node)
{
    return (double)node->capacity_bytes * (double)(100 - node->reserve_percent) / 100;
}

static bool is_full(const struct planner *p, size_t node)
{
    return p->nodes[node].capacity_bytes && p->used[node] > room_of(&p->nodes[node]);
}

static bool may_go(const struct planner *p, size_t span, size_t node)
{
    const struct rebalance_node *to = &p->nodes[node];

    return node != p->at[span] && to->takes && !to->empties &&
           (p->spans[span].allowed >> to->number & 1) &&
           (!to->capacity_bytes || p->used[node] + (double)p->spans[span].bytes <= room_of(to));
}

static double gain_of(const struct planner *p, size_t span, size_t to)
{
    const struct rebalance_span *s = &p->spans[span];
    size_t from = p->at[span];
    double bytes = (double)s->bytes;
    double before = node_spread(p, from, p->bytes[from], p->heat[from], p->count[from]) +
                    node_spread(p, to, p->bytes[to], p->heat[to], p->count[to]);
    double after =
        node_spread(p, from, p->bytes[from] - bytes, p->heat[from] - s->heat, p->count[from] - 1) +
        node_spread(p, to, p->bytes[to] + bytes, p->heat[to] + s->heat, p->count[to] + 1);

    return before - after;
}

static void move(struct planner *p, size_t span, size_t to, enum rebalance_reason reason)
{
    const struct rebalance_span *s = &p->spans[span];
    size_t from = p->at[span];

    p->bytes[from] -= (double)s->bytes;
    p->heat[from] -= s->heat;
    p->count[from]--;
    p->used[from] -= (double)s->bytes;
    p->bytes[to] += (double)s->bytes;
    p->heat[to] += s->heat;
    p->count[to]++;
    p->used[to] += (double)s->bytes;
    p->at[span] = to;
    p->steps++;
    if (!p->moved[span]) {
        p->moved[span] = true;
        p->reasons[span] = reason;
        p->order[p->order_count++] = span;
    }
}

/* The node a span does most good on, or least harm; node_count: there is none. */
static size_t best_for(const struct planner *p, size_t span, double *ret_gain)
{
    size_t best = p->node_count;

    *ret_gain = 0;
    for (size_t node = 0; node < p->node_count; node++) {
        double gain;

        if (!may_go(p, span, node))
            continue;
        gain = gain_of(p, span, node);
        if (best == p->node_count || gain > *ret_gain) {
            best = node;
            *ret_gain = gain;
        }
    }
    return best;
}

/* --- What must ------------------------------------------------------------------------------- */

static void stuck_add(struct planner *p, size_t span, enum rebalance_reason reason)
{
    p->plan->stuck[p->plan->stuck_count++] =
        (struct rebalance_stuck){span, reason, p->spans[span].allowed == 0};
}

static bool must_move(const struct planner *p, size_t span, enum rebalance_reason *ret_reason)
{
    const struct rebalance_node *node = &p->nodes[p->at[span]];

    *ret_reason = node->empties ? REBALANCE_DRAIN : REBALANCE_PLACEMENT;
    return node->empties || !(p->spans[span].allowed >> node->number & 1);
}

/* The largest first: they are the hardest to find room for. */
static size_t next_must(const struct planner *p, const bool *seen)
{
    size_t best = p->span_count;
    enum rebalance_reason ignored;

    for (size_t s = 0; s < p->span_count; s++)
        if (!seen[s] && counts(p, s) && !p->spans[s].fixed && must_move(p, s, &ignored) &&
            (best == p->span_count || p->spans[s].bytes > p->spans[best].bytes))
            best = s;
    return best;
}

static void musts_move(struct planner *p, struct arena *arena)
{
    bool *seen = arena_alloc_zero(arena, p->span_count * sizeof *seen + 1);
    size_t span;

    while ((span = next_must(p, seen)) < p->span_count) {
        enum rebalance_reason reason;
        double gain;
        size_t to = best_for(p, span, &gain);

        seen[span] = true;
        (void)must_move(p, span, &reason);
        if (to < p->node_count)
            move(p, span, to, reason);
        else
            stuck_add(p, span, reason);
    }
}

/* The span that makes the most room on a full node and has somewhere to go. */
static size_t next_for_room(const struct planner *p, size_t node, size_t *ret_to)
{
    size_t best = p->span_count;

    for (size_t s = 0; s < p->span_count; s++) {
        double gain;
        size_t to;

        if (p->at[s] != node || p->spans[s].fixed || !p->spans[s].bytes ||
            (best < p->span_count && p->spans[s].bytes <= p->spans[best].bytes))
            continue;
        to = best_for(p, s, &gain);
        if (to < p->node_count) {
            best = s;
            *ret_to = to;
        }
    }
    return best;
}

static void room_make(struct planner *p)
{
    for (size_t node = 0; node < p->node_count; node++)
        while (is_full(p, node)) {
            size_t to = 0, span = next_for_room(p, node, &to);

            if (span == p->span_count)
                break;
            move(p, span, to, REBALANCE_ROOM);
        }
}

/* --- What helps ------------------------------------------------------------------------------ */

static void balance(struct planner *p)
{
    for (size_t round = 0; round < 4 * p->span_count + 1; round++) {
        size_t best = p->span_count, best_to = 0;
        double best_gain = GAIN_MIN;

        for (size_t s = 0; s < p->span_count; s++) {
            double gain;
            size_t to;

            if (!counts(p, s) || p->spans[s].fixed)
                continue;
            to = best_for(p, s, &gain);
            if (to < p->node_count && gain > best_gain) {
                best = s;
                best_to = to;
                best_gain = gain;
            }
        }
        if (best == p->span_count)
            return;
        move(p, best, best_to, REBALANCE_BALANCE);
    }
}

/* --- The whole ------------------------------------------------------------------------------- */

static void planner_init(struct planner *p, struct arena *arena)
{
    for (size_t i = 0; i < NODES_MAX; i++)
        p->place[i] = p->node_count;
    for (size_t i = 0; i < p->node_count; i++)
        p->place[p->nodes[i].number] = i;
    p->at = ARENA_ARRAY(arena, size_t, p->span_count + 1);
    p->order = ARENA_ARRAY(arena, size_t, p->span_count + 1);
    p->reasons = ARENA_ARRAY(arena, enum rebalance_reason, p->span_count + 1);
    p->moved = arena_alloc_zero(arena, p->span_count * sizeof *p->moved + 1);
    for (size_t s = 0; s < p->span_count; s++)
        p->at[s] = p->spans[s].node < NODES_MAX ? p->place[p->spans[s].node] : p->node_count;
    parts_settle(p);
    figures_settle(p);
}

static void moves_collect(struct planner *p)
{
    for (size_t i = 0; i < p->order_count; i++) {
        size_t span = p->order[i];
        uint32_t to = p->nodes[p->at[span]].number;

        if (to != p->spans[span].node)
            p->plan->moves[p->plan->count++] =
                (struct rebalance_move){span, p->spans[span].node, to, p->reasons[span]};
    }
}

void rebalance_plan(const struct rebalance_node *nodes, size_t node_count,
                    const struct rebalance_span *spans, size_t span_count, bool must_only,
                    struct arena *arena, struct rebalance_plan *ret_plan)
{
    struct planner p = {.nodes = nodes,
                        .node_count = node_count,
                        .spans = spans,
                        .span_count = span_count,
                        .plan = ret_plan};

    assert(node_count <= NODES_MAX);
    *ret_plan = (struct rebalance_plan){
        .moves = ARENA_ARRAY(arena, struct rebalance_move, span_count + 1),
        .stuck = ARENA_ARRAY(arena, struct rebalance_stuck, span_count + 1),
    };
    planner_init(&p, arena);
    ret_plan->spread_before = spread(&p);
    /* What found no room may find some once others have moved. */
    for (size_t pass = 0; pass <= span_count; pass++) {
        size_t steps = p.steps;

        ret_plan->stuck_count = 0;
        musts_move(&p, arena);
        room_make(&p);
        if (!must_only)
            balance(&p);
        if (p.steps == steps)
            break;
    }
    ret_plan->spread_after = spread(&p);
    moves_collect(&p);
}
