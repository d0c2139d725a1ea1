#include "support/check.h"

#include "front/mongo/auth/scram.h"

#include <openssl/evp.h>

/* The exchanges that the two RFCs print. */
struct exchange {
    enum mongo_scram scram;
    const char *password, *salt, *first, *challenge, *final, *answer;
    uint32_t iterations;
};

static const struct exchange rfc5802 = {
    .scram = MONGO_SCRAM_SHA_1,
    .password = "pencil",
    .salt = "QSXCR+Q6sek8bf92",
    .iterations = 4096,
    .first = "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    .challenge = "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    .final = "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,"
             "p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    .answer = "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
};

static const struct exchange rfc7677 = {
    .scram = MONGO_SCRAM_SHA_256,
    .password = "pencil",
    .salt = "W22ZaJ0SNY7soEsUEjb6gQ==",
    .iterations = 4096,
    .first = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    .challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                 "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    .final = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
             "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    .answer = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
};

static struct slice salt_of(const struct exchange *exchange, uint8_t salt[64])
{
    struct slice text = slice_of_text(exchange->salt);
    int len = EVP_DecodeBlock(salt, text.data, (int)text.len);

    for (size_t i = text.len; i && text.data[i - 1] == '='; i--)
        len--;
    return slice_of(salt, (size_t)len);
}

static bool proof_holds(const struct exchange *exchange, const char *password, const char *final,
                        struct arena *arena, struct slice *ret_answer)
{
    uint8_t salt[64], signature[MONGO_SCRAM_KEY_MAX];
    struct mongo_scram_first first;
    struct mongo_scram_final read;
    struct mongo_scram_keys keys;
    struct slice signed_text;

    assert_true(mongo_scram_first_read(slice_of_text(exchange->first), arena, &first));
    assert_true(mongo_scram_final_read(slice_of_text(final), &read));
    signed_text = arena_printf(arena, "%.*s,%s,%.*s", SLICE_ARG(first.bare), exchange->challenge,
                               SLICE_ARG(read.unproved));
    mongo_scram_derive(exchange->scram, slice_of_text(password), salt_of(exchange, salt),
                       exchange->iterations, &keys);
    if (!mongo_scram_check(exchange->scram, &keys, signed_text, &read, signature))
        return false;
    *ret_answer = mongo_scram_final_text(exchange->scram, signature, arena);
    return true;
}

static void exchange_check(const struct exchange *exchange)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice answer = SLICE_NONE;
    uint8_t salt[64];
    struct mongo_scram_final final;

    assert_true(mongo_scram_final_read(slice_of_text(exchange->final), &final));
    assert_slice_equal(
        mongo_scram_challenge(final.nonce, salt_of(exchange, salt), exchange->iterations, arena),
        slice_of_text(exchange->challenge));
    assert_true(proof_holds(exchange, exchange->password, exchange->final, arena, &answer));
    assert_slice_equal(answer, slice_of_text(exchange->answer));
    assert_false(proof_holds(exchange, "pencils", exchange->final, arena, &answer));
}

static void the_exchange_of_rfc_5802_holds(void **state UNUSED)
{
    exchange_check(&rfc5802);
}

static void the_exchange_of_rfc_7677_holds(void **state UNUSED)
{
    exchange_check(&rfc7677);
}

static void a_proof_of_another_nonce_does_not_hold(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct slice answer;

    assert_false(proof_holds(&rfc5802, "pencil",
                             "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7k,"
                             "p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
                             arena, &answer));
}

static void a_name_has_its_escapes_undone(void **state UNUSED)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct mongo_scram_first first;

    assert_true(mongo_scram_first_read(SLICE("n,,n=a=2Cb=3Dc,r=x"), arena, &first));
    assert_slice_equal(first.user, SLICE("a,b=c"));
    assert_slice_equal(first.nonce, SLICE("x"));
}

static void what_is_no_first_message_is_refused(void **state UNUSED)
{
    static const char *const texts[] = {"",
                                        "n,,",
                                        "n,,n=,r=x",
                                        "n,,n=a",
                                        "n,,n=a,r=",
                                        "n,,n=a=2,r=x",
                                        "n,,n=a=41,r=x",
                                        "y,,n=a,r=x",
                                        "p=tls-unique,,n=a,r=x",
                                        "n,a=other,n=a,r=x",
                                        "n,,m=1,n=a,r=x"};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct mongo_scram_first first;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_false(mongo_scram_first_read(slice_of_text(texts[i]), arena, &first));
}

static void what_is_no_final_message_is_refused(void **state UNUSED)
{
    static const char *const texts[] = {"",
                                        "c=biws",
                                        "c=biws,r=x",
                                        "c=biws,r=x,p=",
                                        "c=biws,r=x,p=abc",
                                        "c=biws,r=x,p=####",
                                        "c=eSws,r=x,p=AAAA",
                                        "c=biws,r=x,p=AAAA,e=1",
                                        "r=x,c=biws,p=AAAA"};
    struct mongo_scram_final final;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        assert_false(mongo_scram_final_read(slice_of_text(texts[i]), &final));
}

/* The example of MongoDB's own specification of authentication. */
static void the_digest_of_a_password_is_that_of_mongodb(void **state UNUSED)
{
    char digest[MONGO_SCRAM_DIGEST_LEN];

    mongo_scram_digest(SLICE("user"), SLICE("pencil"), digest);
    assert_slice_equal(slice_of(digest, sizeof digest), SLICE("1c33006ec1ffd90f9cadcbcc0e118200"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exchange_of_rfc_5802_holds),
        cmocka_unit_test(the_exchange_of_rfc_7677_holds),
        cmocka_unit_test(a_proof_of_another_nonce_does_not_hold),
        cmocka_unit_test(a_name_has_its_escapes_undone),
        cmocka_unit_test(what_is_no_first_message_is_refused),
        cmocka_unit_test(what_is_no_final_message_is_refused),
        cmocka_unit_test(the_digest_of_a_password_is_that_of_mongodb),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
