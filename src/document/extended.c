/* One walk for each way, over BSON: the JSON reader and writer stay as they are, and whoever needs
 * no types pays nothing. A document without anything to replace is handed back as it is. */
#include "document/extended.h"

#include "document/decimal_math.h"
#include "document/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    NUMBER_TEXT_MAX = 400, /* bytes of a number in an object of extended JSON */
    OBJECT_ID_DIGITS = 2 * DOCUMENT_OBJECT_ID_SIZE,
    NUMBER_MAX = 100 * 1000 * 1000, /* of a name that occurs again: more elements fit nowhere */
};

static const struct slice AGAIN = SLICE("$again"); /* before a number and a colon */

static const int64_t JSON_INTEGER_MAX = INT64_C(1) << 53; /* what JavaScript has without rounding */

/* --- Names ----------------------------------------------------------------------------------- */

/* "$again", a number without a zero before it, ":", a name. 0: it is none of these. */
static uint32_t again_number(struct slice name, struct slice *ret_rest)
{
    uint32_t number = 0;
    size_t at = AGAIN.len;

    if (!slice_starts_with(name, AGAIN) || name.len == at || name.data[at] == '0')
        return 0;
    for (; at < name.len && name.data[at] >= '0' && name.data[at] <= '9'; at++) {
        if (number > NUMBER_MAX)
            return 0;
        number = number * 10 + (uint32_t)(name.data[at] - '0');
    }
    if (!number || at == name.len || name.data[at] != ':')
        return 0;
    *ret_rest = slice_skip(name, at + 1);
    return number;
}

/* An element by its name: as it stands, as it is meant, and where. */
struct named {
    struct slice name;
    uint32_t number; /* that it is shown with; 0: none */
    size_t at;
};

static int named_compare(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    int order = slice_compare(a->name, b->name);

    return order ? order : (a->at > b->at) - (a->at < b->at);
}

static struct named *named_sorted(struct slice object, bool decode, struct arena *arena,
                                  size_t *ret_count)
{
    size_t count = document_count(object);
    struct named *list = ARENA_ARRAY(arena, struct named, count + 1);
    struct document_iter iter;

    document_iter_init(&iter, object);
    for (size_t i = 0; document_iter_next(&iter); i++) {
        list[i] = (struct named){.name = iter.key, .at = i};
        if (decode)
            list[i].number = again_number(iter.key, &list[i].name);
    }
    qsort(list, count, sizeof *list, named_compare);
    *ret_count = count;
    return list;
}

/* Is there a name twice, or one that looks as if there were? Few names are compared one by one. */
static bool names_are_odd(struct slice object)
{
    enum { FEW = 12 };
    struct slice names[FEW];
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, object);
    while (document_iter_next(&iter)) {
        if (slice_starts_with(iter.key, AGAIN) || count == FEW)
            return true; /* or there are too many of them: they are sorted */
        for (size_t i = 0; i < count; i++)
            if (slice_equal(names[i], iter.key))
                return true;
        names[count++] = iter.key;
    }
    return false;
}

const struct slice *document_extended_names(struct slice object, struct arena *arena)
{
    struct named *list;
    struct slice *names, unused;
    size_t count;
    uint32_t nth = 0;
    bool odd = false;

    if (!names_are_odd(object))
        return NULL;
    list = named_sorted(object, false, arena, &count);
    names = ARENA_ARRAY(arena, struct slice, count + 1);
    for (size_t i = 0; i < count; i++) {
        nth = i && slice_equal(list[i - 1].name, list[i].name) ? nth + 1 : 1;
        names[list[i].at] = list[i].name;
        if (nth == 1 && !again_number(list[i].name, &unused))
            continue;
        odd = true;
        names[list[i].at] =
            arena_printf(arena, "%.*s%u:%.*s", SLICE_ARG(AGAIN), nth, SLICE_ARG(list[i].name));
    }
    return odd ? names : NULL;
}

