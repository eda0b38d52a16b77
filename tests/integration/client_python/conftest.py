"""Servers for the tests of the Python client."""

import os
import pathlib
import re
import subprocess

import pytest

PROGRAMS = pathlib.Path(os.environ["ENCODERD_TEST_PROGRAMS"])


class FakeServer:
    """fake_encoder_server, until close()."""

    def __init__(self, refusals=0):
        self.process = subprocess.Popen(
            [PROGRAMS / "fake_encoder_server", str(refusals)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.target = self.process.stdout.readline().strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def fake():
    server = FakeServer()
    yield server
    server.close()


@pytest.fixture
def busy_fake():
    """Refuses the first three calls of Embed."""
    server = FakeServer(refusals=3)
    yield server
    server.close()


@pytest.fixture(scope="session")
def gone():
    """An address where nobody listens any more."""
    server = FakeServer()
    server.close()
    return server.target


@pytest.fixture(scope="session")
def model_folder():
    folder = os.environ.get("ENCODERD_TEST_MODEL")
    assert folder, ("ENCODERD_TEST_MODEL names no model: deploy/fetch-model.sh "
                    "fetches one, tests/run.sh sets it")
    return folder


@pytest.fixture(scope="session")
def server(model_folder):
    """The address of a real encoderd with all-MiniLM-L6-v2."""
    process = subprocess.Popen(
        [PROGRAMS / "encoderd", f"--model=minilm={model_folder}",
         "--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0"],
        stderr=subprocess.PIPE, text=True)
    target = None
    log = []
    for line in process.stderr:
        log.append(line)
        target = find_address(line)
        if target:
            break
    assert target, "encoderd did not say where it listens:\n" + "".join(log)
    yield target
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0


def find_address(line):
    match = re.search(r"\blisten=(127\.0\.0\.1:[1-9]\d*)", line)
    return match and match[1]
