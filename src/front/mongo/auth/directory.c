/* A directory is read whole and anew after each change: users are few and change seldom, while
 * every connection looks at them. Directories of accounts stay in memory once they were read; one
 * without users is a few hundred bytes. */
#include "front/mongo/auth/directory.h"

#include "base/bytes.h"
#include "base/memory.h"
#include "base/thread.h"
#include "catalogue/notes.h"

#include <openssl/crypto.h>
#include <stdatomic.h>
#include <xxhash.h>

enum { KEY_LEN = 2 + 4 + 16, PREFIX_LEN = 6, VERSION = 1, INHERITED_MAX = 512 };

struct mongo_directory {
    atomic_uint refs;
    struct arena *arena; /* owns it */
    uint32_t account;
    struct mongo_principal *users, *roles; /* by database and name */
    size_t user_count, role_count;
};

struct entry {
    struct entry *next;
    struct mongo_directory *directory;
};

struct mongo_directories {
    struct catalogue *catalogue;
    struct mutex change; /* held for a whole change, its commit included; taken before lock */
    struct mutex lock;   /* of the entries; a leaf */
    struct entry *entries;
    atomic_uint_fast64_t generation;
};

/* --- One directory --------------------------------------------------------------------------- */

struct mongo_directory *mongo_directory_ref(struct mongo_directory *directory)
{
    atomic_fetch_add_explicit(&directory->refs, 1, memory_order_relaxed);
    return directory;
}

static void principals_forget(struct mongo_principal *list, size_t count)
{
    if (count)
        OPENSSL_cleanse(list, count * sizeof *list);
}

void mongo_directory_unref(struct mongo_directory *directory)
{
    if (!directory || atomic_fetch_sub(&directory->refs, 1) != 1)
        return;
    principals_forget(directory->users, directory->user_count);
    arena_free(directory->arena);
}

static int principal_compare(const struct mongo_principal *principal, struct slice database,
                             struct slice name)
{
    int order = slice_compare(principal->database, database);

    return order ? order : slice_compare(principal->name, name);
}

static const struct mongo_principal *find(const struct mongo_principal *list, size_t count,
                                          struct slice database, struct slice name)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = principal_compare(&list[middle], database, name);

        if (order == 0)
            return &list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct mongo_principal *mongo_directory_user(const struct mongo_directory *directory,
                                                   struct slice database, struct slice name)
{
    return find(directory->users, directory->user_count, database, name);
}

const struct mongo_principal *mongo_directory_role(const struct mongo_directory *directory,
                                                   struct slice database, struct slice name)
{
    return find(directory->roles, directory->role_count, database, name);
}

const struct mongo_principal *mongo_directory_users(const struct mongo_directory *directory,
                                                    size_t *ret_count)
{
    *ret_count = directory->user_count;
    return directory->users;
}

const struct mongo_principal *mongo_directory_roles(const struct mongo_directory *directory,
                                                    size_t *ret_count)
{
    *ret_count = directory->role_count;
    return directory->roles;
}

bool mongo_directory_has_role(const struct mongo_directory *directory, struct slice database,
                              struct slice name)
{
    return mongo_role_builtin(name, database, NULL) ||
           mongo_directory_role(directory, database, name);
}

/* --- What roles give ------------------------------------------------------------------------- */

struct resolving {
    const struct mongo_directory *directory;
    struct mongo_privileges *privileges;
    struct buf *out;
    const struct mongo_principal *seen[INHERITED_MAX];
    size_t seen_count;
    uint32_t appended;
};

static bool is_new(struct resolving *resolving, const struct mongo_principal *role)
{
    for (size_t i = 0; i < resolving->seen_count; i++)
        if (resolving->seen[i] == role)
            return false;
    if (resolving->seen_count == INHERITED_MAX)
        return false;
    resolving->seen[resolving->seen_count++] = role;
    return true;
}

static bool role_read(const struct document_value *value, struct slice *ret_database,
                      struct slice *ret_name)
{
    struct document_value name, database;

    if (value->type != DOCUMENT_OBJECT || !document_find(value->document, SLICE("role"), &name) ||
        name.type != DOCUMENT_STRING || !document_find(value->document, SLICE("db"), &database) ||
        database.type != DOCUMENT_STRING)
        return false;
    *ret_database = database.text;
    *ret_name = name.text;
    return true;
}

static void inherited_append(struct resolving *resolving, const struct document_value *role)
{
    char text[DOCUMENT_INDEX_SIZE];

    if (resolving->out)
        document_append(resolving->out, document_index_key(resolving->appended++, text), role);
}

