"""What a caller of Python gives or does by mistake, or a little off the way: a
result or an error that says so, never silence and never a hang."""

import asyncio
import copy
import sys
import threading
import traceback

import encoderd
import grpc
import numpy as np
import pytest
from encoderd.errors import make_error
from encoderd.v1 import encoder_pb2
from python_service import Held, Model, Service, serve

WIDTH = 6  # hidden_size of the fake


class Noted(Service):
    """Knows what it was asked."""

    def __init__(self):
        self.inputs = []

    def Embed(self, request, context):
        self.inputs += request.inputs
        return encoder_pb2.EmbedResponse(embeddings=[
            encoder_pb2.Embedding(packed=bytes(8)) for _ in request.inputs])


@pytest.fixture
def client(fake):
    with encoderd.Client(fake.target) as client:
        yield client


def test_arrays_of_texts_are_lists_of_texts(client):
    listed = client.encode(["one", "two words"])
    array = np.array(["one", "two words"])
    for texts in (array, array.astype(object)):
        np.testing.assert_array_equal(client.encode(texts), listed)
        np.testing.assert_array_equal(
            [found.vector for found in client.embed_stream(texts)], listed)
    np.testing.assert_array_equal(client.encode(array[0]), listed[0])


FLAT = "expected a text, or a list of texts"


@pytest.mark.parametrize("inputs, words", [
    (b"one", "is bytes; decode() it first"),
    (bytearray(b"one"), "is a bytearray; decode() it first"),
    ({"one": "two"}, f"is a dict; {FLAT}"), (None, f"is None; {FLAT}"),
    (5, f"is an int; {FLAT}"), (2.5, f"is a float; {FLAT}"),
    ({"one", "two"}, "is a set, which has no order; pass a list"),
    (np.array("one"), "is an ndarray, a single value; pass array.item()")])
def test_what_is_no_list_of_texts_is_named(client, inputs, words):
    for method in (client.embed, client.token_embeddings, client.tokenize,
                   client.embed_stream, client.encode, client.encode_query):
        with pytest.raises(TypeError) as caught:
            method(inputs)
        assert words in str(caught.value)


EXPECTED = "expected a str, a tuple of two str, or TokenIds"


@pytest.mark.parametrize("value, words", [
    (None, f"is None, a missing value; {EXPECTED}: drop or fill such rows "
           "first"), (5, f"is an int; {EXPECTED}"),
    (b"two", "is bytes; decode() it first"),
    (float("nan"), f"is nan, a missing value; {EXPECTED}: drop or fill such "
                   "rows first"),
    ({"text": "two"}, f"is a dict; {EXPECTED}"),
    (["two", "three"], "is a list of 2 texts; pass texts in one flat list, "
                       "and a pair of texts as a tuple"),
    (("two", 3), f"is a tuple of 2 (str, int); {EXPECTED}"),
    (("two",), f"is a tuple of 1 (str); {EXPECTED}")])
def test_what_is_no_text_is_named_by_its_place(client, value, words):
    for inputs in (["one", value], (text for text in ["one", value])):
        with pytest.raises(TypeError) as caught:
            client.encode(inputs)
        assert str(caught.value) == f"inputs[1] {words}"
    with pytest.raises(TypeError) as caught:
        list(client.embed_stream(["one", value]))
    assert str(caught.value) == f"inputs[1] {words}"


def test_what_is_no_text_at_the_end_costs_no_call():
    with serve(Model()) as service, encoderd.Client(service.target) as client:
        for method, options in (
                (client.encode, {}), (client.encode, {"on_error": "per_input"}),
                (client.token_embeddings, {})):
            with pytest.raises(TypeError, match=r"inputs\[999\] is None"):
                method(["x"] * 999 + [None], **options)
    assert not service.requests


def frames(caught):
    """Where an error comes from, as its traceback shows it."""
    return traceback.extract_tb(caught.value.__traceback__)


