"""embed_stream() over a source that stalls: what came before goes on."""

import asyncio
import itertools
import math

import encoderd
import pytest
from encoderd import _stream_patience, _stream_state
from encoderd._connection_errors import Link
from python_service import serve
from stream_service import PATIENCE, Streams, answer, texts

LINK = Link("127.0.0.1:1", encrypted=False)


def awaited(work, *plans, **options):
    """work(client, service) in a loop; a hang is an error."""
    async def main(service):
        async with encoderd.AsyncClient(service.target, **options) as client:
            return await asyncio.wait_for(work(client, service), PATIENCE)

    with serve(Streams(*plans)) as service:
        return asyncio.run(main(service))


def test_a_source_that_waits_for_the_answers_gets_them():
    rounds = [3, 1, 9, 4, 2]  # inputs before each stall; 4 fill a request

    async def work(client, service):
        handed_over = asyncio.Semaphore(0)

        async def source():
            values = iter(texts(sum(rounds)))
            for count in rounds:
                for value in itertools.islice(values, count):
                    yield value
                for _ in range(count):
                    await handed_over.acquire()

        found = []
        async for result in client.embed_stream(source(), batch_size=4):
            found.append((result.index, int(result.vector[0])))
            handed_over.release()
        assert [len(request.inputs) for request in service.requests] == [
            3, 1, 4, 4, 1, 4, 2]
        return found

    assert awaited(work) == [(i, i) for i in range(sum(rounds))]


def test_a_separate_task_reads_a_source_as_far_as_the_window():
    read = 0

    async def work(client, service):
        async def source():
            nonlocal read
            for read in itertools.count(1):
                yield f"text {read - 1}"

        stream = client.embed_stream(source(), batch_size=5,
                                     requests_in_flight=3)
        for taken in range(1, 101):
            result = await stream.__anext__()
            assert result.index == taken - 1
            # Of the request that is being handed over 5 at most.
            assert read <= taken + 5 + 3 * 5
        await stream.aclose()

    awaited(work)
    assert read >= 100


@pytest.mark.parametrize("leave", ["cancel", "close"])
def test_leaving_ends_a_source_that_stalls(leave):
    async def work(client, service):
        stalls, left = asyncio.Event(), asyncio.Event()

        async def source():
            yield "text 0"
            stalls.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                left.set()
                raise

        stream = client.embed_stream(source())
        assert (await stream.__anext__()).index == 0
        task = asyncio.ensure_future(stream.__anext__())
        await stalls.wait()
        if leave == "cancel":
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await client.close()
            with pytest.raises(encoderd.EncoderdError, match="closed"):
                await task
        assert left.is_set()
        return await asyncio.get_running_loop().run_in_executor(
            None, service.ended.wait, PATIENCE)

    assert awaited(work)


def test_a_source_whose_own_wait_was_cancelled_ends_in_its_turn():
    async def work(client, service):
        async def source():
            for value in texts(3):
                yield value
            raise asyncio.CancelledError

        found = []
        with pytest.raises(asyncio.CancelledError):
            async for result in client.embed_stream(source(), batch_size=2):
                found.append(result.index)
        return found

    assert awaited(work) == [0, 1, 2]


def test_while_the_source_alone_is_waited_for_the_timeout_does_not_count():
    bulk = _stream_state.make_bulk(
        [], batch_size=4, requests_in_flight=2, precision="float32",
        on_error=None, model="", patience=0.5, link=LINK)
    assert bulk.wait(0.0) == math.inf
    bulk.add("text 0")
    assert not bulk.asks and not bulk.may_connect(0.0)
    assert bulk.flush() and not bulk.flush()
    assert bulk.asks and bulk.may_connect(0.0)
    bulk.connected()
    (request,) = bulk.requests(0.0)
    assert bulk.wait(0.0) == 0.25  # until the last look
    bulk.handle(None, 0.125, 2.0)
    assert bulk.wait(2.0) == 0.125
    bulk.handle(answer(request), 1.0, 3.0)
    assert [result.index for result in bulk.ready()] == [0]
    assert bulk.wait(3.0) == math.inf and bulk.wants_input
    # A stream that ends meanwhile is reopened for the next text only.
    bulk.handle(_stream_state.Ended(None), 0.0, 100.0)
    assert bulk.wait(200.0) == math.inf


def test_while_the_process_is_stopped_the_timeout_hardly_counts():
    bulk = _stream_state.make_bulk(
        [], batch_size=1, requests_in_flight=2, precision="float32",
        on_error=None, model="", patience=60.0, link=LINK)
    bulk.add("text 0")
    bulk.connected()
    assert len(list(bulk.requests(0.0))) == 1
    asked = bulk.wait(0.0)
    assert asked == _stream_patience.LONGEST_WAIT
    bulk.handle(None, 3600.0, 3600.0)
    # Of a server that is silent after that, too, the patience ends.
    waits = 0
    while not bulk.out_of_patience and waits < 100:
        waits += 1
        bulk.handle(None, asked, 3600.0 + waits)
    assert waits == 58
    late = bulk.give_up()
    assert isinstance(late, encoderd.DeadlineExceededError)
    assert "within 60 s" in late.message
