/* `orrery account ...`: a verb, a name, perhaps a key; each verb one request to the server. */
#include "cli/cli.h"

#include "cli/asking.h"
#include "cli/table.h"
#include "document/json.h"
#include "server/keys.h"

#include <getopt.h>

enum { OPTION_YES = 'y', JSON_BYTES_MAX = 64 * 1024 * 1024 };

void cli_account_help(void)
{
    printf("Usage: orrery account list                 all accounts\n"
           "       orrery account create NAME          make one, with keys of its own\n"
           "       orrery account show [NAME]          what is in it\n"
           "       orrery account keys [NAME]          its keys and how to connect\n"
           "       orrery account keys [NAME] --node NAME=URL ...\n"
           "                                           its keys, from the nodes of a server that\n"
           "                                           is stopped, given as they are to serve\n"
           "       orrery account rotate NAME KEY      a new key in place of one of\n"
           "                                           primary, secondary, primary-readonly,\n"
           "                                           secondary-readonly\n"
           "       orrery account drop NAME --yes      delete it with everything in it\n"
           "\n"
           "Options:\n");
    cli_client_help();
    printf("\n"
           "The default account is called \"default\". Clients reach another by a path before\n"
           "everything else, http://HOST:PORT/NAME/, or by the host NAME.localhost.\n");
}

struct account_command {
    struct cli_asking asking;
    bool yes;
};

static bool option_take(void *context, int option, const char *value)
{
    struct account_command *command = context;

    if (option != OPTION_YES)
        return cli_client_take(&command->asking.options, option, value);
    command->yes = true;
    return true;
}

/* --- Asking and showing ---------------------------------------------------------------------- */

static bool ask(struct cli_asking *command, const char *method, const char *format,
                struct slice body, struct cli_answer *ret_answer, struct error *err)
{
    const char *name = command->word_count > 1 ? command->words[1] : "";
    const char *key = command->word_count > 2 ? command->words[2] : "";
    struct slice path = arena_printf(command->arena, "accounts%s%s", name[0] ? "/" : "", name);

    if (key[0])
        path = arena_printf(command->arena, "%.*s/keys/%s/rotate", SLICE_ARG(path), key);
    else if (format)
        path = arena_printf(command->arena, "%.*s%s", SLICE_ARG(path), format);
    return cli_client_ask(command->client, method, path, SLICE_NONE, body, command->arena,
                          ret_answer, err);
}

/* Without a name it is the account that asks. */
static void name_complete(struct cli_asking *command)
{
    if (command->word_count == 1)
        command->words[command->word_count++] =
            command->options.account ? command->options.account : "default";
}

/* --- The verbs ------------------------------------------------------------------------------- */

/* Of one page of the list, and the same as JSON. */
static void rows_add(struct cli_table *table, struct buf *json, struct slice accounts)
{
    struct document_iter iter;

    document_iter_init(&iter, accounts);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_OBJECT)
            continue;
        if (json->len)
            BUF_APPEND(json, ",");
        document_json_write_value(&iter.value, json);
        cli_table_text(table, cli_answer_text(iter.value.document, "id"));
        cli_table_text(table, cli_answer_text(iter.value.document, "keys"));
        cli_table_number(table, cli_answer_number(iter.value.document, "databases"), 0);
        cli_table_number(table, cli_answer_number(iter.value.document, "containers"), 0);
    }
}

static int account_list(struct cli_asking *command)
{
    static const char *const headings[] = {"ACCOUNT", "KEYS", ">DATABASES", ">CONTAINERS", NULL};
    struct cli_table *table = cli_table_new(command->arena, headings);
    CLEANUP(buf_done) struct buf json;
    struct slice query = SLICE_NONE, next;
    struct document_value accounts;
    struct cli_answer answer;
    struct error err;

    buf_init(&json, JSON_BYTES_MAX);
    do {
        if (!cli_client_ask(command->client, "GET", SLICE("accounts"), query, SLICE_NONE,
                            command->arena, &answer, &err))
            return cli_asking_failed(&err);
        if (answer.document.data && document_find(answer.document, SLICE("accounts"), &accounts) &&
            accounts.type == DOCUMENT_ARRAY)
            rows_add(table, &json, accounts.document);
        next = answer.document.data ? cli_answer_text(answer.document, "next") : SLICE("");
        query = arena_printf(command->arena, "after=%.*s", SLICE_ARG(next));
    } while (next.len);
    if (buf_overflowed(&json))
        return cli_fail(CLI_FAILED, "the list is larger than %zu bytes", json.max);
    if (!command->options.json)
        cli_table_print(table);
    else
        printf("{\"accounts\":[%.*s],\"total\":%.0f}\n", SLICE_ARG(buf_slice(&json)),
               cli_answer_number(answer.document, "total"));
    return CLI_OK;
}

static int keys_print(struct cli_asking *command, const struct cli_answer *answer)
{
    struct slice id = cli_answer_text(answer->document, "id"), primary = SLICE("");
    struct document_value keys;
    struct document_iter iter;

    if (command->options.json)
        return cli_asking_json(answer);
    if (!document_find(answer->document, SLICE("keys"), &keys) || keys.type != DOCUMENT_OBJECT)
        return cli_fail(CLI_FAILED, "the server's answer has no keys");
    document_iter_init(&iter, keys.document);
    while (document_iter_next(&iter)) {
        if (iter.value.type != DOCUMENT_STRING)
            continue;
        printf("%-19.*s %.*s\n", SLICE_ARG(iter.key), SLICE_ARG(iter.value.text));
        if (slice_equal(iter.key, SLICE("primary")))
            primary = iter.value.text;
    }
    printf("\nAccountEndpoint=%.*s;AccountKey=%.*s;\n",
           SLICE_ARG(cli_client_endpoint(command->client, id, command->arena)), SLICE_ARG(primary));
    return CLI_OK;
}

