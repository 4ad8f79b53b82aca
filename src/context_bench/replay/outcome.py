"""Results of a replay by system: the numbers behind its tables, its page and its conclusions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from context_bench.replay.copied_text import Loss, estimate_loss

DAY_SECONDS = 86_400
MONTH_DAYS = 365 / 12
DEFAULT_HIT_RATE = 0.75
"""Share of simulated cache reads that OpenAI's servers really serve, for recordings without counters."""
DOLLARS = ("recorded", "sent", "recorded_cold", "sent_cold", "recorded_uncached", "sent_uncached")
TURNS = (1, 11, 21, 51)  # first turn of each line in the table by turn

Turn = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """Results of one session with one arm."""

    session: str
    facts: Mapping[str, Any]

    @property
    def turns(self) -> Sequence[Turn]:
        return list(self.facts["turns"])

    @property
    def first_break(self) -> int | None:
        """Turn of its thread in which the cache was first broken."""
        return min((turn["turn"] for turn in self.turns if "lost_reads" in turn), default=None)


@dataclass(frozen=True, slots=True)
class Month:
    """Dollars saved in a month, and the basis of the estimate."""

    dollars: float
    basis: str


@dataclass(slots=True)
class ArmOutcome:
    """Results of all sessions with one arm."""

    name: str
    sessions: list[SessionOutcome] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # reason why a session could not be replayed, by session
    is_control: bool = False
    volume: float | None = None  # expected requests a month; None uses the recorded dates

    @property
    def turns(self) -> list[Turn]:
        return [turn for session in self.sessions for turn in session.turns]

    @property
    def saved_tokens(self) -> float | None:
        """Saved share of billed prompt tokens; None if every request failed."""
        if self.errors == len(self.turns):
            return None
        recorded = sum(turn["recorded_prompt"] for turn in self.turns)
        return 1 - sum(turn["prompt"] for turn in self.turns) / recorded if recorded else None

    def sum_dollars(self, key: str) -> float | None:
        """Add up one kind of dollars over all sessions: a name of `DOLLARS`."""
        known = [session.facts["dollars"][key] for session in self.sessions]
        return sum(known) if known and None not in known else None

    def compute_saved_dollars(self, *, cold: bool = False) -> float | None:
        """Return the saved share of dollars; negative if the arm costs more."""
        end = "_cold" if cold else ""
        recorded, sent = self.sum_dollars(f"recorded{end}"), self.sum_dollars(f"sent{end}")
        if self.errors == len(self.turns) or not recorded or sent is None:
            return None
        return 1 - sent / recorded

    @property
    def served_reads(self) -> float | None:
        """Share of simulated cache reads that the servers really served; None for caches without random misses."""
        reads = [session.facts["cache_reads"] for session in self.sessions if session.facts["cache_reads"]]
        simulated = sum(each["simulated"] for each in reads)
        if not reads:
            return None
        recorded = sum(each["recorded"] for each in reads)
        return min(1.0, recorded / simulated) if simulated else DEFAULT_HIT_RATE

    def compute_saved_with_misses(self) -> float | None:
        """Return the saved share of dollars if the cache misses as often as on real servers."""
        rate = self.served_reads
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
        """Dollars saved in a month; None if the price or the number of requests in a month is unknown."""
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
        return Month((recorded - sent) / days * MONTH_DAYS, f"by {_count_days(round(days))}")

    @property
    def broken_turns(self) -> float | None:
        """Share of turns (without the first of each thread) that read less from the cache than with a stable prefix."""
        later = [turn for turn in self.turns if turn["turn"] > 1]
        return sum("lost_reads" in turn for turn in later) / len(later) if later else None

    @property
    def damage_dollars(self) -> float | None:
        """Cost of lost cache reads; None if the price of a model is unknown."""
        priced = self.turns and _is_priced(self.turns)
        return sum(turn.get("damage_dollars", 0.0) for turn in self.turns) if priced else None

    @property
    def loss(self) -> Loss:
        return estimate_loss([session.facts["counts"] for session in self.sessions])

    @property
    def faults(self) -> Counter[str]:
        """Number of turns with each fault."""
        return Counter(fault for turn in self.turns for fault in turn["faults"])

    @property
    def errors(self) -> int:
        return sum("error" in turn for turn in self.turns)

    def count(self, key: str) -> int:
        """Add up `side_calls`, `repeated` requests or `changed_reply` over all turns."""
        return sum(turn.get(key, 0) for turn in self.turns)

    @property
    def mendable(self) -> tuple[int, float | None]:
        """Number of turns whose lost text the model could recover, and the dollars if each needs one more turn."""
        turns = [turn for turn in self.turns if turn["mendable"]]
        return len(turns), sum(turn["dollars"] for turn in turns) if _is_priced(turns) else None

    @property
    def naive(self) -> dict[str, float | None]:
        """Shares from a plain search that counts every use and match, for comparison with the estimate."""
        counts = [session.facts["naive"] for session in self.sessions]
        matched, lost, foreign, found = [sum(column) for column in zip(*counts)] or [0] * 4
        return {
            "matched_turns": matched / len(self.turns) if self.turns else None,
            "lost_of_matched_turns": lost / matched if matched else None,
            "foreign_spans_matched": found / foreign if foreign else None,
        }

    @property
    def saved_by_turns(self) -> float | None:
        """Saved share of dollars, added up over turns; None without a price."""
        recorded = sum(turn.get("recorded_dollars", 0.0) for turn in self.turns)
        priced = recorded and _is_priced(self.turns)
        return 1 - sum(turn["dollars"] for turn in self.turns) / recorded if priced else None

    def split_by_turn(self) -> list[tuple[str, ArmOutcome]]:
        """Split the outcome by the position of turns in their thread."""
        found = []
        for first, last in zip(TURNS, [*TURNS[1:], None]):
            parts = [
                SessionOutcome(each.session, {**each.facts, "turns": turns})
                for each in self.sessions
                if (turns := [turn for turn in each.turns if first <= turn["turn"] < (last or math.inf)])
            ]
            if parts:
                found.append((f"{first}–{last - 1}" if last else f"from {first}", ArmOutcome(self.name, parts)))
        return found

    def compute_break_even(self) -> int | None:
        """Return the turn from which the median session costs no more than recorded.

        None if at least half of the sessions, or all sessions together, still cost more than recorded at their end.
        """
        saved = self.compute_saved_dollars()
        if not _is_priced(self.turns) or saved is None or saved < 0:
            return None
        found = [_find_repaid_turn(session.turns) for session in self.sessions]
        repaid = [turn for turn in found if turn is not None]
        return round(median(repaid)) if len(repaid) * 2 > len(found) else None


def _count_days(days: int) -> str:
    return f"{days:,} recorded {'day' if days == 1 else 'days'}"


def _is_priced(turns: Sequence[Turn]) -> bool:
    return all("dollars" in turn for turn in turns)


def _find_repaid_turn(turns: Sequence[Turn]) -> int | None:
    """Return the first request from which the total cost stays at or below the recorded one."""
    place, gained = 1, 0.0
    for number, turn in enumerate(turns, 1):
        gained += turn.get("recorded_dollars", 0.0) - turn.get("dollars", 0.0)
        place = number + 1 if gained < 0 else place
    return place if place <= len(turns) else None


def gather(rows: Iterable[Any], controls: Sequence[str] = (), volume: float | None = None) -> list[ArmOutcome]:
    """Group the rows of a replay by arm; `volume` is the expected number of requests a month."""
    arms: dict[str, ArmOutcome] = {}
    for row in rows:
        arm = arms.setdefault(row.system, ArmOutcome(row.system, is_control=row.system in controls, volume=volume))
        if row.error is not None or "replay" not in row.metadata:
            arm.failed[str(row.example_id)] = str(row.error)
        else:
            arm.sessions.append(SessionOutcome(str(row.example_id), row.metadata["replay"]))
    return list(arms.values())
