/* Queries are put together as text: that is what plans hand out, and what the server parses again
 * is a few microseconds beside what it then runs. */
#include "front/rest/sql/ranking.h"

#include "document/json.h"
#include "front/rest/sql/functions.h"
#include "front/rest/sql/gateway_plan.h"
#include "front/rest/sql/print.h"
#include "front/rest/sql/resolve.h"

#include <math.h>

#define SUM_PLACEHOLDER "{documentdb-formattablehybridsearchquery-"

/* --- Reading -----------------------------------------------------------------------------------
 */

/* A literal or the value of a parameter; NULL: it is neither. */
static const struct document_value *constant_of(const struct sql_expr *expr)
{
    if (expr->kind == SQL_EXPR_PARAMETER)
        return expr->parameter.value;
    return expr->kind == SQL_EXPR_LITERAL ? &expr->literal : NULL;
}

static bool is_text(const struct sql_expr *expr)
{
    const struct document_value *value = constant_of(expr);

    return value && value->type == DOCUMENT_STRING;
}

static bool phrases_fault(const struct sql_expr *call, const struct sql_report *report)
{
    return sql_report_at(report, "", call->span,
                         "The FullTextScore function requires a property path and one to %d search "
                         "terms that are constant strings.",
                         SQL_RANKING_PHRASES_MAX);
}

/* FullTextScore(path, [phrase, ...]) is an earlier form of FullTextScore(path, phrase, ...). */
static bool is_listed(const struct sql_expr *call)
{
    const struct sql_expr *second = call->call.arguments.items[1];
    const struct document_value *value = constant_of(second);

    return call->call.arguments.count == 2 &&
           (second->kind == SQL_EXPR_ARRAY || (value && value->type == DOCUMENT_ARRAY));
}

static bool phrases_count(const struct sql_expr *call, size_t *ret_count)
{
    const struct sql_expr *list = call->call.arguments.items[1];
    const struct document_value *value = constant_of(list);
    struct document_iter iter;

    *ret_count = 0;
    if (is_listed(call) && value) {
        document_iter_init(&iter, value->document);
        while (document_iter_next(&iter) && iter.value.type == DOCUMENT_STRING)
            ++*ret_count;
        return *ret_count == document_count(value->document);
    }
    if (is_listed(call)) {
        while (*ret_count < list->items.count && is_text(list->items.items[*ret_count]))
            ++*ret_count;
        return *ret_count == list->items.count;
    }
    while (*ret_count + 1 < call->call.arguments.count &&
           is_text(call->call.arguments.items[*ret_count + 1]))
        ++*ret_count;
    return *ret_count + 1 == call->call.arguments.count;
}

static bool score_read(struct sql_ranking *ranking, const struct sql_expr *call,
                       const struct sql_report *report)
{
    struct sql_ranking_score score = {.call = call, .weight = 1};

    if (call->kind != SQL_EXPR_CALL || (call->call.function->id != SQL_FUNCTION_FULL_TEXT_SCORE &&
                                        call->call.function->id != SQL_FUNCTION_VECTOR_DISTANCE))
        return sql_report_at(report, "", call->span,
                             "The ORDER BY RANK clause requires a scoring function.");
    if (ranking->count == SQL_RANKING_SCORES_MAX)
        return sql_report_at(report, "", call->span, "RRF takes at most %d scoring functions.",
                             SQL_RANKING_SCORES_MAX);
    if (call->call.function->id == SQL_FUNCTION_FULL_TEXT_SCORE) {
        if (!sql_path(call->call.arguments.items[0], report->arena, &score.path) ||
            !score.path.count || !phrases_count(call, &score.phrases) || !score.phrases ||
            score.phrases > SQL_RANKING_PHRASES_MAX)
            return phrases_fault(call, report);
        score.text = ranking->texts++;
    }
    score.ascending = ranking->query->ranks_ascending >> ranking->count & 1;
    ranking->scores[ranking->count++] = score;
    return true;
}

