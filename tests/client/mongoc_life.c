/* What a program in C does with MongoDB through libmongoc, against a server whose URI it is given:
 * documents, cursors, bulks, an index, a pipeline, a session with a transaction, a change stream.
 *
 *     mongoc_life URI
 *
 * Prints a line for each claim, as TAP, and ends with 0 if all hold. */
#include <mongoc/mongoc.h>
#include <stdio.h>

static int claims, failures;

static void claim(bool holds, const char *what, const bson_error_t *error)
{
    printf("%sok %d - %s\n", holds ? "" : "not ", ++claims, what);
    if (!holds) {
        failures++;
        if (error && error->code)
            printf("# %u: %s\n", error->code, error->message);
    }
}

static int64_t counted(mongoc_collection_t *collection, const bson_t *filter)
{
    bson_error_t error;

    return mongoc_collection_count_documents(collection, filter, NULL, NULL, NULL, &error);
}

static void documents_live(mongoc_collection_t *people)
{
    bson_t *one = BCON_NEW("_id", BCON_INT32(1), "name", "Ann", "seen", "[", "monday", "]");
    bson_t *filter = BCON_NEW("_id", BCON_INT32(1)), reply;
    bson_t *change =
        BCON_NEW("$inc", "{", "visits", BCON_INT32(2), "}", "$push", "{", "seen", "tuesday", "}");
    bson_error_t error = {0};
    mongoc_cursor_t *cursor;
    const bson_t *found;
    bson_iter_t iter;

    claim(mongoc_collection_insert_one(people, one, NULL, NULL, &error), "a document is inserted",
          &error);
    claim(!mongoc_collection_insert_one(people, one, NULL, NULL, &error) && error.code == 11000,
          "but not twice", &error);
    claim(mongoc_collection_update_one(people, filter, change, NULL, &reply, &error) &&
              bson_iter_init_find(&iter, &reply, "modifiedCount") && bson_iter_int32(&iter) == 1,
          "it is updated", &error);
    bson_destroy(&reply);
    cursor = mongoc_collection_find_with_opts(people, filter, NULL, NULL);
    claim(mongoc_cursor_next(cursor, &found) && bson_iter_init_find(&iter, found, "visits") &&
              bson_iter_int32(&iter) == 2,
          "and found as it is then", NULL);
    mongoc_cursor_destroy(cursor);
    claim(mongoc_collection_delete_one(people, filter, NULL, NULL, &error), "and deleted", &error);
    claim(counted(people, filter) == 0, "so that there is none", NULL);
    bson_destroy(one);
    bson_destroy(filter);
    bson_destroy(change);
}

static void bulks_live(mongoc_collection_t *numbers)
{
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(numbers, NULL);
    bson_t *options = BCON_NEW("batchSize", BCON_INT32(50)), *all = bson_new(), reply;
    bson_t *pipeline = BCON_NEW("pipeline", "[", "{", "$group", "{", "_id", BCON_NULL, "sum", "{",
                                "$sum", "$n", "}", "}", "}", "]");
    bson_error_t error = {0};
    mongoc_cursor_t *cursor;
    const bson_t *found;
    bson_iter_t iter;
    int seen = 0;

    for (int i = 0; i < 1000; i++) {
        bson_t *number = BCON_NEW("_id", BCON_INT32(i), "n", BCON_INT64(i));

        mongoc_bulk_operation_insert(bulk, number);
        bson_destroy(number);
    }
    claim(mongoc_bulk_operation_execute(bulk, &reply, &error) != 0, "a bulk of 1,000", &error);
    mongoc_bulk_operation_destroy(bulk);
    bson_destroy(&reply);
    cursor = mongoc_collection_find_with_opts(numbers, all, options, NULL);
    while (mongoc_cursor_next(cursor, &found))
        seen++;
    claim(!mongoc_cursor_error(cursor, &error) && seen == 1000, "is read in batches of 50", &error);
    mongoc_cursor_destroy(cursor);
    cursor = mongoc_collection_aggregate(numbers, MONGOC_QUERY_NONE, pipeline, NULL, NULL);
    claim(mongoc_cursor_next(cursor, &found) && bson_iter_init_find(&iter, found, "sum") &&
              bson_iter_as_int64(&iter) == 499500,
          "and summed by a pipeline", NULL);
    mongoc_cursor_destroy(cursor);
    bson_destroy(options);
    bson_destroy(all);
    bson_destroy(pipeline);
}

