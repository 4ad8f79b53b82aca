"""Loader functions by name: `from context_bench.datasets.qa import musique; examples = musique(n=50)`.

Scripts written for other loaders of these datasets import them like this. Each function returns a list of examples; the
modules that they are imported from have no files, and nothing is loaded before a function is called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from context_bench._lazy import add_module
from context_bench.errors import DataError
from context_bench.types import Example

Loader = Callable[..., list[Example]]

MODULES: dict[str, dict[str, str]] = {
    "huggingface": {"hotpotqa": "hotpotqa", "gsm8k": "gsm8k", "bfcl_simple": "bfcl"},
    "agent_traces": {
        "apigen_mt": "apigen",
        "swebench": "swebench",
        "swebench_lite": "swebench-lite",
        "swebench_verified": "swebench-verified",
        "swe_agent_traces": "swebench-lite",
    },
    "qa": {
        "frames": "frames",
        "musique": "musique",
        "narrativeqa": "narrativeqa",
        "natural_questions": "natural-questions",
        "qasper": "qasper",
        "quality": "quality",
        "triviaqa": "triviaqa",
    },
    "code": {"humaneval": "humaneval", "mbpp": "mbpp"},
    "summarization": {
        "dialogsum": "dialogsum",
        "multi_news": "multi-news",
        "qmsum": "qmsum",
        "summscreenfd": "summscreenfd",
    },
    "nli": {"contract_nli": "contract-nli", "scifact": "scifact"},
    "knowledge": {
        "arc_challenge": "arc-challenge",
        "gpqa": "gpqa",
        "hellaswag": "hellaswag",
        "mmlu": "mmlu",
        "mmlu_pro": "mmlu-pro",
        "truthfulqa": "truthfulqa",
        "winogrande": "winogrande",
    },
    "reasoning": {"drop": "drop", "math_dataset": "math", "mgsm": "mgsm"},
    "ifeval": {"ifeval": "ifeval"},
    "instruction": {"alpaca_eval": "alpaca-eval"},
    "multi_turn": {"mt_bench": "mt-bench"},
    "longcontext": {
        "bbh": "bbh",
        "govreport": "govreport",
        "infinitebench": "infinitebench",
        "longbench": "longbench",
        "longbench_v2": "longbench-v2",
        "meetingbank": "meetingbank",
        "nolima": "nolima",
    },
}
"""Module -> function -> dataset of the catalog."""


def load_jsonl(path: str | Path, n: int | None = None) -> list[Example]:
    """Return the examples of a JSON Lines file; one without an `id` gets the number of its line, from 0 on.

    Args:
        path: The file.
        n: At most so many examples.
    """
    from context_bench.datasets.formats import read_jsonl

    examples: list[Example] = []
    try:
        with Path(path).open("rb") as source:
            for line, record in islice(read_jsonl(source, str(path)), n):
                if not isinstance(record, dict):
                    raise DataError(f"{path}, line {line}: an example must be an object with fields")
                examples.append({"id": line - 1, **record})
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    return examples


def add_loader_modules(package: str) -> None:
    """Make the loader functions importable from the modules below `package`."""
    for module, functions in MODULES.items():
        get = partial(_get_loader, package, module)
        add_module(f"{package}.{module}", f"Loader functions: {', '.join(functions)}.", tuple(functions), get)
    about = load_jsonl.__doc__ or ""
    add_module(f"{package}.local", about, ("load_jsonl",), lambda _: load_jsonl)


@cache
def _get_loader(package: str, module: str, function: str) -> Loader:
    name = MODULES[module][function]

    def load_examples(n: int | None = None, split: str | None = None, config: str | None = None) -> list[Example]:
        from context_bench.datasets.catalog import catalog
        from context_bench.datasets.public.loader import load

        if split is not None and config is None and split in catalog()[name].configs:
            split, config = None, split  # InfiniteBench has its tasks as splits on the hub
        more: dict[str, Any] = {key: value for key, value in (("split", split), ("config", config)) if value}
        return list(load(name, n=n, **more))

    load_examples.__name__ = load_examples.__qualname__ = function
    load_examples.__module__ = f"{package}.{module}"
    load_examples.__doc__ = f"Return examples of {name}, at most `n`, of another `split` or `config` where given."
    return load_examples
