/* The score is a ratio of costs, so that a person can follow it: 1.3 means that 30 percent more
 * RU/s must be bought than if load were even and every request went to one place. Faults that RU do
 * not show (values that change, transactions that would be cut, values over the limits) multiply
 * it, and what is harder to live with counts a little more, so that of two equals the simpler wins.
 */
#include "advise/advise.h"

#include "document/json.h"

#include <math.h>
#include <stdlib.h>

static const double effort[ADVISE_KEY_KINDS] = {
    [ADVISE_PROPERTY] = 1.0,         [ADVISE_HIERARCHICAL] = 1.2,  [ADVISE_CONCATENATION] = 1.2,
    [ADVISE_COMPUTED_SUFFIX] = 1.25, [ADVISE_RANDOM_SUFFIX] = 1.3, [ADVISE_ONE_KEY] = 1.9,
};

#define GOOD_SCORE_MAX 2.5
#define GOOD_DAYS_MIN 365.0
#define GOOD_FULL_MAX 0.8 /* a value that is refused more does not grow: it has no days left */
#define MATTERS_RU 30000.0
#define MATTERS_BYTES 100e9

/* --- Scoring --------------------------------------------------------------------------------- */

static double score_of(const struct advise_key *key, const struct advise_figures *figures,
                       const struct advise_options *options)
{
    double partitions = key->kind == ADVISE_ONE_KEY ? 1 : options->partitions;
    double score = 1, storage = fmax(1, figures->storage_top * partitions);

    if (figures->ru_per_second_ideal > 0)
        score = fmax(1, figures->ru_per_second / figures->ru_per_second_ideal);
    score = fmax(score, storage) * effort[key->kind];
    score *= 1 + 0.25 * (1 - figures->one_logical);
    score *= 1 + 10 * figures->transactions_split + 4 * figures->missing;
    if (key->unnamed) /* it would spread, but nobody could ask for it */
        score *= 1.1;
    if (figures->changed > 0)
        score *= 10;
    if (figures->days_to_limit < GOOD_DAYS_MIN || figures->full > GOOD_FULL_MAX)
        score *= 5;
    if (figures->key_ru_per_second > (double)options->partition_ru_max)
        score *= figures->key_ru_per_second / (double)options->partition_ru_max;
    /* A counter spreads well here, but not where each shard or client counts by itself. */
    if (figures->counter_bare)
        score *= 1.3;
    return score;
}

static bool is_good(const struct advise_proposal *proposal, const struct advise_options *options)
{
    const struct advise_figures *figures = &proposal->figures;

    return proposal->score <= GOOD_SCORE_MAX && figures->changed == 0 &&
           figures->transactions_split == 0 && figures->missing < 0.05 &&
           figures->days_to_limit >= GOOD_DAYS_MIN && figures->full <= GOOD_FULL_MAX &&
           figures->key_ru_per_second <= (double)options->partition_ru_max;
}

/* --- Words ----------------------------------------------------------------------------------- */

/* What one value of a key is: all of its properties. */
static void value_append(const struct advise_workload *workload, const struct advise_key *key,
                         const advise_value *values, struct buf *out)
{
    if (key->suffixes)
        buf_append_text(out, "one number of ");
    for (size_t i = 0; i < key->path_count; i++) {
        const struct document_value *v =
            values ? advise_workload_value(workload, values[key->paths[i]]) : NULL;

        if (i)
            buf_append_text(out, " with ");
        if (!v || v->type == DOCUMENT_UNDEFINED)
            buf_append_text(out, "one without it");
        else
            document_json_write_value(v, out);
    }
}

/* In a sample that is small itself, values that hardly repeat say nothing of how many there are. */
static bool is_few(const struct advise_workload *workload, const struct advise_figures *f)
{
    size_t items;

    (void)advise_workload_items(workload, &items);
    return f->keys < ADVISE_FEW_VALUES && f->keys * 2 < items;
}

