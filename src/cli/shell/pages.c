#include "cli/shell/pages.h"

#include "base/buf.h"
#include "cli/table.h"
#include "document/json.h"

enum { FAULT_BYTES_MAX = 64 * 1024, CARETS_MAX = 200 };

/* --- Faults ---------------------------------------------------------------------------------- */

/* "Message: {...}\r\nActivityId: ...": the service's words are JSON within the text. */
static void fault_read(const struct cli_answer *answer, struct arena *arena,
                       struct shell_fault *ret_fault)
{
    struct slice text = cli_answer_text(answer->document, "message"), first, rest, location, error;
    CLEANUP(buf_done) struct buf document;
    struct document_value errors, entry;
    struct error ignored;

    buf_init(&document, FAULT_BYTES_MAX);
    if (slice_split(text, '\r', &first, &rest))
        text = first;
    if (!slice_starts_with(text, SLICE("Message: ")) ||
        !document_json_read(slice_skip(text, 9), NULL, &document, &ignored))
        return;
    if (!document_find(buf_slice(&document), SLICE("errors"), &errors) &&
        !document_find(buf_slice(&document), SLICE("Errors"), &errors))
        return;
    if (errors.type != DOCUMENT_ARRAY || !document_find_index(errors.document, 0, &entry))
        return;
    if (entry.type == DOCUMENT_STRING) {
        ret_fault->message = arena_copy(arena, entry.text);
        return;
    }
    if (entry.type != DOCUMENT_OBJECT)
        return;
    error = arena_copy(arena, entry.document);
    ret_fault->message = cli_answer_text(error, "message");
    ret_fault->code = cli_answer_text(error, "code");
    location = cli_answer_inside(error, "location");
    ret_fault->located = document_count(location) > 0;
    ret_fault->start = (uint32_t)MAX(cli_answer_number(location, "start"), 0.0);
    ret_fault->end = (uint32_t)MAX(cli_answer_number(location, "end"), 0.0);
}

/* The byte at which so many UTF-16 units of text have gone by. */
static size_t byte_of(struct slice text, uint32_t units)
{
    size_t at = 0;

    while (at < text.len && units > 0) {
        units -= text.data[at] >= 0xF0 ? MIN(units, 2U) : 1U;
        at++;
        while (at < text.len && (text.data[at] & 0xC0) == 0x80)
            at++;
    }
    return at;
}

void shell_fault_show(const struct shell_fault *fault, struct slice query, struct buf *out)
{
    size_t start, end, begin, stop, width;

    if (!fault->located || query.len == 0)
        return;
    start = byte_of(query, fault->start);
    end = MAX(byte_of(query, fault->end), start);
    begin = start;
    while (begin > 0 && query.data[begin - 1] != '\n')
        begin--;
    stop = start;
    while (stop < query.len && query.data[stop] != '\n')
        stop++;
    BUF_APPEND(out, "  ");
    for (size_t i = begin; i < stop; i++)
        buf_append_byte(out, query.data[i] == '\t' || query.data[i] == '\r' ? ' ' : query.data[i]);
    buf_printf(out, "\n  %*s^", (int)cli_table_width(slice_of(query.data + begin, start - begin)),
               "");
    end = MIN(end, stop);
    width = end > start ? cli_table_width(slice_of(query.data + start, end - start)) : 1;
    for (size_t i = 1; i < MIN(width, (size_t)CARETS_MAX); i++)
        BUF_APPEND(out, "~");
    BUF_APPEND(out, "\n");
}

/* --- Pages ----------------------------------------------------------------------------------- */

static void body_append(const struct shell_pages *pages, struct buf *body)
{
    BUF_APPEND(body, "{\"query\":");
    document_json_write_string(pages->text, body);
    BUF_APPEND(body, ",\"parameters\":");
    buf_append_slice(body, pages->parameters.len ? pages->parameters : SLICE("[]"));
    BUF_APPEND(body, "}");
}

static void lines_append(const struct shell_pages *pages, struct buf *lines)
{
    buf_printf(lines,
               "x-ms-documentdb-isquery: True\r\n"
               "x-ms-documentdb-query-enablecrosspartition: True\r\n"
               "x-ms-max-item-count: %u\r\n",
               pages->rows_max);
    if (pages->explain)
        BUF_APPEND(lines, "x-orrery-explain: true\r\n");
    if (pages->continuation.len)
        buf_printf(lines, "x-ms-continuation: %.*s\r\n", SLICE_ARG(pages->continuation));
}

static bool page_ask(struct shell_pages *pages, struct arena *arena, struct cli_answer *ret_answer,
                     struct error *err)
{
    CLEANUP(buf_done) struct buf body;
    CLEANUP(buf_done) struct buf lines;
    struct cli_request request = {.method = "POST",
                                  .type = SLICE("docs"),
                                  .feed = true,
                                  .content_type = "application/query+json"};

    buf_init(&body, BUF_DEFAULT_MAX);
    buf_init(&lines, BUF_DEFAULT_MAX);
    body_append(pages, &body);
    lines_append(pages, &lines);
    request.link = arena_printf(arena, "dbs/%.*s/colls/%.*s", SLICE_ARG(pages->database),
                                SLICE_ARG(pages->container));
    request.body = buf_slice(&body);
    request.lines = buf_slice(&lines);
    return shell_ask(pages->server, &request, arena, ret_answer, err);
}

bool shell_pages_next(struct shell_pages *pages, struct arena *arena, struct shell_page *ret_page,
                      struct shell_fault *ret_fault, struct error *err)
{
    struct cli_answer answer;
    struct shell_page page = {0};

    *ret_fault = (struct shell_fault){0};
    if (!page_ask(pages, arena, &answer, err))
        return false;
    if (answer.status >= 400) {
        if (answer.document.data)
            fault_read(&answer, arena, ret_fault);
        return cli_answer_refused(&answer, err);
    }
    if (!answer.document.data)
        return error_set(err, ERROR_SYSTEM, "the server's answer is empty");
    page.rows = cli_answer_inside(answer.document, "Documents");
    page.charge = cli_decimal(cli_answer_header(&answer, "x-ms-request-charge"));
    if (pages->explain)
        page.explain = cli_answer_inside(answer.document, "_explain");
    pages->continuation = cli_answer_header(&answer, "x-ms-continuation");
    pages->ended = pages->continuation.len == 0;
    *ret_page = page;
    return true;
}
