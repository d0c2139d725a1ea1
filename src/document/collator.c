/* Collators made from terms, the table of them, and values in comparison form.
 *
 * A sort key is bytes that memcmp orders; texts are UTF-8, and so must be what stands for one in
 * values that are kept and sent on. So each byte of the key is one code point: bytes from 0x80 on
 * take two, and the order stays. */
#include "document/collator.h"

#include "base/memory.h"
#include "base/thread.h"
#include "document/bson.h"

#include <unicode/ucol.h>
#include <unicode/uenum.h>
#include <unicode/uloc.h>
#include <unicode/ustring.h>

enum { LOCALE_MAX = 60, STACK_UNITS = 256, STACK_KEY = 1024, REPLACEMENT = 0xFFFD };

/* What a document of MongoDB shows, whichever ICU does the work. */
#define COLLATION_VERSION "57.1"

struct document_collator {
    UCollator *icu; /* not changed any more: its const calls may be made by all threads */
    struct slice document;
    char version[U_MAX_VERSION_STRING_LENGTH];
};

struct choice {
    const char *name;
    UColAttributeValue value;
};

static const struct choice case_first[] = {
    {"off", UCOL_OFF}, {"upper", UCOL_UPPER_FIRST}, {"lower", UCOL_LOWER_FIRST}};
static const struct choice alternate[] = {{"non-ignorable", UCOL_NON_IGNORABLE},
                                          {"shifted", UCOL_SHIFTED}};
static const struct choice variable[] = {
    {"punct", (UColAttributeValue)UCOL_REORDER_CODE_PUNCTUATION},
    {"space", (UColAttributeValue)UCOL_REORDER_CODE_SPACE}};
static const UColAttributeValue strengths[] = {UCOL_PRIMARY, UCOL_SECONDARY, UCOL_TERTIARY,
                                               UCOL_QUATERNARY, UCOL_IDENTICAL};

/* --- Making ----------------------------------------------------------------------------------- */

static bool wrong(struct slice member, struct slice *ret_wrong, struct error *err)
{
    *ret_wrong = member;
    return error_set(err, ERROR_BAD_REQUEST, "collation: \"%.*s\" is not one that is known",
                     SLICE_ARG(member));
}

/* Of keywords, de@collation=phonebook is the only one, and its value one that the locale has. The
 * others say what fields of the document say. */
static bool keywords_are_known(const char *locale)
{
    UErrorCode status = U_ZERO_ERROR;
    char wanted[LOCALE_MAX + 1];
    UEnumeration *known;
    const char *name;
    bool found = false;

    if (!strchr(locale, '@'))
        return true;
    if (strncmp(strchr(locale, '@'), "@collation=", strlen("@collation=")) != 0 ||
        strchr(locale, ';') ||
        uloc_getKeywordValue(locale, "collation", wanted, sizeof wanted, &status) <= 0 ||
        U_FAILURE(status))
        return false;
    known = ucol_getKeywordValuesForLocale("collation", locale, false, &status);
    while (U_SUCCESS(status) && !found && (name = uenum_next(known, NULL, &status)))
        found = strcmp(name, wanted) == 0;
    uenum_close(known);
    return found;
}

/* ICU opens any locale and takes the root of all for those it does not know. */
static bool is_known(const UCollator *icu, const char *locale)
{
    UErrorCode status = U_ZERO_ERROR;
    const char *valid = ucol_getLocaleByType(icu, ULOC_VALID_LOCALE, &status);
    char asked[ULOC_LANG_CAPACITY], got[ULOC_LANG_CAPACITY];

    if (U_FAILURE(status) || !valid)
        return false;
    uloc_getLanguage(locale, asked, sizeof asked, &status);
    uloc_getLanguage(valid, got, sizeof got, &status);
    return U_SUCCESS(status) && asked[0] && strcmp(asked, got) == 0;
}

/* The words of a collation, as ICU has them; NULL: as the locale has it. */
struct chosen {
    const struct choice *case_first, *alternate, *variable;
};

static bool choice_find(struct slice word, const struct choice *choices, size_t count,
                        const struct choice **ret_choice)
{
    *ret_choice = NULL;
    for (size_t i = 0; i < count && !*ret_choice; i++)
        if (slice_equal(word, slice_of_text(choices[i].name)))
            *ret_choice = &choices[i];
    return !word.len || *ret_choice;
}

