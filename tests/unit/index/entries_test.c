#include "index/policy.h"

#include "definition/names.h"
#include "document/json.h"
#include "document/order.h"
#include "support/check.h"
#include "support/documents.h"

static const struct index_policy *policy_of(struct arena *arena, const char *json)
{
    CLEANUP(buf_done) struct buf completed;
    const struct index_policy *policy = NULL;
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    assert_ok(index_policy_parse(json ? document_of(arena, json) : SLICE_NONE,
                                 definition_names(DEFINITION_IDENTITY_ID), arena, &completed,
                                 &policy, &err),
              &err);
    return policy;
}

/* The entries as lines; each also has to be as long as it says. */
static char *entries_text(struct arena *arena, const struct index_policy *policy, struct slice item)
{
    CLEANUP(buf_done) struct buf buf;
    struct index_entry *entries;
    size_t count;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(index_entries(policy, item, arena, &entries, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct slice bytes = entries[i].bytes, again = bytes;

        if (i)
            assert_true(slice_compare(entries[i - 1].bytes, bytes) < 0);
        assert_ok(index_entry_print(&bytes, &buf, &err), &err);
        buf_append_byte(&buf, '\n');
        assert_int_equal(bytes.len, 0);
        assert_ok(index_entry_skip(&again, &err), &err);
        assert_int_equal(again.len, 0);
    }
    return arena_text(arena, buf_slice(&buf));
}

static void assert_entries(const char *policy, const char *item, const char *expected)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(entries_text(arena, policy_of(arena, policy), document_of(arena, item)),
                        expected);
}

#define PATHS(included, excluded)                                                                  \
    "{\"includedPaths\":[" included "],\"excludedPaths\":[" excluded "]}"
#define PATH(text) "{\"path\":\"" text "\"}"

static void every_leaf_is_an_entry_by_default(void **state UNUSED)
{
    assert_entries(NULL,
                   "{\"id\":\"a\",\"n\":1.5,\"deep\":{\"x\":true,\"y\":null},"
                   "\"tags\":[\"b\",\"a\",\"b\"],\"list\":[{\"k\":1},[2]],\"none\":[],\"nil\":{}}",
                   "/deep/x = true\n"
                   "/deep/y = null\n"
                   "/id = \"a\"\n"
                   "/list/[]/[] = 2\n"
                   "/list/[]/k = 1\n"
                   "/n = 1.5\n"
                   "/nil = object\n"
                   "/none = array\n"
                   "/tags/[] = \"a\"\n"
                   "/tags/[] = \"b\"\n");
}

static void nothing_but_id_is_indexed_when_the_mode_is_none(void **state UNUSED)
{
    assert_entries("{\"indexingMode\":\"none\"}", "{\"id\":\"a\",\"b\":1}", "/id = \"a\"\n");
    assert_entries("{\"indexingMode\":\"none\",\"includedPaths\":[{\"path\":\"/*\"}]}",
                   "{\"id\":\"a\",\"b\":1}", "/id = \"a\"\n");
}

static void id_is_indexed_whatever_is_excluded(void **state UNUSED)
{
    assert_entries(PATHS("", PATH("/*")), "{\"id\":\"a\",\"b\":1}", "/id = \"a\"\n");
    assert_entries(PATHS(PATH("/*"), PATH("/id/?")), "{\"id\":\"a\",\"b\":1}",
                   "/b = 1\n/id = \"a\"\n");
}

static void the_most_precise_path_decides(void **state UNUSED)
{
    const char *item = "{\"a\":{\"b\":{\"c\":1,\"d\":2},\"e\":3},\"f\":4}";

    assert_entries(PATHS(PATH("/*"), PATH("/a/*")), item, "/f = 4\n");
    assert_entries(PATHS(PATH("/*") "," PATH("/a/b/*"), PATH("/a/*")), item,
                   "/a/b/c = 1\n/a/b/d = 2\n/f = 4\n");
    assert_entries(PATHS(PATH("/*") "," PATH("/a/b/*"), PATH("/a/*") "," PATH("/a/b/c/?")), item,
                   "/a/b/d = 2\n/f = 4\n");
    assert_entries(PATHS(PATH("/a/b/d/?"), PATH("/*")), item, "/a/b/d = 2\n");
    assert_entries(PATHS(PATH("/f/?"), PATH("/*") "," PATH("/f/*")), item, "/f = 4\n");
    assert_entries(PATHS(PATH("/*") "," PATH("/f/*"), PATH("/f/?")), "{\"f\":{\"x\":1}}",
                   "/f/x = 1\n");
}

