/* Notes of the catalogue, numbers big-endian:
 *
 *     a | 'r' | number: 8  -> record: a JSON object, {"n":number,"time":...,"previous":hash,...}
 *     a | 'e' | 0: 8       -> ends: format 1: 1 byte, first: 8, last: 8, bytes: 8, before: 32,
 * hash: 32
 *
 * The hash of a record is that of its text, and stands in the next one as "previous". A thread of
 * its own writes: all that waits in one commit together with the ends, so that a crash leaves a
 * whole chain, and a request that waits for its record waits for one commit. */
#include "observe/audit_private.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "catalogue/notes.h"

#include <openssl/evp.h>

enum {
    ENDS_FORMAT = 1,
    ENDS_BYTES = 1 + 3 * 8 + 2 * AUDIT_HASH_BYTES,
    STRANGERS_PER_SECOND = 20, /* a flood of bad keys must not push out the rest of the record */
};

void audit_key(uint8_t key[AUDIT_KEY_BYTES], uint8_t kind, uint64_t number)
{
    key[0] = CATALOGUE_NOTES_AUDIT;
    key[1] = kind;
    bytes_put_be64(key + 2, number);
}

void audit_hash(struct slice record, uint8_t ret_hash[AUDIT_HASH_BYTES])
{
    unsigned len = AUDIT_HASH_BYTES;
    int made = EVP_Digest(record.data, record.len, ret_hash, &len, EVP_sha256(), NULL);

    assert(made == 1 && len == AUDIT_HASH_BYTES);
}

void audit_hash_text(const uint8_t hash[AUDIT_HASH_BYTES], char ret_text[AUDIT_HASH_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < AUDIT_HASH_BYTES; i++) {
        ret_text[2 * i] = digits[hash[i] >> 4];
        ret_text[2 * i + 1] = digits[hash[i] & 15];
    }
    ret_text[AUDIT_HASH_TEXT_SIZE - 1] = '\0';
}

bool audit_ends_read(struct catalogue *catalogue, struct audit_ends *ret_ends, struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    uint8_t key[AUDIT_KEY_BYTES];
    struct engine_value value;

    audit_key(key, 'e', 0);
    if (!catalogue_notes_get(catalogue, slice_of(key, sizeof key), arena, &value, err))
        return false;
    *ret_ends = (struct audit_ends){.first = 1};
    if (value.found != ENGINE_FOUND)
        return true;
    if (value.bytes.len != ENDS_BYTES || value.bytes.data[0] != ENDS_FORMAT)
        return error_set(err, ERROR_STORE_CORRUPT, "the note about the audit's ends is damaged");
    ret_ends->first = bytes_get_be64(value.bytes.data + 1);
    ret_ends->last = bytes_get_be64(value.bytes.data + 9);
    ret_ends->bytes = bytes_get_be64(value.bytes.data + 17);
    memcpy(ret_ends->before, value.bytes.data + 25, AUDIT_HASH_BYTES);
    memcpy(ret_ends->hash, value.bytes.data + 25 + AUDIT_HASH_BYTES, AUDIT_HASH_BYTES);
    return true;
}

/* --- What is recorded ------------------------------------------------------------------------ */

static bool list_next(struct slice *rest, struct slice *ret_part)
{
    struct slice part, tail = SLICE_NONE;

    if (!rest->len)
        return false;
    part = *rest;
    (void)slice_split(*rest, ',', &part, &tail);
    *rest = tail;
    while (part.len && part.data[0] == ' ')
        part = slice_skip(part, 1);
    while (part.len && part.data[part.len - 1] == ' ')
        part.len--;
    *ret_part = part;
    return true;
}

bool audit_containers_check(const char *list, struct error *err)
{
    struct slice rest = slice_of_text(list), part, database, container;

    while (list_next(&rest, &part))
        if (!slice_split(part, '/', &database, &container) || !database.len || !container.len ||
            memchr(container.data, '/', container.len))
            return error_set(err, ERROR_CONFIGURATION,
                             "audit.containers: \"%.*s\" is not of the form DATABASE/CONTAINER or "
                             "DATABASE/*",
                             SLICE_ARG(part));
    return true;
}

static bool is_listed(const struct audit *audit, const struct observed_request *request)
{
    struct slice rest = slice_of_text(audit->containers), part, database, container;

    while (list_next(&rest, &part))
        if (slice_split(part, '/', &database, &container) &&
            slice_equal(database, request->database) &&
            (slice_equal(container, SLICE("*")) || slice_equal(container, request->container)))
            return true;
    return false;
}

