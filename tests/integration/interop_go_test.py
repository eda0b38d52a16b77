#!/usr/bin/env python3
"""Cases of interop_test.py by grpcurl, whose gRPC is written in Go: a client
that shares no code with the server, HTTP/2 and Protocol Buffers included.

Those that grpcurl can express: it does not compress, cancel or share a channel,
and its time limit includes the time to connect.

    interop_go_test.py --server=build/dev/bin/encoderd_fake_server
"""

import base64
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

import interop_support
from interop_support import (HIDDEN, LARGE, LIMIT, MAX_LEN, PATIENCE, ROOT,
                             SPECIAL, SPECIAL_SHOWN, ServerTest)

GRPCURL = pathlib.Path(sys.executable).parent / "grpcurl"
CONTRACT = ("-import-path", ROOT / "proto", "-proto",
            "encoderd/v1/encoder.proto", "-proto",
            "google/rpc/error_details.proto")
# gRPC's numbers of codes.
INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED, UNIMPLEMENTED = 3, 5, 8, 12
UNKNOWN = """syntax = "proto3";
package encoderd.%s;
message Empty {}
service Encoder { rpc UnimplementedCall(Empty) returns (Empty); }
"""


def zeros(size, request_id=""):
    return {"inputs": [{"text": "\0" * size}], "request_id": request_id,
            "options": {"truncate": "TRUNCATE_END", "packed": True}}


def read_all(text):
    """The JSON values that follow one another."""
    decoder, found = json.JSONDecoder(), []
    while text := text.lstrip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def read_one(lines):
    """The next value that grpcurl prints: its last line is a single brace."""
    found = []
    for line in lines:
        found.append(line)
        if line == "}\n":
            break
    return json.loads("".join(found))


class GoTest(ServerTest):
    flags = (f"--max_message_bytes={LIMIT}", "--max_queue_tokens=4194304")

    def command(self, method, *options, schema=CONTRACT):
        return [GRPCURL, "-plaintext", "-format-error", "-d", "@", *schema,
                *options, self.server.address, method]

    def call(self, method, *requests, **options):
        """Its answers and, where it fails, its google.rpc.Status."""
        done = subprocess.run(
            self.command(f"encoderd.v1.Encoder/{method}",
                         *options.pop("flags", ()), **options),
            input="\n".join(map(json.dumps, requests)), timeout=PATIENCE,
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode != 0, bool(done.stderr), done)
        return read_all(done.stdout), json.loads(done.stderr or "null")

    @contextlib.contextmanager
    def talk(self, *flags):
        """An EmbedStream: how to send and read, and the process."""
        process = subprocess.Popen(
            self.command("encoderd.v1.Encoder/EmbedStream", *flags),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)

        def send(request):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()

        with process:
            try:
                yield send, lambda: read_one(process.stdout), process
            finally:
                process.kill()

    def assert_ok(self, method, *requests, **options):
        answers, error = self.call(method, *requests, **options)
        self.assertIsNone(error)
        return answers

    def assert_refused(self, code, *call, message=None, **options):
        """The one detail of type ErrorInfo; None without details."""
        answers, error = self.call(*call, **options)
        self.assertEqual(answers, [])
        self.assertEqual(error["code"], code, error)
        if message is not None:
            self.assertIn(message, error["message"])
        infos = [one for one in error.get("details", ())
                 if one["@type"].endswith("/google.rpc.ErrorInfo")]
        return infos[0] if infos else None

    def test_empty_unary_is_a_message_of_no_bytes(self):
        [answer] = self.assert_ok("ListModels", {})
        self.assertEqual([one["name"] for one in answer["models"]], ["fake"])

    def test_large_unary_is_answered_in_full(self):
        [answer] = self.assert_ok("Encode", {
            "inputs": [{"text": "\0" * (LARGE // 5 + 1)}] * 5,
            "truncate": "TRUNCATE_END"})
        self.assertEqual([len(base64.b64decode(one["packed"]))
                          for one in answer["states"]],
                         [MAX_LEN * HIDDEN * 4] * 5)

    def test_ping_pong_answers_each_request_before_the_next_is_sent(self):
        with self.talk() as (send, read, process):
            for size in (27182, 8, 1828, 45904):
                send(zeros(size, str(size)))
                answer = read()
                self.assertEqual(answer["requestId"], str(size))
                [embedding] = answer["embeddings"]
                self.assertEqual(embedding["tokenCount"], size + 2)
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE), 0)

    def test_empty_stream_ends_well(self):
        self.assertEqual(self.assert_ok("EmbedStream"), [])

    def test_custom_metadata_changes_no_answer(self):
        headers = ("-H", "x-grpc-test-echo-initial: test_initial_metadata_value",
                   "-H", "x-grpc-test-echo-trailing-bin: "
                   + base64.b64encode(b"\xab\xab\xab").decode())
        for method in ("Embed", "EmbedStream"):
            [plain] = self.assert_ok(method, zeros(8, "one"))
            [answer] = self.assert_ok(method, zeros(8, "one"), flags=headers)
            self.assertEqual(answer["embeddings"], plain["embeddings"])

    def test_status_code_and_message_arrive_with_their_details(self):
        info = self.assert_refused(
            INVALID_ARGUMENT, "Embed", {"inputs": [{"text": "x" * 300}]},
            message="inputs[0] has 302 tokens; this model takes at most 256: ")
        self.assertEqual(info, {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "INPUT_TOO_LONG", "domain": "encoderd",
            "metadata": {"input_index": "0", "token_count": "302",
                         "max_tokens": "256"}})

    def test_special_status_message_shows_the_name_that_was_sent(self):
        info = self.assert_refused(NOT_FOUND, "GetModel", {"model": SPECIAL},
                                   message=f"'{SPECIAL_SHOWN}'")
        self.assertEqual(info["metadata"]["model"], SPECIAL_SHOWN)

    def test_unimplemented_method_and_service_have_that_code(self):
        for version in ("v1", "v2"):
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "unknown.proto").write_text(
                    UNKNOWN % version, encoding="utf-8")
                done = subprocess.run(self.command(
                    f"encoderd.{version}.Encoder/UnimplementedCall",
                    schema=("-import-path", folder, "-proto",
                            "unknown.proto")),
                    input="{}", timeout=PATIENCE, capture_output=True,
                    text=True, check=False)
            self.assertEqual(json.loads(done.stderr), {"code": UNIMPLEMENTED})

    def test_a_caller_that_is_killed_leaves_nothing(self):
        with self.talk() as (send, read, process):
            send(zeros(27182, "one"))
            self.assertEqual(read()["requestId"], "one")
            self.assertEqual(self.sample("encoderd_streams"), 1)
            process.kill()
        self.wait_until("encoderd_streams", 0)
        self.wait_until("encoderd_connections", 0)

    def test_a_message_above_the_limit_is_refused_by_grpc(self):
        self.assertIsNone(self.assert_refused(
            RESOURCE_EXHAUSTED, "Embed", zeros(LIMIT),
            message="larger than max"))


if __name__ == "__main__":
    interop_support.main()