static int account_create(struct cli_asking *command)
{
    CLEANUP(buf_done) struct buf body;
    struct cli_answer answer;
    struct error err;

    buf_init(&body, BUF_DEFAULT_MAX);
    BUF_APPEND(&body, "{\"id\":");
    document_json_write_string(slice_of_text(command->words[1]), &body);
    BUF_APPEND(&body, "}");
    command->word_count = 1; /* the name goes into the body */
    if (!ask(command, "POST", NULL, buf_slice(&body), &answer, &err))
        return cli_asking_failed(&err);
    return keys_print(command, &answer);
}

static int account_show(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    name_complete(command);
    if (!ask(command, "GET", NULL, SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    if (command->options.json)
        return cli_asking_json(&answer);
    printf("account     %.*s\nkeys        %.*s\ndatabases   %lld\ncontainers  %lld\n",
           SLICE_ARG(cli_answer_text(answer.document, "id")),
           SLICE_ARG(slice_equal(cli_answer_text(answer.document, "keys"), SLICE("own"))
                         ? SLICE("of its own")
                         : SLICE("those of the account \"default\"")),
           (long long)cli_answer_number(answer.document, "databases"),
           (long long)cli_answer_number(answer.document, "containers"));
    return CLI_OK;
}

static int account_keys_show(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    name_complete(command);
    if (!ask(command, "GET", "/keys", SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    return keys_print(command, &answer);
}

static int account_rotate(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    if (!ask(command, "POST", NULL, SLICE("{}"), &answer, &err))
        return cli_asking_failed(&err);
    return keys_print(command, &answer);
}

static int account_drop(struct cli_asking *command)
{
    struct cli_answer answer;
    struct error err;

    if (!CONTAINER_OF(command, struct account_command, asking)->yes) {
        if (!ask(command, "GET", NULL, SLICE_NONE, &answer, &err))
            return cli_asking_failed(&err);
        return cli_fail(
            CLI_USAGE,
            "account \"%s\" has %.*s with %.*s, which would all be deleted: say --yes to do it",
            command->words[1],
            SLICE_ARG(cli_table_count(cli_answer_number(answer.document, "databases"), "database",
                                      command->arena)),
            SLICE_ARG(cli_table_count(cli_answer_number(answer.document, "containers"), "container",
                                      command->arena)));
    }
    if (!ask(command, "DELETE", NULL, SLICE_NONE, &answer, &err))
        return cli_asking_failed(&err);
    return cli_asking_done(command, &answer, "account \"%s\" is gone", command->words[1]);
}

/* --- Which verb ------------------------------------------------------------------------------ */

static const struct cli_verb verbs[] = {
    {"list", 0, 0, "list", account_list},
    {"create", 1, 1, "create NAME", account_create},
    {"show", 0, 1, "show [NAME]", account_show},
    {"keys", 0, 1, "keys [NAME]", account_keys_show},
    {"rotate", 2, 2, "rotate NAME KEY", account_rotate},
    {"drop", 1, 1, "drop NAME --yes", account_drop},
};

/* --- Without a server ------------------------------------------------------------------------ */

enum { OPTION_NODE = 'n' };

static bool node_named(struct settings *settings, const char *text, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();

    return settings_assign(settings, arena_printf(arena, "node.%s", text), err);
}

/* Servers without a directory keep no file of their keys: whoever may open the store may see
 * them. */
static int keys_of_nodes(int argc, char **argv)
{
    static const struct option options[] = {{"node", required_argument, NULL, OPTION_NODE}, {NULL}};
    CLEANUP(settings_free) struct settings *settings = settings_new();
    CLEANUP(account_keys_done) struct account_keys keys = {0};
    char text[ACCOUNT_KEY_TEXT_SIZE];
    const char *name;
    struct error err;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (option != OPTION_NODE)
            return cli_fail(CLI_USAGE, "account keys --node takes no other option");
        else if (!node_named(settings, optarg, &err))
            return cli_fail(CLI_USAGE, "%s", err.message);
    if (argc - optind > 2)
        return cli_fail(CLI_USAGE, "account keys [NAME] --node NAME=URL ...");
    name = argc - optind == 2 ? argv[optind + 1] : CATALOGUE_ACCOUNT_DEFAULT;
    if (!keys_read_stored(settings, slice_of_text(name), &keys, &err))
        return cli_fail(CLI_FAILED, "%s", err.message);
    for (size_t i = 0; i < ACCOUNT_KEYS; i++) {
        account_key_format(keys.secrets[i], text);
        printf("%-19s %s\n", account_key_name((enum account_key)i), text);
    }
    explicit_bzero(text, sizeof text);
    return CLI_OK;
}

static bool names_a_node(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--node") == 0 || strncmp(argv[i], "--node=", 7) == 0)
            return true;
    return false;
}

int cli_account(int argc, char **argv)
{
    static const struct option options[] = {CLI_CLIENT_OPTION_ROWS,
                                            {"help", no_argument, NULL, 'h'},
                                            {"yes", no_argument, NULL, OPTION_YES},
                                            {NULL}};
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct account_command command = {.asking.arena = arena};

    if (argc > 1 && strcmp(argv[1], "keys") == 0 && names_a_node(argc, argv))
        return keys_of_nodes(argc, argv);
    return cli_verbs_run(&(struct cli_verbs){.noun = "account",
                                             .rows = verbs,
                                             .count = ARRAY_LEN(verbs),
                                             .options = options,
                                             .take = option_take,
                                             .help = cli_account_help},
                         &command.asking, argc, argv);
}
