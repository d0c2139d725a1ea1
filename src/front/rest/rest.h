/* REST: the NoSQL (DocumentDB) API of Cosmos DB over HTTP, as the vendors' client libraries speak
 * it in gateway mode.
 *
 * One handler for all of it: the path and a few headers say which operation of operations.def is
 * asked for (route.h, operation.h), the token who asks (authorize.h), and the operation's function
 * answers through its call (call.h). */
#pragma once

#include "front/admin/hooks.h"
#include "front/front.h"
#include "net/http.h"

struct rest; /* opaque, owned by the server */

enum rest_consistency {
    REST_STRONG,
    REST_BOUNDED_STALENESS,
    REST_SESSION,
    REST_CONSISTENT_PREFIX,
    REST_EVENTUAL,
};

enum { REST_SEAL_BYTES = 32 };

struct rest_options {
    struct front_services services;
    uint8_t seal[REST_SEAL_BYTES];     /* what continuations are sealed with */
    bool dev;                          /* the public emulator key is accepted as well */
    enum rest_consistency consistency; /* of the account */
    bool accounts_by_use;              /* an account is made when it is first named */
    uint32_t metadata_ru;              /* RU/s of an account for metadata; 0: not held back */
    const char *host_suffix;  /* hosts LABEL.suffix name the account LABEL; besides .localhost */
    struct admin_hooks admin; /* what /_orrery/ asks of the server */
};

/* Options are copied, the texts in them are borrowed. */
struct rest *rest_new(const struct rest_options *options);

/* Waits for the writes that a committer will still end. After the listeners have gone, before the
 * loops go. */
void rest_wait(struct rest *rest);

/* After the http it handles for is gone. NULL is fine. */
void rest_free(struct rest *rest);
CLEANUP_FN(struct rest *, rest_free)

/* The handler for net_http_new; context is a struct rest. Answers every request, with an error if
 * need be. */
void rest_handle(struct net_http_request *request, void *context);
