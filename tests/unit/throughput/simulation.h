/* A simulated crowd of clients on one budget: no threads, no clock, a list of who acts when.
 *
 * Each client sends one request at a time, gets its answer after the latency, and sends the next
 * one after its pause; when refused it comes again after the announced wait, if it is obedient, and
 * the jitter. Everything follows from the seed. */
#pragma once

#include "base/random.h"
#include "support/check.h"
#include "throughput/budget.h"

struct crowd {
    uint32_t clients;
    int64_t price_cru, charge_cru; /* known up front, and settled */
    int64_t charge_spread_cru;     /* the charge varies by up to this much more */
    int64_t latency_ms;
    int64_t pause_ms;  /* between an answer and the next request */
    int64_t jitter_ms; /* attempts come up to this late */
    bool disobedient;  /* comes again after retry_ms whatever it was told */
    int64_t retry_ms;
    bool gives_up; /* a refused request is dropped, the next one is another */
    bool nameless; /* sends no ticket */
    bool low_priority;
    uint8_t bucket;
    const char *key; /* NULL: none */
    int64_t from_ms; /* when it begins */

    /* What came of it, from measure_from_ms on. */
    int64_t delivered_cru;
    uint32_t admitted, refused, refused_again; /* again: at the next attempt, too */
    int64_t wait_ms_max;
};

/* Runs the crowds until end_ms; counts from measure_from_ms. */
static inline void simulate(struct budget *budget, struct crowd *crowds, size_t count,
                            int64_t measure_from_ms, int64_t end_ms, uint64_t seed);

enum { SIMULATED_MAX = 4096 };

struct simulated {
    struct crowd *crowd;
    int64_t next_ms; /* its next attempt or, if served, its answer */
    uint64_t ticket;
    uint32_t refusals; /* of the request it is sending, in a row */
    bool served;
    int64_t charge_cru;
    struct budget_grant grant;
};

static inline void simulate_answer(struct budget *budget, struct simulated *client, int64_t now_ms,
                                   struct random *random)
{
    budget_settle(budget, &client->grant, client->charge_cru, now_ms);
    client->served = false;
    client->refusals = 0;
    client->ticket = random_next(random) | 1;
    client->next_ms = now_ms + client->crowd->pause_ms;
}

static inline void simulate_attempt(struct budget *budget, struct simulated *client, int64_t now_ms,
                                    bool measured, struct random *random)
{
    struct crowd *crowd = client->crowd;
    struct budget_request request = {
        .price_cru = crowd->price_cru,
        .ticket = crowd->nameless ? 0 : client->ticket,
        .key = crowd->key ? slice_of_text(crowd->key) : SLICE_NONE,
        .bucket = crowd->bucket,
        .low_priority = crowd->low_priority,
    };
    struct error err;
    int64_t wait_ms = 0;
    int64_t late_ms =
        crowd->jitter_ms ? (int64_t)random_below(random, (uint64_t)crowd->jitter_ms + 1) : 0;

    if (budget_admit(budget, &request, now_ms, &client->grant, &wait_ms, &err)) {
        client->charge_cru = crowd->charge_cru;
        if (crowd->charge_spread_cru)
            client->charge_cru += (int64_t)random_below(random, (uint64_t)crowd->charge_spread_cru);
        client->served = true;
        client->next_ms = now_ms + crowd->latency_ms;
        crowd->admitted += measured;
        crowd->delivered_cru += measured ? client->charge_cru : 0;
        return;
    }
    assert_true(wait_ms >= 1);
    crowd->wait_ms_max = MAX(crowd->wait_ms_max, wait_ms);
    crowd->refused += measured;
    crowd->refused_again += measured && client->refusals > 0;
    client->refusals++;
    if (crowd->gives_up)
        client->ticket = random_next(random) | 1;
    client->next_ms = now_ms + (crowd->disobedient ? crowd->retry_ms : wait_ms) + late_ms;
}

static inline void simulate(struct budget *budget, struct crowd *crowds, size_t count,
                            int64_t measure_from_ms, int64_t end_ms, uint64_t seed)
{
    struct simulated *clients = memory_alloc_zero(SIMULATED_MAX * sizeof *clients);
    struct random random;
    size_t total = 0;

    random_seed(&random, seed);
    for (size_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < crowds[i].clients; j++)
            clients[total++] = (struct simulated){.crowd = &crowds[i],
                                                  .next_ms = crowds[i].from_ms,
                                                  .ticket = random_next(&random) | 1};
    for (int64_t now_ms = 0; now_ms < end_ms; now_ms++) {
        /* Who comes first within a millisecond changes every time. */
        size_t first = random_below(&random, total);

        for (size_t i = 0; i < total; i++) {
            struct simulated *client = &clients[(first + i) % total];

            for (int turns = 0; client->next_ms <= now_ms && turns < 100; turns++) {
                if (client->served)
                    simulate_answer(budget, client, now_ms, &random);
                else
                    simulate_attempt(budget, client, now_ms, now_ms >= measure_from_ms, &random);
            }
        }
    }
    memory_free(clients);
}
