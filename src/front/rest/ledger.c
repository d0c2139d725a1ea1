#include "front/rest/ledger.h"

#include "front/rest/header.h"
#include "front/rest/operation.h"

static const char *const paths[REST_RESOURCE_COUNT] = {
    [REST_ACCOUNT] = "/",
    [REST_DATABASES] = "/dbs",
    [REST_CONTAINERS] = "/dbs/{db}/colls",
    [REST_ITEMS] = "/dbs/{db}/colls/{c}/docs",
    [REST_PKRANGES] = "/dbs/{db}/colls/{c}/pkranges",
    [REST_PROCEDURES] = "/dbs/{db}/colls/{c}/sprocs",
    [REST_TRIGGERS] = "/dbs/{db}/colls/{c}/triggers",
    [REST_FUNCTIONS] = "/dbs/{db}/colls/{c}/udfs",
    [REST_CONFLICTS] = "/dbs/{db}/colls/{c}/conflicts",
    [REST_PARTITION_DELETE] = "/dbs/{db}/colls/{c}/operations/partitionkeydelete",
    [REST_USERS] = "/dbs/{db}/users",
    [REST_PERMISSIONS] = "/dbs/{db}/users/{u}/permissions",
    [REST_ENCRYPTION_KEYS] = "/dbs/{db}/clientencryptionkeys",
    [REST_OFFERS] = "/offers",
    [REST_ADDRESSES] = "/addresses",
    [REST_MEDIA] = "/media",
    [REST_ATTACHMENTS] = "/dbs/{db}/colls/{c}/docs/{id}/attachments",
    [REST_SCHEMAS] = "/dbs/{db}/colls/{c}/schemas",
    [REST_TOPOLOGY] = "/topology",
};

static const char *verb_method(enum rest_verb verb)
{
    switch (verb) {
    case REST_READ:
    case REST_LIST:
    case REST_CHANGES:
        return "GET";
    case REST_REPLACE:
        return "PUT";
    case REST_PATCH:
        return "PATCH";
    case REST_DELETE:
        return "DELETE";
    default:
        return "POST";
    }
}

static bool verb_is_single(enum rest_resource resource, enum rest_verb verb)
{
    if (resource == REST_ACCOUNT || resource == REST_PARTITION_DELETE)
        return false; /* the path is already one of its own */
    return verb == REST_READ || verb == REST_REPLACE || verb == REST_PATCH || verb == REST_DELETE ||
           verb == REST_EXECUTE;
}

static void operations_print(struct buf *out)
{
    BUF_APPEND(out, "## Operations\n\n"
                    "| operation | request | | what |\n|---|---|---|---|\n");
    for (int r = 0; r < REST_RESOURCE_COUNT; r++)
        for (int v = 0; v < REST_VERB_COUNT; v++) {
            enum rest_resource resource = (enum rest_resource)r;
            enum rest_verb verb = (enum rest_verb)v;
            const struct rest_operation *operation = rest_operation_find(resource, verb);

            if (operation)
                buf_printf(out, "| `%s` | %s `%s%s` | %s | %s |\n", operation->name,
                           verb_method(verb), paths[resource],
                           verb_is_single(resource, verb) ? "/{id}" : "",
                           operation->run ? "yes" : "refused", operation->meaning);
        }
}

static void headers_print(struct buf *out)
{
    static const char *const fates[] = {"obeyed", "hint", "refused"};

    BUF_APPEND(out,
               "\n## Request headers\n\n"
               "Obeyed ones change what the server does; a hint may change nothing without the "
               "answer being wrong.\nHeaders that are not listed are not looked at.\n\n"
               "| header | | what |\n|---|---|---|\n");
    for (size_t i = 0; i < REST_HEADER_COUNT; i++)
        buf_printf(out, "| `%.*s` | %s | %s |\n", SLICE_ARG(rest_header_rows[i].name),
                   fates[rest_header_rows[i].fate], rest_header_rows[i].meaning);
}

/* Whoever adds a client to the tests, or takes one out, says so here. */
static void clients_print(struct buf *out)
{
    BUF_APPEND(
        out, "\n## Clients\n\n"
             "Run: the library itself is used by our tests against a server. Read: its source was "
             "read and its requests\nare sent by hand in our tests; it was not run.\n\n"
             "| language | library | |\n|---|---|---|\n"
             "| JavaScript | `@azure/cosmos`, `@azure/data-tables` | run |\n"
             "| Python | `azure.cosmos`, `azure.data.tables`, blocking and asynchronous | run, "
             "where they can be imported |\n"
             "| .NET | `Microsoft.Azure.Cosmos`, `Azure.Data.Tables` | read |\n"
             "| Java | `azure-cosmos`, `azure-data-tables` | read |\n"
             "| Go | `azcosmos`, `aztables` | read |\n"
             "| Rust | `azure_data_cosmos` | read |\n");
}

void rest_ledger_print(struct buf *out)
{
    BUF_APPEND(out,
               "# Compatibility: the NoSQL API\n\n"
               "Made by `orrery help api --markdown` from `src/front/rest/operations.def` and "
               "`headers.def`; a test\nsends each operation and keeps this page true. What is "
               "refused answers 501 with the reason; an\noperation that is not listed answers 405, "
               "a path that is not, 404. Administration, below `/_orrery/`, has a manual of its "
               "own: [admin.md](admin.md).\n\n");
    operations_print(out);
    headers_print(out);
    clients_print(out);
}
