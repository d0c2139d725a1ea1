/* A note: w | tag, 16 | hash of the names, 8 -> three names, each behind its length in 2 bytes. In
 * memory a list: who withholds something is rare, and nobody looks while there is none. */
#include "catalogue/withheld.h"

#include "base/bytes.h"
#include "catalogue/catalogue_private.h"
#include "catalogue/container_usage.h"
#include "catalogue/notes.h"

#include <stdlib.h>
#include <xxhash.h>

enum { KEY_LEN = 1 + CATALOGUE_TAG_LEN + 8, NOTES_MAX = 4096, TOLD_BYTES_MAX = 1024 * 1024 };

struct catalogue_withheld {
    uint8_t key[KEY_LEN];
    uint8_t *names; /* owned: the value of its note */
    size_t names_len;
    struct buf told; /* number, 8 | length, 4 | a record of the history, encoded; once for each */
    struct catalogue_withheld *next;
};

/* --- Notes ----------------------------------------------------------------------------------- */

static void name_append(struct slice name, struct buf *out)
{
    uint8_t length[2];

    bytes_put_be16(length, (uint16_t)name.len);
    buf_append(out, length, sizeof length);
    buf_append_slice(out, name);
}

static void names_append(const struct catalogue_name *name, struct buf *out)
{
    name_append(name->account, out);
    name_append(name->database, out);
    name_append(name->container, out);
}

static bool name_read(struct slice *rest, struct slice *ret_name)
{
    size_t length;

    if (rest->len < 2)
        return false;
    length = bytes_get_be16(rest->data);
    if (rest->len < 2 + length)
        return false;
    *ret_name = slice_of(rest->data + 2, length);
    *rest = slice_skip(*rest, 2 + length);
    return true;
}

static bool names_read(struct slice value, struct catalogue_name *ret_name)
{
    return name_read(&value, &ret_name->account) && name_read(&value, &ret_name->database) &&
           name_read(&value, &ret_name->container) && !value.len;
}

/* --- Withholding ----------------------------------------------------------------------------- */

static struct catalogue_withheld *withheld_new(const uint8_t tag[CATALOGUE_TAG_LEN],
                                               struct slice names)
{
    struct catalogue_withheld *withheld = MEMORY_NEW(struct catalogue_withheld);

    withheld->key[0] = CATALOGUE_NOTES_WITHHELD;
    memcpy(withheld->key + 1, tag, CATALOGUE_TAG_LEN);
    bytes_put_be64(withheld->key + 1 + CATALOGUE_TAG_LEN, XXH3_64bits(names.data, names.len));
    withheld->names = memory_alloc(names.len);
    memcpy(withheld->names, names.data, names.len);
    withheld->names_len = names.len;
    buf_init(&withheld->told, TOLD_BYTES_MAX);
    return withheld;
}

static void withheld_free(struct catalogue_withheld *withheld)
{
    buf_done(&withheld->told);
    memory_free(withheld->names);
    memory_free(withheld);
}

static void list_free(struct catalogue_withheld *list)
{
    while (list) {
        struct catalogue_withheld *next = list->next;

        withheld_free(list);
        list = next;
    }
}

void catalogue_withheld_done(struct catalogue *catalogue)
{
    list_free(catalogue->withheld);
    catalogue->withheld = NULL;
}

static void withheld_link(struct catalogue *catalogue, struct catalogue_withheld *withheld)
{
    WITH_LOCK (&catalogue->withheld_lock) {
        withheld->next = catalogue->withheld;
        catalogue->withheld = withheld;
        atomic_fetch_add(&catalogue->withheld_count, 1);
    }
}

bool catalogue_withhold(struct catalogue *catalogue, const struct catalogue_name *name,
                        const uint8_t tag[CATALOGUE_TAG_LEN], struct error *err)
{
    struct catalogue_withheld *withheld;
    CLEANUP(buf_done) struct buf names;
    struct engine_op op;

    buf_init(&names, BUF_DEFAULT_MAX);
    names_append(name, &names);
    withheld = withheld_new(tag, buf_slice(&names));
    op = (struct engine_op){ENGINE_PUT, slice_of(withheld->key, KEY_LEN), buf_slice(&names)};
    if (!catalogue_notes_write(catalogue, &op, 1, err)) {
        withheld_free(withheld);
        return false;
    }
    withheld_link(catalogue, withheld);
    return true;
}

/* Takes those whose keys begin so out of the list. */
static struct catalogue_withheld *begun_take(struct catalogue *catalogue, struct slice begin,
                                             size_t *ret_count)
{
    struct catalogue_withheld *taken = NULL;

    *ret_count = 0;
    WITH_LOCK (&catalogue->withheld_lock)
        for (struct catalogue_withheld **link = &catalogue->withheld; *link;) {
            struct catalogue_withheld *withheld = *link;

            if (memcmp(withheld->key, begin.data, begin.len) != 0) {
                link = &withheld->next;
                continue;
            }
            *link = withheld->next;
            withheld->next = taken;
            taken = withheld;
            ++*ret_count;
            atomic_fetch_sub(&catalogue->withheld_count, 1);
        }
    return taken;
}

