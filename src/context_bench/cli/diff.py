"""`context-bench diff RUN [ID]`: how a system changed one example's context, and whether the evidence survived."""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_bench.cli.commands import COMMANDS
from context_bench.cli.diff_view import View, visible, wants_color
from context_bench.cli.flags import Parser, add_flags, add_store, count
from context_bench.cli.messages import show_warnings
from context_bench.cli.output import table_width
from context_bench.compare.verdicts import choose_baseline
from context_bench.config import DEFAULT_THRESHOLD, STORE
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
from context_bench.traffic.passed_on import DiffPart, compare_passed_on
from context_bench.traffic.text_diff import mark_evidence
from context_bench.utils.tokens import Tokenizer, get_tokenizer

_MAX_NAMES = 5  # names in an error message
_MAX_LISTED = 40  # listed rows without --wide
_MAX_MEMORIES = 20  # memories shown without --full
_MAX_RESPONSE_CHARS = 2_000  # characters shown of a response

Key = tuple[Any, ...]  # system, dataset, example and repeat of a row


def main(arguments: Sequence[str]) -> int:
    options = _build_parser().parse_args(arguments[1:])
    with show_warnings(), Store(options.cache_dir or STORE, readonly=True, create=False) as store:
        info = store.run(options.run)
        rows = [row for row in _choose_rows(store, info, options) if _is_chosen(row, options)]
        records = [] if options.id is None else _find_records(store, info, rows, options)
        listed = rows if options.wide or options.output == "json" else rows[:_MAX_LISTED]
        states = {} if options.id is not None else _find_states(store, info, listed)
    facts = [_to_facts(row, info, states.get(_get_key(row))) for row in listed]
    if options.output == "json":
        shown = [_list_details(record, info) for record in records] or facts
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
        return 0
    if options.id is None:
        sys.stdout.write(_list_rows(facts, len(rows) - len(facts), options))
        return 0
    color = wants_color("never" if options.no_color else options.color, sys.stdout)
    view = View(_find_tokenizer(info), color=color, full=options.full)
    for number, record in enumerate(records):
        sys.stdout.write("\n" if number else "")
        for text in _render_record(record, view, full=options.full):
            sys.stdout.write(text)
    return 0


def _build_parser() -> Parser:
    parser = Parser(prog="context-bench diff", description=COMMANDS["diff"])
    add = parser.add_argument
    add("run", metavar="RUN", help="a run's id, its beginning, or last")
    add("id", metavar="ID", nargs="?", help="the example's id or its beginning (default: list the examples)")
    add("--system", metavar="NAME", help="only this system (default: all of the run)")
    add("--dataset", metavar="TAG", help="only examples of this dataset")
    add("--repeat", type=count, metavar="K", help="only this repeat; the first is 0")
    add("--lost", action="store_true", help="only examples whose evidence was lost")
    add(
        "--broken",
        action="store_true",
        help="only examples that the baseline answers correctly and the system does not",
    )
    add("--failed", action="store_true", help="only examples whose call failed")
    add("--output", choices=("text", "json"), default="text", help="output format (default: text)")
    add("--full", action="store_true", help="do not shorten unchanged or long passages")
    add(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="use colors (default: auto, on a terminal unless NO_COLOR is set)",
    )
    add("--no-color", action="store_true", help="use marks, not colors: [-dropped-], {+added+}, {~moved~}, ⟦evidence⟧")
    add_flags(parser, "wide")
    add_store(parser)
    return parser


# --- which rows


def _choose_rows(store: Store, info: RunInfo, options: Any) -> list[EvalRow]:
    """Read the rows selected by --lost, --broken and --failed, or all rows."""
    rows, settings = list(store.run_rows(info)), info.settings
    if not (options.lost or options.broken or options.failed):
        return rows
    threshold = settings.threshold or DEFAULT_THRESHOLD
    right, lost = set[Key](), set[Key]()
    if options.broken:
        systems = list(dict.fromkeys(row.system for row in rows))
        wanted = settings.baseline if settings.baseline in systems else None
        baseline = choose_baseline(systems, wanted, settings.controls)
        if baseline is None:
            raise UsageError(f"--broken needs a baseline, and run {info.id} has only one system")
        scored = (row for row in rows if row.system == baseline and settings.score_field in row.scores)
        right = {_get_key(row)[1:] for row in scored if row.scores[settings.score_field] >= threshold}
    if options.lost:
        lost = {key for key, state in _find_states(store, info, rows).items() if state == "lost"}
    return [
        row
        for row in rows
        if _get_key(row) in lost
        or (options.failed and row.error is not None)
        or (_get_key(row)[1:] in right and row.scores.get(settings.score_field, threshold) < threshold)
    ]


