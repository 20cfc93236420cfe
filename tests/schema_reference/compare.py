"""Compares the encoder of Avro with the reference implementation (`avro` of PyPI, Debian's python3-avro).

For seeded random pairs of schema and value: the bytes are those of the reference, which reads them back as the same
value, for both styles of unions and with fields left out that have a default. Damaged values are refused, or encoded
as something that the reference reads to the last byte.

    compare.py PROGRAM [--seed N] [--cases N]
"""

import argparse
import datetime
import decimal
import io
import json
import math
import random
import struct
import subprocess
import sys
import uuid

import avro.io
import avro.schema

PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
INT = (-(2**31), 2**31 - 1)
LONG = (-(2**63), 2**63 - 1)
UTC = datetime.timezone.utc
ABSENT = object()


class SchemaMaker:
    """Random schemas as Python data; named types are used again, also from within themselves."""

    def __init__(self, rng, plain):
        self.rng = rng
        self.plain = plain  # only unions whose branch the value alone decides
        self.unions = 0  # that are around the type in the making
        self.names = 0
        self.done = []  # full names that a later type may use

    def fresh(self):
        self.names += 1
        # Only the first has none: the reference takes the empty namespace for that of the type around it.
        space = self.rng.choice(["a", "com.acme.b_2"] + ([""] if self.names == 1 else []))
        name = f"N{self.names}"
        attributes = {"name": f"{space}.{name}"} if space and self.rng.random() < 0.5 else {"name": name}
        if space and "." not in attributes["name"]:
            attributes["namespace"] = space
        return f"{space}.{name}" if space else name, attributes

    def keep(self, full):
        if "." in full:  # a type without a namespace cannot be named from within one
            self.done.append(full)

    def logical(self):
        rng = self.rng
        precision = rng.choice([1, 4, 9, 18, 19, 30, 60])
        scale = rng.randint(0, precision)
        size = math.ceil((precision * math.log2(10) + 1) / 8) + rng.randint(0, 3)
        full, named = self.fresh()
        # The reference cannot tell a uuid from what is no string, which it must in a union.
        shape = rng.choice(["int", "long", "bytes", "fixed"] + ([] if self.unions else ["string"]))
        if shape == "int":
            return {"type": "int", "logicalType": rng.choice(["date", "time-millis"])}
        if shape == "long":
            return {"type": "long", "logicalType": rng.choice(["time-micros", "timestamp-millis", "timestamp-micros"])}
        if shape == "string":
            return {"type": "string", "logicalType": "uuid"}
        if shape == "bytes":
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        self.keep(full)
        return {
            "type": "fixed", **named, "size": size, "logicalType": "decimal", "precision": precision, "scale": scale
        }

    def union(self, depth):
        self.unions += 1
        branches = self.branches(depth)
        self.unions -= 1
        return branches

    def branches(self, depth):
        rng = self.rng
        if self.plain:
            other = self.type(depth - 1, in_union=True)
            return ["null", other] if rng.random() < 0.5 else [other, "null"]
        branches, seen = [], set()
        for _ in range(rng.randint(1, 5)):
            branch = self.type(depth - 1, in_union=True)
            kind = branch["type"] if isinstance(branch, dict) else branch
            named = isinstance(branch, dict) and "name" in branch
            if not named:
                if kind in seen:
                    continue
                seen.add(kind)
            branches.append(branch)
        return branches

    def record(self, depth):
        full, named = self.fresh()
        fields = []
        for i in range(self.rng.randint(0, 6)):
            if depth > 1 and self.rng.random() < 0.1:
                below = self.rng.choice([["null", full], {"type": "array", "items": full}])
                if not isinstance(below, list) or self.rng.random() < 0.5:
                    below = {"type": "map", "values": below}
                field = {"name": f"f{i}", "type": below}
            else:
                field = {"name": f"f{i}", "type": self.type(depth - 1)}
            if self.rng.random() < 0.3:
                preset = default_of(field["type"], self.rng)
                if preset is not ABSENT:
                    field["default"] = preset
            fields.append(field)
        self.keep(full)  # only now: within itself it would have no end
        return {"type": "record", **named, "fields": fields}

    def type(self, depth, in_union=False):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.3:
            names = PRIMITIVES[1:] if in_union and self.plain else PRIMITIVES
            return rng.choice(names) if rng.random() < 0.6 else self.logical()
        shape = rng.choice(["record", "record", "enum", "array", "map", "fixed", "union", "again"])
        if shape == "record":
            return self.record(depth)
        if shape == "array":
            return {"type": "array", "items": self.type(depth - 1)}
        if shape == "map":
            return {"type": "map", "values": self.type(depth - 1)}
        if shape == "union" and not in_union:
            return self.union(depth)
        if shape == "again" and self.done and not in_union:
            return rng.choice(self.done)
        full, named = self.fresh()
        self.keep(full)
        if shape == "fixed":
            return {"type": "fixed", **named, "size": rng.choice([0, 1, 5, 16])}
        return {"type": "enum", **named, "symbols": [f"S{i}" for i in range(rng.randint(1, 70))]}


