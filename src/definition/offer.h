/* Offer: how much throughput somebody bought, and the rules of buying.
 *
 * An offer belongs to one container, or to a database whose containers share it. Manual offers
 * are a number of RU/s; autoscale offers a maximum, of which a tenth is always there. The rules
 * are functions of the limits and of what is asked: they know no catalogue. */
#pragma once

#include "base/error.h"
#include "definition/limits.h"
#include "definition/rid.h"

enum offer_kind { OFFER_MANUAL, OFFER_AUTOSCALE };

enum { OFFER_ETAG_SIZE = 39 };

struct offer {
    enum offer_kind kind;
    uint64_t ru;          /* RU/s; autoscale: the maximum */
    bool unstated;        /* nobody asked for any: ru is the default, for show */
    bool ru_per_minute;   /* ten times the RU/s more in every minute */
    bool shared;          /* by the containers of a database */
    uint8_t tier;         /* legacy S1, S2, S3: 1, 2, 3; else 0 */
    bool increment_given; /* autoscale: autoUpgradePolicy, kept as given: */
    uint32_t increment_percent;
    uint64_t ru_max_ever;
    uint64_t bytes_max_ever;

    uint32_t number;
    uint32_t database, container; /* whose it is; container 0 when shared */
    char rid[RID_TEXT_SIZE];
    char etag[OFFER_ETAG_SIZE]; /* with its quotes */
    int64_t ts_ms;              /* of the last replace, or of creation */
};

/* What a client asks for; all zero: nothing. */
struct offer_request {
    bool given; /* ru or tier was named */
    int64_t ru;
    bool autoscale_given;
    int64_t autoscale_max;
    bool increment_given;
    uint32_t increment_percent;
    bool ru_per_minute;
    uint8_t tier; /* legacy S1, S2, S3 */
};

/* What the resource is that the offer is for. */
struct offer_subject {
    bool shared;         /* a database */
    bool fixed;          /* a container without a partition key */
    uint32_t containers; /* of a database: sharing it */
    uint32_t partitions; /* physical ones it has, 0: none yet */
    uint64_t bytes;      /* stored */
};

/* The least a replace may go down to: as the header x-ms-cosmos-min-throughput shows it. */
uint64_t offer_minimum(const struct definition_limits *limits, const struct offer_subject *subject,
                       const struct offer *offer, enum offer_kind kind);

/* Decides what a new resource gets. False in *ret_any: no offer (a database without one). A
 * container's default is filled in. ERROR_BAD_REQUEST in the words of the service. */
NODISCARD bool offer_new(const struct definition_limits *limits,
                         const struct offer_subject *subject, const struct offer_request *request,
                         struct offer *ret_offer, bool *ret_any, struct error *err);

/* Decides what becomes of an offer when it is replaced: numbers, not kind. It is stated then.
 * ERROR_BAD_REQUEST below the minimum, off step or of the other kind; ERROR_NOT_SUPPORTED above
 * what the partitions there are can give. */
NODISCARD bool offer_replace(const struct definition_limits *limits,
                             const struct offer_subject *subject,
                             const struct offer_request *request, struct offer *offer,
                             struct error *err);

/* Turns a manual offer into an autoscale one or back, keeping at least what it gives.
 * ERROR_BAD_REQUEST: it is of that kind already. */
NODISCARD bool offer_migrate(const struct definition_limits *limits,
                             const struct offer_subject *subject, enum offer_kind kind,
                             struct offer *offer, struct error *err);

/* Does it hold requests back? */
bool offer_is_enforced(const struct definition_limits *limits, const struct offer *offer);

/* N = ceil(T / t): physical partitions that this throughput takes. */
uint32_t offer_partitions(const struct definition_limits *limits, uint64_t ru);

/* Those that a container with this offer takes: one where nobody bought anything. */
uint32_t offer_partitions_needed(const struct definition_limits *limits, const struct offer *offer);

/* Those that it is made with: of manual throughput above what one may give, partition.ru_initial
 * each. */
uint32_t offer_partitions_initial(const struct definition_limits *limits,
                                  const struct offer *offer);
