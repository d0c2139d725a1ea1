/* From the words of a command line to the verb, and from the verb to the server. */
#include "cli/asking.h"

#include "base/nearest.h"
#include "cli/cli.h"
#include "document/json.h"

#include <stdarg.h>

bool cli_asking_ask(struct cli_asking *asking, const char *method, struct slice path,
                    struct slice body, struct cli_answer *ret_answer, struct error *err)
{
    return cli_client_ask(asking->client, method, path, asking->query, body, asking->arena,
                          ret_answer, err);
}

struct slice cli_asking_path(const struct cli_asking *asking, struct slice rest)
{
    return arena_printf(asking->arena, "containers/%s/%s%.*s", asking->words[1], asking->words[2],
                        SLICE_ARG(rest));
}

void cli_asking_key(struct buf *json, const char *word)
{
    struct slice text = slice_of_text(word);

    if (text.len && text.data[0] == '[') {
        buf_append_slice(json, text);
        return;
    }
    BUF_APPEND(json, "[");
    document_json_write_string(text, json);
    BUF_APPEND(json, "]");
}

int cli_asking_json(const struct cli_answer *answer)
{
    struct slice text = answer->text.len ? answer->text : SLICE("{}");

    printf("%.*s\n", SLICE_ARG(text));
    return CLI_OK;
}

int cli_asking_done(const struct cli_asking *asking, const struct cli_answer *answer,
                    const char *format, ...)
{
    va_list args;

    if (asking->options.json)
        return cli_asking_json(answer);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    return CLI_OK;
}

int cli_asking_failed(const struct error *err)
{
    return cli_fail(CLI_FAILED, "%s", err->message);
}

/* --- Verbs ----------------------------------------------------------------------------------- */

/* "list, find, set or remove" */
static int verb_missing(const struct cli_verbs *verbs)
{
    CLEANUP(buf_done) struct buf names;

    buf_init(&names, BUF_DEFAULT_MAX);
    for (size_t i = 0; i < verbs->count; i++)
        buf_printf(&names, "%s%s",
                   i == 0                 ? ""
                   : i + 1 < verbs->count ? ", "
                                          : " or ",
                   verbs->rows[i].name);
    return cli_fail(CLI_USAGE, "%s needs to be told what to do: %.*s", verbs->noun,
                    SLICE_ARG(buf_slice(&names)));
}

static int verb_unknown(const struct cli_verbs *verbs, const char *name)
{
    struct nearest nearest = nearest_to(slice_of_text(name));

    for (size_t i = 0; i < verbs->count; i++)
        nearest_offer(&nearest, verbs->rows[i].name);
    if (nearest.name)
        return cli_fail(CLI_USAGE, "%s knows no \"%s\": did you mean \"%s\"?", verbs->noun, name,
                        nearest.name);
    return cli_fail(CLI_USAGE, "%s knows no \"%s\": `orrery %s --help` lists what it does",
                    verbs->noun, name, verbs->noun);
}

static const struct cli_verb *verb_find(const struct cli_verbs *verbs, const char *name)
{
    for (size_t i = 0; i < verbs->count; i++)
        if (strcmp(verbs->rows[i].name, name) == 0)
            return &verbs->rows[i];
    return NULL;
}

static bool words_fit(const struct cli_asking *asking, const struct cli_verb *verb)
{
    int count = asking->word_count - 1;

    for (int i = 0; i < asking->word_count; i++)
        if (!asking->words[i][0])
            return false;
    return count >= verb->least && count <= verb->most;
}

static int verb_run(const struct cli_verbs *verbs, const struct cli_verb *verb,
                    struct cli_asking *asking)
{
    struct error err;
    int code;

    if (!words_fit(asking, verb))
        return cli_fail(CLI_USAGE, "it is used as `orrery %s %s`", verbs->noun, verb->usage);
    if (verbs->fits && !verbs->fits(asking, verb))
        return CLI_USAGE;
    if (!cli_client_new(&asking->options, &asking->client, &err))
        return cli_asking_failed(&err);
    code = verb->run(asking);
    cli_client_free(TAKE(asking->client));
    return code;
}

int cli_verbs_run(const struct cli_verbs *verbs, struct cli_asking *asking, int argc, char **argv)
{
    const struct cli_verb *verb = argc > 1 ? verb_find(verbs, argv[1]) : NULL;
    bool help;

    if (verb && verb->own)
        return verb->own(argc - 1, argv + 1);
    asking->word_count = cli_words_read(
        argc, argv, verbs->options,
        &(struct cli_words){asking->words, CLI_ASKING_WORDS_MAX, verbs->take, asking}, &help);
    if (help) {
        verbs->help();
        return CLI_OK;
    }
    if (asking->word_count < 0)
        return CLI_USAGE;
    if (asking->word_count == 0)
        return verb_missing(verbs);
    verb = verb_find(verbs, asking->words[0]);
    if (!verb || verb->own) /* those stand first */
        return verb_unknown(verbs, asking->words[0]);
    return verb_run(verbs, verb, asking);
}