/* Whoever looks at keys has them from then on. */
static bool shows_keys(const struct observed_request *request)
{
    return request->observed.operation == OBSERVED_ADMIN && request->name &&
           strcmp(request->name, "accounts/*/keys") == 0;
}

static bool is_recorded(const struct audit *audit, const struct observed_request *request)
{
    enum observed_operation operation = request->observed.operation;

    if (request->status == 401)
        return true;
    if (observed_operation_is_administration(operation))
        return observed_operation_changes(operation) || shows_keys(request);
    if (!audit->containers[0] || !request->container.len)
        return false;
    return (audit->reads || observed_operation_changes(operation)) && is_listed(audit, request);
}

/* --- Telling --------------------------------------------------------------------------------- */

/* Under the lock: is it one too many of those whom nobody let in? */
static bool is_flood(struct audit *audit, const struct observed_request *request)
{
    int64_t second = request->ended_ms / 1000;

    if (request->status != 401)
        return false;
    if (second != audit->stranger_second) {
        audit->stranger_second = second;
        audit->strangers = 0;
    }
    return audit->strangers++ >= STRANGERS_PER_SECOND;
}

static void waiting_add(struct audit *audit, struct audit_waiting *waiting)
{
    waiting->ticket = ++audit->tickets;
    waiting->lost = audit->lost_untold;
    audit->lost_untold = 0;
    *audit->tail = waiting;
    audit->tail = &waiting->next;
    audit->waiting++;
    condition_signal(&audit->filled);
}

static void record_tell(struct audit *audit, const struct observed_request *request)
{
    CLEANUP(buf_done) struct buf members;
    struct audit_waiting *waiting;
    char when[CLOCK_ISO_SIZE];

    buf_init(&members, AUDIT_RECORD_BYTES_MAX / 2);
    clock_iso(request->ended_ms, when);
    buf_printf(&members, ",\"time\":\"%s\",\"ms_utc\":%lld", when, (long long)request->ended_ms);
    observed_request_json(request, &members);
    waiting = memory_alloc(sizeof *waiting + members.len);
    *waiting = (struct audit_waiting){.len = members.len};
    memcpy(waiting->members, members.data, members.len);
    WITH_LOCK (&audit->lock) {
        if (buf_overflowed(&members) || audit->waiting >= audit->waiting_max ||
            is_flood(audit, request)) {
            audit->lost++;
            audit->lost_untold++;
            memory_free(waiting);
        } else {
            uint64_t ticket;

            waiting_add(audit, waiting);
            ticket = waiting->ticket;
            while (request->may_block && audit->done < ticket && !audit->failing)
                condition_wait(&audit->written, &audit->lock);
        }
    }
}

void audit_tell(struct audit *audit, const struct observed_request *request)
{
    if (is_recorded(audit, request))
        record_tell(audit, request);
}

void audit_figures(struct audit *audit, struct audit_figures *ret_figures)
{
    WITH_LOCK (&audit->lock)
        *ret_figures = (struct audit_figures){.records = audit->ends.last + 1 - audit->ends.first,
                                              .bytes = audit->ends.bytes,
                                              .lost = audit->lost};
}

/* --- Life ------------------------------------------------------------------------------------ */

bool audit_new(const struct audit_options *options, struct audit **ret_audit, struct error *err)
{
    struct audit_ends ends;
    struct audit *audit;

    if (!audit_ends_read(options->catalogue, &ends, err))
        return false;
    audit = MEMORY_NEW(struct audit);
    audit->catalogue = options->catalogue;
    audit->clock = options->clock;
    audit->log = options->log;
    audit->containers = options->containers ? options->containers : "";
    audit->reads = options->reads;
    audit->bytes_max = options->bytes_max;
    audit->age_ms_max = options->age_ms_max;
    audit->waiting_max = options->waiting_max;
    audit->ends = ends;
    audit->tail = &audit->head;
    mutex_init(&audit->lock);
    condition_init(&audit->filled);
    condition_init(&audit->written);
    thread_start(&audit->thread, "audit", audit_write, audit);
    *ret_audit = audit;
    return true;
}

void audit_free(struct audit *audit)
{
    if (!audit)
        return;
    WITH_LOCK (&audit->lock) {
        audit->stopping = true;
        condition_signal(&audit->filled);
    }
    thread_join(&audit->thread);
    while (audit->head) {
        struct audit_waiting *waiting = audit->head;

        audit->head = waiting->next;
        memory_free(waiting);
    }
    condition_done(&audit->filled);
    condition_done(&audit->written);
    mutex_done(&audit->lock);
    memory_free(audit);
}
