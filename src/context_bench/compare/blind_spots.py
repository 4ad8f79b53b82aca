"""Could the data have shown a loss? Compares each system with naive cuts to the size that it reached.

A cut that keeps one stretch of the context, or deletes sentences at random, knows nothing about the question. Where it
is not worse than the whole context, "equivalent" says more about where the evidence stands than about the system. The
cuts are judged by the rule of every verdict, never by their mean alone. Rows hold what each cut would have kept
(`matched_controls`), so all of this can be computed from rows. With `--controls=matched` a model answers from the cuts:
then these answers are judged, in place of where the evidence stands.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from context_bench.compare.pairing import Pairing, Pairs, ScoredAnswer, is_unread_row, read_group
from context_bench.stats import DEFAULT_MARGIN, Verdict, judge_family

if TYPE_CHECKING:
    from context_bench.results import EvalRow

CONTROL_NAMES = {
    "head": "truncation (head)",
    "tail": "truncation (tail)",
    "middle": "truncation (middle)",
    "random-drop": "random deletion",
}
"""Keys of `matched_controls`, and how a sentence names them."""

MIN_SAVING = 0.10
"""Share of the tokens from which on a system must do better than a naive cut: smaller cuts seldom lose anything."""


_NOT_SHOWN = "not shown that this data could have failed"

ASK = "--controls=matched has the model answer from such cuts"

VOID = "it changed nothing on any example, so nothing was tested"
"""Why a system that should change something has no verdict."""

NEUTRAL = ("passthrough", "direct")  # systems that are meant to change nothing


_COMPRESSOR_FACTS = ("compressor_seconds", "claimed_tokens_saved", "vendor")
"""Keys in the metadata of answers by systems that are meant to change what a model reads; a gateway has none."""


def is_compressed_row(row: EvalRow) -> bool:
    """Whether a row is of a compressor, of a vendor's proxy, or of a proxy that claims savings."""
    return row.metadata.get("output") == "context" or any(key in row.metadata for key in _COMPRESSOR_FACTS)


@dataclass(frozen=True)
class MatchedControl:
    """A naive cut to the sizes that a system reached."""

    name: str  # a key of `CONTROL_NAMES`
    kept: float  # the mean share of the evidence that it keeps; of cuts that a model answered from, the mean score
    loss: Verdict  # the verdict on it against the whole context
    gain: Verdict | None = None  # the verdict on the system against it; None where what the system kept is not known

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON can hold it."""
        gain = None if self.gain is None else self.gain.to_dict()
        return {"name": self.name, "kept": self.kept, "loss": self.loss.to_dict(), "gain": gain}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> MatchedControl:
        """Read back what `to_dict` wrote."""
        gain = None if stored["gain"] is None else Verdict.from_dict(stored["gain"])
        return cls(stored["name"], stored["kept"], Verdict.from_dict(stored["loss"]), gain)


@dataclass(frozen=True)
class Sensitivity:
    """Whether the data of a run could have shown that a system loses information."""

    # `none`: a naive cut of its size is shown not worse than the whole context. `shown`: all of them are shown worse.
    # `undecided`: neither. `small saving`: it saves less than 10%, so that nothing follows. `void`: it changed nothing
    word: str
    saving: float  # the share of the tokens that it saved, over the examples whose evidence is known
    n: int  # how many these are
    controls: tuple[MatchedControl, ...] = ()  # the cuts
    reason: str = ""  # one sentence, without the name of the system
    beats_controls: bool = False  # whether the system is shown to keep more than each of them
    needed_n: int | None = None  # where it is undecided, the examples that would tell
    asked: bool = False  # whether a model answered from the cuts

    def name_blind_cuts(self) -> str:
        """Name the cuts that are as good as the whole context, as in "truncation and random deletion"."""
        blind = [each for each in self.controls if each.loss.not_worse]
        return " and ".join(dict.fromkeys(CONTROL_NAMES[each.name].partition(" (")[0] for each in blind))

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON can hold it."""
        return {**vars(self), "controls": [each.to_dict() for each in self.controls]}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Sensitivity:
        """Read back what `to_dict` wrote."""
        return cls(**{**stored, "controls": tuple(map(MatchedControl.from_dict, stored["controls"]))})