static bool weight_at(const struct sql_expr *list, size_t at, double *ret_weight)
{
    const struct document_value *value = constant_of(list);
    struct document_iter iter;

    if (list->kind == SQL_EXPR_ARRAY) {
        const struct sql_expr *item = list->items.items[at];
        bool negative = item->kind == SQL_EXPR_UNARY && item->unary.op == SQL_UNARY_MINUS;

        value = constant_of(negative ? item->unary.operand : item);
        if (!value || !document_to_double(value, ret_weight))
            return false;
        *ret_weight = negative ? -*ret_weight : *ret_weight;
        return isfinite(*ret_weight);
    }
    document_iter_init(&iter, value->document);
    for (size_t i = 0; document_iter_next(&iter); i++)
        if (i == at)
            return document_to_double(&iter.value, ret_weight) && isfinite(*ret_weight);
    return false;
}

/* A weight below nothing turns the order of its score around. */
static bool weights_read(struct sql_ranking *ranking, const struct sql_expr *list,
                         const struct sql_report *report)
{
    const struct document_value *value = constant_of(list);
    size_t count =
        list->kind == SQL_EXPR_ARRAY ? list->items.count : document_count(value->document);

    if (count != ranking->count)
        return sql_report_at(report, "", list->span,
                             "The number of weights of RRF must be the number of its scoring "
                             "functions.");
    for (size_t i = 0; i < count; i++) {
        struct sql_ranking_score *score = &ranking->scores[i];

        if (!weight_at(list, i, &score->weight))
            return sql_report_at(report, "", list->span,
                                 "The weights of RRF must be constant numbers.");
        if (score->weight < 0 && !score->phrases)
            return sql_report_unsupported(
                report, list->span,
                "A weight below 0 is not supported for VectorDistance: its "
                "order goes one way.");
        score->ascending ^= score->weight < 0;
        score->weight = fabs(score->weight);
    }
    ranking->weighted = true;
    return true;
}

static bool is_list(const struct sql_expr *expr)
{
    const struct document_value *value = constant_of(expr);

    return expr->kind == SQL_EXPR_ARRAY || (value && value->type == DOCUMENT_ARRAY);
}

static bool scores_read(struct sql_ranking *ranking, const struct sql_report *report)
{
    const struct sql_expr *rank = ranking->query->order_by[0].expr;
    const struct sql_exprs *given = &rank->call.arguments;
    uint32_t count = given->count;

    if (rank->kind != SQL_EXPR_CALL || rank->call.function->id != SQL_FUNCTION_RRF)
        return score_read(ranking, rank, report);
    count -= is_list(given->items[count - 1]);
    for (uint32_t i = 0; i < count; i++)
        if (!score_read(ranking, given->items[i], report))
            return false;
    if (ranking->count < 2)
        return sql_report_at(report, "SC2050", rank->span,
                             "The RRF function requires at least 2 scoring functions.");
    return count == given->count || weights_read(ranking, given->items[count], report);
}

static bool amounts_read(struct sql_ranking *ranking, const struct sql_report *report)
{
    const struct sql_query *query = ranking->query;
    const struct sql_expr *take = query->top ? query->top : query->limit;

    if (!take)
        return sql_report_whole(report, ERROR_BAD_QUERY,
                                "Executing a hybrid search query without Top or Limit can consume "
                                "a large number of RUs very fast and have long runtimes. Please "
                                "ensure you are using one of the two filters with your hybrid "
                                "search query.");
    if (!sql_amount(take, &ranking->take) ||
        (query->offset && !sql_amount(query->offset, &ranking->skip)))
        return sql_report_whole(report, ERROR_BAD_QUERY,
                                "a TOP, OFFSET or LIMIT has no whole number");
    if ((uint64_t)ranking->skip + ranking->take > SQL_RANKING_ROWS_MAX)
        return sql_report_whole(report, ERROR_BAD_QUERY,
                                "Executing a hybrid search query with TOP or OFFSET + LIMIT value "
                                "%llu larger than %d is not allowed.",
                                (unsigned long long)ranking->skip + ranking->take,
                                SQL_RANKING_ROWS_MAX);
    return true;
}

/* A row that is ranked is an item, told apart by its _rid. */
static bool shape_check(const struct sql_query *query, const struct sql_report *report)
{
    const struct sql_source *root = query->source_count ? query->sources[0] : NULL;

    if (query->source_count != 1 || !root->root || root->iterates ||
        root->path->kind != SQL_EXPR_NAME)
        return sql_report_unsupported(report, query->order_by[0].expr->span,
                                      "ORDER BY RANK is not supported where FROM is not the "
                                      "container alone.");
    if (query->distinct || query->aggregates || query->group_by.count)
        return sql_report_unsupported(report, query->order_by[0].expr->span,
                                      "ORDER BY RANK is not supported with DISTINCT, GROUP BY and "
                                      "aggregates.");
    return true;
}

