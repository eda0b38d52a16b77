#!/usr/bin/env python3
"""Promises that have a time or a size, measured on a server in its own
process: what no test of a change may depend on.

    bounds.py --programs=build/dev/bin            # all, a line each
    bounds.py --programs=build/dev/bin term       # some, by name

Needs the Python client installed, and the model of ENCODERD_TEST_MODEL. Exits
with 1 where a bound is missed."""

import argparse
import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import bounds_load  # noqa: F401  adds its bounds
import bounds_peers  # noqa: F401  adds its bounds
import grpc
from bounds_support import (BOUNDS, NOT_SERVING, ROUNDS, SERVING, Fake, bound,
                            check, eventually, free_port, plain, request,
                            seconds_to_end, wait_for_admitted, watch)
from encoderd.v1 import encoder_pb2_grpc
from raw_http2 import RawHttp2  # on the path by bounds_support


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


WATCH = "/grpc.health.v1.Health/Watch"


def deaf_watches(caller, count):
    """Health watches whose answers have no room to be sent."""
    watches = [caller.call(WATCH) for _ in range(count)]
    for stream in watches:
        caller.send(stream, b"")
        assert caller.wait_for_headers()  # the answer is behind them
    return watches


@bound(1, "s", "TERM ends a server with a watch that reads nothing")
def deaf_watch(programs):
    for _ in range(3):
        with Fake(programs, "load_ms:0") as server, \
                RawHttp2(server.grpc, window=0) as caller:
            deaf_watches(caller, 1)
            server.process.terminate()
            took, code = seconds_to_end(server.process)
            assert code == 0, code
            yield took


@bound(4, "s", "TERM ends a server with 200 watches that read one by one")
def slow_watches(programs):
    with Fake(programs, "load_ms:0") as server, \
            RawHttp2(server.grpc, window=0) as caller:
        watches = deaf_watches(caller, 200)
        left = threading.Event()

        def read_one_by_one():
            with contextlib.suppress(ConnectionError):
                # Each sooner than the server's patience with one ends.
                while watches and not left.wait(0.2):
                    caller.widen(watches.pop())

        reader = threading.Thread(target=read_one_by_one)
        server.process.terminate()
        reader.start()
        took, code = seconds_to_end(server.process)
        left.set()
        reader.join()
        assert code == 0, code
        assert watches, "all had been read"
        yield took


@bound(2.5, "s", "TERM ends a server whose collector of traces never answers")
def silent_collector(programs):
    for _ in range(3):
        with socket.create_server(("127.0.0.1", 0)) as silent, \
                Fake(programs, "max_len:512", "--otlp_endpoint=127.0.0.1:"
                     f"{silent.getsockname()[1]}") as server, \
                plain(server.address) as channel:
            stub = encoder_pb2_grpc.EncoderStub(channel)
            stub.Embed(request("x"), timeout=60)
            connection, _ = silent.accept()  # an export is in progress
            with connection:
                server.process.terminate()
                took, code = seconds_to_end(server.process)
            assert code == 0, code
            yield took


@bound(1, "s", "a model that differs from its SHA256SUMS ends the start, "
       "hashing left out")
def wrong_manifest(programs):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name, "model")
        shutil.copytree(os.environ["ENCODERD_TEST_MODEL"], folder)
        weights = folder / "model.safetensors"
        digests = {path: hashlib.sha256(path.read_bytes()).hexdigest()
                   for path in folder.rglob("*") if path.is_file()}
        digests[weights] = wrong = "0" * 64
        (folder / "SHA256SUMS").write_text("".join(
            f"{digest}  {path.relative_to(folder)}\n"
            for path, digest in digests.items()))
        for _ in range(3):
            begun = time.monotonic()
            hashlib.sha256(weights.read_bytes())
            hashing = time.monotonic() - begun
            begun = time.monotonic()
            done = subprocess.run(
                [programs / "encoderd", f"--model={folder}",
                 "--listen=127.0.0.1:0", "--http_listen="],
                stderr=subprocess.PIPE, text=True, timeout=60, check=False)
            assert done.returncode == 1, done.returncode
            assert wrong in done.stderr, done.stderr
            yield max(time.monotonic() - begun - hashing, 0)


@bound(0.05, "s", "a port closes sooner than --drain_delay after health said so")
def drain_delay(programs):
    delay = 1
    for _ in range(3):
        with Fake(programs, "load_ms:0", f"--drain_delay={delay}s") as server, \
                plain(server.address) as channel:
            watching = watch(channel)
            assert next(watching) == SERVING
            server.process.terminate()
            assert next(watching) == NOT_SERVING
            told = time.monotonic()
            with contextlib.suppress(ConnectionRefusedError):
                while True:
                    socket.create_connection(
                        ("127.0.0.1", server.grpc)).close()
                    time.sleep(0.005)
            yield max(delay - (time.monotonic() - told), 0)
            assert seconds_to_end(server.process)[1] == 0


@bound(1, "s", "a second process on a port gives up")
def second_process(programs):
    with Fake(programs, "load_ms:0") as server:
        for _ in range(ROUNDS):
            begun = time.monotonic()
            done = subprocess.run(
                [programs / "encoderd_fake_server", "--model=m=load_ms:0",
                 f"--listen={server.address}", "--http_listen="],
                stderr=subprocess.DEVNULL, timeout=60, check=False)
            assert done.returncode == 5, done.returncode
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
        print(f"{name}: {what}: at most {limit} {unit}, found {worst:.3g} {unit}"
              f"{'' if worst <= limit else ': MISSED'}", flush=True)
    print(f"{len(options.bounds or BOUNDS)} bounds, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
