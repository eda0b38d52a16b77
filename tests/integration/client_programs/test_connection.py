"""Both clients where no encoderd answers: the address, the cause and what to
do, in one sentence, and nothing of gRPC's chained to it; a model that loads is
waited for."""

import asyncio
import collections
import contextlib
import json
import pathlib
import socket
import socketserver
import subprocess
import sys
import threading
import traceback

import encoderd
import grpc
import pytest
from either_client import KINDS, ask
from encoderd._channel import channel_options
from encoderd._target import read_target
from encoderd.v1 import encoder_pb2
from google.rpc import error_details_pb2, status_pb2
from python_service import Service, serve

CORRECT = "correct the target (target= or ENCODERD_TARGET)"
START = f"start encoderd there, or {CORRECT}"
WIDTH = 6  # hidden_size of the fake


def blocking(target, method="encode", *arguments, timeout=60, **settings):
    return ask(encoderd.Client, target, method, *(arguments or ["one"]),
               settings={"timeout": timeout, **settings})


def awaited(target, method="encode", *arguments, timeout=60, **settings):
    return ask(encoderd.AsyncClient, target, method, *(arguments or ["one"]),
               settings={"timeout": timeout, **settings})


BOTH = pytest.mark.parametrize("work", [blocking, awaited])


def failure(call, kind=encoderd.UnavailableError):
    """The one sentence that a caller reads."""
    with pytest.raises(kind) as caught:
        call()
    shown = "".join(traceback.format_exception(
        type(caught.value), caught.value, caught.value.__traceback__))
    assert shown.count("Traceback") == 1  # nothing is chained
    assert "Exception" not in str(caught.value)
    assert "failed to connect" not in str(caught.value)  # gRPC's words
    return str(caught.value)


@pytest.mark.parametrize("target, policy", [
    *((target, "pick_first") for target in (
        "localhost", "localhost:8400", "LocalHost:8400", "dns:localhost:8400",
        "dns:///localhost:8400")),
    *((target, "round_robin") for target in (
        "127.0.0.1:8400", "[::1]:8400", "localhost.example.com:8400",
        "dns://10.0.0.1/localhost:8400", "ipv4:127.0.0.1:8400",
        "unix:localhost"))])
def test_only_the_addresses_of_localhost_are_dialed_in_order(target, policy):
    options = dict(channel_options(read_target(target), 1))
    config = json.loads(options["grpc.service_config"])
    assert config["loadBalancingConfig"] == [{policy: {}}]
    assert config["methodConfig"] and config["retryThrottling"]


@BOTH
def test_a_port_where_nobody_listens_is_named(gone, work):
    assert failure(lambda: work(gone)) == (
        f"UNAVAILABLE: no server is listening at {gone}; {START}")


@BOTH
def test_a_stream_says_the_same_when_its_patience_ends(gone, work):
    def stream(timeout):
        if work is blocking:
            with encoderd.Client(gone) as client:
                return list(client.embed_stream(["one"], timeout=timeout))

        async def main():
            async with encoderd.AsyncClient(gone) as client:
                return [found async for found in client.embed_stream(
                    ["one"], timeout=timeout)]
        return asyncio.run(main())

    timeout, said = 1.0, ""
    while "listening" not in said and timeout < 60:  # on a slow machine: longer
        said = failure(lambda t=timeout: stream(t), encoderd.EncoderdError)
        timeout *= 2
    assert said == f"UNAVAILABLE: no server is listening at {gone}; {START}"


@BOTH
def test_a_socket_that_does_not_exist_is_named(work, tmp_path):
    target = f"unix:{tmp_path}/none"
    assert failure(lambda: work(target)) == (
        f"UNAVAILABLE: no encoderd answers at {target}: no such socket; "
        f"{START}")


@BOTH
def test_a_host_that_does_not_exist_is_named(work):
    assert failure(lambda: work("no-such-host.invalid")) == (
        "UNAVAILABLE: no encoderd answers at no-such-host.invalid:8400: the "
        f"host name cannot be resolved; check its spelling, or {CORRECT}")


@BOTH
@pytest.mark.parametrize("name", ["no-such-MiniLM-L6-v2", "no-such-en-v1.5"])
def test_a_host_that_may_be_a_model_is_told_of(work, name):
    assert failure(lambda: work(name)) == (
        f"UNAVAILABLE: no encoderd answers at {name}:8400: the host name "
        f"cannot be resolved; check its spelling, or {CORRECT}; if {name!r} "
        "is a model, pass it as model=, and the address of its server as "
        "target")


