#include "front/gremlin/format/format.h"

#include "front/gremlin/value/big.h"
#include "front/gremlin/value/compare.h"
#include "front/gremlin/value/container.h"
#include "front/gremlin/value/element.h"
#include "front/gremlin/value/special.h"
#include "front/gremlin/value/text.h"
#include "front/gremlin/value/traversal.h"
#include "support/check.h"
#include "support/gremlin_values.h"

#include <stdio.h>

enum { BYTES_MAX = 1 << 20 };

static const struct gremlin_format *of(const char *mime, bool typed)
{
    struct gremlin_format_options options = {.typed = typed};
    struct error err = {};
    const struct gremlin_format *format =
        gremlin_format_of_mime(slice_of_text(mime), &options, &err);

    assert_non_null(format);
    return format;
}

static const struct gremlin_format *v1(void)
{
    return of("application/vnd.gremlin-v1.0+json", false);
}

static const struct gremlin_format *v2(bool typed)
{
    return of("application/vnd.gremlin-v2.0+json", typed);
}

static const struct gremlin_format *v3(void)
{
    return of("application/vnd.gremlin-v3.0+json", false);
}

static const struct gremlin_format *binary(void)
{
    return of("application/vnd.graphbinary-v1.0", false);
}

static struct gremlin_value text(struct gremlin_heap *heap, const char *s)
{
    return gremlin_string(heap, slice_of_text(s));
}

/* --- Values ----------------------------------------------------------------------------------- */

static void writes(const struct gremlin_format *format, struct gremlin_heap *heap,
                   struct gremlin_value value, const char *expected)
{
    CLEANUP(gremlin_batch_done) struct gremlin_batch batch;
    struct error err = {};

    gremlin_batch_init(&batch, format, heap, false, BYTES_MAX);
    assert_ok(gremlin_batch_add(&batch, value, 0, &err), &err);
    assert_slice_equal(buf_slice(&batch.items), slice_of_text(expected));
}

static struct gremlin_value reads(const struct gremlin_format *format, struct gremlin_heap *heap,
                                  struct slice bytes)
{
    struct gremlin_value value;
    struct error err = {};

    assert_ok(gremlin_format_read_value(format, bytes, heap, &value, &err), &err);
    return value;
}

static void refuses(const struct gremlin_format *format, struct slice bytes, enum error_code code)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value value;
    struct error err = {};

    assert_fails(gremlin_format_read_value(format, bytes, heap, &value, &err), &err, code);
    assert_int_equal(gremlin_heap_used(heap), 0); /* nothing is left lying about */
}

/* What equality does not look at: properties, labels, the ends of edges, names of predicates. */
static bool is_twin(struct gremlin_value a, struct gremlin_value b)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    CLEANUP(gremlin_batch_done) struct gremlin_batch x;
    CLEANUP(gremlin_batch_done) struct gremlin_batch y;
    struct error err = {};

    gremlin_batch_init(&x, v3(), a.type >= GREMLIN_BIG_INTEGER ? a.object->heap : heap, false,
                       BYTES_MAX);
    gremlin_batch_init(&y, v3(), x.heap, false, BYTES_MAX);
    assert_ok(gremlin_batch_add(&x, a, 0, &err), &err);
    assert_ok(gremlin_batch_add(&y, b, 0, &err), &err);
    if (!slice_equal(buf_slice(&x.items), buf_slice(&y.items)))
        print_message("%.*s\n%.*s\n", SLICE_ARG(buf_slice(&x.items)),
                      SLICE_ARG(buf_slice(&y.items)));
    return slice_equal(buf_slice(&x.items), buf_slice(&y.items));
}

static void round_trip(const struct gremlin_format *format, uint64_t seed, unsigned kinds)
{
    struct random random;

    random_seed(&random, seed);
    for (int i = 0; i < 1500; i++) {
        CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
        struct gremlin_value value = gremlin_random_value(heap, &random, kinds, 3), back;
        CLEANUP(gremlin_batch_done) struct gremlin_batch batch;
        struct error err = {};

        gremlin_batch_init(&batch, format, heap, false, BYTES_MAX);
        assert_ok(gremlin_batch_add(&batch, value, 0, &err), &err);
        back = reads(format, heap, buf_slice(&batch.items));
        assert_int_equal(back.type, value.type);
        assert_true(is_twin(value, back));
        if (kinds == GREMLIN_RANDOM_DATA)
            assert_true(gremlin_equivalent(value, back));
    }
}

static void everything_passes_through_graphson_3(void **state UNUSED)
{
    round_trip(v3(), 1, GREMLIN_RANDOM_DATA);
    round_trip(v3(), 2, GREMLIN_RANDOM_ALL);
}

static void everything_passes_through_graphbinary(void **state UNUSED)
{
    round_trip(binary(), 3, GREMLIN_RANDOM_DATA);
    round_trip(binary(), 4, GREMLIN_RANDOM_ALL);
}

