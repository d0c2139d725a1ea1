/* Clients: threads that work on a few items of one container and note what they saw.
 *
 * Each does a number of things chosen from its seed: transactions that read some items and write
 * some, in one logical partition or two, and plain operations with and without etags. Every write
 * carries a version of its own.
 *
 *     HISTORY_FACTOR=20   that many times as much
 *     HISTORY_SEED=7      other choices; the seed is printed */
#pragma once

#include "base/random.h"
#include "base/thread.h"
#include "isolation/recording.h"
#include "item/agreement.h"
#include "item/operation.h"

enum {
    CLIENTS = 6,
    CLIENT_LOGICALS = 3,
    CLIENT_IDS = 4,
    CLIENT_ITEMS = CLIENT_LOGICALS * CLIENT_IDS,
};

/* What a client has last seen of an item, for preconditions. */
struct client_known {
    struct item_header header;
    uint64_t version; /* 0: never seen */
};

struct client {
    struct clients *clients;
    struct thread thread;
    struct random random;
    struct recorder *recorder;
    struct arena *arena; /* of one operation */
    uint32_t index;
    uint64_t versions; /* given out */
    struct client_known known[CLIENT_ITEMS];
    size_t conflicts, refused, unknown;
    size_t over_nodes; /* transactions that were committed on two */
    char failure[300]; /* an answer that was not expected */
};

/* Where the container is. */
struct clients_place {
    /* Opens the container as it is now; everything handed out stays until leave. */
    struct item_space (*enter)(void *context, struct note *note, bool plain, void **ret_visit);
    void (*leave)(void *context, void *visit);

    /* Nodes fail and the server crashes: some operations may be turned away, and of some the
     * outcome is not known. NULL: neither may be. Called outside the container, by a client that
     * was just told so: returns when it is worth while to go on. */
    void (*disturbed)(void *context);
    bool moves; /* partitions move: a transaction may be overtaken */
    /* Transactions go over nodes; called inside the container. NULL: what they enter is on one. */
    struct agreements *(*agreements)(void *context);
    /* Clients work until then, slower when they have done their operations. NULL: until those. */
    bool (*is_over)(void *context);
    void *context;
};

struct clients {
    struct clients_place place;
    struct partition_key keys[CLIENT_LOGICALS]; /* ["p0"], ["p1"], ... */
    char key_texts[CLIENT_LOGICALS][8];
    size_t operations;
    bool only_updates; /* read one item, write it back */
    struct client all[CLIENTS];
    struct recorder recorders[CLIENTS];
};

size_t clients_factor(void);
uint64_t clients_seed(void);

void clients_init(struct clients *clients, const struct clients_place *place, size_t operations);
void clients_done(struct clients *clients);

/* Lets them all work; joining waits until they have done all they are to do. */
void clients_start(struct clients *clients);
void clients_join(struct clients *clients);

/* One of them reads every item, so that what was left is judged too. */
void clients_look(struct clients *clients);

/* Hands what they noted to the checker, and prints what they did. Ends the test if one had an
 * answer that was not expected. settled: recorders_history. */
void clients_check(const struct clients *clients, const char *what, const uint64_t *settled,
                   size_t settled_count, struct checker_report *ret_report);

/* Ends the test with the first violation, if there is one. */
void clients_expect_fine(const struct checker_report *report);
