"""Prometheus and load as programs on loopback, each until the end of `with`;
the server is that of tests/support."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse

import yaml

import monitoring

sys.path.insert(0, str(monitoring.ROOT / "tests/support"))
from callers import Callers  # noqa: E402  after the path
from server_process import (  # noqa: E402, F401
    Server, eventually, free_port, get)


def end(process):
    """By TERM, or by KILL where that does not help."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def hurried(text):
    """Rules whose windows and waits are seconds, for a scrape each half second."""
    text = text.replace("[15m]", "[1m]")  # of restarts
    text = re.sub(r"\[[25]m\]|(?<=total)\[1m\]", "[4s]", text)
    text = text.replace("age_seconds > 300", "age_seconds > 5")
    return re.sub(r"^(\s+for:) \d+m$", r"\1 1s", text, flags=re.MULTILINE)


class Prometheus:
    """Prometheus with the project's own rules, over the given HTTP ports;
    over TLS where the authority of their certificates is given."""

    def __init__(self, folder, ports, every="1s", rules=lambda text: text,
                 ca_file=None):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        config = yaml.safe_load(
            (monitoring.PROMETHEUS / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": every, "scrape_timeout": every,
                            "evaluation_interval": every}
        if ca_file:
            config["scrape_configs"][0].update(
                scheme="https", tls_config={"ca_file": str(ca_file)})
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
        try:
            eventually(self._ready, "Prometheus ready")
        except BaseException:
            self.__exit__()
            raise

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
        end(self.process)
        self._out.close()


@contextlib.contextmanager
def load(encoderctl, server, *flags, lasting=False):
    """encoderctl bench for as long as the block lasts. lasting: RuntimeError
    where it ended before, as it does at an input that is at fault."""
    process = subprocess.Popen(
        [encoderctl, "bench", f"--target=127.0.0.1:{server.grpc}",
         "--duration=10m", "--progress=never", *flags],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
        if lasting and process.poll() is not None:
            raise RuntimeError(f"the load {flags} ended: {process.args}")
    finally:
        end(process)


@contextlib.contextmanager
def mistakes(encoderctl, server):
    """A caller whose texts are too long, one after the other."""
    def call():
        done = subprocess.run(
            [encoderctl, "embed", f"--target=127.0.0.1:{server.grpc}"],
            input="word " * 9000, text=True, capture_output=True, check=False)
        if "INPUT_TOO_LONG" not in done.stderr:
            raise RuntimeError(f"{done.args}: {done.returncode} {done.stderr}")

    with Callers([lambda: contextlib.nullcontext(call)]) as callers:
        yield callers
        eventually(lambda: callers.lost or all(callers.answered()), "a mistake")
    callers.check()
