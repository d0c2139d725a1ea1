/* `orrery key ...`: which partition key a document gets, and which partition. A server is asked, or
 * with a definition in a file nobody is: the library of src/client does it here. */
#include "cli/cli.h"

#include "base/nearest.h"
#include "cli/client.h"
#include "document/json.h"
#include "orrery/key.h"

#include <errno.h>

enum {
    OPTION_DEFINITION = 'd',
    OPTION_PARTITIONS = 'p',
    OPTION_SUFFIX = 's',
    WORDS_MAX = 4,
    TEXT_MAX = 16 * 1024 * 1024, /* of a document or a definition */
};

void cli_key_help(void)
{
    printf("Usage: orrery key explain DATABASE CONTAINER DOCUMENT   key and partition, and why\n"
           "       orrery key route DATABASE CONTAINER KEY          where a key is\n"
           "       orrery key explain --definition FILE DOCUMENT    the same without a server\n"
           "       orrery key route --definition FILE --partitions N KEY\n"
           "       orrery key compute --definition FILE DOCUMENTS   the key of each\n"
           "\n"
           "DOCUMENT is JSON, @FILE, or - for standard input; compute reads one from each line.\n"
           "KEY is an array as clients send it, [\"abc-123-2018\"], or the values it is made of.\n"
           "FILE holds a container as it is created: partitionKey and orrery. Nothing is written.\n"
           "\n"
           "Options:\n"
           "  --definition FILE   compute here, for the container in FILE\n"
           "  --partitions N      of a container that was created with N partitions\n"
           "  --suffix N          the suffix, where it is random; without it one is drawn\n");
    cli_client_help();
}

struct key_command {
    struct cli_client_options options;
    const char *definition;
    unsigned partitions, suffix;
    const char *words[WORDS_MAX];
    int word_count;
    struct orrery_key *key; /* of the definition; NULL: a server is asked */
    struct arena *arena;
};

static bool number_take(const char *name, const char *value, unsigned *ret_number)
{
    uint64_t number;

    if (slice_to_uint64(slice_of_text(value), &number) && number >= 1 && number <= 65536) {
        *ret_number = (unsigned)number;
        return true;
    }
    cli_fail(CLI_USAGE, "--%s must be a whole number from 1 to 65536, not \"%s\"", name, value);
    return false;
}

static bool option_take(void *context, int option, const char *value)
{
    struct key_command *command = context;

    switch (option) {
    case OPTION_DEFINITION:
        command->definition = value;
        return true;
    case OPTION_PARTITIONS:
        return number_take("partitions", value, &command->partitions);
    case OPTION_SUFFIX:
        return number_take("suffix", value, &command->suffix);
    default:
        return cli_client_take(&command->options, option, value);
    }
}

static int refused(const struct orrery_key_error *error)
{
    return cli_fail(CLI_FAILED, "%s", error->message);
}

/* --- Texts ----------------------------------------------------------------------------------- */

static bool stream_read(FILE *file, const char *name, struct buf *text)
{
    uint8_t part[16 * 1024];
    size_t len;

    while ((len = fread(part, 1, sizeof part, file)) > 0)
        buf_append(text, part, len);
    if (ferror(file)) {
        cli_fail(CLI_FAILED, "\"%s\" cannot be read: %s", name, strerror(errno));
        return false;
    }
    if (buf_overflowed(text)) {
        cli_fail(CLI_FAILED, "\"%s\" is larger than %d bytes", name, TEXT_MAX);
        return false;
    }
    return true;
}

static bool file_read(const char *name, struct arena *arena, struct slice *ret_text)
{
    CLEANUP(buf_done) struct buf text;
    FILE *file = fopen(name, "re");
    bool fine;

    buf_init(&text, TEXT_MAX);
    if (!file) {
        cli_fail(CLI_FAILED, "\"%s\" cannot be opened: %s", name, strerror(errno));
        return false;
    }
    fine = stream_read(file, name, &text);
    fclose(file);
    *ret_text = arena_copy(arena, buf_slice(&text));
    return fine;
}

/* A word of the command line: the text, @FILE or -. */
static bool text_read(const char *word, struct arena *arena, struct slice *ret_text)
{
    CLEANUP(buf_done) struct buf text;

    buf_init(&text, TEXT_MAX);
    if (word[0] == '@')
        return file_read(word + 1, arena, ret_text);
    if (strcmp(word, "-") != 0)
        buf_append(&text, word, strlen(word));
    else if (!stream_read(stdin, "standard input", &text))
        return false;
    *ret_text = arena_copy(arena, buf_slice(&text));
    return true;
}