def write_sensitivity(found: Mapping[str, Sensitivity]) -> dict[str, Any]:
    """Write what is known of each system as JSON can hold it."""
    return {name: each.to_dict() for name, each in found.items()}


def read_sensitivity(stored: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Sensitivity]:
    """Read back what `write_sensitivity` wrote."""
    return {name: Sensitivity.from_dict(each) for name, each in (stored or {}).items()}


@dataclass
class _Arm:
    """What is added up of one system: its cuts against the whole context, and itself against its cuts."""

    losses: dict[str, Pairs] = field(default_factory=lambda: {name: Pairs() for name in CONTROL_NAMES})
    gains: dict[str, Pairs] = field(default_factory=lambda: {name: Pairs() for name in CONTROL_NAMES})
    kept: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CONTROL_NAMES, 0.0))
    whole_tokens: int = 0
    kept_tokens: int = 0
    rows: int = 0
    unplaced: int = 0  # rows whose context does not hold the evidence
    unplaced_scored: int = 0  # those of them that have a score, so that the verdict counts them
    least_depth: float = 1.0
    most_depth: float = 0.0
    unplaced_sizes: tuple[int, int] = (0, 0)  # the tokens of those rows, whole and kept
    asked: bool = False
    read: bool = False  # whether a model answered from what the system left, and none from the cuts

    def add_unplaced(self, row: EvalRow, score: float | None) -> None:
        """Count a row whose context does not hold the evidence."""
        self.unplaced, self.unplaced_scored = self.unplaced + 1, self.unplaced_scored + (score is not None)
        sent, kept = row.metadata.get("sent_tokens"), row.upstream_tokens
        if is_unread_row(row):
            sent, kept = row.input_tokens, row.output_tokens
        if score is not None and sent is not None and kept is not None and not _is_memory_row(row):
            self.unplaced_sizes = (self.unplaced_sizes[0] + sent, self.unplaced_sizes[1] + kept)


