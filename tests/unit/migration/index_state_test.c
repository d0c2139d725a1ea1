/* Indexes besides the policy, and state that a kind of index keeps besides entries, while
 * partitions split, merge and move, and behind a restart. The kind is made for this test: it counts
 * the entries of each value of a path. */
#include "migrator_fixture.h"

#include "document/bson.h"
#include "index/policy.h"
#include "item/transform.h"
#include "partition/counters.h"
#include "partition/layout.h"

static bool counting_check(const struct index_definition *definition UNUSED,
                           struct error *err UNUSED)
{
    return true;
}

static bool counting_entries(const struct index_definition *definition, struct slice item,
                             struct index_walk *walk, struct error *err)
{
    return index_kind_ordered.entries(definition, item, walk, err);
}

/* One for the word of the item, and one for all items. */
static bool counting_sums(const struct index_definition *definition, struct slice item,
                          struct arena *arena, struct index_sum **ret_sums, size_t *ret_count,
                          struct error *err UNUSED)
{
    struct index_sum *sums = ARENA_ARRAY(arena, struct index_sum, 2);
    struct document_value value;

    sums[0] = (struct index_sum){.amounts = {1}};
    *ret_sums = sums;
    *ret_count = 1;
    if (document_path_find(&definition->parts[0].path, item, &value) &&
        value.type == DOCUMENT_STRING)
        sums[(*ret_count)++] = (struct index_sum){.name = value.text, .amounts = {1, 2}};
    return true;
}

static const struct index_state_functions counting_state = {.sums = counting_sums};
static const struct index_kind counting = {.name = "counting",
                                           .check = counting_check,
                                           .entries = counting_entries,
                                           .state = &counting_state};

/* The container's definition gets an index that no client can ask for. */
static void kind_add(struct fixture *fixture)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    struct definition_fields *fields =
        (struct definition_fields *)definition_fields(container_definition(container));
    struct index_part *part = ARENA_NEW(fixture->arena, struct index_part);
    struct index_parts parts = {
        .name = SLICE("words"), .number = 7, .kind = &counting, .parts = part, .part_count = 1};
    const struct index_definition *definition;
    struct error err;

    assert_ok(
        document_path_parse(SLICE("/w"), DOCUMENT_PATH_KEY, fixture->arena, &part->path, &err),
        &err);
    assert_ok(index_definition_build(&parts, fixture->arena, &definition, &err), &err);
    fields->policy = index_policy_with(fields->policy, &definition, 1, fixture->arena);
}

/* The sum of a word over all logical partitions. */
static int64_t words(struct fixture *fixture, const char *word)
{
    CLEANUP(container_unref) struct container *container = opened(fixture);
    size_t count, len = strlen(word);
    const struct partition_span *spans = partition_map_spans(container_map(container), &count);
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        CLEANUP(engine_iterator_free) struct engine_iterator *iterator = NULL;
        struct engine_range range = {SLICE("ck"), SLICE("cl")};
        struct error err;

        assert_ok(engine_iterator_new(container_engine(container, spans[i].node), NULL, spans[i].id,
                                      range, false, ENGINE_READ_ANY, &iterator, &err),
                  &err);
        for (;;) {
            int64_t numbers[COUNTER_NUMBERS];
            struct engine_entry entry;

            assert_ok(engine_iterator_next(iterator, &entry, &err), &err);
            if (entry.found != ENGINE_FOUND)
                break;
            assert_ok(counter_decode(entry.value, numbers, &err), &err);
            if (entry.key.len > len + 1 && entry.key.data[entry.key.len - len - 1] == 7 &&
                !memcmp(entry.key.data + entry.key.len - len, word, len))
                sum += numbers[0];
        }
    }
    return sum;
}

