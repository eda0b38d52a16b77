"""What is wrong with TLS or token options is said when the client is made,
by both clients alike; nothing is dialled."""

import asyncio

import encoderd
import grpc
import pytest
from encoderd._channel import _Method
from encoderd._target import is_loopback

FAR = "encoder.example:8400"
TOKEN = "a-token-of-the-tests"


def blocking(*arguments, **options):
    client = encoderd.Client(*arguments, **options)
    client.close()
    return client


def awaited(*arguments, **options):
    async def main():
        client = encoderd.AsyncClient(*arguments, **options)
        await client.close()
        return client
    return asyncio.run(main())


BOTH = pytest.mark.parametrize("make", [blocking, awaited])
pytestmark = BOTH


def refusal(make, *arguments, **options):
    """The words of a ValueError; the token is not among them."""
    with pytest.raises(ValueError) as caught:
        make(*arguments, **options)
    assert TOKEN not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("option", ["ca_file", "certificate_file", "key_file",
                                    "token_file"])
def test_a_file_that_cannot_be_read_is_named_with_its_option(
        make, certificates, tmp_path, option):
    options = {"certificate_file": certificates / "client.pem",
               "key_file": certificates / "client.key"}
    if option == "token_file":
        options = {}
    for path, fault in ((tmp_path / "none", "No such file or directory"),
                        (tmp_path, "Is a directory")):
        options[option] = path
        assert refusal(make, **options) == (
            f"{option} {path} cannot be read: {fault}")


def test_a_file_without_pem_is_named(make, certificates, tmp_path):
    text = tmp_path / "text"
    text.write_text("no certificate\n")
    assert refusal(make, ca_file=text) == (
        f"ca_file {text} holds no certificate in PEM")
    assert refusal(make, certificate_file=text,
                   key_file=certificates / "client.key") == (
        f"certificate_file {text} holds no certificate in PEM")
    assert refusal(make, certificate_file=certificates / "client.pem",
                   key_file=certificates / "client.pem") == (
        f"key_file {certificates / 'client.pem'} holds no private key in PEM")


def test_a_damaged_certificate_is_named(make, certificates, tmp_path):
    good = (certificates / "ca.pem").read_text().splitlines()
    bad = tmp_path / "bad.pem"
    bad.write_text("\n".join([good[0], "AAAA", good[-1], ""]))
    assert refusal(make, ca_file=bad).startswith(
        f"ca_file {bad} holds a damaged certificate: ")
    assert f"certificate_file {bad} are no usable pair" in refusal(
        make, certificate_file=bad, key_file=certificates / "client.key")


def test_half_a_pair_is_refused(make, certificates):
    certificate = certificates / "client.pem"
    assert refusal(make, certificate_file=certificate) == (
        f"certificate_file {certificate} is given without key_file; a client "
        "shows both or none")
    key = certificates / "client.key"
    assert refusal(make, key_file=key) == (
        f"key_file {key} is given without certificate_file; a client shows "
        "both or none")


def test_a_key_of_another_certificate_is_refused(make, certificates):
    certificate = certificates / "client.pem"
    key = certificates / "server.key"
    assert refusal(make, certificate_file=certificate, key_file=key) == (
        f"key_file {key} is not the key of certificate_file {certificate}")


def test_an_encrypted_key_is_refused(make, certificates, tmp_path):
    key = tmp_path / "encrypted.key"
    key.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    assert refusal(make, certificate_file=certificates / "client.pem",
                   key_file=key) == (
        f"key_file {key} is encrypted; a key without a passphrase is needed")


@pytest.mark.parametrize("text", ["", "\n", "  \t\n", f"\n{TOKEN}\n"])
def test_an_empty_token_is_refused(make, tmp_path, text):
    path = tmp_path / "token"
    path.write_text(text)
    assert refusal(make, token_file=path) == (
        f"token_file {path} holds no token: its first line is empty")
    assert refusal(make, token="") == (
        "token is empty; pass a token, or leave it out")


@pytest.mark.parametrize("token", [f"{TOKEN} b", f"{TOKEN}\n", f"{TOKEN}\x7f",
                                   f"{TOKEN}é", f" {TOKEN}"])
def test_a_token_that_no_header_can_carry_is_refused_unseen(
        make, tmp_path, token):
    words = ("has characters that no header can carry; a token is visible "
             "ASCII without blanks")
    assert refusal(make, token=token) == f"token {words}"
    if token == token.strip():
        path = tmp_path / "token"
        path.write_text(token, encoding="utf-8")
        assert refusal(make, token_file=path) == f"token_file {path} {words}"


