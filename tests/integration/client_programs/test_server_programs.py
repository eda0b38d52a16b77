"""encoderctl and client/examples against a real server."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
from conftest import encoderctl, run, serving

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "client/examples"


def python(name, *arguments, **options):
    return subprocess.run([sys.executable, EXAMPLES / name, *arguments],
                          timeout=300, capture_output=True, text=True,
                          check=False, **options)


def test_cpp_and_python_print_the_same(server):
    cpp = run("example_embed", server)
    assert cpp.returncode == 0, cpp.stderr
    assert cpp.stdout.startswith("2 x 384, similarity 0.")
    done = python("embed.py", server)
    assert done.returncode == 0, done.stderr
    begin, _, similarity = done.stdout.rpartition(" ")
    cpp_begin, _, cpp_similarity = cpp.stdout.rpartition(" ")
    assert begin == cpp_begin
    assert abs(float(similarity) - float(cpp_similarity)) < 1e-5


def test_errors_reach_the_user(gone):
    for done in (run("example_embed", gone), python("embed.py", gone)):
        assert done.returncode == 1
        assert done.stderr.startswith("UNAVAILABLE: ")


def test_reflection_needs_no_generated_code(server):
    done = python("reflect.py", server)
    assert done.returncode == 0, done.stderr
    methods, values = done.stdout.splitlines()
    assert "Embed" in methods and "GetModel" in methods
    assert values == "384 values, 6 tokens"


def test_the_environment_names_the_server_unless_a_flag_does(server, gone):
    environment = {**os.environ, "ENCODERD_TARGET": server}
    done = run("encoderctl", "health", env=environment)
    assert (done.returncode, done.stdout) == (0, "SERVING\n"), done.stderr
    done = python("embed.py", env=environment)
    assert done.returncode == 0, done.stderr
    done = encoderctl(gone, "health", "--timeout=1s", env=environment)
    assert done.returncode == 1 and gone in done.stderr, done.stderr


def test_vectors_are_alike_where_the_texts_are(server):
    done = encoderctl(server, "similarity", "--format=jsonl",
                      "A man is eating food.", "Someone has a meal.",
                      "A woman plays the violin.")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    cosines = np.array([row["similarities"] for row in rows])
    np.testing.assert_allclose(cosines.diagonal(), 1, atol=1e-6)
    assert cosines[0, 1] > cosines[0, 2]


def test_a_refusal_names_the_line(server, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("short\n" * 67 + "the " * 255 + "\n")
    done = encoderctl(server, "embed", f"--input={texts}")
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"encoderctl embed: {texts}:68: INVALID_ARGUMENT (INPUT_TOO_LONG): "
        "inputs[67]")
    assert len(done.stdout.splitlines()) == 64


def test_a_model_is_described(server):
    done = encoderctl(server, "models", "--format=jsonl")
    assert done.returncode == 0, done.stderr
    model = json.loads(done.stdout)
    assert model["hidden_size"] == 384
    assert model["max_len"] == 256
    assert model["max_len_source"] == "sentence_transformers"
    assert encoderctl(server, "health").stdout == "SERVING\n"
    tokens = encoderctl(server, "tokenize", "Hello, world").stdout
    assert tokens == "[CLS] hello , world [SEP]\n"
    states = encoderctl(server, "encode", "--layer=0", "--format=jsonl",
                        "Hello, world")
    assert json.loads(states.stdout)["rows"] == 5


def test_a_model_that_differs_from_its_sums_is_never_served(
        model_folder, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(model_folder, folder)
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    sums = "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  "
        f"{file.relative_to(folder)}\n" for file in files)
    (folder / "SHA256SUMS").write_text(sums)
    with serving(folder):
        pass
    weights = folder / "model.safetensors"
    with weights.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))
    done = run("encoderd", f"--model={folder}", "--listen=127.0.0.1:0",
               "--http_listen=")
    assert done.returncode == 1, done.stderr
    assert "event=start_failed" in done.stderr
    assert "'model.safetensors'" in done.stderr
    assert "event=serving" not in done.stderr
