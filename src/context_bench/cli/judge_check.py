"""`context-bench judge-check`: measure how often a judge accepts wrong answers and rejects right ones.

The package ships questions, each with a gold answer and four answers that are known to be right or wrong. The judge
rates these answers; the report shows the judge's error rates with intervals.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags
from context_bench.config import DEFAULT_THRESHOLD

if TYPE_CHECKING:
    from context_bench.memory.judge import MistakeRate
    from context_bench.results import EvalResult, EvalRow

PASS = DEFAULT_THRESHOLD
TOLERATED = 0.1
WORKERS = 8

KINDS = {"right": True, "paraphrased": True, "vague-wrong": False, "wrong": False}
"""The kinds of answers, and whether a good judge passes them."""

_EXAMPLE = """\
example:
  context-bench judge-check --judge-url http://localhost:9090 \\
      --judge-model gpt-4
"""

_MEMORY_NOTE = (
    "The rule for the question's type accepts or rejects each answer; n = answers that got a verdict. A false accept "
    "makes a memory look better than it is."
)
_NOTE = "pass = judge_score of at least {0}, a rating of 4 or 5; n = rated answers. {1}"


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench judge-check", description=f"{_EXAMPLE}\n{COMMANDS['judge-check']}")
    add_flags(parser, "judge_url", required=True, help="server of a model that rates answers")
    add_flags(parser, "judge_model", "judge_key_env", "prices_file", "max_cost", "max_total_tokens")
    parser.add_argument(
        "--memory", action="store_true", help="measure the judge of `context-bench memory`, with its own questions"
    )
    parser.add_argument("--judge-prompts", metavar="FILE", help="with --memory: wordings of the rules by type (TOML)")
    add_flags(parser, "max_workers", default=WORKERS, help="requests in flight (default: %(default)s)")
    add_flags(parser, "wide")
    add_flags(parser, "silent", help="show no progress")
    options = parser.parse_args(arguments[1:])
    if options.judge_prompts and not options.memory:
        parser.error("--judge-prompts is for the judge of memory: add --memory")
    return _check_memory(options) if options.memory else _check(options)


def _check(options: Namespace) -> int:
    from context_bench.cli.build_scoring import JudgeOptions, build_judge
    from context_bench.cli.messages import show_warnings
    from context_bench.cli.output import tell_stops
    from context_bench.http.loop import run_sync
    from context_bench.memory.judge import answer_from_bank, sum_up_mistakes
    from context_bench.monitors.limits import Limits
    from context_bench.pricing import Prices
    from context_bench.runner import evaluate

    with show_warnings():
        judge = build_judge(JudgeOptions.read(options))
    run_sync(judge.prepare())
    result = evaluate(
        answer_from_bank,
        list(bank()),
        evaluators=[judge],
        metrics=[],
        max_workers=options.max_workers,
        progress=not options.silent,
        limits=Limits.read(options),
        prices=Prices.from_file(options.prices_file) if options.prices_file else None,
    )
    note = _NOTE.format(PASS, _describe_tokens(result.rows)).strip()
    _print_rates(sum_up_mistakes(result.rows, KINDS, "judge_score", PASS), note, options)
    tell_stops(result)
    return max(3 if result.settings.stopped else 0, _tell_unscored(result))


def _print_rates(rates: Sequence[MistakeRate], note: str, options: Namespace) -> None:
    from context_bench.cli.output import table_width
    from context_bench.output.layout import fit_columns, wrap

    width = table_width(wide=options.wide)
    head = ["answers", "mistake", "n", "unscored", "mistakes", "rate", "95% interval"]
    table = fit_columns([head, *map(_list_cells, rates)], width, ("unscored", "n", "mistakes"))
    sys.stdout.write(f"{table}\n\n{wrap(note, width)}\n")


def bank() -> Iterator[dict[str, Any]]:
    """Load four examples for each question, one for each kind of answer; the kind is the dataset name."""
    from importlib.resources import files

    import orjson

    source = files("context_bench.evaluators") / "data" / "judge_bank.jsonl"
    for line in source.read_text(encoding="utf-8").splitlines():
        item = orjson.loads(line)
        asked = {"context": "", "question": item["question"], "answer": item["answer"]}
        for kind in KINDS:
            yield {"id": item["id"], "dataset": kind, **asked, "meta": {"given": item[kind]}}


def _describe_tokens(rows: Sequence[EvalRow]) -> str:
    spent = [row.metadata.get("llm-judge", {}) for row in rows]
    prompt, completion = (sum(each.get(f"{part}_tokens", 0) for each in spent) for part in ("prompt", "completion"))
    return f"The judge read {prompt:,} tokens and wrote {completion:,}." if prompt else ""


def _tell_unscored(result: EvalResult) -> int:
    """Explain missing ratings; the exit code shows whether too many are missing."""
    reasons = [row.error or row.unscored.get("llm-judge", "") for row in result.rows if not row.scores]
    if reasons:
        from context_bench.cli.messages import say

        say(f"{len(reasons)} of {len(result.rows)} unscored, first: {reasons[0]}")
    return 3 if len(reasons) > TOLERATED * len(result.rows) else 0


def _check_memory(options: Namespace) -> int:
    from context_bench.cli.build_scoring import JudgeOptions, build_memory_judge
    from context_bench.cli.messages import show_warnings
    from context_bench.memory.judge import check_memory_judge
    from context_bench.monitors.limits import Limits
    from context_bench.pricing import Prices

    with show_warnings():
        rates = check_memory_judge(
            build_memory_judge(JudgeOptions.read(options), options.judge_prompts),
            max_workers=options.max_workers,
            limits=Limits.read(options),
            prices=Prices.from_file(options.prices_file) if options.prices_file else None,
        )
    _print_rates(rates, _MEMORY_NOTE, options)
    unscored, asked = (sum(count) for count in zip(*((each.unscored, each.unscored + each.n) for each in rates)))
    return 3 if unscored > TOLERATED * asked else 0


def _list_cells(rate: MistakeRate) -> list[str]:
    interval = rate.interval
    shown = ["–", "–"] if interval is None else [f"{interval.value:.1%}", f"{interval.low:.1%} to {interval.high:.1%}"]
    kinds = " + ".join(rate.kinds) if len(rate.kinds) < 3 else "all wrong answers"
    return [kinds, rate.mistake, str(rate.n), str(rate.unscored), str(rate.mistakes), *shown]
