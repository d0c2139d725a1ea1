/* Reading collation documents, and the table of collators. */
#include "base/thread.h"
#include "document/bson.h"
#include "front/mongo/collation/collation_private.h"
#include "front/mongo/text.h"

#include <stdlib.h>
#include <unicode/uenum.h>
#include <unicode/uloc.h>

enum { LOCALE_MAX = 60, INCOMPATIBLE_VERSION = 161 };

/* What a document of MongoDB shows, whichever ICU does the work. */
#define COLLATION_VERSION "57.1"

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

struct terms {
    struct slice whole; /* as it came, for messages */
    struct slice locale;
    int64_t strength;
    const struct choice *case_first, *alternate, *variable; /* NULL: not given */
    bool case_level, numeric, normalization;
    bool backwards, backwards_given; /* some locales have their own mind */
    bool others;                     /* a field besides the locale */
};

/* --- Reading ---------------------------------------------------------------------------------- */

static bool type_refuse(struct slice name, const struct document_value *value, const char *expected,
                        struct error *err)
{
    return mongo_error_set(err, MONGO_TYPE_MISMATCH,
                           "BSON field 'collation.%.*s' is the wrong type '%s', expected type '%s'",
                           SLICE_ARG(name), mongo_type_name(value->type), expected);
}

static bool value_refuse(struct slice name, struct slice given, struct error *err)
{
    return mongo_error_set(
        err, MONGO_BAD_VALUE,
        "Enumeration value '%.*s' for field 'collation.%.*s' is not a valid value.",
        (int)MIN(given.len, (size_t)80), (const char *)given.data, SLICE_ARG(name));
}

static bool flag_read(struct slice name, const struct document_value *value, bool *ret_flag,
                      struct error *err)
{
    if (value->type != DOCUMENT_BOOL)
        return type_refuse(name, value, "bool", err);
    *ret_flag = value->boolean;
    return true;
}

static bool choice_read(struct slice name, const struct document_value *value,
                        const struct choice *choices, size_t count,
                        const struct choice **ret_choice, struct error *err)
{
    if (value->type != DOCUMENT_STRING)
        return type_refuse(name, value, "string", err);
    for (size_t i = 0; i < count; i++)
        if (slice_equal(value->text, slice_of_text(choices[i].name))) {
            *ret_choice = &choices[i];
            return true;
        }
    return value_refuse(name, value->text, err);
}

static bool strength_read(struct slice name, const struct document_value *value,
                          int64_t *ret_strength, struct error *err)
{
    char text[32];

    if (!document_is_number(value))
        return type_refuse(name, value, "int", err);
    if (!document_to_int64(value, ret_strength))
        return value_refuse(name, SLICE("a fraction"), err);
    if (*ret_strength >= 1 && *ret_strength <= (int64_t)ARRAY_LEN(strengths))
        return true;
    snprintf(text, sizeof text, "%lld", (long long)*ret_strength);
    return value_refuse(name, slice_of_text(text), err);
}

static bool version_read(struct slice name, const struct document_value *value, struct error *err)
{
    if (value->type != DOCUMENT_STRING)
        return type_refuse(name, value, "string", err);
    return slice_equal(value->text, SLICE(COLLATION_VERSION)) ||
           mongo_error_set(err, INCOMPATIBLE_VERSION,
                           "Requested collation version %.*s but the only available collator "
                           "version was " COLLATION_VERSION ".",
                           (int)MIN(value->text.len, (size_t)80), (const char *)value->text.data);
}

static bool field_read(struct terms *terms, struct slice name, const struct document_value *value,
                       struct error *err)
{
    if (slice_equal(name, SLICE("locale"))) {
        if (value->type != DOCUMENT_STRING)
            return type_refuse(name, value, "string", err);
        terms->locale = value->text;
        return true;
    }
    terms->others = true;
    if (slice_equal(name, SLICE("strength")))
        return strength_read(name, value, &terms->strength, err);
    if (slice_equal(name, SLICE("caseLevel")))
        return flag_read(name, value, &terms->case_level, err);
    if (slice_equal(name, SLICE("caseFirst")))
        return choice_read(name, value, case_first, ARRAY_LEN(case_first), &terms->case_first, err);
    if (slice_equal(name, SLICE("numericOrdering")))
        return flag_read(name, value, &terms->numeric, err);
    if (slice_equal(name, SLICE("alternate")))
        return choice_read(name, value, alternate, ARRAY_LEN(alternate), &terms->alternate, err);
    if (slice_equal(name, SLICE("maxVariable")))
        return choice_read(name, value, variable, ARRAY_LEN(variable), &terms->variable, err);
    if (slice_equal(name, SLICE("normalization")))
        return flag_read(name, value, &terms->normalization, err);
    if (slice_equal(name, SLICE("backwards"))) {
        terms->backwards_given = true;
        return flag_read(name, value, &terms->backwards, err);
    }
    if (slice_equal(name, SLICE("version")))
        return version_read(name, value, err);
    return mongo_error_set(err, MONGO_IDL_UNKNOWN_FIELD,
                           "BSON field 'collation.%.*s' is an unknown field.",
                           (int)MIN(name.len, (size_t)80), (const char *)name.data);
}

static bool together_check(const struct terms *terms, struct error *err)
{
    if (terms->backwards && terms->strength == 1)
        return mongo_error_set(err, MONGO_BAD_VALUE, "'backwards' is invalid with 'strength' of 1");
    if (terms->case_first && terms->case_first->value != UCOL_OFF && !terms->case_level &&
        terms->strength < 3)
        return mongo_error_set(err, MONGO_BAD_VALUE,
                               "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is "
                               "greater than 2");
    return true;
}

