"""Where reports and notes go: the result to stdout or a file, everything else to stderr."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "build_reporter",
    "choose_form",
    "destination",
    "notes",
    "resume_line",
    "show_warnings",
    "table_width",
    "tell",
    "tell_stops",
    "write_report",
]

_FORMS = {".json": "json", ".csv": "csv", ".md": "table"}
"""The form of a report by the ending of its file."""


def choose_form(output: str | None, out: str | None, forms: Collection[str] = ("table", "json", "csv")) -> str:
    """Return the form of a report, one of `forms`: the one that --output says, or that the ending of --out names."""
    named = _FORMS.get(Path(out).suffix.lower()) if out else None
    if named not in forms:
        named = None
    if output in forms and named and output != named:
        from context_bench.errors import UsageError

        raise UsageError(f"--out {out} names the form {named}, and --output says {output}: leave one of them out")
    return output or named or "table"


@contextlib.contextmanager
def destination(path: str | None) -> Iterator[Callable[[str], Any]]:
    """Where the report goes. A file is tried before the run, and replaced only when the report is whole."""
    if path is None:
        yield _print
        return
    from context_bench.errors import UsageError

    try:
        with _device(Path(path)) if _is_device(Path(path)) else _file(Path(path).resolve()) as write:
            yield write
    except _CannotWrite as error:
        raise UsageError(f"cannot write to --out {path}: {error}") from error


class _CannotWrite(Exception):
    """Told apart from what goes wrong in the run itself."""


@contextlib.contextmanager
def _file(target: Path) -> Iterator[Callable[[str], Any]]:
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    with _said():
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        draft.touch()
        if target.exists():
            target.open("a").close()
            draft.chmod(target.stat().st_mode & 0o777)
    try:
        yield lambda text: _write(draft, text)
        if draft.stat().st_size:
            draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _is_device(target: Path) -> bool:
    """Whether it is there and no file: a pipe, a terminal, /dev/null. Those are written to, not replaced."""
    return target.exists() and not target.is_file() and not target.is_dir()


@contextlib.contextmanager
def _device(target: Path) -> Iterator[Callable[[str], Any]]:
    yield lambda text: _write(target, text)


def _write(target: Path, text: str) -> None:
    with _said():
        target.write_text(text, encoding="utf-8", errors="replace")


@contextlib.contextmanager
def _said() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _CannotWrite(error.strerror or str(error)) from error


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def table_width(options: argparse.Namespace) -> int | None:
    """Columns that a table may take: those of the terminal that it goes to; None where it is whole."""
    if getattr(options, "wide", False) or getattr(options, "out", None) is not None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def build_reporter(options: argparse.Namespace, name: str = "table") -> Any:
    """Build the reporter that a reference names; one that takes a width gets that of the terminal."""
    from context_bench.reporters.load import build_reporter

    return build_reporter(name, table_width(options))


def write_report(write: Callable[[str], Any], reporter: Any, name: str, result: Any) -> None:
    """Write a report. Where the reporter fails, the rows go to stdout as JSON, unless the store has them.

    Raises:
        UsageError: The reporter failed; it says where the rows are.
    """
    try:
        text = reporter.render(result)
        if not isinstance(text, str):
            raise TypeError(f"render() returned {type(text).__name__}, and must return a text")
    except (Exception, SystemExit) as error:
        from context_bench.errors import UsageError, describe

        run = result.config.get("run")
        if run is None:
            _print(result.to_json() + "\n")
        where = f"context-bench runs export {run} --output json has the rows" if run else "the result is JSON instead"
        raise UsageError(f"the reporter {name} failed: {describe(error)}; {where}") from error
    write(text)


def resume_line(options: argparse.Namespace) -> str:
    """What to type after an interruption: the command line as it was recorded, with --resume."""
    if options.no_store:
        return "nothing was kept (--no-store)"
    from shlex import join

    words = options.typed
    if options.fresh and "--fresh" not in words:
        words = options.command  # the run file says `fresh`, which no flag can take back
    words = [word for word in words if word != "--fresh"]
    line = join([*words, *([] if "--resume" in words else ["--resume"])])
    masked = " (put the values back that *** hides)" if "***" in line else ""
    return f"what is done is kept; to go on{masked}:\n  context-bench {line}"


@contextlib.contextmanager
def notes(options: argparse.Namespace) -> Iterator[None]:
    """Warnings as one line each, once, and the wire when it is asked for."""
    with show_warnings(quiet=options.quiet), _wire() if options.verbose else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def show_warnings(*, quiet: bool = False) -> Iterator[None]:
    """Show warnings as one line each, once."""
    told: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in told:
            told.add(str(message))
            _say(message)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if quiet else "default")
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def _wire() -> Iterator[None]:
    """Requests and replies on stderr meanwhile."""
    logger, handler = logging.getLogger("context_bench"), logging.StreamHandler(sys.stderr)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def tell(result: Any, *, verbose: bool = False) -> None:
    """Tell what went wrong: examples that failed for each system and how, and why the run stopped."""
    from context_bench.caveats import find_unscored

    first: dict[str, Any] = {}
    for row in result.rows:
        if row.error:
            first.setdefault(row.system, row)
    for name, values in result.summary.items():
        if values.get("num_errors"):
            failed, total = int(values["num_errors"]), int(values["num_examples"])
            _say(f"{name}: {failed} of {total} failed{_describe_first(first.get(name))}")
            for frame in first[name].metadata.get("traceback", ()) if verbose and name in first else ():
                print(f"  {frame}", file=sys.stderr)
    told = find_unscored(result.summary, result.notes, result.config)  # warned of already
    for name, (count, why) in _broken_evaluators(result).items():
        if not any(f"{name}: {why}" in sentence for sentence in told):
            _say(f"evaluator {name} failed on {count} of {len(result.rows)} rows, first: {why}")
    if result.config.get("model") and not result.config.get("model_given", True):
        _say(f"no --model was given: every server was asked for {result.config['model']}")
    if result.config.get("reused"):
        _say(f"{result.config['reused']:,} rows were known already, with the latencies of their first run")
    tell_stops(result)
    if result.config.get("run"):
        _say(f"recorded as run {result.config['run']}")


def _describe_first(row: Any) -> str:
    """The first failure, with its example, and with the place in the user's code where it is a bug there."""
    if row is None:
        return ""
    frames = row.metadata.get("traceback")
    place = f" at {frames[-1].partition(': ')[0]}" if frames else ""
    return f", first: {row.error}{place} (example {row.example_id})"


def tell_stops(result: Any, *, systems: bool = False) -> None:
    """Why the run stopped early, and with `systems` why single ones did, which a warning has said otherwise."""
    for name, reason in result.config.get("stopped_systems", {}).items() if systems else ():
        _say(f"{name} was stopped after its first request: {reason}")
    if result.config.get("stopped"):
        _say(f"stopped early: {result.config['stopped']}")


def _broken_evaluators(result: Any) -> dict[str, tuple[int, str]]:
    """Evaluators that raised, how often, and what first: `Type: message` is how an exception reads in a row."""
    broken: dict[str, tuple[int, str]] = {}
    for row in result.rows:
        for name, reason in row.unscored.items():
            kind = reason.partition(":")[0]
            if kind.isidentifier() and kind[0].isupper():
                count, first = broken.get(name, (0, reason))
                broken[name] = (count + 1, first)
    return broken


def _say(message: object) -> None:
    from context_bench.errors import printable

    clear = "\r\x1b[2K" if sys.stderr.isatty() else ""  # there may be a progress line
    print(f"{clear}context-bench: {printable(str(message))}", file=sys.stderr)
