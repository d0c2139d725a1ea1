#include "cli/data/resource.h"

#include "cli/cli.h"
#include "cli/shell/shell.h"
#include "document/bson.h"
#include "document/json.h"

#include <stdio.h>

enum { INPUT_MAX = 16 * 1024 * 1024 };

bool cli_resource_ask(struct cli_asking *asking, const struct cli_resource *resource,
                      struct cli_answer *ret_answer, struct error *err)
{
    const struct cli_request request = {.method = resource->method,
                                        .type = slice_of_text(resource->type),
                                        .link = resource->link,
                                        .feed = resource->feed,
                                        .lines = resource->lines,
                                        .body = resource->body};
    struct shell_server server = {.client = asking->client, .cancel = -1};

    if (!shell_ask(&server, &request, asking->arena, ret_answer, err))
        return false;
    return ret_answer->status < 400 || cli_answer_refused(ret_answer, err);
}

struct slice cli_resource_database(const struct cli_asking *asking)
{
    return arena_printf(asking->arena, "dbs/%s", asking->words[1]);
}

struct slice cli_resource_container(const struct cli_asking *asking)
{
    return arena_printf(asking->arena, "dbs/%s/colls/%s", asking->words[1], asking->words[2]);
}

bool cli_resource_feed(struct cli_asking *asking, const struct cli_resource *resource,
                       const char *array, void (*take)(void *context, struct slice resource),
                       void *context, struct error *err)
{
    struct shell_server server = {.client = asking->client, .cancel = -1};

    return shell_feed(&server, resource->type, resource->link, array, asking->arena, take, context,
                      err);
}

int cli_resource_show(const struct cli_asking *asking, const struct cli_answer *answer)
{
    CLEANUP(buf_done) struct buf text;
    struct document_value value = document_object(answer->document);

    buf_init(&text, BUF_DEFAULT_MAX);
    if (asking->options.json || !answer->document.data)
        return cli_asking_json(answer);
    shell_json_pretty(&value, 0, &text);
    printf("%.*s\n", SLICE_ARG(buf_slice(&text)));
    return CLI_OK;
}

/* --- Documents on the command line ----------------------------------------------------------- */

static bool stream_read(FILE *stream, const char *name, struct arena *arena, struct slice *ret_text,
                        struct error *err)
{
    CLEANUP(buf_done) struct buf text;
    uint8_t piece[16 * 1024];
    size_t count;

    buf_init(&text, INPUT_MAX);
    while ((count = fread(piece, 1, sizeof piece, stream)) > 0)
        buf_append_slice(&text, slice_of(piece, count));
    if (ferror(stream))
        return error_set_errno(err, ERROR_SYSTEM, "%s cannot be read", name);
    if (buf_overflowed(&text))
        return error_set(err, ERROR_TOO_LARGE, "%s is longer than %d bytes", name, (int)INPUT_MAX);
    *ret_text = arena_copy(arena, buf_slice(&text));
    return true;
}

static bool word_read(const char *word, struct arena *arena, struct slice *ret_text,
                      struct error *err)
{
    FILE *file;
    bool done;

    if (strcmp(word, "-") == 0)
        return stream_read(stdin, "standard input", arena, ret_text, err);
    if (word[0] != '@') {
        *ret_text = slice_of_text(word);
        return true;
    }
    file = fopen(word + 1, "re");
    if (!file)
        return error_set_errno(err, ERROR_NOT_FOUND, "\"%s\" cannot be opened", word + 1);
    done = stream_read(file, word + 1, arena, ret_text, err);
    (void)fclose(file);
    return done;
}

bool cli_resource_json(const struct cli_asking *asking, const char *word, bool array,
                       struct slice *ret_json, struct error *err)
{
    CLEANUP(buf_done) struct buf bytes;
    struct document_value value;
    struct slice text;

    buf_init(&bytes, BUF_DEFAULT_MAX);
    if (!word_read(word, asking->arena, &text, err))
        return false;
    if (!document_json_read_value(text, NULL, &bytes, &value, err))
        return error_prefix(err, "what is given is no JSON (a file is named by @FILE)");
    if (value.type != DOCUMENT_OBJECT && !(array && value.type == DOCUMENT_ARRAY))
        return error_set(err, ERROR_BAD_REQUEST, "what is given is no JSON %s",
                         array ? "object or array" : "object");
    *ret_json = text;
    return true;
}

/* --- Throughput ------------------------------------------------------------------------------ */

bool cli_offer_take(struct cli_offer *offer, int option, const char *value)
{
    uint64_t *number = option == CLI_OFFER_OPTION_RU ? &offer->ru : &offer->autoscale;

    if (!slice_to_uint64(slice_of_text(value), number) || *number == 0) {
        (void)cli_fail(CLI_USAGE, "\"%s\" is not a number of RU/s", value);
        return false;
    }
    if (offer->ru && offer->autoscale) {
        (void)cli_fail(CLI_USAGE, "throughput is either --ru or --autoscale, not both");
        return false;
    }
    return true;
}

struct slice cli_offer_lines(const struct cli_offer *offer, struct arena *arena)
{
    if (offer->ru)
        return arena_printf(arena, "x-ms-offer-throughput: %llu\r\n",
                            (unsigned long long)offer->ru);
    if (offer->autoscale)
        return arena_printf(arena,
                            "x-ms-cosmos-offer-autopilot-settings: {\"maxThroughput\":%llu}\r\n",
                            (unsigned long long)offer->autoscale);
    return SLICE_NONE;
}

