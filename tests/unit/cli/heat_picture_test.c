/* From an answer of the server to a picture, and from a picture to SVG. */
#include "cli/heat_picture.h"

#include "support/check.h"
#include "support/documents.h"

#define SPANS                                                                                      \
    "{\"database\":\"d\",\"container\":\"<c & co>\",\"from\":\"2026-11-16T05:00:00.000Z\","        \
    "\"to\":\"2026-11-16T06:00:00.000Z\",\"minutes\":1,\"by\":\"span\",\"points\":["               \
    "{\"at\":\"2026-11-16T05:10:00.000Z\",\"spans\":[{\"id\":\"2\",\"ru\":600,\"requests\":60,"    \
    "\"throttled\":3,\"latencyMs\":{\"mean\":1,\"max\":9,\"p99\":8}}]},"                           \
    "{\"at\":\"2026-11-16T05:11:00.000Z\",\"spans\":[{\"id\":\"3\",\"ru\":60,\"requests\":6,"      \
    "\"throttled\":0,\"latencyMs\":{\"mean\":1,\"max\":2,\"p99\":2}},"                             \
    "{\"id\":\"99\",\"ru\":1}]}],"                                                                 \
    "\"partitions\":[{\"id\":\"2\",\"minInclusive\":\"\",\"maxExclusive\":\"FF\","                 \
    "\"until\":\"2026-11-16T05:10:00.000Z\"},"                                                     \
    "{\"id\":\"3\",\"minInclusive\":\"\",\"maxExclusive\":\"1F\"},"                                \
    "{\"id\":\"4\",\"minInclusive\":\"1F\",\"maxExclusive\":\"FF\"}],"                             \
    "\"events\":[{\"at\":\"2026-11-16T05:10:30.000Z\",\"kind\":\"split\",\"from\":[\"2\"],"        \
    "\"to\":[\"3\",\"4\"]},"                                                                       \
    "{\"at\":\"2026-11-16T05:20:30.000Z\",\"kind\":\"move\",\"from\":[\"4\"],\"to\":[\"4\"]}]}"

#define KEYS                                                                                       \
    "{\"database\":\"d\",\"container\":\"c\",\"from\":\"2026-11-16T05:00:00.000Z\","               \
    "\"to\":\"2026-11-16T06:00:00.000Z\",\"minutes\":10,\"by\":\"keys\",\"points\":["              \
    "{\"at\":\"2026-11-16T05:10:00.000Z\",\"keys\":["                                              \
    "{\"partitionKey\":[\"a\"],\"partition\":\"2\",\"ru\":600},"                                   \
    "{\"partitionKey\":[\"b\"],\"partition\":\"2\",\"ru\":1200},"                                  \
    "{\"partitionKey\":[\"b\"],\"partition\":\"3\",\"ru\":1200}]}],"                               \
    "\"partitions\":[],\"events\":[]}"

static struct cli_heat_picture picture_of(struct arena *arena, const char *json,
                                          enum cli_heat_shown shown)
{
    struct cli_heat_picture picture;
    struct error err;

    assert_ok(cli_heat_picture_read(document_of(arena, json), shown, arena, &picture, &err), &err);
    return picture;
}

static void a_span_covers_the_rows_between_its_bounds(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_heat_picture picture = picture_of(arena, SPANS, HEAT_SHOW_RU);

    assert_int_equal(picture.row_count, 2);
    assert_slice_equal(picture.rows[0], SLICE("3: first key"));
    assert_slice_equal(picture.rows[1], SLICE("4: 1F"));
    assert_int_equal(picture.cell_count, 2); /* one of a partition nobody knows is left out */
    assert_true(picture.cells[0].top == 0 && picture.cells[0].bottom == 2);
    assert_true(picture.cells[0].value == 10);
    assert_true(picture.cells[1].top == 0 && picture.cells[1].bottom == 1);
    assert_int_equal(picture.cells[1].to_ms - picture.cells[1].from_ms, 60000);
}

