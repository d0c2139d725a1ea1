#include "front/table/edm.h"

#include "document/json.h"
#include "document/json_number.h"
#include "front/seal.h"
#include "front/table/route.h"
#include "front/text.h"
#include "query/function/date.h"

#include <math.h>
#include <openssl/evp.h>

enum { TEXT_UNITS_MAX = 32 * 1024, BINARY_BYTES_MAX = 64 * 1024 };

/* 1601-01-01, where the service's calendar begins. */
const int64_t edm_date_min = (int64_t)-11644473600 * QUERY_TICKS_PER_SECOND;
const int64_t edm_date_max = QUERY_TICKS_MAX;

static const char *const names[] = {
    [EDM_STRING] = "Edm.String", [EDM_BOOLEAN] = "Edm.Boolean", [EDM_INT32] = "Edm.Int32",
    [EDM_INT64] = "Edm.Int64",   [EDM_DOUBLE] = "Edm.Double",   [EDM_DATETIME] = "Edm.DateTime",
    [EDM_GUID] = "Edm.Guid",     [EDM_BINARY] = "Edm.Binary",
};

const char *edm_type_name(enum edm_type type)
{
    assert(type != EDM_UNKNOWN);
    return names[type];
}

enum edm_type edm_type_named(struct slice name)
{
    for (size_t i = EDM_STRING; i < ARRAY_LEN(names); i++)
        if (slice_equal(name, slice_of_text(names[i])))
            return (enum edm_type)i;
    return EDM_UNKNOWN;
}

bool edm_hex_parse(struct slice text, struct arena *arena, struct slice *ret_bytes)
{
    uint8_t *bytes = arena_alloc(arena, text.len / 2 + 1);

    if (text.len % 2)
        return false;
    for (size_t i = 0; i < text.len; i += 2) {
        int high = front_hex_digit(text.data[i]), low = front_hex_digit(text.data[i + 1]);

        if (high < 0 || low < 0)
            return false;
        bytes[i / 2] = (uint8_t)(high << 4 | low);
    }
    *ret_bytes = slice_of(bytes, text.len / 2);
    return true;
}

/* --- Dates ----------------------------------------------------------------------------------- */

/* Takes +hh:mm or -hh:mm off the end. */
static bool offset_take(struct slice *text, int64_t *ret_minutes)
{
    const uint8_t *at;
    int64_t minutes;

    *ret_minutes = 0;
    if (text->len < 17) /* none but behind a time */
        return true;
    at = text->data + text->len - 6;
    if (at[0] != '+' && at[0] != '-')
        return true;
    for (size_t i = 1; i < 6; i++)
        if (i == 3 ? at[i] != ':' : at[i] < '0' || at[i] > '9')
            return false;
    minutes = ((at[1] - '0') * 10 + (at[2] - '0')) * 60 + (at[4] - '0') * 10 + (at[5] - '0');
    if (minutes > 14 * 60)
        return false;
    *ret_minutes = at[0] == '-' ? -minutes : minutes;
    text->len -= 6;
    return true;
}

bool edm_date_parse(struct slice text, int64_t *ret_ticks)
{
    char whole[] = "0000-00-00T00:00:00Z";
    int64_t minutes, ticks;

    if (!offset_take(&text, &minutes))
        return false;
    /* a time without seconds, as signatures may have it */
    if ((text.len == 16 || (text.len == 17 && text.data[16] == 'Z')) && text.data[13] == ':') {
        memcpy(whole, text.data, 16);
        text = slice_of(whole, sizeof whole - 1);
    }
    if (text.len > 10 && text.data[10] != 'T')
        return false;
    if (!query_date_parse(text, &ticks))
        return false;
    *ret_ticks = ticks - minutes * 60 * QUERY_TICKS_PER_SECOND;
    return true;
}

struct edm_value edm_date(int64_t ticks)
{
    int64_t below = ticks % EDM_TICKS_PER_MS;

