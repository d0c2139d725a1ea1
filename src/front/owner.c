#include "front/owner.h"

#include <xxhash.h>

enum { STRANGERS = 64 }; /* owners of accounts that are still to be made */

static bool full(const struct memory_meter *meter, struct error *err)
{
    bool server = meter->parent && memory_meter_used(meter->parent) >= meter->parent->max;

    return error_set(err, ERROR_MEMORY_FULL,
                     "requests and answers%s hold as many bytes as they may (%s)",
                     server ? "" : " of the account",
                     server ? "server.memory_bytes_max" : "account.memory_bytes_max");
}

bool front_owner_hold(struct net_owner *owner, size_t bytes, struct error *err)
{
    struct memory_meter *meter = net_owner_memory(owner);

    if (!meter)
        return true;
    return (!memory_meter_is_full(meter) && memory_meter_change(meter, 0, bytes)) ||
           full(meter, err);
}

void front_owner_let_go(struct net_owner *owner, size_t bytes)
{
    memory_meter_set(net_owner_memory(owner), bytes, 0);
}

struct net_owner *front_owner_find(const struct front_services *services,
                                   const struct account *account, struct slice id)
{
    if (!services->owners)
        return NULL;
    if (account)
        return net_owners_find(services->owners, account_info(account)->number);
    return net_owners_find_guest(services->owners,
                                 UINT64_MAX - XXH3_64bits(id.data, id.len) % STRANGERS);
}

bool front_owner_bill(const struct front_services *services, const struct account *account,
                      struct slice id, struct net_http_request *request,
                      struct net_owner **ret_owner, struct error *err)
{
    struct net_owner *owner = front_owner_find(services, account, id);

    if (owner)
        net_http_bill(request, net_owner_memory(owner));
    *ret_owner = owner;
    return front_owner_hold(owner, 0, err);
}

uint64_t front_owner_part(struct slice database, struct slice container)
{
    return XXH3_64bits_withSeed(container.data, container.len,
                                XXH3_64bits(database.data, database.len));
}
