/* `orrery directory ...`: which virtual shard the keys of a container belong to. */
#include "cli/cli.h"
#include "cli/partition.h"
#include "cli/table.h"

#include "document/bson.h"
#include "document/json.h"

enum { OPTION_NO_WAIT = 'n', OPTION_DRY_RUN = 'y' };

void cli_directory_help(void)
{
    printf("Usage: orrery directory list DATABASE CONTAINER\n"
           "       orrery directory find DATABASE CONTAINER KEY\n"
           "       orrery directory set DATABASE CONTAINER KEY SHARD [KEY SHARD]...\n"
           "       orrery directory remove DATABASE CONTAINER KEY...\n"
           "\n"
           "The directory of a container whose strategy is lookup: which virtual shard a key\n"
           "belongs to. Setting or removing a line carries the items of that key to where they\n"
           "belong then, while clients go on working; several at once cost one copy. A removed\n"
           "key follows the container's rule for keys without a line. KEY is the first component\n"
           "of a partition key as JSON, '[\"tenant-7\"]' or '[5]', or for a text the text itself.\n"
           "The command waits until it is done; Ctrl-C leaves it to the server.\n"
           "\n"
           "Options:\n"
           "  --no-wait            return as soon as it has begun\n"
           "  --dry-run            set, remove: only say what would be\n");
    cli_client_help();
}

struct directory_command {
    struct cli_asking asking;
    bool dry_run; /* --dry-run */
};

static bool is_dry(struct cli_asking *command)
{
    return CONTAINER_OF(command, struct directory_command, asking)->dry_run;
}

static bool option_take(void *context, int option, const char *value)
{
    struct cli_asking *asking = context;

    if (option == OPTION_NO_WAIT)
        asking->no_wait = true;
    else if (option == OPTION_DRY_RUN)
        CONTAINER_OF(asking, struct directory_command, asking)->dry_run = true;
    else
        return cli_client_take(&asking->options, option, value);
    return true;
}

/* --- Looking --------------------------------------------------------------------------------- */

static int directory_list(struct cli_asking *command)
{
    static const char *const headings[] = {"KEY", ">SHARD", NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    struct document_iter iter;
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(command, "GET", cli_asking_path(command, SLICE("/directory")), SLICE_NONE,
                        &answer, &err))
        return cli_asking_failed(&err);
    if (command->options.json)
        return cli_asking_json(&answer);
    document_iter_init(&iter, cli_answer_inside(answer.document, "directory"));
    while (document_iter_next(&iter)) {
        CLEANUP(buf_done) struct buf text;
        struct document_value key;

        buf_init(&text, BUF_DEFAULT_MAX);
        if (iter.value.type != DOCUMENT_OBJECT ||
            !document_find(iter.value.document, SLICE("key"), &key))
            continue;
        document_json_write_value(&key, &text);
        cli_table_text(table, arena_copy(command->arena, buf_slice(&text)));
        cli_table_number(table, cli_answer_number(iter.value.document, "shard"), 0);
    }
    cli_table_print(table);
    return CLI_OK;
}

static int directory_find(struct cli_asking *command)
{
    CLEANUP(buf_done) struct buf key;
    struct document_value listed;
    struct cli_answer answer;
    struct error err;

    buf_init(&key, BUF_DEFAULT_MAX);
    BUF_APPEND(&key, "key=");
    {
        CLEANUP(buf_done) struct buf json;

        buf_init(&json, BUF_DEFAULT_MAX);
        cli_asking_key(&json, command->words[3]);
        for (size_t i = 0; i < json.len; i++)
            buf_printf(&key, "%%%02X", json.data[i]);
    }
    if (!cli_client_ask(command->client, "GET", cli_asking_path(command, SLICE("/directory")),
                        buf_slice(&key), SLICE_NONE, command->arena, &answer, &err))
        return cli_asking_failed(&err);
    if (command->options.json)
        return cli_asking_json(&answer);
    printf("shard %.0f%s\n", cli_answer_number(answer.document, "shard"),
           document_find(answer.document, SLICE("listed"), &listed) && listed.boolean
               ? ""
               : ", by the rule for keys without a line");
    return CLI_OK;
}

/* --- Editing --------------------------------------------------------------------------------- */

