"""encoderd, or encoderd_fake_server, as a process on loopback, for tests in
Python. Waits are for events and bounded by PATIENCE."""

import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request

PATIENCE = 120  # seconds; only what is broken waits so long


def eventually(wanted, what, patience=PATIENCE):
    """What `wanted` gives once it is not falsy."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = wanted()
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError(f"{what}: not within {patience} s")


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def running(pid):
    """Whether the process runs; a zombie does not."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def free_port():
    """For a server that comes again on it: below the ports that the system
    hands out, so that no connection takes it meanwhile."""
    for port in random.sample(range(20000, 32000), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port between 20000 and 32000")


class Server:
    """Runs from its construction to the end of `with`, stop() or kill(). Ports
    that are given are kept by the next server, which is then the same one to
    callers and to Prometheus."""

    def __init__(self, program, model, *flags, grpc=0, http=0, files=None,
                 wait_for="serving"):
        limit = ["prlimit", f"--nofile={files}:{files}"] if files else []
        self.process = subprocess.Popen(
            [*limit, program, f"--model={model}", f"--listen=127.0.0.1:{grpc}",
             f"--http_listen=127.0.0.1:{http}", *flags],
            stderr=subprocess.PIPE, text=True)
        self._lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.grpc, self.http = (int(port) for port in self.wait_for(
                r"event=listening grpc=\S+:(\d+) http=\S+:(\d+)").groups())
            if wait_for:
                self.wait_for(f"event={wait_for}")
        except BaseException:
            self.kill()
            raise
        self.address = f"127.0.0.1:{self.grpc}"

    def _read(self):
        for line in self.process.stderr:
            self._lines.append(line)

    def log(self):
        return "".join(self._lines)

    def wait_for(self, pattern):
        def found():
            match = re.search(pattern, self.log())
            if not match and self.process.poll() is not None:
                self._reader.join(timeout=5)
                raise RuntimeError(f"the server ended: {self.log()}")
            return match
        return eventually(found, f"a log line {pattern}")

    def metrics(self):
        return get(f"http://127.0.0.1:{self.http}/metrics")

    def stop(self, patience=PATIENCE):
        """By TERM; returns the exit code. The log is then complete."""
        self.process.terminate()
        code = self.process.wait(patience)
        self._close()
        return code

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._close()

    def _close(self):
        self._reader.join()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            try:
                self.stop(patience=10)
            except subprocess.TimeoutExpired:
                self.kill()
        else:
            self._close()
