/* Random filters over random documents: what the compiled filter finds, with every index and with
 * none, over one partition and sixteen, is what an evaluator finds that reads the filter as it is
 * written, one document at a time. */
#include "front/mongo/match/match.h"
#include "query/value/regex.h"
#include "support/queries.h"

#include <math.h>
#include <stdlib.h>

/* --- The naive evaluator ---------------------------------------------------------------------- */

/* The values a path stands for in a document; a type of 0 is a value that is not there. */
struct found {
    struct document_value list[400];
    size_t count;
};

static void found_add(struct found *found, struct document_value value)
{
    assert_true(found->count < ARRAY_LEN(found->list));
    found->list[found->count++] = value;
}

static bool is_index(struct slice name, uint64_t *ret_index)
{
    return slice_to_uint64(name, ret_index) && (name.len == 1 || name.data[0] != '0');
}

static bool cut(struct slice path, struct slice *ret_name, struct slice *ret_rest)
{
    if (slice_split(path, '.', ret_name, ret_rest))
        return true;
    *ret_name = path;
    return false;
}

static void find_in_object(struct found *found, struct slice object, struct slice path,
                           bool spread);

static void find_in_array(struct found *found, struct slice array, struct slice path, bool spread)
{
    struct document_iter iter;
    struct slice name, rest;
    bool more = cut(path, &name, &rest);
    uint64_t index, i = 0;

    document_iter_init(&iter, array);
    for (; document_iter_next(&iter); i++) {
        if (iter.value.type == DOCUMENT_OBJECT)
            find_in_object(found, iter.value.document, path, spread);
        if (!is_index(name, &index) || index != i)
            continue;
        if (!more)
            found_add(found, iter.value);
        else if (iter.value.type == DOCUMENT_OBJECT)
            find_in_object(found, iter.value.document, rest, spread);
        else if (iter.value.type == DOCUMENT_ARRAY)
            find_in_array(found, iter.value.document, rest, spread);
    }
}

static void find_in_object(struct found *found, struct slice object, struct slice path, bool spread)
{
    struct document_value value, none = {0};
    struct document_iter iter;
    struct slice name, rest;
    bool more = cut(path, &name, &rest);

    if (!document_find(object, name, &value)) {
        found_add(found, none);
        return;
    }
    if (more) {
        if (value.type == DOCUMENT_OBJECT)
            find_in_object(found, value.document, rest, spread);
        else if (value.type == DOCUMENT_ARRAY)
            find_in_array(found, value.document, rest, spread);
        else
            found_add(found, none);
        return;
    }
    found_add(found, value);
    if (value.type != DOCUMENT_ARRAY || !spread)
        return;
    document_iter_init(&iter, value.document);
    while (document_iter_next(&iter))
        found_add(found, iter.value);
}

static int family(const struct document_value *value)
{
    if (document_is_number(value))
        return 1;
    return value->type == DOCUMENT_UNDEFINED ? DOCUMENT_NULL : (int)value->type;
}

static bool is_nan(const struct document_value *value)
{
    double number;

    return document_is_number(value) && document_to_double(value, &number) && isnan(number);
}

static bool naive_equal(const struct document_value *value, const struct document_value *operand)
{
    if (!value->type)
        return operand->type == DOCUMENT_NULL;
    return family(value) == family(operand) &&
           document_compare(DOCUMENT_ORDER_MONGO, value, operand) == 0;
}

static bool naive_compare(struct slice name, const struct document_value *value,
                          const struct document_value *operand)
{
    bool equal_too = name.len == 4;
    int order;

    if (equal_too && naive_equal(value, operand))
        return true;
    if (!value->type || family(value) != family(operand) || operand->type == DOCUMENT_NULL ||
        is_nan(value) || is_nan(operand))
        return false;
    order = document_compare(DOCUMENT_ORDER_MONGO, value, operand);
    return name.data[1] == 'g' ? order > 0 : order < 0;
}

static bool naive_filter(struct queries *f, struct slice filter, struct slice document);
static bool naive_value(struct queries *f, struct slice name, const struct document_value *operand,
                        const struct document_value *value);