/* What becomes of it when there is more. */
static void growth_reason(const struct advise_figures *f, const struct advise_options *options,
                          struct buf *out)
{
    if (f->everywhere > 0)
        buf_printf(out,
                   "%.*f%% of requests must ask all partitions: %u here, %u at ten times the data, "
                   "%u at a hundred times, and each waits for the slowest. A request then costs "
                   "%.1f, %.1f and %.1f RU in the mean. ",
                   f->everywhere < 0.1, f->everywhere * 100, options->partitions,
                   options->partitions * advise_scales[1], options->partitions * advise_scales[2],
                   f->ru_each[0], f->ru_each[1], f->ru_each[2]);
    else if (f->ru_each[ADVISE_SCALES - 1] > 1.01 * f->ru_each[0])
        buf_printf(out,
                   "Large first values lie in more partitions as data grow: at ten and a hundred "
                   "times the data a request costs %.1f and %.1f RU in the mean instead of %.1f. ",
                   f->ru_each[1], f->ru_each[2], f->ru_each[0]);
    else if (f->ru_each[0] > 0)
        buf_append_text(out, "That stays so at ten and a hundred times the data, for the same RU "
                             "and in the same time. ");
}

static void reach_reason(const struct advise_figures *f, struct buf *out)
{
    if (f->one_logical >= 0.995)
        buf_printf(out, "%s request goes to one logical partition. ",
                   f->one_logical < 1 ? "Nearly every" : "Every");
    else if (f->one_physical > f->one_logical + 0.01)
        buf_printf(out, "%.0f%% of requests go to one logical partition, %.0f%% to one physical. ",
                   f->one_logical * 100, f->one_physical * 100);
    else
        buf_printf(out, "%.0f%% of requests go to one logical partition. ", f->one_logical * 100);
    if (f->fan_out > 0.01)
        buf_printf(out, "Asking several partitions takes %.0f%% of all RU. ", f->fan_out * 100);
}

static void spread_reason(const struct advise_workload *workload, const struct advise_key *key,
                          const struct advise_figures *f, struct buf *out)
{
    if (is_few(workload, f))
        buf_printf(out,
                   "It has few values, %llu in the sample: load is never on more partitions than "
                   "that, and it is even only with hundreds to thousands of them; the largest, ",
                   (unsigned long long)f->keys);
    else
        buf_printf(out, "The sample has %llu value%s; the largest, ", (unsigned long long)f->keys,
                   PLURAL(f->keys));
    value_append(workload, key, f->top_storage, out);
    buf_printf(out, ", holds %.1f%% of the bytes", f->storage_top * 100);
    if (f->ru_top > 0) {
        buf_append_text(out, ", the busiest, ");
        value_append(workload, key, f->top_ru, out);
        buf_printf(out, ", takes %.1f%% of the RU", f->ru_top * 100);
    }
    buf_append_text(out, ". ");
    if (f->moves)
        buf_printf(
            out,
            "At any one time %.0f%% of the load is on a single value, and that value changes "
            "with time: a hot spot that moves, so more partitions would not help. ",
            f->window_top * 100);
    else if (f->window_top > 0.25)
        buf_printf(out, "At any one time %.0f%% of the load is on a single value. ",
                   f->window_top * 100);
}

static void bytes_append(double bytes, struct buf *out)
{
    if (bytes >= 1e9)
        buf_printf(out, "%.0f GB", bytes / 1e9);
    else if (bytes >= 1e6)
        buf_printf(out, "%.0f MB", bytes / 1e6);
    else
        buf_printf(out, "%.0f KB", bytes / 1e3);
}

