/* One pass over the bytes: a word is copied to a buffer of its own as it is found, in lower case,
 * so that a text of 2 MB without a space is one word of which the first SEARCH_TERM_MAX bytes
 * count. ASCII is looked at by itself; all else by the tables of utf8proc. */
#include "search/analyser.h"

#include "base/memory.h"

#include <libstemmer.h>
#include <string.h>
#include <utf8proc.h>

struct language {
    const char *code;  /* the first part of its name */
    const char *name;  /* as Snowball calls it */
    const char *shown; /* as policies do */
    const char *stops; /* words that say nothing, a blank before and behind each */
};

static const struct language languages[] = {
    {"de", "german", "de-DE",
     " aber als am an auch auf aus bei bin bis bist da das dass dem den der des die dir doch du "
     "ein "
     "eine einem einen einer eines er es für hat hatte haben ich ihr ihre im in ist ja kein keine "
     "man mich mir mit nach nicht noch nur oder sein seine sich sie sind so um und uns unser vom "
     "von vor war waren was weil wenn wer wie wir wird zu zum zur über "},
    {"en", "english", "en-US",
     " a an and are as at be but by for from had has have he her his i if in into is it its no not "
     "of on or our she so such than that the their them then there these they this to was we were "
     "which will with you your "},
    {"es", "spanish", "es-ES",
     " a al ante como con cual cuando de del desde donde el ella ellas ellos en entre era es esa "
     "ese eso esta este esto está fue ha hasta la las le les lo los más me mi muy ni no nos o para "
     "pero por porque que qué quien se ser si sin sobre son su sus también te tu un una uno unos y "
     "ya yo "},
    {"fr", "french", "fr-FR",
     " à au aux avec ce ces cette dans de des du elle elles en est et eu il ils je la le les leur "
     "leurs lui ma mais me même mes moi mon ne nos notre nous on ou où par pas pour qu que qui sa "
     "sans se ses si son sont sur ta te tes toi ton tu un une vos votre vous c d j l m n s t y "},
    {"it", "italian", "it-IT",
     " a ad ai al alla alle anche che chi ci come con da dal dalla de degli dei del della delle di "
     "e ed era gli ha hanno ho i il in io la le lei li lo lui ma mi nei nel nella noi non o per "
     "però più quale quando questa questo se si sia sono su sua sue sul sulla suo tra tu un una "
     "uno vi voi è "},
    {"pt", "portuguese", "pt-BR",
     " a ao aos as até com como da das de dela dele do dos e ela elas ele eles em entre era essa "
     "esse esta este eu foi há isso isto já lhe mais mas me meu minha muito na nas nem no nos não "
     "nós o os ou para pela pelo por qual quando que quem se sem ser seu sua são só também te tem "
     "um uma você à é "},
};

static const struct language none = {"none", NULL, NULL, ""};

struct search_analyser {
    const struct language *language;
    struct sb_stemmer *stemmer; /* NULL: words are what they are */
    unsigned flags;
    char word[SEARCH_TERM_MAX + 2];  /* a blank before and behind it */
    char lower[SEARCH_TERM_MAX + 2]; /* the same in lower case, where words keep theirs */
    size_t len;                      /* of the word alone */
};

static const struct language *language_find(struct slice name)
{
    for (size_t i = 0; i < ARRAY_LEN(languages); i++) {
        struct slice code = slice_of_text(languages[i].code);

        if (name.len >= code.len && slice_equal_nocase(slice_first(name, code.len), code) &&
            (name.len == code.len || name.data[code.len] == '-'))
            return &languages[i];
    }
    return NULL;
}

bool search_language_is_known(struct slice language)
{
    return language_find(language) != NULL;
}

struct slice search_languages(void)
{
    return SLICE("de-DE, en-US, es-ES, fr-FR, it-IT, pt-BR");
}

struct slice search_language_code(struct slice name)
{
    if (slice_equal_nocase(name, slice_of_text(none.code)))
        return slice_of_text(none.code);
    for (size_t i = 0; i < ARRAY_LEN(languages); i++)
        if (slice_equal_nocase(name, slice_of_text(languages[i].code)) ||
            slice_equal_nocase(name, slice_of_text(languages[i].name)))
            return slice_of_text(languages[i].code);
    return SLICE_NONE;
}

struct search_analyser *search_analyser_open(struct slice name, unsigned flags)
{
    bool is_none = slice_equal(name, slice_of_text(none.code));
    const struct language *language = is_none ? &none : language_find(name);
    struct search_analyser *analyser;

