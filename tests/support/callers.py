"""Callers that keep a server busy, for tests in Python. Whatever fails is
counted, so that no test judges a server that nobody called."""

import collections
import threading

import grpc

PAUSE = 0.1  # seconds after a call that failed


def _in_words(error):
    """The same for the same fault, so that it can be counted."""
    if isinstance(error, grpc.RpcError):
        return f"{error.code().name}: {error.details()}"
    return f"{type(error).__name__}: {error}"


class Callers:
    """A thread for each of `connections`, which are functions. Each returns a
    context manager that gives what to call until the end of `with`."""

    def __init__(self, connections):
        self.lost = collections.Counter()  # what failed, in words: how often
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(i, connect))
            for i, connect in enumerate(connections)]
        self._answered = [0] * len(self._threads)

    def answered(self):
        """Calls of each that returned so far."""
        return list(self._answered)

    def check(self):
        """RuntimeError if anything failed so far."""
        if self.lost:
            raise RuntimeError(f"lost: {dict(self.lost)}; "
                               f"answered: {self._answered}")

    def _run(self, i, connect):
        try:
            with connect() as call:
                while not self._stopping.is_set():
                    self._call(i, call)
        except Exception as error:  # of the connection
            self._lose(error)

    def _call(self, i, call):
        try:
            call()
            self._answered[i] += 1
        except Exception as error:
            self._lose(error)
            self._stopping.wait(PAUSE)

    def _lose(self, error):
        with self._lock:
            self.lost[_in_words(error)] += 1

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for thread in self._threads:
            thread.join()
