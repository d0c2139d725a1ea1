/* A workload from files of JSON lines. Items are documents as they are; an operation is
 *
 *     {"t": 1700000000000, "op": "query", "ru": 2.8, "bytes": 1024, "where": {"/tenant": "a"}}
 *
 * t is in milliseconds or an ISO 8601 text, op one of create, read, replace, upsert, patch, delete,
 * query; item, before, where, ranges, changed, identity, transaction, weight, refused and failed
 * may be there (workload.h). Other properties are ignored, so that a log may carry more. */
#include "advise/workload.h"

#include "document/bson.h"
#include "document/json.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <xxhash.h>

static bool line_next(struct slice *rest, struct slice *ret_line)
{
    if (!rest->len)
        return false;
    if (!slice_split(*rest, '\n', ret_line, rest)) {
        *ret_line = *rest;
        *rest = SLICE_NONE;
    }
    if (ret_line->len && ret_line->data[ret_line->len - 1] == '\r')
        ret_line->len--;
    *ret_line = slice_trim(*ret_line);
    return true;
}

bool advise_workload_read_items(struct advise_workload *workload, struct slice lines,
                                struct error *err)
{
    CLEANUP(buf_done) struct buf bson;
    struct slice line;
    size_t number = 0;

    buf_init(&bson, ADVISE_LINE_MAX * 2);
    while (line_next(&lines, &line)) {
        number++;
        if (!line.len)
            continue;
        buf_clear(&bson);
        if (!document_json_read(line, NULL, &bson, err))
            return error_prefix(err, "line %zu of the documents", number);
        advise_workload_item(workload, buf_slice(&bson),
                             (uint32_t)MIN(line.len, (size_t)UINT32_MAX), 0);
    }
    return true;
}

static bool kind_read(struct slice document, enum advise_operation_kind *ret_kind,
                      struct error *err)
{
    struct document_value value;

    if (!document_find(document, SLICE("op"), &value) || value.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST, "\"op\" is missing");
    for (size_t i = 0; i < ADVISE_OPERATION_KINDS; i++)
        if (slice_equal(value.text,
                        slice_of_text(advise_operation_kind_name((enum advise_operation_kind)i)))) {
            *ret_kind = (enum advise_operation_kind)i;
            return true;
        }
    return error_set(err, ERROR_BAD_REQUEST, "\"op\" is \"%.*s\", which is no operation",
                     (int)MIN(value.text.len, (size_t)40), (const char *)value.text.data);
}

/* 2018-08-09T10:11:12 and what may follow, taken as UTC. */
static bool time_of_text(struct slice text, int64_t *ret_ms)
{
    char copy[32];
    struct tm tm = {0};
    double fraction = 0;
    const char *rest;

    if (text.len < 10 || text.len >= sizeof copy)
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = 0;
    rest = strptime(copy, "%Y-%m-%d", &tm);
    if (!rest)
        return false;
    if (*rest == 'T' || *rest == ' ') {
        rest = strptime(rest + 1, "%H:%M:%S", &tm);
        if (!rest)
            return false;
        if (*rest == '.')
            fraction = strtod(rest, NULL);
    }
    *ret_ms = (int64_t)timegm(&tm) * 1000 + (int64_t)(fraction * 1000);
    return true;
}

static bool time_read(struct slice document, int64_t *ret_ms, struct error *err)
{
    struct document_value value;
    double number;

    *ret_ms = 0;
    if (!document_find(document, SLICE("t"), &value))
        return error_set(err, ERROR_BAD_REQUEST, "\"t\", the time, is missing");
    if (value.type == DOCUMENT_STRING && time_of_text(value.text, ret_ms))
        return true;
    if (!document_to_double(&value, &number) || !isfinite(number) || fabs(number) > 1e15)
        return error_set(err, ERROR_BAD_REQUEST,
                         "\"t\" is neither milliseconds nor an ISO 8601 date");
    *ret_ms = (int64_t)number;
    return true;
}

static bool number_read(struct slice document, struct slice name, double preset, double max,
                        double *ret_number, struct error *err)
{
    struct document_value value;

    *ret_number = preset;
    if (!document_find(document, name, &value))
        return true;
    if (!document_to_double(&value, ret_number) || !(*ret_number >= 0 && *ret_number <= max))
        return error_set(err, ERROR_BAD_REQUEST, "\"%.*s\" is not a number from 0 to %g",
                         SLICE_ARG(name), max);
    return true;
}

