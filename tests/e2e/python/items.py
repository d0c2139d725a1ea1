"""Items, batches, change feeds, hierarchical keys, throughput, users and scripts of the Python client."""
import base64
import json
import time
import uuid
import warnings
from datetime import datetime, timezone

from azure.core import MatchConditions
from azure.core.credentials import AccessToken
from azure.cosmos import CosmosClient, PartitionKey, ThroughputProperties, documents, exceptions
from azure.cosmos.partition_key import NonePartitionKeyValue

import claims

HTTP = exceptions.CosmosHttpResponseError
opened = {}  # client and database, once for all claims


def name(prefix):
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def client(endpoint):
    if "client" not in opened:
        opened["client"] = CosmosClient(endpoint.url, endpoint.key)
    return opened["client"]


def database(endpoint):
    if "database" not in opened:
        opened["database"] = client(endpoint).create_database(name("items"))
    return opened["database"]


def container(endpoint, paths=("/pk",), **options):
    key = PartitionKey(paths[0]) if len(paths) == 1 else PartitionKey(list(paths), kind="MultiHash")
    return database(endpoint).create_container(name("c"), key, **options)


def headers_of(target):
    return target.client_connection.last_response_headers


# --- Databases and containers ---------------------------------------------------------------------


def claim_databases_and_containers_are_made_found_listed_and_dropped(endpoint):
    made_here = client(endpoint).create_database_if_not_exists(name("d"))
    assert made_here.id in [found["id"] for found in client(endpoint).list_databases()]
    again = client(endpoint).create_database_if_not_exists(made_here.id)
    assert again.read()["_rid"] == made_here.read()["_rid"]
    made = made_here.create_container_if_not_exists("one", PartitionKey("/pk"), default_ttl=100)
    assert made.read()["defaultTtl"] == 100
    found = list(made_here.query_containers("SELECT * FROM root r WHERE r.id = @id",
                                           parameters=[{"name": "@id", "value": "one"}]))
    assert [entry["id"] for entry in found] == ["one"]
    replaced = made_here.replace_container(made, PartitionKey("/pk"), default_ttl=7)
    assert replaced.read()["defaultTtl"] == 7
    made_here.delete_container("one")
    claims.raises(exceptions.CosmosResourceNotFoundError, made.read)
    client(endpoint).delete_database(made_here)
    claims.raises(exceptions.CosmosResourceNotFoundError, made_here.read)


def claim_the_account_is_read(endpoint):
    account = client(endpoint).get_database_account()
    assert account.ConsistencyPolicy["defaultConsistencyLevel"] == "Session"
    assert len(account.WritableLocations) == 1


class EmulatorCredential:
    """As the vendor's tests make it for the emulator: nobody signs, the third part is the key."""

    def __init__(self, key):
        self.key = key

    def get_token(self, *_scopes, **_options):
        now = int(time.time())
        parts = [json.dumps({"typ": "JWT", "alg": "RS256"}), json.dumps({"iat": now, "nbf": now, "exp": now + 7200}), self.key]
        token = ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
        return AccessToken(token, now + 7200)


def claim_a_token_credential_opens_the_account(endpoint):
    warnings.simplefilter("ignore")  # the authority is the server's own, of this run only
    url = endpoint.url.replace("http:", "https:")  # the library sends tokens over nothing else
    items = container(endpoint)
    by_token = CosmosClient(url, EmulatorCredential(endpoint.key), connection_verify=False) \
        .get_database_client(database(endpoint).id).get_container_client(items.id)
    by_token.create_item({"id": "1", "pk": "a"})
    assert [item["id"] for item in by_token.query_items("SELECT * FROM c", partition_key="a")] == ["1"]
    error = claims.raises(HTTP, CosmosClient, url, EmulatorCredential("x" * 88), connection_verify=False)
    assert error.status_code == 401


# --- Items ----------------------------------------------------------------------------------------


