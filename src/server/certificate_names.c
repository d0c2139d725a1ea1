#include "server/certificate_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>

enum { LABEL_BYTES_MAX = 63 };

static bool label_valid(struct slice label)
{
    if (label.len == 0 || label.len > LABEL_BYTES_MAX || label.data[0] == '-' ||
        label.data[label.len - 1] == '-')
        return false;
    for (size_t i = 0; i < label.len; i++) {
        uint8_t c = label.data[i];

        /* no host name has an underscore, but service names of container networks do */
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
            return false;
    }
    return true;
}

static bool all_digits(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
    return true;
}

/* A last label of digits alone would be an address written wrongly. */
static bool host_name_valid(struct slice name)
{
    struct slice label, rest = name;

    if (name.len > CERTIFICATE_NAME_BYTES_MAX)
        return false;
    if (slice_starts_with(rest, SLICE("*.")))
        rest = slice_skip(rest, 2);
    while (slice_split(rest, '.', &label, &rest))
        if (!label_valid(label))
            return false;
    return label_valid(rest) && !all_digits(rest);
}

static bool name_parse(struct slice text, struct arena *arena, struct certificate_name *ret_name)
{
    char *small = arena_text(arena, text);
    struct certificate_name name = {.text = slice_of(small, text.len)};

    for (size_t i = 0; i < text.len; i++)
        if (small[i] >= 'A' && small[i] <= 'Z')
            small[i] |= 0x20;
    if (inet_pton(AF_INET, small, name.address) == 1)
        name.address_len = sizeof(struct in_addr);
    else if (inet_pton(AF_INET6, small, name.address) == 1)
        name.address_len = sizeof(struct in6_addr);
    else if (!host_name_valid(name.text))
        return false;
    *ret_name = name;
    return true;
}

static bool names_equal(const struct certificate_name *a, const struct certificate_name *b)
{
    if (a->address_len != b->address_len)
        return false;
    if (a->address_len)
        return memcmp(a->address, b->address, a->address_len) == 0;
    return slice_equal(a->text, b->text);
}

/* False when there is no room; one that is there already needs none. */
static bool names_add(struct certificate_names *names, const struct certificate_name *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (names_equal(&names->list[i], name))
            return true;
    if (names->count == CERTIFICATE_NAMES_MAX)
        return false;
    names->list[names->count++] = *name;
    return true;
}

static bool extra_add(struct certificate_names *names, struct slice text, struct arena *arena,
                      struct error *err)
{
    struct certificate_name name;

    if (!name_parse(text, arena, &name))
        return error_set(err, ERROR_CONFIGURATION,
                         "tls.names: \"%.*s\" is neither a host name (a.example, *.example) nor an "
                         "address",
                         (int)MIN(text.len, (size_t)80), (const char *)text.data);
    if (!names_add(names, &name))
        return error_set(err, ERROR_CONFIGURATION,
                         "tls.names: a certificate is for at most %d names", CERTIFICATE_NAMES_MAX);
    return true;
}

static bool suffix_add(struct certificate_names *names, struct slice suffix, struct arena *arena,
                       struct error *err)
{
    struct certificate_name name;
    struct slice text = arena_printf(arena, "*.%.*s", SLICE_ARG(suffix));

    if (!name_parse(text, arena, &name) || !names_add(names, &name))
        return error_set(err, ERROR_CONFIGURATION, "account.host_suffix: \"%.*s\" is no host name",
                         (int)MIN(suffix.len, (size_t)80), (const char *)suffix.data);
    return true;
}

static bool extras_add(struct certificate_names *names, struct slice extra, struct arena *arena,
                       struct error *err)
{
    struct slice text;

    extra = slice_trim(extra);
    while (extra.len) {
        if (!slice_split(extra, ',', &text, &extra)) {
            text = extra;
            extra = SLICE_NONE;
        } else if (slice_trim(extra).len == 0) {
            return error_set(err, ERROR_CONFIGURATION, "tls.names ends in a comma");
        }
        if (!extra_add(names, slice_trim(text), arena, err))
            return false;
    }
    return true;
}

bool certificate_names_make(const struct certificate_names_source *source, struct arena *arena,
                            struct certificate_names *ret_names, struct error *err)
{
    static const char *const own[] = {"localhost", "*.localhost", "127.0.0.1", "::1"};
    struct certificate_name name;

    ret_names->count = 0;
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (name_parse(slice_of_text(own[i]), arena, &name))
            names_add(ret_names, &name);
    if (source->host.len && name_parse(source->host, arena, &name))
        names_add(ret_names, &name);
    if (source->account_suffix.len && !suffix_add(ret_names, source->account_suffix, arena, err))
        return false;
    return extras_add(ret_names, source->extra, arena, err);
}
