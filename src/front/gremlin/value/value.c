/* Scalars, enumerations, texts and bytes. */
#include "front/gremlin/value/value.h"

#include "front/gremlin/value/big.h"

/* --- Enumerations ----------------------------------------------------------------------------- */

struct family_row {
    const char *name;
    uint8_t code;
};

struct word_row {
    uint16_t family;
    const char *text;
};

static const struct family_row families[] = {
#define GREMLIN_FAMILY_ROW(family, name, code) {name, code},
#include "front/gremlin/value/enums.def"
};

static const struct word_row words[] = {
#define GREMLIN_WORD_ROW(family, word, text) {GREMLIN_ENUM_##family, text},
#include "front/gremlin/value/enums.def"
};

struct gremlin_value gremlin_word(enum gremlin_enum_word word)
{
    assert(word < GREMLIN_WORD_COUNT);
    return (struct gremlin_value){.type = GREMLIN_ENUM,
                                  .word = {words[word].family, (uint16_t)word}};
}

bool gremlin_word_find(enum gremlin_enum_family family, struct slice text,
                       struct gremlin_value *ret_value)
{
    for (size_t i = 0; i < GREMLIN_WORD_COUNT; i++)
        if (words[i].family == family && slice_equal(text, slice_of_text(words[i].text))) {
            *ret_value = gremlin_word((enum gremlin_enum_word)i);
            return true;
        }
    return false;
}

bool gremlin_family_find(struct slice name, enum gremlin_enum_family *ret_family)
{
    for (size_t i = 0; i < GREMLIN_ENUM_COUNT; i++)
        if (slice_equal(name, slice_of_text(families[i].name))) {
            *ret_family = (enum gremlin_enum_family)i;
            return true;
        }
    return false;
}

struct slice gremlin_family_name(enum gremlin_enum_family family)
{
    return slice_of_text(families[family].name);
}

uint8_t gremlin_family_code(enum gremlin_enum_family family)
{
    return families[family].code;
}

struct slice gremlin_word_text(struct gremlin_enum word)
{
    return slice_of_text(words[word.word].text);
}

enum gremlin_enum_word gremlin_word_canonical(enum gremlin_enum_word word)
{
    switch (word) {
    case GREMLIN_DIRECTION_FROM:
        return GREMLIN_DIRECTION_OUT;
    case GREMLIN_DIRECTION_TO:
        return GREMLIN_DIRECTION_IN;
    case GREMLIN_ORDER_INCR:
        return GREMLIN_ORDER_ASC;
    case GREMLIN_ORDER_DECR:
        return GREMLIN_ORDER_DESC;
    case GREMLIN_OPERATOR_SUM_LONG:
        return GREMLIN_OPERATOR_SUM;
    default:
        return word;
    }
}

/* --- Texts and bytes -------------------------------------------------------------------------- */

struct gremlin_value gremlin_bytes_room(struct gremlin_heap *heap, enum gremlin_type type,
                                        size_t len, uint8_t **ret_data)
{
    struct gremlin_bytes *bytes;

    assert(type >= GREMLIN_BIG_INTEGER && type <= GREMLIN_CLASS && len <= GREMLIN_BYTES_MAX);
    bytes = gremlin_object_new(heap, type, sizeof *bytes + len);
    bytes->len = (uint32_t)len;
    *ret_data = bytes->data;
    return gremlin_value_of_take(bytes);
}

struct gremlin_value gremlin_bytes_new(struct gremlin_heap *heap, enum gremlin_type type,
                                       struct slice bytes)
{
    uint8_t *data;
    struct gremlin_value value = gremlin_bytes_room(heap, type, bytes.len, &data);

    if (bytes.len)
        memcpy(data, bytes.data, bytes.len);
    return value;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_dash(size_t at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

bool gremlin_uuid_parse(struct slice text, uint8_t ret_bytes[16])
{
    uint8_t bytes[16];
    size_t count = 0;

    if (text.len != GREMLIN_UUID_TEXT)
        return false;
    for (size_t at = 0; at < text.len;) {
        int high, low;

        if (is_dash(at)) {
            if (text.data[at++] != '-')
                return false;
            continue;
        }
        high = hex_digit(text.data[at]);
        low = hex_digit(text.data[at + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[count++] = (uint8_t)(high << 4 | low);
        at += 2;
    }
    memcpy(ret_bytes, bytes, sizeof bytes);
    return true;
}

void gremlin_uuid_format(const uint8_t bytes[16], char ret_text[GREMLIN_UUID_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;

    for (size_t i = 0; i < 16; i++) {
        if (is_dash(at))
            ret_text[at++] = '-';
        ret_text[at++] = digits[bytes[i] >> 4];
        ret_text[at++] = digits[bytes[i] & 15];
    }
}

/* --- Time ------------------------------------------------------------------------------------- */

struct gremlin_value gremlin_date_time_new(struct gremlin_heap *heap, int64_t seconds,
                                           int32_t nanoseconds, int32_t offset)
{
    struct gremlin_date_time *time = gremlin_object_new(heap, GREMLIN_DATE_TIME, sizeof *time);

    time->seconds = seconds;
    time->nanoseconds = nanoseconds;
    time->offset = offset;
    return gremlin_value_of_take(time);
}

struct gremlin_value gremlin_duration_new(struct gremlin_heap *heap, int64_t seconds,
                                          int32_t nanoseconds)
{
    struct gremlin_duration *duration =
        gremlin_object_new(heap, GREMLIN_DURATION, sizeof *duration);

    duration->seconds = seconds;
    duration->nanoseconds = nanoseconds;
    return gremlin_value_of_take(duration);
}

struct gremlin_value gremlin_temporal_new(struct gremlin_heap *heap, struct slice name,
                                          struct slice text)
{
    struct gremlin_temporal *temporal;

    assert(name.len <= GREMLIN_BYTES_MAX && text.len <= GREMLIN_BYTES_MAX);
    temporal = gremlin_object_new(heap, GREMLIN_TEMPORAL, sizeof *temporal + name.len + text.len);
    temporal->name_len = (uint32_t)name.len;
    temporal->len = (uint32_t)text.len;
    memcpy(temporal->data, name.data, name.len);
    if (text.len)
        memcpy(temporal->data + name.len, text.data, text.len);
    return gremlin_value_of_take(temporal);
}
