#!/usr/bin/env python3
"""Every alert over a real Prometheus and a server in the trouble that earns it;
and none of them over a healthy one. Windows and waits are cut to seconds.

    alerts_live.py --programs=build/dev/bin --model="$(deploy/fetch-model.sh)"

Real flags where they bring the trouble about, the fake device where a healthy
one cannot: it is slow, hangs, fails or is lost when told. Ends with one line,
and with 1 where an alert fired wrongly or not at all."""

import argparse
import contextlib
import hashlib
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

import monitoring
from processes import (
    Prometheus, Server, eventually, hurried, load, mistakes)

SCENARIOS = {}
HEALTHY_SECONDS = 12  # three windows
POISON = "~"  # the fake's tokens are the bytes of a text, from 3 on
POISONED = f"poison_token:{3 + ord(POISON)}"
STICKY = f"stuck_token:{3 + ord(POISON)}"


def scenario(*earned, also=()):
    """What must fire together, and what may besides."""
    def take(function):
        SCENARIOS[function.__name__] = (function, set(earned), set(also))
        return function
    return take


class Trouble:
    """What a scenario makes its trouble of; all of it ends with `stack`."""

    def __init__(self, options, folder, stack):
        self.options, self.folder, self.stack = options, folder, stack
        self.fired = {}  # name: summary

    def server(self, *flags, **settings):
        return self.stack.enter_context(Server(
            self.options.programs / "encoderd", self.options.model, *flags,
            **settings))

    def fake(self, model, *flags, **settings):
        return self.stack.enter_context(Server(
            self.options.programs / "encoderd_fake_server", f"m={model}",
            *flags, **settings))

    def watch(self, *servers, ca_file=None):
        self.prometheus = self.stack.enter_context(Prometheus(
            self.folder, [s.http for s in servers], "500ms", hurried, ca_file))
        for server in servers:
            eventually(lambda s=server: self.prometheus.value(
                f'up{{instance="127.0.0.1:{s.http}"}}') == 1, "a first scrape")
        if servers and not ca_file:  # until then there was none
            eventually(lambda: not self.prometheus.firing(), "quiet")
        elif servers:  # a certificate's alert may fire from the start
            eventually(lambda: "EncoderdAbsent" not in
                       self.prometheus.firing(), "a target")
        return self.prometheus

    def secured(self, name, client_ca=False):
        """A watched server with the test certificate `name`, and the folder of
        all of them."""
        folder = self.folder / "certificates"
        folder.mkdir()
        subprocess.run(
            ["sh", monitoring.ROOT / "tests/support/make_certificates.sh",
             folder], check=True)
        server = self.fake(
            "hidden_size:8", f"--tls_certificate_file={folder}/{name}.pem",
            f"--tls_key_file={folder}/{name}.key",
            *([f"--tls_client_ca_file={folder}/ca.pem"] if client_ca else []))
        self.watch(server, ca_file=folder / "ca.pem")
        return server, folder

    def look(self):
        self.fired.update(self.prometheus.firing())
        return self.fired

    def look_for(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.look()
            time.sleep(0.5)

    def load(self, server, *flags, lasting=False):
        self.stack.enter_context(load(
            self.options.programs / "encoderctl", server, *flags,
            lasting=lasting))

    def connect(self, server):
        self.stack.enter_context(
            socket.create_connection(("127.0.0.1", server.grpc)))


@scenario()
def healthy(trouble):
    """Under load, with one caller that makes mistakes."""
    server = trouble.server()
    trouble.watch(server)
    trouble.load(server, "--concurrency=1", "--batch_size=2", "--words=8",
                 lasting=True)
    trouble.stack.enter_context(
        mistakes(trouble.options.programs / "encoderctl", server))

    def calls(outcome):
        return trouble.prometheus.value(
            'sum(encoderd_requests_total{method="Embed",'
            f'outcome="{outcome}"}})')

    trouble.look_for(HEALTHY_SECONDS)
    at_end = {outcome: calls(outcome) for outcome in ("ok", "invalid")}
    for outcome, count in at_end.items():  # and both go on
        eventually(lambda o=outcome, c=count: calls(o) > c, f"calls: {outcome}")


@scenario("EncoderdAbsent")
def no_target(trouble):
    trouble.watch()


@scenario("EncoderdDown")
def killed(trouble):
    server = trouble.server()
    trouble.watch(server)
    server.kill()


@scenario("EncoderdDown")
def stopped(trouble):
    """Alive to the system and deaf to all."""
    server = trouble.server()
    trouble.watch(server)
    server.process.send_signal(signal.SIGSTOP)


@scenario("EncoderdRestarting", "EncoderdRestartsOften",
          also=["EncoderdDown", "EncoderdLoading", "EncoderdNoneServing"])
def restarted_four_times(trouble):
    """Three within the cut window of 15 minutes, four in all."""
    server = trouble.fake("hidden_size:8")
    prometheus = trouble.watch(server)
    for _ in range(4):
        seen = prometheus.value("process_start_time_seconds")
        server.kill()
        server = trouble.fake("hidden_size:8", grpc=server.grpc,
                              http=server.http)
        eventually(lambda: prometheus.value("process_start_time_seconds")
                   not in (None, seen), "a scrape of the new one")


@scenario("EncoderdDeviceFault", "EncoderdDeviceFailing", "EncoderdFailing")
def device_fails_calls(trouble):
    server = trouble.fake(POISONED)
    trouble.watch(server)
    trouble.load(server, "--concurrency=2", "--batch_size=1", POISON)


@scenario("EncoderdFailed",
          also=["EncoderdDeviceFault", "EncoderdDeviceFailing", "EncoderdFailing",
                "EncoderdNoneServing", "EncoderdRefusing", "EncoderdStuck"])
def device_lost(trouble):
    """While the other model's long batch keeps the process a while."""
    server = trouble.fake("lost_after_batches:5",
                          "--model=slow=batch_us:6000000", wait_for="serving")
    trouble.watch(server)
    trouble.load(server, "--model=slow", "--concurrency=1", "--batch_size=1")
    eventually(lambda: trouble.prometheus.value(
        'encoderd_admitted_tokens{model="slow"} > 0'), "a slow batch")
    trouble.load(server, "--model=m", "--concurrency=1", "--batch_size=1")


@scenario("EncoderdLeftItsGpu",
          also=["EncoderdLoading", "EncoderdNoneServing"])
def comes_again_on_a_cpu(trouble):
    """The first server's device, a fake, is not a CPU."""
    server = trouble.fake("hidden_size:8")
    prometheus = trouble.watch(server)
    eventually(lambda: prometheus.value("encoderd_model_info") == 1, "its model")
    server.stop()
    trouble.stack.enter_context(Server(
        trouble.options.programs / "encoderd", f"m={trouble.options.model}",
        "--device=cpu", grpc=server.grpc, http=server.http))


@scenario("EncoderdStuck", "EncoderdBacklog")
def device_hangs(trouble):
    server = trouble.fake("stuck_after_batches:5", "--max_batch_tokens=256", "--drain_timeout=1s")
    trouble.watch(server)
    trouble.load(server, "--concurrency=64", "--batch_size=4")


@scenario("EncoderdStuck")
def device_hangs_with_its_only_call(trouble):
    """Nothing waits: all that was admitted is in compute."""
    server = trouble.fake("stuck_after_batches:5", "--drain_timeout=1s")
    trouble.watch(server)
    trouble.load(server, "--concurrency=1", "--batch_size=1")


@scenario("EncoderdStuck")
def one_device_of_two_hangs(trouble):
    """The other one finishes batches all the time."""
    server = trouble.fake(f"sessions:2,{STICKY}", "--drain_timeout=1s")
    trouble.watch(server)
    trouble.load(server, "--concurrency=1", "--batch_size=1", "--timeout=5m",
                 POISON)
    eventually(lambda: trouble.prometheus.value(
        "encoderd_oldest_batch_age_seconds > 1"), "a stuck batch")
    trouble.load(server, "--concurrency=2", "--batch_size=1", lasting=True)


@scenario("EncoderdRefusing", "EncoderdBusy",
          also=["EncoderdSlow", "EncoderdBacklog"])
def queue_full(trouble):
    server = trouble.server("--max_queue_tokens=4096", "--threads=1")
    trouble.watch(server)
    trouble.load(server, "--concurrency=64", "--batch_size=8", "--words=64")


@scenario("EncoderdCallsInvalid")
def wrong_token_rotated_in(trouble):
    tokens, token = trouble.folder / "tokens", trouble.folder / "token"
    token.write_text("alpha")
    tokens.write_text(f"search {hashlib.sha256(b'alpha').hexdigest()}\n")
    server = trouble.fake("hidden_size:8", f"--bearer_token_file={tokens}")
    trouble.watch(server)
    trouble.load(server, f"--token_file={token}", "--concurrency=2",
                 "--batch_size=1")
    eventually(lambda: trouble.prometheus.value(
        'sum(encoderd_requests_total{method="Embed",outcome="ok"}) > 0'),
        "an answer")
    tokens.write_text(f"search {hashlib.sha256(b'beta').hexdigest()}\n")


@scenario("EncoderdBacklog", "EncoderdSlow", "EncoderdBusy")
def too_much_work(trouble):
    """A thousand tokens per second, with some thirty thousand waiting."""
    server = trouble.fake("token_us:1000", "--max_batch_tokens=256",
                          "--drain_timeout=1s")
    trouble.watch(server)
    trouble.load(server, "--concurrency=128", "--batch_size=4",
                 "--timeout=5m", "--words=12")


@scenario("EncoderdCallersLeave",
          also=["EncoderdBusy", "EncoderdStuck", "EncoderdBacklog"])
def callers_out_of_patience(trouble):
    server = trouble.fake("batch_us:500000", "--drain_timeout=1s")
    trouble.watch(server)
    trouble.load(server, "--concurrency=4", "--batch_size=1", "--timeout=100ms")


@scenario("EncoderdLoading", "EncoderdNoneServing")
def slow_start(trouble):
    trouble.watch(trouble.fake("load_ms:60000", wait_for=None))


@scenario("EncoderdDraining", "EncoderdNoneServing",
          also=["EncoderdRefusing", "EncoderdStuck"])
def slow_leave(trouble):
    server = trouble.fake("batch_us:6000000")
    trouble.watch(server)
    trouble.load(server, "--concurrency=1", "--batch_size=1")
    eventually(lambda: trouble.prometheus.value(
        "encoderd_admitted_tokens > 0"), "a call in flight")
    server.process.terminate()


@scenario("EncoderdConnectionsFull")
def connections_taken(trouble):
    server = trouble.server("--max_connections=3",
                            "--max_connections_per_address=3")
    trouble.watch(server)
    for _ in range(3):
        trouble.connect(server)


@scenario("EncoderdConnectionsRefused")
def one_address_has_too_many(trouble):
    server = trouble.server("--max_connections=8",
                            "--max_connections_per_address=2")
    trouble.watch(server)
    for _ in range(20):
        trouble.connect(server)
        trouble.look()
        time.sleep(0.3)


@scenario("EncoderdFilesFull", "EncoderdConnectionsFull")
def files_taken(trouble):
    """The server then takes 462 connections, of two descriptors each; the
    last seven are for other addresses."""
    server = trouble.fake("hidden_size:8", "--max_connections_per_address=462",
                          files=1024)
    trouble.watch(server)
    for _ in range(455):
        trouble.connect(server)


@scenario("EncoderdCertificateExpires")
def certificate_of_five_days(trouble):
    trouble.secured("soon")


@scenario("EncoderdCertificateExpires", "EncoderdCertificateExpiresToday")
def certificate_of_twelve_hours(trouble):
    trouble.secured("today")


@scenario("EncoderdHandshakesFailing")
def callers_without_certificates(trouble):
    server, certificates = trouble.secured("server", client_ca=True)
    context = ssl.create_default_context(cafile=certificates / "ca.pem")
    context.set_alpn_protocols(["h2"])
    for _ in range(20):
        with contextlib.suppress(OSError), socket.create_connection(
                ("127.0.0.1", server.grpc)) as plain, context.wrap_socket(
                    plain, server_hostname="localhost") as caller:
            caller.recv(1)
        time.sleep(0.2)


@scenario("EncoderdSecretReloadFailing")
def tokens_spoilt(trouble):
    tokens = trouble.folder / "tokens"
    tokens.write_text(f"search {hashlib.sha256(b'alpha').hexdigest()}\n")
    server = trouble.fake("hidden_size:8", f"--bearer_token_file={tokens}")
    trouble.watch(server)
    tokens.write_text("search\n")


def play(options, name):
    """What was wrong, in words; empty: nothing."""
    function, earned, also = SCENARIOS[name]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.ExitStack() as stack:
        trouble = Trouble(options, pathlib.Path(folder), stack)
        function(trouble)
        with contextlib.suppress(TimeoutError):
            eventually(lambda: earned <= set(trouble.look()), "alerts")
    fired = trouble.fired
    print(f"{name:24} {time.monotonic() - started:5.1f} s  "
          f"{', '.join(sorted(fired)) or 'nothing fired'}", flush=True)
    wrong = [f"{name}: {alert} did not fire" for alert in earned - set(fired)]
    wrong += [f"{name}: {alert} fired: {fired[alert]}"
              for alert in set(fired) - earned - also]
    return wrong + [f"{name}: {alert} says: {summary}"
                    for alert, summary in fired.items() if "error" in summary]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path,
                        help="folder of encoderd, encoderd_fake_server, "
                        "encoderctl")
    parser.add_argument("--model", required=True, help="a model's folder")
    parser.add_argument("scenarios", nargs="*", help=", ".join(SCENARIOS))
    options = parser.parse_args()
    names = options.scenarios or list(SCENARIOS)
    wrong = [finding for name in names for finding in play(options, name)]
    earned = set().union(*(SCENARIOS[name][1] for name in names))
    if not options.scenarios:
        wrong += [f"no scenario earns {alert}"
                  for alert in set(monitoring.alerts()) - earned]
    for finding in wrong:
        print(finding, file=sys.stderr)
    print(f"{len(earned)} of {len(monitoring.alerts())} alerts earned and "
          f"fired in {len(names)} scenarios, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
