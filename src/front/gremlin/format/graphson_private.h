/* The reader of GraphSON, in two files: graphson_read.c, and graphson_element.c for elements. */
#pragma once

#include "front/gremlin/format/format_private.h"
#include "front/gremlin/format/json_tokens.h"

struct gremlin_graphson {
    struct gremlin_tokens tokens;
    struct gremlin_heap *heap;
    int depth;
    struct error *err;
};

/* Values at a token. Those with a type are given what stands in "@value". */
NODISCARD bool gremlin_graphson_value(struct gremlin_graphson *reader, uint32_t at,
                                      struct gremlin_value *ret_value);
NODISCARD bool gremlin_graphson_text(struct gremlin_graphson *reader, uint32_t at, const char *of,
                                     struct gremlin_value *ret_value);
NODISCARD bool gremlin_graphson_object(struct gremlin_graphson *reader, uint32_t at,
                                       struct gremlin_value *ret_value);
bool gremlin_graphson_refuse(struct gremlin_graphson *reader, const char *type);

bool gremlin_graphson_vertex(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                             struct gremlin_value *ret_value);
bool gremlin_graphson_edge(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                           struct gremlin_value *ret_value);
bool gremlin_graphson_vertex_property(struct gremlin_graphson *reader, uint32_t at,
                                      enum gremlin_type type, struct gremlin_value *ret_value);
bool gremlin_graphson_property(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                               struct gremlin_value *ret_value);
bool gremlin_graphson_path(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                           struct gremlin_value *ret_value);
bool gremlin_graphson_tree(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                           struct gremlin_value *ret_value);
bool gremlin_graphson_subgraph(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                               struct gremlin_value *ret_value);
bool gremlin_graphson_traverser(struct gremlin_graphson *reader, uint32_t at,
                                enum gremlin_type type, struct gremlin_value *ret_value);
bool gremlin_graphson_report(struct gremlin_graphson *reader, uint32_t at, enum gremlin_type type,
                             struct gremlin_value *ret_value);
