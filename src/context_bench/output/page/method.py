"""How a run was measured, so that it can be repeated, and what failed in it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_bench.numbers import seconds
from context_bench.output.elements import Child, Markup, element, join, table
from context_bench.output.page.row_values import clean_id, clean_name
from context_bench.output.page.run_facts import Failure, RunFacts
from context_bench.results import EvalRow, dump_json

__all__ = ["describe_method", "error_table", "link_example"]


def link_example(run: str, row: EvalRow) -> Markup:
    """Link to an example on the page, by what names it."""
    names = (clean_name(each) for each in (run, row.system, row.dataset))
    named = dump_json([*names, clean_id(row.example_id), row.repeat])
    return element("a", {"href": "#examples", "class": "to-example", "data-example": named}, str(row.example_id)[:80])


def error_table(facts: RunFacts) -> Child:
    """Group what failed by its kind, with the first of each."""
    parts: list[Child] = []
    kinds = (("error", "Rows that failed", facts.errors), ("no score", "Rows without a score", facts.unscored))
    for title, caption, found in kinds:
        if found:
            parts.append(_group(facts, title, caption, found))
    if not facts.seen:
        return element("p", {"class": "missing"}, "Not measured: the rows were not kept.")
    if not facts.errors:
        parts.insert(0, element("p", None, f"None of {facts.seen:,} rows failed."))
    return join(*parts)


def _group(facts: RunFacts, title: str, caption: str, found: Mapping[str, Failure]) -> Markup:
    most = sorted(found.items(), key=lambda item: (-sum(item[1].count.values()), item[0]))[:50]
    lines: list[list[Child]] = [
        [
            kind,
            f"{sum(failure.count.values()):,}",
            ", ".join(f"{name} {count:,}" for name, count in failure.count.items()),
            element("span", {"class": "long"}, failure.message[:300]),
            link_example(facts.name, failure.example),
        ]
        for kind, failure in most
    ]
    return table([title, "rows", "by system", "first message", "first example"], lines, caption, "words failures")


def describe_method(facts: RunFacts) -> Markup:
    """List everything that a repetition needs."""
    lines: list[list[Child]] = [[name, _show(value)] for name, value in _list_settings(facts) if value not in _EMPTY]
    return table(["setting", "value"], lines, "How it was measured", "words method")


_EMPTY: tuple[Any, ...] = (None, "", [], {})


def _list_settings(facts: RunFacts) -> Iterator[tuple[str, Any]]:
    settings = facts.result.settings
    command = shlex.join(map(str, settings.command))
    yield "command", command and f"context-bench {command}"
    yield "run file", settings.run_file
    yield "run", facts.name
    yield "started", facts.created
    yield "context-bench", settings.version
    yield "Python", settings.python
    yield "systems", settings.systems
    yield "model", settings.model
    sources = settings.sources
    for tag, count in settings.datasets.items():
        yield f"dataset {tag or '(no tag)'}", {"examples": f"{count:,}", **_flatten(sources.get(tag))}
    yield "which examples", settings.sample if settings.max_examples else "all"
    yield "at most", settings.max_examples
    yield "seed", settings.seed
    yield "repeats", settings.repeats
    yield "score that counts", settings.score_field
    yield "primary score", settings.primary
    yield "primary score of contexts", settings.context_primary
    yield "a pass needs a score of", settings.threshold
    yield "reasoning is scored", "yes" if settings.keep_reasoning else None
    yield "baseline", facts.baseline
    yield "margin", settings.margin
    yield "evaluators", settings.evaluators
    yield "metrics", [each.get("name", "") for each in settings.metrics if isinstance(each, Mapping)]
    yield "tokenizer", settings.tokenizer
    yield "prices", settings.prices
    yield "behind the systems", settings.reports
    yield "time of each system", {name: seconds(value) for name, value in facts.result.timing.items()}
    yield "examples at a time", settings.workers
    yield "rows from the cache", settings.reused
    yield "stopped early", settings.stopped
    yield "systems that were stopped", settings.stopped_systems


def _flatten(source: Any) -> dict[str, Any]:
    return dict(source) if isinstance(source, Mapping) else {} if source is None else {"source": source}


def _show(value: Any) -> Child:
    if isinstance(value, Mapping):
        shown = [element("li", None, f"{key}: ", _inline(item)) for key, item in value.items() if item not in _EMPTY]
        return element("ul", None, *shown)
    if isinstance(value, str) and ("\n" in value or value.startswith("context-bench ")):
        return element("pre", None, value)
    return _inline(value)


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(
            f"{str(key).replace('_', ' ')} {_inline(item)}" for key, item in value.items() if item not in _EMPTY
        )
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)
