"""Where a run of the corpus works: an empty folder, a steady environment, and what came out so far."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from corpus.normalise import Json, clean, page_texts, parse

__all__ = ["DATA", "RUNS", "Absent", "Bench", "make_run", "recorded_run"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
DATA = os.environ.get("CONTEXT_BENCH_DATA", "")


class Absent(Exception):
    """What a run needs is not on this machine."""


class Bench:
    """The folder of one run, and what its commands gave."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept: dict[str, Json] = {}
        for name in ("parts.py", "program.py"):
            shutil.copy(HERE / name, folder / name)

    def call(self, *arguments: str) -> tuple[int, str, str]:
        """Run `context-bench` in this process; code, stdout and stderr."""
        from context_bench.cli import main

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(list(arguments))
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
        return code, out.getvalue(), err.getvalue()

    def run(self, *arguments: str, rows: bool = True) -> str:
        """Run a command, and keep its code, stdout and stderr; without its rows where they say nothing new."""
        code, out, err = self.call(*arguments)
        document = parse(out)
        if not rows and isinstance(document, dict):
            document.pop("rows", None)
        self.keep(" ".join(arguments), {"code": code, "out": document, "err": err})
        return out

    def keep(self, name: str, value: Json) -> None:
        """Keep a value under a name of its own."""
        while name in self.kept:
            name += " (again)"
        self.kept[name] = value

    def file(self, name: str) -> None:
        """Keep what is in a file."""
        text = (self.folder / name).read_text(encoding="utf-8")
        self.keep(f"file {name}", page_texts(text) if name.endswith(".html") else parse(text))

    def write(self, name: str, text: str) -> None:
        """Write a file for later commands."""
        (self.folder / name).write_text(text, encoding="utf-8")


Step = Callable[[Bench], None]
RUNS: dict[str, Step] = {}


def recorded_run(name: str) -> Callable[[Step], Step]:
    """Put a function into the corpus."""

    def put(step: Step) -> Step:
        assert name not in RUNS, name
        RUNS[name] = step
        return step

    return put


@contextlib.contextmanager
def _steady(folder: Path) -> Iterator[list[warnings.WarningMessage]]:
    """Work in a folder, without what the environment of a person or a CI may say."""
    environment, before = dict(os.environ), Path.cwd()
    for name in list(os.environ):
        if name.startswith(("CONTEXT_BENCH_", "GITHUB_", "RAY_")) or name.endswith("_API_KEY") or name == "CI":
            del os.environ[name]
    os.environ.update(COLUMNS="100", NO_COLOR="1", TZ="UTC")
    os.chdir(folder)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)
            yield told
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


def make_run(name: str, folder: Path) -> Json:
    """Make a run of the corpus in an empty folder, and give what came out, normalised."""
    from context_bench.utils.tokens import set_tokenizer

    bench = Bench(folder)
    with _steady(folder) as told:
        try:
            RUNS[name](bench)
        finally:
            set_tokenizer(None)
    if told:
        bench.keep("warnings", sorted({str(each.message) for each in told}))
    paths = [(str(folder), "<folder>"), (str(ROOT), "<root>"), (sys.executable, "<python>")]
    if DATA:
        paths.append((DATA.rstrip("/"), "<data>"))
    paths.sort(key=lambda pair: -len(pair[0]))
    kept: dict[str, Any] = clean(bench.kept, paths)
    return kept
