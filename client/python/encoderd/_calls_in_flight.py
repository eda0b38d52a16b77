"""Which calls of a job to start and to wait for; it waits for none itself."""

from __future__ import annotations

import collections
from typing import (Any, Callable, Deque, Generator, Generic, Iterable, List,
                    Optional, Protocol, Sequence, Tuple, TypeVar, Union)

from encoderd._method_jobs import Job, Many, One
from encoderd.errors import EncoderdError, name_slow_list
from encoderd.inputs import Part


class Cancellable(Protocol):
    def cancel(self) -> Any: ...


C = TypeVar("C", bound=Cancellable)  # a call, as its runner waits for it
T = TypeVar("T")
# Starts the call of a method. The places: of the request's inputs, in the
# caller's list.
Start = Callable[[str, Any, Sequence[int]], C]


class Window(Generic[C]):
    """At most max_in_flight calls at a time, in the list's order.

    start: begins the call of a part.
    """

    def __init__(self, parts: Iterable[Part], start: Callable[[Part], C],
                 max_in_flight: int):
        self._parts = iter(parts)
        self._start = start
        self._max_in_flight = max_in_flight
        self._window: Deque[Tuple[Part, C]] = collections.deque()
        self._late: Optional[Exception] = None

    def fill(self) -> bool:
        """Starts calls while there is room; whether any is in flight.

        What `parts` raises is raised when all calls before it are done, so
        that the first error in the list's order is the one that is raised.
        """
        while len(self._window) < self._max_in_flight and self._late is None:
            try:
                part = next(self._parts)
            except StopIteration:
                break
            except Exception as error:
                self._late = error
                break
            self._window.append((part, self._start(part)))
        if not self._window and self._late is not None:
            raise self._late
        return bool(self._window)

    @property
    def first(self) -> Tuple[Part, C]:
        return self._window[0]

    def pop(self) -> None:
        """Forgets the first call, which is done."""
        self._window.popleft()

    def calls(self) -> List[C]:
        """Those in flight."""
        return [call for _, call in self._window]


def calls_of_list(many: Many, start: Start[C], max_in_flight: int
                  ) -> Generator[C, Any, None]:
    """As calls_of_job. The first error in the list's order is raised; what is
    still in flight then is cancelled."""
    window = Window(many.parts, lambda part: start(
        many.method, many.make(part.inputs), part.places), max_in_flight)
    answered = 0
    try:
        while window.fill():
            part, call = window.first
            try:
                answer = yield call
            except EncoderdError as error:
                if answered or len(window.calls()) > 1 or len(part.inputs) > 1:
                    name_slow_list(error, answered)
                if not many.refuse(part, error):
                    raise
                window.pop()
            else:
                window.pop()
                answered += 1
                many.take(part, answer)
    finally:
        for call in window.calls():
            call.cancel()


def calls_of_job(job: Job[T], start: Start[C], max_in_flight: int
                 ) -> Generator[C, Any, T]:
    """Yields the calls to wait for, one by one; to be sent the answer of each,
    or thrown its error. Returns the job's result."""

    def perform(wanted: Union[One, Many]) -> Generator[C, Any, Any]:
        if isinstance(wanted, One):
            call = start(wanted.method, wanted.request, ())
            try:
                return (yield call)
            finally:
                call.cancel()  # if its answer is no longer waited for
        return (yield from calls_of_list(wanted, start, max_in_flight))

    try:
        wanted = next(job)
        while True:
            try:
                answer = yield from perform(wanted)
            except BaseException as error:
                wanted = job.throw(error)
            else:
                wanted = job.send(answer)
    except StopIteration as end:
        found: T = end.value
        return found
