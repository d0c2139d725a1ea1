/* Point: a write of one document that a client names, carried out on the loop of its connection,
 * with the commit between its two halves and no worker (item/operation.h). What cannot be done so,
 * or was overtaken by another writer, is done by a worker from the beginning. */
#pragma once

#include "front/mongo/command/item.h"

struct mongo_point {
    struct mongo_call *call;
    struct mongo_namespace name;
    struct mongo_collection collection; /* the point's own from its start to its end */
    struct item_operation op;           /* of mongo_operation, filled in */
    /* Appends the reply. err NULL: it was written; else it was refused. */
    void (*answer)(struct mongo_point *point, const struct error *err);

    struct net_task task;
};

/* May the call be tried on its loop? It is on one, and its message outlives the handler from here
 * on. */
bool mongo_point_begin(struct mongo_call *call);

/* Starts it; as a command's function returns. In the call's arena, like what it points to. */
NODISCARD bool mongo_point_start(struct mongo_point *point, struct error *err);
