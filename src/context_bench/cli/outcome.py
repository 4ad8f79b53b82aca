"""Messages at the end of a run, beside its report: what failed, why it stopped, and how to go on."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from context_bench.cli.messages import say
from context_bench.numbers import NUM_ERRORS, NUM_EXAMPLES

__all__ = ["advise_resume", "tell_outcome", "tell_stops"]


def advise_resume(words: Sequence[str], *, kept: bool) -> str:
    """Say what to type after an interruption: the command line as it was recorded, with --resume."""
    if not kept:
        return "nothing was kept (--no-store)"
    from shlex import join

    words = [word for word in words if word != "--fresh"]
    line = join([*words, *([] if "--resume" in words else ["--resume"])])
    masked = " (put the values back that *** hides)" if "***" in line else ""
    return f"what is done is kept; to go on{masked}:\n  context-bench {line}"


def tell_outcome(result: Any, *, verbose: bool = False, failure: BaseException | None = None) -> None:
    """Tell what went wrong: examples that failed for each system and how, and why the run stopped.

    A `failure` that ended the run is told by whoever raises it.
    """
    from context_bench.caveats import find_unscored

    first: dict[str, Any] = {}
    for row in result.rows:
        if row.error:
            first.setdefault(row.system, row)
    stopped = result.settings.stopped_systems  # told of by a warning, when it happened
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
    answered = any(row.error is None for row in result.rows) or not result.rows
    if result.settings.model and not result.settings.model_given and answered:
        say(f"no --model was given: every server was asked for {result.settings.model}")
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
    """Describe the first failure: its example, and the place in the user's code where it is a bug there."""
    if row is None:
        return ""
    frames = row.metadata.get("traceback")
    place = f" at {frames[-1].partition(': ')[0]}" if frames else ""
    return f", first: {row.error}{place} (example {row.example_id})"


def tell_stops(result: Any, *, systems: bool = False) -> None:
    """Tell why the run stopped early; with `systems` also why single ones did, where no warning was shown."""
    from context_bench.monitors.preflight import describe_stop

    for name, reason in result.settings.stopped_systems.items() if systems else ():
        say(describe_stop(name, reason))
    if result.settings.stopped:
        say(f"stopped early: {result.settings.stopped}")


def _find_broken_evaluators(result: Any) -> dict[str, tuple[int, str]]:
    """Find evaluators that raised, how often, and what first: in a row an exception reads `Type: message`."""
    broken: dict[str, tuple[int, str]] = {}
    for row in result.rows:
        for name, reason in row.unscored.items():
            kind = reason.partition(":")[0]
            if kind.isidentifier() and kind[0].isupper():
                count, first = broken.get(name, (0, reason))
                broken[name] = (count + 1, first)
    return broken