/* One commit for all of them: they are released together, whatever happens. */
static void release(struct catalogue *catalogue, struct slice begin)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    size_t count, at = 0;
    struct catalogue_withheld *taken = begun_take(catalogue, begin, &count);
    struct engine_op *ops = ARENA_ARRAY(arena, struct engine_op, count + 1);
    struct error ignored;
    bool written;

    for (struct catalogue_withheld *withheld = taken; withheld; withheld = withheld->next)
        ops[at++] =
            (struct engine_op){.kind = ENGINE_DELETE, .key = slice_of(withheld->key, KEY_LEN)};
    written = catalogue_notes_write(catalogue, ops, count, &ignored);
    (void)written;
    list_free(taken);
}

void catalogue_release(struct catalogue *catalogue, const uint8_t tag[CATALOGUE_TAG_LEN])
{
    uint8_t begin[1 + CATALOGUE_TAG_LEN] = {CATALOGUE_NOTES_WITHHELD};

    memcpy(begin + 1, tag, CATALOGUE_TAG_LEN);
    release(catalogue, slice_of(begin, sizeof begin));
}

void catalogue_release_one(struct catalogue *catalogue, const struct catalogue_name *name,
                           const uint8_t tag[CATALOGUE_TAG_LEN])
{
    CLEANUP(buf_done) struct buf names;
    struct catalogue_withheld *withheld;

    buf_init(&names, BUF_DEFAULT_MAX);
    names_append(name, &names);
    withheld = withheld_new(tag, buf_slice(&names));
    release(catalogue, slice_of(withheld->key, KEY_LEN));
    withheld_free(withheld);
}

/* Under the lock. */
static struct catalogue_withheld *named_find(struct catalogue *catalogue, struct slice names)
{
    struct catalogue_withheld *withheld = catalogue->withheld;

    while (withheld && !slice_equal(slice_of(withheld->names, withheld->names_len), names))
        withheld = withheld->next;
    return withheld;
}

bool catalogue_is_withheld(struct catalogue *catalogue, const struct catalogue_name *name)
{
    CLEANUP(buf_done) struct buf names;
    bool found = false;

    buf_init(&names, BUF_DEFAULT_MAX);
    if (!atomic_load(&catalogue->withheld_count))
        return false;
    names_append(name, &names);
    WITH_LOCK (&catalogue->withheld_lock)
        found = named_find(catalogue, buf_slice(&names));
    return found;
}

/* --- Telling --------------------------------------------------------------------------------- */

/* That it goes again is told to nobody: nobody heard of it. */
bool catalogue_withheld_tell(struct catalogue *catalogue, const struct catalogue_name *name,
                             const struct history_record *record)
{
    CLEANUP(arena_free) struct arena *arena = NULL;
    CLEANUP(buf_done) struct buf names;
    struct catalogue_withheld *withheld = NULL;

    buf_init(&names, BUF_DEFAULT_MAX);
    if (!atomic_load(&catalogue->withheld_count))
        return false;
    arena = arena_new();
    names_append(name, &names);
    WITH_LOCK (&catalogue->withheld_lock) {
        withheld = named_find(catalogue, buf_slice(&names));
        if (withheld && record->kind != HISTORY_DROP) {
            struct slice encoded = history_record_encode(record, arena);

            buf_append_be64(&withheld->told, catalogue->withheld_told++);
            buf_append_be32(&withheld->told, (uint32_t)encoded.len);
            buf_append_slice(&withheld->told, encoded);
        }
    }
    return withheld;
}

struct told {
    uint64_t number;
    struct slice record;
};

static int told_compare(const void *a, const void *b)
{
    const struct told *left = a, *right = b;

    return (left->number > right->number) - (left->number < right->number);
}

/* One buffer of those of a tag, copied; what did not fit into it is not told. */
static void told_collect(struct slice rest, struct told **list, size_t *count, size_t *capacity,
                         struct arena *arena)
{
    enum { HEAD = 12 };

    rest = arena_copy(arena, rest);
    while (rest.len >= HEAD && rest.len - HEAD >= bytes_get_be32(rest.data + 8)) {
        size_t len = bytes_get_be32(rest.data + 8);

        if (*count == *capacity) {
            struct told *more = ARENA_ARRAY(arena, struct told, *capacity * 2);

            memcpy(more, *list, *count * sizeof *more);
            *list = more;
            *capacity *= 2;
        }
        (*list)[(*count)++] =
            (struct told){bytes_get_be64(rest.data), slice_of(rest.data + HEAD, len)};
        rest = slice_skip(rest, HEAD + len);
    }
}

