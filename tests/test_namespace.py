"""The public namespace is what `__all__` says, and costs nothing before it is used."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

import context_bench
from banks import each_case

PUBLIC = {
    "AnthropicProxy",
    "BadOutput",
    "ClaudeCLI",
    "Command",
    "ConnectionFailed",
    "ContextBenchError",
    "Control",
    "DataError",
    "Dataset",
    "Engine",
    "EvalResult",
    "EvalRow",
    "Evaluator",
    "Example",
    "Forward",
    "Interrupted",
    "Launch",
    "Limits",
    "LocalModel",
    "LocalShortage",
    "MemorySystem",
    "Metric",
    "MissingExtra",
    "OpenAIProxy",
    "Price",
    "Prices",
    "RayEngine",
    "Reporter",
    "RequestFailed",
    "ScoreClash",
    "Scorer",
    "Scores",
    "Scripted",
    "StartFailed",
    "Store",
    "StoreBackend",
    "StoreError",
    "System",
    "SystemFailure",
    "Tally",
    "Tapped",
    "TimedOut",
    "Tokenizer",
    "UnknownName",
    "UsageError",
    "WithReader",
    "__version__",
    "aevaluate",
    "aevaluate_memory",
    "count_tokens",
    "evaluate",
    "evaluate_memory",
    "get_metric",
    "load_dataset",
    "register_dataset",
    "register_evaluator",
    "register_memory_system",
    "register_metric",
    "register_reporter",
    "register_system",
    "set_tokenizer",
}
"""Taking a name away breaks users: it has to be taken away here too."""

PACKAGES = (
    "metrics",
    "evaluators",
    "systems",
    "datasets",
    "reporters",
    "http",
    "registry",
    "results",
    "testing",
    "types",
    "errors",
)


def _modules() -> list[str]:
    found = pkgutil.walk_packages(context_bench.__path__, "context_bench.")
    return [module.name for module in found if not module.name.endswith("__main__")]


def test_the_flat_namespace() -> None:
    assert set(context_bench.__all__) >= PUBLIC
    assert sorted(context_bench.__all__) == list(context_bench.__all__)


@each_case("name", context_bench.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(context_bench, name) is not None


def test_no_public_name_is_a_module_as_well() -> None:
    # `from context_bench import x` would give the one or the other, depending on what was imported before.
    modules = {module.name for module in pkgutil.iter_modules(context_bench.__path__)}
    assert not modules & set(context_bench.__all__)


def test_every_error_that_a_run_can_raise_can_be_imported_from_the_top() -> None:
    errors = importlib.import_module("context_bench.errors")
    kinds = {name for name in errors.__all__ if isinstance(getattr(errors, name), type)}
    assert kinds <= set(context_bench.__all__)


def test_whatever_evaluate_takes_or_returns_can_be_imported_from_the_top() -> None:
    signature = inspect.signature(context_bench.evaluate)
    texts = [str(each.annotation) for each in signature.parameters.values()] + [str(signature.return_annotation)]
    named = {name for text in texts for name in re.findall(r"\b[A-Z]\w+", text)}
    assert named - {"Any", "Sequence", "Mapping", "Path", "None"} <= set(context_bench.__all__)


def test_dir_shows_every_public_name() -> None:
    assert set(context_bench.__all__) <= set(dir(context_bench))


def test_a_star_import_brings_exactly_the_public_names() -> None:
    code = "from context_bench import *\nprint(*sorted(name for name in dir() if not name.startswith('__')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == set(context_bench.__all__) - {"__version__"}


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'context_bench' has no attribute 'evalute'"):
        context_bench.evalute  # noqa: B018
    with pytest.raises(ImportError):
        importlib.import_module("context_bench.evalute")


def test_importing_the_package_imports_nothing_else() -> None:
    code = (
        "import sys; before = set(sys.modules); import context_bench; new = set(sys.modules) - before; "
        "print(*sorted(name for name in new if name.split('.')[0] not in sys.stdlib_module_names), 'asyncio' in new)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["context_bench", "context_bench._lazy", "context_bench._version", "False"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_what_it_has(package: str) -> None:
    module = importlib.import_module(f"context_bench.{package}")
    assert len(set(module.__all__)) == len(module.__all__)
    missing = [name for name in module.__all__ if not hasattr(module, name)]
    assert missing == []


def test_every_module_can_be_imported_and_has_the_names_it_lists() -> None:
    missing = {}
    for name in _modules():
        module = importlib.import_module(name)
        missing[name] = [each for each in getattr(module, "__all__", ()) if not hasattr(module, each)]
    assert {name: names for name, names in missing.items() if names} == {}


def test_the_version_is_a_release_number() -> None:
    assert context_bench.__version__[0].isdigit()
