#include "table_requests.h"

#include "base/clock.h"
#include "base/memory.h"
#include "catalogue/account_keys.h"
#include "front/signature.h"

#include <inttypes.h>
#include <openssl/evp.h>

/* Of the storage emulators: no secret. */
static const char key[] =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

enum { NOTE_LEN = 700, BASE64_SIZE = 45 };

struct table_requests {
    uint8_t secret[ACCOUNT_KEY_BYTES];
    char date[CLOCK_HTTP_DATE_LEN + 1];
    int64_t date_s;
    char note[NOTE_LEN + 1];
    struct buf body, path;
};

struct table_requests *table_requests_new(void)
{
    struct table_requests *requests = MEMORY_NEW(struct table_requests);

    if (!account_key_parse(slice_of_text(key), requests->secret))
        assert(!"a key");
    for (size_t i = 0; i < NOTE_LEN; i++)
        requests->note[i] = (char)('a' + i * 7 % 26);
    buf_init(&requests->body, BUF_DEFAULT_MAX);
    buf_init(&requests->path, BUF_DEFAULT_MAX);
    return requests;
}

void table_requests_free(struct table_requests *requests)
{
    buf_done(&requests->body);
    buf_done(&requests->path);
    memory_free(requests);
}

/* The head of a request for the path at hand, signed; query: with its question mark, or empty. */
static void head_append(struct table_requests *requests, const char *method, const char *query,
                        const char *headers, struct buf *out)
{
    int64_t now_ms = clock_wall_ms();
    uint8_t digest[FRONT_SIGNATURE_LEN];
    char base64[BASE64_SIZE];
    struct slice parts[3];

    if (now_ms / 1000 != requests->date_s) {
        requests->date_s = now_ms / 1000;
        clock_http_date(now_ms, requests->date);
    }
    parts[0] = slice_of(requests->date, CLOCK_HTTP_DATE_LEN);
    parts[1] = SLICE("\n/" TABLE_REQUESTS_ACCOUNT);
    parts[2] = buf_slice(&requests->path);
    front_signature(slice_of(requests->secret, sizeof requests->secret), parts, ARRAY_LEN(parts),
                    digest);
    EVP_EncodeBlock((uint8_t *)base64, digest, sizeof digest);
    buf_printf(out,
               "%s %.*s%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n"
               "Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n"
               "x-ms-version: 2019-02-02\r\nx-ms-date: %s\r\n"
               "Authorization: SharedKeyLite " TABLE_REQUESTS_ACCOUNT ":%s\r\n%s",
               method, SLICE_ARG(buf_slice(&requests->path)), query, requests->date, base64,
               headers);
}

static void path_set(struct table_requests *requests, const char *path)
{
    buf_clear(&requests->path);
    BUF_APPEND(&requests->path, "/" TABLE_REQUESTS_ACCOUNT "/");
    buf_append_text(&requests->path, path);
}

static void body_append(struct table_requests *requests, struct buf *out)
{
    buf_printf(out, "Content-Length: %zu\r\n\r\n", requests->body.len);
    buf_append_slice(out, buf_slice(&requests->body));
}

static void keys_print(uint64_t n, const char *format, struct buf *out)
{
    char partition[32], row[32];

    snprintf(partition, sizeof partition, "p%08" PRIu64, n / TABLE_PARTITION_ENTITIES);
    snprintf(row, sizeof row, "r%010" PRIu64, n);
    buf_printf(out, format, partition, row);
}

static void properties_append(struct table_requests *requests, uint64_t n, struct buf *out)
{
    buf_printf(out,
               "\"name\":\"name %" PRIu64 "\",\"count\":%" PRIu64 ",\"price\":%" PRIu64
               ".5,\"active\":%s,\"city\":\"city %" PRIu64 "\",\"serial\":\"%" PRIu64
               "\",\"serial@odata.type\":\"Edm.Int64\","
               "\"created\":\"2024-01-%02" PRIu64 "T03:04:05.1234567Z\","
               "\"created@odata.type\":\"Edm.DateTime\",\"note\":\"%s\"}",
               n % 1000, n % 10, n % 100, n % 2 ? "true" : "false", n % 50, n, n % 28 + 1,
               requests->note);
}

void table_request_create(struct table_requests *requests, const char *table, unsigned throughput,
                          struct buf *out)
{
    char headers[128];

    path_set(requests, "Tables");
    buf_clear(&requests->body);
    buf_printf(&requests->body, "{\"TableName\":\"%s\"}", table);
    snprintf(headers, sizeof headers,
             "Content-Type: application/json\r\nx-ms-offer-throughput: %u\r\n", throughput);
    head_append(requests, "POST", "", headers, out);
    body_append(requests, out);
}

void table_request_insert(struct table_requests *requests, const char *table, uint64_t n,
                          struct buf *out)
{
    path_set(requests, table);
    buf_clear(&requests->body);
    keys_print(n, "{\"PartitionKey\":\"%s\",\"RowKey\":\"%s\",", &requests->body);
    properties_append(requests, n, &requests->body);
    head_append(requests, "POST", "",
                "Content-Type: application/json;odata=nometadata\r\nPrefer: return-no-content\r\n",
                out);
    body_append(requests, out);
}

void table_request_get(struct table_requests *requests, uint64_t n, struct buf *out)
{
    path_set(requests, "bench");
    keys_print(n, "(PartitionKey='%s',RowKey='%s')", &requests->path);
    head_append(requests, "GET", "", "\r\n", out);
}

void table_request_query(struct table_requests *requests, uint64_t n, struct buf *out)
{
    char query[128];

    path_set(requests, "bench()");
    snprintf(query, sizeof query,
             "?$filter=PartitionKey%%20eq%%20'p%08" PRIu64 "'%%20and%%20active%%20eq%%20false",
             n / TABLE_PARTITION_ENTITIES);
    head_append(requests, "GET", query, "\r\n", out);
}

void table_request_batch(struct table_requests *requests, const char *table, uint64_t n,
                         struct buf *out)
{
    struct buf *body = &requests->body;

    buf_clear(body);
    BUF_APPEND(body, "--batch_a\r\nContent-Type: multipart/mixed; boundary=changeset_a\r\n\r\n");
    for (uint64_t i = 0; i < TABLE_BATCH_ENTITIES; i++) {
        buf_printf(body,
                   "--changeset_a\r\ncontent-type: application/http\r\n"
                   "content-transfer-encoding: binary\r\n\r\n"
                   "POST http://127.0.0.1/" TABLE_REQUESTS_ACCOUNT "/%s HTTP/1.1\r\n"
                   "content-type: application/json;odata=nometadata\r\n"
                   "accept: application/json;odata=minimalmetadata\r\n"
                   "dataserviceversion: 3.0\r\nprefer: return-no-content\r\n\r\n\r\n",
                   table);
        buf_printf(body, "{\"PartitionKey\":\"b%08" PRIu64 "\",\"RowKey\":\"r%04" PRIu64 "\",", n,
                   i);
        properties_append(requests, n + i, body);
        BUF_APPEND(body, "\r\n");
    }
    BUF_APPEND(body, "--changeset_a--\r\n--batch_a--\r\n");
    path_set(requests, "$batch");
    head_append(requests, "POST", "", "Content-Type: multipart/mixed; boundary=batch_a\r\n", out);
    body_append(requests, out);
}
