#include "front/rest/query/query_figures.h"

#include "document/bson.h"
#include "document/json.h"

#include <openssl/evp.h>

enum { HEADER_BYTES_MAX = 16 * 1024 };

/* --- Metrics -----------------------------------------------------------------------------------
 */

static double ms(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* A list of name=value without a separator at its end: the JavaScript library throws at one. */
static void metrics_answer(struct rest_call *call, const struct query_page *page,
                           uint64_t compile_ns)
{
    const struct query_metrics *m = &page->metrics;
    double used =
        m->items_loaded ? (double)MIN(m->rows, m->items_loaded) / (double)m->items_loaded : 1;

    rest_answer_header(
        call, SLICE("x-ms-documentdb-query-metrics"),
        arena_printf(
            call->arena,
            "totalExecutionTimeInMs=%.2f;queryCompileTimeInMs=%.2f;"
            "queryLogicalPlanBuildTimeInMs=0.00;queryPhysicalPlanBuildTimeInMs=%.2f;"
            "queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs=%.2f;indexLookupTimeInMs=%.2f;"
            "instructionCount=0;documentLoadTimeInMs=%.2f;systemFunctionExecuteTimeInMs=0.00;"
            "userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount=%llu;"
            "retrievedDocumentSize=%llu;outputDocumentCount=%llu;outputDocumentSize=%llu;"
            "writeOutputTimeInMs=%.2f;indexUtilizationRatio=%.2f",
            ms(m->total_ns + compile_ns), ms(compile_ns), ms(m->plan_ns), ms(m->run_ns),
            ms(m->index_ns), ms(m->load_ns), (unsigned long long)m->items_loaded,
            (unsigned long long)m->loaded_bytes, (unsigned long long)m->rows,
            (unsigned long long)m->row_bytes, ms(m->output_ns), used));
}

/* --- Indexes -----------------------------------------------------------------------------------
 */

/* What an explanation (query/run.h) says of indexes, sorted by kind. Paths are borrowed from
 * it. */
struct indexes {
    struct slice single[2], composite[2], missing[16];
    struct slice together; /* paths that one composite index should have, a BSON array; or absent */
    size_t single_count, composite_count, missing_count;
};

static void index_take(struct slice access, struct slice key, struct indexes *to)
{
    struct document_value index, path, composite;

    if (!document_find(access, key, &index) || index.type != DOCUMENT_OBJECT ||
        !document_find(index.document, SLICE("path"), &path) ||
        !document_find(index.document, SLICE("composite"), &composite))
        return;
    if (composite.boolean)
        to->composite[to->composite_count++] = path.text;
    else
        to->single[to->single_count++] = path.text;
}

static struct indexes indexes_read(struct slice explain)
{
    struct indexes indexes = {0};
    struct document_value access, advice, value;
    struct document_iter iter;

    if (explain.len && document_find(explain, SLICE("access"), &access)) {
        index_take(access.document, SLICE("index"), &indexes);
        index_take(access.document, SLICE("intersectedWith"), &indexes);
    }
    if (!explain.len || !document_find(explain, SLICE("advice"), &advice))
        return indexes;
    document_iter_init(&iter, advice.document);
    while (document_iter_next(&iter)) {
        if (document_find(iter.value.document, SLICE("paths"), &value))
            indexes.together = value.document;
        else if (indexes.missing_count < ARRAY_LEN(indexes.missing) &&
                 document_find(iter.value.document, SLICE("path"), &value))
            indexes.missing[indexes.missing_count++] = value.text;
    }
    return indexes;
}

/* A path as policies write it: of its scalar value. */
static void spec_append(struct buf *json, struct slice path)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, HEADER_BYTES_MAX);
    buf_append_slice(&text, path);
    if (path.len < 2 || (path.data[path.len - 1] != '?' && path.data[path.len - 1] != '*'))
        BUF_APPEND(&text, "/?");
    document_json_write_string(buf_slice(&text), json);
}

/* "name":[ entry, ... ] with before and after around the path of each. */
static void list_append(struct buf *json, const char *name, const struct slice *paths, size_t count,
                        const char *before, const char *after)
{
    buf_printf(json, "\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        buf_append_text(json, i ? "," : "");
        buf_append_text(json, before);
        spec_append(json, paths[i]);
        buf_append_text(json, after);
    }
    buf_append_byte(json, ']');
}

/* The next path of "/a ASC, /b DESC"; names in paths may hold commas, but no comma, blank, slash.
 */
static struct slice spec_take(struct slice *rest)
{
    const uint8_t *at = rest->len ? memmem(rest->data, rest->len, ", /", 3) : NULL;
    struct slice spec = at ? slice_first(*rest, (size_t)(at - rest->data)) : *rest;

    *rest = at ? slice_skip(*rest, spec.len + 2) : SLICE_NONE;
    return spec;
}

/* A composite index is named "(/a ASC, /b DESC)". */
static void composites_append(struct buf *json, const char *name, const struct indexes *indexes,
                              const char *after)
{
    buf_printf(json, "\"%s\":[", name);
    for (size_t i = 0; i < indexes->composite_count; i++) {
        struct slice rest = indexes->composite[i];

        if (rest.len > 2)
            rest = slice_first(slice_skip(rest, 1), rest.len - 2);
        buf_append_text(json, i ? ",{\"IndexSpecs\":[" : "{\"IndexSpecs\":[");
        for (bool first = true; rest.len; first = false) {
            buf_append_text(json, first ? "" : ",");
            document_json_write_string(spec_take(&rest), json);
        }
        buf_append_text(json, after);
    }
    buf_append_byte(json, ']');
}

