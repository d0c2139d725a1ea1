#include "front/table/xml.h"

#include "support/check.h"

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

static void a_document_is_a_tree_of_texts(void **state)
{
    struct xml_node *root;
    struct error err;

    assert_ok(xml_read(SLICE(XML_HEAD "<a x='1'>\n <b> one &amp; two </b><b>three</b><c/></a>"),
                       *state, &root, &err),
              &err);
    assert_slice_equal(root->name, SLICE("a"));
    assert_slice_equal(xml_child(root, "b")->text, SLICE("one & two"));
    assert_slice_equal(xml_child(root, "b")->next->text, SLICE("three"));
    assert_int_equal(xml_child(root, "c")->text.len, 0);
    assert_null(xml_child(root, "d"));
}

static void what_is_broken_or_too_much_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "x",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
        "<a>&x;</a>",
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
    };
    CLEANUP(buf_done) struct buf many;
    struct xml_node *root;
    struct error err;

    buf_init(&many, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_fails(xml_read(slice_of_text(texts[i]), *state, &root, &err), &err, ERROR_TABLE_XML);
    BUF_APPEND(&many, "<a>");
    for (size_t i = 0; i < XML_NODES_MAX; i++)
        BUF_APPEND(&many, "<b/>");
    BUF_APPEND(&many, "</a>");
    assert_fails(xml_read(buf_slice(&many), *state, &root, &err), &err, ERROR_TABLE_XML);
}

static void texts_are_escaped(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    xml_append_text(&out, SLICE("a<b>&\"\x01"));
    assert_slice_equal(buf_slice(&out), SLICE("a&lt;b&gt;&amp;&quot; "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_document_is_a_tree_of_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_broken_or_too_much_is_refused, setup, teardown),
        cmocka_unit_test(texts_are_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
