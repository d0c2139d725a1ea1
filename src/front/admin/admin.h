/* Administration: /_orrery/..., in JSON, for the command line, the portal and scripts.
 *
 * A front of its own on the port of the REST front, with its own table of operations
 * (operations.def). Requests are signed as those of REST are: resource type `_orrery`, link the
 * path behind /_orrery/. Read-only keys see what is no secret. The default account administers the
 * server; every other account sees itself alone. docs/admin.md is the manual. */
#pragma once

#include "front/admin/hooks.h"
#include "front/front.h"
#include "front/kit/http.h"

struct admin; /* opaque, owned by the server */

struct admin_options {
    struct front_services services;
    struct front_door door;
    struct admin_hooks hooks;
    const char *cors_origins; /* of REST: answers say that they differ by origin */
};

/* Options are copied, the texts in them are borrowed. */
struct admin *admin_new(const struct admin_options *options);

/* After the http it handles for is gone. NULL is fine. */
void admin_free(struct admin *admin);
CLEANUP_FN(struct admin *, admin_free)

/* Is the request for administration? */
bool admin_takes(const struct net_http_request *request);

/* The handler of such requests; context is a struct admin. Answers each, with an error if need be.
 */
void admin_handle(struct net_http_request *request, void *context);
