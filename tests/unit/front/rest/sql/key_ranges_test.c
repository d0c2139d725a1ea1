#include "front/rest/sql/key_ranges.h"

#include "fixture.h"

#include "document/json.h"
#include "partition/epk.h"
#include "partition/strategy.h"
#include "partition/synthetic.h"

#define HASH_V1 "{\"paths\":[\"/key\"]}"
#define HASH_V2 "{\"paths\":[\"/key\"],\"version\":2}"
#define RANGE "range {\"paths\":[\"/key\"],\"version\":2}"
#define RANGE_MULTI "range {\"paths\":[\"/a\",\"/b\",\"/c\"],\"kind\":\"MultiHash\",\"version\":2}"
#define NESTED "{\"paths\":[\"/a/\\\"b c\\\"\"],\"version\":2}"
#define JOINED                                                                                     \
    "{\"paths\":[\"/key\"],\"version\":2,\"synthetic\":{\"kind\":\"concatenation\",\"target\":"    \
    "\"/key\",\"sources\":[\"/a\",\"/b\"]}}"
#define RANDOM                                                                                     \
    "{\"paths\":[\"/key\"],\"version\":2,\"synthetic\":{\"kind\":\"randomSuffix\",\"target\":"     \
    "\"/key\",\"base\":\"/a\",\"suffixes\":3}}"
#define COMPUTED                                                                                   \
    "{\"paths\":[\"/key\"],\"version\":2,\"synthetic\":{\"kind\":\"computedSuffix\",\"target\":"   \
    "\"/key\",\"base\":\"/a\",\"hashed\":\"/b\",\"suffixes\":3}}"
#define MULTI "{\"paths\":[\"/a\",\"/b\",\"/c\"],\"kind\":\"MultiHash\",\"version\":2}"

static struct partition_definition definition_of(struct arena *arena, const char *json)
{
    struct partition_definition definition;
    bool range = !strncmp(json, "range ", 6);
    struct document_value synthetic;
    struct error err;

    json += range ? 6 : 0;
    assert_ok(partition_definition_read(document_of(arena, json), arena, &definition, &err), &err);
    if (range)
        definition.strategy = PARTITION_STRATEGY_RANGE;
    if (document_find(document_of(arena, json), SLICE("synthetic"), &synthetic))
        assert_ok(partition_synthetic_read(synthetic.document, &definition, true, arena,
                                           &definition.synthetic, &err),
                  &err);
    return definition;
}

/* The ranges, as hex: POINT, or MIN-MAX, each followed by a blank. */
static const char *ranges_of(struct arena *arena, const char *definition_json, const char *text,
                             const char *parameters)
{
    CLEANUP(buf_done) struct buf hex;
    struct partition_definition definition = definition_of(arena, definition_json);
    const struct query_key_range *ranges;
    size_t count;

    buf_init(&hex, BUF_DEFAULT_MAX);
    sql_key_ranges(resolved(arena, text, parameters), &definition, arena, &ranges, &count);
    for (size_t i = 0; i < count; i++) {
        partition_epk_hex(ranges[i].min, &hex);
        if (!ranges[i].point) {
            buf_append_byte(&hex, '-');
            partition_epk_hex(ranges[i].max, &hex);
        } else {
            assert_slice_equal(ranges[i].max, ranges[i].min);
        }
        buf_append_byte(&hex, ' ');
    }
    return arena_text(arena, buf_slice(&hex));
}

/* The points of keys given as a JSON array of arrays, sorted. */
static const char *points_of(struct arena *arena, const char *definition_json, const char *keys)
{
    CLEANUP(buf_done) struct buf hex;
    struct partition_definition definition = definition_of(arena, definition_json);
    struct slice points[16];
    struct document_iter iter;
    size_t count = 0;

    buf_init(&hex, BUF_DEFAULT_MAX);
    document_iter_init(&iter, value_of(arena, keys).document);
    while (document_iter_next(&iter)) {
        CLEANUP(buf_done) struct buf json, epk;
        struct partition_key key;
        struct error err;
        size_t at = count++;

        buf_init(&json, BUF_DEFAULT_MAX);
        buf_init(&epk, BUF_DEFAULT_MAX);
        document_json_write_value(&iter.value, &json);
        assert_ok(partition_key_parse(&definition, buf_slice(&json), PARTITION_KEY_WHOLE, arena,
                                      &key, &err),
                  &err);
        partition_route(&definition, &key, &epk);
        for (; at > 0 && slice_compare(points[at - 1], buf_slice(&epk)) > 0; at--)
            points[at] = points[at - 1];
        points[at] = arena_copy(arena, buf_slice(&epk));
    }
    for (size_t i = 0; i < count; i++) {
        partition_epk_hex(points[i], &hex);
        buf_append_byte(&hex, ' ');
    }
    return arena_text(arena, buf_slice(&hex));
}