/* One value and all operators of an object. */
static bool naive_operators(struct queries *f, struct slice operators,
                            const struct document_value *value)
{
    struct document_iter iter;

    document_iter_init(&iter, operators);
    while (document_iter_next(&iter))
        if (!naive_value(f, iter.key, &iter.value, value))
            return false;
    return true;
}

static bool starts_with_a(const struct document_value *value)
{
    return value->type == DOCUMENT_STRING && slice_starts_with(value->text, SLICE("a"));
}

/* An operator of one value as it stands. */
static bool naive_value(struct queries *f, struct slice name, const struct document_value *operand,
                        const struct document_value *value)
{
    struct document_value inner;
    struct document_iter iter;

    if (slice_equal(name, SLICE("$eq")))
        return naive_equal(value, operand);
    if (slice_equal(name, SLICE("$ne")))
        return !naive_equal(value, operand);
    if (slice_equal(name, SLICE("$not")))
        return !naive_operators(f, operand->document, value);
    if (slice_equal(name, SLICE("$regex")))
        return starts_with_a(value);
    if (slice_equal(name, SLICE("$exists")))
        return value->type != 0;
    if (slice_equal(name, SLICE("$type")))
        return value->type == DOCUMENT_STRING;
    if (slice_equal(name, SLICE("$size")))
        return value->type == DOCUMENT_ARRAY &&
               document_count(value->document) == (size_t)operand->int32;
    if (slice_equal(name, SLICE("$in"))) {
        document_iter_init(&iter, operand->document);
        while (document_iter_next(&iter))
            if (iter.value.type == DOCUMENT_REGEX ? starts_with_a(value)
                                                  : naive_equal(value, &iter.value))
                return true;
        return false;
    }
    if (slice_equal(name, SLICE("$elemMatch"))) {
        if (value->type != DOCUMENT_ARRAY)
            return false;
        document_iter_init(&iter, value->document);
        while (document_iter_next(&iter)) {
            struct document_iter first;

            inner = iter.value;
            document_iter_init(&first, operand->document);
            assert_true(document_iter_next(&first));
            if (first.key.data[0] == '$' ? naive_operators(f, operand->document, &inner)
                                         : inner.type == DOCUMENT_OBJECT &&
                                               naive_filter(f, operand->document, inner.document))
                return true;
        }
        return false;
    }
    return naive_compare(name, value, operand);
}

static bool naive_operator(struct queries *f, struct slice path, struct slice name,
                           const struct document_value *operand, struct slice document)
{
    bool spread = !slice_equal(name, SLICE("$elemMatch")) && !slice_equal(name, SLICE("$size"));
    struct document_iter iter;
    struct found found = {.count = 0};

    if (slice_equal(name, SLICE("$ne")))
        return !naive_operator(f, path, SLICE("$eq"), operand, document);
    if (slice_equal(name, SLICE("$nin")))
        return !naive_operator(f, path, SLICE("$in"), operand, document);
    if (slice_equal(name, SLICE("$exists")) && !operand->boolean)
        return !naive_operator(f, path, SLICE("$exists"), &(struct document_value){.boolean = true},
                               document);
    if (slice_equal(name, SLICE("$not"))) {
        document_iter_init(&iter, operand->document);
        while (document_iter_next(&iter))
            if (!naive_operator(f, path, iter.key, &iter.value, document))
                return true;
        return false;
    }
    if (slice_equal(name, SLICE("$all"))) {
        document_iter_init(&iter, operand->document);
        while (document_iter_next(&iter))
            if (!naive_operator(f, path, SLICE("$eq"), &iter.value, document))
                return false;
        return document_count(operand->document) > 0;
    }
    find_in_object(&found, document, path, spread);
    for (size_t i = 0; i < found.count; i++)
        if (naive_value(f, name, operand, &found.list[i]))
            return true;
    return false;
}

static bool naive_logical(struct queries *f, struct slice name, struct slice list,
                          struct slice document)
{
    bool all = slice_equal(name, SLICE("$and"));
    struct document_iter iter;

    document_iter_init(&iter, list);
    while (document_iter_next(&iter))
        if (naive_filter(f, iter.value.document, document) != all)
            return slice_equal(name, SLICE("$or"));
    return !slice_equal(name, SLICE("$or"));
}