/* The nth of a name has that number; a first one has a 1 where it would be read as a number. */
bool document_extended_names_read(struct slice object, struct arena *arena,
                                  const struct slice **ret_names, struct error *err)
{
    struct named *list;
    struct slice *names, unused;
    size_t count;
    uint32_t nth = 0;
    bool odd = false;

    *ret_names = NULL;
    if (!names_are_odd(object))
        return true;
    list = named_sorted(object, true, arena, &count);
    names = ARENA_ARRAY(arena, struct slice, count + 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t expected;

        nth = i && slice_equal(list[i - 1].name, list[i].name) ? nth + 1 : 1;
        expected = nth > 1 || again_number(list[i].name, &unused) ? nth : 0;
        if (list[i].number != expected)
            return error_set(err, ERROR_BAD_REQUEST,
                             "\"$again%u:\" stands before the property \"%.*s\", which is the "
                             "%u. of its name",
                             list[i].number, (int)MIN(list[i].name.len, (size_t)100),
                             (const char *)list[i].name.data, nth);
        names[list[i].at] = list[i].name;
        odd |= list[i].number > 0;
    }
    *ret_names = odd ? names : NULL;
    return true;
}

/* --- Writing --------------------------------------------------------------------------------- */

static bool is_whole(double number)
{
    return isfinite(number) && number == trunc(number);
}

static void append_wrapped(struct buf *buf, struct slice key, struct slice name, const char *text)
{
    size_t begin = document_append_object_begin(buf, key);

    document_append_string(buf, name, slice_of_text(text));
    document_end(buf, begin);
}

static void append_double(struct buf *buf, struct slice key, double number)
{
    char text[NUMBER_TEXT_MAX];

    if (!is_whole(number)) {
        document_append_double(buf, key, number);
        return;
    }
    /* also of -0, which reads as the double; but clients that write JSON anew write 0 */
    snprintf(text, sizeof text, "%.1f", number);
    append_wrapped(buf, key, SLICE("$numberDouble"), text);
}

static void append_int64(struct buf *buf, struct slice key, int64_t number)
{
    char text[32];

    if ((number < INT32_MIN || number > INT32_MAX) && number <= JSON_INTEGER_MAX &&
        number >= -JSON_INTEGER_MAX) {
        document_append_int64(buf, key, number);
        return;
    }
    snprintf(text, sizeof text, "%lld", (long long)number);
    append_wrapped(buf, key, SLICE("$numberLong"), text);
}

static void append_document(struct buf *buf, struct slice document)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    const struct slice *names = NULL;
    struct document_iter iter;

    if (names_are_odd(document)) {
        arena = arena_new();
        names = document_extended_names(document, arena);
    }
    document_iter_init(&iter, document);
    for (size_t i = 0; document_iter_next(&iter); i++)
        document_extended_append(buf, names ? names[i] : iter.key, &iter.value);
}

static void append_scoped(struct buf *buf, struct slice key, const struct document_value *value)
{
    CLEANUP(buf_done) struct buf scope;
    struct document_value shown = *value;
    size_t begin;

    buf_init(&scope, SIZE_MAX);
    begin = document_begin(&scope);
    append_document(&scope, value->scoped.scope);
    document_end(&scope, begin);
    shown.scoped.scope = buf_slice(&scope);
    document_append(buf, key, &shown);
}

void document_extended_append(struct buf *buf, struct slice key, const struct document_value *value)
{
    size_t begin;

    switch (value->type) {
    case DOCUMENT_DOUBLE:
        append_double(buf, key, value->number);
        return;
    case DOCUMENT_INT64:
        append_int64(buf, key, value->int64);
        return;
    case DOCUMENT_OBJECT:
    case DOCUMENT_ARRAY:
        begin = value->type == DOCUMENT_OBJECT ? document_append_object_begin(buf, key)
                                               : document_append_array_begin(buf, key);
        append_document(buf, value->document);
        document_end(buf, begin);
        return;
    case DOCUMENT_CODE_WITH_SCOPE:
        append_scoped(buf, key, value);
        return;
    default:
        document_append(buf, key, value);
    }
}

/* --- Reading --------------------------------------------------------------------------------- */

struct reading {
    struct arena *arena;
    struct error *err;
};

static bool refuse(struct reading *r, const char *what)
{
    return error_set(r->err, ERROR_BAD_REQUEST, "%s is not extended JSON of that type", what);
}