bool sql_ranking_read(const struct sql_query *query, struct sql_ranking *ret_ranking,
                      const struct sql_report *report)
{
    *ret_ranking = (struct sql_ranking){.query = query};
    return shape_check(query, report) && scores_read(ret_ranking, report) &&
           amounts_read(ret_ranking, report);
}

uint32_t sql_ranking_rows(const struct sql_ranking *ranking)
{
    uint32_t wanted = ranking->skip + ranking->take;

    if (ranking->count == 1 || !wanted)
        return wanted;
    return MIN(MAX(wanted * SQL_RANKING_DEPTH, (uint32_t)SQL_RANKING_COMPONENT_MIN),
               (uint32_t)SQL_RANKING_ROWS_MAX);
}

/* --- Writing -----------------------------------------------------------------------------------
 */

static void phrase_print(const struct sql_expr *call, size_t at, struct buf *text)
{
    const struct sql_expr *second = call->call.arguments.items[1];

    if (!is_listed(call)) {
        sql_print_expr(call->call.arguments.items[at + 1], text);
    } else if (second->kind == SQL_EXPR_ARRAY) {
        sql_print_expr(second->items.items[at], text);
    } else {
        const struct document_value *list = constant_of(second);
        struct document_iter iter;

        document_iter_init(&iter, list->document);
        for (size_t i = 0; i <= at; i++)
            (void)document_iter_next(&iter);
        document_json_write_value(&iter.value, text);
    }
}

static void sum_print(const char *name, const uint64_t *sum, size_t number, struct buf *text)
{
    if (sum)
        buf_printf(text, "%llu", (unsigned long long)*sum);
    else
        buf_printf(text, SUM_PLACEHOLDER "%s-%zu}", name, number);
}

/* _FullTextScore(path, [phrases], documents, words, [hits]) */
static void text_score_print(const struct sql_ranking_score *score,
                             const struct sql_ranking_sums *sums, struct buf *text)
{
    BUF_APPEND(text, "_FullTextScore(");
    sql_print_expr(score->call->call.arguments.items[0], text);
    for (size_t i = 0; i < score->phrases; i++) {
        buf_append_text(text, i ? ", " : ", [");
        phrase_print(score->call, i, text);
    }
    BUF_APPEND(text, "], ");
    if (sums)
        buf_printf(text, "%llu", (unsigned long long)sums->documents);
    else
        BUF_APPEND(text, SUM_PLACEHOLDER "totaldocumentcount}");
    BUF_APPEND(text, ", ");
    sum_print("totalwordcount", sums ? &sums->texts[score->text].words : NULL, score->text, text);
    BUF_APPEND(text, ", ");
    if (!sums)
        sum_print("hitcountsarray", NULL, score->text, text);
    for (size_t i = 0; sums && i < score->phrases; i++) {
        buf_append_byte(text, i ? ',' : '[');
        sum_print(NULL, &sums->texts[score->text].hits[i], 0, text);
    }
    buf_append_text(text, sums ? "])" : ")");
}

void sql_ranking_order(const struct sql_ranking *ranking, size_t component,
                       const struct sql_ranking_sums *sums, struct buf *text)
{
    const struct sql_ranking_score *score = &ranking->scores[component];

    if (score->phrases)
        text_score_print(score, sums, text);
    else
        sql_print_expr(score->call, text);
}

void sql_ranking_statistics(const struct sql_ranking *ranking, struct buf *text)
{
    struct slice alias = ranking->query->sources[0]->alias;
    bool first = true;

    BUF_APPEND(text, "SELECT COUNT(1) AS documentCount, [");
    for (size_t i = 0; i < ranking->count; i++) {
        const struct sql_ranking_score *score = &ranking->scores[i];

        if (!score->phrases)
            continue;
        buf_append_text(text, first ? "" : ", ");
        first = false;
        BUF_APPEND(text, "{\"totalWordCount\": (SUM(_FullTextWordCount(");
        sql_print_expr(score->call->call.arguments.items[0], text);
        BUF_APPEND(text, ")) ?? 0), \"hitCounts\": [");
        for (size_t j = 0; j < score->phrases; j++) {
            buf_append_text(text, j ? ", COUNTIF(FullTextContains(" : "COUNTIF(FullTextContains(");
            sql_print_expr(score->call->call.arguments.items[0], text);
            BUF_APPEND(text, ", ");
            phrase_print(score->call, j, text);
            BUF_APPEND(text, "))");
        }
        BUF_APPEND(text, "]}");
    }
    BUF_APPEND(text, "] AS fullTextStatistics FROM ");
    buf_append_slice(text, alias);
}

