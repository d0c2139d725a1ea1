/* The little of HTTP that is needed to ask a question and read the answer. A connection that the
 * server closed between two requests is opened again. */
#include "cli/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "catalogue/account_keys.h"
#include "cli/cli.h"
#include "cli/client_socket.h"
#include "cli/local.h"
#include "cli/profile.h"
#include "document/json.h"
#include "document/json_number.h"
#include "front/signature.h"
#include "server/file.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <unistd.h>

enum { KEY_FILE_MAX = 16 * 1024, ANSWER_MAX = 64 * 1024 * 1024, HOST_MAX = 255 };

struct cli_client {
    bool tls;
    char host[HOST_MAX + 1];
    char port[6];
    char prefix[128]; /* "/tenant", or empty */
    char ca[PATH_MAX];
    uint8_t secret[ACCOUNT_KEY_BYTES];
    struct cli_link *link; /* owned; NULL: none is open */
    int cancel;
};

/* --- Options --------------------------------------------------------------------------------- */

void cli_client_help(void)
{
    printf(
        "  --endpoint URL       where the server is. Without it: ORRERY_ENDPOINT, the server of\n"
        "                       this user that runs here, http://127.0.0.1:8081\n"
        "  --account NAME       ask as this account instead of the default one\n"
        "  --key-file FILE      a file with a read-write key of the account. Without it:\n"
        "                       ORRERY_KEY; the public key, if that server runs with --dev; the\n"
        "                       file `keys` beside its data\n"
        "  --directory DIR      where those data are: of the first rocksdb: node. Without it,\n"
        "                       what the environment says as for `orrery serve`, where the\n"
        "                       server that runs here has them, $XDG_DATA_HOME/orrery, or\n"
        "                       ~/.local/share/orrery\n"
        "  --dev                the public emulator key, for a server started with --dev;\n"
        "                       ORRERY_DEV=true says the same\n"
        "  --profile NAME       what the file ~/.config/orrery/profiles says of this server;\n"
        "                       ORRERY_PROFILE says the same. Options win over it\n"
        "  --ca FILE            certificates (PEM) to trust besides the system's\n"
        "  --format FORMAT      table, or json: the server's answer as it is; short: --json\n"
        "  -h, --help           this text\n");
}

bool cli_format_take(const char *value, bool *ret_json)
{
    *ret_json = strcmp(value, "json") == 0;
    if (*ret_json || strcmp(value, "table") == 0)
        return true;
    cli_fail(CLI_USAGE, "--format takes table or json, not \"%s\"", value);
    return false;
}

bool cli_client_take(struct cli_client_options *options, int option, const char *value)
{
    const char **texts[] = {&options->endpoint, &options->account, &options->key_file,
                            &options->directory, &options->ca};
    int place = option - CLI_CLIENT_OPTION;

    if (option == CLI_CLIENT_OPTION_FORMAT)
        return cli_format_take(value, &options->json);
    if (option == CLI_CLIENT_OPTION_PROFILE) {
        options->profile = value;
        return true;
    }
    if (place < 0 || option > CLI_CLIENT_OPTION_FORMAT)
        return false;
    if (place < (int)ARRAY_LEN(texts))
        *texts[place] = value;
    else if (place == (int)ARRAY_LEN(texts))
        options->dev = true;
    else
        options->json = true;
    return true;
}

/* --- Where the server is --------------------------------------------------------------------- */

static bool endpoint_wrong(struct slice url, struct error *err)
{
    return error_set(err, ERROR_CONFIGURATION,
                     "\"%.*s\" is no endpoint: it looks like http://HOST:PORT or https://HOST:PORT",
                     (int)MIN(url.len, (size_t)100), (const char *)url.data);
}

static bool slice_fit(struct slice text, char *ret_text, size_t size)
{
    if (text.len >= size || (text.len && memchr(text.data, '\0', text.len)))
        return false;
    if (text.len)
        memcpy(ret_text, text.data, text.len);
    ret_text[text.len] = '\0';
    return true;
}

/* "host:port", "host", "[::1]:port". */
static bool authority_parse(struct cli_client *client, struct slice text)
{
    struct slice host = text, port = slice_of_text(client->tls ? "443" : "80");
    uint64_t number;

    if (text.len && text.data[0] == '[') {
        if (!slice_split(slice_skip(text, 1), ']', &host, &text) ||
            (text.len && text.data[0] != ':'))
            return false;
        if (text.len)
            port = slice_skip(text, 1);
    } else if (slice_split(text, ':', &host, &text)) {
        port = text;
    }
    return host.len && slice_fit(host, client->host, sizeof client->host) &&
           slice_to_uint64(port, &number) && number > 0 && number < 65536 &&
           slice_fit(port, client->port, sizeof client->port);
}

