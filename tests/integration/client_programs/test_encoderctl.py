"""encoderctl as a process of its own, against the fake server."""

import os
import pty
import subprocess
import threading

import numpy as np
import pytest
from conftest import PROGRAMS, encoderctl


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
    assert done.stderr.startswith("encoderctl health: UNAVAILABLE: ")
    assert done.stderr.endswith(
        f"\nno answer from {gone}: does a server run there? "
        "--target=HOST:PORT names another\n")


def test_a_reader_that_goes_away_is_an_error_not_a_signal(fake):
    texts = "one two three\n" * 20000
    ctl = subprocess.Popen(
        [PROGRAMS / "encoderctl", "embed", f"--target={fake.target}"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True)
    ctl.stdout.close()
    try:
        ctl.stdin.write(texts)
        ctl.stdin.close()
    except BrokenPipeError:
        pass  # it did not wait for the rest
    assert ctl.wait(timeout=60) == 1
    assert "cannot write to standard output" in ctl.stderr.read()
    ctl.stderr.close()


def test_a_terminal_shows_progress(fake, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("one two three\n" * 5000)
    try:
        leader, follower = pty.openpty()
    except OSError as error:
        pytest.skip(f"this system has no pseudo-terminals: {error}")
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
        done = subprocess.run(
            [PROGRAMS / "encoderctl", "embed", f"--target={fake.target}",
             f"--input={texts}"], stdout=subprocess.DEVNULL, stderr=follower,
            timeout=300, check=False)
    finally:
        os.close(follower)
        watcher.join()
        os.close(leader)
    assert done.returncode == 0
    assert "texts/s" in "".join(shown)


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
