"""Datasets: the catalog (data), loaders by family, local files and synthetic generators.

Loader functions can be imported by name: `from context_bench.datasets.qa import musique; examples = musique(n=50)`.
Scripts written for other loaders of these datasets use the same imports. Each function returns a list of examples.
These modules exist without files, and nothing is loaded until a function is called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from context_bench._lazy import add_module
from context_bench.datasets.catalog import Card, card_for, catalog
from context_bench.datasets.example_check import ExampleCheck
from context_bench.datasets.files import FileDataset
from context_bench.errors import DataError
from context_bench.types import Example

__all__ = ["Card", "ExampleCheck", "FileDataset", "card_for", "catalog", "load_jsonl"]

Loader = Callable[..., list[Example]]

_SHORTER = {"apigen_mt": "apigen", "bfcl_simple": "bfcl", "math_dataset": "math", "swe_agent_traces": "swebench-lite"}
_FUNCTIONS = {
    "huggingface": "hotpotqa gsm8k bfcl_simple",
    "agent_traces": "apigen_mt swebench swebench_lite swebench_verified swe_agent_traces",
    "qa": "frames musique narrativeqa natural_questions qasper quality triviaqa",
    "code": "humaneval mbpp",
    "summarization": "dialogsum multi_news qmsum summscreenfd",
    "nli": "contract_nli scifact",
    "knowledge": "arc_challenge gpqa hellaswag mmlu mmlu_pro truthfulqa winogrande",
    "reasoning": "drop math_dataset mgsm",
    "ifeval": "ifeval",
    "instruction": "alpaca_eval",
    "multi_turn": "mt_bench",
    "longcontext": "bbh govreport infinitebench longbench longbench_v2 meetingbank nolima",
}
MODULES: dict[str, dict[str, str]] = {
    module: {name: _SHORTER.get(name, name.replace("_", "-")) for name in names.split()}
    for module, names in _FUNCTIONS.items()
}
"""Module -> function -> dataset of the catalog."""


def load_jsonl(path: str | Path, n: int | None = None) -> list[Example]:
    """Return the examples of a JSON Lines file; an example without an `id` gets its line number, counted from 0."""
    from context_bench.text.formats import read_jsonl

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


@cache
def _get_loader(module: str, function: str) -> Loader:
    name = MODULES[module][function]

    def load_examples(n: int | None = None, split: str | None = None, config: str | None = None) -> list[Example]:
        from context_bench.datasets.public import load

        if split is not None and config is None and split in catalog()[name].configs:
            split, config = None, split  # InfiniteBench has its tasks as splits on the hub
        more: dict[str, Any] = {key: value for key, value in (("split", split), ("config", config)) if value}
        return list(load(name, n=n, **more))

    load_examples.__name__ = load_examples.__qualname__ = function
    load_examples.__module__ = f"{__name__}.{module}"
    load_examples.__doc__ = f"Return examples of {name}, at most `n`, of another `split` or `config` where given."
    return load_examples


for _module, _functions in MODULES.items():
    _about = f"Loader functions: {', '.join(_functions)}."
    add_module(f"{__name__}.{_module}", _about, tuple(_functions), partial(_get_loader, _module))
add_module(f"{__name__}.local", load_jsonl.__doc__ or "", ("load_jsonl",), lambda _: load_jsonl)
