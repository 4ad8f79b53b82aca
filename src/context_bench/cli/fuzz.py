"""`context-bench fuzz`: vary inputs in harmless ways, and show the facts that a system then loses."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, amount, positive
from context_bench.errors import DataError

if TYPE_CHECKING:
    from context_bench.fuzz.session import AnyTarget, Finding

_EXAMPLE = """\
examples:
  context-bench fuzz --system bm25:ratio=0.3
  context-bench fuzz --system my_file.py:MyCompressor \\
      --dataset my_data.jsonl --seconds 20
  context-bench fuzz --vendor kompact --out kompact-faults.json
  context-bench fuzz --vendor kompact --replay kompact-faults.json
"""

_EXIT_CODES = """\
exit codes: 0 no relation is broken, except those declared as broken,
1 another relation is broken, 2 wrong usage"""


def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    options = parser.parse_args(arguments[1:])
    if options.list:
        return _list_relations(options)
    _check_flags(parser, options)

    from context_bench.cli.fuzz_output import render_page, render_replay, render_report
    from context_bench.cli.output import check_destinations, choose_form, open_destination
    from context_bench.refs import import_all

    form = choose_form(options.output, None, ("table", "json", "junit"))
    import_all(options.imports)
    check_destinations({"--out": options.out, "--report": options.report})
    with ExitStack() as stack:  # report an unwritable file before the first try
        write_to = {path: stack.enter_context(open_destination(path)) for path in (options.out, options.report) if path}
        name, outcome = asyncio.run(_run(options))
        if options.out:
            write_to[options.out](json.dumps(outcome.to_dict(), indent=1, ensure_ascii=False) + "\n")
        if options.report:
            write_to[options.report](render_page(outcome, arguments))
    with open_destination(None) as write:
        write(
            render_replay(name, outcome, form) if options.replay else render_report(outcome, form, options, arguments)
        )
    return int(any(broken is not None for _, broken in outcome) if options.replay else bool(outcome.broken))


def _build_parser() -> Parser:
    parser = Parser(
        prog="context-bench fuzz", description=f"{_EXAMPLE}\n{COMMANDS['fuzz']}", epilog=_EXIT_CODES, allow_abbrev=False
    )
    add = parser.add_argument
    add("--system", metavar="REF", help="compressor or reranker in this process, such as bm25:ratio=0.3")
    add("--memory", metavar="REF", help="memory system, such as bm25 or file.py:MyMemory")
    add("--proxy", metavar="URL", help="address of a proxy; with --start or --vendor, where the proxy will listen")
    add("--tap", metavar="[HOST]:PORT", help="listening address of the proxy's upstream, such as :9100")
    add_flags(parser, "tap_host")
    add("--start", metavar="COMMAND", help="command that starts the proxy; {port} and {tap} are filled in")
    add_flags(parser, "start_dir")
    add("--vendor", metavar="NAME", help="known proxy to install and start: kompact or headroom")
    add_flags(parser, "api", help="API of the proxy (default: %(default)s)")
    add("--model", metavar="NAME", help="model name to send, if the proxy accepts only known names")
    add("--relation", action="append", default=[], metavar="ID", help="try only this relation (repeatable)")
    add("--list", action="store_true", help="list the relations and exit")
    add(
        "-n", type=positive, default=50, dest="tries", metavar="N", help="tries of each relation (default: %(default)s)"
    )
    add("--seconds", type=amount, default=60.0, metavar="S", help="stop after this many seconds (default: %(default)g)")
    add_flags(parser, "seed", help="seed of the generated inputs (default: %(default)s)")
    add("--dataset", metavar="REF", help="also take inputs from this data: NAME[:key=value,...] or a file")
    add_flags(parser, "imports", "data_dir")
    add("--timeout", type=amount, default=30.0, metavar="S", help="seconds for one request (default: %(default)g)")
    add("--replay", metavar="FILE", help="try only the findings that an earlier --out saved")
    add("--out", metavar="FILE", help="save the findings as JSON, for --replay")
    add("--report", metavar="PAGE", help="write rates and findings as one HTML page")
    add("--output", choices=("table", "json", "junit"), help="output format on stdout (default: table)")
    add_flags(parser, "wide")
    add_flags(parser, "silent", help="show no progress")
    return parser


def _check_flags(parser: Parser, options: argparse.Namespace) -> None:
    given = [flag for flag in ("system", "memory", "start", "vendor") if getattr(options, flag)]
    if options.proxy and not (options.start or options.vendor):
        given.append("proxy")
    if len(given) != 1:
        parser.error(
            "no target given: pass one of --system REF, --memory REF, --proxy URL, --start COMMAND, --vendor NAME"
        )
    if given == ["proxy"] and not options.tap:
        parser.error("a --proxy that already runs must be configured with its upstream: pass a port, as in --tap :9100")
    if options.replay and (options.out or options.report):
        parser.error("--out and --report are for new findings: remove them with --replay")
    if options.dataset and options.memory:
        parser.error("--dataset is for compressors and proxies: remove it with --memory")


def _list_relations(options: argparse.Namespace) -> int:
    from context_bench.cli.output import table_width
    from context_bench.fuzz.chat_relations import CHAT_RELATIONS
    from context_bench.fuzz.memory_relations import MEMORY_RELATIONS
    from context_bench.fuzz.relations import RELATIONS
    from context_bench.output.layout import fit_listing

    lines = [["relation", "for", "why it should hold"]]
    for who, known in (("all", RELATIONS), ("proxies", CHAT_RELATIONS), ("memories", MEMORY_RELATIONS)):
        lines += [[each.id, who, each.reason] for each in known.values()]
    print(fit_listing(lines, table_width(wide=options.wide)))
    return 0


async def _run(options: argparse.Namespace) -> tuple[str, Any]:
    """Fuzz the target (gives a `Report`) or replay earlier findings (gives a list); also return the target's name."""
    from context_bench.fuzz.relations import list_relations
    from context_bench.fuzz.session import fuzz, list_known, replay
    from context_bench.monitors.progress import StatusLine

    own = _read_own(options)
    findings = _read_findings(options.replay) if options.replay else []
    if options.replay and not findings:
        raise DataError(f"--replay {options.replay}: the file has no findings, so there is nothing to replay")
    state = {"inputs": 0, "seconds": 0.0}
    line = StatusLine(
        lambda width: f"{state['inputs']:,} inputs, {state['seconds']:.0f} of at most {options.seconds:.0f} s"[:width],
        lambda: state["seconds"] / options.seconds,
        enabled=not options.silent and not options.replay,
    )
    async with AsyncExitStack() as stack:
        target, part = await _open_target(options, stack)
        if findings:
            return target.name, await replay(target, findings)
        from context_bench.traits import find_breaks

        stack.enter_context(line)
        return target.name, await fuzz(
            target,
            list_relations(options.relation, list_known(target)),
            n=options.tries,
            seconds=options.seconds,
            seed=options.seed,
            own=own,
            declared=find_breaks(part),
            on_progress=lambda inputs, seconds: state.update(inputs=inputs, seconds=seconds),
        )


