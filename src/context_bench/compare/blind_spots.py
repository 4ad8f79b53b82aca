"""Could the data have shown a loss? Compares each system with naive cuts to the same size.

A naive cut keeps one stretch of the context or deletes sentences at random, without knowing the question. If such a cut
is not worse than the whole context, "equivalent" says more about the place of the evidence than about the system. Cuts
are judged by the same rule as systems, never by their mean alone. Rows record the share of the evidence that each cut
would keep (`matched_controls`), so rows suffice to compute all of this. With `--controls=matched` a model answers from
the cuts, and these answers are judged instead of the place of the evidence.
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
"""Names of the cuts in sentences, by their keys in `matched_controls`."""

MIN_SAVING = 0.10
"""Smaller savings are not compared with naive cuts, which seldom lose anything at that size."""

_NOT_SHOWN = "not shown that this data could reveal a loss"

ASK = "--controls=matched has the model answer from such cuts"

VOID = "it changed nothing on any example, so nothing was tested"
"""The reason why a system that should change contexts has no verdict."""

NEUTRAL = ("passthrough", "direct")  # systems that are meant to change nothing

_COMPRESSOR_FACTS = ("compressor_seconds", "claimed_tokens_saved", "vendor")
"""Metadata keys of systems that are meant to change what a model reads; a gateway has none of them."""


def is_compressed_row(row: EvalRow) -> bool:
    """Whether a compressor, a vendor's proxy or a proxy that claims savings made this row."""
    return row.metadata.get("output") == "context" or any(key in row.metadata for key in _COMPRESSOR_FACTS)


@dataclass(frozen=True)
class MatchedControl:
    """A naive cut to the size that a system reached, on each example."""

    name: str  # a key of `CONTROL_NAMES`
    kept: float  # mean share of the evidence that it keeps, or mean score if a model answered from the cuts
    loss: Verdict  # verdict on the cut against the whole context
    gain: Verdict | None = None  # verdict on the system against the cut; None if the system's share is unknown

    def to_dict(self) -> dict[str, Any]:
        gain = None if self.gain is None else self.gain.to_dict()
        return {"name": self.name, "kept": self.kept, "loss": self.loss.to_dict(), "gain": gain}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> MatchedControl:
        gain = None if stored["gain"] is None else Verdict.from_dict(stored["gain"])
        return cls(stored["name"], stored["kept"], Verdict.from_dict(stored["loss"]), gain)


@dataclass(frozen=True)
class Sensitivity:
    """Whether the data of a run could have shown that a system loses information."""

    # `none`: a naive cut of its size is shown not worse than the whole context. `shown`: all cuts are shown worse.
    # `undecided`: neither. `small saving`: below 10%, so nothing follows. `void`: the system changed nothing.
    word: str
    saving: float  # share of tokens saved, over the examples whose evidence is known
    n: int  # the number of these examples
    controls: tuple[MatchedControl, ...] = ()
    reason: str = ""  # one sentence, without the name of the system
    beats_controls: bool = False  # whether the system is shown to keep more than each cut
    needed_n: int | None = None  # the number of examples that would decide; None unless undecided
    asked: bool = False  # whether a model answered from the cuts

    def name_blind_cuts(self) -> str:
        """Name the cuts that are as good as the whole context, such as "truncation and random deletion"."""
        blind = [each for each in self.controls if each.loss.not_worse]
        return " and ".join(dict.fromkeys(CONTROL_NAMES[each.name].partition(" (")[0] for each in blind))

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "controls": [each.to_dict() for each in self.controls]}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Sensitivity:
        return cls(**{**stored, "controls": tuple(map(MatchedControl.from_dict, stored["controls"]))})


def write_sensitivity(found: Mapping[str, Sensitivity]) -> dict[str, Any]:
    return {name: each.to_dict() for name, each in found.items()}


def read_sensitivity(stored: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Sensitivity]:
    return {name: Sensitivity.from_dict(each) for name, each in (stored or {}).items()}


