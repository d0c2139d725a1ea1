#include "load.h"

#include "base/clock.h"
#include "base/slice.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { SETTLE_STEP_MS = 20, SETTLE_STEPS_MAX = 25 };

#define SETTLE_QUIET 0.1 /* of a core */

void load_fail(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "bench: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    exit(1);
}

/* --- CPU time -------------------------------------------------------------------------------- */

/* Of a living process with all its threads; exact, where the ticks of /proc would lose what many
 * small processes use. 0 when it is gone. */
static double process_cpu_s(pid_t process)
{
    struct timespec time;
    clockid_t clock;

    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* The parent of a process, and the ticks of the children it has waited for. False when it is
 * gone. */
static bool process_relations(pid_t process, pid_t *ret_parent, unsigned long long *ret_ticks)
{
    unsigned long long user, system;
    char path[64], text[1024], *rest;
    size_t len;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", process);
    file = fopen(path, "re");
    if (!file)
        return false;
    len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    rest = strrchr(text, ')'); /* the name in parentheses may hold anything */
    if (!rest || sscanf(rest, ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %llu %llu",
                        ret_parent, &user, &system) != 3)
        return false;
    *ret_ticks = user + system;
    return true;
}

double load_cpu_s(pid_t process)
{
    unsigned long long ticks, unused;
    double sum = process_cpu_s(process);
    DIR *directory = opendir("/proc");
    struct dirent *entry;
    pid_t parent;

    if (!directory || !process_relations(process, &parent, &ticks))
        load_fail("process %d is gone", process);
    sum += (double)ticks / (double)sysconf(_SC_CLK_TCK);
    while ((entry = readdir(directory))) {
        uint64_t other;

        if (slice_to_uint64(slice_of_text(entry->d_name), &other) &&
            process_relations((pid_t)other, &parent, &unused) && parent == process)
            sum += process_cpu_s((pid_t)other);
    }
    closedir(directory);
    return sum;
}

static double thread_cpu_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* --- The loop -------------------------------------------------------------------------------- */

struct run {
    const struct load_client *client;
    struct load_result *result;
    uint64_t end_ns;
    uint64_t left; /* requests that may still be sent */
    size_t in_flight;
    uint64_t sent_ns[LOAD_CONNECTIONS_MAX];
};

static void request_send(struct run *run, size_t connection, uint64_t now_ns)
{
    if (!run->left)
        return;
    run->left--;
    run->sent_ns[connection] = now_ns;
    run->client->send(run->client->context, connection);
    run->in_flight++;
}

static void answer_take(struct run *run, size_t connection)
{
    uint64_t now_ns;

    if (!run->client->receive(run->client->context, connection))
        return;
    now_ns = clock_monotonic_ns();
    run->in_flight--;
    if (now_ns > run->end_ns)
        return;
    run->result->operations++;
    histogram_record(&run->result->latency_us, (now_ns - run->sent_ns[connection]) / 1000);
    request_send(run, connection, now_ns);
}

static void poll_until_done(struct run *run, int poll)
{
    struct epoll_event events[LOAD_CONNECTIONS_MAX];

    while (run->in_flight > 0) {
        int count = epoll_wait(poll, events, LOAD_CONNECTIONS_MAX, 30000);

        if (count <= 0)
            load_fail("no answer for 30 seconds");
        for (int i = 0; i < count; i++)
            answer_take(run, events[i].data.u64);
    }
}

/* Waits until the server has done most of what it put off while it answered, such as compaction, or
 * for the longest time. Returns its CPU time so far. */
static double server_settle(pid_t server)
{
    double before_s = load_cpu_s(server);

    for (size_t i = 0; i < SETTLE_STEPS_MAX; i++) {
        double now_s;

        nanosleep(&(struct timespec){.tv_nsec = SETTLE_STEP_MS * 1000000}, NULL);
        now_s = load_cpu_s(server);
        if (now_s - before_s < SETTLE_STEP_MS / 1e3 * SETTLE_QUIET)
            return now_s;
        before_s = now_s;
    }
    return before_s;
}

static int connections_open(const struct load_client *client, size_t connections)
{
    int poll = epoll_create1(EPOLL_CLOEXEC);

    assert(connections <= LOAD_CONNECTIONS_MAX);
    for (size_t i = 0; i < connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};

        if (epoll_ctl(poll, EPOLL_CTL_ADD, client->open(client->context, i), &event) != 0)
            load_fail("epoll does not take connection %zu", i);
    }
    return poll;
}

static void connections_close(const struct load_client *client, size_t connections, int poll)
{
    for (size_t i = 0; i < connections; i++)
        client->close(client->context, i);
    close(poll);
}

void load_run(const struct load_client *client, pid_t server, size_t connections, double seconds,
              struct load_result *result)
{
    struct run run = {.client = client, .result = result, .left = UINT64_MAX};
    int poll = connections_open(client, connections);
    double server_begin_s = load_cpu_s(server), begin_s = thread_cpu_s();

    run.end_ns = clock_monotonic_ns() + (uint64_t)(seconds * 1e9);
    for (size_t i = 0; i < connections; i++)
        request_send(&run, i, clock_monotonic_ns());
    poll_until_done(&run, poll);
    result->generator_cpu_s += thread_cpu_s() - begin_s;
    result->server_cpu_s += server_settle(server) - server_begin_s;
    result->seconds += seconds;
    connections_close(client, connections, poll);
}

void load_run_count(const struct load_client *client, pid_t server, size_t connections,
                    uint64_t requests, struct load_result *result)
{
    struct run run = {.client = client, .result = result, .left = requests, .end_ns = UINT64_MAX};
    int poll = connections_open(client, connections);
    double server_begin_s = load_cpu_s(server), begin_s = thread_cpu_s();
    uint64_t begin_ns = clock_monotonic_ns();

    for (size_t i = 0; i < connections; i++)
        request_send(&run, i, clock_monotonic_ns());
    poll_until_done(&run, poll);
    result->seconds += (double)(clock_monotonic_ns() - begin_ns) / 1e9;
    result->generator_cpu_s += thread_cpu_s() - begin_s;
    result->server_cpu_s += load_cpu_s(server) - server_begin_s;
    connections_close(client, connections, poll);
}

double load_wait_quiet(pid_t server)
{
    enum { STEP_MS = 250, QUIET_STEPS = 4 };
    uint64_t begin_ns = clock_monotonic_ns();
    double before_s = load_cpu_s(server);

    for (int quiet = 0; quiet < QUIET_STEPS;) {
        double now_s;

        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
        now_s = load_cpu_s(server);
        quiet = now_s - before_s < STEP_MS / 1e3 * SETTLE_QUIET ? quiet + 1 : 0;
        before_s = now_s;
    }
    return (double)(clock_monotonic_ns() - begin_ns) / 1e9 - QUIET_STEPS * STEP_MS / 1e3;
}
