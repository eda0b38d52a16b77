"""A service of EmbedStream that does as each test plans, and embed_stream() of
both clients as one function."""

import asyncio
import itertools
import threading

import encoderd
import grpc
import numpy as np
from either_client import ask
from encoderd.v1 import encoder_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from python_service import Service

PATIENCE = 60  # seconds; a test that gets this far has failed
CODES = {code.value[0]: code for code in grpc.StatusCode}


def failure(code, reason="", pause_ms=None, **metadata):
    status = status_pb2.Status(code=code, message=f"no: {reason}")
    if reason:
        status.details.add().Pack(error_details_pb2.ErrorInfo(
            reason=reason, domain="encoderd", metadata=metadata))
    if pause_ms is not None:
        info = error_details_pb2.RetryInfo()
        info.retry_delay.FromMilliseconds(pause_ms)
        status.details.add().Pack(info)
    return status


def answer(request):
    """[i] for the text "text i"; an error for "!"."""
    response = encoder_pb2.EmbedResponse(request_id=request.request_id)
    for place, value in enumerate(request.inputs):
        embedding = response.embeddings.add(token_count=3, windows=2)
        if value.text == "!":
            embedding.error.CopyFrom(failure(code_pb2.INVALID_ARGUMENT,
                                             "EMPTY_INPUT"))
            embedding.error.message = f"inputs[{place}] is empty"
        else:
            embedding.packed = np.float32(value.text.split()[1]).tobytes()
    return response


def refusal(request, status):
    return encoder_pb2.EmbedResponse(request_id=request.request_id,
                                     error=status)


class Streams(Service):
    """Each stream is served by the next of `plans`, then by answers alone.

    A plan is a generator (requests) -> responses; a Status that it returns
    ends the stream. seen: the request_ids of each stream. ended: set when
    the first stream is over, in whichever way.
    """

    def __init__(self, *plans):
        self.seen = []
        self.requests = []
        self.ended = threading.Event()
        self._plans = list(plans)

    def EmbedStream(self, requests, context):
        context.add_callback(self.ended.set)
        seen = []
        self.seen.append(seen)
        plan = self._plans.pop(0) if self._plans else answer_all
        status = yield from plan(self._noted(requests, seen))
        if status is not None:
            context.set_trailing_metadata(
                [("grpc-status-details-bin", status.SerializeToString())])
            context.set_code(CODES[status.code])
            context.set_details(status.message)

    def _noted(self, requests, seen):
        for request in requests:
            seen.append(request.request_id)
            self.requests.append(request)
            yield request


def answer_all(requests):
    for request in requests:
        yield answer(request)


def break_after(count, status):
    def plan(requests):
        for request in itertools.islice(requests, count):
            yield answer(request)
        return status
    return plan


def texts(count):
    return [f"text {i}" for i in range(count)]


def blocking(target, source, timeout=PATIENCE, **options):
    return ask(encoderd.Client, target, "embed_stream", source,
               settings={"timeout": timeout}, **options)


def awaited(target, source, timeout=PATIENCE, **options):
    return ask(encoderd.AsyncClient, target, "embed_stream", source,
               settings={"timeout": timeout}, **options)


def awaited_async(target, source, **options):
    async def each():
        for value in source:
            await asyncio.sleep(0)
            yield value
    return awaited(target, each(), **options)