static void scalars_and_elements_pass_through_graphson_2(void **state UNUSED)
{
    round_trip(v2(true), 5, GREMLIN_RANDOM_SCALARS);
    round_trip(v2(true), 6, GREMLIN_RANDOM_SCALARS | GREMLIN_RANDOM_ELEMENTS);
}

static struct gremlin_value marko(struct gremlin_heap *heap)
{
    struct gremlin_value vertex = gremlin_test_vertex(heap, "1", "person");
    struct gremlin_properties *properties = gremlin_properties_new(heap, 0);
    struct gremlin_properties *meta = gremlin_properties_new(heap, 0);

    gremlin_properties_add_take(
        meta, (struct gremlin_slot){.key = text(heap, "since"), .value = gremlin_int(2009)});
    gremlin_properties_add_take(properties, (struct gremlin_slot){.key = text(heap, "name"),
                                                                  .value = text(heap, "marko"),
                                                                  .id = text(heap, "p1")});
    gremlin_properties_add_take(properties, (struct gremlin_slot){.key = text(heap, "pk"),
                                                                  .value = text(heap, "x"),
                                                                  .id = text(heap, "1|pk")});
    gremlin_properties_add_take(properties, (struct gremlin_slot){.key = text(heap, "name"),
                                                                  .value = text(heap, "m"),
                                                                  .id = text(heap, "p2"),
                                                                  .meta = meta});
    gremlin_element_set_take(vertex, properties);
    return vertex;
}

static struct gremlin_value knows(struct gremlin_heap *heap)
{
    struct gremlin_end out = {text(heap, "1"), text(heap, "person")};
    struct gremlin_end in = {text(heap, "2"), text(heap, "software")};
    struct gremlin_value edge =
        gremlin_edge_new(heap, text(heap, "7"), text(heap, "created"), GREMLIN_NOTHING, &out, &in);
    struct gremlin_properties *properties = gremlin_properties_new(heap, 0);

    gremlin_properties_add_take(properties, (struct gremlin_slot){.key = text(heap, "weight"),
                                                                  .value = gremlin_double(0.5)});
    gremlin_element_set_take(edge, properties);
    return edge;
}

static void elements_look_as_the_service_writes_them(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value vertex = marko(heap), edge = knows(heap);
    struct gremlin_value labels = gremlin_set_new(heap), map = gremlin_map_new(heap);
    struct gremlin_value tree = gremlin_table_new(heap, GREMLIN_TREE, 0);
    struct gremlin_path *path;

    writes(v2(false), heap, vertex,
           "{\"id\":\"1\",\"label\":\"person\",\"type\":\"vertex\",\"properties\":{\"name\":[{"
           "\"id\":\"p1\",\"value\":\"marko\"},{\"id\":\"p2\",\"value\":\"m\",\"properties\":{"
           "\"since\":2009}}],\"pk\":[{\"id\":\"1|pk\",\"value\":\"x\"}]}}");
    writes(
        v2(false), heap, edge,
        "{\"id\":\"7\",\"label\":\"created\",\"type\":\"edge\",\"inVLabel\":\"software\","
        "\"outVLabel\":\"person\",\"inV\":\"2\",\"outV\":\"1\",\"properties\":{\"weight\":0.5}}");
    writes(v2(false), heap, gremlin_test_vertex(heap, "9", "x"),
           "{\"id\":\"9\",\"label\":\"x\",\"type\":\"vertex\"}");
    gremlin_set_add(labels, text(heap, "a"));
    path = gremlin_path_extend(heap, NULL, gremlin_int(1), labels);
    path = gremlin_path_extend(heap, path, gremlin_double(2), GREMLIN_NOTHING);
    writes(v2(false), heap, gremlin_value_of_take(path),
           "{\"labels\":[[\"a\"],[]],\"objects\":[1,2.0]}");
    gremlin_map_put(map, gremlin_word(GREMLIN_T_ID), text(heap, "1"));
    gremlin_map_put(map, vertex, gremlin_long(3));
    writes(v2(false), heap, map, "{\"id\":\"1\",\"1\":3}");
    gremlin_tree_branch(tree, gremlin_test_vertex(heap, "9", "x"));
    writes(v2(false), heap, tree,
           "{\"9\":{\"key\":{\"id\":\"9\",\"label\":\"x\",\"type\":\"vertex\"},\"value\":{}}}");
}

