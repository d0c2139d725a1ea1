/* Runs the cases of files in every way there is and says how each went, as TAP. */
#include "cases/script.h"
#include "cases/ways.h"
#include "document/json.h"
#include "document/order.h"
#include "front/rest/sql/parser.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILE_BYTES_MAX = 4 * 1024 * 1024 };

struct outcome {
    bool ran;
    struct sql_rows rows;
    struct sql_error fault;
    struct error err;
};

/* --- Comparing ---------------------------------------------------------------------------------
 */

static int value_compare(const void *a, const void *b)
{
    return document_compare(DOCUMENT_ORDER_SQL, a, b);
}

/* The value with the elements of its arrays, at any depth, in the order of values. */
static void append_sorted(struct buf *buf, struct slice key, const struct document_value *value,
                          struct arena *arena)
{
    struct document_value *elements;
    struct document_iter iter;
    size_t count = 0, begin;

    if (value->type != DOCUMENT_ARRAY && value->type != DOCUMENT_OBJECT) {
        document_append(buf, key, value);
        return;
    }
    if (value->type == DOCUMENT_OBJECT) {
        begin = document_append_object_begin(buf, key);
        document_iter_init(&iter, value->document);
        while (document_iter_next(&iter))
            append_sorted(buf, iter.key, &iter.value, arena);
        document_end(buf, begin);
        return;
    }
    elements = ARENA_ARRAY(arena, struct document_value, document_count(value->document) + 1);
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        elements[count++] = iter.value;
    qsort(elements, count, sizeof *elements, value_compare);
    begin = document_append_array_begin(buf, key);
    for (size_t i = 0; i < count; i++) {
        char text[DOCUMENT_INDEX_SIZE];

        append_sorted(buf, document_index_key((uint32_t)i, text), &elements[i], arena);
    }
    document_end(buf, begin);
}

static struct document_value value_sorted(const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value sorted;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    append_sorted(&buf, SLICE("v"), value, arena);
    document_end(&buf, begin);
    if (!document_find(arena_copy(arena, buf_slice(&buf)), SLICE("v"), &sorted))
        abort();
    return sorted;
}

/* Does the outermost query say in which order rows come? */
static bool is_ordered(struct slice text, struct arena *arena)
{
    struct sql_query *query;
    struct error err;

    return sql_parse(text, NULL, arena, &query, NULL, &err) && query->order_count > 0;
}

static bool near(const struct document_value *got, const struct document_value *wanted)
{
    double a, b;

    return document_to_double(got, &a) && document_to_double(wanted, &b) &&
           fabs(a - b) <= fabs(b) * 1e-12 + 1e-300;
}

static bool rows_agree(const struct script_case *test, const struct sql_rows *rows,
                       struct arena *arena)
{
    size_t count = test->row_count;
    struct document_value *got, *wanted;

    if (test->expect == SCRIPT_COUNT)
        return rows->count == test->count;
    if (rows->count != count)
        return false;
    got = ARENA_ARRAY(arena, struct document_value, count + 1);
    wanted = ARENA_ARRAY(arena, struct document_value, count + 1);
    for (size_t i = 0; i < count; i++) {
        got[i] = rows->values[i];
        wanted[i] = ways_json(test->rows[i], arena);
        if (test->sets) {
            got[i] = value_sorted(&got[i], arena);
            wanted[i] = value_sorted(&wanted[i], arena);
        }
    }
    if (test->expect == SCRIPT_NEAR)
        return near(&got[0], &wanted[0]);
    if (!is_ordered(test->query, arena)) {
        qsort(got, count, sizeof *got, value_compare);
        qsort(wanted, count, sizeof *wanted, value_compare);
    }
    for (size_t i = 0; i < count; i++)
        if (value_compare(&got[i], &wanted[i]) != 0)
            return false;
    return true;
}

static bool contains(struct slice text, struct slice part)
{
    return part.len == 0 || memmem(text.data, text.len, part.data, part.len);
}

static bool agrees(const struct script_case *test, const struct outcome *outcome,
                   struct arena *arena)
{
    if (test->expect != SCRIPT_ERROR)
        return outcome->ran && rows_agree(test, &outcome->rows, arena);
    return !outcome->ran && ((outcome->fault.code && outcome->fault.code[0] &&
                              slice_equal(slice_of_text(outcome->fault.code), test->error)) ||
                             contains(slice_of_text(outcome->err.message), test->error));
}

/* --- Telling -----------------------------------------------------------------------------------
 */

static void print_outcome(const struct outcome *outcome)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!outcome->ran)
        printf("#   got error %s %s\n", outcome->fault.code ? outcome->fault.code : "",
               outcome->err.message);
    for (size_t i = 0; outcome->ran && i < outcome->rows.count; i++) {
        buf_clear(&text);
        document_json_write_value(&outcome->rows.values[i], &text);
        printf("#   got %.*s\n", SLICE_ARG(buf_slice(&text)));
    }
    if (outcome->ran && !outcome->rows.count)
        printf("#   got no rows\n");
}

static struct slice one_line(struct slice text, struct arena *arena)
{
    char *line = arena_text(arena, text);

    for (char *at = line; *at; at++)
        if (*at == '\n' || *at == '#')
            *at = ' ';
    return slice_of_text(line);
}

static bool case_run(struct ways *ways, const char *path, const struct script_case *test,
                     unsigned number)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    bool good = true;

    for (enum way way = 0; way < WAY_COUNT; way++) {
        struct outcome outcome = {.ran = false};

        if (!ways_apply(way, test))
            continue;
        outcome.ran = ways_run(ways, way, test, arena, &outcome.rows, &outcome.fault, &outcome.err);
        if (agrees(test, &outcome, arena))
            continue;
        if (good)
            printf("not ok %u - %s:%u %.*s\n", number, path, test->line,
                   SLICE_ARG(one_line(test->query, arena)));
        printf("#  by way of %s\n", way_name(way));
        print_outcome(&outcome);
        good = false;
    }
    if (good)
        printf("ok %u - %s:%u %.*s\n", number, path, test->line,
               SLICE_ARG(one_line(test->query, arena)));
    return good;
}

static struct slice file_read(const char *path, struct arena *arena)
{
    FILE *file = fopen(path, "re");
    char *text = arena_alloc(arena, FILE_BYTES_MAX);
    size_t len;

    if (!file) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    len = fread(text, 1, FILE_BYTES_MAX, file);
    fclose(file);
    return slice_of(text, len);
}

int main(int argc, char **argv)
{
    unsigned number = 0;
    bool good = true;

    for (int i = 1; i < argc; i++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        CLEANUP(ways_free) struct ways *ways = ways_new();
        const char *name = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
        struct script script = script_read(name, file_read(argv[i], arena), arena);

        for (size_t j = 0; j < script.count; j++)
            good &= case_run(ways, name, &script.cases[j], ++number);
    }
    printf("1..%u\n", number);
    return good ? 0 : 1;
}
