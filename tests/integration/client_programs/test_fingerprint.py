"""All vectors of a job are of one model, and of that whose fingerprint the
caller gives; by both clients."""

import itertools

import encoderd
import grpc
import numpy as np
import pytest
from either_client import KINDS, ask
from google.rpc import code_pb2
from python_service import Model, serve
from stream_service import (Streams, answer, awaited, awaited_async, blocking,
                            failure, texts)

LISTS = pytest.mark.parametrize("method", ["embed", "encode", "encode_query",
                                           "encode_document"])
STREAMS = pytest.mark.parametrize("work", [blocking, awaited, awaited_async])


class Changing(Model):
    """Of fingerprint "one" for "text 0", of "two" for all others."""

    def Embed(self, request, context):
        response = super().Embed(request, context)
        if request.inputs[0].text != "text 0":
            response.fingerprint = "two"
        return response

    def Encode(self, request, context):
        response = super().Encode(request, context)
        if request.inputs[0].text != "text 0":
            response.fingerprint = "two"
        return response


def of_model(name, answers=None):
    """A plan of Streams: answers of that fingerprint, after which the stream
    breaks; None: it goes on."""
    def plan(requests):
        for response in map(answer, itertools.islice(requests, answers)):
            response.fingerprint = name
            yield response
        if answers is not None:
            return failure(code_pb2.UNAVAILABLE, "DRAINING")
    return plan


def check_given(error, found, given):
    assert type(error) is encoderd.EncoderdError
    assert error.code is grpc.StatusCode.FAILED_PRECONDITION
    assert error.message == (
        "the server's model or its settings are not those of the given "
        f"fingerprint: the fingerprint is {found}, not {given}")
    assert error.remedy.startswith("the vectors of the two must not be mixed")


def check_changed(error):
    assert type(error) is encoderd.EncoderdError
    assert error.code is grpc.StatusCode.FAILED_PRECONDITION
    assert "changed during the job: the fingerprint is two and was one" in (
        error.message)


@KINDS
def test_a_result_says_which_model_computed_it(kind):
    with serve(Model()) as service:
        assert ask(kind, service.target, "embed", ["a"]).fingerprint == "one"
        service.fingerprint = ""
        assert ask(kind, service.target, "embed", ["a"]).fingerprint == ""


@STREAMS
def test_a_result_of_a_stream_says_which_model_computed_it(work):
    with serve(Streams(of_model("one"))) as service:
        found = work(service.target, ["text 0", "!", "\ud800", "text 3"],
                     on_error="per_input")
        assert [each.fingerprint for each in found] == ["one", "", "", "one"]
        unnamed, = work(service.target, texts(1))  # Streams names none
        assert unnamed.fingerprint == ""


@KINDS
@LISTS
def test_a_list_ends_when_the_servers_model_changes(kind, method):
    with serve(Changing()) as service:
        with pytest.raises(encoderd.EncoderdError) as caught:
            ask(kind, service.target, method, texts(100), batch_size=1)
    check_changed(caught.value)


@STREAMS
def test_a_server_that_restarts_with_another_model_ends_the_stream(work):
    # Of the given model so far, too.
    for options in {}, {"fingerprint": "one"}:
        with serve(Streams(of_model("one", 2), of_model("two"))) as service:
            with pytest.raises(encoderd.EncoderdError) as caught:
                work(service.target, texts(100), batch_size=10, **options)
        check_changed(caught.value)


@KINDS
@LISTS
@pytest.mark.parametrize("given", ["one", ""])
def test_a_list_of_the_given_model_passes(kind, method, given):
    with serve(Model()) as service:
        found = ask(kind, service.target, method, ["a", "bc", "d"],
                    batch_size=1, fingerprint=given)
    vectors = found.vectors if method == "embed" else found
    np.testing.assert_array_equal(vectors, [[1, 1], [2, 1], [1, 1]])


@KINDS
@LISTS
@pytest.mark.parametrize("given", ["two", "One", "one "])
def test_a_list_of_another_model_ends_at_its_first_answer(kind, method, given):
    with serve(Model()) as service:
        with pytest.raises(encoderd.EncoderdError) as caught:
            ask(kind, service.target, method, ["a"] * 50, batch_size=1,
                fingerprint=given)
    check_given(caught.value, "one", given)
    assert len(service.requests) <= 8  # calls_in_flight


@KINDS
def test_states_of_another_model_end_the_list(kind):
    with serve(Changing()) as service:
        with pytest.raises(encoderd.EncoderdError) as caught:
            ask(kind, service.target, "token_embeddings", texts(20),
                batch_size=1)
    check_changed(caught.value)


@STREAMS
@pytest.mark.parametrize("given", ["one", ""])
def test_a_stream_of_the_given_model_passes(work, given):
    with serve(Streams(of_model("one", 2), of_model("one"))) as service:
        found = work(service.target, texts(50), batch_size=10,
                     fingerprint=given)
    assert [int(each.vector[0]) for each in found] == list(range(50))


@STREAMS
def test_a_stream_of_another_model_ends_at_its_first_answer(work):
    for on_error in "fail_request", "per_input":
        with serve(Streams(of_model("two"))) as service:
            with pytest.raises(encoderd.EncoderdError) as caught:
                work(service.target, texts(50), batch_size=10,
                     requests_in_flight=1, fingerprint="one",
                     on_error=on_error)
        check_given(caught.value, "two", "one")
        assert len(service.requests) == 1


def test_a_stream_of_another_model_gives_no_result():
    with serve(Model()) as service, encoderd.Client(service.target) as client:
        stream = client.embed_stream(texts(50), batch_size=1,
                                     fingerprint="two")
        with pytest.raises(encoderd.EncoderdError, match="is one, not two"):
            next(stream)


@KINDS
@pytest.mark.parametrize("method", ["embed", "encode"])
def test_an_answer_without_a_fingerprint_is_not_checked(kind, method):
    with serve(Model()) as service:
        service.fingerprint = ""
        found = ask(kind, service.target, method, ["a"], fingerprint="two")
    assert len(found.vectors if method == "embed" else found) == 1


@STREAMS
def test_an_answer_of_a_stream_without_a_fingerprint_is_not_checked(work):
    with serve(Streams()) as service:
        assert len(work(service.target, texts(3), fingerprint="two")) == 3


@KINDS
@pytest.mark.parametrize("output_value", ["token_embeddings", None])
def test_states_have_no_fingerprint(kind, gone, output_value):
    with pytest.raises(ValueError) as caught:
        ask(kind, gone, "encode", ["a"], output_value=output_value,
            fingerprint="one")
    assert str(caught.value) == (
        "fingerprint goes with output_value 'sentence_embedding', not "
        f"{output_value!r}")


@KINDS
def test_the_real_server_has_one_fingerprint_in_all_that_it_says(kind, server):
    stored = ask(kind, server, "model").fingerprint
    assert stored
    found = ask(kind, server, "embed", ["a", "b"], fingerprint=stored)
    assert found.fingerprint == stored
    for work in blocking, awaited:
        assert [each.fingerprint for each in work(
            server, ["a", "b"], fingerprint=stored)] == [stored] * 2
        with pytest.raises(encoderd.EncoderdError) as caught:
            work(server, ["a", "b"], fingerprint="0" * 16)
        check_given(caught.value, stored, "0" * 16)
