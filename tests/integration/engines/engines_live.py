#!/usr/bin/env python3
"""client/examples/embed_ray.py or embed_spark.py as its users run it, over two
servers: every row once, with the right vector, though one server is restarted
in the middle, or both are away for a while; and how fast two servers are next to
one.

    ENCODERD_TEST_MODEL=FOLDER engines_live.py ray|spark \\
        --programs=build/dev/bin [--rows=4000]

The last line printed is the figure. Exit code 1 where a row was lost, doubled
or wrong, or the restart was not in the middle. tests/nightly.sh runs it, in a
virtual environment with requirements.txt.
"""

import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import encoderd
import numpy as np
import pyarrow
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
from server_process import (  # noqa: E402  after the path
    PATIENCE, Server, eventually, free_port)

# Sleeps for each token, so that two such servers are like separate machines
# as far as time goes.
FAKE = "fake=token_us:60"
FILES = 8
OUTAGE = 3  # seconds; five attempts take half of it
TASKS = {"ray": "2", "spark": "4"}  # enough rows in each to use both servers
PROGRAMS = pathlib.Path(sys.executable).parent
COMMANDS = {
    "ray": [sys.executable],
    # Two tasks at a time, each tried four times, as in a cluster.
    "spark": [PROGRAMS / "spark-submit", "--master=local[2,4]",
              "--conf=spark.ui.enabled=false"],
}
# What the engines start stays on loopback, and reports to nobody.
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0",
               "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
               "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}


def texts(count):
    return [f"Row {i} of a table that is embedded by many." for i in
            range(count)]


def rows_of(server):
    """Inputs whose vectors the server has computed."""
    found = re.findall(r"^encoderd_batch_sequences_sum\S* (\d+)",
                       server.metrics(), re.MULTILINE)
    if not found:
        raise ValueError("no encoderd_batch_sequences_sum in /metrics")
    return sum(map(int, found))


