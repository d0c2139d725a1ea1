#include "server/x509.h"

#include "base/clock.h"
#include "support/check.h"

static const int64_t day_ms = 24LL * 3600 * 1000;

/* An authority and what it issues. */
struct issuer {
    struct arena *arena;
    struct buf certificate, key;
    struct certificate_names names;
    int64_t now_ms;
};

static void issuer_done(struct issuer *issuer)
{
    x509_secret_done(&issuer->key);
    buf_done(&issuer->certificate);
    arena_free(issuer->arena);
}
CLEANUP_VALUE_FN(struct issuer, issuer_done)

static void names_set(struct issuer *issuer, const char *extra)
{
    const struct certificate_names_source source = {.extra = slice_of_text(extra)};
    struct error err;

    assert_ok(certificate_names_make(&source, issuer->arena, &issuer->names, &err), &err);
}

static void issuer_init(struct issuer *issuer)
{
    struct error err;

    issuer->arena = arena_new();
    issuer->now_ms = clock_wall_ms();
    buf_init(&issuer->certificate, X509_PEM_BYTES_MAX);
    buf_init(&issuer->key, X509_PEM_BYTES_MAX);
    names_set(issuer, "db.example");
    assert_ok(x509_make_authority(issuer->now_ms, &issuer->certificate, &issuer->key, &err), &err);
}

static void issue(const struct issuer *issuer, struct buf *pem)
{
    struct error err;

    buf_init(pem, X509_PEM_BYTES_MAX);
    assert_ok(x509_issue(buf_slice(&issuer->certificate), buf_slice(&issuer->key), &issuer->names,
                         issuer->now_ms, pem, &err),
              &err);
}

static enum x509_verdict judge(const struct issuer *issuer, const struct buf *pem, int64_t after_ms)
{
    return x509_judge(buf_slice(pem), buf_slice(&issuer->certificate), &issuer->names,
                      issuer->now_ms + after_ms);
}

static void what_was_issued_is_good_until_it_nears_its_end(void **state UNUSED)
{
    CLEANUP(issuer_done) struct issuer issuer;
    CLEANUP(x509_secret_done) struct buf pem;

    issuer_init(&issuer);
    issue(&issuer, &pem);
    assert_int_equal(judge(&issuer, &pem, 0), X509_GOOD);
    assert_int_equal(judge(&issuer, &pem, 794 * day_ms), X509_GOOD);
    assert_int_equal(judge(&issuer, &pem, 796 * day_ms), X509_ENDS);
    assert_int_equal(judge(&issuer, &pem, -2 * day_ms), X509_ENDS);
}

static void other_names_are_noticed(void **state UNUSED)
{
    CLEANUP(issuer_done) struct issuer issuer;
    CLEANUP(x509_secret_done) struct buf pem;

    issuer_init(&issuer);
    issue(&issuer, &pem);
    names_set(&issuer, "db.example,10.0.0.7");
    assert_int_equal(judge(&issuer, &pem, 0), X509_OTHER_NAMES);
    names_set(&issuer, "");
    assert_int_equal(judge(&issuer, &pem, 0), X509_OTHER_NAMES);
    names_set(&issuer, "DB.example");
    assert_int_equal(judge(&issuer, &pem, 0), X509_GOOD);
}

static void another_authority_is_noticed(void **state UNUSED)
{
    CLEANUP(issuer_done) struct issuer issuer;
    CLEANUP(issuer_done) struct issuer other;
    CLEANUP(x509_secret_done) struct buf pem;

    issuer_init(&issuer);
    issuer_init(&other);
    issue(&issuer, &pem);
    assert_int_equal(judge(&other, &pem, 0), X509_OTHER_AUTHORITY);
}

