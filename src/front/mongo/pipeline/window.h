/* Window: values computed over documents around one, for $setWindowFields and the stages that are
 * made of it. */
#pragma once

#include "front/mongo/pipeline/pipeline_private.h"

/* The outputs of one window being put together. */
struct pipeline_window {
    const struct query_expression *key; /* NULL: all documents are one window */
    struct slice sort;                  /* {a: 1}; data NULL: none */
    const struct query_expression *by;  /* the value of its only field; NULL: there are several */
    struct query_window_output outputs[SLOT_RESULTS_MAX];
    size_t output_count;
    struct slice paths[SLOT_RESULTS_MAX]; /* fields that are set, and to what */
    const struct query_expression *values[SLOT_RESULTS_MAX];
    size_t field_count;
    bool ordered; /* lists are collected: documents have to come in order */
};

/* Adds an output; its slot is what the value is read from. */
NODISCARD bool pipeline_window_output(struct pipeline *p, struct pipeline_window *window,
                                      struct query_window_output output,
                                      const struct query_expression **ret_value, struct error *err);

/* The last value that was something, and what lies between two of them on a line. */
NODISCARD bool pipeline_window_locf(struct pipeline *p, struct pipeline_window *window,
                                    const struct query_expression *input,
                                    const struct query_expression **ret_value, struct error *err);
NODISCARD bool pipeline_window_linear(struct pipeline *p, struct pipeline_window *window,
                                      const struct query_expression *input,
                                      const struct query_expression **ret_value, struct error *err);

/* Reads sortBy. */
NODISCARD bool pipeline_window_sort(struct pipeline *p, struct pipeline_window *window,
                                    const struct document_value *sort, struct error *err);

/* Appends the stages: the window, and the documents with their fields. */
NODISCARD bool pipeline_window_append(struct pipeline *p, struct pipeline_window *window,
                                      struct error *err);
/* Only the first of them: the outputs stay in their slots. */
NODISCARD bool pipeline_window_stage(struct pipeline *p, struct pipeline_window *window,
                                     struct error *err);

/* Milliseconds of a unit from "week" on down. *ret_ms 0: "month", "quarter" and "year", and
 * *ret_months says how many. */
bool pipeline_unit(struct slice name, int64_t *ret_ms, int64_t *ret_months);
