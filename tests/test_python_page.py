"""The guide to Python and the notebook: every block and every cell runs, in order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def run(script: str, folder: Path) -> str:
    (folder / "script.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-W", "error", "script.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_guide_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    files = {name: block for block in blocks if (name := block.partition("\n")[0].removeprefix("# ")).endswith(".py")}
    assert list(files) == ["conftest.py", "test_quality.py"]
    out = run("\n".join(block for block in blocks if block not in files.values()), tmp_path)
    assert "score by meta.lang" in out
    assert (tmp_path / "table.tex").read_text().startswith("% needs")
    assert (tmp_path / "pareto.svg").exists()
    suite = tmp_path / "suite"
    suite.mkdir()
    for name, block in files.items():
        (suite / name).write_text(block)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=suite, capture_output=True, text=True, timeout=120)
    assert "1 passed" in done.stdout, done.stdout


def test_the_guide_is_two_screens_long() -> None:
    assert len((ROOT / "docs" / "python.md").read_text(encoding="utf-8").splitlines()) <= 130


def test_the_notebook_runs(tmp_path: Path) -> None:
    """A real kernel runs it from top to bottom; the tables of its results are HTML, and nothing goes to stderr."""
    notebook = json.loads((ROOT / "examples" / "tour.ipynb").read_text(encoding="utf-8"))
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    outputs = execute(notebook, tmp_path)
    assert [each for each in outputs if each.get("name") == "stderr"] == []
    shown = [each["data"] for each in outputs if each["output_type"] == "execute_result"]
    assert "<table" in shown[0]["text/html"]
    assert "score by meta.half" in str(shown)
    assert "toprule" in str(outputs)


def test_progress_and_warnings_in_a_notebook(tmp_path: Path) -> None:
    """Progress is no red box (stderr), and a warning names the line of the cell, though the run has its own thread."""
    cell = ["import time", "from context_bench import evaluate", "def slow(example):", "    time.sleep(0.1)"]
    cell += ["    return example['context']", "", "evaluate(['passthrough', slow], 'needle:n=25,length=200')"]
    cell += ["evaluate(slow, [])"]
    code = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": "\n".join(cell)}
    outputs = execute({"cells": [code], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, tmp_path)
    said = {
        name: "".join(each["text"] for each in outputs if each.get("name") == name) for name in ("stdout", "stderr")
    }
    assert "50/50" in said["stdout"]
    assert "25 examples cannot show equivalence" in said["stdout"]
    assert ".py:8: UserWarning: the dataset gave no examples" in said["stderr"]
    assert said["stderr"].count("\n") == 2, "the warning and its line are all"


EXECUTE = """
import json, sys, jupyter_client, nbclient, nbformat
notebook = nbformat.reads(sys.stdin.read(), as_version=4)
kernel = jupyter_client.KernelManager(transport="ipc", ip=sys.argv[1])  # a kernel runs code: it must not have a port
nbclient.NotebookClient(notebook, km=kernel, timeout=120).execute()
print(json.dumps([each for cell in notebook.cells for each in cell.get("outputs", [])]))
"""


def execute(notebook: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Run a notebook from top to bottom in a kernel, and return its outputs."""
    for module in ("nbclient", "ipykernel"):
        pytest.importorskip(module, reason="requirements-dev.txt is not installed")
    homes = {"IPYTHONDIR": str(folder / "ipython"), "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}
    command = [sys.executable, "-c", EXECUTE, str(folder / "socket")]
    done = subprocess.run(
        command,
        cwd=folder,
        input=json.dumps(notebook),
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **homes, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stderr
    outputs: list[dict[str, Any]] = json.loads(done.stdout)
    return outputs
