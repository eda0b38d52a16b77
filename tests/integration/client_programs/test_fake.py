"""The Python client against a fake service: shapes, order, errors."""

import io
import itertools
import struct
import threading

import encoderd
import grpc
import numpy as np
import pytest
from either_client import KINDS, ask
from encoderd import _method_jobs, _progress
from encoderd._calls_in_flight import calls_of_list
from encoderd.inputs import cut
from python_service import Model, serve

WIDTH = 6  # hidden_size of the fake
TOO_LONG = "a b c d e f g"  # 9 tokens; the fake takes 8


def fake_vector(text):
    """The same function as FakeVector in tests/support."""
    state = 2166136261
    for byte in text.encode():
        state = ((state ^ byte) * 16777619) % 2**32
    values = []
    for _ in range(WIDTH):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append(np.float32(np.float32(state >> 8) / 2**23 - 1))
    return np.array(values, np.float32)


@pytest.fixture
def client(fake):
    with encoderd.Client(fake.target) as client:
        yield client


def test_a_list_gives_a_matrix_and_a_str_gives_a_vector(client):
    matrix = client.encode(["one", "two words"])
    assert matrix.dtype == np.float32
    assert matrix.shape == (2, WIDTH)
    np.testing.assert_array_equal(matrix[1], fake_vector("two words"))
    np.testing.assert_array_equal(client.encode("one"), fake_vector("one"))


def test_a_long_list_keeps_its_order_though_its_first_call_is_slow(client):
    texts = ["~slow"] + [f"text {i}" for i in range(999)]
    matrix = client.encode(texts, batch_size=16)
    expected = np.stack([fake_vector(text) for text in texts])
    np.testing.assert_array_equal(matrix, expected)


def test_a_generator_is_a_list_too(client):
    assert client.encode(f"text {i}" for i in range(70)).shape == (70, WIDTH)


def test_an_empty_list_gives_a_matrix_without_rows(client):
    assert client.encode([]).shape == (0, WIDTH)
    assert client.encode([], dimensions=2).shape == (0, 2)


@pytest.mark.parametrize("options", [
    {"dimensions": WIDTH + 1}, {"truncate_dim": WIDTH + 1},
    {"truncate_dim": WIDTH + 1, "normalize_embeddings": True},
    {"truncate_dim": WIDTH + 1, "precision": "binary"}])
def test_an_empty_list_is_not_wider_than_the_model_either(client, options):
    ways = [client.encode, *([client.embed] if "dimensions" in options else [])]
    for way in ways:
        with pytest.raises(encoderd.InvalidInputError) as caught:
            way([], **options)
        assert caught.value.message == (
            f"{next(iter(options))} is {WIDTH + 1}; this model gives {WIDTH} "
            f"dimensions: use 1 to {WIDTH}")
        assert caught.value.reason == "INVALID_OPTION"


def test_embed_tells_token_counts_and_cuts(client):
    result = client.embed(["one", TOO_LONG], truncate="end")
    assert result.token_counts.tolist() == [3, 9]
    assert result.truncated.tolist() == [False, True]
    assert client.embed(["one"], dimensions=4).vectors.shape == (1, 4)


def test_too_long_an_input_is_named_by_its_place_in_the_list(client):
    texts = [f"text {i}" for i in range(200)]
    texts[131] = TOO_LONG
    with pytest.raises(encoderd.InputTooLongError) as caught:
        client.encode(texts)
    error = caught.value
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.reason == "INPUT_TOO_LONG"
    assert error.input_index == 131
    assert (error.token_count, error.max_tokens) == (9, 8)
    assert error.message == ("inputs[131] has 9 tokens; this model takes at "
                             "most 8")
    assert error.violations == [("inputs[131].text", error.message)]
    assert str(error) == (
        f"INVALID_ARGUMENT (INPUT_TOO_LONG): {error.message}; pass "
        'truncate="end" to cut it, or windows=0 to average the vectors of all '
        "its parts")


