"""Records of BFCL whose context is a list of functions, as a published benchmark of compressors uses them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def load_functions() -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Load the records whose context is a list of functions, each with the names of the functions to call, if given."""
    folder = Path(os.environ.get("CONTEXT_BENCH_DATA", "")) / "bfcl-live"
    if not os.environ.get("CONTEXT_BENCH_DATA") or not folder.is_dir():
        pytest.skip("CONTEXT_BENCH_DATA has no bfcl-live")
    lines = [line for path in folder.glob("possible_answer/*.json") for line in path.read_text().splitlines()]
    golds = {record["id"]: record["ground_truth"] for record in map(json.loads, lines)}
    for path in sorted(folder.glob("*.json")):
        for record in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            gold = golds.get(record["id"])
            named = {name for each in gold for name in each} if gold and isinstance(gold[0], dict) else set()
            context = json.dumps(record["function"], indent=2)
            example = {"id": f"{path.name} {record['id']}", "context": context, "question": str(record["question"])}
            yield {**example, "answer": record["function"][0]["name"]}, sorted(named)