def test_a_wrong_argument_shows_no_more_of_the_package_than_a_method(client):
    for arguments, options in (
            ([["one", None]], {}), ([["one"]], {"truncate_dim": "5"}),
            ([["one"]], {"windows": -1})):
        with pytest.raises((TypeError, ValueError)) as caught:
            client.encode(*arguments, **options)
        assert [frame.name for frame in frames(caught)] == [
            "test_a_wrong_argument_shows_no_more_of_the_package_than_a_method",
            "encode", "_run"]

        async def main():
            async with encoderd.AsyncClient(
                    client._methods.link.target) as twin:
                await twin.encode(*arguments, **options)

        with pytest.raises((TypeError, ValueError)) as caught:
            asyncio.run(main())
        assert [frame.name for frame in frames(caught)][-3:] == [
            "main", "encode", "_run"]


def test_what_a_callers_generator_raises_shows_where(client):
    def texts():
        yield "one"
        raise ValueError("a line that cannot be read")

    with pytest.raises(ValueError, match="a line that") as caught:
        client.encode(texts())
    assert frames(caught)[-1].name == "texts"


def test_an_async_iterable_is_for_the_async_client(client):
    async def texts():
        yield "one"

    with pytest.raises(TypeError, match="AsyncClient.embed_stream takes async"):
        client.embed_stream(texts())

    async def main():
        async with encoderd.AsyncClient(client._methods.link.target) as twin:
            return [found.vector async for found in twin.embed_stream(texts())]

    assert len(asyncio.run(main())) == 1


def test_ids_that_are_none_are_named_by_their_place(client):
    fine = encoderd.TokenIds(np.array([100, 101]))
    with serve(Noted()) as service, encoderd.Client(service.target) as other:
        other.encode(fine)
    assert list(service.inputs[0].tokens.ids) == [100, 101]
    for ids, error, words in (
            ([1, -2], ValueError, "ids[1] is -2; expected 0 to 4294967295"),
            (["one"], TypeError, "ids[0] is a str; expected a whole number"),
            (5, TypeError, "ids is an int; expected a list of whole numbers"),
            ([1.5], TypeError, "ids[0] is a float; expected a whole number")):
        with pytest.raises(error) as caught:
            client.encode(["one", encoderd.TokenIds(ids)])
        assert str(caught.value) == f"inputs[1].{words}"


@pytest.mark.parametrize("options, words", [
    ({"truncate": True}, "truncate is True; expected one of none, start, end"),
    ({"pooling": 7}, "pooling is an int; expected one of cls, mean"),
    ({"dimensions": "5"}, "dimensions is a str; expected a whole number"),
    ({"windows": True}, "windows is True; expected a whole number"),
    ({"prompt_name": 5}, "prompt_name is an int; expected a str"),
    ({"model": 5}, "model is an int; expected a str"),
    ({"fingerprint": 5}, "fingerprint is an int; expected a str"),
    ({"fingerprint": None}, "fingerprint is None; expected a str"),
    ({"batch_size": 2.5}, "batch_size is a float; expected a whole number"),
    ({"timeout": "5"}, "timeout is a str; expected seconds"),
    ({"normalize_embeddings": "False"},
     "normalize_embeddings is a str; expected True or False")])
def test_an_option_of_the_wrong_type_is_named(client, options, words):
    for method in (client.embed, client.encode, client.embed_stream):
        with pytest.raises(TypeError) as caught:
            method(["one"], **options)
        assert words in str(caught.value)


@pytest.mark.parametrize("method, option", [
    ("embed", "model"), ("embed_stream", "prompt_name"), ("encode", "prompt"),
    ("health", "service")])
def test_half_a_pair_in_an_option_is_named(client, method, option):
    inputs = [] if method == "health" else [["one"]]
    with pytest.raises(ValueError) as caught:
        getattr(client, method)(*inputs, **{option: "a\ud800"})
    assert str(caught.value) == (f"{option} has no UTF-8 form: its character "
                                 "1 is U+D800, half of a pair")


