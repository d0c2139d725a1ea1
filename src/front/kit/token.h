/* Resource tokens as far as all fronts see them: a claim that was signed here with the primary key
 * of an account, and the permission it was made of. What a token opens over REST is rest/token.h's
 * to say; administration takes none, but tells who made one up from who has one.
 *
 * A token names its permission, the state the permission was in, the resource by number, and the
 * time it is good for. It stops working when its time is over, when its permission is changed or
 * deleted, when its resource is deleted or made anew, and when the primary key is rotated. Nothing
 * is stored for it. */
#pragma once

#include "catalogue/child.h"
#include "front/account.h"

struct front_claim {
    uint32_t account, database, user; /* numbers of the catalogue, of the permission */
    uint64_t permission, lsn;
    bool all;     /* else reading alone */
    uint8_t kind; /* of the resource; 0: it did not exist */
    uint32_t resource_database, resource_owner;
    uint64_t resource_number;
    int64_t start_s, expiry_s;
};

/* The kind of a claim on a container, whose number is resource_owner. */
enum { FRONT_TOKEN_CONTAINER = 3 };

/* "type=resource&ver=1&sig=...", in the arena. */
struct slice front_token_make(const struct account_keys *keys, const struct front_claim *claim,
                              struct arena *arena);

/* The claim of a token, by what stands behind "sig=". ERROR_UNAUTHORIZED: it is malformed, or was
 * not made for this account. */
NODISCARD bool front_token_open(const struct front_account *account, struct slice sig,
                                struct front_claim *ret_claim, struct error *err);

/* The permission that the claim was made of, a reference, if it still stands and it is the time.
 * Blocks. ERROR_FORBIDDEN. */
NODISCARD bool front_token_permission(const struct front_services *services, struct slice account,
                                      const struct front_claim *claim,
                                      struct catalogue_child **ret_permission, struct error *err);

/* The partition key that the permission holds for, as JSON in the arena; data NULL: for all. */
struct slice front_token_key(const struct catalogue_child *permission, struct arena *arena);

/* ERROR_FORBIDDEN, with the reason why it does. */
bool front_token_stopped(struct error *err, const char *why);
