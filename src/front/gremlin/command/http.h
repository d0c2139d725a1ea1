/* HTTP: scripts by POST, as Gremlin Server takes them, one answer each. */
#pragma once

#include "front/gremlin/command/front.h"

extern const struct front_call_kind gremlin_http_kind;

/* A POST of {"gremlin": ..., "bindings": ..., "language": ..., "aliases": ...}, in the handler. */
void gremlin_http_post(struct gremlin *gremlin, struct net_http_request *request);

/* Answers at once with {"message": ..., "code": ...}. */
void gremlin_http_refuse(struct net_http_request *request, uint16_t status, struct slice message,
                         struct slice lines);
