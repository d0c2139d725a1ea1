/* A definition's filter is a list of conditions that must all be met, some of them alternatives to
 * each other. So $and is taken apart, $in and $or become alternatives; an $or of branches with
 * several conditions each is refused, for there are no alternatives of lists. */
#include "front/mongo/index/spec.h"

#include "document/bson.h"
#include "front/mongo/text.h"

struct filtering {
    struct buf *out;
    struct arena *arena;
    uint32_t count, groups;
    uint32_t group; /* what is added is an alternative of this number; 0: it is none */
    unsigned depth;
};

static bool unsupported(const char *what, struct slice name, struct error *err)
{
    return mongo_error_set(err, MONGO_CANNOT_CREATE_INDEX,
                           "unsupported expression in partial index: %s %.*s", what,
                           (int)MIN(name.len, (size_t)60), (const char *)name.data);
}

static bool condition_add(struct filtering *f, struct slice path, const char *comparison,
                          const struct document_value *value, struct error *err)
{
    char text[DOCUMENT_INDEX_SIZE];
    size_t one;

    if (f->count == INDEX_CONDITIONS_MAX)
        return mongo_error_set(err, MONGO_CANNOT_CREATE_INDEX,
                               "partialFilterExpression has more than %d conditions",
                               INDEX_CONDITIONS_MAX);
    if (value && (value->type == DOCUMENT_NULL || value->type == DOCUMENT_UNDEFINED))
        return unsupported("comparison with null of", path, err);
    if (value && value->type == DOCUMENT_REGEX)
        return unsupported("regular expression for", path, err);
    one = document_append_object_begin(f->out, document_index_key(f->count++, text));
    document_append_string(f->out, SLICE("path"), mongo_index_path(path, f->arena));
    document_append_string(f->out, SLICE("comparison"), slice_of_text(comparison));
    if (value)
        document_append(f->out, SLICE("value"), value);
    if (f->group)
        document_append_int32(f->out, SLICE("any"), (int32_t)f->group);
    document_end(f->out, one);
    return true;
}

static bool type_number(const struct document_value *value, struct filtering *f, struct buf *list,
                        uint32_t *count, struct error *err)
{
    static const struct {
        const char *alias;
        enum document_type type;
    } aliases[] = {{"double", DOCUMENT_DOUBLE},
                   {"string", DOCUMENT_STRING},
                   {"object", DOCUMENT_OBJECT},
                   {"array", DOCUMENT_ARRAY},
                   {"binData", DOCUMENT_BINARY},
                   {"undefined", DOCUMENT_UNDEFINED},
                   {"objectId", DOCUMENT_OBJECT_ID},
                   {"bool", DOCUMENT_BOOL},
                   {"date", DOCUMENT_DATE},
                   {"null", DOCUMENT_NULL},
                   {"regex", DOCUMENT_REGEX},
                   {"dbPointer", DOCUMENT_DB_POINTER},
                   {"javascript", DOCUMENT_CODE},
                   {"symbol", DOCUMENT_SYMBOL},
                   {"javascriptWithScope", DOCUMENT_CODE_WITH_SCOPE},
                   {"int", DOCUMENT_INT32},
                   {"timestamp", DOCUMENT_TIMESTAMP},
                   {"long", DOCUMENT_INT64},
                   {"decimal", DOCUMENT_DECIMAL128},
                   {"minKey", DOCUMENT_MIN_KEY},
                   {"maxKey", DOCUMENT_MAX_KEY},
                   {"number", DOCUMENT_DOUBLE},
                   {"number", DOCUMENT_INT32},
                   {"number", DOCUMENT_INT64},
                   {"number", DOCUMENT_DECIMAL128}};
    char text[DOCUMENT_INDEX_SIZE];
    int64_t number = 0;
    bool any = false;

    (void)f;
    if (document_to_int64(value, &number))
        number = number == -1 ? DOCUMENT_MIN_KEY : number;
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
        bool same =
            value->type == DOCUMENT_STRING
                ? slice_equal(value->text, slice_of_text(aliases[i].alias))
                : number == (int64_t)aliases[i].type && strcmp(aliases[i].alias, "number") != 0;

        if (!same)
            continue;
        any = true;
        document_append_int32(list, document_index_key((*count)++, text), (int32_t)aliases[i].type);
    }
    return any || mongo_error_set(err, MONGO_BAD_VALUE, "unknown type in $type");
}

static bool type_add(struct filtering *f, struct slice path, const struct document_value *value,
                     struct error *err)
{
    CLEANUP(buf_done) struct buf list;
    struct document_value array;
    struct document_iter iter;
    uint32_t count = 0;
    size_t begin;

    buf_init(&list, BUF_DEFAULT_MAX);
    begin = document_begin(&list);
    if (value->type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, value->document);
        while (document_iter_next(&iter))
            if (!type_number(&iter.value, f, &list, &count, err))
                return false;
    } else if (!type_number(value, f, &list, &count, err)) {
        return false;
    }
    document_end(&list, begin);
    array = document_array(buf_slice(&list));
    return condition_add(f, path, "type", &array, err);
}

