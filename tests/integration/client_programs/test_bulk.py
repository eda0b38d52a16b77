"""encoderctl embed into an .npy, interrupted in the middle and resumed."""

import fcntl
import random
import re
import resource
import signal
import subprocess
import sys
import termios
import time

import numpy as np
import pytest
from conftest import PROGRAMS, encoderctl, wait_while_it_runs

TEXTS = 3000
BATCH = 10
IN_FLIGHT = 8
WINDOW = BATCH * IN_FLIGHT
NPY_HEADER = 128


def arguments(texts, out):
    return [f"--input={texts}", f"--output={out}", f"--batch_size={BATCH}",
            f"--in_flight={IN_FLIGHT}"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM,
                                    signal.SIGKILL])
def test_an_interrupted_run_is_resumed(own_fake, tmp_path, number):
    texts = tmp_path / "texts.txt"
    # Each 100th text makes its request take 200 ms.
    texts.write_text("".join(
        f"{'~' if i % 100 == 0 else ''}text {i}\n" for i in range(TEXTS)))
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    fast = tmp_path / "fast.txt"
    fast.write_text(texts.read_text())
    assert encoderctl(own_fake.target, "embed",
                      *arguments(fast, whole)).returncode == 0
    seen = own_fake.texts_seen()
    assert seen == TEXTS

    marks = tmp_path / "out.npy.resume"
    with subprocess.Popen(
            [PROGRAMS / "encoderctl", "embed", f"--target={own_fake.target}",
             *arguments(texts, out)], stderr=subprocess.PIPE, text=True) as ctl:
        wait_while_it_runs(ctl, lambda: rows_in(marks) > 600)
        ctl.send_signal(number)
        _, errors = ctl.communicate(timeout=60)
    if number == signal.SIGKILL:
        assert ctl.returncode == -number
    else:
        assert ctl.returncode == 128 + number
        assert "; to resume, repeat the command" in errors
    rows = np.load(out)  # valid, though not whole
    assert 600 <= len(rows) < TEXTS
    np.testing.assert_array_equal(rows, np.load(whole)[:len(rows)])

    finished = rows_in(marks) - 2
    done = encoderctl(own_fake.target, "embed", *arguments(texts, out))
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        f"encoderctl embed: Resuming: {finished} texts already done.\n")
    assert out.read_bytes() == whole.read_bytes()
    assert not marks.exists()
    assert own_fake.texts_seen() - seen <= TEXTS + WINDOW


def test_a_run_that_is_killed_again_and_again_comes_to_its_end(own_fake,
                                                                tmp_path):
    texts = tmp_path / "texts.txt"
    # Each 100th text makes its request take 200 ms: no run is over at once.
    texts.write_text("".join(
        f"{'~' if i % 100 == 0 else ''}text {i}\n" for i in range(TEXTS)))
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    assert encoderctl(own_fake.target, "embed",
                      *arguments(texts, whole)).returncode == 0
    marks = tmp_path / "out.npy.resume"
    rng = random.Random(15)
    kills = 0
    for _ in range(60):
        at = rows_in(marks) + rng.randrange(2, 300)
        with subprocess.Popen(
                [PROGRAMS / "encoderctl", "embed",
                 f"--target={own_fake.target}", *arguments(texts, out)],
                stderr=subprocess.PIPE, text=True) as ctl:
            while ctl.poll() is None and rows_in(marks) < at:
                time.sleep(0.0005)
            ctl.kill()
            _, errors = ctl.communicate(timeout=60)
        if ctl.returncode == 0:
            break
        assert ctl.returncode == -signal.SIGKILL, errors
        kills += 1
        rows = np.load(out)
        np.testing.assert_array_equal(rows, np.load(whole)[:len(rows)])
    else:
        pytest.fail("60 runs and no end")
    assert kills > 0
    assert out.read_bytes() == whole.read_bytes()
    assert not marks.exists()


def rows_in(npy):
    """What the head of an .npy counts; 0: none yet."""
    try:
        head = npy.read_bytes()[:NPY_HEADER].decode("latin-1")
    except FileNotFoundError:
        return 0
    found = re.search(r"'shape': \((\d+),", head)
    return int(found.group(1)) if found else 0


