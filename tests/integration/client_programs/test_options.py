"""Every option of the contract travels as the caller means it, and each answer
is read, by both clients, against a service that keeps what it was asked."""

import copy
import re

import encoderd
import grpc
import numpy as np
import pytest
from either_client import awaited, blocking
from encoderd.errors import from_status
from encoderd.v1 import encoder_pb2
from google.rpc import error_details_pb2, status_pb2
from python_service import Service, serve

TWO = bytes(np.array([1, 2], "<f4"))


def too_long(index):
    """What the server says of a bad input of a request."""
    embedding = encoder_pb2.Embedding()
    embedding.error.code = 3
    embedding.error.message = f"inputs[{index}] has 9 tokens"
    embedding.error.details.add().Pack(error_details_pb2.ErrorInfo(
        reason="INPUT_TOO_LONG", domain="encoderd", metadata={
            "input_index": str(index), "token_count": "9", "max_tokens": "8"}))
    return embedding


class Recorder(Service):
    """Answers [1, 2] for each text; an error for those that begin with "!"."""

    def __init__(self):
        self.embeds = []
        self.encodes = []
        self.gone = False

    def Embed(self, request, context):
        self.embeds.append(request)
        if self.gone:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such model")
        return encoder_pb2.EmbedResponse(embeddings=[
            too_long(i) if value.text.startswith("!") else
            encoder_pb2.Embedding(packed=TWO, token_count=9, windows=3)
            for i, value in enumerate(request.inputs)])

    def Encode(self, request, context):
        self.encodes.append(request)
        return encoder_pb2.EncodeResponse(states=[
            encoder_pb2.TokenStates(error=too_long(i).error)
            if value.text.startswith("!") else
            encoder_pb2.TokenStates(rows=2, columns=1, packed=TWO,
                                    token_count=9, truncated=True)
            for i, value in enumerate(request.inputs)])

    def GetModel(self, request, context):
        return encoder_pb2.Model(dimensions=2)


@pytest.fixture
def service():
    with serve(Recorder()) as started:
        yield started


BOTH = pytest.mark.parametrize("ask", [blocking, awaited],
                               ids=["blocking", "awaited"])


@BOTH
def test_windows_travel_and_their_number_comes_back(service, ask):
    result = ask(service.target, "embed", ["one", "two"], windows=0)
    options = service.embeds[0].options
    assert options.HasField("windows") and options.windows.overlap == 0
    assert result.windows.tolist() == [3, 3]
    ask(service.target, "embed", "one", windows=5)
    assert service.embeds[1].options.windows.overlap == 5
    ask(service.target, "embed", "one")
    assert not service.embeds[2].options.HasField("windows")
    with pytest.raises(ValueError):
        ask(service.target, "embed", "one", windows=-1)


@BOTH
def test_a_bad_input_has_its_error_in_its_place(service, ask):
    texts = ["fine", "\ud800", "!bad", "fine", "\udfff", "fine", "!bad"]
    result = ask(service.target, "embed", texts, batch_size=3,
                 on_error="per_input")
    assert {request.options.on_error for request in service.embeds} == {
        encoder_pb2.ON_ERROR_PER_INPUT}
    assert list(result.errors) == [1, 2, 4, 6]
    assert result.ok.tolist() == [True, False, False, True, False, True, False]
    # Sent as the second of its request, because one before it was not sent.
    bad = result.errors[2]
    assert isinstance(bad, encoderd.InputTooLongError)
    assert (bad.input_index, bad.max_tokens) == (2, 8)
    assert bad.message == "inputs[2] has 9 tokens"
    assert result.errors[4].reason == "INVALID_UTF8"
    assert result.errors[6].input_index == 6
    np.testing.assert_array_equal(result.vectors[result.ok], [[1, 2]] * 3)
    assert np.isnan(result.vectors[~result.ok]).all()
    assert result.token_counts.tolist() == [9, 0, 0, 9, 0, 9, 0]


@BOTH
def test_a_list_of_bad_inputs_alone_has_rows_too(service, ask):
    result = ask(service.target, "embed", ["!", "\ud800"],
                 on_error="per_input")
    assert list(result.errors) == [0, 1]
    assert result.vectors.shape == (2, 2)
    unsent = ask(service.target, "embed", ["\ud800"], on_error="per_input")
    assert unsent.vectors.shape == (1, 2)
    assert len(service.embeds) == 1


@BOTH
def test_without_per_input_the_first_bad_text_raises(service, ask):
    with pytest.raises(encoderd.InvalidInputError) as caught:
        ask(service.target, "embed", ["fine", "\ud800"])
    assert caught.value.input_index == 1
    with pytest.raises(TypeError, match=r"inputs\[1\]"):
        ask(service.target, "embed", ["fine", 7], on_error="per_input")
    with pytest.raises(ValueError, match="on_error is 'skip'; expected one "
                                         "of fail_request, per_input"):
        ask(service.target, "embed", "fine", on_error="skip")


