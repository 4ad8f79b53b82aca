"""Every evaluator on a bank of answers, and every metric on rows made by hand."""

from __future__ import annotations

import inspect
import math
from typing import Any

from corpus.bench import Bench, recorded_run

ELSEWHERE = {"llm-judge", "code-execution"}
"""One asks a server, the other runs code: runs of their own have them."""
TEXT = "Paris is the capital of France. The tower was built in 1889 and is 330 m tall. It does not rain."
TASKS: tuple[dict[str, Any], ...] = (
    {"question": "What is the capital?", "answer": "Paris", "evidence": ["Paris is the capital of France."]},
    {"question": "How tall?", "answer": ["330 m", "330 metres"], "evidence": ["The tower was built in 1889 and is 330 m tall."]},
    {"question": "What is 2/4?", "answer": "1/2"},
    {"question": "Which?", "choices": ["Rome", "Paris", "Oslo", "Bonn"], "answer": "B", "correct_letter": "B"},
    {"question": "Does it follow?", "answer": "entailment"},
    {"question": "Does it follow?", "answer": "contradiction"},
    {"question": "Sum up.", "answer": "Paris has a tall tower.", "reference": "Paris has a tall tower."},
    {"question": "Call it.", "answer": '[{"name": "look", "arguments": {"city": "Paris", "n": 2}}]', "tools": [{"name": "look", "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}}}], "expected_calls": [{"name": "look", "arguments": {"city": ["Paris"], "n": [2]}}]},
    {"question": "Fix it.", "answer": "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n", "meta": {"prefix": "ab12", "metric": "contains", "task": "passkey"}},
    {"question": "No commas.", "answer": "", "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"], "kwargs": [{}, {"relation": "at least", "num_words": 3}], "meta": {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}},
    {"question": "Which documents?", "answer": "Paris", "documents": [{"id": "a", "text": "Rome"}, {"id": "b", "text": "Paris"}], "relevant_ids": ["b"]},
    {"question": "Order", "answer": "False", "meta": {"task": "boolean_expressions"}},
    {"question": "Nothing is known."},
)  # fmt: skip
REPLIES: tuple[str, ...] = (
    "Paris",
    "The answer is Paris.",
    "paris, the capital of france!",
    "Rome",
    "",
    "330 m",
    "It is 330 metres tall",
    "0.5",
    r"So \boxed{\frac{1}{2}}",
    "B",
    "(B) Paris",
    "The answer is A or B",
    "entailment",
    "It is not an entailment but a contradiction.",
    "Paris has a tall tower.",
    "A tower stands in Paris, it is tall.",
    '[{"name": "look", "arguments": {"city": "Paris", "n": 2}}]',
    'look(city="Paris", n=2)',
    "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+c\n--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-a\n+c\n",
    "ab12 Paris",
    "<think>Rome?</think>Paris",
    "False",
    "I cannot answer that.",
    "one two three four",
)


@recorded_run("evaluators")
def _(bench: Bench) -> None:
    from context_bench.registry import registry

    for name in registry.list("evaluator"):
        if name in ELSEWHERE:
            continue
        evaluator = registry.get("evaluator", name)()
        scores: list[Any] = []
        for number, task in enumerate(TASKS):
            original = {"id": f"t{number}", "context": TEXT, **task}
            outputs = [{**original, "response": text} for text in REPLIES]
            outputs += [
                {**original, "context": TEXT[:40]},
                {"context": "Paris"},
                {"documents": [{"id": "b", "text": "Paris"}]},
            ]
            scores.append([_score(evaluator, original, output) for output in outputs])
        bench.keep(name, scores)


def _score(evaluator: Any, original: dict[str, Any], output: dict[str, Any]) -> Any:
    try:
        return dict(evaluator.score(original, output))
    except Exception as failure:  # what it says of an answer that it cannot read is part of the corpus
        return f"{type(failure).__name__}: {failure}"


@recorded_run("code that is run")
def _(bench: Bench) -> None:
    from context_bench.registry import registry

    evaluator = registry.get("evaluator", "code-execution")(sandbox="none")
    task = {"id": 1, "context": "def add(a, b):\n", "question": "Add.", "entry_point": "add", "test": "def check(f):\n    assert f(1, 2) == 3\n", "answer": "    return a + b\n"}  # fmt: skip
    for reply in (
        "    return a + b\n",
        "    return a - b\n",
        "```python\ndef add(a, b):\n    return a + b\n```",
        "nothing",
        "",
    ):
        bench.keep(reply, _score(evaluator, task, {**task, "response": reply}))


def make_rows(system: str, shift: int) -> list[Any]:
    """Rows of one system, with errors, unscored ones, prices and what a tap saw."""
    from context_bench.results import EvalRow

    rows = []
    for number in range(24):
        score = ((number * 7 + shift) % 11) / 10
        sent, read = 400 + number, 300 + 3 * number - shift
        metadata: dict[str, Any] = {
            "api_usage": {"prompt_tokens": read, "completion_tokens": 5 + number % 3},
            "cost_usd": 0.001 * (number + 1),
            "sent_tokens": sent,
            "upstream_tokens": read,
            "upstream_calls": 1 + number % 2,
            "question_type": ("one", "two")[number % 2],
            "card_threshold": 0.5,
        }
        row = EvalRow(
            system=system,
            example_id=number,
            scores={} if number == 5 else {"score": score, "f1": score / 2, "evidence_survived": float(number % 3 > 0)},
            input_tokens=sent,
            output_tokens=read,
            metadata=metadata,
            latency=0.01 * (number + 1),
            dataset=("a", "b", "")[number % 3],
        )
        if number == 7:
            row.error = "ValueError: no idea"
        rows.append(row)
    return rows


@recorded_run("metrics")
def _(bench: Bench) -> None:
    from context_bench.metrics.token_stats import ParetoRank
    from context_bench.registry import registry

    summary: dict[str, dict[str, float]] = {}
    for system, shift in (("one", 0), ("two", 3), ("three", 40)):
        rows = make_rows(system, shift)
        summary[system] = {}
        for name in registry.list("metric"):
            made = registry.get("metric", name)
            takes = inspect.signature(made).parameters
            for given in ({}, {"score_field": "f1"}, {"threshold": 0.3}):
                if not set(given) <= set(takes):
                    continue
                for chosen in (rows, rows[:1], []):
                    numbers = _numbers(made(**given).compute(chosen))
                    bench.keep(
                        f"{name} {given} of {len(chosen)} rows of {system}",
                        [[key, str(v)] for key, v in numbers.items()],
                    )
                    if chosen is rows and not given:
                        summary[system].update(numbers)
    bench.keep("ranks", ParetoRank.rank_systems(summary, quality_field="mean_score", cost_field="cost_of_pass"))


def _numbers(computed: dict[str, float]) -> dict[str, float]:
    return {key: value if math.isinf(value) else float(f"{value:.12g}") for key, value in computed.items()}


@recorded_run("evaluate in Python")
def _(bench: Bench) -> None:
    import json

    from context_bench import evaluate
    from context_bench.evaluators import AnswerQuality, ContextRecall
    from context_bench.metrics import CompressionRatio, CostOfPass, MeanScore, PassRate, PerDatasetBreakdown

    class Keeps:
        name = "keeps"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {**example, "response": example["context"].split(".")[0]}

    class Drops:
        name = "drops"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            raise NotImplementedError

        async def aprocess(self, example: dict[str, Any]) -> dict[str, Any]:
            if example["id"] == 3:
                raise ValueError("no three")
            return {**example, "context": example["context"][:20], "response": "Paris"}

    data = [{"id": n, "context": TEXT, "dataset": "ab"[n % 2], **TASKS[n % 2]} for n in range(8)]
    metrics = [
        MeanScore("f1"),
        PassRate(0.5, "f1"),
        CompressionRatio(),
        CostOfPass(0.5, "f1"),
        PerDatasetBreakdown("f1"),
    ]
    for workers in (1, 4):
        result = evaluate(
            systems=[Keeps(), Drops(), "passthrough"],
            dataset=data,
            evaluators=[AnswerQuality(), ContextRecall()],
            metrics=metrics,
            max_workers=workers,
            progress=False,
        )
        document = json.loads(result.to_json())
        document["rows"].sort(key=lambda row: (row["system"], row["example_id"]))
        document["config"].pop("systems", None)
        bench.keep(f"{workers} workers", document)
        bench.keep(f"notes with {workers} workers", result.notes)
