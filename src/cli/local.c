/* A note is believed only for a loopback endpoint of the same port, or for the same directory: so
 * neither a key nor the public key goes anywhere else because a server happens to run here. */
#include "cli/local.h"

#include "server/nodes.h"
#include "server/presence.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static const char endpoint_default[] = "http://127.0.0.1:8081";

/* --- Endpoints ------------------------------------------------------------------------------- */

/* "127.0.0.1:8081" of "http://127.0.0.1:8081/tenant/". */
static struct slice authority_of(const char *endpoint)
{
    struct slice rest = slice_of_text(endpoint), before;
    const char *scheme = strstr(endpoint, "://");

    if (scheme)
        rest = slice_of_text(scheme + 3);
    return slice_split(rest, '/', &before, &rest) ? before : rest;
}

/* ":8081" behind the host; where there is none, the scheme's. */
static struct slice port_of(const char *endpoint)
{
    struct slice authority = authority_of(endpoint);

    for (size_t at = authority.len; at > 0 && authority.data[at - 1] != ']'; at--)
        if (authority.data[at - 1] == ':')
            return slice_skip(authority, at);
    return strncmp(endpoint, "https:", 6) == 0 ? SLICE("443") : SLICE("80");
}

/* Is the host of this endpoint the machine itself, by its loopback addresses? */
static bool is_loopback(const char *endpoint)
{
    struct slice authority = authority_of(endpoint), name;
    char text[INET_ADDRSTRLEN];
    struct in_addr address;

    if (slice_starts_with(authority, SLICE("[::1]")))
        return true;
    if (!slice_split(authority, ':', &name, &authority))
        name = authority;
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(name));
    if (name.len < sizeof text && inet_pton(AF_INET, text, &address) == 1)
        return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
    return slice_equal_nocase(name, SLICE("localhost")) ||
           (name.len > 10 &&
            slice_equal_nocase(slice_skip(name, name.len - 10), SLICE(".localhost")));
}

static bool same_port(const char *a, const char *b)
{
    return slice_equal(port_of(a), port_of(b));
}

/* --- Notes ----------------------------------------------------------------------------------- */

static bool same_directory(const char *a, const char *b)
{
    char left[PATH_MAX], right[PATH_MAX];

    return realpath(a, left) && realpath(b, right) && strcmp(left, right) == 0;
}

static bool several_run(const struct presence_note *notes, size_t count, struct error *err)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < MIN(count, (size_t)5); i++)
        buf_printf(&text, "%s%s", i ? ", " : "", notes[i].endpoint);
    if (count > 5)
        BUF_APPEND(&text, ", ...");
    return error_set(err, ERROR_CONFIGURATION,
                     "%zu servers run here: say which is meant with --endpoint (%.*s)", count,
                     SLICE_ARG(buf_slice(&text)));
}

/* The note of the server that is meant; *ret_note stays NULL where there is none. */
static bool note_choose(const struct presence_note *notes, size_t count, const char *endpoint,
                        const char *directory, const struct presence_note **ret_note,
                        struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (endpoint    ? is_loopback(endpoint) && same_port(endpoint, notes[i].endpoint)
            : directory ? same_directory(directory, notes[i].directory)
                        : count == 1 || same_port(endpoint_default, notes[i].endpoint)) {
            *ret_note = &notes[i];
            return true;
        }
    }
    return endpoint || directory || count == 0 || several_run(notes, count, err);
}

/* --- The whole ------------------------------------------------------------------------------- */

/* Where the environment has a server listen, as this machine reaches it; NULL: it does not say. */
static const char *endpoint_of_environment(struct settings *settings)
{
    struct slice listen = slice_of_text(settings->rest_listen), host = SLICE("");
    const char *variable = getenv("ORRERY_REST_LISTEN");

    if (!variable || slice_equal(listen, SLICE("off")) ||
        slice_equal(port_of(settings->rest_listen), SLICE("0")))
        return NULL;
    if (slice_starts_with(listen, SLICE("0.0.0.0:"))) {
        host = SLICE("127.0.0.1");
        listen = slice_skip(listen, 7);
    } else if (slice_starts_with(listen, SLICE("[::]:"))) {
        host = SLICE("[::1]");
        listen = slice_skip(listen, 4);
    }
    return arena_text(settings->arena, arena_printf(settings->arena, "%s://%.*s%.*s",
                                                    settings->tls_required ? "https" : "http",
                                                    SLICE_ARG(host), SLICE_ARG(listen)));
}

bool cli_local_find(const char *endpoint, const char *directory, struct settings *settings,
                    struct cli_local *ret_local, struct error *err)
{
    struct presence_note notes[PRESENCE_NOTES_MAX];
    const struct presence_note *note = NULL;
    struct cli_local local = {.endpoint = endpoint, .directory = directory};
    struct error ignored;

    if (!settings_read_environment(settings, environ, err))
        return false;
    if (!local.endpoint)
        local.endpoint = endpoint_of_environment(settings);
    /* nodes that have no directory: there may still be a key */
    if (!local.directory && (settings->node_count || settings->server_directory[0]) &&
        !nodes_find_directory(settings, settings->arena, &local.directory, &ignored))
        local.directory = "";
    if (!note_choose(notes, presence_list(settings->arena, notes), local.endpoint, local.directory,
                     &note, err))
        return false;
    if (note && !local.endpoint)
        local.endpoint = note->endpoint;
    if (note && !local.directory)
        local.directory = note->directory;
    if (!local.endpoint)
        local.endpoint = endpoint_default;
    if (!local.directory &&
        !nodes_find_directory(settings, settings->arena, &local.directory, &ignored))
        local.directory = "";
    local.dev = (settings->server_dev || (note && note->dev)) && is_loopback(local.endpoint);
    *ret_local = local;
    return true;
}
