/* Collation documents, and values in comparison form. */
#include "front/mongo/collation/collation.h"

#include "document/order.h"
#include "document/utf8.h"
#include "support/check.h"
#include "support/extended.h"

static int setup(void **state)
{
    *state = arena_new();
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

static const struct document_collator *collator_of(struct arena *arena, const char *json)
{
    const struct document_collator *collator;
    struct error err;

    assert_ok(mongo_collator_find(extended_document(arena, slice_of_text(json)), &collator, &err),
              &err);
    return collator;
}

static int compare(struct arena *arena, const char *collation, const char *a, const char *b)
{
    const struct document_collator *collator = collator_of(arena, collation);
    const struct document_value left = document_string(slice_of_text(a)),
                                right = document_string(slice_of_text(b));
    struct document_value x, y;
    struct error err;
    int order;

    assert_ok(mongo_collate_constant(collator, &left, arena, &x, &err), &err);
    assert_ok(mongo_collate_constant(collator, &right, arena, &y, &err), &err);
    order = document_compare(DOCUMENT_ORDER_MONGO, &x, &y);
    return (order > 0) - (order < 0);
}

static void texts_compare_as_the_collation_has_it(void **state)
{
    static const struct {
        const char *collation, *a, *b;
        int order;
    } rows[] = {
        {"{\"locale\":\"en\"}", "a", "B", -1},
        {"{\"locale\":\"en\"}", "a", "A", -1},
        {"{\"locale\":\"en\",\"caseFirst\":\"upper\"}", "a", "A", 1},
        {"{\"locale\":\"en\",\"strength\":2}", "a", "A", 0},
        {"{\"locale\":\"en\",\"strength\":2}", "a", "\xc3\xa4", -1},
        {"{\"locale\":\"en\",\"strength\":1}", "a", "\xc3\xa4", 0},
        {"{\"locale\":\"en\",\"strength\":1,\"caseLevel\":true}", "a", "A", -1},
        {"{\"locale\":\"sv\"}", "\xc3\xa4", "z", 1},
        {"{\"locale\":\"en\"}", "a10", "a9", -1},
        {"{\"locale\":\"en\",\"numericOrdering\":true}", "a10", "a9", 1},
        {"{\"locale\":\"en\",\"strength\":3,\"alternate\":\"shifted\"}", "a-b", "ab", 0},
        {"{\"locale\":\"en\",\"strength\":5}", "\xc3\xa4", "a\xcc\x88", 0},
        {"{\"locale\":\"en\"}", "", "a", -1},
        {"{\"locale\":\"simple\"}", "a", "B", 1},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (compare(*state, rows[i].collation, rows[i].a, rows[i].b) != rows[i].order)
            fail_msg("%s: %s and %s", rows[i].collation, rows[i].a, rows[i].b);
}

static void what_stands_for_a_text_is_a_text(void **state)
{
    static const char *const words[] = {"Stra\303\237e", "\xe6\x97\xa5\xe6\x9c\xac", "\xff\xfe",
                                        ""};
    const struct document_collator *collator = collator_of(*state, "{\"locale\":\"de\"}");

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        const struct document_value word = document_string(slice_of_text(words[i]));
        struct document_value form;
        struct error err;

        assert_ok(mongo_collate_constant(collator, &word, *state, &form, &err), &err);
        assert_int_equal(form.type, DOCUMENT_STRING);
        assert_int_equal(utf8_valid_length(form.text), form.text.len);
    }
}

static void texts_at_any_depth_are_brought_into_comparison_form_and_nothing_else(void **state)
{
    const struct document_collator *collator =
        collator_of(*state, "{\"locale\":\"en\",\"strength\":1}");
    struct document_value a = document_object(
        extended_document(*state, SLICE("{\"n\":1,\"a\":[{\"b\":\"X\"},\"y\"],\"d\":true}")));
    struct document_value b = document_object(
        extended_document(*state, SLICE("{\"n\":1,\"a\":[{\"b\":\"x\"},\"Y\"],\"d\":true}")));
    struct document_value plain =
        document_object(extended_document(*state, SLICE("{\"n\":1,\"a\":[2.5,null]}")));
    struct document_value x, y;
    struct error err;

    assert_true(document_collate_matters(&a));
    assert_false(document_collate_matters(&plain));
    assert_ok(mongo_collate_constant(collator, &a, *state, &x, &err), &err);
    assert_ok(mongo_collate_constant(collator, &b, *state, &y, &err), &err);
    assert_int_equal(document_compare(DOCUMENT_ORDER_MONGO, &x, &y), 0);
    assert_ok(mongo_collate_constant(collator, &plain, *state, &x, &err), &err);
    assert_int_equal(document_compare(DOCUMENT_ORDER_MONGO, &x, &plain), 0);
}

static void equal_documents_have_one_collator_and_show_all_their_fields(void **state)
{
    const struct document_collator *collator = collator_of(*state, "{\"locale\":\"fr_CA\"}");
    struct document_value value;

    assert_ptr_equal(collator,
                     collator_of(*state, "{\"strength\":3,\"locale\":\"fr_CA\",\"backwards\":true,"
                                         "\"version\":\"57.1\"}"));
    assert_ptr_not_equal(collator, collator_of(*state, "{\"locale\":\"fr\"}"));
    assert_null(collator_of(*state, "{\"locale\":\"simple\"}"));
    assert_null(collator_of(*state, "{}"));
    assert_true(document_find(document_collator_document(collator), SLICE("backwards"), &value));
    assert_true(value.boolean);
    assert_true(document_find(document_collator_document(collator), SLICE("version"), &value));
}

static void what_is_no_collation_is_refused(void **state)
{
    static const struct {
        const char *json;
        int code;
    } rows[] = {
        {"{\"locale\":\"xx\"}", 2},
        {"{\"locale\":\"\"}", 2},
        {"{\"locale\":\"en@colStrength=primary\"}", 2},
        {"{\"locale\":\"de@collation=nobody\"}", 2},
        {"{\"locale\":\"en\",\"strength\":0}", 2},
        {"{\"locale\":\"en\",\"strength\":2.5}", 2},
        {"{\"locale\":\"en\",\"strength\":\"1\"}", 14},
        {"{\"locale\":\"en\",\"alternate\":\"on\"}", 2},
        {"{\"locale\":\"en\",\"maxVariable\":true}", 14},
        {"{\"locale\":\"simple\",\"strength\":1}", 2},
        {"{\"locale\":\"en\",\"x\":1}", 40415},
        {"{\"strength\":1}", 40414},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct document_collator *collator;
        struct error err;

        assert_fails(mongo_collator_find(extended_document(*state, slice_of_text(rows[i].json)),
                                         &collator, &err),
                     &err, ERROR_MONGO);
        assert_int_equal(mongo_error_code(&err), rows[i].code);
    }
}

/* Last: the table stays full. */
static void more_kinds_than_there_is_room_for_are_refused_by_name(void **state)
{
    const struct document_collator *collator;
    size_t made = 0;
    struct error err;

    for (int bits = 0; bits < 64; bits++)
        for (int strength = 3; strength <= 5; strength++)
            for (int first = 0; first < 2; first++) {
                struct slice json = arena_printf(
                    *state,
                    "{\"locale\":\"en\",\"strength\":%d,\"caseFirst\":\"%s\",\"caseLevel\":%s,"
                    "\"numericOrdering\":%s,\"normalization\":%s,\"backwards\":%s,"
                    "\"alternate\":\"%s\",\"maxVariable\":\"%s\"}",
                    strength, first ? "upper" : "lower", bits & 1 ? "true" : "false",
                    bits & 2 ? "true" : "false", bits & 4 ? "true" : "false",
                    bits & 8 ? "true" : "false", bits & 16 ? "shifted" : "non-ignorable",
                    bits & 32 ? "punct" : "space");

                made += mongo_collator_find(extended_document(*state, json), &collator, &err);
            }
    assert_in_range(made, 200, DOCUMENT_COLLATORS_MAX);
    assert_int_equal(mongo_error_code(&err), MONGO_NOT_IMPLEMENTED);
    assert_contains(err.message, "different collations");
    assert_non_null(collator_of(*state, "{\"locale\":\"fr_CA\"}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_compare_as_the_collation_has_it),
        cmocka_unit_test(what_stands_for_a_text_is_a_text),
        cmocka_unit_test(texts_at_any_depth_are_brought_into_comparison_form_and_nothing_else),
        cmocka_unit_test(equal_documents_have_one_collator_and_show_all_their_fields),
        cmocka_unit_test(what_is_no_collation_is_refused),
        cmocka_unit_test(more_kinds_than_there_is_room_for_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
