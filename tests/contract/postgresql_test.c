#include "contract/engine_contract.h"

#include "support/postgres.h"

static const char *fresh_url(void *context)
{
    return postgres_fresh_url(context);
}

int main(void)
{
    /* With fsync, for the contract asks whether the node calls itself durable. */
    CLEANUP(postgres_free) struct postgres *postgres = postgres_start(true);
    const struct contract_subject subject = {
        .name = "engine contract, postgresql:",
        .survives_close = true,
        .has_snapshot_deadline = true,
        .context = postgres,
        .fresh_url = fresh_url,
    };

    return engine_contract_run(&subject);
}