static void elements_are_named_by_brackets(void **state UNUSED)
{
    const char *item = "{\"a\":[{\"b\":1,\"c\":2},{\"b\":3},[4],5]}";

    assert_entries(PATHS(PATH("/a/[]/*"), PATH("/*")), item,
                   "/a/[] = 5\n/a/[]/[] = 4\n/a/[]/b = 1\n/a/[]/b = 3\n/a/[]/c = 2\n");
    assert_entries(PATHS(PATH("/*"), PATH("/a/[]/b/?")), item,
                   "/a/[] = 5\n/a/[]/[] = 4\n/a/[]/c = 2\n");
    assert_entries(PATHS(PATH("/*"), PATH("/a/b/?")), "{\"a\":[{\"b\":1}]}", "/a/[]/b = 1\n");
}

static void a_scalar_included_by_name_is_indexed_when_it_is_missing(void **state UNUSED)
{
    const char *policy = PATHS(PATH("/a/b/?") "," PATH("/l/[]/x/?"), PATH("/*"));

    assert_entries(policy, "{}", "/a/b = undefined\n");
    assert_entries(policy, "{\"a\":1}", "/a/b = undefined\n");
    assert_entries(policy, "{\"a\":{\"c\":1}}", "/a/b = undefined\n");
    assert_entries(policy, "{\"a\":{\"b\":null}}", "/a/b = null\n");
    assert_entries(policy, "{\"a\":{\"b\":[]}}", "");
    assert_entries(policy, "{\"a\":[{\"b\":2}]}", "/a/b = undefined\n");
    for (int i = 0; i < 3; i++) {
        static const char *const others[] = {"{}", "7", "[]"};
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct slice item =
            arena_printf(arena, "{\"a\":{\"b\":1},\"l\":[{\"x\":1},%s]}", others[i]);

        assert_entries(policy, arena_text(arena, item),
                       "/a/b = 1\n/l/[]/x = undefined\n/l/[]/x = 1\n");
    }
}

static void composites_have_an_entry_for_every_item(void **state UNUSED)
{
    const char *policy =
        "{\"includedPaths\":[],\"excludedPaths\":[{\"path\":\"/*\"}],\"compositeIndexes\":"
        "[[{\"path\":\"/a\"},{\"path\":\"/b/c\",\"order\":\"descending\"}]]}";

    assert_entries(policy, "{\"a\":1,\"b\":{\"c\":\"x\"}}", "(/a asc, /b/c desc) = 1, \"x\"\n");
    assert_entries(policy, "{\"b\":[1]}", "(/a asc, /b/c desc) = undefined, undefined\n");
    assert_entries(policy, "{\"a\":[1],\"b\":{\"c\":{\"z\":1}}}",
                   "(/a asc, /b/c desc) = array, object\n");
}

static void tuples_have_an_entry_for_every_element(void **state UNUSED)
{
    const char *policy = PATHS(PATH("/e/[]/{n, c/d}/?") "," PATH("/{x, y}/?"), PATH("/*"));

    assert_entries(policy, "{\"x\":1,\"e\":[{\"n\":1,\"c\":{\"d\":2}},{\"n\":3},4]}",
                   "/{x, y} = 1, undefined\n"
                   "/e/[]/{n, c/d} = undefined, undefined\n"
                   "/e/[]/{n, c/d} = 1, 2\n"
                   "/e/[]/{n, c/d} = 3, undefined\n");
}

/* --- Bytes ----------------------------------------------------------------------------------- */

static struct slice prefix_of(struct arena *arena, const char *text, bool below)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_path path;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(document_path_parse(slice_of_text(text), DOCUMENT_PATH_INDEX, arena, &path, &err),
              &err);
    if (below)
        index_path_append_below(&path, &buf);
    else
        index_path_append(&path, &buf);
    return arena_copy(arena, buf_slice(&buf));
}

/* How many of the entries begin so; they must be next to each other. */
static size_t count_of(const struct index_entry *entries, size_t count, struct slice prefix)
{
    size_t found = 0, last = 0;

    for (size_t i = 0; i < count; i++) {
        if (!slice_starts_with(entries[i].bytes, prefix))
            continue;
        if (found++ && last + 1 != i)
            fail_msg("entries of a path are not together");
        last = i;
    }
    return found;
}

