"""What the tests of interoperability share: servers with the fake device,
requests of the sizes that gRPC's list gives, and errors as a caller reads them.

They know the contract (proto, server/docs) and nothing of the server's sources.
"""

import argparse
import pathlib
import queue
import re
import sys
import unittest

import grpc
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from google.rpc import error_details_pb2, status_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import PATIENCE, Server, eventually  # noqa: E402

ENCODER = "/encoderd.v1.Encoder/"
HIDDEN = 64  # values of a token's state
MAX_LEN = 256  # the fake model's, one token per byte
LARGE = 271828  # bytes of a large request in gRPC's list ...
LARGE_ANSWER = 314159  # ... and of the answer to it
LIMIT = 1 << 20  # of a message, where a test sets one
# A name with what a status message must carry, and how a message shows it.
SPECIAL = ("\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP "
           "\U0001f608\t\n")
SPECIAL_SHOWN = (r"\t\ntest with whitespace\r\nand Unicode BMP "
                 "\u263a and non-BMP \U0001f608" r"\t\n")
REASONS = {name.removeprefix("ERROR_REASON_")
           for name in encoder_pb2.ErrorReason.keys()}


def texts(*values, **fields):
    """A request of Embed."""
    return encoder_pb2.EmbedRequest(
        inputs=[encoder_pb2.Input(text=value) for value in values], **fields)


def zeros(size, request_id=""):
    """A request of Embed whose one text has this many bytes, all 0; what
    exceeds max_len is cut."""
    return texts("\0" * size, request_id=request_id,
                 options=encoder_pb2.EmbedOptions(
                     truncate=encoder_pb2.TRUNCATE_END, packed=True))


def large(inputs=5):
    """A request of Encode with LARGE bytes of text; with five inputs the answer
    has more than LARGE_ANSWER."""
    sizes = [LARGE // inputs] * inputs
    sizes[0] += LARGE % inputs
    return encoder_pb2.EncodeRequest(
        inputs=[encoder_pb2.Input(text="\0" * size) for size in sizes],
        truncate=encoder_pb2.TRUNCATE_END)


def states(answer):
    return [state.packed for state in answer.states]


def vectors(answer):
    return [(one.packed, one.token_count) for one in answer.embeddings]


def detail(status, kind):
    """The one detail of this type that a google.rpc.Status has, or None."""
    found = [kind.FromString(one.value) for one in status.details
             if one.Is(kind.DESCRIPTOR)]
    assert len(found) <= 1, status
    return found[0] if found else None


def unpacked(status):
    """A google.rpc.Status for comparisons; the bytes of equal maps differ."""
    return (status.code, status.message, len(status.details),
            *(detail(status, kind) for kind in (
                error_details_pb2.ErrorInfo, error_details_pb2.BadRequest,
                error_details_pb2.RetryInfo)))


class Refusal:
    """The error of a call that failed: what gRPC says of it, and the details
    that the server sent along. status: None where it sent none."""

    def __init__(self, error):
        self.code, self.message = error.code(), error.details()
        self.trailers = dict(error.trailing_metadata() or ())
        details = self.trailers.get("grpc-status-details-bin")
        self.status = details and status_pb2.Status.FromString(details)

    @property
    def info(self):
        return detail(self.status, error_details_pb2.ErrorInfo)

    @property
    def pause(self):
        """That of RetryInfo, in milliseconds; None without one."""
        retry = detail(self.status, error_details_pb2.RetryInfo)
        return retry and retry.retry_delay.ToMilliseconds()


class Conversation:
    """An EmbedStream whose requests are sent one by one."""

    def __init__(self, method, **options):
        self._requests = queue.SimpleQueue()
        self.call = method(iter(self._requests.get, None), **options)

    def send(self, *requests):
        for request in requests:
            self._requests.put(request)

    def half_close(self):
        self._requests.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call.cancel()
        self.half_close()  # frees the thread that waits for a request


class ServerTest(unittest.TestCase):
    """Each test has its own channel to the server that its class starts."""

    program = None  # encoderd_fake_server
    model = f"hidden_size:{HIDDEN}"
    flags = ()
    wait_for = "serving"

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(cls.start())

    @classmethod
    def start(cls):
        return Server(cls.program, f"fake={cls.model}", *cls.flags,
                      wait_for=cls.wait_for)

    def setUp(self):
        self.channel = self.dial()
        self.stub = encoder_pb2_grpc.EncoderStub(self.channel)

    def dial(self, *options, credentials=None):
        """A channel with its own connection, whose calls are made once unless
        an option says otherwise."""
        options = list({"grpc.use_local_subchannel_pool": 1,
                        "grpc.enable_retries": 0, **dict(options)}.items())
        if credentials is None:
            channel = grpc.insecure_channel(self.server.address, options)
        else:
            channel = grpc.secure_channel(
                f"localhost:{self.server.grpc}", credentials, options)
        self.addCleanup(channel.close)
        return channel

    def talk(self, stub=None, timeout=PATIENCE, **options):
        return self.enterContext(Conversation(
            (stub or self.stub).EmbedStream, timeout=timeout, **options))

    def sample(self, name, **labels):
        """The sum of the samples of this name and these labels; KeyError where
        the server has no metric of this name, or of these labels."""
        found = []
        for line in self.server.metrics().splitlines():
            match = re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)", line)
            if match and all(f'{key}="{value}"' in (match[1] or "").split(",")
                             for key, value in labels.items()):
                found.append(float(match[2]))
        if not found:
            raise KeyError(f"no metric {name} {labels}")
        return sum(found)

    def wait_until(self, name, value, **labels):
        eventually(lambda: self.sample(name, **labels) == value,
                   f"{name} {labels} {value}")

    def refusal(self, call, *arguments, **options):
        """How a call fails; what every error of the contract has is checked."""
        options.setdefault("timeout", PATIENCE)
        with self.assertRaises(grpc.RpcError) as caught:
            answers = call(*arguments, **options)
            if hasattr(answers, "__next__"):
                for _ in answers:
                    pass
        return self.checked(Refusal(caught.exception))

    def checked(self, refusal):
        if refusal.status is not None:
            self.assertEqual(refusal.status.code, refusal.code.value[0])
            self.assertEqual(refusal.status.message, refusal.message)
            self.assertEqual(refusal.info.domain, "encoderd")
            self.assertIn(refusal.info.reason, REASONS)
        return refusal

    def assert_served(self, stub=None, **options):
        """The next call is fine."""
        answer = (stub or self.stub).Embed(texts("next"), timeout=PATIENCE,
                                           **options)
        self.assertEqual(answer.embeddings[0].token_count, 6)

    def assert_grpc_refuses(self, refusal, code, message=""):
        """gRPC itself failed the call: there is no ErrorInfo."""
        self.assertEqual(refusal.code, code)
        self.assertIn(message, refusal.message)
        self.assertIsNone(refusal.status)

    def assert_reason(self, refusal, code, reason, **metadata):
        self.assertEqual(refusal.code, code)
        self.assertIsNotNone(refusal.status, refusal.message)
        self.assertEqual(refusal.info.reason, reason)
        found = dict(refusal.info.metadata)
        self.assertEqual({**found, **metadata}, found)


def main():
    """Runs the tests of the program that was started."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    options, rest = parser.parse_known_args()
    ServerTest.program = options.server
    unittest.main(module="__main__", argv=sys.argv[:1] + rest)
