#!/usr/bin/env python3
"""The cases of interop_test.py about statuses and credentials: what a caller
reads of an error, and gRPC's own ways to send a bearer token.

    interop_status_test.py --server=build/dev/bin/encoderd_fake_server
"""

import hashlib
import pathlib
import re
import subprocess
import tempfile

import grpc
import interop_support
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from google.rpc import error_details_pb2
from interop_support import (HIDDEN, PATIENCE, SPECIAL, SPECIAL_SHOWN,
                             ServerTest, detail, texts, unpacked, zeros)

Code = grpc.StatusCode
POISON = "!"  # a text with it fails on the device
TOKEN = "a-token-of-the-tests"


class StatusTest(ServerTest):
    model = f"hidden_size:{HIDDEN},poison_token:{3 + ord(POISON)}"

    def assert_told_in_full(self, refusal):
        """Every number of the message is in the metadata; no retry helps."""
        self.assertIsNone(refusal.pause)
        if refusal.code is Code.INTERNAL:
            self.assertIn("error_id", refusal.info.metadata)
            return
        for number in re.findall(r"\d+", refusal.message):
            self.assertIn(number, refusal.info.metadata.values(),
                          refusal.message)
        if refusal.code is Code.INVALID_ARGUMENT:
            self.assertTrue(detail(
                refusal.status, error_details_pb2.BadRequest).field_violations)

    def assert_same_in_a_stream(self, request, refusal):
        """EmbedStream answers with the status that Embed returns."""
        [answer] = self.stub.EmbedStream(iter([request]), timeout=PATIENCE)
        self.assertEqual(answer.request_id, request.request_id)
        self.assertEqual(len(answer.embeddings), 0)
        if refusal.code is Code.INTERNAL:  # each has its own error_id
            self.assertEqual(answer.error.code, refusal.status.code)
        else:
            self.assertEqual(unpacked(answer.error), unpacked(refusal.status))

    def test_status_code_and_message_arrive_with_every_number(self):
        options = encoder_pb2.EmbedOptions
        ids = encoder_pb2.Input(tokens=encoder_pb2.TokenIds(ids=[1, 300]))
        invalid, missing = Code.INVALID_ARGUMENT, Code.NOT_FOUND
        for request, code, reason, metadata in (
                (texts(), invalid, "NO_INPUTS", {}),
                (texts("fine", ""), invalid, "EMPTY_INPUT",
                 {"input_index": "1"}),
                (texts("x" * 300), invalid, "INPUT_TOO_LONG",
                 {"input_index": "0", "token_count": "302",
                  "max_tokens": "256"}),
                (texts(*"x" * 1025), invalid, "TOO_MANY_INPUTS",
                 {"count": "1025", "limit": "1024"}),
                (encoder_pb2.EmbedRequest(inputs=[ids]), invalid,
                 "TOKEN_ID_OUT_OF_RANGE",
                 {"input_index": "0", "index": "1", "id": "300",
                  "limit": "259"}),
                (texts("x", options=options(dimensions=HIDDEN + 1)), invalid,
                 "INVALID_OPTION", {"value": "65", "limit": "64"}),
                (texts("x", model="other"), missing, "MODEL_NOT_FOUND",
                 {"model": "other", "available": "fake"}),
                (texts("x", options=options(prompt_name="other")), missing,
                 "PROMPT_NOT_FOUND", {"prompt": "other"}),
                (texts(POISON), Code.INTERNAL, "DEVICE_FAULT", {}),
                (texts("throw"), Code.INTERNAL, "INTERNAL_FAULT", {})):
            with self.subTest(reason):
                request.request_id = "one"
                refusal = self.refusal(self.stub.Embed, request)
                self.assert_reason(refusal, code, reason, **metadata)
                self.assert_told_in_full(refusal)
                self.assert_same_in_a_stream(request, refusal)
                if reason == "INPUT_TOO_LONG":  # as client/examples shows it
                    self.assertTrue(refusal.message.startswith(
                        "inputs[0] has 302 tokens; this model takes at most "
                        "256: "), refusal.message)

    def test_special_status_message_shows_the_name_that_was_sent(self):
        """By each method, unchanged but for what is escaped."""
        for name, shown in ((SPECIAL, SPECIAL_SHOWN), ("100%", "100%"),
                            ("%41 %e2%98%ba", "%41 %e2%98%ba"), (" ", " "),
                            ('"', '\\"'), ("\\t", "\\\\t")):
            inputs = [encoder_pb2.Input(text="x")]
            for call, request in (
                    (self.stub.Embed, encoder_pb2.EmbedRequest(inputs=inputs)),
                    (self.stub.Encode,
                     encoder_pb2.EncodeRequest(inputs=inputs)),
                    (self.stub.Tokenize,
                     encoder_pb2.TokenizeRequest(inputs=inputs)),
                    (self.stub.GetModel, encoder_pb2.GetModelRequest()),
                    (self.stub.InspectPositions,
                     encoder_pb2.InspectPositionsRequest())):
                with self.subTest(name=name, request=type(request).__name__):
                    request.model = name
                    refusal = self.refusal(call, request)
                    self.assert_reason(refusal, Code.NOT_FOUND,
                                       "MODEL_NOT_FOUND", model=shown)
                    self.assertIn(f"'{shown}'", refusal.message)
            request = texts("x", model=name, request_id="one")
            self.assert_same_in_a_stream(
                request, self.refusal(self.stub.Embed, request))

    def test_a_long_name_is_shown_by_its_first_64_bytes(self):
        for name, shown in (("x" * 64, "x" * 64), ("x" * 65, "x" * 64 + "..."),
                            ("\u263a" * 100, "\u263a" * 21 + "...")):
            for request, reason, key in (
                    (texts("x", model=name), "MODEL_NOT_FOUND", "model"),
                    (texts("x", options=encoder_pb2.EmbedOptions(
                        prompt_name=name)), "PROMPT_NOT_FOUND", "prompt")):
                refusal = self.refusal(self.stub.Embed, request)
                self.assert_reason(refusal, Code.NOT_FOUND, reason,
                                   **{key: shown})
                self.assertIn(f"'{shown}'", refusal.message)


