"""Checks which instructions of an example a reply follows: the one place where rules meet examples.

A rule gets the arguments that it takes and no others; a table pads the arguments of every instruction to
all names with nulls, so null means absent. An unknown instruction is an error, never a pass.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from context_bench.errors import DataError
from context_bench.evaluators.ifeval import layout_rules as layout
from context_bench.evaluators.ifeval import wording_rules as wording
from context_bench.evaluators.ifeval.punkt_data import name_data_source

__all__ = ["RULES", "Check", "describe_provenance", "list_checks"]

Check = Callable[[str], bool]

RULES: dict[str, Callable[..., bool]] = {**wording.RULES, **layout.RULES}
"""All 25 instructions of the benchmark."""

_ARGUMENTS = {name: list(inspect.signature(rule).parameters)[1:] for name, rule in RULES.items()}
_BY_SENTENCES = {"length_constraints:number_sentences", "change_case:capital_word_frequency"}


def list_checks(example: Mapping[str, Any]) -> list[tuple[str, Check]]:
    """The instructions of an example with their checks; none when it has none."""
    names = example.get("instruction_id_list") or []
    arguments = example.get("kwargs")
    if arguments is None:
        arguments = [{}] * len(names)
    if len(arguments) != len(names):
        raise DataError(f"{len(names)} IFEval instructions, but {len(arguments)} kwargs: one is needed for each")
    return [(name, _check(name, given or {})) for name, given in zip(names, arguments)]


def _check(name: str, given: Mapping[str, Any]) -> Check:
    if name not in RULES:
        raise DataError(f"unknown IFEval instruction {name!r}")
    chosen = {key: given.get(key) for key in _ARGUMENTS[name]}
    for key, value in chosen.items():
        if value is None or value == "" or value == []:
            raise DataError(f"the IFEval instruction {name!r} needs {key!r} in its kwargs")

    def follows(reply: str) -> bool:
        if not reply.strip():
            return False
        try:
            return RULES[name](reply, **chosen)
        except (TypeError, AttributeError) as error:
            raise DataError(f"the IFEval instruction {name!r} has kwargs of a wrong type: {chosen}") from error

    return follows


def describe_provenance(names: Iterable[str]) -> dict[str, str]:
    """Name the sentence parameters that were used, where any were: a reader needs them to repeat the counts."""
    return {"sentences_by": name_data_source()} if _BY_SENTENCES.intersection(names) else {}