/* Roles that were made are a graph; those seen before are passed over, so it may have circles. The
 * list of those seen is what is still to be followed. */
static void roles_follow(struct resolving *resolving, struct slice roles)
{
    struct slice database, name;
    struct document_iter iter;

    document_iter_init(&iter, roles);
    while (document_iter_next(&iter)) {
        const struct mongo_principal *made;

        if (!role_read(&iter.value, &database, &name))
            continue;
        if (mongo_role_builtin(name, database, resolving->privileges)) {
            inherited_append(resolving, &iter.value);
            continue;
        }
        made = mongo_directory_role(resolving->directory, database, name);
        if (made && is_new(resolving, made))
            inherited_append(resolving, &iter.value);
    }
}

void mongo_directory_resolve(const struct mongo_directory *directory, struct slice roles,
                             struct mongo_privileges *privileges, struct buf *ret_inherited)
{
    struct resolving resolving = {
        .directory = directory, .privileges = privileges, .out = ret_inherited};
    struct error unused;

    if (roles.data)
        roles_follow(&resolving, roles);
    for (size_t i = 0; i < resolving.seen_count; i++) {
        const struct mongo_principal *role = resolving.seen[i];
        /* checked when it was made */
        bool read =
            !role->privileges.data || mongo_privileges_read(role->privileges, privileges, &unused);

        (void)read;
        if (role->roles.data)
            roles_follow(&resolving, role->roles);
    }
}

/* --- Reading --------------------------------------------------------------------------------- */

static struct slice key_of(uint32_t account, const struct mongo_directory_write *write,
                           uint8_t ret_key[KEY_LEN])
{
    XXH3_state_t *state = XXH3_createState();
    XXH128_hash_t hash;

    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, write->database.data, write->database.len);
    XXH3_128bits_update(state, "", 1);
    XXH3_128bits_update(state, write->name.data, write->name.len);
    hash = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    ret_key[0] = CATALOGUE_NOTES_MONGO;
    ret_key[1] = write->role ? 'r' : 'u';
    bytes_put_be32(ret_key + 2, account);
    bytes_put_le64(ret_key + 6, hash.low64);
    bytes_put_le64(ret_key + 14, hash.high64);
    return slice_of(ret_key, KEY_LEN);
}

struct reading {
    struct mongo_directory *directory;
    struct mongo_principal *list;
    size_t count, capacity;
    bool role;
    bool later; /* a record of a later version */
};

static bool bytes_find(struct slice document, struct slice name, struct slice *ret_bytes)
{
    struct document_value value;

    if (!document_find(document, name, &value) || value.type != DOCUMENT_BINARY)
        return false;
    *ret_bytes = value.binary.bytes;
    return true;
}

static void credential_read(struct slice credentials, enum mongo_scram scram, struct slice name,
                            struct mongo_credential *ret_credential)
{
    struct document_value value, iterations;
    size_t len = mongo_scram_key_len(scram);
    struct slice stored, server, salt;
    int64_t count;

    if (!document_find(credentials, name, &value) || value.type != DOCUMENT_OBJECT ||
        !document_find(value.document, SLICE("iterationCount"), &iterations) ||
        !document_to_int64(&iterations, &count) || count < 1 || count > INT32_MAX ||
        !bytes_find(value.document, SLICE("salt"), &salt) || salt.len > MONGO_SALT_MAX ||
        !bytes_find(value.document, SLICE("storedKey"), &stored) || stored.len != len ||
        !bytes_find(value.document, SLICE("serverKey"), &server) || server.len != len)
        return;
    ret_credential->given = true;
    ret_credential->salt = salt;
    ret_credential->iterations = (uint32_t)count;
    memcpy(ret_credential->keys.stored, stored.data, len);
    memcpy(ret_credential->keys.server, server.data, len);
}

static struct slice array_find(struct slice document, struct slice name)
{
    struct document_value value;

    return document_find(document, name, &value) && value.type == DOCUMENT_ARRAY ? value.document
                                                                                 : SLICE_NONE;
}

