/* Portal: the web page the server carries, at /_orrery/portal/ on the REST port.
 *
 *     GET /_orrery/portal/             the page; its modules, styles and libraries beside it
 *     GET /_orrery/portal/about.json   what it has to know before anybody signs in
 *
 * Nothing here is a secret and nothing is asked for: the page signs its requests with the key its
 * user types in, as every client does, and sends them to REST and administration. So the front only
 * hands out files, under hosts that are this server alone (front/browser.h). Whatever else a page
 * could do is taken from it by headers: no script, style or picture of another origin, none inside
 * the page itself, no frame around it. */
#pragma once

#include "front/browser.h"

struct portal; /* opaque, owned by the server */

struct portal_options {
    const struct front_hosts *hosts; /* borrowed; NULL: any is served */
    bool on;
    bool dev;              /* public keys are accepted: one click signs in */
    const char *directory; /* serve files from there, for who changes them; "": packed ones */
    bool mongo, gremlin, table;
};

/* Options are copied, what they point to is borrowed. */
struct portal *portal_new(const struct portal_options *options);
void portal_free(struct portal *portal); /* after the http it handles for; NULL is fine */
CLEANUP_FN(struct portal *, portal_free)

/* Is the request for the portal? */
bool portal_takes(const struct net_http_request *request);

/* Answers it on the spot. */
void portal_handle(const struct portal *portal, struct net_http_request *request);
