"""How long a server lives that Python starts, by who refers to it."""

import gc

import encoderd
from conftest import PROGRAMS
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
