#include "server/certificate.h"

#include "base/clock.h"
#include "server/file.h"
#include "server/x509.h"
#include "support/check.h"
#include "support/scratch.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t day_ms = 24LL * 3600 * 1000;

/* A directory, and the texts of the files in it after the last start. */
struct place {
    struct scratch scratch;
    struct buf authority, server;
};

static void place_init(struct place *place)
{
    scratch_init(&place->scratch);
    buf_init(&place->authority, X509_PEM_BYTES_MAX);
    buf_init(&place->server, X509_PEM_BYTES_MAX);
}

static void place_done(struct place *place)
{
    buf_done(&place->authority);
    buf_done(&place->server);
    scratch_done(&place->scratch);
}
CLEANUP_VALUE_FN(struct place, place_done)

static bool try_start(const struct place *place, const char *names, int64_t now_ms,
                      struct error *err)
{
    const struct certificate_source source = {"", "", names, "", NULL};
    CLEANUP(certificate_free) struct certificate *certificate = NULL;
    CLEANUP(net_tls_context_unref) struct net_tls_context *context = NULL;

    return certificate_new(&source, &certificate, err) &&
           certificate_load(certificate, place->scratch.path, now_ms, &context, err);
}

/* Loads as a server does that starts at that time. */
static void start(struct place *place, const char *names, int64_t now_ms)
{
    struct error err;

    assert_ok(try_start(place, names, now_ms, &err), &err);
    buf_clear(&place->authority);
    buf_clear(&place->server);
    assert_ok(
        server_file_read(scratch_path(&place->scratch, "tls/ca.pem"), &place->authority, &err),
        &err);
    assert_ok(
        server_file_read(scratch_path(&place->scratch, "tls/server.pem"), &place->server, &err),
        &err);
}

/* Starts again, and tells what has changed. */
static void start_again(struct place *place, const char *names, int64_t now_ms,
                        bool *ret_other_authority, bool *ret_other_server)
{
    struct buf authority = place->authority, server = place->server;

    buf_init(&place->authority, X509_PEM_BYTES_MAX);
    buf_init(&place->server, X509_PEM_BYTES_MAX);
    start(place, names, now_ms);
    *ret_other_authority = !slice_equal(buf_slice(&place->authority), buf_slice(&authority));
    *ret_other_server = !slice_equal(buf_slice(&place->server), buf_slice(&server));
    buf_done(&authority);
    buf_done(&server);
}

static void put(const struct place *place, const char *name, struct slice text)
{
    struct error err;

    assert_ok(server_file_write_private(scratch_path(&place->scratch, name), text, &err), &err);
}

static void the_authority_stays_when_the_certificate_nears_its_end(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;
    bool other_authority, other_server;
    int64_t now_ms = clock_wall_ms();

    place_init(&place);
    start(&place, "", now_ms);
    start_again(&place, "", now_ms + 700 * day_ms, &other_authority, &other_server);
    assert_false(other_authority || other_server);
    start_again(&place, "", now_ms + 800 * day_ms, &other_authority, &other_server);
    assert_true(!other_authority && other_server);
}

static void other_names_make_another_certificate(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;
    bool other_authority, other_server;
    int64_t now_ms = clock_wall_ms();

    place_init(&place);
    start(&place, "a.example", now_ms);
    start_again(&place, "a.example", now_ms, &other_authority, &other_server);
    assert_false(other_authority || other_server);
    start_again(&place, "b.example", now_ms, &other_authority, &other_server);
    assert_true(!other_authority && other_server);
}

static void an_authority_at_its_end_is_followed_by_another(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;
    bool other_authority, other_server;
    int64_t now_ms = clock_wall_ms();

    place_init(&place);
    start(&place, "", now_ms);
    start_again(&place, "", now_ms + 3640 * day_ms, &other_authority, &other_server);
    assert_true(other_authority && other_server);
}

static void an_authority_put_there_by_others_signs(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;
    CLEANUP(place_done) struct place other;
    CLEANUP(x509_secret_done) struct buf key;
    bool other_authority, other_server;
    struct error err;

    place_init(&place);
    place_init(&other);
    buf_init(&key, X509_PEM_BYTES_MAX);
    start(&place, "", clock_wall_ms());
    start(&other, "", clock_wall_ms());
    assert_ok(server_file_read(scratch_path(&other.scratch, "tls/ca.key"), &key, &err), &err);
    put(&place, "tls/ca.pem", buf_slice(&other.authority));
    put(&place, "tls/ca.key", buf_slice(&key));
    start_again(&place, "", clock_wall_ms(), &other_authority, &other_server);
    assert_true(other_server);
    assert_slice_equal(buf_slice(&place.authority), buf_slice(&other.authority));
}

