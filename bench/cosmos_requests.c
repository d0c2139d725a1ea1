/* Making a document costs more than sending it, so a few are made in advance and only their id and
 * partition key are written anew. Signatures are not kept: each is computed for its request. */
#include "cosmos_requests.h"

#include "base/clock.h"
#include "document/json.h"
#include "load.h"
#include "space.h"

#include <openssl/evp.h>

enum {
    ID_SIZE = sizeof "item-000000000",
    TENANT_SIZE = sizeof "tenant-000000",
    SECRET_MAX = 128,
    SIGNED_MAX = 512,
};

static const char container_link[] = "dbs/bench/colls/items";
static const char id_begin[] = "{\"id\":\"", tenant_begin[] = "\",\"tenant\":\"";

struct cosmos_requests {
    EVP_MAC_CTX *mac; /* keyed */
    int64_t date_s;   /* of date */
    char date[CLOCK_HTTP_DATE_LEN + 1];
    char id[ID_SIZE], tenant[TENANT_SIZE];
    struct buf templates[COSMOS_TEMPLATES]; /* JSON and a NUL */
};

static void template_make(struct buf *out, uint64_t n)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    buf_init(out, BUF_DEFAULT_MAX);
    document_json_write(bench_item_document(n, 0, arena), out);
    buf_append_byte(out, '\0');
    assert(memcmp(out->data, id_begin, sizeof id_begin - 1) == 0);
}

struct cosmos_requests *cosmos_requests_new(const char *key)
{
    struct cosmos_requests *requests = MEMORY_NEW(struct cosmos_requests);
    const OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string("digest", (char *)"SHA256", 0),
        OSSL_PARAM_construct_end()};
    EVP_MAC *algorithm = EVP_MAC_fetch(NULL, "HMAC", NULL);
    uint8_t secret[SECRET_MAX];
    size_t len = strlen(key);
    int got =
        len && len <= SECRET_MAX ? EVP_DecodeBlock(secret, (const uint8_t *)key, (int)len) : -1;

    for (; got > 0 && len && key[len - 1] == '='; len--)
        got--; /* padding comes out as zeros */
    requests->mac = EVP_MAC_CTX_new(algorithm);
    if (got <= 0 || EVP_MAC_init(requests->mac, secret, (size_t)got, parameters) != 1)
        load_fail("the key is not base64");
    EVP_MAC_free(algorithm);
    for (size_t i = 0; i < COSMOS_TEMPLATES; i++)
        template_make(&requests->templates[i], i);
    return requests;
}

void cosmos_requests_free(struct cosmos_requests *requests)
{
    for (size_t i = 0; i < COSMOS_TEMPLATES; i++)
        buf_done(&requests->templates[i]);
    EVP_MAC_CTX_free(requests->mac);
    memory_free(requests);
}

static void date_refresh(struct cosmos_requests *requests)
{
    int64_t now_ms = clock_wall_ms();

    if (now_ms / 1000 == requests->date_s)
        return;
    requests->date_s = now_ms / 1000;
    clock_http_date(now_ms, requests->date);
}

/* Appends the header's value: type, version and signature, percent-encoded. */
static void authorization_append(struct cosmos_requests *requests, const char *verb,
                                 const char *type, const char *link, struct buf *out)
{
    char text[SIGNED_MAX];
    uint8_t digest[EVP_MAX_MD_SIZE], base64[2 * EVP_MAX_MD_SIZE];
    size_t len, link_at;

    snprintf(text, sizeof text, "%s\n%s\n", verb, type);
    link_at = strlen(text);
    snprintf(text + link_at, sizeof text - link_at, "%s\n", link);
    len = strlen(text);
    for (const char *c = requests->date; *c; c++)
        text[len++] = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
    text[len++] = '\n';
    text[len++] = '\n';
    if (EVP_MAC_init(requests->mac, NULL, 0, NULL) != 1 ||
        EVP_MAC_update(requests->mac, (const uint8_t *)text, len) != 1 ||
        EVP_MAC_final(requests->mac, digest, &len, sizeof digest) != 1)
        load_fail("signing does not work");
    EVP_EncodeBlock(base64, digest, (int)len);
    BUF_APPEND(out, "type%3Dmaster%26ver%3D1.0%26sig%3D");
    for (const uint8_t *c = base64; *c; c++)
        if (*c == '+' || *c == '/' || *c == '=')
            buf_printf(out, "%%%02X", *c);
        else
            buf_append_byte(out, *c);
}

