"""The Python client against a real server with all-MiniLM-L6-v2."""

import encoderd
import grpc
import numpy as np
import pytest
from conftest import PROGRAMS, Server, serving

WIDTH = 384
# 254 words of one token each, [CLS] and [SEP]: exactly max_len.
FITS = " ".join(["the"] * 254)
TOO_LONG = FITS + " the"


@pytest.fixture(scope="module")
def client(server):
    # Under a sanitizer, next to other tests, a call of 64 texts takes a minute.
    with encoderd.Client(server, timeout=300) as client:
        yield client


def test_vectors_have_length_one_and_tell_alike_from_unlike(client):
    eating, meal, violin = client.encode([
        "A man is eating food.", "Someone has a meal.",
        "A woman plays the violin."])
    assert eating.shape == (WIDTH,)
    assert np.linalg.norm(eating) == pytest.approx(1, abs=1e-5)
    assert eating @ meal > eating @ violin


def test_a_text_has_the_same_bits_alone_and_in_a_long_list(client):
    texts = [f"sentence {i} " + "word " * (i % 40) for i in range(500)]
    matrix = client.encode(texts)
    assert matrix.shape == (500, WIDTH)
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=0, atol=1e-5)
    for i in (0, 63, 64, 257, 499):
        np.testing.assert_array_equal(matrix[i], client.encode(texts[i]))


def test_strange_texts_have_vectors(client):
    texts = ["\u0301\u0323\u0489", "\U0001F469\u200D\U0001F467 " * 300,
             "a" * 10**6, "\0", " \t\n", "\u200B\uFEFF", "\U0010FFFF" * 100]
    vectors = client.embed(texts, truncate="end").vectors
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=0, atol=1e-5)


def test_max_len_tokens_work_and_one_more_is_refused_by_its_place(client):
    assert client.encode(FITS).shape == (WIDTH,)
    texts = ["short"] * 150
    texts[100] = TOO_LONG
    with pytest.raises(encoderd.InputTooLongError) as caught:
        client.encode(texts)
    error = caught.value
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.input_index == 100
    assert (error.token_count, error.max_tokens) == (257, 256)
    assert "inputs[100]" in error.message
    assert error.violations[0][0] == "inputs[100].text"


def test_a_text_that_is_too_long_names_the_options_that_take_it(client):
    cut = 'pass truncate="end" to cut it'
    windows = f"{cut}, or windows=0 to average the vectors of all its parts"
    for call, value, remedy in (
            (client.encode, TOO_LONG, windows),
            (client.embed, TOO_LONG, windows),
            (client.encode, [(TOO_LONG, "pair")], cut),
            (client.token_embeddings, TOO_LONG, cut),
            (client.encode, encoderd.TokenIds([101] * 257),
             "shorten it: ids are never cut")):
        with pytest.raises(encoderd.InputTooLongError) as caught:
            call(value)
        assert caught.value.remedy == remedy
        assert str(caught.value).endswith(
            f"this model takes at most 256; {remedy}")
    states, = client.token_states([TOO_LONG], on_error="per_input")
    assert states.error.remedy == cut


def test_a_long_text_is_cut_only_when_asked(client):
    result = client.embed([TOO_LONG, "short"], truncate="end")
    assert result.truncated.tolist() == [True, False]
    assert result.token_counts[0] == 257
    np.testing.assert_array_equal(result.vectors[0], client.encode(FITS))


def test_normalisation_follows_the_caller(client):
    raw = client.embed("A man is eating food.",
                       normalize_embeddings=False).vectors[0]
    unit = client.encode("A man is eating food.", normalize_embeddings=True)
    assert abs(np.linalg.norm(raw) - 1) > 1e-2
    np.testing.assert_allclose(raw / np.linalg.norm(raw), unit, atol=1e-6)


def test_dimensions_and_pooling_follow_the_caller(client):
    assert client.encode("text", dimensions=64).shape == (64,)
    with pytest.raises(encoderd.InvalidInputError) as caught:
        client.encode("text", dimensions=WIDTH + 1)
    assert caught.value.reason == "INVALID_OPTION"
    for options, words in (
            ({"dimensions": WIDTH + 1}, f"dimensions is {WIDTH + 1}; "),
            ({"truncate_dim": WIDTH + 1}, f"truncate_dim is {WIDTH + 1}; "),
            ({"truncate_dim": WIDTH + 1, "normalize_embeddings": True},
             f"truncate_dim is {WIDTH + 1}; "),
            ({"windows": 0, "truncate": "end"},
             'windows is set together with truncate="end"; '),
            ({"windows": WIDTH}, f"windows is {WIDTH}; ")):
        with pytest.raises(encoderd.InvalidInputError) as caught:
            client.encode("text", **options)
        assert caught.value.message.startswith(words)
    for number in (0, -3):
        for more in ({}, {"normalize_embeddings": True},
                     {"precision": "binary"}):
            with pytest.raises(ValueError, match=f"truncate_dim is {number};"):
                client.encode("text", truncate_dim=number, **more)
    first = client.token_embeddings("text")[0]
    cls = client.embed("text", pooling="cls", normalize_embeddings=False)
    np.testing.assert_array_equal(cls.vectors[0], first)