static bool terms_check(const struct document_collation *terms, struct chosen *ret_chosen,
                        struct slice *ret_wrong, struct error *err)
{
    if (!terms->locale.len || terms->locale.len > LOCALE_MAX ||
        memchr(terms->locale.data, 0, terms->locale.len))
        return wrong(SLICE("locale"), ret_wrong, err);
    if (terms->strength < 1 || terms->strength > (int64_t)ARRAY_LEN(strengths))
        return wrong(SLICE("strength"), ret_wrong, err);
    if (!choice_find(terms->case_first, case_first, ARRAY_LEN(case_first), &ret_chosen->case_first))
        return wrong(SLICE("caseFirst"), ret_wrong, err);
    if (!choice_find(terms->alternate, alternate, ARRAY_LEN(alternate), &ret_chosen->alternate))
        return wrong(SLICE("alternate"), ret_wrong, err);
    if (!choice_find(terms->max_variable, variable, ARRAY_LEN(variable), &ret_chosen->variable))
        return wrong(SLICE("maxVariable"), ret_wrong, err);
    return true;
}

static void attributes_set(UCollator *icu, const struct document_collation *terms,
                           const struct chosen *chosen, UErrorCode *status)
{
    ucol_setStrength(icu, (UCollationStrength)strengths[terms->strength - 1]);
    ucol_setAttribute(icu, UCOL_CASE_LEVEL, terms->case_level ? UCOL_ON : UCOL_OFF, status);
    if (chosen->case_first)
        ucol_setAttribute(icu, UCOL_CASE_FIRST, chosen->case_first->value, status);
    ucol_setAttribute(icu, UCOL_NUMERIC_COLLATION, terms->numeric ? UCOL_ON : UCOL_OFF, status);
    if (chosen->alternate)
        ucol_setAttribute(icu, UCOL_ALTERNATE_HANDLING, chosen->alternate->value, status);
    if (chosen->variable)
        ucol_setMaxVariable(icu, (UColReorderCode)chosen->variable->value, status);
    if (terms->normalization)
        ucol_setAttribute(icu, UCOL_NORMALIZATION_MODE, UCOL_ON, status);
    if (terms->backwards_given)
        ucol_setAttribute(icu, UCOL_FRENCH_COLLATION, terms->backwards ? UCOL_ON : UCOL_OFF,
                          status);
}

static UCollator *icu_open(const struct document_collation *terms, const struct chosen *chosen)
{
    UErrorCode status = U_ZERO_ERROR;
    char locale[LOCALE_MAX + 1];
    UCollator *icu;

    memcpy(locale, terms->locale.data, terms->locale.len);
    locale[terms->locale.len] = 0;
    icu = ucol_open(locale, &status);
    if (U_SUCCESS(status) && is_known(icu, locale) && keywords_are_known(locale))
        attributes_set(icu, terms, chosen, &status);
    else
        status = U_ILLEGAL_ARGUMENT_ERROR;
    if (U_SUCCESS(status))
        return icu;
    ucol_close(icu);
    return NULL;
}

static bool is_on(const UCollator *icu, UColAttribute attribute)
{
    UErrorCode status = U_ZERO_ERROR;

    return ucol_getAttribute(icu, attribute, &status) == UCOL_ON;
}

static struct slice choice_of(const UCollator *icu, UColAttribute attribute,
                              const struct choice *choices, size_t count)
{
    UErrorCode status = U_ZERO_ERROR;
    UColAttributeValue value = ucol_getAttribute(icu, attribute, &status);

    for (size_t i = 0; i < count; i++)
        if (choices[i].value == value)
            return slice_of_text(choices[i].name);
    return slice_of_text(choices[0].name);
}

/* The document with everything that the locale has decided. */
static void document_make(const struct document_collation *terms, const UCollator *icu,
                          struct buf *out)
{
    struct slice space = slice_of_text(variable[1].name), punct = slice_of_text(variable[0].name);
    size_t begin = document_begin(out);

    document_append_string(out, SLICE("locale"), terms->locale);
    document_append_bool(out, SLICE("caseLevel"), is_on(icu, UCOL_CASE_LEVEL));
    document_append_string(out, SLICE("caseFirst"),
                           choice_of(icu, UCOL_CASE_FIRST, case_first, ARRAY_LEN(case_first)));
    document_append_int32(out, SLICE("strength"), (int32_t)terms->strength);
    document_append_bool(out, SLICE("numericOrdering"), is_on(icu, UCOL_NUMERIC_COLLATION));
    document_append_string(
        out, SLICE("alternate"),
        choice_of(icu, UCOL_ALTERNATE_HANDLING, alternate, ARRAY_LEN(alternate)));
    document_append_string(out, SLICE("maxVariable"),
                           ucol_getMaxVariable(icu) == UCOL_REORDER_CODE_SPACE ? space : punct);
    document_append_bool(out, SLICE("normalization"), is_on(icu, UCOL_NORMALIZATION_MODE));
    document_append_bool(out, SLICE("backwards"), is_on(icu, UCOL_FRENCH_COLLATION));
    document_append_string(out, SLICE("version"), SLICE(COLLATION_VERSION));
    document_end(out, begin);
}

