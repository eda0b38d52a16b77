#!/usr/bin/env python3
"""gRPC's own list of interoperability cases (its interop-test-descriptions),
mapped to encoderd.v1, by a client of another language and release.

A case keeps its procedure, its sizes in bytes and what the client asserts:
"EmptyCall" is ListModels, "UnaryCall" is Encode or Embed, "FullDuplexCall" is
EmbedStream. Where encoderd promises something else (server/docs/errors.md), that
is asserted: it rejects compressed messages, and it echoes neither metadata nor
statuses, so each error is caused instead. Short forms: 100 of 1000 calls of
concurrent_large_unary; 30 iterations of a soak, without a limit on their time.
NOT_OFFERED has what does not map, with the reasons. interop_status_test.py has
the cases about errors and credentials, interop_limits_test.py what the list only
plans.

    interop_test.py --server=build/dev/bin/encoderd_fake_server
"""

import unittest

import grpc
import interop_status_test
import interop_support
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from google.protobuf import wrappers_pb2
from interop_support import (ENCODER, HIDDEN, LARGE, LARGE_ANSWER, MAX_LEN,
                             PATIENCE, ServerTest, large, states, texts,
                             vectors, zeros)

Code = grpc.StatusCode
OFFERED = """empty_unary large_unary client_compressed_unary
    server_compressed_unary client_compressed_streaming server_streaming
    ping_pong empty_stream oauth2_auth_token per_rpc_creds custom_metadata
    status_code_and_message special_status_message unimplemented_method
    unimplemented_service cancel_after_begin cancel_after_first_response
    timeout_on_sleeping_server concurrent_large_unary rpc_soak
    channel_soak""".split()
NOT_OFFERED = {
    "client_streaming": "no method answers a stream by one message",
    "server_compressed_streaming": "answers are never compressed",
    "cacheable_unary": "no answer may be cached",
    "compute_engine_creds": "Google's credentials",
    "jwt_token_creds": "Google's credentials",
    "google_default_credentials": "Google's credentials",
    "compute_engine_channel_credentials": "Google's credentials",
    "orca_per_rpc": "/metrics has the load; answers do not",
    "orca_oob": "/metrics has the load; no method reports it",
    "max_concurrent_streams_connection_scaling": "a client's own feature",
    "long_lived_channel": "its calls are minutes apart",
}
ECHOED = (("x-grpc-test-echo-initial", "test_initial_metadata_value"),
          ("x-grpc-test-echo-trailing-bin", b"\xab\xab\xab"))


class ListTest(unittest.TestCase):
    def test_each_case_of_the_list_has_a_test_or_a_reason(self):
        tests = [name for kind in (UnaryTest, StreamTest,
                                   interop_status_test.StatusTest,
                                   interop_status_test.CredentialsTest)
                 for name in dir(kind) if name.startswith("test_")]
        for case in OFFERED:
            with self.subTest(case):
                self.assertEqual(1, sum(name.startswith(f"test_{case}_")
                                        for name in tests))
        self.assertFalse(set(OFFERED) & set(NOT_OFFERED))


class UnaryTest(ServerTest):
    # Room for the texts of all calls of concurrent_large_unary.
    flags = ("--max_queue_tokens=67108864",)

    def test_empty_unary_is_a_message_of_no_bytes(self):
        request = encoder_pb2.ListModelsRequest()
        self.assertEqual(request.SerializeToString(), b"")
        [model] = self.stub.ListModels(request, timeout=PATIENCE).models
        self.assertEqual(model.name, "fake")
        self.assertEqual(model, self.stub.GetModel(
            encoder_pb2.GetModelRequest(), timeout=PATIENCE))

    def test_large_unary_is_answered_in_full(self):
        request = large()
        self.assertEqual(sum(len(one.text) for one in request.inputs), LARGE)
        answer = self.stub.Encode(request, timeout=PATIENCE)
        self.assertEqual([len(packed) for packed in states(answer)],
                         [MAX_LEN * HIDDEN * 4] * 5)
        self.assertGreater(answer.ByteSize(), LARGE_ANSWER)
        self.assertEqual(sum(state.token_count for state in answer.states),
                         LARGE + 5 * 2)
        answer = self.stub.Embed(zeros(LARGE), timeout=PATIENCE)
        self.assertEqual(answer.embeddings[0].token_count, LARGE + 2)
        self.assertTrue(answer.embeddings[0].truncated)

    def test_client_compressed_unary_is_refused_and_the_next_call_is_fine(self):
        expected = states(self.stub.Encode(large(), timeout=PATIENCE))
        for how in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            with self.subTest(how):
                self.assert_grpc_refuses(
                    self.refusal(self.stub.Encode, large(), compression=how),
                    Code.UNIMPLEMENTED)
                self.assertEqual(expected, states(self.stub.Encode(
                    large(), timeout=PATIENCE)))

    def test_server_compressed_unary_is_plain_for_who_takes_compression(self):
        """A client without algorithms fails on a compressed answer."""
        expected = states(self.stub.Encode(large(), timeout=PATIENCE))
        for algorithms in (1, 7):  # identity; with deflate and gzip
            stub = encoder_pb2_grpc.EncoderStub(self.dial(
                ("grpc.compression_enabled_algorithms_bitset", algorithms)))
            self.assertEqual(expected, states(stub.Encode(
                large(), timeout=PATIENCE)))

    def test_custom_metadata_changes_no_answer(self):
        expected = vectors(self.stub.Embed(zeros(LARGE), timeout=PATIENCE))
        many = (*ECHOED, ("x-twice", "a"), ("x-twice", "b"), ("x-empty", ""),
                ("x-empty-bin", b""), ("x-bytes-bin", bytes(range(256))),
                ("x-twice-bin", b"\0,\0"), ("x-twice-bin", b","))
        for metadata in (ECHOED, many):
            self.assertEqual(expected, vectors(self.stub.Embed(
                zeros(LARGE), metadata=metadata, timeout=PATIENCE)))
            talk = self.talk(metadata=metadata)
            talk.send(zeros(LARGE, "one"))
            talk.half_close()
            self.assertEqual([expected], [vectors(one) for one in talk.call])
            self.assertEqual(talk.call.code(), Code.OK)
            self.assert_reason(
                self.refusal(self.stub.Embed, texts(), metadata=metadata),
                Code.INVALID_ARGUMENT, "NO_INPUTS")

    def assert_unimplemented(self, path):
        refusal = self.refusal(self.channel.unary_unary(path), b"")
        self.assert_grpc_refuses(refusal, Code.UNIMPLEMENTED)
        self.assertEqual(refusal.message, "")
        self.assert_served()

    def test_unimplemented_method_has_that_code_and_no_message(self):
        self.assert_unimplemented(ENCODER + "UnimplementedCall")

    def test_unimplemented_service_has_that_code_and_no_message(self):
        for service in ("encoderd.v1.Unimplemented", "encoderd.v2.Encoder",
                        "grpc.testing.UnimplementedService"):
            self.assert_unimplemented(f"/{service}/UnimplementedCall")

    def test_concurrent_large_unary_are_all_answered(self):
        expected = states(self.stub.Encode(large(), timeout=PATIENCE))
        calls = [self.stub.Encode.future(large(), timeout=PATIENCE)
                 for _ in range(100)]
        for call in calls:
            self.assertEqual(states(call.result()), expected)
        self.wait_until("encoderd_requests_in_flight", 0)

    def test_rpc_soak_on_one_channel_gives_the_same_bits(self):
        answers = {tuple(states(self.stub.Encode(large(), timeout=PATIENCE)))
                   for _ in range(30)}
        self.assertEqual(len(answers), 1)
        self.assertEqual(self.sample("encoderd_connections"), 1)

    def test_channel_soak_leaves_no_connection(self):
        answers = set()
        for _ in range(30):
            with self.dial() as channel:
                answers.add(tuple(states(encoder_pb2_grpc.EncoderStub(
                    channel).Encode(large(), timeout=PATIENCE))))
        self.assertEqual(len(answers), 1)
        self.wait_until("encoderd_connections", 0)