static bool is_operators(const struct document_value *value)
{
    struct document_iter iter;

    if (value->type != DOCUMENT_OBJECT)
        return false;
    document_iter_init(&iter, value->document);
    return document_iter_next(&iter) && iter.key.len && iter.key.data[0] == '$';
}

static bool naive_filter(struct queries *f, struct slice filter, struct slice document)
{
    struct document_iter iter, inner;

    document_iter_init(&iter, filter);
    while (document_iter_next(&iter)) {
        if (iter.key.data[0] == '$') {
            if (!naive_logical(f, iter.key, iter.value.document, document))
                return false;
            continue;
        }
        if (!is_operators(&iter.value)) {
            if (!naive_operator(f, iter.key, SLICE("$eq"), &iter.value, document))
                return false;
            continue;
        }
        document_iter_init(&inner, iter.value.document);
        while (document_iter_next(&inner))
            if (!naive_operator(f, iter.key, inner.key, &inner.value, document))
                return false;
    }
    return true;
}

/* --- At random -------------------------------------------------------------------------------- */

static struct document_value scalar_random(struct random *random)
{
    static const uint8_t ids[][DOCUMENT_OBJECT_ID_SIZE] = {{1}, {2}, {3}};
    static const char *const texts[] = {"", "a", "ab", "b", "\xEF\xBF\xBD", "\xF0\x9F\x98\x80"};

    switch (random_below(random, 12)) {
    case 0:
        return document_null();
    case 1:
        return document_bool(random_below(random, 2));
    case 2:
    case 3:
        return document_string(slice_of_text(texts[random_below(random, ARRAY_LEN(texts))]));
    case 4:
        return document_double((double)random_below(random, 6) + 0.5);
    case 5:
        return random_below(random, 3) ? document_int64((int64_t)random_below(random, 6))
                                       : document_double(NAN);
    case 6:
        return document_date((int64_t)random_below(random, 4));
    case 7:
        return (struct document_value){.type = DOCUMENT_OBJECT_ID,
                                       .id = ids[random_below(random, 3)]};
    case 8:
        return (struct document_value){.type = DOCUMENT_TIMESTAMP,
                                       .timestamp = random_below(random, 4)};
    default:
        return document_int32((int32_t)random_below(random, 6));
    }
}

static void append_random(struct random *random, struct buf *buf, struct slice key, unsigned depth)
{
    static const char *const names[] = {"x", "y", "0"};
    struct document_value value = scalar_random(random);
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin, kind = depth ? random_below(random, 5) : 9;

    if (kind == 0) {
        begin = document_append_array_begin(buf, key);
        for (uint32_t i = 0, n = (uint32_t)random_below(random, 4); i < n; i++)
            append_random(random, buf, document_index_key(i, text), depth - 1);
        document_end(buf, begin);
    } else if (kind == 1) {
        begin = document_append_object_begin(buf, key);
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
            if (random_below(random, 2))
                append_random(random, buf, slice_of_text(names[i]), depth - 1);
        document_end(buf, begin);
    } else {
        document_append(buf, key, &value);
    }
}

static void add_random(struct queries *f, struct random *random, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_done) struct buf buf;
        char id[16];
        size_t begin;

        buf_init(&buf, BUF_DEFAULT_MAX);
        snprintf(id, sizeof id, "%03zu", i);
        begin = document_begin(&buf);
        document_append_string(&buf, SLICE("id"), slice_of_text(id));
        if (random_below(random, 8))
            append_random(random, &buf, SLICE("pk"), random_below(random, 4) == 0);
        append_random(random, &buf, SLICE("a"), 3);
        if (random_below(random, 4))
            append_random(random, &buf, SLICE("b"), 2);
        document_end(&buf, begin);
        f->documents[f->document_count++] = arena_copy(f->arena, buf_slice(&buf));
    }
}

static void append_operand(struct random *random, struct buf *buf, struct slice key)
{
    if (random_below(random, 8) == 0) {
        append_random(random, buf, key, 1);
    } else {
        struct document_value value = scalar_random(random);

        document_append(buf, key, &value);
    }
}