@contextlib.contextmanager
def answering(words):
    """Where whoever connects is told these words."""
    class Talk(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.sendall(words)
            while self.request.recv(4096):
                pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talk) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@BOTH
@pytest.mark.parametrize("words, what", [
    (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
     "speaks HTTP, not gRPC"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak gRPC")])
def test_a_port_of_another_protocol_is_named(work, words, what):
    with answering(words) as target:
        assert failure(lambda: work(target)) == (
            f"UNAVAILABLE: {target} {what}; name encoderd's gRPC port "
            "(--listen, 8400 by default; 8401 is its HTTP port)")


@pytest.mark.parametrize("kind", [encoderd.Client, encoderd.AsyncClient])
def test_a_model_in_place_of_an_address_is_told_of(kind, tmp_path):
    for model in ("sentence-transformers/all-MiniLM-L6-v2", str(tmp_path)):
        with pytest.raises(ValueError) as caught:
            kind(model)
        assert str(caught.value) == (
            f"target is {model!r}: that looks like a model; pass the address "
            'of its server, such as "localhost:8400" (encoderd.Server starts '
            "one)")


@pytest.mark.parametrize("kind", [encoderd.Client, encoderd.AsyncClient])
def test_a_client_shows_what_it_dials_and_no_token(kind, gone):
    name = f"encoderd.{kind.__name__}"
    assert repr(kind(gone)) == f"<{name} of {gone}>"
    assert repr(kind("localhost", model="m", token="secret")) == (
        f"<{name} of localhost:8400, model='m'>")


@BOTH
def test_a_server_that_is_no_encoderd_is_told_of(work):
    with serve(Service()) as service:  # implements nothing
        assert failure(lambda: work(service.target), encoderd.EncoderdError
                       ) == (
            f"UNIMPLEMENTED: the server at {service.target} does not know this "
            "method: it is another gRPC server, or an older encoderd; "
            f"{CORRECT}")


@BOTH
def test_an_address_that_never_answers_ends_at_the_timeout(work):
    with socket.socket() as silent:  # takes connections, and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        assert failure(lambda: work(target, timeout=0.2),
                       encoderd.DeadlineExceededError) == (
            f"DEADLINE_EXCEEDED: no response from {target} within 0.2 s; raise "
            "timeout=, or check that an encoderd serves there")


class Loading(Service):
    """Loads while it refuses `refusals` calls."""

    def __init__(self, refusals):
        self.refusals = refusals
        self.calls = 0

    def Embed(self, request, context):
        self.calls += 1
        if self.calls > self.refusals:
            return encoder_pb2.EmbedResponse(embeddings=[
                encoder_pb2.Embedding(packed=bytes(8))
                for _ in request.inputs])
        status = status_pb2.Status(code=14, message="a model is still "
                                                    "loading")
        status.details.add().Pack(error_details_pb2.ErrorInfo(
            reason="LOADING", domain="encoderd"))
        info = error_details_pb2.RetryInfo()
        info.retry_delay.FromMilliseconds(10)
        status.details.add().Pack(info)
        context.set_trailing_metadata([
            ("grpc-retry-pushback-ms", "10"),
            ("grpc-status-details-bin", status.SerializeToString())])
        context.abort(grpc.StatusCode.UNAVAILABLE, status.message)


@BOTH
def test_a_model_that_loads_is_waited_for(work):
    refusals = 20  # gRPC itself makes five attempts
    with serve(Loading(refusals)) as service:
        assert work(service.target).shape == (2,)
    assert service.calls == refusals + 1


@KINDS
def test_all_calls_of_a_list_are_made_again_while_a_model_loads(kind):
    texts = ["one", "two", "three", "four"]
    attempts = collections.Counter()

    class Until(Loading):
        """Loads until every text came more often than gRPC tries a call."""

        def Embed(self, request, context):
            attempts[request.inputs[0].text] += 1
            if all(attempts[text] > 5 for text in texts):
                self.refusals = 0
            return super().Embed(request, context)

    with serve(Until(10**9)) as service:
        assert ask(kind, service.target, "encode", texts,
                   batch_size=1).shape == (4, 2)


@BOTH
def test_a_model_that_loads_is_waited_for_up_to_the_timeout(work):
    # More time, until a slow machine gets past gRPC's own attempts.
    for timeout in (0.5, 1, 2, 4, 8, 16, 32):
        with serve(Loading(10**9)) as service:
            said = failure(lambda: work(service.target, timeout=timeout),
                           encoderd.EncoderdError)
        if service.calls > 5:
            assert said == (
                "UNAVAILABLE (LOADING): a model is still loading, after "
                f"{timeout:g} s; raise timeout=")
            return
    pytest.fail(f"{service.calls} calls in {timeout} s")


def targets():
    """(target, address or "refused") of the table that the C++ test reads."""
    table = pathlib.Path(__file__).parents[2] / "support" / "targets.txt"
    for line in table.read_text().splitlines():
        if line and not line.startswith("#"):
            given, _, dialed = line.partition(" -> ")
            yield given, dialed


@pytest.mark.parametrize("given, dialed", list(targets()))
def test_targets_are_dialed_and_refused_as_by_the_cpp_client(given, dialed):
    if dialed == "refused":
        with pytest.raises(ValueError, match="^target is "):
            read_target(given)
    else:
        assert read_target(given) == dialed


@pytest.mark.parametrize("given, words", [
    ("localhost:99999", "port 99999 is out of range; expected 1 to 65535, such "
                        'as "localhost:8400"'),
    ("localhost:0", "port 0 is out of range"),
    ("http://localhost:8401/metrics",
     'a target has no http://; pass "localhost:8401"'),
    ("https://encoder.example",
     'a target has no https://; pass "encoder.example" and tls=True'),
    ("8400", 'that is a port without a host; pass "localhost:8400"'),
    (":8400", 'no host before the port; pass "localhost:8400"'),
    ("localhost:", "'' is not a port; expected a number from 1 to 65535"),
    ("localhost:http", "'http' is not a port"),
    ("[::1", 'expected [ADDRESS]:PORT, such as "[::1]:8400"'),
    ("one,two", "an address has no ','; expected HOST:PORT"),
    ("ipv4:",
     'the host is missing; expected HOST:PORT, such as "localhost:8400"'),
    ("dns://10.0.0.1", "no host after the resolver; expected dns:///HOST:PORT"),
    ("[]:1", 'no host before the port; pass "localhost:1"'),
    ("a host:1",
     'an address has no blanks; expected HOST:PORT, such as "localhost:8400"'),
    ("", 'it is empty; expected HOST:PORT, such as "localhost:8400"')])
@pytest.mark.parametrize("kind", [encoderd.Client, encoderd.AsyncClient])
def test_what_is_no_address_is_refused_before_it_is_dialed(kind, given, words):
    with pytest.raises(ValueError) as caught:
        kind(given)
    assert str(caught.value).startswith(f"target is {given!r}: {words}")


@KINDS
def test_the_largest_answer_is_a_size_that_grpc_takes(kind):
    for size in (0, -5, 2**31, 1 << 40):
        with pytest.raises(ValueError) as caught:
            kind("localhost", max_answer_bytes=size)
        assert str(caught.value) == (
            f"max_answer_bytes is {size}; expected 1 to 2147483647, or -1 for "
            "no limit")
    for size in (-1, 1, 2**31 - 1):
        kind("localhost", max_answer_bytes=size)


def test_a_target_is_a_str():
    with pytest.raises(TypeError, match="target is an int; expected a str"):
        encoderd.Client(8400)


@BOTH
def test_the_environment_names_the_target(fake, work, monkeypatch):
    monkeypatch.setenv("ENCODERD_TARGET", fake.target)
    assert work(None).shape == (WIDTH,)
    monkeypatch.setenv("ENCODERD_TARGET", "localhost:99999")
    with pytest.raises(ValueError, match="ENCODERD_TARGET is 'localhost:99999"):
        work(None)
    assert work(fake.target).shape == (WIDTH,)  # an argument wins


def test_a_script_ends_with_one_plain_sentence(gone):
    done = subprocess.run(
        [sys.executable, "-c", "import encoderd, sys\n"
         "encoderd.Client(sys.argv[1]).encode('one')", gone],
        capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    assert lines[-1] == (
        "encoderd.errors.UnavailableError: UNAVAILABLE: no server is listening "
        f"at {gone}; {START}")
    assert done.stderr.count("Traceback") == 1
    assert "_calls_in_flight" not in done.stderr
