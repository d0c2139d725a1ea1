/* The file is text, one key a line, so that a person can read and a later version extend it:
 *
 *     primary <88 characters of base64>
 */
#include "server/keys.h"

#include "base/buf.h"
#include "base/random.h"
#include "server/file.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>

enum { FILE_BYTES_MAX = 16 * 1024 };

static const char line_name[] = "primary ";

const char keys_emulator[KEYS_TEXT_SIZE] =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

static void key_make(char ret_text[KEYS_TEXT_SIZE])
{
    uint8_t secret[KEYS_SECRET_BYTES];

    random_secret(secret, sizeof secret);
    EVP_EncodeBlock((unsigned char *)ret_text, secret, sizeof secret);
    OPENSSL_cleanse(secret, sizeof secret);
}

static bool key_valid(struct slice text)
{
    uint8_t decoded[KEYS_TEXT_SIZE];

    return text.len == KEYS_TEXT_SIZE - 1 &&
           EVP_DecodeBlock(decoded, text.data, (int)text.len) == KEYS_SECRET_BYTES + 2;
}

static bool file_parse(struct slice text, struct keys *keys, struct error *err)
{
    struct slice line, rest;

    if (!slice_split(text, '\n', &line, &rest) ||
        !slice_starts_with(line, slice_of_text(line_name)) ||
        !key_valid(slice_skip(line, strlen(line_name))))
        return error_set(err, ERROR_CONFIGURATION,
                         "file \"%s\" holds no key: remove it to have a new one made", keys->path);
    line = slice_skip(line, strlen(line_name));
    memcpy(keys->primary, line.data, line.len);
    keys->primary[line.len] = '\0';
    return true;
}

static bool file_make(struct keys *keys, struct error *err)
{
    char text[sizeof line_name + KEYS_TEXT_SIZE + 1];

    key_make(keys->primary);
    snprintf(text, sizeof text, "%s%s\n", line_name, keys->primary);
    return server_file_write_private(keys->path, slice_of_text(text), err);
}

bool keys_load(const char *directory, struct keys *ret_keys, struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    struct keys keys = {0};
    struct stat status;
    int length;

    buf_init(&text, FILE_BYTES_MAX);
    if (!directory) {
        key_make(ret_keys->primary);
        ret_keys->path[0] = '\0';
        return true;
    }
    length = snprintf(keys.path, sizeof keys.path, "%s/keys", directory);
    if (length < 0 || (size_t)length >= sizeof keys.path)
        return error_set(err, ERROR_CONFIGURATION,
                         "the path of directory \"%.80s...\" is longer than %zu bytes", directory,
                         sizeof keys.path - 6);
    if (stat(keys.path, &status) != 0) {
        if (errno != ENOENT)
            return error_set_errno(err, ERROR_SYSTEM, "file \"%s\"", keys.path);
        if (!file_make(&keys, err))
            return false;
    } else if (status.st_mode & 077) {
        return error_set(err, ERROR_CONFIGURATION,
                         "file \"%s\" may be read by others than its owner: chmod 600 it, and "
                         "consider the key known",
                         keys.path);
    } else if (!server_file_read(keys.path, &text, err) ||
               !file_parse(buf_slice(&text), &keys, err)) {
        return false;
    }
    *ret_keys = keys;
    return true;
}
