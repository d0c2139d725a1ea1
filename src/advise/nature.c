/* Texts that are times are told by their first ten characters, as ISO 8601 has them; times in
 * numbers look like measurements, and are treated alike. Text for people has several words, or is
 * longer than any name. Hashed values begin with MARK and the letter of their nature. */
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

static bool is_time(struct slice text)
{
    static const char form[] = "dddd-dd-dd";

    if (text.len < sizeof form - 1)
        return false;
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == 'd' ? !is_digit(text.data[i]) : text.data[i] != form[i])
            return false;
    return text.len == sizeof form - 1 || text.data[sizeof form - 1] == 'T' ||
           text.data[sizeof form - 1] == ' ';
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
