#!/usr/bin/env python3
"""The contract keeps every promise of the last release (contract.txt).

Whoever was compiled against that release finds each message, field, enum value
and method under its name, number, type and label.
"""

import unittest

import contract
from google.protobuf import descriptor_pb2

Field = descriptor_pb2.FieldDescriptorProto


def lost(changed):
    """What callers of the list would miss in a changed contract."""
    return set(contract.listed()) - set(contract.facts(changed))


def message(file, name):
    return next(one for one in file.message_type if one.name == name)


def field(file, name, of="EmbedRequest"):
    return next(one for one in message(file, of).field if one.name == name)


class ContractTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.file = contract.read_proto()

    def test_nothing_of_the_last_release_is_gone_or_changed(self):
        self.assertEqual(sorted(lost(self.file)), [])

    def test_what_is_new_is_listed(self):
        self.assertEqual(contract.listed(), contract.facts(self.file),
                         "run tests/integration/contract.py --write")


class BreakTest(unittest.TestCase):
    """Every kind of break is found."""

    def setUp(self):
        self.file = contract.read_proto()

    def assert_lost(self, *lines):
        self.assertEqual(lost(self.file), set(lines))

    def test_a_field_that_is_removed(self):
        fields = message(self.file, "EmbedRequest").field
        fields.remove(field(self.file, "request_id"))
        self.assert_lost("field encoderd.v1.EmbedRequest.request_id = 4: string")

    def test_a_field_that_is_renamed(self):
        field(self.file, "request_id").name = "id"
        self.assert_lost("field encoderd.v1.EmbedRequest.request_id = 4: string")

    def test_a_field_of_another_number(self):
        field(self.file, "request_id").number = 5
        self.assert_lost("field encoderd.v1.EmbedRequest.request_id = 4: string")

    def test_a_field_of_another_type(self):
        field(self.file, "request_id").type = Field.TYPE_BYTES
        self.assert_lost("field encoderd.v1.EmbedRequest.request_id = 4: string")

    def test_a_field_of_another_label(self):
        field(self.file, "inputs").label = Field.LABEL_OPTIONAL
        self.assert_lost("field encoderd.v1.EmbedRequest.inputs = 2: "
                         "repeated encoderd.v1.Input")
        self.setUp()
        field(self.file, "normalize", "EmbedOptions").proto3_optional = False
        self.assert_lost("field encoderd.v1.EmbedOptions.normalize = 2: "
                         "optional bool")

    def test_a_field_that_leaves_its_oneof(self):
        field(self.file, "text", "Input").ClearField("oneof_index")
        self.assert_lost("field encoderd.v1.Input.text = 1: string, of content")

    def test_a_list_that_is_no_longer_packed(self):
        field(self.file, "ids", "TokenIds").options.packed = False
        self.assert_lost("field encoderd.v1.TokenIds.ids = 1: repeated uint32")

    def test_a_value_of_another_number(self):
        enum = next(one for one in self.file.enum_type if one.name == "Pooling")
        enum.value[1].number = 9
        self.assert_lost("value encoderd.v1.Pooling.POOLING_CLS = 1")

    def test_a_method_that_is_removed(self):
        methods = self.file.service[0].method
        methods.remove(next(one for one in methods if one.name == "Embed"))
        self.assert_lost("rpc encoderd.v1.Encoder.Embed: encoderd.v1.EmbedRequest"
                         " -> encoderd.v1.EmbedResponse")

    def test_a_method_that_streams_or_takes_something_else(self):
        line = ("rpc encoderd.v1.Encoder.Embed: encoderd.v1.EmbedRequest"
                " -> encoderd.v1.EmbedResponse")
        methods = self.file.service[0].method
        method = next(one for one in methods if one.name == "Embed")
        method.server_streaming = True
        self.assert_lost(line)
        method.server_streaming = False
        method.input_type = ".encoderd.v1.EncodeRequest"
        self.assert_lost(line)

    def test_another_package(self):
        self.file.package = "encoderd.v2"
        self.assertIn("package encoderd.v1", lost(self.file))

    def test_additions_are_no_break(self):
        message(self.file, "EmbedRequest").field.add(
            name="more", number=99, type=Field.TYPE_STRING,
            label=Field.LABEL_OPTIONAL)
        self.file.enum_type[0].value.add(name="ERROR_REASON_NEW", number=99)
        self.file.message_type.add(name="New")
        self.file.service[0].method.add(
            name="New", input_type=".encoderd.v1.New",
            output_type=".encoderd.v1.New")
        message(self.file, "EmbedRequest").reserved_range.add(start=7, end=8)
        self.assert_lost()


if __name__ == "__main__":
    unittest.main()
