"""Members that code for a SentenceTransformer expects besides encode(), against
the fake service and services with a word in the matter."""

import concurrent.futures
import copy
import importlib
import importlib.metadata
import inspect
import logging
import math
import multiprocessing
import pathlib
import sys

import encoderd
import numpy as np
import pytest
from encoderd import _method_jobs
from encoderd.inputs import BYTES_PER_CALL
from either_client import KINDS, ask
from python_service import Model, serve

WIDTH = 6  # hidden_size of the fake
TOO_LONG = "a b c d e f g"  # 9 tokens; the fake takes 8


@pytest.fixture
def client(fake):
    with encoderd.Client(fake.target) as client:
        yield client


@pytest.fixture
def without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)


@KINDS
def test_the_server_says_what_its_model_is_like(kind):
    with serve(Model(prompts={"query": "ask: "},
                     default_prompt_name="query")) as service:
        for name, wanted in (("get_embedding_dimension", 2),
                             ("get_sentence_embedding_dimension", 2),
                             ("max_seq_length", 8),
                             ("prompts", {"query": "ask: "}),
                             ("default_prompt_name", "query")):
            assert ask(kind, service.target, name) == wanted, name
    with serve(Model()) as service:
        assert ask(kind, service.target, "prompts") == {}
        assert ask(kind, service.target, "default_prompt_name") is None


@KINDS
def test_queries_and_documents_get_the_prompt_of_their_name(kind):
    for method, prompts, wanted in (
            ("encode_query", {"query": "q: ", "document": "d: "}, "query"),
            ("encode_document", {"document": "d: ", "passage": "p: "},
             "document"),
            ("encode_document", {"passage": "p: ", "corpus": "c: "},
             "passage"),
            ("encode_document", {"corpus": "c: "}, "corpus"),
            ("encode_query", {"other": "o: "}, "")):
        with serve(Model(prompts=prompts)) as service:
            found = ask(kind, service.target, method, ["one", "two"],
                        normalize_embeddings=True, timeout=60)
            assert found.shape == (2, 2)
            one = ask(kind, service.target, method, "one",
                      prompt_name="other")
            assert one.shape == (2,)
            ask(kind, service.target, method, "one", prompt="own: ")
        first, second, third = service.requests
        assert first.options.prompt_name == wanted
        assert first.options.normalize
        assert second.options.prompt_name == "other"
        assert third.inputs[0].text == "own: one"


@KINDS
def test_a_default_prompt_that_would_go_before_a_query_in_silence_is_named(
        kind):
    with serve(Model(prompts={"passage": "p: "},
                     default_prompt_name="passage")) as service:
        with pytest.raises(ValueError, match="its prompt 'passage' before "
                                             "every text"):
            ask(kind, service.target, "encode_query", "one")
    assert service.requests == []


@KINDS
@pytest.mark.parametrize("method", ["encode", "encode_query",
                                    "encode_document"])
def test_inputs_may_have_their_older_name(fake, kind, method):
    np.testing.assert_array_equal(
        ask(kind, fake.target, method, sentences=["one", "two"]),
        ask(kind, fake.target, method, ["one", "two"]))
    with pytest.raises(TypeError) as caught:
        ask(kind, fake.target, method, ["one"], sentences=["one"])
    assert str(caught.value) == (
        f"{method}() takes inputs or sentences, its older name, not both")
    for arguments in ([], [None]):
        with pytest.raises(TypeError) as caught:
            ask(kind, fake.target, method, *arguments)
        assert str(caught.value) == (
            "inputs is None; expected a text, or a list of texts")


@KINDS
@pytest.mark.parametrize("name, remedy", [
    ("max_seq_length", "start the server with --max_len, or cut at its limit "
                       'with truncate="end"'),
    ("prompts", "pass prompt= or prompt_name= with each call"),
    ("default_prompt_name", "pass prompt_name= with each call"),
    ("truncate_dim", "pass truncate_dim= with each call")])
