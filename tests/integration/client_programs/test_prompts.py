"""Prompts of both clients: which inputs get one, and what is said of those that
cannot."""

import encoderd
import grpc
import numpy as np
import pytest
from encoderd.v1 import encoder_pb2
from either_client import KINDS, ask
from python_service import Model, serve
from stream_service import failure


@pytest.fixture
def client(fake):
    with encoderd.Client(fake.target) as client:
        yield client


@KINDS
@pytest.mark.parametrize("method, options", [
    ("encode", {"prompt": "ask: "}), ("encode", {"prompt_name": "query"}),
    ("encode", {"prompt_name": "query", "output_value": "token_embeddings"}),
    ("encode_query", {}), ("embed", {"prompt_name": "query"})])
def test_a_pair_where_a_prompt_is_asked_for_is_refused(kind, method, options):
    with serve(Model(prompts={"query": "ask: "})) as service:
        with pytest.raises(ValueError) as caught:
            ask(kind, service.target, method, ["one", ("a", "b")],
                batch_size=1, **options)
    assert str(caught.value) == ("inputs[1] is a pair; a prompt goes before "
                                 "texts only")
    assert service.requests == []


@KINDS
@pytest.mark.parametrize("options", [
    {"prompt": "ask: "}, {"prompt_name": "query"}])
def test_token_ids_where_a_prompt_is_asked_for_are_refused(kind, options):
    with serve(Model(prompts={"query": "ask: "})) as service:
        with pytest.raises(ValueError) as caught:
            ask(kind, service.target, "encode",
                ["one", encoderd.TokenIds([1, 2])], batch_size=1, **options)
    assert str(caught.value) == ("inputs[1] is token ids; a prompt goes "
                                 "before texts only")
    assert service.requests == []


def test_a_stream_refuses_a_pair_where_a_prompt_is_asked_for(client):
    with pytest.raises(ValueError, match=r"inputs\[1\] is a pair; a prompt"):
        list(client.embed_stream(["one", ("a", "b")], prompt_name="query"))


@KINDS
def test_a_pair_without_a_prompt_is_no_error(kind):
    for prompts, method, options in (
            ({}, "encode_query", {}), ({"query": ""}, "encode_query", {}),
            ({}, "encode", {"prompt": ""}), ({}, "embed", {})):
        with serve(Model(prompts=prompts)) as service:
            ask(kind, service.target, method, [("a", "b")], **options)
        assert service.requests[0].inputs[0].pair.second == "b"


@KINDS
@pytest.mark.parametrize("output_value", ["sentence_embedding",
                                          "token_embeddings", None])
def test_a_prompt_name_without_text_takes_pairs_and_ids(kind, output_value):
    inputs = ["one", ("a", "b"), encoderd.TokenIds([1, 2])]
    for info in ({}, {"prompts": {"query": ""}},
                 {"prompts": {"query": "", "other": "ask: "},
                  "default_prompt_name": "other"}):
        with serve(Model(**info)) as service:
            ask(kind, service.target, "encode", inputs, prompt_name="query",
                output_value=output_value)
        for request in service.requests:
            assert request.inputs[0].text == "one"
            assert request.inputs[1].pair.second == "b"
            assert request.inputs[2].tokens.ids == [1, 2]


@KINDS
def test_embed_takes_a_pair_with_a_prompt_name_without_text(kind):
    with serve(Model(prompts={"none": ""})) as service:
        ask(kind, service.target, "embed", [("a", "b")], prompt_name="none")
    assert service.requests[0].options.prompt_name == "none"


@KINDS
def test_an_empty_text_stays_empty_behind_a_prompt(fake, kind):
    for options in ({"prompt": "ask: "},
                    {"prompt": "ask: ", "output_value": "token_embeddings"}):
        with pytest.raises(encoderd.InvalidInputError) as caught:
            ask(kind, fake.target, "encode", ["one", ""], **options)
        assert caught.value.reason == "EMPTY_INPUT"
        assert caught.value.input_index == 1
    found = ask(kind, fake.target, "encode", ["one", ""], prompt="ask: ",
                on_error="per_input")
    assert np.isnan(found[1]).all()


@KINDS
def test_an_empty_prompt_name_is_refused(fake, kind):
    for method in ("encode", "encode_query", "encode_document"):
        with pytest.raises(ValueError) as caught:
            ask(kind, fake.target, method, "one", prompt_name="")
        assert str(caught.value) == ("prompt_name is empty; name a prompt of "
                                     "the model, or leave it out")


@KINDS
def test_the_names_that_every_model_has_are_no_prompt_without_one(fake, kind):
    for name in ("query", "document"):
        with serve(Model()) as service:
            ask(kind, service.target, "encode", ["one"], prompt_name=name)
        assert service.requests[0].inputs[0].text == "one"
    states = {"output_value": "token_embeddings"}
    plain = ask(kind, fake.target, "encode", ["one"], **states)
    named = ask(kind, fake.target, "encode", ["one"], prompt_name="document",
                **states)
    assert (named[0] == plain[0]).all()
    with pytest.raises(encoderd.NotFoundError, match="no prompt 'other'"):
        ask(kind, fake.target, "encode", ["one"], prompt_name="other",
            **states)


