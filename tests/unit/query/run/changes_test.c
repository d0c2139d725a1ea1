/* What was written since a block was made: what a search sees is what its snapshot has, whoever
 * looked before, and whatever was written twice, taken out or made anew. */
#include "query/run/changes.h"

#include "index/policy.h"
#include "item/operation.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"

struct fixture {
    struct test_space test;
    struct arena *arena;
    const struct index_definition *index;
    size_t bytes; /* the log has grown by */
};

static int setup(void **state)
{
    static const char *const policy =
        "{\"excludedPaths\":[{\"path\":\"/v/*\"}],\"includedPaths\":[{\"path\":\"/*\"}],"
        "\"vectorIndexes\":[{\"path\":\"/v\",\"type\":\"diskANN\"}]}";
    static const char *const vectors =
        "{\"vectorEmbeddings\":[{\"path\":\"/v\",\"dataType\":\"float32\",\"dimensions\":2,"
        "\"distanceFunction\":\"euclidean\"}]}";
    struct fixture *f = MEMORY_NEW(struct fixture);
    struct document_path path;
    struct engine *engine;
    struct error err;

    f->arena = arena_new();
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&f->test, engine,
                    &(struct test_space_options){.policy = policy, .vectors = vectors});
    assert_ok(document_path_parse(SLICE("/v"), DOCUMENT_PATH_KEY, f->arena, &path, &err), &err);
    f->index = index_policy_vector_at(f->test.definition.policy, &path);
    assert_non_null(f->index);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    test_space_done(&f->test);
    arena_free(f->arena);
    memory_free(f);
    return 0;
}

static void run(struct fixture *f, enum item_verb verb, const char *json)
{
    struct slice document = document_of(f->arena, json);
    struct document_value id;
    struct error err;

    assert_true(document_find(document, SLICE("id"), &id));
    assert_ok(item_operation_run(&(struct item_operation){.space = &f->test.space,
                                                          .arena = f->arena,
                                                          .verb = verb,
                                                          .key = partition_key_extract(
                                                              &f->test.definition.key, document),
                                                          .id = id,
                                                          .document = document},
                                 &err),
              &err);
}

static void put(struct fixture *f, const char *id, int x)
{
    char json[128];

    snprintf(json, sizeof json, "{\"id\":\"%s\",\"pk\":\"p\",\"v\":[%d,1]}", id, x);
    run(f, ITEM_UPSERT, json);
}

static struct view look(struct fixture *f, uint64_t *ret_lsn)
{
    struct item_scope scope =
        item_space_span_scope(&f->test.space, partition_map_find_id(f->test.space.map, 1));
    struct view view;
    struct error err;

    assert_ok(view_open(&scope, &view, &err), &err);
    assert_ok(view_lsn(&view, ret_lsn, &err), &err);
    return view;
}

static void grown(void *self, size_t bytes)
{
    struct fixture *f = self;

    f->bytes += bytes;
}

/* The changes that a view has, as values of their vectors' first numbers: the sum of all; those
 * without a vector count 1000. */
static double sum_of(struct fixture *f, const struct query_since *since)
{
    static const float zero[2] = {0, 0};
    struct search_asked asked = search_asked_of(zero, &f->index->vector->vectors);
    double sum = 0, distance;

    for (size_t i = 0; i < since->count; i++) {
        assert_true(query_since_has(since, since->list[i]->number));
        if (!since->list[i]->value.data) {
            sum += 1000;
            continue;
        }
        assert_true(
            index_vector_distance(f->index->vector, &asked, since->list[i]->value, &distance));
        sum += distance;
    }
    assert_false(query_since_has(since, UINT64_C(1) << 60));
    return sum;
}

/* Codes are no exact numbers. */
static void assert_since(struct fixture *f, struct query_changes *changes, struct view *view,
                         uint64_t lsn, size_t count, double sum)
{
    struct query_since since;
    struct error err;
    enum query_since_state known;

    assert_ok(query_changes_since(changes, view, lsn, f->index, grown, f, &since, &known, &err),
              &err);
    assert_int_equal(known, QUERY_SINCE_WHOLE);
    assert_int_equal(since.count, count);
    assert_true(sum_of(f, &since) > sum - 1 && sum_of(f, &since) < sum + 1 + (double)count / 2);
    query_since_done(&since);
}

