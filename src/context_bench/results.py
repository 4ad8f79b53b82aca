"""The results of a run: one `EvalRow` for each system and example, and the `EvalResult` around them.

Rows hold raw facts; every number of a summary can be computed again from them, and `filter` and
`from_json` do so. JSON written here is strict: infinity and NaN become null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import orjson

from context_bench.compare.against_baseline import compare_systems
from context_bench.compare.verdicts import Comparison, read_intervals
from context_bench.errors import DataError, UsageError
from context_bench.numbers import BETWEEN_SYSTEMS, BRIEF, COST_OF_PASS, NUM_ERRORS
from context_bench.registry import import_object, registry
from context_bench.settings import RunSettings, read_settings
from context_bench.summary import Intervals, Notes, Summary, rebuild_metrics, summarize
from context_bench.text import dump_json, read_regular_file

if TYPE_CHECKING:
    import pandas

    from context_bench.compare.curves import Curve
    from context_bench.compare.groups import Groups
    from context_bench.compare.runs import RunComparison
    from context_bench.output.plots import ResultPlots
from context_bench.types import Metric

__all__ = ["EvalResult", "EvalRow", "Part", "Scores"]

Part = Literal["rows", "summary"]  # what of a result is exported


class Scores(dict[str, float]):
    """The scores of one evaluator, with reasons and details; equal to a plain dict of the same numbers.

    `reason` says why scores are missing (nothing to judge, judge unreachable); `details` goes into the row's metadata
    under the evaluator's name; `transient` means that another try may give a score, so the missing score is not cached.
    """

    def __init__(
        self,
        scores: Mapping[str, float] | Iterable[tuple[str, float]] = (),
        *,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(scores)
        self.reason = reason
        self.transient = transient
        self.details = dict(details) if details else {}


class _ExampleFacts:
    """Facts about a row's example that are neither compared nor written with the row."""

    __slots__ = ("_meta",)

    @property
    def meta(self) -> Mapping[str, Any]:
        """The `meta` of the example, where known: in the process of the run, and for rows from a store."""
        return getattr(self, "_meta", {})

    @meta.setter
    def meta(self, meta: Any) -> None:
        self._meta = meta if isinstance(meta, Mapping) else {}


