/* Script: JavaScript of users, run in processes that can do nothing but compute.
 *
 * A pool keeps worker processes (`orrery-js`). A run takes one, hands it the script, serves what
 * the script asks of the collection, and gives back what the script said. All calls block and may
 * come from any number of threads at once; none of them may be an event loop.
 *
 * A worker serves one database of one account for its whole life, so what one tenant's script
 * leaves behind in its process never meets another's data. A worker that has looped, eaten its
 * memory or crashed is gone, and the next run finds another.
 *
 * Transactions are the caller's: commit when script_run is true, drop everything when it is
 * false. Documents, arguments and bodies are JSON texts both ways. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "document/value.h"

/* --- The pool -------------------------------------------------------------------------------- */

struct script_options {
    const char *program;       /* path of orrery-js; NULL: beside the running executable */
    uint32_t workers_max;      /* processes at one time; 0: 8 */
    uint32_t places_max;       /* runs and queries under way, waiting ones too; 0: no end */
    uint32_t spares;           /* started ahead, not yet anybody's; 0: 1 */
    uint32_t calls_per_worker; /* then it is replaced; 0: 100,000 */
    int64_t time_ms;           /* of one run, by the clock on the wall; 0: 5,000 */
    int64_t margin_ms;         /* so long before its end no operation is accepted; 0: a tenth */
    int64_t wait_ms;           /* for a free worker, then ERROR_BUSY; 0: 1,000 */
    size_t memory_bytes;       /* of one worker beyond the engine itself; 0: 256 MiB */
    size_t output_bytes;       /* of a body a script sets; 0: 4 MiB */
    size_t log_bytes;          /* of console.log of one run; what is beyond is cut; 0: 16 KiB */
};

struct script_pool; /* opaque, shared by all threads */

/* Never fails for want of workers: where none can be started the runs say so
 * (ERROR_SCRIPT_UNAVAILABLE). options NULL: all defaults; strings are copied. */
struct script_pool *script_pool_new(const struct script_options *options);
/* Ends all workers. No run may be under way. */
void script_pool_free(struct script_pool *pool);
CLEANUP_FN(struct script_pool *, script_pool_free)

struct script_statistics {
    uint64_t runs, failures, timeouts, crashes; /* of procedures, triggers and function batches */
    uint64_t workers_started, workers_killed;
    uint32_t workers, workers_busy; /* now */
    /* What the kernel gave the worker started last, besides the system call filter, which each has:
     * a network and such of its own, an empty root directory, another user. */
    bool namespaces, empty_root, other_user;
};
void script_pool_statistics(struct script_pool *pool, struct script_statistics *ret_statistics);

/* --- Who may have how much ------------------------------------------------------------------- */

/* Whose a run is: processes and places are shared out between accounts, and within an account
 * between its databases, so that none has all of them. Borrowed. */
struct script_party {
    struct slice account;
    struct slice database; /* isolation: its rid, as no database of another account has it */
    bool nested;           /* a function of a query that a script asks */
};

struct script_place; /* opaque */

/* A place for a run, or for a query with its functions: taken before it begins, so that those who
 * wait for a process hold no more threads of the server than their share. ERROR_BUSY at once. */
NODISCARD bool script_place_take(struct script_pool *pool, const struct script_party *who,
                                 struct script_place **ret_place, struct error *err);
void script_place_give(struct script_pool *pool, struct script_place *place);

/* --- What a script asks for ------------------------------------------------------------------ */

enum script_verb {
    SCRIPT_CREATE,
    SCRIPT_READ,
    SCRIPT_REPLACE,
    SCRIPT_UPSERT,
    SCRIPT_PATCH,
    SCRIPT_DELETE,
    SCRIPT_QUERY,
    SCRIPT_READ_FEED, /* readDocuments */
    SCRIPT_VERB_COUNT
};

enum { SCRIPT_OPERATIONS_MAX = 128 }; /* in one batch */