def test_the_first_error_of_the_list_is_raised_though_a_later_one_is_faster(
        client):
    texts = ["~slow", TOO_LONG, "fine", TOO_LONG]
    with pytest.raises(encoderd.InputTooLongError) as caught:
        client.encode(texts, batch_size=2)
    assert caught.value.input_index == 1


def test_a_text_without_utf8_form_is_refused_by_its_place(client):
    with pytest.raises(encoderd.InvalidInputError) as caught:
        client.encode(["fine"] * 70 + ["\ud800"])
    assert caught.value.reason == "INVALID_UTF8"
    assert caught.value.input_index == 70
    assert caught.value.message == ("inputs[70] has no UTF-8 form: its "
                                    "character 0 is U+D800, half of a pair")


@KINDS
@pytest.mark.parametrize("method", ["encode", "embed", "token_states"])
@pytest.mark.parametrize("later", [
    "\ud800", encoderd.TokenIds([-1]), encoderd.TokenIds(["one"])])
def test_a_bad_text_before_one_that_cannot_be_sent_is_the_first(
        fake, kind, method, later):
    for options in ({"batch_size": 1}, {}):
        with pytest.raises(encoderd.InvalidInputError) as caught:
            ask(kind, fake.target, method, ["fine", "", later], **options)
        assert caught.value.reason == "EMPTY_INPUT"
        assert caught.value.input_index == 1


class Clears(Model):
    """Clears the caller's list when its first call comes."""

    def Embed(self, request, context):
        self.texts.clear()
        return super().Embed(request, context)


@KINDS
def test_a_list_that_changes_during_the_call_counts_as_it_was(kind):
    with serve(Clears()) as service:
        service.texts = ["text"] * 50
        found = ask(kind, service.target, "encode", service.texts,
                    batch_size=1)
    assert found.tolist() == [[4, 1]] * 50


def test_what_is_no_text_is_a_type_error(client):
    with pytest.raises(TypeError, match=r"inputs\[1\] is None"):
        client.encode(["fine", None])
    with pytest.raises(ValueError, match="batch_size is 0"):
        client.encode(["fine"], batch_size=0)
    with pytest.raises(ValueError, match="pooling is 'median'; expected one"):
        client.encode(["fine"], pooling="median")


def test_token_embeddings_have_a_row_for_each_token(client):
    one, two = client.token_embeddings(["one", "two words"])
    assert one.shape == (3, WIDTH)
    np.testing.assert_array_equal(two[3], fake_vector("two words#3"))
    assert client.token_embeddings("one", layer=0).shape == (3, WIDTH)
    with pytest.raises(encoderd.InvalidInputError) as caught:
        client.token_embeddings("one", layer=3)
    assert caught.value.reason == "LAYER_OUT_OF_RANGE"
    assert caught.value.metadata["limit"] == "2"


def test_tokenize_gives_tokens_and_says_whether_they_fit(client):
    tokens = client.tokenize("two words")
    assert tokens.tokens == ["[CLS]", "two", "words", "[SEP]"]
    assert tokens.ids == [100, 101, 102, 103]
    assert tokens.offsets[1] == (1, 2)
    assert [t.fits for t in client.tokenize(["one", TOO_LONG])] == [True, False]


def test_the_position_table_is_told_of(client):
    report = client.inspect_positions(2, 4, cosine=True, values=True)
    assert (report.model, report.position_scheme) == ("fake", "learned")
    assert (report.table_rows, report.first_row) == (8, 2)
    assert report.norms.tolist() == [2, 3, 4, 5]
    assert report.cosine.tolist()[1] == [-0.5, 1, -0.5, -0.5]
    assert report.values.shape == (4, WIDTH)
    assert report.values[3, 1] == 5.125
    assert report.profile == {1: 0.5, 2: 0.25}
    assert report.centered_profile == {1: 0.25, 2: 0.125}
    assert (report.verdict, report.change_row) == ("partly_trained", 4)
    assert (report.verdict_cosine, report.threshold) == (0.5, 0.125)
    whole = client.inspect_positions()
    assert whole.norms.shape == (8,)
    assert whole.cosine is None and whole.values is None
    with pytest.raises(encoderd.InvalidInputError) as caught:
        client.inspect_positions(7, 2)
    assert caught.value.reason == "ROWS_OUT_OF_RANGE"