static void entries_of_a_path_and_below_it_are_together(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice item = document_of(
        arena, "{\"a\":{\"b\":1,\"\":2,\"\\u0001\":3,\"\\u0002\":4},\"a\\u0001\":5,\"ab\":6,"
               "\"l\":[1,2,{\"a\":3}],\"\":7,\"a\\u0001b\":8,\"\\u0002\\u0004\":9}");
    struct index_entry *entries;
    size_t count;
    struct error err;

    assert_ok(index_entries(policy_of(arena, NULL), item, arena, &entries, &count, &err), &err);
    assert_int_equal(count, 12);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/a", false)), 0);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/a", true)), 4);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/a/b", false)), 1);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/a/\"\"", false)), 1);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/a/\"\1\"", false)), 1);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/\"a\1\"", false)), 1);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/ab", false)), 1);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/\"\"", false)), 1);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/\"\2\4\"", false)), 1);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/l/[]", false)), 2);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/l", true)), 3);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/*", true)), 12);
}

static void bytes_are_those_of_format_version_1(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    static const uint8_t expected[] = {'a', 1, 2, 3, 1, 'b', 0};
    struct slice item = document_of(arena, "{\"a\":[{\"b\":\"x\"}]}");
    CLEANUP(buf_done) struct buf whole;
    struct document_value value = document_string(SLICE("x"));
    struct index_entry *entries;
    size_t count;
    struct error err;

    buf_init(&whole, 100);
    buf_append(&whole, expected, sizeof expected);
    document_key_append(DOCUMENT_ORDER_SQL, &value, &whole);
    assert_ok(index_entries(policy_of(arena, NULL), item, arena, &entries, &count, &err), &err);
    assert_int_equal(count, 1);
    assert_true(slice_equal(entries[0].bytes, buf_slice(&whole)));
    assert_true(
        slice_equal(prefix_of(arena, "/a/[]/b", false), slice_of(expected, sizeof expected)));
}

static void descending_members_sort_backwards(void **state UNUSED)
{
    static const char *const sorted[] = {
        "{\"a\":1,\"b\":\"xa\"}", "{\"a\":1,\"b\":\"x\"}", "{\"a\":1,\"b\":2}", "{\"a\":1}",
        "{\"a\":2,\"b\":7}",      "{\"a\":2,\"b\":-7}",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct index_policy *policy =
        policy_of(arena, "{\"excludedPaths\":[{\"path\":\"/*\"}],\"compositeIndexes\":"
                         "[[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"descending\"}]]}");
    struct slice before = SLICE_NONE;

    for (size_t i = 0; i < ARRAY_LEN(sorted); i++) {
        struct index_entry *entries;
        size_t count;
        struct error err;

        assert_ok(
            index_entries(policy, document_of(arena, sorted[i]), arena, &entries, &count, &err),
            &err);
        assert_int_equal(count, 1);
        (void)index_policy_composites(policy, &count);
        assert_true(
            slice_starts_with(entries[0].bytes, index_policy_composites(policy, &count)[0].prefix));
        assert_true(slice_compare(before, entries[0].bytes) < 0);
        before = entries[0].bytes;
    }
}

static char *repeated(struct arena *arena, char c, size_t count)
{
    char *text = arena_alloc(arena, count + 1);

    memset(text, c, count);
    text[count] = 0;
    return text;
}

static void long_values_are_cut(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    char *item =
        arena_text(arena, arena_printf(arena, "{\"a\":\"%s\"}", repeated(arena, 'x', 300)));
    char *text = entries_text(arena, policy_of(arena, NULL), document_of(arena, item));

    assert_string_equal(text, arena_text(arena, arena_printf(arena, "/a = \"%s\"...\n",
                                                             repeated(arena, 'x', 255))));
}

static void long_paths_end_in_a_hash(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    char *name = repeated(arena, 'n', INDEX_PATH_MAX - 5);
    char *item = arena_text(
        arena,
        arena_printf(arena, "{\"b\":{\"%s\":1,\"%sx\":2,\"%sxyz\":3,\"%sy\":{\"a\":[4],\"b\":5}}}",
                     name, name, name, name));
    struct index_entry *entries;
    size_t count;
    struct error err;

    assert_ok(index_entries(policy_of(arena, NULL), document_of(arena, item), arena, &entries,
                            &count, &err),
              &err);
    assert_int_equal(count, 5);
    assert_int_equal(count_of(entries, count, prefix_of(arena, "/b", true)), 5);
    for (size_t i = 0; i < count; i++)
        assert_true(entries[i].bytes.len < INDEX_PATH_MAX + 30);
    name = arena_text(arena, arena_printf(arena, "/b/%sy/a/[]", name));
    assert_int_equal(count_of(entries, count, prefix_of(arena, name, false)), 1);
    assert_contains(entries_text(arena, policy_of(arena, NULL), document_of(arena, item)), "/b/#");
}

static void long_paths_differ_where_any_segment_does(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    char *name = repeated(arena, 'n', INDEX_PATH_MAX);
    char *item = arena_text(
        arena, arena_printf(arena, "{\"%s1\":{\"a\":1},\"%s2\":{\"a\":1},\"%s3\":[{\"a\":1}]}",
                            name, name, name));
    struct index_entry *entries;
    size_t count;
    struct error err;

    assert_ok(index_entries(policy_of(arena, NULL), document_of(arena, item), arena, &entries,
                            &count, &err),
              &err);
    assert_int_equal(count, 3);
}

static void long_composites_are_known_by_their_hash(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const char *m = repeated(arena, 'm', INDEX_PATH_MAX / 2);
    const char *n = repeated(arena, 'n', INDEX_PATH_MAX / 2);
    struct slice policy = arena_printf(
        arena,
        "{\"includedPaths\":[{\"path\":\"/{%s, %s}/?\"}],\"excludedPaths\":[{\"path\":\"/*\"}],"
        "\"compositeIndexes\":[[{\"path\":\"/%s\"},{\"path\":\"/%s\",\"order\":\"descending\"}]]}",
        m, n, m, n);
    struct slice item = arena_printf(arena, "{\"%s\":1,\"%s\":2}", m, n);
    char *text = entries_text(arena, policy_of(arena, arena_text(arena, policy)),
                              document_of(arena, arena_text(arena, item)));

    assert_contains(text, "(asc, desc) = 1, 2\n");
    assert_contains(text, "/{, } = 1, 2\n");
}

static struct slice array_item(struct arena *arena, int elements, int different)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    buf_append_text(&buf, "{\"l\":[");
    for (int i = 0; i < elements; i++)
        buf_printf(&buf, "%s%d", i ? "," : "", i % different);
    buf_append_text(&buf, "]}");
    return document_of(arena, arena_text(arena, buf_slice(&buf)));
}

static void the_limit_counts_different_entries(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct index_policy *policy = policy_of(arena, NULL);
    const int max = INDEX_ENTRIES_MAX;
    struct index_entry *entries;
    size_t count;
    struct error err;

    assert_ok(index_entries(policy, array_item(arena, 3 * max, max), arena, &entries, &count, &err),
              &err);
    assert_int_equal(count, max);
    assert_ok(index_entries(policy, array_item(arena, 3 * max, 7), arena, &entries, &count, &err),
              &err);
    assert_int_equal(count, 7);
    assert_fails(
        index_entries(policy, array_item(arena, 3 * max, max + 1), arena, &entries, &count, &err),
        &err, ERROR_TOO_LARGE);
}

static void broken_bytes_are_told_from_entries(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;
    const struct index_policy *policy = policy_of(
        arena,
        "{\"includedPaths\":[{\"path\":\"/*\"},{\"path\":\"/l/[]/{x, y}/?\"}],"
        "\"compositeIndexes\":[[{\"path\":\"/a\"},{\"path\":\"/b\",\"order\":\"descending\"}]]}");
    struct slice item =
        document_of(arena, "{\"a\":\"text\",\"b\":{\"c\":1.5},\"l\":[{\"x\":1},[]]}");
    struct index_entry *entries;
    size_t count;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    assert_ok(index_entries(policy, item, arena, &entries, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        for (size_t len = 0; len < entries[i].bytes.len; len++) {
            struct slice part = slice_first(entries[i].bytes, len);

            assert_fails(index_entry_print(&part, &buf, &err), &err, ERROR_STORE_CORRUPT);
            assert_int_equal(part.len, len);
            assert_int_equal(buf.len, 0);
        }
    }
}

/* --- A model --------------------------------------------------------------------------------- */

