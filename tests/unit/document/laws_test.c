/* What must hold for all values, tried on values made at random. A failure prints the seed;
 * DOCUMENT_SEED=n tries that one again. */
#include "document/extended.h"
#include "document/json.h"
#include "document/order.h"
#include "support/check.h"
#include "support/documents.h"

#include <bson/bson.h>

enum { VALUES = 300, ROUNDS = 12 };

static const char *order_name(enum document_order order)
{
    return order == DOCUMENT_ORDER_SQL ? "SQL" : "MongoDB";
}

static uint64_t first_seed(void)
{
    const char *text = getenv("DOCUMENT_SEED");
    uint64_t seed;

    if (text && slice_to_uint64(slice_of_text(text), &seed))
        return seed;
    random_secret(&seed, sizeof seed);
    return seed >> 20;
}

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static char *show(const struct document_value *value, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;

    buf_init(&buf, 1000);
    document_json_write_value(value, &buf);
    return arena_text(arena, buf_slice(&buf));
}

/* Many values and their keys. */
struct sample {
    uint64_t seed;
    struct arena *arena;
    struct document_value values[VALUES];
    struct slice keys[VALUES];
};

static struct sample *sample_new(struct arena *arena, uint64_t seed, enum document_order order)
{
    CLEANUP(buf_done) struct buf buf;
    struct sample *sample = ARENA_NEW(arena, struct sample);
    struct random random;

    buf_init(&buf, BUF_DEFAULT_MAX);
    random_seed(&random, seed);
    sample->seed = seed;
    sample->arena = arena;
    for (size_t i = 0; i < VALUES; i++) {
        sample->values[i] = value_random(&random, arena, 3);
        buf_clear(&buf);
        document_key_append(order, &sample->values[i], &buf);
        sample->keys[i] = arena_copy(arena, buf_slice(&buf));
    }
    return sample;
}

static void check_pair(const struct sample *sample, enum document_order order, size_t i, size_t j)
{
    const struct document_value *a = &sample->values[i], *b = &sample->values[j];
    int compared = sign(document_compare(order, a, b));

    if (compared != -sign(document_compare(order, b, a)))
        fail_msg("seed %llu, %s order: %s and %s are not opposite",
                 (unsigned long long)sample->seed, order_name(order), show(a, sample->arena),
                 show(b, sample->arena));
    if (compared != sign(slice_compare(sample->keys[i], sample->keys[j])))
        fail_msg("seed %llu, %s order: keys of %s and %s disagree with %d",
                 (unsigned long long)sample->seed, order_name(order), show(a, sample->arena),
                 show(b, sample->arena), compared);
    if (compared && (slice_starts_with(sample->keys[i], sample->keys[j]) ||
                     slice_starts_with(sample->keys[j], sample->keys[i])))
        fail_msg("seed %llu, %s order: the key of one of %s and %s begins with the other's",
                 (unsigned long long)sample->seed, order_name(order), show(a, sample->arena),
                 show(b, sample->arena));
}

static void check_order(uint64_t seed, enum document_order order)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct sample *sample = sample_new(arena, seed, order);
    struct random random;

    for (size_t i = 0; i < VALUES; i++) {
        for (size_t j = i; j < VALUES; j++)
            check_pair(sample, order, i, j);
    }
    random_seed(&random, seed + 1);
    for (int triple = 0; triple < 20000; triple++) {
        const struct document_value *a = &sample->values[random_below(&random, VALUES)];
        const struct document_value *b = &sample->values[random_below(&random, VALUES)];
        const struct document_value *c = &sample->values[random_below(&random, VALUES)];

        if (document_compare(order, a, b) <= 0 && document_compare(order, b, c) <= 0 &&
            document_compare(order, a, c) > 0)
            fail_msg("seed %llu, %s order: %s <= %s <= %s, but not the first and last",
                     (unsigned long long)seed, order_name(order), show(a, arena), show(b, arena),
                     show(c, arena));
    }
}

static void both_orders_are_total_and_keys_sort_like_the_values(void **state UNUSED)
{
    uint64_t seed = first_seed();

    print_message("# seed %llu\n", (unsigned long long)seed);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        check_order(seed + round, DOCUMENT_ORDER_SQL);
        check_order(seed + round, DOCUMENT_ORDER_MONGO);
    }
}

