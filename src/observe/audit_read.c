/* Reading the record: pages from the newest on, and the walk that verifies the chain. */
#include "observe/audit_private.h"

#include "base/bytes.h"
#include "catalogue/notes.h"
#include "document/bson.h"
#include "document/json.h"

enum { LOOKED_AT_MAX = 20000, WINDOW = 500 };

struct walk {
    audit_visit *visit;
    void *context;
};

static bool walk_visit(void *context, struct slice key, struct slice value)
{
    struct walk *walk = context;

    return key.len == AUDIT_KEY_BYTES &&
           walk->visit(walk->context, bytes_get_be64(key.data + 2), value);
}

bool audit_walk(struct audit *audit, uint64_t from, uint64_t to, audit_visit *visit, void *context,
                struct error *err)
{
    uint8_t min[AUDIT_KEY_BYTES], max[AUDIT_KEY_BYTES];
    struct walk walk = {visit, context};

    if (to < from)
        return true;
    audit_key(min, 'r', from);
    audit_key(max, 'r', to + 1);
    return catalogue_notes_walk(
        audit->catalogue,
        (struct engine_range){slice_of(min, sizeof min), slice_of(max, sizeof max)}, walk_visit,
        &walk, err);
}

static struct audit_ends ends_get(struct audit *audit)
{
    struct audit_ends ends = {0};

    WITH_LOCK (&audit->lock)
        ends = audit->ends;
    return ends;
}

/* --- Pages ----------------------------------------------------------------------------------- */

/* Records of one window, oldest first, as they came. */
struct window {
    const struct audit_filter *filter;
    struct arena *arena;
    struct slice found[WINDOW];
    uint64_t numbers[WINDOW];
    size_t count;
};

static bool text_is(struct slice document, struct slice name, struct slice wanted)
{
    struct document_value value;

    return !wanted.len || (document_find(document, name, &value) && value.type == DOCUMENT_STRING &&
                           slice_equal(value.text, wanted));
}

static int64_t number_of(struct slice document, struct slice name)
{
    struct document_value value;
    double number;

    if (!document_find(document, name, &value) || !document_to_double(&value, &number))
        return 0;
    return (int64_t)number;
}

static bool is_wanted(const struct audit_filter *filter, struct slice record)
{
    const struct document_limits limits = {0};
    CLEANUP(buf_done) struct buf read;
    struct slice document;
    struct error ignored;
    int64_t ms, status;

    buf_init(&read, BUF_DEFAULT_MAX);
    if (!document_json_read(record, &limits, &read, &ignored))
        return true; /* shown as it is: it is what verify will find */
    document = buf_slice(&read);
    ms = number_of(document, SLICE("ms_utc"));
    status = number_of(document, SLICE("status"));
    return ms >= filter->from_ms && (!filter->to_ms || ms < filter->to_ms) &&
           (!filter->status || status == filter->status) && (!filter->failed || status >= 400) &&
           text_is(document, SLICE("account"), filter->account) &&
           text_is(document, SLICE("database"), filter->database) &&
           text_is(document, SLICE("container"), filter->container) &&
           text_is(document, SLICE("operation"), filter->operation) &&
           text_is(document, SLICE("who"), filter->who) &&
           text_is(document, SLICE("from"), filter->from);
}

static bool window_visit(void *context, uint64_t number, struct slice record)
{
    struct window *window = context;

    if (is_wanted(window->filter, record)) {
        window->numbers[window->count] = number;
        window->found[window->count++] = arena_copy(window->arena, record);
    }
    return window->count < WINDOW;
}