    if (!language)
        return NULL;
    analyser = MEMORY_NEW(struct search_analyser);
    analyser->language = language;
    analyser->flags = flags;
    if (is_none)
        return analyser;
    analyser->stemmer = sb_stemmer_new(language->name, NULL);
    if (!analyser->stemmer)
        memory_exhausted(0);
    return analyser;
}

struct search_analyser *search_analyser_new(struct slice name)
{
    return language_find(name) ? search_analyser_open(name, 0) : NULL;
}

void search_analyser_free(struct search_analyser *analyser)
{
    if (!analyser)
        return;
    if (analyser->stemmer)
        sb_stemmer_delete(analyser->stemmer);
    memory_free(analyser);
}

/* --- Words ----------------------------------------------------------------------------------- */

static bool is_of_word(int32_t point)
{
    switch (utf8proc_category(point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return true;
    default:
        return false;
    }
}

/* The character at the beginning, in lower case unless it is to stay; bytes that are none end a
 * word. */
static int32_t character(struct slice text, bool stays, size_t *ret_len)
{
    int32_t point;
    ssize_t len;

    if (text.data[0] < 0x80) {
        *ret_len = 1;
        if (text.data[0] >= 'A' && text.data[0] <= 'Z')
            return stays ? text.data[0] : text.data[0] + ('a' - 'A');
        return (text.data[0] >= 'a' && text.data[0] <= 'z') ||
                       (text.data[0] >= '0' && text.data[0] <= '9')
                   ? text.data[0]
                   : -1;
    }
    len = utf8proc_iterate(text.data, (ssize_t)text.len, &point);
    *ret_len = len > 0 ? (size_t)len : 1;
    if (len <= 0 || !is_of_word(point))
        return -1;
    return stays ? point : utf8proc_tolower(point);
}

/* The character without its accents: what it is made of but for marks. */
static size_t bare(int32_t point, uint8_t bytes[4])
{
    utf8proc_int32_t parts[8];
    int last = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(
        point, parts, ARRAY_LEN(parts), UTF8PROC_DECOMPOSE | UTF8PROC_STRIPMARK, &last);

    if (count <= 0)
        return 0; /* a mark by itself */
    return (size_t)utf8proc_encode_char(parts[0], bytes);
}

/* The next word, in the analyser's buffer. */
static bool word_read(struct search_text *text)
{
    struct search_analyser *analyser = text->analyser;
    bool begun = false;

    analyser->len = 0;
    while (text->rest.len) {
        uint8_t bytes[4];
        size_t len, written;
        int32_t point = character(text->rest, analyser->flags & SEARCH_KEEP_CASE, &len);

        if (point < 0 && begun)
            return true;
        text->rest = slice_skip(text->rest, len);
        if (point < 0)
            continue;
        begun = true;
        written = analyser->flags & SEARCH_DROP_MARKS && point >= 0x80
                      ? bare(point, bytes)
                      : (size_t)utf8proc_encode_char(point, bytes);
        if (analyser->len + written <= SEARCH_TERM_MAX) {
            memcpy(analyser->word + 1 + analyser->len, bytes, written);
            analyser->len += written;
        }
    }
    return begun;
}

/* Words that say nothing do so in capitals too; those of ASCII are enough for that. */
static bool is_stop(struct search_analyser *analyser)
{
    const char *word = analyser->word;

    analyser->word[0] = analyser->word[1 + analyser->len] = ' ';
    if (analyser->flags & SEARCH_KEEP_CASE) {
        for (size_t i = 0; i < analyser->len + 2; i++)
            analyser->lower[i] = (char)(word[i] >= 'A' && word[i] <= 'Z' ? word[i] + 32 : word[i]);
        word = analyser->lower;
    }
    return memmem(analyser->language->stops, strlen(analyser->language->stops), word,
                  analyser->len + 2) != NULL;
}

bool search_text_next(struct search_text *text, struct slice *ret_term)
{
    struct search_analyser *analyser = text->analyser;
    const sb_symbol *stem;

    do {
        if (!word_read(text))
            return false;
    } while (is_stop(analyser));
    if (!analyser->stemmer) {
        *ret_term = slice_of(analyser->word + 1, analyser->len);
        return true;
    }
    stem = sb_stemmer_stem(analyser->stemmer, (const sb_symbol *)analyser->word + 1,
                           (int)analyser->len);
    if (!stem)
        memory_exhausted(analyser->len);
    *ret_term = slice_of(stem, (size_t)sb_stemmer_length(analyser->stemmer));
    return true;
}