def test_models_and_health_tell_of_the_server(client):
    assert [model.name for model in client.models()] == ["fake"]
    assert client.model().max_len == 8
    assert client.health() == "SERVING"
    with pytest.raises(encoderd.NotFoundError) as caught:
        client.model("other")
    assert caught.value.reason == "MODEL_NOT_FOUND"
    with pytest.raises(encoderd.NotFoundError):
        client.health("no.such.Service")


def test_a_busy_server_is_asked_again(busy_fake):
    with encoderd.Client(busy_fake.target) as client:
        assert client.encode("one").shape == (WIDTH,)


def test_nobody_listening_is_unavailable(gone):
    with encoderd.Client(gone) as client:
        with pytest.raises(encoderd.UnavailableError) as caught:
            client.encode("one")
    assert caught.value.reason == ""


def test_a_call_ends_at_its_timeout(fake):
    with encoderd.Client(fake.target, timeout=0.05) as client:
        with pytest.raises(encoderd.DeadlineExceededError):
            client.encode("~~never")


def test_threads_share_a_client(client):
    texts = [f"text {i}" for i in range(300)]
    expected = np.stack([fake_vector(text) for text in texts])
    found = [None] * 4

    def work(i):
        found[i] = client.encode(texts)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for matrix in found:
        np.testing.assert_array_equal(matrix, expected)


def test_the_progress_bar_is_shown_only_where_it_is_wanted(client, capfd):
    client.encode(["one", "two"])
    assert capfd.readouterr().err == ""
    client.encode(["one", "two"], show_progress_bar=True)
    assert "2/2" in capfd.readouterr().err


def test_without_tqdm_progress_is_one_line():
    stream = io.StringIO()
    line = _progress.Line(2, stream)
    line.update(1)
    line.update(1)
    line.close()
    assert stream.getvalue().split("\r")[-1].startswith("2/2 texts, ")


def test_no_more_calls_than_allowed_are_in_flight():
    started = itertools.count()
    finished = 0
    most = 0

    class Call:
        def __init__(self):
            nonlocal most
            most = max(most, next(started) + 1 - finished)

        def cancel(self):
            raise AssertionError("nothing was to be cancelled")

    order = []
    many = _method_jobs.Many(
        "Embed", cut(["text"] * 20, 1), lambda inputs: inputs,
        lambda part, answer: order.append(part.first))
    for _ in calls_of_list(many, lambda *_: Call(), 3):
        finished += 1
    assert order == list(range(20))
    assert most == 3


def test_packed_bytes_are_little_endian_floats():
    from encoderd.results import Rows
    from encoderd.v1 import encoder_pb2
    rows = Rows(1)
    rows.add(*cut(["text"], 1), encoder_pb2.EmbedResponse(embeddings=[
        encoder_pb2.Embedding(packed=struct.pack("<2f", 1.5, -2.0))]))
    assert rows.result(0).vectors.tolist() == [[1.5, -2.0]]


def test_an_answer_that_does_not_fit_is_a_fault_of_the_server():
    from encoderd.results import Rows
    from encoderd.v1 import encoder_pb2
    two, = cut(["one", "two"], 2)
    with pytest.raises(encoderd.ServerFaultError):
        Rows(2).add(two, encoder_pb2.EmbedResponse())
    ragged = encoder_pb2.EmbedResponse(embeddings=[
        encoder_pb2.Embedding(packed=bytes(8)),
        encoder_pb2.Embedding(packed=bytes(4))])
    with pytest.raises(encoderd.ServerFaultError):
        Rows(2).add(two, ragged)


def test_a_row_that_nothing_filled_is_no_vector():
    from encoderd.results import Rows
    from encoderd.v1 import encoder_pb2
    rows = Rows(2)
    rows.add(*cut(["text"], 1), encoder_pb2.EmbedResponse(embeddings=[
        encoder_pb2.Embedding(packed=bytes(8))]))
    with pytest.raises(RuntimeError, match=r"inputs\[1\] has neither"):
        rows.result(0)
