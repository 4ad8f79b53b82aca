"""`context-bench runs [list|show|export|requests|rm]`: what was recorded; without an action, a list of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, add_store
from context_bench.cli.messages import say, show_warnings
from context_bench.cli.output import choose_form, open_destination, table_width, wants_color, write_report
from context_bench.config import STORE
from context_bench.core.record import load_result
from context_bench.numbers import NUM_EXAMPLES
from context_bench.output.files import build_reporter
from context_bench.output.layout import fit_listing
from context_bench.results import EvalResult
from context_bench.store import Store


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench runs", description=COMMANDS["runs"])
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=Parser)
    listed = actions.add_parser("list", help="list all runs, the newest first (default)")
    add_store(listed)
    show = actions.add_parser("show", help="show how a run was made, and its table")
    export = actions.add_parser("export", help="write a run in any form of --output")
    requests = actions.add_parser("requests", help="print a tap's requests that belong to no example, as JSON lines")
    remove = actions.add_parser("rm", help="remove runs, and answers that no other run uses")
    for action, many in ((show, False), (export, False), (requests, False), (remove, True)):
        action.add_argument("run", metavar="RUN", nargs="+" if many else None, help="an id, the start of one, or last")
        add_store(action)
    add_flags(listed, "wide")
    add_flags(show, "wide", "slice")
    add_flags(export, "output", "out", "wide", "slice")
    given = arguments[1:]
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help")):
        given = ["list", *given]
    options = parser.parse_args(given)
    options.bare = len(arguments) == 1
    with show_warnings():
        return _ACTIONS[options.action](options)


def _open_store(options: Any, *, readonly: bool = True) -> Store:
    return Store(options.cache_dir or STORE, readonly=readonly, create=False)


def load_run(name: str, folder: str, *, rows: bool = False, slices: Sequence[str] = ()) -> EvalResult:
    """Load a run from the store, or from a file; without `rows` or slices, the rows of the store stay there."""
    if name.endswith(".json"):
        result = EvalResult.load(name)
        result.config.pop("run", None)  # the store of this folder may be another one
        result.config["file"] = Path(name).name
    else:
        with Store(folder, readonly=True, create=False) as store:
            info = store.run(name)
            result = store.load(info, rows=rows or bool(slices or info.settings.slices))
    result.config |= {"slices": slices} if slices else {}
    return result


def _list(options: Any) -> int:
    with _open_store(options) as store:
        lines = [["run", "when", "status", "rows", "systems", "datasets"]]
        for info in store.runs():
            rows = sum(int(values.get(NUM_EXAMPLES) or 0) for values in info.summary.values())
            rows = rows or store.count_rows(info)  # a run that is not over has no summary
            systems, datasets = info.settings.systems, info.settings.datasets
            when = info.created[:16].replace("T", " ")
            names = [_name_some(list(each), options) for each in (systems, datasets)]
            lines.append([info.id, when, store.find_status(info), f"{rows:,}", *names])
    give_way = ("when", "rows", "status")  # the id tells when
    sys.stdout.write(fit_listing(lines, table_width(wide=options.wide), wrapped=(-2, -1), give_way=give_way) + "\n")
    if options.bare and sys.stdout.isatty():
        say("`runs show RUN` shows one of them; export, requests and rm are the other actions (runs --help)")
    return 0


def _name_some(names: list[str], options: Any) -> str:
    """Join names; on a terminal only the first ones, as `runs show` lists them all."""
    few = names if table_width(wide=options.wide) is None else names[:2]
    more = len(names) - len(few)
    return ", ".join(few) + (f" and {more} more" if more else "")


def _show(options: Any) -> int:
    with _open_store(options) as store:
        info = store.run(options.run)
        status = store.find_status(info)
        result = load_result(store, info)
    result.config |= {"slices": options.slice} if options.slice else {}
    shown = {"run": info.id, "when": info.created, "status": status, **result.config}
    lines = [[key, _format_value(value)] for key, value in shown.items() if value not in (None, {}, [], "")]
    width = table_width(wide=options.wide)
    listing = fit_listing(lines, width, head=False)
    sys.stdout.write(f"{listing}\n\n{build_reporter('table', width, color=wants_color()).render(result)}")
    return 0


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{key}={_format_value(item) if isinstance(item, dict | str) else item}" for key, item in value.items()
        )
    if isinstance(value, list):
        return " ".join(item["name"] if isinstance(item, dict) and "name" in item else str(item) for item in value)
    return " / ".join(str(value).splitlines())


def _export(options: Any) -> int:
    form = choose_form(options.output, options.out)
    width, folder = table_width(wide=options.wide, out=options.out), options.cache_dir or STORE
    reporter = build_reporter(form, width, folder, color=wants_color(options.out))
    with _open_store(options) as store, open_destination(options.out) as write:
        info = store.run(options.run)
        result = load_result(store, info, rows=form != "html" or bool(options.slice or info.settings.slices))
        result.config |= {"slices": options.slice} if options.slice else {}
        if form == "html":
            result.config["run"] = info.id  # its page reads rows and contexts from the store
        write_report(write, reporter, form, result)
    return 0


def _requests(options: Any) -> int:
    with _open_store(options) as store:
        for request in store.run_requests(store.run(options.run)):
            sys.stdout.write(json.dumps(request) + "\n")  # in ASCII: a body may hold what acts on a terminal
    return 0


def _remove(options: Any) -> int:
    with _open_store(options, readonly=False) as store:
        for info in {store.run(name).id: store.run(name) for name in options.run}.values():
            store.remove_run(info)
            say(f"removed run {info.id}")
    return 0


_ACTIONS = {"list": _list, "show": _show, "export": _export, "requests": _requests, "rm": _remove}