static void fault_reasons(const struct advise_figures *f, const struct advise_options *options,
                          struct buf *out)
{
    if (f->changed > 0)
        buf_printf(out,
                   "Its value was changed %.0f time%s; a partition key cannot change in place. ",
                   f->changed, PLURAL(f->changed));
    if (f->missing > 0)
        buf_printf(out, "%.1f%% of items have no value there and would share one partition. ",
                   f->missing * 100);
    if (f->transactions_split > 0)
        buf_printf(out, "%.0f%% of transactions would be cut in pieces. ",
                   f->transactions_split * 100);
    if (f->full > GOOD_FULL_MAX) {
        buf_printf(out, "One value holds %.0f%% of the limit of ", f->full * 100);
        bytes_append((double)options->logical_bytes_max, out);
        buf_append_text(out, ". ");
    } else if (f->days_to_limit < 10 * 365) {
        buf_append_text(out, "At this growth one value passes the limit of ");
        bytes_append((double)options->logical_bytes_max, out);
        buf_printf(out, " in %.0f days. ", f->days_to_limit);
    }
    if (f->key_ru_per_second > (double)options->partition_ru_max)
        buf_printf(out, "One value needs %.0f RU/s at its busiest, one partition gives %.0f. ",
                   f->key_ru_per_second, (double)options->partition_ru_max);
    if (f->grows && !f->counter)
        buf_append_text(out, "Its values grow with time: placed by range, all writes would go to "
                             "the last partition. ");
    if (f->counter)
        buf_append_text(out, "It is a number that counts up: where several servers or shards count "
                             "by themselves, they give the same numbers twice. ");
}

static void cost_reason(const struct advise_figures *f, struct buf *out)
{
    if (f->ru_per_second_ideal > 0)
        buf_printf(out, "The recorded load needs about %.0f RU/s with it; %.0f would be the least.",
                   f->ru_per_second, f->ru_per_second_ideal);
}

static struct slice text_take(struct arena *arena, struct buf *buf)
{
    struct slice text = arena_copy(arena, buf_slice(buf));

    while (text.len && text.data[text.len - 1] == ' ')
        text.len--;
    buf_clear(buf);
    return text;
}

static void proposal_words(const struct advise_workload *workload,
                           const struct advise_options *options, struct arena *arena,
                           struct advise_proposal *proposal)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    advise_key_describe(workload, &proposal->key, &out);
    proposal->name = text_take(arena, &out);
    advise_key_define(workload, &proposal->key, &out);
    proposal->definition = text_take(arena, &out);
    reach_reason(&proposal->figures, &out);
    if (proposal->key.kind != ADVISE_ONE_KEY) {
        growth_reason(&proposal->figures, options, &out);
        spread_reason(workload, &proposal->key, &proposal->figures, &out);
    } else {
        buf_append_text(&out, "Everything is in one logical partition: transactions may touch any "
                              "items, and the container can never grow beyond one partition. ");
    }
    if (proposal->dominated)
        buf_append_text(&out,
                        "No transaction needs that, and another key is named by every request "
                        "too and can grow. ");
    fault_reasons(&proposal->figures, options, &out);
    cost_reason(&proposal->figures, &out);
    proposal->reason = text_take(arena, &out);
}

/* --- The report ------------------------------------------------------------------------------ */

static struct advise_proposal proposal_make(const struct advise_workload *workload,
                                            const struct advise_key *key,
                                            const struct advise_options *options)
{
    struct advise_proposal proposal = {.key = *key};
    struct advise_options own = *options;

    if (key->kind == ADVISE_ONE_KEY) {
        own.partitions = 1;
        own.ru_per_second_ideal = 0; /* another */
    }
    advise_evaluate(workload, key, &own, &proposal.figures);
    proposal.score = score_of(key, &proposal.figures, &own);
    proposal.good = is_good(&proposal, &own);
    return proposal;
}

/* Where a good key exists whose needs do not outgrow the data, or less, the others' do count. One
 * key for all is no such key: it cannot grow. */
static double growth_least(const struct advise_proposal *proposals, size_t count)
{
    double least = HUGE_VAL;

    for (size_t i = 0; i < count; i++)
        if (proposals[i].good && proposals[i].key.kind != ADVISE_ONE_KEY)
            least = fmin(least, proposals[i].figures.growth);
    return least;
}