    if (below < 0)
        below += EDM_TICKS_PER_MS;
    return (struct edm_value){document_date((ticks - below) / EDM_TICKS_PER_MS), (int32_t)below};
}

void edm_date_write_full(int64_t ticks, char ret_text[EDM_DATE_LEN])
{
    static_assert((int)EDM_DATE_LEN == (int)QUERY_DATE_LEN, "one form");
    query_date_write(MIN(MAX(ticks, QUERY_TICKS_MIN), QUERY_TICKS_MAX), ret_text);
}

void edm_date_append(int64_t ticks, struct buf *out)
{
    char text[EDM_DATE_LEN];
    size_t len = EDM_DATE_LEN - 1;

    edm_date_write_full(ticks, text);
    while (text[len - 1] == '0')
        len--;
    if (text[len - 1] == '.')
        len--;
    buf_append(out, text, len);
    buf_append_byte(out, 'Z');
}

/* --- Guids ----------------------------------------------------------------------------------- */

bool edm_guid_parse(struct slice text, uint8_t ret_bytes[EDM_GUID_BYTES])
{
    size_t at = 0;

    if (text.len != 36)
        return false;
    for (size_t i = 0; i < text.len;) {
        int high, low;

        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text.data[i++] != '-')
                return false;
            continue;
        }
        if ((high = front_hex_digit(text.data[i])) < 0 ||
            (low = front_hex_digit(text.data[i + 1])) < 0)
            return false;
        ret_bytes[at++] = (uint8_t)(high << 4 | low);
        i += 2;
    }
    return true;
}

void edm_guid_append(const uint8_t bytes[EDM_GUID_BYTES], struct buf *out)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < EDM_GUID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            buf_append_byte(out, '-');
        buf_append_byte(out, (uint8_t)hex[bytes[i] >> 4]);
        buf_append_byte(out, (uint8_t)hex[bytes[i] & 15]);
    }
}

/* --- Reading --------------------------------------------------------------------------------- */

static bool value_wrong(enum edm_type type, struct error *err)
{
    return error_set(err, ERROR_TABLE_VALUE, "a value is not one of %s", edm_type_name(type));
}

/* The number that a text is, as JSON writes it. */
static bool text_number(struct slice text, struct json_number *ret_number)
{
    struct json_fault fault;

    return text.len && text.len < JSON_NUMBER_MAX &&
           json_number_read(text.data, text.data + text.len, ret_number, &fault) ==
               text.data + text.len;
}

static bool integer_read(const struct document_value *json, int64_t *ret_number)
{
    struct json_number number;

    if (json->type == DOCUMENT_INT32 || json->type == DOCUMENT_INT64) {
        *ret_number = json->type == DOCUMENT_INT32 ? json->int32 : json->int64;
        return true;
    }
    if (json->type == DOCUMENT_DOUBLE)
        return document_to_int64(json, ret_number);
    if (json->type != DOCUMENT_STRING || !text_number(json->text, &number) ||
        number.type == DOCUMENT_DOUBLE)
        return false;
    *ret_number = number.integer;
    return true;
}

static bool double_read(const struct document_value *json, double *ret_number)
{
    struct json_number number;

    if (json->type != DOCUMENT_STRING)
        return document_to_double(json, ret_number);
    if (slice_equal(json->text, SLICE("NaN")))
        *ret_number = NAN;
    else if (slice_equal(json->text, SLICE("Infinity")))
        *ret_number = INFINITY;
    else if (slice_equal(json->text, SLICE("-Infinity")))
        *ret_number = -INFINITY;
    else if (text_number(json->text, &number))
        *ret_number = number.type == DOCUMENT_DOUBLE ? number.real : (double)number.integer;
    else
        return false;
    return true;
}

static bool text_check(struct slice text, struct error *err)
{
    return text.len <= TEXT_UNITS_MAX || table_text_units(text) <= TEXT_UNITS_MAX ||
           error_set(err, ERROR_TABLE_PROPERTY_TOO_LARGE, "a text has more than %d characters",
                     TEXT_UNITS_MAX);
}

