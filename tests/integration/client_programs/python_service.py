"""Services of encoderd.v1 written in Python, where a test needs more say than
fake_encoder_server gives."""

import contextlib
import socket
import threading
from concurrent import futures

import encoderd
import grpc
import numpy as np
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from google.rpc import error_details_pb2, status_pb2


_held = []  # a socket for each port that a server of this process had


def bound(port):
    """A socket that shares its port with others that do; 0: a free one."""
    new = socket.socket()
    new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    new.bind(("127.0.0.1", port))
    return new


def _new_port():
    """A port that no earlier server had: gRPC may still hold that nothing
    listens there."""
    _held.append(bound(0))
    return _held[-1].getsockname()[1]


class Service(encoder_pb2_grpc.EncoderServicer):
    """target: where it serves."""

    target = ""


class Model(Service):
    """Notes what it is asked; takes at most `limit` inputs in a request."""

    def __init__(self, limit=1024, **info):
        self.limit = limit
        self.info = encoder_pb2.Model(name="model", dimensions=2, max_len=8,
                                      max_inputs_per_request=limit, **info)
        self.requests = []
        self.fingerprint = "one"

    def GetModel(self, request, context):
        return self.info

    def Embed(self, request, context):
        self._check(request, context)
        self.requests.append(request)
        return encoder_pb2.EmbedResponse(
            fingerprint=self.fingerprint,
            embeddings=[encoder_pb2.Embedding(packed=np.array(
                [len(value.text), 1], "<f4").tobytes())
                        for value in request.inputs])

    def EmbedStream(self, requests, context):
        for request in requests:
            if len(request.inputs) > self.limit:
                yield encoder_pb2.EmbedResponse(request_id=request.request_id,
                                                error=self._refusal(request))
                continue
            answer = self.Embed(request, context)
            answer.request_id = request.request_id
            yield answer

    def Encode(self, request, context):
        self._check(request, context)
        self.requests.append(request)
        return encoder_pb2.EncodeResponse(
            fingerprint=self.fingerprint,
            states=[encoder_pb2.TokenStates(rows=1, columns=1, packed=bytes(4))
                    for _ in request.inputs])

    def Tokenize(self, request, context):
        self._check(request, context)
        return encoder_pb2.TokenizeResponse(inputs=[
            encoder_pb2.TokenizedInput(ids=[7] * len(value.text),
                                       segment_ids=[1] * len(value.text))
            for value in request.inputs])

    def _refusal(self, request):
        status = status_pb2.Status(code=3, message="too many inputs")
        status.details.add().Pack(error_details_pb2.ErrorInfo(
            reason="TOO_MANY_INPUTS", domain="encoderd",
            metadata={"count": str(len(request.inputs)),
                      "limit": str(self.limit)}))
        return status

    def _check(self, request, context):
        if len(request.inputs) > self.limit:
            status = self._refusal(request)
            context.set_trailing_metadata([
                ("grpc-status-details-bin", status.SerializeToString())])
            context.abort(encoderd.errors._CODES[status.code], status.message)


class Held(Service):
    """Answers once it is let go."""

    def __init__(self):
        self.called = threading.Event()
        self.let_go = threading.Event()

    def Embed(self, request, context):
        self.called.set()
        self.let_go.wait()
        return encoder_pb2.EmbedResponse()


@contextlib.contextmanager
def serve(service, max_message_bytes=4 << 20, max_answer_bytes=-1,
          interceptors=(), credentials=None, options=(),
          address=None, health=None):
    """The service, while it listens; on a new port if there is no address.
    credentials: of a server with TLS; options: further ones of gRPC; health:
    (request, context) -> the bytes of the health service's answer."""
    server = grpc.server(
        futures.ThreadPoolExecutor(8), interceptors=interceptors,
        options=[("grpc.max_receive_message_length", max_message_bytes),
                 ("grpc.max_send_message_length", max_answer_bytes),
                 *options])
    encoder_pb2_grpc.add_EncoderServicer_to_server(service, server)
    if health is not None:
        server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", {
                "Check": grpc.unary_unary_rpc_method_handler(health)}),))
    service.target = address or f"127.0.0.1:{_new_port()}"
    if credentials is None:
        server.add_insecure_port(service.target)
    else:
        server.add_secure_port(service.target, credentials)
    server.start()
    try:
        yield service
    finally:
        server.stop(None).wait()
