"""The calls of one list that are under way together."""

from __future__ import annotations

import collections
from typing import (Callable, Deque, Generic, Iterable, List, Optional, Tuple,
                    TypeVar)

from encoderd.inputs import Part

C = TypeVar("C")


class Window(Generic[C]):
    """At most max_in_flight calls at a time, in the list's order. It waits
    for nothing: `first` says which call to wait for.

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
        """Starts calls while there is room; whether any is under way.

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
        """Those under way."""
        return [call for _, call in self._window]
