"""`json-logs`: a fact inside a tool's output, which is what agent proxies compress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from context_bench.datasets.synthetic.draw import (
    Draw,
    check_cell,
    check_choice,
    check_share,
    choose_depth,
    write_depth_tag,
)
from context_bench.datasets.synthetic.fit import Fact, ToolOutput, assemble
from context_bench.datasets.synthetic.tool_code import tool_code
from context_bench.datasets.synthetic.tool_json import tool_json
from context_bench.datasets.synthetic.tool_logs import tool_logs

FLOOR = 100
KINDS: dict[str, Callable[[Draw, int, int], ToolOutput]] = {
    "json": tool_json,
    "logs": tool_logs,
    "code": tool_code,
}


def json_logs(
    *, length: int = 4000, depth: float | None = None, n: int = 20, seed: int = 0, kind: str = "mixed"
) -> Iterator[dict[str, Any]]:
    """Yield examples that ask for one fact in JSON records, log lines or source code, with `framing` "tool".

    The other records, lines and constants hold facts of the same form about other names. JSON parses as JSON and
    code as Python.

    Args:
        length: tokens (cl100k_base) of each context; never exceeded, and met within 2%.
        depth: where the fact stands, from 0 (start) to 1 (end); None spreads the examples evenly over 0 to 1.
        n: how many examples.
        seed: the same seed gives the same bytes.
        kind: json, logs, code, or mixed, which takes them in turn.
    """
    check_cell(length, FLOOR, n, seed, what="a tool's output")
    check_share("depth", depth)
    check_choice("kind", kind, (*KINDS, "mixed"))
    return (_make_example(length, depth, index, n, seed, kind) for index in range(n))


def _make_example(length: int, depth: float | None, index: int, n: int, seed: int, kind: str) -> dict[str, Any]:
    asked = choose_depth(depth, index, n)
    draw = Draw("json-logs", kind, length, asked, seed, index)
    # The variant (JSON's layout, say) goes round at its own pace, so that every kind sees all of its variants.
    actual, variant = (list(KINDS)[index % 3], index // 3) if kind == "mixed" else (kind, index)
    tool = KINDS[actual](draw, length, variant)
    built = assemble(length, [Fact(tool.unit, tool.evidence, asked)], tool.stock)
    return {
        "id": f"json-logs-{kind}-{length}-{write_depth_tag(depth, index, n)}-s{seed}-{index:03d}",
        "context": built.context,
        "question": tool.question,
        "answer": tool.answer,
        "answers": [tool.answer],
        "evidence": built.evidence,
        "framing": "tool",
        "dataset": "json-logs",
        "meta": {
            "length": length,
            "depth": built.depths[0],
            "asked_depth": asked,
            "seed": seed,
            "kind": actual,
            "layout": tool.layout,
        },
    }
