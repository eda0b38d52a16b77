"""embed_stream() of both clients: order, laziness, errors, broken streams; on
services that do what each test needs, and on the fake and the real server."""

import asyncio
import itertools
import threading

import encoderd
import numpy as np
import pytest
from google.rpc import code_pb2
from python_service import serve
from server_process import eventually
from stream_service import (PATIENCE, Streams, answer, awaited, awaited_async,
                            blocking, break_after, failure, refusal, texts)

DRAINING = failure(code_pb2.UNAVAILABLE, "DRAINING")
QUEUE_FULL = failure(code_pb2.RESOURCE_EXHAUSTED, "QUEUE_FULL", pause_ms=1)
EXPIRED = failure(code_pb2.DEADLINE_EXCEEDED, "EXPIRED_IN_QUEUE")
DEVICE_FAULT = failure(code_pb2.INTERNAL, "DEVICE_FAULT")

BOTH = pytest.mark.parametrize("work", [blocking, awaited])
ALL = pytest.mark.parametrize("work", [blocking, awaited, awaited_async])


def numbers(found):
    return [int(result.vector[0]) for result in found]


@ALL
def test_every_input_has_its_result_in_the_order_of_the_source(work):
    with serve(Streams()) as service:
        found = work(service.target, iter(texts(200)), batch_size=7,
                     requests_in_flight=3, windows=4, precision="float32")
    assert numbers(found) == list(range(200))
    assert [result.index for result in found] == list(range(200))
    assert [result.input for result in found] == texts(200)
    assert found[0].vector.dtype == np.float32
    assert {(r.token_count, r.windows, r.error) for r in found} == {
        (3, 2, None)}
    assert len(service.seen) == 1
    assert [len(request.inputs) for request in service.requests] == (
        [7] * 28 + [4])
    assert service.requests[0].options.windows.overlap == 4
    assert service.requests[0].options.packed


@BOTH
def test_answers_out_of_order_are_put_in_order(work):
    def backwards(requests):
        while True:
            some = list(itertools.islice(requests, 4))
            yield from map(answer, reversed(some))
            if len(some) < 4:
                return

    with serve(Streams(backwards)) as service:
        found = work(service.target, texts(80), batch_size=10,
                     requests_in_flight=4, timeout=None)
    assert numbers(found) == list(range(80))


@BOTH
def test_an_empty_source_calls_nobody(work, gone):
    assert work(gone, []) == []


@BOTH
def test_a_bad_input_has_its_error_in_its_place(work):
    source = ["text 0", "\ud800", "!", "text 3", "\udfff", "\udffe", "text 6"]
    with serve(Streams()) as service:
        found = work(service.target, source, batch_size=2,
                     on_error="per_input")
    assert [r.error and (r.error.reason, r.index) for r in found] == [
        None, ("INVALID_UTF8", 1), ("EMPTY_INPUT", 2), None,
        ("INVALID_UTF8", 4), ("INVALID_UTF8", 5), None]
    assert found[2].error.message == "inputs[2] is empty"
    assert found[2].vector.shape == (0,)
    assert numbers([found[0], found[3], found[6]]) == [0, 3, 6]


@pytest.mark.parametrize("bad, error", [
    ("!", encoderd.InvalidInputError), ("\ud800", encoderd.InvalidInputError),
    (None, TypeError)])
def test_an_error_is_raised_when_its_turn_has_come(bad, error):
    source = texts(25) + [bad] + texts(25)
    with serve(Streams()) as service, encoderd.Client(service.target) as client:
        stream = client.embed_stream(source, batch_size=10)
        assert numbers(itertools.islice(stream, 25)) == list(range(25))
        with pytest.raises(error):
            next(stream)

        async def main():
            found = []
            async with encoderd.AsyncClient(service.target) as twin:
                with pytest.raises(error):
                    async for result in twin.embed_stream(source,
                                                          batch_size=10):
                        found.append(result)
            return found

        assert numbers(asyncio.run(main())) == list(range(25))


def test_what_the_source_raises_comes_after_what_came_before():
    class Broken(Exception):
        pass

    def source():
        yield from texts(25)
        raise Broken

    with serve(Streams()) as service, encoderd.Client(service.target) as client:
        stream = client.embed_stream(source(), batch_size=10)
        assert numbers(itertools.islice(stream, 25)) == list(range(25))
        with pytest.raises(Broken):
            next(stream)

        async def main():
            found = []
            async with encoderd.AsyncClient(service.target) as twin:
                with pytest.raises(Broken):
                    async for result in twin.embed_stream(source(),
                                                          batch_size=10):
                        found.append(result)
            return found

        assert numbers(asyncio.run(main())) == list(range(25))
    assert sum(len(request.inputs) for request in service.requests) == 50


