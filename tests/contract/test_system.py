"""What every system that runs in this process keeps to.

Runs for every registered system that can be made without arguments: install a plugin with an entry point
in `context_bench.systems`, and it is held to the same.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from context_bench import System
from context_bench.testing import check_system, sample_examples
from parts import list_makeable, make_part

EXAMPLES = {str(example["id"]): example for example in sample_examples()}


@pytest.fixture(params=list_makeable("system"))
def system(request: pytest.FixtureRequest) -> Any:
    return make_part("system", request.param)


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> dict[str, Any]:
    return copy.deepcopy(EXAMPLES[request.param])


def test_it_passes_the_checks_that_authors_of_plugins_use(system: Any) -> None:
    check_system(system)


def test_it_has_a_name_and_processes(system: Any) -> None:
    assert isinstance(system, System)
    assert isinstance(system.name, str)
    assert system.name.strip()


def test_it_returns_an_answer_a_context_or_documents(system: Any, example: dict[str, Any]) -> None:
    result = system.process(copy.deepcopy(example))
    assert isinstance(result, dict | str)
    if isinstance(result, dict):
        assert result.keys() & {"response", "context", "documents"}
        assert all(isinstance(result[key], str) for key in ("response", "context") if result.get(key) is not None)
        assert all(isinstance(item, dict) for item in result.get("documents") or ())


def test_the_same_example_gives_the_same_result(system: Any, example: dict[str, Any]) -> None:
    again = type(system)()
    assert system.process(copy.deepcopy(example)) == again.process(copy.deepcopy(example))


def test_a_fingerprint_is_a_text_that_stays_the_same(system: Any) -> None:
    fingerprint = getattr(system, "fingerprint", None)
    if fingerprint is None:
        pytest.skip("it has none: its answers are kept by its source")
    assert isinstance(fingerprint, str)
    assert fingerprint == type(system)().fingerprint
    assert " at 0x" not in fingerprint
