"""embed_stream() of both clients: what is too large for a message, and streams
that end in ways that nobody planned."""

import asyncio
import threading

import encoderd
import grpc
import pytest
from encoderd import _stream_asyncio, _stream_blocking, _stream_state
from encoderd._connection_errors import Link
from encoderd.errors import make_error
from google.rpc import code_pb2
from python_service import serve
from stream_service import (PATIENCE, Streams, answer, answer_all, awaited,
                            blocking, failure, refusal, texts)

BOTH = pytest.mark.parametrize("work", [blocking, awaited])
MIB = 1 << 20
LINK = Link("127.0.0.1:1", encrypted=False)
TOO_LARGE = failure(code_pb2.INVALID_ARGUMENT, "REQUEST_TOO_LARGE")
TOO_MANY = failure(code_pb2.INVALID_ARGUMENT, "TOO_MANY_INPUTS", limit="3")


def reasons(found):
    return {r.index: r.error.reason for r in found if r.error}


@BOTH
def test_an_input_that_is_too_large_costs_its_own_answer_only(work):
    source = texts(40)
    source[20] = "x" * (5 * MIB)
    source[30] = "x" * (20 * MIB)
    with serve(Streams()) as service:
        found = work(service.target, source, batch_size=7,
                     on_error="per_input")
    assert reasons(found) == {20: "REQUEST_TOO_LARGE", 30: "REQUEST_TOO_LARGE"}
    assert found[20].error.input_index == 20
    assert found[30].error.input_index == 30
    assert int(found[30].error.metadata["request_bytes"]) > 20 * MIB
    del found[30]
    del found[20]
    assert [int(r.vector[0]) for r in found] == [
        *range(20), *range(21, 30), *range(31, 40)]


def test_an_input_that_is_too_large_is_named_in_its_turn():
    size = 5 * MIB
    source = texts(9) + ["x" * size] + texts(9)
    with serve(Streams()) as service, encoderd.Client(
            service.target, timeout=PATIENCE) as client:
        stream = client.embed_stream(source, batch_size=2)
        assert [next(stream).index for _ in range(9)] == list(range(9))
        with pytest.raises(encoderd.InvalidInputError) as caught:
            next(stream)
    error = caught.value
    assert (error.reason, error.input_index) == ("REQUEST_TOO_LARGE", 9)
    assert int(error.metadata["request_bytes"]) > size
    assert error.message.startswith("inputs[9] makes a message of ")


def test_a_request_that_grpc_refuses_as_a_whole_goes_in_halves():
    source = [f"text {i} " + "y" * 100_000 for i in range(21)]
    with serve(Streams(), max_message_bytes=350_000) as service:
        found = blocking(service.target, source, batch_size=8)
    assert [int(r.vector[0]) for r in found] == list(range(21))


@BOTH
def test_a_request_that_the_server_refuses_as_a_whole_goes_in_halves(work):
    def at_most_two(requests):
        for request in requests:
            large = len(request.inputs) > 2 or request.inputs[0].text == "?"
            yield refusal(request, TOO_LARGE) if large else answer(request)

    source = texts(30)
    source[4], source[5] = "\ud800", "!"
    source[11] = "\ud800"
    source[17] = "?"
    source[18] = "\ud800"
    with serve(Streams(at_most_two)) as service:
        found = work(service.target, source, batch_size=10,
                     on_error="per_input")
    assert len(service.seen) == 1
    # "?" is too large alone, and with the one text next to it.
    assert reasons(found) == {
        4: "INVALID_UTF8", 5: "EMPTY_INPUT", 11: "INVALID_UTF8",
        17: "REQUEST_TOO_LARGE", 18: "INVALID_UTF8"}
    assert found[17].error.input_index == 17
    assert found[5].error.message == "inputs[5] is empty"
    assert [r.index for r in found] == list(range(30))
    assert all(r.error or int(r.vector[0]) == r.index for r in found)


@BOTH
def test_after_a_refusal_requests_have_as_many_inputs_as_the_server_takes(
        work):
    def at_most_three(requests):
        for request in requests:
            many = len(request.inputs) > 3
            yield refusal(request, TOO_MANY) if many else answer(request)

    source = texts(100)
    source[4] = source[11] = "\ud800"
    with serve(Streams(at_most_three)) as service:
        found = work(service.target, source, batch_size=8,
                     requests_in_flight=2, on_error="per_input")
    assert reasons(found) == {4: "INVALID_UTF8", 11: "INVALID_UTF8"}
    assert all(r.error or int(r.vector[0]) == r.index for r in found)
    assert [r.index for r in found] == list(range(100))
    sizes = [len(request.inputs) for request in service.requests]
    # The two in flight before the first answer, each refused once.
    assert [size for size in sizes if size > 3] == [7, 7]