@BOTH
def test_a_broken_stream_is_reopened(work):
    with serve(Streams(break_after(2, DRAINING), break_after(1, None),
                       break_after(3, failure(code_pb2.INTERNAL)))) as service:
        found = work(service.target, texts(200), batch_size=10,
                     requests_in_flight=4)
    assert numbers(found) == list(range(200))
    # Each stream began with what was not answered, and little came twice.
    firsts = [int(seen[0]) for seen in service.seen]
    assert len(firsts) >= 4 and firsts == sorted(set(firsts))
    assert len(service.requests) <= 20 + 3 * 4


@BOTH
@pytest.mark.parametrize("status", [QUEUE_FULL, EXPIRED])
def test_what_a_full_queue_refused_is_sent_again(work, status):
    def full(requests):
        refused = set()
        for request in requests:
            if (int(request.request_id) % 3 == 0
                    and request.request_id not in refused):
                refused.add(request.request_id)
                yield refusal(request, status)
            else:
                yield answer(request)

    with serve(Streams(full)) as service:
        found = work(service.target, texts(100), batch_size=10)
    assert numbers(found) == list(range(100))
    assert sorted(service.seen[0]) == sorted(
        [str(i) for i in range(10)] + ["0", "3", "6", "9"])


@BOTH
def test_what_expires_in_the_queue_until_the_timeout_says_so(work):
    def expire(requests):
        for request in requests:
            yield refusal(request, EXPIRED)

    # More time, until a slow machine sends it again.
    for timeout in (0.5, 1, 2, 4, 8, 16, 32):
        with serve(Streams(expire)) as service:
            with pytest.raises(encoderd.DeadlineExceededError) as caught:
                work(service.target, texts(3), timeout=timeout)
        if len(service.requests) > 1:
            assert caught.value.reason == "EXPIRED_IN_QUEUE"
            return
    pytest.fail(f"{len(service.requests)} requests in {timeout} s")


@BOTH
@pytest.mark.parametrize("status, error", [
    (DEVICE_FAULT, encoderd.ServerFaultError),
    (failure(code_pb2.NOT_FOUND, "MODEL_NOT_FOUND"), encoderd.NotFoundError)])
def test_an_error_that_no_other_try_mends_ends_it(work, status, error):
    def fail(requests):
        for request in requests:
            yield refusal(request, status)

    with serve(Streams(fail)) as service:
        with pytest.raises(error) as caught:
            work(service.target, texts(100), on_error="per_input")
    assert caught.value.reason == status.message.split()[1]
    assert len(service.seen) == 1


@BOTH
def test_a_stream_refused_for_good_ends_it(work):
    def refuse(requests):
        # All of them: a write that fails would hide the status in grpc.aio.
        for _ in itertools.islice(requests, 10):
            pass
        yield from ()
        return failure(code_pb2.INVALID_ARGUMENT, "MALFORMED_MESSAGE")

    with serve(Streams(refuse)) as service:
        with pytest.raises(encoderd.InvalidInputError) as caught:
            work(service.target, texts(100), batch_size=10)
    assert caught.value.reason == "MALFORMED_MESSAGE"
    assert len(service.seen) == 1


@BOTH
def test_an_answer_that_nobody_waits_for_is_a_fault(work):
    def twice(requests):
        for request in requests:
            yield answer(request)
            yield answer(request)

    with serve(Streams(twice)) as service:
        with pytest.raises(encoderd.ServerFaultError, match="is not in flight"):
            work(service.target, texts(100), batch_size=10)


@BOTH
def test_a_server_that_answers_nothing_is_waited_for_until_the_timeout(work):
    def silent(requests):
        for _ in requests:
            pass
        yield from ()

    with serve(Streams(silent)) as service:
        with pytest.raises(encoderd.DeadlineExceededError):
            work(service.target, texts(3), timeout=0.3)


@BOTH
def test_nobody_listening_is_unavailable_after_the_timeout(work, gone):
    with pytest.raises((encoderd.UnavailableError,
                        encoderd.DeadlineExceededError)):
        work(gone, texts(3), timeout=0.3)


