"""Bounds of bounds.py on what masses of callers, and hostile ones, may cost."""

import contextlib
import multiprocessing
import socket
import time

import grpc
from bounds_support import (EMBED, ROOT, Fake, bound, eventually, get, p99, peak,
                            plain, request, seconds_of, status_of)
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from raw_http2 import RawHttp2

STREAM = "/encoderd.v1.Encoder/EmbedStream"


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


@contextlib.contextmanager
def idle_streams(server, count=10000, connections=10):
    """This many open EmbedStreams that say nothing."""
    with contextlib.ExitStack() as stack:
        for _ in range(connections):
            peer = stack.enter_context(RawHttp2(server.grpc))
            for _ in range(count // connections):
                peer.call(STREAM)
        wait_for_streams(server, count)
        yield
    wait_for_streams(server, 0)


def wait_for_streams(server, count):
    eventually(lambda: f"\nencoderd_streams {count}\n" in server.metrics(),
               f"{count} streams")


def many_streams(programs):
    return Fake(programs, "load_ms:0", "--max_streams=10000")


@bound(32, "KB", "memory of each of 10,000 idle streams")
def idle_stream_memory(programs):
    with many_streams(programs) as server:
        before = status_of(server.process, "VmRSS")
        with idle_streams(server):
            grown = status_of(server.process, "VmRSS") - before
        yield grown * 1000 / 10000


# Of what is left once the streams are gone and free memory is given back: the
# peaks vary by a fifth with what the allocator finds.
@bound(5, "%", "of their memory left by four waves of 10,000 streams, after "
       "four others")
def idle_stream_waves(programs):
    with many_streams(programs) as server:
        left, largest = [], 0
        for _ in range(2):
            for _ in range(4):
                with idle_streams(server):
                    largest = max(largest, status_of(server.process, "VmRSS"))
            time.sleep(11)  # it looks every five seconds
            left.append(status_of(server.process, "VmRSS"))
        yield 100 * (left[1] - left[0]) / largest


@bound(0.05, "s", "a call with 10,000 idle streams (p99 of 1,000)")
def idle_stream_probe(programs):
    with many_streams(programs) as server, plain(server.address) as channel:
        stub = encoder_pb2_grpc.EncoderStub(channel)
        with idle_streams(server):
            yield p99(seconds_of(
                1000, lambda: stub.Embed(request("x"), timeout=10)))


@bound(0.02, "s", "a scrape with 10,000 idle streams (p99 of 100)")
def idle_stream_scrape(programs):
    with many_streams(programs) as server, idle_streams(server):
        yield p99(seconds_of(
            100, lambda: get(f"http://127.0.0.1:{server.http}/metrics")))


def refused(channel, message, **options):
    """The code of a call of Embed with these bytes."""
    call = channel.unary_unary(EMBED)
    try:
        call(message, timeout=120, **options)
    except grpc.RpcError as error:
        return error.code()
    raise AssertionError("taken")


@bound(64, "MB", "memory for 200 MiB that came compressed")
def compressed_bomb(programs):
    with Fake(programs, "load_ms:0") as server, \
            plain(server.address) as channel:
        with peak(server.process) as grown:
            code = refused(channel, bytes(200 << 20),
                           compression=grpc.Compression.Gzip)
        assert code is grpc.StatusCode.UNIMPLEMENTED, code
        encoder_pb2_grpc.EncoderStub(channel).Embed(request("x"), timeout=10)
        yield grown[0]


# Past 2 GiB in a row gRPC's own reading once ended the process
# (server/rpc/libraries.cc).
@bound(64, "MB", "memory for 2.5 GiB of frames that mean nothing")
def ignored_frames(programs):
    with Fake(programs, "load_ms:0") as server, \
            plain(server.address) as other:
        with peak(server.process) as grown, RawHttp2(server.grpc) as caller:
            with contextlib.suppress(OSError):  # the server may close it
                caller.ignored(2560)
        encoder_pb2_grpc.EncoderStub(other).Embed(request("x"), timeout=10)
        yield grown[0]


# A client may ping every 5 s (client/cpp/options.h); ours do so every 20 s.
@bound(0, "pings", "unanswered of one every 6 s for 40 s on one connection")
def patient_pings(programs):
    with Fake(programs, "load_ms:0") as server, \
            RawHttp2(server.grpc) as caller:
        wanted = 40 // 6 + 1
        answered = 0
        while answered < wanted and caller.ping():
            answered += 1
            time.sleep(6)
        yield wanted - answered


# gRPC has the whole message before it refuses it: what bounds it is
# --max_connection_memory_bytes.
@bound(64 + 268, "MB", "memory for a message of 500 MiB")
def huge_message(programs):
    with Fake(programs, "load_ms:0") as server, \
            plain(server.address) as other:
        with peak(server.process) as grown, plain(server.address) as channel:
            code = refused(channel, bytes(500 << 20))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED, code
        encoder_pb2_grpc.EncoderStub(other).Embed(request("x"), timeout=10)
        yield grown[0]


def send_refused(address, sizes, counted):
    """Messages of this many MiB, plain and compressed, until it is killed.
    counted: those that the server refused for what they are; gRPC may also cut
    the connection."""
    while True:
        with plain(address) as channel:
            for size in sizes:
                code = refused(channel, bytes(size << 20))
                counted.value += code is grpc.StatusCode.RESOURCE_EXHAUSTED
            code = refused(channel, bytes(200 << 20),
                           compression=grpc.Compression.Gzip)
            counted.value += code is grpc.StatusCode.UNIMPLEMENTED


@contextlib.contextmanager
def refused_messages(server, *sizes):
    """Sent by its own process: what it costs there is not the server's. At least
    one must be refused meanwhile."""
    context = multiprocessing.get_context("spawn")
    counted = context.Value("i", 0)
    sender = context.Process(target=send_refused,
                             args=(server.address, sizes, counted))
    sender.start()
    try:
        eventually(lambda: "\nencoderd_connections 2\n" in server.metrics(),
                   "the sender")
        before = counted.value
        yield
        assert sender.is_alive()
        eventually(lambda: counted.value > before, "a refusal")
    finally:
        sender.kill()
        sender.join()


@bound(2, "times", "the p99 of a call with messages of 200 MiB, plain and "
       "compressed, instead of alone")
def refused_message_probe(programs):
    with Fake(programs, "batch_us:20000") as server, \
            plain(server.address) as channel:
        stub = encoder_pb2_grpc.EncoderStub(channel)

        def probe():
            return p99(seconds_of(
                300, lambda: stub.Embed(request("x"), timeout=10)))

        alone = probe()
        with refused_messages(server, 200):
            yield probe() / alone


# gRPC cuts any connection when --max_connection_memory_bytes are taken.
@bound(0, "calls", "lost with messages of 500 MiB, with the shipped service "
       "config")
def huge_message_losses(programs):
    config = (ROOT / "client/service_config.json").read_text(encoding="utf-8")
    with Fake(programs, "batch_us:5000") as server, \
            grpc.insecure_channel(server.address, [
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.service_config", config)]) as channel:
        stub = encoder_pb2_grpc.EncoderStub(channel)
        stub.Embed(request("x"), timeout=60)
        lost = 0
        with refused_messages(server, 500):
            for _ in range(1000):
                try:
                    stub.Embed(request("x"), timeout=60)
                except grpc.RpcError:
                    lost += 1
        yield lost


@contextlib.contextmanager
def deaf_streams(server, count=50):
    """This many streams whose answers nobody reads, once the server has stopped
    reading them. Each asks for 15 MB by 52 KB: 100 answers of 150 KB."""
    requests = [encoder_pb2.EmbedRequest(
        inputs=[encoder_pb2.Input(text="x")] * 100, request_id=f"{i:03}",
        options=encoder_pb2.EmbedOptions(packed=True)).SerializeToString()
        for i in range(100)]
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            peer = stack.enter_context(RawHttp2(server.grpc, window=0))
            stream = peer.call(STREAM)
            for message in requests:
                peer.send(stream, message)
        wait_for_streams(server, count)
        idle = 0
        while idle < 10:  # in a row
            time.sleep(0.1)
            idle = idle + 1 if ('encoderd_admitted_tokens{model="m"} 0\n'
                                in server.metrics()) else 0
        yield


@bound(4, "MB", "memory of each of 50 streams whose answers nobody reads")
def deaf_stream_memory(programs):
    with Fake(programs, "hidden_size:384") as server:
        with plain(server.address) as channel:
            encoder_pb2_grpc.EncoderStub(channel).Embed(
                request(*["x"] * 100), timeout=10)
        before = status_of(server.process, "VmRSS")
        with deaf_streams(server):
            yield (status_of(server.process, "VmRSS") - before) / 50


@bound(2, "times", "the p99 of a call with 50 such streams, instead of alone")
def deaf_stream_probe(programs):
    with Fake(programs, "hidden_size:384,batch_us:5000") as server, \
            plain(server.address) as channel:
        stub = encoder_pb2_grpc.EncoderStub(channel)

        def probe():
            return p99(seconds_of(
                500, lambda: stub.Embed(request("x"), timeout=10)))

        probe()
        alone = probe()
        with deaf_streams(server):
            yield probe() / alone
