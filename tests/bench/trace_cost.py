"""What tracing costs: rates and latencies with and without, interleaved in one
run; and one trace as a picture.

    python3 tests/bench/trace_cost.py --programs build/bench/bin \\
        --model "$(deploy/fetch-model.sh)" [--picture FOLDER]

Servers on loopback: two that do not trace, the second of which shows what the
machine itself varies by; one whose collector takes every span; one whose
collector is away. Every call is traced. Each round asks each in turn, by
`encoderctl bench`, beginning with another one each time. Prints medians with
the extremes, of the rates, of the server's own CPU time per call, which other
load on the machine hardly moves, and of the rounds' ratios to the first
server; and what became of the spans. The collector, this process, shares the
cores.

--picture (needs matplotlib) writes FOLDER/trace.png: several calls of one
trace, sent at once to a server under load. Needs tests/requirements.txt.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import os
import pathlib
import re
import secrets
import socket
import sys
import time

import grpc
from loads import ROOT, Server, bench, finish, ratios, spread, start
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
# Name, server, flags of the load, how many times as long it is measured.
SMALL, LARGE = ["--words=8", "--batch_size=1"], ["--words=126", "--batch_size=8"]
LOADS = [
    ("1 text of 10 tokens per call, 16 callers", "encoderd",
     [*SMALL, "--concurrency=16"], 1),
    ("8 texts of 128 tokens per call, 4 callers", "encoderd",
     [*LARGE, "--concurrency=4"], 3),
    ("nothing computed: 1 text of 10 tokens per call, 32 callers",
     "encoderd_fake_server", [*SMALL, "--concurrency=32"], 1),
]
PLAIN = "no tracing"
# The parts of a span, and the event that ends each.
PARTS = {"tokenize": "tokenized", "queue": "compute_started",
         "compute": "computed", "answer": None}


class Collector:
    """Takes every span, and keeps the last requests unread: reading them would
    cost the server's cores."""

    def __init__(self):
        self._requests = collections.deque(maxlen=64)
        self._server = grpc.server(
            concurrent.futures.ThreadPoolExecutor(max_workers=2))
        # No deserializer: bytes in, and no bytes are an empty response.
        self._server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler(SERVICE, {
                "Export": grpc.unary_unary_rpc_method_handler(self._export)}),))
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.endpoint = f"127.0.0.1:{port}"

    def _export(self, request, _context):
        self._requests.append(request)
        return b""

    def spans(self, trace_id):
        parsed = [trace_service_pb2.ExportTraceServiceRequest.FromString(body)
                  for body in list(self._requests)]
        return [span for request in parsed
                for resource in request.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans if span.trace_id == trace_id]

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop(None)


@contextlib.contextmanager
def nobody():
    """An endpoint that nobody listens at, nor can meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def spans_of(server):
    """What became of the server's spans so far, by outcome."""
    return {outcome: int(float(count)) for outcome, count in re.findall(
        r'^encoderd_spans_total\{outcome="(\w+)"\} (\S+)$', server.metrics(),
        re.MULTILINE)}


