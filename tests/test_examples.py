"""Every file in examples/ runs as it stands, in a process and a folder of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command import environment, shell
from vendor_relay import relay

EXAMPLES = sorted(path for path in (Path(__file__).parents[1] / "examples").glob("*.py") if path.name[0] != "_")


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_adapter_of_llama_index_is_measured_as_any_other(tmp_path: Path) -> None:
    needed = [sys.executable, "-c", "import llama_index.core, llama_index.embeddings.openai"]
    if subprocess.run(needed, cwd=tmp_path, env=environment(), capture_output=True, check=False).returncode:
        pytest.skip("needs llama-index-core and llama-index-embeddings-openai")
    path = Path(__file__).parents[1] / "examples" / "memory" / "llama_index_memory.py"
    with relay() as server:
        words = ["--system", f"{path}:LlamaIndexMemory", "--no-bm25", "--tap-forward", server.url, "--no-store"]
        data = ["--dataset", "synthetic-memory:length=4000", "-n", "1", "--types", "single_hop", "--budget", "2000"]
        done = shell("memory", *words, *data, "--output", "json", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)["summary"][f"{path}:LlamaIndexMemory[budget=2000]"]
    # The embedder hashes words, and the questions repeat the words of the facts.
    assert values["retrieval_recall"] == 1.0
    assert values["ingest_embed_calls"] == pytest.approx(1000.0), "a call for each of 1,000 turns"
    assert values["ingest_calls"] == 0.0
