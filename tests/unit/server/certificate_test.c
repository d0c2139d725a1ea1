#include "server/certificate.h"

#include "base/buf.h"
#include "base/clock.h"
#include "server/file.h"
#include "support/check.h"
#include "support/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

static const int64_t day_ms = 24LL * 3600 * 1000;

static struct certificate_source kept_in(const struct scratch *scratch)
{
    return (struct certificate_source){
        .certificate_path = "", .key_path = "", .directory = scratch->path};
}

/* Loads as the server does at that time, and returns the certificate file's text in text. */
static void load(const struct scratch *scratch, int64_t now_ms, struct buf *text)
{
    const struct certificate_source source = kept_in(scratch);
    CLEANUP(net_tls_context_unref) struct net_tls_context *context = NULL;
    struct error err;

    assert_ok(certificate_load(&source, now_ms, &context, &err), &err);
    buf_clear(text);
    assert_ok(server_file_read(scratch_path(scratch, "tls/certificate.pem"), text, &err), &err);
}

static void a_directory_keeps_its_certificate_until_it_nears_its_end(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    CLEANUP(buf_done) struct buf first;
    CLEANUP(buf_done) struct buf later;
    int64_t now_ms = clock_wall_ms();

    scratch_init(&scratch);
    buf_init(&first, CERTIFICATE_PEM_MAX);
    buf_init(&later, CERTIFICATE_PEM_MAX);
    load(&scratch, now_ms, &first);
    load(&scratch, now_ms + 700 * day_ms, &later);
    assert_slice_equal(buf_slice(&later), buf_slice(&first));
    load(&scratch, now_ms + 800 * day_ms, &later);
    assert_false(slice_equal(buf_slice(&later), buf_slice(&first)));
}

static void the_private_key_is_its_owners_alone(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    CLEANUP(buf_done) struct buf text;
    struct stat status;

    scratch_init(&scratch);
    buf_init(&text, CERTIFICATE_PEM_MAX);
    load(&scratch, clock_wall_ms(), &text);
    assert_int_equal(stat(scratch_path(&scratch, "tls/key.pem"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(stat(scratch_path(&scratch, "tls"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
}

static void a_crash_between_the_two_files_is_mended(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    CLEANUP(buf_done) struct buf text;

    scratch_init(&scratch);
    buf_init(&text, CERTIFICATE_PEM_MAX);
    load(&scratch, clock_wall_ms(), &text);
    assert_int_equal(unlink(scratch_path(&scratch, "tls/certificate.pem")), 0);
    load(&scratch, clock_wall_ms(), &text);
}

static void a_broken_certificate_is_refused_and_kept(void **state UNUSED)
{
    CLEANUP(scratch_done) struct scratch scratch;
    CLEANUP(buf_done) struct buf text;
    CLEANUP(net_tls_context_unref) struct net_tls_context *context = NULL;
    struct certificate_source source;
    struct error err;

    scratch_init(&scratch);
    buf_init(&text, CERTIFICATE_PEM_MAX);
    load(&scratch, clock_wall_ms(), &text);
    assert_ok(server_file_write_private(scratch_path(&scratch, "tls/certificate.pem"),
                                        SLICE("nonsense"), &err),
              &err);
    source = kept_in(&scratch);
    assert_fails(certificate_load(&source, clock_wall_ms(), &context, &err), &err,
                 ERROR_CERTIFICATE);
    assert_contains(err.message, "certificate.pem");
    buf_clear(&text);
    assert_ok(server_file_read(scratch_path(&scratch, "tls/certificate.pem"), &text, &err), &err);
    assert_slice_equal(buf_slice(&text), SLICE("nonsense"));
}

static void one_file_without_the_other_is_refused(void **state UNUSED)
{
    static const struct {
        const char *certificate, *key, *missing;
    } cases[] = {{"c.pem", "", "tls.key is not set"}, {"", "k.pem", "tls.certificate is not set"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct certificate_source source = {cases[i].certificate, cases[i].key, NULL};
        CLEANUP(net_tls_context_unref) struct net_tls_context *context = NULL;
        struct error err;

        assert_fails(certificate_load(&source, clock_wall_ms(), &context, &err), &err,
                     ERROR_CONFIGURATION);
        assert_contains(err.message, cases[i].missing);
    }
}

static void a_key_of_another_certificate_is_refused(void **state UNUSED)
{
    CLEANUP(buf_done) struct buf certificate;
    CLEANUP(buf_done) struct buf key;
    CLEANUP(buf_done) struct buf other;
    CLEANUP(net_tls_context_unref) struct net_tls_context *context = NULL;
    struct error err;

    buf_init(&certificate, CERTIFICATE_PEM_MAX);
    buf_init(&key, CERTIFICATE_PEM_MAX);
    buf_init(&other, CERTIFICATE_PEM_MAX);
    assert_ok(certificate_make(clock_wall_ms(), &certificate, &key, &err), &err);
    buf_clear(&certificate);
    assert_ok(certificate_make(clock_wall_ms(), &certificate, &other, &err), &err);
    assert_fails(net_tls_context_new_pem(buf_slice(&certificate), buf_slice(&key), &context, &err),
                 &err, ERROR_CERTIFICATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_keeps_its_certificate_until_it_nears_its_end),
        cmocka_unit_test(the_private_key_is_its_owners_alone),
        cmocka_unit_test(a_crash_between_the_two_files_is_mended),
        cmocka_unit_test(a_broken_certificate_is_refused_and_kept),
        cmocka_unit_test(one_file_without_the_other_is_refused),
        cmocka_unit_test(a_key_of_another_certificate_is_refused),
    };
    return cmocka_run_group_tests_name("server/certificate", tests, NULL, NULL);
}