/* --- The table -------------------------------------------------------------------------------- */

static struct {
    pthread_once_t once;
    struct mutex lock;
    struct document_collator list[DOCUMENT_COLLATORS_MAX];
    size_t count;
} table = {.once = PTHREAD_ONCE_INIT};

static void table_init(void)
{
    mutex_init(&table.lock);
}

static const struct document_collator *table_find(struct slice document)
{
    for (size_t i = 0; i < table.count; i++)
        if (slice_equal(table.list[i].document, document))
            return &table.list[i];
    return NULL;
}

static const struct document_collator *table_add(UCollator *icu, struct slice document)
{
    struct document_collator *made = &table.list[table.count++];
    uint8_t *copy = memory_alloc(document.len);
    UVersionInfo version;

    memcpy(copy, document.data, document.len);
    *made = (struct document_collator){icu, slice_of(copy, document.len), ""};
    ucol_getVersion(icu, version);
    u_versionToString(version, made->version);
    return made;
}

/* The one that is there, or this one; icu is taken over. */
static const struct document_collator *table_keep(UCollator *icu, struct slice document)
{
    const struct document_collator *found;
    bool added = false;

    (void)pthread_once(&table.once, table_init);
    mutex_lock(&table.lock);
    found = table_find(document);
    if (!found && table.count < DOCUMENT_COLLATORS_MAX) {
        found = table_add(icu, document);
        added = true;
    }
    mutex_unlock(&table.lock);
    if (!added)
        ucol_close(icu);
    return found;
}

bool document_collator_find(const struct document_collation *terms,
                            const struct document_collator **ret_collator, struct slice *ret_wrong,
                            struct error *err)
{
    const struct document_collator *found;
    CLEANUP(buf_done) struct buf document;
    struct chosen chosen = {0};
    UCollator *icu;

    buf_init(&document, 4096);
    *ret_wrong = SLICE_NONE;
    if (!terms_check(terms, &chosen, ret_wrong, err))
        return false;
    icu = icu_open(terms, &chosen);
    if (!icu)
        return wrong(SLICE("locale"), ret_wrong, err);
    document_make(terms, icu, &document);
    found = table_keep(icu, buf_slice(&document));
    if (!found)
        return error_set(err, ERROR_NOT_SUPPORTED,
                         "collation: more than %d different collations are not offered",
                         DOCUMENT_COLLATORS_MAX);
    *ret_collator = found;
    return true;
}

/* --- Reading ---------------------------------------------------------------------------------- */

static bool member_read(struct slice name, const struct document_value *value,
                        struct document_collation *terms)
{
    const struct {
        struct slice name;
        struct slice *word;
        bool *flag;
    } members[] = {{SLICE("locale"), &terms->locale, NULL},
                   {SLICE("caseLevel"), NULL, &terms->case_level},
                   {SLICE("caseFirst"), &terms->case_first, NULL},
                   {SLICE("numericOrdering"), NULL, &terms->numeric},
                   {SLICE("alternate"), &terms->alternate, NULL},
                   {SLICE("maxVariable"), &terms->max_variable, NULL},
                   {SLICE("normalization"), NULL, &terms->normalization},
                   {SLICE("backwards"), NULL, &terms->backwards}};

    if (slice_equal(name, SLICE("strength")))
        return document_to_int64(value, &terms->strength);
    terms->backwards_given |= slice_equal(name, SLICE("backwards"));
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        if (!slice_equal(name, members[i].name))
            continue;
        if (value->type != (members[i].word ? DOCUMENT_STRING : DOCUMENT_BOOL))
            return false;
        if (members[i].word)
            *members[i].word = value->text;
        else
            *members[i].flag = value->boolean;
        return true;
    }
    return slice_equal(name, SLICE("version"));
}

bool document_collator_read(struct slice document, const struct document_collator **ret_collator,
                            struct error *err)
{
    struct document_collation terms = {.strength = 3};
    struct document_iter iter;
    struct slice which;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter))
        if (!member_read(iter.key, &iter.value, &terms))
            return error_set(err, ERROR_BAD_REQUEST, "collation: \"%.*s\" is not understood",
                             (int)MIN(iter.key.len, (size_t)60), (const char *)iter.key.data);
    return document_collator_find(&terms, ret_collator, &which, err);
}

struct slice document_collator_document(const struct document_collator *collator)
{
    return collator->document;
}