/* Every leaf of the item is held against every path of the policy; the entries come as lines of
 * text. A failure prints the seed; CONTAINER_SEED=n tries that one again. */
enum { ROWS_MAX = 8, STEPS_MAX = 5, LINES_MAX = 4000 };

/* A path: names, NULL for []. */
struct steps {
    const char *names[STEPS_MAX * 2];
    size_t count;
};

struct row {
    struct steps steps;
    bool scalar, included;
};

struct model {
    struct arena *arena;
    struct row rows[ROWS_MAX];
    size_t row_count;
    struct steps composite[2], tuple_place, tuple[2];
    bool with_composite, with_tuple;
    const char *lines[LINES_MAX];
    size_t line_count;
};

static const char *path_text(struct arena *arena, const struct steps *steps)
{
    struct document_segment segments[STEPS_MAX * 2] = {0};
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < steps->count; i++) {
        segments[i].kind = steps->names[i] ? DOCUMENT_SEGMENT_PROPERTY : DOCUMENT_SEGMENT_ELEMENTS;
        segments[i].name = slice_of_text(steps->names[i] ? steps->names[i] : "");
    }
    document_path_append(&(struct document_path){.segments = segments, .count = steps->count},
                         &buf);
    return arena_text(arena, buf_slice(&buf));
}