struct offer_search {
    struct slice rid;
    struct slice found; /* data NULL: not yet */
};

static void offer_look(void *context, struct slice offer)
{
    struct offer_search *search = context;

    if (slice_equal(cli_answer_text(offer, "offerResourceId"), search->rid))
        search->found = offer;
}

static bool offer_find(struct cli_asking *asking, struct slice link, const char *type,
                       struct slice *ret_offer, struct error *err)
{
    struct offer_search search = {0};
    struct cli_answer resource;

    if (!cli_resource_ask(asking,
                          &(struct cli_resource){.method = "GET", .type = type, .link = link},
                          &resource, err))
        return false;
    search.rid = cli_answer_text(resource.document, "_rid");
    if (!cli_resource_feed(asking, &(struct cli_resource){.type = "offers", .link = SLICE("")},
                           "Offers", offer_look, &search, err))
        return false;
    if (!search.found.data)
        return error_set(err, ERROR_NOT_FOUND,
                         "\"%.*s\" has no throughput of its own: what is in it, or the database "
                         "it is in, has",
                         SLICE_ARG(link));
    *ret_offer = search.found;
    return true;
}

/* The offer with another content: that is how it is replaced. Both numbers 0: the server is to
 * decide, which is how an offer becomes one of the other kind. */
static struct slice offer_json(struct slice offer, const struct cli_offer *wanted, bool autoscale,
                               struct arena *arena)
{
    CLEANUP(buf_done) struct buf json;
    struct document_iter iter;

    buf_init(&json, BUF_DEFAULT_MAX);
    if (autoscale && wanted)
        buf_printf(&json, "{\"content\":{\"offerAutopilotSettings\":{\"maxThroughput\":%llu}}",
                   (unsigned long long)wanted->autoscale);
    else
        buf_printf(&json, "{\"content\":{\"offerThroughput\":%lld}",
                   wanted ? (long long)wanted->ru : -1);
    document_iter_init(&iter, offer);
    while (document_iter_next(&iter)) {
        if (slice_equal(iter.key, SLICE("content")))
            continue;
        BUF_APPEND(&json, ",");
        document_json_write_string(iter.key, &json);
        BUF_APPEND(&json, ":");
        document_json_write_value(&iter.value, &json);
    }
    BUF_APPEND(&json, "}");
    return arena_copy(arena, buf_slice(&json));
}

static bool offer_is_autoscale(struct slice offer)
{
    return cli_answer_number(
               cli_answer_inside(cli_answer_inside(offer, "content"), "offerAutopilotSettings"),
               "maxThroughput") > 0;
}

/* In two steps where it becomes one of the other kind, as the service has it. */
static bool offer_replace(struct cli_asking *asking, const struct cli_offer *wanted,
                          struct slice offer, struct cli_answer *ret_answer, struct error *err)
{
    struct cli_resource request = {.method = "PUT",
                                   .type = "offers",
                                   .link = arena_printf(asking->arena, "offers/%.*s",
                                                        SLICE_ARG(cli_answer_text(offer, "_rid")))};
    bool autoscale = wanted->autoscale != 0;

    if (offer_is_autoscale(offer) != autoscale) {
        request.body = offer_json(offer, NULL, autoscale, asking->arena);
        request.lines = autoscale
                            ? SLICE("x-ms-cosmos-migrate-offer-to-autopilot: true\r\n")
                            : SLICE("x-ms-cosmos-migrate-offer-to-manual-throughput: true\r\n");
        if (!cli_resource_ask(asking, &request, ret_answer, err))
            return false;
        offer = ret_answer->document;
    }
    request.lines = SLICE_NONE;
    request.body = offer_json(offer, wanted, autoscale, asking->arena);
    return cli_resource_ask(asking, &request, ret_answer, err);
}

static void offer_print(struct slice offer)
{
    struct slice content = cli_answer_inside(offer, "content");

    if (offer_is_autoscale(offer))
        printf("autoscale, up to %.0f RU/s\n",
               cli_answer_number(cli_answer_inside(content, "offerAutopilotSettings"),
                                 "maxThroughput"));
    else
        printf("%.0f RU/s\n", cli_answer_number(content, "offerThroughput"));
}

int cli_offer_run(struct cli_asking *asking, const struct cli_offer *offer, struct slice link,
                  const char *type)
{
    struct cli_answer answer;
    struct slice found = SLICE_NONE;
    struct error err;

    if (!offer_find(asking, link, type, &found, &err))
        return cli_asking_failed(&err);
    if (offer->ru || offer->autoscale) {
        if (!offer_replace(asking, offer, found, &answer, &err))
            return cli_asking_failed(&err);
        found = answer.document;
    }
    if (asking->options.json) {
        CLEANUP(buf_done) struct buf json;
        struct document_value value = document_object(found);

        buf_init(&json, BUF_DEFAULT_MAX);
        document_json_write_value(&value, &json);
        printf("%.*s\n", SLICE_ARG(buf_slice(&json)));
        return CLI_OK;
    }
    offer_print(found);
    return CLI_OK;
}
