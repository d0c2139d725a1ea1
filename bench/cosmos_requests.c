/* The generator shares the machine with what it measures, so a request is mostly bytes made in
 * advance: a head, in which date, id and partition key are written over, and for creates the rest
 * of the request with its document. Only the signature is computed, whenever what it signs has
 * changed: whenever the path names the item, and once a second for creates, which sign nothing of
 * it. It ends the head, since its length varies. */
#include "cosmos_requests.h"

#include "base/clock.h"
#include "document/json.h"
#include "front/signature.h"
#include "load.h"
#include "space.h"

#include <openssl/evp.h>

#define ID_BLANK "item-000000000"
#define TENANT_BLANK "tenant-000000"
#define DATE_BLANK "Thu, 01 Jan 1970 00:00:00 GMT"

enum {
    ID_LEN = sizeof ID_BLANK - 1,
    TENANT_LEN = sizeof TENANT_BLANK - 1,
    SECRET_MAX = 128,
    BASE64_SIZE = (FRONT_SIGNATURE_LEN + 2) / 3 * 4 + 1,
    SIGNATURE_MAX = 3 * BASE64_SIZE, /* percent-encoded */
};

static_assert(sizeof DATE_BLANK - 1 == CLOCK_HTTP_DATE_LEN, "room for a date");

static const char id_begin[] = "{\"id\":\"", tenant_begin[] = "\",\"tenant\":\"";
/* Properties whose values differ from item to item if that is asked for. */
static const char *const varied_begin[] = {"\"name\":\"",  "\"street\":\"",
                                           "\"city\":\"",  "\"mail\":\"",
                                           "\"phone\":\"", "\"" COSMOS_CHANGED_NAME "\":\"",
                                           "\"tags\":[\"", "\"notes\":\""};

enum { VARIED_CHANGED = 5 };
static const char *const container_names[] = {"items", "keyed"};
static const char *const container_policies[] = {
    "", ",\"indexingPolicy\":{\"indexingMode\":\"none\",\"automatic\":false}"};

/* A request up to the end of its headers that are always the same. */
struct head {
    struct buf bytes; /* the signature follows */
    struct buf signed_text;
    uint8_t *date, *id, *tenant;      /* in bytes; NULL: it has none */
    uint8_t *signed_date, *signed_id; /* in signed_text */
    int64_t date_s;
    size_t signature_len; /* 0: not computed for what signed_text is now */
    uint8_t signature[SIGNATURE_MAX];
};

struct template
{
    struct buf bytes;                       /* headers of a create, JSON and a NUL */
    size_t json;                            /* begins there */
    size_t varied[ARRAY_LEN(varied_begin)]; /* values begin there */
};

struct cosmos_requests {
    uint8_t secret[SECRET_MAX];
    size_t secret_len;
    struct head heads[COSMOS_VERBS][COSMOS_CONTAINERS], bulk;
    bool distinct;
    char id[ID_LEN + 1], tenant[TENANT_LEN + 1];
    struct template templates[COSMOS_TEMPLATES];
};

/* --- Heads ----------------------------------------------------------------------------------- */

/* Where a blank is, which is there once. */
static uint8_t *blank_find(const struct buf *in, const char *blank)
{
    uint8_t *at = memmem(in->data, in->len, blank, strlen(blank));

    assert(at);
    return at;
}

