"""`context-bench traffic show FILE|DIR...`: show contents and cost of recorded sessions. Nothing leaves the machine."""

from __future__ import annotations

import json
from collections.abc import Sequence

from context_bench.cli.commands import COMMANDS
from context_bench.cli.flags import Parser, add_flags
from context_bench.cli.output import choose_form, open_destination, table_width
from context_bench.errors import DataError
from context_bench.monitors.progress import StatusLine
from context_bench.pricing import Prices, load_shipped_prices
from context_bench.text import count_things
from context_bench.text.masking import Placeholders
from context_bench.traffic.overview import Overview
from context_bench.traffic.readers import Findings, read_sessions

_EXAMPLE = """\
example:
  context-bench traffic show ~/.claude/projects
  context-bench traffic show FILE|DIR... [--by tool|session|day]
      [--output table|json|html] [--out FILE] [--prices FILE] [--mask-emails]
"""


def main(arguments: Sequence[str]) -> int:
    options = traffic_parser().parse_args(arguments[1:])
    form = choose_form(options.output, options.out, ("table", "json", "html"))
    prices = Prices.from_file(options.prices) if options.prices else load_shipped_prices()
    findings, overview = Findings(), Overview(prices)

    def tell(_: int) -> str:
        return f"{len(overview.sessions):,} sessions, {overview.total.requests:,} requests"

    def share() -> float | None:
        return findings.bytes_read / findings.bytes_in_all if findings.bytes_in_all else None

    with StatusLine(tell, share, enabled=not options.silent):
        for session in read_sessions(options.paths, findings):
            overview.add(session)
    from context_bench.output.traffic import list_tables, name_others, summarize, write_page, write_tables

    if not overview.total.requests:
        looked = count_things(len(findings.files), "file")
        named = f" ({name_others(findings)})" if findings.files else ""
        raise DataError(f"no recorded request in {', '.join(options.paths)}: {looked} read{named}")
    masked = Placeholders(emails=options.mask_emails)
    with open_destination(options.out, quiet=options.silent) as write:
        if form == "json":
            document = {**overview.as_dict(), "files": [report.as_dict() for report in findings.files]}
            write(json.dumps(masked.mask_all(document), indent=1, ensure_ascii=False) + "\n")
        else:
            tables = list(list_tables(overview, findings, options.by, masked.mask))
            sentences = [masked.mask(each) for each in summarize(overview, findings)]
            page = form == "html"
            write(
                write_page(sentences, tables)
                if page
                else write_tables(sentences, tables, table_width(wide=options.wide or bool(options.out)))
            )
    return 0


def traffic_parser() -> Parser:
    parser = Parser(prog="context-bench traffic", description=COMMANDS["traffic"], epilog=_EXAMPLE)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = actions.add_parser(
        "show",
        help="show requests, tokens, caching and cost of recorded sessions",
        description="show requests, tokens, caching and cost of recorded sessions; secrets are masked",
    )
    show.add_argument(
        "paths", nargs="+", metavar="FILE|DIR", help="recordings; the format is detected from the content"
    )
    show.add_argument("--by", choices=("tool", "session", "day"), help="show only the table by tool, session or day")
    show.add_argument("--output", choices=("table", "json", "html"), help="output format (default: table)")
    show.add_argument("--out", metavar="FILE", help="write the result to FILE, not to stdout")
    show.add_argument("--mask-emails", action="store_true", help="mask e-mail addresses as well as secrets")
    show.add_argument("--prices", metavar="FILE", help="prices (TOML or JSON) instead of the bundled ones")
    add_flags(show, "wide")
    add_flags(show, "silent", help="show no progress")
    return parser
