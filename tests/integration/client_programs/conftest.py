"""Servers for the clients' tests, and a way to run programs."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys

import pytest

SUPPORT = pathlib.Path(__file__).resolve().parents[2] / "support"
sys.path.insert(0, str(SUPPORT))
from server_process import Server, eventually  # noqa: E402  after the path

PROGRAMS = pathlib.Path(os.environ["ENCODERD_TEST_PROGRAMS"])


class FakeServer:
    """fake_encoder_server, until close()."""

    def __init__(self, refusals=0):
        self.process = subprocess.Popen(
            [PROGRAMS / "fake_encoder_server", str(refusals)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.target = self.process.stdout.readline().strip()

    def texts_seen(self):
        """Texts that came over streams so far."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

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
def own_fake():
    """One that no other test uses."""
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
    """An address where nobody listens, and nobody else can."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A folder with what make_certificates.sh makes."""
    folder = tmp_path_factory.mktemp("certificates")
    subprocess.run([SUPPORT / "make_certificates.sh", folder], check=True)
    return folder


@pytest.fixture(autouse=True)
def no_security_from_outside(monkeypatch):
    """Clients have no TLS and no token unless a test says so."""
    for name in ("TLS", "CA_FILE", "CERTIFICATE_FILE", "KEY_FILE", "TOKEN",
                 "TOKEN_FILE", "SERVER_NAME", "TARGET"):
        monkeypatch.delenv(f"ENCODERD_{name}", raising=False)


@pytest.fixture(scope="session")
def model_folder():
    folder = os.environ.get("ENCODERD_TEST_MODEL")
    assert folder, ("ENCODERD_TEST_MODEL names no model: deploy/fetch-model.sh "
                    "fetches one, tests/run.sh sets it")
    return folder


@pytest.fixture(scope="session")
def server(model_folder):
    """The address of a real encoderd with all-MiniLM-L6-v2, once it serves."""
    with serving(model_folder) as found:
        yield found.address


@contextlib.contextmanager
def serving(model_folder):
    """An encoderd that nobody else calls; it must end with 0."""
    with Server(PROGRAMS / "encoderd", f"minilm={model_folder}") as found:
        yield found
        assert found.stop() == 0, found.log()


def run(*command, **options):
    """A finished program of the build: its exit code, output and errors."""
    program, *arguments = command
    return subprocess.run([PROGRAMS / program, *arguments], timeout=300,
                          capture_output=True, text=True, check=False,
                          **options)


def wait_while_it_runs(process, state):
    """Returns once `state` holds of what the program does."""
    def holds():
        found = state()
        assert found or process.poll() is None, "the program ended too early"
        return found

    eventually(holds, "a state of the program")


def encoderctl(target, command, *arguments, **options):
    return run("encoderctl", command, f"--target={target}", *arguments,
               **options)
