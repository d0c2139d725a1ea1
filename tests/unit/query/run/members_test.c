/* What is known of items: at its LSN, at later ones without what was written since, bounded. */
#include "query/run/members.h"

#include "item/operation.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/space.h"

struct fixture {
    struct test_space test;
    struct arena *arena;
    struct query_members *members;
};

enum { BYTES = 256 * 1024, A_SET = 10 * 1024 };

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);
    struct engine *engine;
    struct error err;

    f->arena = arena_new();
    assert_ok(engine_open(SLICE("memory:"), &(struct engine_options){0}, &engine, &err), &err);
    test_space_init(&f->test, engine, &(struct test_space_options){0});
    f->members = query_members_new(BYTES);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    query_members_free(f->members);
    test_space_done(&f->test);
    arena_free(f->arena);
    memory_free(f);
    return 0;
}

/* Writes an item; its number. */
static uint64_t put(struct fixture *f, const char *id)
{
    struct item_scope scope =
        item_space_span_scope(&f->test.space, partition_map_find_id(f->test.space.map, 1));
    struct slice document;
    struct document_value value = document_string(slice_of_text(id));
    struct item_operation operation = {
        .space = &f->test.space, .arena = f->arena, .verb = ITEM_UPSERT, .id = value};
    CLEANUP(cursor_free) struct cursor *cursor = NULL;
    CLEANUP(view_done) struct view view = {0};
    struct cursor_hit hit;
    char json[64];
    bool more = true;
    uint64_t number = 0;
    struct error err;

    snprintf(json, sizeof json, "{\"id\":\"%s\",\"pk\":\"p\"}", id);
    document = document_of(f->arena, json);
    operation.document = document;
    operation.key = partition_key_extract(&f->test.definition.key, document);
    assert_ok(item_operation_run(&operation, &err), &err);
    assert_ok(view_open(&scope, &view, &err), &err);
    assert_ok(cursor_open(&view, &(struct cursor_request){.kind = CURSOR_NUMBERS}, &cursor, &err),
              &err);
    while (more) { /* the last one that was created, or the only one */
        assert_ok(cursor_next(cursor, &hit, &more, &err), &err);
        if (more)
            number = hit.number;
    }
    return number;
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

static struct query_member_set *set_of(struct fixture *f, const char *value, bool makes)
{
    struct query_member_key key = {.node = 1,
                                   .partition = 1,
                                   .epoch = 1,
                                   .prefix = SLICE("path"),
                                   .min = slice_of_text(value),
                                   .max = SLICE("z")};
    struct query_member_set *set;
    struct error err;
    CLEANUP(view_done) struct view view = look(f, &key.lsn);

    assert_ok(query_members_open(f->members, &view, &key, makes, &set, &err), &err);
    return set;
}

static void a_set_knows_what_was_noted_until_the_item_is_written(void **state)
{
    struct fixture *f = *state;
    uint64_t first = put(f, "a"), second = put(f, "b");
    struct query_member_set *set = set_of(f, "v", false), *later;

    assert_null(set);
    set = set_of(f, "v", true);
    assert_int_equal(query_member_look(set, first), QUERY_MEMBER_UNKNOWN);
    query_member_note(set, first, true);
    query_member_note(set, second, false);
    later = set_of(f, "v", false);
    assert_ptr_equal(set, later);
    assert_int_equal(query_member_look(later, first), QUERY_MEMBER_IN);
    assert_int_equal(query_member_look(later, second), QUERY_MEMBER_OUT);
    assert_int_equal(query_member_look(later, second + 1), QUERY_MEMBER_UNKNOWN);
    assert_int_equal(query_member_look(later, second + (UINT64_C(7) << 32)), QUERY_MEMBER_UNKNOWN);
    query_member_set_unref(later);
    assert_null(set_of(f, "w", false));

    (void)put(f, "a");
    later = set_of(f, "v", false);
    assert_non_null(later);
    assert_int_equal(query_member_look(later, first), QUERY_MEMBER_UNKNOWN);
    assert_int_equal(query_member_look(later, second), QUERY_MEMBER_OUT);
    /* whoever has the one before keeps it */
    assert_int_equal(query_member_look(set, first), QUERY_MEMBER_IN);
    query_member_set_unref(later);
    query_member_set_unref(set);
}

static void behind_many_writes_nothing_is_known(void **state)
{
    struct fixture *f = *state;
    uint64_t first = put(f, "a");
    struct query_member_set *set = set_of(f, "v", true);

    query_member_note(set, first, true);
    query_member_set_unref(set);
    for (size_t i = 0; i < 300; i++) {
        char id[16];

        snprintf(id, sizeof id, "n%zu", i);
        (void)put(f, id);
    }
    assert_null(set_of(f, "v", false));
    set = set_of(f, "v", true);
    assert_int_equal(query_member_look(set, first), QUERY_MEMBER_UNKNOWN);
    query_member_set_unref(set);
}

static void bytes_are_bounded(void **state)
{
    struct fixture *f = *state;

    (void)put(f, "a");
    for (size_t i = 0; i < 100; i++) {
        char value[16];
        struct query_member_set *set;

        snprintf(value, sizeof value, "v%zu", i);
        set = set_of(f, value, true);
        for (uint64_t n = 1; n < 400; n++) /* a page each */
            query_member_note(set, n << 12, true);
        assert_int_equal(query_member_look(set, 1 << 12), QUERY_MEMBER_IN);
        assert_in_range(query_members_bytes(f->members), A_SET, BYTES);
        query_member_set_unref(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_set_knows_what_was_noted_until_the_item_is_written, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(behind_many_writes_nothing_is_known, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_are_bounded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