def unread(pipe):
    """Bytes that nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)),
                          sys.byteorder)


@pytest.mark.parametrize("rest", ["", "half a line", "x" * (1 << 20)],
                         ids=["silence", "half a line", "a long line"])
def test_a_signal_ends_a_run_that_waits_for_its_input(own_fake, tmp_path, rest):
    out = tmp_path / "out.npy"
    with subprocess.Popen(
            [PROGRAMS / "encoderctl", "embed", f"--target={own_fake.target}",
             f"--output={out}", "--batch_size=1", "--in_flight=1"],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ctl:
        ctl.stdin.write("one\n")
        ctl.stdin.flush()
        wait_while_it_runs(ctl, lambda: out.exists()
                   and out.stat().st_size > NPY_HEADER)
        ctl.stdin.write(rest)
        ctl.stdin.flush()
        wait_while_it_runs(ctl, lambda: unread(ctl.stdin) == 0)
        ctl.send_signal(signal.SIGINT)  # standard input stays open and silent
        try:
            assert ctl.wait(timeout=60) == 128 + signal.SIGINT
        finally:
            ctl.kill()
        assert "stopped after 1 text;" in ctl.stderr.read()
    assert np.load(out).shape == (1, 6)


def test_states_are_there_whenever_the_program_dies(own_fake, tmp_path):
    out = tmp_path / "states.npy"
    with subprocess.Popen(
            [PROGRAMS / "encoderctl", "encode", f"--target={own_fake.target}",
             "--format=npy", f"--output={out}", "--batch_size=1",
             "--in_flight=1"], stdin=subprocess.PIPE) as ctl:
        ctl.stdin.write(b"one\ntwo words\n")
        ctl.stdin.flush()
        wait_while_it_runs(ctl, lambda: out.exists()
                   and b"(7, 6)" in out.read_bytes()[:NPY_HEADER])
        ctl.send_signal(signal.SIGINT)
        assert ctl.wait(timeout=60) == 128 + signal.SIGINT
    assert np.load(out).shape == (7, 6)


def test_a_file_that_may_not_grow_is_an_error_and_resumed(own_fake, tmp_path):
    texts, out = tmp_path / "texts.txt", tmp_path / "out.npy"
    texts.write_text("".join(f"text {i}\n" for i in range(TEXTS)))

    # Between the sizes of out.npy with 167 answers and of its marks with 166.
    most_bytes = 40100

    def limit():
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most))

    done = encoderctl(own_fake.target, "embed", *arguments(texts, out),
                      preexec_fn=limit)
    assert done.returncode == 1, done.stderr
    assert f"cannot write to {out}: File too large" in done.stderr
    assert "; to resume, repeat the command" in done.stderr
    rows = np.load(out)
    assert 0 < len(rows) <= (most_bytes - NPY_HEADER) // 24
    done = encoderctl(own_fake.target, "embed", *arguments(texts, out))
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        f"encoderctl embed: Resuming: {len(rows)} texts already done.\n")
    whole = np.load(out)
    assert whole.shape == (TEXTS, 6)
    np.testing.assert_array_equal(whole[:len(rows)], rows)


@pytest.mark.parametrize("encoding", ["float32", "int8"])
def test_a_bad_text_is_corrected_and_the_run_resumed(server, tmp_path,
                                                     encoding):
    lines = [f"sentence {i}\n" for i in range(300)]
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(lines))
    whole, out = tmp_path / "whole.npy", tmp_path / "out.npy"
    done = encoderctl(server, "embed", f"--encoding={encoding}",
                      *arguments(texts, whole))
    assert done.returncode == 0, done.stderr
    texts.write_text("".join(lines[:207] + ["word " * 999 + "\n"]
                             + lines[208:]))
    done = encoderctl(server, "embed", f"--encoding={encoding}",
                      *arguments(texts, out))
    assert done.returncode == 1
    assert f"{texts}:208: INVALID_ARGUMENT (INPUT_TOO_LONG)" in done.stderr
    assert "207 texts are done; to resume, correct this" in done.stderr
    texts.write_text("".join(lines))
    done = encoderctl(server, "embed", f"--encoding={encoding}",
                      *arguments(texts, out))
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "encoderctl embed: Resuming: 207 texts already done.\n")
    assert out.read_bytes() == whole.read_bytes()
    if encoding == "int8":
        assert ((tmp_path / "out.npy.scales.npy").read_bytes()
                == (tmp_path / "whole.npy.scales.npy").read_bytes())


def test_a_real_server_gives_in_bulk_what_it_gives_one_by_one(server, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(f"sentence {i} {'word ' * (i % 30)}\n"
                             for i in range(300)))
    out = tmp_path / "out.npy"
    done = encoderctl(server, "embed", f"--input={texts}", f"--output={out}")
    assert done.returncode == 0, done.stderr
    rows = np.load(out)
    one = encoderctl(server, "embed", f"--input={texts}").stdout
    np.testing.assert_array_equal(
        rows, np.array([line.split() for line in one.splitlines()],
                       np.float32))
    for encoding, kind, columns in (
            ("float16", np.float16, 384), ("int8", np.int8, 384),
            ("uint8", np.uint8, 384), ("binary", np.int8, 48),
            ("ubinary", np.uint8, 48)):
        done = encoderctl(server, "embed", f"--input={texts}",
                          f"--output={out}", f"--encoding={encoding}")
        assert done.returncode == 0, done.stderr
        packed = np.load(out)
        assert packed.dtype == kind and packed.shape == (300, columns)
        if encoding == "ubinary":
            np.testing.assert_array_equal(packed, np.packbits(rows > 0, axis=1))
        if encoding in ("int8", "uint8"):  # as command-line.md has it
            scales = np.load(f"{out}.scales.npy")
            zero = -1 if encoding == "int8" else 127
            assert np.all(np.abs((packed.astype(np.float32) - zero) * scales
                                 - rows) <= scales * 0.501)
