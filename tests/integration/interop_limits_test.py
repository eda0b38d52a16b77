#!/usr/bin/env python3
"""What gRPC's list of interoperability cases only plans, and its neighbors:
limits and ends of calls, as server/docs/errors.md has them, by a client of
another language and release.

Not here: which interval of keepalive a server accepts. Pings that are too
frequent end a connection only after some, and a test waits for no time.

    interop_limits_test.py --server=build/dev/bin/encoderd_fake_server
"""

import socket
import struct

import grpc
import interop_support
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from interop_support import (ENCODER, HIDDEN, LIMIT, MAX_LEN, PATIENCE, ROOT,
                             Refusal, ServerTest, eventually, large, texts,
                             zeros)

Code = grpc.StatusCode
STREAMS = 8  # calls in flight per connection
HEADERS = 16 << 10  # bytes of headers
CONFIG = ROOT / "client/service_config.json"


SETTINGS, PING, GOAWAY = 4, 6, 7  # frames of HTTP/2
ACK = 1


def frame(kind, payload=b""):
    return (struct.pack(">I", len(payload))[1:] + bytes([kind, 0])
            + bytes(4) + payload)


def read_frame(reader):
    """Its kind, flags and payload."""
    head = reader.read(9)
    return head[3], head[4], reader.read(int.from_bytes(head[:3], "big"))


def of_size(size, **fields):
    """A request of Embed that has this many bytes on the wire."""
    request = zeros(size, **fields)
    return zeros(size - (request.ByteSize() - size), **fields)


class LimitsTest(ServerTest):
    flags = (f"--max_message_bytes={LIMIT}", "--max_queue_tokens=4194304",
             f"--max_streams_per_connection={STREAMS}")

    def test_a_message_of_the_limit_is_answered_and_one_byte_more_refused(self):
        request = of_size(LIMIT)
        self.assertEqual(request.ByteSize(), LIMIT)
        [embedding] = self.stub.Embed(request, timeout=PATIENCE).embeddings
        self.assertEqual(embedding.token_count, len(request.inputs[0].text) + 2)
        self.assert_grpc_refuses(
            self.refusal(self.stub.Embed, of_size(LIMIT + 1)),
            Code.RESOURCE_EXHAUSTED, "larger than max")
        self.assert_served()

    def test_a_message_above_the_limit_ends_a_stream(self):
        talk = self.talk()
        talk.send(of_size(LIMIT, request_id="one"))
        self.assertEqual(next(talk.call).request_id, "one")
        talk.send(of_size(LIMIT + 1, request_id="two"))
        with self.assertRaises(grpc.RpcError):
            next(talk.call)
        self.assert_grpc_refuses(Refusal(talk.call), Code.RESOURCE_EXHAUSTED,
                                 "larger than max")
        self.assert_served()

    def test_an_answer_above_the_limit_is_refused_with_its_size(self):
        refusal = self.refusal(self.stub.Encode, large(inputs=20))
        self.assert_reason(refusal, Code.INVALID_ARGUMENT, "REQUEST_TOO_LARGE",
                           limit=str(LIMIT))
        self.assertGreaterEqual(int(refusal.info.metadata["reply_bytes"]),
                                20 * MAX_LEN * HIDDEN * 4)
        self.assert_served()

    def test_an_answer_above_the_callers_limit_is_the_callers_error(self):
        stub = encoder_pb2_grpc.EncoderStub(self.dial(
            ("grpc.max_receive_message_length", 1000)))
        self.assert_grpc_refuses(self.refusal(stub.Encode, large()),
                                 Code.RESOURCE_EXHAUSTED, "larger than max")
        self.assert_served(stub)

    def test_metadata_up_to_its_limit_passes(self):
        self.assert_served(metadata=(("x-long", "x" * (HEADERS - 1024)),))

    def test_metadata_above_its_limit_ends_its_connection_and_no_other(self):
        """The caller's next call may be on that connection, too: the shipped
        service config tries it again."""
        stub = encoder_pb2_grpc.EncoderStub(self.dial(
            ("grpc.enable_retries", 1),
            ("grpc.service_config", CONFIG.read_text(encoding="utf-8"))))
        same, other = self.talk(stub), self.talk()
        for talk in (same, other):
            talk.send(zeros(8, "one"))
            next(talk.call)
        long = self.talk(stub, metadata=(("x-long", "x" * HEADERS),))
        for talk in (long, same):
            with self.assertRaises(grpc.RpcError):
                next(talk.call)
            refusal = Refusal(talk.call)
            # UNAVAILABLE: it was still sending when the connection ended.
            self.assertIn(refusal.code,
                          (Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE))
            self.assertIsNone(refusal.status)
        self.assert_served(stub)
        other.send(zeros(8, "two"))
        self.assertEqual(next(other.call).request_id, "two")

    def test_more_calls_than_a_connection_takes_wait_for_their_turn(self):
        calls = [self.stub.Embed.future(texts("x" * (1 + i % 200)),
                                        timeout=PATIENCE)
                 for i in range(20 * STREAMS)]
        for i, call in enumerate(calls):
            [embedding] = call.result().embeddings
            self.assertEqual(embedding.token_count, 3 + i % 200)
        self.assertEqual(self.sample("encoderd_connections"), 1)

    def test_a_stream_without_requests_holds_its_place_only_until_its_end(self):
        talks = [self.talk() for _ in range(STREAMS)]
        self.wait_until("encoderd_streams", STREAMS)
        waiting = self.stub.Embed.future(texts("next"), timeout=PATIENCE)
        talks[0].half_close()
        self.assertEqual(waiting.result().embeddings[0].token_count, 6)
        self.assertEqual(talks[0].call.code(), Code.OK)


