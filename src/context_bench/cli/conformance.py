"""`context-bench conformance`: check which parts of the protocol a proxy breaks."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, amount
from context_bench.errors import ContextBenchError

if TYPE_CHECKING:
    from context_bench.conformance import Check, Findings
    from context_bench.tap.vendors import Recipe

_EXAMPLE = """\
examples:
  context-bench conformance --proxy http://localhost:7878 --tap :9100
  context-bench conformance \\
      --start "kompact proxy --port {port} --openai-base-url {tap}"
  context-bench conformance --vendor kompact --vendor headroom
"""

_EXIT_CODES = "exit codes: 0 all checks passed, 1 a check failed, 2 wrong usage"


def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    options = parser.parse_args(arguments[1:])
    if options.list:
        return _list_checks(options)
    _check_flags(parser, options)

    from context_bench.cli.output import choose_form, open_destination, table_width
    from context_bench.conformance import choose_checks, render_json, render_table
    from context_bench.output.layout import wrap

    form = choose_form(options.output, options.out, ("table", "json"))
    checks = choose_checks(options.check)
    recipes = _find_recipes(options.vendor)
    found: list[Findings] = []
    problems: list[ContextBenchError] = []
    with open_destination(options.out, quiet=options.silent) as write:
        for vendor in recipes or (None,):
            try:
                found.append(asyncio.run(_examine_proxy(options, checks, vendor)))
            except ContextBenchError as error:  # continue with the others
                problems.append(error)
        if not found:
            raise problems[0]
        report = (render_json if form == "json" else render_table)(*found)
        width = None if form == "json" else table_width(wide=options.wide, out=options.out)
        write(wrap(report, width, indent=" " * 6))
    if problems:
        raise problems[0]
    return 1 if any(findings.count("fail") for findings in found) else 0


def _find_recipes(names: Sequence[str]) -> list[Recipe]:
    """Find the recipe of each vendor; a missing recipe is an error before any proxy starts."""
    if not names:
        return []
    from context_bench.tap.vendors import recipe

    return [recipe(name) for name in dict.fromkeys(names)]


def _build_parser() -> Parser:
    parser = Parser(
        prog="context-bench conformance", description=f"{_EXAMPLE}\n{COMMANDS['conformance']}", epilog=_EXIT_CODES
    )
    add = parser.add_argument
    add("--proxy", metavar="URL", help="address of the proxy; with --start or --vendor, where the proxy will listen")
    add("--tap", metavar="[HOST]:PORT", help="address where the checks listen as the proxy's upstream, such as :9100")
    add_flags(parser, "tap_host")
    add("--start", metavar="COMMAND", help="command that starts the proxy; {port} and {tap} are filled in")
    add_flags(parser, "start_dir", "vendor")
    add_flags(parser, "api", help="API of the proxy (default: %(default)s)")
    add_flags(parser, "header")
    add("--model", metavar="NAME", help="model name to send, if the proxy accepts only known names")
    add("--check", action="append", default=[], metavar="NAME", help="run only this check (repeatable)")
    add("--list", action="store_true", help="list the checks and exit")
    add("--timeout", type=amount, default=30.0, metavar="S", help="seconds for one request (default: %(default)g)")
    add("--output", choices=("table", "json"), help="output format (default: by the ending of --out, else table)")
    add("--out", metavar="FILE", help="write the result to FILE, not to stdout")
    add_flags(parser, "wide")
    add_flags(parser, "silent", help="show no progress")
    return parser


def _check_flags(parser: Parser, options: argparse.Namespace) -> None:
    started = options.start or options.vendor
    if options.start and options.vendor:
        parser.error("--start and --vendor both start a proxy: pass one of them")
    if options.proxy and len(options.vendor) > 1:
        parser.error("--proxy is the address of one proxy: remove it with several --vendor")
    if not options.proxy and not started:
        parser.error("no proxy given: pass --proxy URL, --start COMMAND or --vendor NAME")
    if not options.tap and not started:
        parser.error("a --proxy that already runs must be configured with its upstream: pass a port, as in --tap :9100")


def _list_checks(options: argparse.Namespace) -> int:
    from context_bench.cli.output import table_width
    from context_bench.conformance import CHECKS
    from context_bench.output.layout import fit_listing

    print(fit_listing([[check.name, check.asks] for check in CHECKS], table_width(wide=options.wide), head=False))
    return 0


async def _examine_proxy(options: argparse.Namespace, checks: Sequence[Check], vendor: Recipe | None) -> Findings:
    from context_bench.cli.build_systems import parse_headers
    from context_bench.conformance import examine
    from context_bench.conformance.bench import Upstream
    from context_bench.monitors.progress import StatusLine
    from context_bench.tap.address import parse_listen
    from context_bench.tap.server import Tap

    host, port = parse_listen(options.tap or ":0")
    given = parse_headers(options.header)
    upstream = Upstream()
    tap = Tap(upstream, host=host, port=port, hosts=options.tap_host)
    name = f"{vendor.name} " if vendor else ""
    place, doing = 0, f"{name}starting"

    def note_check(at: int, check: Check) -> None:
        nonlocal place, doing
        place, doing = at, f"{name}{at + 1}/{len(checks)} {check.name}"

    line = StatusLine(lambda width: doing[:width], lambda: place / len(checks), enabled=not options.silent)
    async with AsyncExitStack() as stack:
        stack.enter_context(line)
        await tap.start()
        stack.push_async_callback(tap.stop)
        headers = {name: value.reveal().replace("{tap}", tap.url) for name, value in given.items()}
        proxy = options.proxy
        if options.start or vendor:
            proxy = (await stack.enter_async_context(prepare_proxy(options, tap.url, vendor))).url
        findings = await examine(
            proxy,
            upstream,
            tap=tap.url,
            api=options.api,
            checks=checks,
            model=options.model,
            timeout=options.timeout,
            headers={**(vendor.headers if vendor else {}), **headers},
            on_check=note_check,
        )
    return replace(findings, proxy=f"{vendor.name} {vendor.version or '(unknown version)'}") if vendor else findings


def prepare_proxy(options: argparse.Namespace, tap_url: str, vendor: Recipe | None) -> Any:
    from context_bench.processes.started_proxy import SCRATCH, StartedProxy
    from context_bench.tap.address import free_port, port_of

    port = port_of(options.proxy) if options.proxy else free_port()
    command, env = (vendor.command, vendor.env) if vendor else (options.start, None)
    directory = SCRATCH if vendor else options.start_dir
    return StartedProxy(command, port=port, tap_url=tap_url, env=env, directory=directory)
