"""The flags as typed values: those of a run, and those of scoring.

The namespace that argparse fills ends here: the rest of the command reads these, so that a misspelt or missing field
is found by the type checker.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from context_bench.cli.flags import STORE

if TYPE_CHECKING:
    from context_bench.compare.conditions import Condition

__all__ = ["JudgeOptions", "RunOptions", "ScoringOptions"]


@dataclass(frozen=True)
class JudgeOptions:
    """The model that judges answers; nobody judges where all three are None."""

    url: str | None = None
    model: str | None = None
    key_env: str | None = None

    @classmethod
    def read(cls, flags: Namespace) -> JudgeOptions:
        """Read the flags of `add_judge`."""
        return cls(flags.judge_url, flags.judge_model, flags.judge_key_env)

    @property
    def wanted(self) -> bool:
        """Whether any flag names a judge."""
        return bool(self.url or self.model or self.key_env)


@dataclass(frozen=True)
class ScoringOptions:
    """How rows are scored and summarized, in a new run and in one that is scored again.

    Attributes:
        evaluators: References of evaluators beside those of the datasets.
        metrics: References of metrics beside the default ones.
        score_field: The score that counts; None takes the primary one of each dataset.
        threshold: A score from here on passes; None takes the default.
        keep_reasoning: Score whole replies, with the reasoning in them.
        judge: The model that judges answers.
        unsafe_code: Run model-written code without a sandbox.
        sees_upstream: It will be known what the model behind some system read.
        ranks_by_upstream: That will be known for every system, so that they are ranked by what it costs.
        controls: The run has the systems of --controls.
        repeats: How often each example is answered.
        answering_model: The model that answers for the systems, if one does.
        judges_contexts: Some systems return a context that nobody reads: it is judged as an answer.
    """

    evaluators: Sequence[str] = ()
    metrics: Sequence[str] = ()
    score_field: str | None = None
    threshold: float | None = None
    keep_reasoning: bool = False
    judge: JudgeOptions = JudgeOptions()
    unsafe_code: bool = False
    sees_upstream: bool = False
    ranks_by_upstream: bool = False
    controls: bool = False
    answering_model: str | None = None
    judges_contexts: bool = False
    repeats: int = 1

    @property
    def field(self) -> str:
        """The key in `EvalRow.scores` that counts."""
        return self.score_field or "score"


@dataclass(frozen=True)
class RunOptions:
    """Every flag of a run under its own name, then what else is known of the command line.

    Attributes:
        model: The one that was given, else the default of the API; `model_given` tells them apart.
        timeout: Seconds for one attempt, given or by default.
        output: The form of the report, given or by the ending of --out.
        command: The flags as they are recorded, without keys.
        typed: What the user typed, without keys: it may name a run file.
        run_file: The text of the run file, without keys.
    """

    # what is measured
    proxy: list[str]
    name: list[str]
    system: list[str]
    reader: str | None
    dataset: list[str]
    max_examples: int | None
    sample: str | None
    data_dir: str | None
    revision: str | None
    map: str | None
    evaluator: list[str]
    metric: list[str]
    imports: list[str]
    # what is sent
    model: str
    api: str
    api_key_env: str | None
    header: list[str]
    extra_body: str | None
    system_prompt: str | None
    temperature: float | None
    max_tokens: int | None
    stream: bool
    timeout: float
    max_retries: int
    # what really reaches the model
    tap: str | None
    tap_host: list[str]
    tap_forward: str | None
    tap_model: str | None
    tap_reply: str | None
    start: list[str]
    start_dir: str | None
    sweep: list[str]
    vendor: list[str]
    controls: bool
    # who judges, and how it is measured
    judge_url: str | None
    judge_model: str | None
    judge_key_env: str | None
    score_field: str
    threshold: float | None
    keep_reasoning: bool
    baseline: str | None
    margin: float | None
    aa: bool
    stop_when_decided: bool
    fixed_groups: bool
    plan: str | None
    repeats: int
    unsafe_code: bool
    tokenizer: str | None
    seed: int
    # limits
    max_workers: int | None
    max_connections: int | None
    max_rpm: float | None
    max_tpm: float | None
    max_errors: str | None
    prices: str | None
    max_cost: float | None
    max_total_tokens: int | None
    no_preflight: bool
    # where it runs
    engine: str
    ray_address: str | None
    system_resources: dict[str, float] | None
    # what is kept, and what comes out
    cache_dir: str | None
    resume: bool
    fresh: bool
    cache_tag: str | None
    no_store: bool
    no_rows: bool
    output: str
    out: str | None
    report: str | None
    plots: str | None
    wide: bool
    dry_run: bool
    quiet: bool
    verbose: bool
    pdb: bool
    # a gate
    fail_if: list[Condition]
    junit: str | None
    summary: str | None
    # beside the flags
    model_given: bool
    command: list[str]
    typed: list[str]
    run_file: str | None

    @property
    def store(self) -> str | None:
        """The folder of the store; None keeps nothing."""
        return None if self.no_store else self.cache_dir or STORE

    @property
    def reuses_answers(self) -> bool:
        """Whether answers in the store are used again."""
        return (self.cache_dir is not None or self.resume) and not self.fresh

    @property
    def wants_tap(self) -> bool:
        """Whether any flag asks for a tap."""
        answered = self.tap_forward or self.tap_model or self.tap_reply
        return bool(self.tap or self.start or self.vendor or answered)

    @property
    def chosen_score_field(self) -> str | None:
        """The score that the user chose; None leaves it to each dataset."""
        return None if self.score_field == "auto" else self.score_field

    @property
    def scoring(self) -> ScoringOptions:
        """The part that decides how rows are scored."""
        return ScoringOptions(
            evaluators=self.evaluator,
            metrics=self.metric,
            score_field=self.chosen_score_field,
            threshold=self.threshold,
            keep_reasoning=self.keep_reasoning,
            judge=JudgeOptions(self.judge_url, self.judge_model, self.judge_key_env),
            unsafe_code=self.unsafe_code,
            sees_upstream=self.wants_tap or bool(self.reader),
            ranks_by_upstream=self.wants_tap or bool(self.reader and not self.proxy),
            controls=self.controls,
            answering_model=self.model if self.proxy or self.reader else None,
            judges_contexts=bool(self.system) and not self.reader,
            repeats=self.repeats,
        )
