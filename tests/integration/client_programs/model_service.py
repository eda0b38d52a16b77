"""A service that says what its model is like, and a way to ask it by either
client."""

import asyncio

import encoderd
import numpy as np
import pytest
from encoderd.v1 import encoder_pb2
from google.rpc import error_details_pb2, status_pb2
from python_service import Service


class Model(Service):
    """Notes what it is asked; takes at most `limit` inputs in a request."""

    def __init__(self, limit=1024, **info):
        self.limit = limit
        self.info = encoder_pb2.Model(name="model", dimensions=2, max_len=8,
                                      max_inputs_per_request=limit, **info)
        self.requests = []

    def GetModel(self, request, context):
        return self.info

    def Embed(self, request, context):
        self._check(request, context)
        self.requests.append(request)
        return encoder_pb2.EmbedResponse(embeddings=[
            encoder_pb2.Embedding(packed=np.array(
                [len(value.text), 1], "<f4").tobytes())
            for value in request.inputs])

    def EmbedStream(self, requests, context):
        for request in requests:
            if len(request.inputs) > self.limit:
                yield encoder_pb2.EmbedResponse(request_id=request.request_id,
                                                error=self._refusal(request))
                continue
            answer = self.Embed(request, context)
            answer.request_id = request.request_id
            yield answer

    def Encode(self, request, context):
        self._check(request, context)
        return encoder_pb2.EncodeResponse(states=[
            encoder_pb2.TokenStates(rows=1, columns=1, packed=bytes(4))
            for _ in request.inputs])

    def Tokenize(self, request, context):
        self._check(request, context)
        return encoder_pb2.TokenizeResponse(inputs=[
            encoder_pb2.TokenizedInput(ids=[7] * len(value.text),
                                       segment_ids=[1] * len(value.text))
            for value in request.inputs])

    def _refusal(self, request):
        status = status_pb2.Status(code=3, message="too many inputs")
        status.details.add().Pack(error_details_pb2.ErrorInfo(
            reason="TOO_MANY_INPUTS", domain="encoderd",
            metadata={"count": str(len(request.inputs)),
                      "limit": str(self.limit)}))
        return status

    def _check(self, request, context):
        if len(request.inputs) > self.limit:
            status = self._refusal(request)
            context.set_trailing_metadata([
                ("grpc-status-details-bin", status.SerializeToString())])
            context.abort(encoderd.errors._CODES[status.code], status.message)


def ask(kind, target, name, *arguments, **options):
    """What a method, or a property, of a Client or an AsyncClient gives."""
    if kind is encoderd.Client:
        with encoderd.Client(target) as client:
            found = getattr(client, name)
            return found(*arguments, **options) if callable(found) else found

    async def main():
        async with encoderd.AsyncClient(target) as client:
            found = getattr(client, name)
            return await (found(*arguments, **options) if callable(found)
                          else found)
    return asyncio.run(main())


KINDS = pytest.mark.parametrize("kind", [encoderd.Client,
                                         encoderd.AsyncClient])
