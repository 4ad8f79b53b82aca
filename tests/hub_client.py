"""Processes that read from a hub on loopback, each with a cache of its own and nobody logged in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LOADING = """
import json, sys
from context_bench.datasets.public import load
from context_bench.errors import UsageError
for case in json.loads(sys.argv[1]):
    try:
        dataset = load(**case)
        print(json.dumps({"ids": [example["id"] for example in dataset], "source": dict(dataset.source)}))
    except UsageError as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
"""

READING = """
import json, sys
from itertools import islice
from context_bench.datasets.catalog import read_card
from context_bench.datasets.public.fetch import open_records
from context_bench.errors import UsageError
facts = {"summary": "X.", "adapter": "qa:squad", "evaluators": [], "primary": "f1", "licence": "MIT"}
for case in json.loads(sys.argv[1]):
    card = read_card("toy", "qa", {**facts, "configs": {"main": {"split": "test", **case}}})
    n = case.pop("size", None)
    try:
        records = [record for _, record in islice(open_records(card, card.config()), n)]
        print(json.dumps({"records": records}))
    except UsageError as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
"""


def environment(url: str, home: Path) -> dict[str, str]:
    """A client of that hub alone."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "CONTEXT_BENCH"))}
    return {**kept, "HF_ENDPOINT": url, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}


def bench(url: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line as a user has it."""
    command = [sys.executable, "-m", "context_bench", *arguments]
    return subprocess.run(
        command, env=environment(url, home), cwd=home, capture_output=True, text=True, timeout=100, check=False
    )


def loaded(url: str, home: Path, *cases: dict[str, Any], code: str = LOADING) -> list[dict[str, Any]]:
    """What loading public datasets gave, each with these arguments: ids and source, or the error."""
    command = [sys.executable, "-W", "error", "-c", code, json.dumps(cases)]
    done = subprocess.run(
        command, env=environment(url, home), cwd=home, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def records(url: str, home: Path, *cases: dict[str, Any]) -> list[dict[str, Any]]:
    """The raw records of configurations, of each its first `size`; or the error."""
    return loaded(url, home, *cases, code=READING)