@BOTH
def test_a_refusal_without_a_number_halves_later_requests_too(work):
    unnamed = failure(code_pb2.INVALID_ARGUMENT, "TOO_MANY_INPUTS")

    def at_most_three(requests):
        for request in requests:
            many = len(request.inputs) > 3
            yield refusal(request, unnamed) if many else answer(request)

    with serve(Streams(at_most_three)) as service:
        found = work(service.target, texts(100), batch_size=8,
                     requests_in_flight=2)
    assert [int(r.vector[0]) for r in found] == list(range(100))
    sizes = [len(request.inputs) for request in service.requests]
    assert [size for size in sizes if size > 4] == [8, 8]
    assert sizes.count(4) <= 4  # their halves


@BOTH
def test_a_large_text_travels_alone(work):
    source = texts(10)
    source[5] += " " + "y" * MIB
    with serve(Streams()) as service:
        found = work(service.target, source, requests_in_flight=1)
    assert [int(r.vector[0]) for r in found] == list(range(10))
    assert [len(request.inputs) for request in service.requests] == [5, 1, 4]


def test_a_large_text_waits_for_room_as_any_other():
    bulk = _stream_state.make_bulk(
        texts(1), batch_size=64, requests_in_flight=1, precision="float32",
        on_error=None, model="", patience=None,
            link=LINK)
    bulk.add("text 0")
    assert bulk.add("text 1 " + "y" * MIB)  # both are full now
    assert not bulk.wants_input
    bulk.connected()
    (first,) = bulk.requests(0.0)
    assert first.inputs[0].text == "text 0"
    bulk.handle(answer(first), 0.0, 0.0)
    assert [result.index for result in bulk.ready()] == [0]
    (second,) = bulk.requests(0.0)
    assert second.inputs[0].text.startswith("text 1")
    assert not bulk.wants_input


class Reset(Streams):
    """Resets its first `resets` streams, each after one answer or none; the
    client did not ask for that."""

    def __init__(self, resets, answers):
        super().__init__()
        self._resets = resets
        self._answers = answers

    def EmbedStream(self, requests, context):
        self.seen.append([])
        for request in requests:
            if len(self.seen) <= self._resets:
                if self._answers:
                    yield answer(request)
                    next(requests)
                context.cancel()
                return
            yield answer(request)


@BOTH
@pytest.mark.parametrize("answers", [False, True])
def test_a_stream_that_the_server_resets_is_opened_again(work, answers):
    with serve(Reset(3, answers)) as service:
        found = work(service.target, texts(40), batch_size=2)
    assert [int(r.vector[0]) for r in found] == list(range(40))
    assert len(service.seen) == 4


@BOTH
def test_a_stream_that_is_reset_again_and_again_raises_after_the_timeout(work):
    with serve(Reset(10**9, answers=False)) as service:
        with pytest.raises(encoderd.UnavailableError) as caught:
            work(service.target, texts(3), timeout=4)
    assert caught.value.message == (
        f"the server at {service.target} reset the stream")


class Fragile(Streams):
    """Each of its streams ends with INTERNAL for a large request."""

    def __init__(self, *refusals):
        super().__init__()
        self.calls = 0
        self._refusals = iter(refusals)
        self._lock = threading.Lock()

    def EmbedStream(self, requests, context):
        self.seen.append([])
        for request in requests:
            if request.ByteSize() > MIB:
                context.abort(grpc.StatusCode.INTERNAL, "broken")
            yield answer(request)

    def Embed(self, request, context):
        with self._lock:
            self.calls += 1
            code = next(self._refusals, None)
        if code is not None:
            context.abort(code, "not now")
        return answer(request)


def test_in_asyncio_a_large_request_goes_alone_after_a_stream_broke_under_it():
    source = texts(30)
    source[4] += " " + "y" * MIB
    source[20] += " " + "y" * MIB
    with serve(Fragile(grpc.StatusCode.UNAVAILABLE,
                       grpc.StatusCode.INTERNAL)) as service:
        found = awaited(service.target, source, batch_size=2)
    assert [int(r.vector[0]) for r in found] == list(range(30))
    assert service.calls >= 4  # two were refused


def test_a_request_that_breaks_call_after_call_is_given_up():
    source = texts(3) + ["text 3 " + "y" * MIB]
    with serve(Fragile(*[grpc.StatusCode.INTERNAL] * 20)) as service:
        found = awaited(service.target, source, batch_size=2,
                        on_error="per_input")
    assert [int(r.vector[0]) for r in found[:3]] == [0, 1, 2]
    assert found[3].error.code is grpc.StatusCode.INTERNAL
    assert "inputs[3] on: not now" in found[3].error.message
    # The stream's break counts, too.
    assert service.calls == _stream_state.MOST_BREAKS - 1


