"""Every number of a summary, declared once for tables, page, plots, gates, stars and the docs reference.

To ship a number, declare it in `_DECLARED` and compute it in a metric. Code that needs a specific number uses its
constant (`MEAN_SCORE`), not the text of its key. A table shows its numbers in the order of their declaration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

# -- keys that code outside of their metric reads

NUM_EXAMPLES, NUM_ERRORS, ERROR_RATE, NUM_UNSCORED = "num_examples", "num_errors", "error_rate", "num_unscored"
COUNTS = (NUM_EXAMPLES, NUM_ERRORS, ERROR_RATE, NUM_UNSCORED)  # keys of every summary, also by dataset
MEAN_SCORE, MACRO_SCORE, PASS_RATE = "mean_score", "macro_score", "pass_rate"
JUDGE_SCORE = f"{MEAN_SCORE}:judge_score"  # the mean of a judge's scores, in a run with another primary score
COMPRESSION_RATIO, PROMPT_SAVINGS, COST_OF_PASS = "compression_ratio", "prompt_savings", "cost_of_pass"
UPSTREAM_COST_OF_PASS, COST_USD, COST_PER_1K_USD = "upstream_cost_of_pass", "cost_usd", "cost_per_1k_usd"
SAVED_PER_1K_USD, EMBEDDING_COST_USD = "saved_per_1k_usd", "embedding_cost_usd"
CACHE_HIT_RATE = "cache_hit_rate"
TIMED_OUT_COST_USD = "timed_out_cost_usd"
LATENCY_MEDIAN, PARETO_RANK, PARETO_FRONT = "latency_median", "pareto_rank", "pareto_front"
PARETO_COSTS = ("pareto_cost_usd", "pareto_tokens_read", "pareto_tokens_written")
"""Candidate costs of the front: the first that is known for most systems is used."""
EVIDENCE_SURVIVAL, RETRIEVAL_RECALL = "evidence_survival", "retrieval_recall"
MEAN_UPSTREAM_TOKENS, MEAN_OUTPUT_TOKENS = "mean_upstream_tokens", "mean_output_tokens"
PASS_AT_K = "pass_at_k"
BETWEEN_SYSTEMS = (PARETO_RANK, PARETO_FRONT, *PARETO_COSTS, SAVED_PER_1K_USD, "retention")
"""Numbers that depend on the other systems of a run; they change if some of these systems are left out."""
BRIEF = (NUM_EXAMPLES, MEAN_SCORE, PASS_RATE, COMPRESSION_RATIO, PROMPT_SAVINGS, COST_OF_PASS)
"""The numbers that `repr(result)` shows."""


def choose_score_key(datasets: int) -> str:
    """Choose the number that "score" means: with several datasets, each counts equally."""
    return MACRO_SCORE if datasets > 1 else MEAN_SCORE


def find_score_key(summary: Iterable[Mapping[str, float]]) -> str:
    """Find the number that "score" means in the summaries of a run's systems."""
    return MACRO_SCORE if any(MACRO_SCORE in values for values in summary) else MEAN_SCORE


def find_saved_key(values: Mapping[str, float]) -> str:
    """Find the number that "saved" stands for: by tokens that reached the model if measured, else by output tokens."""
    return PROMPT_SAVINGS if not math.isnan(values.get(PROMPT_SAVINGS, math.nan)) else COMPRESSION_RATIO


# -- how values are written


def score(value: float) -> str:
    """Write a score with three places."""
    return f"{value:.3f}"


def percent(value: float) -> str:
    """Write a share."""
    return f"{value:.1%}"


def tokens(value: float) -> str:
    """Write a number of tokens; infinity is the cost of a pass if nothing passed."""
    return "none passed" if math.isinf(value) else f"{value:,.0f}"


def dollars(value: float) -> str:
    """Write dollars: below $1, three significant digits and at least cents; below $0.0001, two digits."""
    if math.isinf(value):
        return "none passed"
    sign, size = "-" if value < 0 else "", abs(value)
    if size >= 0.9995 or size == 0:
        return f"{sign if size else ''}${size:,.2f}"
    if 1e-9 <= size < 1e-4:  # no exponents such as 6.4e-05 for money
        return f"{sign}${size:.{1 - math.floor(math.log10(size))}f}"
    shown = f"{size:.3g}" if size >= 1e-4 else f"{size:.1e}"
    return f"{sign}${size:.2f}" if len(shown) < len("0.00") else f"{sign}${shown}"


