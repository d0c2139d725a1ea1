#include "query_theirs.h"

#include "base/memory.h"
#include "document/json.h"
#include "space.h"
#include "support/postgres.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

enum { COPY_BYTES = 1 << 20 };

struct query_theirs {
    struct postgres *server;
    PGconn *connection;
    char buffers[48];
    const char *settings[8];
};

static NORETURN void fail(struct query_theirs *theirs)
{
    fprintf(stderr, "PostgreSQL: %s\n", PQerrorMessage(theirs->connection));
    exit(1);
}

static void result_take(struct query_theirs *theirs, PGresult *result, ExecStatusType expected)
{
    if (PQresultStatus(result) != expected)
        fail(theirs);
    PQclear(result);
}

static void command(struct query_theirs *theirs, const char *sql)
{
    result_take(theirs, PQexec(theirs->connection, sql), PGRES_COMMAND_OK);
}

/* --- Loading --------------------------------------------------------------------------------- */

/* A line of COPY. Nothing in these items needs an escape. */
static void line_append(uint64_t n, struct arena *arena, struct buf *buf)
{
    buf_append_slice(buf, bench_item_tenant(n, arena).text);
    buf_append_byte(buf, '\t');
    buf_append_slice(buf, bench_item_id(n, arena).text);
    buf_append_byte(buf, '\t');
    document_json_write(bench_item_document(n, 0, arena), buf);
    buf_append_byte(buf, '\n');
}

static void items_copy(struct query_theirs *theirs, uint64_t count)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    result_take(theirs, PQexec(theirs->connection, "COPY items FROM STDIN"), PGRES_COPY_IN);
    for (uint64_t n = 0; n < count; n++) {
        line_append(n, arena, &buf);
        if (buf.len < COPY_BYTES && n + 1 < count)
            continue;
        if (PQputCopyData(theirs->connection, (const char *)buf.data, (int)buf.len) != 1)
            fail(theirs);
        buf_clear(&buf);
        arena_reset(arena);
    }
    if (PQputCopyEnd(theirs->connection, NULL) != 1)
        fail(theirs);
    result_take(theirs, PQgetResult(theirs->connection), PGRES_COMMAND_OK);
    while (PQgetResult(theirs->connection))
        ;
}

static void settings_make(struct query_theirs *theirs, size_t cache_bytes)
{
    size_t count = 0;

    snprintf(theirs->buffers, sizeof theirs->buffers, "shared_buffers=%zuMB", cache_bytes >> 20);
    theirs->settings[count++] = theirs->buffers;
    /* What one would set on a machine like this: a solid disk, memory for sorting as ours has. */
    theirs->settings[count++] = "random_page_cost=1.1";
    theirs->settings[count++] = "work_mem=64MB";
    theirs->settings[count++] = "maintenance_work_mem=256MB";
    theirs->settings[count++] = "max_wal_size=8GB";
    theirs->settings[count] = NULL;
}

struct query_theirs *query_theirs_new(uint64_t count, size_t cache_bytes)
{
    struct query_theirs *theirs = MEMORY_NEW(struct query_theirs);

    settings_make(theirs, cache_bytes);
    theirs->server = postgres_start_with(true, theirs->settings);
    theirs->connection = PQconnectdb(postgres_fresh_url(theirs->server));
    if (PQstatus(theirs->connection) != CONNECTION_OK)
        fail(theirs);
    command(theirs, "CREATE TABLE items (pk text, id text, doc jsonb)");
    items_copy(theirs, count);
    command(theirs, "ALTER TABLE items ADD PRIMARY KEY (pk, id)");
    for (size_t i = 0; i < query_index_count; i++)
        command(theirs, query_indexes[i]);
    command(theirs, "VACUUM (ANALYZE) items");
    for (size_t i = 0; i < query_case_count; i++)
        result_take(
            theirs,
            PQprepare(theirs->connection, query_cases[i].name, query_cases[i].theirs, 0, NULL),
            PGRES_COMMAND_OK);
    return theirs;
}

void query_theirs_free(struct query_theirs *theirs)
{
    PQfinish(theirs->connection);
    postgres_free(theirs->server);
    memory_free(theirs);
}

pid_t query_theirs_process(const struct query_theirs *theirs)
{
    return postgres_process(theirs->server);
}

/* --- Running --------------------------------------------------------------------------------- */

static int value_count(const struct query_case *query, const struct query_values *values)
{
    return (int)values->count + query->keyed;
}

void query_theirs_run(struct query_theirs *theirs, const struct query_case *query,
                      const struct query_values *values, struct query_theirs_result *result)
{
    PGresult *answer = PQexecPrepared(theirs->connection, query->name, value_count(query, values),
                                      values->texts, NULL, NULL, 0);
    int rows = PQntuples(answer), fields = PQnfields(answer);

    if (PQresultStatus(answer) != PGRES_TUPLES_OK)
        fail(theirs);
    if (!result->rows && rows)
        snprintf(result->first, sizeof result->first, "%s", PQgetvalue(answer, 0, 0));
    result->rows += (uint64_t)rows;
    for (int i = 0; i < rows; i++)
        for (int field = 0; field < fields; field++)
            result->bytes += (uint64_t)PQgetlength(answer, i, field);
    PQclear(answer);
}

void query_theirs_explain(struct query_theirs *theirs, const struct query_case *query,
                          const struct query_values *values)
{
    CLEANUP(buf_done) struct buf sql;
    PGresult *answer;

    buf_init(&sql, BUF_DEFAULT_MAX);
    buf_printf(&sql, "EXPLAIN (COSTS OFF) EXECUTE \"%s\"", query->name);
    for (int i = 0; i < value_count(query, values); i++)
        buf_printf(&sql, "%s'%s'", i ? ", " : "(", values->texts[i]);
    if (value_count(query, values))
        buf_append_byte(&sql, ')');
    buf_append_byte(&sql, 0);
    answer = PQexec(theirs->connection, (const char *)sql.data);
    if (PQresultStatus(answer) != PGRES_TUPLES_OK)
        fail(theirs);
    printf("  %s, PostgreSQL:", query->name);
    for (int i = 0; i < PQntuples(answer); i++)
        printf(" %s;", PQgetvalue(answer, i, 0));
    printf("\n");
    PQclear(answer);
}
