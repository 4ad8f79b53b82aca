"""What a replay found, by arm: numbers, tables and the one sentence that answers the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from statistics import median
from typing import Any

from context_bench.numbers import dollars
from context_bench.output.layout import fit_columns, shorten, wrap
from context_bench.replay.copied_text import MIN_SESSIONS, Loss, estimate_loss
from context_bench.replay.integrity import FAULTS

MAX_NOTES = 3
MAX_NAME = 24  # columns of a session's name
MAX_SESSIONS = 12  # lines of the table by session
DAY_SECONDS = 86_400
MONTH_DAYS = 365 / 12
DEFAULT_HIT_RATE = 0.75
"""Share of simulated reads that OpenAI's servers give, for recordings that do not tell: about a quarter misses."""
DOLLARS = ("recorded", "sent", "recorded_cold", "sent_cold", "recorded_uncached", "sent_uncached")
OPEN_LOOP = "Replay is open loop: the recorded replies put text back in that the model might not have written."

Turn = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """One session through one arm."""

    session: str
    facts: Mapping[str, Any]

    @property
    def turns(self) -> Sequence[Turn]:
        return list(self.facts["turns"])

    @property
    def first_break(self) -> int | None:
        """The turn of its thread in which the cache was first broken."""
        return min((turn["turn"] for turn in self.turns if "lost_reads" in turn), default=None)


@dataclass(frozen=True, slots=True)
class Month:
    """Dollars saved in a month, and how many requests that stands on."""

    dollars: float
    basis: str


@dataclass(slots=True)
class ArmOutcome:
    """All sessions through one arm."""

    name: str
    sessions: list[SessionOutcome] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # sessions that could not be replayed, with the reason
    is_control: bool = False
    volume: float | None = None  # requests a month that the user expects; None goes by the recorded dates

    @property
    def turns(self) -> list[Turn]:
        return [turn for session in self.sessions for turn in session.turns]

    @property
    def saved_tokens(self) -> float | None:
        """The share of billed prompt tokens that were not sent; None where no request got through."""
        if self.errors == len(self.turns):
            return None
        recorded = sum(turn["recorded_prompt"] for turn in self.turns)
        return 1 - sum(turn["prompt"] for turn in self.turns) / recorded if recorded else None

    def sum_dollars(self, key: str) -> float | None:
        """Add up the dollars of all sessions: `recorded`, `sent`, or one of them `_cold`."""
        known = [session.facts["dollars"][key] for session in self.sessions]
        return sum(known) if known and None not in known else None

    def find_saved_dollars(self, *, cold: bool = False) -> float | None:
        """Return the share of the dollars that is saved; negative where the arm costs more."""
        end = "_cold" if cold else ""
        recorded, sent = self.sum_dollars(f"recorded{end}"), self.sum_dollars(f"sent{end}")
        if self.errors == len(self.turns) or not recorded or sent is None:
            return None
        return 1 - sent / recorded

    @property
    def hit_rate(self) -> float | None:
        """The share of the simulated cache reads that servers give; None where the simulation has no misses to add."""
        reads = [session.facts["cache_reads"] for session in self.sessions if session.facts["cache_reads"]]
        simulated = sum(each["simulated"] for each in reads)
        if not reads:
            return None
        recorded = sum(each["recorded"] for each in reads)
        return min(1.0, recorded / simulated) if simulated and recorded else DEFAULT_HIT_RATE

    def find_saved_with_misses(self) -> float | None:
        """Return the share of the dollars that is saved when the cache misses as often as it does on real servers."""
        rate = self.hit_rate
        recorded, sent = (self._sum_with_misses(side, 1.0 if rate is None else rate) for side in ("recorded", "sent"))
        return 1 - sent / recorded if rate is not None and recorded and sent is not None else None

    def _sum_with_misses(self, side: str, rate: float) -> float | None:
        total = 0.0
        for session in self.sessions:
            best, none = session.facts["dollars"][side], session.facts["dollars"][f"{side}_uncached"]
            if best is None or none is None:
                return None
            total += none + (rate if session.facts["cache_reads"] else 1.0) * (best - none)
        return total

    @property
    def month(self) -> Month | None:
        """The dollars saved in a month; None where the price, or how many requests a month has, is not known."""
        recorded, sent = self.sum_dollars("recorded"), self.sum_dollars("sent")
        if recorded is None or sent is None or not self.turns:
            return None
        if self.volume is not None:
            each = (recorded - sent) / len(self.turns)
            return Month(each * self.volume, f"at {self.volume:,.0f} requests a month")
        times = [time for session in self.sessions for time in session.facts["times"]]
        days = (max(times) - min(times)) / DAY_SECONDS if times else 0.0
        if days < 1:
            return None
        return Month((recorded - sent) / days * MONTH_DAYS, f"by {round(days):,} recorded days")

    @property
    def broken_turns(self) -> float | None:
        """The share of turns, after the first of each thread, that read less from the cache than a stable prefix."""
        later = [turn for turn in self.turns if turn["turn"] > 1]
        return sum("lost_reads" in turn for turn in later) / len(later) if later else None

    @property
    def damage_dollars(self) -> float:
        return float(sum(turn.get("damage_dollars", 0.0) for turn in self.turns))

    @property
    def loss(self) -> Loss:
        return estimate_loss([session.facts["counts"] for session in self.sessions])

    @property
    def faults(self) -> Counter[str]:
        """Turns with each fault."""
        return Counter(fault for turn in self.turns for fault in turn["faults"])

    @property
    def errors(self) -> int:
        return sum("error" in turn for turn in self.turns)

    @property
    def side_calls(self) -> int:
        return sum(turn.get("side_calls", 0) for turn in self.turns)

    @property
    def mendable(self) -> tuple[int, float]:
        """Turns whose losses could be had again, and the dollars of one more turn for each."""
        turns = [turn for turn in self.turns if turn["mendable"]]
        return len(turns), sum(turn.get("dollars", 0.0) for turn in turns)

    def find_break_even(self) -> int | None:
        """Return the turn from which on the median session is not dearer than as recorded; None where none is."""
        found = [_find_repaid(session.turns) for session in self.sessions]
        repaid = [turn for turn in found if turn is not None]
        return round(median(repaid)) if len(repaid) * 2 > len(found) else None