/* Slices point into the record. False: it is none. */
static bool principal_read(struct slice record, bool role, struct mongo_principal *ret_principal)
{
    struct mongo_principal principal = {.record = record};
    struct document_value name, database, version, credentials;
    struct slice mark;
    int64_t number;

    if (!document_find(record, SLICE("v"), &version) || !document_to_int64(&version, &number) ||
        number != VERSION || !document_find(record, role ? SLICE("role") : SLICE("user"), &name) ||
        name.type != DOCUMENT_STRING || !document_find(record, SLICE("db"), &database) ||
        database.type != DOCUMENT_STRING)
        return false;
    principal.name = name.text;
    principal.database = database.text;
    principal.roles = array_find(record, SLICE("roles"));
    principal.privileges = array_find(record, SLICE("privileges"));
    if (bytes_find(record, SLICE("mark"), &mark) && mark.len == MONGO_MARK_LEN)
        memcpy(principal.mark, mark.data, MONGO_MARK_LEN);
    if (document_find(record, SLICE("credentials"), &credentials) &&
        credentials.type == DOCUMENT_OBJECT) {
        credential_read(credentials.document, MONGO_SCRAM_SHA_1, SLICE("SCRAM-SHA-1"),
                        &principal.credentials[MONGO_SCRAM_SHA_1]);
        credential_read(credentials.document, MONGO_SCRAM_SHA_256, SLICE("SCRAM-SHA-256"),
                        &principal.credentials[MONGO_SCRAM_SHA_256]);
    }
    *ret_principal = principal;
    return true;
}

static bool record_visit(void *context, struct slice key UNUSED, struct slice value)
{
    struct reading *reading = context;
    struct mongo_principal principal;

    if (reading->count == reading->capacity) {
        size_t capacity = reading->capacity ? 2 * reading->capacity : 16;
        struct mongo_principal *list =
            ARENA_ARRAY(reading->directory->arena, struct mongo_principal, capacity);

        if (reading->count)
            memcpy(list, reading->list, reading->count * sizeof *list);
        principals_forget(reading->list, reading->count);
        reading->list = list;
        reading->capacity = capacity;
    }
    if (principal_read(arena_copy(reading->directory->arena, value), reading->role, &principal))
        reading->list[reading->count++] = principal;
    else
        reading->later = true;
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct mongo_principal *left = a, *right = b;

    return principal_compare(left, right->database, right->name);
}

static bool list_read(struct mongo_directories *directories, struct mongo_directory *directory,
                      bool role, struct mongo_principal **ret_list, size_t *ret_count,
                      struct error *err)
{
    struct reading reading = {.directory = directory, .role = role};
    uint8_t min[PREFIX_LEN] = {CATALOGUE_NOTES_MONGO, role ? 'r' : 'u'}, max[PREFIX_LEN];

    bytes_put_be32(min + 2, directory->account);
    memcpy(max, min, sizeof min);
    bytes_put_be32(max + 2, directory->account + 1);
    if (!catalogue_notes_walk(
            directories->catalogue,
            (struct engine_range){slice_of(min, sizeof min), slice_of(max, sizeof max)},
            record_visit, &reading, err))
        return false;
    if (reading.later)
        return error_set(err, ERROR_STORE_VERSION,
                         "users or roles of the MongoDB API were written by a later version");
    if (reading.count)
        qsort(reading.list, reading.count, sizeof *reading.list, by_name);
    *ret_list = reading.list;
    *ret_count = reading.count;
    return true;
}

static bool directory_read(struct mongo_directories *directories, uint32_t account,
                           struct mongo_directory **ret_directory, struct error *err)
{
    struct arena *arena = arena_new();
    struct mongo_directory *directory = ARENA_NEW(arena, struct mongo_directory);

    directory->arena = arena;
    directory->account = account;
    atomic_init(&directory->refs, 1);
    if (!list_read(directories, directory, false, &directory->users, &directory->user_count, err) ||
        !list_read(directories, directory, true, &directory->roles, &directory->role_count, err)) {
        mongo_directory_unref(directory);
        return false;
    }
    *ret_directory = directory;
    return true;
}

/* --- All of them ----------------------------------------------------------------------------- */

struct mongo_directories *mongo_directories_new(struct catalogue *catalogue)
{
    struct mongo_directories *directories = MEMORY_NEW(struct mongo_directories);

    directories->catalogue = catalogue;
    mutex_init(&directories->change);
    mutex_init(&directories->lock);
    atomic_init(&directories->generation, 1);
    return directories;
}

void mongo_directories_free(struct mongo_directories *directories)
{
    if (!directories)
        return;
    while (directories->entries) {
        struct entry *entry = directories->entries;

        directories->entries = entry->next;
        mongo_directory_unref(entry->directory);
        memory_free(entry);
    }
    mutex_done(&directories->lock);
    mutex_done(&directories->change);
    memory_free(directories);
}

uint64_t mongo_directories_generation(const struct mongo_directories *directories)
{
    return atomic_load(&directories->generation);
}

