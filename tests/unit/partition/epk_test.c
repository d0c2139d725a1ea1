#include "partition/epk.h"

#include "base/random.h"
#include "support/check.h"
#include "support/documents.h"

#include <math.h>

/* The values as JSON arrays; {} stands for undefined. */
static const struct {
    const char *values, *v1, *v2;
} known_answers[] = {
    {"[\"partitionKey\"]", "05C1E1B3D9CD2608716273756A756A706F4C667A00",
     "013AEFCF77FA271571CF665A58C933F1"},
    {"[\"redmond\"]", "05C1EFE313830C087366656E706F6500", "22E342F38A486A088463DFF7838A5963"},
    {"[\"\"]", "05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0"},
    {"[\"aa\"]", "05C1C7B7270FE008626200", "05033626483AE80D00E44FBD35362B19"},
    {"[\"a\"]", "05C1D78593652C086200", "3A5381E1114EB8D3FCC90795045B49B7"},
    {"[\"A\"]", "05C1ED4B21E306084200", "14F53A0810CE6727EB1CD722D321216F"},
    {"[\"\\u9C40\"]", "05C1ADC9E18FA008EAB28100", "26BB8A9DC450408217303F7AA09BCD38"},
    {"[null]", "05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16"},
    {"[true]", "05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59"},
    {"[false]", "05C1DB857D857C02", "2FE1BE91E90A3439635E0E9E37361EF2"},
    {"[{}]", "05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5"},
    {"[0]", "05C1BF6DA11560058000", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"},
    {"[-0.0]", "05C1E703ED99A0058000", "3D018BB1DF3DB27235766E81FD10406E"},
    {"[1]", "05C1ED172B6B2605BFF0", "20CD98B339BA78A5D0CF6953B87070B0"},
    {"[-1]", "05C1D1A5BDDF9C054010", "19938E7A936C1C5B9E3AE842BBC16839"},
    {"[5]", "05C1D9C1C5517C05C014", "19C08621B135968252FB34B4CF66F811"},
    {"[5.5]", "05C1D7A771716C05C016", "0E2EE47829D1AF775EEFB6540FD1D0ED"},
    {"[5.123124190509124]", NULL, "0EF2E2D82460884AF0F6440BE4F726A8"},
    {"[127]", "05C1DD539DDFCC05C05FE0", "0C507ACAC853ECA7977BF4CEFB562A25"},
    {"[-128]", "05C1D73349F54C053FA0", "01DAEDABF913540367FE219B2AD06148"},
    {"[12313.1221]", "05C1ED154D592E05C0C90723F50FC925D8", "27E7ECA8F2EE3E53424DE8D5220631C6"},
    {"[123456789]", "05C1D9E1A5311C05C19DB7CD8B40", "1F56D2538088EBA82CCF988F36E16760"},
    {"[2147483647]", "05C1E1F503DFB205C1DFFFFFFFFC", "2D9349D64712AEB5EB1406E2F0BE2725"},
    {"[-2147483648]", "05C1DFBF252BCC053E20", "0B1660D5233C3171725B30D4A5F4CC1F"},
    {"[9223372036854775807]", "05C1B799AB2DD005C3E0", "2EDB959178DFCCA18983F89384D1629B"},
    {"[-9223372036854775808]", "05C1DB35F33D1C053C20", "23D5C6395512BDFEAFADAD15328AD2BB"},
    {"[1.7976931348623157e308]", "05C1CBE367C53005FFEFFFFFFFFFFFFFFE",
     "31424D996457102634591FF245DBCC4D"},
    {"[5e-324]", "05C1E5C91F4D3005800101010101010102", "0E6CBA63A280927DE485DEF865800139"},
    {"[\"redmond\",50,5.5,true,false,null,\"\",12313.1221]", NULL,
     "1A5E512F591E980E07A6D8AD5BD5AB2F"},
    {"[5,\"redmond\",true,null]", NULL, "3032DECBE2AB1768D8E0AEDEA35881DF"},
};

enum { VALUES_MAX = 8 };

static size_t values_of(struct arena *arena, const char *json, struct document_value *ret_values)
{
    struct document_value array = value_of(arena, json);
    struct document_iter iter;
    size_t count = 0;

    document_iter_init(&iter, array.document);
    while (document_iter_next(&iter)) {
        assert_true(count < VALUES_MAX);
        ret_values[count++] =
            iter.value.type == DOCUMENT_OBJECT ? document_undefined() : iter.value;
    }
    return count;
}

/* The EPK in hex, as a C string in the arena. */
static const char *hex_of(struct arena *arena, enum partition_kind kind,
                          const struct document_value *values, size_t count)
{
    CLEANUP(buf_done) struct buf epk, hex;

    buf_init(&epk, BUF_DEFAULT_MAX);
    buf_init(&hex, BUF_DEFAULT_MAX);
    partition_epk_append(kind, values, count, &epk);
    partition_epk_hex(buf_slice(&epk), &hex);
    return arena_text(arena, buf_slice(&hex));
}

static const char *hex_of_json(struct arena *arena, enum partition_kind kind, const char *json)
{
    struct document_value values[VALUES_MAX];
    size_t count = values_of(arena, json, values);

    return hex_of(arena, kind, values, count);
}

static const char *hex_of_string(struct arena *arena, enum partition_kind kind, struct slice text)
{
    struct document_value value = document_string(text);

    return hex_of(arena, kind, &value, 1);
}

/* A string of count times the same text. */
static struct slice repeated(struct arena *arena, const char *text, size_t count)
{
    size_t len = strlen(text);
    uint8_t *bytes = arena_alloc(arena, len * count + 1);

    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * len, text, len);
    return slice_of(bytes, len * count);
}