static void elements_look_as_tinkerpop_writes_them(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct gremlin_value labels = gremlin_set_new(heap);

    gremlin_set_add(labels, text(heap, "a"));
    writes(
        v3(), heap, knows(heap),
        "{\"@type\":\"g:Edge\",\"@value\":{\"id\":\"7\",\"label\":\"created\",\"inVLabel\":"
        "\"software\",\"outVLabel\":\"person\",\"inV\":\"2\",\"outV\":\"1\",\"properties\":{"
        "\"weight\":{\"@type\":\"g:Property\",\"@value\":{\"key\":\"weight\",\"value\":{\"@type\":"
        "\"g:Double\",\"@value\":0.5}}}}}}");
    writes(
        v3(), heap, gremlin_value_of_take(gremlin_path_extend(heap, NULL, gremlin_int(1), labels)),
        "{\"@type\":\"g:Path\",\"@value\":{\"labels\":{\"@type\":\"g:List\",\"@value\":[{\"@type\":"
        "\"g:Set\",\"@value\":[\"a\"]}]},\"objects\":{\"@type\":\"g:List\",\"@value\":[{\"@type\":"
        "\"g:Int32\",\"@value\":1}]}}}");
    writes(v2(true), heap,
           gremlin_value_of_take(gremlin_path_extend(heap, NULL, gremlin_int(1), labels)),
           "{\"@type\":\"g:Path\",\"@value\":{\"labels\":[[\"a\"]],\"objects\":[{\"@type\":\"g:"
           "Int32\","
           "\"@value\":1}]}}");
    writes(v3(), heap, gremlin_word(GREMLIN_DIRECTION_OUT),
           "{\"@type\":\"g:Direction\",\"@value\":\"OUT\"}");
}

static void tokens_leave_properties_out(void **state UNUSED)
{
    static const struct {
        const char *mime, *expected;
    } rows[] = {
        {"application/vnd.gremlin-v2.0+json",
         "{\"id\":\"1\",\"label\":\"person\",\"type\":\"vertex\"}"},
        {"application/vnd.gremlin-v3.0+json",
         "{\"@type\":\"g:Vertex\",\"@value\":{\"id\":\"1\",\"label\":\"person\"}}"},
    };
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct error err = {};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(gremlin_batch_done) struct gremlin_batch batch;

        gremlin_batch_init(&batch, of(rows[i].mime, false), heap, true, BYTES_MAX);
        assert_ok(gremlin_batch_add(&batch, marko(heap), 0, &err), &err);
        assert_slice_equal(buf_slice(&batch.items), slice_of_text(rows[i].expected));
    }
}

static void what_has_no_form_is_refused(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    CLEANUP(gremlin_batch_done) struct gremlin_batch batch;
    struct gremlin_value map = gremlin_map_new(heap), nested = gremlin_list_new(heap, 0);
    struct gremlin_value bulk = gremlin_table_new(heap, GREMLIN_BULK_SET, 0);
    struct error err = {};

    gremlin_batch_init(&batch, v2(true), heap, false, 5000);
    assert_ok(gremlin_batch_add(&batch, gremlin_int(1), 0, &err), &err);
    gremlin_map_put(map, GREMLIN_NOTHING, gremlin_int(1));
    assert_fails(gremlin_batch_add(&batch, map, 0, &err), &err, ERROR_GREMLIN_FORMAT);
    gremlin_bulk_set_add(bulk, gremlin_int(1), INT64_MAX); /* ends at the limit */
    assert_fails(gremlin_batch_add(&batch, bulk, 0, &err), &err, ERROR_TOO_LARGE);
    for (int i = 0; i < 1000; i++) {
        struct gremlin_value outer = gremlin_list_new(heap, 1);

        gremlin_list_add_take(outer, nested);
        nested = outer;
    }
    assert_fails(gremlin_batch_add(&batch, nested, 0, &err), &err, ERROR_GREMLIN_FORMAT);
    assert_int_equal(batch.count, 1);
    assert_slice_equal(buf_slice(&batch.items), SLICE("{\"@type\":\"g:Int32\",\"@value\":1}"));
}

