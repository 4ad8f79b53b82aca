"""Stops each system of a run as soon as its verdict is settled: five looks over complete prefixes of a random order.

Systems that compete stop one by one. The baseline and the controls go on as long as one of those does: their answers
are what it is held against.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from context_bench.comparison import is_unread_row, read_group
from context_bench.engine.look_order import LOOKS, LookOrder
from context_bench.results import EvalRow
from context_bench.stats import AnsweredExample, Looks, ScoredRow, average_answers

__all__ = ["Decisions"]

Answer = ScoredRow | AnsweredExample


class Decisions:
    """Takes rows as they come, and says which systems need no more of them.

    Args:
        order: The examples as they are run.
        competing: The systems that are judged.
        baseline: What they are held against.
        read: Reads the number that is compared off a row.
        margin: A difference within it does not matter.
        repeats: How often each example is answered.
        fixed_groups: Whether the documents or conversations of the run are all that matter.
        keep_apart: Whether contexts that no model has read are not held against answers.
        stop: Called with the name of a system that is settled.
        stop_all: Called when nothing is left to be judged.
    """

    def __init__(
        self,
        order: LookOrder,
        competing: Sequence[str],
        baseline: str,
        read: Callable[[EvalRow], float | None],
        *,
        margin: float,
        repeats: int = 1,
        fixed_groups: bool = False,
        keep_apart: bool = True,
        stop: Callable[[str], None],
        stop_all: Callable[[], None],
    ) -> None:
        self._order, self.baseline, self._read, self._repeats = order, baseline, read, repeats
        self._stop, self._stop_all, self._keep_apart = stop, stop_all, keep_apart
        planned = len(order.examples)
        self._looks = {
            name: Looks(
                *(planned, LOOKS, margin),
                comparisons=len(competing),
                sizes=order.sizes,
                name=name,
                fixed_groups=fixed_groups,
            )
            for name in competing
        }
        self._baseline: dict[int, Answer] = {}
        self._waiting: dict[str, dict[int, Answer]] = {name: {} for name in competing}
        self._answers: dict[tuple[str, int], list[ScoredRow]] = {}
        self._unread: dict[str, bool] = {}
        self._closed: set[str] = set()
        self._over = self._needed_all = False

    def take(self, place: int, row: EvalRow) -> None:
        """Take the row of the example at a place of the order."""
        name = row.system
        if self._over or name in self._closed or (name != self.baseline and name not in self._looks):
            return
        if row.error is None:
            self._unread[name] = is_unread_row(row)
        answers = self._answers.setdefault((name, place), [])
        answers.append(self._make(row))
        if len(answers) < self._repeats:
            return
        answer = average_answers(self._answers.pop((name, place)))
        if name == self.baseline:
            self._baseline[place] = answer
            for other, waiting in self._waiting.items():
                if place in waiting:
                    self._pair(other, place, waiting.pop(place), answer)
        elif place in self._baseline:
            self._pair(name, place, answer, self._baseline[place])
        else:
            self._waiting[name][place] = answer

    def _make(self, row: EvalRow) -> ScoredRow:
        return ScoredRow(str(row.example_id), row.dataset, self._read(row), read_group(row), row.error is not None)

    def _pair(self, name: str, place: int, own: Answer, baseline: Answer) -> None:
        looks, first, second = self._looks[name], own.value, baseline.value
        unlike = (
            self._keep_apart and len({self._unread[each] for each in (name, self.baseline) if each in self._unread}) > 1
        )
        if first is None or second is None or unlike:  # a context and an answer have no score in common
            looks.skip(place)
        else:
            group = own.group if own.group is not None else baseline.group
            failed = own.error or baseline.error
            looks.add(place, first, second, group, dataset=own.dataset, failed=failed)
        if looks.settled:
            self.close(name)

    def close(self, name: str) -> None:
        """Take no more of a system: it is settled, or it does not work."""
        if name not in self._looks or name in self._closed:
            return
        self._closed.add(name)
        self._waiting[name].clear()
        if self._looks[name].examples == len(self._order.examples):
            self._needed_all = True  # the baseline and the controls are then to have all of them too
        else:
            self._stop(name)
        if len(self._closed) == len(self._looks):
            self._over = True
            if not self._needed_all:
                self._stop_all()

    def describe(self, rows: Mapping[str, int], failed: Collection[str] = ()) -> dict[str, Any]:
        """Describe the looks at the end of a run, as JSON can hold it.

        Args:
            rows: Examples that were run of each system.
            failed: Systems that were stopped because they do not work.
        """
        systems = {}
        for name, looks in self._looks.items():
            verdict = looks.finish()
            systems[name] = {
                "look": looks.look,
                "examples": looks.examples,
                "not_run": max(0, len(self._order.examples) - rows.get(name, 0)),
                "settled": name in self._closed and name not in failed,
                "verdict": verdict.to_dict(),
            }
        others = {name: max(0, len(self._order.examples) - n) for name, n in rows.items() if name not in self._looks}
        return {**self._order.describe(), "looks": LOOKS, "systems": systems, "not_run": others}
