"""The rules that a part breaks, collected while a check uses the part; and the types of optional members."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from context_bench.errors import MissingExtra, describe
from context_bench.metrics import default_metrics
from context_bench.options import are_names, is_number
from context_bench.results import EvalResult, EvalRow
from context_bench.summary import describe_metric, summarize
from context_bench.types import Example


class ContractError(AssertionError):
    """A part breaks its contract; `broken` has a sentence for each rule."""

    def __init__(self, broken: Sequence[str]) -> None:
        super().__init__("\n".join(broken))
        self.broken = list(broken)


# -- optional members

Member = tuple[str, Callable[[Any], bool]]
"""The type that an optional member must have, in words, and a function that tests a value for this type."""


def _can_take(method: Any, count: int) -> bool:
    if not callable(method):
        return False
    try:
        inspect.signature(method).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # built in, with no signature to look at
        return True
    return True


def _are_formats(value: Any) -> bool:
    return isinstance(value, Mapping) and are_names([*value.keys(), *value.values()])


def _are_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and are_names([*value]) and all(map(is_number, value.values()))


_METHOD: Member = "a method", callable
_ACTION: Member = "a method without arguments", lambda value: _can_take(value, 0)
_PREPARE: Member = (
    "an `async def` method without arguments",
    lambda value: inspect.iscoroutinefunction(value) and _can_take(value, 0),
)
_SWITCH: Member = "True or False", lambda value: isinstance(value, bool)
_TEXT: Member = "a text or None", lambda value: value is None or isinstance(value, str)
_TEXTS: Member = "a tuple of texts", are_names

MEMBERS: dict[str, dict[str, Member]] = {
    "System": {
        **dict.fromkeys(("aprocess", "process_conversation", "aprocess_conversation"), _METHOD),
        "prepare": _PREPARE,
        "finish": _ACTION,
        "fingerprint": _TEXT,
        "reads_gold": _SWITCH,
        "edit": ("a method that takes the messages and the tools", lambda value: _can_take(value, 2)),
        "reads_any_api": _SWITCH,
        "breaks": _TEXTS,
        "sends_elsewhere": _SWITCH,
        "model": _TEXT,
        "resources": ("a dict of names and numbers", _are_numbers),
    },
    "Dataset": {"__len__": _ACTION},
    "Evaluator": {
        "score_fields": _TEXTS,
        "ascore": _METHOD,
        "slow": _SWITCH,
        "needs_answer": _SWITCH,
        "needs_context": _SWITCH,
        "model": _TEXT,
        "write_request": ("a method that takes the example and the answer", lambda value: _can_take(value, 2)),
        "version": ("a number or a text", lambda value: is_number(value) or isinstance(value, str)),
        "fingerprint": _TEXT,
        "prepare": _PREPARE,
        "finish": _ACTION,
    },
    "Metric": {
        "start": _ACTION,
        "by_dataset": _TEXTS,
        "keys": _TEXTS,
        "columns": ("a dict of keys and formats", _are_formats),
        "score_field": _TEXT,
        "threshold": ("a number or None", lambda value: value is None or is_number(value)),
    },
    "Tally": dict.fromkeys(("unmeasured", "notes", "intervals"), _ACTION),
    "Reporter": {"render_parts": ("a method that takes only the result", lambda value: _can_take(value, 1))},
}
"""The optional members that the docstring of each Protocol in `types.py` names, and the type of each."""

_ABSENT = object()


# -- rules


class ContractRules:
    """Uses a part as a run would, and collects the rules that it breaks; `part` includes the article: "a system"."""

    def __init__(self, part: str) -> None:
        self._part = part
        self.broken: list[str] = []

    def check(self, kept: bool, rule: str) -> None:
        sentence = f"{self._part} {rule}"
        if not kept and sentence not in self.broken:
            self.broken.append(sentence)

    def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Make a call as in a run, and return the result; None if the call raises, which breaks a rule."""
        try:
            return function(*arguments)
        except (MissingExtra, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises breaks the rule
            self.check(False, f"must not raise in {what} (it raised {describe(error)})")
            return None

    def call_twice(self, what: str, function: Callable[..., Any], *given: Any, left: str, same: str) -> Any:
        """Make the same call twice, as in a run: the call must not change its arguments, and must return the same
        again. `left` is the rule that changed arguments break, `same` the rule that a different result breaks.
        """
        before = copy.deepcopy(given)
        first = self.call(what, function, *given)
        self.check(given == before, left)
        if first is not None:
            again = self.call(f"{what} for the second time", function, *given)
            self.check(
                again == first or repr(again) == repr(first), same
            )  # numbers may be NaN, which is unequal to itself
        return first

    def take(self, adapt: Callable[[Any], Any], part: Any, kind: str) -> Any:
        """Accept a part as a run does, and check its name and optional members; raise ContractError if that fails."""
        adapted = self.call(f"being taken as {self._part}", adapt, part)
        if adapted is None:
            self.stop()
        self.check(isinstance(adapted.name, str) and bool(adapted.name), "must have a text as its `name`")
        self.check_members(part, kind)
        return adapted

    def check_members(self, part: Any, kind: str) -> None:
        for name, (what, holds) in MEMBERS.get(kind, {}).items():
            try:
                value = getattr(part, name, _ABSENT)
            except Exception as error:  # noqa: BLE001 - a property of somebody else's
                self.check(False, f"must have {what} as its `{name}` (it raised {describe(error)})")
                continue
            if value is not _ABSENT and not holds(value):
                self.check(False, f"must have {what} as its `{name}` (got {_show(value)})")

    def finish(self) -> None:
        if self.broken:
            self.stop()

    def stop(self) -> NoReturn:
        raise ContractError(self.broken)


def _show(value: Any) -> str:
    if inspect.isroutine(value):
        kind = "an `async def`" if inspect.iscoroutinefunction(value) else "a `def`"
        return kind if _can_take(value, 0) else f"{kind} that needs arguments"
    text = repr(value)
    return text if len(text) <= 80 else f"a {type(value).__name__}"


def sample_examples() -> list[Example]:
    """Return examples of every shape that a system may receive: prose, JSON, empty, documents, turns."""
    shapes: dict[str, Example] = {
        "prose": {"context": "Alice lives in Paris. Bob lives in Rome. Carol lives in Oslo.", "question": "Bob?"},
        "json": {"context": '[{"name": "Bob", "city": "Rome"}]\n' * 20, "question": "Where is Bob?"},
        "code": {"context": "def f(x):\n    if x:\n        return  1\n    return 2\n" * 10},
        "empty": {"context": ""},
        "blank": {"context": " \n\t\n "},
        "one long word": {"context": "x" * 5000},
        "scripts": {"context": "東京は首都です。नमस्ते 🍕 e\u0301 \u200b\u202e <|endoftext|>", "question": "東京?"},
        "surrogate": {"context": "half \ud800 a pair. And more."},
        "documents": {
            "context": "Paris\n\nRome",
            "question": "Rome?",
            "documents": [{"id": "a", "text": "Paris", "title": "A"}, {"id": "b", "text": "Rome", "title": None}],
        },
        "conversation": {
            "context": "user: Where is Bob?",
            "turns": [{"role": "system", "content": "Bob is in Rome."}, {"role": "user", "content": "Where is Bob?"}],
        },
    }
    gold = {"answer": "Rome", "answers": ["Rome"], "relevant_ids": ["b"], "evidence": ["Bob lives in Rome."]}
    return [{"id": name, "dataset": "samples", **gold, **shape} for name, shape in shapes.items()]


def sample_rows() -> list[EvalRow]:
    """Return rows of every kind that a metric may receive: scored, unscored and failed, of two datasets."""

    def row(number: int, score: float | None, error: str | None = None, **facts: Any) -> EvalRow:
        scores = {} if score is None else {"f1": score, "score": score}
        given: dict[str, Any] = {"input_tokens": 0, "output_tokens": 0, **facts}
        return EvalRow(system="sample", example_id=number, scores=scores, error=error, **given)

    return [
        row(1, 0.8, input_tokens=100, output_tokens=40, latency=0.5, dataset="a"),
        row(2, 0.2, input_tokens=50, output_tokens=60, latency=1.5, dataset="b"),
        row(3, None, input_tokens=10, output_tokens=10, latency=0.1),
        row(4, None, "TimedOut: no answer", input_tokens=7, latency=30.0, dataset="a"),
    ]


def sample_results() -> dict[str, EvalResult]:
    """Return results of every kind that a reporter may receive, by a description of each."""
    hostile = "a|b\n<script>\x1b[31m\u202e\ud800"
    mixed, failed = sample_rows(), [row for row in sample_rows() if row.error]
    strange = EvalRow(hostile, hostile, {"score": 1.0}, 10, 5, dataset=hostile, response=hostile)
    two = [*mixed, EvalRow("other", 1, {"score": 0.0}, 10, 5, dataset="a")]
    kinds = {"no rows": [], "one system": mixed, "two systems": two, "only errors": failed, "strange names": [strange]}
    return {kind: _make_result(rows) for kind, rows in kinds.items()}


def _make_result(rows: list[EvalRow]) -> EvalResult:
    names = list(dict.fromkeys(row.system for row in rows))
    metrics = default_metrics(datasets=2, systems=len(names))
    config = {"metrics": [describe_metric(metric) for metric in metrics], "score_field": "score"}
    summary = summarize(rows, names, metrics)
    return EvalResult.from_summary(rows, summary, config, metrics, dict.fromkeys(names, 1.0))


def sample_pairs() -> list[tuple[Example, Example]]:
    """Return pairs of an example and a system's output, as an evaluator may receive them."""
    pairs = []
    for original in sample_examples():
        for response in ("Rome", "London", "", " \n ", "word " * 500, "東京 \u202e \x00", "\ud800"):
            pairs.append((original, {"response": response}))  # noqa: PERF401 - two lists in one
        pairs.append((original, {"response": original["context"], "context": original["context"]}))
    return [*pairs, ({"id": 1, "context": "text"}, {"response": "text", "context": "text"})]
