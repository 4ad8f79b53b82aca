"""Rows as the page reads them, and the facts gathered from them in one pass: times, needles, failures."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from context_bench.compare.curves import Curve
from context_bench.compare.sweeps import find_sweeps
from context_bench.config import DEFAULT_THRESHOLD
from context_bench.output.elements import clean_text
from context_bench.output.plots.grids import Cells, NeedleGrid
from context_bench.output.plots.pareto import find_baseline
from context_bench.results import EvalResult, EvalRow
from context_bench.store import RunInfo
from context_bench.store.backend import RunRecord
from context_bench.text.evidence_state import read_state

if TYPE_CHECKING:
    from context_bench.output.memory import HistoryLengths

EVIDENCE = ("lost", "recoverable", "verbatim")
OUTCOMES = ("right", "wrong", "error", "unscored")
_MAX_SNIPPET_CHARS, _MAX_ID_CHARS, _MAX_NAME_CHARS = 140, 120, 300
_DIGITS = re.compile(r"\d+")


class Source(NamedTuple):
    """A row with its example and answer, if known."""

    row: EvalRow
    example: Mapping[str, Any] | None = None
    processed: Mapping[str, Any] | None = None


class RowValues(NamedTuple):
    """A row of the list.

    `natural` sorts numbers within a name as numbers; `outcome` is an index into `OUTCOMES`, and `evidence` an index
    into `EVIDENCE`; `untouched` is 1 if the system changed nothing. `evidence` and `untouched` are None if unknown.
    """

    id: int
    run: int
    system: str
    dataset: str
    name: str
    natural: str
    repeat: int
    score: float | None
    outcome: int
    evidence: int | None
    untouched: int | None
    error: str | None
    input: int
    output: int | None
    latency: float
    question: str
    response: str


def clean_name(name: object) -> str:
    """Return a name as the list shows it."""
    return clean_text(str(name)[:_MAX_NAME_CHARS])


def clean_id(identity: object) -> str:
    """Return the id of an example as the list shows it."""
    return clean_text(str(identity)[:_MAX_ID_CHARS])


def name_error_kind(error: str) -> str:
    """Name the kind of an error: the type before its message."""
    return clean_text(error.partition(":")[0].strip()[:80]) or "error"


def read_values(identity: int, run: int, source: Source, score: float | None, threshold: float) -> RowValues:
    """Read the values of a row; a score of at least `threshold` counts as right."""
    row, example = source.row, source.example or {}
    state = read_state(row.scores)
    passed_on = row.upstream_tokens
    if passed_on is None and row.metadata.get("output") == "context":
        passed_on = row.output_tokens
    name = clean_id(row.example_id)
    return RowValues(
        identity,
        run,
        clean_name(row.system),
        clean_name(row.dataset),
        name,
        _DIGITS.sub(_pad, name.lower()),
        row.repeat,
        None if score is None else round(score, 4),
        OUTCOMES.index(_name_outcome(row, score, threshold)),
        None if state is None else EVIDENCE.index(state),
        _read_untouched(row),
        None if row.error is None else name_error_kind(row.error),
        row.input_tokens,
        passed_on,
        round(row.latency, 6),
        _shorten(example.get("question") or example.get("prompt") or ""),
        _shorten(row.response),
    )


def _read_untouched(row: EvalRow) -> int | None:
    """Read whether the system passed an example on unchanged; None if unknown."""
    facts = row.metadata
    if row.error is None and facts.get("output") == "context":
        return int(bool(facts.get("unchanged")))
    return None if row.error is not None or facts.get("untouched") is None else int(bool(facts["untouched"]))


def _pad(digits: re.Match[str]) -> str:
    return digits[0].zfill(12)


def _name_outcome(row: EvalRow, score: float | None, threshold: float) -> str:
    if row.error is not None:
        return "error"
    return "unscored" if score is None else "right" if score >= threshold else "wrong"


def _shorten(text: Any) -> str:
    return " ".join(clean_text(str(text)[: 4 * _MAX_SNIPPET_CHARS]).split())[:_MAX_SNIPPET_CHARS]


def write_time(run: RunInfo) -> str:
    """Write when a run began."""
    return " ".join((run.created[:10], run.created[11:16], run.created[19:])).strip()


def to_source(record: RunRecord) -> Source:
    """Convert a record of a run for the page."""
    return Source(record.row, record.example, None if record.answer is None else record.answer.processed)


# --- facts

_MAX_FAILURE_KINDS = 500  # distinct kinds of failures; later ones are counted together
_MAX_CURVE_ROWS = 100_000  # most rows for a curve, which needs all of them in memory
_CURVE_METADATA = ("output", "cluster")  # metadata keys that a curve needs


@dataclass
class Failure:
    """Errors of one kind, or rows without a score for one reason."""

    count: dict[str, int]
    message: str
    example: EvalRow


@dataclass
class RunFacts:
    """Facts of one run."""

    result: EvalResult  # the run itself
    name: str  # its id, or its name on the page
    created: str = ""  # when it was made; empty if unknown
    latencies: dict[str, array[float]] = field(default_factory=dict)  # seconds of each row without an error, by system
    overheads: dict[str, array[float]] = field(default_factory=dict)  # seconds that a proxy added, by system
    errors: dict[str, Failure] = field(default_factory=dict)  # by kind
    unscored: dict[str, Failure] = field(default_factory=dict)  # by evaluator and reason
    # shares of the context before the first and the last evidence of each example, by dataset
    depths: dict[str, tuple[array[float], array[float]]] = field(default_factory=dict)
    # counts of `RowIndex.count_kinds`; empty until all rows are read
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    wide: bool = False  # whether the table with all columns is initially open
    seen: int = 0  # rows read so far
    # whether any example names its evidence; None if examples are unknown
    has_evidence: bool | None = None
    state: str = ""  # a sentence on an unfinished run, else empty
    unread: str = ""  # a sentence while rows are being read, else empty
    # times of questions to memory systems by the length of the history; None before the first
    lengths: HistoryLengths | None = None
    # rows for curves, kept if the run has a sweep; None if there are too many
    sweep_rows: list[EvalRow] | None = field(default_factory=list)
    _sweeps: bool = False
    _depth_systems: dict[str, str] = field(default_factory=dict)  # the system whose rows count, by dataset

    @property
    def has_sweep(self) -> bool:
        """Whether a system ran with several settings of a knob."""
        return bool(find_sweeps(self.result.summary))

    @property
    def is_memory(self) -> bool:
        """Whether it is a run of memory systems."""
        return bool(self.result.settings.memory)

    def draw_curves(self) -> list[Curve]:
        """Draw the curves of the run, from the rows that were added."""
        rows = self.result.rows or self.sweep_rows or []
        return replace(self.result, rows=rows).curves()

    def __post_init__(self) -> None:
        self._needles = NeedleGrid(self.score_field)

    @property
    def cells(self) -> Cells:
        """Sum of scores and number of rows by system, length and depth, for examples that have both."""
        return self._needles.cells

    @property
    def score_field(self) -> str:
        """Return the name of the primary score."""
        return self.result.settings.score_field

    @property
    def threshold(self) -> float:
        """Return the lowest score that passes."""
        return float(self.result.settings.threshold or DEFAULT_THRESHOLD)

    @property
    def baseline(self) -> str | None:
        """Return the name of the baseline."""
        return find_baseline(self.result)

    def read_score(self, row: EvalRow) -> float | None:
        """Read the primary score of a row."""
        return row.scores.get(self.score_field)

    def add(self, source: Source) -> None:
        """Add one row."""
        row = source.row
        if not self.seen:
            self._sweeps = self.has_sweep and not self.result.rows
        self.seen += 1
        if self._sweeps:
            self._keep_for_curve(row)
        if source.example is not None:
            self.has_evidence = bool(self.has_evidence or source.example.get("evidence"))
        if row.error is not None:
            _count(self.errors, name_error_kind(row.error), row.error, row)
        else:
            self.latencies.setdefault(row.system, array("d")).append(row.latency)
        overhead = row.metadata.get("proxy_overhead")
        if isinstance(overhead, int | float):
            self.overheads.setdefault(row.system, array("d")).append(overhead)
        for evaluator, reason in row.unscored.items():
            _count(self.unscored, f"{evaluator}: {reason}"[:200], reason, row)
        self._needles.add(row, source.example)
        depth = row.metadata.get("evidence_depth")
        if depth and not row.repeat and self._depth_systems.setdefault(row.dataset, row.system) == row.system:
            for known, share in zip(self.depths.setdefault(row.dataset, (array("d"), array("d"))), depth):
                known.append(share)
        if self.is_memory:
            from context_bench.output.memory import HistoryLengths

            self.lengths = self.lengths or HistoryLengths()
            self.lengths.add(row)

    def _keep_for_curve(self, row: EvalRow) -> None:
        if self.sweep_rows is None or len(self.sweep_rows) >= _MAX_CURVE_ROWS:
            self.sweep_rows = None
            return
        kept = {key: row.metadata[key] for key in _CURVE_METADATA if key in row.metadata}
        scores = {key: value for key, value in row.scores.items() if key == self.score_field}
        self.sweep_rows.append(replace(row, scores=scores, metadata=kept, response="", unscored={}))


def _count(found: dict[str, Failure], kind: str, message: str, row: EvalRow) -> None:
    if kind not in found and len(found) >= _MAX_FAILURE_KINDS:
        kind = "others"
    failure = found.setdefault(kind, Failure({}, message, row))
    failure.count[row.system] = failure.count.get(row.system, 0) + 1