def used_by(server):
    """CPU microseconds and calls of the server so far."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text()
    ticks = sum(map(int, fields.rsplit(")", 1)[1].split()[11:13]))
    calls = sum(float(count) for count in re.findall(
        r'^encoderd_requests_total\{[^}]*method="Embed"[^}]*\} (\S+)$',
        server.metrics(), re.MULTILINE))
    return ticks * 1e6 / os.sysconf("SC_CLK_TCK"), calls


def measure(options, server, flags, seconds):
    """texts/s, p50 in ms, and CPU time of the server per call in us."""
    time_before, calls_before = used_by(server)
    found = bench(options.programs, server.address,
                  f"--duration={seconds}s", *flags, warm_up="500ms")
    if not found["calls_answered"]:
        sys.exit(f"trace_cost: no call was answered within {seconds} s: give "
                 "more --seconds")
    time_after, calls_after = used_by(server)
    return (found["texts_per_s"], found["latency_ms"]["p50"],
            (time_after - time_before) / (calls_after - calls_before))


def compare(options, endpoints, load):
    name, program, flags, times = load
    model = (f"m={options.model}" if program == "encoderd"
             else "m=hidden_size:384,hashing:0")
    rounds = {server: [] for server in endpoints}
    with contextlib.ExitStack() as stack:
        servers = {
            server: stack.enter_context(Server(
                options.programs / program, model,
                *([f"--otlp_endpoint={endpoint}", "--trace_ratio=1"]
                  if endpoint else [])))
            for server, endpoint in endpoints.items()}
        order = collections.deque(servers)
        for _ in range(options.repeats):
            for server in order:
                rounds[server].append(
                    measure(options, servers[server], flags,
                            times * options.seconds))
            order.rotate(-1)
        time.sleep(2)  # the last exports
        outcomes = {server: spans_of(running)
                    for server, running in servers.items()}
    print(f"\n{name}\n\n| | texts/s | ratio | p50, ms | ratio | "
          "CPU per call, us | ratio | spans |\n" + "|---" * 8 + "|")
    bases = list(zip(*rounds[PLAIN]))
    for server in endpoints:
        cells = [server]
        for values, base, form in zip(zip(*rounds[server]), bases,
                                      (".0f", ".2f", ".0f")):
            cells += [spread(values, form), spread(ratios(values, base), ".3f")]
        cells.append(", ".join(f"{count} {outcome}" for outcome, count
                               in outcomes[server].items() if count))
        print(f"| {' | '.join(cells)} |", flush=True)


def one_trace(options):
    """The spans of calls of one trace, sent at once to a server under load."""
    sys.path.insert(0, str(ROOT / "proto"))
    protos = grpc.protos("encoderd/v1/encoder.proto")
    trace_id = secrets.token_bytes(16)
    traceparent = f"00-{trace_id.hex()}-{secrets.token_hex(8)}-01"
    requests = [protos.EmbedRequest(
                    inputs=[{"text": str(i) + " word" * (words - 1)}
                            for i in range(texts)])
                for texts, words in ((1, 8), (8, 8), (1, 126), (2, 126),
                                     (8, 126))]
    with Collector() as collector, Server(
            options.programs / "encoderd", f"m={options.model}",
            f"--otlp_endpoint={collector.endpoint}",
            "--trace_ratio=0") as server, \
            grpc.insecure_channel(server.address) as channel:
        load = start(options.programs, server.address, *LARGE,
                     "--concurrency=2", "--duration=4s")
        time.sleep(2)
        embed = channel.unary_unary(
            "/encoderd.v1.Encoder/Embed",
            request_serializer=protos.EmbedRequest.SerializeToString)
        calls = [embed.future(request, timeout=60,
                              metadata=[("traceparent", traceparent)])
                 for request in requests]
        for call in calls:
            call.result()
        finish(load)
        deadline = time.monotonic() + 60
        while len(spans := collector.spans(trace_id)) < len(requests):
            if time.monotonic() > deadline:
                sys.exit(f"trace_cost: {len(spans)} of {len(requests)} spans "
                         "reached the collector")
            time.sleep(0.1)
    return spans


def parts_of(span):
    """[(part, its begin, its end)] in Unix nanoseconds: a call that was not
    computed has only an answer."""
    events = {event.name: event.time_unix_nano for event in span.events}
    found, begin = [], span.start_time_unix_nano
    for part, event in PARTS.items():
        if event is None or event in events:
            end = events.get(event, span.end_time_unix_nano)
            found.append((part, begin, end))
            begin = end
    return found


def draw(path, spans):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    spans = sorted(spans, key=lambda span: span.end_time_unix_nano)
    zero = min(span.start_time_unix_nano for span in spans)
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.5 * len(spans)))
    colors = dict(zip(PARTS, ("tab:blue", "lightgray", "tab:orange",
                              "tab:green")))
    names = []
    for row, span in enumerate(spans):
        for part, begin, end in parts_of(span):
            axes.barh(row, (end - begin) / 1e6, left=(begin - zero) / 1e6,
                      height=0.6, color=colors[part],
                      label=part if row == 0 else None)
        axes.plot([(event.time_unix_nano - zero) / 1e6
                   for event in span.events], [row] * len(span.events), "|",
                  color="black", markersize=18, clip_on=False)
        tokens = [attribute.value.int_value for attribute in span.attributes
                  if attribute.key == "encoderd.tokens"]
        names.append(f"{span.name.split('/')[-1]}, {sum(tokens)} tokens")
    axes.set_yticks(range(len(spans)), names)
    axes.invert_yaxis()
    axes.set(xlabel="ms since the first call arrived",
             title=f"trace {spans[0].trace_id.hex()}")
    axes.grid(True, axis="x", alpha=0.3)
    axes.legend(loc="upper right")  # the longest calls are at the bottom
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--repeats", type=int, default=5,
                        help="0: the picture alone")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--picture", type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.repeats:
        with Collector() as collector, nobody() as away:
            endpoints = {PLAIN: None, "no tracing, again": None,
                         "collector takes all": collector.endpoint,
                         "collector away": away}
            for load in LOADS:
                if (options.programs / load[1]).exists():
                    compare(options, endpoints, load)
    if options.picture:
        options.picture.mkdir(parents=True, exist_ok=True)
        draw(options.picture / "trace.png", one_trace(options))


if __name__ == "__main__":
    main()
