"""Write the first sentence of each docstring into docs/api/index.md, so that the page has text without being built."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "api" / "index.md"
_BLOCK = re.compile(r"\n+(?:- `context_bench\.[^\n]*\n)*\n*((?:::: [\w.]+\n(?:    [^\n]*\n)*)+)")


def find_object(name: str) -> Any:
    """Find what a dotted name stands for: a module, or something in one."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


def describe(name: str) -> str:
    """Write a line for a name, with the first line of its docstring."""
    first = (inspect.getdoc(find_object(name)) or "").split("\n", 1)[0]
    return f"- `{name}`: {first}\n"


def render(page: str) -> str:
    """Put the lines above the names that they are about."""
    return _BLOCK.sub(
        lambda block: "\n\n" + "".join(map(describe, re.findall(r"^::: (.+)$", block[1], re.M))) + "\n" + block[1], page
    )


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
