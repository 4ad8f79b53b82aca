"""`context-bench datasets [show|check|fetch|import]`: the catalog, a dataset's details, downloads, recorded traffic."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from context_bench.cli.flags import Parser, add_flags, count
from context_bench.cli.listings import listing_parser, print_components, print_listing, summarize_component
from context_bench.cli.messages import say
from context_bench.cli.output import format_json, open_destination, table_width
from context_bench.datasets.catalog import Card, card_for, catalog
from context_bench.datasets.open import Choices, open_datasets
from context_bench.errors import DataError, MissingExtra, UsageError, printable
from context_bench.monitors.progress import StatusLine
from context_bench.output.layout import fit_listing
from context_bench.refs import import_all
from context_bench.registry import registry
from context_bench.text import count_things

_MORE = """\
more:
  context-bench datasets show NAME[:CONFIG] [--data-dir DIR] [--full]
  context-bench datasets check NAME[:CONFIG]|FILE [-n N] [--data-dir DIR]
  context-bench datasets fetch NAME[:CONFIG]... --to DIR [--revision REV] [-n N]
  context-bench datasets import FILE|DIR... [--out FILE] [--answers]
"""

MAX_TEXT_CHARS = 1500  # characters shown of a text without --full
DEPTH_EXAMPLES = 50  # examples whose evidence positions `show` describes


def main(arguments: Sequence[str]) -> int:
    commands = {"show": _show, "check": _check, "fetch": _fetch, "import": _import}
    command = commands.get(arguments[1] if len(arguments) > 1 else "")
    if command is not None:
        return command(arguments[2:])
    parser = listing_parser("datasets")
    parser.commands = commands
    parser.epilog = _MORE
    parser.add_argument("--markdown", action="store_true", help="print the catalog as a Markdown page")
    options = parser.parse_args(arguments[1:])
    if options.markdown:
        sys.stdout.write(markdown_catalog())
        return 0
    import_all(options.imports)
    print_listing(list(_list_datasets()), options, wrapped=(-1,), give_way=("licence", "evidence", "family"))
    print()
    print_components("memory_dataset", "what it is", options)
    return 0


def _list_datasets() -> Iterator[list[str]]:
    yield ["dataset", "family", "score", "evidence", "licence", "what it is"]
    cards = catalog()
    for name in registry.list("dataset"):
        card = cards.get(name)
        if card is None:
            yield [name, "plugin", "by fields", "", "", summarize_component("dataset", name)]
        else:
            primary = card.primary + (" (stand-in)" if card.stand_in else "")
            yield [name, card.family, primary, "yes" if card.evidence else "", card.licence, card.summary]


def _show(arguments: Sequence[str]) -> int:
    from context_bench.testing.gold_check import describe_depths, find_depths

    parser = Parser(
        prog="context-bench datasets show", description="show facts about a dataset, its first example, and its prompt"
    )
    parser.add_argument("dataset", metavar="REF", help="NAME[:CONFIG], such as mmlu:anatomy")
    parser.add_argument("--full", action="store_true", help="show long texts whole")
    add_flags(parser, "data_dir", "revision", "imports", "wide")
    options = parser.parse_args(arguments)
    import_all(options.imports)
    card, problem = card_for(options.dataset), ""
    try:
        choices = Choices(limit=DEPTH_EXAMPLES, data_dir=options.data_dir, revision=options.revision)
        examples = list(open_datasets([options.dataset], choices))
        example = examples[0] if examples else None
    except (DataError, MissingExtra) as error:
        if card is None:
            raise
        example, examples, problem = None, [], printable(str(error))  # the facts are still useful without it
    facts = [[key, text] for key, text in _list_facts(card) if text] if card is not None else []
    facts += [["evidence stands", text] for text in describe_depths(find_depths(examples))]
    if facts:
        sys.stdout.write(fit_listing(facts, table_width(wide=options.wide), head=False) + "\n")
    if example is not None:
        _print_example(example, card, None if options.full else MAX_TEXT_CHARS, table_width(wide=options.wide))
    elif problem:
        say(f"no example: {problem}")
    return 0


def _check(arguments: Sequence[str]) -> int:
    """Check that a dataset's own evaluators accept its gold answers; return 1 if they do not."""
    from context_bench.testing.gold_check import check_golds

    parser = Parser(
        prog="context-bench datasets check",
        description="score a gold and a wrong answer of each example with its evaluators, and find its evidence",
        epilog="exit codes: 0 sound, 1 a gold answer refused, a wrong one accepted or evidence missing, 2 wrong usage",
    )
    parser.add_argument("dataset", metavar="REF", help="NAME[:CONFIG] or a file, such as my_data.jsonl")
    add_flags(parser, "max_examples", default=200, help="at most N examples (default: %(default)s)")
    add_flags(parser, "data_dir", "imports")
    parser.add_argument("--output", choices=("table", "json"), default="table", help="output format")
    options = parser.parse_args(arguments)
    import_all(options.imports)
    choices = Choices(limit=options.max_examples, data_dir=options.data_dir)
    check = check_golds(open_datasets([options.dataset], choices))
    if options.output == "json":
        print(json.dumps({"dataset": options.dataset, "sound": check.is_sound, **check.to_dict()}, indent=1))
        return int(not check.is_sound)
    for line in check.describe():
        print(line)
    verdict = "sound" if check.is_sound else "not sound"
    unscored = check.examples - check.scored
    left = f"; {unscored:,} have no gold answer usable as a reply" if unscored else ""
    print(f"{options.dataset}: {verdict}, {check.examples:,} examples{left}.")
    return int(not check.is_sound)


