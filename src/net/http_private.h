/* What HTTP keeps around a request, for its own sources. */
#pragma once

#include "net/connection_private.h"
#include "net/http_read.h"

struct net_http_connection;
struct net_http_shard;

/* One request and its answer. Made by the loop, the handler's between call and answer, kept for the
 * next request afterwards. */
struct net_http_exchange {
    struct net_http_request request;
    struct net_http_reader reader;
    struct net_http_shard *shard;
    struct net_http_exchange *next;         /* in its connection's queue, or in the pool */
    struct net_http_connection *connection; /* NULL once that has gone, and of one passed on */
    void (*passed_answer)(void *context, struct net_http_answer *answer); /* NULL: not passed on */
    void *passed_context;
    bool *passed_ended;   /* told while net_http_pass runs; else NULL */
    bool passed_handling; /* in the handler now, neither answered nor deferred */
    struct net_task task; /* brings the answer to the loop */
    int64_t head_until_ms, body_until_ms;
    size_t incoming_len; /* counted in its shard; not 0: it is in the list there */
    struct net_http_exchange *older, *newer; /* in that list */
    struct memory_meter *meter; /* what it holds is held there; borrowed; may be NULL */
    size_t held;                /* by the request and its answer */
    atomic_bool cancelled;
    bool deferred;
    bool answered; /* the answer is kept below until its turn comes */
    bool close;    /* the connection ends after this answer */
    bool linger;   /* and the client may still be sending */

    uint16_t status;
    struct slice tail; /* of the head, in the arena */
    struct slice body;
    bool body_owned;
    struct net_release release;

    struct net_http_header headers[]; /* settings.header_count_max */
};

/* Turns of one owner on a loop: how many of its requests were handled in this one, and its
 * connections that have more. Owners share the one of their hash. */
struct net_http_turn {
    struct net_http_connection *first, *last;
    uint32_t handled;
};

enum { NET_HTTP_TURNS = 64 };

/* A loop's part: unused exchanges and counts. */
struct net_http_shard {
    struct net_http *http;
    struct net_http_turn turns[NET_HTTP_TURNS];
    uint64_t owners_now, owners_before;  /* whose requests were handled: a bit for each of turns */
    int64_t owners_ms;                   /* when owners_now began */
    struct net_http_connection *resumed; /* it is its turn just now */
    struct net_task turn_task;           /* begins the next turn, in the loop's next round */
    bool turn_posted;
    struct net_http_exchange *pool;
    size_t pool_count;
    struct net_http_exchange *oldest, *newest; /* requests of which only a part is here */
    size_t incoming_len;                       /* of these parts */
    _Atomic uint64_t by_class[6];
    _Atomic uint64_t in_flight;
    struct histogram latency_us;
};

/* http_write.c: the head of an answer in two parts. The first is made on the loop, which knows the
 * date and whether the connection stays; the tail wherever the answer is given.
 * Each returns how many bytes it wrote; the buffer must hold the bound. */
enum { NET_HTTP_FRONT_MAX = 256 };
size_t net_http_front_write(uint8_t *to, uint16_t status, struct slice date, bool close,
                            bool http_10);
size_t net_http_tail_bound(const struct net_http_response *response);
size_t net_http_tail_write(uint8_t *to, const struct net_http_response *response);

/* Whether an answer of that status has a body at all. */
bool net_http_status_has_body(uint16_t status);