def test_an_error_of_a_request_that_goes_alone_ends_it():
    source = texts(3) + ["text 3 " + "y" * MIB]
    with serve(Fragile(grpc.StatusCode.PERMISSION_DENIED)) as service:
        with pytest.raises(encoderd.EncoderdError, match="not now"):
            awaited(service.target, source, batch_size=2)


def test_a_large_request_that_breaks_stream_after_stream_is_given_up():
    bulk = _stream_state.make_bulk(
        texts(1), batch_size=1, requests_in_flight=16, precision="float32",
        on_error="per_input", model="", patience=None,
            link=LINK)
    sizes = [2 * MIB, 100, 3 * MIB, 100]
    for size in sizes:
        bulk.add("y" * size)
    bulk.end()
    sent = []
    now = 0.0
    for _ in range(2 * _stream_state.MOST_BREAKS):
        bulk.connected()
        sent.append([len(r.inputs[0].text) // MIB for r in bulk.requests(now)])
        late = make_error(grpc.StatusCode.INTERNAL, "late")
        bulk.handle(_stream_state.Ended(late), 0.0, now)
        now += _stream_state.LONGEST_PAUSE
    # The largest first; then the next one; small ones are never blamed.
    assert sent == ([[2, 0, 3, 0]] * _stream_state.MOST_BREAKS
                    + [[2, 0, 0]] * _stream_state.MOST_BREAKS)
    (first,) = bulk.ready()
    assert first.error.code is grpc.StatusCode.INTERNAL
    assert first.error.input_index == 0
    assert [len(r.inputs) for r in bulk.requests(now)] == []
    bulk.connected()
    assert len(list(bulk.requests(now))) == 2


@BOTH
@pytest.mark.parametrize("details", [
    b"\xff", b"\x1a\x02\xff\xff",
    # Not an ErrorInfo, whatever its type says.
    b"\x1a\x2e\x0a\x28type.googleapis.com/google.rpc.ErrorInfo\x12\x02\xff\xff",
])
def test_an_end_that_nobody_can_read_is_an_end_all_the_same(work, details):
    class Malformed(Streams):
        def EmbedStream(self, requests, context):
            next(requests)  # so that no write is too late for the end
            yield from ()
            context.set_trailing_metadata(
                [("grpc-status-details-bin", details)])
            context.set_code(grpc.StatusCode.NOT_FOUND)
            context.set_details("no such model")

    with serve(Malformed()) as service:
        with pytest.raises(encoderd.NotFoundError, match="no such model"):
            work(service.target, texts(1))


class Broken(Exception):
    pass


class BrokenCall:
    """A call of either kind that fails as no call should."""

    def __iter__(self):
        raise Broken

    def initial_metadata(self):
        raise Broken

    def add_callback(self, callback):
        return False

    def cancel(self):
        pass


def test_a_reader_that_fails_ends_the_stream():
    def bulk():
        return _stream_state.make_bulk(
            texts(3), batch_size=1, requests_in_flight=16, model="",
            precision="float32", on_error=None, patience=PATIENCE, link=LINK)

    def method(requests, wait_for_ready):
        return BrokenCall()

    method.link = LINK  # as the methods of a client have it
    with pytest.raises(Broken):
        next(_stream_blocking.run(
            bulk(), texts(3),
            lambda: _stream_blocking.Stream(method), lambda: None))

    async def main():
        stream = _stream_asyncio.run(
            bulk(), texts(3),
            lambda changed: _stream_asyncio.Stream(method, None, changed),
            lambda: None)
        with pytest.raises(Broken):
            await stream.__anext__()

    asyncio.run(main())


def test_the_example_of_embed_stream_reads_lines_without_their_ends(
        tmp_path, monkeypatch):
    lines = encoderd.Client.embed_stream.__doc__.splitlines()
    first = next(at for at, line in enumerate(lines) if "texts.txt" in line)
    example = "\n".join(line[12:] for line in lines[first:first + 5])
    (tmp_path / "texts.txt").write_text("text 0\ntext 1\n")
    monkeypatch.chdir(tmp_path)
    used = []
    with serve(Streams(answer_all)) as service, encoderd.Client(
            service.target) as client:
        exec(example, {"client": client, "use": lambda *args: used.append(
            args[:2])})
    assert used == [(0, "text 0"), (1, "text 1")]
