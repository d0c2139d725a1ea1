/* Address: where a listener listens and where a peer comes from.
 *
 * Written ADDRESS:PORT, an IPv6 address in brackets: 127.0.0.1:8081, [::1]:8081, *:8081 (every
 * IPv4 address), localhost:8081 (127.0.0.1). Names are not looked up: that blocks, and a server
 * that listens somewhere else after a change in DNS surprises its owner. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#include <netinet/in.h>

struct net_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
    socklen_t len; /* 0: unknown, as for the end of a socketpair */
};

/* ERROR_ADDRESS when text is not of that form. Port 0 asks the system for a free one. */
NODISCARD bool net_address_parse(struct slice text, struct net_address *ret_address,
                                 struct error *err);

/* Is it one that only this machine reaches? Not if it is unknown. */
bool net_address_is_loopback(const struct net_address *address);

/* Does it mean every address of this machine? Nobody can connect to it then. */
bool net_address_is_any(const struct net_address *address);

uint16_t net_address_port(const struct net_address *address);

/* The form above, NUL-terminated; without the port for a log that wants only the host. */
enum { NET_ADDRESS_TEXT_SIZE = 64 };
void net_address_text(const struct net_address *address, char ret_text[NET_ADDRESS_TEXT_SIZE]);
void net_address_host(const struct net_address *address, char ret_text[NET_ADDRESS_TEXT_SIZE]);
