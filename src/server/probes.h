/* Probes: what the REST port answers by itself, without any API.
 *
 *     GET /ready     200 when every partition serves, else 503; which do not, and the nodes' states
 *     GET /metrics   figures for Prometheus
 *     GET /_orrery/ca.pem   the authority to trust, for whoever asks: it is public
 *
 * Nobody signs these, so they are served under the hosts of tls.names alone (front/browser.h).
 * Everything else goes on to the fronts of the port: the portal, graphs,
 * commands of MongoDB, administration, and REST. */
#pragma once

#include "front/admin/admin.h"
#include "front/gremlin/command/signed.h"
#include "front/mongo/command/signed.h"
#include "front/portal/portal.h"
#include "front/rest/rest.h"
#include "server/certificate.h"
#include "server/metrics.h"
#include "server/prober.h"

struct probes {
    struct metrics_sources sources;  /* complete, but for rest, before the first request */
    struct certificate *certificate; /* borrowed; loaded before the first request */
    const struct front_hosts *hosts; /* that are served; borrowed. NULL: any is */
    struct rest *rest;               /* borrowed */
    struct admin *admin;             /* borrowed */
    struct portal *portal;           /* borrowed */
    struct gremlin *gremlin;         /* borrowed */
    struct mongo *mongo;             /* borrowed; NULL: it is switched off */
    struct prober *ready, *metrics;  /* owned */
};

/* Before the first request; after the listeners, before the loops. */
void probes_start(struct probes *probes);
void probes_stop(struct probes *probes);

/* The handler for net_http_new; context is a struct probes. */
void probes_handle(struct net_http_request *request, void *context);
