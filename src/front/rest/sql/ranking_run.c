#include "front/rest/sql/ranking_run.h"

#include "base/bytes.h"
#include "query/access/access.h"
#include "query/output.h"
#include "query/value/value.h"
#include "throughput/cost.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

enum {
    RANK_CONSTANT = 60,
    MEMORY_MAX = 64 * 1024 * 1024,
    CONTINUATION_BYTES = 16, /* fingerprint, rows given */
    ROWS_DEFAULT = 100,
};

struct ranked {
    struct slice rid;
    struct document_value row;
    double fused;
    size_t came; /* as the how manyth */
};

struct ranking {
    const struct sql_ranking_run *run;
    const struct sql_ranking *of;
    const struct query_request *request;
    struct arena *arena; /* of this page */
    size_t memory_max, held;
    struct query_page page; /* figures of all queries together */
    struct sql_ranking_sums sums;
    struct ranked *rows;
    double *scores; /* of row i those from i * of->count on */
    size_t count, room;
    size_t came;     /* of the present query */
    uint64_t given;  /* on the pages before */
    uint32_t *slots; /* rows by their _rid, one more than the number; 0: none */
    size_t slot_count;
};

/* --- Queries of it -----------------------------------------------------------------------------
 */

static void figures_add(struct query_page *sum, const struct query_page *page)
{
    sum->charge_cru = cost_add(sum->charge_cru, page->charge_cru);
    query_metrics_add(&sum->metrics, &page->metrics);
    if (page->explain.len)
        sum->explain = page->explain;
    if (page->missing_count) {
        sum->missing = page->missing;
        sum->missing_count = page->missing_count;
    }
}

/* A text that was made here: what is wrong with it was wrong with the query. */
static bool query_run_whole(struct ranking *ranking, struct slice text,
                            struct query_request *request, struct error *err)
{
    struct sql_prepared prepared;
    struct sql_error fault = {0};
    struct metered_call *call = request->call;

    if (!sql_prepare(text, ranking->run->parameters, ranking->run->options, ranking->arena,
                     &prepared, &fault, err))
        return false;
    prepared.plan.fingerprint ^= ranking->run->prepared->plan.fingerprint;
    request->continuation = SLICE_NONE;
    do {
        struct query_page page = {0};
        bool done =
            ranking->run->head.page(ranking->run->head.self, &prepared.plan, request, &page, err);

        if (!done) /* what a refused or broken query costs is in the call */
            page.charge_cru = call ? call->charge_cru : 0;
        figures_add(&ranking->page, &page);
        if (call)
            call->charge_cru = ranking->page.charge_cru;
        if (!done)
            return false;
        request->continuation = page.continuation;
    } while (request->continuation.len);
    return true;
}

static struct query_request request_for(const struct ranking *ranking,
                                        bool (*row)(void *self, const struct document_value *value,
                                                    struct error *err))
{
    struct query_request request = *ranking->request;

    request.limits.rows_max = SQL_RANKING_ROWS_MAX;
    request.limits.bytes_max = ranking->memory_max;
    request.limits.rendered = NULL;
    request.order_unindexed = true;
    request.row = row;
    request.self = (void *)ranking;
    return request;
}

/* --- Sums --------------------------------------------------------------------------------------
 */

static bool sum_find(struct slice object, struct slice name, uint64_t *ret_sum)
{
    struct document_value value;
    int64_t number;

    if (!document_find(object, name, &value) || !document_to_int64(&value, &number) || number < 0)
        return false;
    *ret_sum = (uint64_t)number;
    return true;
}

static bool text_sums_take(struct slice object, struct sql_ranking_sums *sums, size_t text)
{
    struct document_value hits;
    struct document_iter iter;
    int64_t number;

    if (!sum_find(object, SLICE("totalWordCount"), &sums->texts[text].words) ||
        !document_find(object, SLICE("hitCounts"), &hits) || hits.type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, hits.document);
    for (size_t i = 0; i < SQL_RANKING_PHRASES_MAX && document_iter_next(&iter); i++) {
        if (!document_to_int64(&iter.value, &number))
            return false;
        sums->texts[text].hits[i] = (uint64_t)number;
    }
    return true;
}

