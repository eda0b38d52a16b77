"""What the files of bounds.py share: the table of bounds, the server, calls."""

import contextlib
import os
import pathlib
import sys
import time

import grpc
from encoderd.v1 import encoder_pb2
from google.protobuf import wrappers_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import (  # noqa: E402, F401  after the path
    Server, eventually, free_port, get)

EMBED = "/encoderd.v1.Encoder/Embed"
ROUNDS = 10
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"  # HealthCheckResponse
BOUNDS = {}


def bound(limit, unit, what):
    """What a function's figures may be at most."""
    def take(function):
        BOUNDS[function.__name__] = (function, limit, unit, what)
        return function
    return take


def request(*texts):
    return encoder_pb2.EmbedRequest(
        inputs=[encoder_pb2.Input(text=text) for text in texts])


def plain(address, *options):
    """Its own connection, whose calls are made once."""
    return grpc.insecure_channel(address, [
        ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0),
        *options])


def check(channel, timeout=10):
    call = channel.unary_unary("/grpc.health.v1.Health/Check",
                               wrappers_pb2.StringValue.SerializeToString)
    return call(wrappers_pb2.StringValue(), timeout=timeout)


def watch(channel):
    return channel.unary_stream(
        "/grpc.health.v1.Health/Watch",
        wrappers_pb2.StringValue.SerializeToString)(wrappers_pb2.StringValue())


class Fake(Server):
    def __init__(self, programs, settings, *flags, **more):
        super().__init__(programs / "encoderd_fake_server", f"m={settings}",
                         *flags, **more)


def wait_for_admitted(server, tokens):
    eventually(lambda: f'encoderd_admitted_tokens{{model="m"}} {tokens}\n'
               in server.metrics(), f"{tokens} tokens in the queue")


def seconds_to_end(process, patience=60):
    begun = time.monotonic()
    code = process.wait(patience)
    return time.monotonic() - begun, code


class Real(Server):
    """encoderd with the model of ENCODERD_TEST_MODEL, or of `folder`."""

    def __init__(self, programs, *flags, folder=None, **more):
        super().__init__(programs / "encoderd",
                         f"m={folder or os.environ['ENCODERD_TEST_MODEL']}",
                         *flags, **more)


def p99(seconds):
    return sorted(seconds)[len(seconds) * 99 // 100]


def seconds_of(count, call, pause=0):
    """How long each of `count` calls took, with this many seconds between two."""
    took = []
    for _ in range(count):
        time.sleep(pause)
        begun = time.monotonic()
        call()
        took.append(time.monotonic() - begun)
    return took


def status_of(process, field):
    """A size of /proc/PID/status, in MB."""
    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    [line] = [line for line in text.splitlines()
              if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024 / 1e6


def cpu_seconds_of(process):
    """What the process has used so far, however busy the machine is."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def peak(process):
    """A list that holds, at the end, how far the memory rose meanwhile, in
    MB."""
    pathlib.Path(f"/proc/{process.pid}/clear_refs").write_text("5")
    before = status_of(process, "VmHWM")
    grown = []
    yield grown
    grown.append(status_of(process, "VmHWM") - before)
