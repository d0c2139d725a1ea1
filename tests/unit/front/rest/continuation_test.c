#include "front/rest/continuation.h"

#include "support/check.h"

struct fixture {
    struct rest_options options;
    struct rest_call call;
};

static int setup(void **state)
{
    struct fixture *fixture = MEMORY_NEW(struct fixture);

    random_secret(fixture->options.seal, sizeof fixture->options.seal);
    fixture->call.options = &fixture->options;
    fixture->call.arena = arena_new();
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    arena_free(fixture->call.arena);
    memory_free(fixture);
    return 0;
}

static void what_was_sealed_is_opened(void **state)
{
    struct fixture *fixture = *state;
    uint8_t bytes[REST_CONTINUATION_BYTES_MAX];
    struct slice opened;
    struct error err;

    memset(bytes, 0xA5, sizeof bytes);
    for (size_t len = 0; len <= sizeof bytes; len += len < 8 ? 1 : 61) {
        struct slice text =
            rest_continuation_seal(&fixture->call, SLICE("rid"), SLICE("p"), slice_of(bytes, len));

        assert_true(text.len <= REST_CONTINUATION_TEXT_MAX);
        for (size_t i = 0; i < text.len; i++)
            assert_true(text.data[i] > 0x20 && text.data[i] < 0x7F);
        assert_ok(
            rest_continuation_open(&fixture->call, SLICE("rid"), SLICE("p"), text, &opened, &err),
            &err);
        assert_slice_equal(opened, slice_of(bytes, len));
    }
}

static void a_changed_byte_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    struct slice opened, text = rest_continuation_seal(&fixture->call, SLICE("rid"), SLICE("p"),
                                                       SLICE("twelve bytes"));
    struct error err;

    for (size_t i = 0; i < text.len; i++) {
        struct slice changed = arena_copy(fixture->call.arena, text);

        ((uint8_t *)changed.data)[i] = changed.data[i] == 'Q' ? 'g' : 'Q';
        if (text.data[i] == '=')
            continue; /* padding carries nothing */
        assert_fails(rest_continuation_open(&fixture->call, SLICE("rid"), SLICE("p"), changed,
                                            &opened, &err),
                     &err, ERROR_BAD_CONTINUATION);
    }
}

static void it_is_bound_to_container_purpose_and_server(void **state)
{
    struct fixture *fixture = *state;
    struct slice opened,
        text = rest_continuation_seal(&fixture->call, SLICE("ab"), SLICE("c"), SLICE("d"));
    struct error err;

    assert_fails(
        rest_continuation_open(&fixture->call, SLICE("a"), SLICE("bc"), text, &opened, &err), &err,
        ERROR_BAD_CONTINUATION);
    assert_fails(
        rest_continuation_open(&fixture->call, SLICE("ab"), SLICE("x"), text, &opened, &err), &err,
        ERROR_BAD_CONTINUATION);
    random_secret(fixture->options.seal, sizeof fixture->options.seal);
    assert_fails(
        rest_continuation_open(&fixture->call, SLICE("ab"), SLICE("c"), text, &opened, &err), &err,
        ERROR_BAD_CONTINUATION);
}

static void nonsense_is_refused(void **state)
{
    static const char *const texts[] = {
        "", "A", "AAAA", "====", "!!!!", "AAAAAAAAAAAAAAAAAAAAAA==", "    ", "AAA=AAAA"};
    struct fixture *fixture = *state;
    struct slice opened;
    struct error err;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_fails(rest_continuation_open(&fixture->call, SLICE("r"), SLICE("p"),
                                            slice_of_text(texts[i]), &opened, &err),
                     &err, ERROR_BAD_CONTINUATION);
}

#define CONTINUATION_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTINUATION_TEST(what_was_sealed_is_opened),
        CONTINUATION_TEST(a_changed_byte_is_noticed),
        CONTINUATION_TEST(it_is_bound_to_container_purpose_and_server),
        CONTINUATION_TEST(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("front/rest/continuation", tests, NULL, NULL);
}
