"""`context-bench diff RUN ID`: what a system did to the context of one example, and whether the evidence survived."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.diff_view import View, visible, wants_color
from context_bench.cli.flags import Parser, add_flags, add_store, count
from context_bench.cli.messages import show_warnings
from context_bench.cli.output import table_width
from context_bench.config import STORE
from context_bench.errors import UsageError
from context_bench.evaluators.evidence import EvidenceSurvival
from context_bench.numbers import percent
from context_bench.numbers import score as as_score
from context_bench.output.layout import fit_listing
from context_bench.results import EvalRow
from context_bench.store import RunInfo, Store
from context_bench.store.backend import RunRecord
from context_bench.text.evidence_state import list_shown_turns, read_state
from context_bench.text.golds import evidence_texts, gold_answers
from context_bench.traffic.text_diff import compare_passed_on, mark_evidence
from context_bench.utils.tokens import Tokenizer, get_tokenizer

__all__ = ["main"]

_FEW = 5
_FEW_MEMORIES = 20
"""Memories that are shown unless all are asked for."""
_RESPONSE = 2_000
"""Characters of a response that are shown."""


def main(arguments: Sequence[str]) -> int:
    """Print the comparison for every system of the run, or for one."""
    options = _build_parser().parse_args(arguments[1:])
    with show_warnings(), Store(options.cache_dir or STORE, readonly=True, create=False) as store:
        info = store.run(options.run)
        if options.id is None:
            sys.stdout.write(_list_rows(store.run_rows(info), info.settings.score_field, options))
            return 0
        records = _find_records(store, info, options)
    counter = _find_tokenizer(info)
    color = wants_color("never" if options.no_color else options.color, sys.stdout)
    view = View(counter, color=color, full=options.full)
    for number, record in enumerate(records):
        sys.stdout.write("\n" if number else "")
        for text in _render_record(record, view, full=options.full):
            sys.stdout.write(text)
    return 0


def _build_parser() -> Parser:
    parser = Parser(prog="context-bench diff", description=COMMANDS["diff"])
    add = parser.add_argument
    add("run", metavar="RUN", help="an id, the start of one, or last")
    add("id", metavar="ID", nargs="?", help="the id of the example, or the start of one (default: list them)")
    add("--system", metavar="NAME", help="only this system (default: all of the run)")
    add("--dataset", metavar="TAG", help="only examples of this dataset")
    add("--repeat", type=count, metavar="K", help="only this repeat; the first is 0")
    add("--full", action="store_true", help="do not shorten unchanged or long passages")
    add(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="use colors (default: auto, on a terminal unless NO_COLOR is set)",
    )
    add("--no-color", action="store_true", help="use marks, not colors: [-dropped-], {+added+}, ⟦evidence⟧")
    add_flags(parser, "wide")
    add_store(parser)
    return parser


# --- which rows


def _list_rows(rows: Iterable[EvalRow], field: str, options: Any) -> str:
    """List the rows, with what tells which of them to look at; `field` is the score that counts."""
    lines = [["example", "system", "score", "savings", "evidence", "error"]]
    for row in rows:
        if _is_chosen(row, options):
            numbers = (row.scores.get(field), row.metadata.get("prompt_savings"))
            score, savings = ("" if value is None else form(value) for value, form in zip(numbers, (as_score, percent)))
            lines.append(
                [str(row.example_id), row.system, score, savings, read_state(row.scores) or "", (row.error or "")[:60]]
            )
    give_way = ("savings", "evidence")
    return fit_listing(lines, table_width(wide=options.wide), give_way=give_way) + "\n"


def _find_records(store: Store, info: RunInfo, options: Any) -> list[RunRecord]:
    known: dict[str, dict[str, None]] = {"system": {}, "dataset": {}, "example": {}}
    found = []
    ids = {str(row.example_id) for row in store.run_rows(info)}
    starting = [each for each in ids if each.startswith(options.id)]
    if options.id not in ids and len(starting) == 1:
        options.id = starting[0]
    for record in store.run_records(info):
        row = record.row
        if _is_chosen(row, options):
            known["example"][str(row.example_id)] = None
            if str(row.example_id) == options.id and options.repeat in (None, row.repeat):
                found.append(record)
        known["system"][row.system] = None
        known["dataset"] |= dict.fromkeys((row.dataset, _drop_parameters(row.dataset)))
    if not found:
        raise UsageError(_explain_missing(info, options, known))
    return found


def _is_chosen(row: EvalRow, options: Any) -> bool:
    """Whether --system and --dataset leave the row in."""
    bare = _drop_parameters(row.dataset)
    return options.system in (None, row.system) and options.dataset in (None, row.dataset, bare)


def _drop_parameters(tag: str) -> str:
    """Return a dataset's name without its parameters."""
    return tag.partition(":")[0]


