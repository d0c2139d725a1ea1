/* One after the other, the best first: each is judged by the queries that those before it leave. A
 * table is taken to keep whole items, which is the most it can cost; who selects fewer properties
 * pays less. Its rows are written by the throughput of its own, one for each write to the
 * container, and twice where the property changes, for then a row moves. */
#include "advise/tables.h"

#include "document/json.h"

#include <math.h>

#define GOOD_DAYS_MIN 365.0
#define GOOD_FULL_MAX 0.8

/* While they are looked for. */
struct search {
    const struct advise_workload *workload;
    const struct advise_key *key;
    const struct advise_options *options;
    struct arena *arena;
    const struct advise_operation *operations;
    size_t count;
    bool *open;        /* of each operation: a query that asks several partitions */
    double weight;     /* of all operations */
    double seconds;    /* that they took */
    double writes_cru; /* of all writes */
    double write_weight;
};

static bool is_write(const struct advise_operation *operation)
{
    return operation->kind != ADVISE_READ && operation->kind != ADVISE_QUERY;
}

static void search_begin(struct search *search)
{
    const struct advise_operation *operations = search->operations;

    search->open = ARENA_ARRAY(search->arena, bool, search->count + 1);
    for (size_t i = 0; i < search->count; i++) {
        search->weight += operations[i].weight;
        if (is_write(&operations[i])) {
            search->writes_cru += (double)operations[i].weight * (double)operations[i].cru;
            search->write_weight += operations[i].weight;
        }
        search->open[i] =
            operations[i].kind == ADVISE_QUERY &&
            advise_visit_of(search->key, &operations[i], search->options, 0).partitions > 1;
    }
    search->seconds =
        search->count
            ? fmax(1, (double)(operations[search->count - 1].time_ms - operations[0].time_ms + 1) /
                          1000)
            : 1;
}

static double per_second(const struct search *search, double cru)
{
    double load = search->options->load;

    return cru / 100 / search->seconds * (load > 0 ? load : 1);
}

/* What a table by a property would do for the queries that are still open. */
static struct advise_table table_judge(const struct search *search, uint8_t path)
{
    const struct advise_path *paths;
    struct advise_key key = {.kind = ADVISE_PROPERTY, .path_count = 1, .paths = {path}};
    struct advise_table table = {.path = path};
    double saved = 0, moved = 0;
    size_t count;

    paths = advise_workload_paths(search->workload, &count);
    for (size_t i = 0; i < search->count; i++) {
        const struct advise_operation *operation = &search->operations[i];

        if (!search->open[i] || !(operation->given & UINT64_C(1) << path))
            continue;
        table.queries += operation->weight / search->weight;
        saved += (double)operation->weight *
                 (double)(advise_visit_of(search->key, operation, search->options, 0).cru -
                          advise_visit_of(&key, operation, search->options, 0).cru);
    }
    if (search->write_weight > 0)
        moved = (double)paths[path].changed * search->writes_cru / search->write_weight;
    table.saved_ru = per_second(search, saved);
    table.cost_ru = per_second(search, search->writes_cru + moved);
    table.bytes = (double)advise_workload_bytes_seen(search->workload);
    return table;
}

/* Values that are objects or arrays make no row, and a view that lacks items answers nobody. */
static bool is_key(const struct search *search, uint8_t path)
{
    const struct advise_key key = {.kind = ADVISE_PROPERTY, .path_count = 1, .paths = {path}};
    const struct advise_path *paths;
    struct advise_figures figures;
    size_t count;

    paths = advise_workload_paths(search->workload, &count);
    if (paths[path].nested || !paths[path].present)
        return false;
    advise_evaluate(search->workload, &key, search->options, &figures);
    return figures.full <= GOOD_FULL_MAX && figures.days_to_limit >= GOOD_DAYS_MIN;
}

static void answered(struct search *search, uint8_t path)
{
    for (size_t i = 0; i < search->count; i++)
        if (search->operations[i].given & UINT64_C(1) << path)
            search->open[i] = false;
}

/* The best of those that are worth it; a path of the workload, or -1. tried: bits of paths. */
static int table_best(const struct search *search, uint64_t tried, struct advise_table *ret_table)
{
    size_t count;
    int best = -1;

    (void)advise_workload_paths(search->workload, &count);
    for (size_t p = 0; p < count; p++) {
        struct advise_table table;

        if (tried & UINT64_C(1) << p)
            continue;
        table = table_judge(search, (uint8_t)p);
        if (table.saved_ru <= table.cost_ru ||
            (best >= 0 &&
             table.saved_ru - table.cost_ru <= ret_table->saved_ru - ret_table->cost_ru))
            continue;
        best = (int)p;
        *ret_table = table;
    }
    return best;
}

/* --- Words ----------------------------------------------------------------------------------- */

