"""AsyncClient against the fake service: the same answers as Client's."""

import asyncio
import threading

import encoderd
import numpy as np
import pytest
from python_service import Model
from python_service import serve as serving
from server_process import eventually

TOO_LONG = "a b c d e f g"  # 9 tokens; the fake takes 8


def with_client(target, work, **options):
    """Runs work(client) in a new event loop."""
    async def main():
        async with encoderd.AsyncClient(target, **options) as client:
            return await work(client)
    return asyncio.run(main())


def test_every_method_answers_as_the_blocking_client_does(fake):
    texts = ["~slow"] + [f"text {i}" for i in range(299)]

    async def work(client):
        return (await client.encode(texts, batch_size=16),
                await client.encode("one"),
                await client.embed(["one", TOO_LONG], truncate="end"),
                await client.token_embeddings("two words"),
                await client.tokenize("two words"),
                (await client.inspect_positions(2, 4)).norms.tolist(),
                [model.name for model in await client.models()],
                (await client.model()).max_len,
                await client.health())

    matrix, one, cut, states, tokens, *rest = with_client(fake.target, work)
    assert rest == [[2, 3, 4, 5], ["fake"], 8, "SERVING"]
    with encoderd.Client(fake.target) as client:
        np.testing.assert_array_equal(matrix, client.encode(texts))
        np.testing.assert_array_equal(one, client.encode("one"))
        assert cut.truncated.tolist() == [False, True]
        np.testing.assert_array_equal(states,
                                      client.token_embeddings("two words"))
        assert tokens == client.tokenize("two words")


def test_both_clients_have_the_same_methods():
    def public(kind):
        return {name for name in dir(kind) if not name.startswith("_")}
    assert public(encoderd.Client) == public(encoderd.AsyncClient)


def test_tasks_share_a_client(fake):
    texts = [f"text {i}" for i in range(200)]

    async def work(client):
        return await asyncio.gather(*(client.encode(texts) for _ in range(4)))

    first, *others = with_client(fake.target, work)
    for matrix in others:
        np.testing.assert_array_equal(matrix, first)


def test_the_first_error_of_the_list_is_raised(fake):
    texts = ["~slow", TOO_LONG, "fine", TOO_LONG]

    async def work(client):
        with pytest.raises(encoderd.InputTooLongError) as caught:
            await client.encode(texts, batch_size=2)
        return caught.value.input_index

    assert with_client(fake.target, work) == 1


def test_an_error_leaves_no_call_in_flight(fake):
    async def work(client):
        with pytest.raises(encoderd.InputTooLongError):
            await client.encode([TOO_LONG] + ["~slow", TOO_LONG] * 8,
                                batch_size=1)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert with_client(fake.target, work) == set()


def test_what_is_no_text_is_a_type_error(fake):
    async def work(client):
        with pytest.raises(TypeError, match=r"inputs\[1\] is None"):
            await client.encode(["fine", None])
        with pytest.raises(ValueError, match="batch_size is 0"):
            await client.encode(["fine"], batch_size=0)

    with_client(fake.target, work)


class Held(Model):
    """While `holds`, it answers no call until its caller cancels it."""

    def __init__(self):
        super().__init__()
        self.holds = True
        self.begun, self.cancelled = [], []

    def Embed(self, request, context):
        if self.holds:
            over = threading.Event()
            self.begun.append(request)
            if context.add_callback(over.set):
                over.wait()
            self.cancelled.append(request)
        return super().Embed(request, context)


def test_a_cancelled_task_cancels_its_calls():
    async def work(client):
        task = asyncio.ensure_future(client.encode(["x"] * 64, batch_size=1))
        await asyncio.to_thread(
            eventually, lambda: len(service.begun) >= 4, "calls in flight")
        assert not service.cancelled
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await asyncio.to_thread(
            eventually, lambda: len(service.cancelled) == 4, "their end")
        assert len(service.begun) == 4
        service.holds = False
        return await client.encode("one")

    with serving(Held()) as service:
        assert with_client(service.target, work, timeout=None,
                           calls_in_flight=4).shape == (2,)


def test_a_busy_server_is_asked_again_and_a_gone_one_is_unavailable(
        busy_fake, gone):
    async def encode(client):
        return await client.encode("one")

    assert with_client(busy_fake.target, encode).shape == (6,)
    with pytest.raises(encoderd.UnavailableError):
        with_client(gone, encode)
    with pytest.raises(encoderd.DeadlineExceededError):
        with_client(busy_fake.target, lambda c: c.encode("~~never"),
                    timeout=0.05)


def test_a_client_made_outside_a_loop_belongs_to_that_of_its_first_call(fake):
    client = encoderd.AsyncClient(fake.target)

    async def use():
        found = await client.encode("one")
        streamed = [found async for found in client.embed_stream(["one"])]
        assert len(streamed) == 1
        return found

    async def use_and_close():
        found = await use()
        await client.close()
        return found

    assert asyncio.run(use_and_close()).shape == (6,)
    client = encoderd.AsyncClient(fake.target)
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(use())
        for call in (client.encode("one"), client.health(),
                     client.embed_stream(["one"]).__anext__()):
            async def awaited(call=call):
                await call

            with pytest.raises(RuntimeError) as caught:
                asyncio.run(awaited())
            assert str(caught.value) == (
                "this client belongs to another event loop, that of its first "
                "call; make a client in each loop, such as inside the "
                "function that asyncio.run() runs")
        loop.run_until_complete(use_and_close())
    finally:
        loop.close()


def test_a_closed_client_leaves_no_events_to_the_next_loop(gone):
    errors = []

    async def stream(client):
        async for _ in client.embed_stream(["a text"]):
            pass

    async def work():
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: errors.append(context))
        async with encoderd.AsyncClient(gone) as client:
            streams = [asyncio.ensure_future(stream(client)) for _ in range(8)]
            await asyncio.sleep(0.02)  # they wait for a server
            for each in streams:
                each.cancel()
            await asyncio.gather(*streams, return_exceptions=True)

    for _ in range(60):
        asyncio.run(work())
    assert not errors


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_source_is_closed_though_its_task_is_cancelled_twice(fake, turns):
    async def work():
        answered, closed = asyncio.Event(), asyncio.Event()

        async def source():
            try:
                yield "a text"
                await asyncio.Event().wait()
            finally:
                closed.set()

        async def stream(client):
            async for _ in client.embed_stream(source()):
                answered.set()

        async with encoderd.AsyncClient(fake.target) as client:
            task = asyncio.ensure_future(stream(client))
            await answered.wait()
            task.cancel()
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return closed.is_set()

    assert asyncio.run(work())
