"""What is encoded, and what each consumer must find: written by hand, not by any encoder."""

import dataclasses
import datetime
import decimal
import json
import math
import uuid

UTC = datetime.timezone.utc
D = decimal.Decimal


@dataclasses.dataclass
class Part:
    """The values or the keys of a topic. `rows`: pairs of what is in the outbox (data of JSON, or bytes) and what a
    consumer must find. `references`: of the schema, as (name, subject, text of the schema)."""

    schema: object
    rows: list
    mode: str = "avro"
    format: str = "avro"
    rule: dict = dataclasses.field(default_factory=dict)
    references: list = dataclasses.field(default_factory=list)

    def schema_text(self):
        return self.schema if self.format == "protobuf" else json.dumps(self.schema)


@dataclasses.dataclass
class Case:
    name: str
    value: Part
    key: Part = None


def same(*values):
    return [(value, value) for value in values]


def record(name, *fields, **more):
    return {"type": "record", "name": name, "fields": [{"name": f[0], "type": f[1], **f[2]} for f in fields], **more}


def field(name, kind, **more):
    return name, kind, more


def on(kind, logical, **more):
    return {"type": kind, "logicalType": logical, **more}


ANY_TEXT = "gr\u00fc\u00df \u20ac \U0001f600 \"\\\n\u0001"
LONG = 2**63

# The registry of the tests does not come to an end with a record that holds maps of itself.
NODE = record(
    "com.acme.Node",
    field("name", "string"),
    field("next", ["null", "com.acme.Node"], default=None),
    field("children", {"type": "array", "items": "Node"}, default=[]),
)


def node(name, next=None, children=()):
    return {"name": name, "next": next, "children": list(children)}


SHAPES = record(
    "com.acme.Shapes",
    field("flag", "boolean"),
    field("count", "int"),
    field("total", "long"),
    field("ratio", "float"),
    field("exact", "double"),
    field("raw", "bytes"),
    field("text", "string"),
    field("nothing", "null"),
    field("kind", {"type": "enum", "name": "Kind", "symbols": ["SMALL", "LARGE"]}),
    field("many", {"type": "array", "items": "long"}),
    field("named", {"type": "map", "values": {"type": "array", "items": "string"}}),
    field("hash", {"type": "fixed", "name": "Hash", "size": 4}),
    field("inner", record("Inner", field("kind", "Kind"), field("hash", "Hash"), namespace="com.acme")),
)
SHAPES_ROW = {
    "flag": True,
    "count": -7,
    "total": 2**40,
    "ratio": 1.5,
    "exact": -0.1,
    "raw": "\u00ff\u0000a",
    "text": ANY_TEXT,
    "nothing": None,
    "kind": "LARGE",
    "many": [0, -1, 2**62],
    "named": {"a": ["x", ""], "\u00e4": []},
    "hash": "\u0001\u0002\u00fe\u00ff",
    "inner": {"kind": "SMALL", "hash": "abcd"},
}
SHAPES_READ = SHAPES_ROW | {
    "raw": b"\xff\x00a",
    "hash": b"\x01\x02\xfe\xff",
    "inner": {"kind": "SMALL", "hash": b"abcd"},
}

MOMENT = datetime.datetime(2026, 11, 30, 10, 15, 30, 123000, UTC)
FINE = MOMENT.replace(microsecond=123456)
ID = "6f1b2c3d-0a4e-4f5a-8b6c-7d8e9f0a1b2c"