def _list_facts(card: Card) -> Iterator[tuple[str, str]]:
    yield "dataset", card.name
    yield "what it is", card.summary
    yield "note", card.note
    yield "score", card.primary + (f" (stand-in: {card.stand_in})" if card.stand_in else "")
    yield "official number", f"{card.aggregate} of {card.aggregate_field or 'score'}" if card.aggregate else ""
    yield "evaluators", ", ".join(card.evaluators)
    yield "evidence", card.evidence
    yield "instruction", card.instruction
    yield "licence", card.licence
    yield "gated", "yes: accept its terms on the hub first" if card.gated else ""
    yield "not verified", "; ".join(card.unverified)
    for layout, columns in card.columns.items():
        yield f"columns ({layout})", ", ".join(columns)
    for config in card.configs.values():
        yield f"config {config.name}", "; ".join(_describe_source(card, config))


def _describe_source(card: Card, config: Any) -> Iterator[str]:
    from context_bench.datasets.public.raw_files import patterns_for

    if config.name == card.default_config:
        yield "default"
    if config.size is not None:
        yield f"{config.size:,} examples"
    if config.parts:
        yield f"all of {', '.join(config.parts)}"
        return
    if config.hub:
        yield f"hub {config.hub}" + (f" ({config.hub_config})" if config.hub_config else "")
    if config.revision:
        yield f"revision {config.revision}"
    yield f"split {config.split}"
    yield f"files {card.name}/{{{','.join(patterns_for(card, config))}}}"


def _print_example(example: dict[str, Any], card: Card | None, longest: int | None, width: int | None) -> None:
    from context_bench.systems.prompts import build_messages

    if card is not None and card.instruction:
        example = {"instruction": card.instruction, **example}
    sent: dict[str, Any] = {"messages": build_messages(example)}
    if example.get("tools"):
        sent["tools"] = example["tools"]
    for title, value in (("the first example", example), ("its prompt", sent)):
        sys.stdout.write(f"\n{title}:\n{format_json(value, longest=longest, width=width)}\n")


