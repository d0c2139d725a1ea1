#include "support/documents.h"

#include "document/decimal.h"
#include "document/json.h"
#include "support/check.h"

#include <float.h>
#include <math.h>

struct slice document_of(struct arena *arena, const char *json)
{
    CLEANUP(buf_done) struct buf buf;
    struct error err = {0};

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(document_json_read(slice_of_text(json), NULL, &buf, &err), &err);
    return arena_copy(arena, buf_slice(&buf));
}

struct document_value value_of(struct arena *arena, const char *json)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value value;
    struct error err = {0};

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(document_json_read_value(slice_of_text(json), NULL, &buf, &value, &err), &err);
    if (!document_find(arena_copy(arena, buf_slice(&buf)), SLICE(""), &value))
        fail_msg("a wrapped value has the empty key");
    return value;
}

/* Numbers around which types and encodings change. */
static double edge_double(struct random *random)
{
    static const double edges[] = {0,
                                   1,
                                   0.1,
                                   0.5,
                                   1.5,
                                   9007199254740992.0,
                                   9007199254740994.0,
                                   9223372036854775808.0,
                                   9223372036854774784.0,
                                   2147483648.0,
                                   1e21,
                                   1e22,
                                   1e23,
                                   DBL_MAX,
                                   DBL_MIN,
                                   5e-324,
                                   INFINITY,
                                   100};
    double number = edges[random_below(random, ARRAY_LEN(edges))];

    switch (random_below(random, 4)) {
    case 0:
        number = nextafter(number, INFINITY);
        break;
    case 1:
        number = nextafter(number, -INFINITY);
        break;
    }
    return random_below(random, 2) ? number : -number;
}

static int64_t edge_int64(struct random *random)
{
    static const int64_t edges[] = {0,
                                    1,
                                    100,
                                    INT32_MAX,
                                    (int64_t)1 << 53,
                                    INT64_MAX - 1,
                                    INT64_MAX - 1023,
                                    1000000000000000000,
                                    (int64_t)1 << 62};
    int64_t number = edges[random_below(random, ARRAY_LEN(edges))];

    number += (int64_t)random_below(random, 4) - 2;
    return random_below(random, 2) ? number : -number;
}

static struct document_decimal random_decimal(struct random *random)
{
    static const int32_t exponents[] = {0, 0, 0, -1, -2, -17, -33, 3, 22, -324, -358, 275, 308};
    struct decimal decimal = {.negative = random_below(random, 2)};
    unsigned kind = (unsigned)random_below(random, 24);

    if (kind == 0)
        decimal.kind = DECIMAL_NAN;
    else if (kind == 1)
        decimal.kind = DECIMAL_INFINITE;
    decimal.exponent = exponents[random_below(random, ARRAY_LEN(exponents))];
    if (kind == 2)
        decimal.exponent = (int32_t)random_below(random, 6176 + 6111) - 6176;
    switch (random_below(random, 5)) {
    case 0:
        decimal.coefficient = random_below(random, 3);
        break;
    case 1:
        decimal.coefficient = (uint64_t)llabs(edge_int64(random));
        break;
    case 2:
        decimal.coefficient = random_below(random, 20) * 100;
        break;
    case 3: /* 0.1 as a double, to 34 digits and nearly so */
        decimal.coefficient = (unsigned __int128)1000000000000000055u * 1000000000000000u +
                              511151231257826 + random_below(random, 3);
        decimal.exponent = -34;
        break;
    default:
        decimal.coefficient =
            ((unsigned __int128)random_next(random) << 48 | random_next(random)) >>
            random_below(random, 100);
        while (decimal.coefficient / 100000000000000000u >= 100000000000000000u)
            decimal.coefficient /= 10;
    }
    return decimal_pack(&decimal);
}

static struct slice random_text(struct random *random, struct arena *arena, bool nul)
{
    static const struct slice parts[] = {
        SLICE("a"),
        SLICE("b"),
        SLICE("ab"),
        SLICE("\1"),
        SLICE("\2"),
        SLICE("\x7f"),
        SLICE("\xC3\xA9"),
        SLICE("\xEE\x80\x80"),
        SLICE("\xEF\xBF\xBF"),
        SLICE("\xED\x9F\xBF"),
        SLICE("\xF0\x90\x80\x80"),
        SLICE("\xF4\x8F\xBF\xBF"),
        SLICE("\""),
        SLICE("\\"),
        SLICE("\n"),
        SLICE("$"),
        SLICE("0123456789abcdef"),
        SLICE("\0"),
    };
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, 1000);
    for (uint64_t count = random_below(random, 4); count > 0; count--)
        buf_append_slice(&buf, parts[random_below(random, ARRAY_LEN(parts) - !nul)]);
    if (random_below(random, 30) == 0)
        buf_append_slice(&buf, random_below(random, 2) ? SLICE("\xED\xA0\x80") /* U+D800 */
                                                       : SLICE("\xED\xBF\xBF"));
    return arena_copy(arena, buf_slice(&buf));
}

