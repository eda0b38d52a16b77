#!/usr/bin/env python3
"""The google.rpc files of proto/ are those that googleapis-common-protos ships.

Compares descriptors, options included: every name, number, type and package.
"""

import pathlib
import subprocess
import tempfile
import unittest

from google.protobuf import descriptor_pb2
from google.rpc import error_details_pb2, status_pb2

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


class ProtoTest(unittest.TestCase):
    maxDiff = None

    def test_status_has_the_published_descriptor(self):
        self.assertEqual(str(ours("google/rpc/status.proto")),
                         str(published(status_pb2)))

    def test_error_details_have_the_published_descriptor(self):
        self.assertEqual(str(ours("google/rpc/error_details.proto")),
                         str(published(error_details_pb2)))


if __name__ == "__main__":
    unittest.main()
