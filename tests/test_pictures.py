"""The picture of the README is that of the run that was recorded for it."""

from __future__ import annotations

import re

from context_bench import EvalResult
from pages import ROOT

IMAGES = ROOT / "docs" / "images"


def test_the_picture_is_that_of_the_recorded_run() -> None:
    result = EvalResult.from_json((IMAGES / "run.json").read_bytes())
    plot = result.plot.pareto()
    committed = (IMAGES / "pareto.svg").read_text(encoding="utf-8")
    assert plot.to_svg() == committed
    for name in result.systems:
        assert name in committed


def test_the_readme_shows_it_after_its_strongest_evidence_and_it_is_small() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (about,) = re.findall(r"!\[([^\]]+)\]\(docs/images/pareto\.svg\)", readme)
    assert readme.index("## Claimed and counted savings") < readme.index("pareto.svg")
    assert readme.index("pareto.svg") < readme.index("## Install")
    assert (IMAGES / "pareto.svg").stat().st_size < 40_000
    assert (IMAGES / "run.json").stat().st_size < 40_000
    # what the picture is said to show: at a fortieth of the tokens, bm25 keeps nearly all
    result = EvalResult.from_json((IMAGES / "run.json").read_bytes())
    bm25, whole = result.summary["bm25:ratio=0.02"], result.summary["passthrough"]
    assert "a fortieth of the tokens" in about
    assert bm25["mean_output_tokens"] < whole["mean_output_tokens"] / 40
    assert bm25["macro_score"] > 0.95
