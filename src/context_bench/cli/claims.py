"""`context-bench claims check FILE.toml...`: check published claims, and whether the data could have refuted them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags, add_store
from context_bench.cli.messages import say, show_warnings
from context_bench.cli.output import table_width
from context_bench.cli.runs import load_run
from context_bench.config import STORE
from context_bench.errors import UsageError
from context_bench.results import EvalResult

_EXIT_CODES = """\
exit codes: 0 every claim is reproduced, supported or not refuted,
1 a claim differs or is refuted, 2 wrong usage or input,
4 a claim is undecided, not reproducible or not recomputed"""


def main(arguments: Sequence[str]) -> int:
    parser = Parser(prog="context-bench claims", description=COMMANDS["claims"], epilog=_EXIT_CODES)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=Parser)
    check = actions.add_parser("check", help="check the claims in one or more files", epilog=_EXIT_CODES)
    check.add_argument("files", nargs="*", type=Path, metavar="FILE.toml", help="files of claims")
    check.add_argument("--from", dest="source", metavar="RUN|FILE", help="check the claims on a run or a bundle")
    check.add_argument("--run", action="store_true", help="run the functions (your code) that the claims name")
    check.add_argument("--data", type=Path, metavar="DIR", help="folder with the records of public datasets")
    check.add_argument(
        "--output", choices=("table", "json", "markdown"), default="table", help="output format (default: table)"
    )
    check.add_argument("--badges", type=Path, metavar="DIR", help="also write a badge (SVG) for each claim")
    check.add_argument("--self-test", action="store_true", help="check claims that are true or false by construction")
    add_store(check)
    add_flags(check, "wide")
    options = parser.parse_args(arguments[1:])
    with show_warnings():
        if options.self_test:
            return _test_itself()
        if not options.files:
            raise UsageError("no claims given: name a FILE.toml, or pass --self-test")
        from context_bench.claims.claim import read_claims
        from context_bench.claims.judging import decide_all, find_code
        from context_bench.claims.measuring import Measurer
        from context_bench.claims.report import describe, render_badge, render_markdown, render_table

        claims = [claim for path in options.files for claim in read_claims(path)]
        known = os.environ.get("CONTEXT_BENCH_DATA")
        data = options.data or (Path(known) if known else None)
        given = None if options.source is None else _load(options.source, options.cache_dir or STORE)
        measurer = Measurer(given, run=options.run, data=data)
        decided = decide_all(claims, [measurer.measure(claim) for claim in claims])
        if options.output == "json":
            shown = json.dumps(describe(decided), indent=1, ensure_ascii=False) + "\n"
        elif options.output == "markdown":
            shown = render_markdown(decided)
        else:
            shown = render_table(decided, table_width(wide=options.wide))
        sys.stdout.write(shown)
        if options.badges is not None:
            options.badges.mkdir(parents=True, exist_ok=True)
            today = datetime.now(timezone.utc).date().isoformat()
            for each in decided:
                (options.badges / f"{each.claim.id}.svg").write_text(render_badge(each, today), encoding="utf-8")
        return find_code(decided)


def _load(source: str, folder: str) -> EvalResult:
    """Load a run from the store, or a bundle; refuse a bundle that fails its verification."""
    if not source.endswith(".ctxb"):
        return load_run(source, folder, rows=True)
    from context_bench.claims.verify import verify_bundle

    found = verify_bundle(Path(source), keep_rows=True)
    if found.code == 1 or found.result is None:
        raise UsageError(f"{source} is not valid: {found.differs[0]} (see context-bench runs verify)")
    return found.result


def _test_itself() -> int:
    from context_bench.claims.self_test import SIMULATED, run_self_test

    faults, wrong = run_self_test()
    for fault in faults:
        say(fault)
    shares = ", ".join(f"{wrong[word] / SIMULATED:.1%} wrongly {word}" for word in ("supported", "refuted"))
    print(f"{'failed' if faults else 'passed'}: 6 known claims; of {SIMULATED:,} simulated at the edge, {shares}")
    return 1 if faults else 0