struct slice document_collator_version(const struct document_collator *collator)
{
    return slice_of_text(collator->version);
}

/* --- Texts ------------------------------------------------------------------------------------ */

static size_t key_encode(const uint8_t *key, size_t len, uint8_t *room, size_t size)
{
    size_t wide = 0, at = 0;

    for (size_t i = 0; i < len; i++)
        wide += key[i] >> 7;
    if (len + wide > size)
        return len + wide;
    for (size_t i = 0; i < len; i++) {
        if (key[i] < 0x80) {
            room[at++] = key[i];
        } else {
            room[at++] = (uint8_t)(0xC0 | key[i] >> 6);
            room[at++] = (uint8_t)(0x80 | (key[i] & 0x3F));
        }
    }
    return at;
}

static size_t units_key(const struct document_collator *collator, const UChar *units, int32_t count,
                        uint8_t *room, size_t size)
{
    CLEANUP(memory_free) uint8_t *heap = NULL;
    uint8_t stack[STACK_KEY], *key = stack;
    int32_t len = ucol_getSortKey(collator->icu, units, count, stack, sizeof stack);

    if (len > (int32_t)sizeof stack) {
        key = heap = memory_alloc((size_t)len);
        len = ucol_getSortKey(collator->icu, units, count, key, len);
    }
    if (len <= 0) /* ICU's own lack of memory */
        memory_exhausted((size_t)count);
    return key_encode(key, (size_t)len - 1, room, size); /* the key ends in a zero */
}

size_t document_collator_key(const struct document_collator *collator, struct slice text,
                             uint8_t *room, size_t size)
{
    CLEANUP(memory_free) UChar *heap = NULL;
    UErrorCode status = U_ZERO_ERROR;
    UChar stack[STACK_UNITS], *units = stack;
    int32_t count = 0;

    assert(text.len <= INT32_MAX / 4);
    if (text.len > STACK_UNITS)
        units = heap = memory_alloc(text.len * sizeof *units);
    /* there are never more units than bytes */
    u_strFromUTF8WithSub(units, (int32_t)MAX(text.len, (size_t)STACK_UNITS), &count,
                         text.len ? (const char *)text.data : "", (int32_t)text.len, REPLACEMENT,
                         NULL, &status);
    assert(U_SUCCESS(status));
    return units_key(collator, units, count, room, size);
}

/* --- Values ----------------------------------------------------------------------------------- */

static bool is_text(const struct document_value *value)
{
    return value->type == DOCUMENT_STRING || value->type == DOCUMENT_SYMBOL;
}

bool document_collate_matters(const struct document_value *value)
{
    struct document_iter iter;

    if (is_text(value))
        return true;
    if (value->type != DOCUMENT_OBJECT && value->type != DOCUMENT_ARRAY)
        return false;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter))
        if (document_collate_matters(&iter.value))
            return true;
    return false;
}

static struct slice text_collate(const struct document_collator *collator, struct slice text,
                                 struct arena *arena)
{
    uint8_t stack[STACK_KEY], *made;
    size_t len = document_collator_key(collator, text, stack, sizeof stack);

    if (len <= sizeof stack)
        return arena_copy(arena, slice_of(stack, len));
    made = arena_alloc(arena, len);
    (void)document_collator_key(collator, text, made, len);
    return slice_of(made, len);
}

static void members_collate(const struct document_collator *collator, struct slice document,
                            struct arena *arena, struct buf *out)
{
    struct document_iter iter;

    document_iter_init(&iter, document);
    while (document_iter_next(&iter)) {
        if (iter.value.type == DOCUMENT_OBJECT || iter.value.type == DOCUMENT_ARRAY) {
            size_t begin = iter.value.type == DOCUMENT_OBJECT
                               ? document_append_object_begin(out, iter.key)
                               : document_append_array_begin(out, iter.key);

            members_collate(collator, iter.value.document, arena, out);
            document_end(out, begin);
        } else {
            struct document_value form = document_collate(collator, &iter.value, arena);

            document_append(out, iter.key, &form);
        }
    }
}

struct document_value document_collate(const struct document_collator *collator,
                                       const struct document_value *value, struct arena *arena)
{
    struct document_value form = *value;
    CLEANUP(buf_done) struct buf out;
    size_t begin;

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!collator || !document_collate_matters(value))
        return form;
    if (is_text(value))
        return document_string(text_collate(collator, value->text, arena));
    begin = document_begin(&out);
    members_collate(collator, value->document, arena, &out);
    document_end(&out, begin);
    assert(!out.overflowed);
    form.document = arena_copy(arena, buf_slice(&out));
    return form;
}
