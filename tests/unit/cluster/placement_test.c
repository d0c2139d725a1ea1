#include "cluster/placement.h"

#include "base/random.h"
#include "document/bson.h"
#include "partition/strategy.h"
#include "support/check.h"
#include "support/documents.h"

struct bench {
    struct arena *arena;
    struct placement placement;
    struct node_table *table;
    struct partition_definition definition;
};

static int setup(void **state)
{
    struct bench *bench = MEMORY_NEW(struct bench);

    bench->arena = arena_new();
    bench->table = MEMORY_NEW(struct node_table);
    bench->definition = (struct partition_definition){.kind = PARTITION_HASH_V2, .path_count = 1};
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;

    memory_free(bench->table);
    arena_free(bench->arena);
    memory_free(bench);
    return 0;
}

static bool parse(struct bench *bench, const char *rules, struct error *err)
{
    struct slice text = arena_printf(bench->arena, "{\"rules\":%s}", rules);
    struct document_value array;

    assert_true(document_find(document_of(bench->arena, arena_text(bench->arena, text)),
                              SLICE("rules"), &array));
    return placement_parse(array.document, bench->definition.path_count, bench->arena,
                           &bench->placement, err);
}

static void rules(struct bench *bench, const char *text)
{
    struct error err;

    assert_ok(parse(bench, text, &err), &err);
}

static void node_add(struct bench *bench, const char *name, const char *region, const char *tags)
{
    struct node_info *info = &bench->table->list[bench->table->count];
    struct error err;

    info->number = (uint32_t)bench->table->count++;
    (void)snprintf(info->name, sizeof info->name, "%s", name);
    assert_ok(node_set(info, SLICE("region"), slice_of_text(region), &err), &err);
    assert_ok(node_set(info, SLICE("tags"), slice_of_text(tags), &err), &err);
}

static struct partition_key key_of(const char *text)
{
    return (struct partition_key){.components = {document_string(slice_of_text(text))}, .count = 1};
}

