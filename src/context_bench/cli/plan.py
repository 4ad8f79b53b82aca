"""`context-bench plan [RUN]`: compute how many examples a question needs and what they cost; fix a plan in advance."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, add_store, amount, positive
from context_bench.cli.messages import say, show_warnings
from context_bench.cli.output import table_width
from context_bench.compare.plans import Lock, Needs, Target, assume_needs, find_needs, write_lock
from context_bench.compare.verdicts import check_margin, choose_baseline
from context_bench.config import STORE
from context_bench.errors import UsageError
from context_bench.numbers import choose_score_key, dollars
from context_bench.output.layout import fit_listing, wrap
from context_bench.results import EvalResult
from context_bench.stats import DEFAULT_MARGIN


def main(arguments: Sequence[str]) -> int:
    flags = plan_parser().parse_args(arguments[1:])
    with show_warnings():
        return _plan(flags)


DEFAULT_DIFFERENCE = 0.05  # the difference to find, unless another is given or it is impossible


def plan_parser() -> Parser:
    parser = Parser(prog="context-bench plan", description=COMMANDS["plan"])
    add = parser.add_argument
    add("run", nargs="?", metavar="RUN", help="a pilot: a run's id, its beginning, last, or a result in a .json file")
    add("--spread", type=amount, metavar="S", help="without a pilot: standard deviation of the difference per example")
    add(
        "--discordant",
        type=amount,
        metavar="P",
        help="without a pilot: share of examples that only one of the systems passes",
    )
    add("--difference", type=amount, metavar="D", help=f"difference to detect (default: {DEFAULT_DIFFERENCE})")
    add(
        "--margin",
        type=amount,
        metavar="X",
        help=f"difference that does not matter (default: the pilot's, else {DEFAULT_MARGIN:g})",
    )
    add("--baseline", metavar="NAME", help="system that the others are compared with (default: the pilot's)")
    add(
        "--power",
        type=amount,
        default=0.8,
        metavar="P",
        help="power: chance that the run detects the difference (default: %(default)s)",
    )
    add("-n", "--max-examples", type=positive, metavar="N", help="planned number of examples")
    add("--lock", metavar="FILE", help="write metric, margin, -n, systems and datasets to FILE, for a run's --plan")
    add("--system", action="append", default=[], metavar="NAME", help="without a pilot: a system (repeatable)")
    add("--dataset", action="append", default=[], metavar="TAG", help="without a pilot: a dataset (repeatable)")
    add("--score-field", metavar="FIELD", help="primary score (default: the pilot's, else score)")
    add_store(parser)
    add("--output", choices=("table", "json"), default="table", help="output format (default: table)")
    add_flags(parser, "wide")
    return parser


def _plan(flags: argparse.Namespace) -> int:
    pilot = None if flags.run is None else _load_pilot(flags)
    assumed = flags.spread is not None or flags.discordant is not None
    if (pilot is None) != assumed:
        raise UsageError(
            "plan from a pilot (context-bench plan RUN), or from --spread or --discordant: pass one of them"
        )
    if not 0 < flags.power < 1:
        raise UsageError(f"--power must be between 0 and 1 (got {flags.power:g})")
    margin = check_margin(flags.margin or (pilot.settings.margin if pilot else DEFAULT_MARGIN))
    difference = flags.difference or min(DEFAULT_DIFFERENCE, flags.discordant or DEFAULT_DIFFERENCE)
    target = Target(difference, margin, flags.power, n=flags.max_examples)
    baseline = _find_baseline(flags, pilot)
    if pilot is None:
        comparisons = max(1, len(flags.system) - 1)
        needs = [assume_needs(target, spread=flags.spread, discordant=flags.discordant, comparisons=comparisons)]
    else:
        needs = find_needs(pilot, str(baseline), target)
    _print(flags, target, baseline, needs)
    if flags.lock:
        lock = _make_lock(flags, pilot, margin, baseline)
        write_lock(lock, Path(flags.lock))
        say(f"locked in {flags.lock}: pass --plan {flags.lock} to the run")
    return 0


def _load_pilot(flags: argparse.Namespace) -> EvalResult:
    from context_bench.cli.runs import load_run

    result = load_run(flags.run, flags.cache_dir or STORE, rows=True)
    if not result.rows:
        raise UsageError(f"the pilot {flags.run} has no rows: a plan needs its scores")
    if flags.score_field:
        result.config["score_field"] = flags.score_field
    return result


def _find_baseline(flags: argparse.Namespace, pilot: EvalResult | None) -> str | None:
    if pilot is None:
        return choose_baseline(flags.system, flags.baseline) if flags.system else None
    wanted = flags.baseline or pilot.settings.baseline
    chosen = choose_baseline(_list_systems(pilot), wanted, pilot.settings.controls)
    if chosen is None:
        raise UsageError("the pilot has only one system: a plan also needs a baseline")
    return chosen


def _list_systems(pilot: EvalResult) -> list[str]:
    """List the systems of a pilot without the second run of the baseline."""
    return [name for name in pilot.systems if name != pilot.settings.twin]


def _make_lock(flags: argparse.Namespace, pilot: EvalResult | None, margin: float, baseline: str | None) -> Lock:
    systems = flags.system or (_list_systems(pilot) if pilot else [])
    datasets = flags.dataset or list(pilot.settings.datasets if pilot else ())
    if flags.max_examples is None:
        raise UsageError("--lock fixes the number of examples: add -n N")
    if not systems or not datasets or baseline is None:
        raise UsageError("--lock fixes systems and datasets: plan from a pilot, or add --system NAME and --dataset TAG")
    return Lock(
        metric=choose_score_key(len(datasets)),
        score_field=flags.score_field or (pilot.settings.score_field if pilot else "score"),
        margin=margin,
        baseline=baseline,
        n=flags.max_examples,
        systems=tuple(systems),
        datasets=tuple(datasets),
        locked=date.today().isoformat(),
    )


def _print(flags: argparse.Namespace, target: Target, baseline: str | None, needs: list[Needs]) -> None:
    if flags.output == "json":
        document = {
            "baseline": baseline,
            **{key: getattr(target, key) for key in ("difference", "margin", "power", "alpha")},
            "systems": [each.to_dict() for each in needs],
        }
        sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        return
    width = table_width(wide=flags.wide)
    lines = [["system", "to show", "examples", "cost", "time"]]
    for each in needs:
        lines += _list_lines(each, target)
    sys.stdout.write(fit_listing(lines, width, wrapped=(0, 1)) + "\n")
    competing = max(each.comparisons for each in needs)
    notes = [f"power {target.power:.0%}, significance level {target.alpha:g}"]
    if competing > 1:
        notes.append(f"differences are corrected for {competing} comparisons")
    if baseline is not None and flags.run is not None:
        notes.append(f"compared with {baseline}, whose own cost is not included")
        notes.append("'equivalent' and 'not worse' assume that the true score equals the baseline's")
    say(wrap("; ".join(notes), width) if width else "; ".join(notes))


def _list_lines(needs: Needs, target: Target) -> list[list[str]]:
    """List the questions about one system; for the baseline, list the cost of 1,000 examples instead."""
    if needs.to_clear is None:
        return [[needs.system, "baseline", "1,000", *_write_costs(needs, 1000)]]
    questions: list[tuple[str, int | None]] = [
        (f"a difference of {target.difference:g}", needs.to_find),
        (f"equivalent within {target.margin:g}", needs.to_equate),
        (f"not worse within {target.margin:g}", needs.to_clear),
    ]
    if needs.detectable is not None and needs.n is not None:
        questions.append((f"smallest difference: {needs.detectable:.3f}", needs.n))
    names = [needs.system, *[""] * len(questions)]
    return [
        [name, question, "no number is enough" if n is None else f"{n:,}", *_write_costs(needs, n)]
        for name, (question, n) in zip(names, questions)
    ]


def _write_costs(needs: Needs, n: int | None) -> list[str]:
    if n is None:
        return ["", ""]
    spent = "–"
    if needs.dollars is not None:
        spent = dollars(needs.dollars * n)
    elif needs.tokens is not None:
        spent = f"{needs.tokens * n:,.0f} tokens"
    return [spent, "–" if needs.seconds is None else _write_time(needs.seconds * n)]


def _write_time(value: float) -> str:
    for unit, length in (("h", 3600.0), ("min", 60.0)):
        if value >= length:
            return f"{value / length:,.1f} {unit}"
    return f"{value:.1f} s"