static void growth_judge(struct advise_proposal *proposal, double least)
{
    if (proposal->figures.growth <= least)
        return;
    proposal->score *= proposal->figures.growth / least;
    proposal->good &= proposal->score <= GOOD_SCORE_MAX;
}

/* Does every request name it, without anything that speaks against it but how it spreads? Then it
 * is as good as one key for all items at any size, for that puts even more in one place. */
static bool is_sound(const struct advise_figures *figures)
{
    return figures->one_logical >= 0.99 && figures->changed == 0 &&
           figures->transactions_split == 0 && figures->missing < 0.05;
}

/* One key for all has no merit where another key does the same and can grow. */
static void one_key_judge(struct advise_proposal *proposals, size_t count)
{
    double sound = HUGE_VAL;

    for (size_t i = 0; i < count; i++)
        if (proposals[i].key.kind != ADVISE_ONE_KEY && is_sound(&proposals[i].figures))
            sound = fmin(sound, proposals[i].score);
    for (size_t i = 0; i < count && sound < HUGE_VAL; i++)
        if (proposals[i].key.kind == ADVISE_ONE_KEY) {
            proposals[i].score = fmax(proposals[i].score, sound * effort[ADVISE_ONE_KEY]);
            proposals[i].good = false;
            proposals[i].dominated = true;
        }
}

static int by_score(const void *a, const void *b)
{
    const struct advise_proposal *x = a, *y = b;

    if (x->good != y->good)
        return x->good ? -1 : 1;
    return (x->score > y->score) - (x->score < y->score);
}

/* Of proposals of one kind and first path that differ in the number of suffixes only, the best says
 * enough. */
static bool is_variant(const struct advise_key *a, const struct advise_key *b)
{
    return a->kind == b->kind && a->suffixes && a->paths[0] == b->paths[0] &&
           (a->kind != ADVISE_COMPUTED_SUFFIX || a->hashed == b->hashed);
}

static size_t best_keep(struct advise_proposal *proposals, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count && kept < ADVISE_PROPOSALS_MAX; i++) {
        bool known = false;

        for (size_t j = 0; j < kept; j++)
            known |= is_variant(&proposals[j].key, &proposals[i].key);
        if (!known)
            proposals[kept++] = proposals[i];
    }
    return kept;
}

static bool is_kept(const struct advise_report *report)
{
    return report->recommended && report->has_current && report->current.good &&
           report->current.score <= report->proposals[0].score * 1.1;
}

static void too_little_write(const struct advise_workload *workload,
                             const struct advise_report *report, struct buf *out)
{
    size_t items, operations;

    (void)advise_workload_items(workload, &items);
    (void)advise_workload_operations(workload, &operations);
    buf_printf(
        out,
        "There is too little to judge by: %zu document%s and %zu operation%s. Which key is "
        "right depends on what is asked: use the container for a while, until there are at "
        "least %d documents and %d operations, better some hundreds of each, and ask again.%s",
        items, PLURAL(items), operations, PLURAL(operations), ADVISE_DOCUMENTS_MIN,
        ADVISE_RECORDED_MIN, report->count ? " What follows is a guess." : "");
}