@BOTH
def test_token_states_carry_their_options_counts_and_errors(service, ask):
    states = ask(service.target, "token_states",
                 ["fine", "\ud800", "!bad", "fine"], batch_size=3, layer=0,
                 before_norm=True, span="without_special_tokens",
                 truncate="start", on_error="per_input")
    request = service.encodes[0]
    assert request.HasField("layer") and request.layer == 0
    assert request.before_norm
    assert request.span == encoder_pb2.TOKEN_SPAN_WITHOUT_SPECIAL_TOKENS
    assert request.truncate == encoder_pb2.TRUNCATE_START
    assert request.on_error == encoder_pb2.ON_ERROR_PER_INPUT
    assert [s.error and s.error.input_index for s in states] == [
        None, 1, 2, None]
    np.testing.assert_array_equal(states[3].states, [[1], [2]])
    assert (states[3].token_count, states[3].truncated) == (9, True)
    assert states[1].states.shape == states[2].states.shape == (0, 0)


@BOTH
def test_unset_options_of_token_states_stay_unset(service, ask):
    alone = ask(service.target, "token_states", "fine")
    assert alone.states.shape == (2, 1)
    assert service.encodes[0] == encoder_pb2.EncodeRequest(
        inputs=[encoder_pb2.Input(text="fine")])
    rows = ask(service.target, "token_embeddings", ["fine"], span="all",
               before_norm=True, layer=0)
    assert [row.shape for row in rows] == [(2, 1)]
    assert service.encodes[1].span == encoder_pb2.TOKEN_SPAN_ALL
    with pytest.raises(ValueError, match="span is 'some'; expected one of all"):
        ask(service.target, "token_embeddings", "fine", span="some")


@pytest.mark.parametrize("option, values", [
    ("pooling", "cls, mean, max, mean_sqrt_len, weighted_mean, last_token"),
    ("truncate", "none, start, end"), ("on_error", "fail_request, per_input"),
    ("precision", "float32, float16, int8, uint8, binary, ubinary")])
def test_a_choice_has_one_spelling(gone, option, values):
    known = values.split(", ")[-1]
    for method in ("embed", "encode", "embed_stream"):
        for value in (known.upper(), known.title(), f" {known}", "",
                      "unspecified"):
            if (method, option, value) == ("encode", "precision", ""):
                continue  # the default one
            with pytest.raises(ValueError) as caught:
                blocking(gone, method, ["one"], **{option: value})
            assert str(caught.value).startswith(
                f"{option} is {value!r}; expected one of {values}")


@pytest.mark.parametrize("value", ["ALL", "", "unspecified"])
def test_a_span_has_one_spelling(gone, value):
    for method in ("token_states", "token_embeddings"):
        with pytest.raises(ValueError, match=f"span is {value!r}; expected one "
                           "of all, without_special_tokens"):
            blocking(gone, method, "one", span=value)


@pytest.mark.parametrize("method", ["encode_query", "encode", "embed",
                                    "embed_stream"])
def test_ranges_are_checked_before_the_first_call(gone, method):
    for ranges, words in (
            ([[0, 1], [1, 0.5]], r"ranges\[1\]\[1\] is 0.5; it must be above"),
            ([[0, np.nan], [1, 1]],
             r"ranges\[0\]\[1\] is nan; it must be finite"),
            ([[0, 0, 0], [1, 1, 1]], r"shape \[2, 3\]; expected \[2, 2\]")):
        cut = {"truncate_dim": 2} if method.startswith("encode") else {}
        if "shape" in words and not cut:
            continue  # the server alone knows how many
        with pytest.raises(ValueError, match=words):
            blocking(gone, method, ["one"], precision="int8", ranges=ranges,
                     **cut)


def test_a_single_text_has_no_ranges_whatever_becomes_of_it(gone):
    for on_error in (None, "zero", "per_input"):
        with pytest.raises(ValueError, match="cannot be taken from a single"):
            blocking(gone, "encode", "", precision="int8", on_error=on_error)


@BOTH
def test_what_is_wrong_with_the_request_raises_under_per_input_too(
        service, ask):
    service.gone = True
    with pytest.raises(encoderd.NotFoundError):
        ask(service.target, "embed", "fine", on_error="per_input")


@pytest.mark.parametrize("said, wanted", [
    ("options.windows are set together with TRUNCATE_END; a long text is "
     "either truncated or computed in windows: set one of them",
     'windows is set together with truncate="end"; a long text is either '
     "truncated or computed in windows: set one of them"),
    ("options.windows.overlap is 400; windows of 512 tokens",
     "windows is 400; windows of 512 tokens"),
    ("options.dimensions is 385; this model has 384",
     "dimensions is 385; this model has 384"),
    ("options.ranges are set with ENCODING_FLOAT32; only INT8 and UINT8 have "
     "ranges",
     'ranges is set with precision="float32"; only INT8 and UINT8 have ranges'),
    ("options.ranges.maximum[3] is 1; it must be above the minimum, 2",
     "ranges[1][3] is 1; it must be above the minimum, 2"),
    ("options.encoding is 9; this server knows 0 to 6",
     "precision is 9; this server knows 0 to 6"),
    ("options.pooling is 9; this server knows 0 to 6",
     "pooling is 9; this server knows 0 to 6"),
    ("layer is 9; this model has 6", "layer is 9; this model has 6")])