static bool endpoint_parse(struct cli_client *client, struct slice url, struct error *err)
{
    struct slice rest = url, prefix = SLICE_NONE;

    if (slice_starts_with(url, SLICE("https://")))
        client->tls = true;
    else if (!slice_starts_with(url, SLICE("http://")))
        return endpoint_wrong(url, err);
    rest = slice_skip(url, client->tls ? 8 : 7);
    (void)slice_split(rest, '/', &rest, &prefix);
    while (prefix.len && prefix.data[prefix.len - 1] == '/')
        prefix.len--;
    if (!authority_parse(client, rest))
        return endpoint_wrong(url, err);
    if (prefix.len) {
        client->prefix[0] = '/';
        if (!slice_fit(prefix, client->prefix + 1, sizeof client->prefix - 1))
            return endpoint_wrong(url, err);
    }
    return true;
}

/* --- Which key opens it ---------------------------------------------------------------------- */

static void secret_done(struct buf *buf)
{
    if (buf->len)
        OPENSSL_cleanse(buf->data, buf->len);
    buf_done(buf);
}
CLEANUP_VALUE_FN(struct buf, secret_done)

/* A key alone, or the line of the primary key in a file as the server writes it. */
static bool key_take(struct cli_client *client, struct slice text)
{
    struct slice line, rest = text;

    while (slice_split(rest, '\n', &line, &rest))
        if (slice_starts_with(line, SLICE("primary ")))
            text = slice_skip(line, 8);
    while (text.len && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r'))
        text.len--;
    return account_key_parse(slice_trim(text), client->secret);
}

static bool key_read(struct cli_client *client, const char *path, struct error *err)
{
    CLEANUP(secret_done) struct buf text;

    buf_init(&text, KEY_FILE_MAX);
    if (!server_file_read(path, &text, err))
        return false;
    return key_take(client, buf_slice(&text)) ||
           error_set(err, ERROR_CONFIGURATION, "file \"%s\" holds no account key", path);
}

static bool key_beside_data(struct cli_client *client, const char *directory, struct error *err)
{
    char path[PATH_MAX];
    struct error cause;

    snprintf(path, sizeof path, "%s/keys", directory);
    return key_read(client, path, &cause) ||
           error_set(err, ERROR_CONFIGURATION,
                     "no key is known: no server of this user runs here, and %s; give --key-file "
                     "FILE, set ORRERY_KEY, name the server's data with --directory, or use --dev "
                     "for a server started so",
                     cause.message);
}

static bool key_find(struct cli_client *client, const struct cli_client_options *options,
                     const struct cli_local *local, struct error *err)
{
    const char *variable = getenv("ORRERY_KEY");

    if (options->key_file)
        return key_read(client, options->key_file, err);
    if (options->dev)
        return key_take(client, slice_of_text(account_key_emulator));
    if (variable && variable[0])
        return key_take(client, slice_of_text(variable)) ||
               error_set(err, ERROR_CONFIGURATION, "the variable ORRERY_KEY holds no account key");
    if (local->dev)
        return key_take(client, slice_of_text(account_key_emulator));
    return key_beside_data(client, local->directory, err);
}

/* Whom to trust: what was given, else the authority a server keeps beside its data. */
static void ca_find(struct cli_client *client, const struct cli_client_options *options,
                    const char *directory)
{
    if (options->ca) {
        snprintf(client->ca, sizeof client->ca, "%s", options->ca);
        return;
    }
    snprintf(client->ca, sizeof client->ca, "%s/tls/ca.pem", directory);
    if (access(client->ca, R_OK) != 0)
        client->ca[0] = '\0';
}

static bool account_take(struct cli_client *client, const char *account, struct error *err)
{
    if (client->prefix[0])
        return error_set(err, ERROR_CONFIGURATION,
                         "the endpoint names the account \"%s\" already: leave --account out",
                         client->prefix + 1);
    client->prefix[0] = '/';
    return slice_fit(slice_of_text(account), client->prefix + 1, sizeof client->prefix - 1) ||
           error_set(err, ERROR_CONFIGURATION, "the name given with --account is too long");
}

static const char *variable_get(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

/* What was not given comes from the environment, and what that leaves open from the profile. */
static bool options_complete(struct cli_client_options *options, struct arena *arena,
                             struct error *err)
{
    const char *profile = options->profile ? options->profile : variable_get("ORRERY_PROFILE");
    const char *dev = variable_get("ORRERY_DEV");

    if (!options->endpoint)
        options->endpoint = variable_get("ORRERY_ENDPOINT");
    if (dev && strcmp(dev, "true") != 0 && strcmp(dev, "false") != 0)
        return error_set(err, ERROR_CONFIGURATION,
                         "the variable ORRERY_DEV takes true or false, not \"%s\"", dev);
    options->dev = options->dev || (dev && strcmp(dev, "true") == 0);
    /* a server that was named is not the one of [default], nor is its key */
    if (!profile && (options->endpoint || options->directory))
        return true;
    return cli_profile_apply(profile, options, arena, err);
}

bool cli_client_new(const struct cli_client_options *given, struct cli_client **ret_client,
                    struct error *err)
{
    CLEANUP(cli_client_free) struct cli_client *client = MEMORY_NEW(struct cli_client);
    CLEANUP(settings_free) struct settings *settings = settings_new();
    struct cli_client_options completed = *given, *options = &completed;
    const char *endpoint;
    struct cli_local local;

    client->cancel = -1;
    if (!options_complete(options, settings->arena, err))
        return false;
    endpoint = options->endpoint;
    if (!cli_local_find(endpoint, options->directory, settings, &local, err) ||
        !endpoint_parse(client, slice_of_text(local.endpoint), err) ||
        !key_find(client, options, &local, err) ||
        (options->account && !account_take(client, options->account, err)))
        return false;
    if (client->tls)
        ca_find(client, options, local.directory);
    *ret_client = TAKE(client);
    return true;
}

void cli_client_free(struct cli_client *client)
{
    if (client) {
        cli_link_close(client->link);
        OPENSSL_cleanse(client, sizeof *client);
    }
    memory_free(client);
}

void cli_client_cancel_by(struct cli_client *client, int descriptor)
{
    client->cancel = descriptor;
    cli_link_close(TAKE(client->link));
}

struct slice cli_client_endpoint(const struct cli_client *client, struct slice account,
                                 struct arena *arena)
{
    bool six = strchr(client->host, ':') != NULL;
    bool own = slice_equal(account, SLICE("default"));

    return arena_printf(arena, "%s://%s%s%s:%s/%.*s%s", client->tls ? "https" : "http",
                        six ? "[" : "", client->host, six ? "]" : "", client->port,
                        own ? 0 : (int)account.len, (const char *)account.data, own ? "" : "/");
}

/* --- Asking ---------------------------------------------------------------------------------- */

static void encoded_append(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i], small = c | 0x20;

        if ((small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') || (c && strchr("-_.~/", c)))
            buf_append_byte(out, c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

static void authorization_append(const struct cli_client *client, const struct cli_request *request,
                                 struct buf *out)
{
    char date[CLOCK_HTTP_DATE_LEN], small_date[CLOCK_HTTP_DATE_LEN], verb[8] = "", sig[48];
    uint8_t mac[FRONT_SIGNATURE_LEN];
    struct slice parts[] = {SLICE_NONE,    SLICE("\n"), request->type, SLICE("\n"),
                            request->link, SLICE("\n"), SLICE_NONE,    SLICE("\n\n")};

    clock_http_date(clock_wall_ms(), date);
    for (size_t i = 0; i < sizeof date; i++)
        small_date[i] = date[i] >= 'A' && date[i] <= 'Z' ? (char)(date[i] | 0x20) : date[i];
    for (size_t i = 0; request->method[i] && i < sizeof verb - 1; i++)
        verb[i] = (char)(request->method[i] | 0x20);
    parts[0] = slice_of_text(verb);
    parts[6] = slice_of(small_date, sizeof small_date);
    front_signature(slice_of(client->secret, sizeof client->secret), parts, ARRAY_LEN(parts), mac);
    EVP_EncodeBlock((unsigned char *)sig, mac, sizeof mac);
    buf_printf(out, "x-ms-date: %.*s\r\nauthorization: type%%3Dmaster%%26ver%%3D1.0%%26sig%%3D",
               CLOCK_HTTP_DATE_LEN, date);
    encoded_append(out, slice_of_text(sig));
    BUF_APPEND(out, "\r\n");
}

static void path_append(const struct cli_client *client, const struct cli_request *request,
                        struct buf *out)
{
    buf_printf(out, "%s/", client->prefix);
    if (slice_equal(request->type, SLICE("_orrery")))
        BUF_APPEND(out, "_orrery/");
    encoded_append(out, request->link);
    if (request->feed) {
        BUF_APPEND(out, "/");
        if (request->link.len == 0)
            out->len--;
        buf_append_slice(out, request->type);
    }
    if (request->query.len) {
        BUF_APPEND(out, "?");
        buf_append_slice(out, request->query);
    }
}

static void request_make(const struct cli_client *client, const struct cli_request *request,
                         struct buf *out)
{
    bool six = strchr(client->host, ':') != NULL;

    buf_printf(out, "%s ", request->method);
    path_append(client, request, out);
    buf_printf(out, " HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: orrery/%s\r\n", six ? "[" : "",
               client->host, six ? "]" : "", client->port, ORRERY_VERSION);
    BUF_APPEND(out, "x-ms-version: 2020-07-15\r\n");
    authorization_append(client, request, out);
    buf_append_slice(out, request->lines);
    if (request->body.data)
        buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                   request->content_type ? request->content_type : "application/json",
                   request->body.len);
    BUF_APPEND(out, "\r\n");
    buf_append_slice(out, request->body);
}

static bool answer_wrong(struct error *err)
{
    return error_set(err, ERROR_SYSTEM,
                     "the answer is not one of an Orrery server: is the endpoint right?");
}

struct slice cli_answer_header(const struct cli_answer *answer, const char *name)
{
    struct slice head = answer->head, line, field, value;

    while (slice_split(head, '\n', &line, &head)) {
        if (!slice_split(line, ':', &field, &value) ||
            !slice_equal_nocase(field, slice_of_text(name)))
            continue;
        return slice_trim(slice_first(value, value.len - (value.data[value.len - 1] == '\r')));
    }
    return SLICE_NONE;
}

/* Status line and headers, once they are there. *ret_length: of the body; SIZE_MAX: it goes on
 * until the server closes. */
static bool head_take(struct slice text, struct cli_answer *answer, size_t *ret_length,
                      struct error *err)
{
    const uint8_t *end = text.len ? memmem(text.data, text.len, "\r\n\r\n", 4) : NULL;
    struct slice length;
    uint64_t status, bytes;

    answer->head = SLICE_NONE;
    if (!end)
        return true;
    if (text.len < 12 || !slice_starts_with(text, SLICE("HTTP/1.")) ||
        !slice_to_uint64(slice_of(text.data + 9, 3), &status))
        return answer_wrong(err);
    answer->status = (unsigned)status;
    answer->head = slice_of(text.data, (size_t)(end - text.data) + 2);
    length = cli_answer_header(answer, "content-length");
    if (cli_answer_header(answer, "transfer-encoding").len ||
        (length.len && (!slice_to_uint64(length, &bytes) || bytes > ANSWER_MAX)))
        return answer_wrong(err);
    *ret_length = length.len ? (size_t)bytes : status == 204 || status == 304 ? 0 : SIZE_MAX;
    return true;
}

/* Reads until the answer is whole. *ret_open: the connection is good for another request. */
static bool answer_receive(struct cli_link *link, struct buf *reply, struct cli_answer *ret_answer,
                           bool *ret_open, struct error *err)
{
    size_t length = 0;
    bool end = false;

    for (;;) {
        if (!head_take(buf_slice(reply), ret_answer, &length, err))
            return false;
        if (ret_answer->head.data) {
            ret_answer->text = slice_skip(buf_slice(reply), ret_answer->head.len + 2);
            *ret_open =
                !end && ret_answer->text.len == length &&
                !slice_equal_nocase(cli_answer_header(ret_answer, "connection"), SLICE("close"));
            if (ret_answer->text.len == length || (end && length == SIZE_MAX))
                return true;
            if (ret_answer->text.len > length)
                return answer_wrong(err);
        }
        if (end)
            return error_set(err, ERROR_SYSTEM, "%s",
                             reply->len ? "the server's answer was cut off"
                                        : "the server hung up without an answer");
        if (!cli_link_read(link, reply, &end, err))
            return false;
    }
}

static bool document_of(struct slice text, struct arena *arena, struct slice *ret_document,
                        struct error *err)
{
    const struct document_limits limits = {.bytes_max = ANSWER_MAX};
    CLEANUP(buf_done) struct buf document;
    struct document_value value;

    buf_init(&document, ANSWER_MAX);
    *ret_document = SLICE_NONE;
    if (text.len == 0)
        return true;
    if (!document_json_read_value(text, &limits, &document, &value, err) ||
        (value.type != DOCUMENT_OBJECT && value.type != DOCUMENT_ARRAY))
        return answer_wrong(err);
    *ret_document = arena_copy(arena, value.document);
    return true;
}

/* The server's first line; what follows it is for whoever searches logs. */
bool cli_answer_refused(const struct cli_answer *answer, struct error *err)
{
    struct document_value message;
    struct slice text = SLICE("no reason given"), first, rest;

    if (answer->document.data && document_find(answer->document, SLICE("message"), &message) &&
        message.type == DOCUMENT_STRING)
        text = message.text;
    if (slice_split(text, '\r', &first, &rest))
        text = first;
    /* its words are for those who write clients */
    if (answer->status == 401 && slice_starts_with(text, SLICE("The input authorization token")))
        return error_set(err, ERROR_FORBIDDEN,
                         "the key is none of the account's (401): name another with --key-file "
                         "FILE or ORRERY_KEY, or with --dev the public one, and the account with "
                         "--account");
    return error_set(err, answer->status == 404 ? ERROR_NOT_FOUND : ERROR_FORBIDDEN,
                     "the server says: %.*s (%u)",
                     (int)MIN(text.len, (size_t)ERROR_MESSAGE_SIZE - 40), (const char *)text.data,
                     answer->status);
}

static bool link_ready(struct cli_client *client, struct error *err)
{
    const struct cli_socket_target target = {client->host, client->port, client->tls, client->ca,
                                             client->cancel};

    if (client->link && cli_link_is_idle(client->link))
        return true;
    cli_link_close(TAKE(client->link));
    return cli_link_open(&target, &client->link, err);
}

bool cli_client_send(struct cli_client *client, const struct cli_request *request,
                     struct arena *arena, struct cli_answer *ret_answer, struct error *err)
{
    CLEANUP(buf_done) struct buf bytes, reply;
    struct cli_answer answer = {0};
    bool open = false, received;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    buf_init(&reply, ANSWER_MAX);
    request_make(client, request, &bytes);
    if (buf_overflowed(&bytes))
        return error_set(err, ERROR_TOO_LARGE, "the request is larger than %zu bytes", bytes.max);
    if (!link_ready(client, err))
        return false;
    received = cli_link_write(client->link, buf_slice(&bytes), err) &&
               answer_receive(client->link, &reply, &answer, &open, err);
    if (!received || !open)
        cli_link_close(TAKE(client->link));
    if (!received || ((!request->bytes || answer.status >= 400) &&
                      !document_of(answer.text, arena, &answer.document, err)))
        return false;
    answer.head = arena_copy(arena, answer.head);
    answer.text = arena_copy(arena, answer.text);
    *ret_answer = answer;
    return true;
}

bool cli_client_ask(struct cli_client *client, const char *method, struct slice path,
                    struct slice query, struct slice body, struct arena *arena,
                    struct cli_answer *ret_answer, struct error *err)
{
    const struct cli_request request = {
        .method = method, .type = SLICE("_orrery"), .link = path, .query = query, .body = body};
    struct cli_answer answer;

    if (!cli_client_send(client, &request, arena, &answer, err))
        return false;
    if (answer.status >= 400)
        return cli_answer_refused(&answer, err);
    *ret_answer = answer;
    return true;
}

/* --- Reading answers ------------------------------------------------------------------------- */

struct slice cli_answer_text(struct slice document, const char *name)
{
    struct document_value value;

    return document_find(document, slice_of_text(name), &value) && value.type == DOCUMENT_STRING
               ? value.text
               : SLICE("");
}

double cli_answer_number(struct slice document, const char *name)
{
    struct document_value value;
    double number = 0;

    if (document_find(document, slice_of_text(name), &value))
        (void)document_to_double(&value, &number);
    return number;
}

struct slice cli_answer_inside(struct slice document, const char *name)
{
    static const uint8_t empty[] = {5, 0, 0, 0, 0};
    struct document_value value;

    return document_find(document, slice_of_text(name), &value) &&
                   (value.type == DOCUMENT_OBJECT || value.type == DOCUMENT_ARRAY)
               ? value.document
               : slice_of(empty, sizeof empty);
}

struct slice cli_answer_key(struct slice entry, struct arena *arena)
{
    CLEANUP(buf_done) struct buf text;
    struct document_value value;

    buf_init(&text, BUF_DEFAULT_MAX);
    if (!document_find(entry, SLICE("partitionKey"), &value) || value.type != DOCUMENT_ARRAY)
        return cli_answer_text(entry, "partitionKeyBytes");
    document_json_write_value(&value, &text);
    return arena_copy(arena, buf_slice(&text));
}

double cli_decimal(struct slice text)
{
    struct json_number number;
    struct json_fault fault;

    if (text.len == 0 || !json_number_read(text.data, text.data + text.len, &number, &fault))
        return 0;
    return number.type == DOCUMENT_DOUBLE ? number.real : (double)number.integer;
}
