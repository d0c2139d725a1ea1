/* Transactions over several nodes find the containers they write to by number, when they are
 * applied: they may have been renamed, split or given another definition since. */
#include "catalogue/agreements.h"

#include "catalogue/catalogue_private.h"
#include "catalogue/container_space.h"
#include "catalogue/views.h"

static bool container_open(void *context, const struct history_origin *numbers,
                           struct item_space *ret_space, void **ret_held)
{
    struct container *container;

    catalogue_container_by_number(context, numbers->account, numbers->database, numbers->container,
                                  &container);
    if (!container)
        return false;
    *ret_space = container_space(container, &clock_system, NULL);
    *ret_held = container;
    return true;
}

static void container_close(void *held)
{
    container_unref(held);
}

struct agreements *catalogue_agreements_new(struct catalogue *catalogue, struct cluster *cluster)
{
    return agreements_new(&(struct agreements_options){.cluster = cluster,
                                                       .log = catalogue->log,
                                                       .open = container_open,
                                                       .close = container_close,
                                                       .context = catalogue});
}

struct agreements *catalogue_agreements(const struct catalogue *catalogue)
{
    return catalogue->agreements;
}