class EndsTest(ServerTest):
    def test_a_half_close_before_reading_loses_no_answer(self):
        talk = self.talk()
        ids = [str(i) for i in range(16)]
        before = self.sample("encoderd_requests_total", method="EmbedStream")
        talk.send(*(zeros(1000, one) for one in ids))
        talk.half_close()
        self.wait_until("encoderd_requests_total", before + len(ids),
                        method="EmbedStream")
        self.assertEqual(sorted(answer.request_id for answer in talk.call),
                         sorted(ids))
        self.assertEqual(talk.call.code(), Code.OK)

    def test_a_deadline_in_the_past_is_exceeded_at_once(self):
        for call, request in ((self.stub.Embed, texts("x")),
                              (self.stub.EmbedStream,
                               iter([zeros(8, "one")]))):
            self.assertEqual(self.refusal(call, request, timeout=-1).code,
                             Code.DEADLINE_EXCEEDED)
        self.assert_served()

    def test_bytes_that_are_no_message_end_a_stream_after_what_came_first(self):
        call = self.channel.stream_stream(ENCODER + "EmbedStream")(
            iter([zeros(8, "one").SerializeToString(), b"\xff" * 11]),
            timeout=PATIENCE)
        self.assertEqual(encoder_pb2.EmbedResponse.FromString(
            next(call)).request_id, "one")
        with self.assertRaises(grpc.RpcError):
            next(call)
        self.assert_reason(self.checked(Refusal(call)), Code.INVALID_ARGUMENT,
                           "MALFORMED_MESSAGE", request_index="1")
        self.assert_served()

    def test_a_ping_is_answered(self):
        """As keepalive sends it, without a call."""
        with socket.create_connection(("127.0.0.1", self.server.grpc),
                                      timeout=PATIENCE) as peer:
            peer.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                         + frame(SETTINGS))
            reader = peer.makefile("rb")
            for payload in (b"ping one", b"ping two"):
                peer.sendall(frame(PING, payload))
                kind = None
                while kind != PING:
                    kind, flags, found = read_frame(reader)
                    self.assertNotEqual(kind, GOAWAY, found)
                self.assertEqual((flags, found), (ACK, payload))


