/* Asking: a command that puts a question to a server: its words and options, and the connection.
 * Most of them are of the form `orrery NOUN VERB WORD...`, each verb a row of a table. */
#pragma once

#include "base/buf.h"
#include "cli/client.h"

enum { CLI_ASKING_WORDS_MAX = 3 + 64 }; /* verb, database, container, partitions of a merge */

/* A command with more of its own has one of these as a member (CONTAINER_OF). */
struct cli_asking {
    struct cli_client_options options;
    bool no_wait; /* --no-wait, where the command has it */
    const char *words[CLI_ASKING_WORDS_MAX];
    int word_count;     /* the verb is the first */
    struct slice query; /* sent with every question; usually none */
    struct cli_client *client;
    struct arena *arena;
};

/* Asks the administration; --account of the command line is who asks. */
NODISCARD bool cli_asking_ask(struct cli_asking *asking, const char *method, struct slice path,
                              struct slice body, struct cli_answer *ret_answer, struct error *err);

/* "containers/DATABASE/CONTAINER" + rest, from the second and third word; in the arena. */
struct slice cli_asking_path(const struct cli_asking *asking, struct slice rest);

/* Appends a partition key as JSON: the word itself if it is an array, else an array of that text.
 */
void cli_asking_key(struct buf *json, const char *word);

/* The answer as it came, for --format json; {} where the server had nothing to say. */
int cli_asking_json(const struct cli_answer *answer);

/* What was done: a sentence, or with --format json the answer. */
int cli_asking_done(const struct cli_asking *asking, const struct cli_answer *answer,
                    const char *format, ...) PRINTF_LIKE(3, 4);

/* What came of it when there is no answer: the message, and the exit code. */
int cli_asking_failed(const struct error *err);

/* --- Verbs ----------------------------------------------------------------------------------- */

struct cli_verb {
    const char *name;
    int least, most; /* words behind it */
    const char *usage;
    int (*run)(struct cli_asking *asking);
    int (*own)(int argc, char **argv); /* instead: it has options of its own */
};

struct cli_verbs {
    const char *noun;
    const struct cli_verb *rows;
    size_t count;
    const struct option *options;
    bool (*take)(void *asking, int option, const char *value);
    void (*help)(void);
    /* Whether the options go with the verb, with a message if not. NULL: all do. */
    bool (*fits)(const struct cli_asking *asking, const struct cli_verb *verb);
};

/* Reads the command line, finds the verb, connects and runs it. Gives the exit code. */
int cli_verbs_run(const struct cli_verbs *verbs, struct cli_asking *asking, int argc, char **argv);