static void extended_types_are_read(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"{\"@type\":\"gx:BigInteger\",\"@value\":123456789987654321123456789987654321}",
         "123456789987654321123456789987654321"},
        {"{\"@type\":\"gx:BigDecimal\",\"@value\":\"1.50\"}", "1.50"},
        {"{\"@value\":\"PT5M\",\"@type\":\"gx:Duration\"}", "PT5M"},
        {"{\"@type\":\"gx:OffsetDateTime\",\"@value\":\"2016-12-14T10:15:30+01:00\"}",
         "2016-12-14T10:15:30+01:00"},
        {"{\"@type\":\"gx:LocalDate\",\"@value\":\"2016-01-01\"}", "2016-01-01"},
        {"{\"@type\":\"gx:Period\",\"@value\":\"P1Y6M15D\"}", "P1Y6M15D"},
        {"{\"@type\":\"g:Double\",\"@value\":\"-Infinity\"}", "-Infinity"},
        {"{\"@type\":\"g:Binding\",\"@value\":{\"key\":\"x\",\"value\":5}}", "5"},
        {"{\"@type\":\"g:P\",\"@value\":{\"predicate\":\"within\",\"value\":[1,2]}}",
         "within(1, 2)"},
        {"{\"@type\":\"g:TextP\",\"@value\":{\"predicate\":\"containing\",\"value\":\"x\"}}",
         "containing(x)"},
        {"{\"@type\":\"g:Cardinality\",\"@value\":\"list\"}", "list"},
        {"{\"@type\":\"g:Bytecode\",\"@value\":{\"source\":[[\"CardinalityValueTraversal\",{"
         "\"@type\":\"g:Cardinality\",\"@value\":\"list\"},\"x\"]]}}",
         "list(x)"},
        {"{\"@type\":\"g:Int64\",\"@value\":\"-27\"}", "-27"}, /* the driver for JavaScript */
        {"\"\\u00e4\\ud83d\\ude00\\n\"", "\xC3\xA4\xF0\x9F\x98\x80\n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct gremlin_value value = reads(v3(), heap, slice_of_text(rows[i].json));

        assert_slice_equal(gremlin_bytes(gremlin_value_text(heap, value)),
                           slice_of_text(rows[i].text));
    }
}

static void other_dates_pass_through_graphbinary(void **state UNUSED)
{
    static const char *const rows[][2] = {
        {"Instant", "2016-12-14T16:39:19.349Z"},
        {"LocalDate", "2016-01-01"},
        {"LocalDateTime", "2016-01-01T12:30:00"},
        {"LocalTime", "12:30:45.500"},
        {"MonthDay", "--02-29"},
        {"OffsetTime", "10:15:30+01:00"},
        {"Period", "P1Y6M15D"},
        {"Period", "P-1D"},
        {"Year", "2016"},
        {"YearMonth", "2016-06"},
        {"ZonedDateTime", "2016-12-23T12:12:24+02:00"},
        {"ZoneOffset", "+03:06:09"},
        {"ZoneOffset", "Z"},
        {"InetAddress", "127.0.0.1"},
        {"InetAddress", "::1"},
    };
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    struct error err = {};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(gremlin_batch_done) struct gremlin_batch batch;
        struct gremlin_value value = gremlin_temporal_new(heap, slice_of_text(rows[i][0]),
                                                          slice_of_text(rows[i][1])),
                             back;

        gremlin_batch_init(&batch, binary(), heap, false, BYTES_MAX);
        assert_ok(gremlin_batch_add(&batch, value, 0, &err), &err);
        back = reads(binary(), heap, buf_slice(&batch.items));
        assert_slice_equal(gremlin_temporal_name(back), slice_of_text(rows[i][0]));
        assert_slice_equal(gremlin_temporal_text(back), slice_of_text(rows[i][1]));
    }
}

static void strategies_of_both_forms_are_read(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    static const char *const rows[] = {
        "{\"@type\":\"g:PartitionStrategy\",\"@value\":{\"fqcn\":\"org.apache.PartitionStrategy\","
        "\"conf\":{\"partitionKey\":\"pk\"}}}",
        "{\"@type\":\"g:PartitionStrategy\",\"@value\":{\"partitionKey\":\"pk\"}}",
        "{\"@type\":\"g:PartitionStrategy\",\"@value\":{\"fqcn\":\"x\",\"conf\":{\"@type\":\"g:"
        "Map\","
        "\"@value\":[\"partitionKey\",\"pk\"]}}}",
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct gremlin_value value = reads(v3(), heap, slice_of_text(rows[i]));
        const struct gremlin_value *key;

        assert_int_equal(value.type, GREMLIN_STRATEGY);
        assert_slice_equal(gremlin_bytes(gremlin_strategy(value)->name),
                           SLICE("PartitionStrategy"));
        key = gremlin_map_get_text(gremlin_strategy(value)->configuration, SLICE("partitionKey"));
        assert_slice_equal(gremlin_bytes(*key), SLICE("pk"));
    }
}

static void bare_numbers_have_the_least_type(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();

    assert_int_equal(reads(v3(), heap, SLICE("2147483647")).type, GREMLIN_INT);
    assert_int_equal(reads(v3(), heap, SLICE("2147483648")).type, GREMLIN_LONG);
    assert_int_equal(reads(v3(), heap, SLICE("9223372036854775808")).type, GREMLIN_DOUBLE);
    assert_int_equal(reads(v3(), heap, SLICE("1.0")).type, GREMLIN_DOUBLE);
    assert_int_equal(reads(v3(), heap, SLICE("-5")).integer, -5);
}

/* --- Hostile bytes ---------------------------------------------------------------------------- */

