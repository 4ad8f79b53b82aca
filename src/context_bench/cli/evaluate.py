"""`context-bench` with flags alone: turn flags into a result, and the result into a report and an exit code."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from context_bench.cli.commands import first_steps, run_parser
from context_bench.cli.flags import read_values
from context_bench.config import DEFAULT_MARGIN, EvaluateOptions, RunOptions

if TYPE_CHECKING:
    from context_bench.cli.gate import RunGate
    from context_bench.core.judge import Scorer
    from context_bench.datasets.open import Choices
    from context_bench.results import EvalResult
    from context_bench.types import Metric

TOLERATED_ERRORS = "10%"
TIMEOUT, LOCAL_TIMEOUT = 30.0, 600.0  # seconds for one attempt; local models are slow


def main(
    arguments: Sequence[str],
    run_file: str | None = None,
    typed: Sequence[str] | None = None,
    from_file: Mapping[str, Sequence[str]] | None = None,
) -> int:
    """Run a benchmark from flags, run file and environment; `typed` is the command line that named the run file."""
    if not arguments and typed is None:
        sys.stderr.write(first_steps())
        return 2
    given, flags, origins = read_values(run_parser(), RunOptions, arguments, from_file)
    # imported here, as --help needs none of it
    from context_bench.cli.messages import show_messages
    from context_bench.cli.output import choose_form
    from context_bench.cli.recorded_command import mask_arguments
    from context_bench.wire.forms import get_form

    options = RunOptions(**given, command=mask_arguments(flags), run_file=run_file, origins=origins)
    options.typed = mask_arguments(arguments if typed is None else typed)
    options.output = choose_form(options.output, options.out)
    if not any(flag.partition("=")[0] == "--api" for flag in flags):
        options.api = _find_recorded_api(options) or options.api
    # a local model or script accepts any model name
    options.model_given = bool(options.model or options.tap_model or options.tap_reply)
    options.model = options.model or get_form(options.api).default_model
    options.timeout = options.timeout or (LOCAL_TIMEOUT if options.tap_model else TIMEOUT)
    with show_messages(quiet=options.silent, verbose=options.verbose):
        return _run(options)


def _find_recorded_api(options: RunOptions) -> str | None:
    """If a dataset is a recording, find its API; the run uses this API unless `--api` names another."""
    if not (options.proxy or options.wants_tap) or not any(Path(name).exists() for name in options.dataset):
        return None
    from context_bench.cli.messages import say
    from context_bench.datasets.recordings import find_recorded_api
    from context_bench.wire.forms import FORMS

    api = find_recorded_api(options.dataset)
    if api is None or api == options.api or api not in {form.name for form in FORMS}:
        return None
    if not options.silent:
        say(f"using --api {api}, the API of the recording; pass another --api to convert the recording")
    return api


def _run(options: RunOptions) -> int:
    from context_bench.cli.build_scoring import ScoringOptions, build_metrics
    from context_bench.cli.gate import RunGate

    _check_flags(options)
    gate = RunGate.read(options)
    with redirect_stdout(sys.stderr):  # output of user code while it loads must not mix with the report
        systems, datasets, scorer = _build(options)
        metrics = build_metrics(ScoringOptions.read(options), datasets.tags, len(systems))
        allowed = _check_gate(gate, options, systems, metrics, datasets, scorer)
    if options.dry_run:
        from context_bench.cli.dry_run import dry_run
        from context_bench.compare.verdicts import choose_baseline
        from context_bench.systems.adapt import add_twin

        choose_baseline([each.name for each in systems], options.baseline)
        if options.aa:
            systems, _ = add_twin(systems, options.baseline)
        return dry_run(options, systems, datasets, scorer)
    with gate.open(allowed) as opened:
        return _measure(options, systems, datasets, scorer, metrics, opened)


def _check_flags(options: RunOptions) -> None:
    from context_bench.cli.output import check_destinations
    from context_bench.compare.verdicts import check_margin
    from context_bench.errors import UsageError

    if options.fresh and options.resume:
        raise UsageError("--fresh and --resume exclude each other: pass one of them")
    if options.no_store and options.resume:
        raise UsageError("--resume needs the store, which --no-store disables: pass one of them")
    if options.slice and not options.keep_rows:
        raise UsageError("--slice needs rows: remove --no-rows")
    if options.margin is not None:
        check_margin(options.margin)
    check_destinations(
        {"--out": options.out, "--report": options.report, "--junit": options.junit, "--summary": options.summary}
    )


def _check_gate(
    gate: RunGate, options: RunOptions, systems: Sequence[Any], metrics: Sequence[Metric], datasets: Any, scorer: Scorer
) -> list[str]:
    """Refuse conditions that this run cannot answer, before any request is sent; return the possible numbers."""
    if not gate.conditions:
        return []
    from context_bench.cli.gate import check_gate, tell_needs
    from context_bench.compare.gates import check_conditions
    from context_bench.traits import system_traits

    controls = [each.name for each in systems if not system_traits(each).competes]
    check_conditions(gate.conditions, [each.name for each in systems], options.baseline, controls)
    allowed = check_gate(gate.conditions, systems, metrics, datasets, scorer)
    tell_needs(gate.conditions, datasets, options.margin or DEFAULT_MARGIN, quiet=options.silent)
    return allowed


def _build(options: RunOptions) -> tuple[list[Any], Any, Scorer]:
    from context_bench.cli.build_scoring import ScoringOptions, build_scorer
    from context_bench.cli.build_systems import build_system_list
    from context_bench.datasets.open import open_datasets
    from context_bench.errors import UsageError
    from context_bench.refs import import_all
    from context_bench.utils.tokens import set_tokenizer

    import_all(options.imports)
    if options.tokenizer:
        set_tokenizer(options.tokenizer)
    systems = build_system_list(options)
    if not systems:
        raise UsageError("no system to measure: add --proxy URL or --system NAME (context-bench systems lists them)")
    if not options.dataset:
        raise UsageError("no dataset: add --dataset NAME or FILE (context-bench datasets lists them)")
    datasets = open_datasets(options.dataset, _choose_examples(options, options.max_examples, options.sample))
    return systems, datasets, build_scorer(ScoringOptions.read(options), datasets.tags)


def _choose_examples(options: RunOptions, limit: int | None, sample: str | None) -> Choices:
    from context_bench.datasets.files import parse_mapping
    from context_bench.datasets.open import Choices

    mapping = parse_mapping(options.map) if options.map else None
    return Choices(options.seed, limit, sample, options.data_dir, options.revision, mapping)


CHECKED_GOLDS = 5  # examples of each dataset whose gold answers are scored before a run


def _check_golds(options: RunOptions) -> None:
    """Warn of datasets whose own evaluators refuse the gold answers of the first examples.

    A user's loaders are not checked: they may be slow, or yield their examples only once.
    """
    from context_bench.cli.messages import say
    from context_bench.datasets.open import open_datasets
    from context_bench.errors import ContextBenchError
    from context_bench.refs import parse
    from context_bench.registry import registry
    from context_bench.testing.gold_check import ONE_CONTEXT, check_golds

    known = registry.list("dataset")
    for text in options.dataset:
        if not os.path.exists(text) and parse("dataset", text)[0].target not in known:
            continue
        try:
            check = check_golds(open_datasets([text], _choose_examples(options, CHECKED_GOLDS, "first")))
        except ContextBenchError:
            continue  # the run itself reports the error
        if check.shares_context and check.examples == CHECKED_GOLDS:
            say(f"warning: {text}: of the first {check.examples} examples, {ONE_CONTEXT}")
        if not check.is_sound:
            faults = "; ".join(check.describe_faults())
            say(f"warning: {text}: {faults}; details: context-bench datasets check {shlex.quote(text)}")


def _measure(
    options: RunOptions, systems: list[Any], datasets: Any, scorer: Scorer, metrics: list[Metric], gate: RunGate
) -> int:
    from context_bench.caveats import find_unscored
    from context_bench.cli.output import advise_resume, report_run
    from context_bench.errors import Interrupted
    from context_bench.monitors.limits import Limits

    if options.plots is not None:
        from context_bench.output.page.html_page import check_plots

        check_plots(options.plots)
    _check_golds(options)
    result, failure = report_run(
        options, lambda: _evaluate(options, systems, datasets, scorer, metrics), verbose=options.verbose
    )
    if options.plots is not None:
        _write_plots(options, options.plots, result)
    tolerated = Limits(max_errors=options.max_errors or TOLERATED_ERRORS)
    stopped = result.settings.stopped or result.settings.stopped_systems
    unscored = find_unscored(result.summary, result.notes, result.config)
    unmeasured = result.settings.failed_metrics
    code = 3 if stopped or unscored or unmeasured or tolerated.is_exceeded(result.summary) else 0
    if isinstance(failure, Interrupted):
        # A run file may set `fresh`, and no flag can unset it.
        words = options.typed if "--fresh" in options.typed or not options.fresh else options.command
        failure.advice = advise_resume(words, kept=not options.no_store)
    if failure is not None:
        raise failure
    return pass_gate(gate, result) or code


def _write_plots(options: RunOptions, folder: str, result: EvalResult) -> None:
    from context_bench.cli.messages import say
    from context_bench.output.page.html_page import write_plots

    for sentence in write_plots(result, folder, options.store_folder):
        if not options.silent:
            say(sentence)


def pass_gate(gate: RunGate, result: EvalResult) -> int:
    """Judge the conditions, write the gate's files, and return its exit code."""
    from context_bench.output.files import build_reporter

    outcomes = []
    if gate.conditions:
        from context_bench.compare.gates import list_candidates
        from context_bench.errors import UsageError

        try:
            outcomes = gate.judge(list_candidates(result))
        except UsageError as error:
            again = "; the run is recorded; --resume repeats no request" if result.settings.run else ""
            raise UsageError(f"{error}{again}") from None
    return gate.write(outcomes, build_reporter("table", None).render(result) if gate.wants_report else "")