bool audit_read(struct audit *audit, const struct audit_filter *filter, struct buf *out,
                uint64_t *ret_next, struct error *err)
{
    struct audit_ends ends = ends_get(audit);
    uint64_t next = filter->before ? MIN(filter->before, ends.last + 1) : ends.last + 1;
    size_t shown = 0, looked_at = 0;

    while (next > ends.first && shown < filter->max && looked_at < LOOKED_AT_MAX) {
        CLEANUP(arena_free) struct arena *arena = arena_new();
        uint64_t from = next - ends.first > WINDOW ? next - WINDOW : ends.first;
        struct window *window = arena_alloc_zero(arena, sizeof *window);

        window->filter = filter;
        window->arena = arena;
        if (!audit_walk(audit, from, next - 1, window_visit, window, err))
            return false;
        looked_at += WINDOW;
        next = from;
        for (size_t i = window->count; i > 0 && shown < filter->max; i--) {
            if (shown++)
                BUF_APPEND(out, ",");
            buf_append_slice(out, window->found[i - 1]);
            if (shown == filter->max)
                next = window->numbers[i - 1];
        }
    }
    *ret_next = next > ends.first ? next : 0;
    return true;
}

/* --- The chain ------------------------------------------------------------------------------- */

struct verification {
    struct audit_verdict *verdict;
    uint64_t expected_number;
    struct slice expected_hash;
    uint64_t next; /* number */
    uint8_t hash[AUDIT_HASH_BYTES];
};

static bool broken(struct verification *v, uint64_t number, const char *because)
{
    v->verdict->whole = false;
    v->verdict->broken_at = number;
    snprintf(v->verdict->because, sizeof v->verdict->because, "%s", because);
    return false;
}

/* Each record ends in ,"previous":"hash"}. */
static bool names_previous(struct slice record, const char *hash)
{
    static const char name[] = ",\"previous\":\"";
    size_t len = sizeof name - 1 + AUDIT_HASH_TEXT_SIZE - 1 + 2;
    const uint8_t *at = record.data + record.len - MIN(len, record.len);

    return record.len > len && memcmp(at, name, sizeof name - 1) == 0 &&
           memcmp(at + sizeof name - 1, hash, AUDIT_HASH_TEXT_SIZE - 1) == 0;
}

static bool numbers_itself(struct slice record, uint64_t number)
{
    char text[40];
    int len = snprintf(text, sizeof text, "{\"n\":%llu,", (unsigned long long)number);

    return record.len > (size_t)len && memcmp(record.data, text, (size_t)len) == 0;
}

static bool verify_visit(void *context, uint64_t number, struct slice record)
{
    struct verification *v = context;
    char hash[AUDIT_HASH_TEXT_SIZE];

    if (number != v->next)
        return broken(v, v->next, "the record is missing");
    audit_hash_text(v->hash, hash);
    if (!numbers_itself(record, number) || !names_previous(record, hash))
        return broken(v, number, "the record does not name the one before it as it is");
    audit_hash(record, v->hash);
    audit_hash_text(v->hash, hash);
    if (number == v->expected_number && !slice_equal_nocase(v->expected_hash, slice_of_text(hash)))
        return broken(v, number, "the record is not the one whose hash was expected");
    v->verdict->count++;
    v->next++;
    return true;
}

bool audit_verify(struct audit *audit, uint64_t expected_number, struct slice expected_hash,
                  struct audit_verdict *ret_verdict, struct error *err)
{
    struct audit_ends ends;
    struct verification v = {
        .verdict = ret_verdict, .expected_number = expected_number, .expected_hash = expected_hash};

    /* what is stored, not what this process remembers: somebody may have changed that too */
    if (!audit_ends_read(audit->catalogue, &ends, err))
        return false;
    *ret_verdict = (struct audit_verdict){
        .whole = true, .first = ends.last >= ends.first ? ends.first : 0, .last = ends.last};
    v.next = ends.first;
    memcpy(v.hash, ends.before, sizeof v.hash);
    if (!audit_walk(audit, ends.first, ends.last, verify_visit, &v, err))
        return false;
    audit_hash_text(v.hash, ret_verdict->hash);
    if (!ret_verdict->whole)
        return true;
    if (v.next != ends.last + 1)
        broken(&v, v.next, "the record is missing");
    else if (memcmp(v.hash, ends.hash, sizeof v.hash) != 0)
        broken(&v, ends.last, "the last record is not the one that was written");
    else if (expected_number > ends.last)
        broken(&v, expected_number, "the record that was expected is missing");
    return true;
}