def test_a_token_has_at_most_4096_bytes(make, tmp_path):
    path = tmp_path / "token"
    for end in ("", "\n", " \r\n", "\nmore\n"):
        path.write_text("x" * 4096 + end)
        assert sent(make(token_file=path)) == {
            "authorization": f"Bearer {'x' * 4096}"}
        path.write_text("x" * 4097 + end)
        assert refusal(make, token_file=path) == (
            f"token_file {path} has 4097 bytes; a token has at most 4096")
    assert sent(make(token="x" * 4096))
    assert refusal(make, token="x" * 4097) == (
        "token has 4097 bytes; a token has at most 4096")


def test_a_file_without_an_end_is_no_token(make):
    assert refusal(make, token_file="/dev/zero") == (
        "token_file /dev/zero has more than 4194304 bytes")


def test_contradictions_are_refused(make, certificates, tmp_path):
    ca = certificates / "ca.pem"
    assert refusal(make, tls=False, ca_file=ca) == (
        "tls is False, but ca_file is for TLS alone; drop one of them")
    assert refusal(make, tls=False,
                   certificate_file=certificates / "client.pem",
                   key_file=certificates / "client.key") == (
        "tls is False, but certificate_file is for TLS alone; drop one of "
        "them")
    assert refusal(make, token=TOKEN, token_file=tmp_path / "none") == (
        "both token and token_file are set; use one")
    assert "only applies with TLS" in refusal(make, server_name="localhost")
    credentials = grpc.ssl_channel_credentials()
    assert "ca_file and credentials" in refusal(
        make, credentials=credentials, ca_file=ca)
    assert "tls is False" in refusal(make, credentials=credentials, tls=False)


def test_values_of_the_wrong_type_are_type_errors(make):
    for options, words in (
            ({"tls": "false"}, "tls is a str; expected True, False or None"),
            ({"tls": 1}, "tls is an int; expected True, False or None"),
            ({"token": b"token"}, "token is bytes; expected a str"),
            ({"ca_file": b"path"}, "ca_file is bytes; expected a str"),
            ({"tls": True, "server_name": 5},
             "server_name is an int; expected a str")):
        with pytest.raises(TypeError) as caught:
            make(**options)
        assert str(caught.value) == words


def test_a_token_goes_to_no_other_machine_without_tls(
        make, certificates, tmp_path, monkeypatch):
    path = tmp_path / "token"
    path.write_text(TOKEN)
    words = f"would be sent unencrypted to {FAR}; use TLS (tls or ca_file)"
    assert refusal(make, FAR, token=TOKEN) == f"token {words}"
    assert refusal(make, FAR, token_file=path) == f"token_file {words}"
    assert refusal(make, FAR, token=TOKEN, tls=False) == f"token {words}"
    make(FAR, token=TOKEN, tls=True)
    make(FAR, token=TOKEN, ca_file=certificates / "ca.pem")
    # Whether a caller's own credentials encrypt, nobody can tell.
    assert refusal(make, token=TOKEN,
                   credentials=grpc.ssl_channel_credentials()).startswith(
        "credentials and a token are both given")
    monkeypatch.setenv("ENCODERD_TOKEN", TOKEN)
    client = make(FAR, credentials=grpc.ssl_channel_credentials())
    assert not client._methods.metadata
    assert refusal(make, FAR) == f"ENCODERD_TOKEN {words}"
    monkeypatch.setenv("ENCODERD_TLS", "1")
    make(FAR)


def test_the_token_is_in_no_representation(make):
    client = make(token=TOKEN)
    methods = client._methods
    for thing in (client, methods, _Method(None, methods)):
        assert TOKEN not in repr(thing)


def test_variables_are_named_where_they_are_wrong(
        make, tmp_path, monkeypatch):
    missing = tmp_path / "none"
    monkeypatch.setenv("ENCODERD_CA_FILE", str(missing))
    assert refusal(make) == (f"ENCODERD_CA_FILE {missing} cannot be read: No "
                             "such file or directory")
    monkeypatch.delenv("ENCODERD_CA_FILE")
    monkeypatch.setenv("ENCODERD_KEY_FILE", str(missing))
    assert refusal(make) == (
        f"ENCODERD_KEY_FILE {missing} is given without "
        "ENCODERD_CERTIFICATE_FILE; a client shows both or none")
    monkeypatch.delenv("ENCODERD_KEY_FILE")
    monkeypatch.setenv("ENCODERD_TOKEN", "a b")
    assert refusal(make).startswith("ENCODERD_TOKEN has characters")
    monkeypatch.setenv("ENCODERD_TOKEN_FILE", str(missing))
    assert refusal(make) == (
        "both ENCODERD_TOKEN and ENCODERD_TOKEN_FILE are set; use one")


