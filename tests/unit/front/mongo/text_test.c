#include "front/mongo/text.h"

#include "support/check.h"
#include "support/extended.h"

static void shows(const char *json, const char *expected)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value value = document_object(extended_document(arena, slice_of_text(json)));

    assert_slice_equal(mongo_text_value(&value, arena), slice_of_text(expected));
}

static void values_show_as_in_mongos_messages(void **state UNUSED)
{
    shows("{}", "{}");
    shows("{\"a\":1,\"b\":\"x\"}", "{ a: 1, b: \"x\" }");
    shows("{\"a\":[1,[]],\"b\":{\"c\":null}}", "{ a: [ 1, [] ], b: { c: null } }");
    shows("{\"a\":1.0,\"b\":0.1,\"c\":{\"$numberLong\":\"5\"}}", "{ a: 1.0, b: 0.1, c: 5 }");
    shows("{\"a\":{\"$oid\":\"507f1f77bcf86cd799439011\"}}",
          "{ a: ObjectId('507f1f77bcf86cd799439011') }");
    shows("{\"a\":{\"$date\":{\"$numberLong\":\"5\"}}}", "{ a: new Date(5) }");
    shows("{\"a\":{\"$timestamp\":{\"t\":5,\"i\":7}}}", "{ a: Timestamp(5, 7) }");
    shows("{\"a\":{\"$regularExpression\":{\"pattern\":\"^a\",\"options\":\"i\"}}}",
          "{ a: /^a/i }");
    shows("{\"a\":{\"$minKey\":1},\"b\":true}", "{ a: MinKey, b: true }");
    shows("{\"a\":{\"$numberDecimal\":\"1.10\"}}", "{ a: 1.10 }");
}

static void long_values_are_cut_between_characters(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf buf;
    struct document_value text = document_string(SLICE("\xC3\xA4\xC3\xA4\xC3\xA4"));

    buf_init(&buf, BUF_DEFAULT_MAX);
    mongo_text_append(&buf, &text, 4);
    assert_slice_equal(buf_slice(&buf), SLICE("\"\xC3\xA4..."));
}

static void an_element_shows_with_its_name(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value one = document_int32(1);

    assert_slice_equal(mongo_text_element(SLICE("_id"), &one, arena), SLICE("{_id: 1}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_show_as_in_mongos_messages),
        cmocka_unit_test(long_values_are_cut_between_characters),
        cmocka_unit_test(an_element_shows_with_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
