/* Authorisation over HTTP: who has signed, and with which of an account's keys.
 *
 * Secrets are compared in constant time; an error never says more than the text that was signed. */
#pragma once

#include "front/kit/gateway.h"
#include "front/kit/path.h"

/* --- What every API over HTTP needs ---------------------------------------------------------- */

/* A text that is signed, one of several that a good signature may be of. */
struct front_signed {
    const struct slice *parts;
    size_t count;
};

/* Whether one of the texts was signed with one of the keys that count here: the account's, and with
 * --dev the public keys, up to a NULL. sig: base64. *ret_readonly: with a key that may only read.
 */
bool front_signature_check(const struct front_http_call *call, const char *const *public_keys,
                           struct slice sig, const struct front_signed *texts, size_t count,
                           bool *ret_readonly);

enum front_date_state { FRONT_DATE_GOOD, FRONT_DATE_MISSING, FRONT_DATE_OFF };

/* What is to be said of the date a request was signed with: it may be 15 minutes off. */
enum front_date_state front_date_judge(const struct front_http_call *call, struct slice date);

/* A directory (Entra) token, as front/directory_token.h takes them. NULL: it is good. */
const char *front_directory_refused(const struct front_http_call *call,
                                    const char *const *public_keys, struct slice text,
                                    bool *ret_readonly);

/* --- REST and administration ----------------------------------------------------------------- */

/* The authorization header taken apart; the slices are borrowed or in the arena. */
struct front_authorization {
    struct slice type, version, sig;
};

/* Reads "type=master&ver=1.0&sig=...", URL-encoded or not. False: it is none. */
NODISCARD bool front_authorization_parse(struct slice header, struct arena *arena,
                                         struct front_authorization *ret_authorization);

/* What is to be signed: verb, type, link and date. */
struct front_signing {
    struct slice header;        /* authorization */
    struct slice ms_date, date; /* x-ms-date, and what stands in for it; data NULL: absent */
    struct slice type;          /* of the resource: "docs" */
    struct slice other_type;    /* that some clients sign instead; data NULL: none */
    struct slice link;          /* decoded */
    struct slice link_raw;      /* as sent */
    bool by_rid;                /* the last segment is a _rid, whatever it looks like */
};

enum front_signer {
    FRONT_SIGNER_OWNER,  /* a read-write key */
    FRONT_SIGNER_READER, /* a read-only key */
    FRONT_SIGNER_TOKEN,  /* a resource token, which is not judged here: *ret_token */
};

/* Who asks. ERROR_UNAUTHORIZED: no valid signature; ERROR_FORBIDDEN: out of its time. */
NODISCARD bool front_authorize(struct front_gateway_call *call, const struct front_signing *signing,
                               enum front_signer *ret_signer, struct slice *ret_token,
                               struct error *err);

/* The same of a path below /_orrery/: of type "_orrery", its link what stands behind that. It needs
 * a key: who has a resource token is told so. *ret_readonly: a key that may only read. right: what
 * would be needed, for that message. */
NODISCARD bool front_authorize_order(struct front_gateway_call *call, const struct front_path *path,
                                     const char *right, bool *ret_readonly, struct error *err);
