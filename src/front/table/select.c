#include "front/table/select.h"

bool table_selection_parse(struct table_call *call, struct table_selection *ret_selection,
                           struct error *err)
{
    struct slice rest = table_parameter(&call->parameters, SLICE("$select")), name;
    struct slice *names;
    size_t count = 0;

    *ret_selection = (struct table_selection){0};
    if (rest.len == 0)
        return true;
    names = ARENA_ARRAY(call->arena, struct slice, TABLE_SELECT_MAX);
    while (rest.data) {
        if (!slice_split(rest, ',', &name, &rest)) {
            name = rest;
            rest = SLICE_NONE;
        }
        name = slice_trim(name);
        if (slice_equal(name, SLICE("*")))
            return true;
        if (count == TABLE_SELECT_MAX)
            return error_set(err, ERROR_TABLE_PARAMETER, "$select names more than %d properties",
                             TABLE_SELECT_MAX);
        if (!table_property_check(name, err))
            return error_set(err, ERROR_TABLE_PARAMETER,
                             "$select must be names of properties with commas between them");
        names[count++] = arena_copy(call->arena, name);
    }
    *ret_selection = (struct table_selection){names, count};
    return true;
}

bool table_top_parse(const struct table_call *call, size_t *ret_top, struct error *err)
{
    struct slice text = table_parameter(&call->parameters, SLICE("$top"));
    uint64_t number = TABLE_PAGE_MAX;

    if (text.data && (!slice_to_uint64(text, &number) || number > TABLE_PAGE_MAX))
        return error_set(err, ERROR_TABLE_PARAMETER, "$top must be 0 to %d", TABLE_PAGE_MAX);
    *ret_top = (size_t)number;
    return true;
}

bool table_options_check(const struct table_call *call, struct error *err)
{
    static const char *const known[] = {"$filter", "$select", "$top", "$format"};

    for (size_t i = 0; i < call->parameters.count; i++) {
        struct slice name = call->parameters.list[i].name;
        bool fine = name.len == 0 || name.data[0] != '$';

        for (size_t j = 0; !fine && j < ARRAY_LEN(known); j++)
            fine = slice_equal(name, slice_of_text(known[j]));
        if (!fine)
            return error_set(err, ERROR_NOT_SUPPORTED, "the query option %.*s is not supported",
                             (int)MIN(name.len, (size_t)32), (const char *)name.data);
    }
    return true;
}
