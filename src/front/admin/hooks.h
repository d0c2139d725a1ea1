/* What administration asks of the server, which front/ does not know: handed in at the start. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "cluster/node.h"

/* Any of the functions may be NULL; what would need it is then refused. They may be called from any
 * thread. */
struct admin_hooks {
    void *context;

    /* Appends the effective settings as members of a JSON object, without its braces. Never a
     * secret. */
    void (*settings)(void *context, struct buf *out);

    /* Appends the fronts as elements of a JSON array: where each listens and who is connected. */
    void (*connections)(void *context, struct buf *out);

    /* Opens a store and makes it a node; and lets go of one that holds nothing any more. */
    bool (*node_add)(void *context, const struct node_info *info, struct error *err);
    bool (*node_remove)(void *context, struct slice name, struct error *err);

    /* What the operator calls a node of a shard map; NULL: it is not here. */
    const char *(*node_name)(void *context, uint32_t node);

    /* Appends the files that the server keeps beside its store and a restored one needs, its
     * certificate authority: name, NUL, length, 4 bytes big-endian, bytes, again and again. */
    void (*files)(void *context, struct buf *out);

    /* Snapshots of all nodes: appends "boot" and "snapshots" as members of a JSON object; makes and
     * drops one; and goes back to one, for which the server stops and begins again. */
    bool (*snapshots)(void *context, struct buf *out, struct error *err);
    bool (*snapshot_make)(void *context, struct slice name, struct error *err);
    bool (*snapshot_drop)(void *context, struct slice name, struct error *err);
    bool (*snapshot_reset)(void *context, struct slice name, struct error *err);

    /* The servers that share the nodes: appends them as a JSON array; says that one is to own
     * nothing, or may again; forgets one that is gone. */
    bool (*servers)(void *context, struct buf *out, struct error *err);
    bool (*server_drain)(void *context, struct slice name, bool on, struct error *err);
    bool (*server_forget)(void *context, struct slice name, struct error *err);

    /* The default account has other keys from now on: whoever keeps a copy makes it anew. */
    bool (*keys_changed)(void *context, struct error *err);
};
