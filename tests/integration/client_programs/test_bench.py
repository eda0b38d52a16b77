"""encoderctl bench as a separate process: Ctrl-C, and a real server."""

import json
import signal
import subprocess

import pytest
from conftest import PROGRAMS, encoderctl, wait_while_it_runs
from python_service import Model, serve


def test_ctrl_c_ends_it_with_what_was_measured_so_far(own_fake):
    with subprocess.Popen(
            [PROGRAMS / "encoderctl", "bench", f"--target={own_fake.target}",
             "--stream", "--words=3", "--batch_size=2", "--warm_up=0s",
             "--duration=1h", "--count=10000000", "--format=jsonl"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ctl:
        wait_while_it_runs(ctl, lambda: own_fake.texts_seen() >= 100)
        ctl.send_signal(signal.SIGINT)
        out, errors = ctl.communicate(timeout=60)
    assert (ctl.returncode, errors) == (0, "")
    figures = json.loads(out)
    assert figures["ended_by"] == "interrupted"
    assert figures["texts"] == 2 * figures["calls_answered"] > 0
    assert 0 < figures["measured_s"] < 3600


@pytest.mark.parametrize("way", ["--stream=no", "--stream=yes"])
def test_a_real_server_counts_the_tokens(server, way):
    done = encoderctl(server, "bench", way, "--words=6", "--batch_size=4",
                      "--count=10", "--warm_up=0s", "--duration=5m",
                      "--format=jsonl")
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["calls_answered"] == 10
    assert figures["tokens"] == 10 * 4 * (6 + 2)


def test_a_text_that_is_too_long_ends_the_bench_with_its_reason(server):
    done = encoderctl(server, "bench", "--words=600", "--batch_size=1",
                      "--count=2", "--warm_up=0s", "--duration=5m")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "has 602 tokens; this model takes at most 256" in done.stderr
    assert "--truncate=end" in done.stderr


def test_two_that_measure_one_server_send_different_texts():
    with serve(Model()) as service:
        for _ in range(2):
            done = encoderctl(service.target, "bench", "--words=20",
                              "--batch_size=50", "--concurrency=1",
                              "--count=4", "--warm_up=0s", "--duration=5m")
            assert done.returncode == 0, done.stderr
    texts = [value.text for request in service.requests
             for value in request.inputs]
    assert len(texts) >= 400
    assert len(set(texts)) == len(texts)
