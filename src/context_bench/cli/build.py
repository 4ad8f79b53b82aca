"""From flags to the parts of a run: systems, what scores them, and metrics."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.cli.build_tap import build_tapped, proxy_names, wants_tap
from context_bench.datasets.catalog import card_for
from context_bench.engine.scoring import Scorer, check_threshold
from context_bench.errors import UsageError
from context_bench.evaluators.adapt import adapt_evaluator
from context_bench.evaluators.evidence_survival import EvidenceSurvival
from context_bench.evaluators.llm_judge import DEFAULT_MODEL, LLMJudge
from context_bench.http import Secret, find_key
from context_bench.http.headers import merge_headers
from context_bench.http.secrets import check_url
from context_bench.masking import MASK, mask_text
from context_bench.metrics import DEFAULT_THRESHOLD, CardPassRate, OfficialScore, default_metrics
from context_bench.refs import call_with, parse, resolve
from context_bench.systems import AnthropicProxy, OpenAIProxy, WithReader, named
from context_bench.systems.load import build_systems
from context_bench.types import Evaluator, Metric

__all__ = ["build_evaluators", "build_judge", "build_metrics", "build_scorer", "build_system_list"]

PROXY_WORKERS = 8


def build_system_list(options: argparse.Namespace) -> list[Any]:
    """The proxies in their order, then the other systems in theirs, then the controls."""
    if options.reader and not options.system:
        raise UsageError("--reader reads what a --system made: add --system NAME")
    if wants_tap(options):
        return build_tapped(options, build_server)
    if options.controls:
        raise UsageError("--controls asks the model behind a tap: add --tap-forward, --tap-model or --tap-reply")
    names = proxy_names(options, len(options.proxy))
    systems = [build_server(url, options, name) for url, name in zip(options.proxy, names)]
    reader = build_server(options.reader, options, None) if options.reader else None
    for text in options.system:
        built = build_systems(text, options.seed)
        systems.extend(named(WithReader(each, reader), each.name) if reader else each for each in built)
    return systems


def build_server(
    url: str, options: argparse.Namespace, name: str | None, headers: Mapping[str, str] | None = None
) -> Any:
    """A server that answers, with everything that the flags say of requests; a --header wins over one of `headers`."""
    shared: dict[str, Any] = {
        "model": options.model,
        "name": name,
        "system_prompt": options.system_prompt,
        "timeout": options.timeout,
        "extra_body": _extra_body(options.extra_body),
        "max_retries": options.max_retries,
        "temperature": options.temperature,
        "headers": merge_headers(headers or {}, _headers(options.header)),
        "max_rpm": options.max_rpm,
        "max_tpm": options.max_tpm,
        "max_connections": options.max_connections,
    }
    if options.max_tokens is not None:
        shared["max_tokens"] = options.max_tokens
    fallback = "ANTHROPIC_API_KEY" if options.api == "anthropic" else "OPENAI_API_KEY"
    shared["api_key"] = find_key(check_url(url), variable=options.api_key_env, fallback=fallback)
    if options.api == "anthropic":
        if options.stream:
            raise UsageError("--stream is for --api openai")
        server: Any = AnthropicProxy(url, **shared)
    else:
        server = OpenAIProxy(url, stream=options.stream, **shared)
    server.max_workers = PROXY_WORKERS
    return server


def _extra_body(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise UsageError(f"--extra-body {mask_text(text)!r} is no JSON object")
    return body


def _headers(lines: Sequence[str]) -> dict[str, Secret]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not value.strip():
            raise UsageError("a --header is no NAME:VALUE" if not colon else f"--header {name!r} is no NAME:VALUE")
        if value.strip() == MASK:
            raise UsageError(f"--header {name.strip()}: {MASK} hides its value: put the value back")
        headers[name.strip()] = Secret(value.strip())
    return headers


def build_evaluators(texts: Sequence[str]) -> list[Evaluator]:
    """Evaluators by reference."""
    evaluators = []
    for text in texts:
        for ref in parse("evaluator", text):
            found = resolve("evaluator", ref)
            evaluators.append(adapt_evaluator(call_with(found, ref) if isinstance(found, type) else found))
    return evaluators


def build_judge(options: argparse.Namespace) -> LLMJudge:
    """The judge that the flags name."""
    if not options.judge_url:
        raise UsageError("a judge needs --judge-url URL: it is the server that is asked")
    if not options.judge_model:
        options.judge_model = DEFAULT_MODEL
        warnings.warn(f"no --judge-model given: {DEFAULT_MODEL} judges", stacklevel=2)
    key = find_key(check_url(options.judge_url), variable=options.judge_key_env)
    return LLMJudge(options.judge_url, options.judge_model, key)


def _judges(options: argparse.Namespace) -> list[Evaluator]:
    """The judge as one more evaluator, with a warning where its scores say less than they seem to."""
    if not (options.judge_url or options.judge_model or options.judge_key_env):
        return []
    judge = build_judge(options)
    answering = getattr(options, "proxy", None) or getattr(options, "reader", None)
    if answering and options.judge_model == options.model:
        warnings.warn(f"{options.judge_model} judges its own answers: models favour what they wrote", stacklevel=2)
    if getattr(options, "system", None) and not options.reader:
        warnings.warn(
            "the judge gets the contexts of each --system as answers: --reader URL has them read", stacklevel=2
        )
    return [judge]


def build_scorer(options: argparse.Namespace, tags: Sequence[str]) -> Scorer:
    """What scores the rows; a score field that nobody emits is an error here, before anything is sent."""
    settings = {"code-execution": {"sandbox": "none"}} if options.unsafe_code else {}
    extra = [*build_evaluators(options.evaluator), *_judges(options)]
    if reads_upstream(options) and not any(isinstance(each, EvidenceSurvival) for each in extra):
        extra.append(EvidenceSurvival())
    field = "score" if options.score_field == "auto" else options.score_field
    scorer = Scorer(extra=extra, settings=settings, score_field=field)
    if options.threshold is not None:
        check_threshold(options.threshold, scorer, field)
    for tag in tags:  # evaluators that cannot go together are found here too
        scorer.evaluators_for(tag)
    if options.score_field != "auto":
        known = scorer.fields_for(tags)
        if known is not None and options.score_field not in known:
            raise UsageError(
                f"no evaluator emits {options.score_field!r} here; --score-field can be {', '.join(sorted(known))}"
            )
    return scorer


def reads_upstream(options: argparse.Namespace) -> bool:
    """Whether it will be known what the model behind a system got to read."""
    return bool(getattr(options, "upstream", False) or getattr(options, "reader", None)) or wants_tap(options)


def _all_upstream(options: argparse.Namespace) -> bool:
    """Whether every system of the run will have its upstream tokens known: that is then the cost which counts."""
    if hasattr(options, "upstream_cost"):
        return bool(options.upstream_cost)
    return wants_tap(options) or bool(options.reader and not options.proxy)


def _controls() -> tuple[str, ...]:
    """The systems of `--controls`, which do not compete."""
    from context_bench.tap.controls import CONTROLS

    return tuple(CONTROLS)


def build_metrics(options: argparse.Namespace, tags: Sequence[str], systems: int) -> list[Metric]:
    """The metrics of every run, the official number where that is no mean of rows, and those that were asked for."""
    field = "score" if options.score_field == "auto" else options.score_field
    metrics = default_metrics(
        field,
        DEFAULT_THRESHOLD if options.threshold is None else options.threshold,
        datasets=len(tags),
        systems=systems,
        tapped=reads_upstream(options),
        controls=_controls() if getattr(options, "controls", False) else (),
        cost_field="upstream_cost_of_pass" if _all_upstream(options) else "cost_of_pass",
        judged=bool(options.judge_url),
    )
    if any((card := card_for(tag)) and card.threshold is not None for tag in tags):
        metrics.append(CardPassRate(field))
    if any((card := card_for(tag)) and card.aggregate for tag in tags):
        metrics.append(OfficialScore(field))
    for text in options.metric:
        for ref in parse("metric", text):
            found = resolve("metric", ref)
            made = isinstance(found, Metric) and not isinstance(found, type)
            metric = found if made else call_with(found, ref) if callable(found) else None
            if not isinstance(metric, Metric):
                raise UsageError(f"--metric {text!r} is not a metric: it needs .name and .compute(rows)")
            if metric.name in {each.name for each in metrics}:
                raise UsageError(
                    f"the metric {metric.name!r} is computed already: --score-field and --threshold set it"
                )
            metrics.append(metric)
    return metrics
