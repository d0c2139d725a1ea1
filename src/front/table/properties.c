#include "front/table/properties.h"

#include "document/bson.h"
#include "front/table/answer.h"
#include "front/table/edm.h"
#include "throughput/cost.h"

/* What an element may hold. */
enum content { FLAG, NUMBER, TEXT, SECTION };

struct element {
    const char *name;
    enum content content;
    const struct element *children; /* of a section; up to one without a name */
};

static const struct element retention[] = {
    {"Enabled", FLAG, NULL}, {"Days", NUMBER, NULL}, {NULL, TEXT, NULL}};
static const struct element logging[] = {{"Version", TEXT, NULL},
                                         {"Delete", FLAG, NULL},
                                         {"Read", FLAG, NULL},
                                         {"Write", FLAG, NULL},
                                         {"RetentionPolicy", SECTION, retention},
                                         {NULL, TEXT, NULL}};
static const struct element metrics[] = {{"Version", TEXT, NULL},
                                         {"Enabled", FLAG, NULL},
                                         {"IncludeAPIs", FLAG, NULL},
                                         {"RetentionPolicy", SECTION, retention},
                                         {NULL, TEXT, NULL}};
static const struct element rule[] = {
    {"AllowedOrigins", TEXT, NULL},    {"AllowedMethods", TEXT, NULL},
    {"AllowedHeaders", TEXT, NULL},    {"ExposedHeaders", TEXT, NULL},
    {"MaxAgeInSeconds", NUMBER, NULL}, {NULL, TEXT, NULL}};
static const struct element rules[] = {{"CorsRule", SECTION, rule}, {NULL, TEXT, NULL}};
static const struct element sections[] = {{"Logging", SECTION, logging},
                                          {"HourMetrics", SECTION, metrics},
                                          {"MinuteMetrics", SECTION, metrics},
                                          {"Cors", SECTION, rules},
                                          {NULL, TEXT, NULL}};

/* Where nothing was set. */
static const char *const defaults[] = {
    "<Logging><Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>",
    "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false"
    "</Enabled></RetentionPolicy></HourMetrics>",
    "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false"
    "</Enabled></RetentionPolicy></MinuteMetrics>",
    "<Cors />",
};

/* --- Checking -------------------------------------------------------------------------------- */

static bool content_check(const struct xml_node *node, enum content content, struct error *err)
{
    uint64_t number;
    bool good = content == TEXT ||
                (content == FLAG && (slice_equal_nocase(node->text, SLICE("true")) ||
                                     slice_equal_nocase(node->text, SLICE("false")))) ||
                (content == NUMBER && slice_to_uint64(node->text, &number) && number <= INT32_MAX);

    return (good && !node->first) ||
           error_set(err, ERROR_TABLE_XML, "%.*s has a value it cannot have",
                     (int)MIN(node->name.len, (size_t)40), (const char *)node->name.data);
}

static const struct element *element_find(const struct element *list, struct slice name)
{
    for (; list->name; list++)
        if (slice_equal(name, slice_of_text(list->name)))
            return list;
    return NULL;
}

/* Levels are those of the table above: few. */
static bool section_check(const struct xml_node *node, const struct element *list,
                          struct error *err)
{
    for (const struct xml_node *child = node->first; child; child = child->next) {
        const struct element *element = element_find(list, child->name);

        if (!element)
            return error_set(err, ERROR_TABLE_XML, "%.*s does not belong into %.*s",
                             (int)MIN(child->name.len, (size_t)40), (const char *)child->name.data,
                             SLICE_ARG(node->name));
        if (element->content == SECTION ? !section_check(child, element->children, err)
                                        : !content_check(child, element->content, err))
            return false;
    }
    return true;
}

static bool cors_check(const struct xml_node *cors, struct error *err)
{
    size_t count = 0;

    for (const struct xml_node *one = cors ? cors->first : NULL; one; one = one->next) {
        for (const struct element *element = rule; element->name; element++)
            if (!xml_child(one, element->name))
                return error_set(err, ERROR_TABLE_XML, "a CorsRule has no %s", element->name);
        if (++count > TABLE_CORS_RULES_MAX)
            return error_set(err, ERROR_TABLE_XML, "there are more than %d CORS rules",
                             TABLE_CORS_RULES_MAX);
    }
    return true;
}

