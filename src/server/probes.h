/* Probes: what the REST port answers by itself, without any API.
 *
 *     GET /ready     200 when every partition of every node serves, else 503 with the reason
 *     GET /metrics   figures for Prometheus
 *     GET /_orrery/ca.pem   the authority to trust, for whoever asks: it is public
 *
 * Everything else gets a named error as JSON, never an empty body: 501 for the resources of the
 * NoSQL API, which this version does not have, 404 for what no version will have. */
#pragma once

#include "server/certificate.h"
#include "server/metrics.h"

struct probes {
    struct metrics_sources sources;  /* complete, but for rest, before the first request */
    struct certificate *certificate; /* borrowed; loaded before the first request */
};

/* The handler for net_http_new; context is a struct probes. */
void probes_handle(struct net_http_request *request, void *context);
