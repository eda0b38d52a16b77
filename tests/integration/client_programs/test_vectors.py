"""What similarity() of the clients makes of inputs without a vector, and of
columns and lists that are not vectors alone."""

import dataclasses
import logging
import sys

import encoderd
import numpy as np
import pytest

BLANK = -np.inf  # the score of an input without a vector


@pytest.fixture
def client(fake, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with encoderd.Client(fake.target) as client:
        yield client


FUNCTIONS = pytest.mark.parametrize("name", ["cosine", "dot", "euclidean",
                                             "manhattan"])


@FUNCTIONS
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_input_without_a_vector_is_the_last_of_all(client, name, precision,
                                                      caplog):
    client.similarity_fn_name = name
    with caplog.at_level(logging.ERROR, logger="encoderd"):
        found = client.encode(["one", "", "two words"], precision=precision,
                              on_error="per_input")
    for vectors in (found, list(found)):
        scores = client.similarity(vectors, np.ones((2, found.shape[1])))
        assert (scores[1] == BLANK).all()
        assert np.isfinite(scores[[0, 2]]).all()
        assert (client.similarity(np.ones((2, found.shape[1])), vectors)[:, 1]
                == BLANK).all()
        pairs = client.similarity_pairwise(vectors, np.ones_like(found))
        assert np.isfinite(pairs).tolist() == [True, False, True]
        assert scores[:, 0].argmax() != 1


@FUNCTIONS
@pytest.mark.parametrize("precision", ["float32", "int8", "uint8"])
def test_a_result_knows_its_inputs_without_a_vector(client, name, precision):
    client.similarity_fn_name = name
    result = encoderd.EmbedResult(
        np.array([[1, 2], [0, 0]], precision), np.ones(2, np.int64),
        np.zeros(2, bool), np.array([0.5, 0], np.float32),
        np.zeros(2, np.int64), {1: None})
    scores = client.similarity(result, result)
    assert np.isfinite(scores).tolist() == [[True, False], [False, False]]
    assert (scores[1] == BLANK).all()
    nothing = encoderd.EmbedResult(
        np.zeros((1, 2), precision), np.zeros(1, np.int64), np.zeros(1, bool),
        np.zeros(1, np.float32), np.zeros(1, np.int64), {0: None})
    assert client.similarity(nothing, result).tolist() == [[BLANK, BLANK]]


def test_rows_of_zeros_on_request_are_vectors(client):
    found = client.encode(["one", ""], on_error="zero")
    assert client.similarity(found, np.ones((1, found.shape[1])))[1] == 0


def test_a_vector_with_one_value_that_is_nan_has_no_score(client):
    scores = client.similarity([[1, np.nan], [1, 2]], [[1, 1]])
    assert np.isnan(scores).tolist() == [[True], [False]]


class Column:
    """What the client knows a column of pandas or pyarrow by: numbers of a
    type, or objects."""

    def __init__(self, values, kind=object, **members):
        self._values = values
        self._kind = kind
        vars(self).update({"dtype": np.dtype(kind)} if not members else members)

    def __array__(self, dtype=None, copy=None):
        if self._kind is not object:
            return np.array(self._values, self._kind)
        found = np.empty(len(self._values), object)
        found[:] = self._values
        return found


SIGNED = np.array([[1, 2, 3], [-4, 5, 6]], np.int8)
NO_INT8 = ("of int8, which is packed bits or values; unpack bits (np.unpackbits"
           "(bits, axis=-1, count=D) * 2.0 - 1), or pass values as an array: "
           "np.asarray(values)")


@pytest.mark.parametrize("given", [
    Column(SIGNED, np.int8, dtypes=["int8"] * 3),
    Column(SIGNED, np.int8, dtypes=["Int8", "Float32"]),
    Column(list(SIGNED)), Column(SIGNED[0], np.int8),
    Column(list(SIGNED), dtype="List(Int8)"),
    Column(list(SIGNED), type="list<item: int8>")])
def test_columns_and_tables_of_signed_bytes_are_refused(client, given):
    for method in (client.similarity, client.similarity_pairwise):
        with pytest.raises(TypeError) as caught:
            method(np.ones((2, 3)), given)
        assert str(caught.value) == f"embeddings2 is a Column {NO_INT8}"
    rows = np.asarray(given)  # as the remedy says
    np.testing.assert_array_equal(
        client.similarity(rows, np.ones((2, 3)))[0],
        client.similarity(SIGNED[0], np.ones((2, 3)))[0])


@pytest.mark.parametrize("given", [
    Column(SIGNED, np.uint8, dtypes=["UInt8"] * 3),
    Column(list(SIGNED.view(np.uint8)), dtype="List(UInt8)"),
    Column(list(SIGNED.view(np.uint8)), type="list<item: uint8>"),
    Column(SIGNED[0].view(np.uint8), np.uint8, type="uint8")])
def test_columns_of_unsigned_bytes_are_refused_by_every_name(client, given):
    with pytest.raises(TypeError, match="embeddings1 holds uint8, which is"):
        client.similarity(given, np.ones((2, 3)))


@pytest.mark.parametrize("members", [
    {}, {"dtype": "List(Float32)"}, {"type": "list<item: float>"}])
def test_columns_of_lists_of_polars_and_pyarrow_are_vectors(client, members):
    vectors = client.encode(["one", "two words"])
    wanted = client.similarity(vectors, vectors)
    for rows in (list(vectors), vectors.tolist(), [
            Column(row, np.float32) for row in vectors]):
        np.testing.assert_allclose(
            client.similarity(Column(rows, **members), vectors), wanted,
            rtol=1e-6)


ROW = np.ones(3, np.float32)


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan")])
def test_a_gap_among_vectors_is_named_by_its_place(client, missing):
    for given in ([ROW, missing], [ROW.tolist(), missing],
                  Column([ROW, missing])):
        with pytest.raises(TypeError) as caught:
            client.similarity(given, [ROW])
        assert str(caught.value) == (
            f"embeddings1[1] is {missing}, a missing value; drop such rows "
            "first")


def test_a_gap_among_texts_leaves_them_texts(client):
    for given in ([None, "one"], Column([None, "one"]), ["one", None],
                  np.array([[1, "one"]], object)):
        with pytest.raises(TypeError) as caught:
            client.similarity(given, [ROW])
        assert str(caught.value) == ("embeddings1 holds texts; pass "
                                     "encode(texts)")


def test_results_in_place_of_vectors_are_told_what_to_pass(client):
    found = list(client.embed_stream(["one", "two"]))
    for given, name in ((found, "embeddings1[0]"), (found[0], "embeddings1"),
                        (Column(found), "embeddings1[0]")):
        with pytest.raises(TypeError) as caught:
            client.similarity(given, [ROW])
        assert str(caught.value) == (
            f"{name} is an Embedding; pass the vectors: "
            "[found.vector for found in stream if not found.error]")
    assert client.similarity([one.vector for one in found if not one.error],
                             found[0].vector).shape == (2, 1)
    results = [client.embed(["one"]), client.embed(["two", "three"])]
    with pytest.raises(TypeError) as caught:
        client.similarity(results, results)
    assert str(caught.value) == (
        "embeddings1[0] is an EmbedResult; pass it alone, or "
        "np.concatenate([r.vectors for r in results])")


def test_rows_of_several_lengths_are_named(client):
    for given in ([[1.0, 2.0], [1.0]], [ROW[:2], ROW[:1]]):
        with pytest.raises(ValueError) as caught:
            client.similarity(given, np.ones((1, 2)))
        assert str(caught.value) == (
            "embeddings1[1] is of shape [1] and embeddings1[0] of [2]; "
            "expected rows of one length")


def test_results_of_different_models_are_not_compared(client):
    one = client.embed(["text"])
    other = dataclasses.replace(one, fingerprint="another")
    assert client.similarity(one, one).shape == (1, 1)
    assert client.similarity(one, other.vectors).shape == (1, 1)
    for method in (client.similarity, client.similarity_pairwise):
        with pytest.raises(ValueError, match="another; vectors of different"):
            method(one, other)


MASKED = np.ma.masked_array(np.ones((2, 3)), np.eye(2, 3))


@pytest.mark.parametrize("vectors, words", [
    (MASKED, " has masked values; drop such rows first"),
    (list(MASKED), "[0] has masked values; drop such rows first"),
    (np.ones((2, 3), np.complex64), " holds complex numbers; expected real"),
    (list(np.ones((2, 3), complex)), " holds complex numbers; expected real"),
    (np.zeros((2, 3), "datetime64[s]"), " is an ndarray; expected numbers"),
    (np.zeros((2, 3), "timedelta64[s]"), " is an ndarray; expected numbers")])
def test_what_is_no_plain_number_gets_no_score(client, vectors, words):
    for method in (client.similarity, client.similarity_pairwise):
        with pytest.raises(TypeError) as caught:
            method(np.ones((2, 3)), vectors)
        assert f"embeddings2{words}" in str(caught.value)
    whole = np.ma.masked_array(np.ones((2, 3)), False)
    assert client.similarity(whole, list(whole)).shape == (2, 2)
