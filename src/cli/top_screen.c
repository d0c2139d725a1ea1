#include "cli/top_screen.h"

#include "cli/client.h"
#include "cli/table.h"
#include "document/bson.h"

#include <stdlib.h>

/* What was asked of something in a second. */
struct rates {
    struct slice account, database, container, partition, node;
    double requests, throttled, ru, ms; /* ms: the mean time of a request */
    double given;                       /* RU/s it has; 0: not known */
    bool migrating;
};

const char *cli_top_order_name(enum cli_top_order order)
{
    static const char *const names[CLI_TOP_ORDERS] = {"RU/s", "requests", "throttled", "time"};

    return names[order];
}

/* --- From counters to rates ------------------------------------------------------------------ */

static bool text_same(struct slice a, struct slice b, const char *name)
{
    return slice_equal(cli_answer_text(a, name), cli_answer_text(b, name));
}

static struct slice member_find(struct slice array, struct slice like, const char *const *names)
{
    struct document_iter iter;

    document_iter_init(&iter, array);
    while (array.data && document_iter_next(&iter)) {
        bool same = iter.value.type == DOCUMENT_OBJECT;

        for (size_t i = 0; same && names[i]; i++)
            same = text_same(iter.value.document, like, names[i]);
        if (same)
            return iter.value.document;
    }
    return SLICE_NONE;
}

static double grown(struct slice now, struct slice before, const char *name)
{
    double more =
        cli_answer_number(now, name) - (before.data ? cli_answer_number(before, name) : 0);

    return more > 0 ? more : 0; /* a server that was started anew counts from nothing */
}

static void rates_fill(struct rates *rates, struct slice now, struct slice before, double seconds)
{
    double requests = grown(now, before, "requests");

    rates->requests = requests / seconds;
    rates->throttled = grown(now, before, "throttled") / seconds;
    rates->ru = grown(now, before, "ru") / seconds;
    rates->ms = requests > 0 ? grown(now, before, "timeUs") / 1000 / requests : 0;
    rates->given = cli_answer_number(now, "ruPerSecond");
}

static double seconds_between(const struct cli_top_sample *sample)
{
    double ms = cli_answer_number(sample->now, "time") -
                (sample->before.data ? cli_answer_number(sample->before, "time") : 0);

    return sample->before.data && ms > 0 ? ms / 1000 : 1;
}

struct list {
    struct rates *rates;
    size_t count;
};

static void partitions_add(struct list *list, const struct rates *container, struct slice now,
                           struct slice before, double seconds)
{
    static const char *const names[] = {"id", NULL};
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(now, "partitions"));
    while (document_iter_next(&iter)) {
        struct rates *rates = &list->rates[list->count];
        struct slice was;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        *rates = *container;
        was = before.data
                  ? member_find(cli_answer_inside(before, "partitions"), iter.value.document, names)
                  : SLICE_NONE;
        rates_fill(rates, iter.value.document, was, seconds);
        rates->partition = cli_answer_text(iter.value.document, "id");
        rates->node = cli_answer_text(iter.value.document, "node");
        list->count++;
    }
}

static size_t members_count(struct slice array)
{
    return array.data ? document_count(array) : 0;
}

static size_t partitions_count(struct slice containers)
{
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, containers);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT)
            count += members_count(cli_answer_inside(iter.value.document, "partitions"));
    return count;
}

static void sample_read(const struct cli_top_sample *sample, struct arena *arena,
                        struct list *ret_containers, struct list *ret_partitions)
{
    static const char *const names[] = {"account", "database", "container", NULL};
    struct slice containers = cli_answer_inside(sample->now, "containers");
    double seconds = seconds_between(sample);
    struct document_iter iter;

