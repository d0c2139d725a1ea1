/* JSON against jansson and libbson: reading is text to BSON (jansson: to its tree), writing is BSON
 * (jansson: its tree) to text. Every candidate starts from nothing each time, memory included. */
#include "rounds.h"

#include "base/random.h"
#include "document/json.h"

#include <bson/bson.h>
#include <jansson.h>

enum { TURN_MS = 12 };

struct job {
    struct slice text; /* JSON */
    struct slice bson;
    bson_t theirs; /* the same, as libbson holds it */
    json_t *tree;  /* the same, as jansson holds it */
    size_t repeats;
};

/* --- Documents ------------------------------------------------------------------------------- */

static void make_item(struct buf *out)
{
    BUF_APPEND(
        out,
        "{\"id\":\"8f14e45f-ceea-467f-a8d2-0b3f6a1c9e55\",\"tenant\":\"contoso-retail\",\"type\":"
        "\"order\",\"number\":1048576,\"total\":1299.95,\"currency\":\"EUR\",\"paid\":true,"
        "\"discount\":null,\"customer\":{\"id\":\"c-20941\",\"name\":\"Margarethe Lindqvist\","
        "\"email\":\"margarethe.lindqvist@example.com\",\"vip\":false,\"since\":"
        "\"2019-04-17T09:30:00Z\"},\"shipTo\":{\"street\":\"Sveav\u00e4gen 44\",\"city\":"
        "\"Stockholm\",\"postcode\":\"111 34\",\"country\":\"SE\",\"location\":{\"type\":\"Point\","
        "\"coordinates\":[18.05811,59.33845]}},\"lines\":[{\"sku\":\"LAMP-0042\",\"title\":"
        "\"Desk lamp, brushed steel\",\"quantity\":2,\"price\":149.5},{\"sku\":\"CHAIR-0007\","
        "\"title\":\"Office chair \\\"Ergo\\\"\",\"quantity\":1,\"price\":899.0},{\"sku\":"
        "\"CABLE-11\",\"title\":\"Cable, 3 m\",\"quantity\":5,\"price\":20.19}],\"notes\":\"Leave "
        "with the neighbour at number 46 if nobody answers; the bell on the left does "
        "not work. Please call before "
        "noon.\",\"history\":[{\"at\":1600700000,\"what\":\"created\"},{\"at\":"
        "1600789292,\"what\":\"paid\"}],\"tags\":[\"web\","
        "\"priority\",\"gift\"],\"_rid\":\"kvMlAPMtlwABAAAAAAAAAA==\",\"_etag\":"
        "\"0000d826-0000-0700-0000-5f6a1b2c0000\",\"_ts\":1600789292}");
}

static void make_array(struct buf *out)
{
    struct random random;

    random_seed(&random, 1);
    BUF_APPEND(out, "{\"id\":\"a\",\"events\":[");
    for (int i = 0; out->len < 100 * 1024; i++)
        buf_printf(out, "%s[%d,%d,\"e%d\",[%s,%d],{\"k\":%d}]", i ? "," : "", i,
                   (int)random_below(&random, 100000), (int)random_below(&random, 100),
                   random_below(&random, 2) ? "true" : "false", (int)random_below(&random, 10),
                   (int)random_below(&random, 1000000));
    BUF_APPEND(out, "]}");
}

static void make_numbers(struct buf *out)
{
    struct random random;

    random_seed(&random, 2);
    BUF_APPEND(out, "{\"id\":\"n\",\"embedding\":[");
    for (int i = 0; i < 1536; i++)
        buf_printf(out, "%s%.*g", i ? "," : "", i % 4 == 0 ? 17 : 8,
                   ((double)random_below(&random, 1u << 30) - (1 << 29)) / (1 << 30) / 3);
    BUF_APPEND(out, "],\"counts\":[");
    for (int i = 0; i < 500; i++)
        buf_printf(out, "%s%lld", i ? "," : "",
                   (long long)(random_next(&random) >> (8 + random_below(&random, 48))));
    BUF_APPEND(out, "]}");
}

static void make_strings(struct buf *out)
{
    BUF_APPEND(out, "{\"id\":\"s\",\"body\":[");
    for (int i = 0; i < 60; i++)
        buf_printf(out,
                   "%s\"Paragraph %d: the quick brown fox jumps over the lazy dog, again and again."
                   "\\n\\tHe said \\\"ja, n\u00e4mligen\\\" \u2014 and left. \u041f\u0440\u0438"
                   "\u0432\u0435\u0442, \u65e5\u672c\u8a9e\u306e\u6587\u7ae0 \\u00e9\\u20ac "
                   "C:\\\\temp\\\\file \U0001F600\"",
                   i ? "," : "", i);
    BUF_APPEND(out, "]}");
}