static void broken_json_is_refused(void **state UNUSED)
{
    static const char *const rows[] = {
        "",         "{",     "[1,]",      "{\"a\"}",  "{\"a\":1,}", "nul",
        "01",       "1.",    "1e",        "-",        "\"a",        "\"\\x\"",
        "[1 2]",    "{1:2}", "\"\\u12\"", "[1]]",     "\"\x01\"",   "tru",
        "{\"a\":}", "]",     ",",         "\"\xff\"", "1 2",        "\"\xed\xa0\x80\"",
        "+1",       "NaN",   ".5",        "'a'",
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refuses(v3(), slice_of_text(rows[i]), ERROR_BAD_JSON);
}

static void wrong_contents_are_refused(void **state UNUSED)
{
    static const char *const rows[] = {
        "{\"@type\":\"g:Int32\",\"@value\":\"x\"}",
        "{\"@type\":\"g:Int32\",\"@value\":2147483648}",
        "{\"@type\":\"g:Int32\",\"@value\":1.5}",
        "{\"@type\":\"gx:Byte\",\"@value\":128}",
        "{\"@type\":\"g:UUID\",\"@value\":\"x\"}",
        "{\"@type\":\"g:Map\",\"@value\":[1]}",
        "{\"@type\":\"g:List\",\"@value\":{}}",
        "{\"@type\":\"g:BulkSet\",\"@value\":[1,-1]}",
        "{\"@type\":\"g:T\",\"@value\":\"nothing\"}",
        "{\"@type\":\"g:Path\",\"@value\":{\"labels\":[],\"objects\":[1]}}",
        "{\"@type\":\"g:Bytecode\",\"@value\":{\"step\":[[]]}}",
        "{\"@type\":\"g:Bytecode\",\"@value\":{\"step\":[[1]]}}",
        "{\"@type\":\"gx:ByteBuffer\",\"@value\":\"a\"}",
        "{\"@type\":\"gx:Char\",\"@value\":\"ab\"}",
        "{\"@type\":\"gx:Duration\",\"@value\":\"soon\"}",
        "{\"@type\":\"g:Vertex\",\"@value\":[]}",
        "{\"@type\":\"g:Vertex\",\"@value\":{\"id\":1,\"label\":5}}",
        "{\"@type\":\"g:Tree\",\"@value\":[{\"key\":1,\"value\":2}]}",
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refuses(v3(), slice_of_text(rows[i]), ERROR_BAD_REQUEST);
    refuses(v3(), SLICE("{\"@type\":\"x:Unheard\",\"@value\":1}"), ERROR_NOT_SUPPORTED);
    refuses(v3(), SLICE("{\"@type\":\"g:P\",\"@value\":{\"predicate\":\"nearly\",\"value\":1}}"),
            ERROR_GREMLIN_COMPILE);
}

static void bombs_are_refused_before_memory_is_taken(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf deep;
    static const uint8_t lies[] = {0x09, 0, 0x7f, 0xff, 0xff, 0xff};
    static const uint8_t long_text[] = {0x03, 0, 0x7f, 0xff, 0xff, 0xff, 'a'};
    static const uint8_t negative[] = {0x0a, 0, 0xff, 0xff, 0xff, 0xff};

    buf_init(&deep, BUF_DEFAULT_MAX);
    for (int i = 0; i < 100000; i++)
        BUF_APPEND(&deep, "[");
    refuses(v3(), buf_slice(&deep), ERROR_TOO_DEEP);
    buf_clear(&deep);
    for (int i = 0; i < 300; i++)
        BUF_APPEND(&deep, "[");
    for (int i = 0; i < 300; i++)
        BUF_APPEND(&deep, "]");
    refuses(v3(), buf_slice(&deep), ERROR_TOO_DEEP);
    buf_clear(&deep);
    for (int i = 0; i < 100000; i++)
        BUF_APPEND(&deep, "\x09\0\0\0\0\1");
    refuses(binary(), buf_slice(&deep), ERROR_TOO_DEEP);
    buf_clear(&deep);
    BUF_APPEND(&deep, "[0");
    for (int i = 0; i < GREMLIN_FORMAT_TOKENS + 10; i++)
        BUF_APPEND(&deep, ",0");
    BUF_APPEND(&deep, "]");
    refuses(v3(), buf_slice(&deep), ERROR_TOO_LARGE);
    refuses(binary(), slice_of(lies, sizeof lies), ERROR_BAD_REQUEST);
    refuses(binary(), slice_of(long_text, sizeof long_text), ERROR_BAD_REQUEST);
    refuses(binary(), slice_of(negative, sizeof negative), ERROR_BAD_REQUEST);
}

static void cut_and_flipped_bytes_do_no_harm(void **state UNUSED)
{
    const struct gremlin_format *all[] = {v3(), binary()};
    struct random random;

    random_seed(&random, 9);
    for (int i = 0; i < 3000; i++) {
        CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
        const struct gremlin_format *format = all[i % 2];
        CLEANUP(gremlin_batch_done) struct gremlin_batch batch;
        struct gremlin_value back = GREMLIN_NOTHING,
                             value = gremlin_random_value(heap, &random, GREMLIN_RANDOM_ALL, 3);
        struct error err = {};
        size_t used;

        gremlin_batch_init(&batch, format, heap, false, BYTES_MAX);
        assert_ok(gremlin_batch_add(&batch, value, 0, &err), &err);
        if (random_below(&random, 2))
            batch.items.len = random_below(&random, batch.items.len + 1);
        else if (batch.items.len)
            batch.items.data[random_below(&random, batch.items.len)] =
                (uint8_t)random_next(&random);
        used = gremlin_heap_used(heap);
        if (gremlin_format_read_value(format, buf_slice(&batch.items), heap, &back, &err))
            gremlin_value_unref(back);
        assert_int_equal(gremlin_heap_used(heap), used);
    }
}

/* --- Requests and answers --------------------------------------------------------------------- */

static void requests_are_read(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    static const char *const rows[] = {
        "{\"requestId\":{\"@type\":\"g:UUID\",\"@value\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\"},"
        "\"op\":\"eval\",\"processor\":\"\",\"args\":{\"gremlin\":\"g.V(x)\",\"aliases\":{\"g\":"
        "\"g\"},"
        "\"bindings\":{\"x\":{\"@type\":\"g:Int32\",\"@value\":1}},\"language\":\"gremlin-groovy\"}"
        "}",
        "{\"args\":{\"@type\":\"g:Map\",\"@value\":[\"gremlin\",\"g.V(x)\",\"bindings\",{\"@type\":"
        "\"g:Map\",\"@value\":[\"x\",{\"@type\":\"g:Int32\",\"@value\":1}]}]},\"op\":\"eval\","
        "\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"more\":[1]}",
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(gremlin_request_done) struct gremlin_request request = {};
        struct error err = {};
        const struct gremlin_value *bindings;

        assert_ok(gremlin_format_read(v2(false), slice_of_text(rows[i]), heap, &request, &err),
                  &err);
        assert_slice_equal(gremlin_bytes(request.id),
                           SLICE("41d2e28a-20a4-4ab0-b379-d810dede3786"));
        assert_slice_equal(gremlin_bytes(request.op), SLICE("eval"));
        assert_slice_equal(gremlin_bytes(request.processor), SLICE(""));
        assert_slice_equal(gremlin_bytes(*gremlin_map_get_text(request.args, SLICE("gremlin"))),
                           SLICE("g.V(x)"));
        bindings = gremlin_map_get_text(request.args, SLICE("bindings"));
        assert_int_equal(gremlin_map_get_text(*bindings, SLICE("x"))->integer, 1);
    }
}

static void bytecode_is_a_traversal(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    CLEANUP(gremlin_request_done) struct gremlin_request request = {};
    const struct gremlin_traversal *traversal, *nested;
    struct error err = {};

    assert_ok(
        gremlin_format_read(
            v3(),
            SLICE(
                "{\"requestId\":\"a\",\"op\":\"bytecode\",\"processor\":\"traversal\",\"args\":{"
                "\"gremlin\":{\"@type\":\"g:Bytecode\",\"@value\":{\"source\":[[\"withSideEffect\","
                "\"x\",1]],\"step\":[[\"V\",\"1\"],[\"repeat\",{\"@type\":\"g:Bytecode\",\"@"
                "value\":{"
                "\"step\":[[\"out\",\"knows\"]]}}],[\"times\",2]]}},\"aliases\":{\"g\":\"g\"}}}"),
            heap, &request, &err),
        &err);
    traversal = gremlin_traversal(*gremlin_map_get_text(request.args, SLICE("gremlin")));
    assert_true(traversal->spawned);
    assert_int_equal(traversal->sources.count, 1);
    assert_int_equal(traversal->steps.count, 3);
    assert_slice_equal(traversal->steps.items[1].name, SLICE("repeat"));
    nested = gremlin_traversal(traversal->steps.items[1].arguments[0]);
    assert_false(nested->spawned);
    assert_slice_equal(nested->steps.items[0].name, SLICE("out"));
}

static void the_id_is_found_in_what_cannot_be_read(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    static const struct {
        const char *text, *id;
    } rows[] = {
        {"{\"requestId\":\"abc\",\"op\":\"eval\",\"args\":{", "abc"},
        {"{\"requestId\" : {\"@type\":\"g:UUID\",\"@value\":\"abc\"},\"op\":", "abc"},
        {"{\"requestId\":\"abc\",\"op\":5}", "abc"},
        {"{\"requestId\":\"abc\",\"op\":\"eval\",\"args\":[]}", "abc"},
        {"{\"requestId\":", NULL},
        {"{\"requestId\":{\"@type\":", NULL},
        {"nothing", NULL},
        {"", NULL},
    };
    CLEANUP(gremlin_request_done) struct gremlin_request request = {};
    static const uint8_t bytes[] = {0x81, 0x41, 0xd2, 0xe2, 0x8a, 0x20, 0xa4, 0x4a, 0xb0, 0xb3,
                                    0x79, 0xd8, 0x10, 0xde, 0xde, 0x37, 0x86, 0,    0,    9};
    struct error err = {};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_false(gremlin_format_read(v3(), slice_of_text(rows[i].text), heap, &request, &err));
        if (rows[i].id)
            assert_slice_equal(gremlin_bytes(request.id), slice_of_text(rows[i].id));
        else
            assert_true(gremlin_is_null(request.id));
        gremlin_request_done(&request);
    }
    assert_false(
        gremlin_format_read(binary(), slice_of(bytes, sizeof bytes), heap, &request, &err));
    assert_slice_equal(gremlin_bytes(request.id), SLICE("41d2e28a-20a4-4ab0-b379-d810dede3786"));
}

static void answers(const struct gremlin_format *format, bool data, int64_t bulk,
                    const char *expected, size_t len)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    CLEANUP(gremlin_batch_done) struct gremlin_batch batch;
    CLEANUP(buf_done) struct buf out;
    struct gremlin_value attributes = gremlin_map_new(heap);
    struct gremlin_answer answer = {.id = SLICE("41d2e28a-20a4-4ab0-b379-d810dede3786"),
                                    .code = data ? 200 : 204,
                                    .batch = data ? &batch : NULL};
    struct error err = {};

    buf_init(&out, BYTES_MAX);
    gremlin_batch_init(&batch, format, heap, false, BYTES_MAX);
    assert_ok(gremlin_batch_add(&batch, gremlin_int(1), bulk, &err), &err);
    if (!data) {
        gremlin_map_put(attributes, text(heap, "x-ms-status-code"), gremlin_int(204));
        answer.attributes = attributes;
    }
    assert_ok(gremlin_format_write(format, &answer, heap, &out, &err), &err);
    if (out.len != len || memcmp(out.data, expected, len) != 0)
        fail_msg("%.*s", SLICE_ARG(buf_slice(&out)));
}

