"""The responses of the viewer: the list of runs, the state of open runs, their parts, rows and single rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any, TypeVar

from context_bench.compare.sweeps import join_settings, name_briefly, write_briefly
from context_bench.errors import UsageError
from context_bench.numbers import MEAN_SCORE
from context_bench.output.conclusion import compare_tokens, find_saving, sort_verdicts
from context_bench.output.elements import Markup
from context_bench.output.page.examples import cut_details, describe_row
from context_bench.output.page.html_page import describe_runs
from context_bench.output.page.row_index import SORTED, RowQuery
from context_bench.output.page.run_facts import OUTCOMES, RunFacts, to_source, write_time
from context_bench.output.viewer.followed_run import FollowedRun, Follower, LiveStore
from context_bench.store import RunInfo
from context_bench.store.backend import restore_result
from context_bench.store.records import run_of

_EMPTY = frozenset({"meta", "input", "br", "col"})


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top: list[Any] = ["", {}, []]
        self._open = [self.top]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = [tag, {_SPELLED.get(name, name): value or "" for name, value in attrs}, []]
        self._open[-1][2].append(node)
        if tag not in _EMPTY:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _EMPTY:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1][2].append(data)


_SPELLED = {"viewbox": "viewBox"}  # attributes whose capitals the parser drops, but SVG needs


def to_tree(markup: Markup) -> list[Any]:
    """Turn one element made by `element` into `[tag, attributes, children]`; a child is a text or such a list."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    tree: list[Any] = reader.top[2][0]
    return tree


T = TypeVar("T")

Values = Mapping[str, str]  # the query fields of an address

_MAX_ROWS, _MAX_RUNS = 200, 20
_MAX_CONTEXT_CHARS, _MAX_TEXT_CHARS = 200_000, 50_000  # characters of a row's context, and of each of its other texts
_FILTERS = ("run", "system", "dataset", "outcome", "evidence", "untouched", "flip", "error")


class Answers:
    """Answers from a store."""

    def __init__(self, store: LiveStore) -> None:
        self._store = store
        self._follower = Follower(store)
        self.by_name: dict[str, Callable[[Values], dict[str, Any]]] = {
            "runs": self._list_runs,
            "state": self._tell_state,
            "sections": self._describe_runs,
            "rows": self._find_rows,
            "row": self._open_row,
            "locate": self._locate,
        }

    def close(self) -> None:
        """Stop following runs."""
        self._follower.close()

    def describe(self, names: Sequence[str], show: Callable[[list[RunFacts], str], T]) -> T:
        """Call `show` with the current state of runs and its version, while they are locked."""
        with self._follower.lock:
            runs = self._follow(names)
            facts = [run.describe(self._store.count_rows(run.info)) for run in runs]
            return show(facts, _name_version(runs))

    def _follow(self, names: Sequence[str]) -> list[FollowedRun]:
        if not names or len(names) > _MAX_RUNS:
            raise UsageError(f"a page shows 1 to {_MAX_RUNS} runs ({len(names)} requested)")
        return self._follower.follow(names)

    def _list_runs(self, _: Values) -> dict[str, Any]:
        return {"runs": [self._sum_up(run) for run, _ in self._store.list_runs()]}

    def _sum_up(self, run: RunInfo) -> dict[str, Any]:
        under_way, systems = self._store.is_under_way(run), list(run.settings.systems)
        scores = [own.get(MEAN_SCORE, math.nan) for own in run.summary.values()]
        known = [score for score in scores if math.isfinite(score)]
        return {
            "id": run.id,
            "created": write_time(run)[:16],
            "status": "under way" if under_way else "interrupted" if run.status == "running" else run.status,
            "under_way": under_way,
            "rows": self._store.count_rows(run),
            "systems": systems,
            "datasets": list(run.settings.datasets),
            "brief": {
                "systems": ", ".join(write_briefly(each, systems) for each in join_settings(systems)),
                "datasets": ", ".join(name_briefly(run.settings.datasets).values()),
            },
            "best": max(known) if known else None,
            **_sum_up_savings(run),
            "command": " ".join(map(str, run.settings.command)),
        }

    def _tell_state(self, values: Values) -> dict[str, Any]:
        runs = self._follow(_read_runs(values))
        numbers = [run.info.number for run in runs]
        index = self._follower.index
        names = {**index.list_names(numbers), "run": {run.info.number: run.info.id for run in runs}}
        return {
            "version": _name_version(runs),
            "under_way": any(run.under_way or not run.complete for run in runs),
            "names": {**names, "outcome": OUTCOMES},
            "brief": name_briefly([*names["system"].values(), *names["dataset"].values()]),
            "total": index.count(numbers),
            "flips": index.has_flips(numbers),
            "evidence": index.has_evidence(numbers),
            "untouched": any(each["untouched"] for number in numbers for each in index.count_kinds(number).values()),
        }

    def _describe_runs(self, values: Values) -> dict[str, Any]:
        version, parts = self.describe(_read_runs(values), lambda facts, version: (version, describe_runs(facts)))
        return {"version": version, "parts": [to_tree(part) for part in parts]}

    def _find_rows(self, values: Values) -> dict[str, Any]:
        runs = self._follow(_read_runs(values))
        query = _read_query(values, [run.info.number for run in runs])
        offset, limit = _read_whole(values, "offset"), min(_MAX_ROWS, _read_whole(values, "limit") or 50)
        found = self._follower.index.find(query, offset, limit)
        expected = sum(self._store.count_rows(run.info) for run in runs)
        total = self._follower.index.count(query.runs)
        reading = any(not run.complete and not run.under_way for run in runs)
        return {
            "rows": [_name_key(row) for row in found.rows],
            "found": found.total,
            "total": total,
            "reading": f"{total:,} of {expected:,} rows were read so far" if reading else "",
        }

    def _open_row(self, values: Values) -> dict[str, Any]:
        identity = _read_whole(values, "id")
        runs = self._follow(_read_runs(values))
        if run_of(identity) not in {run.info.number for run in runs}:
            raise UsageError(f"there is no row {identity} in these runs")
        with self._store.open() as reader:
            found = reader.read_records([identity])
        if not found:
            raise UsageError(f"there is no row {identity} in these runs, or it is damaged")
        return cut_details(*describe_row(to_source(found[0][1])), _MAX_CONTEXT_CHARS, _MAX_TEXT_CHARS)

    def _locate(self, values: Values) -> dict[str, Any]:
        runs = self._follow(_read_runs(values))
        (number,) = [run.info.number for run in runs if run.info.id == values.get("run")] or (None,)
        system, dataset, name = (values.get(each, "") for each in ("system", "dataset", "name"))
        index, plain = self._follower.index, RowQuery(runs=tuple(run.info.number for run in runs))
        found = None if number is None else index.locate(number, system, dataset, name, _read_whole(values, "repeat"))
        if found is None:
            return {"row": None}
        place = index.find_place(plain, found) or 0
        row = index.find(RowQuery(runs=plain.runs, equal=(("id", found),)), 0, 1).rows[0]
        return {"row": _name_key(row), "place": place}


