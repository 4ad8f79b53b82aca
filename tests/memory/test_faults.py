"""Memories with one known fault each: it is named, by its own name, and nothing else is said of them."""

from __future__ import annotations

from context_bench import evaluate_memory
from context_bench.output.memory import list_outcomes
from faulty_memories import FAULTS, Honest

KINDS: list[type[Honest]] = [Honest, *FAULTS]


def test_each_fault_is_named_and_no_other() -> None:
    result = evaluate_memory(
        KINDS,
        "synthetic-memory:length=6000",
        max_conversations=2,
        types=["single_hop", "knowledge_update", "forget", "leakage", "secret", "instruction"],
        budgets=[500],
        answers=["reader"],
        quiet=0.8,
        progress=False,
    )
    said = [each for each in list_outcomes(result) if not each.startswith("ranked by")]
    by_system = {
        kind.name: [each.removeprefix(kind.name).strip() for each in said if each.startswith(f"{kind.name} ")]
        for kind in KINDS
    }
    wanted = {Honest.name: [], **{kind.name: [fault] for kind, fault in FAULTS.items()}}
    wrong = {
        name: by_system[name]
        for name, faults in wanted.items()
        if len(by_system[name]) != len(faults)
        or not all(one.startswith(other) for one, other in zip(by_system[name], faults))
    }
    assert not wrong