/* The verb in capitals, BULK: a POST of many items; link is what is signed for path. */
static void head_init(struct head *head, const char *verb, const char *path, const char *type,
                      const char *link)
{
    bool item = strstr(path, ID_BLANK), bulk = strcmp(verb, "BULK") == 0;
    bool items = !bulk && strcmp(type, "docs") == 0;

    *head = (struct head){0};
    buf_init(&head->bytes, BUF_DEFAULT_MAX);
    buf_printf(&head->bytes,
               "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n"
               "x-ms-version: 2020-07-15\r\nConnection: keep-alive\r\nx-ms-date: " DATE_BLANK
               "\r\n",
               bulk ? "POST" : verb, path);
    if (bulk)
        BUF_APPEND(&head->bytes, "x-ms-cosmos-is-batch-request: True\r\n"
                                 "x-ms-cosmos-batch-atomic: False\r\n"
                                 "x-ms-cosmos-batch-continue-on-error: True\r\n"
                                 "Prefer: return=minimal\r\n");
    if (items)
        BUF_APPEND(&head->bytes, "x-ms-documentdb-partitionkey: [\"" TENANT_BLANK "\"]\r\n");
    BUF_APPEND(&head->bytes, "Authorization: type%3Dmaster%26ver%3D1.0%26sig%3D");
    buf_init(&head->signed_text, BUF_DEFAULT_MAX);
    for (const char *c = bulk ? "POST" : verb; *c; c++)
        buf_append_byte(&head->signed_text, (uint8_t)(*c | 0x20));
    buf_printf(&head->signed_text, "\n%s\n%s\n" DATE_BLANK "\n\n", type, link);
    head->date = blank_find(&head->bytes, DATE_BLANK);
    head->signed_date = blank_find(&head->signed_text, DATE_BLANK);
    head->tenant = items ? blank_find(&head->bytes, TENANT_BLANK) : NULL;
    head->id = item ? blank_find(&head->bytes, ID_BLANK) : NULL;
    head->signed_id = item ? blank_find(&head->signed_text, ID_BLANK) : NULL;
}

static void head_done(struct head *head)
{
    buf_done(&head->bytes);
    buf_done(&head->signed_text);
}
CLEANUP_VALUE_FN(struct head, head_done)

static void head_date(struct head *head)
{
    int64_t now_ms = clock_wall_ms();

    if (now_ms / 1000 == head->date_s)
        return;
    head->date_s = now_ms / 1000;
    clock_http_date(now_ms, (char *)head->date);
    for (size_t i = 0; i < CLOCK_HTTP_DATE_LEN; i++) {
        uint8_t c = head->date[i];

        head->signed_date[i] = c >= 'A' && c <= 'Z' ? c | 0x20 : c;
    }
    head->signature_len = 0;
}

static void head_sign(const struct cosmos_requests *requests, struct head *head)
{
    static const char digits[] = "0123456789ABCDEF";
    const struct slice text = buf_slice(&head->signed_text);
    uint8_t digest[FRONT_SIGNATURE_LEN], base64[BASE64_SIZE], *to = head->signature;

    front_signature(slice_of(requests->secret, requests->secret_len), &text, 1, digest);
    EVP_EncodeBlock(base64, digest, sizeof digest);
    for (const uint8_t *c = base64; *c; c++) {
        if (*c == '+' || *c == '/' || *c == '=') {
            *to++ = '%';
            *to++ = (uint8_t)digits[*c >> 4];
            *to++ = (uint8_t)digits[*c & 15];
        } else {
            *to++ = *c;
        }
    }
    head->signature_len = (size_t)(to - head->signature);
}

/* item is NULL for a request that is about none. Headers may follow. */
static void head_append(const struct cosmos_requests *requests, struct head *head,
                        const struct cosmos_item *item, struct buf *out)
{
    head_date(head);
    if (head->tenant)
        memcpy(head->tenant, item->tenant, TENANT_LEN);
    if (head->id) {
        memcpy(head->id, item->id, ID_LEN);
        memcpy(head->signed_id, item->id, ID_LEN);
        head->signature_len = 0;
    }
    if (!head->signature_len)
        head_sign(requests, head);
    buf_append_slice(out, buf_slice(&head->bytes));
    buf_append(out, head->signature, head->signature_len);
    BUF_APPEND(out, "\r\n");
}

/* --- Making ---------------------------------------------------------------------------------- */

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

static void template_make(struct template *template, uint64_t n)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf json;

    buf_init(&json, BUF_DEFAULT_MAX);
    buf_init(&template->bytes, BUF_DEFAULT_MAX);
    document_json_write(bench_item_document(n, 0, arena), &json);
    assert(memcmp(json.data, id_begin, sizeof id_begin - 1) == 0);
    assert(memcmp(json.data + sizeof id_begin - 1 + ID_LEN, tenant_begin,
                  sizeof tenant_begin - 1) == 0);
    body_append(buf_slice(&json), &template->bytes);
    template->json = template->bytes.len - json.len;
    for (size_t i = 0; i < ARRAY_LEN(varied_begin); i++)
        template->varied[i] =
            (size_t)(blank_find(&template->bytes, varied_begin[i]) - template->bytes.data) +
            strlen(varied_begin[i]);
    buf_append_byte(&template->bytes, '\0');
}

