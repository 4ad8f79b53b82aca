"""`context-bench runs list|show|export|requests|rm`: what was recorded."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from context_bench.cli import COMMANDS
from context_bench.cli.output import build_reporter, choose_form, destination, show_warnings, table_width
from context_bench.cli.parser import STORE, Parser, add_report, add_store, add_wide
from context_bench.datasets.catalog import find_weak_thresholds
from context_bench.engine.jobs import Item
from context_bench.engine.scoring import Scorer
from context_bench.golds import has_gold
from context_bench.reporters.fitting import fit_listing
from context_bench.results import EvalResult, EvalRow
from context_bench.store import RunInfo, Store
from context_bench.summary import rebuild_metrics, summarize

__all__ = ["load_result", "main"]


def main(arguments: Sequence[str]) -> int:
    """List, show, export or remove runs."""
    parser = Parser(prog="context-bench runs", description=COMMANDS["runs"])
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=Parser)
    listed = actions.add_parser("list", help="all runs, the newest first")
    add_store(listed, reuse=False)
    show = actions.add_parser("show", help="how a run was made, and its table")
    export = actions.add_parser("export", help="a run as json, csv or table")
    requests = actions.add_parser("requests", help="what a tap recorded and no example owns, a JSON object a line")
    remove = actions.add_parser("rm", help="forget runs, and answers that no other run uses")
    for action, many in ((show, False), (export, False), (requests, False), (remove, True)):
        action.add_argument("run", metavar="RUN", nargs="+" if many else None, help="an id, the start of one, or last")
        add_store(action, reuse=False)
    add_wide(listed)
    add_wide(show)
    add_report(export)
    options = parser.parse_args(arguments[1:])
    with show_warnings():
        return _ACTIONS[options.action](options)


def _open(options: Any, *, readonly: bool = True) -> Store:
    return Store(options.cache_dir or STORE, readonly=readonly, create=False)


def load_result(store: Store, info: RunInfo) -> EvalResult:
    """A recorded run as a result; of one that did not come to its end, what there is of it."""
    config = dict(info.config)
    notes = config.pop("notes", {})
    if info.summary:
        return EvalResult(list(store.run_rows(info)), info.summary, info.timing, config, notes=notes)
    rows: list[EvalRow] = []
    gold: dict[str, bool] = {}
    scorer = Scorer(score_field=config.get("score_field") or "score")
    for record in store.run_records(info):
        row = record.row
        rows.append(row)
        scorer.note_known(Item(record.example, row.dataset), row.scores, row.unscored)
        gold[row.dataset] = gold.get(row.dataset, False) or has_gold(record.example)
    examples = {(row.dataset, row.example_id) for row in rows}
    config |= {
        "datasets": dict(Counter(tag for tag, _ in examples)),
        "gold": gold,
        "primary": scorer.primaries,
        "returns": {row.system: row.metadata["output"] for row in rows if "output" in row.metadata},
        "weak_thresholds": find_weak_thresholds(gold),
    }
    metrics = rebuild_metrics(config["metrics"])
    summary = summarize(rows, config["systems"], metrics, config)
    return EvalResult(rows, summary.numbers, {}, config, metrics, summary.notes)


def _list(options: Any) -> int:
    with _open(options) as store:
        lines = [["run", "when", "status", "rows", "systems", "datasets"]]
        for info in store.runs():
            rows = sum(int(values.get("num_examples") or 0) for values in info.summary.values())
            systems, datasets = info.config.get("systems", {}), info.config.get("datasets", {})
            when = info.created[:16].replace("T", " ")
            names = [_name_some(list(each), options) for each in (systems, datasets)]
            lines.append([info.id, when, info.status, f"{rows:,}", *names])
    give_way = ("when", "rows", "status")  # the id tells when
    sys.stdout.write(fit_listing(lines, table_width(options), wrapped=(-2, -1), give_way=give_way) + "\n")
    return 0


def _name_some(names: list[str], options: Any) -> str:
    """Names side by side; on a terminal the first ones, as `runs show` has them all."""
    few = names if table_width(options) is None else names[:2]
    more = len(names) - len(few)
    return ", ".join(few) + (f" and {more} more" if more else "")


def _show(options: Any) -> int:
    with _open(options) as store:
        info = store.run(options.run)
        result = load_result(store, info)
    shown = {"run": info.id, "when": info.created, "status": info.status, **result.config}
    lines = [[key, _text(value)] for key, value in shown.items() if value not in (None, {}, [], "")]
    listing = fit_listing(lines, table_width(options), head=False)
    sys.stdout.write(f"{listing}\n\n{build_reporter(options).render(result)}")
    return 0


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{key}={_text(item) if isinstance(item, dict | str) else item}" for key, item in value.items()
        )
    if isinstance(value, list):
        return " ".join(item["name"] if isinstance(item, dict) and "name" in item else str(item) for item in value)
    return " / ".join(str(value).splitlines())


def _export(options: Any) -> int:
    form = choose_form(options.output, options.out)
    with _open(options) as store, destination(options.out) as write:
        result = load_result(store, store.run(options.run))
        write(build_reporter(options, form).render(result))
    return 0


def _requests(options: Any) -> int:
    with _open(options) as store:
        for request in store.run_requests(store.run(options.run)):
            sys.stdout.write(json.dumps(request) + "\n")  # in ASCII: a body may hold what acts on a terminal
    return 0


def _remove(options: Any) -> int:
    with _open(options, readonly=False) as store:
        for info in {store.run(name).id: store.run(name) for name in options.run}.values():
            store.remove_run(info)
            print(f"context-bench: removed run {info.id}", file=sys.stderr)
    return 0


_ACTIONS = {"list": _list, "show": _show, "export": _export, "requests": _requests, "rm": _remove}
