#include "front/gremlin/command/session.h"

#include "base/memory.h"
#include "front/gremlin/value/container.h"

enum { VARIABLES_BYTES_MAX = 4 * 1024 * 1024, NAME_SHOWN_MAX = 64 };

bool gremlin_session_new(struct gremlin *gremlin, struct slice id,
                         struct gremlin_session **ret_session, struct error *err)
{
    struct gremlin_session *session;

    if (atomic_fetch_add(&gremlin->sessions, 1) >= gremlin->options.sessions_max) {
        atomic_fetch_sub(&gremlin->sessions, 1);
        return error_set(err, ERROR_BUSY,
                         "there are %u sessions open, which is as many as there "
                         "may be (gremlin.sessions_max)",
                         gremlin->options.sessions_max);
    }
    assert(id.len <= GREMLIN_SESSION_ID_MAX);
    session = MEMORY_NEW(struct gremlin_session);
    session->gremlin = gremlin;
    session->id_len = id.len;
    memcpy(session->id, id.data, id.len);
    *ret_session = session;
    return true;
}

void gremlin_session_free(struct gremlin_session *session)
{
    if (!session)
        return;
    gremlin_transaction_end(&session->transaction);
    gremlin_heap_free(session->heap);
    atomic_fetch_sub(&session->gremlin->sessions, 1);
    memory_free(session);
}

/* --- Variables ---------------------------------------------------------------------------------
 */

/* Copied with each request: a request's values go with its heap, whatever they point to. */
bool gremlin_session_variables(const struct gremlin_session *session, struct gremlin_heap *heap,
                               struct gremlin_value *ret_map, struct error *err)
{
    *ret_map = GREMLIN_NOTHING;
    return !session || !session->heap || gremlin_value_copy(heap, session->variables, ret_map, err);
}

bool gremlin_session_set(struct gremlin_session *session, struct memory_meter *meter,
                         struct slice name, struct gremlin_value value, struct error *err)
{
    struct gremlin_value copy, key;

    if (!session->heap) {
        session->heap = gremlin_heap_new(
            &(struct gremlin_heap_options){.limit = VARIABLES_BYTES_MAX, .meter = meter});
        session->variables = gremlin_map_new(session->heap);
    }
    if (!gremlin_value_copy(session->heap, value, &copy, err))
        return error_prefix(err, "the variable \"%.*s\"",
                            (int)MIN(name.len, (size_t)NAME_SHOWN_MAX), (const char *)name.data);
    key = gremlin_string(session->heap, name);
    gremlin_map_put_take(session->variables, key, copy);
    gremlin_value_unref(key);
    return !gremlin_heap_failed(session->heap) || gremlin_heap_error(session->heap, err);
}

/* --- Transactions ------------------------------------------------------------------------------
 */

bool gremlin_transaction_begin(struct gremlin_session *session,
                               const struct gremlin_graph_options *options,
                               struct memory_meter *meter, struct error *err)
{
    struct gremlin_transaction *transaction = &session->transaction;
    struct gremlin_graph_options mine = *options;

    if (transaction->graph) {
        if (container_info(transaction->container)->number ==
            container_info(options->container)->number)
            return true;
        return error_set(err, ERROR_BAD_REQUEST,
                         "the transaction of the session is of another graph: commit it, or roll "
                         "it back first");
    }
    transaction->heap = gremlin_heap_new(&(struct gremlin_heap_options){
        .limit = session->gremlin->options.memory_bytes_max, .meter = meter});
    mine.heap = transaction->heap;
    mine.one_moment = true;
    if (!gremlin_graph_new(&mine, &transaction->graph, err)) {
        gremlin_heap_free(transaction->heap);
        *transaction = (struct gremlin_transaction){0};
        return false;
    }
    transaction->container = container_ref(options->container);
    return true;
}

bool gremlin_transaction_is_long(const struct gremlin_transaction *transaction, struct error *err)
{
    if (transaction->kept_count < GREMLIN_TRANSACTION_REQUESTS_MAX)
        return false;
    error_set(err, ERROR_BAD_REQUEST,
              "a transaction has at most %d requests: commit it, or roll it back",
              GREMLIN_TRANSACTION_REQUESTS_MAX);
    return true;
}

void gremlin_transaction_keep(struct gremlin_transaction *transaction, struct gremlin_heap *heap)
{
    transaction->kept = memory_realloc(transaction->kept,
                                       (transaction->kept_count + 1) * sizeof *transaction->kept);
    transaction->kept[transaction->kept_count++] = heap;
}

void gremlin_transaction_end(struct gremlin_transaction *transaction)
{
    gremlin_graph_free(transaction->graph);
    container_unref(transaction->container);
    for (size_t i = 0; i < transaction->kept_count; i++)
        gremlin_heap_free(transaction->kept[i]);
    memory_free(transaction->kept);
    gremlin_heap_free(transaction->heap);
    *transaction = (struct gremlin_transaction){0};
}
