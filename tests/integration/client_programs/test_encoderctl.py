"""encoderctl as a separate process, against the fake server."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import threading
import time

import numpy as np
import pytest
from conftest import PROGRAMS, encoderctl, run, serving, wait_while_it_runs
from python_service import Model, serve
from stream_service import PATIENCE

NPY_HEADER = 128  # bytes
PIPE_BYTES = 65536  # that a pipe holds


def test_standard_input_becomes_an_npy_that_numpy_reads(fake, tmp_path):
    out = tmp_path / "vectors.npy"
    done = encoderctl(fake.target, "embed", "--format=npy", f"--output={out}",
                      input="one\ntwo words\n")
    assert (done.returncode, done.stderr) == (0, "")
    matrix = np.load(out)
    assert matrix.dtype == np.float32
    assert matrix.shape == (2, 6)
    lines = encoderctl(fake.target, "embed", "one", "two words").stdout
    np.testing.assert_array_equal(
        np.array([line.split() for line in lines.splitlines()], np.float32),
        matrix)


def test_nobody_listening_is_exit_code_1_with_words(gone):
    done = encoderctl(gone, "health")
    assert done.returncode == 1
    assert done.stderr == (
        f"encoderctl health: UNAVAILABLE: no server is listening at {gone}; "
        "start encoderd there, or correct the target (--target or "
        "ENCODERD_TARGET)\n")


def test_a_closed_descriptor_fails_at_once(fake):
    def run_without(end, *arguments):
        words = [PROGRAMS / "encoderctl", *arguments,
                 f"--target={fake.target}"]
        return subprocess.run(
            ["bash", "-c", f'"$@" {end}', "bash", *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60, check=False)

    done = run_without("<&-", "embed", "--input=-")
    assert done.returncode == 1
    assert done.stderr == ("encoderctl embed: DATA_LOSS: cannot read standard "
                           "input: it is closed\n")
    assert run_without("<&-", "embed", "one").returncode == 0
    done = run_without(">&-", "embed", "one")
    assert done.returncode == 1
    assert "cannot write to standard output" in done.stderr
    done = run_without("2>&-", "embed", "one")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1


def test_a_reader_that_goes_away_ends_it_in_silence(fake):
    texts = "one two three\n" * 20000
    for form in ("text", "jsonl"):
        ctl = subprocess.Popen(
            [PROGRAMS / "encoderctl", "embed", f"--target={fake.target}",
             f"--format={form}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        ctl.stdout.close()
        try:
            ctl.stdin.write(texts)
            ctl.stdin.close()
        except BrokenPipeError:
            pass  # it did not wait for the rest
        assert ctl.wait(timeout=60) == 128 + signal.SIGPIPE
        assert ctl.stderr.read() == ""
        ctl.stderr.close()


@pytest.mark.parametrize("form", ["text", "jsonl", "npy"])
@pytest.mark.parametrize("command", ["embed", "encode"])
def test_ctrl_c_ends_every_format_alike(own_fake, tmp_path, command, form):
    out = tmp_path / f"out.{form}"
    with subprocess.Popen(
            [PROGRAMS / "encoderctl", command, f"--target={own_fake.target}",
             f"--format={form}", f"--output={out}", "--batch_size=1",
             "--in_flight=1"],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ctl:
        ctl.stdin.write("one\n" * 1000)  # more than a buffer of output
        ctl.stdin.flush()
        wait_while_it_runs(
            ctl, lambda: out.exists() and out.stat().st_size > NPY_HEADER)
        ctl.send_signal(signal.SIGINT)  # it waits for the next line
        try:
            assert ctl.wait(timeout=60) == 128 + signal.SIGINT
        finally:
            ctl.kill()
        errors = ctl.stderr.read()
    assert errors.startswith(f"encoderctl {command}: stopped after ")
    if form == "npy":
        assert len(np.load(out)) > 0
    else:
        assert out.read_text().endswith("\n")


def unread(pipe):
    """Bytes in it."""
    return int.from_bytes(
        fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_term_does_not_wait_for_who_reads_nothing(own_fake, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("one\n" * 20000)  # more than a pipe holds
    with subprocess.Popen(
            [PROGRAMS / "encoderctl", "embed", f"--target={own_fake.target}",
             f"--input={texts}"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ctl:
        wait_while_it_runs(ctl, lambda: unread(ctl.stdout) > PIPE_BYTES // 2)
        ctl.send_signal(signal.SIGTERM)
        try:
            assert ctl.wait(timeout=60) == 128 + signal.SIGTERM
        finally:
            ctl.kill()
        errors = ctl.stderr.read().decode()
        lines = ctl.stdout.read().count(b"\n")
    assert errors.startswith(f"encoderctl embed: stopped after {lines} texts")


def test_term_leaves_a_slow_reader_what_is_finished(own_fake, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("one\n" * 200000)
    with subprocess.Popen(
            [PROGRAMS / "encoderctl", "embed", f"--target={own_fake.target}",
             f"--input={texts}"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as ctl:
        wait_while_it_runs(ctl, lambda: unread(ctl.stdout) > PIPE_BYTES // 2)
        ctl.send_signal(signal.SIGTERM)
        output = b""
        while part := ctl.stdout.read(4096):
            output += part
            time.sleep(0.004)
        assert ctl.wait(timeout=60) == 128 + signal.SIGTERM
        errors = ctl.stderr.read().decode()
    lines = output.count(b"\n")
    assert output.endswith(b"\n")
    assert errors == f"encoderctl embed: stopped after {lines} texts\n"


def open_terminal():
    """The ends of a pseudo-terminal: a person's and a program's."""
    try:
        return pty.openpty()
    except OSError as error:
        pytest.skip(f"this system has no pseudo-terminals: {error}")


def has_room(terminal, seconds=0):
    return bool(select.select([], [terminal], [], seconds)[1])


def read_to_end(leader):
    """What is left, once nobody holds the other end: Linux says so by an
    error."""
    output = b""
    try:
        while piece := os.read(leader, 1 << 16):
            output += piece
    except OSError:
        pass
    return output


@pytest.mark.parametrize("errors_too", [True, False])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_does_not_wait_for_a_terminal_that_nobody_reads(
        own_fake, tmp_path, number, errors_too):
    texts = tmp_path / "texts.txt"
    texts.write_text("one\n" * 20000)  # more than a terminal holds
    leader, follower = open_terminal()
    try:
        with subprocess.Popen(
                [PROGRAMS / "encoderctl", "embed",
                 f"--target={own_fake.target}", f"--input={texts}"],
                stdout=follower,
                stderr=follower if errors_too else subprocess.PIPE) as ctl:
            try:
                wait_while_it_runs(ctl, lambda: not has_room(follower))
                ctl.send_signal(number)
                assert ctl.wait(timeout=60) == 128 + number
            finally:
                ctl.kill()
            errors = b"" if errors_too else ctl.stderr.read()
    finally:
        os.close(follower)
        lines = read_to_end(leader).count(b"\n")
        os.close(leader)
    if not errors_too:
        assert errors.decode().startswith(
            f"encoderctl embed: stopped after {lines} texts")


def test_a_signal_does_not_wait_to_tell_a_terminal_that_nobody_reads(own_fake):
    leader, follower = open_terminal()
    # Another open file: where this one does not block, the program's may.
    filler = os.open(os.ttyname(follower),
                     os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        with subprocess.Popen(
                [PROGRAMS / "encoderctl", "embed",
                 f"--target={own_fake.target}", "--progress=never"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=follower) as ctl:
            try:
                ctl.stdin.write(b"one\n")
                ctl.stdin.flush()
                assert ctl.stdout.readline()  # it works, and waits for texts
                while has_room(filler, seconds=0.2):
                    os.write(filler, b"x" * 1024)
                ctl.send_signal(signal.SIGTERM)
                assert ctl.wait(timeout=60) == 128 + signal.SIGTERM
            finally:
                ctl.kill()
    finally:
        os.close(filler)
        os.close(follower)
        os.close(leader)


class Silent(Model):
    """Answers no call of Embed."""

    def __init__(self):
        super().__init__()
        self.asked = threading.Event()

    def Embed(self, request, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        self.asked.set()
        ended.wait(PATIENCE)


def test_ctrl_c_does_not_wait_for_a_server_that_never_answers():
    with serve(Silent()) as service, subprocess.Popen(
            [PROGRAMS / "encoderctl", "embed", f"--target={service.target}",
             "--timeout=1h", "one"],
            stderr=subprocess.PIPE, text=True) as ctl:
        try:
            wait_while_it_runs(ctl, service.asked.is_set)
            ctl.send_signal(signal.SIGINT)
            assert ctl.wait(timeout=60) == 128 + signal.SIGINT
        finally:
            ctl.kill()


def complete(script, *words):
    """What bash offers for the last of `words`. The script is sourced inside a
    function, as bash-completion does."""
    quoted = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(
        ["bash", "--norc", "-c",
         f"load() {{ source /dev/stdin; }}\nload <<'END_OF_SCRIPT'\n{script}\n"
         f"END_OF_SCRIPT\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}\n"
         "_encoderctl; printf '%s\\n' \"${COMPREPLY[@]}\""],
        capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_flags_and_values():
    script = run("encoderctl", "completion", "bash").stdout
    assert complete(script, "encoderctl", "em") == ["embed"]
    assert complete(script, "encoderctl", "help", "to") == ["tokenize"]
    assert complete(script, "encoderctl", "embed", "--ou") == ["--output"]
    assert complete(script, "encoderctl", "embed", "--format", "=") == [
        "auto", "text", "jsonl", "npy"]
    assert complete(script, "encoderctl", "embed", "--format", "=", "j") == [
        "jsonl"]
    assert complete(script, "encoderctl", "embed", "--truncate", "e") == ["end"]
    assert complete(script, "encoderctl", "completion", "") == ["bash"]
    assert complete(script, "encoderctl", "embed", "--batch-s") == [
        "--batch_size"]
    assert complete(script, "encoderctl", "embed", "--on-error", "=", "s") == [
        "skip"]
    # No values of encoderctl: bash's names of files.
    assert complete(script, "encoderctl", "embed", "--input", "=", "x") == []
    assert "--layer" in complete(script, "encoderctl", "encode", "--")
    assert "--layer" not in complete(script, "encoderctl", "embed", "--")


def test_the_port_of_metrics_is_named_as_such(model_folder):
    with serving(model_folder) as server:
        done = encoderctl(f"127.0.0.1:{server.http}", "models")
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"encoderctl models: UNAVAILABLE: 127.0.0.1:{server.http} answers "
        "HTTP, not gRPC: encoderd's port for gRPC is 8400")


def test_a_terminal_shows_progress(fake):
    leader, follower = open_terminal()
    shown = []

    def watch():
        # Until nobody holds the other end: Linux says so by an error.
        try:
            while piece := os.read(leader, 1 << 16):
                shown.append(piece.decode())
        except OSError:
            pass

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with subprocess.Popen(
                [PROGRAMS / "encoderctl", "embed", f"--target={fake.target}",
                 "--batch_size=1"], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=follower) as ctl:
            # Not before a while: work that ends soon shows nothing.
            def one_more():
                ctl.stdin.write(b"one two three\n")
                ctl.stdin.flush()
                return "texts/s" in "".join(shown)

            wait_while_it_runs(ctl, one_more)
            ctl.stdin.close()
            assert ctl.wait(timeout=60) == 0
    finally:
        os.close(follower)
        watcher.join()
        os.close(leader)


def test_a_big_file_does_not_need_big_memory(fake, tmp_path):
    texts = tmp_path / "texts.txt"
    line = "one two three " + "x" * 4000 + "\n"
    with texts.open("w") as file:
        for _ in range(500):
            file.write(line * 100)
    assert texts.stat().st_size > 190 << 20
    sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=8"
    with subprocess.Popen(
            [PROGRAMS / "encoderctl", "embed", f"--target={fake.target}",
             f"--input={texts}", "--format=npy",
             f"--output={tmp_path}/vectors.npy"],
            env=dict(os.environ, ASAN_OPTIONS=sanitizer)) as ctl:
        _, status, usage = os.wait4(ctl.pid, 0)
        ctl.returncode = os.waitstatus_to_exitcode(status)
    texts.unlink()
    assert ctl.returncode == 0
    assert np.load(tmp_path / "vectors.npy").shape == (50000, 6)
    assert usage.ru_maxrss < 150 << 10  # KiB
