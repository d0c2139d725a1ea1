#include "contract/engine_contract.h"

static const char *fresh_url(void *context UNUSED)
{
    return "memory:";
}

int main(void)
{
    const struct contract_subject subject = {
        .name = "engine contract, memory:",
        .can_back_up = true,
        .fresh_url = fresh_url,
    };

    return engine_contract_run(&subject);
}
