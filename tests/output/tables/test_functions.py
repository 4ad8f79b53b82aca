"""Reporters as functions, importable from where scripts have them."""

from __future__ import annotations

import importlib

import pytest

from context_bench import EvalResult, evaluate
from context_bench.reporters import TableReporter, to_json, to_markdown


@pytest.fixture(scope="module")
def result() -> EvalResult:
    return evaluate(["passthrough", "closed-book"], "needle:length=200,n=2", progress=False)


def test_markdown(result: EvalResult) -> None:
    text = to_markdown(result)
    header, rule, *lines = text.splitlines()
    assert header.startswith("| system")
    assert set(rule) <= set("|-: ")
    assert [line.split("|")[1].strip() for line in lines[:2]] == ["passthrough", "closed-book"]
    assert text == TableReporter().render(result)


def test_json_can_be_read_back(result: EvalResult) -> None:
    assert EvalResult.from_json(to_json(result)).summary == result.summary


@pytest.mark.parametrize(("module", "name"), [("markdown", "to_markdown"), ("json_out", "to_json")])
def test_the_modules_that_scripts_import_from(module: str, name: str) -> None:
    home = importlib.import_module(f"context_bench.reporters.{module}")
    assert getattr(home, name) is {"to_markdown": to_markdown, "to_json": to_json}[name]
