#!/usr/bin/env python3
"""A server's certificate, replaced again and again under load: no call fails.

    rotations.py --programs=build/dev/bin 100

Callers in closed loops, some that reconnect for each call and some that
keep their connection, and one stream that is open over all rounds; the next
round begins when the new certificate is served and every caller has had an
answer since. Prints one line; exits with 1 where a call failed, a caller had no
answer between two rounds, or a certificate was served more than a second
late."""

import argparse
import contextlib
import functools
import pathlib
import queue
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

import encoderd
import grpc
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc

ROOT = pathlib.Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
from callers import Callers  # noqa: E402  after the path
from server_process import Server, eventually  # noqa: E402

CALLERS = 4  # half of them keep their connection
NAMES = ("server", "server2")


REFRESH = 2  # seconds: the server looks each second, and believes two looks


def make(folder):
    """A folder for each certificate, and a link to the one in use."""
    subprocess.run([ROOT / "tests/support/make_certificates.sh", folder],
                   check=True)
    for name in NAMES:
        (folder / name).mkdir()
        for end in ("pem", "key"):
            shutil.copy(folder / f"{name}.{end}", folder / name / f"tls.{end}")


def replace(folder, name):
    """As Kubernetes does: one rename exchanges certificate and key."""
    (folder / "next").symlink_to(name)
    (folder / "next").rename(folder / "data")


@contextlib.contextmanager
def connected(address, ca_file, keep):
    """A call over a kept connection, or over a new one each time."""
    def client():
        return encoderd.Client(address, ca_file=ca_file, timeout=60)

    def call():
        with client() as new:
            new.embed(["x"])

    if keep:
        with client() as kept:
            yield lambda: kept.embed(["x"])
    else:
        yield call


def each_answered(callers):
    """Every caller is answered once more; a call that failed ends the wait."""
    before = callers.answered()
    eventually(lambda: callers.lost or all(
        now > then for then, now in zip(before, callers.answered())),
        "an answer to every caller")


class OpenStream:
    """An EmbedStream: it ends with the connection that it began on."""

    def __init__(self, address, ca_file):
        self._channel = grpc.secure_channel(
            address, grpc.ssl_channel_credentials(ca_file.read_bytes()))
        self._requests = queue.SimpleQueue()
        self._answers = encoder_pb2_grpc.EncoderStub(
            self._channel).EmbedStream(iter(self._requests.get, None))

    def ask(self):
        self._requests.put(encoder_pb2.EmbedRequest(
            inputs=[encoder_pb2.Input(text="x")], request_id="x"))
        assert len(next(self._answers).embeddings) == 1

    def close(self):
        self._requests.put(None)
        assert not list(self._answers)
        self._channel.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path,
                        help="folder of encoderd_fake_server")
    parser.add_argument("rounds", type=int)
    options = parser.parse_args()
    seconds = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder)
        replace(folder, "server")
        with Server(options.programs / "encoderd_fake_server",
                    "m=hidden_size:8",
                    f"--tls_certificate_file={folder}/data/tls.pem",
                    f"--tls_key_file={folder}/data/tls.key") as server, \
                Callers([functools.partial(
                    connected, server.address, folder / "ca.pem", i % 2 == 0)
                    for i in range(CALLERS)]) as callers:
            stream = OpenStream(server.address, folder / "ca.pem")
            for i in range(options.rounds):
                each_answered(callers)
                name = NAMES[(i + 1) % 2]
                wanted = (folder / f"{name}.pem").read_text().strip()
                replace(folder, name)
                begun = time.monotonic()
                eventually(lambda w=wanted: ssl.get_server_certificate(
                    ("127.0.0.1", server.grpc)).strip() == w,
                    "the new certificate")
                seconds.append(time.monotonic() - begun)
                stream.ask()
            each_answered(callers)
            stream.close()
    for failure, times in callers.lost.most_common(10):
        print(f"{times} x {failure}", file=sys.stderr)
    print(f"{options.rounds} rotations, {sum(callers.answered())} calls "
          f"answered, {sum(callers.lost.values())} failed; served after "
          f"{statistics.median(seconds):.1f} s, at most {max(seconds):.1f} s")
    return 1 if callers.lost or max(seconds) > REFRESH + 1 else 0


if __name__ == "__main__":
    sys.exit(main())