/* Under the lock. */
static struct entry *entry_find(struct mongo_directories *directories, uint32_t account)
{
    struct entry *entry = directories->entries;

    while (entry && entry->directory->account != account)
        entry = entry->next;
    return entry;
}

static struct mongo_directory *directory_get(struct mongo_directories *directories,
                                             uint32_t account)
{
    struct mongo_directory *directory = NULL;
    struct entry *entry;

    mutex_lock(&directories->lock);
    entry = entry_find(directories, account);
    if (entry)
        directory = mongo_directory_ref(entry->directory);
    mutex_unlock(&directories->lock);
    return directory;
}

/* Takes it over. */
static void directory_publish(struct mongo_directories *directories,
                              struct mongo_directory *directory)
{
    struct mongo_directory *before = NULL;
    struct entry *entry;

    mutex_lock(&directories->lock);
    entry = entry_find(directories, directory->account);
    if (entry) {
        before = entry->directory;
    } else {
        entry = MEMORY_NEW(struct entry);
        entry->next = directories->entries;
        directories->entries = entry;
    }
    entry->directory = directory;
    mutex_unlock(&directories->lock);
    atomic_fetch_add(&directories->generation, 1);
    mongo_directory_unref(before);
}

/* Under the change lock: else one read before a change could be published behind it. */
static bool directory_reload(struct mongo_directories *directories, uint32_t account,
                             struct error *err)
{
    struct mongo_directory *directory;

    if (!directory_read(directories, account, &directory, err))
        return false;
    directory_publish(directories, directory);
    return true;
}

bool mongo_directory_open(struct mongo_directories *directories, uint32_t account, bool may_block,
                          struct mongo_directory **ret_directory, struct error *err)
{
    bool fine = true;

    *ret_directory = directory_get(directories, account);
    if (*ret_directory || !may_block)
        return true;
    mutex_lock(&directories->change);
    *ret_directory = directory_get(directories, account);
    if (!*ret_directory) {
        fine = directory_reload(directories, account, err);
        if (fine)
            *ret_directory = directory_get(directories, account);
    }
    mutex_unlock(&directories->change);
    return fine;
}

/* --- Changing -------------------------------------------------------------------------------- */

bool mongo_directory_change_begin(struct mongo_directories *directories, uint32_t account,
                                  struct mongo_directory **ret_directory, struct error *err)
{
    mutex_lock(&directories->change);
    *ret_directory = directory_get(directories, account);
    if (!*ret_directory) {
        if (!directory_reload(directories, account, err)) {
            mutex_unlock(&directories->change);
            return false;
        }
        *ret_directory = directory_get(directories, account);
    }
    return true;
}

void mongo_directory_change_end(struct mongo_directories *directories)
{
    mutex_unlock(&directories->change);
}

static bool write_check(const struct mongo_directory *directory,
                        const struct mongo_directory_write *write, struct error *err)
{
    size_t count = write->role ? directory->role_count : directory->user_count;
    bool there = write->role ? mongo_directory_role(directory, write->database, write->name)
                             : mongo_directory_user(directory, write->database, write->name);

    if (!write->record.data)
        return true;
    if (write->record.len > MONGO_RECORD_BYTES_MAX)
        return error_set(err, ERROR_TOO_LARGE, "a user or role takes at most %d bytes",
                         MONGO_RECORD_BYTES_MAX);
    return there || count < MONGO_USERS_MAX ||
           error_set(err, ERROR_LIMIT_REACHED, "an account has at most %d users and as many roles",
                     MONGO_USERS_MAX);
}

bool mongo_directory_write(struct mongo_directories *directories,
                           const struct mongo_directory *directory,
                           const struct mongo_directory_write *writes, size_t count,
                           struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct engine_op *ops = ARENA_ARRAY(arena, struct engine_op, count + 1);

    for (size_t i = 0; i < count; i++) {
        uint8_t *key = arena_alloc(arena, KEY_LEN);

        if (!write_check(directory, &writes[i], err))
            return false;
        ops[i] = (struct engine_op){.kind = writes[i].record.data ? ENGINE_PUT : ENGINE_DELETE,
                                    .key = key_of(directory->account, &writes[i], key),
                                    .value = writes[i].record};
    }
    /* whatever became of a write that failed, what is in the store is what counts */
    bool written = catalogue_notes_write(directories->catalogue, ops, count, err);
    struct error again;

    return directory_reload(directories, directory->account, written ? err : &again) && written;
}