class StreamTest(ServerTest):
    def assert_canceled(self, talk):
        talk.call.cancel()
        self.assertEqual(talk.call.code(), Code.CANCELLED)
        self.wait_until("encoderd_streams", 0)
        self.assert_served()

    def test_ping_pong_answers_each_request_before_the_next_is_sent(self):
        talk = self.talk()
        for size in (27182, 8, 1828, 45904):
            talk.send(zeros(size, str(size)))
            answer = next(talk.call)
            self.assertEqual(answer.request_id, str(size))
            [embedding] = answer.embeddings
            self.assertEqual(embedding.token_count, size + 2)
            self.assertEqual(embedding.truncated, size + 2 > MAX_LEN)
            self.assertEqual(len(embedding.packed), HIDDEN * 4)
        talk.half_close()
        self.assertEqual(list(talk.call), [])
        self.assertEqual(talk.call.code(), Code.OK)

    def test_empty_stream_ends_well(self):
        talk = self.talk()
        talk.half_close()
        self.assertEqual(list(talk.call), [])
        self.assertEqual(talk.call.code(), Code.OK)

    def test_client_compressed_streaming_is_refused_and_the_next_is_fine(self):
        for how in (grpc.Compression.Gzip, grpc.Compression.Deflate):
            with self.subTest(how):
                self.assert_grpc_refuses(
                    self.refusal(self.stub.EmbedStream,
                                 iter([zeros(27182, "one")]), compression=how),
                    Code.UNIMPLEMENTED)
                [answer] = self.stub.EmbedStream(
                    iter([zeros(45904, "two")]), timeout=PATIENCE)
                self.assertEqual(answer.request_id, "two")

    def test_server_streaming_is_a_watch_of_health(self):
        """No method of encoderd.v1 streams its answers alone."""
        watch = self.channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            wrappers_pb2.StringValue.SerializeToString)
        call = watch(wrappers_pb2.StringValue(value="encoderd.v1.Encoder"),
                     timeout=PATIENCE)
        self.assertEqual(next(call), b"\x08\x01")  # SERVING
        call.cancel()
        self.assertEqual(call.code(), Code.CANCELLED)
        self.assert_served()

    def test_cancel_after_begin_ends_the_call_on_both_sides(self):
        talk = self.talk()
        self.wait_until("encoderd_streams", 1)
        self.assert_canceled(talk)

    def test_cancel_after_first_response_ends_the_call_on_both_sides(self):
        talk = self.talk()
        talk.send(zeros(27182, "one"))
        self.assertEqual(next(talk.call).request_id, "one")
        self.assert_canceled(talk)

    def test_timeout_on_sleeping_server_is_deadline_exceeded(self):
        """Without a half-close the server never ends the call."""
        for seconds in (0.001, 0.5):
            talk = self.talk(timeout=seconds)
            talk.send(zeros(27182, "one"))
            with self.assertRaises(grpc.RpcError):
                for _ in talk.call:
                    pass
            self.assertEqual(talk.call.code(), Code.DEADLINE_EXCEEDED)
        self.wait_until("encoderd_streams", 0)
        self.assert_served()


if __name__ == "__main__":
    interop_support.main()