@dataclass
class _Arm:
    """Sums for one system: its cuts against the whole context, and the system against its cuts."""

    losses: dict[str, Pairs] = field(default_factory=lambda: {name: Pairs() for name in CONTROL_NAMES})
    gains: dict[str, Pairs] = field(default_factory=lambda: {name: Pairs() for name in CONTROL_NAMES})
    kept: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CONTROL_NAMES, 0.0))
    whole_tokens: int = 0
    kept_tokens: int = 0
    rows: int = 0
    unplaced: int = 0  # rows whose context lacks the evidence
    unplaced_scored: int = 0  # those with a score, which the verdict counts
    least_depth: float = 1.0
    most_depth: float = 0.0
    unplaced_sizes: tuple[int, int] = (0, 0)  # the tokens of those rows, whole and kept
    asked: bool = False
    read: bool = False  # whether a model answered from the system's context, but not from the cuts

    def add_unplaced(self, row: EvalRow, score: float | None) -> None:
        """Count a row whose context does not contain the evidence."""
        self.unplaced, self.unplaced_scored = self.unplaced + 1, self.unplaced_scored + (score is not None)
        sent, kept = row.metadata.get("sent_tokens"), row.upstream_tokens
        if is_unread_row(row):
            sent, kept = row.input_tokens, row.output_tokens
        if score is not None and sent is not None and kept is not None and not _is_memory_row(row):
            self.unplaced_sizes = (self.unplaced_sizes[0] + sent, self.unplaced_sizes[1] + kept)


def find_matched(systems: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Find the matched controls among systems: by name, the system and the cut that each belongs to."""
    names = list(systems)
    every = {f"{system} ({cut})": (system, cut) for system in names for cut in CONTROL_NAMES}
    return {name: every[name] for name in names if name in every}


class BlindSpots:
    """Adds up the naive cuts of all systems of a run while rows arrive.

    The baseline must send the whole context.
    """

    def __init__(self, systems: Iterable[str] = (), baseline: str = "", repeats: int = 1) -> None:
        self._arms: dict[tuple[str, str], _Arm] = {}  # by system and dataset
        self._asked: dict[tuple[str, str], _Arm] = {}  # the same, for cuts that a model answered from
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
        """Add an answer of a system or of a matched control."""
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
        """Average the answers so far of examples that lack some repeats."""
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
        """Add a row; repeats are skipped.

        Args:
            row: The row.
            score: The compared score. For an unread context it is the share of the evidence that the system kept.
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
        """Judge for each system with known cuts whether the data could have shown a loss.

        The datasets (default: all) are judged together.
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
                where = f"{_NOT_SHOWN}: no context is known to contain what the answer needs ({ASK})"
                found[name] = Sensitivity("undecided", saving, 0, reason=where)
        return found


def _is_memory_row(row: EvalRow) -> bool:
    """Whether a memory was asked: its cuts are of the history, and no model answers from them."""
    return "history_tokens" in row.metadata


def _read_survival(row: EvalRow) -> float | None:
    """Return 1 if all evidence reached the reader: seen at the tap, or among the turns that a memory retrieved."""
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
        return tell("small saving", reason="it saves too little to be compared with a naive cut")
    blind = [each for each in controls if each.loss.not_worse]
    if blind and arm.unplaced_scored > arm.rows:
        held = f"{arm.rows:,} of {arm.rows + arm.unplaced_scored:,}"
        return tell("undecided", reason=f"{_NOT_SHOWN}: only {held} contexts contain the answer")
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
    enough = f"; about {most:,} examples would decide" if most else ""
    return tell("undecided", reason=f"{_NOT_SHOWN}{enough}", needed_n=most)


def _name_equal(control: MatchedControl) -> str:
    """Say that a cut is as good; "no better than" only if the system is not shown ahead of it."""
    name = f"{CONTROL_NAMES[control.name]} at its size"
    ahead = control.gain is not None and control.gain.difference > 0 and control.gain.p_holm <= 0.05
    return f"shown to lose no more than the margin, but so is {name}" if ahead else f"no better than {name}"


def _explain_places(control: MatchedControl, arm: _Arm) -> str:
    """Say where the evidence is, if the cut keeps all of it in every example."""
    if control.kept < 1 or arm.asked:
        return ""
    held = f" that contains it ({arm.rows:,} of {arm.rows + arm.unplaced:,})" if arm.unplaced else ""
    everywhere = f"every context{held}"
    if control.name == "head":
        place = f"the answer begins in the first {_percent(arm.most_depth)} of {everywhere}"
    elif control.name == "tail":
        place = f"the answer is in the last {_percent(1 - arm.least_depth)} of {everywhere}"
    else:
        place = f"the cut keeps the answer in {everywhere}"
    return f"; this data cannot show a loss: {place}"


def _percent(share: float) -> str:
    return f"{math.ceil(100 * share - 1e-9)}%"
