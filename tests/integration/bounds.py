#!/usr/bin/env python3
"""Promises that have a time or a size, measured on a server in a process of its
own: what no test of a change may depend on.

    bounds.py --programs=build/dev/bin            # all, a line each
    bounds.py --programs=build/dev/bin term       # some, by name

Needs the Python client installed. Exits with 1 where a bound is missed."""

import argparse
import contextlib
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import grpc
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from google.protobuf import wrappers_pb2

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import Server, eventually, free_port  # noqa: E402

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
    """A connection of its own, whose calls are made once."""
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


@bound(0.2, "s", "health answers after the process was started")
def start(programs):
    for _ in range(ROUNDS):
        port = free_port()
        begun = time.monotonic()
        process = subprocess.Popen(
            [programs / "encoderd_fake_server", "--model=m=load_ms:500",
             f"--listen=127.0.0.1:{port}", "--http_listen="],
            stderr=subprocess.DEVNULL)
        answer = None
        with plain(f"127.0.0.1:{port}",
                   ("grpc.initial_reconnect_backoff_ms", 20),
                   ("grpc.min_reconnect_backoff_ms", 20),
                   ("grpc.max_reconnect_backoff_ms", 20)) as channel:
            while answer is None and time.monotonic() - begun < 10:
                with contextlib.suppress(grpc.RpcError):
                    answer = check(channel, timeout=1)
                    yield time.monotonic() - begun
            assert answer == NOT_SERVING, answer
            eventually(lambda c=channel: check(c) == SERVING, "SERVING")
        process.terminate()
        process.wait(10)


@bound(2, "s", "TERM while a model loads ends the process")
def term_while_loading(programs):
    for _ in range(ROUNDS):
        with Fake(programs, "load_ms:60000", wait_for=None) as server:
            server.process.terminate()
            took, code = seconds_to_end(server.process)
            assert code == 0, code
            yield took


@bound(0.5, "s", "a second TERM ends a drain")
def second_term(programs):
    for _ in range(3):
        with Fake(programs, "stuck_after_batches:1") as server, \
                plain(server.address) as channel:
            stub = encoder_pb2_grpc.EncoderStub(channel)
            call = stub.Embed.future(request("x"))
            wait_for_admitted(server, 3)
            server.process.terminate()
            server.wait_for("event=draining")
            time.sleep(1.2)  # sooner it is the same wish
            server.process.terminate()
            took, code = seconds_to_end(server.process)
            call.cancel()
            assert code == 4, code
            yield took


@bound(1, "s", "a drain after its longest call, with a watch and a stream open")
def drain(programs):
    for _ in range(3):
        with Fake(programs, "batch_us:1000000") as server, \
                plain(server.address) as channel:
            stub = encoder_pb2_grpc.EncoderStub(channel)
            idle = threading.Event()

            def nothing(event=idle):
                event.wait()
                yield from ()

            stream = stub.EmbedStream(nothing())
            watching = watch(channel)
            next(watching)
            call = stub.Embed.future(request("x"))
            wait_for_admitted(server, 3)
            server.process.terminate()
            assert call.result(60).embeddings
            yield seconds_to_end(server.process)[0]
            idle.set()
            stream.cancel()


@bound(1, "s", "a second process on a port gives up")
def second_process(programs):
    with Fake(programs, "load_ms:0") as server:
        for _ in range(ROUNDS):
            begun = time.monotonic()
            done = subprocess.run(
                [programs / "encoderd_fake_server", "--model=m=load_ms:0",
                 f"--listen={server.address}", "--http_listen="],
                stderr=subprocess.DEVNULL, timeout=60, check=False)
            assert done.returncode == 1, done.returncode
            yield time.monotonic() - begun


@bound(0.1, "s", "a lost device turns health to NOT_SERVING")
def lost_device(programs):
    for _ in range(ROUNDS):
        with Fake(programs, "lost_after_batches:3") as server, \
                plain(server.address) as channel:
            stub = encoder_pb2_grpc.EncoderStub(channel)
            watching = watch(channel)
            assert next(watching) == SERVING
            begun = None
            while begun is None:
                try:
                    stub.Embed(request("x"), timeout=10)
                except grpc.RpcError:
                    begun = time.monotonic()
            assert next(watching) == NOT_SERVING
            yield time.monotonic() - begun
            assert seconds_to_end(server.process)[1] == 3


@bound(0.005, "s", "a full queue refuses (the median of 200)")
def queue_full(programs):
    with Fake(programs, "stuck_after_batches:1", "--max_queue_tokens=64") as server, \
            plain(server.address) as channel:
        stub = encoder_pb2_grpc.EncoderStub(channel)
        calls = [stub.Embed.future(request("x" * 28)) for _ in range(2)]
        wait_for_admitted(server, 60)
        took = []
        for _ in range(200):
            begun = time.monotonic()
            try:
                stub.Embed(request("x" * 28), timeout=10)
                raise AssertionError("admitted")
            except grpc.RpcError as error:
                assert (error.code() is
                        grpc.StatusCode.RESOURCE_EXHAUSTED), error
            took.append(time.monotonic() - begun)
        for call in calls:
            call.cancel()
        server.kill()
        yield sorted(took)[len(took) // 2]


@bound(11, "s", "sockets that say nothing are closed")
def silent_sockets(programs):
    with Fake(programs, "load_ms:0") as server:
        begun = time.monotonic()
        silent = [socket.create_connection(("127.0.0.1", server.grpc))
                  for _ in range(100)]
        for one in silent:
            one.settimeout(60)
            while one.recv(4096):
                pass
            one.close()
        yield time.monotonic() - begun


@bound(3, "s", "a new caller after a flood of connections")
def flood(programs):
    with Fake(programs, "load_ms:0", "--max_connections_per_address=1000",
              files=200) as server, plain(server.address) as old:
        stub = encoder_pb2_grpc.EncoderStub(old)
        stub.Embed(request("x"), timeout=10)
        waiting = [socket.create_connection(("127.0.0.1", server.grpc))
                   for _ in range(400)]
        for _ in range(50):
            stub.Embed(request("x"), timeout=10)
        for one in waiting:
            one.close()
        begun = time.monotonic()
        with plain(server.address) as new:
            encoder_pb2_grpc.EncoderStub(new).Embed(request("x"), timeout=60)
        yield time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path,
                        help="folder of encoderd_fake_server")
    parser.add_argument("bounds", nargs="*", help=", ".join(BOUNDS))
    options = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    missed = 0
    for name in options.bounds or BOUNDS:
        function, limit, unit, what = BOUNDS[name]
        worst = max(function(options.programs))
        missed += worst > limit
        print(f"{what}: at most {limit} {unit}, found {worst:.3g} {unit}"
              f"{'' if worst <= limit else ': MISSED'}", flush=True)
    print(f"{len(options.bounds or BOUNDS)} bounds, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