def sent(client):
    """The metadata of its calls."""
    return dict(client._methods.metadata)


def test_an_option_wins_over_every_variable_of_the_token(
        make, tmp_path, monkeypatch):
    path = tmp_path / "token"
    path.write_text(f" \t{TOKEN}-of-a-file\r\nmore\n")
    monkeypatch.setenv("ENCODERD_TOKEN", "of-the-environment")
    assert sent(make()) == {"authorization": "Bearer of-the-environment"}
    monkeypatch.setenv("ENCODERD_TOKEN_FILE", str(tmp_path / "none"))
    assert sent(make(token=TOKEN)) == {"authorization": f"Bearer {TOKEN}"}
    assert sent(make(token_file=path)) == {
        "authorization": f"Bearer {TOKEN}-of-a-file"}
    assert sent(make(token_file="")) == {}
    monkeypatch.delenv("ENCODERD_TOKEN")
    monkeypatch.setenv("ENCODERD_TOKEN_FILE", str(path))
    assert sent(make()) == {"authorization": f"Bearer {TOKEN}-of-a-file"}


def encrypts(make, **options):
    """Whether such a client may send a token to another machine."""
    try:
        make(FAR, token=TOKEN, **options)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("value, wanted", [
    ("1", True), ("true", True), ("Yes", True), ("0", False),
    ("FALSE", False), ("no", False), ("", False)])
def test_the_variable_of_tls_is_a_default(make, monkeypatch, value, wanted):
    monkeypatch.setenv("ENCODERD_TLS", value)
    assert encrypts(make) is wanted
    assert encrypts(make, tls=True)
    assert not encrypts(make, tls=False)


def test_files_turn_tls_on_unless_something_turns_it_off(
        make, certificates, tmp_path, monkeypatch):
    ca = certificates / "ca.pem"
    monkeypatch.setenv("ENCODERD_TLS", "0")
    assert encrypts(make, ca_file=ca)
    monkeypatch.setenv("ENCODERD_CA_FILE", str(ca))
    assert not encrypts(make)
    monkeypatch.delenv("ENCODERD_TLS")
    assert encrypts(make)
    assert not encrypts(make, tls=False)
    assert not encrypts(make, ca_file="")
    monkeypatch.setenv("ENCODERD_CA_FILE", str(tmp_path / "none"))
    assert encrypts(make, ca_file=ca)
    make(FAR, credentials=grpc.ssl_channel_credentials())


def test_another_word_for_tls_is_refused(make, monkeypatch):
    monkeypatch.setenv("ENCODERD_TLS", "on")
    assert refusal(make) == ("ENCODERD_TLS is 'on'; expected 1 or 0, true or "
                             "false, yes or no")


@pytest.mark.parametrize("target, local", [
    ("localhost:8400", True), ("LocalHost", True), ("127.0.0.1:8400", True),
    ("127.9.9.9", True), ("[::1]:8400", True), ("::1", True),
    ("dns:localhost:8400", True), ("dns:///localhost:8400", True),
    ("ipv4:127.0.0.1:1,127.0.0.2:2", True), ("ipv6:[::1]:8400", True),
    ("unix:folder/socket", True), ("unix:///run/socket", True),
    ("unix-abstract:name", True),
    ("encoder.example:8400", False), ("localhost.example:8400", False),
    ("127.0.0.1.example", False), ("128.0.0.1:8400", False),
    ("0.0.0.0:8400", False), ("10.0.0.1:8400", False), ("[::]:8400", False),
    ("[::2]:8400", False), ("::1:8400", False),
    ("[::ffff:10.0.0.1]:8400", False), ("dns://10.0.0.1/localhost", False),
    ("ipv4:127.0.0.1:1,10.0.0.1:2", False), ("vsock:2:8400", False),
    ("xds:///localhost", False), ("xds:localhost:8400", False),
    (":8400", False), ("", False)])
def test_it_is_known_which_targets_are_on_this_machine(make, target, local):
    assert is_loopback(target) is local
