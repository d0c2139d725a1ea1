#include "front/mongo/expression/expression_private.h"

void expression_zone_prepare(struct expression_compile *compile, struct expression_node *node)
{
    (void)compile;
    node->zone = NULL;
}