@pytest.mark.parametrize("option", ["show_progress_bar", "convert_to_numpy",
                                    "convert_to_tensor"])
def test_a_word_is_no_bool(client, option):
    with pytest.raises(TypeError) as caught:
        client.encode(["one"], **{option: "False"})
    assert str(caught.value) == f"{option} is a str; expected True or False"
    assert client.encode(["one"], **{"convert_to_tensor": np.False_}
                         ).shape == (1, WIDTH)


@pytest.mark.parametrize("seconds", [1e10, 1e300, float("inf")])
def test_a_timeout_of_ages_is_no_limit(client, seconds):
    assert len(client.encode(["one"], timeout=seconds)) == 1


def test_a_timeout_is_above_0(client, fake):
    for timeout in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="timeout is .*; expected seconds"):
            client.encode("one", timeout=timeout)
        with pytest.raises(ValueError, match="timeout is .*; expected seconds"):
            encoderd.Client(fake.target, timeout=timeout)


def test_a_batch_size_is_a_whole_number(client):
    assert client.encode(["one"] * 3, batch_size=np.int64(2)).shape[0] == 3
    for batch_size in (2.5, None, "64"):
        with pytest.raises(TypeError):
            client.encode(["one"] * 3, batch_size=batch_size)
        with pytest.raises(TypeError):
            client.embed_stream(["one"], batch_size=batch_size)
    for inputs in ([], ["one"]):
        with pytest.raises(ValueError, match="batch_size is 0"):
            client.encode(inputs, batch_size=0)


@pytest.mark.parametrize("ranges", [5, [1, 2, 3], [[0, 1]], [[0.0], [1.0]]])
def test_ranges_of_another_shape_are_named(client, ranges):
    with pytest.raises(ValueError, match="ranges is of shape"):
        client.encode(["one"], precision="int8", ranges=ranges, truncate_dim=4)
    if np.shape(ranges) != (2, 1):  # the server alone knows how many
        with pytest.raises(ValueError, match="ranges is of shape"):
            client.embed(["one"], precision="int8", ranges=ranges)


@pytest.mark.parametrize("ranges, message", [
    ([[0, 1, 0, 0], [1, 0.5, 1, 1]], r"ranges\[1\]\[1\] is 0.5; it must be "
     "above the minimum, 1"),
    ([[0, 0, 0, 0], [1, 1, 0, 1]], r"ranges\[1\]\[2\] is 0; it must be above"),
    ([[0, 0, 0, np.nan], [1] * 4],
     r"ranges\[0\]\[3\] is nan; it must be finite"),
    ([[0, 0, 0, -np.inf], [1] * 4], "is -inf; it must be finite")])
def test_ranges_that_are_none_are_named_where_the_client_cuts(client, ranges,
                                                              message):
    with pytest.raises(ValueError, match=message):
        client.encode(["one"], precision="int8", ranges=ranges, truncate_dim=4)


def test_ranges_that_are_no_numbers_are_named(client):
    for ranges in ("range", [["a"], ["b"]], {"low": 1}):
        with pytest.raises(TypeError, match="ranges is .*; expected numbers"):
            client.embed(["one"], precision="int8", ranges=ranges)


@pytest.mark.parametrize("options", [
    {"dimensions": 4}, {"ranges": np.zeros((2, WIDTH))}, {"pooling": "cls"}])
def test_an_option_of_vectors_is_not_ignored_for_tokens(client, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} goes with"):
        client.encode(["one"], output_value="token_embeddings", **options)


@pytest.mark.parametrize("precision, kind", [
    ("float32", np.float32), ("float16", np.float16), ("int8", np.int8),
    ("uint8", np.uint8)])
