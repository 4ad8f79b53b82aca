"""`context-bench judge-check --memory`: how often a judge of memory is mistaken about the bank that ships."""

from __future__ import annotations

import argparse
import sys

from context_bench.memory.judge import MemoryJudge, MistakeRate, check_memory_judge

__all__ = ["build_memory_judge", "check"]

_TOLERATED = 0.1
_NOTE = (
    "accepted or not by the rule of the question's type; n = answers that got a verdict. A false accept makes a memory "
    "look better than it is."
)


def build_memory_judge(flags: argparse.Namespace) -> MemoryJudge:
    """Build the judge that the flags name."""
    from context_bench.errors import UsageError
    from context_bench.evaluators.llm_judge import DEFAULT_MODEL
    from context_bench.http import find_key
    from context_bench.http.secrets import check_url

    if not flags.judge_url:
        raise UsageError("a judge needs --judge-url URL: it is the server that is asked")
    key = find_key(check_url(flags.judge_url), variable=flags.judge_key_env)
    return MemoryJudge(flags.judge_url, flags.judge_model or DEFAULT_MODEL, key, prompts=flags.judge_prompts)


def check(flags: argparse.Namespace) -> int:
    """Let the judge decide about the whole bank, and print its mistakes."""
    from context_bench.cli.messages import show_warnings
    from context_bench.cli.output import table_width
    from context_bench.monitors.limits import Limits
    from context_bench.output.layout import fit_columns, wrap
    from context_bench.pricing import Prices

    with show_warnings():
        rates = check_memory_judge(
            build_memory_judge(flags),
            max_workers=flags.max_workers,
            limits=Limits(flags.max_cost, flags.max_total_tokens),
            prices=Prices.from_file(flags.prices) if flags.prices else None,
        )
    width = table_width(wide=flags.wide)
    lines = [["answers", "mistake", "n", "unscored", "mistakes", "rate", "95% interval"], *map(_list_cells, rates)]
    table = fit_columns(lines, width, ("unscored", "n", "mistakes"))
    sys.stdout.write(f"{table}\n\n{wrap(_NOTE, width)}\n")
    unscored, asked = (sum(count) for count in zip(*((each.unscored, each.unscored + each.n) for each in rates)))
    return 3 if unscored > _TOLERATED * asked else 0


def _list_cells(rate: MistakeRate) -> list[str]:
    interval = rate.interval
    shown = ["–", "–"] if interval is None else [f"{interval.value:.1%}", f"{interval.low:.1%} to {interval.high:.1%}"]
    kinds = " + ".join(rate.kinds) if len(rate.kinds) < 3 else "all that are wrong"
    return [kinds, rate.mistake, str(rate.n), str(rate.unscored), str(rate.mistakes), *shown]