class Job:
    """The example over these servers, in its own process."""

    def __init__(self, engine, folder, servers):
        self.out = pathlib.Path(folder) / "out"
        self._log = (pathlib.Path(folder) / "log").open("w+")
        target = "ipv4:" + ",".join(server.address for server in servers)
        self.process = subprocess.Popen(
            [*COMMANDS[engine],
             ROOT / f"client/examples/embed_{engine}.py",
             f"{folder}/in", self.out, target, TASKS[engine]],
            env=dict(os.environ, **ENVIRONMENT), cwd=folder,
            stdout=self._log, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL)

    def wait_for(self, wanted, what):
        def found():
            if self.process.poll() not in (None, 0):
                raise RuntimeError(f"the job failed: {self.log()}")
            return wanted() or self.process.poll() == 0
        return eventually(found, what)

    def log(self):
        self._log.seek(0)
        return self._log.read()[-8000:]

    def finish(self):
        code = self.process.wait(PATIENCE * 3)
        if code:
            raise RuntimeError(f"exit code {code}: {self.log()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)
        self._log.close()


class Check:
    def __init__(self, options):
        self.options = options
        self.faults = []
        self.texts = texts(options.rows)

    def expect(self, good, fault):
        if not good:
            self.faults.append(fault)

    def start(self, model, port):
        program = "encoderd_fake_server" if model == FAKE else "encoderd"
        return Server(f"{self.options.programs}/{program}", model,
                      "--threads=1", grpc=port)

    @contextlib.contextmanager
    def job(self, model, count):
        """A job over `count` new servers; its rows are checked at its end."""
        servers = [self.start(model, free_port()) for _ in range(count)]
        try:
            with tempfile.TemporaryDirectory() as folder:
                self.write(folder)
                with encoderd.Client(servers[0].address) as client:
                    wanted = client.encode(self.texts)
                before = [rows_of(server) for server in servers]
                with Job(self.options.engine, folder, servers) as job:
                    yield job, servers, before
                    job.finish()
                    self.compare(job.out, wanted)
        finally:
            for server in servers:
                server.kill()

    def write(self, folder):
        source = pathlib.Path(folder) / "in"
        source.mkdir()
        for i in range(FILES):
            some = list(range(i, len(self.texts), FILES))
            pyarrow.parquet.write_table(
                pyarrow.table({"id": some,
                               "text": [self.texts[j] for j in some]}),
                source / f"{i}.parquet")

    def compare(self, out, wanted):
        table = pyarrow.parquet.read_table(out).sort_by("id")
        ids = table["id"].to_pylist()
        self.expect(ids == list(range(len(self.texts))),
                    f"{len(ids)} rows, {len(set(ids))} of them different, of "
                    f"{len(self.texts)}")
        if len(ids) == len(wanted):
            got = np.array(table["vector"].to_pylist(), np.float32)
            self.expect(table["text"].to_pylist() == self.texts
                        and np.array_equal(got, wanted),
                        "a row has another row's vector")

    def rate(self, model, count):
        """Rows per second, from the first row computed to the last."""
        with self.job(model, count) as (job, servers, before):
            def computed():
                return [rows_of(server) - one
                        for server, one in zip(servers, before)]
            job.wait_for(lambda: sum(computed()) > 0, "a first row")
            began, first = time.monotonic(), sum(computed())
            job.wait_for(lambda: sum(computed()) >= len(self.texts),
                         "every row")
            rate = (len(self.texts) - first) / (time.monotonic() - began)
            self.expect(min(computed()) > 0, f"shares: {computed()}")
        return rate

    def restart(self, model):
        """By TERM, once a third of the rows is there; then the new one has to
        get some, too."""
        with self.job(model, 2) as (job, servers, before):
            def computed(i):
                return rows_of(servers[i]) - before[i]
            count = len(self.texts)
            job.wait_for(lambda: computed(0) + computed(1) >= count / 3,
                         "a third of the rows")
            at_stop = computed(0) + computed(1)
            code = servers[0].stop()
            self.expect(code == 0, f"exit code {code}")
            servers[0] = self.start(model, servers[0].grpc)
            before[0] = rows_of(servers[0])
            job.wait_for(lambda: computed(0) > 0, "rows of the new server")
            self.expect(0 < at_stop < count * 2 / 3,
                        f"stopped after {at_stop} of {count} rows")
            self.expect(computed(0) > 0, "nothing of the new server")
            return at_stop

    def outage(self, model):
        """Both servers are away for longer than a client tries: the engine
        begins batches or tasks again."""
        with self.job(model, 2) as (job, servers, before):
            count = len(self.texts)
            job.wait_for(lambda: sum(rows_of(server) - one for server, one in
                                     zip(servers, before)) >= count / 3,
                         "a third of the rows")
            for server in servers:
                server.kill()
            time.sleep(OUTAGE)
            self.expect(job.process.poll() is None, "ended before the outage")
            for i, server in enumerate(servers):
                servers[i] = self.start(model, server.grpc)

    def run(self):
        real = os.environ["ENCODERD_TEST_MODEL"]
        figures = []
        for name, model in (("MiniLM", real), ("fake", FAKE)):
            one, two = self.rate(model, 1), self.rate(model, 2)
            figures.append(f"{name}: {one:.0f} rows/s over one server, "
                           f"{two:.0f} over two")
        at_stop = self.restart(real)
        self.outage(FAKE)
        print("\n".join(self.faults), file=sys.stderr)
        print("; ".join(figures) + f"; restart after {at_stop} of "
              f"{len(self.texts)} rows and an outage of both: "
              f"{len(self.faults)} faults")
        return 1 if self.faults else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("engine", choices=sorted(COMMANDS))
    parser.add_argument("--programs", required=True, type=os.path.abspath)
    parser.add_argument("--rows", type=int, default=4000)
    sys.exit(Check(parser.parse_args()).run())
