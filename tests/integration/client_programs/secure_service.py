"""Servers that ask for certificates and tokens, and both clients as one
function."""

import asyncio
import contextlib
import socket
import ssl
import threading

import encoderd
import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from python_service import Service, serve
from stream_service import answer

TOKEN = "a-token-of-the-tests"


class Answers(Service):
    """[i] for the text "text i", over both methods."""

    def Embed(self, request, context):
        return answer(request)

    def EmbedStream(self, requests, context):
        for request in requests:
            yield answer(request)


class Tokens(grpc.ServerInterceptor):
    """Lets calls with TOKEN pass; seen: what came, by method."""

    def __init__(self):
        self.seen = []

    def intercept_service(self, continuation, handler_call_details):
        given = dict(handler_call_details.invocation_metadata).get(
            "authorization")
        name = handler_call_details.method.rpartition("/")[2]
        self.seen.append((name, given))
        if given == f"Bearer {TOKEN}":
            return continuation(handler_call_details)
        reason = "BEARER_TOKEN_UNKNOWN" if given else "BEARER_TOKEN_MISSING"
        status = status_pb2.Status(code=16, message=f"no: {reason}")
        status.details.add().Pack(error_details_pb2.ErrorInfo(
            reason=reason, domain="encoderd"))

        def refuse(unused, context):
            context.set_trailing_metadata(
                [("grpc-status-details-bin", status.SerializeToString())])
            context.abort(grpc.StatusCode.UNAUTHENTICATED, status.message)

        if name == "EmbedStream":
            return grpc.stream_stream_rpc_method_handler(refuse)
        return grpc.unary_unary_rpc_method_handler(refuse)


def server_credentials(certificates, name="server", clients_of=None):
    """Shows NAME's certificate; asks clients for one of that authority."""
    authority = clients_of and (certificates / f"{clients_of}.pem").read_bytes()
    pair = ((certificates / f"{name}.key").read_bytes(),
            (certificates / f"{name}.pem").read_bytes())
    return grpc.ssl_server_credentials(
        [pair], authority, require_client_auth=bool(clients_of))


@contextlib.contextmanager
def starting(certificates):
    """Gives a function that serves as server_credentials() says, with TLS
    unless plain, and returns the target."""
    with contextlib.ExitStack() as services:
        def begin(plain=False, interceptors=(), **options):
            credentials = (None if plain
                           else server_credentials(certificates, **options))
            return services.enter_context(serve(
                Answers(), interceptors=interceptors,
                credentials=credentials)).target

        yield begin


@contextlib.contextmanager
def openssl_server(certificates, version):
    """Asks for a client's certificate as servers do that use OpenSSL, and
    serves nobody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = version
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates / "ca.pem")
    context.load_cert_chain(certificates / "server.pem",
                            certificates / "server.key")
    context.set_alpn_protocols(["h2"])

    def refuse_all():
        with contextlib.suppress(OSError):  # of accept, once it is closed
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    context.wrap_socket(connection, server_side=True).close()

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        thread = threading.Thread(target=refuse_all)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def blocking(target, **options):
    """The vectors of a list, then the same over a stream."""
    with encoderd.Client(target, **options) as client:
        vectors = client.embed(["text 1", "text 2"]).vectors.tolist()
        found = [found.vector.tolist()
                 for found in client.embed_stream(["text 1", "text 2"])]
        return vectors, found


def awaited(target, **options):
    async def main():
        async with encoderd.AsyncClient(target, **options) as client:
            vectors = (await client.embed(["text 1", "text 2"])).vectors
            found = [found.vector.tolist() async for found
                     in client.embed_stream(["text 1", "text 2"])]
            return vectors.tolist(), found
    return asyncio.run(main())


BOTH = pytest.mark.parametrize("work", [blocking, awaited])
GOOD = ([[1.0], [2.0]], [[1.0], [2.0]])


def health(work, target, **options):
    """By either client; gRPC makes one attempt at it."""
    async def main():
        async with encoderd.AsyncClient(target, **options) as client:
            return await client.health()

    if work is awaited:
        return asyncio.run(main())
    with encoderd.Client(target, **options) as client:
        return client.health()


def stream_alone(work, target, **options):
    async def main():
        async with encoderd.AsyncClient(target, **options) as client:
            return [found async for found in client.embed_stream(["text 1"])]

    if work is awaited:
        return asyncio.run(main())
    with encoderd.Client(target, **options) as client:
        return list(client.embed_stream(["text 1"]))