def test_what_the_server_says_cannot_be_set(fake, kind, name, remedy):
    client = kind(fake.target)
    with pytest.raises(AttributeError) as caught:
        setattr(client, name, None)
    assert str(caught.value) == (
        f"{name} is the server's and cannot be set here; {remedy}")
    if kind is encoderd.Client:
        client.close()


@KINDS
def test_a_batch_size_above_the_servers_limit_is_split(kind):
    texts = ["x" * i for i in range(1, 101)]
    with serve(Model(limit=7)) as service:
        def work(name, **options):
            return ask(kind, service.target, name, texts, batch_size=64,
                       **options)

        assert work("encode")[:, 0].tolist() == list(range(1, 101))
        assert max(len(r.inputs) for r in service.requests) == 7
        assert len(service.requests) == 15
        assert work("embed").vectors.shape == (100, 2)
        assert len(work("token_embeddings")) == 100
        assert [len(found.ids) for found in work("tokenize")] == list(
            range(1, 101))
        if kind is encoderd.Client:
            with kind(service.target) as client:
                found = list(client.embed_stream(texts, batch_size=64))
                assert [result.vector[0] for result in found] == list(
                    range(1, 101))


class Progress:
    """What a progress bar is told."""

    def __init__(self):
        self.counts = []

    def update(self, count):
        self.counts.append(count)

    def close(self):
        pass


@KINDS
def test_only_unanswered_inputs_are_cut_again_to_the_servers_limit(
        kind, monkeypatch):
    progress = Progress()
    monkeypatch.setattr(_method_jobs, "make_progress", lambda *_: progress)
    # A large text travels alone, within any limit.
    texts = ["x" * BYTES_PER_CALL, "x" * (BYTES_PER_CALL + 1), "a\ud800"]
    texts += ["x" * i for i in range(1, 21)]
    for name in ("embed", "token_states"):
        progress.counts.clear()
        with serve(Model(limit=7)) as service:
            ask(kind, service.target, name, texts, batch_size=64,
                on_error="per_input")
        sizes = [[len(value.text) for value in request.inputs]
                 for request in service.requests]
        assert sorted(sum(sizes, [])) == sorted(
            len(text) for text in texts if text != "a\ud800"), name
        assert sum(progress.counts) == len(texts), name


def test_evaluators_leave_their_metrics(client, without_torch):
    client.model_card_data.set_evaluation_metrics(object(), {"ndcg": 1.0},
                                                  epoch=0, step=1)
    assert client.device == "cpu"
    assert client.eval() is client


def test_tokens_are_also_arrays_by_name(client, without_torch):
    with serve(Model()) as service, encoderd.Client(service.target) as other:
        tokens = other.tokenize(["one", "three"])
    assert tokens["input_ids"].tolist() == [[7, 7, 7, 0, 0], [7] * 5]
    assert tokens["token_type_ids"].tolist() == [[1, 1, 1, 0, 0], [1] * 5]
    assert tokens["attention_mask"].tolist() == [[1, 1, 1, 0, 0], [1] * 5]
    assert tokens["input_ids"].dtype == np.int64
    assert set(dict(tokens.items())) == set(tokens.keys()) == {
        "input_ids", "token_type_ids", "attention_mask"}
    assert "input_ids" in tokens and "labels" not in tokens
    with pytest.raises(KeyError):
        tokens["labels"]
    # A list, all the same.
    tokens = client.tokenize(["one", "two words"])
    assert [text.token_count for text in tokens] == [3, 4]
    assert tokens[1].tokens[1] == "two" and len(tokens[:1]) == 1
    assert client.tokenize([])["input_ids"].shape == (0, 0)


@KINDS
@pytest.mark.parametrize("precision, blank", [
    ("float32", 0), ("float16", 0), ("int8", 0), ("ubinary", 0)])
