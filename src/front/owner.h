/* Owner: an account as the one at whose expense workers and memory are used. */
#pragma once

#include "front/front.h"
#include "net/http.h"

/* At whose expense the account of that name works. Of one that is still to be made, account NULL:
 * one of a few owners, by its name, so that whatever is asked before it is there has a share as
 * well. NULL: nobody counts. */
struct net_owner *front_owner_find(const struct front_services *services,
                                   const struct account *account, struct slice id);

/* Bills the request to the account from here on: what it holds, and who takes turns with whom.
 * ERROR_MEMORY_FULL: the account, or the server, holds as much as it may.
 * In the handler. */
NODISCARD bool front_owner_bill(const struct front_services *services,
                                const struct account *account, struct slice id,
                                struct net_http_request *request, struct net_owner **ret_owner,
                                struct error *err);

/* Holds so many bytes more for the owner, for as long as a request is worked on; the same error.
 * owner NULL: nobody counts. From any thread. */
NODISCARD bool front_owner_hold(struct net_owner *owner, size_t bytes, struct error *err);
void front_owner_let_go(struct net_owner *owner, size_t bytes);

/* Which of the owner's lanes of work a container has. */
uint64_t front_owner_part(struct slice database, struct slice container);
