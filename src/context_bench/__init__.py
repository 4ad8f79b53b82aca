"""context-bench: benchmark any system that changes what a language model gets to read.

    from context_bench import evaluate

Names are imported when they are first used, so that the command line starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from context_bench._lazy import lazy_names
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
    from context_bench.systems import ClaudeCLI, OpenAIProxy
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
    "systems": ("ClaudeCLI", "OpenAIProxy"),
    "types": ("Evaluator", "MemorySystem", "Metric", "Reporter", "System"),
    "utils.tokens": ("count_tokens", "set_tokenizer"),
}

__all__ = [
    "ClaudeCLI",
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

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