    ret_containers->rates = ARENA_ARRAY(arena, struct rates, members_count(containers) + 1);
    ret_partitions->rates = ARENA_ARRAY(arena, struct rates, partitions_count(containers) + 1);
    ret_containers->count = ret_partitions->count = 0;
    document_iter_init(&iter, containers);
    while (document_iter_next(&iter)) {
        struct rates *rates = &ret_containers->rates[ret_containers->count];
        struct document_value migrating;
        struct slice now = iter.value.document, was = SLICE_NONE;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        if (sample->before.data)
            was = member_find(cli_answer_inside(sample->before, "containers"), now, names);
        *rates = (struct rates){.account = cli_answer_text(now, "account"),
                                .database = cli_answer_text(now, "database"),
                                .container = cli_answer_text(now, "container")};
        /* without an earlier answer there is no rate to tell */
        rates_fill(rates, now, sample->before.data ? was : now, seconds);
        rates->migrating = document_find(now, SLICE("migrating"), &migrating) &&
                           migrating.type == DOCUMENT_BOOL && migrating.boolean;
        ret_containers->count++;
        partitions_add(ret_partitions, rates, now, sample->before.data ? was : now, seconds);
    }
}

static double weight(const struct rates *rates, enum cli_top_order order)
{
    switch (order) {
    case CLI_TOP_REQUESTS:
        return rates->requests;
    case CLI_TOP_THROTTLED:
        return rates->throttled;
    case CLI_TOP_TIME:
        return rates->ms;
    default:
        return rates->ru;
    }
}

static int heavier_first(const void *a, const void *b, void *order)
{
    double x = weight(a, *(const enum cli_top_order *)order);
    double y = weight(b, *(const enum cli_top_order *)order);

    return (x < y) - (x > y);
}

bool cli_top_busiest(const struct cli_top_sample *sample, enum cli_top_order order,
                     struct arena *arena, struct slice *ret_database, struct slice *ret_container)
{
    struct list containers, partitions;

    sample_read(sample, arena, &containers, &partitions);
    qsort_r(containers.rates, containers.count, sizeof *containers.rates, heavier_first, &order);
    if (!containers.count)
        return false;
    *ret_database = containers.rates[0].database;
    *ret_container = containers.rates[0].container;
    return true;
}

/* --- Drawing --------------------------------------------------------------------------------- */

struct screen {
    struct buf *out;
    size_t rows, columns;
};

static void line_add(struct screen *screen, struct slice line)
{
    size_t len = MIN(line.len, screen->columns);

    if (!screen->rows)
        return;
    screen->rows--;
    while (len && len < line.len && (line.data[len] & 0xC0) == 0x80)
        len--; /* no half of a character */
    buf_append(screen->out, line.data, len);
    BUF_APPEND(screen->out, "\n");
}

/* A heading and the table, of which at most so many rows are shown. */
static void table_add(struct screen *screen, struct cli_table *table, size_t rows)
{
    CLEANUP(buf_done) struct buf text;
    struct slice rest, line;

    buf_init(&text, BUF_DEFAULT_MAX);
    (void)cli_table_fit(table, screen->columns);
    cli_table_append(table, &text);
    rest = buf_slice(&text);
    for (size_t i = 0; i <= rows && slice_split(rest, '\n', &line, &rest); i++)
        line_add(screen, line);
    line_add(screen, SLICE(""));
}

static void containers_draw(struct screen *screen, const struct list *list, size_t rows,
                            struct arena *arena)
{
    static const char *const headings[] = {"CONTAINER", ">RU/S", ">REQUESTS/S", ">THROTTLED/S",
                                           ">MS",       "STATE", NULL};
    struct cli_table *table = cli_table_new(arena, headings);

    for (size_t i = 0; i < MIN(list->count, rows); i++) {
        const struct rates *rates = &list->rates[i];

        cli_table_text(table, arena_printf(arena, "%.*s/%.*s", SLICE_ARG(rates->database),
                                           SLICE_ARG(rates->container)));
        cli_table_number(table, rates->ru, 1);
        cli_table_number(table, rates->requests, 1);
        cli_table_number(table, rates->throttled, 1);
        cli_table_number(table, rates->ms, 2);
        cli_table_text(table, rates->migrating ? SLICE("migrating") : SLICE(""));
    }
    table_add(screen, table, rows);
}

static void partitions_draw(struct screen *screen, const struct list *list, size_t rows,
                            struct arena *arena)
{
    static const char *const headings[] = {"PARTITION", "CONTAINER",    "NODE", ">RU/S",
                                           ">USED %",   ">THROTTLED/S", NULL};
    struct cli_table *table = cli_table_new(arena, headings);

