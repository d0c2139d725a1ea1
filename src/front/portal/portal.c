/* Packed files are handed out as they are: every browser takes gzip, and for who does not they are
 * unpacked. A browser keeps them and asks with their tag whether they are still the same, so
 * another build of the server is seen at the next look and costs nothing when there is none.
 *
 * A folder in the place of the packed files (portal.directory) is read on the loop, file by file:
 * it is for one person who changes the portal, not for service. */
#include "front/portal/portal.h"

#include "base/memory.h"
#include "catalogue/account_keys.h"
#include "front/portal/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { NAME_MAX_BYTES = 200, FILE_BYTES_MAX = 4 * 1024 * 1024 };

static const struct slice root = {(const uint8_t *)"/_orrery/portal", 15};

/* No inline script or style, nothing of another origin, no frame, no form that leaves; and no text
 * ever becomes markup: trusted types are required and none are made. */
static const char safe_lines[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Permissions-Policy: camera=(), microphone=(), geolocation=()\r\n"
    "Vary: Accept-Encoding\r\n"
    "Cache-Control: no-cache\r\n";

struct portal {
    struct portal_options options;
};

struct portal *portal_new(const struct portal_options *options)
{
    struct portal *portal = MEMORY_NEW(struct portal);

    portal->options = *options;
    return portal;
}

void portal_free(struct portal *portal)
{
    memory_free(portal);
}

bool portal_takes(const struct net_http_request *request)
{
    return slice_starts_with(request->path, root) &&
           (request->path.len == root.len || request->path.data[root.len] == '/');
}

/* --- Answers --------------------------------------------------------------------------------- */

/* An answer: extra header lines stand before those that every answer has. */
struct answer {
    uint16_t status;
    const char *type;
    const char *lines;
    struct slice body;
    enum net_http_body body_kind;
};

static void respond(struct net_http_request *request, const struct answer *answer)
{
    struct slice lines = arena_printf(request->arena, "Content-Type: %s\r\n%s%s", answer->type,
                                      answer->lines ? answer->lines : "", safe_lines);

    net_http_respond(request, &(struct net_http_response){
                                  .status = answer->status,
                                  .lines = lines,
                                  .body = answer->body,
                                  .body_kind = answer->body_kind,
                              });
}

static void respond_error(struct net_http_request *request, const struct error *err)
{
    respond(request, &(struct answer){
                         .status = err->status,
                         .type = "application/json",
                         .lines = err->status == 405 ? "Allow: GET, HEAD\r\n" : NULL,
                         .body = net_http_error_body(request->arena, err->status, err->message),
                         .body_kind = NET_HTTP_BODY_IN_ARENA,
                     });
}

static void respond_missing(struct net_http_request *request, struct slice name)
{
    struct error err;

    error_set(&err, ERROR_NOT_FOUND, "the portal has no \"%.*s\"", (int)MIN(name.len, (size_t)100),
              (const char *)name.data);
    respond_error(request, &err);
}

/* --- Packed files ---------------------------------------------------------------------------- */

static const struct portal_file *file_find(struct slice name)
{
    for (size_t i = 0; i < portal_file_count; i++)
        if (slice_equal(name, slice_of_text(portal_files[i].name)))
            return &portal_files[i];
    return NULL;
}

/* Only that is understood what browsers send: names with commas between them. */
static bool takes_gzip(const struct net_http_request *request)
{
    struct slice list = net_http_header(request, SLICE("accept-encoding")), one, rest;

    while (list.len) {
        if (!slice_split(list, ',', &one, &rest)) {
            one = list;
            rest = SLICE_NONE;
        }
        if (slice_equal_nocase(slice_trim(one), SLICE("gzip")))
            return true;
        list = rest;
    }
    return false;
}

static struct slice unpacked(const struct portal_file *file, struct arena *arena)
{
    uint8_t *bytes = arena_alloc(arena, file->len + 1);
    z_stream stream = {
        .next_in = (Bytef *)(uintptr_t)file->packed.data,
        .avail_in = (uInt)file->packed.len,
        .next_out = bytes,
        .avail_out = (uInt)file->len + 1,
    };
    int begun = inflateInit2(&stream, 16 + MAX_WBITS), ended = inflate(&stream, Z_FINISH);

    assert(begun == Z_OK && ended == Z_STREAM_END && stream.total_out == file->len);
    inflateEnd(&stream);
    return slice_of(bytes, file->len);
}

static void respond_packed(struct net_http_request *request, const struct portal_file *file)
{
    struct slice known = net_http_header(request, SLICE("if-none-match"));
    struct slice tag = arena_printf(request->arena, "ETag: %s\r\n%s", file->etag,
                                    takes_gzip(request) ? "Content-Encoding: gzip\r\n" : "");
    struct answer answer = {
        .status = 200,
        .type = file->type,
        .lines = arena_text(request->arena, tag),
        .body_kind = NET_HTTP_BODY_IN_ARENA,
    };

    if (slice_equal(known, slice_of_text(file->etag)))
        answer.status = 304;
    else
        answer.body = takes_gzip(request) ? file->packed : unpacked(file, request->arena);
    respond(request, &answer);
}

/* --- A folder -------------------------------------------------------------------------------- */

static const char *type_of(struct slice name)
{
    static const struct {
        struct slice end;
        const char *type;
    } types[] = {
        {SLICE(".html"), "text/html; charset=utf-8"},
        {SLICE(".css"), "text/css; charset=utf-8"},
        {SLICE(".js"), "text/javascript; charset=utf-8"},
        {SLICE(".svg"), "image/svg+xml"},
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (name.len > types[i].end.len &&
            slice_equal(slice_skip(name, name.len - types[i].end.len), types[i].end))
            return types[i].type;
    return NULL;
}

/* Names of our files have these letters alone, and no part of them begins with a dot. */
static bool name_is_plain(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';

        if (!plain && !((c == '.' || c == '/') && i && name.data[i - 1] != '/'))
            return false;
    }
    return name.len && name.len < NAME_MAX_BYTES;
}

static bool folder_read(const char *directory, struct slice name, struct arena *arena,
                        struct slice *ret_bytes)
{
    const char *path =
        arena_text(arena, arena_printf(arena, "%s/%.*s", directory, SLICE_ARG(name)));
    struct stat about;
    uint8_t *bytes = NULL;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return false;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size <= FILE_BYTES_MAX) {
        bytes = arena_alloc(arena, (size_t)about.st_size + 1);
        got = read(fd, bytes, (size_t)about.st_size);
    }
    close(fd);
    if (got < 0)
        return false;
    *ret_bytes = slice_of(bytes, (size_t)got);
    return true;
}