static bool terms_read(struct slice collation, struct terms *terms, struct error *err)
{
    struct document_iter iter;

    document_iter_init(&iter, collation);
    while (document_iter_next(&iter))
        if (!field_read(terms, iter.key, &iter.value, err))
            return false;
    if (!terms->locale.data)
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field 'collation.locale' is missing but a required field");
    return together_check(terms, err);
}

/* --- Making ----------------------------------------------------------------------------------- */

static bool locale_refuse(const struct terms *terms, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value shown = document_object(terms->whole);

    return mongo_error_set(err, MONGO_BAD_VALUE, "Field 'locale' is invalid in: %.*s",
                           SLICE_ARG(mongo_text_value(&shown, arena)));
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

static void attributes_set(UCollator *icu, const struct terms *terms, UErrorCode *status)
{
    ucol_setStrength(icu, (UCollationStrength)strengths[terms->strength - 1]);
    ucol_setAttribute(icu, UCOL_CASE_LEVEL, terms->case_level ? UCOL_ON : UCOL_OFF, status);
    if (terms->case_first)
        ucol_setAttribute(icu, UCOL_CASE_FIRST, terms->case_first->value, status);
    ucol_setAttribute(icu, UCOL_NUMERIC_COLLATION, terms->numeric ? UCOL_ON : UCOL_OFF, status);
    if (terms->alternate)
        ucol_setAttribute(icu, UCOL_ALTERNATE_HANDLING, terms->alternate->value, status);
    if (terms->variable)
        ucol_setMaxVariable(icu, (UColReorderCode)terms->variable->value, status);
    if (terms->normalization)
        ucol_setAttribute(icu, UCOL_NORMALIZATION_MODE, UCOL_ON, status);
    if (terms->backwards_given)
        ucol_setAttribute(icu, UCOL_FRENCH_COLLATION, terms->backwards ? UCOL_ON : UCOL_OFF,
                          status);
}

static UCollator *icu_open(const struct terms *terms, struct error *err)
{
    UErrorCode status = U_ZERO_ERROR;
    char locale[LOCALE_MAX + 1];
    UCollator *icu;

    if (!terms->locale.len || terms->locale.len > LOCALE_MAX ||
        memchr(terms->locale.data, 0, terms->locale.len)) {
        locale_refuse(terms, err);
        return NULL;
    }
    memcpy(locale, terms->locale.data, terms->locale.len);
    locale[terms->locale.len] = 0;
    icu = ucol_open(locale, &status);
    if (U_FAILURE(status) || !is_known(icu, locale) || !keywords_are_known(locale)) {
        ucol_close(icu);
        locale_refuse(terms, err);
        return NULL;
    }
    attributes_set(icu, terms, &status);
    if (U_FAILURE(status)) {
        ucol_close(icu);
        mongo_error_set(err, MONGO_INTERNAL_ERROR, "collation: %s", u_errorName(status));
        return NULL;
    }
    return icu;
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
static void document_make(const struct terms *terms, const UCollator *icu, struct buf *out)
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
    struct mongo_collator list[MONGO_COLLATORS_MAX];
    size_t count;
} table = {.once = PTHREAD_ONCE_INIT};

static void table_init(void)
{
    mutex_init(&table.lock);
}

static const struct mongo_collator *table_find(struct slice document)
{
    for (size_t i = 0; i < table.count; i++)
        if (slice_equal(table.list[i].document, document))
            return &table.list[i];
    return NULL;
}

/* The one that is there, or this one; icu is taken over. */
static const struct mongo_collator *table_keep(UCollator *icu, struct slice document,
                                               struct error *err)
{
    const struct mongo_collator *found;
    struct mongo_collator *made = NULL;

    (void)pthread_once(&table.once, table_init);
    mutex_lock(&table.lock);
    found = table_find(document);
    if (!found && table.count < MONGO_COLLATORS_MAX) {
        uint8_t *copy = malloc(document.len);

        if (copy) {
            memcpy(copy, document.data, document.len);
            made = &table.list[table.count++];
            *made = (struct mongo_collator){icu, slice_of(copy, document.len)};
        }
    }
    mutex_unlock(&table.lock);
    if (!made)
        ucol_close(icu);
    if (!made && !found)
        mongo_error_set(err, MONGO_NOT_IMPLEMENTED,
                        "collation: more than %d different collations are not offered",
                        MONGO_COLLATORS_MAX);
    return made ? made : found;
}

bool mongo_collator_find(struct slice collation, const struct mongo_collator **ret_collator,
                         struct error *err)
{
    struct terms terms = {.whole = collation, .strength = 3};
    CLEANUP(buf_done) struct buf document;
    UCollator *icu;

    buf_init(&document, 4096);
    *ret_collator = NULL;
    if (!collation.len || !document_count(collation))
        return true;
    if (!terms_read(collation, &terms, err))
        return false;
    if (slice_equal(terms.locale, SLICE("simple")))
        return !terms.others ||
               mongo_error_set(err, MONGO_BAD_VALUE,
                               "If 'locale' is 'simple', no other fields should be set in the "
                               "collation");
    icu = icu_open(&terms, err);
    if (!icu)
        return false;
    document_make(&terms, icu, &document);
    *ret_collator = table_keep(icu, buf_slice(&document), err);
    return *ret_collator != NULL;
}

struct slice mongo_collator_document(const struct mongo_collator *collator)
{
    return collator->document;
}