    for (size_t i = 0; i < MIN(list->count, rows); i++) {
        const struct rates *rates = &list->rates[i];

        cli_table_text(table, rates->partition);
        cli_table_text(table, arena_printf(arena, "%.*s/%.*s", SLICE_ARG(rates->database),
                                           SLICE_ARG(rates->container)));
        cli_table_text(table, rates->node);
        cli_table_number(table, rates->ru, 1);
        if (rates->given > 0)
            cli_table_number(table, 100 * rates->ru / rates->given, 0);
        else
            cli_table_text(table, SLICE("-"));
        cli_table_number(table, rates->throttled, 1);
    }
    table_add(screen, table, rows);
}

static void keys_draw(struct screen *screen, const struct cli_top_sample *sample, size_t rows,
                      struct arena *arena)
{
    static const char *const headings[] = {"HOT KEY",      "CONTAINER", "PARTITION",
                                           ">RU (MINUTE)", ">SHARE %",  NULL};
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(sample->keys, "keys"));
    while (sample->keys.data && document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        cli_table_text(table, cli_answer_key(iter.value.document, arena));
        cli_table_text(table, arena_printf(arena, "%.*s/%.*s", SLICE_ARG(sample->keys_database),
                                           SLICE_ARG(sample->keys_container)));
        cli_table_text(table, cli_answer_text(iter.value.document, "partition"));
        cli_table_number(table, cli_answer_number(iter.value.document, "ru"), 1);
        cli_table_number(table, cli_answer_number(iter.value.document, "shareOfPartition") * 100,
                         0);
    }
    table_add(screen, table, rows);
}

static void slow_draw(struct screen *screen, struct slice slow, size_t rows, struct arena *arena)
{
    static const char *const headings[] = {"SLOW REQUEST", ">MS",  ">RU", "STATUS",
                                           "CONTAINER",    "PLAN", NULL};
    struct cli_table *table = cli_table_new(arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(slow, "requests"));
    while (slow.data && document_iter_next(&iter)) {
        struct slice one = iter.value.document;

        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        cli_table_text(table,
                       arena_printf(arena, "%.*s %.*s", SLICE_ARG(cli_answer_text(one, "time")),
                                    SLICE_ARG(cli_answer_text(one, "operation"))));
        cli_table_number(table, cli_answer_number(one, "ms"), 0);
        cli_table_number(table, cli_answer_number(one, "charge"), 2);
        cli_table_text(table, arena_printf(arena, "%.0f", cli_answer_number(one, "status")));
        cli_table_text(table,
                       arena_printf(arena, "%.*s/%.*s", SLICE_ARG(cli_answer_text(one, "database")),
                                    SLICE_ARG(cli_answer_text(one, "container"))));
        cli_table_text(table, cli_answer_text(one, "plan"));
    }
    table_add(screen, table, rows);
}

void cli_top_draw(const struct cli_top_sample *sample, enum cli_top_order order, size_t rows,
                  size_t columns, struct arena *arena, struct buf *out)
{
    struct screen screen = {.out = out, .rows = rows, .columns = columns};
    struct list containers, partitions;
    double requests = 0, ru = 0, throttled = 0;
    size_t part; /* of the rows, for each table; a heading and an empty line besides */

    sample_read(sample, arena, &containers, &partitions);
    qsort_r(containers.rates, containers.count, sizeof *containers.rates, heavier_first, &order);
    qsort_r(partitions.rates, partitions.count, sizeof *partitions.rates, heavier_first, &order);
    for (size_t i = 0; i < containers.count; i++) {
        requests += containers.rates[i].requests;
        ru += containers.rates[i].ru;
        throttled += containers.rates[i].throttled;
    }
    line_add(&screen, arena_printf(arena,
                                   "orrery top: %.1f requests/s, %.1f RU/s, %.1f throttled/s; by "
                                   "%s (s: another order, q: quit)",
                                   requests, ru, throttled, cli_top_order_name(order)));
    line_add(&screen, SLICE(""));
    part = rows > 14 ? (rows - 10) / 4 : 1;
    containers_draw(&screen, &containers, part, arena);
    partitions_draw(&screen, &partitions, part, arena);
    keys_draw(&screen, sample, part, arena);
    slow_draw(&screen, sample->slow, part, arena);
}
