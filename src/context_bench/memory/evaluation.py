"""`evaluate_memory()`: memory systems on conversations, through the same engine, store, statistics and reports."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from context_bench.compare.sweeps import name_setting
from context_bench.config import DEFAULT_THRESHOLD, EvaluateOptions
from context_bench.core.judge import Scorer
from context_bench.errors import UsageError, warn
from context_bench.evaluators import AnswerQuality
from context_bench.memory.arm import Arm, ExtractReader, OwnAnswer, ReadAnswer, SharedReader
from context_bench.memory.contexts import read_contexts
from context_bench.memory.conversations import check_granularity
from context_bench.memory.datasets import UNVERIFIED
from context_bench.memory.host import Host
from context_bench.memory.inspection import Meter
from context_bench.memory.members import is_factory, read_members
from context_bench.memory.metrics import ByType, MemoryCosts
from context_bench.memory.probes import MemoryProbes, ProbeShares
from context_bench.memory.questions import Questions, open_conversations
from context_bench.memory.scoring import Abstention, LocomoScore, LongMemEvalRetrieval, MemoryChoice, MemoryRetrieval
from context_bench.memory.seat import HostSettings, Instance
from context_bench.memory.vendor_memories import is_vendor, read_vendor_config
from context_bench.metrics import DollarCost, Latency, MeanScore, PassRate
from context_bench.metrics.upstream import PromptSavings, UpstreamTokens
from context_bench.pricing import Prices, load_shipped_prices
from context_bench.refs import Ref, call_with, parse, read_signature, resolve
from context_bench.results import EvalResult
from context_bench.runner import aevaluate, run_to_end
from context_bench.store.fingerprints import fingerprint_of
from context_bench.store.origin import is_ours
from context_bench.tap.address import free_port
from context_bench.tap.answering import Answerer, Shared
from context_bench.text.masking import mask_reference
from context_bench.traits import find_fingerprint, find_score_fields
from context_bench.types import Evaluator, Metric
from context_bench.utils.tokens import Tokenizer, get_tokenizer

_ASKS = "base_url"  # a constructor with this parameter belongs to a system that calls a model

BUDGETS = (500, 2000, 8000)  # retrieved tokens that a reader gets

_ANSWERS = ("reader", "own")
_BASELINE = "naive"
_PRIMARIES = {"locomo": "locomo_f1", "membench": "memory_choice"}
"""Primary scores by dataset. LoCoMo's category 5 has no primary score, because refusals have a separate score."""
_JUDGED = ("longmemeval", "beam", "convomem", "halumem")  # their authors use a model as judge


def evaluate_memory(systems: Any, dataset: Any, **options: Any) -> EvalResult:
    """Write conversations into memory systems, ask their questions, and summarise. See `aevaluate_memory`."""
    return run_to_end(lambda: aevaluate_memory(systems, dataset, **options))