/* --- Candidates ------------------------------------------------------------------------------ */

static void read_ours(void *context)
{
    struct job *job = context;

    for (size_t i = 0; i < job->repeats; i++) {
        CLEANUP(buf_done) struct buf buf;
        struct error err;

        buf_init(&buf, BUF_DEFAULT_MAX);
        if (!document_json_read(job->text, NULL, &buf, &err))
            abort();
        rounds_keep(buf.data);
    }
}

static void read_jansson(void *context)
{
    struct job *job = context;

    for (size_t i = 0; i < job->repeats; i++) {
        json_t *tree = json_loadb((const char *)job->text.data, job->text.len, 0, NULL);

        if (!tree)
            abort();
        rounds_keep(tree);
        json_decref(tree);
    }
}

static void read_libbson(void *context)
{
    struct job *job = context;

    for (size_t i = 0; i < job->repeats; i++) {
        bson_t bson;

        if (!bson_init_from_json(&bson, (const char *)job->text.data, (ssize_t)job->text.len, NULL))
            abort();
        rounds_keep(&bson);
        bson_destroy(&bson);
    }
}

static void write_ours(void *context)
{
    struct job *job = context;

    for (size_t i = 0; i < job->repeats; i++) {
        CLEANUP(buf_done) struct buf buf;

        buf_init(&buf, BUF_DEFAULT_MAX);
        document_json_write(job->bson, &buf);
        rounds_keep(buf.data);
    }
}

static void write_jansson(void *context)
{
    struct job *job = context;

    for (size_t i = 0; i < job->repeats; i++) {
        char *text = json_dumps(job->tree, JSON_COMPACT);

        rounds_keep(text);
        free(text);
    }
}

static void write_libbson(void *context)
{
    struct job *job = context;

    for (size_t i = 0; i < job->repeats; i++) {
        char *text = bson_as_relaxed_extended_json(&job->theirs, NULL);

        rounds_keep(text);
        bson_free(text);
    }
}

/* --- The race -------------------------------------------------------------------------------- */

static void race(const char *what, struct job *job, void (*ours)(void *), void (*jansson)(void *),
                 void (*libbson)(void *))
{
    struct rounds_candidate candidates[] = {
        {.name = "ours", .run = ours, .context = job},
        {.name = "jansson", .run = jansson, .context = job},
        {.name = "libbson", .run = libbson, .context = job},
    };
    char name[80];
    double megabytes, figures[3];

    job->repeats = 1;
    job->repeats = rounds_repeats(ours, job, TURN_MS);
    rounds_run(candidates, ARRAY_LEN(candidates), ROUNDS_DEFAULT);
    megabytes = (double)(job->text.len * job->repeats) / 1e6;
    for (size_t i = 0; i < ARRAY_LEN(candidates); i++) {
        rounds_print(what, &candidates[i]);
        figures[i] = rounds_per_cpu_s(&candidates[i], megabytes);
    }
    snprintf(name, sizeof name, "%s MB/s", what);
    rounds_ratio(name, figures[0], figures[1], "vs jansson");
    rounds_ratio(name, figures[0], figures[2], "vs libbson");
}

static void race_both_ways(const char *name, void (*make)(struct buf *out))
{
    CLEANUP(buf_done) struct buf text, bson;
    struct job job = {0};
    struct error err;
    char what[64];

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    make(&text);
    if (!document_json_read(buf_slice(&text), NULL, &bson, &err)) {
        fprintf(stderr, "%s: %s\n", name, err.message);
        exit(1);
    }
    job.text = buf_slice(&text);
    job.bson = buf_slice(&bson);
    bson_init_static(&job.theirs, job.bson.data, job.bson.len);
    job.tree = json_loadb((const char *)job.text.data, job.text.len, 0, NULL);
    printf("  %s: %zu bytes of JSON, %zu of BSON\n", name, text.len, bson.len);
    snprintf(what, sizeof what, "json read %s", name);
    race(what, &job, read_ours, read_jansson, read_libbson);
    snprintf(what, sizeof what, "json write %s", name);
    race(what, &job, write_ours, write_jansson, write_libbson);
    json_decref(job.tree);
}

int main(void)
{
    race_both_ways("1 KB item", make_item);
    race_both_ways("100 KB of arrays", make_array);
    race_both_ways("25 KB of numbers", make_numbers);
    race_both_ways("12 KB of strings", make_strings);
    return 0;
}
