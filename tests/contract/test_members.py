"""A part is asked for what `types.py` documents, and for nothing else: other attributes are its author's own.

Each system, evaluator, metric and dataset here has attributes that our own parts use among themselves. A run with it
must give exactly what a run with a part without them gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench import evaluate
from context_bench.cli.output import write_report
from context_bench.pricing import Price, Prices
from context_bench.results import EvalResult, EvalRow
from context_bench.store import Store
from numbered import numbered


def _raises(*_: Any, **__: Any) -> Any:
    raise RuntimeError("this is nobody's business but its author's")


class Plain:
    """The second half of the context, which has the answer."""

    def __init__(self, name: str = "half") -> None:
        self.name = name
        self.fingerprint = "half/1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        return {"context": example["context"][len(example["context"]) // 2 :], "api_usage": usage}


class Asynchronous(Plain):
    """The same, awaited."""

    async def aprocess(self, example: dict[str, Any]) -> dict[str, Any]:
        return self.process(example)


PRIVATE = {
    "reader": object(),
    "tap": object(),
    "report": _raises,
    "unmatched": [object()],
    "own_client": True,
    "local": True,
    "competes": False,
    "parts": [object()],
    "label": "my label",
    "max_workers": "many",
    "stop_reason": _raises,
    "request_body": _raises,
    "list_requests": _raises,
    "model": object(),
    "system": object(),
    "secrets": 7,
    "argument": 3,
    "verbatim": True,
}
"""Names that our own systems use among themselves, with values that would break a run that looked at them."""


def _with(kind: type, attributes: dict[str, Any]) -> Any:
    """An instance of a class that has these attributes."""
    return type(kind.__name__, (kind,), dict(attributes))()


def _facts(result: EvalResult) -> dict[str, Any]:
    """Everything of a result that must not depend on such an attribute."""
    summary = {
        name: {key: repr(value) for key, value in values.items() if not key.startswith("latency")}
        for name, values in result.summary.items()
    }
    rows = [{**row.as_dict(), "latency": 0.0} for row in result.rows]
    kept = ("reports", "sends_elsewhere", "stopped", "stopped_systems", "metrics", "datasets", "primary")
    return {
        "summary": summary,
        "notes": result.notes,
        "rows": rows,
        "config": {key: result.config[key] for key in kept},
    }


@pytest.mark.parametrize("kind", [Plain, Asynchronous])
@pytest.mark.parametrize(
    "names",
    [[name] for name in PRIVATE] + [list(PRIVATE)],
    ids=lambda names: names[0] if len(names) == 1 else "all",
)
def test_an_attribute_of_a_users_system_means_nothing(kind: type, names: list[str], tmp_path: Path) -> None:
    def run(system: Any, folder: str) -> EvalResult:
        prices = Prices({"default": Price(1.0, 2.0)})
        with Store(tmp_path / folder) as store:
            return evaluate(
                [system, Plain("other")], numbered(1, 2, 3), progress=False, store=store, prices=prices, reuse=True
            )

    expected = _facts(run(kind(), "plain"))
    assert "pareto_rank" in expected["summary"]["half"]
    assert _facts(run(_with(kind, {name: PRIVATE[name] for name in names}), "own")) == expected


@pytest.mark.parametrize("kind", [Plain, Asynchronous])
def test_a_system_that_answers_to_every_name_is_a_plain_one(kind: type, tmp_path: Path) -> None:
    class Obliging(kind):  # type: ignore[misc]
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or name in ("aprocess", "prepare", "finish"):
                raise AttributeError(name)
            return _raises

    evaluate([Obliging(), Plain("other")], numbered(1, 2), progress=False, cache_dir=tmp_path)


def test_a_text_of_an_optional_member_that_is_no_method_is_ignored() -> None:
    class Odd(Plain):
        aprocess = process_conversation = aprocess_conversation = prepare = finish = "not a method"

    assert [row.error for row in evaluate(Odd(), numbered(1), progress=False).rows] == [None]


def test_methods_with_arguments_of_their_own_are_not_called() -> None:
    class Busy(Plain):
        def finish(self, path: Path) -> None:
            raise AssertionError

        async def prepare(self, path: Path) -> None:
            raise AssertionError

    assert [row.error for row in evaluate(Busy(), numbered(1), progress=False).rows] == [None]


class Length:
    """An evaluator."""

    name = "length"

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        return {"length": float(len(processed["response"]))}


@pytest.mark.parametrize(
    "attributes",
    [
        {"slow": object()},
        {"needs_answer": object()},
        {"score_fields": 5},
        {"ascore": None},
        {"parts": [object()]},
        {"reason": _raises, "details": 3, "transient": True, "label": 1},
    ],
    ids=lambda attributes: next(iter(attributes)),
)
def test_an_attribute_of_a_users_evaluator_means_nothing(attributes: dict[str, Any]) -> None:
    expected = _facts(evaluate(Plain(), numbered(1, 2), [Length()], progress=False))
    assert _facts(evaluate(Plain(), numbered(1, 2), [_with(Length, attributes)], progress=False)) == expected


class Count:
    """A metric."""

    name = "count"

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        return {"count": float(len(rows))}


@each_case(
    "attributes",
    [
        {"rank": _raises},
        {"compare": _raises},
        {"bound": _raises},
        {"start": 5},
        {"start": lambda self, path: _raises()},
        {"keys": lambda self: ["count"]},
        {"keys": ("other",)},
        {"by_dataset": True},
        {"by_dataset": ("count",)},
        {"columns": 7},
        {"score_field": 5},
        {"threshold": "high"},
        {"cost_field": object()},
        {"notes": ["mine"], "unmeasured": 1},
    ],
    ids=lambda attributes: next(iter(attributes)),
)
def test_an_attribute_of_a_users_metric_means_nothing(attributes: dict[str, Any]) -> None:
    def run(metric: Any) -> dict[str, Any]:
        data = [*numbered(1, 2, dataset="a"), *numbered(3, dataset="b")]
        result = evaluate([Plain(), Plain("other")], data, metrics=[metric], progress=False)
        assert result.to_json()
        return {key: value for key, value in result.summary["half"].items() if "@" not in key}

    assert run(_with(Count, attributes)) == run(Count())
    assert run(Count())["count"] == 3.0


class Shelf:
    """A dataset."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(numbered(1, 2))


@pytest.mark.parametrize(
    "attributes",
    [{"check": _raises}, {"checked": "yes"}, {"source": "the archive"}, {"parts": 3, "facts": _raises, "tags": 1}],
    ids=lambda attributes: next(iter(attributes)),
)
def test_an_attribute_of_a_users_dataset_means_nothing(attributes: dict[str, Any]) -> None:
    from context_bench.registry import register_dataset

    register_dataset("shelf", lambda: _with(Shelf, attributes))
    for given in (_with(Shelf, attributes), [_with(Shelf, attributes)], {"x": _with(Shelf, attributes)}, "shelf"):
        assert len(evaluate(Plain(), given, progress=False).rows) == 2


class Page:
    """A reporter whose `render_parts` is its own affair: it takes more than a result."""

    name = "page"

    def render(self, result: EvalResult) -> str:
        return f"{len(result.rows)} rows\n"

    def render_parts(self, result: EvalResult, columns: int) -> list[str]:
        raise AssertionError


def test_a_method_of_a_users_reporter_with_arguments_of_its_own_means_nothing() -> None:
    written: list[Any] = []
    write_report(written.append, Page(), "page", evaluate(Plain(), numbered(1, 2), progress=False))
    assert written == ["2 rows\n"]


# --- the one place that asks
