"""How long a server lives that Python starts, by who refers to it."""

import gc
import sys

import encoderd
from conftest import PROGRAMS
from encoderd import _server_process
from server_process import eventually, running

PROGRAM = PROGRAMS / "encoderd_fake_server"


def client_of_own():
    server = encoderd.Server({"fake": "load_ms:0"}, program=PROGRAM)
    return server.client(), server.pid


def test_a_client_keeps_its_server():
    client, _ = client_of_own()
    gc.collect()
    assert client.encode(["one"]).shape[0] == 1
    client.close()


def test_an_iterator_keeps_its_server():
    client, _ = client_of_own()
    stream = client.embed_stream(iter(["one", "two"]))
    del client
    gc.collect()
    assert len(list(stream)) == 2


def test_it_ends_with_the_last_that_refers_to_it():
    client, pid = client_of_own()
    client.close()
    del client
    gc.collect()

    assert eventually(lambda: not running(pid), f"the end of {pid}")


def test_a_frozen_program_is_not_started_in_place_of_its_server(
        tmp_path, monkeypatch):
    mark = tmp_path / "started"
    frozen = tmp_path / "frozen"
    frozen.write_text(f"#!/bin/sh\n: > '{mark}'\n")
    frozen.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(frozen))
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with encoderd.Server({"fake": "load_ms:0"}, program=PROGRAM) as server:
        assert server.client().encode(["one"]).shape[0] == 1
    assert not mark.exists()


def test_the_thread_of_the_log_does_not_wait_for_itself(monkeypatch):
    # The collector may end the server in any thread.
    take = _server_process.ServerProcess._take
    ended = []

    def end(process, line):
        take(process, line)
        if process._serving and not ended:
            ended.append(process.stop(None))

    monkeypatch.setattr(_server_process.ServerProcess, "_take", end)
    server = encoderd.Server({"fake": "load_ms:0"}, program=PROGRAM)
    assert eventually(lambda: server.exit_code is not None, "its end")
    assert ended == [None]