def find_matched(systems: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Find the controls that a model answers for, by their names: the system and the cut of each."""
    names = list(systems)
    every = {f"{system} ({cut})": (system, cut) for system in names for cut in CONTROL_NAMES}
    return {name: every[name] for name in names if name in every}


class BlindSpots:
    """Adds up the naive cuts of all systems of a run, as the rows come.

    The baseline is the one that sends the whole context.
    """

    def __init__(self, systems: Iterable[str] = (), baseline: str = "", repeats: int = 1) -> None:
        self._arms: dict[tuple[str, str], _Arm] = {}  # by system and dataset
        self._asked: dict[tuple[str, str], _Arm] = {}  # the same, of cuts that a model answered from
        self._matched = find_matched(systems)
        against = {baseline, *(system for system, _ in self._matched.values())} if self._matched else ()
        self._pairings = {
            name: Pairing(
                [control for control, (system, _) in self._matched.items() if name in (system, baseline)],
                *(name, partial(self._pair, name)),
                repeats=repeats,
            )
            for name in against
        }
        self._baseline = baseline

    def add_answer(self, row: EvalRow, answer: ScoredAnswer) -> None:
        """Take in the answer of a system, or of a control that a model answered for."""
        if row.system in self._pairings:
            self._pairings[row.system].add(row.system, answer)
        elif row.system in self._matched and row.error is None and "not_applied" not in row.metadata:
            system, cut = self._matched[row.system]
            arm = self._asked.setdefault((system, row.dataset), _Arm(asked=True))
            for name in {system, self._baseline}:
                self._pairings[name].add(row.system, answer)
            if cut == "head" and not row.repeat:
                whole, kept = row.metadata["matched_to"]["tokens"]
                arm.whole_tokens, arm.kept_tokens = arm.whole_tokens + whole, arm.kept_tokens + kept

    def close(self) -> None:
        """Average the answers that have come where some of an example have not."""
        for each in self._pairings.values():
            each.close()

    def _pair(self, against: str, control: str, own: ScoredAnswer, other: ScoredAnswer) -> None:
        system, cut = self._matched[control]
        arm = self._asked[system, own.dataset]
        if against == system:
            arm.gains[cut].add(other, own)
        elif arm.losses[cut].add(own, other):
            arm.kept[cut] += own.value or 0.0
            arm.rows = max(arm.rows, arm.losses[cut].n)

    def add(self, row: EvalRow, score: float | None) -> None:
        """Take in a row; repeated answers say nothing here.

        Args:
            row: The answer.
            score: The score that is compared: of a context that no model has read, what the system kept.
        """
        scores = row.metadata.get("matched_controls")
        if row.repeat or row.error is not None:
            return
        arm = self._arms.setdefault((row.system, row.dataset), _Arm())
        if not isinstance(scores, dict):
            arm.add_unplaced(row, score)
            return
        unread = is_unread_row(row)
        arm.read = arm.read or not (unread or _is_memory_row(row))
        own = score if unread else _read_survival(row)
        group = read_group(row)
        whole = ScoredAnswer(row.example_id, row.dataset, 1.0, group)
        system = ScoredAnswer(row.example_id, row.dataset, own, group)
        for name, shares in scores.items():
            value = math.fsum(share if unread else float(share == 1) for share in shares) / len(shares)
            control = ScoredAnswer(row.example_id, row.dataset, value, group)
            arm.kept[name] += value
            arm.losses[name].add(control, whole)
            arm.gains[name].add(system, control)
        arm.rows += 1
        tokens, kept = row.metadata["context_tokens"]
        arm.whole_tokens, arm.kept_tokens = arm.whole_tokens + tokens, arm.kept_tokens + kept
        first, last = row.metadata["evidence_depth"]
        arm.least_depth, arm.most_depth = min(arm.least_depth, first), max(arm.most_depth, last)

    def judge(
        self,
        systems: Iterable[str],
        datasets: Collection[str] | None = None,
        *,
        margin: float = DEFAULT_MARGIN,
        fixed_groups: bool = False,
    ) -> dict[str, Sensitivity]:
        """Judge whether the data could have shown a loss, for each of the systems whose cuts are known.

        Several datasets are judged together; by default all.
        """
        found: dict[str, Sensitivity] = {}
        for name in systems:
            asked, placed = (
                _join_arms([arm for (own, tag), arm in known.items() if own == name and tag in (datasets or (tag,))])
                for known in (self._asked, self._arms)
            )
            arm = asked if all(pairs.n for pairs in asked.losses.values()) else placed
            if arm.rows:
                found[name] = _judge_arm(arm, margin, fixed_groups)
            elif (saving := _find_saving(arm.unplaced_sizes)) >= MIN_SAVING:
                where = f"{_NOT_SHOWN}: no context is known to hold what the answer needs ({ASK})"
                found[name] = Sensitivity("undecided", saving, 0, reason=where)
        return found


def _is_memory_row(row: EvalRow) -> bool:
    """Whether a memory was asked: its cuts are of the history, and no model answers from them."""
    return "history_tokens" in row.metadata


def _read_survival(row: EvalRow) -> float | None:
    """Read whether all evidence reached the reader: behind a tap, or of the turns that a memory retrieved."""
    recall = row.scores.get("retrieval_recall")
    return row.scores.get("evidence_survived") if recall is None else float(recall == 1)


def _join_arms(arms: Sequence[_Arm]) -> _Arm:
    """Join the sums of one system over datasets."""
    joined = _Arm()
    for arm in arms:
        for name in CONTROL_NAMES:
            joined.losses[name].datasets |= arm.losses[name].datasets
            joined.gains[name].datasets |= arm.gains[name].datasets
            joined.kept[name] += arm.kept[name]
        joined.whole_tokens, joined.kept_tokens = (
            joined.whole_tokens + arm.whole_tokens,
            joined.kept_tokens + arm.kept_tokens,
        )
        joined.rows, joined.asked = joined.rows + arm.rows, joined.asked or arm.asked
        joined.unplaced, joined.unplaced_scored = (
            joined.unplaced + arm.unplaced,
            joined.unplaced_scored + arm.unplaced_scored,
        )
        (whole, kept), (more, rest) = joined.unplaced_sizes, arm.unplaced_sizes
        joined.unplaced_sizes, joined.read = (whole + more, kept + rest), joined.read or arm.read
        joined.least_depth = min(joined.least_depth, arm.least_depth)
        joined.most_depth = max(joined.most_depth, arm.most_depth)
    return joined


def _find_saving(sizes: tuple[int, int]) -> float:
    whole, kept = sizes
    return 1 - kept / whole if whole else 0.0


def _judge_arm(arm: _Arm, margin: float, fixed_groups: bool) -> Sensitivity:
    saving = _find_saving((arm.whole_tokens, arm.kept_tokens))
    losses = judge_family(
        [pairs.contrast(name) for name, pairs in arm.losses.items()], margin=margin, fixed_groups=fixed_groups
    )
    known = [name for name, pairs in arm.gains.items() if pairs.n]
    gains = judge_family([arm.gains[name].contrast(name) for name in known], margin=margin, fixed_groups=fixed_groups)
    gain_of = {each.name: each for each in gains}
    controls = tuple(
        MatchedControl(each.name, arm.kept[each.name] / arm.losses[each.name].n, each, gain_of.get(each.name))
        for each in losses
    )
    tell = partial(Sensitivity, saving=saving, n=arm.rows, controls=controls, asked=arm.asked)
    if saving < MIN_SAVING:
        return tell("small saving", reason="it saves too little to tell from a naive cut")
    blind = [each for each in controls if each.loss.not_worse]
    if blind and arm.unplaced_scored > arm.rows:
        held = f"{arm.rows:,} of {arm.rows + arm.unplaced_scored:,}"
        return tell("undecided", reason=f"{_NOT_SHOWN}: only {held} contexts hold the answer")
    if blind:
        best = max(blind, key=lambda each: each.kept)
        asking = f" (judged by its place: {ASK})" if arm.read and not arm.asked else ""
        return tell("none", reason=f"{_name_equal(best)}{_explain_places(best, arm)}{asking}")
    if all(each.loss.word == "worse" for each in controls):
        beats = len(known) == len(controls) and all(each.difference > 0 and each.p_holm <= 0.05 for each in gains)
        reason = "beats truncation and random deletion at its size"
        if not beats:
            reason = "truncation and random deletion at its size are worse than the whole context"
        return tell("shown", reason=reason, beats_controls=beats)
    needed = [each.loss.needed_n for each in controls if each.loss.word == "undecided" and each.loss.needed_n]
    most = max(needed, default=None)
    enough = f"; about {most:,} examples would tell" if most else ""
    return tell("undecided", reason=f"{_NOT_SHOWN}{enough}", needed_n=most)


def _name_equal(control: MatchedControl) -> str:
    """Name the cut that is as good; a system that is shown ahead of it, within the margin, is not "no better"."""
    name = f"{CONTROL_NAMES[control.name]} at its size"
    ahead = control.gain is not None and control.gain.difference > 0 and control.gain.p_holm <= 0.05
    return f"shown to lose no more than the margin, and so is {name}" if ahead else f"no better than {name}"


def _explain_places(control: MatchedControl, arm: _Arm) -> str:
    """Say where the evidence stands, where a cut keeps all of it in every example."""
    if control.kept < 1 or arm.asked:
        return ""
    held = f" that holds it ({arm.rows:,} of {arm.rows + arm.unplaced:,})" if arm.unplaced else ""
    everywhere = f"every context{held}"
    if control.name == "head":
        place = f"the answer stands in the first {_percent(arm.most_depth)} of {everywhere}"
    elif control.name == "tail":
        place = f"the answer stands in the last {_percent(1 - arm.least_depth)} of {everywhere}"
    else:
        place = f"the cut keeps the answer in {everywhere}"
    return f"; this data cannot tell: {place}"


def _percent(share: float) -> str:
    return f"{math.ceil(100 * share - 1e-9)}%"
