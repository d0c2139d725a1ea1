#include "front/rest/sql/lexer.h"

#include "support/check.h"

static bool lex_one(struct arena *arena, struct slice text, struct sql_token *ret_token,
                    struct sql_error *ret_error, struct error *err)
{
    struct sql_report report = {arena, ret_error, err};
    struct sql_lexer lexer;

    return sql_lexer_init(&lexer, text, &report) && sql_lexer_next(&lexer, ret_token);
}

static void symbols_are_taken_as_long_as_they_go(void **state UNUSED)
{
    static const struct {
        const char *text;
        enum sql_token_kind kinds[5];
    } known[] = {
        {"< <= << <>",
         {SQL_TOKEN_LESS, SQL_TOKEN_LESS_EQUAL, SQL_TOKEN_SHIFT_LEFT, SQL_TOKEN_NOT_EQUAL}},
        {"> >= >> >>>",
         {SQL_TOKEN_GREATER, SQL_TOKEN_GREATER_EQUAL, SQL_TOKEN_SHIFT_RIGHT,
          SQL_TOKEN_SHIFT_RIGHT_ZERO}},
        {">>>>", {SQL_TOKEN_SHIFT_RIGHT_ZERO, SQL_TOKEN_GREATER}},
        {"| || ? ??", {SQL_TOKEN_BAR, SQL_TOKEN_CONCAT, SQL_TOKEN_QUESTION, SQL_TOKEN_COALESCE}},
        {"! != =", {SQL_TOKEN_NOT, SQL_TOKEN_NOT_EQUAL, SQL_TOKEN_EQUAL}},
        {"()[]",
         {SQL_TOKEN_OPEN, SQL_TOKEN_CLOSE, SQL_TOKEN_OPEN_BRACKET, SQL_TOKEN_CLOSE_BRACKET}},
        {"{},.:",
         {SQL_TOKEN_OPEN_BRACE, SQL_TOKEN_CLOSE_BRACE, SQL_TOKEN_COMMA, SQL_TOKEN_DOT,
          SQL_TOKEN_COLON}},
        {"+-*/%",
         {SQL_TOKEN_PLUS, SQL_TOKEN_MINUS, SQL_TOKEN_STAR, SQL_TOKEN_SLASH, SQL_TOKEN_PERCENT}},
        {"~ & ^", {SQL_TOKEN_TILDE, SQL_TOKEN_AMPERSAND, SQL_TOKEN_CARET}},
        {"1.a", {SQL_TOKEN_NUMBER, SQL_TOKEN_DOT, SQL_TOKEN_WORD}},
        {"a.1", {SQL_TOKEN_WORD, SQL_TOKEN_DOT, SQL_TOKEN_NUMBER}},
        {"a -- b\n c", {SQL_TOKEN_WORD, SQL_TOKEN_WORD}},
        {"a /* b * / ** */ c", {SQL_TOKEN_WORD, SQL_TOKEN_WORD}},
        {"a--", {SQL_TOKEN_WORD}},
        {"a\xC2\xA0@b", {SQL_TOKEN_WORD, SQL_TOKEN_PARAMETER}},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct error err;
        struct sql_report report = {arena, NULL, &err};
        struct sql_lexer lexer;
        struct sql_token token;

        assert_ok(sql_lexer_init(&lexer, slice_of_text(known[i].text), &report), &err);
        for (size_t at = 0; at < 5; at++) {
            assert_ok(sql_lexer_next(&lexer, &token), &err);
            if (token.kind != known[i].kinds[at])
                fail_msg("%s: token %zu is of kind %d", known[i].text, at, token.kind);
        }
    }
}

