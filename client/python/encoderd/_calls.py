"""Many calls of one list: a bounded number in flight, answers in order."""

from __future__ import annotations

import collections
from typing import Any, Callable, Deque, Iterable, Iterator, List, Tuple

import grpc

from encoderd.errors import from_rpc_error


def run_calls(calls: Iterable[Tuple[int, List[Any]]],
              start: Callable[[List[Any]], grpc.Future],
              max_in_flight: int) -> Iterator[Tuple[int, int, Any]]:
    """Yields (index of the first input, inputs, answer) of each call, in order.

    calls: (index of the first input, inputs) of each call.
    start: begins a call.
    The first error in the list's order is raised as an EncoderdError; what is
    still in flight then, or when the caller stops early, is cancelled.
    """
    window: Deque[Tuple[int, int, grpc.Future]] = collections.deque()
    remaining = iter(calls)
    late: List[BaseException] = []  # of `calls`: raised after what came before
    try:
        while True:
            while len(window) < max_in_flight and not late:
                try:
                    first, inputs = next(remaining)
                except StopIteration:
                    break
                except Exception as error:
                    late.append(error)
                    break
                window.append((first, len(inputs), start(inputs)))
            if not window:
                break
            first, count, call = window.popleft()
            try:
                answer = call.result()
            except grpc.RpcError as error:
                raise from_rpc_error(error, first) from error
            yield first, count, answer
        if late:
            raise late[0]
    finally:
        for _, _, call in window:
            call.cancel()
