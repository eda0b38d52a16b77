"""Columns, rows and tables of other packages as inputs: one column is a list of
texts; what has several is refused by its name, and never taken for pairs."""

import asyncio
import collections
import sqlite3

import encoderd
import numpy as np
import pytest
from encoderd.v1 import encoder_pb2
from either_client import KINDS, ask
from python_service import Model, Service, serve


class Noted(Service):
    """Knows what it was asked."""

    def __init__(self):
        self.inputs = []

    def Embed(self, request, context):
        self.inputs += request.inputs
        return encoder_pb2.EmbedResponse(embeddings=[
            encoder_pb2.Embedding(packed=bytes(8)) for _ in request.inputs])

    def EmbedStream(self, requests, context):
        for request in requests:
            answer = self.Embed(request, context)
            answer.request_id = request.request_id
            yield answer


@pytest.fixture
def client():
    with serve(Noted()) as service:
        with encoderd.Client(service.target) as client:
            client._service = service
            yield client


def ways(client):
    return (client.encode, client.embed,
            lambda inputs: list(client.embed_stream(inputs)))


def test_a_plain_tuple_in_a_list_or_a_generator_is_a_pair(client):
    pairs = [("one", "two"), ("three", "four")]
    for way in ways(client):
        for inputs in (pairs, (pair for pair in pairs),
                       zip(["one", "three"], ["two", "four"])):
            way(inputs)
            assert [(value.pair.first, value.pair.second)
                    for value in client._service.inputs] == pairs
            client._service.inputs.clear()


class DataFrame:
    """What the client knows a table of pandas or polars by."""

    columns = ["id", "text"]

    def __iter__(self):
        return iter(self.columns)


class Series:
    """Of pandas, whose labels are attributes."""

    ndim = 1

    def __init__(self, labels):
        self.values = {label: f"the text of {label}" for label in labels}

    def __getattr__(self, name):
        if name in self.__dict__.get("values", ()):
            return self.values[name]
        raise AttributeError(name)

    def __iter__(self):
        return iter(self.values.values())


class LazyFrame:
    """Of polars."""

    @property
    def columns(self):
        raise AssertionError("computes the table")


class Table:
    """Of pyarrow."""

    column_names = ["id", "text"]
    columns = [["x" * 1000] * 1000] * 2


class MultiIndex:
    """Of pandas."""

    def __iter__(self):
        return iter([("one", "two")])


def cursor():
    return sqlite3.connect(":memory:").execute("SELECT 'one', 'two'")


Row = collections.namedtuple("Row", "id text")
RECORDS = np.array([("one", "two")], dtype=[("id", "U3"), ("text", "U3")])
ONE_COLUMN = 'pass one column, such as df["text"] (columns: id, text)'
NAMED = ("a row of named values; pass one column, and a pair of texts as a "
         "plain tuple: (a, b)")


@pytest.mark.parametrize("inputs, words", [
    (DataFrame(), f"inputs is a DataFrame; {ONE_COLUMN}"),
    (Table(), f"inputs is a Table; {ONE_COLUMN}"),
    (LazyFrame(), "inputs is a LazyFrame; collect() it, and pass one column, "
                  'such as df["text"]'),
    (np.array([["one", "two"]]),
     "inputs is an ndarray of shape [1, 2]; expected [n] texts: pass one "
     "column, such as array[:, 0], or tuples for pairs: [(a, b) for a, b in "
     "array]"),
    (RECORDS, "inputs is an ndarray of records; pass one field, such as "
              "array['id']"),
    ({"one": "two"}.items(), "inputs is a dict_items; pass values(), or "
                             "list(items) if each is a pair of texts"),
    (MultiIndex(), "inputs is a MultiIndex; pass one level, such as "
                   "index.get_level_values(0), or list(index) if each is a "
                   "pair of texts"),
    (cursor(), "inputs is a Cursor; pass one column, such as [row[0] for row "
               "in cursor], or list(cursor) if each row is a pair of texts"),
    ([Row("one", "two")], f"inputs[0] is a Row, {NAMED}"),
    (list(RECORDS), f"inputs[0] is a void, {NAMED}")])
