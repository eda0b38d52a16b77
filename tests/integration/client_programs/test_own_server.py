"""encoderd.Server: a server that Python starts. The program is
encoderd_fake_server; the wheel's own is tested by packages/."""

import asyncio
import copy
import ctypes
import errno
import gc
import os
import pathlib
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import types

import encoderd
import pytest
from conftest import PROGRAMS
from server_process import PATIENCE, eventually, get, running

PROGRAM = PROGRAMS / "encoderd_fake_server"
FAKE = {"fake": "load_ms:0"}


def own(model=None, **options):
    return encoderd.Server(model or FAKE, program=PROGRAM, **options)


def script(*parts, **options):
    text = "".join(textwrap.dedent(part) for part in parts)
    return subprocess.Popen(
        [sys.executable, "-c", text, str(PROGRAM)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


START = """
    import sys, time
    import encoderd
    server = encoderd.Server({"fake": "load_ms:0"}, program=sys.argv[1])
    print(server.pid, flush=True)
"""


def ends(pid):
    return eventually(lambda: not running(pid), f"the end of {pid}")


def test_it_serves_as_soon_as_it_is_there_and_leaves_by_term():
    with own() as server:
        assert server.exit_code is None
        with server.client() as client:
            assert client.encode(["a", "b"]).shape[0] == 2
            assert client.health() == "SERVING"
        assert "encoderd_" in get(f"http://{server.http_target}/metrics")
        assert re.fullmatch(r"127\.0\.0\.1:\d+", server.target)
    assert server.exit_code == 0
    assert "event=drained unanswered=0" in server.log
    assert server.stop() == 0


def test_two_servers_have_different_ports():
    with own() as one, own() as other:
        assert one.target != other.target


def test_asyncio_has_a_client_of_it_too():
    async def embed(server):
        async with server.async_client() as client:
            return await client.encode("a")

    with own() as server:
        assert asyncio.run(embed(server)).ndim == 1


def test_models_and_flags_reach_the_program():
    with own({"b": "load_ms:0", "a": "load_ms:0"}, max_len=33,
             drain_timeout="5s", reflection=False, http_listen="") as server:
        with server.client() as client:
            models = client.models()
        assert [model.name for model in models] == ["b", "a"]
        assert "drain_timeout=5s" in server.log
        assert "reflection=false" in server.log
        assert server.http_target == ""


@pytest.mark.parametrize("model, flags, why", [
    ({"fake": "nonsense:1"}, {}, "model 'fake': "),
    (FAKE, {"listen": "nowhere"}, "--listen=nowhere: must be host:port"),
    (FAKE, {"max_queue_tokens": 0}, "--max_queue_tokens=0: must be 1 to"),
])
def test_what_the_server_says_at_a_bad_start_is_the_error(model, flags, why):
    with pytest.raises(encoderd.ServerStartError) as caught:
        own(model, **flags)
    assert "encoderd did not start (exit code 1): " in str(caught.value)
    assert why in str(caught.value)
    assert caught.value.exit_code == 1
    assert why in caught.value.log


@pytest.mark.parametrize("flag, hint", [
    ("thread", "; did you mean --threads?"),
    ("max_length", "; did you mean --max_"), ("xyzzy_plugh", "; `encoderd")])
def test_a_flag_that_the_server_does_not_have_is_named(flag, hint):
    with pytest.raises(encoderd.ServerStartError) as caught:
        own(**{flag: 1})
    assert f"no flag --{flag}{hint}" in str(caught.value)
    assert str(caught.value).endswith("`encoderd --help` lists all flags")
    assert caught.value.exit_code == 1 and flag in caught.value.log


@pytest.mark.parametrize("model, words", [
    (None, "model is None; expected the folder of a model, or a dict from "
           "names to folders"),
    (5, "model is an int; expected the folder of a model, or a dict"),
    ({"one": None}, "model['one'] is None; expected the folder of a model")])
def test_a_model_that_is_no_folder_is_named(model, words):
    with pytest.raises(TypeError) as caught:
        encoderd.Server(model, program=PROGRAM)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("model, name", [
    ("someone/no-such-model", "model"),
    ({"one": "someone/no-such-model"}, "model['one']")])
def test_a_name_of_the_hub_is_told_from_a_folder(model, name):
    with pytest.raises(encoderd.ServerStartError) as caught:
        encoderd.Server(model, program=PROGRAM)
    assert str(caught.value) == (
        f"{name} is 'someone/no-such-model': no such folder. If it is a name "
        "on the Hugging Face Hub, download it first (pip install "
        "huggingface_hub) and pass the folder: "
        "huggingface_hub.snapshot_download('someone/no-such-model')")


def test_a_folder_of_the_home_may_have_its_short_form(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "program").symlink_to(PROGRAM)
    with pytest.raises(encoderd.ServerStartError) as caught:
        encoderd.Server({"one": "~/models/none"}, program="~/program")
    assert str(tmp_path / "models/none") in caught.value.log


def test_its_error_is_known_by_its_public_name():
    assert encoderd.ServerStartError.__module__ == "encoderd"
    error = encoderd.ServerStartError("why", 1, "log")
    twin = copy.copy(error)  # as it travels between processes
    assert str(twin) == "why" and twin.exit_code == 1 and twin.log == "log"


def test_words_of_the_server_come_without_the_quotes_of_its_log():
    with pytest.raises(encoderd.ServerStartError) as caught:
        own({"fäke \"x\"": "load_ms:0"})
    assert 'fäke "x"' in str(caught.value)


def test_a_start_that_takes_too_long_ends_the_server():
    before = children()
    with pytest.raises(encoderd.ServerStartError, match="within 0.1 s"):
        own({"fake": "load_ms:3600000"}, start_timeout=0.1)
    assert children() == before


def test_a_start_without_a_word_says_that_its_log_is_empty(tmp_path):
    program = tmp_path / "encoderd"
    program.write_text("#!/bin/sh\nexec sleep 3600\n")
    program.chmod(0o755)
    with pytest.raises(encoderd.ServerStartError) as caught:
        encoderd.Server(FAKE, program=program, start_timeout=0.1)
    assert str(caught.value) == (
        "encoderd did not serve within 0.1 s; give a longer start_timeout. "
        "Its log is empty.")


def children():
    """The children of this process that are there, zombies too."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())],
                           capture_output=True, text=True, check=False)
    return [pid for pid in found.stdout.split()
            if pathlib.Path(f"/proc/{pid}").exists()]


def test_no_program_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(encoderd.ServerStartError, match="deploy/wheel.sh"):
        encoderd.Server("model")
    with pytest.raises(encoderd.ServerStartError,
                       match="/no/such is not an executable"):
        encoderd.Server("model", program="/no/such")


def test_a_program_of_another_machine_is_named(tmp_path):
    program = tmp_path / "encoderd"
    program.write_bytes(b"\x7fELF of another machine")
    program.chmod(0o755)
    with pytest.raises(encoderd.ServerStartError, match=f"start {program}"):
        encoderd.Server("model", program=program)


@pytest.mark.parametrize("model, why", [
    ("a\0b", "null byte"),
    ("a\ud800b", "surrogates not allowed"),
])
def test_what_cannot_be_an_argument_is_refused(model, why):
    with pytest.raises(ValueError, match=f"cannot start {PROGRAM}: .*{why}"):
        own(model)


def test_a_thread_that_cannot_start_the_program_says_why(monkeypatch):
    def fail(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(encoderd.ServerStartError, match="no room"):
        own()


def test_a_program_that_would_outlive_its_parent_is_not_started(monkeypatch):
    def refuse(*_):
        ctypes.set_errno(errno.EPERM)
        return -1

    helper = pathlib.Path(encoderd.__file__).with_name("_exec_with_parent.py")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__:
                        types.SimpleNamespace(prctl=refuse))
    monkeypatch.setattr(sys, "argv", [str(helper), str(os.getppid()),
                                      "/no/such"])
    with pytest.raises(SystemExit, match="cannot start /no/such: "
                       r"prctl\(PR_SET_PDEATHSIG\): Operation not permitted"):
        runpy.run_path(str(helper), run_name="__main__")


def test_a_program_on_the_path_is_taken(monkeypatch, tmp_path):
    (tmp_path / "encoderd").symlink_to(PROGRAM)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with encoderd.Server(FAKE) as server, server.client() as client:
        assert client.health() == "SERVING"


def test_variables_of_another_server_do_not_reach_its_client(monkeypatch):
    monkeypatch.setenv("ENCODERD_TLS", "1")
    for name in ("CA_FILE", "TOKEN", "TOKEN_FILE"):
        monkeypatch.setenv(f"ENCODERD_{name}", "/no/such/file")
    with own() as server, server.client() as client:
        assert client.health() == "SERVING"


def test_its_client_takes_no_option_of_tls_where_the_server_has_none():
    with own() as server:
        for make in (server.client, server.async_client):
            with pytest.raises(ValueError, match="ca_file is for TLS, which "):
                make(ca_file="ca.pem")


def test_its_client_speaks_tls_where_the_server_does(certificates):
    with own(tls_certificate_file=certificates / "server.pem",
             tls_key_file=certificates / "server.key") as server:
        with server.client(ca_file=certificates / "ca.pem") as client:
            assert client.health() == "SERVING"


def test_it_shows_where_it_listens_and_is_not_copied():
    with own() as server:
        assert repr(server) == (f"<encoderd.Server at {server.target}, "
                                f"process {server.pid}>")
        with pytest.raises(TypeError, match="a Server cannot be copied or "
                                            "pickled: it is a process"):
            copy.copy(server)
    assert repr(server).endswith(", ended with 0>")


def test_a_server_that_nobody_holds_any_more_ends():
    server = own()
    pid = server.pid
    del server
    gc.collect()
    assert ends(pid)


@pytest.mark.parametrize("end, code", [
    ("", 0),
    ("sys.exit(3)", 3),
    ("raise ValueError", 1),
])
def test_it_ends_with_the_interpreter(end, code):
    process = script(START, end)
    pid = int(process.stdout.readline())
    process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert not running(pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_a_process_that_a_signal_ends(number):
    process = script(START, "time.sleep(3600)")
    pid = int(process.stdout.readline())
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert ends(pid)


def test_ctrl_c_reaches_the_program_that_started_it_alone():
    process = script("""
    import sys, time
    import encoderd
    server = encoderd.Server({"fake": "load_ms:0"}, program=sys.argv[1])
    try:
        print(server.pid, flush=True)
        time.sleep(3600)
    except KeyboardInterrupt:
        print(server.exit_code, server.client().health(), flush=True)
    """, start_new_session=True)
    pid = int(process.stdout.readline())
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert said == "None SERVING\n"
    assert not running(pid)


def test_it_outlives_the_thread_that_made_it_and_a_forked_process():
    process = script("""
    import os, sys, threading
    import encoderd
    made = []
    thread = threading.Thread(target=lambda: made.append(
        encoderd.Server({"fake": "load_ms:0"}, program=sys.argv[1])))
    thread.start()
    thread.join()
    child = os.fork()
    if child == 0:
        assert made[0].stop() is None
        made.clear()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(made[0].exit_code, made[0].client().health())
    """)
    said, errors = process.communicate(timeout=PATIENCE)
    assert said == "None SERVING\n", errors


def test_a_server_that_does_not_leave_is_killed():
    server = own(stop_timeout=0.2, drain_delay="1h")
    assert server.stop() == -signal.SIGKILL