static bool is_text(const struct document_value *value)
{
    return value->type == DOCUMENT_STRING;
}

/* The text of a number, ended for the C library; NULL: too long or none. */
static const char *number_text(const struct document_value *value, char text[NUMBER_TEXT_MAX])
{
    if (!is_text(value) || !value->text.len || value->text.len >= NUMBER_TEXT_MAX ||
        memchr(value->text.data, 0, value->text.len))
        return NULL;
    memcpy(text, value->text.data, value->text.len);
    text[value->text.len] = 0;
    return text;
}

static bool read_long(struct reading *r, const struct document_value *value, int64_t min,
                      int64_t max, int64_t *ret_number)
{
    char text[NUMBER_TEXT_MAX], *end;
    const char *digits = number_text(value, text);
    long long number;

    if (!digits || !(digits[*digits == '-'] >= '0' && digits[*digits == '-'] <= '9'))
        return refuse(r, "the number");
    errno = 0;
    number = strtoll(digits, &end, 10);
    if (*end || errno || number < min || number > max)
        return refuse(r, "the number");
    *ret_number = number;
    return true;
}

static bool read_int(struct reading *r, const struct document_value *content,
                     struct document_value *ret)
{
    int64_t number = 0;

    if (!read_long(r, content, INT32_MIN, INT32_MAX, &number))
        return false;
    *ret = document_int32((int32_t)number);
    return true;
}

static bool read_int64(struct reading *r, const struct document_value *content,
                       struct document_value *ret)
{
    int64_t number = 0;

    if (!read_long(r, content, INT64_MIN, INT64_MAX, &number))
        return false;
    *ret = document_int64(number);
    return true;
}

static bool read_double(struct reading *r, const struct document_value *content,
                        struct document_value *ret)
{
    char text[NUMBER_TEXT_MAX], *end;
    const char *digits = number_text(content, text);
    double number;

    if (!digits || strpbrk(digits, " \t\n\r\f\vxX"))
        return refuse(r, "$numberDouble");
    number = strtod(digits, &end);
    if (*end)
        return refuse(r, "$numberDouble");
    *ret = document_double(number);
    return true;
}

static bool read_decimal(struct reading *r, const struct document_value *content,
                         struct document_value *ret)
{
    bool exact = false;