AVRO = [
    # Confluent's client of Python takes no message below 6 bytes, so what takes no byte does not stand alone.
    Case("null", Part(record("Nil", field("nil", "null"), field("nils", {"type": "array", "items": "null"})),
                      same({"nil": None, "nils": [None, None]}))),
    Case("boolean", Part("boolean", same(True, False))),
    Case("int", Part("int", same(0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31)))),
    Case("long", Part("long", same(0, -1, 2**31, LONG - 1, -LONG))),
    Case(
        "float",
        Part("float", same(0.0, 1.5, -2.25, 2.0**100) + [("NaN", math.nan), ("INF", math.inf), ("-Infinity", -math.inf)]),
    ),
    Case("double", Part("double", same(0.1, -1e300, 5e-324) + [("NaN", math.nan), ("-INF", -math.inf)])),
    # Confluent's clients take bytes that stand alone for the rest of the message, whose first are then their length.
    Case("bytes", Part(record("Raw", field("raw", "bytes")), [
        ({"raw": ""}, {"raw": b""}), ({"raw": "".join(map(chr, range(256)))}, {"raw": bytes(range(256))})
    ])),
    Case("string", Part("string", same("", "a", ANY_TEXT, "x" * 9000))),
    Case("fixed", Part({"type": "fixed", "name": "F", "size": 3}, [("\u0000\u007f\u00ff", b"\x00\x7f\xff")])),
    Case("enum", Part({"type": "enum", "name": "E", "symbols": [f"S{i}" for i in range(70)]}, same("S0", "S1", "S69"))),
    Case("array", Part({"type": "array", "items": "int"}, same([], [1], list(range(-500, 500))))),
    Case("map", Part({"type": "map", "values": "long"}, same({}, {"a": 1}, {f"k{i}": i for i in range(300)}))),
    Case("array of maps", Part({"type": "array", "items": {"type": "map", "values": {"type": "array", "items": "int"}}},
                               same([], [{}, {"a": [1, 2]}, {"b": [], "c": [3]}]))),
    Case("record of every type", Part(SHAPES, [(SHAPES_ROW, SHAPES_READ)])),
    Case("record without fields", Part({"type": "array", "items": record("Empty")}, same([{}, {}]))),
    Case("record with defaults", Part(
        record("Preset", field("a", "int", default=7), field("b", "string", default="\u00e4"),
               field("c", ["null", "long"], default=None), field("d", "bytes", default="\u00ff"),
               field("e", {"type": "array", "items": "int"}, default=[1, 2]),
               field("f", {"type": "map", "values": "int"}, default={"x": 1}), field("g", "double", default=0.5)),
        [({}, {"a": 7, "b": "\u00e4", "c": None, "d": b"\xff", "e": [1, 2], "f": {"x": 1}, "g": 0.5}),
         ({"g": 1, "c": {"long": 5}}, {"a": 7, "b": "\u00e4", "c": 5, "d": b"\xff", "e": [1, 2], "f": {"x": 1}, "g": 1.0})],
    )),
    Case("record that holds itself", Part(NODE, [
        ({"name": "a"}, node("a")),
        ({"name": "a", "next": {"com.acme.Node": {"name": "b", "next": {"com.acme.Node": {"name": "c"}}}},
          "children": [{"name": "d"}, {"name": "e", "children": [{"name": "f"}]}]},
         node("a", node("b", node("c")), [node("d"), node("e", None, [node("f")])])),
    ])),
    Case("records in records", Part(
        record("A", field("b", record("B", field("c", record("C", field("d", {"type": "array", "items": record(
            "D", field("e", "int"))}))))), field("again", "B")),
        same({"b": {"c": {"d": [{"e": 1}, {"e": 2}]}}, "again": {"c": {"d": []}}}),
    )),
    Case("union", Part(
        ["null", "boolean", "long", "double", "string", "bytes", {"type": "array", "items": "int"},
         {"type": "map", "values": "string"}, record("com.acme.R", field("x", "int")),
         {"type": "enum", "name": "com.acme.U", "symbols": ["A", "B"]}],
        [(None, None), ({"boolean": True}, True), ({"long": 5}, 5), ({"double": 5}, 5.0), ({"string": "s"}, "s"),
         ({"bytes": "\u00fe"}, b"\xfe"), ({"array": [1]}, [1]), ({"map": {"k": "v"}}, {"k": "v"}),
         ({"com.acme.R": {"x": 1}}, {"x": 1}), ({"com.acme.U": "B"}, "B")],
    )),
    Case("union, plain", Part(
        record("P", field("a", ["null", "int"]), field("b", ["string", "null", "long"]),
               field("c", ["null", {"type": "array", "items": ["null", "double"]}])),
        [({"a": 1, "b": "x", "c": [None, 0.5]}, {"a": 1, "b": "x", "c": [None, 0.5]}),
         ({"a": None, "b": 2**40, "c": None}, {"a": None, "b": 2**40, "c": None})],
        rule={"unions": "plain"},
    )),
    Case("fields that the schema does not have", Part(
        record("Few", field("a", "int")), [({"a": 1, "b": [2, {"c": 3}]}, {"a": 1})], rule={"ignore_unknown_fields": True}
    )),
    Case("references", Part(
        record("com.acme.Order", field("customer", "com.acme.Customer"), field("lines", {
            "type": "array", "items": "com.acme.Line"})),
        same({"customer": {"name": "n"}, "lines": [{"price": 1, "buyer": {"name": "m"}}, {"price": 2, "buyer": {"name": ""}}]}),
        references=[
            ("com.acme.Customer", "customer", json.dumps(record("com.acme.Customer", field("name", "string"))), []),
            ("com.acme.Line", "line", json.dumps(record("com.acme.Line", field("price", "int"),
                                                        field("buyer", "com.acme.Customer"))), ["customer"]),
        ],
    )),
]

def within(kind, rows):
    """As the field of a record of its own: what stands alone, the clients do not all take alike."""
    name = kind["logicalType"].title().replace("-", "") + kind["type"].title()
    return Part(record(name, field("it", kind)), [({"it": given}, {"it": read}) for given, read in rows])


