#include "front/table/authorize.h"

#include "front/table/operation.h"
#include "support/check.h"

static void letters_are_rights(void **state UNUSED)
{
    unsigned rights;

    assert_true(table_rights_parse(SLICE("raud"), &rights));
    assert_int_equal(rights,
                     TABLE_RIGHT_READ | TABLE_RIGHT_ADD | TABLE_RIGHT_UPDATE | TABLE_RIGHT_DELETE);
    assert_true(table_rights_parse(SLICE("rwdlacupxf"), &rights));
    assert_int_equal(rights, TABLE_RIGHT_ALL);
    assert_true(table_rights_parse(SLICE(""), &rights));
    assert_int_equal(rights, 0);
    assert_false(table_rights_parse(SLICE("rZ"), &rights));
}

static bool allowed(unsigned rights, unsigned scopes, enum table_resource resource,
                    enum table_verb verb)
{
    struct table_identity identity = {.rights = rights, .scopes = scopes};
    struct error err;

    return table_identity_check(&identity, table_operation_find(resource, verb), SLICE("t"), &err);
}

static void an_operation_needs_its_rights_and_scope(void **state UNUSED)
{
    const unsigned object = 1u << TABLE_SCOPE_OBJECT, container = 1u << TABLE_SCOPE_CONTAINER;

    assert_true(allowed(TABLE_RIGHT_READ, object, TABLE_ENTITY, TABLE_READ));
    assert_false(allowed(TABLE_RIGHT_READ, container, TABLE_ENTITY, TABLE_READ));
    assert_false(allowed(TABLE_RIGHT_READ, object, TABLE_ENTITY, TABLE_DELETE));
    assert_true(allowed(TABLE_RIGHT_WRITE, container, TABLE_TABLES, TABLE_CREATE));
    assert_true(allowed(TABLE_RIGHT_CREATE, container, TABLE_TABLES, TABLE_CREATE));
    assert_false(allowed(TABLE_RIGHT_ADD, container, TABLE_TABLES, TABLE_CREATE));
    assert_true(allowed(0, object, TABLE_BATCH, TABLE_CREATE));
}

static void a_range_of_keys_has_both_ends(void **state UNUSED)
{
    struct table_identity identity = {.first = {SLICE("b"), SLICE("2")},
                                      .last = {SLICE("c"), SLICE_NONE}};
    static const struct {
        struct table_keys keys;
        bool within;
    } cases[] = {
        {{SLICE("a"), SLICE("9")}, false}, {{SLICE("b"), SLICE("1")}, false},
        {{SLICE("b"), SLICE("2")}, true},  {{SLICE("c"), SLICE("9")}, true},
        {{SLICE("ca"), SLICE("")}, false},
    };
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(table_identity_check_keys(&identity, &cases[i].keys, &err),
                         cases[i].within);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_are_rights),
        cmocka_unit_test(an_operation_needs_its_rights_and_scope),
        cmocka_unit_test(a_range_of_keys_has_both_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