static void known_answers_come_out_bit_for_bit(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known_answers); i++) {
        const char *values = known_answers[i].values;

        if (known_answers[i].v1)
            assert_string_equal(hex_of_json(arena, PARTITION_HASH_V1, values), known_answers[i].v1);
        assert_string_equal(hex_of_json(arena, PARTITION_HASH_V2, values), known_answers[i].v2);
    }
}

static void version_1_counts_the_first_100_characters(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice a110 = repeated(arena, "a", 110), a1024 = repeated(arena, "a", 1024);
    const char *expected = (const char *)arena_printf(arena, "05C1EB5921F70608%.*s00%c",
                                                      SLICE_ARG(repeated(arena, "62", 100)), '\0')
                               .data;

    assert_string_equal(hex_of_string(arena, PARTITION_HASH_V1, a110), expected);
    assert_string_equal(hex_of_string(arena, PARTITION_HASH_V1, a1024), expected);
    assert_string_equal(hex_of_string(arena, PARTITION_HASH_V2, a110),
                        "0BA3E9CA8EE4C14538828D1612A4B652");
    assert_string_equal(hex_of_string(arena, PARTITION_HASH_V2, a1024),
                        "332BDF5512AE49615F32C7D98C2DB86C");
}

/* Hash number, tag, then at most 101 bytes. */
static void version_1_shows_101_bytes_of_longer_text_and_no_end(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const char *hex = hex_of_string(arena, PARTITION_HASH_V1, repeated(arena, "\xE9\xB1\x80", 100));
    const char *text = strstr(hex, "08EAB281");

    assert_non_null(text);
    assert_int_equal(strlen(text), 2 * (1 + 101));
    assert_string_equal(text + strlen(text) - 4, "EAB2");
    assert_string_equal(
        hex, hex_of_string(arena, PARTITION_HASH_V1, repeated(arena, "\xE9\xB1\x80", 130)));
}

/* Clients cut UTF-16 text, so the 100th unit may be half of a character, which their encoders
 * replace: 99 letters and an emoji are as 99 letters and U+FFFD. */
static void version_1_replaces_the_character_its_cut_halves(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice letters = repeated(arena, "a", 99);
    struct slice emoji = arena_printf(arena, "%.*s\xF0\x9F\x98\x80z", SLICE_ARG(letters));
    struct slice replaced = arena_printf(arena, "%.*s\xEF\xBF\xBD", SLICE_ARG(letters));

    assert_string_equal(hex_of_string(arena, PARTITION_HASH_V1, emoji),
                        hex_of_string(arena, PARTITION_HASH_V1, replaced));
}

static void multi_hash_hashes_every_level_alone(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    assert_string_equal(hex_of_json(arena, PARTITION_MULTI_HASH, "[\"redmond\",5]"),
                        "22E342F38A486A088463DFF7838A5963"
                        "19C08621B135968252FB34B4CF66F811");
    assert_string_equal(hex_of_json(arena, PARTITION_MULTI_HASH, "[\"redmond\"]"),
                        "22E342F38A486A088463DFF7838A5963");
}

