#include "cli/shell/ask.h"

#include "document/bson.h"

#include <errno.h>
#include <poll.h>

enum { WAIT_MS_MAX = 60 * 1000, WAIT_MS_DEFAULT = 100 };

bool shell_wait(const struct shell_server *server, int64_t ms, struct error *err)
{
    struct pollfd wait = {.fd = server->cancel, .events = POLLIN};
    int count = poll(&wait, 1, (int)MIN(ms, (int64_t)WAIT_MS_MAX));

    if (count > 0)
        return error_set(err, ERROR_CANCELLED, "cancelled");
    return count == 0 || errno == EINTR ||
           error_set_errno(err, ERROR_SYSTEM, "waiting is not possible");
}

bool shell_ask(struct shell_server *server, const struct cli_request *request, struct arena *arena,
               struct cli_answer *ret_answer, struct error *err)
{
    int64_t waited = 0;

    for (;;) {
        uint64_t wait_ms = WAIT_MS_DEFAULT;

        if (!cli_client_send(server->client, request, arena, ret_answer, err))
            return false;
        if (ret_answer->status != 429 || waited >= WAIT_MS_MAX)
            return true;
        server->throttled++;
        if (!slice_to_uint64(cli_answer_header(ret_answer, "x-ms-retry-after-ms"), &wait_ms) ||
            wait_ms == 0)
            wait_ms = 1;
        wait_ms = MIN(wait_ms, (uint64_t)WAIT_MS_MAX);
        waited += (int64_t)wait_ms;
        if (!shell_wait(server, (int64_t)wait_ms, err))
            return false;
    }
}

static bool ask_good(struct shell_server *server, const struct cli_request *request,
                     struct arena *arena, struct cli_answer *ret_answer, struct error *err)
{
    if (!shell_ask(server, request, arena, ret_answer, err))
        return false;
    if (ret_answer->status >= 400)
        return cli_answer_refused(ret_answer, err);
    return ret_answer->document.data ||
           error_set(err, ERROR_SYSTEM, "the server's answer is empty");
}

bool shell_get(struct shell_server *server, const char *type, struct slice link,
               struct arena *arena, struct cli_answer *ret_answer, struct error *err)
{
    const struct cli_request request = {.method = "GET", .type = slice_of_text(type), .link = link};

    return ask_good(server, &request, arena, ret_answer, err);
}

bool shell_feed(struct shell_server *server, const char *type, struct slice link, const char *array,
                struct arena *arena, void (*take)(void *context, struct slice resource),
                void *context, struct error *err)
{
    struct cli_request request = {
        .method = "GET", .type = slice_of_text(type), .link = link, .feed = true};
    struct slice next = SLICE_NONE;
    struct cli_answer answer;
    struct document_iter iter;

    do {
        request.lines = next.len
                            ? arena_printf(arena, "x-ms-continuation: %.*s\r\n", SLICE_ARG(next))
                            : SLICE_NONE;
        if (!ask_good(server, &request, arena, &answer, err))
            return false;
        document_iter_init(&iter, cli_answer_inside(answer.document, array));
        while (document_iter_next(&iter))
            if (iter.value.type == DOCUMENT_OBJECT)
                take(context, iter.value.document);
        next = cli_answer_header(&answer, "x-ms-continuation");
    } while (next.len);
    return true;
}
