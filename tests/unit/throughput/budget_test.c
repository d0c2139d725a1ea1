#include "throughput/budget.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "throughput/cost.h"
#include "simulation.h"

enum { RU = 100 };

static void p(const char *n, struct crowd *c, int64_t rate, int64_t s)
{
    printf("# %s: delivered %.2f%% admitted %u refused %u again %u (%.2f%%) maxwait %lld\n", n,
           100.0 * c->delivered_cru / (rate * s), c->admitted, c->refused, c->refused_again,
           c->refused ? 100.0 * c->refused_again / c->refused : 0, (long long)c->wait_ms_max);
}
static void run(const char *n, int64_t rate, struct crowd c)
{
    struct budget *b = budget_new(&(struct budget_options){.rate_cru = rate});
    simulate(b, &c, 1, 0, 10000, 1);
    p(n, &c, rate, 10);
    budget_free(b);
}

int main(void)
{
    run("1 seq", 400 * RU, (struct crowd){.clients = 1, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 2});
    run("1 seq big", 400 * RU, (struct crowd){.clients = 1, .price_cru = 300 * RU, .charge_cru = 300 * RU, .latency_ms = 2});
    run("16", 400 * RU, (struct crowd){.clients = 16, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 2});
    run("64", 400 * RU, (struct crowd){.clients = 64, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 2});
    run("64 jitter 20", 400 * RU, (struct crowd){.clients = 64, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 2, .jitter_ms = 20});
    run("64 jitter 20 nameless", 400 * RU, (struct crowd){.clients = 64, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 2, .jitter_ms = 20, .nameless = true});
    run("64 nameless", 400 * RU, (struct crowd){.clients = 64, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 2, .nameless = true});
    run("300 jitter 20", 10000 * RU, (struct crowd){.clients = 300, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 2, .jitter_ms = 20});
    run("300 jitter 20 nameless", 10000 * RU, (struct crowd){.clients = 300, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 2, .jitter_ms = 20, .nameless = true});
    run("2000 jitter 20", 10000 * RU, (struct crowd){.clients = 2000, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 2, .jitter_ms = 20});
    run("underpriced 64", 400 * RU, (struct crowd){.clients = 64, .price_cru = 230, .charge_cru = 2 * RU, .charge_spread_cru=50*RU, .latency_ms = 5, .jitter_ms = 5});
    /* open loop: offers 3x */
    run("open loop 3x", 400 * RU, (struct crowd){.clients = 12, .price_cru = 10 * RU, .charge_cru = 10 * RU, .latency_ms = 0, .pause_ms = 100, .disobedient = true, .retry_ms = 100, .gives_up = true, .jitter_ms = 5});
    run("hammer", 400 * RU, (struct crowd){.clients = 50, .price_cru = 1 * RU, .charge_cru = 1 * RU, .latency_ms = 1, .disobedient = true, .retry_ms = 1, .gives_up = true});
    run("hammer 10000", 10000 * RU, (struct crowd){.clients = 500, .price_cru = 1 * RU, .charge_cru = 1 * RU, .latency_ms = 1, .disobedient = true, .retry_ms = 1, .gives_up = true});
    run("hammer nameless", 10000 * RU, (struct crowd){.clients = 500, .price_cru = 1 * RU, .charge_cru = 1 * RU, .latency_ms = 1, .disobedient = true, .retry_ms = 10, .nameless = true});
    return 0;
}