class CredentialsTest(ServerTest):
    """Bearer tokens over TLS, by gRPC's own credentials."""

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory()))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=encoderd",
             "-addext", "subjectAltName=DNS:localhost", "-keyout",
             folder / "key", "-out", folder / "certificate"],
            check=True, capture_output=True)
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        (folder / "tokens").write_text(f"test {digest}\n", encoding="utf-8")
        cls.flags = (f"--tls_certificate_file={folder}/certificate",
                     f"--tls_key_file={folder}/key",
                     f"--bearer_token_file={folder}/tokens")
        cls.tls = grpc.ssl_channel_credentials(
            (folder / "certificate").read_bytes())
        super().setUpClass()

    def stub_with(self, credentials):
        return encoder_pb2_grpc.EncoderStub(self.dial(credentials=credentials))

    def assert_all_methods_work(self, stub, **options):
        self.assert_served(stub, **options)
        [answer] = stub.EmbedStream(iter([zeros(8, "one")]), timeout=PATIENCE,
                                    **options)
        self.assertEqual(answer.request_id, "one")

    def test_oauth2_auth_token_of_the_channel_is_taken(self):
        self.assert_all_methods_work(self.stub_with(
            grpc.composite_channel_credentials(
                self.tls, grpc.access_token_call_credentials(TOKEN))))

    def test_per_rpc_creds_are_asked_for_in_each_call(self):
        stub = self.stub_with(self.tls)
        token = grpc.access_token_call_credentials(TOKEN)
        self.assert_all_methods_work(stub, credentials=token)
        other = grpc.access_token_call_credentials("other")
        for options, reason in (({}, "BEARER_TOKEN_MISSING"),
                                ({"credentials": other},
                                 "BEARER_TOKEN_UNKNOWN")):
            for call, request in ((stub.Embed, texts("x")),
                                  (stub.EmbedStream, iter([texts("x")]))):
                self.assert_reason(self.refusal(call, request, **options),
                                   Code.UNAUTHENTICATED, reason)
        self.assert_all_methods_work(stub, credentials=token)


if __name__ == "__main__":
    interop_support.main()