static void a_pattern_knows_stars_and_question_marks(void **state UNUSED)
{
    static const struct {
        const char *pattern, *text;
        bool like;
    } cases[] = {
        {"eu-*", "eu-1", true},  {"eu-*", "eu-", true},
        {"eu-*", "us-1", false}, {"*", "", true},
        {"", "", true},          {"", "a", false},
        {"a?c", "abc", true},    {"a?c", "ac", false},
        {"*b*", "abc", true},    {"*ab*ab", "abxabab", true},
        {"a**b", "ab", true},    {"a*b", "abx", false},
        {"***?", "x", true},     {"?", "", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(
            placement_like(slice_of_text(cases[i].pattern), slice_of_text(cases[i].text)),
            cases[i].like);
}

static void the_first_rule_that_speaks_of_a_key_counts(void **state)
{
    struct bench *bench = *state;
    struct partition_key acme = key_of("acme"), eu = key_of("eu-7"), other = key_of("x");

    rules(bench,
          "[{\"key\":[\"acme\"],\"isolate\":true},{\"keyLike\":[\"eu-*\"],\"region\":\"eu\"},"
          "{\"keyLike\":[\"*e*\"],\"region\":\"us\"},{\"notTags\":[\"slow\"]}]");
    assert_ptr_equal(placement_match(&bench->placement, &acme), &bench->placement.rules[0]);
    assert_ptr_equal(placement_match(&bench->placement, &eu), &bench->placement.rules[1]);
    assert_ptr_equal(placement_match(&bench->placement, &other), &bench->placement.rules[3]);
    assert_ptr_equal(placement_default(&bench->placement), &bench->placement.rules[3]);
}

static void a_node_must_be_all_that_a_rule_says(void **state)
{
    struct bench *bench = *state;

    node_add(bench, "a", "eu", "ssd,big");
    node_add(bench, "b", "eu", "ssd");
    node_add(bench, "c", "us", "ssd,big");
    node_add(bench, "d", "eu", "big,volatile");
    rules(bench, "[{\"region\":\"eu\",\"tags\":[\"big\"]}]");
    assert_int_equal(placement_nodes(&bench->placement.rules[0], bench->table), 0x9);
    rules(bench, "[{\"tags\":[\"big\"],\"notTags\":[\"volatile\"]}]");
    assert_int_equal(placement_nodes(&bench->placement.rules[0], bench->table), 0x5);
    rules(bench, "[{\"nodes\":[\"b\",\"d\"]}]");
    assert_int_equal(placement_nodes(&bench->placement.rules[0], bench->table), 0xA);
    assert_int_equal(placement_nodes(NULL, bench->table), 0xF);
}

static void rules_that_make_no_sense_are_refused_by_name(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *rules, *message;
    } cases[] = {
        {"[7]", "it is an object"},
        {"[{}]", "says nothing of nodes"},
        {"[{\"key\":[\"a\"]}]", "says nothing of nodes"},
        {"[{\"isolate\":true,\"zone\":\"z\"}]", "isolate needs a key"},
        {"[{\"isolate\":1,\"key\":[1]}]", "isolate is true or false"},
        {"[{\"zone\":\"z\"},{\"zone\":\"y\"}]", "no rule may follow"},
        {"[{\"key\":[1,2],\"zone\":\"z\"}]", "more components"},
        {"[{\"key\":[],\"zone\":\"z\"}]", "no components"},
        {"[{\"key\":[{}],\"zone\":\"z\"}]", "key is of texts"},
        {"[{\"keyLike\":[7],\"zone\":\"z\"}]", "keyLike is of texts"},
        {"[{\"key\":[1],\"keyLike\":[\"a\"],\"zone\":\"z\"}]", "one of key and keyLike"},
        {"[{\"region\":7}]", "region is a text"},
        {"[{\"tags\":[]}]", "tags is an array"},
        {"[{\"colour\":\"red\"}]", "has no member \"colour\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err;

        assert_fails(parse(bench, cases[i].rules, &err), &err, ERROR_BAD_REQUEST);
        assert_contains(err.message, cases[i].message);
        assert_contains(err.message, "rule ");
    }
}

static struct placement_range claim_of(struct bench *bench, size_t rule, const char *key)
{
    struct placement_range claim = {.rule = &bench->placement.rules[rule], .key = key_of(key)};

    claim.range = partition_route_range(&bench->definition, &claim.key, bench->arena);
    return claim;
}

static void a_key_that_may_not_stay_is_to_be_taken_out_of_its_span(void **state)
{
    struct bench *bench = *state;
    struct partition_span span = {
        .node = 0, .min = PARTITION_ROUTING_MIN, .max = PARTITION_ROUTING_MAX};
    struct placement_range claims[2];
    struct placement_verdict verdict;

    node_add(bench, "a", "us", "");
    node_add(bench, "b", "eu", "");
    rules(bench, "[{\"key\":[\"k\"],\"region\":\"eu\"},{\"key\":[\"l\"],\"nodes\":[\"a\"]}]");
    claims[0] = claim_of(bench, 0, "k");
    claims[1] = claim_of(bench, 1, "l");
    verdict = placement_judge(&bench->placement, claims, 2, bench->table, &span);
    assert_ptr_equal(verdict.isolate, &claims[0]);
    assert_int_equal(verdict.allowed, 1); /* l may stay, and holds the rest where it is */
    assert_null(verdict.rule);

    /* On the other node it is l that has to leave. */
    span.node = 1;
    verdict = placement_judge(&bench->placement, claims, 2, bench->table, &span);
    assert_ptr_equal(verdict.isolate, &claims[1]);
    assert_int_equal(verdict.allowed, 2);

    /* Once it has a span of its own, its rule is that span's. */
    span.min = claims[0].range.min;
    span.max = claims[0].range.max;
    verdict = placement_judge(&bench->placement, claims, 2, bench->table, &span);
    assert_null(verdict.isolate);
    assert_ptr_equal(verdict.rule, &bench->placement.rules[0]);
    assert_int_equal(verdict.allowed, 2);
}

static void a_key_that_wants_to_be_alone_leaves_even_an_allowed_node(void **state)
{
    struct bench *bench = *state;
    struct partition_span span = {
        .node = 0, .min = PARTITION_ROUTING_MIN, .max = PARTITION_ROUTING_MAX};
    struct placement_range claim;

    node_add(bench, "a", "us", "");
    rules(bench, "[{\"key\":[\"k\"],\"isolate\":true}]");
    claim = claim_of(bench, 0, "k");
    assert_ptr_equal(placement_judge(&bench->placement, &claim, 1, bench->table, &span).isolate,
                     &claim);
    span.min = claim.range.min;
    span.max = claim.range.max;
    assert_null(placement_judge(&bench->placement, &claim, 1, bench->table, &span).isolate);
}

static bool settled(struct bench *bench, const char *text, struct error *err)
{
    rules(bench, text);
    return placement_settle(&bench->placement, &bench->definition, bench->arena, err);
}

static struct slice routed(struct bench *bench, const struct partition_key *key)
{
    CLEANUP(buf_done) struct buf routing;

    buf_init(&routing, BUF_DEFAULT_MAX);
    partition_route(&bench->definition, key, &routing);
    return arena_copy(bench->arena, buf_slice(&routing));
}

/* Texts of few letters, so that many begin as patterns do; some are longer than components keep. */
static struct slice text_random(struct random *random, struct arena *arena)
{
    static const char letters[] = "eu-x,.\xc3\xa9";
    size_t len = random_below(random, 8) == 0 ? 200 : random_below(random, 6);
    uint8_t *bytes = arena_alloc(arena, len + 1);

    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)letters[random_below(random, sizeof letters - 1)];
    if (len > 4 && random_below(random, 2))
        memcpy(bytes, "eu-", 3);
    return slice_of(bytes, len);
}

static void the_range_of_a_pattern_holds_its_keys_and_no_others(void **state)
{
    struct bench *bench = *state;
    struct random random;
    size_t within = 0;
    struct error err;

    bench->definition.strategy = PARTITION_STRATEGY_RANGE;
    bench->definition.path_count = 2;
    assert_ok(settled(bench,
                      "[{\"keyLike\":[\"eu-*\"],\"zone\":\"z\",\"resident\":true},"
                      "{\"keyLike\":[\"x\",\"eu*\"],\"zone\":\"y\"},"
                      "{\"key\":[\"u\",\"\"],\"zone\":\"x\"}]",
                      &err),
              &err);
    assert_int_equal(bench->placement.range_count, 3);
    assert_true(bench->placement.resident);
    random_seed(&random, 4);
    for (int i = 0; i < 20000; i++) {
        struct partition_key key = {
            .components = {document_string(text_random(&random, bench->arena)),
                           document_string(text_random(&random, bench->arena))},
            .count = 2};
        const struct placement_rule *rule = placement_match(&bench->placement, &key), *by = NULL;
        struct slice routing;

        if (random_below(&random, 4) == 0)
            key.components[0] = document_string(SLICE("x"));
        rule = placement_match(&bench->placement, &key);
        routing = routed(bench, &key);
        for (size_t r = 0; r < bench->placement.range_count && !by; r++)
            if (slice_compare(routing, bench->placement.ranges[r].range.min) >= 0 &&
                slice_compare(routing, bench->placement.ranges[r].range.max) < 0)
                by = bench->placement.ranges[r].rule;
        assert_ptr_equal(by, rule);
        within += rule != NULL;
    }
    assert_in_range(within, 1000, 19000);
}

static void where_keys_lie_apart_a_rule_cannot_be_resident(void **state)
{
    struct bench *bench = *state;
    static const struct {
        enum partition_strategy_kind strategy;
        const char *rules, *message;
    } cases[] = {
        {PARTITION_STRATEGY_HASH, "[{\"keyLike\":[\"eu-*\"],\"zone\":\"z\",\"resident\":true}]",
         "a hash scatters"},
        {PARTITION_STRATEGY_HASH,
         "[{\"keyLike\":[\"eu-*\"],\"zone\":\"z\"},{\"zone\":\"z\",\"resident\":true}]",
         "a hash scatters"},
        {PARTITION_STRATEGY_RANGE, "[{\"keyLike\":[\"*-eu\"],\"zone\":\"z\",\"resident\":true}]",
         "a text of up to 60 bytes and a star"},
        {PARTITION_STRATEGY_RANGE, "[{\"keyLike\":[\"*\"],\"zone\":\"z\",\"resident\":true}]",
         "a text of up to 60 bytes and a star"},
        {PARTITION_STRATEGY_RANGE,
         "[{\"keyLike\":[\"eu-*\"],\"zone\":\"z\",\"isolate\":true,\"resident\":true}]",
         "cannot be isolated one by one"},
    };
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bench->definition.strategy = cases[i].strategy;
        assert_fails(settled(bench, cases[i].rules, &err), &err, ERROR_BAD_REQUEST);
        assert_contains(err.message, cases[i].message);
    }
    /* Without the word the balancer looks for them. */
    bench->definition.strategy = PARTITION_STRATEGY_HASH;
    assert_ok(settled(bench, "[{\"keyLike\":[\"eu-*\"],\"zone\":\"z\"}]", &err), &err);
    assert_int_equal(bench->placement.range_count, 0);
    assert_fails(parse(bench, "[{\"key\":[\"a\"],\"isolate\":true,\"resident\":true}]", &err), &err,
                 ERROR_BAD_REQUEST);
    assert_contains(err.message, "resident needs a word about nodes");
    assert_fails(parse(bench, "[{\"zone\":\"z\",\"resident\":\"yes\"}]", &err), &err,
                 ERROR_BAD_REQUEST);
    assert_contains(err.message, "resident is true or false");
}