def _get_key(row: EvalRow) -> Key:
    return row.system, row.dataset, row.example_id, row.repeat


def _find_states(store: Store, info: RunInfo, rows: Sequence[EvalRow]) -> dict[Key, str | None]:
    wanted = set(map(_get_key, rows))
    return {key: _find_state(each) for each in store.run_records(info) if (key := _get_key(each.row)) in wanted}


def _find_state(record: RunRecord) -> str | None:
    """Return the state of the evidence: from the row's scores or, without an evidence evaluator, from the texts."""
    state = read_state(record.row.scores)
    if state is not None or record.answer is None or not evidence_texts(record.example):
        return state
    scores: Any = EvidenceSurvival().score(record.example, record.answer.processed)
    if not scores:
        return None
    return next(each for each in ("lost", "recoverable", "verbatim") if scores.details[each])


def _list_rows(facts: Sequence[dict[str, Any]], left: int, options: Any) -> str:
    """List rows as a table; `left` is the number of rows that are not listed."""
    words = {"lost": "lost evidence", "broken": "broke", "failed": "failed"}
    asked = [word for name, word in words.items() if getattr(options, name)]
    if asked and not facts:
        return f"No example {' or '.join(asked)}.\n"
    lines = [["example", "system", "score", "saved", "evidence", "error"]]
    for each in facts:
        numbers = ((each["score"], as_score), (each["savings"], percent))
        score, savings = ("" if value is None else form(value) for value, form in numbers)
        line = [str(each["example"]), each["system"], score, savings, each["evidence"] or ""]
        lines.append([*line, (each["error"] or "")[:60]])
    give_way = ("saved", "evidence")
    listed = fit_listing(lines, table_width(wide=options.wide), give_way=give_way) + "\n"
    hint = f"… {left:,} more; select with --lost, --broken, --failed, --system or --dataset, or list all with --wide\n"
    return listed + (hint if left else "")


def _find_savings(row: EvalRow) -> float | None:
    """Return the share of tokens saved in prompts, as a tap measured it, or else in contexts."""
    sides, seen = _read_tokens(row), row.metadata.get("prompt_savings")
    return seen if seen is not None or sides is None or not sides[0] else 1 - sides[1] / sides[0]


def _find_records(store: Store, info: RunInfo, rows: Sequence[EvalRow], options: Any) -> list[RunRecord]:
    """Find the records of the example by its id or the start of its id."""
    ids = list(dict.fromkeys(str(row.example_id) for row in rows))
    starting = [each for each in ids if each.startswith(options.id)]
    if options.id not in ids and len(starting) == 1:
        options.id = starting[0]
    elif options.id not in ids and starting:
        raise UsageError(f"{len(starting)} examples start with {options.id!r}: {_name_few(starting)}")
    chosen = {
        _get_key(row) for row in rows if str(row.example_id) == options.id and options.repeat in (None, row.repeat)
    }
    if not chosen:
        raise UsageError(_explain_missing(info, list(store.run_rows(info)), ids, options))
    return [record for record in store.run_records(info) if _get_key(record.row) in chosen]


def _is_chosen(row: EvalRow, options: Any) -> bool:
    """Whether --system and --dataset select the row."""
    bare = _drop_parameters(row.dataset)
    return options.system in (None, row.system) and options.dataset in (None, row.dataset, bare)


def _drop_parameters(tag: str) -> str:
    """Return a dataset's name without its parameters."""
    return tag.partition(":")[0]


def _explain_missing(info: RunInfo, rows: Sequence[EvalRow], ids: list[str], options: Any) -> str:
    known = {
        "system": list(dict.fromkeys(row.system for row in rows)),
        "dataset": list(dict.fromkeys(tag for row in rows for tag in (row.dataset, _drop_parameters(row.dataset)))),
        "example": ids,
    }
    for kind, name in (("system", options.system), ("dataset", options.dataset), ("example", options.id)):
        if name is not None and name not in known[kind]:
            few = f"there are {_name_few(known[kind], name)}" if known[kind] else "there are no rows"
            if kind == "example" and not ids and (options.lost or options.broken or options.failed):
                few = "no example matches the selection"
            return f"run {info.id} has no {kind} {name!r}: {few}"
    return f"run {info.id} has no repeat {options.repeat} of example {options.id!r}"


