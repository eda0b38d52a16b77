"""Embeds two texts, prints their cosine, then what the error of a text that is
too long says; with code that protoc generated, without the client package.
README.md tells how to generate code and run this.
    PYTHONPATH=gen/python python3 client/examples/embed_generated.py [HOST:PORT]
"""

import math
import sys

import grpc
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from google.rpc import error_details_pb2, status_pb2


def embed(stub, texts):
    request = encoder_pb2.EmbedRequest(
        inputs=[encoder_pb2.Input(text=text) for text in texts])
    answer = stub.Embed(request, timeout=30)
    return [embedding.floats.values for embedding in answer.embeddings]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def explain(error):
    """Prints an error with its reason, metadata and retry delay."""
    print(f"{error.code().name}: {error.details()}")
    metadata = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(
        metadata.get("grpc-status-details-bin", b""))
    delay = "none"
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            print(f"reason {info.reason}")
            for key, value in sorted(info.metadata.items()):
                print(key, value)
        elif detail.Unpack(retry):
            delay = f"{retry.retry_delay.ToMilliseconds() / 1000:.3f} s"
    print("retry delay", delay)


target = sys.argv[1] if len(sys.argv) > 1 else "localhost:8400"
with grpc.insecure_channel(
        target, [("grpc.max_receive_message_length", 16 << 20)]) as channel:
    encoder = encoder_pb2_grpc.EncoderStub(channel)
    try:
        one, two = embed(encoder, ["A man eats.", "Someone has a meal."])
    except grpc.RpcError as refused:
        explain(refused)
        sys.exit(1)
    cosine = dot(one, two) / math.sqrt(dot(one, one) * dot(two, two))
    print(f"cosine {cosine:.4f}")
    try:
        embed(encoder, ["word " * 1000])
    except grpc.RpcError as refused:
        explain(refused)