static struct document_value random_nested(struct random *random, struct arena *arena,
                                           unsigned depth, bool array, bool json)
{
    CLEANUP(buf_done) struct buf buf;
    char index[DOCUMENT_INDEX_SIZE];
    uint64_t count = random_below(random, 20) ? random_below(random, 4) : random_below(random, 50);
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    for (uint32_t i = 0; i < count; i++) {
        struct document_value value = json ? value_random_json(random, arena, depth - 1)
                                           : value_random(random, arena, depth - 1);
        struct slice key = document_index_key(i, index);

        /* Names of JSON objects must differ: their number makes them so. */
        if (!array)
            key = json ? arena_printf(arena, "%c%u", "ab$"[random_below(random, 3)], i)
                       : random_text(random, arena, false);
        document_append(&buf, key, &value);
    }
    document_end(&buf, begin);
    return array ? document_array(arena_copy(arena, buf_slice(&buf)))
                 : document_object(arena_copy(arena, buf_slice(&buf)));
}

struct document_value value_random_json(struct random *random, struct arena *arena, unsigned depth)
{
    uint64_t bits;
    double number;

    switch (random_below(random, depth ? 10 : 8)) {
    case 0:
        return document_null();
    case 1:
        return document_bool(random_below(random, 2));
    case 2:
        return document_int32((int32_t)random_below(random, 5) - 2);
    case 3:
        return document_int64(edge_int64(random));
    case 4:
        number = edge_double(random);
        return document_double(isfinite(number) ? number : 0.25);
    case 5:
        bits = random_next(random);
        memcpy(&number, &bits, sizeof number);
        return document_double(isfinite(number) ? number : 0.75);
    case 6:
    case 7:
        return document_string(random_text(random, arena, true));
    default:
        return random_nested(random, arena, depth, random_below(random, 2), true);
    }
}

static const uint8_t *random_id(struct random *random, struct arena *arena)
{
    uint8_t id[DOCUMENT_OBJECT_ID_SIZE] = {0};

    id[random_below(random, sizeof id)] = (uint8_t)random_below(random, 3);
    return arena_copy(arena, slice_of(id, sizeof id)).data;
}

struct document_value value_random(struct random *random, struct arena *arena, unsigned depth)
{
    static const uint8_t bare[] = {DOCUMENT_UNDEFINED, DOCUMENT_NULL, DOCUMENT_MIN_KEY,
                                   DOCUMENT_MAX_KEY};
    struct document_value value = {0};

    switch (random_below(random, depth ? 22 : 18)) {
    case 0:
        return document_value_of_type(bare[random_below(random, ARRAY_LEN(bare))]);
    case 1:
        value.type = DOCUMENT_BINARY;
        value.binary.subtype = (uint8_t)random_below(random, 2);
        value.binary.bytes = random_text(random, arena, true);
        return value;
    case 2:
        value.type = DOCUMENT_OBJECT_ID;
        value.id = random_id(random, arena);
        return value;
    case 3:
        return document_date(edge_int64(random));
    case 4:
        value.type = DOCUMENT_TIMESTAMP;
        value.timestamp = (uint64_t)edge_int64(random);
        return value;
    case 5:
        value.type = DOCUMENT_REGEX;
        value.regex.pattern = random_text(random, arena, false);
        value.regex.options = random_text(random, arena, false);
        return value;
    case 6:
        value.type = DOCUMENT_DB_POINTER;
        value.pointer.collection = random_text(random, arena, true);
        value.pointer.id = random_id(random, arena);
        return value;
    case 7:
        value.type = random_below(random, 2) ? DOCUMENT_CODE : DOCUMENT_SYMBOL;
        value.text = random_text(random, arena, true);
        return value;
    case 8:
    case 9:
    case 10:
        value.type = DOCUMENT_DECIMAL128;
        value.decimal = random_decimal(random);
        return value;
    case 11:
        return document_double(random_below(random, 9) ? edge_double(random) : (double)NAN);
    case 18:
        value.type = DOCUMENT_CODE_WITH_SCOPE;
        value.scoped.code = random_text(random, arena, true);
        value.scoped.scope = random_nested(random, arena, depth, false, false).document;
        return value;
    case 19:
    case 20:
    case 21:
        return random_nested(random, arena, depth, random_below(random, 2), false);
    default:
        return value_random_json(random, arena, 0);
    }
}