def test_the_row_of_a_bad_text_is_zero_on_request(fake, kind, precision, blank,
                                                  caplog):
    texts = ["one", "", "two words", TOO_LONG]
    with caplog.at_level(logging.WARNING, logger="encoderd"):
        found = ask(kind, fake.target, "encode", texts, precision=precision,
                    on_error="zero")
    assert (found[[1, 3]] == blank).all()
    np.testing.assert_array_equal(
        found[[0, 2]], ask(kind, fake.target, "encode",
                           [texts[0], texts[2]], precision=precision))
    assert ("2 of 4 inputs have no vector; their rows are all zeros: "
            "inputs[1], inputs[3]; the first: " in caplog.text)
    assert "inputs[1] is empty" in caplog.text


def test_the_row_of_a_bad_text_is_named_or_nan(client):
    texts = ["one", "", "two words"]
    for on_error in (None, "fail_request"):
        with pytest.raises(encoderd.InvalidInputError) as caught:
            client.encode(texts, on_error=on_error)
        assert caught.value.input_index == 1
        assert "inputs[1] is empty; " in str(caught.value)
        assert 'on_error="zero"' in str(caught.value)
    found = client.encode(texts, on_error="per_input")
    assert np.isnan(found[1]).all() and not np.isnan(found[[0, 2]]).any()
    with pytest.raises(ValueError, match="on_error is 'skip'; expected one of"):
        client.encode(texts, on_error="skip")
    with pytest.raises(ValueError, match="on_error goes with output_value"):
        client.encode(texts, on_error="zero", output_value="token_embeddings")


@KINDS
@pytest.mark.parametrize("precision, blank", [
    ("int8", "zeros"), ("uint8", "zeros"), ("binary", "zeros"),
    ("ubinary", "zeros"), ("float32", "NaN"), ("float16", "NaN")])
def test_a_row_without_a_vector_is_told_of(fake, kind, precision, blank,
                                           caplog):
    with caplog.at_level(logging.WARNING, logger="encoderd"):
        found = ask(kind, fake.target, "encode", ["one", "", "two"],
                    precision=precision, on_error="per_input")
    assert (f"1 of 3 inputs have no vector; their rows are all {blank}: "
            "inputs[1]; the first: " in caplog.text)
    assert (np.isnan(found[1]) if blank == "NaN" else found[1] == 0).all()


def test_a_warning_names_the_first_rows_without_a_vector(client, caplog):
    with caplog.at_level(logging.WARNING, logger="encoderd"):
        client.encode(["one"] + [""] * 12, on_error="per_input")
    assert "inputs[9], inputs[10], and 2 more; the first: " in caplog.text


@pytest.mark.parametrize("count, warns", [(99, True), (100, False)])
def test_ranges_of_few_texts_are_told_of(client, count, warns, caplog):
    texts = [str(number) for number in range(count)]
    with caplog.at_level(logging.WARNING, logger="encoderd"):
        client.encode(texts, precision="int8")
        client.encode(texts[:2], precision="int8", ranges=[[0] * WIDTH,
                                                           [1] * WIDTH])
        client.encode(texts[:2], precision="binary")
    wanted = [f"the ranges of precision='int8' are those of {count} texts"]
    assert [record.getMessage().partition(";")[0]
            for record in caplog.records] == (wanted if warns else [])


@KINDS
def test_one_vector_of_several_texts_is_too_few_for_ranges(fake, kind):
    for on_error in ("per_input", "zero"):
        with pytest.raises(ValueError) as caught:
            ask(kind, fake.target, "encode", ["", "one", ""],
                precision="uint8", on_error=on_error)
        assert str(caught.value) == (
            "precision='uint8': only 1 of 3 inputs has a vector (inputs[0] is "
            "empty), and ranges cannot be taken from a single text; give "
            "ranges=, the least and the largest value of each dimension over a "
            "representative list")
    # With ranges it has its levels.
    found = ask(kind, fake.target, "encode", ["", "one", ""],
                precision="uint8", on_error="per_input",
                ranges=[[-9] * WIDTH, [9] * WIDTH])
    assert found[1].any() and not found[[0, 2]].any()


