/*      kind        a          b         c          d
 *      profiles    user       city      kind       updated, changes
 *      devices     device     time      site       reading
 *      logs        day        host      level      text
 *      tenants     tenant     user      kind       amount
 *      events      day        hour      kind       amount
 *      vehicles    day        vin       speed      site
 *      catalogue   category   brand     price      stock, changes
 *      by id       -          kind      -          value, changes
 *      ledger      account    owner     -          balance, changes
 *      hopeless    status, changes      price, changes   region, changes   -
 *      readings, seldom
 *                  device     site      -          -
 *      skewed      tenant     user      -          -
 *      orders      customer   status    -          -
 *      rooms       room       author    -          -
 *      mixed       user       kind      -          -
 *      numbered    status     city      -          customer
 *      sessions    user       -         -          -
 *      listed      kind       -         -          -
 */
#include "support/workloads.h"

#include "base/random.h"
#include "document/bson.h"

#include <time.h>

enum { ITEMS = 4000, OPERATIONS = 12000, DAYS = 30, DAY_MS = 24 * 60 * 60 * 1000 };
#define BEGIN_MS INT64_C(1700000000000)

struct maker {
    struct advise_workload *workload;
    struct random random;
    struct workload_names *names;
    struct buf item, before, where, array;
};

struct fields {
    uint64_t id;
    const char *a, *b, *c;
    int64_t d;
    int64_t time_ms; /* 0: none, and neither measurement nor text */
};

static void name_make(struct random *random, char *ret_name)
{
    ret_name[0] = '/';
    for (size_t i = 1; i < 8; i++)
        ret_name[i] = (char)('a' + random_below(random, 26));
    ret_name[8] = 0;
}

/* As even as can be, and no key. */
static void noise_append(const struct maker *maker, const struct fields *fields, struct buf *out)
{
    time_t seconds = (time_t)(fields->time_ms / 1000);
    char text[64];
    struct tm tm;

    document_append_double(out, slice_of_text(maker->names->measure + 1),
                           (double)(fields->id * 7919 % 3001) / 97);
    (void)gmtime_r(&seconds, &tm);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    document_append_string(out, slice_of_text(maker->names->time + 1), slice_of_text(text));
    (void)snprintf(text, sizeof text, "it was the %llu. of its kind",
                   (unsigned long long)fields->id);
    document_append_string(out, slice_of_text(maker->names->text + 1), slice_of_text(text));
}

static void document_make(struct maker *maker, const struct fields *fields, struct buf *out)
{
    char id[32];
    size_t begin;

    (void)snprintf(id, sizeof id, "i%llu", (unsigned long long)fields->id);
    buf_clear(out);
    begin = document_begin(out);
    document_append_string(out, SLICE("id"), slice_of_text(id));
    if (fields->a)
        document_append_string(out, slice_of_text(maker->names->a + 1), slice_of_text(fields->a));
    if (fields->b)
        document_append_string(out, slice_of_text(maker->names->b + 1), slice_of_text(fields->b));
    if (fields->c)
        document_append_string(out, slice_of_text(maker->names->c + 1), slice_of_text(fields->c));
    document_append_int64(out, slice_of_text(maker->names->d + 1), fields->d);
    if (fields->time_ms)
        noise_append(maker, fields, out);
    document_end(out, begin);
}

/* Letters of what to name: i, a, b, c, n for d. */
static void where_make(struct maker *maker, const struct fields *fields, const char *named)
{
    struct buf *out = &maker->where;
    size_t begin;
    char id[32];

    buf_clear(out);
    begin = document_begin(out);
    for (; *named; named++)
        switch (*named) {
        case 'i':
            (void)snprintf(id, sizeof id, "i%llu", (unsigned long long)fields->id);
            document_append_string(out, SLICE("/id"), slice_of_text(id));
            break;
        case 'a':
            document_append_string(out, slice_of_text(maker->names->a), slice_of_text(fields->a));
            break;
        case 'b':
            document_append_string(out, slice_of_text(maker->names->b), slice_of_text(fields->b));
            break;
        case 'n':
            document_append_int64(out, slice_of_text(maker->names->d), fields->d);
            break;
        default:
            document_append_string(out, slice_of_text(maker->names->c), slice_of_text(fields->c));
        }
    document_end(out, begin);
}

static void item_add(struct maker *maker, const struct fields *fields, int64_t time_ms)
{
    document_make(maker, fields, &maker->item);
    advise_workload_item(maker->workload, buf_slice(&maker->item), 1024, time_ms);
}

