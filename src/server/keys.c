/* The file is text, so that a person can read it:
 *
 *     primary <88 characters of base64>
 *     secondary <88 characters of base64>
 *     primary-readonly <88 characters of base64>
 *     secondary-readonly <88 characters of base64>
 *
 * It is only ever read where the catalogue has no keys yet. At first it had the line of the primary
 * key alone, and was the only place where that was kept. */
#include "server/keys.h"

#include "base/random.h"
#include "document/bson.h"
#include "server/file.h"
#include "server/store.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 16 * 1024 };

/* A buffer that holds keys. */
static void secret_done(struct buf *buf)
{
    if (buf->len)
        OPENSSL_cleanse(buf->data, buf->len);
    buf_done(buf);
}
CLEANUP_VALUE_FN(struct buf, secret_done)

/* --- The file -------------------------------------------------------------------------------- */

static bool path_make(const char *directory, struct keys *keys, struct error *err)
{
    int length = snprintf(keys->path, sizeof keys->path, "%s/keys", directory);

    if (length < 0 || (size_t)length >= sizeof keys->path)
        return error_set(err, ERROR_CONFIGURATION,
                         "the path of directory \"%.80s...\" is longer than %zu bytes", directory,
                         sizeof keys->path - 6);
    return true;
}

/* Is there a file, and may only its owner read it? */
static bool file_look(const char *path, bool *ret_there, struct error *err)
{
    struct stat status;

    *ret_there = stat(path, &status) == 0;
    if (!*ret_there)
        return errno == ENOENT || error_set_errno(err, ERROR_SYSTEM, "file \"%s\"", path);
    if (status.st_mode & 077)
        return error_set(err, ERROR_CONFIGURATION,
                         "file \"%s\" may be read by others than its owner: chmod 600 it, and "
                         "consider the keys known",
                         path);
    return true;
}

/* One line; *named remembers which keys there were. */
static bool line_parse(struct slice line, struct account_keys *keys, unsigned *named)
{
    struct slice name, text;
    enum account_key which;

    if (!slice_split(line, ' ', &name, &text) || !account_key_named(name, &which) ||
        *named & 1u << which || !account_key_parse(text, keys->secrets[which]))
        return false;
    *named |= 1u << which;
    return true;
}

static bool file_parse(const char *path, struct slice text, struct account_keys *keys,
                       struct error *err)
{
    struct slice line;
    unsigned named = 0;
    bool good = true;

    while (good && text.len)
        good = slice_split(text, '\n', &line, &text) && line_parse(line, keys, &named);
    if (!good || !(named & 1u << ACCOUNT_KEY_PRIMARY))
        return error_set(err, ERROR_CONFIGURATION,
                         "file \"%s\" holds no keys: remove it to have new ones made", path);
    return true;
}

static bool file_read(const char *path, struct account_keys *keys, struct error *err)
{
    CLEANUP(secret_done) struct buf text;

    buf_init(&text, FILE_BYTES_MAX);
    return server_file_read(path, &text, err) && file_parse(path, buf_slice(&text), keys, err);
}

bool keys_write_file(const char *path, const struct account_keys *keys, struct error *err)
{
    CLEANUP(secret_done) struct buf text, present;
    char key[ACCOUNT_KEY_TEXT_SIZE];

    buf_init(&text, FILE_BYTES_MAX);
    buf_init(&present, FILE_BYTES_MAX);
    for (size_t i = 0; i < ACCOUNT_KEYS; i++) {
        account_key_format(keys->secrets[i], key);
        buf_printf(&text, "%s %s\n", account_key_name((enum account_key)i), key);
    }
    OPENSSL_cleanse(key, sizeof key);
    if (server_file_read(path, &present, err) && slice_equal(buf_slice(&present), buf_slice(&text)))
        return true;
    return server_file_write_private(path, buf_slice(&text), err);
}

/* --- The account ----------------------------------------------------------------------------- */

