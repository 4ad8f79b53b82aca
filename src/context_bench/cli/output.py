"""Write results: report and page, final messages about failures, readable JSON."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from context_bench.cli.messages import say

if TYPE_CHECKING:
    from context_bench.config import CommandOptions
    from context_bench.results import EvalResult

_FORMS = {".json": "json", ".csv": "csv", ".md": "table", ".tex": "latex", ".html": "html", ".htm": "html"}
"""The format of a report, by the ending of the file's name."""
_ANY_FORM = ("", ".txt")  # endings that fit every form
_VARIANTS = {
    ("table", "md"),
    ("table", "github"),
    ("csv", "csv-summary"),
}  # two forms with one ending: --output can select the second
_DATA_FORMS = ("json", "csv", "csv-summary")  # forms with unchanged texts of models and datasets
REPORT_FORMS = ("table", "md", "json", "csv", "csv-summary", "latex", "html", "github")


Write = Callable[[str | Iterable[str]], Any]


def choose_form(output: str | None, out: str | None, forms: Collection[str] = REPORT_FORMS) -> str:
    """Return the format of a report, one of `forms`, from --output or from the file's ending in --out.

    Raises:
        UsageError: The ending and --output name different formats, or neither names a format.
    """
    from context_bench.errors import UsageError

    ending = Path(out).suffix.lower() if out else ""
    named = _FORMS.get(ending)
    if named not in forms:
        named = None
    if output in forms and named and output != named and (named, output) not in _VARIANTS:
        raise UsageError(f"--out {out} means {named}, but --output is {output}: remove one of them")
    if output is None and named is None and ending not in _ANY_FORM and not _is_device(Path(str(out))):
        known = ", ".join([*(each for each, form in _FORMS.items() if form in forms), ".txt"])
        more = "; for Parquet, use result.to_parquet() in Python" if ending == ".parquet" else ""
        raise UsageError(f"--out {out}: unknown ending {ending}; use {known}, or choose a format with --output{more}")
    return output or named or "table"


@contextlib.contextmanager
def open_destination(path: str | None, *, quiet: bool = False, flag: str = "--out") -> Iterator[Write]:
    """Open the destination of the report, stdout or a file, for a text or for pieces of text.

    A file is checked before the run and replaced only when the report is complete; a message then confirms it. `flag`
    is the flag that named the file.
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
    """Refuse two flags that name the same file, before the run: one would overwrite the other."""
    seen: dict[Path, str] = {}
    for flag, path in named.items():
        if path is None or _is_device(Path(path)):
            continue
        target = Path(path).resolve()
        if target in seen:
            from context_bench.errors import UsageError

            raise UsageError(f"{seen[target]} and {flag} both name {path}: use a different file for each")
        seen[target] = flag


class _CannotWrite(Exception):
    """The report cannot be written, as opposed to an error in the run."""


@contextlib.contextmanager
def _replace_file(target: Path) -> Iterator[Write]:
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    with _explain_failure():
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        draft.touch()  # checked before the run; a killed run leaves no file
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
    """Whether the path exists and is not a file (a pipe, a terminal, /dev/null), so it is not replaced."""
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
    """Return the terminal's width for a table; None for no limit."""
    if wide or out is not None or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def wants_color(out: str | None = None) -> bool:
    """Whether to colour stdout: on a terminal, unless NO_COLOR is set or the terminal is dumb.

    FORCE_COLOR enables colour everywhere except in the file of --out.
    """
    if out is not None or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def write_report(write: Write, reporter: Any, name: str, result: Any) -> None:
    """Write a report, piece by piece if the reporter has `render_parts`.

    If the reporter fails, the rows go to stdout as JSON, unless the store has them.
    """
    from context_bench.traits import find_render_parts

    with _explain_reporter(name, result):
        render_parts = find_render_parts(reporter)
        rendered = reporter.render(result) if render_parts is None else render_parts(result)
        if render_parts is None and not isinstance(rendered, str):
            raise TypeError(f"render() returned {type(rendered).__name__}; it must return a text")
    if not isinstance(rendered, str):
        write(_read_parts(rendered, name, result))
    elif write is _print and name in _DATA_FORMS and sys.stdout.isatty():
        from context_bench.output.layout import show_controls

        write(show_controls(rendered))  # a file or a pipe gets the data unchanged
    else:
        write(rendered)


def _read_parts(parts: Iterable[Any], name: str, result: Any) -> Iterator[str]:
    with _explain_reporter(name, result):
        for part in parts:
            if not isinstance(part, str):
                raise TypeError(f"render_parts() gave {type(part).__name__}; it must give texts")
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


