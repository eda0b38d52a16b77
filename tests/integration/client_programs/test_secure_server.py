"""A real encoderd with TLS, clients' certificates and tokens, asked by the
Python client and encoderctl."""

import hashlib
import os
import pathlib
import ssl
import subprocess
import sys
import urllib.request

import encoderd
import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support"))
from server_process import Server  # noqa: E402  after the path

PROGRAMS = pathlib.Path(os.environ["ENCODERD_TEST_PROGRAMS"])
TOKEN = "a-token-of-the-tests"


@pytest.fixture(scope="module")
def secured(model_folder, certificates, tmp_path_factory):
    """A server that asks for both a certificate and a token."""
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text(f"test {hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
    with Server(PROGRAMS / "encoderd", f"minilm={model_folder}",
                f"--tls_certificate_file={certificates}/server.pem",
                f"--tls_key_file={certificates}/server.key",
                f"--tls_client_ca_file={certificates}/ca.pem",
                f"--bearer_token_file={tokens}") as server:
        yield server
        assert server.stop() == 0, server.log()
        assert TOKEN not in server.log()


@pytest.fixture
def shown(certificates):
    """What a client shows."""
    return {"ca_file": f"{certificates}/ca.pem",
            "certificate_file": f"{certificates}/client.pem",
            "key_file": f"{certificates}/client.key", "token": TOKEN}


def encoderctl(*arguments, **variables):
    return subprocess.run(
        [PROGRAMS / "encoderctl", *arguments], capture_output=True, text=True,
        timeout=120, check=False, env=dict(os.environ, **variables))


def test_vectors_have_the_bits_of_a_plain_server(secured, server, shown):
    texts = ["A man is eating food.", "Bits do not depend on the way."]
    with encoderd.Client(secured.address, **shown) as secure:
        with encoderd.Client(server) as plain:
            np.testing.assert_array_equal(secure.encode(texts),
                                          plain.encode(texts))
        assert secure.health()
        assert sum(1 for _ in secure.embed_stream(iter(texts * 50))) == 100


def test_each_part_is_needed(secured, shown, certificates):
    def call(**changed):
        options = {key: value for key, value in {**shown, **changed}.items()
                   if value is not None}
        with encoderd.Client(secured.address, timeout=20, **options) as client:
            return client.encode(["x"])

    with pytest.raises(encoderd.UnauthenticatedError) as missing:
        call(token=None)
    assert missing.value.reason == "BEARER_TOKEN_MISSING"
    with pytest.raises(encoderd.UnauthenticatedError) as unknown:
        call(token="another")
    assert unknown.value.reason == "BEARER_TOKEN_UNKNOWN"
    with pytest.raises(encoderd.UnavailableError, match="certificate_file"):
        call(certificate_file=None, key_file=None)
    with pytest.raises(encoderd.UnavailableError, match="ca_file"):
        call(ca_file=f"{certificates}/foreign_ca.pem")


def test_encoderctl_by_flags_and_by_variables(secured, shown, tmp_path):
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN + "\n")
    by_flags = encoderctl(
        "embed", f"--target={secured.address}", f"--ca_file={shown['ca_file']}",
        f"--certificate_file={shown['certificate_file']}",
        f"--key_file={shown['key_file']}", f"--token_file={token_file}",
        "hello")
    assert by_flags.returncode == 0, by_flags.stderr
    variables = {f"ENCODERD_{name.upper()}": value
                 for name, value in shown.items()}
    by_variables = encoderctl("embed", "hello", ENCODERD_TARGET=secured.address,
                              **variables)
    assert by_variables.returncode == 0, by_variables.stderr
    assert by_variables.stdout == by_flags.stdout
    health = encoderctl("health", ENCODERD_TARGET=secured.address, **variables)
    assert health.returncode == 0, health.stderr
    refused = encoderctl("embed", "hello", ENCODERD_TARGET=secured.address,
                         **{**variables, "ENCODERD_TOKEN": "another"})
    assert refused.returncode != 0
    assert "BEARER_TOKEN_UNKNOWN" in refused.stderr
    assert "another" not in refused.stderr


def test_http_has_tls_and_asks_for_nothing(secured, shown):
    context = ssl.create_default_context(cafile=shown["ca_file"])
    with urllib.request.urlopen(f"https://127.0.0.1:{secured.http}/metrics",
                                context=context, timeout=30) as answer:
        text = answer.read().decode()
    assert ("\nencoderd_tls_certificate_expiry_timestamp_seconds"
            '{certificate="server"} 4070908800\n') in text