static bool sums_take(void *self, const struct document_value *value, struct error *err UNUSED)
{
    struct ranking *ranking = self;
    struct document_value list;
    struct document_iter iter;
    bool good = value->type == DOCUMENT_OBJECT &&
                sum_find(value->document, SLICE("documentCount"), &ranking->sums.documents) &&
                document_find(value->document, SLICE("fullTextStatistics"), &list) &&
                list.type == DOCUMENT_ARRAY;

    if (good)
        document_iter_init(&iter, list.document);
    for (size_t i = 0; good && i < ranking->of->texts; i++)
        good = document_iter_next(&iter) && iter.value.type == DOCUMENT_OBJECT &&
               text_sums_take(iter.value.document, &ranking->sums, i);
    assert(good); /* the query is ours */
    return true;
}

static bool is_indexed(const struct ranking *ranking, const struct sql_ranking_score *score)
{
    return score->phrases && query_text_at(ranking->request->space, &score->path);
}

static bool sums_find(struct ranking *ranking, struct error *err)
{
    struct query_request request = request_for(ranking, sums_take);
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!ranking->of->texts)
        return true;
    request.scope = ranking->run->all;
    request.explain = false;
    sql_ranking_statistics(ranking->of, &text);
    return query_run_whole(ranking, buf_slice(&text), &request, err);
}

/* --- Rows --------------------------------------------------------------------------------------
 */

static bool memory_take(struct ranking *ranking, size_t bytes, struct error *err)
{
    struct memory_meter *meter = ranking->request->limits.memory;

    if (ranking->held + bytes > ranking->memory_max)
        return error_set(err, ERROR_QUERY_LIMIT,
                         "the rows to be ranked take more than %zu bytes: ask for fewer, or select "
                         "less of them",
                         ranking->memory_max);
    if (!memory_meter_change(meter, ranking->held, ranking->held + bytes))
        return error_set(err, ERROR_MEMORY_FULL, "there is no memory for the rows to be ranked");
    ranking->held += bytes;
    return true;
}

static uint32_t *slot_of(const struct ranking *ranking, struct slice rid)
{
    size_t at = XXH3_64bits(rid.data, rid.len) % ranking->slot_count;

    while (ranking->slots[at] && !slice_equal(ranking->rows[ranking->slots[at] - 1].rid, rid))
        at = (at + 1) % ranking->slot_count;
    return &ranking->slots[at];
}

static bool room_make(struct ranking *ranking, struct error *err)
{
    size_t count = ranking->of->count;

    ranking->room = sql_ranking_rows(ranking->of) * count;
    ranking->slot_count = ranking->room * 2 + 1;
    if (!memory_take(ranking,
                     ranking->room * (sizeof *ranking->rows + count * sizeof *ranking->scores) +
                         ranking->slot_count * sizeof *ranking->slots,
                     err))
        return false;
    ranking->rows = ARENA_ARRAY(ranking->arena, struct ranked, ranking->room + 1);
    ranking->scores = ARENA_ARRAY(ranking->arena, double, ranking->room *count + 1);
    ranking->slots = ARENA_ARRAY(ranking->arena, uint32_t, ranking->slot_count);
    memset(ranking->slots, 0, ranking->slot_count * sizeof *ranking->slots);
    return true;
}

/* NaN, which rows leave out, is no score. */
static void scores_take(const struct ranking *ranking, struct slice list, double *scores)
{
    struct document_iter iter;

    document_iter_init(&iter, list);
    for (size_t i = 0; i < ranking->of->count; i++)
        if (!document_iter_next(&iter) || !document_to_double(&iter.value, &scores[i]))
            scores[i] = ranking->of->scores[i].ascending ? INFINITY : -INFINITY;
}

static uint64_t rows_max(const struct ranking *ranking)
{
    return ranking->request->limits.rows_max ? ranking->request->limits.rows_max : ROWS_DEFAULT;
}