async def aevaluate_memory(
    systems: Any,
    dataset: Any,
    *,
    reader: Any = None,
    answerer: Answerer | None = None,
    model: str | None = None,
    embedding_model: str | None = None,
    api_key: str | None = None,
    granularity: str | Sequence[str] = "session",
    budgets: Sequence[int] = BUDGETS,
    top_k: int | None = None,
    answers: Sequence[str] = _ANSWERS,
    max_conversations: int | None = None,
    types: Collection[str] | None = None,
    timeout: float = 600.0,
    quiet: float = 5.0,
    max_quiet: float = 120.0,
    data_dir: str | None = None,
    extra: Sequence[Any] = (),
    plant: int | None = None,
    vendor_config: Any = None,
    contexts: str | None = None,
    **options: Any,
) -> EvalResult:
    """Run `evaluate_memory` asynchronously.

    Each conversation is written into each system once, and its questions are the examples of the run. The result has
    several arms for a system: in `NAME[budget=500]`, the reader answers from the retrieved items; in `NAME[own query]`,
    the system answers itself. Controls have no budget and keep their names.

    Args:
        systems: One or several memory systems: objects, classes, or references such as `"last:n=20"`.
        dataset: Conversations: an iterable, a name such as `"synthetic-memory"`, or a JSONL file.
        reader: A system with `aprocess` that answers from the retrieved items; the `extract` script by default.
        answerer: What answers the calls that systems make through their taps: `Forward`, `LocalModel` or `Scripted`.
        model: The model that these systems call.
        embedding_model: The embedding model of these systems.
        api_key: The API key that these systems send.
        granularity: The unit of one `ingest` call: `turn`, `pair` or `session`, the same for all systems. If several
            are given, each is measured.
        budgets: Limits on the retrieved tokens that the reader gets, one arm for each.
        top_k: The largest number of retrieved items; None lets each system choose.
        answers: `reader`, `own` or both.
        max_conversations: The largest number of conversations to read.
        types: The types of questions to ask; all by default.
        timeout: The time limit of one call of a memory system, in seconds.
        quiet: After writing, wait until the system's tap has seen no call for this many seconds.
        max_quiet: The limit of this wait, in seconds.
        data_dir: A folder with the records of public datasets.
        extra: Evaluators in addition to those of the dataset, or to `evaluators`.
        plant: The number of synthetic facts to plant into each conversation and ask for.
        vendor_config: Settings of vendors' systems: a TOML file, or a mapping by the vendor's name.
        contexts: A file of retrieved contexts; each system in the file is measured as if it retrieved these contexts
            now.
        options: All other parameters of `evaluate`, such as `evaluators`, `metrics`, `tokenizer` and `cache_dir`.
            `max_workers` is the number of conversations in parallel. `limits` include the memory systems' spending at
            their taps. `seed` also applies to generated datasets and to systems with that parameter. `baseline` is by
            default `naive`, or else `bm25` at the largest budget, if that system is in the run.

    Raises:
        UsageError: An argument is wrong; no request was sent.
        DataError: A conversation is invalid.
    """
    granularities = [granularity] if isinstance(granularity, str) else list(granularity)
    _check_choices(granularities, budgets, answers)
    settings = EvaluateOptions(**options)
    settings.check()
    count = get_tokenizer(settings.tokenizer)
    opened, tag = open_conversations(
        dataset, n=max_conversations, seed=settings.seed, data_dir=data_dir, types=types, plant=plant
    )
    questions = Questions(opened, tag, count, max_conversations, types)
    prices = settings.prices or load_shipped_prices()
    if answerer is not None and not isinstance(answerer, Shared):
        answerer = Shared(answerer)  # each instance of a system has its own tap
    vendor_settings = read_vendor_config(vendor_config)
    models = Models(answerer, model, embedding_model, api_key, prices, settings.seed, vendor_settings)
    if contexts is not None:
        systems = [*(systems if isinstance(systems, list | tuple) else [systems]), *read_contexts(contexts)]
    home = settings.cache_dir if settings.store is None else settings.store.directory
    folder = None if home is None else Path(home) / "memory"
    hosts = build_hosts(
        systems,
        models,
        [HostSettings(each, timeout, quiet, max_quiet, folder, settings.reuse) for each in granularities],
    )
    if settings.limits is not None and settings.limits.max_cost is not None:
        asked = (model, embedding_model) if any(host.meets_tap for host in hosts) else ()
        if unpriced := [each for each in asked if each is not None and prices.of(each) is None]:
            raise UsageError(
                f"{unpriced[0]!r} has no price, so --max-cost cannot be enforced: add a price for it, or `default`, "
                "with --prices"
            )
    shared = reader if isinstance(reader, SharedReader) else SharedReader(reader or ExtractReader())
    arms = [arm for host in hosts for arm in _make_arms(host, shared, budgets, top_k, answers, count)]
    for host in hosts:
        host.questions = questions
    workers = settings.max_workers or 1
    questions.width = 1 if _find_single(hosts, workers) else workers
    shared.room = asyncio.Semaphore(workers) if workers > 1 else None
    if settings.baseline is None:
        settings.baseline = next(
            (each for each in _list_baselines(budgets) if each in {arm.name for arm in arms}), None
        )
    judged = any("memory_judge" in (find_score_fields(each) or ()) for each in extra)
    settings.score_field = settings.score_field or _find_primary(tag, judged)
    field = settings.score_field or "score"
    if settings.metrics is None:
        threshold = DEFAULT_THRESHOLD if settings.threshold is None else settings.threshold
        settings.metrics = _choose_metrics(field, judged, threshold)
    settings.evaluators = Scorer(
        _choose_evaluators(tag) if settings.evaluators is None else settings.evaluators,
        extra,
        score_field=field,
        keep_reasoning=settings.keep_reasoning,
    )
    about = {
        "budgets": list(budgets),
        "granularity": granularities,
        "top_k": top_k,
        "reader": shared.label,
        "read_by_script": shared.is_script,
        **({"unverified": name} if (name := tag.partition(":")[0]) in UNVERIFIED else {}),
    }
    settings.config = {**(settings.config or {}), "memory": about}
    return await aevaluate(**{**vars(settings), "systems": arms, "dataset": questions})


