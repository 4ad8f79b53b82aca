"""Several runs side by side: the headline numbers of each system of each run, in one table."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.report.axes import section
from context_bench.report.elements import Markup, element
from context_bench.report.headline import compare_headlines
from context_bench.report.run_facts import RunFacts

__all__ = ["compare_runs"]


def compare_runs(runs: Sequence[RunFacts]) -> Markup:
    """Lay the headline numbers of several runs out beneath one another, system by system."""
    about = (
        "Systems of the same name stand together. A verdict is that of its own run, against the baseline there; "
        "`context-bench compare` tells whether two runs differ."
    )
    return section("side", "Side by side", compare_headlines(runs), element("p", {"class": "about"}, about))
