"""Report of a replay: tables, notes and a conclusion for each system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

from context_bench.numbers import dollars
from context_bench.output.layout import fit_columns, shorten, wrap
from context_bench.replay.copied_text import MIN_SESSIONS, Loss
from context_bench.replay.integrity import FAULTS
from context_bench.replay.outcome import DOLLARS, ArmOutcome, SessionOutcome

MAX_NOTES = 3  # in addition to `OPEN_LOOP`
MAX_NAME = 24  # characters of a session's name
MAX_SESSIONS = 12  # rows in the table by session
LEAST_DOLLARS = 0.005  # smaller savings of a month are not shown
MAX_REASON = 300  # characters
OPEN_LOOP = (
    "Replay is open loop: the recorded replies stay, even if the model would have answered differently. Such replies "
    "can put lost text back into later requests."
)


# --- sentences


def conclude(arm: ArmOutcome) -> str:
    """Return the conclusion on an arm: its savings and losses."""
    saved, saved_dollars, loss, broken = arm.saved_tokens, arm.compute_saved_dollars(), arm.loss, arm.broken_turns
    if saved is None:
        return f"{arm.name}: not measured ({_find_reason(arm)})."
    words = [f"{arm.name} would have {_describe_change(saved, 'tokens')}"]
    if saved_dollars is None:
        unpriced = sorted({model for session in arm.sessions for model in session.facts["unpriced"]})
        words.append(f" (cost unknown: no price for {', '.join(unpriced)}; add one with --prices)")
    else:
        change = _describe_change(saved_dollars, "cost", verb=(saved_dollars >= 0) != (saved >= 0))
        words.append(f" and {change}{_describe_month_and_misses(arm)}")
    words.append(f". {_describe_loss(arm, loss)}")
    if broken:
        first = min(each for session in arm.sessions if (each := session.first_break) is not None)
        words.append(f". The prompt cache was broken in {broken:.0%} of turns, first in turn {first}")
    return "".join(words) + "."


def _describe_month_and_misses(arm: ArmOutcome) -> str:
    """Describe the savings of a month, and the savings if the cache misses as often as on real servers."""
    more = []
    if (month := arm.month) is not None and abs(month.dollars) >= LEAST_DOLLARS:
        less = "less" if month.dollars >= 0 else "more"
        more.append(f"{dollars(abs(month.dollars))} {less} a month {month.basis}")
    missing = arm.compute_saved_with_misses()
    if missing is not None:
        change = _describe_change(missing, "cost")
        more.append(f"{change} when {1 - (arm.served_reads or 0):.0%} of cache reads miss")
    return f" ({'; '.join(more)})" if more else ""


def _describe_change(share: float, what: str, *, verb: bool = True) -> str:
    done = "saved" if share >= 0 else "added"
    return f"{done + ' ' if verb else ''}{abs(share):.1%} {'of' if share >= 0 else 'to'} the {what}"


def _describe_loss(arm: ArmOutcome, loss: Loss) -> str:
    sessions = len(arm.sessions)
    if loss.of_uses is None:
        return f"Too few turns reuse earlier text to judge losses ({round(loss.uses)} of the 20 needed)"
    where = (
        "" if sessions >= MIN_SESSIONS else " in this session" if sessions == 1 else f" in these {sessions} sessions"
    )
    limits = f" [{loss.low:.1%}, {loss.high:.1%}]" if loss.low is not None and loss.high is not None else ""
    return (
        f"Text that the next call copied was gone in {loss.of_uses:.1%}{limits} of the {round(loss.uses)} turns that "
        f"reuse earlier text ({loss.uses / loss.turns:.0%} of all turns){where}"
    )


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


# --- tables


def render(arms: Sequence[ArmOutcome], width: int | None) -> str:
    """Return the tables, notes, and a conclusion for each arm."""
    parts = [fit_columns(table_of_arms(arms), width, ("turns", "break-even", "$ saved, cold", "$ damage", "faults"))]
    by_session = table_of_sessions(arms)
    if len(by_session) > 2:
        more = len(by_session) - 1 - MAX_SESSIONS
        rest = [f"and {_count(more, 'session')} more: see --output json", *("" for _ in by_session[0][1:])]
        shown = by_session if more <= 0 else [*by_session[: MAX_SESSIONS + 1], rest]
        parts.append(f"Saved by session, tokens and dollars:\n\n{fit_columns(shown, width, ())}")
    notes = [*list_notes(arms)[:MAX_NOTES], OPEN_LOOP]
    parts.append("\n".join(wrap(note, width) for note in notes))
    ends = [conclude(arm) for arm in arms if not arm.is_control]
    parts.append("\n".join(wrap(end, width) for end in ends))
    return "\n\n".join(part for part in parts if part) + "\n"


def table_of_arms(arms: Sequence[ArmOutcome]) -> list[list[str]]:
    """Return the table of all systems, header first."""
    heads = ["system", "turns", "tokens saved", "$ saved", "$ saved, cold", "break-even", "lost", "cache broken"]
    lines = [[*heads, "$ damage", "faults"]]
    for arm in arms:
        loss, damage = arm.loss, arm.damage_dollars
        lines.append(
            [
                f"{arm.name} (control)" if arm.is_control else arm.name,
                f"{len(arm.turns)}",
                _share(arm.saved_tokens),
                _share(arm.compute_saved_dollars()),
                _share(arm.compute_saved_dollars(cold=True)),
                _describe_break_even(arm),
                _share(loss.of_uses) if loss.of_uses is not None else "too few",
                _share(arm.broken_turns),
                "–" if damage is None else f"{damage:.4f}",
                ", ".join(f"{name} {count}" for name, count in arm.faults.items()) or "–",
            ]
        )
    return lines


def _describe_break_even(arm: ArmOutcome) -> str:
    if arm.compute_saved_dollars() is None:
        return "–"
    turn = arm.compute_break_even()
    return "never" if turn is None else f"turn {turn}"


def table_of_turns(arms: Sequence[ArmOutcome]) -> list[list[str]]:
    """Return the table of savings and losses by position of a turn in its thread, header first."""
    lines = [["turns of a thread", "requests", "tokens saved", "$ saved", "lost", "cache broken"]]
    for span, part in ((span, part) for arm in arms for span, part in arm.split_by_turn()):
        copied = sum(turn["copied"] > 0 for turn in part.turns)
        lost = sum(bool(turn["lost"]) for turn in part.turns)
        saved = (_share(part.saved_tokens), _share(part.saved_by_turns))
        lines.append(
            [f"{part.name}, {span}", f"{len(part.turns)}", *saved, f"{lost} of {copied}", _share(part.broken_turns)]
        )
    return lines


def table_of_sessions(arms: Sequence[ArmOutcome]) -> list[list[str]]:
    """Return the table of saved tokens and dollars by session, header first."""
    shown = [arm for arm in arms if not arm.is_control and arm.sessions]
    found = {arm.name: {session.session: session for session in arm.sessions} for arm in shown}
    names = dict.fromkeys(name for sessions in found.values() for name in sessions)
    lines = [["session", "turns", *found]]
    for name in names:
        turns = max(len(sessions[name].turns) for sessions in found.values() if name in sessions)
        lines.append(
            [shorten(name, 24), f"{turns}", *(_describe_session(sessions.get(name)) for sessions in found.values())]
        )
    return lines


def _describe_session(session: SessionOutcome | None) -> str:
    if session is None:
        return "–"
    alone = ArmOutcome("", [session])
    return f"{_share(alone.saved_tokens)}, {_share(alone.compute_saved_dollars())}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def list_notes(arms: Sequence[ArmOutcome]) -> list[str]:
    """List the notes that readers need to judge the numbers, most important first."""
    notes = [note for arm in arms for note in _list_mishaps(arm)]
    sessions = [session for arm in arms[:1] for session in arm.sessions]
    off = [
        found["dollars"] for each in sessions if (found := each.facts["simulation"]) and found["dollars"] is not None
    ]
    if off:
        told = " to ".join(dict.fromkeys((f"{min(off):+.1%}", f"{max(off):+.1%}")))
        notes.append(f"Simulated dollars of a session differ by {told} from recorded ones (requests outside the fit).")
    reconstructed = sorted({each for session in sessions for each in session.facts["reconstructed"]})
    if not all(session.facts["has_usage"] for session in sessions):
        notes.append("No usage was recorded: sizes are our own counts, and parts that were not recorded count as zero.")
    if reconstructed:
        notes.append(f"Reconstructed: {'; '.join(reconstructed)}. Sizes are fitted to the recorded usage, if any.")
    return [*notes, *(_describe_mendable(arm) for arm in arms if not arm.is_control and arm.mendable[0])]


def _describe_mendable(arm: ArmOutcome) -> str:
    mendable, spent = arm.mendable
    lossy = sum(bool(turn["lost"]) for turn in arm.turns)
    price = "" if spent is None else f", for {dollars(spent)} in total"
    return (
        f"{arm.name}: in {mendable} of {_count(lossy, 'turn')} with a loss, one more turn could get the text back by a "
        f"second read or an added tool{price}."
    )


def _list_mishaps(arm: ArmOutcome) -> list[str]:
    """List failed requests, faults, and everything else that a system did besides forwarding each request once."""
    notes = []
    if arm.errors or arm.failed:
        told = [f"{_count(len(arm.failed), 'session')} could not be replayed"] if arm.failed else []
        told += [f"{_count(arm.errors, 'request')} failed, billed as recorded"] if arm.errors else []
        notes.append(f"{arm.name}: {' and '.join(told)} ({_find_reason(arm)}).")
    if arm.faults and not arm.is_control:
        faults = (f"{FAULTS[name]} ({_count(count, 'turn')})" for name, count in arm.faults.items())
        notes.append(f"{arm.name}: {', '.join(faults)}.")
    if side_calls := arm.count("side_calls"):
        notes.append(f"{arm.name} called a model {_count(side_calls, 'time')} by itself; this is not billed here.")
    if repeated := arm.count("repeated"):
        notes.append(f"{arm.name} sent {_count(repeated, 'repeated request')}; each is billed.")
    if changed := arm.count("changed_reply"):
        notes.append(f"{arm.name} changed {_count(changed, 'recorded reply', 'recorded replies')} on the way back.")
    return notes


def _find_reason(arm: ArmOutcome) -> str:
    errors = (str(turn["error"]) for turn in arm.turns if "error" in turn)
    reason = next(chain(arm.failed.values(), errors), "no session was replayed")
    return shorten(reason.removeprefix("SystemFailure: "), MAX_REASON)


# --- JSON


def describe(arms: Sequence[ArmOutcome]) -> dict[str, Any]:
    """Return all results as JSON: by arm, by session and by turn."""
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
        "saved_dollars": arm.compute_saved_dollars(),
        "saved_dollars_cold": arm.compute_saved_dollars(cold=True),
        "saved_dollars_with_misses": arm.compute_saved_with_misses(),
        "served_reads": arm.served_reads,
        "saved_dollars_per_month": None if arm.month is None else asdict(arm.month),
        "dollars": {key: arm.sum_dollars(key) for key in DOLLARS},
        "cache_broken": arm.broken_turns,
        "cache_damage_dollars": arm.damage_dollars,
        "break_even_turn": arm.compute_break_even(),
        "loss": asdict(loss),
        "naive": arm.naive,
        "mendable_turns": mendable,
        "mending_dollars": mending,
        "faults": dict(arm.faults),
        "errors": arm.errors,
        "side_calls": arm.count("side_calls"),
        "repeated": arm.count("repeated"),
        "changed_replies": arm.count("changed_reply"),
        "failed": arm.failed,
        "sessions": [{"session": each.session, **each.facts} for each in arm.sessions],
    }
