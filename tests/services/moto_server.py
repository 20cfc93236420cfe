"""moto's server, one request at a time: its conditional writes are no conditions where several run at once."""
import threading

from moto import server
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

one_at_a_time = threading.Lock()
serve = DomainDispatcherApplication.__call__


def serve_alone(self, *request):
    with one_at_a_time:
        return serve(self, *request)


DomainDispatcherApplication.__call__ = serve_alone
server.main()
