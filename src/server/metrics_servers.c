#include "server/metrics_servers.h"

#include "base/memory.h"
#include "document/json.h"

static void figure(struct buf *out, const char *name, const char *type, const char *help,
                   double value)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name, value);
}

static double seconds(int64_t ms)
{
    return (double)ms / 1000;
}

void metrics_servers_print(struct member *member, const struct peer_doors *doors, struct buf *out)
{
    CLEANUP(memory_free) struct engine_membership *seen = NULL;
    struct peer_doors_metrics passed = {0};
    struct member_metrics metrics;
    size_t present = 0;

    if (!member)
        return;
    seen = MEMORY_NEW(struct engine_membership);
    (void)member_membership(member, seen);
    member_metrics(member, &metrics);
    if (doors)
        peer_doors_metrics(doors, &passed);
    for (size_t i = 0; i < seen->count; i++)
        present += seen->list[i].present;
    figure(out, "orrery_server_leader", "gauge", "1: this server owns the nodes.",
           seen->owner == member_incarnation(member));
    figure(out, "orrery_servers", "gauge", "Servers that share the nodes and run.",
           (double)present);
    figure(out, "orrery_server_term", "gauge", "How often the nodes were taken over.",
           (double)seen->term);
    figure(out, "orrery_takeovers_total", "counter", "Times this server took the nodes over.",
           (double)metrics.claims);
    figure(out, "orrery_beats_total", "counter", "Signs of life left on the root node.",
           (double)metrics.beats);
    figure(out, "orrery_beat_failures_total", "counter", "Signs of life that could not be left.",
           (double)metrics.failures);
    figure(out, "orrery_beat_age_seconds", "gauge", "Since the last sign of life was sent.",
           seconds(metrics.beat_age_ms));
    figure(out, "orrery_clock_offset_seconds", "gauge",
           "How far the clock is off that of the root node, for certain.",
           seconds(metrics.skew_ms));
    figure(out, "orrery_forwarded_total", "counter", "Connections passed on to the owner.",
           (double)passed.passed_on);
    figure(out, "orrery_forwarded_open", "gauge", "Connections passed on to the owner, now.",
           (double)passed.open);
    figure(out, "orrery_forwarded_cut_total", "counter",
           "Connections passed on and closed because the owner went.", (double)passed.cut);
    figure(out, "orrery_forwarded_given_up_total", "counter",
           "Connections refused because no server owned the nodes.", (double)passed.given_up);
    figure(out, "orrery_forwarded_taken_total", "counter",
           "Connections taken that other servers have passed on.", (double)passed.taken);
    figure(out, "orrery_forwarded_requests_total", "counter", "Requests passed on to the owner.",
           (double)passed.requests);
    figure(out, "orrery_forwarded_requests_waiting", "gauge",
           "Requests that wait for a server to own the nodes.", (double)passed.requests_waiting);
    figure(out, "orrery_forwarded_requests_repeated_total", "counter",
           "Requests passed on again because the owner went.", (double)passed.requests_repeated);
    figure(out, "orrery_forwarded_requests_lost_total", "counter",
           "Requests answered 408 because the owner went and may have done them.",
           (double)passed.requests_lost);
    figure(out, "orrery_forwarded_requests_refused_total", "counter",
           "Requests answered 503 because no server owned the nodes, or memory was full.",
           (double)passed.requests_refused);
    figure(out, "orrery_forwarded_requests_taken_total", "counter",
           "Requests taken that other servers have passed on.", (double)passed.requests_taken);
}

void metrics_servers_follower_print(const struct follower *follower, struct peer_leases *leases,
                                    struct buf *out)
{
    struct peer_leases_metrics lease;
    struct follower_metrics metrics;

    if (!follower)
        return;
    follower_metrics(follower, &metrics);
    peer_leases_metrics(leases, &lease);
    figure(out, "orrery_follower_reads_total", "counter",
           "Reads answered by this server while another one owned the nodes.",
           (double)metrics.answered);
    figure(out, "orrery_follower_unproved_total", "counter",
           "Reads begun by this server and passed on, since it could not prove what it read.",
           (double)metrics.passed_on);
    figure(out, "orrery_follower_loads_total", "counter",
           "Times the catalogue was loaded beside the owner.", (double)metrics.loads);
    figure(out, "orrery_follower_lease", "gauge", "1: reads are answered by this server now.",
           lease.held);
    figure(out, "orrery_follower_recalls_total", "counter",
           "Leases that the owner called back for a change.", (double)lease.recalled);
}

bool metrics_servers_ready(struct member *member, const struct settings *settings, struct buf *out)
{
    CLEANUP(memory_free) struct engine_membership *seen = MEMORY_NEW(struct engine_membership);
    int64_t age_ms = member_membership(member, seen);
    uint64_t incarnation = member_incarnation(member);
    const struct engine_member *self = engine_membership_find(seen, incarnation);
    const struct engine_member *owner = engine_membership_find(seen, seen->owner);
    const char *why = NULL;

    if (age_ms > settings->servers_lease_ms)
        why = "the root node has acknowledged no sign of life of this server for too long";
    else if (!self)
        why = "this server is registered no more";
    else if (self->draining)
        why = "this server drains";
    else if (!owner || !owner->present)
        why = "no server owns the nodes";
    else if (owner == self)
        why = "this server is opening the nodes";
    if (why)
        buf_printf(out, "{\"code\":\"ServiceUnavailable\",\"message\":\"%s\"", why);
    else
        BUF_APPEND(out, "{\"status\":\"ready\"");
    BUF_APPEND(out, ",\"role\":\"follower\",\"owner\":");
    document_json_write_string(slice_of_text(owner ? owner->name : ""), out);
    BUF_APPEND(out, "}\n");
    return !why;
}

static void text_member(struct buf *out, const char *name, const char *value)
{
    buf_printf(out, ",\"%s\":", name);
    document_json_write_string(slice_of_text(value), out);
}

void metrics_servers_list(struct member *member, struct buf *out)
{
    CLEANUP(memory_free) struct engine_membership *seen = MEMORY_NEW(struct engine_membership);
    int64_t age_ms = member_membership(member, seen);

    BUF_APPEND(out, "[");
    for (size_t i = 0; i < seen->count; i++) {
        const struct engine_member *one = &seen->list[i];

        buf_printf(out, "%s{\"name\":", i ? "," : "");
        document_json_write_string(slice_of_text(one->name), out);
        text_member(out, "region", one->region);
        text_member(out, "release", one->release);
        text_member(out, "state", !one->present ? "gone" : one->draining ? "draining" : "serving");
        text_member(out, "address", one->address);
        text_member(out, "endpoint", one->endpoint);
        buf_printf(out, ",\"owns\":%s,\"incarnation\":%llu,\"beat\":%llu",
                   one->incarnation == seen->owner ? "true" : "false",
                   (unsigned long long)one->incarnation, (unsigned long long)one->beat);
        if (one->incarnation == member_incarnation(member))
            buf_printf(out, ",\"beatAgeMs\":%lld,\"clockOffMs\":%lld", (long long)age_ms,
                       (long long)lease_skew_ms(seen));
        BUF_APPEND(out, "}");
    }
    BUF_APPEND(out, "]");
}