/* Request line and headers that all requests have; the verb in capitals. */
static void head_append(struct cosmos_requests *requests, const char *verb, const char *path,
                        const char *type, const char *link, struct buf *out)
{
    date_refresh(requests);
    buf_append_text(out, verb);
    buf_append_byte(out, ' ');
    buf_append_text(out, path);
    BUF_APPEND(out, " HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
                    "x-ms-version: 2020-07-15\r\nConnection: keep-alive\r\nx-ms-date: ");
    buf_append_text(out, requests->date);
    BUF_APPEND(out, "\r\nAuthorization: ");
    authorization_append(requests, verb[0] == 'G' ? "get" : "post", type, link, out);
    BUF_APPEND(out, "\r\n");
}

/* The end of the headers, and the body. */
static void text_append(struct slice body, struct buf *out)
{
    BUF_APPEND(out, "Content-Length: ");
    buf_append_uint64(out, body.len);
    BUF_APPEND(out, "\r\n\r\n");
    buf_append_slice(out, body);
}

static void body_append(struct slice body, struct buf *out)
{
    BUF_APPEND(out, "Content-Type: application/json\r\n");
    text_append(body, out);
}

void cosmos_database_create(struct cosmos_requests *requests, struct buf *out)
{
    head_append(requests, "POST", "/dbs", "dbs", "", out);
    body_append(SLICE("{\"id\":\"bench\"}"), out);
}

void cosmos_container_create(struct cosmos_requests *requests, unsigned throughput, struct buf *out)
{
    head_append(requests, "POST", "/dbs/bench/colls", "colls", "dbs/bench", out);
    buf_printf(out, "x-ms-offer-throughput: %u\r\n", throughput);
    body_append(SLICE("{\"id\":\"items\",\"partitionKey\":"
                      "{\"paths\":[\"/tenant\"],\"kind\":\"Hash\",\"version\":2}}"),
                out);
}

static void digits_print(char *to, size_t count, uint64_t n)
{
    while (count > 0) {
        to[--count] = (char)('0' + n % 10);
        n /= 10;
    }
}

struct cosmos_item cosmos_item_parts(struct cosmos_requests *requests, uint64_t n)
{
    struct buf *template = &requests->templates[n % COSMOS_TEMPLATES];
    char *id = (char *)template->data + sizeof id_begin - 1;
    char *tenant = id + ID_SIZE - 1 + sizeof tenant_begin - 1;

    digits_print(id + ID_SIZE - 1 - 9, 9, n);
    digits_print(tenant + TENANT_SIZE - 1 - 6, 6, n / 10);
    memcpy(requests->id, id, ID_SIZE - 1);
    memcpy(requests->tenant, tenant, TENANT_SIZE - 1);
    return (struct cosmos_item){requests->tenant, requests->id,
                                slice_of(template->data, template->len - 1)};
}

static void key_append(const struct cosmos_item *item, struct buf *out)
{
    BUF_APPEND(out, "x-ms-documentdb-partitionkey: [\"");
    buf_append_text(out, item->tenant);
    BUF_APPEND(out, "\"]\r\n");
}

void cosmos_item_create(struct cosmos_requests *requests, uint64_t n, struct buf *out)
{
    const struct cosmos_item item = cosmos_item_parts(requests, n);

    head_append(requests, "POST", "/dbs/bench/colls/items/docs", "docs", container_link, out);
    key_append(&item, out);
    body_append(item.json, out);
}

void cosmos_item_read(struct cosmos_requests *requests, uint64_t n, struct buf *out)
{
    const struct cosmos_item item = cosmos_item_parts(requests, n);
    char path[128];

    snprintf(path, sizeof path, "/%s/docs/%s", container_link, item.id);
    head_append(requests, "GET", path, "docs", path + 1, out);
    key_append(&item, out);
    BUF_APPEND(out, "\r\n");
}

void cosmos_item_query(struct cosmos_requests *requests, uint64_t n, struct buf *out)
{
    const struct cosmos_item item = cosmos_item_parts(requests, n);
    char body[160];

    snprintf(body, sizeof body,
             "{\"query\":\"SELECT * FROM c WHERE c.id = @id\",\"parameters\":"
             "[{\"name\":\"@id\",\"value\":\"%s\"}]}",
             item.id);
    head_append(requests, "POST", "/dbs/bench/colls/items/docs", "docs", container_link, out);
    key_append(&item, out);
    BUF_APPEND(out, "x-ms-documentdb-isquery: True\r\nContent-Type: application/query+json\r\n");
    text_append(slice_of_text(body), out);
}
