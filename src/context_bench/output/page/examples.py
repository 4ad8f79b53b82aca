"""The examples of a page: the list, the dialog that shows one, and its context before and after.

Contexts are shortened to limit the page size: evidence stays, long stretches fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from context_bench.output.elements import Markup, clean_text, element, fill_template, join, section
from context_bench.output.page.run_facts import EVIDENCE, OUTCOMES, Source
from context_bench.text import dump_json
from context_bench.text.evidence_state import list_shown_turns
from context_bench.text.golds import evidence_texts, gold_answers
from context_bench.traffic.passed_on import compare_passed_on
from context_bench.traffic.text_diff import Segment, mark_evidence

Piece = tuple[str, str, bool]
"""Kind (`k`ept, `d`ropped, `a`dded, `l`eft for another place, `m`oved here), text, and whether it is evidence."""

Stretch = tuple[str, list[Piece]]  # a title and its pieces

_MAX_COMPARED_CHARS = 4_000_000
"""Most characters of both sides to compare; more would take several seconds."""
_MAX_EVIDENCE_CHARS = 1_000
_MOST_PARTS = 40


def compare_context(example: Mapping[str, Any], processed: Mapping[str, Any] | None) -> list[Stretch]:
    """Compare the context of an example with a system's version, part by part."""
    if isinstance(example.get("memory"), Mapping):
        return list(_show_retrieved(example, processed or {}))
    context = example.get("context")
    after = (processed or {}).get("context")
    if isinstance(context, str) and len(context) + len(after if isinstance(after, str) else "") > _MAX_COMPARED_CHARS:
        return [
            (f"too long to compare ({len(context):,} characters); it begins with", [("k", context[:20_000], False)])
        ]
    evidence = evidence_texts(example)
    stretches: list[Stretch] = []
    for passed_on in compare_passed_on(example, processed):
        if not passed_on.parts:
            stretches.append((passed_on.title, []))
        for part in islice(passed_on.parts, _MOST_PARTS):
            title = ", ".join(filter(None, (passed_on.title, part.title)))
            stretches.append((title, list(_to_pieces(mark_evidence(part.segments, evidence)))))
    if isinstance(context, str) and context and not any(pieces for _, pieces in stretches):
        kept = mark_evidence([Segment("kept", context, context)], evidence)
        stretches.append(("original context", list(_to_pieces(kept))))
    return stretches


def _show_retrieved(example: Mapping[str, Any], processed: Mapping[str, Any]) -> Iterator[Stretch]:
    """Show the text that a memory retrieved for a question, and the part that the reader got, with marked evidence."""
    wanted = [str(each) for each in example["memory"].get("evidence_ids") or ()]
    found = processed.get("retrieved")
    items = [([str(each) for each in item.get("ids") or ()], str(item.get("text") or "")) for item in found or ()]
    known = {each for ids, _ in items for each in ids}
    shown = set[str]().union(*list_shown_turns(found or (), example, processed))
    states = [
        f"turn {each}: {'retrieved' if each in shown else 'claimed, not shown' if each in known else 'missing'}\n"
        for each in wanted
    ]
    if found is None:
        states = [f"turn {each}: unknown, as the system does not report what it retrieved\n" for each in wanted]
    yield "evidence", [("k", "".join(states) or "none is named", False)]
    if found is not None:
        pieces = [
            ("k", f"{rank}. {', '.join(ids)}: {' '.join(text.split())}\n", bool(set(ids) & set(wanted)))
            for rank, (ids, text) in enumerate(items, 1)
        ]
        yield f"retrieved, {len(items):,}", pieces or [("k", "nothing", False)]
    context = processed.get("context")
    if isinstance(context, str):
        evidence = [text for ids, text in items if set(ids) & set(wanted)]
        kept = mark_evidence([Segment("kept", context, context)], evidence)
        yield "what the reader got", list(_to_pieces(kept))


def _to_pieces(segments: Iterable[Segment]) -> Iterable[Piece]:
    for segment in segments:
        if segment.kind == "kept":
            yield "k", segment.text, segment.evidence
        else:
            gone, here = "lm" if segment.kind == "moved" else "da"
            if segment.text:
                yield gone, segment.text, segment.evidence
            if segment.new:
                yield here, segment.new, segment.evidence


