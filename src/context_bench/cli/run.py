"""A run: from flags to a result, from the result to a report and an exit code."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from context_bench.cli.parser import MODELS, STORE, run_parser

__all__ = ["main"]

TOLERATED_ERRORS = "10%"
TIMEOUT, LOCAL_TIMEOUT = 30.0, 600.0
"""Seconds for one attempt; a model on this machine reads slowly."""


def main(arguments: Sequence[str], run_file: str | None = None, typed: Sequence[str] | None = None) -> int:
    """Run what the flags say; `run_file` is the text of the file that they came from, `typed` what named that file."""
    options = run_parser().parse_args(arguments)
    from context_bench.cli.masking import mask_arguments

    options.command = mask_arguments(arguments)
    options.typed = options.command if typed is None else mask_arguments(typed)
    options.run_file = run_file
    # A model or script of this machine answers whatever it is asked for.
    options.model_given = bool(options.model or options.tap_model or options.tap_reply)
    options.model = options.model or MODELS[options.api]
    options.timeout = options.timeout or (LOCAL_TIMEOUT if options.tap_model else TIMEOUT)
    from context_bench.cli.output import choose_form, notes  # after the flags are read: --help needs none of it

    options.output = choose_form(options.output, options.out)
    with notes(options):
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    import sys
    from contextlib import redirect_stdout

    from context_bench.cli.build import build_metrics

    with redirect_stdout(sys.stderr):  # what a user's code prints when it is loaded must not get into the report
        systems, datasets, scorer = _build(options)
        metrics = [] if options.dry_run else build_metrics(options, datasets.tags, len(systems))
    if options.dry_run:
        from context_bench.cli.dry_run import dry_run

        return dry_run(options, systems, datasets)
    return _measure(options, systems, datasets, scorer, metrics)


def _build(options: argparse.Namespace) -> tuple[list[Any], Any, Any]:
    """The systems, the datasets, and what scores them."""
    from context_bench.cli.build import build_scorer, build_system_list
    from context_bench.datasets.files import parse_mapping
    from context_bench.datasets.load import Choices, open_datasets
    from context_bench.errors import UsageError
    from context_bench.refs import import_code
    from context_bench.utils.tokens import set_tokenizer

    for code in options.imports:
        import_code(code)
    if options.tokenizer:
        set_tokenizer(options.tokenizer)
    systems = build_system_list(options)
    if not systems:
        raise UsageError("no system to measure: add --proxy URL or --system NAME (context-bench systems lists them)")
    if not options.dataset:
        raise UsageError("no dataset: add --dataset NAME or FILE (context-bench datasets lists them)")
    choices = Choices(
        seed=options.seed,
        limit=options.max_examples,
        sample=options.sample,
        data_dir=options.data_dir,
        revision=options.revision,
        mapping=parse_mapping(options.map) if options.map else None,
    )
    datasets = open_datasets(options.dataset, choices)
    return systems, datasets, build_scorer(options, datasets.tags)


def _measure(options: argparse.Namespace, systems: list[Any], datasets: Any, scorer: Any, metrics: list[Any]) -> int:
    from context_bench.caveats import find_unscored
    from context_bench.cli.output import build_reporter, destination, resume_line, tell, tell_stops, write_report
    from context_bench.engine.limits import Limits
    from context_bench.errors import ContextBenchError, Interrupted, find_result

    reporter = build_reporter(options, options.output)
    limits = Limits(options.max_cost, options.max_total_tokens, options.max_errors)
    failure: BaseException | None = None
    with destination(options.out) as write:
        try:
            result = _evaluate(options, systems, datasets, scorer, metrics, limits)
        except (ContextBenchError, Interrupted) as error:
            failure, result = error, find_result(error)
            if result is None:
                raise
        if failure is not None and not any(values.get("num_examples") for values in result.summary.values()):
            raise failure  # nothing was done: there is nothing to report
        write_report(write, reporter, options.output, result)
    tolerated = Limits(max_errors=options.max_errors or TOLERATED_ERRORS)
    stopped = result.config.get("stopped") or result.config.get("stopped_systems")
    unscored = find_unscored(result.summary, result.notes, result.config)
    unmeasured = result.config.get("failed_metrics")
    code = 3 if stopped or unscored or unmeasured or tolerated.exceeded(result.summary) else 0
    if options.quiet:
        tell_stops(result, systems=True)
    else:
        tell(result, verbose=options.verbose)
    if isinstance(failure, Interrupted):
        failure.advice = resume_line(options)
    if failure is not None:
        raise failure
    return code


def _evaluate(
    options: argparse.Namespace, systems: list[Any], datasets: Any, scorer: Any, metrics: list[Any], limits: Any
) -> Any:
    import sys
    from contextlib import redirect_stdout

    from context_bench.errors import UsageError
    from context_bench.pricing import Prices
    from context_bench.runner import evaluate

    if options.max_cost is not None and not options.prices:
        raise UsageError("--max-cost needs --prices FILE: without prices nothing is known to cost anything")
    if options.fresh and options.resume:
        raise UsageError("--fresh and --resume are opposites: give one of them")
    with redirect_stdout(sys.stderr):  # what a user's system prints must not get into the report
        return evaluate(
            systems,
            datasets,
            evaluators=scorer,
            metrics=metrics,
            progress=not options.quiet,
            max_workers=options.max_workers,
            cache_dir=None if options.no_store else options.cache_dir or STORE,
            reuse=(options.cache_dir is not None or options.resume) and not options.fresh,
            cache_tag=options.cache_tag,
            keep_rows=not options.no_rows,
            tokenizer=options.tokenizer,
            repeats=options.repeats,
            limits=limits,
            preflight=not options.no_preflight,
            debug=options.pdb,
            prices=Prices.from_file(options.prices) if options.prices else None,
            score_field=None if options.score_field == "auto" else options.score_field,
            config={
                "command": options.command,
                "threshold_given": options.threshold is not None,
                "run_file": options.run_file,
                "seed": options.seed,
                "model": _asked_models(systems),
                "model_given": options.model_given,
                "max_examples": options.max_examples,
                "sample": options.sample,
                "sources": datasets.facts(),
            },
        )


def _asked_models(systems: Sequence[Any]) -> str | None:
    """The model that is asked for, however it is asked; several in their order."""
    from context_bench.traits import find_model

    names = dict.fromkeys(name for each in systems if (name := find_model(each)) is not None)
    return ", ".join(names) or None
