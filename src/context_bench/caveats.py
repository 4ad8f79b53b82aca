"""Notes on numbers of a summary that mean nothing, or less than their names suggest.

A metric's `compute()` applies its formula to any rows. In the summary of a run, a value that means nothing for a system
becomes NaN with a note; a value that needs an explanation keeps its number and gets a note.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from context_bench.compare.pairing import NOT_AN_ANSWER, is_unread_row
from context_bench.numbers import (
    COMPRESSION_RATIO,
    COST_OF_PASS,
    COST_PER_1K_USD,
    ERROR_RATE,
    JUDGE_SCORE,
    MEAN_SCORE,
    NUM_ERRORS,
    NUM_EXAMPLES,
    NUM_UNSCORED,
    NUMBERS,
    PASS_RATE,
    PROMPT_SAVINGS,
    get_number,
)
from context_bench.settings import read_settings
from context_bench.text.evidence_state import NOT_IN_CONTEXT

if TYPE_CHECKING:
    from context_bench.results import EvalRow

NO_CONTEXT = "response against prompt"
"""Start of the note on a ratio of answer to prompt: answers are short, so it does not measure compression."""

_MAX_CAUSES = 100
"""Distinct reasons to count. A reason may contain the id of its example, so there may be as many as examples."""

_MAX_SHOWN = 3
_JUDGE = "llm-judge"
_BOUNDED = ("prompt_savings_best", "untouched_share_best", "evidence_survival_best")
_BOTH_KINDS = "it returned contexts for some examples and answers for others; no score applies to both"
_BY_THRESHOLD = [key for key, number in NUMBERS.items() if number.by_threshold]


class Census:
    """Counts the rows of one system, in all or on one dataset, and the reasons why rows have no score."""

    __slots__ = (
        *("causes", "empty", "errors", "kinds", "not_applied", "outputs", "rows", "score_field", "score_keys"),
        *("unjudged", "unscored"),
    )

    def __init__(self, score_field: str) -> None:
        self.score_field = score_field
        self.rows = self.errors = self.unscored = self.empty = 0
        self.causes: Counter[str] = Counter()
        self.not_applied: Counter[str] = Counter()
        self.unjudged: Counter[str] = Counter()
        self.score_keys: set[str] = set()
        self.outputs: set[str] = set()
        self.kinds: set[bool] = set()

    def add(self, row: EvalRow) -> None:
        self.rows += 1
        if row.error is not None:
            self.errors += 1
            return
        metadata = row.metadata
        output = metadata.get("output", "")
        self.outputs.add(output)
        self.kinds.add(output == "context" and is_unread_row(row))
        if not row.response and output == "response":
            self.empty += metadata.get("finish_reason") not in ("tool_calls", "tool_use", "function_call")
        if "not_applied" in metadata:
            self._note(self.not_applied, str(metadata["not_applied"]))
        if _JUDGE in row.unscored:
            self._note(self.unjudged, row.unscored[_JUDGE])
        if self.score_field not in row.scores:
            self.unscored += 1
            self._note_causes(row)

    @staticmethod
    def _note(reasons: Counter[str], reason: str) -> None:
        known = reason in reasons or len(reasons) < _MAX_CAUSES
        reasons[reason if known else "for other reasons"] += 1

    def _note_causes(self, row: EvalRow) -> None:
        self.score_keys.update(row.scores)
        causes = [f"{evaluator}: {reason}" for evaluator, reason in row.unscored.items()]
        if len(causes) > 1 and len(reasons := set(row.unscored.values())) == 1:
            causes = list(reasons)  # the same reason everywhere: name no evaluator
        for cause in causes:
            if cause in self.causes or len(self.causes) < _MAX_CAUSES:
                self.causes[cause] += 1

    def counts(self) -> dict[str, float]:
        return {
            NUM_EXAMPLES: float(self.rows),
            NUM_ERRORS: float(self.errors),
            ERROR_RATE: self.errors / self.rows if self.rows else 0.0,
            NUM_UNSCORED: float(self.unscored),
        }

    @property
    def unread(self) -> bool:
        """Whether the system returned contexts that no model has read."""
        return True in self.kinds

    @property
    def not_applicable(self) -> int:
        """Count unscored rows whose context never contained the gold answer."""
        return sum(count for cause, count in self.causes.items() if cause.endswith(NOT_IN_CONTEXT))

    @property
    def all_failed(self) -> bool:
        return 0 < self.rows == self.errors

    @property
    def never_applied(self) -> bool:
        """Whether the system could not do its work on any row that did not fail."""
        return 0 < self.not_applied.total() == self.rows - self.errors

    def explain_not_applied(self) -> str:
        """Say on how many rows the system could not do its work, and why; "" for none."""
        shown = [
            f"on {count:,} of {self.rows:,} rows: {why}" for why, count in self.not_applied.most_common(_MAX_SHOWN)
        ]
        return f"not applied {'; '.join(shown)}" if shown else ""

    def explain_unjudged(self) -> str:
        """Say how many answers the judge did not rate, and why."""
        shown = [f"{why} ({count:,} rows)" for why, count in self.unjudged.most_common(_MAX_SHOWN)]
        return f"the judge did not rate {self.unjudged.total():,} of {self.rows:,} answers: {'; '.join(shown)}"

    @property
    def nothing_scored(self) -> bool:
        """Whether some rows succeeded and none of these rows has the score."""
        return self.unscored > 0 and self.errors + self.unscored == self.rows

    @property
    def needs_reader(self) -> bool:
        """Whether no row has the score because the system returns contexts and the score judges answers."""
        return bool(self.causes) and all(cause.endswith(NOT_AN_ANSWER) for cause in self.causes)

    def explain(self) -> str:
        """Explain in one sentence why no row has the score."""
        if self.needs_reader:
            return "this score needs a model's answer (--reader URL)"
        shown = [f"{cause} ({count:,} rows)" for cause, count in self.causes.most_common(_MAX_SHOWN)]
        more = len(self.causes) - len(shown)
        if more > 0:
            shown.append(f"and {more} more reasons")
        if self.score_keys:
            keys = ", ".join(sorted(self.score_keys))
            shown.append(f"choose another score with score_field (--score-field): {keys}")
        return "; ".join(shown) or "no evaluator applies"


def add_caveats(
    name: str,
    values: dict[str, float],
    notes: dict[str, str],
    census: Census,
    datasets: Mapping[str, Census],
    config: Mapping[str, Any],
) -> None:
    """Set values that mean nothing for a system to NaN, and add notes to other values that need one."""
    settings = read_settings(config)
    _explain_missing_scores(values, notes, census, datasets)
    if len(census.kinds) > 1 and settings.score_field == "score":
        for key in [key for key in values if get_number(key).from_scores]:
            values[key], notes[key] = math.nan, f"not measured: {_BOTH_KINDS}"
    _judge_compression(name, values, notes, census, config)
    _note_bounds(values, notes)
    if census.unjudged and JUDGE_SCORE in values:
        measured = "" if not math.isnan(values[JUDGE_SCORE]) else "not measured: "
        notes[JUDGE_SCORE] = f"{measured}{census.explain_unjudged()}"
    stopped = settings.stopped_systems.get(name)
    if stopped and MEAN_SCORE in values:
        notes[MEAN_SCORE] = f"stopped after its first request: {stopped}"
    elif census.empty and MEAN_SCORE in values:
        notes[MEAN_SCORE] = f"{census.empty:,} of {census.rows:,} answers were empty"
    elif census.all_failed and MEAN_SCORE in values:
        notes[MEAN_SCORE] = "all failed: every row is an error and counts as 0"
    elif MEAN_SCORE in values and (unlike := _unlike_scores(config, unread=census.unread)):
        notes.setdefault(MEAN_SCORE, f"a mean of different scores: {unlike}")
    if census.not_applicable and not census.nothing_scored and MEAN_SCORE in values:
        notes.setdefault(MEAN_SCORE, f"{census.not_applicable:,} of {census.rows:,} unscored: {NOT_IN_CONTEXT}")
    if census.all_failed and values.get(COST_PER_1K_USD) == 0:
        values[COST_PER_1K_USD], notes[COST_PER_1K_USD] = math.nan, "not measured: no row succeeded"
    if census.not_applied:
        for key in (MEAN_SCORE, COMPRESSION_RATIO):
            if key in values and not math.isnan(values[key]):
                notes.setdefault(key, census.explain_not_applied())
    tagged = [f"{key}@{tag}" for key in _BY_THRESHOLD for tag in datasets]
    for key in () if census.unread else (*_BY_THRESHOLD, *tagged):
        if key in values and not math.isnan(values[key]) and (weak := _weak_threshold(key, config)):
            notes.setdefault(key, weak)


def _explain_missing_scores(
    values: Mapping[str, float], notes: dict[str, str], census: Census, datasets: Mapping[str, Census]
) -> None:
    for key in [key for key in notes if key in values and math.isnan(values[key])]:
        own = datasets.get(key.partition("@")[2] or key.removeprefix("dataset:"), census)
        if own.nothing_scored and "score" in notes[key]:
            notes[key] = f"{'not measured:' if own.needs_reader else f'{notes[key]};'} {own.explain()}"


def _judge_compression(
    name: str, values: dict[str, float], notes: dict[str, str], census: Census, config: Mapping[str, Any]
) -> None:
    """Explain or drop compression ratios of answers: the ratio compares contexts."""
    settings = read_settings(config)
    if "response" not in census.outputs:
        return
    elsewhere = name in settings.sends_elsewhere
    for key in [key for key in values if key.partition("@")[0] == COMPRESSION_RATIO]:
        if math.isnan(values[key]):
            continue
        if elsewhere:
            values[key] = math.nan
            tapped = name in settings.reports
            notes[key] = "not measured: " + (
                "for a proxy, prompt_savings measures the compression"
                if PROMPT_SAVINGS in values
                else notes.get(PROMPT_SAVINGS, "the tap could not count any request of this proxy")
                if tapped
                else "a proxy's compression can only be measured with --tap"
            )
        else:
            notes[key] = f"{NO_CONTEXT}: the system returned no context, so its answer is compared with the input"
    if elsewhere and name not in settings.reports and not math.isnan(values.get(COST_OF_PASS, math.nan)):
        notes[COST_OF_PASS] = "counts only the tokens of replies; with --tap, also those that the model read"


def _note_bounds(values: dict[str, float], notes: dict[str, str]) -> None:
    """Add the best and worst case to numbers that leave out calls which could not be attributed."""
    for best in [key for key in values if key.startswith(_BOUNDED)]:
        key, worst = best.replace("_best", "", 1), best.replace("_best", "_worst", 1)
        values.setdefault(key, math.nan)
        known = "not measured" if math.isnan(values[key]) else "uncertain"
        between = f"from {values[worst]:.1%} to {values[best]:.1%}"
        said = f"{known}: some calls at the tap could not be attributed to it; the value lies {between}"
        notes[key] = f"{said}; {notes[key]}" if key in notes else said
    if "prompt_savings_worst" in values:
        for key in [key for key in values if key.startswith("prompt_savings@")]:
            notes.setdefault(
                key, "uncertain: some calls could not be attributed to it; the number for all datasets has bounds"
            )


def _unlike_scores(config: Mapping[str, Any], *, unread: bool) -> str:
    settings = read_settings(config)
    primary = settings.context_primary if unread else settings.primary
    if settings.score_field != "score" or len(set(primary.values())) < 2:
        return ""
    return ", ".join(f"{field} for {tag or 'data without a tag'}" for tag, field in primary.items())


def _weak_threshold(key: str, config: Mapping[str, Any]) -> str:
    weak: Mapping[str, str] = read_settings(config).weak_thresholds
    tag = key.partition("@")[2]
    return "; ".join(f"{each}: {note}" for each, note in weak.items() if not tag or each == tag)


def explain_unranked(census: Census, cost_field: str, config: Mapping[str, Any]) -> str:
    """Say why a system cannot be ranked; "" if it can."""
    settings = read_settings(config)
    if census.all_failed:
        return "all failed"
    if census.nothing_scored or not census.rows:
        return "nothing was scored"
    if census.never_applied:
        return census.explain_not_applied()
    weak = settings.weak_thresholds
    if weak and not census.unread and not settings.threshold_given and cost_field.endswith(COST_OF_PASS):
        return f"at the default threshold, the cost of a pass means little for {', '.join(weak)}; set --threshold"
    return ""


def find_unscored(
    numbers: Mapping[str, Mapping[str, float]], notes: Mapping[str, Mapping[str, str]], config: Mapping[str, Any]
) -> list[str]:
    """Return a sentence for each dataset without a score, if it has gold or a score was requested by name.

    Systems with the same cause share a sentence.
    """
    settings = read_settings(config)
    if settings.evaluators is not None and not settings.evaluators:
        return []  # the run was set to score nothing
    found: dict[tuple[str, str], list[str]] = {}
    gold: Mapping[str, bool] = settings.gold
    asked = settings.score_field != "score"
    unread = settings.unread
    for name, values in numbers.items():
        tags = [tag for tag in gold if f"{NUM_EXAMPLES}@{tag or 'unknown'}" in values] or list(gold)[:1]
        for tag in tags:
            at = f"@{tag or 'unknown'}" if len(gold) > 1 else ""
            rows, errors, unscored = (values.get(f"{key}{at}", 0.0) for key in (NUM_EXAMPLES, NUM_ERRORS, NUM_UNSCORED))
            if unscored and errors + unscored == rows and (gold[tag] or asked):
                said = (notes.get(name, {}).get(key) for key in (f"dataset:{tag}", f"{PASS_RATE}{at}", MEAN_SCORE))
                cause = next((note for note in said if note), None)
                if cause is None:
                    continue  # no number depends on scores
                # contexts that no model read and that lack the gold answer have only tokens and times
                if asked or name not in unread or f"{NOT_IN_CONTEXT} ({unscored:.0f} rows)" not in cause:
                    found.setdefault((tag, cause.removeprefix("not measured: ")), []).append(name)
    unjudged: dict[str, list[str]] = {}
    for name, values in numbers.items():
        if math.isnan(values.get(JUDGE_SCORE, 0.0)) and (why := notes.get(name, {}).get(JUDGE_SCORE)):
            unjudged.setdefault(why.removeprefix("not measured: "), []).append(name)
    return [f"no judge score for {', '.join(names)}: {why}" for why, names in unjudged.items()] + [
        f"nothing{f' in {tag}' if tag else ''} could be scored for {', '.join(names)}: {cause}"
        for (tag, cause), names in found.items()
    ]