static void secret_read(struct cosmos_requests *requests, const char *key)
{
    size_t len = strlen(key);
    int got = len && len <= SECRET_MAX
                  ? EVP_DecodeBlock(requests->secret, (const uint8_t *)key, (int)len)
                  : -1;

    for (; got > 0 && len && key[len - 1] == '='; len--)
        got--; /* padding comes out as zeros */
    if (got <= 0)
        load_fail("the key is not base64");
    requests->secret_len = (size_t)got;
}

struct cosmos_requests *cosmos_requests_new(const char *key)
{
    struct cosmos_requests *requests = MEMORY_NEW(struct cosmos_requests);

    secret_read(requests, key);
    for (size_t i = 0; i < COSMOS_TEMPLATES; i++)
        template_make(&requests->templates[i], i);
    for (size_t i = 0; i < COSMOS_CONTAINERS; i++) {
        char link[64], path[128];

        snprintf(link, sizeof link, "dbs/bench/colls/%s", container_names[i]);
        snprintf(path, sizeof path, "/%s/docs", link);
        head_init(&requests->heads[COSMOS_CREATE][i], "POST", path, "docs", link);
        snprintf(path, sizeof path, "/%s/docs/" ID_BLANK, link);
        head_init(&requests->heads[COSMOS_READ][i], "GET", path, "docs", path + 1);
        head_init(&requests->heads[COSMOS_REPLACE][i], "PUT", path, "docs", path + 1);
        head_init(&requests->heads[COSMOS_PATCH][i], "PATCH", path, "docs", path + 1);
    }
    head_init(&requests->bulk, "BULK", "/dbs/bench/colls/items/docs", "docs",
              "dbs/bench/colls/items");
    return requests;
}

void cosmos_requests_free(struct cosmos_requests *requests)
{
    for (size_t i = 0; i < COSMOS_TEMPLATES; i++)
        buf_done(&requests->templates[i].bytes);
    for (size_t verb = 0; verb < COSMOS_VERBS; verb++)
        for (size_t i = 0; i < COSMOS_CONTAINERS; i++)
            head_done(&requests->heads[verb][i]);
    head_done(&requests->bulk);
    memory_free(requests);
}

/* --- Requests -------------------------------------------------------------------------------- */

void cosmos_database_create(struct cosmos_requests *requests, struct buf *out)
{
    CLEANUP(head_done) struct head head;

    head_init(&head, "POST", "/dbs", "dbs", "");
    head_append(requests, &head, NULL, out);
    body_append(SLICE("{\"id\":\"bench\"}"), out);
}

void cosmos_container_create(struct cosmos_requests *requests, enum cosmos_container container,
                             unsigned throughput, struct buf *out)
{
    CLEANUP(head_done) struct head head;
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    head_init(&head, "POST", "/dbs/bench/colls", "colls", "dbs/bench");
    head_append(requests, &head, NULL, out);
    buf_printf(out, "x-ms-offer-throughput: %u\r\n", throughput);
    buf_printf(&body,
               "{\"id\":\"%s\",\"partitionKey\":"
               "{\"paths\":[\"/tenant\"],\"kind\":\"Hash\",\"version\":2}%s}",
               container_names[container], container_policies[container]);
    body_append(buf_slice(&body), out);
}

static void digits_print(char *to, size_t count, uint64_t n)
{
    while (count > 0) {
        to[--count] = (char)('0' + n % 10);
        n /= 10;
    }
}

void cosmos_requests_distinct(struct cosmos_requests *requests)
{
    requests->distinct = true;
}

/* Eight digits in the place of the first letters, in another order for each property. */
static void values_vary(struct template *template, uint64_t n)
{
    static const uint32_t steps[] = {10000019, 30000001, 50000017, 70000027,
                                     90000049, 11000027, 13000027, 17000023};

    static_assert(ARRAY_LEN(steps) == ARRAY_LEN(varied_begin), "one for each");
    for (size_t i = 0; i < ARRAY_LEN(varied_begin); i++)
        digits_print((char *)template->bytes.data + template->varied[i], 8,
                     n * steps[i] % 100000000);
}

