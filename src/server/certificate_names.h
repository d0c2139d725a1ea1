/* Certificate names: the hosts the server's own certificate is good for.
 *
 * Always localhost, *.localhost, 127.0.0.1 and ::1, the name of the machine where it is a host
 * name, every account below the suffix of account.host_suffix, and what the setting tls.names adds:
 * host names, of which the first label may be a wildcard, and addresses. Names are kept in small
 * letters, each once, in this order. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

enum {
    CERTIFICATE_NAMES_MAX = 128,      /* of all kinds together */
    CERTIFICATE_NAME_BYTES_MAX = 253, /* of a host name, as DNS has it */
};

struct certificate_name {
    struct slice text;   /* as written, in small letters */
    size_t address_len;  /* 4 or 16; 0: a host name */
    uint8_t address[16]; /* in network order */
};

struct certificate_names {
    size_t count;
    struct certificate_name list[CERTIFICATE_NAMES_MAX];
};

/* What the names are made of; each may be empty. */
struct certificate_names_source {
    struct slice host;           /* the machine's; left out when it is no host name */
    struct slice account_suffix; /* *.SUFFIX */
    struct slice extra;          /* separated by commas */
};

/* The texts live in arena. ERROR_CONFIGURATION: an extra name is neither a host name nor an
 * address, the suffix is no host name, or there are too many. */
NODISCARD bool certificate_names_make(const struct certificate_names_source *source,
                                      struct arena *arena, struct certificate_names *ret_names,
                                      struct error *err);
