#include "front/signature.h"

#include "support/check.h"

static void assert_mac(const uint8_t mac[FRONT_SIGNATURE_LEN], const char *hex)
{
    char text[2 * FRONT_SIGNATURE_LEN + 1];

    for (size_t i = 0; i < FRONT_SIGNATURE_LEN; i++)
        snprintf(text + 2 * i, 3, "%02x", mac[i]);
    assert_string_equal(text, hex);
}

/* The test cases of RFC 4231 for HMAC-SHA-256, but for the truncated one. */
static void the_vectors_of_the_standard_hold(void **state UNUSED)
{
    uint8_t aa[131], dd[50], cd[50], count[25], b0[20];
    uint8_t mac[FRONT_SIGNATURE_LEN];

    memset(aa, 0xaa, sizeof aa);
    memset(dd, 0xdd, sizeof dd);
    memset(cd, 0xcd, sizeof cd);
    memset(b0, 0x0b, sizeof b0);
    for (size_t i = 0; i < sizeof count; i++)
        count[i] = (uint8_t)(i + 1);

    const struct {
        struct slice key, text;
        const char *hex;
    } cases[] = {
        {slice_of(b0, 20), SLICE("Hi There"),
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {SLICE("Jefe"), SLICE("what do ya want for nothing?"),
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {slice_of(aa, 20), slice_of(dd, 50),
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {slice_of(count, 25), slice_of(cd, 50),
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {slice_of(aa, 131), SLICE("Test Using Larger Than Block-Size Key - Hash Key First"),
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {slice_of(aa, 131),
         SLICE("This is a test using a larger than block-size key and a larger than block-size "
               "data. The key needs to be hashed before being used by the HMAC algorithm."),
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        front_signature(cases[i].key, &cases[i].text, 1, mac);
        assert_mac(mac, cases[i].hex);
    }
}

static void parts_are_signed_as_if_they_were_one_text(void **state UNUSED)
{
    const struct slice whole = SLICE("what do ya want for nothing?");
    const struct slice parts[] = {SLICE("what do "), SLICE_NONE, SLICE("ya want for"), SLICE(""),
                                  SLICE(" nothing?")};
    uint8_t one[FRONT_SIGNATURE_LEN], several[FRONT_SIGNATURE_LEN];

    front_signature(SLICE("Jefe"), &whole, 1, one);
    front_signature(SLICE("Jefe"), parts, ARRAY_LEN(parts), several);
    assert_true(front_signature_equal(one, several));
    several[FRONT_SIGNATURE_LEN - 1] ^= 1;
    assert_false(front_signature_equal(one, several));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_standard_hold),
        cmocka_unit_test(parts_are_signed_as_if_they_were_one_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
