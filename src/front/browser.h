/* Browsers: what a page of somebody else may make one do with this server.
 *
 * A page may lead its own name to this server's address (DNS rebinding): the browser then takes the
 * server for the page's own and lets it read the answers. Such requests carry the page's name as
 * Host. So where no secret is asked for, or one that everybody knows, only hosts are served that
 * nobody else can lead here.
 *
 * And a page may send some requests to any server without being let read the answers: a form is
 * enough. These carry the page's Origin. */
#pragma once

#include "net/http.h"

/* The hosts that are this server. */
struct front_hosts {
    const struct slice *names; /* "db.example", "*.db.example", "10.0.0.7"; borrowed */
    size_t count;
    bool any_address; /* addresses are served whichever they are, else loopback ones */
};

/* Whether a Host, with its port, is one of them. */
bool front_hosts_have(const struct front_hosts *hosts, struct slice host);

/* The same of a request. One without Host, which no browser sends, is served. hosts NULL: any is.
 * ERROR_HOST_REFUSED. */
NODISCARD bool front_host_check(const struct front_hosts *hosts,
                                const struct net_http_request *request, struct error *err);

/* Does a browser send it on behalf of a page that did not come from here? */
bool front_request_is_foreign(const struct net_http_request *request);

/* Whether the request has such a body as a form can send without being asked. */
bool front_request_is_form(const struct net_http_request *request);

/* Is the origin in a list with commas? A star stands for all. */
bool front_origin_listed(struct slice list, struct slice origin);

/* Whether a setting is such a list. ERROR_CONFIGURATION says what is wrong with it. */
NODISCARD bool front_origins_check(struct slice list, struct error *err);