static bool binary_read(struct slice text, struct arena *arena, struct document_value *ret_value,
                        struct error *err)
{
    struct slice bytes;

    if (text.len > (BINARY_BYTES_MAX + 2) / 3 * 4)
        return error_set(err, ERROR_TABLE_PROPERTY_TOO_LARGE,
                         "a binary value has more than %d bytes", BINARY_BYTES_MAX);
    if (!front_base64_decode(text, arena, &bytes))
        return value_wrong(EDM_BINARY, err);
    if (bytes.len > BINARY_BYTES_MAX)
        return error_set(err, ERROR_TABLE_PROPERTY_TOO_LARGE,
                         "a binary value has more than %d bytes", BINARY_BYTES_MAX);
    *ret_value = (struct document_value){.type = DOCUMENT_BINARY, .binary = {bytes, 0}};
    return true;
}

static bool date_read(struct slice text, struct edm_value *ret_value, struct error *err)
{
    int64_t ticks;

    if (!edm_date_parse(text, &ticks))
        return value_wrong(EDM_DATETIME, err);
    if (ticks < edm_date_min || ticks > edm_date_max)
        return error_set(err, ERROR_TABLE_OUT_OF_RANGE, "a date is not in the years 1601 to 9999");
    *ret_value = edm_date(ticks);
    return true;
}

/* Of a type that JSON writes as a text. */
static bool texted_read(struct slice text, enum edm_type type, struct arena *arena,
                        struct edm_value *ret_value, struct error *err)
{
    uint8_t *guid;

    switch (type) {
    case EDM_DATETIME:
        return date_read(text, ret_value, err);
    case EDM_BINARY:
        return binary_read(text, arena, &ret_value->value, err);
    case EDM_GUID:
        guid = arena_alloc(arena, EDM_GUID_BYTES);
        if (!edm_guid_parse(text, guid))
            return value_wrong(type, err);
        ret_value->value = (struct document_value){
            .type = DOCUMENT_BINARY, .binary = {slice_of(guid, EDM_GUID_BYTES), EDM_GUID_SUBTYPE}};
        return true;
    default:
        ret_value->value = document_string(text);
        return text_check(text, err);
    }
}

static bool number_read(const struct document_value *json, enum edm_type type,
                        struct document_value *ret_value, struct error *err)
{
    int64_t integer;
    double number;

    if (type == EDM_DOUBLE) {
        if (!double_read(json, &number))
            return value_wrong(type, err);
        *ret_value = document_double(number);
        return true;
    }
    if (!integer_read(json, &integer))
        return value_wrong(type, err);
    if (type == EDM_INT64) {
        *ret_value = document_int64(integer);
        return true;
    }
    if (integer < INT32_MIN || integer > INT32_MAX)
        return value_wrong(type, err);
    *ret_value = document_int32((int32_t)integer);
    return true;
}

/* What the value is when nobody says: as the service takes it. */
static enum edm_type type_of_json(const struct document_value *json)
{
    switch (json->type) {
    case DOCUMENT_STRING:
        return EDM_STRING;
    case DOCUMENT_BOOL:
        return EDM_BOOLEAN;
    case DOCUMENT_INT32:
        return EDM_INT32;
    case DOCUMENT_INT64: /* beyond 32 bits without a word about it */
    case DOCUMENT_DOUBLE:
        return EDM_DOUBLE;
    default:
        return EDM_UNKNOWN;
    }
}

