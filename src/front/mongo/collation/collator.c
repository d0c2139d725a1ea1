/* Reading collation documents, in MongoDB's words where one is wrong. */
#include "document/bson.h"
#include "front/mongo/collation/collation.h"
#include "front/mongo/text.h"

enum { INCOMPATIBLE_VERSION = 161, STRENGTH_MAX = 5 };

/* What a document of MongoDB shows, whichever ICU does the work. */
#define COLLATION_VERSION "57.1"

struct terms {
    struct document_collation asked;
    struct slice whole; /* as it came, for messages */
    bool others;        /* a field besides the locale */
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

static bool word_read(struct slice name, const struct document_value *value, struct slice *ret_word,
                      struct error *err)
{
    if (value->type != DOCUMENT_STRING)
        return type_refuse(name, value, "string", err);
    if (!value->text.len) /* no word is that of the locale */
        return value_refuse(name, value->text, err);
    *ret_word = value->text;
    return true;
}

static bool strength_read(struct slice name, const struct document_value *value,
                          int64_t *ret_strength, struct error *err)
{
    char text[32];

    if (!document_is_number(value))
        return type_refuse(name, value, "int", err);
    if (!document_to_int64(value, ret_strength))
        return value_refuse(name, SLICE("a fraction"), err);
    if (*ret_strength >= 1 && *ret_strength <= STRENGTH_MAX)
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
        terms->asked.locale = value->text;
        return true;
    }
    terms->others = true;
    if (slice_equal(name, SLICE("strength")))
        return strength_read(name, value, &terms->asked.strength, err);
    if (slice_equal(name, SLICE("caseLevel")))
        return flag_read(name, value, &terms->asked.case_level, err);
    if (slice_equal(name, SLICE("caseFirst")))
        return word_read(name, value, &terms->asked.case_first, err);
    if (slice_equal(name, SLICE("numericOrdering")))
        return flag_read(name, value, &terms->asked.numeric, err);
    if (slice_equal(name, SLICE("alternate")))
        return word_read(name, value, &terms->asked.alternate, err);
    if (slice_equal(name, SLICE("maxVariable")))
        return word_read(name, value, &terms->asked.max_variable, err);
    if (slice_equal(name, SLICE("normalization")))
        return flag_read(name, value, &terms->asked.normalization, err);
    if (slice_equal(name, SLICE("backwards"))) {
        terms->asked.backwards_given = true;
        return flag_read(name, value, &terms->asked.backwards, err);
    }
    if (slice_equal(name, SLICE("version")))
        return version_read(name, value, err);
    return mongo_error_set(err, MONGO_IDL_UNKNOWN_FIELD,
                           "BSON field 'collation.%.*s' is an unknown field.",
                           (int)MIN(name.len, (size_t)80), (const char *)name.data);
}

static bool together_check(const struct document_collation *asked, struct error *err)
{
    if (asked->backwards && asked->strength == 1)
        return mongo_error_set(err, MONGO_BAD_VALUE, "'backwards' is invalid with 'strength' of 1");
    if (asked->case_first.len && !slice_equal(asked->case_first, SLICE("off")) &&
        !asked->case_level && asked->strength < 3)
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
    if (!terms->asked.locale.data)
        return mongo_error_set(err, MONGO_IDL_FAILED_TO_PARSE,
                               "BSON field 'collation.locale' is missing but a required field");
    return together_check(&terms->asked, err);
}

/* --- Finding ---------------------------------------------------------------------------------- */

/* What is wrong with a member, in MongoDB's words. */
static bool member_refuse(const struct terms *terms, struct slice member, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value shown = document_object(terms->whole);
    struct document_value given = document_undefined();

    if (slice_equal(member, SLICE("locale")))
        return mongo_error_set(err, MONGO_BAD_VALUE, "Field 'locale' is invalid in: %.*s",
                               SLICE_ARG(mongo_text_value(&shown, arena)));
    (void)document_find(terms->whole, member, &given);
    return value_refuse(member, given.type == DOCUMENT_STRING ? given.text : SLICE_NONE, err);
}

bool mongo_collator_find(struct slice collation, const struct document_collator **ret_collator,
                         struct error *err)
{
    struct terms terms = {.whole = collation, .asked.strength = 3};
    struct slice wrong;

    *ret_collator = NULL;
    if (!collation.len || !document_count(collation))
        return true;
    if (!terms_read(collation, &terms, err))
        return false;
    if (slice_equal(terms.asked.locale, SLICE("simple")))
        return !terms.others ||
               mongo_error_set(err, MONGO_BAD_VALUE,
                               "If 'locale' is 'simple', no other fields should be set in the "
                               "collation");
    if (document_collator_find(&terms.asked, ret_collator, &wrong, err))
        return true;
    return wrong.data ? member_refuse(&terms, wrong, err) : false;
}
