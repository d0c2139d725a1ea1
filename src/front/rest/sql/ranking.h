/* Ranking: ORDER BY RANK as the queries it is answered by.
 *
 * Rows are ranked by one score, or by several whose ranks are put together (RRF). Whoever runs such
 * a query, be it a client that asked for a plan or ranking_run.h, does it in two rounds: one query
 * adds up what scores of full text need of all texts, then each score has a component query that
 * gives the best rows by it, with all their scores. Components take the sums as literals; in the
 * texts of a plan placeholders stand for them.
 *
 *   statistics   {"documentCount", "fullTextStatistics": [{"totalWordCount", "hitCounts": [...]}]}
 *   component    {"_rid", "orderByItems": [{"item": score}],
 *                 "payload": {"payload": the row, "componentScores": [...]}}
 *
 * A score that an item does not have counts as worse than all others. */
#pragma once

#include "document/path.h"
#include "front/rest/sql/ast.h"
#include "front/rest/sql/error.h"

enum {
    SQL_RANKING_SCORES_MAX = 16,
    SQL_RANKING_PHRASES_MAX = 64,   /* of a score, as of the functions */
    SQL_RANKING_ROWS_MAX = 50000,   /* that are skipped and taken; what libraries sort at most */
    SQL_RANKING_DEPTH = 12,         /* rows of a component for each row that is wanted */
    SQL_RANKING_COMPONENT_MIN = 120 /* and at least, where there are several */
};

struct sql_ranking_score {
    const struct sql_expr *call;
    size_t phrases;            /* of full text; 0: it needs nothing of other items */
    struct document_path path; /* of the text */
    size_t text;               /* its number among those of full text */
    bool ascending;            /* the best is the least */
    double weight;
};

struct sql_ranking {
    const struct sql_query *query;
    struct sql_ranking_score scores[SQL_RANKING_SCORES_MAX];
    size_t count;
    size_t texts;  /* scores of full text: 0: no statistics are needed */
    bool weighted; /* weights were given */
    uint32_t skip, take;
};

/* Sums over all items, of each score of full text. */
struct sql_ranking_sums {
    uint64_t documents;
    struct {
        uint64_t words, hits[SQL_RANKING_PHRASES_MAX];
    } texts[SQL_RANKING_SCORES_MAX];
};

/* Reads the ORDER BY RANK of a resolved and bound query. ERROR_BAD_QUERY: what is ranked by is no
 * score, phrases or weights are not constant, or nothing says how many rows are wanted.
 * ERROR_QUERY_NOT_SUPPORTED: clauses that cannot be ranked. */
NODISCARD bool sql_ranking_read(const struct sql_query *query, struct sql_ranking *ret_ranking,
                                const struct sql_report *report);

/* Rows that a component gives at most. */
uint32_t sql_ranking_rows(const struct sql_ranking *ranking);

/* The query of the sums. */
void sql_ranking_statistics(const struct sql_ranking *ranking, struct buf *text);

/* Which rows a component gives: of full text those that have a phrase can be asked for alone, which
 * an index answers, and then the rest, whose score is 0. */
enum sql_ranking_part { SQL_RANKING_ALL, SQL_RANKING_FOUND, SQL_RANKING_REST };

struct sql_ranking_asked {
    size_t component;
    enum sql_ranking_part part;
    uint32_t rows;
    bool bare;                           /* without the row */
    const struct sql_ranking_sums *sums; /* NULL: with placeholders, for a plan */
};

/* The query of a component. */
void sql_ranking_component(const struct sql_ranking *ranking, const struct sql_ranking_asked *asked,
                           struct buf *text);

/* What its rows are ordered by. */
void sql_ranking_order(const struct sql_ranking *ranking, size_t component,
                       const struct sql_ranking_sums *sums, struct buf *text);