def _fetch(arguments: Sequence[str]) -> int:
    from context_bench.datasets.public.fetch import fetch

    parser = Parser(
        prog="context-bench datasets fetch", description="download records of public datasets, as files for --data-dir"
    )
    parser.add_argument("datasets", nargs="+", metavar="REF", help="NAME[:CONFIG]; NAME:* for all configurations")
    parser.add_argument("--to", required=True, metavar="DIR", help="folder to write to; pass it later as --data-dir")
    parser.add_argument("--revision", metavar="REV", help="branch, tag or commit on the hub")
    parser.add_argument("-n", type=count, metavar="N", help="at most N records of a table (default: all)")
    add_flags(parser, "silent", help="show no progress")
    options = parser.parse_args(arguments)
    reference, records = "", 0

    def count_record() -> None:
        nonlocal records
        records += 1

    with StatusLine(lambda _: f"fetching {reference}: {records:,} records", enabled=not options.silent) as status:
        for reference in options.datasets:
            records = 0
            for path in fetch(reference, Path(options.to), options.revision, options.n, on_record=count_record):
                status.hide()
                print(path, flush=True)
    return 0


def _import(arguments: Sequence[str]) -> int:
    from context_bench.datasets.recordings import read_examples
    from context_bench.traffic.readers import Findings

    parser = Parser(prog="context-bench datasets import", description="turn recorded sessions into a file of examples")
    parser.add_argument(
        "paths", nargs="+", metavar="FILE|DIR", help="recordings; the format is detected from the content"
    )
    parser.add_argument("--out", metavar="FILE", help="write the examples to FILE, not to stdout")
    parser.add_argument("--answers", action="store_true", help="use the recorded replies as gold answers")
    parser.add_argument("--mask-emails", action="store_true", help="mask e-mail addresses as well as secrets")
    add_flags(parser, "silent", help="show no progress")
    options: argparse.Namespace = parser.parse_args(arguments)
    findings, taken = Findings(), 0

    def write_lines() -> Iterator[str]:
        nonlocal taken
        for _, example in examples:
            taken += 1
            yield json.dumps(example, ensure_ascii=False) + "\n"

    examples = read_examples(options.paths, answers=options.answers, emails=options.mask_emails, findings=findings)
    with (
        StatusLine(lambda _: f"{taken:,} examples", enabled=not options.silent and bool(options.out)),
        open_destination(options.out) as write,
    ):
        lines = write_lines()
        first = next(lines, None)
        if first is None:
            skipped = findings.describe_skipped()
            raise UsageError(f"{', '.join(options.paths)}: no example found{skipped and f': {skipped}'}")
        write(chain([first], lines))
    say(", ".join(filter(None, (count_things(taken, "example"), findings.describe_skipped()))))
    return 0


def markdown_catalog() -> str:
    families: dict[str, list[Card]] = {}
    for card in catalog().values():
        families.setdefault(card.family, []).append(card)
    parts = ["# All datasets\n", "Generated by `context-bench datasets --markdown`; do not edit.\n"]
    for family, cards in families.items():
        lines = ["| " + " | ".join(line) + " |" for line in ([*_HEADER], ["---"] * len(_HEADER), *map(_line, cards))]
        parts += [f"## {family}\n", "\n".join(lines) + "\n"]
    return "\n".join(parts)


_HEADER = ("dataset", "what it is", "configurations", "n", "score", "evidence", "licence")


def _line(card: Card) -> list[str]:
    config = card.configs.get(card.default_config)
    names = [f"**{name}**" if name == card.default_config and len(card.configs) > 1 else name for name in card.configs]
    shown = names if len(names) <= 12 else [*names[:3], f"... ({len(names)})"]
    score = f"`{card.primary}`" + (" (stand-in)" if card.stand_in else "")
    size = f"{config.size:,}" if config is not None and config.size is not None else ""
    licence = card.licence + (" (gated)" if card.gated else "")
    cells = [f"`{card.name}`", card.summary, ", ".join(shown), size, score, card.evidence, licence]
    return [cell.replace("|", "\\|") for cell in cells]
