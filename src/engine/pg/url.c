/* Passwords occur in two places of a URL and are looked for as text, not by libpq's parser: a URL
 * libpq cannot parse is just the one that gets printed. */
#include "engine/pg/pg_private.h"

#include <ctype.h>

enum { SECRETS_MAX = 4 };

/* The password of the authority: between the first ':' and the last '@' before the path. */
static struct slice authority_secret(struct slice url)
{
    const uint8_t *start = memmem(url.data, url.len, "://", 3);
    const uint8_t *end = url.data + url.len, *at = NULL, *colon;

    if (!start)
        return SLICE_NONE;
    start += 3;
    for (const uint8_t *p = start; p < end && *p != '/' && *p != '?'; p++)
        if (*p == '@')
            at = p;
    if (!at)
        return SLICE_NONE;
    colon = memchr(start, ':', (size_t)(at - start));
    return colon ? slice_of(colon + 1, (size_t)(at - colon - 1)) : SLICE_NONE;
}

static bool parameter_is_secret(struct slice name)
{
    return slice_equal_nocase(name, SLICE("password")) ||
           slice_equal_nocase(name, SLICE("sslpassword"));
}

/* All secrets, in the order they occur. */
static size_t secrets_find(struct slice url, struct slice ret_secrets[SECRETS_MAX])
{
    struct slice parameter, query, name, value;
    size_t count = 0;

    ret_secrets[0] = authority_secret(url);
    if (ret_secrets[0].len)
        count++;
    if (!slice_split(url, '?', &parameter, &query))
        return count;
    while (query.len && count < SECRETS_MAX) {
        if (!slice_split(query, '&', &parameter, &query)) {
            parameter = query;
            query = slice_skip(query, query.len);
        }
        if (slice_split(parameter, '=', &name, &value) && value.len && parameter_is_secret(name))
            ret_secrets[count++] = value;
    }
    return count;
}

void pg_url_mask(struct slice url, struct buf *to)
{
    struct slice secrets[SECRETS_MAX];
    size_t count = secrets_find(url, secrets);
    const uint8_t *at = url.data;

    for (size_t i = 0; i < count; i++) {
        buf_append(to, at, (size_t)(secrets[i].data - at));
        BUF_APPEND(to, "***");
        at = secrets[i].data + secrets[i].len;
    }
    buf_append(to, at, (size_t)(url.data + url.len - at));
}

/* A secret as libpq knows it: percent signs decoded. */
static struct slice secret_decode(struct slice secret, struct buf *to)
{
    for (size_t i = 0; i < secret.len; i++) {
        unsigned value;
        char hex[3] = {0};

        if (secret.data[i] == '%' && i + 2 < secret.len && isxdigit(secret.data[i + 1]) &&
            isxdigit(secret.data[i + 2])) {
            memcpy(hex, secret.data + i + 1, 2);
            value = (unsigned)strtoul(hex, NULL, 16);
            buf_append_byte(to, (uint8_t)value);
            i += 2;
        } else {
            buf_append_byte(to, secret.data[i]);
        }
    }
    return buf_slice(to);
}

/* Removes it rather than putting *** in its place: there may be no room for that. */
static void secret_hide(char *line, struct slice secret)
{
    char *found;

    while (secret.len && (found = memmem(line, strlen(line), secret.data, secret.len)) != NULL)
        memmove(found, found + secret.len, strlen(found + secret.len) + 1);
}

void pg_url_scrub(struct slice url, const char *text, char *ret_line, size_t size)
{
    struct slice secrets[SECRETS_MAX];
    size_t count = url.len ? secrets_find(url, secrets) : 0, len = 0;
    CLEANUP(buf_done) struct buf decoded;

    /* Any run of white space becomes one blank. */
    for (; *text && len + 1 < size; text++) {
        bool blank = isspace((unsigned char)*text);

        if (!blank)
            ret_line[len++] = *text;
        else if (len && ret_line[len - 1] != ' ')
            ret_line[len++] = ' ';
    }
    while (len && (ret_line[len - 1] == ' ' || ret_line[len - 1] == '.'))
        len--;
    ret_line[len] = '\0';

    buf_init(&decoded, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < count; i++) {
        secret_hide(ret_line, secrets[i]);
        buf_clear(&decoded);
        secret_hide(ret_line, secret_decode(secrets[i], &decoded));
    }
}

/* --- Options of ours ------------------------------------------------------------------------- */

static bool option_set(struct slice name, struct slice value, bool *replicated, bool *ret_ours,
                       struct error *err)
{
    *ret_ours = slice_equal(name, SLICE("replicated"));
    if (!*ret_ours)
        return true;
    *replicated = slice_equal(value, SLICE("require"));
    return *replicated || slice_equal(value, SLICE("prefer")) ||
           error_set(err, ERROR_STORE_URL, "replicated is \"require\" or \"prefer\", not \"%.*s\"",
                     (int)MIN(value.len, (size_t)40), (const char *)value.data);
}

bool pg_url_options(struct slice url, struct buf *to, bool *ret_replicated, struct error *err)
{
    struct slice base, query, parameter, name, value;
    bool replicated = false, ours;
    char separator = '?';

    if (!slice_split(url, '?', &base, &query)) {
        base = url;
        query = SLICE_NONE;
    }
    buf_append_slice(to, base);
    while (query.len) {
        if (!slice_split(query, '&', &parameter, &query)) {
            parameter = query;
            query = SLICE_NONE;
        }
        if (!slice_split(parameter, '=', &name, &value)) {
            name = parameter;
            value = SLICE("");
        }
        if (!option_set(name, value, &replicated, &ours, err))
            return false;
        if (ours)
            continue;
        buf_append_byte(to, (uint8_t)separator);
        buf_append_slice(to, parameter);
        separator = '&';
    }
    *ret_replicated = replicated;
    return true;
}
