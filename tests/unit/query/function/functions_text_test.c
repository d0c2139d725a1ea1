/* Scores of texts, against the formula worked out word by word. */
#include "query/function/function.h"

#include "base/random.h"
#include "support/check.h"
#include "support/expressions.h"

#include <math.h>
#include <stdio.h>

enum { TEXTS = 40, WORDS_MAX = 30, KINDS = 12, PHRASES = 3 };

/* A collection of texts: words are numbers, which no stemmer changes. */
struct corpus {
    int words[TEXTS][WORDS_MAX];
    int counts[TEXTS];
};

static void corpus_make(struct random *random, struct corpus *corpus)
{
    for (int i = 0; i < TEXTS; i++) {
        corpus->counts[i] = (int)(random_next(random) % WORDS_MAX);
        for (int j = 0; j < corpus->counts[i]; j++)
            corpus->words[i][j] = (int)(random_next(random) % KINDS);
    }
}

static struct slice text_of(const struct corpus *corpus, int text, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (int i = 0; i < corpus->counts[text]; i++)
        buf_printf(&buf, "%sk%d", i % 3 ? " " : ", the ", corpus->words[text][i]);
    return arena_copy(arena, buf_slice(&buf));
}

static int often(const struct corpus *corpus, int text, int word)
{
    int count = 0;

    for (int i = 0; i < corpus->counts[text]; i++)
        count += corpus->words[text][i] == word;
    return count;
}

static int texts_with(const struct corpus *corpus, int word)
{
    int count = 0;

    for (int i = 0; i < TEXTS; i++)
        count += often(corpus, i, word) > 0;
    return count;
}

static int words_of_all(const struct corpus *corpus)
{
    int count = 0;

    for (int i = 0; i < TEXTS; i++)
        count += corpus->counts[i];
    return count;
}

static double naive(const struct corpus *corpus, int text, const int *phrases)
{
    double mean = (double)words_of_all(corpus) / TEXTS, score = 0;

    for (int i = 0; i < PHRASES; i++) {
        double n = texts_with(corpus, phrases[i]), tf = often(corpus, text, phrases[i]);

        score += log(1 + (TEXTS - n + 0.5) / (n + 0.5)) * tf * 2.2 /
                 (tf + 1.2 * (1 - 0.75 + 0.75 * corpus->counts[text] / mean));
    }
    return score;
}

static struct document_value array_of(const struct document_value *values, size_t count,
                                      struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    for (size_t i = 0; i < count; i++) {
        char key[DOCUMENT_INDEX_SIZE];

        document_append(&buf, document_index_key((uint32_t)i, key), &values[i]);
    }
    document_end(&buf, begin);
    return document_array(arena_copy(arena, buf_slice(&buf)));
}

static double score(const struct corpus *corpus, int text, const int *phrases, struct arena *arena)
{
    CLEANUP(query_context_done) struct query_context context;
    const struct query_function *function = query_function_find(SLICE("_FullTextScore"));
    struct document_value arguments[6], words[PHRASES], hits[PHRASES], value;
    struct error err;

    query_context_init(&context, arena, NULL, NULL);
    for (int i = 0; i < PHRASES; i++) {
        words[i] = document_string(arena_printf(arena, "K%d", phrases[i]));
        hits[i] = document_int32(texts_with(corpus, phrases[i]));
    }
    arguments[0] = document_string(SLICE("en-US"));
    arguments[1] = document_string(text_of(corpus, text, arena));
    arguments[2] = array_of(words, PHRASES, arena);
    arguments[3] = document_int32(TEXTS);
    arguments[4] = document_int32(words_of_all(corpus));
    arguments[5] = array_of(hits, PHRASES, arena);
    value = document_undefined();
    assert_ok(function->evaluate(arguments, 6, &context, &value, &err), &err);
    assert_int_equal(value.type, DOCUMENT_DOUBLE);
    return value.number;
}

static void scores_are_those_of_the_formula(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct random random;
    struct corpus corpus;

    random_seed(&random, 20240724);
    for (int round = 0; round < 50; round++) {
        corpus_make(&random, &corpus);
        for (int text = 0; text < TEXTS; text++) {
            int phrases[PHRASES];
            double expected, found;

            for (int i = 0; i < PHRASES; i++)
                phrases[i] = (int)(random_next(&random) % KINDS);
            expected = naive(&corpus, text, phrases);
            found = score(&corpus, text, phrases, arena);
            if (fabs(expected - found) > 1e-12 * fmax(1, expected))
                fail_msg("round %d, text %d: %.17g is %.17g", round, text, expected, found);
            arena_reset(arena);
        }
    }
}

static void what_is_no_text_and_what_is_not_there_has_no_score(void **state UNUSED)
{
    static const struct expression_case cases[] = {
        {"_FullTextScore('en-US', 5, ['a1'], 10, 100, [1])", "0"},
        {"_FullTextScore('en-US', c.missing, ['a1'], 10, 100, [1])", "0"},
        {"_FullTextScore('en-US', 'b1', ['a1'], 10, 100, [1])", "0"},
        {"_FullTextScore('en-US', 'a1', ['a1'], 0, 0, [0])", "0"},
        {"_FullTextScore('en-US', 'a1', ['a1'], 10, 100, [])", "0"},
        {"_FullTextScore('en-US', 'a1', 'a1', 10, 100, [1])", "undefined"},
        {"_FullTextScore('en-US', 'a1', ['a1'], 'x', 100, [1])", "undefined"},
        {"_FullTextScore('en-US', 'a1', ['a1', 5], 10, 100, [1, 1])", "0"},
        {"_FullTextWordCount('en-US', 'the red and the blue')", "2"},
        {"_FullTextWordCount('en-US', c.missing)", "0"},
    };

    expression_cases(cases, ARRAY_LEN(cases), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_those_of_the_formula),
        cmocka_unit_test(what_is_no_text_and_what_is_not_there_has_no_score),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