def test_an_option_that_the_server_refuses_has_its_arguments_name(said,
                                                                  wanted):
    status = status_pb2.Status(code=3, message=said)
    status.details.add().Pack(error_details_pb2.ErrorInfo(
        reason="INVALID_OPTION", domain="encoderd"))
    status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[
        {"field": said.split(" ")[0], "description": said},
        {"description": "and 24 more"}]))
    error = from_status(status)
    assert error.message == wanted
    assert error.violations == [(wanted.split(" ")[0], wanted),
                                ("", "and 24 more")]
    status.ClearField("details")  # of another kind: the words as they are
    assert from_status(status).message == said


def test_a_server_that_shuts_down_has_a_remedy():
    status = status_pb2.Status(code=14, message="the server is shutting down")
    status.details.add().Pack(error_details_pb2.ErrorInfo(
        reason="DRAINING", domain="encoderd"))
    assert str(from_status(status)) == (
        "UNAVAILABLE (DRAINING): the server is shutting down; retry: the "
        "restarted server, or its replacement, will answer")


@BOTH
def test_a_precision_of_none_is_float32(service, ask):
    assert ask(service.target, "encode", ["one"],
               precision=None).dtype == np.float32
    assert ask(service.target, "embed", ["one"],
               precision=None).vectors.dtype == np.float32


def test_a_precision_of_none_is_float32_in_a_stream(fake):
    with encoderd.Client(fake.target) as client:
        found, = client.embed_stream(["one"], precision=None)
    assert found.vector.dtype == np.float32


PRECISIONS = "float32, float16, int8, uint8, binary, ubinary"


@pytest.mark.parametrize("name", ["encode", "embed", "embed_stream"])
@pytest.mark.parametrize("option, value, kind, words", [
    ("precision", 5, TypeError, f"is an int; expected one of {PRECISIONS}"),
    ("precision", "", ValueError, f"is ''; expected one of {PRECISIONS}"),
    ("precision", "int4", ValueError,
     f"is 'int4'; expected one of {PRECISIONS}"),
    ("on_error", 5, TypeError, "is an int; expected one of fail_request"),
    ("on_error", "", ValueError, "is ''; expected one of fail_request")])
def test_all_methods_refuse_a_choice_alike(gone, name, option, value, kind,
                                           words):
    with encoderd.Client(gone) as client, pytest.raises(kind) as caught:
        getattr(client, name)(["one"], **{option: value})
    assert str(caught.value).startswith(f"{option} {words}")


@pytest.mark.parametrize("kind", [encoderd.Client, encoderd.AsyncClient])
def test_what_would_have_no_effect_cannot_be_set(gone, kind):
    client = kind(gone)
    for name in ("timeout", "model", "token"):
        with pytest.raises(AttributeError) as caught:
            setattr(client, name, 5)
        assert str(caught.value) == (
            f"{name} cannot be set on a client; pass it to the constructor: "
            f"{kind.__name__}({name}=...)")
    for name in ("tiemout", "tokenizer"):
        with pytest.raises(AttributeError) as caught:
            setattr(client, name, 5)
        assert str(caught.value) == (
            f"{kind.__name__} has no attribute {name!r}; its options are "
            "arguments of the constructor, such as "
            f"{kind.__name__}(timeout=60)")
        assert not hasattr(client, name)


def test_members_can_be_replaced_and_subclasses_have_attributes(gone):
    class Named(encoderd.Client):
        def __init__(self, target):
            self.label = "before"
            super().__init__(target)

    client = encoderd.Client(gone)
    client.encode = lambda inputs: [1, 2]  # as mocks do
    assert client.encode("one") == [1, 2]
    client.similarity_fn_name = "dot"
    assert copy.copy(client).similarity_fn_name == "dot"
    assert Named(gone).label == "before"


@pytest.mark.parametrize("on_error, remedy", [
    (None, 'drop it, or keep its row: on_error="per_input"'),
    ("per_input", "drop it")])
@pytest.mark.parametrize("name", ["embed", "embed_stream", "token_states"])
def test_an_option_that_is_set_is_no_remedy(fake, name, on_error, remedy):
    with encoderd.Client(fake.target) as client:
        try:
            found = getattr(client, name)(["one", ""], on_error=on_error)
            error = (found.errors[1] if name == "embed"
                     else list(found)[1].error)
        except encoderd.EncoderdError as raised:
            error = raised
    assert error.remedy == remedy


@pytest.mark.parametrize("kind", [encoderd.Client, encoderd.AsyncClient])
def test_type_errors_name_a_class_that_callers_know(gone, kind):
    client = kind(gone)
    calls = [lambda: kind(gone, tiemout=5), lambda: kind(gone, "model"),
             lambda: client.encode(["one"], precison="int8"),
             lambda: client.similarity([1])]
    for call in calls:
        with pytest.raises(TypeError) as caught:
            call()
        # Before 3.10, Python names no class at all.
        assert re.match(r"((Async)?Client\.)?\w+\(\) ", str(caught.value))
    assert kind.encode.__qualname__ == f"{kind.__name__}.encode"
