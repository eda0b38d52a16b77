"""Bounds of bounds.py on servers at and beyond their capacity."""

import contextlib
import threading
import time

import grpc
from bounds_support import (EMBED, ROOT, Fake, Real, bound, check,
                            cpu_seconds_of, eventually, free_port, p99, plain,
                            request, seconds_of)
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc

# A batch of 2,048 tokens takes 20 ms: 400 such requests per second.
DEVICE = "batch_us:20000"
QUARTER_KILO = "x" * 254  # 256 tokens


@contextlib.contextmanager
def callers(count, work):
    """This many threads that call work(stop) until the end of `with`."""
    stop = threading.Event()
    threads = [threading.Thread(target=work, args=(stop,))
               for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def overloaded(programs, count):
    """Answers a second and their p99, of a queue with room for 16 requests that
    this many callers share; a refused caller retries when told to."""
    took = []

    def call(stop):
        with plain(server.address) as channel:
            embed = encoder_pb2_grpc.EncoderStub(channel).Embed
            while not stop.is_set():
                begun = time.monotonic()
                try:
                    embed(request(QUARTER_KILO), timeout=60)
                    took.append((begun, time.monotonic()))
                except grpc.RpcError as error:
                    assert (error.code() is
                            grpc.StatusCode.RESOURCE_EXHAUSTED), error
                    told = dict(error.trailing_metadata())
                    stop.wait(int(told["grpc-retry-pushback-ms"]) / 1000)

    with Fake(programs, DEVICE, "--max_queue_tokens=4096") as server, \
            callers(count, call):
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
            def work(stop):
                while not stop.is_set():
                    neighbor(request(*["x" * 30] * inputs), timeout=120)
            return work

        figures = []
        for calls, inputs in ((1, 64), (10, 1024)):
            with callers(calls, calls_of(inputs)):
                time.sleep(1)
                figures.append(p99(seconds_of(
                    500, lambda: embed(request("x"), timeout=60))))
        yield figures[1] / figures[0]


@bound(0.05, "s", "health with texts of 1 MB (p99 of 1,000)")
def health_beside_long_texts(programs):
    message = encoder_pb2.EmbedRequest(
        inputs=[encoder_pb2.Input(text="some words in a row " * 50000)],
        options=encoder_pb2.EmbedOptions(
            truncate=encoder_pb2.TRUNCATE_END)).SerializeToString()
    answered = []

    def load(stop):
        with plain(server.address) as channel:
            call = channel.unary_unary(EMBED)
            while not stop.is_set():
                answered.append(call(message, timeout=120))

    with Real(programs) as server, plain(server.address) as channel, \
            callers(4, load):
        eventually(lambda: len(answered) >= 4, "texts answered")
        before = len(answered)
        yield p99(seconds_of(1000, lambda: check(channel), pause=0.01))
        assert len(answered) > before + 20, "hardly any texts meanwhile"


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
    lost = []

    def load(stop):
        with grpc.insecure_channel(
                "ipv4:" + ",".join(f"127.0.0.1:{port}" for port in ports),
                [("grpc.use_local_subchannel_pool", 1),
                 ("grpc.service_config", config)]) as channel:
            stub = encoder_pb2_grpc.EncoderStub(channel)
            while not stop.is_set():
                try:
                    stub.Embed(request("x"), timeout=60)
                except grpc.RpcError as error:
                    lost.append(f"{error.code().name}: {error.details()}")

    def answered(server):
        return sum(float(line.split()[-1])
                   for line in server.metrics().splitlines()
                   if line.startswith("encoderd_requests_total{")
                   and 'code="OK",method="Embed"' in line)

    with Fake(programs, "batch_us:1000", *flags, grpc=ports[0]) as first, \
            callers(8, load):
        time.sleep(1)
        with Fake(programs, "batch_us:1000", *flags, grpc=ports[1]) as second:
            time.sleep(3 * age)
            before = answered(first), answered(second)
            time.sleep(2 * age)
            calls = (answered(first) - before[0], answered(second) - before[1])
            assert not lost, lost
    yield abs(calls[0] / sum(calls) - 0.5)