static void operation_add(struct maker *maker, enum advise_operation_kind kind,
                          const struct fields *fields, const char *named, int64_t time_ms,
                          double ru, const char *transaction)
{
    struct advise_operation_parts parts = {.kind = kind,
                                           .time_ms = time_ms,
                                           .cru = (int64_t)(ru * 100),
                                           .bytes = 1024,
                                           .transaction = slice_of_text(transaction)};

    document_make(maker, fields, &maker->item);
    if (kind != ADVISE_QUERY)
        parts.item = buf_slice(&maker->item);
    if (kind == ADVISE_REPLACE) {
        struct fields before = *fields;

        before.d++;
        document_make(maker, &before, &maker->before);
        parts.before = buf_slice(&maker->before);
    }
    where_make(maker, fields, named);
    parts.where = buf_slice(&maker->where);
    advise_workload_operation(maker->workload, &parts);
}

static uint64_t below(struct maker *maker, uint64_t limit)
{
    return random_below(&maker->random, limit);
}

#define TEXT(buffer, ...)                                                                          \
    ((void)snprintf(buffer, sizeof(buffer), __VA_ARGS__), (const char *)(buffer))

/* What is at the n-th of count moments. */
static struct fields fields_make(struct maker *maker, enum workload_kind kind, uint64_t n,
                                 uint64_t count, char a[24], char b[24], char c[24])
{
    uint64_t day = n * DAYS / count;
    struct fields f = {.id = n, .d = (int64_t)below(maker, 1000000)};

#define A(...) ((void)snprintf(a, 24, __VA_ARGS__), a)
#define B(...) ((void)snprintf(b, 24, __VA_ARGS__), b)
#define C(...) ((void)snprintf(c, 24, __VA_ARGS__), c)
    switch (kind) {
    case WORKLOAD_PROFILES:
        f.a = A("u%d", (int)below(maker, 1500));
        f.b = B("city%d", (int)below(maker, 20));
        f.c = C("kind%d", (int)below(maker, 3));
        break;
    case WORKLOAD_DEVICES:
        f.a = A("dev%d", (int)below(maker, 1200));
        f.b = B("2018-08-%02d", (int)day + 1);
        f.c = C("site%d", (int)below(maker, 12));
        break;
    case WORKLOAD_LOGS:
        f.a = A("2018-08-%02d", (int)day + 1);
        f.b = B("host%d", (int)below(maker, 900));
        f.c = C("level%d", (int)below(maker, 4));
        break;
    case WORKLOAD_TENANTS:
        f.a = below(maker, 10) < 3 ? A("large") : A("t%d", (int)below(maker, 300));
        f.b = B("user%d", (int)below(maker, 2500));
        f.c = C("kind%d", (int)below(maker, 5));
        break;
    case WORKLOAD_EVENTS:
        f.a = A("2018-08-%02d", (int)day + 1);
        f.b = B("hour%d", (int)(n * DAYS * 24 / count % 24));
        f.c = C("kind%d", (int)below(maker, 4));
        break;
    case WORKLOAD_VEHICLES:
        f.a = A("2018-08-%02d", (int)day + 1);
        f.b = B("vin%d", (int)below(maker, 2000));
        f.c = C("site%d", (int)below(maker, 8));
        break;
    case WORKLOAD_CATALOGUE:
        f.a = A("category%d", (int)below(maker, 700));
        f.b = B("brand%d", (int)below(maker, 30));
        f.c = C("price%d", (int)below(maker, 50));
        break;
    case WORKLOAD_BY_ID:
        f.b = B("kind%d", (int)below(maker, 5));
        break;
    case WORKLOAD_LEDGER:
        f.a = A("account%d", (int)below(maker, 200));
        f.b = B("owner%d", (int)below(maker, 80));
        break;
    case WORKLOAD_HOPELESS:
        f.a = A("status%d", (int)below(maker, 4));
        f.b = B("region%d", (int)below(maker, 6));
        break;
    case WORKLOAD_READINGS:
    case WORKLOAD_SELDOM:
        f.a = A("dev%d", (int)below(maker, 400));
        f.b = B("site%d", (int)below(maker, 12));
        break;
    case WORKLOAD_SKEWED:
        f.a = below(maker, 7) ? A("t%d", (int)below(maker, 400)) : A("large");
        f.b = B("user%d", (int)below(maker, 3000));
        break;
    case WORKLOAD_ORDERS:
    case WORKLOAD_NUMBERED:
        f.d =
            (int64_t)MIN(below(maker, 2500), below(maker, 2500)); /* some order more than others */
        f.a = kind == WORKLOAD_ORDERS ? A("c%d", (int)f.d) : A("status%d", (int)below(maker, 3));
        f.b = kind == WORKLOAD_ORDERS ? B("status%d", (int)below(maker, 3))
                                      : B("city%d", (int)below(maker, 90));
        break;
    case WORKLOAD_ROOMS:
        f.a = A("room%d", (int)below(maker, 500));
        f.b = B("u%d", (int)below(maker, 3000));
        break;
    case WORKLOAD_MIXED:
    case WORKLOAD_SESSIONS:
        f.a = A("u%d", (int)below(maker, 900));
        f.b = B("kind%d", (int)below(maker, 4));
        break;
    case WORKLOAD_LISTED:
        f.a = A("kind%d", (int)below(maker, 5));
        break;
    }
    if (kind >= WORKLOAD_READINGS)
        f.time_ms = BEGIN_MS + (int64_t)n * DAYS * DAY_MS / (int64_t)count;
    return f;
}