def claim_an_item_is_created_read_replaced_upserted_patched_and_deleted(endpoint):
    items = container(endpoint)
    made = items.create_item({"id": "1", "pk": "a", "n": 1, "text": "grüße 🚀", "list": [1, 2.5, None, True]})
    assert made["_rid"] and made["_etag"] and made["_ts"]
    assert items.read_item("1", "a")["text"] == "grüße 🚀"
    assert items.read_item(made, "a")["list"] == [1, 2.5, None, True]
    assert items.replace_item("1", {"id": "1", "pk": "a", "n": 2})["n"] == 2
    assert items.upsert_item({"id": "1", "pk": "a", "n": 3})["n"] == 3
    assert items.upsert_item({"id": "2", "pk": "a", "n": 9})["n"] == 9
    patched = items.patch_item("1", "a", [
        {"op": "incr", "path": "/n", "value": 5}, {"op": "add", "path": "/tags", "value": ["x"]},
        {"op": "set", "path": "/tags/0", "value": "y"}], filter_predicate="from c where c.n = 3")
    assert patched["n"] == 8 and patched["tags"] == ["y"]
    error = claims.raises(HTTP, items.patch_item, "1", "a", [{"op": "incr", "path": "/n", "value": 1}],
                   filter_predicate="from c where c.n = 3")
    assert error.status_code == 412
    items.delete_item("1", "a")
    claims.raises(exceptions.CosmosResourceNotFoundError, items.read_item, "1", "a")
    assert [item["id"] for item in items.read_all_items()] == ["2"]


def claim_errors_are_the_library_s_own(endpoint):
    items = container(endpoint)
    items.create_item({"id": "1", "pk": "a"})
    claims.raises(exceptions.CosmosResourceExistsError, items.create_item, {"id": "1", "pk": "a"})
    claims.raises(exceptions.CosmosResourceNotFoundError, items.read_item, "none", "a")
    claims.raises(exceptions.CosmosResourceNotFoundError, items.delete_item, "1", "b")
    gone = database(endpoint).get_container_client("nowhere")
    claims.raises(exceptions.CosmosResourceNotFoundError, gone.read_item, "1", "a")
    assert claims.raises(HTTP, items.create_item, {"id": "", "pk": "a"}).status_code == 400
    assert claims.raises(HTTP, items.create_item, {"id": "big", "pk": "a", "text": "x" * 2_200_000}).status_code == 413


def claim_names_with_blanks_and_signs_keep_their_items(endpoint):
    items = container(endpoint)
    for id_ in ["a b", "50%", "ü", "a+b", "it's", 'say "x"', "(1)", "[2]", "{3}", "~", "a&b=c", "x;y", "@", "$"]:
        items.create_item({"id": id_, "pk": id_})
        assert items.read_item(id_, id_)["id"] == id_, id_
        items.replace_item(id_, {"id": id_, "pk": id_, "n": 1})
        items.delete_item(id_, id_)


def claim_etags_decide_who_may_replace(endpoint):
    items = container(endpoint)
    first = items.create_item({"id": "1", "pk": "a", "n": 1})
    second = items.replace_item("1", {"id": "1", "pk": "a", "n": 2}, etag=first["_etag"],
                                match_condition=MatchConditions.IfNotModified)
    error = claims.raises(exceptions.CosmosAccessConditionFailedError, items.replace_item, "1", {"id": "1", "pk": "a", "n": 3},
                   etag=first["_etag"], match_condition=MatchConditions.IfNotModified)
    assert error.status_code == 412
    claims.raises(exceptions.CosmosAccessConditionFailedError, items.delete_item, "1", "a", etag=first["_etag"],
           match_condition=MatchConditions.IfNotModified)
    assert not items.read_item("1", "a", etag=second["_etag"], match_condition=MatchConditions.IfModified)  # 304: no body
    assert items.read_item("1", "a", etag=first["_etag"], match_condition=MatchConditions.IfModified)["n"] == 2


def claim_keys_of_every_type_keep_their_items_apart(endpoint):
    items = container(endpoint)
    keys = ["text", "", 5, 5.5, -1, True, False, None]
    for i, key in enumerate(keys):
        items.create_item({"id": "same", "pk": key, "i": i})
    for i, key in enumerate(keys):
        assert items.read_item("same", key)["i"] == i
    items.create_item({"id": "same", "i": 99})
    assert items.read_item("same", NonePartitionKeyValue)["i"] == 99
    assert len(list(items.query_items("SELECT * FROM c", enable_cross_partition_query=True))) == len(keys) + 1


def claim_many_items_are_read_at_once(endpoint):
    items = container(endpoint, offer_throughput=30000)
    wanted = [(str(i), f"p{i % 37}") for i in range(250)]
    for id_, key in wanted:
        items.create_item({"id": id_, "pk": key})
    found = items.read_items(wanted + [("none", "p1")])
    assert sorted(int(item["id"]) for item in found) == list(range(250))


def claim_no_response_is_sent_where_none_is_wanted(endpoint):
    items = container(endpoint)
    assert not items.create_item({"id": "1", "pk": "a"}, no_response=True)
    assert not items.upsert_item({"id": "1", "pk": "a", "n": 1}, no_response=True)
    assert items.read_item("1", "a")["n"] == 1


