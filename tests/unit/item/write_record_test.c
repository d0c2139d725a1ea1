#include "item/write_record.h"

#include "item/operation.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"

static const uint8_t session[WRITE_RECORD_SESSION_LEN] = {1, 2, 3};
static const uint8_t other[WRITE_RECORD_SESSION_LEN] = {1, 2, 4};

struct fixture {
    struct test_space test;
    struct arena *arena;
};

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);
    struct engine *engine;
    struct error err;

    f->arena = arena_new();
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&f->test, engine, &(struct test_space_options){0});
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

static bool put(struct fixture *f, enum item_verb verb, const char *json,
                const struct write_record *record)
{
    struct item_operation op = {.space = &f->test.space,
                                .arena = f->arena,
                                .verb = verb,
                                .document = document_of(f->arena, json),
                                .options = {.record = record}};
    struct error err;

    op.key = partition_key_extract(&f->test.definition.key, op.document);
    assert_true(document_find(op.document, SLICE("id"), &op.id));
    return item_operation_run(&op, &err);
}

static struct write_record record_of(uint32_t statement, int64_t number, int64_t wall_ms)
{
    return (struct write_record){.session = session,
                                 .statement = statement,
                                 .number = number,
                                 .wall_ms = wall_ms,
                                 .outcome = SLICE("what became of it")};
}

static struct write_records find(struct fixture *f, const uint8_t *whose, int64_t number)
{
    struct write_records records;
    struct error err;

    assert_ok(write_records_find(&f->test.space, whose, number, f->arena, &records, &err), &err);
    return records;
}

static void a_record_is_there_if_its_write_is(void **state)
{
    struct fixture *f = *state;
    struct write_record first = record_of(0, 7, 100), second = record_of(1, 7, 100);
    struct write_records found;

    assert_true(put(f, ITEM_CREATE, "{\"id\":\"a\",\"pk\":\"p\"}", &first));
    assert_false(put(f, ITEM_CREATE, "{\"id\":\"a\",\"pk\":\"p\"}", &second));
    found = find(f, session, 7);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.list[0].statement, 0);
    assert_int_equal(found.list[0].wall_ms, 100);
    assert_slice_equal(found.list[0].outcome, SLICE("what became of it"));
    assert_int_equal(find(f, other, 7).count, 0);
    assert_int_equal(find(f, other, 7).number_max, -1);
}

static void the_next_number_takes_the_place_of_the_one_before(void **state)
{
    struct fixture *f = *state;
    struct write_record first = record_of(0, 7, 100), second = record_of(0, 8, 200);

    assert_true(put(f, ITEM_CREATE, "{\"id\":\"a\",\"pk\":\"p\"}", &first));
    assert_true(put(f, ITEM_REPLACE, "{\"id\":\"a\",\"pk\":\"p\",\"n\":1}", &second));
    assert_int_equal(find(f, session, 7).count, 0);
    assert_int_equal(find(f, session, 8).count, 1);
    assert_int_equal(find(f, session, 7).number_max, 8);
}

static void old_records_are_swept_and_others_stay(void **state)
{
    struct fixture *f = *state;
    struct item_scope scope =
        item_space_span_scope(&f->test.space, partition_map_find_id(f->test.space.map, 1));
    CLEANUP(buf_done) struct buf position;
    size_t all = 0, removed;
    bool more = true;
    struct error err;

    buf_init(&position, BUF_DEFAULT_MAX);
    for (uint32_t i = 0; i < 20; i++) {
        struct write_record record = record_of(i, 7, i < 15 ? 100 : 300);
        char json[64];

        snprintf(json, sizeof json, "{\"id\":\"%u\",\"pk\":\"p%u\"}", i, i % 3);
        assert_true(put(f, ITEM_CREATE, json, &record));
    }
    while (more) {
        assert_ok(write_records_sweep(&scope, 200, 4, &position, &more, &removed, &err), &err);
        all += removed;
    }
    assert_int_equal(all, 15);
    assert_int_equal(find(f, session, 7).count, 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_record_is_there_if_its_write_is),
        TEST(the_next_number_takes_the_place_of_the_one_before),
        TEST(old_records_are_swept_and_others_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
