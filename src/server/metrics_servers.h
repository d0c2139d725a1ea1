/* Figures of a server among others, and whether it is ready: the part that a follower has too. */
#pragma once

#include "base/buf.h"
#include "peer/doors.h"
#include "server/follower.h"
#include "server/member.h"

/* Prometheus' text. Nothing where member is NULL. */
void metrics_servers_print(struct member *member, const struct peer_doors *doors, struct buf *out);

/* The same of what it answers by itself while another server owns the nodes. NULL: nothing. */
void metrics_servers_follower_print(const struct follower *follower, struct peer_leases *leases,
                                    struct buf *out);

/* JSON. Ready: an owner is known, this server does not drain, and its beats are acknowledged. */
bool metrics_servers_ready(struct member *member, const struct settings *settings, struct buf *out);

/* A JSON array of all servers. */
void metrics_servers_list(struct member *member, struct buf *out);