static void state_of_a_kind_follows_its_items(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, BODY, 400);
    kind_add(fixture);
    items_put(fixture, 0, 100, "red");
    assert_int_equal(words(fixture, "red"), 100);
    items_put(fixture, 50, 70, "blue");
    item_delete(fixture, 0);
    assert_int_equal(words(fixture, "red"), 79);
    assert_int_equal(words(fixture, "blue"), 20);
    verify(fixture, 99);
    split(fixture, 0, 3);
    items_put(fixture, 90, 120, "green"); /* meanwhile */
    settle(fixture);
    assert_int_equal(span_count(fixture), 3);
    verify(fixture, 119);
    assert_int_equal(words(fixture, "green"), 30);
    restart(fixture);
    kind_add(fixture);
    items_put(fixture, 0, 119, "white");
    assert_int_equal(words(fixture, "white"), 119);
    assert_int_equal(words(fixture, "red"), 0);
    assert_int_equal(words(fixture, "green"), 1);
    verify(fixture, 120);
}

static void state_of_a_kind_is_made_and_taken_away_behind_a_policy(void **state)
{
    struct fixture *fixture = *state;
    const struct index_policy *without, *with;
    struct item_scope scope;
    struct transform_step step;
    struct error err;

    container_make(fixture, BODY, 400);
    items_put(fixture, 0, 40, "red");
    {
        CLEANUP(container_unref) struct container *container = opened(fixture);
        struct item_space space = container_space(container, &clock_system, NULL);
        size_t count;

        without = space.definition->policy;
        kind_add(fixture);
        with = space.definition->policy;
        scope = item_space_span_scope(&space, partition_map_spans(space.map, &count));
        scope.policy = with;
        scope.policy_version = 2;
        scope.policies_before = &without;
        scope.policies_before_count = 1;
        assert_ok(transform_run(&scope, SLICE_NONE, 1000, fixture->arena, &step, &err), &err);
        assert_int_equal(step.remade, 40);
        assert_int_equal(words(fixture, "red"), 40);
        verify(fixture, 40);
        scope.policy = without;
        scope.policy_version = 3;
        scope.policies_before = &with;
        assert_ok(transform_run(&scope, SLICE_NONE, 1000, fixture->arena, &step, &err), &err);
        assert_int_equal(step.remade, 40);
        assert_int_equal(words(fixture, "red"), 0);
    }
}

#define INDEXED                                                                                    \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2},\"orrery\":{\"indexes\":[" \
    "{\"name\":\"x\",\"key\":[{\"path\":\"/x\",\"order\":\"descending\"},{\"path\":\"/w\"}]},"     \
    "{\"name\":\"one\",\"unique\":\"logicalPartition\",\"key\":[{\"path\":\"/email\"}]},"          \
    "{\"name\":\"all\",\"order\":\"mongo\",\"multikey\":true,\"wildcard\":{}}]}}"

/* Writes item 148 with the email of item 149. */
static bool indexed_twice(struct fixture *fixture, struct container *container, struct error *err)
{
    struct item_space space = container_space(container, &clock_system, fixture->gates);
    struct slice document =
        document_of(fixture->arena, "{\"id\":\"148\",\"pk\":\"k14\",\"email\":\"b149\"}");

    return item_operation_run(
        &(struct item_operation){.space = &space,
                                 .arena = fixture->arena,
                                 .verb = ITEM_UPSERT,
                                 .key = partition_key_extract(&space.definition->key, document),
                                 .id = document_string(SLICE("148")),
                                 .document = document},
        err);
}

static void entries_and_what_is_unique_move_with_their_items(void **state)
{
    struct fixture *fixture = *state;

    container_make(fixture, INDEXED, 400);
    items_put(fixture, 0, 100, "a");
    split(fixture, 0, 3);
    items_put(fixture, 50, 150, "b");
    settle(fixture);
    verify(fixture, 150);
    {
        CLEANUP(container_unref) struct container *container = opened(fixture);
        struct transaction_result result;
        struct error err;

        /* the same in its place, but not its email for the one beside it */
        assert_ok(item_put(fixture, container, 149, "b", &result, &err), &err);
        assert_false(indexed_twice(fixture, container, &err));
        assert_int_equal(err.code, ERROR_UNIQUE_KEY);
    }
    restart(fixture);
    items_put(fixture, 0, 150, "c");
    verify(fixture, 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(state_of_a_kind_follows_its_items, setup, teardown),
        cmocka_unit_test_setup_teardown(state_of_a_kind_is_made_and_taken_away_behind_a_policy,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(entries_and_what_is_unique_move_with_their_items, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
