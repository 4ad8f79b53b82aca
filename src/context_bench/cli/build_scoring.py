"""From options to what scores a run and sums it up: evaluators, the judge, metrics."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from context_bench.cli.options import JudgeOptions, ScoringOptions
from context_bench.core.scoring import Scorer, check_threshold
from context_bench.datasets.catalog import card_for
from context_bench.errors import UsageError, suggest
from context_bench.evaluators.adapt import build_evaluators
from context_bench.evaluators.evidence import EvidenceSurvival
from context_bench.evaluators.llm_judge import DEFAULT_MODEL, LLMJudge
from context_bench.http import find_key
from context_bench.http.secrets import check_url
from context_bench.metrics import (
    DEFAULT_THRESHOLD,
    BilledRatio,
    CardPassRate,
    DollarCost,
    OfficialScore,
    default_metrics,
    load_metrics,
)
from context_bench.numbers import COST_OF_PASS, UPSTREAM_COST_OF_PASS
from context_bench.types import Evaluator, Metric

__all__ = ["build_judge", "build_metrics", "build_scorer"]


def build_scorer(options: ScoringOptions, tags: Sequence[str]) -> Scorer:
    """Build what scores the rows; a score field that nobody emits is an error here, before anything is sent."""
    settings = {"code-execution": {"sandbox": "none"}} if options.unsafe_code else {}
    named = (each for text in options.evaluators for each in build_evaluators(text))
    extra = [*named, *_build_judges(options)]
    if options.sees_upstream and not any(isinstance(each, EvidenceSurvival) for each in extra):
        extra.append(EvidenceSurvival())
    scorer = Scorer(extra=extra, settings=settings, score_field=options.field, keep_reasoning=options.keep_reasoning)
    if options.threshold is not None:
        check_threshold(options.threshold, scorer, options.field)
    for tag in tags:  # evaluators that cannot go together are found here too
        scorer.evaluators_for(tag)
    if options.score_field is not None:
        known = scorer.fields_for(tags)
        if known is not None and options.score_field not in known:
            meant = suggest(options.score_field, known)
            raise UsageError(
                f"no evaluator emits {options.score_field!r} here; {meant and f'{meant} '}"
                f"--score-field can be {', '.join(sorted(known))}"
            )
    return scorer


def build_judge(options: JudgeOptions) -> LLMJudge:
    """Build the judge that the flags name."""
    if not options.url:
        raise UsageError("a judge needs --judge-url URL: it is the server that is asked")
    if not options.model:
        warnings.warn(f"no --judge-model was given: {DEFAULT_MODEL} judges", stacklevel=2)
    key = find_key(check_url(options.url), variable=options.key_env)
    return LLMJudge(options.url, options.model or DEFAULT_MODEL, key)


def _build_judges(options: ScoringOptions) -> list[Evaluator]:
    """Build the judge as one more evaluator, and warn where its scores say less than they seem to."""
    if not options.judge.wanted:
        return []
    judge = build_judge(options.judge)
    model = options.judge.model or DEFAULT_MODEL
    if model == options.answering_model:
        warnings.warn(f"{model} judges its own answers: models favour what they wrote", stacklevel=2)
    if options.judges_contexts:
        warnings.warn(
            "the judge rates the contexts of each --system as if they were answers: --reader URL has them read",
            stacklevel=2,
        )
    return [judge]


def build_metrics(options: ScoringOptions, tags: Sequence[str], systems: int) -> list[Metric]:
    """Build the metrics of every run, the official number where that is not a mean of rows, and those asked for."""
    threshold = DEFAULT_THRESHOLD if options.threshold is None else options.threshold
    metrics = default_metrics(
        options.field,
        threshold,
        datasets=len(tags),
        systems=systems,
        tapped=options.sees_upstream,
        controls=_control_names() if options.controls else (),
        cost_field=UPSTREAM_COST_OF_PASS if options.ranks_by_upstream else COST_OF_PASS,
        judged=bool(options.judge.url),
        repeats=options.repeats,
    )
    cards = [card for tag in tags if (card := card_for(tag)) is not None]
    if any(card.threshold is not None for card in cards):
        metrics.append(CardPassRate(options.field))
    if any(card.aggregate for card in cards):
        metrics.append(OfficialScore(options.field))
    # Both are silent where nothing is known of tokens that are paid for.
    metrics += [DollarCost(threshold, options.field), BilledRatio()]
    for text in options.metrics:
        for metric in load_metrics(text):
            if metric.name in {each.name for each in metrics}:
                raise UsageError(
                    f"the metric {metric.name!r} is computed already: --score-field and --threshold set it"
                )
            metrics.append(metric)
    return metrics


def _control_names() -> tuple[str, ...]:
    """Return the systems of --controls, which do not compete."""
    from context_bench.tap.system import CONTROLS

    return tuple(CONTROLS)
