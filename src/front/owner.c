#include "front/owner.h"

#include <xxhash.h>

bool front_owner_check(struct net_owner *owner, struct error *err)
{
    const struct memory_meter *meter = net_owner_memory(owner);

    if (!meter || !memory_meter_is_full(meter))
        return true;
    if (memory_meter_used(meter) >= meter->max)
        return error_set(err, ERROR_MEMORY_FULL,
                         "requests and answers of the account hold %zu bytes, as many as they may "
                         "(account.memory_bytes_max)",
                         meter->max);
    return error_set(err, ERROR_MEMORY_FULL,
                     "requests and answers hold as many bytes as they may "
                     "(server.memory_bytes_max)");
}

bool front_owner_bill(const struct front_services *services, const struct account *account,
                      struct net_http_request *request, struct net_owner **ret_owner,
                      struct error *err)
{
    struct net_owner *owner = NULL;

    if (services->owners && account)
        owner = net_owners_find(services->owners, account_info(account)->number);
    if (owner)
        net_http_bill(request, net_owner_memory(owner));
    *ret_owner = owner;
    return front_owner_check(owner, err);
}

uint64_t front_owner_part(struct slice database, struct slice container)
{
    return XXH3_64bits_withSeed(container.data, container.len,
                                XXH3_64bits(database.data, database.len));
}
