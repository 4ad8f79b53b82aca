"""`context-bench memory`: compare memory systems at equal budgets; each conversation is written once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_groups, read_values
from context_bench.config import EvaluateOptions
from context_bench.memory.options import MEMORY_GROUPS, MemoryOptions, MemoryParameters

if TYPE_CHECKING:
    from context_bench.cli.gate import RunGate
    from context_bench.memory.arm import SharedReader
    from context_bench.results import EvalResult
    from context_bench.tap.answering import Shared

_EXAMPLE = """\
example:
  context-bench memory --system naive --system bm25 --system last:n=20 \\
      --dataset synthetic-memory
"""

TOLERATED_ERRORS = "10%"
READER_WORKERS = 8
DEFAULT_MODEL, DEFAULT_EMBEDDING_MODEL = "gpt-4o-mini", "text-embedding-3-small"


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench memory", description=f"{_EXAMPLE}\n{COMMANDS['memory']}", allow_abbrev=False)
    add_groups(parser, MemoryOptions, MEMORY_GROUPS)
    given, flags, origins = read_values(parser, MemoryOptions, arguments[1:])
    from context_bench.cli.messages import show_messages
    from context_bench.cli.output import choose_form
    from context_bench.cli.recorded_command import mask_arguments

    options = MemoryOptions(**given, command=mask_arguments([arguments[0], *flags]), origins=origins)
    options.output = choose_form(options.output, options.out)
    options.model = options.model or DEFAULT_MODEL
    with show_messages(quiet=options.silent, verbose=False):
        return _measure(options, mask_arguments(arguments), model_given="model" in given)


def _measure(options: MemoryOptions, typed: Sequence[str], *, model_given: bool) -> int:
    from context_bench.cli.evaluate import pass_gate
    from context_bench.cli.gate import RunGate
    from context_bench.cli.output import advise_resume, report_run
    from context_bench.errors import Interrupted
    from context_bench.monitors.limits import Limits

    _check(options)
    gate = RunGate.read(options)
    _check_conditions(gate)
    if options.dry_run:
        from context_bench.cli.memory_dry_run import dry_run

        return dry_run(options, options.embedding_model or DEFAULT_EMBEDDING_MODEL, _build_judges(options))
    with gate.open() as opened:
        result, failure = report_run(options, lambda: _evaluate(options, model_given=model_given))
        if isinstance(failure, Interrupted):
            failure.advice = advise_resume(typed, kept=not options.no_store)
        if failure is not None:
            raise failure
        failed = Limits(max_errors=options.max_errors or TOLERATED_ERRORS).is_exceeded(result.summary)
        if options.save_contexts:
            _save_contexts(options, result)
        code = 3 if failed or result.settings.stopped or result.settings.stopped_systems else 0
        return pass_gate(opened, result) or code


def _save_contexts(options: MemoryOptions, result: EvalResult) -> None:
    from context_bench.cli.output import open_destination
    from context_bench.memory.contexts import list_contexts
    from context_bench.store import Store

    assert options.store_folder is not None
    assert result.settings.run is not None
    with (
        Store(options.store_folder, readonly=True, create=False) as store,
        open_destination(options.save_contexts, quiet=options.silent, flag="--save-contexts") as write,
    ):
        write(list_contexts(store.run_records(store.run(result.settings.run)), result.settings.reports))


def _check_conditions(gate: RunGate) -> None:
    """Refuse conditions on numbers that no run has, before any request is sent."""
    from context_bench.errors import UsageError, suggest
    from context_bench.numbers import NUMBERS

    for each in gate.conditions:
        known = each.kind == "verdict" or each.metric in ("score", *NUMBERS) or ":" in each.metric
        if not known and not each.metric.startswith(("probe_", "answer_", "store_")):
            hint = suggest(each.metric, NUMBERS, 0.7)
            raise UsageError(
                f"--fail-if {each.text!r}: {each.metric!r} is not a number of this run{hint and f'; {hint}'}"
            )


def _check(options: MemoryOptions) -> None:
    """Load the user's registrations, and refuse options that cannot work."""
    from context_bench.errors import UsageError
    from context_bench.refs import import_all
    from context_bench.registry import registry

    import_all(options.imports)
    if not options.system and not options.contexts:
        known = ", ".join(registry.list("memory_system"))
        raise UsageError(f"no memory system to measure: add --system NAME ({known}), module:object or file.py:object")
    if not options.dataset:
        known = ", ".join(registry.list("memory_dataset"))
        raise UsageError(f"no dataset: add --dataset NAME ({known}) or FILE.jsonl")
    if options.save_contexts and options.no_store:
        raise UsageError("--save-contexts needs the store: remove --no-store")
    if not options.no_bm25 and not any(re.match(r"bm25\b", text) for text in options.system):
        options.system = [*options.system, "bm25"]
    if options.fresh and options.resume:
        raise UsageError("--fresh and --resume exclude each other: pass one of them")


