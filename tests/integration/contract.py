#!/usr/bin/env python3
"""The contract of proto/encoderd/v1 as plain lines, one for each fact that
callers rely on, and their list of the last release: contract.txt.

    tests/integration/contract.py --write    # adds what is new

A line that the list has and the contract has not is a break for callers of the
last release. --write never takes one out; whoever breaks the contract does so
by hand, and says so in CHANGELOG.md."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTO = "encoderd/v1/encoder.proto"
LIST = pathlib.Path(__file__).with_name("contract.txt")

Field = descriptor_pb2.FieldDescriptorProto


def read_proto():
    """The descriptor of the contract, as protoc reads it."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(
            ["protoc", f"--proto_path={ROOT / 'proto'}",
             f"--descriptor_set_out={out.name}", PROTO], check=True)
        [file] = descriptor_pb2.FileDescriptorSet.FromString(out.read()).file
    return file


def facts(file):
    """The lines of a FileDescriptorProto, in its order."""
    lines = [f"package {file.package}"]
    for enum in file.enum_type:
        lines += _enum(file.package, enum)
    for message in file.message_type:
        lines += _message(file.package, message)
    for service in file.service:
        for method in service.method:
            lines.append(
                f"rpc {file.package}.{service.name}.{method.name}: "
                f"{_stream(method.client_streaming)}{_name(method.input_type)}"
                f" -> {_stream(method.server_streaming)}"
                f"{_name(method.output_type)}")
    return lines


def _enum(scope, enum):
    name = f"{scope}.{enum.name}"
    return ([f"value {name}.{value.name} = {value.number}"
             for value in enum.value]
            + [f"reserved {name} {reserved.start} to {reserved.end}"
               for reserved in enum.reserved_range]
            + [f"reserved {name} {reserved}"
               for reserved in enum.reserved_name])


def _message(scope, message):
    name = f"{scope}.{message.name}"
    lines = [f"message {name}"]
    lines += [f"field {name}.{field.name} = {field.number}: "
              f"{_type(message, field)}" for field in message.field]
    lines += [f"reserved {name} {reserved.start} to {reserved.end - 1}"
              for reserved in message.reserved_range]
    lines += [f"reserved {name} {reserved}"
              for reserved in message.reserved_name]
    for enum in message.enum_type:
        lines += _enum(name, enum)
    for nested in message.nested_type:
        lines += _message(name, nested)
    return lines


def _type(message, field):
    kind = (_name(field.type_name)
            or Field.Type.Name(field.type).removeprefix("TYPE_").lower())
    if field.label == Field.LABEL_REPEATED:
        kind = f"repeated {kind}"
        if field.options.HasField("packed"):
            kind += f", packed {str(field.options.packed).lower()}"
    elif field.proto3_optional:
        kind = f"optional {kind}"
    elif field.HasField("oneof_index"):
        kind += f", of {message.oneof_decl[field.oneof_index].name}"
    return kind


def _name(qualified):
    return qualified.removeprefix(".")


def _stream(is_stream):
    return "stream " if is_stream else ""


def listed():
    return LIST.read_text(encoding="utf-8").splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true",
                        help="add to contract.txt what it lacks")
    options = parser.parse_args()
    now = facts(read_proto())
    lost = sorted(set(listed() if LIST.exists() else []) - set(now))
    if lost:
        print("callers of the last release would miss:", *lost, sep="\n  ",
              file=sys.stderr)
        return 1
    if options.write:
        LIST.write_text("\n".join(now) + "\n", encoding="utf-8")
    else:
        print("\n".join(now))
    return 0


if __name__ == "__main__":
    sys.exit(main())