def seconds(value: float) -> str:
    """Write a time in a suitable unit."""
    if value >= 1:
        return f"{value:.2f} s"
    if value >= 1e-3:
        return f"{value * 1e3:.1f} ms"
    return f"{value * 1e6:.0f} µs" if value >= 1e-6 or value <= 0 else f"{value * 1e6:.1g} µs"


FORMATS: dict[str, Callable[[float], str]] = {
    "score": score,
    "share": percent,
    "tokens": tokens,
    "dollars": dollars,
    "seconds": seconds,
    "count": "{:,.0f}".format,
    **dict.fromkeys(("rows", "calls", "rank"), "{:.0f}".format),
    "calls each": "{:,.1f}".format,
    **dict.fromkeys(("ratio", ""), "{:.4g}".format),
    "bytes": lambda value: f"{value / 1024:,.0f} kB",
    "front": lambda value: "front" if value else "off",
}
"""The function that writes values of each unit."""

# -- the declarations


@dataclass(frozen=True)
class Number:
    """A number of a summary. `{tag}` in a key stands for the name of a dataset."""

    key: str  # its key in `result.summary[system]`
    title: str = ""  # the title of its column, and its name in texts
    unit: str = ""  # a key of `FORMATS`, which writes it
    metric: str = ""  # the metric that computes it; empty if the summary does
    table: str = ""  # its table; empty if only JSON has it
    # whether the highest or the lowest value of a column earns the star; empty for none
    better: Literal["", "more", "less"] = ""
    low: float = -math.inf  # its least possible value. A gate whose limit every value or none meets is refused.
    high: float = math.inf  # its greatest possible value
    rank: int = 1000  # columns with a low rank stay on a narrow terminal
    headline: bool = False  # the table shows its interval; other intervals are in JSON only
    by_dataset: bool = False  # also computed for each of several datasets, as `key@tag`
    dataset_title: str = ""  # the title of its own table by dataset; empty for none
    from_scores: bool = False  # computed from scores. Systems without a verdict get no star for it.
    by_threshold: bool = False  # shows the note of a dataset's card on an unsuitable threshold
    # a failed row counts as 0. Other numbers leave failed rows out, so failing on long examples looks cheap:
    # a system that fails more often than another gets no star for them.
    counts_failures: bool = False
    # `quality`: a gate is undecided if the examples can be answered without their context
    gate: Literal["", "quality"] = ""
    star_above: float = -math.inf  # the star needs a positive value: losing least is not saving
    hide_zero: bool = False  # the column is omitted if all values are 0
    wide: bool = False  # the column is shown with --wide only
    replaced_by: str = ""  # omitted if every system has this more informative number
    beside: str = ""  # a column that must precede it, as its title is short
    meaning: str = ""  # its meaning, for the docs reference

    @property
    def show(self) -> Callable[[float], str]:
        """Return the function that writes a value."""
        return FORMATS[self.unit]


TAP = "a tap (--tap, --start or --vendor) or --reader measures it"
NEEDS = {
    **dict.fromkeys(("prompt-savings", "upstream-tokens", "upstream-cost", "evidence-survival"), TAP),
    **dict.fromkeys(("proxy-overhead", "token-meters", "prefix-stability"), TAP),
    "first-token": "--stream measures it",
    "repeats": "--repeats K measures it",
    "seed-spread": "it needs systems that differ only by seed=, such as random-drop:seed=1|2|3",
    "retention": "--controls measures it",
    "per-dataset-breakdown": "it needs more than one --dataset",
    "pareto-rank": "it needs more than one system",
    "card-pass-rate": "no dataset here has a card that recommends a threshold",
    "official-score": "the official number of every dataset here is the mean of its rows",
}
"""What a run needs for the numbers of a metric; shown for a gate on a number that the run cannot have."""

SYSTEMS, TOKENS, CACHE, EVIDENCE = "systems", "tokens", "prompt cache", "evidence"
WRITING, RETRIEVAL, STORE = "memory costs", "retrieval", "store"  # the tables of numbers
FIRST_TURNS, FIRST_SESSIONS = "evidence among the first turns", "evidence among the first sessions"