static void numbers_hash_by_value_and_not_by_type(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const struct document_value ones[] = {
        document_int32(1),
        document_int64(1),
        document_double(1),
        /* Decimal 1.00: coefficient 100, exponent -2. */
        {.type = DOCUMENT_DECIMAL128, .decimal = {.low = 100, .high = (uint64_t)(6176 - 2) << 49}},
    };

    for (size_t i = 0; i < ARRAY_LEN(ones); i++) {
        assert_string_equal(hex_of(arena, PARTITION_HASH_V1, &ones[i], 1), "05C1ED172B6B2605BFF0");
        assert_string_equal(hex_of(arena, PARTITION_HASH_V2, &ones[i], 1),
                            "20CD98B339BA78A5D0CF6953B87070B0");
    }
}

static void all_nans_are_one(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value plain = document_double(NAN), negative = document_double(-NAN);

    assert_string_equal(hex_of(arena, PARTITION_HASH_V2, &plain, 1),
                        hex_of(arena, PARTITION_HASH_V2, &negative, 1));
}

/* The layout of types that JSON lacks is stored: these answers change only with its version. */
static void types_that_json_lacks_keep_their_hashes(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    static const uint8_t id[DOCUMENT_OBJECT_ID_SIZE] = {1, 2, 3};
    const struct document_value values[] = {
        document_date(1700000000000),
        {.type = DOCUMENT_TIMESTAMP, .timestamp = 1700000000000},
        {.type = DOCUMENT_OBJECT_ID, .id = id},
        {.type = DOCUMENT_BINARY, .binary = {SLICE("abc"), 4}},
        {.type = DOCUMENT_CODE, .text = SLICE("abc")},
        {.type = DOCUMENT_REGEX, .regex = {SLICE("abc"), SLICE("i")}},
        {.type = DOCUMENT_DB_POINTER, .pointer = {SLICE("abc"), id}},
        document_value_of_type(DOCUMENT_MIN_KEY),
        document_value_of_type(DOCUMENT_MAX_KEY),
    };
    static const struct {
        const char *v1, *v2;
    } expected[] = {
        {"05C1ED814F3F902009", "1F89D6C08937E17D698DA84D6E678A10"},
        {"05C1E5F1D3E9E22011", "351B4A66EA0C6E997D4006BA87F8481C"},
        {"05C1E17D2F55922007", "095EC7FEC8368A9C7509D9389823B11A"},
        {"05C1DD855759D02005", "3949BC681EB33EE908A1C0F3FFA33CBD"},
        {"05C1E5B96FC314200D", "1BA8E66C6AAEF1A3AF9710DABADF83AA"},
        {"05C1DBBBE5E9B8200B", "3056FD8E2F9656B56D24F82E12DA0E6D"},
        {"05C1A933B78B40200C", "2A108F433F8FAD78BE7BF7EA8B77148D"},
        {"05C1E759D7EFAA20FF", "3A32014BC9DF16638991A8D754301424"},
        {"05C1EBB5D90DBE207F", "2B1715286A2E255E0A5A0C838F357993"},
    };

    assert_int_equal(PARTITION_EPK_OTHER_TYPES_VERSION, 1);
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        assert_string_equal(hex_of(arena, PARTITION_HASH_V1, &values[i], 1), expected[i].v1);
        assert_string_equal(hex_of(arena, PARTITION_HASH_V2, &values[i], 1), expected[i].v2);
    }
}

static void symbols_hash_as_the_strings_they_equal(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct document_value symbol = {.type = DOCUMENT_SYMBOL, .text = SLICE("a")};

    assert_string_equal(hex_of(arena, PARTITION_HASH_V2, &symbol, 1),
                        "3A5381E1114EB8D3FCC90795045B49B7");
}

static void zeros_at_the_end_count_in_version_2_only(void **state UNUSED)
{
    struct slice whole = SLICE("\x05\xC1\xD9\x05\xC0\x00"), cut = SLICE("\x05\xC1\xD9\x05\xC0");
    struct slice above = SLICE("\x05\xC1\xD9\x05\xC1");

    assert_int_equal(partition_epk_compare(PARTITION_HASH_V1, whole, cut), 0);
    assert_true(partition_epk_compare(PARTITION_HASH_V1, whole, above) < 0);
    assert_true(partition_epk_compare(PARTITION_HASH_V2, whole, cut) > 0);
}

