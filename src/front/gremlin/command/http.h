/* HTTP: scripts by POST, as Gremlin Server takes them, one answer each. */
#pragma once

#include "front/gremlin/command/front.h"
#include "front/gremlin/command/identity.h"

extern const struct front_call_kind gremlin_http_kind;

/* A POST of {"gremlin": ..., "bindings": ..., "language": ..., "aliases": ...}, in the handler. */
void gremlin_http_post(struct gremlin *gremlin, struct net_http_request *request);

/* The same of whoever a function says it is, which also finds the account of the call. */
void gremlin_http_run(struct gremlin *gremlin, struct net_http_request *request,
                      bool (*identify)(struct front_http_call *call,
                                       struct gremlin_identity *ret_identity, struct error *err));

/* Answers at once with {"message": ..., "code": ...}. */
void gremlin_http_refuse(struct net_http_request *request, uint16_t status, struct slice message,
                         struct slice lines);