/* Gives the account, which may not exist, keys: those of the file as far as it has them. */
static bool account_key(struct catalogue *catalogue, const struct account *account,
                        const char *path, struct account **ret_account, struct error *err)
{
    CLEANUP(account_keys_done) struct account_keys keys;
    struct slice id = SLICE(CATALOGUE_ACCOUNT_DEFAULT);

    account_keys_make(&keys);
    if (path && !file_read(path, &keys, err))
        return false;
    if (account)
        return catalogue_account_set_keys(catalogue, id, &keys, ret_account, err);
    return catalogue_account_create_keyed(catalogue, id, SLICE_NONE, &keys, ret_account, err);
}

/* The default account, with keys. path: of a file that is there, else NULL. */
static bool account_settle(struct catalogue *catalogue, const char *path,
                           struct account **ret_account, bool *ret_made, struct error *err)
{
    CLEANUP(account_unref) struct account *account = NULL;

    if (!catalogue_account_open(catalogue, SLICE(CATALOGUE_ACCOUNT_DEFAULT), &account, err) &&
        err->code != ERROR_NOT_FOUND)
        return false;
    *ret_made = !account || !account_keys(account);
    if (*ret_made)
        return account_key(catalogue, account, path, ret_account, err);
    *ret_account = TAKE(account);
    return true;
}

/* The seal of the account's properties, made when there is none. */
static bool seal_settle(struct catalogue *catalogue, const struct account *account,
                        uint8_t ret_seal[KEYS_SEAL_BYTES], struct error *err)
{
    CLEANUP(account_unref) struct account *sealed = NULL;
    CLEANUP(secret_done) struct buf properties;
    struct document_value seal;
    size_t begin;

    buf_init(&properties, FILE_BYTES_MAX);
    if (account_properties(account).len &&
        document_find(account_properties(account), SLICE("seal"), &seal) &&
        seal.type == DOCUMENT_BINARY && seal.binary.bytes.len == KEYS_SEAL_BYTES) {
        memcpy(ret_seal, seal.binary.bytes.data, KEYS_SEAL_BYTES);
        return true;
    }
    random_secret(ret_seal, KEYS_SEAL_BYTES);
    seal = (struct document_value){.type = DOCUMENT_BINARY};
    seal.binary.bytes = slice_of(ret_seal, KEYS_SEAL_BYTES);
    begin = document_begin(&properties);
    document_append(&properties, SLICE("seal"), &seal);
    document_end(&properties, begin);
    return catalogue_account_replace(catalogue, SLICE(CATALOGUE_ACCOUNT_DEFAULT),
                                     buf_slice(&properties), &sealed, err);
}

bool keys_load(struct catalogue *catalogue, const char *directory, struct keys *ret_keys,
               struct error *err)
{
    CLEANUP(account_unref) struct account *account = NULL;
    struct keys keys = {0};
    bool there = false;

    if (directory && (!path_make(directory, &keys, err) || !file_look(keys.path, &there, err)))
        return false;
    if (!account_settle(catalogue, there ? keys.path : NULL, &account, &keys.made, err) ||
        !seal_settle(catalogue, account, keys.seal, err))
        return false;
    if (directory && !keys_write_file(keys.path, account_keys(account), err))
        return false;
    account_key_format(account_keys(account)->secrets[ACCOUNT_KEY_PRIMARY], keys.primary);
    *ret_keys = keys;
    OPENSSL_cleanse(&keys, sizeof keys);
    return true;
}

bool keys_read_stored(const struct settings *settings, struct slice account,
                      struct account_keys *ret_keys, struct error *err)
{
    CLEANUP(log_free) struct log *log = log_new(STDERR_FILENO, LOG_ERROR, LOG_FORMAT_AUTO);
    CLEANUP(nodes_close) struct nodes *nodes = NULL;
    CLEANUP(store_close) struct store *store = NULL;
    CLEANUP(account_unref) struct account *found = NULL;

    if (!nodes_open(settings, (struct engine_claim){0}, log, &nodes, err) ||
        !store_open(settings, nodes, NULL, log, &store, err) ||
        !catalogue_account_open(store_catalogue(store), account, &found, err))
        return false;
    if (!account_keys(found))
        return error_set(err, ERROR_NOT_FOUND, "account \"%.*s\" has no keys of its own",
                         (int)MIN(account.len, (size_t)64), (const char *)account.data);
    *ret_keys = *account_keys(found);
    return true;
}