static void append_list(struct random *random, struct buf *buf, struct slice key, bool regexes)
{
    size_t begin = document_append_array_begin(buf, key), count = random_below(random, 4);
    char text[DOCUMENT_INDEX_SIZE];

    for (uint32_t i = 0; i < count; i++) {
        struct document_value regex = {.type = DOCUMENT_REGEX, .regex = {SLICE("^a"), SLICE("")}};

        if (regexes && random_below(random, 6) == 0)
            document_append(buf, document_index_key(i, text), &regex);
        else
            append_operand(random, buf, document_index_key(i, text));
    }
    document_end(buf, begin);
}

static void filter_random(struct random *random, struct buf *buf, unsigned depth);

static void append_operator(struct random *random, struct buf *buf, unsigned depth, bool arrays)
{
    static const char *const names[] = {"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"};
    size_t begin;

    switch (random_below(random, arrays ? 13 : 8)) {
    case 6:
        append_list(random, buf, SLICE("$in"), true);
        return;
    case 7:
        document_append_string(buf, SLICE("$regex"), SLICE("^a"));
        return;
    case 8:
        append_list(random, buf, SLICE("$nin"), true);
        return;
    case 9:
        document_append_bool(buf, SLICE("$exists"), random_below(random, 2));
        return;
    case 10:
        document_append_int32(buf, SLICE("$size"), (int32_t)random_below(random, 3));
        return;
    case 11:
        append_list(random, buf, SLICE("$all"), false);
        return;
    case 12:
        begin = document_append_object_begin(buf, SLICE("$elemMatch"));
        if (depth && random_below(random, 2))
            append_operand(random, buf, random_below(random, 2) ? SLICE("x") : SLICE("y"));
        else
            append_operator(random, buf, 0, false);
        document_end(buf, begin);
        return;
    default:
        append_operand(random, buf, slice_of_text(names[random_below(random, ARRAY_LEN(names))]));
    }
}

static void append_field(struct random *random, struct buf *buf, unsigned depth)
{
    static const char *const paths[] = {"a",   "a",   "b",     "pk",    "pk",
                                        "a.x", "a.0", "a.0.x", "a.x.y", "b.x"};
    struct slice path = slice_of_text(paths[random_below(random, ARRAY_LEN(paths))]);
    size_t begin, inner;

    if (random_below(random, 3) == 0) {
        append_operand(random, buf, path);
        return;
    }
    begin = document_append_object_begin(buf, path);
    if (random_below(random, 8) == 0) {
        inner = document_append_object_begin(buf, SLICE("$not"));
        append_operator(random, buf, depth, true);
        document_end(buf, inner);
    } else if (random_below(random, 3) == 0) {
        append_operand(random, buf, SLICE("$gte"));
        append_operand(random, buf, SLICE("$lt"));
    } else {
        append_operator(random, buf, depth, true);
    }
    document_end(buf, begin);
}

static void filter_random(struct random *random, struct buf *buf, unsigned depth)
{
    static const char *const names[] = {"$or", "$and", "$nor", "$or"};
    char text[DOCUMENT_INDEX_SIZE];
    size_t begin, inner;

    if (!depth || random_below(random, 2)) {
        append_field(random, buf, depth);
        return;
    }
    begin = document_append_array_begin(buf, slice_of_text(names[random_below(random, 4)]));
    for (uint32_t i = 0, n = 1 + (uint32_t)random_below(random, 3); i < n; i++) {
        inner = document_append_object_begin(buf, document_index_key(i, text));
        filter_random(random, buf, depth - 1);
        document_end(buf, inner);
    }
    document_end(buf, begin);
}

static struct slice filter_new(struct queries *f, struct random *random)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    filter_random(random, &buf, 2);
    document_end(&buf, begin);
    return arena_copy(f->arena, buf_slice(&buf));
}

static struct queries_rows *naive_rows(struct queries *f, struct slice filter)
{
    struct queries_rows *rows = ARENA_NEW(f->arena, struct queries_rows);
    struct document_value id;
    struct error err;

    rows->arena = f->arena;
    for (size_t i = 0; i < f->document_count; i++) {
        if (!naive_filter(f, filter, f->documents[i]))
            continue;
        assert_true(document_find(f->documents[i], SLICE("id"), &id));
        assert_true(queries_row(rows, &id, &err));
    }
    return rows;
}

static struct query_plan plan_of(struct queries *f, struct slice filter)
{
    const struct query_expression *expression;
    struct query_plan plan;
    struct error err;

