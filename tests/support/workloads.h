/* Workloads of the kinds that guides on partition keys tell of, made by a seed, with property names
 * that say nothing: whoever judges them must go by the data. */
#pragma once

#include "advise/workload.h"

enum workload_kind {
    WORKLOAD_PROFILES,  /* users, each with some items, named in every request */
    WORKLOAD_DEVICES,   /* many devices that write all the time */
    WORKLOAD_LOGS,      /* hosts that write for ever, read by day and host */
    WORKLOAD_TENANTS,   /* one tenant is far larger than any other */
    WORKLOAD_EVENTS,    /* all writes of a day have its date; hardly any reads */
    WORKLOAD_VEHICLES,  /* the VIN example: read by date and vehicle */
    WORKLOAD_CATALOGUE, /* read by category */
    WORKLOAD_BY_ID,     /* a map from id to value */
    WORKLOAD_LEDGER,    /* small, and every transaction touches several accounts */
    WORKLOAD_HOPELESS,  /* every request bounds a value that changes */

    /* What fits is seen when there is more of it: requests that ask everywhere are few. Items have
     * a measurement, a time and a text besides. */
    WORKLOAD_READINGS, /* evenly used devices; what little is asked names one */
    WORKLOAD_SELDOM,   /* the same, and next to nothing is asked */
    WORKLOAD_SKEWED,   /* tenants, one of whom is a seventh of all; often asked for as a whole */
    WORKLOAD_ORDERS,   /* orders of customers, read one by one and now and then all of a customer */
    WORKLOAD_ROOMS,    /* what is said in rooms, read by room */
    WORKLOAD_MIXED,    /* items of users, read and written one by one, sometimes listed by user */
    WORKLOAD_NUMBERED, /* as orders, but customers are numbers */
    WORKLOAD_SESSIONS, /* made, read and deleted by id alone */
    WORKLOAD_LISTED,   /* a map from id to value, of which somebody lists a kind now and then */
};
enum { WORKLOAD_KINDS = 19 };

/* Names of the properties as the workload has them, such as "/qzkfba" for what a person would call
 * the tenant; valid while the workload is there. */
struct workload_names {
    char id[16], a[16], b[16], c[16], d[16]; /* what they are: workloads.c */
    char measure[16], time[16], text[16];    /* of the last kinds */
};

struct advise_workload *workload_make(enum workload_kind kind, uint64_t seed,
                                      struct workload_names *ret_names);
