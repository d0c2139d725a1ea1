/* Share: who has how much of the pool, so that nobody has all of it. For the folder itself.
 *
 * A party is an account with scripts under way, or a database of one. Of what the pool has, threads
 * of the server and processes alike, n accounts may hold an nth part each, and one that is alone
 * three quarters: a quarter is kept for whoever comes next, who would else wait for a run of
 * others to end. The same again between the databases of an account.
 *
 * The caller holds the pool's lock. Parties are few, for each has a thread here: lists will do. */
#pragma once

#include "script/script.h"

struct share_party {
    struct share_party *next;
    struct share_party *account; /* of a database; NULL: this is one */
    struct slice name;           /* owned */
    uint32_t holds;              /* share_open without share_close */
    uint32_t databases;          /* of an account: how many are here */
    uint32_t places, busy;       /* threads; processes */
    uint32_t nested;             /* of busy: beyond what the share allows */
};

struct share {
    struct share_party *parties;
    uint32_t accounts;
};

/* The party of a database, made if it is not there; held until share_close. */
struct share_party *share_open(struct share *share, const struct script_party *who);
void share_close(struct share *share, struct share_party *database);

/* Of total: what one of n may have. Never all, unless it is 1. */
uint32_t share_of(uint32_t total, uint32_t n);

/* May it have one more of the threads, or of the processes? */
bool share_allows_place(const struct share *share, const struct share_party *database,
                        uint32_t total);
bool share_allows_process(const struct share *share, const struct share_party *database,
                          bool nested, uint32_t total);

/* It has one more, or one less. */
void share_add_place(struct share_party *database, int change);
void share_add_process(struct share_party *database, bool nested, int change);

/* Does a come before b: its account has fewer processes, or it has fewer within the account? 0: as
 * many. */
int share_compare(const struct share_party *a, const struct share_party *b);