static void numbers_have_the_type_json_gives_them(void **state UNUSED)
{
    static const struct {
        const char *text;
        enum document_type type;
        double number;
    } known[] = {
        {"0", DOCUMENT_INT32, 0},
        {"007", DOCUMENT_INT32, 7},
        {"2147483647", DOCUMENT_INT32, 2147483647},
        {"2147483648", DOCUMENT_INT64, 2147483648},
        {"9223372036854775807", DOCUMENT_INT64, 9223372036854775807.0},
        {"9223372036854775808", DOCUMENT_DOUBLE, 9223372036854775808.0},
        {"99999999999999999999", DOCUMENT_DOUBLE, 1e20},
        {"1.0", DOCUMENT_DOUBLE, 1},
        {"1.5", DOCUMENT_DOUBLE, 1.5},
        {"1e3", DOCUMENT_DOUBLE, 1000},
        {"1E+3", DOCUMENT_DOUBLE, 1000},
        {"25e-1", DOCUMENT_DOUBLE, 2.5},
        {".5", DOCUMENT_DOUBLE, 0.5},
        {".25e1", DOCUMENT_DOUBLE, 2.5},
        {"0x10", DOCUMENT_INT32, 16},
        {"0XfF", DOCUMENT_INT32, 255},
        {"0x7fffffffffffffff", DOCUMENT_INT64, 9223372036854775807.0},
        {"0xffffffffffffffff", DOCUMENT_DOUBLE, 18446744073709551615.0},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_token token;
        struct error err;
        double number = -1;

        assert_ok(lex_one(arena, slice_of_text(known[i].text), &token, NULL, &err), &err);
        assert_int_equal(token.kind, SQL_TOKEN_NUMBER);
        assert_int_equal(token.value.type, known[i].type);
        assert_true(document_to_double(&token.value, &number));
        assert_true(number == known[i].number);
    }
}

static void strings_are_decoded(void **state UNUSED)
{
    static const struct {
        struct slice text, value;
    } known[] = {
        {SLICE("''"), SLICE("")},
        {SLICE("\"\""), SLICE("")},
        {SLICE("'it\"s'"), SLICE("it\"s")},
        {SLICE("\"it's\""), SLICE("it's")},
        {SLICE("'it\\'s'"), SLICE("it's")},
        {SLICE("'\\\"\\\\\\/\\b\\f\\n\\r\\t'"), SLICE("\"\\/\b\f\n\r\t")},
        {SLICE("'a\nb'"), SLICE("a\nb")},
        {SLICE("'\\u00e9\\u20AC'"), SLICE("\xC3\xA9\xE2\x82\xAC")},
        {SLICE("'\\ud83d\\ude00'"), SLICE("\xF0\x9F\x98\x80")},
        {SLICE("'\\ud83dx'"), SLICE("\xED\xA0\xBDx")},
        {SLICE("'\\ude00\\ud83d'"), SLICE("\xED\xB8\x80\xED\xA0\xBD")},
        {SLICE("'\\ud83d\xED\xB8\x80'"), SLICE("\xF0\x9F\x98\x80")},
        {SLICE("'a\\u0000b'"), SLICE("a\0b")},
        {SLICE("'-- no /* comment'"), SLICE("-- no /* comment")},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_token token;
        struct error err;

        assert_ok(lex_one(arena, known[i].text, &token, NULL, &err), &err);
        assert_int_equal(token.kind, SQL_TOKEN_STRING);
        assert_slice_equal(token.value.text, known[i].value);
        assert_slice_equal(token.text, known[i].text);
    }
}

static void words_may_be_of_any_script(void **state UNUSED)
{
    static const char *const known[] = {
        "c",
        "_ts",
        "$1",
        "a1",
        ("stra\xC3\x9F"
         "e"),
        "\xE5\x90\x8D\xE5\x89\x8D",
        "\xF0\x9D\x92\xB3y",
        "na\xC3\xAFve_2",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_token token;
        struct error err;

        assert_ok(lex_one(arena, slice_of_text(known[i]), &token, NULL, &err), &err);
        assert_int_equal(token.kind, SQL_TOKEN_WORD);
        assert_slice_equal(token.text, slice_of_text(known[i]));
        assert_int_equal(token.keyword, SQL_WORD_NONE);
    }
}