static void row_print(const struct sql_query *query, struct buf *text)
{
    switch (query->select) {
    case SQL_SELECT_LIST:
        for (uint32_t i = 0; i < query->item_count; i++) {
            buf_append_text(text, i ? ", " : "{");
            document_json_write_string(query->items[i].column, text);
            BUF_APPEND(text, ": ");
            sql_print_expr(query->items[i].expr, text);
        }
        buf_append_byte(text, '}');
        break;
    case SQL_SELECT_VALUE:
        sql_print_expr(query->items[0].expr, text);
        break;
    default:
        buf_append_slice(text, query->sources[0]->alias);
    }
}

static void scores_print(const struct sql_ranking *ranking, const struct sql_ranking_sums *sums,
                         struct buf *text)
{
    BUF_APPEND(text, "\"componentScores\": [");
    for (size_t i = 0; i < ranking->count; i++) {
        buf_append_text(text, i ? ", (" : "(");
        sql_ranking_order(ranking, i, sums, text);
        if (ranking->scores[i].phrases)
            BUF_APPEND(text, " ?? -1)");
        else
            buf_append_text(text, ranking->scores[i].ascending ? " ?? 999999)" : " ?? -999999)");
    }
    buf_append_byte(text, ']');
}

static void part_print(const struct sql_ranking_score *score, enum sql_ranking_part part,
                       struct buf *text)
{
    if (part == SQL_RANKING_ALL)
        return;
    buf_append_text(text, part == SQL_RANKING_FOUND ? " AND FullTextContainsAny("
                                                    : " AND NOT (FullTextContainsAny(");
    sql_print_expr(score->call->call.arguments.items[0], text);
    for (size_t i = 0; i < score->phrases; i++) {
        BUF_APPEND(text, ", ");
        phrase_print(score->call, i, text);
    }
    buf_append_text(text, part == SQL_RANKING_FOUND ? ")" : ") ?? false)");
}

void sql_ranking_component(const struct sql_ranking *ranking, const struct sql_ranking_asked *asked,
                           struct buf *text)
{
    const struct sql_query *query = ranking->query;
    const struct sql_ranking_sums *sums = asked->sums;
    struct slice alias = query->sources[0]->alias;
    size_t component = asked->component;

    buf_printf(text, "SELECT TOP %u %.*s._rid, [{\"item\": ", asked->rows, SLICE_ARG(alias));
    sql_ranking_order(ranking, component, sums, text);
    BUF_APPEND(text, "}] AS orderByItems, {");
    if (!asked->bare) {
        BUF_APPEND(text, "\"payload\": ");
        row_print(query, text);
        BUF_APPEND(text, ", ");
    }
    scores_print(ranking, sums, text);
    BUF_APPEND(text, "} AS payload FROM ");
    buf_append_slice(text, alias);
    BUF_APPEND(text, " WHERE (");
    if (query->where) {
        buf_append_byte(text, '(');
        sql_print_expr(query->where, text);
        BUF_APPEND(text, ") AND ");
    }
    buf_append_text(text, sums ? "(true)" : "(" SQL_ORDER_FILTER ")");
    part_print(&ranking->scores[component], asked->part, text);
    if (query->select == SQL_SELECT_VALUE) {
        BUF_APPEND(text, " AND IS_DEFINED(");
        sql_print_expr(query->items[0].expr, text);
        buf_append_byte(text, ')');
    }
    BUF_APPEND(text, ") ORDER BY ");
    sql_ranking_order(ranking, component, sums, text);
    if (ranking->scores[component].phrases && !ranking->scores[component].ascending)
        BUF_APPEND(text, " DESC"); /* that of vectors goes one way, without a word */
}