@KINDS
def test_an_empty_prompt_is_none_where_the_model_has_no_default(kind):
    with serve(Model()) as service:
        ask(kind, service.target, "encode", "one", prompt="")
    assert service.requests[0].inputs[0].text == "one"
    with serve(Model(prompts={"q": "ask: "},
                     default_prompt_name="q")) as service:
        with pytest.raises(ValueError, match="its prompt 'q' before every"):
            ask(kind, service.target, "encode", "one", prompt="")
        with pytest.raises(ValueError, match="prompt_name='query' cannot"):
            ask(kind, service.target, "encode", "one", prompt_name="query")


KEEP = 'drop it, or keep its row: on_error="per_input"'
STATES = 'drop it, or call token_states(on_error="per_input")'


@KINDS
@pytest.mark.parametrize("method, options, remedy", [
    ("embed", {}, KEEP), ("token_states", {}, KEEP),
    ("encode", {}, f'{KEEP} or on_error="zero"'),
    ("token_embeddings", {}, STATES),
    ("encode", {"output_value": "token_embeddings"}, STATES),
    ("encode", {"output_value": None}, "drop it")])
def test_the_remedy_of_an_empty_text_is_one_of_the_method(
        fake, kind, method, options, remedy):
    with pytest.raises(encoderd.InvalidInputError) as caught:
        ask(kind, fake.target, method, ["one", ""], **options)
    assert caught.value.reason == "EMPTY_INPUT"
    assert caught.value.remedy == remedy


class NoText(Model):
    """Refuses a text as encoderd refuses an empty one."""

    def Tokenize(self, request, context):
        status = failure(3, "EMPTY_INPUT")
        context.set_trailing_metadata([
            ("grpc-status-details-bin", status.SerializeToString())])
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, status.message)


@KINDS
def test_tokenize_has_no_row_to_keep(kind):
    with serve(NoText()) as service:
        with pytest.raises(encoderd.InvalidInputError) as caught:
            ask(kind, service.target, "tokenize", [""])
    assert str(caught.value).endswith("no: EMPTY_INPUT; drop it")


@KINDS
@pytest.mark.parametrize("options", [
    {}, {"output_value": "token_embeddings"}, {"output_value": None}])
def test_an_input_that_is_too_long_with_its_prompt_says_so(fake, kind, options):
    texts = ["one", "a b c d e f"]  # 8 tokens; the fake takes 8
    ask(kind, fake.target, "encode", texts, **options)
    with pytest.raises(encoderd.InputTooLongError) as caught:
        ask(kind, fake.target, "encode", texts, prompt="ask ", **options)
    assert caught.value.message == (
        "inputs[1] has 9 tokens; this model takes at most 8, the prompt's "
        "tokens included")
    with pytest.raises(encoderd.InputTooLongError) as caught:
        ask(kind, fake.target, "encode", "a b c d e f g", **options)
    assert caught.value.message.endswith("takes at most 8")
    # A model without prompts takes "query" as none.
    for none in ({"prompt": ""}, {"prompt_name": "query"}):
        with serve(Long()) as service:
            with pytest.raises(encoderd.InputTooLongError) as caught:
                ask(kind, service.target, "encode", ["one", "!"], **none,
                    **options)
        assert "prompt" not in caught.value.message


class Long(Model):
    """Finds a text that begins with "!" too long; others are fine."""

    def _check(self, request, context):
        super()._check(request, context)
        keeps = (isinstance(request, encoder_pb2.EmbedRequest)
                 and request.options.on_error)
        if not keeps and any(value.text.startswith("!")
                             for value in request.inputs):
            status = failure(3, "INPUT_TOO_LONG")
            context.set_trailing_metadata([
                ("grpc-status-details-bin", status.SerializeToString())])
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, status.message)

    def Embed(self, request, context):
        answer = super().Embed(request, context)
        for value, embedding in zip(request.inputs, answer.embeddings):
            if value.text.startswith("!"):
                embedding.Clear()
                embedding.error.CopyFrom(failure(3, "INPUT_TOO_LONG"))
        return answer


@KINDS
def test_the_error_of_a_single_input_counts_the_prompt(kind):
    with serve(Long(prompts={"query": "ask: "})) as service:
        for options, wanted in ((
                {"prompt_name": "query"}, True), ({}, False)):
            result = ask(kind, service.target, "embed", ["fine", "!"],
                         on_error="per_input", **options)
            assert result.errors[1].message.endswith(
                "the prompt's tokens included") == wanted
            with encoderd.Client(service.target) as client:
                with pytest.raises(encoderd.InputTooLongError) as caught:
                    list(client.embed_stream(["fine", "!"], **options))
            assert caught.value.message.endswith(
                "the prompt's tokens included") == wanted
