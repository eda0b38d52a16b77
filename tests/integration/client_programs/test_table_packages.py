"""What test_tables.py and test_vectors.py show with stand-ins, with pandas,
polars and pyarrow themselves (tests/nightly.sh integrations installs them)."""

import encoderd
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from python_service import Model, serve

COLUMNS = {"id": ["1", "2"], "text": ["one", "two"]}
FRAME = pandas.DataFrame(COLUMNS)
POLARS = polars.DataFrame(COLUMNS)
TABLE = pyarrow.table(COLUMNS)
VECTORS = np.array([[1, 2, 3], [4, 5, 7]])


@pytest.fixture
def client():
    with serve(Model()) as service:
        with encoderd.Client(service.target) as client:
            client._service = service
            yield client


def texts_of(client):
    """Of each request."""
    return [[value.text for value in request.inputs]
            for request in client._service.requests]


COLUMN_TYPES = {
    "pandas": FRAME["text"],
    "pandas, category": FRAME["text"].astype("category"),
    "pandas, object": FRAME["text"].astype(object),
    "pandas, index": pandas.Index(COLUMNS["text"]),
    "pandas, array": pandas.array(COLUMNS["text"]),
    "polars": POLARS["text"],
    "pyarrow": pyarrow.array(COLUMNS["text"]),
    "pyarrow, chunked": TABLE["text"],
    "pyarrow, scalars": list(TABLE["text"]),
}


@pytest.mark.parametrize("given", COLUMN_TYPES.values(), ids=COLUMN_TYPES)
def test_a_column_is_a_list_of_texts(client, given):
    client.encode(given, prompt="ask: ")
    client.embed(given)
    list(client.embed_stream(given))
    plain = ["one", "two"]
    assert texts_of(client) == [["ask: one", "ask: two"], plain, plain]


ONE_COLUMN = 'pass one column, such as df["text"] (columns: id, text)'
NAMED = ("inputs[0] is a Pandas, a row of named values; pass one column, and a "
         "pair of texts as a plain tuple: (a, b)")


@pytest.mark.parametrize("inputs, words", [
    (FRAME, f"inputs is a DataFrame; {ONE_COLUMN}"),
    (POLARS, f"inputs is a DataFrame; {ONE_COLUMN}"),
    (POLARS.lazy(), "inputs is a LazyFrame; collect() it, and pass one column, "
                    'such as df["text"]'),
    (TABLE, f"inputs is a Table; {ONE_COLUMN}"),
    (TABLE.to_batches()[0], f"inputs is a RecordBatch; {ONE_COLUMN}"),
    (FRAME.to_records(index=False), "inputs is a recarray of records; pass one "
                                    "field, such as array['id']"),
    (pandas.MultiIndex.from_frame(FRAME),
     "inputs is a MultiIndex; pass one level, such as "
     "index.get_level_values(0), or list(index) if each is a pair of texts"),
    (list(FRAME.itertuples(index=False)), NAMED)])
def test_rows_and_tables_are_refused_with_what_to_do(client, inputs, words):
    for way in (client.encode, client.embed,
                lambda inputs: list(client.embed_stream(inputs))):
        with pytest.raises(TypeError) as caught:
            way(inputs)
        assert str(caught.value) == words
    assert client._service.requests == []


@pytest.mark.parametrize("given, name", [
    (pandas.Series(["one", None], dtype=object), "None"),
    (pandas.Series(["one", None]), "nan"),
    (pandas.Series(["one", None], dtype="string"), "<NA>"),
    (pandas.Series(["one", pandas.NaT], dtype=object), "NaT"),
    (polars.Series(["one", None]), "None"),
    (pyarrow.array(["one", None]), "None"),
    (list(pyarrow.array(["one", None])), "None")])
def test_a_missing_value_is_named_with_what_to_do(client, given, name):
    with pytest.raises(TypeError) as caught:
        client.encode(given)
    assert str(caught.value).startswith(
        f"inputs[1] is {name}, a missing value; expected a str")


def columns_of(vectors):
    """In every type of a column, or of a table, that holds vectors."""
    lists = pyarrow.list_(pyarrow.from_numpy_dtype(vectors.dtype))
    column = pyarrow.array(vectors.tolist(), lists)
    table = pyarrow.table({str(i): values for i, values in
                           enumerate(vectors.T)})
    return [pandas.Series(list(vectors)), pandas.DataFrame(vectors),
            pandas.Series(column, dtype=pandas.ArrowDtype(lists)),
            polars.Series(vectors), polars.DataFrame(vectors),
            polars.Series(column), polars.from_arrow(table), column,
            pyarrow.chunked_array([column]), table, table.to_batches()[0],
            pyarrow.FixedSizeListArray.from_arrays(
                pyarrow.array(vectors.ravel()), vectors.shape[1])]


def test_vectors_of_every_column_and_table_have_scores(client):
    vectors = VECTORS.astype(np.float32)
    wanted = np.asarray(client.similarity(vectors, vectors))
    assert np.diag(wanted) == pytest.approx(1)
    for given in columns_of(vectors):
        np.testing.assert_array_equal(client.similarity(given, vectors), wanted)


@pytest.mark.parametrize("kind, words", [
    (np.int8, "of int8, which is packed bits or values; unpack bits"),
    (np.uint8, "embeddings2 holds uint8, which is packed bits or values")])
def test_bytes_in_a_column_or_a_table_are_refused(client, kind, words):
    for given in columns_of(VECTORS.astype(kind)):
        with pytest.raises(TypeError) as caught:
            client.similarity(VECTORS, given)
        assert words in str(caught.value)


def test_gaps_and_texts_among_vectors_are_named(client):
    for of in (pandas.Series, polars.Series, pyarrow.array):
        with pytest.raises(TypeError) as caught:
            client.similarity(of([[1.0, 2.0], None]), [[1.0, 2.0]])
        assert str(caught.value) == ("embeddings1[1] is None, a missing value; "
                                     "drop such rows first")
        with pytest.raises(TypeError, match="embeddings1 holds texts; pass"):
            client.similarity(of(["one", None]), [[1.0, 2.0]])
