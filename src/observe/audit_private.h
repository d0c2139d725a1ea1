/* The chain as it is kept, for the files of the audit. */
#pragma once

#include "base/thread.h"
#include "observe/audit.h"

enum { AUDIT_KEY_BYTES = 10 };

/* What is noted beside the records. */
struct audit_ends {
    uint64_t first; /* number of the oldest; one more than last: there is none */
    uint64_t last;
    uint64_t bytes;                   /* of all records */
    uint8_t before[AUDIT_HASH_BYTES]; /* of the record before the oldest */
    uint8_t hash[AUDIT_HASH_BYTES];   /* of the last */
};

struct audit_waiting {
    struct audit_waiting *next;
    uint64_t ticket;
    uint64_t lost; /* records lost just before this one */
    size_t len;
    uint8_t members[]; /* of its JSON object, behind number, time and hash */
};

struct audit {
    struct catalogue *catalogue;
    const struct clock *clock;
    struct log *log;
    const char *containers;
    bool reads;
    uint64_t bytes_max;
    int64_t age_ms_max;
    size_t waiting_max;
    struct thread thread;

    struct mutex lock; /* of all below */
    struct condition filled, written;
    struct audit_waiting *head, **tail;
    size_t waiting;
    uint64_t tickets, done; /* handed out; every ticket up to this one was written or given up */
    uint64_t lost, lost_untold;
    bool stopping, failing;
    struct audit_ends ends;  /* changed by the thread alone */
    int64_t stranger_second; /* of those nobody let in */
    unsigned strangers;
};

void audit_key(uint8_t key[AUDIT_KEY_BYTES], uint8_t kind, uint64_t number);
NODISCARD bool audit_ends_read(struct catalogue *catalogue, struct audit_ends *ret_ends,
                               struct error *err);
void audit_hash(struct slice record, uint8_t ret_hash[AUDIT_HASH_BYTES]);
void audit_hash_text(const uint8_t hash[AUDIT_HASH_BYTES], char ret_text[AUDIT_HASH_TEXT_SIZE]);

/* Appends what waits and takes away what is too old; its thread. */
void audit_write(void *context);

/* Calls visit for the records from one number to another, both inclusive. */
typedef bool audit_visit(void *context, uint64_t number, struct slice record);
NODISCARD bool audit_walk(struct audit *audit, uint64_t from, uint64_t to, audit_visit *visit,
                          void *context, struct error *err);
