/* Texts that are times are told by how they begin: a date as ISO 8601 has it, also with slashes or
 * dots or without anything between, a time of day, or a day of the week as RFC 1123 has it. Times
 * in numbers look like measurements, and are treated alike; so is text that is a number with a
 * fraction. Digits alone may well name something. Text for people has several words, or is longer
 * than any name. Hashed values begin with MARK and the letter of their nature. */
#include "advise/nature.h"

enum { NAME_BYTES_MAX = 64, SPACES_MAX = 1, DIGITS = 16 };
#define MARK '#'

static const char letters[ADVISE_NATURES] = {'s', 'i', 'n', 't', 'p'};

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* Does it begin so? d: a digit, a: a letter, else the character itself; and is that all, or
 * followed by one of the ends? */
static bool has_form(struct slice text, const char *form, const char *ends)
{
    size_t len = strlen(form);

    if (text.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (form[i] == 'd'   ? !is_digit(text.data[i])
            : form[i] == 'a' ? !is_letter(text.data[i])
                             : text.data[i] != (uint8_t)form[i])
            return false;
    return text.len == len || (text.data[len] && strchr(ends, text.data[len]));
}

static bool is_time(struct slice text)
{
    static const struct {
        const char *form, *ends;
    } forms[] = {{"dddd-dd-dd", "T "}, {"dddd/dd/dd", "T "},  {"dddd.dd.dd", "T "},
                 {"dd/dd/dddd", " "},  {"dd.dd.dddd", " "},   {"ddddddddTdddd", "0123456789"},
                 {"dd:dd", ""},        {"dd:dd:dd", ".,Z+-"}, {"aaa, dd aaa dddd", " "}};

    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (has_form(text, forms[i].form, forms[i].ends))
            return true;
    return false;
}

/* -12.5, 1.0e-3; but not 7, 10.0.0.1 or 1.2-beta. */
static bool is_fraction(struct slice text)
{
    size_t at = 0, digits = 0;

    at += text.len && (text.data[0] == '-' || text.data[0] == '+');
    while (at < text.len && is_digit(text.data[at]))
        at++;
    if (at == text.len || text.data[at++] != '.')
        return false;
    for (; at < text.len && is_digit(text.data[at]); at++)
        digits++;
    if (at + 1 < text.len && (text.data[at] | 0x20) == 'e') {
        at += text.data[at + 1] == '-' || text.data[at + 1] == '+' ? 2 : 1;
        for (digits = 0; at < text.len && is_digit(text.data[at]); at++)
            digits++;
    }
    return digits && at == text.len;
}

static bool is_prose(struct slice text)
{
    size_t spaces = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\n')
            return true;
        spaces += text.data[i] == ' ';
    }
    return text.len > NAME_BYTES_MAX || spaces > SPACES_MAX;
}

static bool is_marked(struct slice text, enum advise_nature *ret_nature)
{
    if (text.len != 2 + DIGITS || text.data[0] != MARK)
        return false;
    for (size_t i = 0; i < ADVISE_NATURES; i++)
        if (text.data[1] == (uint8_t)letters[i]) {
            *ret_nature = (enum advise_nature)i;
            return true;
        }
    return false;
}

enum advise_nature advise_nature_of(const struct document_value *value)
{
    enum advise_nature marked;
    int64_t whole;

    if (document_is_number(value))
        return document_to_int64(value, &whole) ? ADVISE_NATURE_INTEGER : ADVISE_NATURE_NUMBER;
    if (value->type == DOCUMENT_DATE)
        return ADVISE_NATURE_TIME;
    if (value->type != DOCUMENT_STRING)
        return ADVISE_NATURE_NAME;
    if (is_marked(value->text, &marked))
        return marked;
    if (is_time(value->text))
        return ADVISE_NATURE_TIME;
    if (is_fraction(value->text))
        return ADVISE_NATURE_NUMBER;
    return is_prose(value->text) ? ADVISE_NATURE_PROSE : ADVISE_NATURE_NAME;
}

void advise_nature_mark(enum advise_nature nature, uint64_t hash, struct buf *out)
{
    buf_printf(out, "%c%c%0*llx", MARK, letters[nature], DIGITS, (unsigned long long)hash);
}

/* The last word begins with a capital, or behind something that is no letter, or is all there is.
 */
static bool ends_in_word(struct slice path, struct slice word)
{
    size_t at;

    if (path.len < word.len + 1)
        return false;
    at = path.len - word.len;
    for (size_t i = 0; i < word.len; i++)
        if ((path.data[at + i] | 0x20) != word.data[i])
            return false;
    return path.data[at] < 'a' || !is_letter(path.data[at - 1]);
}

bool advise_nature_path_numbers(struct slice path)
{
    static const struct slice words[] = {SLICE("id"),  SLICE("no"),   SLICE("nr"),
                                         SLICE("key"), SLICE("code"), SLICE("number")};

    if (path.len && path.data[path.len - 1] == '"')
        path.len--;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (ends_in_word(path, words[i]))
            return true;
    return false;
}
