"""gRPC's own "message larger than max" has the code of a full queue. Both
clients tell it apart: no other try, and an error that says what to do."""

import threading

import encoderd
import grpc
import numpy as np
import pytest
from either_client import ask
from encoderd import _channel
from encoderd.errors import explain, make_error
from encoderd.v1 import encoder_pb2
from python_service import Model, Service, serve

MIB = 1 << 20
LIMIT = 4 * MIB  # of the server's messages
ANSWERS = 1000  # bytes of an answer that is accepted, where a test says so


class Wide(Service):
    """Answers more than ANSWERS bytes to whatever it is asked."""

    def GetModel(self, request, context):
        return encoder_pb2.Model(dimensions=ANSWERS // 4)

    def Embed(self, request, context):
        return encoder_pb2.EmbedResponse(embeddings=[
            encoder_pb2.Embedding(packed=bytes(ANSWERS))
            for _ in request.inputs])

    def Encode(self, request, context):
        return encoder_pb2.EncodeResponse(states=[
            encoder_pb2.TokenStates(rows=1, columns=250, packed=bytes(ANSWERS))
            for _ in request.inputs])

    def Tokenize(self, request, context):
        return encoder_pb2.TokenizeResponse(inputs=[
            encoder_pb2.TokenizedInput(tokens=["x" * ANSWERS])
            for _ in request.inputs])

    def EmbedStream(self, requests, context):
        for request in requests:
            answer = self.Embed(request, context)
            answer.request_id = request.request_id
            yield answer


class Attempts(grpc.ServerInterceptor):
    """Counts the calls that come, read or not."""

    def __init__(self):
        self.count = 0

    def intercept_service(self, continuation, handler_call_details):
        self.count += 1
        return continuation(handler_call_details)


def blocking(target, method, inputs, max_answer_bytes=256 * MIB, **options):
    return ask(encoderd.Client, target, method, inputs,
               settings={"max_answer_bytes": max_answer_bytes}, **options)


def awaited(target, method, inputs, max_answer_bytes=256 * MIB, **options):
    return ask(encoderd.AsyncClient, target, method, inputs,
               settings={"max_answer_bytes": max_answer_bytes}, **options)


BOTH = pytest.mark.parametrize("work", [blocking, awaited])
METHODS = pytest.mark.parametrize("method", [
    "encode", "embed", "token_states", "token_embeddings", "tokenize"])


@BOTH
@METHODS
def test_a_text_above_the_servers_limit_is_named_and_not_tried_again(
        work, method):
    attempts = Attempts()
    with serve(Wide(), LIMIT, interceptors=[attempts]) as service:
        with pytest.raises(encoderd.InvalidInputError) as caught:
            work(service.target, method, ["short", "x" * 5 * MIB])
        assert attempts.count == 2  # one of each call
    error = caught.value
    assert (error.reason, error.input_index) == ("REQUEST_TOO_LARGE", 1)
    assert error.metadata["limit"] == str(LIMIT)
    size = int(error.metadata["request_bytes"])
    assert 5 * MIB < size < 5 * MIB + 100
    assert error.message == (
        f"inputs[1] makes a message of {size} bytes; the server takes at most "
        f"{LIMIT} (--max_message_bytes): shorten it")


@BOTH
def test_per_input_a_text_above_the_limit_costs_its_own_place(work):
    texts = ["one", "x" * 5 * MIB, "two"]
    with serve(Wide(), LIMIT) as service:
        result = work(service.target, "embed", texts, on_error="per_input")
        states = work(service.target, "token_states", texts,
                      on_error="per_input")
        alone = work(service.target, "embed", texts[1], dimensions=4,
                     on_error="per_input")
    assert result.ok.tolist() == [True, False, True]
    assert result.vectors.shape == (3, ANSWERS // 4)
    for error in (result.errors[1], states[1].error):
        assert (error.reason, error.input_index) == ("REQUEST_TOO_LARGE", 1)
    assert [found.states.shape for found in states] == [
        (1, 250), (0, 0), (1, 250)]
    assert alone.vectors.shape == (1, 4) and list(alone.errors) == [0]


@BOTH
@pytest.mark.parametrize("method", ["embed", "token_states", "encode"])
def test_per_input_texts_that_are_too_large_together_are_sent_apart(work,
                                                                    method):
    texts = ["one"] * 200 + ["x" * (MIB // 5)] * 3 + ["x" * MIB, "two"]
    attempts = Attempts()
    with serve(Wide(), MIB // 2, interceptors=[attempts]) as service:
        found = work(service.target, method, texts, batch_size=1000,
                     on_error="per_input")
    bad = {"embed": lambda: ~found.ok,
           "token_states": lambda: [one.error is not None for one in found],
           "encode": lambda: np.isnan(found).any(axis=1)}[method]()
    assert list(bad) == [text == "x" * MIB for text in texts]
    assert attempts.count < 100  # it does not go down by one


@BOTH
@pytest.mark.parametrize("method", ["embed", "token_states"])
def test_per_input_short_texts_after_long_ones_travel_by_batch_size(work,
                                                                    method):
    texts = ["x" * 30_000] * 70 + ["x"] * 640 + ["end"]
    with serve(Model(), MIB // 2) as service:
        found = work(service.target, method, texts, batch_size=64,
                     on_error="per_input")
    assert len(found.vectors if method == "embed" else found) == len(texts)
    sizes = [len(request.inputs) for request in service.requests
             if {len(value.text) for value in request.inputs} == {1}]
    assert set(sizes) == {64}


def test_per_input_one_refusal_tells_how_many_bytes_fit():
    attempts = Attempts()
    with serve(Model(), MIB // 16, interceptors=[attempts]) as service:
        with encoderd.Client(service.target, calls_in_flight=1) as client:
            found = client.embed(["x" * 10_000] * 100, on_error="per_input")
    assert found.ok.all()
    refused = attempts.count - len(service.requests)
    assert 1 <= refused <= _channel.MOST_ATTEMPTS  # gRPC's, of one call


@BOTH
def test_of_several_texts_a_smaller_batch_is_advised(work):
    with serve(Wide(), MIB // 2) as service:
        with pytest.raises(encoderd.InvalidInputError) as caught:
            work(service.target, "embed", ["x" * (MIB // 4)] * 3)
    assert caught.value.reason == "REQUEST_TOO_LARGE"
    assert caught.value.input_index is None
    assert caught.value.message.startswith("inputs[0] to inputs[2] make ")
    assert caught.value.message.endswith(": use a smaller batch_size")


@BOTH
@pytest.mark.parametrize("method", [
    "encode", "embed", "token_states", "tokenize", "embed_stream"])
def test_an_answer_above_the_clients_limit_is_no_full_queue(work, method):
    with serve(Wide()) as service:
        with pytest.raises(encoderd.InvalidInputError) as caught:
            work(service.target, method, ["one", "two"],
                 max_answer_bytes=ANSWERS)
    error = caught.value
    assert error.reason == "REQUEST_TOO_LARGE"
    assert error.metadata["limit"] == str(ANSWERS)
    assert int(error.metadata["reply_bytes"]) > ANSWERS
    assert "this client takes at most 1000" in error.message
    assert "a larger max_answer_bytes" in error.message


@BOTH
def test_an_answer_that_the_server_may_not_send_is_no_full_queue(work):
    with serve(Wide(), max_answer_bytes=ANSWERS) as service:
        with pytest.raises(encoderd.InvalidInputError) as caught:
            work(service.target, "embed", ["one", "two"])
    assert caught.value.reason == "REQUEST_TOO_LARGE"
    assert "the server sends at most 1000" in caught.value.message


@BOTH
@pytest.mark.parametrize("code", [grpc.StatusCode.RESOURCE_EXHAUSTED,
                                  grpc.StatusCode.UNAVAILABLE])
def test_a_large_text_is_tried_as_often_as_any_other(work, code, monkeypatch):
    class Busy(Wide):
        refusals = _channel.MOST_ATTEMPTS - 1
        lock = threading.Lock()

        def Tokenize(self, request, context):
            with self.lock:
                self.refusals -= 1
                refused = self.refusals >= 0
            if refused:
                context.abort(code, "not now")
            return super().Tokenize(request, context)

    monkeypatch.setattr(_channel, "FIRST_BACKOFF", 0.001)
    with serve(Busy()) as service:
        found = work(service.target, "tokenize", "x" * 3 * MIB)
    assert found.tokens == ["x" * ANSWERS]
    with serve(Busy()) as service:
        service.refusals = 10**9
        with pytest.raises((encoderd.QueueFullError,
                            encoderd.UnavailableError), match="not now"):
            work(service.target, "tokenize", "x" * 3 * MIB)
        assert service.refusals == 10**9 - _channel.MOST_ATTEMPTS


def test_a_reset_of_a_huge_request_is_no_full_queue():
    reset = make_error(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "Stream removed (RST_STREAM with error code 11)")
    found = explain(reset, 300 * MIB, [7])
    assert isinstance(found, encoderd.InvalidInputError)
    assert (found.reason, found.input_index) == ("REQUEST_TOO_LARGE", 7)
    assert found.message == (
        f"inputs[7] makes a message of {300 * MIB} bytes; the server takes "
        "less: shorten it")
    assert explain(reset, MIB, [7]) is reset
    full = make_error(grpc.StatusCode.RESOURCE_EXHAUSTED, "RST_STREAM",
                      "QUEUE_FULL")
    assert explain(full, 300 * MIB, [7]) is full