static const char *value_text(struct arena *arena, const struct document_value *value)
{
    CLEANUP(buf_done) struct buf key, json;
    struct document_value read;
    struct slice bytes;
    struct error err;

    buf_init(&key, BUF_DEFAULT_MAX);
    buf_init(&json, BUF_DEFAULT_MAX);
    if (value->type == DOCUMENT_UNDEFINED)
        return "undefined";
    if (document_key_append_cut(DOCUMENT_ORDER_SQL, value, INDEX_VALUE_MAX, &key)) {
        for (size_t i = 0; i < key.len; i++)
            buf_printf(&json, "%02x", key.data[i]);
        BUF_APPEND(&json, "...");
        return arena_text(arena, buf_slice(&json));
    }
    if (value->type == DOCUMENT_ARRAY)
        return "array";
    if (value->type == DOCUMENT_OBJECT)
        return "object";
    bytes = buf_slice(&key);
    assert_ok(document_key_read(DOCUMENT_ORDER_SQL, &bytes, arena, &read, &err), &err);
    document_json_write_value(&read, &json);
    return arena_text(arena, buf_slice(&json));
}

static void model_line(struct model *m, const char *path, const char *value)
{
    assert_true(m->line_count < LINES_MAX);
    m->lines[m->line_count++] =
        arena_text(m->arena, arena_printf(m->arena, "%s = %s", path, value));
}

static bool steps_begin(const struct steps *steps, const struct steps *beginning)
{
    for (size_t i = 0; i < beginning->count; i++) {
        if (i >= steps->count || !steps->names[i] != !beginning->names[i] ||
            (steps->names[i] && strcmp(steps->names[i], beginning->names[i]) != 0))
            return false;
    }
    return true;
}

static bool model_includes(const struct model *m, const struct steps *at, bool scalar)
{
    size_t best = 0;
    bool included = false;

    if (scalar && at->count == 1 && at->names[0] && strcmp(at->names[0], "id") == 0)
        return true;
    for (size_t i = 0; i < m->row_count; i++) {
        const struct row *row = &m->rows[i];
        size_t precision = 1 + 2 * row->steps.count + row->scalar;

        if (row->scalar && (!scalar || row->steps.count != at->count))
            continue;
        if (steps_begin(at, &row->steps) && precision > best) {
            best = precision;
            included = row->included;
        }
    }
    return included;
}

static void model_leaves(struct model *m, struct steps *at, const struct document_value *value)
{
    bool nested = value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY;
    struct document_iter iter;

    if (at->count && (!nested || document_count(value->document) == 0) &&
        model_includes(m, at, !nested))
        model_line(m, path_text(m->arena, at), value_text(m->arena, value));
    if (!nested)
        return;
    document_iter_init(&iter, value->document);
    while (document_iter_next(&iter)) {
        at->names[at->count++] =
            value->type == DOCUMENT_OBJECT ? arena_text(m->arena, iter.key) : NULL;
        model_leaves(m, at, &iter.value);
        at->count--;
    }
}

