/* Entries of texts: terms, in the language of their path; and what is added up of them. */
#include "index/policy.h"

#include "definition/names.h"
#include "document/json.h"
#include "support/check.h"
#include "support/documents.h"

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

#define LANGUAGES                                                                                  \
    "{\"defaultLanguage\":\"en-US\",\"fullTextPaths\":[{\"path\":\"/text\"},{\"path\":\"/de\","    \
    "\"language\":\"de-DE\"}]}"

static const struct index_policy *policy_of(struct arena *arena, const char *full_text)
{
    CLEANUP(buf_done) struct buf completed;
    const struct index_policy *policy;
    struct error err;

    buf_init(&completed, BUF_DEFAULT_MAX);
    assert_ok(index_policy_parse(document_of(arena, "{\"excludedPaths\":[{\"path\":\"/*\"}],"
                                                    "\"fullTextIndexes\":[{\"path\":\"/text\"},{"
                                                    "\"path\":\"/de\"}]}"),
                                 definition_names(DEFINITION_IDENTITY_ID), arena, &completed,
                                 &policy, &err),
              &err);
    return index_policy_with_terms(policy, document_of(arena, full_text), arena);
}

/* Printed, one in a line; each is stepped over to its end. */
static void assert_entries(struct arena *arena, const struct index_policy *policy,
                           struct slice item, const char *expected)
{
    CLEANUP(buf_done) struct buf text;
    struct index_entry *entries;
    struct error err;
    size_t count;

    buf_init(&text, BUF_DEFAULT_MAX);
    assert_ok(index_entries(policy, item, arena, &entries, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct slice rest = entries[i].bytes;

        assert_ok(index_entry_print(&rest, &text, &err), &err);
        assert_int_equal(rest.len, 0);
        BUF_APPEND(&text, "\n");
    }
    assert_slice_equal(buf_slice(&text), slice_of_text(expected));
}

static void a_text_has_an_entry_for_each_of_its_terms(void **state)
{
    const struct index_policy *policy = policy_of(*state, LANGUAGES);

    assert_entries(
        *state, policy,
        document_of(*state, "{\"text\":\"The swimmers swim, swimming\",\"de\":\"Häuser\"}"),
        "term of /de = \"de haus\"\nterm of /text = \"en swim\"\n"
        "term of /text = \"en swimmer\"\n");
    assert_entries(*state, policy, document_of(*state, "{\"text\":[\"swim\"],\"de\":5}"), "");
    assert_entries(*state, policy, document_of(*state, "{\"text\":\"the\"}"), "");
}

/* How often a text has each of its terms, and how many terms that has: behind the key of the item.
 */
static void entries_say_how_often_a_term_is_there(void **state)
{
    const struct index_policy *policy = policy_of(*state, LANGUAGES);
    struct index_entry *entries;
    uint32_t often, terms;
    struct error err;
    size_t count;

    assert_ok(index_entries(policy,
                            document_of(*state, "{\"text\":\"The swimmers swim, swimming\"}"),
                            *state, &entries, &count, &err),
              &err);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(index_entry_said_len(entries[i].bytes), INDEX_TERM_SAID);
        index_term_said(entries[i].said, &often, &terms);
        assert_int_equal(often, i == 0 ? 2 : 1); /* swim, swimmer */
        assert_int_equal(terms, 3);
    }
    assert_int_equal(index_entry_said_len(SLICE("text\0")), 0);
}

static void a_language_that_nobody_asks_in_has_no_entries(void **state)
{
    assert_entries(*state, policy_of(*state, "{\"defaultLanguage\":\"tlh\"}"),
                   document_of(*state, "{\"text\":\"swim\"}"), "");
}

static struct slice item_of_words(struct arena *arena, int count)
{
    CLEANUP(buf_done) struct buf json;

    buf_init(&json, 1 << 22);
    BUF_APPEND(&json, "{\"text\":\"");
    for (int i = 0; i < count; i++)
        buf_printf(&json, "w%d ", i);
    BUF_APPEND(&json, "\"}");
    buf_append_byte(&json, 0);
    return document_of(arena, (const char *)json.data);
}

static void a_text_of_very_many_terms_has_one_entry(void **state)
{
    const struct index_policy *policy = policy_of(*state, LANGUAGES);
    struct index_entry *entries;
    struct error err;
    size_t count;

    assert_ok(index_entries(policy, item_of_words(*state, 4096), *state, &entries, &count, &err),
              &err);
    assert_int_equal(count, 4096);
    assert_entries(*state, policy, item_of_words(*state, 4097), "term of /text = \"en \"\n");
}

static void words_are_added_up(void **state)
{
    struct document_segment segment = {.name = SLICE("text")};
    struct document_path path = {.segments = &segment, .count = 1};
    const struct index_definition *index =
        index_policy_text_at(policy_of(*state, LANGUAGES), &path);
    struct index_sum *sums;
    struct error err;
    size_t count;

    assert_non_null(index);
    assert_ok(
        index->kind->state->sums(index, item_of_words(*state, 5000), *state, &sums, &count, &err),
        &err);
    assert_int_equal(count, 1);
    assert_int_equal(sums[0].amounts[INDEX_TEXT_TEXTS], 1);
    assert_int_equal(sums[0].amounts[INDEX_TEXT_WORDS], 5000);
    assert_slice_equal(sums[0].name, index_text_sum_name(index, *state));
    assert_ok(index->kind->state->sums(index, document_of(*state, "{\"text\":5}"), *state, &sums,
                                       &count, &err),
              &err);
    assert_int_equal(count, 0);
}

static void a_path_that_is_listed_twice_is_read_once(void **state)
{
    CLEANUP(buf_done) struct buf completed;
    const struct index_policy *policy;
    struct error err;
    size_t count;

    buf_init(&completed, BUF_DEFAULT_MAX);
    assert_ok(index_policy_parse(document_of(*state, "{\"fullTextIndexes\":[{\"path\":\"/text\"},{"
                                                     "\"path\":\"/de\"},{\"path\":\"/text\"}]}"),
                                 definition_names(DEFINITION_IDENTITY_ID), *state, &completed,
                                 &policy, &err),
              &err);
    policy = index_policy_with_terms(policy, SLICE_NONE, *state);
    (void)index_policy_definitions(policy, &count);
    assert_int_equal(count, 3); /* that of all paths, and two */
}

static void another_language_makes_another_index(void **state)
{
    struct document_segment segment = {.name = SLICE("text")};
    struct document_path path = {.segments = &segment, .count = 1};
    const struct index_definition *english =
        index_policy_text_at(policy_of(*state, LANGUAGES), &path);
    const struct index_definition *german =
        index_policy_text_at(policy_of(*state, "{\"defaultLanguage\":\"de-DE\"}"), &path);

    assert_true(index_definition_same(english, english));
    assert_false(index_definition_same(english, german));
    assert_false(
        slice_equal(index_text_sum_name(english, *state), index_text_sum_name(german, *state)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_has_an_entry_for_each_of_its_terms, setup, teardown),
        cmocka_unit_test_setup_teardown(entries_say_how_often_a_term_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(a_language_that_nobody_asks_in_has_no_entries, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_text_of_very_many_terms_has_one_entry, setup, teardown),
        cmocka_unit_test_setup_teardown(words_are_added_up, setup, teardown),
        cmocka_unit_test_setup_teardown(a_path_that_is_listed_twice_is_read_once, setup, teardown),
        cmocka_unit_test_setup_teardown(another_language_makes_another_index, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