static bool in_add(struct filtering *f, struct slice path, const struct document_value *value,
                   struct error *err)
{
    struct document_iter iter;
    bool own = !f->group, fine = true, any = false;

    if (value->type != DOCUMENT_ARRAY)
        return mongo_error_set(err, MONGO_BAD_VALUE, "$in needs an array");
    if (own)
        f->group = ++f->groups;
    document_iter_init(&iter, value->document);
    while (fine && document_iter_next(&iter)) {
        any = true;
        fine = condition_add(f, path, "equal", &iter.value, err);
    }
    if (own)
        f->group = 0;
    return fine && (any || unsupported("empty $in for", path, err));
}

static bool operator_add(struct filtering *f, struct slice path, struct slice name,
                         const struct document_value *value, struct error *err)
{
    static const struct {
        struct slice name;
        const char *comparison;
    } comparisons[] = {{SLICE("$eq"), "equal"},
                       {SLICE("$lt"), "less"},
                       {SLICE("$lte"), "lessOrEqual"},
                       {SLICE("$gt"), "greater"},
                       {SLICE("$gte"), "greaterOrEqual"}};
    double number = 0;

    for (size_t i = 0; i < ARRAY_LEN(comparisons); i++)
        if (slice_equal(name, comparisons[i].name))
            return condition_add(f, path, comparisons[i].comparison, value, err);
    if (slice_equal(name, SLICE("$in")))
        return in_add(f, path, value, err);
    if (slice_equal(name, SLICE("$type")))
        return type_add(f, path, value, err);
    if (!slice_equal(name, SLICE("$exists")))
        return unsupported("operator", name, err);
    if (value->type == DOCUMENT_BOOL ? !value->boolean
                                     : !document_to_double(value, &number) || number == 0)
        return unsupported("$exists: false of", path, err);
    return condition_add(f, path, "exists", NULL, err);
}

static bool is_operators(const struct document_value *value)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&iter, value->document);
    return document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$';
}

static bool filter_add(struct filtering *f, struct slice filter, struct error *err);

static bool list_add(struct filtering *f, const struct document_value *list, bool alternatives,
                     struct error *err)
{
    struct document_iter iter;

    if (list->type != DOCUMENT_ARRAY || !document_count(list->document))
        return mongo_error_set(err, MONGO_BAD_VALUE, "%s argument must be a non-empty array",
                               alternatives ? "$or" : "$and");
    if (alternatives && f->group)
        return unsupported("$or within", SLICE("$or"), err);
    if (alternatives)
        f->group = ++f->groups;
    document_iter_init(&iter, list->document);
    while (document_iter_next(&iter)) {
        uint32_t before = f->count;

        if (iter.value.type != DOCUMENT_OBJECT)
            return mongo_error_set(err, MONGO_BAD_VALUE,
                                   "$or/$and/$nor entries need to be full objects");
        if (!filter_add(f, iter.value.document, err))
            return false;
        /* Conditions of one branch that must all be met are no alternatives to each other. */
        if (alternatives && f->count != before + 1) {
            struct document_iter branch;

            document_iter_init(&branch, iter.value.document);
            (void)document_iter_next(&branch);
            if (f->count == before || document_count(iter.value.document) != 1 ||
                !is_operators(&branch.value) || document_count(branch.value.document) != 1)
                return unsupported("several conditions in one branch of", SLICE("$or"), err);
        }
    }
    if (alternatives)
        f->group = 0;
    return true;
}

static bool filter_add(struct filtering *f, struct slice filter, struct error *err)
{
    struct document_iter iter, operators;

    if (++f->depth > 16)
        return mongo_error_set(err, MONGO_CANNOT_CREATE_INDEX,
                               "partialFilterExpression depth may not exceed 16");
    document_iter_init(&iter, filter);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("$and")) || slice_equal(iter.key, SLICE("$or"))) {
            if (!list_add(f, &iter.value, iter.key.len == 3, err))
                return false;
        } else if (iter.key.len && iter.key.data[0] == '$') {
            return unsupported("operator", iter.key, err);
        } else if (is_operators(&iter.value)) {
            document_iter_init(&operators, iter.value.document);
            while (document_iter_next(&operators))
                if (!operator_add(f, iter.key, operators.key, &operators.value, err))
                    return false;
        } else if (!condition_add(f, iter.key, "equal", &iter.value, err)) {
            return false;
        }
    }
    f->depth--;
    return true;
}

bool mongo_index_filter_append(struct slice filter, struct buf *out, struct arena *arena,
                               struct error *err)
{
    CLEANUP(buf_done) struct buf list;
    struct filtering f = {.out = &list, .arena = arena};
    struct document_value value;
    size_t begin;

    buf_init(&list, BUF_DEFAULT_MAX);
    begin = document_begin(&list);
    if (!filter_add(&f, filter, err))
        return false;
    document_end(&list, begin);
    if (!f.count)
        return true; /* {}: every document has entries */
    value = document_array(buf_slice(&list));
    document_append(out, SLICE("filter"), &value);
    return true;
}
