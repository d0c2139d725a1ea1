#include "cli/shell/words.h"

#include "support/check.h"

static void a_word_is_kept_once_with_its_last_value(void **state UNUSED)
{
    struct shell_words words = {0};

    assert_true(shell_words_put(&words, SLICE("@a"), SLICE("1")));
    assert_true(shell_words_put(&words, SLICE("@b"), SLICE_NONE));
    assert_true(shell_words_put(&words, SLICE("@a"), SLICE("2")));
    assert_int_equal(words.count, 2);
    assert_string_equal(words.names[0], "@a");
    assert_string_equal(words.values[0], "2");
    assert_null(words.values[1]);
    shell_words_done(&words);
}

static void a_word_can_be_taken_away(void **state UNUSED)
{
    struct shell_words words = {0};

    assert_false(shell_words_remove(&words, SLICE("a")));
    assert_true(shell_words_put(&words, SLICE("a"), SLICE("1")));
    assert_true(shell_words_put(&words, SLICE("b"), SLICE("2")));
    assert_true(shell_words_remove(&words, SLICE("a")));
    assert_int_equal(words.count, 1);
    assert_string_equal(words.names[0], "b");
    assert_string_equal(words.values[0], "2");
    shell_words_done(&words);
}

static void a_set_has_limits(void **state UNUSED)
{
    static uint8_t large[SHELL_WORD_BYTES_MAX + 1];
    struct shell_words words = {0};
    char name[16];

    for (int i = 0; i < SHELL_WORDS_MAX; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_true(shell_words_put(&words, slice_of_text(name), SLICE_NONE));
    }
    assert_false(shell_words_put(&words, SLICE("one more"), SLICE_NONE));
    assert_true(shell_words_put(&words, SLICE("7"), SLICE("again")));
    assert_false(shell_words_put(&words, SLICE("7"), slice_of(large, sizeof large)));
    assert_false(shell_words_put(&words, slice_of("a\0b", 3), SLICE_NONE));
    shell_words_done(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_is_kept_once_with_its_last_value),
        cmocka_unit_test(a_word_can_be_taken_away),
        cmocka_unit_test(a_set_has_limits),
    };
    return cmocka_run_group_tests_name("cli/shell/words", tests, NULL, NULL);
}
