#!/usr/bin/env python3
"""The google.rpc files of proto/ are those that googleapis-common-protos ships,
and what proto/ has of OTLP is part of what opentelemetry-proto ships.

Compares descriptors, of google.rpc options included: every name, number, type
and package.
"""

import pathlib
import subprocess
import tempfile
import unittest

from google.protobuf import descriptor_pb2
from google.rpc import error_details_pb2, status_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


def ours(name):
    """The descriptor of a file below proto/, as protoc reads it."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(
            ["protoc", f"--proto_path={PROTO}",
             f"--descriptor_set_out={out.name}", name], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    [file] = files.file
    for message in file.message_type:
        forget_json_names(message)
    return file


def forget_json_names(message):
    """protoc writes them out, Python's descriptors leave them to the rule."""
    for field in message.field:
        field.ClearField("json_name")
    for nested in message.nested_type:
        forget_json_names(nested)


def published(module):
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    for message in file.message_type:
        forget_json_names(message)
    return file


def fields(message, prefix=""):
    """{"Message.field": what decides its bytes}, of nested messages too."""
    found = {}
    name = prefix + message.name
    for field in message.field:
        found[f"{name}.{field.name}"] = (
            field.number, field.type, field.label, field.type_name)
    for nested in message.nested_type:
        found.update(fields(nested, name + "."))
    for enum in message.enum_type:
        for value in enum.value:
            found[f"{name}.{enum.name}.{value.name}"] = value.number
    return found


def all_fields(file):
    return {key: value for message in file.message_type
            for key, value in fields(message).items()}


class ProtoTest(unittest.TestCase):
    maxDiff = None

    def test_otlp_is_a_part_of_what_is_published(self):
        for folder, module in (("common/v1/common", common_pb2),
                               ("resource/v1/resource", resource_pb2),
                               ("trace/v1/trace", trace_pb2),
                               ("collector/trace/v1/trace_service",
                                trace_service_pb2)):
            file = ours(f"opentelemetry/proto/{folder}.proto")
            whole = published(module)
            self.assertEqual(file.package, whole.package)
            part, known = all_fields(file), all_fields(whole)
            self.assertTrue(part)
            self.assertEqual(part, {key: known.get(key) for key in part})
            for service in file.service:
                [same] = [s for s in whole.service if s.name == service.name]
                self.assertEqual(
                    [(m.name, m.input_type, m.output_type) for m in same.method],
                    [(m.name, m.input_type, m.output_type)
                     for m in service.method])

    def test_status_has_the_published_descriptor(self):
        self.assertEqual(str(ours("google/rpc/status.proto")),
                         str(published(status_pb2)))

    def test_error_details_have_the_published_descriptor(self):
        self.assertEqual(str(ours("google/rpc/error_details.proto")),
                         str(published(error_details_pb2)))


if __name__ == "__main__":
    unittest.main()
