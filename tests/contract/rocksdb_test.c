#include "contract/engine_contract.h"

#include "support/scratch.h"

static struct scratch scratch;

static const char *fresh_url(void *context UNUSED)
{
    static char url[300];
    static unsigned made;

    snprintf(url, sizeof url, "rocksdb:%s/store%u", scratch.path, made++);
    return url;
}

int main(void)
{
    const struct contract_subject subject = {
        .name = "engine contract, rocksdb:",
        .survives_close = true,
        .can_back_up = true,
        .fresh_url = fresh_url,
    };
    int failed;

    scratch_init(&scratch);
    failed = engine_contract_run(&subject);
    scratch_done(&scratch);
    return failed;
}
