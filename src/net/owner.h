/* Owner: on whose behalf work is done and memory is held. The fronts name one for each account, so
 * that what an account asks for is bounded by its own share and not by what is left.
 *
 * An owner is found by a number and lives as long as the owners do: there are as many as there were
 * accounts. Any thread. */
#pragma once

#include "base/memory_meter.h"

struct net_owner;  /* opaque */
struct net_owners; /* opaque, owned */

/* server: what all of them hold together, borrowed; bytes_max: what each may hold. */
struct net_owners *net_owners_new(struct memory_meter *server, size_t bytes_max);
void net_owners_free(struct net_owners *owners); /* NULL is fine */
CLEANUP_FN(struct net_owners *, net_owners_free)

/* The owner of that number, made if there is none: it asks for something now. */
struct net_owner *net_owners_find(struct net_owners *owners, uint64_t number);

/* The same for an owner whose account is still to be made. Once it is there it is another owner, so
 * this one has less than what the account leaves to others: both together never have every thread.
 */
struct net_owner *net_owners_find_guest(struct net_owners *owners, uint64_t number);

/* Has nobody else asked for anything of late, so that there is nobody to be fair to? */
bool net_owner_is_alone(const struct net_owner *owner);

/* What it holds; of owner NULL: NULL. */
struct memory_meter *net_owner_memory(struct net_owner *owner);