static void a_breach_is_a_span_whose_node_its_resident_rule_does_not_allow(void **state)
{
    struct bench *bench = *state;
    struct partition_span all = {.min = PARTITION_ROUTING_MIN, .max = PARTITION_ROUTING_MAX}, part;
    const struct placement_rule *rules_there;
    struct error err;

    node_add(bench, "a", "us", "");
    node_add(bench, "b", "eu", "");
    bench->definition.strategy = PARTITION_STRATEGY_RANGE;
    assert_ok(settled(bench,
                      "[{\"key\":[\"eu-us\"],\"nodes\":[\"a\"]},"
                      "{\"keyLike\":[\"eu-*\"],\"region\":\"eu\",\"resident\":true},"
                      "{\"region\":\"us\"}]",
                      &err),
              &err);
    rules_there = bench->placement.rules;
    assert_ptr_equal(placement_breach(&bench->placement, bench->table, &all), &rules_there[1]);
    all.node = 1;
    assert_null(placement_breach(&bench->placement, bench->table, &all)); /* not resident: later */
    part = (struct partition_span){.min = bench->placement.ranges[1].range.min,
                                   .max = bench->placement.ranges[1].range.max};
    assert_ptr_equal(placement_breach(&bench->placement, bench->table, &part), &rules_there[1]);
    part.node = 1;
    assert_null(placement_breach(&bench->placement, bench->table, &part));
    /* The first rule counts: it lets one of them be elsewhere. */
    part = (struct partition_span){.min = bench->placement.ranges[0].range.min,
                                   .max = bench->placement.ranges[0].range.max};
    assert_null(placement_breach(&bench->placement, bench->table, &part));
    /* Before and behind the range there is nothing to say. */
    part = (struct partition_span){.min = PARTITION_ROUTING_MIN,
                                   .max = bench->placement.ranges[1].range.min};
    assert_null(placement_breach(&bench->placement, bench->table, &part));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_pattern_knows_stars_and_question_marks),
        TEST(the_first_rule_that_speaks_of_a_key_counts),
        TEST(a_node_must_be_all_that_a_rule_says),
        TEST(rules_that_make_no_sense_are_refused_by_name),
        TEST(a_key_that_may_not_stay_is_to_be_taken_out_of_its_span),
        TEST(a_key_that_wants_to_be_alone_leaves_even_an_allowed_node),
        TEST(the_range_of_a_pattern_holds_its_keys_and_no_others),
        TEST(where_keys_lie_apart_a_rule_cannot_be_resident),
        TEST(a_breach_is_a_span_whose_node_its_resident_rule_does_not_allow),
    };

    return cmocka_run_group_tests_name("cluster/placement", tests, NULL, NULL);
}