/* --- Showing --------------------------------------------------------------------------------- */

static void member_print(const char *label, struct slice object, const char *name)
{
    CLEANUP(buf_done) struct buf text;
    struct document_value value;

    buf_init(&text, TEXT_MAX);
    if (!document_find(object, slice_of_text(name), &value))
        return;
    if (value.type == DOCUMENT_STRING)
        buf_append_slice(&text, value.text);
    else
        document_json_write_value(&value, &text);
    printf("%-15s %.*s\n", label, SLICE_ARG(buf_slice(&text)));
}

static void sources_print(struct slice synthetic)
{
    struct document_iter iter;

    document_iter_init(&iter, cli_answer_inside(synthetic, "sources"));
    while (document_iter_next(&iter)) {
        CLEANUP(buf_done) struct buf text;
        struct document_value value;

        buf_init(&text, TEXT_MAX);
        if (document_find(iter.value.document, SLICE("value"), &value))
            document_json_write_value(&value, &text);
        else
            BUF_APPEND(&text, "(missing)");
        printf("  made of       %.*s = %.*s\n",
               SLICE_ARG(cli_answer_text(iter.value.document, "path")),
               SLICE_ARG(buf_slice(&text)));
    }
}

static void partition_print(struct slice partition)
{
    printf("%-15s %.*s, [%.*s, %.*s) on %.*s", "partition",
           SLICE_ARG(cli_answer_text(partition, "id")),
           SLICE_ARG(cli_answer_text(partition, "minInclusive")),
           SLICE_ARG(cli_answer_text(partition, "maxExclusive")),
           SLICE_ARG(cli_answer_text(partition, "node")));
    if (cli_answer_number(partition, "suffixes") > 0)
        printf(": %.0f suffix%s", cli_answer_number(partition, "suffixes"),
               cli_answer_number(partition, "suffixes") == 1 ? "" : "es");
    printf("\n");
}

static void partitions_print(struct slice answer)
{
    struct document_value value;
    struct document_iter iter;

    if (document_find(answer, SLICE("partition"), &value) && value.type == DOCUMENT_OBJECT)
        partition_print(value.document);
    document_iter_init(&iter, cli_answer_inside(answer, "partitions"));
    while (document_iter_next(&iter))
        partition_print(iter.value.document);
}

static void answer_print(struct slice answer)
{
    struct slice synthetic = cli_answer_inside(answer, "synthetic");
    struct document_value open;
    bool is_open = document_find(answer, SLICE("open"), &open) && open.boolean;

    member_print(is_open ? "base" : "partition key", answer, "partitionKey");
    if (is_open)
        printf("%-15s drawn from 1 to %.0f when the item is created\n", "suffix",
               cli_answer_number(synthetic, "suffixes"));
    member_print("kind", synthetic, "kind");
    sources_print(synthetic);
    member_print("suffix", synthetic, "suffix");
    member_print("effective key", answer, "effectivePartitionKey");
    partitions_print(answer);
}

/* --- With a server --------------------------------------------------------------------------- */