const struct history_record *catalogue_withheld_tellings(struct catalogue *catalogue,
                                                         const uint8_t tag[CATALOGUE_TAG_LEN],
                                                         struct arena *arena, size_t *ret_count)
{
    enum { FEW = 8 };
    struct told *list = ARENA_ARRAY(arena, struct told, FEW);
    size_t count = 0, capacity = FEW;
    struct history_record *records;
    struct slice key = history_key_encode((struct history_place){0}, arena);
    struct error ignored;

    *ret_count = 0;
    WITH_LOCK (&catalogue->withheld_lock)
        for (const struct catalogue_withheld *withheld = catalogue->withheld; withheld;
             withheld = withheld->next)
            if (memcmp(withheld->key + 1, tag, CATALOGUE_TAG_LEN) == 0)
                told_collect(buf_slice(&withheld->told), &list, &count, &capacity, arena);
    qsort(list, count, sizeof *list, told_compare);
    records = ARENA_ARRAY(arena, struct history_record, count + 1);
    for (size_t i = 0; i < count; i++)
        if (history_record_decode(key, list[i].record, &records[*ret_count], &ignored))
            records[(*ret_count)++].origin.kept = true;
    return records;
}

/* --- The start ------------------------------------------------------------------------------- */

struct note {
    struct slice key;
    struct catalogue_name name;
};

struct found_notes {
    struct arena *arena;
    struct note *list;
    size_t count;
};

static bool note_collect(void *context, struct slice key, struct slice value)
{
    struct found_notes *notes = context;
    struct note *note = &notes->list[notes->count];

    note->key = arena_copy(notes->arena, key);
    if (key.len == KEY_LEN && names_read(arena_copy(notes->arena, value), &note->name))
        notes->count++;
    return notes->count < NOTES_MAX;
}

static bool same_tag(const struct note *a, const struct note *b)
{
    return memcmp(a->key.data, b->key.data, 1 + CATALOGUE_TAG_LEN) == 0;
}

/* *ret_items: of one that is there; 0 of one that is not. */
static bool items_count(struct catalogue *catalogue, const struct note *note, struct arena *arena,
                        uint64_t *ret_items, struct error *err)
{
    CLEANUP(container_unref) struct container *container = NULL;
    struct container_usage usage = {0};

    *ret_items = 0;
    if (!catalogue_container_open(catalogue, note->name.account, note->name.database,
                                  note->name.container, &container, err))
        return err->code == ERROR_NOT_FOUND || err->code == ERROR_OWNER_NOT_FOUND;
    if (!container_usage_all(container, arena, &usage, err))
        return false;
    *ret_items = usage.items;
    return true;
}

/* Nobody has heard of it, so it goes without a word: as one that is withheld. */
static bool note_drop(struct catalogue *catalogue, const struct note *note, struct error *err)
{
    CLEANUP(buf_done) struct buf names;
    size_t count;
    bool dropped;

    buf_init(&names, BUF_DEFAULT_MAX);
    names_append(&note->name, &names);
    withheld_link(catalogue, withheld_new(note->key.data + 1, buf_slice(&names)));
    dropped = catalogue_container_drop(catalogue, note->name.account, note->name.database,
                                       note->name.container, SLICE_NONE, err);
    list_free(begun_take(catalogue, note->key, &count));
    return dropped || err->code == ERROR_NOT_FOUND || err->code == ERROR_OWNER_NOT_FOUND;
}

/* The notes of one tag. What cannot be asked now is left for another start. */
static bool tag_recover(struct catalogue *catalogue, const struct note *notes, size_t count,
                        struct arena *arena, struct error *err)
{
    struct engine_op *ops = ARENA_ARRAY(arena, struct engine_op, count);
    uint64_t items = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t some;

        if (!items_count(catalogue, &notes[i], arena, &some, err))
            return false;
        items += some;
        ops[i] = (struct engine_op){.kind = ENGINE_DELETE, .key = notes[i].key};
    }
    for (size_t i = 0; i < count && !items; i++)
        if (!note_drop(catalogue, &notes[i], err))
            return false;
    return catalogue_notes_write(catalogue, ops, count, err);
}

void catalogue_withheld_recover(struct catalogue *catalogue)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    const uint8_t min[] = {CATALOGUE_NOTES_WITHHELD}, max[] = {CATALOGUE_NOTES_WITHHELD + 1};
    struct found_notes notes = {.arena = arena,
                                .list = ARENA_ARRAY(arena, struct note, NOTES_MAX + 1)};
    const struct engine_range range = {slice_of(min, sizeof min), slice_of(max, sizeof max)};
    struct error ignored;

    if (!catalogue_notes_walk(catalogue, range, note_collect, &notes, &ignored))
        return;
    for (size_t at = 0; at < notes.count;) {
        size_t count = 1;

        while (at + count < notes.count && same_tag(&notes.list[at], &notes.list[at + count]))
            count++;
        if (!tag_recover(catalogue, notes.list + at, count, arena, &ignored))
            log_error(catalogue->log, "a container of a transaction that never ended stays",
                      &ignored);
        at += count;
    }
}
