"""A server with a full queue says when to come again; both clients do. Their
calls are spread over all servers."""

import asyncio
import contextlib
import importlib.resources
import json
import threading
import time

import encoderd
import grpc
import pytest
from encoderd import _stream_state
from encoderd._calls_in_flight import calls_of_list
from encoderd._channel import Retries
from encoderd._connection_errors import Link
from encoderd._method_jobs import Many
from encoderd._run_blocking import Call
from encoderd.errors import out_of_time
from encoderd.inputs import cut
from encoderd.v1 import encoder_pb2, encoder_pb2_grpc
from google.rpc import error_details_pb2, status_pb2
from python_service import Service
from python_service import serve as serving
from server_process import eventually
from stream_service import failure

GRPCS_OWN_ATTEMPTS = 5


def answer(request):
    return encoder_pb2.EmbedResponse(embeddings=[
        encoder_pb2.Embedding(packed=bytes(8)) for _ in request.inputs])


def refuse(context, pause, pushback):
    """QUEUE_FULL. pause: ms, for the client; pushback: ms, for gRPC, -1: gRPC
    is not to try again. None: not named."""
    status = status_pb2.Status(code=8, message="the queue is full")
    status.details.add().Pack(error_details_pb2.ErrorInfo(
        reason="QUEUE_FULL", domain="encoderd", metadata={"limit": "9"}))
    trailing = []
    if pause is not None:
        info = error_details_pb2.RetryInfo()
        info.retry_delay.FromMilliseconds(pause)
        status.details.add().Pack(info)
        trailing.append(("grpc-retry-pushback-ms", str(pushback)))
    trailing.append(("grpc-status-details-bin", status.SerializeToString()))
    context.set_trailing_metadata(trailing)
    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, status.message)


class Busy(Service):
    """Refuses `refusals` calls, naming a pause of 10 ms or none at all; then
    answers, unless it is `mute`."""

    def __init__(self, refusals, pause, mute=False):
        self.calls = 0
        self.refusals = refusals
        self._pause = pause
        self._mute = mute

    def Embed(self, request, context):
        self.calls += 1
        if self.calls > self.refusals:
            if self._mute:
                ended = threading.Event()
                if context.add_callback(ended.set):
                    ended.wait()
            return answer(request)
        if self._pause:
            refuse(context, pause=10, pushback=10)
        refuse(context, pause=None, pushback=None)


@pytest.fixture
def serve():
    with contextlib.ExitStack() as services:
        def start(refusals, pause=True, mute=False):
            service = services.enter_context(
                serving(Busy(refusals, pause, mute)))
            return service, service.target

        yield start


def encode(target, timeout=60.0, batch_size=64):
    with encoderd.Client(target, timeout=timeout) as client:
        return client.encode(["one", "two"], batch_size=batch_size)


def encode_async(target, timeout=60.0, batch_size=64):
    async def main():
        async with encoderd.AsyncClient(target, timeout=timeout) as client:
            return await client.encode(["one", "two"], batch_size=batch_size)
    return asyncio.run(main())


BOTH = pytest.mark.parametrize("work", [encode, encode_async])


@BOTH
def test_more_refusals_than_grpc_tries_are_waited_for(serve, work):
    service, target = serve(refusals=3 * GRPCS_OWN_ATTEMPTS)
    assert work(target).shape == (2, 2)
    assert service.calls == 3 * GRPCS_OWN_ATTEMPTS + 1


@BOTH
def test_each_refused_call_of_a_list_keeps_its_pause(work):
    pauses = {"one": 1, "two": 400}
    came = {text: [] for text in pauses}

    class Refusing(Service):
        def Embed(self, request, context):
            text = request.inputs[0].text
            came[text].append(time.monotonic())
            if len(came[text]) == 1:
                refuse(context, pauses[text], pushback=-1)
            return answer(request)

    with serving(Refusing()) as service:
        assert work(service.target, batch_size=1).shape == (2, 2)
    assert came["two"][1] - came["two"][0] >= 0.4


@BOTH
def test_a_refused_call_is_sent_again_while_one_before_it_is_in_flight(work):
    again = threading.Event()
    came = []

    class Refusing(Service):
        def Embed(self, request, context):
            text = request.inputs[0].text
            came.append(text)
            if text == "one":
                assert again.wait(60)
            elif came.count(text) == 1:
                refuse(context, 10, pushback=-1)
            else:
                again.set()
            return answer(request)

    with serving(Refusing()) as service:
        assert work(service.target, batch_size=1).shape == (2, 2)
    assert sorted(came) == ["one", "two", "two"]