LOGICAL = [
    Case("decimal on bytes", within(on("bytes", "decimal", precision=30, scale=2), [
        (text, D(text)) for text in ("0.00", "12.34", "-12.34", "1.28", "-1.28", "-1.29", "9999999999999999999999999999.99")
    ])),
    Case("decimal on fixed", within(on("fixed", "decimal", name="Money", size=8, precision=18, scale=4), [
        (1.5, D("1.5000")), ("-0.0001", D("-0.0001")), ("99999999999999.9999", D("99999999999999.9999"))
    ])),
    Case("date", within(on("int", "date"), [
        ("2026-11-30", datetime.date(2026, 11, 30)), ("1969-12-31", datetime.date(1969, 12, 31)), (0, datetime.date(1970, 1, 1))
    ])),
    Case("time-millis", within(on("int", "time-millis"), [
        ("10:15:30.123", datetime.time(10, 15, 30, 123000)), (86_399_999, datetime.time(23, 59, 59, 999000))
    ])),
    Case("time-micros", within(on("long", "time-micros"), [
        ("10:15:30.123456", datetime.time(10, 15, 30, 123456)), ("00:00", datetime.time(0)), (1, datetime.time(0, 0, 0, 1))
    ])),
    Case("timestamp-millis", within(on("long", "timestamp-millis"), [
        ("2026-11-30T10:15:30.123Z", MOMENT), ("2026-11-30T11:45:30.123+01:30", MOMENT),
        ("1969-12-31 23:59:59.999Z", datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
        (0, datetime.datetime(1970, 1, 1, tzinfo=UTC)),
    ])),
    Case("timestamp-micros", within(on("long", "timestamp-micros"), [
        ("2026-11-30T10:15:30.123456Z", FINE), (-1, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC))
    ])),
    Case("local-timestamp-millis", within(on("long", "local-timestamp-millis"), [
        ("2026-11-30T10:15:30.123", MOMENT.replace(tzinfo=None))
    ])),
    Case("local-timestamp-micros", within(on("long", "local-timestamp-micros"), [
        ("2026-11-30T10:15:30.123456", FINE.replace(tzinfo=None))
    ])),
    Case("uuid", within(on("string", "uuid"), [(ID, uuid.UUID(ID))])),
    # Neither client has a type for it: the bytes of its months, days and milliseconds, each little-endian.
    Case("duration", within(on("fixed", "duration", name="Span", size=12), [
        ({"months": 1, "days": 2, "millis": 3}, bytes.fromhex("010000000200000003000000"))
    ])),
    Case("logical types in a record", Part(
        record("Times", field("when", ["null", on("long", "timestamp-millis")]),
               field("price", {"type": "array", "items": on("bytes", "decimal", precision=9, scale=2)}),
               field("days", {"type": "map", "values": on("int", "date")})),
        [({"when": {"long": "2026-11-30T10:15:30.123Z"}, "price": ["1.10", 2], "days": {"a": "2000-02-29"}},
          {"when": MOMENT, "price": [D("1.10"), D("2.00")], "days": {"a": datetime.date(2000, 2, 29)}})],
    )),
    Case("logical types as in Avro's JSON", Part(
        record("Exact", field("when", on("long", "timestamp-millis")),
               field("price", on("bytes", "decimal", precision=9, scale=2))),
        [({"when": 1000, "price": "\u0004\u00d2"},
          {"when": datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "price": D("12.34")})],
        rule={"logical": "avro"},
    )),
]

KEYS = [
    Case("key and value", Part("string", same("one", "two")), Part(
        record("com.acme.Key", field("region", "string"), field("id", "long")),
        same({"region": "eu", "id": 1}, {"region": "\u00e4", "id": -1}))),
    Case("tombstone", Part("string", [("one", "one"), (None, None)]), Part("long", same(5, 5))),
]

# Here, too, none is below 6 bytes.
HEADERS = [
    Case("value and key by headers", Part("string", same("a text", ANY_TEXT)),
         Part({"type": "array", "items": "long"}, same([2**40, -(2**40)], [2**62]))),
    Case("tombstone by headers", Part("string", [(None, None)]), Part("string", same("a text"))),
]

FRAMED = [
    Case("Avro that is encoded already", Part("string", [(b"\x02a", "a")], mode="frame")),
    Case("JSON Schema", Part(
        {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Order", "type": "object",
         "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}},
         "required": ["id"]},
        same({"id": 1, "tags": ["a", "\u20ac"]}, {"id": 2, "more": 0.5}), mode="json", format="json",
    )),
]

PROTO = """syntax = "proto3";
package acme;
message First { int32 a = 1; }
message Second { string s = 1; message Within { int64 n = 1; } }
"""
PROTOBUF = [
    Case(f"Protobuf, {name}", Part(PROTO, [(raw, read)], mode="frame", format="protobuf",
                                   rule={"format": "protobuf", "message": place}))
    for name, place, raw, read in (
        ("first message", "0", b"\x08\x96\x01", ("First", {"a": 150})),
        ("second message", "1", b"\x0a\x02hi", ("Second", {"s": "hi"})),
        ("message within another", "1/0", b"\x08\x05", ("Second.Within", {"n": 5})),
    )
]