def _name_version(runs: Sequence[FollowedRun]) -> str:
    return " ".join(run.version for run in runs)


def _name_key(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"key": row["id"], **{name: value for name, value in row.items() if name != "id"}}


def _sum_up_savings(run: RunInfo) -> dict[str, Any]:
    """Name the largest saving of a system that is not worse, with its verdict; else the existing verdicts."""
    result = restore_result(run, [])
    comparison = result.comparison
    standing = None if comparison is None else sort_verdicts(result, comparison)
    if standing is None:
        shares = [share for name in run.summary if (share := find_saving(result, name)[1]) > -1e9]
        return {"saved": max(shares, default=None), "verdict": ""}
    if standing.good:
        change = compare_tokens(result, standing.good[0].name)
        share = find_saving(result, standing.good[0].name)[1] if change is None else -change
        return {
            "saved": share if share > -1e9 else None,
            "verdict": f"{standing.good[0].word}: {name_briefly(run.summary)[standing.good[0].name]}",
        }
    words = {"blind": standing.blind, "undecided": standing.undecided, "worse": standing.worse}
    return {"saved": None, "verdict": ", ".join(f"{len(found)} {word}" for word, found in words.items() if found)}


def _read_runs(values: Values) -> list[str]:
    return [name for name in values.get("runs", "").split("+") if name]


def _read_query(values: Values, runs: Sequence[int]) -> RowQuery:
    equal = tuple((name, _read_filter(values, name)) for name in _FILTERS if values.get(name))
    low, high = (_read_number(values, name) for name in ("low", "high"))
    sort = values.get("sort") or None
    if sort is not None and sort not in SORTED:
        raise UsageError(f"sort must be one of {', '.join(SORTED)} (got {sort!r})")
    words = tuple(values.get("words", "").split()[:20])
    return RowQuery(tuple(runs), equal, low, high, words, sort, bool(values.get("down")))


def _read_filter(values: Values, name: str) -> int | None:
    return None if values[name] == "null" else _read_whole(values, name, lowest=-1)


def _read_whole(values: Values, name: str, lowest: int = 0) -> int:
    text = values.get(name) or "0"
    try:
        number = int(text)
    except ValueError:
        number = lowest - 1
    if not lowest <= number < 1 << 62:
        raise UsageError(f"{name} must be a whole number of at least {lowest} (got {text[:80]!r})")
    return number


def _read_number(values: Values, name: str) -> float | None:
    text = values.get(name)
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise UsageError(f"{name} must be a number (got {text[:80]!r})")
    return number