static void private_keys_are_their_owners_alone(void **state UNUSED)
{
    static const char *const names[] = {"tls/ca.key", "tls/server.pem"};
    CLEANUP(place_done) struct place place;
    struct stat status;
    struct error err;

    place_init(&place);
    start(&place, "", clock_wall_ms());
    assert_int_equal(stat(scratch_path(&place.scratch, "tls"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *path = scratch_path(&place.scratch, names[i]);

        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        assert_int_equal(chmod(path, 0640), 0);
        assert_fails(try_start(&place, "", clock_wall_ms(), &err), &err, ERROR_CONFIGURATION);
        assert_contains(err.message, names[i]);
        assert_int_equal(chmod(scratch_path(&place.scratch, names[i]), 0600), 0);
    }
}

static void a_crash_between_two_files_is_mended(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;

    place_init(&place);
    start(&place, "", clock_wall_ms());
    assert_int_equal(unlink(scratch_path(&place.scratch, "tls/ca.pem")), 0);
    start(&place, "", clock_wall_ms());
    assert_int_equal(unlink(scratch_path(&place.scratch, "tls/server.pem")), 0);
    start(&place, "", clock_wall_ms());
}

static void an_authority_without_its_key_is_refused(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;
    struct error err;

    place_init(&place);
    start(&place, "", clock_wall_ms());
    assert_int_equal(unlink(scratch_path(&place.scratch, "tls/ca.key")), 0);
    assert_fails(try_start(&place, "", clock_wall_ms(), &err), &err, ERROR_CERTIFICATE);
    assert_contains(err.message, "ca.key");
}

static void a_broken_file_is_refused_and_kept(void **state UNUSED)
{
    static const char *const names[] = {"tls/server.pem", "tls/ca.pem"};
    CLEANUP(place_done) struct place place;
    CLEANUP(buf_done) struct buf text;
    struct error err;

    place_init(&place);
    buf_init(&text, X509_PEM_BYTES_MAX);
    start(&place, "", clock_wall_ms());
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        put(&place, names[i], SLICE("nonsense"));
        assert_fails(try_start(&place, "", clock_wall_ms(), &err), &err, ERROR_CERTIFICATE);
        buf_clear(&text);
        assert_ok(server_file_read(scratch_path(&place.scratch, names[i]), &text, &err), &err);
        assert_slice_equal(buf_slice(&text), SLICE("nonsense"));
    }
}

/* A certificate as servers made them before there was an authority. */
static void former_make(const struct place *place)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x509 = X509_new();
    X509_NAME *name = X509_get_subject_name(x509);
    BIO *bio = BIO_new(BIO_s_mem());
    X509_EXTENSION *extension =
        X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:FALSE");
    char *data;
    long len;

    X509_set_version(x509, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), 0);
    X509_gmtime_adj(X509_getm_notAfter(x509), 86400);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)"localhost", -1, -1, 0);
    X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const uint8_t *)"Orrery", -1, -1, 0);
    X509_set_issuer_name(x509, name);
    X509_set_pubkey(x509, key);
    X509_add_ext(x509, extension, -1);
    assert_true(X509_sign(x509, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509(bio, x509), 1);
    len = BIO_get_mem_data(bio, &data);
    put(place, "tls/certificate.pem", slice_of(data, (size_t)len));
    put(place, "tls/key.pem", SLICE("whatever"));
    BIO_free_all(bio);
    X509_EXTENSION_free(extension);
    X509_free(x509);
    EVP_PKEY_free(key);
}

static void a_self_signed_pair_of_before_is_replaced(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;
    struct error err;

    place_init(&place);
    assert_ok(server_file_make_directory(scratch_path(&place.scratch, "tls"), &err), &err);
    former_make(&place);
    start(&place, "", clock_wall_ms());
    assert_int_not_equal(access(scratch_path(&place.scratch, "tls/certificate.pem"), F_OK), 0);
    assert_int_not_equal(access(scratch_path(&place.scratch, "tls/key.pem"), F_OK), 0);
}

static void a_pair_of_somebody_else_is_left_alone(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;
    struct error err;

    place_init(&place);
    assert_ok(server_file_make_directory(scratch_path(&place.scratch, "tls"), &err), &err);
    put(&place, "tls/certificate.pem", SLICE("mine"));
    start(&place, "", clock_wall_ms());
    assert_int_equal(access(scratch_path(&place.scratch, "tls/certificate.pem"), F_OK), 0);
}