static bool document_check(const struct xml_node *root, struct error *err)
{
    if (!slice_equal(root->name, SLICE("StorageServiceProperties")))
        return error_set(err, ERROR_TABLE_XML, "StorageServiceProperties was expected");
    return section_check(root, sections, err) && cors_check(xml_child(root, "Cors"), err);
}

/* --- Keeping --------------------------------------------------------------------------------- */

static void node_append(struct buf *out, const struct xml_node *node)
{
    buf_printf(out, "<%.*s>", SLICE_ARG(node->name));
    if (!node->first)
        xml_append_text(out, node->text);
    for (const struct xml_node *child = node->first; child; child = child->next)
        node_append(out, child);
    buf_printf(out, "</%.*s>", SLICE_ARG(node->name));
}

const struct xml_node *table_properties_stored(struct table_call *call)
{
    struct document_value text;
    struct xml_node *root;
    struct error err;
    struct slice properties =
        call->account.account ? account_properties(call->account.account) : SLICE_NONE;

    if (properties.len == 0 || !document_find(properties, SLICE("tables"), &text) ||
        text.type != DOCUMENT_STRING || !xml_read(text.text, call->arena, &root, &err))
        return NULL;
    return root;
}

/* Sections that were not sent stay as they were. */
static void sheet_append(struct buf *out, const struct xml_node *sent,
                         const struct xml_node *stored)
{
    BUF_APPEND(out, "<StorageServiceProperties>");
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++) {
        const struct xml_node *node = sent ? xml_child(sent, sections[i].name) : NULL;

        if (!node && stored)
            node = xml_child(stored, sections[i].name);
        if (node)
            node_append(out, node);
        else
            buf_append_text(out, defaults[i]);
    }
    BUF_APPEND(out, "</StorageServiceProperties>");
}

static void account_append(struct buf *out, const struct account *account, struct slice text)
{
    struct slice before = account_properties(account);
    struct document_iter iter;
    size_t begin = document_begin(out);

    if (before.len) {
        document_iter_init(&iter, before);
        while (document_iter_next(&iter))
            if (!slice_equal(iter.key, SLICE("tables")))
                buf_append(out, iter.element, (size_t)(iter.at - iter.element));
    }
    document_append_string(out, SLICE("tables"), text);
    document_end(out, begin);
}

/* --- Operations ------------------------------------------------------------------------------ */

bool table_properties_read(struct table_call *call, struct error *err UNUSED)
{
    BUF_APPEND(&call->body, XML_HEAD);
    sheet_append(&call->body, NULL, table_properties_stored(call));
    call->charge_cru = cost_metadata(COST_METADATA_READ);
    call->format = TABLE_FORMAT_XML;
    call->status = 200;
    return true;
}

bool table_properties_write(struct table_call *call, struct error *err)
{
    CLEANUP(account_unref) struct account *changed = NULL;
    CLEANUP(buf_done) struct buf text, properties;
    struct xml_node *sent;

    buf_init(&text, XML_BYTES_MAX);
    buf_init(&properties, BUF_DEFAULT_MAX);
    call->charge_cru = cost_metadata(COST_METADATA_WRITE);
    if (!xml_read(call->http->body, call->arena, &sent, err) || !document_check(sent, err))
        return false;
    sheet_append(&text, sent, table_properties_stored(call));
    if (buf_overflowed(&text))
        return error_set(err, ERROR_TABLE_XML, "the properties are over %d bytes", XML_BYTES_MAX);
    account_append(&properties, call->account.account, buf_slice(&text));
    if (!catalogue_account_replace(call->services->catalogue, call->account.id,
                                   buf_slice(&properties), &changed, err))
        return false;
    call->status = 202;
    return true;
}

/* There is one copy of the data that clients are told of, and it is always up to date: both
 * locations say so. */
bool table_stats_read(struct table_call *call, struct error *err UNUSED)
{
    char date[CLOCK_HTTP_DATE_LEN];

    clock_http_date(clock_read_wall_ms(call->services->clock), date);
    buf_printf(&call->body,
               XML_HEAD "<StorageServiceStats><GeoReplication><Status>live</Status>"
                        "<LastSyncTime>%.*s</LastSyncTime></GeoReplication></StorageServiceStats>",
               CLOCK_HTTP_DATE_LEN, date);
    call->charge_cru = cost_metadata(COST_METADATA_READ);
    call->format = TABLE_FORMAT_XML;
    call->status = 200;
    return true;
}
