#include "mongo_theirs.h"

#include "base/buf.h"
#include "base/memory.h"
#include "support/postgres.h"

#include <libpq-fe.h>
#include <stdio.h>

/* One statement for each work, named by its number. */
static const char *const statements[MONGO_WORKS] = {
    [MONGO_INSERT_ONE] = "INSERT INTO one (id, doc) VALUES ($1, $2)",
    [MONGO_INSERT_MANY] =
        "INSERT INTO many (id, doc) SELECT v->>'id', v FROM jsonb_array_elements($1::jsonb) v",
    [MONGO_FIND_ID] = "SELECT doc FROM items WHERE id = $1",
    [MONGO_FIND_INDEXED] = "SELECT doc FROM items WHERE doc->>'tenant' = $1",
    [MONGO_UPDATE_INC] = "UPDATE items SET doc = jsonb_set(doc, '{revision}', "
                         "to_jsonb((doc->>'revision')::bigint + 1)) WHERE id = $1",
    [MONGO_GROUP] = "SELECT doc->'count', count(*), sum((doc->>'amount')::float8) FROM items "
                    "GROUP BY 1",
};

struct mongo_theirs {
    struct postgres *server;
    char url[256];
    struct cosmos_requests *requests;
    struct buf many; /* an array of documents */
    enum mongo_work work;
    uint64_t (*next)(void *context);
    void *context;
    PGconn *connections[LOAD_CONNECTIONS_MAX]; /* NULL: not made yet */
};

struct mongo_theirs *mongo_theirs_new(struct cosmos_requests *requests)
{
    static const char *const made[] = {
        "CREATE TABLE one (id text PRIMARY KEY, doc jsonb)",
        "CREATE TABLE many (id text PRIMARY KEY, doc jsonb)",
        "CREATE TABLE items (id text PRIMARY KEY, doc jsonb)",
        "CREATE INDEX ON items ((doc->>'tenant'))",
    };
    static const char *const durable[] = {"SHOW fsync", "SHOW synchronous_commit"};
    struct mongo_theirs *theirs = MEMORY_NEW(struct mongo_theirs);

    theirs->server = postgres_start(true);
    theirs->requests = requests;
    buf_init(&theirs->many, BUF_DEFAULT_MAX);
    snprintf(theirs->url, sizeof theirs->url, "%s", postgres_fresh_url(theirs->server));
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        postgres_query(theirs->server, made[i]);
    for (size_t i = 0; i < ARRAY_LEN(durable); i++)
        if (strcmp(postgres_query(theirs->server, durable[i]), "on") != 0)
            load_fail("PostgreSQL does not write durably: %s is not on", durable[i]);
    return theirs;
}

void mongo_theirs_free(struct mongo_theirs *theirs)
{
    for (size_t i = 0; i < LOAD_CONNECTIONS_MAX; i++)
        if (theirs->connections[i])
            PQfinish(theirs->connections[i]);
    postgres_free(theirs->server);
    buf_done(&theirs->many);
    memory_free(theirs);
}

pid_t mongo_theirs_server(const struct mongo_theirs *theirs)
{
    return postgres_process(theirs->server);
}

/* The documents from the first on, as one JSON text with a NUL. */
static const char *many_make(struct mongo_theirs *theirs, uint64_t first)
{
    buf_clear(&theirs->many);
    for (uint64_t i = 0; i < MONGO_MANY; i++) {
        buf_append_byte(&theirs->many, i ? ',' : '[');
        buf_append_slice(&theirs->many, cosmos_item_parts(theirs->requests, first + i).json);
    }
    BUF_APPEND(&theirs->many, "]");
    buf_append_byte(&theirs->many, '\0');
    return (const char *)theirs->many.data;
}

static int connection_open(void *context, size_t index)
{
    struct mongo_theirs *theirs = context;
    PGconn *connection = theirs->connections[index];

    if (connection)
        return PQsocket(connection);
    connection = theirs->connections[index] = PQconnectdb(theirs->url);
    if (PQstatus(connection) != CONNECTION_OK)
        load_fail("PostgreSQL: %s", PQerrorMessage(connection));
    for (size_t i = 0; i < MONGO_WORKS; i++) {
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
    struct mongo_theirs *theirs = context;
    uint64_t n = theirs->next(theirs->context);
    const char *values[2] = {NULL, NULL};
    struct cosmos_item item;
    int count = 1;
    char name[8];

    snprintf(name, sizeof name, "s%d", (int)theirs->work);
    if (theirs->work == MONGO_INSERT_MANY) {
        values[0] = many_make(theirs, n);
    } else if (theirs->work == MONGO_GROUP) {
        count = 0;
    } else {
        item = cosmos_item_parts(theirs->requests, n);
        values[0] = theirs->work == MONGO_FIND_INDEXED ? item.tenant : item.id;
        if (theirs->work == MONGO_INSERT_ONE) {
            values[1] = (const char *)item.json.data;
            count = 2;
        }
    }
    if (PQsendQueryPrepared(theirs->connections[index], name, count, values, NULL, NULL, 0) != 1)
        load_fail("PostgreSQL: %s", PQerrorMessage(theirs->connections[index]));
}

static bool answer_receive(void *context, size_t index)
{
    struct mongo_theirs *theirs = context;
    PGconn *connection = theirs->connections[index];
    PGresult *result;

    if (PQconsumeInput(connection) != 1)
        load_fail("PostgreSQL: %s", PQerrorMessage(connection));
    if (PQisBusy(connection))
        return false;
    result = PQgetResult(connection);
    if (PQresultStatus(result) != PGRES_COMMAND_OK &&
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

struct load_client mongo_theirs_load(struct mongo_theirs *theirs, enum mongo_work work,
                                     uint64_t (*next)(void *context), void *context)
{
    theirs->work = work;
    theirs->next = next;
    theirs->context = context;
    return (struct load_client){theirs, connection_open, statement_send, answer_receive,
                                connection_keep};
}

void mongo_theirs_fill(struct mongo_theirs *theirs, uint64_t count)
{
    PGconn *connection;

    connection_open(theirs, 0);
    connection = theirs->connections[0];
    for (uint64_t n = 0; n < count; n++) {
        struct cosmos_item item = cosmos_item_parts(theirs->requests, n);
        const char *values[] = {item.id, (const char *)item.json.data};
        PGresult *result = PQexecParams(connection, "INSERT INTO items VALUES ($1, $2)", 2, NULL,
                                        values, NULL, NULL, 0);

        if (PQresultStatus(result) != PGRES_COMMAND_OK)
            load_fail("PostgreSQL: %s", PQerrorMessage(connection));
        PQclear(result);
    }
    postgres_query(theirs->server, "ANALYZE");
}
