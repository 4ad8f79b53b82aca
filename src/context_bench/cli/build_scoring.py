"""Build the evaluators, judge and metrics of a run from its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from context_bench.config import RunOptions
from context_bench.core.examples import check_threshold
from context_bench.core.judge import Scorer
from context_bench.datasets.catalog import card_for
from context_bench.errors import UsageError, suggest, warn
from context_bench.evaluators.adapt import build_evaluators
from context_bench.evaluators.evidence import EvidenceSurvival
from context_bench.evaluators.llm_judge import DEFAULT_MODEL, LLMJudge
from context_bench.http import Secret, find_key
from context_bench.http.secrets import check_url
from context_bench.metrics import choose_metrics, load_metrics
from context_bench.numbers import COST_OF_PASS, UPSTREAM_COST_OF_PASS
from context_bench.types import Evaluator, Metric

if TYPE_CHECKING:
    from context_bench.memory.judge import MemoryJudge


@dataclass(frozen=True)
class JudgeOptions:
    """The model that judges answers; if all three fields are None, no model judges."""

    url: str | None = None
    model: str | None = None
    key_env: str | None = None

    @classmethod
    def read(cls, options: Any) -> JudgeOptions:
        """Read the options of a run, or the judge flags of another command."""
        return cls(options.judge_url, options.judge_model, options.judge_key_env)

    @property
    def wanted(self) -> bool:
        return bool(self.url or self.model or self.key_env)


@dataclass(frozen=True)
class ScoringOptions:
    """How rows are scored and summarized, in a new run or when a run is scored again."""

    evaluators: Sequence[str] = ()  # references of evaluators, in addition to those of the datasets
    metrics: Sequence[str] = ()  # references of metrics, in addition to the default ones
    score_field: str | None = None  # the primary score; None takes that of each dataset
    threshold: float | None = None  # the lowest score that passes; None takes the default
    keep_reasoning: bool = False  # score whole replies, including their reasoning
    judge: JudgeOptions = JudgeOptions()  # the model that judges answers
    unsafe_code: bool = False  # run model-written code without a sandbox
    sees_upstream: bool = False  # for some system, the tokens that its model read will be known
    ranks_by_upstream: bool = False  # they will be known for every system, so systems are ranked by cost
    controls: bool = False  # the run has the systems of --controls
    answering_model: str | None = None  # the model that answers for the systems, if any
    judges_contexts: bool = (
        False  # some systems return a context and no model reads it: the judge rates it as an answer
    )
    repeats: int = 1  # answers for each example

    @property
    def field(self) -> str:
        return self.score_field or "score"

    @classmethod
    def read(cls, options: RunOptions) -> ScoringOptions:
        return cls(
            evaluators=options.evaluator,
            metrics=options.metric,
            score_field=options.chosen_score_field,
            threshold=options.threshold,
            keep_reasoning=options.keep_reasoning,
            judge=JudgeOptions.read(options),
            unsafe_code=options.unsafe_code,
            sees_upstream=options.wants_tap or bool(options.reader),
            ranks_by_upstream=options.wants_tap or bool(options.reader and not options.proxy),
            controls=options.controls in ("standard", "all"),
            answering_model=options.model if options.proxy or options.reader else None,
            judges_contexts=bool(options.system) and not options.reader,
            repeats=options.repeats,
        )


def build_scorer(options: ScoringOptions, tags: Sequence[str]) -> Scorer:
    """Build the scorer; an unknown score field is an error here, before any request is sent."""
    settings = {"code-execution": {"sandbox": "none"}} if options.unsafe_code else {}
    named = (each for text in options.evaluators for each in build_evaluators(text))
    extra = [*named, *_build_judges(options)]
    if options.sees_upstream and not any(isinstance(each, EvidenceSurvival) for each in extra):
        extra.append(EvidenceSurvival())
    scorer = Scorer(extra=extra, settings=settings, score_field=options.field, keep_reasoning=options.keep_reasoning)
    if options.threshold is not None:
        check_threshold(options.threshold, scorer, options.field)
    for tag in tags:  # also finds evaluators that conflict
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
    url, key = _find_server(options)
    if not options.model:
        warn(f"no --judge-model was given: {DEFAULT_MODEL} judges")
    return LLMJudge(url, options.model or DEFAULT_MODEL, key)


def build_memory_judge(options: JudgeOptions, prompts: str | None) -> MemoryJudge:
    """Build the judge of memory systems from the flags; `prompts` is a file that rewords the rules."""
    from context_bench.memory.judge import MemoryJudge

    url, key = _find_server(options)
    return MemoryJudge(url, options.model or DEFAULT_MODEL, key, prompts=prompts)


def _find_server(options: JudgeOptions) -> tuple[str, Secret | None]:
    if not options.url:
        raise UsageError("a judge needs --judge-url URL, the server of its model")
    return options.url, find_key(check_url(options.url), variable=options.key_env)


def _build_judges(options: ScoringOptions) -> list[Evaluator]:
    """Build the judge as an additional evaluator, and warn if its scores may be biased or meaningless."""
    if not options.judge.wanted:
        return []
    judge = build_judge(options.judge)
    model = options.judge.model or DEFAULT_MODEL
    if model == options.answering_model:
        warn(f"{model} judges its own answers; models favour their own text")
    if options.judges_contexts:
        warn("the judge rates the contexts of each --system as if they were answers; add --reader URL for real answers")
    return [judge]


def build_metrics(options: ScoringOptions, tags: Sequence[str], systems: int) -> list[Metric]:
    """Build the default metrics, the official number if it is not a mean of rows, and the requested metrics."""
    cards = [card for tag in tags if (card := card_for(tag)) is not None]
    metrics = choose_metrics(
        options.field,
        options.threshold,
        passes_by_card=any(card.threshold is not None for card in cards),
        official=any(card.aggregate for card in cards),
        datasets=len(tags),
        systems=systems,
        tapped=options.sees_upstream,
        controls=_list_controls() if options.controls else (),
        cost_field=UPSTREAM_COST_OF_PASS if options.ranks_by_upstream else COST_OF_PASS,
        judged=bool(options.judge.url),
        repeats=options.repeats,
    )
    for text in options.metrics:
        for metric in load_metrics(text):
            if metric.name in {each.name for each in metrics}:
                raise UsageError(
                    f"the metric {metric.name!r} is always computed: set it with --score-field and --threshold"
                )
            metrics.append(metric)
    return metrics


def _list_controls() -> tuple[str, ...]:
    from context_bench.tap.system import CONTROLS

    return tuple(CONTROLS)
