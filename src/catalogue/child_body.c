/* What the body of a child must have, as the words of the service say it. What else is in it stays
 * as it is: clients keep things there that are theirs alone. */
#include "catalogue/catalogue_private.h"
#include "document/bson.h"

static const char *const kind_names[CHILD_KINDS] = {
    [CHILD_USER] = "user",
    [CHILD_ENCRYPTION_KEY] = "client encryption key",
    [CHILD_PERMISSION] = "permission",
    [CHILD_PROCEDURE] = "stored procedure",
    [CHILD_TRIGGER] = "trigger",
    [CHILD_FUNCTION] = "user-defined function",
};

const char *child_kind_name(enum child_kind kind)
{
    return kind_names[kind];
}

enum need {
    NEED_TEXT,      /* also an empty one */
    NEED_SOME_TEXT, /* not empty */
    NEED_ONE_OF,    /* a text of the given words, in any case */
    NEED_OBJECT,
    NEED_ARRAY_IF_ANY,
};

struct rule {
    const char *property;
    enum need need;
    const char *words; /* of NEED_ONE_OF: separated and ended by '|' */
};

enum { RULES_MAX = 3 };

static const struct rule rules[CHILD_KINDS][RULES_MAX] = {
    [CHILD_PERMISSION] = {{"permissionMode", NEED_ONE_OF, "Read|All|"},
                          {"resource", NEED_SOME_TEXT, NULL},
                          {"resourcePartitionKey", NEED_ARRAY_IF_ANY, NULL}},
    [CHILD_ENCRYPTION_KEY] = {{"encryptionAlgorithm", NEED_SOME_TEXT, NULL},
                              {"wrappedDataEncryptionKey", NEED_SOME_TEXT, NULL},
                              {"keyWrapMetadata", NEED_OBJECT, NULL}},
    [CHILD_PROCEDURE] = {{"body", NEED_TEXT, NULL}},
    [CHILD_TRIGGER] = {{"body", NEED_TEXT, NULL},
                       {"triggerType", NEED_ONE_OF, "Pre|Post|"},
                       {"triggerOperation", NEED_ONE_OF,
                        "All|Create|Update|Delete|Replace|Upsert|"}},
    [CHILD_FUNCTION] = {{"body", NEED_TEXT, NULL}},
};

static bool is_one_of(struct slice text, const char *words)
{
    struct slice rest = slice_of_text(words), word;

    while (slice_split(rest, '|', &word, &rest))
        if (slice_equal_nocase(text, word))
            return true;
    return false;
}

/* NULL where the value is what the rule wants, else what it wants. */
static const char *rule_broken(const struct rule *rule, const struct document_value *value)
{
    bool is_text = value->type == DOCUMENT_STRING;

    switch (rule->need) {
    case NEED_TEXT:
        return is_text ? NULL : "a text";
    case NEED_SOME_TEXT:
        return is_text && value->text.len ? NULL : "a text that is not empty";
    case NEED_ONE_OF:
        return is_text && is_one_of(value->text, rule->words) ? NULL : rule->words;
    case NEED_OBJECT:
        return value->type == DOCUMENT_OBJECT ? NULL : "an object";
    default:
        return value->type == DOCUMENT_ARRAY || value->type == DOCUMENT_UNDEFINED ? NULL
                                                                                  : "an array";
    }
}

static bool rules_check(enum child_kind kind, struct slice body, struct error *err)
{
    for (size_t i = 0; i < RULES_MAX && rules[kind][i].property; i++) {
        const struct rule *rule = &rules[kind][i];
        struct document_value value = document_undefined();
        const char *wanted;

        (void)document_find(body, slice_of_text(rule->property), &value);
        wanted = rule_broken(rule, &value);
        if (!wanted)
            continue;
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: property \"%s\" of the %s must "
                         "be %s%.*s",
                         rule->property, kind_names[kind],
                         rule->need == NEED_ONE_OF ? "one of " : "",
                         (int)(strlen(wanted) - (rule->need == NEED_ONE_OF)), wanted);
    }
    return true;
}

/* What the server adds when it shows a child; clients send it back. */
static bool is_system(struct slice name)
{
    static const char *const names[] = {"_rid", "_self",        "_etag", "_ts",
                                        "_lsn", "_permissions", "_token"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (slice_equal(name, slice_of_text(names[i])))
            return true;
    return false;
}

static struct slice body_strip(struct slice body, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_iter iter;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    document_iter_init(&iter, body);
    while (document_iter_next(&iter))
        if (!is_system(iter.key))
            document_append(&buf, iter.key, &iter.value);
    document_end(&buf, begin);
    assert(!buf_overflowed(&buf)); /* it is no longer than what was measured on its way in */
    return arena_copy(arena, buf_slice(&buf));
}

bool child_body_check(const struct definition_limits *limits, enum child_kind kind,
                      struct slice body, struct arena *arena, struct child_body *ret_body,
                      struct error *err)
{
    uint32_t max = kind >= CHILD_PROCEDURE ? limits->script_bytes_max : limits->resource_bytes_max;
    struct document_value id;
    struct slice stripped;

    if (body.len > max)
        return error_set(err, ERROR_TOO_LARGE, "%s of %zu bytes is over the limit of %u",
                         kind_names[kind], body.len, max);
    stripped = body_strip(body, arena);
    if (!document_find(stripped, SLICE("id"), &id) || id.type != DOCUMENT_STRING)
        return error_set(err, ERROR_BAD_REQUEST,
                         "One of the specified inputs is invalid: the %s has no id",
                         kind_names[kind]);
    if (!catalogue_id_check(limits, id.text, err) || !rules_check(kind, stripped, err))
        return false;
    *ret_body = (struct child_body){stripped, id.text};
    return true;
}
