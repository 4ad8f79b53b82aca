"""`context-bench compare A B [C...]`: compare runs, JSON files, or the systems of one run with a baseline."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, add_store, count
from context_bench.cli.gate import RunGate
from context_bench.cli.messages import say, show_warnings
from context_bench.cli.output import choose_form, open_destination, table_width
from context_bench.compare.contest import Contest
from context_bench.compare.gates import GateOutcome, fail_missing, list_compared
from context_bench.compare.run_inputs import RunInput, open_run, select
from context_bench.compare.runs import RunComparison, compare_runs
from context_bench.compare.verdicts import check_margin
from context_bench.config import STORE
from context_bench.errors import UsageError
from context_bench.output.files import render_summary
from context_bench.output.verdict_tables import build_diff_command, describe_pairs, render_comparison
from context_bench.store import Store
from context_bench.text import dump_json

_EXAMPLES = """\
examples:
  context-bench compare last~1 last          the newest against the one before
  context-bench compare last                 the systems of one run
  context-bench compare old.json new.json --fail-if "score drops 0.02"
  context-bench compare last@passthrough last@bm25:ratio=0.3
"""


def main(arguments: Sequence[str]) -> int:
    options = _build_parser().parse_args(arguments[1:])
    gate = RunGate.read(options)
    form = choose_form(options.output, options.out, ("table", "json", "github"))
    margin = None if options.margin is None else check_margin(options.margin)
    with (
        show_warnings(quiet=options.silent),
        ExitStack() as stack,
        open_destination(options.out, quiet=options.silent) as write,
        gate.open() as opened,
    ):
        find_run = _open_runs(options.cache_dir, stack)
        selections = [select(text, find_run) for text in options.runs]
        names = {name for each in selections for name in each.systems}
        found = compare_runs(
            selections,
            baseline=options.baseline,
            margin=margin,
            renamed=dict(_read_renamed(text, names) for text in options.map_system),
            fixed_groups=options.fixed_groups or None,
        )
        for warning in () if options.silent else found.warnings:
            say(warning)
        missing = [] if options.allow_missing else fail_missing(found)
        outcomes = opened.judge(list_compared(found), missing) if opened.conditions else []
        width = table_width(wide=options.wide, out=options.out)
        report = ""
        if opened.wants_report or form == "github":
            text = render_comparison(found, None, listed=options.list, store=options.cache_dir)
            report = "\n\n".join([text.strip(), *(f"Warning: {each}." for each in found.warnings)])
        if form == "json":
            write(dump_json(_describe(found, outcomes, options.cache_dir), indent=True) + "\n")
        elif form == "github":
            write(render_summary(report, outcomes))
        else:
            write(render_comparison(found, width, listed=options.list, store=options.cache_dir))
        return opened.write(outcomes, report)


def _build_parser() -> Parser:
    parser = Parser(
        prog="context-bench compare",
        description=f"{COMMANDS['compare']}\n\n{_EXAMPLES}",
        epilog="exit codes: 0 done; 1 a condition is met; 2 wrong usage or input;\n4 too few examples to decide",
    )
    add = parser.add_argument
    add(
        "runs",
        metavar="RUN",
        nargs="+",
        help="a run (its id, the beginning of its id, last, last~1) or a JSON file; append @SYSTEM for one of its "
        "systems. The first is the baseline; with one run, its systems are compared",
    )
    add("--baseline", metavar="NAME", help="run to compare the others with; with one run, one of its systems")
    add_flags(parser, "margin", help="largest difference that does not matter (default: that of the baseline's run)")
    add_flags(parser, "fixed_groups")
    add(
        "--map-system",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="compare system NEW with system OLD of the first run (repeatable)",
    )
    add(
        "--allow-missing",
        action="store_true",
        help="let the gate pass although a system of the first run is missing in another",
    )
    add("--list", type=count, default=5, metavar="N", help="fixed and broken examples to show (default: %(default)s)")
    add(
        "--output",
        choices=("table", "json", "github"),
        help="output format (default: by the ending of --out, else table)",
    )
    add("--out", metavar="FILE", help="write the result to FILE (.json or .md), not to stdout")
    add_flags(parser, "wide")
    add_flags(parser, "silent", help="show no warnings")
    add_store(parser)
    add_flags(parser.add_argument_group("a gate for CI"), "fail_if", "junit", "summary", "accept_blind")
    return parser


def _read_renamed(text: str, systems: Collection[str]) -> tuple[str, str]:
    """Split `OLD=NEW` where both sides name a system: a name such as bm25:ratio=0.3 contains `=` too."""
    splits = [(text[:place], text[place + 1 :]) for place, letter in enumerate(text) if letter == "="]
    if not splits:
        raise UsageError(f"--map-system must be OLD=NEW (got {text!r})")
    return next((each for each in splits if set(each) <= set(systems)), splits[0])


def _open_runs(folder: str | None, stack: ExitStack) -> Callable[[str], RunInput]:
    """Return a function that opens each run only once, and the store on first use."""
    opened: dict[str, RunInput] = {}

    @cache
    def open_store() -> Store:
        return stack.enter_context(Store(folder or STORE, readonly=True, create=False))

    def find(name: str) -> RunInput:
        found = open_run(open_store(), name)
        return opened.setdefault(found.label, found)

    return find


def _describe(found: RunComparison, outcomes: Sequence[GateOutcome], store: str | None) -> dict[str, Any]:
    return {
        "baseline": found.baseline,
        "metric": found.metric,
        "margin": found.margin,
        "threshold": found.threshold,
        "comparisons": [_describe_contest(each, store) for each in found.contests],
        "left_out": found.left_out,
        "missing": [{"system": name, "run": run} for name, run in found.missing],
        "warnings": found.warnings,
        "notes": found.notes,
        "gate": [each.to_dict() for each in outcomes],
    }


def _describe_contest(contest: Contest, store: str | None) -> dict[str, Any]:
    ours, theirs = contest.find_means()
    fixed, broken = contest.count_changes() or (None, None)
    return {
        "name": contest.name,
        "run": contest.source.label,
        "system": contest.system,
        "baseline_run": contest.baseline.label,
        "baseline_system": contest.baseline_system,
        "score": ours,
        "baseline_score": theirs,
        "pairs": contest.pairs.n,
        "pairs_with_same_content": contest.same_content,
        "same_id_other_content": contest.other_content,
        "only_here": contest.only_here,
        "only_in_baseline": contest.only_in_baseline,
        "pairing": describe_pairs(contest),
        "verdict": None if contest.verdict is None else contest.verdict.to_dict(),
        "sensitivity": None if contest.sensitivity is None else contest.sensitivity.to_dict(),
        "by_dataset": {
            tag: {"paired": contest.is_paired(tag), **contest.by_dataset[tag].to_dict()}
            for tag in contest.list_datasets()
        },
        "fixed": fixed,
        "broken": broken,
        "fixed_examples": [_describe_example(contest, each, store) for each in contest.fixed.examples],
        "broken_examples": [_describe_example(contest, each, store) for each in contest.broken.examples],
    }


def _describe_example(contest: Contest, example: tuple[str, str], store: str | None) -> dict[str, Any]:
    dataset, identity = example
    return {"dataset": dataset, "id": identity, "command": build_diff_command(contest, dataset, identity, store)}