    f->build.nodes = 0;
    f->build.order = DOCUMENT_ORDER_MONGO;
    assert_ok(mongo_match_compile(filter, NULL, &f->build, &expression, &err), &err);
    plan = queries_plan(queries_path(f, "id"), expression);
    plan.order = DOCUMENT_ORDER_MONGO;
    return plan;
}

/* Has the explanation, which is BSON, these bytes? */
static bool mentions(const struct query_page *page, struct slice bytes)
{
    return page->explain.len &&
           memmem(page->explain.data, page->explain.len, bytes.data, bytes.len) != NULL;
}

static bool is_settled(const struct query_page *page)
{
    return mentions(page, SLICE("filterSettled\0\1"));
}

static void random_filters_find_what_a_naive_evaluator_finds(void **state)
{
    struct queries *f = *state;
    struct random random;
    size_t united = 0, settled = 0, found = 0;

    random_seed(&random, 17);
    add_random(f, &random, 120);
    for (size_t p = 0; p < 2 * QUERIES_POLICIES; p++) {
        queries_open(f, &(struct test_space_options){.policy = queries_policies[p / 2],
                                                     .partitions = p % 2 ? 16 : 1});
        queries_put(f);
        for (size_t round = 0; round < 150; round++) {
            struct slice filter = filter_new(f, &random);
            struct query_plan plan = plan_of(f, filter);
            struct queries_how how = {.page = 1 + random_below(&random, 60)};
            struct queries_rows *expected = naive_rows(f, filter);

            queries_same_set(queries_expect(f, &plan), expected);
            queries_same_set(queries_run(f, &plan, &how), expected);
            united += mentions(&how.last, SLICE("union"));
            settled += is_settled(&how.last);
            found += expected->count;
        }
    }
    assert_true(united > 50);
    assert_true(settled > 20);
    assert_true(found > 1000);
}

/* Definitions that have all values of a path, of every kind; some of them leave items out. */
static const char *const definitions[] = {
    "{\"name\":\"a\",\"key\":[{\"path\":\"/a\"}],\"order\":\"mongo\",\"multikey\":true,"
    "\"arrays\":\"counted\"}",
    "{\"name\":\"b\",\"key\":[{\"path\":\"/b\",\"order\":\"descending\"}],\"order\":\"mongo\","
    "\"multikey\":true,\"arrays\":\"counted\",\"sparse\":true}",
    "{\"name\":\"ax\",\"key\":[{\"path\":\"/a/x\"},{\"path\":\"/id\",\"order\":\"descending\"}],"
    "\"order\":\"mongo\",\"multikey\":true,\"arrays\":\"counted\"}",
    "{\"name\":\"part\",\"key\":[{\"path\":\"/a\"},{\"path\":\"/id\"}],\"order\":\"mongo\","
    "\"multikey\":true,\"filter\":[{\"path\":\"/b\",\"comparison\":\"greater\",\"value\":1}]}",
    "{\"name\":\"all\",\"wildcard\":{},\"order\":\"mongo\",\"multikey\":true}",
    "{\"name\":\"bx\",\"key\":[{\"path\":\"/b/x\"}],\"order\":\"mongo\",\"multikey\":true}",
};

