"""The registry of the tests with GUIDs, which Confluent's has and Apicurio's has not: passes questions on, adds to each
schema a GUID made of its id, and finds schemas by it."""

import contextlib
import http.server
import json
import threading
import urllib.error
import urllib.request
import uuid


def guid_of(schema_id):
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"schema {schema_id}"))


@contextlib.contextmanager
def in_front_of(registry):
    ids = {}  # by GUID

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path = self.path
            if path.startswith("/schemas/guids/"):
                guid = path.split("/")[3].split("?")[0]
                if guid not in ids:
                    return self.answer(404, b'{"error_code":40403,"message":"no such GUID"}')
                path = f"/schemas/ids/{ids[guid]}"
            self.pass_on(urllib.request.Request(registry + path))

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.pass_on(urllib.request.Request(registry + self.path, body, {"Content-Type": self.headers["Content-Type"]}))

        def pass_on(self, request):
            try:
                with urllib.request.urlopen(request, timeout=30) as reply:
                    self.answer(reply.status, with_guid(reply.read()))
            except urllib.error.HTTPError as refused:
                self.answer(refused.code, refused.read())

        def answer(self, status, body):
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    def with_guid(body):
        found = json.loads(body)
        if isinstance(found, dict) and "id" in found:
            found["guid"] = guid_of(found["id"])
            ids[found["guid"]] = found["id"]
        return json.dumps(found).encode()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