struct cosmos_item cosmos_item_parts(struct cosmos_requests *requests, uint64_t n)
{
    struct template *template = &requests->templates[n % COSMOS_TEMPLATES];
    uint8_t *json = template->bytes.data + template->json;
    char *id = (char *)json + sizeof id_begin - 1;
    char *tenant = id + ID_LEN + sizeof tenant_begin - 1;

    digits_print(id + ID_LEN - 9, 9, n);
    digits_print(tenant + TENANT_LEN - 6, 6, n / 10);
    if (requests->distinct)
        values_vary(template, n);
    memcpy(requests->id, id, ID_LEN);
    memcpy(requests->tenant, tenant, TENANT_LEN);
    return (struct cosmos_item){requests->tenant, requests->id,
                                slice_of(json, template->bytes.len - template->json - 1)};
}

struct cosmos_item cosmos_item_changed(struct cosmos_requests *requests, uint64_t n,
                                       uint64_t change)
{
    struct template *template = &requests->templates[n % COSMOS_TEMPLATES];

    digits_print((char *)template->bytes.data + template->varied[VARIED_CHANGED], 8, change);
    return cosmos_item_parts(requests, n);
}

void cosmos_change_json(uint64_t change, char ret_json[COSMOS_CHANGE_SIZE])
{
    snprintf(ret_json, COSMOS_CHANGE_SIZE, "\"%08llu\"", (unsigned long long)change % 100000000);
}

/* The item as it is in its template. */
static void item_append(struct cosmos_requests *requests, struct head *head, uint64_t n,
                        const struct cosmos_item *item, struct buf *out)
{
    const struct buf *rest = &requests->templates[n % COSMOS_TEMPLATES].bytes;

    head_append(requests, head, item, out);
    buf_append(out, rest->data, rest->len - 1); /* without its NUL */
}

void cosmos_item_create(struct cosmos_requests *requests, enum cosmos_container container,
                        uint64_t n, struct buf *out)
{
    const struct cosmos_item item = cosmos_item_parts(requests, n);

    item_append(requests, &requests->heads[COSMOS_CREATE][container], n, &item, out);
}

void cosmos_item_replace(struct cosmos_requests *requests, enum cosmos_container container,
                         uint64_t n, uint64_t change, struct buf *out)
{
    const struct cosmos_item item = cosmos_item_changed(requests, n, change);

    item_append(requests, &requests->heads[COSMOS_REPLACE][container], n, &item, out);
}

void cosmos_item_patch(struct cosmos_requests *requests, enum cosmos_container container,
                       uint64_t n, uint64_t change, struct buf *out)
{
    const struct cosmos_item item = cosmos_item_parts(requests, n);
    char value[COSMOS_CHANGE_SIZE], body[128];

    cosmos_change_json(change, value);
    snprintf(body, sizeof body,
             "{\"operations\":[{\"op\":\"set\",\"path\":\"/" COSMOS_CHANGED_NAME
             "\",\"value\":%s}]}",
             value);
    head_append(requests, &requests->heads[COSMOS_PATCH][container], &item, out);
    BUF_APPEND(out, "Content-Type: application/json_patch+json\r\n");
    text_append(slice_of_text(body), out);
}

void cosmos_items_create(struct cosmos_requests *requests, uint64_t first, size_t count,
                         struct buf *out)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct cosmos_item item = cosmos_item_parts(requests, first + i);

        buf_printf(&body,
                   "%s{\"operationType\":\"Create\",\"partitionKey\":\"[\\\"%s\\\"]\","
                   "\"resourceBody\":",
                   i ? "," : "[", item.tenant);
        buf_append_slice(&body, item.json);
        BUF_APPEND(&body, "}");
    }
    BUF_APPEND(&body, "]");
    head_append(requests, &requests->bulk, NULL, out);
    body_append(buf_slice(&body), out);
}

void cosmos_item_read(struct cosmos_requests *requests, enum cosmos_container container, uint64_t n,
                      struct buf *out)
{
    const struct cosmos_item item = cosmos_item_parts(requests, n);

    head_append(requests, &requests->heads[COSMOS_READ][container], &item, out);
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
    head_append(requests, &requests->heads[COSMOS_CREATE][COSMOS_INDEXED], &item, out);
    BUF_APPEND(out, "x-ms-documentdb-isquery: True\r\nContent-Type: application/query+json\r\n");
    text_append(slice_of_text(body), out);
}