#define ANSWERS(format, data, bulk, expected)                                                      \
    answers(format, data, bulk, expected, sizeof(expected) - 1)

static void frames_are_written(void **state UNUSED)
{
    ANSWERS(
        v3(), true, 0,
        "{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"status\":{\"code\":200,"
        "\"message\":\"\",\"attributes\":{\"@type\":\"g:Map\",\"@value\":[]}},\"result\":{\"data\":"
        "{\"@type\":\"g:List\",\"@value\":[{\"@type\":\"g:Int32\",\"@value\":1}]},\"meta\":{"
        "\"@type\":\"g:Map\",\"@value\":[]}}}");
    ANSWERS(
        v3(), false, 0,
        "{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"status\":{\"code\":204,"
        "\"message\":\"\",\"attributes\":{\"@type\":\"g:Map\",\"@value\":[\"x-ms-status-code\",{"
        "\"@type\":\"g:Int32\",\"@value\":204}]}},\"result\":{\"data\":null,\"meta\":{\"@type\":"
        "\"g:Map\",\"@value\":[]}}}");
    ANSWERS(v2(false), true, 0,
            "{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"status\":{\"code\":200,"
            "\"message\":\"\",\"attributes\":{}},\"result\":{\"data\":[1],\"meta\":{}}}");
    ANSWERS(v2(false), false, 0,
            "{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"status\":{\"code\":204,"
            "\"message\":\"\",\"attributes\":{\"x-ms-status-code\":204}},\"result\":{\"data\":null,"
            "\"meta\":{}}}");
    ANSWERS(v2(false), true, 3, /* results of bytecode have types */
            "{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"status\":{\"code\":200,"
            "\"message\":\"\",\"attributes\":{}},\"result\":{\"data\":[{\"@type\":\"g:Traverser\","
            "\"@value\":{\"bulk\":{\"@type\":\"g:Int64\",\"@value\":3},\"value\":{\"@type\":\"g:"
            "Int32\","
            "\"@value\":1}}}],\"meta\":{}}}");
    ANSWERS(v1(), true, 0,
            "{\"requestId\":\"41d2e28a-20a4-4ab0-b379-d810dede3786\",\"status\":{\"code\":200,"
            "\"message\":\"\",\"attributes\":{}},\"result\":{\"data\":[1],\"meta\":{}}}");
    ANSWERS(binary(), true, 0,
            "\x81\x00\x41\xd2\xe2\x8a\x20\xa4\x4a\xb0\xb3\x79\xd8\x10\xde\xde\x37\x86"
            "\x00\x00\x00\xc8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
            "\x09\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x01");
    ANSWERS(
        binary(), false, 0,
        "\x81\x00\x41\xd2\xe2\x8a\x20\xa4\x4a\xb0\xb3\x79\xd8\x10\xde\xde\x37\x86"
        "\x00\x00\x00\xcc\x00\x00\x00\x00\x00\x00\x00\x00\x01"
        "\x03\x00\x00\x00\x00\x10x-ms-status-code\x01\x00\x00\x00\x00\xcc\x00\x00\x00\x00\xfe\x01");
}

