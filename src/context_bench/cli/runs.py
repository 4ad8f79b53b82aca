"""`context-bench runs [list|show|export|requests|rm|bundle|verify]`: list and manage recorded runs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, add_store
from context_bench.cli.messages import say, show_warnings
from context_bench.cli.output import choose_form, open_destination, table_width, wants_color, write_report
from context_bench.compare.seeds import find_seeds
from context_bench.config import STORE
from context_bench.core.record import load_result
from context_bench.errors import UsageError
from context_bench.numbers import NUM_EXAMPLES
from context_bench.output.files import build_reporter
from context_bench.output.layout import fit_listing
from context_bench.results import EvalResult
from context_bench.store import Store
from context_bench.text import format_bytes


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench runs", description=COMMANDS["runs"])
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=Parser)
    listed = actions.add_parser("list", help="list all runs, the newest first (default)")
    add_store(listed)
    show = actions.add_parser("show", help="show how a run was made, and its table")
    export = actions.add_parser("export", help="write a run in any format of --output")
    requests = actions.add_parser("requests", help="print a tap's requests that match no example, as JSON lines")
    remove = actions.add_parser("rm", help="remove runs, and answers that no other run uses")
    bundle = actions.add_parser("bundle", help="write a run as one sealed file that others can verify")
    verify = actions.add_parser(
        "verify", help="compute a bundle's hashes, scores, counts, intervals and verdicts again"
    )
    for action, many in ((show, False), (export, False), (requests, False), (remove, True), (bundle, False)):
        action.add_argument(
            "run", metavar="RUN", nargs="*" if many else None, help="a run's id, its beginning, or last"
        )
        add_store(action)
    remove.add_argument("--older-than", type=_read_age, metavar="AGE", help="all runs older than AGE: 30d, 12h or 4w")
    add_flags(listed, "wide")
    add_flags(show, "wide", "slice", "volume", "merge_seeds")
    add_flags(export, "output", "out", "wide", "slice", "volume", "merge_seeds")
    bundle.add_argument("--out", required=True, type=Path, metavar="FILE.ctxb", help="file to write")
    bundle.add_argument("--private", action="store_true", help="store hashes instead of examples and replies")
    bundle.add_argument("--sign", type=Path, metavar="KEY.pem", help="sign with an Ed25519 key (extra `sign`)")
    verify.add_argument("file", type=Path, metavar="FILE.ctxb", help="a bundle")
    verify.add_argument("--data", type=Path, metavar="DIR", help="folder of the datasets, to check the examples")
    verify.add_argument("--signed-by", type=Path, metavar="KEY.pem", help="public key of the required signature")
    verify.add_argument("--output", choices=("text", "json"), default="text", help="output format (default: text)")
    given = arguments[1:]
    if not given or (given[0].startswith("-") and given[0] not in ("-h", "--help")):
        given = ["list", *given]
    options = parser.parse_args(given)
    options.bare = len(arguments) == 1
    with show_warnings():
        return _ACTIONS[options.action](options)


def _open_store(options: Any, *, readonly: bool = True) -> Store:
    return Store(options.cache_dir or STORE, readonly=readonly, create=False)


def load_run(
    name: str,
    folder: str,
    *,
    rows: bool = False,
    slices: Sequence[str] = (),
    volume: float | None = None,
    merge_seeds: bool = False,
) -> EvalResult:
    """Load a run from the store or a file; rows stay in the store until needed."""
    if name.endswith(".json"):
        result = EvalResult.load(name)
        result.config.pop("run", None)  # the store in this folder may be unrelated
        result.config["file"] = Path(name).name
    else:
        with Store(folder, readonly=True, create=False) as store:
            info = store.run(name)
            needed = bool(slices or info.settings.slices or (merge_seeds and find_seeds(info.summary)))
            result = store.load(info, rows=rows or needed)
    _add_views(result, slices, volume)
    return result.merge_seeds() if merge_seeds else result


def _add_views(result: EvalResult, slices: Sequence[str], volume: float | None) -> None:
    """Show a recorded run with these slices and this volume instead of the recorded ones."""
    result.config |= ({"slices": slices} if slices else {}) | ({"volume": volume} if volume else {})


def _list(options: Any) -> int:
    with _open_store(options) as store:
        lines = [["run", "status", "when", "rows", "size", "systems", "datasets"]]
        sizes = store.measure_runs()
        for info in store.runs():
            rows = sum(int(values.get(NUM_EXAMPLES) or 0) for values in info.summary.values())
            rows = rows or store.count_rows(info)  # an unfinished run has no summary
            systems, datasets = info.settings.systems, info.settings.datasets
            when = info.created[:16].replace("T", " ")
            names = [_name_some(list(each), options) for each in (systems, datasets)]
            size = format_bytes(sizes.get(info.number, 0))
            lines.append([info.id, store.find_status(info), when, f"{rows:,}", size, *names])
    give_way = ("when", "size", "rows")  # the id contains the time
    sys.stdout.write(fit_listing(lines, table_width(wide=options.wide), wrapped=(-2, -1), give_way=give_way) + "\n")
    if options.bare and sys.stdout.isatty():
        say("`runs show RUN` shows a run; see `runs --help` for other actions")
    return 0


def _name_some(names: list[str], options: Any) -> str:
    """Join names; on a terminal only the first few, because `runs show` lists all."""
    few = names if table_width(wide=options.wide) is None else names[:2]
    more = len(names) - len(few)
    return ", ".join(few) + (f" and {more} more" if more else "")


def _show(options: Any) -> int:
    with _open_store(options) as store:
        info = store.run(options.run)
        status = store.find_status(info)
        result = load_result(store, info)
    _add_views(result, options.slice, options.volume)
    repeats = result.settings.repeats  # those that were asked for, without merged seeds
    result = result.merge_seeds() if options.merge_seeds else result
    shown = {"run": info.id, "when": info.created, "status": status, **result.config, "repeats": repeats}
    if result.settings.command:
        shown["command"] = shlex.join(map(str, result.settings.command))
    lines = [[key, _format_value(value)] for key, value in shown.items() if value not in (None, {}, [], "")]
    width = table_width(wide=options.wide)
    listing = fit_listing(lines, width, head=False)
    reporter = build_reporter("table", width, color=wants_color(), wide=options.wide)
    sys.stdout.write(f"{listing}\n\n{reporter.render(result)}")
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
    reporter = build_reporter(form, width, folder, color=wants_color(options.out), wide=options.wide)
    with _open_store(options) as store, open_destination(options.out) as write:
        info = store.run(options.run)
        seeds = options.merge_seeds and find_seeds(info.summary)
        result = load_result(store, info, rows=form != "html" or bool(options.slice or info.settings.slices or seeds))
        _add_views(result, options.slice, options.volume)
        result = result.merge_seeds() if seeds else result
        if form == "html":
            result.config["run"] = info.id  # the page reads rows and contexts from the store
        write_report(write, reporter, form, result)
    return 0


def _requests(options: Any) -> int:
    with _open_store(options) as store:
        for request in store.run_requests(store.run(options.run)):
            sys.stdout.write(json.dumps(request) + "\n")  # ASCII, as a body may contain terminal control sequences
    return 0


def _remove(options: Any) -> int:
    if not options.run and options.older_than is None:
        raise UsageError("no run given: pass its id, last, or --older-than 30d")
    with _open_store(options, readonly=False) as store:
        before = _measure_folder(store.directory)
        chosen = {info.id: info for info in map(store.run, options.run)}
        if options.older_than is not None:
            oldest = datetime.now(timezone.utc) - options.older_than
            old = [each for each in store.runs() if datetime.strptime(each.created, _CREATED) < oldest]
            chosen |= {each.id: each for each in old if not store.is_under_way(each)}
        for info in chosen.values():
            store.remove_run(info)
            say(f"removed run {info.id}")
        if not chosen:
            say("no run is that old: nothing was removed")
            return 0
        store.shrink()
        after = _measure_folder(store.directory)
    say(f"the store now has {format_bytes(after)}, {format_bytes(max(0, before - after))} less than before")
    return 0


_CREATED = "%Y-%m-%dT%H:%M:%S%z"
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def _read_age(text: str) -> timedelta:
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not number.isdigit() or len(number) > 6:
        raise UsageError(f"--older-than must be a number with h, d or w, such as 30d (got {text!r})")
    return timedelta(**{unit: int(number)})


def _measure_folder(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("store.db*"))


def _bundle(options: Any) -> int:
    from context_bench.claims.bundle import write_bundle

    with _open_store(options) as store:
        info = store.run(options.run)
        root = write_bundle(store, info, options.out, private=options.private, key=options.sign)
    say(f"wrote {options.out}, {format_bytes(options.out.stat().st_size)}, root {root}")
    return 0


def _verify(options: Any) -> int:
    from context_bench.claims.verify import verify_bundle

    if options.data is not None and not options.data.is_dir():
        raise UsageError(f"--data {options.data} is not a folder")
    found = verify_bundle(options.file, options.data, options.signed_by)
    shown = json.dumps(found.to_dict(), indent=1) + "\n" if options.output == "json" else found.render()
    sys.stdout.write(shown)
    return found.code


_ACTIONS = {
    "list": _list,
    "show": _show,
    "export": _export,
    "requests": _requests,
    "rm": _remove,
    "bundle": _bundle,
    "verify": _verify,
}