def _find_repaid(turns: Sequence[Turn]) -> int | None:
    """Return the number of requests after which the sum of dollars stays at or below the recorded one."""
    place, gained = 1, 0.0
    for number, turn in enumerate(turns, 1):
        gained += turn.get("recorded_dollars", 0.0) - turn.get("dollars", 0.0)
        place = number + 1 if gained < 0 else place
    return place if place <= len(turns) else None


def gather(rows: Iterable[Any], controls: Sequence[str] = (), volume: float | None = None) -> list[ArmOutcome]:
    """Gather the rows of a replay by arm; `volume` is how many requests a month are expected."""
    arms: dict[str, ArmOutcome] = {}
    for row in rows:
        arm = arms.setdefault(row.system, ArmOutcome(row.system, is_control=row.system in controls, volume=volume))
        if row.error is not None or "replay" not in row.metadata:
            arm.failed[str(row.example_id)] = str(row.error)
        else:
            arm.sessions.append(SessionOutcome(str(row.example_id), row.metadata["replay"]))
    return list(arms.values())


# --- sentences


def conclude(arm: ArmOutcome) -> str:
    """Say in one sentence what an arm would have saved, and what would have been gone."""
    saved, saved_dollars, loss, broken = arm.saved_tokens, arm.find_saved_dollars(), arm.loss, arm.broken_turns
    if saved is None:
        errors = (str(turn["error"]) for turn in arm.turns if "error" in turn)
        reason = next(chain(arm.failed.values(), errors), "no session was replayed")
        return f"{arm.name}: not measured ({reason})."
    words = [f"{arm.name} would have {_tell_change(saved, 'tokens')}"]
    if saved_dollars is None:
        words.append(" (dollars unknown: the model has no price)")
    else:
        change = _tell_change(saved_dollars, "dollars", verb=(saved_dollars >= 0) != (saved >= 0))
        words.append(f" and {change}{_tell_more(arm)}")
    words.append(f"; {_tell_loss(arm, loss)}")
    if broken:
        first = min(each for session in arm.sessions if (each := session.first_break) is not None)
        words.append(f"; the prompt cache was broken in {broken:.0%} of turns, from turn {first} on")
    return "".join(words) + "."


def _tell_more(arm: ArmOutcome) -> str:
    """Tell the dollars of a month, and what is saved where the cache misses as often as on real servers."""
    more = []
    if (month := arm.month) is not None:
        less = "less" if month.dollars >= 0 else "more"
        more.append(f"{dollars(abs(month.dollars))} {less} a month {month.basis}")
    missing = arm.find_saved_with_misses()
    if missing is not None:
        more.append(f"{missing:.1%} when {1 - (arm.hit_rate or 0):.0%} of cache reads miss")
    return f" ({'; '.join(more)})" if more else ""


def _tell_change(share: float, what: str, *, verb: bool = True) -> str:
    done = "saved" if share >= 0 else "added"
    return f"{done + ' ' if verb else ''}{abs(share):.1%} of {what}"


