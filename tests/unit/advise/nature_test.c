#include "advise/nature.h"

#include "support/check.h"

static enum advise_nature of_text(const char *text)
{
    struct document_value value = document_string(slice_of_text(text));

    return advise_nature_of(&value);
}

static enum advise_nature of_number(double number)
{
    struct document_value value = document_double(number);

    return advise_nature_of(&value);
}

static void what_could_name_something_does(void **state UNUSED)
{
    static const char *const names[] = {"",
                                        "tenant-17",
                                        "4c1e2b9a-7d5f-4e0b",
                                        "New York",
                                        "2018-08",
                                        "2018-08-09-host7",
                                        "#x12",
                                        "a@b.example/c?d",
                                        "2018-0a-09",
                                        "4711",
                                        "10.0.0.1",
                                        "1.2-beta",
                                        ".",
                                        "1.",
                                        "1.5e",
                                        "12:34:56:78:9a:bc",
                                        "12:34-7"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(of_text(names[i]), ADVISE_NATURE_NAME);
    assert_int_equal(advise_nature_of(&(struct document_value){.type = DOCUMENT_BOOL}),
                     ADVISE_NATURE_NAME);
}

static void measurements_times_and_sentences_are_told_apart(void **state UNUSED)
{
    static const char *const times[] = {
        "2018/08/09", "09.08.2018 10:11", "08/09/2018",     "20180809T101112Z",
        "10:11",      "10:11:12.131",     "10:11:12+02:00", "Thu, 09 Aug 2018 10:11:12 GMT"};
    static const char *const numbers[] = {"21.37", "-0.5", "+.25", "1.5e-3", "1.0E6"};

    assert_int_equal(of_number(21.37), ADVISE_NATURE_NUMBER);
    assert_int_equal(of_number(17), ADVISE_NATURE_INTEGER);
    assert_int_equal(of_text("2018-08-09"), ADVISE_NATURE_TIME);
    assert_int_equal(of_text("2018-08-09T10:11:12.131Z"), ADVISE_NATURE_TIME);
    assert_int_equal(of_text("2018-08-09 10:11"), ADVISE_NATURE_TIME);
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        assert_int_equal(of_text(times[i]), ADVISE_NATURE_TIME);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        assert_int_equal(of_text(numbers[i]), ADVISE_NATURE_NUMBER);
    assert_int_equal(of_text("it was fine"), ADVISE_NATURE_PROSE);
    assert_int_equal(of_text("one\ntwo"), ADVISE_NATURE_PROSE);
    assert_int_equal(of_text("0123456789012345678901234567890123456789012345678901234567890123456"),
                     ADVISE_NATURE_PROSE);
}

static void a_hash_keeps_the_nature_of_what_it_hides(void **state UNUSED)
{
    for (int nature = 0; nature < ADVISE_NATURES; nature++) {
        CLEANUP(buf_done) struct buf out;

        buf_init(&out, BUF_DEFAULT_MAX);
        advise_nature_mark((enum advise_nature)nature, 17, &out);
        buf_append_byte(&out, 0);
        assert_int_equal(of_text((const char *)out.data), nature);
    }
}

static void paths_that_number_things_are_known_by_their_last_word(void **state UNUSED)
{
    static const char *const yes[] = {"/id",      "/customerId",   "/customer_id",  "/order/no",
                                      "/zipCode", "/\"order-nr\"", "/accountNumber"};
    static const char *const no[] = {"/humid", "/paid", "/temperature", "/piano", "/monkey", "/"};

    for (size_t i = 0; i < ARRAY_LEN(yes); i++)
        assert_true(advise_nature_path_numbers(slice_of_text(yes[i])));
    for (size_t i = 0; i < ARRAY_LEN(no); i++)
        assert_false(advise_nature_path_numbers(slice_of_text(no[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_could_name_something_does),
        cmocka_unit_test(measurements_times_and_sentences_are_told_apart),
        cmocka_unit_test(a_hash_keeps_the_nature_of_what_it_hides),
        cmocka_unit_test(paths_that_number_things_are_known_by_their_last_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
