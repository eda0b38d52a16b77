"""similarity() of the clients: its functions, and what it takes for vectors."""

import sys

import encoderd
import numpy as np
import pytest

LENGTHS = {"cosine": lambda d: d, "euclidean": lambda d: np.sqrt((d * d).sum()),
           "manhattan": lambda d: np.abs(d).sum()}


@pytest.fixture
def client(fake):
    with encoderd.Client(fake.target) as client:
        yield client


@pytest.fixture
def without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarity_is_what_its_name_says(client, without_torch, name):
    a = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    b = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)
    client.similarity_fn_name = name

    def score(x, y):
        if name in ("cosine", "dot"):
            length = (np.linalg.norm(x) * np.linalg.norm(y)
                      if name == "cosine" else 1)
            return x @ y / length
        return -LENGTHS[name](x - y)

    found = client.similarity(a, b)
    assert found.dtype == np.float32
    np.testing.assert_allclose(
        found, [[score(x, y) for y in b] for x in a], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        client.similarity_pairwise(a[:4], b),
        [score(x, y) for x, y in zip(a, b)], rtol=1e-5, atol=1e-6)
    assert client.similarity(a[0], list(b)).shape == (1, 4)


def test_a_vector_of_zeros_is_like_no_other(client, without_torch):
    found = client.similarity(np.zeros((1, 3)), np.ones((2, 3)))
    assert found.tolist() == [[0, 0]]


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_an_empty_list_has_no_scores(client, without_torch, name):
    client.similarity_fn_name = name
    for empty in ([], (), np.empty(0), Column([]), np.empty(0, np.int8)):
        assert client.similarity(empty, empty).shape == (0, 0)
        assert client.similarity(empty, np.ones((2, 3))).shape == (0, 2)
        assert client.similarity(np.ones((2, 3)), empty).shape == (2, 0)
        assert client.similarity_pairwise(empty, empty).shape == (0,)
    with pytest.raises(ValueError, match="as many rows and columns"):
        client.similarity_pairwise([], np.ones((1, 3)))


