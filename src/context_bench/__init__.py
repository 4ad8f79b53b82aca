"""context-bench: benchmark any system that changes what a language model reads.

    from context_bench import evaluate

Everything that `evaluate()` takes, returns or raises can be imported from here. Names are imported when they are first
used, so that the command line starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from context_bench._lazy import lazy_names
from context_bench._version import __version__

if TYPE_CHECKING:
    from context_bench.core.judge import Scorer
    from context_bench.core.schedule import Engine
    from context_bench.errors import (
        BadOutput,
        ConnectionFailed,
        ContextBenchError,
        DataError,
        Interrupted,
        LocalShortage,
        MissingExtra,
        RequestFailed,
        ScoreClash,
        StartFailed,
        StoreError,
        SystemFailure,
        TimedOut,
        UnknownName,
        UsageError,
    )
    from context_bench.local import LocalModel
    from context_bench.memory import aevaluate_memory, evaluate_memory
    from context_bench.monitors.limits import Limits
    from context_bench.pricing import Price, Prices
    from context_bench.ray.ray_engine import RayEngine
    from context_bench.registry import (
        get_metric,
        load_dataset,
        register_dataset,
        register_evaluator,
        register_memory_system,
        register_metric,
        register_reporter,
        register_system,
    )
    from context_bench.results import EvalResult, EvalRow, Scores
    from context_bench.runner import aevaluate, evaluate
    from context_bench.store import Store, StoreBackend
    from context_bench.systems import AnthropicProxy, ClaudeCLI, Command, MessagesSystem, OpenAIProxy, WithReader
    from context_bench.tap import Control, Forward, Launch, Scripted, Tapped
    from context_bench.types import Dataset, Evaluator, Example, MemorySystem, Metric, Reporter, System, Tally
    from context_bench.utils.tokens import Tokenizer, count_tokens, set_tokenizer

_HOMES = {
    "monitors.limits": ("Limits",),
    "core.schedule": ("Engine",),
    "ray.ray_engine": ("RayEngine",),
    "core.judge": ("Scorer",),
    "errors": (
        "BadOutput", "ConnectionFailed", "ContextBenchError", "DataError", "Interrupted", "LocalShortage",
        "MissingExtra", "RequestFailed", "ScoreClash", "StartFailed", "StoreError", "SystemFailure", "TimedOut",
        "UnknownName", "UsageError",
    ),
    "local": ("LocalModel",),
    "memory": ("aevaluate_memory", "evaluate_memory"),
    "pricing": ("Price", "Prices"),
    "registry": (
        "get_metric", "load_dataset", "register_dataset", "register_evaluator", "register_memory_system",
        "register_metric", "register_reporter", "register_system",
    ),
    "results": ("EvalResult", "EvalRow", "Scores"),
    "runner": ("aevaluate", "evaluate"),
    "store": ("Store", "StoreBackend"),
    "systems": ("AnthropicProxy", "ClaudeCLI", "Command", "MessagesSystem", "OpenAIProxy", "WithReader"),
    "tap": ("Control", "Forward", "Launch", "Scripted", "Tapped"),
    "types": ("Dataset", "Evaluator", "Example", "MemorySystem", "Metric", "Reporter", "System", "Tally"),
    "utils.tokens": ("Tokenizer", "count_tokens", "set_tokenizer"),
}  # fmt: skip

__all__ = [
    "AnthropicProxy", "BadOutput", "ClaudeCLI", "Command", "ConnectionFailed", "ContextBenchError", "Control",
    "DataError", "Dataset", "Engine", "EvalResult", "EvalRow", "Evaluator", "Example", "Forward", "Interrupted",
    "Launch", "Limits", "LocalModel", "LocalShortage", "MemorySystem", "MessagesSystem", "Metric", "MissingExtra",
    "OpenAIProxy", "Price", "Prices", "RayEngine", "Reporter", "RequestFailed", "ScoreClash", "Scorer", "Scores",
    "Scripted", "StartFailed", "Store", "StoreBackend", "StoreError", "System", "SystemFailure", "Tally", "Tapped",
    "TimedOut", "Tokenizer", "UnknownName", "UsageError", "WithReader", "__version__", "aevaluate", "aevaluate_memory",
    "count_tokens", "evaluate", "evaluate_memory", "get_metric", "load_dataset", "register_dataset",
    "register_evaluator", "register_memory_system", "register_metric", "register_reporter", "register_system",
    "set_tokenizer",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