/* Everything in it came from the script and was checked for form only: UTF-8, JSON where JSON is
 * said, limits. Links are what the script gave, of the collection or of a document; whether they
 * lie in this collection is the host's to say. Absent: data NULL. */
struct script_operation {
    enum script_verb verb;
    struct slice link;         /* create, upsert, query, feed: of the collection; else the item */
    struct slice body;         /* JSON: the item; of a patch the operations (array, or an object
                                  with "operations" and "condition"); of a query an object with
                                  "query" and perhaps "parameters"; else absent */
    struct slice etag;         /* option etag: if-match of replace, delete, upsert, patch; of a
                                  read if-none-match. Absent: none */
    struct slice continuation; /* option continuation. Absent: from the start */
    int32_t page_size;         /* option pageSize; 0: not given, -1: the script wants all */
    bool id_given;             /* option disableAutomaticIdGeneration */
    bool scan_enabled;         /* option enableScan */
    struct slice options;      /* all options as a JSON object; absent: none were given */
};

struct script_answer {
    uint16_t status;           /* 200, 201, 204; 304; 400 and above: the callback's error */
    uint32_t substatus;        /* 0: none */
    struct slice message;      /* of an error */
    struct slice body;         /* JSON: the item as it is stored now; of a query or feed an array */
    struct slice etag;         /* absent: none */
    struct slice continuation; /* absent or empty: there is no more */
    int64_t charge_cru;        /* hundredths of RU, shown to the script as options.requestCharge */
};

struct script_host {
    /* Carries operations out in their order, on the thread of script_run, and answers each of
     * them. The slices of operations are good during the call; those of answers must live until
     * the next call or the end of the run: arena is the run's. *ret_accepting, true at first, may
     * be made false: from now on the script's operations are not accepted, since time or budget
     * is near its end; what is in this batch was accepted and needs its answer all the same. False
     * with err ends the run at once, and err is what script_run gives: for conflicts that make the
     * caller run all of it anew, a stopping server, a client that went away. */
    bool (*serve)(void *self, const struct script_operation *operations, size_t count,
                  struct script_answer *ret_answers, bool *ret_accepting, struct arena *arena,
                  struct error *err);
    void *self;
};

/* --- Procedures and triggers ----------------------------------------------------------------- */

enum script_kind {
    SCRIPT_PROCEDURE,
    SCRIPT_PRE_TRIGGER,
    SCRIPT_POST_TRIGGER,
};

struct script_value {
    struct slice name;
    struct slice json; /* any JSON value */
};

struct script_request {
    enum script_kind kind;
    struct script_party who;
    struct slice key;    /* names this text and for whom it runs: rid, etag, principal. Same key,
                            same source, always; what a run leaves behind meets the same key alone */
    struct slice name;   /* the script's id, for stack traces */
    struct slice source; /* a function expression or statements with one function */

    struct slice arguments;     /* JSON array; empty: none */
    struct slice self_link;     /* of the collection: "dbs/<rid>/colls/<rid>/" */
    struct slice alt_link;      /* "dbs/<id>/colls/<id>" */
    struct slice operation;     /* triggers: "Create", "Replace", "Upsert", "Delete", "Patch" */
    struct slice request_body;  /* triggers: JSON of the item sent; absent: undefined */
    struct slice response_body; /* post-triggers: JSON of the item as written; absent: undefined */
    const struct script_value *request_values; /* what getRequest().getValue(name) gives */
    size_t request_value_count;
    const struct script_value *response_values;
    size_t response_value_count;

    bool logging;        /* console.log is kept, else its text is dropped */
    bool may_write;      /* false: create and its kin get error 403 in their callbacks */
    int64_t deadline_ms; /* monotonic; 0: the pool's time_ms from now. The earlier one counts */
    struct arena *arena; /* of the result */
};

/* What charges are made of: the same run on the same data counts the same. */
struct script_counts {
    uint32_t operations;
    uint64_t operation_bytes; /* links, bodies and options sent by the script */
    uint64_t answer_bytes;    /* bodies it was given */
    uint64_t input_bytes;     /* source, arguments and bodies */
    uint64_t output_bytes;    /* bodies and log it left */
};