def _explain_missing(info: RunInfo, options: Any, known: Mapping[str, Mapping[str, None]]) -> str:
    for kind, name in (("system", options.system), ("dataset", options.dataset), ("example", options.id)):
        if name is not None and name not in known[kind]:
            return f"run {info.id} has no {kind} {name!r}: {_name_few(list(known[kind]), name)}"
    return f"run {info.id} has no repeat {options.repeat} of example {options.id!r}"


def _name_few(names: list[str], wanted: str) -> str:
    """Name a few, the nearest first."""
    if not names:
        return "it has no rows"
    near = difflib.get_close_matches(wanted, names[:5_000], n=_FEW, cutoff=0.5)
    few = list(dict.fromkeys([*near, *names]))[:_FEW]
    more = len(names) - len(few)
    return "there are " + ", ".join(few) + (f" and {more:,} more" if more else "")


def _find_tokenizer(info: RunInfo) -> Tokenizer:
    """Find the run's own tokenizer, or the default where that is not available any more."""
    name = info.settings.tokenizer
    try:
        return get_tokenizer(name if isinstance(name, str) else None)
    except UsageError:
        return get_tokenizer()


# --- one row


def _render_record(record: RunRecord, view: View, *, full: bool) -> Iterator[str]:
    row, example = record.row, record.example
    tag, repeat = f" of {row.dataset}" if row.dataset else "", f", repeat {row.repeat}" if row.repeat else ""
    yield view.title(f"{row.system} on {row.example_id}{tag}{repeat}") + "\n"
    yield from _describe_row(record)
    if isinstance(example.get("memory"), dict):
        yield from _describe_question(record, view, full=full)
        yield from _describe_outcome(record, view, full=full)
        return
    evidence = evidence_texts(example)
    processed = None if record.answer is None else record.answer.processed
    for comparison in compare_passed_on(example, processed):
        yield "\n" + view.title(comparison.title) + "\n" if comparison.title else ""
        for part in comparison.parts:
            yield "\n" + view.title(part.title) + "\n"
            yield view.segments(mark_evidence(part.segments, evidence))
    yield from _describe_outcome(record, view, full=full)


def _describe_row(record: RunRecord) -> Iterator[str]:
    """Describe tokens before and after, and whether the evidence survived."""
    row = record.row
    sides = _read_tokens(row)
    if sides is not None:
        before, after = sides
        saved = f", {1 - after / before:.1%} saved" if before else ""
        yield f"tokens: {before:,} sent, {after:,} passed on{saved}\n"
    if row.metadata.get("untouched") is True:
        yield "untouched: the model got exactly what was sent\n"
    if record.answer is not None and evidence_texts(record.example):
        yield f"evidence: {visible(_describe_evidence(record.example, record.answer.processed))}\n"


def _read_tokens(row: EvalRow) -> tuple[int, int] | None:
    """Read the tokens sent and passed on, both over the same attempts."""
    sent = row.metadata.get("downstream_tokens", row.metadata.get("sent_tokens"))
    if isinstance(sent, int) and row.upstream_tokens is not None:
        return sent, row.upstream_tokens
    if row.metadata.get("output") != "context":
        return None
    return row.input_tokens, row.output_tokens if row.upstream_tokens is None else row.upstream_tokens


