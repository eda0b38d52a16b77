"""Services of encoderd.v1 written in Python, where a test needs more say than
fake_encoder_server gives."""

import contextlib
from concurrent import futures

import grpc
from encoderd.v1 import encoder_pb2_grpc


class Service(encoder_pb2_grpc.EncoderServicer):
    """target: where it serves."""

    target = ""


@contextlib.contextmanager
def serve(service, max_message_bytes=4 << 20, max_answer_bytes=-1,
          interceptors=(), credentials=None):
    """The service, while it listens on a free port of 127.0.0.1; credentials:
    of a server with TLS."""
    server = grpc.server(
        futures.ThreadPoolExecutor(8), interceptors=interceptors,
        options=[("grpc.max_receive_message_length", max_message_bytes),
                 ("grpc.max_send_message_length", max_answer_bytes)])
    encoder_pb2_grpc.add_EncoderServicer_to_server(service, server)
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    service.target = f"127.0.0.1:{port}"
    server.start()
    try:
        yield service
    finally:
        server.stop(None).wait()
