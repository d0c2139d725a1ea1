/* Resource: databases, containers and items as the commands for them reach them, through the NoSQL
 * API like any other client. */
#pragma once

#include "cli/asking.h"

/* What a command asks of one resource, or of a feed of them. */
struct cli_resource {
    const char *method;
    const char *type;   /* "colls" */
    struct slice link;  /* "dbs/shop/colls/orders" */
    bool feed;          /* the path goes on with the type */
    struct slice lines; /* headers besides */
    struct slice body;  /* data NULL: none */
};

/* One request. An answer of 400 and above is an error with the server's words. */
NODISCARD bool cli_resource_ask(struct cli_asking *asking, const struct cli_resource *resource,
                                struct cli_answer *ret_answer, struct error *err);

/* "dbs/NAME" of the word behind the verb, and "dbs/NAME/colls/NAME" of the two; in the arena. */
struct slice cli_resource_database(const struct cli_asking *asking);
struct slice cli_resource_container(const struct cli_asking *asking);

/* All of a feed, page by page. */
NODISCARD bool cli_resource_feed(struct cli_asking *asking, const struct cli_resource *resource,
                                 const char *array,
                                 void (*take)(void *context, struct slice resource), void *context,
                                 struct error *err);

/* A document for people: JSON over several lines; with --format json as it came. */
int cli_resource_show(const struct cli_asking *asking, const struct cli_answer *answer);

/* What a word on the command line stands for: JSON itself, "@FILE", or "-" for standard input; in
 * the arena. It must be a JSON object, or an array where that is said. */
NODISCARD bool cli_resource_json(const struct cli_asking *asking, const char *word, bool array,
                                 struct slice *ret_json, struct error *err);

/* --- Throughput ------------------------------------------------------------------------------ */

/* What --ru and --autoscale say; 0: they were not given. */
struct cli_offer {
    uint64_t ru;        /* manual RU/s */
    uint64_t autoscale; /* the most RU/s of autoscale */
};

enum { CLI_OFFER_OPTION_RU = 2100, CLI_OFFER_OPTION_AUTOSCALE };

#define CLI_OFFER_OPTION_ROWS                                                                      \
    {"ru", required_argument, NULL, CLI_OFFER_OPTION_RU},                                          \
    {                                                                                              \
        "autoscale", required_argument, NULL, CLI_OFFER_OPTION_AUTOSCALE                           \
    }

/* Takes one of the two. False after a message: it is no number of RU/s, or both were given. */
NODISCARD bool cli_offer_take(struct cli_offer *offer, int option, const char *value);

/* As headers of a creation; empty where nothing was said. */
struct slice cli_offer_lines(const struct cli_offer *offer, struct arena *arena);

/* Shows the throughput of the resource with this _rid; or sets it, where something was said. */
int cli_offer_run(struct cli_asking *asking, const struct cli_offer *offer, struct slice link,
                  const char *type);
