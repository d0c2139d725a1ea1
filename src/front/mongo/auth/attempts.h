/* Attempts: how often authentication has failed lately, by address and by name, so that whoever
 * guesses is slowed down over any number of connections.
 *
 * An address has MONGO_ATTEMPTS_ADDRESS failures, and gets one back every few seconds; addresses of
 * IPv6 count by their first 64 bits, loopback counts too. A name has MONGO_ATTEMPTS_NAME over all
 * addresses; when those are used up, only addresses that have failed lately are refused, so that
 * nobody can lock others out of their accounts from afar.
 *
 * Many share an address. So a name that has succeeded from an address within a day is *known* there
 * and has MONGO_ATTEMPTS_PAIR failures of its own, whatever others at that address do. Success
 * makes up for failures of the same name alone: who has an account cannot guess at others between
 * two logins of its own.
 *
 * Tables of a fixed size without locks: two that share a place share their failures. Any thread. */
#pragma once

#include "base/slice.h"
#include "net/address.h"

enum {
    MONGO_ATTEMPTS_ADDRESS = 50,
    MONGO_ATTEMPTS_NAME = 500,
    MONGO_ATTEMPTS_PAIR = 10,
    MONGO_ATTEMPTS_BACK_MS = 2000,
    MONGO_ATTEMPTS_KNOWN_MS = 24 * 3600 * 1000,
};

struct mongo_attempts; /* opaque, owned */

/* seed: a secret, so that nobody can look for names and addresses that share a place. */
struct mongo_attempts *mongo_attempts_new(uint64_t seed);
void mongo_attempts_free(struct mongo_attempts *attempts); /* NULL is fine */

/* May it try? now_ms: of a monotonic clock. */
bool mongo_attempts_allow(struct mongo_attempts *attempts, const struct net_address *address,
                          struct slice name, int64_t now_ms);

/* It has failed. */
void mongo_attempts_failed(struct mongo_attempts *attempts, const struct net_address *address,
                           struct slice name, int64_t now_ms);

/* It has succeeded: it is known there, and its failures from there are forgotten. */
void mongo_attempts_succeeded(struct mongo_attempts *attempts, const struct net_address *address,
                              struct slice name, int64_t now_ms);
