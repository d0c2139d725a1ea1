#include "front/gremlin/command/target.h"

#include "front/gremlin/graph/graph.h"
#include "item/view_bound.h"
#include "load/offer_meters.h"
#include "maintain/pauses.h"

enum { SHOWN_MAX = 64 };

bool gremlin_target_find(const struct gremlin_identity *identity, const struct gremlin_asked *asked,
                         struct gremlin_target *ret_target, struct error *err)
{
    struct slice alias = asked->alias.data ? asked->alias : SLICE("g"), database, graph;
    bool plain = slice_equal(alias, SLICE("g")), split;
    struct gremlin_target named = {slice_of_text(identity->database),
                                   slice_of_text(identity->graph), false, false};

    split = slice_split(alias, '.', &database, &graph) && database.len && graph.len;
    if (named.database.len) {
        *ret_target = named;
        if (plain || slice_equal(alias, named.graph) ||
            (split && slice_equal(database, named.database) && slice_equal(graph, named.graph)))
            return true;
    } else if (plain) {
        *ret_target = (struct gremlin_target){SLICE(GREMLIN_DEFAULT_DATABASE),
                                              SLICE(GREMLIN_DEFAULT_GRAPH), true, false};
        return true;
    } else if (split) {
        *ret_target = (struct gremlin_target){database, graph, false, false};
        return true;
    }
    return error_set(err, ERROR_BAD_REQUEST,
                     "could not alias [%.*s] to [%.*s]: as a traversal source g is known%s",
                     (int)MIN(asked->source.len, (size_t)SHOWN_MAX),
                     (const char *)asked->source.data, (int)MIN(alias.len, (size_t)SHOWN_MAX),
                     (const char *)alias.data,
                     named.database.len ? ", or the graph's own name" : ", or DATABASE.GRAPH");
}

/* --- Making the default graph ------------------------------------------------------------------
 */

static bool database_make(const struct front_call *call, struct slice name, struct error *err)
{
    struct database *database;

    if (!catalogue_database_create(call->services->catalogue, call->account.id, name, NULL,
                                   &database, err))
        return err->code == ERROR_NAME_TAKEN;
    database_unref(database);
    return true;
}

static bool graph_make(struct front_call *call, const struct gremlin_target *target,
                       struct container **ret_container, struct error *err)
{
    CLEANUP(buf_done) struct buf body;
    struct catalogue *catalogue = call->services->catalogue;

    buf_init(&body, BUF_DEFAULT_MAX);
    gremlin_graph_definition(target->graph, target->indexes, &body);
    if (!front_account_make(call->services, call->account.id, &call->account.account, err) ||
        !database_make(call, target->database, err))
        return false;
    if (catalogue_container_create(catalogue, call->account.id, target->database, buf_slice(&body),
                                   NULL, ret_container, err)) {
        if (load_meters_apply(call->services->meters, *ret_container, call->services->burst_seconds,
                              err))
            return true;
        container_unref(*ret_container);
        return false;
    }
    return err->code == ERROR_NAME_TAKEN &&
           catalogue_container_open(catalogue, call->account.id, target->database, target->graph,
                                    ret_container, err);
}

/* --- Opening -----------------------------------------------------------------------------------
 */

static bool missing(const struct gremlin_target *target, struct error *err)
{
    return error_set(
        err, ERROR_OWNER_NOT_FOUND, "Owner resource does not exist: /dbs/%.*s/colls/%.*s",
        (int)MIN(target->database.len, (size_t)SHOWN_MAX), (const char *)target->database.data,
        (int)MIN(target->graph.len, (size_t)SHOWN_MAX), (const char *)target->graph.data);
}

bool gremlin_target_open(struct front_call *call, const struct gremlin_target *target,
                         struct container **ret_container, struct error *err)
{
    struct container *container;

    if (!call->account.account ||
        !catalogue_container_open(call->services->catalogue, call->account.id, target->database,
                                  target->graph, &container, err)) {
        if (call->account.account && err->code != ERROR_NOT_FOUND &&
            err->code != ERROR_OWNER_NOT_FOUND)
            return false;
        if (!target->made)
            return missing(target, err);
        return call->may_block ? graph_make(call, target, ret_container, err)
                               : view_bound_cold(err);
    }
    if (!slice_equal(container_info(container)->id, target->graph)) {
        container_unref(container); /* by its _rid, which is no name of a graph */
        return missing(target, err);
    }
    front_call_observe(call, container);
    /* what a script does is not known before it is run: it may write */
    if (!pauses_check(call->services->pauses, container, true, &call->wait_ms, err)) {
        container_unref(container);
        return false;
    }
    *ret_container = container;
    return true;
}

void gremlin_target_describe(const struct gremlin_identity *identity,
                             const struct gremlin_asked *asked, struct observed_request *request)
{
    static const char *const who[] = {[GREMLIN_STRANGER] = "",
                                      [GREMLIN_LOCAL] = "local",
                                      [GREMLIN_KEY] = "key",
                                      [GREMLIN_TOKEN] = "resource token",
                                      [GREMLIN_SIGNED] = "key"};
    struct gremlin_target target;
    struct error ignored;

    request->front = "gremlin";
    request->name = asked->traversal ? "BYTECODE" : "SCRIPT";
    request->observed.operation = OBSERVED_EXECUTE;
    assert(identity->kind < ARRAY_LEN(who));
    request->who = slice_of_text(who[identity->kind]);
    if (gremlin_target_find(identity, asked, &target, &ignored)) {
        request->database = target.database;
        request->container = target.graph;
    }
}
