"""The state of a bulk job, without a server."""

import pytest
from encoderd import _stream_events, _stream_state
from encoderd._connection_errors import Link
from encoderd.errors import from_status
from google.rpc import code_pb2
from stream_service import answer, failure


# INTERNAL: what grpc.aio makes of an end that a write was too late for.
@pytest.mark.parametrize("code, reason, waits", [
    (code_pb2.UNAVAILABLE, "DRAINING", True), (code_pb2.INTERNAL, "", True),
    (code_pb2.UNAVAILABLE, "", False)])
def test_the_stream_after_one_that_a_leaving_server_ended_waits(
        code, reason, waits):
    bulk = _stream_state.make_bulk(
        ["text 0"], batch_size=1, requests_in_flight=1, precision="float32",
        on_error=None, model="", patience=60, link=Link("there", False))
    bulk.add("text 0")
    assert not bulk.awaits_return
    bulk.connected()
    assert len(list(bulk.requests(0.0))) == 1
    end = _stream_events.Ended(from_status(failure(code, reason)))
    bulk.handle(end, waited=0.0, now=0.0)
    assert bulk.awaits_return == waits
    bulk.connected()
    request, = bulk.requests(0.0)
    bulk.handle(answer(request), waited=0.0, now=0.0)
    assert not bulk.awaits_return
