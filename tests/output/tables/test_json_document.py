"""The JSON document: strict, whole, and read back as it was."""

from __future__ import annotations

import json
import math
from typing import Any

from context_bench import EvalResult, EvalRow, evaluate
from context_bench.reporters import JsonReporter


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_a_result_with_everything_that_json_cannot_say() -> None:
    row = EvalRow(
        "s\ud800",
        2**70,
        {"nan": math.nan, "inf": math.inf},
        1,
        1,
        {"set": {1}, "bytes": b"x", "object": object(), 5: "number key", None: "none key"},
        response="\ud800\x00\u2028</script>",
        error="é\x1b",
    )
    summary = {"s": {"cost_of_pass": math.inf, "mean_score": math.nan}}
    text = JsonReporter().render(EvalResult([row], summary, {"s": math.inf}, {"x": -math.inf}))
    document = strict(text)
    assert document["summary"]["s"] == {"cost_of_pass": None, "mean_score": None}
    assert document["rows"][0]["scores"] == {"nan": None, "inf": None}
    assert text.endswith("}\n")


def test_what_is_written_is_read_back() -> None:
    given = [{"id": 1, "context": "a b c", "answer": "a"}, {"id": "1", "context": "d", "answer": "e"}]

    def half(example: dict[str, Any]) -> str:
        if example["id"] == "1":
            raise ValueError("no")
        return example["context"][:1]

    result = evaluate([half, lambda example: "x"], given)
    back = EvalResult.from_json(JsonReporter().render(result))
    assert back.rows == result.rows
    assert back.summary == result.summary
    assert back.timing == result.timing
    assert JsonReporter().render(back) == JsonReporter().render(result)


def test_the_keys_of_the_document() -> None:
    document = strict(JsonReporter().render(evaluate(lambda example: "", [{"id": 1, "context": ""}])))
    assert {"summary", "timing", "config", "rows"} <= document.keys()
    assert list(document["rows"][0])[:8] == [
        "system",
        "example_id",
        "scores",
        "input_tokens",
        "output_tokens",
        "metadata",
        "latency",
        "dataset",
    ]
