"""Programs on loopback, one at a time by `with`: a server, Prometheus, load.

Each ends with its block. Waits are for events and bounded by PATIENCE."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

import monitoring

PATIENCE = 120  # seconds; only what is broken waits so long


def eventually(wanted, what, patience=PATIENCE):
    """What `wanted` gives once it is not falsy."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = wanted()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError(f"{what}: not within {patience} s")


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """encoderd, or encoderd_fake_server. Ports that are given are kept by the
    next server, which is then the same one to Prometheus."""

    def __init__(self, program, model, *flags, grpc=0, http=0, files=None,
                 wait_for="serving"):
        limit = ["prlimit", f"--nofile={files}:{files}"] if files else []
        self.process = subprocess.Popen(
            [*limit, program, f"--model={model}", f"--listen=127.0.0.1:{grpc}",
             f"--http_listen=127.0.0.1:{http}", *flags],
            stderr=subprocess.PIPE, text=True)
        self.log = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.grpc, self.http = (int(port) for port in self.wait_for(
            r"event=listening grpc=\S+:(\d+) http=\S+:(\d+)").groups())
        if wait_for:
            self.wait_for(f"event={wait_for}")

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)

    def wait_for(self, pattern):
        def found():
            match = re.search(pattern, "".join(self.log))
            if not match and self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {''.join(self.log)}")
            return match
        return eventually(found, f"a log line {pattern}")

    def metrics(self):
        return get(f"http://127.0.0.1:{self.http}/metrics")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self._reader.join()
        self.process.stderr.close()


def hurried(text):
    """Rules whose windows and waits are seconds, for a scrape each half second."""
    text = text.replace("[15m]", "[1m]")  # of restarts
    text = re.sub(r"\[[25]m\]|(?<=total)\[1m\]", "[4s]", text)
    return re.sub(r"^(\s+for:) \d+m$", r"\1 1s", text, flags=re.MULTILINE)


class Prometheus:
    """Prometheus with the project's own rules, over the given HTTP ports."""

    def __init__(self, folder, ports, every="1s", rules=lambda text: text):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        config = yaml.safe_load(
            (monitoring.PROMETHEUS / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": every, "scrape_timeout": every,
                            "evaluation_interval": every}
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        for name in monitoring.RULES:
            (self.folder / name).write_text(
                rules((monitoring.PROMETHEUS / name).read_text()))
        self.scrape(*ports)
        self._out = (self.folder / "prometheus.log").open("w")
        self.process = subprocess.Popen(
            [shutil.which("prometheus") or "prometheus",
             f"--config.file={self.folder}/prometheus.yml",
             f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            env=dict(os.environ, GOMAXPROCS="1"),
            stdout=self._out, stderr=subprocess.STDOUT)
        eventually(self._ready, "Prometheus ready")

    def scrape(self, *ports):
        """From now on these. Prometheus reads the file again by itself."""
        temporary = self.folder / "targets.new"
        temporary.write_text(yaml.safe_dump(
            [{"targets": [f"127.0.0.1:{p}" for p in ports]}] if ports else []))
        temporary.rename(self.folder / "targets.yml")

    def _ready(self):
        if self.process.poll() is not None:
            raise RuntimeError((self.folder / "prometheus.log").read_text())
        with contextlib.suppress(OSError):
            return get(f"http://127.0.0.1:{self.port}/-/ready")

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        try:
            answer = get(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}")
        except urllib.error.HTTPError as error:
            raise ValueError(f"{parameters}: {error.read().decode()}") from None
        return json.loads(answer)["data"]

    def value(self, expression, at=None):
        """Of the one series that the expression gives; none: None."""
        found = self.ask("query", query=expression,
                         **({"time": at} if at else {}))["result"]
        if len(found) > 1:
            raise ValueError(f"{expression} gives {len(found)} series")
        return float(found[0]["value"][1]) if found else None

    def firing(self):
        """{name: summary} of the alerts that fire now."""
        return {alert["labels"]["alertname"]: alert["annotations"]["summary"]
                for alert in self.ask("alerts")["alerts"]
                if alert["state"] == "firing"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self._out.close()


@contextlib.contextmanager
def load(encoderctl, server, *flags):
    """encoderctl bench for as long as the block lasts."""
    process = subprocess.Popen(
        [encoderctl, "bench", f"--target=127.0.0.1:{server.grpc}",
         "--duration=10m", "--progress=never", *flags],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)
