/* Admission: operations that one request brings are let in together, or none of them is.
 *
 * Each budget they will spend from is asked once for all that falls to it; only if all agree is
 * anything done. What was let in runs to its end, whatever it comes to: what it costs above its
 * price becomes debt. So a client that sends a hundred operations hears one wait, not a hundred.
 *
 * One thread. */
#pragma once

#include "item/metering.h"

/* Lives in arena. call: what the request says about paying; copied. */
struct admission *admission_new(struct meters *meters, const struct metered_call *call,
                                struct arena *arena);

/* One more operation, before the budgets are asked. Its ticket is not looked at. */
void admission_add(struct admission *admission, const struct metering_request *request);

/* Asks them. True: admission_end is to follow. ERROR_TOO_MANY_REQUESTS and its kin: nothing was
 * taken from any; *ret_wait_ms is the longest wait they tell. */
NODISCARD bool admission_ask(struct admission *admission, int64_t *ret_wait_ms, struct error *err);

/* What one of its operations cost. */
void admission_charge(struct admission *admission, struct budget *budget, struct slice pk,
                      int64_t charge_cru);

/* Settles with all of them. */
void admission_end(struct admission *admission);
