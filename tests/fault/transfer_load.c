/* The load of transactions that is killed: batches are transfers (transfers.h). */
#include "fault/loading.h"
#include "fault/transfers.h"

static struct test_space test;

static bool transfers_open(struct engine *engine, struct error *err UNUSED)
{
    test_space_init(&test, engine, &transfer_options);
    return true;
}

static bool transfer_commit(uint32_t client, uint32_t n, struct error *err)
{
    return transfer_run(&test, client, n, err);
}

int main(int argc, char **argv)
{
    return loading_main(argc, argv, &(struct loading){transfers_open, transfer_commit});
}