static void rows_say_which_partition_begins_there_and_with_which_key(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_heat_picture picture = picture_of(
        arena,
        "{\"database\":\"d\",\"container\":\"c\",\"from\":\"2026-11-16T05:00:00.000Z\","
        "\"to\":\"2026-11-16T06:00:00.000Z\",\"minutes\":1,\"by\":\"span\",\"partitions\":["
        "{\"id\":\"5\",\"minInclusive\":\"\",\"maxExclusive\":\"1F\"},"
        "{\"id\":\"6\",\"minInclusive\":\"1F\",\"maxExclusive\":\"1FFF\",\"key\":[\"acme\",7]},"
        "{\"id\":\"7\",\"minInclusive\":\"1FFF\",\"maxExclusive\":\"3F\",\"minKey\":\"2026-04\"},"
        "{\"id\":\"8\",\"minInclusive\":\"3F\",\"maxExclusive\":\"5F5F5F5F5F5F5F5F\"},"
        "{\"id\":\"9\",\"minInclusive\":\"5F5F5F5F5F5F5F5F\",\"maxExclusive\":\"FF\"}],"
        "\"events\":[{\"at\":\"2026-11-16T05:20:30.000Z\",\"kind\":\"rekey\",\"from\":[\"5\",\"6\"]"
        ","
        "\"to\":[\"7\"]}]}",
        HEAT_SHOW_RU);
    CLEANUP(buf_done) struct buf out;

    assert_int_equal(picture.row_count, 5);
    assert_slice_equal(picture.rows[1], SLICE("6: [\"acme\",7]"));
    assert_slice_equal(picture.rows[2], SLICE("7: \"2026-04\""));
    assert_slice_equal(picture.rows[4], SLICE("9: 5F5F5F5F5F5F..."));
    assert_int_equal(picture.marks[0].letter, 'K');
    buf_init(&out, BUF_DEFAULT_MAX);
    cli_heat_svg(&picture, &out);
    assert_contains(arena_text(arena, buf_slice(&out)), "K re-key");
    assert_contains(arena_text(arena, buf_slice(&out)), "rekey of partitions 5, 6 into 7");
}

static void what_the_colour_is_can_be_chosen(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_true(picture_of(arena, SPANS, HEAT_SHOW_THROTTLED).cells[0].value == 3);
    assert_true(picture_of(arena, SPANS, HEAT_SHOW_LATENCY).cells[0].value == 8);
    assert_true(picture_of(arena, SPANS, HEAT_SHOW_REQUESTS).cells[0].value == 60);
}

static void splits_and_moves_are_marked_where_they_were(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_heat_picture picture = picture_of(arena, SPANS, HEAT_SHOW_RU);

    assert_int_equal(picture.mark_count, 2);
    assert_int_equal(picture.marks[0].letter, 'S');
    assert_true(picture.marks[0].top == 0 && picture.marks[0].bottom == 2);
    assert_int_equal(picture.marks[1].letter, 'V');
    assert_true(picture.marks[1].top == 1 && picture.marks[1].bottom == 2);
}

static void keys_are_rows_the_hottest_first_and_once(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_heat_picture picture = picture_of(arena, KEYS, HEAT_SHOW_RU);

    assert_int_equal(picture.row_count, 2);
    assert_slice_equal(picture.rows[0], SLICE("[\"b\"]"));
    assert_int_equal(picture.cell_count, 2);
    assert_true(picture.cells[1].value == 4); /* 2,400 RU in ten minutes */
}

