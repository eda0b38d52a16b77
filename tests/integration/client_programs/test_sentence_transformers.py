"""The script of sentence_script.py gives with Client what it gives with
SentenceTransformer: shapes, dtypes, numbers."""

import inspect
import logging

import encoderd
import numpy as np
import pytest
import sentence_script

# The contract's bound for fp32 (tests/support/tolerances.h: the same).
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def client(server):
    with encoderd.Client(server) as client:
        yield client


def check_same(name, ours, theirs):
    if isinstance(theirs, list):
        assert isinstance(ours, list) and len(ours) == len(theirs), name
        for one, other in zip(ours, theirs):
            check_same(name, one, other)
        return
    assert ours.shape == theirs.shape, name
    assert ours.dtype == theirs.dtype, name
    if ours.dtype == np.float32:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE,
                                   err_msg=name)
    elif "int8" in name:  # a value at the edge of a step may fall either way
        assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 1, name
        assert (ours == theirs).mean() > 0.99, name
    else:  # bits, ids
        np.testing.assert_array_equal(ours, theirs, err_msg=name)


def check_all(ours, theirs):
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        check_same(name, ours[name], value)


def test_the_script_gives_what_sentence_transformers_gave(client):
    theirs = sentence_script.read_golden()
    assert theirs["list"].shape == (6, 384)
    check_all(sentence_script.run(client), theirs)


def test_the_script_gives_what_an_installed_sentence_transformers_gives(
        client, model_folder):
    peer = pytest.importorskip("sentence_transformers")
    model = peer.SentenceTransformer(model_folder, device="cpu")
    check_all(sentence_script.run(client), sentence_script.run(model))


def test_the_arguments_stand_in_the_same_order_with_the_same_defaults():
    peer = pytest.importorskip("sentence_transformers")
    theirs = inspect.signature(peer.SentenceTransformer.encode).parameters
    for kind in (encoderd.Client, encoderd.AsyncClient):
        ours = inspect.signature(kind.encode).parameters
        shared = [p for p in theirs
                  if p not in ("kwargs", "_deprecated_kwargs")]
        assert list(ours)[:len(shared)] == shared
        for name in set(shared) - {"inputs", "batch_size"}:
            assert ours[name].default == theirs[name].default, name


def test_tensors_come_where_torch_is(client):
    torch = pytest.importorskip("torch")
    whole = client.encode(["one", "two"], convert_to_tensor=True)
    assert whole.dtype == torch.float32 and whole.shape == (2, 384)
    rows = client.encode(["one", "two"], convert_to_numpy=False)
    assert isinstance(rows, list) and torch.equal(torch.stack(rows), whole)
    states = client.encode("one", output_value="token_embeddings",
                           convert_to_numpy=False)
    assert states.shape == (3, 384)


def test_ranges_of_the_caller_need_no_list(client):
    vectors = client.encode(sentence_script.TEXTS)
    ranges = np.stack([vectors.min(axis=0), vectors.max(axis=0)])
    for precision in ("int8", "uint8"):
        alone = client.encode(sentence_script.TEXTS[2], precision=precision,
                              ranges=ranges)
        listed = client.encode(sentence_script.TEXTS, precision=precision)
        np.testing.assert_array_equal(alone, listed[2])
        with pytest.raises(ValueError, match="from a single text"):
            client.encode("one", precision=precision)


def test_embed_gives_bytes_with_a_step_for_each_vector(client):
    exact = client.embed(["one", "two"]).vectors
    result = client.embed(["one", "two"], precision="int8")
    assert result.vectors.dtype == np.int8
    values = (result.vectors + 1.0) * result.scales[:, None]
    assert np.all(np.abs(values - exact) <= result.scales[:, None] * 0.501)
    half = client.encode(["one", "two"], precision="float16")
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, exact, atol=1e-3)


def test_a_text_that_would_be_cut_in_silence_is_refused(client):
    long = "the " * 300
    for output in ("sentence_embedding", "token_embeddings", None):
        with pytest.raises(encoderd.InputTooLongError) as caught:
            client.encode(["short", long], output_value=output)
        assert caught.value.input_index == 1
        assert caught.value.max_tokens == 256
    cut = client.encode(long, truncate="end")
    np.testing.assert_array_equal(cut, client.encode("the " * 254))


def test_what_cannot_be_had_is_said(client):
    for arguments, words in (
            ({"precision": "int4"}, "precision is 'int4'"),
            ({"output_value": "logits"}, "output_value is 'logits'"),
            ({"pool": object()}, "pool"),
            ({"precision": "int8", "output_value": None}, "precision"),
            ({"truncate": "end", "output_value": None}, "truncate"),
            ({"dimensions": 2, "truncate_dim": 2}, "not both")):
        with pytest.raises(ValueError, match=words):
            client.encode(["one", "two"], **arguments)
    with pytest.raises(TypeError, match="inputs is None; expected a text, or"):
        client.encode()
    for cut in ({}, {"normalize_embeddings": True}, {"precision": "int8"}):
        with pytest.raises(encoderd.InvalidInputError) as caught:
            client.encode(["one", "two"], truncate_dim=385, **cut)
        assert caught.value.reason == "INVALID_OPTION"
        assert caught.value.metadata["limit"] == "384"
    for output in ("sentence_embedding", "token_embeddings"):
        with pytest.raises(encoderd.NotFoundError) as caught:
            client.encode("one", prompt_name="other", output_value=output)
        assert caught.value.reason == "PROMPT_NOT_FOUND"


def test_an_empty_list_has_the_width_of_its_precision(client):
    assert client.encode([]).shape == (0, 384)
    bits = client.encode([], precision="binary")
    assert bits.shape == (0, 48) and bits.dtype == np.int8
    assert client.encode([], output_value="token_embeddings") == []


def test_the_logger_decides_on_the_progress_bar(client, capfd):
    logger = logging.getLogger("encoderd")
    before = logger.level
    try:
        logger.setLevel(logging.INFO)
        client.encode(["one", "two"])
        assert "2/2" in capfd.readouterr().err
        client.encode(["one", "two"], show_progress_bar=False)
        assert capfd.readouterr().err == ""
    finally:
        logger.setLevel(before)