static void summary_write(const struct advise_workload *workload, struct advise_report *report,
                          struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    const struct advise_proposal *best = &report->proposals[0];

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!report->enough) {
        too_little_write(workload, report, &out);
        report->summary = text_take(arena, &out);
        return;
    }
    if (!report->recommended && !report->matters && report->has_current &&
        is_sound(&report->current.figures)) {
        buf_append_text(&out, "Keep ");
        buf_append_slice(&out, report->current.name);
        buf_append_text(&out,
                        " for now: every request names it. No key found would spread the load "
                        "over many partitions, should there ever be that much of it.");
    } else if (!report->recommended) {
        buf_append_text(&out, "No key can be recommended. ");
        if (report->count) {
            buf_append_text(&out, "The least bad is ");
            buf_append_slice(&out, best->name);
            buf_append_text(&out, ": ");
            buf_append_slice(&out, best->reason);
        } else {
            buf_append_text(&out, "No property is a scalar that most items have.");
        }
    } else if (is_kept(report)) {
        buf_append_text(&out, "Keep ");
        buf_append_slice(&out, report->current.name);
        buf_append_text(&out, ": nothing found is clearly better.");
    } else {
        buf_append_text(&out, "Take ");
        buf_append_slice(&out, best->name);
        buf_append_text(&out, ".");
        if (is_few(workload, &best->figures) && best->key.kind != ADVISE_ONE_KEY)
            buf_printf(&out,
                       " It has few values (%llu): it will do as long as there are many more "
                       "of them than partitions.",
                       (unsigned long long)best->figures.keys);
    }
    if (!report->matters)
        buf_printf(&out,
                   " At this size the key hardly matters yet: it does past %.0f RU/s or %.0f GB.",
                   MATTERS_RU, MATTERS_BYTES / 1e9);
    report->summary = text_take(arena, &out);
}

/* Where no single key serves all queries: views for the rest. One key for all needs none, but it
 * cannot grow: they are told beside the next best. */
static void tables_find(const struct advise_workload *workload, struct advise_report *report,
                        const struct advise_options *options, struct arena *arena)
{
    const struct advise_key *key = NULL;

    for (size_t i = 0; report->recommended && !is_kept(report) && !key && i < report->count; i++)
        if (report->proposals[i].good && report->proposals[i].key.kind != ADVISE_ONE_KEY)
            key = &report->proposals[i].key;
    if (!key && report->has_current)
        key = &report->current.key;
    if (report->enough && key)
        report->table_count = advise_tables_find(workload, key, options, arena, &report->tables);
}

struct advise_report advise_report_make(const struct advise_workload *workload,
                                        const struct advise_options *options, struct arena *arena)
{
    struct advise_options full = advise_options_complete(options);
    struct advise_report report = {.bytes = (double)advise_workload_bytes_seen(workload)};
    struct advise_key *keys;
    size_t items, operations, count;
    double growth;

    (void)advise_workload_items(workload, &items);
    (void)advise_workload_operations(workload, &operations);
    if (items < 2) {
        report.proposals = ARENA_NEW(arena, struct advise_proposal);
        summary_write(workload, &report, arena);
        return report;
    }
    full.ru_per_second_ideal = advise_ideal(workload, &full);
    count = advise_candidates(workload, arena, &keys);
    report.proposals = ARENA_ARRAY(arena, struct advise_proposal, count);
    for (size_t i = 0; i < count; i++)
        report.proposals[i] = proposal_make(workload, &keys[i], &full);
    growth = growth_least(report.proposals, count);
    for (size_t i = 0; i < count; i++)
        growth_judge(&report.proposals[i], growth);
    one_key_judge(report.proposals, count);
    qsort(report.proposals, count, sizeof *report.proposals, by_score);
    report.count = best_keep(report.proposals, count);
    for (size_t i = 0; i < report.count; i++)
        proposal_words(workload, &full, arena, &report.proposals[i]);
    if (full.current) {
        report.has_current = true;
        report.current = proposal_make(workload, full.current, &full);
        growth_judge(&report.current, growth);
        proposal_words(workload, &full, arena, &report.current);
        report.ru_per_second = report.current.figures.ru_per_second;
    }
    if (report.count)
        report.ru_per_second =
            fmax(report.ru_per_second, report.proposals[0].figures.ru_per_second);
    report.enough = items >= ADVISE_DOCUMENTS_MIN && operations >= ADVISE_RECORDED_MIN;
    report.recommended = report.enough && report.count && report.proposals[0].good;
    report.matters = report.ru_per_second > MATTERS_RU || report.bytes > MATTERS_BYTES;
    summary_write(workload, &report, arena);
    tables_find(workload, &report, &full, arena);
    if (report.recommended && !is_kept(&report))
        report.rekey = advise_key_command(workload, &report.proposals[0].key, &full.target, arena);
    return report;
}