/* Calls line for every value the steps lead to, undefined ones too. */
static void model_places(struct model *m, struct document_value value, const struct steps *steps,
                         size_t step,
                         void (*line)(struct model *m, const struct steps *steps,
                                      const struct document_value *value))
{
    struct document_value next = document_undefined();
    struct document_iter iter;

    if (step == steps->count) {
        line(m, steps, &value);
    } else if (steps->names[step]) {
        if (value.type == DOCUMENT_OBJECT &&
            !document_find(value.document, slice_of_text(steps->names[step]), &next))
            next = document_undefined();
        model_places(m, next, steps, step + 1, line);
    } else if (value.type == DOCUMENT_ARRAY) {
        document_iter_init(&iter, value.document);
        while (document_iter_next(&iter))
            model_places(m, iter.value, steps, step + 1, line);
    }
}

static void line_if_undefined(struct model *m, const struct steps *steps,
                              const struct document_value *value)
{
    if (value->type == DOCUMENT_UNDEFINED)
        model_line(m, path_text(m->arena, steps), "undefined");
}

static void keep_value(struct model *m, const struct steps *steps UNUSED,
                       const struct document_value *value)
{
    model_line(m, "", value_text(m->arena, value));
}

/* The value at steps without [], as text: taken back from the line it made. */
static const char *model_value(struct model *m, struct document_value from,
                               const struct steps *steps)
{
    model_places(m, from, steps, 0, keep_value);
    return m->lines[--m->line_count] + 3;
}

static void line_of_tuple(struct model *m, const struct steps *steps,
                          const struct document_value *value)
{
    const char *first = model_value(m, *value, &m->tuple[0]);
    const char *second = model_value(m, *value, &m->tuple[1]);
    struct slice path =
        arena_printf(m->arena, "%s/{%s, %s}", path_text(m->arena, steps),
                     path_text(m->arena, &m->tuple[0]) + 1, path_text(m->arena, &m->tuple[1]) + 1);

    model_line(m, arena_text(m->arena, path),
               arena_text(m->arena, arena_printf(m->arena, "%s, %s", first, second)));
}

static void line_of_composite(struct model *m, struct document_value root)
{
    const char *first = model_value(m, root, &m->composite[0]);
    const char *second = model_value(m, root, &m->composite[1]);
    struct slice path =
        arena_printf(m->arena, "(%s asc, %s desc)", path_text(m->arena, &m->composite[0]),
                     path_text(m->arena, &m->composite[1]));

    model_line(m, arena_text(m->arena, path),
               arena_text(m->arena, arena_printf(m->arena, "%s, %s", first, second)));
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *lines_joined(struct arena *arena, const char **lines, size_t count)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    qsort(lines, count, sizeof *lines, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i && strcmp(lines[i - 1], lines[i]) == 0)
            continue;
        buf_append_text(&buf, lines[i]);
        buf_append_byte(&buf, '\n');
    }
    return arena_text(arena, buf_slice(&buf));
}

static char *model_text(struct model *m, struct slice item)
{
    struct document_value root = document_object(item);
    struct steps at = {0};

    m->line_count = 0;
    model_leaves(m, &at, &root);
    for (size_t i = 0; i < m->row_count; i++) {
        if (m->rows[i].scalar && m->rows[i].included && m->rows[i].steps.count)
            model_places(m, root, &m->rows[i].steps, 0, line_if_undefined);
    }
    if (m->with_composite)
        line_of_composite(m, root);
    if (m->with_tuple)
        model_places(m, root, &m->tuple_place, 0, line_of_tuple);
    return lines_joined(m->arena, m->lines, m->line_count);
}

static const char *name_random(struct random *random)
{
    static const char *const names[] = {"a", "b", "id", "x y", "\1"};

    return names[random_below(random, ARRAY_LEN(names))];
}

static struct steps steps_random(struct random *random, size_t least, bool elements)
{
    struct steps steps = {.count = least + random_below(random, STEPS_MAX - least)};

    for (size_t i = 0; i < steps.count; i++)
        steps.names[i] = elements && random_below(random, 3) == 0 ? NULL : name_random(random);
    return steps;
}

static void value_append_random(struct random *random, struct arena *arena, struct slice key,
                                unsigned depth, struct buf *buf)
{
    static const char *const names[] = {"a", "b", "id", "x y", "\1", "z"};
    size_t kind = random_below(random, depth ? 7 : 3), begin, count = random_below(random, 4);
    char index[DOCUMENT_INDEX_SIZE];

    if (kind < 3) {
        struct document_value value = value_random(random, arena, 0);

        document_append(buf, key, &value);
    } else if (kind < 5) {
        begin = document_append_array_begin(buf, key);
        for (size_t i = 0; i < count; i++)
            value_append_random(random, arena, document_index_key((uint32_t)i, index), depth - 1,
                                buf);
        document_end(buf, begin);
    } else {
        begin = document_append_object_begin(buf, key);
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            if (random_below(random, 2))
                value_append_random(random, arena, slice_of_text(names[i]), depth - 1, buf);
        }
        document_end(buf, begin);
    }
}

