/* Owner: an account as the one at whose expense workers and memory are used. */
#pragma once

#include "front/front.h"
#include "net/http.h"

/* Bills the request to the account from here on: what it holds, and who takes turns with whom.
 * account NULL: nobody's. ERROR_MEMORY_FULL: the account, or the server, holds as much as it may.
 * In the handler. */
NODISCARD bool front_owner_bill(const struct front_services *services,
                                const struct account *account, struct net_http_request *request,
                                struct net_owner **ret_owner, struct error *err);

/* The same question for a request that has waited since. */
NODISCARD bool front_owner_check(struct net_owner *owner, struct error *err);

/* Which of the owner's lanes of work a container has. */
uint64_t front_owner_part(struct slice database, struct slice container);
