"""The package is typed: mypy finds nothing in it, and knows what comes back."""

import os
import pathlib
import re
import subprocess
import sys

import encoderd
import pytest

USER = '''
import asyncio
from typing import List
import numpy as np
import encoderd

client = encoderd.Client()
matrix: np.ndarray = client.encode(["a", "b"], normalize_embeddings=True)
count: np.ndarray = client.embed("a", on_error="per_input").token_counts
reasons: List[str] = [e.reason for e in client.embed("a").errors.values()]
state: np.ndarray = client.token_embeddings("a")
words: List[str] = client.tokenize("a").tokens
ids: List[int] = client.tokenize(["a"])[0].ids
sizes: List[int] = [client.max_seq_length, client.get_embedding_dimension()]
counts: List[int] = [t.token_count for t in client.tokenize(["a", ("b", "c")])]
cut: List[bool] = [s.truncated for s in client.token_states(np.array(["a"]))]
client.embed("a", pooling="weighted_mean", truncate="start")
for found in client.embed_stream(["a"]):
    row: np.ndarray = found.vector
async def main() -> None:
    twin = encoderd.AsyncClient()
    async for found in twin.embed_stream(["a"]):
        row: np.ndarray = found.vector
    vector: np.ndarray = await twin.encode("a")
    rows: List[np.ndarray] = await twin.token_embeddings(["a"])
    longest: int = await twin.max_seq_length
    wrong: int = await twin.encode("a")
    await twin.embed("a", pooling="MEAN")
client.encode("a", truncate="middle")
client.encode("a", pooling="MEAN")
'''


def test_mypy_is_content_and_sees_a_wrong_type(tmp_path):
    pytest.importorskip("mypy")
    package = pathlib.Path(encoderd.__file__).parent
    assert (package / "py.typed").exists()
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = True\n"
        "[mypy-encoderd.v1.*]\nignore_errors = True\n"
        # Optional, or without types.
        + "".join(f"[mypy-{name}.*]\nignore_missing_imports = True\n"
                  for name in (
                      "grpc", "google", "torch", "tqdm", "langchain_core",
                      "llama_index", "haystack", "chromadb", "keybert",
                      "bertopic")))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini",
         "--cache-dir=cache", "-p", "encoderd"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=dict(os.environ, MYPYPATH=str(package.parent)))
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=mypy.ini",
         "--cache-dir=cache", "user.py"], cwd=tmp_path, capture_output=True,
        text=True, check=False,
        env=dict(os.environ, MYPYPATH=str(package.parent)))
    assert done.returncode == 1
    wrong = re.findall(r"^user\.py:(\d+): error: ", done.stdout, re.MULTILINE)
    assert wrong == ["27", "28", "29", "30"], done.stdout
