/* Client: asks a server for the commands that need one: its administration (docs/admin.md) and the
 * NoSQL API.
 *
 * One connection, http or https, kept from request to request; blocking with a deadline.
 * Certificates are checked against the system's and against the file given with --ca, else the
 * authority the server keeps beside its data. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <getopt.h>

/* What the options and the environment say. Texts are borrowed. */
struct cli_client_options {
    const char *endpoint;  /* --endpoint, ORRERY_ENDPOINT */
    const char *account;   /* --account */
    const char *key_file;  /* --key-file */
    const char *directory; /* --directory */
    const char *ca;        /* --ca */
    bool dev;              /* --dev, ORRERY_DEV=true */
    const char *profile;   /* --profile, ORRERY_PROFILE (cli/profile.h) */
    bool json;             /* --format json, --json: the answer as it came, instead of a table */
};

enum {
    CLI_CLIENT_OPTION = 2000,
    CLI_CLIENT_OPTION_FORMAT = CLI_CLIENT_OPTION + 7, /* the shell knows more of them */
    CLI_CLIENT_OPTION_PROFILE,
};

/* Rows for getopt_long, to stand first in a command's own table; and what --help says of them. */
#define CLI_CLIENT_OPTION_ROWS                                                                     \
    {"endpoint", required_argument, NULL, CLI_CLIENT_OPTION},                                      \
        {"account", required_argument, NULL, CLI_CLIENT_OPTION + 1},                               \
        {"key-file", required_argument, NULL, CLI_CLIENT_OPTION + 2},                              \
        {"directory", required_argument, NULL, CLI_CLIENT_OPTION + 3},                             \
        {"ca", required_argument, NULL, CLI_CLIENT_OPTION + 4},                                    \
        {"dev", no_argument, NULL, CLI_CLIENT_OPTION + 5},                                         \
        {"json", no_argument, NULL, CLI_CLIENT_OPTION + 6},                                        \
        {"profile", required_argument, NULL, CLI_CLIENT_OPTION_PROFILE},                           \
    {                                                                                              \
        "format", required_argument, NULL, CLI_CLIENT_OPTION_FORMAT                                \
    }
void cli_client_help(void);

/* The value of --format: table or json. False after a message: it is another. */
NODISCARD bool cli_format_take(const char *value, bool *ret_json);

/* Takes one of those options. False: it is none of them, or after a message its value is wrong. */
NODISCARD bool cli_client_take(struct cli_client_options *options, int option, const char *value);

struct cli_client; /* opaque, owned */

/* Finds out where the server is and which key opens it; nothing is sent yet. An error says what to
 * give. */
NODISCARD bool cli_client_new(const struct cli_client_options *given,
                              struct cli_client **ret_client, struct error *err);
void cli_client_free(struct cli_client *client); /* NULL is fine; cleanses the key */
CLEANUP_FN(struct cli_client *, cli_client_free)

/* As soon as this descriptor can be read, a request that waits for its answer ends with
 * ERROR_CANCELLED, and the server sees the client go. -1: nothing does, as at the start. */
void cli_client_cancel_by(struct cli_client *client, int descriptor);

struct cli_request {
    const char *method;
    struct slice type; /* of the resource, as it is signed: "docs" */
    struct slice link; /* "dbs/shop/colls/orders", names as they are: percent-encoded here */
    bool feed;         /* the path goes on with the type: .../docs */
    struct slice query;
    const char *content_type; /* of the body; NULL: application/json */
    struct slice lines;       /* headers besides: "name: value\r\n" for each */
    struct slice body;        /* data NULL: none */
    bool bytes;               /* a good answer is no JSON: it has no document */
};

struct cli_answer {
    unsigned status;
    struct slice head;     /* status line and headers */
    struct slice text;     /* the body */
    struct slice document; /* the same as BSON, object or array; data NULL: there is no body */
};

/* Any answer is one, whatever its status. ERROR_SYSTEM and others: there is none. */
NODISCARD bool cli_client_send(struct cli_client *client, const struct cli_request *request,
                               struct arena *arena, struct cli_answer *ret_answer,
                               struct error *err);

/* Makes an answer of 400 and above an error with the server's words. Returns false. */
bool cli_answer_refused(const struct cli_answer *answer, struct error *err);

/* The value of a header; empty: there is none. */
struct slice cli_answer_header(const struct cli_answer *answer, const char *name);

/* GET, POST or DELETE of "/_orrery/" + path, which is percent-encoded here but for its slashes;
 * query ("minutes=5") and body (JSON) may be absent. An answer of 400 and above is an error with
 * the server's words. */
NODISCARD bool cli_client_ask(struct cli_client *client, const char *method, struct slice path,
                              struct slice query, struct slice body, struct arena *arena,
                              struct cli_answer *ret_answer, struct error *err);

/* A text, a number, an object or array in an answer; "", 0 and an empty one where there is none. */
struct slice cli_answer_text(struct slice document, const char *name);
double cli_answer_number(struct slice document, const char *name);
struct slice cli_answer_inside(struct slice document, const char *name);

/* The partition key of an entry as JSON, or its bytes in hex where they are no whole key; in the
 * arena. */
struct slice cli_answer_key(struct slice entry, struct arena *arena);

/* A number as headers have it, "2.83"; 0 for what is none. */
double cli_decimal(struct slice text);

/* "http://127.0.0.1:8081/tenant/": where the clients of an account connect. */
struct slice cli_client_endpoint(const struct cli_client *client, struct slice account,
                                 struct arena *arena);