def test_the_source_is_read_only_as_far_as_the_window(fake):
    read = itertools.count()
    source = (f"text {next(read)}" for _ in itertools.count())
    with encoderd.Client(fake.target) as client:
        stream = client.embed_stream(source, batch_size=5,
                                     requests_in_flight=3)
        assert next(read) == 0  # nothing was read yet
        taken = list(itertools.islice(stream, 103))
        assert taken[102].index == 102
        # 103 taken, of the request that is being handed over 5 at most.
        assert next(read) <= 1 + 103 + 5 + 3 * 5 + 1
        stream.close()


def still_reading():
    return [t for t in threading.enumerate() if t.name == "encoderd-stream"]


def test_leaving_the_loop_ends_the_stream():
    with serve(Streams()) as service, encoderd.Client(service.target) as client:
        for result in client.embed_stream(f"text {i}"
                                          for i in itertools.count()):
            if result.index == 100:
                break
        assert service.ended.wait(PATIENCE)
        eventually(lambda: not still_reading(), "the end of the reader")
        assert numbers(client.embed_stream(texts(3))) == [0, 1, 2]


def test_aclose_and_a_cancelled_task_end_the_stream():
    async def main(service, cancel):
        async with encoderd.AsyncClient(service.target) as client:
            stream = client.embed_stream(f"text {i}"
                                         for i in itertools.count())

            in_flight = asyncio.Event()

            async def take():
                async for result in stream:
                    if result.index == 100:
                        in_flight.set()
                        if not cancel:
                            return

            task = asyncio.ensure_future(take())
            await in_flight.wait()
            if cancel:
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                await task
                await stream.aclose()
            ended = await asyncio.get_running_loop().run_in_executor(
                None, service.ended.wait, PATIENCE)
            again = client.embed_stream(texts(3))
            return ended, numbers([found async for found in again])

    for cancel in (False, True):
        with serve(Streams()) as service:
            assert asyncio.run(main(service, cancel)) == (True, [0, 1, 2])


def test_a_client_that_is_closed_ends_its_streams():
    endless = (f"text {i}" for i in itertools.count())
    with serve(Streams()) as service:
        client = encoderd.Client(service.target)
        stream = client.embed_stream(endless, batch_size=4)
        next(stream)
        client.close()
        with pytest.raises(encoderd.EncoderdError, match="CANCELLED"):
            for _ in stream:
                pass

        async def main():
            twin = encoderd.AsyncClient(service.target)
            stream = twin.embed_stream(endless, batch_size=4)
            await stream.__anext__()
            await twin.close()
            with pytest.raises(encoderd.EncoderdError, match="CANCELLED"):
                async for _ in stream:
                    pass

        asyncio.run(main())


def test_wrong_arguments_are_refused_before_anything_is_read(fake):
    with encoderd.Client(fake.target) as client:
        with pytest.raises(TypeError, match="takes an iterable of inputs"):
            client.embed_stream("a text")
        with pytest.raises(ValueError, match="requests_in_flight is 65"):
            client.embed_stream(["text"], requests_in_flight=65)
        with pytest.raises(ValueError, match="batch_size is 0"):
            client.embed_stream(["text"], batch_size=0)
        with pytest.raises(ValueError, match="on_error is 'skip'"):
            client.embed_stream(["text"], on_error="skip")


@ALL
def test_the_fake_server_answers_as_embed_does(work, fake):
    source = [f"text {i}" for i in range(300)]
    source[120] = "a b c d e f g"  # 9 tokens; the fake takes 8
    found = work(fake.target, source, batch_size=16, on_error="per_input")
    assert [r.index for r in found if r.error] == [120]
    assert found[120].error.input_index == 120
    assert found[120].error.max_tokens == 8
    del source[120], found[120]
    with encoderd.Client(fake.target) as client:
        np.testing.assert_array_equal(
            np.stack([r.vector for r in found]), client.encode(source))


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_real_server_gives_in_a_stream_what_embed_gives(server, precision):
    source = [f"sentence {i} " + "word " * (i % 40) for i in range(80)]
    source[7], source[50] = "", "word " * 600
    options = dict(precision=precision, windows=20, on_error="per_input")
    found = blocking(server, source, **options)
    assert [(r.index, r.error.reason) for r in found if r.error] == [
        (7, "EMPTY_INPUT")]
    assert found[50].windows == 3
    with encoderd.Client(server) as client:
        result = client.embed(source, **options)
    for i in result.ok.nonzero()[0]:
        np.testing.assert_array_equal(found[i].vector, result.vectors[i])
        assert found[i].vector.dtype == result.vectors.dtype
        assert found[i].scale == result.scales[i]
        assert found[i].token_count == result.token_counts[i]
    assert awaited(server, source[:3])[2].vector.shape == (384,)
