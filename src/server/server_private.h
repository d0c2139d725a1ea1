/* The server's own structure, for the files of this folder that tell about it. */
#pragma once

#include "net/http.h"
#include "net/listener.h"
#include "net/workers.h"
#include "server/certificate.h"
#include "server/keys.h"
#include "server/nodes.h"
#include "server/probes.h"
#include "server/server.h"
#include "server/store.h"

struct server {
    const struct settings *settings; /* borrowed */
    struct log *log;                 /* borrowed */
    struct nodes *nodes;
    struct store *store;
    struct keys keys;
    struct certificate_source certificate_source;
    struct certificate *certificate;
    struct net_loops *loops;
    struct net_workers *workers;
    struct net_http *http;
    struct rest *rest_front;
    struct net_listener *rest; /* NULL: off */
    struct probes probes;
};