static const char *svg_of(struct arena *arena, const struct cli_heat_picture *picture)
{
    CLEANUP(buf_done) struct buf out;

    buf_init(&out, BUF_DEFAULT_MAX);
    cli_heat_svg(picture, &out);
    return arena_text(arena, buf_slice(&out));
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

static void a_picture_has_cells_marks_labels_and_a_legend(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_heat_picture picture = picture_of(arena, SPANS, HEAT_SHOW_RU);
    const char *svg = svg_of(arena, &picture);

    assert_contains(svg, "<title>d / &lt;c &amp; co&gt;</title>");
    assert_int_equal(count_of(svg, "class=\"mark\""), 2);
    assert_contains(svg, "split of partition 2 into 3, 4");
    assert_contains(svg, "partition 2 2026-11-16T05:10:00.000Z: 600.00 RU");
    assert_contains(svg, ">RU/s<");
    assert_contains(svg, ">10.0<"); /* the top of the scale */
    assert_contains(svg, ">05:10<");
    assert_contains(svg, "2026-11-16");
    assert_contains(svg, "#6e0a30"); /* the hottest cell */
    assert_int_equal(count_of(svg, "<rect"), count_of(svg, "</rect>") + 2 + 6);
    assert_int_equal(count_of(svg, "<svg"), 1);
}

static void the_same_data_give_the_same_picture(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_heat_picture a = picture_of(arena, KEYS, HEAT_SHOW_RU);
    struct cli_heat_picture b = picture_of(arena, KEYS, HEAT_SHOW_RU);

    assert_string_equal(svg_of(arena, &a), svg_of(arena, &b));
}

static void an_empty_record_is_a_picture_too(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_heat_picture picture =
        picture_of(arena,
                   "{\"database\":\"d\",\"container\":\"c\",\"from\":\"2026-11-16T05:00:00.000Z\","
                   "\"to\":\"2026-11-16T06:00:00.000Z\",\"minutes\":1,\"by\":\"span\"}",
                   HEAT_SHOW_RU);

    assert_int_equal(picture.cell_count, 0);
    assert_contains(svg_of(arena, &picture), "</svg>");
}

static void control_characters_never_reach_the_picture(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice row = SLICE("a\x01\"b");
    struct cli_heat_picture picture = {
        .title = SLICE("t"), .from_ms = 0, .to_ms = 60000, .rows = &row, .row_count = 1};

    assert_contains(svg_of(arena, &picture), "a?&quot;b");
}

static void what_is_no_heat_is_refused(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct cli_heat_picture picture;
    struct error err;

    assert_fails(cli_heat_picture_read(document_of(arena, "{\"from\":\"x\"}"), HEAT_SHOW_RU, arena,
                                       &picture, &err),
                 &err, ERROR_BAD_REQUEST);
    assert_fails(cli_heat_picture_read(
                     document_of(arena, "{\"from\":\"2026-11-16T05:00:00.000Z\","
                                        "\"to\":\"2026-11-16T05:00:00.000Z\",\"minutes\":1}"),
                     HEAT_SHOW_RU, arena, &picture, &err),
                 &err, ERROR_BAD_REQUEST);
}

static void colours_go_from_pale_to_dark(void **state UNUSED)
{
    int before = 1000;

    for (int i = -1; i <= 11; i++) {
        struct cli_heat_colour colour = cli_heat_svg_colour(i / 10.0);
        int light = colour.red + colour.green + colour.blue;

        assert_true(light <= before);
        before = light;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_covers_the_rows_between_its_bounds),
        cmocka_unit_test(rows_say_which_partition_begins_there_and_with_which_key),
        cmocka_unit_test(what_the_colour_is_can_be_chosen),
        cmocka_unit_test(splits_and_moves_are_marked_where_they_were),
        cmocka_unit_test(keys_are_rows_the_hottest_first_and_once),
        cmocka_unit_test(a_picture_has_cells_marks_labels_and_a_legend),
        cmocka_unit_test(the_same_data_give_the_same_picture),
        cmocka_unit_test(an_empty_record_is_a_picture_too),
        cmocka_unit_test(control_characters_never_reach_the_picture),
        cmocka_unit_test(what_is_no_heat_is_refused),
        cmocka_unit_test(colours_go_from_pale_to_dark),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