static void binary_requests_are_read(void **state UNUSED)
{
    CLEANUP(gremlin_heap_free) struct gremlin_heap *heap = gremlin_test_heap();
    CLEANUP(gremlin_request_done) struct gremlin_request request = {};
    static const char bytes[] =
        "\x81\x41\xd2\xe2\x8a\x20\xa4\x4a\xb0\xb3\x79\xd8\x10\xde\xde\x37\x86"
        "\x00\x00\x00\x08"
        "bytecode\x00\x00\x00\x09traversal\x00\x00\x00\x02"
        "\x03\x00\x00\x00\x00\x07gremlin\x15\x00\x00\x00\x00\x02\x00\x00\x00\x01V\x00\x00\x00\x00"
        "\x00\x00\x00\x02"
        "by\x00\x00\x00\x01\x20\x00\x03\x00\x00\x00\x00\x02id\x00\x00\x00\x00"
        "\x03\x00\x00\x00\x00\x07"
        "aliases\x0a\x00\x00\x00\x00\x01\x03\x00\x00\x00\x00\x01g\x03\x00\x00\x00\x00\x01g";
    const struct gremlin_traversal *traversal;
    struct error err = {};

    assert_ok(
        gremlin_format_read(binary(), slice_of(bytes, sizeof bytes - 1), heap, &request, &err),
        &err);
    assert_slice_equal(gremlin_bytes(request.op), SLICE("bytecode"));
    traversal = gremlin_traversal(*gremlin_map_get_text(request.args, SLICE("gremlin")));
    assert_int_equal(traversal->steps.count, 2);
    assert_true(gremlin_is_word(traversal->steps.items[1].arguments[0], GREMLIN_T_ID));
}