def _check_choices(granularities: Sequence[str], budgets: Sequence[int], answers: Sequence[str]) -> None:
    for each in granularities:
        check_granularity(each)
    if len(set(granularities)) < len(granularities):
        raise UsageError("granularity has a duplicate")
    for budget in budgets:
        if isinstance(budget, bool) or not isinstance(budget, int) or budget < 1:
            raise UsageError(f"a budget must be an integer of at least 1 (got {budget!r})")
    unknown = [each for each in answers if each not in _ANSWERS]
    if unknown or not answers:
        raise UsageError(f"answers must be some of {', '.join(_ANSWERS)} (got {', '.join(map(str, answers))})")


def _list_baselines(budgets: Sequence[int]) -> list[str]:
    """List the possible baselines, the preferred one first: the whole history, else BM25."""
    return [_BASELINE, name_setting("bm25", {"budget": str(max(budgets))})]


def _make_arms(
    host: Host,
    reader: SharedReader,
    budgets: Sequence[int],
    top_k: int | None,
    answers: Sequence[str],
    count: Tokenizer,
) -> list[Arm]:
    arms: list[Arm] = []
    if "retrieve" in host.members and ("reader" in answers or host.members.is_control):
        if host.members.is_control:
            return [ReadAnswer(host.name, host, reader, None, None, count)]
        arms += [
            ReadAnswer(name_setting(host.name, {"budget": str(budget)}), host, reader, budget, top_k, count)
            for budget in budgets
        ]
    if ("own" in answers and not host.members.is_frozen) or not arms:
        arms.append(OwnAnswer(f"{host.name}[own query]", host))
    return arms


def _choose_evaluators(tag: str) -> list[Evaluator]:
    own: dict[str, list[Evaluator]] = {
        "locomo": [LocomoScore()],
        "longmemeval": [LongMemEvalRetrieval()],
        "membench": [MemoryChoice()],
    }
    return [AnswerQuality(), MemoryRetrieval(), MemoryProbes(), Abstention(), *own.get(tag.partition(":")[0], [])]


def _find_primary(tag: str, judged: bool) -> str | None:
    """Choose the primary score of a dataset; None lets the fields of its questions decide."""
    name = tag.partition(":")[0]
    if name in _JUDGED and judged:
        return "memory_judge"
    return _PRIMARIES.get(name)


def _choose_metrics(field: str, judged: bool, threshold: float) -> list[Metric]:
    return [
        MeanScore(field),
        *([MeanScore("memory_judge")] if judged and field != "memory_judge" else []),
        PassRate(threshold, field),
        ByType(field),
        ProbeShares(),
        MemoryCosts(),
        PromptSavings(),
        UpstreamTokens(),
        DollarCost(threshold, field),
        Latency(),
    ]


# -- from a caller's references to memory systems that are ready to run, each behind its own tap


@dataclass(frozen=True)
class Models:
    answerer: Answerer | None = None  # answers behind their taps
    model: str | None = None  # the model that extracts and summarises
    embedding_model: str | None = None
    api_key: str | None = None  # the tap forwards it
    prices: Prices | None = None  # to compute their costs
    seed: int | None = None  # for systems that take one
    vendor_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by vendor name

    def list_arguments(self, url: str | None) -> dict[str, Any]:
        given = {
            _ASKS: url,
            "model": self.model,
            "embedding_model": self.embedding_model,
            "api_key": (self.api_key or "unused") if url else None,
            "seed": self.seed,
        }
        return {name: value for name, value in given.items() if value is not None}


