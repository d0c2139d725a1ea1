/* Directory: the users and roles of an account, by database and name.
 *
 * They are kept as notes beside the catalogue, one for each:
 *
 *     m u account hash  {v: 1, user, db, mark, roles: [{role, db}], credentials: {mechanism:
 *                       {iterationCount, salt, storedKey, serverKey}}, customData}
 *     m r account hash  {v: 1, role, db, roles: [{role, db}], privileges: [{resource, actions}]}
 *
 * and whole in memory once asked for: what readers hold is immutable and counted. Of a password
 * only what SCRAM needs to check it is kept. mark is random and new with every password, so that
 * connections that were let in by the one before are known. Any thread. */
#pragma once

#include "catalogue/catalogue.h"
#include "front/mongo/auth/privilege.h"
#include "front/mongo/auth/scram.h"

enum {
    MONGO_USERS_MAX = 1000, /* of an account; and as many roles */
    MONGO_RECORD_BYTES_MAX = 16 * 1024,
    MONGO_USER_NAME_MAX = 128,
    MONGO_MARK_LEN = 16,
};

struct mongo_credential {
    bool given;
    struct slice salt;
    uint32_t iterations;
    struct mongo_scram_keys keys;
};

/* A user or a role. Slices are borrowed from the directory. */
struct mongo_principal {
    struct slice name, database, record;
    struct slice roles;      /* BSON: an array of {role, db} */
    struct slice privileges; /* BSON; of a role */
    uint8_t mark[MONGO_MARK_LEN];
    struct mongo_credential credentials[MONGO_SCRAMS];
};

struct mongo_directory; /* opaque, shared, immutable */

struct mongo_directory *mongo_directory_ref(struct mongo_directory *directory);
void mongo_directory_unref(struct mongo_directory *directory); /* NULL is fine */
CLEANUP_FN(struct mongo_directory *, mongo_directory_unref)

/* NULL: there is none. */
const struct mongo_principal *mongo_directory_user(const struct mongo_directory *directory,
                                                   struct slice database, struct slice name);
const struct mongo_principal *mongo_directory_role(const struct mongo_directory *directory,
                                                   struct slice database, struct slice name);
const struct mongo_principal *mongo_directory_users(const struct mongo_directory *directory,
                                                    size_t *ret_count);
const struct mongo_principal *mongo_directory_roles(const struct mongo_directory *directory,
                                                    size_t *ret_count);

/* Is it a role, built in or made? */
bool mongo_directory_has_role(const struct mongo_directory *directory, struct slice database,
                              struct slice name);

/* What a list of roles gives, those they inherit included, and (unless NULL) these as a list of
 * {role, db}, appended as elements of an array. Roles that are no more give nothing. */
void mongo_directory_resolve(const struct mongo_directory *directory, struct slice roles,
                             struct mongo_privileges *privileges, struct buf *ret_inherited);

/* --- All of them ----------------------------------------------------------------------------- */

struct mongo_directories; /* opaque, owned by the front */

struct mongo_directories *mongo_directories_new(struct catalogue *catalogue);
void mongo_directories_free(struct mongo_directories *directories); /* NULL is fine */
CLEANUP_FN(struct mongo_directories *, mongo_directories_free)

/* Changes whenever any directory does: what was read under the same number still holds. */
uint64_t mongo_directories_generation(const struct mongo_directories *directories);

/* The directory of an account, as of now; read from the store if it was not asked for before, which
 * blocks. may_block false: NULL then. The caller owns one reference. */
NODISCARD bool mongo_directory_open(struct mongo_directories *directories, uint32_t account,
                                    bool may_block, struct mongo_directory **ret_directory,
                                    struct error *err);

/* --- Changing -------------------------------------------------------------------------------- */

/* A change of an account's directory: one at a time, from reading it to writing. Blocks. */
NODISCARD bool mongo_directory_change_begin(struct mongo_directories *directories, uint32_t account,
                                            struct mongo_directory **ret_directory,
                                            struct error *err);
void mongo_directory_change_end(struct mongo_directories *directories);

/* One record that is written, or (data NULL) removed. */
struct mongo_directory_write {
    bool role;
    struct slice database, name, record;
};
/* All of them in one commit. ERROR_LIMIT_REACHED, ERROR_TOO_LARGE. */
NODISCARD bool mongo_directory_write(struct mongo_directories *directories,
                                     const struct mongo_directory *directory,
                                     const struct mongo_directory_write *writes, size_t count,
                                     struct error *err);
