/* Links are followed before paths are compared, as far as a path exists; what does not exist yet is
 * compared as it is written, without "..". */
#include "server/node_paths.h"

#include "base/arena.h"
#include "front/text.h"

#include <limits.h>
#include <stdlib.h>

static bool has_parent_segment(struct slice path)
{
    struct slice segment, rest = path;

    while (slice_split(rest, '/', &segment, &rest))
        if (slice_equal(segment, SLICE("..")))
            return true;
    return slice_equal(rest, SLICE(".."));
}

/* The path without links, in so far as it exists. False: it is too long, or nothing of it does. */
static bool path_settle(struct slice path, char ret_path[PATH_MAX])
{
    char head[PATH_MAX], *slash;
    size_t length;

    if (!path.len || path.len >= sizeof head)
        return false;
    memcpy(head, path.data, path.len);
    head[path.len] = '\0';
    while (!realpath(head, ret_path)) {
        slash = strrchr(head, '/');
        if (!slash || slash == head) {
            if (!realpath(slash ? "/" : ".", ret_path))
                return false;
            slash = slash ? slash : head;
            *slash = '\0';
            break;
        }
        *slash = '\0';
    }
    length = strlen(ret_path);
    return (size_t)snprintf(ret_path + length, PATH_MAX - length, "%s%.*s",
                            head[0] || path.data[0] == '/' ? "" : "/",
                            (int)(path.len - strlen(head)),
                            (const char *)path.data + strlen(head)) < PATH_MAX - length;
}

static bool path_is_below(struct slice path, struct slice directory)
{
    char own[PATH_MAX], settled[PATH_MAX];
    size_t length;

    if (has_parent_segment(path) || !path_settle(path, settled) || !path_settle(directory, own))
        return false;
    length = strlen(own);
    if (length && own[length - 1] == '/')
        length--;
    return strncmp(settled, own, length) == 0 && settled[length] == '/';
}

static bool path_check(struct slice path, struct slice directories, struct error *err)
{
    struct slice one;

    while (directories.len) {
        struct slice rest = SLICE_NONE;

        one = directories;
        (void)slice_split(directories, ',', &one, &rest);
        directories = rest;
        if (path_is_below(path, slice_trim(one)))
            return true;
    }
    return error_set(err, ERROR_FORBIDDEN,
                     "a node that is added to a running server may not use \"%.*s\": only what is "
                     "below the directories of the setting nodes.add_paths; or name the node in "
                     "the configuration",
                     (int)MIN(path.len, (size_t)60), (const char *)path.data);
}

/* --- PostgreSQL ------------------------------------------------------------------------------ */

static bool is_socket(struct slice host)
{
    return host.len && (host.data[0] == '/' || host.data[0] == '@');
}

/* Host names with commas between them, of which any may be the directory of a socket. */
static bool hosts_check(struct slice hosts, struct slice directories, struct arena *arena,
                        struct error *err)
{
    struct slice decoded;

    if (!front_percent_decode(hosts, arena, &decoded))
        return error_set(err, ERROR_BAD_REQUEST, "the node's URL has a broken escape");
    while (decoded.len) {
        struct slice one = decoded, rest = SLICE_NONE;

        (void)slice_split(decoded, ',', &one, &rest);
        decoded = rest;
        if (is_socket(one) && !path_check(one, directories, err))
            return false;
    }
    return true;
}

static bool parameter_check(struct slice parameter, struct slice directories, struct arena *arena,
                            struct error *err)
{
    static const char *const files[] = {"sslcert",   "sslkey",   "sslrootcert", "sslcrl",
                                        "sslcrldir", "passfile", "servicefile"};
    struct slice name, value;

    if (!slice_split(parameter, '=', &name, &value) || !front_percent_decode(name, arena, &name) ||
        !front_percent_decode(value, arena, &value))
        return error_set(err, ERROR_BAD_REQUEST,
                         "a parameter of the node's URL is not NAME=VALUE, or has a broken escape");
    if (slice_equal(name, SLICE("service")))
        return error_set(err, ERROR_FORBIDDEN,
                         "a node that is added to a running server may not name a service, which "
                         "is looked up in files: name the node in the configuration");
    if (slice_equal(name, SLICE("host")) || slice_equal(name, SLICE("hostaddr")))
        return hosts_check(value, directories, arena, err);
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (slice_equal(name, slice_of_text(files[i])) && !slice_equal(value, SLICE("system")))
            return path_check(value, directories, err);
    return true;
}

/* postgresql://user:password@host:port,host/database?name=value&name=value */
static bool postgresql_check(struct slice url, struct slice directories, struct arena *arena,
                             struct error *err)
{
    struct slice rest = url, query = SLICE_NONE, authority, user, one;

    while (rest.len && rest.data[0] == '/')
        rest = slice_skip(rest, 1);
    (void)slice_split(rest, '?', &rest, &query);
    authority = rest;
    (void)slice_split(rest, '/', &authority, &one);
    while (slice_split(authority, '@', &user, &authority))
        ;
    if (!hosts_check(authority, directories, arena, err))
        return false;
    while (query.len) {
        struct slice tail = SLICE_NONE;

        one = query;
        (void)slice_split(query, '&', &one, &tail);
        query = tail;
        if (!parameter_check(one, directories, arena, err))
            return false;
    }
    return true;
}

bool server_node_paths_check(struct slice url, struct slice directories, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice scheme, rest;

    if (!slice_split(url, ':', &scheme, &rest) || slice_equal(scheme, SLICE("memory")))
        return true; /* what has no scheme is refused by the engines */
    if (slice_equal(scheme, SLICE("postgresql")) || slice_equal(scheme, SLICE("postgres")))
        return postgresql_check(rest, directories, arena, err);
    return path_check(rest, directories, err);
}