/* Rows of one score come as they will be given: of those that are not for this page it is enough to
 * know that they are there. */
static bool is_elsewhere(const struct ranking *ranking)
{
    uint64_t begin = ranking->of->skip + ranking->given;

    return ranking->of->count == 1 &&
           (ranking->count < begin || ranking->count > begin + rows_max(ranking));
}

static bool row_take(void *self, const struct document_value *value, struct error *err)
{
    struct ranking *ranking = self;
    struct document_value rid, payload, row, scores;
    struct slice copy;
    uint32_t *slot;
    bool good =
        value->type == DOCUMENT_OBJECT && document_find(value->document, SLICE("_rid"), &rid) &&
        rid.type == DOCUMENT_STRING && document_find(value->document, SLICE("payload"), &payload) &&
        payload.type == DOCUMENT_OBJECT &&
        document_find(payload.document, SLICE("componentScores"), &scores) &&
        scores.type == DOCUMENT_ARRAY;

    assert(good); /* the query is ours */
    ranking->came++;
    slot = slot_of(ranking, rid.text);
    if (*slot || ranking->count == ranking->room)
        return true;
    if (is_elsewhere(ranking)) {
        ranking->rows[ranking->count++] = (struct ranked){.row = document_undefined()};
        return true;
    }
    if (!memory_take(ranking, rid.text.len + payload.document.len, err))
        return false;
    copy = arena_copy(ranking->arena, payload.document);
    if (!document_find(copy, SLICE("payload"), &row))
        row = document_undefined(); /* a row of nothing but what is undefined: none */
    scores_take(ranking, scores.document, &ranking->scores[ranking->count * ranking->of->count]);
    ranking->rows[ranking->count] = (struct ranked){
        .rid = arena_copy(ranking->arena, rid.text), .row = row, .came = ranking->count};
    *slot = (uint32_t)++ranking->count;
    return true;
}

static bool part_run(struct ranking *ranking, size_t component, enum sql_ranking_part part,
                     uint32_t rows, struct error *err)
{
    struct query_request request = request_for(ranking, row_take);
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    ranking->came = 0;
    if (part == SQL_RANKING_REST)
        request.explain = false; /* of what was looked for first */
    sql_ranking_component(
        ranking->of,
        &(struct sql_ranking_asked){
            .component = component, .part = part, .rows = rows, .sums = &ranking->sums},
        &text);
    if (buf_overflowed(&text))
        return error_set(err, ERROR_TOO_LARGE, "the query is too long to be ranked");
    return query_run_whole(ranking, buf_slice(&text), &request, err);
}

/* With an index, items that have no phrase are read only where those that have one are too few. */
static bool component_run(struct ranking *ranking, size_t component, struct error *err)
{
    const struct sql_ranking_score *score = &ranking->of->scores[component];
    uint32_t rows = sql_ranking_rows(ranking->of);

    if (!is_indexed(ranking, score) || score->ascending)
        return part_run(ranking, component, SQL_RANKING_ALL, rows, err);
    if (!part_run(ranking, component, SQL_RANKING_FOUND, rows, err))
        return false;
    return ranking->came >= rows ||
           part_run(ranking, component, SQL_RANKING_REST, rows - (uint32_t)ranking->came, err);
}

static bool components_run(struct ranking *ranking, struct error *err)
{
    for (size_t i = 0; i < ranking->of->count; i++)
        if (!component_run(ranking, i, err))
            return false;
    return true;
}

/* --- Ranks -------------------------------------------------------------------------------------
 */

struct scored {
    double score;
    uint32_t row;
};

static int by_score(const void *a, const void *b)
{
    const struct scored *x = a, *y = b;

    return (x->score < y->score) - (x->score > y->score);
}

static int by_fused(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->fused != y->fused)
        return x->fused < y->fused ? 1 : -1;
    return (x->came > y->came) - (x->came < y->came);
}