struct script_result {
    struct slice response_body; /* JSON; absent: never set (procedures: answer "") */
    struct slice request_body;  /* pre-triggers: JSON, where the script changed it; else absent */
    const struct script_value *request_values; /* set or appended in a pre-trigger */
    size_t request_value_count;
    const struct script_value *response_values; /* set or appended; "Body" is not among them */
    size_t response_value_count;
    struct slice log; /* plain text, lines end in \n; also after a failure */
    bool log_cut;     /* more was logged than is kept */

    /* ERROR_SCRIPT_FAILED: what was thrown. */
    bool compile_failed;  /* the text does not parse, or is no function: nothing was run */
    int32_t error_number; /* the error's own `number`, 0: it has none */
    struct slice error_message;
    struct slice error_stack; /* may be empty */
    struct script_counts counts;
};

/* Runs a script to its end: its function, all callbacks, all promises that can be settled. The
 * result is in the request's arena and filled in as far as the run came, also when it is false.
 *
 * ERROR_SCRIPT_FAILED (400): it threw, was aborted, is no function or does not parse; err has the
 * text as far as it fits. ERROR_SCRIPT_TIMED_OUT (408). ERROR_SCRIPT_LIMIT (413): its output is too
 * large. ERROR_SCRIPT_CRASHED (400): it ended its worker, commonly for lack of memory. ERROR_BUSY:
 * no worker became free. ERROR_SCRIPT_UNAVAILABLE (503): none can be started. Else what the
 * host said. */
NODISCARD bool script_run(struct script_pool *pool, const struct script_request *request,
                          const struct script_host *host, struct script_result *ret_result,
                          struct error *err);

/* --- User-defined functions ------------------------------------------------------------------ */

struct script_function {
    struct slice key;    /* rid, etag and principal, as above */
    struct slice name;   /* as queries call it */
    struct slice source; /* borrowed while the functions live */
};

struct script_functions; /* opaque, for one thread at a time */

/* The functions a query may call. No worker is taken before the first call; then it is kept until
 * script_functions_free, or script_functions_rest. Copies the array, borrows what it points to. */
struct script_functions *script_functions_new(struct script_pool *pool,
                                              const struct script_party *who,
                                              const struct script_function *functions,
                                              size_t count);
void script_functions_free(struct script_functions *functions); /* NULL is fine */
CLEANUP_FN(struct script_functions *, script_functions_free)

/* One more, and its number. Borrows what it points to. */
size_t script_functions_add(struct script_functions *functions,
                            const struct script_function *function);

/* Gives the worker back until the next call, as between two pages or while waiting. */
void script_functions_rest(struct script_functions *functions);

/* The number of the function of that name. False: there is none. */
bool script_functions_find(const struct script_functions *functions, struct slice name,
                           size_t *ret_number);

/* Bounds of one call, which callers keep by cutting their rows. */
enum {
    SCRIPT_ROWS_MAX = 4096,
    SCRIPT_ARGUMENTS_MAX = 32,
    SCRIPT_ROWS_BYTES = 1024 * 1024, /* of arguments as BSON, unless it is one row */
};

/* Calls a function once for each row: row i has the arguments values[i * width] to values[i * width
 * + width - 1], undefined where there is none. ret_values has one value for each row, made in
 * arena; undefined where the function returned nothing. One time limit holds for the whole call,
 * and it is counted as one entry: 1,000 rows cost little more than 10.
 *
 * ERROR_SCRIPT_FAILED: a row threw; the message names the function. The other errors as for
 * script_run. */
NODISCARD bool script_functions_call(struct script_functions *functions, size_t number,
                                     const struct document_value *values, size_t width, size_t rows,
                                     int64_t deadline_ms, struct arena *arena,
                                     struct document_value *ret_values, struct error *err);