class Refused(grpc.RpcError):
    """QUEUE_FULL, as gRPC raises it. pause: ms."""

    def __init__(self, pause):
        self.status = failure(8, "QUEUE_FULL", pause)

    def code(self):
        return grpc.StatusCode.RESOURCE_EXHAUSTED

    def details(self):
        return self.status.message

    def trailing_metadata(self):
        return (("grpc-status-details-bin", self.status.SerializeToString()),)


@pytest.mark.parametrize("named, pause, timeout, most", [
    (400, 0.4, None, 0.6), (1, 0.01, None, 0.015), (0, 0.01, None, 0.015),
    (4_000_000, 4000, 4400, 4400)])
def test_a_call_pauses_as_long_as_the_server_says_but_10_ms(named, pause,
                                                            timeout, most):
    for _ in range(100):
        retries = Retries(Link("there", False), encoder_pb2.EmbedRequest(), (),
                          timeout)
        assert pause <= retries.pause(Refused(named)) <= most


@pytest.mark.parametrize("named, pause", [(400, 0.4), (1, 0.01), (0, 0.01)])
def test_a_request_of_a_stream_does_too(named, pause):
    bulk = _stream_state.make_bulk(
        ["one"], batch_size=1, requests_in_flight=1, precision="float32",
        on_error=None, model="", patience=60, link=Link("there", False))
    bulk.add("one")
    bulk.connected()
    request, = bulk.requests(0.0)
    bulk.handle(encoder_pb2.EmbedResponse(
        request_id=request.request_id,
        error=failure(8, "QUEUE_FULL", named)), waited=0.0, now=0.0)
    assert bulk.wait(0.0) == pause
    assert list(bulk.requests(pause / 2)) == []
    assert list(bulk.requests(pause)) == [request]


def test_a_refused_call_of_a_list_that_is_cut_again_is_not_sent_again():
    changed = threading.Event()

    class Future:
        """Of an attempt that has ended: cancelling it has no effect."""

        def __init__(self, error):
            self.error = error

        def add_done_callback(self, callback):
            callback(self)

        def cancelled(self):
            return False

        def cancel(self):
            return False

        def done(self):
            return True

        def exception(self):
            return self.error

        def result(self):
            return "answer"

    class Method:
        link = Link("there", False)

        def __init__(self, *errors):
            self.errors = list(errors)
            self.sent = 0

        def future(self, request, timeout):
            self.sent += 1
            return Future(self.errors.pop(0))

    left, kept = Method(Refused(1)), Method(Refused(1), None)
    calls = [Call(method, encoder_pb2.EmbedRequest(), 60, changed)
             for method in (left, kept)]
    calls[0].cancel()
    assert calls[1].result(calls) == "answer"
    time.sleep(0.02)
    assert calls[1].result(calls) == "answer"
    assert (left.sent, kept.sent) == (1, 2)


@BOTH
@pytest.mark.parametrize("mute", [False, True])
def test_the_timeout_ends_the_waiting(serve, work, mute):
    # More time, until a slow machine gets past gRPC's own attempts.
    for timeout in (0.5, 1, 2, 4, 8, 16, 32):
        service, target = serve(GRPCS_OWN_ATTEMPTS if mute else 10**9,
                                mute=mute)
        with pytest.raises((encoderd.QueueFullError,
                            encoderd.DeadlineExceededError)) as caught:
            work(target, timeout=timeout)
        if service.calls > GRPCS_OWN_ATTEMPTS:
            # Also if the last attempt itself had no answer in time.
            assert caught.value.reason == "QUEUE_FULL"
            return
    pytest.fail(f"{service.calls} calls in {timeout} s")


@BOTH
def test_without_a_pause_the_error_comes_with_reason_and_metadata(serve, work):
    service, target = serve(refusals=10**9, pause=False)
    with pytest.raises(encoderd.QueueFullError) as caught:
        work(target)
    assert caught.value.reason == "QUEUE_FULL"
    assert caught.value.metadata == {"limit": "9"}
    assert caught.value.message == "the queue is full"
    assert service.calls == GRPCS_OWN_ATTEMPTS


def service_config():
    return (importlib.resources.files("encoderd")
            / "service_config.json").read_text(encoding="utf-8")


