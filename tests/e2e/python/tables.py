"""The Table API by azure.data.tables, blocking and asynchronous."""
import uuid
from datetime import datetime, timedelta, timezone

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import (
    EdmType, EntityProperty, TableAccessPolicy, TableClient, TableServiceClient, TableTransactionError, UpdateMode,
    generate_account_sas, generate_table_sas,
)
from azure.data.tables.aio import TableClient as AsyncTableClient, TableServiceClient as AsyncTableServiceClient

import claims

TYPED = {
    "text": "ä 'quoted' \U0001f600", "yes": True, "small": 5, "real": 2.5, "whole": 2.0, "large": (2**40, EdmType.INT64),
    "when": datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc), "guid": uuid.UUID(int=77), "bytes": b"\x00\xff",
}


def fresh(endpoint, name, kind=TableClient):
    return kind.from_connection_string(endpoint.tables, name, retry_total=0)


def made(endpoint, name):
    table = fresh(endpoint, name)
    table.create_table()
    return table


def code_of(error):
    return error.response.headers["x-ms-error-code"]


def refused(function, status, code=None):
    try:
        function()
    except HttpResponseError as error:
        assert error.status_code == status, (error.status_code, error.message)
        assert code is None or code_of(error) == code, (code_of(error), error.message)
        return
    raise AssertionError("it was not refused")


def claim_tables_are_made_listed_and_deleted(endpoint):
    service = TableServiceClient.from_connection_string(endpoint.tables)
    for name in ("pyone", "pytwo"):
        service.create_table(name)
    try:
        service.create_table("pyone")
        raise AssertionError("made twice")
    except ResourceExistsError as error:
        assert code_of(error) == "TableAlreadyExists"
    assert {table.name for table in service.query_tables("TableName ge 'py' and TableName lt 'pz'")} == {"pyone", "pytwo"}
    assert [len(list(page)) for page in service.list_tables(results_per_page=1).by_page()][:2] == [1, 1]
    service.delete_table("pyone")
    service.delete_table("pyone")
    assert service.create_table_if_not_exists("pytwo").table_name == "pytwo"


def claim_values_come_back_with_their_types(endpoint):
    table = made(endpoint, "pytypes")
    table.create_entity({"PartitionKey": "a'b", "RowKey": "r %+&", "none": None, **TYPED})
    got = table.get_entity("a'b", "r %+&")
    assert "none" not in got
    for name, value in TYPED.items():
        wanted = EntityProperty(*value) if isinstance(value, tuple) else value
        assert got[name] == wanted and (name == "when" or type(got[name]) is type(wanted)), (name, got[name])
    assert got.metadata["etag"].startswith("W/")


def claim_writes_obey_their_etags(endpoint):
    table = made(endpoint, "pyetags")
    entity = {"PartitionKey": "p", "RowKey": "r", "n": 1}
    first = table.create_entity(entity)
    try:
        table.create_entity(entity)
        raise AssertionError("inserted twice")
    except ResourceExistsError as error:
        assert code_of(error) == "EntityAlreadyExists"
    table.update_entity({**entity, "m": 2}, UpdateMode.MERGE, etag=first["etag"], match_condition=MatchConditions.IfNotModified)
    try:
        table.update_entity(entity, UpdateMode.REPLACE, etag=first["etag"], match_condition=MatchConditions.IfNotModified)
        raise AssertionError("an old etag wrote")
    except ResourceModifiedError:
        pass
    refused(lambda: table.delete_entity("p", "r", etag="abc", match_condition=MatchConditions.IfNotModified), 400, "InvalidInput")
    refused(lambda: table.delete_entity("p", "r", etag=first["etag"], match_condition=MatchConditions.IfNotModified), 412)
    assert table.get_entity("p", "r")["m"] == 2
    table.upsert_entity({"PartitionKey": "p", "RowKey": "r", "k": 3}, UpdateMode.REPLACE)
    assert "m" not in table.get_entity("p", "r")
    table.delete_entity("p", "r")
    table.delete_entity("p", "r")
    try:
        table.get_entity("p", "r")
        raise AssertionError("deleted and still there")
    except ResourceNotFoundError as error:
        assert code_of(error) == "ResourceNotFound"


def claim_queries_are_paged_and_resumed(endpoint):
    table = made(endpoint, "pypages")
    for p in range(3):
        table.submit_transaction([("create", {"PartitionKey": f"p{p}", "RowKey": f"{r:03}", "n": r, "even": r % 2 == 0}) for r in range(50)])
    keys = [(e["PartitionKey"], e["RowKey"]) for e in table.list_entities()]
    assert len(keys) == 150 and keys == sorted(keys)
    for size in (1, 7, 50, 150, 1000):
        seen = [(e["PartitionKey"], e["RowKey"]) for page in table.list_entities(results_per_page=size).by_page() for e in page]
        assert seen == keys, size
    pages = table.query_entities("n ge @least", parameters={"least": 40}, results_per_page=10).by_page()
    first = list(next(pages))
    token = pages.continuation_token
    rest = [e for page in table.query_entities("n ge @least", parameters={"least": 40}, results_per_page=10).by_page(token) for e in page]
    assert len(first) == 10 and len(rest) == 20
    for text, count in (("even eq True", 75), ("even eq true", 75), ("even eq FALSE", 75), ("n lt 5 and PartitionKey eq 'p1'", 5)):
        assert len(list(table.query_entities(text))) == count, text
    some = next(iter(table.query_entities("RowKey eq '007'", select=["n"])))
    assert dict(some) == {"n": 7}, dict(some)
    refused(lambda: list(table.query_entities("n eq eq 5")), 400)


