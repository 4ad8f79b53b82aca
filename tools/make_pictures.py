"""Make the pictures of the README from a run that was recorded: python tools/make_pictures.py [--record]

The same run gives the same pictures. With --record the run is measured again first: ten systems on four generated
datasets, with no key and no network, in about half a minute. It is kept without rows, as a few kilobytes of JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from context_bench import EvalResult, evaluate

IMAGES = Path(__file__).parent.parent / "docs" / "images"
RUN, PICTURE = IMAGES / "run.json", IMAGES / "pareto.svg"
SYSTEMS = (
    "passthrough",
    "minify",
    "bm25:ratio=0.01|0.02|0.05|0.2",
    "truncate:ratio=0.25|0.5|0.75",
    "random-drop:ratio=0.5",
)
DATASETS = tuple(f"{name}:length=4000,n=40" for name in ("needle", "multi-needle", "kv", "json-logs"))
_KEPT = ("datasets", "systems", "returns", "baseline", "controls", "score_field", "threshold", "seed")
"""What of the config says how the run was made; times and versions would differ from machine to machine."""
_NUMBERS = (
    *("num_examples", "macro_score", "mean_score", "mean_output_tokens", "compression_ratio", "dataset:"),
    *("pareto_front", "pareto_tokens_read"),
)
"""How the names of the numbers begin that are kept."""


def record() -> None:
    """Measure the run, and keep what does not depend on the machine."""
    result = evaluate(list(SYSTEMS), list(DATASETS), progress=False)
    document = {
        "summary": _keep_numbers(result.summary),
        "intervals": _keep_numbers(result.describe_accuracy()["intervals"]),
        "config": {key: result.config[key] for key in _KEPT if key in result.config},
        "rows": [],
    }
    RUN.write_text(json.dumps(document, allow_nan=False) + "\n", encoding="utf-8")


def _keep_numbers(values: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {key: value for key, value in own.items() if key.startswith(_NUMBERS)} for name, own in values.items()
    }


def main(arguments: Sequence[str]) -> int:
    """Make the pictures."""
    if "--record" in arguments:
        record()
    path = EvalResult.from_json(RUN.read_bytes()).plot.pareto().save(PICTURE)
    print(f"wrote {path} ({path.stat().st_size:,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