def build_hosts(given: Any, models: Models, settings: Sequence[HostSettings]) -> list[Host]:
    """Build every memory system once per granularity, since granularities write conversations differently."""
    listed = given if isinstance(given, list | tuple) else [given]
    if not listed:
        raise UsageError("no memory system to measure: pass at least one")
    hosts: list[Host] = []
    for each in listed:
        refs = parse("memory_system", each) if isinstance(each, str) else [None]
        for ref in refs:
            for place, one in enumerate(settings):
                suffix = "" if len(settings) == 1 else f"/{one.granularity}"
                if place and not isinstance(each, str | type):
                    raise UsageError("several granularities need a class or a name of a memory system, not an object")
                hosts.append(_build_host(each, ref, models, one, suffix))
    return hosts


def _build_host(given: Any, ref: Ref | None, models: Models, settings: HostSettings, suffix: str) -> Host:
    found = given if ref is None else resolve("memory_system", ref)
    if not is_factory(found):
        if ref is not None and (ref.parameters or ref.argument):
            raise UsageError(f"{ref.text!r}: this memory system is already an instance and takes no parameters")
        members = read_members(found)
        name = members.name if ref is None else mask_reference(ref.text)
        return Host(f"{name}{suffix}", Instance(members), fingerprint_of(found), settings)
    own_name = ref is None or "name" in ref.parameters
    ref = ref or Ref(getattr(found, "__name__", "a memory system"), "", None, {})
    make = partial(_make_instance, found, ref, models)
    instance = make()
    system, meter = instance.members.system, instance.meter
    name = instance.members.name if own_name else mask_reference(ref.text)
    takes = read_signature(found)
    known = {key: value for key, value in models.list_arguments(None).items() if key in takes}
    fingerprint = _identify(found, system, ref, {key: known.get(key) for key in ("model", "embedding_model", "seed")})
    if meter is not None and fingerprint is not None:
        behind = models.answerer.fingerprint if models.answerer is not None else None
        fingerprint = None if behind is None else f"{fingerprint}, tap: {behind}"
    quiet = is_ours(type(system)) and _ASKS not in takes and not instance.members.is_frozen
    return Host(f"{name}{suffix}", instance, fingerprint, settings, make, asks_nobody=quiet)


def _make_instance(found: Any, ref: Ref, models: Models) -> Instance:
    """Make a memory system from its class, with its own tap if it calls models."""
    takes, meter = read_signature(found), None
    if _ASKS in takes and models.answerer is not None:
        meter = Meter(models.answerer, free_port(), models.prices)
    given = models.list_arguments(None if meter is None else meter.url)
    own = models.vendor_settings.get(found.name, {}) if is_vendor(found) else {}
    filled = {key: value for key, value in given.items() if key in takes} | dict(own)
    _check_answered(found, ref, filled)
    # the first parameter gets the text after the colon of a reference
    first = next((name for name, each in takes.items() if each.kind is not each.KEYWORD_ONLY), None)
    system = call_with(found, Ref(ref.text, ref.target, ref.argument, {**filled, **ref.parameters}), first)
    return Instance(read_members(system), meter)


def _find_single(hosts: Sequence[Host], workers: int) -> bool:
    """Whether some system allows only one instance; warn that conversations are then written one at a time."""
    obstacles = {host.name: host.find_obstacle() for host in hosts} if workers > 1 else {}
    for name, reason in obstacles.items():
        if reason:
            warn(f"conversations are written one at a time, because {name} allows only one instance: {reason}")
    return any(obstacles.values())


def is_asking(found: Any) -> bool:
    """Whether a memory system takes the address of a model."""
    return _ASKS in read_signature(found)


def _check_answered(found: Any, ref: Ref, filled: dict[str, Any]) -> None:
    needed = read_signature(found).get(_ASKS)
    if needed is not None and needed.default is needed.empty and _ASKS not in {**filled, **ref.parameters}:
        raise UsageError(f"{ref.text!r} calls a model: pass --tap-forward URL, --tap-model local or --tap-reply SCRIPT")


def _identify(found: Any, system: Any, ref: Ref, filled: dict[str, Any]) -> str | None:
    """Return the fingerprint of a system that was made here, without the address of its tap."""
    own = find_fingerprint(system)
    if own != ():
        return own if isinstance(own, str) else None
    known = fingerprint_of(found)
    return (
        None if known is None else f"{known} {sorted(ref.parameters.items())} {ref.argument} {sorted(filled.items())}"
    )