def test_similarity_names_shapes_and_functions_that_do_not_fit(client):
    assert client.similarity_fn_name == "cosine"
    with pytest.raises(ValueError, match="'maxsim'; expected one of cosine, "):
        client.similarity_fn_name = "maxsim"
    with pytest.raises(ValueError,
                       match=r"\[2, 3\] and embeddings2 of \[2, 4\]"):
        client.similarity(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match="as many rows and columns"):
        client.similarity_pairwise(np.ones((2, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError,
                       match=r"embeddings1 is of shape \[1, 2, 3\]"):
        client.similarity(np.ones((1, 2, 3)), np.ones((2, 3)))


class Column:
    """What the client knows a column of pandas by: vectors in an array of
    objects."""

    ndim = 1
    dtype = np.dtype(object)

    def __init__(self, values):
        self._values = list(values)

    def __iter__(self):
        return iter(self._values)

    def __array__(self, dtype=None, copy=None):
        found = np.empty(len(self._values), object)
        found[:] = self._values
        return found if dtype is None else found.astype(dtype)


def test_similarity_takes_columns_of_vectors_and_results(client,
                                                         without_torch):
    result = client.embed(["one", "two words", "three"])
    wanted = client.similarity(result.vectors, result.vectors)
    for given in (result, Column(result.vectors), np.asarray(
            Column(result.vectors)), list(result.vectors),
            result.vectors.tolist()):
        np.testing.assert_array_equal(
            client.similarity(given, result.vectors), wanted)
    assert client.similarity_pairwise(result, result).shape == (3,)


@pytest.mark.parametrize("given", [
    "one", ["one", "two"], np.array(["one"]), Column(["one", "two"])])
def test_similarity_says_that_texts_are_no_vectors(client, given):
    for method in (client.similarity, client.similarity_pairwise):
        with pytest.raises(TypeError) as caught:
            method(given, np.ones((1, 3)))
        assert str(caught.value) == ("embeddings1 holds texts; pass "
                                     "encode(texts)")
        with pytest.raises(TypeError, match="embeddings2 holds texts"):
            method(np.ones((1, 3)), given)


@pytest.mark.parametrize("given, name", [
    ({1: 2.0}, "a dict"), (None, "None"), (object(), "an object"),
    ((row for row in [[1.0]]), "a generator")])
def test_similarity_names_what_is_no_matrix(client, given, name):
    with pytest.raises(TypeError) as caught:
        client.similarity(given, np.ones((1, 3)))
    assert str(caught.value) == (
        f"embeddings1 is {name}; expected numbers of shape [n, D] or [D]")


class Tensor:
    """What the client knows a tensor of torch by."""

    dtype = "torch.uint8"
    ndim = 2


class Table:
    """What the client knows a table of pandas or polars by."""

    dtypes = ["uint8", "uint8", "uint8"]

    def __array__(self, *_args, **_kinds):
        return BYTES


BYTES = np.array([[1, 2, 3], [4, 5, 6]], np.uint8)


@pytest.mark.parametrize("given", [
    BYTES, list(BYTES), tuple(BYTES), list(BYTES[0]), BYTES[0], Column(BYTES),
    np.asarray(Column(BYTES)), Tensor(), Table()])
def test_similarity_refuses_unsigned_bytes(client, given):
    for method in (client.similarity, client.similarity_pairwise):
        with pytest.raises(TypeError) as caught:
            method(np.ones((2, 3)), given)
        assert str(caught.value) == (
            "embeddings2 holds uint8, which is packed bits or values with an "
            "offset; unpack bits (np.unpackbits(bits, axis=-1, count=D) * 2.0 "
            "- 1), dequantize values by their scales or ranges, or use "
            'precision="float32"')


def result_of(vectors, scales, errors=()):
    count = len(vectors)
    return encoderd.EmbedResult(
        vectors, np.ones(count, np.int64), np.zeros(count, bool),
        np.array(scales, np.float32), np.zeros(count, np.int64),
        dict.fromkeys(errors))


@pytest.mark.parametrize("kind, offset", [(np.int8, 1), (np.uint8, -127)])
def test_similarity_takes_a_result_of_bytes_by_its_scales(
        client, without_torch, kind, offset):
    floats = np.random.default_rng(3).normal(size=(4, 64)).astype(np.float32)
    scales = np.abs(floats).max(axis=1) / 127.5
    places = np.clip(np.floor(floats / scales[:, None] + 127.5), 0, 255)
    result = result_of((places - 127 - offset).astype(kind), scales)
    for name in ("cosine", "dot"):
        client.similarity_fn_name = name
        wanted = client.similarity(floats, floats)
        np.testing.assert_allclose(client.similarity(result, floats), wanted,
                                   atol=0.02 * np.abs(wanted).max())


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_similarity_refuses_a_result_of_bytes_without_scales(client, kind):
    result = result_of(np.ones((2, 3), kind), [0, 0])
    with pytest.raises(TypeError, match=f"embeddings1 is an EmbedResult of "
                       f"{kind} without scales; unpack bits"):
        client.similarity(result, np.ones((2, 3)))


def test_similarity_takes_signed_bytes_and_unpacked_bits(client,
                                                         without_torch):
    signed = np.array([[100, -50], [50, 100]], np.int8)
    np.testing.assert_array_equal(
        client.similarity(signed, signed),
        client.similarity(signed.astype(np.float32), signed.tolist()))
    assert client.similarity([[True, False]], np.array([[True, True]])).shape


@pytest.mark.parametrize("precision", ["binary", "ubinary"])
def test_bits_are_unpacked_as_the_readme_says(client, without_torch,
                                              precision):
    floats = np.random.default_rng(4).normal(size=(3, 16))
    array = np.packbits(floats > 0, axis=1)
    if precision == "binary":
        array = (array.astype(np.int16) - 128).astype(np.int8)
    bits = (array.view(np.uint8) ^ 128 if precision == "binary" else array)
    np.testing.assert_array_equal(
        np.unpackbits(bits, axis=-1) * 2.0 - 1, np.sign(floats))
