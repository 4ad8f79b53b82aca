"""Interim looks: each system stops as soon as its verdict is settled, by five looks over prefixes of a random order.

Competing systems stop one by one. The baseline and the controls continue while any competing system does, because its
answers are compared with theirs. The order of the examples is random, by seed, and fixed before the run.

The clusters of each dataset (a document, a conversation, or an example that shares nothing) are put in random order.
Each dataset is then cut into one part per look, at ends of clusters. Each look takes the same part of every dataset, so
it contains the datasets in proportion. The order depends only on the seed and on ids: a resumed run takes the same
looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from context_bench.compare.looks import Looks
from context_bench.compare.pairing import Pairing, ScoredAnswer, is_unread_row, read_answer
from context_bench.core.call import Outcome
from context_bench.core.examples import Item
from context_bench.core.row import Job
from context_bench.errors import UsageError
from context_bench.monitors.monitor import Monitor
from context_bench.results import EvalRow

LOOKS = 5


@dataclass(frozen=True)
class LookOrder:
    """Examples in the order of the run, and the number of examples at each look."""

    items: Sequence[Item]
    sizes: list[int]
    seed: int

    def describe(self) -> dict[str, Any]:
        return {"planned": len(self.items), "sizes": self.sizes, "seed": self.seed}


def order_for_looks(items: Iterable[Item], seed: int) -> LookOrder:
    """Read all examples and put them in their order.

    Raises:
        UsageError: There are fewer examples than looks.
    """
    datasets: dict[str, dict[tuple[str, str], list[Item]]] = {}
    for item in items:
        cluster = _find_cluster(item)
        datasets.setdefault(item.tag, {}).setdefault(cluster, []).append(item)
    planned = sum(len(group) for clusters in datasets.values() for group in clusters.values())
    if planned < LOOKS:
        raise UsageError(f"--stop-when-decided needs at least {LOOKS} examples, one for each look (got {planned})")
    placed: list[tuple[int, float, str, int, Item]] = []
    for tag, clusters in datasets.items():
        ordered = sorted(clusters.items(), key=lambda cluster: _draw(seed, tag, *cluster[0]))
        placed += _place([group for _, group in ordered], tag)
    placed.sort(key=lambda each: each[:4])
    sizes = [sum(each[0] <= look for each in placed) for look in range(1, LOOKS + 1)]
    return LookOrder([each[-1] for each in placed], sizes, seed)


def draw_example(item: Item, seed: int) -> bytes:
    """Return the random number that orders the clusters of a dataset."""
    return _draw(seed, item.tag, *_find_cluster(item))


def _find_cluster(item: Item) -> tuple[str, str]:
    """Find the cluster of an example, as for rows; without one, the example is its own cluster."""
    example, field = item.example, "group" if item.wiring is None else item.wiring.cluster_field
    meta = example.get("meta")
    cluster = meta.get(field) if isinstance(meta, Mapping) else None
    if isinstance(cluster, str | int):
        return "cluster", str(cluster)
    return type(example["id"]).__name__, str(example["id"])


def _place(groups: list[list[Item]], tag: str) -> list[tuple[int, float, str, int, Item]]:
    """Assign each example its look and its relative position in its dataset; datasets are mixed by this position."""
    total = sum(map(len, groups))
    placed, before = [], 0
    for group in groups:
        # the first look at whose end the cluster has begun: each look then has at least its part
        look = before * LOOKS // total + 1
        placed += [(look, (before + place) / total, tag, before + place, each) for place, each in enumerate(group)]
        before += len(group)
    return placed


def _draw(seed: int, tag: str, kind: str, name: str) -> bytes:
    text = f"{seed}\0{tag}\0{kind}\0{name}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=16).digest()


class Decisions(Monitor):
    """Stop each system once an interim look has decided its verdict.

    `read` returns the compared number of a row; `width` is the number of jobs per example, for all systems and repeats.
    With `keep_apart`, contexts that no model has read are never compared with answers.
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
        width: int = 1,
        fixed_groups: bool = False,
        keep_apart: bool = True,
        stop: Callable[[str], None],
        stop_all: Callable[[], None],
    ) -> None:
        self._order, self.baseline, self._read = order, baseline, read
        self._stop, self._stop_all, self._keep_apart = stop, stop_all, keep_apart
        planned = len(order.items)
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
        self._pairing = Pairing(competing, baseline, self._pair, repeats=repeats)
        self._unread: dict[str, bool] = {}
        self._closed: set[str] = set()
        self._over = self._needed_all = False
        self._repeats, self._width, self._row_counts = repeats, width, Counter[str]()

    def on_row(self, job: Job, row: EvalRow, outcome: Outcome) -> None:  # noqa: ARG002
        """Add the row to the example at its place in the order."""
        name, place = row.system, job.order // self._width
        self._row_counts[name] += 1
        if self._over or name in self._closed or (name != self.baseline and name not in self._looks):
            return
        if row.error is None:
            self._unread[name] = is_unread_row(row)
        self._pairing.add(name, read_answer(row, self._read(row), id=place))

    def _pair(self, name: str, own: ScoredAnswer, baseline: ScoredAnswer) -> None:
        if name in self._closed:
            return
        looks, place = self._looks[name], int(own.id)
        kinds = {self._unread[each] for each in (name, self.baseline) if each in self._unread}
        if self._keep_apart and len(kinds) > 1:  # no score applies to both contexts and answers
            looks.skip(place)
        else:
            looks.add(place, own, baseline)
        if looks.settled:
            self.drop(name)

    def drop(self, name: str) -> None:
        """Stop looking at a system: its verdict is settled, or it does not work."""
        if name not in self._looks or name in self._closed:
            return
        self._closed.add(name)
        if self._looks[name].examples == len(self._order.items):
            self._needed_all = True  # the baseline and the controls must then answer all of them too
        else:
            self._stop(name)
        if len(self._closed) == len(self._looks):
            self._over = True
            if not self._needed_all:
                self._stop_all()

    def describe(self, names: Iterable[str], failed: Collection[str] = ()) -> dict[str, Any]:
        """Describe the looks at the end of a run, for JSON."""
        rows = {name: -(-self._row_counts[name] // self._repeats) for name in names}
        systems = {}
        for name, looks in self._looks.items():
            verdict = looks.finish()
            systems[name] = {
                "look": looks.look,
                "examples": looks.examples,
                "not_run": max(0, len(self._order.items) - rows.get(name, 0)),
                "settled": name in self._closed and name not in failed,
                "verdict": verdict.to_dict(),
            }
        others = {name: max(0, len(self._order.items) - n) for name, n in rows.items() if name not in self._looks}
        return {**self._order.describe(), "looks": LOOKS, "systems": systems, "not_run": others}