# fmt: off
_DECLARED = (
    # the table of systems
    Number(NUM_EXAMPLES, "n", "count", table=SYSTEMS, rank=110, by_dataset=True, meaning="Rows of the system."),
    Number(NUM_ERRORS, "errors", "count", table=SYSTEMS, rank=30, hide_zero=True, by_dataset=True,
           meaning="Rows that failed."),
    Number(ERROR_RATE, "error rate", "share", low=0, high=1, by_dataset=True, meaning="Share of rows that failed."),
    Number(NUM_UNSCORED, "unscored", "count", table=SYSTEMS, rank=40, hide_zero=True, by_dataset=True,
           meaning="Rows without an error and without the score."),
    Number(MACRO_SCORE, "macro score", "score", "per-dataset-breakdown", SYSTEMS, "more", 0, 1, rank=10, headline=True,
           from_scores=True, counts_failures=True, gate="quality",
           meaning="Mean of the datasets' mean scores; datasets without a scored row are left out."),
    Number(MEAN_SCORE, "score", "score", "mean-score", SYSTEMS, "more", 0, 1, rank=20, headline=True,
           from_scores=True, counts_failures=True, gate="quality",
           meaning="Mean score. Failed rows count as 0, unscored rows are left out."),
    Number("official_score", "official", "score", "official-score", SYSTEMS, "more", rank=100,
           from_scores=True, counts_failures=True, gate="quality",
           meaning="The number that the benchmark's authors report, if it is not a mean of rows."),
    Number(PASS_RATE, "pass rate", "share", "pass-rate", SYSTEMS, "more", 0, 1, rank=90, headline=True,
           by_dataset=True, from_scores=True, by_threshold=True, counts_failures=True, gate="quality",
           meaning="Share of rows whose score reaches the threshold."),
    Number(JUDGE_SCORE, "judge score", "score", "mean-score", SYSTEMS, "more", rank=60, headline=True,
           from_scores=True, counts_failures=True, gate="quality",
           meaning="Mean score of the judge, in a run with another primary score."),
    Number("card_pass_rate", "card pass rate", "share", "card-pass-rate", SYSTEMS, "more", 0, 1, rank=280,
           by_dataset=True, from_scores=True, counts_failures=True, gate="quality",
           wide=True, meaning="Share of rows whose score reaches the threshold that the dataset's card recommends."),
    Number(PASS_AT_K, "pass@k", "share", "repeats", SYSTEMS, "more", 0, 1, rank=160, headline=True,
           by_dataset=True, from_scores=True, counts_failures=True,
           meaning="Share of examples with at least one passing answer of K."),
    Number("pass_all_k", "pass^k", "share", "repeats", SYSTEMS, "more", 0, 1, rank=170, headline=True,
           by_dataset=True, from_scores=True, counts_failures=True,
           wide=True, meaning="Share of examples for which all K answers pass."),
    Number("seed_spread", "seed sd", "score", "seed-spread", SYSTEMS, rank=165, headline=True,
           meaning="Standard deviation of the score over the seeds of a system."),
    Number("repeat_flips", "flips", "share", "repeats", SYSTEMS, "less", 0, 1, rank=180, headline=True,
           by_dataset=True, from_scores=True, counts_failures=True,
           wide=True, meaning="Of all pairs of answers to the same example, the share in which exactly one passes."),
    Number("repeat_variance_share", "repeat variance", "share", "repeats", SYSTEMS, rank=310, headline=True,
           by_dataset=True, wide=True,
           meaning="Share of the score variance that lies between answers to the same example."),
    Number(COMPRESSION_RATIO, "saved", "share", "compression-ratio", SYSTEMS, "more", high=1, rank=80,
           headline=True, by_dataset=True, dataset_title="context saved by dataset", star_above=0,
           replaced_by=PROMPT_SAVINGS,
           meaning="1 - output tokens / input tokens, as a ratio of sums, without failed rows."),
    Number(PROMPT_SAVINGS, "saved", "share", "prompt-savings", SYSTEMS, "more", high=1, rank=70, headline=True,
           by_dataset=True, dataset_title="saved by dataset", star_above=0,
           meaning="1 - tokens that reached the model / tokens sent, as a ratio of sums."),
    Number("untouched_share", "untouched", "share", "prompt-savings", SYSTEMS, low=0, high=1, rank=270,
           by_dataset=True, wide=True,
           meaning="Share of rows whose request reached the model with unchanged meaning."),
    Number(COST_OF_PASS, "cost of pass", "tokens", "cost-of-pass", SYSTEMS, "less", rank=130, headline=True,
           by_dataset=True, from_scores=True, by_threshold=True, replaced_by=PROMPT_SAVINGS,
           meaning="Output tokens of all rows, divided by the rows that pass. Infinite if none passes (null in JSON)."),
    Number(UPSTREAM_COST_OF_PASS, "model tokens / pass", "tokens", "upstream-cost", SYSTEMS, "less", rank=120,
           headline=True, by_dataset=True, dataset_title="model tokens / pass, by dataset", from_scores=True,
           by_threshold=True,
           meaning="Tokens that the model read and wrote, including extra and lost calls, for each row that passes."),
    Number(COST_USD, "dollars", "dollars", "dollar-cost", by_dataset=True, meaning="Dollars of all rows."),
    Number("cost_of_pass_usd", "$ / pass", "dollars", "dollar-cost", SYSTEMS, "less", rank=140, headline=True,
           by_dataset=True, from_scores=True, wide=True, meaning="Dollars for each row that passes."),
    Number(COST_PER_1K_USD, "$ / 1k", "dollars", "dollar-cost", SYSTEMS, "less", rank=250, by_dataset=True,
           meaning="Dollars for 1,000 examples."),
    Number(CACHE_HIT_RATE, "cache hits", "share", "dollar-cost", SYSTEMS, low=0, high=1, rank=255, hide_zero=True,
           by_dataset=True, meaning="Share of the prompt tokens that the API reports as read from its cache."),
    Number("cost_per_1k_uncached_usd", "$ / 1k without cache", "dollars", "dollar-cost", SYSTEMS, rank=256, wide=True,
           meaning="Dollars for 1,000 examples without any reads from the API's cache."),
    Number(SAVED_PER_1K_USD, "$ saved / 1k", "dollars", "", SYSTEMS, "more", rank=150, headline=True, star_above=0,
           wide=True, meaning="Dollars saved for 1,000 examples, compared with the baseline."),
    Number(EMBEDDING_COST_USD, "embedding $", "dollars", "dollar-cost", SYSTEMS, rank=290,
           wide=True, meaning="Dollars of embedding calls. No other cost includes them."),
    Number("judge_cost_usd", "judge $", "dollars", "dollar-cost", SYSTEMS, rank=300, wide=True,
           meaning="Dollars of the judge."),
    Number("latency_mean", "latency mean", "seconds", "latency", meaning="Mean time of `process`."),
    Number(LATENCY_MEDIAN, "latency p50", "seconds", "latency", SYSTEMS, "less", rank=220, headline=True,
           meaning="Median time of `process`. Failed rows are left out."),
    Number("latency_p95", "p95", "seconds", "latency", SYSTEMS, "less", rank=240, headline=True, beside=LATENCY_MEDIAN,
           wide=True, meaning="95th percentile of the time of `process`."),
    Number("latency_p99", "p99", "seconds", "latency", meaning="99th percentile of the time of `process`."),
    Number("proxy_overhead_median", "overhead p50", "seconds", "proxy-overhead", SYSTEMS, "less", rank=230,
           by_dataset=True, dataset_title="overhead p50 by dataset",
           wide=True,
           meaning="Median time that a proxy adds to the model's time, over rows without concurrent requests."),
    Number("first_token_overhead_median", "first token added", "seconds", "proxy-overhead", SYSTEMS, "less", rank=260,
           wide=True, meaning="Median delay that a proxy adds to the first token of a stream."),
    Number("time_to_first_token_median", "first token p50", "seconds", "first-token", SYSTEMS, "less", rank=245,
           meaning="Median time until the client gets the first token of a streamed reply (`--stream`)."),
    Number("time_to_first_token_p95", "first token p95", "seconds", "first-token",
           meaning="95th percentile of the time until the first token of a streamed reply."),
    Number("retention", "retention", "share", "retention", SYSTEMS, "more", rank=210, from_scores=True,
           counts_failures=True, wide=True,
           meaning="(score - floor) / (direct - floor): the share of the context's value that is kept."),
    Number(PARETO_FRONT, "Pareto", "front", "pareto-rank", SYSTEMS, rank=190,
           meaning="1 if the system is on the Pareto front of score and cost (by paired intervals), else 0."),
    Number(PARETO_RANK, "Pareto rank", "rank", "pareto-rank", SYSTEMS, rank=200,
           meaning="Rank by non-dominated sorting on mean score and cost of pass, without intervals."),
    # scores by dataset
    Number("dataset:{tag}", "score", "score", "per-dataset-breakdown", "score by dataset", "more",
           from_scores=True, counts_failures=True, gate="quality", meaning="Mean score of one dataset."),
    Number("official:{tag}", "official", "score", "official-score", from_scores=True,
           meaning="`official_score` of one dataset, if there are several."),
    # the table of tokens
    Number("downstream_tokens", "sent", "tokens", "upstream-tokens", TOKENS,
           meaning="Tokens sent to the proxy, for the rows whose upstream tokens are known."),
    Number("upstream_tokens", "reached the model", "tokens", "upstream-tokens", TOKENS,
           meaning="Tokens sent to the model, over all calls. Failed rows count too, as they are paid for."),
    Number("counted_tokens_saved", "tokens saved", "tokens", "token-meters", TOKENS,
           meaning="Tokens saved, by our own count."),
    Number("prompt_savings_best", "saved at best", "share", "prompt-savings", TOKENS, high=1, by_dataset=True,
           meaning="`prompt_savings` without the doubtful calls."),
    Number("prompt_savings_worst", "at worst", "share", "prompt-savings", TOKENS, high=1, by_dataset=True,
           meaning="`prompt_savings` with all doubtful calls."),
    Number("claimed_tokens_saved", "tokens saved, its own claim", "tokens", "token-meters", TOKENS,
           meaning="Tokens that the vendor claims to have saved."),
    Number("usage_prompt_tokens", "prompt, by API usage", "tokens", "token-meters", TOKENS,
           meaning="Prompt tokens that the API billed, including lost calls and failed rows."),
    Number("extra_upstream_calls", "extra calls", "calls", "upstream-tokens", TOKENS,
           meaning="Calls of the proxy beyond one for each request."),
    Number("extra_upstream_calls_worst", "extra at worst", "calls", "upstream-tokens", TOKENS,
           meaning="Extra calls, including all doubtful ones."),
    Number("lost_upstream_calls", "lost calls", "calls", "upstream-tokens", TOKENS, hide_zero=True,
           meaning="Model calls of an attempt that the client later repeated, so their answers were lost."),
    Number("lost_upstream_tokens", "tokens in lost calls", "tokens", "upstream-tokens", TOKENS, hide_zero=True,
           meaning="Tokens read and written in lost calls."),
    Number("answers_without_call", "answers without a call", "calls", "upstream-tokens", TOKENS, hide_zero=True,
           meaning="Answers without a call to the model."),
    Number("cached_answers", "cached answers", "calls", "upstream-tokens", TOKENS, hide_zero=True,
           meaning="Answers that the proxy reports as cached."),
    # the prompt cache
    Number("prefix_stability", "prefix kept", "share", "prefix-stability", CACHE, low=0, high=1,
           meaning="Share of a request that is a prefix of the conversation's next request."),
    Number("first_message_changed", "first message changed", "share", "prefix-stability", CACHE, low=0, high=1,
           meaning="Share of conversations whose first message the system changed."),
    Number("rewritten_history", "history rewritten", "share", "prefix-stability", CACHE, low=0, high=1,
           meaning="Share of turns that rewrite a part of an earlier request."),
    Number("cost_per_1k_cache_adjusted_usd", "$ / 1k, cache-adjusted", "dollars", "dollar-cost", CACHE,
           meaning="Dollars for 1,000 conversations if the API's cache served everything that a request repeats from "
                   "earlier ones."),
    # changed rows, and the position of the evidence
    Number("acted_rows", "acted on", "rows", "engagement", meaning="Rows on which the system changed anything."),
    Number("acted_share", "acted on", "share", "engagement", low=0, high=1, by_dataset=True,
           meaning="Share of rows on which the system changed anything."),
    Number("acted_score", "score where it acted", "score", "engagement", from_scores=True,
           meaning="Mean score over the rows that the system changed."),
    Number("acted_savings", "saved where it acted", "share", "engagement", high=1,
           meaning="Share of tokens saved, over the rows that the system changed."),
    Number("evidence_depth", "evidence depth", "share", "engagement", low=0, high=1, by_dataset=True,
           meaning="Share of the context's tokens before the first evidence: the median over examples."),
    Number("evidence_depth_most", "deepest evidence", "share", "engagement", low=0, high=1, by_dataset=True,
           meaning="Share of the context's tokens before the last evidence, for the deepest example."),
    # evidence; the table of systems has its survival if a script answered
    Number(EVIDENCE_SURVIVAL, "evidence", "share", "evidence-survival", "", "more", 0, 1, rank=50, headline=True,
           by_dataset=True, dataset_title="evidence survived, by dataset",
           meaning="Share of rows whose evidence reached the model, verbatim or recoverable."),
    Number("evidence_rows", "rows", "rows", "evidence-survival", EVIDENCE,
           meaning="Rows with evidence and a score; the other shares are shares of these."),
    Number("evidence_verbatim", "verbatim", "share", "evidence-survival", EVIDENCE, low=0, high=1, by_dataset=True,
           meaning="Share of rows whose evidence arrived word for word."),
    Number("evidence_recoverable", "recoverable", "share", "evidence-survival", EVIDENCE, low=0, high=1,
           by_dataset=True, meaning="Share of rows whose evidence lost words but not its meaning."),
    Number("evidence_lost", "lost", "share", "evidence-survival", EVIDENCE, low=0, high=1, by_dataset=True,
           meaning="Share of rows whose evidence was lost."),
    Number("evidence_rewritten", "lost and rewritten", "share", "evidence-survival", EVIDENCE, low=0, high=1,
           by_dataset=True, hide_zero=True,
           meaning="Share of rows whose evidence was lost and whose text has new words."),
    Number("evidence_survival_best", "survived at best", "share", "evidence-survival", EVIDENCE, low=0, high=1,
           by_dataset=True, meaning="Survival if all rows whose answering call is unknown kept their evidence."),
    Number("evidence_survival_worst", "at worst", "share", "evidence-survival", EVIDENCE, low=0, high=1,
           by_dataset=True, meaning="Survival if all rows whose answering call is unknown lost it."),
    Number("lost_by_system", "lost by the system", "share", "evidence-survival", EVIDENCE, low=0, high=1,
           by_dataset=True, meaning="Share of rows that lost the evidence and were wrong."),
    Number("failed_anyway", "failed anyway", "share", "evidence-survival", EVIDENCE, low=0, high=1, by_dataset=True,
           meaning="Share of rows that kept the evidence and were wrong."),
    Number("right_without_evidence", "right without it", "share", "evidence-survival", EVIDENCE, low=0, high=1,
           by_dataset=True, meaning="Share of rows that lost the evidence and were right."),
    # in JSON only
    Number("card_threshold", "card threshold", "score", "card-pass-rate", by_dataset=True,
           meaning="The threshold that the cards recommend, if they agree."),
    Number("mean_input_tokens", "input tokens", "tokens", "compression-ratio", meaning="Mean input tokens of a row."),
    Number(MEAN_OUTPUT_TOKENS, "output tokens", "tokens", "compression-ratio", meaning="Mean output tokens of a row."),
    Number("num_passing", "passes", "count", "cost-of-pass", from_scores=True, by_threshold=True,
           meaning="Rows that pass."),
    Number("untouched_share_best", "untouched at best", "share", "prompt-savings", by_dataset=True,
           meaning="`untouched_share` without the doubtful calls."),
    Number("untouched_share_worst", "untouched at worst", "share", "prompt-savings", by_dataset=True,
           meaning="`untouched_share` with all doubtful calls."),
    Number("sent_tokens", "sent", "tokens", "prompt-savings",
           meaning="Tokens sent, for the rows whose `prompt_savings` are known."),
    Number("mean_sent_tokens", "sent, mean", "tokens", "prompt-savings", meaning="Mean of `sent_tokens`."),
    Number(MEAN_UPSTREAM_TOKENS, "upstream, mean", "tokens", "upstream-tokens", meaning="Mean of `upstream_tokens`."),
    Number("mean_downstream_tokens", "downstream, mean", "tokens", "upstream-tokens",
           meaning="Mean of `downstream_tokens`."),
    Number("extra_upstream_calls_best", "extra at best", "calls", "upstream-tokens",
           meaning="Extra calls, not counting doubtful ones."),
    Number("claimed_rows", "claimed rows", "rows", "token-meters", meaning="Rows behind `claimed_tokens_saved`."),
    Number("counted_rows", "counted rows", "rows", "token-meters", meaning="Rows behind `counted_tokens_saved`."),
    Number("usage_rows", "usage rows", "rows", "token-meters", meaning="Rows behind `usage_prompt_tokens`."),
    Number("proxy_overhead_mean", "overhead mean", "seconds", "proxy-overhead", meaning="Mean time that a proxy adds."),
    Number("proxy_overhead_p95", "overhead p95", "seconds", "proxy-overhead",
           meaning="95th percentile of the time that a proxy adds."),
    Number("proxy_overhead_rows", "overhead rows", "rows", "proxy-overhead", meaning="Rows behind the overhead."),
    Number("cost_per_1k_usd_best", "$ / 1k at best", "dollars", "dollar-cost",
           meaning="Dollars for 1,000 examples, without the doubtful calls."),
    Number("cost_per_1k_usd_worst", "$ / 1k at worst", "dollars", "dollar-cost",
           meaning="Dollars for 1,000 examples, with all doubtful calls."),
    Number("cost_per_1k_as_asked_usd", "$ / 1k as asked", "dollars", "dollar-cost",
           meaning="Dollars for 1,000 examples at the price of the requested model."),
    Number("timed_out_attempts", "timed out", "count", "dollar-cost", meaning="Attempts that timed out."),
    Number(TIMED_OUT_COST_USD, "timed out", "dollars", "dollar-cost",
           meaning="Upper bound of the cost of attempts that timed out."),
    Number("billed_to_counted", "billed / counted", "ratio", "billed-ratio",
           meaning="Billed prompt tokens per locally counted token, fitted by least squares through zero."),
    Number("billed_to_counted_residual", "residual", "share", "billed-ratio",
           meaning="Share of the billed tokens that this ratio does not explain."),
    Number("billed_to_counted_rows", "rows", "rows", "billed-ratio", meaning="Rows behind the ratio."),
    Number(PARETO_COSTS[0], "cost of 1,000 examples, in dollars", "dollars", "pareto-rank",
           meaning="Dollars for 1,000 examples; a failed row counts with the cost of the most expensive system."),
    Number(PARETO_COSTS[1], "tokens that the model reads, for each example", "tokens", "pareto-rank",
           meaning="Tokens that the model reads for an example, including failures."),
    Number(PARETO_COSTS[2], "tokens returned, for each example", "tokens", "pareto-rank",
           meaning="Tokens returned for an example, including failures."),
    # memory systems
    Number("ingest_turns", "turns", "tokens", "memory-costs", WRITING, meaning="Written turns."),
    Number("ingest_calls", "calls / 1k turns", "calls each", "memory-costs", WRITING,
           meaning="Model calls for writing 1,000 turns, including background work."),
    Number("ingest_tokens", "tokens / 1k turns", "tokens", "memory-costs", WRITING,
           meaning="Tokens read and written for 1,000 turns."),
    Number("ingest_embed_tokens", "embedded / 1k turns", "tokens", "memory-costs", WRITING,
           meaning="Tokens embedded for 1,000 turns."),
    Number("ingest_usd", "$ / 1k turns", "dollars", "memory-costs", WRITING, meaning="Dollars for 1,000 turns."),
    Number("ingest_seconds", "time / 1k turns", "seconds", "memory-costs", WRITING, meaning="Time for 1,000 turns."),
    Number("searchable_seconds", "searchable after", "seconds", "memory-costs", WRITING,
           meaning="Time from the first turn of a conversation until its turns can be retrieved."),
    Number("disk_bytes", "disk", "bytes", "memory-costs", WRITING, meaning="Bytes kept on disk for a conversation."),
    Number("memories", "memories", "tokens", "memory-costs", WRITING, meaning="Memories kept for a conversation."),
    Number("query_calls", "calls / question", "calls each", "memory-costs", WRITING,
           meaning="Model calls for a question, without the reader."),
    Number("query_tokens", "tokens / question", "tokens", "memory-costs", WRITING,
           meaning="Tokens read and written for a question, without the reader."),
    Number("query_embed_tokens", "embedded / question", "tokens", "memory-costs", WRITING,
           meaning="Tokens embedded for a question."),
    Number("query_usd", "$ / question", "dollars", "memory-costs", WRITING, meaning="Dollars for a question."),
    Number("query_seconds_median", "time / question", "seconds", "memory-costs", WRITING,
           meaning="Median time of a question."),
    Number("ingest_embed_calls", "embedding calls / 1k turns", "calls each", "memory-costs",
           meaning="Calls for embeddings while writing 1,000 turns."),
    Number("query_embed_calls", "embedding calls / question", "calls each", "memory-costs",
           meaning="Calls for embeddings for a question."),
    Number("found_per_question", "found / question", "ratio", "memory-costs",
           meaning="Items that the memory retrieved for a question."),
    Number("answer_tokens", "reader tokens / question", "tokens", "memory-costs",
           meaning="Tokens that the reader read and wrote for a question."),
    Number("late_calls", "late calls", "calls", "memory-costs",
           meaning="Calls after writing has ended; they still count as costs of writing."),
    Number("type:{tag}", "score by type of question", "score", "by-type", "score by type",
           meaning="Mean score of one type of question. `{tag}` is the type."),
    Number(RETRIEVAL_RECALL, "recall", "score", "probe-shares", RETRIEVAL, "more", headline=True,
           meaning="Share of the evidence turns that the memory returned with text."),
    Number("retrieval_recall_claimed", "claimed", "score", "probe-shares", RETRIEVAL,
           meaning="Share of the evidence turns that the memory named, with or without text."),
    Number("retrieval_recall_at_10", "recall@10", "score", "probe-shares", RETRIEVAL, "more",
           meaning="Recall of the first ten results."),
    Number("retrieval_ndcg", "nDCG", "score", "probe-shares", RETRIEVAL, "more",
           meaning="nDCG of the retrieved turns, with binary relevance."),
    Number("retrieval_precision", "precision", "score", "probe-shares", RETRIEVAL, "more",
           meaning="Share of the retrieved turns that contain evidence."),
    *(
        Number(f"retrieval_{level}{share}_at_{depth}", f"{share}@{depth}", "score", "probe-shares", table, "more",
               meaning=f"Share of questions with {share} of their evidence among the first {depth} {things}.")
        for level, table, things in (("", FIRST_TURNS, "turns"), ("session_", FIRST_SESSIONS, "sessions"))
        for share in ("any", "all")
        for depth in (1, 5, 10)
    ),
    Number("store_forget", "forgotten", "share", "probe-shares", STORE,
           meaning="Share of the deleted facts that the store no longer holds."),
    Number("store_secret", "secrets", "share", "probe-shares", STORE,
           meaning="Share of secrets that the store does not hold."),
)
# fmt: on

NUMBERS: dict[str, Number] = {number.key: number for number in _DECLARED}  # every number by its key
_BY_PLAIN_KEY = {re.split("[:@]", key)[0]: number for key, number in reversed(NUMBERS.items())} | NUMBERS
QUALITY = (MACRO_SCORE, MEAN_SCORE, EVIDENCE_SURVIVAL, RETRIEVAL_RECALL)
"""Numbers that show whether a system's quality was measured."""


def get_number(key: str) -> Number:
    """Return the declaration of a key, with or without a dataset; a user's metric gets a plain one."""
    return NUMBERS.get(key) or _BY_PLAIN_KEY.get(re.split("[:@]", key, maxsplit=1)[0]) or Number(key, key)


def list_numbers(table: str) -> list[Number]:
    """List the numbers of a table, in order."""
    return [number for number in _DECLARED if number.table == table]


def list_keys(metric: str, *, by_dataset: bool = False) -> tuple[str, ...]:
    """List the keys of a metric, or those that it also gives for each dataset."""
    given = (number for number in _DECLARED if metric and number.metric == metric and number.key != JUDGE_SCORE)
    return tuple(number.key for number in given if number.by_dataset or not by_dataset)