def _evaluate(
    options: RunOptions, systems: list[Any], datasets: Any, scorer: Scorer, metrics: list[Metric]
) -> EvalResult:
    """Call `evaluate()` with the options, renamed where its parameters have other names."""
    from context_bench.cli.messages import say
    from context_bench.monitors.limits import Limits
    from context_bench.pricing import Prices
    from context_bench.runner import evaluate
    from context_bench.traits import find_model

    models = dict.fromkeys(name for each in systems if (name := find_model(each)) is not None)
    given = {name: getattr(options, name) for name in EvaluateOptions.declared()}
    baseline, margin, plan = _follow_plan(options, [each.name for each in systems])
    given |= {
        "systems": systems,
        "dataset": datasets,
        "evaluators": scorer,
        "metrics": metrics,
        "max_examples": None,  # each dataset already has its own limit
        "progress": not options.silent,
        "cache_dir": options.store_folder,
        "reuse": options.reuses_answers,
        "limits": Limits.read(options),
        "prices": Prices.from_file(options.prices_file) if options.prices_file else None,
        "score_field": options.chosen_score_field,
        "threshold": None,  # part of the metrics
        "baseline": baseline,
        "margin": margin,
        "engine": _build_engine(options),
        "config": {
            "command": options.command,
            **({"origins": options.origins} if options.origins else {}),
            **({"slices": options.slice} if options.slice else {}),
            **({"volume": options.volume} if options.volume else {}),
            "threshold_given": options.threshold is not None,
            "run_file": options.run_file,
            "seed": options.seed,
            "model": ", ".join(models) or None,
            "model_given": options.model_given,
            "max_examples": options.max_examples,
            "sample": options.sample,
            "sources": datasets.facts(),
            **plan,
        },
    }
    if not options.model_given and not options.silent and models:
        say(f"no --model was given: servers are asked for {options.model}")
    return evaluate(**given)


