/* Two measures. Errors of status 500 and 507 are made of what engines, files and the system say: of
 * these nothing but the meaning of the code gets out. Others above 500 say in our own words which
 * node is down and so on, with a reason of such origin in them: there only paths are hidden. What a
 * pause says is the operator's own word. */
#include "front/fault.h"

enum { LOG_PAUSE_MS = 1000 };

static bool ends_word(uint8_t c)
{
    return c == ' ' || c == '"' || c == '\'' || c == '(' || c == ')' || c == '\n';
}

/* The word at the beginning of the text: up to its quote, if it has one before it. */
static size_t word_length(struct slice text, uint8_t before)
{
    bool quoted = before == '"' || before == '\'';
    size_t length = 0;

    while (length < text.len &&
           (quoted ? text.data[length] != before : !ends_word(text.data[length])))
        length++;
    return length;
}

struct slice front_paths_hide(struct slice text, struct arena *arena)
{
    CLEANUP(buf_done) struct buf out;
    uint8_t before = ' ';

    buf_init(&out, BUF_DEFAULT_MAX);
    if (!text.len || !memchr(text.data, '/', text.len))
        return text;
    while (text.len) {
        size_t length = word_length(text, before);

        if (length && memchr(text.data, '/', length))
            BUF_APPEND(&out, "(path)");
        else
            buf_append_slice(&out, slice_first(text, length));
        text = slice_skip(text, length);
        before = ' ';
        if (text.len) {
            /* a quote that ends a word begins none */
            before = length ? ' ' : text.data[0];
            buf_append_byte(&out, text.data[0]);
            text = slice_skip(text, 1);
        }
    }
    return arena_copy(arena, buf_slice(&out));
}

static void fault_log(const struct front_services *services, const struct error *err,
                      const char *request_id)
{
    struct front_faults *faults = services->faults;
    int64_t now_ms = clock_read_monotonic_ms(services->clock), last_ms;

    if (!faults) {
        log_error(services->log, "request failed", err);
        return;
    }
    last_ms = atomic_load(&faults->logged_ms);
    if ((last_ms && now_ms - last_ms < LOG_PAUSE_MS) ||
        !atomic_compare_exchange_strong(&faults->logged_ms, &last_ms, MAX(now_ms, (int64_t)1))) {
        atomic_fetch_add(&faults->left_out, 1);
        return;
    }
    log_event(services->log, LOG_ERROR, "request failed",
              LOG_TEXT("code", error_face(err->code)->name), LOG_TEXT("because", err->message),
              LOG_TEXT("request", request_id),
              LOG_INT("left_out", (int64_t)atomic_exchange(&faults->left_out, 0)));
}

struct slice front_fault_tell(const struct front_services *services, const struct error *err,
                              const char *request_id, struct arena *arena)
{
    struct slice own = slice_of_text(err->message), told = own;

    if (err->status == 500 || err->status == 507)
        told = slice_of_text(error_face(err->code)->meaning);
    else if (err->code != ERROR_PAUSED && err->code != ERROR_WRITES_PAUSED &&
             (err->status > 501 || err->code == ERROR_WRITE_IN_DOUBT))
        told = front_paths_hide(own, arena);
    if (!slice_equal(told, own))
        fault_log(services, err, request_id);
    return told;
}
