#include "partition/murmur.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "support/check.h"

static void the_32_bit_hash_gives_known_answers(void **state UNUSED)
{
    static const struct {
        const char *text;
        uint32_t seed, hash;
    } known[] = {
        {"", 0, 0},
        {"", 1, 0x514E28B7},
        {"", 0xFFFFFFFF, 0x81F16F39},
        {"a", 0x9747B28C, 0x7FA09EA6},
        {"aa", 0x9747B28C, 0x5D211726},
        {"aaa", 0x9747B28C, 0x283E0130},
        {"aaaa", 0x9747B28C, 0x5A97808A},
        {"abc", 0, 0xB3DD93FA},
        {"test", 0, 0xBA6BD213},
        {"test", 0x9747B28C, 0x704B81DC},
        {"Hello, world!", 0, 0xC0363E43},
        {"Hello, world!", 0x9747B28C, 0x24884CBA},
        {"The quick brown fox jumps over the lazy dog", 0, 0x2E4FF723},
        {"The quick brown fox jumps over the lazy dog", 0x9747B28C, 0x2FA826CD},
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        assert_int_equal(murmur_32(slice_of_text(known[i].text), known[i].seed), known[i].hash);
}

static void the_128_bit_hash_gives_known_answers(void **state UNUSED)
{
    static const struct {
        const char *text;
        uint64_t low, high;
    } known[] = {
        {"", 0, 0},
        {"hello", 0xCBD8A7B341BD9B02, 0x5B1E906A48AE1D19},
        {"The quick brown fox jumps over the lazy dog", 0xE34BBC7BBC071B6C, 0x7A433CA9C49A9347},
    };

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct murmur_128 hash = murmur_128(slice_of_text(known[i].text), 0);

        assert_true(hash.low == known[i].low);
        assert_true(hash.high == known[i].high);
    }
}

/* The published check of an implementation: hash 0, 1, 2, ... n-1 for every n below 256, each with
 * its own seed, then all the hashes together. It goes through every length of a last block. */
static void every_length_of_input_agrees_with_the_published_sum(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf small, large;
    uint8_t input[256];

    buf_init(&small, BUF_DEFAULT_MAX);
    buf_init(&large, BUF_DEFAULT_MAX);
    for (unsigned n = 0; n < 256; n++) {
        struct murmur_128 hash = murmur_128(slice_of(input, n), 256 - n);

        buf_append_le32(&small, murmur_32(slice_of(input, n), 256 - n));
        buf_append_le64(&large, hash.low);
        buf_append_le64(&large, hash.high);
        input[n] = (uint8_t)n;
    }
    assert_int_equal(murmur_32(buf_slice(&small), 0), 0xB0F57EE3);
    assert_int_equal((uint32_t)murmur_128(buf_slice(&large), 0).low, 0x6384BA69);
}

static void alignment_does_not_matter(void **state UNUSED)
{
    static const char text[] = "The quick brown fox jumps over the lazy dog";
    uint8_t bytes[sizeof text + 8];

    for (size_t shift = 0; shift < 8; shift++) {
        struct slice moved = slice_of(bytes + shift, sizeof text - 1);

        memcpy(bytes + shift, text, sizeof text);
        assert_int_equal(murmur_32(moved, 0), 0x2E4FF723);
        assert_true(murmur_128(moved, 0).low == 0xE34BBC7BBC071B6C);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_32_bit_hash_gives_known_answers),
        cmocka_unit_test(the_128_bit_hash_gives_known_answers),
        cmocka_unit_test(every_length_of_input_agrees_with_the_published_sum),
        cmocka_unit_test(alignment_does_not_matter),
    };
    return cmocka_run_group_tests_name("partition/murmur", tests, NULL, NULL);
}
