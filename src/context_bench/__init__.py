"""context-bench: benchmark any system that changes what a language model gets to read.

    from context_bench import evaluate

Names are imported when they are first used, so that the command line starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from context_bench._version import __version__

if TYPE_CHECKING:
    from context_bench.errors import (
        ContextBenchError,
        DataError,
        MissingExtra,
        SystemFailure,
        UnknownName,
        UsageError,
    )
    from context_bench.registry import (
        get_metric,
        load_dataset,
        register_dataset,
        register_metric,
    )
    from context_bench.results import EvalResult, EvalRow, Scores
    from context_bench.runner import aevaluate, evaluate
    from context_bench.systems import OpenAIProxy
    from context_bench.types import Evaluator, MemorySystem, Metric, Reporter, System
    from context_bench.utils.tokens import count_tokens, set_tokenizer

_HOMES = {
    "errors": (
        "ContextBenchError",
        "DataError",
        "MissingExtra",
        "SystemFailure",
        "UnknownName",
        "UsageError",
    ),
    "registry": ("get_metric", "load_dataset", "register_dataset", "register_metric"),
    "results": ("EvalResult", "EvalRow", "Scores"),
    "runner": ("aevaluate", "evaluate"),
    "systems": ("OpenAIProxy",),
    "types": ("Evaluator", "MemorySystem", "Metric", "Reporter", "System"),
    "utils.tokens": ("count_tokens", "set_tokenizer"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "ContextBenchError",
    "DataError",
    "EvalResult",
    "EvalRow",
    "Evaluator",
    "MemorySystem",
    "Metric",
    "MissingExtra",
    "OpenAIProxy",
    "Reporter",
    "Scores",
    "System",
    "SystemFailure",
    "UnknownName",
    "UsageError",
    "__version__",
    "aevaluate",
    "count_tokens",
    "evaluate",
    "get_metric",
    "load_dataset",
    "register_dataset",
    "register_metric",
    "set_tokenizer",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_HOME[name]}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
