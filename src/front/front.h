/* What the server hands to every front: the rooms below, already open. */
#pragma once

#include "advise/keeper.h"
#include "advise/traffic.h"
#include "balance/balancer.h"
#include "base/log.h"
#include "catalogue/caretaker.h"
#include "catalogue/catalogue.h"
#include "front/browser.h"
#include "heat/heat.h"
#include "item/items.h"
#include "item/metering.h"
#include "item/reading.h"
#include "migration/migrator.h"
#include "net/workers.h"
#include "observe/observer.h"
#include "script/script.h"

struct front_faults;
struct pauses;
struct front_queries;
struct rest_views;

/* The database that tables of the Table API are in, of each account. */
#define FRONT_TABLE_DATABASE "TablesDB"

/* What reads of an account may show: the level they have unless they ask for a weaker one, and what
 * bounded staleness is bounded by. */
struct front_consistency {
    enum item_level level;
    int64_t staleness_ms;
    uint64_t staleness_operations;
};

/* The level that a request asks for by name: its own, or a weaker one. ERROR_BAD_REQUEST: it is
 * stronger, or there is none of that name. Empty: the account's. */
NODISCARD bool front_consistency_find(const struct front_consistency *own, struct slice name,
                                      enum item_level *ret_level, struct error *err);

/* How a request reads that has no tokens of a session: what it has written itself a standby cannot
 * prove to have, so Session is the primary's. */
static inline struct item_reading_options
front_consistency_reading(const struct front_consistency *own, enum item_level level)
{
    return (struct item_reading_options){.level = level == ITEM_SESSION ? ITEM_STRONG : level,
                                         .staleness_ms = own->staleness_ms,
                                         .staleness_lsns = own->staleness_operations};
}

/* Appends who answered for the spans: "NODE;level=Strong", or "NODE/standby2;level=LEVEL;age=MS" of
 * the standby on the second host of the URL, separated by commas. Of many the list ends early. */
void front_served_append(const struct container *container, struct item_reading *reading,
                         const struct partition_span *spans, size_t count, struct buf *out);

/* Asked for costs twice as much as weaker ones, wherever it is read from. */
static inline bool front_consistency_is_dear(enum item_level level)
{
    return level <= ITEM_BOUNDED;
}

/* How a view is (rest/views/). */
struct front_view_report {
    int64_t lag_ms;            /* behind its sources; 0: it has all of them */
    uint64_t lag_lsn;          /* the same in LSNs of their partitions, added up */
    const char *phase;         /* "new", "fill", "sweep", "follow" */
    uint64_t written, removed; /* items of the view, since the server was started, as the next */
    uint64_t left_out;         /* items of sources that make none that could be stored */
    uint64_t throttled;        /* times its throughput was used up */
    uint64_t rebuilds;
};

/* All borrowed; they outlive the front. */
/* Servers that clients may go to, besides the one they ask: see several servers, docs/servers.md.
 */
enum { FRONT_LOCATIONS_MAX = 64 };
struct front_location {
    char name[64];      /* of the region, told apart by a number where it has several */
    char endpoint[256]; /* a URL */
};

struct front_services {
    /* Appends at most FRONT_LOCATIONS_MAX; NULL: there is but one server. */
    size_t (*locations)(void *context, struct front_location list[FRONT_LOCATIONS_MAX]);
    void *locations_context;
    struct front_faults *faults;     /* what of faults was logged; NULL: all is */
    const struct front_hosts *hosts; /* served where no secret is asked for; NULL: any is */
    struct catalogue *catalogue;
    struct meters *meters;
    struct item_gates *gates;
    struct caretaker *caretaker;
    struct migrator *migrator; /* NULL: partitions stay as they are */
    struct heat *heat;         /* NULL: none is kept */
    struct balancer *balancer; /* NULL: likewise */
    const struct clock *clock;
    struct net_workers *workers;
    struct net_owners *owners; /* the accounts, as those whose work and memory is shared out */
    struct log *log;
    struct observer *observer;     /* is told of every request; NULL: nobody is */
    struct pauses *pauses;         /* maintain/pauses.h; NULL: nothing is ever paused */
    struct script_pool *scripts;   /* NULL: scripts are not run */
    struct traffic *traffic;       /* NULL: nothing is recorded for advice */
    struct keeper *keeper;         /* of that record; NULL: none is written down */
    struct front_queries *queries; /* kit/queries.h; NULL: no front runs any */
    struct rest_views *views;      /* rest/views/views.h; NULL: nobody keeps views */
    /* False: the container is no view, or was not looked at yet. With views. */
    bool (*view_report)(struct rest_views *views, const struct container *view,
                        struct front_view_report *ret_report);
    /* May a view have this partition key? Of no view it may. may_lack: rows need not have its
     * paths. NULL: nobody can tell. */
    bool (*view_key_check)(const struct container *view, struct slice partition_key, bool may_lack,
                           struct error *err);
    /* Which property of its source a view is an index table by. NULL: nobody can tell. */
    bool (*view_index_path)(const struct container *view, struct arena *arena,
                            struct slice *ret_path);
    uint32_t burst_seconds; /* for load_meters_apply */
    struct front_consistency consistency;
    size_t query_threads; /* that may share the work of one query */
    const char *server;   /* what this server is called among several; NULL: there is but one */
    bool follows;         /* another server owns the nodes: what is read here has to be proved */
    bool unproved;        /* for tests of checkers alone: it is not */
};

/* The items of a container as a client's request gets at them: what the operator has paused of them
 * is refused. Borrowed while the container is held. */
struct item_space front_space(const struct front_services *services, struct container *container);