def _evaluate(options: MemoryOptions, *, model_given: bool) -> EvalResult:
    from context_bench.cli.messages import say
    from context_bench.evaluators.adapt import build_evaluators
    from context_bench.http import find_key
    from context_bench.memory import evaluate_memory
    from context_bench.monitors.limits import Limits
    from context_bench.pricing import Prices

    answerer = _choose_answerer(options)
    reader = _build_reader(options, answerer)
    if not model_given and reader is not None and not options.silent:
        say(f"no --model was given: the reader asks for {options.model}")
    key = find_key(options.tap_forward, variable=options.api_key_env) if options.tap_forward else None
    typed = any(re.match(r"(--system=)?bm25\b", word) for word in options.command)
    names = (*EvaluateOptions.declared(), *MemoryParameters.declared())
    given = {name: getattr(options, name) for name in names} | {
        "systems": options.system,
        "reader": reader,
        "answerer": answerer,
        "embedding_model": options.embedding_model or DEFAULT_EMBEDDING_MODEL,
        "api_key": None if key is None else key.reveal(),
        "extra": [each for text in options.evaluator for each in build_evaluators(text)] + _build_judges(options),
        "prices": Prices.from_file(options.prices_file) if options.prices_file else None,
        "cache_dir": options.store_folder,
        "reuse": options.reuses_answers,
        "progress": not options.silent,
        "score_field": options.chosen_score_field,
        "limits": Limits.read(options),
        "max_workers": options.max_workers or (READER_WORKERS if reader is not None else None),
        "config": {
            "command": options.command,
            **({"origins": options.origins} if options.origins else {}),
            **({} if options.no_bm25 or typed else {"added_systems": ["bm25"]}),
            **({"slices": options.slice} if options.slice else {}),
            **({"volume": options.volume} if options.volume else {}),
            "seed": options.seed,
            "model_given": model_given,
        },
    }
    return evaluate_memory(**given)


def _choose_answerer(options: MemoryOptions) -> Shared | None:
    from context_bench.cli.build_systems import choose_answerer
    from context_bench.errors import UsageError
    from context_bench.tap.answering import Shared

    given = [options.tap_forward, options.tap_model, options.tap_reply]
    if sum(each is not None for each in given) > 1:
        raise UsageError(
            "choose one source of answers behind the taps: --tap-forward URL, --tap-model local or --tap-reply SCRIPT"
        )
    return Shared(choose_answerer(*given), options.max_rpm) if any(given) else None


def _build_reader(options: MemoryOptions, answerer: Shared | None) -> SharedReader | None:
    """Build the reader: the server of --reader, else the model behind the taps, else the script."""
    from context_bench.http import find_key
    from context_bench.http.secrets import check_url
    from context_bench.memory.arm import SharedReader
    from context_bench.systems import OpenAIProxy
    from context_bench.tap.address import free_port
    from context_bench.tap.server import Tap
    from context_bench.traits import is_script

    url = options.reader or options.tap_forward
    made: dict[str, Any] = {"model": options.model, "name": "reader", "timeout": options.timeout}
    if url is not None:
        key = find_key(check_url(url), variable=options.api_key_env)
        shares = answerer is not None and url == options.tap_forward  # one server, so one limit
        reader = SharedReader(OpenAIProxy(url, api_key=key, max_rpm=None if shares else options.max_rpm, **made))
        reader.wait_for_turn = answerer.wait_for_turn if answerer is not None and shares else None
        return reader
    if answerer is None:
        return None
    tap = Tap(answerer, port=free_port())
    known_as = None if answerer.fingerprint is None else f"{answerer.fingerprint} {made['model']}"
    return SharedReader(OpenAIProxy(tap.url, **made), tap, known_as, is_script=is_script(answerer))


def _build_judges(options: MemoryOptions) -> list[Any]:
    """Build the judge of the flags; refuse one that would judge its own answers, unless --judge-itself is given."""
    from context_bench.cli.build_scoring import JudgeOptions, build_memory_judge
    from context_bench.errors import UsageError

    named = JudgeOptions.read(options)
    if not named.wanted:
        return []
    judge = build_memory_judge(named, options.judge_prompts)
    if judge.model == options.model and not options.judge_itself:
        problem = f"{judge.model} would judge its own answers"
        raise UsageError(f"{problem}: choose another --judge-model, or add --judge-itself")
    return [judge]
