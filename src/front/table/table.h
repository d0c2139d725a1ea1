/* Tables: the Table API (OData over HTTP), as clients of Azure Table storage and of the Table API
 * of Cosmos DB speak it.
 *
 * A table is a container of the database TablesDB whose partition key is /PartitionKey; an entity
 * is an item whose id is its RowKey. docs/design/table.md says how Edm types are kept. */
#pragma once

#include "front/front.h"
#include "front/kit/http.h"

struct table; /* opaque, owned by the server */

/* The account that the storage emulators have; with --dev it is the default account. */
#define TABLE_EMULATOR_ACCOUNT "devstoreaccount1"

enum { TABLE_SEAL_BYTES = 32 };

struct table_options {
    struct front_services services;
    struct front_door door;
    uint8_t seal[TABLE_SEAL_BYTES]; /* what continuations are sealed with */
};

/* Options are copied, the texts in them are borrowed. */
struct table *table_new(const struct table_options *options);

/* Waits for the writes that a committer will still end. After the listeners have gone, before the
 * loops go. */
void table_wait(struct table *table);

/* After the http it handles for is gone. NULL is fine. */
void table_free(struct table *table);
CLEANUP_FN(struct table *, table_free)

/* Over it 413, whatever is asked for. */
enum { TABLE_BODY_BYTES_MAX = 4 * 1024 * 1024 };

/* For net_http_settings: what is refused before it reaches the handler, in the API's words. */
struct net_http_response table_refusal(struct arena *arena, uint16_t status, const char *reason);

/* The handler for net_http_new; context is a struct table. Answers every request, with an error if
 * need be. */
void table_handle(struct net_http_request *request, void *context);