def claim_items_live_as_long_as_their_ttl(endpoint):
    items = container(endpoint, default_ttl=-1)
    items.create_item({"id": "1", "pk": "a", "ttl": 1000})
    assert claims.raises(HTTP, items.create_item, {"id": "2", "pk": "a", "ttl": 0}).status_code == 400
    assert items.read_item("1", "a")["ttl"] == 1000


def claim_unique_keys_hold_within_a_partition(endpoint):
    items = container(endpoint, unique_key_policy={"uniqueKeys": [{"paths": ["/mail"]}]})
    items.create_item({"id": "1", "pk": "a", "mail": "x"})
    claims.raises(exceptions.CosmosResourceExistsError, items.create_item, {"id": "2", "pk": "a", "mail": "x"})
    items.create_item({"id": "2", "pk": "b", "mail": "x"})


def claim_all_items_of_a_key_are_deleted(endpoint):
    items = container(endpoint)
    for i in range(20):
        items.create_item({"id": str(i), "pk": "a" if i < 15 else "b"})
    items.delete_all_items_by_partition_key("a")
    assert len(list(items.query_items("SELECT * FROM c", enable_cross_partition_query=True))) == 5


# --- Batches --------------------------------------------------------------------------------------


def claim_a_batch_is_all_or_nothing(endpoint):
    items = container(endpoint)
    items.create_item({"id": "old", "pk": "a", "n": 1})
    results = items.execute_item_batch([
        ("create", ({"id": "1", "pk": "a"},)),
        ("upsert", ({"id": "2", "pk": "a"},)),
        ("read", ("old",)),
        ("replace", ("old", {"id": "old", "pk": "a", "n": 2})),
        ("patch", ("old", [{"op": "incr", "path": "/n", "value": 10}])),
        ("delete", ("2",))], partition_key="a")
    assert [result["statusCode"] for result in results] == [201, 201, 200, 200, 200, 204]
    assert results[2]["resourceBody"]["n"] == 1
    assert results[4]["resourceBody"]["n"] == 12
    error = claims.raises(exceptions.CosmosBatchOperationError, items.execute_item_batch,
                   [("create", ({"id": "3", "pk": "a"},)), ("create", ({"id": "1", "pk": "a"},))], partition_key="a")
    assert error.error_index == 1 and error.status_code == 409
    assert [response["statusCode"] for response in error.operation_responses] == [424, 409]
    claims.raises(exceptions.CosmosResourceNotFoundError, items.read_item, "3", "a")


def claim_a_batch_has_limits(endpoint):
    items = container(endpoint)
    error = claims.raises(HTTP, items.execute_item_batch,
                   [("create", ({"id": str(i), "pk": "a"},)) for i in range(101)], partition_key="a")
    assert error.status_code == 400
    error = claims.raises(exceptions.CosmosBatchOperationError, items.execute_item_batch,
                   [("replace", ("none", {"id": "none", "pk": "a"}))], partition_key="a")
    assert error.status_code == 404


def claim_etags_hold_in_batches(endpoint):
    items = container(endpoint)
    made = items.create_item({"id": "1", "pk": "a", "n": 1})
    items.execute_item_batch([("replace", ("1", {"id": "1", "pk": "a", "n": 2}), {"if_match_etag": made["_etag"]})],
                             partition_key="a")
    error = claims.raises(exceptions.CosmosBatchOperationError, items.execute_item_batch,
                   [("replace", ("1", {"id": "1", "pk": "a", "n": 3}), {"if_match_etag": made["_etag"]})],
                   partition_key="a")
    assert error.status_code == 412
    assert items.read_item("1", "a")["n"] == 2


# --- Change feed ----------------------------------------------------------------------------------


def claim_the_change_feed_shows_each_change_once_from_where_it_was_left(endpoint):
    items = container(endpoint, offer_throughput=30000)
    for i in range(30):
        items.create_item({"id": str(i), "pk": f"p{i}"})
    seen = list(items.query_items_change_feed(start_time="Beginning"))
    assert sorted(int(item["id"]) for item in seen) == list(range(30))
    position = headers_of(items)["etag"]
    assert list(items.query_items_change_feed(continuation=position)) == []
    items.upsert_item({"id": "3", "pk": "p3", "again": True})
    items.create_item({"id": "new", "pk": "p99"})
    seen = list(items.query_items_change_feed(continuation=position))
    assert sorted(item["id"] for item in seen) == ["3", "new"]


