/* Load: keeps connections to one server busy, each with one request at a time, from one thread.
 *
 * What a request is, and when its answer is complete, is the client's business: HTTP or
 * PostgreSQL. An answer that is not the expected one ends the program, so that errors are never
 * counted as speed. */
#pragma once

#include "base/attrs.h"
#include "base/histogram.h"

#include <sys/types.h>

enum { LOAD_CONNECTIONS_MAX = 256 };

struct load_client {
    void *context;
    int (*open)(void *context, size_t connection); /* its descriptor */
    void (*send)(void *context, size_t connection);
    bool (*receive)(void *context, size_t connection); /* true: the answer is complete */
    void (*close)(void *context, size_t connection);
};

struct load_result {
    uint64_t operations; /* answered within the time */
    double seconds;
    double generator_cpu_s; /* of this thread */
    double server_cpu_s;
    struct histogram latency_us;
};

/* Runs for that time, then waits for what is in flight without counting it. server is a process
 * whose CPU time counts with that of its children, until it is quiet again but for half a second at
 * most: what it does late belongs to this run, not to the next. Adds to the result. */
void load_run(const struct load_client *client, pid_t server, size_t connections, double seconds,
              struct load_result *result);

/* The same until so many requests were answered, however long that takes; it does not wait for the
 * server to be quiet. */
void load_run_count(const struct load_client *client, pid_t server, size_t connections,
                    uint64_t requests, struct load_result *result);

/* Waits until the server is quiet for a while: compaction and all. Returns how long that took. */
double load_wait_quiet(pid_t server);

/* CPU time of a process and its living and dead children, in seconds. */
double load_cpu_s(pid_t process);

/* Says what is wrong and ends the program. */
NORETURN void load_fail(const char *format, ...) PRINTF_LIKE(1, 2);