static int server_ask(struct key_command *command, struct slice text)
{
    CLEANUP(cli_client_free) struct cli_client *client = NULL;
    struct slice path =
        arena_printf(command->arena, "containers/%s/%s/key", command->words[1], command->words[2]);
    struct cli_answer answer;
    struct error err;

    if (!cli_client_new(&command->options, &client, &err) ||
        !cli_client_ask(client, "POST", path, SLICE_NONE, text, command->arena, &answer, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    if (command->options.json)
        printf("%.*s\n", SLICE_ARG(answer.text));
    else
        answer_print(answer.document);
    return CLI_OK;
}

/* --- Without one ----------------------------------------------------------------------------- */

static int definition_open(struct key_command *command)
{
    struct orrery_key_error error;
    struct slice text;

    if (!file_read(command->definition, command->arena, &text))
        return CLI_FAILED;
    if (orrery_key_open((const char *)text.data, text.len, &command->key, &error) != ORRERY_KEY_OK)
        return refused(&error);
    return CLI_OK;
}

/* The text that a function of the library gives, however long. */
static int explained(struct key_command *command, struct slice document, struct slice *ret_text)
{
    struct orrery_key_error error;
    size_t len = 0;
    char *out;
    int status = orrery_key_explain(command->key, (const char *)document.data, document.len, NULL,
                                    0, &len, &error);

    if (status == ORRERY_KEY_REFUSED)
        return refused(&error);
    out = arena_alloc(command->arena, len + 1);
    (void)orrery_key_explain(command->key, (const char *)document.data, document.len, out, len + 1,
                             &len, &error);
    *ret_text = slice_of(out, len);
    return CLI_OK;
}

static int offline_explain(struct key_command *command, struct slice text)
{
    CLEANUP(buf_done) struct buf bson;
    struct slice json;
    struct error err;
    int code = explained(command, text, &json);

    buf_init(&bson, 2 * TEXT_MAX);
    if (code != CLI_OK)
        return code;
    if (command->options.json)
        printf("%.*s\n", SLICE_ARG(json));
    else if (document_json_read(json, NULL, &bson, &err))
        answer_print(buf_slice(&bson));
    else
        return cli_fail(CLI_FAILED, "%s", err.message);
    return CLI_OK;
}

static int offline_route(struct key_command *command, struct slice text)
{
    struct orrery_key_error error;
    unsigned partition;

    if (!command->partitions)
        return cli_fail(CLI_USAGE, "route with a definition needs --partitions N");
    if (orrery_key_partition(command->key, (const char *)text.data, text.len, command->partitions,
                             &partition, &error) != ORRERY_KEY_OK)
        return refused(&error);
    printf("%u\n", partition);
    return CLI_OK;
}

static int line_compute(struct key_command *command, struct slice line)
{
    struct orrery_key_error error;
    char out[8 * 1024];
    size_t len;
    int status = orrery_key_compute(command->key, (const char *)line.data, line.len,
                                    command->suffix, out, sizeof out, &len, &error);

    if (status == ORRERY_KEY_REFUSED)
        return refused(&error);
    if (status == ORRERY_KEY_SMALL)
        return cli_fail(CLI_FAILED, "a partition key is longer than any may be");
    printf("%s\n", out);
    return CLI_OK;
}

static int offline_compute(struct key_command *command, struct slice text)
{
    struct slice line;
    int code = CLI_OK;

    while (text.len && code == CLI_OK) {
        if (!slice_split(text, '\n', &line, &text)) {
            line = text;
            text = SLICE_NONE;
        }
        if (slice_trim(line).len)
            code = line_compute(command, line);
    }
    return code;
}

/* --- Which verb ------------------------------------------------------------------------------ */

static const struct verb {
    const char *name;
    bool online;
    int (*offline)(struct key_command *command, struct slice text);
} verbs[] = {
    {"explain", true, offline_explain},
    {"route", true, offline_route},
    {"compute", false, offline_compute},
};

static int verb_unknown(const char *name)
{
    struct nearest nearest = nearest_to(slice_of_text(name));

    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        nearest_offer(&nearest, verbs[i].name);
    return cli_fail(CLI_USAGE, "key knows no \"%s\": did you mean \"%s\"?", name,
                    nearest.name ? nearest.name : "explain");
}

static int verb_run(const struct verb *verb, struct key_command *command)
{
    int words = command->definition ? 1 : 3, code;
    struct slice text;

    if (!command->definition && !verb->online)
        return cli_fail(CLI_USAGE, "%s needs --definition FILE", verb->name);
    if (command->word_count - 1 != words)
        return cli_fail(CLI_USAGE, "it is used as `orrery key %s %s`: --help says more", verb->name,
                        command->definition ? "--definition FILE TEXT" : "DATABASE CONTAINER TEXT");
    if (!text_read(command->words[words], command->arena, &text))
        return CLI_FAILED;
    if (!command->definition)
        return server_ask(command, text);
    code = definition_open(command);
    if (code == CLI_OK)
        code = verb->offline(command, text);
    orrery_key_close(command->key);
    return code;
}

int cli_key(int argc, char **argv)
{
    static const struct option options[] = {
        CLI_CLIENT_OPTION_ROWS,
        {"help", no_argument, NULL, 'h'},
        {"definition", required_argument, NULL, OPTION_DEFINITION},
        {"partitions", required_argument, NULL, OPTION_PARTITIONS},
        {"suffix", required_argument, NULL, OPTION_SUFFIX},
        {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct key_command command = {.arena = arena};
    bool help;

    command.word_count =
        cli_words_read(argc, argv, options,
                       &(struct cli_words){command.words, WORDS_MAX, option_take, &command}, &help);
    if (help) {
        cli_key_help();
        return CLI_OK;
    }
    if (command.word_count < 0)
        return CLI_USAGE;
    if (command.word_count == 0)
        return cli_fail(CLI_USAGE, "key needs to be told what to do: explain, route or compute");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, command.words[0]) == 0)
            return verb_run(&verbs[i], &command);
    return verb_unknown(command.words[0]);
}
