#include "script/share.h"

#include "base/memory.h"

static struct share_party *find(const struct share *share, const struct share_party *account,
                                struct slice name)
{
    for (struct share_party *party = share->parties; party; party = party->next)
        if (party->account == account && slice_equal(party->name, name))
            return party;
    return NULL;
}

static struct share_party *make(struct share *share, struct share_party *account, struct slice name)
{
    struct share_party *party = MEMORY_NEW(struct share_party);
    uint8_t *copy = memory_alloc(MAX(name.len, (size_t)1));

    if (name.len)
        memcpy(copy, name.data, name.len);
    *party = (struct share_party){
        .next = share->parties, .account = account, .name = slice_of(copy, name.len)};
    share->parties = party;
    if (account)
        account->databases++;
    else
        share->accounts++;
    return party;
}

struct share_party *share_open(struct share *share, const struct script_party *who)
{
    struct share_party *account = find(share, NULL, who->account), *database;

    if (!account)
        account = make(share, NULL, who->account);
    database = find(share, account, who->database);
    if (!database)
        database = make(share, account, who->database);
    account->holds++;
    database->holds++;
    return database;
}

static void let_go(struct share *share, struct share_party *party)
{
    struct share_party **at = &share->parties;

    assert(party->holds > 0);
    if (--party->holds)
        return;
    assert(party->places == 0 && party->busy == 0 && party->databases == 0);
    while (*at != party)
        at = &(*at)->next;
    *at = party->next;
    if (party->account)
        party->account->databases--;
    else
        share->accounts--;
    memory_free((void *)(uintptr_t)party->name.data);
    memory_free(party);
}

void share_close(struct share *share, struct share_party *database)
{
    struct share_party *account = database->account;

    let_go(share, database);
    let_go(share, account);
}

uint32_t share_of(uint32_t total, uint32_t n)
{
    uint32_t kept = MAX(total / 4, 1u), even = (total + n - 1) / n;

    return MAX(MIN(total - MIN(kept, total), even), 1u);
}

static bool within(const struct share *share, const struct share_party *database, uint32_t total,
                   uint32_t of_account, uint32_t of_database)
{
    uint32_t account_max = share_of(total, share->accounts);

    return of_account < account_max &&
           of_database < share_of(account_max, database->account->databases);
}

bool share_allows_place(const struct share *share, const struct share_party *database,
                        uint32_t total)
{
    return within(share, database, total, database->account->places, database->places);
}

/* A script that waits for a function of its own query would wait for ever where its account has
 * what it may: one such process of an account is allowed beyond. */
bool share_allows_process(const struct share *share, const struct share_party *database,
                          bool nested, uint32_t total)
{
    const struct share_party *account = database->account;

    return (nested && account->nested == 0) ||
           within(share, database, total, account->busy - account->nested,
                  database->busy - database->nested);
}

void share_add_place(struct share_party *database, int change)
{
    database->places += (uint32_t)change;
    database->account->places += (uint32_t)change;
}

void share_add_process(struct share_party *database, bool nested, int change)
{
    struct share_party *account = database->account;

    database->busy += (uint32_t)change;
    account->busy += (uint32_t)change;
    if (nested) {
        database->nested += (uint32_t)change;
        account->nested += (uint32_t)change;
    }
}

int share_compare(const struct share_party *a, const struct share_party *b)
{
    if (a->account->busy != b->account->busy)
        return a->account->busy < b->account->busy ? -1 : 1;
    if (a->busy != b->busy)
        return a->busy < b->busy ? -1 : 1;
    return 0;
}