def test_windows_take_a_text_that_is_too_long(fake):
    with serve(Model()) as service, encoderd.Client(service.target) as client:
        client.encode(TOO_LONG, windows=2)
    assert service.requests[0].options.windows.overlap == 2


@KINDS
@pytest.mark.parametrize("method, arguments", [
    ("encode", ["~~never"]), ("embed", ["~~never"]),
    ("encode_query", ["~~never"])])
def test_a_call_takes_a_timeout(fake, kind, method, arguments):
    with pytest.raises(encoderd.DeadlineExceededError, match="within 0.05 s"):
        ask(kind, fake.target, method, *arguments, timeout=0.05)


def test_every_public_member_says_what_it_is():
    for name in encoderd.__all__:
        kind = getattr(encoderd, name)
        if not inspect.isclass(kind):
            continue
        assert inspect.getdoc(kind), name
        for member, value in inspect.getmembers(kind):
            if not member.startswith("_") and (
                    callable(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{member}"


@KINDS
def test_every_method_takes_a_timeout(fake, kind):
    for method, arguments in (
            ("encode", ["one"]), ("encode_query", ["one"]),
            ("encode_document", ["one"]), ("embed", ["one"]),
            ("token_embeddings", ["one"]), ("token_states", ["one"]),
            ("tokenize", ["one"]), ("inspect_positions", []), ("models", []),
            ("model", []), ("health", [])):
        assert ask(kind, fake.target, method, *arguments,
                   timeout=math.inf) is not None
        with pytest.raises(ValueError, match="timeout is 0"):
            ask(kind, fake.target, method, *arguments, timeout=0)


def encode_there(client):
    """In another process."""
    return client.encode(["one"]), client.similarity_fn_name


def test_a_client_travels_to_other_processes_as_what_it_was_made_with(client):
    client.similarity_fn_name = "dot"
    twin = copy.copy(client)
    assert twin is not client and twin.similarity_fn_name == "dot"
    twin.close()
    wanted = client.encode(["one"])  # the first one's connection is its own
    with concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn")) as pool:
        found, name = pool.submit(encode_there, client).result(120)
    np.testing.assert_array_equal(found, wanted)
    assert name == "dot"


def test_credentials_do_not_travel(fake):
    import grpc
    client = encoderd.Client(fake.target,
                             credentials=grpc.ssl_channel_credentials())
    with pytest.raises(TypeError, match="credentials cannot be pickled; make"):
        copy.copy(client)


@pytest.mark.parametrize("module, packages", [
    ("langchain", ["langchain_core"]), ("llama_index", ["llama_index"]),
    ("haystack", ["haystack"]), ("chroma", ["chromadb"]),
    ("keybert", ["keybert", "bertopic"])])
def test_an_adapter_without_its_package_says_what_to_install(
        module, packages, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] in packages
                 or name == f"encoderd.{module}"]:
        monkeypatch.delitem(sys.modules, name)
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as caught:
        importlib.import_module(f"encoderd.{module}")
    extra = module.replace("_", "-")
    assert f"pip install 'encoderd[{extra}]'" in str(caught.value)
    assert caught.value.__cause__ is None


def test_every_extra_of_the_package_is_a_module():
    extras = importlib.metadata.metadata("encoderd").get_all("Provides-Extra")
    folder = pathlib.Path(encoderd.__file__).parent
    for module in ("langchain", "llama_index", "haystack", "chroma",
                   "keybert"):
        assert module.replace("_", "-") in extras  # pip 23.0 compares letters
        lines = (folder / f"{module}.py").read_text().splitlines()
        assert len(lines) < 60, module  # an adapter is no more than that
