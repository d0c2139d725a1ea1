#include "front/rest/query/query_figures.h"

#include "support/check.h"
#include "support/documents.h"

#include <openssl/evp.h>

struct fixture {
    struct rest_call call;
    struct query_page page;
};

static int setup(void **state)
{
    struct fixture *f = MEMORY_NEW(struct fixture);

    f->call.arena = arena_new();
    buf_init(&f->call.lines, BUF_DEFAULT_MAX);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    buf_done(&f->call.lines);
    arena_free(f->call.arena);
    memory_free(f);
    return 0;
}

static const char *lines(struct fixture *f)
{
    return arena_text(f->call.arena, buf_slice(&f->call.lines));
}

static void ask(struct fixture *f, enum rest_header header)
{
    f->call.headers.values[header] = SLICE("True");
}

static void explain(struct fixture *f, const char *json)
{
    f->page.explain = document_of(f->call.arena, json);
}

static void nothing_is_told_that_was_not_asked_for(void **state)
{
    struct fixture *f = *state;

    rest_query_figures(&f->call, &f->page, 0);
    assert_int_equal(f->call.lines.len, 0);
    assert_false(rest_query_wants_indexes(&f->call));
}

static void metrics_end_without_a_separator(void **state)
{
    struct fixture *f = *state;

    ask(f, REST_HEADER_POPULATE_QUERY_METRICS);
    f->page.metrics = (struct query_metrics){.items_loaded = 4, .rows = 2, .total_ns = 1500000};
    rest_query_figures(&f->call, &f->page, 500000);
    assert_contains(lines(f), "totalExecutionTimeInMs=2.00;queryCompileTimeInMs=0.50;");
    assert_contains(lines(f), ";retrievedDocumentCount=4;");
    assert_contains(lines(f), ";outputDocumentCount=2;");
    assert_contains(lines(f), ";indexUtilizationRatio=0.50\r\n");
}

static void the_second_form_is_percent_encoded(void **state)
{
    struct fixture *f = *state;
    struct slice text;

    ask(f, REST_HEADER_POPULATE_INDEX_METRICS_2);
    explain(f, "{\"access\":{\"kind\":\"index\",\"index\":{\"path\":\"(/a ASC, /b DESC)\","
               "\"composite\":true},\"intersectedWith\":{\"path\":\"/c\",\"composite\":false}},"
               "\"advice\":[{\"kind\":\"single\",\"path\":\"/d\"},{\"kind\":\"composite\","
               "\"paths\":[\"/e\",\"/f\"]}]}");
    rest_query_figures(&f->call, &f->page, 0);
    assert_contains(lines(f), "x-ms-cosmos-index-utilization: %7B%22Utilized%22");
    assert_true(front_percent_decode(slice_of_text(lines(f)), f->call.arena, &text));
    assert_contains(arena_text(f->call.arena, text),
                    "{\"Utilized\":{\"SingleIndexes\":[{\"IndexSpec\":\"/c/?\"}],"
                    "\"CompositeIndexes\":[{\"IndexSpecs\":[\"/a ASC\",\"/b DESC\"]}]},"
                    "\"Potential\":{\"SingleIndexes\":[{\"IndexSpec\":\"/d/?\"}],"
                    "\"CompositeIndexes\":[{\"IndexSpecs\":[\"/e ASC\",\"/f ASC\"]}]}}");
}

static void the_first_form_is_base64(void **state)
{
    struct fixture *f = *state;
    uint8_t decoded[2048];
    char *value;

    ask(f, REST_HEADER_POPULATE_INDEX_METRICS);
    explain(f,
            "{\"access\":{\"kind\":\"scan\"},\"advice\":[{\"kind\":\"single\",\"path\":\"/d\"}]}");
    rest_query_figures(&f->call, &f->page, 0);
    value = strchr(arena_text(f->call.arena, buf_slice(&f->call.lines)), ' ') + 1;
    value[strcspn(value, "\r")] = 0;
    assert_true(EVP_DecodeBlock(decoded, (const uint8_t *)value, (int)strlen(value)) > 0);
    assert_contains((char *)decoded, "{\"UtilizedSingleIndexes\":[],\"PotentialSingleIndexes\":[{"
                                     "\"FilterExpression\":\"\",\"IndexSpec\":\"/d/?\",");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_is_told_that_was_not_asked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(metrics_end_without_a_separator, setup, teardown),
        cmocka_unit_test_setup_teardown(the_second_form_is_percent_encoded, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_form_is_base64, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