#define ALL "-FF "

/* Routing keys of a range container are the bytes of its values: 18 is text, 14 a number. */
static void a_filter_bounds_the_keys_of_a_range_container(void **state UNUSED)
{
    static const struct {
        const char *filter, *ranges;
    } known[] = {
        {"c.key >= 'b' AND c.key < 'd'", "186200-186400 "},
        {"'b' <= c.key AND 'd' > c.key", "186200-186400 "},
        {"c.key > 'b' AND c.key <= 'd'", "186201-186401 "},
        {"c.key BETWEEN 'b' AND 'd'", "186200-186401 "},
        {"c.key NOT BETWEEN 'b' AND 'd'", "18-186200 186401-19 "},
        {"NOT (c.key < 'b')", "186200-19 "},
        {"STARTSWITH(c.key, 'ab')", "186162-186163 "},
        {"STARTSWITH(c.key, 'ab', true)", ALL},
        {"c.key LIKE 'ab%'", "186162-186163 "},
        {"c.key LIKE '%ab'", "18-19 "},
        {"c.key = 'a' OR c.key > 'b'", "186100 186201-19 "},
        {"c.key > 'a' OR c.key > 'b'", "186101-19 "},
        {"c.key > 'd' AND c.key < 'b'", ""},
        {"c.key > 'b' AND c.key = 'a'", "186100 "},
        {"c.key < 'b' AND c.x > 1", "18-186200 "},
        {"c.key < 'b' OR c.x > 1", ALL},
        {"c.key >= true", "1001-11 "},
        {"c.key > {}", ""},
        {"c.x > 'b'", ALL},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const char *text =
            arena_text(arena, arena_printf(arena, "SELECT * FROM c WHERE %s", known[i].filter));
        const char *found = ranges_of(arena, RANGE, text, NULL);

        if (strcmp(found, known[i].ranges) != 0)
            fail_msg("%s: %s, not %s", known[i].filter, found, known[i].ranges);
    }
    assert_string_equal(ranges_of(arena, RANGE_MULTI,
                                  "SELECT * FROM c WHERE c.a = 'x' AND c.b > 'y' AND c.c = 1",
                                  NULL),
                        "187800187901-18780019 ");
}

