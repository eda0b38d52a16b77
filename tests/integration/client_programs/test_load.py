"""h2load and grpcurl, clients that share no code with this project's."""

import json
import pathlib
import re
import subprocess
import sys
import urllib.request

import pytest
from conftest import serving
from encoderd.v1 import encoder_pb2

GRPCURL = pathlib.Path(sys.executable).parent / "grpcurl"
EMBED = "/encoderd.v1.Encoder/Embed"


@pytest.fixture(scope="module")
def addresses(model_folder):
    """gRPC's and HTTP's address of an encoderd that nobody else calls."""
    with serving(model_folder) as server:
        yield server.address, f"127.0.0.1:{server.http}"


def calls(http):
    """Code -> how many calls of Embed ended so."""
    with urllib.request.urlopen(f"http://{http}/metrics", timeout=30) as page:
        text = page.read().decode()
    found = {}
    for labels, value in re.findall(
            r"^encoderd_requests_total\{(.*)\} (\d+)$", text, re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if labels["method"] == "Embed":
            code = labels["code"]
            found[code] = found.get(code, 0) + int(value)
    return {code: count for code, count in found.items() if count}


def h2load(grpc, message, file, count=400):
    """Sends one request many times, 32 of them at once over 4 connections."""
    file.write_bytes(b"\0" + len(message).to_bytes(4, "big") + message)
    done = subprocess.run(
        ["h2load", f"--requests={count}", "--clients=4",
         "--max-concurrent-streams=8", f"--data={file}",
         "--header=content-type: application/grpc", "--header=te: trailers",
         f"http://{grpc}{EMBED}"],
        timeout=300, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def request(*texts):
    return encoder_pb2.EmbedRequest(
        inputs=[encoder_pb2.Input(text=text) for text in texts])


def test_every_request_of_h2load_is_answered_and_counted(addresses, tmp_path):
    grpc, http = addresses
    before = calls(http)
    said = h2load(grpc, request("A man eats.").SerializeToString(),
                  tmp_path / "short")
    assert "400 succeeded, 0 failed, 0 errored, 0 timeout" in said
    after = calls(http)
    assert after.pop("OK") == before.pop("OK", 0) + 400
    assert after == before


def test_h2load_sees_200_where_a_call_is_refused(addresses, tmp_path):
    """gRPC's code is in the trailers; /metrics tells what it was."""
    grpc, http = addresses
    before = calls(http)
    said = h2load(grpc, request("word " * 1000).SerializeToString(),
                  tmp_path / "long")
    assert "status codes: 400 2xx" in said
    after = calls(http)
    assert after.pop("INVALID_ARGUMENT") == before.pop(
        "INVALID_ARGUMENT", 0) + 400
    assert after == before


def grpcurl(*arguments, data=""):
    return subprocess.run([GRPCURL, "-plaintext", *arguments], input=data,
                          timeout=300, capture_output=True, text=True,
                          check=False)


def test_grpcurl_learns_the_service_and_embeds(addresses):
    grpc, _ = addresses
    assert grpcurl(grpc, "list", "encoderd.v1.Encoder").stdout.split() == [
        f"encoderd.v1.Encoder.{method.name}" for method in sorted(
            encoder_pb2.DESCRIPTOR.services_by_name["Encoder"].methods,
            key=lambda method: method.name)]
    done = grpcurl("-d", '{"inputs": [{"text": "A man eats."}]}', grpc,
                   EMBED[1:])
    assert done.returncode == 0, done.stderr
    [embedding] = json.loads(done.stdout)["embeddings"]
    assert len(embedding["floats"]["values"]) == 384
    assert embedding["token_count"] == 6


def test_grpcurl_shows_reason_and_numbers_of_an_error(addresses):
    grpc, _ = addresses
    long = {"inputs": [{"text": "word " * 1000}]}
    done = grpcurl("-d", "@", grpc, EMBED[1:], data=json.dumps(long))
    assert done.returncode != 0
    assert "Code: InvalidArgument" in done.stderr
    [info] = re.findall(r'^ *1\)\s+(\{.*ErrorInfo.*\})$', done.stderr,
                        re.MULTILINE)
    assert json.loads(info) == {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "INPUT_TOO_LONG", "domain": "encoderd",
        "metadata": {"input_index": "0", "max_tokens": "256",
                     "token_count": "1002"}}


def test_grpcurl_takes_large_answers_when_told_so(addresses):
    """Token states of 12 texts of 250 words: 4.4 MiB."""
    grpc, _ = addresses
    request_json = json.dumps({"inputs": [{"text": "word " * 250}] * 12})
    method = "encoderd.v1.Encoder/Encode"
    refused = grpcurl("-d", "@", grpc, method, data=request_json)
    assert "larger than max" in refused.stderr
    done = grpcurl("-max-msg-sz", "16777216", "-d", "@", grpc, method,
                   data=request_json)
    assert done.returncode == 0, done.stderr
    assert [state["rows"] for state in json.loads(done.stdout)["states"]] == [
        252] * 12