static void nonsense_is_unreadable(void **state UNUSED)
{
    CLEANUP(issuer_done) struct issuer issuer;
    CLEANUP(buf_done) struct buf pem;

    issuer_init(&issuer);
    buf_init(&pem, X509_PEM_BYTES_MAX);
    assert_int_equal(judge(&issuer, &pem, 0), X509_UNREADABLE);
    BUF_APPEND(&pem, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert_int_equal(judge(&issuer, &pem, 0), X509_UNREADABLE);
}

static void nothing_issued_outlives_its_authority(void **state UNUSED)
{
    CLEANUP(issuer_done) struct issuer issuer;
    CLEANUP(x509_secret_done) struct buf pem;

    issuer_init(&issuer);
    issuer.now_ms += 3600 * day_ms;
    issue(&issuer, &pem);
    assert_int_equal(judge(&issuer, &pem, 0), X509_GOOD);
    assert_int_equal(judge(&issuer, &pem, 30 * day_ms), X509_ENDS);
}

static void only_an_authority_of_ours_is_said_to_end(void **state UNUSED)
{
    CLEANUP(issuer_done) struct issuer issuer;
    CLEANUP(x509_secret_done) struct buf pem;

    issuer_init(&issuer);
    issue(&issuer, &pem);
    assert_false(
        x509_authority_ends(buf_slice(&issuer.certificate), issuer.now_ms + 3600 * day_ms));
    assert_true(x509_authority_ends(buf_slice(&issuer.certificate), issuer.now_ms + 3640 * day_ms));
    assert_false(x509_authority_ends(buf_slice(&pem), issuer.now_ms + 3640 * day_ms));
    assert_false(x509_authority_ends(SLICE("nonsense"), issuer.now_ms));
}

static void the_key_must_be_the_authoritys(void **state UNUSED)
{
    CLEANUP(issuer_done) struct issuer issuer;
    CLEANUP(issuer_done) struct issuer other;
    CLEANUP(x509_secret_done) struct buf pem;
    struct error err;

    issuer_init(&issuer);
    issuer_init(&other);
    buf_init(&pem, X509_PEM_BYTES_MAX);
    assert_fails(x509_issue(buf_slice(&issuer.certificate), buf_slice(&other.key), &issuer.names,
                            issuer.now_ms, &pem, &err),
                 &err, ERROR_CERTIFICATE);
    assert_contains(err.message, "another authority's");
    assert_int_equal(pem.len, 0);
}

static void a_server_certificate_is_no_authority(void **state UNUSED)
{
    CLEANUP(issuer_done) struct issuer issuer;
    CLEANUP(x509_secret_done) struct buf pem;
    CLEANUP(x509_secret_done) struct buf second;
    struct error err;

    issuer_init(&issuer);
    issue(&issuer, &pem);
    buf_init(&second, X509_PEM_BYTES_MAX);
    assert_fails(
        x509_issue(buf_slice(&pem), buf_slice(&pem), &issuer.names, issuer.now_ms, &second, &err),
        &err, ERROR_CERTIFICATE);
    assert_contains(err.message, "not an authority's");
}

static void a_description_tells_names_validity_and_fingerprint(void **state UNUSED)
{
    CLEANUP(issuer_done) struct issuer issuer;
    CLEANUP(x509_secret_done) struct buf pem;
    CLEANUP(buf_done) struct buf out;
    struct error err;
    const char *text;

    issuer_init(&issuer);
    issue(&issuer, &pem);
    buf_init(&out, BUF_DEFAULT_MAX);
    assert_ok(x509_describe(buf_slice(&pem), &out, &err), &err);
    text = arena_text(issuer.arena, buf_slice(&out));
    assert_contains(text, "  signed by    Orrery local CA ");
    assert_contains(text, "  for          localhost, *.localhost, 127.0.0.1, ::1, db.example\n");
    assert_contains(text, "  valid        from 2");
    assert_contains(text, "  fingerprint  SHA-256 ");
    buf_clear(&out);
    assert_ok(x509_describe(buf_slice(&issuer.certificate), &out, &err), &err);
    assert_null(strstr(arena_text(issuer.arena, buf_slice(&out)), "signed by"));
    assert_fails(x509_describe(SLICE("nonsense"), &out, &err), &err, ERROR_CERTIFICATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_issued_is_good_until_it_nears_its_end),
        cmocka_unit_test(other_names_are_noticed),
        cmocka_unit_test(another_authority_is_noticed),
        cmocka_unit_test(nonsense_is_unreadable),
        cmocka_unit_test(nothing_issued_outlives_its_authority),
        cmocka_unit_test(only_an_authority_of_ours_is_said_to_end),
        cmocka_unit_test(the_key_must_be_the_authoritys),
        cmocka_unit_test(a_server_certificate_is_no_authority),
        cmocka_unit_test(a_description_tells_names_validity_and_fingerprint),
    };
    return cmocka_run_group_tests_name("server/x509", tests, NULL, NULL);
}
