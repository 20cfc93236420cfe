"""The consumer of `./dev run postgres-kafka --schemas`: Confluent's client of Python with its deserialiser of Avro.

    decode_orders.py BOOTSTRAP REGISTRY TOPIC ORDERS

Writes a line for each record (order, customer, total and moment of the order, by tabs) until it has seen so many orders,
or nothing has come for 30 s.
"""

import sys

import confluent_kafka
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

bootstrap, registry, topic, orders = sys.argv[1:]
consumer = confluent_kafka.Consumer(
    {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
)
consumer.subscribe([topic])
decode = AvroDeserializer(SchemaRegistryClient({"url": registry}))
where = SerializationContext(topic, MessageField.VALUE)
print(f"confluent-kafka {confluent_kafka.__version__}, Python {sys.version.split()[0]}")
seen = set()
while len(seen) < int(orders):
    records = consumer.consume(500, 30)
    if not records:
        sys.exit(f"nothing has come for 30 s, after {len(seen)} orders")
    for record in records:
        if record.error():
            sys.exit(str(record.error()))
        found = decode(record.value(), where)
        seen.add(found["order"])
        moment = found["placed_at"].strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        print(found["order"], found["customer"], f"{found['total']:f}", moment, sep="\t")
consumer.close()
