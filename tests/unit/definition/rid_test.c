#include "definition/rid.h"

#include "base/random.h"
#include "support/check.h"

static void assert_text(struct rid rid, const char *text)
{
    char written[RID_TEXT_SIZE];
    struct rid again;

    assert_slice_equal(rid_format(rid, written), slice_of_text(text));
    assert_true(rid_parse(slice_of_text(text), &again));
    assert_int_equal(again.kind, rid.kind);
    assert_int_equal(again.database, rid.database);
    assert_int_equal(again.owner, rid.owner);
    assert_true(again.number == rid.number);
}

static void every_kind_has_the_bytes_that_clients_expect(void **state UNUSED)
{
    assert_text(rid_of_database(1), "AAAAAQ==");
    assert_text(rid_of_container(1, 2), "AAAAAYAAAAI=");
    assert_text((struct rid){RID_USER, 1, 2, 0}, "AAAAAQAAAAI=");
    assert_text((struct rid){RID_ENCRYPTION_KEY, 1, 2, 0}, "AAAAAUAAAAI=");
    assert_text(rid_below_container(RID_ITEM, 1, 2, 3), "AAAAAYAAAAIDAAAAAAAAAA==");
    assert_text(rid_below_container(RID_PROCEDURE, 1, 2, 3), "AAAAAYAAAAIDAAAAAAAAgA==");
    assert_text(rid_of_offer(1), "AQAA");
}

static void a_slash_is_written_as_a_dash(void **state UNUSED)
{
    assert_text(rid_of_database(0xFFFFFFFF), "-----w==");
}

static void random_rids_come_back_as_they_were(void **state UNUSED)
{
    static const enum rid_kind kinds[] = {RID_ITEM,    RID_CONFLICT,  RID_PKRANGE,   RID_UDF,
                                          RID_TRIGGER, RID_PROCEDURE, RID_PERMISSION};
    struct random random;

    random_seed(&random, 7);
    for (int i = 0; i < 10000; i++) {
        struct rid rid = {.kind = kinds[random_below(&random, ARRAY_LEN(kinds))],
                          .database = (uint32_t)random_next(&random),
                          .owner = (uint32_t)random_below(&random, 1u << RID_OWNER_BITS),
                          .number = random_next(&random) >> 4};
        char text[RID_TEXT_SIZE];
        struct rid again;

        assert_true(rid_parse(rid_format(rid, text), &again));
        assert_int_equal(again.kind, rid.kind);
        assert_int_equal(again.database, rid.database);
        assert_int_equal(again.owner, rid.owner);
        assert_true(again.number == rid.number);
    }
}

/* What clients compare: bytes 8 to 15 as a little-endian number. The text orders otherwise. */
static void items_order_by_number_not_by_text(void **state UNUSED)
{
    uint8_t early[RID_BYTES_MAX], late[RID_BYTES_MAX];
    char early_text[RID_TEXT_SIZE], late_text[RID_TEXT_SIZE];
    struct rid first = rid_below_container(RID_ITEM, 1, 1, 255);
    struct rid second = rid_below_container(RID_ITEM, 1, 1, 256);

    assert_int_equal(rid_encode(first, early), 16);
    assert_int_equal(rid_encode(second, late), 16);
    assert_int_equal(early[8], 0xFF);
    assert_int_equal(late[8], 0);
    assert_int_equal(late[9], 1);
    assert_true(slice_compare(rid_format(first, early_text), rid_format(second, late_text)) > 0);
}

static void what_is_no_rid_is_refused(void **state UNUSED)
{
    static const char *const texts[] = {
        "",
        "A",
        "orders",
        "AAAAAQ=",
        "AAAAAQ",
        "AAAA/Q==",
        "AAAAAR==", /* spare bits set */
        "AAAAAQ==AAAA",
        "====",
        "AAAAAYAAAAIDAAAAAAAAEA==", /* kind 1 */
        "AAAAAUAAAAIDAAAAAAAAAA==", /* nothing is below a key */
        "AAAAAYAAAAIDAAAAAAAAAAAAAAA=",
    };
    struct rid rid;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (rid_parse(slice_of_text(texts[i]), &rid))
            fail_msg("\"%s\" was taken for a rid", texts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_the_bytes_that_clients_expect),
        cmocka_unit_test(a_slash_is_written_as_a_dash),
        cmocka_unit_test(random_rids_come_back_as_they_were),
        cmocka_unit_test(items_order_by_number_not_by_text),
        cmocka_unit_test(what_is_no_rid_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