def claim_a_change_feed_that_was_read_in_part_goes_on_where_it_was_left(endpoint):
    items = container(endpoint, offer_throughput=30000)
    for i in range(40):
        items.create_item({"id": str(i), "pk": f"p{i}"})
    seen = []
    pages = items.query_items_change_feed(start_time="Beginning", max_item_count=5).by_page()
    # The library refuses a token of its own that has ranges it has not asked yet, so each of the three is asked once.
    for _ in range(3):
        seen += [item["id"] for item in next(pages)]
    assert 0 < len(seen) < 40
    position = headers_of(items)["etag"]
    seen += [item["id"] for item in items.query_items_change_feed(continuation=position, max_item_count=5)]
    assert sorted(map(int, seen)) == list(range(40))


def claim_the_change_feed_of_a_key_a_range_and_a_time(endpoint):
    items = container(endpoint, offer_throughput=30000)
    for i in range(12):
        items.create_item({"id": str(i), "pk": "a" if i < 5 else f"p{i}"})
    seen = list(items.query_items_change_feed(start_time="Beginning", partition_key="a"))
    assert [item["id"] for item in seen] == ["0", "1", "2", "3", "4"]
    by_range = []
    for feed_range in items.read_feed_ranges():
        by_range += list(items.query_items_change_feed(start_time="Beginning", feed_range=feed_range))
    assert len(by_range) == 12
    assert len(list(items.query_items_change_feed(start_time=datetime(2020, 1, 1, tzinfo=timezone.utc)))) == 12
    assert not list(items.query_items_change_feed(start_time="Now"))


def claim_pages_of_the_change_feed_are_as_long_as_asked(endpoint):
    items = container(endpoint)
    for i in range(10):
        items.create_item({"id": str(i), "pk": "a"})
    pages = [len(list(page)) for page in
             items.query_items_change_feed(start_time="Beginning", partition_key="a", max_item_count=4).by_page()]
    assert [length for length in pages if length] == [4, 4, 2]


def claim_all_versions_and_deletes_from_now_on(endpoint):
    items = container_with_retention(endpoint)
    feed = items.query_items_change_feed(mode="AllVersionsAndDeletes")
    assert list(feed) == []
    position = headers_of(items)["etag"]
    items.create_item({"id": "1", "pk": "a", "n": 1})
    items.replace_item("1", {"id": "1", "pk": "a", "n": 2})
    items.delete_item("1", "a")
    changes = list(items.query_items_change_feed(mode="AllVersionsAndDeletes", continuation=position))
    assert [change["metadata"]["operationType"] for change in changes] == ["create", "replace", "delete"]
    assert changes[1]["current"]["n"] == 2


def container_with_retention(endpoint):
    """The library does not name changeFeedPolicy at creation, so it goes in as the service takes it: in the definition."""
    id_ = name("c")
    client(endpoint).client_connection.CreateContainer(
        database(endpoint).database_link, {"id": id_, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
                                 "changeFeedPolicy": {"retentionDuration": 10}})
    return database(endpoint).get_container_client(id_)


# --- Hierarchical keys ----------------------------------------------------------------------------


def claim_hierarchical_keys_in_operations_queries_and_feeds(endpoint):
    items = container(endpoint, ("/tenant", "/user", "/session"), offer_throughput=30000)
    for i in range(40):
        items.create_item({"id": str(i), "tenant": f"t{i % 2}", "user": f"u{i % 4}", "session": i % 8})
    assert items.read_item("5", ["t1", "u1", 5])["id"] == "5"
    items.replace_item("5", {"id": "5", "tenant": "t1", "user": "u1", "session": 5, "n": 1})
    items.patch_item("5", ["t1", "u1", 5], [{"op": "set", "path": "/n", "value": 2}])
    assert len(list(items.query_items("SELECT * FROM c", partition_key=["t1"]))) == 20
    assert len(list(items.query_items("SELECT * FROM c", partition_key=["t1", "u1"]))) == 10
    assert len(list(items.query_items("SELECT * FROM c", partition_key=["t1", "u1", 5]))) == 5
    assert list(items.query_items("SELECT VALUE c.session FROM c ORDER BY c.session DESC OFFSET 0 LIMIT 1",
                                  partition_key=["t0", "u2"])) == [6]
    assert list(items.query_items("SELECT VALUE COUNT(1) FROM c WHERE c.tenant = 't0'",
                                  enable_cross_partition_query=True)) == [20]
    results = items.execute_item_batch([("create", ({"id": "b", "tenant": "t", "user": "u", "session": 1},))],
                                       partition_key=["t", "u", 1])
    assert results[0]["statusCode"] == 201
    items.delete_item("5", ["t1", "u1", 5])
    error = claims.raises(HTTP, items.read_item, "6", ["t0", "u2"])
    assert error.status_code == 400 and error.sub_status == 1001


# --- Throughput -----------------------------------------------------------------------------------


