#include "catalogue/container_space.h"
#include "front/front.h"
#include "maintain/pauses.h"

struct item_space front_space(const struct front_services *services, struct container *container)
{
    struct item_space space = container_space(container, services->clock, services->gates);

    space.holds = pauses_holds(services->pauses);
    return space;
}
