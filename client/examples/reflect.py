#!/usr/bin/env python3
"""Calls Embed without any generated code: the server says what it takes.

    reflect.py [HOST:PORT]
"""

import sys

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase)

target = sys.argv[1] if len(sys.argv) > 1 else "localhost:8400"
with grpc.insecure_channel(target) as channel:
    database = ProtoReflectionDescriptorDatabase(channel)
    pool = descriptor_pool.DescriptorPool(database)
    service = pool.FindServiceByName("encoderd.v1.Encoder")
    print("methods:", ", ".join(method.name for method in service.methods))

    embed = service.methods_by_name["Embed"]
    request = message_factory.GetMessageClass(embed.input_type)()
    request.inputs.add().text = "A man eats."
    answer = message_factory.GetMessageClass(embed.output_type)
    call = channel.unary_unary(
        "/encoderd.v1.Encoder/Embed",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=answer.FromString)
    embedding = call(request, timeout=30).embeddings[0]
    print(f"{len(embedding.floats.values)} values, "
          f"{embedding.token_count} tokens")