def claim_throughput_is_read_replaced_and_refused(endpoint):
    items = container(endpoint, offer_throughput=500)
    assert items.get_throughput().offer_throughput == 500
    assert items.replace_throughput(700).offer_throughput == 700
    assert items.get_throughput().offer_throughput == 700
    assert claims.raises(HTTP, items.replace_throughput, 1).status_code == 400
    scaled = container(endpoint, offer_throughput=ThroughputProperties(auto_scale_max_throughput=4000,
                                                             auto_scale_increment_percent=0))
    found = scaled.get_throughput()
    assert found.auto_scale_max_throughput == 4000 and found.auto_scale_increment_percent == 0
    scaled.replace_throughput(ThroughputProperties(auto_scale_max_throughput=5000, auto_scale_increment_percent=2))
    found = scaled.get_throughput()
    assert found.auto_scale_max_throughput == 5000 and found.auto_scale_increment_percent == 2
    shared = client(endpoint).create_database(name("d"), offer_throughput=1000)
    assert shared.get_throughput().offer_throughput == 1000
    assert shared.replace_throughput(1200).offer_throughput == 1200
    client(endpoint).delete_database(shared)


def claim_charges_and_session_tokens_are_in_the_headers(endpoint):
    items = container(endpoint)
    seen = {}
    items.create_item({"id": "1", "pk": "a"}, response_hook=lambda headers, body: seen.update(headers))
    assert float(seen["x-ms-request-charge"]) > 0
    token = seen["x-ms-session-token"]
    assert items.read_item("1", "a", session_token=token)["id"] == "1"
    ranges = list(items.read_feed_ranges())
    newest = items.get_latest_session_token([(ranges[0], token)], ranges[0])
    assert newest == token


# --- Users and tokens -----------------------------------------------------------------------------


def claim_users_get_permissions_and_tokens_open_what_they_were_given_for(endpoint):
    items = container(endpoint)
    items.create_item({"id": "1", "pk": "a"})
    items.create_item({"id": "1", "pk": "b"})
    user = database(endpoint).create_user({"id": name("u")})
    permission = user.create_permission({"id": "p", "permissionMode": documents.PermissionMode.Read,
                                         "resource": items.container_link, "resourcePartitionKey": ["a"]})
    token = permission.properties["_token"]
    limited = CosmosClient(endpoint.url, {items.container_link: token}).get_database_client(database(endpoint).id) \
        .get_container_client(items.id)
    assert limited.read_item("1", "a")["id"] == "1"
    assert claims.raises(HTTP, limited.read_item, "1", "b").status_code == 403
    assert claims.raises(HTTP, limited.create_item, {"id": "2", "pk": "a"}).status_code == 403
    assert [entry["id"] for entry in user.list_permissions()] == ["p"]
    user.delete_permission("p")
    database(endpoint).delete_user(user)


# --- Scripts --------------------------------------------------------------------------------------


def claim_procedures_triggers_and_functions_run(endpoint):
    items = container(endpoint)
    items.scripts.create_stored_procedure({"id": "add", "body": """function (name, n) {
        const context = getContext(), items = context.getCollection();
        console.log('adding ' + name);
        for (let i = 0; i < n; i++)
            items.createDocument(items.getSelfLink(), { id: name + i, pk: 'a' }, (error) => { if (error) throw error; });
        context.getResponse().setBody({ made: n });
    }"""})
    made = items.scripts.execute_stored_procedure("add", partition_key="a", params=["x", 3], enable_script_logging=True)
    assert made == {"made": 3}
    assert len(list(items.query_items("SELECT * FROM c", partition_key="a"))) == 3
    items.scripts.create_trigger({"id": "stamp", "triggerType": "Pre", "triggerOperation": "All", "body": """function () {
        const request = getContext().getRequest(), item = request.getBody();
        item.stamped = true;
        request.setBody(item);
    }"""})
    assert items.create_item({"id": "t", "pk": "a"}, pre_trigger_include="stamp")["stamped"] is True
    items.scripts.create_user_defined_function({"id": "twice", "body": "function (n) { return 2 * n; }"})
    items.upsert_item({"id": "n", "pk": "a", "n": 21})
    assert list(items.query_items("SELECT VALUE udf.twice(c.n) FROM c WHERE c.id = 'n'", partition_key="a")) == [42]
    assert [entry["id"] for entry in items.scripts.list_stored_procedures()] == ["add"]
    items.scripts.delete_stored_procedure("add")
    error = claims.raises(HTTP, items.scripts.execute_stored_procedure, "add", partition_key="a", params=[])
    assert error.status_code == 404


claims.run(globals())