static void a_filter_pins_the_key_to_points(void **state UNUSED)
{
    static const struct {
        const char *filter, *keys;
    } known[] = {
        {"c.key = 5", "[[5]]"},
        {"5 = c.key", "[[5]]"},
        {"c['key'] = 5.0", "[[5]]"},
        {"c.key = -5", "[[-5]]"},
        {"c.key = +5", "[[5]]"},
        {"c.key = 0", "[[0]]"},
        {"c.key = -0.0", "[[0]]"},
        {"c.key = 'a'", "[[\"a\"]]"},
        {"c.key = null", "[[null]]"},
        {"c.key = true", "[[true]]"},
        {"c.key = @p", "[[7]]"},
        {"c.key IN (1, 2)", "[[1],[2]]"},
        {"c.key IN (1, 2, 1.0)", "[[1],[2]]"},
        {"c.key = 1 OR c.key = 2", "[[1],[2]]"},
        {"c.key = 1 OR c.key = 1", "[[1]]"},
        {"ARRAY_CONTAINS([1, 2], c.key)", "[[1],[2]]"},
        {"ARRAY_CONTAINS(@list, c.key)", "[[\"x\"],[\"y\"]]"},
        {"c.key", "[[true]]"},
        {"NOT c.key", "[[false]]"},
        {"NOT NOT c.key", "[[true]]"},
        {"IS_NULL(c.key)", "[[null]]"},
        {"IS_BOOL(c.key)", "[[false],[true]]"},
        {"ABS(c.key) = 1", "[[-1],[1]]"},
        {"1 = ABS(c.key)", "[[-1],[1]]"},
        {"ABS(c.key) = 0", "[[0]]"},
        {"c.key = []", "[[{}]]"},
        {"c.key = {}", "[[{}]]"},
        {"c.key = {'a': c.b}", "[[{}]]"},
        {"c.key = @list", "[[{}]]"},
        {"c.key LIKE 'a!%' ESCAPE '!'", "[[\"a%\"]]"},
        {"c.key LIKE 'abc'", "[[\"abc\"]]"},
        {"c.key LIKE '!!a!_' ESCAPE '!'", "[[\"!a_\"]]"},
        {"c.key = 1 AND c.x > 2", "[[1]]"},
        {"c.x > 2 AND c.key = 1 AND c.y", "[[1]]"},
        {"c.key = 1 AND (c.x = 1 OR c.y = 2)", "[[1]]"},
        {"(c.key = 1 AND c.x = 1) OR (c.key = 2 AND c.x = 2)", "[[1],[2]]"},
        {"c.key IN (1, 2, 3) AND c.key IN (2, 3, 4)", "[[2],[3]]"},
        {"NOT (c.key != 5)", "[[5]]"},
        {"NOT (c.key != 1 AND c.key != 2)", "[[1],[2]]"},
        {"NOT (c.key NOT IN (1, 2))", "[[1],[2]]"},
        {"NOT (c.key NOT LIKE 'a')", "[[\"a\"]]"},
        {"c.key = 1 AND true", "[[1]]"},
        {"c.key = 1 OR false", "[[1]]"},
        {"c.key = 1 AND c.x = c.key", "[[1]]"},
    };
    static const char *const kinds[] = {HASH_V1, HASH_V2};
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t kind = 0; kind < ARRAY_LEN(kinds); kind++) {
        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
            const char *text =
                (char *)arena_printf(arena, "SELECT * FROM c WHERE %s%c", known[i].filter, 0).data;
            const char *got = ranges_of(arena, kinds[kind], text,
                                        "[{\"name\":\"@p\",\"value\":7},"
                                        "{\"name\":\"@list\",\"value\":[\"x\",\"y\"]}]");

            if (strcmp(got, points_of(arena, kinds[kind], known[i].keys)) != 0)
                fail_msg("%s: %s", known[i].filter, got);
        }
    }
}

static void known_answers_are_those_of_the_service(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(ranges_of(arena, HASH_V2, "SELECT * FROM c WHERE c.key = 5", NULL),
                        "19C08621B135968252FB34B4CF66F811 ");
    assert_string_equal(ranges_of(arena, HASH_V2, "SELECT * FROM c WHERE c.key = 'redmond'", NULL),
                        "22E342F38A486A088463DFF7838A5963 ");
    assert_string_equal(ranges_of(arena, HASH_V1, "SELECT * FROM c WHERE c.key = 'redmond'", NULL),
                        "05C1EFE313830C087366656E706F6500 ");
    assert_string_equal(ranges_of(arena, HASH_V2, "SELECT * FROM c WHERE c.key = []", NULL),
                        "11622DAA78F835834610ABE56EFF5CB5 ");
}