static void what_was_written_is_there_once_as_it_is(void **state)
{
    struct fixture *f = *state;
    struct query_changes *changes;
    struct query_since since;
    struct error err;
    uint64_t lsn;
    struct view view;
    enum query_since_state known;

    put(f, "a", 10);
    put(f, "b", 20);
    view = look(f, &lsn);
    changes = query_changes_new(lsn, 100);
    assert_since(f, changes, &view, lsn, 0, 0);
    view_done(&view);

    put(f, "a", 30);
    put(f, "c", 40);
    view = look(f, &lsn);
    assert_since(f, changes, &view, lsn, 2, 70);
    assert_true(f->bytes > 0);
    assert_int_equal(query_changes_count(changes), 2);
    assert_since(f, changes, &view, lsn, 2, 70); /* nothing is read again */
    assert_int_equal(query_changes_count(changes), 2);
    view_done(&view);

    put(f, "a", 50); /* once more, and c loses its vector */
    run(f, ITEM_UPSERT, "{\"id\":\"c\",\"pk\":\"p\",\"v\":[1]}");
    run(f, ITEM_DELETE, "{\"id\":\"b\",\"pk\":\"p\"}"); /* of this there is no record */
    view = look(f, &lsn);
    assert_since(f, changes, &view, lsn, 2, 1050);
    view_done(&view);

    run(f, ITEM_DELETE, "{\"id\":\"a\",\"pk\":\"p\"}");
    put(f, "a", 60); /* another of the same name */
    view = look(f, &lsn);
    assert_ok(query_changes_since(changes, &view, lsn, f->index, grown, f, &since, &known, &err),
              &err);
    assert_int_equal(known, QUERY_SINCE_WHOLE);
    assert_int_equal(since.count, 3); /* the one before leads to nothing, and has another number */
    query_since_done(&since);
    view_done(&view);
    query_changes_free(changes);
}

static void a_search_that_is_older_sees_what_it_saw(void **state)
{
    struct fixture *f = *state;
    struct query_changes *changes;
    struct view first, second, third;
    uint64_t lsn, lsn_first, lsn_second, lsn_third;

    put(f, "a", 10);
    first = look(f, &lsn);
    view_done(&first);
    changes = query_changes_new(lsn, 100);
    put(f, "a", 20);
    first = look(f, &lsn_first);
    put(f, "a", 30);
    put(f, "b", 5);
    second = look(f, &lsn_second);
    put(f, "a", 40);
    third = look(f, &lsn_third);
    assert_since(f, changes, &third, lsn_third, 2, 45);
    /* the feed has no record any more of what they see: it is of the snapshot */
    assert_since(f, changes, &first, lsn_first, 1, 20);
    assert_since(f, changes, &second, lsn_second, 2, 35);
    assert_int_equal(query_changes_count(changes), 2);
    view_done(&first);
    view_done(&second);
    view_done(&third);
    query_changes_free(changes);
}

static void too_many_are_told(void **state)
{
    struct fixture *f = *state;
    struct query_changes *changes;
    struct query_since since = {0};
    struct view view;
    struct error err;
    uint64_t lsn;
    enum query_since_state known;

    put(f, "a", 1);
    view = look(f, &lsn);
    view_done(&view);
    changes = query_changes_new(lsn, 20);
    for (int i = 0; i < 10; i++) {
        char id[8];

        snprintf(id, sizeof id, "n%d", i);
        put(f, id, 1);
    }
    view = look(f, &lsn);
    assert_ok(query_changes_since(changes, &view, lsn, f->index, grown, f, &since, &known, &err),
              &err);
    assert_int_equal(known, QUERY_SINCE_WHOLE);
    assert_int_equal(since.count, 10);
    query_since_done(&since);
    view_done(&view);
    for (int i = 0; i < 11; i++) { /* too many at once, though there is room for most */
        char id[8];

        snprintf(id, sizeof id, "m%d", i);
        put(f, id, 1);
    }
    view = look(f, &lsn);
    assert_ok(query_changes_since(changes, &view, lsn, f->index, grown, f, &since, &known, &err),
              &err);
    assert_int_equal(known, QUERY_SINCE_WORN);
    /* nor one that is older than the log */
    assert_ok(query_changes_since(changes, &view, 0, f->index, grown, f, &since, &known, &err),
              &err);
    assert_int_equal(known, QUERY_SINCE_FORGOTTEN);
    view_done(&view);
    query_changes_free(changes);
}

/* Every search adds a mark, and the first ones are forgotten. */
static void the_log_grows_in_pages(void **state)
{
    struct fixture *f = *state;
    struct query_changes *changes;
    struct view view;
    uint64_t lsn;
    double sum = 0;

    put(f, "a", 1);
    view = look(f, &lsn);
    view_done(&view);
    changes = query_changes_new(lsn, 1000);
    for (int i = 0; i < 600; i++) {
        char id[8];

        snprintf(id, sizeof id, "n%d", i);
        put(f, id, 100);
        sum += 100;
        if (i % 3)
            continue;
        view = look(f, &lsn);
        assert_since(f, changes, &view, lsn, (size_t)i + 1, sum);
        view_done(&view);
    }
    query_changes_free(changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_there_once_as_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(a_search_that_is_older_sees_what_it_saw, setup, teardown),
        cmocka_unit_test_setup_teardown(too_many_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(the_log_grows_in_pages, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