def default_of(schema, rng):
    """A default in Avro's JSON, for the types where it is plain to see."""
    kind = schema
    if isinstance(schema, list):
        # Of other branches the reference may take a later one for the same value.
        kind = schema[0] if schema and schema[0] in ("null", "string") else None
    if isinstance(kind, dict) and "logicalType" not in kind:
        if kind["type"] == "array":
            return []
        if kind["type"] == "map":
            return {}
        if kind["type"] == "enum":
            return rng.choice(kind["symbols"])
        return ABSENT
    presets = {
        "null": None, "boolean": True, "int": -7, "long": 2**40, "float": 1.5, "double": -0.1, "bytes": "\u00ff\u0001",
        "string": "\u00e4\u20ac"
    }
    return presets.get(kind, ABSENT) if isinstance(kind, str) else ABSENT


class ValueMaker:
    """A random value as the reference takes it, and the same as JSON."""

    def __init__(self, rng, plain):
        self.rng = rng
        self.plain = plain

    def value(self, schema, depth):
        """(datum, JSON data), the second made of the types of `json` and of `Number`."""
        rng = self.rng
        kind = schema.type
        logical = getattr(schema, "logical_type", None)
        if logical and hasattr(self, logical.replace("-", "_")):
            return getattr(self, logical.replace("-", "_"))(schema)
        if kind == "null":
            return None, None
        if kind == "boolean":
            flag = rng.random() < 0.5
            return flag, flag
        if kind in ("int", "long"):
            low, high = INT if kind == "int" else LONG
            number = rng.choice([0, -1, 63, 64, -64, -65, low, high, rng.randint(low, high), rng.randint(-999, 999)])
            return number, self.spelled(number)
        if kind in ("float", "double"):
            return self.floating(kind)
        if kind in ("bytes", "fixed"):
            size = schema.size if kind == "fixed" else rng.randint(0, 70)
            raw = bytes(rng.randrange(256) for _ in range(size))
            return raw, raw.decode("latin-1")
        if kind == "string":
            return (text := self.text()), text
        if kind == "enum":
            return (symbol := rng.choice(schema.symbols)), symbol
        if kind == "array":
            items = [self.value(schema.items, depth - 1) for _ in range(self.many(depth))]
            return [i[0] for i in items], [i[1] for i in items]
        if kind == "map":
            items = {self.text(): self.value(schema.values, depth - 1) for _ in range(self.many(depth))}
            return {k: v[0] for k, v in items.items()}, {k: v[1] for k, v in items.items()}
        if kind == "union":
            return self.union(schema, depth)
        return self.record(schema, depth)

    def many(self, depth):
        return 0 if depth <= 0 else self.rng.choice([0, 1, 2, 5])

    def text(self):
        return "".join(chr(self.rng.choice([65, 0, 34, 92, 0xE4, 0x20AC, 0x1F600, 10])) for _ in range(self.rng.randint(0, 9)))

    def spelled(self, number):
        """The same whole number as some writers spell it."""
        choice = self.rng.random()
        if choice < 0.1:
            return Number(f"{number}.0")
        if choice < 0.2 and number % 100 == 0:
            return Number(f"{number // 100}e2")
        return Number(str(number))

    def floating(self, kind):
        special = {"NaN": math.nan, "Infinity": math.inf, "-INF": -math.inf}
        if self.rng.random() < 0.1:
            name = self.rng.choice(list(special))
            return special[name], name
        bits = self.rng.getrandbits(32)
        number = self.rng.choice([0.0, -0.0, 2.0**70, 1.5, struct.unpack("<f", struct.pack("<I", bits))[0]])
        if kind == "double":
            number = self.rng.choice([number, self.rng.random() * 10 ** self.rng.randint(-300, 300)])
        return (number, number) if math.isfinite(number) else (1.0, 1.0)

    def record(self, schema, depth):
        datum, data = {}, {}
        for field in schema.fields:
            if field.has_default and self.rng.random() < 0.5:
                preset = field.default
                first = field.type.schemas[0] if field.type.type == "union" else field.type
                datum[field.name] = preset.encode("latin-1") if first.type == "bytes" else preset
            else:
                datum[field.name], data[field.name] = self.value(field.type, depth - 1)
        names = list(data)
        if self.rng.random() < 0.5:
            self.rng.shuffle(names)
        return datum, {name: data[name] for name in names}

    def union(self, schema, depth):
        # The reference takes the last branch that the datum fits, whichever it was made for.
        branches = schema.schemas
        if depth <= 0 and any(b.type == "null" for b in branches):
            branches = [b for b in branches if b.type == "null"]
        branch = self.rng.choice(branches)
        datum, data = self.value(branch, depth)
        taken = [b for b in schema.schemas if avro.io.validate(b, datum)][-1]
        if taken is not branch:
            return self.union(schema, depth)
        if datum is None or self.plain:
            return datum, data
        return datum, {getattr(branch, "fullname", branch.type): data}

    def decimal(self, schema):
        digits = self.rng.randint(1, schema.precision)
        unscaled = self.rng.choice([0, 1, -1, 127, 128, -129, self.rng.randint(-(10**digits) + 1, 10**digits - 1)])
        if abs(unscaled) >= 10**schema.precision or is_power(-unscaled):
            unscaled = 0  # the reference needs a byte more than it should for -128, -32768, ...
        with decimal.localcontext() as context:
            context.prec = 200
            number = decimal.Decimal(unscaled).scaleb(-schema.scale)
        text = f"{number:f}"
        return number, self.rng.choice([text, Number(text), Number(f"{unscaled}e-{schema.scale}")])

    def date(self, schema):
        day = datetime.date.fromordinal(self.rng.randint(1, datetime.date.max.toordinal()))
        return day, self.rng.choice([day.isoformat(), Number(str((day - datetime.date(1970, 1, 1)).days))])

    def time_millis(self, schema):
        time, micros = self.time(1000)
        return time, self.rng.choice([time.isoformat(), Number(str(micros // 1000))])

    def time_micros(self, schema):
        time, micros = self.time(1)
        return time, self.rng.choice([time.isoformat(), Number(str(micros))])

    def time(self, step):
        micros = self.rng.randrange(0, 86_400_000_000, step)
        return (datetime.datetime.min + datetime.timedelta(microseconds=micros)).time(), micros

    def timestamp(self, step):
        micros = self.rng.randint(-60_000_000_000, 250_000_000_000) * 1_000_000 + self.rng.randrange(0, 1_000_000, step)
        moment = datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(microseconds=micros)
        zone = datetime.timezone(datetime.timedelta(minutes=self.rng.randint(-720, 720)))
        text = self.rng.choice([moment.isoformat(), moment.isoformat(" ").replace("+00:00", "Z")])
        if 1 < moment.year < 9999:
            text = self.rng.choice([text, moment.astimezone(zone).isoformat()])
        return moment, self.rng.choice([text, Number(str(micros // step))])

    def timestamp_millis(self, schema):
        return self.timestamp(1000)

    def timestamp_micros(self, schema):
        return self.timestamp(1)

    def uuid(self, schema):
        identifier = str(uuid.UUID(int=self.rng.getrandbits(128)))
        return identifier, identifier


class Number(str):
    """The text of a number that goes into the JSON as it is."""


def to_json(data, rng):
    if isinstance(data, Number):
        return str(data)
    if isinstance(data, dict):
        return "{" + ",".join(f"{to_json(k, rng)}: {to_json(v, rng)}" for k, v in data.items()) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(to_json(v, rng) for v in data) + "]"
    return json.dumps(data, ensure_ascii=rng.random() < 0.5)


def is_power(n):
    """128, 32768, ...: the lowest number of a two's complement, without its sign."""
    return n > 0 and n & (n - 1) == 0 and n.bit_length() % 8 == 0


def damaged(text, rng):
    """One token of the value is another, so it may or may not still fit."""
    words = ["null", "true", "1", "-1.5", '"S0"', "{}", "[]", '{"int": 3}', "1e400", '"\\u0100"', "99999999999999999999"]
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(words) + text[at + rng.randint(0, 4):]


def reference_bytes(schema, datum):
    out = io.BytesIO()
    avro.io.DatumWriter(schema).write(datum, avro.io.BinaryEncoder(out))
    return out.getvalue()


def read_back(schema, raw):
    stream = io.BytesIO(raw)
    datum = avro.io.DatumReader(schema).read(avro.io.BinaryDecoder(stream))
    if stream.read(1):
        raise ValueError("bytes are left over")
    return datum


def same(a, b):
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


class Program:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def encode(self, plain, schema, value):
        self.process.stdin.write(f"{'plain' if plain else 'avro'}\n{schema}\n{value}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")


def compare(program, rng):
    """What is wrong, or nothing; and what else is to be counted."""
    plain = rng.random() < 0.3
    text = json.dumps(SchemaMaker(rng, plain).type(rng.randint(0, 4)))
    schema = avro.schema.parse(text)
    datum, data = ValueMaker(rng, plain).value(schema, 4)
    value = to_json(data, rng)
    if not avro.io.validate(schema, datum):
        return None, "unclear"  # of two records with the same field names in a union the reference tries only one
    expected = reference_bytes(schema, datum)
    got = program.encode(plain, text, value)
    context = f"schema {text}\nvalue {value}\nexpected {expected.hex()}\ngot {got}"
    if got != expected.hex():
        return "other bytes\n" + context, None
    if not same(read_back(schema, bytes.fromhex(got)), datum):
        return "read back as another value\n" + context, None
    value = damaged(value, rng)
    got = program.encode(plain, text, value)
    if got.startswith("!"):
        return None, "refused"
    try:
        read_back(schema, bytes.fromhex(got))
    except OverflowError:
        pass  # a date or a moment beyond the year 9999, which Python does not have
    except Exception as fault:
        return f"a damaged value became bytes that are not read: {fault!r}\nschema {text}\nvalue {value}\ngot {got}", None
    return None, "taken"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--seed", type=int, default=random.randrange(2**32))
    arguments.add_argument("--cases", type=int, default=1000)
    chosen = arguments.parse_args()
    program = Program(chosen.program)
    counted = {"refused": 0, "taken": 0, "unclear": 0}
    for case in range(chosen.cases):
        wrong, count = compare(program, random.Random(chosen.seed * 1_000_003 + case))
        if wrong:
            sys.exit(f"seed={chosen.seed} case={case}: {wrong}")
        counted[count] += 1
    if counted["unclear"] * 20 > chosen.cases:
        sys.exit(f"seed={chosen.seed}: the reference could not say enough: {counted}")
    print(f"seed={chosen.seed}: {chosen.cases} pairs; damaged: {counted}")


main()
