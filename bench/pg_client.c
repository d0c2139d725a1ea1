#include "pg_client.h"

#include "base/memory.h"
#include "support/postgres.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

/* By container. */
static const char *const tables[] = {"items", "keyed"};
static const char *const statements[COSMOS_VERBS][COSMOS_CONTAINERS] = {
    [COSMOS_READ] = {"read_items", "read_keyed"},
    [COSMOS_CREATE] = {"create_items", "create_keyed"},
    [COSMOS_REPLACE] = {"replace_items", "replace_keyed"},
    [COSMOS_PATCH] = {"patch_items", "patch_keyed"},
};
/* Before the name of the table and behind it. */
static const char *const statement_texts[COSMOS_VERBS][2] = {
    [COSMOS_READ] = {"SELECT doc FROM", "WHERE pk=$1 AND id=$2"},
    [COSMOS_CREATE] = {"INSERT INTO", "(pk, id, doc) VALUES ($1, $2, $3)"},
    [COSMOS_REPLACE] = {"UPDATE", "SET doc=$3 WHERE pk=$1 AND id=$2"},
    [COSMOS_PATCH] = {"UPDATE", "SET doc=jsonb_set(doc, '{" COSMOS_CHANGED_NAME
                                "}', $3) WHERE pk=$1 AND id=$2"},
};

struct pg_client {
    struct postgres *server;
    char url[256];
    struct cosmos_requests *requests;
    enum cosmos_container container; /* what the connections are asked now */
    enum cosmos_verb verb;
    bool fills;
    uint64_t changes;
    uint64_t (*next)(void *context);
    void *context;
    PGconn *connections[LOAD_CONNECTIONS_MAX]; /* NULL: not made yet */
};

static void result_check(PGconn *connection, PGresult *result, ExecStatusType expected)
{
    if (PQresultStatus(result) != expected)
        load_fail("PostgreSQL: %s", PQerrorMessage(connection));
    PQclear(result);
}

static void table_make(struct postgres *server, enum cosmos_container container)
{
    char sql[160];

    snprintf(sql, sizeof sql, "CREATE TABLE %s (pk text, id text, doc jsonb, PRIMARY KEY (pk, id))",
             tables[container]);
    postgres_query(server, sql);
    if (container != COSMOS_INDEXED)
        return;
    snprintf(sql, sizeof sql, "CREATE INDEX ON %s USING gin (doc jsonb_path_ops)",
             tables[container]);
    postgres_query(server, sql);
}

struct pg_client *pg_client_new(struct cosmos_requests *requests)
{
    struct pg_client *pg = MEMORY_NEW(struct pg_client);

    pg->server = postgres_start(true);
    pg->requests = requests;
    snprintf(pg->url, sizeof pg->url, "%s", postgres_fresh_url(pg->server));
    for (size_t i = 0; i < COSMOS_CONTAINERS; i++)
        table_make(pg->server, (enum cosmos_container)i);
    for (size_t i = 0; i < 2; i++) {
        static const char *const names[] = {"SHOW fsync", "SHOW synchronous_commit"};

        if (strcmp(postgres_query(pg->server, names[i]), "on") != 0)
            load_fail("PostgreSQL does not write durably: %s is not on", names[i]);
    }
    return pg;
}

void pg_client_free(struct pg_client *pg)
{
    for (size_t i = 0; i < LOAD_CONNECTIONS_MAX; i++)
        if (pg->connections[i])
            PQfinish(pg->connections[i]);
    postgres_free(pg->server);
    memory_free(pg);
}

pid_t pg_client_server(const struct pg_client *pg)
{
    return postgres_process(pg->server);
}

static void statement_prepare(PGconn *connection, const char *name, const char *sql)
{
    result_check(connection, PQprepare(connection, name, sql, 0, NULL), PGRES_COMMAND_OK);
}

static void statements_prepare(PGconn *connection, enum cosmos_container container)
{
    for (size_t verb = 0; verb < COSMOS_VERBS; verb++) {
        char sql[160];

        snprintf(sql, sizeof sql, "%s %s %s", statement_texts[verb][0], tables[container],
                 statement_texts[verb][1]);
        statement_prepare(connection, statements[verb][container], sql);
    }
}

static void fill_prepare(PGconn *connection)
{
    CLEANUP(buf_done) struct buf sql;

    buf_init(&sql, BUF_DEFAULT_MAX);
    buf_printf(&sql, "INSERT INTO %s (pk, id, doc) VALUES ", tables[COSMOS_INDEXED]);
    for (int i = 0; i < PG_FILL_ROWS; i++)
        buf_printf(&sql, "%s($%d, $%d, $%d)", i ? ", " : "", 3 * i + 1, 3 * i + 2, 3 * i + 3);
    buf_append_byte(&sql, '\0');
    statement_prepare(connection, "fill", (const char *)sql.data);
}

