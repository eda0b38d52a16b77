#!/usr/bin/env python3
"""Stands in for grpcurl in tests: it learns everything by server reflection.

    grpcurl.py -plaintext ADDRESS list
    grpcurl.py -plaintext ADDRESS describe SYMBOL
    grpcurl.py -plaintext [-d JSON] ADDRESS SERVICE/METHOD

Debian has no grpcurl. Only these forms are known; no generated code is used.
"""

import argparse
import sys

import grpc
from google.protobuf import descriptor_pool, json_format, message_factory
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase)


def find(pool, symbol):
    for lookup in (pool.FindMessageTypeByName, pool.FindServiceByName,
                   pool.FindEnumTypeByName):
        try:
            return lookup(symbol)
        except KeyError:
            continue
    sys.exit(f"the server does not know {symbol}")


def describe(descriptor):
    """One line for each method, field or value."""
    lines = [f"{descriptor.full_name}:"]
    for part in ("methods", "fields", "values"):
        lines += [f"  {item.name}" for item in getattr(descriptor, part, [])]
    return "\n".join(lines)


def call(channel, pool, method, json):
    service_name, _, method_name = method.partition("/")
    service = find(pool, service_name)
    if method_name not in service.methods_by_name:
        sys.exit(f"{service_name} has no method {method_name}")
    descriptor = service.methods_by_name[method_name]
    request = message_factory.GetMessageClass(descriptor.input_type)()
    answer = message_factory.GetMessageClass(descriptor.output_type)
    json_format.Parse(json, request)
    invoke = channel.unary_unary(
        f"/{service_name}/{method_name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=answer.FromString)
    return json_format.MessageToJson(invoke(request, timeout=30))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-plaintext", action="store_true", required=True)
    parser.add_argument("-d", dest="data", default="{}")
    parser.add_argument("address")
    parser.add_argument("what")
    parser.add_argument("symbol", nargs="?")
    arguments = parser.parse_args()
    with grpc.insecure_channel(arguments.address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        pool = descriptor_pool.DescriptorPool(database)
        try:
            if arguments.what == "list":
                print("\n".join(sorted(database.get_services())))
            elif arguments.what == "describe":
                print(describe(find(pool, arguments.symbol)))
            else:
                print(call(channel, pool, arguments.what, arguments.data))
        except grpc.RpcError as error:
            sys.exit(f"{error.code().name}: {error.details()}")


if __name__ == "__main__":
    main()
