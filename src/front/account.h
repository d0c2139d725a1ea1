/* Which account a request means: the one its path names, else the first label of its host where the
 * rest of that is localhost or the suffix the server was given, else the default account. An
 * account without keys of its own is opened by those of the default account. */
#pragma once

#include "front/front.h"

struct front_account {
    struct account *account;         /* a reference; NULL: there is none, or none yet */
    bool missing;                    /* there is none, and none is to be made by use */
    struct slice id;                 /* of it; in the arena */
    const struct account_keys *keys; /* whose signatures count: its own, or the default account's */
    struct account *keys_account;    /* a reference that keeps the keys */
};

/* Finds the account of that name. by_use: one that does not exist may be made. One that does not
 * exist has the keys of the default account, so that a signature is judged all the same: only who
 * has those is told (front_account_check), and to all others it is an account whose key they do not
 * know. What was found is let go with front_account_done. ERROR_BAD_REQUEST: it cannot be made. */
NODISCARD bool front_account_find(const struct front_services *services, struct slice name,
                                  bool by_use, struct arena *arena,
                                  struct front_account *ret_account, struct error *err);
void front_account_done(struct front_account *account);

/* After the signature was found good: whether the account is there, or may be made.
 * ERROR_ACCOUNT_MISSING. */
NODISCARD bool front_account_check(bool missing, struct slice id, struct error *err);

/* The label of a host that names an account, in small letters; data NULL: it names none. */
struct slice front_account_of_host(struct slice host, const char *suffix, struct arena *arena);

/* Makes the account if there is none; blocks. */
NODISCARD bool front_account_make(const struct front_services *services, struct slice id,
                                  struct account **account, struct error *err);

/* Can an account be called that? It must do as a host label and as the first segment of a path.
 * ERROR_BAD_REQUEST. */
NODISCARD bool front_account_name_check(struct slice name, struct error *err);

/* Is it a word that a path of the port of REST may begin with, and so not the name of an account?
 */
bool front_path_is_root(struct slice word);