static void check_cut(enum document_order order)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf buf;
    struct sample *sample = sample_new(arena, first_seed(), order);
    struct slice cut[VALUES];
    struct error err;
    const size_t max = 9;

    buf_init(&buf, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < VALUES; i++) {
        bool was_cut, is_cut;
        struct slice rest;

        buf_clear(&buf);
        was_cut = document_key_append_cut(order, &sample->values[i], max, &buf);
        assert_int_equal(was_cut, sample->keys[i].len > max);
        cut[i] = arena_copy(arena, buf_slice(&buf));
        BUF_APPEND(&buf, "\xFFtail");
        rest = buf_slice(&buf);
        assert_ok(document_key_skip_cut(order, max, &rest, &is_cut, &err), &err);
        assert_int_equal(is_cut, was_cut);
        assert_slice_equal(rest, SLICE("\xFFtail"));
    }
    for (size_t i = 0; i < VALUES; i++) {
        for (size_t j = 0; j < VALUES; j++) {
            int whole = sign(slice_compare(sample->keys[i], sample->keys[j]));
            int parts = sign(slice_compare(cut[i], cut[j]));

            if (parts != whole && parts != 0)
                fail_msg("seed %llu: %s and %s change places when cut",
                         (unsigned long long)sample->seed, show(&sample->values[i], arena),
                         show(&sample->values[j], arena));
        }
    }
}

static void a_cut_key_keeps_the_order_and_can_be_stepped_over(void **state UNUSED)
{
    check_cut(DOCUMENT_ORDER_SQL);
    check_cut(DOCUMENT_ORDER_MONGO);
}

/* So an index in one order serves ranges of these types to plans in the other
 * (query/value/condition.c). */
static void between_values_that_are_not_made_of_text_both_orders_say_the_same(void **state UNUSED)
{
    uint64_t seed = first_seed(), pairs = 0;

    for (uint64_t round = 0; round < ROUNDS; round++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct sample *sample = sample_new(arena, seed + round, DOCUMENT_ORDER_SQL);

        for (size_t i = 0; i < VALUES; i++) {
            for (size_t j = 0; j < VALUES; j++) {
                const struct document_value *a = &sample->values[i], *b = &sample->values[j];
                bool agrees = a->type == DOCUMENT_BOOL || a->type == DOCUMENT_NULL ||
                              a->type == DOCUMENT_DATE || a->type == DOCUMENT_OBJECT_ID ||
                              a->type == DOCUMENT_BINARY || a->type == DOCUMENT_TIMESTAMP;

                if (!(agrees && a->type == b->type) &&
                    !(document_is_number(a) && document_is_number(b)))
                    continue;
                pairs++;
                if (sign(document_compare(DOCUMENT_ORDER_SQL, a, b)) !=
                    sign(document_compare(DOCUMENT_ORDER_MONGO, a, b)))
                    fail_msg("seed %llu: the orders differ on %s and %s", (unsigned long long)seed,
                             show(a, arena), show(b, arena));
            }
        }
    }
    assert_true(pairs > 1000);
}

static bool has_type_below(const struct document_value *value, enum document_type type)
{
    struct document_iter iter;

    if (value->type == type)
        return true;
    if (value->type == DOCUMENT_CODE_WITH_SCOPE)
        document_iter_init(&iter, value->scoped.scope);
    else if (value->type == DOCUMENT_OBJECT || value->type == DOCUMENT_ARRAY)
        document_iter_init(&iter, value->document);
    else
        return false;
    while (document_iter_next(&iter))
        if (has_type_below(&iter.value, type))
            return true;
    return false;
}

static struct slice wrapped(const struct document_value *value, bool extended, struct arena *arena)
{
    CLEANUP(buf_done) struct buf buf;
    size_t begin;

    buf_init(&buf, BUF_DEFAULT_MAX);
    begin = document_begin(&buf);
    if (extended)
        document_extended_append(&buf, SLICE("value"), value);
    else
        document_append(&buf, SLICE("value"), value);
    document_end(&buf, begin);
    return arena_copy(arena, buf_slice(&buf));
}

/* NaN has many bit patterns, decimals several forms of 0 and NaN; JSON has one of each. */
static bool is_kept_bit_for_bit(const struct document_value *value)
{
    return !has_type_below(value, DOCUMENT_DECIMAL128) && !has_type_below(value, DOCUMENT_DOUBLE);
}

