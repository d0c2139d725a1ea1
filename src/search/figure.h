/* Figure: GeoJSON read into positions and parts, checked as far as one position at a time can be.
 *
 * The same figure is a shape on the Earth, whose positions are degrees of longitude and latitude,
 * or in a plane, whose positions are what their owner says. What rings and lines do to each other
 * is found out where a shape is made of it (shape.h).
 *
 * A figure never changes once read and lives in the arena it was read into. */
#pragma once

#include "base/arena.h"
#include "document/value.h"
#include "search/geometry.h"

/* False: it is none, *ret_reason says why. */
NODISCARD bool search_figure_read(const struct document_value *value,
                                  const struct search_rules *rules, struct arena *arena,
                                  struct search_figure *ret_figure,
                                  struct search_reason *ret_reason);

/* The same of what is one point and nothing else, as most values are, without memory. False: it is
 * something else, or none; search_figure_read tells. */
NODISCARD bool search_point_read(const struct document_value *value,
                                 const struct search_rules *rules,
                                 struct search_position *ret_position);
