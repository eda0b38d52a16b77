"""The program encoderd as a child process: its log, its ports, its end.

One thread of this process starts it, reads its log and waits for it. The child
asks the kernel for TERM when that thread ends (_exec_with_parent.py), so it
outlives this process by no more than its drain, even after kill -9; but not
where this program is frozen: then kill -9 leaves the child.
"""

from __future__ import annotations

import collections
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
from typing import Deque, List, Optional

LOG_LINES = 1000
LISTENING = re.compile(r" event=listening grpc=(\S+)(?: http=(\S+))?$")
SERVING = re.compile(r" event=serving ")
FAILED = re.compile(r' event=start_failed .*message=(?:"((?:[^"\\]|\\.)*)"'
                    r"|(\S+))")
ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


class ServerStartError(RuntimeError):
    """A server that could not start; the message says why.

    exit_code: of the program; None where it never ran, or was too slow.
    log: what it wrote.
    """

    def __init__(self, message: str, exit_code: Optional[int] = None,
                 log: str = ""):
        super().__init__(message, exit_code, log)
        self.exit_code = exit_code
        self.log = log

    def __str__(self) -> str:
        return str(self.args[0])


ServerStartError.__module__ = "encoderd"  # where callers have it from


class ServerProcess:
    """Started by its construction; see Server for what callers are promised."""

    def __init__(self, command: List[str]):
        self.grpc = ""
        self.http = ""
        self.exit_code: Optional[int] = None  # set once it has ended
        self._owner = os.getpid()
        self._lines: Deque[str] = collections.deque(maxlen=LOG_LINES)
        self._changed = threading.Condition()
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._not_started: Optional[Exception] = None
        self._serving = False
        self._failure = ""
        # Were it no daemon, the interpreter would wait for it before it stops
        # the server.
        self._thread = threading.Thread(
            target=self._run, args=(_with_parent(command),),
            name="encoderd-server", daemon=True)
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._process or self._not_started)
        error = self._not_started
        if isinstance(error, ValueError):
            raise ValueError(f"cannot start {command[0]}: an argument cannot "
                             f"be passed to a program: {error}") from error
        if error is not None:
            raise ServerStartError(
                f"cannot start {command[0]}: {error}") from error

    @property
    def pid(self) -> int:
        assert self._process is not None  # else the constructor raised
        return self._process.pid

    @property
    def log(self) -> str:
        with self._changed:
            return "".join(self._lines)

    def wait_until_serving(self, timeout: Optional[float]) -> None:
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._serving or self.exit_code is not None, timeout)
            if self._serving:
                return
            log = "".join(self._lines)
            code = self.exit_code
        if not done:
            raise ServerStartError(
                f"encoderd did not serve within {timeout:g} s; give a longer "
                "start_timeout. " + (f"The end of its log:\n{log[-2000:]}"
                                     if log.strip() else "Its log is empty."),
                None, log)
        why = self._failure or log[-2000:].strip() or "it said nothing"
        raise ServerStartError(
            f"encoderd did not start (exit code {code}): {why}", code, log)

    def stop(self, timeout: Optional[float]) -> Optional[int]:
        if os.getpid() != self._owner or self._process is None:
            return None
        self._process.terminate()  # nothing, where it has ended
        if threading.current_thread() is self._thread:
            # The collector ran here, in the thread that sees the end.
            threading.Thread(target=self.stop, args=(timeout,),
                             daemon=True).start()
            return self.exit_code
        if not self._wait(timeout):
            self._process.kill()
            self._wait(None)
        return self.exit_code

    def _wait(self, timeout: Optional[float]) -> bool:
        """Whether it has ended; in pieces, so that Ctrl-C is heard."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while self.exit_code is None:
                left = 1.0 if until is None else until - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 1.0))
        return True

    def _run(self, command: List[str]) -> None:
        try:
            # A separate session: Ctrl-C reaches this process, which then
            # stops the server once.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, start_new_session=True)
        except Exception as error:  # for the thread that waits
            with self._changed:
                self._not_started = error
                self._changed.notify_all()
            return
        with self._changed:
            self._process = process
            self._changed.notify_all()
        assert process.stderr is not None  # a pipe, as asked for
        with process.stderr as lines:
            for line in lines:
                self._take(line.decode("utf-8", "replace"))
        code = process.wait()
        with self._changed:
            self.exit_code = code
            self._changed.notify_all()

    def _take(self, line: str) -> None:
        with self._changed:
            self._lines.append(line)
            listening = LISTENING.search(line.rstrip("\n"))
            if listening and not self.grpc:
                self.grpc, self.http = listening[1], listening[2] or ""
            failed = FAILED.search(line)
            if failed:
                self._failure = (failed[2] if failed[1] is None
                                 else _unescape(failed[1]))
            if SERVING.search(line):
                self._serving = True
            self._changed.notify_all()


def _with_parent(command: List[str]) -> List[str]:
    """The command that becomes `command` and ends with this process; of a
    frozen program, which has no Python to run the helper, `command` itself."""
    if (not sys.platform.startswith("linux") or not sys.executable
            or getattr(sys, "frozen", False)):
        return command
    helper = pathlib.Path(__file__).with_name("_exec_with_parent.py")
    return [sys.executable, "-I", "-S", str(helper), str(os.getpid()),
            *command]


def _unescape(text: str) -> str:
    """A quoted value of the log as it was."""
    def plain(found: "re.Match[bytes]") -> bytes:
        code = found[1]
        if len(code) == 3:
            return bytes([int(code, 8) & 255])
        return LETTERS.get(code, code)

    return ESCAPE.sub(plain, text.encode()).decode("utf-8", "replace")