def test_token_states_give_the_vector_when_averaged(client):
    states = client.token_embeddings("A man is eating food.")
    assert states.shape == (8, WIDTH)
    mean = states.mean(axis=0)
    np.testing.assert_allclose(
        mean / np.linalg.norm(mean), client.encode("A man is eating food."),
        atol=1e-6)
    block = client.token_embeddings("A man is eating food.", layer=0)
    assert not np.array_equal(block, states)
    with pytest.raises(encoderd.InvalidInputError) as caught:
        client.token_embeddings("text", layer=7)
    assert caught.value.reason == "LAYER_OUT_OF_RANGE"


def test_tokens_can_be_sent_back_as_ids(client):
    tokens = client.tokenize("Hello, world")
    assert tokens.tokens == ["[CLS]", "hello", ",", "world", "[SEP]"]
    assert tokens.offsets == [(0, 0), (0, 5), (5, 6), (7, 12), (0, 0)]
    ids = encoderd.TokenIds(tokens.ids)
    np.testing.assert_array_equal(client.encode(ids),
                                  client.encode("Hello, world"))
    with pytest.raises(encoderd.InvalidInputError) as caught:
        client.encode(["fine", encoderd.TokenIds([101, 30522, 102])])
    assert caught.value.reason == "TOKEN_ID_OUT_OF_RANGE"
    assert caught.value.input_index == 1
    assert caught.value.metadata["limit"] == "30522"


def test_offsets_of_tokens_count_the_bytes_of_the_text(client):
    text = "Zürich, naïve 東京"
    found = client.tokenize(text)
    data = text.encode()
    pieces = [data[begin:end].decode() for begin, end in found.offsets]
    assert pieces[0] == pieces[-1] == ""  # [CLS], [SEP]
    assert "".join(pieces) == text.replace(" ", "")


def test_windows_read_a_long_text_to_its_end(client):
    half = " ".join(f"word{i}" for i in range(40))
    result = client.embed([TOO_LONG, "short", " ".join([half] * 8)],
                          windows=16)
    assert result.windows.tolist()[:2] == [2, 0]
    assert result.windows[2] > 2
    assert result.truncated.tolist() == [False] * 3
    np.testing.assert_array_equal(result.vectors[1], client.encode("short"))
    with pytest.raises(encoderd.InvalidInputError) as caught:
        client.embed(TOO_LONG, windows=0, truncate="end")
    assert caught.value.reason == "INVALID_OPTION"


def test_one_bad_text_costs_its_own_place_only(client):
    texts = [f"text {i}" for i in range(100)]
    texts[3], texts[40], texts[70] = "", "\ud800", TOO_LONG
    result = client.embed(texts, batch_size=16, on_error="per_input")
    assert {place: error.reason for place, error in result.errors.items()} == {
        3: "EMPTY_INPUT", 40: "INVALID_UTF8", 70: "INPUT_TOO_LONG"}
    long = result.errors[70]
    assert (long.input_index, long.token_count, long.max_tokens) == (70, 257,
                                                                     256)
    assert "inputs[70]" in long.message
    assert np.isnan(result.vectors[~result.ok]).all()
    good = [text for text, ok in zip(texts, result.ok) if ok]
    np.testing.assert_array_equal(result.vectors[result.ok],
                                  client.encode(good))
    none = client.embed(["", ""], precision="ubinary", on_error="per_input")
    assert list(none.errors) == [0, 1]
    assert none.vectors.tolist() == [[0] * 48] * 2


def test_token_states_follow_span_norm_and_cut(client):
    text = "A man is eating food."
    states = client.token_embeddings(text)
    inner = client.token_states(text, span="without_special_tokens")
    np.testing.assert_array_equal(inner.states, states[1:-1])
    assert (inner.token_count, inner.truncated) == (8, False)
    block = client.token_embeddings(text, layer=0)
    summed = client.token_embeddings(text, layer=0, before_norm=True)
    assert summed.shape == block.shape
    assert not np.array_equal(summed, block)
    with pytest.raises(encoderd.InvalidInputError) as caught:
        client.token_embeddings(text, before_norm=True)
    assert caught.value.reason == "INVALID_OPTION"
    cut, bad, fine = client.token_states(
        [TOO_LONG, "", text], truncate="end", on_error="per_input")
    assert cut.states.shape == (256, WIDTH)
    assert (cut.token_count, cut.truncated) == (257, True)
    assert bad.states.size == 0
    assert (bad.error.reason, bad.error.input_index) == ("EMPTY_INPUT", 1)
    assert fine.error is None
    np.testing.assert_array_equal(fine.states, states)


