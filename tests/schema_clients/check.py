"""Values that `millrace relay` encodes are decoded by the standard clients of Python (Confluent's) and of Java
(Apicurio's, on Avro's own library) against the same registry, and are what `cases.py` says.

    check.py MILLRACE SERVICES_SH avro|logical|keys|framed|protobuf|header|damage
"""

import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import uuid

import cases
import guid_registry
from canonical import canonical
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

HERE = pathlib.Path(__file__).parent
SETS = {
    "avro": cases.AVRO,
    "logical": cases.LOGICAL,
    "keys": cases.KEYS,
    "framed": cases.FRAMED,
    "protobuf": cases.PROTOBUF,
    # What the header names is the same schema, so a few of each kind will do.
    "header": cases.HEADERS + [c for c in cases.AVRO if c.name in ("record of every type", "references")]
              + cases.FRAMED[1:] + cases.PROTOBUF,
    "damage": [c for c in cases.AVRO if c.name == "record of every type"],
}


class Check:
    def __init__(self, millrace, kafka, registry, services, chosen):
        self.millrace, self.kafka, self.registry, self.services = millrace, kafka, registry, services
        self.in_header = chosen == "header"
        self.run = "t" + uuid.uuid4().hex[:10]
        self.cases = {f"{self.run}.{number}": case for number, case in enumerate(SETS[chosen])}
        self.wrong = []
        self.client = SchemaRegistryClient({"url": registry})
        self.decoders = {
            "avro": AvroDeserializer(self.client),
            "json": JSONDeserializer(None, schema_registry_client=self.client),
        }
        self.messages = protobuf_classes()

    def parts(self, topic):
        case = self.cases[topic]
        return [(field, part) for field, part in (("value", case.value), ("key", case.key)) if part]

    # Making

    def register(self, subject, text, kind, references=()):
        body = {"schema": text, "schemaType": kind.upper(), "references": list(references)}
        self.ask(f"/subjects/{urllib.parse.quote(subject, safe='')}/versions", body)

    def ask(self, path, body):
        request = urllib.request.Request(
            self.registry + path, json.dumps(body).encode(),
            {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as refused:
            sys.exit(f"{path}: {refused.code} {refused.read().decode()}\n{body}")

    def register_all(self):
        for topic in self.cases:
            for field, part in self.parts(topic):
                made = {}
                for name, subject, text, below in part.references:
                    own = f"{topic}-{subject}"
                    self.register(own, text, "avro", [made[each] for each in below])
                    made[subject] = {"name": name, "subject": own, "version": 1}
                self.register(f"{topic}-{field}", part.schema_text(), part.format, made.values())

    def relay(self):
        admin = AdminClient({"bootstrap.servers": self.kafka})
        for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in self.cases]).values():
            made.result(30)
        rules = []
        for topic in self.cases:
            rule = {"topic": topic}
            for field, part in self.parts(topic):
                rule[field] = {"mode": part.mode, "id": "header" if self.in_header else "prefix", **part.rule}
            rules.append(rule)
        lines = [json.dumps(line) for topic in self.cases for line in self.lines(topic)]
        with tempfile.TemporaryDirectory() as folder:
            outbox = f"sqlite:{folder}/outbox.db"
            settings = pathlib.Path(folder, "millrace.yaml")  # JSON is YAML
            settings.write_text(json.dumps({
                "relay": {"outbox": outbox, "sink": f"kafka://{self.kafka}", "log_level": "warning"},
                "schemas": {"registry": self.registry, "rules": rules},
            }))
            self.command(["outbox", "init", "--outbox", outbox])
            self.command(["outbox", "put", "--outbox", outbox], "\n".join(lines))
            self.command(["relay", "--config", str(settings), "--once"])

    def lines(self, topic):
        case = self.cases[topic]
        for row, (given, _) in enumerate(case.value.rows):
            line = {"topic": topic, "value": given}
            if isinstance(given, bytes):
                line["value_base64"] = base64.b64encode(line.pop("value")).decode()
            elif case.value.schema == "null" or given is not None:
                line["value"] = json.dumps(given)  # a string is stored as its bytes: those of JSON text
            if case.key:
                line["key"] = json.dumps(case.key.rows[row][0])
            yield line

    def command(self, arguments, given=""):
        done = subprocess.run([self.millrace, *arguments], input=given, text=True, capture_output=True, timeout=90)
        if done.returncode != 0 or "parked" in done.stderr:
            sys.exit(f"millrace {arguments[0]} {arguments[1]}: status {done.returncode}\n{done.stderr}")

    # Decoding

    def records(self):
        consumer = Consumer({"bootstrap.servers": self.kafka, "group.id": self.run, "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, 0) for topic in self.cases])
        wanted = sum(len(case.value.rows) for case in self.cases.values())
        found = {topic: [] for topic in self.cases}
        for _ in range(wanted):
            message = consumer.poll(30)
            if message is None:
                sys.exit(f"of {wanted} records only {sum(map(len, found.values()))} came: {found.keys()}")
            if message.error():
                sys.exit(str(message.error()))
            found[message.topic()].append(message)
        consumer.close()
        return found

    def python(self, topic, field, part, raw, headers, expected):
        where = SerializationContext(topic, MessageField.KEY if field == "key" else MessageField.VALUE, headers)
        if part.format == "protobuf":
            name, _ = expected
            decoder = ProtobufDeserializer(self.messages[name], {"use.deprecated.format": False})
            message = decoder(raw, where)
            return name, {f.name: value for f, value in message.ListFields()}
        return self.decoders[part.format](raw, where)

    def expect(self, what, client, expected, decode):
        try:
            got = decode()
        except Exception as fault:  # whatever a client throws, the case is named
            got = f"!{fault!r}"
        if got != canonical(expected):
            self.wrong.append(f"{what}: {client} found {got}, expected {canonical(expected)}")

    def check(self):
        for_java = []
        for topic, messages in self.records().items():
            for row, message in enumerate(messages):
                for field, part in self.parts(topic):
                    self.check_part(topic, field, part, row, message, for_java)
        self.check_java(for_java)
        return len(for_java)

    def check_part(self, topic, field, part, row, message, for_java):
        expected = part.rows[row][1]
        what = f"{self.cases[topic].name}, {field} {row}"
        raw = getattr(message, field)()
        tombstone = part.rows[row][0] is None and part.schema != "null"
        if tombstone or raw is None:
            if not (tombstone and raw is None):
                self.wrong.append(f"{what}: {raw!r} instead of {expected!r}")
            return
        headers = message.headers() or []
        named = any(name == f"__{field}_schema_id" for name, _ in headers)
        if named != self.in_header:
            self.wrong.append(f"{what}: the schema is named in the wrong place: {headers}")
        self.expect(what, "Python", expected,
                    lambda: canonical(self.python(topic, field, part, raw, headers, expected)))
        if part.format == "avro" and not self.in_header:
            for_java.append((what, topic, field, raw, expected))

    def java(self, messages):
        """Its answers to (topic, field, bytes)."""
        address = self.registry.removesuffix("/apis/ccompat/v7") + "/apis/registry/v3"
        lines = [f"{topic}\t{field}\t{raw.hex()}" for topic, field, raw in messages]
        done = subprocess.run([self.services, "java-client", str(HERE / "Decode.java"), address],
                              input="\n".join(lines), text=True, capture_output=True, timeout=90)
        answers = done.stdout.splitlines()
        if len(answers) != len(lines):
            sys.exit(f"Java answered {len(answers)} of {len(lines)}:\n{done.stderr}")
        return answers

    def check_java(self, messages):
        if not messages:
            return
        answers = self.java([(topic, field, raw) for _, topic, field, raw, _ in messages])
        for (what, _, _, _, expected), answer in zip(messages, answers):
            self.expect(what, "Java", expected, lambda: answer if answer[0] == "!" else same_text(answer))

    def check_damage(self):
        """No byte of a value can be another without both clients finding another value, or none."""
        (topic, messages), = self.records().items()
        raw, part = messages[0].value(), self.cases[topic].value
        expected = canonical(part.rows[0][1])
        damaged = [raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1:] for at in range(len(raw)) if not 1 <= at <= 4]
        answers = self.java([(topic, "value", each) for each in damaged])
        for each, answer in zip(damaged, answers):
            if answer[0] != "!" and same_text(answer) == expected:
                self.wrong.append(f"Java finds the same in {each.hex()}")
            try:
                if canonical(self.python(topic, "value", part, each, [], None)) == expected:
                    self.wrong.append(f"Python finds the same in {each.hex()}")
            except Exception:
                continue  # refused, as it should be
        return len(damaged)


def same_text(answer):
    """As Python writes it: the clients differ in how they sort names beyond ASCII."""
    return json.dumps(json.loads(answer), sort_keys=True, separators=(",", ":"))


def protobuf_classes():
    """Of `cases.PROTO`, built by hand: no compiler of Protobuf is needed."""
    number = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="cases.proto", package="acme", syntax="proto3")

    def add(message, name, kind):
        message.field.add(name=name, number=1, type=kind, label=number.LABEL_OPTIONAL)

    add(file.message_type.add(name="First"), "a", number.TYPE_INT32)
    second = file.message_type.add(name="Second")
    add(second, "s", number.TYPE_STRING)
    add(second.nested_type.add(name="Within"), "n", number.TYPE_INT64)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"acme.{name}"))
        for name in ("First", "Second", "Second.Within")
    }


def address_of(name):
    """As `tests/support/services.hpp` finds it."""
    if name in os.environ:
        return os.environ[name]
    file = HERE.parent.parent / "build/services/env"
    for line in file.read_text().splitlines() if file.exists() else []:
        if line.startswith(name + "="):
            return line.split("=", 1)[1]
    sys.exit(f"{name} is not set, and no servers run: start them by \"./dev services start\"")


def main():
    millrace, services, chosen = sys.argv[1:]
    kafka, registry = address_of("MILLRACE_TEST_KAFKA"), address_of("MILLRACE_TEST_REGISTRY")
    with guid_registry.in_front_of(registry) as with_guids:
        check = Check(millrace, kafka, with_guids if chosen == "header" else registry, services, chosen)
        check.register_all()
        check.relay()
        decoded = check.check_damage() if chosen == "damage" else check.check()
    if check.wrong:
        sys.exit("\n".join(check.wrong))
    print(f"{chosen}: {len(check.cases)} topics; {decoded} values also read by Java")


main()
