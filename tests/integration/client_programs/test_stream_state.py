"""The state of a bulk job, without a server."""

import pytest
from encoderd import _stream_events, _stream_state
from encoderd._connection_errors import Link
from encoderd.errors import from_status
from encoderd.inputs import Cutter
from google.rpc import code_pb2
from stream_service import answer, failure, refusal, texts


def bulk_of(source, end=True, **options):
    """A job of its texts, each a request; all were read."""
    bulk = _stream_state.make_bulk(
        source, **{"batch_size": 1, "requests_in_flight": 16,
                   "precision": "float32", "on_error": "per_input",
                   "model": "", "patience": 60, "link": Link("there", False),
                   **options})
    for text in source:
        bulk.add(text)
    if end:
        bulk.end()
    return bulk


def test_a_cutter_that_holds_more_than_it_may_send_gives_it_in_parts():
    cutter = Cutter(8, keep_errors=True)
    for value in ["0", "\ud800", "2", "3", "4", "5"]:
        assert cutter.add(value) == []
    assert cutter.take_fewer(7) == []
    parts = cutter.take_fewer(2)
    assert [part.places for part in parts] == [[0, 2], [3, 4], [5]]
    assert list(parts[0].errors) == [1]
    assert cutter.rest() is None
    assert cutter.take_fewer(1) == []
    (after,) = cutter.add("6")
    assert after.places == [6]


# An async source is slow: a part of a request waits for its next input.
@pytest.mark.parametrize("held", [0, 2, 3, 5, 7])
def test_after_a_refusal_what_was_held_goes_as_the_server_takes_it(held):
    source = texts(8 + held)
    bulk = bulk_of(source[:0], batch_size=8, end=False)
    for text in source:
        bulk.add(text)
    bulk.connected()
    (first,) = bulk.requests(0.0)
    bulk.handle(refusal(first, failure(
        code_pb2.INVALID_ARGUMENT, "TOO_MANY_INPUTS", limit="3")), 0.0, 0.0)
    assert bulk.flush() == (0 < held < 3)
    requests = list(bulk.requests(0.0))
    assert [value.text for request in requests
            for value in request.inputs] == source
    assert max(len(request.inputs) for request in requests) == 3
    for request in requests:
        bulk.handle(answer(request), 0.0, 0.0)
    bulk.end()
    assert [int(found.vector[0]) for found in bulk.ready()] == list(
        range(8 + held))
    assert bulk.finished()


# Of --max_streams, and of a server that leaves, whose pause is not for streams
# that another server may take.
@pytest.mark.parametrize("code, least, most", [
    (code_pb2.RESOURCE_EXHAUSTED, 0.5, 0.75), (code_pb2.UNAVAILABLE, 0.1,
                                               0.15)])
def test_a_stream_is_opened_again_after_a_pause_that_is_spread(code, least,
                                                               most):
    pauses = []
    for _ in range(100):
        bulk = bulk_of(["text 0"])
        bulk.connected()
        bulk.handle(_stream_events.Ended(from_status(failure(
            code, "NOT_NOW", pause_ms=500))), waited=0.0, now=0.0)
        pauses.append(bulk.wait(0.0))
        assert not bulk.may_connect(least - 0.01)
        assert bulk.may_connect(most)
    assert least <= min(pauses) < least + 0.4 * (most - least)
    assert least + 0.6 * (most - least) < max(pauses) <= most