def test_the_position_table_was_trained(client):
    report = client.inspect_positions(0, 256, cosine=True)
    assert report.table_rows == 512
    assert report.verdict == "trained"
    assert report.verdict_cosine > report.threshold
    # Centered cosines follow from raw ones.
    raw = report.cosine.astype(np.float64)
    centered = raw - raw.mean(0) - raw.mean(1)[:, None] + raw.mean()
    lengths = np.sqrt(np.diag(centered))
    centered /= np.outer(lengths, lengths)
    for distance, mean in report.centered_profile.items():
        assert abs(np.diag(centered, distance).mean() - mean) < 1e-4
    assert report.verdict_cosine == report.centered_profile[1]
    np.testing.assert_allclose(np.diag(report.cosine), 1, atol=1e-5)


def test_a_pair_is_read_together(client):
    pair, single = client.embed([("first", "second"), "first second"]
                                ).token_counts
    assert (pair, single) == (5, 4)


def test_an_empty_text_is_refused(client):
    with pytest.raises(encoderd.InvalidInputError) as caught:
        client.encode(["fine", ""])
    assert caught.value.reason == "EMPTY_INPUT"
    assert caught.value.input_index == 1


def test_the_model_tells_of_itself(client):
    model = client.model()
    assert model.name == "minilm"
    assert model.hidden_size == WIDTH
    assert model.max_len == 256
    assert [m.name for m in client.models()] == ["minilm"]
    with pytest.raises(encoderd.NotFoundError) as caught:
        client.encode("text", model="other")
    assert caught.value.reason == "MODEL_NOT_FOUND"
    with pytest.raises(encoderd.NotFoundError) as caught:
        client.encode("text", prompt_name="other")
    assert caught.value.reason == "PROMPT_NOT_FOUND"
    assert client.health() == "SERVING"
    assert client.health("encoderd.v1.Encoder") == "SERVING"


def test_the_http_port_is_told_from_the_grpc_port(model_folder):
    with serving(model_folder) as found:
        target = f"127.0.0.1:{found.http}"
        with encoderd.Client(target) as client:
            with pytest.raises(encoderd.UnavailableError) as caught:
                client.encode("text")
    assert caught.value.message == f"{target} speaks HTTP, not gRPC"


def test_members_of_sentence_transformers_tell_of_the_model(client):
    assert client.get_embedding_dimension() == WIDTH
    assert client.get_sentence_embedding_dimension() == WIDTH
    assert client.max_seq_length == 256
    assert client.prompts == {} and client.default_prompt_name is None
    np.testing.assert_array_equal(client.encode_query(["text"]),
                                  client.encode(["text"]))
    np.testing.assert_array_equal(client.encode_document("text"),
                                  client.encode("text"))


def test_more_texts_than_a_request_may_have_are_split(client):
    assert client.encode(["text"] * 1100, batch_size=4096).shape == (1100,
                                                                     WIDTH)


def test_an_empty_text_has_a_row_of_zeros_on_request(client):
    found = client.encode(["fine", "", TOO_LONG], on_error="zero")
    assert (found[1:] == 0).all()
    np.testing.assert_array_equal(found[0], client.encode("fine"))


def test_a_long_list_shows_its_progress(client, capfd):
    client.encode(["text"] * 200, show_progress_bar=True)
    assert "200/200" in capfd.readouterr().err


def test_a_call_waits_for_the_model_of_a_server_that_has_just_begun(
        model_folder):
    with Server(PROGRAMS / "encoderd", f"minilm={model_folder}",
                wait_for=None) as found, encoderd.Client(
                    found.address) as client:
        assert client.encode("text").shape == (WIDTH,)
        assert found.stop() == 0, found.log()


def test_similarity_of_quantized_vectors_is_near_that_of_floats(client):
    texts = ["A man is eating food.", "Someone has a meal.", "It rains."]
    floats = client.embed(texts)
    wanted = client.similarity(floats, floats)
    for precision in ("int8", "uint8"):
        found = client.embed(texts, precision=precision)
        np.testing.assert_allclose(client.similarity(found, floats), wanted,
                                   atol=0.01)
        ranges = np.stack([np.full(384, -0.3), np.full(384, 0.3)])
        array = client.embed(texts, precision=precision, ranges=ranges)
        with pytest.raises(TypeError, match=f"EmbedResult of {precision} "):
            client.similarity(array, floats)
        step = (ranges[1] - ranges[0]) / 255
        middle = 128.5 if precision == "int8" else 0.5
        np.testing.assert_allclose(
            client.similarity(ranges[0] + (array.vectors + middle) * step,
                              floats), wanted, atol=0.01)
    for precision in ("binary", "ubinary"):
        found = client.embed(texts, precision=precision)
        with pytest.raises(TypeError, match="without scales; unpack bits"):
            client.similarity(found, found)
