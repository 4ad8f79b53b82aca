"""The shape that the metrics share, and the keys that they give."""

from __future__ import annotations

import re

import pytest

from banks import each_case
from context_bench.metrics import default_metrics
from context_bench.metrics.running import PlaceholderTally, RunningMetric
from context_bench.registry import registry
from context_bench.tallies import list_keys, read_tally, start_tally
from context_bench.traits import list_by_dataset
from rows import make_row

# -- running


@each_case("name", registry.list("metric"))
def test_every_metric_of_ours_counts_row_by_row(name: str) -> None:
    metric = registry.get("metric", name)()
    assert isinstance(metric, RunningMetric)
    rows = [make_row(1.0), make_row(0.0), make_row(0.5)]
    tally = metric.start()
    for row in rows:
        tally.add(row)
    assert tally.result() == metric.compute(rows)
    assert metric.compute(rows) == metric.compute(rows)  # each starts anew


def test_all_that_a_run_computes_by_itself_are_of_that_shape() -> None:
    every = default_metrics(datasets=2, systems=2, tapped=True, controls=("floor",), judged=True)
    assert all(isinstance(metric, RunningMetric) for metric in every)


def test_a_metric_must_say_how_it_starts() -> None:
    class Halfway(RunningMetric):
        name = "halfway"

    with pytest.raises(TypeError, match="tally"):
        Halfway().start()


def test_what_compares_systems_counts_no_rows() -> None:
    tally = PlaceholderTally(pareto_rank=0.0)
    tally.add(make_row(1.0))
    assert tally.result() == {"pareto_rank": 0.0}
    assert PlaceholderTally().result() == {}


# -- keys


NAMES = sorted(set(registry.list("metric")) - {"by-type", "memory-costs", "probe-shares"})
FACTS = {
    **dict.fromkeys(("sent_tokens", "downstream_tokens", "billed_prompt_tokens", "claimed_tokens_saved"), 9),
    **dict.fromkeys(
        (
            "proxy_overhead",
            "first_token_overhead",
            "time_to_first_token",
            "cost_usd",
            "judge_cost_usd",
            "embedding_cost_usd",
        ),
        0.5,
    ),
    "timed_out_attempts": 1,
    "timed_out_cost_usd": 0.5,
    **dict.fromkeys(("prefix_stability", "first_message_changed", "rewritten_history", "untouched", "weight"), 1),
    **dict.fromkeys(("extra_upstream_calls", "lost_upstream_calls", "lost_upstream_tokens", "cached_answer"), 0),
    **dict.fromkeys(("answered_without_call", "cost_as_asked_usd"), 1),
    "billed_usage": [{"model": "n", "prompt_tokens": 3, "cached_tokens": 1}],
    "upstream_calls": 1,
    **dict.fromkeys(("uncached_cost_usd", "cache_adjusted_cost_usd"), 0.5),
    "embedding_usage": [{"model": "m", "prompt_tokens": 3}],
    "card_threshold": 0.5,
    "group": "g",
    "seed": 1,
}
UNKNOWN = {
    "sent_tokens": 9,
    "least_upstream_tokens": 3,
    "most_upstream_tokens": 9,
    "answer_unknown": "why",
    "untouched_at_best": True,
    "most_extra_upstream_calls": 2,
    "least_cost_usd": 0.1,
    "most_cost_usd": 0.2,
}


def _give(name: str) -> set[str]:
    """Every key that a metric gives for rows that tell all there is to tell, with two datasets."""
    metric = registry.get("metric", name)()
    tally = start_tally(metric)
    for tag in "ab":
        scores = {"score": 1.0, "f1": 1.0, "evidence_survived": 1.0}
        facts = {"input_tokens": 9, "output_tokens": 5, "upstream_tokens": 5, "metadata": FACTS}
        tally.add(make_row(dataset=tag, **{**facts, "scores": scores}))
        tally.add(make_row(1.0, dataset=tag, metadata=UNKNOWN, unscored={"evidence-survival": "why"}))
        changed = {"output": "context", "evidence_depth": [0.1, 0.2], "seed": 2}
        tally.add(make_row(1.0, dataset=tag, input_tokens=9, output_tokens=5, metadata=changed))
    keys = set(read_tally(tally, {"late_tokens": 1, "priced_by": {"model": "m"}})[0])
    return {re.sub(":[ab]$", ":{tag}", key) for key in keys}


@each_case("name", NAMES)
def test_a_metric_gives_no_key_that_it_does_not_tell(name: str) -> None:
    metric = registry.get("metric", name)()
    told = set(list_keys(metric) or ())
    assert told >= set(list_by_dataset(metric))
    assert _give(name) <= told
    if name not in ("retention", "pareto-rank", "official-score"):  # of systems that are compared; of one dataset
        assert _give(name) == told