static void bytes_append(double bytes, struct buf *out)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
    size_t unit = 0;

    for (; bytes >= 1000 && unit + 1 < ARRAY_LEN(units); unit++)
        bytes /= 1000;
    buf_printf(out, "%.*f %s", unit > 0 && bytes < 10, bytes, units[unit]);
}

/* The id of an item is called _id in its view. */
static struct slice key_path(struct slice path)
{
    return slice_equal(path, SLICE("/id")) ? SLICE("/_id") : path;
}

static struct slice definition_of(const struct search *search, const struct advise_table *table)
{
    const struct advise_target *target = &search->options->target;
    CLEANUP(buf_done) struct buf out;
    CLEANUP(buf_done) struct buf id;

    buf_init(&out, BUF_DEFAULT_MAX);
    buf_init(&id, BUF_DEFAULT_MAX);
    buf_append_slice(&id, target->container.len ? target->container : SLICE("items"));
    buf_append_text(&id, "-by");
    for (size_t i = 0; i < table->name.len; i++)
        buf_append_byte(&id, table->name.data[i] == '/' || table->name.data[i] == '"'
                                 ? '-'
                                 : table->name.data[i]);
    buf_append_text(&out, "{\"id\":");
    document_json_write_string(buf_slice(&id), &out);
    buf_append_text(&out, ",\"partitionKey\":{\"paths\":[");
    document_json_write_string(key_path(table->name), &out);
    buf_append_text(&out,
                    "],\"version\":2},\"materializedViewDefinition\":{\"sourceCollectionId\":");
    document_json_write_string(target->container.len ? target->container : SLICE("..."), &out);
    buf_append_text(&out, ",\"definition\":\"SELECT * FROM c\"}}");
    return arena_copy(search->arena, buf_slice(&out));
}

static void table_words(const struct search *search, struct advise_table *table)
{
    const struct advise_path *paths;
    CLEANUP(buf_done) struct buf out;
    size_t count;

    buf_init(&out, BUF_DEFAULT_MAX);
    paths = advise_workload_paths(search->workload, &count);
    table->name = paths[table->path].text;
    buf_printf(&out, "%.*f%% of requests are queries that name ", table->queries < 0.1,
               table->queries * 100);
    buf_append_slice(&out, table->name);
    buf_append_text(&out, " and not ");
    advise_key_describe(search->workload, search->key, &out);
    if (table->view.data)
        buf_printf(&out,
                   ": the view \"%.*s\" answers those whose properties it keeps from one "
                   "partition, ",
                   SLICE_ARG(table->view));
    else
        buf_printf(&out,
                   ": an index table, a view by that property, answers them from one "
                   "partition instead of %u, ",
                   search->options->partitions);
    buf_printf(&out, "for about %.0f RU/s less. Its rows cost at most %.0f RU/s to keep and ",
               table->saved_ru, table->cost_ru);
    bytes_append(table->bytes, &out);
    buf_append_text(&out, table->view.data ? " to store."
                                           : " to store, if it has whole items; less with the "
                                             "properties alone that these queries need.");
    table->reason = arena_copy(search->arena, buf_slice(&out));
    if (!table->view.data)
        table->definition = definition_of(search, table);
}

size_t advise_tables_find(const struct advise_workload *workload, const struct advise_key *key,
                          const struct advise_options *options, struct arena *arena,
                          struct advise_table **ret_tables)
{
    struct search search = {.workload = workload, .key = key, .options = options, .arena = arena};
    struct advise_table *tables = ARENA_ARRAY(arena, struct advise_table, 2 * ADVISE_TABLES_MAX);
    uint64_t tried = 0;
    size_t count = 0, proposed = 0;

    *ret_tables = tables;
    search.operations = advise_workload_operations(workload, &search.count);
    if (key->kind == ADVISE_ONE_KEY || !search.count)
        return 0;
    search_begin(&search);
    for (size_t i = 0; i < options->view_count && count < ADVISE_TABLES_MAX; i++) {
        int path = advise_workload_path(workload, options->views[i].path);

        if (path < 0 || tried & UINT64_C(1) << path)
            continue;
        tried |= UINT64_C(1) << path;
        tables[count] = table_judge(&search, (uint8_t)path);
        tables[count].view = options->views[i].name;
        answered(&search, (uint8_t)path);
        count += tables[count].queries > 0;
    }
    while (proposed < ADVISE_TABLES_MAX) {
        struct advise_table table;
        int path = table_best(&search, tried, &table);

        if (path < 0)
            break;
        tried |= UINT64_C(1) << path;
        if (!is_key(&search, (uint8_t)path))
            continue;
        answered(&search, (uint8_t)path);
        tables[count++] = table;
        proposed++;
    }
    for (size_t i = 0; i < count; i++)
        table_words(&search, &tables[i]);
    return count;
}
