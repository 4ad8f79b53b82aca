"""Conversations, their questions, batches to ingest, retrieved items, and the text that a reader gets.

Retrieved items are taken in the order of their rank until the budget is full; the last item is cut if it does not fit.
Then they are rendered in the order of the conversation, with dates. Dates and speakers count against the budget.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, TypedDict

from context_bench.errors import BadOutput, UsageError
from context_bench.text.evidence_state import shows_turn
from context_bench.utils.tokens import Tokenizer


class Turn(TypedDict, total=False):
    id: str
    role: str  # "user", "assistant" or "system"
    speaker: str
    content: str
    timestamp: str | None  # ISO 8601
    session: str
    user: str  # the owner of the memory, in a conversation with several users
    forget: dict[str, Any]  # a deletion request: {"what": ...}


class Question(TypedDict, total=False):
    """One question about a conversation, with its gold. If the answer depends on the date, the question's text contains
    it.
    """

    id: str
    question: str
    answer: Any
    answers: list[Any]  # accepted answers; an inner list is an answer in parts, all required
    type: str
    evidence_ids: list[str]  # ids of turns
    evidence_sessions: list[str]
    unanswerable: bool
    pair: str  # the same for an answerable question and its unanswerable twin
    user: str
    date: str
    instruction: str  # tells the reader how to answer; not part of the question
    category: int  # LoCoMo only
    options: dict[str, str]  # two answers by letter, in a choice
    known_error: str  # a letter of `long_conversations.ERROR_KINDS`, or a sentence
    rule: str  # for a judge: a name of `judge.RULES`
    user_evidence: list[str]  # LongMemEval only: the evidence in user turns
    correct_letter: str  # of a multiple-choice question; its text has the options
    choices: list[str]
    evidence_texts: list[str]  # if the evidence is given as memories and not as turns
    rubric: list[str]  # criteria that a judge checks one by one
    probe: dict[str, Any]  # {"kind": ..., "present": [...], "absent": [...]}: exact gold on text


class Conversation(TypedDict, total=False):
    id: str
    turns: list[Turn]
    questions: list[Question]
    meta: dict[str, Any]


class Retrieved(TypedDict, total=False):
    text: str
    ids: list[str]  # ids of its source turns
    score: float  # only stored; the order of the list is the ranking
    timestamp: str  # of its source turn, ISO 8601
    session: str


def check_retrieved(found: Any, name: str) -> list[Retrieved]:
    """Check that `found` is a list of objects with a text, and return them with the fields that evaluators read."""
    if not isinstance(found, list | tuple):
        given = "None" if found is None else f"a {type(found).__name__}"
        raise BadOutput(f"{name}: retrieve() returned {given}; it must return a list of objects with 'text'")
    checked: list[Retrieved] = []
    for item in found:
        if not isinstance(item, Mapping) or not isinstance(item.get("text"), str):
            raise BadOutput(f"{name}: retrieve() must return objects with 'text' (got a {type(item).__name__})")
        kept: Retrieved = {"text": item["text"]}
        if isinstance(item.get("ids"), list | tuple):
            kept["ids"] = [str(each) for each in item["ids"]]
        if isinstance(item.get("score"), int | float):
            kept["score"] = float(item["score"])
        checked.append(kept)
    return checked


@lru_cache(maxsize=4096)
def write_date(timestamp: str | None) -> str:
    """Write a timestamp as `8 May 2023, 13:56`, or `8 May 2023` at midnight; leave other formats unchanged."""
    if not timestamp:
        return ""
    try:
        moment = datetime.fromisoformat(timestamp.replace("Z", "+00:00"))
    except ValueError:
        return timestamp
    day = f"{moment.day} {moment:%B} {moment.year}"
    return f"{day}, {moment:%H:%M}" if moment.hour or moment.minute else day


def put_date_before(turn: Turn) -> Turn:
    """Prepend the date to the text of a turn, for a memory that does not read timestamps."""
    date = write_date(turn.get("timestamp"))
    return {**turn, "content": f"[{date}] {turn.get('content', '')}"} if date else turn


GRANULARITIES = ("turn", "pair", "session")

Step = tuple[str, str | None, Any]  # the method (`ingest` or `forget`), the user, and the argument

_NO_LIMIT = 1 << 60
_SIZES = {"turn": 1, "pair": 2, "session": _NO_LIMIT}


def check_granularity(granularity: str) -> str:
    if granularity not in GRANULARITIES:
        raise UsageError(f"granularity must be one of {', '.join(GRANULARITIES)} (got {granularity!r})")
    return granularity


def plan_steps(
    turns: Sequence[Turn], granularity: str, *, takes_dates: bool = True, forgets: bool = False
) -> Iterator[Step]:
    """Yield the calls that write a conversation into a memory, in the order of its turns.

    A batch never joins two sessions or two users. If the system has `forget`, a deletion request is a separate call.
    Unless the system reads `timestamp`, the date is prepended to the text of each turn.
    """
    size = _SIZES[granularity]
    batch: list[Turn] = []
    place: tuple[Any, Any] | None = None
    for turn in turns:
        here = turn.get("session"), turn.get("user")
        asks_to_forget = forgets and turn.get("forget") is not None
        if batch and (here != place or len(batch) == size or asks_to_forget):
            yield "ingest", batch[0].get("user"), batch
            batch = []
        place = here
        if asks_to_forget:
            yield "forget", turn.get("user"), turn["forget"]
        else:
            batch.append(turn if takes_dates else put_date_before(turn))
    if batch:
        yield "ingest", batch[0].get("user"), batch


Placed = tuple[int, Turn]  # a turn with its index in the conversation

AFTER_ALL_TURNS = 1 << 60


def mark_claimed(name: str) -> str:
    """Mark the id of a turn or session that a memory names but does not show: it keeps its rank, but does not count."""
    return f"{name} (claimed)"


def rank_sessions(found: Iterable[Retrieved], turns: Mapping[str, Placed], evidence: Collection[str]) -> list[str]:
    """List the sessions of the retrieved items, best first. Mark evidence sessions without a shown turn as claimed."""
    shown: dict[str, bool] = {}
    for item in found:
        for _, turn in (turns[name] for name in item.get("ids") or () if name in turns):
            session = str(turn.get("session") or "")
            if session and not shown.get(session):
                shown[session] = session not in evidence or shows_turn(item["text"], turn["content"])
    return [session if seen else mark_claimed(session) for session, seen in shown.items()]


def index_turns(turns: Sequence[Turn]) -> dict[str, Placed]:
    return {str(turn.get("id")): (place, turn) for place, turn in enumerate(turns)}


def render_retrieved(
    found: Iterable[Retrieved], turns: Mapping[str, Placed], budget: int | None, count: Tokenizer
) -> tuple[str, int]:
    """Render retrieved items within the budget; return the text, and how many of the first items fit completely."""
    lines: list[tuple[int, int, str]] = []
    used = whole = 0
    for rank, item in enumerate(found):
        place, line = _write_line(item, turns)
        size = 0 if budget is None else _count_line(line, count)
        if budget is not None and used + size > budget:
            cut = _cut(line, budget - used, count)
            if cut:
                lines.append((place, rank, cut))
            break
        used += size
        whole += 1
        lines.append((place, rank, line))
    text = "\n".join(line for _, _, line in sorted(lines))
    return text if budget is None else _cut(text, budget, count), whole


@lru_cache(maxsize=1 << 16)
def _count_line(line: str, count: Tokenizer) -> int:
    """Count the tokens of a line and its line end; cached, since lines recur for many questions and budgets."""
    return count(f"{line}\n")


def render_history(turns: Sequence[Turn]) -> str:
    lines = []
    for turn in turns:
        speaker, content = turn.get("speaker") or turn.get("role"), str(turn.get("content", ""))
        lines.append(_put_date(f"{speaker}: {content}" if speaker else content, turn))
    return "\n".join(lines)


def _write_line(item: Retrieved, turns: Mapping[str, Placed]) -> tuple[int, str]:
    placed = [turns[str(name)] for name in item.get("ids") or () if str(name) in turns]
    if not placed:
        return AFTER_ALL_TURNS, item["text"]
    place, turn = min(placed, key=lambda each: each[0])
    return place, _put_date(item["text"], turn)


def _put_date(text: str, turn: Turn) -> str:
    date = write_date(turn.get("timestamp"))
    return text if not date or date in text else f"[{date}] {text}"


def _cut(text: str, budget: int, count: Tokenizer) -> str:
    """Return the beginning of a text within a number of tokens, up to the last whole word."""
    if budget <= 0:
        return ""
    if count(text) <= budget:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if count(text[:middle]) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low].rsplit(None, 1)[0] if " " in text[:low].strip() else text[:low]