def _read_own(options: argparse.Namespace) -> list[Any]:
    """Read inputs from the user's data: examples whose context contains the evidence or the answer."""
    if not options.dataset:
        return []
    from context_bench.datasets.open import Choices, open_datasets
    from context_bench.fuzz.cases import CONVERSATION, read_case

    choices = Choices(limit=max(options.tries, 20), data_dir=options.data_dir)
    cases = map(read_case, open_datasets([options.dataset], choices))
    found = [case for case in cases if case is not None and not (options.system and case.kind == CONVERSATION)]
    if not found:
        raise DataError(f"{options.dataset}: no context contains its evidence or answer, so nothing can be lost")
    return found


def _read_findings(path: str) -> list[Finding]:
    from context_bench.fuzz.session import Finding

    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        return [Finding.from_dict(each) for result in document["relations"] for each in result["findings"]]
    except OSError as error:
        raise DataError(f"--replay {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"--replay {path}: not a file of `fuzz --out` ({type(error).__name__})") from None


async def _open_target(options: argparse.Namespace, stack: AsyncExitStack) -> tuple[AnyTarget, Any]:
    from context_bench.fuzz.targets import MemoryTarget, build_target
    from context_bench.traits import find_parts

    if options.system:
        target = build_target(options.system, options.seed)
        return target, next(iter(find_parts(target.system)), target.system)
    if options.memory:
        from context_bench.memory.members import is_factory
        from context_bench.refs import call_with, parse, resolve

        (ref,) = parse("memory_system", options.memory)
        found = resolve("memory_system", ref)
        memory = call_with(found, ref, None) if is_factory(found) else found
        return MemoryTarget(memory), memory
    return await _open_proxy(options, stack), None


async def _open_proxy(options: argparse.Namespace, stack: AsyncExitStack) -> AnyTarget:
    """Open the tap, start the proxy if requested, and check that it reaches the tap."""
    from context_bench.cli.conformance import prepare_proxy
    from context_bench.conformance.bench import Bench, Client, Upstream
    from context_bench.conformance.examination import require_reach
    from context_bench.fuzz.targets import ProxyTarget
    from context_bench.http.secrets import find_api_root
    from context_bench.tap.address import parse_listen
    from context_bench.tap.server import Tap
    from context_bench.tap.vendors import recipe
    from context_bench.wire.forms import get_form

    host, port = parse_listen(options.tap or ":0")
    upstream, vendor = Upstream(), recipe(options.vendor) if options.vendor else None
    tap = Tap(upstream, host=host, port=port, hosts=options.tap_host)
    await tap.start()
    stack.push_async_callback(tap.stop)
    url = options.proxy
    if options.start or vendor:
        url = (await stack.enter_async_context(prepare_proxy(options, tap.url, vendor))).url
    client = Client(find_api_root(url), options.timeout, vendor.headers if vendor else None)
    await stack.enter_async_context(client)
    form = get_form(options.api)
    bench = Bench(form, client, upstream, options.model or form.samples.model)
    await require_reach(bench, tap.url)
    name = f"{vendor.name} {vendor.version or '(unknown version)'}" if vendor else url
    return ProxyTarget(name, bench)
