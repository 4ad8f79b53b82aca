"""`context-bench replay`: send recorded sessions through proxies and policies, and show the effects."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, amount
from context_bench.config import RunOptions
from context_bench.errors import Interrupted, UsageError

if TYPE_CHECKING:
    from context_bench.replay.arms import Arm
    from context_bench.replay.outcome import ArmOutcome
    from context_bench.results import EvalResult

_EXAMPLE = """\
examples:
  context-bench replay ~/.claude/projects/my-project --vendor kompact
  context-bench replay logs.jsonl --proxy http://127.0.0.1:7878 --tap :9100
  context-bench replay session.jsonl --controls \\
      --system clear-tool-results:last=3
"""

_EXIT_CODES = """\
exit codes: 0 done, 2 wrong usage or no recording, 3 a request or a session
failed, 130 interrupted (--resume continues with the remaining sessions)"""

FORMS = ("table", "json")
MIN_CONTROL_SAVING = 0.01  # arms that save less get no controls of their size
SMALLEST_RATIO = 0.02


def main(arguments: Sequence[str]) -> int:
    parser = _build_parser()
    given = parser.parse_args(arguments[1:])
    options = RunOptions(**{name: value for name, value in vars(given).items() if name in RunOptions.declared()})
    from context_bench.cli.messages import show_messages
    from context_bench.cli.output import choose_form, open_destination, table_width
    from context_bench.refs import import_all
    from context_bench.replay.report import describe, render

    form = choose_form(options.output, options.out, FORMS)
    import_all(options.imports)
    with show_messages(quiet=options.silent, verbose=False):
        arms = _replay(given, options, arguments)
    if form == "json":
        shown = json.dumps(describe(arms), indent=1, ensure_ascii=False) + "\n"
    else:
        shown = render(arms, table_width(wide=options.wide, out=options.out))
    with open_destination(options.out) as write:
        write(shown)
    if given.page:
        from context_bench.replay.page import render_page

        with open_destination(given.page, flag="--report") as write:
            write(render_page(arms))
    return 3 if any(arm.errors or arm.failed or not arm.sessions for arm in arms) else 0


def _build_parser() -> Parser:
    parser = Parser(
        prog="context-bench replay",
        description=f"{_EXAMPLE}\n{COMMANDS['replay']}",
        epilog=_EXIT_CODES,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("paths", nargs="+", metavar="FILE|DIR", help="recorded sessions, in any format of `context-bench traffic show`")
    add_flags(parser, "proxy", help="proxy that speaks the API of the recording (repeatable)")
    add_flags(parser, "name", "start", "start_dir", "vendor", "tap", "tap_host", "header")
    add_flags(parser, "tap_model", help="local model that answers a proxy's own requests")
    add_flags(parser, "system", help="policy, messages function or compressor (repeatable)")
    add(
        "--controls",
        action="store_true",
        help="add truncation, random deletion and other controls at the size of each system",
    )
    add_flags(parser, "max_examples", help="at most N sessions (default: all)")
    add_flags(parser, "max_errors", help="stop when this many sessions of a system could not be replayed")
    add("--timeout", type=amount, metavar="S", help="seconds for one request (default: 60; 600 with --tap-model)")
    add_flags(parser, "volume", help="expected requests, such as 70k/day, to compute dollars per month")
    add_flags(parser, "imports", "seed", "prices_file", "cache_dir", "resume", "no_store")
    form = "output format: table or json (default: by the ending of --out, else table)"
    add_flags(parser, "output", help=form, choices=FORMS, metavar="FORM")
    add_flags(parser, "out", help="write the result to FILE, not to stdout")
    add_flags(parser, "wide", help="show all columns, however narrow the terminal")
    add("--report", dest="page", metavar="FILE.html", help="write a page that opens offline")
    add_flags(parser, "silent")
    return parser


def _replay(given: argparse.Namespace, options: RunOptions, typed: Sequence[str]) -> list[ArmOutcome]:
    from context_bench.cli.recorded_command import mask_arguments
    from context_bench.replay.outcome import gather
    from context_bench.replay.replayer import Recording

    arms = _build_arms(given, options)
    if not arms:
        raise UsageError("no system to replay with: add --proxy URL with --tap, --vendor NAME or --system REF")
    if not options.silent:
        print("context-bench: reading the recordings", file=sys.stderr)
    recording = Recording.read(given.paths)
    if not recording.examples:
        raise UsageError(f"no recorded request in {', '.join(given.paths)}: see `context-bench traffic show`")
    if not options.silent and (skipped := recording.findings.describe_skipped()):
        print(f"context-bench: {skipped}", file=sys.stderr)
    try:
        command = mask_arguments(typed)
        outcomes = gather(_run(arms, recording, options, command).rows, volume=options.volume)
        if not given.controls:
            return outcomes
        controls = _build_controls(outcomes, options.seed)
        return [*outcomes, *gather(_run(controls, recording, options, command).rows, [each.name for each in controls])]
    except Interrupted as failure:
        from context_bench.cli.output import advise_resume

        failure.advice = advise_resume(typed, kept=not options.no_store)
        raise


def _run(arms: Sequence[Arm], recording: Any, options: RunOptions, command: list[str]) -> EvalResult:
    from context_bench.monitors.limits import Limits
    from context_bench.pricing import Prices, load_shipped_prices
    from context_bench.replay.replayer import Replayer
    from context_bench.runner import evaluate
    from context_bench.utils.tokens import get_tokenizer

    prices = Prices.from_file(options.prices_file) if options.prices_file else load_shipped_prices()
    count = get_tokenizer()
    return evaluate(
        [Replayer(arm, recording, prices, count) for arm in arms],
        recording.examples[: options.max_examples],
        evaluators=[],
        metrics=[],
        progress=not options.silent,
        cache_dir=options.store_folder,
        reuse=options.reuses_answers,
        preflight=False,
        limits=Limits(max_errors=options.max_errors),
        config={"command": command},
    )


def _build_arms(given: argparse.Namespace, options: RunOptions) -> list[Arm]:
    """Build the proxies, each with its own tap, then the systems of this process."""
    from context_bench.cli.build_systems import parse_headers, plan_arms, plan_ports
    from context_bench.http.secrets import find_api_root
    from context_bench.local import LocalModel
    from context_bench.processes.started_proxy import StartedProxy
    from context_bench.replay.arms import ProxyArm, SystemArm
    from context_bench.systems.adapt import build_systems
    from context_bench.tap.address import port_of
    from context_bench.tap.answering import Shared

    planned = plan_arms(options)
    host, ports = plan_ports(options, planned)
    headers = {name: secret.reveal() for name, secret in parse_headers(options.header).items()}
    helper = Shared(LocalModel(options.tap_model)) if options.tap_model else None
    arms: list[Arm] = []
    for arm, port in zip(planned, ports):
        launch = arm.launch

        def start(tap: str, launch: Any = launch) -> StartedProxy:
            return StartedProxy(
                launch.command, port=launch.port, tap_url=tap, env=launch.env, directory=launch.directory
            )

        root = find_api_root(arm.url)
        arms.append(
            ProxyArm(
                arm.name or f"127.0.0.1:{port_of(arm.url)}",
                root,
                start=start if launch is not None else None,
                known_as=arm.known_as or (launch.known_as if launch is not None else root),
                headers={**(arm.headers or {}), **headers},
                helper=helper,
                host=host,
                port=port,
                timeout=given.timeout or (60.0 if helper is None else 600.0),
            )
        )
    arms += [SystemArm(each) for text in options.system for each in build_systems(text, options.seed)]
    return arms


def _build_controls(outcomes: Sequence[ArmOutcome], seed: int) -> list[Arm]:
    """Build controls at the size of each arm: they cut tool results as much as the arm cut the requests."""
    from context_bench.replay.arms import SystemArm
    from context_bench.systems.adapt import build_systems

    refs: dict[str, None] = {"minify": None}
    for arm in outcomes:
        saved = sum(turn["tokens"] - turn["sent_tokens"] for turn in arm.turns)
        results = sum(turn["result_tokens"] for turn in arm.turns)
        if results and saved > MIN_CONTROL_SAVING * results:
            ratio = max(SMALLEST_RATIO, round(1 - saved / results, 2))
            refs |= {f"{name}:ratio={ratio:g}": None for name in ("truncate", "random-drop")}
    if not any(arm.name.startswith("clear-tool-results") for arm in outcomes):
        refs["clear-tool-results"] = None
    known = {arm.name for arm in outcomes}
    return [SystemArm(each) for ref in refs for each in build_systems(ref, seed) if each.name not in known]
