/* Values as text: what asString(), concat(), format() and keys of JSON objects show; as Java writes
 * them: v[1], e[7][1-knows->2], vp[name->marko], [1, 2], {a=1}, path[a, b]; 1.0 for doubles. */
#pragma once

#include "front/gremlin/value/value.h"

void gremlin_value_write_text(struct gremlin_value value, struct buf *buf);
/* A string of it. */
struct gremlin_value gremlin_value_text(struct gremlin_heap *heap, struct gremlin_value value);

/* What messages call a type: "Integer", "String", "Vertex". */
const char *gremlin_type_name(enum gremlin_type type);

/* ISO 8601, both ways: 2024-01-01T00:00:00.5+02:00 (Z; seconds and offset may be left out when
 * reading, a date alone is midnight in UTC) and PT1H2.5S. */
NODISCARD bool gremlin_date_time_parse(struct slice text, int64_t *ret_seconds,
                                       int32_t *ret_nanoseconds, int32_t *ret_offset);
void gremlin_date_time_write(int64_t seconds, int32_t nanoseconds, int32_t offset, struct buf *buf);
NODISCARD bool gremlin_duration_parse(struct slice text, int64_t *ret_seconds,
                                      int32_t *ret_nanoseconds);
void gremlin_duration_write(int64_t seconds, int32_t nanoseconds, struct buf *buf);

/* Days since 1970 of a date, and back. */
int64_t gremlin_days_of(int64_t year, int month, int day);
void gremlin_days_split(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day);

/* A float or double as Java prints it: 1.0, 1.0E10, NaN, Infinity. */
void gremlin_real_write(struct gremlin_value real, struct buf *buf);
/* The fewest digits that read back as the same float (0.1, not 0.10000000149). Finite. */
struct slice gremlin_float_digits(float number, char room[32]);