def claim_a_transaction_is_whole_or_nothing(endpoint):
    table = made(endpoint, "pybatch")
    done = table.submit_transaction([
        ("upsert", {"PartitionKey": "p", "RowKey": "a", "n": 1}),
        ("create", {"PartitionKey": "p", "RowKey": "b", "n": 1}),
        ("upsert", {"PartitionKey": "p", "RowKey": "c", "n": 1}, {"mode": "replace"}),
    ])
    assert all(one["etag"] for one in done)
    try:
        table.submit_transaction([("delete", {"PartitionKey": "p", "RowKey": "a"}), ("create", {"PartitionKey": "p", "RowKey": "b"})])
        raise AssertionError("created twice")
    except TableTransactionError as error:
        assert error.index == 1 and error.error_code == "EntityAlreadyExists", (error.index, error.error_code)
    assert [e["RowKey"] for e in table.list_entities()] == ["a", "b", "c"]
    table.submit_transaction([("update", {"PartitionKey": "p", "RowKey": "a", "n": 2}), ("delete", {"PartitionKey": "p", "RowKey": "b"})])
    assert [(e["RowKey"], e["n"]) for e in table.list_entities()] == [("a", 2), ("c", 1)]


def claim_large_requests_are_refused_by_name(endpoint):
    table = made(endpoint, "pylarge")
    big = {"PartitionKey": "p", "RowKey": "r", **{f"t{n}": "x" * 32000 for n in range(40)}}
    refused(lambda: table.create_entity(big), 400, "EntityTooLarge")
    huge = {"PartitionKey": "p", "RowKey": "r", **{f"t{n}": "x" * 32000 for n in range(150)}}
    refused(lambda: table.create_entity(huge), 413, "RequestBodyTooLarge")
    refused(lambda: table.submit_transaction([("create", {**big, "RowKey": str(n)}) for n in range(4)]), 413)
    assert not list(table.list_entities())


def claim_access_policies_and_signatures_open_what_they_say(endpoint):
    table = made(endpoint, "pyaccess")
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    now = datetime.now(timezone.utc)
    policies = {
        "null": None, "empty": TableAccessPolicy(), "partial": TableAccessPolicy(permission="r"),
        "full": TableAccessPolicy(start=now - timedelta(hours=1), expiry=now + timedelta(hours=1), permission="r"),
    }
    table.set_table_access_policy(policies)
    got = table.get_table_access_policy()
    assert list(got) == list(policies)
    assert got["null"] is None and got["empty"] is None, got
    assert got["partial"].permission == "r" and got["full"].expiry is not None
    key = AzureNamedKeyCredential(endpoint.account, endpoint.storage_key)

    def opened(token):
        return TableClient(endpoint.tables_url, "pyaccess", credential=AzureSasCredential(token), retry_total=0)

    reader = opened(generate_table_sas(key, "pyaccess", policy_id="full"))
    assert len(list(reader.list_entities())) == 1
    refused(lambda: reader.upsert_entity({"PartitionKey": "p", "RowKey": "r"}), 403)
    whole = opened(generate_account_sas(key, resource_types="sco", permission="rwdlacu", expiry=now + timedelta(hours=1)))
    whole.upsert_entity({"PartitionKey": "p", "RowKey": "s"})
    assert len(list(whole.list_entities())) == 2
    refused(lambda: list(opened(generate_table_sas(key, "pyaccess", permission="r", expiry=now - timedelta(hours=1))).list_entities()), 403)


def claim_service_properties_and_statistics_are_read(endpoint):
    service = TableServiceClient.from_connection_string(endpoint.tables)
    assert service.get_service_properties()["analytics_logging"].version == "1.0"
    assert service.get_service_stats()["geo_replication"]["status"] == "live"


async def claim_the_asynchronous_client_does_the_same(endpoint):
    async with fresh(endpoint, "pyasync", AsyncTableClient) as table:
        await table.create_table()
        await table.create_entity({"PartitionKey": "p", "RowKey": "r", **TYPED})
        got = await table.get_entity("p", "r")
        assert got["guid"] == TYPED["guid"] and got["large"].value == 2**40
        await table.submit_transaction([("upsert", {"PartitionKey": "q", "RowKey": f"{n:02}", "n": n}) for n in range(60)])
        seen = []
        async for page in table.query_entities("PartitionKey eq @p", parameters={"p": "q"}, results_per_page=20).by_page():
            seen.append([one["n"] async for one in page])
        assert [len(page) for page in seen] == [20, 20, 20] and sum(seen, []) == list(range(60)), seen
        await table.set_table_access_policy({"null": None})
        assert await table.get_table_access_policy() == {"null": None}
        try:
            await table.submit_transaction([("delete", {"PartitionKey": "q", "RowKey": "00"}), ("update", {"PartitionKey": "q", "RowKey": "none"})])
            raise AssertionError("updated what is not there")
        except TableTransactionError as error:
            assert error.index == 1 and error.status_code == 404, (error.index, error.status_code)
        assert (await table.get_entity("q", "00"))["n"] == 0
        await table.delete_entity("p", "r")
    async with AsyncTableServiceClient.from_connection_string(endpoint.tables) as service:
        assert (await service.get_service_stats())["geo_replication"]["status"] == "live"
        assert "pyasync" in [one.name async for one in service.list_tables()]
        await service.delete_table("pyasync")


claims.run(globals())
