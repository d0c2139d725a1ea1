#include "front/gremlin/wire/handshake.h"

#include <openssl/evp.h>

enum { KEY_LEN = 24, KEY_BYTES = 16, SHA1_LEN = 20, ACCEPT_SIZE = 29 };

/* Is the word one of a list with commas? */
static bool list_has(struct slice list, struct slice word)
{
    struct slice one, rest;

    while (slice_split(list, ',', &one, &rest)) {
        if (slice_equal_nocase(slice_trim(one), word))
            return true;
        list = rest;
    }
    return slice_equal_nocase(slice_trim(list), word);
}

bool gremlin_handshake_is_asked(const struct net_http_request *request)
{
    return list_has(net_http_header(request, SLICE("upgrade")), SLICE("websocket"));
}

/* A key is 16 bytes as base64, which says nothing: it shows that this is no answer from a cache. */
static bool key_is_good(struct slice key)
{
    uint8_t bytes[KEY_LEN];

    return key.len == KEY_LEN && key.data[KEY_LEN - 1] == '=' && key.data[KEY_LEN - 2] == '=' &&
           EVP_DecodeBlock(bytes, key.data, KEY_LEN) == KEY_BYTES + 2;
}

static void accept_make(struct slice key, char ret_text[ACCEPT_SIZE])
{
    static const char purpose[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint8_t text[KEY_LEN + sizeof purpose], digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    memcpy(text, key.data, KEY_LEN);
    memcpy(text + KEY_LEN, purpose, sizeof purpose - 1);
    if (EVP_Digest(text, KEY_LEN + sizeof purpose - 1, digest, &len, EVP_sha1(), NULL) != 1 ||
        len != SHA1_LEN)
        abort(); /* only without memory */
    EVP_EncodeBlock((uint8_t *)ret_text, digest, SHA1_LEN);
}

bool gremlin_handshake_lines(const struct net_http_request *request, struct slice *ret_lines,
                             bool *ret_version, struct error *err)
{
    struct slice key = net_http_header(request, SLICE("sec-websocket-key"));
    char accept[ACCEPT_SIZE];

    *ret_version = false;
    if (!slice_equal(request->method, SLICE("GET")) || request->http_10 || request->body.len ||
        !list_has(net_http_header(request, SLICE("connection")), SLICE("upgrade")))
        return error_set(err, ERROR_BAD_REQUEST,
                         "WebSocket begins with a GET of HTTP/1.1 without a body and with the "
                         "header \"Connection: Upgrade\"");
    if (!slice_equal(net_http_header(request, SLICE("sec-websocket-version")), SLICE("13"))) {
        *ret_version = true;
        return error_set(err, ERROR_BAD_REQUEST, "only version 13 of WebSocket is spoken here");
    }
    if (!key_is_good(key))
        return error_set(err, ERROR_BAD_REQUEST,
                         "the header Sec-WebSocket-Key is not 16 bytes as base64");
    accept_make(key, accept);
    *ret_lines = arena_printf(request->arena,
                              "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                              "Sec-WebSocket-Accept: %s\r\n",
                              accept);
    return true;
}