static bool flag_read(struct slice document, struct slice name, bool *ret_flag, struct error *err)
{
    struct document_value value;

    *ret_flag = false;
    if (!document_find(document, name, &value))
        return true;
    if (value.type != DOCUMENT_BOOL)
        return error_set(err, ERROR_BAD_REQUEST, "\"%.*s\" is neither true nor false",
                         SLICE_ARG(name));
    *ret_flag = value.boolean;
    return true;
}

static bool part_read(struct slice document, struct slice name, enum document_type type,
                      struct slice *ret_part, struct error *err)
{
    struct document_value value;

    *ret_part = SLICE_NONE;
    if (!document_find(document, name, &value) || value.type == DOCUMENT_NULL)
        return true;
    if (value.type != type)
        return error_set(err, ERROR_BAD_REQUEST, "\"%.*s\" is not %s", SLICE_ARG(name),
                         type == DOCUMENT_OBJECT  ? "an object"
                         : type == DOCUMENT_ARRAY ? "an array"
                                                  : "a string");
    *ret_part = type == DOCUMENT_STRING ? value.text : value.document;
    return true;
}

/* Hexadecimal digits, or any other text that names the item. */
static uint64_t identity_read(struct slice document)
{
    struct document_value value;

    if (!document_find(document, SLICE("identity"), &value) || value.type != DOCUMENT_STRING ||
        !value.text.len)
        return 0;
    return XXH3_64bits(value.text.data, value.text.len);
}

bool advise_workload_operation_read(struct advise_workload *workload, struct slice document,
                                    struct error *err)
{
    struct advise_operation_parts parts = {0};
    double ru, ms, bytes, weight, refused, due;

    if (!kind_read(document, &parts.kind, err) || !time_read(document, &parts.time_ms, err) ||
        !number_read(document, SLICE("ru"), 1, 1e9, &ru, err) ||
        !number_read(document, SLICE("ms"), 0, 1e9, &ms, err) ||
        !number_read(document, SLICE("bytes"), 1024, UINT32_MAX, &bytes, err) ||
        !number_read(document, SLICE("weight"), 1, 1e6, &weight, err) ||
        !number_read(document, SLICE("refused"), 0, 1e6, &refused, err) ||
        !number_read(document, SLICE("due"), 0, 1e15, &due, err) ||
        !flag_read(document, SLICE("failed"), &parts.failed, err) ||
        !part_read(document, SLICE("item"), DOCUMENT_OBJECT, &parts.item, err) ||
        !part_read(document, SLICE("before"), DOCUMENT_OBJECT, &parts.before, err) ||
        !part_read(document, SLICE("where"), DOCUMENT_OBJECT, &parts.where, err) ||
        !part_read(document, SLICE("ranges"), DOCUMENT_ARRAY, &parts.ranges, err) ||
        !part_read(document, SLICE("changed"), DOCUMENT_ARRAY, &parts.changed, err) ||
        !part_read(document, SLICE("transaction"), DOCUMENT_STRING, &parts.transaction, err))
        return false;
    if (parts.kind != ADVISE_QUERY && !parts.item.data && !parts.where.data)
        return error_set(err, ERROR_BAD_REQUEST, "neither \"item\" nor \"where\" is there");
    parts.identity = identity_read(document);
    parts.cru = (int64_t)llround(ru * 100);
    parts.ms = ms;
    parts.bytes = (uint32_t)bytes;
    parts.weight = (uint32_t)weight;
    parts.due_ms = (int64_t)due;
    parts.refused = MAX((uint32_t)refused, (uint32_t)parts.failed);
    advise_workload_operation(workload, &parts);
    return true;
}

bool advise_workload_read_operations(struct advise_workload *workload, struct slice lines,
                                     struct error *err)
{
    CLEANUP(buf_done) struct buf bson;
    struct slice line;
    size_t number = 0;

    buf_init(&bson, ADVISE_LINE_MAX * 2);
    while (line_next(&lines, &line)) {
        number++;
        if (!line.len)
            continue;
        buf_clear(&bson);
        if (!document_json_read(line, NULL, &bson, err) ||
            !advise_workload_operation_read(workload, buf_slice(&bson), err))
            return error_prefix(err, "line %zu of the operations", number);
    }
    return true;
}
