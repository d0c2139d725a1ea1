/* Workers: threads for what blocks or runs long, so that no loop ever waits.
 *
 * Threads start when work waits for one and end after a while without any; the queue has a limit,
 * over which work is refused at once rather than late.
 *
 * Work has an owner. Owners take turns, an owner's containers do among themselves, and no owner has
 * all threads or fills the queue: three quarters of either, an eighth before its account is made.
 * Only so many threads of one owner may compute at a time; work that runs long stops now and then
 * (net_workers_breathe) until it is its turn again. Where nobody else has asked of late that is as
 * many as there are cores. */
#pragma once

#include "net/loop.h"
#include "net/owner.h"

struct net_workers; /* opaque, owned; any thread */

/* A piece of work, kept inside the structure it is about. run is called on a worker; then done, if
 * there is one, on the loop. The structure must live until the last of the two; it may be freed
 * there. */
struct net_work {
    void (*run)(struct net_work *work);
    void (*done)(struct net_work *work, struct net_loop *loop); /* may be NULL */
    struct net_loop *loop;                                      /* for done */
    struct net_owner *owner; /* NULL: the server itself, which nothing holds back */
    uint64_t part;           /* which container of the owner's it is about; 0: none */
    struct net_task task;    /* of net/ */
    struct net_work *next;   /* of net/ */
};

struct net_workers_settings {
    size_t threads_max;
    size_t queue_max; /* work waiting, besides what runs */
    size_t busy_max;  /* threads of one owner that may compute at a time while others ask too */
    size_t alone_max; /* the same of one that is alone */
    int64_t idle_ms;  /* a thread without work for so long ends */
};

struct net_workers_settings net_workers_settings_default(void);

struct net_workers_metrics {
    uint64_t threads, running, queued; /* now */
    uint64_t waiting;                  /* of those that run: for their turn to go on */
    uint64_t submitted, refused;       /* since the start */
};

struct net_workers *net_workers_new(const struct net_workers_settings *settings);

/* Refuses new work, runs what was taken, and waits for it. The loops must still be there. NULL is
 * fine. */
void net_workers_free(struct net_workers *workers);
CLEANUP_FN(struct net_workers *, net_workers_free)

/* Takes the work, or refuses it: ERROR_BUSY when the queue is full, ERROR_SHUTTING_DOWN once
 * net_workers_free has begun. */
NODISCARD bool net_workers_submit(struct net_workers *workers, struct net_work *work,
                                  struct error *err);

/* For work that runs long, from its own thread, some thousand times a second: returns when the
 * thread may go on. On any other thread, at once. */
void net_workers_breathe(struct net_workers *workers);

/* Around a wait for other work of the same owner: meanwhile the thread does not count as one that
 * computes. On any other thread than a worker's, nothing. */
void net_workers_rest(struct net_workers *workers);
void net_workers_rested(struct net_workers *workers);

void net_workers_metrics(struct net_workers *workers, struct net_workers_metrics *ret_metrics);
