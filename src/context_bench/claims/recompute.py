"""Recomputation of a bundle's rows: scores from replies and golds, token counts from texts and recorded requests.

It uses the same code as the run. An evaluator that asks a model, runs programs, is unknown here or has another version
is not used: its scores are taken as recorded, and the result says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import orjson

from context_bench.claims.bundle import withhold_texts
from context_bench.claims.replays import Sessions
from context_bench.claims.texts import read_flag
from context_bench.core.call import Outcome
from context_bench.core.examples import BY_FIELD, Item
from context_bench.core.judge import Judgement, Scorer
from context_bench.core.row import Job, RowMaker
from context_bench.datasets.catalog import card_for
from context_bench.datasets.joined import FieldCounts
from context_bench.errors import ContextBenchError, UsageError
from context_bench.evaluators import CodeExecution
from context_bench.pricing import Price, Prices
from context_bench.registry import import_object, registry
from context_bench.results import EvalRow, Scores
from context_bench.settings import RunSettings, read_settings
from context_bench.systems.chat import OpenAIProxy
from context_bench.systems.with_reader import WithReader
from context_bench.text import dump_json
from context_bench.traffic.row_facts import RowFacts, count_request
from context_bench.traits import find_model, find_score_fields, scores_asynchronously
from context_bench.types import Example
from context_bench.utils.tokens import Tokenizer, get_tokenizer

TOLERANCE, TINY = 1e-9, 1e-13  # relative and absolute tolerance for another order of addition

_MEMORY_EVALUATORS = {
    "memory-retrieval": "context_bench.memory.scoring:MemoryRetrieval",
    "longmemeval-retrieval": "context_bench.memory.scoring:LongMemEvalRetrieval",
    "abstention": "context_bench.memory.scoring:Abstention",
    "memory-choice": "context_bench.memory.scoring:MemoryChoice",
    "locomo": "context_bench.memory.scoring:LocomoScore",
    "memory-probes": "context_bench.memory.probes:MemoryProbes",
}
_INPUTS = frozenset({"judge_cost_usd", "timed_out_cost_usd"})
"""Metadata from calls that the bundle does not contain."""
_SEEN = frozenset(each.name for each in fields(RowFacts))
"""Metadata from a tap, derived from the recorded requests."""
_UNREACHABLE = "http://127.0.0.1:9"  # no request is sent there


class AsRecorded:
    """Replacement for an evaluator that cannot be used: it returns the recorded scores."""

    def __init__(self, name: str, fields: Sequence[str] | None, others: set[str]) -> None:
        self.name, self.fields, self.others = name, fields, others
        self.row: EvalRow | None = None

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:  # noqa: ARG002 - a Protocol's
        assert self.row is not None
        scores = self.row.scores
        keys = [key for key in scores if key not in self.others] if self.fields is None else self.fields
        return Scores({key: scores[key] for key in keys if key in scores}, reason=self.row.unscored.get(self.name))


class RecordedSystem:
    """A system of a recorded run: its name and its model."""

    def __init__(self, name: str, model: str | None) -> None:
        self.name, self.model = name, model

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError(f"{self.name} must not be called again: {example.get('id')}")


class Recomputer:
    """Recomputer of the rows of a recorded run.

    Args:
        config: Record of the run.
        counted: Numbers of examples in the bundle, by dataset and by the fields that decide about scores.
        sessions: Recorded sessions of a replay.
        private: Whether long texts in the rows are hashes.

    Attributes:
        counted: Numbers of recomputed values, by kind.
        missing: Numbers of values that could not be recomputed, by reason.
    """

    def __init__(
        self, config: Mapping[str, Any], counted: FieldCounts, sessions: Sessions, *, private: bool = False
    ) -> None:
        self._sessions, self._private = sessions, private
        self.counted, self.missing = Counter[str](), Counter[str]()
        settings = read_settings(config)
        self._settings = settings
        self._recorded: dict[str, AsRecorded] = {}
        self._why: dict[str, str] = {}
        self._scorer = self._build_scorer(settings, counted)
        self._scorer.settle(counted)
        self._scorer.settle_as(settings.primary, settings.context_primary)
        self._count = _find_tokenizer(settings.tokenizer)
        models = settings.prices.get("models") or {}
        self._systems = {name: RecordedSystem(name, (models.get(name) or {}).get("model")) for name in settings.systems}
        self._maker = RowMaker(
            self._count or len,
            settings.text_fields,
            Prices({each["model"]: Price.from_dict(each["price"]) for each in models.values() if each.get("price")}),
            list(self._systems.values()),
            repeats=settings.repeats > 1,
        )
        self._readers: dict[str, WithReader] = {}

    def _build_scorer(self, settings: RunSettings, counted: FieldCounts) -> Scorer:
        how: dict[str, Any] = {"score_field": settings.score_field, "keep_reasoning": settings.keep_reasoning}
        names = list(settings.evaluators or ())
        plain = Scorer(**how)
        wired = {each.name for tag in settings.datasets for each in plain.evaluators_for(tag)}
        by_field = {
            BY_FIELD[field][0]
            for tag, found in counted
            if card_for(tag) is None
            for field in found
            if field in BY_FIELD
        }
        built = {name: self._build_evaluator(name, settings.evaluator_versions.get(name), how) for name in names}
        known = {key for each in built.values() if each is not None for key in find_score_fields(each) or ()}
        for name, evaluator in built.items():
            if evaluator is None or name in self._why:
                own = None if evaluator is None else find_score_fields(evaluator)
                self._recorded[name] = AsRecorded(name, own, {*known, "score"})
        made: dict[str, Any] = {name: self._recorded.get(name) or built[name] for name in names}
        if wired <= {*names}:
            extra = [made[name] for name in names if name not in wired | by_field]
            return Scorer(extra=extra, made=made, **how)
        return Scorer([made[name] for name in names], **how)

    def _build_evaluator(self, name: str, recorded: str | None, how: Mapping[str, Any]) -> Any:
        """Build an evaluator by its name; if it cannot be used, note the reason."""
        try:
            made = import_object(_MEMORY_EVALUATORS[name]) if name in _MEMORY_EVALUATORS else None
            evaluator: Any = (made or registry.get("evaluator", name))()
        except TypeError:
            self._why[name] = (
                f"the evaluator {name!r} has parameters that a bundle does not store, such as those of a judge"
            )
            return None
        except ContextBenchError:
            self._why[name] = f"the evaluator {name!r} is unknown here"
            return None
        if scores_asynchronously(evaluator) or find_model(evaluator):
            self._why[name] = f"the evaluator {name!r} asks a model"
        elif isinstance(evaluator, CodeExecution):
            self._why[name] = f"the evaluator {name!r} runs programs, which is not allowed for bundles"
        elif Scorer([], keep_reasoning=how["keep_reasoning"]).fingerprint(evaluator) != recorded:
            self._why[name] = f"the evaluator {name!r} has another version or other parameters here"
        return evaluator

    def check(self, row: EvalRow, item: Item, answer: Mapping[str, Any] | None) -> Iterator[str]:
        """Yield the differences between a row and its recomputation.

        Args:
            row: Recorded row.
            item: Its example.
            answer: Answer with its texts; for a failed row the tap's record, or None.
        """
        item.wiring = item.wiring or self._scorer.wire(item)
        if row.error is not None:
            yield from self._check_failure(row, item, answer)
            return
        if answer is None:
            yield "the row has neither an answer nor an error"
            return
        for each in self._recorded.values():
            each.row = row
        judgement = self._scorer.judge_at_once(item, answer["processed"], answer["metadata"])
        applied = {each.name for each in item.wiring.evaluators}
        for name in self._recorded.keys() & applied:
            if name not in row.unscored or self._recorded[name].score({}, {}):
                self.missing[f"scores: {self._why[name]}"] += 1
        if judgement.transient:
            self.missing["scores: an evaluator failed here"] += 1
        else:
            self.counted["scores"] += len(judgement.scores)
            yield from _compare("scores", judgement.scores, row.scores)
            made, recorded = (dict.fromkeys(each, "no score") for each in (judgement.unscored, row.unscored))
            yield from _compare("unscored", made, recorded)
            row.unscored.update(judgement.unscored)  # the reasons, in the words of this version
        outcome = Outcome(answer["processed"], dict(answer["metadata"]), answer["latency"], returns=answer["returns"])
        yield from self._check_counts(row, item, outcome, judgement)
        if self._count is not None:
            yield from self._check_memory(item.example, answer, row)
            if "replay" in row.metadata:
                yield from self._check_replay(item, answer, row, self._count)

    def _check_failure(self, row: EvalRow, item: Item, seen: Mapping[str, Any] | None) -> Iterator[str]:
        """Check that a failed row has no scores, and that its token counts match its requests."""
        yield from _compare("scores", {}, row.scores)
        if seen is None and not _SEEN.isdisjoint(row.metadata):
            self.missing["token counts of failed rows: their requests were not stored"] += 1
            return
        metadata = {key: value for key, value in row.metadata.items() if key not in _SEEN and key != "output"}
        processed = {} if seen is None else dict(seen["processed"])
        yield from self._check_counts(row, item, Outcome(processed, metadata, row.latency, row.error), Judgement())

    def _check_counts(self, row: EvalRow, item: Item, outcome: Outcome, judgement: Judgement) -> Iterator[str]:
        if self._count is None:
            self.missing["token counts: the tokenizer of the run is unknown here"] += 1
            return
        made = self._maker.row(Job(0, self._find_system(row, outcome), item, row.repeat), outcome, judgement)
        self.counted["token counts"] += 1
        if not self._settings.command and outcome.metadata.get("upstream") == "context":
            sent = row.metadata.get("sent_tokens")  # a reader in Python may have another prompt
            if (made.upstream_tokens, made.metadata.get("sent_tokens")) != (row.upstream_tokens, sent):
                self.missing["tokens sent to a reader: its prompt is not recorded for a run in Python"] += 1
                made.upstream_tokens, made.metadata["sent_tokens"] = row.upstream_tokens, sent
        for name in ("input_tokens", "output_tokens", "upstream_tokens", "latency"):
            yield from _compare(name, getattr(made, name), getattr(row, name))
        left_out = _INPUTS | self._recorded.keys()
        facts, kept = (
            {key: value for key, value in each.metadata.items() if key not in left_out} for each in (made, row)
        )
        yield from self._compare_texts("metadata", facts, kept)
        row.metadata |= kept

    def _compare_texts(self, what: str, made: Any, recorded: Any) -> Iterator[str]:
        """Compare two values; if they are equal, add the texts that a private bundle withholds to the recorded one."""
        if not self._private:
            yield from _compare(what, made, recorded)
            return
        unlike = list(_compare(what, withhold_texts(made), withhold_texts(recorded)))
        yield from unlike
        if not unlike:
            recorded.update(made)

    def _check_memory(self, example: Example, answer: Mapping[str, Any], row: EvalRow) -> Iterator[str]:
        """Check the counts of tokens: those sent to the reader of a memory, and those with the whole history."""
        facts, context = row.metadata, answer["processed"].get("context")
        if "memory" not in example or "sent_tokens" not in facts or not isinstance(context, str):
            return
        assert self._count is not None
        reader = self._make_reader(row.system)
        around = sum(
            count_request(body, self._count) for body in reader.list_requests({**example, "context": ""}, [""])
        )
        yield from _compare("upstream_tokens", around + self._count(context), row.upstream_tokens)
        yield from _compare("sent_tokens", around + example["memory"]["history_tokens"], facts["sent_tokens"])

    def _check_replay(self, item: Item, answer: Mapping[str, Any], row: EvalRow, count: Tokenizer) -> Iterator[str]:
        """Judge the forwarded requests of a recorded session again."""
        recorded, replayed = row.metadata["replay"], answer["processed"].get("replayed")
        made = None if replayed is None else self._sessions.judge(item.example, replayed, recorded["prices"], count)
        if made is None:
            self.missing["measurements of a replay: the bundle does not have the recorded session"] += 1
            return
        self.counted["replayed requests"] += made["requests"]
        yield from self._compare_texts("replay", orjson.loads(dump_json(made)), recorded)

    def _find_system(self, row: EvalRow, outcome: Outcome) -> Any:
        """Return a replacement for the system of a row; a reader builds the same messages as in the run."""
        if outcome.metadata.get("upstream") != "context":
            return self._systems.get(row.system) or RecordedSystem(row.system, None)
        return self._make_reader(row.system)

    def _make_reader(self, name: str) -> WithReader:
        if name not in self._readers:
            prompt = next(read_flag(self._settings, "--system-prompt"), None)
            reader = OpenAIProxy(_UNREACHABLE, model="recorded", system_prompt=prompt)
            self._readers[name] = WithReader(RecordedSystem(name, None), reader, name)
        return self._readers[name]


def _find_tokenizer(name: str | None) -> Tokenizer | None:
    try:
        return None if name is None else get_tokenizer(name)
    except UsageError:
        return None


def find_unlike(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each path where two JSON values differ, with both values; floats may differ by rounding."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys((*one, *other)):
            yield from find_unlike(one.get(key), other.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        for place, (first, second) in enumerate(zip(one, other)):
            yield from find_unlike(first, second, f"{path}[{place}]")
    elif not _are_equal(one, other):
        yield path, one, other


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float | int) and isinstance(other, float | int):
        return one == other or math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TINY)
    return bool(one == other)


def _compare(what: str, made: Any, recorded: Any) -> Iterator[str]:
    for path, one, other in find_unlike(made, recorded, what):
        yield f"{path} is {_show(other)}, recomputed {_show(one)}"


def _show(value: Any) -> str:
    text = f"{value:.10g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
