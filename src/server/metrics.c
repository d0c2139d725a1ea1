/* Counters live with whoever counts; here they are only read and named. Names follow Prometheus:
 * base units (seconds, bytes), _total on counters, process_ for what every process has. */
#include "server/metrics_private.h"
#include "server/metrics_servers.h"

#include "base/arena.h"
#include "base/clock.h"
#include "catalogue/agreements.h"
#include "engine/guard.h"
#include "engine/standbys.h"
#include "engine/upkeep.h"
#include "query/spool/spill.h"

#include <dirent.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <unistd.h>

void metrics_family(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_single(struct buf *out, const char *name, const char *type, const char *help,
                    uint64_t value)
{
    metrics_family(out, name, type, help);
    buf_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

static uint64_t resident_bytes(void)
{
    unsigned long long size, resident;
    FILE *file = fopen("/proc/self/statm", "re");
    bool got = file && fscanf(file, "%llu %llu", &size, &resident) == 2;

    if (file)
        fclose(file);
    return got ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static uint64_t open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    uint64_t count = 0;

    if (!directory)
        return 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - MIN(count, (uint64_t)3); /* ".", ".." and the one doing the counting */
}

static void process_print(const struct metrics_sources *sources, struct buf *out)
{
    struct rusage usage;

    metrics_family(out, "orrery_build_info", "gauge", "The version that runs.");
    BUF_APPEND(out, "orrery_build_info{version=\"" ORRERY_VERSION "\"} 1\n");
    metrics_family(out, "process_start_time_seconds", "gauge", "When the server started.");
    buf_printf(out, "process_start_time_seconds %.3f\n", (double)sources->started_ms / 1000);
    metrics_single(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
                   resident_bytes());
    metrics_single(out, "process_open_fds", "gauge", "Open descriptors.", open_descriptors());
    getrusage(RUSAGE_SELF, &usage);
    metrics_family(out, "process_cpu_seconds_total", "counter",
                   "Processor time in user and system mode.");
    buf_printf(out, "process_cpu_seconds_total %.6f\n",
               (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    metrics_single(out, "orrery_log_lines_lost_total", "counter", "Log lines nobody took.",
                   log_lost(sources->log));
}

/* Figures of all fronts that listen, taken at once so that a family is in one place. */
struct front_sample {
    const char *name;
    bool http; /* its requests are counted here */
    struct net_listener_metrics connections;
    struct net_http_metrics requests;
};

struct front_family {
    const char *name, *type, *help;
    size_t offset; /* of a uint64_t in a sample */
};

static void fronts_family(struct buf *out, const struct front_sample *samples, size_t count,
                          const struct front_family *f)
{
    metrics_family(out, f->name, f->type, f->help);
    for (size_t i = 0; i < count; i++)
        if (samples[i].http || f->offset < offsetof(struct front_sample, requests))
            buf_printf(
                out, "%s{front=\"%s\"} %llu\n", f->name, samples[i].name,
                (unsigned long long)*(const uint64_t *)((const char *)&samples[i] + f->offset));
}

static void answers_print(const struct front_sample *sample, struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(sample->requests.by_class); i++) {
        buf_printf(out, "orrery_requests_total{front=\"%s\",answer=\"", sample->name);
        if (i == 0)
            BUF_APPEND(out, "gone");
        else
            buf_printf(out, "%zuxx", i);
        buf_printf(out, "\"} %llu\n", (unsigned long long)sample->requests.by_class[i]);
    }
}

static void latency_print(const struct front_sample *sample, struct buf *out)
{
    const struct histogram *us = &sample->requests.latency_us;

    /* powers of two of microseconds, where the histogram is exact: 16 us to 67 s */
    for (unsigned power = 4; power <= 26; power += 2)
        buf_printf(out, "orrery_request_seconds_bucket{front=\"%s\",le=\"%.6f\"} %llu\n",
                   sample->name, (double)(1ULL << power) / 1e6,
                   (unsigned long long)histogram_count_up_to(us, (1ULL << power) - 1));
    buf_printf(out,
               "orrery_request_seconds_bucket{front=\"%s\",le=\"+Inf\"} %llu\n"
               "orrery_request_seconds_sum{front=\"%s\"} %.6f\n"
               "orrery_request_seconds_count{front=\"%s\"} %llu\n",
               sample->name, (unsigned long long)histogram_count(us), sample->name,
               (double)histogram_sum(us) / 1e6, sample->name,
               (unsigned long long)histogram_count(us));
}

static void requests_add(struct net_http_metrics *sum, const struct net_http *http)
{
    struct net_http_metrics more;

    net_http_metrics(http, &more);
    for (size_t i = 0; i < ARRAY_LEN(sum->by_class); i++)
        sum->by_class[i] += more.by_class[i];
    sum->in_flight += more.in_flight;
    histogram_add(&sum->latency_us, &more.latency_us);
}

static size_t fronts_sample(const struct metrics_front *fronts, struct front_sample *samples)
{
    size_t count = 0;

    for (size_t i = 0; i < METRICS_FRONTS; i++) {
        const struct net_listener *listener = atomic_load(&fronts[i].listener);

        if (!listener)
            continue;
        samples[count].name = fronts[i].name;
        net_listener_metrics(listener, &samples[count].connections);
        samples[count].http = fronts[i].http != NULL;
        if (samples[count].http)
            net_http_metrics(fronts[i].http, &samples[count].requests);
        if (samples[count].http && fronts[i].door)
            requests_add(&samples[count].requests, fronts[i].door);
        count++;
    }
    return count;
}

static void fronts_print(const struct metrics_front *fronts, struct buf *out)
{
#define CONNECTIONS(name) offsetof(struct front_sample, connections.name)
    static const struct front_family families[] = {
        {"orrery_connections", "gauge", "Open connections.", CONNECTIONS(open)},
        {"orrery_connections_accepted_total", "counter", "Connections accepted.",
         CONNECTIONS(accepted)},
        {"orrery_connections_refused_total", "counter", "Connections over the limit.",
         CONNECTIONS(refused)},
        {"orrery_tls_handshakes_total", "counter", "TLS handshakes completed.",
         CONNECTIONS(tls_handshakes)},
        {"orrery_tls_failures_total", "counter", "TLS handshakes failed.",
         CONNECTIONS(tls_failures)},
        {"orrery_received_bytes_total", "counter", "Bytes received.", CONNECTIONS(bytes_in)},
        {"orrery_sent_bytes_total", "counter", "Bytes sent.", CONNECTIONS(bytes_out)},
        {"orrery_accept_pauses_total", "counter", "Pauses of accepting for want of descriptors.",
         CONNECTIONS(accept_pauses)},
        {"orrery_requests_in_flight", "gauge", "Requests not answered yet.",
         offsetof(struct front_sample, requests.in_flight)},
    };
#undef CONNECTIONS
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct front_sample *samples = ARENA_ARRAY(arena, struct front_sample, METRICS_FRONTS);
    size_t count = fronts_sample(fronts, samples);

    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        fronts_family(out, samples, count, &families[i]);
    metrics_family(out, "orrery_requests_total", "counter",
                   "Requests by the class of their answer.");
    for (size_t i = 0; i < count; i++)
        if (samples[i].http)
            answers_print(&samples[i], out);
    metrics_family(out, "orrery_request_seconds", "histogram",
                   "From the last byte of a request to its answer.");
    for (size_t i = 0; i < count; i++)
        if (samples[i].http)
            latency_print(&samples[i], out);
}

static void gremlin_print(const struct gremlin *gremlin, struct buf *out)
{
    struct gremlin_metrics metrics;

    gremlin_metrics(gremlin, &metrics);
    metrics_family(out, "orrery_gremlin_requests_total", "counter",
                   "Requests of the Gremlin API by kind.");
    buf_printf(out, "orrery_gremlin_requests_total{kind=\"script\"} %llu\n",
               (unsigned long long)metrics.scripts);
    buf_printf(out, "orrery_gremlin_requests_total{kind=\"bytecode\"} %llu\n",
               (unsigned long long)metrics.bytecodes);
    buf_printf(out, "orrery_gremlin_requests_total{kind=\"authentication\"} %llu\n",
               (unsigned long long)metrics.authentications);
    metrics_single(out, "orrery_gremlin_requests_failed_total", "counter",
                   "Requests of the Gremlin API answered with an error.", metrics.failed);
    metrics_single(out, "orrery_gremlin_results_total", "counter",
                   "Results given by the Gremlin API.", metrics.results);
    metrics_single(out, "orrery_gremlin_sessions", "gauge",
                   "Sessions of the Gremlin API that are open.", metrics.sessions);
    metrics_single(out, "orrery_gremlin_websockets", "gauge",
                   "WebSocket connections that are open.", metrics.wire.open);
    metrics_single(out, "orrery_gremlin_messages_total", "counter", "WebSocket messages received.",
                   metrics.wire.messages);
}

static void mongo_print(const struct mongo *mongo, struct buf *out)
{
    const char *name;

    metrics_family(out, "orrery_mongo_commands_total", "counter",
                   "Commands of the MongoDB API by kind.");
    for (size_t i = 0;; i++) {
        uint64_t count = mongo_commands_count(mongo, i, &name);

        if (!name)
            break;
        buf_printf(out, "orrery_mongo_commands_total{kind=\"%s\"} %llu\n", name,
                   (unsigned long long)count);
    }
    metrics_single(out, "orrery_mongo_commands_failed_total", "counter",
                   "Commands of the MongoDB API that were answered with an error.",
                   mongo_commands_failed(mongo));
}

static void memory_print(const struct memory_meter *memory, struct buf *out)
{
    metrics_single(out, "orrery_memory_held_bytes", "gauge",
                   "What requests, answers on their way and queries hold.",
                   memory_meter_used(memory));
    metrics_single(out, "orrery_memory_held_bytes_peak", "gauge", "The most of it at one time.",
                   atomic_load_explicit(&memory->peak, memory_order_relaxed));
    metrics_single(out, "orrery_memory_held_bytes_max", "gauge",
                   "How much they may hold: server.memory_bytes_max.", memory->max);
}

static void workers_print(struct net_workers *workers, struct buf *out)
{
    struct net_workers_metrics m;

    net_workers_metrics(workers, &m);
    metrics_single(out, "orrery_workers", "gauge", "Worker threads.", m.threads);
    metrics_single(out, "orrery_workers_running", "gauge", "Worker threads at work.", m.running);
    metrics_single(out, "orrery_workers_waiting", "gauge",
                   "Of those, threads that wait for the turn of their account.", m.waiting);
    metrics_single(out, "orrery_work_queued", "gauge", "Work waiting for a worker.", m.queued);
    metrics_single(out, "orrery_work_submitted_total", "counter", "Work handed to workers.",
                   m.submitted);
    metrics_single(out, "orrery_work_refused_total", "counter",
                   "Work refused, the queue being full.", m.refused);
}

static void vectors_print(const struct front_queries *queries, struct buf *out)
{
    struct query_graphs_state graphs;
    size_t bytes;

    front_queries_vectors(queries, &bytes, &graphs);
    metrics_single(out, "orrery_query_vectors_bytes", "gauge",
                   "Bytes of vectors that are kept for searches, with their graphs.", bytes);
    metrics_single(out, "orrery_query_vector_graphs", "gauge", "Graphs of vectors that serve.",
                   graphs.ready);
    metrics_single(out, "orrery_query_vector_graphs_building", "gauge",
                   "Graphs of vectors that are being built, or wait for it.", graphs.building);
    metrics_single(out, "orrery_query_vector_graph_points", "gauge",
                   "Vectors that are in a graph, those of graphs being built included.",
                   graphs.points_in);
    metrics_single(out, "orrery_query_vector_graph_points_wanted", "gauge",
                   "Vectors that will be when all graphs are built.", graphs.points_all);
    metrics_single(out, "orrery_query_vector_graphs_built_total", "counter",
                   "Graphs of vectors that were built.", graphs.built_total);
}

static void queries_print(const struct front_queries *queries, struct buf *out)
{
    struct front_plans_metrics plans;
    struct query_copies_metrics copies;
    struct query_spill_metrics m;

    front_plans_metrics(front_queries_plans(queries), &plans);
    metrics_single(out, "orrery_query_plans_bytes", "gauge",
                   "Bytes of compiled queries that are kept.", plans.bytes);
    metrics_single(out, "orrery_query_plans_found_total", "counter", "Queries whose plan was kept.",
                   plans.found);
    metrics_single(out, "orrery_query_plans_missed_total", "counter",
                   "Queries that had to be compiled.", plans.missed);
    front_queries_metrics(queries, &m);
    metrics_single(out, "orrery_query_spilled_bytes", "gauge", "Bytes of queries on disk.",
                   m.bytes);
    metrics_single(out, "orrery_query_spilled_bytes_total", "counter",
                   "Bytes queries wrote to disk.", m.bytes_written);
    metrics_single(out, "orrery_query_spill_failures_total", "counter",
                   "Queries that could not write to disk as much as they wanted.", m.failures);
    vectors_print(queries, out);
    query_copies_metrics(front_queries_copies(queries), &copies);
    metrics_single(out, "orrery_reference_copies", "gauge",
                   "Reference containers of which there is a copy.", copies.count);
    metrics_single(out, "orrery_reference_copies_bytes", "gauge", "Bytes of these copies.",
                   copies.bytes);
    metrics_single(out, "orrery_reference_copies_filled_total", "counter",
                   "Times that a copy was filled from its container.", copies.filled);
    metrics_single(out, "orrery_reference_copies_found_total", "counter",
                   "Times that a query found its copy exact.", copies.found);
}

static void scripts_print(struct script_pool *scripts, struct buf *out)
{
    struct script_statistics s;

    script_pool_statistics(scripts, &s);
    metrics_single(out, "orrery_script_runs_total", "counter",
                   "Procedures, triggers and batches of calls of functions that were run.", s.runs);
    metrics_single(out, "orrery_script_failures_total", "counter", "Those that failed.",
                   s.failures);
    metrics_single(out, "orrery_script_timeouts_total", "counter", "Those that ran too long.",
                   s.timeouts);
    metrics_single(out, "orrery_script_crashes_total", "counter", "Those that ended their process.",
                   s.crashes);
    metrics_single(out, "orrery_script_processes", "gauge", "Processes for scripts.", s.workers);
    metrics_single(out, "orrery_script_processes_busy", "gauge", "Those at work.", s.workers_busy);
    metrics_single(out, "orrery_script_processes_started_total", "counter", "Those ever started.",
                   s.workers_started);
}

struct node_sample {
    const char *name;
    bool up;                             /* it gave statistics */
    struct engine_statistics statistics; /* of what is behind the guard */
    struct engine_guard_status guard;
    struct engine_upkeep upkeep;
};

struct node_family {
    const char *name, *type, *help;
    size_t offset; /* of a uint64_t in a sample */
    bool always;   /* of a node that is down, too */
};

static void nodes_family(struct buf *out, const struct node_sample *samples, size_t count,
                         const struct node_family *f)
{
    metrics_family(out, f->name, f->type, f->help);
    for (size_t i = 0; i < count; i++) {
        uint64_t value = *(const uint64_t *)((const char *)&samples[i] + f->offset);

        if ((samples[i].up || f->always) && value != UINT64_MAX) /* that is: not known */
            buf_printf(out, "%s{node=\"%s\"} %llu\n", f->name, samples[i].name,
                       (unsigned long long)value);
    }
}

static size_t nodes_sample(const struct cluster *cluster, struct node_sample *samples)
{
    size_t count = 0;

    for (size_t i = 0; i < cluster_count(cluster); i++) {
        const struct cluster_node *node = cluster_at(cluster, i);
        struct node_sample *sample = &samples[count];
        struct error ignored;

        if (!cluster_node_is_member(node))
            continue;
        *sample = (struct node_sample){.name = node->name};
        sample->up = engine_statistics(node->engine, &sample->statistics, &ignored);
        (void)!engine_guard_status(node->engine, &sample->guard);
        if (!engine_upkeep(node->engine, &sample->upkeep))
            memset(&sample->upkeep, 0xFF, sizeof sample->upkeep); /* all of it is not known */
        count++;
    }
    return count;
}

/* Calls one for every node with standbys. */
static void standbys_each(const struct cluster *cluster, struct buf *out,
                          void (*print)(const char *node, const struct engine_standbys *standbys,
                                        struct buf *out))
{
    for (size_t i = 0; i < cluster_count(cluster); i++) {
        const struct cluster_node *node = cluster_at(cluster, i);

        if (cluster_node_is_member(node) && engine_standbys_of(node->engine))
            print(node->name, engine_standbys_of(node->engine), out);
    }
}

static void standby_reads_print(const char *node, const struct engine_standbys *standbys,
                                struct buf *out)
{
    for (size_t i = 0; i < engine_standbys_count(standbys); i++)
        buf_printf(out, "orrery_standby_reads_total{node=\"%s\",standby=\"%s\"} %" PRIu64 "\n",
                   node, engine_standbys_name(standbys, i), engine_standbys_reads(standbys, i));
}

static void standby_ages_print(const char *node, const struct engine_standbys *standbys,
                               struct buf *out)
{
    int64_t age_ms;

    for (size_t i = 0; i < engine_standbys_count(standbys); i++)
        if (engine_standbys_age(standbys, i, clock_monotonic_ms(), &age_ms))
            buf_printf(out, "orrery_standby_age_seconds{node=\"%s\",standby=\"%s\"} %.3f\n", node,
                       engine_standbys_name(standbys, i), (double)age_ms / 1000);
}

static void fallbacks_print(const char *node, const struct engine_standbys *standbys,
                            struct buf *out)
{
    for (size_t i = 0; i < ENGINE_FALLBACKS; i++)
        buf_printf(out, "orrery_read_fallbacks_total{node=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
                   node, engine_fallback_name((enum engine_fallback)i),
                   engine_standbys_fallbacks(standbys, (enum engine_fallback)i));
}

static void standbys_print(const struct cluster *cluster, struct buf *out)
{
    metrics_family(out, "orrery_standby_reads_total", "counter",
                   "Reads of a partition that a standby has answered.");
    standbys_each(cluster, out, standby_reads_print);
    metrics_family(out, "orrery_standby_age_seconds", "gauge",
                   "How old what a standby shows is at most.");
    standbys_each(cluster, out, standby_ages_print);
    metrics_family(out, "orrery_read_fallbacks_total", "counter",
                   "Reads that would have done with a standby and were answered by the primary.");
    standbys_each(cluster, out, fallbacks_print);
}

static void nodes_print(const struct cluster *cluster, struct buf *out)
{
#define ENGINE(name) offsetof(struct node_sample, statistics.name)
#define GUARD(name) offsetof(struct node_sample, guard.name)
#define UPKEEP(name) offsetof(struct node_sample, upkeep.name)
    static const struct node_family families[] = {
        {"orrery_node_stored_bytes", "gauge", "Bytes stored.", ENGINE(bytes_stored), false},
        {"orrery_node_free_bytes", "gauge", "Bytes left.", ENGINE(bytes_free), false},
        {"orrery_node_resident_bytes", "gauge", "Caches and write buffers.", ENGINE(bytes_resident),
         false},
        {"orrery_node_reads_total", "counter", "Read calls.", ENGINE(reads), false},
        {"orrery_node_writes_total", "counter", "Write calls.", ENGINE(writes), false},
        {"orrery_node_written_bytes_total", "counter", "Keys and values written.",
         ENGINE(bytes_written), false},
        {"orrery_node_reconnects_total", "counter", "Connections made anew.", ENGINE(reconnects),
         false},
        {"orrery_node_cache_bytes", "gauge", "What the cache of blocks holds.", UPKEEP(cache_bytes),
         false},
        {"orrery_node_cache_bytes_max", "gauge", "What it may hold.", UPKEEP(cache_bytes_max),
         false},
        {"orrery_node_recall_hits_total", "counter", "Reads answered from values kept whole.",
         UPKEEP(recall_hits), false},
        {"orrery_node_recall_misses_total", "counter", "Reads that were not.",
         UPKEEP(recall_misses), false},
        {"orrery_node_compaction_debt_bytes", "gauge", "Bytes that are still to be rewritten.",
         UPKEEP(compaction_bytes), false},
        {"orrery_node_compactions", "gauge", "Compactions running.", UPKEEP(compactions), false},
        {"orrery_node_flushes", "gauge", "Write buffers being written.", UPKEEP(flushes), false},
        {"orrery_node_write_stalled", "gauge", "1: writes are held back by that debt.",
         UPKEEP(stalled), false},
        {"orrery_node_downs_total", "counter", "How often the node went down.", GUARD(downs), true},
        {"orrery_node_refused_total", "counter", "Calls turned away, down or paused.",
         GUARD(refused), true},
        {"orrery_node_held_back_total", "counter",
         "Calls that waited for another server to take over.", GUARD(waited), true},
        {"orrery_node_unreadable_total", "counter", "Calls that met blocks that cannot be read.",
         GUARD(fault_counts[ENGINE_FAULT_UNREADABLE]), true},
        {"orrery_node_full_total", "counter", "Writes that found no room.",
         GUARD(fault_counts[ENGINE_FAULT_FULL]), true},
        {"orrery_node_calls", "gauge", "Calls, snapshots and iterators inside.", GUARD(inside),
         true},
    };
#undef ENGINE
#undef GUARD
#undef UPKEEP
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct node_sample *samples = ARENA_ARRAY(arena, struct node_sample, CLUSTER_NODES_MAX);
    size_t count = nodes_sample(cluster, samples);

    metrics_family(out, "orrery_node_up", "gauge",
                   "1: the node answers, takes writes and has no blocks that cannot be read.");
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "orrery_node_up{node=\"%s\"} %d\n", samples[i].name,
                   samples[i].up && !samples[i].statistics.poisoned &&
                       !samples[i].guard.faults[ENGINE_FAULT_UNREADABLE] &&
                       !samples[i].guard.faults[ENGINE_FAULT_FULL]);
    metrics_family(out, "orrery_node_paused", "gauge", "1: the operator has paused the node.");
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "orrery_node_paused{node=\"%s\"} %d\n", samples[i].name,
                   samples[i].guard.paused);
    metrics_family(out, "orrery_node_replicated", "gauge",
                   "postgresql: 1: commits of the node wait for a standby.");
    for (size_t i = 0; i < count; i++)
        if (samples[i].statistics.timeline)
            buf_printf(out, "orrery_node_replicated{node=\"%s\"} %d\n", samples[i].name,
                       samples[i].statistics.replicated);
    metrics_family(out, "orrery_node_timeline", "gauge",
                   "postgresql: timeline of the primary; it rises with every failover.");
    for (size_t i = 0; i < count; i++)
        if (samples[i].statistics.timeline)
            buf_printf(out, "orrery_node_timeline{node=\"%s\"} %u\n", samples[i].name,
                       samples[i].statistics.timeline);
    for (size_t i = 0; i < ARRAY_LEN(families); i++)
        nodes_family(out, samples, count, &families[i]);
    standbys_print(cluster, out);
}

static void heat_print(struct heat *heat, struct buf *out)
{
    size_t counts[HEAT_TROUBLES];

    heat_count(heat, counts);
    metrics_family(out, "orrery_logical_partitions_in_trouble", "gauge",
                   "Logical partitions too hot or too large for their physical one.");
    for (int i = 0; i < HEAT_TROUBLES; i++)
        buf_printf(out, "orrery_logical_partitions_in_trouble{trouble=\"%s\"} %zu\n",
                   heat_trouble_name((enum heat_trouble)i), counts[i]);
}

static void observer_print(struct observer *observer, struct buf *out)
{
    struct audit_figures audit = {0};
    struct trace_figures trace = {0};

    metrics_single(out, "orrery_slow_requests_total", "counter",
                   "Requests that took log.slow_ms or longer.",
                   observer_slow(observer) ? slow_count(observer_slow(observer)) : 0);
    metrics_single(out, "orrery_access_lines_lost_total", "counter",
                   "Lines of the access log that were not written.",
                   observer_access(observer) ? lines_lost(observer_access(observer)) : 0);
    if (observer_audit(observer))
        audit_figures(observer_audit(observer), &audit);
    metrics_single(out, "orrery_audit_records", "gauge", "Records of the audit that are kept.",
                   audit.records);
    metrics_single(out, "orrery_audit_bytes", "gauge", "What they take.", audit.bytes);
    metrics_single(out, "orrery_audit_lost_total", "counter", "Records that were not kept.",
                   audit.lost);
    if (observer_trace(observer))
        trace_figures(observer_trace(observer), &trace);
    metrics_single(out, "orrery_trace_spans_total", "counter", "Spans the collector took.",
                   trace.sent);
    metrics_single(out, "orrery_trace_spans_lost_total", "counter", "Spans that were lost.",
                   trace.lost);
}

void metrics_print(const struct metrics_sources *sources, struct buf *out)
{
    process_print(sources, out);
    metrics_servers_print(sources->member, sources->doors, out);
    fronts_print(sources->fronts, out);
    if (sources->mongo)
        mongo_print(sources->mongo, out);
    if (sources->gremlin)
        gremlin_print(sources->gremlin, out);
    workers_print(sources->workers, out);
    memory_print(sources->memory, out);
    queries_print(sources->queries, out);
    if (sources->scripts)
        scripts_print(sources->scripts, out);
    nodes_print(catalogue_cluster(sources->catalogue), out);
    metrics_single(out, "orrery_transactions_in_doubt", "gauge",
                   "Transactions over several nodes that wait for one of them.",
                   agreements_waiting(catalogue_agreements(sources->catalogue)));
    if (sources->heat)
        heat_print(sources->heat, out);
    if (sources->observer)
        observer_print(sources->observer, out);
    metrics_containers_print(sources, out);
}