static bool respond_from_folder(const struct portal *portal, struct net_http_request *request,
                                struct slice name)
{
    struct answer answer = {
        .status = 200, .type = type_of(name), .body_kind = NET_HTTP_BODY_IN_ARENA};

    /* libraries are made at build time: those in the folder are what they are made of */
    if (!portal->options.directory[0] || !answer.type || !name_is_plain(name) ||
        slice_starts_with(name, SLICE("libraries/")) ||
        !folder_read(portal->options.directory, name, request->arena, &answer.body))
        return false;
    respond(request, &answer);
    return true;
}

/* --- About ----------------------------------------------------------------------------------- */

static const char *truth(bool is)
{
    return is ? "true" : "false";
}

/* The key is there only where everybody knows it. */
static void respond_about(const struct portal *portal, struct net_http_request *request)
{
    const struct portal_options *options = &portal->options;
    struct slice body = arena_printf(
        request->arena,
        "{\"version\":\"" ORRERY_VERSION "\",\"dev\":%s,\"libraries\":%s,"
        "\"apis\":{\"mongo\":%s,\"gremlin\":%s,\"table\":%s}%s%s%s}",
        truth(options->dev), truth(file_find(SLICE("libraries/editor.js"))), truth(options->mongo),
        truth(options->gremlin), truth(options->table), options->dev ? ",\"key\":\"" : "",
        options->dev ? account_key_emulator : "", options->dev ? "\"" : "");

    respond(request, &(struct answer){
                         .status = 200,
                         .type = "application/json",
                         .body = body,
                         .body_kind = NET_HTTP_BODY_IN_ARENA,
                     });
}

/* --- The way of a request -------------------------------------------------------------------- */

static bool request_check(const struct portal *portal, const struct net_http_request *request,
                          struct error *err)
{
    bool reads =
        slice_equal(request->method, SLICE("GET")) || slice_equal(request->method, SLICE("HEAD"));

    if (!front_host_check(portal->options.hosts, request, err))
        return false;
    if (!portal->options.on)
        return error_set(err, ERROR_NOT_FOUND, "the portal is switched off (portal.on)");
    return reads || error_set(err, ERROR_METHOD_NOT_ALLOWED, "the portal can only be read");
}

void portal_handle(const struct portal *portal, struct net_http_request *request)
{
    struct slice name = slice_skip(request->path, MIN(request->path.len, root.len + 1));
    const struct portal_file *file;
    struct error err;

    if (!request_check(portal, request, &err)) {
        respond_error(request, &err);
        return;
    }
    if (request->path.len == root.len) {
        respond(request, &(struct answer){.status = 308,
                                          .type = "text/plain",
                                          .lines = "Location: /_orrery/portal/\r\n"});
        return;
    }
    if (slice_equal(name, SLICE("about.json"))) {
        respond_about(portal, request);
        return;
    }
    if (!name.len)
        name = SLICE("index.html");
    if (respond_from_folder(portal, request, name))
        return;
    file = file_find(name);
    if (file)
        respond_packed(request, file);
    else
        respond_missing(request, name);
}
