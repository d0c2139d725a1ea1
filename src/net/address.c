#include "net/address.h"

#include <arpa/inet.h>

static bool port_parse(struct slice text, uint16_t *ret_port)
{
    uint64_t port;

    if (!slice_to_uint64(text, &port) || port > UINT16_MAX)
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

/* Cuts "host:port" at the last colon; a host with colons of its own must stand in brackets. */
static bool text_split(struct slice text, struct slice *ret_host, struct slice *ret_port,
                       bool *ret_v6)
{
    size_t colon = text.len;

    while (colon > 0 && text.data[colon - 1] != ':')
        colon--;
    if (colon == 0)
        return false;
    *ret_host = slice_first(text, colon - 1);
    *ret_port = slice_skip(text, colon);
    *ret_v6 =
        ret_host->len >= 2 && ret_host->data[0] == '[' && ret_host->data[ret_host->len - 1] == ']';
    if (*ret_v6)
        *ret_host = slice_of(ret_host->data + 1, ret_host->len - 2);
    return true;
}

bool net_address_parse(struct slice text, struct net_address *ret_address, struct error *err)
{
    struct net_address address = {0};
    struct slice host, port_text;
    char host_text[NET_ADDRESS_TEXT_SIZE];
    uint16_t port;
    bool v6, ok;

    if (!text_split(text, &host, &port_text, &v6) || !port_parse(port_text, &port) ||
        host.len >= sizeof host_text)
        return error_set(err, ERROR_ADDRESS,
                         "address \"%.*s\" is not of the form 127.0.0.1:8081 or [::1]:8081",
                         SLICE_ARG(text));
    if (!v6 && slice_equal(host, SLICE("*")))
        host = SLICE("0.0.0.0");
    if (!v6 && slice_equal(host, SLICE("localhost")))
        host = SLICE("127.0.0.1");
    memcpy(host_text, host.data, host.len);
    host_text[host.len] = '\0';
    if (v6) {
        address.v6.sin6_family = AF_INET6;
        address.v6.sin6_port = htons(port);
        address.len = sizeof address.v6;
        ok = inet_pton(AF_INET6, host_text, &address.v6.sin6_addr) == 1;
    } else {
        address.v4.sin_family = AF_INET;
        address.v4.sin_port = htons(port);
        address.len = sizeof address.v4;
        ok = inet_pton(AF_INET, host_text, &address.v4.sin_addr) == 1;
    }
    /* An embedded NUL would have ended the text early. */
    if (!ok || strlen(host_text) != host.len)
        return error_set(err, ERROR_ADDRESS,
                         "address \"%.*s\" does not begin with an IP address, * or localhost",
                         SLICE_ARG(text));
    *ret_address = address;
    return true;
}

bool net_address_is_loopback(const struct net_address *address)
{
    if (address->len == 0)
        return false;
    if (address->any.sa_family == AF_INET)
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->any.sa_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr) ||
            (IN6_IS_ADDR_V4MAPPED(&address->v6.sin6_addr) &&
             address->v6.sin6_addr.s6_addr[12] == IN_LOOPBACKNET));
}

uint16_t net_address_port(const struct net_address *address)
{
    if (address->len == 0)
        return 0;
    return ntohs(address->any.sa_family == AF_INET6 ? address->v6.sin6_port : address->v4.sin_port);
}

void net_address_host(const struct net_address *address, char ret_text[NET_ADDRESS_TEXT_SIZE])
{
    const void *bytes = address->any.sa_family == AF_INET6 ? (const void *)&address->v6.sin6_addr
                                                           : (const void *)&address->v4.sin_addr;

    if (address->len == 0 ||
        !inet_ntop(address->any.sa_family, bytes, ret_text, NET_ADDRESS_TEXT_SIZE))
        snprintf(ret_text, NET_ADDRESS_TEXT_SIZE, "unknown");
}

void net_address_text(const struct net_address *address, char ret_text[NET_ADDRESS_TEXT_SIZE])
{
    char host[NET_ADDRESS_TEXT_SIZE];
    bool v6 = address->len && address->any.sa_family == AF_INET6;

    net_address_host(address, host);
    snprintf(ret_text, NET_ADDRESS_TEXT_SIZE, v6 ? "[%.46s]:%u" : "%.46s:%u", host,
             net_address_port(address));
}

bool net_address_is_any(const struct net_address *address)
{
    if (address->len == 0)
        return false;
    return address->any.sa_family == AF_INET ? address->v4.sin_addr.s_addr == INADDR_ANY
                                             : IN6_IS_ADDR_UNSPECIFIED(&address->v6.sin6_addr);
}