static void in_memory_the_authority_lives_as_long_as_the_server(void **state UNUSED)
{
    const struct certificate_source source = {"", "", "", "", NULL};
    CLEANUP(certificate_free) struct certificate *certificate = NULL;
    CLEANUP(buf_done) struct buf first;
    CLEANUP(buf_done) struct buf second;
    struct error err;

    buf_init(&first, X509_PEM_BYTES_MAX);
    buf_init(&second, X509_PEM_BYTES_MAX);
    assert_ok(certificate_new(&source, &certificate, &err), &err);
    for (int i = 0; i < 2; i++) {
        CLEANUP(net_tls_context_unref) struct net_tls_context *context = NULL;

        assert_ok(certificate_load(certificate, NULL, clock_wall_ms(), &context, &err), &err);
        assert_true(certificate_authority(certificate, i ? &second : &first));
    }
    assert_true(first.len > 0);
    assert_slice_equal(buf_slice(&second), buf_slice(&first));
}

static void settings_that_contradict_are_refused(void **state UNUSED)
{
    static const struct {
        const char *certificate, *key, *names, *message;
    } cases[] = {{"c.pem", "", "", "tls.key is not set"},
                 {"", "k.pem", "", "tls.certificate is not set"},
                 {"", "", "a b", "neither a host name"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct certificate_source source = {cases[i].certificate, cases[i].key,
                                                  cases[i].names, "", NULL};
        CLEANUP(certificate_free) struct certificate *certificate = NULL;
        struct error err;

        assert_fails(certificate_new(&source, &certificate, &err), &err, ERROR_CONFIGURATION);
        assert_contains(err.message, cases[i].message);
    }
}

static void the_operators_certificate_has_no_authority_of_ours(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;
    CLEANUP(certificate_free) struct certificate *certificate = NULL;
    CLEANUP(net_tls_context_unref) struct net_tls_context *context = NULL;
    CLEANUP(buf_done) struct buf text;
    struct certificate_source source = {"", "", "", "", NULL};
    struct error err;

    place_init(&place);
    buf_init(&text, X509_PEM_BYTES_MAX);
    start(&place, "", clock_wall_ms());
    source.certificate_path = source.key_path = scratch_path(&place.scratch, "tls/server.pem");
    assert_ok(certificate_new(&source, &certificate, &err), &err);
    assert_ok(certificate_load(certificate, NULL, clock_wall_ms(), &context, &err), &err);
    assert_false(certificate_authority(certificate, &text));
    assert_int_equal(text.len, 0);
}

static void inspection_hands_out_no_key(void **state UNUSED)
{
    CLEANUP(place_done) struct place place;
    CLEANUP(arena_free) struct arena *arena = arena_new();
    CLEANUP(buf_done) struct buf authority;
    CLEANUP(buf_done) struct buf server;
    struct error err;

    place_init(&place);
    buf_init(&authority, X509_PEM_BYTES_MAX);
    buf_init(&server, X509_PEM_BYTES_MAX);
    assert_fails(certificate_inspect(place.scratch.path, &authority, &server, &err), &err,
                 ERROR_CERTIFICATE);
    start(&place, "", clock_wall_ms());
    assert_ok(certificate_inspect(place.scratch.path, &authority, &server, &err), &err);
    assert_slice_equal(buf_slice(&authority), buf_slice(&place.authority));
    assert_true(slice_starts_with(buf_slice(&server), SLICE("-----BEGIN CERTIFICATE-----")));
    assert_null(strstr(arena_text(arena, buf_slice(&server)), "PRIVATE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_authority_stays_when_the_certificate_nears_its_end),
        cmocka_unit_test(other_names_make_another_certificate),
        cmocka_unit_test(an_authority_at_its_end_is_followed_by_another),
        cmocka_unit_test(an_authority_put_there_by_others_signs),
        cmocka_unit_test(private_keys_are_their_owners_alone),
        cmocka_unit_test(a_crash_between_two_files_is_mended),
        cmocka_unit_test(an_authority_without_its_key_is_refused),
        cmocka_unit_test(a_broken_file_is_refused_and_kept),
        cmocka_unit_test(a_self_signed_pair_of_before_is_replaced),
        cmocka_unit_test(a_pair_of_somebody_else_is_left_alone),
        cmocka_unit_test(in_memory_the_authority_lives_as_long_as_the_server),
        cmocka_unit_test(settings_that_contradict_are_refused),
        cmocka_unit_test(the_operators_certificate_has_no_authority_of_ours),
        cmocka_unit_test(inspection_hands_out_no_key),
    };
    return cmocka_run_group_tests_name("server/certificate", tests, NULL, NULL);
}
