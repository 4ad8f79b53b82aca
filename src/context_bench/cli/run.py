"""A run: from flags to systems, datasets and metrics, and from the result to a report and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from context_bench.cli.parser import run_parser

__all__ = ["main"]

PROXY_WORKERS = 8


def main(arguments: Sequence[str]) -> int:
    """Run what the flags say."""
    options = run_parser().parse_args(arguments)
    with _notes(options):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    from context_bench.datasets.load import open_datasets
    from context_bench.errors import DataError, UsageError
    from context_bench.refs import import_code
    from context_bench.registry import registry
    from context_bench.utils.tokens import set_tokenizer

    for code in options.imports:
        import_code(code)
    if options.tokenizer:
        set_tokenizer(options.tokenizer)
    systems = _systems(options)
    if not systems:
        raise UsageError("no system to measure: add --proxy URL or --system NAME (context-bench systems lists them)")
    if not options.dataset:
        raise UsageError("no dataset: add --dataset NAME or FILE (context-bench datasets lists them)")
    datasets = open_datasets(options.dataset, options.seed, options.max_examples)
    scorer, metrics = _scorer(options, datasets.tags), _metrics(options, len(datasets.tags), len(systems))
    reporter = registry.get("reporter", options.output)()
    failure: DataError | None = None
    with _destination(options.out) as write:
        try:
            result = _evaluate(options, systems, datasets, scorer, metrics)
        except DataError as error:
            if not hasattr(error, "result"):
                raise
            failure, result = error, error.result
        write(reporter.render(result))
    if not options.quiet:
        _tell(result)
    if failure is not None:
        raise failure
    return 3 if _too_many_errors(result, options.max_errors) else 0


def _evaluate(options: argparse.Namespace, systems: list[Any], datasets: Any, scorer: Any, metrics: list[Any]) -> Any:
    from context_bench.runner import evaluate

    return evaluate(
        systems,
        datasets,
        evaluators=scorer,
        metrics=metrics,
        progress=not options.quiet,
        max_workers=options.max_workers,
        tokenizer=options.tokenizer,
        config={"seed": options.seed, "model": options.model, "max_examples": options.max_examples},
    )


def _systems(options: argparse.Namespace) -> list[Any]:
    """The proxies in their order, then the other systems in theirs."""
    from context_bench.errors import UsageError
    from context_bench.http import find_key
    from context_bench.http.secrets import check_url
    from context_bench.systems import OpenAIProxy
    from context_bench.systems.load import build_systems

    if len(options.name) > len(options.proxy):
        raise UsageError(f"{len(options.name)} --name for {len(options.proxy)} --proxy: each names one proxy")
    systems: list[Any] = []
    for place, url in enumerate(options.proxy):
        name = options.name[place] if place < len(options.name) else None
        key = find_key(check_url(url), variable=options.api_key_env)
        proxy = OpenAIProxy(url, options.model, name, key)
        proxy.max_workers = PROXY_WORKERS
        systems.append(proxy)
    for text in options.system:
        systems.extend(build_systems(text, options.seed))
    return systems


def _scorer(options: argparse.Namespace, tags: Sequence[str]) -> Any:
    """What scores the rows; a score field that nobody emits is an error here, before anything is sent."""
    from context_bench.engine.scoring import Scorer
    from context_bench.errors import UsageError
    from context_bench.refs import call_with, parse, resolve

    extra = []
    for text in options.evaluator:
        for ref in parse("evaluator", text):
            found = resolve("evaluator", ref)
            extra.append(call_with(found, ref) if isinstance(found, type) else found)
    scorer = Scorer(extra=extra)
    if options.score_field != "auto":
        known = scorer.fields_for(tags)
        if known is not None and options.score_field not in known:
            raise UsageError(
                f"no evaluator emits {options.score_field!r} here; --score-field can be {', '.join(sorted(known))}"
            )
    return scorer


def _metrics(options: argparse.Namespace, datasets: int, systems: int) -> list[Any]:
    from context_bench.metrics import default_metrics
    from context_bench.refs import call_with, parse, resolve

    field = "score" if options.score_field == "auto" else options.score_field
    metrics: list[Any] = default_metrics(field, options.threshold, datasets=datasets, systems=systems)
    for text in options.metric:
        for ref in parse("metric", text):
            found = resolve("metric", ref)
            metrics.append(call_with(found, ref) if callable(found) else found)
    return metrics


@contextlib.contextmanager
def _destination(path: str | None) -> Iterator[Any]:
    """Where the report goes. A file is tried before the run, and replaced only when the report is whole."""
    if path is None:
        yield _print
        return
    from context_bench.errors import UsageError

    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        if target.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        if target.exists():
            target.open("a").close()
        draft.touch()
    except OSError as error:
        raise UsageError(f"cannot write to --out {path}: {error.strerror or error}") from error
    try:
        yield partial(draft.write_text, encoding="utf-8", errors="replace")
        if draft.stat().st_size:
            draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextlib.contextmanager
def _notes(options: argparse.Namespace) -> Iterator[None]:
    """Warnings as one line each, and the wire when it is asked for."""
    if options.verbose:
        logging.basicConfig(stream=sys.stderr, format="%(message)s")
        logging.getLogger("context_bench").setLevel(logging.DEBUG)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if options.quiet else "default")
        warnings.showwarning = lambda message, *_, **__: print(f"context-bench: {message}", file=sys.stderr)
        yield


def _tell(result: Any) -> None:
    """How many examples failed for each system, and how."""
    for name, values in result.summary.items():
        errors = [row.error for row in result.rows if row.system == name and row.error]
        if errors:
            total = int(values["num_examples"])
            print(f"context-bench: {name}: {len(errors)} of {total} failed, first: {errors[0]}", file=sys.stderr)


def _too_many_errors(result: Any, limit: str) -> bool:
    for values in result.summary.values():
        if limit.endswith("%"):
            if values["error_rate"] > float(limit[:-1]) / 100:
                return True
        elif values["num_errors"] > float(limit):
            return True
    return False
