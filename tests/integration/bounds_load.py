"""Bounds of bounds.py on servers at and beyond their capacity."""

import contextlib
import time

import grpc
from bounds_support import (EMBED, ROOT, Fake, Real, bound, check,
                            cpu_seconds_of, eventually, free_port, p99, plain,
                            request, seconds_of)
from callers import Callers  # on the path by bounds_support
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc

# A batch of 2,048 tokens takes 20 ms: 400 such requests per second.
DEVICE = "batch_us:20000"
QUARTER_KILO = "x" * 254  # 256 tokens


@contextlib.contextmanager
def callers(count, connected):
    """Callers until the end of `with`; RuntimeError if anything failed them."""
    running = Callers([connected] * count)
    try:
        with running:
            yield running
    finally:
        running.check()


def overloaded(programs, count):
    """Answers a second and their p99, of a queue with room for 16 requests that
    this many callers share; a refused caller retries when told to."""
    took = []

    def call(embed):
        begun = time.monotonic()
        try:
            embed(request(QUARTER_KILO), timeout=60)
            took.append((begun, time.monotonic()))
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
            told = dict(error.trailing_metadata())
            time.sleep(int(told["grpc-retry-pushback-ms"]) / 1000)

    @contextlib.contextmanager
    def connected():
        with plain(server.address) as channel:
            embed = encoder_pb2_grpc.EncoderStub(channel).Embed
            yield lambda: call(embed)

    with Fake(programs, DEVICE, "--max_queue_tokens=4096") as server, \
            callers(count, connected):
        time.sleep(2)
        begin = time.monotonic()
        time.sleep(10)
        end = time.monotonic()
    answered = [last - first for first, last in took if begin <= last < end]
    return len(answered) / (end - begin), p99(answered)


@bound(10, "%", "answers fewer at three times the load that fits")
def overload_goodput(programs):
    yield 100 * (1 - overloaded(programs, 48)[0] / overloaded(programs, 16)[0])


@bound(20, "%", "longer until an answer (p99) at three times the load that fits")
def overload_latency(programs):
    yield 100 * (overloaded(programs, 48)[1] / overloaded(programs, 16)[1] - 1)


@bound(2, "times", "the p99 of a caller next to one with 10,000 inputs in the "
       "queue, instead of one with a single request")
def flooded_neighbor(programs):
    with Fake(programs, DEVICE) as server, \
            plain(server.address) as channel, plain(server.address) as other:
        # One connection is one caller.
        embed = encoder_pb2_grpc.EncoderStub(channel).Embed
        neighbor = encoder_pb2_grpc.EncoderStub(other).Embed

        def calls_of(inputs):
            return lambda: contextlib.nullcontext(lambda: neighbor(
                request(*["x" * 30] * inputs), timeout=120))

        def queued():
            [line] = [line for line in server.metrics().splitlines()
                      if line.startswith('encoderd_queue_inputs{model="m"} ')]
            return float(line.split()[1])

        figures = []
        for calls, inputs, waiting in ((1, 64, 0), (10, 1024, 9000)):
            with callers(calls, calls_of(inputs)) as running:
                # What calls less is no such neighbor, before or after.
                eventually(lambda r=running: any(r.answered()), "an answer")
                eventually(lambda w=waiting: queued() >= w, "a queue")
                figures.append(p99(seconds_of(
                    500, lambda: embed(request("x"), timeout=60))))
                eventually(lambda w=waiting: queued() >= w, "a queue")
        yield figures[1] / figures[0]


@bound(0.05, "s", "health with texts of 1 MB (p99 of 1,000)")
def health_next_to_long_texts(programs):
    message = encoder_pb2.EmbedRequest(
        inputs=[encoder_pb2.Input(text="some words in a row " * 50000)],
        options=encoder_pb2.EmbedOptions(
            truncate=encoder_pb2.TRUNCATE_END)).SerializeToString()

    @contextlib.contextmanager
    def connected():
        with plain(server.address) as channel:
            call = channel.unary_unary(EMBED)
            yield lambda: call(message, timeout=120)

    with Real(programs) as server, plain(server.address) as channel, \
            callers(4, connected) as running:
        eventually(lambda: sum(running.answered()) >= 4, "texts answered")
        before = sum(running.answered())
        yield p99(seconds_of(1000, lambda: check(channel), pause=0.01))
        assert sum(running.answered()) > before + 20, "hardly any texts meanwhile"


@bound(2.2, "times", "the server's CPU time for twice the text")
def twice_the_text(programs):
    with Real(programs) as server, plain(server.address) as channel:
        call = channel.unary_unary(EMBED)

        def cpu_seconds(text):
            message = encoder_pb2.EmbedRequest(
                inputs=[encoder_pb2.Input(text=text)],
                options=encoder_pb2.EmbedOptions(
                    truncate=encoder_pb2.TRUNCATE_END)).SerializeToString()
            before = cpu_seconds_of(server.process)
            for _ in range(9):
                call(message, timeout=120)
            return cpu_seconds_of(server.process) - before

        for unit in ("some words in a row ", "a", "\u0301", "\U0001F469\u200D",
                     "\u4E00", "[MASK]"):
            text = unit * ((4 << 20) // len(unit.encode()))
            cpu_seconds(text)  # so that its memory is there
            yield cpu_seconds(2 * text) / cpu_seconds(text)


@bound(0.05, "of all calls", "servers' shares differ from a half, three ages "
       "after the second came")
def round_robin(programs):
    age = 2  # seconds
    flags = [f"--max_connection_age={age}s"]
    config = (ROOT / "client/service_config.json").read_text(encoding="utf-8")
    ports = [free_port(), free_port()]

    @contextlib.contextmanager
    def connected():
        with grpc.insecure_channel(
                "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports),
                [("grpc.use_local_subchannel_pool", 1),
                 ("grpc.service_config", config)]) as channel:
            stub = encoder_pb2_grpc.EncoderStub(channel)
            yield lambda: stub.Embed(request("x"), timeout=60)

    def answered(server):
        return sum(float(line.split()[-1])
                   for line in server.metrics().splitlines()
                   if line.startswith("encoderd_requests_total{")
                   and 'code="OK",method="Embed"' in line)

    with Fake(programs, "batch_us:1000", *flags, grpc=ports[0]) as first, \
            contextlib.ExitStack() as stack, \
            callers(8, connected):
        time.sleep(1)
        second = stack.enter_context(
            Fake(programs, "batch_us:1000", *flags, grpc=ports[1]))
        time.sleep(3 * age)
        before = answered(first), answered(second)
        time.sleep(2 * age)
        calls = (answered(first) - before[0], answered(second) - before[1])
    yield abs(calls[0] / sum(calls) - 0.5)