static void other_filters_ask_everywhere(void **state UNUSED)
{
    static const char *const known[] = {
        "SELECT * FROM c",
        "SELECT * FROM c WHERE true",
        "SELECT * FROM c WHERE c.key > 5",
        "SELECT * FROM c WHERE c.key BETWEEN 5 AND 5",
        "SELECT * FROM c WHERE c.key != 5",
        "SELECT * FROM c WHERE NOT (c.key = 5)",
        "SELECT * FROM c WHERE c.key NOT IN (1)",
        "SELECT * FROM c WHERE c.key LIKE 'a%'",
        "SELECT * FROM c WHERE c.key LIKE 'a_'",
        "SELECT * FROM c WHERE c.key LIKE '[ab]'",
        "SELECT * FROM c WHERE c.key LIKE c.x",
        "SELECT * FROM c WHERE IS_DEFINED(c.key)",
        "SELECT * FROM c WHERE IS_STRING(c.key)",
        "SELECT * FROM c WHERE IS_NUMBER(c.key)",
        "SELECT * FROM c WHERE IS_ARRAY(c.key)",
        "SELECT * FROM c WHERE IS_OBJECT(c.key)",
        "SELECT * FROM c WHERE IS_PRIMITIVE(c.key)",
        "SELECT * FROM c WHERE NOT IS_NULL(c.key)",
        "SELECT * FROM c WHERE STARTSWITH(c.key, 'a')",
        "SELECT * FROM c WHERE LOWER(c.key) = 'a'",
        "SELECT * FROM c WHERE c.key = c.other",
        "SELECT * FROM c WHERE c.key = 1 OR c.other = 2",
        "SELECT * FROM c WHERE c.key = 1 OR true",
        "SELECT * FROM c WHERE c.key.sub = 1",
        "SELECT * FROM c WHERE c.sub.key = 1",
        "SELECT * FROM c WHERE c.Key = 1",
        "SELECT * FROM c WHERE c.key IN (1, c.x)",
        "SELECT * FROM c WHERE c.key = 1 ? true : false",
        "SELECT * FROM c WHERE (c.key = 1) ?? true",
        "SELECT * FROM c WHERE ARRAY_CONTAINS([1], c.key, true)",
        "SELECT * FROM c WHERE ARRAY_CONTAINS(c.key, 1)",
        "SELECT * FROM c WHERE EXISTS(SELECT 1 WHERE c.key = 1)",
        "SELECT * FROM (SELECT * FROM c WHERE c.key = 1) d",
        "SELECT * FROM (SELECT VALUE c FROM c) d WHERE d.key = 1",
        "SELECT * FROM d IN c.list WHERE d.key = 1",
        "SELECT VALUE c FROM c JOIN (SELECT VALUE t FROM t IN c.t WHERE c.key = 1) t",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(ranges_of(arena, HASH_V2, known[i], NULL), ALL) != 0)
            fail_msg("%s: %s", known[i], ranges_of(arena, HASH_V2, known[i], NULL));
}

static void contradictions_ask_nowhere(void **state UNUSED)
{
    static const char *const known[] = {
        "SELECT 1",
        "SELECT * FROM c WHERE false",
        "SELECT * FROM c WHERE 1",
        "SELECT * FROM c WHERE null",
        "SELECT * FROM c WHERE undefined",
        "SELECT * FROM c WHERE NOT true",
        "SELECT * FROM c WHERE c.key = 1 AND c.key = 2",
        "SELECT * FROM c WHERE c.key = 1 AND c.key IN (2, 3)",
        "SELECT * FROM c WHERE c.key = 1 AND NOT c.key",
        "SELECT * FROM c WHERE c.key AND NOT c.key",
        "SELECT * FROM c WHERE c.key = 1 AND IS_NULL(c.key)",
        "SELECT * FROM c WHERE c.key = undefined",
        "SELECT * FROM c WHERE ABS(c.key) = -1",
        "SELECT * FROM c WHERE ABS(c.key) = 'a'",
        "SELECT * FROM c WHERE c.x = 1 AND false",
        "SELECT * FROM c WHERE -c.key",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(ranges_of(arena, HASH_V2, known[i], NULL), "") != 0)
            fail_msg("%s: %s", known[i], ranges_of(arena, HASH_V2, known[i], NULL));
}

static void the_key_is_known_through_aliases_and_subpaths(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const char *point = points_of(arena, NESTED, "[[1]]");

    assert_string_equal(ranges_of(arena, NESTED, "SELECT * FROM c WHERE c.a['b c'] = 1", NULL),
                        point);
    assert_string_equal(ranges_of(arena, NESTED, "SELECT * FROM c.a AS x WHERE x['b c'] = 1", NULL),
                        point);
    assert_string_equal(
        ranges_of(arena, NESTED,
                  "SELECT VALUE t FROM root r JOIN t IN r.t WHERE t = 2 AND r.a['b c'] = 1", NULL),
        point);
}

