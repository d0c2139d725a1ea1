#include "gremlin_theirs.h"

#include "base/memory.h"
#include "support/postgres.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

/* One statement for each work, named by its number. */
static const char *const statements[GREMLIN_WORKS] = {
    [GREMLIN_POINT] = "SELECT id, label, pk, doc FROM vertex WHERE id = $1",
    [GREMLIN_HOP] = "SELECT v.doc->>'name' FROM edge e JOIN vertex v ON v.id = e.dst "
                    "WHERE e.src = $1 AND e.label = 'knows'",
    [GREMLIN_HOPS] = "SELECT count(DISTINCT f.dst) FROM edge e JOIN edge f ON f.src = e.dst "
                     "WHERE e.src = $1 AND e.label = 'knows' AND f.label = 'knows'",
    [GREMLIN_BACK] = "SELECT count(*) FROM edge e WHERE e.dst = $1 AND e.label = 'knows'",
    [GREMLIN_COUNT] = "SELECT count(*) FROM vertex WHERE label = 'person' AND "
                      "(doc->>'age')::int = $1::int",
    [GREMLIN_ADD_VERTEX] = "INSERT INTO vertex VALUES ($1, $2, 'person', $3)",
    [GREMLIN_ADD_EDGE] = "INSERT INTO edge SELECT gen_random_uuid()::text, a.id, 'likes', b.id, $3 "
                         "FROM vertex a, vertex b WHERE a.id = $1 AND b.id = $2",
};

struct gremlin_theirs {
    struct postgres *server;
    char url[256];
    enum gremlin_work work;
    uint64_t (*next)(void *context);
    void *context;
    PGconn *connections[LOAD_CONNECTIONS_MAX]; /* NULL: not made yet */
};

struct gremlin_theirs *gremlin_theirs_new(void)
{
    static const char *const made[] = {
        "CREATE TABLE vertex (id text PRIMARY KEY, pk text, label text, doc jsonb)",
        "CREATE TABLE edge (id text PRIMARY KEY, src text, label text, dst text, doc jsonb)",
    };
    static const char *const durable[] = {"SHOW fsync", "SHOW synchronous_commit"};
    struct gremlin_theirs *theirs = MEMORY_NEW(struct gremlin_theirs);

    theirs->server = postgres_start(true);
    snprintf(theirs->url, sizeof theirs->url, "%s", postgres_fresh_url(theirs->server));
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        postgres_query(theirs->server, made[i]);
    for (size_t i = 0; i < ARRAY_LEN(durable); i++)
        if (strcmp(postgres_query(theirs->server, durable[i]), "on") != 0)
            load_fail("PostgreSQL does not write durably: %s is not on", durable[i]);
    return theirs;
}

void gremlin_theirs_free(struct gremlin_theirs *theirs)
{
    for (size_t i = 0; i < LOAD_CONNECTIONS_MAX; i++)
        if (theirs->connections[i])
            PQfinish(theirs->connections[i]);
    postgres_free(theirs->server);
    memory_free(theirs);
}

pid_t gremlin_theirs_server(const struct gremlin_theirs *theirs)
{
    return postgres_process(theirs->server);
}

static int connection_open(void *context, size_t index)
{
    struct gremlin_theirs *theirs = context;
    PGconn *connection = theirs->connections[index];

    if (connection)
        return PQsocket(connection);
    connection = theirs->connections[index] = PQconnectdb(theirs->url);
    if (PQstatus(connection) != CONNECTION_OK)
        load_fail("PostgreSQL: %s", PQerrorMessage(connection));
    for (size_t i = 0; i < GREMLIN_WORKS; i++) {
        char name[8];
        PGresult *result;

        snprintf(name, sizeof name, "s%zu", i);
        result = PQprepare(connection, name, statements[i], 0, NULL);
        if (PQresultStatus(result) != PGRES_COMMAND_OK)
            load_fail("PostgreSQL: %s", PQerrorMessage(connection));
        PQclear(result);
    }
    return PQsocket(connection);
}