    *ret = document_value_of_type(DOCUMENT_DECIMAL128);
    return (is_text(content) && decimal_from_text(content->text, &ret->decimal, &exact) && exact) ||
           refuse(r, "$numberDecimal");
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct slice text, uint8_t *bytes, size_t len)
{
    if (text.len != 2 * len)
        return false;
    for (size_t i = 0; i < len; i++) {
        int high = hex_digit(text.data[2 * i]), low = hex_digit(text.data[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool read_object_id(struct reading *r, const struct document_value *content,
                           struct document_value *ret)
{
    uint8_t *id = arena_alloc(r->arena, DOCUMENT_OBJECT_ID_SIZE);

    if (!is_text(content) || !read_hex(content->text, id, DOCUMENT_OBJECT_ID_SIZE))
        return refuse(r, "$oid");
    *ret = document_value_of_type(DOCUMENT_OBJECT_ID);
    ret->id = id;
    return true;
}

static int base64_digit(uint8_t c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool read_base64(struct slice text, struct arena *arena, struct slice *ret_bytes)
{
    uint8_t *bytes = arena_alloc(arena, text.len / 4 * 3 + 1);
    size_t digits = text.len, len = 0;
    uint32_t bits = 0;

    if (text.len % 4)
        return false;
    while (digits && digits + 2 > text.len && text.data[digits - 1] == '=')
        digits--;
    for (size_t i = 0; i < digits; i++) {
        int digit = base64_digit(text.data[i]);

        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4)
            bytes[len++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    *ret_bytes = slice_of(bytes, len);
    return true;
}

/* Two members and no others. */
static bool find_both(const struct document_value *object, struct slice a, struct slice b,
                      struct document_value *ret_a, struct document_value *ret_b)
{
    return object->type == DOCUMENT_OBJECT && document_count(object->document) == 2 &&
           document_find(object->document, a, ret_a) && document_find(object->document, b, ret_b);
}

static bool read_binary(struct reading *r, const struct document_value *content,
                        struct document_value *ret)
{
    struct document_value base64, subtype;
    uint8_t number[1];
    struct slice bytes;

    if (!find_both(content, SLICE("base64"), SLICE("subType"), &base64, &subtype) ||
        !is_text(&base64) || !is_text(&subtype) || !read_hex(subtype.text, number, 1) ||
        !read_base64(base64.text, r->arena, &bytes))
        return refuse(r, "$binary");
    *ret = document_value_of_type(DOCUMENT_BINARY);
    ret->binary.bytes = bytes;
    ret->binary.subtype = number[0];
    return true;
}

static bool read_date(struct reading *r, const struct document_value *content,
                      struct document_value *ret)
{
    struct document_value number;
    int64_t ms = 0;

    if (content->type != DOCUMENT_OBJECT || document_count(content->document) != 1 ||
        !document_find(content->document, SLICE("$numberLong"), &number) ||
        !read_long(r, &number, INT64_MIN, INT64_MAX, &ms))
        return refuse(r, "$date");
    *ret = document_date(ms);
    return true;
}

static bool read_timestamp(struct reading *r, const struct document_value *content,
                           struct document_value *ret)
{
    struct document_value t, i;
    int64_t seconds, counter;

    if (!find_both(content, SLICE("t"), SLICE("i"), &t, &i) || !document_to_int64(&t, &seconds) ||
        !document_to_int64(&i, &counter) || seconds < 0 || seconds > UINT32_MAX || counter < 0 ||
        counter > UINT32_MAX)
        return refuse(r, "$timestamp");
    *ret = document_value_of_type(DOCUMENT_TIMESTAMP);
    ret->timestamp = (uint64_t)seconds << 32 | (uint64_t)counter;
    return true;
}

static bool has_nul(struct slice text)
{
    return text.len && memchr(text.data, 0, text.len);
}

static bool read_regex(struct reading *r, const struct document_value *content,
                       struct document_value *ret)
{
    struct document_value pattern, options;

    if (!find_both(content, SLICE("pattern"), SLICE("options"), &pattern, &options) ||
        !is_text(&pattern) || !is_text(&options) || has_nul(pattern.text) || has_nul(options.text))
        return refuse(r, "$regularExpression");
    *ret = document_value_of_type(DOCUMENT_REGEX);
    ret->regex.pattern = pattern.text;
    ret->regex.options = options.text;
    return true;
}

static bool read_pointer(struct reading *r, const struct document_value *content,
                         struct document_value *ret)
{
    struct document_value collection, id, read;

    if (!find_both(content, SLICE("$ref"), SLICE("$id"), &collection, &id) ||
        !is_text(&collection) || !document_extended_read(&id, r->arena, &read, r->err) ||
        read.type != DOCUMENT_OBJECT_ID)
        return refuse(r, "$dbPointer");
    *ret = document_value_of_type(DOCUMENT_DB_POINTER);
    ret->pointer.collection = collection.text;
    ret->pointer.id = read.id;
    return true;
}

static bool read_symbol(struct reading *r, const struct document_value *content,
                        struct document_value *ret)
{
    if (!is_text(content))
        return refuse(r, "$symbol");
    *ret = *content;
    ret->type = DOCUMENT_SYMBOL;
    return true;
}

static bool read_code(struct reading *r, const struct document_value *content,
                      struct document_value *ret)
{
    if (!is_text(content))
        return refuse(r, "$code");
    *ret = *content;
    ret->type = DOCUMENT_CODE;
    return true;
}

static bool read_undefined(struct reading *r, const struct document_value *content,
                           struct document_value *ret)
{
    *ret = document_undefined();
    return (content->type == DOCUMENT_BOOL && content->boolean) || refuse(r, "$undefined");
}

static bool is_one(const struct document_value *value)
{
    int64_t number;

    return document_to_int64(value, &number) && number == 1;
}

static bool read_min_key(struct reading *r, const struct document_value *content,
                         struct document_value *ret)
{
    *ret = document_value_of_type(DOCUMENT_MIN_KEY);
    return is_one(content) || refuse(r, "$minKey");
}

static bool read_max_key(struct reading *r, const struct document_value *content,
                         struct document_value *ret)
{
    *ret = document_value_of_type(DOCUMENT_MAX_KEY);
    return is_one(content) || refuse(r, "$maxKey");
}

static const struct {
    struct slice name;
    bool (*read)(struct reading *r, const struct document_value *content,
                 struct document_value *ret);
} types[] = {
    {SLICE("$numberInt"), read_int},
    {SLICE("$numberLong"), read_int64},
    {SLICE("$numberDouble"), read_double},
    {SLICE("$numberDecimal"), read_decimal},
    {SLICE("$oid"), read_object_id},
    {SLICE("$binary"), read_binary},
    {SLICE("$date"), read_date},
    {SLICE("$timestamp"), read_timestamp},
    {SLICE("$regularExpression"), read_regex},
    {SLICE("$dbPointer"), read_pointer},
    {SLICE("$symbol"), read_symbol},
    {SLICE("$code"), read_code},
    {SLICE("$undefined"), read_undefined},
    {SLICE("$minKey"), read_min_key},
    {SLICE("$maxKey"), read_max_key},
};

static bool read_elements(struct reading *r, const struct document_value *value,
                          struct document_value *ret);

static bool read_scoped(struct reading *r, const struct document_value *code,
                        const struct document_value *scope, struct document_value *ret)
{
    struct document_value read;

    if (!is_text(code) || scope->type != DOCUMENT_OBJECT)
        return refuse(r, "$code with $scope");
    if (!read_elements(r, scope, &read))
        return false;
    *ret = document_value_of_type(DOCUMENT_CODE_WITH_SCOPE);
    ret->scoped.code = code->text;
    ret->scoped.scope = read.document;
    return true;
}

/* What an object stands for: itself, with its own elements read, or a value. */
static bool read_object(struct reading *r, const struct document_value *value,
                        struct document_value *ret)
{
    struct document_value code, scope;
    struct document_iter iter;

    document_iter_init(&iter, value->document);
    if (!document_iter_next(&iter) || !iter.key.len || iter.key.data[0] != '$')
        return read_elements(r, value, ret);
    if (find_both(value, SLICE("$code"), SLICE("$scope"), &code, &scope))
        return read_scoped(r, &code, &scope, ret);
    for (size_t i = 0; i < ARRAY_LEN(types) && document_count(value->document) == 1; i++)
        if (slice_equal(iter.key, types[i].name))
            return types[i].read(r, &iter.value, ret);
    return read_elements(r, value, ret);
}

/* Is there anything in it that extended JSON could be? */
static bool has_objects(struct slice document)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (iter.value.type == DOCUMENT_OBJECT || iter.value.type == DOCUMENT_ARRAY)
            return true;
    return false;
}

static bool read_elements(struct reading *r, const struct document_value *value,
                          struct document_value *ret)
{
    CLEANUP(buf_done) struct buf buf;
    const struct slice *names = NULL;
    struct document_iter iter;
    size_t begin;

    buf_init(&buf, SIZE_MAX); /* never longer than what is read */
    *ret = *value;
    if (value->type == DOCUMENT_OBJECT &&
        !document_extended_names_read(value->document, r->arena, &names, r->err))
        return false;
    if (!names && !has_objects(value->document))
        return true;
    begin = document_begin(&buf);
    document_iter_init(&iter, value->document);
    for (size_t i = 0; document_iter_next(&iter); i++) {
        struct document_value read;

        if (!document_extended_read(&iter.value, r->arena, &read, r->err))
            return false;
        document_append(&buf, names ? names[i] : iter.key, &read);
    }
    document_end(&buf, begin);
    ret->document = arena_copy(r->arena, buf_slice(&buf));
    return true;
}

bool document_extended_read(const struct document_value *value, struct arena *arena,
                            struct document_value *ret_value, struct error *err)
{
    struct reading r = {arena, err};

    if (value->type == DOCUMENT_OBJECT)
        return read_object(&r, value, ret_value);
    if (value->type == DOCUMENT_ARRAY)
        return read_elements(&r, value, ret_value);
    *ret_value = *value;
    return true;
}

/* --- Texts ----------------------------------------------------------------------------------- */

static struct slice json_text(const struct document_value *value, bool extended,
                              struct arena *arena)
{
    CLEANUP(buf_done) struct buf shown, text;
    struct document_value first = *value;
    size_t begin;

    buf_init(&shown, SIZE_MAX);
    buf_init(&text, SIZE_MAX);
    if (extended) {
        begin = document_begin(&shown);
        document_extended_append(&shown, SLICE(""), value);
        document_end(&shown, begin);
        (void)document_find(buf_slice(&shown), SLICE(""), &first);
    }
    document_json_write_value(&first, &text);
    return arena_copy(arena, buf_slice(&text));
}

static struct slice number_of(const struct document_value *value, struct arena *arena)
{
    struct document_value integer;
    int64_t number;

    if (!document_to_int64(value, &number))
        return json_text(value, false, arena);
    integer = document_int64(number);
    return json_text(&integer, false, arena);
}

struct slice document_extended_text(const struct document_value *value, struct arena *arena)
{
    static const char hex[] = "0123456789abcdef";
    uint8_t digits[OBJECT_ID_DIGITS];

    if (document_is_number(value))
        return number_of(value, arena);
    if (value->type == DOCUMENT_STRING) {
        if (document_extended_of_text(value->text, arena).type == DOCUMENT_STRING &&
            slice_equal(document_extended_of_text(value->text, arena).text, value->text))
            return value->text;
        return json_text(value, false, arena);
    }
    if (value->type != DOCUMENT_OBJECT_ID)
        return json_text(value, true, arena);
    for (size_t i = 0; i < DOCUMENT_OBJECT_ID_SIZE; i++) {
        digits[2 * i] = (uint8_t)hex[value->id[i] >> 4];
        digits[2 * i + 1] = (uint8_t)hex[value->id[i] & 15];
    }
    return arena_copy(arena, slice_of(digits, sizeof digits));
}

static bool object_id_of(struct slice text, struct arena *arena, struct document_value *ret_value)
{
    uint8_t *id = arena_alloc(arena, DOCUMENT_OBJECT_ID_SIZE);

    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] >= 'A' && text.data[i] <= 'F')
            return false;
    if (!read_hex(text, id, DOCUMENT_OBJECT_ID_SIZE))
        return false;
    *ret_value = document_value_of_type(DOCUMENT_OBJECT_ID);
    ret_value->id = id;
    return true;
}

/* Only a text that is written exactly so is taken for a value: "007" and "1.0" are strings. */
static bool json_of(struct slice text, struct arena *arena, struct document_value *ret_value)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value parsed, value;
    struct error ignored;

    buf_init(&buf, BUF_DEFAULT_MAX);
    if (!text.len ||
        (!strchr("{\"-tfn", text.data[0]) && !(text.data[0] >= '0' && text.data[0] <= '9')))
        return false;
    if (!document_json_read_value(text, NULL, &buf, &parsed, &ignored))
        return false;
    (void)document_find(arena_copy(arena, buf_slice(&buf)), SLICE(""), &parsed);
    if (!document_extended_read(&parsed, arena, &value, &ignored) ||
        !slice_equal(value.type == DOCUMENT_STRING ? json_text(&value, false, arena)
                                                   : document_extended_text(&value, arena),
                     text))
        return false;
    *ret_value = value;
    return true;
}

struct document_value document_extended_of_text(struct slice text, struct arena *arena)
{
    struct document_value value, inner;

    if (text.len == OBJECT_ID_DIGITS && object_id_of(text, arena, &value))
        return value;
    if (!json_of(text, arena, &value))
        return document_string(text);
    /* A JSON string stands only for one that would be another value without its quotes. */
    if (value.type == DOCUMENT_STRING) {
        inner = document_extended_of_text(value.text, arena);
        if (inner.type == DOCUMENT_STRING && slice_equal(inner.text, value.text))
            return document_string(text);
    }
    return value;
}
