/* Metadata budgets: what an account may spend on databases, containers, offers and their kin, which
 * no container pays for. Those of the accounts last seen are kept, a bounded number; an account
 * that was away for long begins with a full second again. All functions may be called from any
 * thread. */
#pragma once

#include "throughput/budget.h"

enum { REST_METADATA_ACCOUNTS_MAX = 4096 };

struct rest_metadata_budgets; /* opaque, owned */
struct rest_metadata_account; /* opaque */

/* What an operation holds between admission and settlement. A plain value; all zero: nothing. */
struct rest_metadata_ticket {
    struct rest_metadata_account *account;
    struct budget_grant grant;
};

/* RU/s of each account, above 0. */
struct rest_metadata_budgets *rest_metadata_budgets_new(uint32_t ru);
void rest_metadata_budgets_free(struct rest_metadata_budgets *budgets); /* NULL is fine */
CLEANUP_FN(struct rest_metadata_budgets *, rest_metadata_budgets_free)

/* True: admitted, the ticket is to be settled. ERROR_METADATA_THROTTLED: *ret_wait_ms says when to
 * come again. ERROR_BUSY: operations of REST_METADATA_ACCOUNTS_MAX other accounts are running. */
NODISCARD bool rest_metadata_admit(struct rest_metadata_budgets *budgets, uint32_t account,
                                   int64_t price_cru, int64_t now_ms,
                                   struct rest_metadata_ticket *ret_ticket, int64_t *ret_wait_ms,
                                   struct error *err);

/* The real charge. A ticket that holds nothing is fine. */
void rest_metadata_settle(struct rest_metadata_budgets *budgets,
                          struct rest_metadata_ticket *ticket, int64_t charge_cru, int64_t now_ms);