def report_run(
    options: CommandOptions, run: Callable[[], EvalResult], *, verbose: bool = False
) -> tuple[EvalResult, BaseException | None]:
    """Run, and write the report and the page even if the run ends early; return the result and the failure, if any.

    Messages about the run come first, so the report's conclusion is last on the screen.
    """
    from context_bench.errors import ContextBenchError, Interrupted, find_result
    from context_bench.numbers import NUM_EXAMPLES
    from context_bench.output.files import build_reporter

    store = options.store_folder
    width = table_width(wide=options.wide, out=options.out)
    form = choose_form(options.output, options.out)
    reporter = build_reporter(form, width, store, color=wants_color(options.out), wide=options.wide)
    failure: BaseException | None = None
    with (
        open_destination(options.out, quiet=options.silent) as write,
        open_destination(options.report, quiet=options.silent, flag="--report") as write_page,
    ):
        try:
            with contextlib.redirect_stdout(sys.stderr):  # output of a user's system must not mix with the report
                result = run()
        except (ContextBenchError, Interrupted) as error:
            failure, found = error, find_result(error)
            if found is None or not any(values.get(NUM_EXAMPLES) for values in found.summary.values()):
                raise
            result = found
        if not options.silent:
            tell_outcome(result, verbose=verbose, failure=failure)
        elif failure is None:
            tell_stops(result, systems=True)
        result = result.merge_seeds() if getattr(options, "merge_seeds", False) else result
        write_report(write, reporter, form, result)
        if options.report is not None:
            write_report(write_page, build_reporter("html", None, store, wide=options.wide), "html", result)
    return result, failure


def advise_resume(words: Sequence[str], *, kept: bool) -> str:
    """Return the command that continues an interrupted run: the recorded one with --resume."""
    if not kept:
        return "nothing was stored (--no-store)"
    from shlex import join

    words = [word for word in words if word != "--fresh"]
    line = join([*words, *([] if "--resume" in words else ["--resume"])])
    masked = " (write the values that *** hides)" if "***" in line else ""
    return f"finished work is stored; to continue{masked}:\n  context-bench {line}"


def tell_outcome(result: Any, *, verbose: bool = False, failure: BaseException | None = None) -> None:
    """Print the failures and why the run stopped; the caller reports a raised `failure`."""
    from context_bench.caveats import find_unscored
    from context_bench.numbers import NUM_ERRORS, NUM_EXAMPLES

    first: dict[str, Any] = {}
    for row in result.rows:
        if row.error:
            first.setdefault(row.system, row)
    stopped = result.settings.stopped_systems  # a warning reported it when it happened
    for name, values in result.summary.items():
        if values.get(NUM_ERRORS) and name not in stopped:
            failed, total = int(values[NUM_ERRORS]), int(values[NUM_EXAMPLES])
            say(f"{name}: {failed} of {total} failed{_describe_first(first.get(name))}")
            for frame in first[name].metadata.get("traceback", ()) if verbose and name in first else ():
                print(f"  {frame}", file=sys.stderr)
    warned = find_unscored(result.summary, result.notes, result.config)
    for name, (count, why) in _find_broken_evaluators(result).items():
        if not any(f"{name}: {why}" in sentence for sentence in warned):
            say(f"evaluator {name} failed on {count} of {len(result.rows)} rows, first: {why}")
    if result.settings.reused:
        say(f"{result.settings.reused:,} rows come from the cache, with the latencies of their first run")
    for name, each in result.settings.looks.get("systems", {}).items():
        if each["settled"] and each["not_run"]:
            say(f"{name}: {each['verdict']['word']} at look {each['look']}; {each['not_run']:,} examples were not run")
    if failure is None:
        tell_stops(result)
    if result.settings.run:
        say(f"recorded as run {result.settings.run}")


def _describe_first(row: Any) -> str:
    if row is None:
        return ""
    frames = row.metadata.get("traceback")
    place = f" at {frames[-1].partition(': ')[0]}" if frames else ""
    return f", first: {row.error}{place} (example {row.example_id})"


def tell_stops(result: Any, *, systems: bool = False) -> None:
    """Print why the run stopped early; with `systems`, also why single systems stopped, unless a warning said so."""
    from context_bench.monitors.preflight import describe_stop

    for name, reason in result.settings.stopped_systems.items() if systems else ():
        say(describe_stop(name, reason))
    if result.settings.stopped:
        say(f"stopped early: {result.settings.stopped}")


def _find_broken_evaluators(result: Any) -> dict[str, tuple[int, str]]:
    """Find evaluators that raised exceptions, with their number and the first one, written as `Type: message`."""
    broken: dict[str, tuple[int, str]] = {}
    for row in result.rows:
        for name, reason in row.unscored.items():
            kind = reason.partition(":")[0]
            if kind.isidentifier() and kind[0].isupper():
                count, first = broken.get(name, (0, reason))
                broken[name] = (count + 1, first)
    return broken


def format_json(value: Any, *, longest: int | None, width: int | None) -> str:
    """Write a document as indented JSON; other types become their text.

    `longest` shortens texts. `width` wraps lines below their key; without it the output is valid JSON.
    """
    import json

    from context_bench.output.layout import show_controls, wrap

    text = json.dumps(shorten_texts(value, longest), indent=2, ensure_ascii=False, default=str)
    text = show_controls(text)
    if width is None:
        return text
    return "\n".join(wrap(line, width, indent=" " * (len(line) - len(line.lstrip()) + 2)) for line in text.split("\n"))


def shorten_texts(value: Any, longest: int | None) -> Any:
    """Shorten every long text of a document in the middle; None for `longest` shortens nothing."""
    if isinstance(value, str):
        if longest is None or len(value) <= longest:
            return value
        half = longest // 2
        return f"{value[:half]} [... {len(value) - 2 * half:,} characters ...] {value[-half:]}"
    if isinstance(value, dict):
        return {key: shorten_texts(item, longest) for key, item in value.items()}
    return [shorten_texts(item, longest) for item in value] if isinstance(value, list | tuple) else value