def _tell_loss(arm: ArmOutcome, loss: Loss) -> str:
    sessions = len(arm.sessions)
    if loss.of_uses is None:
        return f"too few turns reuse earlier text to judge a loss ({round(loss.uses)}; 20 are needed)"
    where = (
        "" if sessions >= MIN_SESSIONS else f" in {'this' if sessions == 1 else 'these'} {_count(sessions, 'session')}"
    )
    limits = f" [{loss.low:.1%}, {loss.high:.1%}]" if loss.low is not None and loss.high is not None else ""
    return (
        f"text that the next call copied was gone in {loss.of_uses:.1%}{limits} of the "
        f"{round(loss.uses)} turns that reuse earlier text{where}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# --- tables


def render(arms: Sequence[ArmOutcome], width: int | None) -> str:
    """Write the tables, at most three notes, and a conclusion for each arm."""
    parts = [fit_columns(table_of_arms(arms), width, ("$ saved, cold", "$ damage"))]
    by_session = table_of_sessions(arms)
    if len(by_session) > 2:
        more = len(by_session) - 1 - MAX_SESSIONS
        rest = [f"and {_count(more, 'session')} more: see --output json", *("" for _ in by_session[0][1:])]
        shown = by_session if more <= 0 else [*by_session[: MAX_SESSIONS + 1], rest]
        parts.append(fit_columns(shown, width, ()))
    notes = list_notes(arms)[:MAX_NOTES]
    parts.append("\n".join(wrap(note, width) for note in notes))
    ends = [conclude(arm) for arm in arms if not arm.is_control]
    parts.append("\n".join(wrap(end, width) for end in ends))
    return "\n\n".join(part for part in parts if part) + "\n"


def table_of_arms(arms: Sequence[ArmOutcome]) -> list[list[str]]:
    """Return the table of all systems, its head first."""
    lines = [
        ["system", "turns", "tokens saved", "$ saved", "$ saved, cold", "lost", "cache broken", "$ damage", "faults"]
    ]
    for arm in arms:
        loss = arm.loss
        lines.append(
            [
                f"{arm.name} (control)" if arm.is_control else arm.name,
                f"{len(arm.turns)}",
                _share(arm.saved_tokens),
                _share(arm.find_saved_dollars()),
                _share(arm.find_saved_dollars(cold=True)),
                _share(loss.of_uses) if loss.of_uses is not None else "too few",
                _share(arm.broken_turns),
                f"{arm.damage_dollars:.4f}",
                ", ".join(f"{name} {count}" for name, count in arm.faults.items()) or "–",
            ]
        )
    return lines


def table_of_sessions(arms: Sequence[ArmOutcome]) -> list[list[str]]:
    """Return what each system saved in each session, tokens and dollars; its head first."""
    shown = [arm for arm in arms if not arm.is_control and arm.sessions]
    found = {arm.name: {session.session: session for session in arm.sessions} for arm in shown}
    names = dict.fromkeys(name for sessions in found.values() for name in sessions)
    lines = [["tokens and $ saved, by session", "turns", *found]]
    for name in names:
        turns = max(len(sessions[name].turns) for sessions in found.values() if name in sessions)
        lines.append(
            [shorten(name, 24), f"{turns}", *(_tell_session(sessions.get(name)) for sessions in found.values())]
        )
    return lines


def _tell_session(session: SessionOutcome | None) -> str:
    if session is None:
        return "–"
    alone = ArmOutcome("", [session])
    return f"{_share(alone.saved_tokens)}, {_share(alone.find_saved_dollars())}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def list_notes(arms: Sequence[ArmOutcome]) -> list[str]:
    """List what has to be known to read the numbers, the most important first."""
    notes = []
    for arm in arms:
        if arm.side_calls:
            notes.append(
                f"{arm.name} asked a model {_count(arm.side_calls, 'time')} on its own, which is not billed here."
            )
        if arm.errors or arm.failed:
            notes.append(
                f"{arm.name}: {_count(arm.errors, 'request')} failed, and {_count(len(arm.failed), 'session')} could "
                "not be replayed. Failed requests are billed as recorded."
            )
    reconstructed = sorted({each for arm in arms for s in arm.sessions for each in s.facts["reconstructed"]})
    if reconstructed:
        notes.append(f"Reconstructed: {'; '.join(reconstructed)}. Sizes come from a fit to the recorded usage.")
    notes.append(OPEN_LOOP)
    return notes


# --- JSON


def describe(arms: Sequence[ArmOutcome]) -> dict[str, Any]:
    """Describe everything as JSON: by arm, by session and by turn."""
    return {"note": OPEN_LOOP, "faults": FAULTS, "systems": [_describe_arm(arm) for arm in arms]}


def _describe_arm(arm: ArmOutcome) -> dict[str, Any]:
    loss = arm.loss
    mendable, mending = arm.mendable
    return {
        "name": arm.name,
        "control": arm.is_control,
        "conclusion": conclude(arm),
        "turns": len(arm.turns),
        "saved_tokens": arm.saved_tokens,
        "saved_dollars": arm.find_saved_dollars(),
        "saved_dollars_cold": arm.find_saved_dollars(cold=True),
        "saved_dollars_with_misses": arm.find_saved_with_misses(),
        "cache_hit_rate": arm.hit_rate,
        "saved_dollars_per_month": None if arm.month is None else asdict(arm.month),
        "dollars": {key: arm.sum_dollars(key) for key in DOLLARS},
        "cache_broken": arm.broken_turns,
        "cache_damage_dollars": arm.damage_dollars,
        "break_even_turn": arm.find_break_even(),
        "loss": asdict(loss),
        "mendable_turns": mendable,
        "mending_dollars": mending,
        "faults": dict(arm.faults),
        "errors": arm.errors,
        "side_calls": arm.side_calls,
        "failed": arm.failed,
        "sessions": [{"session": each.session, **each.facts} for each in arm.sessions],
    }