static void extended_json_brings_every_value_back(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct random random;
    uint64_t seed = first_seed();

    random_seed(&random, seed);
    for (int i = 0; i < 3000; i++) {
        CLEANUP(buf_done) struct buf text, bson;
        struct document_value value = value_random(&random, arena, 4), back;
        struct slice first = wrapped(&value, false, arena), read;
        struct error err;

        buf_init(&text, BUF_DEFAULT_MAX);
        buf_init(&bson, BUF_DEFAULT_MAX);
        document_json_write(wrapped(&value, true, arena), &text);
        if (!document_json_read(buf_slice(&text), NULL, &bson, &err)) {
            assert_int_equal(err.code, ERROR_DUPLICATE_PROPERTY); /* which JSON has none of */
            continue;
        }
        back = document_object(buf_slice(&bson));
        if (!document_extended_read(&back, arena, &back, &err))
            fail_msg("seed %llu: %.*s: %s", (unsigned long long)seed, SLICE_ARG(buf_slice(&text)),
                     err.message);
        read = back.document;
        if (is_kept_bit_for_bit(&value) ? !slice_equal(read, first) : read.len != first.len)
            fail_msg("seed %llu: %.*s comes back as another document", (unsigned long long)seed,
                     SLICE_ARG(buf_slice(&text)));
        assert_true(document_find(read, SLICE("value"), &back));
        assert_int_equal(back.type, value.type);
        assert_int_equal(document_compare(DOCUMENT_ORDER_MONGO, &back, &value), 0);
    }
}

/* Different texts for different values, and each means what it was made of. */
static void the_text_of_a_value_means_that_value(void **state UNUSED)
{
    static const char *const strings[] = {
        "",
        "a",
        "5",
        "-5",
        "5.0",
        "1e3",
        "007",
        "true",
        "null",
        "\"5\"",
        "\"a\"",
        "\"\\\"5\\\"\"",
        "{}",
        "{\"a\":1}",
        "{ }",
        "[1]",
        "\"",
        "{",
        "9999999999999999999",
        "507f1f77bcf86cd799439011",
        "507F1F77BCF86CD799439011",
        "{\"$oid\":\"507f1f77bcf86cd799439011\"}",
        "{\"$oid\":\"x\"}",
        "{\"$numberLong\":\"5\"}",
    };
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct random random;
    uint64_t seed = first_seed();

    random_seed(&random, seed);
    for (size_t i = 0; i < 3000 + ARRAY_LEN(strings); i++) {
        struct document_value value = i < ARRAY_LEN(strings)
                                          ? document_string(slice_of_text(strings[i]))
                                          : value_random(&random, arena, 3);
        struct slice text = document_extended_text(&value, arena), again;
        struct document_value back;

        if (value.type == DOCUMENT_ARRAY || value.type == DOCUMENT_CODE_WITH_SCOPE ||
            has_type_below(&value, DOCUMENT_OBJECT))
            continue; /* names may stand twice, and may look like extended JSON */
        back = document_extended_of_text(text, arena);
        again = document_extended_text(&back, arena);
        if (document_compare(DOCUMENT_ORDER_MONGO, &value, &back) != 0 ||
            (back.type == DOCUMENT_SYMBOL) != (value.type == DOCUMENT_SYMBOL) ||
            !slice_equal(text, again))
            fail_msg("seed %llu: %.*s is the text of %s and means %s", (unsigned long long)seed,
                     SLICE_ARG(text), show(&value, arena), show(&back, arena));
    }
}

static void a_key_read_back_equals_its_value(void **state UNUSED)
{
    uint64_t seed = first_seed();

    for (int order = DOCUMENT_ORDER_SQL; order <= DOCUMENT_ORDER_MONGO; order++) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        struct sample *sample = sample_new(arena, seed, order);

        for (size_t i = 0; i < VALUES; i++) {
            struct document_value back;
            struct slice key = sample->keys[i];
            struct error err;

            assert_ok(document_key_read(order, &key, arena, &back, &err), &err);
            assert_int_equal(key.len, 0);
            if (back.type == DOCUMENT_ARRAY || back.type == DOCUMENT_OBJECT ||
                back.type == DOCUMENT_CODE_WITH_SCOPE) {
                assert_int_equal(back.type, sample->values[i].type);
                continue;
            }
            if (document_compare(order, &sample->values[i], &back) != 0)
                fail_msg("seed %llu, %s order: %s came back as %s", (unsigned long long)seed,
                         order_name(order), show(&sample->values[i], arena), show(&back, arena));
        }
    }
}

static void json_text_is_a_fixed_point_after_one_reading(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf text, bson, again;
    struct random random;
    uint64_t seed = first_seed();

    buf_init(&text, BUF_DEFAULT_MAX);
    buf_init(&bson, BUF_DEFAULT_MAX);
    buf_init(&again, BUF_DEFAULT_MAX);
    random_seed(&random, seed);
    for (int i = 0; i < 3000; i++) {
        struct document_value value = value_random_json(&random, arena, 4), back;
        struct error err;

        buf_clear(&text);
        buf_clear(&bson);
        buf_clear(&again);
        document_json_write_value(&value, &text);
        assert_ok(document_json_read_value(buf_slice(&text), NULL, &bson, &back, &err), &err);
        if (document_compare(DOCUMENT_ORDER_MONGO, &value, &back) != 0)
            fail_msg("seed %llu: %.*s reads as another value", (unsigned long long)seed,
                     SLICE_ARG(buf_slice(&text)));
        document_json_write_value(&back, &again);
        assert_slice_equal(buf_slice(&again), buf_slice(&text));
    }
}

