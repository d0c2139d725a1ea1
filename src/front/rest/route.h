/* Route: what a path names, taken apart by position.
 *
 *     /                                             the account
 *     /dbs[/{db}]                                   databases
 *     /dbs/{db}/colls[/{c}]                         containers; users, clientencryptionkeys
 * likewise /dbs/{db}/colls/{c}/docs[/{id}]               items; pkranges, sprocs, triggers, udfs,
 * conflicts /dbs/{db}/colls/{c}/operations/partitionkeydelete
 *     /dbs/{db}/users/{u}/permissions[/{id}]
 *     /offers[/{rid}]
 *
 * Any of these may stand behind /{account}, which names one account of several. Segments are
 * percent-decoded; a database may be named "colls", so nothing is searched for. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "front/text.h"

enum rest_resource {
    REST_ACCOUNT,
    REST_DATABASES,
    REST_CONTAINERS,
    REST_ITEMS,
    REST_PKRANGES,
    REST_PROCEDURES,
    REST_TRIGGERS,
    REST_FUNCTIONS,
    REST_CONFLICTS,
    REST_PARTITION_DELETE,
    REST_USERS,
    REST_PERMISSIONS,
    REST_ENCRYPTION_KEYS,
    REST_OFFERS,
    REST_ADDRESSES,
    REST_MEDIA,
    REST_ATTACHMENTS,
    REST_SCHEMAS,
    REST_TOPOLOGY,
    REST_RESOURCE_COUNT
};

struct rest_route {
    enum rest_resource resource;
    bool single;           /* one resource; else the feed of all */
    struct slice account;  /* of the path prefix; data NULL: none */
    struct slice prefix;   /* the same as sent, with its slash: "/name" */
    struct slice database; /* name or rid */
    struct slice owner;    /* the container, or the user of permissions */
    struct slice id;       /* of the resource itself when single */
    struct slice type;     /* as it is signed: "docs" */
    struct slice link;     /* as it is signed: own link, or the parent's of a feed; decoded */
    struct slice link_raw; /* the same as sent */
};

/* path and query as net_http_request has them. ERROR_BAD_REQUEST: a broken escape, an empty
 * segment; slashes at the end mean nothing. ERROR_NOT_FOUND: nothing is there in any account. The
 * slices are borrowed or in the arena. */
NODISCARD bool rest_route_parse(struct slice path, struct slice query, struct arena *arena,
                                struct rest_route *ret_route, struct error *err);
