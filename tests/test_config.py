"""The declaration of options: `evaluate()` takes what it declares, and nothing is left out of the help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from context_bench import EvalResult, aevaluate, evaluate
from context_bench.cli.commands import RUN_GROUPS
from context_bench.config import (
    DEFAULT_MARGIN,
    DEFAULT_THRESHOLD,
    CommandOptions,
    EvaluateOptions,
    RecordedOptions,
    RunOptions,
)
from context_bench.memory import aevaluate_memory
from context_bench.memory.options import MEMORY_GROUPS, MemoryOptions, MemoryParameters
from context_bench.options import Options
from context_bench.settings import RunSettings
from context_bench.wire.forms import FORMS
from pages import ROOT, load_tool

OBJECTS = {"evaluators", "metrics", "tokenizer", "cache_dir", "store", "limits", "prices", "engine", "answerer"}
"""Options of Python whose types the declaration does not know: the modules that have them stand above it."""


def types_of(options: type[Options]) -> dict[str, str]:
    return {
        name: kind for each in reversed(options.__mro__) for name, kind in vars(each).get("__annotations__", {}).items()
    }


@pytest.mark.parametrize("function", [evaluate, aevaluate])
def test_evaluate_takes_the_options_that_are_declared(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    declared = EvaluateOptions.declared()
    assert parameters.keys() == declared.keys()
    types = types_of(EvaluateOptions)
    for name, parameter in parameters.items():
        if parameter.default is not parameter.empty:
            assert parameter.default == declared[name].default, name
        if name not in OBJECTS:
            assert parameter.annotation == types[name], name


def test_both_ways_to_evaluate_have_one_signature() -> None:
    assert inspect.signature(evaluate) == inspect.signature(aevaluate)


def test_evaluate_memory_takes_the_options_that_are_declared() -> None:
    parameters = dict(inspect.signature(aevaluate_memory).parameters)
    for name in ("systems", "dataset", "options"):
        del parameters[name]
    declared = MemoryParameters.declared()
    assert parameters.keys() == declared.keys()
    types = types_of(MemoryParameters)
    for name, parameter in parameters.items():
        assert parameter.default == declared[name].default, name
        if name not in OBJECTS:
            assert parameter.annotation == types[name], name


@pytest.mark.parametrize("function", [evaluate, aevaluate_memory])
def test_the_docstring_explains_every_parameter(function: Callable[..., Any]) -> None:
    described = re.findall(r"^ {4}(\w+): \S", inspect.getdoc(function) or "", flags=re.MULTILINE)
    assert set(described) - {"UsageError", "DataError", "StoreError", "ScoreClash", "Interrupted"} == set(
        inspect.signature(function).parameters
    )


@pytest.mark.parametrize(("options", "groups"), [(RunOptions, RUN_GROUPS), (MemoryOptions, MEMORY_GROUPS)])
def test_the_help_lists_every_flag_once(options: type[Options], groups: dict[str, tuple[str, ...]]) -> None:
    listed = [name for names in groups.values() for name in names]
    assert len(listed) == len(set(listed))
    own = {name for name, each in options.declared().items() if each.flags}
    shared_with_a_run_only = {*CommandOptions.declared()} - {*listed} if options is MemoryOptions else set()
    assert own - shared_with_a_run_only == set(listed)


def test_every_recorded_option_is_in_the_record_and_in_its_typed_view() -> None:
    result = evaluate(lambda example: example, [{"id": 1, "context": "one"}], progress=False)
    assert set(RecordedOptions.declared()) <= set(result.config)
    for name in RecordedOptions.declared():
        assert getattr(result.settings, name) == result.config[name] or result.config[name] is None, name


def test_a_record_without_options_has_their_defaults() -> None:
    settings = EvalResult([], {}, {}, {}).settings
    assert (settings.margin, settings.score_field, settings.repeats) == (DEFAULT_MARGIN, "score", 1)
    assert (settings.systems, settings.threshold) == ({}, None)


def test_keys_that_are_unknown_or_none_are_left_out() -> None:
    settings = RunSettings({"margin": None, "no_such_key": 1, "repeats": 3})
    assert (settings.margin, settings.repeats) == (DEFAULT_MARGIN, 3)
    assert not hasattr(settings, "no_such_key")


def test_an_option_that_is_not_declared_is_refused() -> None:
    with pytest.raises(TypeError, match="unknown option: marginn"):
        EvaluateOptions(marginn=0.1)


def test_the_help_names_every_api_form_with_its_model_and_key() -> None:
    declared = RunOptions.declared()
    assert list(declared["api"].choices) == [form.name for form in FORMS]
    for form in FORMS:
        assert f"{form.default_model} with --api {form.name}" in declared["model"].help
        assert form.key_variable in declared["api_key_env"].help


def test_the_page_of_options_is_the_one_that_the_declaration_makes() -> None:
    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == load_tool("options_page").write_page(), (
        "python tools/options_page.py"
    )


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("docs/metrics.md", f"at least the threshold ({DEFAULT_THRESHOLD:g} unless"),
        ("docs/judge.md", f"the usual threshold of {DEFAULT_THRESHOLD:g}"),
        ("docs/glossary.md", f"at least the threshold, {DEFAULT_THRESHOLD:g} unless"),
        ("docs/tutorial/reading-numbers.md", f"a score of at least {DEFAULT_THRESHOLD:g} (`--threshold`)"),
        ("docs/plan.md", f"at a margin of {DEFAULT_MARGIN:g}"),
    ],
)
def test_the_docs_name_the_default_threshold_and_margin(page: str, sentence: str) -> None:
    assert sentence in " ".join((ROOT / page).read_text(encoding="utf-8").split())
