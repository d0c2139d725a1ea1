#include "query/expression/item.h"

#include "definition/names.h"
#include "support/check.h"
#include "support/documents.h"
#include "support/expressions.h"

static const char *evaluate(const char *text, struct arena *arena)
{
    CLEANUP(query_context_done) struct query_context context;
    struct item item = {
        .header = {.number = 3, .lsn = 0x1122, .wall_ms = 1600000000123, .ordinal = 1},
        .document = document_of(arena, "{\"id\":\"a\",\"_mine\":5,\"n\":{\"_ts\":1}}"),
    };
    struct query_build build = {.arena = arena};
    struct document_value value;
    struct error err = {0};
    struct query_item hidden;
    struct query_slot slot;

    query_item_bind(&hidden, &item, definition_names(DEFINITION_IDENTITY_ID),
                    rid_of_container(1, 2), &slot);
    query_context_init(&context, arena, NULL, NULL);
    context.slots = &slot;
    context.slot_count = 1;
    assert_ok(query_evaluate(expression_of(&build, text, NULL), &context, &value, &err), &err);
    return expression_print(&value, arena);
}

static void system_properties_are_there_though_not_stored(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"c.id", "'a'"},
        {"c._ts", "1600000000"},
        {"c._rid", "'AAAAAYAAAAIDAAAAAAAAAA=='"},
        {"c._self", "'dbs/AAAAAQ==/colls/AAAAAYAAAAI=/docs/AAAAAYAAAAIDAAAAAAAAAA==/'"},
        {"c._etag", "'\\'00000000-0000-1122-0174-876e807b0001\\''"},
        {"c._attachments", "'attachments/'"},
        {"c['_ts']", "1600000000"},
        {"c._mine", "5"},
        {"c._none", "undefined"},
        {"c.n._ts", "1"},
        {"c._ts.x", "undefined"},
        {"c._rid[0]", "undefined"},
        {"DOCUMENTID(c)", "3"},
        {"IS_DEFINED(c._etag)", "true"},
        {"gt(c._ts, 1500000000)", "true"},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_string_equal(evaluate(cases[i].text, arena), cases[i].expected);
}

static void the_whole_item_has_them_last(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(evaluate("c", arena),
                        "{'id':'a','_mine':5,'n':{'_ts':1},'_rid':'AAAAAYAAAAIDAAAAAAAAAA==',"
                        "'_self':'dbs/AAAAAQ==/colls/AAAAAYAAAAI=/docs/AAAAAYAAAAIDAAAAAAAAAA==/',"
                        "'_etag':'\\'00000000-0000-1122-0174-876e807b0001\\'',"
                        "'_attachments':'attachments/','_ts':1600000000}");
    assert_string_equal(evaluate("array(c, c)[1]._ts", arena), "1600000000");
    assert_string_equal(evaluate("index(c, LOWER('_TS'))", arena), "1600000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_properties_are_there_though_not_stored),
        cmocka_unit_test(the_whole_item_has_them_last),
    };
    return cmocka_run_group_tests_name("query/expression/item", tests, NULL, NULL);
}