bool edm_value_read(const struct document_value *json, enum edm_type type, struct arena *arena,
                    struct edm_value *ret_value, struct error *err)
{
    *ret_value = (struct edm_value){.value = document_undefined()};
    if (json->type == DOCUMENT_NULL)
        return type == EDM_UNKNOWN || value_wrong(type, err);
    if (type == EDM_UNKNOWN)
        type = type_of_json(json);
    switch (type) {
    case EDM_UNKNOWN:
        return error_set(err, ERROR_TABLE_VALUE, "objects and arrays cannot be properties");
    case EDM_BOOLEAN:
        if (json->type == DOCUMENT_BOOL)
            ret_value->value = *json;
        else if (json->type == DOCUMENT_STRING && (slice_equal(json->text, SLICE("true")) ||
                                                   slice_equal(json->text, SLICE("false"))))
            ret_value->value = document_bool(json->text.data[0] == 't');
        else
            return value_wrong(type, err);
        return true;
    case EDM_INT32:
    case EDM_INT64:
    case EDM_DOUBLE:
        return number_read(json, type, &ret_value->value, err);
    default:
        if (json->type != DOCUMENT_STRING)
            return value_wrong(type, err);
        return texted_read(json->text, type, arena, ret_value, err);
    }
}

/* --- Writing --------------------------------------------------------------------------------- */

/* A double shows that it is one: 2.0, not 2. */
static enum edm_type double_append(double number, bool full, struct buf *out)
{
    uint8_t text[JSON_NUMBER_MAX];
    size_t len;

    if (!isfinite(number)) {
        buf_append_text(out, isnan(number)  ? "\"NaN\""
                             : number > 0.0 ? "\"Infinity\""
                                            : "\"-Infinity\"");
        return EDM_DOUBLE;
    }
    len = (size_t)(json_number_write_double(text, number) - text);
    buf_append(out, text, len);
    if (!memchr(text, '.', len) && !memchr(text, 'e', len))
        BUF_APPEND(out, ".0");
    return full ? EDM_DOUBLE : EDM_UNKNOWN;
}

static enum edm_type binary_append(const struct document_value *value, struct buf *out)
{
    struct slice bytes = value->binary.bytes;
    size_t size = (bytes.len + 2) / 3 * 4;

    buf_append_byte(out, '"');
    if (value->binary.subtype == EDM_GUID_SUBTYPE && bytes.len == EDM_GUID_BYTES) {
        edm_guid_append(bytes.data, out);
        buf_append_byte(out, '"');
        return EDM_GUID;
    }
    if (bytes.len && buf_reserve(out, size + 1)) {
        EVP_EncodeBlock(out->data + out->len, bytes.data, (int)bytes.len);
        out->len += size;
    }
    buf_append_byte(out, '"');
    return EDM_BINARY;
}

/* What other APIs wrote and no Edm type holds, as the text of its JSON. */
static void foreign_append(const struct document_value *value, struct buf *out)
{
    CLEANUP(buf_done) struct buf json;

    buf_init(&json, BUF_DEFAULT_MAX);
    document_json_write_value(value, &json);
    document_json_write_string(buf_slice(&json), out);
}

enum edm_type edm_value_append(const struct document_value *value, int32_t below_ms, bool full,
                               struct buf *out)
{
    switch (value->type) {
    case DOCUMENT_STRING:
    case DOCUMENT_BOOL:
    case DOCUMENT_INT32:
        document_json_write_value(value, out);
        return EDM_UNKNOWN;
    case DOCUMENT_INT64:
        buf_append_byte(out, '"');
        buf_append_int64(out, value->int64);
        buf_append_byte(out, '"');
        return EDM_INT64;
    case DOCUMENT_DOUBLE:
        return double_append(value->number, full, out);
    case DOCUMENT_DATE:
        if (value->int64 > edm_date_max / EDM_TICKS_PER_MS ||
            value->int64 < QUERY_TICKS_MIN / EDM_TICKS_PER_MS)
            break;
        buf_append_byte(out, '"');
        edm_date_append(edm_ticks_of_ms(value->int64) + below_ms, out);
        buf_append_byte(out, '"');
        return EDM_DATETIME;
    case DOCUMENT_BINARY:
        return binary_append(value, out);
    default:
        break;
    }
    foreign_append(value, out);
    return EDM_UNKNOWN;
}