static int connection_open(void *context, size_t index)
{
    struct pg_client *pg = context;
    PGconn *connection = pg->connections[index];

    if (!connection) {
        connection = pg->connections[index] = PQconnectdb(pg->url);
        if (PQstatus(connection) != CONNECTION_OK)
            load_fail("PostgreSQL: %s", PQerrorMessage(connection));
        for (size_t i = 0; i < COSMOS_CONTAINERS; i++)
            statements_prepare(connection, (enum cosmos_container)i);
        fill_prepare(connection);
    }
    return PQsocket(connection);
}

static void row_send(struct pg_client *pg, size_t index)
{
    uint64_t n = pg->next(pg->context), change = ++pg->changes;
    const struct cosmos_item item = pg->verb == COSMOS_REPLACE
                                        ? cosmos_item_changed(pg->requests, n, change)
                                        : cosmos_item_parts(pg->requests, n);
    const char *values[] = {item.tenant, item.id, (const char *)item.json.data};
    char changed[COSMOS_CHANGE_SIZE];

    if (pg->verb == COSMOS_PATCH) {
        cosmos_change_json(change, changed);
        values[2] = changed;
    }
    if (PQsendQueryPrepared(pg->connections[index], statements[pg->verb][pg->container],
                            pg->verb == COSMOS_READ ? 2 : 3, values, NULL, NULL, 0) != 1)
        load_fail("PostgreSQL: %s", PQerrorMessage(pg->connections[index]));
}

static void rows_send(struct pg_client *pg, size_t index)
{
    static_assert((int)PG_FILL_ROWS <= (int)COSMOS_TEMPLATES,
                  "the JSON of each has a place of its own");
    char names[PG_FILL_ROWS][2][24];
    const char *values[3 * PG_FILL_ROWS];
    uint64_t first = pg->next(pg->context);

    for (size_t i = 0; i < PG_FILL_ROWS; i++) {
        const struct cosmos_item item = cosmos_item_parts(pg->requests, first + i);

        snprintf(names[i][0], sizeof names[i][0], "%s", item.tenant);
        snprintf(names[i][1], sizeof names[i][1], "%s", item.id);
        values[3 * i] = names[i][0];
        values[3 * i + 1] = names[i][1];
        values[3 * i + 2] = (const char *)item.json.data;
    }
    if (PQsendQueryPrepared(pg->connections[index], "fill", 3 * PG_FILL_ROWS, values, NULL, NULL,
                            0) != 1)
        load_fail("PostgreSQL: %s", PQerrorMessage(pg->connections[index]));
}

static void request_send(void *context, size_t index)
{
    struct pg_client *pg = context;

    if (pg->fills)
        rows_send(pg, index);
    else
        row_send(pg, index);
}

static bool answer_receive(void *context, size_t index)
{
    struct pg_client *pg = context;
    PGconn *connection = pg->connections[index];
    PGresult *result;

    if (PQconsumeInput(connection) != 1)
        load_fail("PostgreSQL: %s", PQerrorMessage(connection));
    if (PQisBusy(connection))
        return false;
    result = PQgetResult(connection);
    if (pg->verb == COSMOS_READ ? PQntuples(result) != 1
                                : !pg->fills && strcmp(PQcmdTuples(result), "1") != 0)
        load_fail("PostgreSQL does not find an item: %s", PQerrorMessage(connection));
    result_check(connection, result, pg->verb == COSMOS_READ ? PGRES_TUPLES_OK : PGRES_COMMAND_OK);
    /* the end of the answer comes in the same packet, so that this does not wait */
    while ((result = PQgetResult(connection)))
        PQclear(result);
    return true;
}

static void connection_keep(void *context UNUSED, size_t index UNUSED)
{
}

struct load_client pg_client_load(struct pg_client *pg, enum cosmos_container container,
                                  enum cosmos_verb verb, uint64_t (*next)(void *context),
                                  void *context)
{
    pg->container = container;
    pg->verb = verb;
    pg->fills = false;
    pg->next = next;
    pg->context = context;
    return (struct load_client){pg, connection_open, request_send, answer_receive, connection_keep};
}

struct load_client pg_client_fill(struct pg_client *pg, uint64_t (*next)(void *context),
                                  void *context)
{
    struct load_client client = pg_client_load(pg, COSMOS_INDEXED, COSMOS_CREATE, next, context);

    pg->fills = true;
    return client;
}