class BusyTest(ServerTest):
    """A device that is busy without end with the first call, so that whatever
    comes later waits."""

    model = "stuck_after_batches:1"
    flags = ("--max_queue_tokens=4096", "--drain_timeout=0")

    @classmethod
    def setUpClass(cls):
        pass  # each test has its own server

    def setUp(self):
        self.server = self.enterContext(self.start())
        super().setUp()
        first = self.stub.Embed.future(texts("x"), timeout=PATIENCE)
        self.addCleanup(first.cancel)
        self.wait_until("encoderd_stage_duration_seconds_count", 1,
                        stage="batch")

    def test_a_full_queue_names_its_pause_in_two_ways(self):
        request = texts(*["x" * 250] * 15, request_id="one")
        waiting = self.stub.Embed.future(request, timeout=PATIENCE)
        self.addCleanup(waiting.cancel)
        self.wait_until("encoderd_queue_inputs", 15)
        refusal = self.refusal(self.stub.Embed, request)
        self.assert_reason(refusal, Code.RESOURCE_EXHAUSTED, "QUEUE_FULL",
                           limit="4096")
        self.assertIn("queued_tokens", refusal.info.metadata)
        self.assertIn("request_tokens", refusal.info.metadata)
        self.assertGreaterEqual(refusal.pause, 100)
        self.assertLessEqual(refusal.pause, 5000)
        self.assertEqual(refusal.trailers["grpc-retry-pushback-ms"],
                         str(refusal.pause))
        # A stream is told in place, and goes on.
        talk = self.talk()
        talk.send(request)
        self.assertEqual(next(talk.call).error.code, refusal.status.code)
        talk.half_close()
        self.assertEqual(list(talk.call), [])
        self.assertEqual(talk.call.code(), Code.OK)
        self.assertNotIn("grpc-retry-pushback-ms",
                         dict(talk.call.trailing_metadata()))

    def test_a_deadline_ends_what_is_waiting_uncomputed(self):
        queued, seconds = False, 0.5
        while not queued and seconds < PATIENCE:  # on a slow machine: longer
            call = self.stub.Embed.future(texts("x"), timeout=seconds)
            while not queued and not call.done():
                queued = self.sample("encoderd_queue_inputs") == 1
            refusal = self.refusal(call.result)
            self.assertEqual(refusal.code, Code.DEADLINE_EXCEEDED)
            seconds *= 2
        self.assertTrue(queued)
        eventually(lambda: self.sample(
            "encoderd_cancelled_total", stage="queue") >= 1, "left the queue")
        self.wait_until("encoderd_queue_inputs", 0)

    def test_a_channel_that_closes_takes_all_its_calls_along(self):
        channel = self.dial()
        stub = encoder_pb2_grpc.EncoderStub(channel)
        calls = [stub.Embed.future(texts("x"), timeout=PATIENCE)
                 for _ in range(100)]
        talks = [self.talk(stub) for _ in range(100)]
        for talk in talks:
            talk.send(texts("x", request_id="one"))
        self.wait_until("encoderd_queue_inputs", 200)
        channel.close()
        for call in (*calls, *(talk.call for talk in talks)):
            self.assertEqual(call.code(), Code.CANCELLED)
        self.wait_until("encoderd_cancelled_total", 200, stage="queue")
        self.wait_until("encoderd_queue_inputs", 0)
        self.wait_until("encoderd_connections", 1)
        [model] = self.stub.ListModels(encoder_pb2.ListModelsRequest(),
                                       timeout=PATIENCE).models
        self.assertEqual(model.name, "fake")


class LoadingTest(ServerTest):
    model = "load_ms:600000"
    wait_for = None

    def test_a_server_that_loads_names_its_pause(self):
        for call, request in ((self.stub.Embed, texts("x")),
                              (self.stub.EmbedStream, iter([texts("x")]))):
            refusal = self.refusal(call, request)
            self.assert_reason(refusal, Code.UNAVAILABLE, "LOADING")
            self.assertEqual(refusal.pause, 500)


if __name__ == "__main__":
    interop_support.main()
