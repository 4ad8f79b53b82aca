"""The guide to Python and the notebook: every block and every cell runs, in order."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SHOW = """
shows = [getattr({value}, name, None) for name in ("_repr_html_", "_repr_markdown_", "__repr__")]
assert next(filter(None, shows))()"""


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
    """Cells run in order in one process; the value of a last line is shown as a notebook would."""
    notebook = json.loads((ROOT / "examples" / "tour.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")
    script = []
    for number, cell in enumerate(cells):
        tree = ast.parse(cell)
        last = tree.body[-1]
        if isinstance(last, ast.Expr):
            tree.body[-1] = ast.parse(f"shown_{number} = {ast.unparse(last.value)}").body[0]
            script.append(ast.unparse(tree) + SHOW.format(value=f"shown_{number}"))
        else:
            script.append(cell)
    assert "\\toprule" in run("\n".join(script), tmp_path)
