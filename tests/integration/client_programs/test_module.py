"""`python -m encoderd`: the program of the PATH in its place. The program is
encoderd_fake_server; the wheel's own is tested by packages/."""

import os
import subprocess
import sys

import encoderd
import pytest
from conftest import PROGRAMS
from server_process import PATIENCE

PROGRAM = PROGRAMS / "encoderd_fake_server"


def module(*arguments, path):
    return subprocess.Popen(
        [sys.executable, "-m", "encoderd", *arguments], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"})


def test_the_module_becomes_the_server(tmp_path):
    (tmp_path / "encoderd").symlink_to(PROGRAM)
    process = module("serve", "one=load_ms:0", "two=load_ms:0",
                     "--listen=127.0.0.1:0", "--http_listen=", path=tmp_path)
    try:
        for line in process.stderr:
            if "event=serving model=two" in line:
                break
    finally:
        process.terminate()
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, log


@pytest.mark.parametrize("arguments, code, said", [
    (["--help"], 0, "usage: python -m encoderd serve MODEL"),
    (["--version"], 0, f"encoderd {encoderd.__version__}"),
    ([], 1, "usage: python -m encoderd serve MODEL"),
    (["serve"], 1, "usage: "),
    (["bake", "a"], 1, "usage: "),
])
def test_the_module_says_how_to_use_it(arguments, code, said, tmp_path):
    process = module(*arguments, path=tmp_path)
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert said in out + errors


def test_the_module_shows_the_flags_of_the_program(tmp_path):
    (tmp_path / "encoderd").symlink_to(PROGRAM)
    for arguments in (["serve", "--help"], ["serve", "model", "-h"]):
        process = module(*arguments, path=tmp_path)
        out, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert "--max_queue_tokens" in out


def test_the_module_ends_as_a_program_that_cannot_show_its_flags(tmp_path):
    program = tmp_path / "encoderd"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 7\n")
    program.chmod(0o755)
    process = module("serve", "--help", path=tmp_path)
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (7, "broken\n")


def test_the_module_without_a_program_gives_no_advice_for_code():
    process = subprocess.run(
        [sys.executable, "-m", "encoderd", "serve", "model"], text=True,
        capture_output=True, check=False, timeout=PATIENCE,
        env={**os.environ, "PATH": "/nowhere"})
    assert process.returncode == 1
    assert "Server(" not in process.stderr
    assert process.stderr.endswith(
        "or add the folder of a built encoderd to the PATH\n")
