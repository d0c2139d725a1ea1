/* `orrery partition VERB ...` from within: what its verbs share. Verbs of other files (heat.c) take
 * the same command and are rows of the table in partition.c. */
#pragma once

#include "cli/client.h"

enum { CLI_PARTITION_WORDS_MAX = 3 + 64 }; /* verb, database, container, partitions of a merge */

struct cli_partition {
    struct cli_client_options options;
    bool no_wait;       /* --no-wait */
    const char *pieces; /* --pieces; NULL: not given */
    const char *words[CLI_PARTITION_WORDS_MAX];
    int word_count; /* the verb is the first */
    struct cli_client *client;
    struct arena *arena;
};

/* "containers/DATABASE/CONTAINER" + rest, from the second and third word; in the arena. */
struct slice cli_partition_path(const struct cli_partition *command, struct slice rest);

/* Asks the administration; --account of the command line is who asks. */
NODISCARD bool cli_partition_ask(struct cli_partition *command, const char *method,
                                 struct slice path, struct slice body,
                                 struct cli_answer *ret_answer, struct error *err);

/* Follows the migration of the command's container to its end (partition_watch.c): a bar on a
 * terminal, else a line when the phase changes. id: which one, as administration names it. Gives
 * the exit code. */
int cli_partition_watch(struct cli_partition *command, struct slice id);