static void keywords_have_no_case(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sql_token token;
    struct error err;

    assert_ok(lex_one(arena, SLICE("sElEcT"), &token, NULL, &err), &err);
    assert_int_equal(token.keyword, SQL_WORD_SELECT);
    assert_ok(lex_one(arena, SLICE("undefined"), &token, NULL, &err), &err);
    assert_int_equal(token.keyword, SQL_WORD_UNDEFINED);
    assert_ok(lex_one(arena, SLICE("selects"), &token, NULL, &err), &err);
    assert_int_equal(token.keyword, SQL_WORD_NONE);
    assert_true(sql_is_plain_word(SLICE("selects")));
    assert_false(sql_is_plain_word(SLICE("Value")));
    assert_false(sql_is_plain_word(SLICE("1a")));
    assert_false(sql_is_plain_word(SLICE("a b")));
    assert_false(sql_is_plain_word(SLICE("")));
}

static void what_is_no_token_is_refused_with_its_place(void **state UNUSED)
{
    static const struct {
        struct slice text;
        const char *code;
        uint32_t start, end;
    } known[] = {
        {SLICE("  ;"), "SC1001", 2, 3},    {SLICE("#"), "SC1001", 0, 1},
        {SLICE("\\"), "SC1001", 0, 1},     {SLICE("@"), "SC1001", 0, 1},
        {SLICE("@ a"), "SC1001", 0, 1},    {SLICE("/* a"), "SC1001", 0, 4},
        {SLICE("1abc"), "SC1001", 0, 4},   {SLICE("0x"), "SC1001", 0, 2},
        {SLICE("0xg"), "SC1001", 0, 3},    {SLICE("0x1ffffffffffffffff"), "SC1001", 0, 19},
        {SLICE("1e999"), "SC1001", 0, 5},  {SLICE("'abc"), "SC1010", 0, 4},
        {SLICE("\"abc'"), "SC1010", 0, 5}, {SLICE("'a\\"), "SC1010", 0, 3},
        {SLICE("'a\\x'"), "SC1010", 0, 3}, {SLICE("'\\u12g4'"), "SC1010", 0, 3},
        {SLICE("'\\n"), "SC1010", 0, 3},   {SLICE("\xF0\x9F\x98\x80"), "SC1001", 0, 2},
        {SLICE("ab\xFF"), "SC1001", 2, 3}, {SLICE("\0"), "SC1001", 0, 1},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct sql_error error;
        struct sql_token token;
        struct error err;

        assert_fails(lex_one(arena, known[i].text, &token, &error, &err), &err, ERROR_BAD_QUERY);
        assert_string_equal(error.code, known[i].code);
        assert_int_equal(error.span.start, known[i].start);
        assert_int_equal(error.span.end, known[i].end);
    }
}

static void places_count_utf16_units(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct error err;
    struct sql_report report = {arena, NULL, &err};
    struct sql_lexer lexer;
    struct sql_token token;

    assert_ok(sql_lexer_init(&lexer, SLICE("'\xC3\xA9\xF0\x9F\x98\x80' x"), &report), &err);
    assert_ok(sql_lexer_next(&lexer, &token), &err);
    assert_int_equal(token.span.end, 5);
    assert_ok(sql_lexer_next(&lexer, &token), &err);
    assert_int_equal(token.span.start, 6);
    assert_int_equal(token.span.end, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_are_taken_as_long_as_they_go),
        cmocka_unit_test(numbers_have_the_type_json_gives_them),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(words_may_be_of_any_script),
        cmocka_unit_test(keywords_have_no_case),
        cmocka_unit_test(what_is_no_token_is_refused_with_its_place),
        cmocka_unit_test(places_count_utf16_units),
    };
    return cmocka_run_group_tests_name("front/rest/sql/lexer", tests, NULL, NULL);
}
