"""The state of a passage in a compressed text: verbatim, recoverable, or lost.

A token pruner drops words that a reader does not need. A passage is recoverable if the words that carry its meaning are
still close together, in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from context_bench.text.golds import gold_answers
from context_bench.text.words import STOP_WORDS, normalise, undo_escapes

State = Literal["verbatim", "recoverable", "lost"]
STATE_SCORES = ("evidence_survived", "evidence_verbatim")
"""The two scores that give a row's state: whether no passage is lost, and whether all are verbatim."""

NOT_IN_CONTEXT = "no gold answer occurs in the original context, so none can be lost"
"""The reason why an example has no `answer_in_context`."""

MAX_ADDED_WORDS = 5  # words by which a stretch may be longer than the passage in it
DROP_ONE_IN = 5  # one in five of the passage's other content words may be dropped: 80% must be kept
MIN_CONTENT_WORDS = 3  # with fewer content words, a pruned passage cannot be distinguished from chance
_NEGATION_WORDS = "no nor not never neither none nobody nothing nowhere without"
_NEGATIONS = frozenset(_NEGATION_WORDS.split())
_CONTRACTED = "ain aren ca couldn didn doesn hadn hasn haven isn mightn mustn needn shan shouldn wasn weren won wouldn"
_FUNCTION_WORDS = STOP_WORDS.union(_CONTRACTED.split()) - _NEGATIONS
_NUMBER_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion
trillion half"""
_NUMBERS = frozenset(_NUMBER_WORDS.split())


def find_state(span: str, output: str, question: str = "", answers: Iterable[str] = ()) -> State:
    """Find whether a text contains a passage verbatim or in recoverable form, or whether the passage is lost.

    Layout, case, punctuation and escapes do not count (see `normalise`). Words that the passage shares with the
    question or an accepted answer must be kept. The time grows with the length of the output and with how many of its
    words also occur in the passage.
    """
    wanted = [normalise(form) for form in undo_escapes(span)]
    forms = [normalise(form) for form in undo_escapes(output)]
    if any(each in form for each in wanted if each.strip() for form in forms):
        return "verbatim"
    return "recoverable" if is_recoverable(span, forms, question, answers) else "lost"


def read_state(scores: Mapping[str, float]) -> State | None:
    """Read the state of a row's worst passage of evidence from the row's scores; None if unknown."""
    survived, verbatim = map(scores.get, STATE_SCORES)
    if survived is None:
        return None
    return "lost" if survived < 1 else "recoverable" if verbatim is not None and verbatim < 1 else "verbatim"


def is_recoverable(span: str, forms: Iterable[str], question: str = "", answers: Iterable[str] = ()) -> bool:
    """Whether one stretch of a normalised text still has the meaning of a passage.

    The stretch is at most five words longer than the passage. In the order of the passage, the stretch has all its
    numbers and negations, all its content words that are also in the question or an answer, and 80% of its other
    content words. A passage with fewer than three content words can only be verbatim.
    """
    passage = _Passage(span, question, answers)
    return passage.enough and any(passage.is_in(_write_negations(form)) for form in forms)


def _write_negations(form: str) -> str:
    """Write `isn't` and `cannot`, which normalise to `isn t` and `cannot`, with a `not`."""
    return form.replace("n t ", "n not ").replace(" cannot ", " can not ")


class _Passage:
    """The content words of a passage, in order, and which of these words must be kept."""

    def __init__(self, span: str, question: str, answers: Iterable[str]) -> None:
        words = _write_negations(normalise(span)).split()
        asked = _list_content(question).union(*map(_list_content, answers))
        self._words = [word for word in words if word in asked or word not in _FUNCTION_WORDS]
        self._needed = [word in asked or _is_fixed(word) for word in self._words]
        self.enough = len(self._words) >= MIN_CONTENT_WORDS
        self._most_dropped = self._needed.count(False) // DROP_ONE_IN
        self._last = max((place for place, needed in enumerate(self._needed) if needed), default=0)
        self._longest = len(words) + MAX_ADDED_WORDS
        self._places: dict[str, list[int]] = defaultdict(list)
        for place in reversed(range(len(self._words))):
            self._places[self._words[place]].append(place)

    def is_in(self, form: str) -> bool:
        """Whether one stretch of a normalised text contains enough of the passage. For each content word, this keeps
        pairs: how many words were dropped so far, and where the stretch starts. A pair is discarded if another pair
        drops no more words and starts no earlier.
        """
        if not all(f" {word} " in form for word, needed in zip(self._words, self._needed) if needed):
            return False
        ends: list[list[tuple[int, int]]] = [[] for _ in self._words]
        for at, word in enumerate(form.split()):
            for place in self._places.get(word, ()):
                ends[place] = _keep_best([*self._extend(ends, place, at), *ends[place]])
                after = len(self._words) - 1 - place
                if place >= self._last and ends[place] and ends[place][0][0] + after <= self._most_dropped:
                    return True
        return False

    def _extend(self, ends: Sequence[Sequence[tuple[int, int]]], place: int, at: int) -> Iterable[tuple[int, int]]:
        """Return the pairs for all stretches that may continue with this word of the passage."""
        for skipped in range(self._most_dropped + 1):
            before = place - 1 - skipped
            if before < 0:
                yield skipped, at
                return
            for dropped, start in ends[before]:
                if dropped + skipped <= self._most_dropped and at - start < self._longest:
                    yield dropped + skipped, start
            if self._needed[before]:
                return


def _keep_best(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    best: list[tuple[int, int]] = []
    for dropped, start in sorted(pairs, key=lambda pair: (pair[0], -pair[1])):
        if not best or start > best[-1][1]:
            best.append((dropped, start))
    return best


def _list_content(text: str) -> frozenset[str]:
    """List the content words of a question or an answer; all its words if it has none (`The Who`)."""
    words = frozenset(_write_negations(normalise(text)).split())
    return words - _FUNCTION_WORDS or words


def _is_fixed(word: str) -> bool:
    """Whether a word is a negation, a number, or a percent or currency sign."""
    is_number = word in _NUMBERS or any(sign.isdigit() for sign in word)
    return word in _NEGATIONS or is_number or "\ua840" <= word <= "\ua84b"


def shows_turn(text: str, content: str, question: str = "", answers: Sequence[str] = ()) -> bool:
    """Whether a text contains a turn, verbatim or recoverable."""
    return find_state(content, text, question, answers) != "lost"


def list_shown_turns(
    found: Sequence[Mapping[str, Any]], original: Mapping[str, Any], processed: Mapping[str, Any]
) -> list[set[str]]:
    """List for each memory the evidence turns (from the record of the `original`) that it names and shows. If a turn
    was cut into pieces, the memory that completes the turn shows it. Controls return unchanged turns.
    """
    turns: Mapping[str, str] = (original.get("memory") or {}).get("evidence_turns") or {}
    named = [{str(each) for each in item.get("ids") or ()} for item in found]
    if processed.get("is_control"):
        return [ids & turns.keys() for ids in named]
    asked = str(original.get("question") or ""), [part for gold in gold_answers(original) for part in gold]
    shown: list[set[str]] = [set() for _ in found]
    for turn, content in turns.items():
        pieces: list[str] = []
        for place, item in enumerate(found):
            if turn not in named[place]:
                continue
            text = str(item.get("text") or "")
            pieces.append(text)
            if shows_turn(text, content, *asked) or (
                len(pieces) > 1
                and not any(turn in each for each in shown)
                and shows_turn(" ".join(pieces), content, *asked)
            ):
                shown[place].add(turn)
    return shown