/* One request in so many is a query that names a property, the others are of one item each. */
static void growing_make(struct maker *maker, enum workload_kind kind, const struct fields *f,
                         uint64_t dice, int64_t time_ms)
{
    bool asks = below(maker, 1000) < (kind == WORKLOAD_SELDOM ? 3 : 20);

    switch (kind) {
    case WORKLOAD_SELDOM:
    case WORKLOAD_READINGS:
        operation_add(maker, asks ? ADVISE_QUERY : ADVISE_CREATE, f, "a", time_ms, asks ? 3 : 7,
                      "");
        break;
    case WORKLOAD_SKEWED:
        if (dice < 40)
            operation_add(maker, ADVISE_QUERY, f, "a", time_ms, 3, "");
        else
            operation_add(maker, dice < 70 ? ADVISE_READ : ADVISE_CREATE, f, "ia", time_ms,
                          dice < 70 ? 1 : 7, "");
        break;
    case WORKLOAD_ORDERS:
    case WORKLOAD_NUMBERED:
    case WORKLOAD_ROOMS:
    case WORKLOAD_MIXED:
        if (asks)
            operation_add(maker, ADVISE_QUERY, f, kind == WORKLOAD_NUMBERED ? "n" : "a", time_ms, 4,
                          "");
        else if (dice < 50)
            operation_add(maker, kind == WORKLOAD_MIXED ? ADVISE_UPSERT : ADVISE_CREATE, f, "i",
                          time_ms, 7, "");
        else
            operation_add(maker, ADVISE_READ, f, kind == WORKLOAD_NUMBERED ? "in" : "ia", time_ms,
                          1, "");
        break;
    case WORKLOAD_LISTED:
        if (asks)
            operation_add(maker, ADVISE_QUERY, f, "a", time_ms, 3, "");
        else
            operation_add(maker, dice < 70 ? ADVISE_READ : ADVISE_UPSERT, f, "i", time_ms,
                          dice < 70 ? 1 : 8, "");
        break;
    default:
        operation_add(maker,
                      dice < 60   ? ADVISE_READ
                      : dice < 80 ? ADVISE_CREATE
                                  : ADVISE_DELETE,
                      f, "i", time_ms, dice < 60 ? 1 : 6, "");
    }
}