static void statement_send(void *context, size_t index)
{
    struct gremlin_theirs *theirs = context;
    uint64_t n = theirs->next(theirs->context);
    char name[8], first[32], second[32], doc[128];
    const char *values[] = {first, second, doc};
    int count = 1;

    snprintf(name, sizeof name, "s%d", (int)theirs->work);
    snprintf(first, sizeof first, "v%llu", (unsigned long long)n);
    if (theirs->work == GREMLIN_COUNT) {
        snprintf(first, sizeof first, "%llu", (unsigned long long)(n % GREMLIN_AGES));
    } else if (theirs->work == GREMLIN_ADD_VERTEX) {
        snprintf(second, sizeof second, "p%llu", (unsigned long long)(n % GREMLIN_GROUPS));
        snprintf(doc, sizeof doc, "{\"name\":\"name%llu\",\"age\":%llu}", (unsigned long long)n,
                 (unsigned long long)(n % GREMLIN_AGES));
        count = 3;
    } else if (theirs->work == GREMLIN_ADD_EDGE) {
        snprintf(second, sizeof second, "v%llu", (unsigned long long)theirs->next(theirs->context));
        snprintf(doc, sizeof doc, "{\"weight\":0.5}");
        count = 3;
    }
    if (PQsendQueryPrepared(theirs->connections[index], name, count, values, NULL, NULL, 0) != 1)
        load_fail("PostgreSQL: %s", PQerrorMessage(theirs->connections[index]));
}

static bool answer_receive(void *context, size_t index)
{
    struct gremlin_theirs *theirs = context;
    PGconn *connection = theirs->connections[index];
    PGresult *result;

    if (PQconsumeInput(connection) != 1)
        load_fail("PostgreSQL: %s", PQerrorMessage(connection));
    if (PQisBusy(connection))
        return false;
    result = PQgetResult(connection);
    if ((PQresultStatus(result) != PGRES_COMMAND_OK || strcmp(PQcmdTuples(result), "1") != 0) &&
        (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) == 0))
        load_fail("PostgreSQL finds nothing: %s", PQerrorMessage(connection));
    PQclear(result);
    while ((result = PQgetResult(connection)))
        PQclear(result);
    return true;
}

static void connection_keep(void *context UNUSED, size_t index UNUSED)
{
}

struct load_client gremlin_theirs_load(struct gremlin_theirs *theirs, enum gremlin_work work,
                                       uint64_t (*next)(void *context), void *context)
{
    theirs->work = work;
    theirs->next = next;
    theirs->context = context;
    return (struct load_client){theirs, connection_open, statement_send, answer_receive,
                                connection_keep};
}

/* --- Filling ---------------------------------------------------------------------------------- */

static void copy_begin(PGconn *connection, const char *statement)
{
    PGresult *result = PQexec(connection, statement);

    if (PQresultStatus(result) != PGRES_COPY_IN)
        load_fail("PostgreSQL: %s", PQerrorMessage(connection));
    PQclear(result);
}

static void copy_row(PGconn *connection, const char *row)
{
    if (PQputCopyData(connection, row, (int)strlen(row)) != 1)
        load_fail("PostgreSQL: %s", PQerrorMessage(connection));
}

static void copy_end(PGconn *connection)
{
    PGresult *result;

    if (PQputCopyEnd(connection, NULL) != 1)
        load_fail("PostgreSQL: %s", PQerrorMessage(connection));
    while ((result = PQgetResult(connection))) {
        if (PQresultStatus(result) != PGRES_COMMAND_OK)
            load_fail("PostgreSQL: %s", PQerrorMessage(connection));
        PQclear(result);
    }
}

void gremlin_theirs_fill(struct gremlin_theirs *theirs, uint64_t vertices)
{
    static const char *const indexes[] = {
        "CREATE INDEX ON vertex (label, ((doc->>'age')::int))",
        "CREATE INDEX ON edge (src, label, dst)",
        "CREATE INDEX ON edge (dst, label, src)",
        "VACUUM ANALYZE",
    };
    PGconn *connection;
    char row[256];

    connection_open(theirs, 0);
    connection = theirs->connections[0];
    copy_begin(connection, "COPY vertex FROM STDIN");
    for (uint64_t n = 0; n < vertices; n++) {
        snprintf(row, sizeof row, "v%llu\tp%llu\tperson\t{\"name\":\"name%llu\",\"age\":%llu}\n",
                 (unsigned long long)n, (unsigned long long)(n % GREMLIN_GROUPS),
                 (unsigned long long)n, (unsigned long long)(n % GREMLIN_AGES));
        copy_row(connection, row);
    }
    copy_end(connection);
    copy_begin(connection, "COPY edge FROM STDIN");
    for (uint64_t n = 0; n < vertices; n++) {
        for (uint64_t k = 0; k < GREMLIN_DEGREE; k++) {
            snprintf(row, sizeof row, "e%llu\tv%llu\tknows\tv%llu\t{\"weight\":0.5}\n",
                     (unsigned long long)(n * GREMLIN_DEGREE + k), (unsigned long long)n,
                     (unsigned long long)gremlin_target(n, k, vertices));
            copy_row(connection, row);
        }
    }
    copy_end(connection);
    for (size_t i = 0; i < ARRAY_LEN(indexes); i++)
        postgres_query(theirs->server, indexes[i]);
}