def test_rows_and_tables_are_refused_with_what_to_do(client, inputs, words):
    for way in ways(client):
        with pytest.raises(TypeError) as caught:
            way(inputs)
        assert str(caught.value) == words
    assert client._service.inputs == []


@pytest.mark.parametrize("labels", [
    ["columns"], ["column_names"], ["fetchall", "description"]])
def test_a_column_is_no_table_by_its_labels(client, labels):
    for way in ways(client):
        way(Series(labels))
        assert [value.text for value in client._service.inputs] == [
            f"the text of {label}" for label in labels]
        client._service.inputs.clear()


def test_what_the_remedies_make_of_a_cursor_is_taken(client):
    client.encode([row[0] for row in cursor()])
    client.encode(list(cursor()))
    single, pair = client._service.inputs
    assert single.text == "one"
    assert (pair.pair.first, pair.pair.second) == ("one", "two")


class AsyncCursor:
    """Of a database, for asyncio."""

    description = ()

    async def fetchall(self):
        return []

    async def __aiter__(self):
        yield ("one", "two")


def test_an_async_cursor_is_refused(client):
    async def main():
        async with encoderd.AsyncClient(client._service.target) as other:
            return [found async for found in other.embed_stream(AsyncCursor())]

    with pytest.raises(TypeError, match="inputs is an AsyncCursor; pass one "
                       r"column, such as \(row\[0\] async for row in cur"):
        asyncio.run(main())
    assert client._service.inputs == []


class NAType:
    """pandas.NA; the same as nothing, not even itself."""

    def __eq__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    def __str__(self):
        return "<NA>"


class NaTType:
    def __str__(self):
        return "NaT"


@pytest.mark.parametrize("missing, name", [
    (None, "None"), (float("nan"), "nan"), (np.float32("nan"), "nan"),
    (NAType(), "<NA>"), (NaTType(), "NaT")])
def test_a_missing_value_is_named_with_what_to_do(client, missing, name):
    for way in ways(client):
        with pytest.raises(TypeError) as caught:
            way(["one", missing])
        assert str(caught.value) == (
            f"inputs[1] is {name}, a missing value; expected a str, a tuple "
            "of two str, or TokenIds: drop or fill such rows first")


class Scalar:
    """Of pyarrow."""

    def __init__(self, value):
        self.value = value

    def as_py(self):
        return self.value


class Array:
    """Of pyarrow, as pyarrow.array and a column of its tables give it."""

    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return map(Scalar, self.values)

    def to_pylist(self):
        return self.values


def test_a_column_of_pyarrow_is_a_list_of_texts(client):
    for way in ways(client):
        for inputs in (Array(["one", "two"]), list(Array(["one", "two"]))):
            way(inputs)
            assert [value.text for value in client._service.inputs] == [
                "one", "two"]
            client._service.inputs.clear()
        with pytest.raises(TypeError, match=r"inputs\[1\] is None, a missing"):
            way(Array(["one", None]))


@KINDS
@pytest.mark.parametrize("options", [
    {"prompt": "ask: "}, {"prompt_name": "query"}])
@pytest.mark.parametrize("output_value", [
    "sentence_embedding", "token_embeddings", None])
def test_texts_of_pyarrow_get_the_prompt(kind, options, output_value):
    given = list(Array(["one", "two"]))
    with serve(Model(prompts={"query": "ask: "})) as service:
        ask(kind, service.target, "encode", given, output_value=output_value,
            **options)
    assert service.requests
    for request in service.requests:
        by_name = getattr(request, "options", request)
        prompt = "" if getattr(by_name, "prompt_name", "") else "ask: "
        assert [value.text for value in request.inputs] == [
            f"{prompt}one", f"{prompt}two"]
    assert [type(value) for value in given] == [Scalar, Scalar]
