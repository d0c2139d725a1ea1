"""The Gremlin API through gremlin_python: scripts and bytecode in each format, sessions, transactions, credentials."""

import claims
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.driver.serializer import (
    GraphBinarySerializersV1,
    GraphSONSerializersV2d0,
    GraphSONSerializersV3d0,
)
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import P, T

FORMATS = (GraphSONSerializersV2d0, GraphSONSerializersV3d0, GraphBinarySerializersV1)


def connect(endpoint, path="/gremlin", **options):
    return Client(endpoint.gremlin + path, "g", **options)


def clean(g):
    g.V().drop().iterate()


def claim_scripts_in_every_format(endpoint):
    for kind in FORMATS:
        client = connect(endpoint, message_serializer=kind())
        try:
            assert client.submit("g.inject(x, y)", {"x": 1, "y": "two"}).all().result() == [1, "two"], kind
            assert client.submit("g.inject(1).is(2)").all().result() == [], kind
            assert len(client.submit("g.inject(1).repeat(union(identity(), identity())).times(8)").all().result()) == 256, kind
        finally:
            client.close()


def claim_bytecode_in_every_format(endpoint):
    for kind in FORMATS:
        connection = DriverRemoteConnection(endpoint.gremlin + "/gremlin", "g", message_serializer=kind())
        try:
            g = traversal().with_remote(connection)
            clean(g)
            g.addV("person").property("name", "marko").property("age", 29).as_("m").addV("person").property("name", "vadas").as_(
                "v"
            ).addE("knows").from_("m").to("v").property("weight", 0.5).iterate()
            assert g.V().has("name", "marko").out("knows").values("name").to_list() == ["vadas"], kind
            assert g.V().has("age", P.gt(20)).count().next() == 1, kind
            assert g.V().has("name", "marko").element_map("name").next()["name"] == "marko", kind
            assert sorted(g.V().values("name").to_list()) == ["marko", "vadas"], kind
            vertex = g.V().has("name", "marko").next()
            assert vertex.label == "person", kind
            assert g.E().has("weight", 0.5).label().next() == "knows", kind
            assert g.V().group().by(T.label).by(__.count()).next() == {"person": 2}, kind
        finally:
            connection.close()


def claim_credentials_name_the_graph(endpoint):
    client = connect(endpoint, "/", username="/dbs/graphs/colls/g", password=endpoint.key, message_serializer=GraphSONSerializersV2d0())
    try:
        client.submit("g.addV('a').property('pk', 'x').property('id', 'python')").all().result()
        assert client.submit("g.V('python').id()").all().result() == ["python"]
    finally:
        client.close()
    wrong = connect(endpoint, "/", username="/dbs/graphs/colls/g", password="AAAA", message_serializer=GraphSONSerializersV2d0())
    try:
        error = claims.raises(GremlinServerError, lambda: wrong.submit("g.V()").all().result())
        assert error.status_code == 401, error
    finally:
        wrong.close()


def claim_sessions_have_variables(endpoint):
    client = connect(endpoint, session="python")
    try:
        client.submit("x = 5").all().result()
        assert client.submit("g.inject(x)").all().result() == [5]
    finally:
        client.close()


def claim_transactions_commit_and_roll_back(endpoint):
    connection = DriverRemoteConnection(endpoint.gremlin + "/gremlin", "g")
    try:
        g = traversal().with_remote(connection)
        clean(g)
        tx = g.tx()
        gtx = tx.begin()
        gtx.addV("kept").iterate()
        assert g.V().count().next() == 0
        tx.commit()
        assert g.V().count().next() == 1
        tx = g.tx()
        gtx = tx.begin()
        gtx.addV("lost").iterate()
        tx.rollback()
        assert g.V().count().next() == 1
    finally:
        connection.close()


def claim_errors_carry_their_attributes(endpoint):
    client = connect(endpoint)
    try:
        error = claims.raises(GremlinServerError, lambda: client.submit("g.V().fly()").all().result())
        assert error.status_code == 597, error
        assert error.status_attributes["x-ms-status-code"] == 1004, error.status_attributes
    finally:
        client.close()


claims.run(globals())