/* Which shard each key would leave, and which it would come to. */
static void keys_print(struct cli_asking *command, struct slice keys)
{
    static const char *const headings[] = {"KEY", ">SHARD", ">THEN", ">ITEMS", ">BYTES", NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    struct document_iter iter;

    document_iter_init(&iter, keys);
    while (document_iter_next(&iter)) {
        CLEANUP(buf_done) struct buf text;
        struct document_value key;

        buf_init(&text, BUF_DEFAULT_MAX);
        if (iter.value.type != DOCUMENT_OBJECT ||
            !document_find(iter.value.document, SLICE("key"), &key))
            continue;
        document_json_write_value(&key, &text);
        cli_table_text(table, arena_copy(command->arena, buf_slice(&text)));
        cli_table_number(table, cli_answer_number(iter.value.document, "shard"), 0);
        cli_table_number(table, cli_answer_number(iter.value.document, "shardAfter"), 0);
        cli_table_number(table, cli_answer_number(iter.value.document, "items"), 0);
        cli_table_bytes(table, cli_answer_number(iter.value.document, "bytes"));
    }
    cli_table_print(table);
}

static int edit_try(struct cli_asking *command, struct slice body)
{
    struct cli_answer answer;
    struct error err;

    if (!cli_asking_ask(command, "POST", cli_asking_path(command, SLICE("/directory")),
                        cli_partition_dry(command, body), &answer, &err))
        return cli_asking_failed(&err);
    if (!command->options.json)
        keys_print(command, cli_answer_inside(answer.document, "keys"));
    return cli_partition_plan(command, &answer);
}

static int edit(struct cli_asking *command, struct slice body)
{
    struct cli_answer answer;
    struct slice id;
    struct error err;

    if (is_dry(command))
        return edit_try(command, body);
    if (!cli_asking_ask(command, "POST", cli_asking_path(command, SLICE("/directory")), body,
                        &answer, &err))
        return cli_asking_failed(&err);
    id = cli_answer_text(answer.document, "id");
    if (!id.len)
        return cli_asking_done(command, &answer, "done: no key had to move");
    if (!command->no_wait)
        return cli_partition_watch(command, id);
    return cli_asking_done(command, &answer,
                           "begun: `orrery partition watch %s %s` shows how it goes",
                           command->words[1], command->words[2]);
}

static int directory_set(struct cli_asking *command)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    if (command->word_count % 2 == 0)
        return cli_fail(CLI_USAGE, "a key has no shard behind it");
    BUF_APPEND(&body, "{\"edits\":[");
    for (int i = 3; i < command->word_count; i += 2) {
        uint64_t shard;

        if (!slice_to_uint64(slice_of_text(command->words[i + 1]), &shard))
            return cli_fail(CLI_USAGE, "\"%s\" is not the number of a shard",
                            command->words[i + 1]);
        buf_printf(&body, "%s{\"key\":", i > 3 ? "," : "");
        cli_asking_key(&body, command->words[i]);
        buf_printf(&body, ",\"shard\":%llu}", (unsigned long long)shard);
    }
    BUF_APPEND(&body, "]}");
    return edit(command, buf_slice(&body));
}

static int directory_remove(struct cli_asking *command)
{
    CLEANUP(buf_done) struct buf body;

    buf_init(&body, BUF_DEFAULT_MAX);
    BUF_APPEND(&body, "{\"edits\":[");
    for (int i = 3; i < command->word_count; i++) {
        buf_printf(&body, "%s{\"key\":", i > 3 ? "," : "");
        cli_asking_key(&body, command->words[i]);
        BUF_APPEND(&body, ",\"shard\":null}");
    }
    BUF_APPEND(&body, "]}");
    return edit(command, buf_slice(&body));
}

/* --- Which verb ------------------------------------------------------------------------------ */

static const struct cli_verb verbs[] = {
    {"list", 2, 2, "list DATABASE CONTAINER", directory_list},
    {"find", 3, 3, "find DATABASE CONTAINER KEY", directory_find},
    {"set", 4, CLI_ASKING_WORDS_MAX, "set DATABASE CONTAINER KEY SHARD [KEY SHARD]...",
     directory_set},
    {"remove", 3, CLI_ASKING_WORDS_MAX, "remove DATABASE CONTAINER KEY...", directory_remove},
};

static bool options_fit(const struct cli_asking *asking, const struct cli_verb *verb)
{
    if (is_dry((struct cli_asking *)asking) && verb->run != directory_set &&
        verb->run != directory_remove)
        return cli_fail(CLI_USAGE, "--dry-run is for set and remove") == CLI_OK;
    return true;
}

int cli_directory(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"help", no_argument, NULL, 'h'},
                                            {"no-wait", no_argument, NULL, OPTION_NO_WAIT},
                                            {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
                                            {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct directory_command command = {.asking = {.arena = arena}};

    return cli_verbs_run(&(struct cli_verbs){.noun = "directory",
                                             .rows = verbs,
                                             .count = ARRAY_LEN(verbs),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_directory_help,
                                             .fits = options_fit},
                         &command.asking, argc, argv);
}
