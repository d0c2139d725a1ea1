/* Texts as terms. */
#include "search/analyser.h"

#include "base/buf.h"
#include "base/memory.h"
#include "support/check.h"

static void assert_terms(const char *language, struct slice text, const char *expected)
{
    CLEANUP(search_analyser_free)
    struct search_analyser *analyser = search_analyser_new(slice_of_text(language));
    struct search_text words = {analyser, text};
    CLEANUP(buf_done) struct buf terms;
    struct slice term;

    assert_non_null(analyser);
    buf_init(&terms, 1 << 20);
    while (search_text_next(&words, &term)) {
        if (terms.len)
            BUF_APPEND(&terms, " ");
        buf_append_slice(&terms, term);
    }
    assert_slice_equal(buf_slice(&terms), slice_of_text(expected));
}

static void words_are_brought_to_their_stems(void **state UNUSED)
{
    assert_terms("en-US", SLICE("Swimming pools, and SWIMMERS' races!"), "swim pool swimmer race");
    assert_terms("en", SLICE("running-shoes 42nd e2e"), "run shoe 42nd e2e");
    assert_terms("de-DE", SLICE("Die Häuser der Städte"), "haus stadt");
    assert_terms("fr-FR", SLICE("l'été des maisons"), "été maison");
    assert_terms("es-ES", SLICE("las canciones"), "cancion");
    assert_terms("it-IT", SLICE("le canzoni"), "canzon");
    assert_terms("pt-BR", SLICE("as canções"), "cançõ");
    assert_terms("pt-PT", SLICE("as canções"), "cançõ");
}

static void words_that_say_nothing_leave_no_gap(void **state UNUSED)
{
    assert_terms("en-US", SLICE("The state of the art"), "state art");
    assert_terms("en-US", SLICE("to be or not to be"), "");
    assert_terms("en-US", SLICE(""), "");
    assert_terms("en-US", SLICE(" \t...  "), "");
}

static void characters_of_any_script_are_of_words(void **state UNUSED)
{
    assert_terms("en-US", SLICE("ΑΘΗΝΑ Москва 東京 naïve"), "αθηνα москва 東京 naïv");
    /* a byte that is no character ends a word */
    assert_terms("en-US", SLICE("red\xFFgreen\xC3"), "red green");
}

static void languages_that_are_not_known_are_none(void **state UNUSED)
{
    static const char *const unknown[] = {"", "e", "english", "xx-XX", "en_US", "enx"};

    for (size_t i = 0; i < ARRAY_LEN(unknown); i++)
        if (search_language_is_known(slice_of_text(unknown[i])) ||
            search_analyser_new(slice_of_text(unknown[i])))
            fail_msg("\"%s\" is a language", unknown[i]);
    assert_true(search_language_is_known(SLICE("EN-gb")));
}

static void a_text_without_spaces_is_one_short_term(void **state UNUSED)
{
    enum { LEN = 2 << 20 };
    CLEANUP(memory_free) uint8_t *bytes = memory_alloc(LEN);
    CLEANUP(search_analyser_free)
    struct search_analyser *analyser = search_analyser_new(SLICE("en-US"));
    struct search_text words = {analyser, slice_of(bytes, LEN)};
    struct slice term;

    memset(bytes, 'x', LEN);
    assert_true(search_text_next(&words, &term));
    assert_true(term.len <= SEARCH_TERM_MAX);
    assert_false(search_text_next(&words, &term));
}

static void assert_opened(const char *language, unsigned flags, struct slice text,
                          const char *expected)
{
    CLEANUP(search_analyser_free)
    struct search_analyser *analyser = search_analyser_open(slice_of_text(language), flags);
    struct search_text words = {analyser, text};
    CLEANUP(buf_done) struct buf terms;
    struct slice term;

    assert_non_null(analyser);
    buf_init(&terms, 1 << 20);
    while (search_text_next(&words, &term)) {
        buf_append_text(&terms, terms.len ? " " : "");
        buf_append_slice(&terms, term);
    }
    assert_slice_equal(buf_slice(&terms), slice_of_text(expected));
}

static void words_may_keep_their_case_and_lose_their_accents(void **state UNUSED)
{
    assert_opened("en", SEARCH_KEEP_CASE, SLICE("The Swimmers swim"), "Swimmer swim");
    assert_opened("en", SEARCH_DROP_MARKS, SLICE("Café CAFÉS Álto"), "cafe cafe alto");
    assert_opened("fr", SEARCH_DROP_MARKS, SLICE("été"), "ete");
    assert_opened("none", 0, SLICE("The swimmers, swimming"), "the swimmers swimming");
    assert_null(search_analyser_open(SLICE("tlh"), 0));
    assert_slice_equal(search_language_code(SLICE("German")), SLICE("de"));
    assert_slice_equal(search_language_code(SLICE("none")), SLICE("none"));
    assert_null(search_language_code(SLICE("klingon")).data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_brought_to_their_stems),
        cmocka_unit_test(words_that_say_nothing_leave_no_gap),
        cmocka_unit_test(characters_of_any_script_are_of_words),
        cmocka_unit_test(languages_that_are_not_known_are_none),
        cmocka_unit_test(a_text_without_spaces_is_one_short_term),
        cmocka_unit_test(words_may_keep_their_case_and_lose_their_accents),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