static void random_filters_find_the_same_by_each_definition(void **state)
{
    struct queries *f = *state;
    struct random random;
    size_t used[ARRAY_LEN(definitions)] = {0}, found = 0;

    random_seed(&random, 23);
    add_random(f, &random, 120);
    for (size_t p = 0; p < 2 * ARRAY_LEN(definitions); p++) {
        queries_open(f, &(struct test_space_options){.policy = "{\"indexingMode\":\"none\"}",
                                                     .indexes = {definitions[p / 2]},
                                                     .partitions = p % 2 ? 16 : 1});
        queries_put(f);
        for (size_t round = 0; round < 150; round++) {
            struct slice filter = filter_new(f, &random);
            struct query_plan plan = plan_of(f, filter);
            struct queries_how how = {.page = 1 + random_below(&random, 60)};
            struct queries_rows *expected = queries_expect(f, &plan);

            queries_same_set(queries_run(f, &plan, &how), expected);
            used[p / 2] += mentions(&how.last, SLICE("definition"));
            found += expected->count;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(definitions); i++)
        if (!strstr(definitions[i], "filter"))
            assert_true(used[i] > 5);
    assert_true(found > 1000);
}

/* --- Plans ------------------------------------------------------------------------------------ */

static void explained(struct queries *f, const char *filter, const char *part)
{
    struct query_plan plan = plan_of(f, document_of(f->arena, filter));
    struct queries_how how = {.page = 1000, .explain_has = part};

    queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
}

static void add_numbered(struct queries *f)
{
    for (size_t i = 0; i < 400; i++) {
        char json[160];

        snprintf(json, sizeof json,
                 i % 3 ? "{\"id\":\"%zu\",\"pk\":\"k%zu\",\"a\":%zu,\"s\":{\"t\":%zu}}"
                       : "{\"id\":\"%zu\",\"pk\":\"k%zu\",\"a\":[%zu,\"x\"],\"s\":[{\"t\":%zu}]}",
                 i, i % 5, i % 40, i % 50);
        queries_add(f, json);
    }
}

static void an_equality_is_a_seek_of_the_value_and_one_of_elements(void **state)
{
    struct queries *f = *state;
    struct query_plan plan;
    struct queries_how how = {.page = 1000, .explain_has = "\"path\":\"/a/? OR /a/[]/?\""};

    add_numbered(f);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    plan = plan_of(f, document_of(f->arena, "{\"a\":7}"));
    queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
    assert_int_equal(how.last.metrics.index_lookups, 2);
    assert_true(is_settled(&how.last));
    explained(f, "{\"s.t\":7}", "\"path\":\"/s/t/? OR /s/[]/t/? OR /s/t/[]/? OR /s/[]/t/[]/?\"");
    explained(f, "{\"a\":{\"$in\":[7,8]}}", "\"path\":\"/a/? OR /a/[]/?\"");
    explained(f, "{\"s\":{\"$elemMatch\":{\"t\":7}}}", "\"path\":\"/s/[]/t/? OR /s/[]/t/[]/?\"");
    explained(f, "{\"a\":{\"$gt\":38,\"$lt\":40}}", "\"path\":\"/a/? OR /a/[]/?\"");
    explained(f, "{\"a\":{\"$ne\":7}}", "\"kind\":\"scan\"");
    explained(f, "{\"a\":null}", "\"kind\":\"scan\"");
}

/* More values than a union has room for, were each a member at each path. */
static void many_values_are_a_range_at_each_path(void **state)
{
    struct queries *f = *state;
    CLEANUP(buf_done) struct buf filter;

    add_numbered(f);
    queries_open(f, &(struct test_space_options){0});
    queries_put(f);
    buf_init(&filter, BUF_DEFAULT_MAX);
    BUF_APPEND(&filter, "{\"s.t\":{\"$in\":[1");
    for (int i = 0; i < 30; i++)
        buf_printf(&filter, ",%d", 3 + 100 * i);
    BUF_APPEND(&filter, "]}}");
    buf_append_byte(&filter, 0);
    explained(f, (const char *)filter.data,
              "\"path\":\"/s/t/? OR /s/[]/t/? OR /s/t/[]/? OR /s/[]/t/[]/?\"");
}

static void a_partition_key_leads_to_its_partition(void **state)
{
    struct queries *f = *state;
    struct query_plan plan;
    struct queries_how how = {.page = 1000};

    add_numbered(f);
    queries_open(f, &(struct test_space_options){.partitions = 16, .policy = queries_policies[1]});
    queries_put(f);
    plan = plan_of(f, document_of(f->arena, "{\"pk\":\"k3\"}"));
    queries_same_set(queries_run(f, &plan, &how), queries_expect(f, &plan));
    assert_int_equal(how.last.metrics.items_loaded, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_filters_find_what_a_naive_evaluator_finds,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(random_filters_find_the_same_by_each_definition,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(an_equality_is_a_seek_of_the_value_and_one_of_elements,
                                        queries_setup, queries_teardown),
        cmocka_unit_test_setup_teardown(many_values_are_a_range_at_each_path, queries_setup,
                                        queries_teardown),
        cmocka_unit_test_setup_teardown(a_partition_key_leads_to_its_partition, queries_setup,
                                        queries_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
