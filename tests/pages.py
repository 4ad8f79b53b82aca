"""What a Markdown page shows: its blocks of code, its commands, its tables, its links, and the tools that make it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

__all__ = ["ROOT", "Block", "blocks", "commands", "fences", "links", "load_tool", "spans", "table", "tables"]

ROOT = Path(__file__).parent.parent

_FENCE = re.compile(r"^```(\w*)(?: title=\"([^\"\n]*)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block. Its title is the name of a file, or says how a command is run."""

    language: str
    title: str
    text: str


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """The fenced blocks, in order."""
    return [Block(*found) for found in _FENCE.findall(read(page))]


def fences(page: str, language: str) -> list[str]:
    """The fenced blocks in a language."""
    return [block.text for block in blocks(page) if block.language == language]


def spans(page: str) -> list[str]:
    """The pieces of code within the text."""
    return [span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", _FENCE.sub("", read(page)))]


def commands(page: str) -> list[str]:
    """Every command line of context-bench, in blocks and in the text."""
    lines = [line.partition("  #")[0].strip() for code in fences(page, "sh") for line in code.splitlines()]
    return [line for line in [*lines, *spans(page)] if line.startswith("context-bench ")]


def links(page: str) -> list[str]:
    """Where the links to other files go."""
    targets = re.findall(r"\]\(([^)#]+)", read(page))
    return [target for target in targets if "://" not in target]


def table(page: str, first: str) -> list[list[str]]:
    """The rows of the table whose first column has that title."""
    lines = read(page).splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def tables(text: str) -> list[list[dict[str, str]]]:
    """Every table of a text, as rows from title to cell."""
    found: list[list[dict[str, str]]] = []
    titles: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            titles = []
        elif not titles:
            titles = cells
            found.append([])
        elif not set("".join(cells)) <= set("-: "):
            found[-1].append(dict(zip(titles, cells)))
    return found


def load_tool(name: str) -> ModuleType:
    """Load a program of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