static void hex_reads_back(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice epk;
    struct error err;

    assert_ok(partition_epk_from_hex(SLICE("05c1FF"), arena, &epk, &err), &err);
    assert_slice_equal(epk, SLICE("\x05\xC1\xFF"));
    assert_ok(partition_epk_from_hex(SLICE(""), arena, &epk, &err), &err);
    assert_int_equal(epk.len, 0);
    assert_fails(partition_epk_from_hex(SLICE("05C"), arena, &epk, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(partition_epk_from_hex(SLICE("0G"), arena, &epk, &err), &err, ERROR_BAD_REQUEST);
    assert_fails(partition_epk_from_hex(repeated(arena, "00", PARTITION_ROUTING_KEY_MAX + 1), arena,
                                        &epk, &err),
                 &err, ERROR_BAD_REQUEST);
}

static void split_points_are_those_of_the_service(void **state UNUSED)
{
    static const struct {
        enum partition_kind kind;
        size_t n;
        const char *points[3];
    } known[] = {
        {PARTITION_HASH_V1, 2, {"05C1DFFFFFFFFC"}},
        {PARTITION_HASH_V2, 2, {"1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}},
        {PARTITION_HASH_V2,
         4,
         {"0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
          "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}},
        {PARTITION_MULTI_HASH, 2, {"1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF"}},
        {PARTITION_HASH_V2,
         3,
         {"15555555555555555555555555555554", "2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA9"}},
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct slice points[3];

        partition_epk_split_points(known[i].kind, known[i].n, arena, points);
        for (size_t p = 0; p + 1 < known[i].n; p++) {
            CLEANUP(buf_done) struct buf hex;

            buf_init(&hex, BUF_DEFAULT_MAX);
            partition_epk_hex(points[p], &hex);
            assert_slice_equal(buf_slice(&hex), slice_of_text(known[i].points[p]));
        }
    }
}

static void split_points_ascend_however_many(void **state UNUSED)
{
    enum { MANY = 100003 };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice *points = ARENA_ARRAY(arena, struct slice, MANY);

    for (enum partition_kind kind = PARTITION_HASH_V1; kind <= PARTITION_MULTI_HASH; kind++) {
        partition_epk_split_points(kind, MANY, arena, points);
        for (size_t i = 1; i + 1 < MANY; i++)
            assert_true(slice_compare(points[i - 1], points[i]) < 0);
    }
}

/* An EPK ends by itself: it is found again before whatever follows it. */
static void skipping_finds_the_end_of_any_epk(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;
    struct random random;
    struct error err;

    buf_init(&buf, BUF_DEFAULT_MAX);
    random_seed(&random, 16);
    for (int round = 0; round < 20000; round++) {
        enum partition_kind kind = (enum partition_kind)random_below(&random, 3);
        size_t count = kind == PARTITION_MULTI_HASH ? 1 + random_below(&random, 3) : 1, len;
        struct document_value values[3];
        struct slice rest;

        arena_reset(arena);
        buf_clear(&buf);
        for (size_t i = 0; i < count; i++)
            values[i] =
                random_below(&random, 8)
                    ? value_random(&random, arena, 0)
                    : document_string(repeated(arena, "\xC3\xA4", 40 + random_below(&random, 80)));
        partition_epk_append(kind, values, count, &buf);
        len = buf.len;
        assert_true(slice_compare(buf_slice(&buf), PARTITION_EPK_MIN) > 0);
        assert_true(slice_compare(buf_slice(&buf), PARTITION_EPK_MAX) < 0);
        for (size_t cut = 0; cut < len; cut++) {
            rest = slice_first(buf_slice(&buf), cut);
            assert_fails(partition_epk_skip(kind, count, &rest, &err), &err, ERROR_STORE_CORRUPT);
        }
        buf_append_le64(&buf, random_next(&random));
        rest = buf_slice(&buf);
        assert_ok(partition_epk_skip(kind, count, &rest, &err), &err);
        assert_int_equal(rest.len, 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers_come_out_bit_for_bit),
        cmocka_unit_test(version_1_counts_the_first_100_characters),
        cmocka_unit_test(version_1_shows_101_bytes_of_longer_text_and_no_end),
        cmocka_unit_test(version_1_replaces_the_character_its_cut_halves),
        cmocka_unit_test(multi_hash_hashes_every_level_alone),
        cmocka_unit_test(numbers_hash_by_value_and_not_by_type),
        cmocka_unit_test(all_nans_are_one),
        cmocka_unit_test(types_that_json_lacks_keep_their_hashes),
        cmocka_unit_test(symbols_hash_as_the_strings_they_equal),
        cmocka_unit_test(zeros_at_the_end_count_in_version_2_only),
        cmocka_unit_test(hex_reads_back),
        cmocka_unit_test(split_points_are_those_of_the_service),
        cmocka_unit_test(split_points_ascend_however_many),
        cmocka_unit_test(skipping_finds_the_end_of_any_epk),
    };
    return cmocka_run_group_tests_name("partition/epk", tests, NULL, NULL);
}