static struct slice item_random(struct random *random, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value item = document_null();

    buf_init(&buf, BUF_DEFAULT_MAX);
    while (item.type != DOCUMENT_OBJECT) {
        size_t begin;

        buf_clear(&buf);
        begin = document_begin(&buf);
        value_append_random(random, arena, SLICE("item"), 5, &buf);
        document_end(&buf, begin);
        assert_true(document_find(buf_slice(&buf), SLICE("item"), &item));
    }
    return arena_copy(arena, item.document);
}

static bool model_has(const struct model *m, const struct row *row)
{
    for (size_t i = 0; i < m->row_count; i++) {
        if (m->rows[i].scalar == row->scalar && m->rows[i].steps.count == row->steps.count &&
            steps_begin(&m->rows[i].steps, &row->steps))
            return true;
    }
    return false;
}

static void model_random(struct random *random, struct model *m)
{
    m->row_count = 1;
    m->rows[0] = (struct row){.included = random_below(random, 2)};
    for (size_t count = random_below(random, ROWS_MAX); m->row_count < count;) {
        struct row row = {.steps = steps_random(random, 1, true),
                          .scalar = random_below(random, 2),
                          .included = random_below(random, 2)};

        if (!model_has(m, &row))
            m->rows[m->row_count++] = row;
    }
    m->with_composite = random_below(random, 2);
    m->composite[0] = steps_random(random, 1, false);
    m->composite[1] = steps_random(random, 1, false);
    m->with_tuple = random_below(random, 2);
    m->tuple_place = steps_random(random, 0, true);
    m->tuple[0] = steps_random(random, 1, false);
    m->tuple[1] = steps_random(random, 1, false);
}

static void rows_append(const struct model *m, struct slice name, bool included, struct buf *buf)
{
    size_t list = document_append_array_begin(buf, name), row;

    for (size_t i = 0; i < m->row_count; i++) {
        if (m->rows[i].included != included)
            continue;
        row = document_append_object_begin(buf, SLICE("0"));
        document_append_string(buf, SLICE("path"),
                               arena_printf(m->arena, "%s%s",
                                            path_text(m->arena, &m->rows[i].steps),
                                            m->rows[i].scalar ? "/?" : "/*"));
        document_end(buf, row);
    }
    if (included && m->with_tuple) {
        row = document_append_object_begin(buf, SLICE("0"));
        document_append_string(buf, SLICE("path"),
                               arena_printf(m->arena, "%s/{%s, %s}/?",
                                            path_text(m->arena, &m->tuple_place),
                                            path_text(m->arena, &m->tuple[0]) + 1,
                                            path_text(m->arena, &m->tuple[1]) + 1));
        document_end(buf, row);
    }
    document_end(buf, list);
}

static void composite_append(const struct model *m, struct buf *buf)
{
    size_t list = document_append_array_begin(buf, SLICE("compositeIndexes"));
    size_t index = document_append_array_begin(buf, SLICE("0"));

    for (size_t i = 0; i < 2; i++) {
        size_t path = document_append_object_begin(buf, SLICE("0"));

        document_append_string(buf, SLICE("path"),
                               slice_of_text(path_text(m->arena, &m->composite[i])));
        document_append_string(buf, SLICE("order"), i ? SLICE("descending") : SLICE("ascending"));
        document_end(buf, path);
    }
    document_end(buf, index);
    document_end(buf, list);
}

static struct slice model_policy(const struct model *m)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    rows_append(m, SLICE("includedPaths"), true, &buf);
    rows_append(m, SLICE("excludedPaths"), false, &buf);
    if (m->with_composite)
        composite_append(m, &buf);
    document_end(&buf, begin);
    return arena_copy(m->arena, buf_slice(&buf));
}

static char *entries_sorted_text(struct arena *arena, const struct index_policy *policy,
                                 struct slice item)
{
    char *text = entries_text(arena, policy, item), *at = text;
    const char **lines = ARENA_ARRAY(arena, const char *, LINES_MAX);
    size_t count = 0;