def _name_few(names: list[str], wanted: str = "") -> str:
    """List a few names, the most similar to the wanted name first."""
    near = difflib.get_close_matches(wanted, names[:5_000], n=_MAX_NAMES, cutoff=0.5) if wanted else []
    few = list(dict.fromkeys([*near, *names]))[:_MAX_NAMES]
    more = len(names) - len(few)
    return ", ".join(few) + (f" and {more:,} more" if more else "")


def _find_tokenizer(info: RunInfo) -> Tokenizer:
    """Load the run's tokenizer, or the default if it is no longer available."""
    name = info.settings.tokenizer
    try:
        return get_tokenizer(name if isinstance(name, str) else None)
    except UsageError:
        return get_tokenizer()


# --- as data


def _to_facts(row: EvalRow, info: RunInfo, state: str | None) -> dict[str, Any]:
    return {
        "example": row.example_id,
        "system": row.system,
        "dataset": row.dataset,
        "repeat": row.repeat,
        "score": row.scores.get(info.settings.score_field),
        "savings": _find_savings(row),
        "evidence": state,
        "error": row.error,
    }


def _list_details(record: RunRecord, info: RunInfo) -> dict[str, Any]:
    """List the fields of a row with the whole diff; the segments, joined in order, give both texts."""
    row, example = record.row, record.example
    processed, sides = None if record.answer is None else record.answer.processed, _read_tokens(row)
    comparisons = [] if isinstance(example.get("memory"), dict) else compare_passed_on(example, processed)
    return {
        **_to_facts(row, info, _find_state(record)),
        "tokens": None if sides is None else dict(zip(("sent", "passed_on"), sides)),
        "untouched": row.metadata.get("untouched"),
        "retrieved": None if processed is None else processed.get("retrieved"),
        "comparisons": [
            {"title": title, "parts": [_list_segments(part, evidence_texts(example)) for part in parts]}
            for title, parts in comparisons
        ],
        "response": row.response,
        "scores": row.scores,
        "unscored": row.unscored,
    }


def _list_segments(part: DiffPart, evidence: Sequence[str]) -> dict[str, Any]:
    segments = mark_evidence(part.segments, evidence)
    return {"title": part.title, "segments": [segment._asdict() for segment in segments]}


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
        yield "untouched: the model got exactly the request that was sent\n"
    if record.answer is not None and evidence_texts(record.example):
        yield f"evidence: {visible(_describe_evidence(record.example, record.answer.processed))}\n"


def _read_tokens(row: EvalRow) -> tuple[int, int] | None:
    """Read the tokens that were sent and those that were passed on, counted over the same attempts."""
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
        shown = row.response if full else row.response[:_MAX_RESPONSE_CHARS]
        more = len(row.response) - len(shown)
        note = f"… {more:,} more characters" if more else ""
        yield "\n" + view.title("response") + "\n" + (visible(shown) or "(empty)") + note + "\n"
    scores = [f"{visible(key)} {value:.3f}" for key, value in row.scores.items()]
    reasons = [f"no {visible(name)}: {visible(reason)}" for name, reason in row.unscored.items()]
    if scores or reasons:
        yield "\n" + view.title("scores") + "\n" + "\n".join([", ".join(scores), *reasons]).strip() + "\n"


def _describe_question(record: RunRecord, view: View, *, full: bool) -> Iterator[str]:
    """Describe a row of a memory system, with its evidence and whether it was retrieved."""
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
    shown = found if full else found[:_MAX_MEMORIES]
    yield "\n" + view.title(f"retrieved, {len(found)}") + "\n"
    for rank, item in enumerate(shown, 1):
        own = [str(each) for each in item.get("ids") or ()]
        mark = " ⟦evidence⟧" if set(own) & set(evidence) else ""
        text = " ".join(str(item.get("text") or "").split())
        yield f"{rank}. {visible(', '.join(own))}{mark} {visible(text)}\n"
    if len(found) > len(shown):
        yield f"… {len(found) - len(shown)} more\n"


def _tell_state(found: Sequence[Any] | None, place: int | None, shown: int | None) -> str:
    """Describe whether a turn with evidence was retrieved and read."""
    if found is None:
        return "not known"
    if place is None:
        return "missing"
    return "retrieved" if shown is None or place < shown else "retrieved, but cut by the budget"


def _shorten(text: str, full: bool) -> str:
    shown = text if full else text[:2000]
    return visible(shown) + (f"… {len(text) - len(shown):,} more characters" if len(shown) < len(text) else "")