/* Of one component: the best first, equal scores have one rank. */
static void component_fuse(struct ranking *ranking, size_t component, struct scored *list)
{
    const struct sql_ranking_score *score = &ranking->of->scores[component];
    size_t rank = 1;

    for (size_t i = 0; i < ranking->count; i++) {
        double number = ranking->scores[i * ranking->of->count + component];

        list[i] = (struct scored){score->ascending ? -number : number, (uint32_t)i};
    }
    qsort(list, ranking->count, sizeof *list, by_score);
    for (size_t i = 0; i < ranking->count; i++) {
        rank += i > 0 && list[i].score != list[i - 1].score;
        ranking->rows[list[i].row].fused += score->weight * (1 / (double)(RANK_CONSTANT + rank));
    }
}

static void rows_fuse(struct ranking *ranking)
{
    struct scored *list;

    if (ranking->of->count == 1 || !ranking->count)
        return; /* they came in order */
    list = ARENA_ARRAY(ranking->arena, struct scored, ranking->count);
    for (size_t i = 0; i < ranking->of->count; i++)
        component_fuse(ranking, i, list);
    qsort(ranking->rows, ranking->count, sizeof *ranking->rows, by_fused);
}

/* --- Pages -------------------------------------------------------------------------------------
 */

static bool given_read(struct ranking *ranking, struct error *err)
{
    struct slice from = ranking->request->continuation;

    if (!from.len)
        return true;
    if (from.len != CONTINUATION_BYTES ||
        bytes_get_be64(from.data) != ranking->run->prepared->plan.fingerprint)
        return error_set(err, ERROR_BAD_REQUEST, "the continuation is not one of this query");
    ranking->given = MIN(bytes_get_be64(from.data + 8), (uint64_t)SQL_RANKING_ROWS_MAX);
    return true;
}

static bool page_is_full(const struct ranking *ranking, uint64_t rows, uint64_t bytes)
{
    const struct query_page_limits *limits = &ranking->request->limits;
    uint64_t bytes_max = limits->bytes_max ? limits->bytes_max : 4 * 1024 * 1024;

    return rows && (rows >= rows_max(ranking) || bytes >= bytes_max ||
                    (limits->rendered && limits->rendered->len >= bytes_max));
}

static bool rows_give(struct ranking *ranking, struct error *err)
{
    size_t from = MIN((size_t)(ranking->of->skip + ranking->given), ranking->count);
    size_t end = MIN((size_t)ranking->of->skip + ranking->of->take, ranking->count);
    struct query_metrics *metrics = &ranking->page.metrics;
    CLEANUP(buf_done) struct buf bytes;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    metrics->rows = metrics->row_bytes = 0;
    for (size_t i = from; i < end; i++) {
        const struct document_value *row = &ranking->rows[i].row;

        if (page_is_full(ranking, metrics->rows, metrics->row_bytes)) {
            buf_append_be64(&bytes, ranking->run->prepared->plan.fingerprint);
            buf_append_be64(&bytes, i - ranking->of->skip);
            ranking->page.continuation = arena_copy(ranking->request->arena, buf_slice(&bytes));
            break;
        }
        if (row->type == DOCUMENT_UNDEFINED)
            continue;
        if (!ranking->request->row(ranking->request->self, row, err))
            return false;
        metrics->rows++;
        metrics->row_bytes += query_value_bytes(row);
    }
    return true;
}

static bool rank(struct ranking *ranking, struct error *err)
{
    if (!given_read(ranking, err) || !room_make(ranking, err) || !sums_find(ranking, err) ||
        (sql_ranking_rows(ranking->of) && !components_run(ranking, err)))
        return false;
    rows_fuse(ranking);
    return rows_give(ranking, err);
}

bool sql_ranking_page(const struct sql_ranking_run *run, const struct query_request *request,
                      struct query_page *ret_page, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct ranking ranking = {.run = run,
                              .of = run->prepared->ranking,
                              .request = request,
                              .arena = arena,
                              .memory_max = request->limits.memory_max ? request->limits.memory_max
                                                                       : (size_t)MEMORY_MAX};
    bool done = rank(&ranking, err);

    memory_meter_set(request->limits.memory, ranking.held, 0);
    if (done)
        *ret_page = ranking.page;
    return done;
}