@dataclass(slots=True)
class EvalRow(_ExampleFacts):
    """One system on one example.

    If the system returned a context, `output_tokens` counts the text that a model would now receive, else the response;
    `metadata["output"]` says which. `upstream_tokens` counts the text that the model behind the system received; None
    if not measured. `error` is "Type: message"; such a row has no scores. `unscored` maps an evaluator to the reason
    for a missing score.
    """

    system: str
    example_id: str | int
    scores: dict[str, float]
    input_tokens: int
    output_tokens: int
    metadata: dict[str, Any] = field(default_factory=dict)
    latency: float = 0.0
    dataset: str = ""
    response: str = ""
    error: str | None = None
    repeat: int = 0
    unscored: dict[str, str] = field(default_factory=dict)
    upstream_tokens: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the row as a plain dict, in field order."""
        return {name: getattr(self, name) for name in ROW_FIELDS}


ROW_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(EvalRow))


@dataclass(repr=False)
class EvalResult:
    """All rows of a run, with the numbers that the metrics computed from them.

    A value of `summary` that could not be measured, or that means nothing for its system, is NaN (null in JSON);
    `notes[system][key]` says why. A note on any other value says how to read it.
    """

    rows: list[EvalRow]
    summary: dict[str, dict[str, float]]
    timing: dict[str, float] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    metrics: list[Metric] | None = field(default=None, compare=False)
    notes: Notes = field(default_factory=dict)
    intervals: Intervals = field(default_factory=dict, compare=False)
    comparison: Comparison | None = field(default=None, compare=False)

    @classmethod
    def from_summary(
        cls,
        rows: list[EvalRow],
        summary: Summary,
        config: dict[str, Any],
        metrics: Sequence[Metric] | None,
        timing: dict[str, float] | None = None,
    ) -> EvalResult:
        """Make a result from rows and their summary."""
        own = None if metrics is None else list(metrics)
        return cls(
            rows, summary.numbers, timing or {}, config, own, summary.notes, summary.intervals, summary.comparison
        )

    @property
    def settings(self) -> RunSettings:
        """The record in `config` as typed values; read again each time, since `config` may change."""
        return read_settings(self.config)

    @property
    def systems(self) -> list[str]:
        """System names, in the order of the run."""
        return list(self.summary)

    def __repr__(self) -> str:
        datasets = ", ".join(self.settings.datasets) or "data without a tag"
        lines = [f"EvalResult: {len(self.rows):,} rows of {len(self.summary)} systems on {datasets}"]
        for name, values in list(self.summary.items())[:_MAX_SHOWN_SYSTEMS]:
            numbers = [f"{key} {values[key]:.4g}" for key in BRIEF if key in values]
            failed = next((row for row in self.rows if row.system == name and row.error), None)
            if failed is not None:
                place = "".join(
                    f" at {frame.partition(': ')[0]}" for frame in failed.metadata.get("traceback", ())[-1:]
                )
                numbers.append(f"{values.get(NUM_ERRORS, 1):.0f} errors, first: {failed.error}{place}")
            lines.append(f"  {name}: {', '.join(numbers)}")
        if len(self.summary) > _MAX_SHOWN_SYSTEMS:
            lines.append(f"  and {len(self.summary) - _MAX_SHOWN_SYSTEMS} more")
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        """Return the table, as notebooks show it."""
        return str(registry.get("reporter", "table")().render(self))

    def _repr_html_(self) -> str:
        """Return the headline table and the Pareto plot, as notebooks show it."""
        from context_bench.output.plots.result_plots import render_notebook

        return render_notebook(self, registry.get("reporter", "table")().list_headline(self))

    @property
    def plot(self) -> ResultPlots:
        """Plots of this result: `result.plot.pareto()`, which a notebook shows and `.save(path)` writes."""
        from context_bench.output.plots import ResultPlots

        return ResultPlots(self)

    def filter(
        self,
        system: str | Iterable[str] | Callable[[EvalRow], bool] | None = None,
        dataset: str | Iterable[str] | None = None,
        **fields: Any,
    ) -> EvalResult:
        """Return the part of the result for some of its rows, with its summary computed again.

        `system` is a name, several names, or a function that decides for each row; `fields` restricts other fields of a
        row to a value or a list of values.
        """
        keep = system if callable(system) else None
        systems = None if callable(system) else _list_wanted(system)
        wanted = {name: _list_wanted(value) for name, value in {"dataset": dataset, **fields}.items()}
        wanted = {name: values for name, values in wanted.items() if values is not None or name != "dataset"}
        if unknown := wanted.keys() - set(ROW_FIELDS):
            raise UsageError(f"a row has no field {sorted(unknown)[0]!r}; it has {', '.join(ROW_FIELDS)}")
        rows = [
            row
            for row in self.rows
            if (systems is None or row.system in systems)
            and all(getattr(row, name) in ([None] if values is None else values) for name, values in wanted.items())
            and (keep is None or keep(row))
        ]
        left = {row.system for row in rows}
        names = [name for name in self.summary if (name in left if keep else systems is None or name in systems)]
        timing = {name: seconds for name, seconds in self.timing.items() if name in names}
        if wanted or keep:  # the looks were at all rows
            config = {key: value for key, value in self.config.items() if key != "looks"}
            return self._with_rows(rows, names, timing, config)
        stored = {
            name: {key: value for key, value in own.items() if key not in BETWEEN_SYSTEMS}
            for name, own in self.summary.items()
        }
        return self._with_rows(rows, names, timing)._keep_unknown(stored, self.notes)

    def group_by(self, field: str) -> Groups:
        """Split the result by a field of its rows, such as `meta.lang` or `dataset`: a result for each value.

        Each part has its own summary, intervals and verdicts; shown in a notebook, it is a table of scores.
        """
        config = {key: value for key, value in self.config.items() if key != "looks"}  # the looks were at all rows

        def make_part(rows: list[EvalRow]) -> EvalResult:
            present = {row.system for row in rows}
            return self._with_rows(rows, [name for name in self.summary if name in present], {}, config)

        groups: Groups = import_object("context_bench.compare.groups:make_groups")(self.rows, field, make_part)
        return groups

    def merge_seeds(self) -> EvalResult:
        """Return the result with systems that differ only by `seed=` merged into one: the seeds count as repeated
        answers.

        Scores are means over the seeds, `seed_spread` is their standard deviation. Rows name their seed in `metadata`.
        """
        merged: EvalResult = import_object("context_bench.compare.seeds:merge_seeds")(self)
        return merged

    def _with_rows(
        self, rows: list[EvalRow], names: list[str], timing: dict[str, float], config: dict[str, Any] | None = None
    ) -> EvalResult:
        config = self.config if config is None else config
        metrics = self.metrics if self.metrics is not None else rebuild_metrics(read_settings(config).metrics)
        return EvalResult.from_summary(rows, summarize(rows, names, metrics, config), config, metrics, timing)

    def _keep_unknown(
        self, stored: Mapping[str, Mapping[str, float]], notes: Mapping[str, Mapping[str, str]]
    ) -> EvalResult:
        """Keep the stored values of metrics that are unknown in this process, because the rows are the same."""
        for name, values in self.summary.items():
            unknown = {key: value for key, value in stored.get(name, {}).items() if key not in values}
            said = {key: note for key, note in notes.get(name, {}).items() if key in unknown}
            self.summary[name] = {**unknown, **values}
            if said:
                self.notes[name] = {**said, **self.notes.get(name, {})}
        return self

    def curves(self, baseline: str | None = None, margin: float | None = None) -> list[Curve]:
        """Return quality against tokens for each system with several settings of a knob; see `draw_curves`."""
        from context_bench.compare.curves import draw_curves

        return draw_curves(self, baseline, margin)

    @overload
    def compare(self, baseline: EvalResult, metric: None = None, margin: float | None = None) -> RunComparison: ...

    @overload
    def compare(
        self, baseline: str | None = None, metric: str | None = None, margin: float | None = None
    ) -> Comparison | None: ...

    def compare(
        self, baseline: str | EvalResult | None = None, metric: str | None = None, margin: float | None = None
    ) -> Comparison | RunComparison | None:
        """Compare every system with one of them: difference, interval, corrected p, and one word for each.

        If the baseline is a result, each system is compared, example by example, with the system of the same name in
        that result, or with its only system. Otherwise the baseline is a system, by default that of the run: `direct`,
        else `passthrough`, else the first.

        `metric` is `score` (the default), `pass_rate`, or any score of the rows, such as `f1`. Differences within the
        margin do not matter; by default it is that of the run, else `DEFAULT_MARGIN`. Return None unless two systems
        have scores for the same examples. Raise UsageError for an unknown system, for results without a common system
        or example, or if the rows were not kept and the run did not compare this.
        """
        if not isinstance(baseline, EvalResult):
            return compare_systems(self, baseline, metric, margin)
        if metric is not None:
            raise UsageError("results are compared by their score: remove metric, or set score_field= in both runs")
        found: RunComparison = import_object("context_bench.compare.runs:compare_results")(self, baseline, margin)
        return found

    def describe_accuracy(self) -> dict[str, Any]:
        """Describe the accuracy of the numbers as a dict for strict JSON."""
        intervals = {
            name: {key: interval.to_dict() for key, interval in own.items()} for name, own in self.intervals.items()
        }
        return {"intervals": intervals, "comparison": None if self.comparison is None else self.comparison.to_dict()}

    def to_json(self, indent: bool = True) -> str:
        """Return the whole result as strict JSON."""
        sliced = {field.split(".")[1] for field in self.settings.slices if field.startswith("meta.")}
        document = {
            "summary": self.summary,
            "notes": self.notes,
            **self.describe_accuracy(),
            "timing": self.timing,
            "config": self.config,
            **({"curves": [curve.to_dict() for curve in curves]} if (curves := self.curves()) else {}),
            "rows": [row.as_dict() | _keep_meta(row, sliced) for row in self.rows],
        }
        return dump_json(document, indent=indent)

    def read_accuracy(self, document: Mapping[str, Any]) -> None:
        """Read the dict of `describe_accuracy`."""
        self.intervals = read_intervals(document.get("intervals") or {})
        compared = document.get("comparison")
        self.comparison = None if compared is None else Comparison.from_dict(compared)

    @classmethod
    def from_json(cls, text: str | bytes) -> EvalResult:
        """Read the JSON of `to_json`, and compute the summary again from the rows."""
        try:
            document = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise DataError(f"this JSON is not a result of context-bench: {error}") from None
        if not isinstance(document, dict) or not {"rows", "summary"} <= document.keys():
            raise DataError("this JSON is not a result of context-bench: it has no rows or no summary")
        rows = [_read_row(row, number) for number, row in enumerate(document["rows"], 1)]
        notes: Notes = document.get("notes") or {}
        stored = {name: _restore(values, notes.get(name, {})) for name, values in document["summary"].items()}
        result = cls(rows, stored, document.get("timing", {}), document.get("config", {}), notes=notes)
        result.read_accuracy(document)
        if not rows:
            return result
        return result._with_rows(rows, list(stored), result.timing)._keep_unknown(stored, notes)

    @classmethod
    def load(cls, path: str | Path) -> EvalResult:
        """Read a result from a file that `--out FILE.json` or `to_json` wrote.

        Raises:
            UsageError: The file cannot be read.
            DataError: It is not a result.
        """
        try:
            return cls.from_json(read_regular_file(Path(path)))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
        except DataError as error:
            kind = _EXPORTED.get(Path(path).suffix.lower())
            reason = error if kind is None else f"{kind} cannot be loaded as a result: save JSON, or use the store"
            raise DataError(f"{path}: {reason}") from None

    def to_csv(self, path: str | Path | None = None, part: Part = "rows") -> str:
        """Return CSV with a line for each row, or for each system with all numbers and intervals; also write it to
        `path`."""
        return import_object(f"{_EXPORTS}:export_csv")(self, path, part)  # type: ignore[no-any-return]

    def to_latex(self, path: str | Path | None = None, part: Part = "summary") -> str:
        """Return the tables as LaTeX for `booktabs`, or the rows as a `longtable`; with a `path` also write it."""
        return import_object(f"{_EXPORTS}:export_latex")(self, path, part)  # type: ignore[no-any-return]

    def to_parquet(self, path: str | Path, part: Part = "rows") -> None:
        """Write the rows or the summary as Parquet, nested values as JSON texts (needs the extra `parquet`)."""
        import_object(f"{_EXPORTS}:export_parquet")(self, path, part)

    def to_dataframe(self, part: Part = "rows") -> pandas.DataFrame:
        """Make a frame of the rows or the summary, with the columns of `to_csv` (needs the extra `dataframe`)."""
        return import_object(f"{_EXPORTS}:export_frame")(self, part)


_MAX_SHOWN_SYSTEMS = 8

_EXPORTS = "context_bench.output.exports"  # stands above this module
_EXPORTED = {".parquet": "Parquet", ".csv": "CSV"}  # files of results that cannot be loaded as a result


MAX_META_CHARS = 100  # length of a text of `meta` that JSON keeps


def _keep_meta(row: EvalRow, sliced: Collection[str]) -> dict[str, Any]:
    """Return the numbers and short texts of `meta`, and the fields to slice by, so that results from a file can be
    grouped."""
    kept = {name: value for name, value in row.meta.items() if name in sliced or _is_short(value)}
    return {"meta": kept} if kept else {}


def _is_short(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= MAX_META_CHARS)


def _list_wanted(values: Any) -> list[Any] | None:
    """List the types that a field may have; None for any, or for a field that must be None."""
    if values is None:
        return None
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str | Mapping) else [values]


def _read_row(values: Any, number: int) -> EvalRow:
    try:
        row = EvalRow(**{key: value for key, value in values.items() if key != "meta"})
        row.meta = values.get("meta")
    except (AttributeError, TypeError) as error:
        raise DataError(f"row {number} of this result cannot be read: {error}") from None
    row.scores = {key: value for key, value in row.scores.items() if value is not None}
    return row


def _restore(values: Mapping[str, float | None], notes: Mapping[str, str]) -> dict[str, float]:
    """Replace the nulls of strict JSON: a cost of pass is infinite if nothing passed; other values were not
    measured."""

    def number(key: str, value: float | None) -> float:
        if value is not None:
            return value
        infinite = COST_OF_PASS in key and not notes.get(key, "").startswith(("not measured", "not priced"))
        return math.inf if infinite else math.nan

    return {key: number(key, value) for key, value in values.items()}
