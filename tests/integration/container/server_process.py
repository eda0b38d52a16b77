"""encoderd as a process, for the long checks of tests/nightly.sh."""

import os
import pathlib
import random
import re
import socket
import subprocess
import time

PROGRAMS = pathlib.Path(os.environ.get("ENCODERD_TEST_PROGRAMS", "build/bench/bin"))
PATIENCE = 120  # seconds for anything that must come to an end


def free_port():
    """Below the ports that the system hands out, so that nobody takes it."""
    for port in random.sample(range(20000, 32000), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port between 20000 and 32000")


def until(what, answer):
    """Waits for answer() to be true, and returns it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = answer()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"not in {PATIENCE} s: {what}")


class Server:
    """On a port of its own, which it keeps over restarts."""

    def __init__(self, folder, name, model, *flags):
        self.address = f"127.0.0.1:{free_port()}"
        self._log = pathlib.Path(folder, f"{name}.log")
        self._command = [PROGRAMS / "encoderd", f"--model={model}",
                         f"--listen={self.address}", "--http_listen=", *flags]
        self._process = None

    def start(self):
        """Returns once it serves."""
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(self._command, stderr=log)

        def serving():
            if self._process.poll() is not None:
                raise AssertionError(f"encoderd stopped:\n{self.log()}")
            return "event=serving" in self.log()

        until("event=serving", serving)

    def stop(self):
        """By TERM; returns the exit code and the calls in flight at TERM."""
        self._process.terminate()
        code = self._process.wait(timeout=PATIENCE)
        found = re.search(r"event=draining in_flight=(\d+)", self.log())
        return code, int(found[1]) if found else 0

    def kill(self):
        if self._process and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def log(self):
        return self._log.read_text(encoding="utf-8")
