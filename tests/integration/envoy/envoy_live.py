#!/usr/bin/env python3
"""deploy/envoy with a real Envoy over two servers with a fake engine: who gets
how many calls, what a kill costs, JSON, TLS.

    envoy_live.py --envoy=PROGRAM --programs=build/dev/bin [--rounds=10]
        [--seconds=60]

The last line printed is the figure; exit code 1 where a promise was broken.
tests/nightly.sh runs it.
"""

import argparse
import base64
import contextlib
import json
import queue
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import grpc
import numpy as np
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc

import proxy
from proxy import Envoy, callers_of
from raw_http2 import RawHttp2
from server_process import Server, eventually, free_port

CALLERS = 32
SHARE = 0.05  # how far from a half a server's share of the calls may be
MODEL = "fake=batch_us:10000"  # so that a kill finds calls in flight
SLOW = "fake=batch_us:50000"
FLAGS = ("--drain_delay=3s", "--drain_timeout=10s")


class Check:
    def __init__(self, options):
        self.options = options
        self.program = f"{options.programs}/encoderd_fake_server"
        self.faults = []

    def expect(self, good, fault):
        if not good:
            self.faults.append(fault)

    def start(self, port, model=MODEL, *flags):
        return Server(self.program, model, *FLAGS, *flags, grpc=port)

    def envoy(self, folder, servers, certificates=None):
        return Envoy(self.options.envoy, folder,
                     [server.grpc for server in servers], certificates)

    def count(self, server):
        found = re.findall(r'^encoderd_requests_total\{code="OK",'
                           r'method="Embed",.*outcome="ok"\} (\d+)',
                           server.metrics(), re.MULTILINE)
        return sum(map(int, found))

    def shares(self, models, seconds):
        """Calls that each of two servers answers in so long."""
        servers = [self.start(0, model) for model in models]
        try:
            with tempfile.TemporaryDirectory() as folder, \
                    self.envoy(folder, servers) as envoy:
                with callers_of(envoy.port, CALLERS) as callers:
                    time.sleep(seconds)
                counts = [self.count(server) for server in servers]
                self.expect(not callers.lost, f"lost: {callers.lost}")
                self.expect(sum(counts) >= sum(callers.answered()) > 0,
                            f"{counts} of {callers.answered()}")
                return counts
        finally:
            for server in servers:
                server.kill()

    def kills(self, rounds):
        """Servers killed in turn, every third one left by TERM instead."""
        servers = [self.start(free_port()) for _ in range(2)]
        try:
            with tempfile.TemporaryDirectory() as folder, \
                    self.envoy(folder, servers) as envoy:
                with callers_of(envoy.port, CALLERS) as callers:
                    for i in range(rounds):
                        time.sleep(1)
                        server = servers[i % 2]
                        if i % 3 == 2:
                            code = server.stop()
                            self.expect(code == 0, f"exit code {code}")
                        else:
                            server.kill()
                        eventually(lambda: envoy.healthy() == 1,
                                   "the loss is noticed")
                        servers[i % 2] = self.start(server.grpc)
                        eventually(lambda: envoy.healthy() == 2,
                                   "the server is used again")
                stats = envoy.stats()
                retried = stats["upstream_rq_retry_success"]
                self.expect(not callers.lost, f"lost: {callers.lost}")
                # Else no kill found a call in flight.
                self.expect(retried > 0, "no call had to be tried again")
                return callers, retried
        finally:
            for server in servers:
                server.kill()

    def post(self, envoy, body, method="Embed"):
        request = urllib.request.Request(
            f"http://127.0.0.1:{envoy.port}/encoderd.v1.Encoder/{method}",
            json.dumps(body).encode(), {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def transcoder(self):
        with self.start(0) as server, \
                tempfile.TemporaryDirectory() as folder, \
                self.envoy(folder, [server]) as envoy:
            with grpc.insecure_channel(server.address) as channel:
                wanted = encoder_pb2_grpc.EncoderStub(channel).Embed(
                    encoder_pb2.EmbedRequest(
                        inputs=[encoder_pb2.Input(text=proxy.TEXT)]))
            vector = wanted.embeddings[0]
            code, answer = self.post(
                envoy, {"inputs": [{"text": proxy.TEXT}]})
            self.expect(code == 200, f"JSON: {code} {answer}")
            got = answer["embeddings"][0]
            self.expect(np.array_equal(np.float32(got["floats"]["values"]),
                                       np.float32(vector.floats.values))
                        and len(vector.floats.values) > 0,
                        f"JSON gives {got}, gRPC {vector}")
            code, answer = self.post(envoy, {"inputs": [
                {"text": proxy.TEXT}], "options": {"packed": True}})
            packed = base64.b64decode(answer["embeddings"][0]["packed"])
            self.expect(np.array_equal(np.frombuffer(packed, "<f4"),
                                       np.float32(vector.floats.values)),
                        f"JSON, packed: {answer}")
            code, answer = self.post(envoy, {"inputs": []})
            self.expect(code == 400 and any(
                detail.get("reason") == "NO_INPUTS"
                for detail in answer.get("details", [])),
                f"a bad request as JSON: {code} {answer}")
            code, _ = self.post(envoy, {}, "ListModels")
            self.expect(code == 200, f"ListModels as JSON: {code}")

    def tls(self):
        with tempfile.TemporaryDirectory() as folder:
            certificates = f"{folder}/certificates"
            subprocess.run(["mkdir", certificates], check=True)
            subprocess.run([proxy.ROOT / "tests/support/make_certificates.sh",
                            certificates], check=True, capture_output=True)
            flags = [f"--tls_certificate_file={certificates}/server.pem",
                     f"--tls_key_file={certificates}/server.key"]
            with self.start(0, MODEL, *flags) as server, \
                    self.envoy(folder, [server], certificates) as envoy:
                with open(f"{certificates}/ca.pem", "rb") as file:
                    trusted = grpc.ssl_channel_credentials(file.read())
                with grpc.secure_channel(f"localhost:{envoy.port}",
                                         trusted) as channel:
                    answer = encoder_pb2_grpc.EncoderStub(channel).Embed(
                        encoder_pb2.EmbedRequest(
                            inputs=[encoder_pb2.Input(text=proxy.TEXT)]),
                        timeout=60)
                self.expect(len(answer.embeddings) == 1, "no vector over TLS")

    def attacks(self):
        """What gRPC's own server does not bound (SECURITY.md): Envoy cuts off
        who does it, and serves the others."""
        def resets(caller, harmless):
            for _ in range(10 if harmless else 20000):
                caller.reset(caller.call("/encoderd.v1.Encoder/Embed"))

        def headers(caller, harmless):
            caller.long_call("/encoderd.v1.Encoder/Embed",
                             frames=2 if harmless else 400,
                             size=2048 if harmless else 8192, end=harmless)

        with self.start(0) as server, \
                tempfile.TemporaryDirectory() as folder, \
                self.envoy(folder, [server]) as envoy:
            for attack in (resets, headers):
                for harmless in (True, False):
                    cut = False
                    try:
                        with RawHttp2(envoy.port) as caller:
                            attack(caller, harmless)
                            # Writing fails soon after the other side closed.
                            for _ in range(100):
                                caller.call("/encoderd.v1.Encoder/Embed")
                                time.sleep(0.02)
                    except OSError:
                        cut = True
                    self.expect(cut != harmless, f"{attack.__name__}: cut off "
                                f"is {cut}, harmless is {harmless}")
                code, _ = self.post(envoy, {"inputs": [{"text": "x"}]})
                self.expect(code == 200, f"after {attack.__name__}: {code}")

    def metadata(self):
        """A server ends the connection of a call with too much metadata, and
        all callers behind Envoy share it: Envoy ends only that call."""
        request = encoder_pb2.EmbedRequest(
            request_id="1", inputs=[encoder_pb2.Input(text=proxy.TEXT)])

        def stub(envoy):
            channel = grpc.insecure_channel(
                f"127.0.0.1:{envoy.port}",
                [("grpc.enable_retries", 0),
                 ("grpc.use_local_subchannel_pool", 1)])
            return encoder_pb2_grpc.EncoderStub(stack.enter_context(channel))

        with contextlib.ExitStack() as stack:
            server = stack.enter_context(self.start(0))
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            envoy = stack.enter_context(self.envoy(folder, [server]))
            embed = stub(envoy).Embed
            # Of another caller. Envoy does not begin a stream again: no retry
            # hides that its connection ended.
            requests = queue.SimpleQueue()
            answers = stub(envoy).EmbedStream(iter(requests.get, None),
                                              timeout=60)
            stack.callback(requests.put, None)
            for size, accepted in ((4096, True), (20480, False)):
                code = grpc.StatusCode.OK
                try:
                    embed(request, metadata=[("x-much", "x" * size)],
                          timeout=60)
                except grpc.RpcError as error:
                    code = error.code()
                self.expect(accepted == (code == grpc.StatusCode.OK),
                            f"{size} bytes of metadata: {code}")
                requests.put(request)
                try:
                    next(answers)
                except grpc.RpcError as error:
                    self.expect(False, f"{size} bytes of metadata ended "
                                f"another caller's stream: {error.details()}")

    def run(self):
        even = self.shares((MODEL, MODEL), self.options.seconds)
        self.expect(abs(even[0] / sum(even) - 0.5) <= SHARE,
                    f"shares: {even}")
        uneven = self.shares((MODEL, SLOW), 5)
        self.expect(uneven[1] < uneven[0],
                    f"the slow server got as much: {uneven}")
        callers, retried = self.kills(self.options.rounds)
        self.transcoder()
        self.attacks()
        self.metadata()
        self.tls()
        print("\n".join(self.faults), file=sys.stderr)
        print(f"{even[0]} + {even[1]} calls in {self.options.seconds} s; "
              f"{self.options.rounds} stops: {sum(callers.answered())} answered, "
              f"{retried} by a retry, {sum(callers.lost.values())} lost")
        return 1 if self.faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--envoy", required=True)
    parser.add_argument("--programs", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=60)
    sys.exit(Check(parser.parse_args()).run())