def _describe_evidence(example: dict[str, Any], processed: dict[str, Any]) -> str:
    scores: Any = EvidenceSurvival().score(example, processed)
    if not scores:
        return f"not known, {scores.reason}"
    counts = scores.details
    total = counts["verbatim"] + counts["recoverable"] + counts["lost"]
    if not counts["lost"]:
        return f"survived, {total} of {total} ({counts['verbatim']} verbatim, {counts['recoverable']} recoverable)"
    spans = "; ".join(f"⟦{span}⟧" for span in counts["lost_spans"])
    return f"lost, {counts['lost']} of {total}: {spans}"


def _describe_outcome(record: RunRecord, view: View, *, full: bool) -> Iterator[str]:
    row = record.row
    if row.error is not None:
        yield "\n" + view.title("error") + "\n" + visible(row.error) + "\n"
        yield from (f"  {visible(frame)}\n" for frame in row.metadata.get("traceback", ()))
    answered = record.answer is not None and row.response != record.answer.processed.get("context")
    if answered:
        shown = row.response if full else row.response[:_RESPONSE]
        more = len(row.response) - len(shown)
        note = f"… {more:,} more characters" if more else ""
        yield "\n" + view.title("response") + "\n" + (visible(shown) or "(empty)") + note + "\n"
    scores = [f"{visible(key)} {value:.3f}" for key, value in row.scores.items()]
    reasons = [f"no {visible(name)}: {visible(reason)}" for name, reason in row.unscored.items()]
    if scores or reasons:
        yield "\n" + view.title("scores") + "\n" + "\n".join([", ".join(scores), *reasons]).strip() + "\n"


def _describe_question(record: RunRecord, view: View, *, full: bool) -> Iterator[str]:
    """Describe a row of a memory system, with its evidence and what it found of it."""
    example, about = record.example, record.example["memory"]
    yield f"conversation: {about.get('conversation')}, {about.get('history_turns')} turns, type "
    yield f"{visible(str((example.get('meta') or {}).get('type') or 'not given'))}\n"
    yield "\n" + view.title("question") + "\n" + visible(str(example.get("question", ""))) + "\n"
    golds = [" and ".join(gold) for gold in gold_answers(example)]
    yield f"gold: {visible(' | '.join(golds) or 'none: it cannot be answered from the conversation')}\n"
    processed = {} if record.answer is None else record.answer.processed
    yield from _describe_retrieved(example, processed, view, full=full)
    if processed.get("context") is not None:
        yield "\n" + view.title("what the reader got") + "\n" + _shorten(str(processed["context"]), full) + "\n"


def _describe_retrieved(
    example: Mapping[str, Any], processed: Mapping[str, Any], view: View, *, full: bool
) -> Iterator[str]:
    evidence = [str(each) for each in example["memory"].get("evidence_ids") or ()]
    found = processed.get("retrieved")
    in_words = set[str]().union(*list_shown_turns(found or (), example, processed))
    places = {
        str(each): rank for rank, item in reversed(list(enumerate(found or ()))) for each in item.get("ids") or ()
    }
    yield "\n" + view.title("evidence") + "\n"
    if not evidence:
        yield "none is named\n"
    for name in evidence:
        state = _tell_state(found, places.get(name), processed.get("shown"))
        state = "claimed, not shown" if state == "retrieved" and name not in in_words else state
        yield f"turn {visible(name)}: {state}\n"
    if found is None:
        return
    shown = found if full else found[:_FEW_MEMORIES]
    yield "\n" + view.title(f"retrieved, {len(found)}") + "\n"
    for rank, item in enumerate(shown, 1):
        own = [str(each) for each in item.get("ids") or ()]
        mark = " ⟦evidence⟧" if set(own) & set(evidence) else ""
        text = " ".join(str(item.get("text") or "").split())
        yield f"{rank}. {visible(', '.join(own))}{mark} {visible(text)}\n"
    if len(found) > len(shown):
        yield f"… {len(found) - len(shown)} more\n"


def _tell_state(found: Sequence[Any] | None, place: int | None, shown: int | None) -> str:
    """Tell what became of a turn with evidence."""
    if found is None:
        return "not known"
    if place is None:
        return "missing"
    return "retrieved" if shown is None or place < shown else "retrieved, but not whole within the budget"


def _shorten(text: str, full: bool) -> str:
    shown = text if full else text[:2000]
    return visible(shown) + (f"… {len(text) - len(shown):,} more characters" if len(shown) < len(text) else "")