@contextlib.contextmanager
def plain(target):
    """Embed, once, over a channel with the shipped configuration and none of
    our code."""
    with grpc.insecure_channel(target, [
            ("grpc.service_config", service_config()),
            ("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub = encoder_pb2_grpc.EncoderStub(channel)
        yield lambda: stub.Embed(encoder_pb2.EmbedRequest(
            inputs=[encoder_pb2.Input(text="x")]), timeout=60)


def test_a_plain_channel_waits_for_a_full_queue(serve):
    service, target = serve(refusals=3)
    with plain(target) as embed:
        assert len(embed().embeddings) == 1
    assert service.calls == 4


def test_a_plain_channel_tries_five_times(serve):
    service, target = serve(refusals=10**9)
    with plain(target) as embed, pytest.raises(grpc.RpcError) as caught:
        embed()
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert service.calls == GRPCS_OWN_ATTEMPTS


def test_an_outage_costs_a_fifth_more_attempts_and_then_all_is_well(serve):
    # As many calls as ten callers make in 60 s with a call a second each.
    calls = 600
    service, target = serve(refusals=10**9)
    with plain(target) as embed:
        for _ in range(calls):
            with pytest.raises(grpc.RpcError):
                embed()
        assert calls < service.calls <= 1.2 * calls
        service.refusals = service.calls
        assert len(embed().embeddings) == 1


def test_after_a_spell_of_refusals_as_many_good_calls_bring_retries_back():
    # gRPC stops its retries after 50 refused attempts, and counts 100 at most.
    # A tokenRatio of 1, not 1.0, is 0.001 to its core.
    spell, good = 120, 64

    class Spell(Busy):
        """Then answers `good` calls, and ends one as a server that drains."""

        def Embed(self, request, context):
            if self.calls == spell + good:
                self.calls += 1
                context.abort(grpc.StatusCode.UNAVAILABLE, "draining")
            return super().Embed(request, context)

    with serving(Spell(spell, pause=True)) as service, encoderd.Client(
            service.target) as client:
        for _ in range(good):
            client.encode("x")
        client.encode("x")
    assert service.calls == spell + good + 2


@pytest.mark.parametrize("shipped", [True, False])
def test_calls_are_spread_over_all_addresses(serve, shipped):
    one, first = serve(refusals=0)
    two, second = serve(refusals=0)
    target = f"ipv4:{first},{second}"
    with contextlib.ExitStack() as stack:
        if shipped:
            embed = stack.enter_context(plain(target))
        else:
            client = stack.enter_context(encoderd.Client(target))

            def embed():
                client.encode("x")
        # The second connection may be ready later than the first.
        eventually(lambda: embed() or (one.calls and two.calls),
                   "a call of each")
        before = one.calls, two.calls
        for _ in range(10):
            embed()
    assert one.calls - before[0] == two.calls - before[1] == 5


def test_grpc_tries_every_call_again_and_no_stream():
    # In gRPC 1.71 and 1.85 a stream with a retry policy ends the process when
    # the server breaks it off while requests are in flight.
    named = [name for config in json.loads(service_config())["methodConfig"]
             for name in config["name"]]
    service = encoder_pb2.DESCRIPTOR.services_by_name["Encoder"]
    assert sorted(named, key=str) == sorted(
        ({"service": service.full_name, "method": method.name}
         for method in service.methods if not method.client_streaming),
        key=str)


class NoCall:
    """As if it were in flight."""

    def cancel(self):
        pass


@pytest.mark.parametrize("answered, words", [
    (0, "no response from there within 60 s; raise timeout=, lower "
        "batch_size= or the client's calls_in_flight=, or check that an "
        "encoderd serves there"),
    (1, "no response from there within 60 s; 1 other call of this list had an "
        "answer; raise timeout=, or lower batch_size= or the client's "
        "calls_in_flight=: they share the server; embed_stream() hands over "
        "each result as it comes"),
    (3, "no response from there within 60 s; 3 other calls of this list had an "
        "answer; raise timeout=, or lower batch_size= or the client's "
        "calls_in_flight=: they share the server; embed_stream() hands over "
        "each result as it comes")])
def test_a_call_that_is_late_blames_the_other_calls_of_its_list(answered,
                                                                words):
    many = Many("Embed", cut(["one"] * 8, 1), lambda inputs: None,
                lambda part, answer: None)
    calls = calls_of_list(many, lambda *_: NoCall(), 4)
    next(calls)
    for _ in range(answered):
        calls.send(None)
    with pytest.raises(encoderd.DeadlineExceededError) as caught:
        calls.throw(out_of_time(Link("there", False), 60.0))
    assert str(caught.value) == f"DEADLINE_EXCEEDED: {words}"