/* libbson knows nothing of our writer; what it finds is what we meant. */
static void check_with_libbson(const bson_t *theirs, struct slice ours)
{
    struct document_iter mine;
    bson_iter_t iter;

    assert_true(bson_iter_init(&iter, theirs));
    document_iter_init(&mine, ours);
    while (bson_iter_next(&iter)) {
        assert_true(document_iter_next(&mine));
        assert_slice_equal(mine.key, slice_of_text(bson_iter_key(&iter)));
        assert_int_equal((int)mine.value.type & 0xFF, (int)bson_iter_type(&iter) & 0xFF);
        switch (mine.value.type) {
        case DOCUMENT_INT32:
            assert_int_equal(mine.value.int32, bson_iter_int32(&iter));
            break;
        case DOCUMENT_INT64:
            assert_int_equal(mine.value.int64, bson_iter_int64(&iter));
            break;
        case DOCUMENT_DATE:
            assert_int_equal(mine.value.int64, bson_iter_date_time(&iter));
            break;
        case DOCUMENT_BOOL:
            assert_int_equal(mine.value.boolean, bson_iter_bool(&iter));
            break;
        case DOCUMENT_DOUBLE: {
            double number = bson_iter_double(&iter);

            assert_memory_equal(&mine.value.number, &number, sizeof number);
            break;
        }
        case DOCUMENT_STRING: {
            uint32_t len;
            const char *text = bson_iter_utf8(&iter, &len);

            assert_slice_equal(mine.value.text, slice_of(text, len));
            break;
        }
        case DOCUMENT_BINARY: {
            bson_subtype_t subtype;
            uint32_t len;
            const uint8_t *bytes;

            bson_iter_binary(&iter, &subtype, &len, &bytes);
            assert_int_equal(subtype, mine.value.binary.subtype);
            assert_slice_equal(mine.value.binary.bytes, slice_of(bytes, len));
            break;
        }
        case DOCUMENT_DECIMAL128: {
            bson_decimal128_t decimal;

            assert_true(bson_iter_decimal128(&iter, &decimal));
            assert_true(decimal.low == mine.value.decimal.low);
            assert_true(decimal.high == mine.value.decimal.high);
            break;
        }
        case DOCUMENT_OBJECT:
        case DOCUMENT_ARRAY: {
            const uint8_t *bytes;
            uint32_t len;
            bson_t nested;

            if (mine.value.type == DOCUMENT_ARRAY)
                bson_iter_array(&iter, &len, &bytes);
            else
                bson_iter_document(&iter, &len, &bytes);
            assert_int_equal(len, mine.value.document.len);
            assert_true(bson_init_static(&nested, bytes, len));
            check_with_libbson(&nested, mine.value.document);
            break;
        }
        default:
            break;
        }
    }
    assert_false(document_iter_next(&mine));
    assert_false(mine.broken);
}

static void what_we_write_is_valid_and_libbson_reads_the_same(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct random random;
    uint64_t seed = first_seed();

    random_seed(&random, seed);
    for (int i = 0; i < 2000; i++) {
        CLEANUP(buf_done) struct buf buf;
        struct document_value value = value_random(&random, arena, 4);
        struct error err;
        size_t begin;
        bson_t theirs;

        buf_init(&buf, BUF_DEFAULT_MAX);
        begin = document_begin(&buf);
        document_append(&buf, SLICE("value"), &value);
        document_end(&buf, begin);
        if (!document_validate(buf_slice(&buf), NULL, &err))
            fail_msg("seed %llu: %s: %s", (unsigned long long)seed, show(&value, arena),
                     err.message);
        assert_true(bson_init_static(&theirs, buf.data, buf.len));
        check_with_libbson(&theirs, buf_slice(&buf));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_orders_are_total_and_keys_sort_like_the_values),
        cmocka_unit_test(a_cut_key_keeps_the_order_and_can_be_stepped_over),
        cmocka_unit_test(between_values_that_are_not_made_of_text_both_orders_say_the_same),
        cmocka_unit_test(extended_json_brings_every_value_back),
        cmocka_unit_test(the_text_of_a_value_means_that_value),
        cmocka_unit_test(a_key_read_back_equals_its_value),
        cmocka_unit_test(json_text_is_a_fixed_point_after_one_reading),
        cmocka_unit_test(what_we_write_is_valid_and_libbson_reads_the_same),
    };
    return cmocka_run_group_tests_name("document/laws", tests, NULL, NULL);
}