/* The composite index that would have helped: all of its paths ascending. */
static void together_append(struct buf *json, const char *name, const struct indexes *indexes,
                            const char *after)
{
    struct document_iter iter;
    bool first = true;

    buf_printf(json, "\"%s\":[", name);
    if (indexes->together.data) {
        buf_append_text(json, "{\"IndexSpecs\":[");
        document_iter_init(&iter, indexes->together);
        for (; document_iter_next(&iter); first = false) {
            CLEANUP(buf_done) struct buf spec;

            buf_init(&spec, HEADER_BYTES_MAX);
            buf_append_slice(&spec, iter.value.text);
            BUF_APPEND(&spec, " ASC");
            buf_append_text(json, first ? "" : ",");
            document_json_write_string(buf_slice(&spec), json);
        }
        buf_append_text(json, after);
    }
    buf_append_byte(json, ']');
}

static void indexes_json_2(const struct indexes *indexes, struct buf *json)
{
    BUF_APPEND(json, "{\"Utilized\":{");
    list_append(json, "SingleIndexes", indexes->single, indexes->single_count,
                "{\"IndexSpec\":", "}");
    BUF_APPEND(json, ",");
    composites_append(json, "CompositeIndexes", indexes, "]}");
    BUF_APPEND(json, "},\"Potential\":{");
    list_append(json, "SingleIndexes", indexes->missing, indexes->missing_count,
                "{\"IndexSpec\":", "}");
    BUF_APPEND(json, ",");
    together_append(json, "CompositeIndexes", indexes, "]}");
    BUF_APPEND(json, "}}");
}

static void indexes_json_1(const struct indexes *indexes, struct buf *json)
{
    static const char *const before = "{\"FilterExpression\":\"\",\"IndexSpec\":";
    static const char *const after =
        ",\"FilterPreciseSet\":true,\"IndexPreciseSet\":true,\"IndexImpactScore\":\"High\"}";
    static const char *const composite_after =
        "],\"IndexPreciseSet\":true,\"IndexImpactScore\":\"High\"}";

    BUF_APPEND(json, "{");
    list_append(json, "UtilizedSingleIndexes", indexes->single, indexes->single_count, before,
                after);
    BUF_APPEND(json, ",");
    list_append(json, "PotentialSingleIndexes", indexes->missing, indexes->missing_count, before,
                after);
    BUF_APPEND(json, ",");
    composites_append(json, "UtilizedCompositeIndexes", indexes, composite_after);
    BUF_APPEND(json, ",");
    together_append(json, "PotentialCompositeIndexes", indexes, composite_after);
    BUF_APPEND(json, "}");
}

static void indexes_answer(struct rest_call *call, struct slice explain)
{
    CLEANUP(buf_done) struct buf json;
    CLEANUP(buf_done) struct buf encoded;
    struct indexes indexes = indexes_read(explain);

    buf_init(&json, HEADER_BYTES_MAX);
    buf_init(&encoded, 4 * HEADER_BYTES_MAX);
    if (rest_headers_true(&call->headers, REST_HEADER_POPULATE_INDEX_METRICS_2)) {
        indexes_json_2(&indexes, &json);
        front_percent_encode(buf_slice(&json), &encoded);
    } else {
        indexes_json_1(&indexes, &json);
        if (buf_reserve(&encoded, (json.len + 2) / 3 * 4 + 1))
            encoded.len = (size_t)EVP_EncodeBlock(encoded.data, json.data, (int)json.len);
    }
    if (!buf_overflowed(&json) && !buf_overflowed(&encoded))
        rest_answer_header(call, SLICE("x-ms-cosmos-index-utilization"), buf_slice(&encoded));
}

bool rest_query_wants_indexes(const struct rest_call *call)
{
    return rest_headers_true(&call->headers, REST_HEADER_POPULATE_INDEX_METRICS) ||
           rest_headers_true(&call->headers, REST_HEADER_POPULATE_INDEX_METRICS_2);
}

bool rest_query_wants_explain(const struct rest_call *call)
{
    return rest_headers_true(&call->headers, REST_HEADER_EXPLAIN);
}

void rest_query_explain(struct rest_call *call, const struct query_page *page)
{
    if (!rest_query_wants_explain(call) || page->explain.len == 0)
        return;
    assert(call->body.len && call->body.data[call->body.len - 1] == '}');
    call->body.data[call->body.len - 1] = ',';
    BUF_APPEND(&call->body, "\"_explain\":");
    document_json_write(page->explain, &call->body);
    buf_append_byte(&call->body, '}');
}

void rest_query_figures(struct rest_call *call, const struct query_page *page, uint64_t compile_ns)
{
    if (rest_headers_true(&call->headers, REST_HEADER_POPULATE_QUERY_METRICS))
        metrics_answer(call, page, compile_ns);
    if (rest_query_wants_indexes(call))
        indexes_answer(call, page->explain);
}