    for (char *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = 0;
        assert_true(count < LINES_MAX);
        lines[count++] = at;
    }
    return lines_joined(arena, lines, count);
}

/* What covers says of a path is what becomes of a value there. */
static void compare_covers(struct random *random, const struct model *m,
                           const struct index_policy *policy, uint64_t seed)
{
    struct steps at = steps_random(random, 1, true), below = steps_random(random, 1, true);
    struct document_segment segments[STEPS_MAX];
    struct document_path path = {.segments = segments, .count = at.count};
    bool nested = false;

    for (size_t i = 0; i < at.count; i++)
        segments[i] = (struct document_segment){
            .kind = at.names[i] ? DOCUMENT_SEGMENT_PROPERTY : DOCUMENT_SEGMENT_ELEMENTS,
            .name = slice_of_text(at.names[i] ? at.names[i] : "")};
    if (index_policy_covers(policy, &path) != model_includes(m, &at, true))
        fail_msg("seed %llu: covers %s", (unsigned long long)seed, path_text(m->arena, &at));
    path.end = DOCUMENT_PATH_END_ALL;
    if (!index_policy_covers(policy, &path))
        return;
    for (size_t i = 0; i < below.count; i++, nested = !nested) {
        at.names[at.count++] = below.names[i];
        if (!model_includes(m, &at, nested))
            fail_msg("seed %llu: covers all above %s", (unsigned long long)seed,
                     path_text(m->arena, &at));
    }
}

static void compare_once(struct random *random, uint64_t seed)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;
    struct model *model = ARENA_NEW(arena, struct model);
    const struct index_policy *policy;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    model->arena = arena;
    model_random(random, model);
    assert_ok(index_policy_parse(model_policy(model), definition_names(DEFINITION_IDENTITY_ID),
                                 arena, &buf, &policy, &err),
              &err);
    for (int i = 0; i < 10; i++)
        compare_covers(random, model, policy, seed);
    for (int i = 0; i < 3; i++) {
        struct slice item = item_random(random, arena);
        char *got = entries_sorted_text(arena, policy, item), *expected = model_text(model, item);

        if (strcmp(got, expected) == 0)
            continue;
        buf_clear(&buf);
        document_json_write(model_policy(model), &buf);
        buf_append_byte(&buf, '\n');
        document_json_write(item, &buf);
        fail_msg("seed %llu:\n%s\ngot\n%s\nexpected\n%s", (unsigned long long)seed,
                 arena_text(arena, buf_slice(&buf)), got, expected);
    }
}

static void entries_are_those_of_the_model(void **state UNUSED)
{
    const char *text = getenv("CONTAINER_SEED");
    uint64_t seed;
    struct random random;

    if (!text || !slice_to_uint64(slice_of_text(text), &seed)) {
        random_secret(&seed, sizeof seed);
        seed >>= 20;
    }
    print_message("# seed %llu\n", (unsigned long long)seed);
    random_seed(&random, seed);
    for (int i = 0; i < 3000; i++)
        compare_once(&random, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_leaf_is_an_entry_by_default),
        cmocka_unit_test(nothing_but_id_is_indexed_when_the_mode_is_none),
        cmocka_unit_test(id_is_indexed_whatever_is_excluded),
        cmocka_unit_test(the_most_precise_path_decides),
        cmocka_unit_test(elements_are_named_by_brackets),
        cmocka_unit_test(a_scalar_included_by_name_is_indexed_when_it_is_missing),
        cmocka_unit_test(composites_have_an_entry_for_every_item),
        cmocka_unit_test(tuples_have_an_entry_for_every_element),
        cmocka_unit_test(entries_of_a_path_and_below_it_are_together),
        cmocka_unit_test(bytes_are_those_of_format_version_1),
        cmocka_unit_test(descending_members_sort_backwards),
        cmocka_unit_test(long_values_are_cut),
        cmocka_unit_test(long_paths_end_in_a_hash),
        cmocka_unit_test(long_paths_differ_where_any_segment_does),
        cmocka_unit_test(long_composites_are_known_by_their_hash),
        cmocka_unit_test(the_limit_counts_different_entries),
        cmocka_unit_test(broken_bytes_are_told_from_entries),
        cmocka_unit_test(entries_are_those_of_the_model),
    };
    return cmocka_run_group_tests_name("index/entries", tests, NULL, NULL);
}
