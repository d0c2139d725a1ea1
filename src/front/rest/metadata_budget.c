/* A hash table of accounts under one lock, which is held for the look-up alone. An account in use
 * stays; when the table is full the one that was idle for longest goes. */
#include "front/rest/metadata_budget.h"

#include "base/memory.h"

#include <pthread.h>

enum { BUCKETS = 1024 };

struct rest_metadata_account {
    uint32_t number;
    uint32_t tickets; /* not yet settled */
    int64_t used_ms;
    struct budget *budget;
    struct rest_metadata_account *next;
};

struct rest_metadata_budgets {
    pthread_mutex_t lock;
    int64_t rate_cru;
    size_t count; /* under lock, as all below */
    struct rest_metadata_account *buckets[BUCKETS];
};

struct rest_metadata_budgets *rest_metadata_budgets_new(uint32_t ru)
{
    struct rest_metadata_budgets *budgets = MEMORY_NEW(struct rest_metadata_budgets);

    pthread_mutex_init(&budgets->lock, NULL);
    budgets->rate_cru = (int64_t)ru * 100;
    return budgets;
}

/* Takes the account that *link points to out of its list. */
static void account_remove(struct rest_metadata_budgets *budgets,
                           struct rest_metadata_account **link)
{
    struct rest_metadata_account *account = *link;

    *link = account->next;
    budget_free(account->budget);
    memory_free(account);
    budgets->count--;
}

void rest_metadata_budgets_free(struct rest_metadata_budgets *budgets)
{
    if (!budgets)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (budgets->buckets[i])
            account_remove(budgets, &budgets->buckets[i]);
    pthread_mutex_destroy(&budgets->lock);
    memory_free(budgets);
}

static bool idlest_remove(struct rest_metadata_budgets *budgets)
{
    struct rest_metadata_account **idlest = NULL;

    for (size_t i = 0; i < BUCKETS; i++)
        for (struct rest_metadata_account **link = &budgets->buckets[i]; *link;
             link = &(*link)->next)
            if (!(*link)->tickets && (!idlest || (*link)->used_ms < (*idlest)->used_ms))
                idlest = link;
    if (!idlest)
        return false;
    account_remove(budgets, idlest);
    return true;
}

static struct rest_metadata_account *account_take(struct rest_metadata_budgets *budgets,
                                                  uint32_t number, int64_t now_ms)
{
    struct rest_metadata_account **bucket = &budgets->buckets[number % BUCKETS];
    struct rest_metadata_account *account = *bucket;

    while (account && account->number != number)
        account = account->next;
    if (!account) {
        if (budgets->count == REST_METADATA_ACCOUNTS_MAX && !idlest_remove(budgets))
            return NULL;
        account = MEMORY_NEW(struct rest_metadata_account);
        account->number = number;
        account->budget = budget_new(&(struct budget_options){.rate_cru = budgets->rate_cru,
                                                              .refusal = ERROR_METADATA_THROTTLED});
        account->next = *bucket;
        *bucket = account;
        budgets->count++;
    }
    account->used_ms = now_ms;
    account->tickets++;
    return account;
}

static void account_give_back(struct rest_metadata_budgets *budgets,
                              struct rest_metadata_account *account)
{
    pthread_mutex_lock(&budgets->lock);
    account->tickets--;
    pthread_mutex_unlock(&budgets->lock);
}

bool rest_metadata_admit(struct rest_metadata_budgets *budgets, uint32_t account, int64_t price_cru,
                         int64_t now_ms, struct rest_metadata_ticket *ret_ticket,
                         int64_t *ret_wait_ms, struct error *err)
{
    const struct budget_request request = {.price_cru = price_cru};
    struct rest_metadata_account *taken;
    struct budget_grant grant;

    pthread_mutex_lock(&budgets->lock);
    taken = account_take(budgets, account, now_ms);
    pthread_mutex_unlock(&budgets->lock);
    if (!taken)
        return error_set(err, ERROR_BUSY, "operations on metadata of %d accounts are running",
                         REST_METADATA_ACCOUNTS_MAX);
    if (!budget_admit(taken->budget, &request, now_ms, &grant, ret_wait_ms, err)) {
        account_give_back(budgets, taken);
        return false;
    }
    *ret_ticket = (struct rest_metadata_ticket){.account = taken, .grant = grant};
    return true;
}

void rest_metadata_settle(struct rest_metadata_budgets *budgets,
                          struct rest_metadata_ticket *ticket, int64_t charge_cru, int64_t now_ms)
{
    if (!ticket->account)
        return;
    budget_settle(ticket->account->budget, &ticket->grant, charge_cru, now_ms);
    account_give_back(budgets, ticket->account);
    ticket->account = NULL;
}