def _follow_plan(options: RunOptions, systems: Sequence[str]) -> tuple[str | None, float | None, dict[str, Any]]:
    """Return baseline and margin from the flags or the file of --plan, and the record of that plan."""
    if options.plan is None:
        return options.baseline, options.margin, {}
    from context_bench.compare.plans import count_earlier, read_lock
    from context_bench.store import Store

    lock = read_lock(Path(options.plan))
    earlier = None
    if options.store_folder is not None:
        earlier = 0
        if os.path.isdir(options.store_folder):
            with Store(options.store_folder, readonly=True, create=False) as store:
                earlier = count_earlier(lock, (info.config for info in store.runs()))
    # a planned baseline that is not among the systems is a deviation, which the report lists
    baseline = options.baseline or (lock.baseline if lock.baseline in systems else None)
    record = {"plan": {"file": options.plan, "lock": lock.to_dict(), "earlier_runs": earlier}}
    return baseline, options.margin or lock.margin, record


def _build_engine(options: RunOptions) -> Any:
    from context_bench.errors import UsageError

    if options.engine == "ray":
        from context_bench.ray.ray_engine import RayEngine

        return RayEngine(options.ray_address, options.system_resources)
    for flag, value in (("--ray-address", options.ray_address), ("--system-resources", options.system_resources)):
        if value is not None:
            raise UsageError(f"{flag} works only on a cluster: add --engine ray")
    return options.engine
