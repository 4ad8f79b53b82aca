"""`context-bench memory`: memory systems on conversations, each written once, at equal budgets and with one reader."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from context_bench.cli.flags import STORE
from context_bench.cli.memory_flags import memory_parser

if TYPE_CHECKING:
    from context_bench.memory.arm import SharedReader
    from context_bench.results import EvalResult
    from context_bench.tap.answering import Answerer

__all__ = ["main"]

_TOLERATED = "10%"
_WORKERS = 8
_MODEL = "gpt-4o-mini"


def main(arguments: Sequence[str]) -> int:
    """Run what the flags say."""
    flags = memory_parser().parse_args(arguments[1:])
    from context_bench.cli.messages import show_messages
    from context_bench.cli.output import choose_form

    flags.output = choose_form(flags.output, flags.out)
    with show_messages(quiet=flags.quiet, verbose=False):
        return _measure(flags, list(arguments))


def _measure(flags: argparse.Namespace, arguments: list[str]) -> int:
    from context_bench.cli.outcome import advise_resume, tell_outcome
    from context_bench.cli.output import build_reporter, open_destination, table_width, wants_color, write_report
    from context_bench.cli.recorded_command import mask_arguments
    from context_bench.errors import ContextBenchError, Interrupted, find_result
    from context_bench.monitors.limits import Limits

    store = None if flags.no_store else flags.cache_dir or STORE
    width = table_width(wide=flags.wide, out=flags.out)
    reporter = build_reporter(flags.output, width, store, color=wants_color(flags.out))
    failure: BaseException | None = None
    with (
        open_destination(flags.out, quiet=flags.quiet) as write,
        open_destination(flags.report, quiet=flags.quiet, flag="--report") as write_page,
    ):
        try:
            with redirect_stdout(sys.stderr):  # what a user's system prints must not get into the report
                result = _evaluate(flags, arguments, store)
        except (ContextBenchError, Interrupted) as error:
            failure, found = error, find_result(error)
            if found is None or not found.rows:
                raise
            result = found
        write_report(write, reporter, flags.output, result)
        if flags.report is not None:
            write_report(write_page, build_reporter("html", None, store), "html", result)
    if not flags.quiet:
        tell_outcome(result, failure=failure)
    if isinstance(failure, Interrupted):
        failure.advice = advise_resume(mask_arguments(arguments), kept=not flags.no_store)
    if failure is not None:
        raise failure
    failed = Limits(max_errors=_TOLERATED).is_exceeded(result.summary)
    return 3 if failed or result.settings.stopped or result.settings.stopped_systems else 0


def _evaluate(flags: argparse.Namespace, arguments: list[str], store: str | None) -> EvalResult:
    from context_bench.cli.recorded_command import mask_arguments
    from context_bench.errors import UsageError
    from context_bench.http import find_key
    from context_bench.memory import BUDGETS, evaluate_memory
    from context_bench.pricing import Prices
    from context_bench.refs import import_code
    from context_bench.registry import registry

    for code in flags.imports:
        import_code(code)
    if not flags.system:
        known = ", ".join(registry.list("memory_system"))
        raise UsageError(f"no memory system to measure: add --system NAME ({known}), module:object or file.py:object")
    if not flags.dataset:
        known = ", ".join(registry.list("memory_dataset"))
        raise UsageError(f"no dataset: add --dataset NAME ({known}) or FILE.jsonl")
    if flags.fresh and flags.resume:
        raise UsageError("--fresh and --resume are opposites: give one of them")
    answerer = _choose_answerer(flags)
    reader = _build_reader(flags, answerer)
    key = find_key(flags.tap_forward, variable=flags.api_key_env) if flags.tap_forward else None
    return evaluate_memory(
        flags.system,
        flags.dataset,
        reader=reader,
        answerer=answerer,
        model=flags.model or _MODEL,
        embedding_model=flags.embedding_model,
        api_key=None if key is None else key.reveal(),
        granularity=flags.granularity,
        budgets=flags.budget or BUDGETS,
        top_k=flags.top_k,
        answers=flags.answers,
        max_conversations=flags.max_conversations,
        types=flags.types,
        timeout=flags.timeout,
        quiet=flags.flush_quiet,
        max_quiet=flags.flush_limit,
        seed=flags.seed,
        data_dir=flags.data_dir,
        extra=_build_extra(flags),
        tokenizer=flags.tokenizer,
        prices=Prices.from_file(flags.prices) if flags.prices else None,
        cache_dir=store,
        reuse=(flags.cache_dir is not None or flags.resume) and not flags.fresh,
        cache_tag=flags.cache_tag,
        keep_rows=True,
        progress=not flags.quiet,
        baseline=flags.baseline,
        margin=flags.margin,
        fixed_groups=flags.fixed_groups,
        score_field=flags.score_field,
        threshold=flags.threshold,
        keep_reasoning=flags.keep_reasoning,
        max_workers=flags.max_workers or (_WORKERS if reader is not None else None),
        config={"command": mask_arguments(arguments), "seed": flags.seed, "model_given": flags.model is not None},
    )


def _choose_answerer(flags: argparse.Namespace) -> Answerer | None:
    """Choose who answers behind the taps; nobody where no flag says."""
    from context_bench.cli.answerers import choose_answerer
    from context_bench.errors import UsageError
    from context_bench.tap.answering import Shared

    given = [flags.tap_forward, flags.tap_model, flags.tap_reply]
    if sum(each is not None for each in given) > 1:
        raise UsageError(
            "only one can answer behind the taps: --tap-forward URL, --tap-model local or --tap-reply SCRIPT"
        )
    return Shared(choose_answerer(*given)) if any(given) else None


def _build_reader(flags: argparse.Namespace, answerer: Answerer | None) -> SharedReader | None:
    """Build the reader: the server of --reader, else whoever answers behind the taps, else the script."""
    from context_bench.http import find_key
    from context_bench.http.secrets import check_url
    from context_bench.memory.arm import SharedReader
    from context_bench.systems import OpenAIProxy
    from context_bench.tap.address import free_port
    from context_bench.tap.server import Tap
    from context_bench.traits import is_script

    url = flags.reader or flags.tap_forward
    made: dict[str, Any] = {"model": flags.model or _MODEL, "name": "reader", "timeout": flags.timeout}
    if url is not None:
        return SharedReader(OpenAIProxy(url, api_key=find_key(check_url(url), variable=flags.api_key_env), **made))
    if answerer is None:
        return None
    tap = Tap(answerer, port=free_port())
    known_as = None if answerer.fingerprint is None else f"{answerer.fingerprint} {made['model']}"
    return SharedReader(OpenAIProxy(tap.url, **made), tap, known_as, is_script=is_script(answerer))


def _build_extra(flags: argparse.Namespace) -> list[Any]:
    """Build the evaluators that the user adds, and the judge."""
    from context_bench.evaluators.adapt import build_evaluators

    return [each for text in flags.evaluator for each in build_evaluators(text)] + _build_judges(flags)


def _build_judges(flags: argparse.Namespace) -> list[Any]:
    """Build the judge that the flags name; one that would judge its own answers is refused unless asked for."""
    if not (flags.judge_url or flags.judge_model or flags.judge_key_env):
        return []
    from context_bench.cli.memory_judge_check import build_memory_judge
    from context_bench.errors import UsageError

    judge = build_memory_judge(flags)
    if judge.model == (flags.model or _MODEL) and not flags.judge_itself:
        problem = f"{judge.model} would judge its own answers"
        raise UsageError(f"{problem}: choose another --judge-model, or add --judge-itself")
    return [judge]
