#include "front/rest/sql/documents.h"

#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

struct fixture {
    struct arena *arena;
    struct slice documents[5];
};

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);

    f->arena = arena_new();
    for (int i = 0; i < 5; i++)
        f->documents[i] = document_of(
            f->arena,
            arena_text(f->arena, arena_printf(f->arena, "{\"id\":\"d%d\",\"n\":%d}", i, i)));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    arena_free(f->arena);
    memory_free(f);
    return 0;
}

static bool run(struct fixture *f, const char *body, uint64_t rows_max, struct slice continuation,
                struct sql_rows *ret_rows, struct slice *ret_continuation, struct error *err)
{
    struct query_page_limits limits = {.rows_max = rows_max};

    return sql_query_documents(document_of(f->arena, body), f->documents, 5, &limits, continuation,
                               f->arena, ret_rows, ret_continuation, NULL, err);
}

static void rows_come_in_the_order_of_the_documents(void **state)
{
    struct sql_rows rows;
    struct slice next;
    struct error err;

    assert_ok(run(*state, "{\"query\":\"SELECT VALUE r.id FROM root r WHERE r.n > 2\"}", 100,
                  SLICE_NONE, &rows, &next, &err),
              &err);
    assert_int_equal(rows.count, 2);
    assert_slice_equal(rows.values[0].text, SLICE("d3"));
    assert_slice_equal(rows.values[1].text, SLICE("d4"));
    assert_int_equal(next.len, 0);
}

static void pages_follow_each_other(void **state)
{
    const char *body = "{\"query\":\"SELECT * FROM r\",\"parameters\":[]}";
    struct slice next = SLICE_NONE;
    struct sql_rows rows;
    struct error err;
    size_t seen = 0, pages = 0;

    do {
        assert_ok(run(*state, body, 2, next, &rows, &next, &err), &err);
        seen += rows.count;
        pages++;
    } while (next.len);
    assert_int_equal(seen, 5);
    assert_int_equal(pages, 3);
}

static void parameters_are_bound(void **state)
{
    struct sql_rows rows;
    struct slice next;
    struct error err;

    assert_ok(
        run(*state,
            "{\"query\":\"SELECT * FROM r WHERE r.id = @id\",\"parameters\":[{\"name\":\"@id\","
            "\"value\":\"d1\"}]}",
            100, SLICE_NONE, &rows, &next, &err),
        &err);
    assert_int_equal(rows.count, 1);
}

static void a_body_without_query_is_refused(void **state)
{
    struct sql_rows rows;
    struct slice next;
    struct error err;

    assert_fails(run(*state, "{}", 1, SLICE_NONE, &rows, &next, &err), &err, ERROR_BAD_QUERY);
    assert_fails(run(*state, "{\"query\":5}", 1, SLICE_NONE, &rows, &next, &err), &err,
                 ERROR_BAD_QUERY);
    assert_fails(run(*state, "{\"query\":\"SELECT 1\",\"parameters\":{}}", 1, SLICE_NONE, &rows,
                     &next, &err),
                 &err, ERROR_BAD_QUERY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_come_in_the_order_of_the_documents, setup, teardown),
        cmocka_unit_test_setup_teardown(pages_follow_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(parameters_are_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(a_body_without_query_is_refused, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