def test_an_empty_list_has_type_and_width_of_what_was_asked_for(
        client, precision, kind):
    found = client.encode([], precision=precision)
    assert (found.dtype, found.shape) == (kind, (0, WIDTH))
    for normalize in (False, True):
        found = client.encode([], precision=precision, truncate_dim=4,
                              normalize_embeddings=normalize)
        assert (found.dtype, found.shape) == (kind, (0, 4))


def test_tensors_without_torch_are_refused_before_anything_is_computed(
        gone, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with encoderd.Client(gone) as client:
        for option in ({"convert_to_tensor": True},
                       {"convert_to_numpy": False}):
            with pytest.raises(ImportError, match="torch is not installed"):
                client.encode(["one"], **option)


def test_results_can_be_compared_by_identity(client):
    first, second = client.embed(["one"]), client.embed(["one"])
    assert first == first and first != second
    assert len({first, second}) == 2


def test_errors_travel_between_processes(client):
    with pytest.raises(encoderd.InputTooLongError) as caught:
        client.encode(["one", "a b c d e f g"])
    late = make_error(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", "QUEUE_FULL",
                      retry_delay=0.5)
    late.input_index = 7
    for error in (caught.value, late):
        for copied in (copy.copy, copy.deepcopy):  # go the same way
            twin = copied(error)
            assert type(twin) is type(error) and str(twin) == str(error)
            assert vars(twin) == vars(error)


CLOSED = pytest.mark.parametrize("method", ["encode", "tokenize", "health"])


@CLOSED
def test_a_closed_client_says_so(fake, method):
    arguments = [] if method == "health" else ["one"]
    client = encoderd.Client(fake.target)
    client.close()
    client.close()
    with pytest.raises(encoderd.EncoderdError, match="client was closed"):
        getattr(client, method)(*arguments)
    with pytest.raises(encoderd.EncoderdError, match="client was closed"):
        next(client.embed_stream(["one"]))

    async def main():
        twin = encoderd.AsyncClient(fake.target)
        await twin.close()
        await twin.close()
        with pytest.raises(encoderd.EncoderdError, match="client was closed"):
            await getattr(twin, method)(*arguments)
        with pytest.raises(encoderd.EncoderdError, match="client was closed"):
            await twin.embed_stream(["one"]).__anext__()

    asyncio.run(main())


def test_a_call_in_flight_ends_with_the_client():
    with serve(Held()) as service:
        client = encoderd.Client(service.target)
        found = []

        def embed():
            try:
                client.embed(["one"] * 100, batch_size=1)
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=embed)
        thread.start()
        try:
            assert service.called.wait(60)
            client.close()
            thread.join(60)
        finally:
            service.let_go.set()
    assert str(found[0]) == "CANCELLED: the client was closed"
    assert isinstance(found[0], encoderd.EncoderdError)


@pytest.mark.skipif(sys.version_info < (3, 11),
                    reason="asyncio tells it from a cancelled task since 3.11")
def test_an_awaited_call_in_flight_ends_with_the_client():
    async def main(service):
        client = encoderd.AsyncClient(service.target)
        task = asyncio.ensure_future(client.embed(["one"] * 100,
                                                  batch_size=1))
        try:
            assert await asyncio.get_running_loop().run_in_executor(
                None, service.called.wait, 60)
            await client.close()
        finally:
            service.let_go.set()
        with pytest.raises(encoderd.EncoderdError, match="client was closed"):
            await task

    with serve(Held()) as service:
        asyncio.run(main(service))


@pytest.mark.parametrize("name", ["start_timeout", "stop_timeout"])
@pytest.mark.parametrize("value, kind", [
    ("x", TypeError), (True, TypeError), (-1, ValueError),
    (float("nan"), ValueError)])
def test_timeouts_of_a_server_are_checked_before_it_starts(name, value, kind,
                                                           monkeypatch):
    monkeypatch.setattr(encoderd.server, "ServerProcess", None)
    with pytest.raises(kind, match=f"{name} is .*; expected seconds"):
        encoderd.Server("folder", program=sys.executable, **{name: value})
