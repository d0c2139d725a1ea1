/* An address in the place of a host name cannot be led elsewhere, since nobody looks it up. It is
 * refused all the same where only loopback is listened at: no honest client has another there. */
#include "front/browser.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* --- Hosts ----------------------------------------------------------------------------------- */

/* Without port, and without the brackets of an address. */
static struct slice host_name(struct slice host)
{
    struct slice name, rest;

    if (host.len && host.data[0] == '[')
        return slice_split(slice_skip(host, 1), ']', &name, &rest) ? name : SLICE("");
    return slice_split(host, ':', &name, &rest) ? name : host;
}

static bool address_parse(struct slice name, bool *ret_loopback)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr six;
    struct in_addr four;

    if (name.len >= sizeof text)
        return false;
    memcpy(text, name.data, name.len);
    text[name.len] = '\0';
    if (inet_pton(AF_INET, text, &four) == 1) {
        *ret_loopback = ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
        return true;
    }
    if (inet_pton(AF_INET6, text, &six) != 1)
        return false;
    *ret_loopback = IN6_IS_ADDR_LOOPBACK(&six) ||
                    (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == IN_LOOPBACKNET);
    return true;
}

/* A star stands for one label or several. */
static bool name_matches(struct slice known, struct slice name)
{
    struct slice end;

    if (!slice_starts_with(known, SLICE("*.")))
        return slice_equal_nocase(known, name);
    end = slice_skip(known, 1);
    return name.len > end.len && slice_equal_nocase(slice_skip(name, name.len - end.len), end);
}

bool front_hosts_have(const struct front_hosts *hosts, struct slice host)
{
    struct slice name = host_name(host);
    bool loopback;

    if (!name.len)
        return false;
    if (address_parse(name, &loopback) && (loopback || hosts->any_address))
        return true;
    for (size_t i = 0; i < hosts->count; i++)
        if (name_matches(hosts->names[i], name))
            return true;
    return false;
}

bool front_host_check(const struct front_hosts *hosts, const struct net_http_request *request,
                      struct error *err)
{
    struct slice host = net_http_header(request, SLICE("host"));

    if (!hosts || !host.data || front_hosts_have(hosts, host))
        return true;
    return error_set(err, ERROR_HOST_REFUSED,
                     "the host \"%.*s\" is not this server: use localhost or a loopback address, "
                     "or name it in the setting tls.names",
                     (int)MIN(host.len, (size_t)80), (const char *)host.data);
}

/* --- Origins --------------------------------------------------------------------------------- */

static bool origin_is_ours(const struct net_http_request *request, struct slice origin)
{
    struct slice scheme = request->tls ? SLICE("https://") : SLICE("http://");
    struct slice host = net_http_header(request, SLICE("host"));

    return origin.len == scheme.len + host.len &&
           slice_equal_nocase(slice_first(origin, scheme.len), scheme) &&
           slice_equal_nocase(slice_skip(origin, scheme.len), host);
}

bool front_request_is_foreign(const struct net_http_request *request)
{
    struct slice origin = net_http_header(request, SLICE("origin"));
    struct slice site = net_http_header(request, SLICE("sec-fetch-site"));

    if (origin.data)
        return !origin_is_ours(request, origin);
    return slice_equal_nocase(site, SLICE("cross-site")) ||
           slice_equal_nocase(site, SLICE("same-site"));
}

bool front_request_is_form(const struct net_http_request *request)
{
    static const char *const types[] = {"application/x-www-form-urlencoded", "multipart/form-data",
                                        "text/plain"};
    struct slice type = net_http_header(request, SLICE("content-type")), rest;

    (void)(type.len && slice_split(type, ';', &type, &rest));
    type = slice_trim(type);
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (slice_equal_nocase(type, slice_of_text(types[i])))
            return true;
    return false;
}

static struct slice list_next(struct slice *list)
{
    struct slice one = *list, rest = SLICE_NONE;

    (void)slice_split(*list, ',', &one, &rest);
    *list = rest;
    return slice_trim(one);
}

bool front_origin_listed(struct slice list, struct slice origin)
{
    while (list.len) {
        struct slice one = list_next(&list);

        if (slice_equal(one, SLICE("*")) || slice_equal_nocase(one, origin))
            return true;
    }
    return false;
}

bool front_origins_check(struct slice list, struct error *err)
{
    while (list.len) {
        struct slice one = list_next(&list), scheme, host;
        bool good = slice_equal(one, SLICE("*"));

        if (!good && slice_split(one, ':', &scheme, &host) && slice_starts_with(host, SLICE("//")))
            good = scheme.len > 0 && host.len > 2 && !memchr(host.data + 2, '/', host.len - 2);
        if (!good)
            return error_set(err, ERROR_CONFIGURATION,
                             "\"%.*s\" is no origin: one is a scheme, a host and perhaps a port, "
                             "without a slash behind them, as in https://app.example:8443",
                             (int)MIN(one.len, (size_t)80), (const char *)one.data);
    }
    return true;
}