static void indexes_live(mongoc_database_t *database, mongoc_collection_t *numbers)
{
    bson_t *command =
        BCON_NEW("createIndexes", "numbers", "indexes", "[", "{", "key", "{", "n", BCON_INT32(1),
                 "}", "name", "n_1", "unique", BCON_BOOL(true), "}", "]");
    bson_error_t error = {0};
    mongoc_cursor_t *cursor;
    const bson_t *found;
    int seen = 0;

    claim(mongoc_database_write_command_with_opts(database, command, NULL, NULL, &error),
          "a unique index is built", &error);
    cursor = mongoc_collection_find_indexes_with_opts(numbers, NULL);
    while (mongoc_cursor_next(cursor, &found))
        seen++;
    claim(seen == 2, "and listed beside _id", NULL);
    mongoc_cursor_destroy(cursor);
    bson_destroy(command);
}

static void transactions_live(mongoc_client_t *client, mongoc_collection_t *people)
{
    bson_t options = BSON_INITIALIZER, *one = BCON_NEW("_id", "t"), *filter = BCON_NEW("_id", "t");
    mongoc_client_session_t *session;
    bson_error_t error = {0};

    session = mongoc_client_start_session(client, NULL, &error);
    claim(session != NULL, "a session begins", &error);
    if (!session)
        goto done;
    claim(mongoc_client_session_append(session, &options, &error) &&
              mongoc_client_session_start_transaction(session, NULL, &error) &&
              mongoc_collection_insert_one(people, one, &options, NULL, &error),
          "a transaction inserts", &error);
    claim(counted(people, filter) == 0, "what nobody else sees", NULL);
    claim(mongoc_client_session_abort_transaction(session, &error) && counted(people, filter) == 0,
          "nor when it is given up", &error);
    claim(mongoc_client_session_start_transaction(session, NULL, &error) &&
              mongoc_collection_insert_one(people, one, &options, NULL, &error) &&
              mongoc_client_session_commit_transaction(session, NULL, &error) &&
              counted(people, filter) == 1,
          "but when it is committed", &error);
    mongoc_client_session_destroy(session);
done:
    bson_destroy(&options);
    bson_destroy(one);
    bson_destroy(filter);
}

static void streams_live(mongoc_collection_t *people)
{
    bson_t pipeline = BSON_INITIALIZER, *one = BCON_NEW("_id", "s");
    mongoc_change_stream_t *stream = mongoc_collection_watch(people, &pipeline, NULL);
    const bson_t *event, *document;
    bson_error_t error = {0};
    bson_iter_t iter;
    bool came = false;

    (void)mongoc_change_stream_next(stream, &event); /* it stands behind all that was */
    claim(mongoc_collection_insert_one(people, one, NULL, NULL, &error), "somebody writes", &error);
    for (int i = 0; i < 20 && !came; i++)
        came = mongoc_change_stream_next(stream, &event);
    claim(came && bson_iter_init_find(&iter, event, "operationType") &&
              strcmp(bson_iter_utf8(&iter, NULL), "insert") == 0,
          "and a stream tells it", NULL);
    claim(!mongoc_change_stream_error_document(stream, &error, &document), "without an error",
          &error);
    mongoc_change_stream_destroy(stream);
    bson_destroy(&pipeline);
    bson_destroy(one);
}

int main(int argc, char **argv)
{
    mongoc_collection_t *people, *numbers;
    mongoc_database_t *database;
    mongoc_client_t *client;

    mongoc_init();
    client = argc == 2 ? mongoc_client_new(argv[1]) : NULL;
    if (!client) {
        fprintf(stderr, "mongoc_life: give it the URI of a server\n");
        return 2;
    }
    database = mongoc_client_get_database(client, "life");
    people = mongoc_client_get_collection(client, "life", "people");
    numbers = mongoc_client_get_collection(client, "life", "numbers");
    documents_live(people);
    bulks_live(numbers);
    indexes_live(database, numbers);
    transactions_live(client, people);
    streams_live(people);
    printf("1..%d\n", claims);
    mongoc_collection_destroy(people);
    mongoc_collection_destroy(numbers);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    mongoc_cleanup();
    return failures != 0;
}
