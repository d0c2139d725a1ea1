/* Identity: as whom a connection, or a request over HTTP, has come in, and to which graph.
 *
 * The user is /dbs/D/colls/G, which also names the graph; the password is a key of the account or a
 * resource token. The account is that of the host. With --dev whoever comes over loopback need not
 * say who it is. What was shown is looked at again with every request: a key may have been replaced
 * since, a token's time be over. */
#pragma once

#include "front/gremlin/command/front.h"
#include "front/kit/token.h"

enum {
    GREMLIN_NAME_SIZE = 256, /* of a database or graph, with a NUL */
    GREMLIN_TOKEN_SIZE = 256,
    GREMLIN_ACCOUNT_SIZE = 64,
};

enum gremlin_identity_kind {
    GREMLIN_STRANGER,
    GREMLIN_LOCAL, /* need not say who it is */
    GREMLIN_KEY,
    GREMLIN_TOKEN,
    GREMLIN_SIGNED, /* the request itself is signed */
};

/* A plain value, to be cleansed. */
struct gremlin_identity {
    enum gremlin_identity_kind kind;
    char account[GREMLIN_ACCOUNT_SIZE]; /* as it is stored */
    char database[GREMLIN_NAME_SIZE];   /* "": none was named */
    char graph[GREMLIN_NAME_SIZE];
    struct front_key key;
    bool readonly;                  /* signed with a key that may only read */
    char token[GREMLIN_TOKEN_SIZE]; /* what stands behind "sig=" */
};

/* User and password as SASL PLAIN has them: base64 of [authzid] NUL user NUL password; and as HTTP
 * Basic: base64 of user:password. In the arena. ERROR_UNAUTHORIZED. */
struct gremlin_credentials {
    struct slice user, password;
};
NODISCARD bool gremlin_credentials_sasl(struct slice base64, struct arena *arena,
                                        struct gremlin_credentials *ret_credentials,
                                        struct error *err);
NODISCARD bool gremlin_credentials_basic(struct slice header, struct arena *arena,
                                         struct gremlin_credentials *ret_credentials,
                                         struct error *err);

/* Who that is, in the account of that name; blocks. ERROR_UNAUTHORIZED, which never says which part
 * was wrong. */
NODISCARD bool gremlin_identity_prove(const struct gremlin *gremlin, const char *account,
                                      const struct gremlin_credentials *credentials,
                                      struct arena *arena, struct gremlin_identity *ret_identity,
                                      struct error *err);

/* What it may do with a container now. */
struct gremlin_right {
    bool readonly;
    bool alone;                /* of a token: other containers are not read */
    bool bound;                /* to one partition key: */
    struct partition_key only; /* in the arena */
};

/* Looks whether the identity still holds, and what it opens; blocks. ERROR_UNAUTHORIZED: its key is
 * none any more; ERROR_FORBIDDEN: a token has stopped working, or is for something else. */
NODISCARD bool gremlin_identity_check(const struct gremlin_identity *identity,
                                      const struct front_call *call,
                                      const struct container *container,
                                      struct gremlin_right *ret_right, struct error *err);
