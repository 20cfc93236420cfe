"""One text for a decoded value, whichever language decoded it; `Decode.java` writes the same."""

import datetime
import decimal
import json
import math
import struct
import uuid

MOMENT = "%Y-%m-%dT%H:%M:%S.%f"


def canonical(value):
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))


def _plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": "nan" if math.isnan(value) else struct.pack(">d", value).hex()}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, decimal.Decimal):
        return {"decimal": f"{value:f}"}
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            return {"local": value.strftime(MOMENT)}
        return {"instant": value.astimezone(datetime.timezone.utc).strftime(MOMENT)}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, datetime.time):
        return {"time": value.strftime("%H:%M:%S.%f")}
    if isinstance(value, uuid.UUID):
        return {"uuid": str(value)}
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(item) for item in value]
