/* What has to see every row before it gives one can see them by several threads: the spans are
 * dealt out in runs of neighbours, each part takes its own rows, and the parts are merged in the
 * order of the spans, so that nothing depends on how many there were. Threads share no snapshot, so
 * those spans that one key is spread over go to one of them: a logical partition is read at one
 * moment.
 *
 * All spans are admitted and opened before, by the page's own thread; a part touches none but its
 * own. A part cannot pause, so this is only for what is soon done; and it is not worth its cost for
 * a few items. */
#include "query/run/run_private.h"

enum {
    PARTS_MAX = 64,
    ITEMS_MIN = 2000,
    ITEMS_MIN_TERMS = 200000, /* where entries of terms lead to a few of them */
    ITEMS_MAX = 1000000
};

struct part {
    struct query_run_state run;
    struct arena *arena;
    bool done;
    struct error err;
};

struct parts {
    const struct query_taking *taking;
    struct part *list;
    size_t count;
};

/* --- Is it worth it? -------------------------------------------------------------------------- */

static size_t spans_first(const struct query_run_state *run, size_t *ret_count)
{
    const struct query_target *last = &run->access.targets[run->access.target_count - 1];
    struct partition_range all = {run->access.targets[0].range.min, last->range.max};
    size_t first;

    *ret_count = query_spans_overlap(&run->spans, all, &first);
    return first;
}

/* Parts have about as many spans each: where each begins, behind the first span of all, and the end
 * of the last. */
struct dealt {
    size_t begins[PARTS_MAX + 1];
    size_t count;
};

static void spans_deal(const struct query_run_state *run, size_t first, size_t count,
                       struct dealt *ret_dealt)
{
    size_t wanted = MIN(MIN(count, run->request->executor->width), (size_t)PARTS_MAX);

    ret_dealt->count = 0;
    for (size_t i = 0; i < wanted; i++) {
        size_t begin = i * count / wanted;

        while (i && begin < count &&
               run->spans.list[first + begin].span->cut == PARTITION_CUT_SPREAD)
            begin++;
        if (!i || (begin < count && begin > ret_dealt->begins[ret_dealt->count - 1]))
            ret_dealt->begins[ret_dealt->count++] = begin;
    }
    ret_dealt->begins[ret_dealt->count] = count;
}

bool query_parallel_wanted(struct query_run_state *run, bool *ret_wanted, struct error *err)
{
    const struct query_executor *executor = run->request->executor;
    struct dealt dealt;
    uint64_t items = 0;
    size_t first, count;

    *ret_wanted = false;
    if (!executor || executor->width < 2 || !run->feed || run->request->udf.call ||
        !run->access.target_count || run->access.kind == QUERY_ACCESS_POINT)
        return true;
    first = spans_first(run, &count);
    spans_deal(run, first, count, &dealt);
    if (dealt.count < 2)
        return true;
    if (!query_targets_count(run, ITEMS_MAX, &items, err))
        return false;
    *ret_wanted =
        items >= (run->access.index && run->access.index->terms ? ITEMS_MIN_TERMS : ITEMS_MIN) &&
        items <= ITEMS_MAX;
    return true;
}

/* --- Parts ----------------------------------------------------------------------------------- */

/* The targets within a range, in the part's arena. */
static void access_narrow(struct query_access *access, struct partition_range range,
                          struct arena *arena)
{
    struct query_target *list = ARENA_ARRAY(arena, struct query_target, access->target_count);
    size_t kept = 0;

    for (size_t i = 0; i < access->target_count; i++) {
        struct query_target target = access->targets[i];

        if (slice_compare(target.range.min, range.min) < 0)
            target.range.min = range.min;
        if (slice_compare(target.range.max, range.max) > 0)
            target.range.max = range.max;
        if (slice_compare(target.range.min, target.range.max) < 0)
            list[kept++] = target;
    }
    access->targets = list;
    access->target_count = kept;
}

static void part_open(struct part *part, const struct query_run_state *run,
                      struct partition_range range, const struct query_taking *taking,
                      size_t part_count)
{
    struct query_hits_options options = {.order = QUERY_HITS_ANY,
                                         .load = run->feed_loads,
                                         .runs = run->feed_runs,
                                         .timed = run->request->timed};
    struct query_position nowhere = {0};

    part->arena = arena_new();
    part->run = *run;
    part->run.arena = part->arena;
    part->run.hits = part->run.looked_at = part->run.matched = 0;
    query_run_context_init(&part->run);
    part->run.context.now_ticks = run->context.now_ticks;
    part->run.context.rendered = NULL; /* the page's own context counts it */
    buf_init(&part->run.place_bytes, BUF_DEFAULT_MAX);
    access_narrow(&part->run.access, range, part->arena);
    part->run.feed = query_hits_new(run->spans_owner, &part->run.access, &options, &nowhere);
    part->run.taking = taking->open(&part->run, part_count);
}

static void part_close(struct part *part, const struct query_taking *taking)
{
    taking->close(part->run.taking);
    query_run_done(&part->run);
    arena_free(part->arena);
}

static void part_run(void *context, size_t number)
{
    struct parts *parts = context;
    struct part *part = &parts->list[number];
    bool ended;

    part->done = query_rows_take(&part->run, parts->taking->taker, false, &ended, &part->err);
}

static bool spans_admit(struct query_run_state *run, size_t first, const struct dealt *dealt,
                        struct error *err)
{
    for (size_t part = 0; part < dealt->count; part++)
        for (size_t i = dealt->begins[part]; i < dealt->begins[part + 1]; i++)
            if (!query_spans_admit(&run->spans, first + i, run->from.begun, err) ||
                !query_spans_hand_over(&run->spans, first + i, (uint32_t)part + 1, err))
                return false;
    return true;
}

static bool parts_merge(struct query_run_state *run, struct parts *parts, struct error *err)
{
    for (size_t i = 0; i < parts->count; i++) {
        struct part *part = &parts->list[i];

        if (!part->done) {
            *err = part->err;
            return false;
        }
        run->hits += part->run.hits;
        run->matched += part->run.matched;
        run->context.work += part->run.context.work;
        run->context.joined_items += part->run.context.joined_items;
        run->context.joined_bytes += part->run.context.joined_bytes;
        if (!parts->taking->merge(run->taking, part->run.taking, err))
            return false;
    }
    return true;
}

bool query_parallel_take(struct query_run_state *run, const struct query_taking *taking,
                         struct error *err)
{
    const struct query_executor *executor = run->request->executor;
    size_t count, first = spans_first(run, &count);
    struct parts parts = {.taking = taking};
    struct dealt dealt;
    bool merged;

    spans_deal(run, first, count, &dealt);
    if (!spans_admit(run, first, &dealt, err))
        return false;
    parts.count = dealt.count;
    parts.list = memory_alloc_zero(memory_array_size(parts.count, sizeof *parts.list));
    for (size_t i = 0; i < parts.count; i++) {
        size_t from = first + dealt.begins[i], to = first + dealt.begins[i + 1];
        struct partition_range range = {run->spans.list[from].span->min,
                                        run->spans.list[to - 1].span->max};

        part_open(&parts.list[i], run, range, taking, parts.count);
    }
    executor->run(executor->self, parts.count, part_run, &parts);
    merged = parts_merge(run, &parts, err);
    for (size_t i = 0; i < parts.count; i++)
        part_close(&parts.list[i], taking);
    memory_free(parts.list);
    return merged;
}