def shorten(stretches: Iterable[Stretch], room: int) -> list[tuple[str, list[tuple[str, str, int]]]]:
    """Shorten pieces to about `room` characters; a piece of kind `f` gives the number of omitted characters.

    Evidence is kept if there is room; other stretches keep their two ends.
    """
    stretches = list(stretches)
    pieces = sum(len(each) for _, each in stretches)
    whole = sum(len(text) for _, each in stretches for _, text, _ in each) <= room
    edge = max(16, room // (2 * pieces)) if pieces else 0
    left, found = room, []
    for title, each in stretches:
        shown: list[tuple[str, str, int]] = []
        hidden = 0
        for kind, text, evidence in each:
            most = len(text) if whole else min(len(text), _MAX_EVIDENCE_CHARS) if evidence else 2 * edge
            if left <= 0 and not whole:
                hidden += len(text)
                continue
            left -= min(len(text), most)
            if len(text) <= most:
                shown.append((kind, clean_text(text), int(evidence)))
                continue
            cut = most // 2
            shown.append((kind, clean_text(text[:cut]), int(evidence)))
            shown.append(("f", str(len(text) - 2 * cut), 0))
            shown.append((kind, clean_text(text[len(text) - cut :]), int(evidence)))
        if hidden:
            shown.append(("f", str(hidden), 0))
        found.append((clean_text(title), shown))
    return found


_FACT_NAMES = """\
output sent_tokens response_tokens written_tokens upstream_calls extra_upstream_calls lost_upstream_calls
failed_upstream_calls untouched answered_without_call cached_answer prompt_savings claimed_tokens_saved
billed_prompt_tokens proxy_overhead first_token_overhead injected_tools answer_unknown prefix_stability
first_message_changed rewritten_history not_applied"""
_FACTS = _FACT_NAMES.split()


def describe_row(source: Source) -> tuple[dict[str, Any], list[Stretch]]:
    """Describe a row, and compare its context before and after."""
    row, example = source.row, source.example
    same = source.processed is not None and bool(row.response) and row.response == source.processed.get("context")
    details = {
        "prompt": [] if example is None else list(_list_prompt(example)),
        "gold": None if example is None else [" + ".join(gold) for gold in gold_answers(example)],
        "response": "" if same else row.response,
        "same": same,
        "scores": row.scores,
        "unscored": row.unscored,
        "error": row.error,
        "traceback": "\n".join(map(str, row.metadata.get("traceback", ()))),
        "facts": {key: row.metadata[key] for key in _FACTS if key in row.metadata},
        "reasons": {
            str(name): " ".join(str(value["rationale"]).split())
            for name, value in row.metadata.items()
            if isinstance(value, dict) and value.get("rationale")
        },
        "upstream": row.upstream_tokens,
    }
    return details, [] if example is None else compare_context(example, source.processed)


def _list_prompt(example: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in ("prompt", "question"):
        if example.get(key):
            yield key, str(example[key])
    choices = example.get("choices")
    if choices:
        yield "choices", "\n".join(map(str, choices)) if isinstance(choices, list | tuple) else str(choices)
    for turn in example.get("turns") or ():
        if isinstance(turn, Mapping):
            content = turn.get("content")
            yield str(turn.get("role")), content if isinstance(content, str) else dump_json(content)
    if example.get("tools"):
        yield "tools", dump_json(example["tools"], indent=True)


def cut_details(details: Mapping[str, Any], stretches: list[Stretch], room: int, length: int) -> dict[str, Any]:
    """Cut the context of a row to `room` characters, and each other text of the row to `length`."""
    shown = {key: _cut(value, length) for key, value in details.items()}
    return {**shown, "context": shorten(stretches, room)}


def _cut(value: Any, length: int) -> Any:
    """Shorten the texts in a value; each states how much is missing."""
    if isinstance(value, str):
        if len(value) <= length:
            return clean_text(value)
        return f"{clean_text(value[:length])} … ({len(value) - length:,} more characters)"
    if isinstance(value, Mapping):
        return {_cut(str(key), 80): _cut(item, length) for key, item in list(value.items())[:60]}
    if isinstance(value, list | tuple):
        return [_cut(item, length) for item in value[: max(4, length // 20)]]
    return value


def examples_section(rows: int | None) -> Markup:
    """Make the list of examples; `rows` is the number of rows, None if not yet known."""
    if rows == 0:
        return section("examples", "Examples", element("p", {"class": "missing"}, "The rows were not stored."))
    outcomes, evidence = (
        join(*(element("option", {"value": number}, text) for number, text in enumerate(texts)))
        for texts in (OUTCOMES, EVIDENCE)
    )
    return fill_template(
        "examples.html", outcomes=outcomes, evidence=evidence, found="" if rows is None else f"{rows:,} rows"
    )