static void mimes_lead_to_formats(void **state UNUSED)
{
    struct gremlin_format_options plain = {}, typed = {.typed = true};
    struct error err = {};

    assert_null(gremlin_format_of_mime(SLICE("application/vnd.gremlin-v3.0+gryo"), &plain, &err));
    assert_int_equal(err.code, ERROR_NOT_SUPPORTED);
    assert_ptr_equal(gremlin_format_of_mime(SLICE("text/unheard"), &plain, &err), v3());
    assert_ptr_equal(gremlin_format_of_mime(SLICE(""), &plain, &err), v3());
    assert_ptr_equal(gremlin_format_of_mime(SLICE("application/vnd.gremlin-v2.0+json;types=false"),
                                            &typed, &err),
                     v2(false));
    assert_ptr_not_equal(v2(true), v2(false));
    assert_ptr_equal(gremlin_format_of_mime(SLICE("application/json; charset=utf-8"), &plain, &err),
                     gremlin_format_json(&plain));
    assert_true(gremlin_format_is_binary(binary()));
    assert_false(gremlin_format_is_binary(v3()));
    assert_slice_equal(gremlin_format_mime(binary()), SLICE("application/vnd.graphbinary-v1.0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_passes_through_graphson_3),
        cmocka_unit_test(everything_passes_through_graphbinary),
        cmocka_unit_test(scalars_and_elements_pass_through_graphson_2),
        cmocka_unit_test(elements_look_as_the_service_writes_them),
        cmocka_unit_test(elements_look_as_tinkerpop_writes_them),
        cmocka_unit_test(tokens_leave_properties_out),
        cmocka_unit_test(what_has_no_form_is_refused),
        cmocka_unit_test(extended_types_are_read),
        cmocka_unit_test(other_dates_pass_through_graphbinary),
        cmocka_unit_test(strategies_of_both_forms_are_read),
        cmocka_unit_test(bare_numbers_have_the_least_type),
        cmocka_unit_test(broken_json_is_refused),
        cmocka_unit_test(wrong_contents_are_refused),
        cmocka_unit_test(bombs_are_refused_before_memory_is_taken),
        cmocka_unit_test(cut_and_flipped_bytes_do_no_harm),
        cmocka_unit_test(requests_are_read),
        cmocka_unit_test(bytecode_is_a_traversal),
        cmocka_unit_test(the_id_is_found_in_what_cannot_be_read),
        cmocka_unit_test(frames_are_written),
        cmocka_unit_test(binary_requests_are_read),
        cmocka_unit_test(mimes_lead_to_formats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
