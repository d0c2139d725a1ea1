#include "catalogue/container_names.h"

static struct slice database_name(const struct account *account, uint32_t number,
                                  struct arena *arena)
{
    for (size_t i = 0; i < account_database_count(account); i++) {
        const struct catalogue_info *info = database_info(account_database(account, i));

        if (info->number == number)
            return arena_copy(arena, info->id);
    }
    return SLICE("");
}

struct container_names container_names(struct catalogue *catalogue,
                                       const struct container *container, struct arena *arena)
{
    struct container_names names = {SLICE(""), SLICE("")};
    size_t count;
    struct account **accounts = catalogue_accounts(catalogue, arena, &count);

    for (size_t i = 0; i < count; i++) {
        const struct catalogue_info *info = account_info(accounts[i]);

        if (info->number == container_account_number(container)) {
            names.account = arena_copy(arena, info->id);
            names.database =
                database_name(accounts[i], container_database_number(container), arena);
        }
        account_unref(accounts[i]);
    }
    return names;
}

void container_names_prefix(struct catalogue *catalogue, const struct container *container,
                            struct error *err)
{
    CLEANUP(arena_free) struct arena *arena = arena_new();
    struct container_names names = container_names(catalogue, container, arena);

    (void)error_prefix(err, "container \"%.*s/%.*s\" of account \"%.*s\"",
                       SLICE_ARG(names.database), SLICE_ARG(container_info(container)->id),
                       SLICE_ARG(names.account));
}
