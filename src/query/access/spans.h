/* Spans: the physical partitions a page reads from. Each is opened when it is first needed: one
 * moment of it for the whole page, admitted by its budget and charged for what was done there.
 * Spans of one node share the moment, for a snapshot may hold a connection. */
#pragma once

#include "item/cursor.h"
#include "query/run.h"
#include "throughput/cost.h"

struct query_span {
    const struct partition_span *span;
    bool viewed; /* view is open */
    struct view view;
    uint32_t thread; /* which of several threads reads it: they share no snapshots */
    bool missing;    /* it does not serve, and is passed over */
    bool admitted;
    struct meter *meter;   /* NULL: nobody holds it back */
    struct budget *budget; /* the same */
    struct budget_grant grant;
    struct cost_query cost; /* so far on this page */
};

struct query_snapshot {
    struct engine *engine;
    uint32_t thread;
    struct engine_snapshot *snapshot; /* owned */
};

struct query_spans {
    const struct query_request *request;
    struct metered_call *call;
    struct query_span *list; /* all of the map, in key order; owned */
    size_t count;
    size_t admitted;                  /* how many */
    size_t missing;                   /* how many of the targets */
    bool now;                         /* one get is all that is read: it needs no snapshot */
    struct view_bound bound;          /* of a request that is short */
    struct query_snapshot *snapshots; /* owned */
    size_t snapshot_count;
};

void query_spans_init(struct query_spans *spans, const struct query_request *request,
                      struct metered_call *call);

/* What of a page is charged. Where an earlier one has paid for what was read, whether it was kept
 * since or had to be read again is not the client's to pay for. */
enum query_pay {
    QUERY_PAY_ALL,
    QUERY_PAY_PAGE, /* a page, its output and work */
    QUERY_PAY_WORK, /* no page of its own: work alone, which may be nothing */
};

/* Gives back what was admitted: nothing was done. All views are closed. */
void query_spans_drop(struct query_spans *spans);

/* Settles what was admitted with what it cost; all views are closed. Gives the charge of the page,
 * and adds up what was done. */
int64_t query_spans_done(struct query_spans *spans, enum query_pay pay,
                         struct cost_query *ret_total);

/* What the page has cost so far. */
int64_t query_spans_charge(const struct query_spans *spans);

/* The moment of a span; looking costs nothing. */
NODISCARD bool query_spans_view(struct query_spans *spans, size_t span, struct view **ret_view,
                                struct error *err);

/* Opens the span anew, for another thread than the page's own: 1 and above. */
NODISCARD bool query_spans_hand_over(struct query_spans *spans, size_t span, uint32_t thread,
                                     struct error *err);

/* Before anything is read that counts. resumed: a page before this one has read from it.
 * ERROR_TOO_MANY_REQUESTS and its kin, with the wait in the call. */
NODISCARD bool query_spans_admit(struct query_spans *spans, size_t span, bool resumed,
                                 struct error *err);

/* The same without opening it, for a query that reads nothing. */
NODISCARD bool query_spans_bill(struct query_spans *spans, size_t span, bool resumed,
                                struct error *err);

/* The span that the scope of the request begins in: it pays for a page that reads nothing. */
size_t query_spans_first(const struct query_spans *spans, struct arena *arena);

/* Puts what evaluation took, above what is included, on the bill: of the first span that was
 * admitted. */
NODISCARD bool query_spans_work(struct query_spans *spans, uint64_t units, struct error *err);

/* The spans that overlap a range of routing keys: from *ret_first, in a row. */
size_t query_spans_overlap(const struct query_spans *spans, struct partition_range range,
                           size_t *ret_first);
