"""Child processes that cannot hold up their caller.

Each has its own process group and a time limit on every answer; when the
limit passes, that group is killed and nothing else. A child dies with its
caller, however the caller dies: the kernel kills the child itself
(PR_SET_PDEATHSIG), and a guard process kills the group.
"""

import ctypes
import os
import selectors
import signal
import subprocess
import time

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class ChildFailed(Exception):
    """The child died, answered garbage or did not answer in time."""


class Guard:
    """Outlives its caller to kill what the caller leaves behind.

    The caller writes "+GROUP" and "-GROUP" into a pipe; at the end of input
    the guard kills the groups still listed and calls `clear`. It inherits the
    caller's open files: locks last as long as it does.
    """

    def __init__(self, clear):
        read, self._write = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self._write)
            try:
                self._watch(read, clear)
            finally:
                os._exit(0)
        os.close(read)

    @staticmethod
    def _watch(read, clear):
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):  # holds no terminal and no pipe of a caller
            os.dup2(null, number)
        groups = set()
        with os.fdopen(read, encoding="ascii") as lines:
            for line in lines:
                change = groups.add if line[0] == "+" else groups.discard
                change(int(line[1:]))
        for group in groups:
            kill_group(group)
        clear()

    def add(self, group):
        os.write(self._write, b"+%d\n" % group)

    def remove(self, group):
        os.write(self._write, b"-%d\n" % group)

    def close(self):
        """Waits until `clear` has returned."""
        os.close(self._write)
        os.waitpid(self.process, 0)


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _die_with(caller):
    """Runs in the child, before its program."""
    def prepare():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != caller:
            os._exit(1)
    return prepare


class Children:
    """Starts children and knows those that live."""

    def __init__(self, guard, clock):
        self.guard = guard
        self.clock = clock
        self.alive = set()

    def start(self, command, log, environment, answers=True):
        """answers: stdout is read by lines; False: it goes to the log."""
        return Child(self, command, log, environment, answers)

    def call(self, command, log, environment, limit, each_line=None):
        """Runs to its end; its exit code. Output goes to `log`, and stdout
        line by line to `each_line`, if given, as it comes."""
        limit = self.clock.limit(limit)
        child = self.start(command, log, environment)
        try:
            until = time.monotonic() + limit
            child.process.stdin.close()
            while True:
                line = child.read(until - time.monotonic(), limit)
                if line is None:
                    break
                child.note(line)
                if each_line:
                    each_line(line)
            return child.wait(until - time.monotonic())
        finally:
            child.kill()

    def end(self):
        for child in list(self.alive):
            child.kill()


class Child:
    """One program. stderr goes to the log; stdout is read by lines."""

    def __init__(self, children, command, log, environment, answers):
        self.children = children
        self.name = os.path.basename(command[0])
        self.log = log
        self._buffer = b""
        with open(log, "ab") as file:
            file.write(os.fsencode("$ " + " ".join(command) + "\n"))
            file.flush()
            try:
                self.process = subprocess.Popen(
                    command, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE if answers else file,
                    stderr=file, env=environment, start_new_session=True,
                    preexec_fn=_die_with(os.getpid()))
            except OSError as failure:
                raise ChildFailed(f"{self.name}: {failure}") from failure
        children.alive.add(self)
        children.guard.add(self.process.pid)

    def note(self, line):
        """Adds a line to the log."""
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def read(self, limit, told=None):
        """A line of stdout within `limit` seconds; None at its end.

        A child that is late is killed. told: the limit to name in the error.
        """
        until = time.monotonic() + max(limit, 0)
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self.kill()
                    raise ChildFailed(
                        f"{self.name}: no answer within "
                        f"{told or limit:.3g} s; killed")
                data = os.read(self.process.stdout.fileno(), 65536)
                if not data:
                    rest, self._buffer = self._buffer, b""
                    return rest.decode(errors="replace") or None
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").strip()

    def ask(self, command, limit):
        """Says a line and reads the answer."""
        if command:
            try:
                self.process.stdin.write(os.fsencode(command) + b"\n")
                self.process.stdin.flush()
            except OSError as failure:
                self.fail(f"is gone: {failure}")
        line = self.read(limit)
        if line is None:
            self.fail("left without an answer")
        return line

    def fail(self, why):
        """Kills the child and raises, with the last words of its log."""
        code = self.wait(0.5, kill=True)
        self.kill()
        raise ChildFailed(f"{self.name} {why} (exit {code}): "
                          f"{last_words(self.log)}"[:600])

    def wait(self, limit, kill=False):
        """The exit code; a child that stays is killed."""
        try:
            return self.process.wait(max(limit, 0.01))
        except subprocess.TimeoutExpired:
            self.kill()
            if kill:
                return self.process.returncode
            raise ChildFailed(f"{self.name}: did not end; killed") from None

    def kill(self):
        """Ends the child and all that it started; harmless when repeated."""
        if self not in self.children.alive:
            return
        kill_group(self.process.pid)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            pass  # stuck in the kernel: nobody can wait for it
        self.children.alive.discard(self)
        self.children.guard.remove(self.process.pid)
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close() if pipe else None
            except OSError:
                pass


def last_words(log, lines=3):
    try:
        with open(log, "rb") as file:
            file.seek(max(os.path.getsize(log) - 4096, 0))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    words = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(w for w in words[-lines:] if not w.startswith("$ "))