static void a_hierarchical_key_is_pinned_level_by_level(void **state UNUSED)
{
#define R "22E342F38A486A088463DFF7838A5963"
#define FIVE "19C08621B135968252FB34B4CF66F811"
#define TRUE_HASH "0E711127C5B5A8E4726AC6DD306A3E59"
    static const struct {
        const char *filter, *ranges;
    } known[] = {
        {"c.a = 'redmond'", R "-" R "FF "},
        {"c.a = 'redmond' AND c.b = 5", R FIVE "-" R FIVE "FF "},
        {"c.a = 'redmond' AND c.b = 5 AND c.c", R FIVE TRUE_HASH " "},
        {"c.c AND c.b = 5 AND c.a = 'redmond'", R FIVE TRUE_HASH " "},
        {"c.a = 'redmond' AND c.c", R "-" R "FF "},
        {"c.b = 5", ALL},
        {"c.b = 5 AND c.c", ALL},
        {"c.a IN ('redmond', 5)", FIVE "-" FIVE "FF " R "-" R "FF "},
        {"c.a = 'redmond' AND c.b IN (5, 'redmond')", R FIVE "-" R FIVE "FF " R R "-" R R "FF "},
        {"c.a = 'redmond' OR (c.a = 'redmond' AND c.b = 5)", R "-" R "FF "},
        {"c.a = 'redmond' OR c.b = 5", ALL},
        {"c.a = 'redmond' AND c.a = 5", ""},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const char *text =
            (char *)arena_printf(arena, "SELECT * FROM c WHERE %s%c", known[i].filter, 0).data;

        if (strcmp(ranges_of(arena, MULTI, text, NULL), known[i].ranges) != 0)
            fail_msg("%s: %s", text, ranges_of(arena, MULTI, text, NULL));
    }
}

/* However many values a filter names, the work is bounded, and what is answered holds them all. */
static void a_filter_of_very_many_values_asks_everywhere(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_append_text(&text, "SELECT * FROM c WHERE c.key IN (0");
    for (int i = 1; i < 5000; i++)
        buf_printf(&text, ",%d", i);
    buf_append_byte(&text, ')');
    assert_string_equal(ranges_of(arena, HASH_V2, arena_text(arena, buf_slice(&text)), NULL), ALL);
    buf_append_text(&text, " AND c.key = 7");
    assert_string_equal(ranges_of(arena, HASH_V2, arena_text(arena, buf_slice(&text)), NULL),
                        points_of(arena, HASH_V2, "[[7]]"));
}

static void sources_pin_the_key_that_is_made_of_them(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    static const struct {
        const char *definition, *filter, *keys; /* NULL: everywhere */
    } samples[] = {
        {JOINED, "c.a = 'x' AND c.b = 1", "[[\"x-1\"]]"},
        {JOINED, "c.a IN ('x', 'y') AND c.b = 1", "[[\"x-1\"],[\"y-1\"]]"},
        {JOINED, "c.a = 'x'", NULL},
        {JOINED, "c.a = 'x' OR c.b = 1", NULL},
        {JOINED, "c.key = 'k'", "[[\"k\"]]"},
        {RANDOM, "c.a = 'x'", "[[\"x.1\"],[\"x.2\"],[\"x.3\"]]"},
        {RANDOM, "c.a = 2018 AND c.other = 1", "[[\"2018.1\"],[\"2018.2\"],[\"2018.3\"]]"},
        {RANDOM, "c.a > 'x'", NULL},
        {COMPUTED, "c.a = 'x'", "[[\"x.1\"],[\"x.2\"],[\"x.3\"]]"},
        {COMPUTED, "c.a = 'x' AND c.b = 'v'", "[[\"x\",\"v\"]]"},
        {COMPUTED, "c.b = 'v'", NULL},
        {COMPUTED, "c.a = [] AND c.b = 'v'", NULL},
    };

    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        const char *text =
            (char *)arena_printf(arena, "SELECT * FROM c WHERE %s%c", samples[i].filter, 0).data;
        const char *ranges = ranges_of(arena, samples[i].definition, text, NULL);
        const char *expected =
            samples[i].keys ? points_of(arena, samples[i].definition, samples[i].keys) : ALL;

        if (strcmp(ranges, expected) != 0)
            fail_msg("%s: %s", text, ranges);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_bounds_the_keys_of_a_range_container),
        cmocka_unit_test(a_filter_pins_the_key_to_points),
        cmocka_unit_test(known_answers_are_those_of_the_service),
        cmocka_unit_test(other_filters_ask_everywhere),
        cmocka_unit_test(contradictions_ask_nowhere),
        cmocka_unit_test(the_key_is_known_through_aliases_and_subpaths),
        cmocka_unit_test(a_hierarchical_key_is_pinned_level_by_level),
        cmocka_unit_test(a_filter_of_very_many_values_asks_everywhere),
        cmocka_unit_test(sources_pin_the_key_that_is_made_of_them),
    };
    return cmocka_run_group_tests_name("front/rest/sql/key_ranges", tests, NULL, NULL);
}