static void operation_make(struct maker *maker, enum workload_kind kind, uint64_t n, uint64_t count)
{
    char a[24], b[24], c[24], transaction[24];
    struct fields f = fields_make(maker, kind, n, count, a, b, c);
    int64_t time_ms = BEGIN_MS + (int64_t)(n * DAYS * DAY_MS / count);
    uint64_t dice = below(maker, 100);

    switch (kind) {
    case WORKLOAD_PROFILES:
        if (dice < 70)
            operation_add(maker, ADVISE_READ, &f, "ia", time_ms, 1, "");
        else if (dice < 90)
            operation_add(maker, ADVISE_QUERY, &f, "a", time_ms, 3, "");
        else
            operation_add(maker, ADVISE_REPLACE, &f, "ia", time_ms, 10, "");
        break;
    case WORKLOAD_DEVICES:
        if (dice < 90)
            operation_add(maker, ADVISE_CREATE, &f, "a", time_ms, 6, "");
        else
            operation_add(maker, ADVISE_QUERY, &f, "a", time_ms, 4, "");
        break;
    case WORKLOAD_LOGS:
    case WORKLOAD_VEHICLES:
        if (dice < 80)
            operation_add(maker, ADVISE_CREATE, &f, "a", time_ms, 6, "");
        else
            operation_add(maker, ADVISE_QUERY, &f, "ab", time_ms, 3, "");
        break;
    case WORKLOAD_TENANTS:
        if (dice < 50)
            operation_add(maker, ADVISE_READ, &f, "iab", time_ms, 1, "");
        else if (dice < 70)
            operation_add(maker, ADVISE_QUERY, &f, dice < 60 ? "a" : "ab", time_ms, 4, "");
        else
            operation_add(maker, ADVISE_CREATE, &f, "ab", time_ms, 6, "");
        break;
    case WORKLOAD_EVENTS:
        if (dice < 99)
            operation_add(maker, ADVISE_CREATE, &f, "a", time_ms, 6, "");
        else
            operation_add(maker, ADVISE_QUERY, &f, "a", time_ms, 20, "");
        break;
    case WORKLOAD_CATALOGUE:
        operation_add(maker, dice < 90 ? ADVISE_QUERY : ADVISE_REPLACE, &f, dice < 90 ? "a" : "ia",
                      time_ms, dice < 90 ? 3 : 10, "");
        break;
    case WORKLOAD_BY_ID:
        operation_add(maker, dice < 70 ? ADVISE_READ : ADVISE_REPLACE, &f, "i", time_ms,
                      dice < 70 ? 1 : 10, "");
        break;
    case WORKLOAD_LEDGER:
        operation_add(maker, ADVISE_REPLACE, &f, "ia", time_ms, 10,
                      TEXT(transaction, "t%d", (int)(n / 4)));
        break;
    case WORKLOAD_HOPELESS:
        operation_add(maker, ADVISE_QUERY, &f, dice < 50 ? "a" : "b", time_ms, 3, "");
        break;
    default:
        growing_make(maker, kind, &f, dice, time_ms);
    }
}

/* Everything that could be a key but its id changes from time to time. */
static void hopeless_changes(struct maker *maker)
{
    for (uint64_t n = 0; n < 50; n++) {
        char a[24], b[24], c[24];
        struct fields f = fields_make(maker, WORKLOAD_HOPELESS, n, 50, a, b, c);
        struct advise_operation_parts parts = {.kind = ADVISE_PATCH,
                                               .time_ms = BEGIN_MS + (int64_t)n * DAY_MS / 2,
                                               .cru = 1000,
                                               .bytes = 1024};
        char index[DOCUMENT_INDEX_SIZE];
        size_t begin;

        where_make(maker, &f, "i");
        parts.where = buf_slice(&maker->where);
        buf_clear(&maker->array);
        begin = document_begin(&maker->array);
        document_append_string(&maker->array, document_index_key(0, index),
                               slice_of_text(maker->names->a));
        document_append_string(&maker->array, document_index_key(1, index),
                               slice_of_text(maker->names->b));
        document_end(&maker->array, begin);
        parts.changed = buf_slice(&maker->array);
        advise_workload_operation(maker->workload, &parts);
    }
}

struct advise_workload *workload_make(enum workload_kind kind, uint64_t seed,
                                      struct workload_names *ret_names)
{
    struct maker maker = {.workload = advise_workload_new(), .names = ret_names};
    uint64_t items = kind < WORKLOAD_READINGS ? ITEMS : ITEMS / 2,
             operations = kind < WORKLOAD_READINGS ? OPERATIONS : OPERATIONS / 2;

    random_seed(&maker.random, seed * 100 + kind);
    (void)snprintf(ret_names->id, sizeof ret_names->id, "/id");
    name_make(&maker.random, ret_names->a);
    name_make(&maker.random, ret_names->b);
    name_make(&maker.random, ret_names->c);
    name_make(&maker.random, ret_names->d);
    if (kind >= WORKLOAD_READINGS) {
        name_make(&maker.random, ret_names->measure);
        name_make(&maker.random, ret_names->time);
        name_make(&maker.random, ret_names->text);
    }
    buf_init(&maker.item, BUF_DEFAULT_MAX);
    buf_init(&maker.before, BUF_DEFAULT_MAX);
    buf_init(&maker.where, BUF_DEFAULT_MAX);
    buf_init(&maker.array, BUF_DEFAULT_MAX);
    for (uint64_t n = 0; n < items; n++) {
        char a[24], b[24], c[24];
        struct fields f = fields_make(&maker, kind, n, items, a, b, c);

        item_add(&maker, &f, BEGIN_MS + (int64_t)(n * DAYS * DAY_MS / items));
    }
    for (uint64_t n = 0; n < operations; n++)
        operation_make(&maker, kind, n, operations);
    if (kind == WORKLOAD_HOPELESS)
        hopeless_changes(&maker);
    buf_done(&maker.item);
    buf_done(&maker.before);
    buf_done(&maker.where);
    buf_done(&maker.array);
    advise_workload_finish(maker.workload);
    return maker.workload;
}
