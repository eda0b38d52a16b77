"""Both clients: an answer of another count or width than its request is an
error that says both, and is never taken for vectors."""

import encoderd
import grpc
import numpy as np
import pytest
from encoderd.v1 import encoder_pb2
from either_client import KINDS, ask
from python_service import Service, serve
from stream_service import awaited, blocking

STREAMS = pytest.mark.parametrize("work", [blocking, awaited])


def vector(width):
    return encoder_pb2.Embedding(packed=np.zeros(width, "<f4").tobytes())


class Widths(Service):
    """The text "2 3" has an answer with a vector of 2 values and one of 3."""

    def Embed(self, request, context):
        return encoder_pb2.EmbedResponse(embeddings=[
            vector(int(width)) for value in request.inputs
            for width in value.text.split()])

    def EmbedStream(self, requests, context):
        for request in requests:
            answer = self.Embed(request, context)
            answer.request_id = request.request_id
            yield answer

    def Encode(self, request, context):
        return encoder_pb2.EncodeResponse(states=[
            encoder_pb2.TokenStates(rows=2, columns=3,
                                    packed=vector(int(width)).packed)
            for value in request.inputs for width in value.text.split()])


def words_of(caught):
    assert caught.value.code is grpc.StatusCode.INTERNAL
    return caught.value.message


@KINDS
@pytest.mark.parametrize("texts, batch_size, words", [
    (["2", "3"], 1, "12 bytes of vectors for 1 inputs, not 8"),
    (["2", "2", "2", "1"], 2, "12 bytes of vectors for 2 inputs, not 16"),
    (["2", "0"], 1, "0 bytes of vectors for 1 inputs, not 8"),
    (["2", "3"], 2, "20 bytes of vectors for 2 inputs, not 16"),
    (["0"], 1, "0 bytes of vectors for 1 inputs, not 0"),
    (["2", "2 2"], 1, "2 results for 1 inputs")])
def test_a_part_of_another_width_is_no_vectors(kind, texts, batch_size, words):
    with serve(Widths()) as service:
        with pytest.raises(encoderd.EncoderdError) as caught:
            ask(kind, service.target, "embed", texts, batch_size=batch_size)
    assert words_of(caught) == f"the server returned {words}"


@STREAMS
@pytest.mark.parametrize("texts, batch_size, words", [
    (["2", "3"], 1, "12 bytes for a vector of 8"),
    (["2", "2", "2", "1"], 2, "4 bytes for a vector of 8"),
    (["2", "0"], 1, "0 bytes for a vector of 8"),
    (["2", "3"], 2, "12 bytes for a vector of 8"),
    (["0"], 1, "0 bytes for a vector of 0"),
    (["2", "2 2"], 1, "2 results for 1 inputs")])
def test_so_it_is_in_a_stream(work, texts, batch_size, words):
    with serve(Widths()) as service:
        with pytest.raises(encoderd.EncoderdError) as caught:
            work(service.target, texts, batch_size=batch_size)
    assert words_of(caught) == f"the server returned {words}"


@KINDS
def test_states_of_another_size_are_none(kind):
    with serve(Widths()) as service:
        assert ask(kind, service.target, "token_states", ["6"])[
            0].states.shape == (2, 3)
        with pytest.raises(encoderd.EncoderdError) as caught:
            ask(kind, service.target, "token_states", ["6", "5"])
    assert words_of(caught) == (
        "the server returned 20 bytes for 2 x 3 states")
