"""Writes reports to stdout, or to a file that is replaced only when the report is whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from context_bench.cli.messages import say

__all__ = [
    "build_reporter",
    "check_destinations",
    "choose_form",
    "open_destination",
    "table_width",
    "wants_color",
    "write_report",
]

_FORMS = {".json": "json", ".csv": "csv", ".md": "table", ".html": "html", ".htm": "html"}
"""The form of a report by the ending of its file."""
_DATA_FORMS = ("json", "csv")
"""Forms that hold texts of models and datasets as they came."""


Write = Callable[[str | Iterable[str]], Any]


def choose_form(output: str | None, out: str | None, forms: Collection[str] = ("table", "json", "csv", "html")) -> str:
    """Return the form of a report, one of `forms`: the one that --output says, or that the ending of --out names."""
    named = _FORMS.get(Path(out).suffix.lower()) if out else None
    if named not in forms:
        named = None
    if output in forms and named and output != named:
        from context_bench.errors import UsageError

        raise UsageError(f"--out {out} names the form {named}, and --output says {output}: leave one of them out")
    return output or named or "table"


@contextlib.contextmanager
def open_destination(path: str | None, *, quiet: bool = False, flag: str = "--out") -> Iterator[Write]:
    """Open where the report goes: stdout, or a file. A text is written whole, or as the pieces that it comes in.

    A file is tried before the run, and replaced only when the report is whole; a message then says so. `flag` is the
    one that named the file.
    """
    if path is None:
        yield _print
        return
    from context_bench.errors import UsageError

    try:
        if _is_device(Path(path)):
            yield partial(_write, Path(path))
            return
        with _replace_file(Path(path).resolve()) as write:
            yield write
    except _CannotWrite as error:
        raise UsageError(f"cannot write to {flag} {path}: {error}") from error
    if not quiet:
        say(f"wrote {path}")


def check_destinations(named: Mapping[str, str | None]) -> None:
    """Refuse two flags that name the same file, before anything is run: one would replace what the other wrote.

    Raises:
        UsageError: With both flags.
    """
    seen: dict[Path, str] = {}
    for flag, path in named.items():
        if path is None or _is_device(Path(path)):
            continue
        target = Path(path).resolve()
        if target in seen:
            from context_bench.errors import UsageError

            raise UsageError(f"{seen[target]} and {flag} both name {path}: give each a file of its own")
        seen[target] = flag


class _CannotWrite(Exception):
    """The report cannot be written; told apart from what goes wrong in the run itself."""


@contextlib.contextmanager
def _replace_file(target: Path) -> Iterator[Write]:
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    with _explain_failure():
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        draft.touch()  # tried before the run; one that is killed leaves nothing behind
        draft.unlink()
        if target.exists():
            target.open("a").close()
    try:
        yield partial(_write, draft)
        if draft.exists() and draft.stat().st_size:
            if target.exists():
                draft.chmod(target.stat().st_mode & 0o777)
            draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _is_device(target: Path) -> bool:
    """Whether it exists and is not a file: a pipe, a terminal, /dev/null. Those are written to, not replaced."""
    return target.exists() and not target.is_file() and not target.is_dir()


def _write(target: Path, text: str | Iterable[str]) -> None:
    with _explain_failure(), target.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines([text] if isinstance(text, str) else text)


@contextlib.contextmanager
def _explain_failure() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _CannotWrite(error.strerror or str(error)) from error


def _print(text: str | Iterable[str]) -> None:
    for piece in [text] if isinstance(text, str) else text:
        sys.stdout.write(piece)
    sys.stdout.flush()


def table_width(*, wide: bool, out: str | None = None) -> int | None:
    """Return the columns that a table may take: those of the terminal that it goes to; None where it stays whole."""
    if wide or out is not None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def wants_color(out: str | None = None) -> bool:
    """Whether what goes to stdout may be coloured: on a terminal, unless NO_COLOR is set or the terminal is dumb.

    FORCE_COLOR asks for colour anywhere else than in a file that --out names.
    """
    if out is not None or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def build_reporter(name: str, width: int | None, store: str | None = None, *, color: bool = False) -> Any:
    """Build the reporter that a reference names; one that takes a width, colour or the folder of the store gets it."""
    from context_bench.output.files import build_reporter

    return build_reporter(name, width, store, color=color)


def write_report(write: Write, reporter: Any, name: str, result: Any) -> None:
    """Write a report, piece by piece if the reporter has `render_parts`.

    Where the reporter fails, the rows go to stdout as JSON, unless the store has them.

    Raises:
        UsageError: The reporter failed; it says where the rows are.
    """
    from context_bench.traits import find_render_parts

    with _explain_reporter(name, result):
        render_parts = find_render_parts(reporter)
        rendered = reporter.render(result) if render_parts is None else render_parts(result)
        if render_parts is None and not isinstance(rendered, str):
            raise TypeError(f"render() returned {type(rendered).__name__}, and must return a text")
    if not isinstance(rendered, str):
        write(_read_parts(rendered, name, result))
    elif write is _print and name in _DATA_FORMS and sys.stdout.isatty():
        write(_show_controls(rendered))
    else:
        write(rendered)


def _show_controls(text: str) -> str:
    """Write what data would say to a terminal so that it is seen; a file or a pipe gets the data as they are."""
    from context_bench.output.layout import show_controls

    return show_controls(text)


def _read_parts(parts: Iterable[Any], name: str, result: Any) -> Iterator[str]:
    with _explain_reporter(name, result):
        for part in parts:
            if not isinstance(part, str):
                raise TypeError(f"render_parts() gave {type(part).__name__}, and must give texts")
            yield part


@contextlib.contextmanager
def _explain_reporter(name: str, result: Any) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit) as error:
        from context_bench.errors import UsageError, describe

        run = result.settings.run
        if run is None:
            _print(result.to_json() + "\n")
        where = f"context-bench runs export {run} --output json has the rows" if run else "the result is JSON instead"
        raise UsageError(f"the reporter {name} failed: {describe(error)}; {where}") from error
